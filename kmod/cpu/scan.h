/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scanning for namespaces.
 */
#ifndef _NVMEP_SCAN_H
#define _NVMEP_SCAN_H

struct nvmep_cpu;
struct nvmep_ctrl;
struct work_struct;

void nvmep_scan(struct nvmep_ctrl *ctrl);
void nvmep_scan_work(struct work_struct *work);
void nvmep_scan_retry_work(struct work_struct *work);
void nvmep_namespaces_remove(struct nvmep_ctrl *ctrl);
void nvmep_scan_exit(struct nvmep_cpu *cpu);

#endif /* _NVMEP_SCAN_H */
