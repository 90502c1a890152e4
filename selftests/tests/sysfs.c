// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of controllers and namespaces: values equal those of Identify, INFO and PCI,
 * and the two writable ones work.
 *
 * iommu: on
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nptest.h"
#include "spare.h"
#include "kselftest_harness.h"

NP_KEEPS_DISK()

#define TEXT		512U
#define ENTRIES		16U
/* User ID of an unprivileged user. */
#define NOBODY		65534
#define ADMIN_TIMEOUT	"/sys/module/nvme_peer/parameters/admin_timeout"
#define IO_TIMEOUT	"/sys/module/nvme_peer/parameters/io_timeout"

/* Identify Controller and Identify Namespace (base 5.1.13, NVM command set 4.1.5). */
#define ID_VID		0
#define ID_SERIAL	4
#define ID_MODEL	24
#define ID_FIRMWARE	64
#define ID_CNTLID	78
#define ID_CNTRLTYPE	111
#define ID_CCTEMP	268
#define ID_SUBNQN	768
#define ID_DCTYPE	1806
#define ID_NUSE		16

FIXTURE(sysfs)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	uint8_t id[NP_PAGE];
};

static int identify(int fd, uint32_t cns, uint32_t nsid, uint8_t id[NP_PAGE])
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.nsid = nsid,
		.addr = (uintptr_t)id,
		.data_len = NP_PAGE,
		.cdw10 = cns,
	};

	return np_admin(fd, &cmd);
}

/* np1, whose second namespace has metadata and no block device that could be used. */
FIXTURE_SETUP(sysfs)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, np_spare_or("np1")));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, identify(self->ctrl.fd, NVME_CNS_CONTROLLER, 0, self->id));
}

FIXTURE_TEARDOWN(sysfs)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

static void attribute_path(const struct np_ctrl *ctrl, const char *name, char path[TEXT])
{
	snprintf(path, TEXT, "/sys/class/nvme-peer/nvmep%d/%s", ctrl->instance, name);
}

/* Without the newline; "?" and the errno if it cannot be read. */
static const char *attribute(const struct np_ctrl *ctrl, const char *name)
{
	static char text[TEXT];
	char path[TEXT];
	int ret;

	attribute_path(ctrl, name, path);
	ret = np_read_file(path, text, sizeof(text));
	if (ret)
		snprintf(text, sizeof(text), "? %d", ret);
	else if (!strlen(text) || text[strlen(text) - 1] != '\n')
		snprintf(text, sizeof(text), "? not a line");
	else
		text[strlen(text) - 1] = '\0';
	return text;
}

static int write_attribute(const struct np_ctrl *ctrl, const char *name, const char *text)
{
	char path[TEXT];

	attribute_path(ctrl, name, path);
	return np_write_file(path, text);
}

static const char *format(const char *how, ...)
{
	static char text[TEXT];
	va_list arguments;

	va_start(arguments, how);
	vsnprintf(text, sizeof(text), how, arguments);
	va_end(arguments);
	return text;
}

static unsigned int u16_at(const uint8_t *id, unsigned int at)
{
	return id[at] | (unsigned int)id[at + 1] << 8;
}

TEST_F(sysfs, strings_match_identify)
{
	const char *id = (const char *)self->id;

	EXPECT_STREQ(format("%.20s", id + ID_SERIAL), attribute(&self->ctrl, "serial"));
	EXPECT_STREQ(format("%.40s", id + ID_MODEL), attribute(&self->ctrl, "model"));
	EXPECT_STREQ(format("%.8s", id + ID_FIRMWARE), attribute(&self->ctrl, "firmware_rev"));
	EXPECT_STREQ(format("%.256s", id + ID_SUBNQN), attribute(&self->ctrl, "subsysnqn"));
	if (!np_spare())
		EXPECT_EQ(0, strncmp(attribute(&self->ctrl, "serial"), "np1 ", 4));
}

