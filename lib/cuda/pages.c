// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * pages.c: page tables of a cache in GPU memory (nvmepeer_device/pages.h), whose
 * steps are kernels of the library on a stream.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "pages_kernel.h"

static const char opening[] = "nvmepeer_cuda_pages_open";
static const char reading[] = "nvmepeer_cuda_read_pages";
static const char reclaiming[] = "nvmepeer_cuda_reclaim_pages";

/**
 * struct nvmepeer_cuda_pages - page tables of one cache
 * @queues: queue pairs, owned by the caller
 * @cuda: the GPU, owned by the caller
 * @options: of the open
 * @module: CUmodule of the kernel
 * @kernel: CUfunction
 * @memory: GPU address of tables, misses, slots and entries, in this order
 * @bytes: of that memory
 *
 * Constant after open.
 */
struct nvmepeer_cuda_pages {
	struct nvmepeer_cuda_queues *queues;
	struct nvmepeer_cuda *cuda;
	struct nvmepeer_cuda_pages_options options;
	void *module;
	void *kernel;
	uint64_t memory;
	uint64_t bytes;
};

/* Offsets in the memory of tables. */
struct places {
	uint64_t misses;
	uint64_t slots;
	uint64_t entries;
	uint64_t end;
};

static struct places places_of(const struct nvmepeer_cuda_pages_options *options)
{
	struct places places;

	places.misses = options->tables * sizeof(struct nvmepeer_pages);
	places.slots = places.misses + (uint64_t)options->tables * options->most *
				       sizeof(struct nvmepeer_page_miss);
	places.slots = cuda_round_up(places.slots, 16);
	places.entries = places.slots + (uint64_t)options->tables * options->slots *
					sizeof(struct nvmepeer_page_slot);
	places.end = places.entries + (uint64_t)options->tables * options->pages * 4;
	return places;
}

static int check_options(const struct nvmepeer_cuda_pages_options *options)
{
	static const char what[] = "the page tables are invalid";

	if (options->size != sizeof(*options))
		return cuda_fail(opening, -EINVAL, what, "set size to the size of the structure",
				 "%u bytes instead of %zu", options->size, sizeof(*options));
	if (!options->tables || !options->pages || !options->slots || !options->most || !options->blocks)
		return cuda_fail(opening, -EINVAL, what, "set all numbers",
				 "%u tables of %u pages of %u blocks, %u slots, %u wanted pages",
				 options->tables, options->pages, options->blocks, options->slots,
				 options->most);
	if ((uint64_t)options->tables * options->most >= NVMEPEER_PAGE_RESIDENT)
		return cuda_fail(opening, -EINVAL, what, "use fewer tables or wanted pages",
				 "%u tables of %u wanted pages, all below %u", options->tables,
				 options->most, NVMEPEER_PAGE_RESIDENT);
	if (options->slots >= NVMEPEER_PAGE_RESIDENT || options->pages > NVMEPEER_PAGE_PLACES)
		return cuda_fail(opening, -EINVAL, what, "use more tables of fewer pages",
				 "%u pages and %u slots, below %u", options->pages, options->slots,
				 NVMEPEER_PAGE_RESIDENT);
	return 0;
}

/* Does one SGL descriptor suffice for each page of the cache? */
static bool needs_no_list(const struct nvmepeer_queue *queue, const struct nvmepeer_buffer *cache,
			  uint64_t page)
{
	uint64_t run = (uint64_t)1 << nvp_table_shift(queue, cache);

	if (nvp_use_sgl(queue, cache))
		return true;
	/* A part of a run of the table: a power of two. */
	return (queue->flags & NVMEPEER_SGL) && page <= run && !(page & (page - 1)) &&
	       !(nvp_table_offset(cache, 0) & (page - 1));
}

/* Longest page that a command reads, from the start of a controller page on. */
static uint64_t longest_page(const struct nvmepeer_queue *queue, const struct nvmepeer_buffer *cache,
			     uint64_t page)
{
	uint64_t listed = ((uint64_t)nvp_list_entries(queue) + 1) << queue->page_shift;
	uint64_t most = (uint64_t)65536 << queue->lba_shift;

	if (most > queue->max_transfer)
		most = queue->max_transfer;
	return !needs_no_list(queue, cache, page) && most > listed ? listed : most;
}

