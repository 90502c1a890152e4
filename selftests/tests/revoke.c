// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unbind a controller whose queue pairs are mapped, imported and active: importers are
 * invalidated and waited for, doorbells fault or are harmless, and no memory is written
 * afterwards.
 *
 * kernels: debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * long-iommu: on off pt
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define ENTRIES		128U
#define PAGES		33U
#define POISON		0x5a
#define DATA_BYTES	((PAGES - 1) * NP_PAGE)

/* What the log says if an importer, or a holder of a lock, has not let go before the deadline, which is 5 s. */
#define NOT_CLEAN	"an importer still maps its doorbells"
/* Less than that. */
#define FAST_MS		4000
/* Rounds of a test that had to be as fast and was not. */
#define ROUNDS		3U

#define PCI_COMMAND		4
#define PCI_COMMAND_MEMORY	2

FIXTURE(revoke)
{
	struct np_ctrl ctrl;
	struct np_buffer buffer;
	struct np_qp qp;
	char objects[NP_OBJECTS];
	char other[16];
	int importer;
};

FIXTURE_SETUP(revoke)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_module_objects(self->objects));
	ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_function_address("np1", self->other));
	self->importer = np_test_open();
	ASSERT_LE(0, self->importer);
}

/* After each test the controller can be bound again and has no objects left. */
FIXTURE_TEARDOWN(revoke)
{
	struct np_ctrl again;

	EXPECT_EQ(0, np_works_anywhere());
	close(self->importer);
	np_qp_close(&self->qp);
	np_buffer_close(&self->buffer);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_bind(self->ctrl.address));
	/* One controller file was open before, and one is open now. */
	EXPECT_EQ(0, np_ctrl_open(&again, "np0"));
	EXPECT_EQ(0, np_module_objects_wait(self->objects, NP_TIMEOUT_MS));
	np_ctrl_close(&again);
}

static int attach_slow(int test, int dmabuf, const char *function, uint32_t fence_ms,
		       uint32_t slow_ms)
{
	struct nvmep_test_attach attach = {
		.dmabuf_fd = dmabuf,
		.flags = NVMEP_TEST_FENCED | NVMEP_TEST_SLOW,
		.pci_address = np_parse_address(function),
		.fence_ms = fence_ms,
		.slow_ms = slow_ms,
	};

	return np_ioctl(test, NVMEP_TEST_ATTACH, &attach);
}

static int attach(int test, int dmabuf, const char *function, uint32_t flags)
{
	struct nvmep_test_attach attach = {
		.dmabuf_fd = dmabuf,
		.flags = flags,
		.pci_address = np_parse_address(function),
	};

	return np_ioctl(test, NVMEP_TEST_ATTACH, &attach);
}

static bool memory_decodes(const char *address)
{
	char path[128];
	uint16_t command = 0;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", address);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &command, sizeof(command), PCI_COMMAND) != sizeof(command))
		command = 0;
	close(fd);
	return command & PCI_COMMAND_MEMORY;
}

/* Submit as many reads as the ring holds, without waiting. */
static void start_reads(struct np_qp *qp, const struct np_buffer *buffer)
{
	struct np_command command;
	uint32_t i;

	for (i = 0; i < ENTRIES - 1; i++) {
		np_command_rw(&command, buffer, NVMEPEER_OP_READ, NP_AREA(3), 0, DATA_BYTES);
		np_qp_put(qp, &command);
	}
	np_qp_ring_doorbell(qp);
}

static bool all_bytes(const void *memory, size_t length, uint8_t value)
{
	const uint8_t *byte = memory;

	while (length && *byte == value)
		byte++, length--;
	return !length;
}

TEST_F(revoke, importers_are_invalidated_and_unmap)
{
	struct nvmep_test_importer state;

	ASSERT_EQ(0, attach(self->importer, self->qp.doorbell.fd, self->other, 0));
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_IMPORTER, &state));
	EXPECT_LE(1, state.invalidations);
	EXPECT_EQ(0, state.mapped);
	EXPECT_NE(0, attach(self->importer, self->qp.doorbell.fd, self->other, 0));
}

/*
 * An importer that attached before the revocation and maps after it is refused, and so is
 * a new attachment.
 */
TEST_F(revoke, late_importers_are_refused)
{
	struct nvmep_test_attach attachment = {};
	struct np_export *exports[] = { &self->qp.sq, &self->qp.doorbell };
	size_t i;
	int late[2];

	for (i = 0; i < 2; i++) {
		late[i] = np_test_open();
		ASSERT_LE(0, late[i]);
		ASSERT_EQ(0, attach(late[i], exports[i]->fd, self->other, NVMEP_TEST_UNMAPPED));
	}
	ASSERT_EQ(0, np_ioctl(late[0], NVMEP_TEST_MAP, &attachment));
	ASSERT_EQ(0, np_ioctl(late[0], NVMEP_TEST_DETACH, NULL));
	ASSERT_EQ(0, attach(late[0], exports[0]->fd, self->other, NVMEP_TEST_UNMAPPED));
	close(self->qp.fd);
	self->qp.fd = -1;
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-ENODEV, np_ioctl(late[i], NVMEP_TEST_MAP, &attachment));
		EXPECT_EQ(-ENODEV, attach(self->importer, exports[i]->fd, self->other,
					  NVMEP_TEST_UNMAPPED));
		close(late[i]);
	}
}

TEST_F(revoke, doorbells_fault_and_status_is_gone)
{
	const struct nvme_peer_status *status = self->qp.status.at;
	uint32_t generation = status->generation;

	ASSERT_EQ(0, np_store(self->qp.doorbell.at, 0));
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_EQ(-EFAULT, np_store(self->qp.doorbell.at, 1));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, self->qp.doorbell.fd, 0));
	EXPECT_EQ(NVME_PEER_QP_GONE, status->state);
	EXPECT_NE(0, status->reason);
	EXPECT_LE(generation, status->generation);
	/* Rings are host memory and stay readable until they are unmapped. */
	EXPECT_EQ(0, np_store(self->qp.sq.at, 0));
}

