/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the checks of nvme-peer doctor say, each with a cure in one line.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "pci.h"
#include "report.h"

/**
 * enum doctor_level - how bad it is
 * @DOCTOR_OK: as it should be
 * @DOCTOR_WARN: something does not work, or is not safe
 * @DOCTOR_FAIL: nothing works until it is cured
 */
enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

/**
 * struct doctor - one examination
 * @report: answer
 * @pci: the machine's functions
 * @worst: of what was said so far
 */
struct doctor {
	struct report *report;
	struct pci pci;
	enum doctor_level worst;
};

/* doctor_say() - one finding; @cure is NULL where nothing is to be done. */
void doctor_say(struct doctor *doctor, enum doctor_level level, const char *check,
		const char *cure, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* doctor_kernel() - version, configuration, lockdown, signatures, the module. */
void doctor_kernel(struct doctor *doctor);

/* doctor_devices() - IOMMU, GPUs with their drivers and BARs, ways, disks. */
void doctor_devices(struct doctor *doctor);

#endif /* DOCTOR_H */
