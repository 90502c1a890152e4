// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module can be unloaded while controllers are bound, unless an object of it is in
 * use; all that it registered is removed and registered again by the next load.
 *
 * kernels: 6.1 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "nptest.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define ROUNDS		3

FIXTURE(module)
{
	struct np_ctrl ctrl;
};

FIXTURE_SETUP(module)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
}

FIXTURE_TEARDOWN(module)
{
	np_module_load("");
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	np_ctrl_close(&self->ctrl);
}

/* Each kind of file, one after the other as the only one that pins the module. */
TEST_F(module, open_controller_pins_module)
{
	EXPECT_EQ(-EAGAIN, np_module_unload(0));
	EXPECT_TRUE(np_bound(self->ctrl.address));
}

TEST_F(module, open_namespace_pins_module)
{
	static const char * const nodes[] = { "/dev/nvmep%dn1", "/dev/ngp%dn1" };
	int files[2], i;

	for (i = 0; i < 2; i++)
		files[i] = np_open_node(&self->ctrl, nodes[i], O_RDWR);
	np_ctrl_close(&self->ctrl);
	for (i = 0; i < 2; i++) {
		ASSERT_LE(0, files[i]);
		EXPECT_EQ(-EAGAIN, np_module_unload(0));
		close(files[i]);
	}
}

TEST_F(module, open_queue_pair_or_export_pins_module)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export out;
	void *map;

	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_CQ, 0, &out));
	map = mmap(NULL, NP_PAGE, PROT_READ, MAP_SHARED, out.fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(-EAGAIN, np_module_unload(0));
	close(create.qp_fd);
	EXPECT_EQ(-EAGAIN, np_module_unload(0));
	close(out.fd);
	EXPECT_EQ(-EAGAIN, np_module_unload(0));
	EXPECT_EQ(0, *(volatile int *)map);
	munmap(map, NP_PAGE);
}

TEST_F_TIMEOUT(module, unload_unbinds_controllers, 120)
{
	struct nvme_peer_info info;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		EXPECT_EQ(NP_MODULE_REGISTRATIONS, np_module_registrations());
		np_ctrl_close(&self->ctrl);
		ASSERT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
		EXPECT_FALSE(np_bound(self->ctrl.address));
		EXPECT_EQ(-ENODEV, np_instance(self->ctrl.address));
		EXPECT_EQ(0, np_module_registrations());
		ASSERT_EQ(0, np_module_load(""));
		ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
		ASSERT_EQ(0, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
	}
	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(0, info.generation);
}

static bool has_thread(const char *name)
{
	char command[512];

	snprintf(command, sizeof(command), "cat /proc/[0-9]*/comm 2>/dev/null | grep -qxE '%s'", name);
	return !system(command);
}

/* Its name, with kworker/R- before it on newer kernels. */
static bool has_rescuer(const char *workqueue)
{
	char name[256];

	snprintf(name, sizeof(name), "(kworker/R-)?%s", workqueue);
	return has_thread(name);
}

/* Steps of the initialisation that can be made to fail without a warning, the last first. */
TEST_F_TIMEOUT(module, failed_load_leaves_nothing, 120)
{
	static const struct nvmep_test_occupy steps[] = {
		{ .driver = 1 }, { .spare_majors = 1 }, { .spare_majors = 0 },
	};
	size_t i;
	int test;

	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		test = np_test_open();
		ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_OCCUPY, (void *)&steps[i]));
		EXPECT_EQ(-EBUSY, np_module_load("")) {
			TH_LOG("step %zu", i);
		}
		EXPECT_EQ(steps[i].driver, np_module_registrations());
		EXPECT_FALSE(has_rescuer("nvmep.*"));
		close(test);
	}
	ASSERT_EQ(0, np_module_load(""));
	EXPECT_EQ(NP_MODULE_REGISTRATIONS, np_module_registrations());
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(0, np_qp_check(self->ctrl.fd, NP_TIMEOUT_MS));
}

