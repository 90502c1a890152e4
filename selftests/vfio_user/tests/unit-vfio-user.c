// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vfio-user server with a test client instead of QEMU: every message, invalid and concurrent
 * requests, and no access to memory after UNMAP, a reset, or with bus mastering off. Runs without
 * a guest.
 */
#include <errno.h>
#include <fcntl.h>
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

#include <linux/pci_regs.h>

#include "client.h"
#include "vfio_user.h"

#include "kselftest_harness.h"

#define PAGE		4096U
#define PAGES		16U
#define RAM(page)	(0x40000000ULL + (uint64_t)((page) * (long)PAGE))
#define UNMAPPED	0x1000ULL	/* served by the client */
#define NOWHERE		0xdead0000ULL	/* refused by the client */
#define BAR0_BYTES	PAGE
#define BAR2_BYTES	(4 * PAGE)
#define PM_CONTROL	0x44
#define DEVICE_CONTROL	0x78
#define EVENTFDS	(VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER)

/* --- The device: its callbacks; one device at a time -------------------------- */

static uint8_t registers[BAR0_BYTES];
static _Atomic unsigned int resets;
static _Atomic unsigned int last_reset;
static _Atomic uint64_t unmapped_address;
static _Atomic unsigned int unmapped_calls;

static void device_read(void *context, unsigned int bar, uint64_t offset, void *data,
			uint32_t count)
{
	memcpy(data, registers + offset, count);
}

static void device_write(void *context, unsigned int bar, uint64_t offset, const void *data,
			 uint32_t count)
{
	memcpy(registers + offset, data, count);
}

static void device_reset(void *context, enum vfu_reset why)
{
	atomic_store(&last_reset, why);
	atomic_fetch_add(&resets, 1);
}

static void device_unmapped(void *context, uint64_t address, uint64_t size)
{
	atomic_store(&unmapped_address, address);
	atomic_fetch_add(&unmapped_calls, 1);
}

/* --- The client ---------------------------------------------------------- */

/* A client whose unmapped memory is one word. */
struct remote {
	struct client client;
	unsigned int writes;
	unsigned int posted;
	uint64_t address;
	uint64_t value;
};

/* Fails for unmapped memory like QEMU. */
static int remote_dma(struct client *client, struct vfu_message *asked)
{
	struct remote *remote = (struct remote *)client;
	char *data = asked->payload + sizeof(asked->dma);
	size_t length = asked->dma.count < 8 ? asked->dma.count : 8;

	if (asked->dma.address == NOWHERE)
		return ENODEV;
	remote->address = asked->dma.address;
	if (asked->header.command == VFU_DMA_READ) {
		memcpy(data, &remote->value, length);
		return 0;
	}
	memcpy(&remote->value, data, length);
	++*(asked->header.flags & VFU_FLAG_NO_REPLY ? &remote->posted : &remote->writes);
	return 0;
}

struct server {
	struct vfu *vfu;
	int socket;
	pthread_t thread;
};

static void *serve(void *argument)
{
	struct server *server = argument;

	vfu_serve(server->vfu, server->socket);
	return NULL;
}

static void connect_client(struct server *server, struct client *client)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		abort();
	client->socket = pair[0];
	server->socket = pair[1];
	pthread_create(&server->thread, NULL, serve, server);
}

static void disconnect_client(struct server *server, struct client *client)
{
	shutdown(client->socket, SHUT_RDWR);
	close(client->socket);
	pthread_join(server->thread, NULL);
}

FIXTURE(vfu)
{
	struct vfu_device device;
	struct vfu *vfu;
	struct server server;
	struct remote remote;
	struct client *client;
	int ram_fd;
	char *ram;
	int bar_fd;
};

FIXTURE_SETUP(vfu)
{
	self->bar_fd = memfd_create("bar2", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(self->bar_fd, BAR2_BYTES));
	self->ram_fd = memfd_create("ram", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(self->ram_fd, PAGES * PAGE));
	self->ram = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, self->ram_fd, 0);
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
	self->vfu = vfu_create(&self->device, NULL, -1);
	ASSERT_NE(NULL, self->vfu);
	self->server.vfu = self->vfu;
	self->remote.client.dma = remote_dma;
	self->client = &self->remote.client;
	connect_client(&self->server, self->client);
}

FIXTURE_TEARDOWN(vfu)
{
	disconnect_client(&self->server, self->client);
	vfu_destroy(self->vfu);
	munmap(self->ram, PAGES * PAGE);
	close(self->ram_fd);
	close(self->bar_fd);
}

/* Map @pages from @page on to the memory from @file_page on. */
static int map_ram(FIXTURE_DATA(vfu) *self, unsigned int page, unsigned int pages, uint32_t flags,
		   unsigned int file_page)
{
	return client_map(self->client, RAM(page), (uint64_t)pages * PAGE, flags, self->ram_fd,
			  (uint64_t)file_page * PAGE);
}

