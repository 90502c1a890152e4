// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vfio-user server with a test client instead of QEMU: every message, invalid and concurrent
 * requests, and no access to memory after UNMAP, a reset, or with bus mastering off. Runs without
 * a guest.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol.h"
#include "vfio_user.h"

#include "kselftest_harness.h"

#define PAGE		4096U
#define RAM_BYTES	(16 * PAGE)
#define RAM_ADDRESS	0x40000000ULL
#define NOWHERE		0xdead0000ULL
#define BAR0_BYTES	PAGE
#define BAR2_BYTES	(4 * PAGE)
#define CONFIG		7U

/* Requests of the device, which the client replies to. */
struct remote {
	_Atomic unsigned int reads;
	_Atomic unsigned int writes;
	_Atomic unsigned int posted;
	uint64_t address;
	uint64_t value;
};

FIXTURE(vfu)
{
	struct vfu_device device;
	struct vfu *vfu;
	pthread_t server;
	int client;
	uint16_t id;
	int ram_fd;
	char *ram;
	int bar_fd;
	struct remote remote;
};

/* State of the callbacks; one device at a time. */
static uint8_t registers[BAR0_BYTES];
static _Atomic unsigned int resets;
static _Atomic unsigned int last_reset;

struct serving {
	struct vfu *vfu;
	int socket;
};

static void device_read(void *context, unsigned int bar, uint64_t offset,
			void *data, uint32_t count)
{
	(void)context;
	(void)bar;
	memcpy(data, registers + offset, count);
}

static void device_write(void *context, unsigned int bar, uint64_t offset,
			 const void *data, uint32_t count)
{
	(void)context;
	(void)bar;
	memcpy(registers + offset, data, count);
}

static void device_reset(void *context, enum vfu_reset why)
{
	(void)context;
	atomic_store(&last_reset, why);
	atomic_fetch_add(&resets, 1);
}

/* The last unmapped address, and what the CPU reads there then. */
static _Atomic uint64_t unmapped_address;
static _Atomic unsigned int unmapped_calls;

static void device_unmapped(void *context, uint64_t address, uint64_t size)
{
	(void)context;
	(void)size;
	atomic_store(&unmapped_address, address);
	atomic_fetch_add(&unmapped_calls, 1);
}

static void *serve(void *argument)
{
	struct serving serving = *(struct serving *)argument;

	free(argument);
	return (void *)(intptr_t)vfu_serve(serving.vfu, serving.socket);
}

/* --- The client ---------------------------------------------------------- */

static void send_all(int socket, const void *header, const void *payload,
		     size_t length, const int *fds, unsigned int count)
{
	char control[CMSG_SPACE(8 * sizeof(int))] = { 0 };
	struct iovec parts[] = {
		{ (void *)header, sizeof(struct vfu_header) },
		{ (void *)payload, length },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	if (count) {
		struct cmsghdr *part;

		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(part), fds, count * sizeof(int));
	}
	sendmsg(socket, &message, MSG_NOSIGNAL);
}

static bool receive_all(int socket, void *data, size_t length, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct cmsghdr *part;
	size_t done = 0;

	while (done < length) {
		struct iovec into = { (char *)data + done, length - done };
		struct msghdr message = {
			.msg_iov = &into,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		ssize_t got = recvmsg(socket, &message, 0);

		if (got <= 0)
			return false;
		part = CMSG_FIRSTHDR(&message);
		if (part && fd)
			memcpy(fd, CMSG_DATA(part), sizeof(*fd));
		done += (size_t)got;
	}
	return true;
}

/* Receive one message; its payload goes to @payload. */
static bool receive_message(int socket, struct vfu_header *header,
			    void *payload, size_t room, int *fd)
{
	if (!receive_all(socket, header, sizeof(*header), fd))
		return false;
	if (header->size - sizeof(*header) > room)
		return false;
	return receive_all(socket, payload, header->size - sizeof(*header),
			   fd);
}

/**
 * struct request - one request of the client and its reply
 * @command: in
 * @send: in: payload, with @length
 * @fds: in: files to send, with @fd_count
 * @error: out: errno of the reply, -1 without a reply
 * @answer: out: payload, with @answered bytes
 * @fd: out: a received file, or -1
 */
struct request {
	uint16_t command;
	const void *send;
	size_t length;
	int fds[8];
	unsigned int fd_count;
	int error;
	uint8_t answer[2 * PAGE];
	size_t answered;
	int fd;
};

/* Reply to a request for unmapped memory like QEMU. */
static void answer_dma(int socket, struct remote *remote,
		       const struct vfu_header *asked, const uint8_t *payload)
{
	struct vfu_header header = *asked;
	struct vfu_dma_access access;
	uint8_t data[sizeof(access) + 64] = { 0 };
	size_t length = 0;

	memcpy(&access, payload, sizeof(access));
	header.flags = VFU_FLAG_REPLY;
	if (access.address == NOWHERE) {
		header.flags |= VFU_FLAG_ERROR;
		header.error = ENODEV;
	} else if (asked->command == VFU_DMA_READ) {
		atomic_fetch_add(&remote->reads, 1);
		memcpy(data, &access, sizeof(access));
		memcpy(data + sizeof(access), &remote->value,
		       sizeof(remote->value));
		length = sizeof(access) + access.count;
	} else {
		remote->address = access.address;
		memcpy(&remote->value, payload + sizeof(access),
		       access.count < 8 ? access.count : 8);
		atomic_fetch_add(asked->flags & VFU_FLAG_NO_REPLY ?
				 &remote->posted : &remote->writes, 1);
	}
	/* A failed posted write has a reply as well. */
	if ((asked->flags & VFU_FLAG_NO_REPLY) && !header.error)
		return;
	header.size = (uint32_t)(sizeof(header) + length);
	send_all(socket, &header, data, length, NULL, 0);
}

/* Send @request, reply to requests of the device meanwhile, and receive the reply. */
static void transact(int socket, struct remote *remote, uint16_t id,
		     struct request *request)
{
	struct vfu_header header = {
		.id = id,
		.command = request->command,
		.size = (uint32_t)(sizeof(header) + request->length),
	};

	request->error = -1;
	request->fd = -1;
	send_all(socket, &header, request->send, request->length, request->fds,
		 request->fd_count);
	while (receive_message(socket, &header, request->answer,
			       sizeof(request->answer), &request->fd)) {
		if (!(header.flags & VFU_FLAG_REPLY)) {
			answer_dma(socket, remote, &header, request->answer);
			continue;
		}
		if (header.id != id || header.command != request->command)
			return;
		request->error = header.flags & VFU_FLAG_ERROR ?
				 (int)header.error : 0;
		request->answered = header.size - sizeof(header);
		return;
	}
}

#define ask(request)	transact(self->client, &self->remote, ++self->id, request)

/* Reply to @count requests of the device. */
static void answer(int socket, struct remote *remote, unsigned int count)
{
	struct vfu_header header;
	uint8_t payload[2 * PAGE];

	while (count-- && receive_message(socket, &header, payload,
					  sizeof(payload), NULL))
		answer_dma(socket, remote, &header, payload);
}

static int region(int socket, struct remote *remote, uint16_t id,
		  uint16_t command, uint32_t index, uint64_t offset, void *data,
		  uint32_t count)
{
	struct request request = { .command = command };
	struct {
		uint64_t offset;
		uint32_t region;
		uint32_t count;
		uint8_t data[64];
	} access = { offset, index, count, { 0 } };

	request.send = &access;
	request.length = 16;
	if (command == VFU_REGION_WRITE) {
		memcpy(access.data, data, count);
		request.length += count;
	}
	transact(socket, remote, id, &request);
	if (!request.error && command == VFU_REGION_READ)
		memcpy(data, request.answer + 16, count);
	return request.error;
}

#define read_region(index, offset, data, count)				\
	region(self->client, &self->remote, ++self->id, VFU_REGION_READ,	\
	       index, offset, data, count)
#define write_region(index, offset, data, count)				\
	region(self->client, &self->remote, ++self->id, VFU_REGION_WRITE,	\
	       index, offset, data, count)

struct map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset;
	uint64_t address;
	uint64_t size;
};

