// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs on blocks for lanes of the CPU: checks of their parameters, and the table of programs.
 */
#include <string.h>

#include "lane.h"
#include "memory.h"
#include "programs_io.h"

#define PROGRAM_FN static

static void lane_took(struct lane *lane, uint64_t ns)
{
	struct softgpu_result *result = &lane->slot->job->result;
	uint64_t seen;

	lane_add(lane, latency_ns, ns);
	seen = __atomic_load_n(&result->latency_max_ns, __ATOMIC_RELAXED);
	while (seen < ns &&
	       !__atomic_compare_exchange_n(&result->latency_max_ns, &seen, ns,
					    true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
	seen = __atomic_load_n(&result->latency_min_ns, __ATOMIC_RELAXED);
	while ((!seen || seen > ns) &&
	       !__atomic_compare_exchange_n(&result->latency_min_ns, &seen, ns,
					    true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

static uint64_t lane_reads(const struct lane *lane)
{
	return __atomic_load_n(&lane->slot->job->result.reads, __ATOMIC_RELAXED);
}

static bool lane_stopped(const struct lane *lane)
{
	return atomic_load(&lane->slot->stop);
}

static uint64_t lane_age_ns(const struct lane *lane)
{
	return now_ns() - lane->slot->start_ns;
}

static const struct nvmepeer_queue *lane_queue(const struct lane *lane)
{
	return &lane->slot->queue;
}

static uint64_t lane_issue(struct lane *lane)
{
	return atomic_fetch_add(&lane->slot->issued, 1);
}

#include "programs_alone.h"
#include "programs_blocks.h"

/* --- Checks before the lanes start ---------------------------------------- */

/* All DMA addresses of the buffer's pages have to be in HBM. */
static bool buffer_valid(const struct gpu *gpu,
			 const struct nvmepeer_buffer *buffer,
			 uint32_t page_shift)
{
	uint64_t pages = (buffer->length >> page_shift) + 1;

	return !buffer->pages ||
	       (buffer->pages % 8 == 0 && buffer->length <= gpu->hbm_bytes &&
		gpu_hbm(gpu, buffer->pages, 8 * (pages - 1)));
}

static enum softgpu_status prepare_queue(struct slot *slot)
{
	const struct nvmepeer_geometry *geometry = &slot->parameters.io.queue;
	int error = nvmepeer_queue_open(&slot->queue, geometry);

	if (error) {
		lane_note(&slot->lanes[0], error, 0, 0);
		return SOFTGPU_INVALID;
	}
	if (!gpu_hbm(slot->gpu, geometry->state,
		     nvmepeer_state_bytes(geometry)) ||
	    !buffer_valid(slot->gpu, &geometry->list_memory,
			  geometry->page_shift))
		return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

/* CUDA resolves all pages of data in host memory as the job begins. */
static bool data_exists(const struct gpu *gpu, const struct softgpu_io *io)
{
	return gpu_hbm(gpu, io->data_address, io->data.length) ||
	       gpu_in_window(gpu, io->data_address, io->data.length) ||
	       (gpu->offload && memory_entry(gpu, io->data_address, true));
}

/* Several queue pairs need CUDA. */
static bool pairs_valid(const struct slot *slot)
{
	uint32_t pairs = slot->parameters.io.pairs;

	return pairs < 2 || (slot->gpu->offload && slot->threads % pairs == 0);
}

/* Data memory of a thread; each queue pair has the same number of threads. */
static uint64_t least_share(const struct slot *slot)
{
	const struct softgpu_io *io = &slot->parameters.io;
	uint32_t threads = slot->threads / (io->pairs ? io->pairs : 1);
	uint64_t page = 1ULL << slot->queue.page_shift;

	return io->data.length / threads & ~(page - 1);
}

static enum softgpu_status prepare_data(struct slot *slot)
{
	const struct softgpu_io *io = &slot->parameters.io;
	enum softgpu_status status = prepare_queue(slot);
	uint64_t bytes, depth = 1;

	if (slot->program == SOFTGPU_RATE && io->depth)
		depth = io->depth;
	if (status)
		return status;
	bytes = (uint64_t)most_blocks(io) << slot->queue.lba_shift;
	if (!io->blocks || io->blocks > 65536 || !pairs_valid(slot) || depth > MAX_DEPTH ||
	    io->lba_count < io->blocks || depth * bytes > least_share(slot) ||
	    io->data_address % 8 || io->first_lba + io->lba_count < io->lba_count)
		return SOFTGPU_INVALID;
	if (!data_exists(slot->gpu, io) ||
	    !buffer_valid(slot->gpu, &io->data, slot->queue.page_shift))
		return SOFTGPU_INVALID;
	if (io->samples &&
	    (io->samples % 8 || io->sample_count > slot->gpu->hbm_bytes / 8 ||
	     !gpu_hbm(slot->gpu, io->samples, 8 * io->sample_count)))
		return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

/* The page table needs a word for each page of the range. */
static enum softgpu_status prepare_gather(struct slot *slot)
{
	const struct softgpu_io *io = &slot->parameters.io;
	enum softgpu_status status = prepare_queue(slot);
	uint64_t bytes = io->lba_count << slot->queue.lba_shift;

	if (status)
		return status;
	if (!io->blocks || !pairs_valid(slot) || io->page_shift < 12 || io->page_shift > 31 ||
	    io->page_table % 4 || io->lba_count < io->blocks || bytes > slot->gpu->hbm_bytes ||
	    !gpu_hbm(slot->gpu, io->page_table, (bytes >> io->page_shift) * 4) ||
	    !buffer_valid(slot->gpu, &io->data, slot->queue.page_shift))
		return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

/* Each entry of the page table has to be in the data memory. */
static enum softgpu_status prepare_gathered(struct slot *slot)
{
	const struct softgpu_io *io = &slot->parameters.io;
	enum softgpu_status status = prepare_gather(slot);
	const uint32_t *table;
	uint64_t page;

	if (status != SOFTGPU_RUNNING)
		return status;
	table = (const uint32_t *)(uintptr_t)io->page_table;
	if (!data_exists(slot->gpu, io) || io->data_address % 8)
		return SOFTGPU_INVALID;
	for (page = 0; page < io->lba_count << slot->queue.lba_shift >> io->page_shift; page++)
		if ((uint64_t)table[page] + 1 > io->data.length >> io->page_shift)
			return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

static bool item_valid(const struct slot *slot, const struct nvmepeer_list_item *item)
{
	const struct softgpu_io *io = &slot->parameters.io;
	uint64_t first = item->lba - io->first_lba, blocks = item->bytes >> slot->queue.lba_shift;

	return item->memory < io->pairs && item->bytes && item->offset % 8 == 0 &&
	       item->bytes <= io->data.length && item->offset <= io->data.length - item->bytes &&
	       blocks << slot->queue.lba_shift == item->bytes && first < io->lba_count &&
	       blocks <= io->lba_count - first;
}

/* Each item has to be in the range, and in the data memories, which have the same size. */
static enum softgpu_status prepare_list(struct slot *slot)
{
	const struct softgpu_io *io = &slot->parameters.io;
	const struct nvmepeer_list_item *items;
	enum softgpu_status status = prepare_queue(slot);
	uint64_t i;

	if (status != SOFTGPU_RUNNING)
		return status;
	if (!pairs_valid(slot) || io->page_table % 8 || io->commands > UINT32_MAX ||
	    !data_exists(slot->gpu, io) || io->data_address % 8)
		return SOFTGPU_INVALID;
	items = gpu_hbm(slot->gpu, io->page_table, io->commands * sizeof(*items));
	for (i = 0; items && i < io->commands; i++)
		if (!item_valid(slot, &items[i]))
			return SOFTGPU_INVALID;
	return items ? SOFTGPU_RUNNING : SOFTGPU_INVALID;
}

/* Several queue pairs need CUDA. */
static enum softgpu_status refuse_list(struct lane *lane)
{
	(void)lane;
	return SOFTGPU_INVALID;
}

/* Only one thread can use a queue pair exclusively. */
static enum softgpu_status prepare_exclusive(struct slot *slot)
{
	return slot->threads == 1 ? prepare_data(slot) : SOFTGPU_INVALID;
}

static enum softgpu_status prepare_exchange(struct slot *slot)
{
	const struct softgpu_io *io = &slot->parameters.io;
	enum softgpu_status status = prepare_exclusive(slot);

	if (status != SOFTGPU_RUNNING)
		return status;
	if (io->data.pages || (uint64_t)io->blocks << slot->queue.lba_shift > SOFTGPU_PAGE)
		return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

static const struct program programs[] = {
	[SOFTGPU_LIST] = { prepare_list, refuse_list },
	[SOFTGPU_LIST_COPY] = { prepare_list, refuse_list },
	[SOFTGPU_LIST_CHECK] = { prepare_list, refuse_list },
	[SOFTGPU_QUEUE_INIT] = { prepare_queue, run_queue_init },
	[SOFTGPU_WRITE] = { prepare_data, run_write },
	[SOFTGPU_VERIFY] = { prepare_data, run_verify },
	[SOFTGPU_MIXED] = { prepare_data, run_mixed },
	[SOFTGPU_RANDOM] = { prepare_data, run_random },
	[SOFTGPU_LATENCY] = { prepare_data, run_latency },
	[SOFTGPU_EXCLUSIVE] = { prepare_exclusive, run_exclusive },
	[SOFTGPU_EXCHANGE] = { prepare_exchange, run_exchange },
	[SOFTGPU_RATE] = { prepare_data, run_rate },
	[SOFTGPU_COPY] = { prepare_data, run_copy },
	[SOFTGPU_FLUSH] = { prepare_queue, run_flush },
	[SOFTGPU_GATHER] = { prepare_gather, run_gather },
	[SOFTGPU_GATHERED] = { prepare_gathered, run_gathered },
	[SOFTGPU_QUEUE_REARM] = { prepare_queue, run_queue_rearm },
};

const struct program *io_program(uint32_t number)
{
	if (number >= sizeof(programs) / sizeof(programs[0]) ||
	    !programs[number].run)
		return NULL;
	return &programs[number];
}
