/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The NVMe protocol as far as this driver uses it, after the NVM Express Base
 * Specification 2.1 and the NVM Command Set Specification 1.1.
 *
 * linux/nvme.h is not used: its names differ from kernel to kernel.
 */
#ifndef _NVMEP_NVME_H
#define _NVMEP_NVME_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/types.h>

/* Controller registers, base 3.1.4. */
#define NVME_REG_CAP		0x00
#define NVME_REG_VS		0x08
#define NVME_REG_CC		0x14
#define NVME_REG_CSTS		0x1c
#define NVME_REG_NSSR		0x20
#define NVME_REG_AQA		0x24
#define NVME_REG_ASQ		0x28
#define NVME_REG_ACQ		0x30
#define NVME_REG_CMBSZ		0x3c
#define NVME_REG_CMBMSC		0x50
#define NVME_REG_CRTO		0x68
#define NVME_REG_DOORBELLS	0x1000

#define NVME_CAP_MQES(cap)	((u32)((cap) & 0xffff))
#define NVME_CAP_CQR(cap)	(((cap) >> 16) & 1)
#define NVME_CAP_TIMEOUT(cap)	((u32)(((cap) >> 24) & 0xff))	/* 500 ms units */
#define NVME_CAP_STRIDE(cap)	((u32)(((cap) >> 32) & 0xf))
#define NVME_CAP_NSSRS(cap)	(((cap) >> 36) & 1)
#define NVME_CAP_CSS_ALL(cap)	(((cap) >> 43) & 1)	/* has others than NVM */
#define NVME_CAP_MPSMIN(cap)	((u32)(((cap) >> 48) & 0xf))
#define NVME_CAP_CMBS(cap)	(((cap) >> 57) & 1)
#define NVME_CAP_CRMS_WITH_MEDIA(cap)	(((cap) >> 59) & 1)

#define NVME_CC_ENABLE		BIT(0)
#define NVME_CC_CSS_ALL		(6U << 4)	/* every command set that it has */
#define NVME_CC_SHN_MASK	(3U << 14)
#define NVME_CC_SHN_NORMAL	BIT(14)
#define NVME_CC_IOSQES_64	(6U << 16)
#define NVME_CC_IOCQES_16	(4U << 20)

#define NVME_CSTS_READY		BIT(0)
#define NVME_CSTS_FATAL		BIT(1)
#define NVME_CSTS_SHST_MASK	(3U << 2)
#define NVME_CSTS_SHST_COMPLETE	(2U << 2)
#define NVME_CSTS_NSSRO		BIT(4)
#define NVME_CSTS_PAUSED	BIT(5)
#define NVME_CSTS_GONE		0xffffffffU	/* nobody answers on the bus */

#define NVME_NSSR_RESET		0x4e564d65U	/* "NVMe" */

#define NVME_CMBMSC_CRE		BIT(0)

#define NVME_VERSION(major, minor)	(((major) << 16) | ((minor) << 8))

/* PCI class code of an I/O controller, NVMe over PCIe transport 2.1. */
#define NVME_PCI_CLASS		0x010802

/* Admin command set, base 5. */
#define NVME_ADMIN_DELETE_SQ		0x00
#define NVME_ADMIN_CREATE_SQ		0x01
#define NVME_ADMIN_GET_LOG_PAGE		0x02
#define NVME_ADMIN_DELETE_CQ		0x04
#define NVME_ADMIN_CREATE_CQ		0x05
#define NVME_ADMIN_IDENTIFY		0x06
#define NVME_ADMIN_ABORT		0x08
#define NVME_ADMIN_SET_FEATURES		0x09
#define NVME_ADMIN_ASYNC_EVENT		0x0c
#define NVME_ADMIN_NAMESPACE_MANAGEMENT	0x0d
#define NVME_ADMIN_NAMESPACE_ATTACHMENT	0x15
#define NVME_ADMIN_DOORBELL_CONFIG	0x7c
#define NVME_ADMIN_FORMAT		0x80
#define NVME_ADMIN_SANITIZE		0x84

/* NVM command set 3. */
#define NVME_CMD_FLUSH			0x00
#define NVME_CMD_WRITE			0x01
#define NVME_CMD_READ			0x02
#define NVME_CMD_COMPARE		0x05
#define NVME_CMD_WRITE_ZEROES		0x08
#define NVME_CMD_DATASET_MANAGEMENT	0x09
#define NVME_CMD_VERIFY			0x0c

#define NVME_OPCODE_TO_CTRL		BIT(0)	/* data goes to the controller */

