/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leak counters and debugfs files of this layer.
 */
#ifndef _NVMEP_PEER_DEBUGFS_H
#define _NVMEP_PEER_DEBUGFS_H

#include <linux/atomic.h>
#include <linux/list.h>

struct dentry;
struct nvmep_ctrl;

/* Kinds of counted objects.  A test requires that all counters return to 0. */
enum nvmep_object {
	NVMEP_OBJECT_FILES,	/* open controller nodes */
	NVMEP_OBJECT_QPS,
	NVMEP_OBJECT_BUFS,
	NVMEP_OBJECT_EXPORTS,
	NVMEP_OBJECT_IMPORTERS,	/* devices attached to exports */
	NVMEP_OBJECT_MAPS,	/* DMA mappings of exports */
	NVMEP_OBJECT_MMAPS,	/* VMAs of exports */
	NVMEP_OBJECT_PAGES,	/* host pages of rings and status */
	NVMEP_OBJECT_KINDS
};

/**
 * struct nvmep_leak_counters - objects of one controller
 * @node: nvmep_leak_lock: in the list of all controllers
 * @count: number of objects by kind
 */
struct nvmep_leak_counters {
	struct list_head node;
	atomic_t count[NVMEP_OBJECT_KINDS];
};

/**
 * nvmep_leak_count() - count created or freed objects
 * @counters: of the controller, which the caller holds
 * @kind: kind of object
 * @change: number of objects, negative if they were freed
 */
static inline void nvmep_leak_count(struct nvmep_leak_counters *counters,
				    enum nvmep_object kind, int change)
{
	atomic_add(change, &counters->count[kind]);
}

/**
 * nvmep_leak_get() - number of objects of a controller
 * @counters: of the controller
 * @kind: kind of object
 *
 * Return: the number.
 */
static inline int nvmep_leak_get(const struct nvmep_leak_counters *counters,
				 enum nvmep_object kind)
{
	return atomic_read(&counters->count[kind]);
}

void nvmep_leak_counters_init(struct nvmep_leak_counters *counters);
void nvmep_leak_counters_exit(struct nvmep_leak_counters *counters);

void nvmep_peer_debugfs_module(struct dentry *root);
void nvmep_peer_debugfs_init(struct nvmep_ctrl *ctrl, struct dentry *dir);

#endif /* _NVMEP_PEER_DEBUGFS_H */
