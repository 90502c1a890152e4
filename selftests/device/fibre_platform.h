/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fibre_platform.h: the device library's platform on the machine of fibres.h
 * with the memory of weak.h. Accesses and fences have exactly the order and
 * scope that platform.h requires, as those of CUDA.  Every access may switch to
 * another lane, and is counted.
 *
 * With FIBRE_HIP or FIBRE_C11 platform_hip.h or platform_c11.h accesses memory
 * instead, with builtins that are implemented here.
 */
#ifndef SELFTESTS_DEVICE_FIBRE_PLATFORM_H
#define SELFTESTS_DEVICE_FIBRE_PLATFORM_H

#include "weak.h"

/*
 * If data and completions use different paths: a word that is read on the path
 * of the data and, behind it, always has the newest value.  NULL: one path.
 */
static uint32_t *fibre_readback;

/* One load or store of a word of any type. */
static inline uint64_t fibre_load(const void *address, uint32_t bytes, int order,
				  enum weak_scope scope)
{
	uint64_t value[2];

	machine_step();
	machine.counts.loads++;
	if (address == fibre_readback)
		return weak_newest(address, bytes, order, scope);
	weak_load(address, bytes, value, order, scope);
	return value[0];
}

static inline void fibre_store(void *address, uint32_t bytes, uint64_t value, int order,
			       enum weak_scope scope)
{
	uint64_t pair[2] = { value, 0 };

	machine_step();
	machine.counts.stores++;
	weak_store(address, bytes, pair, order, scope);
}

enum fibre_change { FIBRE_ADD, FIBRE_OR, FIBRE_EXCHANGE, FIBRE_COMPARE };

/*
 * An atomic; returns the old value.  @expected is used by FIBRE_COMPARE only.
 */
static inline uint64_t fibre_atomic(enum fibre_change change, void *address, uint32_t bytes,
				    uint64_t value, uint64_t expected, int order,
				    enum weak_scope scope)
{
	uint64_t old, made = value;

	machine_step();
	machine.counts.atomics++;
	old = weak_newest(address, bytes, order, scope);
	if (change == FIBRE_COMPARE && old != expected)
		return old;
	if (change == FIBRE_ADD)
		made = old + value;
	else if (change == FIBRE_OR)
		made = old | value;
	if (bytes == 4)
		made = (uint32_t)made;
	weak_change(address, bytes, made, order, scope);
	return old;
}

#if !defined(FIBRE_HIP) && !defined(FIBRE_C11)

/* An atomic without a result, which therefore acquires nothing. */
static inline void fibre_post(enum fibre_change change, uint32_t *p, uint32_t value)
{
	uint32_t old;

	machine_step();
	machine.counts.atomics++;
	old = (uint32_t)weak.messages[weak.locations[weak_location(p, 4)].newest].value[0];
	weak_change(p, 4, change == FIBRE_ADD ? old + value : old | value, __ATOMIC_RELAXED,
		    WEAK_DEVICE);
}

/* Accesses of controllers to rings: entries are accessed 16 bytes at a time. */
enum { FIBRE_PIECE = 16 };

#define NVP_PLATFORM_BUS
NVP_FN void nvp_sq_store(uint64_t address, const uint32_t value[4])
{
	uint64_t pair[2];

	memcpy(pair, value, 16);
	machine_step();
	machine.counts.entry_stores++;
	weak_store((void *)(uintptr_t)address, 16, pair, __ATOMIC_RELAXED, WEAK_SYSTEM);
}

NVP_FN void nvp_cq_load(uint64_t address, uint32_t value[4])
{
	uint64_t pair[2];

	machine_step();
	machine.counts.cq_loads++;
	weak_load((const void *)(uintptr_t)address, 16, pair, __ATOMIC_RELAXED, WEAK_SYSTEM);
	memcpy(value, pair, 16);
}

NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value)
{
	machine.counts.doorbells++;
	fibre_current()->rings++;
	fibre_store((void *)(uintptr_t)address, 4, value, __ATOMIC_RELAXED, WEAK_SYSTEM);
}

NVP_FN uint32_t nvp_status_load(uint64_t address)
{
	return (uint32_t)fibre_load((const void *)(uintptr_t)address, 4, __ATOMIC_ACQUIRE,
				    WEAK_SYSTEM);
}

NVP_FN void nvp_list_store(uint64_t address, uint64_t value)
{
	fibre_store((void *)(uintptr_t)address, 8, value, __ATOMIC_RELAXED, WEAK_SYSTEM);
}

NVP_FN void nvp_fence_publish(void)
{
	machine.counts.fences_publish++;
	weak_fence(__ATOMIC_ACQ_REL, WEAK_SYSTEM);
}

NVP_FN void nvp_fence_consume(void)
{
	machine.counts.fences_consume++;
	weak_fence(__ATOMIC_ACQUIRE, WEAK_SYSTEM);
}

#define NVP_PLATFORM_ATOMICS
NVP_FN uint32_t nvp_load32(const uint32_t *p)
{
	return (uint32_t)fibre_load(p, 4, __ATOMIC_RELAXED, WEAK_DEVICE);
}

NVP_FN uint64_t nvp_load64(const uint64_t *p)
{
	return fibre_load(p, 8, __ATOMIC_RELAXED, WEAK_DEVICE);
}

NVP_FN void nvp_store32(uint32_t *p, uint32_t value)
{
	fibre_store(p, 4, value, __ATOMIC_RELAXED, WEAK_DEVICE);
}

NVP_FN void nvp_store64(uint64_t *p, uint64_t value)
{
	fibre_store(p, 8, value, __ATOMIC_RELAXED, WEAK_DEVICE);
}

#define FIBRE_ATOMIC(name, type, change)					\
NVP_FN type name(type *p, type value)					\
{										\
	return (type)fibre_atomic(change, p, sizeof(*p), value, 0,		\
				  __ATOMIC_RELAXED, WEAK_DEVICE);		\
}
FIBRE_ATOMIC(nvp_add32, uint32_t, FIBRE_ADD)
FIBRE_ATOMIC(nvp_add64, uint64_t, FIBRE_ADD)
FIBRE_ATOMIC(nvp_exchange32, uint32_t, FIBRE_EXCHANGE)
FIBRE_ATOMIC(nvp_or32, uint32_t, FIBRE_OR)

NVP_FN void nvp_post_add32(uint32_t *p, uint32_t value)
{
	fibre_post(FIBRE_ADD, p, value);
}

NVP_FN void nvp_post_or32(uint32_t *p, uint32_t value)
{
	fibre_post(FIBRE_OR, p, value);
}

NVP_FN uint32_t nvp_compare_exchange32(uint32_t *p, uint32_t old, uint32_t value)
{
	return (uint32_t)fibre_atomic(FIBRE_COMPARE, p, 4, value, old, __ATOMIC_RELAXED,
				      WEAK_DEVICE);
}

NVP_FN void nvp_fence_device(void)
{
	machine.counts.fences_device++;
	weak_fence(__ATOMIC_ACQ_REL, WEAK_DEVICE);
}

NVP_FN void nvp_fence_device_acquire(void)
{
	machine.counts.fences_claimed++;
	weak_fence(__ATOMIC_ACQUIRE, WEAK_DEVICE);
}

#elif defined(FIBRE_HIP)

/* Entries are accessed by halves, as in platform_hip.h. */
enum { FIBRE_PIECE = 8 };

#define __HIP_MEMORY_SCOPE_SYSTEM WEAK_SYSTEM
#define __HIP_MEMORY_SCOPE_AGENT WEAK_DEVICE
#define __hip_atomic_load(p, order, scope)						\
	((__typeof__(*(p)))fibre_load(p, sizeof(*(p)), order, scope))
