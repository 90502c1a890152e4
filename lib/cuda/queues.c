// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * queues.c: queue pairs whose rings, PRP lists and book-keeping lie in the
 * memory of a GPU, made ready for its kernels, and ready again after a loss.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

enum { GPU_PAGE = 64 << 10 };

static const char opening[] = "nvmepeer_cuda_queues_open";
static const char rearming[] = "nvmepeer_cuda_queues_rearm";

/*
 * Where the parts lie; offsets in bytes.  @sq to @table are repeated for each
 * queue pair, @each bytes apart; the handles follow behind all of them.
 */
struct layout {
	uint64_t sq, cq, lists, state, table, each, handles, end;
};

/* Pages of a queue pair that kernels of the GPU touch. */
enum page { DOORBELL, STATUS, REQUEST, PAGES };

static const struct {
	enum nvme_peer_export what;
	enum cuda_memory memory;
} kinds[PAGES] = {
	[DOORBELL] = { NVME_PEER_EXPORT_DOORBELL, CUDA_MEMORY_REGISTERS },
	[STATUS] = { NVME_PEER_EXPORT_STATUS, CUDA_MEMORY_READ_ONLY },
	[REQUEST] = { NVME_PEER_EXPORT_REQUEST, CUDA_MEMORY_READ_WRITE },
};

/*
 * What one queue pair holds of the kernel and of the GPU.  The first @registered of
 * the @pages are registered with the GPU.  @stale: the book-keeping does not fit the
 * rings, as a re-arm did not get to the end.
 */
struct nvmepeer_cuda_part {
	struct nvmepeer_qp *qp;
	struct nvmepeer_mapping *pages[PAGES];
	struct nvmepeer_geometry geometry;
	int registered;
	bool stale;
};

/* A list names every page that a command may touch, but for the first. */
static uint32_t list_bytes(const struct nvme_peer_info *info)
{
	uint32_t bytes = 8;

	while (bytes < info->max_transfer / info->page_size * 8 + 8)
		bytes *= 2;
	return bytes;
}

static struct layout layout_of(const struct nvmepeer_geometry *geometry, uint32_t page_size,
			       uint32_t count)
{
	uint64_t lists = (uint64_t)nvmepeer_cids(geometry) * geometry->list_bytes;
	struct layout layout;

	layout.sq = 0;
	layout.cq = cuda_round_up(64 * (uint64_t)geometry->sq_entries, GPU_PAGE);
	layout.lists = layout.cq + cuda_round_up(16 * (uint64_t)geometry->cq_entries, GPU_PAGE);
	layout.state = layout.lists + cuda_round_up(lists, GPU_PAGE);
	layout.table = layout.state + cuda_round_up(nvmepeer_state_bytes(geometry), 128);
	layout.each = cuda_round_up(layout.table + cuda_table_bytes(lists, page_size), GPU_PAGE);
	layout.handles = count * layout.each;
	layout.end = cuda_round_up(layout.handles + count * sizeof(struct nvmepeer_queue),
				   CUDA_ALLOCATION_UNIT);
	return layout;
}

static int create_qp(struct nvmepeer_cuda_queues *queues, struct nvmepeer_cuda_part *part,
		     const struct nvmepeer_geometry *geometry)
{
	struct nvme_peer_qp_create request = {
		.mode = NVME_PEER_MODE_DIRECT,
		.sq_entries = geometry->sq_entries,
		.cq_entries = geometry->cq_entries,
		.sq_handle = queues->handle,
		.cq_handle = queues->handle,
		.sq_offset = geometry->sq - queues->memory,
		.cq_offset = geometry->cq - queues->memory,
	};

	return nvmepeer_qp_create(queues->ctrl, &request, sizeof(request), &part->qp);
}

/* Bytes from where a mapping begins to what it is made for. */
static uint64_t offset_in(const struct nvmepeer_mapping *page)
{
	return (uint64_t)((char *)nvmepeer_mapping_address(page) -
			  (char *)nvmepeer_mapping_base(page));
}

/* Maps the pages here and registers them with the GPU, which sees them at @address. */
static int map_pages(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part,
		     uint64_t address[PAGES])
{
	int error = 0;

	for (int i = 0; i < PAGES; i++) {
		error = nvmepeer_qp_map(part->qp, kinds[i].what, &part->pages[i]);
		if (!error)
			error = cuda_register(cuda, kinds[i].memory,
					      nvmepeer_mapping_base(part->pages[i]),
					      nvmepeer_mapping_mapped(part->pages[i]),
					      &address[i]);
		if (error)
			return error;
		part->registered++;
		/* What a doorbell's offset is, the geometry says. */
		if (i != DOORBELL)
			address[i] += offset_in(part->pages[i]);
	}
	return 0;
}

