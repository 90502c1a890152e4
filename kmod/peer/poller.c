// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads that poll doorbells in host memory: one for each NUMA node with
 * such a queue pair.
 *
 * A thread spins while doorbells change, then sleeps for short, and for longer
 * once nothing has changed for a while; without a queue pair that takes
 * doorbells it sleeps until it is woken.  Before a long sleep it sets
 * poller_asleep in the status pages and polls once more: a CPU that finds the
 * word set after its store to a doorbell wakes it by NVME_PEER_QP_KICK.
 *
 * Threads run on the CPUs of the module parameter poller_cpus, those of their
 * node first.  The scheduler moves a thread whose CPUs all go offline, or that a
 * cpuset isolates, and forgets them.  A thread is bound again when a CPU comes
 * online or goes offline, and checks its binding once a second.
 *
 * A thread is frozen in system suspend, without a lock: the suspend of
 * controllers, which closes the relays, does not wait for it.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/nodemask.h>
#include <linux/numa.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/topology.h>

#include <linux/nvme_peer.h>

#include "core/ctrl.h"
#include "host_pages.h"
#include "mediated.h"
#include "qp.h"
#include "relay.h"

/* Without a new value: how long to spin, and then to sleep for short. */
#define NVMEP_POLLER_SPIN_NS	(50 * NSEC_PER_USEC)
#define NVMEP_POLLER_WARM_NS	(10 * NSEC_PER_MSEC)

/* Duration of a sleep, and how much later it may end. */
#define NVMEP_POLLER_SHORT_NS	(20 * NSEC_PER_USEC)
#define NVMEP_POLLER_LONG_NS	(950 * NSEC_PER_USEC)
#define NVMEP_POLLER_SLACK_NS	(10 * NSEC_PER_USEC)

/* How often a thread checks that it is still bound to its CPUs. */
#define NVMEP_POLLER_CHECK_NS	((u64)NSEC_PER_SEC)

/**
 * struct nvmep_poller - a polling thread
 * @task: const
 * @node: const: its NUMA node
 * @cpus: nvmep_pool_lock: CPUs that it was last bound to
 * @lock: guards @qps, @mediators, writes of @asleep and of poller_asleep in
 *	status pages.  Held for one poll of all queue pairs, which delays removal
 *	of one.  A spinlock, whose waiters the spinning thread cannot overtake;
 *	taken under qp->lock, and before mediator->lock and ctrl->relay_lock
 * @qps: @lock: queue pairs in relay mode, by relay.node
 * @mediators: @lock: those that have mediated queue pairs, by poller_node
 * @asleep: of the thread: the status pages say that it sleeps
 * @readers: slow reads of device memory, by user
 * @kicked: does not sleep next time
 * @active_ns: of the thread: when it last found a new value
 * @checked_ns: of the thread: when it last checked its binding
 * @passes: written by the thread: polls of all queue pairs
 * @active: written by the thread: those that found a new value
 * @busy_ns: written by the thread: time that these took
 *
 * Exists until the module is unloaded.
 */
struct nvmep_poller {
	struct task_struct *task;
	int node;
	struct cpumask cpus;
	spinlock_t lock;	/* the lists, the status pages */
	struct list_head qps;
	struct list_head mediators;
	struct nvmep_readers readers;
	bool asleep;
	bool kicked;
	u64 active_ns;
	u64 checked_ns;
	u64 passes;
	u64 active;
	u64 busy_ns;
};

/*
 * Guards the variables below and the affinity of the threads.  Taken by CPU
 * hotplug: not held over allocation, nor over the creation or end of a thread.
 */
static DEFINE_MUTEX(nvmep_pool_lock);
static struct nvmep_poller *nvmep_pool[MAX_NUMNODES];
static struct cpumask nvmep_poller_cpus;	/* empty: not set */
static struct cpumask nvmep_poller_allowed;
static struct cpumask nvmep_poller_leaving;	/* going offline, or offline */
static enum cpuhp_state nvmep_poller_online;

/* --- CPUs ---------------------------------------------------------------- */

