/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/platform_c11.h: the platform of C threads.  One lane per
 * thread.  Accesses have the order that the fences of platform.h would give, so
 * that ThreadSanitizer sees every happens-before edge; on x86 and arm64 that
 * adds no cost to the fences.
 */
#ifndef NVMEPEER_DEVICE_PLATFORM_C11_H
#define NVMEPEER_DEVICE_PLATFORM_C11_H

#include "platform.h"

#ifndef __GNUC__
#error "needs the __atomic builtins of gcc or clang, or NVMEPEER_PLATFORM_HEADER"
#endif

#include <sched.h>
#include <time.h>

#ifndef NVP_PLATFORM_BUS
#define NVP_PLATFORM_BUS

NVP_FN void nvp_sq_store(uint64_t address, const uint32_t value[4])
{
	uint32_t *entry = (uint32_t *)(uintptr_t)address;

	for (int i = 0; i < 4; i++)
		__atomic_store_n(&entry[i], value[i], __ATOMIC_RELAXED);
}

/*
 * The controller writes the phase tag of an entry last, or the whole entry at
 * once.
 */
NVP_FN void nvp_cq_load(uint64_t address, uint32_t value[4])
{
	const uint32_t *entry = (const uint32_t *)(uintptr_t)address;

	for (int i = 3; i >= 0; i--)
		value[i] = __atomic_load_n(&entry[i], __ATOMIC_ACQUIRE);
}

NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value)
{
	__atomic_store_n((uint32_t *)(uintptr_t)address, value, __ATOMIC_RELEASE);
}

NVP_FN uint32_t nvp_status_load(uint64_t address)
{
	return __atomic_load_n((const uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
}

NVP_FN void nvp_list_store(uint64_t address, uint64_t value)
{
	__atomic_store_n((uint64_t *)(uintptr_t)address, value, __ATOMIC_RELAXED);
}

NVP_FN void nvp_fence_publish(void)
{
#ifndef __SANITIZE_THREAD__
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

NVP_FN void nvp_fence_consume(void)
{
#ifndef __SANITIZE_THREAD__
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}
#endif /* NVP_PLATFORM_BUS */

#ifndef NVP_PLATFORM_ATOMICS
#define NVP_PLATFORM_ATOMICS

NVP_FN uint32_t nvp_load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

NVP_FN uint64_t nvp_load64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

NVP_FN void nvp_store32(uint32_t *p, uint32_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

NVP_FN void nvp_store64(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

NVP_FN uint32_t nvp_add32(uint32_t *p, uint32_t value)
{
	return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}

NVP_FN uint64_t nvp_add64(uint64_t *p, uint64_t value)
{
	return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}

NVP_FN uint32_t nvp_exchange32(uint32_t *p, uint32_t value)
{
	return __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL);
}

NVP_FN uint32_t nvp_or32(uint32_t *p, uint32_t value)
{
	return __atomic_fetch_or(p, value, __ATOMIC_ACQ_REL);
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
	__atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	return old;
}

NVP_FN void nvp_fence_device(void)
{
#ifndef __SANITIZE_THREAD__
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

NVP_FN void nvp_fence_device_acquire(void)
{
#ifndef __SANITIZE_THREAD__
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}
#endif /* NVP_PLATFORM_ATOMICS */

#ifndef NVP_PLATFORM_TIME
#define NVP_PLATFORM_TIME

/*
 * -std=c11 hides the POSIX function clock_gettime(), and C11 has no monotonic
 * clock.  Declare the function under a name that <time.h> does not have.
 */
extern int nvp_clock_gettime(int clock, struct timespec *now) __asm__("clock_gettime");
enum { NVP_CLOCK_MONOTONIC = 1 };

NVP_FN uint64_t nvmepeer_now_ns(void)
{
	struct timespec now;

	nvp_clock_gettime(NVP_CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Threads may outnumber processors: yield to another one. */
NVP_FN void nvp_pause(uint32_t ns)
{
	(void)ns;
	sched_yield();
}
#endif /* NVP_PLATFORM_TIME */

#ifndef NVP_PLATFORM_LANES
#define NVP_PLATFORM_LANES

/*
 * More lanes only for code that is compiled for wide groups and runs with one
 * lane.
 */
#ifndef NVMEPEER_LANES
#define NVMEPEER_LANES 1
#endif

#if NVMEPEER_LANES > 32
typedef uint64_t nvmepeer_mask;
#else
typedef uint32_t nvmepeer_mask;
#endif

NVP_FN nvmepeer_mask nvp_lanes_active(void)
{
	return 1;
}

NVP_FN nvmepeer_mask nvp_lanes_match(nvmepeer_mask mask, uint64_t value)
{
	(void)value;
	return mask;
}

NVP_FN nvmepeer_mask nvp_lanes_ballot(nvmepeer_mask mask, int predicate)
{
	return predicate ? mask : 0;
}

NVP_FN uint32_t nvp_lanes_copy32(nvmepeer_mask mask, uint32_t value, uint32_t lane)
{
	(void)mask;
	(void)lane;
	return value;
}

NVP_FN uint64_t nvp_lanes_copy64(nvmepeer_mask mask, uint64_t value, uint32_t lane)
{
	(void)mask;
	(void)lane;
	return value;
}

NVP_FN uint32_t nvp_lanes_or32(nvmepeer_mask mask, uint32_t value)
{
	(void)mask;
	return value;
}

NVP_FN void nvp_lanes_sync(nvmepeer_mask mask)
{
	(void)mask;
}

NVP_FN uint32_t nvp_lane(void)
{
	return 0;
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

/* The stacks of threads are far apart. */
NVP_FN uint32_t nvp_start_hash(void)
{
	uint64_t frame = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	return (uint32_t)((frame >> 12) * 0x9e3779b97f4a7c15u >> 40);
}
#endif /* NVP_PLATFORM_LANES */

#ifndef NVP_PLATFORM_BLOCK
#define NVP_PLATFORM_BLOCK

NVP_FN uint32_t nvp_block_thread(void)
{
	return 0;
}

NVP_FN uint32_t nvp_block_threads(void)
{
	return 1;
}

NVP_FN void nvp_block_sync(void)
{
}

NVP_FN uint64_t nvp_block_cas(uint64_t *p, uint64_t old, uint64_t value)
{
	uint64_t found = *p;

	if (found == old)
		*p = value;
	return found;
}

NVP_FN uint32_t nvp_block_max(uint32_t *p, uint32_t value)
{
	uint32_t found = *p;

	if (value > found)
		*p = value;
	return found;
}
#endif /* NVP_PLATFORM_BLOCK */

#endif /* NVMEPEER_DEVICE_PLATFORM_C11_H */
