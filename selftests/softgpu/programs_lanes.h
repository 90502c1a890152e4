/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lanes of a warp that do a program together: they begin each round of a loop at the same
 * time, so that their calls of the device library share one trip to the queue, and go
 * over each other's data side by side, as what lies behind a bus is read and written by
 * whole lines only.  On a CPU a lane is alone.
 *
 * A program calls lanes_begin() before a loop and lanes_meet() before each round of it.
 * In a round all lanes that met come to all the calls below, whatever became of them.
 */
#ifndef SOFTGPU_PROGRAMS_LANES_H
#define SOFTGPU_PROGRAMS_LANES_H

/**
 * struct walk - data of a lane
 * @words: of it
 * @count: how many; 0: none of its data is looked at
 * @lba: block of the first word
 * @seed: of its pattern
 * @poison: store what no pattern has, not the pattern
 * @first: word that this lane begins with
 * @step: words between those of this lane
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

/* The lane that is @number-th of those together. */
PROGRAM_FN int lanes_number(const struct lane *lane, uint32_t number)
{
	return (int)nvmepeer_select_bit(lane->together, number);
}

PROGRAM_FN uint64_t lanes_copy(const struct lane *lane, uint64_t value, int from)
{
	return __shfl_sync(lane->together, (unsigned long long)value, from);
}

/* This lane's part of the walk over the data of the @number-th, which is described in @own. */
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

/* What lanes found in the @number-th's data, for that lane; @mine is what it has so far. */
PROGRAM_FN uint64_t lanes_found(const struct lane *lane, uint32_t number, uint32_t found,
				uint64_t mine)
{
	uint32_t sum = __reduce_add_sync(lane->together, found);

	return lanes_number(lane, number) == (int)(threadIdx.x % 32) ? sum : mine;
}

/* What the lanes have stored is stored before what any of them does then. */
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