/* Each table has slots of its own in the cache, and a command reads a page. */
static int check_cache(const struct nvmepeer_cuda_queues *queues, const struct nvmepeer_cuda_buffer *cache,
		       const struct nvmepeer_cuda_pages_options *options)
{
	const struct nvmepeer_queue *queue = &queues->queues[0];
	uint64_t page = (uint64_t)options->blocks << queue->lba_shift;
	uint64_t slots = (uint64_t)options->tables * options->slots;
	uint64_t most = longest_page(queue, &cache->buffer, page);

	if (page > most)
		return cuda_fail(opening, -EINVAL, "a page is longer than a command",
				 "use smaller pages, or longer lists of the queue pairs",
				 "%llu bytes of at most %llu", (unsigned long long)page,
				 (unsigned long long)most);
	if (slots >= NVMEPEER_PAGE_RESIDENT || slots * page > cache->buffer.length)
		return cuda_fail(opening, -EINVAL, "the cache is too small for the slots",
				 "pass a larger buffer, or use fewer slots",
				 "%llu slots of %llu bytes in %llu bytes", (unsigned long long)slots,
				 (unsigned long long)page, (unsigned long long)cache->buffer.length);
	return 0;
}

static int check_places(const struct nvmepeer_cuda_pages_options *options, const uint32_t *places)
{
	uint64_t count = (uint64_t)options->tables * options->pages;

	for (uint64_t i = 0; i < count; i++) {
		if (places[i] >= NVMEPEER_PAGE_PLACES)
			return cuda_fail(opening, -EINVAL, "a place is too large",
					 "set lba, so that places are smaller", "place %u of at most %u",
					 places[i], NVMEPEER_PAGE_PLACES - 1);
		if (options->lba > UINT64_MAX - ((uint64_t)places[i] + 1) * options->blocks)
			return cuda_fail(opening, -EINVAL, "a place is behind the last logical block",
					 "set lba and the places to those of the namespace",
					 "place %u of %u blocks from block %llu on", places[i],
					 options->blocks, (unsigned long long)options->lba);
	}
	return 0;
}

/* What the memory of the tables has at first: no page is resident. */
static void *arrange(const struct nvmepeer_cuda_pages *pages, const struct nvmepeer_cuda_buffer *cache,
		     const uint32_t *places)
{
	const struct nvmepeer_cuda_pages_options *options = &pages->options;
	struct places at = places_of(options);
	char *image = calloc(1, at.end);
	struct nvmepeer_page_slot *slots;
	struct nvmepeer_pages *tables;

	if (!image)
		return NULL;
	tables = (void *)image;
	slots = (void *)(image + at.slots);
	memcpy(image + at.entries, places, (size_t)options->tables * options->pages * 4);
	for (uint64_t i = 0; i < (uint64_t)options->tables * options->slots; i++)
		slots[i].page = NVMEPEER_PAGE_NONE;
	for (uint32_t i = 0; i < options->tables; i++)
		tables[i] = (struct nvmepeer_pages){
			.entries = (uint32_t *)(uintptr_t)(pages->memory + at.entries) +
				   (size_t)i * options->pages,
			.slots = (struct nvmepeer_page_slot *)(uintptr_t)(pages->memory + at.slots) +
				 (size_t)i * options->slots,
			.buffer = cache->device,
			.lba = options->lba,
			.count = options->pages,
			.slot_count = options->slots,
			.first = i * options->slots,
			.blocks = options->blocks,
		};
	return image;
}

static int upload(struct nvmepeer_cuda_pages *pages, const struct nvmepeer_cuda_buffer *cache,
		  const uint32_t *places)
{
	void *image;
	int error = cuda_alloc(pages->cuda, pages->bytes, &pages->memory);

	if (error)
		return error;
	image = arrange(pages, cache, places);
	if (!image)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	error = cuda_upload(pages->cuda, pages->memory, image, pages->bytes);
	free(image);
	return error;
}

/* Of a failed open the memory is kept, since cuda_free() would wait for kernels of others. */
static void release(struct nvmepeer_cuda_pages *pages, bool failed)
{
	if (pages->module)
		cuda_unload(pages->cuda, pages->module);
	if (pages->memory && failed)
		cuda_keep(pages->cuda, pages->memory, pages->bytes);
	else if (pages->memory)
		cuda_free(pages->cuda, pages->memory);
	free(pages);
}

int nvmepeer_cuda_pages_open(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_buffer *cache,
			     const struct nvmepeer_cuda_pages_options *options, const uint32_t *places,
			     struct nvmepeer_cuda_pages **pages)
{
	struct nvmepeer_cuda_pages *opened;
	struct nvmepeer_explanation why;
	int error = check_options(options);

