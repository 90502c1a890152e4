// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file of a queue pair: events, exports, ioctls, poll().
 *
 * Events are kept in a ring of NVMEP_MAX_EVENTS entries.  A new event
 * overwrites the oldest one, and the next read reports how many were lost.  The
 * state itself is in the status page and in NVME_PEER_QP_INFO.
 */
#include <linux/anon_inodes.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "core/ctrl.h"
#include "export.h"
#include "host_pages.h"
#include "import.h"
#include "ioctl.h"
#include "mediated.h"
#include "qp.h"

/* --- events -------------------------------------------------------------- */

static bool nvmep_qp_events_pending(struct nvmep_qp_events *events)
{
	bool wait;

	spin_lock(&events->lock);
	wait = events->first != events->next;
	spin_unlock(&events->lock);
	return wait;
}

/* Has the last event been added?  It may have been read already. */
static bool nvmep_qp_events_ended(struct nvmep_qp_events *events)
{
	bool ended;

	spin_lock(&events->lock);
	ended = events->ended;
	spin_unlock(&events->lock);
	return ended;
}

/*
 * Copies the oldest event without consuming it.  Returns 1, 0 if there is none
 * and none will follow, or -EAGAIN.
 */
static int nvmep_qp_events_peek(struct nvmep_qp_events *events,
				struct nvme_peer_event *event, u32 *number)
{
	int ret = 1;

	spin_lock(&events->lock);
	if (events->first != events->next) {
		*number = events->first;
		*event = events->ring[*number % NVMEP_MAX_EVENTS];
		event->lost = events->lost;
	} else {
		ret = events->ended ? 0 : -EAGAIN;
	}
	spin_unlock(&events->lock);
	return ret;
}

/*
 * Consumes an event after its delivery.  If it was overwritten in between, it
 * was counted as lost: undo that.
 */
static void nvmep_qp_events_pop(struct nvmep_qp_events *events,
				const struct nvme_peer_event *event, u32 number)
{
	spin_lock(&events->lock);
	if (events->first == number)
		events->first++;
	else
		events->lost--;
	events->lost -= event->lost;
	spin_unlock(&events->lock);
}

/* Locks against other readers. */
static int nvmep_qp_events_lock(struct nvmep_qp_events *events, bool wait)
{
	if (!wait)
		return mutex_trylock(&events->reader) ? 0 : -EAGAIN;
	if (mutex_lock_interruptible(&events->reader))
		return -ERESTARTSYS;
	return 0;
}

/*
 * Copies events to user space.  Returns the bytes of the events that were
 * consumed; 0 if none is left and none will follow; -EAGAIN if there is none;
 * -EINVAL if @size is below NVME_PEER_EVENT_LEAST; -EFAULT; -EAGAIN while there
 * is another reader and @wait is false; -ERESTARTSYS if a signal interrupted the
 * wait for it.  A reader that was compiled for shorter events gets the beginning
 * of one.
 */
static ssize_t nvmep_qp_events_read(struct nvmep_qp *qp, char __user *user,
				    size_t size, bool wait)
{
	struct nvmep_qp_events *events = &qp->events;
	struct nvme_peer_event event;
	ssize_t done = 0;
	u32 number;
	int ret;

	if (size < NVME_PEER_EVENT_LEAST)
		return -EINVAL;

	ret = nvmep_qp_events_lock(events, wait);
	if (ret)
		return ret;
	do {
		ret = nvmep_qp_events_peek(events, &event, &number);
		if (ret <= 0)
			break;
		event.size = min(size - done, sizeof(event));
		if (copy_to_user(user + done, &event, event.size)) {
			ret = -EFAULT;
			break;
		}
		nvmep_qp_events_pop(events, &event, number);
		done += event.size;
	} while (size - done >= sizeof(event));
	mutex_unlock(&events->reader);
	/* A reader that may not wait may have been refused meanwhile. */
	if (nvmep_qp_events_pending(events))
		nvmep_qp_wake(qp);
	return done ? done : ret;
}

