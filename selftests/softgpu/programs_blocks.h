/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs on blocks: ordinary C over the device library, run by several threads on one
 * queue pair.  Compiled twice: for lanes of the CPU (programs_io.c) and as a kernel of
 * CUDA (kernel.cu).
 *
 * The range is cut into units of softgpu_io.blocks blocks; unit n belongs to
 * thread n modulo threads, so that no two threads write the same block.
 *
 * Who includes this has said what PROGRAM_FN is, and a struct lane with @index and @slot,
 * in which lie @parameters, @queue and @threads.  It answers for
 *
 *	uint64_t now_ns(void);
 *	void lane_check(lane);			leave if the job was aborted
 *	void lane_note(lane, error, where, value);	the first error or mismatch
 *	lane_add(lane, field, by);		count into the job's result
 *	void lane_took(lane, ns);		how long a command took
 *	uint64_t lane_reads(lane);		commands that read, so far
 *	bool lane_stopped(lane);		the program should come to its end
 *	uint64_t lane_age_ns(lane);		since the job began
 *	uint64_t lane_issue(lane);		number of the command that is begun now
 */
#ifndef SOFTGPU_PROGRAMS_BLOCKS_H
#define SOFTGPU_PROGRAMS_BLOCKS_H

/* Units of one thread whose contents MIXED keeps track of. */
#define MIXED_UNITS	1024U

/* What data memory holds before a read; no pattern word looks like it. */
#define POISON		0xa5

#define MAX_DEPTH	256U

/**
 * struct unit - a piece of the range
 * @lba: first block
 * @blocks: of it
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

/* xorshift64*: good enough to pick blocks, and the same in every run. */
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

/* Where the lane's data begins in the data memory. */
PROGRAM_FN uint64_t data_offset(const struct lane *lane)
{
	return lane->index * share(lane);
}

PROGRAM_FN uint64_t *data_words(const struct lane *lane)
{
	return (uint64_t *)(uintptr_t)(parameters(lane)->data_address +
				       data_offset(lane));
}

PROGRAM_FN void data_fill(struct lane *lane, struct unit unit, uint64_t seed)
{
	uint64_t words = 1ULL << (lane->slot->queue.lba_shift - 3), i, k;
	uint64_t *data = data_words(lane);

	for (i = 0; i < unit.blocks; i++)
		for (k = 0; k < words; k++)
			*data++ = softgpu_pattern(seed, unit.lba + i, k);
}

