/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/platform.h: what the queue code asks of the machine it runs
 * on.  CUDA, HIP and C11 each have a room that answers; a stand-in defines
 * NVMEPEER_PLATFORM_HEADER as the name of a header that is included first and
 * answers for the parts whose NVMEPEER_PLATFORM_* it defines.
 *
 * Part NVMEPEER_PLATFORM_BUS.  Rings, doorbells, status page and PRP lists are
 * named by 64-bit addresses and touched only here, so that a stand-in may turn
 * an access into bus-master DMA:
 *
 *	void     nvmepeer_sq_store(uint64_t address, const uint32_t value[4]);
 *	void     nvmepeer_cq_load(uint64_t address, uint32_t value[4]);
 *	void     nvmepeer_doorbell_store(uint64_t address, uint32_t value);
 *	uint32_t nvmepeer_status_load(uint64_t address);
 *	void     nvmepeer_list_store(uint64_t address, uint64_t value);
 *	void     nvmepeer_fence_publish(void);
 *	void     nvmepeer_fence_consume(void);
 *
 * sq_store stores 16 bytes, 16-byte aligned.  cq_load loads 16 bytes so that
 * no torn entry passes: at once, or the half with the phase tag first and the
 * other half after it.  doorbell_store is one posted 32-bit store; a doorbell
 * is never read.  fence_publish: everything stored before, by this thread or
 * seen by it, reaches every device before anything stored after.
 * fence_consume: everything loaded after is at least as new as what was loaded
 * before.
 *
 * Part NVMEPEER_PLATFORM_ATOMICS.  Book-keeping always lies in the memory of
 * the device the code runs on, and is touched by relaxed loads, stores and
 * read-modify-writes at the scope of that device:
 *
 *	nvmepeer_load32, load64, store32, store64, add32, add64, exchange32,
 *	or32, compare_exchange32 (returns the old value),
 *	post_add32, post_or32: an addition and an or that nobody waits for,
 *	nvmepeer_fence_device: release and acquire at the scope of the device,
 *	nvmepeer_fence_claimed: acquire at the scope of the device.
 *
 * A platform whose checker does not know fences (ThreadSanitizer) may make the
 * accesses themselves acquire and release.
 *
 * Part NVMEPEER_PLATFORM_TIME:
 *
 *	uint64_t nvmepeer_now_ns(void);		monotonic; may be slow
 *	void     nvmepeer_pause(uint32_t ns);	a hint; 0: between two polls
 *
 * Part NVMEPEER_PLATFORM_LANES.  Lanes that run the same instruction together:
 * 32 of a CUDA warp, 32 or 64 of a HIP wave, one for C.  type nvmepeer_mask;
 *
 *	nvmepeer_mask nvmepeer_lanes_active(void);
 *	nvmepeer_mask nvmepeer_lanes_match(nvmepeer_mask, uint64_t value);
 *	nvmepeer_mask nvmepeer_lanes_ballot(nvmepeer_mask, int predicate);
 *	uint32_t nvmepeer_lanes_copy32(nvmepeer_mask, uint32_t value, uint32_t lane);
 *	uint64_t nvmepeer_lanes_copy64(nvmepeer_mask, uint64_t value, uint32_t lane);
 *	uint32_t nvmepeer_lanes_or32(nvmepeer_mask, uint32_t value);
 *	void     nvmepeer_lanes_sync(nvmepeer_mask);
 *	uint32_t nvmepeer_lane(void);
 *	uint32_t nvmepeer_mask_count(nvmepeer_mask), nvmepeer_mask_first(nvmepeer_mask);
 *	uint32_t nvmepeer_count_bits(uint32_t), nvmepeer_first_bit(uint32_t);
 *	uint32_t nvmepeer_home(void);	spreads groups of lanes over cids
 *
 * NVMEPEER_LANES is how many there can be.  Every lane of the mask calls with
 * the same mask; lanes_sync also orders memory among them.
 *
 * Part NVMEPEER_PLATFORM_BLOCK.  Threads that share fast memory and can meet:
 *
 *	uint32_t nvmepeer_block_thread(void), nvmepeer_block_threads(void);
 *	void     nvmepeer_block_sync(void);	also orders memory among them
 *	uint64_t nvmepeer_block_claim(uint64_t *p, uint64_t old, uint64_t value);
 *	uint32_t nvmepeer_block_max(uint32_t *p, uint32_t value);
 *
 * claim is a compare-and-exchange, max a fetch-and-maximum, on shared memory.
 */
#ifndef NVMEPEER_DEVICE_PLATFORM_H
#define NVMEPEER_DEVICE_PLATFORM_H

#include "toolkit.h"

#ifdef NVMEPEER_FN
#define NVMEPEER_SLOW_FN NVMEPEER_FN
#define NVMEPEER_HOST_FN NVMEPEER_FN
#elif defined(__CUDACC__)
#define NVMEPEER_FN static __device__ __forceinline__
#define NVMEPEER_SLOW_FN static __device__ __noinline__
#define NVMEPEER_HOST_FN static __host__ __device__ inline
#elif defined(__HIP__)
#define NVMEPEER_FN static __device__ inline __attribute__((always_inline, unused))
#define NVMEPEER_SLOW_FN static __device__ __attribute__((noinline, unused))
#define NVMEPEER_HOST_FN static __host__ __device__ inline __attribute__((unused))
#else
#define NVMEPEER_FN static inline __attribute__((unused))
#define NVMEPEER_SLOW_FN static __attribute__((noinline, unused))
#define NVMEPEER_HOST_FN static inline __attribute__((unused))
#endif

#ifdef NVMEPEER_PLATFORM_HEADER
#include NVMEPEER_PLATFORM_HEADER
#endif

#if defined(__CUDACC__)
#include "platform_cuda.h"
#elif defined(__HIP__)
#include "platform_hip.h"
#else
#include "platform_c11.h"
#endif

#endif /* NVMEPEER_DEVICE_PLATFORM_H */
