/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Starting a controller, and the CPU's queues that the first start allocates.
 */
#ifndef _NVMEP_START_H
#define _NVMEP_START_H

struct nvmep_ctrl;

int nvmep_ctrl_start(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_free_queues(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_START_H */
