/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ioctls whose structures begin with their size.
 */
#ifndef _NVMEP_IOCTL_H
#define _NVMEP_IOCTL_H

#include <linux/stddef.h>
#include <linux/types.h>

struct dma_buf;
struct file;
struct nvme_peer_buf_import;
struct nvme_peer_extents;
struct nvmep_buf;
struct nvmep_ctrl;
struct nvmep_peers;

/**
 * struct nvmep_ucmd - an ioctl in progress
 * @user: the caller's structure
 * @user_size: size of the caller's structure
 * @cmd: kernel copy of the structure, zero beyond @user_size
 * @cmd_size: bytes of @cmd
 * @context: private data of the open file
 * @result: object that .execute created or found, for .respond
 */
struct nvmep_ucmd {
	void __user *user;
	u32 user_size;
	void *cmd;
	u32 cmd_size;
	void *context;
	void *result;
};

/**
 * struct nvmep_ioctl - entry of an ioctl table
 * @number: the ioctl
 * @size: bytes of its structure
 * @min_size: bytes of the first published version of its structure
 * @no_rwsem: the ioctl works without a controller, or calls into other drivers;
 *	it handles unbinding itself
 * @execute: run the ioctl, under peers->ioctl_rwsem for reading unless
 *	@no_rwsem.  Must not access user memory
 * @respond: called without peers->ioctl_rwsem after @execute returned 0: copy
 *	the result out, then publish what was created, or undo it.  May be NULL
 */
struct nvmep_ioctl {
	unsigned int number;
	u16 size;
	u16 min_size;
	bool no_rwsem;
	int (*execute)(struct nvmep_ucmd *ucmd);
	int (*respond)(struct nvmep_ucmd *ucmd);
};

#define NVMEP_IOCTL(_number, _struct, _last, _no_rwsem, _execute, _respond)	\
	{								\
		.number = (_number),					\
		.size = sizeof(struct _struct),				\
		.min_size = offsetofend(struct _struct, _last),		\
		.no_rwsem = (_no_rwsem),				\
		.execute = (_execute),					\
		.respond = (_respond),					\
	}

long nvmep_ioctl_dispatch(struct nvmep_peers *peers,
			  const struct nvmep_ioctl *table, size_t count,
			  unsigned int number, void __user *user, void *context);
int nvmep_buf_import_check(const struct nvmep_ctrl *ctrl,
			   const struct nvme_peer_buf_import *cmd);
struct nvmep_buf *
nvmep_buf_import_checked(struct nvmep_ctrl *ctrl, struct dma_buf *dmabuf,
			 struct nvme_peer_buf_import *cmd,
			 void (*on_invalidate)(struct nvmep_buf *buf));
long nvmep_peer_ioctl(void *context, unsigned int cmd, void __user *arg);
struct file *nvmep_extents_create(struct nvmep_ctrl *ctrl,
				  struct nvme_peer_extents *cmd);
int nvmep_ioctl_begin(struct nvmep_peers *peers);
void nvmep_ioctl_end(struct nvmep_peers *peers);
int nvmep_ucmd_respond(struct nvmep_ucmd *ucmd);
int nvmep_ucmd_respond_file(struct nvmep_ucmd *ucmd, int fd, struct file *filp);

#endif /* _NVMEP_IOCTL_H */
