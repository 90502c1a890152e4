// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a controller and its namespaces say about themselves, in the unusual
 * combinations that no emulated controller has, and I/O under each.
 *
 * kernels: 6.1 7 debug
 * long-kernels: 6.1 6.12 7 debug kcsan
 * iommu: on
 * timeout: 180
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "badknob.h"
#include "kselftest_harness.h"

/* Bytes of Identify Controller and Identify Namespace. */
#define CTRL_SERIAL	4
#define CTRL_MDTS	77
#define CTRL_ATTRIBUTES	96
#define CTRL_CNTRLTYPE	111
#define CTRL_LPA	261
#define CTRL_NN		516
#define CTRL_ONCS	520
#define CTRL_SGLS	536
#define CTRL_DCTYPE	1806
#define NS_BLOCKS	0
#define NS_FEATURES	24
#define NS_PROTECTION	29
#define NS_DEALLOCATE	33
#define NS_NAWUPF	36
#define NS_BOUNDARY	46
#define NS_NPWG		64
#define NS_NOWS		72
#define NS_NGUID	104
#define NS_EUI64	120
#define NS_FORMAT	128
/* Of the NVM command set's Identify Controller. */
#define CS_WZSL		1
#define CS_DMRSL	4
#define CS_DMSL		8
/* Optional commands: Timestamp.  Attributes, second byte: extended LBA formats. */
#define ONCS_TIMESTAMP	(1U << 6)
#define ATTRIBUTE_FORMATS	(1U << 7)
#define LARGE		(64U << 10)
/* So many are sent at most, until so many have merged. */
#define DISCARDS	7
#define MERGES		2U

/* NVM command set: unrecovered read error, not to be tried again. */
#define STATUS_UNRECOVERED	(NP_STATUS_DNR | 0x281)

#define REG_CAP_LOW	BADCTRL_REGISTERS
#define REG_CAP_HIGH	(BADCTRL_REGISTERS + 0x04)
#define REG_VS		(BADCTRL_REGISTERS + 0x08)
#define REG_CMBSZ	(BADCTRL_REGISTERS + 0x3c)
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
		SKIP(return, "no misbehaving controller in this guest");
	ASSERT_EQ(0, posix_memalign((void **)&self->bytes, NP_PAGE, LARGE));
	ASSERT_EQ(0, posix_memalign((void **)&self->back, NP_PAGE, LARGE));
}

FIXTURE_TEARDOWN(bad_identify)
{
	if (!self->bad.address[0])
		return;
	EXPECT_EQ(0, np_bad_close(&self->bad));
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
		.addr = opcode == NP_CMD_READ ? (uintptr_t)bytes : 0,
		.data_len = opcode == NP_CMD_READ ? NP_BLOCK : 0,
	};

	return np_ioctl(node, NVME_IOCTL_IO_CMD, &cmd);
}

/* CAP.MQES. */
static int two_entries(struct np_bad *bad)
{
	uint32_t cap = np_bad_get(bad, REG_CAP_LOW);

	return np_bad_set(bad, REG_CAP_LOW, (cap & 0xffff0000) | 1);
}

/* --- names ------------------------------------------------------------------- */

TEST_F(bad_identify, a_uuid_comes_first)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_NGUID, 0x11, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("uuid.babababa-baba-baba-baba-babababababa",
		     attribute(&self->bad, "wwid"));
	EXPECT_STREQ("babababa-baba-baba-baba-babababababa", attribute(&self->bad, "uuid"));
	EXPECT_STREQ("11000000-0000-0000-0000-000000000000", attribute(&self->bad, "nguid"));
	EXPECT_STREQ("", attribute(&self->bad, "eui"));
	EXPECT_STREQ("1", attribute(&self->bad, "nsid"));
}

