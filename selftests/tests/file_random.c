// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random operations on files of ext4 and of XFS: processes write, map, truncate, punch, rename, unlink,
 * defragment, freeze and remount, while peers of mediated queue pairs read and write some of the
 * files by windows. Each block describes itself, and each one that is read is checked: its version
 * is not older than what was complete before the read, and not newer than what was begun after it.
 *
 * A module without windows on files runs the operations of the processes alone.
 *
 * kernels: 7
 * long-kernels: 7 debug
 * iommu: on
 * timeout: 120
 * arguments: --operations 300
 * long-arguments: --operations 100000
 * long-timeout: 7200
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/ktap.h"
#include "nptest.h"
#include "tenant.h"

#define PROCESSES	3U
#define PEERS		2U
#define FILES		8U
#define BLOCKS		48U
#define BYTES		(BLOCKS * NP_PAGE)
#define WORDS		(NP_PAGE / sizeof(uint64_t))
#define ENTRIES		16U
#define NOT_READY	0x082
#define ABORTED		0x007
#define ENDING		UINT32_MAX
#define FOLDER		"/run/file_random"

/**
 * struct block - what a block of a file may contain
 * @busy: a process or a peer writes it; also guards the file's blocks against its end as pinned
 * @begun: the last version of which a write has begun
 * @complete: the last version of which a write has completed
 * @zeroed: the last version that is zeros
 */
struct block {
	atomic_flag busy;
	atomic_uint begun;
	atomic_uint complete;
	atomic_uint zeroed;
};

/**
 * struct file - a file and its model
 * @busy: a process operates on it; peers do not wait for that
 * @windows: of each peer, 0 for none, ENDING while it is removed
 */
struct file {
	atomic_flag busy;
	atomic_uint windows[PEERS];
	struct block blocks[BLOCKS];
};

/**
 * struct shared - memory of all processes
 * @qps: each is used by the process of its peer, and by the first process before and after
 * @left: operations that have not begun
 * @bad: checks that failed
 * @stop: peers end
 */
struct shared {
	struct file files[FILES];
	struct np_qp qps[PEERS];
	atomic_int left;
	atomic_uint bad;
	atomic_bool stop;
	atomic_uint operations;
	atomic_uint pins;
	atomic_uint refused;
	atomic_uint reads;
	atomic_uint writes;
	atomic_uint frozen;
	atomic_bool no_windows;
};

/**
 * struct file_system - the type of the files' file system
 * @name: for mount
 * @make: command that makes one
 * @check: command that checks it
 */
struct file_system {
	const char *name;
	const char *make;
	const char *check;
};

static const struct file_system ext4 = {
	"ext4", "mkfs.ext4 -q -F -b 4096 %s", "e2fsck -fn %s >/dev/null 2>&1"
};
static const struct file_system xfs = { "xfs", "mkfs.xfs -qfK %s", "xfs_repair -n %s >/dev/null 2>&1" };
static const struct file_system *file_system;

static struct shared *shared;
static struct np_memory memories[PEERS];
static char disk[32];
static uint64_t random_state;

static uint32_t any(uint32_t below)
{
	random_state += 0x9e3779b97f4a7c15u;
	return (uint32_t)(np_mix(random_state) % below);
}

static void lock(atomic_flag *busy)
{
	while (atomic_flag_test_and_set(busy))
		usleep(100);
}

static void unlock(atomic_flag *busy)
{
	atomic_flag_clear(busy);
}

static bool wrong(const char *what, uint32_t file, uint32_t block, uint64_t got)
{
	if (atomic_fetch_add(&shared->bad, 1) < 20)
		printf("# file %u block %u: %s: %#llx, errno %d\n", file, block, what,
		       (unsigned long long)got, errno);
	return false;
}

/* --- blocks ------------------------------------------------------------------ */

static void describe(uint64_t words[WORDS], uint32_t file, uint32_t block, uint32_t version)
{
	np_describe(words, NP_PAGE, file, block, version);
}

static bool is_zero(const uint64_t words[WORDS])
{
	for (uint32_t i = 0; i < WORDS; i++)
		if (words[i])
			return false;
	return true;
}

