// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer bind, unbind: bind controllers to nvme-peer, or release them to the driver that
 * the kernel chooses.
 *
 * nvme-peer binds only with driver_override.  With --persist a udev rule sets the
 * override when the function appears, and runs bind, because at boot or after a rescan
 * of the bus the kernel's nvme driver may have bound the function first.
 */
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node.h"
#include "nvme-peer.h"
#include "pci.h"
#include "sysfs.h"
#include "disk_users.h"

#define DRIVER "nvme-peer"
#define FUNCTION "/sys/bus/pci/devices/"
#define DEBUG "/sys/kernel/debug/nvme-peer"
#define DRIVERS "/sys/bus/pci/drivers/"
#define PROBE "/sys/bus/pci/drivers_probe"
#define RULES "/etc/udev/rules.d/60-nvme-peer-"

/* Size of the longest rule. */
enum { RULE = 4096 + 512 };

/* ---- Writes -------------------------------------------------------------- */

/**
 * struct change - the writes of one bind or unbind
 * @report: output
 * @dry_run: show the writes only
 * @verbose: show them, on standard error
 * @status: EXIT_REFUSED once a write has failed
 */
struct change {
	struct report *report;
	bool dry_run;
	bool verbose;
	int status;
};

static struct change begin_change(struct report *report, const struct options *options)
{
	return (struct change){
		.report = report,
		.dry_run = options->given & OPTION_DRY_RUN,
		.verbose = options->given & OPTION_VERBOSE,
	};
}

static void report_error(struct change *change, const char *path, int error)
{
	fprintf(stderr, "nvme-peer: %s: %s\n", path, strerror(-error));
	change->status = EXIT_REFUSED;
}

/* Returns true if the write is to be made. */
static bool show_write(const struct change *change, const char *line)
{
	if (change->dry_run)
		report_text(change->report, NULL, line);
	else if (change->verbose)
		fprintf(stderr, "%s\n", line);
	return !change->dry_run;
}

/* Does nothing after a failure. */
static void change_file(struct change *change, const char *path, const char *text)
{
	char line[RULE + SYSFS_PATH];
	int error;

	if (change->status)
		return;
	snprintf(line, sizeof(line), text[strcspn(text, "\n ")] ? "echo '%.*s' > %s" : "echo %.*s > %s",
		 (int)strcspn(text, "\n"), text, path);
	if (!show_write(change, line))
		return;
	error = sysfs_write(text, "%s", path);
	if (error)
		report_error(change, path, error);
}

static void remove_file(struct change *change, const char *path)
{
	char line[SYSFS_PATH + 8];
	int error;

	if (change->status || !sysfs_exists("%s", path))
		return;
	snprintf(line, sizeof(line), "rm %s", path);
	if (!show_write(change, line))
		return;
	error = sysfs_remove("%s", path);
	if (error)
		report_error(change, path, error);
}

static void set_override(struct change *change, const struct pci_function *function,
			 const char *driver)
{
	char path[SYSFS_PATH];

	snprintf(path, sizeof(path), FUNCTION "%s/driver_override", function->address);
	change_file(change, path, driver);
}

static void unbind_driver(struct change *change, const struct pci_function *function)
{
	char path[SYSFS_PATH];

	if (!function->driver[0])
		return;
	snprintf(path, sizeof(path), DRIVERS "%s/unbind", function->driver);
	change_file(change, path, function->address);
}

/* The write succeeds even if the driver refuses the function; only the kernel log has the cause. */
static void probe_driver(struct change *change, const struct pci_function *function)
{
	char line[SYSFS_PATH];

	snprintf(line, sizeof(line), "echo %s > " PROBE, function->address);
	if (!change->status && show_write(change, line))
		sysfs_write(function->address, PROBE);
}

/* ---- The udev rule ------------------------------------------------------- */

static void rule_path(const struct pci_function *function, char path[SYSFS_PATH])
{
	snprintf(path, SYSFS_PATH, RULES "%s.rules", function->address);
}

/* udev checks for new rules every few seconds; the function may appear earlier. */
static void reload_udev(struct change *change)
{
	char *const command[] = { "udevadm", "control", "--reload", NULL };
	int status;
	pid_t child;

	if (change->status || !sysfs_exists("/run/udev/control"))
		return;
	if (!show_write(change, "udevadm control --reload"))
		return;
	if (posix_spawnp(&child, command[0], NULL, NULL, command, environ) ||
	    waitpid(child, &status, 0) < 0 || status)
		fprintf(stderr, "nvme-peer: udevadm control --reload failed; udev reads the rule within seconds\n");
}

static void write_rule(struct change *change, const struct pci_function *function)
{
	char path[SYSFS_PATH], program[SYSFS_PATH] = "", rule[RULE];

	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return;
	rule_path(function, path);
	snprintf(rule, sizeof(rule),
		 "ACTION==\"add\", SUBSYSTEM==\"pci\", KERNEL==\"%s\", ATTR{class}==\"0x010802\", TEST==\"%s\", "
		 "ATTR{driver_override}=\"" DRIVER "\", RUN{builtin}+=\"kmod load nvme_peer\", "
		 "RUN+=\"%s bind %s\"\n",
		 function->address, program, program, function->address);
	change_file(change, path, rule);
	reload_udev(change);
}

static void remove_rule(struct change *change, const struct pci_function *function)
{
	char path[SYSFS_PATH];

	rule_path(function, path);
	remove_file(change, path);
	reload_udev(change);
}