TEST_F(sysfs, numbers_match_identify_and_info)
{
	struct nvme_peer_info info;
	char node[TEXT], path[TEXT], uevent[TEXT];

	ASSERT_EQ(0, np_info(self->ctrl.fd, &info));
	EXPECT_STREQ(format("%u", u16_at(self->id, ID_CNTLID)), attribute(&self->ctrl, "cntlid"));
	/* QEMU's controllers report the type I/O controller; some report none. */
	if (self->id[ID_CNTRLTYPE] || !np_spare()) {
		EXPECT_EQ(1, self->id[ID_CNTRLTYPE]);
		EXPECT_STREQ("io", attribute(&self->ctrl, "cntrltype"));
	}
	EXPECT_EQ(0, self->id[ID_DCTYPE]);
	EXPECT_STREQ("none", attribute(&self->ctrl, "dctype"));
	EXPECT_STREQ("pcie", attribute(&self->ctrl, "transport"));
	/* The uevent has the same value. */
	attribute_path(&self->ctrl, "uevent", path);
	ASSERT_EQ(0, np_read_file(path, uevent, sizeof(uevent)));
	EXPECT_TRUE(strstr(uevent, "\nNVME_TRTYPE=pcie\n"));
	EXPECT_STREQ("live", attribute(&self->ctrl, "state"));
	EXPECT_STREQ(format("%u", info.generation), attribute(&self->ctrl, "generation"));
	EXPECT_STREQ(self->ctrl.address, attribute(&self->ctrl, "address"));
	EXPECT_STREQ(format("%u", info.qids_cpu + 1), attribute(&self->ctrl, "queue_count"));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", self->ctrl.address);
	/* A kernel without NUMA has no numa_node file. */
	if (np_read_file(path, node, sizeof(node)))
		strcpy(node, "-1");
	EXPECT_STREQ(format("%d", atoi(node)), attribute(&self->ctrl, "numa_node"));
	/* One entry stays empty. */
	if (!np_spare())
		EXPECT_LE(1024, info.max_entries);
	EXPECT_STREQ(format("%u", (info.max_entries < 1024 ? info.max_entries : 1024) - 1),
		     attribute(&self->ctrl, "sqsize"));
}

TEST_F(sysfs, driver_attributes)
{
	char before[TEXT], limit[TEXT], path[TEXT];
	unsigned int seconds;
	int ret;

	/* QEMU's namespaces all report the same identifiers. */
	if (!np_spare())
		EXPECT_STREQ("bogus_nid", attribute(&self->ctrl, "quirks"));
	EXPECT_STREQ("0", attribute(&self->ctrl, "kato"));
	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/io_timeout", self->ctrl.instance);
	ASSERT_EQ(0, np_read_file(path, limit, sizeof(limit)));
	EXPECT_STREQ(format("%d", atoi(limit)), attribute(&self->ctrl, "io_timeout"));
	ASSERT_EQ(0, np_read_file(ADMIN_TIMEOUT, before, sizeof(before)));
	seconds = (unsigned int)atoi(before) + 7;
	ASSERT_EQ(0, np_write_file(ADMIN_TIMEOUT, format("%u", seconds)));
	snprintf(limit, sizeof(limit), "%s", attribute(&self->ctrl, "admin_timeout"));
	ret = np_write_file(ADMIN_TIMEOUT, before);
	EXPECT_STREQ(format("%u", seconds * 1000), limit);
	EXPECT_EQ(0, ret);
}

static int hwmon_of(const struct np_ctrl *ctrl, const char *name, char path[TEXT])
{
	char pattern[TEXT];
	glob_t found;

	attribute_path(ctrl, "hwmon*/", pattern);
	if (glob(pattern, 0, NULL, &found))
		return -ENOENT;
	snprintf(path, TEXT, "%s%s", found.gl_pathv[0], name);
	globfree(&found);
	return 0;
}