/*
 * The state holds no address, so it is made here and copied.  After a loss it begins
 * from what the GPU has, so that no token from before names a command from after.
 */
static int make_state(struct nvmepeer_cuda *cuda, const struct nvmepeer_geometry *geometry,
		      struct nvmepeer_state *state, const uint32_t *generation)
{
	struct nvmepeer_geometry here = *geometry;
	struct nvmepeer_queue queue = { 0 };
	int error;

	here.state = (uintptr_t)state;
	/* The check that this makes has been made. */
	nvmepeer_queue_open(&queue, &here);
	if (!generation) {
		nvmepeer_queue_reset(&queue);
		return 0;
	}
	error = cuda_download(cuda, state, geometry->state, sizeof(*state));
	if (!error)
		nvmepeer_queue_rearm(&queue, *generation);
	return error;
}

static int upload_state(struct nvmepeer_cuda *cuda, const struct nvmepeer_geometry *geometry,
			const uint32_t *generation)
{
	uint64_t bytes = cuda_round_up(nvmepeer_state_bytes(geometry), 128);
	void *state = aligned_alloc(128, bytes);
	int error;

	if (!state)
		return cuda_fail(generation ? rearming : opening, -ENOMEM, "no memory is left", "",
				 "out of memory");
	memset(state, 0, bytes);
	error = make_state(cuda, geometry, state, generation);
	if (!error)
		error = cuda_upload(cuda, geometry->state, state, bytes);
	free(state);
	return error;
}

static int open_queue(struct nvmepeer_cuda_queues *queues, uint32_t index,
		      const struct nvmepeer_ns_info *ns, const struct layout *layout,
		      const struct nvmepeer_geometry *wanted)
{
	struct nvmepeer_cuda_part *part = &queues->parts[index];
	uint64_t offset = index * layout->each, base = queues->memory + offset, pages[PAGES];
	struct nvmepeer_geometry geometry = *wanted;
	int error;

	geometry.sq = base + layout->sq;
	geometry.cq = base + layout->cq;
	geometry.list_area = base + layout->lists;
	geometry.state = base + layout->state;
	error = create_qp(queues, part, &geometry);
	if (!error)
		error = map_pages(queues->cuda, part, pages);
	if (!error)
		error = cuda_describe(queues->cuda, queues->ctrl, queues->handle,
				      offset + layout->lists,
				      (uint64_t)nvmepeer_cids(&geometry) * geometry.list_bytes,
				      base + layout->table, &geometry.list_memory);
	if (error)
		return error;
	geometry.status = pages[STATUS];
	geometry.request = pages[REQUEST];
	/* Refuses a ring that came to lie elsewhere than the data will. */
	error = nvmepeer_qp_geometry(queues->ctrl, part->qp, ns, 0, pages[DOORBELL], &geometry,
				     sizeof(geometry));
	if (error)
		return error;
	nvmepeer_queue_open(&queues->queues[index], &geometry);
	part->geometry = geometry;
	return upload_state(queues->cuda, &geometry, NULL);
}

static int open_parts(struct nvmepeer_cuda_queues *queues, const struct nvmepeer_ns_info *ns,
		      uint32_t entries)
{
	struct nvmepeer_geometry wanted = { .sq_entries = entries, .cq_entries = entries };
	struct layout layout;
	struct nvme_peer_info info;
	int error = nvmepeer_info(queues->ctrl, &info, sizeof(info));

	if (error)
		return error;
	wanted.list_bytes = list_bytes(&info);
	layout = layout_of(&wanted, info.page_size, queues->count);
	error = cuda_alloc(queues->cuda, layout.end, &queues->memory);
	if (!error)
		error = cuda_import(queues->cuda, queues->ctrl, queues->memory, layout.end,
				    &queues->handle);
	for (uint32_t i = 0; !error && i < queues->count; i++)
		error = open_queue(queues, i, ns, &layout, &wanted);
	if (error)
		return error;
	queues->device = (const struct nvmepeer_queue *)(uintptr_t)(queues->memory +
								    layout.handles);
	return cuda_upload(queues->cuda, queues->memory + layout.handles, queues->queues,
			   queues->count * sizeof(struct nvmepeer_queue));
}

/* What can be refused before anything is made. */
static int check_first(struct nvmepeer_cuda *cuda, uint32_t entries, uint32_t count)
{
	int error;

	if (!count || entries < 2 || entries > 32768 || entries & (entries - 1))
		return cuda_fail(opening, -EINVAL, "no such queue pairs",
				 "ask for one queue pair or more, of a power of two of entries",
				 "%u queue pairs of %u entries asked; a ring has 2 to 32768, a power of two",
				 count, entries);
	error = cuda_may_register();
	return error ? error : cuda_keeps_order(cuda);
}

