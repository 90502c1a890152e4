// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVME_PEER_URING_CMD_IO_VEC: many ranges in one command.  Each moves what it names and
 * nothing else, one completion tells of all, and of a list that is refused nothing is
 * carried out, whether or not who sends it may wait.
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

#include "badknob.h"
#include "kselftest_harness.h"
#include "lent.h"

#define RANGES		NVME_PEER_IO_RANGES
#define PAGES		64U
#define BYTES		(PAGES * NP_PAGE)
/* On the disk a range begins every so many bytes. */
#define STRIDE		(5 * NP_PAGE)
#define SPAN		(RANGES * STRIDE)
#define STATUS_RANGE	0x80
/* So long nothing happens that must not happen. */
#define WHILE_MS	300

FIXTURE(buffer_ranges)
{
	struct np_ctrl ctrl;
	int block;
	struct io_uring ring;
	struct np_lent lent[2];
	uint8_t *disk;
	struct nvme_peer_io_range list[RANGES];
	struct nvme_peer_uring_io_vec vec;
	char before[NP_OBJECTS];
};

/* Of 512 bytes to two pages and a bit, from odd places, in either buffer by turns. */
static void fill_list(struct nvme_peer_io_range list[RANGES], const struct np_lent lent[2])
{
	uint32_t i;

	for (i = 0; i < RANGES; i++)
		list[i] = (struct nvme_peer_io_range){
			.handle = lent[i % 2].handle,
			/* The last first. */
			.offset = (RANGES / 2 - 1 - i / 2) * 4 * NP_PAGE + i * 4,
			.lba = (NP_LENT_AREA + i * STRIDE) / NP_BLOCK,
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
	np_pattern(self->disk, SPAN, NP_LENT_AREA, 1);
	ASSERT_EQ(0, np_disk_write(self->block, self->disk, SPAN, NP_LENT_AREA));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, np_lend(&self->lent[i], self->ctrl.fd, PAGES,
				     i ? NVMEP_TEST_SCATTERED : 0));
		memset(self->lent[i].bytes, NP_POISON, BYTES);
	}
	fill_list(self->list, self->lent);
	self->vec = list_of(self->list, RANGES, NVME_PEER_IO_READ);
}

FIXTURE_TEARDOWN(buffer_ranges)
{
	uint32_t i;

	io_uring_queue_exit(&self->ring);
	for (i = 0; i < 2; i++) {
		np_release(self->ctrl.fd, self->lent[i].handle);
		EXPECT_EQ(0, np_maps_of(self->lent[i].fd, NULL));
		np_take_back(&self->lent[i]);
	}
	free(self->disk);
	close(self->block);
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

TEST_F(buffer_ranges, is_announced)
{
	EXPECT_NE(0, self->ctrl.info.features & NVME_PEER_FEATURE_BUF_IO_VEC);
}

/* @flags: IOSQE_*; with IOSQE_ASYNC a worker sends it, who may wait. */
static int send_list(struct io_uring *ring, int fd, const struct nvme_peer_uring_io_vec *vec,
		     unsigned int flags)
{
	np_ranges_queue(ring, fd, vec)->flags = flags;
	return np_transfer_collect(ring, NULL);
}

/* What the buffers hold after the list was read; @image has BYTES for each. */
static void expected(const FIXTURE_DATA(buffer_ranges) *self, uint8_t *image)
{
	uint32_t i;

	memset(image, NP_POISON, 2 * BYTES);
	for (i = 0; i < RANGES; i++)
		memcpy(image + (i % 2) * BYTES + self->list[i].offset, self->disk + i * STRIDE,
		       self->list[i].blocks * NP_BLOCK);
}

/* Those bytes and no others. */
static void check_read(struct __test_metadata *_metadata, const FIXTURE_DATA(buffer_ranges) *self)
{
	uint8_t *image = malloc(2 * BYTES);

	ASSERT_NE(NULL, image);
	expected(self, image);
	EXPECT_EQ(0, memcmp(image, self->lent[0].bytes, BYTES));
	EXPECT_EQ(0, memcmp(image + BYTES, self->lent[1].bytes, BYTES));
	free(image);
}

TEST_F(buffer_ranges, reads_what_it_names)
{
	ASSERT_EQ(0, send_list(&self->ring, self->ctrl.fd, &self->vec, 0));
	check_read(_metadata, self);
}

TEST_F(buffer_ranges, reads_what_it_names_by_who_waits)
{
	ASSERT_EQ(0, send_list(&self->ring, self->ctrl.fd, &self->vec, IOSQE_ASYNC));
	check_read(_metadata, self);
}

TEST_F(buffer_ranges, reads_by_a_ring_that_polls)
{
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL));
	ASSERT_EQ(0, send_list(&ring, self->ctrl.fd, &self->vec, 0));
	check_read(_metadata, self);
	io_uring_queue_exit(&ring);
}

