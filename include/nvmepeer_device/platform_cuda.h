/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/platform_cuda.h: the platform of CUDA device code (sm_70 and
 * up).  Relaxed accesses of gpu scope read and write the shared state in the L2
 * cache, the point of coherence of the warps of a GPU. Relaxed accesses of
 * system scope read and write rings and doorbells; the PTX memory model orders
 * them with the fences below against devices and CPUs.
 */
#ifndef NVMEPEER_DEVICE_PLATFORM_CUDA_H
#define NVMEPEER_DEVICE_PLATFORM_CUDA_H

#include "platform.h"

#ifndef NVP_PLATFORM_BUS
#define NVP_PLATFORM_BUS

NVP_FN void nvp_sq_store(uint64_t address, const uint32_t value[4])
{
	asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};"
		     : : "l"(address), "r"(value[0]), "r"(value[1]), "r"(value[2]),
		     "r"(value[3]) : "memory");
}

/*
 * The b128 type makes the 16 bytes one access; a vector of four words would be
 * four.  But ptxas (13.0) loads only the words that are used, each by itself,
 * and then the phase tag can be newer than the result: one torn entry in 10^4
 * commands was seen under load.  The prefetch, practically never executed, uses
 * all words.
 */
NVP_FN void nvp_cq_load(uint64_t address, uint32_t value[4])
{
	uint64_t low, high;

	asm volatile("{\n\t.reg .b128 entry;\n\t.reg .b64 mix;\n\t.reg .pred never;\n\t"
		     "ld.relaxed.sys.global.b128 entry, [%2];\n\t"
		     "mov.b128 {%0, %1}, entry;\n\t"
		     "xor.b64 mix, %0, %1;\n\t"
		     "setp.eq.u64 never, mix, 0x5bd1e9955bd1e995;\n\t"
		     "@never prefetch.global.L2 [%2];\n\t}"
		     : "=&l"(low), "=&l"(high) : "l"(address) : "memory");
	value[0] = (uint32_t)low;
	value[1] = (uint32_t)(low >> 32);
	value[2] = (uint32_t)high;
	value[3] = (uint32_t)(high >> 32);
}

/* mmio: exactly one store of exactly this size reaches the register. */
NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value)
{
	asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;"
		     : : "l"(address), "r"(value) : "memory");
}

NVP_FN uint32_t nvp_status_load(uint64_t address)
{
	uint32_t value;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
		     : "=r"(value) : "l"(address) : "memory");
	return value;
}

NVP_FN void nvp_list_store(uint64_t address, uint64_t value)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;"
		     : : "l"(address), "l"(value) : "memory");
}

NVP_FN void nvp_fence_publish(void)
{
	asm volatile("fence.acq_rel.sys;" : : : "memory");
}

/*
 * An acquire costs 2 ns on an H200; a release costs 510 ns, since it waits for
 * earlier stores to reach the system.
 */
NVP_FN void nvp_fence_consume(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("fence.acquire.sys;" : : : "memory");
#else
	asm volatile("fence.acq_rel.sys;" : : : "memory");
#endif
}
#endif /* NVP_PLATFORM_BUS */

#ifndef NVP_PLATFORM_ATOMICS
#define NVP_PLATFORM_ATOMICS

/*
 * Computation that streams through the L2 cache would evict the shared state, and each
 * command would write it back and fetch it again.  NVP_KEPT() is an instruction whose
 * line is the last to be evicted.  A command needs the hint once for each line, so it is
 * given with the instructions that nothing waits for: stores of results, and reductions,
 * which return credits and CIDs.  With all atomics and loads it costs 1 to 3 % of the rate.
 */
#if __CUDA_ARCH__ >= 800
#define NVP_KEPT(operation, operands)						\
	"{\n\t.reg .b64 last;\n\t"						\
	"createpolicy.fractional.L2::evict_last.b64 last, 1.0;\n\t"		\
	operation ".L2::cache_hint." operands ", last;\n\t}"
#else
#define NVP_KEPT(operation, operands) operation "." operands ";"
#endif

NVP_FN uint32_t nvp_load32(const uint32_t *p)
{
	uint32_t value;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
		     : "=r"(value) : "l"(p) : "memory");
	return value;
}

NVP_FN uint64_t nvp_load64(const uint64_t *p)
{
	uint64_t value;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
		     : "=l"(value) : "l"(p) : "memory");
	return value;
}

NVP_FN void nvp_store32(uint32_t *p, uint32_t value)
{
	asm volatile("st.relaxed.gpu.global.u32 [%0], %1;"
		     : : "l"(p), "r"(value) : "memory");
}

NVP_FN void nvp_store64(uint64_t *p, uint64_t value)
{
	asm volatile(NVP_KEPT("st.relaxed.gpu.global", "u64 [%0], %1")
		     : : "l"(p), "l"(value) : "memory");
}

NVP_FN uint32_t nvp_add32(uint32_t *p, uint32_t value)
{
	uint32_t old;

	asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
		     : "=r"(old) : "l"(p), "r"(value) : "memory");
	return old;
}

NVP_FN uint64_t nvp_add64(uint64_t *p, uint64_t value)
{
	uint64_t old;

	asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
		     : "=l"(old) : "l"(p), "l"(value) : "memory");
	return old;
}

NVP_FN uint32_t nvp_exchange32(uint32_t *p, uint32_t value)
{
	uint32_t old;

	asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;"
		     : "=r"(old) : "l"(p), "r"(value) : "memory");
	return old;
}