/* @low: complete before the read. */
static bool check(const uint64_t words[WORDS], uint32_t file, uint32_t number, uint32_t low)
{
	struct block *block = &shared->files[file].blocks[number];
	uint32_t high = atomic_load(&block->begun), zeroed = atomic_load(&block->zeroed);
	uint64_t expected[WORDS];

	if (is_zero(words))
		return (zeroed >= low && zeroed <= high) || wrong("zeros after version", file, number, low);
	describe(expected, file, number, (uint32_t)words[2]);
	if (memcmp(words, expected, NP_PAGE))
		return wrong("not what was written: version", file, number, words[2]);
	if (words[2] < low || words[2] > high)
		return wrong(words[2] < low ? "an old version" : "a version of the future", file, number,
			     words[2]);
	return true;
}

static uint32_t begin_version(struct block *block, bool zero)
{
	uint32_t version = atomic_load(&block->begun) + 1;

	if (zero)
		atomic_store(&block->zeroed, version);
	atomic_store(&block->begun, version);
	return version;
}

static void begin_zeros(struct file *file, uint32_t first, uint32_t count, uint32_t versions[BLOCKS])
{
	for (uint32_t i = first; i < first + count; i++) {
		lock(&file->blocks[i].busy);
		versions[i] = begin_version(&file->blocks[i], true);
	}
}

static void end_zeros(struct file *file, uint32_t first, uint32_t count, const uint32_t versions[BLOCKS])
{
	for (uint32_t i = first; i < first + count; i++) {
		atomic_store(&file->blocks[i].complete, versions[i]);
		unlock(&file->blocks[i].busy);
	}
}

/* --- operations of processes ------------------------------------------------------ */

static const char *path_of(uint32_t number, const char *kind)
{
	static char paths[2][64];
	static int turn;

	turn = !turn;
	snprintf(paths[turn], sizeof(paths[turn]), FOLDER "/%s%u", kind, number);
	return paths[turn];
}

static bool is_pinned(const struct file *file)
{
	for (uint32_t i = 0; i < PEERS; i++)
		if (atomic_load(&file->windows[i]))
			return true;
	return false;
}

/* A pinned file refuses each change, and does not change. */
static bool judge(uint32_t number, bool changed, const char *what)
{
	bool pinned = is_pinned(&shared->files[number]);

	if (pinned && changed)
		return wrong(what, number, 0, 0);
	if (!pinned && !changed)
		return wrong(what, number, 1, 0);
	if (pinned)
		atomic_fetch_add(&shared->refused, 1);
	return true;
}

static int open_file(uint32_t number, int flags)
{
	int fd = open(path_of(number, "f"), flags | O_CLOEXEC, 0600);

	if (fd < 0)
		wrong("open", number, 0, 0);
	return fd;
}

static bool read_blocks(uint32_t number, int flags)
{
	static _Alignas(4096) uint64_t words[4][WORDS];
	uint32_t first = any(BLOCKS), count = 1 + any(4), low[4], i;
	struct file *file = &shared->files[number];
	int fd = open_file(number, O_RDONLY | flags);
	ssize_t got;

	count = first + count > BLOCKS ? BLOCKS - first : count;
	for (i = 0; i < count; i++)
		low[i] = atomic_load(&file->blocks[first + i].complete);
	got = pread(fd, words, count * NP_PAGE, first * NP_PAGE);
	close(fd);
	if (got != (ssize_t)(count * NP_PAGE))
		return wrong("pread", number, first, (uint64_t)got);
	for (i = 0; i < count; i++)
		check(words[i], number, first + i, low[i]);
	return true;
}

static bool write_block(uint32_t number, int flags)
{
	static _Alignas(4096) uint64_t words[WORDS];
	uint32_t block = any(BLOCKS), version;
	struct file *file = &shared->files[number];
	int fd = open_file(number, O_RDWR | flags);
	bool pinned = is_pinned(file);
	ssize_t put;

	lock(&file->blocks[block].busy);
	version = atomic_load(&file->blocks[block].begun) + 1;
	describe(words, number, block, pinned ? UINT32_MAX : version);
	if (!pinned)
		begin_version(&file->blocks[block], false);
	put = pwrite(fd, words, NP_PAGE, block * NP_PAGE);
	if (!pinned)
		atomic_store(&file->blocks[block].complete, version);
	unlock(&file->blocks[block].busy);
	close(fd);
	return judge(number, put == NP_PAGE, "write");
}

