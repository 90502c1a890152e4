// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer ioctls of the controller node: NVME_PEER_INFO to NVME_PEER_EXTENTS.
 */
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include <linux/nvme_peer.h>

#include "compat.h"
#include "core/ctrl.h"
#include "core/qids.h"
#include "host_buffer.h"
#include "import.h"
#include "ioctl.h"
#include "mediated.h"
#include "peer.h"
#include "peer_file.h"
#include "qp.h"
#include "route.h"

/* --- INFO, ROUTE --------------------------------------------------------- */

/* INFO reports the controller's state without conversion. */
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
			    NVME_PEER_FEATURE_BUF_IO_VEC |
			    NVME_PEER_FEATURE_BUF_ALLOC |
			    NVME_PEER_FEATURE_RELAY | NVME_PEER_FEATURE_KICK |
			    NVME_PEER_FEATURE_MEDIATED |
			    NVME_PEER_FEATURE_WINDOW | NVME_PEER_FEATURE_EXTENTS,
		.cap = ctrl->cap,
		.version = ctrl->vs,
		.state = (u32)nvmep_ctrl_state(ctrl),
		.generation = nvmep_ctrl_generation(ctrl),
		.domain = nvmep_route_domain(ctrl->dev),
		.max_entries = ctrl->max_entries,
		.doorbell_stride = ctrl->doorbell_stride,
		.page_size = ctrl->page_size,
		.max_transfer = ctrl->max_transfer,
		.sgls = ctrl->sgls,
		.namespaces = nvmep_ctrl_namespace_count(ctrl),
		.qids_total = usage.total,
		.qids_cpu = usage.cpu,
		.qids_peer_max = usage.peer_max,
		.qids_peer_free = usage.peer_free,
		.qids_quarantined = usage.quarantined,
		.pci_address = nvmep_pci_address(ctrl->pdev),
		.contiguous_rings = NVMEP_CAP_CQR(ctrl->cap),
		.cmb_size = ctrl->cmb_size,
		.domain_flags = nvmep_has_isolated_msi(ctrl->dev) ?
				NVME_PEER_DOMAIN_ISOLATED_MSI : 0,
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
	err = nvmep_ioctl_begin(ctrl->peers);
	if (err)
		return err;
	peer = nvmep_pci_get(&cmd->pci_address);
	if (peer) {
		nvmep_route_find(ctrl->pdev, peer, &cmd->data);
		nvmep_route_find(peer, ctrl->pdev, &cmd->doorbell);
	}
	nvmep_ioctl_end(ctrl->peers);
	pci_dev_put(peer);
	return peer ? 0 : -ENODEV;
}

/* The placement is known only after the exporter has mapped the memory. */
static int nvmep_route_by_dmabuf(struct nvmep_ctrl *ctrl,
				 struct nvme_peer_route *cmd)
{
	struct nvmep_placement placement = { };
	struct pci_dev *peer;
	int err;

	err = nvmep_buf_locate(ctrl, cmd->dmabuf_fd, &placement);
	if (err == -EXDEV)
		nvmep_route_without_device(&placement.path,
					   NVME_PEER_REASON_EXPORTER_REFUSED);
	else if (err)
		return err;
	cmd->pci_address = placement.owner;
	cmd->data = placement.path;

