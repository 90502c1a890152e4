// SPDX-License-Identifier: GPL-2.0-only
/*
 * The peer ABI on the controller node, and what the controller tells the peer
 * rooms.
 *
 * One table maps an ioctl to its structure's size and its handler.  A handler
 * gets a kernel copy of the structure, checks flags and reserved fields first,
 * and answers with nvmep_ucmd_respond() as its last step that can fail; what it
 * made before is undone if that fails, so a failed call changes nothing.
 *
 * All of them run under the read side of peers->gate.  Unbinding takes the
 * write side once: after that nothing is in progress and nothing new begins,
 * and whatever is on the lists can be taken down.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include <linux/nvme_peer.h>

#include "compat.h"
#include "core/ctrl.h"
#include "import.h"
#include "peer.h"
#include "qp.h"
#include "core/qids.h"
#include "route.h"

/* Highest arbitration class, NVMe base specification, Create I/O SQ, QPRIO. */
#define NVMEP_PRIORITY_LOW	3

/* Arbitration mechanism selected, 0 for round robin. */
#define NVMEP_CC_AMS_MASK	(7U << 11)

static atomic_t nvmep_objects[NVMEP_OBJECT_KINDS];

/**
 * nvmep_count() - an object came or went
 * @peers: the controller's peers
 * @kind: of object
 * @change: how many
 */
void nvmep_count(struct nvmep_peers *peers, enum nvmep_object kind, int change)
{
	atomic_add(change, &peers->objects[kind]);
	atomic_add(change, &nvmep_objects[kind]);
}

/**
 * nvmep_object_count() - how many objects there are
 * @peers: of this controller, NULL for the whole module
 * @kind: of object
 *
 * Return: their number.
 */
int nvmep_object_count(const struct nvmep_peers *peers, enum nvmep_object kind)
{
	return atomic_read(peers ? &peers->objects[kind] : &nvmep_objects[kind]);
}

/* --- dispatch ------------------------------------------------------------ */

/**
 * nvmep_ucmd_respond() - copy the structure back
 * @ucmd: the ioctl in progress
 *
 * Return: 0 or EFAULT.
 */
int nvmep_ucmd_respond(struct nvmep_ucmd *ucmd)
{
	if (copy_to_user(ucmd->user, ucmd->cmd,
			 min(ucmd->user_size, ucmd->cmd_size)))
		return -EFAULT;
	return 0;
}

static const struct nvmep_ioctl *nvmep_ioctl_find(const struct nvmep_ioctl *table,
						  size_t count,
						  unsigned int number)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (table[i].number == number)
			return &table[i];
	return NULL;
}

static int nvmep_ioctl_execute(struct nvmep_peers *peers,
			       const struct nvmep_ioctl *ioctl,
			       struct nvmep_ucmd *ucmd)
{
	int err = -ESHUTDOWN;

	down_read(&peers->gate);
	if (!peers->removed || ioctl->when_removed)
		err = ioctl->execute(ucmd);
	up_read(&peers->gate);
	return err;
}

/**
 * nvmep_ioctl_dispatch() - find an ioctl, fetch its structure, do it
 * @peers: of the controller
 * @table: the ioctls of this kind of file
 * @count: of them
 * @number: the ioctl
 * @user: its structure
 * @context: for the handler
 *
 * Return: 0 or an error: ENOTTY for an unknown one, EINVAL for a structure that
 * is too short, E2BIG for one with something behind what we know.
 */
