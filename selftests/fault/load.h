/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load that verifies its data and survives faults: threads that read and write a region
 * of a disk each, by one of several methods, and record all of it in a ledger.
 *
 * The ledger is kept when the rest is closed: the contents of the disk must be the same
 * when it is opened again.
 */
#ifndef LOAD_H
#define LOAD_H

#include "ledger.h"
#include "nptest.h"

#define LOAD_BYTES	(LEDGER_BLOCKS * NP_BLOCK)
/* Commands of a peer in flight, and entries of its rings. */
#define LOAD_DEPTH	6U
#define LOAD_ENTRIES	16U

/**
 * struct load - a thread and its region
 * @method: how it reads and writes; constant
 * @nsid: the namespace; constant
 * @ledger: the thread's while it runs
 * @random: the thread's while it runs
 * @disk: the block device, -1 while it is not open
 * @own: what @method opened, NULL if nothing
 * @qid: the queue pair of a peer
 * @dmabuf: its data, -1 if it cannot be invalidated
 * @thread: valid while @started
 * @started: between load_start() and load_end()
 * @stop: set by others: end
 * @give_up: set by others: a command hangs; cleared when recovery was requested
 * @strays: set by others: completions with an unknown CID may arrive from now on
 * @hold: set by others: do not re-arm a lost queue pair yet
 * @mortal: set by others: its queue pair or disk may end
 * @ended: and did; the thread has ended too
 * @done: commands that succeeded
 * @losses: of the queue pair, each of which was re-armed
 * @noticed: when the last one was seen, by load_now()
 * @error: the first error, in words, or NULL
 * @code: the same, a negative errno, or 0
 */
struct load {
	const struct load_method *method;
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
 * struct load_method - how a load reads and writes
 * @name: in reports
 * @peer: by a queue pair of its own
 * @open: opens what it needs besides the block device; whatever it returns, @close is
 *	called if there is something to close
 * @run: runs until load_runs() is false, then waits for commands in flight
 * @close: closes what @open opened
 */
struct load_method {
	const char *name;
	bool peer;
	int (*open)(struct load *load, const struct np_ctrl *ctrl);
	void (*run)(struct load *load, void *bytes);
	void (*close)(struct load *load);
};

extern const struct load_method load_by_disk;	/* the CPU, through the block device */
extern const struct load_method load_by_store;	/* a store, of which the disk is one member */
extern const struct load_method load_by_rings;	/* a peer that accesses the rings itself */
extern const struct load_method load_by_library;	/* a peer that uses the user library */

/* Values that the store has verified, and how often it has lost its member on the disk. */
void load_store_counts(unsigned int *verified, unsigned int *losses);

/* Nothing is open yet. @place: the first byte of its region, which has no other user. */
void load_init(struct load *load, const struct load_method *method, uint32_t nsid, uint64_t place,
	       uint32_t seed);
/* Opens its files and, for a peer, its queue pair. */
int load_open(struct load *load, const struct np_ctrl *ctrl);
/* Writes the whole region, so that all contents are known. */
int load_fill(struct load *load);
/* Reads the whole region by the block device: false if the data is wrong. */
bool load_judge(struct load *load);
/* Starts the thread, which first reads the whole region. */
int load_start(struct load *load);
/* Ends the thread; unless it has ended by itself, it reads the region once more. */
void load_end(struct load *load);
/* Closes its queue pair and files. */
void load_close(struct load *load);

/*
 * Time in microseconds, of a clock that stops when its own thread gets no processor for longer than
 * LOAD_STILL_US: a guest on a busy machine stands still at times, and no driver is fast then.
 */
#define LOAD_STILL_US	10000
int load_clock_start(void);
void load_clock_end(void);
/* 0 while the clock is not started. */
int64_t load_now(void);

/* For methods, in the load's thread. Only the first error is kept, and ends the load. */
void load_fail(struct load *load, const char *error, int code);
bool load_runs(struct load *load);
uint32_t load_below(struct load *load, uint32_t limit);
/*
 * Choose blocks that are not in use, and whether to write them; false: none were found.
 */
bool load_choose(struct load *load, uint32_t *block, uint32_t *blocks, bool *write);
/* One command by the block device. */
void load_disk_write(struct load *load, uint32_t block, uint32_t blocks, void *bytes);
void load_disk_read(struct load *load, uint32_t block, uint32_t blocks, void *bytes);
/* The queue pair is lost: wait until it may be re-armed. */
void load_wait_released(struct load *load);
/* The result of the re-arm: verify the disk's contents, or end the load. */
void load_came_back(struct load *load, int ret, void *bytes);

#endif /* LOAD_H */
