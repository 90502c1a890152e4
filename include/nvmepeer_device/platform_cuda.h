/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/platform_cuda.h: the platform of CUDA device code (sm_70 and
 * up).  Book-keeping is read and written at the L2 cache, the point where the
 * warps of one GPU meet, by relaxed accesses of gpu scope; rings and doorbells
 * by relaxed accesses of system scope, which the PTX memory model orders with
 * the fences below against devices and CPUs.
 */
#ifndef NVMEPEER_DEVICE_PLATFORM_CUDA_H
#define NVMEPEER_DEVICE_PLATFORM_CUDA_H

#ifndef NVMEPEER_PLATFORM_BUS
#define NVMEPEER_PLATFORM_BUS

NVMEPEER_FN void nvmepeer_sq_store(uint64_t address, const uint32_t value[4])
{
	asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};"
		     : : "l"(address), "r"(value[0]), "r"(value[1]), "r"(value[2]),
		     "r"(value[3]) : "memory");
}

/*
 * The b128 type makes the 16 bytes one access; a vector of four would be four.
 * But ptxas (13.0) loads only the words that are used, each by itself, and then
 * the phase tag can be newer than the result: torn once in 10^4 commands under
 * load.  So all words are used, for a prefetch that hardly ever comes.
 */
NVMEPEER_FN void nvmepeer_cq_load(uint64_t address, uint32_t value[4])
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
NVMEPEER_FN void nvmepeer_doorbell_store(uint64_t address, uint32_t value)
{
	asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;"
		     : : "l"(address), "r"(value) : "memory");
}

NVMEPEER_FN uint32_t nvmepeer_status_load(uint64_t address)
{
	uint32_t value;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
		     : "=r"(value) : "l"(address) : "memory");
	return value;
}

NVMEPEER_FN void nvmepeer_list_store(uint64_t address, uint64_t value)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;"
		     : : "l"(address), "l"(value) : "memory");
}

NVMEPEER_FN void nvmepeer_fence_publish(void)
{
	asm volatile("fence.acq_rel.sys;" : : : "memory");
}

/* An acquire alone costs 2 ns on an H200, a release 510: it asks the whole way. */
NVMEPEER_FN void nvmepeer_fence_consume(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("fence.acquire.sys;" : : : "memory");
#else
	asm volatile("fence.acq_rel.sys;" : : : "memory");
#endif
}
#endif /* NVMEPEER_PLATFORM_BUS */

#ifndef NVMEPEER_PLATFORM_ATOMICS
#define NVMEPEER_PLATFORM_ATOMICS

NVMEPEER_FN uint32_t nvmepeer_load32(const uint32_t *p)
{
	uint32_t value;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
		     : "=r"(value) : "l"(p) : "memory");
	return value;
}

NVMEPEER_FN uint64_t nvmepeer_load64(const uint64_t *p)
{
	uint64_t value;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
		     : "=l"(value) : "l"(p) : "memory");
	return value;
}

NVMEPEER_FN void nvmepeer_store32(uint32_t *p, uint32_t value)
{
	asm volatile("st.relaxed.gpu.global.u32 [%0], %1;"
		     : : "l"(p), "r"(value) : "memory");
}

/*
 * Result words are most of the memory that a group touches.  Beside computation that streams
 * through the L2 cache they would be written back, and fetched again, each time: so they are
 * to leave the cache last.
 */
NVMEPEER_FN void nvmepeer_store64(uint64_t *p, uint64_t value)
{
#if __CUDA_ARCH__ >= 800
	asm volatile("{\n\t.reg .b64 last;\n\t"
		     "createpolicy.fractional.L2::evict_last.b64 last, 1.0;\n\t"
		     "st.relaxed.gpu.global.L2::cache_hint.u64 [%0], %1, last;\n\t}"
		     : : "l"(p), "l"(value) : "memory");
#else
	asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
		     : : "l"(p), "l"(value) : "memory");
#endif
}

NVMEPEER_FN uint32_t nvmepeer_add32(uint32_t *p, uint32_t value)
{
	uint32_t old;

	asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
		     : "=r"(old) : "l"(p), "r"(value) : "memory");
	return old;
}

NVMEPEER_FN uint64_t nvmepeer_add64(uint64_t *p, uint64_t value)
{
	uint64_t old;

	asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
		     : "=l"(old) : "l"(p), "l"(value) : "memory");
	return old;
}

NVMEPEER_FN uint32_t nvmepeer_exchange32(uint32_t *p, uint32_t value)
{
	uint32_t old;

	asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;"
		     : "=r"(old) : "l"(p), "r"(value) : "memory");
	return old;
}

NVMEPEER_FN uint32_t nvmepeer_or32(uint32_t *p, uint32_t value)
{
	uint32_t old;

	asm volatile("atom.relaxed.gpu.global.or.b32 %0, [%1], %2;"
		     : "=r"(old) : "l"(p), "r"(value) : "memory");
	return old;
}

