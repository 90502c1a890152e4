/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which CPUs each I/O queue of the CPU serves and interrupts, and the change of
 * their number.
 */
#ifndef _NVMEP_QUEUE_MAP_H
#define _NVMEP_QUEUE_MAP_H

#include <linux/types.h>

struct blk_mq_tag_set;
struct nvmep_ctrl;

void nvmep_map_queues(struct blk_mq_tag_set *tags);
void nvmep_queues_set_affinity(struct nvmep_ctrl *ctrl);
void nvmep_queues_aim(struct nvmep_ctrl *ctrl, unsigned int first,
		      unsigned int count);
int nvmep_queues_live_cpu(struct nvmep_ctrl *ctrl);
bool nvmep_queues_update(struct nvmep_ctrl *ctrl);
int nvmep_queues_split(struct nvmep_ctrl *ctrl, unsigned int count);

#endif /* _NVMEP_QUEUE_MAP_H */
