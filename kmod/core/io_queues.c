// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU's I/O queues: their number, their interrupt vectors, and their
 * creation at each start.
 *
 * The first start decides the number of vectors and the maximum number of
 * queues.  It allocates the queues that it creates, and a growth of the CPU's
 * part allocates more before its reset: a reset must not wait for memory.  An
 * allocated queue keeps its rings and its interrupt handler until unbind; only
 * a live queue has a queue ID.
 */
#include <linux/cpumask.h>
#include <linux/crash_dump.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "admin.h"
#include "ctrl.h"
#include "qids.h"
#include "queue.h"
#include "queue_pair.h"
#include "request.h"
#include "reset.h"

/* Queue pairs to request; controllers grant fewer. */
#define NVMEP_WANTED_QUEUES	1024U

/*
 * Limits of io_queue_depth.  The largest is that of the in-tree driver, whose
 * smallest is 2: one entry stays empty, and nvmep_queue_execute() needs one.
 */
#define NVMEP_MIN_ENTRIES	3
#define NVMEP_MAX_ENTRIES	4095

static int peer_queues = -1;
module_param(peer_queues, int, 0444);
MODULE_PARM_DESC(peer_queues,
		 "queue pairs for peers on each controller; -1: half of those granted");

/* A tag and the CID of nvmep_queue_execute() have to fit into a CID. */
static_assert(NVMEP_MAX_ENTRIES <= NVMEP_CID_TAG_MASK);

static int nvmep_io_queue_depth_set(const char *value,
				    const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, NVMEP_MIN_ENTRIES,
				     NVMEP_MAX_ENTRIES);
}

static const struct kernel_param_ops nvmep_io_queue_depth_ops = {
	.set = nvmep_io_queue_depth_set,
	.get = param_get_uint,
};

static unsigned int io_queue_depth = 1024;
module_param_cb(io_queue_depth, &nvmep_io_queue_depth_ops, &io_queue_depth,
		0644);
MODULE_PARM_DESC(io_queue_depth,
		 "entries of each I/O queue of the CPU, 3 to 4095, on each controller bound from now on");

static unsigned int poll_queues;
module_param(poll_queues, uint, 0644);
MODULE_PARM_DESC(poll_queues,
		 "polled I/O queues of the CPU, on each controller bound from now on");

/* Number of Queues can be set once per enable: request the maximum. */
static int nvmep_negotiate_queues(struct nvmep_ctrl *ctrl,
				  unsigned int *granted)
{
	u32 wanted = min(NVMEP_WANTED_QUEUES, ctrl->qids.capacity - 1) - 1;
	u32 result;
	int ret;

	ret = nvmep_set_feature(ctrl, NVME_FEAT_NUM_QUEUES,
				wanted << 16 | wanted, &result);
	if (ret) {
		dev_err(ctrl->dev, "Set Features, Number of Queues failed (%d)\n",
			ret);
		return ret < 0 ? ret : -EIO;
	}
	/*
	 * Both halves are 0-based.  A controller may grant more than was
	 * requested; queues beyond BAR0 have no doorbells.
	 */
	*granted = min3(result & 0xffff, result >> 16, wanted) + 1;
	return 0;
}

static unsigned int nvmep_peer_qids(const struct nvmep_ctrl *ctrl,
				    unsigned int granted)
{
	unsigned int cpu_qids = READ_ONCE(ctrl->cpu_qids);

	if (cpu_qids)
		return granted - min(cpu_qids, granted);
	if (peer_queues < 0)
		return granted / 2;
	/* One is always the CPU's. */
	return min_t(unsigned int, peer_queues, granted - 1);
}

/* The CPU gets what is not for peers, at least one. */
static unsigned int nvmep_cpu_qids(const struct nvmep_ctrl *ctrl,
				   unsigned int granted)
{
	return granted - nvmep_peer_qids(ctrl, granted);
}

/*
 * Number of queues with interrupts that may be live at once.  @usable: queue
 * IDs for the CPU, of which @share are its part at present.  Without polled
 * queues this is one for each CPU, even if the CPU's part of the queue IDs is
 * smaller now: it may grow later.  Polled queues are the last in ctrl->queues
 * and are dropped first when there are fewer queue IDs, so with them only the
 * present part counts.
 */