struct unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t address;
	uint64_t size;
};

static int map_range(int socket, struct remote *remote, uint16_t id,
		     uint64_t address, uint64_t size, uint32_t flags, int fd,
		     uint64_t offset)
{
	struct map map = { sizeof(map), flags, offset, address, size };
	struct request request = {
		.command = VFU_DMA_MAP,
		.send = &map,
		.length = sizeof(map),
		.fds = { fd },
		.fd_count = fd >= 0,
	};

	transact(socket, remote, id, &request);
	return request.error;
}

#define map_memory(address, size, flags, fd, offset)			\
	map_range(self->client, &self->remote, ++self->id, address, size,	\
		  flags, fd, offset)

static int unmap_range(int socket, struct remote *remote, uint16_t id,
		       uint64_t address, uint64_t size, uint32_t flags)
{
	struct unmap unmap = { sizeof(unmap), flags, address, size };
	struct request request = {
		.command = VFU_DMA_UNMAP,
		.send = &unmap,
		.length = sizeof(unmap),
	};

	transact(socket, remote, id, &request);
	return request.error;
}

#define unmap_memory(address, size)					\
	unmap_range(self->client, &self->remote, ++self->id, address, size, 0)

static void bus_master(int socket, struct remote *remote, uint16_t id, bool on)
{
	uint16_t command = on ? 0x0006 : 0x0002;

	region(socket, remote, id, VFU_REGION_WRITE, CONFIG, 4, &command, 2);
}

#define set_bus_master(on)	bus_master(self->client, &self->remote, ++self->id, on)

static void connect_client(struct vfu *vfu, pthread_t *server, int *client)
{
	struct serving *serving = malloc(sizeof(*serving));
	int pair[2];

	if (!serving)
		abort();
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
	*client = pair[0];
	serving->vfu = vfu;
	serving->socket = pair[1];
	pthread_create(server, NULL, serve, serving);
}

FIXTURE_SETUP(vfu)
{
	memset(registers, 0, sizeof(registers));
	atomic_store(&resets, 0);
	memset(&self->remote, 0, sizeof(self->remote));
	self->id = 100;
	self->bar_fd = memfd_create("bar2", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(self->bar_fd, BAR2_BYTES));
	self->ram_fd = memfd_create("ram", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(self->ram_fd, RAM_BYTES));
	self->ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			 self->ram_fd, 0);
	ASSERT_NE(MAP_FAILED, self->ram);
	self->device = (struct vfu_device){
		.vendor_id = 0x1234,
		.device_id = 0x6770,
		.class_code = 0x120000,
		.vectors = 4,
		.bars[0] = { .size = BAR0_BYTES, .fd = -1 },
		.bars[2] = { .size = BAR2_BYTES, .is_64bit = true,
			     .prefetchable = true, .fd = self->bar_fd },
		.bar_read = device_read,
		.bar_write = device_write,
		.reset = device_reset,
		.unmapped = device_unmapped,
	};
	self->vfu = vfu_create(&self->device, NULL);
	ASSERT_NE(NULL, self->vfu);
	connect_client(self->vfu, &self->server, &self->client);
}

FIXTURE_TEARDOWN(vfu)
{
	shutdown(self->client, SHUT_RDWR);
	close(self->client);
	pthread_join(self->server, NULL);
	vfu_destroy(self->vfu);
	munmap(self->ram, RAM_BYTES);
	close(self->ram_fd);
	close(self->bar_fd);
}

