/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The tenants of a controller: the processes with queue pairs, and what the kernel counts of those
 * in mediated mode.
 */
#ifndef TENANTS_H
#define TENANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "nvme-peer.h"

enum { TENANTS = 128, TENANT_NUMBERS = 6 };

/**
 * struct tenant - a process with queue pairs
 * @pid: process
 * @command: its name
 * @pairs: number of queue pairs
 * @live: those in state live
 * @mediated: those in mediated mode
 * @windows: windows of these
 * @losses: sum of the losses of their entries
 * @numbers: of commands in mediated mode: reads, bytes read, writes, bytes written, refused, failed
 * @queues: identifiers of those in other modes
 */
struct tenant {
	int pid;
	char command[64];
	unsigned int pairs;
	unsigned int live;
	unsigned int mediated;
	unsigned int windows;
	uint64_t losses;
	uint64_t numbers[TENANT_NUMBERS];
	char queues[64];
};

/**
 * struct tenants - those of a controller, at one time
 * @node: the controller
 * @count: number of @tenants
 * @tenants: the processes
 */
struct tenants {
	const char *node;
	size_t count;
	struct tenant tenants[TENANTS];
};

/*
 * tenants_read() - read those that the user may access.  A queue pair that several descriptors have open
 * counts for each.
 */
void tenants_read(struct tenants *all, const char *node);

/* tenants_subtract() - subtract the numbers of @earlier from those of @later. */
void tenants_subtract(struct tenants *later, const struct tenants *earlier);

/* tenants_print() - a table; numbers in total, or per second of @nanoseconds unless these are 0. */
void tenants_print(FILE *out, const struct tenants *all, uint64_t nanoseconds);

/* tenants_report() - a list "tenants". */
void tenants_report(struct report *report, const struct tenants *all);

#endif /* TENANTS_H */
