// SPDX-License-Identifier: GPL-2.0-only
/*
 * The commands that inference engines' caches send to a generic node: LMCache's raw_block with
 * use_uring_cmd (its commit 018b4426), and Mooncake's NVMe-KV (its commit 29b096e6) on a namespace
 * of the Key Value command set.
 *
 * kernels: 7
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define DEPTH	256U
#define BIG	(IORING_SETUP_SQE128 | IORING_SETUP_CQE32)

static void queue(struct io_uring *ring, int fd, const struct nvme_uring_cmd *cmd, uint64_t data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	/* Never fails: tests do not queue more than the ring holds. */
	if (!sqe)
		abort();
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = NVME_URING_CMD_IO;
	/* Mooncake sets it, and the kernel does not use it. */
	sqe->len = sizeof(*cmd);
	sqe->user_data = data;
	memcpy(sqe->cmd, cmd, sizeof(*cmd));
}

static int collect(struct io_uring *ring, uint64_t *result)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe(ring, &cqe);

	if (ret)
		return ret;
	ret = cqe->res;
	if (result)
		*result = cqe->big_cqe[0];
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

/* --- LMCache's raw_block ------------------------------------------------------------ */

#define SLOTS		16U
#define HEADER		4096U
#define SLOT_BYTES	(64U << 10)

/* Log2 of the logical block by Identify Namespace on the generic node, or 0. */
static uint32_t block_shift(int fd, uint32_t nsid)
{
	static uint8_t identify[4096];
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.nsid = nsid,
		.addr = (uintptr_t)identify,
		.data_len = sizeof(identify),
		.cdw10 = NVME_CNS_NAMESPACE,
	};

	if (np_ioctl(fd, NVME_IOCTL_ADMIN_CMD, &cmd))
		return 0;
	return identify[128 + 4 * (identify[26] & 0xf) + 2];
}

static struct nvme_uring_cmd rw(uint8_t opcode, uint64_t offset, const void *data, uint32_t length,
				uint32_t shift)
{
	return (struct nvme_uring_cmd){
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)data,
		.data_len = length,
		.cdw10 = (uint32_t)(offset >> shift),
		.cdw11 = (uint32_t)(offset >> shift >> 32),
		.cdw12 = (length >> shift) - 1,
	};
}

/*
 * Header and payload of each slot in a command of its own, all in flight together, and
 * completions by an eventfd.  Returns the number of commands that failed.
 */
static int transfer(struct io_uring *ring, int fd, uint8_t opcode, uint8_t *data, uint32_t shift)
{
	struct pollfd completed = { .fd = eventfd(0, EFD_NONBLOCK), .events = POLLIN };
	int failed = 0;
	uint32_t i, left;

	if (completed.fd < 0 || io_uring_register_eventfd(ring, completed.fd))
		return -1;
	for (i = 0; i < SLOTS; i++) {
		uint64_t offset = NP_AREA(7) + (uint64_t)i * SLOT_BYTES;
		uint8_t *slot = data + (size_t)i * SLOT_BYTES;
		struct nvme_uring_cmd header = rw(opcode, offset, slot, HEADER, shift);
		struct nvme_uring_cmd payload = rw(opcode, offset + HEADER, slot + HEADER,
						   SLOT_BYTES - HEADER, shift);

		queue(ring, fd, &header, i);
		queue(ring, fd, &payload, i);
	}
	if (io_uring_submit(ring) != (int)(2 * SLOTS))
		return -1;
	for (left = 2 * SLOTS; left && poll(&completed, 1, 10000) == 1;) {
		uint64_t count;

		if (read(completed.fd, &count, sizeof(count)) != sizeof(count))
			break;
		for (; left && io_uring_cq_ready(ring); left--)
			failed += !!collect(ring, NULL);
	}
	io_uring_unregister_eventfd(ring);
	close(completed.fd);
	return failed + (int)left;
}

