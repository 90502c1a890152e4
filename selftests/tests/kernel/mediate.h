/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kmod/peer/mediate.c needs of the kernel and of the module, for unit-mediate and fuzz_mediate, in
 * addition to what kmod/core/prp_sgl.c needs, which builds its PRP lists.
 */
#ifndef SELFTESTS_MEDIATE_H
#define SELFTESTS_MEDIATE_H

#include <string.h>

#include "prp.h"

#define SZ_64K			0x10000
#define cpu_to_le32(x)		htole32(x)
#define le32_to_cpu(x)		le32toh(x)
#define lower_32_bits(x)	((u32)(x))
#define upper_32_bits(x)	((u32)((x) >> 32))
#define fallthrough		__attribute__((__fallthrough__))

/* No speculation to prevent. */
#define array_index_nospec(index, size)	((void)(size), (index))

/* kmod/nvme.h */
enum nvme_opcode {
	nvme_cmd_flush = 0x00,
	nvme_cmd_write = 0x01,
	nvme_cmd_read = 0x02,
	nvme_cmd_write_zeroes = 0x08,
};

enum {
	NVME_RW_LR = 1 << 15,
	NVME_RW_FUA = 1 << 14,
	NVME_SC_INVALID_OPCODE = 0x001,
	NVME_SC_INVALID_FIELD = 0x002,
	NVME_SC_DATA_XFER_ERROR = 0x004,
	NVME_SC_INTERNAL = 0x006,
	NVME_SC_INVALID_NS = 0x00b,
	NVME_SC_PRP_INVALID_OFFSET = 0x013,
	NVME_SC_LBA_RANGE = 0x080,
	NVME_SC_READ_ONLY = 0x182,
	NVME_SC_ACCESS_DENIED = 0x286,
	NVME_STATUS_DNR = 0x4000,
};

#endif /* SELFTESTS_MEDIATE_H */