static unsigned int nvmep_max_irq_queues(unsigned int usable,
					 unsigned int share,
					 unsigned int polled)
{
	return min(polled ? share - polled : usable, num_possible_cpus());
}

/* Queue IDs that the CPU may use: an earlier binding may have left others. */
static unsigned int nvmep_usable_qids(struct nvmep_ctrl *ctrl,
				      unsigned int granted)
{
	unsigned int usable = nvmep_qids_for_cpu(ctrl);

	if (usable != granted)
		dev_warn(ctrl->dev,
			 "%u of %u queue IDs are quarantined, the CPU cannot use them until the controller is bound again (debugfs: nvme-peer/quarantine)\n",
			 granted - usable, granted);
	return usable;
}

/*
 * Not managed vectors: one of those is shut down when the CPUs that the PCI
 * core chose for it are offline, and the CPUs that a queue serves change with
 * the number of live queues.  The cpu layer sets the affinity.
 *
 * The price: a CPU that goes offline, also for suspend, moves its vectors to
 * other CPUs.  The kernel refuses to take it offline if those have no room; an
 * x86 CPU has about 200 vectors.  The scan after resume sets the affinity
 * again.
 */
static int nvmep_alloc_vectors(struct nvmep_ctrl *ctrl, unsigned int queues)
{
	int vectors;

	/* The single vector that probe has allocated. */
	nvmep_queue_free_irq(ctrl->admin);
	pci_free_irq_vectors(ctrl->pdev);
	vectors = pci_alloc_irq_vectors(ctrl->pdev, 1, queues + 1,
					PCI_IRQ_ALL_TYPES);
	if (vectors < 0)
		return vectors;
	ctrl->vectors = vectors;
	return nvmep_queue_request_irq(ctrl->admin, 0);
}

static int nvmep_cpu_queue_request_irq(struct nvmep_ctrl *ctrl,
				       struct nvmep_queue *queue)
{
	if (queue->polled)
		return 0;
	return nvmep_queue_request_irq(queue,
				       ctrl->vectors > 1 ? queue->number : 0);
}

/**
 * nvmep_cpu_queue_set_affinity() - choose the CPUs that an I/O queue interrupts
 * @ctrl: controller
 * @index: of a queue with an interrupt, which may not be allocated yet
 * @mask: CPUs, of which one or more were online
 *
 * No effect on a queue without a vector of its own.
 */
void nvmep_cpu_queue_set_affinity(struct nvmep_ctrl *ctrl, unsigned int index,
				  const struct cpumask *mask)
{
	if (ctrl->vectors > 1 &&
	    irq_set_affinity(pci_irq_vector(ctrl->pdev, index + 1), mask))
		dev_dbg(ctrl->dev, "I/O queue %u: affinity not set\n",
			index + 1);
}

/*
 * The queue is complete before it counts: a stop may be iterating over the
 * queues.
 */
static int nvmep_add_cpu_queue(struct nvmep_ctrl *ctrl, unsigned int index)
{
	struct nvmep_queue *queue;
	int ret;

	queue = nvmep_queue_alloc(ctrl, ctrl->io_entries,
				  nvmep_request_handle_cqe, index + 1);
	if (!queue)
		return -ENOMEM;
	queue->polled = index >= ctrl->max_cpu_queues - ctrl->polled_queues;
	ret = nvmep_cpu_queue_request_irq(ctrl, queue);
	if (ret) {
		nvmep_queue_free(queue);
		return ret;
	}
	ctrl->queues[index] = queue;
	/* Pairs with smp_load_acquire() in nvmep_ctrl_cpu_queues(). */
	smp_store_release(&ctrl->cpu_queues, index + 1);
	return 0;
}

/**
 * nvmep_ctrl_add_queues() - allocate queues that a later start may create
 * @ctrl: controller after its first start, or in it; callers are serialised
 * @count: queue IDs that the CPU is to have
 *
 * Queues that are allocated already are kept.  Memory allocation may wait for
 * I/O.
 *
 * Return: 0 or a negative error code; queues may have been allocated.
 */
