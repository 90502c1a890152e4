// SPDX-License-Identifier: GPL-2.0-only
/*
 * Invalid calls of the peer ABI: each returns its own errno, changes nothing and leaves
 * nothing behind.
 *
 * iommu: on off
 * timeout: 300
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define MAX_EXPORTS	64

#define ENTRIES		64U
#define RING_PAGES	8U
#define NO_HANDLE	0x7fffffffU
#define UNKNOWN_FLAG	(1U << 31)

/* Common start of every structure of the ABI. */
struct header {
	uint32_t size;
	uint32_t flags;
};

/* An ioctl of either file, with a valid structure. */
struct call {
	const char *name;
	unsigned long number;
	bool on_qp;
	size_t size;
	union {
		struct header header;
		struct nvme_peer_info info;
		struct nvme_peer_route route;
		struct nvme_peer_buf_import buf_import;
		struct nvme_peer_buf_release buf_release;
		struct nvme_peer_buf_table buf_table;
		struct nvme_peer_buf_alloc buf_alloc;
		struct nvme_peer_qp_create qp_create;
		struct nvme_peer_qp_export qp_export;
		struct nvme_peer_qp_info qp_info;
		struct nvme_peer_qp_rearm qp_rearm;
		struct nvme_peer_window_add window_add;
		struct nvme_peer_window_remove window_remove;
		struct nvme_peer_window_info window_info;
		struct nvme_peer_buf_add buf_add;
		struct nvme_peer_buf_remove buf_remove;
		struct nvme_peer_qp_kick qp_kick;
		struct nvme_peer_qp_limits qp_limits;
		struct nvme_peer_qp_stats qp_stats;
		struct nvme_peer_qp_seal qp_seal;
		struct nvme_peer_extents extents;
	};
};

#define CALL(number_, on_qp_, member, ...)				\
	{ .name = #number_, .number = number_, .on_qp = on_qp_,		\
	  .size = sizeof(((struct call *)0)->member), .member = { __VA_ARGS__ } }

static const struct call calls[] = {
	CALL(NVME_PEER_INFO, false, info, 0),
	CALL(NVME_PEER_ROUTE, false, route, .flags = NVME_PEER_ROUTE_BY_ADDRESS),
	CALL(NVME_PEER_BUF_IMPORT, false, buf_import, .dmabuf_fd = -1),
	CALL(NVME_PEER_BUF_RELEASE, false, buf_release, .handle = NO_HANDLE),
	CALL(NVME_PEER_BUF_TABLE, false, buf_table, .handle = NO_HANDLE),
	CALL(NVME_PEER_BUF_ALLOC, false, buf_alloc, .length = RING_PAGES * NP_PAGE),
	CALL(NVME_PEER_EXTENTS, false, extents, .fd = -1),
	CALL(NVME_PEER_QP_CREATE, false, qp_create, .sq_entries = ENTRIES, .cq_entries = ENTRIES),
	CALL(NVME_PEER_QP_EXPORT, true, qp_export, .what = NVME_PEER_EXPORT_SQ),
	CALL(NVME_PEER_QP_INFO, true, qp_info, 0),
	CALL(NVME_PEER_QP_REARM, true, qp_rearm, 0),
	CALL(NVME_PEER_WINDOW_ADD, true, window_add, .fd = -1),
	CALL(NVME_PEER_WINDOW_REMOVE, true, window_remove, 0),
	CALL(NVME_PEER_WINDOW_INFO, true, window_info, 0),
	CALL(NVME_PEER_BUF_ADD, true, buf_add, .dmabuf_fd = -1),
	CALL(NVME_PEER_BUF_REMOVE, true, buf_remove, 0),
	CALL(NVME_PEER_QP_KICK, true, qp_kick, 0),
	CALL(NVME_PEER_QP_LIMITS, true, qp_limits, 0),
	CALL(NVME_PEER_QP_STATS, true, qp_stats, 0),
	CALL(NVME_PEER_QP_SEAL, true, qp_seal, 0),
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

FIXTURE(bad_input)
{
	struct np_ctrl ctrl;
	struct nvme_peer_qp_create qp;
	struct nvme_peer_buf_import rings;
	int dmabuf;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(bad_input)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &self->qp));
	self->dmabuf = np_test_export(RING_PAGES, 0);
	ASSERT_LE(0, self->dmabuf);
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->dmabuf, 0, &self->rings));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

