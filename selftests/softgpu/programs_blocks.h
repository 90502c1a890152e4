/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs on blocks: C code over the device library, run by several threads on one queue pair.
 * It is compiled twice: for lanes of the CPU (programs_io.c) and as a CUDA kernel (kernel.cu).
 *
 * The range consists of units of softgpu_io.blocks blocks; unit n belongs to thread n modulo
 * threads, so that no two threads write the same block.
 *
 * The including file defines PROGRAM_FN and a struct lane with @index and @slot, which has
 * @parameters, @queue and @threads, and these functions:
 *
 *	uint64_t now_ns(void);
 *	void lane_check(lane);			leave if the job was aborted
 *	void lane_note(lane, error, where, value);	the first error or mismatch
 *	lane_add(lane, field, by);		add to a field of the job's result
 *	void lane_took(lane, ns);		record the latency of a command
 *	uint64_t lane_reads(lane);		number of read commands so far
 *	bool lane_stopped(lane);		the program should end
 *	uint64_t lane_age_ns(lane);		time since the job began
 *	uint64_t lane_issue(lane);		number of the next command
 *	const struct nvmepeer_queue *lane_queue(lane);	the queue pair, where one thread reads it fastest
 */
#ifndef SOFTGPU_PROGRAMS_BLOCKS_H
#define SOFTGPU_PROGRAMS_BLOCKS_H

#include "programs_lanes.h"

/* Maximum units of one thread that MIXED records. */
#define MIXED_UNITS	1024U

/* Contents of data memory before a read, unlike any pattern word. */
#define POISON		0xa5a5a5a5a5a5a5a5ULL

/* Words that a lane loads before it compares the first. */
#define WORDS_AHEAD	8U

#define MAX_DEPTH	256U

/**
 * struct unit - blocks of one command
 * @lba: first block
 * @blocks: number of blocks
 */
struct unit {
	uint64_t lba;
	uint32_t blocks;
};

PROGRAM_FN const struct softgpu_io *parameters(const struct lane *lane)
{
	return &lane->slot->parameters.io;
}

/* Bytes of data memory that belong to each thread. */
PROGRAM_FN uint64_t share(const struct lane *lane)
{
	uint64_t page = 1ULL << lane->slot->queue.page_shift;

	return parameters(lane)->data.length / lane->slot->threads & ~(page - 1);
}

/* --- Units --------------------------------------------------------------- */

PROGRAM_FN uint64_t unit_count(const struct softgpu_io *io)
{
	return (io->lba_count + io->blocks - 1) / io->blocks;
}

PROGRAM_FN struct unit unit_at(const struct softgpu_io *io, uint64_t number)
{
	uint64_t skip = number * io->blocks, left = io->lba_count - skip;
	struct unit unit = {
		.lba = io->first_lba + skip,
		.blocks = left < io->blocks ? (uint32_t)left : io->blocks,
	};

	return unit;
}

/* Units that belong to the lane. */
PROGRAM_FN uint64_t own_units(const struct lane *lane)
{
	uint64_t count = unit_count(parameters(lane)), threads =
		lane->slot->threads;

	return count / threads + (lane->index < count % threads);
}

PROGRAM_FN struct unit own_unit(const struct lane *lane, uint64_t number)
{
	return unit_at(parameters(lane),
		       number * lane->slot->threads + lane->index);
}

PROGRAM_FN uint64_t unit_bytes(const struct lane *lane, struct unit unit)
{
	return (uint64_t)unit.blocks << lane->slot->queue.lba_shift;
}

/* xorshift64*: selects blocks, the same in every run. */
PROGRAM_FN uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

PROGRAM_FN uint64_t random_start(const struct lane *lane)
{
	return softgpu_pattern(parameters(lane)->seed, lane->index, 1) | 1;
}

/* --- Data ---------------------------------------------------------------- */

/* Offset of the lane's data in the data memory. */
PROGRAM_FN uint64_t data_offset(const struct lane *lane)
{
	return lane->index * share(lane);
}

PROGRAM_FN uint64_t *data_words(const struct lane *lane)
{
	return (uint64_t *)(uintptr_t)(parameters(lane)->data_address +
				       data_offset(lane));
}

PROGRAM_FN struct walk data_walk(const struct lane *lane, struct unit unit, uint64_t seed)
{
	struct walk walk = { 0 };

	walk.words = data_words(lane);
	walk.count = unit_bytes(lane, unit) / sizeof(uint64_t);
	walk.lba = unit.lba;
	walk.seed = seed;
	return walk;
}