int nvmep_ctrl_add_queues(struct nvmep_ctrl *ctrl, unsigned int count)
{
	unsigned int i, wanted = min(count, ctrl->max_cpu_queues);
	int ret = 0;

	if (ctrl->cpu_queues < wanted)
		ctrl->cpu_ops->aim(ctrl, ctrl->cpu_queues,
				   min(wanted, ctrl->max_cpu_queues -
					       ctrl->polled_queues));
	for (i = ctrl->cpu_queues; i < wanted && !ret; i++)
		ret = nvmep_add_cpu_queue(ctrl, i);
	return ret;
}

static void nvmep_release_qid(struct nvmep_ctrl *ctrl,
			      struct nvmep_queue *queue)
{
	if (queue->qid)
		nvmep_qid_free(ctrl, queue->qid, false);
	queue->qid = 0;
}

/**
 * nvmep_ctrl_free_queues() - free the CPU's I/O queues
 * @ctrl: stopped controller without requests in flight
 */
void nvmep_ctrl_free_queues(struct nvmep_ctrl *ctrl)
{
	unsigned int count = ctrl->cpu_queues;

	ctrl->cpu_queues = 0;
	ctrl->max_cpu_queues = 0;
	while (count--) {
		nvmep_queue_free_irq(ctrl->queues[count]);
		nvmep_release_qid(ctrl, ctrl->queues[count]);
		nvmep_queue_free(ctrl->queues[count]);
	}
	kfree(ctrl->queues);
	ctrl->queues = NULL;
}

/*
 * Called by the first start, which decides the number of vectors and the
 * maximum number of queues until unbind.
 */
static int nvmep_plan_queues(struct nvmep_ctrl *ctrl, unsigned int granted)
{
	unsigned int usable = nvmep_usable_qids(ctrl, granted);
	unsigned int share = min(nvmep_cpu_qids(ctrl, granted), usable);
	unsigned int count, polled;
	int ret;

	/*
	 * At least one queue has an interrupt, for requests that are not
	 * polled.  @share is not 0: queue ID 1 is never a peer's, as the CPU
	 * takes the lowest one before peers can take any.  In a kdump kernel
	 * the block layer has no map of polled queues, and would wait for their
	 * interrupts.
	 */
	polled = is_kdump_kernel() ? 0 : min(READ_ONCE(poll_queues), share - 1);
	ctrl->io_entries = min(ctrl->max_entries, READ_ONCE(io_queue_depth));
	count = nvmep_max_irq_queues(usable, share, polled);
	ret = nvmep_alloc_vectors(ctrl, count);
	if (ret) {
		dev_err(ctrl->dev, "allocation of %u interrupt vectors failed (%d)\n",
			count + 1, ret);
		return ret;
	}
	/*
	 * If there is one vector only, the admin queue and one I/O queue share
	 * it.
	 */
	count = min(count, max(ctrl->vectors - 1, 1U));
	ctrl->queues = kcalloc(count + polled, sizeof(*ctrl->queues),
			       GFP_KERNEL);
	if (!ctrl->queues)
		return -ENOMEM;
	ctrl->polled_queues = polled;
	ctrl->max_cpu_queues = count + polled;
	ret = nvmep_ctrl_add_queues(ctrl, nvmep_cpu_qids(ctrl, granted));
	if (ret && ctrl->cpu_queues)
		dev_warn(ctrl->dev,
			 "allocation of I/O queue %u failed (%d)\n",
			 ctrl->cpu_queues + 1, ret);
	return ctrl->cpu_queues ? 0 : ret;
}

static int nvmep_acquire_qid(struct nvmep_ctrl *ctrl,
			     struct nvmep_queue *queue)
{
	int qid;

	if (queue->qid)
		return 0;
	qid = nvmep_qid_alloc(ctrl, NVMEP_QID_CPU);
	if (qid < 0)
		return qid;
	queue->qid = qid;
	return 0;
}

/* Queues from @first on are not on the controller in this generation. */
static void nvmep_retire_cpu_queues(struct nvmep_ctrl *ctrl, unsigned int first)
{
	unsigned int i;

	for (i = first; i < nvmep_ctrl_cpu_queues(ctrl); i++)
		nvmep_release_qid(ctrl, ctrl->queues[i]);
}