/*
 * An O_PATH file holds the dma-buf, but not its file, which is freed. The debug kernel
 * reports an access to that.
 */
TEST_F(revoke, closed_file_held_by_path)
{
	struct nvme_peer_qp_export out;
	char link[64];
	int path;

	ASSERT_EQ(0, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_DOORBELL, 0, &out));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", out.fd);
	path = open(link, O_PATH | O_CLOEXEC);
	ASSERT_LE(0, path);
	close(out.fd);
	/* The file is freed after an RCU grace period. */
	np_sleep_ms(500);
	ASSERT_EQ(0, np_pci_write(self->ctrl.address, "reset", "1"));
	ASSERT_EQ(0, np_qp_rearm(&self->qp, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	close(path);
}

TEST_F(revoke, open_files_return_eshutdown)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_buf_import import;
	struct nvme_peer_qp_export out;
	struct nvme_peer_qp_info info;
	struct nvme_peer_extents extents = { .size = sizeof(extents), .fd = self->ctrl.fd };

	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	ASSERT_EQ(0, np_qp_info(self->qp.fd, &info));
	EXPECT_EQ(NVME_PEER_QP_GONE, info.state);
	EXPECT_EQ(-ESHUTDOWN, np_ioctl(self->ctrl.fd, NVME_PEER_EXTENTS, &extents));
	EXPECT_EQ(-ESHUTDOWN, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_SQ, 0, &out));
	EXPECT_EQ(-ESHUTDOWN, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	EXPECT_EQ(-ESHUTDOWN, np_import(self->ctrl.fd, self->buffer.fd, 0, &import));
}

TEST_F(revoke, no_writes_after_unbind)
{
	size_t cq_bytes = ENTRIES * sizeof(struct np_completion);

	start_reads(&self->qp, &self->buffer);
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	memset(self->qp.cq.at, POISON, cq_bytes);
	memset(self->buffer.bytes, POISON, DATA_BYTES);
	np_sleep_ms(300);
	EXPECT_TRUE(all_bytes(self->qp.cq.at, cq_bytes, POISON));
	EXPECT_TRUE(all_bytes(self->buffer.bytes, DATA_BYTES, POISON));
}

/* The same for a queue pair that is closed while its controller stays bound. */
TEST_F(revoke, no_writes_after_close)
{
	size_t cq_bytes = ENTRIES * sizeof(struct np_completion);

	start_reads(&self->qp, &self->buffer);
	close(self->qp.fd);
	self->qp.fd = -1;
	memset(self->qp.cq.at, POISON, cq_bytes);
	memset(self->buffer.bytes, POISON, DATA_BYTES);
	np_sleep_ms(300);
	EXPECT_TRUE(all_bytes(self->qp.cq.at, cq_bytes, POISON));
	EXPECT_TRUE(all_bytes(self->buffer.bytes, DATA_BYTES, POISON));
}

/*
 * A late GPU stores to the doorbell of a deleted queue. Its commands are still in the
 * ring, so a controller that had not deleted the queue would execute them. The store goes
 * through the doorbell page of another queue pair, because the queue pair's own mapping
 * is zapped.
 */
TEST_F(revoke, late_doorbell_is_harmless)
{
	size_t cq_bytes = ENTRIES * sizeof(struct np_completion);
	struct nvme_peer_qp_info info;
	struct np_command command;
	struct np_qp other;
	uint32_t i;

	ASSERT_EQ(0, np_qp_open(&other, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_qp_info(self->qp.fd, &info));
	ASSERT_EQ(info.doorbell_length, other.doorbell.size);
	for (i = 0; i < 16; i++) {
		np_command_rw(&command, &self->buffer, NVMEPEER_OP_READ, NP_AREA(3), 0, DATA_BYTES);
		np_qp_put(&self->qp, &command);
	}
	close(self->qp.fd);
	self->qp.fd = -1;
	memset(self->qp.cq.at, POISON, cq_bytes);
	memset(self->buffer.bytes, POISON, DATA_BYTES);
	ASSERT_EQ(0, np_store((uint8_t *)other.doorbell.map + info.doorbell_offset, 16));
	np_sleep_ms(200);
	EXPECT_TRUE(all_bytes(self->qp.cq.at, cq_bytes, POISON));
	EXPECT_TRUE(all_bytes(self->buffer.bytes, DATA_BYTES, POISON));
	np_qp_close(&other);
}

/*
 * An importer that does not unmap delays the unbind, within a deadline. BAR decoding
 * stays on for its stores: a store to an address that is not decoded may kill a GPU.
 */
TEST_F_TIMEOUT(revoke, stuck_importer_delays_unbind_boundedly, 60)
{
	struct nvmep_test_importer state;
	int64_t start = np_now_ms();

	ASSERT_EQ(0, attach(self->importer, self->qp.doorbell.fd, self->other,
			    NVMEP_TEST_STUBBORN));
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_GT(40000, np_now_ms() - start);
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_IMPORTER, &state));
	EXPECT_LE(1, state.invalidations);
	EXPECT_EQ(1, state.mapped);
	EXPECT_TRUE(memory_decodes(self->ctrl.address));
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_DETACH, NULL));
}

/* Returns how long the unbind takes. */
static int64_t unbind_static(struct __test_metadata *_metadata, FIXTURE_DATA(revoke) *self)
{
	struct np_export doorbell;
	int log = np_log_open();
	int64_t start, took;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_export_open(&doorbell, self->qp.fd, NVME_PEER_EXPORT_DOORBELL,
				    NVME_PEER_EXPORT_ALLOW_STATIC));
	ASSERT_EQ(0, attach(self->importer, doorbell.fd, self->other, NVMEP_TEST_STATIC));
	start = np_now_ms();
	EXPECT_EQ(0, np_unbind(self->ctrl.address));
	took = np_now_ms() - start;
	EXPECT_EQ(0, np_log_wait(log, NOT_CLEAN, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_DETACH, NULL));
	np_export_close(&doorbell);
	close(log);
	return took;
}