long nvmep_ioctl_dispatch(struct nvmep_peers *peers,
			  const struct nvmep_ioctl *table, size_t count,
			  unsigned int number, void __user *user, void *context)
{
	const struct nvmep_ioctl *ioctl = nvmep_ioctl_find(table, count, number);
	union {
		struct nvme_peer_info info;
		struct nvme_peer_route route;
		struct nvme_peer_buf_import buf_import;
		struct nvme_peer_buf_release buf_release;
		struct nvme_peer_buf_table buf_table;
		struct nvme_peer_qp_create qp_create;
		struct nvme_peer_qp_export qp_export;
		struct nvme_peer_qp_info qp_info;
	} cmd;
	struct nvmep_ucmd ucmd = {
		.user = user,
		.cmd = &cmd,
		.context = context,
	};
	int err;

	if (!ioctl)
		return -ENOTTY;
	if (get_user(ucmd.user_size, (u32 __user *)user))
		return -EFAULT;
	if (ucmd.user_size < ioctl->min_size)
		return -EINVAL;
	if (ucmd.user_size > PAGE_SIZE)
		return -E2BIG;

	ucmd.cmd_size = ioctl->size;
	err = copy_struct_from_user(&cmd, ioctl->size, user, ucmd.user_size);
	if (err)
		return err;
	return nvmep_ioctl_execute(peers, ioctl, &ucmd);
}

/* --- INFO, ROUTE --------------------------------------------------------- */

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
			    NVME_PEER_FEATURE_BUF_RINGS,
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
		.pci_address = nvmep_pci_address(ctrl->pdev),
		.contiguous_rings = NVME_CAP_CQR(ctrl->cap),
		.cmb_size = ctrl->cmb_size,
	};
	return nvmep_ucmd_respond(ucmd);
}

static int nvmep_route_by_address(struct nvmep_ctrl *ctrl, u32 address,
				  struct nvmep_route *route)
{
	struct pci_dev *pdev;

	pdev = pci_get_domain_bus_and_slot(address >> 16, (address >> 8) & 0xff,
					   address & 0xff);
	if (!pdev)
		return -ENODEV;
	nvmep_route_find(ctrl->pdev, pdev, route);
	pci_dev_put(pdev);
	return 0;
}

/* Imports for a moment: only the exporter can tell where the memory lies. */
static int nvmep_route_by_dmabuf(struct nvmep_peer_file *file, int fd,
				 u32 *address, struct nvmep_route *route)
{
	struct nvmep_buf *buf = nvmep_buf_import(file, fd);

	if (!IS_ERR(buf)) {
		*route = buf->route;
		*address = buf->owner_address;
		nvmep_buf_put(buf);
		return 0;
	}
	if (PTR_ERR(buf) != -EXDEV)
		return PTR_ERR(buf);
	/* The exporter refuses the controller and keeps the reason to itself. */
	nvmep_route_unknown_memory(route);
	*address = NVMEP_NO_PCI_ADDRESS;
	return 0;
}

static int nvmep_ioctl_route(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_route *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;
	struct nvmep_route route = { };
	int err;

	if (cmd->flags & ~NVME_PEER_ROUTE_BY_ADDRESS)
		return -EINVAL;

	if (cmd->flags & NVME_PEER_ROUTE_BY_ADDRESS)
		err = nvmep_route_by_address(file->ctrl, cmd->pci_address,
					     &route);
	else
		err = nvmep_route_by_dmabuf(file, cmd->dmabuf_fd,
					    &cmd->pci_address, &route);
	if (err)
		return err;

	cmd->verdict = route.verdict;
	cmd->reason = route.reason;
	cmd->blocker = route.blocker;
	cmd->blocker_acs = route.blocker_acs;
	return nvmep_ucmd_respond(ucmd);
}

/* --- buffers ------------------------------------------------------------- */

static int nvmep_buf_admit(const struct nvmep_buf *buf, u32 flags)
{
	if (flags & NVME_PEER_BUF_REQUIRE_DEVICE &&
	    buf->route.verdict == NVME_PEER_ROUTE_SYSTEM)
		return -EREMOTEIO;
	if (buf->route.verdict != NVME_PEER_ROUTE_NONE)
		return 0;
	dev_info_ratelimited(buf->ctrl->dev,
			     "dma-buf in function %08x is out of reach: %s (bridge %08x, ACS bits %02x)\n",
			     buf->owner_address,
			     nvmep_route_reason_text(buf->route.reason),
			     buf->route.blocker, buf->route.blocker_acs);
	return -EXDEV;
}