static int unmap_ram(FIXTURE_DATA(vfu) *self, unsigned int page, unsigned int pages)
{
	return client_unmap(self->client, RAM(page), (uint64_t)pages * PAGE, 0);
}

static int reset_function(FIXTURE_DATA(vfu) *self)
{
	const uint16_t control = PCI_EXP_DEVCTL_BCR_FLR;

	return client_write(self->client, CLIENT_CONFIG, DEVICE_CONTROL, &control, 2);
}

static int dma_write(FIXTURE_DATA(vfu) *self, unsigned int page, uint64_t value)
{
	return vfu_dma_write(self->vfu, RAM(page), &value, 8, 0);
}

static int dma_read(FIXTURE_DATA(vfu) *self, unsigned int page, uint64_t *value)
{
	return vfu_dma_read(self->vfu, RAM(page), value, 8, 0);
}

/* Receive a request of the device, and serve requests. */
static bool receive(FIXTURE_DATA(vfu) *self, struct vfu_message *message)
{
	return vfu_receive(self->client->socket, message) == 1;
}

static bool answer(FIXTURE_DATA(vfu) *self, unsigned int count)
{
	struct vfu_message message;

	while (count && receive(self, &message) && !client_answer(self->client, &message))
		count--;
	return !count;
}

/* --- Handshake and description -------------------------------------------- */

TEST_F(vfu, version)
{
	struct vfu_message message = { .version = { 0 } };
	size_t length;

	ASSERT_EQ(0, client_ask(self->client, &message, VFU_VERSION, 214));
	length = message.header.size - sizeof(message.header);
	EXPECT_LE(length, 214);
	EXPECT_EQ(0, message.payload[length - 1]);
	EXPECT_NE(NULL, strstr(message.payload + 4, "max_msg_fds"));
	message.version.major = 1;
	EXPECT_EQ(-ENOTSUP, client_ask(self->client, &message, VFU_VERSION, 214));
}

TEST_F(vfu, device_and_regions)
{
	static const struct {
		uint32_t index;
		uint32_t flags;
		uint64_t size;
	} regions[] = {
		{ 0, 3, BAR0_BYTES }, { 1, 0, 0 }, { 2, 7, BAR2_BYTES }, { CLIENT_CONFIG, 3, 4096 },
	};
	struct vfu_message message = { .fd_count = 0 };
	struct stat one, two;
	unsigned int i;

	ASSERT_EQ(0, client_ask(self->client, &message, VFU_GET_INFO, 16));
	EXPECT_EQ(16, message.header.size - sizeof(message.header));
	EXPECT_EQ(3, message.info.flags);
	EXPECT_EQ(9, message.info.num_regions);
	for (i = 0; i < 4; i++) {
		message.region.index = regions[i].index;
		ASSERT_EQ(0, client_ask(self->client, &message, VFU_GET_REGION_INFO, 32));
		EXPECT_EQ(regions[i].flags, message.region.flags);
		EXPECT_EQ(regions[i].size, message.region.size);
		ASSERT_EQ(regions[i].index == 2, message.fd_count);
		if (!message.fd_count)
			continue;
		EXPECT_EQ(0, fstat(message.fds[0], &one));
		EXPECT_EQ(0, fstat(self->bar_fd, &two));
		EXPECT_EQ(two.st_ino, one.st_ino);
		vfu_message_close(&message);
	}
	message.region.index = VFIO_PCI_NUM_REGIONS;
	EXPECT_EQ(-EINVAL, client_ask(self->client, &message, VFU_GET_REGION_INFO, 32));
}

TEST_F(vfu, config_space)
{
	bool found[256] = { false };
	uint16_t half = 0xffff;
	uint8_t next, id;
	uint32_t value;

	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, PCI_VENDOR_ID, &value, 4));
	EXPECT_EQ(0x67701234, value);
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, PCI_CLASS_REVISION, &value, 4));
	EXPECT_EQ(0x12000000, value);
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, PCI_BASE_ADDRESS_2, &value, 4));
	EXPECT_EQ(0xc, value & 0xf);
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, PCI_CAPABILITY_LIST, &next, 1));
	while (next) {
		EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, next, &id, 1));
		found[id] = true;
		EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, next + 1, &next, 1));
	}
	EXPECT_TRUE(found[PCI_CAP_ID_MSI]);
	EXPECT_TRUE(found[PCI_CAP_ID_EXP]);
	/* QEMU crashes if a device with MSI-X is unplugged. */
	EXPECT_FALSE(found[PCI_CAP_ID_MSIX]);
	EXPECT_EQ(0, client_write(self->client, CLIENT_CONFIG, PCI_VENDOR_ID, &half, 2));
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, PCI_VENDOR_ID, &half, 2));
	EXPECT_EQ(0x1234, half);
}

