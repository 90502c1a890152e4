// SPDX-License-Identifier: GPL-2.0-only
/*
 * unit-device-threads.c: the device library with C threads and a strict
 * software controller.  Also built with ThreadSanitizer.
 */
#include <pthread.h>
#include <sched.h>

#include <nvmepeer_device.h>

#include "bench.h"
#include "../lib/ktap.h"

struct rig {
	struct bench *bench;
	pthread_t thread;
	bool stop;
};

static void *controller_main(void *argument)
{
	struct rig *rig = argument;

	while (!__atomic_load_n(&rig->stop, __ATOMIC_ACQUIRE))
		if (!controller_step(&rig->bench->controller))
			sched_yield();
	return NULL;
}

enum { THREADS = 6, ROUNDS = 2000 };

struct worker {
	struct bench *bench;
	pthread_t thread;
	uint32_t number;
	uint32_t bad;
};

/*
 * Submit raw entries with a checksum; the result must be the entry's own dword
 * 13.
 */
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

/* Every result arrives once, not torn and at its owner, for any ring size. */
static bool many_threads(uint32_t entries, uint32_t cq_entries, enum controller_order order)
{
	struct rig rig = { .bench = bench_new(entries, cq_entries) };
	struct controller *controller = &rig.bench->controller;
	uint32_t bad;
	bool good;

	controller->order = order;
	controller->checked_entries = true;
	if (nvmepeer_queue_init(&rig.bench->queue, &rig.bench->geometry))
		abort();
	pthread_create(&rig.thread, NULL, controller_main, &rig);
	bad = run_workers(rig.bench, raw_main);
	__atomic_store_n(&rig.stop, true, __ATOMIC_RELEASE);
	pthread_join(rig.thread, NULL);
	good = !bad && !controller->errors && controller->completed == THREADS * ROUNDS;
	if (!good)
		printf("# entries %u/%u: bad %u, errors %llu (%s), completed %llu\n", entries,
		       cq_entries, bad, (unsigned long long)controller->errors,
		       controller->error, (unsigned long long)controller->completed);
	bench_free(rig.bench);
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
