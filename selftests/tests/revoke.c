// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unbinding a controller whose queue pairs are mapped, imported and at work:
 * importers are told and wait for, doorbells fault or stay harmless, and
 * nothing is written to memory afterwards.
 *
 * kernels: 6.1 7 debug
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
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		128U
#define PAGES		33U
#define POISON		0x5a
#define DATA_BYTES	((PAGES - 1) * NP_PAGE)

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
	ASSERT_EQ(0, np_place("np1", self->other));
	self->importer = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->importer);
}

/* After any unbind the controller binds again and is as before. */
FIXTURE_TEARDOWN(revoke)
{
	struct np_ctrl again;

	close(self->importer);
	np_qp_close(&self->qp);
	np_buffer_close(&self->buffer);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_bind(self->ctrl.address));
	/* One open node was counted before, and one is now. */
	EXPECT_EQ(0, np_ctrl_open(&again, "np0"));
	EXPECT_EQ(0, np_module_objects_settle(self->objects, NP_TIMEOUT_MS));
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

/* As many reads as the ring holds, none of them waited for. */
static void start_reads(struct np_qp *qp, const struct np_buffer *buffer)
{
	struct np_command command;
	uint32_t i;

	for (i = 0; i < ENTRIES - 1; i++) {
		np_command_rw(&command, buffer, NP_CMD_READ, NP_AREA(3), 0, DATA_BYTES);
		np_qp_put(qp, &command);
	}
	np_qp_ring(qp);
}

static bool all_bytes(const void *memory, size_t length, uint8_t value)
{
	const uint8_t *byte = memory;

	while (length && *byte == value)
		byte++, length--;
	return !length;
}

TEST_F(revoke, importers_are_told_and_have_let_go)
{
	struct nvmep_test_importer state;

	ASSERT_EQ(0, attach(self->importer, self->qp.doorbell.fd, self->other, 0));
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_IMPORTER, &state));
	EXPECT_LE(1, state.invalidations);
	EXPECT_EQ(0, state.mapped);
	EXPECT_NE(0, attach(self->importer, self->qp.doorbell.fd, self->other, 0));
}

/* One that attached in time and maps too late gets nothing, and nobody attaches any more. */
TEST_F(revoke, importers_come_too_late)
{
	struct nvmep_test_attach attachment = {};
	struct np_export *exports[] = { &self->qp.sq, &self->qp.doorbell };
	size_t i;
	int late[2];

	for (i = 0; i < 2; i++) {
		late[i] = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
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

TEST_F(revoke, doorbells_fault_and_the_status_page_says_gone)
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
	/* Rings are host memory and stay readable until the last mapping goes. */
	EXPECT_EQ(0, np_store(self->qp.sq.at, 0));
}

TEST_F(revoke, open_files_answer_that_it_is_gone)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_buf_import import;
	struct nvme_peer_qp_export out;
	struct nvme_peer_qp_info info;

	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	ASSERT_EQ(0, np_qp_info(self->qp.fd, &info));
	EXPECT_EQ(NVME_PEER_QP_GONE, info.state);
	EXPECT_EQ(-ESHUTDOWN, np_export_fd(self->qp.fd, NVME_PEER_EXPORT_SQ, 0, &out));
	EXPECT_EQ(-ESHUTDOWN, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	EXPECT_EQ(-ESHUTDOWN, np_import(self->ctrl.fd, self->buffer.fd, 0, &import));
}

TEST_F(revoke, nothing_is_written_afterwards)
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

/* The same for a queue pair that is closed while its controller lives on. */
TEST_F(revoke, nothing_is_written_after_close)
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
 * A GPU that is late stores to the doorbell of a queue that is gone.  Its
 * commands still lie in the ring: a controller that still knew the queue would
 * take them.  The store goes through the doorbell page of another queue pair,
 * as its own mapping is zapped.
 */
TEST_F(revoke, a_late_doorbell_is_harmless)
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
		np_command_rw(&command, &self->buffer, NP_CMD_READ, NP_AREA(3), 0, DATA_BYTES);
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
 * Who does not let go delays the unbind, but not for ever, and what it stores
 * to must keep decoding: a store to nowhere may kill a GPU.
 */
TEST_F_TIMEOUT(revoke, a_stubborn_importer_does_not_block_for_ever, 60)
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

/* Who cannot be told is not waited for; that it keeps its mapping is said. */
TEST_F(revoke, an_importer_that_cannot_be_told_is_named)
{
	struct np_export doorbell;
	int log = np_log_open();
	int64_t start;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_export_open(&doorbell, self->qp.fd, NVME_PEER_EXPORT_DOORBELL,
				    NVME_PEER_EXPORT_ALLOW_STATIC));
	ASSERT_EQ(0, attach(self->importer, doorbell.fd, self->other, NVMEP_TEST_STATIC));
	start = np_now_ms();
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	EXPECT_GT(4000, np_now_ms() - start);
	EXPECT_EQ(0, np_log_wait(log, "an importer still maps its doorbells", NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_DETACH, NULL));
	np_export_close(&doorbell);
	close(log);
}

