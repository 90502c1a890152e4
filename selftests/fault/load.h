/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load that verifies itself and outlives faults: threads that read and write a region
 * of a disk each, as a peer through a queue pair of its own or as the CPU through the
 * block device, and enter all of it into a ledger.
 */
#ifndef LOAD_H
#define LOAD_H

#include "ledger.h"
#include "nptest.h"

/* Commands of a peer that are under way at once, and entries of its rings. */
#define LOAD_DEPTH	6U
#define LOAD_ENTRIES	16U

/**
 * struct load_command - a command of a peer's
 * @opcode: NP_CMD_READ or NP_CMD_WRITE
 * @cid: of the entry
 * @used: it is under way
 */
struct load_command {
	uint32_t block;
	uint32_t blocks;
	uint16_t cid;
	uint8_t opcode;
	bool used;
};

/**
 * struct load - a thread and its region
 * @name: in reports
 * @strict: nothing may go wrong: its controller is the healthy one
 * @peer: it has a queue pair, else it is the CPU
 * @disk: the block device
 * @ledger: the thread's while it runs
 * @random: likewise
 * @qp: the queue pair; likewise, but for identifiers and the status page, which stay
 * @request: its request page
 * @buffer: data, a page for each command
 * @commands: by page of @buffer
 * @next_cid: of the next command
 * @stop: set by others: end
 * @give_up: set by others: what is under way does not end; cleared when the kernel was told
 * @strays: set by others: completions of no command that may come, from now on
 * @hold: set by others: lost, it is not to be re-armed yet
 * @done: commands that ended well
 * @losses: of the queue pair, each of which was re-armed
 * @refused: how often NVME_PEER_QP_REARM was tried again
 * @failed: commands that ended with an error status
 * @error: the first thing that must not have happened, in words, or NULL
 * @code: the same, a negative errno, or 0
 */
struct load {
	const char *name;
	bool strict;
	bool peer;
	int disk;
	struct ledger ledger;
	unsigned short random[3];
	struct np_qp qp;
	struct np_export request;
	struct np_buffer buffer;
	struct load_command commands[LOAD_DEPTH];
	uint16_t next_cid;
	pthread_t thread;
	atomic_bool stop;
	atomic_bool give_up;
	atomic_bool hold;
	atomic_uint strays;
	atomic_uint done;
	atomic_uint losses;
	atomic_uint refused;
	atomic_uint failed;
	const char *_Atomic error;
	int code;
};

/*
 * Writes all of the region, so that everything has to be something, and starts.  @load has
 * @name, @strict and @peer.
 */
int load_start(struct load *load, const struct np_ctrl *ctrl, uint64_t disk, uint32_t seed);
/* Ends the thread and reads all of the region once more, as the peer and as the CPU. */
void load_end(struct load *load);
/* Takes its queue pair and files away. */
void load_close(struct load *load, int ctrl_fd);

#endif /* LOAD_H */
