// SPDX-License-Identifier: GPL-2.0-only
/*
 * Power cuts while a peer writes to a file by a window. The file is made by write(), without fsync(),
 * after random changes of other files, which go on beside the peer's writes. After the cut the file
 * system is mounted, which replays its journal: it is consistent, the file has its length and its
 * extents, and each logical block has a version that is not older than the last one that a completed
 * Flush or FUA has made durable, and not newer than the last one that was begun.
 *
 * badctrl loses a random subset of unflushed blocks and tears writes at logical blocks. Blocks of
 * metadata with checksums are larger than 512 bytes, and file systems rely on writes of whole ones at
 * places that a journal does not protect: the superblock of ext4, and metadata of XFS with a new log
 * sequence number. So there are no checksums where logical blocks have 512 bytes, and no XFS.
 *
 * usage: file_power [CUTS [SEED [KIND]]]
 *
 * Each cut makes all choices by a seed of its own, SEED, SEED + 1 and so on.
 *
 * kernels: 7
 * long-kernels: 7 debug
 * iommu: on
 * timeout: 300
 * arguments: 9
 * long-timeout: 7200
 * long-arguments: 1000
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/ktap.h"
#include "npbad.h"
#include "tenant.h"

#define ENTRIES		16U
#define PAGES		40U
#define BYTES		(PAGES * NP_PAGE)
#define MOST_BLOCKS	(BYTES / NP_BLOCK)
#define MOST_EXTENTS	(PAGES + 8)
#define PARTS		4U	/* of the file, for commands in flight at a time */
#define FLUSH		PARTS	/* command ID */
#define MOST_COMMANDS	150U	/* before a cut */
#define OTHERS		6U
#define OTHER_PAGES	24U
#define FUA		(1U << 30)
#define NAMESPACE	1U	/* as a set */
#define FOLDER		"/run/file_power"
#define DATA		FOLDER "/data"
#define LOG		"/run/file_power.log"

/**
 * struct kind - a file system, and the logical blocks that it is on
 * @name: of the result
 * @type: for mount
 * @make: command that makes one
 * @check: command that checks it
 * @block: bytes of a logical block
 */
struct kind {
	const char *name;
	const char *type;
	const char *make;
	const char *check;
	uint32_t block;
};

#define MAKE_EXT4	"mkfs.ext4 -qF -b 4096 -J size=4 -N 64 -E nodiscard,lazy_itable_init=0"

static const struct kind kinds[] = {
	{
		.name = "ext4 on blocks of 512 bytes",
		.type = "ext4",
		.make = MAKE_EXT4 " -O ^metadata_csum,^metadata_csum_seed",
		.check = "e2fsck -fn",
		.block = NP_BLOCK,
	}, {
		.name = "ext4 on blocks of 4096 bytes",
		.type = "ext4",
		.make = MAKE_EXT4,
		.check = "e2fsck -fn",
		.block = NP_PAGE,
	}, {
		.name = "XFS on blocks of 4096 bytes",
		.type = "xfs",
		.make = "mkfs.xfs -qfK --unsupported",
		.check = "xfs_repair -n -o force_geometry",
		.block = NP_PAGE,
	},
};

#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

/**
 * struct block - what a logical block of the file may contain
 * @begun: the last version of which a write has begun
 * @complete: the last version of which a write has completed
 * @durable: the last version that is on the medium
 */
struct block {
	uint32_t begun;
	uint32_t complete;
	uint32_t durable;
};

/* What FIEMAP returns. */
struct extents {
	struct fiemap map;
	struct fiemap_extent all[MOST_EXTENTS];
};

/**
 * struct part - the command in flight to a part of the file
 * @first: block of the file
 * @count: of blocks; 0: there is no command
 * @control: FUA or 0
 */
struct part {
	uint32_t first;
	uint32_t count;
	uint32_t control;
};

/**
 * struct run - a cut
 * @bad: the controller
 * @kind: the file system
 * @seed: of all choices
 * @random: state of any()
 * @failed: something is wrong
 * @disk: its block device
 * @file: the file, -1 for none
 * @qp: the peer
 * @memory: the file's bytes as the peer writes them
 * @window: on @file
 * @count: of @blocks
 * @covered: what a Flush in flight makes durable
 * @parts: commands in flight
 * @extents: of @file, before the cut
 */
