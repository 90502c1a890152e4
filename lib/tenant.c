// SPDX-License-Identifier: MIT OR GPL-2.0
/* Windows, buffers and limits of mediated queue pairs. */
#include "internal.h"

static int qp_ioctl(struct nvmepeer_qp *qp, enum call call, unsigned long number, void *request)
{
	int result = peer_ioctl(qp->fd, number, request);

	return result < 0 ? failure_set(call, result, qp->name) : 0;
}

int nvmepeer_window_add(struct nvmepeer_qp *qp, struct nvme_peer_window_add *window, size_t size)
{
	int result = struct_size_in(CALL_WINDOW_ADD, qp->name, window, size,
				    SIZE_THROUGH(struct nvme_peer_window_add, rights));

	return result ? result : qp_ioctl(qp, CALL_WINDOW_ADD, NVME_PEER_WINDOW_ADD, window);
}

int nvmepeer_window_remove(struct nvmepeer_qp *qp, uint32_t id)
{
	struct nvme_peer_window_remove request = { .size = sizeof(request), .id = id };

	return qp_ioctl(qp, CALL_WINDOW_REMOVE, NVME_PEER_WINDOW_REMOVE, &request);
}

int nvmepeer_window_info(struct nvmepeer_qp *qp, uint32_t id, struct nvme_peer_window_info *info, size_t size)
{
	int result = struct_size_out(CALL_WINDOW_INFO, qp->name, info, size,
				     SIZE_THROUGH(struct nvme_peer_window_info, in_flight));

	if (result)
		return result;
	info->id = id;
	return qp_ioctl(qp, CALL_WINDOW_INFO, NVME_PEER_WINDOW_INFO, info);
}

int nvmepeer_buf_add(struct nvmepeer_qp *qp, struct nvme_peer_buf_add *buffer, size_t size)
{
	int result = struct_size_in(CALL_BUF_ADD, qp->name, buffer, size,
				    SIZE_THROUGH(struct nvme_peer_buf_add, reserved));

	return result ? result : qp_ioctl(qp, CALL_BUF_ADD, NVME_PEER_BUF_ADD, buffer);
}

int nvmepeer_buf_remove(struct nvmepeer_qp *qp, uint32_t slot)
{
	struct nvme_peer_buf_remove request = { .size = sizeof(request), .slot = slot };

	return qp_ioctl(qp, CALL_BUF_REMOVE, NVME_PEER_BUF_REMOVE, &request);
}

int nvmepeer_qp_limits(struct nvmepeer_qp *qp, struct nvme_peer_qp_limits *limits, size_t size)
{
	int result = struct_size_out(CALL_QP_LIMITS, qp->name, limits, size,
				     SIZE_THROUGH(struct nvme_peer_qp_limits, sealed));

	return result ? result : qp_ioctl(qp, CALL_QP_LIMITS, NVME_PEER_QP_LIMITS, limits);
}

int nvmepeer_qp_stats(struct nvmepeer_qp *qp, struct nvme_peer_qp_stats *stats, size_t size)
{
	int result = struct_size_out(CALL_QP_STATS, qp->name, stats, size,
				     SIZE_THROUGH(struct nvme_peer_qp_stats, busy_ns));

	return result ? result : qp_ioctl(qp, CALL_QP_STATS, NVME_PEER_QP_STATS, stats);
}

int nvmepeer_qp_seal(struct nvmepeer_qp *qp)
{
	struct nvme_peer_qp_seal request = { .size = sizeof(request) };

	return qp_ioctl(qp, CALL_QP_SEAL, NVME_PEER_QP_SEAL, &request);
}
