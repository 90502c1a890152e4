// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVME_PEER_URING_CMD_IO_VEC: many ranges in one command. Each range transfers exactly
 * its bytes, one completion reports all ranges, and if the list is refused no range is
 * transferred, whether the submitter may block or not.
 *
 * kernels: 7 debug
 * long-kernels: 6.1 6.12 7 debug
 * iommu: on
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <nvmepeer_uring.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"
#include "imported.h"

#define RANGES		NVME_PEER_IO_RANGES
#define PAGES		64U
#define BYTES		(PAGES * NP_PAGE)
/* Distance of ranges on the disk, in bytes. */
#define STRIDE		(5 * NP_PAGE)
#define SPAN		(RANGES * STRIDE)
/* Time in which something must not happen. */
#define WHILE_MS	300

FIXTURE(buffer_ranges)
{
	struct np_ctrl ctrl;
	int block;
	struct io_uring ring;
	struct np_imported buf[2];
	uint8_t *disk;
	struct nvme_peer_io_range list[RANGES];
	struct nvme_peer_uring_io_vec vec;
	char before[NP_OBJECTS];
};

/*
 * Ranges of 512 bytes to two pages and more, at unaligned offsets, alternating between
 * the two buffers.
 */
static void fill_list(struct nvme_peer_io_range list[RANGES], const struct np_imported buf[2])
{
	uint32_t i;

	for (i = 0; i < RANGES; i++)
		list[i] = (struct nvme_peer_io_range){
			.handle = buf[i % 2].handle,
			/* In reverse order. */
			.offset = (RANGES / 2 - 1 - i / 2) * 4 * NP_PAGE + i * 4,
			.lba = (NP_IMPORTED_AREA + i * STRIDE) / NP_BLOCK,
			.blocks = 1 + i * 17 / RANGES,
		};
}

static struct nvme_peer_uring_io_vec list_of(struct nvme_peer_io_range *list, uint32_t count,
					     uint32_t opcode)
{
	return (struct nvme_peer_uring_io_vec){
		.opcode = opcode,
		.nsid = 1,
		.count = count,
		.ranges = (uintptr_t)list,
	};
}

FIXTURE_SETUP(buffer_ranges)
{
	uint32_t i;

	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->block);
	ASSERT_EQ(0, io_uring_queue_init(4, &self->ring, IORING_SETUP_SQE128));
	ASSERT_EQ(0, posix_memalign((void **)&self->disk, NP_PAGE, SPAN));
	np_pattern(self->disk, SPAN, NP_IMPORTED_AREA, 1);
	ASSERT_EQ(0, np_disk_write(self->block, self->disk, SPAN, NP_IMPORTED_AREA));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, np_imported_open(&self->buf[i], self->ctrl.fd, PAGES,
					      i ? NVMEP_TEST_SCATTERED : 0));
		memset(self->buf[i].bytes, NP_POISON, BYTES);
	}
	fill_list(self->list, self->buf);
	self->vec = list_of(self->list, RANGES, NVME_PEER_IO_READ);
}

FIXTURE_TEARDOWN(buffer_ranges)
{
	uint32_t i;

	io_uring_queue_exit(&self->ring);
	for (i = 0; i < 2; i++) {
		np_release(self->ctrl.fd, self->buf[i].handle);
		EXPECT_EQ(0, np_dmabuf_maps(self->buf[i].fd, NULL));
		np_imported_close(&self->buf[i]);
	}
	free(self->disk);
	close(self->block);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

TEST_F(buffer_ranges, feature_bit_is_reported)
{
	EXPECT_NE(0, self->ctrl.info.features & NVME_PEER_FEATURE_BUF_IO_VEC);
}

/* @flags: IOSQE_*. With IOSQE_ASYNC an io-wq worker submits, which may block. */
static int send_list(struct io_uring *ring, int fd, const struct nvme_peer_uring_io_vec *vec,
		     unsigned int flags)
{
	np_ranges_queue(ring, fd, vec)->flags = flags;
	return np_transfer_wait(ring, NULL);
}

/* The contents of the buffers after the list was read; @image has BYTES for each. */
static void expected(const FIXTURE_DATA(buffer_ranges) *self, uint8_t *image)
{
	uint32_t i;

	memset(image, NP_POISON, 2 * BYTES);
	for (i = 0; i < RANGES; i++)
		memcpy(image + (i % 2) * BYTES + self->list[i].offset, self->disk + i * STRIDE,
		       self->list[i].blocks * NP_BLOCK);
}

/* Exactly the named bytes changed. */
static void check_read(struct __test_metadata *_metadata, const FIXTURE_DATA(buffer_ranges) *self)
{
	uint8_t *image = malloc(2 * BYTES);

	ASSERT_NE(NULL, image);
	expected(self, image);
	EXPECT_EQ(0, memcmp(image, self->buf[0].bytes, BYTES));
	EXPECT_EQ(0, memcmp(image + BYTES, self->buf[1].bytes, BYTES));
	free(image);
}

TEST_F(buffer_ranges, reads_named_ranges_only)
{
	ASSERT_EQ(0, send_list(&self->ring, self->ctrl.fd, &self->vec, 0));
	check_read(_metadata, self);
}

TEST_F(buffer_ranges, reads_from_blocking_context)
{
	ASSERT_EQ(0, send_list(&self->ring, self->ctrl.fd, &self->vec, IOSQE_ASYNC));
	check_read(_metadata, self);
}

TEST_F(buffer_ranges, reads_on_iopoll_ring)
{
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL));
	ASSERT_EQ(0, send_list(&ring, self->ctrl.fd, &self->vec, 0));
	check_read(_metadata, self);
	io_uring_queue_exit(&ring);
}

