// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-threads.c: the device library under ordinary threads, against a
 * strict software controller.  Also built with ThreadSanitizer.
 */
#include <pthread.h>
#include <sched.h>

#include <nvmepeer_device.h>

#include "controller.h"
#include "ktap.h"

struct bench {
	struct controller controller;
	struct nvmepeer_geometry geometry;
	struct nvmepeer_queue queue;
	pthread_t thread;
	bool stop;
};

static void *controller_main(void *argument)
{
	struct bench *bench = argument;

	while (!__atomic_load_n(&bench->stop, __ATOMIC_ACQUIRE))
		if (!controller_step(&bench->controller))
			sched_yield();
	return NULL;
}

static void bench_geometry(struct bench *bench, uint32_t entries, uint32_t cq_entries)
{
	struct nvmepeer_geometry *geometry = &bench->geometry;
	struct controller *controller = &bench->controller;

	memset(geometry, 0, sizeof(*geometry));
	geometry->version = NVMEPEER_GEOMETRY_VERSION;
	geometry->sq = (uintptr_t)controller->sq;
	geometry->cq = (uintptr_t)controller->cq;
	geometry->sq_doorbell = (uintptr_t)&controller->doorbells->tail;
	geometry->cq_doorbell = (uintptr_t)&controller->doorbells->head;
	geometry->sq_entries = entries;
	geometry->cq_entries = cq_entries;
	geometry->nsid = 1;
	geometry->lba_shift = 9;
	geometry->page_shift = 12;
	geometry->max_transfer = 4 << 20;
	geometry->timeout_ns = 60000000000u;
	geometry->list_bytes = 8192;
	geometry->list_memory.length = (uint64_t)nvmepeer_cids(geometry) * 8192;
	geometry->list_area = (uintptr_t)aligned_alloc(4096, geometry->list_memory.length);
	geometry->list_memory.dma = geometry->list_area;
	geometry->state = (uintptr_t)aligned_alloc(128, (nvmepeer_state_bytes(geometry) + 127) /
						   128 * 128);
}

static void bench_start(struct bench *bench, uint32_t entries, uint32_t cq_entries,
			enum controller_order order)
{
	controller_init(&bench->controller, entries, cq_entries, 16384);
	bench->controller.order = order;
	bench_geometry(bench, entries, cq_entries);
	bench->stop = false;
	if (nvmepeer_queue_init(&bench->queue, &bench->geometry))
		abort();
	pthread_create(&bench->thread, NULL, controller_main, bench);
}

static void bench_stop(struct bench *bench)
{
	__atomic_store_n(&bench->stop, true, __ATOMIC_RELEASE);
	pthread_join(bench->thread, NULL);
	free((void *)(uintptr_t)bench->geometry.state);
	free((void *)(uintptr_t)bench->geometry.list_area);
	controller_exit(&bench->controller);
}

enum { THREADS = 6, ROUNDS = 2000 };

struct worker {
	struct bench *bench;
	pthread_t thread;
	uint32_t number;
	uint32_t bad;
};

/* Sends checked raw entries; the result must be its own dword 13. */
static void *raw_main(void *argument)
{
	struct worker *worker = argument;
	const struct nvmepeer_queue *queue = &worker->bench->queue;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct nvmepeer_sqe entry = { { 0 } };
		struct nvmepeer_token token;
		uint32_t result = 0;

		entry.dword[2] = worker->number;
		entry.dword[3] = round;
		entry.dword[13] = worker->number << 24 | round;
		entry.dword[14] = round * 2654435761u;
		entry.dword[15] = controller_checksum(entry.dword);
		if (nvmepeer_submit_raw(queue, &entry, &token, 60000000000u) ||
		    nvmepeer_wait(queue, token, &result, 60000000000u) ||
		    result != entry.dword[13])
			worker->bad++;
	}
	return NULL;
}

static uint32_t run_workers(struct bench *bench, void *(*main)(void *))
{
	struct worker workers[THREADS];
	uint32_t bad = 0;

	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .bench = bench, .number = i };
		pthread_create(&workers[i].thread, NULL, main, &workers[i]);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		bad += workers[i].bad;
	}
	return bad;
}

/* Every result comes once, whole and to its owner, for any ring size. */
static bool many_threads(uint32_t entries, uint32_t cq_entries, enum controller_order order)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	uint32_t bad;
	bool good;

	bench_start(bench, entries, cq_entries, order);
	bench->controller.checked_entries = true;
	bad = run_workers(bench, raw_main);
	bench_stop(bench);
	good = !bad && !bench->controller.errors &&
	       bench->controller.completed == THREADS * ROUNDS &&
	       bench->queue.state;
	if (!good)
		printf("# entries %u/%u: bad %u, errors %llu (%s), completed %llu\n", entries,
		       cq_entries, bad, (unsigned long long)bench->controller.errors,
		       bench->controller.error, (unsigned long long)bench->controller.completed);
	free(bench);
	return good;
}

int main(void)
{
	ktap_start();
	ktap_check(many_threads(2, 2, CONTROLLER_IN_ORDER), "2 entries, in order");
	ktap_check(many_threads(4, 4, CONTROLLER_SHUFFLED), "4 entries, shuffled");
	ktap_check(many_threads(8, 64, CONTROLLER_SHUFFLED), "8 entries, long completion ring");
	ktap_check(many_threads(64, 64, CONTROLLER_SHUFFLED), "64 entries, shuffled");
	return ktap_end();
}