/* A value of hwmon, -1 if there is none. */
static long millidegrees(const struct np_ctrl *ctrl, const char *name)
{
	char path[TEXT], text[TEXT];

	return hwmon_of(ctrl, name, path) || np_read_file(path, text, sizeof(text)) ?
	       -1 : atol(text);
}

/* In jiffies and in milliseconds they must fit into 32 bits, and 0 would be none. */
TEST(timeouts_have_limits)
{
	EXPECT_EQ(-EINVAL, np_write_file(ADMIN_TIMEOUT, "0"));
	EXPECT_EQ(-EINVAL, np_write_file(ADMIN_TIMEOUT, "86401"));
	EXPECT_EQ(-EINVAL, np_write_file(IO_TIMEOUT, "0"));
	EXPECT_EQ(-EINVAL, np_write_file(IO_TIMEOUT, "86401"));
	EXPECT_EQ(0, np_write_file(IO_TIMEOUT, "86400"));
	EXPECT_EQ(0, np_write_file(IO_TIMEOUT, "30"));
}

/* A threshold below its temperature makes QEMU's controller warn. */
TEST_F(sysfs, hwmon_matches_smart)
{
	uint8_t health[512] = { 0 };
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.nsid = UINT32_MAX,
		.addr = (uintptr_t)health,
		.data_len = sizeof(health),
		.cdw10 = NVME_LOG_HEALTH | (sizeof(health) / 4 - 1) << 16,
	};
	char path[TEXT];
	long before;

	if (access("/sys/class/hwmon", F_OK))
		SKIP(return, "no hwmon in this kernel");
	np_needs_qemu(&self->ctrl, "its constant temperature");
	ASSERT_EQ(0, np_admin(self->ctrl.fd, &cmd));
	EXPECT_EQ(u16_at(health, 1) * 1000L - 273150, millidegrees(&self->ctrl, "temp1_input"));
	EXPECT_EQ(u16_at(self->id, ID_CCTEMP) * 1000L - 273150,
		  millidegrees(&self->ctrl, "temp1_crit"));
	before = millidegrees(&self->ctrl, "temp1_max");
	EXPECT_LT(0, before);
	EXPECT_EQ(0, millidegrees(&self->ctrl, "temp1_alarm"));
	ASSERT_EQ(0, hwmon_of(&self->ctrl, "temp1_max", path));
	ASSERT_EQ(0, np_write_file(path, "20000"));
	EXPECT_EQ(1, millidegrees(&self->ctrl, "temp1_alarm"));
	ASSERT_EQ(0, np_write_file(path, format("%ld", before)));
	EXPECT_EQ(before, millidegrees(&self->ctrl, "temp1_max"));
	EXPECT_EQ(0, millidegrees(&self->ctrl, "temp1_alarm"));
}

/* The same geometry as the in-tree driver's. */
TEST_F(sysfs, disk_has_geometry)
{
	int disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDONLY);
	struct hd_geometry geometry;
	uint64_t bytes;

	ASSERT_LE(0, disk);
	ASSERT_EQ(0, np_ioctl(disk, BLKGETSIZE64, &bytes));
	ASSERT_EQ(0, np_ioctl(disk, HDIO_GETGEO, &geometry));
	EXPECT_EQ(64, geometry.heads);
	EXPECT_EQ(32, geometry.sectors);
	EXPECT_EQ((uint16_t)(bytes >> 20), geometry.cylinders);
	close(disk);
}

/* Every attribute can be read, except write-only ones. */
TEST_F(sysfs, no_other_attributes)
{
	static const char known[] =
		" model serial firmware_rev subsysnqn state generation cntlid cntrltype"
		" dctype transport address numa_node queue_count sqsize kato quirks"
		" admin_timeout io_timeout passthru_err_log_enabled reset_controller cpu_queues"
		" rescan_controller dev uevent ";
	char pattern[TEXT], word[TEXT];
	struct stat status;
	unsigned int count = 0;
	glob_t files;
	size_t i;

	attribute_path(&self->ctrl, "*", pattern);
	ASSERT_EQ(0, glob(pattern, 0, NULL, &files));
	for (i = 0; i < files.gl_pathc; i++) {
		const char *name = strrchr(files.gl_pathv[i], '/') + 1;

		if (lstat(files.gl_pathv[i], &status) || !S_ISREG(status.st_mode))
			continue;
		snprintf(word, sizeof(word), " %s ", name);
		EXPECT_TRUE(strstr(known, word)) {
			TH_LOG("attribute %s", name);
		}
		count++;
	}
	globfree(&files);
	EXPECT_EQ(24, count);
}