/* Length 0 ends the list of descriptors. */
TEST_F(bad_identify, then_an_nguid)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 3, 1, 0, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_NGUID, 0x0102, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_EUI64, 0x33, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("eui.02010000000000000000000000000000", attribute(&self->bad, "wwid"));
	EXPECT_STREQ("", attribute(&self->bad, "uuid"));
	EXPECT_STREQ("33 00 00 00 00 00 00 00", attribute(&self->bad, "eui"));
}

/* Before 1.3 nobody may be asked for descriptors. */
TEST_F(bad_identify, then_an_eui64)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_VS, 0x00010200));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_EUI64, 0x3344, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("eui.4433000000000000", attribute(&self->bad, "wwid"));
	EXPECT_STREQ("44 33 00 00 00 00 00 00", attribute(&self->bad, "eui"));
	EXPECT_STREQ("", attribute(&self->bad, "nguid"));
}

TEST_F(bad_identify, then_the_serial_number)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << 3));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	/* The strings without the spaces that fill them up. */
	EXPECT_STREQ("nvme.1234-626164-6261646374726c-00000001", attribute(&self->bad, "wwid"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	/* Nor zeroes, which some have there instead. */
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_SERIAL + 18, 0, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("nvme.1234-626164-6261646374726c-00000001", attribute(&self->bad, "wwid"));
}

TEST_F(bad_identify, controllers_of_other_types)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_CNTRLTYPE, 3, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_DCTYPE, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("admin", controller_attribute(&self->bad, "cntrltype"));
	EXPECT_STREQ("ddc", controller_attribute(&self->bad, "dctype"));
	EXPECT_STREQ("none", controller_attribute(&self->bad, "quirks"));
}

TEST_F(bad_identify, types_that_are_reserved)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_CNTRLTYPE, 4, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_DCTYPE, 3, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_STREQ("reserved", controller_attribute(&self->bad, "cntrltype"));
	EXPECT_STREQ("reserved", controller_attribute(&self->bad, "dctype"));
}

/* --- what it is told ------------------------------------------------------------- */

/* How many features it is told when it starts. */
static uint32_t features_set(struct np_bad *bad, uint16_t offered, uint8_t attributes)
{
	uint32_t before = np_bad_hits(bad, 0);

	if (set_bytes(bad, 1, CTRL_ONCS, offered, 2) ||
	    set_bytes(bad, 1, CTRL_ATTRIBUTES + 1, attributes, 1) || np_bad_bind(bad, 1) ||
	    np_bad_unbind(bad))
		return UINT32_MAX;
	return np_bad_hits(bad, 0) - before;
}

/* It refuses both, and is served. */
TEST_F(bad_identify, hears_of_its_host_what_it_wants_to)
{
	uint32_t least;

	ASSERT_EQ(0, np_bad_rule(&self->bad, 0, NP_ADMIN_SET_FEATURES, BADCTRL_COUNT, 0,
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

TEST_F(bad_identify, namespaces_are_found_without_a_list)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << 2));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, 0xd));
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_NN, 3, 1));
	/* The fourth is beyond what it says it has. */
	ASSERT_EQ(0, np_bad_bind(&self->bad, 2));
	expect_io(_metadata, self);
}

/* The scan ends, and what it found does. */
TEST_F(bad_identify, a_list_without_end_ends_the_scan)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_ACTIVE, BADCTRL_ACTIVE_ENDLESS | 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	expect_io(_metadata, self);
}

TEST_F(bad_identify, there_may_be_none)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << 2));
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_NN, 0, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 0));
	np_sleep_ms(200);
	EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
	EXPECT_EQ(0, np_bad_ask(&self->bad, 0));
	EXPECT_EQ(-ENOTTY, send(self->bad.ctrl.fd, NP_CMD_READ, self->bytes));
}

/* --- formats ---------------------------------------------------------------------- */

static int set_format(struct np_bad *bad, unsigned int shift, unsigned int metadata,
		      unsigned int protection)
{
	return set_bytes(bad, 0, NS_FORMAT, shift << 16 | metadata, 4) ?:
	       set_bytes(bad, 0, NS_BLOCKS, BADCTRL_NAMESPACE_BYTES >> shift, 8) ?:
	       set_bytes(bad, 0, NS_PROTECTION, protection, 1);
}