static int nvmep_ioctl_buf_import(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_import *cmd = ucmd->cmd;
	struct nvmep_peer_file *file = ucmd->context;
	struct nvmep_buf *buf;
	int err;

	if (cmd->flags & ~NVME_PEER_BUF_REQUIRE_DEVICE)
		return -EINVAL;

	buf = nvmep_buf_import(file, cmd->dmabuf_fd);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = nvmep_buf_admit(buf, cmd->flags);
	if (err)
		goto put_buf;

	cmd->length = buf->length;
	cmd->segments = buf->segment_count;
	cmd->verdict = buf->route.verdict;
	cmd->reason = buf->route.reason;
	cmd->pci_address = buf->owner_address;
	err = nvmep_buf_publish(file, buf);
	if (err)
		goto put_buf;

	/* Another thread may guess the handle and release it: buf is not ours. */
	cmd->handle = buf->handle;
	err = nvmep_ucmd_respond(ucmd);
	if (err)
		nvmep_buf_release(file, cmd->handle);
	return err;

put_buf:
	nvmep_buf_put(buf);
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
	const struct nvmep_segment *segment = nvmep_buf_segment(buf, offset);
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

static int nvmep_buf_table(struct nvmep_buf *buf, struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_table *cmd = ucmd->cmd;
	u32 page_size = buf->ctrl->page_size;
	int err;

	if (!IS_ALIGNED(cmd->offset, page_size))
		return -EINVAL;
	if (cmd->offset >= buf->length)
		return -ERANGE;
	err = nvmep_buf_expose(buf);
	if (err)
		return err;

	cmd->count = min_t(u64, cmd->count,
			   div_u64(buf->length - cmd->offset, page_size));
	err = nvmep_copy_addresses(buf, cmd->offset,
				   u64_to_user_ptr(cmd->addresses), cmd->count);
	return err ? err : nvmep_ucmd_respond(ucmd);
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
	err = nvmep_buf_table(buf, ucmd);
	nvmep_buf_put(buf);
	return err;
}

/* --- queue pairs --------------------------------------------------------- */

/* Priorities mean something only if CC.AMS is not round robin. */
static bool nvmep_weighted(struct nvmep_ctrl *ctrl)
{
	return readl(ctrl->bar + NVME_REG_CC) & NVMEP_CC_AMS_MASK;
}

static int nvmep_qp_create_check(struct nvmep_ctrl *ctrl,
				 const struct nvme_peer_qp_create *cmd)
{
	if (cmd->flags || cmd->reserved || cmd->mode != NVME_PEER_MODE_DIRECT)
		return -EINVAL;
	if (cmd->priority > NVMEP_PRIORITY_LOW)
		return -EINVAL;
	if (cmd->priority && !nvmep_weighted(ctrl))
		return -EINVAL;
	if (cmd->sq_entries < 2 || cmd->sq_entries > ctrl->max_entries ||
	    cmd->cq_entries < cmd->sq_entries ||
	    cmd->cq_entries > ctrl->max_entries)
		return -EINVAL;
	if ((!cmd->sq_handle && cmd->sq_offset) ||
	    (!cmd->cq_handle && cmd->cq_offset))
		return -EINVAL;
	return capable(CAP_SYS_RAWIO) ? 0 : -EPERM;
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
		nvmep_qp_destroy(qp);
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
		err = PTR_ERR(filp);
		goto put_fd;
	}
	err = nvmep_ucmd_respond(ucmd);
	if (err)
		goto put_file;
	fd_install(cmd->qp_fd, filp);
	return 0;

put_file:
	fput(filp);
put_fd:
	put_unused_fd(cmd->qp_fd);
	return err;
}