/* Length of a name without trailing spaces or zeroes. */
static unsigned int trimmed(const uint8_t *bytes, unsigned int length)
{
	while (length && (bytes[length - 1] == ' ' || !bytes[length - 1]))
		length--;
	return length;
}

static char *put_hex(char *text, const uint8_t *bytes, unsigned int length)
{
	while (length--)
		text += sprintf(text, "%02x", *bytes++);
	return text;
}

/*
 * The wwid is built as by the in-tree driver, so that links by name survive a change of
 * driver. QEMU's other identifiers are equal for different disks: bad_identify tests
 * valid ones.
 */
static void expected_wwid(const uint8_t *id, uint32_t nsid, char text[TEXT])
{
	text += sprintf(text, "nvme.%04x-", u16_at(id, ID_VID));
	text = put_hex(text, id + ID_SERIAL, trimmed(id + ID_SERIAL, 20));
	text = put_hex(text + sprintf(text, "-"), id + ID_MODEL, trimmed(id + ID_MODEL, 40));
	sprintf(text, "-%08x", nsid);
}

/* An attribute of a namespace with its newline; empty if it does not exist. */
static const char *ns_attribute(const struct np_ctrl *ctrl, uint32_t nsid, const char *name)
{
	static char text[TEXT];
	char path[TEXT];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn%u/%s", ctrl->instance, nsid, name);
	if (np_read_file(path, text, sizeof(text)))
		text[0] = '\0';
	return text;
}

static void check_namespace(struct __test_metadata *_metadata, const struct np_ctrl *ctrl,
			    const uint8_t *id, uint32_t nsid, unsigned int metadata_bytes)
{
	uint8_t namespace[NP_PAGE];
	char expected[TEXT];
	uint64_t used;

	EXPECT_STREQ(format("%u\n", nsid), ns_attribute(ctrl, nsid, "nsid"));
	expected_wwid(id, nsid, expected);
	EXPECT_STREQ(format("%s\n", expected), ns_attribute(ctrl, nsid, "wwid"));
	EXPECT_STREQ(format("%u\n", metadata_bytes), ns_attribute(ctrl, nsid, "metadata_bytes"));
	EXPECT_STREQ("0\n", ns_attribute(ctrl, nsid, "csi"));
	ASSERT_EQ(0, identify(ctrl->fd, NVME_CNS_NAMESPACE, nsid, namespace));
	memcpy(&used, namespace + ID_NUSE, sizeof(used));
	EXPECT_LT(0, used);
	EXPECT_STREQ(format("%llu\n", (unsigned long long)used),
		     ns_attribute(ctrl, nsid, "nuse"));
	/* Bogus identifiers have no attributes. */
	EXPECT_STREQ("", ns_attribute(ctrl, nsid, "uuid"));
	EXPECT_STREQ("", ns_attribute(ctrl, nsid, "nguid"));
	EXPECT_STREQ("", ns_attribute(ctrl, nsid, "eui"));
}