#define __hip_atomic_store(p, value, order, scope)					\
	fibre_store(p, sizeof(*(p)), value, order, scope)
#define __hip_atomic_fetch_add(p, value, order, scope)					\
	((__typeof__(*(p)))fibre_atomic(FIBRE_ADD, p, sizeof(*(p)), value, 0, order, scope))
#define __hip_atomic_fetch_or(p, value, order, scope)					\
	((__typeof__(*(p)))fibre_atomic(FIBRE_OR, p, sizeof(*(p)), value, 0, order, scope))
#define __hip_atomic_exchange(p, value, order, scope)					\
	((__typeof__(*(p)))fibre_atomic(FIBRE_EXCHANGE, p, sizeof(*(p)), value, 0, order, scope))
#define __hip_atomic_compare_exchange_strong(p, old, value, order, failed, scope)	\
	((void)(failed), *(old) = (__typeof__(*(p)))fibre_atomic(FIBRE_COMPARE, p,	\
		sizeof(*(p)), value, *(old), order, scope))
/* "": system scope */
#define __builtin_amdgcn_fence(order, scope)						\
	weak_fence(order, (scope)[0] ? WEAK_DEVICE : WEAK_SYSTEM)

#else

/* Entries are accessed by words. */
enum { FIBRE_PIECE = 4 };

#define __atomic_load_n(p, order)							\
	((__typeof__(*(p)))fibre_load(p, sizeof(*(p)), order, WEAK_SYSTEM))
#define __atomic_store_n(p, value, order)						\
	fibre_store(p, sizeof(*(p)), value, order, WEAK_SYSTEM)
#define __atomic_fetch_add(p, value, order)						\
	((__typeof__(*(p)))fibre_atomic(FIBRE_ADD, p, sizeof(*(p)), value, 0, order, WEAK_SYSTEM))
#define __atomic_fetch_or(p, value, order)						\
	((__typeof__(*(p)))fibre_atomic(FIBRE_OR, p, sizeof(*(p)), value, 0, order, WEAK_SYSTEM))
#define __atomic_exchange_n(p, value, order)						\
	((__typeof__(*(p)))fibre_atomic(FIBRE_EXCHANGE, p, sizeof(*(p)), value, 0, order,	\
					WEAK_SYSTEM))
#define __atomic_compare_exchange_n(p, old, value, weakly, order, failed)		\
	((void)(weakly), (void)(failed), *(old) = (__typeof__(*(p)))fibre_atomic(FIBRE_COMPARE, p, \
		sizeof(*(p)), value, *(old), order, WEAK_SYSTEM))
#define __atomic_thread_fence(order) weak_fence(order, WEAK_SYSTEM)

#endif

#define NVP_PLATFORM_TIME
NVP_FN uint64_t nvmepeer_now_ns(void)
{
	return machine.now_ns;
}

NVP_FN void nvp_pause(uint32_t ns)
{
	(void)ns;
	machine_rest();
}

#define NVP_PLATFORM_LANES
#ifndef NVMEPEER_LANES
#define NVMEPEER_LANES 8
#endif

#if NVMEPEER_LANES > 32
typedef uint64_t nvmepeer_mask;
#else
typedef uint32_t nvmepeer_mask;
#endif

/*
 * Lanes are converged if they took the same path: compare the call sites on
 * their stacks.
 */
static __attribute__((noinline, unused)) uint64_t fibre_site(void)
{
	const char *stack = fibre_stacks[machine.current];
	void **frame = __builtin_frame_address(0);
	uint64_t site = 0;

	while ((char *)frame >= stack && (char *)frame < stack + FIBRE_STACK - 16) {
		site = site * 31 + (uintptr_t)frame[1];
		frame = frame[0];
	}
	return site;
}

NVP_FN nvmepeer_mask nvp_lanes_active(void)
{
	return (nvmepeer_mask)machine_join(fibre_site());
}