/* The earlier queue pair still exists, and no other object. */
FIXTURE_TEARDOWN(bad_input)
{
	struct nvme_peer_qp_info info;

	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_info(self->qp.qp_fd, &info));
	EXPECT_EQ(NVME_PEER_QP_LIVE, info.state);
	close(self->qp.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->rings.handle));
	close(self->dmabuf);
	np_ctrl_close(&self->ctrl);
}

/* The size of the first version of a structure. */
static size_t least_size(const struct call *call)
{
	return call->number == NVME_PEER_QP_CREATE ? offsetof(struct nvme_peer_qp_create, depth) : call->size;
}

static int fd_for(const struct call *call, int ctrl_fd, int qp_fd)
{
	return call->on_qp ? qp_fd : ctrl_fd;
}

TEST_F(bad_input, features_are_reported)
{
	EXPECT_EQ(NVME_PEER_FEATURE_DIRECT | NVME_PEER_FEATURE_BUF_RINGS | NVME_PEER_FEATURE_BUF_IO |
		  NVME_PEER_FEATURE_BUF_IO_VEC | NVME_PEER_FEATURE_BUF_ALLOC | NVME_PEER_FEATURE_RELAY |
		  NVME_PEER_FEATURE_MEDIATED | NVME_PEER_FEATURE_KICK | NVME_PEER_FEATURE_WINDOW |
		  NVME_PEER_FEATURE_EXTENTS, self->ctrl.info.features);
}

TEST_F(bad_input, unknown_ioctls)
{
	unsigned int number;
	struct call call;
	size_t i;

	for (number = 0; number <= 0xff; number++) {
		bool known_ctrl = false, known_qp = false;

		for (i = 0; i < CALLS; i++) {
			known_ctrl |= !calls[i].on_qp && _IOC_NR(calls[i].number) == number;
			known_qp |= calls[i].on_qp && _IOC_NR(calls[i].number) == number;
		}
		if (!known_ctrl)
			EXPECT_EQ(-ENOTTY, np_ioctl(self->ctrl.fd, _IO(NVME_PEER_TYPE, number), &call));
		if (!known_qp)
			EXPECT_EQ(-ENOTTY, np_ioctl(self->qp.qp_fd, _IO(NVME_PEER_TYPE, number), &call));
	}
	/* The right number with another direction or size is another ioctl. */
	EXPECT_EQ(-ENOTTY, np_ioctl(self->qp.qp_fd, _IOR(NVME_PEER_TYPE, NVME_PEER_CMD_QP_INFO, int),
				    &call));
	EXPECT_EQ(-ENOTTY, np_ioctl(self->qp.qp_fd, _IO('N', NVME_PEER_CMD_QP_INFO), &call));
	/* The type of the passthrough ioctls has no peer ioctls. */
	for (i = 0; i < CALLS; i++) {
		number = _IOC_NR(calls[i].number);
		EXPECT_NE('N', _IOC_TYPE(calls[i].number));
		EXPECT_EQ(-ENOTTY, np_ioctl(fd_for(&calls[i], self->ctrl.fd, self->qp.qp_fd),
					    _IO('N', 0xa0 + number), &call));
	}
}

TEST_F(bad_input, wrong_sizes)
{
	uint8_t bytes[8192] = {};
	struct call call;
	size_t i, size;
	int fd;

	for (i = 0; i < CALLS; i++) {
		call = calls[i];
		fd = fd_for(&call, self->ctrl.fd, self->qp.qp_fd);
		for (size = 0; size < least_size(&call); size++) {
			call.header.size = (uint32_t)size;
			EXPECT_EQ(-EINVAL, np_ioctl(fd, call.number, &call.header)) {
				TH_LOG("%s of %zu bytes", call.name, size);
			}
		}
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes, &call.header, call.size);
		bytes[call.size] = 1;
		((struct header *)bytes)->size = (uint32_t)call.size + 1;
		EXPECT_EQ(-E2BIG, np_ioctl(fd, call.number, bytes)) {
			TH_LOG("%s with an unknown tail", call.name);
		}
		bytes[call.size] = 0;
		((struct header *)bytes)->size = NP_PAGE + 1;
		EXPECT_EQ(-E2BIG, np_ioctl(fd, call.number, bytes)) {
			TH_LOG("%s of more than a page", call.name);
		}
	}
}

/* A newer program on this kernel: its unknown fields are zero. */
TEST_F(bad_input, zero_tail_is_accepted)
{
	struct {
		struct nvme_peer_info info;
		uint64_t future[8];
	} longer = { .info.size = sizeof(longer) };

	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_INFO, &longer));
	EXPECT_EQ(sizeof(longer), longer.info.size);
	EXPECT_EQ(self->ctrl.info.cap, longer.info.cap);
	longer.future[7] = 1;
	longer.info.version = 0;
	EXPECT_EQ(-E2BIG, np_ioctl(self->ctrl.fd, NVME_PEER_INFO, &longer));
	EXPECT_EQ(0, longer.info.version);
}

