// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVME_PEER_URING_CMD_IO: the CPU reads and writes with the data in an imported buffer.
 * Data is compared through the block device, invalid commands get their errno, and the
 * exporter gets its memory back when the controller no longer uses it.
 *
 * kernels: 7
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

#include "npbad.h"
#include "kselftest_harness.h"
#include "imported.h"

#define ENTRIES		32U
#define PAGES		64U
#define BYTES		(PAGES * NP_PAGE)
#define AREA		NP_IMPORTED_AREA
/* Time in which something must not happen. */
#define WHILE_MS	300

/* --- transfers ------------------------------------------------------------- */

FIXTURE(buffer_io)
{
	struct np_ctrl ctrl;
	int block;
	struct io_uring ring;
	struct np_imported buf;
	uint8_t *back;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(buffer_io)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects_alone(&self->ctrl, self->before, NP_TIMEOUT_MS));
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->block);
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, IORING_SETUP_SQE128));
	ASSERT_EQ(0, np_imported_open(&self->buf, self->ctrl.fd, PAGES, NVMEP_TEST_SCATTERED));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, BYTES));
}

FIXTURE_TEARDOWN(buffer_io)
{
	io_uring_queue_exit(&self->ring);
	np_release(self->ctrl.fd, self->buf.handle);
	EXPECT_EQ(0, np_dmabuf_maps(self->buf.fd, NULL));
	np_imported_close(&self->buf);
	free(self->back);
	close(self->block);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

TEST_F(buffer_io, feature_bit_is_reported)
{
	EXPECT_NE(0, self->ctrl.info.features & NVME_PEER_FEATURE_BUF_IO);
}

/* A read and a write change exactly the named bytes. */
static void there_and_back(struct __test_metadata *_metadata, FIXTURE_DATA(buffer_io) *self,
			   const struct np_imported *buf, uint32_t offset, uint32_t length)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_WRITE, buf, offset, length);
	uint8_t *data = buf->bytes + offset;

	np_pattern(data, length, AREA, offset + length);
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	memset(self->back, 0, length);
	ASSERT_EQ(0, np_disk_read(self->block, self->back, length, AREA));
	EXPECT_EQ(0, memcmp(self->back, data, length));

	np_pattern(self->back, length, AREA, ~length);
	ASSERT_EQ(0, np_disk_write(self->block, self->back, length, AREA));
	memset(buf->bytes, NP_POISON, buf->length);
	io.opcode = NVME_PEER_IO_READ;
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, memcmp(self->back, data, length));
	EXPECT_TRUE(np_all_poison(buf->bytes, offset));
	EXPECT_TRUE(np_all_poison(data + length, buf->length - offset - length));
}

/*
 * One PRP entry, two, and lists; from an offset into a page; up to the last byte; one
 * segment and many.
 */
TEST_F(buffer_io, transfers_named_range_only)
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
	struct np_imported whole;
	size_t i;

	ASSERT_EQ(0, np_imported_open(&whole, self->ctrl.fd, PAGES, 0));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		there_and_back(_metadata, self, &self->buf, cases[i].offset, cases[i].length);
		there_and_back(_metadata, self, &whole, cases[i].offset, cases[i].length);
	}
	EXPECT_EQ(0, np_release(self->ctrl.fd, whole.handle));
	np_imported_close(&whole);
}

