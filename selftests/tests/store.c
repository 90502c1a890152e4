// SPDX-License-Identifier: GPL-2.0-only
/*
 * A store on a namespace of the module: values that the host has written are read through
 * a queue pair by a list of the device library, with padding, and values that the peer has
 * written are read by the host, also after the store was opened again.
 *
 * iommu: on
 * long-iommu: on off pt
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#include <nvmepeer_peer.h>
#include <nvmepeer_store.h>

enum { PAGE = 6004, VALUES = 40, PLACE = 8192, DATA = VALUES * PLACE, ENTRIES = 64 };

FIXTURE(store)
{
	struct np_ctrl ctrl;
	struct nvmepeer *library;
	struct nvmepeer_ns *ns;
	struct nvmepeer_cpu_peer *peer;
	struct nvmepeer_store *store;
	char path[32];
	struct nvmepeer_store_item items[VALUES];
	struct nvmepeer_list_item list[VALUES];
	uint8_t *memory;
};

FIXTURE_SETUP(store)
{
	struct nvmepeer_store_options options = {
		.size = sizeof(options),
		.flags = NVMEPEER_STORE_FORCE,
		.page_bytes = PAGE,
		.slots = 200,
	};
	const char *const members[] = { self->path };
	uint32_t slots[VALUES];
	char node[32];

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	close(np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDONLY));
	snprintf(self->path, sizeof(self->path), "/dev/nvmep%dn1", self->ctrl.instance);
	snprintf(node, sizeof(node), "nvmep%d", self->ctrl.instance);
	ASSERT_EQ(0, nvmepeer_open(node, &self->library));
	snprintf(node, sizeof(node), "ngp%dn1", self->ctrl.instance);
	ASSERT_EQ(0, nvmepeer_ns_open(node, &self->ns));
	/* Behind the data are the scratch pages. */
	ASSERT_EQ(0, nvmepeer_cpu_peer_open(self->library, nvmepeer_ns_info(self->ns), ENTRIES,
					    DATA + 16 * NP_PAGE, &self->peer));
	self->memory = nvmepeer_cpu_peer_address(self->peer);
	ASSERT_EQ(0, nvmepeer_store_create(members, 1, &options));
	ASSERT_EQ(0, nvmepeer_store_open(members, 1, 0, &self->store));
	ASSERT_EQ(0, nvmepeer_store_alloc(self->store, slots, VALUES));
	memset(self->items, 0, sizeof(self->items));
	memset(self->list, 0, sizeof(self->list));
	for (int i = 0; i < VALUES; i++) {
		self->items[i].slot = slots[i];
		self->items[i].tag[0] = (uint8_t)i;
		/* Some of whole blocks, most with padding. */
		self->items[i].length = i % 4 ? PAGE - 4 * i : 4096;
		self->list[i].offset = (uint64_t)i * PLACE;
	}
}

FIXTURE_TEARDOWN(store)
{
	nvmepeer_store_close(self->store);
	nvmepeer_cpu_peer_close(self->peer);
	nvmepeer_ns_close(self->ns);
	nvmepeer_close(self->library);
	np_ctrl_close(&self->ctrl);
}

static void fill(uint8_t *data, int value)
{
	for (int i = 0; i < PAGE; i++)
		data[i] = (uint8_t)(value * 7 + i + (i >> 8));
}

static int transfer(FIXTURE_DATA(store) *self, uint32_t opcode)
{
	const struct nvmepeer_queue *queue = nvmepeer_cpu_peer_queue(self->peer);
	struct nvmepeer_memory memory = {
		.buffer = *nvmepeer_cpu_peer_data(self->peer),
		.address = (uintptr_t)self->memory,
	};
	struct nvmepeer_scratch scratch = {
		.memory = &memory,
		.offset = DATA,
		.slots = 1,
	};
	struct nvmepeer_list list = {
		.memories = &memory,
		.items = self->list,
		.scratch = &scratch,
		.memory_count = 1,
		.count = VALUES,
		.opcode = opcode,
	};

	if (nvmepeer_scratch_bytes(queue, 1) > 16 * NP_PAGE ||
	    nvmepeer_store_fill_list(self->store, 0, self->items, self->list, VALUES))
		return -1;
	return nvmepeer_list_transfer(queue, &list);
}

