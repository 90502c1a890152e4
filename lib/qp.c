// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Queue pairs: create, query, re-arm, export, map.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

/* The limits that refuse a queue pair change over time: query them now. */
static int create_failed(struct nvmepeer *ctrl, int result,
			 const struct nvme_peer_qp_create *request)
{
	struct failure failure;

	failure_init(&failure, CALL_QP_CREATE, result, ctrl->node);
	failure.request.create = *request;
	if (peer_info(ctrl->fd, &failure.info) < 0)
		failure.info.size = 0;
	return failure_record(&failure);
}

int nvmepeer_qp_create(struct nvmepeer *ctrl,
		       struct nvme_peer_qp_create *request, size_t size,
		       struct nvmepeer_qp **qp)
{
	struct nvme_peer_qp_create original;
	struct nvmepeer_qp *created;
	int result = struct_size_in(CALL_QP_CREATE, ctrl->node, request, size,
				    SIZE_THROUGH(struct nvme_peer_qp_create, reserved));

	if (result)
		return result;
	if (!request->cq_entries)
		request->cq_entries = request->sq_entries;
	struct_copy(&original, sizeof(original), request, size);
	created = calloc(1, sizeof(*created));
	if (!created)
		return create_failed(ctrl, -ENOMEM, &original);
	result = peer_ioctl(ctrl->fd, NVME_PEER_QP_CREATE, request);
	if (result < 0) {
		free(created);
		return create_failed(ctrl, result, &original);
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
	struct nvmepeer_qp *adopted;
	int result;

	result = get_info(fd, &info);
	if (result < 0)
		goto failed;
	result = -ENOMEM;
	adopted = calloc(1, sizeof(*adopted));
	if (!adopted)
		goto failed;
	adopted->fd = fd;
	snprintf(adopted->name, sizeof(adopted->name), "queue pair %u", info.qid);
	*qp = adopted;
	return 0;

failed:
	return failure_set(CALL_QP_FROM_FD, result, "file descriptor");
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
	int result = struct_size_out(CALL_QP_INFO, qp->name, info, size,
				     SIZE_THROUGH(struct nvme_peer_qp_info, cpu_doorbell_writes));

	if (result)
		return result;
	result = peer_ioctl(qp->fd, NVME_PEER_QP_INFO, info);
	return result < 0 ? failure_set(CALL_QP_INFO, result, qp->name) : result;
}

int nvmepeer_qp_rearm(struct nvmepeer_qp *qp, uint32_t losses, uint32_t *generation)
{
	struct nvme_peer_qp_rearm request = { .size = sizeof(request), .losses = losses };
	struct nvme_peer_qp_info info;
	int result = peer_ioctl(qp->fd, NVME_PEER_QP_REARM, &request);

	if (result >= 0)
		result = get_info(qp->fd, &info);
	if (result < 0)
		return failure_set(CALL_QP_REARM, result, qp->name);
	*generation = info.generation;
	return 0;
}

static int export_failed(struct nvmepeer_qp *qp, enum call call, int result,
			 const struct nvme_peer_qp_export *request)
{
	struct failure failure;

	failure_init(&failure, call, result, qp->name);
	failure.request.export = *request;
	failure_record(&failure);
	return result;
}

static int export(struct nvmepeer_qp *qp, enum nvme_peer_export what, uint32_t flags,
		  struct nvmepeer_export *exported)
{
	const struct nvme_peer_qp_export original = {
		.size = sizeof(original),
		.flags = flags,
		.what = what,
	};
	struct nvme_peer_qp_export request = original;
	int result;

	result = peer_ioctl(qp->fd, NVME_PEER_QP_EXPORT, &request);
	if (result < 0)
		return export_failed(qp, CALL_QP_EXPORT, result, &original);
	exported->fd = request.fd;
	exported->offset = request.offset;
	exported->length = request.length;
	return 0;
}

int nvmepeer_qp_export(struct nvmepeer_qp *qp, enum nvme_peer_export what,
		       uint32_t flags, struct nvmepeer_export *exported, size_t size)
{
	struct nvmepeer_export made;
	int result = struct_size_check(CALL_QP_EXPORT, qp->name, size,
				       SIZE_THROUGH(struct nvmepeer_export, length));

	if (!result)
		result = export(qp, what, flags, &made);
	if (!result)
		struct_copy(exported, size, &made, sizeof(made));
	return result;
}

/**
 * struct nvmepeer_mapping - part of a queue pair, mapped into this process
 * @base: start of the mapping, page aligned
 * @mapped: bytes mapped at @base
 * @address: the object
 * @length: size of the object in bytes
 */
struct nvmepeer_mapping {
	void *base;
	size_t mapped;
	void *address;
	size_t length;
};

/*
 * The status page is read-only: only the kernel writes it.  Doorbells should be
 * write-only, but no page table can express that, and GPU drivers register only memory
 * that the process may read and write.
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
	/* The mapping holds a reference to the dma-buf. */
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

int nvmepeer_qp_kick(struct nvmepeer_qp *qp)
{
	struct nvme_peer_qp_kick request = { .size = sizeof(request) };
	int result = peer_ioctl(qp->fd, NVME_PEER_QP_KICK, &request);

	return result < 0 ? failure_set(CALL_QP_KICK, result, qp->name) : 0;
}