/* Out of both buffers, and the disk between the ranges stays as it was. */
TEST_F(buffer_ranges, writes_what_it_names)
{
	uint8_t *back;
	uint32_t i;

	ASSERT_EQ(0, posix_memalign((void **)&back, NP_PAGE, SPAN));
	for (i = 0; i < 2; i++)
		np_pattern(self->lent[i].bytes, BYTES, NP_LENT_AREA, 2 + i);
	self->vec.opcode = NVME_PEER_IO_WRITE;
	ASSERT_EQ(0, send_list(&self->ring, self->ctrl.fd, &self->vec, 0));
	for (i = 0; i < RANGES; i++)
		memcpy(self->disk + i * STRIDE, self->lent[i % 2].bytes + self->list[i].offset,
		       self->list[i].blocks * NP_BLOCK);
	ASSERT_EQ(0, np_disk_read(self->block, back, SPAN, NP_LENT_AREA));
	EXPECT_EQ(0, memcmp(back, self->disk, SPAN));
	free(back);
}

/* The kernel has read the list when submission returns. */
TEST_F(buffer_ranges, has_read_the_list_when_it_returns)
{
	struct nvme_peer_io_range list[RANGES];

	memcpy(list, self->list, sizeof(list));
	self->vec.ranges = (uintptr_t)list;
	np_ranges_queue(&self->ring, self->ctrl.fd, &self->vec);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	memset(list, 0xff, sizeof(list));
	ASSERT_EQ(0, np_transfer_collect(&self->ring, NULL));
	check_read(_metadata, self);
}

/* --- what is refused ------------------------------------------------------- */

static bool untouched(const FIXTURE_DATA(buffer_ranges) *self)
{
	return np_all_poison(self->lent[0].bytes, BYTES) && np_all_poison(self->lent[1].bytes, BYTES);
}

