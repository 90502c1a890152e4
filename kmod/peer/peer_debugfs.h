/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the peer rooms show in debugfs.
 */
#ifndef _NVMEP_PEER_DEBUGFS_H
#define _NVMEP_PEER_DEBUGFS_H

struct dentry;
struct nvmep_ctrl;

void nvmep_peer_debugfs_module(struct dentry *root);
void nvmep_peer_debugfs_init(struct nvmep_ctrl *ctrl, struct dentry *dir);

#endif /* _NVMEP_PEER_DEBUGFS_H */
