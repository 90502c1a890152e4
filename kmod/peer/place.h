/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where memory that was mapped for the controller really lies.
 */
#ifndef _NVMEP_PLACE_H
#define _NVMEP_PLACE_H

#include <linux/types.h>

#include "route.h"

struct nvmep_ctrl;
struct nvmep_segments;

/**
 * struct nvmep_place - whose memory it is, and the way there
 * @owner: the function that it lies in, if it lies in one
 * @path: how the controller reaches it
 */
struct nvmep_place {
	struct nvme_peer_pci_address owner;
	struct nvme_peer_path path;
};

int nvmep_place_find(struct nvmep_place *place, const struct nvmep_ctrl *ctrl,
		     const struct nvmep_segments *segments);

#endif /* _NVMEP_PLACE_H */
