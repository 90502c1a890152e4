// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * device.cu: calls of the device library as C functions, compiled once, for
 * programs that do not compile C++, or link device code that is compiled
 * separately.  nvmepeer_device_link.h describes them and the files that they
 * are in.
 *
 * Each call has two names.  nvmepeer_device_* return their value.
 * nvmepeer_numba_* follow the calling convention of Numba for external
 * functions: they store the value through the first argument and return 0,
 * which means that Python raised no exception.
 *
 * The host library that filled a queue may be of another version than this file.
 * Each call reads the layout of its queue, which is in the cache line of its
 * other fields, and returns NVMEPEER_E_LAYOUT before it uses another one.
 */
#include <nvmepeer_device.h>
#include <nvmepeer_device_link.h>

static __device__ __forceinline__ bool is_known(uint64_t queue)
{
	return queue && ((const nvmepeer_queue *)queue)->layout == NVMEPEER_LAYOUT;
}

/* A token as a number: the CID above the ticket, so that it is not negative. */
static __device__ __forceinline__ nvmepeer_token token_of(int64_t number)
{
	nvmepeer_token token = { (uint32_t)((uint64_t)number >> 32), (uint32_t)number };

	return token;
}

extern "C" {
__device__ __noinline__ int nvmepeer_device_read(uint64_t queue, uint64_t buffer, uint64_t offset,
						 uint64_t lba, uint32_t blocks)
{
	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	return nvmepeer_read((const nvmepeer_queue *)queue, (const nvmepeer_buffer *)buffer, offset,
			     lba, blocks);
}

__device__ __noinline__ int nvmepeer_device_write(uint64_t queue, uint64_t buffer, uint64_t offset,
						  uint64_t lba, uint32_t blocks)
{
	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	return nvmepeer_write((const nvmepeer_queue *)queue, (const nvmepeer_buffer *)buffer, offset,
			      lba, blocks);
}

__device__ __noinline__ int64_t nvmepeer_device_submit(uint64_t queue, uint32_t opcode,
						       uint64_t buffer, uint64_t offset,
						       uint64_t lba, uint32_t blocks,
						       uint64_t control)
{
	const nvmepeer_queue *known = (const nvmepeer_queue *)queue;
	nvmepeer_command command = { opcode, blocks, lba, (const nvmepeer_buffer *)buffer, offset,
				     control };
	nvmepeer_token token;
	int status;

	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	status = nvmepeer_submit(known, &command, &token, known->timeout_ns);
	return status ? status : (int64_t)((uint64_t)token.cid << 32 | token.ticket);
}

__device__ __noinline__ int nvmepeer_device_poll(uint64_t queue, int64_t token)
{
	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	if (token < 0)
		return (int)token;
	return nvmepeer_poll((const nvmepeer_queue *)queue, token_of(token), NULL);
}

__device__ __noinline__ int nvmepeer_device_wait(uint64_t queue, int64_t token, uint64_t timeout_ns)
{
	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	if (token < 0)
		return (int)token;
	return nvmepeer_wait((const nvmepeer_queue *)queue, token_of(token), NULL, timeout_ns);
}

__device__ __noinline__ int nvmepeer_device_quiesce(uint64_t queue)
{
	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	return nvmepeer_queue_quiesce((const nvmepeer_queue *)queue);
}

__device__ __noinline__ int nvmepeer_device_check(uint64_t queue)
{
	return is_known(queue) ? nvmepeer_check((const nvmepeer_queue *)queue) :
				 (int)NVMEPEER_E_LAYOUT;
}

__device__ __noinline__ int nvmepeer_device_abandoned(uint64_t queue)
{
	return is_known(queue) ? (int)nvmepeer_abandoned((const nvmepeer_queue *)queue) :
				 (int)NVMEPEER_E_LAYOUT;
}

__device__ __noinline__ uint64_t nvmepeer_device_queue(uint64_t queues, uint32_t index)
{
	return is_known(queues) ? queues + index * sizeof(nvmepeer_queue) : 0;
}

/* The same for Numba. */
__device__ __noinline__ int nvmepeer_numba_read(int *status, uint64_t queue, uint64_t buffer,
						uint64_t offset, uint64_t lba, uint32_t blocks)
{
	*status = nvmepeer_device_read(queue, buffer, offset, lba, blocks);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_write(int *status, uint64_t queue, uint64_t buffer,
						 uint64_t offset, uint64_t lba, uint32_t blocks)
{
	*status = nvmepeer_device_write(queue, buffer, offset, lba, blocks);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_submit(int64_t *token, uint64_t queue, uint32_t opcode,
						  uint64_t buffer, uint64_t offset, uint64_t lba,
						  uint32_t blocks, uint64_t control)
{
	*token = nvmepeer_device_submit(queue, opcode, buffer, offset, lba, blocks, control);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_poll(int *status, uint64_t queue, int64_t token)
{
	*status = nvmepeer_device_poll(queue, token);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_wait(int *status, uint64_t queue, int64_t token,
						uint64_t timeout_ns)
{
	*status = nvmepeer_device_wait(queue, token, timeout_ns);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_quiesce(int *status, uint64_t queue)
{
	*status = nvmepeer_device_quiesce(queue);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_check(int *status, uint64_t queue)
{
	*status = nvmepeer_device_check(queue);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_abandoned(int *count, uint64_t queue)
{
	*count = nvmepeer_device_abandoned(queue);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_queue(uint64_t *address, uint64_t queues, uint32_t index)
{
	*address = nvmepeer_device_queue(queues, index);
	return 0;
}
}
