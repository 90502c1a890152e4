// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a stopped controller to one that does I/O: enable, identify, negotiate the
 * number of queues, create the CPU's.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "admin.h"
#include "ctrl.h"
#include "data.h"
#include "host.h"
#include "pair.h"
#include "qids.h"
#include "queue.h"
#include "quirks.h"
#include "registers.h"
#include "request.h"
#include "start.h"
#include "stop.h"

/* Queue pairs that are asked for; controllers grant less. */
#define NVMEP_WANTED_QUEUES	1024U
#define NVMEP_IO_ENTRIES	1024U

/* Most that one Write Zeroes command names, in bytes of the smallest blocks. */
#define NVMEP_MAX_ZEROES	(NVME_RW_MAX_BLOCKS * SECTOR_SIZE)

static int peer_queues = -1;
module_param(peer_queues, int, 0444);
MODULE_PARM_DESC(peer_queues,
		 "queue pairs that peers may have on one controller, -1 for half of what it grants");

static unsigned int poll_queues;
module_param(poll_queues, uint, 0644);
MODULE_PARM_DESC(poll_queues,
		 "queues of the CPU that are polled, on each controller bound from now on");

/* --- what it can do ------------------------------------------------------ */

/* MDTS in bytes, or our own limit. */
static u32 nvmep_max_transfer(struct nvmep_ctrl *ctrl)
{
	unsigned int shift = ctrl->id->mdts + 12 + NVME_CAP_MPSMIN(ctrl->cap);

	if (!ctrl->id->mdts || shift >= 32)
		return nvmep_transfer_limit(ctrl);
	return min_t(u32, nvmep_transfer_limit(ctrl), 1U << shift);
}

/* What the controller says of commands without data transfer, 0 for nothing. */
static void nvmep_take_limits(struct nvmep_ctrl *ctrl,
			      const struct nvme_id_ctrl_nvm *id)
{
	unsigned int shift = id->wzsl + 12 + NVME_CAP_MPSMIN(ctrl->cap);
	u32 range = le32_to_cpu(id->dmrsl);
	u64 command = le64_to_cpu(id->dmsl);

	if (id->wzsl && ctrl->max_write_zeroes)
		ctrl->max_write_zeroes = shift < ilog2(NVMEP_MAX_ZEROES) ?
					 1U << shift : NVMEP_MAX_ZEROES;
	/* Beyond these the controller does nothing and reports success. */
	if (range)
		ctrl->max_discard = min(ctrl->max_discard, range);
	if (command)
		ctrl->max_discard = min_t(u64, ctrl->max_discard, command);
	if (id->dmrl)
		ctrl->max_discard_ranges = id->dmrl;
}

/* Limits of commands without data transfer; NVM command set 4.1.5.3. */
static int nvmep_identify_limits(struct nvmep_ctrl *ctrl)
{
	u16 oncs = le16_to_cpu(ctrl->id->oncs);
	struct nvme_id_ctrl_nvm *id;
	int ret;

	ctrl->max_write_zeroes = 0;
	if (oncs & NVME_CTRL_ONCS_WRITE_ZEROES &&
	    !(ctrl->quirks & NVMEP_QUIRK_NO_WRITE_ZEROES))
		ctrl->max_write_zeroes = ctrl->max_transfer;
	ctrl->max_discard = 0;
	if (oncs & NVME_CTRL_ONCS_DSM)
		ctrl->max_discard = U32_MAX;
	ctrl->max_discard_ranges = NVME_DSM_MAX_RANGES;
	if (ctrl->vs < NVME_VERSION(2, 0))
		return 0;

	id = kzalloc(sizeof(*id), GFP_KERNEL);
	if (!id)
		return -ENOMEM;
	ret = nvmep_identify(ctrl, NVME_IDENTIFY_CS_CTRL, 0, id);
	if (!ret)
		nvmep_take_limits(ctrl, id);
	kfree(id);
	/* A refusal is an answer: no such limits. */
	return ret > 0 ? 0 : ret;
}

