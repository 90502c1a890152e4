// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVMe commands through io_uring: plain, vectored, fixed buffers, polled, on the generic
 * and the controller node.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/kernel-page-flags.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES	64U
#define BYTES	(16 * NP_PAGE)

FIXTURE(uring)
{
	struct np_ctrl ctrl;
	int generic;
	struct io_uring ring;
	uint8_t *bytes;
	uint8_t *back;
};

FIXTURE_VARIANT(uring)
{
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(uring, interrupts) { .flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 };
FIXTURE_VARIANT_ADD(uring, iopoll)
{
	.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 | IORING_SETUP_IOPOLL,
};

FIXTURE_SETUP(uring)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->generic = np_open_node(&self->ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, self->generic);
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, variant->flags));
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, BYTES));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, BYTES));
	np_pattern(self->bytes, BYTES, NP_AREA(7), 7);
	memset(self->back, 0, BYTES);
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	free(self->bytes);
	free(self->back);
	close(self->generic);
	np_ctrl_close(&self->ctrl);
}

static struct nvme_uring_cmd rw(uint8_t opcode, const void *bytes, uint32_t length)
{
	return (struct nvme_uring_cmd){
		.opcode = opcode,
		.nsid = 1,
		.addr = (uintptr_t)bytes,
		.data_len = length,
		.cdw10 = NP_AREA(7) / NP_BLOCK,
		.cdw12 = length / NP_BLOCK - 1,
	};
}

static struct io_uring_sqe *next_entry(struct io_uring *ring, size_t size)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	/* Never fails: tests do not queue more than the ring holds. */
	if (!sqe)
		abort();
	memset(sqe, 0, size);
	sqe->opcode = IORING_OP_URING_CMD;
	return sqe;
}

static void queue(struct io_uring *ring, int fd, uint32_t op, const struct nvme_uring_cmd *cmd,
		  uint32_t flags, uint16_t fixed, uint64_t data)
{
	struct io_uring_sqe *sqe = next_entry(ring, 2 * sizeof(*sqe));

	sqe->fd = fd;
	sqe->cmd_op = op;
	sqe->uring_cmd_flags = flags;
	sqe->buf_index = fixed;
	sqe->user_data = data;
	memcpy(sqe->cmd, cmd, sizeof(*cmd));
}

static int collect(struct io_uring *ring, uint64_t *result, uint64_t *data)
{
	struct io_uring_cqe *cqe;
	int ret;

	ret = io_uring_submit_and_wait(ring, 1);
	if (ret < 0)
		return ret;
	ret = io_uring_wait_cqe(ring, &cqe);
	if (ret)
		return ret;
	ret = cqe->res;
	if (result)
		*result = cqe->big_cqe[0];
	if (data)
		*data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

static int once(struct io_uring *ring, int fd, uint32_t op, const struct nvme_uring_cmd *cmd)
{
	queue(ring, fd, op, cmd, 0, 0, 0);
	return collect(ring, NULL, NULL);
}

TEST_F(uring, writes_and_reads)
{
	struct nvme_uring_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes, BYTES);

	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, BYTES);
	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, BYTES));
}

TEST_F(uring, vectored)
{
	struct iovec parts[2] = { { self->back + NP_PAGE, NP_PAGE }, { self->back, NP_PAGE } };
	struct nvme_uring_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes, 2 * NP_PAGE);

	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NVMEPEER_OP_READ, parts, 2);
	cmd.cdw12 = 2 * NP_PAGE / NP_BLOCK - 1;
	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO_VEC, &cmd));
	EXPECT_EQ(0, memcmp(self->bytes, self->back + NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes + NP_PAGE, self->back, NP_PAGE));
}

TEST_F(uring, fixed_buffers)
{
	struct iovec fixed[2] = { { self->bytes, BYTES }, { self->back, BYTES } };
	struct nvme_uring_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes + NP_PAGE, 2 * NP_PAGE);

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, fixed, 2));
	queue(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd, IORING_URING_CMD_FIXED, 0, 0);
	ASSERT_EQ(0, collect(&self->ring, NULL, NULL));
	cmd = rw(NVMEPEER_OP_READ, self->back, 2 * NP_PAGE);
	queue(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd, IORING_URING_CMD_FIXED, 1, 0);
	ASSERT_EQ(0, collect(&self->ring, NULL, NULL));
	EXPECT_EQ(0, memcmp(self->bytes + NP_PAGE, self->back, 2 * NP_PAGE));
	/* Outside the registered buffer. */
	cmd = rw(NVMEPEER_OP_READ, self->back, 2 * NP_PAGE);
	queue(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd, IORING_URING_CMD_FIXED, 0, 0);
	EXPECT_EQ(-EFAULT, collect(&self->ring, NULL, NULL));
}

