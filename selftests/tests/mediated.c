// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mediated queue pairs: windows on a namespace and on a partition, buffers, checks of commands,
 * and what ends them.
 *
 * kernels: 7 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 240
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "softgpu_drv.h"
#include "tenant.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define PAGES		NP_MEMORY_PAGES
#define BYTES		NP_MEMORY_BYTES
#define BATCH		8U
#define ROUNDS		5U
#define MAXIMUM		"/sys/module/nvme_peer/parameters/mediated_max"
#define TOTAL		"/sys/module/nvme_peer/parameters/mediated_total"
#define MAPPED		"/sys/module/nvme_peer/parameters/mediated_mapped"
#define READ_MS		"/sys/module/nvme_peer/parameters/mediated_read_ms"
#define SLOW_READS	200U

/* The partition of np_partition_add(). */
#define PART_START	(1U << 20)
#define PART_BYTES	(1U << 20)
#define PART_BLOCKS	(PART_BYTES / NP_BLOCK)

static const volatile struct nvme_peer_status *status_of(const struct np_qp *qp)
{
	return qp->status.at;
}

FIXTURE(mediated)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	int disk;
	int partition;
	struct np_qp qp;
	struct np_memory memory;
	uint32_t whole;
	uint32_t part;
};

FIXTURE_SETUP(mediated)
{
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	self->disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->disk);
	np_partition_remove(self->disk);
	ASSERT_EQ(0, np_partition_add(self->disk));
	self->partition = np_open_node(&self->ctrl, "/dev/nvmep%dn1p1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->partition);
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_memory_alloc(&self->memory, self->ctrl.fd));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	ASSERT_EQ(0, np_window_add(&self->qp, self->disk, 0, 0, &self->whole));
	ASSERT_EQ(0, np_window_add(&self->qp, self->partition, 0, 0, &self->part));
}

FIXTURE_TEARDOWN(mediated)
{
	np_qp_close(&self->qp);
	np_memory_free(&self->memory);
	close(self->partition);
	EXPECT_EQ(0, np_write_file(READ_MS, "100"));
	EXPECT_EQ(0, np_write_file(MAXIMUM, "64"));
	EXPECT_EQ(0, np_write_file(TOTAL, "1024"));
	EXPECT_EQ(0, np_write_file(MAPPED, "256"));
	EXPECT_EQ(0, np_write_file(NP_MIXED_MODES, "0"));
	EXPECT_EQ(0, np_partition_remove(self->disk));
	close(self->disk);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

static int run_rw(FIXTURE_DATA(mediated) *self, uint8_t opcode, uint32_t window, uint64_t lba,
		  uint32_t blocks, uint64_t offset)
{
	struct np_command command = np_window_command(opcode, window, lba, blocks, self->memory.slot, offset);

	return np_qp_run(&self->qp, &command, NP_TIMEOUT_MS);
}

static int flush(struct np_qp *qp, uint32_t window)
{
	struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = window };

	return np_qp_run(qp, &command, NP_TIMEOUT_MS);
}

/* A batch of pages by one doorbell. */
static int transfer(FIXTURE_DATA(mediated) *self, uint8_t opcode, uint32_t window, uint64_t lba)
{
	const uint32_t blocks = NP_PAGE / NP_BLOCK;
	struct np_command command;
	int status;
	uint32_t i;

	for (i = 0; i < BATCH; i++) {
		command = np_window_command(opcode, window, lba + i * blocks, blocks, self->memory.slot,
					    i * NP_PAGE);
		np_qp_put(&self->qp, &command);
	}
	status = np_qp_ring_doorbell(&self->qp);
	for (i = 0; i < BATCH && !status; i++)
		status = np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS);
	return status;
}

/* Write a pattern by one window, and read it by another that shows the same blocks. */
static int verify(FIXTURE_DATA(mediated) *self, uint32_t seed)
{
	uint8_t pattern[BATCH * NP_PAGE];
	int status;

	np_pattern(pattern, sizeof(pattern), PART_START, seed);
	memcpy(self->memory.bytes, pattern, sizeof(pattern));
	status = transfer(self, NVMEPEER_OP_WRITE, self->part, 0);
	if (status)
		return status;
	memset(self->memory.bytes, 0, sizeof(pattern));
	status = transfer(self, NVMEPEER_OP_READ, self->whole, PART_START / NP_BLOCK);
	return status ? status : memcmp(self->memory.bytes, pattern, sizeof(pattern)) ? -EIO : 0;
}

/* --- I/O ------------------------------------------------------------------ */

TEST_F(mediated, io_wraps_both_rings)
{
	struct nvme_peer_qp_info info;
	struct nvme_peer_qp_stats now;
	struct nvme_peer_info ctrl;
	uint32_t i;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &ctrl));
	EXPECT_TRUE(ctrl.features & NVME_PEER_FEATURE_MEDIATED);
	EXPECT_TRUE(ctrl.features & NVME_PEER_FEATURE_WINDOW);
	for (i = 0; i < 3 * ENTRIES / BATCH; i++)
		ASSERT_EQ(0, verify(self, i));
	ASSERT_EQ(0, np_qp_info(self->qp.fd, &info));
	EXPECT_EQ(NVME_PEER_MODE_MEDIATED, info.mode);
	EXPECT_EQ(0xffff, info.qid);
	EXPECT_EQ(0, info.cpu_doorbell_writes);
	ASSERT_EQ(0, np_qp_stats(&self->qp, &now));
	EXPECT_EQ(i * BATCH, now.reads);
	EXPECT_EQ(i * BATCH, now.writes);
	EXPECT_EQ(i * BATCH * NP_PAGE, now.read_bytes);
	EXPECT_EQ(i * BATCH * NP_PAGE, now.written_bytes);
	EXPECT_EQ(0, now.refused);
	EXPECT_EQ(0, now.failed);
	EXPECT_EQ(0, now.in_flight);
	EXPECT_LT(0, now.busy_ns);
}

TEST_F(mediated, long_transfers_and_odd_offsets)
{
	uint8_t *bytes = self->memory.bytes, *copy = malloc(BYTES);
	uint32_t length, offset, blocks;

	ASSERT_NE(NULL, copy);
	for (length = NP_BLOCK; length <= 32 * NP_PAGE; length *= 2)
		for (offset = 0; offset < NP_PAGE; offset += 1348) {
			blocks = length / NP_BLOCK;
			np_pattern(bytes, BYTES, 0, length + offset);
			memcpy(copy, bytes, BYTES);
			ASSERT_EQ(0, run_rw(self, NVMEPEER_OP_WRITE, self->part, 3, blocks, offset));
			memset(bytes, 0xee, BYTES);
			memset(bytes, 0x11, offset);
			ASSERT_EQ(0, run_rw(self, NVMEPEER_OP_READ, self->part, 3, blocks, offset));
			EXPECT_EQ(0, memcmp(bytes + offset, copy + offset, length));
			EXPECT_EQ(0xee, bytes[offset + length]);
			EXPECT_TRUE(!offset || bytes[offset - 1] == 0x11);
		}
	free(copy);
}

TEST_F(mediated, zeroes_flush_and_fua)
{
	struct np_command command;
	struct nvme_peer_qp_stats now;
	uint32_t i;

	ASSERT_EQ(0, verify(self, 1));
	command = np_window_command(NVMEPEER_OP_WRITE_ZEROES, self->part, 0, 8, 0, 0);
	/* All in flight at once: one on the controller at a time. */
	for (i = 0; i < 4; i++)
		np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, self->part, 0, 8, 0));
	for (i = 0; i < NP_PAGE; i++)
		if (self->memory.bytes[i])
			break;
	EXPECT_EQ(NP_PAGE, i);
	command = np_window_command(NVMEPEER_OP_WRITE, self->part, 0, 8, self->memory.slot, 0);
	command.cdw10[2] |= 1U << 30;
	EXPECT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	command = (struct np_command){ .opcode = NVMEPEER_OP_FLUSH, .nsid = self->part };
	for (i = 0; i < 8; i++) {
		command.nsid = i % 2 ? self->part : self->whole;
		np_qp_put(&self->qp, &command);
	}
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	for (i = 0; i < 8; i++)
		EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_stats(&self->qp, &now));
	EXPECT_EQ(8, now.flushes);
	EXPECT_EQ(4, now.zeroes);
}

/* By the slot: from the disk to the buffer, from there to another place, and to host memory. */
static int move_by_buffer(FIXTURE_DATA(mediated) *self, uint32_t slot, uint32_t seed)
{
	uint8_t *bytes = self->memory.bytes;
	struct np_command command;
	int status;

	np_pattern(bytes, NP_PAGE, PART_START, seed);
	status = run_rw(self, NVMEPEER_OP_WRITE, self->part, 0, 8, 0);
	command = np_window_command(NVMEPEER_OP_READ, self->part, 0, 8, slot, seed * NP_PAGE);
	status = status ?: np_qp_run(&self->qp, &command, NP_TIMEOUT_MS);
	command = np_window_command(NVMEPEER_OP_WRITE, self->part, 8, 8, slot, seed * NP_PAGE);
	status = status ?: np_qp_run(&self->qp, &command, NP_TIMEOUT_MS);
	status = status ?: run_rw(self, NVMEPEER_OP_READ, self->part, 8, 8, NP_PAGE);
	return status ? status : memcmp(bytes, bytes + NP_PAGE, NP_PAGE) ? -EIO : 0;
}