/* Once: firmware that changes it wants to be bound anew. */
static int nvmep_read_effects(struct nvmep_ctrl *ctrl)
{
	struct nvme_effects_log *log;
	int ret;

	if (ctrl->effects || !(ctrl->id->lpa & NVME_CTRL_LPA_EFFECTS))
		return 0;
	log = kzalloc(sizeof(*log), GFP_KERNEL);
	if (!log)
		return -ENOMEM;
	ret = nvmep_get_log(ctrl, NVME_LOG_EFFECTS, log, sizeof(*log));
	if (ret) {
		/* Without it, unprivileged passthrough is refused. */
		kfree(log);
		return min(ret, 0);
	}
	WRITE_ONCE(ctrl->effects, log);
	return 0;
}

static int nvmep_identify_ctrl(struct nvmep_ctrl *ctrl)
{
	struct nvme_id_ctrl *id = kzalloc(sizeof(*id), GFP_KERNEL);
	int ret;

	if (!id)
		return -ENOMEM;
	ret = nvmep_identify(ctrl, NVME_IDENTIFY_CTRL, 0, id);
	if (!ret)
		memcpy(ctrl->id, id, sizeof(*id));
	else
		dev_err(ctrl->dev, "Identify Controller failed: %d\n", ret);
	kfree(id);
	return ret > 0 ? -EIO : ret;
}

static int nvmep_ctrl_identify(struct nvmep_ctrl *ctrl)
{
	int ret;

	ret = nvmep_identify_ctrl(ctrl);
	if (ret)
		return ret;
	atomic_set(&ctrl->aborts, ctrl->id->acl + 1);
	ctrl->sgls = le32_to_cpu(ctrl->id->sgls);
	ctrl->max_transfer = nvmep_max_transfer(ctrl);
	ret = nvmep_identify_limits(ctrl);
	if (!ret)
		ret = nvmep_read_effects(ctrl);
	return ret;
}

/* --- queues -------------------------------------------------------------- */

/* Asks once per start for all the queue pairs we might ever use. */
static int nvmep_negotiate_queues(struct nvmep_ctrl *ctrl,
				  unsigned int *granted)
{
	u32 wanted = min(NVMEP_WANTED_QUEUES, ctrl->qids.capacity - 1) - 1;
	u32 result;
	int ret;

	ret = nvmep_set_feature(ctrl, NVME_FEATURE_NUM_QUEUES,
				wanted << 16 | wanted, &result);
	if (ret) {
		dev_err(ctrl->dev, "number of queues not granted: %d\n", ret);
		return ret < 0 ? ret : -EIO;
	}
	/* Both halves count from 0. */
	*granted = min(result & 0xffff, result >> 16) + 1;
	return 0;
}

static unsigned int nvmep_peer_share(const struct nvmep_ctrl *ctrl,
				     unsigned int granted)
{
	unsigned int cpu_share = READ_ONCE(ctrl->cpu_share);

	if (cpu_share)
		return granted - min(cpu_share, granted);
	if (peer_queues < 0)
		return granted / 2;
	/* The CPU keeps one in any case. */
	return min_t(unsigned int, peer_queues, granted - 1);
}

/* Of what is granted, the CPU gets what is not for peers; one at least. */
static unsigned int nvmep_cpu_share(const struct nvmep_ctrl *ctrl,
				    unsigned int granted)
{
	return granted - nvmep_peer_share(ctrl, granted);
}

/*
 * Most that interrupt.  The share may grow, so there is one for each processor, if the
 * controller grants as many; but polled ones are the last, and what is last goes first
 * where the share is smaller.
 */
static unsigned int nvmep_most_interrupting(const struct nvmep_ctrl *ctrl,
					    unsigned int granted,
					    unsigned int polled)
{
	unsigned int most = polled ? nvmep_cpu_share(ctrl, granted) - polled :
				     granted;

	return min(most, num_possible_cpus());
}