/* By who may not wait, and by who may; and nothing of it is carried out. */
#define REFUSED(error, ...) do {								\
	struct nvme_peer_uring_io_vec vec = self->vec;						\
	struct nvme_peer_io_range last = self->list[RANGES - 1];				\
												\
	self->list[RANGES - 1] = (__VA_ARGS__, last);						\
	EXPECT_EQ(error, send_list(&self->ring, self->ctrl.fd, &vec, 0)) {			\
		TH_LOG("%s", #__VA_ARGS__);							\
	}											\
	EXPECT_EQ(error, send_list(&self->ring, self->ctrl.fd, &vec, IOSQE_ASYNC)) {		\
		TH_LOG("%s, by who waits", #__VA_ARGS__);					\
	}											\
	fill_list(self->list, self->lent);							\
} while (0)

TEST_F(buffer_ranges, refuses_what_it_does_not_understand)
{
	size_t i;

	REFUSED(-EINVAL, vec.flags = 2);
	REFUSED(-EINVAL, vec.flags = 1U << 31);
	REFUSED(-EINVAL, vec.opcode = 0);
	REFUSED(-EINVAL, vec.opcode = NP_CMD_COMPARE);
	REFUSED(-EINVAL, vec.opcode = 0x100 | NP_CMD_READ);
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

/* All but the last could be carried out. */
TEST_F(buffer_ranges, refuses_all_for_one)
{
	REFUSED(-ENOENT, last.handle = 0);
	REFUSED(-ENOENT, last.handle = 0xffffffff);
	REFUSED(-ERANGE, last.offset = BYTES - NP_BLOCK);
	REFUSED(-ERANGE, last.offset = 0xfffffffffffffffcULL);
	REFUSED(-EMSGSIZE, last.blocks = self->ctrl.info.max_transfer / NP_BLOCK + 1);
	REFUSED(-EMSGSIZE, last.blocks = 0xffffffff);
	EXPECT_TRUE(untouched(self));
}

TEST_F(buffer_ranges, refuses_all_for_a_buffer_that_was_imported_for_less)
{
	struct np_lent out;

	ASSERT_EQ(0, np_lend_for(&out, self->ctrl.fd, 4, 0, NVME_PEER_ACCESS_READ));
	REFUSED(-EACCES, last.handle = out.handle, last.offset = 0);
	EXPECT_TRUE(untouched(self));
	EXPECT_EQ(0, np_release(self->ctrl.fd, out.handle));
	EXPECT_EQ(0, np_maps_of(out.fd, NULL));
	np_take_back(&out);
}

TEST_F(buffer_ranges, refuses_other_forms)
{
	struct iovec registered = { self->disk, SPAN };
	struct io_uring_sqe *sqe;
	struct io_uring small;

	/* Older kernels look for it themselves. */
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &registered, 1));
	np_ranges_queue(&self->ring, self->ctrl.fd, &self->vec)->uring_cmd_flags =
		IORING_URING_CMD_FIXED;
	EXPECT_EQ(-EINVAL, np_transfer_collect(&self->ring, NULL));
	ASSERT_EQ(0, io_uring_queue_init(4, &small, 0));
	sqe = np_next_entry(&small);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = self->ctrl.fd;
	sqe->cmd_op = NVME_PEER_URING_CMD_IO_VEC;
	EXPECT_EQ(-EOPNOTSUPP, np_transfer_collect(&small, NULL));
	io_uring_queue_exit(&small);
	EXPECT_TRUE(untouched(self));
}

/* A read and a write through a node that is open for reading, without rights. */
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

TEST_F(buffer_ranges, asks_for_rights)
{
	int status, fd = np_open_node(&self->ctrl, "/dev/nvmep%d", O_RDONLY);
	struct np_lent lent[2];
	pid_t child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_lend(&lent[0], fd, PAGES, 0));
	lent[1] = lent[0];
	fill_list(self->list, lent);
	child = fork();
	if (!child)
		_exit(try_without_rights(fd, &self->vec));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	np_take_back(&lent[0]);
	close(fd);
}

/* Which of them failed is not told; the others are carried out. */
TEST_F(buffer_ranges, gives_the_status_of_one)
{
	self->list[5].lba = 1ULL << 40;
	EXPECT_EQ(STATUS_RANGE, send_list(&self->ring, self->ctrl.fd, &self->vec, 0) & 0x7ff);
	self->list[5].blocks = 0;
	check_read(_metadata, self);
}

/* --- who comes while it goes ------------------------------------------------ */

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
	user->result = np_transfer_once(user->ring, user->ctrl_fd, &user->io);
	return NULL;
}

