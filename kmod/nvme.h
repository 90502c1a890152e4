/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parts of the NVM Express Base Specification 2.1 and of the NVM Command Set
 * Specification 1.1 that this driver uses and linux/nvme.h does not define.
 * They are named NVMEP_*, so that no definition of a newer kernel collides with
 * them.  compat.h defines what only older kernels lack.
 */
#ifndef _NVMEP_NVME_H
#define _NVMEP_NVME_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/nvme.h>
#include <linux/types.h>

#include "compat.h"

/* The sizes that CC.IOSQES and CC.IOCQES set, and those of the admin queues. */
static_assert(sizeof(struct nvme_command) == 64);
static_assert(sizeof(struct nvme_completion) == 16);

/* Controller registers, base 3.1.4. */
#define NVMEP_CAP_CQR(cap)	(((cap) >> 16) & 1)
#define NVMEP_CMBSZ_MAX_UNIT	6	/* CMBSZ.SZU: greater values are reserved */
#define NVMEP_CSTS_GONE		0xffffffffU	/* all ones: the bus does not respond */

#define NVMEP_OPCODE_TO_CTRL	BIT(0)	/* data goes to the controller */

/* Commands Supported and Effects log, base 5.1.12.1.6: relaxations of CSE. */
#define NVMEP_CMD_EFFECTS_CSER_MASK	GENMASK(15, 14)

/* Entries of an Active Namespace ID list, base 5.1.13.2.2. */
#define NVMEP_NAMESPACE_LIST_LENGTH	1024

/* Asynchronous events, base 5.1.2. */
#define NVMEP_EVENT_TYPE(result)	((result) & 0x7)
#define NVMEP_EVENT_INFO(result)	(((result) >> 8) & 0xff)
#define NVMEP_EVENT_LOG(result)		(((result) >> 16) & 0xff)
#define NVMEP_EVENT_ERROR_DOORBELL	0x00	/* of a queue that does not exist */
#define NVMEP_EVENT_ERROR_DOORBELL_VALUE	0x01
#define NVMEP_EVENT_CONFIG_CRITICAL	0x1f

#define NVMEP_STATUS_MORE	0x2000	/* see the Error Information log page */
#define NVMEP_SCT_PATH	3		/* status code type: path errors */

/* SQID of an Error Information log entry: error of no queue, base 5.1.12.1.2. */
#define NVMEP_ERROR_NO_QUEUE	0xffff

#define NVMEP_RW_MAX_BLOCKS	65536U	/* NLB has 16 bits and is 0-based */

/* struct nvme_id_ns.dlfeat, NVM 4.1.5.1 */
#define NVMEP_NS_DLFEAT_READ_MASK	0x7	/* value read from deallocated blocks */
#define NVMEP_NS_DLFEAT_READ_ZEROES	1
#define NVMEP_NS_DLFEAT_DEALLOCATE	BIT(3)	/* Write Zeroes may deallocate */

/* Reservation commands, base 7.2 to 7.5: dword 10. */
#define NVMEP_RESERVATION_IGNORE_KEY	BIT(3)
#define NVMEP_RESERVATION_RTYPE_SHIFT	8
#define NVMEP_REGISTER_KEY		0
#define NVMEP_REGISTER_REMOVE_KEY	1
#define NVMEP_REGISTER_REPLACE_KEY	2
#define NVMEP_REGISTER_PERSIST		GENMASK(31, 30)	/* through power loss */
#define NVMEP_ACQUIRE			0
#define NVMEP_ACQUIRE_PREEMPT		1
#define NVMEP_ACQUIRE_PREEMPT_ABORT	2
#define NVMEP_RELEASE			0
#define NVMEP_RELEASE_CLEAR		1
/* Of Reservation Report: dword 11. */
#define NVMEP_REPORT_EXTENDED		BIT(0)

/*
 * Reservation Status data structure: the header, and registrants, which all
 * have the size of the header.  Those of the extended one are longer.
 */
struct nvmep_reservation {
	__le32 generation;
	u8 type;
	__le16 registrants;
	u8 reserved[17];
} __packed;

#define NVMEP_REGISTRANT_HOLDS	BIT(0)

struct nvmep_registrant {
	__le16 cntlid;
	u8 status;
	u8 reserved[5];
	__le64 host;
	__le64 key;
};

struct nvmep_registrant_extended {
	__le16 cntlid;
	u8 status;
	u8 reserved[5];
	__le64 key;
	u8 host[16];
	u8 reserved2[32];
};

static_assert(sizeof(struct nvmep_reservation) == 24);
static_assert(sizeof(struct nvmep_registrant) == 24);
static_assert(sizeof(struct nvmep_registrant_extended) == 64);

/*
 * CIDs in queue entries.  linux/nvme.h declares them without a byte order, as a
 * controller only returns them.  They are little-endian here, because Abort and
 * the Error Information log page have CIDs too.
 */
static inline __u16 nvmep_command_id(u16 cid)
{
	return (__force __u16)cpu_to_le16(cid);
}

static inline u16 nvmep_cid(__u16 command_id)
{
	return le16_to_cpu((__force __le16)command_id);
}

#endif /* _NVMEP_NVME_H */