TEST_F(bad_input, structure_may_fill_a_page)
{
	union {
		struct nvme_peer_info info;
		uint8_t page[NP_PAGE];
	} longest = { .page = { 0 } };

	longest.info.size = sizeof(longest);
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_INFO, &longest));
	EXPECT_EQ(self->ctrl.info.cap, longest.info.cap);
}

/* An older program: what it does not have is 0. */
TEST_F(bad_input, first_version_is_accepted)
{
	struct nvme_peer_qp_create create = {
		.size = offsetof(struct nvme_peer_qp_create, depth), .sq_entries = ENTRIES,
		.cq_entries = ENTRIES, .depth = 0xffffffff,
	};

	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	EXPECT_EQ(0xffffffff, create.depth);
	close(create.qp_fd);
}

TEST_F(bad_input, unknown_flags)
{
	struct call call;
	size_t i;

	for (i = 0; i < CALLS; i++) {
		struct call before;

		call = calls[i];
		call.header.size = (uint32_t)call.size;
		call.header.flags |= UNKNOWN_FLAG;
		before = call;
		EXPECT_EQ(-EINVAL, np_ioctl(fd_for(&call, self->ctrl.fd, self->qp.qp_fd),
					    call.number, &call.header)) {
			TH_LOG("%s", call.name);
		}
		/* A call that fails writes nothing back. */
		EXPECT_EQ(0, memcmp(&before, &call, sizeof(call)));
	}
}

TEST_F(bad_input, bad_pointers)
{
	uint8_t *page = mmap(NULL, 2 * NP_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct call call;
	size_t i;
	int fd;

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, mprotect(page + NP_PAGE, NP_PAGE, PROT_NONE));
	for (i = 0; i < CALLS; i++) {
		call = calls[i];
		call.header.size = (uint32_t)call.size;
		fd = fd_for(&call, self->ctrl.fd, self->qp.qp_fd);
		EXPECT_EQ(-EFAULT, np_ioctl(fd, call.number, NULL));
		/* The size field is readable, the rest is not. */
		memcpy(page + NP_PAGE - 4, &call.header.size, 4);
		EXPECT_EQ(-EFAULT, np_ioctl(fd, call.number, page + NP_PAGE - 4)) {
			TH_LOG("%s", call.name);
		}
	}
	munmap(page, 2 * NP_PAGE);
}

static int lowest_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* An object is destroyed again if its result cannot be copied out, and its descriptor is free. */
TEST_F(bad_input, copy_out_failure_is_undone)
{
	struct call *page = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int lowest = lowest_descriptor();
	size_t i;

	ASSERT_NE(MAP_FAILED, page);
	for (i = 0; i < CALLS; i++) {
		/* These copy nothing out. */
		if (calls[i].number == NVME_PEER_BUF_RELEASE ||
		    calls[i].number == NVME_PEER_QP_REARM)
			continue;
		/* Of files and of mediated queue pairs: see their tests. */
		if (calls[i].number == NVME_PEER_EXTENTS)
			continue;
		if (calls[i].on_qp && _IOC_NR(calls[i].number) > NVME_PEER_CMD_QP_REARM)
			continue;
		*page = calls[i];
		page->header.size = (uint32_t)calls[i].size;
		if (page->number == NVME_PEER_ROUTE) {
			page->route.flags = 0;
			page->route.dmabuf_fd = self->dmabuf;
		}
		if (page->number == NVME_PEER_BUF_IMPORT)
			page->buf_import.dmabuf_fd = self->dmabuf;
		if (page->number == NVME_PEER_BUF_TABLE)
			page->buf_table.handle = self->rings.handle;
		ASSERT_EQ(0, mprotect(page, NP_PAGE, PROT_READ));
		EXPECT_EQ(-EFAULT, np_ioctl(fd_for(page, self->ctrl.fd, self->qp.qp_fd),
					    page->number, &page->header)) {
			TH_LOG("%s", page->name);
		}
		ASSERT_EQ(0, mprotect(page, NP_PAGE, PROT_READ | PROT_WRITE));
		EXPECT_EQ(lowest, lowest_descriptor());
	}
	munmap(page, NP_PAGE);
}

