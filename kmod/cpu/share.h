/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many queues the CPU keeps for itself.
 */
#ifndef _NVMEP_SHARE_H
#define _NVMEP_SHARE_H

struct nvmep_ctrl;

unsigned int nvmep_share(struct nvmep_ctrl *ctrl);
int nvmep_share_change(struct nvmep_ctrl *ctrl, unsigned int count);

#endif /* _NVMEP_SHARE_H */