static int once_fixed(struct io_uring *ring, int fd, const struct nvme_uring_cmd *cmd,
		      uint16_t fixed)
{
	queue(ring, fd, NVME_URING_CMD_IO, cmd, IORING_URING_CMD_FIXED, fixed, 0);
	return collect(ring, NULL, NULL);
}

/* One block more than the registered range has, by PRP entries and by a bio: nothing comes behind it. */
TEST_F(uring, transfer_length_fits_registered_range)
{
	struct iovec fixed = { self->back, BYTES };
	struct nvme_uring_cmd cmd;
	int odd;

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &fixed, 1));
	for (odd = 0; odd < 2; odd++) {
		cmd = rw(NVMEPEER_OP_READ, self->back + odd, NP_PAGE);
		ASSERT_EQ(0, once_fixed(&self->ring, self->generic, &cmd, 0));
		memset(self->back, 0xee, BYTES);
		cmd.cdw12++;
		EXPECT_EQ(-EINVAL, once_fixed(&self->ring, self->generic, &cmd, 0));
		EXPECT_EQ(0xee, self->back[odd + NP_PAGE]);
		EXPECT_EQ(0, memcmp(self->back + odd + NP_PAGE, self->back + odd + NP_PAGE + 1, NP_BLOCK));
	}
}

/* Did exactly the @length bytes from @offset on arrive? */
static bool arrived_alone(const uint8_t *bytes, const uint8_t *back, size_t offset, size_t length)
{
	size_t i;

	for (i = 0; i < BYTES; i++)
		if (back[i] != (i >= offset && i < offset + length ? bytes[i] : 0xee))
			return false;
	return true;
}

/*
 * Longer than a transfer, and not a multiple of a dword: the error is the same for
 * registered and other memory.
 */
TEST_F(uring, invalid_lengths_are_refused)
{
	size_t most = self->ctrl.info.max_transfer + NP_PAGE;
	const uint32_t lengths[] = { most, NP_PAGE - 2 };
	struct iovec fixed = { aligned_alloc(NP_PAGE, most), most };
	struct nvme_uring_cmd cmd;
	int plain;
	size_t i;

	ASSERT_NE(NULL, fixed.iov_base);
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &fixed, 1));
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		cmd = rw(NVMEPEER_OP_READ, fixed.iov_base, lengths[i]);
		plain = once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd);
		EXPECT_EQ(i ? 0 : -EINVAL, plain);
		EXPECT_EQ(plain, once_fixed(&self->ring, self->generic, &cmd, 0));
	}
	free(fixed.iov_base);
}

/*
 * In one page, over two and many, at dword offsets, and at offsets that have to be
 * bounced.
 */
TEST_F(uring, any_offset_in_page)
{
	static const struct {
		uint32_t offset, length;
	} places[] = {
		{ 0, NP_PAGE }, { NP_BLOCK, NP_PAGE - NP_BLOCK }, { NP_PAGE / 2, NP_PAGE },
		{ NP_PAGE - 4, NP_BLOCK }, { 4, 2 * NP_PAGE - NP_BLOCK }, { 1, NP_PAGE },
		{ NP_PAGE / 2, 4 * NP_PAGE }, { 12, 8 * NP_PAGE }, { 3, 4 * NP_PAGE },
	};
	struct iovec fixed[2] = { { self->bytes, BYTES }, { self->back, BYTES } };
	size_t i;

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, fixed, 2));
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		uint32_t offset = places[i].offset, length = places[i].length;
		struct nvme_uring_cmd out = rw(NVMEPEER_OP_WRITE, self->bytes + offset, length);
		struct nvme_uring_cmd in = rw(NVMEPEER_OP_READ, self->back + offset, length);

		memset(self->back, 0xee, BYTES);
		ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &out));
		ASSERT_EQ(0, once_fixed(&self->ring, self->generic, &in, 1));
		EXPECT_TRUE(arrived_alone(self->bytes, self->back, offset, length))
			TH_LOG("registered, offset %zu", i);
		np_pattern(self->bytes, BYTES, NP_AREA(7), 8 + i);
		memset(self->back, 0xee, BYTES);
		ASSERT_EQ(0, once_fixed(&self->ring, self->generic, &out, 0));
		ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &in));
		EXPECT_TRUE(arrived_alone(self->bytes, self->back, offset, length))
			TH_LOG("not registered, offset %zu", i);
	}
}

