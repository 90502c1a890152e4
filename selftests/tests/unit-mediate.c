// SPDX-License-Identifier: GPL-2.0-only
/*
 * kmod/peer/mediate.c, compiled for user space: the check of the commands of mediated queue pairs and
 * the commands that are built from them, against the model in kernel/mediate_model.h.
 */
#include <stdio.h>

#include "kernel/mediate_model.h"

#include "kselftest_harness.h"

#define RANDOM_ENTRIES	300000
#define ID(slot)	NVMEP_WINDOW_ID(slot, 7)

FIXTURE(mediate)
{
	struct model model;
	__le32 entry[NVMEP_SQE_DWORDS];
};

FIXTURE_SETUP(mediate)
{
	struct model *model = &self->model;
	u32 slot;

	srand(1);
	model_init(model);
	for (slot = 1; slot < MODEL_WINDOWS; slot++) {
		model->windows[slot] = (struct nvmep_mediate_window){
			.id = ID(slot), .nsid = 40 + slot, .shift = slot == 2 ? 12 : 9,
			.read = true, .write = true, .base = 1ULL << 33, .first = 8, .blocks = 1000,
			.device_blocks = 1008,
		};
		model_buffer(model, slot, 520, slot == 1 ? 0 : 0x5aa51f80);
		model->buffers[slot].read = true;
		model->buffers[slot].write = true;
	}
}

FIXTURE_TEARDOWN(mediate)
{
}

static void set64(__le32 *entry, int dword, u64 value)
{
	entry[dword] = htole32((u32)value);
	entry[dword + 1] = htole32((u32)(value >> 32));
}

static void fill(__le32 *entry, u8 opcode, u32 id, u64 lba, u32 blocks, u64 address)
{
	memset(entry, 0, NVMEP_SQE_DWORDS * sizeof(*entry));
	entry[0] = htole32(0xabcd0000 | opcode);
	entry[1] = htole32(id);
	set64(entry, 6, address);
	set64(entry, 10, lba);
	entry[12] = htole32(blocks - 1);
}

/* The status of the entry, which the model must agree with. */
static u16 status_of(struct model *model, const __le32 *entry)
{
	struct nvmep_mediate_command command;

	if (!model_agrees(model, entry))
		return 0xffff;
	return nvmep_mediate_check(&model->rights, entry, &command) & 0x7ff;
}

static u16 status_of_rw(FIXTURE_DATA(mediate) *self, u8 opcode, u32 id, u64 lba, u32 blocks, u64 address)
{
	fill(self->entry, opcode, id, lba, blocks, address);
	return status_of(&self->model, self->entry);
}

#define BUFFER(slot, offset)	((u64)(slot) << 48 | (offset))

TEST_F(mediate, opcodes)
{
	int opcode;

	for (opcode = 0; opcode < 256; opcode++)
		EXPECT_EQ(opcode <= 2 || opcode == 8 ? 0 : NVME_SC_INVALID_OPCODE,
			  status_of_rw(self, (u8)opcode, ID(1), 0, 1, BUFFER(1, 0)))
			TH_LOG("opcode %d", opcode);
	self->model.rights.max_write_zeroes = 0;
	fill(self->entry, 8, ID(1), 0, 1, 0);
	EXPECT_EQ(NVME_SC_INVALID_OPCODE, nvmep_mediate_check(&self->model.rights, self->entry,
							      &(struct nvmep_mediate_command){ }) & 0x7ff);
}

TEST_F(mediate, windows_end_where_they_end)
{
	u64 last = 999;

	EXPECT_EQ(0, status_of_rw(self, 2, ID(1), last, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 2, ID(1), last + 1, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 2, ID(1), last, 2, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 1, ID(1), UINT64_MAX, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 1, ID(1), UINT64_MAX, 65536, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 8, ID(1), 0, 1001, 0));
	/* The block device has become shorter. */
	self->model.windows[1].device_blocks = 500;
	EXPECT_EQ(0, status_of_rw(self, 2, ID(1), 491, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 2, ID(1), 492, 1, BUFFER(1, 0)));
	self->model.windows[1].device_blocks = 0;
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(0, status_of_rw(self, 0, ID(1), 0, 1, 0));
}

