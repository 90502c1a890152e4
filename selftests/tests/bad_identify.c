// SPDX-License-Identifier: GPL-2.0-only
/*
 * Identify data in combinations that no emulated controller reports, and I/O under each
 * of them.
 *
 * kernels: 7
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npbad.h"
#include "nvmep_test.h"
#include "kselftest_harness.h"

/* Byte offsets in Identify Controller and Identify Namespace. */
#define CTRL_SERIAL	4
#define CTRL_CMIC	76
#define CTRL_MDTS	77
#define CTRL_ATTRIBUTES	96
#define CTRL_CNTRLTYPE	111
#define CTRL_LPA	261
#define CTRL_WCTEMP	266
#define CTRL_CCTEMP	268
#define CTRL_NN		516
#define CTRL_ONCS	520
#define CTRL_VWC	525
#define CTRL_AWUPF	528
#define CTRL_SGLS	536
#define CTRL_SUBNQN	768
#define CTRL_DCTYPE	1806
#define NS_BLOCKS	0
#define NS_FEATURES	24
#define NS_FORMATTED	26
#define NS_PROTECTION	29
#define NS_NMIC		30
#define NS_DEALLOCATE	33
#define NS_NAWUPF	36
#define NS_NABO		42
#define NS_NABSPF	44
#define NS_BOUNDARY	46
#define NS_NPWG		64
#define NS_NPDG		68
#define NS_NOWS		72
#define NS_NGUID	104
#define NS_EUI64	120
#define NS_FORMAT	128
/* Byte offset in Identify Controller of the NVM command set. */
#define CS_WZSL		1
#define CS_DMRSL	4
#define CS_DMSL		8
/* NSFEAT: NAWUPF is defined; NPWG and others are defined. */
#define FEATURE_ATOMICS		(1U << 1)
#define FEATURE_OPTIMAL_IO	(1U << 4)
/* CMIC: several controllers. NMIC: the namespace may be attached to them. */
#define CMIC_CONTROLLERS	(1U << 1)
#define NMIC_SHARED	(1U << 0)
/* ONCS: Dataset Management, Timestamp. CTRATT, second byte: extended LBA formats. */
#define ONCS_DSM	(1U << 2)
#define ONCS_TIMESTAMP	(1U << 6)
#define ATTRIBUTE_FORMATS	(1U << 7)
/* enum blk_unique_id of the kernel. */
#define UNIQUE_EUI64	2U
#define UNIQUE_NAA	3U
/* Headers of older C libraries lack it. */
#define NP_RWF_ATOMIC	0x40
/* Byte offsets in the log SMART / Health Information. */
#define HEALTH_SENSOR(n)	(200 + 2 * ((n) - 1))
#define WARNING_TEMPERATURE	2U
#define QUIRKS		"/sys/module/nvme_peer/parameters/quirks"
#define LARGE		(64U << 10)
/* At most this many discards are sent before they must have merged. */
#define DISCARDS	7
#define MERGES		2U

/* NVM command set: Unrecovered Read Error, Do Not Retry. */
#define STATUS_UNRECOVERED	(NVME_STATUS_DNR | NVME_SC_READ_ERROR)

#define REG_CAP_LOW	BADCTRL_REGISTERS
#define REG_CAP_HIGH	(BADCTRL_REGISTERS + 0x04)
#define REG_VS		(BADCTRL_REGISTERS + 0x08)
#define REG_CMBSZ	(BADCTRL_REGISTERS + 0x3c)
#define REG_CMBMSC	(BADCTRL_REGISTERS + 0x50)
#define REG_CRTO	(BADCTRL_REGISTERS + 0x68)

FIXTURE(bad_identify)
{
	struct np_bad bad;
	uint8_t *bytes;
	uint8_t *back;
};

FIXTURE_SETUP(bad_identify)
{
	if (np_bad_open(&self->bad) == -ENOENT)
		SKIP(return, "no badctrl in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, LARGE));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, LARGE));
}

FIXTURE_TEARDOWN(bad_identify)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
	EXPECT_EQ(0, np_write_file(QUIRKS, "\n"));
	free(self->bytes);
	free(self->back);
}

static int set_bytes(struct np_bad *bad, unsigned int cns, uint32_t offset, uint64_t value,
		     unsigned int size)
{
	int ret = 0;

	for (; size-- && !ret; value >>= 8)
		ret = np_bad_identify(bad, cns, offset++, (uint8_t)value);
	return ret;
}

/* The first line of a file. */
static char *line_of(const char *path)
{
	static char text[512];

	if (np_read_file(path, text, sizeof(text)))
		return "";
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* An attribute of the first disk. */
static char *attribute(struct np_bad *bad, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/%s", bad->ctrl.instance, name);
	return line_of(path);
}

static char *controller_attribute(struct np_bad *bad, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/%s", bad->ctrl.instance, name);
	return line_of(path);
}

static int write_atomically(struct np_bad *bad, void *bytes, size_t length, uint64_t disk)
{
	struct iovec vector = { .iov_base = bytes, .iov_len = length };
	ssize_t ret = pwritev2(bad->disk, &vector, 1, (off_t)disk, NP_RWF_ATOMIC);

	if (ret < 0)
		return -errno;
	return (size_t)ret == length ? 0 : -EIO;
}

static unsigned int number(struct np_bad *bad, const char *name)
{
	return (unsigned int)strtoul(attribute(bad, name), NULL, 10);
}

static void expect_io(struct __test_metadata *_metadata, FIXTURE_DATA(bad_identify) *self)
{
	np_pattern(self->bytes, LARGE, 0, 7);
	ASSERT_EQ(0, np_disk_write(self->bad.disk, self->bytes, LARGE, NP_PAGE));
	memset(self->back, 0xee, LARGE);
	ASSERT_EQ(0, np_disk_read(self->bad.disk, self->back, LARGE, NP_PAGE));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, LARGE));
}

static int send(int node, uint8_t opcode, uint8_t *bytes)
{
	struct nvme_passthru_cmd cmd = {
		.opcode = opcode,
		.nsid = 1,
		.addr = opcode == NVMEPEER_OP_READ ? (uintptr_t)bytes : 0,
		.data_len = opcode == NVMEPEER_OP_READ ? NP_BLOCK : 0,
	};

	return np_ioctl(node, NVME_IOCTL_IO_CMD, &cmd);
}

/* CAP.MQES = 1. */
static int two_entries(struct np_bad *bad)
{
	uint32_t cap = np_bad_get(bad, REG_CAP_LOW);

	return np_bad_set(bad, REG_CAP_LOW, (cap & 0xffff0000) | 1);
}

/* --- names ------------------------------------------------------------------- */

/* The first version with the list of descriptors. */
TEST_F(bad_identify, wwid_prefers_uuid)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_VS, 0x00010300));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NGUID, 0x11, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("uuid.babababa-baba-baba-baba-babababababa",
		     attribute(&self->bad, "wwid"));
	EXPECT_STREQ("babababa-baba-baba-baba-babababababa", attribute(&self->bad, "uuid"));
	EXPECT_STREQ("11000000-0000-0000-0000-000000000000", attribute(&self->bad, "nguid"));
	EXPECT_STREQ("", attribute(&self->bad, "eui"));
	EXPECT_STREQ("1", attribute(&self->bad, "nsid"));
}

/* Length 0 ends the list of descriptors. */
TEST_F(bad_identify, wwid_uses_nguid)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_DESCRIPTORS, 1, 0, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NGUID, 0x0102, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_EUI64, 0x33, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("eui.02010000000000000000000000000000", attribute(&self->bad, "wwid"));
	EXPECT_STREQ("", attribute(&self->bad, "uuid"));
	EXPECT_STREQ("33 00 00 00 00 00 00 00", attribute(&self->bad, "eui"));
}

/* Sixteen descriptors of a type that is ignored, and one that ends with the list. */
TEST_F(bad_identify, last_descriptor_counts)
{
	const uint32_t at = NP_PAGE - 20;
	uint32_t offset, length;

	for (offset = 0; offset < at; offset += length) {
		length = at - offset < 259 ? at - offset : 259;
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_DESCRIPTORS, offset,
				       0x99 | (length - 4) << 8, 2));
	}
	/* A UUID. */
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_DESCRIPTORS, at, 3 | 16 << 8, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_DESCRIPTORS, at + 19, 0x77, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("uuid.00000000-0000-0000-0000-000000000077", attribute(&self->bad, "wwid"));
}

/* Controllers before version 1.3 do not support the descriptor list. */
TEST_F(bad_identify, wwid_uses_eui64)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_VS, 0x00010200));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_EUI64, 0x3344, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("eui.4433000000000000", attribute(&self->bad, "wwid"));
	EXPECT_STREQ("44 33 00 00 00 00 00 00", attribute(&self->bad, "eui"));
	EXPECT_STREQ("", attribute(&self->bad, "nguid"));
}

