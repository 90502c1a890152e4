/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The command line of nvme-peer: the exit statuses, and what all subcommands
 * do with their arguments.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	EXIT_REFUSED = 1,	/* the answer is no, or the call failed */
	EXIT_USAGE = 2,
};

/* parse_number() - decimal or 0x; true if @text is nothing but a number. */
bool parse_number(const char *text, uint64_t most, uint64_t *value);

/* usage_error() - say what is wrong with the command line. EXIT_USAGE. */
int usage_error(const char *what, const char *argument);

#endif /* ARGUMENTS_H */
