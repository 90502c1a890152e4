// SPDX-License-Identifier: GPL-2.0-only
/*
 * Import a range of a dma-buf, or one direction of it: the range has its own length,
 * addresses and rings, and the controller's access follows the import.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define PAGES		8U
#define ENTRIES		16U
#define NOBODY		65534U

/* The kernel's enum dma_data_direction. */
#define DMA_BIDIRECTIONAL	0U
#define DMA_TO_DEVICE		1U
#define DMA_FROM_DEVICE		2U

FIXTURE(import)
{
	struct np_ctrl ctrl;
	struct np_buffer whole;
	int test;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(import)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	self->test = np_test_open();
	ASSERT_LE(0, self->test);
	ASSERT_EQ(0, np_buffer_open(&self->whole, self->ctrl.fd, PAGES, NVMEP_TEST_SCATTERED));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

FIXTURE_TEARDOWN(import)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_buffer_close(&self->whole);
	close(self->test);
	np_ctrl_close(&self->ctrl);
}

/* @offset and @length in pages. */
static int import_part(int ctrl_fd, int dmabuf, uint32_t access, uint64_t offset, uint64_t length,
		       struct nvme_peer_buf_import *import)
{
	*import = (struct nvme_peer_buf_import){
		.size = sizeof(*import),
		.dmabuf_fd = dmabuf,
		.access = access,
		.offset = offset * NP_PAGE,
		.length = length * NP_PAGE,
	};
	return np_ioctl(ctrl_fd, NVME_PEER_BUF_IMPORT, import);
}

static int table(int ctrl_fd, uint32_t handle, uint64_t addresses[PAGES], uint32_t *count)
{
	return np_buf_table(ctrl_fd, handle, 0, addresses, PAGES, count);
}

static void check_part(struct __test_metadata *_metadata, int fd, int dmabuf, uint32_t offset,
		       uint32_t length, uint32_t pages, uint32_t segments)
{
	struct nvme_peer_buf_import import;
	uint64_t addresses[PAGES];
	uint32_t count;

	ASSERT_EQ(0, import_part(fd, dmabuf, NVME_PEER_ACCESS_BOTH, offset, length, &import));
	EXPECT_EQ((uint64_t)offset * NP_PAGE, import.offset);
	EXPECT_EQ((uint64_t)pages * NP_PAGE, import.length);
	EXPECT_EQ(segments, import.segments);
	ASSERT_EQ(0, table(fd, import.handle, addresses, &count));
	EXPECT_EQ(pages, count);
	EXPECT_EQ(0, np_release(fd, import.handle));
}

TEST_F(import, range_has_requested_length)
{
	int fd = self->ctrl.fd, scattered = self->whole.fd, contiguous = np_test_export(PAGES, 0);

	ASSERT_LE(0, contiguous);
	check_part(_metadata, fd, scattered, 0, 0, PAGES, PAGES);
	check_part(_metadata, fd, scattered, 0, PAGES, PAGES, PAGES);
	check_part(_metadata, fd, scattered, 3, 2, 2, 2);
	check_part(_metadata, fd, scattered, 5, 0, PAGES - 5, PAGES - 5);
	check_part(_metadata, fd, scattered, PAGES - 1, 1, 1, 1);
	check_part(_metadata, fd, contiguous, 3, 2, 2, 1);
	check_part(_metadata, fd, contiguous, PAGES - 1, 0, 1, 1);
	close(contiguous);
}

/*
 * An exporter may split contiguous memory into several entries; each must be aligned to
 * the controller's page size.
 */
TEST_F(import, mapping_split_at_odd_boundaries)
{
	static const uint32_t odd[] = { NVMEP_TEST_ODD_START, NVMEP_TEST_ODD_END };
	int fd = self->ctrl.fd, dmabuf = np_test_export(PAGES, NVMEP_TEST_PIECES);
	struct nvme_peer_buf_import import;
	size_t i;

	ASSERT_LE(0, dmabuf);
	check_part(_metadata, fd, dmabuf, 0, 0, PAGES, 1);
	check_part(_metadata, fd, dmabuf, 2, 3, 3, 1);
	close(dmabuf);
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		dmabuf = np_test_export(PAGES, NVMEP_TEST_PIECES | odd[i]);
		ASSERT_LE(0, dmabuf);
		EXPECT_EQ(-EINVAL, np_import(fd, dmabuf, 0, &import)) {
			TH_LOG("flags %#x", odd[i]);
		}
		close(dmabuf);
	}
}