TEST_F(vfu, accesses_to_a_region)
{
	static const struct {
		uint32_t region;
		uint64_t offset;
		uint32_t count;
	} outside[] = {
		{ 0, BAR0_BYTES - 4, 8 }, { 1, 0, 4 }, { 8, 0, 4 },
		{ CLIENT_CONFIG, 4094, 4 }, { CLIENT_CONFIG, UINT64_MAX, 4 },
	};
	uint64_t value = 0x1122334455667788;
	unsigned int i;

	EXPECT_EQ(0, client_write(self->client, 0, 0x10, &value, 8));
	EXPECT_EQ(0, memcmp(registers + 0x10, &value, 8));
	EXPECT_EQ(0, client_read(self->client, 0, 0x14, &value, 4));
	EXPECT_EQ(0x11223344, (uint32_t)value);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(-EINVAL, client_read(self->client, outside[i].region,
					       outside[i].offset, &value, outside[i].count));
		EXPECT_EQ(-EINVAL, client_write(self->client, outside[i].region,
						outside[i].offset, &value, outside[i].count));
	}
}

/* The rest of a short message must not be that of an earlier, valid one. */
TEST_F(vfu, unknown_and_short_messages)
{
	static const struct {
		uint16_t command;
		size_t length;
		int error;
	} messages[] = {
		{ 0, 4, ENOTSUP }, { VFU_DMA_READ, 16, ENOTSUP }, { 99, 4, ENOTSUP },
		{ VFU_VERSION, 3, EINVAL }, { VFU_DMA_MAP, 31, EINVAL },
		{ VFU_DMA_UNMAP, 23, EINVAL }, { VFU_GET_INFO, 3, EINVAL },
		{ VFU_GET_REGION_INFO, 31, EINVAL }, { VFU_GET_IRQ_INFO, 15, EINVAL },
		{ VFU_SET_IRQS, 19, EINVAL }, { VFU_REGION_READ, 15, EINVAL },
		{ VFU_REGION_WRITE, 15, EINVAL },
		{ VFU_REGION_WRITE, 19, EINVAL },	/* 3 of 4 bytes */
	};
	struct vfu_message message;
	uint32_t word;
	unsigned int i;

	for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		ASSERT_EQ(0, client_read(self->client, 0, 0, &word, 4));
		ASSERT_EQ(0, unmap_ram(self, 0, 1));
		message.fd_count = 0;
		memset(message.payload, 0, 64);
		message.access.count = messages[i].command == VFU_REGION_WRITE ? 4 : 0;
		EXPECT_EQ(-messages[i].error, client_ask(self->client, &message, messages[i].command,
							 messages[i].length))
			TH_LOG("command %u", messages[i].command);
	}
	/* Still there. */
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, 0, &word, 4));
}

TEST_F(vfu, a_senseless_header_ends_the_connection)
{
	static const uint32_t sizes[] = { 3, sizeof(struct vfu_message) + 1 };
	unsigned int i;
	char byte;

	for (i = 0; i < 2; i++) {
		struct vfu_header header = { .id = 1, .command = VFU_VERSION, .size = sizes[i] };

		ASSERT_EQ(sizeof(header), send(self->client->socket, &header, sizeof(header), 0));
		EXPECT_EQ(0, recv(self->client->socket, &byte, 1, 0));
		disconnect_client(&self->server, self->client);
		connect_client(&self->server, self->client);
	}
}

/* --- Interrupts ---------------------------------------------------------- */

static int set_irqs(FIXTURE_DATA(vfu) *self, uint32_t index, uint32_t flags, uint32_t start,
		    uint32_t count, const int *fds)
{
	struct vfu_message message = { .irqs = { 20, flags, index, start, count } };

	if (fds) {
		message.fd_count = count;
		memcpy(message.fds, fds, count * sizeof(*fds));
	}
	return client_ask(self->client, &message, VFU_SET_IRQS, sizeof(message.irqs));
}

