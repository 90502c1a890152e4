// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bind and unbind controllers under I/O of the CPU and of a peer, and refuse functions
 * that are not NVMe controllers.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * long-iommu: on off pt
 * timeout: 120
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

/* Debug kernels do as many rounds as fit the time, at least ten. */
#define ROUNDS		50
#define LEAST_ROUNDS	10
#define ROUNDS_MS	20000
#define ENTRIES		32U
#define PAGES		9U

/**
 * struct load - I/O that continues while its controller is bound and unbound
 * @ctrl: the controller
 * @stop: set to end both threads
 * @cpu_ios: correct reads by the CPU
 * @peer_ios: correct reads by the peer
 * @wrong: reads that succeeded with wrong data
 * @expected: contents of the disk at NP_AREA(5)
 */
struct load {
	const struct np_ctrl *ctrl;
	atomic_bool stop;
	atomic_uint cpu_ios;
	atomic_uint peer_ios;
	atomic_uint wrong;
	uint8_t expected[NP_PAGE];
};

/* The nodes may get another number with each bind. */
static int open_once(const char *format, const char *address, int flags)
{
	int instance = np_instance(address);
	char path[64];

	if (instance < 0)
		return -1;
	snprintf(path, sizeof(path), format, instance);
	return open(path, flags | O_CLOEXEC);
}

/* Open, read until an error, and repeat. */
static void *cpu_load(void *argument)
{
	struct load *load = argument;
	void *bytes;
	int disk;

	if (posix_memalign(&bytes, NP_PAGE, NP_PAGE))
		return NULL;
	while (!atomic_load(&load->stop)) {
		disk = open_once("/dev/nvmep%dn1", load->ctrl->address, O_RDONLY | O_DIRECT);
		if (disk < 0) {
			np_sleep_ms(5);
			continue;
		}
		while (!atomic_load(&load->stop) &&
		       !np_disk_read(disk, bytes, NP_PAGE, NP_AREA(5))) {
			if (memcmp(bytes, load->expected, NP_PAGE))
				load->wrong++;
			load->cpu_ios++;
		}
		close(disk);
	}
	free(bytes);
	return NULL;
}

static void peer_reads(struct load *load, struct np_qp *qp, struct np_buffer *buffer)
{
	const struct nvme_peer_status *status = qp->status.at;
	struct np_command command;

	while (!atomic_load(&load->stop) && status->state == NVME_PEER_QP_LIVE) {
		memset(buffer->bytes, 0, NP_PAGE);
		np_command_rw(&command, buffer, NVMEPEER_OP_READ, NP_AREA(5), 0, NP_PAGE);
		np_qp_put(qp, &command);
		if (np_qp_ring_doorbell(qp) || np_qp_reap(qp, NULL, 200))
			return;
		if (memcmp(buffer->bytes, load->expected, NP_PAGE))
			load->wrong++;
		load->peer_ios++;
	}
}

static void *peer_load(void *argument)
{
	struct load *load = argument;
	struct np_buffer buffer;
	struct np_qp qp;
	int node;

	while (!atomic_load(&load->stop)) {
		node = open_once("/dev/nvmep%d", load->ctrl->address, O_RDWR);
		if (node < 0) {
			np_sleep_ms(5);
			continue;
		}
		if (!np_buffer_open(&buffer, node, PAGES, 0)) {
			if (!np_qp_open(&qp, node, ENTRIES)) {
				peer_reads(load, &qp, &buffer);
				np_qp_close(&qp);
			}
			np_buffer_close(&buffer);
		}
		close(node);
	}
	return NULL;
}

static int prepare_disk(const struct np_ctrl *ctrl, struct load *load)
{
	int disk = np_open_node(ctrl, "/dev/nvmep%dn1", O_RDWR);
	int ret;

	if (disk < 0)
		return disk;
	np_pattern(load->expected, NP_PAGE, NP_AREA(5), 5);
	ret = np_disk_write(disk, load->expected, NP_PAGE, NP_AREA(5));
	if (!ret && fsync(disk))
		ret = -errno;
	close(disk);
	return ret;
}

/* One round: bind, wait until both loads have made progress, unbind. */
static int bind_round(const struct np_ctrl *ctrl, struct load *load)
{
	unsigned int cpu = load->cpu_ios, peer = load->peer_ios;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret = np_bind(ctrl->address);

	if (ret)
		return ret;
	while (load->cpu_ios == cpu || load->peer_ios == peer) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(2);
	}
	return np_unbind(ctrl->address);
}

