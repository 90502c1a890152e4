// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * device.cu: calls of the device library under names of C, compiled once, for
 * programs that do not compile C++: Numba links the fatbin, and whatever links
 * relocatable device code may.  All arguments are plain numbers; handles are
 * GPU addresses of nvmepeer_cuda_queues.device and nvmepeer_cuda_buffer.device.
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
}