TEST_F(vfu, interrupts)
{
	const uint32_t msi = VFIO_PCI_MSI_IRQ_INDEX;
	int fds[2] = { eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK) };
	struct vfu_message message = { .irq = { .index = msi } };
	uint64_t count;

	ASSERT_EQ(0, client_ask(self->client, &message, VFU_GET_IRQ_INFO, 16));
	EXPECT_EQ(4, message.irq.count);
	message.irq.index = VFIO_PCI_NUM_IRQS;
	EXPECT_EQ(-EINVAL, client_ask(self->client, &message, VFU_GET_IRQ_INFO, 16));
	EXPECT_EQ(-ENXIO, vfu_interrupt(self->vfu, 0));
	EXPECT_EQ(0, set_irqs(self, msi, EVENTFDS, 0, 2, fds));
	EXPECT_EQ(0, vfu_interrupt(self->vfu, 1));
	EXPECT_EQ(0, vfu_interrupt(self->vfu, 1));
	EXPECT_EQ(8, read(fds[1], &count, 8));
	EXPECT_EQ(2, count);
	EXPECT_EQ(-1, read(fds[0], &count, 8));
	/* A vector without a file is disarmed. */
	EXPECT_EQ(0, set_irqs(self, msi, EVENTFDS, 1, 1, NULL));
	EXPECT_EQ(-ENXIO, vfu_interrupt(self->vfu, 1));
	EXPECT_EQ(0, vfu_interrupt(self->vfu, 0));
	EXPECT_EQ(0, set_irqs(self, msi, VFIO_IRQ_SET_DATA_NONE, 0, 0, NULL));
	EXPECT_EQ(-ENXIO, vfu_interrupt(self->vfu, 0));
	EXPECT_EQ(-EINVAL, set_irqs(self, msi, EVENTFDS, 3, 2, fds));
	EXPECT_EQ(-EINVAL, set_irqs(self, 0, EVENTFDS, 0, 1, fds));
	EXPECT_EQ(-ENXIO, vfu_interrupt(self->vfu, 99));
	close(fds[0]);
	close(fds[1]);
}

/* --- DMA ----------------------------------------------------------------- */

TEST_F(vfu, flags_of_a_mapping_are_obeyed)
{
	uint64_t value = 1;

	client_enable(self->client, true);
	ASSERT_EQ(0, map_ram(self, 0, 1, VFIO_DMA_MAP_FLAG_READ, 0));
	ASSERT_EQ(0, map_ram(self, 1, 1, VFIO_DMA_MAP_FLAG_WRITE, 1));
	EXPECT_EQ(-EACCES, dma_write(self, 0, value));
	EXPECT_EQ(0, dma_read(self, 0, &value));
	EXPECT_EQ(-EACCES, dma_read(self, 1, &value));
	EXPECT_EQ(-EACCES, vfu_dma_read(self->vfu, RAM(1), &value, 8, VFU_DMA_MESSAGE));
	EXPECT_EQ(0, dma_write(self, 1, value));
	EXPECT_EQ(-EINVAL, map_ram(self, 4, 1, 4, 0));
	EXPECT_EQ(-EINVAL, map_ram(self, 4, 0, CLIENT_RW, 0));
	EXPECT_EQ(-EINVAL, client_map(self->client, -(uint64_t)PAGE, 2 * PAGE, CLIENT_RW,
				      self->ram_fd, 0));
	EXPECT_EQ(-EEXIST, map_ram(self, 0, 4, CLIENT_RW, 0));
}

/* By the command register, or in the low power state D3. */
TEST_F(vfu, bus_mastering_off_stops_dma)
{
	static const struct {
		uint32_t offset;
		uint16_t value;
		int result;
	} writes[] = {
		{ PCI_COMMAND, 2, -EACCES }, { PCI_COMMAND, 6, 0 }, { PM_CONTROL, 3, -EACCES },
		{ PM_CONTROL, 0, 0 }, { PCI_COMMAND, 2, -EACCES },
	};
	uint64_t value = 5;
	unsigned int i;

	ASSERT_EQ(0, map_ram(self, 0, 1, CLIENT_RW, 0));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, client_write(self->client, CLIENT_CONFIG, writes[i].offset,
					  &writes[i].value, 2));
		EXPECT_EQ(writes[i].result, dma_write(self, 0, value));
		EXPECT_EQ(writes[i].result, dma_read(self, 0, &value));
		EXPECT_EQ(writes[i].result, vfu_dma_post(self->vfu, UNMAPPED, &value, 4));
	}
}

/* An access by message of another thread, while this one is the client. */
struct asker {
	struct vfu *vfu;
	uint64_t address;
	uint64_t value;
	bool write;
	const void *data;	/* to write in place of @value */
	size_t length;
	unsigned int flags;
	int result;
	pthread_t thread;
};

static void *ask_remote(void *argument)
{
	struct asker *asker = argument;

	if (asker->data)
		asker->result = vfu_dma_write(asker->vfu, asker->address, asker->data,
					      asker->length, asker->flags);
	else if (asker->write)
		asker->result = vfu_dma_write(asker->vfu, asker->address, &asker->value, 8, 0);
	else
		asker->result = vfu_dma_read(asker->vfu, asker->address, &asker->value, 8, 0);
	return NULL;
}

static void begin(struct asker *asker, struct vfu *vfu)
{
	asker->vfu = vfu;
	pthread_create(&asker->thread, NULL, ask_remote, asker);
}

