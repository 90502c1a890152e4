// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVME_PEER_URING_CMD_IO: the CPU reads and writes with the data in an imported buffer.
 * What is moved is compared with the block device; what cannot be is refused, each with
 * its own error; and memory goes back to its exporter when the controller is done with it.
 *
 * kernels: 7 debug
 * long-kernels: 6.1 6.12 7 debug
 * iommu: on
 * timeout: 240
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <nvmepeer_uring.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"
#include "lent.h"

#define ENTRIES		32U
#define PAGES		64U
#define BYTES		(PAGES * NP_PAGE)
#define AREA		NP_LENT_AREA
#define STATUS_RANGE	0x80
/* So long nothing happens that must not happen. */
#define WHILE_MS	300

/* --- what is moved --------------------------------------------------------- */

FIXTURE(buffer_io)
{
	struct np_ctrl ctrl;
	int block;
	struct io_uring ring;
	struct np_lent lent;
	uint8_t *back;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(buffer_io)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->block);
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, IORING_SETUP_SQE128));
	ASSERT_EQ(0, np_lend(&self->lent, self->ctrl.fd, PAGES, NVMEP_TEST_SCATTERED));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, BYTES));
}

FIXTURE_TEARDOWN(buffer_io)
{
	io_uring_queue_exit(&self->ring);
	np_release(self->ctrl.fd, self->lent.handle);
	EXPECT_EQ(0, np_maps_of(self->lent.fd, NULL));
	np_take_back(&self->lent);
	free(self->back);
	close(self->block);
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

TEST_F(buffer_io, is_announced)
{
	EXPECT_NE(0, self->ctrl.info.features & NVME_PEER_FEATURE_BUF_IO);
}

/* Out of the buffer, and back into it: those bytes and no others. */
static void there_and_back(struct __test_metadata *_metadata, FIXTURE_DATA(buffer_io) *self,
			   const struct np_lent *lent, uint32_t offset, uint32_t length)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_WRITE, lent, offset, length);
	uint8_t *data = lent->bytes + offset;

	np_pattern(data, length, AREA, offset + length);
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	memset(self->back, 0, length);
	ASSERT_EQ(0, np_disk_read(self->block, self->back, length, AREA));
	EXPECT_EQ(0, memcmp(self->back, data, length));

	np_pattern(self->back, length, AREA, ~length);
	ASSERT_EQ(0, np_disk_write(self->block, self->back, length, AREA));
	memset(lent->bytes, NP_POISON, lent->length);
	io.opcode = NVME_PEER_IO_READ;
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, memcmp(self->back, data, length));
	EXPECT_TRUE(np_all_poison(lent->bytes, offset));
	EXPECT_TRUE(np_all_poison(data + length, lent->length - offset - length));
}

/* One entry, two, lists; from inside a page; to the last byte; one segment and many. */
TEST_F(buffer_io, moves_what_it_names)
{
	static const struct {
		uint32_t offset;
		uint32_t length;
	} cases[] = {
		{ 0, NP_BLOCK }, { 4, NP_BLOCK }, { NP_PAGE, NP_PAGE }, { NP_BLOCK, NP_PAGE },
		{ NP_PAGE - 4, NP_BLOCK }, { 2 * NP_PAGE, 2 * NP_PAGE }, { 3 * NP_PAGE + 8, 16 * NP_PAGE },
		{ 0, 40 * NP_PAGE }, { 0, BYTES }, { BYTES - NP_BLOCK, NP_BLOCK },
		{ BYTES - 5 * NP_PAGE - NP_BLOCK, 5 * NP_PAGE + NP_BLOCK },
	};
	struct np_lent whole;
	size_t i;

	ASSERT_EQ(0, np_lend(&whole, self->ctrl.fd, PAGES, 0));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		there_and_back(_metadata, self, &self->lent, cases[i].offset, cases[i].length);
		there_and_back(_metadata, self, &whole, cases[i].offset, cases[i].length);
	}
	EXPECT_EQ(0, np_release(self->ctrl.fd, whole.handle));
	np_take_back(&whole);
}

/* A part that was imported is all that its handle names. */
TEST_F(buffer_io, knows_the_imported_part_only)
{
	struct nvme_peer_buf_import import = {
		.size = sizeof(import),
		.dmabuf_fd = self->lent.fd,
		.offset = 3 * NP_PAGE,
		.length = 2 * NP_PAGE,
	};
	struct nvme_peer_uring_io io;
	struct np_lent part = self->lent;

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_IMPORT, &import));
	part.handle = import.handle;
	np_pattern(self->back, 2 * NP_PAGE, AREA, 3);
	ASSERT_EQ(0, np_disk_write(self->block, self->back, 2 * NP_PAGE, AREA));
	memset(self->lent.bytes, NP_POISON, BYTES);
	io = np_transfer(NVME_PEER_IO_READ, &part, 0, 2 * NP_PAGE);
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, memcmp(self->lent.bytes + 3 * NP_PAGE, self->back, 2 * NP_PAGE));
	EXPECT_TRUE(np_all_poison(self->lent.bytes, 3 * NP_PAGE));
	io.offset = NP_PAGE + NP_BLOCK;
	io.blocks = NP_PAGE / NP_BLOCK;
	EXPECT_EQ(-ERANGE, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
}

