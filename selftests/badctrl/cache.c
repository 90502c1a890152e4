// SPDX-License-Identifier: GPL-2.0-only
/* badctrl's volatile write cache: see cache.h. */
#include <string.h>

#include "cache.h"

struct span {
	size_t first;
	size_t end;
};

static struct span blocks_of(const struct bad *ctrl, const uint8_t *at, size_t length)
{
	size_t start = (size_t)(at - ctrl->disk);

	return (struct span){ start / BAD_BLOCK, (start + length + BAD_BLOCK - 1) / BAD_BLOCK };
}

void bad_cache_keep(struct bad *ctrl, const uint8_t *at, size_t length)
{
	struct span blocks = blocks_of(ctrl, at, length);
	size_t block;

	for (block = blocks.first; block < blocks.end; block++) {
		if (ctrl->dirty[block])
			continue;
		memcpy(ctrl->saved + block * BAD_BLOCK, ctrl->disk + block * BAD_BLOCK, BAD_BLOCK);
		ctrl->dirty[block] = true;
	}
}

void bad_cache_flush(struct bad *ctrl, const uint8_t *at, size_t length)
{
	struct span blocks = blocks_of(ctrl, at, length);

	memset(ctrl->dirty + blocks.first, 0, blocks.end - blocks.first);
}

static void restore(struct bad *ctrl, struct span blocks)
{
	size_t block;

	for (block = blocks.first; block < blocks.end; block++) {
		if (!ctrl->dirty[block])
			continue;
		memcpy(ctrl->disk + block * BAD_BLOCK, ctrl->saved + block * BAD_BLOCK, BAD_BLOCK);
		ctrl->dirty[block] = false;
	}
}

void bad_cache_lose(struct bad *ctrl)
{
	restore(ctrl, (struct span){ 0, bad_disk_bytes(ctrl) / BAD_BLOCK });
}

/* A linear congruential generator, of whose state the high bits are used. */
uint32_t bad_cache_random(struct bad *ctrl, uint32_t range)
{
	_Atomic uint32_t *state = &ctrl->power_words[BADCTRL_POWER_RANDOM / 4];
	uint32_t next = atomic_load(state) * 1664525U + 1013904223U;

	atomic_store(state, next);
	return (next >> 8) % range;
}

void bad_cache_lose_some(struct bad *ctrl, const uint8_t *at, size_t length, size_t block_bytes)
{
	struct span blocks = blocks_of(ctrl, at, length), block;
	uint32_t luck = bad_cache_random(ctrl, 3);
	size_t each = block_bytes / BAD_BLOCK;

	for (block.first = blocks.first; block.first < blocks.end; block.first = block.end) {
		block.end = block.first + each;
		if (memchr(ctrl->dirty + block.first, 1, each) &&
		    (luck == 2 || (luck == 1 && bad_cache_random(ctrl, 2))))
			restore(ctrl, block);
	}
	bad_cache_flush(ctrl, at, length);
}
