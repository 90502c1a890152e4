// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Controllers: open, limits and state, routes, admin commands.
 */
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

static int open_failed(const char *node, int result)
{
	return failure_set(CALL_OPEN, result, node);
}

int nvmepeer_open(const char *node, struct nvmepeer **ctrl)
{
	struct nvme_peer_info info;
	struct nvmepeer *opened;
	int result;

	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return open_failed(node, -ENOMEM);
	result = node_open(node, opened->node);
	if (result < 0)
		goto free;
	opened->fd = result;
	/* open() succeeds on any character device; this ioctl only on nvme-peer's. */
	result = peer_info(opened->fd, &info);
	if (result < 0)
		goto close;
	pthread_mutex_init(&opened->lock, NULL);
	*ctrl = opened;
	return 0;

close:
	close(opened->fd);
free:
	free(opened);
	return open_failed(node, result);
}

void nvmepeer_close(struct nvmepeer *ctrl)
{
	struct left_buffer *left;

	if (!ctrl)
		return;
	close(ctrl->fd);
	/* The kernel ends the imports with the file. */
	while ((left = ctrl->left)) {
		ctrl->left = left->next;
		free(left);
	}
	pthread_mutex_destroy(&ctrl->lock);
	free(ctrl);
}

int nvmepeer_fd(const struct nvmepeer *ctrl)
{
	return ctrl->fd;
}

const char *nvmepeer_node(const struct nvmepeer *ctrl)
{
	return ctrl->node;
}

int nvmepeer_info(struct nvmepeer *ctrl, struct nvme_peer_info *info, size_t size)
{
	int result = struct_size_out(CALL_INFO, ctrl->node, info, size,
				     SIZE_THROUGH(struct nvme_peer_info, reserved));

	if (result)
		return result;
	result = peer_ioctl(ctrl->fd, NVME_PEER_INFO, info);
	return result < 0 ? failure_set(CALL_INFO, result, ctrl->node) : result;
}

/* @request: its fields up to the address are input. */
static int get_route(struct nvmepeer *ctrl, const struct nvme_peer_route *request,
		     struct nvme_peer_route *route, size_t size)
{
	int result = struct_size_out(CALL_ROUTE, ctrl->node, route, size,
				     SIZE_THROUGH(struct nvme_peer_route, doorbell));
	struct failure failure;

	if (result)
		return result;
	route->flags = request->flags;
	route->dmabuf_fd = request->dmabuf_fd;
	route->pci_address = request->pci_address;
	result = peer_ioctl(ctrl->fd, NVME_PEER_ROUTE, route);
	if (result >= 0)
		return result;
	failure_init(&failure, CALL_ROUTE, result, ctrl->node);
	failure.request.route = *request;
	return failure_record(&failure);
}

int nvmepeer_route_dmabuf(struct nvmepeer *ctrl, int dmabuf_fd,
			  struct nvme_peer_route *route, size_t size)
{
	const struct nvme_peer_route request = { .dmabuf_fd = dmabuf_fd };

	return get_route(ctrl, &request, route, size);
}

int nvmepeer_route_pci(struct nvmepeer *ctrl, struct nvme_peer_pci_address pci_address,
		       struct nvme_peer_route *route, size_t size)
{
	const struct nvme_peer_route request = {
		.flags = NVME_PEER_ROUTE_BY_ADDRESS,
		.dmabuf_fd = -1,
		.pci_address = pci_address,
	};

	return get_route(ctrl, &request, route, size);
}

int nvmepeer_admin(struct nvmepeer *ctrl, struct nvme_passthru_cmd *command)
{
	int result = peer_ioctl(ctrl->fd, NVME_IOCTL_ADMIN_CMD, command);
	struct failure failure;

	if (!result)
		return 0;
	failure_init(&failure, CALL_ADMIN, result, ctrl->node);
	failure.request.command = *command;
	return failure_record(&failure);
}