TEST_F(import, invalid_ranges)
{
	static const struct {
		uint64_t offset;
		uint64_t length;
		int error;
	} cases[] = {
		{ PAGES * NP_PAGE, 0, -ERANGE },
		{ PAGES * NP_PAGE, NP_PAGE, -ERANGE },
		{ 0, (PAGES + 1) * NP_PAGE, -ERANGE },
		{ (PAGES - 1) * NP_PAGE, 2 * NP_PAGE, -ERANGE },
		{ 1ULL << 63, 1ULL << 63, -ERANGE },
		{ 0, 0xfffffffffffff000ULL, -ERANGE },
		{ 512, 0, -EINVAL },
		{ 0, 100, -EINVAL },
		{ 0, (PAGES + 1) * NP_PAGE + 512, -EINVAL },
		{ (PAGES + 1) * NP_PAGE + 512, 0, -EINVAL },
	};
	struct nvme_peer_buf_import import;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		import = (struct nvme_peer_buf_import){
			.size = sizeof(import),
			.dmabuf_fd = self->whole.fd,
			.offset = cases[i].offset,
			.length = cases[i].length,
		};
		EXPECT_EQ(cases[i].error, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_IMPORT, &import)) {
			TH_LOG("offset %#llx, length %#llx", (unsigned long long)cases[i].offset,
			       (unsigned long long)cases[i].length);
		}
	}
	EXPECT_EQ(-EINVAL, import_part(self->ctrl.fd, self->whole.fd, 4, 0, 0, &import));
	EXPECT_EQ(-EINVAL, import_part(self->ctrl.fd, self->whole.fd, 0xffffffffU, 0, 0, &import));
}

/* A page of its own: DMA-API debugging warns about many mappings of one page. */
static int import_a_page(int ctrl_fd, struct nvme_peer_buf_import *import)
{
	int dmabuf = np_test_export(1, 0);
	int ret;

	if (dmabuf < 0)
		return dmabuf;
	ret = np_import(ctrl_fd, dmabuf, 0, import);
	close(dmabuf);
	return ret;
}

TEST_F_TIMEOUT(import, too_many_buffers, 240)
{
	struct nvme_peer_buf_import import;
	uint32_t last = self->whole.handle;
	int ret, count = 0;

	while (!(ret = import_a_page(self->ctrl.fd, &import)) && count++ < 10000)
		last = import.handle;
	EXPECT_EQ(-EDQUOT, ret);
	for (; last > self->whole.handle; last--)
		ASSERT_EQ(0, np_release(self->ctrl.fd, last));
}

TEST_F(import, reserved_fields)
{
	struct nvme_peer_buf_import import;
	size_t i;

	for (i = 0; i < sizeof(import.reserved) / sizeof(import.reserved[0]); i++) {
		import = (struct nvme_peer_buf_import){
			.size = sizeof(import),
			.dmabuf_fd = self->whole.fd,
		};
		import.reserved[i] = 1;
		EXPECT_EQ(-EINVAL, np_ioctl(self->ctrl.fd, NVME_PEER_BUF_IMPORT, &import));
	}
}

TEST_F(import, mapping_direction_follows_access)
{
	static const uint32_t directions[] = {
		[NVME_PEER_ACCESS_BOTH] = DMA_BIDIRECTIONAL,
		[NVME_PEER_ACCESS_READ] = DMA_TO_DEVICE,
		[NVME_PEER_ACCESS_WRITE] = DMA_FROM_DEVICE,
		[NVME_PEER_ACCESS_READ | NVME_PEER_ACCESS_WRITE] = DMA_BIDIRECTIONAL,
	};
	struct nvmep_test_move maps = { .fd = self->whole.fd };
	struct nvme_peer_buf_import import;
	uint32_t access;

	for (access = 0; access < sizeof(directions) / sizeof(directions[0]); access++) {
		ASSERT_EQ(0, import_part(self->ctrl.fd, self->whole.fd, access, 0, 0, &import));
		EXPECT_EQ(access, import.access);
		ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MAPS, &maps));
		EXPECT_EQ(directions[access], maps.direction);
		EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	}
}

