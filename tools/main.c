// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer: ask an nvme-peer controller what it can do, what it is doing and
 * why it refused something.
 */
#include <nvmepeer.h>
#include <string.h>

#include "arguments.h"
#include "nvme-peer.h"

static const struct {
	const char *name;
	int (*run)(struct report *report, int argc, char **argv);
	const char *arguments;
	const char *purpose;
} commands[] = {
	{ "list", command_list, "", "controllers bound to nvme-peer" },
	{ "info", command_info, "NODE", "limits, facts and state of a controller" },
	{ "route", command_route, "NODE PCI-ADDRESS | NODE --fd N",
	  "can the controller and a device, or a dma-buf, reach each other?" },
	{ "import-check", command_import_check, "NODE --fd N | NODE --host BYTES  [--require-device]",
	  "import a dma-buf for a moment and say where it lies" },
	{ "events", command_events, "[--count N]",
	  "what happens to the queue pairs of all controllers, as it happens" },
	{ "qp", command_qp, "list | status PID FD | check NODE NAMESPACE [--entries N]",
	  "queue pairs of all processes; one of them; try one with the CPU as the peer" },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *out)
{
	size_t i;

	fputs("usage: nvme-peer [--json] COMMAND ...\n\n", out);
	for (i = 0; i < COMMANDS; i++)
		fprintf(out, "  %s %s\n      %s\n", commands[i].name,
			commands[i].arguments, commands[i].purpose);
	fputs("\nNODE is /dev/nvmepX or nvmepX.\n"
	      "Exit status: 0 yes, 1 no or failed, 2 usage.\n", out);
}

static int run_command(size_t command, bool json, int argc, char **argv)
{
	struct report report;
	int status;

	report_begin(&report, stdout, json);
	status = commands[command].run(&report, argc, argv);
	report_end(&report);
	if (fflush(stdout) || ferror(stdout)) {
		perror("nvme-peer: standard output");
		return EXIT_REFUSED;
	}
	return status;
}

int main(int argc, char **argv)
{
	bool json = false;
	size_t i;

	argv++;
	argc--;
	if (argc && !strcmp(argv[0], "--json")) {
		json = true;
		argv++;
		argc--;
	}
	if (!argc) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "help")) {
		print_usage(stdout);
		return 0;
	}
	if (!strcmp(argv[0], "--version")) {
		printf("nvme-peer %s\n", nvmepeer_version());
		return 0;
	}
	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[0], commands[i].name))
			return run_command(i, json, argc - 1, argv + 1);
	return usage_error("no such command", argv[0]);
}
