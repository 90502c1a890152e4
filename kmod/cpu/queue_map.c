// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which CPUs each I/O queue of the CPU serves and interrupts, and the change of
 * their number.
 *
 * CPUs of a node, and of a core, are neighbours, so a queue serves CPUs that
 * are near each other, whatever the number of queues.
 */
#include <linux/blk-mq.h>
#include <linux/cpumask.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/reset.h"
#include "cpu.h"
#include "namespace.h"
#include "queue_map.h"
#include "scan.h"

/* How long a change of the queues waits for I/O in flight, in jiffies. */
#define NVMEP_FREEZE_TIMEOUT	(5 * HZ)

/* --- map ------------------------------------------------------------------ */

/*
 * CPUs of @cpus that have no queue yet are placed in turn.
 *
 * @done: CPUs that have a queue
 * @count: number of CPUs to place
 * @placed: of these
 */
struct nvmep_placement {
	struct blk_mq_queue_map *map;
	const struct cpumask *cpus;
	struct cpumask *done;
	unsigned int count;
	unsigned int placed;
};

static bool nvmep_unplaced(const struct nvmep_placement *placement,
			   unsigned int cpu)
{
	return cpumask_test_cpu(cpu, placement->cpus) &&
	       !cpumask_test_cpu(cpu, placement->done);
}

static void nvmep_place_cpu(struct nvmep_placement *placement, unsigned int cpu)
{
	struct blk_mq_queue_map *map = placement->map;
	unsigned int queue;

	if (!nvmep_unplaced(placement, cpu))
		return;
	queue = placement->placed++ * map->nr_queues / placement->count;
	/* More CPUs if one was added meanwhile. */
	map->mq_map[cpu] = map->queue_offset + min(queue, map->nr_queues - 1);
	cpumask_set_cpu(cpu, placement->done);
}

/* A CPU that was never online may not be among its siblings. */
static void nvmep_place_core(struct nvmep_placement *placement,
			     unsigned int cpu)
{
	unsigned int sibling;

	nvmep_place_cpu(placement, cpu);
	for_each_cpu(sibling, topology_sibling_cpumask(cpu))
		if (cpu_to_node(sibling) == cpu_to_node(cpu))
			nvmep_place_cpu(placement, sibling);
}

/* In the order of nodes and cores, cut into as many runs as queues. */
static void nvmep_place_cpus(struct blk_mq_queue_map *map,
			     const struct cpumask *cpus, struct cpumask *done)
{
	struct nvmep_placement placement = {
		.map = map,
		.cpus = cpus,
		.done = done,
	};
	unsigned int cpu;
	int node;

	for_each_possible_cpu(cpu)
		placement.count += nvmep_unplaced(&placement, cpu);
	if (!placement.count)
		return;
	for_each_node(node)
		for_each_possible_cpu(cpu)
			if (cpu_to_node(cpu) == node)
				nvmep_place_core(&placement, cpu);
	/* Those without a node. */
	for_each_possible_cpu(cpu)
		nvmep_place_cpu(&placement, cpu);
}

/*
 * Present CPUs are spread over all queues, and so are those that may be added
 * later.  A CPU that goes offline reads the map meanwhile: all that is in it at
 * any time is the index of a queue.
 */
static void nvmep_map_cpus(struct blk_mq_queue_map *map, struct cpumask *done)
{
	unsigned int cpu;

	cpumask_clear(done);
	for_each_possible_cpu(cpu)
		map->mq_map[cpu] = map->queue_offset;
	nvmep_place_cpus(map, cpu_present_mask, done);
	nvmep_place_cpus(map, cpu_possible_mask, done);
}

/* The last queues are polled queues, without an interrupt vector. */
static unsigned int nvmep_map_polled(const struct nvmep_ctrl *ctrl,
				     struct blk_mq_tag_set *tags)
{
	unsigned int others = ctrl->max_cpu_queues - ctrl->polled_queues;
	struct blk_mq_queue_map *map = &tags->map[HCTX_TYPE_POLL];
	unsigned int polled;

