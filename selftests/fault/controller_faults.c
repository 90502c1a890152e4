// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults of the controller itself: commands with a wrong completion or none, failures of
 * the whole controller, and further failures during recovery.
 */
#include "fault_kind.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* At most one rule for each CPU queue; rules for admin commands follow. */
#define CPU_RULES	4U
#define ADMIN_RULE	CPU_RULES
#define ANSWER_BIT	0x1000U	/* in CIDs: of a command that does not exist */
#define SEVERAL		8U
/* Dword 0 of an event: error status, persistent internal error, error log. */
#define EVENT_PERSISTENT	(0U | 3U << 8 | NVME_LOG_ERRORS << 16)

/* --- rules --------------------------------------------------------------------- */

static unsigned int hits(struct fault *fault, unsigned int rules)
{
	unsigned int i, sum = 0;

	for (i = 0; i < rules; i++)
		sum += np_bad_hits(fault->target->bad, i);
	return sum;
}

/* Some command has matched one of the first @rules; no other will. */
static int wait_rule_hit(struct fault *fault, unsigned int rules)
{
	struct np_bad *bad = fault->target->bad;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS, looked = load_now();
	unsigned int i;

	while (!hits(fault, rules)) {
		fault->not_before = looked;
		if (np_now_ms() > end)
			return -ETIMEDOUT;
		looked = load_now();
	}
	for (i = 0; i < rules; i++)
		np_bad_set(bad, BADCTRL_RULE_WORD(i, BADCTRL_RULE_TIMES), 0);
	return 0;
}

/* The next command of the victim. */
static int inject_victim(struct fault *fault, uint32_t action, uint32_t argument)
{
	return target_aim(fault->target, fault->victim, BADCTRL_ANY, action, argument, 1) ?:
	       wait_rule_hit(fault, 1);
}

/* The next command of the CPU, in any of its queues. */
static int inject_cpu(struct fault *fault, uint32_t action, uint32_t argument)
{
	struct np_bad *bad = fault->target->bad;
	struct nvme_peer_info info;
	unsigned int i;
	int ret = np_info(bad->ctrl.fd, &info);

	if (!ret && info.qids_cpu > CPU_RULES)
		ret = -E2BIG;
	for (i = 0; !ret && i < info.qids_cpu; i++)
		ret = np_bad_rule(bad, i, BADCTRL_ON_QUEUE(i + 1) | BADCTRL_ANY, action, argument, 1);
	return ret ?: wait_rule_hit(fault, info.qids_cpu);
}

/* The next commands of any submitter. */
static int inject_all(struct fault *fault, uint32_t action)
{
	return np_bad_rule(fault->target->bad, 0, BADCTRL_ON_IO | BADCTRL_ANY, action, 0,
			   SEVERAL) ?:
	       np_bad_wait_hits(fault->target->bad, 0, SEVERAL);
}

static int meet_admin(struct fault *fault, uint8_t opcode, uint32_t action, uint32_t argument)
{
	return np_bad_rule(fault->target->bad, ADMIN_RULE, opcode, action, argument, 1);
}

static int reset(struct fault *fault)
{
	return np_ioctl(fault->target->ctrl->fd, NVME_IOCTL_RESET, NULL);
}

/* --- a command of a peer ------------------------------------------------------- */

static int peer_loses_command(struct fault *fault, uint32_t action)
{
	int ret = inject_victim(fault, action, 0);

	atomic_store(&fault->victim->give_up, true);
	return ret;
}

static int peer_held(struct fault *fault)
{
	return peer_loses_command(fault, BADCTRL_HOLD);
}

/* No queue is deleted for a command of a mediated queue pair that ends by its Abort. */
static int peer_held_for_good(struct fault *fault)
{
	return peer_loses_command(fault, np_as_tenant() ? BADCTRL_DROP : BADCTRL_HOLD);
}

static int peer_late(struct fault *fault)
{
	int ret = inject_victim(fault, BADCTRL_HOLD, 0);

	np_sleep_ms((int)(nrand48(fault->random) % 50));
	return ret ?: np_bad_set(fault->target->bad, BADCTRL_RELEASE, 1);
}

