/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fault_inject/ in debugfs: commands that complete with a status that the
 * administrator sets, by the files of the in-tree driver.
 */
#ifndef _NVMEP_FAULT_INJECT_H
#define _NVMEP_FAULT_INJECT_H

#include <linux/fault-inject.h>
#include <linux/types.h>

struct dentry;

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
/**
 * struct nvmep_fault_inject - faults of the commands of one request queue
 * @attr: which of them fail; the fault injection framework has its files
 * @parent: directory below that of debugfs; const while the files exist
 * @opcode: fail these only, unless above 0xff; debugfs sets this and the two
 *	members below, READ_ONCE()
 * @status: NVMe status of a command that fails
 * @dont_retry: with Do Not Retry (DNR)
 */
struct nvmep_fault_inject {
	struct fault_attr attr;
	struct dentry *parent;
	u16 opcode;
	u16 status;
	bool dont_retry;
};

void nvmep_fault_inject_add(struct nvmep_fault_inject *fault, const char *name);
void nvmep_fault_inject_remove(struct nvmep_fault_inject *fault);
bool nvmep_fault_exempt(u8 opcode);
u16 nvmep_fault_inject_status(struct nvmep_fault_inject *fault, u8 opcode,
			      u16 status);
#else
struct nvmep_fault_inject {
};

static inline void nvmep_fault_inject_add(struct nvmep_fault_inject *fault,
					  const char *name)
{
}

static inline void nvmep_fault_inject_remove(struct nvmep_fault_inject *fault)
{
}
#endif

#endif /* _NVMEP_FAULT_INJECT_H */
