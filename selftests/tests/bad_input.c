// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wrong calls of the peer ABI: each gets its errno, changes nothing, writes
 * nothing back and leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES	64U
#define PAGES	8U

FIXTURE(bad)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct nvme_peer_qp_create qp;
	struct nvme_peer_buf_import buffer;
	int dmabuf;
	char with_objects[NP_OBJECTS];
};

/* A queue pair and a buffer, so that a call can be wrong in one respect only. */
FIXTURE_SETUP(bad)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &self->qp));
	self->dmabuf = np_test_export(PAGES, 0);
	ASSERT_LE(0, self->dmabuf);
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->dmabuf, 0, &self->buffer));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->with_objects));
}

FIXTURE_TEARDOWN(bad)
{
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->with_objects, 2000));
	if (self->qp.qp_fd >= 0)
		close(self->qp.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->buffer.handle));
	close(self->dmabuf);
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, 5000));
	np_ctrl_close(&self->ctrl);
}

/* Longer than any structure of the ABI, to be followed by an unknown tail. */
#define LONG_SIZE	256U

/**
 * struct call - an ioctl with a structure that is right as it stands
 * @number: ioctl
 * @size: of the structure
 * @on_qp: it is one of the queue pair file's
 * @bytes: the structure
 */
struct call {
	unsigned long number;
	uint32_t size;
	bool on_qp;
	union {
		uint32_t size_and_flags[2];
		struct nvme_peer_info info;
		struct nvme_peer_route route;
		struct nvme_peer_buf_import import;
		struct nvme_peer_buf_release release;
		struct nvme_peer_buf_table table;
		struct nvme_peer_qp_create create;
		struct nvme_peer_qp_export export;
		struct nvme_peer_qp_info qp_info;
		uint8_t bytes[LONG_SIZE];
	};
};

#define CALLS	8

static void fill_calls(struct call calls[CALLS], const FIXTURE_DATA(bad) *self)
{
	static uint64_t addresses[PAGES];
	int i;

	memset(calls, 0, CALLS * sizeof(*calls));
	calls[0] = (struct call){ NVME_PEER_INFO, sizeof(struct nvme_peer_info), .info = {} };
	calls[1] = (struct call){ NVME_PEER_ROUTE, sizeof(struct nvme_peer_route),
				  .route = { .dmabuf_fd = self->dmabuf } };
	calls[2] = (struct call){ NVME_PEER_BUF_IMPORT, sizeof(struct nvme_peer_buf_import),
				  .import = { .dmabuf_fd = self->dmabuf } };
	calls[3] = (struct call){ NVME_PEER_BUF_RELEASE, sizeof(struct nvme_peer_buf_release),
				  .release = { .handle = self->buffer.handle } };
	calls[4] = (struct call){ NVME_PEER_BUF_TABLE, sizeof(struct nvme_peer_buf_table),
				  .table = { .handle = self->buffer.handle, .count = PAGES,
					     .addresses = (uintptr_t)addresses } };
	calls[5] = (struct call){ NVME_PEER_QP_CREATE, sizeof(struct nvme_peer_qp_create),
				  .create = { .sq_entries = ENTRIES, .cq_entries = ENTRIES } };
	calls[6] = (struct call){ NVME_PEER_QP_EXPORT, sizeof(struct nvme_peer_qp_export),
				  .on_qp = true, .export = { .what = NVME_PEER_EXPORT_SQ } };
	calls[7] = (struct call){ NVME_PEER_QP_INFO, sizeof(struct nvme_peer_qp_info),
				  .on_qp = true, .qp_info = {} };
	for (i = 0; i < CALLS; i++)
		calls[i].size_and_flags[0] = calls[i].size;
}

/* The call must fail with @error and leave the caller's structure as it was. */
static void expect(struct __test_metadata *_metadata, const FIXTURE_DATA(bad) *self,
		   struct call *call, int error)
{
	struct call before = *call;
	int fd = call->on_qp ? self->qp.qp_fd : self->ctrl.fd;

	EXPECT_EQ(error, np_ioctl(fd, call->number, call->bytes)) {
		TH_LOG("ioctl 0x%lx", call->number);
	}
	EXPECT_EQ(0, memcmp(before.bytes, call->bytes, LONG_SIZE));
}

