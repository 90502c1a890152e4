// SPDX-License-Identifier: GPL-2.0-only
/*
 * NVME_PEER_BUF_ALLOC: host memory of the module serves as rings and data, lives as long
 * as its dma-buf, and is charged while it lives.
 *
 * kernels: 6.1 7 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on off
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define PAGES		8U
#define ENTRIES		64U
#define FIRST_USER	100000U
#define MEMORY_GROUP	"/sys/fs/cgroup/nvme-peer-test"

FIXTURE(buf_alloc)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(buf_alloc)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

FIXTURE_TEARDOWN(buf_alloc)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

static int request(int ctrl_fd, uint64_t length, struct nvme_peer_buf_alloc *alloc)
{
	*alloc = (struct nvme_peer_buf_alloc){ .size = sizeof(*alloc), .length = length };
	return np_ioctl(ctrl_fd, NVME_PEER_BUF_ALLOC, alloc);
}

/* The dma-buf, or -errno. */
static int allocate(int ctrl_fd, uint32_t pages)
{
	struct nvme_peer_buf_alloc alloc;

	return request(ctrl_fd, (uint64_t)pages * NP_PAGE, &alloc) ?: alloc.fd;
}

static void *map(int dmabuf, uint32_t pages)
{
	return mmap(NULL, (size_t)pages * NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
}

static bool all_zero(const uint8_t *bytes, size_t length)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, length - 1);
}

/* --- memory -------------------------------------------------------------- */

TEST_F(buf_alloc, feature_is_reported)
{
	EXPECT_NE(0, self->ctrl.info.features & NVME_PEER_FEATURE_BUF_ALLOC);
}

TEST_F(buf_alloc, memory_is_zeroed_whole_pages)
{
	struct nvme_peer_buf_alloc alloc;
	uint8_t *bytes;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, request(self->ctrl.fd, 3 * NP_PAGE - 1, &alloc));
		EXPECT_EQ(3 * NP_PAGE, alloc.length);
		EXPECT_EQ(3 * NP_PAGE, lseek(alloc.fd, 0, SEEK_END));
		EXPECT_EQ(FD_CLOEXEC, fcntl(alloc.fd, F_GETFD));
		bytes = map(alloc.fd, 3);
		ASSERT_NE(MAP_FAILED, bytes);
		EXPECT_TRUE(all_zero(bytes, 3 * NP_PAGE));
		/* The next allocation may get the same pages. */
		memset(bytes, 0xa5, 3 * NP_PAGE);
		munmap(bytes, 3 * NP_PAGE);
		close(alloc.fd);
	}
}

TEST_F(buf_alloc, invalid_requests)
{
	static const struct {
		uint32_t flags;
		uint64_t length;
		uint32_t reserved;
		int error;
	} cases[] = {
		{ 1, NP_PAGE, 0, -EINVAL },
		{ 0, NP_PAGE, 1, -EINVAL },
		{ 0, 0, 0, -EINVAL },
		{ 0, NVME_PEER_BUF_ALLOC_MAX + 1ULL, 0, -EFBIG },
		{ 0, ~0ULL, 0, -EFBIG },
	};
	struct nvme_peer_buf_alloc alloc;
	struct rlimit before, none = { 0 };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		alloc = (struct nvme_peer_buf_alloc){
			.size = sizeof(alloc),
			.flags = cases[i].flags,
			.length = cases[i].length,
			.reserved = cases[i].reserved,
		};
		EXPECT_EQ(cases[i].error, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_ALLOC, &alloc)) {
			TH_LOG("case %zu", i);
		}
	}
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
	none.rlim_max = before.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, request(self->ctrl.fd, NP_PAGE, &alloc));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
}

/* --- rings and data ------------------------------------------------------ */

/* A queue pair whose rings are the first pages of @buffer. */
static int open_qp(struct np_qp *qp, int ctrl_fd, const struct np_buffer *buffer)
{
	struct nvme_peer_qp_info info;
	int ret;

	*qp = (struct np_qp){ .phase = 1, .sq.fd = -1, .cq.fd = -1, .status.fd = -1 };
	qp->create = (struct nvme_peer_qp_create){
		.size = sizeof(qp->create),
		.sq_entries = ENTRIES,
		.cq_entries = ENTRIES,
		.sq_handle = buffer->handle,
		.cq_handle = buffer->handle,
		.cq_offset = NP_PAGE,
	};
	ret = np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, &qp->create);
	if (ret)
		return ret;
	qp->fd = qp->create.qp_fd;
	qp->sq.at = buffer->bytes;
	qp->cq.at = buffer->bytes + NP_PAGE;
	ret = np_qp_info(qp->fd, &info) ?:
	      np_export_open(&qp->doorbell, qp->fd, NVME_PEER_EXPORT_DOORBELL, 0);
	qp->tail_doorbell = qp->doorbell.at;
	qp->head_doorbell = (void *)((uint8_t *)qp->doorbell.at + info.doorbell_stride);
	return ret;
}

