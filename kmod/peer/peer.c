// SPDX-License-Identifier: GPL-2.0-only
/*
 * The peer ABI on the controller node, and what the controller tells the peer
 * rooms: the top of them, where buffers and queue pairs meet.
 */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/pci.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include <linux/nvme_peer.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "import.h"
#include "ioctl.h"
#include "peer.h"
#include "peer_file.h"
#include "peers.h"
#include "qp.h"
#include "qp_file.h"
#include "recover.h"
#include "route.h"

/* --- taking buffers back ------------------------------------------------- */

/*
 * An exporter wants the memory of a buffer.  Every queue pair that could reach
 * it is stopped: one that has a ring in it, and all of the controller once user
 * space knows the buffer's addresses: a command in flight may carry one, and
 * deleting the queue is the only way to stop it.
 *
 * Cutting the peers off comes last: it may be this very exporter that has the
 * doorbells mapped and waits for its memory first.
 */
static void nvmep_reclaim(struct nvmep_buf *buf)
{
	nvmep_qp_stop_users(buf);
	nvmep_buf_unmap(buf);
	nvmep_qp_revoke_stopped(buf->ctrl);
}

/* --- INFO, ROUTE --------------------------------------------------------- */

/* INFO hands the controller's state out as it is. */
static_assert((int)NVMEP_CTRL_NEW == (int)NVME_PEER_CTRL_NEW);
static_assert((int)NVMEP_CTRL_LIVE == (int)NVME_PEER_CTRL_LIVE);
static_assert((int)NVMEP_CTRL_RESETTING == (int)NVME_PEER_CTRL_RESETTING);
static_assert((int)NVMEP_CTRL_DELETING == (int)NVME_PEER_CTRL_DELETING);
static_assert((int)NVMEP_CTRL_DEAD == (int)NVME_PEER_CTRL_DEAD);

static int nvmep_ioctl_info(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_info *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;
	struct nvmep_ctrl *ctrl = file->ctrl;
	struct nvmep_qid_usage usage;

	if (cmd->flags)
		return -EINVAL;

	nvmep_qid_usage(ctrl, &usage);
	*cmd = (struct nvme_peer_info) {
		.size = cmd->size,
		.features = NVME_PEER_FEATURE_DIRECT |
			    NVME_PEER_FEATURE_BUF_RINGS |
			    NVME_PEER_FEATURE_BUF_IO |
			    NVME_PEER_FEATURE_BUF_IO_VEC,
		.cap = ctrl->cap,
		.version = ctrl->vs,
		.state = (u32)nvmep_ctrl_state(ctrl),
		.generation = nvmep_ctrl_generation(ctrl),
		.domain = nvmep_route_translated(ctrl->dev) ?
			  NVME_PEER_DOMAIN_TRANSLATED :
			  NVME_PEER_DOMAIN_PHYSICAL,
		.max_entries = ctrl->max_entries,
		.doorbell_stride = ctrl->doorbell_stride,
		.page_size = ctrl->page_size,
		.max_transfer = ctrl->max_transfer,
		.sgls = ctrl->sgls,
		.namespaces = nvmep_ctrl_namespaces(ctrl),
		.qids_total = usage.total,
		.qids_cpu = usage.cpu,
		.qids_peer_max = usage.peer_max,
		.qids_peer_free = usage.peer_free,
		.qids_quarantined = usage.quarantined,
		.pci_address = nvmep_pci_address(ctrl->pdev),
		.contiguous_rings = NVME_CAP_CQR(ctrl->cap),
		.cmb_size = ctrl->cmb_size,
	};
	return 0;
}

static int nvmep_route_by_address(struct nvmep_ctrl *ctrl,
				  struct nvme_peer_route *cmd)
{
	struct pci_dev *peer;
	int err;

