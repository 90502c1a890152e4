// SPDX-License-Identifier: GPL-2.0-only
/*
 * kexec with peers and the CPU active: the next kernel finds controllers that are stopped
 * and write nothing, and all acknowledged data, and takes them over. Then that kernel
 * panics with peers and the CPU active: the crash kernel finds controllers that still run,
 * takes them over, and writes the dump to a disk.
 *
 * Each kernel continues with the tests from here (selftests/guest/session), so this test
 * runs three times. The IOMMU would report a write of a controller after a jump.
 *
 * kernels: 7
 * iommu: on
 * timeout: 360
 * last: yes
 * long: yes
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "npbad.h"
#include "kselftest_harness.h"

#define ENTRIES		32U
#define PAGES		9U
#define SEED		0x6b65U
#define DATA_BYTES	(2 * NP_PAGE)
#define JUMP_SECONDS	300
#define DUMP_BYTES	(4U << 20)

/* Added to the command line of the next kernel, which reserves memory for the crash kernel. */
#define RESUME		" np_resume=kexec crashkernel=512M"

/* Added to that of the crash kernel: a parameter for the CPUs of the machine. */
#define CRASH		" nr_cpus=1 nvme_peer.poller_cpus=1"

/* The kernel adds this to the command line of a crash kernel. */
#define CRASHED		"elfcorehdr="

/* Areas of a disk that the CPU and its peer wrote. */
#define CPU_AREA	NP_AREA(10)
#define PEER_AREA	NP_AREA(11)
#define DUMP_AREA	NP_AREA(12)

FIXTURE(kexec)
{
	char line[4096];
};

FIXTURE_SETUP(kexec)
{
	ASSERT_EQ(0, np_read_file("/proc/cmdline", self->line, sizeof(self->line)));
}

FIXTURE_TEARDOWN(kexec)
{
}

/* Load the running kernel's image; it starts with @line and @more. */
static int load_kernel(const char *line, const char *more, unsigned long flags)
{
	char next[sizeof(((FIXTURE_DATA(kexec) *)0)->line) + sizeof(RESUME)];
	int kernel = open("/host/vmlinuz", O_RDONLY | O_CLOEXEC);
	int initial = open("/host/initramfs", O_RDONLY | O_CLOEXEC);
	int length = snprintf(next, sizeof(next), "%.*s%s", (int)strcspn(line, "\n"), line, more);
	int ret = 0;

	if (syscall(SYS_kexec_file_load, kernel, initial, (long)length + 1, next, flags))
		ret = -errno;
	close(kernel);
	close(initial);
	return ret;
}

/* Returns only on failure. */
static int jump(void)
{
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, NULL);
	return -errno;
}

