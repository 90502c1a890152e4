/* SPDX-License-Identifier: GPL-2.0-only */
/* The software GPU, an initiator with a queue pair of its own. */
#ifndef DEMO_GPU_H
#define DEMO_GPU_H

#include "demo.h"

struct gpu;

/**
 * struct gpu_proof - accesses to the GPU's queue pair and memory
 * @gpu_doorbells: doorbell writes that the GPU's programs counted
 * @bus_doorbells: posted 4-byte writes that the device sent meanwhile
 * @shared: its stores go to a page that the controller shares, without messages
 * @lost_doorbells: of them, those that did not arrive
 * @cpu_doorbells: the kernel's writes to these doorbells
 * @cpu_doorbell_maps: user mappings of the doorbell page
 * @cpu_memory_maps: times that GPU memory was mapped for the CPU
 * @rings_in_gpu: both rings lie in device memory, as the kernel reports
 * @data_in_gpu: the data lies in device memory
 */
struct gpu_proof {
	uint64_t gpu_doorbells;
	uint64_t bus_doorbells;
	uint64_t lost_doorbells;
	uint64_t cpu_doorbells;
	uint64_t cpu_doorbell_maps;
	uint64_t cpu_memory_maps;
	bool shared;
	bool rings_in_gpu;
	bool data_in_gpu;
};

/* NULL after an error was reported. */
struct gpu *gpu_open(const struct demo *demo);
void gpu_close(struct gpu *gpu);

/* Pattern rounds in both directions; @cpu counts the CPU's half of them. */
void gpu_run(struct gpu *gpu, const struct demo *demo, struct tally *tally,
	     struct tally *cpu);

/* Random 4 KiB reads, @depth in flight, for @seconds; nothing else runs. */
bool gpu_rate(struct gpu *gpu, const struct demo *demo, unsigned int depth,
	      unsigned int seconds, struct rate *rate);
bool gpu_proof(struct gpu *gpu, struct gpu_proof *proof);

#endif /* DEMO_GPU_H */