	if (cmd->pci_address.valid != 1)
		return -EINVAL;
	err = nvmep_gate_enter(ctrl->peers);
	if (err)
		return err;
	peer = nvmep_pci_get(&cmd->pci_address);
	if (peer) {
		nvmep_route_find(ctrl->pdev, peer, &cmd->data);
		nvmep_route_find(peer, ctrl->pdev, &cmd->doorbell);
	}
	nvmep_gate_leave(ctrl->peers);
	pci_dev_put(peer);
	return peer ? 0 : -ENODEV;
}

/* Only the exporter can tell where the memory lies, and that it refuses. */
static int nvmep_route_by_dmabuf(struct nvmep_ctrl *ctrl,
				 struct nvme_peer_route *cmd)
{
	struct nvmep_place place = { };
	struct pci_dev *peer;
	int err;

	err = nvmep_buf_locate(ctrl, cmd->dmabuf_fd, &place);
	if (err == -EXDEV)
		nvmep_route_without_device(&place.path,
					   NVME_PEER_REASON_EXPORTER_REFUSED);
	else if (err)
		return err;
	cmd->pci_address = place.owner;
	cmd->data = place.path;

	peer = nvmep_pci_get(&place.owner);
	if (peer)
		nvmep_route_find(peer, ctrl->pdev, &cmd->doorbell);
	else
		nvmep_route_without_device(&cmd->doorbell, NVME_PEER_REASON_NONE);
	pci_dev_put(peer);
	return 0;
}

static int nvmep_ioctl_route(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_route *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;

	if (cmd->flags & ~NVME_PEER_ROUTE_BY_ADDRESS)
		return -EINVAL;
	if (cmd->flags & NVME_PEER_ROUTE_BY_ADDRESS)
		return nvmep_route_by_address(file->ctrl, cmd);
	return nvmep_route_by_dmabuf(file->ctrl, cmd);
}

/* --- buffers ------------------------------------------------------------- */

/* A way for writes is one for a buffer that the controller only writes. */
static bool nvmep_path_serves(const struct nvme_peer_path *path, u32 access)
{
	if (path->verdict == NVME_PEER_ROUTE_HOST_BRIDGE_WRITES)
		return access == NVME_PEER_ACCESS_WRITE;
	return path->verdict != NVME_PEER_ROUTE_NONE;
}

static int nvmep_buf_admit(const struct nvmep_buf *buf,
			   const struct nvme_peer_buf_import *cmd)
{
	const struct nvme_peer_pci_address *owner = &buf->place.owner;
	const struct nvme_peer_path *path = &buf->place.path;

	if (cmd->flags & NVME_PEER_BUF_REQUIRE_DEVICE &&
	    path->verdict == NVME_PEER_ROUTE_SYSTEM)
		return -ENXIO;
	if (nvmep_path_serves(path, cmd->access))
		return 0;
	dev_info_ratelimited(buf->ctrl->dev,
			     "dma-buf in function %04x:%02x:%02x.%x is out of reach: %s (ports in the way: %u)\n",
			     owner->domain, PCI_BUS_NUM(owner->function),
			     PCI_SLOT(owner->function), PCI_FUNC(owner->function),
			     nvmep_route_reason_text(path->reason),
			     path->blocker_count);
	return -EXDEV;
}

static int nvmep_buf_import_check(const struct nvmep_ctrl *ctrl,
				  const struct nvme_peer_buf_import *cmd)
{
	if (cmd->flags & ~NVME_PEER_BUF_REQUIRE_DEVICE ||
	    cmd->access > NVME_PEER_ACCESS_WRITE ||
	    memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
	    !IS_ALIGNED(cmd->offset | cmd->length, ctrl->page_size))
		return -EINVAL;
	return 0;
}