static int write_as_the_cpu(const struct np_ctrl *ctrl, unsigned char *bytes)
{
	int disk = np_open_node(ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	int ret;

	if (disk < 0)
		return disk;
	np_pattern(bytes, DATA_BYTES, CPU_AREA, SEED);
	ret = np_disk_write(disk, bytes, DATA_BYTES, CPU_AREA);
	close(disk);
	return ret;
}

static int write_as_a_peer(struct np_qp *qp, const struct np_buffer *buffer)
{
	struct np_command command;

	np_pattern(buffer->bytes, DATA_BYTES, PEER_AREA, SEED);
	np_command_rw(&command, buffer, NVMEPEER_OP_WRITE, PEER_AREA, 0, DATA_BYTES);
	return np_qp_run(qp, &command, NP_TIMEOUT_MS);
}

static int holds_pattern(int disk, unsigned char *bytes, uint64_t area)
{
	unsigned char expected[DATA_BYTES];
	int ret = np_disk_read(disk, bytes, DATA_BYTES, area);

	np_pattern(expected, DATA_BYTES, area, SEED);
	if (!ret && memcmp(bytes, expected, DATA_BYTES))
		ret = -EILSEQ;
	return ret;
}

/* A read of a peer that does not complete. */
static int hold_a_read(struct np_bad *bad, struct np_qp *qp, struct np_buffer *buffer)
{
	struct np_command command;
	int ret;

	ret = np_bad_open(bad) ?: np_bad_bind(bad, 1) ?:
	      np_buffer_open(buffer, bad->ctrl.fd, PAGES, 0) ?:
	      np_qp_open(qp, bad->ctrl.fd, ENTRIES) ?:
	      np_bad_rule(bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, BADCTRL_EVERY);
	if (ret)
		return ret;
	np_command_rw(&command, buffer, NVMEPEER_OP_READ, 0, 0, NP_PAGE);
	np_qp_put(qp, &command);
	ret = np_qp_ring_doorbell(qp);
	while (!ret && !np_bad_hits(bad, 0))
		np_sleep_ms(1);
	return ret;
}

/* Returns only on failure. The panic is no complaint (selftests/lib/results.sh). */
static int crash(void)
{
	return np_write_file("/dev/kmsg", "np-test: planted begin panic") ?:
	       np_write_file("/proc/sysrq-trigger", "c");
}

/* Peers and the CPU are active as the kernel ends. */
static void leave_active(struct __test_metadata *_metadata, int (*end)(void))
{
	struct np_buffer buffer, held_buffer;
	struct np_qp qp, held_qp;
	struct np_reader reader;
	struct np_ctrl ctrl;
	struct np_bad bad;
	void *bytes;

	ASSERT_EQ(0, posix_memalign(&bytes, NP_PAGE, DATA_BYTES));
	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	ASSERT_EQ(0, np_buffer_open(&buffer, ctrl.fd, PAGES, 0));
	ASSERT_EQ(0, np_qp_open(&qp, ctrl.fd, ENTRIES));
	ASSERT_EQ(0, write_as_the_cpu(&ctrl, bytes));
	ASSERT_EQ(0, write_as_a_peer(&qp, &buffer));
	ASSERT_EQ(0, hold_a_read(&bad, &held_qp, &held_buffer));
	ASSERT_EQ(0, np_reader_start(&reader, &ctrl));
	ASSERT_EQ(0, np_qp_submit_reads(&qp, ENTRIES - 1, &buffer, (PAGES - 1) * NP_PAGE));
	ASSERT_EQ(0, end());
}

/* The controller has not been bound since the jump. */
static void is_stopped(struct __test_metadata *_metadata, const char *name)
{
	const volatile uint32_t *registers;
	char address[16];

	ASSERT_EQ(0, np_function_address(name, address));
	ASSERT_FALSE(np_bound(address));
	ASSERT_EQ(0, np_pci_write(address, "enable", "1"));
	registers = np_registers_map(address);
	ASSERT_NE(NULL, registers);
	EXPECT_EQ(0, registers[NP_REGISTER_CC] & NP_CC_ENABLE);
	EXPECT_EQ(0, registers[NP_REGISTER_CSTS] & NP_CSTS_READY);
	np_registers_unmap(registers);
	EXPECT_EQ(0, np_pci_write(address, "enable", "0"));
}

static void take_over(struct __test_metadata *_metadata)
{
	struct np_ctrl ctrl;
	struct np_bad bad;
	void *bytes;
	int disk;

	ASSERT_EQ(0, posix_memalign(&bytes, NP_PAGE, DATA_BYTES));
	ASSERT_EQ(0, np_ctrl_open(&ctrl, "np0"));
	disk = np_open_node(&ctrl, "/dev/nvmep%dn1", O_RDONLY | O_DIRECT);
	ASSERT_LE(0, disk);
	EXPECT_EQ(0, holds_pattern(disk, bytes, CPU_AREA));
	EXPECT_EQ(0, holds_pattern(disk, bytes, PEER_AREA));
	EXPECT_EQ(0, np_qp_check(ctrl.fd, NP_TIMEOUT_MS));
	close(disk);
	np_ctrl_close(&ctrl);
	ASSERT_EQ(0, np_bad_open(&bad));
	ASSERT_EQ(0, np_bad_bind(&bad, 1));
	EXPECT_EQ(0, np_bad_read_disk(&bad, bytes));
	EXPECT_EQ(0, np_bad_close(&bad));
	free(bytes);
}

/* The first bytes of the memory of the kernel that panicked, as a dump to a raw disk. */
static int write_dump(void *dump, void *copy)
{
	struct np_ctrl ctrl;
	int disk, ret = np_ctrl_open(&ctrl, "np0");

	if (ret)
		return ret;
	disk = np_open_node(&ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ret = disk < 0 ? disk :
	      np_disk_write(disk, dump, DUMP_BYTES, DUMP_AREA) ?:
	      np_disk_read(disk, copy, DUMP_BYTES, DUMP_AREA);
	close(disk);
	np_ctrl_close(&ctrl);
	return ret ?: memcmp(dump, copy, DUMP_BYTES) ? -EILSEQ : 0;
}

static int read_memory(void *bytes)
{
	int memory = open("/proc/vmcore", O_RDONLY | O_CLOEXEC);
	ssize_t length, got = 0;

	do {
		length = read(memory, (char *)bytes + got, DUMP_BYTES - got);
		got += length > 0 ? length : 0;
	} while (length > 0);
	close(memory);
	return got == DUMP_BYTES ? 0 : -EIO;
}

static void dump(struct __test_metadata *_metadata)
{
	void *bytes, *copy;

	ASSERT_EQ(0, posix_memalign(&bytes, NP_PAGE, DUMP_BYTES));
	ASSERT_EQ(0, posix_memalign(&copy, NP_PAGE, DUMP_BYTES));
	ASSERT_EQ(0, read_memory(bytes));
	EXPECT_EQ(0, memcmp(bytes, "\177ELF", 4));
	EXPECT_EQ(0, write_dump(bytes, copy));
	free(copy);
	free(bytes);
}

static void before_the_jump(struct __test_metadata *_metadata, const char *line)
{
	ASSERT_EQ(0, load_kernel(line, RESUME, 0));
	leave_active(_metadata, jump);
}

/* Panics only if all was well, as the result would be lost. */
static void behind_the_jump(struct __test_metadata *_metadata, const char *line)
{
	is_stopped(_metadata, "np0");
	is_stopped(_metadata, "badctrl");
	take_over(_metadata);
	ASSERT_EQ(0, load_kernel(line, CRASH, KEXEC_FILE_ON_CRASH));
	ASSERT_TRUE(__test_passed(_metadata));
	leave_active(_metadata, crash);
}

static void behind_the_panic(struct __test_metadata *_metadata)
{
	take_over(_metadata);
	dump(_metadata);
}

TEST_F_TIMEOUT(kexec, next_and_crash_kernel_take_over, JUMP_SECONDS)
{
	if (strstr(self->line, CRASHED))
		behind_the_panic(_metadata);
	else if (strstr(self->line, RESUME))
		behind_the_jump(_metadata, self->line);
	else
		before_the_jump(_metadata, self->line);
}

TEST_HARNESS_MAIN