/* All in one submission, through a registered file. */
static void read_a_batch(struct __test_metadata *_metadata, FIXTURE_DATA(buffer_io) *self,
			 struct io_uring *ring)
{
	struct nvme_peer_uring_io io;
	uint8_t seen[ENTRIES] = { 0 };
	uint64_t data;
	uint32_t i;

	np_pattern(self->back, ENTRIES * NP_PAGE, AREA, 4);
	ASSERT_EQ(0, np_disk_write(self->block, self->back, ENTRIES * NP_PAGE, AREA));
	memset(self->lent.bytes, NP_POISON, BYTES);
	ASSERT_EQ(0, io_uring_register_files(ring, &self->ctrl.fd, 1));
	for (i = 0; i < ENTRIES; i++) {
		/* The last first. */
		io = np_transfer(NVME_PEER_IO_READ, &self->lent, (ENTRIES - 1 - i) * NP_PAGE, NP_PAGE);
		io.lba += i * (NP_PAGE / NP_BLOCK);
		np_transfer_queue(ring, 0, &io, i)->flags = IOSQE_FIXED_FILE;
	}
	ASSERT_EQ(ENTRIES, io_uring_submit(ring));
	for (i = 0; i < ENTRIES; i++) {
		ASSERT_EQ(0, np_transfer_collect(ring, &data));
		ASSERT_GT(ENTRIES, data);
		EXPECT_EQ(0, seen[data]++);
	}
	for (i = 0; i < ENTRIES; i++)
		EXPECT_EQ(0, memcmp(self->lent.bytes + (ENTRIES - 1 - i) * NP_PAGE,
				    self->back + i * NP_PAGE, NP_PAGE));
}

TEST_F(buffer_io, goes_in_batches_through_registered_files)
{
	read_a_batch(_metadata, self, &self->ring);
}

/* There is no queue without interrupts here: they tell. */
TEST_F(buffer_io, goes_by_a_ring_that_polls)
{
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &ring, IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL));
	read_a_batch(_metadata, self, &ring);
	io_uring_queue_exit(&ring);
}

/* The same buffer, at the same time: rings, queues and data of either are its own. */
TEST_F(buffer_io, goes_beside_a_peer_in_one_buffer)
{
	struct np_command command;
	struct nvme_peer_uring_io io;
	struct np_buffer buffer;
	struct np_lent lent;
	struct np_qp qp;
	uint32_t i, half = PAGES / 2 * NP_PAGE;

	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, NVMEP_TEST_SCATTERED));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	lent = (struct np_lent){ .fd = buffer.fd, .handle = buffer.handle, .bytes = buffer.bytes };
	np_pattern(self->back, ENTRIES * NP_PAGE, AREA, 6);
	ASSERT_EQ(0, np_disk_write(self->block, self->back, ENTRIES * NP_PAGE, AREA));
	for (i = 0; i < ENTRIES - 1; i++) {
		io = np_transfer(NVME_PEER_IO_READ, &lent, i * NP_PAGE, NP_PAGE);
		io.lba += i * (NP_PAGE / NP_BLOCK);
		np_transfer_queue(&self->ring, self->ctrl.fd, &io, i);
		np_command_rw(&command, &buffer, NP_CMD_READ, AREA + i * NP_PAGE, half + i * NP_PAGE,
			      NP_PAGE);
		np_qp_put(&qp, &command);
	}
	ASSERT_EQ(0, np_qp_ring(&qp));
	ASSERT_EQ(ENTRIES - 1, io_uring_submit(&self->ring));
	for (i = 0; i < ENTRIES - 1; i++) {
		ASSERT_EQ(0, np_transfer_collect(&self->ring, NULL));
		ASSERT_EQ(0, np_qp_reap(&qp, NULL, NP_TIMEOUT_MS));
	}
	EXPECT_EQ(0, memcmp(buffer.bytes, self->back, (ENTRIES - 1) * NP_PAGE));
	EXPECT_EQ(0, memcmp(buffer.bytes + half, self->back, (ENTRIES - 1) * NP_PAGE));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
}

/* --- what an I/O does besides ---------------------------------------------- */

#define INSTANCE	"/sys/kernel/debug/tracing/instances/buffer_io"
#define COUNTED		64U

static int set_event(const char *event, const char *file, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), INSTANCE "/events/%s/%s", event, file);
	return np_write_file(path, text);
}

/* Mappings of the controller, and allocations of this thread: -ENOENT without events. */
static int count_begin(const char *address)
{
	char device[48], pid[32];

	rmdir(INSTANCE);
	if (mkdir(INSTANCE, 0700))
		return -errno;
	snprintf(device, sizeof(device), "device == \"%s\"", address);
	snprintf(pid, sizeof(pid), "common_pid == %d", gettid());
	return set_event("dma", "filter", device) ?: set_event("kmem/kmalloc", "filter", pid) ?:
	       set_event("kmem/kmem_cache_alloc", "filter", pid) ?:
	       set_event("kmem/mm_page_alloc", "filter", pid) ?: set_event("dma", "enable", "1") ?:
	       set_event("kmem/kmalloc", "enable", "1") ?:
	       set_event("kmem/kmem_cache_alloc", "enable", "1") ?:
	       set_event("kmem/mm_page_alloc", "enable", "1");
}