static void check_buffer(struct __test_metadata *_metadata, FIXTURE_DATA(mediated) *self, int fd)
{
	struct np_command command;
	uint32_t slot, again, i;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_buf_add(&self->qp, fd, 0, &slot));
	EXPECT_NE(self->memory.slot, slot);
	/* The device is known already. */
	ASSERT_EQ(0, np_buf_add(&self->qp, fd, 0, &again));
	for (i = 0; i < ROUNDS; i++)
		EXPECT_EQ(0, move_by_buffer(self, i % 2 ? slot : again, i));
	EXPECT_EQ(0, np_buf_remove(&self->qp, slot));
	EXPECT_EQ(0, move_by_buffer(self, again, i));
	EXPECT_EQ(0, np_buf_remove(&self->qp, again));
	EXPECT_EQ(-ENOENT, np_buf_remove(&self->qp, slot));
	command = np_window_command(NVMEPEER_OP_READ, self->part, 0, 8, slot, 0);
	EXPECT_EQ(DATA_TRANSFER, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	close(fd);
}

TEST_F(mediated, data_in_another_drivers_memory)
{
	check_buffer(_metadata, self, np_test_export(PAGES, NVMEP_TEST_SCATTERED));
}

/*
 * The kernel reads a word of the device's memory before it publishes completions.  Reads of
 * softgpu's memory are slow: more of them than are spared count, within a limit that is higher.
 */
TEST_F(mediated, data_in_device_memory)
{
	struct softgpu_alloc alloc = { .size = BYTES };
	int gpu = open("/dev/softgpu0", O_RDWR | O_CLOEXEC);
	struct nvme_peer_buf_add add = { .size = sizeof(add) };
	struct nvme_peer_buf_import import;
	struct np_command command;
	uint32_t slot, i;

	ASSERT_LE(0, gpu);
	ASSERT_EQ(0, np_ioctl(gpu, SOFTGPU_ALLOC, &alloc));
	ASSERT_EQ(0, np_write_file(READ_MS, "10000"));
	add.dmabuf_fd = alloc.fd;
	ASSERT_EQ(0, np_ioctl(self->qp.fd, NVME_PEER_BUF_ADD, &add));
	slot = add.slot;
	/* It reports what an import does. */
	ASSERT_EQ(0, np_import(self->ctrl.fd, alloc.fd, 0, &import));
	EXPECT_EQ(BYTES, add.length);
	EXPECT_EQ(1, import.pci_address.valid);
	EXPECT_EQ(0, memcmp(&import.pci_address, &add.pci_address, sizeof(add.pci_address)));
	EXPECT_NE(NVME_PEER_REASON_NONE, import.reason);
	EXPECT_EQ(import.verdict, add.verdict);
	EXPECT_EQ(import.reason, add.reason);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	command = np_window_command(NVMEPEER_OP_READ, self->part, 0, 8, slot, 0);
	for (i = 0; i < SLOW_READS; i++)
		ASSERT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_buf_remove(&self->qp, slot));
	check_buffer(_metadata, self, alloc.fd);
	close(gpu);
}

/* The user has no time for reads of its device: the buffer ends, as by its exporter. */
TEST_F(mediated, slow_device_memory_ends)
{
	struct softgpu_alloc alloc = { .size = BYTES };
	int gpu = open("/dev/softgpu0", O_RDWR | O_CLOEXEC);
	struct nvme_peer_event event;
	struct np_command command;
	uint32_t slot;

	ASSERT_LE(0, gpu);
	ASSERT_EQ(0, np_ioctl(gpu, SOFTGPU_ALLOC, &alloc));
	ASSERT_EQ(0, np_buf_add(&self->qp, alloc.fd, 0, &slot));
	command = np_window_command(NVMEPEER_OP_READ, self->part, 0, 8, slot, 0);
	ASSERT_EQ(0, np_write_file(READ_MS, "0"));
	/* Data that comes from there needs none. */
	command.opcode = NVMEPEER_OP_WRITE;
	EXPECT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	command.opcode = NVMEPEER_OP_READ;
	EXPECT_EQ(BUFFER_GONE, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	ASSERT_EQ(sizeof(event), read(self->qp.fd, &event, sizeof(event)));
	EXPECT_EQ(NVME_PEER_EVENT_BUFFER_ENDED, event.type);
	EXPECT_EQ(slot, event.object);
	EXPECT_EQ(BUFFER_GONE, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_buf_remove(&self->qp, slot));
	EXPECT_EQ(0, verify(self, 6));
	close(alloc.fd);
	close(gpu);
}

/* --- refusals ------------------------------------------------------------- */

TEST_F(mediated, refused_commands_complete)
{
	const uint64_t last = PART_BLOCKS - 1;
	struct nvme_peer_qp_stats now;
	struct nvme_peer_qp_limits limits = { .size = sizeof(limits) };
	const struct {
		struct np_command command;
		int status;
	} cases[] = {
		{ np_window_command(NVMEPEER_OP_READ, self->part, last, 1, 1, 0), 0 },
		{ np_window_command(NVMEPEER_OP_READ, self->part, last, 2, 1, 0), LBA_RANGE },
		{ np_window_command(NVMEPEER_OP_READ, self->part, last + 1, 1, 1, 0), LBA_RANGE },
		{ np_window_command(NVMEPEER_OP_WRITE, self->part, UINT64_MAX, 1, 1, 0), LBA_RANGE },
		{ np_window_command(NVMEPEER_OP_WRITE, self->part, -1ULL << 20, 16, 1, 0), LBA_RANGE },
		{ np_window_command(NVMEPEER_OP_WRITE_ZEROES, self->part, last, 2, 0, 0), LBA_RANGE },
		{ np_window_command(NVMEPEER_OP_READ, 0, 0, 1, 1, 0), INVALID_NS },
		{ np_window_command(NVMEPEER_OP_READ, 3, 0, 1, 1, 0), INVALID_NS },
		{ np_window_command(NVMEPEER_OP_READ, 0xffff, 0, 1, 1, 0), INVALID_NS },
		{ np_window_command(NVMEPEER_OP_READ, 0xffffffff, 0, 1, 1, 0), INVALID_NS },
		{ np_window_command(NVMEPEER_OP_READ, self->part + 0x10000, 0, 1, 1, 0), INVALID_NS },
		{ np_window_command(NVMEPEER_OP_READ, self->part, 0, 1, 0, 0), DATA_TRANSFER },
		{ np_window_command(NVMEPEER_OP_READ, self->part, 0, 1, 2, 0), DATA_TRANSFER },
		{ np_window_command(NVMEPEER_OP_READ, self->part, 0, 1, 0xffff, 0), DATA_TRANSFER },
		{ np_window_command(NVMEPEER_OP_READ, self->part, 0, 1, 1, BYTES), DATA_TRANSFER },
		{ np_window_command(NVMEPEER_OP_READ, self->part, 0, 1, 1, BYTES - 508), DATA_TRANSFER },
		{ np_window_command(NVMEPEER_OP_READ, self->part, 0, 1, 1, (1ULL << 48) - 1), DATA_TRANSFER },
		{ np_window_command(NVMEPEER_OP_READ, self->part, 0, 1, 1, 2), PRP_OFFSET },
		{ np_window_command(NVMEPEER_OP_READ, self->whole, 0, 65536, 1, 0), INVALID_FIELD },
		{ np_window_command(0x05, self->part, 0, 1, 1, 0), INVALID_OPCODE },
		{ np_window_command(0x09, self->part, 0, 1, 1, 0), INVALID_OPCODE },
		{ np_window_command(0x7f, self->part, 0, 1, 1, 0), INVALID_OPCODE },
		{ { .opcode = NVMEPEER_OP_FLUSH, .nsid = 77 }, INVALID_NS },
		{ { .opcode = NVMEPEER_OP_FLUSH, .flags = 1, .nsid = 1 }, INVALID_FIELD },
	};
	struct np_command zeroes;
	uint32_t i, refused = 0;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct np_command command = cases[i].command;

		EXPECT_EQ(cases[i].status, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS))
			TH_LOG("case %u", i);
		refused += !!cases[i].status;
	}
	ASSERT_EQ(0, np_qp_stats(&self->qp, &now));
	EXPECT_EQ(refused, now.refused);
	EXPECT_EQ(1, now.reads);
	EXPECT_EQ(0, now.failed);
	EXPECT_EQ(NVME_PEER_QP_LIVE, status_of(&self->qp)->state);
	ASSERT_EQ(0, np_ioctl(self->qp.fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(32, limits.depth);
	EXPECT_EQ(1, limits.weight);
	EXPECT_EQ(30000, limits.timeout_ms);
	EXPECT_EQ(16, limits.max_windows);
	EXPECT_EQ(64, limits.max_buffers);
	EXPECT_EQ(2, limits.windows);
	EXPECT_EQ(1, limits.buffers);
	EXPECT_EQ(0, limits.sealed);
	EXPECT_LE(NP_PAGE, limits.max_transfer);
	EXPECT_LE(NP_PAGE, limits.max_write_zeroes);
	ASSERT_GE(2U << 20, limits.max_write_zeroes);
	zeroes = np_window_command(NVMEPEER_OP_WRITE_ZEROES, self->whole, NP_AREA(4) / NP_BLOCK,
				   limits.max_write_zeroes / NP_BLOCK, 0, 0);
	EXPECT_EQ(0, np_qp_run(&self->qp, &zeroes, NP_TIMEOUT_MS));
	zeroes.cdw10[2]++;
	EXPECT_EQ(INVALID_FIELD, np_qp_run(&self->qp, &zeroes, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(self, 2));
}

TEST_F(mediated, rights_are_those_of_the_descriptors)
{
	int reader = np_open_node(&self->ctrl, "/dev/nvmep%dn1p1", O_RDONLY);
	int writer = np_open_node(&self->ctrl, "/dev/nvmep%dn1p1", O_WRONLY);
	struct nvme_peer_window_add add = { .size = sizeof(add), .fd = reader };
	struct nvme_peer_window_info info;
	uint32_t read_only, write_only, from, to;
	struct np_command command;
	int on = 1, off = 0;

	ASSERT_LE(0, reader);
	ASSERT_LE(0, writer);
	ASSERT_EQ(0, np_ioctl(self->qp.fd, NVME_PEER_WINDOW_ADD, &add));
	EXPECT_EQ(NVME_PEER_RIGHT_READ, add.rights);
	EXPECT_EQ(PART_BLOCKS, add.blocks);
	EXPECT_EQ(NP_BLOCK, add.block_size);
	read_only = add.id;
	ASSERT_EQ(0, np_window_add(&self->qp, writer, 0, 0, &write_only));
	close(reader);
	close(writer);
	ASSERT_EQ(0, np_window_info(&self->qp, read_only, &info));
	EXPECT_EQ(NVME_PEER_RIGHT_READ, info.rights);
	ASSERT_EQ(0, np_window_info(&self->qp, write_only, &info));
	EXPECT_EQ(NVME_PEER_RIGHT_WRITE, info.rights);
	EXPECT_EQ(PART_BLOCKS, info.blocks);
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, read_only, 0, 8, 0));
	EXPECT_EQ(ACCESS_DENIED, run_rw(self, NVMEPEER_OP_WRITE, read_only, 0, 8, 0));
	EXPECT_EQ(ACCESS_DENIED, run_rw(self, NVMEPEER_OP_WRITE_ZEROES, read_only, 0, 8, 0));
	EXPECT_EQ(ACCESS_DENIED, run_rw(self, NVMEPEER_OP_READ, write_only, 0, 8, 0));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_WRITE, write_only, 0, 8, 0));
	EXPECT_EQ(0, flush(&self->qp, read_only));
	/* The device becomes read-only, and writable again. */
	ASSERT_EQ(0, ioctl(self->partition, BLKROSET, &on));
	EXPECT_EQ(READ_ONLY, run_rw(self, NVMEPEER_OP_WRITE, self->part, 0, 8, 0));
	ASSERT_EQ(0, np_window_info(&self->qp, self->part, &info));
	EXPECT_EQ(NVME_PEER_RIGHT_READ, info.rights);
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, self->part, 0, 8, 0));
	ASSERT_EQ(0, ioctl(self->partition, BLKROSET, &off));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_WRITE, self->part, 0, 8, 0));
	/* Buffers for one direction. */
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, NVME_PEER_ACCESS_READ, &from));
	ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, NVME_PEER_ACCESS_WRITE, &to));
	command = np_window_command(NVMEPEER_OP_WRITE, self->part, 0, 8, from, 0);
	EXPECT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	command = np_window_command(NVMEPEER_OP_READ, self->part, 0, 8, from, 0);
	EXPECT_EQ(ACCESS_DENIED, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	command = np_window_command(NVMEPEER_OP_READ, self->part, 0, 8, to, 0);
	EXPECT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	command = np_window_command(NVMEPEER_OP_WRITE, self->part, 0, 8, to, 0);
	EXPECT_EQ(ACCESS_DENIED, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
}

static int resize_partition(int disk, long long bytes)
{
	struct blkpg_partition partition = { .start = PART_START, .length = bytes, .pno = 1 };
	struct blkpg_ioctl_arg resize = {
		.op = BLKPG_RESIZE_PARTITION, .datalen = sizeof(partition), .data = &partition,
	};

	return ioctl(disk, BLKPG, &resize) ? -errno : 0;
}

TEST_F(mediated, resize_takes_effect_at_once)
{
	struct nvme_peer_window_info info;
	uint32_t last;

	ASSERT_EQ(0, np_window_add(&self->qp, self->partition, PART_BLOCKS - 8, 0, &last));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, last, 0, 8, 0));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, self->part, PART_BLOCKS - 8, 8, 0));
	/* The size is read once for a batch. */
	EXPECT_EQ(0, transfer(self, NVMEPEER_OP_READ, self->part, 0));
	ASSERT_EQ(0, resize_partition(self->disk, PART_BYTES / 2));
	EXPECT_EQ(LBA_RANGE, run_rw(self, NVMEPEER_OP_READ, self->part, PART_BLOCKS - 8, 8, 0));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, self->part, PART_BLOCKS / 2 - 8, 8, 0));
	EXPECT_EQ(LBA_RANGE, run_rw(self, NVMEPEER_OP_READ, self->part, PART_BLOCKS / 2 - 7, 8, 0));
	ASSERT_EQ(0, np_window_info(&self->qp, self->part, &info));
	EXPECT_EQ(PART_BLOCKS / 2, info.blocks);
	EXPECT_EQ(LBA_RANGE, run_rw(self, NVMEPEER_OP_READ, last, 0, 8, 0));
	ASSERT_EQ(0, np_window_info(&self->qp, last, &info));
	EXPECT_EQ(0, info.blocks);
	ASSERT_EQ(0, resize_partition(self->disk, PART_BYTES));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, self->part, PART_BLOCKS - 8, 8, 0));
}