/* From both buffers; the disk between the ranges is unchanged. */
TEST_F(buffer_ranges, writes_named_ranges_only)
{
	uint8_t *back;
	uint32_t i;

	ASSERT_EQ(0, posix_memalign((void **)&back, NP_PAGE, SPAN));
	for (i = 0; i < 2; i++)
		np_pattern(self->buf[i].bytes, BYTES, NP_IMPORTED_AREA, 2 + i);
	self->vec.opcode = NVME_PEER_IO_WRITE;
	ASSERT_EQ(0, send_list(&self->ring, self->ctrl.fd, &self->vec, 0));
	for (i = 0; i < RANGES; i++)
		memcpy(self->disk + i * STRIDE, self->buf[i % 2].bytes + self->list[i].offset,
		       self->list[i].blocks * NP_BLOCK);
	ASSERT_EQ(0, np_disk_read(self->block, back, SPAN, NP_IMPORTED_AREA));
	EXPECT_EQ(0, memcmp(back, self->disk, SPAN));
	free(back);
}

/* The list may be changed as soon as submission returns. */
TEST_F(buffer_ranges, list_is_copied_at_submission)
{
	struct nvme_peer_io_range list[RANGES];

	memcpy(list, self->list, sizeof(list));
	self->vec.ranges = (uintptr_t)list;
	np_ranges_queue(&self->ring, self->ctrl.fd, &self->vec);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	memset(list, 0xff, sizeof(list));
	ASSERT_EQ(0, np_transfer_wait(&self->ring, NULL));
	check_read(_metadata, self);
}

/* --- refused commands ------------------------------------------------------ */

static bool untouched(const FIXTURE_DATA(buffer_ranges) *self)
{
	return np_all_poison(self->buf[0].bytes, BYTES) && np_all_poison(self->buf[1].bytes, BYTES);
}

/*
 * The list is refused in non-blocking and in blocking context, and no range is
 * transferred.
 */
