// SPDX-License-Identifier: GPL-2.0-only
/*
 * Binding a controller that cannot be brought up: the probe fails in bounded
 * time, leaves nothing behind and does not disturb another controller.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../badctrl/badctrl.h"
#include "nptest.h"
#include "kselftest_harness.h"

#define PCI_COMMAND		4
#define PCI_COMMAND_MEMORY	2
#define PCI_COMMAND_MASTER	4

FIXTURE(bad_controller)
{
	struct np_ctrl good;
	char address[16];
	char before[NP_OBJECTS];
};

FIXTURE_VARIANT(bad_controller)
{
	uint32_t mode;
	int error;
};

FIXTURE_VARIANT_ADD(bad_controller, never_ready)
{
	.mode = BADCTRL_NEVER_READY, .error = -ETIMEDOUT,
};

FIXTURE_VARIANT_ADD(bad_controller, fatal) { .mode = BADCTRL_FATAL, .error = -EIO };
FIXTURE_VARIANT_ADD(bad_controller, silent) { .mode = BADCTRL_SILENT, .error = -ETIMEDOUT };

FIXTURE_VARIANT_ADD(bad_controller, never_stops)
{
	.mode = BADCTRL_NEVER_STOPS, .error = -ETIMEDOUT,
};

FIXTURE_VARIANT_ADD(bad_controller, gone) { .mode = BADCTRL_GONE, .error = -ENODEV };
FIXTURE_VARIANT_ADD(bad_controller, no_queue) { .mode = BADCTRL_NO_QUEUE, .error = -ENODEV };

FIXTURE_VARIANT_ADD(bad_controller, huge_pages)
{
	.mode = BADCTRL_HUGE_PAGES, .error = -ENODEV,
};

static int path_of(const char *address, const char *file, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", address, file);
	return open(path, flags | O_CLOEXEC);
}

/* @clear and @set bits of the PCI command register; returns what it was. */
static int change_command(const char *address, uint16_t clear, uint16_t set)
{
	int fd = path_of(address, "config", O_RDWR);
	uint16_t command, changed;

	if (fd < 0)
		return -errno;
	if (pread(fd, &command, sizeof(command), PCI_COMMAND) != sizeof(command)) {
		close(fd);
		return -EIO;
	}
	changed = (uint16_t)((command & ~clear) | set);
	if (changed != command && pwrite(fd, &changed, sizeof(changed), PCI_COMMAND) < 0)
		changed = 0;
	close(fd);
	return command;
}

/*
 * The device's registers; the driver is not bound.  A mapping from before it was
 * is of no use: Linux takes it away when a driver claims the BAR.
 */
static volatile uint32_t *map_registers(const char *address)
{
	int fd = path_of(address, "resource0", O_RDWR);
	void *bar;

	if (fd < 0)
		return NULL;
	change_command(address, 0, PCI_COMMAND_MEMORY);
	bar = mmap(NULL, BADCTRL_BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return bar == MAP_FAILED ? NULL : bar;
}

static int write_register(const char *address, uint32_t offset, uint32_t value)
{
	volatile uint32_t *registers = map_registers(address);

	if (!registers)
		return -EIO;
	registers[offset / 4] = value;
	return munmap((void *)registers, BADCTRL_BAR_BYTES);
}

static int read_register(const char *address, uint32_t offset, uint32_t *value)
{
	volatile uint32_t *registers = map_registers(address);

	if (!registers)
		return -EIO;
	*value = registers[offset / 4];
	return munmap((void *)registers, BADCTRL_BAR_BYTES);
}

FIXTURE_SETUP(bad_controller)
{
	if (np_place("badctrl", self->address))
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, np_ctrl_open(&self->good, "np0"));
	ASSERT_EQ(0, np_module_objects(self->before));
	ASSERT_EQ(0, np_write_file("/sys/module/nvme_peer/parameters/admin_timeout", "2"));
	ASSERT_EQ(0, write_register(self->address, BADCTRL_REG_MODE, variant->mode));
}

FIXTURE_TEARDOWN(bad_controller)
{
	if (!self->address[0])
		return;
	EXPECT_EQ(0, np_write_file("/sys/module/nvme_peer/parameters/admin_timeout", "60"));
	EXPECT_EQ(0, np_module_objects_settle(self->before, 5000));
	np_ctrl_close(&self->good);
}

TEST_F(bad_controller, is_refused_and_left_alone)
{
	struct nvme_admin_cmd identify = { .opcode = 6, .cdw10 = 1, .data_len = 4096 };
	static uint8_t data[4096];
	int64_t start = np_now_ms();
	uint32_t early;
	int command;

	EXPECT_EQ(variant->error, np_bind(self->address));
	EXPECT_GT(15000, np_now_ms() - start);
	EXPECT_FALSE(np_bound(self->address));
	/* Nothing may be asked of a controller that is not ready. */
	ASSERT_EQ(0, read_register(self->address, BADCTRL_REG_EARLY, &early));
	EXPECT_EQ(0, early);
	/* Who did not prove that it stopped must not reach memory any more. */
	command = change_command(self->address, 0, 0);
	ASSERT_LE(0, command);
	EXPECT_EQ(0, command & PCI_COMMAND_MASTER);
	identify.addr = (uintptr_t)data;
	EXPECT_EQ(0, np_admin(self->good.fd, &identify));
}

TEST_HARNESS_MAIN