TEST_F(bad_identify, wwid_uses_serial_number)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << NVME_CNS_DESCRIPTORS));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	/* Strings without their trailing spaces. */
	EXPECT_STREQ("nvme.1234-626164-6261646374726c-00000001", attribute(&self->bad, "wwid"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	/* Trailing zeroes, which some controllers use instead, are removed too. */
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_SERIAL + 18, 0, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("nvme.1234-626164-6261646374726c-00000001", attribute(&self->bad, "wwid"));
}

/* Of the first namespace of controller np1, in memory. */
#define EUI64_OF_NP1	0x8877665544332211ULL

/* The driver does not believe QEMU's identifiers, without this. */
#define BELIEVE_QEMU	"1b36:0010:^bogus_nid"

/* Binds the other controller again, with these quirks, and waits for its first disk. */
static int bind_other(struct np_ctrl *other, const char *quirks)
{
	int disk, ret = np_ctrl_open(other, "np1");

	if (ret)
		return ret;
	np_ctrl_close(other);
	ret = np_write_file(QUIRKS, quirks) ?: np_unbind(other->address) ?:
	      np_bind(other->address) ?: np_ctrl_open(other, "np1");
	if (ret)
		return ret;
	np_ctrl_close(other);
	disk = np_open_node(other, "/dev/nvmep%dn1", O_RDONLY);
	return disk < 0 ? disk : close(disk);
}

/*
 * One identity in two controllers: two paths if both are of one subsystem and the namespace
 * claims to be shared. A claim by another subsystem is false, and without one it is a mistake.
 */
TEST_F(bad_identify, identity_of_another_controller)
{
	static const struct {
		uint8_t multiple;
		uint8_t shared;
		bool subsystem;
		unsigned int namespaces;
		const char *eui;
		const char *text;
	} cases[] = {
		{ 0, 0, true, 1, "", "n1, ignoring the identifiers" },
		{ CMIC_CONTROLLERS, 0, true, 1, "", "n1, ignoring the identifiers" },
		{ 0, NMIC_SHARED, true, 1, "", "n1, ignoring the identifiers" },
		{ CMIC_CONTROLLERS, NMIC_SHARED, false, 0, "", "n1, ignoring the namespace" },
		{ CMIC_CONTROLLERS, NMIC_SHARED, true, 1, "11 22 33 44 55 66 77 88",
		  "multipath is not supported" },
	};
	char path[96], name[256] = "";
	int log = np_log_open();
	struct np_ctrl other;
	size_t i, k;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, bind_other(&other, BELIEVE_QEMU));
	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/eui", other.instance);
	ASSERT_STREQ("11 22 33 44 55 66 77 88", line_of(path));
	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/subsysnqn", other.instance);
	ASSERT_EQ(0, np_read_file(path, name, sizeof(name)));
	name[strcspn(name, "\n")] = '\0';
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_EUI64, EUI64_OF_NP1, 8));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (k = 0; k < sizeof(name); k++)
			ASSERT_EQ(0, np_bad_identify(&self->bad, NVME_CNS_CONTROLLER,
						     CTRL_SUBNQN + (uint32_t)k, (uint8_t)name[k]));
		if (!cases[i].subsystem)
			ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_SUBNQN + 4,
					       '?', 1));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_CMIC,
				       cases[i].multiple, 1));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NMIC,
				       cases[i].shared, 1));
		ASSERT_EQ(0, np_bad_bind(&self->bad, cases[i].namespaces));
		EXPECT_EQ(0, np_log_wait(log, cases[i].text, NP_TIMEOUT_MS)) {
			TH_LOG("case %zu", i);
		}
		EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, cases[i].namespaces));
		EXPECT_STREQ(cases[i].eui, attribute(&self->bad, "eui"));
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
	EXPECT_EQ(0, bind_other(&other, "\n"));
	close(log);
}

/* For users in the kernel: NGUID, else EUI-64. UUIDs are of no type that they have. */
TEST_F(bad_identify, unique_id_of_disk)
{
	struct nvmep_test_unique_id id = { .type = UNIQUE_EUI64 };
	int test = np_test_open();

	ASSERT_LE(0, test);
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	id.fd = self->bad.disk;
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_UNIQUE_ID, &id));
	EXPECT_EQ(-EINVAL, id.length);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_EUI64, 0x3344, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	id.fd = self->bad.disk;
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_UNIQUE_ID, &id));
	EXPECT_EQ(8, id.length);
	EXPECT_EQ(0, memcmp(id.id, "\x44\x33\0\0\0\0\0\0", 8));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NGUID, 0x0102, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	id.fd = self->bad.disk;
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_UNIQUE_ID, &id));
	EXPECT_EQ(16, id.length);
	EXPECT_EQ(0, memcmp(id.id, "\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
	id.type = UNIQUE_NAA;
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_UNIQUE_ID, &id));
	EXPECT_EQ(-EINVAL, id.length);
	close(test);
}

TEST_F(bad_identify, other_controller_types_are_refused)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_CNTRLTYPE, 3, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_DCTYPE, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("admin", controller_attribute(&self->bad, "cntrltype"));
	EXPECT_STREQ("ddc", controller_attribute(&self->bad, "dctype"));
	EXPECT_STREQ("none", controller_attribute(&self->bad, "quirks"));
}

TEST_F(bad_identify, reserved_controller_types)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_CNTRLTYPE, 4, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_DCTYPE, 3, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("reserved", controller_attribute(&self->bad, "cntrltype"));
	EXPECT_STREQ("reserved", controller_attribute(&self->bad, "dctype"));
}

/* --- temperature ----------------------------------------------------------------- */

static bool has_hwmon(void)
{
	return !access("/sys/class/hwmon", F_OK);
}

static int hwmon_path(struct np_bad *bad, const char *name, char path[128])
{
	char pattern[128];
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	glob_t found;
	int ret;

	/* The sensors are added after the first scan. */
	snprintf(pattern, sizeof(pattern), "/sys/class/nvme-peer/nvmep%d/hwmon*/name",
		 bad->ctrl.instance);
	while ((ret = glob(pattern, 0, NULL, &found)) && np_now_ms() < end)
		np_sleep_ms(10);
	if (ret)
		return -ENOENT;
	snprintf(path, 128, "%.*s%s", (int)(strlen(found.gl_pathv[0]) - strlen("name")),
		 found.gl_pathv[0], name);
	globfree(&found);
	return 0;
}

/* "" if there is no such file, or no hwmon device. */
static char *sensor(struct np_bad *bad, const char *name)
{
	char path[128];

	return hwmon_path(bad, name, path) ? "" : line_of(path);
}

static int set_sensor(struct np_bad *bad, const char *name, const char *value)
{
	char path[128];

	return hwmon_path(bad, name, path) ?: np_write_file(path, value);
}

static int set_health(struct np_bad *bad, uint8_t warning, unsigned int composite,
		      unsigned int first, unsigned int last)
{
	return np_bad_set(bad, BADCTRL_HEALTH(0), warning | composite << 8) ?:
	       np_bad_set(bad, BADCTRL_HEALTH(HEALTH_SENSOR(1)), first) ?:
	       np_bad_set(bad, BADCTRL_HEALTH(HEALTH_SENSOR(7)), last << 16);
}

TEST_F(bad_identify, temperature_sensors)
{
	if (!has_hwmon())
		SKIP(return, "no hwmon in this kernel");
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_WCTEMP, 350, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_CCTEMP, 360, 2));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_THRESHOLD(0), 350));
	ASSERT_EQ(0, set_health(&self->bad, 0, 323, 300, 0x101));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("nvme", sensor(&self->bad, "name"));
	EXPECT_STREQ("Composite", sensor(&self->bad, "temp1_label"));
	EXPECT_STREQ("49850", sensor(&self->bad, "temp1_input"));
	EXPECT_STREQ("76850", sensor(&self->bad, "temp1_max"));
	EXPECT_STREQ("86850", sensor(&self->bad, "temp1_crit"));
	EXPECT_STREQ("0", sensor(&self->bad, "temp1_alarm"));
	EXPECT_STREQ("Sensor 1", sensor(&self->bad, "temp2_label"));
	EXPECT_STREQ("26850", sensor(&self->bad, "temp2_input"));
	EXPECT_STREQ("Sensor 8", sensor(&self->bad, "temp9_label"));
	EXPECT_STREQ("-16150", sensor(&self->bad, "temp9_input"));
	/* Sensors that report 0 do not exist; only the composite one has an alarm. */
	EXPECT_STREQ("", sensor(&self->bad, "temp3_input"));
	EXPECT_STREQ("", sensor(&self->bad, "temp8_max"));
	EXPECT_STREQ("", sensor(&self->bad, "temp9_alarm"));
	EXPECT_STREQ("", sensor(&self->bad, "temp9_crit"));
	/* Read from the controller at most once a second. */
	ASSERT_EQ(0, set_health(&self->bad, WARNING_TEMPERATURE, 355, 300, 0x101));
	np_sleep_ms(1100);
	EXPECT_STREQ("81850", sensor(&self->bad, "temp1_input"));
	EXPECT_STREQ("1", sensor(&self->bad, "temp1_alarm"));
}

