/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hook_platform.h: the device library's platform for tests in one thread that
 * intervene at an access: a hook does what other threads would do at that
 * moment, and a trace records the order of events.
 *
 * One lane of a wave of 64, so that the code for wide groups is compiled too.
 */
#ifndef SELFTESTS_DEVICE_HOOK_PLATFORM_H
#define SELFTESTS_DEVICE_HOOK_PLATFORM_H

#include <string.h>

/* Letters in the trace; hooks are called before the access. */
enum hook_event {
	HOOK_ENTRY = 'e',		/* 16 bytes into the submission ring */
	HOOK_POLL = 'l',		/* load of a completion entry */
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

/* @at: the hook of each event; @now_ns advances by @tick_ns with each poll. */
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
	/* Accesses of a hook call no hooks. */
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

static uint64_t hook_head_doorbell;	/* all others are tail doorbells */

#define NVP_PLATFORM_BUS
NVP_FN void nvp_sq_store(uint64_t address, const uint32_t value[4])
{
	hook(HOOK_ENTRY, address);
	memcpy((void *)(uintptr_t)address, value, 16);
}

NVP_FN void nvp_cq_load(uint64_t address, uint32_t value[4])
{
	hooks.now_ns += hooks.tick_ns;
	hook(HOOK_POLL, address);
	memcpy(value, (const void *)(uintptr_t)address, 16);
}

NVP_FN void nvp_doorbell_store(uint64_t address, uint32_t value)
{
	hook(address == hook_head_doorbell ? HOOK_HEAD_DOORBELL : HOOK_TAIL_DOORBELL, address);
	*(uint32_t *)(uintptr_t)address = value;
}

NVP_FN uint32_t nvp_status_load(uint64_t address)
{
	hook(HOOK_STATUS, address);
	return *(const uint32_t *)(uintptr_t)address;
}

NVP_FN void nvp_list_store(uint64_t address, uint64_t value)
{
	hook(HOOK_LIST, address);
	*(uint64_t *)(uintptr_t)address = value;
}

NVP_FN void nvp_fence_publish(void)
{
	hook(HOOK_PUBLISH, 0);
}

NVP_FN void nvp_fence_consume(void)
{
	hook(HOOK_CONSUME, 0);
}

#define NVP_PLATFORM_ATOMICS
NVP_FN uint32_t nvp_load32(const uint32_t *p)
{
	return *p;
}

NVP_FN uint64_t nvp_load64(const uint64_t *p)
{
	return *p;
}

NVP_FN void nvp_store32(uint32_t *p, uint32_t value)
{
	*p = value;
}

NVP_FN void nvp_store64(uint64_t *p, uint64_t value)
{
	*p = value;
}

NVP_FN uint32_t nvp_add32(uint32_t *p, uint32_t value)
{
	uint32_t old = *p;

	*p += value;
	return old;
}

NVP_FN uint64_t nvp_add64(uint64_t *p, uint64_t value)
{
	uint64_t old;

	hook(HOOK_TAIL, (uintptr_t)p);
	old = *p;
	*p += value;
	return old;
}

NVP_FN uint32_t nvp_exchange32(uint32_t *p, uint32_t value)
{
	uint32_t old = *p;

	*p = value;
	return old;
}

NVP_FN uint32_t nvp_or32(uint32_t *p, uint32_t value)
{
	uint32_t old = *p;

	*p |= value;
	return old;
}

NVP_FN void nvp_post_add32(uint32_t *p, uint32_t value)
{
	*p += value;
}

NVP_FN void nvp_post_or32(uint32_t *p, uint32_t value)
{
	*p |= value;
}

NVP_FN uint32_t nvp_compare_exchange32(uint32_t *p, uint32_t old, uint32_t value)
{
	uint32_t found = *p;

	if (found == old) {
		hook(HOOK_EXCHANGE, (uintptr_t)p);
		*p = value;
	}
	return found;
}

NVP_FN void nvp_fence_device(void)
{
	hook(HOOK_DEVICE, 0);
}

NVP_FN void nvp_fence_device_acquire(void)
{
	hook(HOOK_CLAIMED, 0);
}

#define NVP_PLATFORM_TIME
NVP_FN uint64_t nvmepeer_now_ns(void)
{
	return hooks.now_ns;
}

NVP_FN void nvp_pause(uint32_t ns)
{
	hooks.now_ns += ns;
	hook(HOOK_PAUSE, ns);
}

#define NVMEPEER_LANES 64

#endif /* SELFTESTS_DEVICE_HOOK_PLATFORM_H */