NVP_FN uint32_t nvp_or32(uint32_t *p, uint32_t value)
{
	uint32_t old;

	asm volatile("atom.relaxed.gpu.global.or.b32 %0, [%1], %2;"
		     : "=r"(old) : "l"(p), "r"(value) : "memory");
	return old;
}

/*
 * ptxas (13.0) allocates a register for the result of an atomic even if it is
 * unused.
 */
NVP_FN void nvp_post_add32(uint32_t *p, uint32_t value)
{
	asm volatile(NVP_KEPT("red.relaxed.gpu.global.add", "u32 [%0], %1")
		     : : "l"(p), "r"(value) : "memory");
}

NVP_FN void nvp_post_or32(uint32_t *p, uint32_t value)
{
	asm volatile(NVP_KEPT("red.relaxed.gpu.global.or", "b32 [%0], %1")
		     : : "l"(p), "r"(value) : "memory");
}

NVP_FN uint32_t nvp_compare_exchange32(uint32_t *p, uint32_t old, uint32_t value)
{
	uint32_t found;

	asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %3;"
		     : "=r"(found) : "l"(p), "r"(old), "r"(value) : "memory");
	return found;
}

NVP_FN void nvp_fence_device(void)
{
	asm volatile("fence.acq_rel.gpu;" : : : "memory");
}

NVP_FN void nvp_fence_device_acquire(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("fence.acquire.gpu;" : : : "memory");
#else
	asm volatile("fence.acq_rel.gpu;" : : : "memory");
#endif
}
#endif /* NVP_PLATFORM_ATOMICS */

#ifndef NVP_PLATFORM_TIME
#define NVP_PLATFORM_TIME

NVP_FN uint64_t nvmepeer_now_ns(void)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

NVP_FN void nvp_pause(uint32_t ns)
{
	if (ns)
		__nanosleep(ns);
}
#endif /* NVP_PLATFORM_TIME */

#ifndef NVP_PLATFORM_LANES
#define NVP_PLATFORM_LANES

#define NVMEPEER_LANES 32

typedef uint32_t nvmepeer_mask;

NVP_FN nvmepeer_mask nvp_lanes_active(void)
{
	return __activemask();
}

NVP_FN nvmepeer_mask nvp_lanes_match(nvmepeer_mask mask, uint64_t value)
{
	return __match_any_sync(mask, (unsigned long long)value);
}

NVP_FN nvmepeer_mask nvp_lanes_ballot(nvmepeer_mask mask, int predicate)
{
	return __ballot_sync(mask, predicate);
}

NVP_FN uint32_t nvp_lanes_copy32(nvmepeer_mask mask, uint32_t value, uint32_t lane)
{
	return __shfl_sync(mask, value, (int)lane);
}

NVP_FN uint64_t nvp_lanes_copy64(nvmepeer_mask mask, uint64_t value, uint32_t lane)
{
	return __shfl_sync(mask, (unsigned long long)value, (int)lane);
}

NVP_FN uint32_t nvp_lanes_or32(nvmepeer_mask mask, uint32_t value)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
	return __reduce_or_sync(mask, value);
#else
	uint32_t all = 0;

	for (nvmepeer_mask left = mask; left; left &= left - 1)
		all |= __shfl_sync(mask, value, __ffs((int)left) - 1);
	return all;
#endif
}

NVP_FN void nvp_lanes_sync(nvmepeer_mask mask)
{
	__syncwarp(mask);
}

NVP_FN uint32_t nvp_lane(void)
{
	uint32_t lane;

	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

NVP_FN uint32_t nvp_mask_count(nvmepeer_mask mask)
{
	return (uint32_t)__popc(mask);
}

NVP_FN uint32_t nvp_mask_first(nvmepeer_mask mask)
{
	return (uint32_t)__ffs((int)mask) - 1;
}

NVP_FN uint32_t nvp_count_bits(uint32_t bits)
{
	return (uint32_t)__popc(bits);
}

/* Position of the lowest set bit; @bits is not 0. */
NVP_FN uint32_t nvp_first_bit(uint32_t bits)
{
	return (uint32_t)__ffs((int)bits) - 1;
}

/*
 * The SM and warp slot that the warp runs in: a hint that may change, but costs
 * two instructions.
 */
NVP_FN uint32_t nvp_start_hash(void)
{
	uint32_t processor, warp;

	asm("mov.u32 %0, %%smid;" : "=r"(processor));
	asm("mov.u32 %0, %%warpid;" : "=r"(warp));
	return processor * 64 + warp;
}
#endif /* NVP_PLATFORM_LANES */

#ifndef NVP_PLATFORM_BLOCK
#define NVP_PLATFORM_BLOCK

NVP_FN uint32_t nvp_block_thread(void)
{
	return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

NVP_FN uint32_t nvp_block_threads(void)
{
	return blockDim.x * blockDim.y * blockDim.z;
}

NVP_FN void nvp_block_sync(void)
{
	__syncthreads();
}

NVP_FN uint64_t nvp_block_cas(uint64_t *p, uint64_t old, uint64_t value)
{
	return atomicCAS((unsigned long long *)p, (unsigned long long)old,
			 (unsigned long long)value);
}

NVP_FN uint32_t nvp_block_max(uint32_t *p, uint32_t value)
{
	return atomicMax(p, value);
}
#endif /* NVP_PLATFORM_BLOCK */

#endif /* NVMEPEER_DEVICE_PLATFORM_CUDA_H */
