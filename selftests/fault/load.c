// SPDX-License-Identifier: GPL-2.0-only
/* Load that verifies its data and survives faults, and the CPU's load: see load.h. */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void load_fail(struct load *load, const char *error, int code)
{
	if (atomic_load(&load->error))
		return;
	load->code = code;
	atomic_store(&load->error, error);
}

bool load_runs(struct load *load)
{
	return !atomic_load(&load->stop) && !atomic_load(&load->error) &&
	       !atomic_load(&load->ended);
}

uint32_t load_below(struct load *load, uint32_t limit)
{
	return (uint32_t)nrand48(load->random) % limit;
}

bool load_choose(struct load *load, uint32_t *block, uint32_t *blocks, bool *write)
{
	*blocks = 1 + load_below(load, LEDGER_MOST);
	*block = load_below(load, LEDGER_BLOCKS - *blocks + 1);
	*write = ledger_known(&load->ledger, *block, *blocks) && load_below(load, 2);
	return ledger_free(&load->ledger, *block, *blocks);
}

/* --- the clock ------------------------------------------------------------------ */

/**
 * struct load_clock - the clock; threads of loads read it
 * @lock: guards @ran and @beat
 * @ran: its time at @beat
 * @beat: when its thread ran last, monotonic, in microseconds
 * @thread: valid while @runs
 * @runs: between load_clock_start() and load_clock_end()
 */
static struct load_clock {
	pthread_mutex_t lock;
	int64_t ran;
	int64_t beat;
	pthread_t thread;
	atomic_bool runs;
} load_clock = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int64_t monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The caller holds the lock. */
static int64_t clock_at(int64_t now)
{
	int64_t since = now - load_clock.beat;

	return load_clock.ran + (since < LOAD_STILL_US ? since : LOAD_STILL_US);
}

static void clock_beat(void)
{
	int64_t now;

	pthread_mutex_lock(&load_clock.lock);
	now = monotonic_us();
	load_clock.ran = clock_at(now);
	load_clock.beat = now;
	pthread_mutex_unlock(&load_clock.lock);
}

static void *run_clock(void *unused)
{
	(void)unused;
	while (atomic_load(&load_clock.runs)) {
		np_sleep_ms(1);
		clock_beat();
	}
	return NULL;
}

int load_clock_start(void)
{
	int ret;

	load_clock.beat = monotonic_us();
	atomic_store(&load_clock.runs, true);
	ret = pthread_create(&load_clock.thread, NULL, run_clock, NULL);
	if (ret)
		atomic_store(&load_clock.runs, false);
	return -ret;
}

void load_clock_end(void)
{
	if (atomic_exchange(&load_clock.runs, false))
		pthread_join(load_clock.thread, NULL);
}

int64_t load_now(void)
{
	int64_t now;

	if (!atomic_load(&load_clock.runs))
		return 0;
	pthread_mutex_lock(&load_clock.lock);
	now = clock_at(monotonic_us());
	pthread_mutex_unlock(&load_clock.lock);
	return now;
}

/* --- the block device --------------------------------------------------------- */

/* An error of a disk that may end is expected. */
static void disk_failed(struct load *load, const char *error, int code)
{
	if (atomic_load(&load->mortal))
		atomic_store(&load->ended, true);
	else
		load_fail(load, error, code);
}

static void judge_by_disk(struct load *load, void *bytes)
{
	int ret = np_disk_read(load->disk, bytes, LOAD_BYTES, load->ledger.disk);

	if (ret)
		disk_failed(load, "the CPU cannot read", ret);
	else if (!ledger_have_read(&load->ledger, 0, LEDGER_BLOCKS, bytes))
		load_fail(load, "wrong data, read by the CPU", -EIO);
}

void load_disk_write(struct load *load, uint32_t block, uint32_t blocks, void *bytes)
{
	int ret;

	ledger_write(&load->ledger, block, blocks, bytes);
	ret = np_disk_write(load->disk, bytes, (size_t)blocks * NP_BLOCK,
			    ledger_place(&load->ledger, block));
	ledger_written(&load->ledger, block, blocks, !ret);
	if (ret)
		disk_failed(load, "the CPU's write failed", ret);
}

