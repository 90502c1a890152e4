// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Controllers: open, facts, routes, admin commands.
 */
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

static int open_failed(const char *node, int result)
{
	return failure_tell(CALL_OPEN, result, node);
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
	/* Any character device can be opened; only ours answers this. */
	result = peer_info(opened->fd, &info);
	if (result < 0)
		goto close;
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
	if (!ctrl)
		return;
	close(ctrl->fd);
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
	int result = sized_answer(CALL_INFO, ctrl->node, info, size,
				  BYTES_TO(struct nvme_peer_info, cmb_size));

	if (result)
		return result;
	result = peer_ioctl(ctrl->fd, NVME_PEER_INFO, info);
	return result < 0 ? failure_tell(CALL_INFO, result, ctrl->node) : result;
}

/* @asked: its fields up to the address are what is asked for. */
static int ask_route(struct nvmepeer *ctrl, const struct nvme_peer_route *asked,
		     struct nvme_peer_route *route, size_t size)
{
	int result = sized_answer(CALL_ROUTE, ctrl->node, route, size,
				  BYTES_TO(struct nvme_peer_route, doorbell));
	struct failure failure;

	if (result)
		return result;
	route->flags = asked->flags;
	route->dmabuf_fd = asked->dmabuf_fd;
	route->pci_address = asked->pci_address;
	result = peer_ioctl(ctrl->fd, NVME_PEER_ROUTE, route);
	if (result >= 0)
		return result;
	failure_init(&failure, CALL_ROUTE, result, ctrl->node);
	failure.request.route = *asked;
	return failure_note(&failure);
}

int nvmepeer_route_dmabuf(struct nvmepeer *ctrl, int dmabuf_fd,
			  struct nvme_peer_route *route, size_t size)
{
	const struct nvme_peer_route asked = { .dmabuf_fd = dmabuf_fd };

	return ask_route(ctrl, &asked, route, size);
}

int nvmepeer_route_pci(struct nvmepeer *ctrl, struct nvme_peer_pci_address pci_address,
		       struct nvme_peer_route *route, size_t size)
{
	const struct nvme_peer_route asked = {
		.flags = NVME_PEER_ROUTE_BY_ADDRESS,
		.dmabuf_fd = -1,
		.pci_address = pci_address,
	};

	return ask_route(ctrl, &asked, route, size);
}

int nvmepeer_admin(struct nvmepeer *ctrl, struct nvme_passthru_cmd *command)
{
	int result = peer_ioctl(ctrl->fd, NVME_IOCTL_ADMIN_CMD, command);
	struct failure failure;

	if (!result)
		return 0;
	failure_init(&failure, CALL_ADMIN, result, ctrl->node);
	failure.request.command = *command;
	return failure_note(&failure);
}
