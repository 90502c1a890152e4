// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Geometry: builds the structure that initializes the device library from the kernel's
 * description of a queue pair.
 */
#include <stdio.h>

#include <nvmepeer_peer.h>

#include "internal.h"
#include "placeholders.h"

uint32_t nvmepeer_data_view(const struct nvme_peer_qp_info *qp_info,
			    const struct nvme_peer_pci_address *data)
{
	const struct nvme_peer_pci_address *cq = &qp_info->cq_pci_address;

	if (!data->valid)
		return NVMEPEER_VIEW_DATA_IN_HOST;
	if (cq->valid && (cq->domain != data->domain || cq->function != data->function))
		return NVMEPEER_VIEW_DATA_IN_DEVICE | NVMEPEER_VIEW_DATA_ELSEWHERE;
	return NVMEPEER_VIEW_DATA_IN_DEVICE;
}

/*
 * If the completion ring and the data are in different memory, a completion entry may
 * arrive before its data, and the peer has to read the data back over a bus.  A device can
 * do that with data in host memory only: of two devices it is unknown which one is the
 * peer.  The CPU can do it with data in devices only.  No peer can do both.
 */
static uint32_t data_flags(bool cq_in_host, uint32_t view)
{
	bool cpu = view & NVMEPEER_VIEW_CPU;
	bool in_host = view & NVMEPEER_VIEW_DATA_IN_HOST;
	bool in_device = view & NVMEPEER_VIEW_DATA_IN_DEVICE || !in_host;
	bool host_apart = in_host && !cq_in_host;
	bool device_apart = (in_device && cq_in_host) || view & NVMEPEER_VIEW_DATA_ELSEWHERE;

	if (host_apart && device_apart)
		return NVMEPEER_CQ_APART_FROM_DATA;
	if (host_apart || device_apart)
		return NVMEPEER_CQ_APART_FROM_DATA | (host_apart != cpu ? NVMEPEER_DATA_REMOTE : 0);
	return in_host != cpu ? NVMEPEER_DATA_REMOTE : 0;
}

/* Accesses of the peer to a ring in other memory than its own cross a bus. */
static uint32_t placement_flags(const struct nvme_peer_qp_info *info, uint32_t view)
{
	bool cpu = view & NVMEPEER_VIEW_CPU;
	bool sq_in_host = !info->sq_pci_address.valid;
	bool cq_in_host = !info->cq_pci_address.valid;
	uint32_t flags = data_flags(cq_in_host, view);

	/* The kernel writes the completion after it has read from the device with the data. */
	if (info->mode == NVME_PEER_MODE_MEDIATED)
		flags &= ~(uint32_t)NVMEPEER_CQ_APART_FROM_DATA;
	if (sq_in_host != cpu)
		flags |= NVMEPEER_SQ_REMOTE;
	if (cq_in_host != cpu)
		flags |= NVMEPEER_CQ_REMOTE;
	return flags;
}

/* Log2 of a power of two.  The check of the device library refuses other values. */
static uint32_t log2_of(uint32_t value)
{
	return value ? (uint32_t)__builtin_ctz(value) : 0;
}

static int check(const struct nvmepeer_geometry *geometry, uint32_t view)
{
	struct nvmepeer_geometry placed = view & NVMEPEER_VIEW_DESCRIPTORS ?
					  with_placeholders(geometry) : *geometry;
	int status = nvmepeer_geometry_check(&placed);
	char name[NODE_NAME_MAX];
	struct failure failure;

	if (!status)
		return 0;
	snprintf(name, sizeof(name), "queue pair %u", geometry->qid);
	failure_init(&failure, CALL_GEOMETRY, -EINVAL, name);
	failure.request.device_status = status;
	return failure_record(&failure);
}

/* The commands of the device library transfer data only. */
static int refuse_metadata(const struct nvmepeer_ns_info *ns)
{
	char name[NODE_NAME_MAX];

	snprintf(name, sizeof(name), "namespace %u", ns->nsid);
	return failure_set(CALL_GEOMETRY, -EOPNOTSUPP, name);
}