TEST_F(bad_identify, blocks_of_4_kib)
{
	ASSERT_EQ(0, set_format(&self->bad, 12, 0, 0));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(4096, number(&self->bad, "queue/logical_block_size"));
	EXPECT_EQ(BADCTRL_NAMESPACE_BYTES / 512, number(&self->bad, "size"));
	expect_io(_metadata, self);
}

/* The block layer is told of a boundary that every kernel can split at, and of no other. */
TEST_F(bad_identify, boundaries)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_BOUNDARY, 64, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(64, number(&self->bad, "queue/chunk_sectors"));
	expect_io(_metadata, self);
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_BOUNDARY, 24, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(0, number(&self->bad, "queue/chunk_sectors"));
	expect_io(_metadata, self);
}

/* The controller refuses a wrong reference tag, and a host that does not ask for PRACT. */
TEST_F(bad_identify, protection_information)
{
	unsigned int type;

	for (type = 1; type <= 3; type++) {
		ASSERT_EQ(0, set_format(&self->bad, 9, 8, type));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		EXPECT_EQ(BADCTRL_NAMESPACE_BYTES / 512, number(&self->bad, "size"));
		expect_io(_metadata, self);
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
}

/* Metadata that the block layer cannot carry, blocks that it does not know. */
TEST_F(bad_identify, formats_for_passthrough_only)
{
	static const struct {
		unsigned int shift;
		unsigned int metadata;
	} formats[] = { { 9, 8 }, { 9, 64 }, { 8, 0 }, { 16, 0 } };
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		ASSERT_EQ(0, set_format(&self->bad, formats[i].shift, formats[i].metadata, 0));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
		EXPECT_EQ(0, number(&self->bad, "size"));
		EXPECT_EQ(0, np_bad_ask(&self->bad, 0));
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
}

/* Such a namespace is not there, whether it was so from the beginning or became so. */
TEST_F(bad_identify, blocks_of_impossible_sizes)
{
	static const unsigned int shifts[] = { 32, 255 };
	int log = np_log_open();
	size_t i;

	ASSERT_LE(0, log);
	for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_FORMAT, shifts[i] << 16, 4));
		ASSERT_EQ(0, np_bad_bind(&self->bad, 0));
		EXPECT_EQ(0, np_log_wait(log, "not served", NP_TIMEOUT_MS));
		EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
		ASSERT_EQ(0, set_format(&self->bad, 9, 0, 0));
		ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESCAN, NULL));
		EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 1));
		ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_FORMAT, shifts[i] << 16, 4));
		ASSERT_EQ(0, np_ioctl(self->bad.ctrl.fd, NVME_IOCTL_RESCAN, NULL));
		EXPECT_EQ(0, np_bad_wait_namespaces(&self->bad, 0));
		ASSERT_EQ(0, np_bad_unbind(&self->bad));
	}
	close(log);
}

TEST_F(bad_identify, atomic_writes_make_the_physical_block)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_FEATURES, 1U << 1, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_NAWUPF, 11, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	/* 12 blocks, rounded down to a power of two. */
	EXPECT_EQ(4096, number(&self->bad, "queue/physical_block_size"));
	expect_io(_metadata, self);
}

TEST_F(bad_identify, odd_preferred_sizes)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_FEATURES, 1U << 4 | 1U << 1, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_NAWUPF, 0xffff, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_NPWG, 6, 2));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_NOWS, 0xffff, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(2048, number(&self->bad, "queue/physical_block_size"));
	EXPECT_EQ(7 * 512, number(&self->bad, "queue/minimum_io_size"));
	EXPECT_EQ(65536 * 512, number(&self->bad, "queue/optimal_io_size"));
	expect_io(_metadata, self);
}

