/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The subcommands of nvme-peer.  Each gets the options and the arguments after its name
 * and returns the exit status: 0, EXIT_REFUSED or EXIT_USAGE (arguments.h).
 */
#ifndef NVME_PEER_H
#define NVME_PEER_H

#include "arguments.h"
#include "report.h"

int command_list(struct report *report, const struct options *options, int argc, char **argv);
int command_bind(struct report *report, const struct options *options, int argc, char **argv);
int command_unbind(struct report *report, const struct options *options, int argc, char **argv);
int command_topo(struct report *report, const struct options *options, int argc, char **argv);
int command_doctor(struct report *report, const struct options *options, int argc, char **argv);
int command_info(struct report *report, const struct options *options, int argc, char **argv);
int command_smart(struct report *report, const struct options *options, int argc, char **argv);
int command_stat(struct report *report, const struct options *options, int argc, char **argv);
int command_top(struct report *report, const struct options *options, int argc, char **argv);
int command_metrics(struct report *report, const struct options *options, int argc, char **argv);
int command_reset(struct report *report, const struct options *options, int argc, char **argv);
int command_route(struct report *report, const struct options *options, int argc, char **argv);
int command_import_check(struct report *report, const struct options *options, int argc,
			 char **argv);
int command_events(struct report *report, const struct options *options, int argc, char **argv);
int command_bench(struct report *report, const struct options *options, int argc, char **argv);
int command_serve(struct report *report, const struct options *options, int argc, char **argv);
int command_file(struct report *report, const struct options *options, int argc, char **argv);
int command_store(struct report *report, const struct options *options, int argc, char **argv);
int command_qp(struct report *report, const struct options *options, int argc, char **argv);

#endif /* NVME_PEER_H */
