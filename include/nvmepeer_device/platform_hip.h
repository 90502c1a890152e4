/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/platform_hip.h: the platform of HIP device code on AMD GPUs
 * (gfx9 and up), by compiler builtins only.  A wave has 32 or 64 lanes.
 *
 * AMD does not guarantee that a 16-byte access is one access, so the half of a
 * completion entry with the phase tag is loaded first.
 *
 * Doorbells.  On RDNA (gfx10 and up) stores to a doorbell register were seen to
 * arrive late, out of order and merged with later ones, with any fences
 * (ROCm/rocm-xio, pull request 114).  Two measures are needed, and neither
 * suffices without the other:
 *
 * - the host registers the doorbell page as I/O memory, hipHostRegister() with
 *   hipHostRegisterIoMemory, not with hipHostRegisterMapped alone: only then is
 *   it uncached in the GPU's page table;
 * - no store may be in flight before or after a doorbell store: fences of
 *   system scope on both sides wait until all stores have completed, and the
 *   volatile store between them bypasses the caches.
 */
#ifndef NVMEPEER_DEVICE_PLATFORM_HIP_H
#define NVMEPEER_DEVICE_PLATFORM_HIP_H

#include "platform.h"

#define NVP_SCOPE_SYSTEM __HIP_MEMORY_SCOPE_SYSTEM
#define NVP_SCOPE_AGENT __HIP_MEMORY_SCOPE_AGENT

#ifndef NVP_PLATFORM_BUS
#define NVP_PLATFORM_BUS

NVP_FN void nvp_sq_store(uint64_t address, const uint32_t value[4])
{
	uint64_t *entry = (uint64_t *)(uintptr_t)address;

	__hip_atomic_store(&entry[0], value[0] | (uint64_t)value[1] << 32, __ATOMIC_RELAXED,
			   NVP_SCOPE_SYSTEM);
	__hip_atomic_store(&entry[1], value[2] | (uint64_t)value[3] << 32, __ATOMIC_RELAXED,
			   NVP_SCOPE_SYSTEM);
}

NVP_FN void nvp_cq_load(uint64_t address, uint32_t value[4])
{
	uint64_t *entry = (uint64_t *)(uintptr_t)address;
	uint64_t high = __hip_atomic_load(&entry[1], __ATOMIC_ACQUIRE, NVP_SCOPE_SYSTEM);
	uint64_t low = __hip_atomic_load(&entry[0], __ATOMIC_RELAXED, NVP_SCOPE_SYSTEM);

	value[0] = (uint32_t)low;
	value[1] = (uint32_t)(low >> 32);
	value[2] = (uint32_t)high;
	value[3] = (uint32_t)(high >> 32);
}

NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
	*(volatile uint32_t *)(uintptr_t)address = value;
	__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
}

NVP_FN uint32_t nvp_status_load(uint64_t address)
{
	return __hip_atomic_load((uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE,
				 NVP_SCOPE_SYSTEM);
}

NVP_FN void nvp_list_store(uint64_t address, uint64_t value)
{
	__hip_atomic_store((uint64_t *)(uintptr_t)address, value, __ATOMIC_RELAXED,
			   NVP_SCOPE_SYSTEM);
}

NVP_FN void nvp_fence_publish(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "");
}

NVP_FN void nvp_fence_consume(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}
#endif /* NVP_PLATFORM_BUS */

#ifndef NVP_PLATFORM_ATOMICS
#define NVP_PLATFORM_ATOMICS

NVP_FN uint32_t nvp_load32(const uint32_t *p)
{
	return __hip_atomic_load((uint32_t *)p, __ATOMIC_RELAXED, NVP_SCOPE_AGENT);
}

NVP_FN uint64_t nvp_load64(const uint64_t *p)
{
	return __hip_atomic_load((uint64_t *)p, __ATOMIC_RELAXED, NVP_SCOPE_AGENT);
}

NVP_FN void nvp_store32(uint32_t *p, uint32_t value)
{
	__hip_atomic_store(p, value, __ATOMIC_RELAXED, NVP_SCOPE_AGENT);
}

NVP_FN void nvp_store64(uint64_t *p, uint64_t value)
{
	__hip_atomic_store(p, value, __ATOMIC_RELAXED, NVP_SCOPE_AGENT);
}

NVP_FN uint32_t nvp_add32(uint32_t *p, uint32_t value)
{
	return __hip_atomic_fetch_add(p, value, __ATOMIC_RELAXED, NVP_SCOPE_AGENT);
}

NVP_FN uint64_t nvp_add64(uint64_t *p, uint64_t value)
{
	return __hip_atomic_fetch_add(p, value, __ATOMIC_RELAXED, NVP_SCOPE_AGENT);
}

NVP_FN uint32_t nvp_exchange32(uint32_t *p, uint32_t value)
{
	return __hip_atomic_exchange(p, value, __ATOMIC_RELAXED, NVP_SCOPE_AGENT);
}

NVP_FN uint32_t nvp_or32(uint32_t *p, uint32_t value)
{
	return __hip_atomic_fetch_or(p, value, __ATOMIC_RELAXED, NVP_SCOPE_AGENT);
}

NVP_FN void nvp_post_add32(uint32_t *p, uint32_t value)
{
	nvp_add32(p, value);
}

NVP_FN void nvp_post_or32(uint32_t *p, uint32_t value)
{
	nvp_or32(p, value);
}

NVP_FN uint32_t nvp_compare_exchange32(uint32_t *p, uint32_t old, uint32_t value)
{
	__hip_atomic_compare_exchange_strong(p, &old, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
					     NVP_SCOPE_AGENT);
	return old;
}

NVP_FN void nvp_fence_device(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
}

