/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Host buffers: host memory that the module allocates for rings and data.
 */
#ifndef _NVMEP_HOST_BUFFER_H
#define _NVMEP_HOST_BUFFER_H

#include <linux/types.h>

struct dma_buf;
struct nvmep_ctrl;
struct user_struct;

struct dma_buf *nvmep_host_buffer_create(struct nvmep_ctrl *ctrl, size_t bytes);

int nvmep_locked_charge(struct user_struct **charged, unsigned long pages);
void nvmep_locked_uncharge(struct user_struct *charged, unsigned long pages);

#endif /* _NVMEP_HOST_BUFFER_H */