/* --- Handshake and description -------------------------------------------- */

TEST_F(vfu, version)
{
	char payload[214] = { 0 };
	struct request request = { .command = VFU_VERSION, .send = payload,
				   .length = sizeof(payload) };

	ask(&request);
	EXPECT_EQ(0, request.error);
	EXPECT_LE(request.answered, sizeof(payload));
	EXPECT_EQ(0, request.answer[request.answered - 1]);
	EXPECT_NE(NULL, strstr((char *)request.answer + 4, "max_msg_fds"));
	payload[0] = 1;
	ask(&request);
	EXPECT_EQ(ENOTSUP, request.error);
}

TEST_F(vfu, device_and_regions)
{
	uint32_t info[8] = { 32 };
	struct request request = { .command = VFU_GET_INFO, .send = info,
				   .length = 16 };
	uint64_t size;
	struct stat one, two;

	ask(&request);
	EXPECT_EQ(0, request.error);
	memcpy(info, request.answer, 16);
	EXPECT_EQ(3, info[1]);
	EXPECT_EQ(9, info[2]);

	request.command = VFU_GET_REGION_INFO;
	request.length = 32;
	memset(info, 0, sizeof(info));
	info[2] = 2;
	ask(&request);
	EXPECT_EQ(0, request.error);
	memcpy(&size, request.answer + 16, 8);
	EXPECT_EQ(BAR2_BYTES, size);
	EXPECT_EQ(7, request.answer[4]);
	ASSERT_GE(request.fd, 0);
	fstat(request.fd, &one);
	fstat(self->bar_fd, &two);
	EXPECT_EQ(two.st_ino, one.st_ino);
	close(request.fd);

	info[2] = 0;
	ask(&request);
	EXPECT_EQ(3, request.answer[4]);
	EXPECT_EQ(-1, request.fd);
	info[2] = 9;
	ask(&request);
	EXPECT_EQ(EINVAL, request.error);
}

TEST_F(vfu, config_space)
{
	uint8_t next, id;
	uint32_t value;
	uint16_t half;
	bool found_msi = false, found_express = false, found_msix = false;

	EXPECT_EQ(0, read_region(CONFIG, 0, &value, 4));
	EXPECT_EQ(0x67701234, value);
	EXPECT_EQ(0, read_region(CONFIG, 8, &value, 4));
	EXPECT_EQ(0x12000000, value);
	EXPECT_EQ(0, read_region(CONFIG, 0x18, &value, 4));
	EXPECT_EQ(0xc, value & 0xf);
	EXPECT_EQ(0, read_region(CONFIG, 0x34, &next, 1));
	while (next) {
		EXPECT_EQ(0, read_region(CONFIG, next, &id, 1));
		found_msi |= id == 0x05;
		found_express |= id == 0x10;
		found_msix |= id == 0x11;
		EXPECT_EQ(0, read_region(CONFIG, next + 1, &next, 1));
	}
	EXPECT_TRUE(found_msi);
	EXPECT_TRUE(found_express);
	/* QEMU crashes if a device with MSI-X is unplugged. */
	EXPECT_FALSE(found_msix);
	half = 0xffff;
	EXPECT_EQ(0, write_region(CONFIG, 0, &half, 2));
	EXPECT_EQ(0, read_region(CONFIG, 0, &half, 2));
	EXPECT_EQ(0x1234, half);
	EXPECT_EQ(EINVAL, read_region(CONFIG, 4094, &value, 4));
	EXPECT_EQ(EINVAL, read_region(CONFIG, UINT64_MAX, &value, 4));
}

TEST_F(vfu, trapped_bar)
{
	uint64_t value = 0x1122334455667788, seen = 0;

	EXPECT_EQ(0, write_region(0, 0x10, &value, 8));
	EXPECT_EQ(0, memcmp(registers + 0x10, &value, 8));
	EXPECT_EQ(0, read_region(0, 0x14, &seen, 4));
	EXPECT_EQ(0x11223344, seen);
	EXPECT_EQ(EINVAL, read_region(0, BAR0_BYTES - 4, &seen, 8));
	EXPECT_EQ(EINVAL, read_region(1, 0, &seen, 4));
	EXPECT_EQ(EINVAL, read_region(8, 0, &seen, 4));
}

TEST_F(vfu, unknown_and_short_messages)
{
	uint32_t word = 0;
	struct request request = { .command = 99, .send = &word, .length = 4 };

	ask(&request);
	EXPECT_EQ(ENOTSUP, request.error);
	/* A short message must not contain data of an earlier one. */
	EXPECT_EQ(0, unmap_memory(RAM_ADDRESS, PAGE));
	request.command = VFU_DMA_UNMAP;
	ask(&request);
	EXPECT_EQ(EINVAL, request.error);
	EXPECT_EQ(0, write_region(0, 0, &word, 4));
	request.command = VFU_REGION_WRITE;
	ask(&request);
	EXPECT_EQ(EINVAL, request.error);
	request.command = VFU_DMA_MAP;
	ask(&request);
	EXPECT_EQ(EINVAL, request.error);
	/* Still there. */
	EXPECT_EQ(0, read_region(CONFIG, 0, &word, 4));
}

TEST_F(vfu, a_senseless_header_ends_the_connection)
{
	struct vfu_header header = { .id = 1, .command = VFU_VERSION,
				     .size = 3 };
	char byte;

	send_all(self->client, &header, NULL, 0, NULL, 0);
	EXPECT_EQ(0, recv(self->client, &byte, 1, 0));
}

/* --- Interrupts ---------------------------------------------------------- */