/* Two reads in a row are one command; a second later the log page is read again. */
TEST_F(bad_identify, temperature_is_read_once_a_second)
{
	char path[128];
	unsigned int i;
	glob_t found;

	if (!has_hwmon())
		SKIP(return, "no hwmon in this kernel");
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("Composite", sensor(&self->bad, "temp1_label"));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_COUNT, 0,
				 BADCTRL_EVERY));
	np_sleep_ms(1100);
	for (i = 0; i < 100; i++)
		EXPECT_STREQ("-273150", sensor(&self->bad, "temp1_input"));
	EXPECT_LE(1, np_bad_hits(&self->bad, 0));
	EXPECT_GT(20, np_bad_hits(&self->bad, 0));
	/* The same for a command that fails. */
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, BADCTRL_EVERY));
	np_sleep_ms(1100);
	for (i = 0; i < 100; i++)
		EXPECT_STREQ("", sensor(&self->bad, "temp1_input"));
	EXPECT_LE(1, np_bad_hits(&self->bad, 0));
	EXPECT_GT(20, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_COUNT, 0,
				 BADCTRL_EVERY));
	/* A scan adds no second device. */
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESCAN, NULL));
	np_sleep_ms(1100);
	EXPECT_STREQ("-273150", sensor(&self->bad, "temp1_input"));
	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/hwmon*",
		 self->bad.ctrl.instance);
	ASSERT_EQ(0, glob(path, 0, NULL, &found));
	EXPECT_EQ(1, found.gl_pathc);
	globfree(&found);
}

static void *temperature_thread(void *bad)
{
	char path[128], text[32];
	int ret = hwmon_path(bad, "temp1_input", path);

	return (void *)(intptr_t)(ret ?: np_read_file(path, text, sizeof(text)));
}

/* No signal has interrupted the reader; the next one does not get the same error. */
TEST_F(bad_identify, reset_while_temperature_is_read)
{
	pthread_t thread;
	void *ret;

	if (!has_hwmon())
		SKIP(return, "no hwmon in this kernel");
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("Composite", sensor(&self->bad, "temp1_label"));
	np_sleep_ms(1100);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, temperature_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
	EXPECT_EQ(NULL, np_bad_reset_thread(&self->bad));
	EXPECT_STREQ("-273150", sensor(&self->bad, "temp1_input"));
	pthread_join(thread, &ret);
	EXPECT_EQ(-EAGAIN, (intptr_t)ret);
}

TEST_F(bad_identify, temperature_thresholds)
{
	if (!has_hwmon())
		SKIP(return, "no hwmon in this kernel");
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_WCTEMP, 350, 2));
	ASSERT_EQ(0, set_health(&self->bad, 0, 323, 300, 310));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, set_sensor(&self->bad, "temp1_max", "60000"));
	EXPECT_EQ(333, np_bad_get(&self->bad, BADCTRL_THRESHOLD(0)));
	EXPECT_STREQ("59850", sensor(&self->bad, "temp1_max"));
	ASSERT_EQ(0, set_sensor(&self->bad, "temp9_min", "-300000"));
	ASSERT_EQ(0, set_sensor(&self->bad, "temp9_max", "99999999"));
	EXPECT_EQ(0, np_bad_get(&self->bad, BADCTRL_THRESHOLD(0x18)));
	EXPECT_EQ(0xffff, np_bad_get(&self->bad, BADCTRL_THRESHOLD(0x08)));
	/* The alarm is read again after a change of a threshold. */
	EXPECT_STREQ("0", sensor(&self->bad, "temp1_alarm"));
	ASSERT_EQ(0, set_health(&self->bad, WARNING_TEMPERATURE, 323, 300, 310));
	ASSERT_EQ(0, set_sensor(&self->bad, "temp1_max", "40000"));
	EXPECT_STREQ("1", sensor(&self->bad, "temp1_alarm"));
	EXPECT_STREQ("", sensor(&self->bad, "temp1_crit"));
	EXPECT_EQ(-EACCES, set_sensor(&self->bad, "temp1_input", "1"));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_SET_FEATURES, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INVALID_FIELD, 1));
	EXPECT_EQ(-EIO, set_sensor(&self->bad, "temp1_max", "1000"));
}

/* A controller that refuses the log page is asked once. */
TEST_F(bad_identify, no_temperature_sensors)
{
	char path[128];
	glob_t found;

	if (!has_hwmon())
		SKIP(return, "no hwmon in this kernel");
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_STATUS,
				 NVME_STATUS_DNR | NVME_SC_INTERNAL, BADCTRL_EVERY));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESCAN, NULL));
	np_sleep_ms(200);
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/hwmon*",
		 self->bad.ctrl.instance);
	EXPECT_EQ(GLOB_NOMATCH, glob(path, 0, NULL, &found));
}

/* --- quirks ---------------------------------------------------------------------- */

TEST_F(bad_identify, quirks_by_parameter)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_WCTEMP, 350, 2));
	ASSERT_EQ(0, set_health(&self->bad, 0, 323, 300, 310));
	ASSERT_EQ(0, np_write_file(QUIRKS, "1234:badc:disable_write_zeroes,no_temp_thresh_change,"
				   "dmapool_align_512,no_ns_desc_list-1234:badd:small_queues-"
				   "1235:badc:stripe_size\n"));
	EXPECT_STREQ("1234:badc:disable_write_zeroes,no_temp_thresh_change,"
		     "dmapool_align_512,no_ns_desc_list-1234:badd:small_queues-"
		     "1235:badc:stripe_size", line_of(QUIRKS));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("disable_write_zeroes", controller_attribute(&self->bad, "quirks"));
	EXPECT_STREQ("0", attribute(&self->bad, "queue/write_zeroes_max_bytes"));
	if (has_hwmon())
		EXPECT_EQ(-EACCES, set_sensor(&self->bad, "temp1_max", "1000"));
	/* Without the list of descriptors there is no UUID. */
	EXPECT_STREQ("nvme.1234-626164-6261646374726c-00000001", attribute(&self->bad, "wwid"));
	expect_io(_metadata, self);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	/* A later entry revokes a quirk; quirks of the table can be revoked as well. */
	ASSERT_EQ(0, np_write_file(QUIRKS, "1234:badc:bogus_nid,no_secondary_temp_thresh-"
				   "1234:badc:^bogus_nid"));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("no_secondary_temp_thresh", controller_attribute(&self->bad, "quirks"));
	EXPECT_STREQ("uuid.babababa-baba-baba-baba-babababababa", attribute(&self->bad, "wwid"));
	if (has_hwmon()) {
		EXPECT_STREQ("26850", sensor(&self->bad, "temp2_input"));
		EXPECT_STREQ("", sensor(&self->bad, "temp2_max"));
	}
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	/* The list is empty again. */
	ASSERT_EQ(0, np_write_file(QUIRKS, "\n"));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("none", controller_attribute(&self->bad, "quirks"));
}

TEST_F(bad_identify, invalid_quirks_are_refused)
{
	static const char *const invalid[] = {
		"1234", "1234:badc", "1234:badc:", "1234:badc:no_such_quirk", "1234:badc:^",
		"quirk:badc:bogus_nid", "1234:badc:bogus_nid-", "1234:badc:bogus_nid bogus_nid",
	};
	char many[600] = "1234:0001:bogus_nid";
	size_t i;

	ASSERT_EQ(0, np_write_file(QUIRKS, "1234:badc:bogus_nid"));
	for (i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
		EXPECT_EQ(-EINVAL, np_write_file(QUIRKS, invalid[i])) {
			TH_LOG("quirks \"%s\"", invalid[i]);
		}
	}
	for (i = 1; i < 16; i++)
		strcat(many, "-1234:0001:bogus_nid");
	EXPECT_EQ(0, np_write_file(QUIRKS, many));
	strcat(many, "-1234:0001:bogus_nid");
	EXPECT_EQ(-EINVAL, np_write_file(QUIRKS, many));
	memset(many, ' ', sizeof(many) - 1);
	EXPECT_EQ(-ENOSPC, np_write_file(QUIRKS, many));
	EXPECT_EQ(0, strncmp("1234:0001:bogus_nid-", line_of(QUIRKS), 20));
}