/* One command for all that there is, and for a block more than that. */
TEST_F(mediate, commands_as_long_as_the_window)
{
	struct nvmep_mediate_window *window = &self->model.windows[1];

	EXPECT_EQ(0, status_of_rw(self, 2, ID(1), 0, 1000, BUFFER(1, 0)));
	/* The block device goes on behind the window. */
	window->device_blocks = 5000;
	EXPECT_EQ(0, status_of_rw(self, 2, ID(1), 0, 1000, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 2, ID(1), 0, 1001, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 2, ID(1), 1, 1000, BUFFER(1, 0)));
	/* It ends two blocks behind the beginning of the window. */
	window->device_blocks = 10;
	EXPECT_EQ(0, status_of_rw(self, 2, ID(1), 0, 2, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 2, ID(1), 0, 3, BUFFER(1, 0)));
	window->device_blocks = 8;
	EXPECT_EQ(NVME_SC_LBA_RANGE, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, 0)));
}

TEST_F(mediate, stale_and_unknown_windows)
{
	EXPECT_EQ(NVME_SC_INVALID_NS, status_of_rw(self, 2, NVMEP_WINDOW_ID(1, 6), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_INVALID_NS, status_of_rw(self, 0, NVMEP_WINDOW_ID(1, 8), 0, 1, 0));
	EXPECT_EQ(NVME_SC_INVALID_NS, status_of_rw(self, 0, 0, 0, 1, 0));
	EXPECT_EQ(NVME_SC_INVALID_NS, status_of_rw(self, 0, ID(MODEL_WINDOWS), 0, 1, 0));
	EXPECT_EQ(NVME_SC_INVALID_NS, status_of_rw(self, 0, UINT32_MAX, 0, 1, 0));
	/* Slot 0 has ID 0 as an empty slot has, and is none. */
	EXPECT_EQ(NVME_SC_INVALID_NS, status_of_rw(self, 2, 0, 0, 1, BUFFER(1, 0)));
}

static u16 check_of_read(FIXTURE_DATA(mediate) *self, u32 id, u64 address)
{
	struct nvmep_mediate_command command;

	fill(self->entry, 2, id, 0, 1, address);
	return nvmep_mediate_check(&self->model.rights, self->entry, &command) & 0x7ff;
}

/* What lies behind the slots, and in the unused one, is neither a window nor a buffer. */
TEST_F(mediate, slots_end_where_they_end)
{
	self->model.buffers[0] = self->model.buffers[1];
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, check_of_read(self, ID(1), BUFFER(0, 0)));
	self->model.rights.buffer_slots = 3;
	EXPECT_EQ(0, check_of_read(self, ID(1), BUFFER(2, 0)));
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, check_of_read(self, ID(1), BUFFER(3, 0)));
	self->model.rights.window_slots = 3;
	EXPECT_EQ(0, check_of_read(self, ID(2), BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_INVALID_NS, check_of_read(self, ID(3), BUFFER(1, 0)));
	self->model.windows[0].id = NVMEP_WINDOW_ID(0, 7);
	EXPECT_EQ(NVME_SC_INVALID_NS, check_of_read(self, NVMEP_WINDOW_ID(0, 7), BUFFER(1, 0)));
}