/*
 * A static importer cannot be invalidated and is not waited for; the log reports its
 * mapping. Waiting takes 5 s, each time.
 */
TEST_F_TIMEOUT(revoke, static_importer_is_logged, 60)
{
	int64_t took = unbind_static(_metadata, self);
	uint32_t i;

	for (i = 1; i < ROUNDS && took >= FAST_MS; i++) {
		np_qp_close(&self->qp);
		np_buffer_close(&self->buffer);
		np_ctrl_close(&self->ctrl);
		ASSERT_EQ(0, np_bind(self->ctrl.address));
		ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
		ASSERT_EQ(0, np_buffer_open(&self->buffer, self->ctrl.fd, PAGES, 0));
		ASSERT_EQ(0, np_qp_open(&self->qp, self->ctrl.fd, ENTRIES));
		took = unbind_static(_metadata, self);
	}
	EXPECT_GT(FAST_MS, took);
}

/*
 * The deadline holds for several such importers of different dma-bufs of one queue pair.
 */
TEST_F_TIMEOUT(revoke, stuck_importers_share_one_deadline, 60)
{
	int64_t start;
	int importers[4], i;

	for (i = 0; i < 4; i++) {
		struct nvme_peer_qp_export export;

		importers[i] = np_test_open();
		ASSERT_LE(0, importers[i]);
		ASSERT_EQ(0, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_DOORBELL, 0, &export));
		ASSERT_EQ(0, attach(importers[i], export.fd, self->other, NVMEP_TEST_STUBBORN));
		close(export.fd);
	}
	start = np_now_ms();
	close(self->qp.fd);
	self->qp.fd = -1;
	EXPECT_GT(14000, np_now_ms() - start);
	for (i = 0; i < 4; i++)
		close(importers[i]);
}

/* The deadline holds for importers of different queue pairs. */
TEST_F_TIMEOUT(revoke, all_queue_pairs_share_one_deadline, 120)
{
	struct nvme_peer_qp_create create[4];
	struct nvmep_test_importer state;
	struct nvme_peer_qp_export export;
	int importers[4], i;
	int64_t start;

	for (i = 0; i < 4; i++) {
		importers[i] = np_test_open();
		ASSERT_LE(0, importers[i]);
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create[i]));
		ASSERT_EQ(0, np_export_fd(create[i].qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &export));
		ASSERT_EQ(0, attach_slow(importers[i], export.fd, self->other, NVMEP_TEST_NEVER,
					 500));
		close(export.fd);
	}
	start = np_now_ms();
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	/* One deadline is 5 s, four would be 20 s. */
	EXPECT_GT(15000, np_now_ms() - start);
	EXPECT_LE(4900, np_now_ms() - start);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, np_ioctl(importers[i], NVMEP_TEST_IMPORTER, &state));
		EXPECT_EQ(0, state.mapped);
		close(importers[i]);
		close(create[i].qp_fd);
	}
}

/* A fence of a device that is still active is waited for, and the deadline does not pass. */
TEST_F_TIMEOUT(revoke, late_fence_is_waited_for, 60)
{
	int log = np_log_open();
	int64_t start;

	ASSERT_LE(0, log);
	/* The fence's timer starts after this, and may be early by a tick. */
	start = np_now_ms();
	ASSERT_EQ(0, attach_slow(self->importer, self->qp.doorbell.fd, self->other, 1500, 0));
	close(self->qp.fd);
	self->qp.fd = -1;
	EXPECT_LE(1490, np_now_ms() - start);
	EXPECT_EQ(-ETIMEDOUT, np_log_wait(log, NOT_CLEAN, 0));
	close(log);
}

/* The mapping is waited for even if the fence never signals. */
TEST_F_TIMEOUT(revoke, unsignalled_fence_keeps_mapping_wait, 60)
{
	struct nvmep_test_importer state;
	int64_t start;

	ASSERT_EQ(0, attach_slow(self->importer, self->qp.doorbell.fd, self->other,
				 NVMEP_TEST_NEVER, 1500));
	start = np_now_ms();
	close(self->qp.fd);
	self->qp.fd = -1;
	EXPECT_LE(4900, np_now_ms() - start);
	EXPECT_GT(14000, np_now_ms() - start);
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_IMPORTER, &state));
	EXPECT_EQ(1, state.invalidations);
	EXPECT_EQ(0, state.mapped);
}

/* The mapping is waited for even if the fence signals at once. */
TEST_F_TIMEOUT(revoke, late_unmap_is_waited_for, 60)
{
	struct nvmep_test_importer state;

	ASSERT_EQ(0, attach_slow(self->importer, self->qp.doorbell.fd, self->other, 0, 1500));
	close(self->qp.fd);
	self->qp.fd = -1;
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_IMPORTER, &state));
	EXPECT_EQ(0, state.mapped);
}

static void *unbind_thread(void *address)
{
	return (void *)(intptr_t)np_unbind(address);
}

/**
 * struct hanging - a thread that imports a dma-buf whose exporter hangs
 * @ctrl: controller to import to
 * @fd: dma-buf
 * @tid: of the thread
 * @ret: result of the import
 */
struct hanging {
	int ctrl;
	int fd;
	atomic_int tid;
	int ret;
	pthread_t thread;
};

static void *import_thread(void *argument)
{
	struct hanging *hanging = argument;
	struct nvme_peer_buf_import import;

	atomic_store(&hanging->tid, gettid());
	hanging->ret = np_import(hanging->ctrl, hanging->fd, 0, &import);
	return NULL;
}

static int hang(struct hanging *hanging, int ctrl_fd, uint32_t where)
{
	hanging->ctrl = ctrl_fd;
	atomic_init(&hanging->tid, 0);
	hanging->fd = np_test_export(4, where);
	if (hanging->fd < 0)
		return hanging->fd;
	return -pthread_create(&hanging->thread, NULL, import_thread, hanging) ?:
	       np_wait_sleeps(&hanging->tid);
}

