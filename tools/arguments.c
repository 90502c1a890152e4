// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The command line of nvme-peer: options, numbers, and complaints; see
 * arguments.h.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"

/* getopt_long() gives the set's bit beyond all characters. */
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
	{ "dry-run", no_argument, NULL, LONG_OPTION | OPTION_DRY_RUN },
	{ "force", no_argument, NULL, LONG_OPTION | OPTION_FORCE },
	{ "persist", no_argument, NULL, LONG_OPTION | OPTION_PERSIST },
	{ "help", no_argument, NULL, LONG_OPTION | OPTION_HELP },
	{ "version", no_argument, NULL, LONG_OPTION | OPTION_VERSION },
	{ }
};

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

static int parse_format(const char *text, struct options *options)
{
	options->json = !strcmp(text, "json");
	if (options->json || !strcmp(text, "table"))
		return 0;
	return usage_error("-o takes json or table", text);
}

/* The number of an option that has one. */
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
		/* A day, and no run is without any. */
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

	*options = (struct options){ .fd = -1, .count = UINT64_MAX };
	optind = 0;
	while ((option = getopt_long(*argc, argv, "o:h", long_options, NULL)) != -1) {
		if (option == '?')
			return usage_error("not understood", NULL);
		if (option == 'h')
			option = LONG_OPTION | OPTION_HELP;
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