/* The status page's dma-buf is read-only; ROUTE does not need write access. */
TEST_F(import, read_only_dmabuf_is_mapped_for_reading)
{
	struct nvme_peer_route route = { .size = sizeof(route) };
	struct nvme_peer_buf_import import;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(-EACCES, import_part(self->ctrl.fd, qp.status.fd, NVME_PEER_ACCESS_BOTH, 0, 0,
				       &import));
	EXPECT_EQ(-EACCES, import_part(self->ctrl.fd, qp.status.fd, NVME_PEER_ACCESS_WRITE, 0, 0,
				       &import));
	ASSERT_EQ(0, import_part(self->ctrl.fd, qp.status.fd, NVME_PEER_ACCESS_READ, 0, 0,
				 &import));
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	route.dmabuf_fd = qp.status.fd;
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_ROUTE, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_SYSTEM, route.data.verdict);
	np_qp_close(&qp);
}

/* Older kernels map memory that its exporter cannot move in both directions. */
TEST_F(import, read_only_dmabuf_is_not_mapped_for_writing)
{
	struct nvmep_test_move maps = { .fd = np_test_export(PAGES, NVMEP_TEST_NO_PIN |
								    NVMEP_TEST_READ_ONLY) };
	struct nvme_peer_route route = { .size = sizeof(route), .dmabuf_fd = maps.fd };
	struct nvme_peer_buf_import import;
	int ret;

	ASSERT_LE(0, maps.fd);
	ret = import_part(self->ctrl.fd, maps.fd, NVME_PEER_ACCESS_READ, 0, 0, &import);
	ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MAPS, &maps));
	EXPECT_EQ(maps.direction == DMA_TO_DEVICE ? 0 : -EACCES, ret);
	if (!ret)
		EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_ROUTE, &route));
	EXPECT_EQ(NVME_PEER_ROUTE_SYSTEM, route.data.verdict);
	close(maps.fd);
}

/**
 * struct parts - a dma-buf of which one page is imported for each use
 * @sq: read by the controller
 * @cq: written
 * @out: read
 * @in: written
 */
struct parts {
	struct nvme_peer_buf_import sq, cq, out, in;
};

static int import_parts(int ctrl_fd, int dmabuf, struct parts *parts)
{
	return import_part(ctrl_fd, dmabuf, NVME_PEER_ACCESS_READ, 0, 1, &parts->sq) ?:
	       import_part(ctrl_fd, dmabuf, NVME_PEER_ACCESS_WRITE, 1, 1, &parts->cq) ?:
	       import_part(ctrl_fd, dmabuf, NVME_PEER_ACCESS_READ, 2, 1, &parts->out) ?:
	       import_part(ctrl_fd, dmabuf, NVME_PEER_ACCESS_WRITE, 3, 1, &parts->in);
}

static int release_parts(int ctrl_fd, const struct parts *parts)
{
	return np_release(ctrl_fd, parts->sq.handle) ?: np_release(ctrl_fd, parts->cq.handle) ?:
	       np_release(ctrl_fd, parts->out.handle) ?: np_release(ctrl_fd, parts->in.handle);
}

static int create(int ctrl_fd, uint32_t sq_handle, uint64_t sq_offset, uint32_t cq_handle,
		  struct nvme_peer_qp_create *create)
{
	*create = (struct nvme_peer_qp_create){
		.size = sizeof(*create),
		.mode = NVME_PEER_MODE_DIRECT,
		.sq_entries = ENTRIES,
		.cq_entries = ENTRIES,
		.sq_handle = sq_handle,
		.cq_handle = cq_handle,
		.sq_offset = sq_offset,
	};
	return np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, create);
}