static const struct nvmep_ioctl nvmep_peer_ioctls[] = {
	NVMEP_IOCTL(NVME_PEER_INFO, nvme_peer_info, cmb_size, false,
		    nvmep_ioctl_info),
	NVMEP_IOCTL(NVME_PEER_ROUTE, nvme_peer_route, blocker_acs, false,
		    nvmep_ioctl_route),
	NVMEP_IOCTL(NVME_PEER_BUF_IMPORT, nvme_peer_buf_import, pci_address,
		    false, nvmep_ioctl_buf_import),
	NVMEP_IOCTL(NVME_PEER_BUF_RELEASE, nvme_peer_buf_release, reserved,
		    true, nvmep_ioctl_buf_release),
	NVMEP_IOCTL(NVME_PEER_BUF_TABLE, nvme_peer_buf_table, addresses, false,
		    nvmep_ioctl_buf_table),
	NVMEP_IOCTL(NVME_PEER_QP_CREATE, nvme_peer_qp_create, reserved, false,
		    nvmep_ioctl_qp_create),
};

/* --- the open controller node -------------------------------------------- */

/**
 * nvmep_peer_ioctl() - a peer ioctl on the controller node
 * @context: from nvmep_peer_open()
 * @cmd: the ioctl
 * @arg: its structure
 *
 * Return: 0 or an error.
 */
long nvmep_peer_ioctl(void *context, unsigned int cmd, void __user *arg)
{
	struct nvmep_peer_file *file = context;

	return nvmep_ioctl_dispatch(file->ctrl->peers, nvmep_peer_ioctls,
				    ARRAY_SIZE(nvmep_peer_ioctls), cmd, arg,
				    file);
}

/**
 * nvmep_peer_open() - somebody opened the controller node
 * @ctrl: the controller
 *
 * Return: the context for nvmep_peer_ioctl(), or an ERR_PTR.
 */
void *nvmep_peer_open(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peer_file *file;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return ERR_PTR(-ENOMEM);
	kref_init(&file->ref);
	file->ctrl = nvmep_ctrl_get(ctrl);
	xa_init_flags(&file->bufs, XA_FLAGS_ALLOC1);
	nvmep_count(ctrl->peers, NVMEP_OBJECT_FILES, 1);
	return file;
}

/*
 * Neither the node nor a queue pair is left, so no ring is in any buffer and
 * every release succeeds.
 */
static void nvmep_peer_file_free(struct kref *ref)
{
	struct nvmep_peer_file *file =
		container_of(ref, struct nvmep_peer_file, ref);
	struct nvmep_ctrl *ctrl = file->ctrl;
	struct nvmep_buf *buf;
	unsigned long handle;

	xa_for_each(&file->bufs, handle, buf)
		WARN_ON(nvmep_buf_release(file, handle));
	xa_destroy(&file->bufs);
	nvmep_count(ctrl->peers, NVMEP_OBJECT_FILES, -1);
	kfree(file);
	nvmep_ctrl_put(ctrl);
}

/**
 * nvmep_peer_file_get() - hold the buffers of an open controller node
 * @file: the node
 */
void nvmep_peer_file_get(struct nvmep_peer_file *file)
{
	kref_get(&file->ref);
}

/**
 * nvmep_peer_file_put() - let go of them
 * @file: the node
 */
void nvmep_peer_file_put(struct nvmep_peer_file *file)
{
	kref_put(&file->ref, nvmep_peer_file_free);
}

/**
 * nvmep_peer_release() - the controller node was closed
 * @file: from nvmep_peer_open()
 *
 * Its buffers stay until the queue pairs that may use them are closed, too.
 */
void nvmep_peer_release(void *file)
{
	nvmep_peer_file_put(file);
}

/* --- what the controller tells ------------------------------------------- */

/* Takes a buffer off the list, with a reference. */
static struct nvmep_buf *nvmep_buf_next(struct nvmep_peers *peers)
{
	struct nvmep_buf *found = NULL;
	struct nvmep_buf *buf;

	mutex_lock(&peers->lock);
	buf = list_first_entry_or_null(&peers->bufs, struct nvmep_buf, node);
	if (buf) {
		list_del_init(&buf->node);
		kref_get(&buf->ref);
		found = buf;
	}
	mutex_unlock(&peers->lock);
	return found;
}