/* --- windows and buffers --------------------------------------------------- */

TEST_F(mediated, window_of_a_range)
{
	struct nvme_peer_window_info info;
	uint32_t id;

	ASSERT_EQ(0, verify(self, 9));
	ASSERT_EQ(0, np_window_add(&self->qp, self->partition, 8, 16, &id));
	ASSERT_EQ(0, np_window_info(&self->qp, id, &info));
	EXPECT_EQ(8, info.first);
	EXPECT_EQ(16, info.blocks);
	EXPECT_EQ(NP_BLOCK, info.block_size);
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, id, 0, 8, BYTES / 2));
	EXPECT_EQ(0, memcmp(self->memory.bytes + BYTES / 2, self->memory.bytes + NP_PAGE, NP_PAGE));
	EXPECT_EQ(LBA_RANGE, run_rw(self, NVMEPEER_OP_READ, id, 9, 8, 0));
	EXPECT_EQ(LBA_RANGE, run_rw(self, NVMEPEER_OP_READ, id, 0, 17, 0));
	EXPECT_EQ(-ERANGE, np_window_add(&self->qp, self->partition, PART_BLOCKS + 1, 0, NULL));
	EXPECT_EQ(-ERANGE, np_window_add(&self->qp, self->partition, 1, PART_BLOCKS, NULL));
	EXPECT_EQ(-ERANGE, np_window_add(&self->qp, self->partition, UINT64_MAX, 2, NULL));
	EXPECT_EQ(-ERANGE, np_window_add(&self->qp, self->partition, 2, UINT64_MAX, NULL));
	EXPECT_EQ(-EINVAL, np_window_add(&self->qp, self->partition, PART_BLOCKS, 0, NULL));
}

static const volatile struct nvme_peer_status_window *slot_of(const struct np_qp *qp, uint32_t id)
{
	return (const volatile struct nvme_peer_status_window *)
		((const uint8_t *)qp->status.at + NVME_PEER_STATUS_WINDOWS) + (id & 0xffff);
}

TEST_F(mediated, removed_window_never_comes_back)
{
	uint32_t id, before = status_of(&self->qp)->window_seq, i;
	struct nvme_peer_window_info info;

	EXPECT_EQ(2, before);
	EXPECT_EQ(1, slot_of(&self->qp, self->part)->state);
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, np_window_add(&self->qp, self->partition, 0, 0, &id));
		EXPECT_EQ(3, id & 0xffff);
		EXPECT_EQ(i, id >> 16);
		EXPECT_EQ(i, slot_of(&self->qp, id)->epoch);
		EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, id, 0, 8, 0));
		EXPECT_EQ(0, np_window_remove(&self->qp, id));
		EXPECT_EQ(-ENOENT, np_window_remove(&self->qp, id));
		EXPECT_EQ(-ENOENT, np_window_info(&self->qp, id, &info));
		EXPECT_EQ(0, slot_of(&self->qp, id)->state);
		EXPECT_EQ(INVALID_NS, run_rw(self, NVMEPEER_OP_READ, id, 0, 8, 0));
	}
	EXPECT_EQ(before + 2 * ROUNDS, status_of(&self->qp)->window_seq);
	EXPECT_EQ(-ENOENT, np_window_remove(&self->qp, 0));
	EXPECT_EQ(-ENOENT, np_window_remove(&self->qp, UINT32_MAX));
	EXPECT_EQ(0, verify(self, 3));
}

TEST_F(mediated, refused_windows_and_buffers)
{
	struct nvme_peer_window_add add = { .size = sizeof(add), .flags = 1, .fd = self->disk };
	struct nvme_peer_window_remove remove = { .size = sizeof(remove), .id = self->part, .reserved = 1 };
	struct nvme_peer_buf_remove drop = { .size = sizeof(drop), .slot = 1, .flags = 1 };
	struct nvme_peer_buf_add buf = { .size = sizeof(buf), .dmabuf_fd = self->memory.fd, .reserved = 1 };
	int null = open("/dev/null", O_RDWR), file = open("/proc/version", O_RDONLY), other;
	struct np_ctrl np1;
	uint32_t slot;

	EXPECT_EQ(-EBADF, np_window_add(&self->qp, -1, 0, 0, NULL));
	EXPECT_EQ(-ENOTBLK, np_window_add(&self->qp, null, 0, 0, NULL));
	EXPECT_EQ(-ENOTBLK, np_window_add(&self->qp, file, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_WINDOW_ADD, &add));
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_WINDOW_REMOVE, &remove));
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_BUF_REMOVE, &drop));
	drop = (struct nvme_peer_buf_remove){ .size = sizeof(drop), .slot = 1, .reserved = 1 };
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_BUF_REMOVE, &drop));
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_BUF_ADD, &buf));
	EXPECT_EQ(-EBADF, np_buf_add(&self->qp, -1, 0, &slot));
	EXPECT_EQ(-EINVAL, np_buf_add(&self->qp, self->memory.fd, 4, &slot));
	EXPECT_EQ(-ENOENT, np_buf_remove(&self->qp, 0));
	EXPECT_EQ(-ENOENT, np_buf_remove(&self->qp, UINT32_MAX));
	close(null);
	close(file);
	/* Neither for reading nor for writing: for ioctls only. */
	other = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_ACCMODE);
	ASSERT_LE(0, other);
	EXPECT_EQ(-EACCES, np_window_add(&self->qp, other, 0, 0, NULL));
	close(other);
	ASSERT_EQ(0, np_ctrl_open(&np1, "np1"));
	other = np_open_node(&np1, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, other);
	EXPECT_EQ(-EXDEV, np_window_add(&self->qp, other, 0, 0, NULL));
	close(other);
	np_ctrl_close(&np1);
	EXPECT_EQ(0, verify(self, 4));
}