void load_disk_read(struct load *load, uint32_t block, uint32_t blocks, void *bytes)
{
	int ret;

	ledger_read(&load->ledger, block, blocks);
	ret = np_disk_read(load->disk, bytes, (size_t)blocks * NP_BLOCK,
			   ledger_place(&load->ledger, block));
	if (!ledger_have_read(&load->ledger, block, blocks, ret ? NULL : bytes))
		load_fail(load, "wrong data, read by the CPU", -EIO);
	if (ret)
		disk_failed(load, "the CPU's read failed", ret);
}

/* --- the thread ------------------------------------------------------------------ */

void load_wait_released(struct load *load)
{
	while (atomic_load(&load->hold))
		np_sleep_ms(1);
}

void load_came_back(struct load *load, int ret, void *bytes)
{
	if (ret && atomic_load(&load->mortal)) {
		atomic_store(&load->ended, true);
	} else if (ret) {
		load_fail(load, "the queue pair cannot be re-armed", ret);
	} else {
		atomic_store(&load->strays, 0);
		atomic_store(&load->give_up, false);
		atomic_fetch_add(&load->losses, 1);
		judge_by_disk(load, bytes);
	}
}

static void *run(void *argument)
{
	struct load *load = argument;
	void *bytes;

	if (posix_memalign(&bytes, NP_PAGE, LOAD_BYTES)) {
		load_fail(load, "no memory", -ENOMEM);
		return NULL;
	}
	judge_by_disk(load, bytes);
	load->method->run(load, bytes);
	if (!atomic_load(&load->error) && !atomic_load(&load->ended))
		judge_by_disk(load, bytes);
	free(bytes);
	return NULL;
}

/* --- from open to close ------------------------------------------------------------ */

void load_init(struct load *load, const struct load_method *method, uint32_t nsid, uint64_t place,
	       uint32_t seed)
{
	*load = (struct load){ .method = method, .nsid = nsid, .disk = -1, .dmabuf = -1 };
	ledger_init(&load->ledger, place, seed);
	load->random[0] = (unsigned short)seed;
	load->random[1] = (unsigned short)(seed >> 16);
	load->random[2] = (unsigned short)(place >> 12);
}

int load_open(struct load *load, const struct np_ctrl *ctrl)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/nvmep%%dn%u", load->nsid);
	load->disk = np_open_node(ctrl, path, O_RDWR | O_DIRECT);
	return load->disk < 0 ? load->disk : load->method->open(load, ctrl);
}

int load_fill(struct load *load)
{
	uint32_t block;
	void *bytes;

	if (posix_memalign(&bytes, NP_PAGE, NP_PAGE))
		return -ENOMEM;
	for (block = 0; block < LEDGER_BLOCKS; block += LEDGER_MOST)
		load_disk_write(load, block, LEDGER_MOST, bytes);
	free(bytes);
	return load->code;
}

bool load_judge(struct load *load)
{
	void *bytes;

	if (posix_memalign(&bytes, NP_PAGE, LOAD_BYTES))
		return false;
	judge_by_disk(load, bytes);
	free(bytes);
	return !atomic_load(&load->error);
}

int load_start(struct load *load)
{
	atomic_store(&load->stop, false);
	atomic_store(&load->ended, false);
	atomic_store(&load->mortal, false);
	load->started = !pthread_create(&load->thread, NULL, run, load);
	return load->started ? 0 : -EAGAIN;
}

void load_end(struct load *load)
{
	atomic_store(&load->stop, true);
	if (load->started)
		pthread_join(load->thread, NULL);
	load->started = false;
}

void load_close(struct load *load)
{
	if (load->own)
		load->method->close(load);
	load->own = NULL;
	if (load->disk >= 0)
		close(load->disk);
	load->disk = -1;
}
