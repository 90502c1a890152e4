/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stopping a controller and making sure that it has stopped.
 */
#ifndef _NVMEP_STOP_H
#define _NVMEP_STOP_H

#include <linux/types.h>

struct nvmep_ctrl;

void nvmep_ctrl_stop_locked(struct nvmep_ctrl *ctrl, bool shutdown);
void nvmep_ctrl_stop(struct nvmep_ctrl *ctrl, bool shutdown);
void nvmep_ctrl_fence(struct nvmep_ctrl *ctrl, u32 generation);
void nvmep_ctrl_tell_stopped(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_STOP_H */
