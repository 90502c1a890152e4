/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What becomes of queue pairs when their controller stops, and how they come back.
 */
#ifndef _NVMEP_RECOVER_H
#define _NVMEP_RECOVER_H

#include <linux/types.h>

struct nvmep_ctrl;
struct nvmep_qp;
struct nvmep_watch;

void nvmep_recover_stopped(struct nvmep_ctrl *ctrl);
void nvmep_recover_outdated(struct nvmep_ctrl *ctrl);
void nvmep_recover_restarted(struct nvmep_ctrl *ctrl, u32 generation);
void nvmep_recover_given_up(struct nvmep_ctrl *ctrl);
void nvmep_recover_look(struct nvmep_watch *watch);
int nvmep_recover_rearm(struct nvmep_qp *qp, u32 losses);

#endif /* _NVMEP_RECOVER_H */
