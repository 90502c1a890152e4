/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The expected contents of a region of a disk: each write is recorded before it begins
 * and when its result is known, and all data that is read is checked against that.
 *
 * A block contains the number of its write. A block whose last write has no known result
 * has the old or the new data, never a mix; it is read before it is written again.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#define LEDGER_BLOCKS	128U
#define LEDGER_MOST	8U	/* blocks of one command */

/**
 * struct ledger - a region of a disk with one user
 * @disk: its first byte
 * @salt: distinguishes it from other regions
 * @writes: begun so far, the number of the last
 * @done: number of the write that each block has
 * @begun: number of a write to the block that was begun and may have been done, or 0
 * @busy: a command that uses the block is in flight
 * @judged: blocks that were read and checked
 * @either: of them, those that could have been old or new
 * @lost: of them, those with an older write than required
 * @corrupt: of them, those with none of the region's writes, or a mix
 */
struct ledger {
	uint64_t disk;
	uint32_t salt;
	uint32_t writes;
	uint32_t done[LEDGER_BLOCKS];
	uint32_t begun[LEDGER_BLOCKS];
	bool busy[LEDGER_BLOCKS];
	uint64_t judged;
	uint64_t either;
	uint64_t lost;
	uint64_t corrupt;
};

void ledger_init(struct ledger *ledger, uint64_t disk, uint32_t salt);
/* Is none of these blocks in use? */
bool ledger_free(const struct ledger *ledger, uint32_t block, uint32_t blocks);
/* Are the contents of these blocks known? If not, they have to be read next. */
bool ledger_known(const struct ledger *ledger, uint32_t block, uint32_t blocks);
uint64_t ledger_place(const struct ledger *ledger, uint32_t block);
/* Record the begin of a write; fills @bytes with its data. */
void ledger_write(struct ledger *ledger, uint32_t block, uint32_t blocks, void *bytes);
void ledger_read(struct ledger *ledger, uint32_t block, uint32_t blocks);
/* Record its end: @acknowledged, or unknown whether it was done. */
void ledger_written(struct ledger *ledger, uint32_t block, uint32_t blocks, bool acknowledged);
/*
 * Record the end of a read: @bytes were read, NULL if it failed. False if the data is
 * wrong.
 */
bool ledger_have_read(struct ledger *ledger, uint32_t block, uint32_t blocks, const void *bytes);

#endif /* LEDGER_H */