PROGRAM_FN enum softgpu_status data_check(struct lane *lane, struct unit unit,
					  uint64_t seed)
{
	uint64_t words = 1ULL << (lane->slot->queue.lba_shift - 3), i, k;
	const uint64_t *data = data_words(lane);
	uint64_t wrong = 0;

	for (i = 0; i < unit.blocks; i++) {
		for (k = 0; k < words; k++, data++) {
			if (*data == softgpu_pattern(seed, unit.lba + i, k))
				continue;
			wrong++;
			lane_note(lane, 0, unit.lba + i, *data);
		}
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

/* Move a unit between its blocks and the lane's data, and wait. */
PROGRAM_FN enum softgpu_status transfer(struct lane *lane, struct unit unit,
					bool write)
{
	const struct nvmepeer_queue *queue = &lane->slot->queue;
	const struct softgpu_io *io = parameters(lane);
	uint64_t start = now_ns();
	int error;

	lane_add(lane, commands, 1);
	if (write)
		error = nvmepeer_write(queue, &io->data, data_offset(lane),
				       unit.lba, unit.blocks);
	else
		error = nvmepeer_read(queue, &io->data, data_offset(lane),
				      unit.lba, unit.blocks);
	if (error)
		return command_failed(lane, error, unit.lba);
	lane_took(lane, now_ns() - start);
	count_command(lane, write, unit_bytes(lane, unit));
	return SOFTGPU_OK;
}

PROGRAM_FN enum softgpu_status write_pattern(struct lane *lane, struct unit unit,
					     uint64_t seed)
{
	data_fill(lane, unit, seed);
	return transfer(lane, unit, true);
}

/* The poison makes sure that the data came with this command. */
PROGRAM_FN enum softgpu_status read_pattern(struct lane *lane, struct unit unit,
					    uint64_t seed)
{
	enum softgpu_status status;

	memset(data_words(lane), POISON, unit_bytes(lane, unit));
	status = transfer(lane, unit, false);
	return status == SOFTGPU_OK ? data_check(lane, unit, seed) : status;
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
	uint64_t n;

	for (n = 0; n < own_units(lane) && !lane_stopped(lane) &&
	     status == SOFTGPU_OK; n++)
		status = write_pattern(lane, own_unit(lane, n),
				       parameters(lane)->seed);
	return status;
}

/* Goes on after wrong data, so that all of it is counted. */
PROGRAM_FN enum softgpu_status run_verify(struct lane *lane)
{
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n;

	for (n = 0; n < own_units(lane) && !lane_stopped(lane); n++)
		if (read_pattern(lane, own_unit(lane, n),
				 parameters(lane)->seed) != SOFTGPU_OK)
			status = SOFTGPU_FAILED;
	return status;
}

PROGRAM_FN enum softgpu_status run_copy(struct lane *lane)
{
	const struct softgpu_io *io = parameters(lane);
	enum softgpu_status status = SOFTGPU_OK;
	struct unit unit;
	uint64_t n;

	for (n = 0; n < own_units(lane) && status == SOFTGPU_OK; n++) {
		if (lane_stopped(lane))
			break;
		unit = own_unit(lane, n);
		memset(data_words(lane), POISON, unit_bytes(lane, unit));
		status = transfer(lane, unit, false);
		if (status != SOFTGPU_OK)
			break;
		unit.lba += io->target_lba - io->first_lba;
		status = transfer(lane, unit, true);
	}
	return status;
}

/* Whether a random program has had enough; else takes one command. */
PROGRAM_FN bool finished(struct lane *lane)
{
	const struct softgpu_io *io = parameters(lane);

	if (lane_stopped(lane) || (io->duration_ns && lane_age_ns(lane) >= io->duration_ns))
		return true;
	return io->commands && lane_issue(lane) >= io->commands;
}

PROGRAM_FN struct unit random_unit(const struct lane *lane, uint64_t *random)
{
	const struct softgpu_io *io = parameters(lane);

	return unit_at(io, random_next(random) % unit_count(io));
}

PROGRAM_FN enum softgpu_status run_random(struct lane *lane)
{
	uint64_t random = random_start(lane);
	enum softgpu_status status = SOFTGPU_OK;

	while (status == SOFTGPU_OK && !finished(lane))
		status = read_pattern(lane, random_unit(lane, &random),
				      parameters(lane)->seed);
	return status;
}

/* The pattern of the @version-th write of a unit. */
PROGRAM_FN uint64_t version_seed(const struct lane *lane, uint8_t version)
{
	return parameters(lane)->seed + version * 0x632be59bd9b4e019u;
}

/* Write all units that are kept track of as version 0. */
PROGRAM_FN enum softgpu_status mixed_write_all(struct lane *lane, uint64_t units)
{
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n;

	for (n = 0; n < units && status == SOFTGPU_OK; n++)
		status = write_pattern(lane, own_unit(lane, n),
				       version_seed(lane, 0));
	return status;
}

/*
 * Each write of a unit has a pattern of its own, so that a lost write shows in
 * the next read.  At the end the range holds the pattern of version 0.
 */
PROGRAM_FN enum softgpu_status run_mixed(struct lane *lane)
{
	uint64_t units = own_units(lane), random = random_start(lane), n;
	uint8_t versions[MIXED_UNITS] = { 0 };
	enum softgpu_status status;

	if (units > MIXED_UNITS)
		units = MIXED_UNITS;
	status = mixed_write_all(lane, units);
	while (units && status == SOFTGPU_OK && !finished(lane)) {
		n = random_next(&random) % units;
		if (random_next(&random) % 100 < parameters(lane)->read_percent)
			status = read_pattern(lane, own_unit(lane, n),
					      version_seed(lane, versions[n]));
		else
			status = write_pattern(lane, own_unit(lane, n),
					       version_seed(lane,
							    ++versions[n]));
	}
	for (n = 0; n < units && status == SOFTGPU_OK; n++)
		status = read_pattern(lane, own_unit(lane, n),
				      version_seed(lane, versions[n]));
	return status == SOFTGPU_OK ? mixed_write_all(lane, units) : status;
}

PROGRAM_FN void take_sample(struct lane *lane, uint64_t ns)
{
	const struct softgpu_io *io = parameters(lane);
	uint64_t n = lane_reads(lane) - 1;

	if (io->samples && n < io->sample_count)
		((uint64_t *)(uintptr_t)io->samples)[n] = ns;
}

PROGRAM_FN enum softgpu_status run_latency(struct lane *lane)
{
	uint64_t random = random_start(lane), start;
	enum softgpu_status status = SOFTGPU_OK;

	while (status == SOFTGPU_OK && !finished(lane)) {
		start = now_ns();
		status = transfer(lane, random_unit(lane, &random), false);
		if (status == SOFTGPU_OK)
			take_sample(lane, now_ns() - start);
	}
	return status;
}

/**
 * struct flight - commands of a lane that are under way, oldest first
 * @tokens: a ring of @depth
 * @units: what they read
 * @oldest: index in the ring
 * @count: under way
 * @depth: most at once
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
			  ((uint64_t)n * io->blocks << queue->lba_shift),
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

PROGRAM_FN enum softgpu_status run_rate(struct lane *lane)
{
	uint64_t random = random_start(lane);
	enum softgpu_status status = SOFTGPU_OK;
	struct flight flight = { .depth = parameters(lane)->depth };

	if (!flight.depth)
		flight.depth = 1;
	while (status == SOFTGPU_OK && !finished(lane)) {
		if (flight.count == flight.depth)
			status = flight_take(lane, &flight);
		if (status == SOFTGPU_OK)
			status = flight_add(lane, &flight,
					    random_unit(lane, &random));
	}
	/* Also after an error: nothing may be under way when the job ends. */
	while (flight.count)
		if (flight_take(lane, &flight) != SOFTGPU_OK)
			status = SOFTGPU_FAILED;
	return status;
}

PROGRAM_FN enum softgpu_status run_flush(struct lane *lane)
{
	int error = nvmepeer_flush(&lane->slot->queue);

	return error ? command_failed(lane, error, 0) : SOFTGPU_OK;
}

#endif /* SOFTGPU_PROGRAMS_BLOCKS_H */