/* --- exports ------------------------------------------------------------- */

static int nvmep_qp_export_check(const struct nvmep_qp *qp,
				 enum nvme_peer_export what)
{
	switch (what) {
	case NVME_PEER_EXPORT_SQ:
		return qp->sq.host ? 0 : -ENODATA;
	case NVME_PEER_EXPORT_CQ:
		return qp->cq.host ? 0 : -ENODATA;
	case NVME_PEER_EXPORT_DOORBELL:
		return qp->doorbell.exportable ? 0 : -EOPNOTSUPP;
	case NVME_PEER_EXPORT_STATUS:
	case NVME_PEER_EXPORT_CONTROL:
		return 0;
	}
	return -EINVAL;
}

static struct dma_buf *nvmep_qp_export(struct nvmep_qp *qp,
				       enum nvme_peer_export what,
				       bool allow_static)
{
	int err = nvmep_qp_export_check(qp, what);

	if (err)
		return ERR_PTR(err);
	if (!nvmep_qp_usable(qp))
		return ERR_PTR(-ESHUTDOWN);
	if (nvmep_qp_rearmable(qp))
		return ERR_PTR(-EAGAIN);

	switch (what) {
	case NVME_PEER_EXPORT_SQ:
		return nvmep_export_ring(&qp->exports, qp->sq.host);
	case NVME_PEER_EXPORT_CQ:
		return nvmep_export_ring(&qp->exports, qp->cq.host);
	case NVME_PEER_EXPORT_DOORBELL:
		if (qp->relay.page)
			return nvmep_export_ring(&qp->exports, qp->relay.page);
		return nvmep_export_doorbell(&qp->exports, &qp->doorbell,
					     allow_static);
	case NVME_PEER_EXPORT_CONTROL:
		return nvmep_export_ring(&qp->exports, qp->control_page);
	default:
		return nvmep_export_status(&qp->exports, qp->status_page);
	}
}

static u32 nvmep_qp_doorbell_stride(const struct nvmep_qp *qp)
{
	return qp->relay.page ? NVMEP_RELAY_STRIDE : qp->ctrl->doorbell_stride;
}

/* Offset and length of the object in its dma-buf. */
static void nvmep_qp_export_geometry(const struct nvmep_qp *qp,
				     enum nvme_peer_export what, __u64 *offset,
				     __u64 *length)
{
	*offset = 0;
	switch (what) {
	case NVME_PEER_EXPORT_SQ:
		*length = qp->sq.bytes;
		break;
	case NVME_PEER_EXPORT_CQ:
		*length = qp->cq.bytes;
		break;
	case NVME_PEER_EXPORT_DOORBELL:
		*offset = qp->doorbell.offset;
		*length = nvmep_qp_doorbell_stride(qp) + sizeof(u32);
		break;
	case NVME_PEER_EXPORT_STATUS:
	case NVME_PEER_EXPORT_CONTROL:
		*length = PAGE_SIZE;
		break;
	}
}

/* --- ioctls -------------------------------------------------------------- */

static int nvmep_qp_ioctl_export(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_export *cmd = ucmd->cmd;
	bool allow_static = cmd->flags & NVME_PEER_EXPORT_ALLOW_STATIC;
	struct nvmep_qp *qp = ucmd->context;
	struct dma_buf *dmabuf;

	if (cmd->flags & ~NVME_PEER_EXPORT_ALLOW_STATIC || cmd->reserved ||
	    (allow_static && cmd->what != NVME_PEER_EXPORT_DOORBELL))
		return -EINVAL;
	if (allow_static && qp->no_static)
		return -EACCES;

	dmabuf = nvmep_qp_export(qp, cmd->what, allow_static);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);

	cmd->fd = get_unused_fd_flags(O_CLOEXEC);
	if (cmd->fd < 0) {
		dma_buf_put(dmabuf);
		return cmd->fd;
	}
	nvmep_qp_export_geometry(qp, cmd->what, &cmd->offset, &cmd->length);
	cmd->kind = cmd->what == NVME_PEER_EXPORT_DOORBELL && qp->relay.page ?
		    NVME_PEER_KIND_MEMORY : NVME_PEER_KIND_REGISTER;
	ucmd->result = dmabuf->file;
	return 0;
}