/* Two pages, the second of which is unmapped or read-only. */
TEST_F(uring, unwritable_memory_is_efault)
{
	uint8_t *pages = mmap(NULL, 3 * NP_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct nvme_uring_cmd cmd;
	size_t i;

	ASSERT_NE(MAP_FAILED, pages);
	memset(pages, 0xee, 2 * NP_PAGE);
	ASSERT_EQ(0, munmap(pages + 2 * NP_PAGE, NP_PAGE));
	cmd = rw(NVMEPEER_OP_READ, pages + NP_PAGE + NP_PAGE / 2, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	ASSERT_EQ(0, mprotect(pages, 2 * NP_PAGE, PROT_READ));
	cmd = rw(NVMEPEER_OP_READ, pages, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NVMEPEER_OP_READ, pages + NP_PAGE / 2, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	/* Copied once the command has completed, as the address is odd. */
	cmd = rw(NVMEPEER_OP_READ, pages + 1, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	for (i = 0; i < 2 * NP_PAGE; i++)
		ASSERT_EQ(0xee, pages[i]);
	munmap(pages, 2 * NP_PAGE);
}

/*
 * The longest transfer from the middle of a page that the driver pins without the block
 * layer.
 */
#define HELD	(128 * NP_PAGE)
#define HUGE	(2U << 20)

/* Contiguous memory where the kernel has huge pages; freed with the process. */
static uint8_t *huge_page(void)
{
	uint8_t *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);

	if (room == MAP_FAILED)
		return NULL;
	room += -(uintptr_t)room % HUGE;
	madvise(room, HUGE, MADV_HUGEPAGE);
	memset(room, 0xee, HUGE);
	return room;
}

/* The same with some pages adjacent in memory and some in reverse order. */
static uint8_t *mixed_pages(void)
{
	static const uint8_t order[] = { 1, 2, 0, 5, 4, 3, 6, 7 };
	uint8_t *from = huge_page(), *to = huge_page();
	size_t i;

	for (i = 0; from && to && i < HUGE / NP_PAGE; i++)
		if (mremap(from + (i / 8 * 8 + order[i % 8]) * NP_PAGE, NP_PAGE, NP_PAGE,
			   MREMAP_MAYMOVE | MREMAP_FIXED, to + i * NP_PAGE) == MAP_FAILED)
			return NULL;
	return from ? to : NULL;
}

/* Do a write from @from and a read into @to transfer exactly @length bytes? */
static bool moves(struct io_uring *ring, int fd, uint8_t *from, uint8_t *to, uint32_t length)
{
	struct nvme_uring_cmd out = rw(NVMEPEER_OP_WRITE, from, length);
	struct nvme_uring_cmd in = rw(NVMEPEER_OP_READ, to, length);

	np_pattern(from, length, NP_AREA(7), length);
	to[-1] = 0xee;
	to[length] = 0xee;
	return !once(ring, fd, NVME_URING_CMD_IO, &out) &&
	       !once(ring, fd, NVME_URING_CMD_IO, &in) && !memcmp(from, to, length) &&
	       to[-1] == 0xee && to[length] == 0xee;
}

TEST_F(uring, contiguous_and_scattered_pages)
{
	static const uint32_t lengths[] = { 3 * NP_PAGE, 33 * NP_PAGE - NP_BLOCK, HELD };
	static const uint32_t offsets[] = { 4, NP_PAGE, 2 * NP_PAGE - 4 };
	uint8_t *whole = huge_page(), *mixed = mixed_pages();
	size_t i;

	ASSERT_NE(NULL, whole);
	ASSERT_NE(NULL, mixed);
	for (i = 0; i < 9; i++) {
		uint32_t offset = offsets[i % 3], length = lengths[i / 3];

		EXPECT_TRUE(moves(&self->ring, self->generic, whole + offset, mixed + offset,
				  length)) TH_LOG("%u from %u", length, offset);
		EXPECT_TRUE(moves(&self->ring, self->generic, mixed + offset, whole + offset,
				  length)) TH_LOG("%u from %u", length, offset);
	}
}

/* The kernel's flags of the page at @address, 0 if they are not available. */
static uint64_t page_flags(const void *address)
{
	int map = open("/proc/self/pagemap", O_RDONLY), all = open("/proc/kpageflags", O_RDONLY);
	uint64_t entry = 0, flags = 0;

	if (pread(map, &entry, sizeof(entry), (uintptr_t)address / NP_PAGE * sizeof(entry)) < 0 ||
	    pread(all, &flags, sizeof(flags), (entry & ((1ULL << 55) - 1)) * sizeof(flags)) < 0)
		flags = 0;
	close(map);
	close(all);
	return flags;
}

static bool dirty(const uint8_t *page)
{
	return page_flags(page) & 1 << KPF_DIRTY;
}

/* A page that a read changed would lose the data if it were reclaimed clean. */
TEST_F(uring, pages_read_into_are_dirty)
{
	static const uint32_t counts[] = { 1, 2, 5, 32 };
	struct nvme_uring_cmd cmd;
	uint8_t *pages;
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		uint32_t length = counts[i] * NP_PAGE;

		pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
		ASSERT_NE(MAP_FAILED, pages);
		madvise(pages, length, MADV_NOHUGEPAGE);
		memset(pages, 0xee, length);
		ASSERT_FALSE(dirty(pages));
		cmd = rw(NVMEPEER_OP_WRITE, pages, length);
		ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
		EXPECT_FALSE(dirty(pages) || dirty(pages + length - NP_PAGE));
		cmd = rw(NVMEPEER_OP_READ, pages, length);
		ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
		EXPECT_TRUE(dirty(pages) && dirty(pages + length - NP_PAGE));
		munmap(pages, length);
	}
}

/* Pages that are pinned for I/O now; no other process does I/O on an idle guest. */
static long pages_held(void)
{
	long acquired = 0, released = 0;
	char line[128];
	FILE *file;

	/* Reading it folds the per-CPU counters. */
	np_read_file("/proc/sys/vm/stat_refresh", line, sizeof(line));
	file = fopen("/proc/vmstat", "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "nr_foll_pin_acquired %ld", &acquired);
		sscanf(line, "nr_foll_pin_released %ld", &released);
	}
	if (file)
		fclose(file);
	return acquired - released;
}

/* Also if the command is refused, or not all pages can be pinned. */
TEST_F(uring, pages_are_unpinned)
{
	uint8_t *pages = huge_page();
	struct nvme_uring_cmd cmd;
	struct iovec parts[2];
	long held;

	ASSERT_NE(NULL, pages);
	held = pages_held();
	ASSERT_EQ(0, munmap(pages + HELD, HELD));
	cmd = rw(NVMEPEER_OP_READ, pages + HELD - 8 * NP_PAGE, 8 * NP_PAGE);
	EXPECT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	EXPECT_EQ(held, pages_held());
	cmd = rw(NVMEPEER_OP_READ, pages + HELD - 8 * NP_PAGE, 9 * NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	EXPECT_EQ(held, pages_held());
	cmd = rw(NVMEPEER_OP_READ, pages, 8 * NP_PAGE);
	cmd.cdw12++;
	EXPECT_EQ(-EINVAL, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	EXPECT_EQ(held, pages_held());
	parts[0] = (struct iovec){ pages, 2 * NP_PAGE };
	parts[1] = (struct iovec){ pages + 4 * NP_PAGE, NP_PAGE };
	cmd = rw(NVMEPEER_OP_READ, parts, 2);
	cmd.cdw12 = 3 * NP_PAGE / NP_BLOCK - 1;
	EXPECT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO_VEC, &cmd));
	EXPECT_EQ(held, pages_held());
	parts[1].iov_base = pages + HELD;
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO_VEC, &cmd));
	EXPECT_EQ(held, pages_held());
}