/**
 * struct done - what was traced
 * @mapped: DMA mappings made for the controller
 * @unmapped: and taken back
 * @allocated: allocations
 */
struct done {
	unsigned int mapped, unmapped, allocated;
};

static struct done count_end(void)
{
	FILE *trace = fopen(INSTANCE "/trace", "re");
	struct done done = { 0 };
	char line[512];

	while (trace && fgets(line, sizeof(line), trace)) {
		done.mapped += !!strstr(line, ": dma_map_");
		done.unmapped += !!strstr(line, ": dma_unmap_");
		done.allocated += strstr(line, "alloc: ") || strstr(line, ": dma_alloc");
	}
	if (trace)
		fclose(trace);
	set_event("dma", "enable", "0");
	set_event("kmem", "enable", "0");
	rmdir(INSTANCE);
	return done;
}

static int many(struct io_uring *ring, int fd, const struct nvme_peer_uring_io *io)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < COUNTED && !ret; i++)
		ret = np_transfer_once(ring, fd, io);
	return ret;
}

/* As many, by as few commands as can be. */
static int many_by_lists(struct io_uring *ring, int fd, const struct nvme_peer_uring_io *io)
{
	struct nvme_peer_io_range list[NVME_PEER_IO_RANGES];
	const struct nvme_peer_uring_io_vec vec = {
		.opcode = io->opcode,
		.nsid = io->nsid,
		.count = NVME_PEER_IO_RANGES,
		.ranges = (uintptr_t)list,
	};
	unsigned int i;
	int ret = 0;

	for (i = 0; i < NVME_PEER_IO_RANGES; i++)
		list[i] = (struct nvme_peer_io_range){
			.offset = io->offset,
			.lba = io->lba,
			.blocks = io->blocks,
			.handle = io->handle,
		};
	for (i = 0; i < COUNTED / NVME_PEER_IO_RANGES && !ret; i++) {
		np_ranges_queue(ring, fd, &vec);
		ret = np_transfer_collect(ring, NULL);
	}
	return ret;
}

static int many_by_passthrough(const struct np_ctrl *ctrl, void *bytes, uint32_t length)
{
	int generic = np_open_node(ctrl, "/dev/ngp%dn1", O_RDWR), ret = 0;
	unsigned int i;

	for (i = 0; i < COUNTED && !ret; i++) {
		struct nvme_passthru_cmd cmd = {
			.opcode = NP_CMD_READ,
			.nsid = 1,
			.addr = (uintptr_t)bytes,
			.data_len = length,
			.cdw12 = length / NP_BLOCK - 1,
		};

		ret = np_ioctl(generic, NVME_IOCTL_IO_CMD, &cmd);
	}
	close(generic);
	return ret;
}

/* What passthrough does for the same shows that the counters count. */
TEST_F_TIMEOUT(buffer_io, maps_and_allocates_nothing, 60)
{
	static const uint32_t lengths[] = { NP_PAGE, 16 * NP_PAGE };
	struct nvme_peer_uring_io io;
	uint32_t before, after;
	struct done done;
	size_t i;
	int ret;

	ASSERT_EQ(1, np_maps_of(self->lent.fd, &before));
	for (i = 0; i < 2; i++) {
		io = np_transfer(NVME_PEER_IO_READ, &self->lent, NP_PAGE, lengths[i]);
		ASSERT_EQ(0, many(&self->ring, self->ctrl.fd, &io));
		ret = count_begin(self->ctrl.address);
		if (ret) {
			rmdir(INSTANCE);
			SKIP(return, "kernel that does not trace mappings: %d", ret);
		}
		ASSERT_EQ(0, many(&self->ring, self->ctrl.fd, &io));
		ASSERT_EQ(0, many_by_lists(&self->ring, self->ctrl.fd, &io));
		done = count_end();
		EXPECT_EQ(0, done.mapped);
		EXPECT_EQ(0, done.unmapped);
		/* The ring's own, now and then. */
		EXPECT_GT(COUNTED / 2, done.allocated);
	}
	ASSERT_EQ(1, np_maps_of(self->lent.fd, &after));
	EXPECT_EQ(before, after);
	/* The kernel traces mappings of single pages, but not ranges that many are linked into. */
	ASSERT_EQ(0, count_begin(self->ctrl.address));
	ASSERT_EQ(0, many_by_passthrough(&self->ctrl, self->back, lengths[0]));
	done = count_end();
	EXPECT_LE(COUNTED, done.mapped);
	EXPECT_LE(COUNTED, done.unmapped);
	ASSERT_EQ(0, count_begin(self->ctrl.address));
	ASSERT_EQ(0, many_by_passthrough(&self->ctrl, self->back, lengths[1]));
	done = count_end();
	EXPECT_LE(COUNTED, done.allocated);
}