/* Write a pattern from page 2 to the disk, and read it back into page 3. */
static int transfer(struct np_qp *qp, struct np_buffer *buffer, uint32_t seed)
{
	uint8_t *out = buffer->bytes + 2 * NP_PAGE, *in = buffer->bytes + 3 * NP_PAGE;
	struct np_command command;
	int ret;

	np_pattern(out, NP_PAGE, NP_AREA(11), seed);
	np_command_rw(&command, buffer, NVMEPEER_OP_WRITE, NP_AREA(11), 2 * NP_PAGE, NP_PAGE);
	ret = np_qp_run(qp, &command, NP_TIMEOUT_MS);
	np_command_rw(&command, buffer, NVMEPEER_OP_READ, NP_AREA(11), 3 * NP_PAGE, NP_PAGE);
	ret = ret ?: np_qp_run(qp, &command, NP_TIMEOUT_MS);
	return ret ?: memcmp(out, in, NP_PAGE) ? -EIO : 0;
}

TEST_F(buf_alloc, memory_serves_as_rings_and_data)
{
	int dmabuf = allocate(self->ctrl.fd, PAGES);
	struct np_buffer buffer;
	struct np_qp qp;
	uint32_t i;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, np_buffer_open_dmabuf(&buffer, self->ctrl.fd, dmabuf, PAGES));
	ASSERT_EQ(0, open_qp(&qp, self->ctrl.fd, &buffer));
	for (i = 0; i < 2 * ENTRIES; i++)
		ASSERT_EQ(0, transfer(&qp, &buffer, i));
	EXPECT_EQ(-EBUSY, np_release(self->ctrl.fd, buffer.handle));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
}

/* The rings of two queue pairs may not share its memory. */
TEST_F(buf_alloc, rings_in_one_buffer_may_not_overlap)
{
	int dmabuf = allocate(self->ctrl.fd, PAGES);
	struct np_buffer buffer;
	struct np_qp qp, other;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, np_buffer_open_dmabuf(&buffer, self->ctrl.fd, dmabuf, PAGES));
	ASSERT_EQ(0, open_qp(&qp, self->ctrl.fd, &buffer));
	EXPECT_EQ(-EEXIST, open_qp(&other, self->ctrl.fd, &buffer));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
}

/* Many pieces: each page is at the address that the table names. */
TEST_F(buf_alloc, long_buffer_is_usable_to_its_end)
{
	uint32_t pages = (9 << 20) / NP_PAGE, last = pages - 2;
	int dmabuf = allocate(self->ctrl.fd, pages);
	struct np_buffer buffer;
	struct np_command command;
	struct np_qp qp;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, np_buffer_open_dmabuf(&buffer, self->ctrl.fd, dmabuf, pages));
	EXPECT_TRUE(all_zero(buffer.bytes, (size_t)pages * NP_PAGE));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	np_pattern(buffer.bytes, NP_PAGE, NP_AREA(11), 7);
	np_command_rw(&command, &buffer, NVMEPEER_OP_WRITE, NP_AREA(11), 0, NP_PAGE);
	ASSERT_EQ(0, np_qp_run(&qp, &command, NP_TIMEOUT_MS));
	np_command_rw(&command, &buffer, NVMEPEER_OP_READ, NP_AREA(11), last * NP_PAGE, NP_PAGE);
	ASSERT_EQ(0, np_qp_run(&qp, &command, NP_TIMEOUT_MS));
	EXPECT_EQ(0, memcmp(buffer.bytes, buffer.bytes + (size_t)last * NP_PAGE, NP_PAGE));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
}

/* DMA-API debugging counts up to 7 mappings of a cache line. */
#define MANY_IMPORTS	10U

