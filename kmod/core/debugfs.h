/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * debugfs: nvme-peer/ of the module and nvme-peer/nvmepX/ of each controller.
 */
#ifndef _NVMEP_DEBUGFS_H
#define _NVMEP_DEBUGFS_H

struct dentry;
struct nvmep_ctrl;

struct dentry *nvmep_debugfs_init(void);
void nvmep_debugfs_exit(void);
void nvmep_debugfs_add(struct nvmep_ctrl *ctrl);
void nvmep_debugfs_remove(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_DEBUGFS_H */
