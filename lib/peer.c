// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * From the host library to the device library: geometry, and the CPU as peer.
 */
#include <stdlib.h>
#include <string.h>

#include <nvmepeer_peer.h>

#include "internal.h"

/*
 * Where a ring or the data does not lie beside the peer its accesses cross a
 * bus; where the completion ring does not lie beside the data, an entry may
 * overtake the data it announces.
 */
static uint32_t placement_flags(const struct nvme_peer_qp_info *info, uint32_t view)
{
	bool cpu = view & NVMEPEER_VIEW_CPU;
	bool sq_in_host = !(info->placement & NVME_PEER_PLACE_SQ_DEVICE);
	bool cq_in_host = !(info->placement & NVME_PEER_PLACE_CQ_DEVICE);
	bool data_in_host = view & NVMEPEER_VIEW_DATA_IN_HOST;
	uint32_t flags = 0;

	if (sq_in_host != cpu)
		flags |= NVMEPEER_SQ_REMOTE;
	if (cq_in_host != cpu)
		flags |= NVMEPEER_CQ_REMOTE;
	if (data_in_host != cpu)
		flags |= NVMEPEER_DATA_REMOTE;
	if (cq_in_host != data_in_host)
		flags |= NVMEPEER_CQ_APART_FROM_DATA;
	return flags;
}

/* Log2 of a power of two; what is none is left to the device library's check. */
static uint32_t log2_of(uint32_t value)
{
	return value ? (uint32_t)__builtin_ctz(value) : 0;
}

static int check(const struct nvmepeer_qp *qp, const struct nvmepeer_geometry *geometry)
{
	int status = nvmepeer_geometry_check(geometry);

	if (!status)
		return 0;
	failure_begin(CALL_GEOMETRY, -EINVAL, qp->name)->request.device_status = status;
	return -EINVAL;
}

int nvmepeer_qp_geometry(struct nvmepeer *ctrl, struct nvmepeer_qp *qp,
			 const struct nvmepeer_ns_info *ns, uint32_t view,
			 uint64_t doorbell_pages,
			 struct nvmepeer_geometry *geometry)
{
	struct nvme_peer_qp_info qp_info;
	struct nvme_peer_info info;
	int result;

	result = nvmepeer_info(ctrl, &info);
	if (!result)
		result = nvmepeer_qp_info(qp, &qp_info);
	if (result)
		return result;
	geometry->version = NVMEPEER_GEOMETRY_VERSION;
	geometry->flags = placement_flags(&qp_info, view);
	/* SGLS bits 1:0: SGLs for I/O commands (NVM command set 4.1.5.2). */
	if (info.sgls & 3)
		geometry->flags |= NVMEPEER_SGL;
	geometry->sq_doorbell = doorbell_pages + qp_info.doorbell_offset;
	geometry->cq_doorbell = geometry->sq_doorbell + qp_info.doorbell_stride;
	geometry->sq_entries = qp_info.sq_entries;
	geometry->cq_entries = qp_info.cq_entries;
	geometry->generation = qp_info.generation;
	geometry->qid = qp_info.qid;
	geometry->nsid = ns->nsid;
	geometry->lba_shift = log2_of(ns->block_size);
	geometry->page_shift = log2_of(info.page_size);
	geometry->max_transfer = info.max_transfer;
	geometry->metadata_bytes = ns->metadata_size;
	return check(qp, geometry);
}

/* ---- The CPU as the peer ------------------------------------------------ */

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
	};
	unsigned int what;
	int result = 0;

	for (what = 0; what < 4 && !result; what++)
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
	unmap_if_mapped(&peer->cq);
	unmap_if_mapped(&peer->sq);
	nvmepeer_qp_destroy(peer->qp);
	if (peer->handle)
		nvmepeer_buf_release(peer->ctrl, peer->handle);
	if (peer->memory.address)
		nvmepeer_hostmem_free(&peer->memory);
	free(peer->pages);
	free(peer->state);
}
