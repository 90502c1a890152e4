/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/platform_hip.h: the platform of HIP device code on AMD GPUs
 * (gfx9 and up), by compiler builtins alone.  A wave has 32 or 64 lanes.
 *
 * No 16-byte access is promised to be one access there, so a completion entry
 * is read the half with the phase tag first.
 *
 * Doorbells.  On RDNA (gfx10 and up) stores to a doorbell register were seen to
 * arrive late, out of order and merged with later ones, whatever fences stood
 * around them (ROCm/rocm-xio, pull request 114).  Two things are needed, and one
 * does not serve without the other:
 *
 * - the host registers the doorbell page as I/O memory, hipHostRegister() with
 *   hipHostRegisterIoMemory, never as mapped memory: only then is it uncached
 *   in the GPU's page table;
 * - a doorbell store leaves no store behind or before it on its way: fences of
 *   the whole system on both sides wait until all are through, and the volatile
 *   store between them passes the caches by.
 */
#ifndef NVMEPEER_DEVICE_PLATFORM_HIP_H
#define NVMEPEER_DEVICE_PLATFORM_HIP_H

#define NVMEPEER_SYSTEM __HIP_MEMORY_SCOPE_SYSTEM
#define NVMEPEER_AGENT __HIP_MEMORY_SCOPE_AGENT

#ifndef NVMEPEER_PLATFORM_BUS
#define NVMEPEER_PLATFORM_BUS

NVMEPEER_FN void nvmepeer_sq_store(uint64_t address, const uint32_t value[4])
{
	uint64_t *entry = (uint64_t *)(uintptr_t)address;

	__hip_atomic_store(&entry[0], value[0] | (uint64_t)value[1] << 32, __ATOMIC_RELAXED,
			   NVMEPEER_SYSTEM);
	__hip_atomic_store(&entry[1], value[2] | (uint64_t)value[3] << 32, __ATOMIC_RELAXED,
			   NVMEPEER_SYSTEM);
}

NVMEPEER_FN void nvmepeer_cq_load(uint64_t address, uint32_t value[4])
{
	uint64_t *entry = (uint64_t *)(uintptr_t)address;
	uint64_t high = __hip_atomic_load(&entry[1], __ATOMIC_ACQUIRE, NVMEPEER_SYSTEM);
	uint64_t low = __hip_atomic_load(&entry[0], __ATOMIC_RELAXED, NVMEPEER_SYSTEM);

	value[0] = (uint32_t)low;
	value[1] = (uint32_t)(low >> 32);
	value[2] = (uint32_t)high;
	value[3] = (uint32_t)(high >> 32);
}

NVMEPEER_FN void nvmepeer_doorbell_store(uint64_t address, uint32_t value)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
	*(volatile uint32_t *)(uintptr_t)address = value;
	__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
}

NVMEPEER_FN uint32_t nvmepeer_status_load(uint64_t address)
{
	return __hip_atomic_load((uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE,
				 NVMEPEER_SYSTEM);
}

NVMEPEER_FN void nvmepeer_list_store(uint64_t address, uint64_t value)
{
	__hip_atomic_store((uint64_t *)(uintptr_t)address, value, __ATOMIC_RELAXED,
			   NVMEPEER_SYSTEM);
}

NVMEPEER_FN void nvmepeer_fence_publish(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "");
}

NVMEPEER_FN void nvmepeer_fence_consume(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}
#endif /* NVMEPEER_PLATFORM_BUS */

#ifndef NVMEPEER_PLATFORM_ATOMICS
#define NVMEPEER_PLATFORM_ATOMICS

NVMEPEER_FN uint32_t nvmepeer_load32(const uint32_t *p)
{
	return __hip_atomic_load((uint32_t *)p, __ATOMIC_RELAXED, NVMEPEER_AGENT);
}

NVMEPEER_FN uint64_t nvmepeer_load64(const uint64_t *p)
{
	return __hip_atomic_load((uint64_t *)p, __ATOMIC_RELAXED, NVMEPEER_AGENT);
}

