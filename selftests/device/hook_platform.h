/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hook_platform.h: the device library's platform for tests in one thread that
 * step in at an access: what others do at that very moment is done by a hook,
 * and the order of what was done is written down.
 *
 * One lane of a wave of 64, so that code for wide groups is compiled too.
 */
#ifndef SELFTESTS_DEVICE_HOOK_PLATFORM_H
#define SELFTESTS_DEVICE_HOOK_PLATFORM_H

#include <string.h>

/* A letter in the trace each; hooks are called before the access. */
enum hook_event {
	HOOK_ENTRY = 'e',		/* 16 bytes into the submission ring */
	HOOK_LOOK = 'l',		/* load of a completion entry */
	HOOK_TAIL_DOORBELL = 'T',
	HOOK_HEAD_DOORBELL = 'H',
	HOOK_STATUS = 's',		/* load of a word over the bus */
	HOOK_LIST = 'p',		/* store into a PRP list */
	HOOK_PUBLISH = 'P',		/* fences */
	HOOK_CONSUME = 'C',
	HOOK_DEVICE = 'D',
	HOOK_CLAIMED = 'A',
	HOOK_TAIL = 't',		/* atomic on the tail word, the only one of 64 bits */
	HOOK_EXCHANGE = 'x',		/* compare-and-exchange that succeeded */
	HOOK_PAUSE = 'z',
};

enum { HOOK_TRACE = 1 << 16 };

/* @at: what is called at each event; @now_ns goes on by @tick_ns with each look. */
struct hooks {
	void (*at)(enum hook_event event, uint64_t address);
	uint64_t now_ns, tick_ns;
	char trace[HOOK_TRACE];
	uint32_t length;
};

static struct hooks hooks;

static inline void hook(enum hook_event event, uint64_t address)
{
	void (*at)(enum hook_event event, uint64_t address) = hooks.at;

	if (hooks.length < HOOK_TRACE - 1)
		hooks.trace[hooks.length++] = (char)event;
	/* What a hook does calls no hooks. */
	hooks.at = NULL;
	if (at)
		at(event, address);
	hooks.at = at;
}

static inline void hook_forget(void)
{
	memset(hooks.trace, 0, hooks.length);
	hooks.length = 0;
}

static inline uint32_t hook_count(enum hook_event event)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < hooks.length; i++)
		count += hooks.trace[i] == (char)event;
	return count;
}

static uint64_t hook_head_doorbell;	/* the others are tail doorbells */

#define NVMEPEER_PLATFORM_BUS
NVMEPEER_FN void nvmepeer_sq_store(uint64_t address, const uint32_t value[4])
{
	hook(HOOK_ENTRY, address);
	memcpy((void *)(uintptr_t)address, value, 16);
}

NVMEPEER_FN void nvmepeer_cq_load(uint64_t address, uint32_t value[4])
{
	hooks.now_ns += hooks.tick_ns;
	hook(HOOK_LOOK, address);
	memcpy(value, (const void *)(uintptr_t)address, 16);
}

NVMEPEER_FN void nvmepeer_doorbell_store(uint64_t address, uint32_t value)
{
	hook(address == hook_head_doorbell ? HOOK_HEAD_DOORBELL : HOOK_TAIL_DOORBELL, address);
	*(uint32_t *)(uintptr_t)address = value;
}

NVMEPEER_FN uint32_t nvmepeer_status_load(uint64_t address)
{
	hook(HOOK_STATUS, address);
	return *(const uint32_t *)(uintptr_t)address;
}

NVMEPEER_FN void nvmepeer_list_store(uint64_t address, uint64_t value)
{
	hook(HOOK_LIST, address);
	*(uint64_t *)(uintptr_t)address = value;
}

NVMEPEER_FN void nvmepeer_fence_publish(void)
{
	hook(HOOK_PUBLISH, 0);
}

NVMEPEER_FN void nvmepeer_fence_consume(void)
{
	hook(HOOK_CONSUME, 0);
}

#define NVMEPEER_PLATFORM_ATOMICS
NVMEPEER_FN uint32_t nvmepeer_load32(const uint32_t *p)
{
	return *p;
}

NVMEPEER_FN uint64_t nvmepeer_load64(const uint64_t *p)
{
	return *p;
}

NVMEPEER_FN void nvmepeer_store32(uint32_t *p, uint32_t value)
{
	*p = value;
}

NVMEPEER_FN void nvmepeer_store64(uint64_t *p, uint64_t value)
{
	*p = value;
}

NVMEPEER_FN uint32_t nvmepeer_add32(uint32_t *p, uint32_t value)
{
	uint32_t old = *p;

	*p += value;
	return old;
}

NVMEPEER_FN uint64_t nvmepeer_add64(uint64_t *p, uint64_t value)
{
	uint64_t old;

	hook(HOOK_TAIL, (uintptr_t)p);
	old = *p;
	*p += value;
	return old;
}

NVMEPEER_FN uint32_t nvmepeer_exchange32(uint32_t *p, uint32_t value)
{
	uint32_t old = *p;

	*p = value;
	return old;
}

NVMEPEER_FN uint32_t nvmepeer_or32(uint32_t *p, uint32_t value)
{
	uint32_t old = *p;

	*p |= value;
	return old;
}

NVMEPEER_FN void nvmepeer_post_add32(uint32_t *p, uint32_t value)
{
	*p += value;
}

NVMEPEER_FN void nvmepeer_post_or32(uint32_t *p, uint32_t value)
{
	*p |= value;
}

NVMEPEER_FN uint32_t nvmepeer_compare_exchange32(uint32_t *p, uint32_t old, uint32_t value)
{
	uint32_t found = *p;

	if (found == old) {
		hook(HOOK_EXCHANGE, (uintptr_t)p);
		*p = value;
	}
	return found;
}

NVMEPEER_FN void nvmepeer_fence_device(void)
{
	hook(HOOK_DEVICE, 0);
}

NVMEPEER_FN void nvmepeer_fence_claimed(void)
{
	hook(HOOK_CLAIMED, 0);
}

#define NVMEPEER_PLATFORM_TIME
NVMEPEER_FN uint64_t nvmepeer_now_ns(void)
{
	return hooks.now_ns;
}

NVMEPEER_FN void nvmepeer_pause(uint32_t ns)
{
	hooks.now_ns += ns;
	hook(HOOK_PAUSE, ns);
}

#define NVMEPEER_LANES 64

#endif /* SELFTESTS_DEVICE_HOOK_PLATFORM_H */