TEST_F(import, rings_need_matching_access)
{
	int fd = self->ctrl.fd, dmabuf = np_test_export(PAGES, 0);
	struct nvme_peer_qp_create qp;
	struct parts parts;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, import_parts(fd, dmabuf, &parts));
	EXPECT_EQ(-EACCES, create(fd, parts.cq.handle, 0, 0, &qp));
	EXPECT_EQ(-EACCES, create(fd, 0, 0, parts.sq.handle, &qp));
	/* A ring beyond the end of the range. */
	EXPECT_EQ(-ERANGE, create(fd, parts.sq.handle, NP_PAGE, 0, &qp));
	EXPECT_EQ(0, create(fd, parts.sq.handle, 0, parts.cq.handle, &qp));
	close(qp.qp_fd);
	EXPECT_EQ(0, release_parts(fd, &parts));
	close(dmabuf);
}

/* Two imports of the same page overlap. */
TEST_F(import, overlap_is_detected_across_imports)
{
	int fd = self->ctrl.fd, dmabuf = self->whole.fd;
	struct nvme_peer_qp_create qp, other;
	struct nvme_peer_buf_import part;

	ASSERT_EQ(0, import_part(fd, dmabuf, NVME_PEER_ACCESS_BOTH, 2, 2, &part));
	ASSERT_EQ(0, create(fd, part.handle, 0, 0, &qp));
	EXPECT_EQ(-EEXIST, create(fd, self->whole.handle, 2 * NP_PAGE, 0, &other));
	ASSERT_EQ(0, create(fd, self->whole.handle, 0, 0, &other));
	close(other.qp_fd);
	close(qp.qp_fd);
	/* In the reverse order. */
	ASSERT_EQ(0, create(fd, self->whole.handle, 2 * NP_PAGE, 0, &qp));
	EXPECT_EQ(-EEXIST, create(fd, part.handle, 0, 0, &other));
	close(qp.qp_fd);
	EXPECT_EQ(0, np_release(fd, part.handle));
}

/* A submission ring that fills its pages ends where the next ring begins. */
TEST_F(import, adjacent_rings_are_accepted)
{
	static const uint64_t places[] = { 1, 2, 0 };
	int qps[3];
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct nvme_peer_qp_create create = {
			.size = sizeof(create),
			.sq_entries = NP_PAGE / sizeof(struct np_command),
			.cq_entries = NP_PAGE / sizeof(struct np_command),
			.sq_handle = self->whole.handle,
			.sq_offset = places[i] * NP_PAGE,
		};

		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
		qps[i] = create.qp_fd;
	}
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		close(qps[i]);
}

static uint64_t address_of(int ctrl_fd, uint32_t handle)
{
	uint64_t addresses[PAGES] = { 0 };
	uint32_t count;

	return table(ctrl_fd, handle, addresses, &count) ? 0 : addresses[0];
}

/* A queue pair whose rings lie in two of the ranges; @bytes is the mapping. */
static int open_qp(struct np_qp *qp, int ctrl_fd, const struct parts *parts, uint8_t *bytes)
{
	struct nvme_peer_qp_info info;
	int ret;

	*qp = (struct np_qp){ .phase = 1, .sq.fd = -1, .cq.fd = -1, .status.fd = -1 };
	ret = create(ctrl_fd, parts->sq.handle, 0, parts->cq.handle, &qp->create);
	if (ret)
		return ret;
	qp->fd = qp->create.qp_fd;
	qp->sq.at = bytes;
	qp->cq.at = bytes + NP_PAGE;
	ret = np_qp_info(qp->fd, &info) ?:
	      np_export_open(&qp->doorbell, qp->fd, NVME_PEER_EXPORT_DOORBELL, 0);
	qp->tail_doorbell = qp->doorbell.at;
	qp->head_doorbell = (void *)((uint8_t *)qp->doorbell.at + info.doorbell_stride);
	return ret;
}

static struct np_command transfer(uint8_t opcode, uint64_t address)
{
	return (struct np_command){
		.opcode = opcode,
		.nsid = 1,
		.prp1 = address,
		.cdw10 = { (uint32_t)(NP_AREA(11) / NP_BLOCK), 0, NP_PAGE / NP_BLOCK - 1 },
	};
}

