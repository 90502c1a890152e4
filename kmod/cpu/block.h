/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Block I/O: the tag set of the CPU's I/O queues, and block layer requests as
 * NVMe commands.
 */
#ifndef _NVMEP_BLOCK_H
#define _NVMEP_BLOCK_H

#include <linux/types.h>

struct nvmep_ctrl;

int nvmep_block_init(struct nvmep_ctrl *ctrl);
bool nvmep_block_adapt(struct nvmep_ctrl *ctrl);
void nvmep_block_exit(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_BLOCK_H */