/*
 * Takes every buffer away from its exporter.  One whose last reference is just
 * being dropped is not on the list any more, but still counts as attached.
 */
static void nvmep_bufs_detach_all(struct nvmep_peers *peers)
{
	struct nvmep_buf *buf;

	while ((buf = nvmep_buf_next(peers))) {
		nvmep_buf_detach(buf);
		nvmep_buf_put(buf);
	}
	wait_var_event(&peers->attached, !atomic_read(&peers->attached));
}

/* Nothing is made again here: only its owner knows what was in flight. */
static void nvmep_peers_restarted(struct nvmep_ctrl *ctrl)
{
	unsigned int failed = nvmep_qp_count_failed(ctrl);

	if (failed)
		dev_info(ctrl->dev,
			 "%u queue pairs of peers were lost; their owners have to make new ones\n",
			 failed);
}

static void nvmep_peers_remove(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;

	down_write(&peers->gate);
	peers->removed = true;
	up_write(&peers->gate);

	/* Dead or alive makes no difference here: the deletion knows. */
	nvmep_qp_kill_all(ctrl, ENODEV);
	nvmep_bufs_detach_all(peers);
}

static bool nvmep_peers_busy(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	bool busy;

	mutex_lock(&peers->lock);
	busy = !list_empty(&peers->qps);
	mutex_unlock(&peers->lock);
	return busy;
}

/* Without peers->lock: an importer's reservation lock lies outside of it. */
static void nvmep_peers_prepare(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = ctrl->peers;
	struct nvmep_qp *qp;

again:
	mutex_lock(&peers->lock);
	list_for_each_entry(qp, &peers->qps, node) {
		if (qp->exports.withdrawn)
			continue;
		qp->exports.withdrawn = true;
		nvmep_qp_get(qp);
		mutex_unlock(&peers->lock);
		nvmep_exports_withdraw(&qp->exports);
		nvmep_qp_put(qp);
		goto again;
	}
	mutex_unlock(&peers->lock);
}

const struct nvmep_peer_ops nvmep_peer_ops = {
	.init = nvmep_peers_init,
	.exit = nvmep_peers_exit,
	.open = nvmep_peer_open,
	.release = nvmep_peer_release,
	.ioctl = nvmep_peer_ioctl,
	.prepare = nvmep_peers_prepare,
	.stopped = nvmep_qp_fail_all,
	.restarted = nvmep_peers_restarted,
	.remove = nvmep_peers_remove,
	.busy = nvmep_peers_busy,
};

/**
 * nvmep_peers_init() - prepare a controller for peers
 * @ctrl: the controller, before anybody can open its node
 *
 * Return: 0 or ENOMEM.
 */
int nvmep_peers_init(struct nvmep_ctrl *ctrl)
{
	struct nvmep_peers *peers = kzalloc(sizeof(*peers), GFP_KERNEL);

	if (!peers)
		return -ENOMEM;
	peers->ctrl = ctrl;
	init_rwsem(&peers->gate);
	mutex_init(&peers->lock);
	INIT_LIST_HEAD(&peers->qps);
	INIT_LIST_HEAD(&peers->bufs);
	peers->invalidate_wq = alloc_workqueue("nvmep%d-invalidate", WQ_UNBOUND,
					       0, ctrl->instance);
	if (!peers->invalidate_wq) {
		kfree(peers);
		return -ENOMEM;
	}
	peers->provider = nvmep_p2p_provider(ctrl->pdev, 0);
	ctrl->peers = peers;
	return 0;
}

/**
 * nvmep_peers_exit() - the last reference to the controller is gone
 * @ctrl: the controller
 */
void nvmep_peers_exit(struct nvmep_ctrl *ctrl)
{
	if (!ctrl->peers)
		return;
	destroy_workqueue(ctrl->peers->invalidate_wq);
	kfree(ctrl->peers);
	ctrl->peers = NULL;
}
