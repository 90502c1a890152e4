// SPDX-License-Identifier: GPL-2.0-only
/*
 * Surprise removal: functions are pulled from their slot while a peer stores to a
 * doorbell, and while a reset waits for a command.
 *
 * badctrl cannot be plugged in again, so this test runs last.
 *
 * iommu: on
 * topology: switch
 * timeout: 240
 * last: yes
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define ENTRIES		16U
#define ADMIN_TIMEOUT	"/sys/module/nvme_peer/parameters/admin_timeout"
/* The port rp5 of selftests/lib/cell.sh. */
#define FREE_PORT	"/sys/bus/pci/devices/0000:00:07.0"
/* Slots blink for 5 s before they are powered, and the debug kernel is slow. */
#define SLOT_MS		60000

/* --- slots ---------------------------------------------------------------- */

#define PCI_CAPABILITIES	0x34
#define PCI_CAP_EXPRESS		0x10
#define SLOT_CONTROL		0x18	/* offset in that capability */
#define SLOT_POWERED_OFF	0x700	/* power controller off and its indicator */

/**
 * struct slot - a port with a slot
 * @function: its bus, device and function
 * @express: offset of its PCI Express capability
 * @control: value of Slot Control with power on
 * @ret: of cut_power()
 */
struct slot {
	uint32_t function;
	int express;
	uint16_t control;
	int ret;
};

/* The offset of the PCI Express capability in a config space, or -ENODEV. */
static int find_express(int config)
{
	uint8_t at = PCI_CAPABILITIES, head[2];

	if (pread(config, &at, 1, PCI_CAPABILITIES) != 1)
		return -EIO;
	while (at) {
		if (pread(config, head, sizeof(head), at) != sizeof(head))
			return -EIO;
		if (head[0] == PCI_CAP_EXPRESS)
			return at;
		at = head[1];
	}
	return -ENODEV;
}

/* Runs as the only task on @cpu while this thread does not sleep. */
static int take_cpu(int cpu)
{
	struct sched_param urgent = { .sched_priority = 99 };
	int ret = np_run_on(cpu);

	return ret ?: sched_setscheduler(0, SCHED_FIFO, &urgent) ? -errno : 0;
}

/*
 * By I/O ports 0xcf8 and 0xcfc, because the kernel blocks access to a port's config space
 * while a function below it is reset.
 */
static void write_control(const struct slot *slot, uint16_t control)
{
	unsigned int offset = slot->express + SLOT_CONTROL;

	outl(0x80000000U | slot->function << 8 | (offset & 0xfc), 0xcf8);
	outw(control, (unsigned short)(0xcfc + (offset & 2)));
}

struct spinner {
	atomic_bool running;
	atomic_bool stop;
	int ret;
};

static void *spin(void *argument)
{
	struct spinner *spinner = argument;

	spinner->ret = take_cpu(1);
	atomic_store(&spinner->running, true);
	while (!atomic_load(&spinner->stop))
		;
	return NULL;
}

/* Power is off and on again before the kernel's slot thread runs. */
static int blink(const struct slot *slot)
{
	struct spinner spinner = { };
	pthread_t thread;
	int ret = -pthread_create(&thread, NULL, spin, &spinner);

	if (ret)
		return ret;
	while (!atomic_load(&spinner.running))
		sched_yield();
	ret = spinner.ret ?: take_cpu(0);
	if (!ret) {
		write_control(slot, slot->control | SLOT_POWERED_OFF);
		write_control(slot, slot->control);
	}
	atomic_store(&spinner.stop, true);
	pthread_join(thread, NULL);
	return ret;
}

static void *cut_power_urgently(void *argument)
{
	struct slot *slot = argument;

	slot->ret = iopl(3) ? -errno : blink(slot);
	return NULL;
}

/*
 * QEMU removes the function below a port without power, without asking the guest. The
 * kernel assumes that it emptied a slot itself if it finds it without power.
 */
static int cut_power(struct slot *slot)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, cut_power_urgently, slot))
		return -EAGAIN;
	pthread_join(thread, NULL);
	return slot->ret;
}