TEST_F(buf_alloc, memory_is_imported_many_times)
{
	int dmabuf = allocate(self->ctrl.fd, 1);
	struct nvme_peer_buf_import imports[MANY_IMPORTS];
	size_t i;

	ASSERT_LE(0, dmabuf);
	for (i = 0; i < MANY_IMPORTS; i++)
		ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf, 0, &imports[i]));
	for (i = 0; i < MANY_IMPORTS; i++)
		EXPECT_EQ(0, np_release(self->ctrl.fd, imports[i].handle));
	close(dmabuf);
}

/* --- lifetime ------------------------------------------------------------ */

/* A ring keeps its memory: the controller may write it after all descriptors are closed. */
TEST_F(buf_alloc, rings_outlive_descriptors_and_mappings)
{
	struct np_buffer buffer = { .fd = allocate(self->ctrl.fd, PAGES), .pages = PAGES };
	struct nvme_peer_buf_import import;
	char busy[NP_OBJECTS];
	struct np_qp qp;

	ASSERT_LE(0, buffer.fd);
	ASSERT_EQ(0, np_import(self->ctrl.fd, buffer.fd, 0, &import));
	buffer.handle = import.handle;
	ASSERT_EQ(0, open_qp(&qp, self->ctrl.fd, &buffer));
	ASSERT_EQ(0, np_objects(&self->ctrl, busy));
	close(buffer.fd);
	np_sleep_ms(100);
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, busy, 0));
	np_qp_close(&qp);
	EXPECT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
}

/* A mapping keeps the memory after the close of its dma-buf, also that of a child. */
TEST_F(buf_alloc, mapping_outlives_descriptors)
{
	int dmabuf = allocate(self->ctrl.fd, PAGES), status = -1;
	volatile uint8_t *bytes;
	pid_t child;

	ASSERT_LE(0, dmabuf);
	bytes = map(dmabuf, PAGES);
	ASSERT_NE(MAP_FAILED, bytes);
	close(dmabuf);
	bytes[0] = 1;
	child = fork();
	if (!child) {
		munmap((void *)bytes, NP_PAGE);
		bytes[NP_PAGE] = 2;
		_exit(bytes[NP_PAGE] != 2);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(1, bytes[0]);
	EXPECT_EQ(2, bytes[NP_PAGE]);
	munmap((void *)bytes, PAGES * NP_PAGE);
}

TEST_F(buf_alloc, private_mapping_is_refused)
{
	int dmabuf = allocate(self->ctrl.fd, 1);

	ASSERT_LE(0, dmabuf);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_READ, MAP_PRIVATE, dmabuf, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 2 * NP_PAGE, PROT_READ, MAP_SHARED, dmabuf, 0));
	close(dmabuf);
}

/* The memory belongs to no controller. */
TEST_F_TIMEOUT(buf_alloc, memory_outlives_unbinding, 120)
{
	struct nvme_peer_buf_alloc alloc;
	volatile uint8_t *bytes;
	struct np_ctrl other;
	struct np_buffer buffer;
	int dmabuf;

	dmabuf = allocate(self->ctrl.fd, PAGES);
	ASSERT_LE(0, dmabuf);
	bytes = map(dmabuf, PAGES);
	ASSERT_NE(MAP_FAILED, bytes);
	bytes[0] = 1;
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_EQ(-ESHUTDOWN, request(self->ctrl.fd, NP_PAGE, &alloc));
	EXPECT_EQ(1, bytes[0]);
	munmap((void *)bytes, PAGES * NP_PAGE);
	/* Another controller imports it. */
	ASSERT_EQ(0, np_ctrl_open(&other, "np1"));
	ASSERT_EQ(0, np_buffer_open_dmabuf(&buffer, other.fd, dmabuf, PAGES));
	EXPECT_EQ(1, buffer.bytes[0]);
	EXPECT_EQ(0, np_release(other.fd, buffer.handle));
	np_buffer_close(&buffer);
	np_ctrl_close(&other);
	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, np_bind_all());
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

TEST_F_TIMEOUT(buf_alloc, memory_pins_module, 120)
{
	int dmabuf = allocate(self->ctrl.fd, 1);
	volatile uint8_t *bytes;

	ASSERT_LE(0, dmabuf);
	bytes = map(dmabuf, 1);
	ASSERT_NE(MAP_FAILED, bytes);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(-EAGAIN, np_module_unload(0));
	close(dmabuf);
	EXPECT_EQ(-EAGAIN, np_module_unload(0));
	munmap((void *)bytes, NP_PAGE);
	EXPECT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_module_load(""));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

