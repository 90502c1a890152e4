// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The CPU as the peer: a queue pair whose rings, state and data lie in this process.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_peer.h"
#include "recovery.h"

/**
 * struct layout - layout of the CPU peer's memory, in bytes
 * @page: controller page
 * @lists: all PRP lists, at the start
 * @data: data, after the lists
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

/* A PRP list has an entry for every page of the largest transfer except the first. */
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

/*
 * Release the buffers of closed CPU peers that were in use then.  While any queue pair
 * of the controller's node is active the driver keeps buffers whose addresses were
 * read.  No failure is recorded: the caller's call does not fail for it.
 */
static void release_left(struct nvmepeer *ctrl)
{
	struct left_buffer **at = &ctrl->left, *left;

	pthread_mutex_lock(&ctrl->lock);
	while ((left = *at)) {
		struct nvme_peer_buf_release request = {
			.size = sizeof(request),
			.handle = left->handle,
		};

		if (peer_ioctl(ctrl->fd, NVME_PEER_BUF_RELEASE, &request) == -EBUSY) {
			at = &left->next;
			continue;
		}
		*at = left->next;
		free(left);
	}
	pthread_mutex_unlock(&ctrl->lock);
}

/* Release the peer's buffer, or leave it to a later call. */
static void release_memory(struct nvmepeer_cpu_peer *peer)
{
	struct nvmepeer *ctrl = peer->ctrl;

	if (peer->import && peer->import->handle) {
		pthread_mutex_lock(&ctrl->lock);
		peer->import->next = ctrl->left;
		ctrl->left = peer->import;
		pthread_mutex_unlock(&ctrl->lock);
	} else {
		free(peer->import);
	}
	release_left(ctrl);
}

/* Allocate and import memory, and read the DMA address of each controller page. */
static int get_memory(struct nvmepeer *ctrl, const struct layout *layout,
		      struct nvmepeer_cpu_peer *peer)
{
	uint32_t count = (uint32_t)((layout->lists + layout->data) / layout->page);
	struct nvme_peer_buf_import buffer;
	int result;

	peer->import = calloc(1, sizeof(*peer->import));
	if (!peer->import)
		return -ENOMEM;
	result = nvmepeer_buf_alloc(ctrl, layout->lists + layout->data, &peer->memory);
	if (result)
		return result;
	release_left(ctrl);
	result = nvmepeer_buf_import(ctrl, nvmepeer_hostmem_fd(peer->memory), 0, &buffer,
				     sizeof(buffer));
	if (result)
		return result;
	peer->import->handle = buffer.handle;
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
	geometry->control = mapped_at(peer, NVME_PEER_EXPORT_CONTROL);
	geometry->list_area = (uintptr_t)nvmepeer_hostmem_address(peer->memory);
	geometry->list_memory.pages = (uintptr_t)peer->pages;
	doorbells = nvmepeer_mapping_base(peer->mappings[NVME_PEER_EXPORT_DOORBELL]);
	result = nvmepeer_qp_geometry(ctrl, peer->qp, ns,
				      NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST,
				      (uintptr_t)doorbells, geometry, sizeof(*geometry));
	/* nvmepeer_qp_geometry() has checked what nvmepeer_queue_open() would check. */
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

/* A recovery that waits for the lock keeps new calls out. */
static void init_lock(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attributes;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
}

int nvmepeer_cpu_peer_open(struct nvmepeer *ctrl,
			   const struct nvmepeer_ns_info *ns, uint32_t entries,
			   size_t data_bytes, struct nvmepeer_cpu_peer **peer)
{
	struct nvmepeer_cpu_peer *opened = calloc(1, sizeof(*opened));
	int result = -ENOMEM;

	if (opened) {
		opened->ctrl = ctrl;
		init_lock(&opened->in_use);
		result = open_parts(ctrl, ns, entries, data_bytes, opened);
	}
	if (!result) {
		*peer = opened;
		return 0;
	}
	if (result == -ENOMEM)
		failure_set(CALL_CPU_PEER, result, ctrl->node);
	nvmepeer_cpu_peer_close(opened);
	return result;
}

/*
 * Destroy the queue pair first: once its file is closed, the controller no longer
 * accesses rings and data.
 */
void nvmepeer_cpu_peer_close(struct nvmepeer_cpu_peer *peer)
{
	unsigned int what;

	if (!peer)
		return;
	for (what = 0; what < PEER_MAPPINGS; what++)
		nvmepeer_unmap(peer->mappings[what]);
	nvmepeer_qp_destroy(peer->qp);
	release_memory(peer);
	nvmepeer_hostmem_free(peer->memory);
	pthread_rwlock_destroy(&peer->in_use);
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

/*
 * Returns 1 if the queue pair was re-armed after @losses, 0 if it is live and has lost
 * nothing.
 */
static int rearm_when_ready(struct nvmepeer_cpu_peer *peer, int64_t end, uint32_t *losses)
{
	struct nvme_peer_control *control =
		nvmepeer_mapping_address(peer->mappings[NVME_PEER_EXPORT_CONTROL]);
	struct nvme_peer_qp_info info;
	uint32_t generation;
	int result;

	for (;;) {
		result = nvmepeer_qp_info(peer->qp, &info, sizeof(info));
		if (result)
			return result;
		if (info.state == NVME_PEER_QP_LIVE &&
		    info.losses == peer->queue.state->generation) {
			if (!is_quiescing(control, info.losses)) {
				if (is_usable(peer->queue.state, info.losses))
					return 0;
				request_quiesce(control, info.losses);
			}
		} else {
			*losses = info.losses;
			result = nvmepeer_qp_rearm(peer->qp, info.losses, &generation);
			if (result != -EAGAIN && result != -ESTALE)
				return result ? result : 1;
		}
		if (now_ms() >= end)
			return -ETIMEDOUT;
		/* Do not wait for the file: its events are for the caller to read. */
		poll(NULL, 0, 2);
	}
}

int nvmepeer_cpu_peer_recover(struct nvmepeer_cpu_peer *peer, int timeout_ms)
{
	uint32_t losses = 0;
	int result = rearm_when_ready(peer, now_ms() + timeout_ms, &losses);

	if (result <= 0)
		return result;
	nvmepeer_queue_rearm(&peer->queue, losses);
	return 0;
}
