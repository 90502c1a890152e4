// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files below /sys/kernel/debug/nvme-peer agree with the ioctls, and can be read
 * while their controller is bound and unbound.
 *
 * iommu: on off
 * topology: root switch unknown-bridge
 * timeout: 90
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
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

#define DEBUGFS		"/sys/kernel/debug/nvme-peer"
#define DEVICES		"/sys/bus/pci/devices"
#define TEXT		8192U
#define ENTRIES		16U
#define ROUNDS		5
#define READS		16

FIXTURE(debugfs)
{
	struct np_ctrl ctrl;
	char before[NP_OBJECTS];
	struct nvme_peer_info info;
	char text[TEXT];
};

FIXTURE_SETUP(debugfs)
{
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	ASSERT_EQ(0, np_objects(&self->ctrl, self->before));
	ASSERT_EQ(0, np_info(self->ctrl.fd, &self->info));
}

FIXTURE_TEARDOWN(debugfs)
{
	EXPECT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	np_ctrl_close(&self->ctrl);
}

static int read_debugfs(const struct np_ctrl *ctrl, const char *name, char text[TEXT])
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "/nvmep%d/%s", ctrl->instance, name);
	return np_read_file(path, text, TEXT);
}

/* Does @text have the line @line? */
static bool has_line(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, line, length) && text[length] == '\n')
			return true;
	}
	return false;
}

static unsigned int lines(const char *text)
{
	unsigned int count = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		count++;
	}
	return count;
}

TEST_F(debugfs, controller_matches_info)
{
	char expected[TEXT];

	ASSERT_EQ(0, read_debugfs(&self->ctrl, "state", self->text));
	EXPECT_STREQ("live\n", self->text);
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "generation", self->text));
	snprintf(expected, sizeof(expected), "%u\n", self->info.generation);
	EXPECT_STREQ(expected, self->text);
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "controller", self->text));
	snprintf(expected, sizeof(expected),
		 "namespaces %u\nqids_total %u\nqids_cpu %u\nqids_peer_max %u\nqids_peer_free %u\nqids_quarantined %u\n",
		 self->info.namespaces, self->info.qids_total, self->info.qids_cpu,
		 self->info.qids_peer_max, self->info.qids_peer_free, self->info.qids_quarantined);
	EXPECT_STREQ(expected, self->text);
}

/**
 * struct totals - a controller's CPU queues, from the file "queues"
 * @queues: how many
 * @entries: of the last one
 * @sq: SQ doorbell writes
 * @cq: CQ doorbell writes
 * @completions: consumed CQEs
 */
struct totals {
	unsigned int queues;
	unsigned int entries;
	unsigned long long sq;
	unsigned long long cq;
	unsigned long long completions;
};

static struct totals add_up(const char *text)
{
	unsigned long long sq, cq, completions;
	struct totals totals = {};
	unsigned int qid, entries;

	while ((text = strchr(text, '\n')) && *++text)
		if (sscanf(text, "%u io %u %*u %llu %llu %llu", &qid, &entries, &sq, &cq,
			   &completions) == 5) {
			totals.queues++;
			totals.entries = entries;
			totals.sq += sq;
			totals.cq += cq;
			totals.completions += completions;
		}
	return totals;
}

TEST_F(debugfs, queues_count_cpu_io)
{
	struct totals before, after;
	unsigned int i;
	void *bytes;
	int disk;

	ASSERT_EQ(0, posix_memalign(&bytes, NP_PAGE, NP_PAGE));
	disk = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDONLY | O_DIRECT);
	ASSERT_LE(0, disk);
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "queues", self->text));
	EXPECT_TRUE(strstr(self->text, "\n0 admin 32 0 "));
	before = add_up(self->text);
	EXPECT_EQ(self->info.qids_cpu, before.queues);
	EXPECT_EQ(2 + self->info.qids_cpu, lines(self->text));
	EXPECT_LT(0, before.entries);
	for (i = 0; i < READS; i++)
		EXPECT_EQ(0, np_disk_read(disk, bytes, NP_PAGE, NP_AREA(1)));
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "queues", self->text));
	after = add_up(self->text);
	/*
	 * One command at a time: one SQ doorbell, one completion and one CQ doorbell for
	 * each.
	 */
	EXPECT_EQ(before.completions + READS, after.completions);
	EXPECT_EQ(before.sq + READS, after.sq);
	EXPECT_EQ(before.cq + READS, after.cq);
	close(disk);
	free(bytes);
}