static int nvmep_ioctl_buf_import(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_import *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;
	struct nvmep_buf *buf;
	int err;

	err = nvmep_buf_import_check(file->ctrl, cmd);
	if (err)
		return err;

	buf = nvmep_buf_import(file->ctrl, cmd, nvmep_reclaim);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = nvmep_buf_admit(buf, cmd);
	if (err)
		goto put_buf;

	cmd->length = buf->segments.length;
	cmd->segments = buf->segments.count;
	cmd->verdict = buf->place.path.verdict;
	cmd->reason = buf->place.path.reason;
	cmd->pci_address = buf->place.owner;
	err = nvmep_buf_reserve(file, buf);
	if (err)
		goto put_buf;
	cmd->handle = buf->handle;
	ucmd->made = buf;
	return 0;

put_buf:
	nvmep_buf_put(buf);
	return err;
}

static int nvmep_answer_buf_import(struct nvmep_ucmd *ucmd)
{
	int err = nvmep_ucmd_respond(ucmd);

	if (err)
		nvmep_buf_unreserve(ucmd->made);
	else
		nvmep_buf_publish(ucmd->made);
	return err;
}

static int nvmep_ioctl_buf_release(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_release *cmd = ucmd->cmd;

	if (cmd->flags || cmd->reserved)
		return -EINVAL;
	return nvmep_buf_release(ucmd->context, cmd->handle);
}

/* Addresses of controller pages from @offset on, as many as fit the chunk. */
static u32 nvmep_fill_addresses(const struct nvmep_buf *buf, u64 offset,
				u64 *addresses, u32 count)
{
	u32 page_size = buf->ctrl->page_size;
	const struct nvmep_segment *segment = nvmep_segments_find(&buf->segments, offset);
	u32 filled;

	for (filled = 0; filled < count; filled++, offset += page_size) {
		if (offset == segment->offset + segment->length)
			segment++;
		addresses[filled] = segment->dma + (offset - segment->offset);
	}
	return filled;
}