/* Nor do several that hold different dma-bufs of the doorbells one after another. */
TEST_F_TIMEOUT(revoke, stubborn_importers_share_one_deadline, 60)
{
	int64_t start;
	int importers[4], i;

	for (i = 0; i < 4; i++) {
		struct nvme_peer_qp_export export;

		importers[i] = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
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

/* Nor do those of different queue pairs. */
TEST_F_TIMEOUT(revoke, all_queue_pairs_share_one_deadline, 120)
{
	struct nvme_peer_qp_create create[4];
	struct nvmep_test_importer state;
	struct nvme_peer_qp_export export;
	int importers[4], i;
	int64_t start;

	for (i = 0; i < 4; i++) {
		importers[i] = open(NVMEP_TEST_NODE, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, importers[i]);
		ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create[i]));
		ASSERT_EQ(0, np_export_fd(create[i].qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &export));
		ASSERT_EQ(0, attach_slow(importers[i], export.fd, self->other, NVMEP_TEST_NEVER,
					 500));
		close(export.fd);
	}
	start = np_now_ms();
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	/* One deadline is 5 s, four are 20. */
	EXPECT_GT(15000, np_now_ms() - start);
	EXPECT_LE(4900, np_now_ms() - start);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, np_ioctl(importers[i], NVMEP_TEST_IMPORTER, &state));
		EXPECT_EQ(0, state.mapped);
		close(importers[i]);
		close(create[i].qp_fd);
	}
}

/* A device that is still at work is waited for, as long as it lets itself be waited for. */
TEST_F_TIMEOUT(revoke, a_fence_that_signals_late_is_waited_for, 60)
{
	int64_t start;

	ASSERT_EQ(0, attach_slow(self->importer, self->qp.doorbell.fd, self->other, 1500, 0));
	start = np_now_ms();
	close(self->qp.fd);
	self->qp.fd = -1;
	/* The fence began to run down before. */
	EXPECT_LE(1000, np_now_ms() - start);
	EXPECT_GT(4900, np_now_ms() - start);
}

/* The mapping is what counts: it is waited for, whatever becomes of the fence. */
TEST_F_TIMEOUT(revoke, a_fence_that_never_signals_does_not_skip_the_wait_for_the_mapping, 60)
{
	struct nvmep_test_importer state;
	int64_t start;

	ASSERT_EQ(0, attach_slow(self->importer, self->qp.doorbell.fd, self->other,
				 NVMEP_TEST_NEVER, 3000));
	start = np_now_ms();
	close(self->qp.fd);
	self->qp.fd = -1;
	EXPECT_LE(4900, np_now_ms() - start);
	EXPECT_GT(14000, np_now_ms() - start);
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_IMPORTER, &state));
	EXPECT_EQ(1, state.invalidations);
	EXPECT_EQ(0, state.mapped);
}

