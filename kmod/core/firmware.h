/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * New firmware that a controller activates without a reset.
 */
#ifndef _NVMEP_FIRMWARE_H
#define _NVMEP_FIRMWARE_H

struct nvmep_ctrl;

void nvmep_firmware_activation(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_FIRMWARE_H */