TEST_F(bad_input, not_a_dmabuf)
{
	struct nvme_peer_buf_import import;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int closed = dup(file);

	close(closed);
	EXPECT_EQ(-EBADF, np_import(self->ctrl.fd, -1, 0, &import));
	EXPECT_EQ(-EBADF, np_import(self->ctrl.fd, closed, 0, &import));
	EXPECT_EQ(-EINVAL, np_import(self->ctrl.fd, file, 0, &import));
	EXPECT_EQ(-EINVAL, np_import(self->ctrl.fd, self->qp.qp_fd, 0, &import));
	EXPECT_EQ(-EINVAL, np_import(self->ctrl.fd, self->ctrl.fd, 0, &import));
	close(file);
}

/* The controller cannot access its own doorbells. */
TEST_F(bad_input, unreachable_memory)
{
	struct nvme_peer_buf_import import;
	struct nvme_peer_qp_export doorbell;

	ASSERT_EQ(0, np_export_fd(self->qp.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &doorbell));
	EXPECT_EQ(-EXDEV, np_import(self->ctrl.fd, doorbell.fd, 0, &import));
	close(doorbell.fd);
}

/* A valid call with one invalid field. */
struct create_case {
	const char *name;
	int error;
	void (*spoil)(struct nvme_peer_qp_create *create, const struct nvme_peer_info *info);
};

#define SPOIL(name, statement)							\
	static void spoil_##name(struct nvme_peer_qp_create *create,		\
				 const struct nvme_peer_info *info)		\
	{									\
		(void)info;							\
		statement;							\
	}

SPOIL(mode, create->mode = 99)
SPOIL(reserved1, create->reserved1 = 1)
SPOIL(reserved1_high, create->reserved1 = 1U << 31)
SPOIL(reserved2, create->reserved2 = 1)
SPOIL(sq_zero, create->sq_entries = 0)
SPOIL(sq_one, create->sq_entries = 1)
SPOIL(both_one, create->sq_entries = create->cq_entries = 1)
SPOIL(cq_zero, create->cq_entries = 0)
SPOIL(cq_smaller, create->cq_entries = ENTRIES - 1)
SPOIL(sq_above, create->sq_entries = create->cq_entries = info->max_entries + 1)
SPOIL(cq_above, create->cq_entries = info->max_entries + 1)
SPOIL(sq_huge, create->sq_entries = create->cq_entries = 0xffffffffU)
SPOIL(sq_offset, create->sq_offset = NP_PAGE)
SPOIL(cq_offset, create->cq_offset = NP_PAGE)
SPOIL(sq_handle, create->sq_handle = NO_HANDLE)
SPOIL(cq_handle, create->cq_handle = NO_HANDLE)
/* Limits that only mediated queue pairs have. */
SPOIL(depth, create->depth = 1)
SPOIL(weight, create->weight = 1)
SPOIL(timeout, create->timeout_ms = NP_TIMEOUT_MS)
SPOIL(windows, create->max_windows = 1)
SPOIL(buffers, create->max_buffers = 1)

#define CASE(name, error) { #name, error, spoil_##name }

static const struct create_case create_cases[] = {
	CASE(mode, -EINVAL), CASE(reserved1, -EINVAL), CASE(reserved1_high, -EINVAL),
	CASE(reserved2, -EINVAL),
	CASE(sq_zero, -EINVAL), CASE(sq_one, -EINVAL),
	CASE(both_one, -EINVAL), CASE(cq_zero, -EINVAL), CASE(cq_smaller, -EINVAL),
	CASE(sq_above, -EINVAL), CASE(cq_above, -EINVAL), CASE(sq_huge, -EINVAL),
	CASE(sq_offset, -EINVAL), CASE(cq_offset, -EINVAL),
	CASE(sq_handle, -ENOENT), CASE(cq_handle, -ENOENT),
	CASE(depth, -EINVAL), CASE(weight, -EINVAL), CASE(timeout, -EINVAL), CASE(windows, -EINVAL),
	CASE(buffers, -EINVAL),
};

static struct nvme_peer_qp_create good_create(void)
{
	return (struct nvme_peer_qp_create){
		.size = sizeof(struct nvme_peer_qp_create),
		.sq_entries = ENTRIES,
		.cq_entries = ENTRIES,
	};
}

static int try_create(int fd, struct nvme_peer_qp_create *create)
{
	return np_ioctl(fd, NVME_PEER_QP_CREATE, create);
}

TEST_F(bad_input, invalid_queue_pairs)
{
	struct nvme_peer_qp_create create;
	size_t i;

	for (i = 0; i < sizeof(create_cases) / sizeof(create_cases[0]); i++) {
		create = good_create();
		create_cases[i].spoil(&create, &self->ctrl.info);
		EXPECT_EQ(create_cases[i].error, try_create(self->ctrl.fd, &create)) {
			TH_LOG("%s", create_cases[i].name);
		}
	}
}

