// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer reset: reset a controller.  Its queue pairs are quiesced until their owners
 * re-arm them.
 */
#include <errno.h>
#include <string.h>

#include "nvme-peer.h"
#include "sysfs.h"

#define CLASS "/sys/class/nvme-peer/"

int command_reset(struct report *report, const struct options *options, int argc, char **argv)
{
	char state[SYSFS_TEXT];
	const char *node;
	int error;

	(void)options;
	if (argc != 1)
		return usage_error("reset takes one controller node", NULL);
	node = strncmp(argv[0], "/dev/", 5) ? argv[0] : argv[0] + 5;
	error = strchr(node, '/') || !sysfs_exists(CLASS "%s/reset_controller", node) ? -ENODEV :
		sysfs_write("1", CLASS "%s/reset_controller", node);
	if (error) {
		fprintf(stderr, "nvme-peer: %s: %s\n", node, strerror(-error));
		return EXIT_REFUSED;
	}
	sysfs_read(state, CLASS "%s/state", node);
	report_text(report, "node", node);
	report_text(report, "state", state);
	report_number(report, "generation", sysfs_number(0, CLASS "%s/generation", node),
		      "resets so far");
	return 0;
}
