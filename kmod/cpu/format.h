/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The format of a namespace's blocks; NVM command set 4.1.5.1.
 */
#ifndef _NVMEP_FORMAT_H
#define _NVMEP_FORMAT_H

#include <linux/types.h>

struct nvme_id_ns;
struct nvmep_ns;

bool nvmep_format_possible(const struct nvme_id_ns *id);
bool nvmep_format_usable(const struct nvme_id_ns *id);
unsigned int nvmep_format_block_size(const struct nvme_id_ns *id);
bool nvmep_format_zeroes_deallocate(const struct nvme_id_ns *id);
bool nvmep_ns_has_format(const struct nvmep_ns *ns, const struct nvme_id_ns *id);
void nvmep_ns_set_format(struct nvmep_ns *ns, const struct nvme_id_ns *id);
sector_t nvmep_ns_sectors(const struct nvme_id_ns *id);

#endif /* _NVMEP_FORMAT_H */