TEST_F(mediated, limits_and_seal)
{
	struct nvme_peer_qp_create create = {
		.size = sizeof(create), .mode = NVME_PEER_MODE_MEDIATED, .sq_entries = 4, .cq_entries = 4,
		.qp_fd = -1, .depth = 2, .weight = 3, .timeout_ms = 1000, .max_windows = 1, .max_buffers = 1,
	};
	struct nvme_peer_qp_limits limits = { .size = sizeof(limits) };
	struct np_qp small = { };
	uint32_t slot = 0;

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	small.fd = create.qp_fd;
	EXPECT_EQ(0, np_window_add(&small, self->disk, 0, 0, NULL));
	EXPECT_EQ(-EDQUOT, np_window_add(&small, self->disk, 0, 0, NULL));
	EXPECT_EQ(0, np_buf_add(&small, self->memory.fd, 0, &slot));
	EXPECT_EQ(-EDQUOT, np_buf_add(&small, self->memory.fd, 0, &slot));
	ASSERT_EQ(0, np_ioctl(small.fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(1, limits.max_windows);
	EXPECT_EQ(1, limits.windows);
	EXPECT_EQ(1, limits.max_buffers);
	EXPECT_EQ(1, limits.buffers);
	EXPECT_EQ(0, np_window_remove(&small, 1));
	EXPECT_EQ(0, np_buf_remove(&small, slot));
	EXPECT_EQ(0, np_qp_seal(&small));
	EXPECT_EQ(-EPERM, np_window_add(&small, self->disk, 0, 0, NULL));
	EXPECT_EQ(-EPERM, np_buf_add(&small, self->memory.fd, 0, &slot));
	ASSERT_EQ(0, np_ioctl(small.fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(2, limits.depth);
	EXPECT_EQ(3, limits.weight);
	/* Not less than that of I/O of the CPU. */
	EXPECT_EQ(30000, limits.timeout_ms);
	EXPECT_EQ(1, limits.sealed);
	EXPECT_EQ(0, limits.windows);
	EXPECT_EQ(0, limits.buffers);
	close(small.fd);
}

static int open_smallest(const struct np_ctrl *ctrl, struct np_qp *qp)
{
	struct nvme_peer_qp_create create = {
		.size = sizeof(create), .mode = NVME_PEER_MODE_MEDIATED, .sq_entries = 4, .cq_entries = 4,
		.max_windows = 1, .max_buffers = 1,
	};
	int ret = np_ioctl(ctrl->fd, NVME_PEER_QP_CREATE, &create);

	*qp = (struct np_qp){ .fd = create.qp_fd };
	return ret;
}

/* Also what is in the last slots goes with the queue pair. */
TEST_F(mediated, full_slots_end_with_their_queue_pair)
{
	char before[NP_OBJECTS];
	struct np_memory memory;
	struct np_qp full;
	uint32_t slot;

	ASSERT_EQ(0, np_module_objects(before));
	ASSERT_EQ(0, np_memory_alloc(&memory, self->ctrl.fd));
	ASSERT_EQ(0, open_smallest(&self->ctrl, &full));
	/* It could not be removed while it is open. */
	EXPECT_EQ(0, np_window_add(&full, self->partition, 0, 0, NULL));
	EXPECT_EQ(0, np_buf_add(&full, memory.fd, 0, &slot));
	EXPECT_EQ(-EDQUOT, np_buf_add(&full, memory.fd, 0, &slot));
	/* Sealed comes before full. */
	EXPECT_EQ(0, np_qp_seal(&full));
	EXPECT_EQ(-EPERM, np_window_add(&full, self->disk, 0, 0, NULL));
	EXPECT_EQ(-EPERM, np_buf_add(&full, memory.fd, 0, &slot));
	close(full.fd);
	np_memory_free(&memory);
	EXPECT_EQ(0, np_module_objects_wait(before, NP_TIMEOUT_MS));
}

/* Its slot is empty for good then. */
TEST_F_TIMEOUT(mediated, each_window_of_a_slot_has_an_id, 120)
{
	struct utsname kernel;
	uint32_t i, id = 0;
	struct np_qp small;

	uname(&kernel);
	if (strstr(kernel.release, "-np-"))
		SKIP(return, "takes long in a debug kernel");
	ASSERT_EQ(0, open_smallest(&self->ctrl, &small));
	for (i = 0; i < 1U << 16; i++) {
		ASSERT_EQ(0, np_window_add(&small, self->disk, 0, 0, &id));
		ASSERT_EQ(i << 16 | 1, id);
		ASSERT_EQ(0, np_window_remove(&small, id));
	}
	EXPECT_EQ(-EDQUOT, np_window_add(&small, self->disk, 0, 0, &id));
	close(small.fd);
}

/* A user has 1 GiB: neither what is refused counts, nor what has been removed. */
TEST_F(mediated, only_present_buffers_count)
{
	struct nvme_peer_buf_alloc alloc = { .size = sizeof(alloc), .length = 16U << 20 };
	const uint32_t many = 64;
	struct np_qp sealed;
	uint32_t slot, i;

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_ALLOC, &alloc));
	ASSERT_EQ(0, np_write_file(MAPPED, "1"));
	ASSERT_EQ(0, open_smallest(&self->ctrl, &sealed));
	ASSERT_EQ(0, np_qp_seal(&sealed));
	for (i = 0; i < many; i++)
		ASSERT_EQ(-EPERM, np_buf_add(&sealed, alloc.fd, 0, &slot));
	for (i = 0; i < many; i++)
		ASSERT_EQ(-EINVAL, np_buf_add(&self->qp, alloc.fd, 4, &slot));
	for (i = 0; i < many; i++) {
		ASSERT_EQ(0, np_buf_add(&self->qp, alloc.fd, 0, &slot));
		ASSERT_EQ(0, np_buf_remove(&self->qp, slot));
	}
	EXPECT_EQ(0, np_buf_add(&self->qp, alloc.fd, 0, &slot));
	close(sealed.fd);
	close(alloc.fd);
}

TEST_F(mediated, refused_parameters)
{
	const struct nvme_peer_qp_create valid = {
		.size = sizeof(valid), .mode = NVME_PEER_MODE_MEDIATED, .sq_entries = 4, .cq_entries = 4,
	};
	struct nvme_peer_qp_create bad[] = {
		valid, valid, valid, valid, valid, valid, valid, valid, valid, valid,
	};
	struct nvme_peer_qp_seal seal = { .size = sizeof(seal), .flags = 1 };
	struct nvme_peer_qp_limits limits = { .size = sizeof(limits), .flags = 1 };
	struct nvme_peer_qp_stats counts = { .size = sizeof(counts), .flags = 1 };
	struct nvme_peer_window_info info = { .size = sizeof(info), .flags = 1 };
	uint32_t i;

	bad[0].depth = NVME_PEER_MAX_DEPTH + 1;
	bad[1].weight = NVME_PEER_MAX_WEIGHT + 1;
	bad[2].timeout_ms = 99;
	bad[3].timeout_ms = 120001;
	bad[4].max_windows = NVME_PEER_MAX_WINDOWS + 1;
	bad[5].max_buffers = NVME_PEER_MAX_BUFFERS + 1;
	bad[6].sq_handle = 1;
	bad[7].mode = NVME_PEER_MODE_RELAY;
	bad[7].depth = 1;
	bad[8].reserved2 = 1;
	bad[9].cq_handle = 1;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(-EINVAL, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &bad[i]))
			TH_LOG("case %u", i);
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_QP_SEAL, &seal));
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_QP_STATS, &counts));
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.fd, NVME_PEER_WINDOW_INFO, &info));
}

