/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/again.h: reads that were lost, once more.
 */
#ifndef NVMEPEER_DEVICE_AGAIN_H
#define NVMEPEER_DEVICE_AGAIN_H

#include "calls.h"

/**
 * nvmepeer_read_again - nvmepeer_read(), unless that has been done
 * @queue: handle
 * @buffer: data memory
 * @offset: in it, bytes
 * @lba: first logical block
 * @blocks: how many
 * @status: in: what became of this read before, NVMEPEER_E_LOST if nothing did;
 *	out: what has become of it now
 *
 * For a kernel that is launched again after a loss, until none of its statuses is
 * NVMEPEER_E_LOST: what has ended stays as it ended.  There is none for writes.  One
 * that was lost may have been executed, and what others have written to the same
 * blocks since would be undone.
 *
 * Returns *status.
 */
NVMEPEER_FN int nvmepeer_read_again(const struct nvmepeer_queue *queue,
				    const struct nvmepeer_buffer *buffer, uint64_t offset,
				    uint64_t lba, uint32_t blocks, int *status)
{
	if (*status == NVMEPEER_E_LOST)
		*status = nvmepeer_read(queue, buffer, offset, lba, blocks);
	return *status;
}

#endif /* NVMEPEER_DEVICE_AGAIN_H */
