/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lanes of a warp run a program together: they begin each round of a loop at the same time, so
 * that their calls of the device library share one access to the queue. They also process each
 * other's data together, as memory behind a bus is accessed in whole lines. On a CPU a lane is
 * alone.
 *
 * A program calls lanes_begin() before a loop and lanes_meet() before each round. In a round all
 * lanes that met must execute all calls below, even after a failure.
 */
#ifndef SOFTGPU_PROGRAMS_LANES_H
#define SOFTGPU_PROGRAMS_LANES_H

/**
 * struct walk - data of a lane
 * @words: the data
 * @count: number of words; 0: the data is not processed
 * @lba: block of the first word
 * @seed: seed of the pattern
 * @poison: store poison instead of the pattern
 * @first: first word for this lane
 * @step: distance of the words for this lane
 */
struct walk {
	uint64_t *words;
	uint64_t count;
	uint64_t lba;
	uint64_t seed;
	uint32_t poison;
	uint32_t first;
	uint32_t step;
};

#ifdef __CUDACC__
PROGRAM_FN void lanes_begin(struct lane *lane)
{
	__syncwarp(lane->all);
	lane->together = lane->all;
}

PROGRAM_FN bool lanes_meet(struct lane *lane, bool goes_on)
{
	lane->together = __ballot_sync(lane->together, goes_on);
	return goes_on;
}

PROGRAM_FN uint32_t lanes_together(const struct lane *lane)
{
	return __popc(lane->together);
}

/* The @number-th lane of the round. */
PROGRAM_FN int lanes_number(const struct lane *lane, uint32_t number)
{
	return (int)nvp_select_bit(lane->together, number);
}

PROGRAM_FN uint64_t lanes_copy(const struct lane *lane, uint64_t value, int from)
{
	return __shfl_sync(lane->together, (unsigned long long)value, from);
}

/* This lane's part of the data of the @number-th lane, which is described in its @own. */
PROGRAM_FN struct walk lanes_walk(const struct lane *lane, const struct walk *own, uint32_t number)
{
	int from = lanes_number(lane, number);
	struct walk walk;

	walk.words = (uint64_t *)(uintptr_t)lanes_copy(lane, (uintptr_t)own->words, from);
	walk.count = lanes_copy(lane, own->count, from);
	walk.lba = lanes_copy(lane, own->lba, from);
	walk.seed = lanes_copy(lane, own->seed, from);
	walk.poison = (uint32_t)lanes_copy(lane, own->poison, from);
	walk.first = __popc(lane->together & ((1U << (threadIdx.x % 32)) - 1));
	walk.step = lanes_together(lane);
	return walk;
}

/* Add what all lanes found in the data of the @number-th lane to its @mine. */
PROGRAM_FN uint64_t lanes_found(const struct lane *lane, uint32_t number, uint32_t found,
				uint64_t mine)
{
	uint32_t sum = __reduce_add_sync(lane->together, found);

	return lanes_number(lane, number) == (int)(threadIdx.x % 32) ? sum : mine;
}

/* Order stores of all lanes before later accesses of any of them. */
PROGRAM_FN void lanes_settle(const struct lane *lane)
{
	__syncwarp(lane->together);
}
#else
PROGRAM_FN void lanes_begin(struct lane *lane)
{
	(void)lane;
}

PROGRAM_FN bool lanes_meet(struct lane *lane, bool goes_on)
{
	(void)lane;
	return goes_on;
}

PROGRAM_FN uint32_t lanes_together(const struct lane *lane)
{
	(void)lane;
	return 1;
}

PROGRAM_FN struct walk lanes_walk(const struct lane *lane, const struct walk *own, uint32_t number)
{
	struct walk walk = *own;

	(void)lane;
	walk.first = number;
	walk.step = 1;
	return walk;
}

PROGRAM_FN uint64_t lanes_found(const struct lane *lane, uint32_t number, uint32_t found,
				uint64_t mine)
{
	(void)lane;
	(void)number;
	(void)mine;
	return found;
}

PROGRAM_FN void lanes_settle(const struct lane *lane)
{
	(void)lane;
}
#endif

#endif /* SOFTGPU_PROGRAMS_LANES_H */
