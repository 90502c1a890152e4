/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the doorbells of a queue pair are.
 */
#ifndef _NVMEP_DOORBELL_H
#define _NVMEP_DOORBELL_H

#include <linux/types.h>

struct nvmep_ctrl;

/**
 * struct nvmep_doorbell - the whole pages of BAR0 that hold a queue's doorbells
 * @qid: const: whose they are
 * @start: const: offset of the first page in BAR0
 * @length: const: bytes
 * @offset: const: of the tail doorbell in the first page
 * @exportable: const: nothing else lives there that must not be given away
 */
struct nvmep_doorbell {
	u16 qid;
	resource_size_t start;
	u32 length;
	u32 offset;
	bool exportable;
};

void nvmep_doorbell_init(struct nvmep_doorbell *doorbell,
			 const struct nvmep_ctrl *ctrl, u16 qid);

#endif /* _NVMEP_DOORBELL_H */
