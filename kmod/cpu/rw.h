/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a read or a write says beside its data pointer, whoever wants it.
 */
#ifndef _NVMEP_RW_H
#define _NVMEP_RW_H

#include "namespace.h"
#include "nvme.h"

/* @blocks, at most 65536, from @first on; @control: NVME_RW_*, for dword 12. */
static inline void nvmep_rw_range(struct nvme_sqe *sqe, u64 first, u32 blocks,
				  u16 control)
{
	sqe->cdw10 = cpu_to_le32(lower_32_bits(first));
	sqe->cdw11 = cpu_to_le32(upper_32_bits(first));
	sqe->cdw12 = cpu_to_le32((u32)control << 16 | (blocks - 1));
}

/*
 * Protection information that the host does not see: PRACT has the controller
 * insert and strip it (NVM command set 5.2.2).  Returns the control bits that say so.
 */
static inline u16 nvmep_rw_protect(struct nvme_sqe *sqe,
				   const struct nvmep_ns *ns, u64 first)
{
	if (!ns->protection)
		return 0;
	if (ns->protection == NVMEP_PROTECTION_TYPE3)
		return NVME_RW_PRACT | NVME_RW_PRCHK_GUARD;
	sqe->cdw14 = cpu_to_le32(lower_32_bits(first));
	return NVME_RW_PRACT | NVME_RW_PRCHK_GUARD | NVME_RW_PRCHK_REF;
}

#endif /* _NVMEP_RW_H */