/* A handle covers only the range that was imported. */
TEST_F(buffer_io, limited_to_imported_range)
{
	struct nvme_peer_buf_import import = {
		.size = sizeof(import),
		.dmabuf_fd = self->buf.fd,
		.offset = 3 * NP_PAGE,
		.length = 2 * NP_PAGE,
	};
	struct nvme_peer_uring_io io;
	struct np_imported part = self->buf;

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_IMPORT, &import));
	part.handle = import.handle;
	np_pattern(self->back, 2 * NP_PAGE, AREA, 3);
	ASSERT_EQ(0, np_disk_write(self->block, self->back, 2 * NP_PAGE, AREA));
	memset(self->buf.bytes, NP_POISON, BYTES);
	io = np_transfer(NVME_PEER_IO_READ, &part, 0, 2 * NP_PAGE);
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, memcmp(self->buf.bytes + 3 * NP_PAGE, self->back, 2 * NP_PAGE));
	EXPECT_TRUE(np_all_poison(self->buf.bytes, 3 * NP_PAGE));
	io.offset = NP_PAGE + NP_BLOCK;
	io.blocks = NP_PAGE / NP_BLOCK;
	EXPECT_EQ(-ERANGE, np_transfer_run(&self->ring, self->ctrl.fd, &io));
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
	memset(self->buf.bytes, NP_POISON, BYTES);
	ASSERT_EQ(0, io_uring_register_files(ring, &self->ctrl.fd, 1));
	for (i = 0; i < ENTRIES; i++) {
		/* In reverse order. */
		io = np_transfer(NVME_PEER_IO_READ, &self->buf, (ENTRIES - 1 - i) * NP_PAGE, NP_PAGE);
		io.lba += i * (NP_PAGE / NP_BLOCK);
		np_transfer_queue(ring, 0, &io, i)->flags = IOSQE_FIXED_FILE;
	}
	ASSERT_EQ(ENTRIES, io_uring_submit(ring));
	for (i = 0; i < ENTRIES; i++) {
		ASSERT_EQ(0, np_transfer_wait(ring, &data));
		ASSERT_GT(ENTRIES, data);
		EXPECT_EQ(0, seen[data]++);
	}
	for (i = 0; i < ENTRIES; i++)
		EXPECT_EQ(0, memcmp(self->buf.bytes + (ENTRIES - 1 - i) * NP_PAGE,
				    self->back + i * NP_PAGE, NP_PAGE));
}

TEST_F(buffer_io, batch_through_registered_file)
{
	read_a_batch(_metadata, self, &self->ring);
}

/* The controller has no polled queue here, so interrupts complete the commands. */
TEST_F(buffer_io, works_on_iopoll_ring)
{
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &ring, IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL));
	read_a_batch(_metadata, self, &ring);
	io_uring_queue_exit(&ring);
}

/* A peer uses the same buffer at the same time: rings, queues and data are separate. */
TEST_F(buffer_io, shares_buffer_with_peer)
{
	struct np_command command;
	struct nvme_peer_uring_io io;
	struct np_buffer buffer;
	struct np_imported buf;
	struct np_qp qp;
	uint32_t i, half = PAGES / 2 * NP_PAGE;

	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, NVMEP_TEST_SCATTERED));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	buf = (struct np_imported){ .fd = buffer.fd, .handle = buffer.handle, .bytes = buffer.bytes };
	np_pattern(self->back, ENTRIES * NP_PAGE, AREA, 6);
	ASSERT_EQ(0, np_disk_write(self->block, self->back, ENTRIES * NP_PAGE, AREA));
	for (i = 0; i < ENTRIES - 1; i++) {
		io = np_transfer(NVME_PEER_IO_READ, &buf, i * NP_PAGE, NP_PAGE);
		io.lba += i * (NP_PAGE / NP_BLOCK);
		np_transfer_queue(&self->ring, self->ctrl.fd, &io, i);
		np_command_rw(&command, &buffer, NVMEPEER_OP_READ, AREA + i * NP_PAGE,
			      half + i * NP_PAGE, NP_PAGE);
		np_qp_put(&qp, &command);
	}
	ASSERT_EQ(0, np_qp_ring_doorbell(&qp));
	ASSERT_EQ(ENTRIES - 1, io_uring_submit(&self->ring));
	for (i = 0; i < ENTRIES - 1; i++) {
		ASSERT_EQ(0, np_transfer_wait(&self->ring, NULL));
		ASSERT_EQ(0, np_qp_reap(&qp, NULL, NP_TIMEOUT_MS));
	}
	EXPECT_EQ(0, memcmp(buffer.bytes, self->back, (ENTRIES - 1) * NP_PAGE));
	EXPECT_EQ(0, memcmp(buffer.bytes + half, self->back, (ENTRIES - 1) * NP_PAGE));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
}

/* --- mappings and allocations ---------------------------------------------- */

#define INSTANCE	NP_TRACE "instances/buffer_io"
#define COUNTED		64U

static int set_event(const char *event, const char *file, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), INSTANCE "/events/%s/%s", event, file);
	return np_write_file(path, text);
}

/*
 * Count the controller's DMA mappings and this thread's allocations; -ENOENT if the
 * kernel lacks the trace events.
 */
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
 * struct done - traced events
 * @mapped: DMA mappings made for the controller
 * @unmapped: DMA mappings removed
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
		ret = np_transfer_run(ring, fd, io);
	return ret;
}

