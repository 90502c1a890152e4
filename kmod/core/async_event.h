/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asynchronous events of the controller (AER, AEN).
 */
#ifndef _NVMEP_ASYNC_EVENT_H
#define _NVMEP_ASYNC_EVENT_H

struct nvme_completion;
struct nvmep_ctrl;
struct nvmep_queue;

void nvmep_async_event_init(struct nvmep_ctrl *ctrl);
int nvmep_async_event_configure(struct nvmep_ctrl *ctrl);
void nvmep_async_event_submit(struct nvmep_ctrl *ctrl);
void nvmep_async_event_handle_cqe(struct nvmep_queue *queue,
				  const struct nvme_completion *cqe,
				  struct io_comp_batch *batch);

#endif /* _NVMEP_ASYNC_EVENT_H */