TEST_F(bad, unknown_ioctl)
{
	uint8_t bytes[LONG_SIZE] = { 64 };

	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, _IO('N', 0xff), bytes));
	EXPECT_EQ(-ENOTTY, np_ioctl(self->qp.qp_fd, _IO('N', 0xff), bytes));
	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, _IO('X', 0xa0), bytes));
	/* Each kind of file has its own calls. */
	EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, NVME_PEER_QP_INFO, bytes));
	EXPECT_EQ(-ENOTTY, np_ioctl(self->qp.qp_fd, NVME_PEER_INFO, bytes));
}

TEST_F(bad, short_structure)
{
	struct call calls[CALLS];
	int i;

	fill_calls(calls, self);
	for (i = 0; i < CALLS; i++) {
		calls[i].size_and_flags[0] = calls[i].size - 4;
		expect(_metadata, self, &calls[i], -EINVAL);
		calls[i].size_and_flags[0] = 0;
		expect(_metadata, self, &calls[i], -EINVAL);
	}
}

TEST_F(bad, long_structure)
{
	struct call calls[CALLS];
	int i;

	fill_calls(calls, self);
	for (i = 0; i < CALLS; i++) {
		calls[i].size_and_flags[0] = LONG_SIZE;
		calls[i].bytes[LONG_SIZE - 1] = 1;
		expect(_metadata, self, &calls[i], -E2BIG);
		calls[i].bytes[LONG_SIZE - 1] = 0;
		calls[i].size_and_flags[0] = 1U << 30;
		expect(_metadata, self, &calls[i], -E2BIG);
	}
}

/* A program that was compiled with a newer header, and uses nothing of it. */
TEST_F(bad, zero_tail_is_no_mistake)
{
	struct call calls[CALLS];

	fill_calls(calls, self);
	calls[0].size_and_flags[0] = LONG_SIZE;
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, calls[0].number, calls[0].bytes));
	EXPECT_EQ(LONG_SIZE, calls[0].info.size);
	EXPECT_LT(0, calls[0].info.max_entries);
	calls[7].size_and_flags[0] = LONG_SIZE;
	EXPECT_EQ(0, np_ioctl(self->qp.qp_fd, calls[7].number, calls[7].bytes));
	EXPECT_EQ(self->qp.qid, calls[7].qp_info.qid);
}

TEST_F(bad, unknown_flags)
{
	struct call calls[CALLS];
	int i;

	fill_calls(calls, self);
	for (i = 0; i < CALLS; i++) {
		calls[i].size_and_flags[1] = 1U << 31;
		expect(_metadata, self, &calls[i], -EINVAL);
	}
	/* A flag of one kind of export, with another. */
	calls[6].size_and_flags[1] = NVME_PEER_EXPORT_ALLOW_STATIC;
	expect(_metadata, self, &calls[6], -EINVAL);
}

TEST_F(bad, memory_that_is_not_there)
{
	void *nowhere = mmap(NULL, NP_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct call calls[CALLS];
	int i;

	fill_calls(calls, self);
	for (i = 0; i < CALLS; i++) {
		int fd = calls[i].on_qp ? self->qp.qp_fd : self->ctrl.fd;
		void *read_only = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		EXPECT_EQ(-EFAULT, np_ioctl(fd, calls[i].number, NULL));
		EXPECT_EQ(-EFAULT, np_ioctl(fd, calls[i].number, nowhere));
		if (calls[i].number == NVME_PEER_BUF_RELEASE)
			continue;
		/* It can be read, but not answered: what was made must go again. */
		memcpy(read_only, calls[i].bytes, LONG_SIZE);
		mprotect(read_only, NP_PAGE, PROT_READ);
		EXPECT_EQ(-EFAULT, np_ioctl(fd, calls[i].number, read_only)) {
			TH_LOG("ioctl 0x%lx into read-only memory", calls[i].number);
		}
		munmap(read_only, NP_PAGE);
	}
	calls[4].table.addresses = (uintptr_t)nowhere;
	expect(_metadata, self, &calls[4], -EFAULT);
}

TEST_F(bad, foreign_descriptors)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct call calls[CALLS];
	int closed = dup(file);

	close(closed);
	fill_calls(calls, self);
	calls[2].import.dmabuf_fd = closed;
	expect(_metadata, self, &calls[2], -EBADF);
	calls[2].import.dmabuf_fd = -1;
	expect(_metadata, self, &calls[2], -EBADF);
	calls[2].import.dmabuf_fd = file;
	expect(_metadata, self, &calls[2], -EINVAL);
	calls[2].import.dmabuf_fd = self->qp.qp_fd;
	expect(_metadata, self, &calls[2], -EINVAL);
	calls[2].import.dmabuf_fd = self->ctrl.fd;
	expect(_metadata, self, &calls[2], -EINVAL);
	close(file);
}