/* The same number of transfers with the fewest commands. */
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
		ret = np_transfer_wait(ring, NULL);
	}
	return ret;
}

static int many_by_passthrough(const struct np_ctrl *ctrl, void *bytes, uint32_t length)
{
	int generic = np_open_node(ctrl, "/dev/ngp%dn1", O_RDWR), ret = 0;
	unsigned int i;

	for (i = 0; i < COUNTED && !ret; i++) {
		struct nvme_passthru_cmd cmd = {
			.opcode = NVMEPEER_OP_READ,
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

/* Passthrough does the same transfers, which shows that the counters work. */
TEST_F_TIMEOUT(buffer_io, maps_and_allocates_nothing, 60)
{
	static const uint32_t lengths[] = { NP_PAGE, 16 * NP_PAGE };
	struct nvme_peer_uring_io io;
	uint32_t before, after;
	struct done done;
	size_t i;
	int ret;

	ASSERT_EQ(1, np_dmabuf_maps(self->buf.fd, &before));
	for (i = 0; i < 2; i++) {
		io = np_transfer(NVME_PEER_IO_READ, &self->buf, NP_PAGE, lengths[i]);
		ASSERT_EQ(0, many(&self->ring, self->ctrl.fd, &io));
		ret = count_begin(self->ctrl.address);
		if (ret) {
			rmdir(INSTANCE);
			SKIP(return, "kernel does not trace mappings: %d", ret);
		}
		ASSERT_EQ(0, many(&self->ring, self->ctrl.fd, &io));
		ASSERT_EQ(0, many_by_lists(&self->ring, self->ctrl.fd, &io));
		done = count_end();
		EXPECT_EQ(0, done.mapped);
		EXPECT_EQ(0, done.unmapped);
		/* io_uring itself allocates now and then. */
		EXPECT_GT(COUNTED / 2, done.allocated);
	}
	ASSERT_EQ(1, np_dmabuf_maps(self->buf.fd, &after));
	EXPECT_EQ(before, after);
	/*
	 * The kernel traces mappings of single pages, but not those of linked IOVA
	 * ranges.
	 */
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

/* --- refused commands ------------------------------------------------------ */

#define REFUSED(error, ...) do {							\
	struct nvme_peer_uring_io refused =						\
		np_transfer(NVME_PEER_IO_READ, &self->buf, 0, NP_PAGE);			\
											\
	__VA_ARGS__;									\
	EXPECT_EQ(error, np_transfer_run(&self->ring, self->ctrl.fd, &refused)) {			\
		TH_LOG("%s", #__VA_ARGS__);						\
	}										\
} while (0)

TEST_F(buffer_io, refuses_unknown_fields)
{
	size_t i;

	memset(self->buf.bytes, NP_POISON, BYTES);
	REFUSED(-EINVAL, refused.flags = 2);
	REFUSED(-EINVAL, refused.flags = 1U << 31);
	REFUSED(-EINVAL, refused.opcode = 0);
	REFUSED(-EINVAL, refused.opcode = NVMEPEER_OP_COMPARE);
	REFUSED(-EINVAL, refused.opcode = 0x100 | NVMEPEER_OP_READ);
	REFUSED(-EINVAL, refused.offset = 1);
	REFUSED(-EINVAL, refused.offset = 2);
	REFUSED(-EINVAL, refused.blocks = 0);
	for (i = 0; i < sizeof(((struct nvme_peer_uring_io *)0)->reserved) / sizeof(uint32_t); i++)
		REFUSED(-EINVAL, refused.reserved[i] = 1);
	REFUSED(-ENODEV, refused.nsid = 0);
	REFUSED(-ENODEV, refused.nsid = 2);
	REFUSED(-ENODEV, refused.nsid = NVME_ALL_NAMESPACES);
	EXPECT_TRUE(np_all_poison(self->buf.bytes, BYTES));
}

TEST_F(buffer_io, refuses_out_of_range)
{
	memset(self->buf.bytes, NP_POISON, BYTES);
	REFUSED(-ENOENT, refused.handle = 0);
	REFUSED(-ENOENT, refused.handle = self->buf.handle + 1);
	REFUSED(-ENOENT, refused.handle = 0xffffffff);
	REFUSED(-ERANGE, refused.offset = BYTES);
	REFUSED(-ERANGE, refused.offset = BYTES - NP_PAGE + 4);
	REFUSED(-ERANGE, refused.offset = BYTES - NP_BLOCK);
	REFUSED(-ERANGE, refused.offset = 0xfffffffffffff000ULL);
	REFUSED(-ERANGE, refused.offset = 0xfffffffffffffffcULL);
	REFUSED(-ERANGE, refused.blocks = BYTES / NP_BLOCK + 1);
	EXPECT_TRUE(np_all_poison(self->buf.bytes, BYTES));
}

/* The limit of a command is checked before the range of the buffer. */
TEST_F(buffer_io, refuses_oversized_transfer)
{
	uint32_t most = self->ctrl.info.max_transfer / NP_BLOCK;

	REFUSED(-EMSGSIZE, refused.blocks = most + 1);
	REFUSED(-EMSGSIZE, refused.blocks = 0x10000);
	REFUSED(-EMSGSIZE, refused.blocks = 0x10001);
	REFUSED(-EMSGSIZE, refused.blocks = 0xffffffff);
	REFUSED(most * NP_BLOCK > BYTES ? -ERANGE : 0, refused.blocks = most);
}

/* The controller's status is returned and no data is transferred. */
TEST_F(buffer_io, returns_nvme_status)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, &self->buf, 0, NP_PAGE);

	io.lba = 1ULL << 40;
	memset(self->buf.bytes, NP_POISON, BYTES);
	EXPECT_EQ(NVME_SC_LBA_RANGE,
		  np_transfer_run(&self->ring, self->ctrl.fd, &io) & NVME_STATUS_MASK);
	EXPECT_TRUE(np_all_poison(self->buf.bytes, BYTES));
}

TEST_F(buffer_io, refuses_direction_not_imported)
{
	struct nvme_peer_uring_io io;
	struct np_imported in, out;

	ASSERT_EQ(0, np_imported_open_for(&in, self->ctrl.fd, 2, 0, NVME_PEER_ACCESS_WRITE));
	ASSERT_EQ(0, np_imported_open_for(&out, self->ctrl.fd, 2, 0, NVME_PEER_ACCESS_READ));
	io = np_transfer(NVME_PEER_IO_WRITE, &in, 0, NP_PAGE);
	EXPECT_EQ(-EACCES, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	io.opcode = NVME_PEER_IO_READ;
	EXPECT_EQ(0, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	io = np_transfer(NVME_PEER_IO_READ, &out, 0, NP_PAGE);
	EXPECT_EQ(-EACCES, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	io.opcode = NVME_PEER_IO_WRITE;
	EXPECT_EQ(0, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, np_release(self->ctrl.fd, in.handle));
	EXPECT_EQ(0, np_release(self->ctrl.fd, out.handle));
	np_imported_close(&in);
	np_imported_close(&out);
}

/* A handle is valid for the open file that imported it, until it is released. */
TEST_F(buffer_io, refuses_handle_of_other_file)
{
	struct nvme_peer_uring_io io;
	struct np_ctrl other;
	struct np_imported buf;

	ASSERT_EQ(0, np_ctrl_open(&other, "np0"));
	io = np_transfer(NVME_PEER_IO_READ, &self->buf, 0, NP_PAGE);
	EXPECT_EQ(-ENOENT, np_transfer_run(&self->ring, other.fd, &io));
	ASSERT_EQ(0, np_imported_open(&buf, other.fd, 1, 0));
	io = np_transfer(NVME_PEER_IO_READ, &buf, 0, NP_PAGE);
	EXPECT_EQ(0, np_transfer_run(&self->ring, other.fd, &io));
	EXPECT_EQ(0, np_release(other.fd, buf.handle));
	EXPECT_EQ(0, np_dmabuf_maps(buf.fd, NULL));
	EXPECT_EQ(-ENOENT, np_transfer_run(&self->ring, other.fd, &io));
	np_imported_close(&buf);
	np_ctrl_close(&other);
}

/*
 * Without capabilities, through @fd: 0, or the error of a read in bits 0 to 7 and of a
 * write in bits 8 to 15.
 */
static int try_without_rights(int fd, const struct np_imported *buf)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, buf, 0, NP_PAGE);
	struct io_uring ring;
	int read, write;

	if (io_uring_queue_init(2, &ring, IORING_SETUP_SQE128) || np_drop_capabilities())
		return -1;
	read = np_transfer_run(&ring, fd, &io);
	io.opcode = NVME_PEER_IO_WRITE;
	write = np_transfer_run(&ring, fd, &io);
	return (read & 0xff) | (write & 0xff) << 8;
}

static void check_rights(struct __test_metadata *_metadata, const struct np_ctrl *ctrl, int flags,
			 int refusal)
{
	int results[2], result = -1, fd = np_open_node(ctrl, "/dev/nvmep%d", flags);
	struct np_imported buf;
	pid_t child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, np_imported_open(&buf, fd, 1, 0));
	ASSERT_EQ(0, pipe(results));
	child = fork();
	if (!child) {
		result = try_without_rights(fd, &buf);
		_exit(sizeof(result) != write(results[1], &result, sizeof(result)));
	}
	ASSERT_EQ(sizeof(result), read(results[0], &result, sizeof(result)));
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	EXPECT_EQ((refusal & 0xff) << 8, result);
	close(results[0]);
	close(results[1]);
	np_imported_close(&buf);
	close(fd);
}

/* As for passthrough: a write needs a node that is open for writing. */
TEST_F(buffer_io, checks_write_permission)
{
	check_rights(_metadata, &self->ctrl, O_RDONLY, -EACCES);
	check_rights(_metadata, &self->ctrl, O_RDWR, 0);
}

TEST_F(buffer_io, refuses_other_nodes_and_ring_forms)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, &self->buf, 0, NP_PAGE);
	int generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	struct iovec registered = { self->back, BYTES };
	struct io_uring_sqe *sqe;
	struct io_uring small, big;

	ASSERT_LE(0, generic);
	ASSERT_EQ(0, io_uring_queue_init(4, &big, IORING_SETUP_SQE128 | IORING_SETUP_CQE32));
	EXPECT_EQ(-ENOTTY, np_transfer_run(&big, generic, &io));
	EXPECT_EQ(0, np_transfer_run(&big, self->ctrl.fd, &io));
	io_uring_queue_exit(&big);
	close(generic);
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &registered, 1));
	np_transfer_queue(&self->ring, self->ctrl.fd, &io, 0)->uring_cmd_flags = IORING_URING_CMD_FIXED;
	EXPECT_EQ(-EINVAL, np_transfer_wait(&self->ring, NULL));
	ASSERT_EQ(0, io_uring_queue_init(4, &small, 0));
	sqe = np_get_sqe(&small);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = self->ctrl.fd;
	sqe->cmd_op = NVME_PEER_URING_CMD_IO;
	EXPECT_EQ(-EOPNOTSUPP, np_transfer_wait(&small, NULL));
	io_uring_queue_exit(&small);
}