FIXTURE(bind)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
};

FIXTURE_SETUP(bind)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, np_module_objects(self->before));
}

FIXTURE_TEARDOWN(bind)
{
	EXPECT_EQ(0, np_bind(self->ctrl.address));
	EXPECT_EQ(0, np_module_objects_wait(self->before, NP_TIMEOUT_MS));
}

/* The runner's limit is shorter and adapted to the kernel. */
TEST_F_TIMEOUT(bind, repeated_bind_under_io, 440)
{
	int64_t enough = np_now_ms() + ROUNDS_MS;
	static struct load load;
	pthread_t threads[2];
	int i;

	ASSERT_EQ(0, prepare_disk(&self->ctrl, &load));
	ASSERT_EQ(0, np_unbind(self->ctrl.address));
	load.ctrl = &self->ctrl;
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, cpu_load, &load));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, peer_load, &load));
	for (i = 0; i < ROUNDS && (i < LEAST_ROUNDS || np_now_ms() < enough); i++) {
		int ret = bind_round(&self->ctrl, &load);

		EXPECT_EQ(0, ret) {
			TH_LOG("round %d, reads: cpu %u peer %u", i, load.cpu_ios, load.peer_ios);
			break;
		}
	}
	atomic_store(&load.stop, true);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	EXPECT_EQ(0, load.wrong);
	TH_LOG("%d rounds, reads: cpu %u peer %u", i, load.cpu_ios, load.peer_ios);
}

/*
 * driver_override lets an administrator name any function; the driver checks the class.
 * The software GPU has registers in BAR0 where an NVMe controller has its own.
 */
TEST_F(bind, refuses_what_is_not_nvme)
{
	char address[16];

	if (np_function_address("softgpu", address))
		SKIP(return, "no software GPU in this guest");
	np_unbind(address);
	EXPECT_EQ(-ENODEV, np_bind(address));
	EXPECT_FALSE(np_bound(address));
	EXPECT_EQ(0, np_clear_driver_override(address));
	EXPECT_EQ(0, np_write_file("/sys/bus/pci/drivers_probe", address));
}

/* Without driver_override nothing is bound, not even by a write to the bind file. */
TEST_F(bind, binds_only_with_driver_override)
{
	const char *address = self->ctrl.address;

	ASSERT_EQ(0, np_unbind(address));
	ASSERT_EQ(0, np_clear_driver_override(address));
	EXPECT_EQ(-ENODEV, np_write_file("/sys/bus/pci/drivers/nvme-peer/bind", address));
	np_write_file("/sys/bus/pci/drivers_probe", address);
	EXPECT_FALSE(np_bound(address));
}

static int read_once(const char *address, void *bytes)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int disk, ret;

	while ((disk = open_once("/dev/nvmep%dn1", address, O_RDONLY | O_DIRECT)) < 0 &&
	       np_now_ms() < end)
		np_sleep_ms(5);
	if (disk < 0)
		return -ETIMEDOUT;
	ret = np_disk_read(disk, bytes, NP_PAGE, NP_AREA(5));
	close(disk);
	return ret;
}

/* With the interrupt pin, which each stop masks: before and after a reset. */
TEST_F(bind, works_without_msi)
{
	const char *address = self->ctrl.address;
	void *bytes;
	int ctrl;

	ASSERT_EQ(0, posix_memalign(&bytes, NP_PAGE, NP_PAGE));
	ASSERT_EQ(0, np_unbind(address));
	ASSERT_EQ(0, np_pci_write(address, "msi_bus", "0"));
	EXPECT_EQ(0, np_bind(address));
	EXPECT_EQ(0, read_once(address, bytes));
	ctrl = open_once("/dev/nvmep%d", address, O_RDWR);
	EXPECT_LE(0, ctrl);
	EXPECT_EQ(0, np_ioctl(ctrl, NVME_IOCTL_RESET, NULL));
	EXPECT_EQ(0, read_once(address, bytes));
	close(ctrl);
	EXPECT_EQ(0, np_unbind(address));
	EXPECT_EQ(0, np_pci_write(address, "msi_bus", "1"));
	free(bytes);
}

TEST_HARNESS_MAIN