/* Identify, base 5.1.13. */
#define NVME_IDENTIFY_NAMESPACE		0x00
#define NVME_IDENTIFY_CTRL		0x01
#define NVME_IDENTIFY_NAMESPACE_LIST	0x02
#define NVME_IDENTIFY_DESCRIPTORS	0x03
#define NVME_IDENTIFY_CS_NAMESPACE	0x05
#define NVME_IDENTIFY_CS_CTRL		0x06
#define NVME_IDENTIFY_CS_INDEPENDENT	0x08

#define NVME_IDENTIFY_SIZE		4096
#define NVME_NAMESPACE_LIST_LENGTH	1024
#define NVME_NSID_ALL			0xffffffffU

/* Features, base 5.1.25. */
#define NVME_FEATURE_NUM_QUEUES		0x07
#define NVME_FEATURE_ASYNC_EVENT	0x0b
#define NVME_FEATURE_APST		0x0c
#define NVME_FEATURE_HOST_MEMORY	0x0d
#define NVME_FEATURE_TIMESTAMP		0x0e
#define NVME_FEATURE_KEEP_ALIVE		0x0f
#define NVME_FEATURE_HOST_BEHAVIOR	0x16

/* Log pages, base 5.1.12. */
#define NVME_LOG_CHANGED_NAMESPACES	0x04
#define NVME_LOG_EFFECTS		0x05

/* Asynchronous events, base 5.1.2. */
#define NVME_EVENT_TYPE(result)		((result) & 0x7)
#define NVME_EVENT_INFO(result)		(((result) >> 8) & 0xff)
#define NVME_EVENT_LOG(result)		(((result) >> 16) & 0xff)
#define NVME_EVENT_TYPE_ERROR		0
#define NVME_EVENT_TYPE_NOTICE		2
#define NVME_EVENT_ERROR_DOORBELL	0x00	/* of a queue that is not there */
#define NVME_EVENT_ERROR_DOORBELL_VALUE	0x01
#define NVME_EVENT_ERROR_PERSISTENT	0x03
#define NVME_EVENT_NOTICE_NAMESPACES	0x00
#define NVME_EVENT_NOTICE_FIRMWARE	0x01
#define NVME_EVENT_CONFIG_NAMESPACES	BIT(8)
#define NVME_EVENT_CONFIG_FIRMWARE	BIT(9)
#define NVME_EVENT_CONFIG_CRITICAL	0x1f

/* Status codes, base 4.2.3: type << 8 | code, with the bits of the CQE. */
#define NVME_STATUS_MASK		0x7ff
#define NVME_STATUS_TYPE(status)	(((status) >> 8) & 0x7)
#define NVME_STATUS_CODE(status)	((status) & 0xff)
#define NVME_STATUS_DNR			0x4000
#define NVME_SC_SUCCESS			0x000
#define NVME_SC_INVALID_OPCODE		0x001
#define NVME_SC_INVALID_FIELD		0x002
#define NVME_SC_INVALID_NAMESPACE	0x00b
#define NVME_SC_LBA_RANGE		0x080
#define NVME_SC_CAPACITY_EXCEEDED	0x081
#define NVME_SC_NAMESPACE_NOT_READY	0x082
#define NVME_SC_RESERVATION_CONFLICT	0x083
#define NVME_SC_READ_ONLY		0x182
#define NVME_SC_ONCS_UNSUPPORTED	0x183
#define NVME_SC_WRITE_FAULT		0x280
#define NVME_SC_READ_ERROR		0x281
#define NVME_SC_GUARD_CHECK		0x282
#define NVME_SC_APPTAG_CHECK		0x283
#define NVME_SC_REFTAG_CHECK		0x284
#define NVME_SC_COMPARE_FAILED		0x285
#define NVME_SC_UNWRITTEN		0x287
#define NVME_SC_HOST_PATH_ERROR		0x370
#define NVME_SC_HOST_ABORTED		0x371

/* Command dword 0 and the read/write dwords. */
#define NVME_RW_MAX_BLOCKS		65536U	/* NLB has 16 bits and counts from 0 */
#define NVME_RW_LIMITED_RETRY		BIT(15)
#define NVME_RW_FUA			BIT(14)
#define NVME_RW_PRACT			BIT(13)
#define NVME_RW_PRCHK_GUARD		BIT(12)
#define NVME_RW_PRCHK_REF		BIT(10)
#define NVME_RW_DSM_PREFETCH		7	/* access frequency: speculative read */
#define NVME_WRITE_ZEROES_DEALLOCATE	BIT(9)	/* of the control half word */
#define NVME_DSM_DEALLOCATE		BIT(2)
#define NVME_DSM_MAX_RANGES		256
#define NVME_QUEUE_CONTIGUOUS		BIT(0)
#define NVME_CQ_INTERRUPT		BIT(1)

