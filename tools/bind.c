// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer bind, unbind: whose a controller is.
 *
 * By driver_override, the only way that nvme-peer binds.  A rule of udev keeps
 * the choice: it sets the override as soon as udev sees the function, and runs
 * bind, as the kernel may have given the function to its own driver before, at
 * boot and when the bus is scanned again.
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
#include "users.h"

#define DRIVER "nvme-peer"
#define FUNCTION "/sys/bus/pci/devices/"
#define DRIVERS "/sys/bus/pci/drivers/"
#define RULES "/etc/udev/rules.d/60-nvme-peer-"

/* Bytes of the longest rule. */
enum { RULE = 4096 + 512 };

/* ---- Writes -------------------------------------------------------------- */

/**
 * struct change - the writes of one bind or unbind
 * @report: answer
 * @dry_run: show them, write nothing
 * @status: EXIT_REFUSED once one has failed
 */
struct change {
	struct report *report;
	bool dry_run;
	int status;
};

static void complain(struct change *change, const char *path, int error)
{
	fprintf(stderr, "nvme-peer: %s: %s\n", path, strerror(-error));
	change->status = EXIT_REFUSED;
}

/* After a failure nothing more is written. */
static void change_file(struct change *change, const char *path, const char *text)
{
	char line[RULE + SYSFS_PATH];
	int error;

	if (change->status)
		return;
	if (change->dry_run) {
		snprintf(line, sizeof(line), text[strcspn(text, "\n ")] ? "echo '%.*s' > %s" : "echo %.*s > %s",
			 (int)strcspn(text, "\n"), text, path);
		report_text(change->report, NULL, line);
		return;
	}
	error = sysfs_write(text, "%s", path);
	if (error)
		complain(change, path, error);
}

static void remove_file(struct change *change, const char *path)
{
	char line[SYSFS_PATH + 8];
	int error;

	if (change->status || !sysfs_exists("%s", path))
		return;
	if (change->dry_run) {
		snprintf(line, sizeof(line), "rm %s", path);
		report_text(change->report, NULL, line);
		return;
	}
	error = sysfs_remove("%s", path);
	if (error)
		complain(change, path, error);
}

static void set_override(struct change *change, const struct pci_function *function,
			 const char *driver)
{
	char path[SYSFS_PATH];

	snprintf(path, sizeof(path), FUNCTION "%s/driver_override", function->address);
	change_file(change, path, driver);
}

static void leave_driver(struct change *change, const struct pci_function *function)
{
	char path[SYSFS_PATH];

	if (!function->driver[0])
		return;
	snprintf(path, sizeof(path), DRIVERS "%s/unbind", function->driver);
	change_file(change, path, function->address);
}

/* What a driver that refuses a function says of it is in the kernel's log alone. */
static void find_driver(struct change *change, const struct pci_function *function)
{
	if (!change->dry_run && !change->status)
		sysfs_write(function->address, "/sys/bus/pci/drivers_probe");
	else
		change_file(change, "/sys/bus/pci/drivers_probe", function->address);
}

/* ---- The rule that keeps it ---------------------------------------------- */

static void rule_path(const struct pci_function *function, char path[SYSFS_PATH])
{
	snprintf(path, SYSFS_PATH, RULES "%s.rules", function->address);
}

/* udev looks for other rules every few seconds; the function may come sooner. */
static void tell_udev(struct change *change)
{
	char *const command[] = { "udevadm", "control", "--reload", NULL };
	int status;
	pid_t child;

	if (change->status || !sysfs_exists("/run/udev/control"))
		return;
	if (change->dry_run) {
		report_text(change->report, NULL, "udevadm control --reload");
		return;
	}
	if (posix_spawnp(&child, command[0], NULL, NULL, command, environ) ||
	    waitpid(child, &status, 0) < 0 || status)
		fprintf(stderr, "nvme-peer: udev could not be told of the rule, and finds it within seconds\n");
}

static void write_rule(struct change *change, const struct pci_function *function)
{
	char path[SYSFS_PATH], program[SYSFS_PATH] = "", rule[RULE];

	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return;
	rule_path(function, path);
	snprintf(rule, sizeof(rule),
		 "ACTION==\"add\", SUBSYSTEM==\"pci\", KERNEL==\"%s\", ATTR{class}==\"0x010802\", "
		 "ATTR{driver_override}=\"" DRIVER "\", RUN{builtin}+=\"kmod load nvme_peer\", "
		 "RUN+=\"%s bind %s\"\n",
		 function->address, program, function->address);
	change_file(change, path, rule);
	tell_udev(change);
}