/* --- what is refused ------------------------------------------------------- */

#define REFUSED(error, ...) do {							\
	struct nvme_peer_uring_io refused =						\
		np_transfer(NVME_PEER_IO_READ, &self->lent, 0, NP_PAGE);			\
											\
	__VA_ARGS__;									\
	EXPECT_EQ(error, np_transfer_once(&self->ring, self->ctrl.fd, &refused)) {			\
		TH_LOG("%s", #__VA_ARGS__);						\
	}										\
} while (0)

TEST_F(buffer_io, refuses_what_it_does_not_understand)
{
	size_t i;

	memset(self->lent.bytes, NP_POISON, BYTES);
	REFUSED(-EINVAL, refused.flags = 2);
	REFUSED(-EINVAL, refused.flags = 1U << 31);
	REFUSED(-EINVAL, refused.opcode = 0);
	REFUSED(-EINVAL, refused.opcode = NP_CMD_COMPARE);
	REFUSED(-EINVAL, refused.opcode = 0x100 | NP_CMD_READ);
	REFUSED(-EINVAL, refused.offset = 1);
	REFUSED(-EINVAL, refused.offset = 2);
	REFUSED(-EINVAL, refused.blocks = 0);
	for (i = 0; i < sizeof(((struct nvme_peer_uring_io *)0)->reserved) / sizeof(uint32_t); i++)
		REFUSED(-EINVAL, refused.reserved[i] = 1);
	REFUSED(-ENODEV, refused.nsid = 0);
	REFUSED(-ENODEV, refused.nsid = 2);
	REFUSED(-ENODEV, refused.nsid = 0xffffffff);
	EXPECT_TRUE(np_all_poison(self->lent.bytes, BYTES));
}

TEST_F(buffer_io, refuses_what_is_not_in_the_buffer)
{
	memset(self->lent.bytes, NP_POISON, BYTES);
	REFUSED(-ENOENT, refused.handle = 0);
	REFUSED(-ENOENT, refused.handle = self->lent.handle + 1);
	REFUSED(-ENOENT, refused.handle = 0xffffffff);
	REFUSED(-ERANGE, refused.offset = BYTES);
	REFUSED(-ERANGE, refused.offset = BYTES - NP_PAGE + 4);
	REFUSED(-ERANGE, refused.offset = BYTES - NP_BLOCK);
	REFUSED(-ERANGE, refused.offset = 0xfffffffffffff000ULL);
	REFUSED(-ERANGE, refused.offset = 0xfffffffffffffffcULL);
	REFUSED(-ERANGE, refused.blocks = BYTES / NP_BLOCK + 1);
	EXPECT_TRUE(np_all_poison(self->lent.bytes, BYTES));
}

/* The limit of one command comes before that of the buffer. */
TEST_F(buffer_io, refuses_what_is_too_long)
{
	uint32_t most = self->ctrl.info.max_transfer / NP_BLOCK;

	REFUSED(-EMSGSIZE, refused.blocks = most + 1);
	REFUSED(-EMSGSIZE, refused.blocks = 0x10000);
	REFUSED(-EMSGSIZE, refused.blocks = 0x10001);
	REFUSED(-EMSGSIZE, refused.blocks = 0xffffffff);
	REFUSED(most * NP_BLOCK > BYTES ? -ERANGE : 0, refused.blocks = most);
}

/* The controller's own answer, and not a byte. */
TEST_F(buffer_io, gives_the_status)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, &self->lent, 0, NP_PAGE);

	io.lba = 1ULL << 40;
	memset(self->lent.bytes, NP_POISON, BYTES);
	EXPECT_EQ(STATUS_RANGE, np_transfer_once(&self->ring, self->ctrl.fd, &io) & 0x7ff);
	EXPECT_TRUE(np_all_poison(self->lent.bytes, BYTES));
}