#define REFUSED(error, ...) do {								\
	struct nvme_peer_uring_io_vec vec = self->vec;						\
	struct nvme_peer_io_range last = self->list[RANGES - 1];				\
												\
	self->list[RANGES - 1] = (__VA_ARGS__, last);						\
	EXPECT_EQ(error, send_list(&self->ring, self->ctrl.fd, &vec, 0)) {			\
		TH_LOG("%s", #__VA_ARGS__);							\
	}											\
	EXPECT_EQ(error, send_list(&self->ring, self->ctrl.fd, &vec, IOSQE_ASYNC)) {		\
		TH_LOG("%s, from a worker", #__VA_ARGS__);					\
	}											\
	fill_list(self->list, self->buf);							\
} while (0)

TEST_F(buffer_ranges, refuses_unknown_fields)
{
	size_t i;

	REFUSED(-EINVAL, vec.flags = 2);
	REFUSED(-EINVAL, vec.flags = 1U << 31);
	REFUSED(-EINVAL, vec.opcode = 0);
	REFUSED(-EINVAL, vec.opcode = NVMEPEER_OP_COMPARE);
	REFUSED(-EINVAL, vec.opcode = 0x100 | NVMEPEER_OP_READ);
	for (i = 0; i < sizeof(self->vec.reserved) / sizeof(uint32_t); i++)
		REFUSED(-EINVAL, vec.reserved[i] = 1);
	REFUSED(-EINVAL, vec.count = 0);
	REFUSED(-E2BIG, vec.count = RANGES + 1);
	REFUSED(-E2BIG, vec.count = 0xffffffff);
	REFUSED(-EFAULT, vec.ranges = 0);
	REFUSED(-EFAULT, vec.ranges = 1ULL << 63);
	REFUSED(-ENODEV, vec.nsid = 2);
	REFUSED(-EINVAL, last.offset += 1);
	REFUSED(-EINVAL, last.blocks = 0);
	EXPECT_TRUE(untouched(self));
}

/* All ranges but the last are valid. */
TEST_F(buffer_ranges, one_bad_range_refuses_all)
{
	REFUSED(-ENOENT, last.handle = 0);
	REFUSED(-ENOENT, last.handle = 0xffffffff);
	REFUSED(-ERANGE, last.offset = BYTES - NP_BLOCK);
	REFUSED(-ERANGE, last.offset = 0xfffffffffffffffcULL);
	REFUSED(-EMSGSIZE, last.blocks = self->ctrl.info.max_transfer / NP_BLOCK + 1);
	REFUSED(-EMSGSIZE, last.blocks = 0xffffffff);
	EXPECT_TRUE(untouched(self));
}

TEST_F(buffer_ranges, one_wrong_direction_refuses_all)
{
	struct np_imported out;

	ASSERT_EQ(0, np_imported_open_for(&out, self->ctrl.fd, 4, 0, NVME_PEER_ACCESS_READ));
	REFUSED(-EACCES, last.handle = out.handle, last.offset = 0);
	EXPECT_TRUE(untouched(self));
	EXPECT_EQ(0, np_release(self->ctrl.fd, out.handle));
	EXPECT_EQ(0, np_dmabuf_maps(out.fd, NULL));
	np_imported_close(&out);
}

TEST_F(buffer_ranges, refuses_fixed_buffers_and_small_sqe)
{
	struct iovec registered = { self->disk, SPAN };
	struct io_uring_sqe *sqe;
	struct io_uring small;

	/* Older kernels look the registered buffer up themselves. */
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &registered, 1));
	np_ranges_queue(&self->ring, self->ctrl.fd, &self->vec)->uring_cmd_flags =
		IORING_URING_CMD_FIXED;
	EXPECT_EQ(-EINVAL, np_transfer_wait(&self->ring, NULL));
	ASSERT_EQ(0, io_uring_queue_init(4, &small, 0));
	sqe = np_get_sqe(&small);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = self->ctrl.fd;
	sqe->cmd_op = NVME_PEER_URING_CMD_IO_VEC;
	EXPECT_EQ(-EOPNOTSUPP, np_transfer_wait(&small, NULL));
	io_uring_queue_exit(&small);
	EXPECT_TRUE(untouched(self));
}

/* A read and a write without capabilities, through a node that is open for reading. */
static int try_without_rights(int fd, struct nvme_peer_uring_io_vec *vec)
{
	struct io_uring ring;
	int result;

	if (io_uring_queue_init(2, &ring, IORING_SETUP_SQE128) || np_drop_capabilities())
		return 1;
	result = send_list(&ring, fd, vec, 0) ? 2 : 0;
	vec->opcode = NVME_PEER_IO_WRITE;
	return result | (send_list(&ring, fd, vec, 0) == -EACCES ? 0 : 4);
}

TEST_F(buffer_ranges, checks_write_permission)
{
	int status, fd = np_open_node(&self->ctrl, "/dev/nvmep%d", O_RDONLY);
	struct np_imported buf[2];
	pid_t child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_imported_open(&buf[0], fd, PAGES, 0));
	buf[1] = buf[0];
	fill_list(self->list, buf);
	child = fork();
	if (!child)
		_exit(try_without_rights(fd, &self->vec));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	np_imported_close(&buf[0]);
	close(fd);
}

/* The completion does not report which range failed; the other ranges are transferred. */
TEST_F(buffer_ranges, returns_one_failed_status)
{
	self->list[5].lba = 1ULL << 40;
	EXPECT_EQ(NVME_SC_LBA_RANGE,
		  send_list(&self->ring, self->ctrl.fd, &self->vec, 0) & NVME_STATUS_MASK);
	self->list[5].blocks = 0;
	check_read(_metadata, self);
}

/* --- race with the first user ---------------------------------------------- */

struct first_user {
	struct io_uring *ring;
	int ctrl_fd;
	struct nvme_peer_uring_io io;
	int result;
};

static void *use_first(void *context)
{
	struct first_user *user = context;

	np_run_on(1);
	user->result = np_transfer_run(user->ring, user->ctrl_fd, &user->io);
	return NULL;
}