/* A cpuset that isolates CPUs frees the masks of the kernel after RCU. */
static void nvmep_poller_update_allowed(void)
{
	struct cpumask *allowed = &nvmep_poller_allowed;

	lockdep_assert_held(&nvmep_pool_lock);

	cpumask_copy(allowed, &nvmep_poller_cpus);
	if (cpumask_empty(allowed)) {
		rcu_read_lock();
		cpumask_and(allowed, housekeeping_cpumask(HK_TYPE_KTHREAD),
			    housekeeping_cpumask(HK_TYPE_DOMAIN));
		/* nohz_full=, which kernel threads avoid in older kernels. */
		cpumask_and(allowed, allowed,
			    housekeeping_cpumask(HK_TYPE_TICK));
		rcu_read_unlock();
	}
	cpumask_andnot(allowed, allowed, &nvmep_poller_leaving);
}

/* Has no effect while none of the CPUs is online. */
static void nvmep_poller_bind(struct nvmep_poller *poller)
{
	struct cpumask *cpus = &poller->cpus;

	lockdep_assert_held(&nvmep_pool_lock);

	nvmep_poller_update_allowed();
	cpumask_and(cpus, &nvmep_poller_allowed, cpumask_of_node(poller->node));
	if (!cpumask_intersects(cpus, cpu_online_mask))
		cpumask_copy(cpus, &nvmep_poller_allowed);
	if (cpumask_intersects(cpus, cpu_online_mask))
		set_cpus_allowed_ptr(poller->task, cpus);
}

static void nvmep_poller_bind_self(struct nvmep_poller *poller)
{
	mutex_lock(&nvmep_pool_lock);
	nvmep_poller_bind(poller);
	mutex_unlock(&nvmep_pool_lock);
}

static void nvmep_pollers_bind(void)
{
	int node;

	lockdep_assert_held(&nvmep_pool_lock);

	for_each_node(node)
		if (nvmep_pool[node])
			nvmep_poller_bind(nvmep_pool[node]);
}

static int nvmep_pollers_cpu_online(unsigned int cpu)
{
	mutex_lock(&nvmep_pool_lock);
	cpumask_clear_cpu(cpu, &nvmep_poller_leaving);
	nvmep_pollers_bind();
	mutex_unlock(&nvmep_pool_lock);
	return 0;
}

/* The CPU is still in cpu_online_mask. */
static int nvmep_pollers_cpu_offline(unsigned int cpu)
{
	mutex_lock(&nvmep_pool_lock);
	cpumask_set_cpu(cpu, &nvmep_poller_leaving);
	nvmep_pollers_bind();
	mutex_unlock(&nvmep_pool_lock);
	return 0;
}

static void nvmep_poller_set_cpus(const struct cpumask *cpus)
{
	mutex_lock(&nvmep_pool_lock);
	cpumask_copy(&nvmep_poller_cpus, cpus);
	nvmep_pollers_bind();
	mutex_unlock(&nvmep_pool_lock);
}

/*
 * A crash kernel has fewer CPUs than the list that was written for the machine:
 * that must not keep the driver of its disks from being loaded.
 */
static int nvmep_poller_cpus_set(const char *text,
				 const struct kernel_param *param)
{
	struct cpumask *cpus = kzalloc(sizeof(*cpus), GFP_KERNEL);
	int err;

	if (!cpus)
		return -ENOMEM;
	err = cpulist_parse(text, cpus);
	if (err == -ERANGE && !nvmep_poller_online) {
		pr_warn("nvme_peer: poller_cpus=%s names CPUs that do not exist: ignored\n",
			text);
		cpumask_clear(cpus);
		err = 0;
	}
	if (!err)
		nvmep_poller_set_cpus(cpus);
	kfree(cpus);
	return err;
}

static int nvmep_poller_cpus_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%*pbl\n", cpumask_pr_args(&nvmep_poller_cpus));
}

static const struct kernel_param_ops nvmep_poller_cpus_ops = {
	.set = nvmep_poller_cpus_set,
	.get = nvmep_poller_cpus_get,
};
module_param_cb(poller_cpus, &nvmep_poller_cpus_ops, NULL, 0644);
MODULE_PARM_DESC(poller_cpus,
		 "list of CPUs for the threads that poll doorbells in host memory; empty (default): all that are not isolated");

/* --- the thread ---------------------------------------------------------- */

static void nvmep_poller_store_asleep(struct nvmep_qp *qp, bool asleep)
{
	struct nvme_peer_status *status =
		page_address(qp->status_page->pages[0]);

	lockdep_assert_held(&qp->relay.poller->lock);

	WRITE_ONCE(status->poller_asleep, cpu_to_le32(asleep));
}