/* ---- Refusals ------------------------------------------------------------ */

static int refuse(const struct pci_function *function, const char *why, const char *help)
{
	fprintf(stderr, "nvme-peer: %s: %s\n  help:  %s\n", function->address, why, help);
	return EXIT_REFUSED;
}

static int refuse_used(const struct pci_function *function, const struct options *options)
{
	bool force = options->given & OPTION_FORCE;
	struct node_pairs pairs = { 0 };
	struct disk_users users;
	bool used, stop;
	size_t i;

	disk_users_find(function, &users);
	if (!strcmp(function->driver, DRIVER))
		node_pairs(function->node, &pairs);
	for (i = 0; i < users.count; i++)
		fprintf(stderr, "nvme-peer: %s: %s%s\n", function->address, users.texts[i],
			force ? ", which ends with I/O errors" : "");
	if (pairs.used)
		fprintf(stderr, "nvme-peer: %s: peers have %u queue pairs%s\n", function->address,
			pairs.used, force ? ", which end" : "");
	if (pairs.quarantined)
		fprintf(stderr,
			"nvme-peer: %s: processes or devices may store to the doorbells of %u quarantined "
			"queue IDs%s; " DEBUG "/%s/quarantine lists them\n",
			function->address, pairs.quarantined,
			force ? ", which the next driver may use" : "", function->node);
	stop = users.count || pairs.used;
	used = stop || pairs.quarantined;
	disk_users_free(&users);
	if (!used || force)
		return 0;
	if (stop)
		fprintf(stderr, "  help:  unmount, swapoff, stop or close it first; nothing was changed\n");
	else
		fprintf(stderr, "  help:  end these processes, or close the dma-bufs of the doorbells; nothing was changed\n");
	return EXIT_REFUSED;
}

/* ---- bind ---------------------------------------------------------------- */

/* Without an override the kernel chooses a driver, which need not be the previous one. */
static int clear_driver(struct change *change, const struct pci_function *function)
{
	set_override(change, function, "\n");
	probe_driver(change, function);
	return refuse(function, "nvme-peer refused it; the kernel may have bound another driver",
		      "see the kernel log (dmesg)");
}

static int show_owner(struct report *report, const char *address)
{
	const struct pci_function *function;
	struct pci pci;
	int status = 0;

	pci_scan(&pci);
	function = pci_find(&pci, address);
	if (function) {
		report_object(report, NULL);
		report_text(report, "pci_address", function->address);
		report_text(report, "driver", function->driver[0] ? function->driver : "none");
		report_text(report, "node", function->node[0] ? function->node : "none");
		report_object_end(report);
		status = strcmp(function->driver, DRIVER) != 0;
	}
	pci_free(&pci);
	return status;
}

static int bind_function(struct report *report, const struct options *options,
			 const struct pci_function *function)
{
	struct change change = begin_change(report, options);
	bool bound = !strcmp(function->driver, DRIVER);

	if (!bound && !sysfs_exists(DRIVERS DRIVER))
		return refuse(function, "the module is not loaded", "modprobe nvme_peer");
	if (!bound && refuse_used(function, options))
		return EXIT_REFUSED;
	if (!bound) {
		set_override(&change, function, DRIVER);
		unbind_driver(&change, function);
		probe_driver(&change, function);
	}
	if (options->given & OPTION_PERSIST)
		write_rule(&change, function);
	if (change.dry_run || change.status)
		return change.status;
	return show_owner(report, function->address) ? clear_driver(&change, function) : 0;
}

/* ---- unbind -------------------------------------------------------------- */

static int unbind_function(struct report *report, const struct options *options,
			   const struct pci_function *function)
{
	struct change change = begin_change(report, options);

	if (strcmp(function->driver, DRIVER) != 0)
		return refuse(function, "not bound to nvme-peer",
			      "nvme-peer list shows the bound controllers");
	if (refuse_used(function, options))
		return EXIT_REFUSED;
	if (options->given & OPTION_PERSIST)
		remove_rule(&change, function);
	set_override(&change, function, "\n");
	unbind_driver(&change, function);
	probe_driver(&change, function);
	if (change.dry_run || change.status)
		return change.status;
	show_owner(report, function->address);
	return 0;
}

/* ---- Both ---------------------------------------------------------------- */

static int each_function(struct report *report, const struct options *options, int count,
			 char **names,
			 int (*apply)(struct report *report, const struct options *options,
				      const struct pci_function *function))
{
	const struct pci_function *function;
	struct pci pci;
	int i, status = 0;

	if (!count)
		return usage_error("bind and unbind take PCI addresses or controller nodes", NULL);
	pci_scan(&pci);
	report_list(report, options->given & OPTION_DRY_RUN ? "writes" : "controllers");
	for (i = 0; i < count; i++) {
		function = pci_find(&pci, names[i]);
		if (function && function->kind == PCI_CONTROLLER) {
			status |= apply(report, options, function);
			continue;
		}
		fprintf(stderr, "nvme-peer: %s: no NVMe controller has this address or node\n", names[i]);
		status = EXIT_REFUSED;
	}
	report_list_end(report);
	pci_free(&pci);
	return status;
}

int command_bind(struct report *report, const struct options *options, int argc, char **argv)
{
	return each_function(report, options, argc, argv, bind_function);
}

int command_unbind(struct report *report, const struct options *options, int argc, char **argv)
{
	return each_function(report, options, argc, argv, unbind_function);
}