	peer = nvmep_pci_get(&placement.owner);
	if (peer)
		nvmep_route_find(peer, ctrl->pdev, &cmd->doorbell);
	else
		nvmep_route_without_device(&cmd->doorbell,
					   NVME_PEER_REASON_NONE);
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

/* A path for writes serves a buffer that the controller only writes. */
static bool nvmep_path_allows(const struct nvme_peer_path *path, u32 access)
{
	if (path->verdict == NVME_PEER_ROUTE_HOST_BRIDGE_WRITES)
		return access == NVME_PEER_ACCESS_WRITE;
	return path->verdict != NVME_PEER_ROUTE_NONE;
}

static int nvmep_buf_check_route(const struct nvmep_buf *buf,
				 const struct nvme_peer_buf_import *cmd)
{
	const struct nvme_peer_pci_address *owner = &buf->placement.owner;
	const struct nvme_peer_path *path = &buf->placement.path;

	if (cmd->flags & NVME_PEER_BUF_REQUIRE_DEVICE &&
	    path->verdict == NVME_PEER_ROUTE_SYSTEM)
		return -ENXIO;
	if (nvmep_path_allows(path, cmd->access))
		return 0;
	dev_info_ratelimited(buf->ctrl->dev,
			     "import refused: no path to the dma-buf in function %04x:%02x:%02x.%x: %s (%u blocking ports)\n",
			     owner->domain, PCI_BUS_NUM(owner->function),
			     PCI_SLOT(owner->function), PCI_FUNC(owner->function),
			     nvmep_route_reason_text(path->reason),
			     path->blocker_count);
	return -EXDEV;
}

/**
 * nvmep_buf_import_check() - check the arguments of an import
 * @ctrl: the controller
 * @cmd: all but the descriptor
 *
 * Return: 0 or -EINVAL.
 */
int nvmep_buf_import_check(const struct nvmep_ctrl *ctrl,
			   const struct nvme_peer_buf_import *cmd)
{
	if (cmd->flags & ~NVME_PEER_BUF_REQUIRE_DEVICE ||
	    cmd->access & ~(NVME_PEER_ACCESS_READ | NVME_PEER_ACCESS_WRITE) ||
	    memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)) ||
	    !IS_ALIGNED(cmd->offset | cmd->length, ctrl->page_size))
		return -EINVAL;
	return 0;
}

/**
 * nvmep_buf_import_checked() - import a buffer for user space
 * @ctrl: the controller
 * @dmabuf: that of cmd->dmabuf_fd
 * @cmd: in, out: all but @handle; passes nvmep_buf_import_check()
 * @on_invalidate: see struct nvmep_buf
 *
 * The exporter may block for any time: called without ioctl_rwsem.
 *
 * Return: the buffer, charged and in reach, without a handle; or an ERR_PTR, see
 * struct nvme_peer_buf_import.
 */
struct nvmep_buf *
nvmep_buf_import_checked(struct nvmep_ctrl *ctrl, struct dma_buf *dmabuf,
			 struct nvme_peer_buf_import *cmd,
			 void (*on_invalidate)(struct nvmep_buf *buf))
{
	struct nvmep_buf *buf = nvmep_buf_import(ctrl, dmabuf, cmd,
						 on_invalidate);
	int err;

	if (IS_ERR(buf))
		return buf;
	err = nvmep_buf_check_route(buf, cmd);
	if (!err)
		err = nvmep_buf_charge(buf);
	if (err) {
		nvmep_buf_put(buf);
		return ERR_PTR(err);
	}
	cmd->length = buf->segments.length;
	cmd->segments = buf->segments.count;
	cmd->verdict = buf->placement.path.verdict;
	cmd->reason = buf->placement.path.reason;
	cmd->pci_address = buf->placement.owner;
	return buf;
}