NVP_FN nvmepeer_mask nvp_lanes_match(nvmepeer_mask mask, uint64_t value)
{
	nvmepeer_mask same = 0;

	machine_meet(mask, value);
	for (uint32_t i = 0; i < NVMEPEER_LANES; i++)
		if (mask >> i & 1 && fibre_current()->others[i] == value)
			same |= (nvmepeer_mask)1 << i;
	return same;
}

NVP_FN nvmepeer_mask nvp_lanes_ballot(nvmepeer_mask mask, int predicate)
{
	nvmepeer_mask set = 0;

	machine_meet(mask, predicate != 0);
	for (uint32_t i = 0; i < NVMEPEER_LANES; i++)
		if (mask >> i & 1 && fibre_current()->others[i])
			set |= (nvmepeer_mask)1 << i;
	return set;
}

/* A lane outside the mask has no value: report the error. */
NVP_FN uint64_t nvp_lanes_copy64(nvmepeer_mask mask, uint64_t value, uint32_t lane)
{
	machine_meet(mask, value);
	if (!(mask >> lane & 1))
		abort();
	return fibre_current()->others[lane];
}

NVP_FN uint32_t nvp_lanes_copy32(nvmepeer_mask mask, uint32_t value, uint32_t lane)
{
	return (uint32_t)nvp_lanes_copy64(mask, value, lane);
}

NVP_FN uint32_t nvp_lanes_or32(nvmepeer_mask mask, uint32_t value)
{
	uint32_t all = 0;

	machine_meet(mask, value);
	for (uint32_t i = 0; i < NVMEPEER_LANES; i++)
		all |= mask >> i & 1 ? (uint32_t)fibre_current()->others[i] : 0;
	return all;
}

/* The only barrier of lanes that orders memory. */
NVP_FN void nvp_lanes_sync(nvmepeer_mask mask)
{
	weak_meet(mask);
}

