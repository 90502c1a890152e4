// SPDX-License-Identifier: GPL-2.0-only
/*
 * Function and bus resets through sysfs, and functions that are removed and rescanned,
 * while the CPU and a peer are active.
 *
 * iommu: on off
 * timeout: 180
 * topology: root switch
 * relay: 7
 * long-mediated: 7
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define ENTRIES		32U
#define PAGES		9U

/* Config space: PCI Express base specification 7.5.1.1.11, 7.5.3.4. */
#define PCI_CAPABILITIES	0x34
#define PCI_CAP_EXPRESS		0x10
#define PCI_EXP_CONTROL		8
#define PCI_EXP_CONTROL_FLR	0x8000

FIXTURE(pci)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct nvme_peer_info info;
};

FIXTURE_SETUP(pci)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &self->info));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
}

FIXTURE_TEARDOWN(pci)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* Repeated, because the state that a reset loses has to be restored each time. */
static void check_reset(struct __test_metadata *_metadata, FIXTURE_DATA(pci) *self,
			const char *method)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	const struct nvme_peer_status *status;
	struct nvme_peer_info now;
	struct np_reader reader;
	struct np_buffer buffer;
	struct np_qp qp;
	uint32_t i;

	ASSERT_EQ(0, np_reset_method(self->ctrl.address, method));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, 0));
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
		EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
		status = qp.status.at;
		EXPECT_EQ(0, np_qp_submit_reads(&qp, ENTRIES - 1, &buffer, (PAGES - 1) * NP_PAGE));
		EXPECT_EQ(0, np_function_reset(self->ctrl.address));
		ASSERT_EQ(0, np_info(self->ctrl.fd, &now));
		/* reset_done() returns when the controller is LIVE again. */
		EXPECT_EQ(NVME_PEER_CTRL_LIVE, now.state);
		EXPECT_EQ(self->info.generation + i, now.generation);
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
		EXPECT_EQ(now.generation, status->generation);
		np_qp_close(&qp);
		EXPECT_EQ(0, np_reader_wait_read(&reader));
	}
	EXPECT_EQ(0, np_reader_stop(&reader));
	ASSERT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "default"));
}

TEST_F_TIMEOUT(pci, function_reset_under_load, 120)
{
	check_reset(_metadata, self, "flr");
}

TEST_F_TIMEOUT(pci, bus_reset_under_load, 120)
{
	check_reset(_metadata, self, "bus");
}

/*
 * A doorbell that is stored to continuously is revoked before its decoding is disabled.
 */
static void check_doorbell(struct __test_metadata *_metadata, FIXTURE_DATA(pci) *self,
			   const char *method)
{
	struct np_storer storer;
	struct np_export again;
	struct np_qp qp;

	ASSERT_EQ(0, np_reset_method(self->ctrl.address, method));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_storer_start(&storer, &qp));
	EXPECT_EQ(0, np_function_reset(self->ctrl.address));
	EXPECT_EQ(0, np_storer_wait(&storer, 0));
	np_storer_stop(&storer);
	/* The doorbell stays revoked until the queue pair is re-armed. */
	EXPECT_EQ(np_qp_revoked(), np_store(qp.head_doorbell, 0));
	EXPECT_NE(0, np_export_open(&again, qp.fd, NVME_PEER_EXPORT_DOORBELL, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
				   qp.doorbell.fd, 0));
	np_qp_close(&qp);
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "default"));
}

TEST_F_TIMEOUT(pci, doorbells_revoked_before_function_reset, 120)
{
	check_doorbell(_metadata, self, "flr");
}

TEST_F_TIMEOUT(pci, doorbells_revoked_before_bus_reset, 120)
{
	check_doorbell(_metadata, self, "bus");
}

/* Initiate a Function Level Reset directly, without the kernel; 0 or -errno. */
static int reset_behind_its_back(int config)
{
	uint8_t at = 0, id = 0;
	uint16_t control;

	if (pread(config, &at, 1, PCI_CAPABILITIES) != 1)
		return -EIO;
	while (at && pread(config, &id, 1, at) == 1 && id != PCI_CAP_EXPRESS)
		if (pread(config, &at, 1, at + 1) != 1)
			return -EIO;
	if (!at || pread(config, &control, 2, at + PCI_EXP_CONTROL) != 2)
		return -ENODEV;
	control |= PCI_EXP_CONTROL_FLR;
	return pwrite(config, &control, 2, at + PCI_EXP_CONTROL) == 2 ? 0 : -EIO;
}

/*
 * BARs and decoding are lost, so a controller reset fails, but the driver's function
 * reset restores them.
 */
TEST_F_TIMEOUT(pci, external_flr_keeps_queue_pairs, 120)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct nvme_peer_info now;
	char path[128];
	struct np_qp qp;
	int config, i;

	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "flr"));
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "default"));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", self->ctrl.address);
	config = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, config);
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, reset_behind_its_back(config));
		EXPECT_EQ(0, np_qp_wait_state(&qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	}
	np_qp_close(&qp);
	close(config);
}

