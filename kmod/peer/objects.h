/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many objects of each kind are alive.
 */
#ifndef _NVMEP_OBJECTS_H
#define _NVMEP_OBJECTS_H

#include <linux/atomic.h>
#include <linux/list.h>

/*
 * Kinds of objects that are counted, so that a test can prove that nothing is
 * left.
 */
enum nvmep_object {
	NVMEP_OBJECT_FILES,	/* open controller nodes and queue pairs' hold on them */
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
 * struct nvmep_objects - live objects of one controller
 * @node: nvmep_objects_lock: in the list that the module's sums are made of
 * @count: by kind
 */
struct nvmep_objects {
	struct list_head node;
	atomic_t count[NVMEP_OBJECT_KINDS];
};

void nvmep_objects_init(struct nvmep_objects *objects);
void nvmep_objects_exit(struct nvmep_objects *objects);
void nvmep_objects_add(struct nvmep_objects *objects, enum nvmep_object kind,
		       int change);
int nvmep_objects_count(const struct nvmep_objects *objects,
			enum nvmep_object kind);
int nvmep_objects_sum(enum nvmep_object kind);

#endif /* _NVMEP_OBJECTS_H */