static int nvmep_copy_addresses(const struct nvmep_buf *buf, u64 offset,
				u64 __user *user, u32 count)
{
	u32 page_size = buf->ctrl->page_size;
	u32 chunk_size = PAGE_SIZE / sizeof(u64);
	u32 done = 0;
	int err = 0;
	u64 *chunk;

	chunk = kmalloc_array(chunk_size, sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;

	while (done < count && !err) {
		u32 now = min(count - done, chunk_size);

		nvmep_fill_addresses(buf, offset + (u64)done * page_size, chunk,
				     now);
		if (copy_to_user(user + done, chunk, now * sizeof(*chunk)))
			err = -EFAULT;
		done += now;
		cond_resched();
	}
	kfree(chunk);
	return err;
}

static int nvmep_buf_table(struct nvmep_buf *buf,
			   struct nvme_peer_buf_table *cmd)
{
	u32 page_size = buf->ctrl->page_size;
	int err;

	if (!IS_ALIGNED(cmd->offset, page_size))
		return -EINVAL;
	if (cmd->offset >= buf->segments.length)
		return -ERANGE;
	err = nvmep_buf_expose(buf);
	if (err)
		return err;

	cmd->count = min_t(u64, cmd->count,
			   div_u64(buf->segments.length - cmd->offset, page_size));
	return 0;
}

static int nvmep_ioctl_buf_table(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_table *cmd = ucmd->cmd;
	struct nvmep_buf *buf;
	int err;

	if (cmd->flags)
		return -EINVAL;
	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;

	buf = nvmep_buf_lookup(ucmd->context, cmd->handle);
	if (!buf)
		return -ENOENT;
	err = nvmep_buf_table(buf, cmd);
	if (err)
		nvmep_buf_put(buf);
	else
		ucmd->made = buf;
	return err;
}

/* The addresses stay where they are, even if the handle goes meanwhile. */
static int nvmep_answer_buf_table(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_table *cmd = ucmd->cmd;
	struct nvmep_buf *buf = ucmd->made;
	int err;

	err = nvmep_copy_addresses(buf, cmd->offset,
				   u64_to_user_ptr(cmd->addresses), cmd->count);
	nvmep_buf_put(buf);
	return err ? err : nvmep_ucmd_respond(ucmd);
}

/* --- queue pairs --------------------------------------------------------- */

/*
 * Where no IOMMU translates, the addresses in a command are the machine's: a peer
 * that rings doorbells itself has the controller write anywhere, the kernel
 * included.  A locked down kernel keeps that from root, too, as it does with BARs in
 * sysfs.
 */
static int nvmep_locked_down(const struct nvmep_ctrl *ctrl)
{
	if (nvmep_route_translated(ctrl->dev))
		return 0;
	return security_locked_down(LOCKDOWN_PCI_ACCESS);
}

static int nvmep_qp_create_check(struct nvmep_ctrl *ctrl,
				 const struct nvme_peer_qp_create *cmd)
{
	if (cmd->flags & ~NVME_PEER_QP_ALLOW_SLEEP || cmd->reserved1 ||
	    memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
	    cmd->mode != NVME_PEER_MODE_DIRECT)
		return -EINVAL;
	if (cmd->sq_entries < 2 || cmd->sq_entries > ctrl->max_entries ||
	    cmd->cq_entries < cmd->sq_entries ||
	    cmd->cq_entries > ctrl->max_entries)
		return -EINVAL;
	if ((!cmd->sq_handle && cmd->sq_offset) ||
	    (!cmd->cq_handle && cmd->cq_offset))
		return -EINVAL;
	return capable(CAP_SYS_RAWIO) ? nvmep_locked_down(ctrl) : -EPERM;
}

static struct file *nvmep_qp_create_file(struct nvmep_peer_file *file,
					 struct nvme_peer_qp_create *cmd)
{
	struct nvmep_qp *qp;
	struct file *filp;

	qp = nvmep_qp_create(file, cmd);
	if (IS_ERR(qp))
		return ERR_CAST(qp);
	cmd->qid = qp->qid;
	cmd->generation = qp->generation;

	filp = nvmep_qp_file(qp);
	if (IS_ERR(filp))
		nvmep_qp_release(qp);
	return filp;
}

static int nvmep_ioctl_qp_create(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_create *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;
	struct file *filp;
	int err;

	err = nvmep_qp_create_check(file->ctrl, cmd);
	if (err)
		return err;

	cmd->qp_fd = get_unused_fd_flags(O_CLOEXEC);
	if (cmd->qp_fd < 0)
		return cmd->qp_fd;
	filp = nvmep_qp_create_file(file, cmd);
	if (IS_ERR(filp)) {
		put_unused_fd(cmd->qp_fd);
		return PTR_ERR(filp);
	}
	ucmd->made = filp;
	return 0;
}

static int nvmep_answer_qp_create(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_create *cmd = ucmd->cmd;

	return nvmep_ucmd_respond_file(ucmd, cmd->qp_fd, ucmd->made);
}

static const struct nvmep_ioctl nvmep_peer_ioctls[] = {
	NVMEP_IOCTL(NVME_PEER_INFO, nvme_peer_info, cmb_size, false,
		    nvmep_ioctl_info, nvmep_ucmd_respond),
	NVMEP_IOCTL(NVME_PEER_ROUTE, nvme_peer_route, doorbell, true,
		    nvmep_ioctl_route, nvmep_ucmd_respond),
	NVMEP_IOCTL(NVME_PEER_BUF_IMPORT, nvme_peer_buf_import, reserved, true,
		    nvmep_ioctl_buf_import, nvmep_answer_buf_import),
	NVMEP_IOCTL(NVME_PEER_BUF_RELEASE, nvme_peer_buf_release, reserved,
		    true, nvmep_ioctl_buf_release, NULL),
	NVMEP_IOCTL(NVME_PEER_BUF_TABLE, nvme_peer_buf_table, addresses, false,
		    nvmep_ioctl_buf_table, nvmep_answer_buf_table),
	NVMEP_IOCTL(NVME_PEER_QP_CREATE, nvme_peer_qp_create, reserved, false,
		    nvmep_ioctl_qp_create, nvmep_answer_qp_create),
};

/* --- the open controller node -------------------------------------------- */

static void *nvmep_peer_open(struct nvmep_ctrl *ctrl)
{
	return nvmep_peer_file_open(ctrl);
}

/* Its buffers stay until the queue pairs that may use them are closed, too. */
static void nvmep_peer_release(void *context)
{
	nvmep_peer_file_put(context);
}

static long nvmep_peer_ioctl(void *context, unsigned int cmd, void __user *arg)
{
	struct nvmep_peer_file *file = context;

	return nvmep_ioctl_dispatch(file->ctrl->peers, nvmep_peer_ioctls,
				    ARRAY_SIZE(nvmep_peer_ioctls), cmd, arg,
				    file);
}

static int nvmep_peer_span(void *context, u32 handle, u64 offset, u32 length,
			   enum dma_data_direction dir, struct nvmep_span *span)
{
	return nvmep_handle_span(context, handle, offset, length, dir, span);
}

/* --- what the controller tells ------------------------------------------- */

/* Whether the controller is alive makes no difference: the deletion knows. */
static void nvmep_peer_remove(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;

	WRITE_ONCE(peers->removed, true);
	down_write(&peers->gate);
	up_write(&peers->gate);

	nvmep_qp_revoke_all(ctrl, ENODEV);
	nvmep_watch_stop(&peers->watch);
	nvmep_bufs_release_kept(peers);
	nvmep_bufs_detach_all(ctrl);
}

/*
 * One that has ended may still have its file open: nobody loses anything.  Owners of
 * others have agreed to be woken like after a reset.
 */
static bool nvmep_peer_busy(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;
	bool busy = false;

	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->alive, life.node)
		busy |= !qp->allow_sleep;
	mutex_unlock(&peers->lock);
	return busy;
}