TEST_F(buffer_io, fails_after_invalidation)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, &self->buf, 0, NP_PAGE);

	ASSERT_EQ(0, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	ASSERT_LE(0, np_dmabuf_move(self->buf.fd));
	EXPECT_EQ(-ESTALE, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(0, np_dmabuf_wait_unmapped(self->buf.fd));
	EXPECT_EQ(-ESTALE, np_transfer_run(&self->ring, self->ctrl.fd, &io));
}

/*
 * An I/O that starts after the invalidation callback was called, before the exporter's
 * wait, must be refused.
 */
TEST_F(buffer_io, no_new_io_after_invalidation_starts)
{
	struct nvme_peer_uring_io io = np_transfer(NVME_PEER_IO_READ, &self->buf, 0, NP_PAGE);
	struct nvmep_test_stall work = {
		.function = "nvmep_buf_invalidate_work",
		.any_thread = 1,
	};
	int stall = np_stall(&work);

	ASSERT_LE(0, stall);
	/* The stalled thread blocks its CPU, so the rest runs on the other one. */
	ASSERT_EQ(0, np_works_on(1) ?: np_run_on(0));
	EXPECT_EQ(1, np_dmabuf_move(self->buf.fd));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(-ESTALE, np_transfer_run(&self->ring, self->ctrl.fd, &io));
	EXPECT_EQ(1, np_dmabuf_maps(self->buf.fd, NULL));
	close(stall);
	EXPECT_EQ(0, np_works_anywhere());
	EXPECT_EQ(0, np_dmabuf_wait_unmapped(self->buf.fd));
}

/* --- in flight ------------------------------------------------------------- */

FIXTURE(in_flight)
{
	struct np_bad bad;
	struct io_uring ring;
	struct np_imported buf;
	uint8_t *bytes;
	struct nvme_peer_uring_io io;
};

#define MDTS	77		/* byte offset in Identify Controller */

static int set_up(FIXTURE_DATA(in_flight) *self, uint32_t flags)
{
	int ret = np_bad_bind(&self->bad, 1) ?: np_imported_open(&self->buf, self->bad.ctrl.fd, PAGES, 0) ?:
		  io_uring_queue_init(ENTRIES, &self->ring, flags);

	if (ret)
		return ret;
	self->io = np_transfer(NVME_PEER_IO_READ, &self->buf, NP_PAGE, NP_PAGE);
	self->io.lba = 0;
	np_pattern(self->bytes, NP_PAGE, 0, 1);
	memset(self->buf.bytes, NP_POISON, BYTES);
	return np_disk_write(self->bad.disk, self->bytes, NP_PAGE, 0);
}

FIXTURE_SETUP(in_flight)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER, MDTS, 0));
}