static int result_of(struct asker *asker)
{
	pthread_join(asker->thread, NULL);
	return asker->result;
}

/* A mapping without a file is legal: the device's own BAR comes that way. */
TEST_F(vfu, memory_without_a_file_is_accessed_by_message)
{
	struct asker askers[] = {
		{ .address = UNMAPPED, .value = 77, .write = true },
		{ .address = UNMAPPED },
		{ .address = RAM(0) + 8, .value = 78, .write = true },
		{ .address = NOWHERE, .result = -EFAULT },
	};
	unsigned int i;

	client_enable(self->client, true);
	ASSERT_EQ(0, client_map(self->client, RAM(0), PAGE, CLIENT_RW, -1, 0));
	for (i = 0; i < 4; i++) {
		int expected = askers[i].result;

		begin(&askers[i], self->vfu);
		EXPECT_TRUE(answer(self, 1));
		EXPECT_EQ(expected, result_of(&askers[i]));
		if (expected)
			continue;
		EXPECT_EQ(askers[i].address, self->remote.address);
		EXPECT_EQ(askers[i].value, self->remote.value);
	}
	EXPECT_EQ(77, askers[1].value);
}

/* Parts of an access are mapped or not, or too long for a message. */
TEST_F(vfu, a_long_access_is_divided)
{
	static const char data[18 * PAGE] = { [17 * PAGE] = 'x' };
	struct asker direct = { .address = RAM(-17), .data = data, .length = sizeof(data) };
	struct asker message = direct;

	message.flags = VFU_DMA_MESSAGE;
	client_enable(self->client, true);
	ASSERT_EQ(0, map_ram(self, 0, 1, CLIENT_RW, 0));
	begin(&direct, self->vfu);
	EXPECT_TRUE(answer(self, 2));
	EXPECT_EQ(0, result_of(&direct));
	EXPECT_EQ(RAM(-1), self->remote.address);
	EXPECT_EQ('x', self->ram[0]);
	begin(&message, self->vfu);
	EXPECT_TRUE(answer(self, 3));
	EXPECT_EQ(0, result_of(&message));
	EXPECT_EQ(RAM(0), self->remote.address);
	EXPECT_EQ('x', self->remote.value);
	EXPECT_EQ(1, vfu_counted(self->vfu, VFU_MAPPED_WRITES));
}

/* A mapping of the size of the neighbour's memory is that memory. */
TEST_F(vfu, memory_of_a_neighbour)
{
	int memory = memfd_create("neighbour", MFD_CLOEXEC);
	struct server server = { 0 };
	uint64_t value = 79, seen = 0;
	struct client client = { 0 };
	struct vfu_place place;

	ASSERT_EQ(0, ftruncate(memory, 4 * PAGE));
	server.vfu = vfu_create(&self->device, NULL, memory);
	ASSERT_NE(NULL, server.vfu);
	connect_client(&server, &client);
	ASSERT_EQ(0, client_enable(&client, true));
	ASSERT_EQ(0, client_map(&client, RAM(0), 4 * PAGE, CLIENT_RW, -1, 0));
	ASSERT_EQ(0, client_map(&client, RAM(4), PAGE, CLIENT_RW, -1, 0));
	ASSERT_EQ(0, client_map(&client, RAM(5), PAGE, CLIENT_RW, self->ram_fd, 0));
	EXPECT_EQ(0, vfu_dma_write(server.vfu, RAM(1), &value, 8, 0));
	EXPECT_EQ(8, pread(memory, &seen, 8, PAGE));
	EXPECT_EQ(value, seen);
	ASSERT_EQ(0, vfu_locate(server.vfu, RAM(1) + 8, 8, true, &place));
	EXPECT_TRUE(place.neighbour);
	EXPECT_EQ(PAGE + 8, place.offset);
	EXPECT_EQ(-EFAULT, vfu_locate(server.vfu, RAM(4), 8, true, &place));
	ASSERT_EQ(0, vfu_locate(server.vfu, RAM(5), 8, true, &place));
	EXPECT_FALSE(place.neighbour);
	disconnect_client(&server, &client);
	vfu_destroy(server.vfu);
	close(memory);
}

/* The page of the memory that is located, or a negative errno. */
static int locate(FIXTURE_DATA(vfu) *self, unsigned int page, unsigned int pages, bool write)
{
	struct stat status, located;
	struct vfu_place place;
	int ret = vfu_locate(self->vfu, RAM(page), (size_t)pages * PAGE, write, &place);

	if (ret)
		return ret;
	if (fstat(self->ram_fd, &status) || place.device != status.st_dev ||
	    place.inode != status.st_ino || fstat(place.fd, &located) ||
	    located.st_ino != status.st_ino || place.offset % PAGE)
		return -EBADF;
	return (int)(place.offset / PAGE);
}

