/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ioctls whose structures begin with their size.
 */
#ifndef _NVMEP_IOCTL_H
#define _NVMEP_IOCTL_H

#include <linux/stddef.h>
#include <linux/types.h>

struct file;
struct nvmep_peers;

/**
 * struct nvmep_ucmd - one ioctl in progress
 * @user: the caller's structure
 * @user_size: its size as the caller knows it
 * @cmd: our copy, as long as we know it
 * @cmd_size: bytes of @cmd
 * @context: what the file descriptor stands for
 * @made: what the handler has made or found, for its answer
 */
struct nvmep_ucmd {
	void __user *user;
	u32 user_size;
	void *cmd;
	u32 cmd_size;
	void *context;
	void *made;
};

/**
 * struct nvmep_ioctl - one line of an ioctl table
 * @number: the ioctl
 * @size: bytes of its structure as we know it
 * @min_size: bytes of it as first published
 * @ungated: works on a controller that is gone, too, or calls into other drivers,
 *	for which nobody shall wait, and sees to unbinding itself
 * @execute: does it; called under peers->gate for reading, unless @ungated.
 *	Touches no user memory
 * @answer: called without the gate after @execute returned 0: copies out, then
 *	makes what was made reachable, or undoes it.  NULL if there is no answer
 */
struct nvmep_ioctl {
	unsigned int number;
	u16 size;
	u16 min_size;
	bool ungated;
	int (*execute)(struct nvmep_ucmd *ucmd);
	int (*answer)(struct nvmep_ucmd *ucmd);
};

#define NVMEP_IOCTL(_number, _struct, _last, _ungated, _execute, _answer)	\
	{								\
		.number = (_number),					\
		.size = sizeof(struct _struct),				\
		.min_size = offsetofend(struct _struct, _last),		\
		.ungated = (_ungated),					\
		.execute = (_execute),					\
		.answer = (_answer),					\
	}

long nvmep_ioctl_dispatch(struct nvmep_peers *peers,
			  const struct nvmep_ioctl *table, size_t count,
			  unsigned int number, void __user *user, void *context);
int nvmep_gate_enter(struct nvmep_peers *peers);
void nvmep_gate_leave(struct nvmep_peers *peers);
int nvmep_ucmd_respond(struct nvmep_ucmd *ucmd);
int nvmep_ucmd_respond_file(struct nvmep_ucmd *ucmd, int fd, struct file *filp);

#endif /* _NVMEP_IOCTL_H */