/* The IOMMU would block an access against the direction of the mapping. */
TEST_F(import, controller_access_follows_import)
{
	int fd = self->ctrl.fd, dmabuf = np_test_export(PAGES, 0);
	struct np_command command;
	struct parts parts;
	struct np_qp qp;
	uint8_t *bytes;

	ASSERT_LE(0, dmabuf);
	bytes = mmap(NULL, PAGES * NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
	ASSERT_NE(MAP_FAILED, bytes);
	ASSERT_EQ(0, import_parts(fd, dmabuf, &parts));
	ASSERT_EQ(0, open_qp(&qp, fd, &parts, bytes));
	np_pattern(bytes + 2 * NP_PAGE, NP_PAGE, NP_AREA(11), 5);
	command = transfer(NVMEPEER_OP_WRITE, address_of(fd, parts.out.handle));
	EXPECT_EQ(0, np_qp_run(&qp, &command, NP_TIMEOUT_MS));
	command = transfer(NVMEPEER_OP_READ, address_of(fd, parts.in.handle));
	EXPECT_EQ(0, np_qp_run(&qp, &command, NP_TIMEOUT_MS));
	EXPECT_EQ(0, memcmp(bytes + 2 * NP_PAGE, bytes + 3 * NP_PAGE, NP_PAGE));
	np_qp_close(&qp);
	EXPECT_EQ(0, release_parts(fd, &parts));
	munmap(bytes, PAGES * NP_PAGE);
	close(dmabuf);
}

/* The table has the address of every page of scattered memory. */
TEST_F(import, table_has_address_of_each_page)
{
	uint8_t *bytes = self->whole.bytes, page[NP_PAGE];
	uint64_t addresses[PAGES];
	struct np_command command;
	struct np_qp qp;
	uint32_t i, count;

	ASSERT_EQ(0, table(self->ctrl.fd, self->whole.handle, addresses, &count));
	ASSERT_EQ(PAGES, count);
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	for (i = 0; i < PAGES; i++) {
		np_pattern(page, NP_PAGE, NP_AREA(11), i);
		memcpy(bytes, page, NP_PAGE);
		command = transfer(NVMEPEER_OP_WRITE, addresses[0]);
		ASSERT_EQ(0, np_qp_run(&qp, &command, NP_TIMEOUT_MS));
		memset(bytes, 0, PAGES * NP_PAGE);
		command = transfer(NVMEPEER_OP_READ, addresses[i]);
		EXPECT_EQ(0, np_qp_run(&qp, &command, NP_TIMEOUT_MS));
		EXPECT_EQ(0, memcmp(bytes + i * NP_PAGE, page, NP_PAGE));
	}
	np_qp_close(&qp);
}

/* --- memory that is being moved ------------------------------------------------- */

/* The import's own limit, and a margin for a slow machine. */
#define ARRIVES_MS	10000
#define TOO_LATE_MS	25000

/**
 * struct waiting - a thread that imports
 * @ctrl_fd: controller
 * @dmabuf: the dma-buf
 * @ret: result of the import
 */
struct waiting {
	int ctrl_fd;
	int dmabuf;
	int ret;
	pthread_t thread;
};

static void *wait_for_memory(void *argument)
{
	struct waiting *waiting = argument;
	struct nvme_peer_buf_import import;

	waiting->ret = np_import(waiting->ctrl_fd, waiting->dmabuf, 0, &import) ?:
		       np_release(waiting->ctrl_fd, import.handle);
	return NULL;
}

/* The import waits for the exporter's fence, and fails if it does not signal in time. */
TEST_F_TIMEOUT(import, import_waits_for_move_fence, 90)
{
	struct waiting waiting = { .ctrl_fd = self->ctrl.fd };
	struct nvmep_test_move move;
	int64_t start;

	waiting.dmabuf = np_test_export(PAGES, NVMEP_TEST_MOVING);
	ASSERT_LE(0, waiting.dmabuf);
	ASSERT_EQ(0, pthread_create(&waiting.thread, NULL, wait_for_memory, &waiting));
	np_sleep_ms(1000);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(waiting.thread, NULL));
	move.fd = waiting.dmabuf;
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_LET_GO, &move));
	pthread_join(waiting.thread, NULL);
	EXPECT_EQ(0, waiting.ret);
	close(waiting.dmabuf);

	waiting.dmabuf = np_test_export(PAGES, NVMEP_TEST_MOVING);
	ASSERT_LE(0, waiting.dmabuf);
	start = np_now_ms();
	wait_for_memory(&waiting);
	EXPECT_EQ(-ETIMEDOUT, waiting.ret);
	EXPECT_LE(ARRIVES_MS, np_now_ms() - start);
	EXPECT_GT(TOO_LATE_MS, np_now_ms() - start);
	close(waiting.dmabuf);
}

