/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What files of kmod/ that are compiled for user space need of the kernel. The headers beside this
 * one have what a single file needs; the stand-ins of the module's types have the members that it
 * uses.
 */
#ifndef SELFTESTS_KERNEL_H
#define SELFTESTS_KERNEL_H

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef u64 dma_addr_t;

#define GFP_KERNEL		0
#define GFP_ATOMIC		0
#define GFP_KERNEL_ACCOUNT	0

#define cpu_to_le64(x)		htole64(x)
#define le64_to_cpu(x)		le64toh(x)
#define min(a, b)		((a) < (b) ? (a) : (b))
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define IS_ALIGNED(x, a)	(((x) & ((typeof(x))(a) - 1)) == 0)
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define READ_ONCE(x)		(*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile typeof(x) *)&(x) = (value))
#define WARN_ON_ONCE(condition)	(kernel_warned |= (condition))

/* A warning fails the test. */
extern bool kernel_warned;

/* Locks; one that is taken twice or released without being held is a warning. */
struct unit_lock {
	bool held;
};

static inline void unit_lock(struct unit_lock *lock)
{
	WARN_ON_ONCE(lock->held);
	lock->held = true;
}

static inline void unit_unlock(struct unit_lock *lock)
{
	WARN_ON_ONCE(!lock->held);
	lock->held = false;
}

#define mutex_lock(lock)		unit_lock(lock)
#define mutex_unlock(lock)		unit_unlock(lock)
#define lockdep_assert_held(lock)	WARN_ON_ONCE(!(lock)->held)

#endif /* SELFTESTS_KERNEL_H */
