// SPDX-License-Identifier: GPL-2.0-only
/*
 * I/O commands, on a disk in memory. The block size is that of the current Identify Namespace
 * data. Metadata is not stored: protection information has to be generated and stripped by the
 * controller (PRACT), and other metadata reads as one repeated byte.
 */
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "io.h"
#include "memory.h"
#include "mover.h"
#include "registers.h"
#include "reservations.h"

#define RW_FUA		(1U << 30)
#define RW_PRACT	(1U << 29)
#define RW_CHECK_REF	(1U << 26)
#define RW_CHECK	(7U << 26)
#define DATASET_DEALLOCATE	(1U << 2)
#define DATASET_RANGES	256U
#define METADATA_BYTE	0x6d
#define METADATA_MOST	(64U << 10)

struct bad_range {
	uint32_t attributes;
	uint32_t blocks;
	uint64_t first;
};

/**
 * struct bad_blocks - namespaces and their format
 * @active: word BADCTRL_ACTIVE
 * @shift: binary logarithm of the block size
 * @protection: type of protection information, 0 for none
 * @metadata: metadata bytes of a block
 * @count: number of blocks
 * @created: number of blocks of namespaces that the host has created, 0 for others
 * @most: maximum bytes of a command, 0 for no limit
 * @most_zeroes: maximum bytes of Write Zeroes, 0 for no limit
 * @most_range: maximum blocks of one range to deallocate, 0 for no limit
 * @most_ranges: maximum blocks of all ranges of a command, 0 for no limit
 * @torn: only the first half of the data is written
 * @moves: receives what a GPU moves
 */
struct bad_blocks {
	uint32_t active;
	unsigned int shift;
	unsigned int protection;
	unsigned int metadata;
	uint64_t count;
	uint64_t created[BADCTRL_NAMESPACE_MAX];
	uint64_t most;
	uint64_t most_zeroes;
	uint32_t most_range;
	uint64_t most_ranges;
	bool torn;
	struct bad_moves *moves;
};

/* Limits of CNS 6, NVM command set 4.1.5.3. Called with the lock held. */
static void limits_now(struct bad *ctrl, struct bad_blocks *blocks)
{
	const uint8_t *page = ctrl->identify[6];

	blocks->most_zeroes = page[1] ? (uint64_t)BAD_PAGE << page[1] : 0;
	memcpy(&blocks->most_range, page + 4, sizeof(blocks->most_range));
	memcpy(&blocks->most_ranges, page + 8, sizeof(blocks->most_ranges));
}

/* Called with the lock held. */
static void read_format(struct bad *ctrl, struct bad_blocks *blocks)
{
	const uint8_t *page = ctrl->identify[0], *lbaf = page + 128 + 4 * (page[26] & 0xf);

	*blocks = (struct bad_blocks){
		.active = ctrl->words[BADCTRL_ACTIVE / 4],
		.shift = lbaf[2],
		.protection = page[29] & 7,
		.metadata = lbaf[0],
		.most = ctrl->identify[1][77] ? (uint64_t)BAD_PAGE << ctrl->identify[1][77] : 0,
	};
	memcpy(&blocks->count, page, sizeof(blocks->count));
	memcpy(blocks->created, ctrl->created, sizeof(blocks->created));
	limits_now(ctrl, blocks);
	if (blocks->count > ctrl->namespace_bytes >> blocks->shift)
		blocks->count = ctrl->namespace_bytes >> blocks->shift;
}

/* Each thread caches the format until @changes differs. */
static void format_now(struct bad *ctrl, struct bad_blocks *blocks)
{
	static _Thread_local struct bad_blocks seen;
	static _Thread_local uint32_t changes;

	if (atomic_load(&ctrl->changes) != changes) {
		pthread_mutex_lock(&ctrl->lock);
		read_format(ctrl, &seen);
		changes = atomic_load(&ctrl->changes);
		pthread_mutex_unlock(&ctrl->lock);
	}
	*blocks = seen;
}

static uint8_t *namespace_at(const struct bad *ctrl, uint32_t nsid)
{
	return ctrl->disk + (size_t)(nsid - 1) * ctrl->namespace_bytes;
}

/* The data of the blocks, or NULL if they do not exist. */
static uint8_t *blocks_at(struct bad *ctrl, uint32_t nsid, const struct bad_blocks *blocks,
			  uint64_t first, uint64_t count)
{
	if (first >= blocks->count || count > blocks->count - first)
		return NULL;
	return namespace_at(ctrl, nsid) + (first << blocks->shift);
}

static uint16_t check_zeroes(const struct bad_command *command, const struct bad_blocks *blocks)
{
	if (command->cdw12 & RW_CHECK)
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	if (blocks->protection != 3 && command->cdw14 != command->cdw10)
		return NVME_STATUS_DNR | NVME_SC_REFTAG_CHECK;
	return 0;
}

/*
 * PRACT has to be set, and the initial reference tag has to match. Write Zeroes may not ask for a
 * check.
 */
