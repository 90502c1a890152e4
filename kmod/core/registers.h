/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller's registers in BAR0, NVMe base specification 3.1.4.
 */
#ifndef _NVMEP_REGISTERS_H
#define _NVMEP_REGISTERS_H

#include <linux/types.h>

struct nvmep_ctrl;

/* registers.c */
int nvmep_ctrl_map(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_unmap(struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_gone(const struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_present(const struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_csts_failed(const struct nvmep_ctrl *ctrl);
bool nvmep_ctrl_paused(const struct nvmep_ctrl *ctrl);

/* enable.c */
int nvmep_ctrl_end_previous(struct nvmep_ctrl *ctrl);
int nvmep_ctrl_enable(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_disable(struct nvmep_ctrl *ctrl, bool shutdown);
void nvmep_ctrl_mask_intx(struct nvmep_ctrl *ctrl, bool mask);
void nvmep_ctrl_flush(struct nvmep_ctrl *ctrl);
void nvmep_ctrl_reset_by_nssr(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_REGISTERS_H */