/* End the hang. Returns the result of the import, and how often the exporter mapped. */
static int let_go(int test, struct hanging *hanging, uint32_t *mappings)
{
	struct nvmep_test_move move = { .fd = hanging->fd };
	int ret = np_ioctl(test, NVMEP_TEST_LET_GO, &move);

	pthread_join(hanging->thread, NULL);
	ret = ret ?: np_ioctl(test, NVMEP_TEST_MAPS, &move);
	*mappings = move.mappings;
	close(hanging->fd);
	return ret ?: hanging->ret;
}

/* An exporter that hangs in its pin callback, as when it moves memory. */
TEST_F_TIMEOUT(revoke, exporter_hanging_in_pin_is_skipped, 90)
{
	const struct nvme_peer_status *status = self->qp.status.at;
	struct hanging hanging;
	uint32_t mappings;
	int64_t start;

	ASSERT_EQ(0, hang(&hanging, self->ctrl.fd, NVMEP_TEST_HANG_PIN));
	start = np_now_ms();
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_GT(15000, np_now_ms() - start);
	EXPECT_EQ(NVME_PEER_QP_GONE, status->state);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(hanging.thread, NULL));
	EXPECT_EQ(-ESHUTDOWN, let_go(self->importer, &hanging, &mappings));
	/*
	 * The device may belong to another driver by now, so nothing may be mapped for
	 * it.
	 */
	EXPECT_EQ(0, mappings);
}

/* The unbind in @unbinding waits for the exporter, and ends after it. */
static void ends_with_map(struct __test_metadata *_metadata, FIXTURE_DATA(revoke) *self,
			  struct hanging *hanging, pthread_t unbinding)
{
	uint32_t mappings;
	void *ret;

	EXPECT_EQ(EBUSY, pthread_tryjoin_np(hanging->thread, NULL));
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(unbinding, NULL));
	EXPECT_EQ(-ESHUTDOWN, let_go(self->importer, hanging, &mappings));
	EXPECT_EQ(1, mappings);
	pthread_join(unbinding, &ret);
	EXPECT_EQ(NULL, ret);
}

/*
 * An exporter that hangs in its map callback uses the device: it is waited for, after all
 * other steps.
 */
TEST_F_TIMEOUT(revoke, exporter_hanging_in_map_waited_for_last, 90)
{
	const struct nvme_peer_status *status = self->qp.status.at;
	struct hanging hanging;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, hang(&hanging, self->ctrl.fd, NVMEP_TEST_HANG_MAP));
	ASSERT_EQ(0, pthread_create(&thread, NULL, unbind_thread, self->ctrl.address));
	for (i = 0; i < 1000 && status->state != NVME_PEER_QP_GONE; i++)
		np_sleep_ms(10);
	EXPECT_GT(1000, i);
	/* The doorbells are revoked after the queue was deleted. */
	for (i = 0; i < 1000 && np_store(self->qp.doorbell.at, 1) != -EFAULT; i++)
		np_sleep_ms(10);
	EXPECT_GT(1000, i);
	/* The remaining steps take a fraction of this time. */
	np_sleep_ms(2000);
	ends_with_map(_metadata, self, &hanging, thread);
}

/*
 * Older kernels map the memory of an exporter without a pin callback while the importer
 * attaches.
 */
TEST_F_TIMEOUT(revoke, fixed_exporter_hanging_in_map_waited_for, 90)
{
	struct hanging hanging;
	pthread_t thread;

	ASSERT_EQ(0, hang(&hanging, self->ctrl.fd, NVMEP_TEST_NO_PIN | NVMEP_TEST_HANG_MAP));
	ASSERT_EQ(0, pthread_create(&thread, NULL, unbind_thread, self->ctrl.address));
	np_sleep_ms(15000);
	ends_with_map(_metadata, self, &hanging, thread);
}

/* Waits until a thread or process holds a lock by NVMEP_TEST_HOLD or NVMEP_TEST_SLOW_MAP. */
static int wait_held(void)
{
	int test = np_test_open(), ret = np_wait_held(test);

	close(test);
	return ret;
}

static void *map_doorbells_thread(void *test)
{
	struct nvmep_test_attach attach = {};

	return (void *)(intptr_t)np_ioctl(*(int *)test, NVMEP_TEST_MAP, &attach);
}

/* The kernel's description of the doorbells, which such a mapping uses, ends with the driver. */
TEST_F_TIMEOUT(revoke, mapping_in_progress_is_waited_for, 60)
{
	uint32_t ms = 9000;
	pthread_t thread;
	int64_t start;
	void *mapped;
	int ret;

	ret = np_ioctl(self->importer, NVMEP_TEST_SLOW_MAP, &ms);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "the kernel does not map doorbells for importers");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, attach(self->importer, self->qp.doorbell.fd, self->other,
			    NVMEP_TEST_UNMAPPED));
	start = np_now_ms();
	ASSERT_EQ(0, pthread_create(&thread, NULL, map_doorbells_thread, &self->importer));
	EXPECT_EQ(0, wait_held());
	EXPECT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_LE(ms, np_now_ms() - start);
	pthread_join(thread, &mapped);
	EXPECT_EQ(NULL, mapped);
}

/**
 * struct mapping - a thread that maps doorbells, and one that closes the queue pair
 * @test: stalls the mapping thread before its first page is mapped
 * @qp: the queue pair
 * @at: address of the mapping, where another one may be; NULL: any
 * @map: result of mmap()
 * @close: starts the close
 * @closed: close() has returned
 */
struct mapping {
	int test;
	struct np_qp *qp;
	void *at;
	void *map;
	atomic_bool close;
	atomic_bool closed;
	pthread_t mapper;
	pthread_t closer;
};

static void *map_thread(void *argument)
{
	struct mapping *mapping = argument;
	struct np_export *doorbell = &mapping->qp->doorbell;

	np_run_on(0);
	mapping->map = mmap(mapping->at, doorbell->size, PROT_WRITE,
			    MAP_SHARED | (mapping->at ? MAP_FIXED : 0), doorbell->fd, 0);
	return NULL;
}

static void *close_thread(void *argument)
{
	struct mapping *mapping = argument;

	while (!atomic_load(&mapping->close))
		np_sleep_ms(1);
	close(mapping->qp->fd);
	mapping->qp->fd = -1;
	atomic_store(&mapping->closed, true);
	return NULL;
}

