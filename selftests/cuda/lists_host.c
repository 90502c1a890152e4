// SPDX-License-Identifier: GPL-2.0-only
/*
 * lists_host.c: see lists_host.h. The thread submits the commands of all queue pairs, as many as
 * they have room for, before it waits for the first.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <nvmepeer_device.h>

#include "lists_host.h"

struct lists_host {
	const struct nvmepeer_queue *queues;
	uint32_t count;
	const struct nvmepeer_list *list;
	volatile uint32_t *words;
	struct nvmepeer_list *parts;
	struct nvmepeer_batch *batches;
	uint32_t at_once;
	int worst;
	bool stop;
	pthread_t thread;
};

/* Items of queue pair @index, @at_once from @first on; their number. */
static uint32_t make_part(struct lists_host *host, uint32_t index, uint32_t first)
{
	uint32_t each = (host->list->count + host->count - 1) / host->count;
	uint32_t begin = index * each + first, end = (index + 1) * each;
	struct nvmepeer_list *part = &host->parts[index];

	if (end > host->list->count)
		end = host->list->count;
	*part = *host->list;
	part->items = host->list->items + begin;
	part->count = begin >= end ? 0 : end - begin < host->at_once ? end - begin : host->at_once;
	return part->count;
}

static int read_list(struct lists_host *host)
{
	struct nvmepeer_group self = nvmepeer_group_self();
	uint32_t each = (host->list->count + host->count - 1) / host->count;
	int worst = 0;

	for (uint32_t first = 0; first < each; first += host->at_once) {
		for (uint32_t i = 0; i < host->count; i++)
			if (make_part(host, i, first))
				worst = nvp_worse(worst, nvmepeer_warp_list_submit(
					&host->queues[i], self, &host->parts[i], &host->batches[i]));
		for (uint32_t i = 0; i < host->count; i++)
			if (host->parts[i].count)
				worst = nvp_worse(worst, nvmepeer_warp_list_wait(
					&host->queues[i], self, &host->parts[i], &host->batches[i],
					host->queues[i].timeout_ns));
	}
	return worst;
}

static void *serve(void *argument)
{
	struct lists_host *host = argument;
	uint32_t seen = 0;

	while (!__atomic_load_n(&host->stop, __ATOMIC_RELAXED)) {
		uint32_t wanted = host->words[0];

		if (wanted == seen)
			continue;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		host->worst = nvp_worse(host->worst, read_list(host));
		seen = wanted;
		__atomic_thread_fence(__ATOMIC_RELEASE);
		host->words[1] = seen;
	}
	return NULL;
}

void lists_host_reset(const struct nvmepeer_queue *queues, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		nvmepeer_queue_reset(&queues[i]);
}

struct lists_host *lists_host_start(const struct nvmepeer_queue *queues, uint32_t count, uint32_t cids,
				    const struct nvmepeer_list *list, volatile uint32_t *words)
{
	struct lists_host *host = calloc(1, sizeof(*host));
	cpu_set_t processor;

	if (!host)
		abort();
	host->queues = queues;
	host->count = count;
	host->list = list;
	host->words = words;
	host->at_once = cids;
	host->parts = calloc(count, sizeof(*host->parts));
	host->batches = calloc(count, sizeof(*host->batches));
	for (uint32_t i = 0; i < count; i++) {
		host->batches[i].tokens = calloc(cids, sizeof(struct nvmepeer_token));
		host->batches[i].most = cids;
	}
	CPU_ZERO(&processor);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &processor);
	pthread_create(&host->thread, NULL, serve, host);
	pthread_setaffinity_np(host->thread, sizeof(processor), &processor);
	return host;
}

int lists_host_stop(struct lists_host *host)
{
	int worst;

	__atomic_store_n(&host->stop, true, __ATOMIC_RELAXED);
	pthread_join(host->thread, NULL);
	worst = host->worst;
	for (uint32_t i = 0; i < host->count; i++)
		free(host->batches[i].tokens);
	free(host->batches);
	free(host->parts);
	free(host);
	return worst;
}