/* --- accounting ---------------------------------------------------------- */

/*
 * A user with a limit, in a process of its own. Returns 0, or which step has failed. The
 * user is that of this run: a charge that an earlier run has left does not count.
 */
static int allocate_with_limit(int ctrl_fd)
{
	const uid_t user = FIRST_USER + getppid();
	struct nvme_peer_buf_import import;
	int dmabuf;
	void *bytes;

	if (np_limit_locked(PAGES) || setresuid(user, user, user))
		return 1;
	if (allocate(ctrl_fd, PAGES + 1) != -ENOBUFS ||
	    allocate(ctrl_fd, NVME_PEER_BUF_ALLOC_MAX / NP_PAGE) != -ENOBUFS)
		return 2;
	dmabuf = allocate(ctrl_fd, PAGES);
	if (dmabuf < 0 || allocate(ctrl_fd, 1) != -ENOBUFS)
		return 3;
	/* It counts once. */
	if (np_import(ctrl_fd, dmabuf, 0, &import) || np_release(ctrl_fd, import.handle))
		return 4;
	/* The mapping keeps the memory, so it keeps the charge. */
	bytes = map(dmabuf, PAGES);
	if (bytes == MAP_FAILED || close(dmabuf) || allocate(ctrl_fd, 1) != -ENOBUFS)
		return 5;
	if (munmap(bytes, PAGES * NP_PAGE))
		return 6;
	dmabuf = allocate(ctrl_fd, PAGES);
	return dmabuf < 0 ? 7 : 0;
}

TEST_F(buf_alloc, memory_counts_as_locked)
{
	int round;

	/* The end of a process uncharges, too. */
	for (round = 0; round < 2; round++)
		EXPECT_EQ(0, np_in_child(allocate_with_limit, self->ctrl.fd));
}

TEST_F(buf_alloc, locked_memory_is_unlimited_with_ipc_lock)
{
	struct rlimit before;
	int dmabuf;

	ASSERT_EQ(0, getrlimit(RLIMIT_MEMLOCK, &before));
	ASSERT_EQ(0, np_limit_locked(0));
	dmabuf = allocate(self->ctrl.fd, PAGES);
	EXPECT_LE(0, dmabuf);
	close(dmabuf);
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &before));
}

/* A process whose memory cgroup allows 32 MiB. Returns 0, or which step has failed. */
static int allocate_in_group(int ctrl_fd)
{
	char pid[16];
	int dmabuf;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (np_write_file(MEMORY_GROUP "/cgroup.procs", pid))
		return 1;
	if (allocate(ctrl_fd, (64 << 20) / NP_PAGE) != -ENOMEM)
		return 2;
	dmabuf = allocate(ctrl_fd, (4 << 20) / NP_PAGE);
	return dmabuf < 0 ? 3 : 0;
}

TEST_F(buf_alloc, memory_is_charged_to_cgroup)
{
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) &&
	    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL))
		SKIP(return, "no cgroups");
	np_write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir(MEMORY_GROUP, 0755) ||
	    np_write_file(MEMORY_GROUP "/memory.max", "33554432")) {
		rmdir(MEMORY_GROUP);
		SKIP(return, "no memory cgroups");
	}
	EXPECT_EQ(0, np_in_child(allocate_in_group, self->ctrl.fd));
	EXPECT_EQ(0, rmdir(MEMORY_GROUP));
}

/* --- signals ------------------------------------------------------------- */

/* An allocation that SIGKILL interrupts leaves nothing. */
TEST_F(buf_alloc, fatal_signal_ends_allocation)
{
	struct nvmep_test_stall stall = {
		.function = "nvmep_host_pages_alloc_pieces",
		.any_thread = 1,
	};
	int test = np_stall(&stall), status;
	pid_t child;

	ASSERT_LE(0, test);
	child = fork();
	if (!child)
		_exit(np_run_on(1) || allocate(self->ctrl.fd, PAGES) < 0);
	ASSERT_LE(0, child);
	/* The stalled child blocks its CPU. */
	EXPECT_EQ(0, np_run_on(0));
	EXPECT_EQ(0, np_wait_stalled(test));
	EXPECT_EQ(0, kill(child, SIGKILL));
	close(test);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_HARNESS_MAIN
