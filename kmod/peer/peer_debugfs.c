// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the peer rooms show in debugfs.
 *
 *  objects (of the module and of each controller)  live objects by kind, for
 *	tests that want to see nothing left.  Exports outlive their controller,
 *	hence the one of the module.
 *  queue_pairs	 one line for each queue pair with an open file
 *  routes	 the verdict for every PCI function, beside the kernel's own
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "core/ctrl.h"
#include "core/qids.h"
#include "peer_debugfs.h"
#include "peers.h"
#include "qp.h"
#include "route.h"

static const char * const nvmep_object_names[NVMEP_OBJECT_KINDS] = {
	[NVMEP_OBJECT_FILES] = "open_files",
	[NVMEP_OBJECT_QPS] = "queue_pairs",
	[NVMEP_OBJECT_BUFS] = "buffers",
	[NVMEP_OBJECT_EXPORTS] = "exports",
	[NVMEP_OBJECT_IMPORTERS] = "importers",
	[NVMEP_OBJECT_MAPS] = "maps",
	[NVMEP_OBJECT_MMAPS] = "mmaps",
	[NVMEP_OBJECT_PAGES] = "pages",
};

static int nvmep_module_objects_show(struct seq_file *seq, void *unused)
{
	enum nvmep_object kind;

	for (kind = 0; kind < NVMEP_OBJECT_KINDS; kind++)
		seq_printf(seq, "%s %d\n", nvmep_object_names[kind],
			   nvmep_objects_sum(kind));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvmep_module_objects);

static int nvmep_objects_show(struct seq_file *seq, void *unused)
{
	struct nvmep_ctrl *ctrl = seq->private;
	struct nvmep_qid_usage usage;
	enum nvmep_object kind;

	for (kind = 0; kind < NVMEP_OBJECT_KINDS; kind++)
		seq_printf(seq, "%s %d\n", nvmep_object_names[kind],
			   nvmep_objects_count(&ctrl->peers->objects, kind));
	nvmep_qid_usage(ctrl, &usage);
	seq_printf(seq, "qids_cpu %u\nqids_peer_free %u\n", usage.cpu,
		   usage.peer_free);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvmep_objects);

static int nvmep_queue_pairs_show(struct seq_file *seq, void *unused)
{
	struct nvmep_ctrl *ctrl = seq->private;
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;

	seq_puts(seq, "qid state generation sq cq exports importers mmaps\n");
	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node)
		seq_printf(seq, "%u %u %u %u %u %d %d %d\n", qp->qid,
			   (u32)nvmep_qp_user_state(qp), qp->generation,
			   qp->sq_entries, qp->cq_entries,
			   atomic_read(&qp->exports.count),
			   atomic_read(&qp->exports.importers),
			   atomic_read(&qp->exports.mmaps));
	mutex_unlock(&peers->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvmep_queue_pairs);

/*
 * "function verdict reason blockers kernel": the way to its memory, and the
 * distance that pci_p2pdma_distance_many() gives, or "-" for a kernel that
 * cannot tell.
 */
static int nvmep_routes_show(struct seq_file *seq, void *unused)
{
	struct nvmep_ctrl *ctrl = seq->private;
	struct nvme_peer_path path;
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev) {
		if (pdev == ctrl->pdev ||
		    pdev->hdr_type != PCI_HEADER_TYPE_NORMAL)
			continue;
		nvmep_route_find(ctrl->pdev, pdev, &path);
		seq_printf(seq, "%s %u %u %u ", pci_name(pdev), path.verdict,
			   path.reason, path.blocker_count);
		if (IS_ENABLED(CONFIG_PCI_P2PDMA))
			seq_printf(seq, "%d\n",
				   nvmep_route_kernel_distance(ctrl->pdev,
							       &pdev->dev));
		else
			seq_puts(seq, "-\n");
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvmep_routes);

/**
 * nvmep_peer_debugfs_module() - the module's file
 * @root: the module's directory
 */
void nvmep_peer_debugfs_module(struct dentry *root)
{
	debugfs_create_file("objects", 0400, root, NULL,
			    &nvmep_module_objects_fops);
}

/**
 * nvmep_peer_debugfs_init() - a controller's files
 * @ctrl: the controller
 * @dir: its directory, removed before the controller goes
 */
void nvmep_peer_debugfs_init(struct nvmep_ctrl *ctrl, struct dentry *dir)
{
	debugfs_create_file("objects", 0400, dir, ctrl, &nvmep_objects_fops);
	debugfs_create_file("queue_pairs", 0400, dir, ctrl,
			    &nvmep_queue_pairs_fops);
	debugfs_create_file("routes", 0400, dir, ctrl, &nvmep_routes_fops);
}