/* Handles belong to one open of the node. */
TEST_F(bad, foreign_handles)
{
	struct nvme_peer_qp_create create;
	struct call calls[CALLS];
	struct np_ctrl second;

	fill_calls(calls, self);
	calls[3].release.handle = self->buffer.handle + 1;
	expect(_metadata, self, &calls[3], -ENOENT);
	calls[3].release.handle = 0;
	expect(_metadata, self, &calls[3], -ENOENT);
	calls[4].table.handle = self->buffer.handle + 1;
	expect(_metadata, self, &calls[4], -ENOENT);
	calls[5].create.sq_handle = self->buffer.handle + 1;
	expect(_metadata, self, &calls[5], -ENOENT);
	calls[5].create.sq_handle = 0;
	calls[5].create.cq_handle = self->buffer.handle + 1;
	expect(_metadata, self, &calls[5], -ENOENT);

	ASSERT_EQ(0, np_ctrl_open(&second, "np0"));
	EXPECT_EQ(-ENOENT, np_release(second.fd, self->buffer.handle));
	create = calls[5].create;
	create.cq_handle = self->buffer.handle;
	EXPECT_EQ(-ENOENT, np_ioctl(second.fd, NVME_PEER_QP_CREATE, &create));
	np_ctrl_close(&second);
}

TEST_F(bad, table_outside_the_buffer)
{
	struct call calls[CALLS];

	fill_calls(calls, self);
	calls[4].table.offset = PAGES * NP_PAGE;
	expect(_metadata, self, &calls[4], -ERANGE);
	calls[4].table.offset = UINT64_MAX & ~(uint64_t)(NP_PAGE - 1);
	expect(_metadata, self, &calls[4], -ERANGE);
	calls[4].table.offset = 512;
	expect(_metadata, self, &calls[4], -EINVAL);
	/* More than there are: told how many. */
	calls[4].table.offset = (PAGES - 2) * NP_PAGE;
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_TABLE, calls[4].bytes));
	EXPECT_EQ(2, calls[4].table.count);
}

TEST_F(bad, number_of_entries)
{
	uint32_t most = self->ctrl.info.max_entries;
	const struct { uint32_t sq, cq; } wrong[] = {
		{ 0, ENTRIES }, { 1, ENTRIES }, { ENTRIES, 0 }, { ENTRIES, 1 },
		{ ENTRIES, ENTRIES - 1 }, { most + 1, most + 1 }, { ENTRIES, most + 1 },
		{ 0x10000 + ENTRIES, 0x10000 + ENTRIES }, { UINT32_MAX, UINT32_MAX },
	};
	struct call calls[CALLS];
	size_t i;

	fill_calls(calls, self);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		calls[5].create.sq_entries = wrong[i].sq;
		calls[5].create.cq_entries = wrong[i].cq;
		expect(_metadata, self, &calls[5], -EINVAL);
	}
	/* The limits themselves are right. */
	calls[5].create.sq_entries = 2;
	calls[5].create.cq_entries = most;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, calls[5].bytes));
	close(calls[5].create.qp_fd);
}

