/* SPDX-License-Identifier: GPL-2.0-only */
/* bench.h: a software controller and a queue pair of the device library on it. */
#ifndef SELFTESTS_DEVICE_BENCH_H
#define SELFTESTS_DEVICE_BENCH_H

#include "controller.h"

struct bench {
	struct controller controller;
	struct nvmepeer_geometry geometry;
	struct nvmepeer_queue queue;
};

enum { BENCH_LIST_BYTES = 8192 };

static inline void *bench_memory(uint64_t align, uint64_t bytes)
{
	void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);

	if (!memory)
		abort();
	return memory;
}

static inline void bench_geometry(struct bench *bench)
{
	struct nvmepeer_geometry *geometry = &bench->geometry;
	struct controller *controller = &bench->controller;

	memset(geometry, 0, sizeof(*geometry));
	geometry->version = NVMEPEER_GEOMETRY_VERSION;
	geometry->sq = (uintptr_t)controller->sq;
	geometry->cq = (uintptr_t)controller->cq;
	geometry->sq_doorbell = (uintptr_t)&controller->doorbells->tail;
	geometry->cq_doorbell = (uintptr_t)&controller->doorbells->head;
	geometry->sq_entries = controller->sq_entries;
	geometry->cq_entries = controller->cq_entries;
	geometry->nsid = 1;
	geometry->lba_shift = 9;
	geometry->page_shift = 12;
	geometry->max_transfer = 4 << 20;
	geometry->timeout_ns = 60000000000u;
	geometry->list_bytes = BENCH_LIST_BYTES;
	geometry->list_memory.length = 4096ull * BENCH_LIST_BYTES;
	geometry->list_area = (uintptr_t)bench_memory(4096, geometry->list_memory.length);
	geometry->list_memory.dma = geometry->list_area;
	geometry->state = (uintptr_t)bench_memory(128, 64 << 10);
}

/* Create rings, controller and geometry; the caller opens the queue. */
static inline struct bench *bench_new(uint32_t entries, uint32_t cq_entries)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	if (!bench)
		abort();
	controller_init(&bench->controller, entries, cq_entries, 16384);
	bench_geometry(bench);
	return bench;
}

static inline void bench_free(struct bench *bench)
{
	free((void *)(uintptr_t)bench->geometry.state);
	free((void *)(uintptr_t)bench->geometry.list_area);
	controller_exit(&bench->controller);
	free(bench);
}

#endif /* SELFTESTS_DEVICE_BENCH_H */