/*
 * In this order, because starting a thread takes mmap_lock, which the stalled mmap()
 * holds.
 */
static int stall_mmap(struct mapping *mapping, const char *function)
{
	/* A revocation waits for longer. */
	struct nvmep_test_stall stall = { .limit_ms = 3000 };
	int ret = -pthread_create(&mapping->closer, NULL, close_thread, mapping);

	snprintf(stall.function, sizeof(stall.function), "%s", function);
	ret = ret ?: np_ioctl(mapping->test, NVMEP_TEST_STALL, &stall);
	ret = ret ?: -pthread_create(&mapping->mapper, NULL, map_thread, mapping);
	return ret ?: np_wait_stalled(mapping->test);
}

/* Returns whether the mapping was made, with its doorbells revoked. */
static bool close_during_mmap(struct __test_metadata *_metadata, FIXTURE_DATA(revoke) *self,
			      const char *function)
{
	struct mapping mapping = { .test = self->importer, .qp = &self->qp };
	bool closed;
	int i;

	EXPECT_EQ(0, np_works_on(1) ?: np_run_on(1));
	EXPECT_EQ(0, stall_mmap(&mapping, function));
	atomic_store(&mapping.close, true);
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_GONE, NP_TIMEOUT_MS));
	for (i = 0; i < 1000 && !atomic_load(&mapping.closed); i++)
		np_sleep_ms(1);
	/* On kernels where page faults wait for the mmap() too, it has ended by now. */
	closed = atomic_load(&mapping.closed);
	EXPECT_FALSE(closed && np_ioctl(self->importer, NVMEP_TEST_STALLED, NULL) == 0);
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_GO, NULL));
	pthread_join(mapping.mapper, NULL);
	pthread_join(mapping.closer, NULL);
	EXPECT_EQ(0, np_works_anywhere());
	if (mapping.map == MAP_FAILED)
		return false;
	EXPECT_EQ(-EFAULT, np_store(mapping.map, 0));
	munmap(mapping.map, self->qp.doorbell.size);
	return true;
}

/* An mmap() that inserts its pages after the end of the queue pair fails. */
TEST_F_TIMEOUT(revoke, mmap_fails_if_revoked_meanwhile, 60)
{
	EXPECT_FALSE(close_during_mmap(_metadata, self, "vmf_insert_pfn"));
}

/**
 * struct early_store - a thread that stores through a mapping before its mmap() returns
 * @at: where
 * @start: starts the store
 * @thread: ID of the thread, when it stores
 */
struct early_store {
	void *at;
	atomic_bool start;
	atomic_int thread;
};

static void *early_store_thread(void *argument)
{
	struct early_store *store = argument;

	while (!atomic_load(&store->start))
		np_sleep_ms(1);
	atomic_store(&store->thread, (int)gettid());
	return (void *)(intptr_t)np_store(store->at, 0);
}

/*
 * The revocation may end before an mmap() that it has refused, whose pages the kernel would free later:
 * another thread must not reach the doorbells in between.
 */
TEST_F_TIMEOUT(revoke, refused_mmap_leaves_no_pages, 60)
{
	struct nvmep_test_stall stall = { .function = "nvmep_mmap_put" };
	struct mapping mapping = { .test = self->importer, .qp = &self->qp };
	struct early_store store = { };
	pthread_t storer;
	void *ret;
	int test;

	/* So that no stack of a thread is there. */
	store.at = mmap(NULL, self->qp.doorbell.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, store.at);
	mapping.at = store.at;
	/* Page faults of other threads wait for the mmap() too. */
	ASSERT_EQ(0, mlockall(MCL_CURRENT | MCL_FUTURE));
	ASSERT_EQ(0, np_works_on(1) ?: np_run_on(1));
	ASSERT_EQ(0, pthread_create(&storer, NULL, early_store_thread, &store));
	test = np_stall(&stall);
	EXPECT_LE(0, test);
	EXPECT_EQ(0, stall_mmap(&mapping, "vmf_insert_pfn"));
	atomic_store(&mapping.close, true);
	EXPECT_EQ(0, np_qp_wait_state(&self->qp, NVME_PEER_QP_GONE, NP_TIMEOUT_MS));
	/* At its limit: to end a stall takes until the thread leaves the next one. */
	EXPECT_EQ(0, np_wait_stalled(test));
	atomic_store(&store.start, true);
	/* With a page it does not sleep, but ends. */
	np_wait_sleeps(&store.thread);
	close(test);
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_GO, NULL));
	pthread_join(mapping.mapper, NULL);
	pthread_join(mapping.closer, NULL);
	pthread_join(storer, &ret);
	munlockall();
	EXPECT_EQ(0, np_works_anywhere());
	EXPECT_EQ(MAP_FAILED, mapping.map);
	EXPECT_EQ(-EFAULT, (int)(intptr_t)ret);
}

/*
 * Between the last page and the end of mmap(), the driver cannot zap the mapping,
 * because it is not in the address space's list yet: revocation waits for it.
 */
TEST_F_TIMEOUT(revoke, revoke_waits_for_concurrent_mmap, 60)
{
	EXPECT_TRUE(close_during_mmap(_metadata, self, "nvmep_export_count_mmap"));
}

static int re_arm_after_function_reset(FIXTURE_DATA(revoke) *self)
{
	int ret = np_pci_write(self->ctrl.address, "reset", "1");

	return ret ?: np_qp_rearm(&self->qp, NP_TIMEOUT_MS);
}

/* So also for a process whose earlier mmap() a revocation has waited for. */
TEST_F_TIMEOUT(revoke, revoke_waits_for_later_mmap_of_process, 60)
{
	ASSERT_EQ(0, re_arm_after_function_reset(self));
	EXPECT_TRUE(close_during_mmap(_metadata, self, "nvmep_export_count_mmap"));
}

static void *store_thread(void *doorbell)
{
	return (void *)(intptr_t)(np_run_on(0) ?: np_store(doorbell, 0));
}