/* A read into two @parts of equal length in registered memory. */
static int read_into_parts(struct io_uring *ring, int fd, const struct iovec *parts)
{
	struct nvme_uring_cmd cmd = rw(NVMEPEER_OP_READ, parts, 2);

	cmd.cdw12 = 2 * parts->iov_len / NP_BLOCK - 1;
	queue(ring, fd, NVME_URING_CMD_IO_VEC, &cmd, IORING_URING_CMD_FIXED, 0, 0);
	return collect(ring, NULL, NULL);
}

/* Supported since 6.16; older kernels refuse it. */
TEST_F(uring, vectored_fixed_with_gaps)
{
	struct iovec parts[2] = { { self->back + NP_BLOCK, NP_BLOCK },
				  { self->back + 3 * NP_PAGE + 1024, NP_BLOCK } };
	struct nvme_uring_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes, 2 * NP_BLOCK);
	struct iovec fixed = { self->back, BYTES };
	int ret;

	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &fixed, 1));
	ret = read_into_parts(&self->ring, self->generic, parts);
	if (ret == -EINVAL)
		SKIP(return, "kernel without vectored fixed buffers");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, memcmp(self->bytes, parts[0].iov_base, NP_BLOCK));
	EXPECT_EQ(0, memcmp(self->bytes + NP_BLOCK, parts[1].iov_base, NP_BLOCK));
}

