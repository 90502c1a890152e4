// SPDX-License-Identifier: GPL-2.0-only
/*
 * Self-encrypting disks: TCG Opal.  The kernel's sed-opal has the protocol and
 * keeps the keys to unlock a disk after sleep; this file gives it Security Send
 * and Security Receive, base specification 5.1.23 and 5.1.24.
 */
#include <linux/ioctl.h>
#include <linux/sched/mm.h>
#include <linux/sed-opal.h>

#include "core/admin.h"
#include "core/ctrl.h"
#include "cpu.h"
#include "opal.h"

#define NVMEP_OPAL_TRIES	3

/* Returns as nvmep_admin_execute(); @data is the controller. */
static int nvmep_opal_transfer(void *data, u16 specific, u8 protocol,
			       void *buffer, size_t length, bool send)
{
	struct nvmep_admin_command command = {
		.sqe.common.opcode = send ? nvme_admin_security_send :
					    nvme_admin_security_recv,
		.sqe.common.cdw10 = cpu_to_le32((u32)protocol << 24 |
						(u32)specific << 8),
		.sqe.common.cdw11 = cpu_to_le32(length),
		.buffer = buffer,
		.length = length,
	};
	struct nvmep_ctrl *ctrl = data;
	int ret;

	ret = nvmep_admin_execute(ctrl, &command);
	if (ret >= 0)
		WRITE_ONCE(ctrl->cpu->opal_answered, true);
	return ret;
}

/**
 * nvmep_opal_add() - find out whether a controller supports Opal
 * @ctrl: controller; called by scan work only
 *
 * Sends one command, and again in a later scan if there was no answer: a reset
 * has ended it, or memory was short.  A controller that never answers is reset,
 * so it is asked a few times only.
 */
void nvmep_opal_add(struct nvmep_ctrl *ctrl)
{
	struct nvmep_cpu *cpu = ctrl->cpu;

	if (READ_ONCE(cpu->opal_answered) ||
	    cpu->opal_tries == NVMEP_OPAL_TRIES ||
	    !(le16_to_cpu(ctrl->id->oacs) & NVME_CTRL_OACS_SEC_SUPP))
		return;
	cpu->opal_tries++;
	/* Publish: ioctls may use it from now on.  READ_ONCE() pairs. */
	smp_store_release(&cpu->opal, init_opal_dev(ctrl, nvmep_opal_transfer));
}

/**
 * nvmep_opal_unlock() - unlock a disk that was without power during sleep
 * @ctrl: started controller, before I/O is resumed
 *
 * Unlocks the ranges whose keys the administrator has saved (IOC_OPAL_SAVE).
 */
void nvmep_opal_unlock(struct nvmep_ctrl *ctrl)
{
	if (opal_unlock_from_suspend(READ_ONCE(ctrl->cpu->opal)))
		dev_warn(ctrl->dev, "Opal: a range was not unlocked after sleep\n");
}

/* Is the disk still to be unlocked after sleep? */
static bool nvmep_opal_locked(const struct nvmep_ctrl *ctrl)
{
	return nvmep_ctrl_state(ctrl) == NVMEP_CTRL_RESETTING &&
	       test_bit(NVMEP_CTRL_SLEPT, &ctrl->flags);
}

/* Returns as sed_ioctl(), or -ERESTARTSYS after a fatal signal. */
int nvmep_opal_ioctl(struct nvmep_ctrl *ctrl, unsigned int cmd,
		     void __user *arg)
{
	unsigned int memflags;
	int ret;

	/*
	 * Reset work unlocks the disk after sleep, for which it waits for an
	 * ioctl, and I/O waits for reset work.  An ioctl may fault in user
	 * memory under its lock, so none begins before that.  None is under way
	 * when sleep begins, since tasks are frozen then.
	 */
	ret = wait_event_killable(ctrl->state_wait, !nvmep_opal_locked(ctrl));
	if (ret)
		return ret;
	memflags = memalloc_noio_save();
	ret = sed_ioctl(READ_ONCE(ctrl->cpu->opal), cmd, arg);
	memalloc_noio_restore(memflags);
	return ret;
}
