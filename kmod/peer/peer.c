// SPDX-License-Identifier: GPL-2.0-only
/*
 * The peers of one controller: the callbacks that the rest of the module uses.
 */
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "ioctl.h"
#include "mediated.h"
#include "peer.h"
#include "peer_file.h"
#include "qp.h"

/* --- callbacks of the open node ------------------------------------------ */

static void *nvmep_peer_open(struct nvmep_ctrl *ctrl)
{
	return nvmep_peer_file_open(ctrl);
}

/* The buffers stay until the queue pairs that may access them are released. */
static void nvmep_peer_release(void *context)
{
	nvmep_peer_file_put(context);
}

static int nvmep_peer_range(void *context, u32 handle, u64 offset, u32 length,
			    enum dma_data_direction dir,
			    struct nvmep_dma_range *range)
{
	return nvmep_handle_range(context, handle, offset, length, dir, range);
}

/* --- callbacks of the controller ----------------------------------------- */

/*
 * The kernel frees the provider after the removal.  An importer that maps now
 * may wait for memory, and so for I/O of this controller.  That ends: the
 * controller still runs, or a stop fails its I/O.
 */
static void nvmep_provider_wait(struct nvmep_peers *peers)
{
	/* Pairs with smp_mb__after_atomic() in export_doorbell.c. */
	smp_mb();
	wait_var_event(&peers->provider_users,
		       !atomic_read(&peers->provider_users));
}

/* Works for a controller in any state: the deletion of queues checks it. */
static void nvmep_peer_remove(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;

	WRITE_ONCE(peers->removed, true);
	down_write(&peers->ioctl_rwsem);
	up_write(&peers->ioctl_rwsem);

	nvmep_qp_revoke_all(ctrl);
	nvmep_mediator_exit(peers);
	nvmep_provider_wait(peers);
	nvmep_health_poll_stop(peers);
	flush_work(&peers->uevent_work);
	nvmep_bufs_detach_all(ctrl);
	/*
	 * Not in nvmep_peer_exit(): the last reference may be that of a work
	 * of a workqueue with a rescuer, which must not wait for this one.
	 */
	destroy_workqueue(peers->invalidate_wq);
	peers->invalidate_wq = NULL;
	nvmep_qids_warn_quarantine(ctrl);
}

/*
 * Queue pairs that have ended lose nothing in suspend, even if their file is
 * open.  Owners of the others may have allowed suspend.  Mediated ones write no
 * doorbell meanwhile, and a tenant without privileges may not prevent suspend.
 */
static bool nvmep_peer_busy(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;
	bool busy = false;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node)
		busy |= nvmep_qp_usable(qp) && !qp->allow_sleep &&
			!nvmep_qp_mediated(qp);
	mutex_unlock(&peers->lock);
	return busy;
}

static void nvmep_peer_poll(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_mediator *mediator =
		peers ? READ_ONCE(peers->mediator) : NULL;

	if (mediator)
		nvmep_mediator_poll(mediator);
}

static int nvmep_peer_init(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = kzalloc(sizeof(*peers), GFP_KERNEL);

	if (!peers)
		return -ENOMEM;
	peers->ctrl = ctrl;
	peers->ready = NVMEP_NEVER_READY;
	init_rwsem(&peers->ioctl_rwsem);
	mutex_init(&peers->lock);
	INIT_LIST_HEAD(&peers->qps);
	INIT_LIST_HEAD(&peers->bufs);
	peers->invalidate_wq = alloc_workqueue("nvmep%d-invalidate", WQ_UNBOUND,
					       0, ctrl->instance);
	if (!peers->invalidate_wq) {
		kfree(peers);
		return -ENOMEM;
	}
	nvmep_health_poll_init(peers);
	nvmep_recover_uevents_init(peers);
	peers->provider = nvmep_p2p_provider(ctrl->pdev, 0);
	nvmep_leak_counters_init(&peers->leak_counters);
	ctrl->peers = peers;
	return 0;
}

static void nvmep_peer_exit(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;

	if (!peers)
		return;
	nvmep_leak_counters_exit(&peers->leak_counters);
	nvmep_mediator_free(peers);
	/* The driver was not bound. */
	if (peers->invalidate_wq)
		destroy_workqueue(peers->invalidate_wq);
	kfree(peers);
	ctrl->peers = NULL;
}

/* Callbacks of this layer; main.c registers them for each controller. */
const struct nvmep_peer_ops nvmep_peer_ops = {
	.init = nvmep_peer_init,
	.exit = nvmep_peer_exit,
	.open = nvmep_peer_open,
	.release = nvmep_peer_release,
	.ioctl = nvmep_peer_ioctl,
	.range = nvmep_peer_range,
	.revoke_doorbells = nvmep_qp_revoke_doorbells,
	.stopped = nvmep_recover_stopped,
	.namespaces_changed = nvmep_recover_namespaces_changed,
	.allow_rearm = nvmep_recover_allow_rearm,
	.ctrl_failed = nvmep_recover_ctrl_failed,
	.remove = nvmep_peer_remove,
	.busy = nvmep_peer_busy,
	.poll = nvmep_peer_poll,
};