	if (!ctrl->polled_queues)
		return 0;
	/* If the controller grants fewer queues, polled queues go first. */
	polled = tags->nr_hw_queues - min(tags->nr_hw_queues, others);
	tags->map[HCTX_TYPE_READ].nr_queues = 0;
	map->nr_queues = polled;
	map->queue_offset = tags->nr_hw_queues - polled;
	if (polled)
		nvmep_map_cpus(map, ctrl->cpu->placed);
	return polled;
}

/* &blk_mq_ops.map_queues */
void nvmep_map_queues(struct blk_mq_tag_set *tags)
{
	struct blk_mq_queue_map *map = &tags->map[HCTX_TYPE_DEFAULT];
	struct nvmep_ctrl *ctrl = tags->driver_data;

	map->nr_queues = tags->nr_hw_queues - nvmep_map_polled(ctrl, tags);
	nvmep_map_cpus(map, ctrl->cpu->placed);
}

/**
 * nvmep_queues_live_cpu() - find a CPU whose I/O goes to a live queue
 * @ctrl: controller, perhaps with fewer live queues than the tag set has
 *
 * Return: a CPU that is online, or -1.
 */
int nvmep_queues_live_cpu(struct nvmep_ctrl *ctrl)
{
	const struct blk_mq_queue_map *map =
		&ctrl->io_tags.map[HCTX_TYPE_DEFAULT];
	unsigned int cpu, live = READ_ONCE(ctrl->cpu_queues_live);

	for_each_online_cpu(cpu)
		if (READ_ONCE(map->mq_map[cpu]) < live)
			return cpu;
	return -1;
}

/* --- affinity ------------------------------------------------------------- */

/*
 * The CPUs that @index interrupts: those that it serves, without isolated ones
 * (isolcpus=managed_irq) unless it serves no other.  False if none is online.
 */
static bool nvmep_affinity(const struct blk_mq_queue_map *map,
			   unsigned int index, struct cpumask *mask)
{
	bool isolated = true, online = false;
	const struct cpumask *near;
	unsigned int cpu;

	cpumask_clear(mask);
	rcu_read_lock();
	near = housekeeping_cpumask(HK_TYPE_MANAGED_IRQ);
	for_each_possible_cpu(cpu) {
		if (map->mq_map[cpu] != index)
			continue;
		cpumask_set_cpu(cpu, mask);
		online |= cpu_online(cpu);
		if (cpu_online(cpu) && cpumask_test_cpu(cpu, near))
			isolated = false;
	}
	if (!isolated)
		cpumask_and(mask, mask, near);
	rcu_read_unlock();
	return online;
}

/* Of queues @first to @count - 1; @mask is overwritten. */
static void nvmep_map_affinity(struct nvmep_ctrl *ctrl,
			       const struct blk_mq_queue_map *map,
			       unsigned int first, unsigned int count,
			       struct cpumask *mask)
{
	unsigned int i;

	for (i = first; i < count; i++)
		if (nvmep_affinity(map, i, mask))
			nvmep_cpu_queue_set_affinity(ctrl, i, mask);
}

/*
 * &nvmep_cpu_ops.aim.  An x86 CPU without interrupt remapping moves a vector
 * that is in use only when it handles its next interrupt, so without this the
 * first interrupt of each queue comes to some CPU.
 */
void nvmep_queues_aim(struct nvmep_ctrl *ctrl, unsigned int first,
		      unsigned int count)
{
	struct blk_mq_queue_map map = { .nr_queues = count };
	cpumask_var_t mask;

	if (!alloc_cpumask_var(&mask, GFP_KERNEL))
		return;
	map.mq_map = kcalloc(nr_cpu_ids, sizeof(*map.mq_map), GFP_KERNEL);
	if (map.mq_map) {
		nvmep_map_cpus(&map, mask);
		nvmep_map_affinity(ctrl, &map, first, count, mask);
	}
	kfree(map.mq_map);
	free_cpumask_var(mask);
}

/**
 * nvmep_queues_set_affinity() - let each queue interrupt CPUs that it serves
 * @ctrl: controller whose tag set was mapped
 *
 * For performance only: a vector interrupts some CPU that is online in any
 * case, as the kernel moves it away from a CPU that goes offline.
 */