static int peer_twice(struct fault *fault)
{
	atomic_store(&fault->victim->strays, 1);
	return inject_victim(fault, BADCTRL_TWICE, 0);
}

/* The command itself does not complete. */
static int peer_wrong_cid(struct fault *fault)
{
	int ret;

	atomic_store(&fault->victim->strays, 1);
	ret = inject_victim(fault, BADCTRL_WRONG_ID, ANSWER_BIT);
	atomic_store(&fault->victim->give_up, true);
	return ret;
}

/*
 * The completion is first seen with a wrong CID; when the right CID is written the entry
 * has been consumed.
 */
static int peer_torn(struct fault *fault)
{
	int ret;

	atomic_store(&fault->victim->strays, 1);
	ret = inject_victim(fault, BADCTRL_TORN, ANSWER_BIT);
	atomic_store(&fault->victim->give_up, true);
	return ret;
}

static int peer_error(struct fault *fault)
{
	return inject_victim(fault, BADCTRL_STATUS, NVME_SC_INTERNAL);
}

/* Before the driver has handled the request, or while it does. */
static int peer_held_in_reset(struct fault *fault)
{
	int ret = peer_held(fault);

	np_sleep_ms((int)(nrand48(fault->random) % 5));
	return ret ?: reset(fault);
}

/* The queue cannot be deleted either, so only a reset helps. */
static int delete_refused(struct fault *fault)
{
	return meet_admin(fault, NVME_ADMIN_DELETE_SQ, BADCTRL_STATUS, NVME_SC_INTERNAL) ?:
	       peer_held_for_good(fault);
}

static int delete_held(struct fault *fault)
{
	return meet_admin(fault, NVME_ADMIN_DELETE_SQ, BADCTRL_HOLD, 0) ?: peer_held_for_good(fault);
}

/* --- a command of the CPU ------------------------------------------------------ */

static int cpu_held(struct fault *fault)
{
	return inject_cpu(fault, BADCTRL_HOLD, 0);
}

static int abort_refused(struct fault *fault)
{
	return meet_admin(fault, NVME_ADMIN_ABORT, BADCTRL_STATUS, NVME_SC_INTERNAL) ?:
	       cpu_held(fault);
}

static int cpu_twice(struct fault *fault)
{
	return inject_cpu(fault, BADCTRL_TWICE, 0);
}

static int cpu_misnamed(struct fault *fault)
{
	return inject_cpu(fault, BADCTRL_WRONG_ID, ANSWER_BIT);
}

static int cpu_quiet(struct fault *fault)
{
	return inject_cpu(fault, BADCTRL_QUIET, 0);
}

static int cpu_error(struct fault *fault)
{
	return inject_cpu(fault, BADCTRL_STATUS, NVME_SC_INTERNAL);
}

/* --- commands of any submitter ------------------------------------------------- */

/* As the specification permits: the phase tag is written last. */
static int all_in_parts(struct fault *fault)
{
	return inject_all(fault, BADCTRL_PIECES);
}

/*
 * Against the specification; but all other fields that are used lie beside the phase tag.
 */
static int all_torn(struct fault *fault)
{
	return inject_all(fault, BADCTRL_TORN);
}

/*
 * The IOMMU blocks the access and the kernel logs it; the command completes with an
 * error.
 */
static int stray(struct fault *fault, int (*meet)(struct fault *, uint32_t, uint32_t))
{
	struct np_bad *bad = fault->target->bad;
	uint32_t strays = np_bad_get(bad, BADCTRL_STRAYS) + 1;

	/* Until the end of the campaign: the kernel may log it late, or, limiting the rate, not at all. */
	np_expected_splat("begin", "dma-fault");
	return meet(fault, BADCTRL_STRAY, 0) ?: np_bad_wait_word(bad, BADCTRL_STRAYS, strays);
}

static int peer_stray(struct fault *fault)
{
	return stray(fault, inject_victim);
}

static int cpu_stray(struct fault *fault)
{
	return stray(fault, inject_cpu);
}