TEST_F(mediate, rights)
{
	self->model.windows[1].write = false;
	self->model.windows[2].read = false;
	self->model.windows[3].device_read_only = true;
	EXPECT_EQ(0, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(0, status_of_rw(self, 0, ID(1), 0, 1, 0));
	EXPECT_EQ(NVME_SC_ACCESS_DENIED, status_of_rw(self, 1, ID(1), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_ACCESS_DENIED, status_of_rw(self, 8, ID(1), 0, 1, 0));
	EXPECT_EQ(NVME_SC_ACCESS_DENIED, status_of_rw(self, 2, ID(2), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(0, status_of_rw(self, 1, ID(2), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(0, status_of_rw(self, 2, ID(3), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_READ_ONLY, status_of_rw(self, 1, ID(3), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_READ_ONLY, status_of_rw(self, 8, ID(3), 0, 1, 0));
	self->model.buffers[1].write = false;
	self->model.buffers[2].read = false;
	EXPECT_EQ(NVME_SC_ACCESS_DENIED, status_of_rw(self, 2, ID(3), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(0, status_of_rw(self, 1, ID(2), 0, 1, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_ACCESS_DENIED, status_of_rw(self, 1, ID(2), 0, 1, BUFFER(2, 0)));
	EXPECT_EQ(0, status_of_rw(self, 2, ID(3), 0, 1, BUFFER(2, 0)));
}

TEST_F(mediate, buffers_end_where_they_end)
{
	u64 length = 520 * MODEL_PAGE;

	EXPECT_EQ(0, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, length - 512)));
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, length - 508)));
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, status_of_rw(self, 2, ID(1), 0, 2, BUFFER(1, length - 512)));
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, 0xffffffffffff)));
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(0, 0)));
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(MODEL_BUFFERS, 0)));
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(0xffff, 0)));
	EXPECT_EQ(NVME_SC_PRP_INVALID_OFFSET, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, 2)));
	/* All of it by one command. */
	self->model.buffers[1].length = MODEL_PAGE;
	EXPECT_EQ(0, status_of_rw(self, 2, ID(1), 0, 8, BUFFER(1, 0)));
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, status_of_rw(self, 2, ID(1), 0, 9, BUFFER(1, 0)));
	self->model.buffers[1].length = 0;
	EXPECT_EQ(NVME_SC_DATA_XFER_ERROR, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, 0)));
	self->model.buffers[1].ended = true;
	EXPECT_EQ(NVMEP_SC_BUFFER_GONE, status_of_rw(self, 2, ID(1), 0, 1, BUFFER(1, 0)));
}

TEST_F(mediate, control_bits)
{
	int bit;

	for (bit = 16; bit < 32; bit++) {
		fill(self->entry, 1, ID(1), 0, 1, BUFFER(1, 0));
		self->entry[12] |= htole32(1U << bit);
		EXPECT_EQ(bit >= 30 ? 0 : NVME_SC_INVALID_FIELD, status_of(&self->model, self->entry))
			TH_LOG("bit %d", bit);
	}
	for (bit = 8; bit < 10; bit++) {
		fill(self->entry, 0, ID(1), 0, 1, 0);
		self->entry[0] |= htole32(1U << bit);
		EXPECT_EQ(NVME_SC_INVALID_FIELD, status_of(&self->model, self->entry));
	}
	/* PSDT and all that is not used do not reach the controller. */
	fill(self->entry, 1, ID(1), 5, 3, BUFFER(1, 0));
	self->entry[0] |= htole32(3U << 14);
	for (bit = 0; bit < NVMEP_SQE_DWORDS; bit++)
		if (bit == 2 || bit == 3 || bit == 4 || bit == 5 || bit == 8 || bit == 9 || bit > 12)
			self->entry[bit] = htole32(0xdeadbeef);
	EXPECT_EQ(0, status_of(&self->model, self->entry));
}

/* Each length up to the limit, at the first, a middle and the last place of a page. */
TEST_F(mediate, data_pointers)
{
	static const u32 places[] = { 0, 4, 512, 2048, 4092 };
	const u32 most = NVMEP_MEDIATE_TRANSFER / 512;
	u32 blocks, i, slot;

	self->model.windows[1].blocks = self->model.windows[1].device_blocks = 1 << 20;
	for (slot = 1; slot < 3; slot++)
		for (i = 0; i < ARRAY_SIZE(places); i++)
			for (blocks = 1; blocks <= most; blocks += blocks < 40 ? 1 : 7)
				ASSERT_EQ(0, status_of_rw(self, 1 + blocks % 2, ID(1), 100, blocks,
							  BUFFER(slot, MODEL_PAGE + places[i])))
					TH_LOG("%u blocks at %u", blocks, places[i]);
	for (i = 0; i < ARRAY_SIZE(places); i++)
		ASSERT_EQ(0, status_of_rw(self, 2, ID(1), 0, NVMEP_MEDIATE_TRANSFER / 512,
					  BUFFER(3, places[i])));
	EXPECT_EQ(NVME_SC_INVALID_FIELD, status_of_rw(self, 2, ID(1), 0, NVMEP_MEDIATE_TRANSFER / 512 + 1,
						      BUFFER(3, 0)));
	EXPECT_EQ(0, status_of_rw(self, 8, ID(1), 0, 2048, 0));
	EXPECT_EQ(NVME_SC_INVALID_FIELD, status_of_rw(self, 8, ID(1), 0, 2049, 0));
}