/* Supported since 6.16; older kernels refuse it. */
TEST_F(uring, vectored_into_fixed_buffers)
{
	struct iovec parts[2] = { { self->back + NP_PAGE, NP_PAGE }, { self->back, NP_PAGE } };
	struct iovec outside[2] = { { self->back, NP_PAGE }, { self->bytes, NP_PAGE } };
	struct nvme_uring_cmd cmd = rw(NVMEPEER_OP_WRITE, self->bytes, 2 * NP_PAGE);
	struct iovec fixed = { self->back, BYTES };
	int ret;

	ASSERT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &fixed, 1));
	ret = read_into_parts(&self->ring, self->generic, parts);
	if (ret == -EINVAL)
		SKIP(return, "kernel without vectored fixed buffers");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, memcmp(self->bytes, self->back + NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes + NP_PAGE, self->back, NP_PAGE));
	EXPECT_EQ(-EFAULT, read_into_parts(&self->ring, self->generic, outside));
}

TEST_F(uring, batch_completes_each_once)
{
	/*
	 * One page for each command: two commands must not write the same memory at once.
	 */
	uint8_t *pages = aligned_alloc(NP_PAGE, ENTRIES * NP_PAGE);
	uint8_t seen[ENTRIES] = {};
	struct nvme_uring_cmd cmd;
	uint64_t data;
	uint32_t i;

	ASSERT_NE(NULL, pages);
	for (i = 0; i < ENTRIES; i++) {
		cmd = rw(NVMEPEER_OP_READ, pages + i * NP_PAGE, NP_PAGE);
		queue(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd, 0, 0, i);
	}
	ASSERT_EQ(ENTRIES, io_uring_submit(&self->ring));
	for (i = 0; i < ENTRIES; i++) {
		ASSERT_EQ(0, collect(&self->ring, NULL, &data));
		ASSERT_GT(ENTRIES, data);
		EXPECT_EQ(0, seen[data]++);
	}
	free(pages);
}

TEST_F(uring, status_and_result)
{
	struct nvme_uring_cmd cmd = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);
	uint64_t result = 0;

	cmd.cdw11 = 0x1000;
	EXPECT_EQ(NVME_SC_LBA_RANGE, NVME_STATUS_MASK &
		  once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = (struct nvme_uring_cmd){
		.opcode = NVME_ADMIN_GET_FEATURES,
		.cdw10 = NVME_FEATURE_QUEUES,
	};
	queue(&self->ring, self->ctrl.fd, NVME_URING_CMD_ADMIN, &cmd, 0, 0, 0);
	ASSERT_EQ(0, collect(&self->ring, &result, NULL));
	EXPECT_LE(self->ctrl.info.qids_total, (result & 0xffff) + 1);
}

/* A log page is read as far as it fits; a vector is filled, its length is the number of parts. */
TEST_F(uring, log_page_fits_buffer)
{
	struct iovec parts[8];
	struct nvme_uring_cmd cmd = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.nsid = NVME_ALL_NAMESPACES,
		.addr = (uintptr_t)parts,
		.data_len = 8,
		.cdw10 = 127U << 16 | NVME_LOG_HEALTH,
	};
	uint32_t i;

	memset(self->back, 0xee, NP_PAGE);
	for (i = 0; i < 8; i++)
		parts[i] = (struct iovec){ self->back + 64 * i, 64 };
	EXPECT_EQ(0, once(&self->ring, self->ctrl.fd, NVME_URING_CMD_ADMIN_VEC, &cmd));
	/* The last bytes of the page are reserved. */
	EXPECT_EQ(0, self->back[511]);
	EXPECT_EQ(0xee, self->back[512]);
	memset(self->back, 0xee, NP_PAGE);
	cmd.addr = (uintptr_t)self->back;
	cmd.data_len = 256;
	EXPECT_EQ(0, once(&self->ring, self->ctrl.fd, NVME_URING_CMD_ADMIN, &cmd));
	EXPECT_EQ(0, self->back[255]);
	EXPECT_EQ(0xee, self->back[256]);
}