#define NVME_SQE_SGL	0x40	/* flags: data by SGL, metadata in one piece */

/* struct nvme_id_ctrl.sgls: taken, anywhere or at dwords */
#define NVME_CTRL_SGLS_MASK	0x3

/**
 * struct nvme_sqe - submission queue entry, base 3.3.3.1
 * @opcode: command
 * @flags: fused operation and PSDT
 * @cid: command identifier, unique in its queue
 * @nsid: namespace
 * @cdw2: command specific
 * @cdw3: command specific
 * @mptr: metadata pointer
 * @prp1: data pointer, first half
 * @prp2: data pointer, second half
 * @cdw10: command specific
 * @cdw11: command specific
 * @cdw12: command specific
 * @cdw13: command specific
 * @cdw14: command specific
 * @cdw15: command specific
 */
struct nvme_sqe {
	u8 opcode;
	u8 flags;
	__le16 cid;
	__le32 nsid;
	__le32 cdw2;
	__le32 cdw3;
	__le64 mptr;
	__le64 prp1;
	__le64 prp2;
	__le32 cdw10;
	__le32 cdw11;
	__le32 cdw12;
	__le32 cdw13;
	__le32 cdw14;
	__le32 cdw15;
};

static_assert(sizeof(struct nvme_sqe) == 64);

/**
 * struct nvme_cqe - completion queue entry, base 3.3.3.2
 * @result: command specific, dwords 0 and 1
 * @sq_head: entries of the SQ that the controller has fetched
 * @sq_id: the SQ
 * @cid: of the command
 * @status: status << 1 | phase tag
 */
struct nvme_cqe {
	__le64 result;
	__le16 sq_head;
	__le16 sq_id;
	__le16 cid;
	__le16 status;
};

static_assert(sizeof(struct nvme_cqe) == 16);

/**
 * struct nvme_dsm_range - one range of Dataset Management, NVM 3.2.3
 * @attributes: hints
 * @blocks: length
 * @slba: first block
 */
struct nvme_dsm_range {
	__le32 attributes;
	__le32 blocks;
	__le64 slba;
};

static_assert(sizeof(struct nvme_dsm_range) == 16);

/* Identify Controller, base 5.1.13.2.1; only fields in use have names. */
struct nvme_id_ctrl {
	__le16 vid;
	__le16 ssvid;
	char serial[20];
	char model[40];
	char firmware[8];
	u8 rab;
	u8 ieee[3];
	u8 cmic;
	u8 mdts;
	__le16 cntlid;
	__le32 version;
	__le32 rtd3r;
	__le32 rtd3e;
	__le32 oaes;
	__le32 ctratt;
	u8 reserved100[11];
	u8 cntrltype;
	u8 fguid[16];
	u8 reserved128[128];
	__le16 oacs;
	u8 acl;
	u8 aerl;
	u8 frmw;
	u8 lpa;
	u8 elpe;
	u8 npss;
	u8 reserved264[2];
	__le16 wctemp;
	__le16 cctemp;
	__le16 mtfa;
	u8 reserved272[240];
	u8 sqes;
	u8 cqes;
	__le16 maxcmd;
	__le32 nn;
	__le16 oncs;
	__le16 fuses;
	u8 fna;
	u8 vwc;
	u8 reserved526[10];
	__le32 sgls;
	u8 reserved540[228];
	char subnqn[256];
	u8 reserved1024[782];
	u8 dctype;
	u8 reserved1807[2289];
};

static_assert(sizeof(struct nvme_id_ctrl) == NVME_IDENTIFY_SIZE);
static_assert(offsetof(struct nvme_id_ctrl, oacs) == 256);
static_assert(offsetof(struct nvme_id_ctrl, mtfa) == 270);
static_assert(offsetof(struct nvme_id_ctrl, sqes) == 512);
static_assert(offsetof(struct nvme_id_ctrl, subnqn) == 768);
static_assert(offsetof(struct nvme_id_ctrl, dctype) == 1806);

#define NVME_CTRL_LPA_EFFECTS		BIT(1)
#define NVME_CTRL_ONCS_DSM		BIT(2)
#define NVME_CTRL_ONCS_WRITE_ZEROES	BIT(3)
#define NVME_CTRL_ONCS_TIMESTAMP	BIT(6)
#define NVME_CTRL_CTRATT_ELBAS		BIT(15)	/* extended LBA formats */
#define NVME_CTRL_VWC_PRESENT		BIT(0)

/**
 * struct nvme_host_behavior - Host Behavior Support, base 5.1.25
 * @acre: 1: the host waits as long as a status asks it to
 * @etdas: 1: it understands extended telemetry
 * @lbafee: 1: it understands extended LBA formats
 * @reserved: 0
 */