/*
 * A fault that passed the check before the revocation and inserts the page after it. The
 * close does not wait for it.
 */
TEST_F_TIMEOUT(revoke, fault_during_revocation_maps_nothing, 60)
{
	struct nvmep_test_stall stall = { .function = "vmf_insert_pfn" };
	pthread_t thread;
	int log;
	void *ret;

	ASSERT_EQ(0, re_arm_after_function_reset(self));
	ASSERT_EQ(0, np_works_on(1) ?: np_run_on(1));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_STALL, &stall));
	ASSERT_EQ(0, pthread_create(&thread, NULL, store_thread, (void *)self->qp.doorbell.at));
	EXPECT_EQ(0, np_wait_stalled(self->importer));
	log = np_log_open();
	EXPECT_LE(0, log);
	close(self->qp.fd);
	self->qp.fd = -1;
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_STALLED, NULL));
	/* A close that waits until the deadline for works that do not end says so. */
	EXPECT_EQ(-ETIMEDOUT, np_log_wait(log, NOT_CLEAN, 0));
	close(log);
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_GO, NULL));
	pthread_join(thread, &ret);
	EXPECT_EQ(-EFAULT, (int)(intptr_t)ret);
	EXPECT_EQ(-EFAULT, np_store(self->qp.doorbell.at, 0));
}

/**
 * struct holder - a process that holds a lock
 * @pid: the process
 * @dmabuf: see struct nvmep_test_hold
 */
struct holder {
	pid_t pid;
	int dmabuf;
};

/* Maps the doorbells and holds a lock for 20 seconds. */
static void hold(const struct holder *holder, const struct np_export *doorbell, int ready)
{
	struct nvmep_test_hold hold = { .dmabuf_fd = holder->dmabuf, .ms = 20000 };
	int test = np_test_open();

	if (test < 0 || mmap(NULL, doorbell->size, PROT_WRITE, MAP_SHARED, doorbell->fd, 0) ==
	    MAP_FAILED || write(ready, "", 1) != 1)
		_exit(1);
	np_ioctl(test, NVMEP_TEST_HOLD, &hold);
	_exit(0);
}

static int holder_start(struct holder *holder, const struct np_export *doorbell, int dmabuf)
{
	int ready[2];
	char byte;
	int ret;

	if (pipe(ready))
		return -errno;
	holder->dmabuf = dmabuf;
	holder->pid = fork();
	if (!holder->pid)
		hold(holder, doorbell, ready[1]);
	close(ready[1]);
	ret = read(ready[0], &byte, 1) == 1 ? 0 : -EIO;
	close(ready[0]);
	return ret ?: wait_held();
}

static void holder_end(struct holder *holder)
{
	kill(holder->pid, SIGKILL);
	waitpid(holder->pid, NULL, 0);
}

/* As with a page fault that a hung FUSE server serves: unbinding goes on after 5 s. */
TEST_F_TIMEOUT(revoke, held_mmap_lock_delays_unbind_boundedly, 60)
{
	struct holder holder;
	int64_t start;

	ASSERT_EQ(0, holder_start(&holder, &self->qp.doorbell, -1));
	start = np_now_ms();
	EXPECT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_GT(14000, np_now_ms() - start);
	/* Its doorbells are revoked nevertheless, as are those of others. */
	EXPECT_EQ(-EFAULT, np_store(self->qp.doorbell.at, 0));
	holder_end(&holder);
}

/* Read all events; returns how many are of @type. */
static int count_events(int qp_fd, uint32_t type)
{
	struct nvme_peer_event event;
	int count = 0;

	fcntl(qp_fd, F_SETFL, O_RDWR | O_NONBLOCK);
	while (read(qp_fd, &event, sizeof(event)) == sizeof(event))
		count += event.type == type;
	return count;
}

static bool becomes_ready(int qp_fd)
{
	int i;

	for (i = 0; i < 500 && !count_events(qp_fd, NVME_PEER_EVENT_READY); i++)
		np_sleep_ms(10);
	return i < 500;
}

/*
 * A driver or process holds a lock that revocation needs: a function reset does not wait
 * for it, and the queue pair is not re-armed before the revocation has ended, which would
 * take the restored doorbells.
 */
static void resets_despite_holder(struct __test_metadata *_metadata, FIXTURE_DATA(revoke) *self,
				  int dmabuf)
{
	struct nvme_peer_qp_info info;
	struct holder holder;
	int64_t start;

	ASSERT_EQ(0, holder_start(&holder, &self->qp.doorbell, dmabuf));
	start = np_now_ms();
	EXPECT_EQ(0, np_pci_write(self->ctrl.address, "reset", "1"));
	EXPECT_GT(10000, np_now_ms() - start);
	np_sleep_ms(1000);
	EXPECT_EQ(0, np_qp_info(self->qp.fd, &info));
	EXPECT_EQ(-EAGAIN, np_qp_rearm_loss(&self->qp, info.losses));
	EXPECT_EQ(0, count_events(self->qp.fd, NVME_PEER_EVENT_READY));
	holder_end(&holder);
	EXPECT_TRUE(becomes_ready(self->qp.fd));
	EXPECT_EQ(0, count_events(self->qp.fd, NVME_PEER_EVENT_READY));
	EXPECT_EQ(0, np_qp_rearm_loss(&self->qp, info.losses));
	EXPECT_EQ(0, np_store(self->qp.doorbell.at, 0));
}

TEST_F_TIMEOUT(revoke, held_reservation_lock_delays_no_reset, 60)
{
	resets_despite_holder(_metadata, self, self->qp.doorbell.fd);
}

TEST_F_TIMEOUT(revoke, held_mmap_lock_delays_no_reset, 60)
{
	resets_despite_holder(_metadata, self, -1);
}

static bool is_told(int importer)
{
	struct nvmep_test_importer state = {};
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (!state.invalidations && np_now_ms() < end) {
		np_ioctl(importer, NVMEP_TEST_IMPORTER, &state);
		np_sleep_ms(1);
	}
	return state.invalidations;
}