static int nvmep_ioctl_buf_import(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_import *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;
	int err = nvmep_buf_import_check(file->ctrl, cmd);
	struct dma_buf *dmabuf;
	struct nvmep_buf *buf;

	if (err)
		return err;
	dmabuf = dma_buf_get(cmd->dmabuf_fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	buf = nvmep_buf_import_checked(file->ctrl, dmabuf, cmd,
				       nvmep_qp_buf_invalidated);
	dma_buf_put(dmabuf);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = nvmep_buf_reserve(file, buf);
	if (err) {
		nvmep_buf_put(buf);
		return err;
	}
	cmd->handle = buf->handle;
	ucmd->result = buf;
	return 0;
}

static int nvmep_respond_buf_import(struct nvmep_ucmd *ucmd)
{
	int err = nvmep_ucmd_respond(ucmd);

	if (err)
		nvmep_buf_unreserve(ucmd->result);
	else
		nvmep_buf_publish(ucmd->result);
	return err;
}

static int nvmep_ioctl_buf_release(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_release *cmd = ucmd->cmd;

	if (cmd->flags || cmd->reserved)
		return -EINVAL;
	return nvmep_buf_release(ucmd->context, cmd->handle);
}

/*
 * Copies the ranges from @offset on.  Returns how many, at most @count, or
 * -EFAULT.
 */
static int nvmep_copy_ranges(const struct nvmep_segments *segments, u64 offset,
			     struct nvme_peer_buf_range __user *user, u32 count)
{
	const struct nvmep_segment *segment =
		nvmep_segments_find(segments, offset);
	u64 skip = offset - segment->offset;
	u32 done;

	count = min_t(u32, count,
		      segments->count - (segment - segments->list));
	for (done = 0; done < count; done++, segment++, skip = 0) {
		const struct nvme_peer_buf_range range = {
			.address = segment->dma + skip,
			.length = segment->length - skip,
		};

		if (copy_to_user(user + done, &range, sizeof(range)))
			return -EFAULT;
		cond_resched();
	}
	return count;
}

static int nvmep_buf_table(struct nvmep_buf *buf,
			   const struct nvme_peer_buf_table *cmd)
{
	if (!IS_ALIGNED(cmd->offset, buf->ctrl->page_size))
		return -EINVAL;
	if (cmd->offset >= buf->segments.length)
		return -ERANGE;
	return nvmep_buf_expose(buf);
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
		ucmd->result = buf;
	return err;
}

/*
 * If the handle is released meanwhile, the reference keeps the list of segments;
 * the addresses may be unmapped.
 */
static int nvmep_respond_buf_table(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_table *cmd = ucmd->cmd;
	struct nvmep_buf *buf = ucmd->result;
	int count;

	count = nvmep_copy_ranges(&buf->segments, cmd->offset,
				  u64_to_user_ptr(cmd->ranges), cmd->count);
	nvmep_buf_put(buf);
	if (count < 0)
		return count;
	cmd->count = count;
	return nvmep_ucmd_respond(ucmd);
}

static int nvmep_buf_alloc_check(const struct nvmep_ctrl *ctrl,
				 const struct nvme_peer_buf_alloc *cmd)
{
	if (cmd->flags || cmd->reserved || !cmd->length)
		return -EINVAL;
	if (cmd->length > NVME_PEER_BUF_ALLOC_MAX)
		return -EFBIG;
	return READ_ONCE(ctrl->peers->removed) ? -ESHUTDOWN : 0;
}

/* The memory needs no controller: unbinding does not wait for this. */
static int nvmep_ioctl_buf_alloc(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_alloc *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;
	struct dma_buf *dmabuf;
	int err;

	err = nvmep_buf_alloc_check(file->ctrl, cmd);
	if (err)
		return err;
	cmd->length = PAGE_ALIGN(cmd->length);
	cmd->fd = get_unused_fd_flags(O_CLOEXEC);
	if (cmd->fd < 0)
		return cmd->fd;
	dmabuf = nvmep_host_buffer_create(file->ctrl, cmd->length);
	if (IS_ERR(dmabuf)) {
		put_unused_fd(cmd->fd);
		return PTR_ERR(dmabuf);
	}
	ucmd->result = dmabuf->file;
	return 0;
}

static int nvmep_respond_buf_alloc(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_alloc *cmd = ucmd->cmd;

	return nvmep_ucmd_respond_file(ucmd, cmd->fd, ucmd->result);
}

/* --- files ---------------------------------------------------------------- */

/* Needs no controller either. */
static int nvmep_ioctl_extents(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_extents *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;
	struct file *filp;

	if (cmd->flags || cmd->reserved)
		return -EINVAL;
	if (READ_ONCE(file->ctrl->peers->removed))
		return -ESHUTDOWN;
	cmd->pin_fd = get_unused_fd_flags(O_CLOEXEC);
	if (cmd->pin_fd < 0)
		return cmd->pin_fd;
	filp = nvmep_extents_create(file->ctrl, cmd);
	if (IS_ERR(filp)) {
		put_unused_fd(cmd->pin_fd);
		return PTR_ERR(filp);
	}
	ucmd->result = filp;
	return 0;
}

static int nvmep_respond_extents(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_extents *cmd = ucmd->cmd;

	return nvmep_ucmd_respond_file(ucmd, cmd->pin_fd, ucmd->result);
}

/* --- queue pairs --------------------------------------------------------- */

/*
 * A peer with doorbells makes the controller write anywhere in the controller's
 * DMA domain.  Lockdown denies root any write to kernel memory, as through BARs
 * in sysfs, and an IOMMU does not prevent this one: the domain is the kernel's
 * own, not one of the caller as with VFIO.  It maps whole pages, so it exposes
 * what shares a page with a buffer of the block layer, and a lazy domain
 * exposes freed pages until the next flush of the IOTLB.
 */
static int nvmep_raw_allowed(void)
{
	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	return security_locked_down(LOCKDOWN_PCI_ACCESS);
}

/* Limits are those of mediated queue pairs, which need no capability. */
static int nvmep_qp_create_check_mode(const struct nvmep_ctrl *ctrl,
				      const struct nvme_peer_qp_create *cmd)
{
	if (cmd->mode == NVME_PEER_MODE_MEDIATED)
		return nvmep_tenant_create_check(ctrl, cmd);
	if (cmd->depth || cmd->weight || cmd->timeout_ms || cmd->max_windows ||
	    cmd->max_buffers)
		return -EINVAL;
	return nvmep_raw_allowed();
}

static int nvmep_qp_create_check(struct nvmep_ctrl *ctrl,
				 const struct nvme_peer_qp_create *cmd)
{
	if (cmd->flags & ~(NVME_PEER_QP_ALLOW_SLEEP | NVME_PEER_QP_NO_STATIC) ||
	    cmd->reserved1 || cmd->reserved || cmd->reserved2 ||
	    cmd->mode > NVME_PEER_MODE_MEDIATED)
		return -EINVAL;
	if (cmd->sq_entries < 2 || cmd->sq_entries > ctrl->max_entries ||
	    cmd->cq_entries < cmd->sq_entries ||
	    cmd->cq_entries > ctrl->max_entries)
		return -EINVAL;
	if ((!cmd->sq_handle && cmd->sq_offset) ||
	    (!cmd->cq_handle && cmd->cq_offset))
		return -EINVAL;
	return nvmep_qp_create_check_mode(ctrl, cmd);
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
	err = nvmep_recover_wait_scanned(file->ctrl);
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
	ucmd->result = filp;
	return 0;
}

static int nvmep_respond_qp_create(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_create *cmd = ucmd->cmd;

	return nvmep_ucmd_respond_file(ucmd, cmd->qp_fd, ucmd->result);
}

static const struct nvmep_ioctl nvmep_peer_ioctls[] = {
	NVMEP_IOCTL(NVME_PEER_INFO, nvme_peer_info, reserved, false,
		    nvmep_ioctl_info, nvmep_ucmd_respond),
	NVMEP_IOCTL(NVME_PEER_ROUTE, nvme_peer_route, doorbell, true,
		    nvmep_ioctl_route, nvmep_ucmd_respond),
	NVMEP_IOCTL(NVME_PEER_BUF_IMPORT, nvme_peer_buf_import, reserved, true,
		    nvmep_ioctl_buf_import, nvmep_respond_buf_import),
	NVMEP_IOCTL(NVME_PEER_BUF_RELEASE, nvme_peer_buf_release, reserved,
		    true, nvmep_ioctl_buf_release, NULL),
	NVMEP_IOCTL(NVME_PEER_BUF_TABLE, nvme_peer_buf_table, ranges, false,
		    nvmep_ioctl_buf_table, nvmep_respond_buf_table),
	NVMEP_IOCTL(NVME_PEER_QP_CREATE, nvme_peer_qp_create, reserved, false,
		    nvmep_ioctl_qp_create, nvmep_respond_qp_create),
	NVMEP_IOCTL(NVME_PEER_BUF_ALLOC, nvme_peer_buf_alloc, reserved, true,
		    nvmep_ioctl_buf_alloc, nvmep_respond_buf_alloc),
	NVMEP_IOCTL(NVME_PEER_EXTENTS, nvme_peer_extents, reserved, true,
		    nvmep_ioctl_extents, nvmep_respond_extents),
};

/**
 * nvmep_peer_ioctl() - run a peer ioctl of the controller node
 * @context: the open file, struct nvmep_peer_file
 * @cmd: the ioctl
 * @arg: the caller's structure
 *
 * Return: 0 or a negative error code.
 */
long nvmep_peer_ioctl(void *context, unsigned int cmd, void __user *arg)
{
	struct nvmep_peer_file *file = context;

	return nvmep_ioctl_dispatch(file->ctrl->peers, nvmep_peer_ioctls,
				    ARRAY_SIZE(nvmep_peer_ioctls), cmd, arg,
				    file);
}
