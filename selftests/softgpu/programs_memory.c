// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs on memory: store, load, fill, check, copy and poll any GPU address.
 */
#include "lane.h"
#include "memory.h"
#include "programs_memory.h"

/* Bytes of a single access of FILL, CHECK and MEMCPY. */
#define PIECE	4096U

static const struct softgpu_memory *parameters(const struct lane *lane)
{
	return &lane->slot->parameters.memory;
}

static unsigned int dma_flags(const struct softgpu_memory *memory)
{
	return memory->flags & SOFTGPU_MEMORY_MESSAGE ? VFU_DMA_MESSAGE : 0;
}

static enum softgpu_status prepare_word(struct slot *slot)
{
	const struct softgpu_memory *memory = &slot->parameters.memory;
	uint32_t width = memory->width;

	if (slot->threads != 1 ||
	    (width != 1 && width != 2 && width != 4 && width != 8) ||
	    memory->address % width ||
	    ((memory->flags & SOFTGPU_MEMORY_POSTED) && width != 4))
		return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

static enum softgpu_status prepare_range(struct slot *slot)
{
	const struct softgpu_memory *memory = &slot->parameters.memory;

	if (memory->length % 8 || memory->address % 8 ||
	    memory->address + memory->length < memory->address ||
	    memory->source + memory->length < memory->source)
		return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

static void store(struct lane *lane)
{
	const struct softgpu_memory *memory = parameters(lane);

	if (memory->flags & SOFTGPU_MEMORY_POSTED)
		lane_post(lane, memory->address, (uint32_t)memory->value);
	else
		lane_write(lane, memory->address, &memory->value,
			   memory->width, dma_flags(memory));
	lane_add(lane, bytes_written, memory->width);
}

static uint64_t load(struct lane *lane)
{
	const struct softgpu_memory *memory = parameters(lane);
	uint64_t value = 0;

	lane_read(lane, memory->address, &value, memory->width,
		  dma_flags(memory));
	lane_add(lane, bytes_read, memory->width);
	__atomic_store_n(&lane->slot->job->result.value, value,
			 __ATOMIC_RELAXED);
	return value;
}

static enum softgpu_status run_store(struct lane *lane)
{
	store(lane);
	return SOFTGPU_OK;
}

static enum softgpu_status run_load(struct lane *lane)
{
	load(lane);
	return SOFTGPU_OK;
}

static bool over(const struct lane *lane)
{
	uint64_t limit = parameters(lane)->duration_ns;

	return atomic_load(&lane->slot->stop) ||
	       (limit && now_ns() - lane->slot->start_ns >= limit);
}

static enum softgpu_status run_poll(struct lane *lane)
{
	const struct softgpu_memory *memory = parameters(lane);
	struct backoff backoff = { 0 };

	while ((load(lane) & memory->mask) != memory->value) {
		if (over(lane))
			return SOFTGPU_FAILED;
		backoff_wait(&backoff);
	}
	return SOFTGPU_OK;
}

static enum softgpu_status run_hammer(struct lane *lane)
{
	while (!over(lane))
		store(lane);
	return SOFTGPU_OK;
}

/*
 * Iterate over the pieces of a range that belong to a lane, every threads-th one. Advances *@offset
 * to the next piece and returns its length, 0 after the last one.
 */
static uint64_t next_piece(const struct lane *lane, uint64_t *offset,
			   bool first)
{
	uint64_t length = parameters(lane)->length;

	*offset = first ? (uint64_t)lane->index * PIECE :
			  *offset + (uint64_t)lane->slot->threads * PIECE;
	if (*offset >= length)
		return 0;
	return length - *offset < PIECE ? length - *offset : PIECE;
}

static enum softgpu_status run_fill(struct lane *lane)
{
	const struct softgpu_memory *memory = parameters(lane);
	uint64_t words[PIECE / 8], offset = 0, length, i;

	for (length = next_piece(lane, &offset, true); length;
	     length = next_piece(lane, &offset, false)) {
		for (i = 0; i < length / 8; i++)
			words[i] = softgpu_pattern(memory->seed, 0,
						   offset / 8 + i);
		lane_write(lane, memory->address + offset, words, length,
			   dma_flags(memory));
		lane_add(lane, bytes_written, length);
	}
	return SOFTGPU_OK;
}

/* Compare a piece; returns the number of wrong words. */
static uint64_t check_piece(struct lane *lane, const uint64_t *words,
			    uint64_t offset, uint64_t length)
{
	const struct softgpu_memory *memory = parameters(lane);
	uint64_t i, wrong = 0;

	for (i = 0; i < length / 8; i++) {
		if (words[i] == softgpu_pattern(memory->seed, 0,
						offset / 8 + i))
			continue;
		wrong++;
		lane_note(lane, 0, memory->address + offset + 8 * i, words[i]);
	}
	lane_add(lane, mismatches, wrong);
	return wrong;
}

static enum softgpu_status run_check(struct lane *lane)
{
	const struct softgpu_memory *memory = parameters(lane);
	uint64_t words[PIECE / 8], offset = 0, length, wrong = 0;

	for (length = next_piece(lane, &offset, true); length;
	     length = next_piece(lane, &offset, false)) {
		lane_read(lane, memory->address + offset, words, length,
			  dma_flags(memory));
		lane_add(lane, bytes_read, length);
		wrong += check_piece(lane, words, offset, length);
	}
	return wrong ? SOFTGPU_FAILED : SOFTGPU_OK;
}

static enum softgpu_status run_memcpy(struct lane *lane)
{
	const struct softgpu_memory *memory = parameters(lane);
	uint64_t words[PIECE / 8], offset = 0, length;

	for (length = next_piece(lane, &offset, true); length;
	     length = next_piece(lane, &offset, false)) {
		lane_read(lane, memory->source + offset, words, length,
			  dma_flags(memory));
		lane_write(lane, memory->address + offset, words, length,
			   dma_flags(memory));
		lane_add(lane, bytes_read, length);
		lane_add(lane, bytes_written, length);
	}
	return SOFTGPU_OK;
}

static enum softgpu_status run_nop(struct lane *lane)
{
	(void)lane;
	return SOFTGPU_OK;
}

static const struct program programs[] = {
	[SOFTGPU_NOP] = { NULL, run_nop },
	[SOFTGPU_STORE] = { prepare_word, run_store },
	[SOFTGPU_LOAD] = { prepare_word, run_load },
	[SOFTGPU_FILL] = { prepare_range, run_fill },
	[SOFTGPU_CHECK] = { prepare_range, run_check },
	[SOFTGPU_MEMCPY] = { prepare_range, run_memcpy },
	[SOFTGPU_POLL] = { prepare_word, run_poll },
	[SOFTGPU_HAMMER] = { prepare_word, run_hammer },
};

const struct program *memory_program(uint32_t number)
{
	if (number >= sizeof(programs) / sizeof(programs[0]) ||
	    !programs[number].run)
		return NULL;
	return &programs[number];
}