static bool is_zapped(const struct np_export *doorbell)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (np_store(doorbell->at, 1) != -EFAULT && np_now_ms() < end)
		np_sleep_ms(1);
	return np_store(doorbell->at, 1) == -EFAULT;
}

/*
 * Order of a revocation: when importers are invalidated, the queues are deleted, the
 * status page reports it and new users are refused. User mappings are zapped beside it.
 * A stuck importer gives time to check.
 */
TEST_F_TIMEOUT(revoke, importers_are_invalidated_last, 60)
{
	const struct nvme_peer_status *status = self->qp.status.at;
	struct nvmep_test_importer state;
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, attach(self->importer, self->qp.doorbell.fd, self->other,
			    NVMEP_TEST_STUBBORN));
	start_reads(&self->qp, &self->buffer);
	ASSERT_EQ(0, pthread_create(&thread, NULL, unbind_thread, self->ctrl.address));
	ASSERT_TRUE(is_told(self->importer));
	EXPECT_EQ(NVME_PEER_QP_GONE, status->state);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, self->qp.doorbell.fd, 0));
	EXPECT_TRUE(is_zapped(&self->qp.doorbell));
	memset(self->buffer.bytes, POISON, DATA_BYTES);
	np_sleep_ms(100);
	EXPECT_TRUE(all_bytes(self->buffer.bytes, DATA_BYTES, POISON));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_IMPORTER, &state));
	EXPECT_EQ(1, state.mapped);
	/* It unmaps now, so the unbind continues. */
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_DETACH, NULL));
	pthread_join(thread, &ret);
	EXPECT_EQ(NULL, ret);
}

static int create_in_buffer(int ctrl_fd, uint32_t handle, struct nvme_peer_qp_create *create)
{
	*create = (struct nvme_peer_qp_create){
		.size = sizeof(*create),
		.sq_entries = 64,
		.cq_entries = 64,
		.sq_handle = handle,
		.cq_handle = handle,
		.cq_offset = NP_PAGE,
		.qp_fd = -1,
	};
	return np_ioctl(ctrl_fd, NVME_PEER_QP_CREATE, create);
}

static uint32_t state_of(int qp_fd)
{
	struct nvme_peer_qp_info info;

	return np_qp_info(qp_fd, &info) ? 0 : info.state;
}

static bool becomes_gone(int qp_fd)
{
	int i;

	for (i = 0; i < 500 && state_of(qp_fd) != NVME_PEER_QP_GONE; i++)
		np_sleep_ms(10);
	return i < 500;
}

static bool becomes_unmapped(int test, struct nvmep_test_move *move)
{
	int i;

	for (i = 0; i < 500; i++) {
		if (np_ioctl(test, NVMEP_TEST_MAPS, move))
			return false;
		if (!move->maps)
			return true;
		np_sleep_ms(10);
	}
	return false;
}

/* Does an unmapped address fault at once?  Type DMA: strict, DMA-FQ: lazy. */
static bool is_strict(const char *address)
{
	char path[128], type[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group/type", address);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, type, sizeof(type) - 1) < 0)
		type[0] = '\0';
	close(fd);
	return !strcmp(type, "DMA\n");
}

static bool becomes_withdrawn(const struct np_export *doorbell)
{
	int i;

	for (i = 0; i < 500 && np_store(doorbell->at, 0) != -EFAULT; i++)
		np_sleep_ms(10);
	return i < 500;
}

/*
 * An exporter that moves its memory stops every queue pair that may use the old
 * addresses: those with rings in it, and once BUF_TABLE reported the addresses, those of
 * its node.  Without strict translation, those of other nodes as well: a stray command
 * would reach the memory.
 */
TEST_F(revoke, move_stops_pairs_with_exposed_addresses)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	struct nvme_peer_qp_create in_buffer, elsewhere, late;
	struct nvme_peer_buf_import again;
	struct np_ctrl second;

	ASSERT_EQ(0, create_in_buffer(self->ctrl.fd, self->buffer.handle, &in_buffer));
	ASSERT_EQ(0, np_ctrl_open(&second, "np0"));
	ASSERT_EQ(0, np_qp_create(second.fd, ENTRIES, &elsewhere));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_MOVE, &move));
	EXPECT_EQ(1, move.maps);
	EXPECT_TRUE(becomes_gone(in_buffer.qp_fd));
	EXPECT_TRUE(becomes_gone(self->qp.fd));
	EXPECT_TRUE(becomes_unmapped(self->importer, &move));
	EXPECT_TRUE(is_strict(self->ctrl.address) ? state_of(elsewhere.qp_fd) == NVME_PEER_QP_LIVE :
						    becomes_gone(elsewhere.qp_fd));
	EXPECT_TRUE(becomes_withdrawn(&self->qp.doorbell));
	/* An invalidated buffer stays invalid. */
	EXPECT_EQ(-ESTALE, create_in_buffer(self->ctrl.fd, self->buffer.handle, &late));
	/* Files of queue pairs that have ended do not keep it. This waits for the revocation. */
	EXPECT_EQ(0, np_release(self->ctrl.fd, self->buffer.handle));
	EXPECT_EQ(0, count_events(self->qp.fd, NVME_PEER_EVENT_READY));
	/* Nor do they keep the place of their rings. */
	ASSERT_EQ(0, np_import(self->ctrl.fd, self->buffer.fd, 0, &again));
	EXPECT_EQ(0, create_in_buffer(self->ctrl.fd, again.handle, &late));
	close(late.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, again.handle));
	close(in_buffer.qp_fd);
	close(elsewhere.qp_fd);
	np_ctrl_close(&second);
}

