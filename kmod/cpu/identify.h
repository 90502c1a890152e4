/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Identify data of a namespace: globally unique identifiers, LBA format, queue
 * limits.
 */
#ifndef _NVMEP_IDENTIFY_H
#define _NVMEP_IDENTIFY_H

#include <linux/nvme.h>
#include <linux/types.h>
#include <linux/uuid.h>

struct nvmep_ctrl;
struct nvmep_limits;
struct nvmep_ns;

/**
 * struct nvmep_identifiers - what a scan compares to recognize a namespace
 * @nguid: NGUID, 0 for none
 * @eui64: EUI-64, 0 for none
 * @uuid: UUID, 0 for none
 * @csi: command set identifier, 0 for NVM
 */
struct nvmep_identifiers {
	u8 nguid[16];
	u8 eui64[8];
	uuid_t uuid;
	u8 csi;
};

/*
 * Does the command set have Identify Namespace data with a format of blocks, and
 * the I/O commands of the NVM command set?
 */
static inline bool nvmep_has_blocks(const struct nvmep_identifiers *ids)
{
	return !ids->csi || ids->csi == NVME_CSI_ZNS;
}

int nvmep_identifiers_read(struct nvmep_identifiers *ids,
			   struct nvmep_ctrl *ctrl, u32 nsid,
			   const struct nvmep_identifiers *known);
void nvmep_identifiers_add(struct nvmep_identifiers *ids,
			   const struct nvmep_ctrl *ctrl,
			   const struct nvme_id_ns *id);
bool nvmep_identifiers_clash(const struct nvmep_identifiers *a,
			     const struct nvmep_identifiers *b);
bool nvmep_identifiers_equal(const struct nvmep_identifiers *a,
			     const struct nvmep_identifiers *b);

void nvmep_ns_limits(struct nvmep_limits *limits,
		     const struct nvmep_ctrl *ctrl,
		     const struct nvme_id_ns *id);

bool nvmep_format_valid(const struct nvme_id_ns *id);
bool nvmep_format_usable(const struct nvme_id_ns *id);
u32 nvmep_format_key(const struct nvme_id_ns *id);
bool nvmep_ns_has_format(const struct nvmep_ns *ns,
			 const struct nvme_id_ns *id);
void nvmep_ns_set_format(struct nvmep_ns *ns, const struct nvme_id_ns *id);
sector_t nvmep_ns_sectors(const struct nvme_id_ns *id);

#endif /* _NVMEP_IDENTIFY_H */