static int nvmep_create_cpu_queue(struct nvmep_ctrl *ctrl,
				  struct nvmep_queue *queue, u32 generation)
{
	struct nvmep_queue_pair_params params = {
		.qid = queue->qid,
		.sq_entries = queue->entries,
		.cq_entries = queue->entries,
		.sq_dma = queue->sq_dma,
		.cq_dma = queue->cq_dma,
		.sq_contiguous = true,
		.cq_contiguous = true,
		.vector = queue->vector,
	};
	int ret;

	nvmep_queue_reset(queue);
	ret = nvmep_queue_pair_create_bound(ctrl, &params, generation);
	if (ret)
		return ret;
	/* A stop disables the queues under this lock: not before the enabling. */
	mutex_lock(&ctrl->enable_lock);
	if (ctrl->generation == generation)
		nvmep_queue_enable(queue);
	else
		ret = -EINTR;
	mutex_unlock(&ctrl->enable_lock);
	return ret;
}

/* A queue ID that is not granted any more is refused by the controller. */
static void nvmep_release_ungranted(struct nvmep_ctrl *ctrl)
{
	unsigned int i;

	for (i = 0; i < nvmep_ctrl_cpu_queues(ctrl); i++)
		if (!nvmep_qid_granted(ctrl, ctrl->queues[i]->qid))
			nvmep_release_qid(ctrl, ctrl->queues[i]);
}

/*
 * Creates up to @count queues and goes on with those that it gets: the
 * controller may refuse to create one, and queue IDs may be in quarantine.  The
 * first queues are created, so polled queues, which are last, are dropped
 * first.  Returns their number, or a negative error code: no queue, or the
 * controller was stopped.
 */
static int nvmep_create_cpu_queues(struct nvmep_ctrl *ctrl, unsigned int count,
				   u32 generation)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < count; i++) {
		ret = nvmep_acquire_qid(ctrl, ctrl->queues[i]);
		if (!ret)
			ret = nvmep_create_cpu_queue(ctrl, ctrl->queues[i],
						     generation);
		if (ret)
			break;
	}
	if (nvmep_ctrl_generation(ctrl) != generation)
		return -EINTR;
	if (!i)
		return ret;
	if (ret)
		dev_warn(ctrl->dev,
			 "creation of I/O queue %u failed (%d), the CPU uses %u of %u queues\n",
			 i + 1, ret, i, count);
	return i;
}

/**
 * nvmep_start_queues() - negotiate the number of queues and create the CPU's
 * @ctrl: identified controller in a start
 * @generation: generation of this start
 *
 * Their number may differ from that of the previous start: the controller may
 * grant fewer or more queue pairs after a reset, it may refuse to create one,
 * and the administrator may have changed the CPU's part.  Only the first start
 * allocates queues.
 *
 * Return: 0 or a negative error code; -EINTR if the controller was stopped.
 */
int nvmep_start_queues(struct nvmep_ctrl *ctrl, u32 generation)
{
	unsigned int granted, before = ctrl->cpu_queues_live;
	int ret;

	ret = nvmep_negotiate_queues(ctrl, &granted);
	if (ret)
		return ret;
	nvmep_qids_grant(ctrl, granted, nvmep_peer_qids(ctrl, granted));
	if (!ctrl->queues)
		ret = nvmep_plan_queues(ctrl, granted);
	if (ret)
		return ret;
	nvmep_retire_cpu_queues(ctrl, nvmep_cpu_qids(ctrl, granted));
	nvmep_release_ungranted(ctrl);
	ret = nvmep_create_cpu_queues(ctrl,
				      min(nvmep_ctrl_cpu_queues(ctrl),
					  nvmep_cpu_qids(ctrl, granted)),
				      generation);
	if (ret < 0)
		return ret;
	nvmep_retire_cpu_queues(ctrl, ret);
	if (before && before != ret)
		dev_warn(ctrl->dev,
			 "controller grants %u queue pairs, the CPU uses %u now\n",
			 granted, ret);
	WRITE_ONCE(ctrl->cpu_queues_live, ret);
	return 0;
}