/* Who has found a buffer by its handle has not counted in yet, and may still want to. */
TEST_F(buffer_ranges, keeps_its_count_of_users_for_who_is_about_to_count_in)
{
	struct nvmep_test_stall before_counting = { .function = "nvmep_buf_span" };
	struct nvmep_test_stall no_count = {
		.function = "percpu_ref_exit",
		.after = "nvmep_buf_release",
	};
	struct first_user user = {
		.ring = &self->ring,
		.ctrl_fd = self->ctrl.fd,
		.io = np_transfer(NVME_PEER_IO_READ, &self->lent[0], 0, NP_PAGE),
	};
	int stall = np_stall(&before_counting), freed = np_stall(&no_count);
	pthread_t thread;

	ASSERT_LE(0, stall);
	ASSERT_LE(0, freed);
	ASSERT_EQ(0, pthread_create(&thread, NULL, use_first, &user));
	ASSERT_EQ(0, np_run_on(0));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->lent[0].handle));
	EXPECT_EQ(-EAGAIN, np_ioctl(freed, NVMEP_TEST_STALLED, NULL));
	EXPECT_EQ(0, np_wait_stalled(stall));
	close(stall);
	pthread_join(thread, NULL);
	EXPECT_EQ(-ENOENT, user.result);
	close(freed);
}

/* --- what is in flight ----------------------------------------------------- */

FIXTURE(ranges_in_flight)
{
	struct np_bad bad;
	struct io_uring ring;
	struct np_lent lent;
	uint8_t *disk;
	struct nvme_peer_io_range list[RANGES];
	struct nvme_peer_uring_io_vec vec;
};

FIXTURE_SETUP(ranges_in_flight)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
}

/* A page of a list that reads the beginning of the disk, the last page first. */
static void fill_pages(FIXTURE_DATA(ranges_in_flight) *self)
{
	uint32_t i;

	for (i = 0; i < RANGES; i++)
		self->list[i] = (struct nvme_peer_io_range){
			.handle = self->lent.handle,
			.offset = (RANGES - 1 - i) * NP_PAGE,
			.lba = i * (NP_PAGE / NP_BLOCK),
			.blocks = NP_PAGE / NP_BLOCK,
		};
	self->vec = list_of(self->list, RANGES, NVME_PEER_IO_READ);
}

static int set_up(FIXTURE_DATA(ranges_in_flight) *self)
{
	int ret = np_bad_bind(&self->bad, 1) ?: np_lend(&self->lent, self->bad.ctrl.fd, RANGES, 0) ?:
		  io_uring_queue_init(4, &self->ring, IORING_SETUP_SQE128) ?:
		  -posix_memalign((void **)&self->disk, NP_PAGE, RANGES * NP_PAGE);

	if (ret)
		return ret;
	fill_pages(self);
	memset(self->lent.bytes, NP_POISON, self->lent.length);
	np_pattern(self->disk, RANGES * NP_PAGE, 0, 1);
	return np_disk_write(self->bad.disk, self->disk, RANGES * NP_PAGE, 0);
}

FIXTURE_TEARDOWN(ranges_in_flight)
{
	if (!self->bad.address[0])
		return;
	io_uring_queue_exit(&self->ring);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	EXPECT_EQ(0, np_maps_of(self->lent.fd, NULL));
	np_take_back(&self->lent);
	free(self->disk);
}

/* Submits, and waits until the controller holds @held of its reads. */
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
		EXPECT_EQ(0, memcmp(self->lent.bytes + (RANGES - 1 - i) * NP_PAGE,
				    self->disk + i * NP_PAGE, NP_PAGE));
}

/* Its exporter waits for the last of it, and so does who sent it. */
TEST_F(ranges_in_flight, all_are_waited_for)
{
	struct io_uring_cqe *cqe;

	ASSERT_EQ(0, set_up(self));
	ASSERT_EQ(0, hold(self, 1, 0));
	EXPECT_EQ(1, np_move(self->lent.fd));
	np_sleep_ms(WHILE_MS);
	EXPECT_EQ(-EAGAIN, io_uring_peek_cqe(&self->ring, &cqe));
	EXPECT_EQ(1, np_maps_of(self->lent.fd, NULL));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_transfer_collect(&self->ring, NULL));
	EXPECT_EQ(0, np_wait_unmapped(self->lent.fd));
	check_pages(_metadata, self);
}

