/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The command line of nvme-peer: exit statuses, options of all subcommands, and
 * arguments.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	EXIT_REFUSED = 1,	/* the result is negative, or a call failed */
	EXIT_USAGE = 2,
};

/* Options that only some subcommands take, as bits. */
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
	OPTION_SWEEP = 1 << 17,
	OPTION_VERBOSE = 1 << 18,
};

/* Output formats, as bits. All commands that take -o have the first two. */
enum {
	FORMAT_TABLE = 1 << 0,
	FORMAT_JSON = 1 << 1,
	FORMAT_FIO = 1 << 2,
	FORMAT_SVG = 1 << 3,
	FORMAT_DOT = 1 << 4,
};

/**
 * struct options - the options of one command line
 * @given: OPTION_* that were given
 * @format: FORMAT_* of -o
 * @fd: of --fd
 * @host_bytes: of --host
 * @count: of --count; UINT64_MAX without it
 * @entries: of --entries
 * @size: of --size
 * @seconds: of --seconds
 * @cuda: of --cuda
 * @ranges: of --ranges
 */
struct options {
	unsigned int given;
	unsigned int format;
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
 * parse_options() - parse the options of a command line, at any position
 * @argc: in: number of arguments with the program; out: without program and options
 * @argv: permuted: the remaining arguments come first
 * @options: receives the options
 *
 * Returns 0, or EXIT_USAGE after an error message.
 */
int parse_options(int *argc, char **argv, struct options *options);

/* option_name() - the name of the first of a set of OPTION_*, for an error message. */
const char *option_name(unsigned int set);

/* option_help() - print a line for each of a set of OPTION_*, and those of all commands. */
void option_help(unsigned int set, unsigned int formats, FILE *out);

/* format_name() - the name of a FORMAT_*. */
const char *format_name(unsigned int format);

/* usage_error() - print a usage error. Returns EXIT_USAGE. */
int usage_error(const char *what, const char *argument);

/* parse_number() - decimal or 0x; true if @text is a number up to @most and nothing else. */
bool parse_number(const char *text, uint64_t most, uint64_t *value);

#endif /* ARGUMENTS_H */