TEST_F(bad_identify, no_preferred_size)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_FEATURES, 1U << 4, 1));
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_NPWG, 7, 2));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(4096, number(&self->bad, "queue/minimum_io_size"));
	EXPECT_EQ(0, number(&self->bad, "queue/optimal_io_size"));
}

/* --- limits --------------------------------------------------------------------------- */

/* The controller refuses what is longer, so that the block layer has to split. */
TEST_F(bad_identify, short_transfers)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_MDTS, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(8192, self->bad.ctrl.info.max_transfer);
	EXPECT_EQ(8, number(&self->bad, "queue/max_hw_sectors_kb"));
	expect_io(_metadata, self);
}

/* With a scheduler the block layer offers more commands at once than fit. */
TEST_F(bad_identify, queues_of_two_entries)
{
	char path[128];

	ASSERT_EQ(0, two_entries(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_MDTS, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(2, self->bad.ctrl.info.max_entries);
	expect_io(_metadata, self);
	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/scheduler",
		 self->bad.ctrl.instance);
	if (!np_write_file(path, "mq-deadline"))
		expect_io(_metadata, self);
}

/* One range for each command: merged discards are not to be had. */
TEST_F(bad_identify, short_discards)
{
	uint64_t range[2] = { NP_PAGE, NP_PAGE };

	ASSERT_EQ(0, np_bad_set(&self->bad, REG_VS, 0x00020000));
	ASSERT_EQ(0, set_bytes(&self->bad, 6, 3, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(1, number(&self->bad, "queue/max_discard_segments"));
	expect_io(_metadata, self);
	EXPECT_EQ(0, np_ioctl(self->bad.disk, BLKDISCARD, range));
	EXPECT_EQ(1, np_bad_get(&self->bad, BADCTRL_RANGES));
	EXPECT_EQ(0, np_disk_read(self->bad.disk, self->back, NP_PAGE, NP_PAGE));
	EXPECT_EQ(0, self->back[0]);
}

/* What goes beyond these limits is left as it is, and the controller says that all is well. */
static void check_discard(struct __test_metadata *_metadata, FIXTURE_DATA(bad_identify) *self,
			  uint32_t limit, unsigned int size)
{
	uint64_t range[2] = { NP_PAGE, LARGE - 2 * NP_PAGE };

	ASSERT_EQ(0, np_bad_set(&self->bad, REG_VS, 0x00020000));
	ASSERT_EQ(0, set_bytes(&self->bad, 6, limit, 16, size));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(16 * 512, number(&self->bad, "queue/discard_max_hw_bytes"));
	memset(self->bytes, 0x5a, LARGE);
	ASSERT_EQ(0, np_disk_write(self->bad.disk, self->bytes, LARGE, 0));
	EXPECT_EQ(0, np_ioctl(self->bad.disk, BLKDISCARD, range));
	ASSERT_EQ(0, np_disk_read(self->bad.disk, self->back, LARGE, 0));
	memset(self->bytes + range[0], 0, range[1]);
	EXPECT_EQ(0, memcmp(self->bytes, self->back, LARGE));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, 6, limit, 0, size));
}

/* Blocks of one range, of all ranges of a command: NVM command set 4.1.5.3. */
TEST_F(bad_identify, discards_of_few_blocks)
{
	check_discard(_metadata, self, CS_DMRSL, 4);
	check_discard(_metadata, self, CS_DMSL, 8);
}

/**
 * struct request - a thread that reads or discards a page
 * @disk: where, at its beginning
 * @ret: what came of it
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

/* Pages 1, 3, 5 and so on are partitions: who discards one does not wait for another. */
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

/* Discards that went into another one: Documentation/block/stat.rst, the 13th number. */
static unsigned int merged_discards(struct np_bad *bad)
{
	unsigned int merges = 0;

	sscanf(attribute(bad, "stat"), "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %u", &merges);
	return merges;
}

/*
 * The controller is busy with one command and can take no other. The next one that comes
 * is ready to go, those after it wait and merge: how many discards that took, or -errno.
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
	return np_bad_set(bad, BADCTRL_RELEASE, 1) ?: ret ?: i;
}

static int set_queue(struct np_bad *bad, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/queue/%s", bad->ctrl.instance, name);
	return np_write_file(path, value);
}

/* The block layer has a waiting room of its own, to which all discards are let in. */
static int make_room(struct np_bad *bad)
{
	/* Not every kernel can be told to hold discards back. */
	set_queue(bad, "wbt_lat_usec", "0");
	return set_queue(bad, "scheduler", "mq-deadline") ?: set_queue(bad, "nr_requests", "16");
}

/* Every other page is discarded, several by one command; those between are as they were. */
TEST_F(bad_identify, merged_discards)
{
	struct request read, discards[DISCARDS];
	int i, count;

	ASSERT_EQ(0, two_entries(&self->bad));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_GRANT, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	if (make_room(&self->bad))
		SKIP(return, "a kernel without a scheduler");
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

/* What waits until the controller takes another command was meant for the disk before. */
TEST_F(bad_identify, what_waits_is_not_sent_to_another_disk)
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
	ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_NGUID, 0x77, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EVENT, EVENT_NAMESPACES));
	EXPECT_EQ(0, np_bad_wait_empty(&self->bad));
	EXPECT_EQ(0, np_bad_set(&self->bad, BADCTRL_RELEASE, 1));
	for (i = 0; i < 2; i++) {
		pthread_join(reads[i].thread, NULL);
		EXPECT_EQ(i ? -EIO : 0, reads[i].ret);
	}
	EXPECT_EQ(0, np_bad_hits(&self->bad, 1));
}

