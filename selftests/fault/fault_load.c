// SPDX-License-Identifier: GPL-2.0-only
/*
 * Load the module with its first allocation failing, then its second, and so on until no
 * failure is injected: a failed load leaves nothing behind, and the next one succeeds.
 *
 * usage: fault_load [--all]
 *
 * kernels: debug
 * iommu: on
 * timeout: 250
 * long-arguments: --all
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fault.h"
#include "kselftest.h"

#define MOST_FAILURES	1000U

/* NULL, or what is wrong after the @n-th failure. */
static const char *load_round(unsigned int n, bool *fired, int *error)
{
	if (fault_arm(FAULT_CALLER, n))
		return "no failure can be injected";
	*error = np_module_load("");
	*fired = fault_disarm(FAULT_CALLER);
	if (*error && !*fired)
		return "fails without an injected failure";
	/* EINVAL: the driver core's errno for sysfs links that it could not allocate. */
	if (*error && *error != -ENOMEM && *error != -EINVAL)
		return "fails with another errno than ENOMEM";
	if (*error)
		return np_module_registrations() ? "leaves something behind" : NULL;
	/* Only a debugfs allocation may fail without failing the load. */
	if (np_module_registrations() < NP_MODULE_REGISTRATIONS - *fired)
		return "succeeds, but not everything is registered";
	if (np_module_unload(NP_TIMEOUT_MS))
		return "cannot be unloaded";
	return np_module_registrations() ? "leaves something behind when unloaded" : NULL;
}

/* All of the first failures, and ever fewer of the later ones. */
static unsigned int next(unsigned int n, bool all)
{
	return n + (!all && n >= 8 ? n / 2 : 1);
}

static bool fail_each(bool all)
{
	unsigned int n, tried = 0, failed = 0, survived = 0;
	const char *wrong = NULL;
	bool fired = true;
	int error = 0;

	for (n = 1; fired && !wrong && n < MOST_FAILURES; n = next(n, all)) {
		fired = false;
		tried = n;
		wrong = load_round(n, &fired, &error);
		failed += fired && error;
		survived += fired && !error;
	}
	if (wrong)
		ksft_print_msg("failure %u (%s): %s\n", tried, strerror(-error), wrong);
	ksft_print_msg("%u loads failed, %u survived a failure\n", failed, survived);
	return !wrong && failed && n < MOST_FAILURES;
}

/* A controller works with the module that was loaded last. */
static bool works(void)
{
	struct np_ctrl ctrl;
	int ret;

	ret = np_module_load("") ?: np_ctrl_open(&ctrl, "np0");
	if (ret)
		return false;
	ret = np_qp_check(ctrl.fd, NP_TIMEOUT_MS);
	np_ctrl_close(&ctrl);
	return !ret;
}

/* Only the module's load is tested, so no controller is bound by it. */
static void disown_all(void)
{
	static const char *const names[] = { "np0", "np1", "badctrl" };
	char address[16];
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!np_function_address(names[i], address))
			np_clear_driver_override(address);
}

int main(int argc, char **argv)
{
	int ret;

	ksft_print_header();
	ret = fault_setup();
	if (ret == -EOPNOTSUPP)
		ksft_exit_skip("no fault injection in this kernel\n");
	ret = ret ?: fault_any_module() ?: np_module_unload(NP_TIMEOUT_MS);
	if (ret)
		ksft_exit_fail_msg("cannot set up: %s\n", strerror(-ret));
	disown_all();
	ksft_set_plan(2);
	ksft_test_result(fail_each(argc > 1 && !strcmp(argv[1], "--all")), "load\n");
	ksft_test_result(works(), "load without failures\n");
	ksft_finished();
}