/* --- host features --------------------------------------------------------------- */

/* The number of Set Features commands during a start. */
static uint32_t features_set(struct np_bad *bad, uint16_t offered, uint8_t attributes)
{
	uint32_t before = np_bad_hits(bad, 0);

	if (set_bytes(bad, NVME_CNS_CONTROLLER, CTRL_ONCS, offered, 2) ||
	    set_bytes(bad, NVME_CNS_CONTROLLER, CTRL_ATTRIBUTES + 1, attributes, 1) ||
	    np_bad_bind(bad, 1) ||
	    np_bad_unbind(bad))
		return UINT32_MAX;
	return np_bad_hits(bad, 0) - before;
}

/* The controller refuses both features and still works. */
TEST_F(bad_identify, host_features_set_only_if_supported)
{
	uint32_t least;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_SET_FEATURES, BADCTRL_COUNT, 0,
				 BADCTRL_EVERY));
	least = features_set(&self->bad, 0, 0);
	ASSERT_GT(8, least);
	EXPECT_EQ(least + 1, features_set(&self->bad, ONCS_TIMESTAMP, 0));
	EXPECT_EQ(least + 1, features_set(&self->bad, 0, ATTRIBUTE_FORMATS));
	EXPECT_EQ(least + 2, features_set(&self->bad, ONCS_TIMESTAMP, ATTRIBUTE_FORMATS));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	expect_io(_metadata, self);
}

/* --- namespaces ---------------------------------------------------------------- */

TEST_F(bad_identify, namespaces_found_without_active_list)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << NVME_CNS_ACTIVE_NAMESPACES));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 0xd));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_NN, 3, 1));
	/* The fourth namespace ID is beyond NN. */
	ASSERT_EQ(0, np_bad_bind(&self->bad, 2));
	expect_io(_metadata, self);
}

/* The scan ends, and keeps the namespaces that it found. */
TEST_F(bad_identify, endless_namespace_list_ends_scan)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, BADCTRL_ACTIVE_ENDLESS | 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	expect_io(_metadata, self);
}

TEST_F(bad_identify, no_namespaces)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << NVME_CNS_ACTIVE_NAMESPACES));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_NN, 0, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 0));
	np_sleep_ms(200);
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
	EXPECT_EQ(0, np_bad_identify_ctrl(&self->bad, 0));
	EXPECT_EQ(-ENOTTY, send(self->bad.ctrl.fd, NVMEPEER_OP_READ, self->bytes));
}

/* --- formats ---------------------------------------------------------------------- */

static int set_format(struct np_bad *bad, unsigned int shift, unsigned int metadata,
		      unsigned int protection)
{
	return set_bytes(bad, NVME_CNS_NAMESPACE, NS_FORMAT, shift << 16 | metadata, 4) ?:
	       set_bytes(bad, NVME_CNS_NAMESPACE, NS_BLOCKS, BADCTRL_NAMESPACE_BYTES >> shift, 8) ?:
	       set_bytes(bad, NVME_CNS_NAMESPACE, NS_PROTECTION, protection, 1);
}

/* The size in bytes must fit into 63 bits: such a disk has no capacity. */
TEST_F(bad_identify, size_that_overflows)
{
	ASSERT_EQ(0, set_format(&self->bad, 12, 0, 0));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_BLOCKS, 1ULL << 51, 8));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, number(&self->bad, "size"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_BLOCKS, (1ULL << 51) - 1, 8));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("18014398509481976", attribute(&self->bad, "size"));
}

/* Bits 3:0 and 6:5 are the index of the format. */
TEST_F(bad_identify, format_index_has_six_bits)
{
	/* If a bit were ignored. */
	static const unsigned int others[] = { 1, 17, 33, 48 };
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FORMAT + 4 * others[i],
				       9 << 16, 4));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FORMAT + 4 * 49, 12 << 16, 4));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FORMATTED, 0x61, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(4096, number(&self->bad, "queue/logical_block_size"));
}

TEST_F(bad_identify, blocks_of_4_kib)
{
	int log;

	ASSERT_EQ(0, set_format(&self->bad, 12, 0, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(4096, number(&self->bad, "queue/logical_block_size"));
	EXPECT_EQ(BADCTRL_NAMESPACE_BYTES / 512, number(&self->bad, "size"));
	expect_io(_metadata, self);
	log = np_log_open();
	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STATUS, STATUS_UNRECOVERED, 1));
	EXPECT_EQ(-ENODATA, np_disk_read(self->bad.disk, self->back, NP_PAGE, 2 * NP_PAGE));
	EXPECT_EQ(0, np_log_wait(log, "n1: Read(0x2) @ LBA 2, 1 blocks, ", NP_TIMEOUT_MS));
	close(log);
}

/*
 * Only a power-of-two boundary is passed to the block layer, because all supported
 * kernels can split at one.
 */
TEST_F(bad_identify, optimal_io_boundary)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_BOUNDARY, 64, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(64, number(&self->bad, "queue/chunk_sectors"));
	expect_io(_metadata, self);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_BOUNDARY, 24, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, number(&self->bad, "queue/chunk_sectors"));
	expect_io(_metadata, self);
}

/* The boundary of controllers that report none, but are slow across 128 KiB. */
TEST_F(bad_identify, boundary_of_stripe_size)
{
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, number(&self->bad, "queue/chunk_sectors"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_write_file(QUIRKS, "1234:badc:stripe_size"));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(256, number(&self->bad, "queue/chunk_sectors"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_BOUNDARY, 64, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(64, number(&self->bad, "queue/chunk_sectors"));
}

/*
 * The controller checks the reference tag, and refuses a host that does not set PRACT. It refuses
 * Write Zeroes that asks for a check (NVM command set 3.3.8: there is nothing to check).
 */
TEST_F(bad_identify, protection_information)
{
	uint64_t range[2] = { NP_PAGE, LARGE };
	unsigned int type;

	for (type = 1; type <= 3; type++) {
		ASSERT_EQ(0, set_format(&self->bad, 9, 8, type));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		EXPECT_EQ(BADCTRL_NAMESPACE_BYTES / 512, number(&self->bad, "size"));
		expect_io(_metadata, self);
		/* The block layer could write zeroes by other commands. */
		np_bad_rule(&self->bad, 0, NP_IO_WRITE_ZEROES, BADCTRL_COUNT, 0, BADCTRL_EVERY);
		np_bad_rule(&self->bad, 1, NP_IO_WRITE, BADCTRL_COUNT, 0, BADCTRL_EVERY);
		EXPECT_EQ(0, np_ioctl(self->bad.disk, BLKZEROOUT, range));
		EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
		EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
		np_bad_rule(&self->bad, 1, NP_IO_WRITE, BADCTRL_COUNT, 0, 0);
		ASSERT_EQ(0, np_disk_read(self->bad.disk, self->back, LARGE, NP_PAGE));
		memset(self->bytes, 0, LARGE);
		EXPECT_EQ(0, memcmp(self->bytes, self->back, LARGE));
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
}

/* Formats whose metadata or block size the block layer does not support. */
TEST_F(bad_identify, unsupported_formats_passthrough_only)
{
	static const struct {
		unsigned int shift;
		unsigned int metadata;
		unsigned int protection;
	} formats[] = { { 9, 8, 0 }, { 9, 64, 0 }, { 9, 64, 1 }, { 16, 0, 0 } };
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		ASSERT_EQ(0, set_format(&self->bad, formats[i].shift, formats[i].metadata,
					formats[i].protection));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		EXPECT_EQ(0, number(&self->bad, "size"));
		EXPECT_EQ(0, np_bad_identify_ctrl(&self->bad, 0));
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
}

/*
 * A namespace with such a format has no nodes, whether it had the format at bind or got
 * it later.
 */
TEST_F(bad_identify, impossible_block_sizes_are_ignored)
{
	static const unsigned int shifts[] = { 8, 32, 255 };
	int log = np_log_open();
	size_t i;

	ASSERT_LE(0, log);
	for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FORMAT,
				       shifts[i] << 16, 4));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 0));
		EXPECT_EQ(0, np_log_wait(log, "block size below 512", NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
		ASSERT_EQ(0, set_format(&self->bad, 9, 0, 0));
		ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESCAN, NULL));
		EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FORMAT,
				       shifts[i] << 16, 4));
		ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESCAN, NULL));
		EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
	close(log);
}

/*
 * File systems assume that a physical block is written atomically: it is the preferred size, if
 * that is atomic, rounded down to a power of two.
 */