TEST_F(mediated, largest_parameters)
{
	struct nvme_peer_qp_create most = {
		.size = sizeof(most), .mode = NVME_PEER_MODE_MEDIATED,
		.sq_entries = self->ctrl.info.max_entries, .cq_entries = self->ctrl.info.max_entries,
		.depth = NVME_PEER_MAX_DEPTH, .weight = NVME_PEER_MAX_WEIGHT, .timeout_ms = 120000,
		.max_windows = NVME_PEER_MAX_WINDOWS, .max_buffers = NVME_PEER_MAX_BUFFERS,
	};
	struct nvme_peer_qp_create least = {
		.size = sizeof(least), .mode = NVME_PEER_MODE_MEDIATED, .sq_entries = 2, .cq_entries = 2,
		.depth = 1, .weight = 1, .timeout_ms = 100, .max_windows = 1, .max_buffers = 1,
	};
	struct nvme_peer_qp_limits limits = { .size = sizeof(limits) };

	if (most.cq_entries > NVME_PEER_MAX_MEDIATED_ENTRIES)
		most.sq_entries = most.cq_entries = NVME_PEER_MAX_MEDIATED_ENTRIES;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &most));
	ASSERT_EQ(0, np_ioctl(most.qp_fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(NVME_PEER_MAX_DEPTH, limits.depth);
	EXPECT_EQ(NVME_PEER_MAX_WEIGHT, limits.weight);
	EXPECT_EQ(120000, limits.timeout_ms);
	close(most.qp_fd);
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &least));
	ASSERT_EQ(0, np_ioctl(least.qp_fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(1, limits.depth);
	close(least.qp_fd);
}

/* A call with its structure in memory that it cannot write. */
static int call_read_only(int fd, unsigned long number, const void *request, size_t size)
{
	void *page = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (page == MAP_FAILED)
		return -ENOMEM;
	memcpy(page, request, size);
	ret = mprotect(page, NP_PAGE, PROT_READ) ? -errno : np_ioctl(fd, number, page);
	munmap(page, NP_PAGE);
	return ret;
}

/* A window or a buffer is removed again if its result cannot be copied out. */
TEST_F(mediated, copy_out_failure_is_undone)
{
	struct nvme_peer_window_info info = { .size = sizeof(info), .id = self->whole };
	struct nvme_peer_qp_stats stats = { .size = sizeof(stats) };
	struct nvme_peer_window_add window = { .size = sizeof(window), .fd = self->disk };
	struct nvme_peer_buf_add buf = { .size = sizeof(buf), .dmabuf_fd = self->memory.fd };
	struct nvme_peer_qp_limits limits = { .size = sizeof(limits) };

	EXPECT_EQ(-EFAULT, call_read_only(self->qp.fd, NVME_PEER_WINDOW_ADD, &window, sizeof(window)));
	EXPECT_EQ(-EFAULT, call_read_only(self->qp.fd, NVME_PEER_BUF_ADD, &buf, sizeof(buf)));
	EXPECT_EQ(-EFAULT, call_read_only(self->qp.fd, NVME_PEER_WINDOW_INFO, &info, sizeof(info)));
	EXPECT_EQ(-EFAULT, call_read_only(self->qp.fd, NVME_PEER_QP_STATS, &stats, sizeof(stats)));
	EXPECT_EQ(-EFAULT, call_read_only(self->qp.fd, NVME_PEER_QP_LIMITS, &limits, sizeof(limits)));
	ASSERT_EQ(0, np_ioctl(self->qp.fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(2, limits.windows);
	EXPECT_EQ(1, limits.buffers);
}

/* An exporter takes its memory back: commands complete, and the queue pair lives on. */
TEST_F(mediated, invalidated_buffer)
{
	struct nvmep_test_move move = { .fd = np_test_export(PAGES, 0) };
	int test = np_test_open();
	struct nvme_peer_event event;
	struct np_command command;
	uint32_t slot;

	ASSERT_LE(0, move.fd);
	ASSERT_LE(0, test);
	ASSERT_EQ(0, np_buf_add(&self->qp, move.fd, 0, &slot));
	command = np_window_command(NVMEPEER_OP_READ, self->part, 0, 8, slot, 0);
	ASSERT_EQ(0, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_MOVE, &move));
	ASSERT_EQ(sizeof(event), read(self->qp.fd, &event, sizeof(event)));
	EXPECT_EQ(NVME_PEER_EVENT_BUFFER_ENDED, event.type);
	EXPECT_EQ(slot, event.object);
	EXPECT_EQ(NVME_PEER_QP_LIVE, event.state);
	EXPECT_EQ(BUFFER_GONE, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(self, 5));
	EXPECT_EQ(0, np_buf_remove(&self->qp, slot));
	EXPECT_EQ(DATA_TRANSFER, np_qp_run(&self->qp, &command, NP_TIMEOUT_MS));
	close(test);
	close(move.fd);
}

/* --- modes ---------------------------------------------------------------- */

TEST_F(mediated, other_modes_are_refused_beside_it)
{
	struct nvme_peer_qp_limits limits = { .size = sizeof(limits) };
	struct nvme_peer_window_info info;
	struct nvme_peer_qp_stats now;
	enum nvme_peer_mode mode;
	struct np_qp other;
	uint32_t slot;

	for (mode = NVME_PEER_MODE_DIRECT; mode <= NVME_PEER_MODE_RELAY; mode++) {
		np_qp_set_mode(mode);
		EXPECT_EQ(-EBUSY, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	}
	ASSERT_EQ(0, np_write_file(NP_MIXED_MODES, "1"));
	EXPECT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(-EOPNOTSUPP, np_window_add(&other, self->disk, 0, 0, NULL));
	EXPECT_EQ(-EOPNOTSUPP, np_window_remove(&other, 1));
	EXPECT_EQ(-EOPNOTSUPP, np_window_info(&other, 1, &info));
	EXPECT_EQ(-EOPNOTSUPP, np_buf_add(&other, self->memory.fd, 0, &slot));
	EXPECT_EQ(-EOPNOTSUPP, np_buf_remove(&other, 1));
	EXPECT_EQ(-EOPNOTSUPP, np_ioctl(other.fd, NVME_PEER_QP_LIMITS, &limits));
	EXPECT_EQ(-EOPNOTSUPP, np_qp_stats(&other, &now));
	EXPECT_EQ(-EOPNOTSUPP, np_qp_seal(&other));
	np_qp_close(&other);
	ASSERT_EQ(0, np_write_file(NP_MIXED_MODES, "0"));
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	EXPECT_EQ(0, verify(self, 6));
}

TEST_F(mediated, it_is_refused_beside_other_modes)
{
	struct nvme_peer_qp_export export;
	struct np_qp other, again;
	uint32_t slot;

	np_qp_close(&self->qp);
	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
	ASSERT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_export_fd(other.fd, NVME_PEER_EXPORT_DOORBELL, 0, &export));
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	EXPECT_EQ(-EBUSY, np_qp_open(&again, self->ctrl.fd, ENTRIES));
	np_qp_close(&other);
	/* Its doorbells are in quarantine: a dma-buf of them is open, and this process mapped them. */
	EXPECT_EQ(-EBUSY, np_qp_open(&again, self->ctrl.fd, ENTRIES));
	close(export.fd);
	EXPECT_EQ(-EBUSY, np_qp_open(&again, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_write_file(NP_MIXED_MODES, "1"));
	EXPECT_EQ(0, np_qp_open(&again, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, np_buf_add(&again, self->memory.fd, 0, &slot));
	ASSERT_EQ(0, np_write_file(NP_MIXED_MODES, "0"));
	np_qp_close(&again);
}

/* Addresses of another exporter's memory are of no concern: its commands carry none. */
TEST_F(mediated, exposed_buffer_of_its_node_is_invalidated)
{
	struct nvmep_test_move move = { .fd = np_test_export(4, 0) };
	struct nvme_peer_buf_range range;
	struct nvme_peer_buf_table table = {
		.size = sizeof(table), .count = 1, .ranges = (uintptr_t)&range,
	};
	struct nvme_peer_buf_import import;
	int test = np_test_open();
	struct np_qp other;

	ASSERT_LE(0, move.fd);
	ASSERT_LE(0, test);
	ASSERT_EQ(0, np_import(self->ctrl.fd, move.fd, 0, &import));
	table.handle = import.handle;
	/* From here on a command of a peer might carry the address. */
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_TABLE, &table));
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_MOVE, &move));
	np_sleep_ms(200);
	EXPECT_EQ(NVME_PEER_QP_LIVE, status_of(&self->qp)->state);
	EXPECT_EQ(0, verify(self, 12));
	EXPECT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	np_qp_close(&other);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(test);
	close(move.fd);
}

/* The queue IDs of the kernel's own queue pairs are neither the CPU's nor free for it. */
TEST_F(mediated, queues_of_the_cpu)
{
	struct nvme_peer_info info;
	char path[64], count[16];

	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/cpu_queues", self->ctrl.instance);
	snprintf(count, sizeof(count), "%u", info.qids_total - 1);
	EXPECT_EQ(-EBUSY, np_write_file(path, count));
	EXPECT_EQ(NVME_PEER_QP_LIVE, status_of(&self->qp)->state);
	np_qp_close(&self->qp);
	ASSERT_EQ(0, np_info(self->ctrl.fd, &self->ctrl.info));
	EXPECT_EQ(self->ctrl.info.qids_cpu, info.qids_cpu);
}

static int make_swap(int fd)
{
	static _Alignas(4096) struct {
		char boot[1024];
		uint32_t version, last_page, bad_pages, unused[122];
		char rest[4096 - 1024 - 500 - 10];
		char magic[10];
	} __attribute__((packed)) header = {
		.version = 1, .last_page = PART_BYTES / NP_PAGE - 1, .magic = "SWAPSPACE2",
	};

	return np_disk_write(fd, (const void *)&header, sizeof(header), 0);
}

TEST_F(mediated, swap_space_is_refused)
{
	struct nvme_peer_window_info info;
	char path[64];

	snprintf(path, sizeof(path), "/dev/nvmep%dn1p1", self->ctrl.instance);
	ASSERT_EQ(0, make_swap(self->partition));
	ASSERT_EQ(0, swapon(path, 0)) TH_LOG("%d", errno);
	EXPECT_EQ(-ETXTBSY, np_window_add(&self->qp, self->partition, 0, 0, NULL));
	/* By the window of before: as by a descriptor of before. */
	EXPECT_EQ(READ_ONLY, run_rw(self, NVMEPEER_OP_WRITE, self->part, 8, 8, 0));
	EXPECT_EQ(READ_ONLY, run_rw(self, NVMEPEER_OP_WRITE_ZEROES, self->part, 8, 8, 0));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, self->part, 8, 8, 0));
	ASSERT_EQ(0, np_window_info(&self->qp, self->part, &info));
	EXPECT_EQ(NVME_PEER_RIGHT_READ, info.rights);
	EXPECT_EQ(0, swapoff(path));
	EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_WRITE, self->part, 8, 8, 0));
	EXPECT_EQ(0, np_window_add(&self->qp, self->partition, 0, 0, NULL));
}