/* The longest rings, and each flag. */
TEST_F(bad_input, unusual_queue_pairs_are_created)
{
	struct nvme_peer_qp_create create = good_create();

	create.sq_entries = self->ctrl.info.max_entries;
	create.cq_entries = self->ctrl.info.max_entries;
	create.flags = NVME_PEER_QP_ALLOW_SLEEP | NVME_PEER_QP_NO_STATIC;
	ASSERT_EQ(0, try_create(self->ctrl.fd, &create));
	close(create.qp_fd);
}

/* Reserved fields must be zero. */
TEST_F(bad_input, reserved_fields_of_qp_create)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export out = {
		.size = sizeof(out),
		.what = NVME_PEER_EXPORT_STATUS,
		.reserved = 1,
	};

	create = good_create();
	create.reserved = 1U << 31;
	EXPECT_EQ(-EINVAL, try_create(self->ctrl.fd, &create));
	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.qp_fd, NVME_PEER_QP_EXPORT, &out));
}

TEST_F(bad_input, reserved_field_of_qp_rearm)
{
	struct nvme_peer_qp_rearm rearm = { .size = sizeof(rearm), .reserved = 1 };

	EXPECT_EQ(-EINVAL, np_ioctl(self->qp.qp_fd, NVME_PEER_QP_REARM, &rearm));
}

/* The receivers of such a queue pair file cannot give doorbells away for good. */
TEST_F(bad_input, static_importers_are_refused_by_flag)
{
	struct nvme_peer_qp_create create = good_create();
	struct nvme_peer_qp_export out;

	create.flags = NVME_PEER_QP_NO_STATIC;
	ASSERT_EQ(0, try_create(self->ctrl.fd, &create));
	EXPECT_EQ(-EACCES, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL,
					NVME_PEER_EXPORT_ALLOW_STATIC, &out));
	ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &out));
	EXPECT_EQ(NVME_PEER_KIND_REGISTER, out.kind);
	close(out.fd);
	close(create.qp_fd);
}

/* Invalid places of a ring in a buffer of eight pages. */
TEST_F(bad_input, rings_out_of_range)
{
	uint64_t length = RING_PAGES * NP_PAGE;
	struct nvme_peer_qp_create create;
	static const struct {
		uint64_t offset;
		uint32_t entries;
		int error;
	} cases[] = {
		{ 1, ENTRIES, -EINVAL },
		{ 512, ENTRIES, -EINVAL },
		{ RING_PAGES * NP_PAGE, ENTRIES, -ERANGE },
		{ (RING_PAGES - 1) * NP_PAGE, ENTRIES + 1, -ERANGE },
		{ 0, RING_PAGES * NP_PAGE / 64 + 1, -ERANGE },
		{ 0xfffffffffffff000ULL, ENTRIES, -ERANGE },
		{ 1ULL << 63, ENTRIES, -ERANGE },
	};
	size_t i;

	ASSERT_EQ(length, self->rings.length);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		create = good_create();
		create.sq_handle = self->rings.handle;
		create.sq_offset = cases[i].offset;
		create.sq_entries = cases[i].entries;
		create.cq_entries = cases[i].entries;
		EXPECT_EQ(cases[i].error, try_create(self->ctrl.fd, &create)) {
			TH_LOG("offset %#llx, %u entries", (unsigned long long)cases[i].offset,
			       cases[i].entries);
		}
	}
}

TEST_F(bad_input, overlapping_rings)
{
	struct nvme_peer_qp_create first = good_create(), second = good_create();
	struct nvme_peer_qp_create third = good_create();
	struct nvme_peer_buf_import again;

	first.sq_handle = self->rings.handle;
	first.cq_handle = self->rings.handle;
	EXPECT_EQ(-EEXIST, try_create(self->ctrl.fd, &first));
	first.cq_offset = NP_PAGE;
	ASSERT_EQ(0, try_create(self->ctrl.fd, &first));
	EXPECT_EQ(FD_CLOEXEC, fcntl(first.qp_fd, F_GETFD));

	/* Submission ring over a submission ring, and over a completion ring. */
	second.sq_handle = self->rings.handle;
	EXPECT_EQ(-EEXIST, try_create(self->ctrl.fd, &second));
	second.sq_offset = NP_PAGE;
	EXPECT_EQ(-EEXIST, try_create(self->ctrl.fd, &second));
	/* Another import of the same memory overlaps too. */
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->dmabuf, 0, &again));
	second.sq_handle = again.handle;
	EXPECT_EQ(-EEXIST, try_create(self->ctrl.fd, &second));
	second.sq_offset = 2 * NP_PAGE;
	ASSERT_EQ(0, try_create(self->ctrl.fd, &second));
	close(second.qp_fd);
	/* Completion ring over a submission ring, and over a completion ring. */
	third.cq_handle = self->rings.handle;
	EXPECT_EQ(-EEXIST, try_create(self->ctrl.fd, &third));
	third.cq_offset = NP_PAGE;
	EXPECT_EQ(-EEXIST, try_create(self->ctrl.fd, &third));
	/* Ring memory is free again after the queue pair was closed. */
	close(first.qp_fd);
	second.sq_offset = NP_PAGE;
	ASSERT_EQ(0, try_create(self->ctrl.fd, &second));
	close(second.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, again.handle));
}

