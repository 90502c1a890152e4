/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asynchronous events of the controller.
 */
#ifndef _NVMEP_EVENTS_H
#define _NVMEP_EVENTS_H

struct nvme_cqe;
struct nvmep_ctrl;
struct nvmep_queue;

void nvmep_events_init(struct nvmep_ctrl *ctrl);
void nvmep_events_enable(struct nvmep_ctrl *ctrl);
void nvmep_events_entry(struct nvmep_queue *queue, const struct nvme_cqe *cqe,
			struct io_comp_batch *batch);

#endif /* _NVMEP_EVENTS_H */