TEST_F(bad, mode_priority_and_reserved)
{
	struct call calls[CALLS];

	fill_calls(calls, self);
	calls[5].create.mode = 1;
	expect(_metadata, self, &calls[5], -EINVAL);
	calls[5].create.mode = 0;
	calls[5].create.priority = 4;
	expect(_metadata, self, &calls[5], -EINVAL);
	calls[5].create.priority = 0;
	calls[5].create.reserved = 1;
	expect(_metadata, self, &calls[5], -EINVAL);
	calls[5].create.reserved = 0;
	/* An offset without a buffer. */
	calls[5].create.sq_offset = NP_PAGE;
	expect(_metadata, self, &calls[5], -EINVAL);
	calls[3].release.reserved = 1;
	expect(_metadata, self, &calls[3], -EINVAL);
	calls[6].export.what = 4;
	expect(_metadata, self, &calls[6], -EINVAL);
}

TEST_F(bad, ring_memory)
{
	uint32_t handle = self->buffer.handle;
	struct call calls[CALLS];
	struct nvme_peer_qp_create *create = &calls[5].create;

	fill_calls(calls, self);
	create->sq_handle = handle;

	/* Misaligned. */
	create->sq_offset = 512;
	expect(_metadata, self, &calls[5], -EINVAL);

	/* Too small: from an offset, from the start, behind the end, around the end. */
	create->sq_offset = (PAGES - 1) * NP_PAGE;
	create->sq_entries = 2 * ENTRIES;
	create->cq_entries = 2 * ENTRIES;
	expect(_metadata, self, &calls[5], -EMSGSIZE);
	create->sq_offset = 0;
	create->sq_entries = PAGES * NP_PAGE / 64 * 2;
	create->cq_entries = create->sq_entries;
	if (create->sq_entries <= self->ctrl.info.max_entries)
		expect(_metadata, self, &calls[5], -EMSGSIZE);
	create->sq_entries = ENTRIES;
	create->cq_entries = ENTRIES;
	create->sq_offset = PAGES * NP_PAGE;
	expect(_metadata, self, &calls[5], -EMSGSIZE);
	create->sq_offset = UINT64_MAX & ~(uint64_t)(NP_PAGE - 1);
	expect(_metadata, self, &calls[5], -EMSGSIZE);

	/* One ring on the other. */
	create->sq_offset = NP_PAGE;
	create->cq_handle = handle;
	create->cq_offset = NP_PAGE;
	expect(_metadata, self, &calls[5], -EBADSLT);
}

TEST_F(bad, ring_memory_of_another_queue_pair)
{
	struct nvme_peer_qp_create first;
	struct call calls[CALLS];

	fill_calls(calls, self);
	calls[5].create.cq_handle = self->buffer.handle;
	calls[5].create.cq_offset = NP_PAGE;
	first = calls[5].create;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &first));
	expect(_metadata, self, &calls[5], -EBADSLT);
	calls[5].create.cq_handle = 0;
	calls[5].create.cq_offset = 0;
	calls[5].create.sq_handle = self->buffer.handle;
	calls[5].create.sq_offset = NP_PAGE;
	expect(_metadata, self, &calls[5], -EBADSLT);
	/* Nor can it be released while the ring lies in it. */
	expect(_metadata, self, &calls[3], -EBUSY);
	close(first.qp_fd);
}

/* A ring that a controller wants in one piece, in memory that is in pieces. */
TEST_F(bad, ring_memory_in_several_segments)
{
	struct nvme_peer_buf_import scattered;
	int dmabuf = np_test_export(PAGES, NVMEP_TEST_SCATTERED);
	struct nvme_peer_qp_create create;
	struct call calls[CALLS];

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf, 0, &scattered));
	EXPECT_EQ(PAGES, scattered.segments);
	fill_calls(calls, self);
	calls[5].create.sq_handle = scattered.handle;
	calls[5].create.sq_entries = 2 * ENTRIES;
	calls[5].create.cq_entries = 2 * ENTRIES;
	if (self->ctrl.info.contiguous_rings)
		expect(_metadata, self, &calls[5], -ENOTUNIQ);
	/* A ring that fits into one of the pieces is fine. */
	create = calls[5].create;
	create.sq_entries = ENTRIES;
	create.cq_entries = ENTRIES;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, scattered.handle));
	close(dmabuf);
}