/* ptxas (13.0) gives an atomic a place for its result even where nobody wants it. */
NVMEPEER_FN void nvmepeer_post_add32(uint32_t *p, uint32_t value)
{
	asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;"
		     : : "l"(p), "r"(value) : "memory");
}

NVMEPEER_FN void nvmepeer_post_or32(uint32_t *p, uint32_t value)
{
	asm volatile("red.relaxed.gpu.global.or.b32 [%0], %1;"
		     : : "l"(p), "r"(value) : "memory");
}

NVMEPEER_FN uint32_t nvmepeer_compare_exchange32(uint32_t *p, uint32_t old, uint32_t value)
{
	uint32_t found;

	asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %3;"
		     : "=r"(found) : "l"(p), "r"(old), "r"(value) : "memory");
	return found;
}

NVMEPEER_FN void nvmepeer_fence_device(void)
{
	asm volatile("fence.acq_rel.gpu;" : : : "memory");
}

NVMEPEER_FN void nvmepeer_fence_claimed(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("fence.acquire.gpu;" : : : "memory");
#else
	asm volatile("fence.acq_rel.gpu;" : : : "memory");
#endif
}
#endif /* NVMEPEER_PLATFORM_ATOMICS */

#ifndef NVMEPEER_PLATFORM_TIME
#define NVMEPEER_PLATFORM_TIME

NVMEPEER_FN uint64_t nvmepeer_now_ns(void)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

NVMEPEER_FN void nvmepeer_pause(uint32_t ns)
{
	if (ns)
		__nanosleep(ns);
}
#endif /* NVMEPEER_PLATFORM_TIME */

#ifndef NVMEPEER_PLATFORM_LANES
#define NVMEPEER_PLATFORM_LANES

#define NVMEPEER_LANES 32

typedef uint32_t nvmepeer_mask;

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_active(void)
{
	return __activemask();
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_match(nvmepeer_mask mask, uint64_t value)
{
	return __match_any_sync(mask, (unsigned long long)value);
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_ballot(nvmepeer_mask mask, int predicate)
{
	return __ballot_sync(mask, predicate);
}

NVMEPEER_FN uint32_t nvmepeer_lanes_copy32(nvmepeer_mask mask, uint32_t value, uint32_t lane)
{
	return __shfl_sync(mask, value, (int)lane);
}

NVMEPEER_FN uint64_t nvmepeer_lanes_copy64(nvmepeer_mask mask, uint64_t value, uint32_t lane)
{
	return __shfl_sync(mask, (unsigned long long)value, (int)lane);
}

NVMEPEER_FN uint32_t nvmepeer_lanes_or32(nvmepeer_mask mask, uint32_t value)
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

NVMEPEER_FN void nvmepeer_lanes_sync(nvmepeer_mask mask)
{
	__syncwarp(mask);
}

NVMEPEER_FN uint32_t nvmepeer_lane(void)
{
	uint32_t lane;

	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

NVMEPEER_FN uint32_t nvmepeer_mask_count(nvmepeer_mask mask)
{
	return (uint32_t)__popc(mask);
}

NVMEPEER_FN uint32_t nvmepeer_mask_first(nvmepeer_mask mask)
{
	return (uint32_t)__ffs((int)mask) - 1;
}

NVMEPEER_FN uint32_t nvmepeer_count_bits(uint32_t bits)
{
	return (uint32_t)__popc(bits);
}

/* Position of the lowest set bit; there is one. */
NVMEPEER_FN uint32_t nvmepeer_first_bit(uint32_t bits)
{
	return (uint32_t)__ffs((int)bits) - 1;
}

/* Where the warp runs now: a hint that may change, but costs two instructions. */
NVMEPEER_FN uint32_t nvmepeer_home(void)
{
	uint32_t processor, warp;

	asm("mov.u32 %0, %%smid;" : "=r"(processor));
	asm("mov.u32 %0, %%warpid;" : "=r"(warp));
	return processor * 64 + warp;
}
#endif /* NVMEPEER_PLATFORM_LANES */

#ifndef NVMEPEER_PLATFORM_BLOCK
#define NVMEPEER_PLATFORM_BLOCK

NVMEPEER_FN uint32_t nvmepeer_block_thread(void)
{
	return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

NVMEPEER_FN uint32_t nvmepeer_block_threads(void)
{
	return blockDim.x * blockDim.y * blockDim.z;
}

NVMEPEER_FN void nvmepeer_block_sync(void)
{
	__syncthreads();
}

NVMEPEER_FN uint64_t nvmepeer_block_claim(uint64_t *p, uint64_t old, uint64_t value)
{
	return atomicCAS((unsigned long long *)p, (unsigned long long)old,
			 (unsigned long long)value);
}

NVMEPEER_FN uint32_t nvmepeer_block_max(uint32_t *p, uint32_t value)
{
	return atomicMax(p, value);
}
#endif /* NVMEPEER_PLATFORM_BLOCK */

#endif /* NVMEPEER_DEVICE_PLATFORM_CUDA_H */