/* --- memory that is taken back during its import --------------------------------- */

static bool wait_unmapped(int test, int dmabuf)
{
	struct nvmep_test_move move = { .fd = dmabuf };
	int i;

	for (i = 0; i < NP_TIMEOUT_MS / 10; i++) {
		if (np_ioctl(test, NVMEP_TEST_MAPS, &move))
			return false;
		if (!move.maps)
			return true;
		np_sleep_ms(10);
	}
	return false;
}

static void *import_on_cpu_1(void *argument)
{
	struct waiting *waiting = argument;
	struct nvme_peer_buf_import import;

	/* A stall blocks the CPU. */
	waiting->ret = np_run_on(1);
	if (!waiting->ret)
		waiting->ret = np_import(waiting->ctrl_fd, waiting->dmabuf, 0, &import) ?:
			       np_release(waiting->ctrl_fd, import.handle);
	return NULL;
}

/*
 * The exporter invalidates a mapping whose placement is being looked up. The mapping
 * stays until that ends, as it walks the tables of the IOMMU, and the import fails.
 */
TEST_F_TIMEOUT(import, mapping_stays_while_its_placement_is_read, 60)
{
	struct nvmep_test_stall walk = {
		.function = "region_intersects",
		.after = "nvmep_placement_find",
	};
	struct waiting waiting = { .ctrl_fd = self->ctrl.fd };
	struct nvmep_test_move move;
	int stall;

	waiting.dmabuf = np_test_export(PAGES, NVMEP_TEST_SCATTERED);
	ASSERT_LE(0, waiting.dmabuf);
	move.fd = waiting.dmabuf;
	stall = np_stall(&walk);
	ASSERT_LE(0, stall);
	ASSERT_EQ(0, np_run_on(0));
	ASSERT_EQ(0, pthread_create(&waiting.thread, NULL, import_on_cpu_1, &waiting));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MOVE, &move));
	np_sleep_ms(300);
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MAPS, &move));
	EXPECT_EQ(1, move.maps);
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_GO, NULL));
	pthread_join(waiting.thread, NULL);
	EXPECT_EQ(-ESTALE, waiting.ret);
	EXPECT_TRUE(wait_unmapped(self->test, waiting.dmabuf));
	close(stall);
	close(waiting.dmabuf);
}

/* The same while the import waits for the exporter's fence. */
TEST_F(import, memory_taken_back_before_its_fence_is_not_imported)
{
	struct waiting waiting = { .ctrl_fd = self->ctrl.fd };
	struct nvmep_test_move move;

	waiting.dmabuf = np_test_export(PAGES, NVMEP_TEST_MOVING);
	ASSERT_LE(0, waiting.dmabuf);
	move.fd = waiting.dmabuf;
	ASSERT_EQ(0, pthread_create(&waiting.thread, NULL, wait_for_memory, &waiting));
	for (move.maps = 0; !move.maps; np_sleep_ms(1))
		ASSERT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MAPS, &move));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_MOVE, &move));
	EXPECT_TRUE(wait_unmapped(self->test, waiting.dmabuf));
	EXPECT_EQ(0, np_ioctl(self->test, NVMEP_TEST_LET_GO, &move));
	pthread_join(waiting.thread, NULL);
	EXPECT_EQ(-ESTALE, waiting.ret);
	close(waiting.dmabuf);
}

/*
 * Reset work takes the lock of the peers, so no call allocates memory under it, which may wait for
 * I/O to this disk. The import is stalled where it allocates the handle; another call takes the lock.
 */
TEST_F_TIMEOUT(import, handle_is_allocated_without_lock_of_peers, 60)
{
	struct nvmep_test_stall allocation = {
		.function = "__xa_alloc",
		.after = "nvmep_buf_charge",
	};
	struct waiting waiting = { .ctrl_fd = self->ctrl.fd, .dmabuf = self->whole.fd };
	int stall = np_stall(&allocation);

	ASSERT_LE(0, stall);
	ASSERT_EQ(0, np_run_on(0));
	ASSERT_EQ(0, pthread_create(&waiting.thread, NULL, import_on_cpu_1, &waiting));
	EXPECT_EQ(0, np_wait_stalled(stall));
	EXPECT_EQ(-ENOENT, np_release(self->ctrl.fd, ~0U));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_STALLED, NULL));
	EXPECT_EQ(0, np_ioctl(stall, NVMEP_TEST_GO, NULL));
	pthread_join(waiting.thread, NULL);
	EXPECT_EQ(0, waiting.ret);
	close(stall);
}