/*
 * A submitter that has found the buffer under RCU takes its reference later, after the
 * count of users has dropped to zero.
 */
TEST_F(buffer_ranges, users_ref_survives_rcu_race)
{
	struct nvmep_test_stall before_counting = { .function = "nvmep_buf_range" };
	struct nvmep_test_stall no_count = {
		.function = "percpu_ref_exit",
		.after = "nvmep_buf_release",
	};
	struct first_user user = {
		.ring = &self->ring,
		.ctrl_fd = self->ctrl.fd,
		.io = np_transfer(NVME_PEER_IO_READ, &self->buf[0], 0, NP_PAGE),
	};
	int stall = np_stall(&before_counting), freed = np_stall(&no_count);
	pthread_t thread;

	ASSERT_LE(0, stall);
	ASSERT_LE(0, freed);
	ASSERT_EQ(0, pthread_create(&thread, NULL, use_first, &user));
	ASSERT_EQ(0, np_run_on(0));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->buf[0].handle));
	EXPECT_EQ(-EAGAIN, np_ioctl(freed, NVMEP_TEST_STALLED, NULL));
	EXPECT_EQ(0, np_wait_stalled(stall));
	close(stall);
	pthread_join(thread, NULL);
	EXPECT_EQ(-ENOENT, user.result);
	close(freed);
}

/* --- in flight ------------------------------------------------------------- */

FIXTURE(ranges_in_flight)
{
	struct np_bad bad;
	struct io_uring ring;
	struct np_imported buf;
	uint8_t *disk;
	struct nvme_peer_io_range list[RANGES];
	struct nvme_peer_uring_io_vec vec;
};

FIXTURE_SETUP(ranges_in_flight)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
}

/*
 * The list reads the beginning of the disk, one page for each range, the last page first.
 */
static void fill_pages(FIXTURE_DATA(ranges_in_flight) *self)
{
	uint32_t i;

	for (i = 0; i < RANGES; i++)
		self->list[i] = (struct nvme_peer_io_range){
			.handle = self->buf.handle,
			.offset = (RANGES - 1 - i) * NP_PAGE,
			.lba = i * (NP_PAGE / NP_BLOCK),
			.blocks = NP_PAGE / NP_BLOCK,
		};
	self->vec = list_of(self->list, RANGES, NVME_PEER_IO_READ);
}

static int set_up(FIXTURE_DATA(ranges_in_flight) *self)
{
	int ret = np_bad_bind(&self->bad, 1) ?: np_imported_open(&self->buf, self->bad.ctrl.fd, RANGES, 0) ?:
		  io_uring_queue_init(4, &self->ring, IORING_SETUP_SQE128) ?:
		  -posix_memalign((void **)&self->disk, NP_PAGE, RANGES * NP_PAGE);

	if (ret)
		return ret;
	fill_pages(self);
	memset(self->buf.bytes, NP_POISON, self->buf.length);
	np_pattern(self->disk, RANGES * NP_PAGE, 0, 1);
	return np_disk_write(self->bad.disk, self->disk, RANGES * NP_PAGE, 0);
}

FIXTURE_TEARDOWN(ranges_in_flight)
{
	if (!self->bad.address[0])
		return;
	io_uring_queue_exit(&self->ring);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	EXPECT_EQ(0, np_dmabuf_maps(self->buf.fd, NULL));
	np_imported_close(&self->buf);
	free(self->disk);
}

/* Submit, and wait until the controller holds @held of the reads. */
static int hold(FIXTURE_DATA(ranges_in_flight) *self, uint32_t held, unsigned int flags)
{
	int ret = np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, held);

	np_ranges_queue(&self->ring, self->bad.ctrl.fd, &self->vec)->flags = flags;
	if (!ret && io_uring_submit(&self->ring) != 1)
		ret = -EIO;
	return ret ?: np_bad_wait_word(&self->bad, BADCTRL_HELD, held);
}

static void check_pages(struct __test_metadata *_metadata,
			const FIXTURE_DATA(ranges_in_flight) *self)
{
	uint32_t i;

	for (i = 0; i < RANGES; i++)
		EXPECT_EQ(0, memcmp(self->buf.bytes + (RANGES - 1 - i) * NP_PAGE,
				    self->disk + i * NP_PAGE, NP_PAGE));
}

