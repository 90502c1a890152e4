/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPU's half of the pattern rounds, through io_uring. */
#ifndef DEMO_CPU_H
#define DEMO_CPU_H

#include "demo.h"

struct cpu;

struct cpu *cpu_open(const struct demo *demo);
void cpu_close(struct cpu *cpu);

/* Write the pattern to a region, or read it and count wrong words. */
bool cpu_write(struct cpu *cpu, const struct region *region, uint64_t seed,
	       struct tally *tally);
bool cpu_verify(struct cpu *cpu, const struct region *region, uint64_t seed,
		struct tally *tally);
bool cpu_rate(struct cpu *cpu, const struct region *region, unsigned int depth,
	      unsigned int seconds, struct rate *rate);

/* The controller's own count of read commands: SMART log, host read commands. */
bool cpu_smart_reads(struct cpu *cpu, uint64_t *reads);

#endif /* DEMO_CPU_H */