static struct {
	struct np_bad bad;
	const struct kind *kind;
	uint64_t seed;
	uint64_t random;
	bool failed;
	char disk[32];
	int file;
	struct np_qp qp;
	struct np_memory memory;
	uint32_t window;
	uint32_t count;
	struct block blocks[MOST_BLOCKS];
	uint32_t covered[MOST_BLOCKS];
	struct part parts[PARTS];
	struct extents extents;
} run;

/**
 * struct counts - of all cuts of a kind
 * @writes: of peers, without error
 * @flushes: of peers, without error
 * @changes: of other files
 * @extents: of files with a window
 * @lost: blocks that came back without the last version that was complete
 */
static struct {
	uint32_t writes;
	uint32_t flushes;
	uint32_t changes;
	uint32_t extents;
	uint32_t lost;
} counts;

__attribute__((format(printf, 1, 2)))
static bool wrong(const char *format, ...)
{
	va_list arguments;

	if (!run.failed)
		printf("# to repeat: file_power 1 %llu %zu\n", (unsigned long long)run.seed,
		       (size_t)(run.kind - kinds));
	run.failed = true;
	va_start(arguments, format);
	printf("# ");
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	return false;
}

static bool must(int error, const char *what)
{
	return !error || wrong("%s: %s", what, strerror(-error));
}

static uint32_t any(uint32_t below)
{
	run.random += 0x9e3779b97f4a7c15u;
	return (uint32_t)(np_mix(run.random) % below);
}

static int on_disk(const char *command)
{
	char line[256];

	snprintf(line, sizeof(line), "%s %s >" LOG " 2>&1", command, run.disk);
	if (!system(line))
		return 0;
	return system("sed 's/^/# /' " LOG) ? -ENOENT : -EIO;
}

/* --- other files -------------------------------------------------------------- */

static const char *other(uint32_t number)
{
	static char paths[2][64];
	static int turn;

	turn = !turn;
	snprintf(paths[turn], sizeof(paths[turn]), FOLDER "/other%u", number);
	return paths[turn];
}

static int write_other(int fd, uint32_t first, uint32_t count)
{
	static uint8_t bytes[OTHER_PAGES * NP_PAGE];

	np_pattern(bytes, count * NP_PAGE, first, (uint32_t)run.random);
	return pwrite(fd, bytes, count * NP_PAGE, (off_t)first * NP_PAGE) < 0 ? -errno : 0;
}

static int change_open(int fd)
{
	uint32_t first = any(OTHER_PAGES), count = 1 + any(OTHER_PAGES - first);
	off_t offset = (off_t)first * NP_PAGE, length = (off_t)count * NP_PAGE;

	switch (any(16)) {
	case 0:
	case 1:
		return ftruncate(fd, offset + any(NP_PAGE));
	case 2:
	case 3:
		return fallocate(fd, 0, offset, length);
	case 4:
	case 5:
		return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
	case 6:
		return fsync(fd);
	case 7:
		return sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	default:
		return write_other(fd, first, count);
	}
}

static int change_other(uint32_t number)
{
	int fd = open(other(number), O_RDWR | O_CREAT | O_CLOEXEC, 0600), result;

	if (fd < 0)
		return -errno;
	result = change_open(fd);
	close(fd);
	return result;
}

/* What cannot be done is not: there may be no such file, no space, or no power. */
static void change_others(uint32_t changes)
{
	while (changes--) {
		uint32_t number = any(OTHERS), second = any(OTHERS);
		int result;

		switch (any(8)) {
		case 0:
			result = unlink(other(number));
			break;
		case 1:
			result = rename(other(number), other(second));
			break;
		case 2:
			result = link(other(number), other(second));
			break;
		default:
			result = change_other(number);
			break;
		}
		counts.changes += !result;
	}
}

/* --- the file ----------------------------------------------------------------- */

static void describe(uint8_t *bytes, uint32_t number, uint32_t version)
{
	np_describe((uint64_t *)bytes, run.kind->block, run.seed, number, version);
}