NVP_FN uint32_t nvp_lane(void)
{
	return fibre_current()->lane;
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

NVP_FN uint32_t nvp_start_hash(void)
{
	return fibre_current()->warp;
}

#define NVP_PLATFORM_FLAG
NVP_FN void nvp_flag_store(uint32_t *flag, uint32_t value)
{
	fibre_store(flag, 4, value, __ATOMIC_RELEASE, WEAK_DEVICE);
}

NVP_FN uint32_t nvp_flag_load(const uint32_t *flag)
{
	return (uint32_t)fibre_load(flag, 4, __ATOMIC_ACQUIRE, WEAK_DEVICE);
}

#define NVP_PLATFORM_BLOCK
static uint32_t fibre_block_warps = 1;	/* warps of a block, in a row */
static uint32_t fibre_block_threads;	/* of a block that is less than a warp; or 0 */

NVP_FN uint32_t nvp_block_thread(void)
{
	return fibre_current()->warp % fibre_block_warps * NVMEPEER_LANES + fibre_current()->lane;
}

NVP_FN uint32_t nvp_block_threads(void)
{
	return fibre_block_threads ? fibre_block_threads : fibre_block_warps * NVMEPEER_LANES;
}

NVP_FN void nvp_block_sync(void)
{
	weak_barrier();
}

/* Plain accesses use shared memory of a block, too: it has no delays. */
NVP_FN uint64_t nvp_block_cas(uint64_t *p, uint64_t old, uint64_t value)
{
	uint64_t found;

	machine_step();
	found = *p;
	if (found == old)
		*p = value;
	return found;
}

NVP_FN uint32_t nvp_block_max(uint32_t *p, uint32_t value)
{
	uint32_t found;

	machine_step();
	found = *p;
	if (value > found)
		*p = value;
	return found;
}

/* Accesses of a controller of controller.h: system scope, in order. */
#define CONTROLLER_MEMORY

static inline bool controller_register(const uint32_t *address, uint32_t last, uint32_t *value)
{
	(void)last;
	machine_step();
	return weak_register(address, value);
}

static inline void controller_read(const void *from, void *to, uint32_t bytes)
{
	for (uint32_t at = 0; at < bytes; at += FIBRE_PIECE) {
		uint64_t value[2];

		weak_load((const char *)from + at, FIBRE_PIECE, value, __ATOMIC_RELAXED,
			  WEAK_SYSTEM);
		memcpy((char *)to + at, value, FIBRE_PIECE);
	}
}

/*
 * Store a completion entry, after everything that the controller wrote before.
 */
static inline void controller_write(void *to, const uint32_t entry[4])
{
	for (uint32_t at = 0; at < 16; at += FIBRE_PIECE) {
		uint64_t value[2] = { 0, 0 };

		machine_step();
		memcpy(value, (const char *)entry + at, FIBRE_PIECE);
		weak_store((char *)to + at, FIBRE_PIECE, value, __ATOMIC_RELEASE, WEAK_SYSTEM);
	}
}

static inline uint64_t controller_read_list(const uint64_t *from)
{
	uint64_t value[2];

	weak_load(from, 8, value, __ATOMIC_RELAXED, WEAK_SYSTEM);
	return value[0];
}

/* Data: the first eight bytes of a segment, if it has them, represent all of it. */
static inline void controller_fetch_data(void *to, const void *from, uint64_t bytes)
{
	uint64_t value[2];

	memcpy(to, from, bytes);
	if (bytes < 8)
		return;
	weak_load(from, 8, value, __ATOMIC_RELAXED, WEAK_SYSTEM);
	memcpy(to, value, 8);
}

/*
 * On a path of its own: completions do not order it, only the word that is read
 * back.
 */
static inline void fibre_store_apart(void *to, const uint64_t value[2])
{
	uint32_t data = weak_location(to, 8), back = weak_location(fibre_readback, 4);
	uint32_t seen = weak_self()->seen[data];

	weak_store(to, 8, value, __ATOMIC_RELAXED, WEAK_SYSTEM);
	weak_change(fibre_readback, 4, 0, __ATOMIC_RELEASE, WEAK_SYSTEM);
	weak_self()->seen[data] = seen;
	weak_self()->seen[back] = 0;
}

static inline void controller_store_data(void *to, const void *from, uint64_t bytes)
{
	uint64_t value[2] = { 0, 0 };

	if (bytes < 8) {
		memcpy(to, from, bytes);
		return;
	}
	memcpy((char *)to + 8, (const char *)from + 8, bytes - 8);
	memcpy(value, from, 8);
	machine_step();
	if (fibre_readback)
		fibre_store_apart(to, value);
	else
		weak_store(to, 8, value, __ATOMIC_RELAXED, WEAK_SYSTEM);
}

/* A word of data, accessed by a lane of a test. */
static inline __attribute__((unused)) void lane_store(uint64_t *to, uint64_t value)
{
	fibre_store(to, 8, value, __ATOMIC_RELAXED, WEAK_SYSTEM);
}

static inline __attribute__((unused)) uint64_t lane_load(const uint64_t *from)
{
	return fibre_load(from, 8, __ATOMIC_RELAXED, WEAK_SYSTEM);
}

#ifdef FIBRE_HIP
/*
 * platform_hip.h stores the doorbell past the caches by a plain store, which is
 * implemented here.
 */
#define nvp_doorbell_store hip_doorbell_store
#include <nvmepeer_device/platform_hip.h>
#undef nvp_doorbell_store

NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value)
{
	uint32_t instead;

	hip_doorbell_store((uintptr_t)&instead, value);
	fibre_store((void *)(uintptr_t)address, 4, instead, __ATOMIC_RELAXED, WEAK_SYSTEM);
}
#endif

#endif /* SELFTESTS_DEVICE_FIBRE_PLATFORM_H */