/* And with the fence signalled at once the mapping still counts. */
TEST_F_TIMEOUT(revoke, a_mapping_that_goes_late_is_waited_for, 60)
{
	struct nvmep_test_importer state;

	ASSERT_EQ(0, attach_slow(self->importer, self->qp.doorbell.fd, self->other, 0, 2000));
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
 * @ctrl: the controller that it imports it for
 * @fd: of the dma-buf
 * @ret: of the import
 */
struct hanging {
	int ctrl;
	int fd;
	int ret;
	pthread_t thread;
};

static void *import_thread(void *argument)
{
	struct hanging *hanging = argument;
	struct nvme_peer_buf_import import;

	hanging->ret = np_import(hanging->ctrl, hanging->fd, 0, &import);
	return NULL;
}

static int hang(struct hanging *hanging, int ctrl_fd, uint32_t where)
{
	int ret;

	hanging->ctrl = ctrl_fd;
	hanging->fd = np_test_export(4, where);
	if (hanging->fd < 0)
		return hanging->fd;
	ret = -pthread_create(&hanging->thread, NULL, import_thread, hanging);
	np_sleep_ms(500);
	return ret ?: pthread_tryjoin_np(hanging->thread, NULL) == EBUSY ? 0 : -EIO;
}

/* What the import came to, and how often the exporter mapped for it. */
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

/* An exporter that takes for ever to move its memory to where it is pinned. */
TEST_F_TIMEOUT(revoke, an_exporter_that_hangs_is_not_waited_for, 90)
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
	/* For a device that may be somebody else's by now. */
	EXPECT_EQ(0, mappings);
}

/* One that maps uses the device: it is waited for, but after everything else. */
TEST_F_TIMEOUT(revoke, an_exporter_that_hangs_while_it_maps_is_waited_for_last, 90)
{
	const struct nvme_peer_status *status = self->qp.status.at;
	struct hanging hanging;
	uint32_t mappings;
	pthread_t thread;
	void *ret;
	int i;

	ASSERT_EQ(0, hang(&hanging, self->ctrl.fd, NVMEP_TEST_HANG_MAP));
	ASSERT_EQ(0, pthread_create(&thread, NULL, unbind_thread, self->ctrl.address));
	for (i = 0; i < 1000 && status->state != NVME_PEER_QP_GONE; i++)
		np_sleep_ms(10);
	EXPECT_GT(1000, i);
	/* The doorbells are taken away next, of a queue that is deleted already. */
	for (i = 0; i < 1000 && np_store(self->qp.doorbell.at, 1) != -EFAULT; i++)
		np_sleep_ms(10);
	EXPECT_GT(1000, i);
	/* Time enough for the rest, which takes a fraction of that. */
	np_sleep_ms(2000);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(hanging.thread, NULL));
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	EXPECT_EQ(-ESHUTDOWN, let_go(self->importer, &hanging, &mappings));
	EXPECT_EQ(1, mappings);
	pthread_join(thread, &ret);
	EXPECT_EQ(NULL, ret);
}

/**
 * struct mapping - a thread that maps doorbells, and one that closes the queue pair
 * @test: holds up the one that maps, before its first page is there
 * @qp: whose doorbells
 * @map: what mmap() returned
 * @close: say when
 * @closed: close() has returned
 */
struct mapping {
	int test;
	struct np_qp *qp;
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

	mapping->map = mmap(NULL, doorbell->size, PROT_WRITE, MAP_SHARED, doorbell->fd, 0);
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

/* In this order, as a thread's beginning waits for an mmap() that is under way. */
static int stall_mmap(struct mapping *mapping)
{
	struct nvmep_test_stall stall = { .function = "vmf_insert_pfn" };
	int ret = -pthread_create(&mapping->closer, NULL, close_thread, mapping);

	ret = ret ?: np_ioctl(mapping->test, NVMEP_TEST_STALL, &stall);
	ret = ret ?: -pthread_create(&mapping->mapper, NULL, map_thread, mapping);
	return ret ?: np_wait_stalled(mapping->test);
}

/*
 * Between its first page and the moment that the kernel knows the whole mapping, an
 * mmap() of doorbells cannot be taken back: who takes them away waits for it.
 */
TEST_F_TIMEOUT(revoke, an_mmap_under_way_is_waited_for, 60)
{
	struct mapping mapping = { .test = self->importer, .qp = &self->qp };
	const struct nvme_peer_status *status = self->qp.status.at;
	bool closed;
	int i;

	ASSERT_EQ(0, stall_mmap(&mapping));
	atomic_store(&mapping.close, true);
	for (i = 0; i < 1500 && !atomic_load(&mapping.closed); i++)
		np_sleep_ms(1);
	/* Where our own page faults wait for the mmap(), too, it is over by now. */
	closed = atomic_load(&mapping.closed);
	EXPECT_FALSE(closed && np_ioctl(self->importer, NVMEP_TEST_STALLED, NULL) == 0);
	EXPECT_EQ(NVME_PEER_QP_GONE, status->state);
	EXPECT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_GO, NULL));
	pthread_join(mapping.mapper, NULL);
	pthread_join(mapping.closer, NULL);
	ASSERT_NE(MAP_FAILED, mapping.map);
	EXPECT_EQ(-EFAULT, np_store(mapping.map, 0));
	munmap(mapping.map, self->qp.doorbell.size);
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