/* Offsets in different dma-bufs have nothing to do with each other. */
TEST_F(bad_input, rings_in_two_buffers)
{
	struct nvme_peer_qp_create create = good_create();
	int dmabuf = np_test_export(RING_PAGES, 0);
	struct nvme_peer_buf_import import;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf, 0, &import));
	create.sq_handle = self->rings.handle;
	create.cq_handle = import.handle;
	EXPECT_EQ(0, try_create(self->ctrl.fd, &create));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(dmabuf);
}

/* Memory of another queue pair is no memory for a ring, whatever its dma-buf is used for. */
TEST_F(bad_input, rings_in_exports)
{
	static const uint32_t kinds[] = {
		NVME_PEER_EXPORT_SQ, NVME_PEER_EXPORT_CQ, NVME_PEER_EXPORT_CONTROL,
	};
	struct nvme_peer_buf_import import;
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export out;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		ASSERT_EQ(0, np_export_fd(self->qp.qp_fd, kinds[i], 0, &out));
		ASSERT_EQ(0, np_import(self->ctrl.fd, out.fd, 0, &import));
		create = good_create();
		create.sq_handle = import.handle;
		EXPECT_EQ(-EEXIST, try_create(self->ctrl.fd, &create));
		create = good_create();
		create.cq_handle = import.handle;
		EXPECT_EQ(-EEXIST, try_create(self->ctrl.fd, &create));
		EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
		close(out.fd);
	}
}

TEST_F(bad_input, rings_in_several_segments)
{
	int dmabuf = np_test_export(RING_PAGES, NVMEP_TEST_SCATTERED);
	struct nvme_peer_qp_create create = good_create();
	struct nvme_peer_buf_import import;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf, 0, &import));
	EXPECT_EQ(RING_PAGES, import.segments);
	create.sq_handle = import.handle;
	create.sq_entries = 2 * ENTRIES;
	create.cq_entries = 2 * ENTRIES;
	if (self->ctrl.info.contiguous_rings)
		EXPECT_EQ(-EMSGSIZE, try_create(self->ctrl.fd, &create));
	/* A ring within one page is one segment. */
	create.sq_entries = ENTRIES;
	ASSERT_EQ(0, try_create(self->ctrl.fd, &create));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(dmabuf);
}

TEST_F(bad_input, no_queue_id_left)
{
	struct nvme_peer_qp_create create, *all;
	struct nvme_peer_info info;
	uint32_t i, count;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	count = info.qids_peer_free;
	ASSERT_LT(0, count);
	/* One pool: by default at most half of the queues are for peers. */
	EXPECT_GE(info.qids_total / 2, info.qids_peer_max);
	EXPECT_GE(info.qids_total, info.qids_peer_max + info.qids_cpu);
	EXPECT_LE(1, info.qids_cpu);
	all = calloc(count, sizeof(*all));
	ASSERT_NE(NULL, all);
	for (i = 0; i < count; i++)
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, 2, &all[i]));
	EXPECT_EQ(-ENOSPC, np_qp_create(self->ctrl.fd, 2, &create));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(0, info.qids_peer_free);
	close(all[0].qp_fd);
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, 2, &create));
	/* The ID that was freed last is reused last. */
	EXPECT_NE(all[0].qid, create.qid);
	close(create.qp_fd);
	for (i = 1; i < count; i++)
		close(all[i].qp_fd);
	free(all);
}

TEST_F(bad_input, no_file_descriptor_left)
{
	struct rlimit limit, none;
	struct nvme_peer_qp_create create = good_create();
	struct nvme_peer_qp_export export;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, try_create(self->ctrl.fd, &create));
	EXPECT_EQ(-EMFILE, np_export_fd(self->qp.qp_fd, NVME_PEER_EXPORT_SQ, 0, &export));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
}