TEST_F(bad_identify, physical_block_is_atomic)
{
	static const struct {
		unsigned int features;
		unsigned int nawupf;
		unsigned int awupf;
		unsigned int npwg;
		unsigned int nabo;
		unsigned int size;
	} cases[] = {
		{ FEATURE_ATOMICS, 11, 11, 15, 0, 512 },
		{ FEATURE_OPTIMAL_IO | FEATURE_ATOMICS, 11, 0, 15, 0, 4096 },
		{ FEATURE_OPTIMAL_IO | FEATURE_ATOMICS, 0, 7, 15, 0, 4096 },
		{ FEATURE_OPTIMAL_IO, 11, 3, 15, 0, 2048 },
		{ FEATURE_OPTIMAL_IO, 0, 0xffff, 7, 0, 4096 },
		{ FEATURE_OPTIMAL_IO | FEATURE_ATOMICS, 11, 7, 15, 1, 512 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FEATURES,
				       cases[i].features, 1));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NAWUPF,
				       cases[i].nawupf, 2));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_AWUPF,
				       cases[i].awupf, 2));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NPWG, cases[i].npwg, 2));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NABO, cases[i].nabo, 2));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		EXPECT_EQ(cases[i].size, number(&self->bad, "queue/physical_block_size")) {
			TH_LOG("case %zu", i);
		}
		expect_io(_metadata, self);
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
}

TEST_F(bad_identify, preferred_sizes_not_power_of_two)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FEATURES, 1U << 4 | 1U << 1, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NAWUPF, 0xffff, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NPWG, 6, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NOWS, 0xffff, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NPDG, 3, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(2048, number(&self->bad, "queue/discard_granularity"));
	EXPECT_EQ(2048, number(&self->bad, "queue/physical_block_size"));
	EXPECT_EQ(7 * 512, number(&self->bad, "queue/minimum_io_size"));
	EXPECT_EQ(65536 * 512, number(&self->bad, "queue/optimal_io_size"));
	expect_io(_metadata, self);
}

/* The limits of RWF_ATOMIC, and that the controller gets such a write as one command. */
TEST_F(bad_identify, atomic_write_limits)
{
	static const struct {
		unsigned int nawupf;
		unsigned int nabspf;
		unsigned int nabo;
		unsigned int noiob;
		unsigned int unit;
		unsigned int most;
		unsigned int boundary;
	} cases[] = {
		/* Without NAWUPF one block; AWUPF is not used. */
		{ 0, 0, 0, 0, 512, 512, 0 },
		{ 0, 31, 0, 0, 512, 512, 0 },
		{ 15, 0, 0, 0, 8192, 8192, 0 },
		{ 16, 0, 0, 0, 8192, 17 * 512, 0 },
		{ 15, 31, 0, 0, 8192, 8192, 16384 },
		{ 31, 15, 0, 0, 8192, 8192, 8192 },
		{ 15, 31, 0, 64, 8192, 8192, 16384 },
		/* A boundary that is no power of two or has an offset, I/O split within it. */
		{ 15, 30, 0, 0, 0, 0, 0 },
		{ 15, 31, 1, 0, 0, 0, 0 },
		{ 15, 31, 0, 8, 0, 0, 0 },
	};
	size_t i;

	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_AWUPF, 7, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FEATURES, FEATURE_ATOMICS, 1));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NAWUPF,
				       cases[i].nawupf, 2));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NABSPF,
				       cases[i].nabspf, 2));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NABO, cases[i].nabo, 2));
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_BOUNDARY,
				       cases[i].noiob, 2));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		if (!*attribute(&self->bad, "queue/atomic_write_max_bytes"))
			SKIP(return, "no atomic writes in this kernel");
		EXPECT_EQ(cases[i].unit, number(&self->bad, "queue/atomic_write_unit_max_bytes")) {
			TH_LOG("case %zu", i);
		}
		EXPECT_EQ(cases[i].unit ? 512 : 0,
			  number(&self->bad, "queue/atomic_write_unit_min_bytes"));
		EXPECT_EQ(cases[i].most, number(&self->bad, "queue/atomic_write_max_bytes")) {
			TH_LOG("case %zu", i);
		}
		EXPECT_EQ(cases[i].boundary,
			  number(&self->bad, "queue/atomic_write_boundary_bytes")) {
			TH_LOG("case %zu", i);
		}
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_WRITE, BADCTRL_COUNT, 0,
					 BADCTRL_EVERY));
		EXPECT_EQ(cases[i].unit ? 0 : -EOPNOTSUPP,
			  write_atomically(&self->bad, self->bytes, cases[i].unit ?: 512, 0));
		EXPECT_EQ(cases[i].unit ? 1 : 0, np_bad_hits(&self->bad, 0));
		if (cases[i].unit)
			EXPECT_EQ(-EINVAL, write_atomically(&self->bad, self->bytes,
							    2 * cases[i].unit, 0));
		expect_io(_metadata, self);
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
	/* NAWUPF is not defined. */
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FEATURES, 0, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_BOUNDARY, 0, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(512, number(&self->bad, "queue/atomic_write_max_bytes"));
}

TEST_F(bad_identify, no_preferred_size)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_FEATURES, 1U << 4, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NPWG, 7, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(4096, number(&self->bad, "queue/minimum_io_size"));
	EXPECT_EQ(0, number(&self->bad, "queue/optimal_io_size"));
}

/* --- limits --------------------------------------------------------------------------- */

/* The controller refuses longer transfers, so the block layer has to split. */
TEST_F(bad_identify, short_transfers)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_MDTS, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(8192, self->bad.ctrl.info.max_transfer);
	EXPECT_EQ(8, number(&self->bad, "queue/max_hw_sectors_kb"));
	expect_io(_metadata, self);
}

/* A PRP list has dwords at page boundaries, one more than pages. There may be no write cache. */
TEST_F(bad_identify, limits_of_prp_lists_and_write_cache)
{
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(3, number(&self->bad, "queue/dma_alignment"));
	EXPECT_EQ(NP_PAGE - 1, number(&self->bad, "queue/virt_boundary_mask"));
	EXPECT_EQ((1U << 20) / NP_PAGE + 1, number(&self->bad, "queue/max_segments"));
	EXPECT_STREQ("write back", attribute(&self->bad, "queue/write_cache"));
	EXPECT_EQ(1, number(&self->bad, "queue/fua"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_VWC, 0, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("write through", attribute(&self->bad, "queue/write_cache"));
	EXPECT_EQ(0, number(&self->bad, "queue/fua"));
}

/* From 4 GiB on the limit is the driver's. */
TEST_F(bad_identify, longest_transfers)
{
	uint32_t limit;

	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_MDTS, 0, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	limit = self->bad.ctrl.info.max_transfer;
	EXPECT_LT(8192, limit);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_MDTS, 32 - 12, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(limit, self->bad.ctrl.info.max_transfer);
}

/*
 * With an I/O scheduler the block layer queues more requests than the queue has entries.
 */
TEST_F(bad_identify, queues_of_two_entries)
{
	char path[128];

	ASSERT_EQ(0, two_entries(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_MDTS, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(2, self->bad.ctrl.info.max_entries);
	expect_io(_metadata, self);
	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/scheduler",
		 self->bad.ctrl.instance);
	if (!np_write_file(path, "mq-deadline"))
		expect_io(_metadata, self);
}

/* One range per command: discards cannot be merged. */
TEST_F(bad_identify, short_discards)
{
	uint64_t range[2] = { NP_PAGE, NP_PAGE };

	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER_OF_SET, 3, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(1, number(&self->bad, "queue/max_discard_segments"));
	expect_io(_metadata, self);
	EXPECT_EQ(0, np_ioctl(self->bad.disk, BLKDISCARD, range));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RANGES));
	EXPECT_EQ(0, np_disk_read(self->bad.disk, self->back, NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, self->back[0]);
}

/* badctrl ignores ranges beyond these limits and reports success. */
static void check_discard(struct __test_metadata *_metadata, FIXTURE_DATA(bad_identify) *self,
			  uint32_t limit, unsigned int size)
{
	uint64_t range[2] = { NP_PAGE, LARGE - 2 * NP_PAGE };

	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER_OF_SET, limit, 16, size));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(16 * 512, number(&self->bad, "queue/discard_max_hw_bytes"));
	memset(self->bytes, 0x5a, LARGE);
	ASSERT_EQ(0, np_disk_write(self->bad.disk, self->bytes, LARGE, 0));
	EXPECT_EQ(0, np_ioctl(self->bad.disk, BLKDISCARD, range));
	ASSERT_EQ(0, np_disk_read(self->bad.disk, self->back, LARGE, 0));
	memset(self->bytes + range[0], 0, range[1]);
	EXPECT_EQ(0, memcmp(self->bytes, self->back, LARGE));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER_OF_SET, limit, 0, size));
}

