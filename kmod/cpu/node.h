/* SPDX-License-Identifier: GPL-2.0-only */
/* Character devices: /dev/nvmepX of controllers, /dev/ngpXnY of namespaces. */
#ifndef _NVMEP_NODE_H
#define _NVMEP_NODE_H

struct nvmep_ctrl;
struct nvmep_ns_ops;

int nvmep_nodes_init(void);
void nvmep_nodes_exit(void);

int nvmep_node_add_ctrl(struct nvmep_ctrl *ctrl);
void nvmep_node_remove_ctrl(struct nvmep_ctrl *ctrl);

extern const struct nvmep_ns_ops nvmep_node_ns_ops;

#endif /* _NVMEP_NODE_H */