/* The invalidation and the completion wait for the last range. */
TEST_F(ranges_in_flight, invalidation_waits_for_all_ranges)
{
	struct io_uring_cqe *cqe;

	ASSERT_EQ(0, set_up(self));
	ASSERT_EQ(0, hold(self, 1, 0));
	EXPECT_EQ(1, np_dmabuf_move(self->buf.fd));
	np_sleep_ms(WHILE_MS);
	EXPECT_EQ(-EAGAIN, io_uring_peek_cqe(&self->ring, &cqe));
	EXPECT_EQ(1, np_dmabuf_maps(self->buf.fd, NULL));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_transfer_wait(&self->ring, NULL));
	EXPECT_EQ(0, np_dmabuf_wait_unmapped(self->buf.fd));
	check_pages(_metadata, self);
}

TEST_F(ranges_in_flight, reset_cancels_ranges)
{
	ASSERT_EQ(0, set_up(self));
	ASSERT_EQ(0, hold(self, 2, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(-EINTR, np_transfer_wait(&self->ring, NULL));
	ASSERT_EQ(0, send_list(&self->ring, self->bad.ctrl.fd, &self->vec, 0));
	check_pages(_metadata, self);
}

/* CAP.MQES: of five entries one stays empty and one is for a Flush of the driver. */
#define CAP_LOW		(BADCTRL_REGISTERS + 0x00)
#define FEW		3U

static int set_up_few(FIXTURE_DATA(ranges_in_flight) *self)
{
	uint32_t cap = np_bad_get(&self->bad, CAP_LOW);

	return np_bad_set(&self->bad, CAP_LOW, (cap & ~0xffffU) | (FEW + 1)) ?: set_up(self);
}

#define POLL_QUEUES	"/sys/module/nvme_peer/parameters/poll_queues"

/* More ranges than the queue has entries, by interrupts, and polled for short lists. */
TEST_F(ranges_in_flight, more_ranges_than_queue_entries)
{
	struct io_uring ring;

	ASSERT_EQ(0, np_write_file(POLL_QUEUES, "1"));
	EXPECT_EQ(0, set_up_few(self));
	EXPECT_EQ(0, np_write_file(POLL_QUEUES, "0"));
	ASSERT_EQ(0, send_list(&self->ring, self->bad.ctrl.fd, &self->vec, 0));
	check_pages(_metadata, self);
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL));
	memset(self->buf.bytes, NP_POISON, self->buf.length);
	ASSERT_EQ(0, send_list(&ring, self->bad.ctrl.fd, &self->vec, 0));
	check_pages(_metadata, self);
	/* Few enough to be polled. */
	self->vec.count = FEW;
	memset(self->buf.bytes, NP_POISON, self->buf.length);
	ASSERT_EQ(0, send_list(&ring, self->bad.ctrl.fd, &self->vec, 0));
	EXPECT_EQ(0, memcmp(self->buf.bytes + (RANGES - 1) * NP_PAGE, self->disk, NP_PAGE));
	io_uring_queue_exit(&ring);
}

/*
 * Submitted ranges are waited for, the remaining ones are not submitted, and the
 * completion reports an error.
 */
TEST_F(ranges_in_flight, invalidation_stops_submission_midway)
{
	ASSERT_EQ(0, set_up_few(self));
	ASSERT_EQ(0, hold(self, FEW, 0));
	EXPECT_EQ(1, np_dmabuf_move(self->buf.fd));
	np_sleep_ms(WHILE_MS);
	EXPECT_EQ(1, np_dmabuf_maps(self->buf.fd, NULL));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(-ESTALE, np_transfer_wait(&self->ring, NULL));
	EXPECT_EQ(0, np_dmabuf_wait_unmapped(self->buf.fd));
	EXPECT_EQ(NP_POISON, self->buf.bytes[0]);
	EXPECT_EQ(0, memcmp(self->buf.bytes + (RANGES - 1) * NP_PAGE, self->disk, NP_PAGE));
}

/* --- library --------------------------------------------------------------- */

TEST_F(buffer_ranges, library_call_submits_ranges)
{
	struct nvme_peer_buf_import buffers[2];
	struct nvmepeer *lib;
	char node[32];
	uint32_t i;

	snprintf(node, sizeof(node), "nvmep%d", self->ctrl.instance);
	ASSERT_EQ(0, nvmepeer_open(node, &lib));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, nvmepeer_buf_import(lib, self->buf[i].fd, 0, &buffers[i],
						 sizeof(buffers[i])));
	for (i = 0; i < RANGES; i++)
		self->list[i].handle = buffers[i % 2].handle;
	nvmepeer_prep_buf_vec(np_get_sqe(&self->ring), lib, 1, NVMEPEER_OP_READ, self->list,
			      RANGES);
	EXPECT_EQ(0, np_transfer_wait(&self->ring, NULL));
	check_read(_metadata, self);
	nvmepeer_close(lib);
}

TEST_HARNESS_MAIN