FIXTURE_TEARDOWN(in_flight)
{
	if (!self->bad.address[0])
		return;
	io_uring_queue_exit(&self->ring);
	EXPECT_EQ(0, np_bad_close(&self->bad));
	EXPECT_EQ(0, np_dmabuf_maps(self->buf.fd, NULL));
	np_imported_close(&self->buf);
	free(self->bytes);
}

/* Send a read that the controller has fetched and does not execute. */
static int hold(FIXTURE_DATA(in_flight) *self, int fd)
{
	int ret = np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1);

	np_transfer_queue(&self->ring, fd, &self->io, 0);
	if (!ret && io_uring_submit(&self->ring) != 1)
		ret = -EIO;
	return ret ?: np_bad_wait_word(&self->bad, BADCTRL_HELD, 1);
}

/*
 * The buffer is still mapped after a while, and all data has arrived when it is unmapped.
 */
static void check_late(struct __test_metadata *_metadata, FIXTURE_DATA(in_flight) *self)
{
	np_sleep_ms(WHILE_MS);
	EXPECT_EQ(1, np_dmabuf_maps(self->buf.fd, NULL));
	EXPECT_EQ(NP_POISON, self->buf.bytes[NP_PAGE]);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, np_transfer_wait(&self->ring, NULL));
	EXPECT_EQ(0, np_dmabuf_wait_unmapped(self->buf.fd));
	EXPECT_EQ(0, memcmp(self->buf.bytes + NP_PAGE, self->bytes, NP_PAGE));
}