/* Pages that are removed leave the others scattered. */
static bool scatter(void)
{
	uint32_t pages = any(4) ? any(12) : 0, i;

	if ((pages || any(2)) && fallocate(run.file, 0, 0, BYTES + pages * NP_PAGE))
		return must(-errno, "fallocate");
	for (i = 0; i < pages; i++)
		if (fallocate(run.file, FALLOC_FL_COLLAPSE_RANGE, (off_t)any(PAGES - 1) * NP_PAGE, NP_PAGE))
			return must(-errno, "remove a page");
	return true;
}

static bool write_pages(uint32_t first, uint32_t end)
{
	const ssize_t bytes = (ssize_t)(end - first) * NP_PAGE;
	const off_t offset = (off_t)first * NP_PAGE;

	return pwrite(run.file, run.memory.bytes + offset, (size_t)bytes, offset) == bytes ||
	       wrong("write: %s", strerror(errno));
}

/* Version 1 of all blocks, in two parts. */
static bool write_file(void)
{
	uint32_t middle = any(PAGES), i;

	for (i = 0; i < run.count; i++) {
		describe(run.memory.bytes + i * run.kind->block, i, 1);
		run.blocks[i] = (struct block){ 1, 1, 1 };
	}
	return write_pages(middle, PAGES) && write_pages(0, middle);
}

