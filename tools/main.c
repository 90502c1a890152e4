// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer: bind controllers, show routes between devices, and query controllers and
 * queue pairs.
 */
#include <nvmepeer.h>
#include <string.h>

#include "nvme-peer.h"

#define BINDING (OPTION_DRY_RUN | OPTION_FORCE | OPTION_PERSIST)
#define BENCH                                                                                         \
	(OPTION_INTO | OPTION_FD | OPTION_CUDA | OPTION_RANGES | OPTION_POLLED | OPTION_WRITE |       \
	 OPTION_FORCE | OPTION_SIZE | OPTION_ENTRIES | OPTION_SECONDS | OPTION_SWEEP)

#define SERVE (OPTION_WRITE | OPTION_FORCE | OPTION_SIZE | OPTION_ENTRIES | OPTION_SECONDS)
#define STORE (OPTION_SIZE | OPTION_COUNT | OPTION_FORCE | OPTION_ENTRIES | OPTION_SECONDS)

enum { TEXT = FORMAT_TABLE, BOTH = FORMAT_TABLE | FORMAT_JSON };

static const struct command {
	const char *name;
	int (*run)(struct report *report, const struct options *options, int argc, char **argv);
	unsigned int options;
	unsigned int formats;
	const char *arguments;
	const char *purpose;
} commands[] = {
	{ "list", command_list, 0, BOTH, "", "controllers bound to nvme-peer" },
	{ "bind", command_bind, BINDING, BOTH, "DEVICE...", "bind unused NVMe controllers to nvme-peer" },
	{ "unbind", command_unbind, BINDING, BOTH, "DEVICE...",
	  "bind them to the driver that the kernel chooses" },
	{ "topo", command_topo, 0, BOTH | FORMAT_SVG | FORMAT_DOT, "[PCI-ADDRESS...]",
	  "bridges and routes between GPUs and controllers, and what blocks them" },
	{ "doctor", command_doctor, 0, BOTH, "", "check this machine: problems and their cures" },
	{ "info", command_info, 0, BOTH, "NODE", "limits, properties and state of a controller" },
	{ "smart", command_smart, 0, BOTH, "NODE", "counters and health of a controller (SMART)" },
	{ "stat", command_stat, 0, BOTH, "NODE [SECONDS]",
	  "counters of queues and disks: totals, or rates over SECONDS" },
	{ "top", command_top, OPTION_COUNT, TEXT, "NODE",
	  "rates of each second by queue, disk and tenant, until interrupted" },
	{ "metrics", command_metrics, 0, TEXT, "[NODE...]",
	  "state and counters as OpenMetrics text, for a node exporter" },
	{ "reset", command_reset, 0, BOTH, "NODE",
	  "reset a controller; its queue pairs have to be re-armed" },
	{ "route", command_route, OPTION_FD, BOTH, "NODE [PCI-ADDRESS]",
	  "route between a controller and a device or a dma-buf" },
	{ "import-check", command_import_check, OPTION_FD | OPTION_HOST | OPTION_REQUIRE_DEVICE, BOTH,
	  "NODE", "import a dma-buf, show its placement, and release it" },
	{ "events", command_events, OPTION_COUNT, BOTH, "",
	  "events of the queue pairs of all controllers as they occur" },
	{ "bench", command_bench, BENCH, BOTH | FORMAT_FIO | FORMAT_SVG, "NODE NAMESPACE",
	  "rate and latency of reads or writes of the CPU" },
	{ "qp", command_qp, OPTION_ENTRIES, BOTH, "list | status PID FD | check NODE NAMESPACE",
	  "queue pairs of all processes; one of them; test one with the CPU as the peer" },
	{ "serve", command_serve, SERVE, BOTH, "check | bench PATH",
	  "verify or measure a served queue pair on a block device or a file" },
	{ "file", command_file, 0, BOTH, "check PATH... | prepare PATH SIZE",
	  "can a mediated queue pair access a file; write zeros to its unwritten parts" },
	{ "store", command_store, STORE, BOTH, "create | list | check | bench MEMBER...",
	  "pages that survive a restart: make a store, show, verify, measure it" },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static void print_usage(FILE *out)
{
	size_t i;

	fputs("usage: nvme-peer COMMAND [ARGUMENT...] [OPTION...]\n\n", out);
	for (i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-13s %s\n", commands[i].name, commands[i].purpose);
	fputs("\n  -h, --help     this text, or that of a command: nvme-peer COMMAND --help\n"
	      "  --version      version of the command\n\n"
	      "DEVICE is a PCI address or a controller's node, /dev/nvmeX or /dev/nvmepX; NODE is\n"
	      "/dev/nvmepX, NAMESPACE is /dev/ngpXnY.  /dev/ may be omitted.\n"
	      "Exit status: 0 success, 1 refused or failed, 2 usage.\n", out);
}

static void print_help(const struct command *command, FILE *out)
{
	fprintf(out, "usage: nvme-peer %s%s%s [OPTION...]\n\n%s\n\n", command->name,
		command->arguments[0] ? " " : "", command->arguments, command->purpose);
	option_help(command->options, command->formats, out);
}

/* "help", "help COMMAND", "COMMAND --help". */
static int help(const char *name)
{
	const struct command *command = name ? find_command(name) : NULL;

	if (name && !command)
		return usage_error("unknown command", name);
	if (command)
		print_help(command, stdout);
	else
		print_usage(stdout);
	return 0;
}

static int check_options(const struct command *command, const struct options *options)
{
	unsigned int foreign = options->given & ~(command->options | OPTION_VERBOSE);

	if (foreign)
		fprintf(stderr, "nvme-peer: %s takes no --%s; see nvme-peer help %s\n", command->name,
			option_name(foreign), command->name);
	else if (!(options->format & command->formats))
		fprintf(stderr, "nvme-peer: %s takes no -o %s; see nvme-peer help %s\n", command->name,
			format_name(options->format), command->name);
	else
		return 0;
	return EXIT_USAGE;
}

static int run_command(const struct command *command, const struct options *options, int argc,
		       char **argv)
{
	int status = check_options(command, options);
	struct report report;

	if (status)
		return status;
	report_begin(&report, stdout, options->format & (FORMAT_JSON | FORMAT_FIO));
	report.verbose = options->given & OPTION_VERBOSE;
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
	const struct command *command;
	struct options options;

	if (parse_options(&argc, argv, &options))
		return EXIT_USAGE;
	if (argc && !strcmp(argv[0], "help"))
		return help(argv[1]);
	if (options.given & OPTION_HELP)
		return help(argv[0]);
	if (options.given & OPTION_VERSION || (argc && !strcmp(argv[0], "version"))) {
		printf("nvme-peer %s\n", nvmepeer_version());
		return 0;
	}
	if (!argc) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	command = find_command(argv[0]);
	return command ? run_command(command, &options, argc - 1, argv + 1) :
			 usage_error("unknown command", argv[0]);
}