/* --- the whole controller ------------------------------------------------------ */

static int fails_on_peer(struct fault *fault)
{
	return inject_victim(fault, BADCTRL_CRASH, 0);
}

static int fails_on_cpu(struct fault *fault)
{
	return inject_cpu(fault, BADCTRL_CRASH, 0);
}

/* Does the driver's function reset, its last resort, make the controller work again? */
static int cured_by_function(struct fault *fault, bool cured)
{
	return np_bad_set(fault->target->bad, BADCTRL_CURED, cured);
}

static int vanishes(struct fault *fault)
{
	return cured_by_function(fault, false) ?: inject_victim(fault, BADCTRL_VANISH, 0);
}

static int vanishes_for_now(struct fault *fault)
{
	return cured_by_function(fault, true) ?: inject_victim(fault, BADCTRL_VANISH, 0);
}

static int says_failed(struct fault *fault)
{
	return np_bad_set(fault->target->bad, BADCTRL_EVENT, EVENT_PERSISTENT);
}

/* Held commands are executed and completed when the controller is disabled. */
static int late_ends(struct fault *fault)
{
	return np_bad_set(fault->target->bad, BADCTRL_LATE, 1) ?:
	       inject_victim(fault, BADCTRL_HOLD, 0) ?: reset(fault);
}

/* The controller fails, and the caller of the reset gets an error. */
static int reset_fails(struct fault *fault)
{
	return reset(fault) ? 0 : -EBADE;
}

static int reset_into(struct fault *fault, uint32_t mode)
{
	return cured_by_function(fault, false) ?:
	       np_bad_set(fault->target->bad, BADCTRL_MODE, mode) ?: reset_fails(fault);
}

static int reset_through(struct fault *fault, uint32_t mode)
{
	return cured_by_function(fault, true) ?:
	       np_bad_set(fault->target->bad, BADCTRL_MODE, mode) ?: reset(fault);
}

static int never_ready(struct fault *fault)
{
	return reset_into(fault, BADCTRL_NEVER_READY);
}

static int fatal_start(struct fault *fault)
{
	return reset_into(fault, BADCTRL_FATAL);
}

static int not_ready_for_now(struct fault *fault)
{
	return reset_through(fault, BADCTRL_NEVER_READY);
}

static int never_stops(struct fault *fault)
{
	return reset_through(fault, BADCTRL_UNSTOPPABLE);
}

/* One queue for the CPU, none for peers. */
static int fewer_queues(struct fault *fault)
{
	return np_bad_set(fault->target->bad, BADCTRL_GRANT, 1) ?: reset(fault);
}

static int more_queues(struct fault *fault)
{
	struct nvme_peer_info info;

	return np_bad_set(fault->target->bad, BADCTRL_GRANT, BADCTRL_QUEUES) ?: reset(fault) ?:
	       np_ctrl_wait_live(fault->target->ctrl->fd, &info, NP_TIMEOUT_MS);
}

/* --- re-arm -------------------------------------------------------------------- */

static void hold_all(struct fault *fault, bool hold)
{
	unsigned int i;

	for (i = 0; i < fault->target->count; i++)
		atomic_store(&fault->target->loads[i].hold, hold);
}

/* A fault when the peers re-arm, but not when the controller starts. */
static int reset_and_meet(struct fault *fault, uint8_t opcode, uint32_t action,
			  uint32_t argument)
{
	struct nvme_peer_info info;
	int ret;

	hold_all(fault, true);
	ret = reset(fault) ?: np_ctrl_wait_live(fault->target->ctrl->fd, &info, NP_TIMEOUT_MS) ?:
	      meet_admin(fault, opcode, action, argument);
	hold_all(fault, false);
	return ret;
}

static int create_cq_refused(struct fault *fault)
{
	return reset_and_meet(fault, NVME_ADMIN_CREATE_CQ, BADCTRL_STATUS, NVME_SC_INTERNAL);
}

static int create_sq_refused(struct fault *fault)
{
	return reset_and_meet(fault, NVME_ADMIN_CREATE_SQ, BADCTRL_STATUS, NVME_SC_INTERNAL);
}

