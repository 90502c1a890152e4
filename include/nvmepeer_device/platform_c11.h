/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/platform_c11.h: the platform of ordinary C threads.  One
 * lane per thread.  Accesses are atomic with the order that the fences of
 * platform.h would give, so that ThreadSanitizer sees every edge; on x86 and
 * arm64 that costs nothing beside them.
 */
#ifndef NVMEPEER_DEVICE_PLATFORM_C11_H
#define NVMEPEER_DEVICE_PLATFORM_C11_H

#ifndef __GNUC__
#error "needs the __atomic builtins of gcc or clang, or NVMEPEER_PLATFORM_HEADER"
#endif

#include <sched.h>
#include <time.h>

#ifndef NVMEPEER_PLATFORM_BUS
#define NVMEPEER_PLATFORM_BUS

NVMEPEER_FN void nvmepeer_sq_store(uint64_t address, const uint32_t value[4])
{
	uint32_t *entry = (uint32_t *)(uintptr_t)address;

	for (int i = 0; i < 4; i++)
		__atomic_store_n(&entry[i], value[i], __ATOMIC_RELAXED);
}

/* The controller writes an entry's phase tag last or all at once. */
NVMEPEER_FN void nvmepeer_cq_load(uint64_t address, uint32_t value[4])
{
	const uint32_t *entry = (const uint32_t *)(uintptr_t)address;

	for (int i = 3; i >= 0; i--)
		value[i] = __atomic_load_n(&entry[i], __ATOMIC_ACQUIRE);
}

NVMEPEER_FN void nvmepeer_doorbell_store(uint64_t address, uint32_t value)
{
	__atomic_store_n((uint32_t *)(uintptr_t)address, value, __ATOMIC_RELEASE);
}

NVMEPEER_FN uint32_t nvmepeer_status_load(uint64_t address)
{
	return __atomic_load_n((const uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
}

NVMEPEER_FN void nvmepeer_list_store(uint64_t address, uint64_t value)
{
	__atomic_store_n((uint64_t *)(uintptr_t)address, value, __ATOMIC_RELAXED);
}

NVMEPEER_FN void nvmepeer_fence_publish(void)
{
#ifndef __SANITIZE_THREAD__
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

NVMEPEER_FN void nvmepeer_fence_consume(void)
{
#ifndef __SANITIZE_THREAD__
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}
#endif /* NVMEPEER_PLATFORM_BUS */

#ifndef NVMEPEER_PLATFORM_ATOMICS
#define NVMEPEER_PLATFORM_ATOMICS

NVMEPEER_FN uint32_t nvmepeer_load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

NVMEPEER_FN uint64_t nvmepeer_load64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

NVMEPEER_FN void nvmepeer_store32(uint32_t *p, uint32_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

NVMEPEER_FN void nvmepeer_store64(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

NVMEPEER_FN uint32_t nvmepeer_add32(uint32_t *p, uint32_t value)
{
	return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}

NVMEPEER_FN uint64_t nvmepeer_add64(uint64_t *p, uint64_t value)
{
	return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}

NVMEPEER_FN uint32_t nvmepeer_exchange32(uint32_t *p, uint32_t value)
{
	return __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL);
}

NVMEPEER_FN uint32_t nvmepeer_or32(uint32_t *p, uint32_t value)
{
	return __atomic_fetch_or(p, value, __ATOMIC_ACQ_REL);
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
	__atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	return old;
}

NVMEPEER_FN void nvmepeer_fence_device(void)
{
#ifndef __SANITIZE_THREAD__
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

NVMEPEER_FN void nvmepeer_fence_claimed(void)
{
#ifndef __SANITIZE_THREAD__
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}
#endif /* NVMEPEER_PLATFORM_ATOMICS */

#ifndef NVMEPEER_PLATFORM_TIME
#define NVMEPEER_PLATFORM_TIME

/*
 * -std=c11 hides clock_gettime(), which is POSIX's, and has no clock that never
 * goes back: so it is declared here, under a name that <time.h> does not have.
 */
extern int nvmepeer_clock_gettime(int clock, struct timespec *now) __asm__("clock_gettime");
enum { NVMEPEER_CLOCK_MONOTONIC = 1 };

NVMEPEER_FN uint64_t nvmepeer_now_ns(void)
{
	struct timespec now;

	nvmepeer_clock_gettime(NVMEPEER_CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Threads may outnumber processors: let another one run. */
NVMEPEER_FN void nvmepeer_pause(uint32_t ns)
{
	(void)ns;
	sched_yield();
}
#endif /* NVMEPEER_PLATFORM_TIME */

#ifndef NVMEPEER_PLATFORM_LANES
#define NVMEPEER_PLATFORM_LANES

/* More only for code that is made for wide groups and has one lane all the same. */
#ifndef NVMEPEER_LANES
#define NVMEPEER_LANES 1
#endif

#if NVMEPEER_LANES > 32
typedef uint64_t nvmepeer_mask;
#else
typedef uint32_t nvmepeer_mask;
#endif

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_active(void)
{
	return 1;
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_match(nvmepeer_mask mask, uint64_t value)
{
	(void)value;
	return mask;
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_ballot(nvmepeer_mask mask, int predicate)
{
	return predicate ? mask : 0;
}

NVMEPEER_FN uint32_t nvmepeer_lanes_copy32(nvmepeer_mask mask, uint32_t value, uint32_t lane)
{
	(void)mask;
	(void)lane;
	return value;
}

NVMEPEER_FN uint64_t nvmepeer_lanes_copy64(nvmepeer_mask mask, uint64_t value, uint32_t lane)
{
	(void)mask;
	(void)lane;
	return value;
}

NVMEPEER_FN uint32_t nvmepeer_lanes_or32(nvmepeer_mask mask, uint32_t value)
{
	(void)mask;
	return value;
}

NVMEPEER_FN void nvmepeer_lanes_sync(nvmepeer_mask mask)
{
	(void)mask;
}

NVMEPEER_FN uint32_t nvmepeer_lane(void)
{
	return 0;
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

/* Threads have stacks far apart. */
NVMEPEER_FN uint32_t nvmepeer_home(void)
{
	uint64_t frame = (uint64_t)(uintptr_t)__builtin_frame_address(0);

	return (uint32_t)((frame >> 12) * 0x9e3779b97f4a7c15u >> 40);
}
#endif /* NVMEPEER_PLATFORM_LANES */

#ifndef NVMEPEER_PLATFORM_BLOCK
#define NVMEPEER_PLATFORM_BLOCK

NVMEPEER_FN uint32_t nvmepeer_block_thread(void)
{
	return 0;
}

NVMEPEER_FN uint32_t nvmepeer_block_threads(void)
{
	return 1;
}

NVMEPEER_FN void nvmepeer_block_sync(void)
{
}

NVMEPEER_FN uint64_t nvmepeer_block_claim(uint64_t *p, uint64_t old, uint64_t value)
{
	uint64_t found = *p;

	if (found == old)
		*p = value;
	return found;
}

NVMEPEER_FN uint32_t nvmepeer_block_max(uint32_t *p, uint32_t value)
{
	uint32_t found = *p;

	if (value > found)
		*p = value;
	return found;
}
#endif /* NVMEPEER_PLATFORM_BLOCK */

#endif /* NVMEPEER_DEVICE_PLATFORM_C11_H */