TEST_F(in_flight, invalidation_waits_for_io)
{
	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	/* The reservation lock is not held during the wait. */
	EXPECT_EQ(1, np_dmabuf_move(self->buf.fd));
	EXPECT_NE(0, np_bad_get(&self->bad, BADCTRL_HELD));
	EXPECT_EQ(-ESTALE, np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io));
	check_late(_metadata, self);
}

/**
 * struct caller - a thread with a call that blocks
 * @ctrl_fd: controller
 * @handle: to release
 * @address: to unbind instead, if not NULL
 * @ret: result of the call
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

TEST_F(in_flight, release_waits_for_io)
{
	struct caller caller = { 0 };

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	caller.ctrl_fd = self->bad.ctrl.fd;
	caller.handle = self->buf.handle;
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	ASSERT_EQ(0, pthread_create(&caller.thread, NULL, call, &caller));
	np_sleep_ms(WHILE_MS);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(caller.thread, NULL));
	EXPECT_EQ(-ENOENT, np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io));
	check_late(_metadata, self);
	pthread_join(caller.thread, NULL);
	EXPECT_EQ(0, caller.ret);
}

/* The ring holds a reference to the file while the command is in flight. */
TEST_F(in_flight, close_waits_for_io)
{
	struct np_ctrl other;
	struct np_imported buf;

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_EQ(0, np_ctrl_open(&other, "bad"));
	ASSERT_EQ(0, np_imported_open(&buf, other.fd, PAGES, 0));
	memset(buf.bytes, NP_POISON, BYTES);
	self->io.handle = buf.handle;
	ASSERT_EQ(0, hold(self, other.fd));
	np_ctrl_close(&other);
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, self->buf.handle));
	np_imported_close(&self->buf);
	self->buf = buf;
	check_late(_metadata, self);
}