static int create_sq_held(struct fault *fault)
{
	return reset_and_meet(fault, NVME_ADMIN_CREATE_SQ, BADCTRL_HOLD, 0);
}

static int fails_on_the_way(struct fault *fault)
{
	return reset_and_meet(fault, NVME_ADMIN_CREATE_SQ, BADCTRL_CRASH, 0);
}

/*
 * A fault in the middle of the start; the next start, after a function reset, succeeds.
 */
static int reset_and_fail(struct fault *fault, uint32_t action, uint32_t argument)
{
	static const uint8_t steps[] = {
		NVME_ADMIN_IDENTIFY, NVME_ADMIN_SET_FEATURES,
		NVME_ADMIN_CREATE_CQ, NVME_ADMIN_CREATE_SQ,
	};
	uint8_t step = steps[nrand48(fault->random) % (sizeof(steps) / sizeof(steps[0]))];

	return meet_admin(fault, step, action, argument) ?: reset(fault);
}

static int start_held(struct fault *fault)
{
	return reset_and_fail(fault, BADCTRL_HOLD, 0);
}

static int start_refused(struct fault *fault)
{
	return reset_and_fail(fault, BADCTRL_STATUS, NVME_SC_INTERNAL);
}

static int start_fails(struct fault *fault)
{
	return reset_and_fail(fault, BADCTRL_CRASH, 0);
}

static int start_vanishes(struct fault *fault)
{
	return cured_by_function(fault, true) ?: reset_and_fail(fault, BADCTRL_VANISH, 0);
}

/* --- two at once ------------------------------------------------------------------ */

static int peer_and_cpu_held(struct fault *fault)
{
	return cpu_held(fault) ?: peer_held(fault);
}

static void *reset_function(void *address)
{
	return (void *)(intptr_t)np_pci_write(address, "reset", "1");
}

/*
 * In either order: the second fault happens during recovery from the first one, or right
 * after.
 */
static int fails_in_function_reset(struct fault *fault)
{
	pthread_t thread;
	void *result;
	int ret;

	ret = -pthread_create(&thread, NULL, reset_function, fault->target->ctrl->address);
	if (ret)
		return ret;
	ret = inject_victim(fault, BADCTRL_CRASH, 0);
	pthread_join(thread, &result);
	return ret ?: (int)(intptr_t)result;
}

static int both_fail(struct fault *fault)
{
	return inject_victim(fault, BADCTRL_CRASH, 0) ?:
	       np_pci_write(fault->other->ctrl->address, "reset", "1");
}

/* --- the table ------------------------------------------------------------------- */