static int nvmep_qp_respond_export(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_export *cmd = ucmd->cmd;

	return nvmep_ucmd_respond_file(ucmd, cmd->fd, ucmd->result);
}

static int nvmep_qp_ioctl_info(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_info *cmd = ucmd->cmd;
	struct nvmep_qp *qp = ucmd->context;

	if (cmd->flags)
		return -EINVAL;

	mutex_lock(&qp->ctrl->peers->lock);
	cmd->state = nvmep_qp_user_state(qp);
	cmd->reason = qp->reason;
	cmd->generation = qp->generation;
	cmd->losses = qp->losses;
	cmd->cpu_doorbell_writes = qp->state == NVMEP_QP_REVOKED ?
		qp->doorbell_writes : nvmep_qp_count_doorbells(qp);
	mutex_unlock(&qp->ctrl->peers->lock);
	cmd->qid = qp->qid;
	cmd->mode = qp->mode;
	cmd->sq_entries = qp->sq_entries;
	cmd->cq_entries = qp->cq_entries;
	cmd->doorbell_stride = nvmep_qp_doorbell_stride(qp);
	cmd->doorbell_offset = qp->doorbell.offset;
	cmd->doorbell_length = qp->doorbell.length;
	cmd->exports = atomic_read(&qp->exports.count);
	cmd->importers = atomic_read(&qp->exports.importers);
	cmd->mmaps = atomic_read(&qp->exports.mmaps);
	cmd->sq_pci_address = qp->sq.owner;
	cmd->cq_pci_address = qp->cq.owner;
	return 0;
}

static int nvmep_qp_ioctl_rearm(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_rearm *cmd = ucmd->cmd;

	if (cmd->flags || cmd->reserved)
		return -EINVAL;
	return nvmep_recover_rearm(ucmd->context, cmd->losses);
}

static int nvmep_qp_ioctl_kick(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_kick *cmd = ucmd->cmd;
	struct nvmep_qp *qp = ucmd->context;

	if (cmd->flags)
		return -EINVAL;
	if (!qp->relay.poller)
		return -EOPNOTSUPP;
	nvmep_poller_kick(qp->relay.poller);
	return 0;
}

/* --- ioctls of mediated queue pairs --- */

static struct nvmep_tenant *nvmep_ucmd_tenant(const struct nvmep_ucmd *ucmd)
{
	const struct nvmep_qp *qp = ucmd->context;

	return qp->tenant;
}

static int nvmep_qp_ioctl_window_add(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_window_add *cmd = ucmd->cmd;
	struct nvmep_tenant *tenant = nvmep_ucmd_tenant(ucmd);

	if (cmd->flags)
		return -EINVAL;
	return tenant ? nvmep_tenant_window_add(tenant, cmd) : -EOPNOTSUPP;
}

static int nvmep_qp_respond_window_add(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_window_add *cmd = ucmd->cmd;
	int err = nvmep_ucmd_respond(ucmd);

	if (err)
		nvmep_tenant_window_remove(nvmep_ucmd_tenant(ucmd), cmd->id);
	return err;
}

static int nvmep_qp_ioctl_window_remove(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_window_remove *cmd = ucmd->cmd;
	struct nvmep_tenant *tenant = nvmep_ucmd_tenant(ucmd);

	if (cmd->flags || cmd->reserved)
		return -EINVAL;
	return tenant ? nvmep_tenant_window_remove(tenant, cmd->id) :
			-EOPNOTSUPP;
}