TEST_F(buffer_io, refuses_buffers_that_were_imported_for_less)
{
	struct nvme_peer_uring_io io;
	struct np_lent in, out;

	ASSERT_EQ(0, np_lend_for(&in, self->ctrl.fd, 2, 0, NVME_PEER_ACCESS_WRITE));
	ASSERT_EQ(0, np_lend_for(&out, self->ctrl.fd, 2, 0, NVME_PEER_ACCESS_READ));
	io = np_transfer(NVME_PEER_IO_WRITE, &in, 0, NP_PAGE);
	EXPECT_EQ(-EACCES, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	io.opcode = NVME_PEER_IO_READ;
	EXPECT_EQ(0, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	io = np_transfer(NVME_PEER_IO_READ, &out, 0, NP_PAGE);
	EXPECT_EQ(-EACCES, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	io.opcode = NVME_PEER_IO_WRITE;
	EXPECT_EQ(0, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, np_release(self->ctrl.fd, in.handle));
	EXPECT_EQ(0, np_release(self->ctrl.fd, out.handle));
	np_take_back(&in);
	np_take_back(&out);
}

/* A handle is the open file's, and ends with its release. */
TEST_F(buffer_io, refuses_handles_of_others)
{
	struct nvme_peer_uring_io io;
	struct np_ctrl other;
	struct np_lent lent;

	ASSERT_EQ(0, np_ctrl_open(&other, "np0"));
	io = np_transfer(NVME_PEER_IO_READ, &self->lent, 0, NP_PAGE);
	EXPECT_EQ(-ENOENT, np_transfer_once(&self->ring, other.fd, &io));
	ASSERT_EQ(0, np_lend(&lent, other.fd, 1, 0));
	io = np_transfer(NVME_PEER_IO_READ, &lent, 0, NP_PAGE);
	EXPECT_EQ(0, np_transfer_once(&self->ring, other.fd, &io));
	EXPECT_EQ(0, np_release(other.fd, lent.handle));
	EXPECT_EQ(0, np_maps_of(lent.fd, NULL));
	EXPECT_EQ(-ENOENT, np_transfer_once(&self->ring, other.fd, &io));
	np_take_back(&lent);
	np_ctrl_close(&other);
}

/* Without rights, through @fd: 0 or the error of a read in bits 0 to 7, of a write in 8 to 15. */
static int try_without_rights(int fd, const struct np_lent *lent)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, lent, 0, NP_PAGE);
	struct io_uring ring;
	int read, write;

	if (io_uring_queue_init(2, &ring, IORING_SETUP_SQE128) || np_drop_capabilities())
		return -1;
	read = np_transfer_once(&ring, fd, &io);
	io.opcode = NVME_PEER_IO_WRITE;
	write = np_transfer_once(&ring, fd, &io);
	return (read & 0xff) | (write & 0xff) << 8;
}

static void check_rights(struct __test_metadata *_metadata, const struct np_ctrl *ctrl, int flags,
			 int refusal)
{
	int results[2], result = -1, fd = np_open_node(ctrl, "/dev/nvmep%d", flags);
	struct np_lent lent;
	pid_t child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_lend(&lent, fd, 1, 0));
	ASSERT_EQ(0, pipe(results));
	child = fork();
	if (!child) {
		result = try_without_rights(fd, &lent);
		_exit(sizeof(result) != write(results[1], &result, sizeof(result)));
	}
	ASSERT_EQ(sizeof(result), read(results[0], &result, sizeof(result)));
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	EXPECT_EQ((refusal & 0xff) << 8, result);
	close(results[0]);
	close(results[1]);
	np_take_back(&lent);
	close(fd);
}

/* As with passthrough: who may not write the node does not write the namespace. */
TEST_F(buffer_io, asks_for_rights)
{
	check_rights(_metadata, &self->ctrl, O_RDONLY, -EACCES);
	check_rights(_metadata, &self->ctrl, O_RDWR, 0);
}

TEST_F(buffer_io, refuses_other_forms)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, &self->lent, 0, NP_PAGE);
	int generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	struct iovec registered = { self->back, BYTES };
	struct io_uring_sqe *sqe;
	struct io_uring small, big;

	ASSERT_LE(0, generic);
	ASSERT_EQ(0, io_uring_queue_init(4, &big, IORING_SETUP_SQE128 | IORING_SETUP_CQE32));
	EXPECT_EQ(-ENOTTY, np_transfer_once(&big, generic, &io));
	EXPECT_EQ(0, np_transfer_once(&big, self->ctrl.fd, &io));
	io_uring_queue_exit(&big);
	close(generic);
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &registered, 1));
	np_transfer_queue(&self->ring, self->ctrl.fd, &io, 0)->uring_cmd_flags = IORING_URING_CMD_FIXED;
	EXPECT_EQ(-EINVAL, np_transfer_collect(&self->ring, NULL));
	ASSERT_EQ(0, io_uring_queue_init(4, &small, 0));
	sqe = np_next_entry(&small);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = self->ctrl.fd;
	sqe->cmd_op = NVME_PEER_URING_CMD_IO;
	EXPECT_EQ(-EOPNOTSUPP, np_transfer_collect(&small, NULL));
	io_uring_queue_exit(&small);
}

TEST_F(buffer_io, ends_when_the_exporter_wants_its_memory)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, &self->lent, 0, NP_PAGE);

	ASSERT_EQ(0, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	ASSERT_LE(0, np_move(self->lent.fd));
	EXPECT_EQ(-ESTALE, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, np_wait_unmapped(self->lent.fd));
	EXPECT_EQ(-ESTALE, np_transfer_once(&self->ring, self->ctrl.fd, &io));
}

#define WORK_PROCESSORS	"/sys/devices/virtual/workqueue/cpumask"