static int set_irqs(int socket, struct remote *remote, uint16_t id,
		    uint32_t index, uint32_t flags, uint32_t start,
		    uint32_t count, const int *fds, unsigned int fd_count)
{
	uint32_t set[] = { 20, flags, index, start, count };
	struct request request = { .command = VFU_SET_IRQS, .send = set,
				   .length = sizeof(set),
				   .fd_count = fd_count };

	if (fd_count)
		memcpy(request.fds, fds, fd_count * sizeof(int));
	transact(socket, remote, id, &request);
	return request.error;
}

#define arm(index, flags, start, count, fds, fd_count)			\
	set_irqs(self->client, &self->remote, ++self->id, index, flags,		\
		 start, count, fds, fd_count)

TEST_F(vfu, interrupts)
{
	int fds[2] = { eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK) };
	uint32_t info[4] = { 16, 0, 1, 0 };
	struct request request = { .command = VFU_GET_IRQ_INFO, .send = info,
				   .length = sizeof(info) };
	uint64_t count;

	ask(&request);
	memcpy(info, request.answer, sizeof(info));
	EXPECT_EQ(4, info[3]);
	EXPECT_EQ(-ENXIO, vfu_interrupt(self->vfu, 0));
	EXPECT_EQ(0, arm(1, 0x24, 0, 2, fds, 2));
	EXPECT_EQ(0, vfu_interrupt(self->vfu, 1));
	EXPECT_EQ(0, vfu_interrupt(self->vfu, 1));
	EXPECT_EQ(8, read(fds[1], &count, 8));
	EXPECT_EQ(2, count);
	EXPECT_EQ(-1, read(fds[0], &count, 8));
	/* A vector without a file is disarmed. */
	EXPECT_EQ(0, arm(1, 0x24, 1, 1, NULL, 0));
	EXPECT_EQ(-ENXIO, vfu_interrupt(self->vfu, 1));
	EXPECT_EQ(0, vfu_interrupt(self->vfu, 0));
	EXPECT_EQ(0, arm(1, 0x21, 0, 0, NULL, 0));
	EXPECT_EQ(-ENXIO, vfu_interrupt(self->vfu, 0));
	EXPECT_EQ(EINVAL, arm(1, 0x24, 3, 2, fds, 2));
	EXPECT_EQ(EINVAL, arm(0, 0x24, 0, 1, fds, 1));
	EXPECT_EQ(-ENXIO, vfu_interrupt(self->vfu, 99));
	close(fds[0]);
	close(fds[1]);
}

/* --- DMA ----------------------------------------------------------------- */

TEST_F(vfu, mapped_memory)
{
	uint64_t value = 0x0102030405060708, seen = 0;
	char buffer[2 * PAGE];

	set_bus_master(true);
	/* Two ranges side by side, the second one first in the file. */
	EXPECT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 3, self->ram_fd, PAGE));
	EXPECT_EQ(0, map_memory(RAM_ADDRESS + PAGE, PAGE, 3, self->ram_fd, 0));
	EXPECT_EQ(0, vfu_dma_write(self->vfu, RAM_ADDRESS + 8, &value, 8, 0));
	EXPECT_EQ(0, memcmp(self->ram + PAGE + 8, &value, 8));
	EXPECT_EQ(0, vfu_dma_read(self->vfu, RAM_ADDRESS + 8, &seen, 8, 0));
	EXPECT_EQ(value, seen);
	memset(self->ram, 'a', PAGE);
	memset(self->ram + PAGE, 'b', PAGE);
	EXPECT_EQ(0, vfu_dma_read(self->vfu, RAM_ADDRESS, buffer, 2 * PAGE, 0));
	EXPECT_EQ('b', buffer[PAGE - 1]);
	EXPECT_EQ('a', buffer[PAGE]);
}

TEST_F(vfu, flags_of_a_mapping_are_obeyed)
{
	struct vfu_statistics before, after;
	uint64_t value = 1;

	set_bus_master(true);
	EXPECT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 1, self->ram_fd, 0));
	EXPECT_EQ(0, map_memory(RAM_ADDRESS + PAGE, PAGE, 2, self->ram_fd,
				PAGE));
	vfu_statistics(self->vfu, &before);
	EXPECT_EQ(-EACCES, vfu_dma_write(self->vfu, RAM_ADDRESS, &value, 8, 0));
	EXPECT_EQ(0, vfu_dma_read(self->vfu, RAM_ADDRESS, &value, 8, 0));
	EXPECT_EQ(-EACCES,
		  vfu_dma_read(self->vfu, RAM_ADDRESS + PAGE, &value, 8, 0));
	EXPECT_EQ(-EACCES, vfu_dma_read(self->vfu, RAM_ADDRESS + PAGE, &value,
					8, VFU_DMA_MESSAGE));
	EXPECT_EQ(0, vfu_dma_write(self->vfu, RAM_ADDRESS + PAGE, &value, 8, 0));
	vfu_statistics(self->vfu, &after);
	EXPECT_EQ(before.refused + 3, after.refused);
	EXPECT_EQ(2, after.ranges);
	EXPECT_EQ(EINVAL, map_memory(RAM_ADDRESS + 4 * PAGE, PAGE, 4,
				     self->ram_fd, 0));
	EXPECT_EQ(EINVAL, map_memory(RAM_ADDRESS + 4 * PAGE, 0, 3,
				     self->ram_fd, 0));
	EXPECT_EQ(EINVAL, map_memory(-(uint64_t)PAGE, 2 * PAGE, 3, self->ram_fd, 0));
	EXPECT_EQ(EEXIST, map_memory(RAM_ADDRESS, 4 * PAGE, 3, self->ram_fd,
				     0));
}