static int nvmep_peer_init(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = kzalloc(sizeof(*peers), GFP_KERNEL);

	if (!peers)
		return -ENOMEM;
	peers->ctrl = ctrl;
	init_rwsem(&peers->gate);
	mutex_init(&peers->lock);
	INIT_LIST_HEAD(&peers->qps);
	INIT_LIST_HEAD(&peers->alive);
	INIT_LIST_HEAD(&peers->bufs);
	INIT_LIST_HEAD(&peers->kept);
	peers->invalidate_wq = alloc_workqueue("nvmep%d-invalidate", WQ_UNBOUND,
					       0, ctrl->instance);
	if (!peers->invalidate_wq) {
		kfree(peers);
		return -ENOMEM;
	}
	nvmep_watch_init(&peers->watch, nvmep_recover_look);
	peers->provider = nvmep_p2p_provider(ctrl->pdev, 0);
	nvmep_objects_init(&peers->objects);
	ctrl->peers = peers;
	return 0;
}

static void nvmep_peer_exit(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;

	if (!peers)
		return;
	nvmep_objects_exit(&peers->objects);
	destroy_workqueue(peers->invalidate_wq);
	kfree(peers);
	ctrl->peers = NULL;
}

/* What the peer rooms do for a controller; main.c gives it to every one. */
const struct nvmep_peer_ops nvmep_peer_ops = {
	.init = nvmep_peer_init,
	.exit = nvmep_peer_exit,
	.open = nvmep_peer_open,
	.release = nvmep_peer_release,
	.ioctl = nvmep_peer_ioctl,
	.span = nvmep_peer_span,
	.prepare = nvmep_qp_withdraw_all,
	.stopped = nvmep_recover_stopped,
	.outdated = nvmep_recover_outdated,
	.restarted = nvmep_recover_restarted,
	.given_up = nvmep_recover_given_up,
	.remove = nvmep_peer_remove,
	.busy = nvmep_peer_busy,
};