NVP_FN void nvp_fence_device_acquire(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}
#endif /* NVP_PLATFORM_ATOMICS */

#ifndef NVP_PLATFORM_TIME
#define NVP_PLATFORM_TIME

/* A constant clock of 100 MHz. */
NVP_FN uint64_t nvmepeer_now_ns(void)
{
#if defined(__GFX11__) || defined(__GFX12__)
	return 10 * __builtin_amdgcn_s_sendmsg_rtnl(0x83);
#else
	return 10 * __builtin_amdgcn_s_memrealtime();
#endif
}

NVP_FN void nvp_pause(uint32_t ns)
{
	for (; ns >= 32; ns = ns > 64 ? ns - 64 : 0)
		__builtin_amdgcn_s_sleep(1);
}
#endif /* NVP_PLATFORM_TIME */

#ifndef NVP_PLATFORM_LANES
#define NVP_PLATFORM_LANES

/*
 * The builtin is a constant after code generation.  Compilers without it use
 * the maximum number of lanes, which is correct on every GPU.
 */
#if __has_builtin(__builtin_amdgcn_wavefrontsize)
#define NVMEPEER_LANES __builtin_amdgcn_wavefrontsize()
#else
#define NVMEPEER_LANES 64
#endif

typedef uint64_t nvmepeer_mask;

/* Comparison 33 is "not equal"; the result has a bit for each active lane. */
NVP_FN nvmepeer_mask nvp_lanes_ballot(nvmepeer_mask mask, int predicate)
{
	return __builtin_amdgcn_uicmp((uint32_t)predicate, 0u, 33) & mask;
}

NVP_FN nvmepeer_mask nvp_lanes_active(void)
{
	return nvp_lanes_ballot(~(nvmepeer_mask)0, 1);
}

NVP_FN uint32_t nvp_lanes_copy32(nvmepeer_mask mask, uint32_t value, uint32_t lane)
{
	(void)mask;
	return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(4 * lane), (int)value);
}

NVP_FN uint64_t nvp_lanes_copy64(nvmepeer_mask mask, uint64_t value, uint32_t lane)
{
	uint64_t low = nvp_lanes_copy32(mask, (uint32_t)value, lane);

	return (uint64_t)nvp_lanes_copy32(mask, (uint32_t)(value >> 32), lane) << 32 | low;
}

NVP_FN uint32_t nvp_mask_count(nvmepeer_mask mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

NVP_FN uint32_t nvp_mask_first(nvmepeer_mask mask)
{
	return (uint32_t)__builtin_ctzll(mask);
}

NVP_FN uint32_t nvp_count_bits(uint32_t bits)
{
	return (uint32_t)__builtin_popcount(bits);
}

/* Position of the lowest set bit; @bits is not 0. */
NVP_FN uint32_t nvp_first_bit(uint32_t bits)
{
	return (uint32_t)__builtin_ctz(bits);
}

NVP_FN uint32_t nvp_lane(void)
{
	return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

NVP_FN nvmepeer_mask nvp_lanes_match(nvmepeer_mask mask, uint64_t value)
{
	nvmepeer_mask mine = 0;

	for (nvmepeer_mask left = mask; left; ) {
		uint64_t first = nvp_lanes_copy64(mask, value, nvp_mask_first(left));
		nvmepeer_mask same = nvp_lanes_ballot(mask, first == value);

		if (first == value)
			mine = same;
		left &= ~same;
	}
	return mine;
}

NVP_FN uint32_t nvp_lanes_or32(nvmepeer_mask mask, uint32_t value)
{
	uint32_t all = 0;

	for (nvmepeer_mask left = mask; left; left &= left - 1)
		all |= nvp_lanes_copy32(mask, value, nvp_mask_first(left));
	return all;
}

/*
 * Lanes of a wave execute in lockstep; the fence stops the compiler from
 * reordering memory accesses.
 */
NVP_FN void nvp_lanes_sync(nvmepeer_mask mask)
{
	(void)mask;
	__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
	__builtin_amdgcn_wave_barrier();
}

NVP_FN uint32_t nvp_start_hash(void)
{
	uint32_t waves = (__builtin_amdgcn_workgroup_size_x() + NVMEPEER_LANES - 1) /
			 NVMEPEER_LANES;

	return __builtin_amdgcn_workgroup_id_x() * waves +
	       __builtin_amdgcn_workitem_id_x() / NVMEPEER_LANES;
}
#endif /* NVP_PLATFORM_LANES */

#ifndef NVP_PLATFORM_BLOCK
#define NVP_PLATFORM_BLOCK

NVP_FN uint32_t nvp_block_thread(void)
{
	return __builtin_amdgcn_workitem_id_x() +
	       __builtin_amdgcn_workgroup_size_x() *
	       (__builtin_amdgcn_workitem_id_y() +
		__builtin_amdgcn_workgroup_size_y() * __builtin_amdgcn_workitem_id_z());
}

NVP_FN uint32_t nvp_block_threads(void)
{
	return __builtin_amdgcn_workgroup_size_x() * __builtin_amdgcn_workgroup_size_y() *
	       __builtin_amdgcn_workgroup_size_z();
}

NVP_FN void nvp_block_sync(void)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

NVP_FN uint64_t nvp_block_cas(uint64_t *p, uint64_t old, uint64_t value)
{
	__hip_atomic_compare_exchange_strong(p, &old, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
					     __HIP_MEMORY_SCOPE_WORKGROUP);
	return old;
}

NVP_FN uint32_t nvp_block_max(uint32_t *p, uint32_t value)
{
	return __hip_atomic_fetch_max(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
#endif /* NVP_PLATFORM_BLOCK */

#endif /* NVMEPEER_DEVICE_PLATFORM_HIP_H */