TEST_F(vfu, bus_mastering_off_stops_dma)
{
	uint64_t value = 5;
	uint16_t state = 3;

	EXPECT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 3, self->ram_fd, 0));
	EXPECT_EQ(-EACCES, vfu_dma_write(self->vfu, RAM_ADDRESS, &value, 8, 0));
	EXPECT_EQ(-EACCES, vfu_dma_post(self->vfu, NOWHERE, &value, 4));
	set_bus_master(true);
	EXPECT_EQ(0, vfu_dma_write(self->vfu, RAM_ADDRESS, &value, 8, 0));
	/* Low power state D3. */
	EXPECT_EQ(0, write_region(CONFIG, 0x44, &state, 2));
	EXPECT_EQ(-EACCES, vfu_dma_write(self->vfu, RAM_ADDRESS, &value, 8, 0));
	state = 0;
	EXPECT_EQ(0, write_region(CONFIG, 0x44, &state, 2));
	EXPECT_EQ(0, vfu_dma_write(self->vfu, RAM_ADDRESS, &value, 8, 0));
	set_bus_master(false);
	EXPECT_EQ(-EACCES, vfu_dma_read(self->vfu, RAM_ADDRESS, &value, 8, 0));
}

struct asker {
	struct vfu *vfu;
	uint64_t address;
	uint64_t value;
	bool write;
	int result;
	pthread_t thread;
};

static void *ask_remote(void *argument)
{
	struct asker *asker = argument;

	if (asker->write)
		asker->result = vfu_dma_write(asker->vfu, asker->address,
					      &asker->value, 8, 0);
	else
		asker->result = vfu_dma_read(asker->vfu, asker->address,
					     &asker->value, 8, 0);
	return NULL;
}

TEST_F(vfu, unmapped_memory_goes_by_message)
{
	struct asker asker = { .vfu = self->vfu, .address = 0x1000,
			       .value = 77, .write = true };

	set_bus_master(true);
	pthread_create(&asker.thread, NULL, ask_remote, &asker);
	answer(self->client, &self->remote, 1);
	pthread_join(asker.thread, NULL);
	EXPECT_EQ(0, asker.result);
	EXPECT_EQ(0x1000, self->remote.address);
	EXPECT_EQ(77, self->remote.value);
	asker.write = false;
	asker.value = 0;
	pthread_create(&asker.thread, NULL, ask_remote, &asker);
	answer(self->client, &self->remote, 1);
	pthread_join(asker.thread, NULL);
	EXPECT_EQ(0, asker.result);
	EXPECT_EQ(77, asker.value);
	asker.address = NOWHERE;
	pthread_create(&asker.thread, NULL, ask_remote, &asker);
	answer(self->client, &self->remote, 1);
	pthread_join(asker.thread, NULL);
	EXPECT_EQ(-EFAULT, asker.result);
}

/* A mapping without a file is legal: the device's own BAR comes that way. */
TEST_F(vfu, a_mapping_without_a_file)
{
	struct asker asker = { .vfu = self->vfu, .address = RAM_ADDRESS + 8,
			       .value = 78, .write = true };

	set_bus_master(true);
	EXPECT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 3, -1, 0));
	pthread_create(&asker.thread, NULL, ask_remote, &asker);
	answer(self->client, &self->remote, 1);
	pthread_join(asker.thread, NULL);
	EXPECT_EQ(0, asker.result);
	EXPECT_EQ(78, self->remote.value);
}

/* A mapping of the size of the neighbour's memory is that memory. */
TEST_F(vfu, memory_of_a_neighbour)
{
	uint64_t value = 79, seen = 0;
	int memory = memfd_create("neighbour", MFD_CLOEXEC), client;
	struct remote remote = { 0 };
	struct vfu_place place;
	struct vfu *vfu;
	pthread_t server;
	uint16_t bus_master = 4;

	ASSERT_EQ(0, ftruncate(memory, 4 * PAGE));
	vfu = vfu_create(&self->device, NULL);
	ASSERT_EQ(0, vfu_set_neighbour(vfu, memory));
	connect_client(vfu, &server, &client);
	ASSERT_EQ(0, region(client, &remote, 1, VFU_REGION_WRITE, CONFIG, 4, &bus_master, 2));
	ASSERT_EQ(0, map_range(client, &remote, 2, RAM_ADDRESS, 4 * PAGE, 3, -1, 0));
	ASSERT_EQ(0, map_range(client, &remote, 3, RAM_ADDRESS + 4 * PAGE, PAGE, 3, -1, 0));
	EXPECT_EQ(0, vfu_dma_write(vfu, RAM_ADDRESS + PAGE, &value, 8, 0));
	EXPECT_EQ(8, pread(memory, &seen, 8, PAGE));
	EXPECT_EQ(value, seen);
	EXPECT_EQ(-EFAULT, vfu_locate(vfu, RAM_ADDRESS + 4 * PAGE, 8, true, &place));
	shutdown(client, SHUT_RDWR);
	close(client);
	pthread_join(server, NULL);
	vfu_destroy(vfu);
	close(memory);
}

#define locate(address, length, write, place)	\
	vfu_locate(self->vfu, RAM_ADDRESS + (address), length, write, place)

static bool is_file(int fd, const struct vfu_place *place)
{
	struct stat status;
	bool same = !fstat(fd, &status) && place->device == status.st_dev &&
		    place->inode == status.st_ino && !fstat(place->fd, &status) &&
		    place->inode == status.st_ino;

	close(place->fd);
	return same;
}

