/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/platform.h: the operations that the queue code needs from the
 * machine it runs on. platform_cuda.h, platform_hip.h and platform_c11.h
 * implement them.  A test or an emulator replaces some of them: it defines
 * NVMEPEER_PLATFORM_HEADER as the name of a header, which is included first and
 * implements each part whose NVP_PLATFORM_* macro it defines.
 *
 * Part NVP_PLATFORM_BUS.  Rings, doorbells, status page, control page and PRP
 * lists have 64-bit addresses and are accessed by these functions only, so that
 * an emulator may turn an access into bus-master DMA:
 *
 *	void     nvp_sq_store(uint64_t address, const uint32_t value[4]);
 *	void     nvp_cq_load(uint64_t address, uint32_t value[4]);
 *	void     nvp_doorbell_store(uint64_t address, uint32_t value);
 *	uint32_t nvp_status_load(uint64_t address);
 *	void     nvp_list_store(uint64_t address, uint64_t value);
 *	void     nvp_fence_publish(void);
 *	void     nvp_fence_consume(void);
 *
 * nvp_sq_store() stores 16 bytes to an address aligned to 16.  nvp_cq_load()
 * loads 16 bytes and must never return a torn completion entry: it loads them
 * in one access, or loads the half with the phase tag first and the other half
 * after it.  nvp_doorbell_store() is one posted 32-bit store; a doorbell is
 * never read.  nvp_list_store() is one 64-bit store, to a PRP list or the control
 * page.  nvp_fence_publish() is a release to the system and an acquire at
 * device scope: everything that this thread stored or observed before reaches
 * every device before anything that it stores after.  nvp_fence_consume() is an
 * acquire from the system: everything loaded after is at least as new as what
 * was loaded before.
 *
 * Part NVP_PLATFORM_ATOMICS.  The shared state lies in the memory of the device
 * that runs the code.  It is accessed by relaxed loads, stores and
 * read-modify-writes at the scope of that device:
 *
 *	nvp_load32, load64, store32, store64, add32, add64, exchange32, or32,
 *	compare_exchange32 (returns the old value),
 *	post_add32, post_or32: addition and or without a result,
 *	nvp_fence_device: release and acquire at the scope of the device,
 *	nvp_fence_device_acquire: acquire at the scope of the device.
 *
 * A platform whose race detector does not model fences (ThreadSanitizer) may
 * give the accesses acquire and release semantics instead.
 *
 * Part NVP_PLATFORM_TIME:
 *
 *	uint64_t nvmepeer_now_ns(void);	monotonic; may be slow
 *	void     nvp_pause(uint32_t ns);	a hint; 0: between two polls
 *
 * Part NVP_PLATFORM_LANES.  Lanes are threads that execute an instruction
 * together: 32 in a CUDA warp, 32 or 64 in a HIP wave, one in C.  The type
 * nvmepeer_mask has a bit for each lane;
 *
 *	nvmepeer_mask nvp_lanes_active(void);
 *	nvmepeer_mask nvp_lanes_match(nvmepeer_mask, uint64_t value);
 *	nvmepeer_mask nvp_lanes_ballot(nvmepeer_mask, int predicate);
 *	uint32_t nvp_lanes_copy32(nvmepeer_mask, uint32_t value, uint32_t lane);
 *	uint64_t nvp_lanes_copy64(nvmepeer_mask, uint64_t value, uint32_t lane);
 *	uint32_t nvp_lanes_or32(nvmepeer_mask, uint32_t value);
 *	void     nvp_lanes_sync(nvmepeer_mask);
 *	uint32_t nvp_lane(void);
 *	uint32_t nvp_mask_count(nvmepeer_mask), nvp_mask_first(nvmepeer_mask);
 *	uint32_t nvp_count_bits(uint32_t), nvp_first_bit(uint32_t);
 *	uint32_t nvp_start_hash(void);	the same in all lanes of a warp,
 *						different in most warps
 *
 * NVMEPEER_LANES is the maximum number of lanes.  Every lane of a mask calls
 * with the same mask; nvp_lanes_sync() also orders memory among them.
 *
 * Part NVP_PLATFORM_BLOCK.  Threads of a block share fast memory and have a
 * barrier:
 *
 *	uint32_t nvp_block_thread(void), nvp_block_threads(void);
 *	void     nvp_block_sync(void);	barrier; also orders memory
 *	uint64_t nvp_block_cas(uint64_t *p, uint64_t old, uint64_t value);
 *	uint32_t nvp_block_max(uint32_t *p, uint32_t value);
 *
 * nvp_block_cas() is a compare-and-exchange, nvp_block_max() a
 * fetch-and-maximum, on shared memory.
 */
#ifndef NVMEPEER_DEVICE_PLATFORM_H
#define NVMEPEER_DEVICE_PLATFORM_H

#include "compiler.h"

#ifdef NVP_FN
#define NVP_NOINLINE_FN NVP_FN
#define NVP_HOST_FN NVP_FN
#elif defined(__CUDACC__)
#define NVP_FN static __device__ __forceinline__
#define NVP_NOINLINE_FN static __device__ __noinline__
#define NVP_HOST_FN static __host__ __device__ inline
#elif defined(__HIP__)
#define NVP_FN static __device__ inline __attribute__((always_inline, unused))
#define NVP_NOINLINE_FN static __device__ __attribute__((noinline, unused))
#define NVP_HOST_FN static __host__ __device__ inline __attribute__((unused))
#else
#define NVP_FN static inline __attribute__((unused))
#define NVP_NOINLINE_FN static __attribute__((noinline, unused))
#define NVP_HOST_FN static inline __attribute__((unused))
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
