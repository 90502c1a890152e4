/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The checks of nvme-peer doctor, each with a fix in one line.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "pci.h"
#include "report.h"

/**
 * enum doctor_level - severity of a result
 * @DOCTOR_OK: no problem
 * @DOCTOR_WARN: something does not work or is not safe
 * @DOCTOR_FAIL: nothing works
 */
enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

/**
 * struct doctor - one run of all checks
 * @report: output
 * @pci: PCI functions of the machine
 * @counts: number of results by level
 * @urgency: of @next
 * @next: what to do first, or ""
 */
struct doctor {
	struct report *report;
	struct pci pci;
	unsigned int counts[DOCTOR_FAIL + 1];
	unsigned int urgency;
	char next[256];
};

/* doctor_report() - report the result of a check; @help is NULL if there is nothing to do. */
void doctor_report(struct doctor *doctor, enum doctor_level level, const char *check,
		   const char *help, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* doctor_end() - report the number of problems and what to do next. */
void doctor_end(struct doctor *doctor);

/* doctor_kernel() - version, configuration, lockdown, signatures, the module. */
void doctor_kernel(struct doctor *doctor);

/* doctor_devices() - IOMMU, GPUs with their drivers and BARs, routes, disks. */
void doctor_devices(struct doctor *doctor);

#endif /* DOCTOR_H */
