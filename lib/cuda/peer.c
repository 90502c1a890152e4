// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * peer.c: a queue pair whose rings, book-keeping, PRP lists and data lie in the
 * memory of a GPU, made ready for its kernels.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { GPU_PAGE = 64 << 10, LIST_BYTES = 4096, REGISTERED_DOORBELL = 1, REGISTERED_STATUS = 2 };

/* Where the parts lie in one allocation; offsets in bytes. */
struct layout {
	uint64_t sq, cq, lists, state, data, end;
};

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Takes over the message of the host library. */
static int explained(int error)
{
	struct nvmepeer_explanation explanation;

	if (!nvmepeer_explain(&explanation))
		return cuda_fail(error, "%s", strerror(-error));
	return cuda_fail(error, "%s: %s. %s %s", explanation.call, explanation.what,
			 explanation.limit, explanation.help);
}

static struct layout layout_of(const struct nvmepeer_geometry *geometry, size_t data_bytes)
{
	uint64_t cids = nvmepeer_cids(geometry);
	struct layout layout;

	layout.sq = 0;
	layout.cq = round_up(64 * (uint64_t)geometry->sq_entries, GPU_PAGE);
	layout.lists = layout.cq + round_up(16 * (uint64_t)geometry->cq_entries, GPU_PAGE);
	layout.state = layout.lists + round_up(cids * geometry->list_bytes, GPU_PAGE);
	layout.data = layout.state + round_up(nvmepeer_state_bytes(geometry), GPU_PAGE);
	layout.end = layout.data + round_up(data_bytes, GPU_PAGE);
	return layout;
}

static int import_memory(struct nvmepeer_cuda_peer *peer, uint64_t bytes)
{
	struct nvme_peer_buf_import buffer;
	int fd, error;

	error = nvmepeer_cuda_export(peer->cuda, peer->memory, bytes, &fd);
	if (error)
		return error;
	error = nvmepeer_buf_import(peer->ctrl, fd, NVME_PEER_BUF_REQUIRE_DEVICE, &buffer);
	close(fd);
	if (error)
		return explained(error);
	peer->handle = buffer.handle;
	return 0;
}

static int create_qp(struct nvmepeer_cuda_peer *peer, const struct layout *layout,
		     uint32_t entries)
{
	struct nvme_peer_qp_create request = {
		.mode = NVME_PEER_MODE_DIRECT,
		.sq_entries = entries,
		.cq_entries = entries,
		.sq_handle = peer->handle,
		.cq_handle = peer->handle,
		.sq_offset = layout->sq,
		.cq_offset = layout->cq,
	};
	int error = nvmepeer_qp_create(peer->ctrl, &request, &peer->qp);

	return error ? explained(error) : 0;
}

/* Maps doorbells and status page here and registers them with the GPU. */
static int map_registers(struct nvmepeer_cuda_peer *peer, uint64_t *doorbell, uint64_t *status)
{
	int error = nvmepeer_qp_map(peer->qp, NVME_PEER_EXPORT_DOORBELL, &peer->doorbell);

	if (!error)
		error = nvmepeer_qp_map(peer->qp, NVME_PEER_EXPORT_STATUS, &peer->status);
	if (error)
		return explained(error);
	error = nvmepeer_cuda_register(peer->cuda, NVMEPEER_CUDA_REGISTERS, peer->doorbell.base,
				       peer->doorbell.mapped, doorbell);
	if (error)
		return error;
	peer->registered |= REGISTERED_DOORBELL;
	error = nvmepeer_cuda_register(peer->cuda, NVMEPEER_CUDA_READ_ONLY, peer->status.base,
				       peer->status.mapped, status);
	if (error)
		return error;
	peer->registered |= REGISTERED_STATUS;
	return 0;
}

/*
 * Addresses for the controller of @bytes at @offset of the GPU memory: one
 * number if they are in a row, else a table in GPU memory from @table on.
 */
static int describe(struct nvmepeer_cuda_peer *peer, uint64_t offset, uint64_t bytes,
		    uint64_t table, uint32_t page_size, struct nvmepeer_buffer *buffer)
{
	uint64_t count = (bytes + page_size - 1) / page_size;
	uint64_t *addresses;
	int error;

	buffer->length = bytes;
	buffer->pages = 0;
	if (!nvmepeer_buf_contiguous(peer->ctrl, peer->handle, offset, bytes, &buffer->dma))
		return 0;
	addresses = calloc(count, sizeof(*addresses));
	if (!addresses)
		return cuda_fail(-ENOMEM, "out of memory");
	error = nvmepeer_buf_table(peer->ctrl, peer->handle, offset, addresses, (uint32_t)count);
	if (error != (int)count) {
		free(addresses);
		return error < 0 ? explained(error) : cuda_fail(-ERANGE, "buffer ends early");
	}
	error = nvmepeer_cuda_upload(peer->cuda, table, addresses, 8 * count);
	free(addresses);
	buffer->dma = 0;
	buffer->pages = table;
	return error;
}