/* Blocks per range and blocks per command (NVM command set 4.1.5.3). */
TEST_F(bad_identify, discards_of_few_blocks)
{
	check_discard(_metadata, self, CS_DMRSL, 4);
	check_discard(_metadata, self, CS_DMSL, 8);
}

/**
 * struct request - a thread that reads or discards a page
 * @disk: file of the disk or partition; the page is at its beginning
 * @ret: 0 or -errno
 */
struct request {
	int disk;
	int ret;
	pthread_t thread;
};

static void *read_thread(void *argument)
{
	static uint8_t bytes[NP_PAGE] __attribute__((aligned(NP_PAGE)));
	struct request *request = argument;

	request->ret = np_disk_read(request->disk, bytes, NP_PAGE, 0);
	return NULL;
}

static void *discard_thread(void *argument)
{
	uint64_t range[2] = { 0, NP_PAGE };
	struct request *request = argument;

	request->ret = np_ioctl(request->disk, BLKDISCARD, range);
	return NULL;
}

/*
 * Pages 1, 3, 5 and so on are partitions, so that concurrent discards do not wait for
 * each other.
 */
static int open_partition(struct np_bad *bad, int number)
{
	struct blkpg_partition partition = {
		.start = (2 * number - 1) * (long long)NP_PAGE,
		.length = NP_PAGE,
		.pno = number,
	};
	struct blkpg_ioctl_arg add = {
		.op = BLKPG_ADD_PARTITION,
		.datalen = sizeof(partition),
		.data = &partition,
	};
	char format[32];

	snprintf(format, sizeof(format), "/dev/nvmep%%dn1p%d", number);
	return np_ioctl(bad->disk, BLKPG, &add) ?: np_open_node(&bad->ctrl, format, O_RDWR);
}

/* Merged discards: the 13th number of Documentation/block/stat.rst. */
static unsigned int merged_discards(struct np_bad *bad)
{
	unsigned int merges = 0;

	sscanf(attribute(bad, "stat"), "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %u", &merges);
	return merges;
}

static int wait_merges(struct np_bad *bad)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	while (merged_discards(bad) < MERGES) {
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		np_sleep_ms(10);
	}
	return 0;
}

/*
 * The controller holds one command and its queue takes no other. The next request is
 * dispatched, those after it wait in the scheduler and merge. Returns how many discards
 * were needed, or -errno.
 */
static int merge_discards(struct np_bad *bad, struct request *read, struct request *discards)
{
	int i, ret;

	*read = (struct request){ .disk = bad->disk };
	ret = np_bad_rule(bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1) ?:
	      -pthread_create(&read->thread, NULL, read_thread, read) ?:
	      np_bad_wait_word(bad, BADCTRL_HELD, 1);
	for (i = 0; i < DISCARDS && merged_discards(bad) < MERGES && !ret; i++) {
		ret = -pthread_create(&discards[i].thread, NULL, discard_thread, &discards[i]);
		np_sleep_ms(50);
	}
	ret = ret ?: wait_merges(bad);
	return np_bad_set(bad, BADCTRL_RELEASE, 1) ?: ret ?: i;
}

static int set_queue(struct np_bad *bad, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/%s", bad->ctrl.instance, name);
	return np_write_file(path, value);
}

/* The scheduler's queue is made deep enough for all discards. */
static int make_room(struct np_bad *bad)
{
	/* Not every kernel throttles discards, so a failure is ignored. */
	set_queue(bad, "wbt_lat_usec", "0");
	return set_queue(bad, "scheduler", "mq-deadline") ?: set_queue(bad, "nr_requests", "16");
}

/*
 * Every other page is discarded, several by one command; the pages between keep their
 * data.
 */
TEST_F(bad_identify, merged_discards)
{
	struct request read, discards[DISCARDS];
	int i, count;

	ASSERT_EQ(0, two_entries(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	if (make_room(&self->bad))
		SKIP(return, "kernel without an I/O scheduler");
	memset(self->bytes, 0x5a, LARGE);
	ASSERT_EQ(0, np_disk_write(self->bad.disk, self->bytes, LARGE, 0));
	for (i = 0; i < DISCARDS; i++) {
		discards[i].disk = open_partition(&self->bad, i + 1);
		ASSERT_LE(0, discards[i].disk);
	}
	count = merge_discards(&self->bad, &read, discards);
	ASSERT_LE(0, count);
	pthread_join(read.thread, NULL);
	EXPECT_EQ(0, read.ret);
	for (i = 0; i < count; i++) {
		pthread_join(discards[i].thread, NULL);
		EXPECT_EQ(0, discards[i].ret);
		memset(self->bytes + (2 * i + 1) * NP_PAGE, 0, NP_PAGE);
	}
	EXPECT_LT(MERGES, np_bad_get(&self->bad, BADCTRL_RANGES));
	ASSERT_EQ(0, np_disk_read(self->bad.disk, self->back, LARGE, 0));
	EXPECT_EQ(0, memcmp(self->bytes, self->back, LARGE));
	for (i = 0; i < DISCARDS; i++)
		close(discards[i].disk);
}

/* A request that waits for a queue entry was meant for the old namespace. */
TEST_F(bad_identify, queued_request_not_sent_to_new_namespace)
{
	struct request reads[2];
	unsigned int i;

	ASSERT_EQ(0, two_entries(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 1, NP_IO_READ, BADCTRL_COUNT, 0, BADCTRL_EVERY));
	for (i = 0; i < 2; i++) {
		reads[i] = (struct request){ .disk = self->bad.disk };
		ASSERT_EQ(0, pthread_create(&reads[i].thread, NULL, read_thread, &reads[i]));
		EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
		np_sleep_ms(200);
	}
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_NGUID, 0x77, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	EXPECT_EQ(0, np_bad_wait_no_capacity(&self->bad));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < 2; i++) {
		pthread_join(reads[i].thread, NULL);
		EXPECT_EQ(i ? -EIO : 0, reads[i].ret);
	}
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
}

/* --- removal during an unmount ------------------------------------------------------------ */

/**
 * struct fuse_mount - a file system on namespace 2 whose server is the test
 * @fd: /dev/fuse; closing it ends all waits for the server
 * @unmount: process in umount(), which waits for the server and holds s_umount
 */
struct fuse_mount {
	int fd;
	pid_t unmount;
};

/* Reads requests up to one with @opcode, and returns its identifier, or 0. */
static uint64_t fuse_request(int fd, uint32_t opcode)
{
	static union {
		struct fuse_in_header header;
		char bytes[64 << 10];
	} request;

	do {
		if (read(fd, &request, sizeof(request)) < (ssize_t)sizeof(request.header))
			return 0;
	} while (request.header.opcode != opcode);
	return request.header.unique;
}

static int fuse_answer_init(int fd)
{
	struct {
		struct fuse_out_header header;
		struct fuse_init_out init;
	} reply = {
		.header = { .len = sizeof(reply), .unique = fuse_request(fd, FUSE_INIT) },
		.init = {
			.major = FUSE_KERNEL_VERSION,
			.minor = FUSE_KERNEL_MINOR_VERSION,
			.max_write = 4096,
		},
	};

	return write(fd, &reply, sizeof(reply)) == sizeof(reply) ? 0 : -EIO;
}

/* Mounts a namespace and begins to unmount it. Returns -ENODEV in a kernel without FUSE. */
static int fuse_hold(struct fuse_mount *mounted, const struct np_bad *bad, unsigned int nsid)
{
	char disk[64], path[] = "/tmp/fuse.XXXXXX", options[96];

	if (system("modprobe -q fuse") || access("/dev/fuse", F_OK))
		return -ENODEV;
	mounted->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (mounted->fd < 0 || !mkdtemp(path))
		return -errno;
	snprintf(disk, sizeof(disk), "/dev/nvmep%dn%u", bad->ctrl.instance, nsid);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,blksize=512",
		 mounted->fd);
	if (mount(disk, path, "fuseblk", 0, options))
		return -errno;
	if (fuse_answer_init(mounted->fd))
		return -EIO;
	mounted->unmount = fork();
	if (!mounted->unmount) {
		/* Also queue pairs, which would live as long as it does. */
		close_range(3, ~0U, 0);
		_exit(umount2(path, 0) || rmdir(path));
	}
	return mounted->unmount < 0 || !fuse_request(mounted->fd, FUSE_DESTROY) ? -EIO : 0;
}

static int fuse_release(struct fuse_mount *mounted)
{
	int status;

	close(mounted->fd);
	return waitpid(mounted->unmount, &status, 0) != mounted->unmount ? -errno : status;
}

/* Namespaces @active, and the driver is notified. */
static int change_active(struct np_bad *bad, uint32_t active)
{
	return np_bad_set(bad, BADCTRL_ACTIVE, active) ?:
	       np_bad_set(bad, BADCTRL_EVENT, EVENT_NAMESPACES);
}