struct nvme_host_behavior {
	u8 acre;
	u8 etdas;
	u8 lbafee;
	u8 reserved[509];
};

static_assert(sizeof(struct nvme_host_behavior) == 512);

/* Identify Controller for the NVM command set, NVM 4.1.5.3. */
struct nvme_id_ctrl_nvm {
	u8 vsl;
	u8 wzsl;
	u8 wusl;
	u8 dmrl;
	__le32 dmrsl;
	__le64 dmsl;
	u8 reserved16[4080];
};

static_assert(sizeof(struct nvme_id_ctrl_nvm) == NVME_IDENTIFY_SIZE);

/* One LBA format, NVM 4.1.5.1. */
struct nvme_lba_format {
	__le16 metadata_size;
	u8 data_shift;
	u8 relative_performance;
};

/* Identify Namespace for the NVM command set, NVM 4.1.5.1. */
struct nvme_id_ns {
	__le64 nsze;
	__le64 ncap;
	__le64 nuse;
	u8 nsfeat;
	u8 nlbaf;
	u8 flbas;
	u8 mc;
	u8 dpc;
	u8 dps;
	u8 nmic;
	u8 rescap;
	u8 fpi;
	u8 dlfeat;
	__le16 nawun;
	__le16 nawupf;
	__le16 nacwu;
	__le16 nabsn;
	__le16 nabo;
	__le16 nabspf;
	__le16 noiob;
	u8 nvmcap[16];
	__le16 npwg;
	__le16 npwa;
	__le16 npdg;
	__le16 npda;
	__le16 nows;
	u8 reserved74[25];
	u8 nsattr;
	u8 reserved100[4];
	u8 nguid[16];
	u8 eui64[8];
	struct nvme_lba_format lbaf[64];
	u8 vendor[3712];
};

static_assert(sizeof(struct nvme_id_ns) == NVME_IDENTIFY_SIZE);
static_assert(offsetof(struct nvme_id_ns, nguid) == 104);
static_assert(offsetof(struct nvme_id_ns, lbaf) == 128);

#define NVME_NS_FLBAS_EXTENDED		BIT(4)
#define NVME_NS_FEAT_ATOMICS		BIT(1)
#define NVME_NS_FEAT_OPTIMAL_IO		BIT(4)
#define NVME_NS_DPS_PI_MASK		0x7
#define NVME_NS_ATTR_READ_ONLY		BIT(0)
#define NVME_NS_DLFEAT_READ_MASK	0x7	/* what deallocated blocks read as */
#define NVME_NS_DLFEAT_READ_ZEROES	1
#define NVME_NS_DLFEAT_DEALLOCATE	BIT(3)	/* Write Zeroes may deallocate */

/* Namespace Identification Descriptor, base 5.1.13.2.4. */
struct nvme_ns_descriptor {
	u8 type;
	u8 length;
	__le16 reserved;
};

#define NVME_NS_DESCRIPTOR_EUI64	1
#define NVME_NS_DESCRIPTOR_NGUID	2
#define NVME_NS_DESCRIPTOR_UUID		3
#define NVME_NS_DESCRIPTOR_CSI		4

/* Error Information log page, base 5.1.12.1.2: the newest error comes first. */
struct nvme_error_entry {
	__le64 count;		/* of errors so far, 0: no entry */
	__le16 sqid;		/* NVME_ERROR_NO_QUEUE: none in particular */
	__le16 cid;
	__le16 status;
	u8 reserved14[50];
};

static_assert(sizeof(struct nvme_error_entry) == 64);

#define NVME_ERROR_NO_QUEUE		0xffff

/* Commands Supported and Effects log page, base 5.1.12.1.6. */
struct nvme_effects_log {
	__le32 admin[256];
	__le32 io[256];
	u8 reserved[2048];
};

static_assert(sizeof(struct nvme_effects_log) == 4096);

#define NVME_EFFECT_SUPPORTED		BIT(0)
#define NVME_EFFECT_CONTENT		BIT(1)	/* LBCC: changes user data */
#define NVME_EFFECT_NS_CAPABILITY	BIT(2)	/* NCC */
#define NVME_EFFECT_NS_INVENTORY	BIT(3)	/* NIC */
#define NVME_EFFECT_EXCLUSIVE_MASK	(7U << 16)	/* CSE: wants to be alone */
#define NVME_EFFECT_UUID_SELECT		BIT(19)
#define NVME_EFFECT_SCOPE_MASK		(0xfffU << 20)

#endif /* _NVMEP_NVME_H */
