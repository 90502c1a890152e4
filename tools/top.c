// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer top: the rates of each second by queue and disk, the commands that the controller
 * counted, and the tenants, which are the processes with queue pairs.
 */
#include <string.h>
#include <unistd.h>

#include "node.h"
#include "nvme-peer.h"
#include "smart.h"
#include "stat.h"
#include "tenants.h"
#include "units.h"

enum { DATA_UNIT = 512000 };

/* Controllers may update these counters less often than once a second. */
static const char *const controller_numbers[] = {
	"host_read_commands", "data_units_read", "host_write_commands", "data_units_written",
};

enum { CONTROLLER_NUMBERS = sizeof(controller_numbers) / sizeof(controller_numbers[0]) };

/**
 * struct moment - all that is shown, at one time
 * @sample: counters of the kernel
 * @tenants: processes with queue pairs
 * @has_smart: the counters of the controller could be read
 * @numbers: those counters
 */
struct moment {
	struct stat_sample sample;
	struct tenants tenants;
	bool has_smart;
	uint64_t numbers[CONTROLLER_NUMBERS];
};

static void read_moment(struct moment *moment, const char *node)
{
	uint8_t log[SMART_BYTES] = { 0 };
	struct nvmepeer *ctrl;
	size_t i;

	stat_read(&moment->sample, node);
	tenants_read(&moment->tenants, node);
	moment->has_smart = false;
	if (node_ctrl_open(node, &ctrl))
		return;
	moment->has_smart = !smart_read(ctrl, log);
	nvmepeer_close(ctrl);
	for (i = 0; i < CONTROLLER_NUMBERS; i++)
		moment->numbers[i] = smart_number(log, controller_numbers[i]);
}

static void print_controller(FILE *out, const struct moment *earlier, const struct moment *later)
{
	double seconds = (double)(later->sample.time - earlier->sample.time) / 1e9;
	char read[UNITS_TEXT], written[UNITS_TEXT];
	double rates[CONTROLLER_NUMBERS];
	size_t i;

	if (!earlier->has_smart || !later->has_smart)
		return;
	for (i = 0; i < CONTROLLER_NUMBERS; i++)
		rates[i] = (double)(later->numbers[i] - earlier->numbers[i]) / seconds;
	fprintf(out, "controller, with the commands of peers: %.1f reads/s, %s/s, %.1f writes/s, %s/s\n",
		rates[0], units_disk((uint64_t)(rates[1] * DATA_UNIT), read), rates[2],
		units_disk((uint64_t)(rates[3] * DATA_UNIT), written));
}

/* ---- The command --------------------------------------------------------- */

/* Overwrites the screen if the output is a terminal. */
int command_top(struct report *report, const struct options *options, int argc, char **argv)
{
	static struct moment earlier, later;
	static struct stat_sample difference;
	static struct tenants tenants;
	const char *node;
	uint64_t samples;

	if (argc != 1)
		return usage_error("top takes a controller node", NULL);
	node = stat_node(argv[0]);
	if (!node)
		return EXIT_REFUSED;
	read_moment(&earlier, node);
	for (samples = 0; samples < options->count; samples++) {
		sleep(1);
		read_moment(&later, node);
		difference = later.sample;
		stat_subtract(&difference, &earlier.sample);
		tenants = later.tenants;
		tenants_subtract(&tenants, &earlier.tenants);
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[J", report->out);
		print_controller(report->out, &earlier, &later);
		stat_print(report->out, &difference, true);
		tenants_print(report->out, &tenants, difference.time);
		fflush(report->out);
		earlier = later;
	}
	return 0;
}