static int set_cpu_queues(struct np_bad *bad, const char *count)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/class/nvme-peer/nvmep%d/cpu_queues", bad->ctrl.instance);
	return np_write_file(path, count);
}

/* Opens a queue pair as soon as a scan has succeeded. */
static int open_pair(struct np_bad *bad, struct np_qp *qp)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int ret;

	while ((ret = np_qp_open(qp, bad->ctrl.fd, 16)) == -EAGAIN && np_now_ms() < end)
		np_sleep_ms(10);
	return ret;
}

/* Waits until the disk of a namespace can be read. */
static int wait_disk(struct np_bad *bad, const char *format, void *bytes)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int disk, ret;

	do {
		disk = np_open_node(&bad->ctrl, format, O_RDONLY | O_DIRECT);
		ret = disk < 0 ? disk : np_disk_read(disk, bytes, NP_PAGE, 0);
		if (disk >= 0)
			close(disk);
		np_sleep_ms(10);
	} while (ret && np_now_ms() < end);
	return ret;
}

/*
 * The removal of a disk waits for s_umount of its file system. Scans do not: they add
 * namespaces, and owners of queue pairs do not wait. One with the same NSID has to wait.
 */
TEST_F(bad_identify, removal_during_unmount_delays_no_scan)
{
	struct fuse_mount mounted;
	int ret, log = np_log_open();
	struct np_qp qp;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 2));
	ASSERT_EQ(0, open_pair(&self->bad, &qp));
	ret = fuse_hold(&mounted, &self->bad, 2);
	if (ret == -ENODEV)
		np_qp_close(&qp);
	if (ret == -ENODEV)
		SKIP(return, "no FUSE in this kernel");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, change_active(&self->bad, 5));
	EXPECT_EQ(0, wait_disk(&self->bad, "/dev/nvmep%dn3", self->back));
	EXPECT_EQ(0, np_qp_wait_state(&qp, NVME_PEER_QP_FAILED, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	EXPECT_EQ(0, open_pair(&self->bad, &qp));
	np_qp_close(&qp);
	ASSERT_EQ(0, change_active(&self->bad, 0xf));
	EXPECT_EQ(0, wait_disk(&self->bad, "/dev/nvmep%dn4", self->back));
	EXPECT_EQ(-ETIMEDOUT, np_log_wait(log, "namespace 2: not added", 100));
	/* The block layer would change the queues of the disk while it deletes it. */
	EXPECT_EQ(-EBUSY, set_cpu_queues(&self->bad, "1"));
	EXPECT_EQ(0, np_log_wait(log, "1 refused, a namespace is being removed",
				 NP_TIMEOUT_MS));
	close(log);
	EXPECT_EQ(0, fuse_release(&mounted));
	EXPECT_EQ(0, wait_disk(&self->bad, "/dev/nvmep%dn2", self->back));
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 4));
	EXPECT_EQ(0, set_cpu_queues(&self->bad, "1"));
}

/*
 * The block layer keeps a queue that the controller has taken away as long as a disk is being
 * removed. Its I/O is sent by another queue, also while a scan does not end.
 */
TEST_F(bad_identify, lost_queue_during_unmount_and_scan)
{
	struct nvme_peer_info info;
	struct fuse_mount mounted;
	int ret;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 2));
	ASSERT_EQ(0, np_info(self->bad.ctrl.fd, &info));
	if (info.qids_cpu < 2)
		SKIP(return, "the CPU has one queue, fewer cannot be granted");
	ret = fuse_hold(&mounted, &self->bad, 2);
	if (ret == -ENODEV)
		SKIP(return, "no FUSE in this kernel");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, change_active(&self->bad, 5));
	EXPECT_EQ(0, wait_disk(&self->bad, "/dev/nvmep%dn3", self->back));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESCAN, NULL));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	ASSERT_EQ(0, np_run_on(1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->back));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	EXPECT_EQ(0, fuse_release(&mounted));
}

/* The scan that finds the identity under another NSID does so before it removes the first one. */
TEST_F(bad_identify, moved_identity_waits_for_no_unmount)
{
	struct nvme_passthru_cmd read = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 2,
		.addr = (uintptr_t)self->bytes,
		.data_len = NP_BLOCK,
	};
	struct fuse_mount mounted;
	int ret;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_SAME_UUID, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ret = fuse_hold(&mounted, &self->bad, 1);
	if (ret == -ENODEV)
		SKIP(return, "no FUSE in this kernel");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, change_active(&self->bad, 2));
	EXPECT_EQ(0, wait_disk(&self->bad, "/dev/nvmep%dn2", self->back));
	/* The controller's node has one namespace. */
	EXPECT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_IO_CMD, &read));
	EXPECT_EQ(0, fuse_release(&mounted));
}

static void *unbind_thread(void *argument)
{
	struct np_bad *bad = argument;

	return (void *)(intptr_t)np_unbind(bad->address);
}

TEST_F(bad_identify, unbind_waits_for_removal)
{
	struct fuse_mount mounted;
	pthread_t thread;
	void *unbound;
	int ret;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 3));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 2));
	ret = fuse_hold(&mounted, &self->bad, 2);
	if (ret == -ENODEV)
		SKIP(return, "no FUSE in this kernel");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, change_active(&self->bad, 5));
	EXPECT_EQ(0, wait_disk(&self->bad, "/dev/nvmep%dn3", self->back));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESET, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, unbind_thread, &self->bad));
	np_sleep_ms(300);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	/* Disks still work: their deletion writes data back. CPU 1 has lost its queue. */
	ASSERT_EQ(0, np_run_on(1));
	EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->back));
	EXPECT_EQ(0, fuse_release(&mounted));
	pthread_join(thread, &unbound);
	EXPECT_EQ(0, (intptr_t)unbound);
}

/* --- completions that do not match -------------------------------------------------------- */

/*
 * With one command at a time, the next command has the same tag and another generation
 * count in its CID.
 */
TEST_F(bad_identify, stale_completion_is_ignored)
{
	struct request read;
	int i;

	ASSERT_EQ(0, two_entries(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	for (i = 0; i < 2; i++) {
		read = (struct request){ .disk = self->bad.disk };
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_STALE,
					 STATUS_UNRECOVERED, 1));
		ASSERT_EQ(0, pthread_create(&read.thread, NULL, read_thread, &read));
		EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
		np_sleep_ms(100);
		EXPECT_EQ(EBUSY, pthread_tryjoin_np(read.thread, NULL));
		EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
		pthread_join(read.thread, NULL);
		EXPECT_EQ(0, read.ret);
	}
}

/* The only tag is 0, and the CID that the controller completes has the first one behind the queue's. */
TEST_F(bad_identify, completion_behind_last_tag_is_ignored)
{
	struct request read = { };

	ASSERT_EQ(0, two_entries(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	read.disk = self->bad.disk;
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_WRONG_ID, 2, 1));
	ASSERT_EQ(0, pthread_create(&read.thread, NULL, read_thread, &read));
	EXPECT_EQ(0, np_bad_wait_word(&self->bad, BADCTRL_HELD, 1));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	pthread_join(read.thread, NULL);
	EXPECT_EQ(0, read.ret);
}

/*
 * The completion may be handled on another CPU than the one that submitted the request.
 */
TEST_F(bad_identify, duplicate_completion_ignored_on_other_cpu)
{
	int cpu, i;

	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, set_queue(&self->bad, "rq_affinity", "2"));
	for (cpu = 0; cpu < 2; cpu++) {
		ASSERT_EQ(0, np_run_on(cpu));
		ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_IO_READ, BADCTRL_TWICE, 0, 8));
		for (i = 0; i < 16; i++)
			EXPECT_EQ(0, np_bad_read_disk(&self->bad, self->bytes));
	}
}

