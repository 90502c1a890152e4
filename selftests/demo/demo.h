/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The demonstration: three initiators on one controller at once, fio through
 * io_uring passthrough, ext4 on the block device, and the stand-in GPU through
 * a queue pair of its own.
 *
 * Each initiator has a thread, a part of the disk and a tally; main looks at
 * the tallies every second.
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <nvmepeer.h>

#define SECTOR 512	/* unit of /sys/class/block/.../{start,size,stat} */

/**
 * struct tally - what an initiator has done so far
 * @ios: commands completed
 * @bytes: moved by them
 * @verified: bytes that were compared with what they should be, and were right
 * @errors: commands that failed and comparisons that did not hold
 * @ended: the thread has ended
 *
 * Written by the initiator's thread, read by main at any time.
 */
struct tally {
	_Atomic uint64_t ios;
	_Atomic uint64_t bytes;
	_Atomic uint64_t verified;
	_Atomic uint64_t errors;
	_Atomic bool ended;
};

/** struct region - a partition, in logical blocks of the namespace */
struct region {
	uint64_t first;
	uint64_t blocks;
};

/**
 * struct demo - what all initiators share; constant while they run, but for @stop
 * @controller: node, "nvmep0"
 * @namespace_node: "ngp0n1"
 * @fio_partition: "nvmep0n1p1" and so on
 * @stop_file: made when @stop is set, for initiators that are other programs
 * @seconds: how long all three run together at least
 * @tree: directory that is copied into the file system
 * @block_size: bytes of a logical block
 * @fio_region: of the disk, as is @gpu_region
 * @stop: set when the time is over
 */
struct demo {
	const char *controller;
	const char *namespace_node;
	const char *fio_partition;
	const char *ext4_partition;
	const char *gpu_partition;
	const char *tree;
	const char *stop_file;
	unsigned int seconds;
	uint32_t block_size;
	struct region fio_region;
	struct region gpu_region;
	_Atomic bool stop;
};

/* complain() - one line to stderr, with the library's explanation if @explain. */
__attribute__((format(printf, 2, 3)))
void complain(bool explain, const char *format, ...);

/* ---- fio.c, filesystem.c: initiators that are other programs ------------ */

/*
 * Both count into @tally.  fio ends by itself, a little after demo->seconds of
 * I/O: it cannot be stopped and still say whether all was well.  The file system
 * goes on until it is told to stop.
 */
void fio_run(const struct demo *demo, struct tally *tally);
void filesystem_run(const struct demo *demo, struct tally *tally);

/* The block layer's own count of I/Os and bytes of a partition or disk. */
struct block_count {
	uint64_t reads;
	uint64_t writes;
	uint64_t bytes;
};

bool block_count(const char *device, struct block_count *count);

/* ---- gpu.c: the stand-in GPU -------------------------------------------- */

struct gpu;

/**
 * struct gpu_proof - who touched the GPU's queue pair and memory
 * @gpu_doorbells: doorbell writes that the GPU's programs counted
 * @bus_doorbells: posted 4-byte writes that the device put on the bus meanwhile
 * @lost_doorbells: of them, those that did not arrive
 * @cpu_doorbells: writes of the kernel to these doorbells
 * @cpu_doorbell_maps: user mappings of the doorbell page
 * @cpu_memory_maps: times that GPU memory was mapped for the CPU
 * @rings_in_gpu: both rings lie in device memory, as the kernel sees it
 * @data_in_gpu: so does the data
 */
struct gpu_proof {
	uint64_t gpu_doorbells;
	uint64_t bus_doorbells;
	uint64_t lost_doorbells;
	uint64_t cpu_doorbells;
	uint64_t cpu_doorbell_maps;
	uint64_t cpu_memory_maps;
	bool rings_in_gpu;
	bool data_in_gpu;
};

/**
 * struct rate - a measurement
 * @commands: reads completed
 * @nanoseconds: from start to end
 */
struct rate {
	uint64_t commands;
	uint64_t nanoseconds;
};

/* NULL after complaining. */
struct gpu *gpu_open(const struct demo *demo);
void gpu_close(struct gpu *gpu);

/* Pattern rounds in both directions; @cpu counts the CPU's half of them. */
void gpu_run(struct gpu *gpu, const struct demo *demo, struct tally *tally,
	     struct tally *cpu);

/* Random 4 KiB reads, @depth in flight, for @seconds; nothing else runs. */
bool gpu_rate(struct gpu *gpu, const struct demo *demo, unsigned int depth,
	      unsigned int seconds, struct rate *rate);
bool gpu_proof(struct gpu *gpu, struct gpu_proof *proof);

/* ---- cpu.c: the CPU's half, through io_uring ---------------------------- */

struct cpu;

struct cpu *cpu_open(const struct demo *demo);
void cpu_close(struct cpu *cpu);

/* Write the pattern to a region, or read it and count words that are wrong. */
bool cpu_write(struct cpu *cpu, const struct region *region, uint64_t seed,
	       struct tally *tally);
bool cpu_verify(struct cpu *cpu, const struct region *region, uint64_t seed,
		struct tally *tally);
bool cpu_rate(struct cpu *cpu, const struct region *region, unsigned int depth,
	      unsigned int seconds, struct rate *rate);

/* The controller's own count of read commands: SMART log, host read commands. */
bool cpu_smart_reads(struct cpu *cpu, uint64_t *reads);

#endif /* DEMO_H */