/* Writeback waits for their works, and memory for writeback. */
TEST_F(module, workqueues_have_rescuers)
{
	static const char workqueues[][16] = {
		"nvmep", "nvmep-reset", "nvmep-recovery", "nvmep-tenant", "nvmep-mediate",
		"nvmep-health", "nvmep-requeue", "nvmep-flush",
	};
	size_t i;

	for (i = 0; i < sizeof(workqueues) / sizeof(workqueues[0]); i++)
		EXPECT_TRUE(has_rescuer(workqueues[i])) {
			TH_LOG("%s", workqueues[i]);
		}
}

/*
 * A CPU that is busy delays no work, except for moved I/O, which is submitted on its CPU. A
 * thread's name has the workqueue that it served last, maybe not one of this driver.
 */
TEST_F(module, works_are_bound_to_no_cpu)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	do {
		ASSERT_EQ(0, np_ioctl(self->ctrl.fd, NVME_IOCTL_RESET, NULL));
	} while (!has_thread("kworker/u[0-9:]+[+-]nvmep.*") && np_now_ms() < end);
	EXPECT_LT(np_now_ms(), end);
	EXPECT_FALSE(has_thread("kworker/[0-9].*[+-]nvmep(-(reset|recovery|health|revoke|flush))?"));
}

/* Parameters that are set at load time only. */
TEST_F_TIMEOUT(module, peer_queues_parameter_limits_peers, 120)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_info info;
	uint32_t total = self->ctrl.info.qids_total;
	int qp_fd;

	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_module_load("peer_queues=1 quirks="));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(total, self->ctrl.info.qids_total);
	EXPECT_EQ(1, self->ctrl.info.qids_peer_max);
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	qp_fd = create.qp_fd;
	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_EQ(0, info.qids_peer_free);
	EXPECT_EQ(-ENOSPC, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	close(qp_fd);
	np_ctrl_close(&self->ctrl);

	/* None. */
	EXPECT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_module_load("peer_queues=0"));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(0, self->ctrl.info.qids_peer_max);
	np_ctrl_close(&self->ctrl);

	/* More queues than exist: the CPU keeps one. */
	EXPECT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	ASSERT_EQ(0, np_module_load("peer_queues=100000"));
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	EXPECT_EQ(total - 1, self->ctrl.info.qids_peer_max);
	EXPECT_EQ(1, self->ctrl.info.qids_cpu);
	np_ctrl_close(&self->ctrl);
	EXPECT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
}

/* --- asynchronous probe ------------------------------------------------------------ */

#define SLOW	"quirks=1b36:0010:delay_before_chk_rdy"

/* Milliseconds in which the module is loaded and its controllers are bound, -1: it failed. */
static int64_t load_slow(void)
{
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	if (np_module_load(SLOW))
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &after);
	return (after.tv_sec - before.tv_sec) * 1000 +
	       (after.tv_nsec - before.tv_nsec) / 1000000;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* By the quirk each waits for seconds, twice. A load takes longer when the machine stands still. */
TEST_F_TIMEOUT(module, two_controllers_take_the_time_of_one, 120)
{
	int64_t one = INT32_MAX, two = INT32_MAX;
	char other[16];
	int tries = 0;

	np_ctrl_close(&self->ctrl);
	ASSERT_EQ(0, np_function_address("np1", other));
	ASSERT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	do {
		two = least(two, load_slow());
		EXPECT_TRUE(np_bound(self->ctrl.address));
		EXPECT_TRUE(np_bound(other));
		ASSERT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
		ASSERT_EQ(0, np_pci_write(other, "driver_override", "none"));
		one = least(one, load_slow());
		EXPECT_FALSE(np_bound(other));
		ASSERT_EQ(0, np_pci_write(other, "driver_override", "nvme-peer"));
		ASSERT_EQ(0, np_module_unload(NP_TIMEOUT_MS));
	} while (one * 3 / 2 <= two && ++tries < 3);
	EXPECT_LT(2000, one);
	EXPECT_GT(one * 3 / 2, two) TH_LOG("one %lld ms, two %lld ms", (long long)one,
					   (long long)two);
}

TEST_HARNESS_MAIN