/* Nothing makes it durable but the window. */
static bool make_file(void)
{
	run.file = open(DATA, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (run.file < 0)
		return must(-errno, "create");
	return scatter() && (change_others(any(8)), write_file()) && !ftruncate(run.file, BYTES);
}

static bool read_extents(int file, struct extents *extents)
{
	memset(extents, 0, sizeof(*extents));
	extents->map.fm_length = ~0ULL;
	extents->map.fm_extent_count = MOST_EXTENTS;
	return !ioctl(file, FS_IOC_FIEMAP, &extents->map);
}

static bool add_window(void)
{
	if (!must(np_window_add(&run.qp, run.file, 0, 0, &run.window), "window") ||
	    !must(read_extents(run.file, &run.extents) ? 0 : -errno, "extents"))
		return false;
	counts.extents += run.extents.map.fm_mapped_extents;
	return true;
}

/* --- the peer ----------------------------------------------------------------- */

static void put_flush(void)
{
	struct np_command flush = { .opcode = NVMEPEER_OP_FLUSH, .cid = FLUSH, .nsid = run.window };

	for (uint32_t i = 0; i < run.count; i++)
		run.covered[i] = run.blocks[i].complete;
	np_qp_put(&run.qp, &flush);
}

/* Commands in flight write to different parts of the file. */
static void put_write(uint32_t number)
{
	uint32_t blocks = run.count / PARTS, first = any(blocks), count = 1 + any(blocks - first), i;
	struct part *part = &run.parts[number];
	struct np_command command;

	*part = (struct part){ number * blocks + first, count, any(8) ? 0 : FUA };
	for (i = part->first; i < part->first + count; i++)
		describe(run.memory.bytes + i * run.kind->block, i, ++run.blocks[i].begun);
	command = np_window_command(NVMEPEER_OP_WRITE, run.window, part->first, count, run.memory.slot,
				    (uint64_t)part->first * run.kind->block);
	command.cid = (uint16_t)number;
	command.cdw10[2] |= part->control;
	np_qp_put(&run.qp, &command);
}

static void flushed(void)
{
	counts.flushes++;
	for (uint32_t i = 0; i < run.count; i++)
		if (run.covered[i] > run.blocks[i].durable)
			run.blocks[i].durable = run.covered[i];
}

static void written(const struct part *part)
{
	counts.writes++;
	for (uint32_t i = part->first; i < part->first + part->count; i++) {
		run.blocks[i].complete = run.blocks[i].begun;
		if (part->control)
			run.blocks[i].durable = run.blocks[i].begun;
	}
}

static bool reap(void)
{
	uint16_t cid = 0;
	int status = np_qp_reap(&run.qp, &cid, NP_TIMEOUT_MS);

	if (status < 0)
		return must(status, "completion");
	if (status)
		return np_bad_power_off(&run.bad) || wrong("status %#x with power", (unsigned int)status);
	if (cid == FLUSH)
		flushed();
	else
		written(&run.parts[cid]);
	return true;
}

/* Several writes, and perhaps a Flush, which has to make durable what was complete before. */
static bool write_by_peer(void)
{
	uint32_t set = any(1U << PARTS), commands = 0;

	for (uint32_t i = 0; i < PARTS; i++)
		if (set >> i & 1) {
			put_write(i);
			commands++;
		}
	if (!any(4)) {
		put_flush();
		commands++;
	}
	if (!must(np_qp_ring_doorbell(&run.qp), "doorbell"))
		return false;
	while (commands--)
		if (!reap())
			return false;
	return true;
}

/* In turns with changes of other files: a seed repeats the choices. */
static bool write_until_cut(void)
{
	if (!must(np_bad_arm_cut(&run.bad, 1 + any(MOST_COMMANDS), NAMESPACE), "power will be cut"))
		return false;
	for (uint32_t turns = 0; turns < MOST_COMMANDS && !np_bad_power_off(&run.bad); turns++) {
		if (!write_by_peer())
			return false;
		if (!any(3))
			change_others(1 + any(3));
	}
	return must(np_bad_arm_cut(&run.bad, 0, 0) ?: np_bad_cut_namespaces(&run.bad, NAMESPACE),
		    "power is cut");
}

/* --- after the cut ------------------------------------------------------------ */

static bool check_block(const uint8_t *bytes, uint32_t number)
{
	const struct block *block = &run.blocks[number];
	uint64_t expected[NP_PAGE / sizeof(uint64_t)], words[3];

	memcpy(words, bytes, sizeof(words));
	describe((uint8_t *)expected, number, (uint32_t)words[2]);
	if (memcmp(bytes, expected, run.kind->block) != 0)
		return wrong("block %u: not what was written: %#llx %#llx %#llx", number,
			     (unsigned long long)words[0], (unsigned long long)words[1],
			     (unsigned long long)words[2]);
	if (words[2] < block->durable || words[2] > block->begun)
		return wrong("block %u has version %u, not %u to %u", number, (uint32_t)words[2],
			     block->durable, block->begun);
	counts.lost += words[2] < block->complete;
	return true;
}

static bool check_blocks(int file)
{
	static uint8_t bytes[BYTES];
	bool good = true;

	if (pread(file, bytes, BYTES, 0) != BYTES)
		return must(-errno, "read");
	for (uint32_t i = 0; i < run.count && good; i++)
		good = check_block(bytes + i * run.kind->block, i);
	return good;
}

static bool check_extents(int file)
{
	struct extents extents;

	if (!read_extents(file, &extents))
		return must(-errno, "extents");
	if (memcmp(&extents, &run.extents, sizeof(extents)) != 0)
		return wrong("the extents have changed");
	return true;
}

static bool check_file(void)
{
	int file = open(DATA, O_RDONLY | O_CLOEXEC);
	struct stat status;
	bool good;

	if (file < 0)
		return wrong("the file is lost: %s", strerror(errno));
	if (fstat(file, &status) || status.st_size != BYTES)
		good = wrong("the file has %lld bytes", (long long)status.st_size);
	else
		good = check_extents(file) && check_blocks(file);
	close(file);
	return good;
}

static bool mount_disk(void)
{
	return must(mount(run.disk, FOLDER, run.kind->type, 0, NULL) ? -errno : 0, "mount");
}

static bool unmount(void)
{
	return must(np_unmount(FOLDER), "unmount");
}

static bool bind_disk(void)
{
	int error = np_bad_bind(&run.bad, 1);

	snprintf(run.disk, sizeof(run.disk), "/dev/nvmep%dn1", run.bad.ctrl.instance);
	/* Nothing but the mount has it open. */
	if (!error) {
		close(run.bad.disk);
		run.bad.disk = -1;
	}
	return must(error, "badctrl is bound");
}

static bool power_on(void)
{
	return must(np_bad_unbind(&run.bad), "badctrl is unbound") &&
	       must(np_bad_set_power_off(&run.bad, 0), "power is on") && bind_disk();
}

static bool check_disk(void)
{
	bool good;

	if (!mount_disk())
		return false;
	good = check_file();
	if (!unmount() || !good)
		return false;
	return must(on_disk(run.kind->check), "check the file system");
}

/* --- cuts --------------------------------------------------------------------- */

static bool open_peer(void)
{
	run.qp = (struct np_qp){ .fd = -1 };
	run.memory = (struct np_memory){ .fd = -1 };
	return must(np_qp_open(&run.qp, run.bad.ctrl.fd, ENTRIES), "queue pair") &&
	       must(np_memory_alloc(&run.memory, run.bad.ctrl.fd), "memory") &&
	       must(np_buf_add(&run.qp, run.memory.fd, 0, &run.memory.slot), "buffer");
}

static void close_peer(void)
{
	np_qp_close(&run.qp);
	np_memory_free(&run.memory);
	if (run.file >= 0)
		close(run.file);
	run.file = -1;
}

/* Until power is off. */
static bool use(void)
{
	bool good = open_peer();

	if (good) {
		change_others(any(24));
		good = make_file() && (change_others(any(8)), add_window()) && write_until_cut();
	}
	close_peer();
	return unmount() && good;
}

static bool cut_once(uint64_t seed)
{
	run.seed = seed;
	run.random = np_mix(seed * KINDS + (uint64_t)(run.kind - kinds));
	if (!must(np_bad_set(&run.bad, BADCTRL_POWER(BADCTRL_POWER_RANDOM), any(UINT32_MAX)), "seed") ||
	    !must(on_disk(run.kind->make), "make the file system") || !mount_disk())
		return false;
	return use() && power_on() && check_disk();
}

static bool set_up(void)
{
	return must(np_bad_unbind(&run.bad) ?: np_bad_set(&run.bad, BADCTRL_DEFAULTS, 1) ?:
		    np_bad_set(&run.bad, BADCTRL_MODE, BADCTRL_WORKS) ?:
		    (run.kind->block == NP_PAGE ? np_bad_large_blocks(&run.bad) : 0), "badctrl is set up") &&
	       bind_disk();
}

static void cut_kind(const struct kind *kind, uint32_t cuts, uint64_t seed)
{
	uint32_t done = 0;
	char line[128];

	memset(&counts, 0, sizeof(counts));
	run.kind = kind;
	run.seed = seed;
	run.count = BYTES / kind->block;
	run.failed = false;
	snprintf(line, sizeof(line), "modprobe -q %s", kind->type);
	if (system(line)) {
		printf("ok %u %s # SKIP not in this kernel\n", ++ktap_count, kind->name);
		return;
	}
	if (set_up())
		while (done < cuts && cut_once(seed + done))
			done++;
	printf("# %u cuts: %u writes and %u flushes of peers, %u changes of other files, %u extents, %u blocks lost a version\n",
	       done, counts.writes, counts.flushes, counts.changes, counts.extents, counts.lost);
	ktap_check(!run.failed && counts.writes && counts.flushes && counts.changes, kind->name);
}

int main(int argc, char **argv)
{
	uint32_t cuts = argc > 1 ? (uint32_t)atoi(argv[1]) : 9;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	size_t only = argc > 3 ? strtoul(argv[3], NULL, 0) : KINDS, kind;
	int error;

	ktap_start();
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	run.file = -1;
	error = np_bad_open(&run.bad);
	if (error == -ENOENT) {
		puts("ok 1 # SKIP no badctrl in this guest\n1..1");
		return 0;
	}
	mkdir(FOLDER, 0700);
	if (error)
		ktap_check(false, "badctrl is opened");
	for (kind = 0; kind < KINDS && !error; kind++)
		if (only == KINDS || only == kind)
			cut_kind(&kinds[kind], only == kind ? cuts : (cuts + KINDS - 1) / KINDS, seed);
	/* The other controller is checked in direct mode. */
	np_qp_set_mode(NVME_PEER_MODE_DIRECT);
	ktap_check(!np_bad_close(&run.bad), "nothing is left behind");
	return ktap_end();
}
