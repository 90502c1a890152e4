// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * device.cu: calls of the device library as C functions, compiled once, for
 * programs that do not compile C++.  Numba and linkers of relocatable device
 * code use the fatbin, Triton uses the bitcode.  All arguments are plain
 * numbers; queues and buffers are GPU addresses from
 * nvmepeer_cuda_queues_device() and nvmepeer_cuda_buffer_device().
 *
 * Each call has two names.  nvmepeer_device_* return their value.
 * nvmepeer_numba_* follow the calling convention of Numba for external
 * functions: they store the value through the first argument and return 0,
 * which means that Python raised no exception.
 *
 * Lanes of a warp that call together share one submission.
 *
 * The host library that filled a queue may be of another version than this file.
 * Each call reads the layout of its queue, which is in the cache line of its
 * other fields, and returns NVMEPEER_E_LAYOUT before it uses another one.
 */
#include <nvmepeer_device.h>

static __device__ __forceinline__ bool is_known(uint64_t queue)
{
	return queue && ((const nvmepeer_queue *)queue)->layout == NVMEPEER_LAYOUT;
}

extern "C" {
/* nvmepeer_read(): 0, the NVMe status, or a negative enum nvmepeer_error. */
__device__ __noinline__ int nvmepeer_device_read(uint64_t queue, uint64_t buffer, uint64_t offset,
						 uint64_t lba, uint32_t blocks)
{
	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	return nvmepeer_read((const nvmepeer_queue *)queue, (const nvmepeer_buffer *)buffer, offset,
			     lba, blocks);
}

/* nvmepeer_write(); as above. */
__device__ __noinline__ int nvmepeer_device_write(uint64_t queue, uint64_t buffer, uint64_t offset,
						  uint64_t lba, uint32_t blocks)
{
	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	return nvmepeer_write((const nvmepeer_queue *)queue, (const nvmepeer_buffer *)buffer, offset,
			      lba, blocks);
}

/* nvmepeer_queue_quiesce(): 0, or NVMEPEER_E_ADDRESS without a control page. */
__device__ __noinline__ int nvmepeer_device_quiesce(uint64_t queue)
{
	if (!is_known(queue))
		return NVMEPEER_E_LAYOUT;
	return nvmepeer_queue_quiesce((const nvmepeer_queue *)queue);
}

/* nvmepeer_check(): 0, NVMEPEER_E_LAYOUT or NVMEPEER_E_LOST. */
__device__ __noinline__ int nvmepeer_device_check(uint64_t queue)
{
	return is_known(queue) ? nvmepeer_check((const nvmepeer_queue *)queue) :
				 (int)NVMEPEER_E_LAYOUT;
}

/*
 * Device queue @index of the array from nvmepeer_cuda_queues_device(), or 0, which
 * all calls refuse, if the array has another layout.
 */
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

__device__ __noinline__ int nvmepeer_numba_queue(uint64_t *address, uint64_t queues, uint32_t index)
{
	*address = nvmepeer_device_queue(queues, index);
	return 0;
}
}