/* In a process without standard input: 0 is a descriptor like others. */
static int get_descriptor_0(int ctrl_fd)
{
	struct nvme_peer_buf_alloc alloc = { .size = sizeof(alloc), .length = NP_PAGE };
	struct nvme_peer_qp_create create = good_create();
	struct nvme_peer_qp_export export;
	struct nvme_peer_qp_info info;

	close(STDIN_FILENO);
	if (np_ioctl(ctrl_fd, NVME_PEER_BUF_ALLOC, &alloc) || alloc.fd ||
	    lseek(alloc.fd, 0, SEEK_END) != NP_PAGE || close(alloc.fd))
		return 1;
	if (try_create(ctrl_fd, &create) || create.qp_fd || np_qp_info(create.qp_fd, &info))
		return 2;
	create.qp_fd = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	if (np_export_fd(create.qp_fd, NVME_PEER_EXPORT_CQ, 0, &export) || export.fd ||
	    lseek(export.fd, 0, SEEK_END) <= 0)
		return 3;
	return 0;
}

TEST_F(bad_input, descriptor_0_is_returned)
{
	EXPECT_EQ(0, np_in_child(get_descriptor_0, self->ctrl.fd));
}

static int drop_rawio(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective &= ~(1U << CAP_SYS_RAWIO);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* In a child, so that the test itself keeps the capability. */
static int without_rawio(int ctrl_fd, int qp_fd, uint32_t handle)
{
	struct nvme_peer_buf_table table = { .size = sizeof(table), .handle = handle };
	struct nvme_peer_qp_create create = good_create();
	struct nvme_peer_qp_info info;

	if (drop_rawio())
		return 1;
	if (try_create(ctrl_fd, &create) != -EPERM)
		return 2;
	if (np_ioctl(ctrl_fd, NVME_PEER_BUF_TABLE, &table) != -EPERM)
		return 3;
	/* Calls that do not need the capability still work. */
	return np_qp_info(qp_fd, &info) ? 4 : 0;
}

TEST_F(bad_input, no_capability)
{
	int status;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child)
		_exit(without_rawio(self->ctrl.fd, self->qp.qp_fd, self->rings.handle));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status) {
		TH_LOG("child: %#x", status);
	}
}

TEST_F(bad_input, release_of_busy_and_stale_buffer)
{
	struct nvme_peer_qp_create create = good_create();
	struct nvme_peer_buf_import import;

	ASSERT_EQ(0, np_import(self->ctrl.fd, self->dmabuf, 0, &import));
	create.cq_handle = import.handle;
	ASSERT_EQ(0, try_create(self->ctrl.fd, &create));
	EXPECT_EQ(-EBUSY, np_release(self->ctrl.fd, import.handle));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	EXPECT_EQ(-ENOENT, np_release(self->ctrl.fd, import.handle));
	EXPECT_EQ(-ENOENT, try_create(self->ctrl.fd, &create));
	EXPECT_EQ(-ENOENT, np_release(self->ctrl.fd, 0));
}

TEST_F(bad_input, reserved_fields_of_buf_release)
{
	struct nvme_peer_buf_release release = {
		.size = sizeof(release),
		.handle = self->rings.handle,
		.reserved = 1,
	};

	EXPECT_EQ(-EINVAL, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_RELEASE, &release));
}

/* A handle is invalid in another open file of the same node. */
TEST_F(bad_input, handle_of_other_file)
{
	struct nvme_peer_qp_create create = good_create();
	struct np_ctrl other;

	ASSERT_EQ(0, np_ctrl_open(&other, "np0"));
	create.sq_handle = self->rings.handle;
	EXPECT_EQ(-ENOENT, try_create(other.fd, &create));
	EXPECT_EQ(-ENOENT, np_release(other.fd, self->rings.handle));
	np_ctrl_close(&other);
}

static int get_ranges(int fd, uint32_t handle, uint64_t offset, uint32_t count,
		      struct nvme_peer_buf_range *ranges, uint32_t *got)
{
	struct nvme_peer_buf_table table = {
		.size = sizeof(table),
		.handle = handle,
		.count = count,
		.offset = offset,
		.ranges = (uintptr_t)ranges,
	};
	int ret = np_ioctl(fd, NVME_PEER_BUF_TABLE, &table);

	*got = table.count;
	return ret;
}