/*
 * Up to a slow read: others may take the lock before the next one.  The mediators
 * behind it come before it in the next pass.
 */
static enum nvmep_relay_seen
nvmep_poller_pass_mediators(struct nvmep_poller *poller)
{
	enum nvmep_relay_seen seen, most = NVMEP_RELAY_CLOSED;
	struct nvmep_mediator *mediator;

	lockdep_assert_held(&poller->lock);

	list_for_each_entry(mediator, &poller->mediators, poller_node) {
		seen = nvmep_mediator_pass(mediator);
		most = max(most, seen);
		if (seen == NVMEP_RELAY_SLOW) {
			list_move_tail(&mediator->poller_node,
				       &poller->mediators);
			break;
		}
	}
	return most;
}

/* A queue pair that is closed stays off the list until it is LIVE again. */
static enum nvmep_relay_seen nvmep_poller_pass(struct nvmep_poller *poller)
{
	enum nvmep_relay_seen seen, most;
	struct nvmep_qp *qp, *next;

	spin_lock(&poller->lock);
	most = nvmep_poller_pass_mediators(poller);
	list_for_each_entry_safe(qp, next, &poller->qps, relay.node) {
		seen = nvmep_relay_poll(qp);
		if (seen == NVMEP_RELAY_CLOSED)
			list_del_init(&qp->relay.node);
		most = max(most, seen);
	}
	spin_unlock(&poller->lock);
	return most;
}

static void nvmep_poller_report(struct nvmep_poller *poller, bool asleep)
{
	struct nvmep_mediator *mediator;
	struct nvmep_qp *qp;

	spin_lock(&poller->lock);
	poller->asleep = asleep;
	list_for_each_entry(mediator, &poller->mediators, poller_node)
		nvmep_mediator_report(mediator, asleep);
	list_for_each_entry(qp, &poller->qps, relay.node)
		nvmep_poller_store_asleep(qp, asleep);
	spin_unlock(&poller->lock);
	/* A store that the next pass does not see finds the report. */
	smp_mb();
}

/* Sleeps until it is kicked, or for @duration_ns at most if that is not 0. */
static void nvmep_poller_wait(struct nvmep_poller *poller, u64 duration_ns)
{
	ktime_t duration = ns_to_ktime(duration_ns);

	set_current_state(TASK_INTERRUPTIBLE);
	if (READ_ONCE(poller->kicked) || kthread_should_stop())
		__set_current_state(TASK_RUNNING);
	else if (duration_ns)
		schedule_hrtimeout_range(&duration, NVMEP_POLLER_SLACK_NS,
					 HRTIMER_MODE_REL);
	else
		schedule();
	/* Before the next pass: a kick from now on is for a later store. */
	smp_store_mb(poller->kicked, false);
}

static void nvmep_poller_count(struct nvmep_poller *poller,
			       enum nvmep_relay_seen seen, u64 began)
{
	WRITE_ONCE(poller->passes, poller->passes + 1);
	if (seen < NVMEP_RELAY_ACTIVE)
		return;
	poller->active_ns = began;
	WRITE_ONCE(poller->active, poller->active + 1);
	WRITE_ONCE(poller->busy_ns,
		   poller->busy_ns + ktime_get_ns() - began);
}

static void nvmep_poller_rest(struct nvmep_poller *poller,
			      enum nvmep_relay_seen seen, u64 idle_ns)
{
	bool cold = seen == NVMEP_RELAY_CLOSED ||
		    idle_ns > NVMEP_POLLER_WARM_NS;

	if (cold != poller->asleep)
		nvmep_poller_report(poller, cold);
	else if (cold)
		nvmep_poller_wait(poller, seen == NVMEP_RELAY_CLOSED ?
					  0 : NVMEP_POLLER_LONG_NS);
	else if (idle_ns > NVMEP_POLLER_SPIN_NS)
		nvmep_poller_wait(poller, NVMEP_POLLER_SHORT_NS);
}

static void nvmep_poller_check_binding(struct nvmep_poller *poller, u64 now)
{
	if (now - poller->checked_ns < NVMEP_POLLER_CHECK_NS)
		return;
	poller->checked_ns = now;
	nvmep_poller_bind_self(poller);
}