static int nvmep_qp_ioctl_window_info(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_window_info *cmd = ucmd->cmd;
	struct nvmep_tenant *tenant = nvmep_ucmd_tenant(ucmd);

	if (cmd->flags)
		return -EINVAL;
	return tenant ? nvmep_tenant_window_info(tenant, cmd) : -EOPNOTSUPP;
}

static int nvmep_qp_ioctl_buf_add(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_add *cmd = ucmd->cmd;
	struct nvmep_tenant *tenant = nvmep_ucmd_tenant(ucmd);

	if (cmd->flags || cmd->reserved)
		return -EINVAL;
	if (!tenant)
		return -EOPNOTSUPP;
	ucmd->result = nvmep_tenant_buf_add(tenant, cmd);
	return PTR_ERR_OR_ZERO(ucmd->result);
}

static int nvmep_qp_respond_buf_add(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_add *cmd = ucmd->cmd;
	int err = nvmep_ucmd_respond(ucmd);

	if (err)
		nvmep_tenant_buf_remove(nvmep_ucmd_tenant(ucmd), cmd->slot,
					ucmd->result);
	nvmep_buf_put(ucmd->result);
	return err;
}

static int nvmep_qp_ioctl_buf_remove(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_buf_remove *cmd = ucmd->cmd;
	struct nvmep_tenant *tenant = nvmep_ucmd_tenant(ucmd);

	if (cmd->flags || cmd->reserved)
		return -EINVAL;
	return tenant ? nvmep_tenant_buf_remove(tenant, cmd->slot, NULL) :
			-EOPNOTSUPP;
}

static int nvmep_qp_ioctl_limits(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_limits *cmd = ucmd->cmd;
	struct nvmep_tenant *tenant = nvmep_ucmd_tenant(ucmd);

	if (cmd->flags)
		return -EINVAL;
	if (!tenant)
		return -EOPNOTSUPP;
	nvmep_tenant_limits(tenant, cmd);
	return 0;
}

static int nvmep_qp_ioctl_stats(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_stats *cmd = ucmd->cmd;
	struct nvmep_tenant *tenant = nvmep_ucmd_tenant(ucmd);

	if (cmd->flags)
		return -EINVAL;
	if (!tenant)
		return -EOPNOTSUPP;
	nvmep_tenant_stats(tenant, cmd);
	return 0;
}

static int nvmep_qp_ioctl_seal(struct nvmep_ucmd *ucmd)
{
	struct nvme_peer_qp_seal *cmd = ucmd->cmd;
	struct nvmep_tenant *tenant = nvmep_ucmd_tenant(ucmd);

	if (cmd->flags)
		return -EINVAL;
	if (!tenant)
		return -EOPNOTSUPP;
	nvmep_tenant_seal(tenant);
	return 0;
}

static const struct nvmep_ioctl nvmep_qp_ioctls[] = {
	NVMEP_IOCTL(NVME_PEER_QP_EXPORT, nvme_peer_qp_export, reserved, false,
		    nvmep_qp_ioctl_export, nvmep_qp_respond_export),
	NVMEP_IOCTL(NVME_PEER_QP_INFO, nvme_peer_qp_info, cpu_doorbell_writes,
		    true, nvmep_qp_ioctl_info, nvmep_ucmd_respond),
	NVMEP_IOCTL(NVME_PEER_QP_REARM, nvme_peer_qp_rearm, reserved, false,
		    nvmep_qp_ioctl_rearm, NULL),
	NVMEP_IOCTL(NVME_PEER_WINDOW_ADD, nvme_peer_window_add, rights, true,
		    nvmep_qp_ioctl_window_add, nvmep_qp_respond_window_add),
	NVMEP_IOCTL(NVME_PEER_WINDOW_REMOVE, nvme_peer_window_remove, reserved,
		    true, nvmep_qp_ioctl_window_remove, NULL),
	NVMEP_IOCTL(NVME_PEER_WINDOW_INFO, nvme_peer_window_info, in_flight,
		    true, nvmep_qp_ioctl_window_info, nvmep_ucmd_respond),
	NVMEP_IOCTL(NVME_PEER_BUF_ADD, nvme_peer_buf_add, reserved, true,
		    nvmep_qp_ioctl_buf_add, nvmep_qp_respond_buf_add),
	NVMEP_IOCTL(NVME_PEER_BUF_REMOVE, nvme_peer_buf_remove, reserved, true,
		    nvmep_qp_ioctl_buf_remove, NULL),
	NVMEP_IOCTL(NVME_PEER_QP_KICK, nvme_peer_qp_kick, flags, true,
		    nvmep_qp_ioctl_kick, NULL),
	NVMEP_IOCTL(NVME_PEER_QP_LIMITS, nvme_peer_qp_limits, sealed, true,
		    nvmep_qp_ioctl_limits, nvmep_ucmd_respond),
	NVMEP_IOCTL(NVME_PEER_QP_STATS, nvme_peer_qp_stats, busy_ns, true,
		    nvmep_qp_ioctl_stats, nvmep_ucmd_respond),
	NVMEP_IOCTL(NVME_PEER_QP_SEAL, nvme_peer_qp_seal, flags, true,
		    nvmep_qp_ioctl_seal, NULL),
};

