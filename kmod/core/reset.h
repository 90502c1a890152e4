/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Through a reset, into service, out of it.
 */
#ifndef _NVMEP_RESET_H
#define _NVMEP_RESET_H

#include <linux/types.h>

struct nvmep_ctrl;

void nvmep_reset_init(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset_sync(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_reset_subsystem(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_share(struct nvmep_ctrl *ctrl, unsigned int count);
bool nvmep_ctrl_hold(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_resume_reset(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_go_live(struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_freeze(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_thaw(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_shutdown(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_give_up(struct nvmep_ctrl *ctrl, const char *why, int ret);

#endif /* _NVMEP_RESET_H */
