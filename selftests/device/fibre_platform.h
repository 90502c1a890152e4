/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fibre_platform.h: the device library's platform on the machine of fibres.h.
 * Every access is a place where another lane may run, and is counted.
 */
#ifndef SELFTESTS_DEVICE_FIBRE_PLATFORM_H
#define SELFTESTS_DEVICE_FIBRE_PLATFORM_H

#include "fibres.h"

#define NVMEPEER_PLATFORM_BUS
NVMEPEER_FN void nvmepeer_sq_store(uint64_t address, const uint32_t value[4])
{
	machine_step();
	machine.counts.entry_stores++;
	post((uint32_t *)(uintptr_t)address, value, 4);
}

NVMEPEER_FN void nvmepeer_cq_load(uint64_t address, uint32_t value[4])
{
	machine_step();
	machine.counts.cq_loads++;
	memcpy(value, (const void *)(uintptr_t)address, 16);
}

NVMEPEER_FN void nvmepeer_doorbell_store(uint64_t address, uint32_t value)
{
	machine_step();
	machine.counts.doorbells++;
	post((uint32_t *)(uintptr_t)address, &value, 1);
}

NVMEPEER_FN uint32_t nvmepeer_status_load(uint64_t address)
{
	machine_step();
	return *(const uint32_t *)(uintptr_t)address;
}

NVMEPEER_FN void nvmepeer_list_store(uint64_t address, uint64_t value)
{
	machine_step();
	post((uint32_t *)(uintptr_t)address, (const uint32_t *)&value, 2);
}

/* What this lane stored, and what the lanes it has met stored before. */
NVMEPEER_FN void nvmepeer_fence_publish(void)
{
	struct fibre *self = fibre_current();

	machine_step();
	machine.counts.fences_publish++;
	if (machine.broken == BREAK_PUBLISH_FENCE)
		return;
	for (uint32_t i = 0; i < machine.fibre_count; i++)
		if (machine.fibres[i].warp == self->warp)
			posted_push_out(&machine.fibres[i]);
}

NVMEPEER_FN void nvmepeer_fence_consume(void)
{
	machine.counts.fences_consume++;
}

#define NVMEPEER_PLATFORM_ATOMICS
NVMEPEER_FN uint32_t nvmepeer_load32(const uint32_t *p)
{
	machine_step();
	machine.counts.loads++;
	return *(const volatile uint32_t *)p;
}

NVMEPEER_FN uint64_t nvmepeer_load64(const uint64_t *p)
{
	machine_step();
	machine.counts.loads++;
	return *(const volatile uint64_t *)p;
}

NVMEPEER_FN void nvmepeer_store32(uint32_t *p, uint32_t value)
{
	machine_step();
	machine.counts.stores++;
	*(volatile uint32_t *)p = value;
}

NVMEPEER_FN void nvmepeer_store64(uint64_t *p, uint64_t value)
{
	machine_step();
	machine.counts.stores++;
	*(volatile uint64_t *)p = value;
}

#define FIBRE_ATOMIC(name, type, result)				\
NVMEPEER_FN type name(type *p, type value)				\
{									\
	type old;							\
									\
	machine_step();							\
	machine.counts.atomics++;					\
	old = *(volatile type *)p;					\
	if (machine.broken == BREAK_ATOMICS)				\
		machine_step();						\
	*(volatile type *)p = result;					\
	return old;							\
}
FIBRE_ATOMIC(nvmepeer_add32, uint32_t, old + value)
FIBRE_ATOMIC(nvmepeer_add64, uint64_t, old + value)
FIBRE_ATOMIC(nvmepeer_exchange32, uint32_t, value)
FIBRE_ATOMIC(nvmepeer_or32, uint32_t, old | value)

NVMEPEER_FN uint32_t nvmepeer_compare_exchange32(uint32_t *p, uint32_t old, uint32_t value)
{
	uint32_t found;

	machine_step();
	machine.counts.atomics++;
	found = *(volatile uint32_t *)p;
	if (found == old)
		*(volatile uint32_t *)p = value;
	return found;
}

NVMEPEER_FN void nvmepeer_fence_device(void)
{
	machine.counts.fences_device++;
	if (machine.broken != BREAK_RING_FENCE)
		posted_push_out(fibre_current());
}

NVMEPEER_FN void nvmepeer_fence_claimed(void)
{
}

#define NVMEPEER_PLATFORM_TIME
NVMEPEER_FN uint64_t nvmepeer_now_ns(void)
{
	return machine.now_ns;
}

NVMEPEER_FN void nvmepeer_pause(uint32_t ns)
{
	(void)ns;
	machine_rest();
}

#define NVMEPEER_PLATFORM_LANES
#ifndef NVMEPEER_LANES
#define NVMEPEER_LANES 8
#endif

typedef uint32_t nvmepeer_mask;

/* Inlined into each call of the library, so the address tells them apart. */
static __attribute__((noinline, unused)) nvmepeer_mask fibre_lanes_active(void)
{
	return machine_join(__builtin_return_address(0));
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_active(void)
{
	return fibre_lanes_active();
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_match(nvmepeer_mask mask, uint64_t value)
{
	nvmepeer_mask same = 0;

	machine_meet(mask, value);
	for (uint32_t i = 0; i < NVMEPEER_LANES; i++)
		if (mask >> i & 1 && fibre_current()->others[i] == value)
			same |= 1u << i;
	return same;
}

NVMEPEER_FN nvmepeer_mask nvmepeer_lanes_ballot(nvmepeer_mask mask, int predicate)
{
	nvmepeer_mask set = 0;

	machine_meet(mask, predicate != 0);
	for (uint32_t i = 0; i < NVMEPEER_LANES; i++)
		if (mask >> i & 1 && fibre_current()->others[i])
			set |= 1u << i;
	return set;
}

/* A lane outside the mask has nothing to give: catch it. */
NVMEPEER_FN uint64_t nvmepeer_lanes_copy64(nvmepeer_mask mask, uint64_t value, uint32_t lane)
{
	machine_meet(mask, value);
	if (!(mask >> lane & 1))
		abort();
	return fibre_current()->others[lane];
}

NVMEPEER_FN uint32_t nvmepeer_lanes_copy32(nvmepeer_mask mask, uint32_t value, uint32_t lane)
{
	return (uint32_t)nvmepeer_lanes_copy64(mask, value, lane);
}

NVMEPEER_FN uint32_t nvmepeer_lanes_or32(nvmepeer_mask mask, uint32_t value)
{
	uint32_t all = 0;

	machine_meet(mask, value);
	for (uint32_t i = 0; i < NVMEPEER_LANES; i++)
		all |= mask >> i & 1 ? (uint32_t)fibre_current()->others[i] : 0;
	return all;
}

NVMEPEER_FN void nvmepeer_lanes_sync(nvmepeer_mask mask)
{
	machine_meet(mask, 0);
}

NVMEPEER_FN uint32_t nvmepeer_lane(void)
{
	return fibre_current()->lane;
}

NVMEPEER_FN uint32_t nvmepeer_mask_count(nvmepeer_mask mask)
{
	return (uint32_t)__builtin_popcount(mask);
}

NVMEPEER_FN uint32_t nvmepeer_mask_first(nvmepeer_mask mask)
{
	return (uint32_t)__builtin_ctz(mask);
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

NVMEPEER_FN uint32_t nvmepeer_home(void)
{
	return fibre_current()->warp;
}

#endif /* SELFTESTS_DEVICE_FIBRE_PLATFORM_H */
