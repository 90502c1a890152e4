/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All namespaces of a controller at once: whether their I/O flows.
 */
#ifndef _NVMEP_FREEZE_H
#define _NVMEP_FREEZE_H

struct nvmep_ctrl;

/* For the controller: see struct nvmep_cpu_ops. */
void nvmep_namespaces_quiesce(struct nvmep_ctrl *ctrl);
void nvmep_namespaces_unquiesce(struct nvmep_ctrl *ctrl);
void nvmep_namespaces_drain(struct nvmep_ctrl *ctrl);
void nvmep_namespaces_fail(struct nvmep_ctrl *ctrl);

/* For commands that want to be alone; see effects.c. */
void nvmep_namespaces_freeze(struct nvmep_ctrl *ctrl);
void nvmep_namespaces_reread(struct nvmep_ctrl *ctrl);
void nvmep_namespaces_unfreeze(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_FREEZE_H */