/* The value and what is beside it in memory. */
static bool value_is(FIXTURE_DATA(store) *self, int value)
{
	const uint8_t *place = self->memory + (size_t)value * PLACE;
	uint32_t length = self->items[value].length;
	uint8_t expected[PAGE];

	fill(expected, value);
	if (memcmp(place, expected, length))
		return false;
	for (uint32_t i = length; i < PLACE; i++)
		if (place[i] != 0xee)
			return false;
	return true;
}

TEST_F(store, peer_reads_values_of_the_host)
{
	static uint8_t values[VALUES][PAGE];
	uint32_t lengths[VALUES];

	for (int i = 0; i < VALUES; i++) {
		fill(values[i], i);
		self->items[i].data = values[i];
		lengths[i] = self->items[i].length;
	}
	ASSERT_EQ(0, nvmepeer_store_write(self->store, self->items, VALUES));
	for (int i = 0; i < VALUES; i++)
		self->items[i].length = 0;
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, self->items, VALUES));
	ASSERT_EQ(0, nvmepeer_store_pin(self->store, self->items, VALUES));
	memset(self->memory, 0xee, DATA);
	ASSERT_EQ(0, transfer(self, NVMEPEER_OP_READ));
	nvmepeer_store_unpin(self->store, self->items, VALUES);
	for (int i = 0; i < VALUES; i++) {
		EXPECT_EQ(lengths[i], self->items[i].length);
		EXPECT_TRUE(value_is(self, i));
	}
}

TEST_F(store, host_reads_values_of_the_peer_after_a_restart)
{
	const char *const members[] = { self->path };
	static uint8_t data[VALUES][PAGE];
	uint8_t expected[PAGE];
	uint64_t position = 0;

	for (int i = 0; i < VALUES; i++)
		fill(self->memory + (size_t)i * PLACE, i);
	ASSERT_EQ(0, transfer(self, NVMEPEER_OP_WRITE));
	for (int i = 0; i < VALUES; i++)
		self->items[i].flags = NVMEPEER_STORE_PEER;
	ASSERT_EQ(0, nvmepeer_store_commit(self->store, self->items, VALUES));
	nvmepeer_store_close(self->store);
	self->store = NULL;
	ASSERT_EQ(0, nvmepeer_store_open(members, 1, 0, &self->store));
	ASSERT_EQ(VALUES, nvmepeer_store_scan(self->store, &position, self->items, VALUES));
	for (int i = 0; i < VALUES; i++)
		self->items[i].data = data[i];
	ASSERT_EQ(0, nvmepeer_store_read(self->store, self->items, VALUES));
	for (int i = 0; i < VALUES; i++) {
		fill(expected, self->items[i].tag[0]);
		EXPECT_EQ(0, memcmp(data[i], expected, self->items[i].length));
	}
}

/* Of the module's block device, as of the kernel's driver. */
TEST_F(store, a_place_names_the_namespace)
{
	struct nvmepeer_store_place place;

	ASSERT_EQ(0, nvmepeer_store_place(self->store, 1, &place, sizeof(place)));
	EXPECT_EQ(nvmepeer_ns_info(self->ns)->nsid, place.nsid);
}

/* The store has the disk for itself. */
TEST_F(store, a_member_is_used_once)
{
	const char *const members[] = { self->path };
	struct nvmepeer_store *other;

	EXPECT_EQ(-EBUSY, nvmepeer_store_open(members, 1, 0, &other));
	EXPECT_GT(0, open(self->path, O_RDWR | O_EXCL | O_CLOEXEC));
}

TEST_HARNESS_MAIN
