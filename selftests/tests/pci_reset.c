// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resets that the administrator asks the PCI core for, and functions that are taken
 * off the bus and found again, while the CPU and a peer are at work.
 *
 * iommu: on off
 * timeout: 180
 * topology: root switch
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

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
	EXPECT_EQ(0, np_objects_settle(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

/* Several times: what a reset loses has to be put back each time. */
static void check_reset(struct __test_metadata *_metadata, FIXTURE_DATA(pci) *self,
			const char *method)
{
	struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };
	const struct nvme_peer_status *status;
	struct nvme_peer_info now;
	struct np_reader reader;
	struct np_buffer buffer;
	struct np_qp qp;
	uint32_t i;

	ASSERT_EQ(0, np_pci_write(self->ctrl.address, "reset_method", method));
	ASSERT_EQ(0, np_reader_start(&reader, &self->ctrl));
	ASSERT_EQ(0, np_buffer_open(&buffer, self->ctrl.fd, PAGES, 0));
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
		EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
		status = qp.status.at;
		EXPECT_EQ(0, np_qp_fill(&qp, ENTRIES - 1, &buffer, (PAGES - 1) * NP_PAGE));
		EXPECT_EQ(0, np_pci_write(self->ctrl.address, "reset", "1"));
		ASSERT_EQ(0, np_info(self->ctrl.fd, &now));
		/* reset_done() does not return before the controller is back. */
		EXPECT_EQ(NVME_PEER_CTRL_LIVE, now.state);
		EXPECT_EQ(self->info.generation + i, now.generation);
		EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
		EXPECT_EQ(now.generation, status->generation);
		np_qp_close(&qp);
		EXPECT_EQ(0, np_reader_goes_on(&reader));
	}
	EXPECT_EQ(0, np_reader_stop(&reader));
	ASSERT_EQ(0, np_release(self->ctrl.fd, buffer.handle));
	np_buffer_close(&buffer);
	ASSERT_EQ(0, np_pci_write(self->ctrl.address, "reset_method", "default"));
}

TEST_F_TIMEOUT(pci, reset_of_the_function, 120)
{
	check_reset(_metadata, self, "flr");
}

TEST_F_TIMEOUT(pci, reset_of_the_bus, 120)
{
	check_reset(_metadata, self, "bus");
}

/* A doorbell that is stored to all the time is taken away before its decoding goes off. */
static void check_doorbell(struct __test_metadata *_metadata, FIXTURE_DATA(pci) *self,
			   const char *method)
{
	struct np_storer storer;
	struct np_export again;
	struct np_qp qp;

	ASSERT_EQ(0, np_pci_write(self->ctrl.address, "reset_method", method));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_storer_start(&storer, qp.tail_doorbell));
	EXPECT_EQ(0, np_pci_write(self->ctrl.address, "reset", "1"));
	EXPECT_EQ(0, np_storer_wait(&storer, 0));
	np_storer_stop(&storer);
	/* And nobody gets it back before the queue pair is re-armed. */
	EXPECT_EQ(-EFAULT, np_store(qp.head_doorbell, 0));
	EXPECT_NE(0, np_export_open(&again, qp.fd, NVME_PEER_EXPORT_DOORBELL, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
				   qp.doorbell.fd, 0));
	np_qp_close(&qp);
	ASSERT_EQ(0, np_pci_write(self->ctrl.address, "reset_method", "default"));
}

TEST_F_TIMEOUT(pci, doorbells_go_before_a_reset_of_the_function, 120)
{
	check_doorbell(_metadata, self, "flr");
}

TEST_F_TIMEOUT(pci, doorbells_go_before_a_reset_of_the_bus, 120)
{
	check_doorbell(_metadata, self, "bus");
}

/* Initiate Function Level Reset, without a word to the kernel; 0 or -errno. */
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
 * Addresses and decoding are lost with it, so no reset of the controller helps, but
 * the driver's own reset of the function does, which restores them.
 */