/* The expected value of a word. */
PROGRAM_FN uint64_t pattern_at(const struct lane *lane, const struct walk *walk, uint64_t word)
{
	uint32_t shift = lane->slot->queue.lba_shift - 3;

	return softgpu_pattern(walk->seed, walk->lba + (word >> shift),
			       word & ((1ULL << shift) - 1));
}

PROGRAM_FN void walk_store(const struct lane *lane, const struct walk *walk)
{
	uint64_t word;

	for (word = walk->first; word < walk->count; word += walk->step)
		walk->words[word] = walk->poison ? POISON : pattern_at(lane, walk, word);
}

/* Before a command: store the pattern to write, or poison. All lanes of a round call it. */
PROGRAM_FN void data_prepare(struct lane *lane, struct unit unit, uint64_t seed, bool write)
{
	struct walk own = data_walk(lane, unit, seed), walk;
	uint32_t n;

	own.poison = !write;
	for (n = 0; n < lanes_together(lane); n++) {
		walk = lanes_walk(lane, &own, n);
		walk_store(lane, &walk);
	}
	lanes_settle(lane);
}

/* The number of wrong words from @word on; all are loaded before the first comparison. */
PROGRAM_FN uint32_t words_wrong(struct lane *lane, const struct walk *walk, uint64_t word)
{
	uint64_t seen[WORDS_AHEAD], bad = 0, where = 0, at;
	uint32_t wrong = 0, i;

	for (i = 0; i < WORDS_AHEAD; i++) {
		at = word + (uint64_t)i * walk->step;
		seen[i] = at < walk->count ? walk->words[at] : 0;
	}
	for (i = 0; i < WORDS_AHEAD; i++) {
		at = word + (uint64_t)i * walk->step;
		if (at >= walk->count || seen[i] == pattern_at(lane, walk, at))
			continue;
		if (!wrong++) {
			bad = seen[i];
			where = at;
		}
	}
	if (wrong)
		lane_note(lane, 0, walk->lba + (where >> (lane->slot->queue.lba_shift - 3)), bad);
	return wrong;
}

PROGRAM_FN uint32_t walk_wrong(struct lane *lane, const struct walk *walk)
{
	uint32_t wrong = 0;
	uint64_t word;

	for (word = walk->first; word < walk->count; word += (uint64_t)WORDS_AHEAD * walk->step)
		wrong += words_wrong(lane, walk, word);
	return wrong;
}

/* Compare the data of lanes with @looks. All lanes of a round call it. */
PROGRAM_FN enum softgpu_status data_check(struct lane *lane, struct unit unit, uint64_t seed,
					  bool looks)
{
	struct walk own = data_walk(lane, unit, seed), walk;
	uint64_t wrong = 0;
	uint32_t n;

	if (!looks)
		own.count = 0;
	lanes_settle(lane);
	for (n = 0; n < lanes_together(lane); n++) {
		walk = lanes_walk(lane, &own, n);
		wrong = lanes_found(lane, n, walk_wrong(lane, &walk), wrong);
	}
	if (!wrong)
		return SOFTGPU_OK;
	lane_add(lane, mismatches, wrong);
	return SOFTGPU_FAILED;
}

/* --- Commands ------------------------------------------------------------ */

PROGRAM_FN enum softgpu_status command_failed(struct lane *lane, int error,
					      uint64_t lba)
{
	lane_check(lane);
	lane_add(lane, errors, 1);
	lane_note(lane, error, lba, 0);
	return SOFTGPU_FAILED;
}

PROGRAM_FN void count_command(struct lane *lane, bool write, uint64_t bytes)
{
	if (write) {
		lane_add(lane, writes, 1);
		lane_add(lane, bytes_written, bytes);
	} else {
		lane_add(lane, reads, 1);
		lane_add(lane, bytes_read, bytes);
	}
}

/*
 * Transfer a unit between its blocks and the lane's data, and wait. Not inlined into each
 * program: CUDA's compiler (13.0) occasionally crashes with so many copies.
 */
NVP_NOINLINE_FN enum softgpu_status transfer(struct lane *lane, struct unit unit, bool write)
{
	const struct nvmepeer_queue *queue = &lane->slot->queue;
	struct nvmepeer_command command = {
		.opcode = (uint32_t)(write ? NVMEPEER_OP_WRITE : NVMEPEER_OP_READ),
		.blocks = unit.blocks,
		.lba = unit.lba,
		.buffer = &parameters(lane)->data,
		.offset = data_offset(lane),
	};
	uint64_t start = now_ns();
	int error;

	lane_add(lane, commands, 1);
	error = nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
	if (error)
		return command_failed(lane, error, unit.lba);
	lane_took(lane, now_ns() - start);
	count_command(lane, write, unit_bytes(lane, unit));
	return SOFTGPU_OK;
}