static int nvmep_poller_thread(void *context)
{
	struct nvmep_poller *poller = context;
	enum nvmep_relay_seen seen;
	u64 began;

	/* Here, because newer kernels bind a thread to its node as it starts. */
	nvmep_poller_check_binding(poller, ktime_get_ns());

	set_freezable();
	while (!kthread_freezable_should_stop(NULL)) {
		began = ktime_get_ns();
		seen = nvmep_poller_pass(poller);
		nvmep_poller_count(poller, seen, began);
		nvmep_poller_check_binding(poller, began);
		nvmep_poller_rest(poller, seen, began - poller->active_ns);
		/* It may spin for as long as a peer submits commands. */
		cond_resched_tasks_rcu_qs();
	}
	return 0;
}

/**
 * nvmep_poller_kick() - end or prevent the sleep of a thread
 * @poller: the thread
 */
void nvmep_poller_kick(struct nvmep_poller *poller)
{
	WRITE_ONCE(poller->kicked, true);
	wake_up_process(poller->task);
}

/**
 * nvmep_poller_readers() - the slow reads of a thread
 * @poller: the thread
 *
 * Return: what the mediators that it polls count there.
 */
struct nvmep_readers *nvmep_poller_readers(struct nvmep_poller *poller)
{
	return &poller->readers;
}

/* --- queue pairs --------------------------------------------------------- */

/**
 * nvmep_poller_add() - have the doorbells of a queue pair polled
 * @qp: the queue pair, after nvmep_relay_open(); the caller holds its lock
 */
void nvmep_poller_add(struct nvmep_qp *qp)
{
	struct nvmep_poller *poller = qp->relay.poller;

	lockdep_assert_held(&qp->lock);

	if (!poller)
		return;
	spin_lock(&poller->lock);
	if (qp->tenant) {
		nvmep_mediator_add(qp->tenant, poller->asleep);
	} else {
		if (list_empty(&qp->relay.node))
			list_add_tail(&qp->relay.node, &poller->qps);
		nvmep_poller_store_asleep(qp, poller->asleep);
	}
	spin_unlock(&poller->lock);
	nvmep_poller_kick(poller);
}

/**
 * nvmep_poller_add_mediator() - have the tenants of a mediator polled
 * @mediator: without tenants that are LIVE
 */
void nvmep_poller_add_mediator(struct nvmep_mediator *mediator)
{
	struct nvmep_poller *poller = mediator->poller;

	spin_lock(&poller->lock);
	list_add_tail(&mediator->poller_node, &poller->mediators);
	spin_unlock(&poller->lock);
}

/**
 * nvmep_poller_remove_mediator() - undo nvmep_poller_add_mediator()
 * @mediator: without tenants
 *
 * On return the thread does not access the mediator.
 */
void nvmep_poller_remove_mediator(struct nvmep_mediator *mediator)
{
	struct nvmep_poller *poller = mediator->poller;

	spin_lock(&poller->lock);
	list_del_init(&mediator->poller_node);
	spin_unlock(&poller->lock);
}

/**
 * nvmep_poller_remove() - end the polling of a queue pair
 * @qp: the queue pair; the caller holds its lock
 *
 * On return the thread does not access the queue pair.
 */
void nvmep_poller_remove(struct nvmep_qp *qp)
{
	struct nvmep_poller *poller = qp->relay.poller;

	lockdep_assert_held(&qp->lock);

	if (!poller)
		return;
	spin_lock(&poller->lock);
	if (qp->tenant)
		nvmep_mediator_remove(qp->tenant);
	else
		list_del_init(&qp->relay.node);
	spin_unlock(&poller->lock);
}

/* --- the pool ------------------------------------------------------------ */

/* The thread runs after wake_up_process(). */
static struct nvmep_poller *nvmep_poller_create(int node)
{
	struct nvmep_poller *poller = kzalloc_node(sizeof(*poller), GFP_KERNEL,
						   node);
	struct task_struct *task;

	if (!poller)
		return ERR_PTR(-ENOMEM);
	poller->node = node;
	spin_lock_init(&poller->lock);
	INIT_LIST_HEAD(&poller->qps);
	INIT_LIST_HEAD(&poller->mediators);
	nvmep_readers_init(&poller->readers);
	task = kthread_create_on_node(nvmep_poller_thread, poller, node,
				      "nvmep-poller/%d", node);
	if (IS_ERR(task)) {
		kfree(poller);
		/* -EAGAIN is a limit of processes here, no reason to retry. */
		return task == ERR_PTR(-EAGAIN) ? ERR_PTR(-ENOMEM) :
						  ERR_CAST(task);
	}
	poller->task = task;
	return poller;
}

