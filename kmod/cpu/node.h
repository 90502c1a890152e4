/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Device nodes: /dev/nvmepX of controllers, /dev/ngpXnY of namespaces, and the
 * operations of the block devices /dev/nvmepXnY.
 */
#ifndef _NVMEP_NODE_H
#define _NVMEP_NODE_H

struct block_device_operations;
struct nvmep_ctrl;
struct nvmep_ns;

int nvmep_nodes_init(void);
void nvmep_nodes_exit(void);

int nvmep_node_add_ctrl(struct nvmep_ctrl *ctrl);
void nvmep_node_remove_ctrl(struct nvmep_ctrl *ctrl);

int nvmep_node_add_ns(struct nvmep_ns *ns);
void nvmep_node_remove_ns(struct nvmep_ns *ns);

extern const struct block_device_operations nvmep_bdev_ops;

#endif /* _NVMEP_NODE_H */