/*
 * Write the pattern of a unit, or read and compare it. The poison proves that this command has
 * transferred the data. All lanes of a round call it.
 */
NVP_NOINLINE_FN enum softgpu_status move_pattern(struct lane *lane, struct unit unit,
						 uint64_t seed, bool write)
{
	enum softgpu_status status, right;

	data_prepare(lane, unit, seed, write);
	status = transfer(lane, unit, write);
	right = data_check(lane, unit, seed, !write && status == SOFTGPU_OK);
	return status == SOFTGPU_OK ? right : status;
}

/* --- Programs ------------------------------------------------------------ */

PROGRAM_FN enum softgpu_status run_queue_init(struct lane *lane)
{
	nvmepeer_queue_reset(&lane->slot->queue);
	return SOFTGPU_OK;
}

PROGRAM_FN enum softgpu_status run_queue_rearm(struct lane *lane)
{
	nvmepeer_queue_rearm(&lane->slot->queue, lane->slot->queue.generation);
	return SOFTGPU_OK;
}

PROGRAM_FN enum softgpu_status run_write(struct lane *lane)
{
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n = 0;

	lanes_begin(lane);
	while (lanes_meet(lane, n < own_units(lane) && !lane_stopped(lane) &&
			  status == SOFTGPU_OK))
		status = move_pattern(lane, own_unit(lane, n++), parameters(lane)->seed, true);
	return status;
}

/* Continues after wrong data, to count all of it. */
PROGRAM_FN enum softgpu_status run_verify(struct lane *lane)
{
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n = 0;

	lanes_begin(lane);
	while (lanes_meet(lane, n < own_units(lane) && !lane_stopped(lane)))
		if (move_pattern(lane, own_unit(lane, n++), parameters(lane)->seed, false) !=
		    SOFTGPU_OK)
			status = SOFTGPU_FAILED;
	return status;
}

PROGRAM_FN enum softgpu_status run_copy(struct lane *lane)
{
	const struct softgpu_io *io = parameters(lane);
	enum softgpu_status status = SOFTGPU_OK;
	struct unit unit;
	uint64_t n = 0;

	lanes_begin(lane);
	while (lanes_meet(lane, n < own_units(lane) && !lane_stopped(lane) &&
			  status == SOFTGPU_OK)) {
		unit = own_unit(lane, n++);
		data_prepare(lane, unit, 0, false);
		status = transfer(lane, unit, false);
		unit.lba += io->target_lba - io->first_lba;
		if (status == SOFTGPU_OK)
			status = transfer(lane, unit, true);
	}
	return status;
}

/* Returns whether a random program has reached its limits; otherwise counts a command. */
PROGRAM_FN bool finished(struct lane *lane)
{
	const struct softgpu_io *io = parameters(lane);

	if (lane_stopped(lane) || (io->duration_ns && lane_age_ns(lane) >= io->duration_ns))
		return true;
	return io->commands && lane_issue(lane) >= io->commands;
}

/* The maximum blocks of a command. */
PROGRAM_FN uint32_t most_blocks(const struct softgpu_io *io)
{
	return io->most_blocks ? io->most_blocks : io->blocks;
}

/* Select a random size that fits into the range. */
PROGRAM_FN void resize_unit(const struct softgpu_io *io, struct unit *unit, uint64_t random)
{
	uint64_t left = io->first_lba + io->lba_count - unit->lba;
	uint32_t sizes = 1, blocks;

	while (io->blocks << sizes <= io->most_blocks)
		sizes++;
	blocks = io->blocks << random % sizes;
	unit->blocks = blocks < left ? blocks : (uint32_t)left;
}

PROGRAM_FN struct unit random_unit(const struct lane *lane, uint64_t *random)
{
	const struct softgpu_io *io = parameters(lane);
	struct unit unit = unit_at(io, random_next(random) % unit_count(io));

	if (io->most_blocks)
		resize_unit(io, &unit, random_next(random) >> 32);
	return unit;
}

PROGRAM_FN enum softgpu_status run_random(struct lane *lane)
{
	uint64_t random = random_start(lane);
	enum softgpu_status status = SOFTGPU_OK;

	lanes_begin(lane);
	while (lanes_meet(lane, status == SOFTGPU_OK && !finished(lane)))
		status = move_pattern(lane, random_unit(lane, &random), parameters(lane)->seed,
				      false);
	return status;
}

/* The seed of the @version-th write of a unit. */
PROGRAM_FN uint64_t version_seed(const struct lane *lane, uint8_t version)
{
	return parameters(lane)->seed + version * 0x632be59bd9b4e019u;
}