TEST_F(debugfs, quarantine_lists_holders)
{
	struct nvme_peer_qp_create create;
	struct nvme_peer_qp_export export;
	struct np_mapper mapper;
	char line[64];

	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, ENTRIES, &create));
	ASSERT_EQ(0, np_export_fd(create.qp_fd, NVME_PEER_EXPORT_DOORBELL, 0, &export));
	close(create.qp_fd);
	ASSERT_EQ(0, np_mapper_start(&mapper, self->ctrl.fd));
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "quarantine", self->text));
	EXPECT_EQ(3, lines(self->text));
	snprintf(line, sizeof(line), "%u 1", create.qid);
	EXPECT_TRUE(has_line(self->text, line));
	snprintf(line, sizeof(line), "%u 0 %d", mapper.qid, mapper.pid);
	EXPECT_TRUE(has_line(self->text, line));
	close(export.fd);
	np_mapper_end(&mapper);
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "quarantine", self->text));
	EXPECT_EQ(1, lines(self->text));
}

static void expect_queue_pair(struct __test_metadata *_metadata, const char *text, int qp_fd)
{
	struct nvme_peer_qp_info info;
	char line[128];

	ASSERT_EQ(0, np_qp_info(qp_fd, &info));
	snprintf(line, sizeof(line), "%u %u %u %u %u %u %u %u", info.qid, info.state,
		 info.generation, info.sq_entries, info.cq_entries, info.exports, info.importers,
		 info.mmaps);
	EXPECT_TRUE(has_line(text, line)) {
		TH_LOG("no line \"%s\" in:\n%s", line, text);
	}
}

TEST_F(debugfs, queue_pairs_match_qp_info)
{
	struct nvmep_test_attach attach = {};
	struct nvme_peer_qp_create other;
	struct nvme_peer_qp_info info;
	struct nvme_peer_info now;
	char address[16], line[64];
	struct np_qp qp;
	int test;

	test = np_test_open();
	ASSERT_LE(0, test);
	ASSERT_EQ(0, np_function_address("np1", address));
	ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, ENTRIES));
	ASSERT_EQ(0, np_qp_create(self->ctrl.fd, 2 * ENTRIES, &other));
	/* Attach to a ring, because access to doorbells depends on the topology. */
	attach.dmabuf_fd = qp.sq.fd;
	attach.pci_address = np_parse_address(address);
	ASSERT_EQ(0, np_ioctl(test, NVMEP_TEST_ATTACH, &attach));

	ASSERT_EQ(0, np_qp_info(qp.fd, &info));
	EXPECT_EQ(4, info.exports);
	EXPECT_EQ(1, info.importers);
	EXPECT_EQ(4, info.mmaps);
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "queue_pairs", self->text));
	EXPECT_EQ(3, lines(self->text));
	expect_queue_pair(_metadata, self->text, qp.fd);
	expect_queue_pair(_metadata, self->text, other.qp_fd);

	/* The sum must be the same. */
	ASSERT_EQ(0, np_info(self->ctrl.fd, &now));
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "objects", self->text));
	EXPECT_EQ(10, lines(self->text));
	EXPECT_TRUE(has_line(self->text, "queue_pairs 2"));
	EXPECT_TRUE(has_line(self->text, "exports 4"));
	EXPECT_TRUE(has_line(self->text, "importers 1"));
	EXPECT_TRUE(has_line(self->text, "maps 1"));
	EXPECT_TRUE(has_line(self->text, "mmaps 4"));
	snprintf(line, sizeof(line), "qids_peer_free %u", now.qids_peer_free);
	EXPECT_EQ(self->info.qids_peer_free - 2, now.qids_peer_free);
	EXPECT_TRUE(has_line(self->text, line));

	/* Those of all controllers. */
	ASSERT_EQ(0, np_read_file(DEBUGFS "/objects", self->text, TEXT));
	EXPECT_EQ(8, lines(self->text));
	EXPECT_TRUE(has_line(self->text, "queue_pairs 2"));

	/* Only the peer writes its doorbells. */
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "queues", self->text));
	snprintf(line, sizeof(line), "%u peer - - 0 0 - -", qp.create.qid);
	EXPECT_TRUE(has_line(self->text, line));
	snprintf(line, sizeof(line), "%u peer - - 0 0 - -", other.qid);
	EXPECT_TRUE(has_line(self->text, line));

	EXPECT_EQ(0, np_ioctl(test, NVMEP_TEST_DETACH, NULL));
	close(other.qp_fd);
	np_qp_close(&qp);
	close(test);
	ASSERT_EQ(0, np_objects_wait(&self->ctrl, self->before, NP_TIMEOUT_MS));
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "queue_pairs", self->text));
	EXPECT_EQ(1, lines(self->text));
}