/* Kinds that wait for a timeout take seconds, so their weights are low. */
const struct kind controller_faults[] = {
	{ "command of a peer never completes", ON_BAD, 60, FATE_LOST, .strike = peer_held },
	{ "command of a peer completes late", ON_BAD, 60, .strike = peer_late },
	{ "command of a peer completes twice", ON_BAD, 60, .strike = peer_twice },
	{ "command of a peer completes with a wrong CID", ON_BAD, 40, FATE_LOST,
	  .strike = peer_wrong_cid },
	{ "command of a peer completes with a torn entry", ON_BAD, 40, FATE_LOST, .strike = peer_torn },
	{ "command of a peer fails", ON_BAD, 60, .strike = peer_error },
	{ "DMA of a peer's command is blocked", ON_BAD, 20, .strike = peer_stray },
	{ "reset while a peer requests recovery", ON_BAD, 30, FATE_LOST, FATE_LOST, .again = true,
	  .strike = peer_held_in_reset },
	{ "queue cannot be deleted", ON_BAD, 30, FATE_LOST, FATE_LOST, .strike = delete_refused },
	{ "deletion of a queue never completes", ON_BAD, 4, FATE_LOST, FATE_LOST, .hurry = true,
	  .strike = delete_held },
	{ "command of the CPU never completes", ON_BAD, 4, .strike = cpu_held },
	{ "command of the CPU and its abort never complete", ON_BAD, 4, FATE_LOST, FATE_LOST,
	  .strike = abort_refused },
	{ "command of the CPU completes twice", ON_BAD, 40, .strike = cpu_twice },
	{ "command of the CPU completes with a wrong CID", ON_BAD, 4, .strike = cpu_misnamed },
	{ "command of the CPU completes without interrupt", ON_BAD, 4, .strike = cpu_quiet },
	{ "command of the CPU fails", ON_BAD, 40, .strike = cpu_error },
	{ "DMA of the CPU's command is blocked", ON_BAD, 20, .strike = cpu_stray },
	{ "completion entries in parts, phase tag last", ON_BAD, 20, .strike = all_in_parts },
	{ "completion entries in parts, phase tag first", ON_BAD, 20, .strike = all_torn },
	{ "fatal status, on a peer's command", ON_BAD, 80, FATE_LOST, FATE_LOST, .watched = true,
	  .strike = fails_on_peer },
	{ "fatal status, on the CPU's command", ON_BAD, 60, FATE_LOST, FATE_LOST, .watched = true,
	  .strike = fails_on_cpu },
	{ "all ones", ON_BAD, 15, FATE_ENDED, FATE_ENDED, FATE_ENDED, .watched = true,
	  .strike = vanishes },
	{ "all ones before a function reset", ON_BAD, 15, FATE_LOST, FATE_LOST,
	  .watched = true, .strike = vanishes_for_now },
	{ "persistent internal error", ON_BAD, 40, FATE_LOST, FATE_LOST, .strike = says_failed },
	{ "commands complete during disable", ON_BAD, 40, FATE_LOST, FATE_LOST, .strike = late_ends },
	{ "never ready again", ON_BAD, 15, FATE_ENDED, FATE_ENDED, FATE_ENDED,
	  .strike = never_ready },
	{ "not ready before a function reset", ON_BAD, 15, FATE_LOST, FATE_LOST,
	  .strike = not_ready_for_now },
	{ "fatal status at its start", ON_BAD, 10, FATE_ENDED, FATE_ENDED, FATE_ENDED,
	  .strike = fatal_start },
	{ "controller cannot be disabled", ON_BAD, 10, FATE_LOST, FATE_LOST, .strike = never_stops },
	{ "command of the start never completes", ON_BAD, 4, FATE_LOST, FATE_LOST, .hurry = true,
	  .strike = start_held },
	{ "command of the start fails", ON_BAD, 15, FATE_LOST, FATE_LOST, .strike = start_refused },
	{ "fatal status in the start", ON_BAD, 4, FATE_LOST, FATE_LOST, .hurry = true,
	  .strike = start_fails },
	{ "all ones in the start", ON_BAD, 4, FATE_LOST, FATE_LOST, .hurry = true,
	  .strike = start_vanishes },
	{ "fewer queues than before", ON_BAD, 10, FATE_ENDED, FATE_ENDED,
	  .strike = fewer_queues, .mend = more_queues },
	{ "completion queue refused at re-arm", ON_BAD, 40, FATE_LOST, FATE_LOST,
	  .strike = create_cq_refused },
	{ "submission queue refused at re-arm", ON_BAD, 40, FATE_LOST, FATE_LOST,
	  .strike = create_sq_refused },
	{ "submission queue creation never completes", ON_BAD, 4, FATE_LOST, FATE_LOST,
	  .again = true, .hurry = true, .strike = create_sq_held },
	{ "fatal status at re-arm", ON_BAD, 4, FATE_LOST, FATE_LOST, .again = true,
	  .hurry = true, .strike = fails_on_the_way },
	{ "commands of a peer and of the CPU hang", ON_BAD, 4, FATE_LOST,
	  .strike = peer_and_cpu_held },
	{ "fatal status and function reset", ON_BAD, 30, FATE_LOST, FATE_LOST, .again = true,
	  .strike = fails_in_function_reset },
	{ "fatal status, other controller's function reset", ON_BAD, 20, FATE_LOST, FATE_LOST, .both = true,
	  .strike = both_fail },
};

const unsigned int misbehaviour_count = sizeof(controller_faults) / sizeof(controller_faults[0]);
