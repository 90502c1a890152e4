/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device_link.h: calls of the device library as functions with C names and
 * plain numbers as arguments, compiled once, for device code that is not compiled
 * with nvmepeer_device.h.
 *
 *	nvmepeer_device.o	for nvcc -rdc=true; with intermediate code, for -dlto
 *	nvmepeer_device.fatbin	for Numba, nvJitLink and other linkers of device code
 *	nvmepeer_device.bc	for Triton, GPUs from sm_80 on
 *	nvmepeer_device_sm90.bc	for Triton, GPUs from sm_90 on: each completion costs
 *				half a microsecond less
 *
 * They are in lib/nvmepeer/ below the prefix.  @queue and @buffer are GPU addresses:
 * of nvmepeer_cuda_queues_device() and nvmepeer_cuda_buffer_device().  Each call returns
 * NVMEPEER_E_LAYOUT if code of another version made the queue.  Lanes of a warp that
 * call together share one submission.
 */
#ifndef NVMEPEER_DEVICE_LINK_H
#define NVMEPEER_DEVICE_LINK_H

#include "nvmepeer_device/compiler.h"

#ifdef __CUDACC__
extern "C" {
/* nvmepeer_read(): 0, the NVMe status, or a negative enum nvmepeer_error. */
__device__ int nvmepeer_device_read(uint64_t queue, uint64_t buffer, uint64_t offset, uint64_t lba,
				    uint32_t blocks);

/* nvmepeer_write(); as above. */
__device__ int nvmepeer_device_write(uint64_t queue, uint64_t buffer, uint64_t offset, uint64_t lba,
				     uint32_t blocks);

/*
 * nvmepeer_submit(): a token, which is not negative, or a negative enum nvmepeer_error.
 * The arguments after @queue are the fields of struct nvmepeer_command; @buffer may be 0
 * for a command without data.  Waits for room, nvmepeer_geometry.timeout_ns at most, then
 * returns NVMEPEER_E_FULL.  Every token must be passed to nvmepeer_device_wait(), or to
 * nvmepeer_device_poll() until that is not NVMEPEER_AGAIN.  Not for NVMEPEER_OP_ZONE_APPEND: dword 0 of the completion
 * entry, which says where the data is, is not returned.
 */
__device__ int64_t nvmepeer_device_submit(uint64_t queue, uint32_t opcode, uint64_t buffer,
					  uint64_t offset, uint64_t lba, uint32_t blocks,
					  uint64_t control);

/*
 * nvmepeer_poll(): NVMEPEER_AGAIN, 0, the NVMe status, or a negative enum nvmepeer_error.
 * Of a negative token its error.
 */
__device__ int nvmepeer_device_poll(uint64_t queue, int64_t token);

/* nvmepeer_wait(); as above, but never NVMEPEER_AGAIN. */
__device__ int nvmepeer_device_wait(uint64_t queue, int64_t token, uint64_t timeout_ns);

/* nvmepeer_queue_quiesce(): 0, or NVMEPEER_E_ADDRESS without a control page. */
__device__ int nvmepeer_device_quiesce(uint64_t queue);

/* nvmepeer_check(): 0, NVMEPEER_E_LAYOUT or NVMEPEER_E_LOST. */
__device__ int nvmepeer_device_check(uint64_t queue);

/*
 * nvmepeer_abandoned(): after NVMEPEER_E_TIMEOUT the controller may access data memory until
 * this returns 0; or NVMEPEER_E_LAYOUT.  On a queue pair that is lost it does not return to
 * 0: call nvmepeer_device_check(), too.
 */
__device__ int nvmepeer_device_abandoned(uint64_t queue);

/*
 * Device queue @index of the array from nvmepeer_cuda_queues_device(), or 0, which
 * all calls refuse, if the array has another layout.
 */
__device__ uint64_t nvmepeer_device_queue(uint64_t queues, uint32_t index);
}
#endif /* __CUDACC__ */

#endif /* NVMEPEER_DEVICE_LINK_H */