/* The state holds no address, so it is made here and copied. */
static int upload_state(struct nvmepeer_cuda_peer *peer, const struct nvmepeer_geometry *geometry)
{
	struct nvmepeer_geometry here = *geometry;
	uint64_t bytes = nvmepeer_state_bytes(geometry);
	void *state = aligned_alloc(128, round_up(bytes, 128));
	struct nvmepeer_queue queue;
	int error;

	if (!state)
		return cuda_fail(-ENOMEM, "out of memory");
	memset(state, 0, bytes);
	here.state = (uintptr_t)state;
	if (nvmepeer_queue_open(&queue, &here)) {
		error = cuda_fail(-EINVAL, "the queue pair has a geometry the device library refuses");
	} else {
		nvmepeer_queue_reset(&queue);
		error = nvmepeer_cuda_upload(peer->cuda, geometry->state, state, bytes);
	}
	free(state);
	return error;
}

/* Fills the handle once memory, queue pair and registers are there. */
static int finish(struct nvmepeer_cuda_peer *peer, const struct nvmepeer_ns_info *ns,
		  const struct layout *layout, size_t data_bytes, uint32_t page_size,
		  uint64_t doorbell, struct nvmepeer_geometry *geometry)
{
	uint64_t cids = nvmepeer_cids(geometry);
	uint64_t list_table = peer->pages;
	uint64_t data_table = list_table + 8 * cids * (LIST_BYTES / 512);
	int error;

	geometry->sq = peer->memory + layout->sq;
	geometry->cq = peer->memory + layout->cq;
	geometry->list_area = peer->memory + layout->lists;
	geometry->state = peer->memory + layout->state;
	peer->data_address = peer->memory + layout->data;
	error = describe(peer, layout->lists, cids * LIST_BYTES, list_table, page_size,
			 &geometry->list_memory);
	if (!error)
		error = describe(peer, layout->data, data_bytes, data_table, page_size, &peer->data);
	if (error)
		return error;
	error = nvmepeer_qp_geometry(peer->ctrl, peer->qp, ns, 0, doorbell, geometry);
	if (error)
		return explained(error);
	if (nvmepeer_queue_open(&peer->queue, geometry))
		return cuda_fail(-EINVAL, "the device library refuses the geometry");
	return upload_state(peer, geometry);
}

static int open_parts(struct nvmepeer_cuda_peer *peer, const struct nvmepeer_ns_info *ns,
		      uint32_t entries, size_t data_bytes)
{
	struct nvmepeer_geometry geometry = { .sq_entries = entries, .cq_entries = entries,
					      .list_bytes = LIST_BYTES };
	struct layout layout = layout_of(&geometry, data_bytes);
	struct nvme_peer_info info;
	uint64_t doorbell = 0;
	int error = nvmepeer_info(peer->ctrl, &info);

	if (error)
		return explained(error);
	error = nvmepeer_cuda_alloc(peer->cuda, layout.end, &peer->memory);
	if (!error)
		error = nvmepeer_cuda_alloc(peer->cuda, 8 * (uint64_t)nvmepeer_cids(&geometry) *
					    (LIST_BYTES / 512) + data_bytes / 512 + 4096,
					    &peer->pages);
	if (!error)
		error = import_memory(peer, layout.end);
	if (!error)
		error = create_qp(peer, &layout, entries);
	if (!error)
		error = map_registers(peer, &doorbell, &geometry.status);
	if (error)
		return error;
	geometry.status += (uint64_t)((char *)peer->status.address - (char *)peer->status.base);
	return finish(peer, ns, &layout, data_bytes, info.page_size, doorbell, &geometry);
}

int nvmepeer_cuda_peer_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns,
			    struct nvmepeer_cuda *cuda, uint32_t entries, size_t data_bytes,
			    struct nvmepeer_cuda_peer *peer)
{
	int error;

	memset(peer, 0, sizeof(*peer));
	peer->ctrl = ctrl;
	peer->cuda = cuda;
	error = open_parts(peer, ns, entries, data_bytes);
	if (error)
		nvmepeer_cuda_peer_close(peer);
	return error;
}

/*
 * The queue pair goes before the memory it lies in.  The GPU keeps its mapping
 * of the doorbells until they are unregistered; no kernel may run by now.
 */
void nvmepeer_cuda_peer_close(struct nvmepeer_cuda_peer *peer)
{
	if (peer->registered & REGISTERED_STATUS)
		nvmepeer_cuda_unregister(peer->cuda, peer->status.base);
	if (peer->registered & REGISTERED_DOORBELL)
		nvmepeer_cuda_unregister(peer->cuda, peer->doorbell.base);
	if (peer->status.base)
		nvmepeer_unmap(&peer->status);
	if (peer->doorbell.base)
		nvmepeer_unmap(&peer->doorbell);
	nvmepeer_qp_destroy(peer->qp);
	if (peer->handle)
		nvmepeer_buf_release(peer->ctrl, peer->handle);
	if (peer->memory)
		nvmepeer_cuda_free(peer->cuda, peer->memory);
	if (peer->pages)
		nvmepeer_cuda_free(peer->cuda, peer->pages);
}