TEST_F(vfu, memory_is_located)
{
	struct vfu_place place;

	EXPECT_EQ(-EACCES, locate(self, 0, 1, false));
	client_enable(self->client, true);
	EXPECT_EQ(-EFAULT, locate(self, 0, 1, false));
	ASSERT_EQ(0, map_ram(self, 0, 4, CLIENT_RW, 1));
	ASSERT_EQ(0, map_ram(self, 4, 1, VFIO_DMA_MAP_FLAG_READ, 0));
	EXPECT_EQ(2, locate(self, 1, 2, true));
	ASSERT_EQ(0, vfu_locate(self->vfu, RAM(1) + 8, PAGE, true, &place));
	EXPECT_EQ(2 * PAGE + 8, place.offset);
	/* Not beyond a mapping, and not against its flags. */
	EXPECT_EQ(-EFAULT, locate(self, 3, 2, false));
	EXPECT_EQ(-EACCES, locate(self, 4, 1, true));
	EXPECT_EQ(0, locate(self, 4, 1, false));
	/* Pages are contiguous if they are so in the file. */
	ASSERT_EQ(0, map_ram(self, 5, 1, CLIENT_RW, 1));
	EXPECT_EQ(0, locate(self, 4, 2, false));
	EXPECT_EQ(-EACCES, locate(self, 4, 2, true));
	ASSERT_EQ(0, unmap_ram(self, 5, 1));
	ASSERT_EQ(0, map_ram(self, 5, 1, CLIENT_RW, 2));
	EXPECT_EQ(-EFAULT, locate(self, 4, 2, false));
	/* The mapping behind a hole does not change. */
	ASSERT_EQ(0, unmap_ram(self, 0, 4));
	EXPECT_EQ(-EFAULT, locate(self, 3, 1, false));
	EXPECT_EQ(0, locate(self, 4, 1, false));
}

/* The device is notified before the client gets the reply. */
TEST_F(vfu, the_end_of_a_mapping_is_told)
{
	client_enable(self->client, true);
	ASSERT_EQ(0, map_ram(self, 1, 3, CLIENT_RW, 0));
	EXPECT_EQ(-EINVAL, unmap_ram(self, 1, 1));
	EXPECT_EQ(0, unmapped_calls);
	ASSERT_EQ(0, unmap_ram(self, 1, 3));
	EXPECT_EQ(1, unmapped_calls);
	EXPECT_EQ(RAM(1), unmapped_address);
	client_enable(self->client, false);
	EXPECT_EQ(2, unmapped_calls);
	EXPECT_EQ(0, unmapped_address);
	client_enable(self->client, true);
	EXPECT_EQ(2, unmapped_calls);
	ASSERT_EQ(0, reset_function(self));
	EXPECT_EQ(3, unmapped_calls);
	EXPECT_EQ(0, client_unmap(self->client, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL));
	EXPECT_EQ(4, unmapped_calls);
}

/*
 * The client sends a request while the device waits for its replies, and replies only afterwards,
 * in any order, like a virtual CPU of QEMU that holds the lock for the reply. Otherwise both would
 * deadlock.
 */
TEST_F(vfu, requests_are_answered_while_dma_waits)
{
	static const int order[] = { 2, 0, 3, 1 };
	struct vfu_message messages[4];
	struct asker askers[4];
	uint32_t value;
	int i;

	client_enable(self->client, true);
	for (i = 0; i < 4; i++) {
		askers[i] = (struct asker){ .address = UNMAPPED + 8 * i };
		begin(&askers[i], self->vfu);
	}
	for (i = 0; i < 4; i++)
		ASSERT_TRUE(receive(self, &messages[i]));
	EXPECT_EQ(0, client_read(self->client, 0, 0, &value, 4));
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, 0, &value, 4));
	EXPECT_EQ(0x67701234, value);
	for (i = 0; i < 4; i++) {
		self->remote.value = messages[order[i]].dma.address;
		EXPECT_EQ(0, client_answer(self->client, &messages[order[i]]));
	}
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, result_of(&askers[i]));
		EXPECT_EQ(askers[i].address, askers[i].value);
	}
}

static void *post_1000(void *vfu)
{
	uint32_t i;

	for (i = 1; i <= 1000; i++)
		vfu_dma_post(vfu, UNMAPPED, &i, sizeof(i));
	return NULL;
}