/* An administrator can make a strict domain lazy at any time, which the unbound driver ends. */
TEST_F(revoke, move_in_lazy_domain_stops_pairs_of_other_nodes)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	struct nvme_peer_qp_create elsewhere;
	struct np_ctrl second;
	char path[128];

	if (!is_strict(self->ctrl.address))
		SKIP(return, "the domain is not strict");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group/type", self->ctrl.address);
	ASSERT_EQ(0, np_write_file(path, "DMA-FQ"));
	ASSERT_EQ(0, np_ctrl_open(&second, "np0"));
	ASSERT_EQ(0, np_qp_create(second.fd, ENTRIES, &elsewhere));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_MOVE, &move));
	EXPECT_TRUE(becomes_gone(elsewhere.qp_fd));
	close(elsewhere.qp_fd);
	np_ctrl_close(&second);
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_EQ(0, np_write_file(path, "DMA"));
}

/*
 * A queue pair with rings in host memory, created after the exporter took back memory
 * whose addresses peers have: refused until the handle is released.
 */
TEST_F(revoke, no_pair_beside_stale_addresses)
{
	struct nvme_peer_qp_create create;
	struct nvmep_test_move move = {};
	struct np_buffer buffer;
	struct np_ctrl second;

	ASSERT_EQ(0, np_ctrl_open(&second, "np0"));
	ASSERT_EQ(0, np_buffer_open(&buffer, second.fd, PAGES, 0));
	move.fd = buffer.fd;
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_MOVE, &move));
	EXPECT_TRUE(becomes_unmapped(self->importer, &move));
	EXPECT_EQ(-ESTALE, np_qp_create(second.fd, ENTRIES, &create));
	/* Other nodes did not report these addresses. */
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(second.fd, buffer.handle));
	EXPECT_EQ(0, np_qp_create(second.fd, ENTRIES, &create));
	close(create.qp_fd);
	np_buffer_close(&buffer);
	np_ctrl_close(&second);
}

static int table_of(int ctrl_fd, uint32_t handle)
{
	uint64_t address;
	uint32_t got;

	return np_buf_table(ctrl_fd, handle, 0, &address, 1, &got);
}

/* The buffer's addresses were not exposed. */
static void moves_under_a_ring(struct __test_metadata *_metadata, FIXTURE_DATA(revoke) *self,
			       bool completions)
{
	int dmabuf = np_test_export(PAGES, 0);
	struct nvmep_test_move move = { .fd = dmabuf };
	struct nvme_peer_qp_create create = {
		.size = sizeof(create),
		.sq_entries = 64,
		.cq_entries = 64,
	};
	struct nvme_peer_buf_import import;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf, 0, &import));
	*(completions ? &create.cq_handle : &create.sq_handle) = import.handle;
	ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_PEER_QP_CREATE, &create));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_MOVE, &move));
	EXPECT_TRUE(becomes_gone(create.qp_fd));
	EXPECT_TRUE(becomes_unmapped(self->importer, &move));
	EXPECT_EQ(NVME_PEER_QP_LIVE, state_of(self->qp.fd));
	/* BUF_TABLE does not report stale addresses. */
	EXPECT_EQ(-ESTALE, table_of(self->ctrl.fd, import.handle));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(dmabuf);
}

TEST_F(revoke, move_stops_pairs_with_rings_in_buffer)
{
	moves_under_a_ring(_metadata, self, false);
	moves_under_a_ring(_metadata, self, true);
}

TEST_F(revoke, move_keeps_pairs_without_addresses)
{
	int dmabuf = np_test_export(PAGES, 0);
	struct nvmep_test_move move = { .fd = dmabuf };
	struct nvme_peer_buf_import import;

	ASSERT_LE(0, dmabuf);
	ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf, 0, &import));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_MOVE, &move));
	EXPECT_TRUE(becomes_unmapped(self->importer, &move));
	EXPECT_EQ(NVME_PEER_QP_LIVE, state_of(self->qp.fd));
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(dmabuf);
}

static void *close_fd_thread(void *fd)
{
	close((int)(intptr_t)fd);
	return NULL;
}

/* A queue pair whose doorbells the importer does not let go of. Returns its file, or a negative errno. */
static int create_stuck(FIXTURE_DATA(revoke) *self)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export export;
	int ret = np_qp_create(self->ctrl.fd, ENTRIES, &create) ?:
		  np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &export);

	if (ret)
		return ret;
	ret = attach(self->importer, export.fd, self->other, NVMEP_TEST_STUBBORN);
	close(export.fd);
	return ret ?: create.qp_fd;
}

/* Returns how long it takes from the start of the close to the end of the release. */
static int64_t release_during_close(struct __test_metadata *_metadata, FIXTURE_DATA(revoke) *self)
{
	int dmabuf = np_test_export(PAGES, 0), stuck = create_stuck(self);
	struct nvmep_test_move move = { .fd = dmabuf };
	struct nvme_peer_qp_create in_buffer;
	struct nvme_peer_buf_import import;
	int64_t start, took;
	pthread_t thread;
	int closing;

	ASSERT_LE(0, dmabuf);
	ASSERT_LE(0, stuck);
	ASSERT_EQ(0, np_import(self->ctrl.fd, dmabuf, 0, &import));
	ASSERT_EQ(0, create_in_buffer(self->ctrl.fd, import.handle, &in_buffer));
	start = np_now_ms();
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_fd_thread, (void *)(intptr_t)stuck));
	EXPECT_TRUE(is_told(self->importer));
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_MOVE, &move));
	EXPECT_TRUE(becomes_gone(in_buffer.qp_fd));
	close(in_buffer.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	took = np_now_ms() - start;
	/* Until the deadline it waits for the importer. */
	closing = pthread_tryjoin_np(thread, NULL);
	EXPECT_TRUE(closing == EBUSY || took >= FAST_MS);
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_DETACH, NULL));
	if (closing)
		pthread_join(thread, NULL);
	close(dmabuf);
	return took;
}

/*
 * Who releases an invalidated buffer does not wait for the importers of another owner's
 * queue pair that is being closed: this takes 5 s, each time.
 */
TEST_F_TIMEOUT(revoke, release_waits_for_no_other_owner, 60)
{
	int64_t took = release_during_close(_metadata, self);
	uint32_t i;

	for (i = 1; i < ROUNDS && took >= FAST_MS; i++)
		took = release_during_close(_metadata, self);
	EXPECT_GT(FAST_MS, took);
}

TEST_HARNESS_MAIN
