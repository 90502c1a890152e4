/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The command line of nvme-peer: the exit statuses, the options of all
 * subcommands, and what these do with their arguments.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	EXIT_REFUSED = 1,	/* the answer is no, or the call failed */
	EXIT_USAGE = 2,
};

/* Options that only some subcommands take, as bits of a set. */
enum {
	OPTION_FD = 1 << 0,
	OPTION_HOST = 1 << 1,
	OPTION_REQUIRE_DEVICE = 1 << 2,
	OPTION_COUNT = 1 << 3,
	OPTION_ENTRIES = 1 << 4,
	OPTION_DRY_RUN = 1 << 5,
	OPTION_FORCE = 1 << 6,
	OPTION_PERSIST = 1 << 7,
	OPTION_HELP = 1 << 8,
	OPTION_VERSION = 1 << 9,
	OPTION_INTO = 1 << 10,
	OPTION_SIZE = 1 << 11,
	OPTION_SECONDS = 1 << 12,
	OPTION_CUDA = 1 << 13,
	OPTION_POLLED = 1 << 14,
	OPTION_RANGES = 1 << 15,
	OPTION_WRITE = 1 << 16,
};

/**
 * struct options - the options of one command line
 * @given: OPTION_* that were there
 * @json: -o json
 * @fd: of --fd
 * @host_bytes: of --host
 * @count: of --count; without it, no end
 * @entries: of --entries
 * @size: of --size
 * @seconds: of --seconds
 * @cuda: of --cuda
 * @ranges: of --ranges
 */
struct options {
	unsigned int given;
	bool json;
	int fd;
	uint64_t host_bytes;
	uint64_t count;
	uint32_t entries;
	uint32_t size;
	uint64_t seconds;
	int cuda;
	uint32_t ranges;
};

/**
 * parse_options() - take the options off a command line, wherever they stand
 * @argc: of the line with its program; out: of what is left
 * @argv: permuted: what is left comes first
 * @options: receives them
 *
 * Returns 0, or EXIT_USAGE after it said what is wrong.
 */
int parse_options(int *argc, char **argv, struct options *options);

/* option_name() - the name of one of a set of OPTION_*, for a complaint. */
const char *option_name(unsigned int set);

/* usage_error() - say what is wrong with the command line. EXIT_USAGE. */
int usage_error(const char *what, const char *argument);

/* parse_number() - decimal or 0x; true if @text is nothing but a number. */
bool parse_number(const char *text, uint64_t most, uint64_t *value);

#endif /* ARGUMENTS_H */