	if (!error)
		error = queues_check_open(queues, opening);
	if (!error)
		error = cuda_check_buffers(opening, queues, &cache, 1);
	if (!error)
		error = check_cache(queues, cache, options);
	if (!error)
		error = check_places(options, places);
	if (error)
		return error;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return cuda_fail(opening, -ENOMEM, "out of memory", "", "the host has no free memory");
	opened->queues = queues;
	opened->cuda = queues->cuda;
	opened->options = *options;
	opened->bytes = places_of(options).end;
	error = cuda_load(opened->cuda, opening, "nvmepeer_pages_step", &opened->module,
			  &opened->kernel);
	if (!error)
		error = upload(opened, cache, places);
	if (!error) {
		*pages = opened;
		return 0;
	}
	nvmepeer_explain(&why, sizeof(why));
	release(opened, true);
	return nvmepeer_fail(&why, sizeof(why));
}

void nvmepeer_cuda_pages_close(struct nvmepeer_cuda_pages *pages)
{
	if (pages)
		release(pages, false);
}

struct nvmepeer_pages *nvmepeer_cuda_pages_device(const struct nvmepeer_cuda_pages *pages)
{
	return (void *)(uintptr_t)pages->memory;
}

/* The kernel reads the arrays again while it writes the others. */
static bool arrays_overlap(const struct nvmepeer_cuda_pages *pages, const struct nvmepeer_cuda_step *step)
{
	uint64_t tables = pages->options.tables, each = 4 * tables * step->count;
	const uint64_t starts[] = { (uintptr_t)step->wanted, (uintptr_t)step->blocks,
				    (uintptr_t)step->statuses, (uintptr_t)step->worst };
	const uint64_t bytes[] = { each, each, each, 4 * tables };

	for (int i = 1; i < 4; i++)
		for (int j = 0; j < i; j++)
			if (starts[i] && starts[j] && starts[i] < starts[j] + bytes[j] &&
			    starts[j] < starts[i] + bytes[i])
				return true;
	return false;
}

static int check_step(const struct nvmepeer_cuda_pages *pages, const struct nvmepeer_cuda_step *step)
{
	static const char what[] = "the step is invalid";

	if (step->size != sizeof(*step))
		return cuda_fail(reading, -EINVAL, what, "set size to the size of the structure",
				 "%u bytes instead of %zu", step->size, sizeof(*step));
	if (!step->count || step->count > pages->options.most)
		return cuda_fail(reading, -EINVAL, what, "open the tables for more wanted pages",
				 "%u pages of each table, 1 to %u", step->count, pages->options.most);
	if (!step->wanted || !step->blocks ||
	    ((uintptr_t)step->wanted | (uintptr_t)step->blocks | (uintptr_t)step->statuses |
	     (uintptr_t)step->worst) % 4)
		return cuda_fail(reading, -EINVAL, what, "pass arrays of words of 32 bits",
				 "wanted at %p, blocks at %p, statuses at %p, worst at %p",
				 (const void *)step->wanted, (void *)step->blocks,
				 (void *)step->statuses, (void *)step->worst);
	if (arrays_overlap(pages, step))
		return cuda_fail(reading, -EINVAL, what, "pass arrays that do not overlap",
				 "wanted at %p, blocks at %p, statuses at %p, worst at %p",
				 (const void *)step->wanted, (void *)step->blocks,
				 (void *)step->statuses, (void *)step->worst);
	return 0;
}

static int launch(struct nvmepeer_cuda_pages *pages, const char *call,
		  const struct nvmepeer_cuda_step *step, void *stream)
{
	struct pages_parameters parameters = {
		.queues = pages->queues->device,
		.queue_count = pages->queues->count,
		.layout = NVMEPEER_LAYOUT,
		.tables = (void *)(uintptr_t)pages->memory,
		.misses = (void *)(uintptr_t)(pages->memory + places_of(&pages->options).misses),
		.most = pages->options.most,
		.count = step->count,
		.wanted = step->wanted,
		.blocks = step->blocks,
		.statuses = step->statuses,
		.worst = step->worst,
	};
	void *arguments[] = { &parameters };
	int error = queues_check_open(pages->queues, call);

	return error ? error : cuda_launch(pages->cuda, call, pages->kernel, pages->options.tables,
					   PAGES_THREADS, stream, arguments);
}

int nvmepeer_cuda_read_pages(struct nvmepeer_cuda_pages *pages, const struct nvmepeer_cuda_step *step,
			     void *stream)
{
	int error = check_step(pages, step);

	return error ? error : launch(pages, reading, step, stream);
}

int nvmepeer_cuda_reclaim_pages(struct nvmepeer_cuda_pages *pages, void *stream)
{
	return launch(pages, reclaiming, &(struct nvmepeer_cuda_step){ 0 }, stream);
}