NVMEPEER_FN void nvmepeer_store32(uint32_t *p, uint32_t value)
{
	__hip_atomic_store(p, value, __ATOMIC_RELAXED, NVMEPEER_AGENT);
}

NVMEPEER_FN void nvmepeer_store64(uint64_t *p, uint64_t value)
{
	__hip_atomic_store(p, value, __ATOMIC_RELAXED, NVMEPEER_AGENT);
}

NVMEPEER_FN uint32_t nvmepeer_add32(uint32_t *p, uint32_t value)
{
	return __hip_atomic_fetch_add(p, value, __ATOMIC_RELAXED, NVMEPEER_AGENT);
}

NVMEPEER_FN uint64_t nvmepeer_add64(uint64_t *p, uint64_t value)
{
	return __hip_atomic_fetch_add(p, value, __ATOMIC_RELAXED, NVMEPEER_AGENT);
}

NVMEPEER_FN uint32_t nvmepeer_exchange32(uint32_t *p, uint32_t value)
{
	return __hip_atomic_exchange(p, value, __ATOMIC_RELAXED, NVMEPEER_AGENT);
}

NVMEPEER_FN uint32_t nvmepeer_or32(uint32_t *p, uint32_t value)
{
	return __hip_atomic_fetch_or(p, value, __ATOMIC_RELAXED, NVMEPEER_AGENT);
}

NVMEPEER_FN void nvmepeer_post_add32(uint32_t *p, uint32_t value)
{
	nvmepeer_add32(p, value);
}

NVMEPEER_FN void nvmepeer_post_or32(uint32_t *p, uint32_t value)
{
	nvmepeer_or32(p, value);
}

NVMEPEER_FN uint32_t nvmepeer_compare_exchange32(uint32_t *p, uint32_t old, uint32_t value)
{
	__hip_atomic_compare_exchange_strong(p, &old, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
					     NVMEPEER_AGENT);
	return old;
}

NVMEPEER_FN void nvmepeer_fence_device(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
}

NVMEPEER_FN void nvmepeer_fence_claimed(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}
#endif /* NVMEPEER_PLATFORM_ATOMICS */

#ifndef NVMEPEER_PLATFORM_TIME
#define NVMEPEER_PLATFORM_TIME

/* A constant clock of 100 MHz. */
NVMEPEER_FN uint64_t nvmepeer_now_ns(void)
{
#if defined(__GFX11__) || defined(__GFX12__)
	return 10 * __builtin_amdgcn_s_sendmsg_rtnl(0x83);
#else
	return 10 * __builtin_amdgcn_s_memrealtime();
#endif
}

NVMEPEER_FN void nvmepeer_pause(uint32_t ns)
{
	for (; ns >= 32; ns = ns > 64 ? ns - 64 : 0)
		__builtin_amdgcn_s_sleep(1);
}
#endif /* NVMEPEER_PLATFORM_TIME */

#ifndef NVMEPEER_PLATFORM_LANES
#define NVMEPEER_PLATFORM_LANES

/*
 * The builtin is a constant once code is generated.  Compilers that do not know
 * it compile for the most lanes that there can be, which is right everywhere.
 */
#if __has_builtin(__builtin_amdgcn_wavefrontsize)
#define NVMEPEER_LANES __builtin_amdgcn_wavefrontsize()
#else
#define NVMEPEER_LANES 64
#endif

typedef uint64_t nvmepeer_mask;

/* Comparison 33 is "not equal"; the answer has a bit for each active lane. */
NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_ballot(nvmepeer_mask mask, int predicate)
{
	return __builtin_amdgcn_uicmp((uint32_t)predicate, 0u, 33) & mask;
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_active(void)
{
	return nvmepeer_lanes_ballot(~(nvmepeer_mask)0, 1);
}

NVMEPEER_FN uint32_t nvmepeer_lanes_copy32(nvmepeer_mask mask, uint32_t value, uint32_t lane)
{
	(void)mask;
	return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(4 * lane), (int)value);
}

