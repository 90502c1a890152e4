// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer: give controllers to the driver, see what can reach what, and ask a
 * controller what it can do, what it is doing and why it refused something.
 */
#include <nvmepeer.h>
#include <string.h>

#include "nvme-peer.h"

static const struct command {
	const char *name;
	int (*run)(struct report *report, const struct options *options, int argc, char **argv);
	unsigned int options;
	const char *arguments;
	const char *purpose;
} commands[] = {
	{ "list", command_list, 0, "", "controllers bound to nvme-peer" },
	{ "bind", command_bind, OPTION_DRY_RUN | OPTION_FORCE | OPTION_PERSIST,
	  "DEVICE... [--dry-run] [--force] [--persist]",
	  "give NVMe controllers that nobody uses to nvme-peer; --persist: also at each boot" },
	{ "unbind", command_unbind, OPTION_DRY_RUN | OPTION_FORCE | OPTION_PERSIST,
	  "DEVICE... [--dry-run] [--force] [--persist]",
	  "give them back to the driver they had; --persist: also at the next boot" },
	{ "topo", command_topo, 0, "[PCI-ADDRESS...]",
	  "bridges between GPUs, or other functions, and controllers, and what is in the way" },
	{ "doctor", command_doctor, 0, "", "what this machine lacks, and the cure" },
	{ "info", command_info, 0, "NODE", "limits, facts and state of a controller" },
	{ "smart", command_smart, 0, "NODE", "the controller's own counters and health" },
	{ "stat", command_stat, 0, "NODE [SECONDS]",
	  "what the kernel counts of queues and disks: since they are there, or by the second" },
	{ "top", command_top, OPTION_COUNT, "NODE [--count N]", "the same each second, until interrupted" },
	{ "reset", command_reset, 0, "NODE", "reset the controller; queue pairs are to be re-armed" },
	{ "route", command_route, OPTION_FD, "NODE PCI-ADDRESS | NODE --fd N",
	  "can the controller and a device, or a dma-buf, reach each other?" },
	{ "import-check", command_import_check, OPTION_FD | OPTION_HOST | OPTION_REQUIRE_DEVICE,
	  "NODE --fd N | NODE --host BYTES  [--require-device]",
	  "import a dma-buf for a moment and say where it lies" },
	{ "events", command_events, OPTION_COUNT, "[--count N]",
	  "what happens to the queue pairs of all controllers, as it happens" },
	{ "bench", command_bench,
	  OPTION_INTO | OPTION_FD | OPTION_CUDA | OPTION_RANGES | OPTION_POLLED | OPTION_WRITE |
	  OPTION_FORCE | OPTION_SIZE | OPTION_ENTRIES | OPTION_SECONDS,
	  "NODE NAMESPACE [--into [--fd N | --cuda N] [--ranges N]] [--polled] [--write --force] [--size BYTES] [--entries N] [--seconds N]",
	  "how fast the CPU reads or writes, with its own memory or an imported buffer" },
	{ "qp", command_qp, OPTION_ENTRIES, "list | status PID FD | check NODE NAMESPACE [--entries N]",
	  "queue pairs of all processes; one of them; try one with the CPU as the peer" },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_usage(FILE *out)
{
	size_t i;

	fputs("usage: nvme-peer COMMAND ... [-o table|json]\n\n", out);
	for (i = 0; i < COMMANDS; i++)
		fprintf(out, "  %s %s\n      %s\n", commands[i].name,
			commands[i].arguments, commands[i].purpose);
	fputs("\nDEVICE is a PCI address or a controller's node, /dev/nvmeX or /dev/nvmepX;\n"
	      "NODE is /dev/nvmepX.  Both may leave out /dev/.\n"
	      "Exit status: 0 yes, 1 no or failed, 2 usage.\n", out);
}

static int run_command(const struct command *command, const struct options *options, int argc,
		       char **argv)
{
	unsigned int foreign = options->given & ~command->options;
	struct report report;
	int status;

	if (foreign) {
		fprintf(stderr, "nvme-peer: %s takes no --%s; see nvme-peer --help\n", command->name,
			option_name(foreign));
		return EXIT_USAGE;
	}
	report_begin(&report, stdout, options->json);
	status = command->run(&report, options, argc, argv);
	report_end(&report);
	if (fflush(stdout) || ferror(stdout)) {
		perror("nvme-peer: standard output");
		return EXIT_REFUSED;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	size_t i;

	if (parse_options(&argc, argv, &options))
		return EXIT_USAGE;
	if (options.given & OPTION_HELP || (argc && !strcmp(argv[0], "help"))) {
		print_usage(stdout);
		return 0;
	}
	if (options.given & OPTION_VERSION) {
		printf("nvme-peer %s\n", nvmepeer_version());
		return 0;
	}
	if (!argc) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[0], commands[i].name))
			return run_command(&commands[i], &options, argc - 1, argv + 1);
	return usage_error("no such command", argv[0]);
}
