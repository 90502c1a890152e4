/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/noinline.h: the calls of a thread as functions that are not
 * inlined, for kernels that compute.  A call costs the caller's loop no
 * registers, since the calling convention preserves what is live across it, and
 * the program holds one copy of the code.  64 registers a thread suffice.
 */
#ifndef NVMEPEER_DEVICE_NOINLINE_H
#define NVMEPEER_DEVICE_NOINLINE_H

#include "calls.h"
#include "command.h"
#include "compiler.h"
#include "platform.h"
#include "queue.h"

/* nvmepeer_call_read - nvmepeer_read(), not inlined. */
NVP_NOINLINE_FN int nvmepeer_call_read(const struct nvmepeer_queue *queue,
				       const struct nvmepeer_buffer *buffer, uint64_t offset,
				       uint64_t lba, uint32_t blocks)
{
	return nvmepeer_read(queue, buffer, offset, lba, blocks);
}

/* nvmepeer_call_write - nvmepeer_write(), not inlined. */
NVP_NOINLINE_FN int nvmepeer_call_write(const struct nvmepeer_queue *queue,
					const struct nvmepeer_buffer *buffer, uint64_t offset,
					uint64_t lba, uint32_t blocks)
{
	return nvmepeer_write(queue, buffer, offset, lba, blocks);
}

/* nvmepeer_call_submit - nvmepeer_submit(), not inlined. */
NVP_NOINLINE_FN int nvmepeer_call_submit(const struct nvmepeer_queue *queue,
					 const struct nvmepeer_command *command,
					 struct nvmepeer_token *token, uint64_t timeout_ns)
{
	return nvmepeer_submit(queue, command, token, timeout_ns);
}

/* nvmepeer_call_wait - nvmepeer_wait() without a result, not inlined. */
NVP_NOINLINE_FN int nvmepeer_call_wait(const struct nvmepeer_queue *queue,
				       struct nvmepeer_token token, uint64_t timeout_ns)
{
	return nvmepeer_wait(queue, token, NULL, timeout_ns);
}

#endif /* NVMEPEER_DEVICE_NOINLINE_H */