/* A mapping for writing is refused while the file is pinned. */
static bool map_block(uint32_t number)
{
	uint32_t block = any(BLOCKS), version;
	struct file *file = &shared->files[number];
	int fd = open_file(number, O_RDWR);
	uint64_t *words = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, block * NP_PAGE);

	close(fd);
	if (words != MAP_FAILED && !is_pinned(file)) {
		lock(&file->blocks[block].busy);
		version = begin_version(&file->blocks[block], false);
		describe(words, number, block, version);
		atomic_store(&file->blocks[block].complete, version);
		unlock(&file->blocks[block].busy);
		if (any(2) && msync(words, NP_PAGE, MS_SYNC))
			wrong("msync", number, block, 0);
	}
	judge(number, words != MAP_FAILED, "map for writing");
	return words == MAP_FAILED || !munmap(words, NP_PAGE);
}

static bool read_mapping(uint32_t number)
{
	uint32_t block = any(BLOCKS), low;
	struct file *file = &shared->files[number];
	int fd = open_file(number, O_RDONLY);
	int sharing = any(2) ? MAP_SHARED : MAP_PRIVATE;
	uint64_t *words = mmap(NULL, NP_PAGE, PROT_READ, sharing, fd, block * NP_PAGE);
	static uint64_t copy[WORDS];

	close(fd);
	if (words == MAP_FAILED)
		return wrong("map for reading", number, block, 0);
	/* A peer's write while this copies would be two versions in one copy. */
	lock(&file->blocks[block].busy);
	low = atomic_load(&file->blocks[block].complete);
	memcpy(copy, words, NP_PAGE);
	unlock(&file->blocks[block].busy);
	check(copy, number, block, low);
	return !munmap(words, NP_PAGE);
}

/* Blocks become zeros, by a hole, unwritten extents or the end of the file. */
static bool zero_blocks(uint32_t number, uint32_t how)
{
	static const int modes[] = { FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE };
	uint32_t first = any(BLOCKS), count = how < 2 ? 1 + any(BLOCKS - first) : BLOCKS - first;
	struct file *file = &shared->files[number];
	int fd = open_file(number, O_RDWR);
	bool pinned = is_pinned(file), done;
	uint32_t versions[BLOCKS];

	if (!pinned)
		begin_zeros(file, first, count, versions);
	if (how < 2)
		done = !fallocate(fd, modes[how], first * NP_PAGE, count * NP_PAGE);
	else
		done = !ftruncate(fd, first * NP_PAGE) && !ftruncate(fd, BYTES);
	if (!pinned)
		end_zeros(file, first, count, versions);
	close(fd);
	return judge(number, done, how < 2 ? "fallocate" : "truncate");
}

static bool rename_twice(uint32_t number)
{
	bool done = !rename(path_of(number, "f"), path_of(number, "g"));

	if (done && rename(path_of(number, "g"), path_of(number, "f")))
		return wrong("rename back", number, 0, 0);
	return judge(number, done, "rename");
}

static bool unlink_and_create(uint32_t number)
{
	struct file *file = &shared->files[number];
	bool pinned = is_pinned(file), done;
	uint32_t versions[BLOCKS];
	int fd;

	if (!pinned)
		begin_zeros(file, 0, BLOCKS, versions);
	done = !unlink(path_of(number, "f"));
	if (done) {
		fd = open_file(number, O_RDWR | O_CREAT | O_EXCL);
		if (ftruncate(fd, BYTES))
			wrong("create", number, 0, 0);
		close(fd);
	}
	if (!pinned)
		end_zeros(file, 0, BLOCKS, versions);
	return judge(number, done, "unlink");
}

