// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Queue pairs: create, look at, export, map.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

/* The limits that refuse a queue pair change with use: ask for them at once. */
static int create_failed(struct nvmepeer *ctrl, int result,
			 const struct nvme_peer_qp_create *request)
{
	struct failure failure;

	failure_init(&failure, CALL_QP_CREATE, result, ctrl->node);
	failure.request.create = *request;
	if (peer_info(ctrl->fd, &failure.info) < 0)
		failure.info.size = 0;
	return failure_note(&failure);
}

int nvmepeer_qp_create(struct nvmepeer *ctrl,
		       struct nvme_peer_qp_create *request, size_t size,
		       struct nvmepeer_qp **qp)
{
	struct nvme_peer_qp_create asked;
	struct nvmepeer_qp *created;
	int result = sized_request(CALL_QP_CREATE, ctrl->node, request, size,
				   BYTES_TO(struct nvme_peer_qp_create, reserved));

	if (result)
		return result;
	if (!request->cq_entries)
		request->cq_entries = request->sq_entries;
	sized_copy(&asked, sizeof(asked), request, size);
	created = calloc(1, sizeof(*created));
	if (!created)
		return create_failed(ctrl, -ENOMEM, &asked);
	result = peer_ioctl(ctrl->fd, NVME_PEER_QP_CREATE, request);
	if (result < 0) {
		free(created);
		return create_failed(ctrl, result, &asked);
	}
	created->fd = request->qp_fd;
	request->qp_fd = -1;
	snprintf(created->name, sizeof(created->name), "queue pair %u",
		 request->qid);
	*qp = created;
	return 0;
}

static int get_info(int fd, struct nvme_peer_qp_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return peer_ioctl(fd, NVME_PEER_QP_INFO, info);
}

int nvmepeer_qp_from_fd(int fd, struct nvmepeer_qp **qp)
{
	struct nvme_peer_qp_info info;
	struct nvmepeer_qp *taken;
	int result;

	result = get_info(fd, &info);
	if (result < 0)
		goto failed;
	result = -ENOMEM;
	taken = calloc(1, sizeof(*taken));
	if (!taken)
		goto failed;
	taken->fd = fd;
	snprintf(taken->name, sizeof(taken->name), "queue pair %u", info.qid);
	*qp = taken;
	return 0;

failed:
	return failure_tell(CALL_QP_FROM_FD, result, "file descriptor");
}

void nvmepeer_qp_destroy(struct nvmepeer_qp *qp)
{
	if (!qp)
		return;
	close(qp->fd);
	free(qp);
}

int nvmepeer_qp_fd(const struct nvmepeer_qp *qp)
{
	return qp->fd;
}

int nvmepeer_qp_info(struct nvmepeer_qp *qp, struct nvme_peer_qp_info *info, size_t size)
{
	int result = sized_answer(CALL_QP_INFO, qp->name, info, size,
				  BYTES_TO(struct nvme_peer_qp_info, cpu_doorbell_writes));

	if (result)
		return result;
	result = peer_ioctl(qp->fd, NVME_PEER_QP_INFO, info);
	return result < 0 ? failure_tell(CALL_QP_INFO, result, qp->name) : result;
}

int nvmepeer_qp_rearm(struct nvmepeer_qp *qp, uint32_t losses, uint32_t *generation)
{
	struct nvme_peer_qp_rearm request = { .size = sizeof(request), .losses = losses };
	struct nvme_peer_qp_info info;
	int result = peer_ioctl(qp->fd, NVME_PEER_QP_REARM, &request);

	if (result >= 0)
		result = get_info(qp->fd, &info);
	if (result < 0)
		return failure_tell(CALL_QP_REARM, result, qp->name);
	*generation = info.generation;
	return 0;
}

static int export_failed(struct nvmepeer_qp *qp, enum call call, int result,
			 const struct nvme_peer_qp_export *request)
{
	struct failure failure;

	failure_init(&failure, call, result, qp->name);
	failure.request.export = *request;
	failure_note(&failure);
	return result;
}

