/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a controller is told of its host.
 */
#ifndef _NVMEP_HOST_H
#define _NVMEP_HOST_H

struct nvmep_ctrl;

int nvmep_host_introduce(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_HOST_H */