static struct nvmepeer_cuda_queues *new_queues(struct nvmepeer *ctrl, struct nvmepeer_cuda *cuda,
					       uint32_t count)
{
	struct nvmepeer_cuda_queues *queues = calloc(1, sizeof(*queues));

	if (!queues)
		return NULL;
	queues->ctrl = ctrl;
	queues->cuda = cuda;
	queues->count = count;
	queues->parts = calloc(count, sizeof(*queues->parts));
	queues->queues = calloc(count, sizeof(*queues->queues));
	if (queues->parts && queues->queues)
		return queues;
	nvmepeer_cuda_queues_close(queues);
	return NULL;
}

int nvmepeer_cuda_queues_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
			      struct nvmepeer_cuda *cuda, uint32_t entries, uint32_t count,
			      struct nvmepeer_cuda_queues **queues)
{
	struct nvmepeer_cuda_queues *opened;
	int error;

	error = check_first(cuda, entries, count);
	if (error)
		return error;
	opened = new_queues(ctrl, cuda, count);
	if (!opened)
		return cuda_fail(opening, -ENOMEM, "no memory is left", "", "out of memory");
	error = open_parts(opened, ns, entries);
	if (error)
		nvmepeer_cuda_queues_close(opened);
	else
		*queues = opened;
	return error;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The kernel clears no memory of others: that is done before it is asked. */
static int rearm_qp(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part,
		    uint32_t losses, uint32_t *generation)
{
	const struct nvmepeer_geometry *geometry = &part->geometry;
	int error = cuda_clear(cuda, geometry->cq, 16 * (uint64_t)geometry->cq_entries);

	part->stale = true;
	return error ? error : nvmepeer_qp_rearm(part->qp, losses, generation);
}

static int rearm_when_ready(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part,
			    int64_t end, uint32_t *generation)
{
	struct nvme_peer_qp_info info;
	int error;

	for (;;) {
		error = nvmepeer_qp_info(part->qp, &info, sizeof(info));
		if (error)
			return error;
		*generation = info.generation;
		if (info.state == NVME_PEER_QP_LIVE)
			return 0;
		error = rearm_qp(cuda, part, info.losses, generation);
		if (error != -EAGAIN && error != -ESTALE)
			return error;
		if (now_ms() >= end)
			return -ETIMEDOUT;
		poll(NULL, 0, 2);
	}
}

int nvmepeer_cuda_queues_rearm(struct nvmepeer_cuda_queues *queues, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	int error = 0;

	for (uint32_t i = 0; !error && i < queues->count; i++) {
		struct nvmepeer_cuda_part *part = &queues->parts[i];
		uint32_t generation;

		error = rearm_when_ready(queues->cuda, part, end, &generation);
		if (!error && part->stale)
			error = upload_state(queues->cuda, &part->geometry, &generation);
		if (!error)
			part->stale = false;
	}
	return error;
}

static void close_part(struct nvmepeer_cuda *cuda, struct nvmepeer_cuda_part *part)
{
	for (int i = 0; i < PAGES; i++) {
		if (i < part->registered)
			cuda_unregister(cuda, nvmepeer_mapping_base(part->pages[i]));
		nvmepeer_unmap(part->pages[i]);
	}
	nvmepeer_qp_destroy(part->qp);
}

/*
 * The queue pairs go before the memory they lie in.  The GPU keeps its mapping
 * of the doorbells until they are unregistered; no kernel may run by now.
 */
void nvmepeer_cuda_queues_close(struct nvmepeer_cuda_queues *queues)
{
	if (!queues)
		return;
	for (uint32_t i = 0; queues->parts && i < queues->count; i++)
		close_part(queues->cuda, &queues->parts[i]);
	if (queues->handle)
		nvmepeer_buf_release(queues->ctrl, queues->handle);
	if (queues->memory)
		cuda_free(queues->cuda, queues->memory);
	free(queues->parts);
	free(queues->queues);
	free(queues);
}

const struct nvmepeer_queue *nvmepeer_cuda_queues_host(const struct nvmepeer_cuda_queues *queues)
{
	return queues->queues;
}

const struct nvmepeer_queue *nvmepeer_cuda_queues_device(const struct nvmepeer_cuda_queues *queues)
{
	return queues->device;
}

uint32_t nvmepeer_cuda_queues_count(const struct nvmepeer_cuda_queues *queues)
{
	return queues->count;
}
