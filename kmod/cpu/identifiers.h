/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * By what a namespace is told from every other in the world.
 */
#ifndef _NVMEP_IDENTIFIERS_H
#define _NVMEP_IDENTIFIERS_H

#include <linux/types.h>
#include <linux/uuid.h>

struct nvme_id_ns;
struct nvmep_ctrl;

/**
 * struct nvmep_identifiers - what a namespace says of itself
 * @nguid: globally unique identifier, 0 for none
 * @eui64: likewise
 * @uuid: likewise
 * @csi: its command set, 0 for NVM: what its commands are
 */
struct nvmep_identifiers {
	u8 nguid[16];
	u8 eui64[8];
	uuid_t uuid;
	u8 csi;
};

int nvmep_identifiers_read(struct nvmep_identifiers *ids,
			   struct nvmep_ctrl *ctrl, u32 nsid);
void nvmep_identifiers_add(struct nvmep_identifiers *ids,
			   const struct nvmep_ctrl *ctrl,
			   const struct nvme_id_ns *id);
bool nvmep_identifiers_equal(const struct nvmep_identifiers *a,
			     const struct nvmep_identifiers *b);

#endif /* _NVMEP_IDENTIFIERS_H */