static int export(struct nvmepeer_qp *qp, enum nvme_peer_export what, uint32_t flags,
		  struct nvmepeer_export *exported)
{
	const struct nvme_peer_qp_export asked = {
		.size = sizeof(asked),
		.flags = flags,
		.what = what,
	};
	struct nvme_peer_qp_export request = asked;
	int result;

	result = peer_ioctl(qp->fd, NVME_PEER_QP_EXPORT, &request);
	if (result < 0)
		return export_failed(qp, CALL_QP_EXPORT, result, &asked);
	exported->fd = request.fd;
	exported->offset = request.offset;
	exported->length = request.length;
	return 0;
}

int nvmepeer_qp_export(struct nvmepeer_qp *qp, enum nvme_peer_export what,
		       uint32_t flags, struct nvmepeer_export *exported, size_t size)
{
	struct nvmepeer_export made;
	int result = sized_check(CALL_QP_EXPORT, qp->name, size,
				 BYTES_TO(struct nvmepeer_export, length));

	if (!result)
		result = export(qp, what, flags, &made);
	if (!result)
		sized_copy(exported, size, &made, sizeof(made));
	return result;
}

/**
 * struct nvmepeer_mapping - part of a queue pair in this process' memory
 * @base: start of the mapping, page aligned
 * @mapped: bytes mapped at @base
 * @address: the object itself
 * @length: bytes of the object
 */
struct nvmepeer_mapping {
	void *base;
	size_t mapped;
	void *address;
	size_t length;
};

/*
 * A store to the status page would be taken for the kernel's word.  A load of a
 * doorbell has no meaning either, but no page table can allow stores alone, and
 * drivers of GPUs register what their process may read and write.
 */
static int protection(enum nvme_peer_export what)
{
	return what == NVME_PEER_EXPORT_STATUS ? PROT_READ : PROT_READ | PROT_WRITE;
}

static int map(struct nvmepeer_qp *qp, enum nvme_peer_export what,
	       struct nvmepeer_mapping *mapping)
{
	const struct nvme_peer_qp_export request = { .what = what };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct nvmepeer_export exported;
	int result;

	result = export(qp, what, 0, &exported);
	if (result < 0)
		return result;
	mapping->mapped = (exported.offset + exported.length + page - 1) / page * page;
	mapping->base = mmap(NULL, mapping->mapped, protection(what), MAP_SHARED, exported.fd, 0);
	result = mapping->base == MAP_FAILED ? -errno : 0;
	/* The mapping holds the dma-buf. */
	close(exported.fd);
	if (result < 0)
		return export_failed(qp, CALL_QP_MAP, result, &request);
	mapping->address = (char *)mapping->base + exported.offset;
	mapping->length = exported.length;
	return 0;
}

int nvmepeer_qp_map(struct nvmepeer_qp *qp, enum nvme_peer_export what,
		    struct nvmepeer_mapping **mapping)
{
	const struct nvme_peer_qp_export request = { .what = what };
	struct nvmepeer_mapping *made = calloc(1, sizeof(*made));
	int result;

	if (!made)
		return export_failed(qp, CALL_QP_MAP, -ENOMEM, &request);
	result = map(qp, what, made);
	if (result) {
		free(made);
		return result;
	}
	*mapping = made;
	return 0;
}

void nvmepeer_unmap(struct nvmepeer_mapping *mapping)
{
	if (!mapping)
		return;
	munmap(mapping->base, mapping->mapped);
	free(mapping);
}

void *nvmepeer_mapping_address(const struct nvmepeer_mapping *mapping)
{
	return mapping->address;
}

size_t nvmepeer_mapping_length(const struct nvmepeer_mapping *mapping)
{
	return mapping->length;
}

void *nvmepeer_mapping_base(const struct nvmepeer_mapping *mapping)
{
	return mapping->base;
}

size_t nvmepeer_mapping_mapped(const struct nvmepeer_mapping *mapping)
{
	return mapping->mapped;
}