/* All queue IDs were a peer's; the kernel's own queues take them nevertheless. */
TEST_F(mediated, queue_ids_of_former_peers)
{
	struct nvme_peer_qp_create create;
	uint32_t i;

	np_qp_close(&self->qp);
	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
	for (i = 0; i < 2 * self->ctrl.info.qids_total; i++) {
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
		close(create.qp_fd);
	}
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
}

/* A queue pair of another mode that has ended, although its file is open. */
TEST_F(mediated, ended_queue_pair_is_no_obstacle)
{
	struct nvmep_test_move move = { .fd = np_test_export(4, 0) };
	struct nvme_peer_qp_create create = {
		.size = sizeof(create), .sq_entries = ENTRIES, .cq_entries = ENTRIES, .qp_fd = -1,
	};
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct nvme_peer_buf_import import;
	int test = np_test_open(), ret;

	ASSERT_LE(0, move.fd);
	ASSERT_LE(0, test);
	np_qp_close(&self->qp);
	ASSERT_EQ(0, np_import(self->ctrl.fd, move.fd, 0, &import));
	create.sq_handle = import.handle;
	create.cq_handle = import.handle;
	create.cq_offset = NP_PAGE;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	EXPECT_EQ(-EBUSY, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_MOVE, &move));
	do
		ret = np_qp_open(&self->qp, self->ctrl.fd, ENTRIES);
	while (ret == -EBUSY && np_now_ms() < end);
	EXPECT_EQ(0, ret);
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(test);
	close(move.fd);
}

static int use_without_capabilities(int ctrl_fd)
{
	struct nvme_peer_qp_create heavy = {
		.size = sizeof(heavy), .sq_entries = 4, .cq_entries = 4, .weight = 2,
	};
	struct np_memory memory;
	struct np_command command;
	struct np_qp qp;
	uint32_t window;
	int disk;
	struct np_ctrl ctrl;

	if (np_ctrl_open(&ctrl, "np0"))
		return 1;
	disk = np_open_node(&ctrl, "/dev/nvmep%dn1p1", O_RDWR);
	if (disk < 0 || np_drop_capabilities())
		return 2;
	if (np_qp_open(&qp, ctrl_fd, ENTRIES))
		return 3;
	heavy.mode = NVME_PEER_MODE_MEDIATED;
	if (np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, &heavy) != -EPERM)
		return 6;
	heavy.weight = 1;
	heavy.timeout_ms = 120000;
	if (np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, &heavy) != -EPERM)
		return 7;
	/* The timeout of the CPU's I/O. */
	heavy.timeout_ms = 30000;
	if (np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, &heavy))
		return 8;
	close(heavy.qp_fd);
	if (np_memory_alloc(&memory, ctrl_fd) || np_buf_add(&qp, memory.fd, 0, &memory.slot) ||
	    np_window_add(&qp, disk, 0, 0, &window))
		return 4;
	command = np_window_command(NVMEPEER_OP_READ, window, 0, 8, memory.slot, 0);
	return np_qp_run(&qp, &command, NP_TIMEOUT_MS) ? 5 : 0;
}

TEST_F(mediated, needs_no_capability)
{
	EXPECT_EQ(0, np_in_child(use_without_capabilities, self->ctrl.fd));
}

static int exceed_locked_memory(int ctrl_fd)
{
	/* Rings of a page each, and three pages. */
	struct rlimit limit = { .rlim_cur = 4 * NP_PAGE, .rlim_max = 5 * NP_PAGE };
	struct np_qp qp;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(12345) || np_drop_capabilities())
		return 1;
	if (np_qp_open(&qp, ctrl_fd, ENTRIES) != -ENOBUFS)
		return 2;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || np_qp_open(&qp, ctrl_fd, ENTRIES))
		return 3;
	np_qp_close(&qp);
	return np_qp_open(&qp, ctrl_fd, ENTRIES) ? 4 : 0;
}

static int be_another_user(int ctrl_fd)
{
	struct np_qp qp;

	return setuid(12345) ? 1 : np_qp_open(&qp, ctrl_fd, ENTRIES) ? 2 : 0;
}

/* Becomes a user of a new user namespace, whose map another process writes. */
static int be_subordinate_user(int answer, int go)
{
	char byte;

	return unshare(CLONE_NEWUSER) || write(answer, "", 1) != 1 || read(go, &byte, 1) != 1 || setuid(1);
}

static int open_as_subordinate_user(int ctrl_fd, int answer, int go)
{
	struct np_qp first, second;

	if (setresuid(12345, 12345, 12345) || np_qp_open(&first, ctrl_fd, ENTRIES))
		return 1;
	if (be_subordinate_user(answer, go))
		return 2;
	if (np_qp_open(&second, ctrl_fd, ENTRIES) != -EDQUOT)
		return 3;
	np_qp_close(&first);
	return np_qp_open(&second, ctrl_fd, ENTRIES) ? 4 : 0;
}

/* A user has no more by its user namespaces than without. */
static int use_subordinate_user(int ctrl_fd)
{
	int answer[2], go[2], status;
	char map[64], byte;
	pid_t child;

	if (pipe(answer) || pipe(go))
		return 5;
	child = fork();
	if (!child)
		_exit(open_as_subordinate_user(ctrl_fd, answer[1], go[0]));
	close(answer[1]);
	snprintf(map, sizeof(map), "/proc/%d/uid_map", child);
	if (child < 0 || (read(answer[0], &byte, 1) == 1 &&
			  (np_write_file(map, "0 200000 2") || write(go[1], "", 1) != 1)))
		return 6;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 7;
	return WEXITSTATUS(status);
}

TEST_F(mediated, memory_and_number_are_limited)
{
	struct np_qp other;
	uint32_t slot;

	EXPECT_EQ(0, np_in_child(exceed_locked_memory, self->ctrl.fd));
	ASSERT_EQ(0, np_write_file(MAXIMUM, "1"));
	EXPECT_EQ(-EDQUOT, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, np_in_child(be_another_user, self->ctrl.fd));
	EXPECT_EQ(0, np_in_child(use_subordinate_user, self->ctrl.fd));
	ASSERT_EQ(0, np_write_file(MAXIMUM, "64"));
	ASSERT_EQ(0, np_write_file(TOTAL, "1"));
	EXPECT_EQ(2, np_in_child(be_another_user, self->ctrl.fd));
	ASSERT_EQ(0, np_write_file(TOTAL, "1024"));
	EXPECT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	np_qp_close(&other);
	ASSERT_EQ(0, np_write_file(MAPPED, "0"));
	EXPECT_EQ(-ENOSPC, np_buf_add(&self->qp, self->memory.fd, 0, &slot));
	ASSERT_EQ(0, np_write_file(MAPPED, "256"));
	EXPECT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &slot));
}

/* Of 1 GiB the last byte may be mapped, and no page more until another buffer is removed. */
TEST_F(mediated, mapped_memory_is_limited_exactly)
{
	const uint32_t length = 1U << 26;
	struct nvme_peer_buf_alloc alloc = { .size = sizeof(alloc), .length = length };
	uint64_t mapped;
	uint32_t slot;

	ASSERT_EQ(0, np_buf_remove(&self->qp, self->memory.slot));
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_ALLOC, &alloc));
	ASSERT_EQ(0, np_write_file(MAPPED, "1"));
	for (mapped = 0; mapped < 1U << 30; mapped += length)
		ASSERT_EQ(0, np_buf_add(&self->qp, alloc.fd, 0, &slot));
	EXPECT_EQ(-ENOSPC, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	EXPECT_EQ(0, np_buf_remove(&self->qp, slot));
	EXPECT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &self->memory.slot));
	EXPECT_EQ(-ENOSPC, np_buf_add(&self->qp, alloc.fd, 0, &slot));
	close(alloc.fd);
}

/* --- hostile tenants -------------------------------------------------------- */

/* More of them, and others, by NP_HOSTILE and NP_SEED in the environment. */
#define HOSTILE_ENTRIES	20000U

static uint32_t from_environment(const char *name, uint32_t otherwise)
{
	const char *value = getenv(name);

	return value ? (uint32_t)strtoul(value, NULL, 10) : otherwise;
}

/**
 * struct scribbler - a thread that rewrites the submission ring without a pause
 */
struct scribbler {
	struct np_qp *qp;
	uint32_t window;
	uint32_t slot;
	atomic_bool stop;
	pthread_t thread;
};

/* Valid and invalid values in turn: a second read of a word by the kernel would find another one. */
static void *scribble(void *argument)
{
	struct scribbler *scribbler = argument;
	struct np_command *ring = scribbler->qp->sq.at;
	unsigned int seed = from_environment("NP_SEED", 1);

	while (!atomic_load(&scribbler->stop)) {
		volatile struct np_command *entry = &ring[(unsigned int)rand_r(&seed) % ENTRIES];
		int wild = rand_r(&seed);

		entry->opcode = wild & 1 ? NVMEPEER_OP_WRITE : (uint8_t)(wild >> 8) % 10;
		entry->nsid = wild & 2 ? scribbler->window : (uint32_t)wild;
		entry->cdw10[0] = wild & 4 ? (uint32_t)(wild % 4096) : UINT32_MAX - (uint32_t)wild % 64;
		entry->cdw10[1] = wild & 8 ? 0 : (uint32_t)wild;
		entry->cdw10[2] = wild & 16 ? (uint32_t)wild % 64 : (uint32_t)wild;
		entry->prp1 = NVME_PEER_HANDLE_ADDRESS(wild & 32 ? scribbler->slot : (uint32_t)wild & 0xffff,
						       (uint64_t)(wild % 4096) * 64);
		entry->prp2 = (uint64_t)wild << 12;
		entry->flags = wild & 64 ? 0 : (uint8_t)(wild >> 3);
	}
	return NULL;
}