static int nvmep_alloc_vectors(struct nvmep_ctrl *ctrl, unsigned int queues)
{
	struct irq_affinity affinity = { .pre_vectors = 1 };
	int vectors;

	/* The one that probe began with. */
	nvmep_queue_free_irq(ctrl->admin);
	pci_free_irq_vectors(ctrl->pdev);
	vectors = pci_alloc_irq_vectors_affinity(ctrl->pdev, 1, queues + 1,
						 PCI_IRQ_ALL_TYPES |
						 PCI_IRQ_AFFINITY, &affinity);
	if (vectors < 0)
		return vectors;
	ctrl->vectors = vectors;
	return nvmep_queue_request_irq(ctrl->admin, 0);
}

static int nvmep_announce(struct nvmep_queue *queue, unsigned int vector,
			  bool polled)
{
	if (!polled)
		return nvmep_queue_request_irq(queue, vector);
	queue->polled = true;
	queue->vector = -1;
	return 0;
}

static int nvmep_add_cpu_queue(struct nvmep_ctrl *ctrl, unsigned int index,
			       bool polled)
{
	unsigned int vector = ctrl->vectors > 1 ? index + 1 : 0;
	u16 entries = min(ctrl->max_entries, NVMEP_IO_ENTRIES);
	struct nvmep_queue *queue;
	int qid, ret;

	qid = nvmep_qid_alloc(ctrl, NVMEP_QID_CPU);
	if (qid < 0)
		return qid;
	queue = nvmep_queue_alloc(ctrl, qid, entries, nvmep_request_entry,
				  &ctrl->io_tags, index);
	ret = queue ? nvmep_announce(queue, vector, polled) : -ENOMEM;
	if (ret) {
		nvmep_queue_free(queue);
		nvmep_qid_free(ctrl, qid);
		return ret;
	}
	ctrl->queues[index] = queue;
	return 0;
}

static void nvmep_release_qid(struct nvmep_ctrl *ctrl, struct nvmep_queue *queue)
{
	if (queue->qid)
		nvmep_qid_free(ctrl, queue->qid);
	queue->qid = 0;
}

/**
 * nvmep_ctrl_free_queues() - free the CPU's I/O queues
 * @ctrl: stopped controller without requests
 */
void nvmep_ctrl_free_queues(struct nvmep_ctrl *ctrl)
{
	unsigned int count = ctrl->cpu_queues;

	ctrl->cpu_queues = 0;
	while (count--) {
		nvmep_queue_free_irq(ctrl->queues[count]);
		nvmep_release_qid(ctrl, ctrl->queues[count]);
		nvmep_queue_free(ctrl->queues[count]);
	}
	kfree(ctrl->queues);
	ctrl->queues = NULL;
}

/* The first start: decides how many queues the CPU gets at most, for good. */
static int nvmep_alloc_queues(struct nvmep_ctrl *ctrl, unsigned int granted)
{
	unsigned int count, polled, i;
	int ret;

	/* One that interrupts is there in any case, for all that does not poll. */
	polled = min(READ_ONCE(poll_queues),
		     nvmep_cpu_share(ctrl, granted) - 1);
	count = nvmep_most_interrupting(ctrl, granted, polled);
	ret = nvmep_alloc_vectors(ctrl, count);
	if (ret) {
		dev_err(ctrl->dev, "no interrupt vectors: %d\n", ret);
		return ret;
	}
	/* With one vector the admin queue shares it with one I/O queue. */
	count = min(count, max(ctrl->vectors - 1, 1U));
	ctrl->polled_queues = polled;
	ctrl->queues = kcalloc(count + polled, sizeof(*ctrl->queues),
			       GFP_KERNEL);
	if (!ctrl->queues)
		return -ENOMEM;
	for (i = 0; i < count + polled; i++) {
		ret = nvmep_add_cpu_queue(ctrl, i, i >= count);
		if (ret)
			break;
		ctrl->cpu_queues = i + 1;
	}
	if (ret)
		nvmep_ctrl_free_queues(ctrl);
	return ret;
}

