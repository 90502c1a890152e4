/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load that verifies itself and outlives faults: threads that read and write a region
 * of a disk each, in one of several ways, and enter all of it into a ledger.
 *
 * The ledger stays when the rest is closed: what was on the disk has to be there when
 * it is opened again.
 */
#ifndef LOAD_H
#define LOAD_H

#include "ledger.h"
#include "nptest.h"

#define LOAD_BYTES	(LEDGER_BLOCKS * NP_BLOCK)
/* Commands of a peer that are under way at once, and entries of its rings. */
#define LOAD_DEPTH	6U
#define LOAD_ENTRIES	16U

/**
 * struct load - a thread and its region
 * @way: how it reads and writes; constant
 * @nsid: the namespace; constant
 * @ledger: the thread's while it runs
 * @random: likewise
 * @disk: the block device, -1 while it is not open
 * @own: what @way opened, NULL while it has nothing
 * @qid: the queue pair of a peer
 * @dmabuf: its data, -1 if others cannot take that back
 * @thread: valid while @started
 * @started: between load_start() and load_end()
 * @stop: set by others: end
 * @give_up: set by others: what is under way does not end; cleared when the kernel was told
 * @strays: set by others: completions of no command that may come, from now on
 * @hold: set by others: lost, it is not to be re-armed yet
 * @mortal: set by others: its queue pair or disk may end
 * @ended: and did; the thread has ended too
 * @done: commands that ended well
 * @losses: of the queue pair, each of which was re-armed
 * @noticed: when the last one was seen, in microseconds
 * @error: the first thing that must not have happened, in words, or NULL
 * @code: the same, a negative errno, or 0
 */
struct load {
	const struct load_way *way;
	uint32_t nsid;
	struct ledger ledger;
	unsigned short random[3];
	int disk;
	void *own;
	uint32_t qid;
	int dmabuf;
	pthread_t thread;
	bool started;
	atomic_bool stop;
	atomic_bool give_up;
	atomic_bool hold;
	atomic_bool mortal;
	atomic_bool ended;
	atomic_uint strays;
	atomic_uint done;
	atomic_uint losses;
	_Atomic int64_t noticed;
	const char *_Atomic error;
	int code;
};

/**
 * struct load_way - how a load reads and writes
 * @name: in reports
 * @peer: by a queue pair of its own
 * @open: what it needs besides the block device; whatever it returns, @close is called if
 *	there is something to take away
 * @run: until load_runs() says no; what is then under way is waited for
 * @close: takes away what @open left
 */
struct load_way {
	const char *name;
	bool peer;
	int (*open)(struct load *load, const struct np_ctrl *ctrl);
	void (*run)(struct load *load, void *bytes);
	void (*close)(struct load *load);
};

extern const struct load_way load_by_disk;	/* the CPU, through the block device */
extern const struct load_way load_by_rings;	/* a peer that writes the rings itself */
extern const struct load_way load_by_library;	/* a peer that calls the user library */

/* Nothing is open yet. @place: the first byte of its region, which nobody else uses. */
void load_init(struct load *load, const struct load_way *way, uint32_t nsid, uint64_t place,
	       uint32_t seed);
/* Its files and, for a peer, its queue pair. */
int load_open(struct load *load, const struct np_ctrl *ctrl);
/* Writes all of the region, so that everything has to be something. */
int load_fill(struct load *load);
/* Reads all of the region by the block device: false if it is not what it must be. */
bool load_judge(struct load *load);
/* The thread, which reads all of the region first. */
int load_start(struct load *load);
/* Ends the thread; one that has not ended yet reads all once more. */
void load_end(struct load *load);
/* Takes its queue pair and files away. */
void load_close(struct load *load);
/* Monotonic time, in microseconds. */
int64_t load_now(void);

/* For the ways, in the load's thread. The first failure is remembered, and ends it. */
void load_fail(struct load *load, const char *error, int code);
bool load_runs(struct load *load);
uint32_t load_below(struct load *load, uint32_t limit);
/* Blocks nobody uses, and whether to write them; false: none were found. */
bool load_choose(struct load *load, uint32_t *block, uint32_t *blocks, bool *write);
/* One command by the block device. */
void load_disk_write(struct load *load, uint32_t block, uint32_t blocks, void *bytes);
void load_disk_read(struct load *load, uint32_t block, uint32_t blocks, void *bytes);
/* The queue pair is lost: may it be re-armed now? Not before that is said. */
void load_wait_released(struct load *load);
/* What came of that: it is back, and the disk has what it must; or that is the end of it. */
void load_came_back(struct load *load, int ret, void *bytes);

#endif /* LOAD_H */