void nvmep_queues_set_affinity(struct nvmep_ctrl *ctrl)
{
	const struct blk_mq_queue_map *map =
		&ctrl->io_tags.map[HCTX_TYPE_DEFAULT];
	unsigned int count = min(map->nr_queues,
				 READ_ONCE(ctrl->cpu_queues_live));
	cpumask_var_t mask;

	if (!alloc_cpumask_var(&mask, GFP_KERNEL))
		return;
	nvmep_map_affinity(ctrl, map, 0, count, mask);
	free_cpumask_var(mask);
}

/* --- change --------------------------------------------------------------- */

/*
 * The tag set is updated in state LIVE, while I/O flows to the queues that
 * remain: the CPU's part shrinks by an update and then a reset, and grows by a
 * reset and then an update.
 *
 * The driver must not keep request queues frozen for the update.  It takes
 * locks of the block layer whose holders may wait for memory, and so for I/O.
 * The block layer freezes the request queues when it has those locks.
 */

static bool nvmep_queue_drained(struct nvmep_ctrl *ctrl,
				struct request_queue *queue,
				unsigned long deadline)
{
	while (!nvmep_freeze_wait_slice(ctrl, queue))
		if (time_after(jiffies, deadline) ||
		    nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING)
			return false;
	return true;
}

static void nvmep_queues_unfreeze(struct nvmep_ctrl *ctrl)
{
	struct nvmep_ns *ns;

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry)
		nvmep_unfreeze_queue_non_owner(ns->queue);
}

/*
 * Returns false, and nothing is frozen, if I/O in flight did not end in time,
 * or the controller is being removed.
 */
static bool nvmep_queues_freeze(struct nvmep_ctrl *ctrl)
{
	unsigned long deadline = jiffies + NVMEP_FREEZE_TIMEOUT;
	struct nvmep_ns *ns;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry) {
		nvmep_freeze_queue_start_non_owner(ns->queue);
		/* Ends the delay of a retry, at the cost of one of them. */
		blk_mq_kick_requeue_list(ns->queue);
	}
	list_for_each_entry(ns, &ctrl->cpu->namespaces, entry) {
		if (nvmep_queue_drained(ctrl, ns->queue, deadline))
			continue;
		nvmep_queues_unfreeze(ctrl);
		return false;
	}
	return true;
}

/*
 * Does I/O in flight end soon?  The update of the tag set waits for it without
 * a time limit, and new I/O of all disks waits for the update.  A command that
 * is sent between the drain and the update delays it until it has completed or
 * timed out, which stops the controller and cancels it.
 */
static bool nvmep_queues_drain(struct nvmep_ctrl *ctrl)
{
	bool drained = nvmep_queues_freeze(ctrl);

	if (drained)
		nvmep_queues_unfreeze(ctrl);
	return drained;
}

/*
 * Not under a lock that a stop or a start of the controller takes: it waits for
 * commands that these end.
 *
 * Returns false if the block layer could not set @count queues.
 */
static bool nvmep_queues_resize(struct nvmep_ctrl *ctrl, unsigned int count)
{
	nvmep_poll_work_start(ctrl);
	blk_mq_update_nr_hw_queues(&ctrl->io_tags, count);
	nvmep_poll_work_stop(ctrl);
	nvmep_queues_set_affinity(ctrl);
	return ctrl->io_tags.nr_hw_queues == count;
}

/**
 * nvmep_queues_update() - adapt the tag set to the live queues
 * @ctrl: LIVE controller; scan_lock is held
 *
 * For a number that a reset has changed on its own.  Requests for a queue that
 * is gone enter the requeue list meanwhile.  The caller allocates without I/O:
 * reclaim must not issue any to a frozen queue.
 *
 * Return: false if I/O in flight does not end, a namespace is being removed, or
 * the block layer lacks memory; try again.
 */
bool nvmep_queues_update(struct nvmep_ctrl *ctrl)
{
	lockdep_assert_held(&ctrl->cpu->scan_lock);

	if (ctrl->io_tags.nr_hw_queues == READ_ONCE(ctrl->cpu_queues_live)) {
		/* CPUs were offline, or the system was asleep. */
		nvmep_queues_set_affinity(ctrl);
		return true;
	}
	/* Some kernels may not update the queues of a disk that is deleted. */
	return !ctrl->cpu->removals && nvmep_queues_drain(ctrl) &&
	       nvmep_queues_resize(ctrl, READ_ONCE(ctrl->cpu_queues_live));
}