TEST_F(vfu, posted_writes_come_in_order)
{
	struct vfu_message message;
	uint32_t i, value = 0, wrong = 0;
	pthread_t thread;

	client_enable(self->client, true);
	pthread_create(&thread, NULL, post_1000, self->vfu);
	for (i = 1; i <= 1000; i++) {
		ASSERT_TRUE(receive(self, &message));
		EXPECT_EQ(0, client_answer(self->client, &message));
		wrong += self->remote.value != i || self->remote.address != UNMAPPED;
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(0, wrong);
	/* Most have no reply, but some have, which bounds the backlog. */
	EXPECT_EQ(1000, self->remote.posted + self->remote.writes);
	EXPECT_EQ(1000 / 64, self->remote.writes);
	EXPECT_EQ(1000, vfu_counted(self->vfu, VFU_POSTED_WRITES));
	EXPECT_EQ(0, vfu_counted(self->vfu, VFU_POSTED_FAILED));
	/* A failed one has a reply, which arrives before that of a later request. */
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, vfu_dma_post(self->vfu, NOWHERE, &value, 4));
	EXPECT_TRUE(answer(self, 3));
	EXPECT_EQ(0, client_read(self->client, 0, 0, &value, 4));
	EXPECT_EQ(3, vfu_counted(self->vfu, VFU_POSTED_FAILED));
}

/* --- What must not happen any more ---------------------------------------- */

struct hammer {
	struct vfu *vfu;
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
		if (!vfu_dma_write(hammer->vfu, RAM(0), &value, 8, 0))
			atomic_fetch_add(&hammer->done, 1);
	}
	return NULL;
}

static void wait_for_writes(struct hammer *hammering)
{
	uint64_t begin = atomic_load(&hammering->done);

	while (atomic_load(&hammering->done) < begin + 100)
		usleep(100);
}

static void begin_hammer(struct hammer *hammering, struct vfu *vfu)
{
	*hammering = (struct hammer){ .vfu = vfu };
	pthread_create(&hammering->thread, NULL, hammer, hammering);
	wait_for_writes(hammering);
}

static void end_hammer(struct hammer *hammering)
{
	atomic_store(&hammering->stop, true);
	pthread_join(hammering->thread, NULL);
}

/* After the reply to UNMAP the memory may be reused. */
TEST_F(vfu, nothing_is_written_after_unmap)
{
	uint64_t *word = (uint64_t *)self->ram;
	struct hammer hammering;
	unsigned int round;

	client_enable(self->client, true);
	ASSERT_EQ(0, map_ram(self, 0, 1, CLIENT_RW, 0));
	/* Threads that access memory have different locks. */
	EXPECT_EQ(0, dma_write(self, 0, 0));
	begin_hammer(&hammering, self->vfu);
	for (round = 0; round < 20; round++) {
		/* While it is unmapped, writes arrive as messages. */
		ASSERT_EQ(0, unmap_ram(self, 0, 1));
		*word = ~0ULL;
		EXPECT_TRUE(answer(self, 100));
		EXPECT_EQ(~0ULL, *word);
		ASSERT_EQ(0, map_ram(self, 0, 1, CLIENT_RW, 0));
	}
	end_hammer(&hammering);
}

TEST_F(vfu, nothing_is_written_after_a_reset)
{
	uint64_t *word = (uint64_t *)self->ram;
	struct hammer hammering;
	unsigned int round;

	ASSERT_EQ(0, map_ram(self, 0, 1, CLIENT_RW, 0));
	client_enable(self->client, true);
	EXPECT_EQ(0, dma_write(self, 0, 0));
	begin_hammer(&hammering, self->vfu);
	for (round = 0; round < 20; round++) {
		ASSERT_EQ(0, reset_function(self));
		*word = ~0ULL;
		usleep(2000);
		EXPECT_EQ(~0ULL, *word);
		EXPECT_EQ(round + 1, resets);
		EXPECT_EQ(VFU_RESET_FUNCTION, last_reset);
		client_enable(self->client, true);
		wait_for_writes(&hammering);
		EXPECT_NE(~0ULL, *word);
	}
	end_hammer(&hammering);
}

