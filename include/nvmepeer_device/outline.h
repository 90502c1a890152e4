/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/outline.h: the calls of a thread as functions that are not
 * inlined, for kernels that compute: a call costs the caller's own loop no
 * registers, because what is live across it is the caller's to keep, and the
 * program holds one copy of the code.  64 registers a thread suffice.
 */
#ifndef NVMEPEER_DEVICE_OUTLINE_H
#define NVMEPEER_DEVICE_OUTLINE_H

/* nvmepeer_call_read - nvmepeer_read(), not inlined. */
NVMEPEER_SLOW_FN int nvmepeer_call_read(const struct nvmepeer_queue *queue,
					const struct nvmepeer_buffer *buffer, uint64_t offset,
					uint64_t lba, uint32_t blocks)
{
	return nvmepeer_read(queue, buffer, offset, lba, blocks);
}

/* nvmepeer_call_write - nvmepeer_write(), not inlined. */
NVMEPEER_SLOW_FN int nvmepeer_call_write(const struct nvmepeer_queue *queue,
					 const struct nvmepeer_buffer *buffer, uint64_t offset,
					 uint64_t lba, uint32_t blocks)
{
	return nvmepeer_write(queue, buffer, offset, lba, blocks);
}

/* nvmepeer_call_submit - nvmepeer_submit(), not inlined. */
NVMEPEER_SLOW_FN int nvmepeer_call_submit(const struct nvmepeer_queue *queue,
					  const struct nvmepeer_command *command,
					  struct nvmepeer_token *token, uint64_t timeout_ns)
{
	return nvmepeer_submit(queue, command, token, timeout_ns);
}

/* nvmepeer_call_wait - nvmepeer_wait() without a result, not inlined. */
NVMEPEER_SLOW_FN int nvmepeer_call_wait(const struct nvmepeer_queue *queue,
					struct nvmepeer_token token, uint64_t timeout_ns)
{
	return nvmepeer_wait(queue, token, NULL, timeout_ns);
}

#endif /* NVMEPEER_DEVICE_OUTLINE_H */
