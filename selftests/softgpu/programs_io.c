// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs on blocks: ordinary C over the device library, as a GPU kernel would
 * be, run by several threads on one queue pair.
 *
 * The range is cut into units of softgpu_io.blocks blocks; unit n belongs to
 * thread n modulo threads, so that no two threads write the same block.
 */
#include <string.h>

#include "lane.h"
#include "memory.h"
#include "programs_io.h"

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

static const struct softgpu_io *parameters(const struct lane *lane)
{
	return &lane->slot->parameters.io;
}

/* --- Checks before the lanes start ---------------------------------------- */

/* DMA addresses of a buffer's pages lie in HBM, all of them. */
static bool buffer_valid(const struct gpu *gpu,
			 const struct nvmepeer_buffer *buffer,
			 uint32_t page_shift)
{
	uint64_t pages = (buffer->length >> page_shift) + 1;

	return !buffer->pages ||
	       (buffer->pages % 8 == 0 && buffer->length <= gpu->hbm_bytes &&
		gpu_hbm(gpu, buffer->pages, 8 * (pages - 1)));
}

static enum softgpu_status prepare_queue(struct slot *slot)
{
	const struct nvmepeer_geometry *geometry = &slot->parameters.io.queue;
	int error = nvmepeer_queue_open(&slot->queue, geometry);

	if (error) {
		lane_note(&slot->lanes[0], error, 0, 0);
		return SOFTGPU_INVALID;
	}
	if (!gpu_hbm(slot->gpu, geometry->state,
		     nvmepeer_state_bytes(geometry)) ||
	    !buffer_valid(slot->gpu, &geometry->list_memory,
			  geometry->page_shift))
		return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

/* Bytes of data memory that belong to each thread. */
static uint64_t share(const struct slot *slot)
{
	uint64_t page = 1ULL << slot->queue.page_shift;

	return slot->parameters.io.data.length / slot->threads & ~(page - 1);
}

static enum softgpu_status prepare_data(struct slot *slot)
{
	const struct softgpu_io *io = &slot->parameters.io;
	enum softgpu_status status = prepare_queue(slot);
	uint64_t bytes, depth = 1;

	if (slot->program == SOFTGPU_RATE && io->depth)
		depth = io->depth;
	if (status)
		return status;
	bytes = (uint64_t)io->blocks << slot->queue.lba_shift;
	if (!io->blocks || io->blocks > 65536 || depth > MAX_DEPTH ||
	    io->lba_count < io->blocks || depth * bytes > share(slot) ||
	    io->data_address % 8 || io->first_lba + io->lba_count < io->lba_count)
		return SOFTGPU_INVALID;
	if (!gpu_hbm(slot->gpu, io->data_address, io->data.length) ||
	    !buffer_valid(slot->gpu, &io->data, slot->queue.page_shift))
		return SOFTGPU_INVALID;
	if (io->samples &&
	    (io->samples % 8 || io->sample_count > slot->gpu->hbm_bytes / 8 ||
	     !gpu_hbm(slot->gpu, io->samples, 8 * io->sample_count)))
		return SOFTGPU_INVALID;
	return SOFTGPU_RUNNING;
}

/* --- Units --------------------------------------------------------------- */

static uint64_t unit_count(const struct softgpu_io *io)
{
	return (io->lba_count + io->blocks - 1) / io->blocks;
}

static struct unit unit_at(const struct softgpu_io *io, uint64_t number)
{
	uint64_t skip = number * io->blocks, left = io->lba_count - skip;
	struct unit unit = {
		.lba = io->first_lba + skip,
		.blocks = left < io->blocks ? (uint32_t)left : io->blocks,
	};

