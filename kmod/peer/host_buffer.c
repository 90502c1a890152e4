// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host buffers: host memory that the module allocates for rings and data.
 *
 * Kernels of distributions may have neither udmabuf nor dma-heaps.  The memory
 * belongs to its dma-buf alone: to no open file and to no queue pair.  What
 * imports it, the module included, holds the dma-buf, and so do mappings of
 * processes.
 *
 * The pages are charged to the memory cgroup of the caller by their allocation,
 * and to the calling user as locked memory, in the counter that io_uring
 * charges for registered buffers.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/dma-buf.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>

#include "core/ctrl.h"
#include "export.h"
#include "host_buffer.h"
#include "host_pages.h"
#include "peer.h"

/* --- locked memory ------------------------------------------------------- */

/**
 * nvmep_locked_charge() - count pages as locked memory of the calling user
 * @charged: out: the user with a reference; unchanged if nothing is charged
 * @pages: number of pages
 *
 * No limit applies to a caller with CAP_IPC_LOCK, and nothing is counted.
 *
 * Return: 0, or -ENOBUFS if it exceeds RLIMIT_MEMLOCK.
 */
int nvmep_locked_charge(struct user_struct **charged, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = current_user();
	long locked = atomic_long_read(&user->locked_vm);

	if (ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		return 0;
	do {
		if (locked + pages > limit)
			return -ENOBUFS;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &locked,
					  locked + pages));
	*charged = get_uid(user);
	return 0;
}

/**
 * nvmep_locked_uncharge() - undo nvmep_locked_charge()
 * @charged: the user, NULL if nothing was charged; drops the reference
 * @pages: number of pages
 */
void nvmep_locked_uncharge(struct user_struct *charged, unsigned long pages)
{
	if (!charged)
		return;
	atomic_long_sub(pages, &charged->locked_vm);
	free_uid(charged);
}

/* --- host buffers -------------------------------------------------------- */

/**
 * struct nvmep_host_buffer - host memory and its dma-buf
 * @ref: one of the creation, then one of the dma-buf
 * @ctrl: const, reference: counts the pages
 * @count: const: number of pages
 * @user: const after creation: charged for the locked memory, reference; NULL
 *	if nothing is charged
 * @pages: const after creation
 * @exports: its dma-buf.  Never ended or withdrawn: no reset and no unbinding
 *	takes the memory
 */
struct nvmep_host_buffer {
	struct kref ref;
	struct nvmep_ctrl *ctrl;
	unsigned int count;
	struct user_struct *user;
	struct nvmep_host_pages *pages;
	struct nvmep_exports exports;
};

/* May run long after the driver was unbound.  Frees before it uncharges. */
static void nvmep_host_buffer_free(struct kref *ref)
{
	struct nvmep_host_buffer *buffer =
		container_of(ref, struct nvmep_host_buffer, ref);
	struct nvmep_ctrl *ctrl = buffer->ctrl;

	nvmep_host_pages_free(buffer->pages);
	nvmep_locked_uncharge(buffer->user, buffer->count);
	kfree(buffer);
	nvmep_ctrl_put(ctrl);
}

static struct nvmep_host_buffer *
nvmep_host_buffer_alloc(struct nvmep_ctrl *ctrl, size_t bytes)
{
	struct nvmep_host_buffer *buffer =
		kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);

	if (!buffer)
		return NULL;
	kref_init(&buffer->ref);
	buffer->ctrl = nvmep_ctrl_get(ctrl);
	buffer->count = bytes >> PAGE_SHIFT;
	nvmep_exports_init(&buffer->exports, ctrl, &buffer->ref,
			   nvmep_host_buffer_free);
	return buffer;
}

static struct dma_buf *nvmep_host_buffer_export(struct nvmep_host_buffer *buffer,
						size_t bytes)
{
	struct nvmep_host_pages *pages;
	int err;

	/* Charge first: a caller beyond its limit allocates nothing. */
	err = nvmep_locked_charge(&buffer->user, buffer->count);
	if (err)
		return ERR_PTR(err);
	pages = nvmep_host_pages_alloc_pieces(buffer->ctrl, bytes);
	if (IS_ERR(pages))
		return ERR_CAST(pages);
	buffer->pages = pages;
	return nvmep_export_host_buffer(&buffer->exports, pages);
}

/**
 * nvmep_host_buffer_create() - allocate and charge host memory and export it
 * @ctrl: the controller; the memory is near it
 * @bytes: a multiple of the page size, at most NVME_PEER_BUF_ALLOC_MAX
 *
 * May take long: called without ioctl_rwsem or another lock of this module.
 *
 * Return: the dma-buf with its only reference, or an ERR_PTR: -ENOBUFS if it
 * exceeds RLIMIT_MEMLOCK, -ENOMEM, -EINTR after a fatal signal.
 */
struct dma_buf *nvmep_host_buffer_create(struct nvmep_ctrl *ctrl, size_t bytes)
{
	struct nvmep_host_buffer *buffer = nvmep_host_buffer_alloc(ctrl, bytes);
	struct dma_buf *dmabuf;

	if (!buffer)
		return ERR_PTR(-ENOMEM);
	dmabuf = nvmep_host_buffer_export(buffer, bytes);
	kref_put(&buffer->ref, nvmep_host_buffer_free);
	return dmabuf;
}