TEST(raw_block_slots)
{
	uint64_t bytes;
	struct np_ctrl ctrl;
	struct io_uring ring;
	uint8_t *data, *back;
	uint32_t shift;
	int fd;

	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	fd = np_open_node(&ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, fd);
	EXPECT_EQ(1, ioctl(fd, NVME_IOCTL_ID));
	/* Then the length is that of Identify Namespace. */
	EXPECT_GT(0, ioctl(fd, BLKGETSIZE64, &bytes));
	shift = block_shift(fd, 1);
	ASSERT_EQ(NP_BLOCK, 1U << shift);
	ASSERT_EQ(0, io_uring_queue_init(DEPTH, &ring, BIG));
	ASSERT_EQ(0, posix_memalign((void **)&data, NP_PAGE, SLOTS * SLOT_BYTES));
	ASSERT_EQ(0, posix_memalign((void **)&back, NP_PAGE, SLOTS * SLOT_BYTES));
	np_pattern(data, SLOTS * SLOT_BYTES, NP_AREA(7), 9);
	memset(back, 0, SLOTS * SLOT_BYTES);
	EXPECT_EQ(0, transfer(&ring, fd, NVMEPEER_OP_WRITE, data, shift));
	EXPECT_EQ(0, transfer(&ring, fd, NVMEPEER_OP_READ, back, shift));
	EXPECT_EQ(0, memcmp(data, back, SLOTS * SLOT_BYTES));
	io_uring_queue_exit(&ring);
	free(data);
	free(back);
	close(fd);
	np_ctrl_close(&ctrl);
}

/* --- Mooncake's NVMe-KV ------------------------------------------------------------- */

#define REG_CAP_HIGH	(BADCTRL_REGISTERS + 0x04)
#define CAP_OTHER_SETS	(1U << 11)
#define DESCRIPTOR_NGUID	2
#define DESCRIPTOR_SET	4
#define SET_KEY_VALUE	1

enum { KV_STORE = 0x01, KV_RETRIEVE = 0x02, KV_DELETE = 0x10 };
enum { KV_NO_KEY = 0x87, KV_KEY_EXISTS = 0x89 };

#define KEY_BYTES	16U
#define STORE_NEW	2U
#define CHUNK_BYTES	(48U << 10)

FIXTURE(key_value)
{
	struct np_bad bad;
	struct io_uring ring;
	uint8_t *data;
	uint8_t *back;
};

/* Namespace 1 is of the command set: its identification descriptors say so. */
static int bind_key_value(struct np_bad *bad)
{
	static const uint8_t descriptors[] = {
		DESCRIPTOR_SET, 1, 0, 0, SET_KEY_VALUE,
		DESCRIPTOR_NGUID, 16, 0, 0, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	};
	int ret = np_bad_set(bad, REG_CAP_HIGH, np_bad_get(bad, REG_CAP_HIGH) | CAP_OTHER_SETS) ?:
		  np_bad_set(bad, BADCTRL_KEY_VALUE, 1);
	uint32_t i;

	for (i = 0; i < sizeof(descriptors) && !ret; i++)
		ret = np_bad_identify(bad, NVME_CNS_DESCRIPTORS, i, descriptors[i]);
	return ret ?: np_bad_bind(bad, 1);
}

FIXTURE_SETUP(key_value)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, bind_key_value(&self->bad));
	ASSERT_EQ(0, io_uring_queue_init(DEPTH, &self->ring, BIG));
	ASSERT_EQ(0, posix_memalign((void **)&self->data, NP_PAGE, CHUNK_BYTES));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, CHUNK_BYTES));
	np_pattern(self->data, CHUNK_BYTES, 0, 11);
	memset(self->back, 0, CHUNK_BYTES);
}

FIXTURE_TEARDOWN(key_value)
{
	if (!self->bad.address[0])
		return;
	io_uring_queue_exit(&self->ring);
	free(self->data);
	free(self->back);
	EXPECT_EQ(0, np_bad_close(&self->bad));
}

/* The key's bytes are in dwords 2, 3, 14 and 15, the length of the data in dword 10. */
static struct nvme_uring_cmd command(uint8_t opcode, uint32_t options, uint32_t key, void *data,
				     uint32_t length)
{
	return (struct nvme_uring_cmd){
		.opcode = opcode,
		.nsid = 1,
		.cdw2 = key,
		.cdw3 = 0x33333333,
		.addr = (uintptr_t)data,
		.data_len = length,
		.cdw10 = length,
		.cdw11 = options << 8 | KEY_BYTES,
		.cdw12 = length ? length / 4096 - 1 : 0,
		.cdw14 = 0x01eeeeee,
		.cdw15 = ~key,
	};
}