static uint16_t check_protection(const struct bad_command *command,
				 const struct bad_blocks *blocks)
{
	if (!blocks->metadata || !blocks->protection)
		return 0;
	if (!(command->cdw12 & RW_PRACT))
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	if (command->opcode == NVMEPEER_OP_WRITE_ZEROES)
		return check_zeroes(command, blocks);
	if (blocks->protection == 3)
		return command->cdw12 & RW_CHECK_REF ? NVME_STATUS_DNR | NVME_SC_INVALID_FIELD : 0;
	if (!(command->cdw12 & RW_CHECK_REF) || command->cdw14 != command->cdw10)
		return NVME_STATUS_DNR | NVME_SC_REFTAG_CHECK;
	return 0;
}

/* Metadata in a separate buffer, without protection information. */
static uint16_t metadata_to_host(struct bad *ctrl, const struct bad_command *command,
				 const struct bad_blocks *blocks, uint64_t count)
{
	uint8_t bytes[METADATA_MOST];

	if (!blocks->metadata || blocks->protection)
		return 0;
	if (count > sizeof(bytes) / blocks->metadata)
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	memset(bytes, METADATA_BYTE, count * blocks->metadata);
	return bad_write(ctrl, command->mptr, bytes, count * blocks->metadata);
}

static uint16_t compare(struct bad *ctrl, const struct bad_command *command, const uint8_t *at,
			size_t length)
{
	uint8_t *bytes = malloc(length);
	uint16_t status = NVME_STATUS_DNR | NVME_SC_DATA_TRANSFER;

	if (bytes)
		status = bad_from_host(ctrl, command, bytes, length);
	if (!status && memcmp(bytes, at, length))
		status = NVME_STATUS_DNR | NVME_SC_COMPARE_FAILED;
	free(bytes);
	return status;
}

static bool too_long(const struct bad_blocks *blocks, uint8_t opcode, size_t length)
{
	uint64_t most = opcode == NVMEPEER_OP_WRITE_ZEROES ? blocks->most_zeroes : blocks->most;

	return most && length > most;
}

static uint16_t write_blocks(struct bad *ctrl, const struct bad_command *command, uint8_t *at,
			     size_t length, struct bad_moves *moves)
{
	uint16_t status = 0;

	bad_cache_keep(ctrl, at, length);
	if (command->opcode == NVMEPEER_OP_WRITE)
		status = bad_transfer(ctrl, command, at, length, false, moves);
	else
		memset(at, 0, length);
	if (command->cdw12 & RW_FUA && !status)
		bad_cache_flush(ctrl, at, length);
	return status;
}

static uint16_t read_or_write(struct bad *ctrl, const struct bad_command *command,
			      const struct bad_blocks *blocks)
{
	uint64_t first = command->cdw10 | (uint64_t)command->cdw11 << 32;
	uint64_t count = (command->cdw12 & 0xffff) + 1;
	uint8_t *at = blocks_at(ctrl, command->nsid, blocks, first, count);
	size_t length = (size_t)count << blocks->shift;
	uint16_t status = check_protection(command, blocks);

	if (!at)
		return NVME_STATUS_DNR | NVME_SC_LBA_RANGE;
	if (status)
		return status;
	if (too_long(blocks, command->opcode, length))
		return NVME_STATUS_DNR | NVME_SC_INVALID_FIELD;
	if (command->opcode == NVMEPEER_OP_WRITE && bad_reservation_forbids_writes(ctrl))
		return NVME_STATUS_DNR | NVME_SC_RESERVATION;
	if (command->opcode == NVMEPEER_OP_READ)
		atomic_fetch_add_explicit(&ctrl->reads, 1, memory_order_relaxed);
	if (command->opcode == NVMEPEER_OP_WRITE)
		atomic_fetch_add_explicit(&ctrl->writes, 1, memory_order_relaxed);
	switch (command->opcode) {
	case NVMEPEER_OP_WRITE:
	case NVMEPEER_OP_WRITE_ZEROES:
		return write_blocks(ctrl, command, at, blocks->torn ? length / 2 : length,
				    blocks->moves);
	case NVMEPEER_OP_READ:
		status = bad_transfer(ctrl, command, at, length, true, blocks->moves);
		return status ? status : metadata_to_host(ctrl, command, blocks, count);
	default:
		return compare(ctrl, command, at, length);
	}
}

static uint16_t dataset(struct bad *ctrl, const struct bad_command *command,
			const struct bad_blocks *blocks)
{
	uint32_t count = (command->cdw10 & 0xff) + 1, i;
	struct bad_range ranges[DATASET_RANGES];
	uint64_t total = 0;
	uint16_t status;
	uint8_t *at;

	status = bad_from_host(ctrl, command, ranges, count * sizeof(ranges[0]));
	if (status)
		return status;
	pthread_mutex_lock(&ctrl->lock);
	if (ctrl->words[BADCTRL_RANGES / 4] < count)
		ctrl->words[BADCTRL_RANGES / 4] = count;
	pthread_mutex_unlock(&ctrl->lock);
	/* Succeeds, but ranges beyond a limit are not deallocated. */
	for (i = 0; i < count; i++) {
		total += ranges[i].blocks;
		if ((blocks->most_range && ranges[i].blocks > blocks->most_range) ||
		    (blocks->most_ranges && total > blocks->most_ranges))
			continue;
		at = blocks_at(ctrl, command->nsid, blocks, ranges[i].first, ranges[i].blocks);
		if (!at)
			return NVME_STATUS_DNR | NVME_SC_LBA_RANGE;
		if (!(command->cdw11 & DATASET_DEALLOCATE))
			continue;
		bad_cache_keep(ctrl, at, (size_t)ranges[i].blocks << blocks->shift);
		memset(at, 0, (size_t)ranges[i].blocks << blocks->shift);
	}
	return 0;
}