/* A copy, and the exchange of its blocks with those of the file, as by xfs_fsr. */
static bool defragment_xfs(uint32_t number)
{
	char line[256];
	bool done;

	snprintf(line, sizeof(line),
		 "cp --reflink=never %1$s/f%2$u %1$s/d%2$u && xfs_io -c 'swapext %1$s/d%2$u' %1$s/f%2$u 2>&1 |"
		 " cmp -s - /dev/null", FOLDER, number);
	done = !system(line);
	unlink(path_of(number, "d"));
	return !is_pinned(&shared->files[number]) || judge(number, done, "defragment");
}

/* Exchange blocks with a file that has some, as e4defrag does. */
static bool defragment_ext4(uint32_t number)
{
	struct file *file = &shared->files[number];
	struct move_extent move = { .len = BLOCKS };
	int fd = open_file(number, O_RDWR), donor, result;

	donor = open(path_of(number, "d"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (donor < 0 || fallocate(donor, 0, 0, BYTES))
		wrong("donor", number, 0, 0);
	move.donor_fd = (uint32_t)donor;
	/* Holes and delayed allocation are not moved: the result does not matter then. */
	fsync(fd);
	result = ioctl(fd, EXT4_IOC_MOVE_EXT, &move);
	unlink(path_of(number, "d"));
	close(donor);
	close(fd);
	return !is_pinned(file) || judge(number, !result || move.moved_len, "defragment");
}

static bool defragment(uint32_t number)
{
	return file_system == &xfs ? defragment_xfs(number) : defragment_ext4(number);
}

/* An inode of XFS that has shared blocks cannot have a window any more: a copy takes its place. */
static bool replace_by_copy(uint32_t number)
{
	char line[128];

	snprintf(line, sizeof(line), "cp --reflink=never %1$s/f%2$u %1$s/g%2$u && mv %1$s/g%2$u %1$s/f%2$u",
		 FOLDER, number);
	return !system(line) || wrong("copy", number, 0, 0);
}

/* Not for pinned files. ext4 has no reflinks. */
static bool reflink(uint32_t number)
{
	int other = open(path_of(number, "r"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int fd = open_file(number, O_RDWR);
	bool done = !ioctl(other, FICLONE, fd);

	unlink(path_of(number, "r"));
	close(other);
	close(fd);
	if (is_pinned(&shared->files[number]) || file_system == &xfs)
		judge(number, done, "reflink");
	return !done || replace_by_copy(number);
}

static bool sync_file(uint32_t number)
{
	int fd = open_file(number, O_RDWR), result = any(4) ? fsync(fd) : syncfs(fd);

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	return !result || wrong("sync", number, 0, 0);
}

static bool freeze(uint32_t number)
{
	int folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool done;

	(void)number;
	/* EBUSY: another process has frozen it. */
	done = !ioctl(folder, FIFREEZE, 0);
	if (done) {
		np_sleep_ms((int)any(5));
		atomic_fetch_add(&shared->frozen, 1);
		if (ioctl(folder, FITHAW, 0))
			wrong("thaw", 0, 0, 0);
	}
	close(folder);
	return true;
}

static bool remount(uint32_t number)
{
	/* EBUSY: another process has frozen it. */
	return !mount(disk, FOLDER, file_system->name, MS_REMOUNT | (any(2) ? MS_NOATIME : 0), NULL) ||
	       errno == EBUSY || wrong("remount", number, 0, 0);
}

/* --- windows ---------------------------------------------------------------------- */

/* All blocks: a window needs a file that is written. */
static void write_all(uint32_t number, int fd)
{
	struct file *file = &shared->files[number];
	static uint64_t words[WORDS];
	uint32_t version;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		lock(&file->blocks[i].busy);
		version = begin_version(&file->blocks[i], false);
		describe(words, number, i, version);
		if (pwrite(fd, words, NP_PAGE, i * NP_PAGE) != NP_PAGE)
			wrong("write", number, i, 0);
		atomic_store(&file->blocks[i].complete, version);
		unlock(&file->blocks[i].busy);
	}
	if (fsync(fd))
		wrong("fsync", number, 0, 0);
}

/* Refused while it is mapped for writing. */
static bool pin_mapped(uint32_t number, int fd, uint32_t peer)
{
	void *mapped = mmap(NULL, NP_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint32_t id;
	int result = np_window_add(&shared->qps[peer], fd, 0, 0, &id);

	munmap(mapped, NP_PAGE);
	if (result)
		return true;
	np_window_remove(&shared->qps[peer], id);
	return wrong("a window beside a mapping for writing", number, 0, id);
}

static bool pin(uint32_t number)
{
	struct file *file = &shared->files[number];
	uint32_t peer = any(PEERS), id;
	int fd, result;

	if (atomic_load(&shared->no_windows) || atomic_load(&file->windows[peer]))
		return true;
	fd = open_file(number, O_RDWR);
	if (!is_pinned(file)) {
		write_all(number, fd);
		if (!any(4))
			pin_mapped(number, fd, peer);
	}
	result = np_window_add(&shared->qps[peer], fd, 0, 0, &id);
	close(fd);
	if (result) {
		errno = -result;
		return wrong("window", number, peer, 0);
	}
	atomic_fetch_add(&shared->pins, 1);
	atomic_store(&file->windows[peer], id);
	return true;
}

static bool unpin_of(uint32_t number, uint32_t peer)
{
	struct file *file = &shared->files[number];
	uint32_t id = atomic_load(&file->windows[peer]);
	int result;

	if (!id)
		return true;
	atomic_store(&file->windows[peer], ENDING);
	result = np_window_remove(&shared->qps[peer], id);
	atomic_store(&file->windows[peer], 0);
	errno = -result;
	return !result || wrong("remove a window", number, peer, id);
}

static bool unpin(uint32_t number)
{
	return unpin_of(number, any(PEERS));
}

/* One command of a peer; @words: what was read, or what to write. */
static int transfer(uint32_t peer, uint8_t opcode, uint32_t window, uint32_t block)
{
	const uint32_t blocks = NP_PAGE / NP_BLOCK;
	struct np_command command = np_window_command(opcode, window, block * blocks, blocks,
						      memories[peer].slot, 0);

	return np_qp_run(&shared->qps[peer], &command, NP_TIMEOUT_MS);
}

static bool read_by_peer(uint32_t peer, uint32_t number, uint32_t block)
{
	struct file *file = &shared->files[number];
	uint32_t window = atomic_load(&file->windows[peer]);
	uint32_t low = atomic_load(&file->blocks[block].complete);
	int status;

	if (!window || window == ENDING)
		return false;
	memset(memories[peer].bytes, 0xee, NP_PAGE);
	status = transfer(peer, NVMEPEER_OP_READ, window, block);
	if (!status) {
		check((uint64_t *)memories[peer].bytes, number, block, low);
		atomic_fetch_add(&shared->reads, 1);
	} else if (status != INVALID_NS || atomic_load(&file->windows[peer]) == window) {
		wrong("read by a peer", number, block, (uint64_t)status);
	}
	return true;
}

/* A frozen file system is not ready: the command is repeated. */
static void write_by_peer(uint32_t peer, uint32_t number, uint32_t block)
{
	struct file *file = &shared->files[number];
	uint32_t window, version;
	int status;

	lock(&file->blocks[block].busy);
	window = atomic_load(&file->windows[peer]);
	if (window && window != ENDING) {
		version = begin_version(&file->blocks[block], false);
		describe((uint64_t *)memories[peer].bytes, number, block, version);
		while ((status = transfer(peer, NVMEPEER_OP_WRITE, window, block)) == NOT_READY)
			usleep(100);
		if (!status) {
			atomic_store(&file->blocks[block].complete, version);
			atomic_fetch_add(&shared->writes, 1);
		} else if ((status != INVALID_NS && (status & ~DNR) != ABORTED) ||
			   atomic_load(&file->windows[peer]) == window) {
			/* The window is removed otherwise, and the block has either version. */
			wrong("write by a peer", number, block, (uint64_t)status);
		}
	}
	unlock(&file->blocks[block].busy);
}

static void be_peer(uint32_t peer)
{
	while (!atomic_load(&shared->stop)) {
		uint32_t number = any(FILES), block = any(BLOCKS);

		if (!any(3))
			write_by_peer(peer, number, block);
		else if (!read_by_peer(peer, number, block))
			usleep(100);
	}
}

/* --- the run ---------------------------------------------------------------------- */

static bool read_cached(uint32_t number)
{
	return read_blocks(number, 0);
}

static bool read_direct(uint32_t number)
{
	return read_blocks(number, O_DIRECT);
}

static bool write_cached(uint32_t number)
{
	return write_block(number, 0);
}

static bool write_direct(uint32_t number)
{
	return write_block(number, O_DIRECT);
}

static bool punch(uint32_t number)
{
	return zero_blocks(number, 0);
}

static bool zero_range(uint32_t number)
{
	return zero_blocks(number, 1);
}

static bool cut(uint32_t number)
{
	return zero_blocks(number, 2);
}

static const struct {
	bool (*run)(uint32_t number);
	uint32_t share;
} operations[] = {
	{ read_cached, 20 }, { read_direct, 8 }, { read_mapping, 8 }, { write_cached, 16 },
	{ write_direct, 8 }, { map_block, 8 }, { punch, 4 }, { zero_range, 3 }, { cut, 3 },
	{ rename_twice, 3 }, { unlink_and_create, 2 }, { defragment, 3 }, { reflink, 1 }, { sync_file, 4 },
	{ freeze, 1 }, { remount, 1 }, { pin, 6 }, { unpin, 4 },
};

static void operate(void)
{
	uint32_t number = any(FILES), all = 0, turn, i = 0;
	struct file *file = &shared->files[number];

	for (uint32_t j = 0; j < sizeof(operations) / sizeof(operations[0]); j++)
		all += operations[j].share;
	for (turn = any(all); turn >= operations[i].share; i++)
		turn -= operations[i].share;
	lock(&file->busy);
	operations[i].run(number);
	unlock(&file->busy);
	atomic_fetch_add(&shared->operations, 1);
}

static pid_t start(uint64_t seed, uint32_t peer)
{
	pid_t child = fork();

	if (child)
		return child;
	random_state = seed;
	if (peer < PEERS)
		be_peer(peer);
	while (peer >= PEERS && atomic_fetch_sub(&shared->left, 1) > 0)
		operate();
	_exit(0);
}

static void await(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		wrong("a process has died", 0, 0, 0);
}

static void run(uint64_t seed)
{
	pid_t peers[PEERS], processes[PROCESSES];
	uint32_t i;

	for (i = 0; i < PEERS; i++)
		peers[i] = start(seed * 16 + i, i);
	for (i = 0; i < PROCESSES; i++)
		processes[i] = start(seed * 16 + PEERS + i, PEERS);
	for (i = 0; i < PROCESSES; i++)
		await(processes[i]);
	atomic_store(&shared->stop, true);
	for (i = 0; i < PEERS; i++)
		await(peers[i]);
}

static void verify_file(uint32_t number, int flags)
{
	static _Alignas(4096) uint64_t words[WORDS];
	int fd = open_file(number, O_RDONLY | flags);

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (pread(fd, words, NP_PAGE, i * NP_PAGE) == NP_PAGE)
			check(words, number, i, atomic_load(&shared->files[number].blocks[i].complete));
		else
			wrong("read", number, i, 0);
	close(fd);
}

/* By the page cache, without it, and by the peers that have a window. */
static void verify(void)
{
	for (uint32_t number = 0; number < FILES; number++) {
		verify_file(number, 0);
		verify_file(number, O_DIRECT);
		for (uint32_t peer = 0; peer < PEERS; peer++)
			for (uint32_t i = 0; i < BLOCKS; i++)
				read_by_peer(peer, number, i);
	}
}

static int shell(const char *format, const char *argument)
{
	char line[128];

	snprintf(line, sizeof(line), format, argument);
	return system(line);
}

static bool make_files(void)
{
	mkdir(FOLDER, 0700);
	if (shell("wipefs -aq %s", disk) || shell(file_system->make, disk) ||
	    mount(disk, FOLDER, file_system->name, 0, NULL))
		return false;
	for (uint32_t i = 0; i < FILES; i++) {
		int fd = open_file(i, O_RDWR | O_CREAT);

		if (ftruncate(fd, BYTES))
			return false;
		close(fd);
	}
	return true;
}

/* Does the module have windows on files? */
static bool find_windows(void)
{
	int fd = open_file(0, O_RDWR), result;
	uint32_t id;

	write_all(0, fd);
	result = np_window_add(&shared->qps[0], fd, 0, 0, &id);
	close(fd);
	if (!result)
		np_window_remove(&shared->qps[0], id);
	atomic_store(&shared->no_windows, result == -ENOTBLK || result == -EOPNOTSUPP);
	return !result;
}

static bool open_peers(const struct np_ctrl *ctrl)
{
	np_qp_set_mode(NVME_PEER_MODE_MEDIATED);
	for (uint32_t i = 0; i < PEERS; i++)
		if (np_qp_open(&shared->qps[i], ctrl->fd, ENTRIES) ||
		    np_memory_alloc(&memories[i], ctrl->fd) ||
		    np_buf_add(&shared->qps[i], memories[i].fd, 0, &memories[i].slot))
			return false;
	return true;
}

static void close_peers(void)
{
	for (uint32_t i = 0; i < PEERS; i++) {
		np_qp_close(&shared->qps[i]);
		np_memory_free(&memories[i]);
	}
}

static void check_all(uint64_t seed)
{
	char name[96];

	run(seed);
	verify();
	snprintf(name, sizeof(name), "%s: each block is what was written last (seed %llu)", file_system->name,
		 (unsigned long long)seed);
	ktap_check(!atomic_load(&shared->bad), name);
	printf("# %u operations, %u windows, %u refused on pinned files, %u reads and %u writes of peers, frozen %u times\n",
	       atomic_load(&shared->operations), atomic_load(&shared->pins), atomic_load(&shared->refused),
	       atomic_load(&shared->reads), atomic_load(&shared->writes), atomic_load(&shared->frozen));
	for (uint32_t number = 0; number < FILES; number++)
		for (uint32_t peer = 0; peer < PEERS; peer++)
			unpin_of(number, peer);
	verify();
	ktap_check(!np_unmount(FOLDER), "the file system is not in use");
	ktap_check(!shell(file_system->check, disk), "the file system is consistent");
	ktap_check(!mount(disk, FOLDER, file_system->name, 0, NULL), "mount again");
	verify();
	ktap_check(!atomic_load(&shared->bad), "each block is on the disk");
	umount(FOLDER);
}

static void run_on(const struct file_system *type, int operations, uint64_t seed)
{
	char name[32];

	file_system = type;
	memset(shared->files, 0, sizeof(shared->files));
	atomic_store(&shared->left, operations);
	atomic_store(&shared->stop, false);
	snprintf(name, sizeof(name), "%s on the namespace", type->name);
	if (shell("modprobe -q %s", type->name)) {
		printf("ok %u %s # SKIP not in this kernel\n", ++ktap_count, name);
		return;
	}
	ktap_check(make_files(), name);
	if (find_windows())
		ktap_check(true, "windows on files");
	else if (atomic_load(&shared->no_windows))
		printf("ok %u windows on files # SKIP the module has windows on block devices only\n",
		       ++ktap_count);
	else
		ktap_check(false, "windows on files");
	check_all(seed);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	struct np_ctrl ctrl;
	int operations = 500;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--operations"))
			operations = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
	}
	ktap_start();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	random_state = seed;
	if (shared == MAP_FAILED || np_ctrl_open(&ctrl, "np1")) {
		ktap_check(false, "open the controller");
		return ktap_end();
	}
	snprintf(disk, sizeof(disk), "/dev/nvmep%dn1", ctrl.instance);
	ktap_check(open_peers(&ctrl), "mediated queue pairs");
	run_on(&ext4, operations, seed);
	run_on(&xfs, operations, seed);
	close_peers();
	np_ctrl_close(&ctrl);
	return ktap_end();
}