static int once(struct io_uring *ring, int fd, const struct nvme_uring_cmd *cmd, uint64_t *result)
{
	queue(ring, fd, cmd, 0);
	if (io_uring_submit_and_wait(ring, 1) < 0)
		return -EIO;
	return collect(ring, result);
}

/* Chunks, all in flight; then the manifest, whose key makes them visible. */
TEST_F(key_value, chunks_and_manifest)
{
	int fd = self->bad.generic;
	struct nvme_uring_cmd cmd;
	uint64_t result;
	uint32_t key;

	cmd = command(KV_RETRIEVE, 0, 100, self->back, 4096);
	EXPECT_EQ(KV_NO_KEY, 0xff & once(&self->ring, fd, &cmd, NULL));
	for (key = 1; key <= 3; key++) {
		cmd = command(KV_STORE, STORE_NEW, key, self->data, CHUNK_BYTES - key * 4096);
		queue(&self->ring, fd, &cmd, key);
	}
	ASSERT_EQ(3, io_uring_submit_and_wait(&self->ring, 3));
	for (key = 1; key <= 3; key++)
		EXPECT_EQ(0, collect(&self->ring, NULL));
	cmd = command(KV_STORE, STORE_NEW, 100, self->data, 4096);
	EXPECT_EQ(0, once(&self->ring, fd, &cmd, NULL));
	EXPECT_EQ(KV_KEY_EXISTS, 0xff & once(&self->ring, fd, &cmd, NULL));
	/* A short buffer first; the result is the length of the value. */
	for (key = 1; key <= 3; key++) {
		uint32_t length = CHUNK_BYTES - key * 4096;

		memset(self->back, 0, CHUNK_BYTES);
		cmd = command(KV_RETRIEVE, 0, key, self->back, 4096);
		EXPECT_EQ(0, once(&self->ring, fd, &cmd, &result));
		EXPECT_EQ(length, result);
		EXPECT_EQ(0, memcmp(self->data, self->back, 4096));
		EXPECT_EQ(0, self->back[4096]);
		cmd = command(KV_RETRIEVE, 0, key, self->back, length);
		EXPECT_EQ(0, once(&self->ring, fd, &cmd, NULL));
		EXPECT_EQ(0, memcmp(self->data, self->back, length));
	}
	for (key = 1; key <= 3; key++) {
		cmd = command(KV_DELETE, 0, key, NULL, 0);
		EXPECT_EQ(0, once(&self->ring, fd, &cmd, NULL));
		EXPECT_EQ(KV_NO_KEY, 0xff & once(&self->ring, fd, &cmd, NULL));
	}
	cmd = command(KV_DELETE, 0, 100, NULL, 0);
	EXPECT_EQ(0, once(&self->ring, fd, &cmd, NULL));
}

/* MOONCAKE_NVME_KV_TRANSPORT=ioctl, and Identify Controller on the node. */
TEST_F(key_value, ioctl_transport)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = KV_STORE,
		.nsid = 1,
		.cdw2 = 7,
		.addr = (uintptr_t)self->data,
		.data_len = 8192,
		.cdw10 = 8192,
		.cdw11 = STORE_NEW << 8 | KEY_BYTES,
		.cdw12 = 1,
		.cdw15 = 8,
	};
	struct nvme_admin_cmd identify = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->back,
		.data_len = 4096,
		.cdw10 = NVME_CNS_CONTROLLER,
	};
	int fd = self->bad.generic;

	EXPECT_EQ(0, np_ioctl(fd, NVME_IOCTL_ADMIN_CMD, &identify));
	EXPECT_EQ(0, np_ioctl(fd, NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(KV_KEY_EXISTS, 0xff & np_ioctl(fd, NVME_IOCTL_IO_CMD, &cmd));
	cmd.opcode = KV_RETRIEVE;
	cmd.addr = (uintptr_t)self->back;
	cmd.cdw11 = KEY_BYTES;
	EXPECT_EQ(0, np_ioctl(fd, NVME_IOCTL_IO_CMD, &cmd));
	EXPECT_EQ(8192, cmd.result);
	EXPECT_EQ(0, memcmp(self->data, self->back, 8192));
	cmd.opcode = KV_DELETE;
	cmd.addr = 0;
	cmd.data_len = 0;
	EXPECT_EQ(0, np_ioctl(fd, NVME_IOCTL_IO_CMD, &cmd));
}

TEST_HARNESS_MAIN
