// SPDX-License-Identifier: GPL-2.0-only
/* A client of a vfio-user device: see client.h. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <stddef.h>

#include <protocol.h>

#include "client.h"

#define PAYLOAD		4096U
#define COMMAND_OFFSET	4U
#define BUS_MASTER	6U	/* and memory space */

/* Payloads of messages. */
struct client_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t address;
	uint64_t size;
};

struct client_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
	uint8_t data[64];
};

#define ACCESS_HEAD	offsetof(struct client_access, data)

struct answer {
	struct vfu_header header;
	uint8_t payload[PAYLOAD];
};

static int send_message(int to, const struct vfu_header *header, const void *payload, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec parts[] = {
		{ (void *)header, sizeof(*header) },
		{ (void *)payload, header->size - sizeof(*header) },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	struct cmsghdr *part;

	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	}
	return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)header->size ? 0 : -EIO;
}

static int receive_bytes(int from, void *data, size_t length)
{
	return recv(from, data, length, MSG_WAITALL) == (ssize_t)length ? 0 : -EIO;
}

static int receive(int from, struct answer *answer)
{
	size_t length;

	if (receive_bytes(from, &answer->header, sizeof(answer->header)))
		return -EIO;
	length = answer->header.size - sizeof(answer->header);
	if (length > sizeof(answer->payload))
		return -EMSGSIZE;
	return length ? receive_bytes(from, answer->payload, length) : 0;
}

/* The only expected requests of a device are reads. */
static int answer_device(const struct client *client, const struct answer *asked)
{
	struct answer reply = { .header = asked->header };
	struct vfu_dma_access access;
	int error = EINVAL;

	memcpy(&access, asked->payload, sizeof(access));
	memcpy(reply.payload, &access, sizeof(access));
	if (asked->header.command == VFU_DMA_READ && client->bus_read &&
	    access.count <= PAYLOAD - sizeof(access))
		error = client->bus_read(access.address, reply.payload + sizeof(access),
					 access.count);
	reply.header.flags = VFU_FLAG_REPLY | (error ? VFU_FLAG_ERROR : 0);
	reply.header.error = (uint32_t)error;
	reply.header.size = (uint32_t)(sizeof(reply.header) + sizeof(access) +
				       (error ? 0 : access.count));
	return send_message(client->socket, &reply.header, reply.payload, -1);
}

static int ask(struct client *client, uint16_t command, const void *payload, size_t length,
	       int fd, struct answer *answer)
{
	struct vfu_header header = {
		.id = ++client->id & (VFU_POSTED_ID - 1),
		.command = command,
		.size = (uint32_t)(sizeof(header) + length),
	};
	int ret = send_message(client->socket, &header, payload, fd);

	while (!ret) {
		ret = receive(client->socket, answer);
		if (!ret && (answer->header.flags & VFU_FLAG_TYPE) == VFU_FLAG_REPLY)
			break;
		ret = ret ? ret : answer_device(client, answer);
	}
	if (ret)
		return ret;
	return answer->header.flags & VFU_FLAG_ERROR ? -(int)answer->header.error : 0;
}

int client_open(struct client *client, const char *path)
{
	static const uint16_t version[2] = { 0, 0 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct answer answer;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	client->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->socket < 0 ||
	    connect(client->socket, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	return ask(client, VFU_VERSION, version, sizeof(version), -1, &answer);
}

int client_map(struct client *client, uint64_t address, uint64_t size, int fd)
{
	struct client_map map = {
		.argsz = sizeof(map),
		.flags = VFU_MAP_READ | VFU_MAP_WRITE,
		.address = address,
		.size = size,
	};
	struct answer answer;

	return ask(client, VFU_DMA_MAP, &map, sizeof(map), fd, &answer);
}

int client_read(struct client *client, uint32_t region, uint64_t offset, void *data,
		uint32_t count)
{
	struct client_access access = { .offset = offset, .region = region, .count = count };
	struct answer answer;
	int ret = ask(client, VFU_REGION_READ, &access, ACCESS_HEAD, -1, &answer);

	if (!ret)
		memcpy(data, answer.payload + ACCESS_HEAD, count);
	return ret;
}

int client_write(struct client *client, uint32_t region, uint64_t offset, const void *data,
		 uint32_t count)
{
	struct client_access access = { .offset = offset, .region = region, .count = count };
	struct answer answer;

	memcpy(access.data, data, count);
	return ask(client, VFU_REGION_WRITE, &access, ACCESS_HEAD + count, -1, &answer);
}

int client_enable(struct client *client)
{
	const uint16_t command = BUS_MASTER;

	return client_write(client, CLIENT_CONFIG, COMMAND_OFFSET, &command, sizeof(command));
}
