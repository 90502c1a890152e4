/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The subcommands of nvme-peer.  Each gets what stands behind its name and
 * returns the exit status: 0, EXIT_REFUSED or EXIT_USAGE.
 */
#ifndef NVME_PEER_H
#define NVME_PEER_H

#include "report.h"

enum {
	EXIT_REFUSED = 1,	/* the answer is no, or the call failed */
	EXIT_USAGE = 2,
};

int command_list(struct report *report, int argc, char **argv);
int command_info(struct report *report, int argc, char **argv);
int command_route(struct report *report, int argc, char **argv);
int command_import_check(struct report *report, int argc, char **argv);
int command_qp(struct report *report, int argc, char **argv);

/* parse_number() - decimal or 0x; true if @text is nothing but a number. */
bool parse_number(const char *text, uint64_t most, uint64_t *value);

/* usage_error() - say what is wrong with the command line. EXIT_USAGE. */
int usage_error(const char *what, const char *argument);

#endif /* NVME_PEER_H */