TEST_F(ranges_in_flight, a_reset_ends_it)
{
	ASSERT_EQ(0, set_up(self));
	ASSERT_EQ(0, hold(self, 2, 0));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(-EINTR, np_transfer_collect(&self->ring, NULL));
	ASSERT_EQ(0, send_list(&self->ring, self->bad.ctrl.fd, &self->vec, 0));
	check_pages(_metadata, self);
}

/* CAP.MQES: queues of four entries, that is three commands at the same time. */
#define CAP_LOW		(BADCTRL_REGISTERS + 0x00)
#define FEW		3U

static int set_up_few(FIXTURE_DATA(ranges_in_flight) *self)
{
	uint32_t cap = np_bad_get(&self->bad, CAP_LOW);

	return np_bad_set(&self->bad, CAP_LOW, (cap & ~0xffffU) | FEW) ?: set_up(self);
}

#define POLL_QUEUES	"/sys/module/nvme_peer/parameters/poll_queues"

/* More ranges than commands at the same time: by interrupts, and polled as far as that goes. */
TEST_F(ranges_in_flight, goes_through_a_small_queue)
{
	struct io_uring ring;

	ASSERT_EQ(0, np_write_file(POLL_QUEUES, "1"));
	EXPECT_EQ(0, set_up_few(self));
	EXPECT_EQ(0, np_write_file(POLL_QUEUES, "0"));
	ASSERT_EQ(0, send_list(&self->ring, self->bad.ctrl.fd, &self->vec, 0));
	check_pages(_metadata, self);
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL));
	memset(self->lent.bytes, NP_POISON, self->lent.length);
	ASSERT_EQ(0, send_list(&ring, self->bad.ctrl.fd, &self->vec, 0));
	check_pages(_metadata, self);
	/* So few that they are polled. */
	self->vec.count = FEW;
	memset(self->lent.bytes, NP_POISON, self->lent.length);
	ASSERT_EQ(0, send_list(&ring, self->bad.ctrl.fd, &self->vec, 0));
	EXPECT_EQ(0, memcmp(self->lent.bytes + (RANGES - 1) * NP_PAGE, self->disk, NP_PAGE));
	io_uring_queue_exit(&ring);
}

/* What was sent is waited for, what was not is not sent, and the list says why. */
TEST_F(ranges_in_flight, an_exporter_ends_it_in_the_middle)
{
	ASSERT_EQ(0, set_up_few(self));
	ASSERT_EQ(0, hold(self, FEW, 0));
	EXPECT_EQ(1, np_move(self->lent.fd));
	np_sleep_ms(WHILE_MS);
	EXPECT_EQ(1, np_maps_of(self->lent.fd, NULL));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(-ESTALE, np_transfer_collect(&self->ring, NULL));
	EXPECT_EQ(0, np_wait_unmapped(self->lent.fd));
	EXPECT_EQ(NP_POISON, self->lent.bytes[0]);
	EXPECT_EQ(0, memcmp(self->lent.bytes + (RANGES - 1) * NP_PAGE, self->disk, NP_PAGE));
}

/* --- by the library -------------------------------------------------------- */

TEST_F(buffer_ranges, the_library_says_it_in_one_call)
{
	struct nvme_peer_buf_import buffers[2];
	struct nvmepeer *lib;
	char node[32];
	uint32_t i;

	snprintf(node, sizeof(node), "nvmep%d", self->ctrl.instance);
	ASSERT_EQ(0, nvmepeer_open(node, &lib));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, nvmepeer_buf_import(lib, self->lent[i].fd, 0, &buffers[i],
						 sizeof(buffers[i])));
	for (i = 0; i < RANGES; i++)
		self->list[i].handle = buffers[i % 2].handle;
	nvmepeer_prep_buf_vec(np_next_entry(&self->ring), lib, 1, NVMEPEER_OPCODE_READ, self->list,
			      RANGES);
	EXPECT_EQ(0, np_transfer_collect(&self->ring, NULL));
	check_read(_metadata, self);
	nvmepeer_close(lib);
}

TEST_HARNESS_MAIN