/* A bridge has another header type and no memory to reach. */
static bool is_endpoint(const char *address)
{
	uint8_t type = 0xff;
	char path[320];
	int config;

	snprintf(path, sizeof(path), DEVICES "/%s/config", address);
	config = open(path, O_RDONLY | O_CLOEXEC);
	if (config < 0)
		return false;
	if (pread(config, &type, 1, 0x0e) != 1)
		type = 0xff;
	close(config);
	return !(type & 0x7f);
}

/* The distance that the kernel reports, in the file's format. */
static void kernel_distance(int test, const struct np_ctrl *ctrl, const char *address,
			    char text[16])
{
	struct nvmep_test_distance distance = {
		.provider = np_parse_address(ctrl->address),
		.client = np_parse_address(address),
	};

	if (np_ioctl(test, NVMEP_TEST_DISTANCE, &distance))
		strcpy(text, "-");
	else
		snprintf(text, 16, "%d", distance.distance);
}

static void check_route(struct __test_metadata *_metadata, int test, const struct np_ctrl *ctrl,
			const char *routes, const char *address)
{
	struct nvme_peer_route route = {
		.size = sizeof(route),
		.flags = NVME_PEER_ROUTE_BY_ADDRESS,
		.pci_address = np_parse_address(address),
	};
	char distance[16], line[384];

	ASSERT_EQ(0, np_ioctl(ctrl->fd, NVME_PEER_ROUTE, &route));
	kernel_distance(test, ctrl, address, distance);
	snprintf(line, sizeof(line), "%s %u %u %u %s", address, route.data.verdict,
		 route.data.reason, route.data.blocker_count, distance);
	EXPECT_TRUE(has_line(routes, line)) {
		TH_LOG("no line \"%s\" in:\n%s", line, routes);
	}
	/* The verdict agrees with the kernel's distance if there is one. */
	if (strcmp(distance, "-"))
		EXPECT_EQ(atoi(distance) >= 0, route.data.verdict != NVME_PEER_ROUTE_NONE);
}

TEST_F(debugfs, routes_match_ioctl)
{
	unsigned int functions = 0;
	struct dirent *entry;
	DIR *devices;
	int test;

	test = np_test_open();
	ASSERT_LE(0, test);
	ASSERT_EQ(0, read_debugfs(&self->ctrl, "routes", self->text));
	devices = opendir(DEVICES);
	ASSERT_NE(NULL, devices);
	while ((entry = readdir(devices))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, self->ctrl.address) ||
		    !is_endpoint(entry->d_name))
			continue;
		check_route(_metadata, test, &self->ctrl, self->text, entry->d_name);
		functions++;
	}
	closedir(devices);
	close(test);
	EXPECT_LT(2, functions);
	EXPECT_EQ(functions, lines(self->text));
}

