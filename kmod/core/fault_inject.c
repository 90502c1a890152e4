// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection: /sys/kernel/debug/nvmepX/fault_inject for admin commands and
 * /sys/kernel/debug/nvmepXnY/fault_inject for I/O.  Names, places and defaults
 * are those of the in-tree driver, so programs that inject faults need another
 * device name only.
 */
#include <linux/debugfs.h>
#include <linux/fault-inject.h>

#include "compat.h"
#include "fault_inject.h"
#include "nvme.h"

static DECLARE_FAULT_ATTR(nvmep_fault_default);

/**
 * nvmep_fault_inject_add() - create the files of a request queue
 * @fault: its faults; none are injected before the administrator sets some
 * @name: name of the controller or of the disk
 */
void nvmep_fault_inject_add(struct nvmep_fault_inject *fault, const char *name)
{
	struct dentry *dir;

	fault->attr = nvmep_fault_default;
	fault->opcode = U16_MAX;
	fault->status = NVME_SC_INVALID_OPCODE;
	fault->dont_retry = true;
	fault->parent = debugfs_create_dir(name, NULL);
	dir = fault_create_debugfs_attr("fault_inject", fault->parent,
					&fault->attr);
	debugfs_create_x16("opcode", 0600, dir, &fault->opcode);
	debugfs_create_x16("status", 0600, dir, &fault->status);
	debugfs_create_bool("dont_retry", 0600, dir, &fault->dont_retry);
}

/**
 * nvmep_fault_inject_remove() - remove the files of a request queue
 * @fault: its faults; zeroed if the files were never created
 *
 * Commands may still complete: faults that were set stay so.
 */
void nvmep_fault_inject_remove(struct nvmep_fault_inject *fault)
{
	debugfs_remove_recursive(fault->parent);
}

/**
 * nvmep_fault_exempt() - is no fault injected into this admin command?
 * @opcode: of the command
 *
 * The memory of an I/O queue is freed by the status of its creation and
 * deletion, which must be the controller's.  Events still arrive, as with the
 * in-tree driver: AERs are no requests of the block layer, and never asked for
 * here.
 *
 * Return: true for those commands.
 */
bool nvmep_fault_exempt(u8 opcode)
{
	return opcode == nvme_admin_create_sq ||
	       opcode == nvme_admin_create_cq ||
	       opcode == nvme_admin_delete_sq ||
	       opcode == nvme_admin_delete_cq;
}

/**
 * nvmep_fault_inject_status() - status of a command that has completed
 * @fault: faults of its request queue
 * @opcode: of the command
 * @status: NVMe status that the controller has returned
 *
 * Any context.
 *
 * Return: @status, or the status of an injected fault.
 */
u16 nvmep_fault_inject_status(struct nvmep_fault_inject *fault, u8 opcode,
			      u16 status)
{
	u16 only = READ_ONCE(fault->opcode), injected;

	if (only <= U8_MAX && only != opcode)
		return status;
	if (!should_fail(&fault->attr, 1))
		return status;
	/* A fault makes no success of a failure. */
	injected = READ_ONCE(fault->status);
	if (!injected)
		return status;
	if (READ_ONCE(fault->dont_retry))
		injected |= NVME_STATUS_DNR;
	return injected;
}