/* --- locked memory --------------------------------------------------------------- */

/*
 * A user whose limit is that of two imports, in a process of its own. Returns 0, or which
 * step has failed.
 */
static int import_with_limit(int ctrl_fd)
{
	struct nvme_peer_buf_import first, second, third;
	int dmabuf = np_test_export(PAGES, 0);

	if (np_limit_locked(2 * PAGES) || setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	if (np_import(ctrl_fd, dmabuf, 0, &first) || np_import(ctrl_fd, dmabuf, 0, &second))
		return 2;
	if (np_import(ctrl_fd, dmabuf, 0, &third) != -ENOBUFS)
		return 3;
	if (np_release(ctrl_fd, second.handle) || np_import(ctrl_fd, dmabuf, 0, &second))
		return 4;
	/* Pinning locks all of a dma-buf. */
	if (np_release(ctrl_fd, second.handle) || np_limit_locked(2 * PAGES - 1) ||
	    import_part(ctrl_fd, dmabuf, 0, 0, 1, &second) != -ENOBUFS)
		return 5;
	return np_release(ctrl_fd, first.handle) ? 6 : 0;
}

TEST_F(import, imports_count_as_locked_memory)
{
	EXPECT_EQ(0, np_in_child(import_with_limit, self->ctrl.fd));
}

/* Becomes @user with CAP_SYS_RAWIO only. */
static int become(uid_t user)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = 1U << CAP_SYS_RAWIO, .permitted = 1U << CAP_SYS_RAWIO },
	};

	return prctl(PR_SET_KEEPCAPS, 1) || setresuid(user, user, user) ||
	       syscall(SYS_capset, &header, data) ? -errno : 0;
}

/*
 * A queue pair keeps the exposed buffer of a closed node, which counts until it is closed.
 * Returns 0, or which step has failed.
 */
static int close_node_with_limit(int ctrl_fd)
{
	struct nvme_peer_buf_import first, second;
	struct nvme_peer_qp_create pair;
	int dmabuf = np_test_export(PAGES, 0);
	uint64_t addresses[PAGES];
	struct np_ctrl other;
	uint32_t count;

	if (np_ctrl_open(&other, "np0") || np_limit_locked(PAGES) || become(NOBODY))
		return 1;
	if (np_import(other.fd, dmabuf, 0, &first) ||
	    table(other.fd, first.handle, addresses, &count) ||
	    np_qp_create(other.fd, ENTRIES, &pair))
		return 2;
	np_ctrl_close(&other);
	if (np_import(ctrl_fd, dmabuf, 0, &second) != -ENOBUFS)
		return 3;
	close(pair.qp_fd);
	if (np_import(ctrl_fd, dmabuf, 0, &second))
		return 4;
	return np_release(ctrl_fd, second.handle) ? 5 : 0;
}

/* The same of a buffer that its exporter takes back: unmapped, it counts no more. */
static int invalidate_with_limit(int ctrl_fd)
{
	int dmabuf = np_test_export(PAGES, 0), test = np_test_open();
	struct nvmep_test_move move = { .fd = dmabuf };
	struct nvme_peer_buf_import first, second;

	if (np_limit_locked(PAGES) || setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	if (np_import(ctrl_fd, dmabuf, 0, &first))
		return 2;
	if (np_ioctl(test, NVMEP_TEST_MOVE, &move) || !wait_unmapped(test, dmabuf))
		return 3;
	if (np_import(ctrl_fd, dmabuf, 0, &second))
		return 4;
	return np_release(ctrl_fd, first.handle) || np_release(ctrl_fd, second.handle) ? 5 : 0;
}

TEST_F(import, invalidated_buffer_is_not_locked_memory)
{
	EXPECT_EQ(0, np_in_child(invalidate_with_limit, self->ctrl.fd));
}

TEST_F(import, locked_memory_counts_until_last_queue_pair)
{
	EXPECT_EQ(0, np_in_child(close_node_with_limit, self->ctrl.fd));
}

TEST_F(import, locked_memory_is_unlimited_with_ipc_lock)
{
	struct nvme_peer_buf_import import;
	struct rlimit before;

	ASSERT_EQ(0, getrlimit(RLIMIT_MEMLOCK, &before));
	ASSERT_EQ(0, np_limit_locked(0));
	EXPECT_EQ(0, np_import(self->ctrl.fd, self->whole.fd, 0, &import));
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &before));
}