/* What lies before and behind the partition. */
static int fill_neighbours(int disk, bool check)
{
	static _Alignas(4096) uint8_t bytes[PART_BYTES], found[PART_BYTES];
	uint64_t places[] = { 0, PART_START + PART_BYTES };
	unsigned int i;
	int ret = 0;

	for (i = 0; i < 2 && !ret; i++) {
		np_pattern(bytes, sizeof(bytes), places[i], 77);
		if (!check)
			ret = np_disk_write(disk, bytes, sizeof(bytes), places[i]);
		else
			ret = np_disk_read(disk, found, sizeof(found), places[i]) ?:
			      memcmp(bytes, found, sizeof(bytes)) ? -EILSEQ : 0;
	}
	return ret;
}

/* Submits without regard to what is in the ring; reaps what completes. */
static uint32_t hostile_rounds(struct np_qp *qp, uint32_t rounds)
{
	uint32_t done = 0, i;

	while (done < rounds) {
		for (i = 0; i < BATCH; i++)
			qp->tail = (qp->tail + 1) % ENTRIES;
		if (np_qp_ring_doorbell(qp))
			break;
		for (i = 0; i < BATCH; i++)
			if (np_qp_reap(qp, NULL, NP_TIMEOUT_MS) < 0)
				return done;
		done += BATCH;
	}
	return done;
}

static int be_hostile(int ctrl_fd)
{
	struct scribbler scribbler = { };
	struct np_memory memory;
	uint32_t window;
	struct np_ctrl ctrl;
	struct np_qp qp;
	int disk;
	const uint32_t rounds = from_environment("NP_HOSTILE", HOSTILE_ENTRIES);

	if (np_ctrl_open(&ctrl, "np0"))
		return 1;
	disk = np_open_node(&ctrl, "/dev/nvmep%dn1p1", O_RDWR);
	if (disk < 0 || np_drop_capabilities() || np_qp_open(&qp, ctrl_fd, ENTRIES) ||
	    np_memory_alloc(&memory, ctrl_fd) || np_buf_add(&qp, memory.fd, 0, &memory.slot) ||
	    np_window_add(&qp, disk, 0, 0, &window) || np_qp_seal(&qp))
		return 2;
	scribbler = (struct scribbler){ .qp = &qp, .window = window, .slot = memory.slot };
	if (pthread_create(&scribbler.thread, NULL, scribble, &scribbler))
		return 3;
	if (hostile_rounds(&qp, rounds) < rounds || status_of(&qp)->state != NVME_PEER_QP_LIVE)
		return 4;
	atomic_store(&scribbler.stop, true);
	pthread_join(scribbler.thread, NULL);
	return 0;
}

/* 10 ms for each entry. */
TEST_F_TIMEOUT(mediated, hostile_entries_harm_no_neighbour,
	       (int)(from_environment("NP_HOSTILE", HOSTILE_ENTRIES) / 100))
{
	int status;
	uint32_t i;
	pid_t child;

	ASSERT_EQ(0, fill_neighbours(self->disk, false));
	child = fork();
	if (!child)
		_exit(be_hostile(self->ctrl.fd));
	ASSERT_LT(0, child);
	for (i = 0; !waitpid(child, &status, WNOHANG); i++) {
		np_pattern(self->memory.bytes, NP_PAGE, 0, i);
		/* Beyond the partition and what is compared. */
		EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_WRITE, self->whole, NP_AREA(4) / NP_BLOCK, 8, 0));
		EXPECT_EQ(0, run_rw(self, NVMEPEER_OP_READ, self->whole, NP_AREA(4) / NP_BLOCK, 8, NP_PAGE));
		EXPECT_EQ(0, memcmp(self->memory.bytes, self->memory.bytes + NP_PAGE, NP_PAGE));
	}
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, fill_neighbours(self->disk, true));
	EXPECT_EQ(0, status_of(&self->qp)->losses);
}

/* More than one pass takes, and none of them costs the controller anything. */
TEST_F(mediated, many_refused_entries)
{
	const struct np_command command = { .opcode = 0x7f, .nsid = 1 };
	struct np_pollers before, after;
	struct np_qp qp;
	uint32_t i;

	np_qp_set_shares(0, NVME_PEER_MAX_WEIGHT);
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, 1024));
	ASSERT_EQ(0, np_pollers_read(&before));
	for (i = 0; i < 1000; i++)
		np_qp_put(&qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&qp));
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(INVALID_OPCODE, np_qp_reap(&qp, NULL, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_pollers_read(&after));
	EXPECT_LE(before.active + 1000 / 128, after.active);
	np_qp_close(&qp);
	np_qp_set_shares(0, 0);
	EXPECT_EQ(0, verify(self, 13));
}

TEST_F(mediated, bad_doorbell_fails_its_queue_pair_only)
{
	struct np_qp other;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
		EXPECT_EQ(0, np_store(i ? other.head_doorbell : other.tail_doorbell, ENTRIES));
		EXPECT_EQ(0, np_qp_wait_state(&other, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
		EXPECT_EQ(NVME_PEER_QP_REASON_DOORBELL, status_of(&other)->reason);
		np_qp_close(&other);
		EXPECT_EQ(0, verify(self, 8));
	}
}

/* A tenant that does not reap gets no entry overwritten, and no command beyond its room. */
TEST_F(mediated, tenant_that_never_reaps)
{
	const struct np_command command = { .opcode = NVMEPEER_OP_FLUSH, .nsid = self->part };
	const struct np_completion *cq = self->qp.cq.at;
	struct nvme_peer_qp_stats now;
	uint32_t i;

	for (i = 0; i < ENTRIES - 1; i++)
		np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	while (!(cq[ENTRIES - 2].status & 1))
		np_sleep_ms(1);
	for (i = 0; i < ENTRIES / 2; i++)
		np_qp_put(&self->qp, &command);
	ASSERT_EQ(0, np_qp_ring_doorbell(&self->qp));
	np_sleep_ms(100);
	ASSERT_EQ(0, np_qp_stats(&self->qp, &now));
	EXPECT_EQ(ENTRIES - 1, now.flushes);
	EXPECT_EQ(0, cq[ENTRIES - 1].status);
	for (i = 0; i < ENTRIES - 1 + ENTRIES / 2; i++)
		EXPECT_EQ(0, np_qp_reap(&self->qp, NULL, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(self, 10));
}

/* --- ends ----------------------------------------------------------------- */

/**
 * struct load - a thread that reads by one queue pair
 */
struct load {
	struct np_qp *qp;
	struct np_command command;
	atomic_uint done;
	atomic_bool stop;
	pthread_t thread;
};

static void *read_on_and_on(void *argument)
{
	struct load *load = argument;
	struct np_qp *qp = load->qp;
	uint32_t i;

	while (!atomic_load(&load->stop) && status_of(qp)->state == NVME_PEER_QP_LIVE) {
		for (i = 0; i < BATCH; i++)
			np_qp_put(qp, &load->command);
		np_qp_ring_doorbell(qp);
		for (i = 0; i < BATCH && status_of(qp)->state == NVME_PEER_QP_LIVE; )
			if (np_qp_reap(qp, NULL, 20) != -ETIMEDOUT)
				i += (atomic_fetch_add(&load->done, 1), 1U);
			else if (atomic_load(&load->stop))
				break;
	}
	return NULL;
}

static int load_start(struct load *load, FIXTURE_DATA(mediated) *self)
{
	int ret;

	*load = (struct load){
		.qp = &self->qp,
		.command = np_window_command(NVMEPEER_OP_READ, self->part, 0, 64, self->memory.slot, 0),
	};
	ret = -pthread_create(&load->thread, NULL, read_on_and_on, load);
	while (!ret && atomic_load(&load->done) < 2 * BATCH)
		np_sleep_ms(1);
	return ret;
}

static void load_stop(struct load *load)
{
	atomic_store(&load->stop, true);
	pthread_join(load->thread, NULL);
}

TEST_F_TIMEOUT(mediated, reset_under_load_then_rearm, 120)
{
	struct nvme_peer_info info;
	struct load load;
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, load_start(&load, self));
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &info, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
		load_stop(&load);
		ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
		/* Windows and buffers stay. */
		EXPECT_EQ(0, verify(self, i));
	}
	EXPECT_EQ(ROUNDS, status_of(&self->qp)->losses);
}

TEST_F(mediated, peer_requests_recovery)
{
	struct np_export control;
	volatile struct nvme_peer_control *page;

	ASSERT_EQ(0, np_export_open(&control, self->qp.fd, NVME_PEER_EXPORT_CONTROL, 0));
	page = control.at;
	page->quiesce = 1;
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, verify(self, 11));
	np_export_close(&control);
}

TEST_F(mediated, windows_and_buffers_are_removed_under_load)
{
	struct load load;
	uint32_t i, slot = 0;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, load_start(&load, self));
		EXPECT_EQ(0, np_window_remove(&self->qp, self->part));
		EXPECT_EQ(0, np_buf_remove(&self->qp, self->memory.slot));
		load_stop(&load);
		/* Entries that were not reaped. */
		np_qp_close(&self->qp);
		ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
		ASSERT_EQ(0, np_buf_add(&self->qp, self->memory.fd, 0, &slot));
		ASSERT_EQ(0, np_window_add(&self->qp, self->disk, 0, 0, &self->whole));
		ASSERT_EQ(0, np_window_add(&self->qp, self->partition, 0, 0, &self->part));
		self->memory.slot = slot;
		EXPECT_EQ(0, verify(self, i));
	}
}

