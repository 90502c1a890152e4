// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Geometry: from what the kernel says of a queue pair to what the device
 * library starts from.
 */
#include <stdio.h>

#include <nvmepeer_peer.h>

#include "internal.h"

/*
 * Where a ring or the data does not lie beside the peer its accesses cross a bus; where
 * the completion ring does not lie beside the data, an entry may overtake the
 * data it announces.
 */
static uint32_t placement_flags(const struct nvme_peer_qp_info *info, uint32_t view)
{
	bool cpu = view & NVMEPEER_VIEW_CPU;
	bool sq_in_host = !info->sq_pci_address.valid;
	bool cq_in_host = !info->cq_pci_address.valid;
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

static int check(const struct nvmepeer_geometry *geometry)
{
	int status = nvmepeer_geometry_check(geometry);
	char name[NODE_NAME_MAX];
	struct failure failure;

	if (!status)
		return 0;
	snprintf(name, sizeof(name), "queue pair %u", geometry->qid);
	failure_init(&failure, CALL_GEOMETRY, -EINVAL, name);
	failure.request.device_status = status;
	return failure_note(&failure);
}

/* The device library's commands have room for data only. */
static int refuse_metadata(const struct nvmepeer_ns_info *ns)
{
	char name[NODE_NAME_MAX];

	snprintf(name, sizeof(name), "namespace %u", ns->nsid);
	return failure_tell(CALL_GEOMETRY, -EOPNOTSUPP, name);
}

/* What the caller has of each structure; the first three are told by themselves. */
static int check_sizes(const struct nvme_peer_info *info,
		       const struct nvme_peer_qp_info *qp_info,
		       const struct nvmepeer_ns_info *ns, size_t size)
{
	static const char subject[] = "geometry";
	int result = sized_check(CALL_GEOMETRY, subject, info->size,
				 BYTES_TO(struct nvme_peer_info, cmb_size));

	if (!result)
		result = sized_check(CALL_GEOMETRY, subject, qp_info->size,
				     BYTES_TO(struct nvme_peer_qp_info, cpu_doorbell_writes));
	if (!result)
		result = sized_check(CALL_GEOMETRY, subject, ns->size,
				     BYTES_TO(struct nvmepeer_ns_info, blocks));
	if (!result)
		result = sized_check(CALL_GEOMETRY, subject, size,
				     BYTES_TO(struct nvmepeer_geometry, reserved));
	return result;
}

static void fill_in(const struct nvme_peer_info *info, const struct nvme_peer_qp_info *qp_info,
		    const struct nvmepeer_ns_info *ns, uint32_t view, uint64_t doorbell_pages,
		    struct nvmepeer_geometry *geometry)
{
	geometry->version = NVMEPEER_GEOMETRY_VERSION;
	geometry->flags = placement_flags(qp_info, view);
	/* SGLS bits 1:0: SGLs for I/O commands (NVM command set 4.1.5.2). */
	if (info->sgls & 3)
		geometry->flags |= NVMEPEER_SGL;
	geometry->sq_doorbell = doorbell_pages + qp_info->doorbell_offset;
	geometry->cq_doorbell = geometry->sq_doorbell + qp_info->doorbell_stride;
	geometry->sq_entries = qp_info->sq_entries;
	geometry->cq_entries = qp_info->cq_entries;
	geometry->generation = qp_info->generation;
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
	if (!sized_is_known(geometry, size, sizeof(built)))
		return failure_tell(CALL_GEOMETRY, -E2BIG, "geometry");
	sized_copy(&built, sizeof(built), geometry, size);
	fill_in(info, qp_info, ns, view, doorbell_pages, &built);
	result = check(&built);
	if (!result)
		sized_copy(geometry, size, &built, sizeof(built));
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