static void nvmep_poller_end(struct nvmep_poller *poller)
{
	if (!poller)
		return;
	kthread_stop(poller->task);
	nvmep_readers_free(&poller->readers);
	kfree(poller);
}

static struct nvmep_poller *nvmep_pool_find(int node)
{
	struct nvmep_poller *poller;

	mutex_lock(&nvmep_pool_lock);
	poller = nvmep_pool[node];
	mutex_unlock(&nvmep_pool_lock);
	return poller;
}

/* Returns the thread of the node, which is not @poller if that lost a race. */
static struct nvmep_poller *nvmep_pool_install(struct nvmep_poller *poller)
{
	struct nvmep_poller **slot = &nvmep_pool[poller->node];
	struct nvmep_poller *winner;

	mutex_lock(&nvmep_pool_lock);
	if (!*slot)
		*slot = poller;
	winner = *slot;
	mutex_unlock(&nvmep_pool_lock);
	return winner;
}

/**
 * nvmep_poller_of_node() - the thread of a NUMA node, started if necessary
 * @node: the node, or %NUMA_NO_NODE
 *
 * Return: the thread; or an ERR_PTR: -ENOMEM, -EINTR after a fatal signal.
 */
struct nvmep_poller *nvmep_poller_of_node(int node)
{
	struct nvmep_poller *poller, *winner;

	if (node == NUMA_NO_NODE)
		node = first_online_node;
	poller = nvmep_pool_find(node);
	if (poller)
		return poller;
	poller = nvmep_poller_create(node);
	if (IS_ERR(poller))
		return poller;
	winner = nvmep_pool_install(poller);
	if (winner == poller)
		wake_up_process(poller->task);
	else
		nvmep_poller_end(poller);
	return winner;
}

static void nvmep_poller_show(struct nvmep_poller *poller, struct seq_file *seq)
{
	struct nvmep_mediator *mediator;
	unsigned int qps = 0;
	struct nvmep_qp *qp;

	spin_lock(&poller->lock);
	list_for_each_entry(qp, &poller->qps, relay.node)
		qps++;
	list_for_each_entry(mediator, &poller->mediators, poller_node)
		qps += nvmep_mediator_count(mediator);
	spin_unlock(&poller->lock);
	seq_printf(seq, "%d %u %llu %llu %llu\n", poller->node, qps,
		   READ_ONCE(poller->passes), READ_ONCE(poller->active),
		   READ_ONCE(poller->busy_ns));
}

/**
 * nvmep_pollers_show() - print a line for each thread
 * @seq: debugfs file
 */
void nvmep_pollers_show(struct seq_file *seq)
{
	int node;

	seq_puts(seq, "node queue_pairs passes active busy_ns\n");
	mutex_lock(&nvmep_pool_lock);
	for_each_node(node)
		if (nvmep_pool[node])
			nvmep_poller_show(nvmep_pool[node], seq);
	mutex_unlock(&nvmep_pool_lock);
}

/**
 * nvmep_pollers_init() - prepare the pool
 *
 * Return: 0 or a negative error code.
 */
int nvmep_pollers_init(void)
{
	int state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN,
					      "nvme-peer:online",
					      nvmep_pollers_cpu_online,
					      nvmep_pollers_cpu_offline);

	if (state < 0)
		return state;
	nvmep_poller_online = state;
	return 0;
}

static struct nvmep_poller *nvmep_pool_take(int node)
{
	struct nvmep_poller *poller;

	mutex_lock(&nvmep_pool_lock);
	poller = nvmep_pool[node];
	nvmep_pool[node] = NULL;
	mutex_unlock(&nvmep_pool_lock);
	return poller;
}

/**
 * nvmep_pollers_exit() - end all threads, before the module is unloaded
 *
 * The module's parameters can be written until it has returned.
 */
void nvmep_pollers_exit(void)
{
	int node;

	cpuhp_remove_state_nocalls(nvmep_poller_online);
	for_each_node(node)
		nvmep_poller_end(nvmep_pool_take(node));
}