TEST_F_TIMEOUT(pci, a_reset_behind_the_drivers_back_costs_nobody_a_queue_pair, 120)
{
	struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };
	struct nvme_peer_info now;
	char path[128];
	struct np_qp qp;
	int config, i;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", self->ctrl.address);
	config = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, config);
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, reset_behind_its_back(config));
		EXPECT_EQ(0, np_qp_wait_state(&qp, NVME_PEER_QP_QUIESCED, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_qp_rearm(&qp, NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	}
	np_qp_close(&qp);
	close(config);
}

/* One of the driver's own leaves the registers where they are. */
TEST_F_TIMEOUT(pci, doorbells_stay_in_a_reset_of_the_controller, 120)
{
	struct np_storer storer;
	struct np_qp qp;

	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_storer_start(&storer, qp.tail_doorbell));
	EXPECT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(-ETIMEDOUT, np_storer_wait(&storer, 100));
	np_storer_stop(&storer);
	np_qp_close(&qp);
}

/* Two at a time: one waits for the other, and each is a reset. */
static void *reset_by_attribute(void *argument)
{
	struct np_ctrl *ctrl = argument;
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/reset_controller",
		 ctrl->instance);
	return (void *)(intptr_t)np_write_file(path, "1");
}

TEST_F_TIMEOUT(pci, reset_of_the_function_during_a_reset, 120)
{
	struct nvme_peer_info now;
	uint32_t resets = 0;
	pthread_t thread;
	void *ret;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, reset_by_attribute, &self->ctrl));
		EXPECT_EQ(0, np_pci_write(self->ctrl.address, "reset", "1"));
		pthread_join(thread, &ret);
		resets += 1 + !ret;
		/* The driver's own is refused while another one is under way. */
		EXPECT_TRUE(!ret || (intptr_t)ret == -EBUSY) {
			TH_LOG("reset_controller: %d", (int)(intptr_t)ret);
		}
	}
	ASSERT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	EXPECT_EQ(self->info.generation + resets, now.generation);
}

/*
 * The function is reset at the very moment when another reset is over, with I/O
 * under way: no command is lost, and none is handed to a queue that has gone.
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

TEST_F_TIMEOUT(pci, reset_of_the_function_as_a_reset_ends, 120)
{
	struct np_reader readers[3];
	struct nvme_peer_info now;
	pthread_t thread;
	int i, resets = 0;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, np_reader_start(&readers[i], &self->ctrl));
	ASSERT_EQ(0, pthread_create(&thread, NULL, reset_by_ioctl, &readers[0]));
	for (i = 0; i < 40; i++)
		resets += !np_pci_write(self->ctrl.address, "reset", "1");
	EXPECT_EQ(40, resets);
	atomic_store(&readers[0].stop, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, np_ctrl_settle(self->ctrl.fd, &now, NP_TIMEOUT_MS));
	for (i = 1; i < 3; i++)
		EXPECT_EQ(0, np_reader_goes_on(&readers[i]));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, np_reader_stop(&readers[i]));
}

/* The queue pair's holder is told, its doorbells are taken away, and all comes back. */
TEST_F_TIMEOUT(pci, function_taken_off_the_bus, 120)
{
	struct np_command flush = { .opcode = NP_CMD_FLUSH, .nsid = 1 };
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
	EXPECT_EQ(0, np_qp_fill(&qp, ENTRIES - 1, &buffer, (PAGES - 1) * NP_PAGE));
	ASSERT_EQ(0, np_pull(self->ctrl.address));
	EXPECT_EQ(NVME_PEER_QP_GONE, status->state);
	EXPECT_EQ(-EFAULT, np_qp_ring(&qp));
	EXPECT_EQ(-ESHUTDOWN, np_info(self->ctrl.fd, &now));
	EXPECT_EQ(-ENODEV, np_instance(self->ctrl.address));
	EXPECT_NE(0, np_reader_stop(&reader));
	np_qp_close(&qp);
	np_buffer_close(&buffer);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_find_again(self->ctrl.address));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(0, np_module_objects_settle(module_before, NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
}

TEST_HARNESS_MAIN
