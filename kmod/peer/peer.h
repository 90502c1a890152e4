/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one controller and one open controller node know of peers.
 */
#ifndef _NVMEP_PEER_H
#define _NVMEP_PEER_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct dentry;
struct file;
struct nvmep_ctrl;
struct nvmep_peer_ops;
struct p2pdma_provider;
struct workqueue_struct;

/*
 * Kinds of objects that are counted, per controller and for the whole module,
 * so that a test can prove that nothing is left.
 */
enum nvmep_object {
	NVMEP_OBJECT_FILES,	/* open controller nodes and queue pairs' hold on them */
	NVMEP_OBJECT_QPS,
	NVMEP_OBJECT_BUFS,
	NVMEP_OBJECT_EXPORTS,
	NVMEP_OBJECT_IMPORTERS,	/* devices attached to exports */
	NVMEP_OBJECT_MAPS,	/* DMA mappings of exports */
	NVMEP_OBJECT_MMAPS,	/* VMAs of exports */
	NVMEP_OBJECT_PAGES,	/* host pages of rings and status */
	NVMEP_OBJECT_KINDS
};

/**
 * struct nvmep_peers - the peers of one controller
 * @ctrl: const: whose they are; this lives as long
 * @gate: every peer ioctl runs under the read side; taken before all other
 *	locks of the peer rooms
 * @removed: @gate: the driver is being unbound, nothing new may start
 * @lock: guards the lists and what hangs on them; never held over an admin
 *	command, a call into another driver or a copy to user space.  The reset
 *	work takes it
 * @qps: @lock: queue pairs whose file is open
 * @bufs: @lock: buffers with a handle, until unbinding detaches them
 * @attached: buffers that are attached to their exporters
 * @provider: const: the kernel's handle for BAR0, NULL where it has none; used
 *	while not @removed
 * @invalidate_wq: const: runs the invalidate work of buffers
 * @objects: live objects by kind
 *
 * Lock order: gate -> qp->lock -> lock -> qp->state_lock, and
 * gate -> qp->lock -> mmap_lock -> dma_resv.  qp->lock is held over admin
 * commands, which may wait for a reset; the reset takes only lock and
 * state_lock.
 */
struct nvmep_peers {
	struct nvmep_ctrl *ctrl;
	struct rw_semaphore gate;
	bool removed;
	struct mutex lock;	/* @qps, @bufs and what hangs on them */
	struct list_head qps;
	struct list_head bufs;
	atomic_t attached;
	struct p2pdma_provider *provider;
	struct workqueue_struct *invalidate_wq;
	atomic_t objects[NVMEP_OBJECT_KINDS];
};

/**
 * struct nvmep_peer_file - an open controller node
 * @ref: one for the open file, one for each queue pair that was made through
 *	it: their commands may point into its buffers, so the buffers stay
 * @ctrl: const, reference
 * @bufs: peers->lock: buffers by handle
 */
struct nvmep_peer_file {
	struct kref ref;
	struct nvmep_ctrl *ctrl;
	struct xarray bufs;
};

extern const struct nvmep_peer_ops nvmep_peer_ops;

int nvmep_peers_init(struct nvmep_ctrl *ctrl);
void nvmep_peers_exit(struct nvmep_ctrl *ctrl);

void *nvmep_peer_open(struct nvmep_ctrl *ctrl);
void nvmep_peer_release(void *file);
long nvmep_peer_ioctl(void *context, unsigned int cmd, void __user *arg);

void nvmep_peer_file_get(struct nvmep_peer_file *file);
void nvmep_peer_file_put(struct nvmep_peer_file *file);

/**
 * struct nvmep_ucmd - one ioctl in progress
 * @user: the caller's structure
 * @user_size: its size as the caller knows it
 * @cmd: our copy, as long as we know it
 * @cmd_size: bytes of @cmd
 * @context: what the file descriptor stands for
 */
struct nvmep_ucmd {
	void __user *user;
	u32 user_size;
	void *cmd;
	u32 cmd_size;
	void *context;
};

/**
 * struct nvmep_ioctl - one line of an ioctl table
 * @number: the ioctl
 * @size: bytes of its structure as we know it
 * @min_size: bytes of it as first published
 * @when_removed: works on a controller that is gone, too
 * @execute: does it; called under peers->gate for reading
 */
struct nvmep_ioctl {
	unsigned int number;
	u16 size;
	u16 min_size;
	bool when_removed;
	int (*execute)(struct nvmep_ucmd *ucmd);
};

#define NVMEP_IOCTL(_number, _struct, _last, _when_removed, _execute)	\
	{								\
		.number = (_number),					\
		.size = sizeof(struct _struct),				\
		.min_size = offsetofend(struct _struct, _last),		\
		.when_removed = (_when_removed),			\
		.execute = (_execute),					\
	}

long nvmep_ioctl_dispatch(struct nvmep_peers *peers,
			  const struct nvmep_ioctl *table, size_t count,
			  unsigned int number, void __user *user, void *context);
int nvmep_ucmd_respond(struct nvmep_ucmd *ucmd);

void nvmep_count(struct nvmep_peers *peers, enum nvmep_object kind, int change);

void nvmep_peer_debugfs_module(struct dentry *root);
void nvmep_peer_debugfs_init(struct nvmep_ctrl *ctrl, struct dentry *dir);
int nvmep_object_count(const struct nvmep_peers *peers, enum nvmep_object kind);

#endif /* _NVMEP_PEER_H */