TEST_F(bad, no_queue_identifier_is_free)
{
	struct nvme_peer_qp_create *made;
	struct nvme_peer_info info;
	struct call calls[CALLS];
	uint32_t i, count;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	count = info.qids_peer_free;
	made = calloc(count, sizeof(*made));
	ASSERT_NE(NULL, made);
	/* Unless told otherwise at most half go to peers, and the CPU keeps its own. */
	EXPECT_GE(info.qids_total / 2, info.qids_peer_max);
	EXPECT_GE(info.qids_total, info.qids_peer_max + info.qids_cpu);
	EXPECT_LE(1, info.qids_cpu);
	for (i = 0; i < count; i++)
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, 2, &made[i]));
	fill_calls(calls, self);
	expect(_metadata, self, &calls[5], -ENOSPC);
	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(0, info.qids_peer_free);
	while (i)
		close(made[--i].qp_fd);
	free(made);
}

TEST_F(bad, exports_of_rings_that_are_somebody_elses)
{
	struct nvme_peer_qp_export out;
	struct call calls[CALLS];

	fill_calls(calls, self);
	calls[5].create.sq_handle = self->buffer.handle;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, calls[5].bytes));
	EXPECT_EQ(-ENODATA, np_export_fd(calls[5].create.qp_fd, NVME_PEER_EXPORT_SQ, 0, &out));
	EXPECT_EQ(0, np_export_fd(calls[5].create.qp_fd, NVME_PEER_EXPORT_CQ, 0, &out));
	close(out.fd);
	close(calls[5].create.qp_fd);
}

/* A descriptor that does not fit into the table of the process. */
TEST_F(bad, no_descriptor_is_free)
{
	struct call calls[CALLS];
	int fds[1024], count = 0, i;

	fill_calls(calls, self);
	while (count < 1024 && (fds[count] = dup(self->dmabuf)) >= 0)
		count++;
	ASSERT_LT(count, 1024);
	expect(_metadata, self, &calls[5], -EMFILE);
	expect(_metadata, self, &calls[6], -EMFILE);
	for (i = 0; i < count; i++)
		close(fds[i]);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};

	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

/* In a process of its own; its exit status names the call that did not fail. */
static int try_without_capabilities(const FIXTURE_DATA(bad) *self)
{
	struct nvme_peer_qp_info info;
	struct call calls[CALLS];

	fill_calls(calls, self);
	if (drop_capabilities())
		return 1;
	if (np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, calls[5].bytes) != -EPERM)
		return 2;
	if (np_ioctl(self->ctrl.fd, NVME_PEER_BUF_TABLE, calls[4].bytes) != -EPERM)
		return 3;
	/* What gives no power over memory needs none. */
	if (np_ioctl(self->ctrl.fd, NVME_PEER_INFO, calls[0].bytes))
		return 4;
	return np_qp_info(self->qp.qp_fd, &info) ? 5 : 0;
}

TEST_F(bad, no_capability)
{
	pid_t child = fork();
	int status;

	ASSERT_LE(0, child);
	if (!child)
		_exit(try_without_capabilities(self));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/* The table's addresses are of the controller's own domain, and no other. */
TEST_F(bad, table_shows_physical_addresses_only_where_they_are_dma_addresses)
{
	struct call calls[CALLS];
	uint64_t entry = 0, physical, *addresses;
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint8_t *bytes = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, self->dmabuf, 0);

	ASSERT_LE(0, pagemap);
	ASSERT_NE(MAP_FAILED, bytes);
	bytes[0] = 1;
	ASSERT_EQ(sizeof(entry), pread(pagemap, &entry, sizeof(entry),
				       (off_t)((uintptr_t)bytes / NP_PAGE * sizeof(entry))));
	physical = (entry & ((1ULL << 55) - 1)) * NP_PAGE;
	ASSERT_NE(0, physical);
	fill_calls(calls, self);
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_TABLE, calls[4].bytes));
	addresses = (uint64_t *)(uintptr_t)calls[4].table.addresses;
	EXPECT_EQ(self->ctrl.info.domain == NVME_PEER_DOMAIN_PHYSICAL, addresses[0] == physical);
	munmap(bytes, NP_PAGE);
	close(pagemap);
}

TEST_HARNESS_MAIN