/* Write all recorded units with version 0. */
PROGRAM_FN enum softgpu_status mixed_write_all(struct lane *lane, uint64_t units)
{
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n = 0;

	lanes_begin(lane);
	while (lanes_meet(lane, n < units && status == SOFTGPU_OK))
		status = move_pattern(lane, own_unit(lane, n++), version_seed(lane, 0), true);
	return status;
}

PROGRAM_FN enum softgpu_status mixed_read_all(struct lane *lane, uint64_t units,
					      const uint8_t *versions)
{
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n;

	lanes_begin(lane);
	for (n = 0; lanes_meet(lane, n < units && status == SOFTGPU_OK); n++)
		status = move_pattern(lane, own_unit(lane, n), version_seed(lane, versions[n]),
				      false);
	return status;
}

/* A random unit, read or written. */
PROGRAM_FN enum softgpu_status mixed_step(struct lane *lane, uint64_t units, uint64_t *random,
					  uint8_t *versions)
{
	uint64_t n = random_next(random) % units;
	bool write = random_next(random) % 100 >= parameters(lane)->read_percent;

	versions[n] = (uint8_t)(versions[n] + (write ? 1 : 0));
	return move_pattern(lane, own_unit(lane, n), version_seed(lane, versions[n]), write);
}

/*
 * Each write of a unit has a different pattern, so that the next read detects a lost write. At the
 * end the range has the pattern of version 0.
 */
PROGRAM_FN enum softgpu_status run_mixed(struct lane *lane)
{
	uint64_t units = own_units(lane), random = random_start(lane);
	uint8_t versions[MIXED_UNITS] = { 0 };
	enum softgpu_status status;

	if (units > MIXED_UNITS)
		units = MIXED_UNITS;
	status = mixed_write_all(lane, units);
	lanes_begin(lane);
	while (lanes_meet(lane, units && status == SOFTGPU_OK && !finished(lane)))
		status = mixed_step(lane, units, &random, versions);
	if (status == SOFTGPU_OK)
		status = mixed_read_all(lane, units, versions);
	return status == SOFTGPU_OK ? mixed_write_all(lane, units) : status;
}

/**
 * struct flight - commands of a lane in flight, oldest first
 * @tokens: a ring of @depth tokens
 * @units: the units that they read
 * @oldest: index in the ring
 * @count: commands in flight
 * @depth: maximum of @count
 */
struct flight {
	struct nvmepeer_token tokens[MAX_DEPTH];
	struct unit units[MAX_DEPTH];
	unsigned int oldest;
	unsigned int count;
	unsigned int depth;
};

PROGRAM_FN enum softgpu_status flight_add(struct lane *lane, struct flight *flight,
					  struct unit unit)
{
	const struct nvmepeer_queue *queue = &lane->slot->queue;
	const struct softgpu_io *io = parameters(lane);
	unsigned int n = (flight->oldest + flight->count) % flight->depth;
	struct nvmepeer_command command = {
		.opcode = NVMEPEER_OP_READ,
		.blocks = unit.blocks,
		.lba = unit.lba,
		.buffer = &io->data,
		.offset = data_offset(lane) +
			  ((uint64_t)n * most_blocks(io) << queue->lba_shift),
	};
	int error;

	lane_add(lane, commands, 1);
	error = nvmepeer_submit(queue, &command, &flight->tokens[n],
				queue->timeout_ns);
	if (error)
		return command_failed(lane, error, unit.lba);
	flight->units[n] = unit;
	flight->count++;
	return SOFTGPU_OK;
}

PROGRAM_FN enum softgpu_status flight_take(struct lane *lane,
					   struct flight *flight)
{
	const struct nvmepeer_queue *queue = &lane->slot->queue;
	unsigned int n = flight->oldest;
	int error = nvmepeer_wait(queue, flight->tokens[n], NULL,
				  queue->timeout_ns);

	flight->oldest = (n + 1) % flight->depth;
	flight->count--;
	if (error)
		return command_failed(lane, error, flight->units[n].lba);
	count_command(lane, false, unit_bytes(lane, flight->units[n]));
	return SOFTGPU_OK;
}

/* Wait for the time of the next command of a paced thread. */
PROGRAM_FN void keep_pace(struct lane *lane, uint64_t *next)
{
	uint32_t pace = parameters(lane)->pace_ns;

	if (!pace)
		return;
	while (now_ns() < *next && !lane_stopped(lane))
		nvp_pause(500);
	*next = now_ns() + pace;
}