/* With one command at a time, the next one has the identifier of the last but for the count. */
TEST_F(bad_identify, an_answer_from_the_past_does_not_count)
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

/* While the end of a request is on its way to the processor that sent it, too. */
TEST_F(bad_identify, a_second_answer_does_not_count_elsewhere)
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

/* WZSL in pages: shorter than other commands, or longer. */
TEST_F(bad_identify, zeroes_have_a_limit_of_their_own)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_VS, 0x00020000));
	ASSERT_EQ(0, set_bytes(&self->bad, 6, CS_WZSL, 1, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(8192, number(&self->bad, "queue/write_zeroes_max_bytes"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	ASSERT_EQ(0, set_bytes(&self->bad, 6, CS_WZSL, 11, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(8 << 20, number(&self->bad, "queue/write_zeroes_max_bytes"));
	ASSERT_EQ(0, np_bad_unbind(&self->bad));
	/* No command counts more than 65,536 blocks. */
	ASSERT_EQ(0, set_bytes(&self->bad, 6, CS_WZSL, 31, 1));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(32 << 20, number(&self->bad, "queue/write_zeroes_max_bytes"));
}

/*
 * Fast zeroes: the controller may give the blocks back, and they read as zero.  Kernels
 * before 6.17 do not ask.
 */
TEST_F(bad_identify, zeroes_may_give_blocks_back)
{
	static const struct {
		unsigned int features;
		bool fast;
	} cases[] = { { 0x09, true }, { 0x08, false }, { 0x01, false }, { 0x0a, false } };
	unsigned int longest;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ASSERT_EQ(0, set_bytes(&self->bad, 0, NS_DEALLOCATE, cases[i].features, 1));
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
 * Addresses of longer mappings are not kept at hand where an IOMMU translates: the
 * block layer asks for 128 KiB at most, commands of user space may be longer.
 */
TEST_F(bad_identify, requests_are_as_long_as_mappings_are_cheap)
{
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	ASSERT_EQ(NVME_PEER_DOMAIN_TRANSLATED, self->bad.ctrl.info.domain);
	EXPECT_EQ(128, number(&self->bad, "queue/max_sectors_kb"));
	EXPECT_EQ(1024, number(&self->bad, "queue/max_hw_sectors_kb"));
	expect_io(_metadata, self);
}

/* The blocks in use are asked for each time, and who asks hears of a refusal. */
TEST_F(bad_identify, blocks_in_use)
{
	char path[128], text[32];

	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_LT(0, number(&self->bad, "nuse"));
	np_bad_rule(&self->bad, 0, NP_ADMIN_IDENTIFY, BADCTRL_STATUS,
		    NP_STATUS_DNR | NP_STATUS_INTERNAL, 1);
	snprintf(path, sizeof(path), "/sys/block/nvmep%dn1/nuse", self->bad.ctrl.instance);
	EXPECT_EQ(-EIO, np_read_file(path, text, sizeof(text)));
	EXPECT_LT(0, number(&self->bad, "nuse"));
}

/* Version 2, and yet it does not know its limits. */
TEST_F(bad_identify, limits_refused)
{
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_VS, 0x00020000));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_REFUSED, 1U << 6));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	expect_io(_metadata, self);
}

/* Says that it has the log of commands and effects, and refuses it. */
TEST_F(bad_identify, effects_refused)
{
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_LPA, 1U << 1, 1));
	np_bad_rule(&self->bad, 0, NP_ADMIN_GET_LOG, BADCTRL_STATUS,
		    NP_STATUS_DNR | NP_STATUS_INTERNAL, 1);
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(1, np_bad_hits(&self->bad, 0));
	expect_io(_metadata, self);
}

