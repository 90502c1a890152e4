// SPDX-License-Identifier: GPL-2.0-only
/* A client of a vfio-user device: see client.h. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <linux/pci_regs.h>

#include "client.h"

int client_answer(struct client *client, struct vfu_message *asked)
{
	struct vfu_header *header = &asked->header;
	bool no_reply = header->flags & VFU_FLAG_NO_REPLY;
	int error = EINVAL;

	if (client->dma && asked->dma.count <= VFU_DATA_MAX)
		error = client->dma(client, asked);
	/* A failed posted write has a reply as well. */
	if (no_reply && !error)
		return 0;
	header->size = sizeof(*header);
	if (header->command == VFU_DMA_READ && !error)
		header->size += (uint32_t)(sizeof(asked->dma) + asked->dma.count);
	header->flags = VFU_FLAG_REPLY | (error ? VFU_FLAG_ERROR : 0);
	header->error = (uint32_t)error;
	return vfu_send(client->socket, header, NULL, 0);
}

static int receive_reply(struct client *client, struct vfu_message *message)
{
	int ret;

	for (;;) {
		ret = vfu_receive(client->socket, message);
		if (ret <= 0)
			return ret ? ret : -ENOTCONN;
		if ((message->header.flags & VFU_FLAG_TYPE) == VFU_FLAG_REPLY)
			return 0;
		ret = client_answer(client, message);
		if (ret)
			return ret;
	}
}

int client_ask(struct client *client, struct vfu_message *message, uint16_t command,
	       size_t length)
{
	struct vfu_header *header = &message->header;
	uint16_t id = ++client->id & (VFU_POSTED_ID - 1);
	int ret;

	*header = (struct vfu_header){
		.id = id,
		.command = command,
		.size = (uint32_t)(sizeof(*header) + length),
	};
	ret = vfu_send(client->socket, header, message->fds, message->fd_count);
	if (!ret)
		ret = receive_reply(client, message);
	if (ret)
		return ret;
	if (header->id != id || header->command != command)
		return -EPROTO;
	return header->flags & VFU_FLAG_ERROR ? -(int)header->error : 0;
}

int client_open(struct client *client, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct vfu_message message = { .version = { 0 } };

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	client->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->socket < 0 ||
	    connect(client->socket, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	return client_ask(client, &message, VFU_VERSION, sizeof(message.version));
}

int client_map(struct client *client, uint64_t address, uint64_t size, uint32_t flags, int fd,
	       uint64_t offset)
{
	struct vfu_message message = {
		.map = { sizeof(message.map), flags, offset, address, size },
		.fds = { fd },
		.fd_count = fd >= 0,
	};

	return client_ask(client, &message, VFU_DMA_MAP, sizeof(message.map));
}

int client_unmap(struct client *client, uint64_t address, uint64_t size, uint32_t flags)
{
	struct vfu_message message = {
		.unmap = { sizeof(message.unmap), flags, address, size },
	};

	return client_ask(client, &message, VFU_DMA_UNMAP, sizeof(message.unmap));
}

int client_read(struct client *client, uint32_t region, uint64_t offset, void *data,
		uint32_t count)
{
	struct vfu_message message;
	int ret;

	message.fd_count = 0;
	message.access = (struct vfu_region_access){ offset, region, count };
	ret = client_ask(client, &message, VFU_REGION_READ, sizeof(message.access));
	if (!ret)
		memcpy(data, message.payload + sizeof(message.access), count);
	return ret;
}

int client_write(struct client *client, uint32_t region, uint64_t offset, const void *data,
		 uint32_t count)
{
	struct vfu_message message;

	message.fd_count = 0;
	message.access = (struct vfu_region_access){ offset, region, count };
	memcpy(message.payload + sizeof(message.access), data, count);
	return client_ask(client, &message, VFU_REGION_WRITE, sizeof(message.access) + count);
}

int client_enable(struct client *client, bool bus_master)
{
	const uint16_t command = PCI_COMMAND_MEMORY | (bus_master ? PCI_COMMAND_MASTER : 0);

	return client_write(client, CLIENT_CONFIG, PCI_COMMAND, &command, sizeof(command));
}