/* Before anything was waited for, and before those who might have been in time. */
TEST_F(buffer_io, begins_nothing_once_its_exporter_has_asked)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, &self->lent, 0, NP_PAGE);
	struct nvmep_test_stall work = {
		.function = "nvmep_buf_invalidate_work",
		.anybody = 1,
	};
	int stall = np_stall(&work);

	ASSERT_LE(0, stall);
	/* Who is held up has a processor of its own. */
	ASSERT_EQ(0, np_write_file(WORK_PROCESSORS, "2") ?: np_run_on(0));
	EXPECT_EQ(1, np_move(self->lent.fd));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(-ESTALE, np_transfer_once(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(1, np_maps_of(self->lent.fd, NULL));
	close(stall);
	EXPECT_EQ(0, np_write_file(WORK_PROCESSORS, "3"));
	EXPECT_EQ(0, np_wait_unmapped(self->lent.fd));
}

/* --- what is in flight ----------------------------------------------------- */

FIXTURE(in_flight)
{
	struct np_bad bad;
	struct io_uring ring;
	struct np_lent lent;
	uint8_t *bytes;
	struct nvme_peer_uring_io io;
};

#define MDTS	77		/* in Identify Controller */

static int set_up(FIXTURE_DATA(in_flight) *self, uint32_t flags)
{
	int ret = np_bad_bind(&self->bad, 1) ?: np_lend(&self->lent, self->bad.ctrl.fd, PAGES, 0) ?:
		  io_uring_queue_init(ENTRIES, &self->ring, flags);

	if (ret)
		return ret;
	self->io = np_transfer(NVME_PEER_IO_READ, &self->lent, NP_PAGE, NP_PAGE);
	self->io.lba = 0;
	np_pattern(self->bytes, NP_PAGE, 0, 1);
	memset(self->lent.bytes, NP_POISON, BYTES);
	return np_disk_write(self->bad.disk, self->bytes, NP_PAGE, 0);
}

FIXTURE_SETUP(in_flight)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_identify(&self->bad, 1, MDTS, 0));
}

FIXTURE_TEARDOWN(in_flight)
{
	if (!self->bad.address[0])
		return;
	io_uring_queue_exit(&self->ring);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	EXPECT_EQ(0, np_maps_of(self->lent.fd, NULL));
	np_take_back(&self->lent);
	free(self->bytes);
}

/* Sends a read that the controller has taken and does not carry out. */
static int hold(FIXTURE_DATA(in_flight) *self, int fd)
{
	int ret = np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1);

	np_transfer_queue(&self->ring, fd, &self->io, 0);
	if (!ret && io_uring_submit(&self->ring) != 1)
		ret = -EIO;
	return ret ?: np_bad_wait_word(&self->bad, BADCTRL_HELD, 1);
}

/* Still mapped after a while, and all of what was read when it is released at last. */
static void check_late(struct __test_metadata *_metadata, FIXTURE_DATA(in_flight) *self)
{
	np_sleep_ms(WHILE_MS);
	EXPECT_EQ(1, np_maps_of(self->lent.fd, NULL));
	EXPECT_EQ(NP_POISON, self->lent.bytes[NP_PAGE]);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_transfer_collect(&self->ring, NULL));
	EXPECT_EQ(0, np_wait_unmapped(self->lent.fd));
	EXPECT_EQ(0, memcmp(self->lent.bytes + NP_PAGE, self->bytes, NP_PAGE));
}

TEST_F(in_flight, an_exporter_waits_for_it)
{
	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	/* Its lock is not held while something is waited for. */
	EXPECT_EQ(1, np_move(self->lent.fd));
	EXPECT_NE(0, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(-ESTALE, np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io));
	check_late(_metadata, self);
}

/**
 * struct caller - a thread that waits
 * @ctrl_fd: controller
 * @handle: to release
 * @address: to unbind instead, if not NULL
 * @ret: what came of it
 */
struct caller {
	int ctrl_fd;
	uint32_t handle;
	const char *address;
	int ret;
	pthread_t thread;
};

static void *call(void *argument)
{
	struct caller *caller = argument;

	caller->ret = caller->address ? np_unbind(caller->address) :
					np_release(caller->ctrl_fd, caller->handle);
	return NULL;
}

TEST_F(in_flight, a_release_waits_for_it)
{
	struct caller caller = { 0 };

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	caller.ctrl_fd = self->bad.ctrl.fd;
	caller.handle = self->lent.handle;
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	ASSERT_EQ(0, pthread_create(&caller.thread, NULL, call, &caller));
	np_sleep_ms(WHILE_MS);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(caller.thread, NULL));
	EXPECT_EQ(-ENOENT, np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io));
	check_late(_metadata, self);
	pthread_join(caller.thread, NULL);
	EXPECT_EQ(0, caller.ret);
}

/* The ring has the file as long as the command is under way. */
TEST_F(in_flight, a_close_waits_for_it)
{
	struct np_ctrl other;
	struct np_lent lent;

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_EQ(0, np_ctrl_open(&other, "bad"));
	ASSERT_EQ(0, np_lend(&lent, other.fd, PAGES, 0));
	memset(lent.bytes, NP_POISON, BYTES);
	self->io.handle = lent.handle;
	ASSERT_EQ(0, hold(self, other.fd));
	np_ctrl_close(&other);
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, self->lent.handle));
	np_take_back(&self->lent);
	self->lent = lent;
	check_late(_metadata, self);
}