/* Why can the number not be changed now? */
static int nvmep_queues_busy(struct nvmep_ctrl *ctrl, unsigned int count)
{
	if (nvmep_ctrl_state(ctrl) >= NVMEP_CTRL_DELETING)
		return -ENODEV;
	if (ctrl->cpu->removals)
		dev_warn(ctrl->dev,
			 "cpu_queues: %u refused, a namespace is being removed\n",
			 count);
	else
		dev_warn(ctrl->dev,
			 "cpu_queues: %u refused, I/O in flight has not ended after %u s\n",
			 count, NVMEP_FREEZE_TIMEOUT / HZ);
	return -EBUSY;
}

/* From here on no request is sent to queues that the reset takes away. */
static int nvmep_queues_shrink(struct nvmep_ctrl *ctrl, unsigned int count)
{
	if (count >= ctrl->io_tags.nr_hw_queues)
		return 0;
	if (!nvmep_queues_drain(ctrl))
		return nvmep_queues_busy(ctrl, count);
	return nvmep_queues_resize(ctrl, count) ? 0 : -ENOMEM;
}

/* Resets the controller while no I/O is in flight and none can start. */
static int nvmep_queues_reset(struct nvmep_ctrl *ctrl, unsigned int count)
{
	int ret;

	if (!nvmep_queues_freeze(ctrl))
		return nvmep_queues_busy(ctrl, count);
	ret = nvmep_ctrl_set_queue_split(ctrl, count);
	nvmep_queues_unfreeze(ctrl);
	return ret;
}

static int nvmep_queues_split_locked(struct nvmep_ctrl *ctrl,
				     unsigned int count)
{
	int ret;

	lockdep_assert_held(&ctrl->cpu->scan_lock);

	if (ctrl->cpu->removals)
		return nvmep_queues_busy(ctrl, count);
	ret = nvmep_queues_shrink(ctrl, count);
	if (ret)
		return ret;
	ret = nvmep_queues_reset(ctrl, count);
	/*
	 * Also after an error: a tag set that was shrunk for a reset that was
	 * refused grows again.  Until then the CPU uses fewer queues than it
	 * has.  Without this update, or if it fails, a scan tries again.
	 */
	if (nvmep_ctrl_state(ctrl) == NVMEP_CTRL_LIVE &&
	    !nvmep_queues_update(ctrl))
		nvmep_scan(ctrl);
	return ret;
}

/**
 * nvmep_queues_split() - set the number of queue IDs of the CPU
 * @ctrl: controller; effects_lock is held, and no peer has a queue pair
 * @count: 1 or more
 *
 * Waits for a scan, for I/O in flight and for the reset.
 *
 * Return: 0; -EBUSY if I/O in flight does not end within 5 seconds or a
 * namespace is being removed, or -ENOMEM, and the number is the old one; -EINTR
 * for a fatal signal; else as nvmep_ctrl_set_queue_split().
 */
int nvmep_queues_split(struct nvmep_ctrl *ctrl, unsigned int count)
{
	unsigned int memflags;
	int ret;

	lockdep_assert_held(&ctrl->cpu->effects_lock);

	/* Before I/O is frozen: this allocates memory. */
	ret = nvmep_ctrl_add_queues(ctrl, count);
	if (ret) {
		dev_warn(ctrl->dev,
			 "cpu_queues: %u refused, allocation of a queue failed (%d): memory or interrupt vectors are short\n",
			 count, ret);
		return -ENOMEM;
	}
	if (mutex_lock_killable(&ctrl->cpu->scan_lock))
		return -EINTR;
	/* Reclaim must not issue I/O to a frozen queue: it would deadlock. */
	memflags = memalloc_noio_save();
	ret = nvmep_queues_split_locked(ctrl, count);
	memalloc_noio_restore(memflags);
	mutex_unlock(&ctrl->cpu->scan_lock);
	return ret;
}