/**
 * struct browser - a thread that reads all files
 * @stop: set to end it
 * @files: files read so far
 */
struct browser {
	atomic_bool stop;
	atomic_uint files;
};

static void *browse(void *argument)
{
	struct browser *browser = argument;
	static char text[TEXT];
	glob_t files;
	size_t i;

	while (!atomic_load(&browser->stop)) {
		if (glob(DEBUGFS "/*/*", 0, NULL, &files))
			continue;
		for (i = 0; i < files.gl_pathc; i++)
			browser->files += !np_read_file(files.gl_pathv[i], text, sizeof(text)) &&
					  *text;
		globfree(&files);
	}
	return NULL;
}

TEST_F_TIMEOUT(debugfs, read_during_bind_and_unbind, 300)
{
	struct browser browser = {};
	char path[128];
	pthread_t thread;
	unsigned int i;

	ASSERT_EQ(0, pthread_create(&thread, NULL, browse, &browser));
	for (i = 0; i < ROUNDS; i++) {
		unsigned int files = browser.files;
		int64_t end = np_now_ms() + NP_TIMEOUT_MS;

		EXPECT_EQ(0, np_bind(self->ctrl.address));
		while (browser.files < files + 20 && np_now_ms() < end)
			np_sleep_ms(1);
		EXPECT_LE(files + 20, browser.files);
		np_ctrl_close(&self->ctrl);
		EXPECT_EQ(0, np_unbind(self->ctrl.address));
		snprintf(path, sizeof(path), DEBUGFS "/nvmep%d/state", self->ctrl.instance);
		EXPECT_NE(0, access(path, F_OK));
	}
	atomic_store(&browser.stop, true);
	pthread_join(thread, NULL);
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
}

/* --- fault injection --------------------------------------------------------------- */

FIXTURE(faults)
{
	struct np_ctrl ctrl;
	int block;
	uint8_t *bytes;
};

/* @name: nvmepX or nvmepXnY, as with the in-tree driver */
static int set_fault(const struct np_ctrl *ctrl, const char *name, const char *file,
		     const char *text)
{
	char path[128], node[32];

	snprintf(node, sizeof(node), name, ctrl->instance);
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/fault_inject/%s", node, file);
	return np_write_file(path, text);
}

FIXTURE_SETUP(faults)
{
	self->block = -1;
	ASSERT_EQ(0, np_ctrl_open(&self->ctrl, "np0"));
	if (set_fault(&self->ctrl, "nvmep%d", "verbose", "0") == -ENOENT)
		SKIP(return, "kernel without CONFIG_FAULT_INJECTION_DEBUG_FS");
	self->block = np_open_node(&self->ctrl, "/dev/nvmep%dn1", O_RDWR | O_DIRECT);
	ASSERT_LE(0, self->block);
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, NP_PAGE));
}

FIXTURE_TEARDOWN(faults)
{
	set_fault(&self->ctrl, "nvmep%d", "probability", "0");
	set_fault(&self->ctrl, "nvmep%dn1", "probability", "0");
	close(self->block);
	free(self->bytes);
	np_ctrl_close(&self->ctrl);
}

/* @times commands of @opcode fail with @status. */
static int inject(const struct np_ctrl *ctrl, const char *name, const char *opcode,
		  const char *status, const char *times, const char *dont_retry)
{
	return set_fault(ctrl, name, "verbose", "0") ?: set_fault(ctrl, name, "opcode", opcode) ?:
	       set_fault(ctrl, name, "status", status) ?:
	       set_fault(ctrl, name, "dont_retry", dont_retry) ?:
	       set_fault(ctrl, name, "times", times) ?:
	       set_fault(ctrl, name, "probability", "100");
}

static int count_retries(const struct np_ctrl *ctrl, unsigned long *retries)
{
	char path[128], text[32];
	int ret;

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/diag/command_retries_count",
		 ctrl->instance);
	ret = np_read_file(path, text, sizeof(text));
	*retries = strtoul(text, NULL, 0);
	return ret;
}