/* Meanwhile the namespaces are there, but nothing new begins in a buffer. */
TEST_F(in_flight, an_unbind_waits_for_it)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	struct caller caller = { 0 };
	struct nvme_peer_uring_io io;
	struct io_uring ring;
	int ret;

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SQE128));
	caller.address = self->bad.address;
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	ASSERT_EQ(0, pthread_create(&caller.thread, NULL, call, &caller));
	io = self->io;
	io.offset = 0;
	do
		ret = np_transfer_once(&ring, self->bad.ctrl.fd, &io);
	while (!ret && np_now_ms() < end);
	EXPECT_EQ(-ESHUTDOWN, ret);
	check_late(_metadata, self);
	pthread_join(caller.thread, NULL);
	EXPECT_EQ(0, caller.ret);
	EXPECT_EQ(-ENODEV, np_transfer_once(&ring, self->bad.ctrl.fd, &io));
	io_uring_queue_exit(&ring);
}

/* It is cut off, as passthrough is; the buffer stays, and serves on. */
TEST_F(in_flight, a_reset_ends_it)
{
	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(-EINTR, np_transfer_collect(&self->ring, NULL));
	EXPECT_EQ(1, np_maps_of(self->lent.fd, NULL));
	memset(self->lent.bytes, NP_POISON, BYTES);
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io));
	EXPECT_EQ(0, memcmp(self->lent.bytes + NP_PAGE, self->bytes, NP_PAGE));
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, self->lent.handle));
	EXPECT_EQ(0, np_maps_of(self->lent.fd, NULL));
}

static void *reset_often(void *argument)
{
	const struct np_bad *bad = argument;
	int i;

	for (i = 0; i < 5; i++)
		if (np_ioctl(bad->ctrl.fd, NVME_IOCTL_RESET, NULL))
			return argument;
	return NULL;
}

/* Each ends once: with what it asked for, or cut off. */
TEST_F(in_flight, resets_lose_none)
{
	pthread_t thread;
	void *failed;
	uint32_t i;

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_EQ(0, pthread_create(&thread, NULL, reset_often, &self->bad));
	do {
		for (i = 0; i < ENTRIES; i++)
			np_transfer_queue(&self->ring, self->bad.ctrl.fd, &self->io, i);
		for (i = 0; i < ENTRIES; i++) {
			int ret = np_transfer_collect(&self->ring, NULL);

			ASSERT_TRUE(!ret || ret == -EINTR || ret == NP_STATUS_HOST_PATH) {
				TH_LOG("%d", ret);
			}
		}
	} while (pthread_tryjoin_np(thread, &failed));
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(0, np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io));
	EXPECT_EQ(0, memcmp(self->lent.bytes + NP_PAGE, self->bytes, NP_PAGE));
}

#define POLL_QUEUES	"/sys/module/nvme_peer/parameters/poll_queues"

/* Whose ring polls, and then does not: nobody waits for him as long as for a timeout. */
TEST_F(in_flight, nobody_polls_for_it)
{
	int64_t start;

	ASSERT_EQ(0, np_write_file(POLL_QUEUES, "1"));
	EXPECT_EQ(0, set_up(self, IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL));
	EXPECT_EQ(0, np_write_file(POLL_QUEUES, "0"));
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io));
	EXPECT_EQ(0, memcmp(self->lent.bytes + NP_PAGE, self->bytes, NP_PAGE));
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	start = np_now_ms();
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, self->lent.handle));
	EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
	EXPECT_EQ(0, np_transfer_collect(&self->ring, NULL));
}

/* --- what the other controller has not ------------------------------------- */

#define LARGE_PAGES	1024U

/* As many segments as pages: the list of their addresses fills more than one. */
TEST_F(in_flight, long_lists)
{
	uint32_t length = (LARGE_PAGES - 1) * NP_PAGE;
	struct nvme_peer_uring_io io;
	struct np_lent large;
	uint8_t *back;

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_LE(LARGE_PAGES * NP_PAGE, self->bad.ctrl.info.max_transfer);
	ASSERT_EQ(0, posix_memalign((void **)&back, NP_PAGE, length));
	ASSERT_EQ(0, np_lend(&large, self->bad.ctrl.fd, LARGE_PAGES, NVMEP_TEST_SCATTERED));
	np_pattern(large.bytes + NP_BLOCK, length, 0, 8);
	io = np_transfer(NVME_PEER_IO_WRITE, &large, NP_BLOCK, length);
	io.lba = 0;
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->bad.ctrl.fd, &io));
	ASSERT_EQ(0, np_disk_read(self->bad.disk, back, length, 0));
	EXPECT_EQ(0, memcmp(back, large.bytes + NP_BLOCK, length));
	memset(large.bytes, NP_POISON, LARGE_PAGES * NP_PAGE);
	io.opcode = NVME_PEER_IO_READ;
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->bad.ctrl.fd, &io));
	EXPECT_EQ(0, memcmp(back, large.bytes + NP_BLOCK, length));
	EXPECT_TRUE(np_all_poison(large.bytes, NP_BLOCK));
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, large.handle));
	np_take_back(&large);
	free(back);
}

