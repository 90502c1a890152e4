/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/softgpuN, the node that user programs open. */
#ifndef _SOFTGPU_NODE_H
#define _SOFTGPU_NODE_H

#include <linux/fs.h>

extern const struct file_operations softgpu_fops;

#endif /* _SOFTGPU_NODE_H */