NVMEPEER_FN uint64_t nvmepeer_lanes_copy64(nvmepeer_mask mask, uint64_t value, uint32_t lane)
{
	uint64_t low = nvmepeer_lanes_copy32(mask, (uint32_t)value, lane);

	return (uint64_t)nvmepeer_lanes_copy32(mask, (uint32_t)(value >> 32), lane) << 32 | low;
}

NVMEPEER_FN uint32_t nvmepeer_mask_count(nvmepeer_mask mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

NVMEPEER_FN uint32_t nvmepeer_mask_first(nvmepeer_mask mask)
{
	return (uint32_t)__builtin_ctzll(mask);
}

NVMEPEER_FN uint32_t nvmepeer_count_bits(uint32_t bits)
{
	return (uint32_t)__builtin_popcount(bits);
}

/* Position of the lowest set bit; there is one. */
NVMEPEER_FN uint32_t nvmepeer_first_bit(uint32_t bits)
{
	return (uint32_t)__builtin_ctz(bits);
}

NVMEPEER_FN uint32_t nvmepeer_lane(void)
{
	return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_match(nvmepeer_mask mask, uint64_t value)
{
	nvmepeer_mask mine = 0;

	for (nvmepeer_mask left = mask; left; ) {
		uint64_t first = nvmepeer_lanes_copy64(mask, value, nvmepeer_mask_first(left));
		nvmepeer_mask same = nvmepeer_lanes_ballot(mask, first == value);

		if (first == value)
			mine = same;
		left &= ~same;
	}
	return mine;
}

NVMEPEER_FN uint32_t nvmepeer_lanes_or32(nvmepeer_mask mask, uint32_t value)
{
	uint32_t all = 0;

	for (nvmepeer_mask left = mask; left; left &= left - 1)
		all |= nvmepeer_lanes_copy32(mask, value, nvmepeer_mask_first(left));
	return all;
}

/* Lanes of a wave run in step; the fence keeps the compiler and memory in step too. */
NVMEPEER_FN void nvmepeer_lanes_sync(nvmepeer_mask mask)
{
	(void)mask;
	__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
	__builtin_amdgcn_wave_barrier();
}

NVMEPEER_FN uint32_t nvmepeer_home(void)
{
	uint32_t waves = (__builtin_amdgcn_workgroup_size_x() + NVMEPEER_LANES - 1) /
			 NVMEPEER_LANES;

	return __builtin_amdgcn_workgroup_id_x() * waves +
	       __builtin_amdgcn_workitem_id_x() / NVMEPEER_LANES;
}
#endif /* NVMEPEER_PLATFORM_LANES */

#ifndef NVMEPEER_PLATFORM_BLOCK
#define NVMEPEER_PLATFORM_BLOCK

/* Blocks of one dimension. */
NVMEPEER_FN uint32_t nvmepeer_block_thread(void)
{
	return __builtin_amdgcn_workitem_id_x();
}

NVMEPEER_FN uint32_t nvmepeer_block_threads(void)
{
	return __builtin_amdgcn_workgroup_size_x();
}

NVMEPEER_FN void nvmepeer_block_sync(void)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

NVMEPEER_FN uint64_t nvmepeer_block_claim(uint64_t *p, uint64_t old, uint64_t value)
{
	__hip_atomic_compare_exchange_strong(p, &old, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
					     __HIP_MEMORY_SCOPE_WORKGROUP);
	return old;
}

NVMEPEER_FN uint32_t nvmepeer_block_max(uint32_t *p, uint32_t value)
{
	return __hip_atomic_fetch_max(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
#endif /* NVMEPEER_PLATFORM_BLOCK */

#endif /* NVMEPEER_DEVICE_PLATFORM_HIP_H */