	return unit;
}

/* Units that belong to the lane. */
static uint64_t own_units(const struct lane *lane)
{
	uint64_t count = unit_count(parameters(lane)), threads =
		lane->slot->threads;

	return count / threads + (lane->index < count % threads);
}

static struct unit own_unit(const struct lane *lane, uint64_t number)
{
	return unit_at(parameters(lane),
		       number * lane->slot->threads + lane->index);
}

static uint64_t unit_bytes(const struct lane *lane, struct unit unit)
{
	return (uint64_t)unit.blocks << lane->slot->queue.lba_shift;
}

/* xorshift64*: good enough to pick blocks, and the same in every run. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

static uint64_t random_start(const struct lane *lane)
{
	return softgpu_pattern(parameters(lane)->seed, lane->index, 1) | 1;
}

/* --- Data ---------------------------------------------------------------- */

/* Where the lane's data begins in the data memory. */
static uint64_t data_offset(const struct lane *lane)
{
	return lane->index * share(lane->slot);
}

static uint64_t *data_words(const struct lane *lane)
{
	return (uint64_t *)(uintptr_t)(parameters(lane)->data_address +
				       data_offset(lane));
}

static void data_fill(struct lane *lane, struct unit unit, uint64_t seed)
{
	uint64_t words = 1ULL << (lane->slot->queue.lba_shift - 3), i, k;
	uint64_t *data = data_words(lane);

	for (i = 0; i < unit.blocks; i++)
		for (k = 0; k < words; k++)
			*data++ = softgpu_pattern(seed, unit.lba + i, k);
}

static enum softgpu_status data_check(struct lane *lane, struct unit unit,
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

static void count_latency(struct lane *lane, uint64_t ns)
{
	struct softgpu_result *result = &lane->slot->job->result;
	uint64_t seen;

	lane_add(lane, latency_ns, ns);
	seen = __atomic_load_n(&result->latency_max_ns, __ATOMIC_RELAXED);
	while (seen < ns &&
	       !__atomic_compare_exchange_n(&result->latency_max_ns, &seen, ns,
					    true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
	seen = __atomic_load_n(&result->latency_min_ns, __ATOMIC_RELAXED);
	while ((!seen || seen > ns) &&
	       !__atomic_compare_exchange_n(&result->latency_min_ns, &seen, ns,
					    true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

static enum softgpu_status command_failed(struct lane *lane, int error,
					  uint64_t lba)
{
	lane_check(lane);
	lane_add(lane, errors, 1);
	lane_note(lane, error, lba, 0);
	return SOFTGPU_FAILED;
}

static void count_command(struct lane *lane, bool write, uint64_t bytes)
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
static enum softgpu_status transfer(struct lane *lane, struct unit unit,
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
	count_latency(lane, now_ns() - start);
	count_command(lane, write, unit_bytes(lane, unit));
	return SOFTGPU_OK;
}

static enum softgpu_status write_pattern(struct lane *lane, struct unit unit,
					 uint64_t seed)
{
	data_fill(lane, unit, seed);
	return transfer(lane, unit, true);
}

/* The poison makes sure that the data came with this command. */
static enum softgpu_status read_pattern(struct lane *lane, struct unit unit,
					uint64_t seed)
{
	enum softgpu_status status;

	memset(data_words(lane), POISON, unit_bytes(lane, unit));
	status = transfer(lane, unit, false);
	return status == SOFTGPU_OK ? data_check(lane, unit, seed) : status;
}

/* --- Programs ------------------------------------------------------------ */

static bool stopped(const struct lane *lane)
{
	return atomic_load(&lane->slot->stop);
}

static enum softgpu_status run_queue_init(struct lane *lane)
{
	nvmepeer_queue_reset(&lane->slot->queue);
	return SOFTGPU_OK;
}

static enum softgpu_status run_queue_rearm(struct lane *lane)
{
	nvmepeer_queue_rearm(&lane->slot->queue, lane->slot->queue.generation);
	return SOFTGPU_OK;
}

static enum softgpu_status run_write(struct lane *lane)
{
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n;

	for (n = 0; n < own_units(lane) && !stopped(lane) &&
	     status == SOFTGPU_OK; n++)
		status = write_pattern(lane, own_unit(lane, n),
				       parameters(lane)->seed);
	return status;
}

/* Goes on after wrong data, so that all of it is counted. */
static enum softgpu_status run_verify(struct lane *lane)
{
	enum softgpu_status status = SOFTGPU_OK;
	uint64_t n;

	for (n = 0; n < own_units(lane) && !stopped(lane); n++)
		if (read_pattern(lane, own_unit(lane, n),
				 parameters(lane)->seed) != SOFTGPU_OK)
			status = SOFTGPU_FAILED;
	return status;
}

static enum softgpu_status run_copy(struct lane *lane)
{
	const struct softgpu_io *io = parameters(lane);
	enum softgpu_status status = SOFTGPU_OK;
	struct unit unit;
	uint64_t n;

	for (n = 0; n < own_units(lane) && status == SOFTGPU_OK; n++) {
		if (stopped(lane))
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
static bool finished(struct lane *lane)
{
	const struct softgpu_io *io = parameters(lane);
	struct slot *slot = lane->slot;

	if (stopped(lane) ||
	    (io->duration_ns && now_ns() - slot->start_ns >= io->duration_ns))
		return true;
	return io->commands &&
	       atomic_fetch_add(&slot->issued, 1) >= io->commands;
}

static struct unit random_unit(const struct lane *lane, uint64_t *random)
{
	const struct softgpu_io *io = parameters(lane);

	return unit_at(io, random_next(random) % unit_count(io));
}

static enum softgpu_status run_random(struct lane *lane)
{
	uint64_t random = random_start(lane);
	enum softgpu_status status = SOFTGPU_OK;

	while (status == SOFTGPU_OK && !finished(lane))
		status = read_pattern(lane, random_unit(lane, &random),
				      parameters(lane)->seed);
	return status;
}

/* The pattern of the @version-th write of a unit. */
static uint64_t version_seed(const struct lane *lane, uint8_t version)
{
	return parameters(lane)->seed + version * 0x632be59bd9b4e019u;
}

/* Write all units that are kept track of as version 0. */
static enum softgpu_status mixed_write_all(struct lane *lane, uint64_t units)
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
static enum softgpu_status run_mixed(struct lane *lane)
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

static void take_sample(struct lane *lane, uint64_t ns)
{
	const struct softgpu_io *io = parameters(lane);
	uint64_t n = __atomic_load_n(&lane->slot->job->result.reads,
				     __ATOMIC_RELAXED) - 1;

	if (io->samples && n < io->sample_count)
		((uint64_t *)(uintptr_t)io->samples)[n] = ns;
}

static enum softgpu_status run_latency(struct lane *lane)
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

static enum softgpu_status flight_add(struct lane *lane, struct flight *flight,
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

static enum softgpu_status flight_take(struct lane *lane,
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

static enum softgpu_status run_rate(struct lane *lane)
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

static enum softgpu_status run_flush(struct lane *lane)
{
	int error = nvmepeer_flush(&lane->slot->queue);

	return error ? command_failed(lane, error, 0) : SOFTGPU_OK;
}

static const struct program programs[] = {
	[SOFTGPU_QUEUE_INIT] = { prepare_queue, run_queue_init },
	[SOFTGPU_WRITE] = { prepare_data, run_write },
	[SOFTGPU_VERIFY] = { prepare_data, run_verify },
	[SOFTGPU_MIXED] = { prepare_data, run_mixed },
	[SOFTGPU_RANDOM] = { prepare_data, run_random },
	[SOFTGPU_LATENCY] = { prepare_data, run_latency },
	[SOFTGPU_RATE] = { prepare_data, run_rate },
	[SOFTGPU_COPY] = { prepare_data, run_copy },
	[SOFTGPU_FLUSH] = { prepare_queue, run_flush },
	[SOFTGPU_QUEUE_REARM] = { prepare_queue, run_queue_rearm },
};

const struct program *io_program(uint32_t number)
{
	if (number >= sizeof(programs) / sizeof(programs[0]) ||
	    !programs[number].run)
		return NULL;
	return &programs[number];
}