static void be_busy(int answer)
{
	FIXTURE_DATA(mediated) self = { };
	struct load load;

	if (np_ctrl_open(&self.ctrl, "np0"))
		_exit(1);
	self.partition = np_open_node(&self.ctrl, "/dev/nvmep%dn1p1", O_RDWR);
	if (self.partition < 0 || np_qp_open(&self.qp, self.ctrl.fd, ENTRIES) ||
	    np_memory_alloc(&self.memory, self.ctrl.fd) ||
	    np_buf_add(&self.qp, self.memory.fd, 0, &self.memory.slot) ||
	    np_window_add(&self.qp, self.partition, 0, 0, &self.part) || load_start(&load, &self) ||
	    write(answer, "", 1) != 1)
		_exit(2);
	pause();
	_exit(3);
}

TEST_F(mediated, process_dies_under_load)
{
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		EXPECT_EQ(0, np_kill_child(be_busy));
		EXPECT_EQ(0, verify(self, i));
	}
}

/**
 * struct changer - a thread that adds and removes a buffer
 */
struct changer {
	const struct np_qp *qp;
	int fd;
	pthread_t thread;
};

static void *add_and_remove(void *argument)
{
	const struct changer *changer = argument;
	uint32_t slot;

	while (!np_buf_add(changer->qp, changer->fd, 0, &slot))
		np_buf_remove(changer->qp, slot);
	return NULL;
}

TEST_F_TIMEOUT(mediated, unbind_under_load, 120)
{
	struct changer changers[] = {
		{ .qp = &self->qp, .fd = self->memory.fd }, { .qp = &self->qp, .fd = self->memory.fd },
	};
	struct load load;
	uint32_t slot, i;

	ASSERT_EQ(0, load_start(&load, self));
	for (i = 0; i < ARRAY_SIZE(changers); i++)
		ASSERT_EQ(0, pthread_create(&changers[i].thread, NULL, add_and_remove, &changers[i]));
	close(self->partition);
	close(self->disk);
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	for (i = 0; i < ARRAY_SIZE(changers); i++)
		pthread_join(changers[i].thread, NULL);
	ASSERT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_GONE, NP_TIMEOUT_MS));
	EXPECT_EQ(NVME_PEER_QP_REASON_UNBOUND, status_of(&self->qp)->reason);
	load_stop(&load);
	EXPECT_EQ(-ESHUTDOWN, np_window_add(&self->qp, self->disk, 0, 0, NULL));
	EXPECT_EQ(-ESHUTDOWN, np_buf_add(&self->qp, self->memory.fd, 0, &slot));
	EXPECT_EQ(-ENOENT, np_window_remove(&self->qp, self->part));
	np_qp_close(&self->qp);
	np_memory_free(&self->memory);
	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, np_bind_all());
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->disk);
	ASSERT_EQ(0, np_partition_add(self->disk));
	self->partition = np_open_node(&self->ctrl, "/dev/nvmep%dn1p1", O_RDWR | O_DIRECT);
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_memory_alloc(&self->memory, self->ctrl.fd));
}

/* --- shares --------------------------------------------------------------- */

#define BACKLOG		1023U
#define ATTEMPTS	10U

/* Queues a backlog of long reads, which are not reaped, and reports none of them. */
static int open_with_backlog(struct np_qp *qp, FIXTURE_DATA(mediated) *self, uint32_t weight)
{
	struct np_command command;
	uint32_t window, slot, i;
	int ret;

	np_qp_set_shares(NVME_PEER_MAX_DEPTH, weight);
	ret = np_qp_open(qp, self->ctrl.fd, BACKLOG + 1);
	np_qp_set_shares(0, 0);
	ret = ret ?: np_buf_add(qp, self->memory.fd, 0, &slot);
	ret = ret ?: np_window_add(qp, self->disk, 0, 0, &window);
	command = np_window_command(NVMEPEER_OP_READ, window, 0, BYTES / NP_BLOCK, slot, 0);
	for (i = 0; i < BACKLOG && !ret; i++)
		np_qp_put(qp, &command);
	return ret;
}

static uint32_t reads_of(const struct np_qp *qp)
{
	struct nvme_peer_qp_stats now;

	return np_qp_stats(qp, &now) ? 0 : (uint32_t)now.reads;
}

/*
 * How many reads were sent for each of three tenants when there are @least for the first one. Returns
 * -EAGAIN if this process was late.
 */
static int count_reads(const struct np_qp *qps, uint32_t reads[3], uint32_t least)
{
	uint32_t i;

	while (reads_of(&qps[0]) < least)
		;
	for (i = 0; i < 3; i++)
		reads[i] = reads_of(&qps[i]);
	return reads_of(&qps[0]) - reads[0] > BACKLOG / 32 ? -EAGAIN : 0;
}

/*
 * How many reads were sent for two tenants of weight 1 and one of weight 6 while all have a backlog,
 * and are beyond what is sent at once. Returns -EAGAIN if this process was late.
 */
static int compare_shares(FIXTURE_DATA(mediated) *self, uint32_t reads[3])
{
	uint32_t before[3] = { 0 }, after[3] = { 0 }, i;
	struct np_qp qps[3];
	int ret = 0;

	for (i = 0; i < 3; i++)
		ret = ret ?: open_with_backlog(&qps[i], self, i ? 1 : 6);
	for (i = 3; i-- && !ret; )
		ret = np_qp_ring_doorbell(&qps[i]);
	ret = ret ?: count_reads(qps, before, BACKLOG / 6);
	ret = ret ?: count_reads(qps, after, before[0] + BACKLOG / 3);
	for (i = 0; i < 3; i++) {
		reads[i] = after[i] - before[i];
		np_qp_close(&qps[i]);
	}
	return ret ?: after[0] > BACKLOG * 3 / 4 ? -EAGAIN : 0;
}

/* Tenants whose commands exceed what the shared queue pairs take: shares are by weight. */
TEST_F_TIMEOUT(mediated, shares_by_weight, 60)
{
	uint32_t reads[3], i;
	int ret = -EAGAIN;

	for (i = 0; i < ATTEMPTS && ret == -EAGAIN; i++)
		ret = compare_shares(self, reads);
	ASSERT_EQ(0, ret);
	TH_LOG("%u, %u and %u reads", reads[0], reads[1], reads[2]);
	for (i = 1; i < 3; i++) {
		EXPECT_LT(2 * reads[i], reads[0]);
		EXPECT_LT(reads[0] / 16, reads[i]);
	}
}

/* --- Format ---------------------------------------------------------------- */

/* Indices of QEMU's LBA formats. */
#define FORMAT_512	0
#define FORMAT_512_META	1
#define FORMAT_4096	4
#define FORMAT_PI_1	(1U << 5)

static int format(const struct np_ctrl *ctrl, uint32_t lba_format)
{
	struct nvme_admin_cmd cmd = { .opcode = NVME_ADMIN_FORMAT, .nsid = 1, .cdw10 = lba_format };

	return np_admin(ctrl->fd, &cmd);
}

/* Commands wait for Format, and those that were meant for another format are refused. */
TEST_F_TIMEOUT(mediated, format_under_load, 120)
{
	FIXTURE_DATA(mediated) other = { };
	struct load load;
	uint32_t id;

	ASSERT_EQ(0, np_ctrl_open(&other.ctrl, "np1"));
	other.disk = np_open_node(&other.ctrl, "/dev/nvmep%dn1", O_RDWR);
	ASSERT_LE(0, other.disk);
	ASSERT_EQ(0, np_qp_open(&other.qp, other.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_buf_add(&other.qp, self->memory.fd, 0, &other.memory.slot));
	ASSERT_EQ(0, np_window_add(&other.qp, other.disk, 0, 0, &other.part));
	ASSERT_EQ(0, load_start(&load, &other));
	EXPECT_EQ(0, format(&other.ctrl, FORMAT_512));
	EXPECT_EQ(0, format(&other.ctrl, FORMAT_512));
	load_stop(&load);
	EXPECT_EQ(0, status_of(&other.qp)->losses);
	np_qp_close(&other.qp);
	ASSERT_EQ(0, np_qp_open(&other.qp, other.ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_buf_add(&other.qp, self->memory.fd, 0, &other.memory.slot));
	ASSERT_EQ(0, np_window_add(&other.qp, other.disk, 0, 0, &other.part));
	EXPECT_EQ(0, run_rw(&other, NVMEPEER_OP_READ, other.part, 0, 8, 0));
	EXPECT_EQ(0, format(&other.ctrl, FORMAT_4096));
	EXPECT_EQ(INVALID_NS, run_rw(&other, NVMEPEER_OP_READ, other.part, 0, 8, 0));
	ASSERT_EQ(0, np_window_add(&other.qp, other.disk, 0, 0, &id));
	EXPECT_EQ(0, run_rw(&other, NVMEPEER_OP_READ, id, 0, 8, 0));
	EXPECT_EQ(0, format(&other.ctrl, FORMAT_512_META));
	EXPECT_EQ(-EMEDIUMTYPE, np_window_add(&other.qp, other.disk, 0, 0, NULL));
	EXPECT_EQ(0, format(&other.ctrl, FORMAT_512_META | FORMAT_PI_1));
	EXPECT_EQ(-EMEDIUMTYPE, np_window_add(&other.qp, other.disk, 0, 0, NULL));
	/* The size of a block is that of the first window, but not the metadata. */
	EXPECT_NE(0, run_rw(&other, NVMEPEER_OP_READ, other.part, 0, 8, 0));
	EXPECT_EQ(0, format(&other.ctrl, FORMAT_512));
	EXPECT_EQ(0, run_rw(&other, NVMEPEER_OP_READ, other.part, 0, 8, 0));
	EXPECT_EQ(INVALID_NS, run_rw(&other, NVMEPEER_OP_READ, id, 0, 8, 0));
	EXPECT_EQ(0, status_of(&other.qp)->losses);
	np_qp_close(&other.qp);
	close(other.disk);
	np_ctrl_close(&other.ctrl);
}

TEST_HARNESS_MAIN