/* The namespaces still exist meanwhile, but no buffer I/O starts. */
TEST_F(in_flight, unbind_waits_for_io)
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
		ret = np_transfer_run(&ring, self->bad.ctrl.fd, &io);
	while (!ret && np_now_ms() < end);
	EXPECT_EQ(-ESHUTDOWN, ret);
	check_late(_metadata, self);
	pthread_join(caller.thread, NULL);
	EXPECT_EQ(0, caller.ret);
	EXPECT_EQ(-ENODEV, np_transfer_run(&ring, self->bad.ctrl.fd, &io));
	io_uring_queue_exit(&ring);
}

/* The reset cancels the command, as it does for passthrough; the buffer stays usable. */
TEST_F(in_flight, reset_cancels_io)
{
	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(-EINTR, np_transfer_wait(&self->ring, NULL));
	EXPECT_EQ(1, np_dmabuf_maps(self->buf.fd, NULL));
	memset(self->buf.bytes, NP_POISON, BYTES);
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io));
	EXPECT_EQ(0, memcmp(self->buf.bytes + NP_PAGE, self->bytes, NP_PAGE));
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, self->buf.handle));
	EXPECT_EQ(0, np_dmabuf_maps(self->buf.fd, NULL));
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

/* Each command completes once, with success or cancelled. */
TEST_F(in_flight, repeated_resets_complete_each_once)
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
			int ret = np_transfer_wait(&self->ring, NULL);

			ASSERT_TRUE(!ret || ret == -EINTR || ret == NVME_SC_HOST_PATH) {
				TH_LOG("%d", ret);
			}
		}
	} while (pthread_tryjoin_np(thread, &failed));
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(0, np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io));
	EXPECT_EQ(0, memcmp(self->buf.bytes + NP_PAGE, self->bytes, NP_PAGE));
}

#define POLL_QUEUES	"/sys/module/nvme_peer/parameters/poll_queues"

/* If an IOPOLL ring is not polled, a release does not wait as long as for a timeout. */
TEST_F(in_flight, iopoll_completes_without_poller)
{
	int64_t start;

	ASSERT_EQ(0, np_write_file(POLL_QUEUES, "1"));
	EXPECT_EQ(0, set_up(self, IORING_SETUP_SQE128 | IORING_SETUP_IOPOLL));
	EXPECT_EQ(0, np_write_file(POLL_QUEUES, "0"));
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io));
	EXPECT_EQ(0, memcmp(self->buf.bytes + NP_PAGE, self->bytes, NP_PAGE));
	ASSERT_EQ(0, hold(self, self->bad.ctrl.fd));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	start = np_now_ms();
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, self->buf.handle));
	EXPECT_GT(NP_TIMEOUT_MS, np_now_ms() - start);
	EXPECT_EQ(0, np_transfer_wait(&self->ring, NULL));
}

/* --- cases that the other controller cannot produce ------------------------ */

#define LARGE_PAGES	1024U

/* As many segments as pages, so the PRP list spans several pages. */
TEST_F(in_flight, prp_list_over_several_pages)
{
	uint32_t length = (LARGE_PAGES - 1) * NP_PAGE;
	struct nvme_peer_uring_io io;
	struct np_imported large;
	uint8_t *back;

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	ASSERT_LE(LARGE_PAGES * NP_PAGE, self->bad.ctrl.info.max_transfer);
	ASSERT_EQ(0, posix_memalign((void **)&back, NP_PAGE, length));
	ASSERT_EQ(0, np_imported_open(&large, self->bad.ctrl.fd, LARGE_PAGES, NVMEP_TEST_SCATTERED));
	np_pattern(large.bytes + NP_BLOCK, length, 0, 8);
	io = np_transfer(NVME_PEER_IO_WRITE, &large, NP_BLOCK, length);
	io.lba = 0;
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->bad.ctrl.fd, &io));
	ASSERT_EQ(0, np_disk_read(self->bad.disk, back, length, 0));
	EXPECT_EQ(0, memcmp(back, large.bytes + NP_BLOCK, length));
	memset(large.bytes, NP_POISON, LARGE_PAGES * NP_PAGE);
	io.opcode = NVME_PEER_IO_READ;
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->bad.ctrl.fd, &io));
	EXPECT_EQ(0, memcmp(back, large.bytes + NP_BLOCK, length));
	EXPECT_TRUE(np_all_poison(large.bytes, NP_BLOCK));
	EXPECT_EQ(0, np_release(self->bad.ctrl.fd, large.handle));
	np_imported_close(&large);
	free(back);
}