/* --- long imports --------------------------------------------------------------- */

#define BLOCK_PAGES	1024U
#define MOST_TIMES	65536U
/* Long enough to distinguish a complete import from an interrupted one. */
#define LONG_MS		3000

/* A dma-buf whose mapping names its pages @times times. */
static int repeated_export(int test, uint32_t times)
{
	struct nvmep_test_export export = { .pages = BLOCK_PAGES, .times = times };

	return np_ioctl(test, NVMEP_TEST_EXPORT, &export) ?: export.fd;
}

/*
 * Finds a dma-buf whose import takes long; the duration in @ms. An import that stood still takes long, too,
 * but not the one before, of a quarter of it.
 */
static int long_export(int ctrl_fd, int test, int64_t *ms)
{
	struct nvme_peer_buf_import import;
	int64_t start, quarter, took = 0;
	uint32_t times;
	int dmabuf, ret;

	for (times = 16;; times *= 4) {
		dmabuf = repeated_export(test, times);
		if (dmabuf < 0)
			return dmabuf;
		quarter = took;
		start = np_now_ms();
		ret = np_import(ctrl_fd, dmabuf, 0, &import) ?: np_release(ctrl_fd, import.handle);
		took = np_now_ms() - start;
		*ms = took < 4 * quarter ? took : 4 * quarter;
		if (ret || *ms >= LONG_MS / 2 || times == MOST_TIMES)
			break;
		close(dmabuf);
	}
	if (!ret)
		return dmabuf;
	close(dmabuf);
	return ret;
}

/*
 * Kills a process during its import, whose result is @import, shared with it. Returns how long it took to
 * exit, in ms, or -1 if the import was not interrupted.
 */
static int64_t kill_import(int ctrl_fd, int test, int dmabuf, struct nvme_peer_buf_import *import)
{
	struct nvmep_test_move maps = { .fd = dmabuf };
	int64_t start, gone;
	pid_t child;
	int status;

	import->length = 0;
	child = fork();
	if (!child) {
		np_import(ctrl_fd, dmabuf, 0, import);
		pause();
	}
	while (child > 0 && !maps.maps)
		if (np_ioctl(test, NVMEP_TEST_MAPS, &maps))
			break;
	start = np_now_ms();
	if (child < 0 || kill(child, SIGKILL) || waitpid(child, &status, 0) != child)
		return -1;
	gone = np_now_ms() - start;
	if (!import->length)
		return gone;
	np_release(ctrl_fd, import->handle);
	return -1;
}

/* An import of gigabytes walks page by page; SIGKILL must end it. */
TEST_F_TIMEOUT(import, fatal_signal_interrupts_import, 120)
{
	struct nvme_peer_buf_import *import;
	int64_t whole, gone = -1;
	int dmabuf = long_export(self->ctrl.fd, self->test, &whole), tries;

	ASSERT_LE(0, dmabuf);
	import = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, import);
	/* Skipped if the machine is so fast that no import takes long. */
	if (whole < LONG_MS / 4)
		SKIP(close(dmabuf); return, "no import takes long");
	for (tries = 0; tries < 5 && (gone < 0 || gone >= whole / 4); tries++)
		gone = kill_import(self->ctrl.fd, self->test, dmabuf, import);
	EXPECT_LE(0, gone);
	EXPECT_GT(whole / 4, gone) {
		TH_LOG("an import takes %lld ms, and went on for %lld", (long long)whole,
		       (long long)gone);
	}
	/* Nothing is left behind. */
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	munmap(import, NP_PAGE);
	close(dmabuf);
}

TEST_HARNESS_MAIN