static long nvmep_qp_file_ioctl(struct file *filp, unsigned int number,
				unsigned long arg)
{
	struct nvmep_qp *qp = filp->private_data;

	return nvmep_ioctl_dispatch(qp->ctrl->peers, nvmep_qp_ioctls,
				    ARRAY_SIZE(nvmep_qp_ioctls), number,
				    (void __user *)arg, qp);
}

static __poll_t nvmep_qp_file_poll(struct file *filp, poll_table *wait)
{
	struct nvmep_qp *qp = filp->private_data;
	__poll_t mask = 0;

	poll_wait(filp, &qp->waiters, wait);
	if (nvmep_qp_events_pending(&qp->events))
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLPRI;
	/* Not before the event that reports the end can be read. */
	if (nvmep_qp_events_ended(&qp->events))
		mask |= EPOLLHUP;
	return mask;
}

static ssize_t nvmep_qp_file_read(struct file *filp, char __user *user,
				  size_t size, loff_t *unused)
{
	bool wait = !(filp->f_flags & O_NONBLOCK);
	struct nvmep_qp *qp = filp->private_data;
	ssize_t read;
	int err;

	for (;;) {
		read = nvmep_qp_events_read(qp, user, size, wait);
		if (read != -EAGAIN || !wait)
			return read;
		/* Another reader may have consumed the event: check again. */
		err = wait_event_interruptible(qp->waiters,
					       nvmep_qp_events_pending(&qp->events) ||
					       nvmep_qp_events_ended(&qp->events));
		if (err)
			return err;
	}
}

/* For tools that read /proc/PID/fdinfo. */
static void nvmep_qp_file_fdinfo(struct seq_file *seq, struct file *filp)
{
	struct nvmep_qp *qp = filp->private_data;

	seq_printf(seq, "controller:\tnvmep%d\nqid:\t%u\nstate:\t%u\n",
		   qp->ctrl->instance, qp->qid, (u32)nvmep_qp_user_state(qp));
}

static int nvmep_qp_file_release(struct inode *inode, struct file *filp)
{
	nvmep_qp_release(filp->private_data);
	return 0;
}

static const struct file_operations nvmep_qp_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = nvmep_qp_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = nvmep_qp_file_poll,
	.read = nvmep_qp_file_read,
	.release = nvmep_qp_file_release,
	.show_fdinfo = nvmep_qp_file_fdinfo,
	.llseek = noop_llseek,
};

/**
 * nvmep_qp_file() - create the file of a queue pair
 * @qp: from nvmep_qp_create(); its reference goes to the file on success
 *
 * Return: the file, or an ERR_PTR.
 */
struct file *nvmep_qp_file(struct nvmep_qp *qp)
{
	return anon_inode_getfile("[nvme-peer-qp]", &nvmep_qp_fops, qp, O_RDWR);
}
