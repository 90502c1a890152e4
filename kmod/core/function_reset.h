/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The PCI function is reset, by reset work.
 */
#ifndef _NVMEP_FUNCTION_RESET_H
#define _NVMEP_FUNCTION_RESET_H

struct nvmep_ctrl;

int nvmep_ctrl_reset_function(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_FUNCTION_RESET_H */
