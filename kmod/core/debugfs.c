// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs: state and counters of a controller and its queues.  Tests read them,
 * for instance to prove that the CPU wrote no doorbell of a peer.  The peer
 * layer adds files to each controller's directory.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "compat.h"
#include "ctrl.h"
#include "debugfs.h"
#include "qids.h"
#include "queue.h"

static struct dentry *nvmep_debugfs_root;

static int state_show(struct seq_file *seq, void *unused)
{
	struct nvmep_ctrl *ctrl = seq->private;

	seq_printf(seq, "%s\n", nvmep_ctrl_state_name(nvmep_ctrl_state(ctrl)));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int generation_show(struct seq_file *seq, void *unused)
{
	struct nvmep_ctrl *ctrl = seq->private;

	seq_printf(seq, "%u\n", nvmep_ctrl_generation(ctrl));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(generation);

static void nvmep_show_queue(struct seq_file *seq, struct nvmep_queue *queue)
{
	struct nvmep_ctrl *ctrl = queue->ctrl;
	const struct nvmep_doorbell_count *count =
		&ctrl->qids.doorbells[queue->qid];

	seq_printf(seq, "%u %s %u %d %llu %llu %llu %llu\n", queue->qid,
		   queue->number ? "io" : "admin", queue->entries, queue->vector,
		   READ_ONCE(count->sq), READ_ONCE(count->cq),
		   READ_ONCE(queue->completions),
		   READ_ONCE(queue->lost_interrupts));
}

static void nvmep_show_peer_queue(struct seq_file *seq, struct nvmep_ctrl *ctrl,
				  u16 qid, const char *owner)
{
	seq_printf(seq, "%u %s - - %llu %llu - -\n", qid, owner,
		   READ_ONCE(ctrl->qids.doorbells[qid].sq),
		   READ_ONCE(ctrl->qids.doorbells[qid].cq));
}

/* One line for each queue of the CPU, queue pair of a peer, and shared one. */
static int queues_show(struct seq_file *seq, void *unused)
{
	struct nvmep_ctrl *ctrl = seq->private;
	unsigned int i;
	u16 qid = 0;

	seq_puts(seq, "qid owner entries vector cpu_sq_doorbells cpu_cq_doorbells completions lost_interrupts\n");
	nvmep_show_queue(seq, ctrl->admin);
	for (i = 0; i < READ_ONCE(ctrl->cpu_queues_live); i++)
		nvmep_show_queue(seq, ctrl->queues[i]);
	while ((qid = nvmep_qid_next_peer(ctrl, qid)))
		nvmep_show_peer_queue(seq, ctrl, qid, "peer");
	while ((qid = nvmep_qid_next_shared(ctrl, qid)))
		nvmep_show_peer_queue(seq, ctrl, qid, "mediated");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queues);

static int objects_show(struct seq_file *seq, void *unused)
{
	struct nvmep_ctrl *ctrl = seq->private;
	struct nvmep_qid_usage usage;

	nvmep_qid_usage(ctrl, &usage);
	seq_printf(seq, "namespaces %u\nqids_total %u\nqids_cpu %u\nqids_peer_max %u\nqids_peer_free %u\nqids_quarantined %u\n",
		   nvmep_ctrl_namespace_count(ctrl), usage.total, usage.cpu,
		   usage.peer_max, usage.peer_free, usage.quarantined);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

static int quarantine_show(struct seq_file *seq, void *unused)
{
	seq_puts(seq, "qid doorbell_dma_bufs processes\n");
	nvmep_qids_show_quarantine(seq->private, seq);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(quarantine);

/* Also of controllers that were unbound. */
static int quarantines_show(struct seq_file *seq, void *unused)
{
	seq_puts(seq, "bar0 qid doorbell_dma_bufs processes\n");
	nvmep_quarantines_show(seq);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(quarantines);

/**
 * nvmep_debugfs_add() - create the directory of a controller
 * @ctrl: controller that has started
 */
void nvmep_debugfs_add(struct nvmep_ctrl *ctrl)
{
	char name[16];

	snprintf(name, sizeof(name), "nvmep%d", ctrl->instance);
	nvmep_fault_inject_add(&ctrl->failures.fault, name);
	ctrl->debugfs = debugfs_create_dir(name, nvmep_debugfs_root);
	debugfs_create_file("state", 0400, ctrl->debugfs, ctrl, &state_fops);
	debugfs_create_file("generation", 0400, ctrl->debugfs, ctrl,
			    &generation_fops);
	debugfs_create_file("queues", 0400, ctrl->debugfs, ctrl, &queues_fops);
	debugfs_create_file("controller", 0400, ctrl->debugfs, ctrl,
			    &objects_fops);
	debugfs_create_file("quarantine", 0400, ctrl->debugfs, ctrl,
			    &quarantine_fops);
}

/**
 * nvmep_debugfs_remove() - remove the directory; waits for readers
 * @ctrl: controller; its queues are freed after this
 */
void nvmep_debugfs_remove(struct nvmep_ctrl *ctrl)
{
	nvmep_fault_inject_remove(&ctrl->failures.fault);
	debugfs_remove_recursive(ctrl->debugfs);
	ctrl->debugfs = NULL;
}

/**
 * nvmep_debugfs_init() - create the module's directory
 *
 * Return: the directory, or an error pointer, which debugfs accepts as parent.
 */
struct dentry *nvmep_debugfs_init(void)
{
	nvmep_debugfs_root = debugfs_create_dir("nvme-peer", NULL);
	debugfs_create_file("quarantine", 0400, nvmep_debugfs_root, NULL,
			    &quarantines_fops);
	return nvmep_debugfs_root;
}

/**
 * nvmep_debugfs_exit() - remove the module's directory
 */
void nvmep_debugfs_exit(void)
{
	debugfs_remove_recursive(nvmep_debugfs_root);
}