/* The driver's own function reset uses the method that the administrator chose. */
TEST_F_TIMEOUT(pci, external_flr_is_followed_by_chosen_method, 120)
{
	struct nvmep_test_stall stall = { .any_thread = 1, .function = "pci_reset_bus_function" };
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct nvme_peer_info now;
	char path[128];
	int config, method, test = np_test_open();
	struct np_qp qp;

	ASSERT_LE(0, test);
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "flr"));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", self->ctrl.address);
	config = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, config);
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "bus"));
	ASSERT_EQ(0, np_function_reset(self->ctrl.address));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	method = np_stall(&stall);
	ASSERT_LE(0, method);
	ASSERT_EQ(0, reset_behind_its_back(config));
	EXPECT_NE(-EAGAIN, np_wait_stalled(method));
	close(method);
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	close(config);
	close(test);
	ASSERT_EQ(0, np_reset_method(self->ctrl.address, "default"));
}

/* A controller reset keeps BAR decoding, so doorbells stay mapped. */
TEST_F_TIMEOUT(pci, controller_reset_keeps_doorbells, 120)
{
	struct np_storer storer;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_storer_start(&storer, &qp));
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	np_sleep_ms(100);
	EXPECT_FALSE(atomic_load(&storer.failed));
	np_storer_stop(&storer);
	np_qp_close(&qp);
}

/* Two resets at a time: one waits for the other, and both are done. */
static void *reset_by_attribute(void *argument)
{
	struct np_ctrl *ctrl = argument;
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/reset_controller",
		 ctrl->instance);
	return (void *)(intptr_t)np_write_file(path, "1");
}

TEST_F_TIMEOUT(pci, function_reset_during_controller_reset, 120)
{
	struct nvme_peer_info now;
	uint32_t resets = 0;
	pthread_t thread;
	void *ret;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, reset_by_attribute, &self->ctrl));
		EXPECT_EQ(0, np_function_reset(self->ctrl.address));
		pthread_join(thread, &ret);
		resets += 1 + !ret;
		/* The driver's own reset is refused while another one runs. */
		EXPECT_TRUE(!ret || (intptr_t)ret == -EBUSY) {
			TH_LOG("reset_controller: %d", (int)(intptr_t)ret);
		}
	}
	ASSERT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	/* A function reset may interrupt the other one: then one stop serves both. */
	EXPECT_LE(self->info.generation + 5, now.generation);
	EXPECT_GE(self->info.generation + resets, now.generation);
}

/*
 * The function is reset when another reset completes, with I/O in flight: no command is
 * lost, and none is submitted to a deleted queue.
 */
static void *reset_by_ioctl(void *argument)
{
	struct np_reader *reader = argument;
	struct np_ctrl ctrl;

	if (np_ctrl_open(&ctrl, "np0"))
		return NULL;
	while (!atomic_load(&reader->stop))
		np_ioctl(ctrl.fd, NVME_IOCTL_RESET, NULL);
	np_ctrl_close(&ctrl);
	return NULL;
}

TEST_F_TIMEOUT(pci, function_reset_at_end_of_controller_reset, 120)
{
	struct np_reader readers[3];
	struct nvme_peer_info now;
	pthread_t thread;
	int i, resets = 0;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, np_reader_start(&readers[i], &self->ctrl));
	ASSERT_EQ(0, pthread_create(&thread, NULL, reset_by_ioctl, &readers[0]));
	for (i = 0; i < 40; i++)
		resets += !np_function_reset(self->ctrl.address);
	EXPECT_EQ(40, resets);
	atomic_store(&readers[0].stop, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, np_ctrl_wait_live(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	for (i = 1; i < 3; i++)
		EXPECT_EQ(0, np_reader_wait_read(&readers[i]));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, np_reader_stop(&readers[i]));
}

/*
 * The queue pair is GONE, its doorbells are revoked, and the function works after a
 * rescan.
 */
TEST_F_TIMEOUT(pci, function_removed_and_rescanned, 120)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	const struct nvme_peer_status *status;
	char module_before[NP_OBJECTS];
	struct nvme_peer_info now;
	struct np_reader reader;
	struct np_buffer buffer;
	struct np_qp qp;

	ASSERT_EQ(0, np_module_objects(module_before));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	status = qp.status.at;
	EXPECT_EQ(0, np_qp_submit_reads(&qp, ENTRIES - 1, &buffer, (PAGES - 1) * NP_PAGE));
	ASSERT_EQ(0, np_surprise_remove(self->ctrl.address));
	EXPECT_EQ(NVME_PEER_QP_GONE, status->state);
	EXPECT_EQ(np_qp_revoked(), np_qp_ring_doorbell(&qp));
	EXPECT_EQ(-ESHUTDOWN, np_info(self->ctrl.fd, &now));
	EXPECT_EQ(-ENODEV, np_instance(self->ctrl.address));
	EXPECT_NE(0, np_reader_stop(&reader));
	np_qp_close(&qp);
	np_buffer_close(&buffer);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_rescan(self->ctrl.address));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(0, np_module_objects_wait(module_before, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
}

TEST_HARNESS_MAIN