/* Mappings are removed whole, one or several; a hole can be mapped again. */
TEST_F(vfu, mappings_are_removed)
{
	char buffer[2 * PAGE];

	client_enable(self->client, true);
	ASSERT_EQ(0, map_ram(self, 0, 2, CLIENT_RW, 0));
	ASSERT_EQ(0, map_ram(self, 2, 3, CLIENT_RW, 2));
	ASSERT_EQ(0, map_ram(self, 5, 3, CLIENT_RW, 5));
	EXPECT_EQ(-EINVAL, unmap_ram(self, 2, 4));
	EXPECT_EQ(-EINVAL, unmap_ram(self, 1, 4));
	EXPECT_EQ(1, locate(self, 1, 7, true));
	EXPECT_EQ(0, unmap_ram(self, 2, 3));
	EXPECT_EQ(-EFAULT, locate(self, 2, 1, true));
	EXPECT_EQ(-EFAULT, locate(self, 4, 1, true));
	EXPECT_EQ(0, locate(self, 0, 2, true));
	EXPECT_EQ(5, locate(self, 5, 3, true));
	EXPECT_EQ(-EEXIST, map_ram(self, 1, 1, CLIENT_RW, 0));
	EXPECT_EQ(0, map_ram(self, 3, 1, CLIENT_RW, 2));
	EXPECT_EQ(-EFAULT, locate(self, 0, 3, true));
	EXPECT_EQ(0, unmap_ram(self, 2, 3));
	EXPECT_EQ(0, map_ram(self, 2, 3, CLIENT_RW, 8));
	/* An access to two ranges. */
	self->ram[2 * PAGE - 1] = 'a';
	self->ram[8 * PAGE] = 'b';
	EXPECT_EQ(0, vfu_dma_read(self->vfu, RAM(1), buffer, 2 * PAGE, 0));
	EXPECT_EQ('a', buffer[PAGE - 1]);
	EXPECT_EQ('b', buffer[PAGE]);
	/* Removing nothing succeeds, and so does removing everything. */
	EXPECT_EQ(0, client_unmap(self->client, 0x10000, PAGE, 0));
	EXPECT_EQ(8, locate(self, 2, 3, true));
	EXPECT_EQ(0, client_unmap(self->client, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL));
	EXPECT_EQ(0, map_ram(self, 0, 8, CLIENT_RW, 0));
}

/* QEMU maps and unmaps thousands of ranges behind an IOMMU. */
TEST_F(vfu, many_mappings)
{
	unsigned int i, wrong = 0;
	uint64_t value;

	client_enable(self->client, true);
	/* In an order that is neither ascending nor descending. */
	for (i = 0; i < 997; i++)
		ASSERT_EQ(0, map_ram(self, i * 31 % 997 * 2, 1, CLIENT_RW, i * 31 % 997 % PAGES));
	for (i = 0; i < PAGES; i++)
		*(uint64_t *)(self->ram + i * PAGE) = i;
	for (i = 0; i < 997; i++)
		wrong += dma_read(self, 2 * i, &value) || value != i % PAGES;
	EXPECT_EQ(0, wrong);
	for (i = 0; i < 997; i++)
		ASSERT_EQ(0, unmap_ram(self, i * 17 % 997 * 2, 1));
}

TEST_F(vfu, reset_message)
{
	struct vfu_message message = { .fd_count = 0 };
	uint64_t value = 0;
	uint16_t command;

	client_enable(self->client, true);
	ASSERT_EQ(0, map_ram(self, 0, 1, CLIENT_RW, 0));
	EXPECT_EQ(0, client_ask(self->client, &message, VFU_RESET, 0));
	EXPECT_EQ(1, resets);
	EXPECT_EQ(VFU_RESET_BUS, last_reset);
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, PCI_COMMAND, &command, 2));
	EXPECT_EQ(0, command);
	EXPECT_EQ(-EACCES, dma_read(self, 0, &value));
	/* The map belongs to the client and survives the reset. */
	client_enable(self->client, true);
	EXPECT_EQ(0, dma_read(self, 0, &value));
}

/* A reset fails a pending request. */
TEST_F(vfu, a_reset_ends_waiting)
{
	struct asker asker = { .address = UNMAPPED };
	struct vfu_message message;
	uint16_t control;

	client_enable(self->client, true);
	begin(&asker, self->vfu);
	ASSERT_TRUE(receive(self, &message));
	EXPECT_EQ(0, reset_function(self));
	EXPECT_EQ(-ECANCELED, result_of(&asker));
	/* The late reply has no waiter. */
	EXPECT_EQ(0, client_answer(self->client, &message));
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, DEVICE_CONTROL, &control, 2));
	EXPECT_EQ(0, control & PCI_EXP_DEVCTL_BCR_FLR);
}

TEST_F(vfu, the_client_leaves)
{
	struct asker asker = { .address = UNMAPPED };
	struct vfu_message message;
	uint64_t value;

	client_enable(self->client, true);
	ASSERT_EQ(0, map_ram(self, 0, 1, CLIENT_RW, 0));
	begin(&asker, self->vfu);
	ASSERT_TRUE(receive(self, &message));
	disconnect_client(&self->server, self->client);
	EXPECT_EQ(-ECANCELED, result_of(&asker));
	EXPECT_EQ(VFU_RESET_CLIENT_GONE, last_reset);
	EXPECT_NE(0, dma_read(self, 0, &value));
	/* Another client may connect, and has shared no memory. */
	connect_client(&self->server, self->client);
	EXPECT_EQ(0, client_read(self->client, CLIENT_CONFIG, 0, &value, 4));
	EXPECT_EQ(0x67701234, (uint32_t)value);
	client_enable(self->client, true);
	EXPECT_EQ(-EFAULT, locate(self, 0, 1, false));
}

TEST_HARNESS_MAIN
