// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU's half of the pattern rounds, through io_uring on a ring of libnvmepeer, and
 * the controller's own count of commands.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nvmepeer_uring.h>

#include "../../lib/nvme.h"
#include "../softgpu/softgpu_programs.h"
#include "report.h"
#include "cpu.h"

enum {
	CPU_DEPTH = 64,			/* of the ring */
	TRANSFER_DEPTH = 8,		/* of pattern rounds */
	TRANSFER_BYTES = 32768,		/* of each of their commands */
	PIECE_BYTES = 1 << 20,		/* transferred, then verified */
	RATE_BYTES = 4096,
};

/**
 * struct cpu - the CPU as an initiator; used by one thread at a time
 * @ring: has nothing in flight between calls
 * @buffer: PIECE_BYTES
 */
struct cpu {
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	struct io_uring ring;
	uint32_t block_size;
	void *buffer;
};

struct cpu *cpu_open(const struct demo *demo)
{
	struct cpu *cpu = calloc(1, sizeof(*cpu));

	if (!cpu)
		return NULL;
	cpu->buffer = aligned_alloc(4096, PIECE_BYTES);
	if (!cpu->buffer)
		goto free;
	if (nvmepeer_open(demo->controller, &cpu->ctrl))
		goto free_buffer;
	if (nvmepeer_ns_open(demo->namespace_node, &cpu->ns))
		goto close;
	if (nvmepeer_uring_init(&cpu->ring, CPU_DEPTH))
		goto close_namespace;
	cpu->block_size = nvmepeer_ns_info(cpu->ns)->block_size;
	return cpu;

close_namespace:
	nvmepeer_ns_close(cpu->ns);
close:
	nvmepeer_close(cpu->ctrl);
free_buffer:
	free(cpu->buffer);
free:
	free(cpu);
	report_error(true, "the CPU cannot do I/O");
	return NULL;
}

void cpu_close(struct cpu *cpu)
{
	io_uring_queue_exit(&cpu->ring);
	nvmepeer_ns_close(cpu->ns);
	nvmepeer_close(cpu->ctrl);
	free(cpu->buffer);
	free(cpu);
}

/* ---- The pattern -------------------------------------------------------- */

static void fill_pattern(struct cpu *cpu, uint64_t lba, uint64_t blocks, uint64_t seed)
{
	uint64_t words = cpu->block_size / 8, *word = cpu->buffer, block, i;

	for (block = lba; block < lba + blocks; block++)
		for (i = 0; i < words; i++)
			*word++ = softgpu_pattern(seed, block, i);
}

static uint64_t count_wrong(const struct cpu *cpu, uint64_t lba, uint64_t blocks, uint64_t seed)
{
	uint64_t words = cpu->block_size / 8, wrong = 0, block, i;
	const uint64_t *word = cpu->buffer;

	for (block = lba; block < lba + blocks; block++)
		for (i = 0; i < words; i++)
			wrong += *word++ != softgpu_pattern(seed, block, i);
	return wrong;
}

static bool transfer(struct cpu *cpu, enum nvmepeer_opcode opcode, uint64_t lba,
		     uint64_t blocks, struct tally *tally)
{
	uint32_t step = TRANSFER_BYTES / cpu->block_size;

	if (nvmepeer_uring_rw(&cpu->ring, cpu->ns, opcode, lba, blocks, step,
			      cpu->buffer, TRANSFER_DEPTH)) {
		report_error(true, "CPU I/O at block %llu", (unsigned long long)lba);
		tally->errors++;
		return false;
	}
	tally->ios += blocks / step;
	tally->bytes += blocks * cpu->block_size;
	return true;
}

/* Regions are multiples of PIECE_BYTES: gpu.c aligns them. */
bool cpu_write(struct cpu *cpu, const struct region *region, uint64_t seed,
	       struct tally *tally)
{
	uint64_t piece = PIECE_BYTES / cpu->block_size, lba;

	for (lba = region->first; lba < region->first + region->blocks; lba += piece) {
		fill_pattern(cpu, lba, piece, seed);
		if (!transfer(cpu, NVMEPEER_OP_WRITE, lba, piece, tally))
			return false;
	}
	return true;
}

bool cpu_verify(struct cpu *cpu, const struct region *region, uint64_t seed,
		struct tally *tally)
{
	uint64_t piece = PIECE_BYTES / cpu->block_size, lba, wrong;

	for (lba = region->first; lba < region->first + region->blocks; lba += piece) {
		/* Stale data of an earlier transfer must not pass the comparison. */
		memset(cpu->buffer, 0, PIECE_BYTES);
		if (!transfer(cpu, NVMEPEER_OP_READ, lba, piece, tally))
			return false;
		wrong = count_wrong(cpu, lba, piece, seed);
		if (wrong) {
			report_error(false, "%llu wrong words from block %llu on, written by the GPU",
				     (unsigned long long)wrong, (unsigned long long)lba);
			tally->errors++;
			return false;
		}
		tally->verified += PIECE_BYTES;
	}
	return true;
}

/* ---- The rate ----------------------------------------------------------- */

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* xorshift64 suffices for the order of reads. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static unsigned int reap(struct cpu *cpu, bool *failed)
{
	struct io_uring_cqe *cqe;
	unsigned int head, count = 0;

	io_uring_for_each_cqe(&cpu->ring, head, cqe) {
		*failed |= cqe->res != 0;
		count++;
	}
	io_uring_cq_advance(&cpu->ring, count);
	return count;
}

/* Submit one more read. Reads may share a buffer: their data is not compared. */
static bool submit_random(struct cpu *cpu, const struct region *region, uint64_t *random)
{
	uint32_t blocks = RATE_BYTES / cpu->block_size;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&cpu->ring);
	uint64_t place = next_random(random);

	if (!sqe)
		return false;
	nvmepeer_prep_rw(sqe, cpu->ns, NVMEPEER_OP_READ,
			 region->first + place % (region->blocks / blocks) * blocks, blocks,
			 (char *)cpu->buffer + place % CPU_DEPTH * RATE_BYTES);
	return true;
}

bool cpu_rate(struct cpu *cpu, const struct region *region, unsigned int depth,
	      unsigned int seconds, struct rate *rate)
{
	uint64_t start = now(), end = start + seconds * 1000000000ull, random = start | 1;
	unsigned int in_flight = 0, completed;
	bool failed = false;

	rate->commands = 0;
	do {
		while (in_flight < depth && now() < end && !failed &&
		       submit_random(cpu, region, &random))
			in_flight++;
		if (io_uring_submit_and_wait(&cpu->ring, in_flight != 0) < 0)
			return false;
		completed = reap(cpu, &failed);
		in_flight -= completed;
		rate->commands += completed;
	} while (in_flight);
	rate->nanoseconds = now() - start;
	return !failed;
}

/* ---- The controller's counters -------------------------------------------- */

bool cpu_smart_reads(struct cpu *cpu, uint64_t *reads)
{
	/* SMART / Health log (base specification 5.16.1.3): bytes 79:64. */
	_Alignas(8) uint8_t log[512];
	struct nvme_passthru_cmd command = {
		.opcode = NVME_ADMIN_GET_LOG_PAGE,
		.nsid = NVME_ALL_NAMESPACES,
		.addr = (uintptr_t)log,
		.data_len = sizeof(log),
		.cdw10 = NVME_LOG_HEALTH | (sizeof(log) / 4 - 1) << 16,
	};

	if (nvmepeer_admin(cpu->ctrl, &command)) {
		report_error(true, "SMART log");
		return false;
	}
	memcpy(reads, log + 64, sizeof(*reads));
	return true;
}