/* The unflushed page must be lost, which shows that badctrl drops its cache. */
TEST_F(in_flight, fua_write_is_durable)
{
	uint8_t *page = self->buf.bytes;

	ASSERT_EQ(0, set_up(self, IORING_SETUP_SQE128));
	page = self->buf.bytes;
	memset(page, 3, BYTES);
	self->io.opcode = NVME_PEER_IO_WRITE;
	self->io.lba = 2 * NP_PAGE / NP_BLOCK;
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io));
	self->io.flags = NVME_PEER_IO_FUA;
	self->io.lba = 3 * NP_PAGE / NP_BLOCK;
	ASSERT_EQ(0, np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io));
	ASSERT_EQ(0, np_bad_cut_power(&self->bad));
	ASSERT_EQ(0, np_disk_read(self->bad.disk, self->bytes, NP_PAGE, 2 * NP_PAGE));
	EXPECT_EQ(0, self->bytes[0]);
	ASSERT_EQ(0, np_disk_read(self->bad.disk, self->bytes, NP_PAGE, 3 * NP_PAGE));
	EXPECT_EQ(3, self->bytes[0]);
}

#define LBA_FORMAT_0	128		/* byte offset in Identify Namespace: metadata size */

/* Wait: the namespace may not have been scanned yet. */
static int once_it_is_served(FIXTURE_DATA(in_flight) *self)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	do {
		ret = np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io);
	} while (ret == -ENODEV && np_now_ms() < end);
	return ret;
}

/* Both a read and a write fail with @error in this format. */
static void refuses(struct __test_metadata *_metadata, FIXTURE_DATA(in_flight) *self, int error)
{
	ASSERT_EQ(0, np_bind(self->bad.address));
	ASSERT_EQ(0, np_ctrl_open(&self->bad.ctrl, "bad"));
	ASSERT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
	ASSERT_EQ(0, np_imported_open(&self->buf, self->bad.ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, IORING_SETUP_SQE128));
	self->io = np_transfer(NVME_PEER_IO_READ, &self->buf, 0, NP_PAGE);
	EXPECT_EQ(error, once_it_is_served(self));
	self->io.opcode = NVME_PEER_IO_WRITE;
	EXPECT_EQ(error, np_transfer_run(&self->ring, self->bad.ctrl.fd, &self->io));
}

/* The command has no metadata pointer, so formats with metadata are refused. */
TEST_F(in_flight, metadata_format_is_refused)
{
	ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_NAMESPACE, LBA_FORMAT_0, 8));
	refuses(_metadata, self, -EMEDIUMTYPE);
}

/* CAP.CSS: other I/O command sets are supported. */
#define CAP_HIGH	(BADCTRL_REGISTERS + 0x04)
#define CAP_OTHER_SETS	(1U << 11)

/* In another command set the opcodes of read and write have another meaning. */
TEST_F(in_flight, other_command_sets_are_refused)
{
	static const uint8_t descriptor[] = { 4, 1, 0, 0, 1, 0, 0 };
	uint32_t cap = np_bad_get(&self->bad, CAP_HIGH);
	uint32_t i;

	ASSERT_EQ(0, np_bad_set(&self->bad, CAP_HIGH, cap | CAP_OTHER_SETS));
	for (i = 0; i < sizeof(descriptor); i++)
		ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_DESCRIPTORS, i, descriptor[i]));
	refuses(_metadata, self, -EOPNOTSUPP);
}

/* --- library --------------------------------------------------------------- */

TEST(library_call_submits_buffer_io)
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
	nvmepeer_prep_buf_rw(np_get_sqe(&ring), lib, 1, NVMEPEER_OP_READ, AREA / NP_BLOCK,
			     2 * NP_PAGE / NP_BLOCK, buffer.handle, NP_PAGE);
	EXPECT_EQ(0, np_transfer_wait(&ring, NULL));
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