/* An address without a length and a length without an address are no data, registered or not. */
TEST_F(uring, address_or_length_alone)
{
	struct iovec fixed = { self->back, BYTES };
	struct nvme_uring_cmd cmd = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	int i;

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &fixed, 1));
	for (i = 0; i < 2; i++) {
		cmd.addr = i ? (uintptr_t)self->back + NP_BLOCK : 0;
		cmd.data_len = i ? 0 : NP_BLOCK;
		EXPECT_EQ(0, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
		EXPECT_EQ(0, once_fixed(&self->ring, self->generic, &cmd, 0));
	}
}

TEST_F(uring, invalid_commands)
{
	struct nvme_uring_cmd cmd = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);

	EXPECT_EQ(-ENOTTY, once(&self->ring, self->generic, NVME_URING_CMD_ADMIN, &cmd));
	EXPECT_EQ(-ENOTTY, once(&self->ring, self->ctrl.fd, NVME_URING_CMD_IO, &cmd));
	cmd.flags = 1;
	EXPECT_EQ(-EINVAL, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NVMEPEER_OP_READ, self->back, NP_PAGE);
	cmd.nsid = 2;
	EXPECT_EQ(-EINVAL, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
	cmd = rw(NVMEPEER_OP_READ, (void *)8, NP_PAGE);
	EXPECT_EQ(-EFAULT, once(&self->ring, self->generic, NVME_URING_CMD_IO, &cmd));
}

/* As xNVMe does: an SQPOLL thread submits, and the node is a registered file. */
TEST(sqpoll_submission)
{
	struct io_uring_params parameters = {
		.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 | IORING_SETUP_SQPOLL,
		.sq_thread_idle = 100,
	};
	uint8_t *bytes = aligned_alloc(NP_PAGE, BYTES), *back = aligned_alloc(NP_PAGE, BYTES);
	struct nvme_uring_cmd commands[2] = { rw(NVMEPEER_OP_WRITE, bytes, BYTES),
					      rw(NVMEPEER_OP_READ, back, BYTES) };
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	struct np_ctrl ctrl;
	int generic;
	size_t i;

	ASSERT_NE(NULL, bytes);
	ASSERT_NE(NULL, back);
	np_pattern(bytes, BYTES, NP_AREA(7), 33);
	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	generic = np_open_node(&ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, generic);
	ASSERT_EQ(0, io_uring_queue_init_params(4, &ring, &parameters));
	ASSERT_EQ(0, io_uring_register_files(&ring, &generic, 1));
	for (i = 0; i < 2; i++) {
		sqe = next_entry(&ring, 2 * sizeof(*sqe));
		sqe->cmd_op = NVME_URING_CMD_IO;
		sqe->flags = IOSQE_FIXED_FILE;
		memcpy(sqe->cmd, &commands[i], sizeof(commands[i]));
		ASSERT_EQ(0, collect(&ring, NULL, NULL));
	}
	EXPECT_EQ(0, memcmp(bytes, back, BYTES));
	io_uring_queue_exit(&ring);
	close(generic);
	np_ctrl_close(&ctrl);
	free(bytes);
	free(back);
}

/* NVMe commands need 128-byte SQEs, and their results 32-byte CQEs. */
TEST(small_entries_are_refused)
{
	static const uint32_t flags[] = { 0, IORING_SETUP_SQE128, IORING_SETUP_CQE32 };
	struct nvme_uring_cmd cmd = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	struct np_ctrl ctrl;
	int generic;
	size_t i;

	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	generic = np_open_node(&ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, generic);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		ASSERT_EQ(0, io_uring_queue_init(4, &ring, flags[i]));
		sqe = next_entry(&ring, sizeof(*sqe));
		sqe->fd = generic;
		sqe->cmd_op = NVME_URING_CMD_IO;
		memcpy(sqe->cmd, &cmd, 16);
		ASSERT_EQ(1, io_uring_submit(&ring));
		ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
		EXPECT_EQ(-EOPNOTSUPP, cqe->res) TH_LOG("flags %#x", flags[i]);
		io_uring_queue_exit(&ring);
	}
	close(generic);
	np_ctrl_close(&ctrl);
}

TEST_HARNESS_MAIN