TEST_F(bad_input, address_tables)
{
	struct nvme_peer_buf_range ranges[RING_PAGES + 1] = {}, last;
	uint64_t addresses[RING_PAGES + 1] = {}, all[RING_PAGES], length = 0;
	uint32_t handle = self->rings.handle, got, i;
	int fd = self->ctrl.fd;

	EXPECT_EQ(-ENOENT, get_ranges(fd, NO_HANDLE, 0, 1, ranges, &got));
	EXPECT_EQ(-EINVAL, get_ranges(fd, handle, 8, 1, ranges, &got));
	EXPECT_EQ(-ERANGE, get_ranges(fd, handle, self->rings.length, 1, ranges, &got));
	EXPECT_EQ(-ERANGE, get_ranges(fd, handle, 1ULL << 63, 1, ranges, &got));
	EXPECT_EQ(-EFAULT, get_ranges(fd, handle, 0, 1, NULL, &got));
	EXPECT_EQ(0, ranges[0].address);

	/* More entries than the buffer has segments. */
	ASSERT_EQ(0, get_ranges(fd, handle, 0, RING_PAGES + 1, ranges, &got));
	EXPECT_EQ(self->rings.segments, got);
	for (i = 0; i < got; i++)
		length += ranges[i].length;
	EXPECT_EQ(self->rings.length, length);
	EXPECT_EQ(0, ranges[got].length);
	/* A start in the middle of a range. */
	ASSERT_EQ(0, get_ranges(fd, handle, self->rings.length - NP_PAGE, 2, &last, &got));
	EXPECT_EQ(1, got);
	EXPECT_EQ(NP_PAGE, last.length);
	ASSERT_EQ(0, np_buf_table(fd, handle, 0, all, RING_PAGES, &got));
	EXPECT_EQ(RING_PAGES, got);
	EXPECT_EQ(all[RING_PAGES - 1], last.address);
	ASSERT_EQ(0, np_buf_table(fd, handle, 3 * NP_PAGE, addresses, RING_PAGES + 1, &got));
	EXPECT_EQ(RING_PAGES - 3, got);
	EXPECT_EQ(0, memcmp(addresses, all + 3, got * sizeof(*all)));
	ASSERT_EQ(0, get_ranges(fd, handle, 0, 0, NULL, &got));
	EXPECT_EQ(0, got);
}

TEST_F(bad_input, invalid_exports)
{
	struct nvme_peer_qp_create create = good_create();
	struct nvme_peer_qp_export export;
	int qp = self->qp.qp_fd;

	EXPECT_EQ(-EINVAL, np_export_fd(qp, NVME_PEER_EXPORT_CONTROL + 1, 0, &export));
	EXPECT_EQ(-EINVAL, np_export_fd(qp, 0xffffffffU, 0, &export));
	EXPECT_EQ(-EINVAL, np_export_fd(qp, NVME_PEER_EXPORT_SQ, NVME_PEER_EXPORT_ALLOW_STATIC,
					&export));
	EXPECT_EQ(-EINVAL, np_export_fd(qp, NVME_PEER_EXPORT_STATUS, NVME_PEER_EXPORT_ALLOW_STATIC,
					&export));
	create.sq_handle = self->rings.handle;
	create.cq_handle = self->rings.handle;
	create.cq_offset = NP_PAGE;
	ASSERT_EQ(0, try_create(self->ctrl.fd, &create));
	EXPECT_EQ(-ENODATA, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_SQ, 0, &export));
	EXPECT_EQ(-ENODATA, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_CQ, 0, &export));
	EXPECT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_STATUS, 0, &export));
	close(export.fd);
	close(create.qp_fd);
	EXPECT_EQ(-EBADF, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_SQ, 0, &export));
}

TEST_F(bad_input, too_many_exports)
{
	struct nvme_peer_qp_export exports[MAX_EXPORTS + 1];
	int count = 0, ret = 0;

	while (count <= MAX_EXPORTS && !ret) {
		ret = np_export_fd(self->qp.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &exports[count]);
		count += !ret;
	}
	EXPECT_EQ(-EDQUOT, ret);
	EXPECT_EQ(MAX_EXPORTS, count);
	while (count)
		close(exports[--count].fd);
	EXPECT_EQ(0, np_export_fd(self->qp.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &exports[0]));
	close(exports[0].fd);
}

TEST_F(bad_input, live_queue_pair_has_no_poll_events)
{
	struct pollfd poll_fd = { .fd = self->qp.qp_fd, .events = POLLIN | POLLOUT };

	EXPECT_EQ(0, poll(&poll_fd, 1, 0));
}

TEST_HARNESS_MAIN
