// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * device.cu: calls of the device library under names of C, compiled once, for
 * programs that do not compile C++: Numba links the fatbin, and whatever links
 * relocatable device code may; Triton takes the bitcode.  All arguments are plain numbers; handles are
 * GPU addresses of nvmepeer_cuda_queues.device and nvmepeer_cuda_buffer.device.
 *
 * Each call has two names.  nvmepeer_device_* return their value.  nvmepeer_numba_*
 * have the form in which Numba calls what it has not compiled: the value goes where
 * the first argument points, and what is returned says whether Python raised: 0.
 *
 * Lanes of a warp that call together share a trip to the queue, as ever.
 */
#include <nvmepeer_device.h>

extern "C" {
/* nvmepeer_read(): 0, the NVMe status, or a negative enum nvmepeer_error. */
__device__ __noinline__ int nvmepeer_device_read(uint64_t queue, uint64_t buffer, uint64_t offset,
						 uint64_t lba, uint32_t blocks)
{
	return nvmepeer_read((const nvmepeer_queue *)queue, (const nvmepeer_buffer *)buffer, offset,
			     lba, blocks);
}

/* nvmepeer_write(); as above. */
__device__ __noinline__ int nvmepeer_device_write(uint64_t queue, uint64_t buffer, uint64_t offset,
						  uint64_t lba, uint32_t blocks)
{
	return nvmepeer_write((const nvmepeer_queue *)queue, (const nvmepeer_buffer *)buffer, offset,
			      lba, blocks);
}

/* nvmepeer_queue_give_up(): 0, or NVMEPEER_E_ADDRESS if there is nobody to ask. */
__device__ __noinline__ int nvmepeer_device_give_up(uint64_t queue)
{
	return nvmepeer_queue_give_up((const nvmepeer_queue *)queue);
}

/* Queue pair @index of an array of them, from nvmepeer_cuda_queues.device. */
__device__ __noinline__ uint64_t nvmepeer_device_queue(uint64_t queues, uint32_t index)
{
	return queues + index * sizeof(nvmepeer_queue);
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

__device__ __noinline__ int nvmepeer_numba_give_up(int *status, uint64_t queue)
{
	*status = nvmepeer_device_give_up(queue);
	return 0;
}

__device__ __noinline__ int nvmepeer_numba_queue(uint64_t *address, uint64_t queues, uint32_t index)
{
	*address = nvmepeer_device_queue(queues, index);
	return 0;
}
}
