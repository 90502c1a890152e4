/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Block I/O: the tag set of the CPU's I/O queues, block layer requests as NVMe
 * commands, and the requeue list.
 */
#ifndef _NVMEP_BLOCK_H
#define _NVMEP_BLOCK_H

#include <linux/types.h>

#include "namespace.h"
#include "nvme.h"

struct nvmep_ctrl;
struct work_struct;

int nvmep_block_init(struct nvmep_ctrl *ctrl);
void nvmep_block_exit(struct nvmep_ctrl *ctrl);

void nvmep_requeue_submit(struct nvmep_ctrl *ctrl);
void nvmep_requeue_scan_begin(struct nvmep_ctrl *ctrl);
void nvmep_requeue_scan_end(struct nvmep_ctrl *ctrl);
void nvmep_requeue_work(struct work_struct *work);
void nvmep_flush_work(struct work_struct *work);

/* SLBA and NLB; @blocks is 1 to 65536, @control is NVME_RW_* for dword 12. */
static inline void nvmep_rw_range(struct nvme_command *sqe, u64 first,
				  u32 blocks, u16 control)
{
	sqe->common.cdw10 = cpu_to_le32(lower_32_bits(first));
	sqe->common.cdw11 = cpu_to_le32(upper_32_bits(first));
	sqe->common.cdw12 = cpu_to_le32((u32)control << 16 | (blocks - 1));
}

/*
 * With PRACT the controller inserts and strips protection information, so the
 * host has no buffer for it (NVM command set 5.2.2).  Returns the control bits
 * for dword 12.
 */
static inline u16 nvmep_rw_protect(struct nvme_command *sqe,
				   const struct nvmep_ns *ns, u64 first)
{
	if (!ns->protection)
		return 0;
	if (ns->protection == NVMEP_PROTECTION_TYPE3)
		return NVME_RW_PRINFO_PRACT | NVME_RW_PRINFO_PRCHK_GUARD;
	sqe->common.cdw14 = cpu_to_le32(lower_32_bits(first));
	return NVME_RW_PRINFO_PRACT | NVME_RW_PRINFO_PRCHK_GUARD |
	       NVME_RW_PRINFO_PRCHK_REF;
}

#endif /* _NVMEP_BLOCK_H */
