/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What has to be on a region of a disk: each write is entered before it is begun and
 * when its end is known, and whatever is read is judged by that.
 *
 * A block that was written says by which write.  One whose last write did not end is
 * the old or the new one, whole; it is not written again before it was read.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#define LEDGER_BLOCKS	128U
#define LEDGER_MOST	8U	/* blocks of one command */

/**
 * struct ledger - a region of a disk, its owner's alone
 * @disk: its first byte
 * @salt: tells it from other regions
 * @writes: begun so far, the number of the last
 * @done: number of the write that each block has
 * @begun: number of a write to the block that was begun and may have been done, or 0
 * @busy: a command that uses the block is under way
 * @judged: blocks that were read and judged
 * @either: of them, those that could have been old or new
 * @lost: of them, those that had an older write than they must have
 * @corrupt: of them, those that had none of the region's writes, or a mix
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
/* Is it known what they have? If not they are to be read next. */
bool ledger_known(const struct ledger *ledger, uint32_t block, uint32_t blocks);
uint64_t ledger_place(const struct ledger *ledger, uint32_t block);
/* A write begins: @bytes is filled with what is to be written. */
void ledger_write(struct ledger *ledger, uint32_t block, uint32_t blocks, void *bytes);
void ledger_read(struct ledger *ledger, uint32_t block, uint32_t blocks);
/* It ended: @acknowledged, or it may have been done or not. */
void ledger_written(struct ledger *ledger, uint32_t block, uint32_t blocks, bool acknowledged);
/* It ended: @bytes were read, or NULL if it failed.  False: they are not what they must be. */
bool ledger_have_read(struct ledger *ledger, uint32_t block, uint32_t blocks, const void *bytes);

#endif /* LEDGER_H */