/* Close to the limits, where random numbers never are. */
static u64 interesting(u64 limit)
{
	switch (rand() % 4) {
	case 0:
		return (u64)rand() % (limit + 2);
	case 1:
		return limit - (u64)rand() % 4;
	case 2:
		return (u64)0 - (u64)rand() % 1024;
	default:
		return (u64)rand() << 33 ^ (u64)rand();
	}
}

TEST_F(mediate, random_entries)
{
	u32 i, id, accepted = 0;

	for (i = 0; i < RANDOM_ENTRIES; i++) {
		id = rand() % 8 ? ID(1 + rand() % (MODEL_WINDOWS - 1)) : (u32)rand();
		fill(self->entry, (u8)(rand() % 8 ? rand() % 3 : rand()), id, interesting(1000),
		     1 + (u32)interesting(16) % 65536,
		     BUFFER(rand() % 5, interesting(520 * MODEL_PAGE) & ~3ULL));
		if (!(rand() % 16))
			self->entry[rand() % NVMEP_SQE_DWORDS] ^= htole32(1U << rand() % 32);
		ASSERT_TRUE(model_agrees(&self->model, self->entry));
		accepted += model_allows(&self->model, self->entry);
	}
	EXPECT_LT(RANDOM_ENTRIES / 20, accepted);
	EXPECT_GT(RANDOM_ENTRIES / 2, accepted);
}

TEST_F(mediate, completions)
{
	EXPECT_EQ(0x00010000 | 0xbeef, le32_to_cpu(nvmep_mediate_cqe_last(0xbeef, 0, true)));
	EXPECT_EQ((u32)NVME_SC_LBA_RANGE << 17 | 0x80000000 | 7,
		  le32_to_cpu(nvmep_mediate_cqe_last(7, NVME_SC_LBA_RANGE | NVME_STATUS_DNR, false)));
	EXPECT_EQ(0, nvmep_mediate_status(0));
	EXPECT_EQ(0x281 | NVME_STATUS_DNR, nvmep_mediate_status(0x281 | NVME_STATUS_DNR));
	/* More, and the delay of a retry. */
	EXPECT_EQ(0x021, nvmep_mediate_status(0x021 | 0x2000 | 0x1800));
	/* Codes of the controller's vendor. */
	EXPECT_EQ(NVME_SC_INTERNAL | NVME_STATUS_DNR, nvmep_mediate_status(0x7c1 | NVME_STATUS_DNR));
	EXPECT_EQ(NVME_SC_INTERNAL, nvmep_mediate_status(0x700));
}

TEST_F(mediate, cost)
{
	struct nvmep_mediate_command command;

	fill(self->entry, 2, ID(1), 0, 8, BUFFER(1, 0));
	ASSERT_EQ(0, nvmep_mediate_check(&self->model.rights, self->entry, &command));
	EXPECT_EQ(4096 + NVMEP_COMMAND_COST, nvmep_mediate_cost(&command));
	fill(self->entry, 0, ID(1), 0, 1, 0);
	ASSERT_EQ(0, nvmep_mediate_check(&self->model.rights, self->entry, &command));
	/* Work of the controller that moves no data. */
	EXPECT_EQ(NVMEP_COMMAND_COST + NVMEP_FLUSH_COST, nvmep_mediate_cost(&command));
	self->model.rights.max_write_zeroes = 1U << 20;
	fill(self->entry, nvme_cmd_write_zeroes, ID(1), 0, 16, 0);
	EXPECT_EQ(0, nvmep_mediate_check(&self->model.rights, self->entry, &command));
	EXPECT_EQ(16 * 512 + NVMEP_COMMAND_COST, nvmep_mediate_cost(&command));
	EXPECT_FALSE(kernel_warned);
}

TEST_HARNESS_MAIN