/* In a process of its own: 0, or the number of the answer that is wrong. */
static int send_without_capabilities(int generic, uint8_t *bytes)
{
	if (np_drop_capabilities())
		return 1;
	if (send(generic, NP_CMD_READ, bytes))
		return 2;
	if (send(generic, NP_CMD_WRITE_ZEROES, bytes) != -EACCES)
		return 3;
	if (send(generic, NP_CMD_FLUSH, bytes) != -EACCES)
		return 4;
	return send(generic, NP_CMD_VENDOR, bytes) == -EACCES ? 0 : 5;
}

/*
 * Users' commands are those that do no harm, by the controller's own word: not one that
 * changes what a namespace is, nor one it does not name, nor a vendor's.
 */
TEST_F(bad_identify, users_send_what_is_harmless)
{
	int generic, status;
	pid_t child;

	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_LPA, 1U << 1, 1));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NP_CMD_READ), NP_EFFECT_SUPPORTED));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NP_CMD_WRITE_ZEROES),
				NP_EFFECT_SUPPORTED | NP_EFFECT_NS_CAPABILITY));
	ASSERT_EQ(0, np_bad_set(&self->bad, BADCTRL_EFFECTS(NP_CMD_VENDOR), NP_EFFECT_SUPPORTED));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	generic = np_open_node(&self->bad.ctrl, "/dev/ngp%dn1", O_RDWR);
	ASSERT_LE(0, generic);
	EXPECT_EQ(0, send(generic, NP_CMD_WRITE_ZEROES, self->bytes));
	EXPECT_LT(0, send(generic, NP_CMD_VENDOR, self->bytes));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(send_without_capabilities(generic, self->bytes));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	close(generic);
}

/* --- registers ---------------------------------------------------------------------------- */

TEST_F(bad_identify, a_memory_buffer)
{
	uint32_t cap = np_bad_get(&self->bad, REG_CAP_HIGH);

	/* CMBS, and 16 units of 64 KiB. */
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CAP_HIGH, cap | 1U << 25));
	ASSERT_EQ(0, np_bad_set(&self->bad, REG_CMBSZ, 16U << 12 | 1U << 8));
	ASSERT_EQ(0, set_bytes(&self->bad, 1, CTRL_SGLS, 0x00010001, 4));
	ASSERT_EQ(0, np_bad_bind(&self->bad, 1));
	EXPECT_EQ(16 * 65536, self->bad.ctrl.info.cmb_size);
	EXPECT_EQ(0x00010001, self->bad.ctrl.info.sgls);
	expect_io(_metadata, self);
}

/* CAP.TO says a second, CRTO (base specification 3.1.4.20) half a second more. */
TEST_F(bad_identify, a_longer_start)
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
