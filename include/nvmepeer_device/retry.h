/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/retry.h: retry reads that were lost with the queue pair,
 * after its re-arm.
 */
#ifndef NVMEPEER_DEVICE_RETRY_H
#define NVMEPEER_DEVICE_RETRY_H

#include "calls.h"
#include "nvme.h"
#include "platform.h"
#include "queue.h"

/**
 * nvmepeer_read_retry - nvmepeer_read(), unless it has completed before
 * @queue: the queue pair
 * @buffer: data memory
 * @offset: byte offset in @buffer
 * @lba: first logical block
 * @blocks: number of blocks
 * @status: in: the status of this read so far, NVMEPEER_E_LOST if it was never
 *	submitted; out: its status now
 *
 * For a kernel that is launched again after a loss, until none of its statuses
 * is NVMEPEER_E_LOST; reads that have completed keep their status.  There is no
 * such call for writes: a lost write may have been executed, and its retry
 * would undo what others have written to the same blocks since.
 *
 * Returns *status.
 */
NVP_FN int nvmepeer_read_retry(const struct nvmepeer_queue *queue,
			       const struct nvmepeer_buffer *buffer, uint64_t offset,
			       uint64_t lba, uint32_t blocks, int *status)
{
	if (*status == NVMEPEER_E_LOST)
		*status = nvmepeer_read(queue, buffer, offset, lba, blocks);
	return *status;
}

#endif /* NVMEPEER_DEVICE_RETRY_H */