TEST_F(sysfs, namespace_nsid_and_wwid)
{
	struct np_ctrl other;
	uint8_t id[NP_PAGE];
	char path[TEXT];
	int node;

	np_needs_qemu(&self->ctrl, "a second namespace, with metadata");
	np_spare_needs(self->ctrl.info.namespaces == 2, "a second namespace, with metadata");
	ASSERT_EQ(0, np_ctrl_open(&other, np_spare() ? "np1" : "np0"));
	node = np_open_node(&self->ctrl, "/dev/nvmep%dn2", O_RDONLY);
	ASSERT_LE(0, node);
	close(node);
	check_namespace(_metadata, &self->ctrl, self->id, 1, 0);
	check_namespace(_metadata, &self->ctrl, self->id, 2, 8);
	node = np_open_node(&other, "/dev/nvmep%dn1", O_RDONLY);
	ASSERT_LE(0, node);
	close(node);
	ASSERT_EQ(0, identify(other.fd, NVME_CNS_CONTROLLER, 0, id));
	check_namespace(_metadata, &other, id, 1, 0);
	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/nsid", other.instance);
	EXPECT_EQ(-EACCES, np_write_file(path, "2"));
	np_ctrl_close(&other);
}

TEST_F(sysfs, each_write_resets_once)
{
	const struct nvme_peer_status *status;
	struct nvme_peer_info before, after;
	struct nvme_peer_qp_info info;
	struct np_qp qp;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &before));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	status = qp.status.at;
	/* Any value has the same effect, as with the in-tree driver. */
	ASSERT_EQ(0, write_attribute(&self->ctrl, "reset_controller", "1"));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &after));
	/* The write returns when the controller is LIVE again. */
	EXPECT_EQ(NVME_PEER_CTRL_LIVE, after.state);
	EXPECT_EQ(before.generation + 1, after.generation);
	EXPECT_STREQ(format("%u", after.generation), attribute(&self->ctrl, "generation"));
	EXPECT_STREQ("live", attribute(&self->ctrl, "state"));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, status->state);
	EXPECT_EQ(after.generation, status->generation);
	EXPECT_EQ(0, np_qp_info(qp.fd, &info));
	EXPECT_EQ(NVME_PEER_QP_QUIESCED, info.state);
	np_qp_close(&qp);
	ASSERT_EQ(0, write_attribute(&self->ctrl, "reset_controller", "0\n"));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &after));
	EXPECT_EQ(before.generation + 2, after.generation);
}

TEST_F(sysfs, rescan_without_change_is_no_op)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .nsid = 1 };
	struct nvme_peer_info before, after;
	struct np_qp qp;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &before));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, write_attribute(&self->ctrl, "rescan_controller", "1"));
	EXPECT_EQ(0, np_qp_run(&qp, &flush, NP_TIMEOUT_MS));
	np_qp_close(&qp);
	np_sleep_ms(100);
	ASSERT_EQ(0, np_info(self->ctrl.fd, &after));
	EXPECT_EQ(before.generation, after.generation);
	EXPECT_EQ(before.namespaces, after.namespaces);
}

/* Root bypasses file modes, so this needs another user. */
TEST_F(sysfs, read_only_for_users)
{
	char path[TEXT], text[TEXT];
	struct nvme_peer_info before, after;

	ASSERT_EQ(0, np_info(self->ctrl.fd, &before));
	EXPECT_EQ(-EACCES, write_attribute(&self->ctrl, "state", "dead"));
	EXPECT_EQ(-EACCES, write_attribute(&self->ctrl, "generation", "7"));
	attribute_path(&self->ctrl, "reset_controller", path);
	EXPECT_EQ(-EACCES, np_read_file(path, text, sizeof(text)));
	ASSERT_EQ(0, seteuid(NOBODY));
	EXPECT_EQ(-EACCES, write_attribute(&self->ctrl, "reset_controller", "1"));
	EXPECT_EQ(-EACCES, write_attribute(&self->ctrl, "rescan_controller", "1"));
	EXPECT_EQ(-EACCES, write_attribute(&self->ctrl, "cpu_queues", "1"));
	EXPECT_STREQ("live", attribute(&self->ctrl, "state"));
	ASSERT_EQ(0, seteuid(0));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &after));
	EXPECT_EQ(before.generation, after.generation);
}

TEST_HARNESS_MAIN
