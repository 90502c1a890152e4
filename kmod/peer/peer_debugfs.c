// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leak counters and debugfs files.
 *
 *  objects	number of objects by kind, of the module and of each controller,
 *		for tests that require 0 at the end.  Exports outlive the
 *		binding of their controller, hence the file of the module
 *  queue_pairs	one line for each queue pair with an open file
 *  pollers	one line for each thread that polls doorbells in host memory
 *  routes	the path to every PCI function, and the kernel's own verdict
 */
#include <linux/bug.h>
#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "core/ctrl.h"
#include "core/qids.h"
#include "peer.h"
#include "peer_debugfs.h"
#include "qp.h"
#include "route.h"

/* --- leak counters ------------------------------------------------------- */

static DEFINE_MUTEX(nvmep_leak_lock);	/* the list */
static LIST_HEAD(nvmep_leak_list);

/**
 * nvmep_leak_counters_init() - register the counters of a controller
 * @counters: zeroed
 *
 * An object is counted once, with its controller, and holds that controller.
 * So the sum over all registered controllers is that of the module.
 */
void nvmep_leak_counters_init(struct nvmep_leak_counters *counters)
{
	mutex_lock(&nvmep_leak_lock);
	list_add_tail(&counters->node, &nvmep_leak_list);
	mutex_unlock(&nvmep_leak_lock);
}

/**
 * nvmep_leak_counters_exit() - unregister the counters and warn about leaks
 * @counters: of a controller without references; each object held one
 */
void nvmep_leak_counters_exit(struct nvmep_leak_counters *counters)
{
	enum nvmep_object kind;

	mutex_lock(&nvmep_leak_lock);
	list_del(&counters->node);
	mutex_unlock(&nvmep_leak_lock);

	for (kind = NVMEP_OBJECT_KINDS; kind--; )
		WARN_ON(nvmep_leak_get(counters, kind));
}

/* Number of objects of a kind in the module. */
static int nvmep_leak_sum(enum nvmep_object kind)
{
	struct nvmep_leak_counters *counters;
	int sum = 0;

	mutex_lock(&nvmep_leak_lock);
	list_for_each_entry(counters, &nvmep_leak_list, node)
		sum += nvmep_leak_get(counters, kind);
	mutex_unlock(&nvmep_leak_lock);
	return sum;
}

/* --- files --------------------------------------------------------------- */

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
			   nvmep_leak_sum(kind));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvmep_module_objects);

static int nvmep_module_pollers_show(struct seq_file *seq, void *unused)
{
	nvmep_pollers_show(seq);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvmep_module_pollers);

static int nvmep_leak_counters_show(struct seq_file *seq, void *unused)
{
	struct nvmep_ctrl *ctrl = seq->private;
	struct nvmep_qid_usage usage;
	enum nvmep_object kind;

	for (kind = 0; kind < NVMEP_OBJECT_KINDS; kind++)
		seq_printf(seq, "%s %d\n", nvmep_object_names[kind],
			   nvmep_leak_get(&ctrl->peers->leak_counters, kind));
	nvmep_qid_usage(ctrl, &usage);
	seq_printf(seq, "qids_cpu %u\nqids_peer_free %u\n", usage.cpu,
		   usage.peer_free);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvmep_leak_counters);

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
 * "function verdict reason blockers kernel": the path to the function's memory,
 * and the distance from pci_p2pdma_distance_many(), or "-" without
 * CONFIG_PCI_P2PDMA.
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
 * nvmep_peer_debugfs_module() - create the files of the module
 * @root: the module's directory
 */
void nvmep_peer_debugfs_module(struct dentry *root)
{
	debugfs_create_file("objects", 0400, root, NULL,
			    &nvmep_module_objects_fops);
	debugfs_create_file("pollers", 0400, root, NULL,
			    &nvmep_module_pollers_fops);
}

/**
 * nvmep_peer_debugfs_init() - create the files of a controller
 * @ctrl: the controller
 * @dir: its directory, removed before the controller is freed
 */
void nvmep_peer_debugfs_init(struct nvmep_ctrl *ctrl, struct dentry *dir)
{
	debugfs_create_file("objects", 0400, dir, ctrl,
			    &nvmep_leak_counters_fops);
	debugfs_create_file("queue_pairs", 0400, dir, ctrl,
			    &nvmep_queue_pairs_fops);
	debugfs_create_file("routes", 0400, dir, ctrl, &nvmep_routes_fops);
}
