// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * nvme-peer doctor: checks of the machine, each with a fix.
 *
 * This file has the checks of the calling process, doctor_kernel.c and doctor_devices.c
 * have the others.
 */
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "nvme-peer.h"
#include "sysfs.h"
#include "units.h"

/* Below this limit the registration of buffers of common sizes fails. */
#define LEAST_MEMLOCK (64ULL << 20)

/* ---- The caller ---------------------------------------------------------- */

/* The rest of the first line of a file of procfs that begins with @key. */
static void proc_line(char text[SYSFS_TEXT], const char *path, const char *key)
{
	FILE *file = sysfs_open("%s", path);
	char line[SYSFS_TEXT];

	text[0] = 0;
	while (file && !text[0] && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			snprintf(text, SYSFS_TEXT, "%s", line + strlen(key));
	if (file)
		fclose(file);
}

static bool has_capability(unsigned int capability)
{
	char text[SYSFS_TEXT];

	proc_line(text, "/proc/self/status", "CapEff:");
	return strtoull(text, NULL, 16) >> capability & 1;
}

static void check_capabilities(struct doctor *doctor)
{
	if (has_capability(CAP_SYS_RAWIO))
		doctor_report(doctor, DOCTOR_OK, "rights", NULL, "CAP_SYS_RAWIO present");
	else
		doctor_report(doctor, DOCTOR_WARN, "rights",
			      "run as root, or setcap cap_sys_rawio+ep PROGRAM",
			      "no CAP_SYS_RAWIO: queue pairs cannot be created");
}

static void check_memlock(struct doctor *doctor)
{
	char text[SYSFS_TEXT], limit[UNITS_TEXT];
	uint64_t bytes;
	char *end;

	proc_line(text, "/proc/self/limits", "Max locked memory");
	bytes = strtoull(text, &end, 10);
	if (end == text || bytes >= LEAST_MEMLOCK || has_capability(CAP_IPC_LOCK))
		doctor_report(doctor, DOCTOR_OK, "memlock", NULL, "memory can be locked");
	else
		doctor_report(doctor, DOCTOR_WARN, "memlock",
			      "ulimit -l unlimited, or memlock in /etc/security/limits.conf",
			      "only %s can be locked, which limits registered buffers of io_uring",
			      units_memory(bytes, limit));
}

int command_doctor(struct report *report, const struct options *options, int argc, char **argv)
{
	struct doctor doctor = { .report = report };

	(void)options;
	if (argc)
		return usage_error("doctor takes no argument", argv[0]);
	pci_scan(&doctor.pci);
	if (report->json)
		report_list(report, "checks");
	doctor_kernel(&doctor);
	doctor_devices(&doctor);
	check_capabilities(&doctor);
	check_memlock(&doctor);
	if (report->json)
		report_list_end(report);
	doctor_end(&doctor);
	pci_free(&doctor.pci);
	return doctor.counts[DOCTOR_FAIL] ? EXIT_REFUSED : 0;
}
