/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I/O whose hardware queue the controller does not grant any more.
 */
#ifndef _NVMEP_MOVED_H
#define _NVMEP_MOVED_H

#include <linux/blk_types.h>

struct nvmep_ctrl;
struct request;

blk_status_t nvmep_moved_add(struct nvmep_ctrl *ctrl, struct request *rq);
void nvmep_moved_submit(struct nvmep_ctrl *ctrl);

#endif /* _NVMEP_MOVED_H */