/* The port above a function. */
static int find_slot(struct slot *slot, const char *address)
{
	char path[128], port[PATH_MAX];
	int config, ret = 0;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/..", address);
	if (!realpath(path, port))
		return -errno;
	slot->function = np_parse_address(strrchr(port, '/') + 1).function;
	strcat(port, "/config");
	config = open(port, O_RDONLY | O_CLOEXEC);
	if (config < 0)
		return -errno;
	slot->express = find_express(config);
	if (slot->express < 0 || pread(config, &slot->control, sizeof(slot->control),
				       slot->express + SLOT_CONTROL) != sizeof(slot->control))
		ret = -EIO;
	close(config);
	return ret;
}

/* Waits for a function to appear below a port. */
static int wait_below(const char *port, char address[16])
{
	int64_t end = np_now_ms() + SLOT_MS;
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/0000:??:??.?", port);
	while (glob(pattern, 0, NULL, &found)) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(10);
	}
	snprintf(address, 16, "%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	return 0;
}

/* The directory in sysfs appears before the function has its BARs. */
static int bind_new(const char *address)
{
	int64_t end = np_now_ms() + SLOT_MS;
	int ret;

	do {
		ret = np_bind(address);
		if (!ret || np_bound(address))
			return 0;
		np_sleep_ms(100);
	} while (np_now_ms() < end);
	return ret;
}

static int wait_gone(const char *address)
{
	int64_t end = np_now_ms() + SLOT_MS;
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", address);
	while (!access(path, F_OK)) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(10);
	}
	return 0;
}

/* --- tests ----------------------------------------------------------------- */

FIXTURE(lost)
{
	struct slot slot;
};

FIXTURE_SETUP(lost)
{
}

FIXTURE_TEARDOWN(lost)
{
}

/* A controller without namespaces is plugged into the free slot and pulled. */
TEST_F_TIMEOUT(lost, surprise_removal_zaps_doorbells, 120)
{
	char address[16], module_before[NP_OBJECTS];
	struct np_storer storer;
	struct np_ctrl ctrl;
	struct np_qp qp;

	ASSERT_EQ(0, np_module_objects(module_before));
	ASSERT_EQ(0, np_monitor("device_add nvme,id=guest,serial=guest,bus=rp5"));
	ASSERT_EQ(0, wait_below(FREE_PORT, address));
	ASSERT_EQ(0, find_slot(&self->slot, address));
	ASSERT_EQ(0, bind_new(address));
	ASSERT_EQ(0, np_ctrl_open(&ctrl, "guest"));
	ASSERT_EQ(0, np_qp_open(&qp, ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_storer_start(&storer, &qp));
	ASSERT_EQ(0, cut_power(&self->slot));
	EXPECT_EQ(0, np_storer_wait(&storer, SLOT_MS));
	np_storer_stop(&storer);
	EXPECT_EQ(0, wait_gone(address));
	np_qp_close(&qp);
	np_ctrl_close(&ctrl);
	EXPECT_EQ(0, np_module_objects_wait(module_before, NP_TIMEOUT_MS));
}

static void *reset_function(void *argument)
{
	struct np_bad *bad = argument;
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", bad->address);
	return (void *)(intptr_t)np_write_file(path, "1");
}

/* Removal waits for the reset, which waits for a command: that wait must end. */
TEST_F_TIMEOUT(lost, surprise_removal_ends_reset, 120)
{
	struct np_bad bad;
	pthread_t thread;

	if (np_bad_open(&bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, find_slot(&self->slot, bad.address));
	ASSERT_EQ(0, np_write_file(ADMIN_TIMEOUT, "10"));
	ASSERT_EQ(0, np_bad_bind(&bad, 1));
	close(bad.disk);
	close(bad.generic);
	ASSERT_EQ(0, np_bad_rule(&bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, reset_function, &bad));
	/*
	 * The config space, and with it badctrl's words, cannot be accessed during a
	 * reset.
	 */
	np_sleep_ms(1000);
	ASSERT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	ASSERT_EQ(0, cut_power(&self->slot));
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	ASSERT_EQ(0, wait_gone(bad.address));
	pthread_join(thread, NULL);
	np_ctrl_close(&bad.ctrl);
	EXPECT_EQ(0, np_module_objects_wait(bad.before, NP_TIMEOUT_MS));
	EXPECT_EQ(0, np_bad_check_good(&bad));
	np_ctrl_close(&bad.good);
	close(bad.config);
	EXPECT_EQ(0, np_write_file(ADMIN_TIMEOUT, "60"));
}

TEST_HARNESS_MAIN