static bool nvmep_acquire_qid(struct nvmep_ctrl *ctrl, struct nvmep_queue *queue)
{
	int qid;

	if (queue->qid)
		return true;
	qid = nvmep_qid_alloc(ctrl, NVMEP_QID_CPU);
	if (qid > 0)
		queue->qid = qid;
	return qid > 0;
}

/*
 * A controller may grant fewer queue pairs than before a reset, or more again, and the
 * administrator may have said how many the CPU keeps (nvmep_ctrl_share()): as
 * many of the CPU's queues as it would get now have identifiers, from the first
 * on, so that polled ones go before others.  The first always has one: identifier 1
 * never was a peer's.
 */
static void nvmep_share_qids(struct nvmep_ctrl *ctrl, unsigned int granted)
{
	unsigned int count = min(ctrl->cpu_queues,
				 nvmep_cpu_share(ctrl, granted)), i;

	for (i = 0; i < ctrl->cpu_queues; i++)
		if (i >= count || ctrl->queues[i]->qid > granted)
			nvmep_release_qid(ctrl, ctrl->queues[i]);
	for (i = 0; i < count && nvmep_acquire_qid(ctrl, ctrl->queues[i]); i++)
		;
	if (i != ctrl->cpu_queues_live && ctrl->cpu_queues_live)
		dev_warn(ctrl->dev,
			 "controller grants %u queue pairs now: the CPU uses %u\n",
			 granted, i);
	WRITE_ONCE(ctrl->cpu_queues_live, i);
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
	ret = nvmep_queue_pair_create_in(ctrl, &params, generation);
	if (!ret)
		nvmep_queue_enable(queue);
	return ret;
}

static int nvmep_start_queues(struct nvmep_ctrl *ctrl, u32 generation)
{
	unsigned int granted, i;
	int ret;

	ret = nvmep_negotiate_queues(ctrl, &granted);
	if (ret)
		return ret;
	nvmep_qids_grant(ctrl, granted, nvmep_peer_share(ctrl, granted));
	if (!ctrl->queues)
		ret = nvmep_alloc_queues(ctrl, granted);
	if (ret)
		return ret;
	nvmep_share_qids(ctrl, granted);
	for (i = 0; i < ctrl->cpu_queues_live && !ret; i++)
		ret = nvmep_create_cpu_queue(ctrl, ctrl->queues[i], generation);
	return ret;
}

/* --- start --------------------------------------------------------------- */

/**
 * nvmep_ctrl_start() - from a stopped controller to one that does I/O
 * @ctrl: controller in state NEW or RESETTING
 *
 * Return: 0, with the state still to be changed, or a negative error code,
 * with the controller stopped and the reason in the log.
 */
int nvmep_ctrl_start(struct nvmep_ctrl *ctrl)
{
	u32 generation;
	int ret;

	set_bit(NVMEP_CTRL_STARTING, &ctrl->flags);
	mutex_lock(&ctrl->enable_lock);
	/* Who sets this stops the controller after it. */
	ret = READ_ONCE(ctrl->freezes) & 1 ? -EIO : nvmep_ctrl_enable(ctrl);
	if (ret)
		nvmep_ctrl_stop_locked(ctrl, false);
	generation = ctrl->generation;
	mutex_unlock(&ctrl->enable_lock);
	if (!ret)
		ret = nvmep_ctrl_identify(ctrl);
	if (!ret)
		ret = nvmep_host_introduce(ctrl);
	if (!ret)
		ret = nvmep_start_queues(ctrl, generation);
	if (ret)
		nvmep_ctrl_stop(ctrl, false);
	clear_bit(NVMEP_CTRL_STARTING, &ctrl->flags);
	/* Only a command that timed out stops a controller that starts. */
	return ret == -EINTR ? -ETIMEDOUT : ret;
}