/* WZSL, in units of pages: shorter than other commands, or longer. */
TEST_F(bad_identify, write_zeroes_limit)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER_OF_SET, CS_WZSL, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(8192, number(&self->bad, "queue/write_zeroes_max_bytes"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER_OF_SET, CS_WZSL, 11, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(8 << 20, number(&self->bad, "queue/write_zeroes_max_bytes"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	/* NLB limits a command to 65,536 blocks. */
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER_OF_SET, CS_WZSL, 31, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(32 << 20, number(&self->bad, "queue/write_zeroes_max_bytes"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	/* A limit of a command that the controller does not have. */
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_ONCS, ONCS_DSM, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, number(&self->bad, "queue/write_zeroes_max_bytes"));
}

/*
 * The controller may deallocate the blocks, which then read as zero. Kernels before 6.17
 * do not set DEAC.
 */
TEST_F(bad_identify, write_zeroes_may_deallocate)
{
	static const struct {
		unsigned int features;
		bool fast;
	} cases[] = { { 0x09, true }, { 0x08, false }, { 0x01, false }, { 0x0a, false } };
	unsigned int longest;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_NAMESPACE, NS_DEALLOCATE,
				       cases[i].features, 1));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		longest = number(&self->bad, "queue/write_zeroes_max_bytes");
		EXPECT_EQ(1 << 20, longest);
		if (*attribute(&self->bad, "queue/write_zeroes_unmap_max_hw_bytes"))
			EXPECT_EQ(cases[i].fast ? longest : 0,
				  number(&self->bad, "queue/write_zeroes_unmap_max_bytes"));
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
}

/*
 * The IOVA allocator does not cache longer ranges, so max_sectors defaults to 128 KiB
 * behind a translating IOMMU. Passthrough commands may be longer.
 */
TEST_F(bad_identify, iommu_limits_request_size)
{
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_NE(NVME_PEER_DOMAIN_PHYSICAL, self->bad.ctrl.info.domain);
	EXPECT_EQ(128, number(&self->bad, "queue/max_sectors_kb"));
	EXPECT_EQ(1024, number(&self->bad, "queue/max_hw_sectors_kb"));
	expect_io(_metadata, self);
}

/*
 * NUSE is read from the controller, and a failure is returned to the reader. Any user may
 * read it, so not each read sends a command.
 */
TEST_F(bad_identify, blocks_in_use)
{
	char path[128], text[32];

	int i;

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_STATUS,
		    NVME_STATUS_DNR | NVME_SC_INTERNAL, 1);
	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/nuse", self->bad.ctrl.instance);
	EXPECT_EQ(-EIO, np_read_file(path, text, sizeof(text)));
	np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	for (i = 0; i < 10; i++)
		EXPECT_LT(0, number(&self->bad, "nuse"));
	EXPECT_EQ(0, np_bad_hits(&self->bad, 0));
}

static void *nuse_thread(void *bad)
{
	const struct np_bad *which = bad;
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/nuse", which->ctrl.instance);
	return (void *)(intptr_t)np_read_file(path, text, sizeof(text));
}

/* The reader may try again; no signal has interrupted it. */
TEST_F(bad_identify, reset_while_blocks_in_use_are_read)
{
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_HOLD, 0, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, nuse_thread, &self->bad));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 0, 1));
	EXPECT_EQ(NULL, np_bad_reset_thread(&self->bad));
	pthread_join(thread, &ret);
	EXPECT_EQ(-EAGAIN, (intptr_t)ret);
}

/* A controller that refuses Identify with the command set specific limits. */
TEST_F(bad_identify, command_set_limits_refused)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << NVME_CNS_CONTROLLER_OF_SET));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	expect_io(_metadata, self);
}

/*
 * CNS had one bit in version 1.0 and two in 1.1. A longer value would be truncated, and the
 * answer to another question be taken for the limits.
 */
TEST_F(bad_identify, old_versions_get_short_cns)
{
	static const struct {
		uint32_t version;
		uint32_t commands;
		const char *quirks;
	} cases[] = {
		/* Controller, twice (np_ctrl_open()), and namespace; list; limits. */
		{ 0x00010000, 3, "\n" }, { 0x00010100, 4, "\n" }, { 0x00010200, 5, "\n" },
		/* It knows one bit only, whatever its version says. */
		{ 0x00010100, 3, "1234:badc:identify_cns" },
	};
	uint32_t before;
	size_t i;

	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_NN, 1, 1));
	np_bad_rule(&self->bad, 0, NVME_ADMIN_IDENTIFY, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		before = np_bad_hits(&self->bad, 0);
		ASSERT_EQ(0, np_write_file(QUIRKS, cases[i].quirks));
		ASSERT_EQ(0, np_bad_set(&self->bad, REG_VS, cases[i].version));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		EXPECT_EQ(cases[i].commands, np_bad_hits(&self->bad, 0) - before);
		expect_io(_metadata, self);
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
}

/* LPA announces the Commands Supported and Effects log, and Get Log Page is refused. */
TEST_F(bad_identify, effects_log_refused)
{
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_LPA, 1U << 1, 1));
	np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_STATUS,
		    NVME_STATUS_DNR | NVME_SC_INTERNAL, 1);
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	expect_io(_metadata, self);
}

/* Unprivileged users read it without a lock, so it stays the same as long as the controller is bound. */
TEST_F(bad_identify, effects_log_is_read_once)
{
	/* Of the start, and of hwmon. */
	uint32_t hits = has_hwmon() ? 2 : 1;

	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_LPA, 1U << 1, 1));
	np_bad_rule(&self->bad, 0, NVME_ADMIN_GET_LOG_PAGE, BADCTRL_COUNT, 0, BADCTRL_EVERY);
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, np_bad_wait_hits(&self->bad, 0, hits));
	EXPECT_EQ(hits, np_bad_hits(&self->bad, 0));
	ASSERT_EQ(NULL, np_bad_reset_thread(&self->bad));
	EXPECT_EQ(hits, np_bad_hits(&self->bad, 0));
}

/* In a child process: 0, or the number of the wrong result. */
static int send_without_capabilities(int generic, uint8_t *bytes)
{
	if (np_drop_capabilities())
		return 1;
	if (send(generic, NVMEPEER_OP_READ, bytes))
		return 2;
	if (send(generic, NVMEPEER_OP_WRITE_ZEROES, bytes) != -EACCES)
		return 3;
	if (send(generic, NVMEPEER_OP_FLUSH, bytes) != -EACCES)
		return 4;
	return send(generic, NVME_IO_VENDOR, bytes) == -EACCES ? 0 : 5;
}

/*
 * An unprivileged user may send only commands that the effects log declares harmless:
 * none that changes a namespace, none that the log does not list, no vendor specific one.
 */
TEST_F(bad_identify, unprivileged_commands_follow_effects_log)
{
	int generic, status;
	struct np_qp qp;
	pid_t child;

	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_LPA, 1U << 1, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NVMEPEER_OP_READ),
				NP_EFFECT_SUPPORTED | NP_EFFECTS_SCOPE));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NVMEPEER_OP_WRITE_ZEROES),
				NP_EFFECT_SUPPORTED | NP_EFFECT_NS_CAPABILITY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NVME_IO_VENDOR), NP_EFFECT_SUPPORTED));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	generic = np_open_node(&self->bad.ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, generic);
	/* Only admin commands wait until no peer has a queue pair. */
	ASSERT_EQ(0, open_pair(&self->bad, &qp));
	EXPECT_EQ(0, send(generic, NVMEPEER_OP_WRITE_ZEROES, self->bytes));
	np_qp_close(&qp);
	EXPECT_LT(0, send(generic, NVME_IO_VENDOR, self->bytes));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(send_without_capabilities(generic, self->bytes));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	close(generic);
}

/* --- registers ---------------------------------------------------------------------------- */

TEST_F(bad_identify, cmb_and_sgl_support_are_reported)
{
	uint32_t cap = np_bad_get(&self->bad, REG_CAP_HIGH);

	/* CAP.CMBS, and CMBSZ of 16 units of 64 KiB. */
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CAP_HIGH, cap | 1U << 25));
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CMBSZ, 16U << 12 | 1U << 8));
	ASSERT_EQ(0, set_bytes(&self->bad, NVME_CNS_CONTROLLER, CTRL_SGLS, 0x00010001, 4));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(16 * 65536, self->bad.ctrl.info.cmb_size);
	EXPECT_EQ(0x00010001, self->bad.ctrl.info.sgls);
	/* The buffer is not left enabled. */
	EXPECT_EQ(0, np_bad_get(&self->bad, REG_CMBMSC));
	expect_io(_metadata, self);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	/* Units above 64 GiB are reserved. */
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CMBSZ, 16U << 12 | 6U << 8));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(16ULL << 36, self->bad.ctrl.info.cmb_size);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CMBSZ, 16U << 12 | 7U << 8));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, self->bad.ctrl.info.cmb_size);
}

/* CAP.TO is 1 s, CRTO (base specification 3.1.4.20) is 1.5 s. */
TEST_F(bad_identify, crto_extends_ready_timeout)
{
	uint32_t cap = np_bad_get(&self->bad, REG_CAP_HIGH);
	int64_t start = np_now_ms();

	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CAP_HIGH, cap | 1U << 27));
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CRTO, 3));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_MODE, BADCTRL_NEVER_READY));
	EXPECT_EQ(-ETIMEDOUT, np_bind(self->bad.address));
	EXPECT_LE(1500, np_now_ms() - start);
}

TEST_HARNESS_MAIN