TEST_F(faults, block_io_fails)
{
	/* Capacity Exceeded */
	ASSERT_EQ(0, inject(&self->ctrl, "nvmep%dn1", "0xffff", "0x81", "1", "Y"));
	EXPECT_EQ(-ENOSPC, np_disk_read(self->block, self->bytes, NP_PAGE, 0));
	EXPECT_EQ(0, np_disk_read(self->block, self->bytes, NP_PAGE, 0));
	/* The last opcode is one opcode, too. */
	ASSERT_EQ(0, inject(&self->ctrl, "nvmep%dn1", "0xff", "0x81", "1", "Y"));
	EXPECT_EQ(0, np_disk_read(self->block, self->bytes, NP_PAGE, 0));
	/* No error is no fault. */
	ASSERT_EQ(0, inject(&self->ctrl, "nvmep%dn1", "0xffff", "0", "1", "Y"));
	EXPECT_EQ(0, np_disk_read(self->block, self->bytes, NP_PAGE, 0));
}

/* Internal Error, twice; without Do Not Retry the driver tries again. */
TEST_F(faults, retries_hide_faults)
{
	unsigned long before, after;

	ASSERT_EQ(0, count_retries(&self->ctrl, &before));
	ASSERT_EQ(0, inject(&self->ctrl, "nvmep%dn1", "0xffff", "0x6", "2", "N"));
	EXPECT_EQ(0, np_disk_read(self->block, self->bytes, NP_PAGE, 0));
	ASSERT_EQ(0, count_retries(&self->ctrl, &after));
	EXPECT_EQ(before + 2, after);
}

TEST_F(faults, of_one_opcode)
{
	/* A test that is skipped later would leave the fault. */
	np_spare_writes();
	/* Writes only, Write Fault. */
	ASSERT_EQ(0, inject(&self->ctrl, "nvmep%dn1", "0x01", "0x280", "1", "Y"));
	EXPECT_EQ(0, np_disk_read(self->block, self->bytes, NP_PAGE, NP_AREA(9)));
	EXPECT_EQ(-ENODATA, np_disk_write(self->block, self->bytes, NP_PAGE, NP_AREA(9)));
	EXPECT_EQ(0, np_disk_write(self->block, self->bytes, NP_PAGE, NP_AREA(9)));
}

TEST_F(faults, admin_command_fails)
{
	struct nvme_admin_cmd cmd = {
		.opcode = NVME_ADMIN_IDENTIFY,
		.addr = (uintptr_t)self->bytes,
		.data_len = NP_PAGE,
		.cdw10 = NVME_CNS_CONTROLLER,
	};

	/* Internal Error with Do Not Retry */
	ASSERT_EQ(0, inject(&self->ctrl, "nvmep%d", "0x06", "0x6", "1", "Y"));
	EXPECT_EQ(0x4006, np_admin(self->ctrl.fd, &cmd));
	EXPECT_EQ(0, np_admin(self->ctrl.fd, &cmd));
}

/* The driver would free a queue that the controller has. */
TEST_F(faults, no_queue_is_affected)
{
	static const char *const opcodes[] = { "0x00", "0x01", "0x04", "0x05" };
	uint32_t generation = self->ctrl.info.generation;
	struct np_qp qp;
	size_t i;

	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		ASSERT_EQ(0, inject(&self->ctrl, "nvmep%d", opcodes[i], "0x6", "1", "Y"));
		ASSERT_EQ(0, np_qp_open(&qp, self->ctrl.fd, 8));
		np_qp_close(&qp);
		/* A queue that cannot be deleted needs a reset. */
		ASSERT_EQ(0, np_info(self->ctrl.fd, &self->ctrl.info));
		EXPECT_EQ(generation, self->ctrl.info.generation) {
			TH_LOG("opcode %s", opcodes[i]);
		}
	}
}

TEST_HARNESS_MAIN
