// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every path through the module with its first allocation or user copy failing, then its
 * second, and so on until the path succeeds. After each failure: the right errno, nothing
 * left behind, and a device that works.
 *
 * usage: fault_nth [--all] [PART-OF-A-NAME]
 *
 * kernels: debug
 * iommu: on
 * timeout: 450
 * long-arguments: --all
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scenario.h"
#include "kselftest.h"

#define MOST_FAILURES	4000U

static bool every_failure;
static const char mappings_left[] = "DMA mappings are left";

/**
 * struct baseline - objects and mappings of an idle device
 * @objects: of the controller
 * @mappings: DMA mappings
 * @all_mappings: those of all drivers
 */
struct baseline {
	char objects[NP_OBJECTS];
	int mappings;
	int all_mappings;
};

/* Taken after everything was used once, because pools keep pages that they grew by. */
static int take_baseline(struct stage *stage, struct baseline *baseline)
{
	int ret = stage_check(stage);

	baseline->mappings = fault_dma_mappings(false);
	baseline->all_mappings = fault_dma_all();
	return ret ?: np_objects(&stage->ctrl, baseline->objects);
}

/* Scans that an open or a reset started may still run. */
static bool mappings_settle(const struct baseline *before)
{
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;
	int all = fault_dma_all();

	if (all >= 0 && all <= before->all_mappings)
		return true;
	while (fault_dma_mappings(false) > before->mappings) {
		if (np_now_ms() > end)
			return false;
		np_sleep_ms(20);
	}
	return true;
}

/* What differs from the baseline after a failure, or NULL. */
static const char *left_behind(struct stage *stage, const struct baseline *baseline)
{
	if (np_objects_wait(&stage->ctrl, baseline->objects, NP_TIMEOUT_MS))
		return "objects are left";
	if (!mappings_settle(baseline)) {
		ksft_print_msg("%d DMA mappings before, now:\n", baseline->mappings);
		fault_dma_mappings(true);
		return mappings_left;
	}
	if (stage_check(stage))
		return "the device does not work";
	return NULL;
}

/* Errors that a user may see if an allocation or a user copy fails. */
static bool is_honest(int error)
{
	return error == -ENOMEM || error == -EFAULT;
}

/* Bind a controller that is not live any more again, which must help. */
static int revive(struct stage *stage)
{
	struct nvme_peer_info info;

	if (np_bound(stage->ctrl.address) && !np_info(stage->ctrl.fd, &info) &&
	    info.state == NVME_PEER_CTRL_LIVE)
		return 0;
	np_ctrl_close(&stage->ctrl);
	if (np_bound(stage->ctrl.address))
		np_unbind(stage->ctrl.address);
	return np_ctrl_open(&stage->ctrl, "np0");
}

/*
 * One round: @fired reports whether the @n-th opportunity was reached. Without a
 * @baseline nothing is compared.
 */
static const char *one_round(struct stage *stage, const struct scenario *scenario, unsigned int n,
			     const struct baseline *baseline, bool *fired, int *error)
{
	const char *wrong = NULL;

	if (scenario->prepare && scenario->prepare(stage))
		wrong = "cannot be prepared";
	if (!wrong) {
		if (fault_arm(scenario->where, n))
			return "no failure can be injected";
		*error = scenario->act(stage);
		*fired = fault_disarm(scenario->where);
		if (*error && !*fired)
			wrong = "fails without an injected failure";
		else if (*error && scenario->must_succeed)
			wrong = "fails, but has no way to report it";
		else if (*error && !scenario->may_die && !is_honest(*error))
			wrong = "fails with another errno than ENOMEM or EFAULT";
	}
	stage_clear(stage);
	if (scenario->may_die && revive(stage))
		return "the controller cannot be bound again";
	if (wrong || !baseline)
		return wrong;
	return left_behind(stage, baseline);
}

/*
 * The first failures, and ever fewer of the later ones, even and odd; fewer if rounds are slow. Most
 * scenarios have at most eight, all of which fail in a long run.
 */
static unsigned int next(const struct scenario *scenario, unsigned int n)
{
	if (every_failure)
		return n + 1;
	if (scenario->costly)
		return n < 3 ? n + 1 : 3 * n + 16;
	return n < 5 ? n + 1 : 3 * n + 1;
}

static bool fail_each(struct stage *stage, const struct scenario *scenario)
{
	struct baseline baseline;
	unsigned int n, rounds = 0, injected = 0, survived = 0;
	int64_t began = np_now_ms();
	bool fired = true;
	const char *wrong;
	int error = 0;

	if (fault_set_reach(scenario->near ? FAULT_NEAR : FAULT_FAR)) {
		ksft_print_msg("%s: its failures cannot be injected\n", scenario->name);
		return false;
	}
	/* Once without failures, so that allocations on first use are in the baseline. */
	wrong = one_round(stage, scenario, ~0U, NULL, &fired, &error);
	if (!wrong && take_baseline(stage, &baseline))
		wrong = "the device does not work";
	if (wrong) {
		ksft_print_msg("%s: without failures (%s): %s\n", scenario->name, strerror(-error),
			       wrong);
		return false;
	}
	fired = true;
	for (n = 1; fired && n < MOST_FAILURES; n = next(scenario, n)) {
		fired = false;
		wrong = one_round(stage, scenario, n, &baseline, &fired, &error);
		/*
		 * A pool keeps a page when more commands than ever need one at once. That
		 * happens once, whereas a leak happens each time.
		 */
		if (wrong == mappings_left && !take_baseline(stage, &baseline))
			wrong = one_round(stage, scenario, n, &baseline, &fired, &error);
		if (wrong) {
			ksft_print_msg("%s: failure %u (%s): %s\n", scenario->name, n,
				       strerror(-error), wrong);
			return false;
		}
		rounds++;
		injected += fired;
		survived += fired && !error;
	}
	ksft_print_msg("%s: %u failures injected, %u survived, %u ms for each of %u rounds\n",
		       scenario->name, injected, survived,
		       (unsigned int)(np_now_ms() - began) / rounds, rounds);
	return n < MOST_FAILURES;
}

int main(int argc, char **argv)
{
	const char *part = "";
	struct stage stage;
	unsigned int i;
	int ret;

	for (i = 1; i < (unsigned int)argc; i++) {
		if (!strcmp(argv[i], "--all"))
			every_failure = true;
		else
			part = argv[i];
	}
	ksft_print_header();
	ret = fault_setup();
	if (ret == -EOPNOTSUPP)
		ksft_exit_skip("no fault injection in this kernel\n");
	if (ret || stage_open(&stage))
		ksft_exit_fail_msg("cannot set up: %s\n", strerror(-ret));
	ksft_set_plan(scenario_count + 1);
	for (i = 0; i < scenario_count; i++) {
		if (!strstr(scenarios[i].name, part)) {
			ksft_test_result_skip("%s\n", scenarios[i].name);
			continue;
		}
		ksft_test_result(fail_each(&stage, &scenarios[i]), "%s\n", scenarios[i].name);
	}
	ret = fault_leaks();
	if (ret < 0)
		ksft_test_result_skip("kmemleak is disabled\n");
	else
		ksft_test_result(!ret, "kmemleak reports nothing\n");
	stage_close(&stage);
	ksft_finished();
}
