// SPDX-License-Identifier: GPL-2.0-only
/*
 * pages_host.c: the host side of pages.cu, the device library as C11: a spinning thread serves
 * several sequences at once, and waits for none of them.
 */
#define _GNU_SOURCE
#define NVMEPEER_PLATFORM_HEADER "spin_platform.h"
#include <nvmepeer_device.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pages_host.h"

/* A sequence whose pages are being read. */
struct job {
	struct nvmepeer_page_request request;
	struct nvmepeer_page_miss misses[PAGES_TOP];
	uint32_t blocks[PAGES_TOP];
	uint32_t wanted[PAGES_TOP];
	struct nvmepeer_pages *table;
	const struct nvmepeer_queue *queue;
	uint32_t number;
	uint32_t done;
	bool runs;
};

static void *memory_of(size_t bytes)
{
	size_t huge = 2 << 20;
	void *memory = aligned_alloc(huge, (bytes + huge - 1) / huge * huge);

	if (!memory)
		abort();
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 0, bytes);
	return memory;
}

struct pages_host *pages_host_new(uint32_t tables)
{
	struct pages_host *host = memory_of(sizeof(*host));

	host->tables = memory_of(tables * sizeof(*host->tables));
	return host;
}

void pages_host_add(struct pages_host *host, uint32_t table, const struct nvmepeer_buffer *cache,
		    const uint32_t *places, uint32_t count, uint32_t slots, uint32_t first,
		    uint32_t blocks)
{
	static char *memory, *end;
	size_t bytes = 4ul * count + slots * sizeof(struct nvmepeer_page_slot);
	struct nvmepeer_pages *pages = &host->tables[table];

	if (end - memory < (ptrdiff_t)bytes) {
		memory = memory_of(256 << 20);
		end = memory + (256 << 20);
	}
	*pages = (struct nvmepeer_pages){
		.entries = (uint32_t *)memory, .slots = (struct nvmepeer_page_slot *)(memory + 4ul * count),
		.buffer = cache, .count = count, .slot_count = slots, .first = first, .blocks = blocks,
	};
	memory += bytes;
	memcpy(pages->entries, places, 4ul * count);
	nvmepeer_block_pages_reset(pages);
}

void pages_host_reset_queues(struct pages_host *host)
{
	for (uint32_t i = 0; i < host->queue_count; i++)
		nvmepeer_queue_reset(&host->queues[i]);
}

/* A word of ask @number, which may arrive later than others. */
static uint32_t word_of(const uint32_t *word, uint32_t number)
{
	uint32_t value;

	do
		value = __atomic_load_n(word, __ATOMIC_RELAXED);
	while (value >> PAGES_TAG != (number & 255));
	return pages_tag(value, 0);
}

static void begin(struct pages_host *host, struct job *job, uint32_t sequence)
{
	const struct pages_ask *ask = &host->asks[sequence];

	for (uint32_t i = 0; i < host->wanted; i++)
		job->wanted[i] = word_of(&ask->wanted[i], job->number);
	job->table = &host->tables[word_of(&ask->table, job->number)];
	job->queue = &host->queues[sequence % host->queue_count];
	job->request = (struct nvmepeer_page_request){
		.wanted = job->wanted, .blocks = job->blocks, .misses = job->misses, .count = host->wanted,
	};
	nvmepeer_block_pages_resolve(job->table, &job->request);
	nvmepeer_block_pages_submit(job->queue, job->table, &job->request);
	job->done = 0;
	job->runs = true;
}

/* Returns whether all reads have ended. */
static bool poll(struct job *job)
{
	while (job->done < job->request.missing &&
	       nvmepeer_page_poll(job->queue, &job->misses[job->done]) != NVMEPEER_AGAIN)
		job->done++;
	return job->done == job->request.missing;
}

static void finish(struct pages_host *host, struct job *job, uint32_t sequence)
{
	uint32_t *blocks = host->answers[sequence].blocks;

	if (nvmepeer_block_pages_wait(job->queue, job->table, &job->request, 0))
		__atomic_fetch_add(&host->bad, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < job->request.count; i++)
		__atomic_store_n(&blocks[i], pages_tag(job->blocks[i], job->number), __ATOMIC_RELAXED);
	job->runs = false;
}

void pages_host_serve(struct pages_host *host, uint32_t thread)
{
	struct job *jobs = memory_of(PAGES_SEQUENCES * sizeof(*jobs));

	while (!__atomic_load_n(&host->stop, __ATOMIC_RELAXED)) {
		for (uint32_t i = thread; i < host->sequences; i += host->threads) {
			struct job *job = &jobs[i];
			uint32_t word = __atomic_load_n(&host->asks[i].wanted[0], __ATOMIC_RELAXED);

			if (!job->runs && word >> PAGES_TAG == ((job->number + 1) & 255)) {
				job->number++;
				begin(host, job, i);
			}
			if (job->runs && poll(job))
				finish(host, job, i);
		}
	}
	free(jobs);
}

void pages_host_read(struct pages_host *host)
{
	static struct job jobs[PAGES_SEQUENCES];

	for (uint32_t i = 0; i < host->sequences; i++)
		begin(host, &jobs[i], i);
	for (uint32_t i = 0; i < host->sequences; i++) {
		while (!poll(&jobs[i]))
			;
		finish(host, &jobs[i], i);
	}
}