TEST_F(vfu, memory_is_located)
{
	struct vfu_place place;

	EXPECT_EQ(-EACCES, locate(0, 8, false, &place));
	set_bus_master(true);
	EXPECT_EQ(-EFAULT, locate(0, 8, false, &place));
	ASSERT_EQ(0, map_memory(RAM_ADDRESS, 4 * PAGE, 3, self->ram_fd, PAGE));
	ASSERT_EQ(0, map_memory(RAM_ADDRESS + 4 * PAGE, PAGE, 1, self->ram_fd, 0));
	ASSERT_EQ(0, locate(PAGE + 8, PAGE, true, &place));
	EXPECT_EQ(2 * PAGE + 8, place.offset);
	EXPECT_TRUE(is_file(self->ram_fd, &place));
	/* Not beyond a mapping, and not against its flags. */
	EXPECT_EQ(-EFAULT, locate(3 * PAGE, 2 * PAGE, false, &place));
	EXPECT_EQ(-EACCES, locate(4 * PAGE, 8, true, &place));
	ASSERT_EQ(0, locate(4 * PAGE, 8, false, &place));
	EXPECT_TRUE(is_file(self->ram_fd, &place));
	/* Pages are contiguous if they are so in the file. */
	ASSERT_EQ(0, map_memory(RAM_ADDRESS + 5 * PAGE, PAGE, 3, self->ram_fd, PAGE));
	ASSERT_EQ(0, locate(4 * PAGE, 2 * PAGE, false, &place));
	EXPECT_EQ(0, place.offset);
	EXPECT_TRUE(is_file(self->ram_fd, &place));
	EXPECT_EQ(-EACCES, locate(4 * PAGE, 2 * PAGE, true, &place));
	ASSERT_EQ(0, unmap_memory(RAM_ADDRESS + 5 * PAGE, PAGE));
	ASSERT_EQ(0, map_memory(RAM_ADDRESS + 5 * PAGE, PAGE, 3, self->ram_fd, 2 * PAGE));
	EXPECT_EQ(-EFAULT, locate(4 * PAGE, 2 * PAGE, false, &place));
	/* The mapping behind a hole does not change. */
	ASSERT_EQ(0, unmap_memory(RAM_ADDRESS + PAGE, PAGE));
	EXPECT_EQ(-EFAULT, locate(PAGE, 8, false, &place));
	ASSERT_EQ(0, locate(2 * PAGE, 8, false, &place));
	EXPECT_EQ(3 * PAGE, place.offset);
	EXPECT_TRUE(is_file(self->ram_fd, &place));
}

/* The device is notified before the client gets the reply. */
TEST_F(vfu, the_end_of_a_mapping_is_told)
{
	uint16_t control = 0x8000;

	set_bus_master(true);
	ASSERT_EQ(0, map_memory(RAM_ADDRESS, 4 * PAGE, 3, self->ram_fd, 0));
	atomic_store(&unmapped_calls, 0);
	ASSERT_EQ(0, unmap_memory(RAM_ADDRESS + PAGE, PAGE));
	EXPECT_EQ(1, unmapped_calls);
	EXPECT_EQ(RAM_ADDRESS + PAGE, unmapped_address);
	set_bus_master(false);
	EXPECT_EQ(2, unmapped_calls);
	EXPECT_EQ(0, unmapped_address);
	set_bus_master(true);
	EXPECT_EQ(2, unmapped_calls);
	ASSERT_EQ(0, write_region(CONFIG, 0x78, &control, 2));
	EXPECT_EQ(3, unmapped_calls);
	EXPECT_EQ(0, unmap_range(self->client, &self->remote, ++self->id, 0, 0, 2));
	EXPECT_EQ(4, unmapped_calls);
}

/*
 * The client sends a request while the device waits for its reply, and replies only afterwards,
 * like a virtual CPU of QEMU that holds the lock for the reply. Otherwise both would deadlock.
 */
TEST_F(vfu, requests_are_answered_while_dma_waits)
{
	struct asker asker = { .vfu = self->vfu, .address = 0x1000 };
	uint8_t payload[PAGE];
	struct vfu_header header;
	struct pollfd ready = { .fd = self->client, .events = POLLIN };
	uint32_t value;

	set_bus_master(true);
	pthread_create(&asker.thread, NULL, ask_remote, &asker);
	ASSERT_EQ(1, poll(&ready, 1, 5000));
	ASSERT_TRUE(receive_message(self->client, &header, payload,
				    sizeof(payload), NULL));
	EXPECT_EQ(0, read_region(0, 0, &value, 4));
	EXPECT_EQ(0, read_region(CONFIG, 0, &value, 4));
	EXPECT_EQ(0x67701234, value);
	self->remote.value = 9;
	answer_dma(self->client, &self->remote, &header, payload);
	pthread_join(asker.thread, NULL);
	EXPECT_EQ(0, asker.result);
	EXPECT_EQ(9, asker.value);
}

/* Replies arrive in any order. */
TEST_F(vfu, several_dma_requests_at_once)
{
	static const int order[] = { 2, 0, 3, 1 };
	struct vfu_header headers[4];
	uint8_t payloads[4][64];
	struct asker askers[4];
	int i;

	set_bus_master(true);
	for (i = 0; i < 4; i++) {
		askers[i] = (struct asker){ .vfu = self->vfu,
					    .address = 0x1000 + 8 * i };
		pthread_create(&askers[i].thread, NULL, ask_remote, &askers[i]);
	}
	for (i = 0; i < 4; i++)
		ASSERT_TRUE(receive_message(self->client, &headers[i],
					    payloads[i], 64, NULL));
	for (i = 0; i < 4; i++) {
		memcpy(&self->remote.value, payloads[order[i]], 8);
		answer_dma(self->client, &self->remote, &headers[order[i]],
			   payloads[order[i]]);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(askers[i].thread, NULL);
		EXPECT_EQ(0, askers[i].result);
		EXPECT_EQ(askers[i].address, askers[i].value);
	}
}

struct poster {
	struct vfu *vfu;
	uint64_t address;
	unsigned int count;
};

static void *post(void *argument)
{
	struct poster *poster = argument;
	uint32_t i;

	for (i = 1; i <= poster->count; i++)
		vfu_dma_post(poster->vfu, poster->address, &i, sizeof(i));
	return NULL;
}

