// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The command line of nvme-peer: options, numbers, usage errors; see arguments.h.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"

/* Bits of options are returned by getopt_long() above the range of characters. */
enum { LONG_OPTION = 0x1000000 };

static const struct option long_options[] = {
	{ "output-format", required_argument, NULL, 'o' },
	{ "fd", required_argument, NULL, LONG_OPTION | OPTION_FD },
	{ "host", required_argument, NULL, LONG_OPTION | OPTION_HOST },
	{ "require-device", no_argument, NULL, LONG_OPTION | OPTION_REQUIRE_DEVICE },
	{ "count", required_argument, NULL, LONG_OPTION | OPTION_COUNT },
	{ "entries", required_argument, NULL, LONG_OPTION | OPTION_ENTRIES },
	{ "into", no_argument, NULL, LONG_OPTION | OPTION_INTO },
	{ "size", required_argument, NULL, LONG_OPTION | OPTION_SIZE },
	{ "seconds", required_argument, NULL, LONG_OPTION | OPTION_SECONDS },
	{ "cuda", required_argument, NULL, LONG_OPTION | OPTION_CUDA },
	{ "polled", no_argument, NULL, LONG_OPTION | OPTION_POLLED },
	{ "ranges", required_argument, NULL, LONG_OPTION | OPTION_RANGES },
	{ "write", no_argument, NULL, LONG_OPTION | OPTION_WRITE },
	{ "sweep", no_argument, NULL, LONG_OPTION | OPTION_SWEEP },
	{ "dry-run", no_argument, NULL, LONG_OPTION | OPTION_DRY_RUN },
	{ "force", no_argument, NULL, LONG_OPTION | OPTION_FORCE },
	{ "persist", no_argument, NULL, LONG_OPTION | OPTION_PERSIST },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, LONG_OPTION | OPTION_VERSION },
	{ }
};

static const struct {
	unsigned int option;
	const char *argument;
	const char *purpose;
} descriptions[] = {
	{ OPTION_FD, "N", "dma-buf that is open as descriptor N" },
	{ OPTION_HOST, "BYTES", "host memory of that size" },
	{ OPTION_REQUIRE_DEVICE, "", "fail if the exporter delivers host memory" },
	{ OPTION_COUNT, "N", "end after N of them" },
	{ OPTION_ENTRIES, "N", "commands in flight, or entries of each ring" },
	{ OPTION_SIZE, "BYTES", "bytes of a command (4096), or of a page" },
	{ OPTION_SECONDS, "N", "duration, with --sweep of each depth (5)" },
	{ OPTION_WRITE, "", "write, which destroys the contents of the disk; requires --force" },
	{ OPTION_POLLED, "", "poll a queue without interrupts" },
	{ OPTION_INTO, "", "data in an imported buffer: host memory, --fd or --cuda" },
	{ OPTION_CUDA, "N", "memory of the GPU that CUDA numbers N" },
	{ OPTION_RANGES, "N", "each command is a list of N ranges, at most 32" },
	{ OPTION_SWEEP, "", "measure depths 1, 2, 4, ... up to --entries" },
	{ OPTION_DRY_RUN, "", "show each write as a shell command, write nothing" },
	{ OPTION_FORCE, "", "continue although the disk is in use or loses its contents" },
	{ OPTION_PERSIST, "", "also at each boot, by a udev rule" },
};

static const char *const formats[] = { "table", "json", "fio", "svg", "dot" };

enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && end != text && !*end && text[0] != '-' && *value <= most;
}

int usage_error(const char *what, const char *argument)
{
	fprintf(stderr, "nvme-peer: %s%s%s; see nvme-peer --help\n", what,
		argument ? ": " : "", argument ? argument : "");
	return EXIT_USAGE;
}

const char *option_name(unsigned int set)
{
	size_t i;

	for (i = 0; long_options[i].name; i++)
		if (long_options[i].val & LONG_OPTION && (unsigned int)long_options[i].val & set)
			return long_options[i].name;
	return "";
}