static void remove_rule(struct change *change, const struct pci_function *function)
{
	char path[SYSFS_PATH];

	rule_path(function, path);
	remove_file(change, path);
	tell_udev(change);
}

/* ---- What is in the way -------------------------------------------------- */

static int refuse(const struct pci_function *function, const char *why, const char *cure)
{
	fprintf(stderr, "nvme-peer: %s: %s\n  help:  %s\n", function->address, why, cure);
	return EXIT_REFUSED;
}

static int refuse_used(const struct pci_function *function, const struct options *options)
{
	bool force = options->given & OPTION_FORCE;
	struct node_pairs pairs = { 0 };
	struct users users;
	bool used;
	size_t i;

	users_find(function, &users);
	if (!strcmp(function->driver, DRIVER))
		node_pairs(function->node, &pairs);
	for (i = 0; i < users.count; i++)
		fprintf(stderr, "nvme-peer: %s: %s%s\n", function->address, users.texts[i],
			force ? ", and loses it" : "");
	if (pairs.used)
		fprintf(stderr, "nvme-peer: %s: peers have %u queue pairs%s\n", function->address,
			pairs.used, force ? ", and lose them" : "");
	used = users.count || pairs.used;
	users_free(&users);
	if (!used || force)
		return 0;
	fprintf(stderr, "  help:  unmount, swapoff, stop or close it first; nothing was changed\n");
	return EXIT_REFUSED;
}

/* ---- bind ---------------------------------------------------------------- */

/* Give it back where nvme-peer did not take it. */
static int give_up(struct change *change, const struct pci_function *function)
{
	set_override(change, function, "\n");
	find_driver(change, function);
	return refuse(function, "the driver did not take it, the one before has it again",
		      "the kernel's log (dmesg) says why");
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
	struct change change = { .report = report, .dry_run = options->given & OPTION_DRY_RUN };
	bool bound = !strcmp(function->driver, DRIVER);

	if (!bound && !sysfs_exists(DRIVERS DRIVER))
		return refuse(function, "the module is not loaded", "modprobe nvme_peer");
	if (!bound && refuse_used(function, options))
		return EXIT_REFUSED;
	if (!bound) {
		set_override(&change, function, DRIVER);
		leave_driver(&change, function);
		find_driver(&change, function);
	}
	if (options->given & OPTION_PERSIST)
		write_rule(&change, function);
	if (change.dry_run || change.status)
		return change.status;
	return show_owner(report, function->address) ? give_up(&change, function) : 0;
}

/* ---- unbind -------------------------------------------------------------- */

static int unbind_function(struct report *report, const struct options *options,
			   const struct pci_function *function)
{
	struct change change = { .report = report, .dry_run = options->given & OPTION_DRY_RUN };

	if (strcmp(function->driver, DRIVER) != 0)
		return refuse(function, "nvme-peer does not have it",
			      "nvme-peer list shows the controllers that it has");
	if (refuse_used(function, options))
		return EXIT_REFUSED;
	if (options->given & OPTION_PERSIST)
		remove_rule(&change, function);
	set_override(&change, function, "\n");
	leave_driver(&change, function);
	find_driver(&change, function);
	if (change.dry_run || change.status)
		return change.status;
	show_owner(report, function->address);
	return 0;
}

/* ---- Both ---------------------------------------------------------------- */

static int each_function(struct report *report, const struct options *options, int count,
			 char **names,
			 int (*do_it)(struct report *report, const struct options *options,
				      const struct pci_function *function))
{
	const struct pci_function *function;
	struct pci pci;
	int i, status = 0;

	if (!count)
		return usage_error("bind and unbind take PCI addresses or controllers' nodes", NULL);
	pci_scan(&pci);
	report_list(report, options->given & OPTION_DRY_RUN ? "writes" : "controllers");
	for (i = 0; i < count; i++) {
		function = pci_find(&pci, names[i]);
		if (function && function->kind == PCI_CONTROLLER) {
			status |= do_it(report, options, function);
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
