// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU peer of the user library in the mode of NP_MODE. The linker takes these functions for those
 * of the library (--wrap), which opens CPU peers in direct mode: programs that use one are the same in
 * all modes, and so is what the library does once it is open.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu_peer.h"
#include "tenant.h"

int __real_nvmepeer_qp_create(struct nvmepeer *ctrl, struct nvme_peer_qp_create *request, size_t size,
			      struct nvmepeer_qp **qp);
int __wrap_nvmepeer_qp_create(struct nvmepeer *ctrl, struct nvme_peer_qp_create *request, size_t size,
			      struct nvmepeer_qp **qp);
int __real_nvmepeer_cpu_peer_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns, uint32_t entries,
				  size_t data_bytes, struct nvmepeer_cpu_peer **peer);
int __wrap_nvmepeer_cpu_peer_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns, uint32_t entries,
				  size_t data_bytes, struct nvmepeer_cpu_peer **peer);

int __wrap_nvmepeer_qp_create(struct nvmepeer *ctrl, struct nvme_peer_qp_create *request, size_t size,
			      struct nvmepeer_qp **qp)
{
	request->mode = np_qp_mode();
	return __real_nvmepeer_qp_create(ctrl, request, size, qp);
}

/* One range of a buffer, and a window in place of the namespace. */
static int get_memory(struct nvmepeer_cpu_peer *peer, size_t bytes)
{
	struct nvme_peer_buf_add buffer = { 0 };
	int ret = nvmepeer_buf_alloc(peer->ctrl, bytes, &peer->memory);

	if (ret)
		return ret;
	buffer.dmabuf_fd = nvmepeer_hostmem_fd(peer->memory);
	ret = nvmepeer_buf_add(peer->qp, &buffer, sizeof(buffer));
	peer->data_address = nvmepeer_hostmem_address(peer->memory);
	peer->data.length = buffer.length;
	peer->data.dma = NVME_PEER_HANDLE_ADDRESS(buffer.slot, 0);
	return ret;
}

static uint64_t map(struct nvmepeer_cpu_peer *peer, enum nvme_peer_export what, int *ret)
{
	if (!*ret)
		*ret = nvmepeer_qp_map(peer->qp, what, &peer->mappings[what]);
	return *ret ? 0 : (uintptr_t)nvmepeer_mapping_address(peer->mappings[what]);
}

static int build(struct nvmepeer_cpu_peer *peer, const struct nvmepeer_ns_info *ns,
		 struct nvmepeer_geometry *geometry)
{
	struct nvme_peer_qp_info qp_info;
	struct nvme_peer_info info;
	int ret = nvmepeer_info(peer->ctrl, &info, sizeof(info)) ?:
		  nvmepeer_qp_info(peer->qp, &qp_info, sizeof(qp_info)) ?:
		  np_tenant_most(nvmepeer_qp_fd(peer->qp), &info.max_transfer);
	const struct nvmepeer_mapping *doorbells = peer->mappings[NVME_PEER_EXPORT_DOORBELL];

	info.sgls = 1;
	return ret ?: nvmepeer_geometry_build(&info, &qp_info, ns,
					      NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST,
					      (uintptr_t)nvmepeer_mapping_base(doorbells), geometry,
					      sizeof(*geometry));
}

static int start_queue(struct nvmepeer_cpu_peer *peer, const struct nvmepeer_ns_info *ns, uint32_t entries)
{
	struct nvmepeer_geometry geometry = { .sq_entries = entries, .flags = NVMEPEER_ONE_RANGE };
	size_t bytes = (nvmepeer_state_bytes(&geometry) + 127) / 128 * 128;
	int ret = 0;

	peer->state = aligned_alloc(128, bytes);
	if (!peer->state)
		return -ENOMEM;
	memset(peer->state, 0, bytes);
	geometry.state = (uintptr_t)peer->state;
	geometry.sq = map(peer, NVME_PEER_EXPORT_SQ, &ret);
	geometry.cq = map(peer, NVME_PEER_EXPORT_CQ, &ret);
	geometry.status = map(peer, NVME_PEER_EXPORT_STATUS, &ret);
	geometry.control = map(peer, NVME_PEER_EXPORT_CONTROL, &ret);
	map(peer, NVME_PEER_EXPORT_DOORBELL, &ret);
	ret = ret ?: build(peer, ns, &geometry);
	if (!ret)
		nvmepeer_queue_init(&peer->queue, &geometry);
	return ret;
}

static int open_as_tenant(struct nvmepeer_cpu_peer *peer, const struct nvmepeer_ns_info *ns, uint32_t entries,
			  size_t data_bytes)
{
	struct nvme_peer_qp_create request = { .sq_entries = entries };
	struct nvmepeer_ns_info window = *ns;
	struct np_tenant tenant = { 0 };
	int ret = nvmepeer_qp_create(peer->ctrl, &request, sizeof(request), &peer->qp);

	ret = ret ?: np_tenant_open(&tenant, nvmepeer_qp_fd(peer->qp), peer->ctrl->fd) ?:
	      get_memory(peer, data_bytes);
	window.nsid = tenant.window;
	return ret ?: start_queue(peer, &window, entries);
}

int __wrap_nvmepeer_cpu_peer_open(struct nvmepeer *ctrl, const struct nvmepeer_ns_info *ns, uint32_t entries,
				  size_t data_bytes, struct nvmepeer_cpu_peer **peer)
{
	struct nvmepeer_cpu_peer *opened;
	int ret;

	if (!np_as_tenant())
		return __real_nvmepeer_cpu_peer_open(ctrl, ns, entries, data_bytes, peer);
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->ctrl = ctrl;
	pthread_rwlock_init(&opened->in_use, NULL);
	ret = open_as_tenant(opened, ns, entries, data_bytes);
	if (ret)
		nvmepeer_cpu_peer_close(opened);
	else
		*peer = opened;
	return ret;
}