const char *format_name(unsigned int format)
{
	size_t i;

	for (i = 0; i + 1 < FORMATS && !(format & 1u << i); i++)
		;
	return formats[i];
}

static void print_option(const char *option, const char *argument, const char *purpose, FILE *out)
{
	fprintf(out, "  %s%s%-*s  %s\n", option, *argument ? " " : "",
		(int)(21 - strlen(option) - !!*argument), argument, purpose);
}

void option_help(unsigned int set, unsigned int format, FILE *out)
{
	char text[32];
	size_t i;

	for (i = 0; i < sizeof(descriptions) / sizeof(descriptions[0]); i++) {
		if (!(set & descriptions[i].option))
			continue;
		snprintf(text, sizeof(text), "--%s", option_name(descriptions[i].option));
		print_option(text, descriptions[i].argument, descriptions[i].purpose, out);
	}
	fputs("  -o, --output-format FORMAT\n                           ", out);
	for (i = 0; i < FORMATS; i++)
		if (format & 1u << i)
			fprintf(out, "%s%s", i ? ", " : "", formats[i]);
	fputc('\n', out);
	print_option("-v, --verbose", "", "exact numbers beside rounded ones, and each write", out);
	print_option("-h, --help", "", "this text", out);
}

static int parse_format(const char *text, struct options *options)
{
	size_t i;

	for (i = 0; i < FORMATS; i++)
		if (!strcmp(text, formats[i])) {
			options->format = 1u << i;
			return 0;
		}
	return usage_error("no output format", text);
}

/* Parse the number of an option that takes one. */
static int parse_value(unsigned int option, const char *text, struct options *options)
{
	bool is_number = true;
	uint64_t value;

	switch (option) {
	case OPTION_FD:
		is_number = parse_number(text, INT32_MAX, &value);
		options->fd = (int)value;
		break;
	case OPTION_HOST:
		is_number = parse_number(text, SIZE_MAX / 2, &options->host_bytes) &&
			    options->host_bytes;
		break;
	case OPTION_COUNT:
		is_number = parse_number(text, UINT32_MAX, &options->count);
		break;
	case OPTION_ENTRIES:
		is_number = parse_number(text, UINT32_MAX, &value);
		options->entries = (uint32_t)value;
		break;
	case OPTION_SIZE:
		is_number = parse_number(text, UINT32_MAX, &value);
		options->size = (uint32_t)value;
		break;
	case OPTION_SECONDS:
		/* At most a day. */
		is_number = parse_number(text, 86400, &options->seconds) && options->seconds;
		break;
	case OPTION_CUDA:
		is_number = parse_number(text, INT32_MAX, &value);
		options->cuda = (int)value;
		break;
	case OPTION_RANGES:
		is_number = parse_number(text, UINT32_MAX, &value);
		options->ranges = (uint32_t)value;
		break;
	default:
		break;
	}
	return is_number ? 0 : usage_error(option_name(option), text);
}

int parse_options(int *argc, char **argv, struct options *options)
{
	int option, status;

	*options = (struct options){ .format = FORMAT_TABLE, .fd = -1, .count = UINT64_MAX };
	optind = 0;
	while ((option = getopt_long(*argc, argv, "o:hv", long_options, NULL)) != -1) {
		if (option == '?')
			return usage_error("invalid option", NULL);
		if (option == 'h')
			option = LONG_OPTION | OPTION_HELP;
		if (option == 'v')
			option = LONG_OPTION | OPTION_VERBOSE;
		if (option == 'o') {
			status = parse_format(optarg, options);
		} else {
			option &= LONG_OPTION - 1;
			options->given |= (unsigned int)option;
			status = parse_value((unsigned int)option, optarg, options);
		}
		if (status)
			return status;
	}
	*argc -= optind;
	memmove(argv, argv + optind, (size_t)(*argc + 1) * sizeof(*argv));
	return 0;
}