PROGRAM_FN enum softgpu_status run_rate(struct lane *lane)
{
	uint64_t random = random_start(lane), next = 0;
	enum softgpu_status status = SOFTGPU_OK;
	struct flight flight = { .depth = parameters(lane)->depth };

	lanes_begin(lane);
	while (lanes_meet(lane, status == SOFTGPU_OK && !finished(lane))) {
		struct unit unit = random_unit(lane, &random);

		keep_pace(lane, &next);
		if (!flight.depth) {
			status = transfer(lane, unit, false);
			continue;
		}
		if (flight.count == flight.depth)
			status = flight_take(lane, &flight);
		if (status == SOFTGPU_OK)
			status = flight_add(lane, &flight, unit);
	}
	/* Also after an error, as no command may be in flight when the job ends. */
	lanes_begin(lane);
	while (lanes_meet(lane, flight.count))
		if (flight_take(lane, &flight) != SOFTGPU_OK)
			status = SOFTGPU_FAILED;
	return status;
}

/* Read each page of the unit to its page in data memory. */
PROGRAM_FN enum softgpu_status gather(struct lane *lane, struct unit unit)
{
	const struct nvmepeer_queue *queue = &lane->slot->queue;
	const struct softgpu_io *io = parameters(lane);
	uint32_t shift = io->page_shift - queue->lba_shift;
	const struct nvmepeer_page_list parts = {
		.buffer = &io->data,
		.numbers = (const uint32_t *)(uintptr_t)io->page_table +
			   ((unit.lba - io->first_lba) >> shift),
		.count = unit.blocks >> shift,
		.page_shift = io->page_shift,
	};
	uint64_t table[SOFTGPU_GATHER_PAGES];
	struct nvmepeer_buffer places;
	struct nvmepeer_command command = {
		.opcode = NVMEPEER_OP_READ,
		.blocks = unit.blocks,
		.lba = unit.lba,
		.buffer = &places,
	};
	int error = nvmepeer_scatter(queue, &parts, table, &places);

	lane_add(lane, commands, 1);
	if (!error)
		error = nvmepeer_execute(queue, &command, NULL, queue->timeout_ns);
	if (error)
		return command_failed(lane, error, unit.lba);
	count_command(lane, false, unit_bytes(lane, unit));
	return SOFTGPU_OK;
}

PROGRAM_FN enum softgpu_status run_gather(struct lane *lane)
{
	const struct softgpu_io *io = parameters(lane);
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n = 0;

	if (io->page_shift < lane->slot->queue.page_shift || io->page_shift > 31 ||
	    (uint64_t)io->blocks << lane->slot->queue.lba_shift >>
	    lane->slot->queue.page_shift > SOFTGPU_GATHER_PAGES)
		return SOFTGPU_INVALID;
	lanes_begin(lane);
	while (lanes_meet(lane, n < own_units(lane) && !lane_stopped(lane) &&
			  status == SOFTGPU_OK))
		status = gather(lane, own_unit(lane, n++));
	return status;
}

/* The words of one page; returns how many were wrong. */
PROGRAM_FN uint32_t gathered_page(struct lane *lane, uint64_t page)
{
	const struct softgpu_io *io = parameters(lane);
	const uint32_t *table = (const uint32_t *)(uintptr_t)io->page_table;
	uint64_t place = io->data_address + ((uint64_t)table[page] << io->page_shift);
	struct walk walk = { 0 };
	uint32_t wrong;

	walk.words = (uint64_t *)(uintptr_t)place;
	walk.count = 1ULL << (io->page_shift - 3);
	walk.lba = io->first_lba + (page << (io->page_shift - lane->slot->queue.lba_shift));
	walk.seed = io->seed;
	walk.step = 1;
	wrong = walk_wrong(lane, &walk);
	walk.poison = true;
	walk_store(lane, &walk);
	return wrong;
}

PROGRAM_FN enum softgpu_status run_gathered(struct lane *lane)
{
	const struct softgpu_io *io = parameters(lane);
	uint64_t pages = io->lba_count << lane->slot->queue.lba_shift >> io->page_shift, page;
	uint64_t wrong = 0;

	for (page = lane->index; page < pages; page += lane->slot->threads)
		wrong += gathered_page(lane, page);
	lane_add(lane, mismatches, wrong);
	return wrong ? SOFTGPU_FAILED : SOFTGPU_OK;
}

PROGRAM_FN enum softgpu_status run_flush(struct lane *lane)
{
	int error = nvmepeer_flush(&lane->slot->queue);

	return error ? command_failed(lane, error, 0) : SOFTGPU_OK;
}

#endif /* SOFTGPU_PROGRAMS_BLOCKS_H */