/* That the other is lost shows that the controller loses what may be lost. */
TEST_F(in_flight, writes_past_the_cache)
{
	uint8_t *page = self->lent.bytes;

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	page = self->lent.bytes;
	memset(page, 3, BYTES);
	self->io.opcode = NVME_PEER_IO_WRITE;
	self->io.lba = 2 * NP_PAGE / NP_BLOCK;
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io));
	self->io.flags = NVME_PEER_IO_FUA;
	self->io.lba = 3 * NP_PAGE / NP_BLOCK;
	ASSERT_EQ(0, np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io));
	ASSERT_EQ(0, np_bad_cut_power(&self->bad));
	ASSERT_EQ(0, np_disk_read(self->bad.disk, self->bytes, NP_PAGE, 2 * NP_PAGE));
	EXPECT_EQ(0, self->bytes[0]);
	ASSERT_EQ(0, np_disk_read(self->bad.disk, self->bytes, NP_PAGE, 3 * NP_PAGE));
	EXPECT_EQ(3, self->bytes[0]);
}

#define LBA_FORMAT_0	128		/* in Identify Namespace: bytes of metadata */

/* A namespace that the controller counts may still be on its way. */
static int once_it_is_served(FIXTURE_DATA(in_flight) *self)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	do {
		ret = np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io);
	} while (ret == -ENODEV && np_now_ms() < end);
	return ret;
}

/* What the namespace is like makes a read and a write end with @error. */
static void refuses(struct __test_metadata *_metadata, FIXTURE_DATA(in_flight) *self, int error)
{
	ASSERT_EQ(0, np_bind(self->bad.address));
	ASSERT_EQ(0, np_ctrl_open(&self->bad.ctrl, "bad"));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	ASSERT_EQ(0, np_lend(&self->lent, self->bad.ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, IORING_SETUP_SQE128));
	self->io = np_transfer(NVME_PEER_IO_READ, &self->lent, 0, NP_PAGE);
	EXPECT_EQ(error, once_it_is_served(self));
	self->io.opcode = NVME_PEER_IO_WRITE;
	EXPECT_EQ(error, np_transfer_once(&self->ring, self->bad.ctrl.fd, &self->io));
}

/* There is no place for metadata, so blocks that carry some are not touched. */
TEST_F(in_flight, metadata_is_refused)
{
	ASSERT_EQ(0, np_bad_identify(&self->bad, 0, LBA_FORMAT_0, 8));
	refuses(_metadata, self, -EMEDIUMTYPE);
}

/* CAP.CSS: there are other command sets than NVM. */
#define CAP_HIGH	(BADCTRL_REGISTERS + 0x04)
#define CAP_OTHER_SETS	(1U << 11)

/* In another command set the numbers of read and write mean something else. */
TEST_F(in_flight, other_command_sets_are_refused)
{
	static const uint8_t descriptor[] = { 4, 1, 0, 0, 1, 0, 0 };
	uint32_t cap = np_bad_get(&self->bad, CAP_HIGH);
	uint32_t i;

	ASSERT_EQ(0, np_bad_set(&self->bad, CAP_HIGH, cap | CAP_OTHER_SETS));
	for (i = 0; i < sizeof(descriptor); i++)
		ASSERT_EQ(0, np_bad_identify(&self->bad, 3, i, descriptor[i]));
	refuses(_metadata, self, -EOPNOTSUPP);
}

/* --- by the library -------------------------------------------------------- */

TEST(the_library_says_it_in_one_call)
{
	struct nvme_peer_buf_import buffer;
	struct nvmepeer_hostmem *memory;
	struct io_uring ring;
	struct nvmepeer *lib;
	struct np_ctrl ctrl;
	uint8_t *bytes;
	char node[32];
	int disk;

	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	snprintf(node, sizeof(node), "nvmep%d", ctrl.instance);
	disk = np_open_node(&ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, disk);
	ASSERT_EQ(0, posix_memalign((void **)&bytes, NP_PAGE, 2 * NP_PAGE));
	np_pattern(bytes, 2 * NP_PAGE, AREA, 9);
	ASSERT_EQ(0, np_disk_write(disk, bytes, 2 * NP_PAGE, AREA));

	ASSERT_EQ(0, nvmepeer_open(node, &lib));
	ASSERT_EQ(0, nvmepeer_hostmem_alloc(4 * NP_PAGE, &memory));
	ASSERT_EQ(0, nvmepeer_buf_import(lib, nvmepeer_hostmem_fd(memory), 0, &buffer,
					 sizeof(buffer)));
	ASSERT_EQ(0, nvmepeer_uring_init(&ring, 4));
	nvmepeer_prep_buf_rw(np_next_entry(&ring), lib, 1, NVMEPEER_OPCODE_READ, AREA / NP_BLOCK,
			     2 * NP_PAGE / NP_BLOCK, buffer.handle, NP_PAGE);
	EXPECT_EQ(0, np_transfer_collect(&ring, NULL));
	EXPECT_EQ(0, memcmp((uint8_t *)nvmepeer_hostmem_address(memory) + NP_PAGE, bytes,
			    2 * NP_PAGE));
	io_uring_queue_exit(&ring);
	EXPECT_EQ(0, nvmepeer_buf_release(lib, buffer.handle));
	nvmepeer_hostmem_free(memory);
	nvmepeer_close(lib);
	free(bytes);
	close(disk);
	np_ctrl_close(&ctrl);
}

TEST_HARNESS_MAIN