static bool is_off(struct bad *ctrl, uint32_t nsid)
{
	return atomic_load(&ctrl->power_words[BADCTRL_POWER_OFF / 4]) >> (nsid - 1) & 1;
}

static uint16_t io(struct bad *ctrl, const struct bad_command *command, bool torn,
		   struct bad_moves *moves)
{
	struct bad_blocks blocks;

	format_now(ctrl, &blocks);
	if (!command->nsid || command->nsid > BADCTRL_NAMESPACE_MAX ||
	    !(blocks.active & 1U << (command->nsid - 1)))
		return NVME_STATUS_DNR | NVME_SC_INVALID_NAMESPACE;
	if (is_off(ctrl, command->nsid))
		return NVME_STATUS_DNR | NVME_SC_INTERNAL;
	blocks.torn = torn;
	blocks.moves = moves;
	if (blocks.created[command->nsid - 1])
		blocks.count = blocks.created[command->nsid - 1];
	switch (command->opcode) {
	case NVMEPEER_OP_FLUSH:
		bad_cache_flush(ctrl, namespace_at(ctrl, command->nsid), ctrl->namespace_bytes);
		return 0;
	case NVMEPEER_OP_WRITE:
	case NVMEPEER_OP_READ:
	case NVMEPEER_OP_COMPARE:
	case NVMEPEER_OP_WRITE_ZEROES:
		return read_or_write(ctrl, command, &blocks);
	case NVMEPEER_OP_DATASET_MANAGEMENT:
		return dataset(ctrl, command, &blocks);
	case NVME_IO_RESERVATION_REGISTER:
	case NVME_IO_RESERVATION_REPORT:
	case NVME_IO_RESERVATION_ACQUIRE:
	case NVME_IO_RESERVATION_RELEASE:
		return bad_reservation(ctrl, command);
	default:
		return NVME_STATUS_DNR | NVME_SC_INVALID_OPCODE;
	}
}

uint64_t bad_io_bytes(struct bad *ctrl, const struct bad_command *command)
{
	struct bad_blocks blocks;

	if (command->opcode != NVMEPEER_OP_READ && command->opcode != NVMEPEER_OP_WRITE)
		return 0;
	format_now(ctrl, &blocks);
	return ((uint64_t)(command->cdw12 & 0xffff) + 1) << blocks.shift;
}

uint16_t bad_io_begin(struct bad *ctrl, const struct bad_command *command, struct bad_moves *moves)
{
	return io(ctrl, command, false, moves);
}

/* Called by the worker, which has a ring of its own. */
static uint16_t io_whole(struct bad *ctrl, const struct bad_command *command, bool torn)
{
	struct bad_moves moves = { .ring = MOVER_RINGS - 1 };
	uint16_t status = io(ctrl, command, torn, &moves), moved = bad_moves_wait(ctrl, &moves);

	return status ? status : moved;
}

uint16_t bad_io(struct bad *ctrl, const struct bad_command *command)
{
	return io_whole(ctrl, command, false);
}

void bad_io_torn(struct bad *ctrl, const struct bad_command *command)
{
	io_whole(ctrl, command, true);
}

void bad_io_cut_power(struct bad *ctrl, uint32_t namespaces)
{
	struct bad_blocks blocks;
	uint32_t nsid;

	format_now(ctrl, &blocks);
	for (nsid = 1; nsid <= BADCTRL_NAMESPACE_MAX; nsid++)
		if (namespaces >> (nsid - 1) & 1 && !is_off(ctrl, nsid))
			bad_cache_lose_some(ctrl, namespace_at(ctrl, nsid), ctrl->namespace_bytes,
					    (size_t)1 << blocks.shift);
	atomic_fetch_or(&ctrl->power_words[BADCTRL_POWER_OFF / 4], namespaces);
}

/* The blocks that the interrupted command has written are in the cache when that is lost. */
uint16_t bad_io_cut(struct bad *ctrl, const struct bad_command *command, uint16_t argument)
{
	struct bad_command interrupted = *command;
	bool keeps = argument & BADCTRL_CUT_KEEPS;

	interrupted.cdw12 &= ~RW_FUA;
	if (command->opcode != NVMEPEER_OP_FLUSH && (!keeps || bad_cache_random(ctrl, 2)))
		bad_io(ctrl, &interrupted);
	if (keeps)
		atomic_fetch_or(&ctrl->power_words[BADCTRL_POWER_OFF / 4], argument & 0xff);
	else
		bad_io_cut_power(ctrl, argument & 0xff);
	return bad_io(ctrl, command);
}
