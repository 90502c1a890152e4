// SPDX-License-Identifier: GPL-2.0-only
/*
 * The checkers of the debug kernels (KASAN, lockdep, kmemleak and so on) report planted
 * bugs: a silent checker may be disabled. Runs last, because some of them stop after
 * their first report.
 *
 * kernels: debug kcsan
 * iommu: on off
 * topology: root switch
 * timeout: 60
 * last: yes
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../badctrl/badctrl.h"
#include "nptest.h"
#include "kselftest.h"

#define PLANTED		"/sys/kernel/debug/nvmep_test_planted"
#define REPORT_MS	20000

static int kernel_log;

static int make(const char *name)
{
	return np_write_file(PLANTED, name);
}

/*
 * kmemleak reports objects that are some seconds old, and only if it is read. Leaks of
 * earlier tests are left for the check at the end of the cell: nothing is cleared here.
 */
static int make_leak(const char *name)
{
	int ret = make(name);
	char line[512];
	FILE *file;

	file = np_kmemleak_scan();
	if (!file)
		return -errno;
	while (!ret && fgets(line, sizeof(line), file))
		if (strstr(line, "planted_memory")) {
			ret = np_write_file("/dev/kmsg", line);
			break;
		}
	fclose(file);
	return ret ?: make("leak-undone");
}

/* A peer reads into an address that is not mapped for the controller. */
static int make_dma_fault(const char *name)
{
	struct np_command command = {
		.opcode = NVMEPEER_OP_READ,
		.nsid = 1,
		.prp1 = BADCTRL_NOWHERE,
	};
	struct np_ctrl ctrl;
	struct np_qp qp;
	int ret;

	(void)name;
	ret = np_ctrl_open(&ctrl, "np0");
	if (ret)
		return ret;
	ret = np_qp_open(&qp, ctrl.fd, 8);
	if (!ret) {
		/* QEMU's controller reports success. */
		ret = np_qp_run(&qp, &command, REPORT_MS);
		np_qp_close(&qp);
	}
	np_ctrl_close(&ctrl);
	return ret < 0 ? ret : 0;
}

static bool always(void)
{
	return true;
}

static bool iommu_is_on(void)
{
	return !access("/sys/class/iommu/dmar0", F_OK);
}

/**
 * struct guard - a checker and its report
 * @name: of the planted bug
 * @make: plants it: 0 or -errno
 * @report: words of the report
 * @kernel: suffix of the version of the kernel that has the checker
 * @is_on: whether the checker is enabled in this guest
 */
struct guard {
	const char *name;
	int (*make)(const char *name);
	const char *report;
	const char *kernel;
	bool (*is_on)(void);
};

static const struct guard guards[] = {
	{ "dma-fault", make_dma_fault, "DMAR: [DMA Write", "debug", iommu_is_on },
	/* Lockdep stops after the first bug that it finds. */
	{ "lock-order", make, "possible circular locking dependency", "debug", always },
	{ "use-after-free", make, "KASAN: slab-use-after-free in planted_use_after_free", "debug", always },
	{ "refcount", make, "refcount_t: decrement hit 0", "debug", always },
	{ "shift", make, "UBSAN: shift-out-of-bounds", "debug", always },
	{ "timer", make, "ODEBUG: free active", "debug", always },
	{ "dma-size", make, "frees DMA memory with different size", "debug", always },
	{ "sleep", make, "BUG: sleeping function called from invalid context", "debug", always },
	{ "leak", make_leak, "planted_memory", "debug", np_kmemleak_on },
	{ "race", make, "BUG: KCSAN: data-race in planted_count", "kcsan", always },
};

#define GUARDS	(sizeof(guards) / sizeof(guards[0]))

static void plant(const struct guard *guard)
{
	bool found;
	int ret;

	np_expected_splat("begin", guard->name);
	ret = guard->make(guard->name);
	found = !ret && !np_log_wait(kernel_log, guard->report, REPORT_MS);
	np_expected_splat("end", guard->name);
	ksft_test_result(found, "%s (%s)\n", guard->name, strerror(-ret));
}

/* Checkers of another kernel, or disabled in this cell, are left out. */
static bool applies(const struct guard *guard, const char *release)
{
	return strstr(release, guard->kernel) && guard->is_on();
}

int main(void)
{
	struct utsname system_name;
	unsigned int i, count = 0;

	ksft_print_header();
	kernel_log = np_log_open();
	if (uname(&system_name) || kernel_log < 0 || system("modprobe nvmep_test_planted"))
		ksft_exit_fail_msg("cannot set up\n");
	for (i = 0; i < GUARDS; i++)
		count += applies(&guards[i], system_name.release);
	ksft_set_plan(count);
	for (i = 0; i < GUARDS; i++)
		if (applies(&guards[i], system_name.release))
			plant(&guards[i]);
	ksft_finished();
}
