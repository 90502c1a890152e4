// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The CPU as the peer: a queue pair whose rings, book-keeping and data lie in
 * this process.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer.h"

/**
 * struct layout - how the CPU peer divides its data memory
 * @page: bytes of a controller page
 * @lists: bytes of all PRP lists, at the start
 * @data: bytes of data behind them
 */
struct layout {
	uint32_t page;
	size_t lists;
	size_t data;
};

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* A list names every page that a command may touch, but for the first. */
static uint32_t list_bytes(const struct nvme_peer_info *info)
{
	uint32_t bytes = 8;

	while (bytes < info->max_transfer / info->page_size * 8 + 8)
		bytes *= 2;
	return bytes;
}

static int map_rings(struct nvmepeer_cpu_peer *peer)
{
	unsigned int what;
	int result = 0;

	for (what = 0; what < PEER_MAPPINGS && !result; what++)
		result = nvmepeer_qp_map(peer->qp, what, &peer->mappings[what]);
	return result;
}

static uint64_t mapped_at(const struct nvmepeer_cpu_peer *peer, enum nvme_peer_export what)
{
	return (uintptr_t)nvmepeer_mapping_address(peer->mappings[what]);
}

/* Memory, its import, and the address of each of its controller pages. */
static int get_memory(struct nvmepeer *ctrl, const struct layout *layout,
		      struct nvmepeer_cpu_peer *peer)
{
	uint32_t count = (uint32_t)((layout->lists + layout->data) / layout->page);
	struct nvme_peer_buf_import buffer;
	int result;

	result = nvmepeer_hostmem_alloc(layout->lists + layout->data, &peer->memory);
	if (result)
		return result;
	result = nvmepeer_buf_import(ctrl, nvmepeer_hostmem_fd(peer->memory), 0, &buffer,
				     sizeof(buffer));
	if (result)
		return result;
	peer->handle = buffer.handle;
	peer->pages = calloc(count, sizeof(*peer->pages));
	if (!peer->pages)
		return -ENOMEM;
	result = nvmepeer_buf_table(ctrl, buffer.handle, 0, peer->pages, count);
	if (result < 0)
		return result;
	peer->data_address = (char *)nvmepeer_hostmem_address(peer->memory) + layout->lists;
	peer->data.length = layout->data;
	peer->data.pages = (uintptr_t)(peer->pages + layout->lists / layout->page);
	return 0;
}

static int start_queue(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
		       struct nvmepeer_geometry *geometry,
		       struct nvmepeer_cpu_peer *peer)
{
	size_t bytes = round_up(nvmepeer_state_bytes(geometry), 128);
	const void *doorbells;
	int result;

	peer->state = aligned_alloc(128, bytes);
	if (!peer->state)
		return -ENOMEM;
	memset(peer->state, 0, bytes);
	geometry->state = (uintptr_t)peer->state;
	geometry->sq = mapped_at(peer, NVME_PEER_EXPORT_SQ);
	geometry->cq = mapped_at(peer, NVME_PEER_EXPORT_CQ);
	geometry->status = mapped_at(peer, NVME_PEER_EXPORT_STATUS);
	geometry->request = mapped_at(peer, NVME_PEER_EXPORT_REQUEST);
	geometry->list_area = (uintptr_t)nvmepeer_hostmem_address(peer->memory);
	geometry->list_memory.pages = (uintptr_t)peer->pages;
	doorbells = nvmepeer_mapping_base(peer->mappings[NVME_PEER_EXPORT_DOORBELL]);
	result = nvmepeer_qp_geometry(ctrl, peer->qp, ns,
				      NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST,
				      (uintptr_t)doorbells, geometry, sizeof(*geometry));
	/* The check that opening a queue makes has just been made. */
	if (!result)
		nvmepeer_queue_init(&peer->queue, geometry);
	return result;
}

static int open_parts(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
		      uint32_t entries, size_t data_bytes,
		      struct nvmepeer_cpu_peer *peer)
{
	struct nvme_peer_qp_create request = { .sq_entries = entries };
	struct nvmepeer_geometry geometry = { .sq_entries = entries };
	struct nvme_peer_info info;
	struct layout layout;
	int result;

