/* SPDX-License-Identifier: GPL-2.0-only */
/* What kmod/core/qids.c needs of the kernel and of the module, for unit-qids. */
#ifndef SELFTESTS_QIDS_H
#define SELFTESTS_QIDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

typedef u64 phys_addr_t;
typedef u64 resource_size_t;

#define ____cacheline_aligned_in_smp
#define struct_size(pointer, member, count) \
	(sizeof(*(pointer)) + sizeof((pointer)->member[0]) * (count))
#define ERR_PTR(error)		((void *)(intptr_t)(error))
#define PTR_ERR(pointer)	((int)(intptr_t)(pointer))
#define IS_ERR(pointer)		((intptr_t)(pointer) < 0 && (intptr_t)(pointer) > -4096)

/* Memory; each call may fail, and what is not freed is counted. */
void *unit_alloc(size_t size);
void unit_free(void *memory);
#define kmalloc(size, flags)		((void)(flags), unit_alloc(size))
#define kvzalloc(size, flags)		kmalloc(size, flags)
#define kvcalloc(count, size, flags)	kmalloc((count) * (size), flags)
#define kfree(memory)			unit_free(memory)
#define kvfree(memory)			unit_free(memory)

/* Bitmaps of at most 64 bits. */
#define bitmap_zalloc(bits, flags)	kvcalloc(1 + (bits) / 64, sizeof(unsigned long), flags)
#define bitmap_free(map)		unit_free(map)
#define bitmap_weight(map, bits)	((unsigned int)__builtin_popcountl(*(map) & ((1UL << (bits)) - 1)))
#define test_bit(bit, map)		((*(map) >> (bit) & 1) != 0)
#define __set_bit(bit, map)		(*(map) |= 1UL << (bit))
#define for_each_clear_bit(bit, map, bits)		\
	for ((bit) = 0; (bit) < (bits); (bit)++)	\
		if (!test_bit(bit, map))

static inline bool __test_and_clear_bit(unsigned int bit, unsigned long *map)
{
	bool was_set = test_bit(bit, map);

	*map &= ~(1UL << bit);
	return was_set;
}

static inline unsigned long find_next_bit(const unsigned long *map, unsigned long bits, unsigned long bit)
{
	while (bit < bits && !test_bit(bit, map))
		bit++;
	return bit;
}

typedef struct unit_lock spinlock_t;

#define DEFINE_MUTEX(name)		struct unit_lock name
#define spin_lock_init(lock)		((lock)->held = false)
#define spin_lock(lock)			unit_lock(lock)
#define spin_unlock(lock)		unit_unlock(lock)
#define rcu_read_lock()			((void)0)
#define rcu_read_unlock()		((void)0)

/* Lists. */
struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name)		struct list_head name = { &name, &name }
#define list_entry(at, type, member)	((type *)((char *)(at) - offsetof(type, member)))
#define list_for_each_entry(entry, head, member)						\
	for (entry = list_entry((head)->next, typeof(*entry), member); &entry->member != (head);	\
	     entry = list_entry(entry->member.next, typeof(*entry), member))
#define list_for_each_entry_safe(entry, following, head, member)				\
	for (entry = list_entry((head)->next, typeof(*entry), member),				\
	     following = list_entry(entry->member.next, typeof(*entry), member);		\
	     &entry->member != (head);								\
	     entry = following, following = list_entry(entry->member.next, typeof(*entry), member))

static inline void list_add(struct list_head *entry, struct list_head *head)
{
	*entry = (struct list_head){ .next = head->next, .prev = head };
	head->next->prev = entry;
	head->next = entry;
}

static inline void list_del(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}

/* Processes; the thread group, its first thread and its struct pid are one object. */
struct task_struct {
	int exit_state;
	bool other_threads;
	bool reaped;
	unsigned int references;
	int number;
	struct task_struct *older;	/* for the test */
};

#define pid task_struct
extern struct task_struct *current;
#define PIDTYPE_TGID			0
#define task_tgid(task)			(task)
#define pid_task(process, type)		((process)->reaped ? NULL : (process))
#define thread_group_empty(task)	(!(task)->other_threads)
#define pid_vnr(process)		((process)->number)
#define put_pid(process)		((process)->references--)

static inline struct pid *get_pid(struct pid *process)
{
	process->references++;
	return process;
}

/* Users. */
typedef unsigned int kuid_t;
extern kuid_t unit_euid;
#define current_euid()			unit_euid
#define uid_eq(a, b)			((a) == (b))

/* Output. */
struct seq_file {
	FILE *stream;
};

#define seq_printf(seq, ...)	fprintf((seq)->stream, __VA_ARGS__)
#define seq_putc(seq, c)	fputc(c, (seq)->stream)
#define dev_err(dev, ...)	((void)(dev), unit_errors++)
#define dev_warn(dev, text, count)	((void)(dev), (void)(text), unit_warned_of = (count))
extern unsigned int unit_errors, unit_warned_of;

/* kmod/core/ctrl.h */
#define _NVMEP_CTRL_H
#include "../../../kmod/core/qids.h"

#define pci_resource_start(pdev, bar)	((pdev)[bar])

struct nvmep_ctrl {
	phys_addr_t *pdev;
	void *dev;
	resource_size_t bar_len;
	u32 doorbell_stride;
	struct nvmep_qids qids;
};

#endif /* SELFTESTS_QIDS_H */
