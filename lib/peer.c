// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The CPU as the peer: a queue pair whose rings, book-keeping and data lie in
 * this process.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nvmepeer_peer.h>

#include "internal.h"

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
	struct nvmepeer_mapping *const mappings[] = {
		[NVME_PEER_EXPORT_SQ] = &peer->sq,
		[NVME_PEER_EXPORT_CQ] = &peer->cq,
		[NVME_PEER_EXPORT_DOORBELL] = &peer->doorbell,
		[NVME_PEER_EXPORT_STATUS] = &peer->status,
		[NVME_PEER_EXPORT_REQUEST] = &peer->request,
	};
	unsigned int what;
	int result = 0;

	for (what = 0; what < sizeof(mappings) / sizeof(mappings[0]) && !result; what++)
		result = nvmepeer_qp_map(peer->qp, what, mappings[what]);
	return result;
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
	result = nvmepeer_buf_import(ctrl, peer->memory.dmabuf_fd, 0, &buffer);
	if (result)
		return result;
	peer->handle = buffer.handle;
	peer->pages = calloc(count, sizeof(*peer->pages));
	if (!peer->pages)
		return -ENOMEM;
	result = nvmepeer_buf_table(ctrl, buffer.handle, 0, peer->pages, count);
	if (result < 0)
		return result;
	peer->data_address = (char *)peer->memory.address + layout->lists;
	peer->data.length = layout->data;
	peer->data.pages = (uintptr_t)(peer->pages + layout->lists / layout->page);
	return 0;
}

static int start_queue(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
		       struct nvmepeer_geometry *geometry,
		       struct nvmepeer_cpu_peer *peer)
{
	size_t bytes = round_up(nvmepeer_state_bytes(geometry), 128);
	int result;

	peer->state = aligned_alloc(128, bytes);
	if (!peer->state)
		return -ENOMEM;
	memset(peer->state, 0, bytes);
	geometry->state = (uintptr_t)peer->state;
	geometry->sq = (uintptr_t)peer->sq.address;
	geometry->cq = (uintptr_t)peer->cq.address;
	geometry->status = (uintptr_t)peer->status.address;
	geometry->request = (uintptr_t)peer->request.address;
	geometry->list_area = (uintptr_t)peer->memory.address;
	geometry->list_memory.pages = (uintptr_t)peer->pages;
	result = nvmepeer_qp_geometry(ctrl, peer->qp, ns,
				      NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST,
				      (uintptr_t)peer->doorbell.base, geometry);
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

	result = nvmepeer_info(ctrl, &info);
	if (result)
		return result;
	result = nvmepeer_qp_create(ctrl, &request, &peer->qp);
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
			   size_t data_bytes, struct nvmepeer_cpu_peer *peer)
{
	int result;

	memset(peer, 0, sizeof(*peer));
	peer->ctrl = ctrl;
	result = gathering_new(&peer->gathering);
	if (!result)
		result = open_parts(ctrl, ns, entries, data_bytes, peer);
	if (!result)
		return 0;
	if (result == -ENOMEM)
		failure_begin(CALL_CPU_PEER, result, ctrl->node);
	nvmepeer_cpu_peer_close(peer);
	return result;
}

static void unmap_if_mapped(struct nvmepeer_mapping *mapping)
{
	if (mapping->base)
		nvmepeer_unmap(mapping);
}

/*
 * The queue pair goes first: once its file is closed the controller has let go
 * of rings and data.
 */
void nvmepeer_cpu_peer_close(struct nvmepeer_cpu_peer *peer)
{
	unmap_if_mapped(&peer->doorbell);
	unmap_if_mapped(&peer->status);
	unmap_if_mapped(&peer->request);
	unmap_if_mapped(&peer->cq);
	unmap_if_mapped(&peer->sq);
	nvmepeer_qp_destroy(peer->qp);
	if (peer->handle)
		nvmepeer_buf_release(peer->ctrl, peer->handle);
	if (peer->memory.address)
		nvmepeer_hostmem_free(&peer->memory);
	gathering_free(peer->gathering);
	free(peer->pages);
	free(peer->state);
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
		result = nvmepeer_qp_info(peer->qp, &info);
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