	result = nvmepeer_info(ctrl, &info, sizeof(info));
	if (result)
		return result;
	result = nvmepeer_qp_create(ctrl, &request, sizeof(request), &peer->qp);
	if (!result)
		result = map_rings(peer);
	if (result)
		return result;
	geometry.list_bytes = list_bytes(&info);
	layout.page = info.page_size;
	layout.lists = round_up((size_t)geometry.list_bytes * nvmepeer_cids(&geometry),
				layout.page);
	layout.data = round_up(data_bytes, layout.page);
	geometry.list_memory.length = layout.lists;
	result = get_memory(ctrl, &layout, peer);
	return result ? result : start_queue(ctrl, ns, &geometry, peer);
}

int nvmepeer_cpu_peer_open(struct nvmepeer *ctrl,
			   const struct nvmepeer_ns_info *ns, uint32_t entries,
			   size_t data_bytes, struct nvmepeer_cpu_peer **peer)
{
	struct nvmepeer_cpu_peer *opened = calloc(1, sizeof(*opened));
	int result = -ENOMEM;

	if (opened) {
		opened->ctrl = ctrl;
		result = gathering_new(&opened->gathering);
		if (!result)
			result = open_parts(ctrl, ns, entries, data_bytes, opened);
	}
	if (!result) {
		*peer = opened;
		return 0;
	}
	if (result == -ENOMEM)
		failure_tell(CALL_CPU_PEER, result, ctrl->node);
	nvmepeer_cpu_peer_close(opened);
	return result;
}

/*
 * The queue pair goes first: once its file is closed the controller has let go
 * of rings and data.
 */
void nvmepeer_cpu_peer_close(struct nvmepeer_cpu_peer *peer)
{
	unsigned int what;

	if (!peer)
		return;
	for (what = 0; what < PEER_MAPPINGS; what++)
		nvmepeer_unmap(peer->mappings[what]);
	nvmepeer_qp_destroy(peer->qp);
	if (peer->handle)
		nvmepeer_buf_release(peer->ctrl, peer->handle);
	nvmepeer_hostmem_free(peer->memory);
	gathering_free(peer->gathering);
	free(peer->pages);
	free(peer->state);
	free(peer);
}

const struct nvmepeer_queue *nvmepeer_cpu_peer_queue(const struct nvmepeer_cpu_peer *peer)
{
	return &peer->queue;
}

const struct nvmepeer_buffer *nvmepeer_cpu_peer_data(const struct nvmepeer_cpu_peer *peer)
{
	return &peer->data;
}

void *nvmepeer_cpu_peer_address(const struct nvmepeer_cpu_peer *peer)
{
	return peer->data_address;
}

struct nvmepeer_qp *nvmepeer_cpu_peer_qp(const struct nvmepeer_cpu_peer *peer)
{
	return peer->qp;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns 1 if it was re-armed, 0 if it had lost nothing. */
static int rearm_when_ready(struct nvmepeer_cpu_peer *peer, int64_t end, uint32_t *generation)
{
	struct nvme_peer_qp_info info;
	int result;

	for (;;) {
		result = nvmepeer_qp_info(peer->qp, &info, sizeof(info));
		if (result)
			return result;
		if (info.state == NVME_PEER_QP_LIVE &&
		    info.generation == peer->queue.state->generation)
			return 0;
		result = nvmepeer_qp_rearm(peer->qp, info.losses, generation);
		if (result != -EAGAIN && result != -ESTALE)
			return result ? result : 1;
		if (now_ms() >= end)
			return -ETIMEDOUT;
		/* Not for the file: its records are the caller's to read. */
		poll(NULL, 0, 2);
	}
}

int nvmepeer_cpu_peer_recover(struct nvmepeer_cpu_peer *peer, int timeout_ms)
{
	uint32_t generation = peer->queue.state->generation;
	int result = rearm_when_ready(peer, now_ms() + timeout_ms, &generation);

	if (result <= 0)
		return result;
	nvmepeer_queue_rearm(&peer->queue, generation);
	return 0;
}