/*
 * The order of the end: by the time that importers are told, the queues are
 * deleted, the status page says so, user mappings are zapped and nobody new is
 * let in.  A stubborn importer gives the time to look.
 */
TEST_F_TIMEOUT(revoke, importers_are_told_last, 60)
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
	EXPECT_EQ(-EFAULT, np_store(self->qp.doorbell.at, 1));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_WRITE, MAP_SHARED, self->qp.doorbell.fd, 0));
	memset(self->buffer.bytes, POISON, DATA_BYTES);
	np_sleep_ms(100);
	EXPECT_TRUE(all_bytes(self->buffer.bytes, DATA_BYTES, POISON));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_IMPORTER, &state));
	EXPECT_EQ(1, state.mapped);
	/* Now it lets go, and the unbind need not wait any longer. */
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

static bool becomes_withdrawn(const struct np_export *doorbell)
{
	int i;

	for (i = 0; i < 500 && np_store(doorbell->at, 0) != -EFAULT; i++)
		np_sleep_ms(10);
	return i < 500;
}

/*
 * An exporter that moves its memory ends every queue pair that may know its
 * addresses: those with rings in it, and all of the controller once its table
 * was asked for, because nobody knows to whom that was told.
 */
TEST_F(revoke, moving_memory_ends_who_knows_its_addresses)
{
	struct nvmep_test_move move = { .fd = self->buffer.fd };
	struct nvme_peer_qp_create in_buffer, elsewhere, late;
	struct np_ctrl second;

	ASSERT_EQ(0, create_in_buffer(self->ctrl.fd, self->buffer.handle, &in_buffer));
	ASSERT_EQ(0, np_ctrl_open(&second, "np0"));
	ASSERT_EQ(0, np_qp_create(second.fd, ENTRIES, &elsewhere));
	ASSERT_EQ(0, np_ioctl(self->importer, NVMEP_TEST_MOVE, &move));
	EXPECT_EQ(1, move.maps);
	EXPECT_TRUE(becomes_gone(in_buffer.qp_fd));
	EXPECT_TRUE(becomes_gone(self->qp.fd));
	EXPECT_TRUE(becomes_unmapped(self->importer, &move));
	EXPECT_TRUE(becomes_gone(elsewhere.qp_fd));
	EXPECT_TRUE(becomes_withdrawn(&self->qp.doorbell));
	/* What was invalidated stays so. */
	EXPECT_EQ(-ESTALE, create_in_buffer(self->ctrl.fd, self->buffer.handle, &late));
	close(in_buffer.qp_fd);
	close(elsewhere.qp_fd);
	np_ctrl_close(&second);
}

static int table_of(int ctrl_fd, uint32_t handle)
{
	uint64_t address;
	struct nvme_peer_buf_table table = {
		.size = sizeof(table),
		.handle = handle,
		.count = 1,
		.addresses = (uintptr_t)&address,
	};

	return np_ioctl(ctrl_fd, NVME_PEER_BUF_TABLE, &table);
}

/* Of a buffer whose addresses nobody was told. */
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
	/* Addresses that are not its any more are told nobody. */
	EXPECT_EQ(-ESTALE, table_of(self->ctrl.fd, import.handle));
	close(create.qp_fd);
	EXPECT_EQ(0, np_release(self->ctrl.fd, import.handle));
	close(dmabuf);
}

TEST_F(revoke, moving_memory_ends_who_has_a_ring_in_it)
{
	moves_under_a_ring(_metadata, self, false);
	moves_under_a_ring(_metadata, self, true);
}

TEST_F(revoke, moving_memory_spares_who_never_saw_its_addresses)
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

TEST_HARNESS_MAIN