TEST_F(vfu, posted_writes_come_in_order)
{
	struct poster poster = { self->vfu, 0x2000, 1000 };
	struct vfu_statistics statistics;
	struct vfu_header header;
	uint8_t payload[64];
	pthread_t thread;
	uint32_t i, value, wrong = 0;

	set_bus_master(true);
	pthread_create(&thread, NULL, post, &poster);
	for (i = 1; i <= 1000; i++) {
		ASSERT_TRUE(receive_message(self->client, &header, payload,
					    sizeof(payload), NULL));
		memcpy(&value, payload + 16, 4);
		wrong += value != i || header.command != VFU_DMA_WRITE;
		answer_dma(self->client, &self->remote, &header, payload);
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(0, wrong);
	/* Most have no reply, but some have, which bounds the backlog. */
	EXPECT_EQ(1000, self->remote.posted + self->remote.writes);
	EXPECT_EQ(1000 / 64, self->remote.writes);
	vfu_statistics(self->vfu, &statistics);
	EXPECT_EQ(1000, statistics.posted_writes);
	EXPECT_EQ(0, statistics.posted_failed);
}

TEST_F(vfu, failed_posted_writes_are_counted)
{
	struct poster poster = { self->vfu, NOWHERE, 3 };
	struct vfu_statistics statistics;
	uint32_t value;

	set_bus_master(true);
	post(&poster);
	answer(self->client, &self->remote, 3);
	EXPECT_EQ(0, read_region(0, 0, &value, 4));
	vfu_statistics(self->vfu, &statistics);
	EXPECT_EQ(3, statistics.posted_failed);
}

/* --- What must not happen any more ---------------------------------------- */

struct hammer {
	struct vfu *vfu;
	uint64_t address;
	atomic_bool stop;
	_Atomic uint64_t done;
	pthread_t thread;
};

static void *hammer(void *argument)
{
	struct hammer *hammer = argument;
	uint64_t value = 0;

	while (!atomic_load(&hammer->stop)) {
		value++;
		if (!vfu_dma_write(hammer->vfu, hammer->address, &value, 8, 0))
			atomic_fetch_add(&hammer->done, 1);
	}
	return NULL;
}

static void begin_hammer(struct hammer *hammering, struct vfu *vfu)
{
	hammering->vfu = vfu;
	hammering->address = RAM_ADDRESS;
	pthread_create(&hammering->thread, NULL, hammer, hammering);
	while (atomic_load(&hammering->done) < 1000)
		;
}

/* Returns whether @word soon differs from @value. */
static bool changes(const uint64_t *word, uint64_t value)
{
	unsigned int tries;

	for (tries = 0; tries < 5000; tries++) {
		if (__atomic_load_n(word, __ATOMIC_RELAXED) != value)
			return true;
		usleep(1000);
	}
	return false;
}

/* After the reply to UNMAP the memory may be reused. */
TEST_F(vfu, nothing_is_written_after_unmap)
{
	struct hammer hammering = { 0 };
	uint64_t *word = (uint64_t *)self->ram;
	unsigned int i, round;

	set_bus_master(true);
	ASSERT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 3, self->ram_fd, 0));
	begin_hammer(&hammering, self->vfu);
	for (round = 0; round < 20; round++) {
		/* While it is unmapped, writes arrive as messages. */
		ASSERT_EQ(0, unmap_memory(RAM_ADDRESS, PAGE));
		*word = ~0ULL;
		for (i = 0; i < 100; i++)
			answer(self->client, &self->remote, 1);
		EXPECT_EQ(~0ULL, *word);
		ASSERT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 3, self->ram_fd, 0));
	}
	atomic_store(&hammering.stop, true);
	pthread_join(hammering.thread, NULL);
}

TEST_F(vfu, nothing_is_written_after_a_reset)
{
	struct hammer hammering = { 0 };
	uint64_t *word = (uint64_t *)self->ram;
	uint16_t control = 0x8000;
	unsigned int round;

	ASSERT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 3, self->ram_fd, 0));
	set_bus_master(true);
	begin_hammer(&hammering, self->vfu);
	for (round = 0; round < 20; round++) {
		ASSERT_EQ(0, write_region(CONFIG, 0x78, &control, 2));
		*word = ~0ULL;
		usleep(2000);
		EXPECT_EQ(~0ULL, *word);
		EXPECT_EQ(round + 1, resets);
		EXPECT_EQ(VFU_RESET_FUNCTION, last_reset);
		set_bus_master(true);
		EXPECT_TRUE(changes(word, ~0ULL));
	}
	atomic_store(&hammering.stop, true);
	pthread_join(hammering.thread, NULL);
}

TEST_F(vfu, parts_of_a_mapping_are_unmapped)
{
	struct vfu_statistics statistics;
	uint64_t value = 3;

	set_bus_master(true);
	ASSERT_EQ(0, map_memory(RAM_ADDRESS, 8 * PAGE, 3, self->ram_fd, 0));
	ASSERT_EQ(0, unmap_memory(RAM_ADDRESS + 2 * PAGE, 3 * PAGE));
	vfu_statistics(self->vfu, &statistics);
	EXPECT_EQ(2, statistics.ranges);
	EXPECT_EQ(0, vfu_dma_write(self->vfu, RAM_ADDRESS + PAGE, &value, 8,
				   0));
	EXPECT_EQ(0, vfu_dma_write(self->vfu, RAM_ADDRESS + 5 * PAGE, &value, 8,
				   0));
	EXPECT_EQ(3, *(uint64_t *)(self->ram + 5 * PAGE));
	/* The hole can be mapped, the rest not again. */
	EXPECT_EQ(EEXIST, map_memory(RAM_ADDRESS + PAGE, PAGE, 3, self->ram_fd,
				     0));
	EXPECT_EQ(0, map_memory(RAM_ADDRESS + 2 * PAGE, 3 * PAGE, 3,
				self->ram_fd, 8 * PAGE));
	/* Unmapping nothing succeeds, and so does unmapping everything. */
	EXPECT_EQ(0, unmap_memory(0x10000, PAGE));
	EXPECT_EQ(0, unmap_range(self->client, &self->remote, ++self->id, 0, 0,
				 2));
	vfu_statistics(self->vfu, &statistics);
	EXPECT_EQ(0, statistics.ranges);
}