/* Check the sizes of all structures; the first three carry theirs. */
static int check_sizes(const struct nvme_peer_info *info,
		       const struct nvme_peer_qp_info *qp_info,
		       const struct nvmepeer_ns_info *ns, size_t size)
{
	static const char subject[] = "geometry";
	int result = struct_size_check(CALL_GEOMETRY, subject, info->size,
				       SIZE_THROUGH(struct nvme_peer_info, reserved));

	if (!result)
		result = struct_size_check(CALL_GEOMETRY, subject, qp_info->size,
					   SIZE_THROUGH(struct nvme_peer_qp_info, cpu_doorbell_writes));
	if (!result)
		result = struct_size_check(CALL_GEOMETRY, subject, ns->size,
					   SIZE_THROUGH(struct nvmepeer_ns_info, blocks));
	if (!result)
		result = struct_size_check(CALL_GEOMETRY, subject, size,
					   SIZE_THROUGH(struct nvmepeer_geometry, reserve));
	return result;
}

static void fill_in(const struct nvme_peer_info *info, const struct nvme_peer_qp_info *qp_info,
		    const struct nvmepeer_ns_info *ns, uint32_t view, uint64_t doorbell_pages,
		    struct nvmepeer_geometry *geometry)
{
	geometry->version = NVMEPEER_GEOMETRY_VERSION;
	geometry->flags = (geometry->flags & NVMEPEER_ONE_RANGE) | placement_flags(qp_info, view);
	/* SGLS bits 1:0: SGLs for I/O commands; bit 16: bit buckets (base specification 5.1.13.2.1). */
	if (info->sgls & 3)
		geometry->flags |= NVMEPEER_SGL;
	if ((info->sgls & 3) && (info->sgls & 1u << 16))
		geometry->flags |= NVMEPEER_SGL_BIT_BUCKET;
	geometry->sq_doorbell = doorbell_pages + qp_info->doorbell_offset;
	geometry->cq_doorbell = geometry->sq_doorbell + qp_info->doorbell_stride;
	geometry->sq_entries = qp_info->sq_entries;
	geometry->cq_entries = qp_info->cq_entries;
	/* After a re-arm the losses are those of now: a queue opened before it must see a loss. */
	geometry->generation = qp_info->losses - (qp_info->state == NVME_PEER_QP_QUIESCED);
	geometry->qid = qp_info->qid;
	geometry->nsid = ns->nsid;
	geometry->lba_shift = log2_of(ns->block_size);
	geometry->page_shift = log2_of(info->page_size);
	geometry->max_transfer = info->max_transfer;
	geometry->metadata_bytes = ns->metadata_size;
}

int nvmepeer_geometry_build(const struct nvme_peer_info *info,
			    const struct nvme_peer_qp_info *qp_info,
			    const struct nvmepeer_ns_info *ns, uint32_t view,
			    uint64_t doorbell_pages,
			    struct nvmepeer_geometry *geometry, size_t size)
{
	struct nvmepeer_geometry built;
	int result = check_sizes(info, qp_info, ns, size);

	if (result)
		return result;
	if (ns->metadata_size)
		return refuse_metadata(ns);
	if (!struct_tail_is_zero(geometry, size, sizeof(built)))
		return failure_set(CALL_GEOMETRY, -E2BIG, "geometry");
	struct_copy(&built, sizeof(built), geometry, size);
	fill_in(info, qp_info, ns, view, doorbell_pages, &built);
	result = check(&built, view);
	if (!result)
		struct_copy(geometry, size, &built, sizeof(built));
	return result;
}

int nvmepeer_qp_geometry(struct nvmepeer *ctrl, struct nvmepeer_qp *qp,
			 const struct nvmepeer_ns_info *ns, uint32_t view,
			 uint64_t doorbell_pages,
			 struct nvmepeer_geometry *geometry, size_t size)
{
	struct nvme_peer_qp_info qp_info;
	struct nvme_peer_info info;
	int result;

	result = nvmepeer_info(ctrl, &info, sizeof(info));
	if (!result)
		result = nvmepeer_qp_info(qp, &qp_info, sizeof(qp_info));
	if (result)
		return result;
	return nvmepeer_geometry_build(&info, &qp_info, ns, view, doorbell_pages, geometry, size);
}