/* QEMU maps and unmaps thousands of ranges behind an IOMMU. */
TEST_F(vfu, many_mappings)
{
	uint64_t value, i, wrong = 0;

	set_bus_master(true);
	/* In an order that is neither ascending nor descending. */
	for (i = 0; i < 997; i++)
		ASSERT_EQ(0, map_memory(RAM_ADDRESS + (i * 31 % 997) * 2 * PAGE,
					PAGE, 3, self->ram_fd,
					i * 31 % 997 % 16 * PAGE));
	for (i = 0; i < 16; i++)
		*(uint64_t *)(self->ram + i * PAGE) = i;
	for (i = 0; i < 997; i++) {
		wrong += vfu_dma_read(self->vfu, RAM_ADDRESS + i * 2 * PAGE,
				      &value, 8, 0) != 0;
		wrong += value != i % 16;
	}
	EXPECT_EQ(0, wrong);
	for (i = 0; i < 997; i++)
		ASSERT_EQ(0, unmap_memory(RAM_ADDRESS +
					  (i * 17 % 997) * 2 * PAGE, PAGE));
}

TEST_F(vfu, reset_message)
{
	struct request request = { .command = VFU_RESET };
	uint64_t value = 0;
	uint16_t command;

	set_bus_master(true);
	ASSERT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 3, self->ram_fd, 0));
	ask(&request);
	EXPECT_EQ(0, request.error);
	EXPECT_EQ(1, resets);
	EXPECT_EQ(VFU_RESET_BUS, last_reset);
	EXPECT_EQ(0, read_region(CONFIG, 4, &command, 2));
	EXPECT_EQ(0, command);
	EXPECT_EQ(-EACCES, vfu_dma_read(self->vfu, RAM_ADDRESS, &value, 8, 0));
	/* The map belongs to the client and survives the reset. */
	set_bus_master(true);
	EXPECT_EQ(0, vfu_dma_read(self->vfu, RAM_ADDRESS, &value, 8, 0));
}

/* A reset fails a pending request. */
TEST_F(vfu, a_reset_ends_waiting)
{
	struct asker asker = { .vfu = self->vfu, .address = 0x1000 };
	struct vfu_header header;
	uint16_t control = 0x8000;
	uint8_t payload[64];

	set_bus_master(true);
	pthread_create(&asker.thread, NULL, ask_remote, &asker);
	ASSERT_TRUE(receive_message(self->client, &header, payload,
				    sizeof(payload), NULL));
	EXPECT_EQ(0, write_region(CONFIG, 0x78, &control, 2));
	pthread_join(asker.thread, NULL);
	EXPECT_EQ(-ECANCELED, asker.result);
	/* The late reply has no waiter. */
	answer_dma(self->client, &self->remote, &header, payload);
	EXPECT_EQ(0, read_region(CONFIG, 0x78, &control, 2));
	EXPECT_EQ(0, control & 0x8000);
}

TEST_F(vfu, the_client_leaves)
{
	struct asker asker = { .vfu = self->vfu, .address = 0x1000 };
	struct vfu_statistics statistics;
	struct vfu_header header;
	uint8_t payload[64];
	uint32_t value;

	set_bus_master(true);
	ASSERT_EQ(0, map_memory(RAM_ADDRESS, PAGE, 3, self->ram_fd, 0));
	pthread_create(&asker.thread, NULL, ask_remote, &asker);
	ASSERT_TRUE(receive_message(self->client, &header, payload,
				    sizeof(payload), NULL));
	shutdown(self->client, SHUT_RDWR);
	close(self->client);
	pthread_join(asker.thread, NULL);
	EXPECT_EQ(-ECANCELED, asker.result);
	pthread_join(self->server, NULL);
	EXPECT_EQ(VFU_RESET_CLIENT_GONE, last_reset);
	vfu_statistics(self->vfu, &statistics);
	EXPECT_EQ(0, statistics.ranges);
	EXPECT_NE(0, vfu_dma_read(self->vfu, RAM_ADDRESS, &value, 4, 0));
	/* Another client may connect. */
	connect_client(self->vfu, &self->server, &self->client);
	EXPECT_EQ(0, read_region(CONFIG, 0, &value, 4));
	EXPECT_EQ(0x67701234, value);
}

TEST(senseless_devices_are_refused)
{
	struct vfu_device device = { .vectors = 1, .bar_read = device_read,
				     .bar_write = device_write,
				     .reset = device_reset };
	struct vfu *vfu = vfu_create(&device, NULL);

	EXPECT_NE(NULL, vfu);
	vfu_destroy(vfu);
	device.vectors = 3;
	EXPECT_EQ(NULL, vfu_create(&device, NULL));
	device.vectors = 16;
	EXPECT_EQ(NULL, vfu_create(&device, NULL));
	device.vectors = 1;
	device.bars[0].size = 3;
	EXPECT_EQ(NULL, vfu_create(&device, NULL));
	device.bars[0] = (struct vfu_bar){ .size = PAGE, .is_64bit = true };
	device.bars[1].size = PAGE;
	EXPECT_EQ(NULL, vfu_create(&device, NULL));
}

TEST_HARNESS_MAIN
