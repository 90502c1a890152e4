// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random faults of all kinds, one after the other, on two controllers under load from
 * peers, the CPU and a store. After each fault: acknowledged writes are on the disk; other writes
 * left old or new data but no mix; every queue pair that can be re-armed is; and nothing
 * else is affected.
 *
 * usage: fault_campaign [--seed N] [--faults N] [--first N] [--only PART-OF-A-KIND]
 *
 * A fault follows from the seed and its number: --first repeats from that one on.
 *
 * kernels: 7
 * long-kernels: 7 debug
 * iommu: on
 * timeout: 300
 * long-timeout: 7200
 * arguments: --faults 40
 * long-arguments: --faults 5000
 * long-relay: 7
 * relay-arguments: --faults 60
 * long-relay-arguments: --faults 500
 * long-mediated: 7
 * mediated-arguments: --faults 60
 * long-mediated-arguments: --faults 500
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "fault_kind.h"
#include "kselftest.h"

#define UNDER_LOAD	2U
/* Commands that each load must complete after a fault. */
#define ENOUGH		4U
/* Slots, links and timeouts are slow, and a busy machine more so. */
#define PATIENCE_MS	60000
#define NOTICE_US	100000	/* the health poll reports a fault to peers within this time */
#define SLOW_NOTICE_US	250000	/* where emulation is slow; a command would time out after 2 s */
#define WITNESS_EVERY	50U
#define KINDS_MOST	96U
#define PLANTED		4U
#define PLANTED_HITS	8U	/* of writes: those of a store may all be of its table */

static struct {
	uint32_t seed;
	unsigned int faults;
	unsigned int first;
	const char *only;
} options = { .seed = 1, .faults = 200, .only = "" };

/**
 * struct tally - how often a kind was injected, and how long recovery took
 * @times: by controller
 * @no_qid: how often it was not injected, for want of a queue ID
 * @ms: total time until all loads had recovered
 * @longest_ms: the longest recovery
 */
struct tally {
	unsigned int times[UNDER_LOAD];
	unsigned int no_qid;
	int64_t ms;
	int64_t longest_ms;
};

/* A load's counters before a fault. */
struct mark {
	unsigned int done;
	unsigned int losses;
};

/**
 * struct campaign - state of the campaign
 * @bad: badctrl, and the first controller without faults of its own
 * @idle: the second one
 * @under_load: the two controllers with load
 * @witness: the third controller
 * @generation: of the third controller
 * @marks: by controller and load
 * @kinds: all kinds, by number
 * @kind_count: their number
 * @weights: sum of their weights
 * @tallies: by kind
 * @notices: detection times of the health poll, by load_now()
 * @notice_count: their number
 */
struct campaign {
	struct np_bad bad;
	struct np_ctrl idle;
	struct target under_load[UNDER_LOAD];
	struct target witness;
	uint32_t generation;
	struct mark marks[UNDER_LOAD][TARGET_LOADS];
	const struct kind *kinds[KINDS_MOST];
	unsigned int kind_count;
	unsigned int weights;
	struct tally tallies[KINDS_MOST];
	int64_t *notices;
	unsigned int notice_count;
};

/* --- choice of a fault ------------------------------------------------------------- */

static void add_kinds(struct campaign *campaign, const struct kind *kinds, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (strstr(kinds[i].name, options.only)) {
			if (campaign->kind_count == KINDS_MOST)
				ksft_exit_fail_msg("more kinds than %u\n", KINDS_MOST);
			campaign->kinds[campaign->kind_count++] = &kinds[i];
			campaign->weights += kinds[i].weight;
		}
}

/*
 * Depends on the seed and the number only (splitmix64), so a fault can be repeated
 * without those before it.
 */
static void seed_fault(struct fault *fault, unsigned int number)
{
	uint64_t mixed = ((uint64_t)options.seed << 32 | number) * 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
	mixed ^= mixed >> 31;
	fault->random[0] = (unsigned short)(mixed >> 16);
	fault->random[1] = (unsigned short)(mixed >> 32);
	fault->random[2] = (unsigned short)(mixed >> 48);
}

static unsigned int below(struct fault *fault, unsigned int limit)
{
	return (unsigned int)nrand48(fault->random) % limit;
}

static unsigned int choose_kind(struct campaign *campaign, struct fault *fault)
{
	unsigned int i, at = below(fault, campaign->weights);

	for (i = 0; at >= campaign->kinds[i]->weight; i++)
		at -= campaign->kinds[i]->weight;
	return i;
}

/* Returns the number of the kind. */
static unsigned int choose(struct campaign *campaign, struct fault *fault, unsigned int number)
{
	unsigned int kind, on;

	*fault = (struct fault){ 0 };
	seed_fault(fault, number);
	kind = choose_kind(campaign, fault);
	fault->kind = campaign->kinds[kind];
	on = fault->kind->on == ON_BOTH ? below(fault, UNDER_LOAD) : fault->kind->on == ON_WELL;
	fault->target = &campaign->under_load[on];
	fault->other = &campaign->under_load[!on];
	fault->victim = &fault->target->loads[below(fault, TARGET_RINGS)];
	return kind;
}

/* --- results ----------------------------------------------------------------------- */

static enum fate fate_of(const struct fault *fault, const struct target *target,
			 const struct load *load)
{
	if (target != fault->target && !fault->kind->both)
		return FATE_SPARED;
	if (!load->method->peer)
		return fault->kind->cpu;
	if (np_as_tenant() && fault->kind->tenants)
		return fault->kind->tenants;
	if (load == fault->victim)
		return fault->kind->victim;
	if (fault->kind->by_node && (target->strict || np_as_tenant()))
		return fault->kind->confined;
	return fault->kind->others;
}

static void mark_all(struct campaign *campaign)
{
	unsigned int i, j;

	for (i = 0; i < UNDER_LOAD; i++) {
		for (j = 0; j < TARGET_LOADS; j++) {
			const struct load *load = &campaign->under_load[i].loads[j];

			campaign->marks[i][j].done = atomic_load(&load->done);
			campaign->marks[i][j].losses = atomic_load(&load->losses);
		}
	}
}

/* Wait until @count exceeds @before; returns NULL or the error. */
static const char *wait_above(struct load *load, atomic_uint *count, unsigned int before,
			      const char *otherwise)
{
	int64_t end = np_now_ms() + PATIENCE_MS;

	while (atomic_load(count) <= before) {
		if (atomic_load(&load->error))
			return load->error;
		if (atomic_load(&load->ended))
			return "ended, but should not have";
		if (np_now_ms() > end)
			return otherwise;
		np_sleep_ms(1);
	}
	return NULL;
}

static const char *wait_ended(struct load *load)
{
	int64_t end = np_now_ms() + PATIENCE_MS;

	while (!atomic_load(&load->ended)) {
		if (atomic_load(&load->error))
			return load->error;
		if (np_now_ms() > end)
			return "should have ended, but runs";
		np_sleep_ms(1);
	}
	return NULL;
}

/* The number of losses must be what the fault explains. */
static const char *judge_losses(const struct load *load, const struct kind *kind, enum fate fate,
				const struct mark *mark)
{
	unsigned int losses = atomic_load(&load->losses) - mark->losses;

	if (fate == FATE_SPARED && losses)
		return "was lost, but should not have been";
	if (fate == FATE_LOST && losses > 1U + kind->again)
		return "was lost more than once";
	return NULL;
}

static const char *judge_load(struct load *load, const struct kind *kind, enum fate fate,
			      const struct mark *mark)
{
	const char *wrong = NULL;

	if (fate == FATE_ENDED)
		return wait_ended(load);
	if (fate == FATE_LOST)
		wrong = wait_above(load, &load->losses, mark->losses, "was not lost, or was not re-armed");
	wrong = wrong ?: wait_above(load, &load->done, atomic_load(&load->done) + ENOUGH,
				    "stands still");
	return wrong ?: judge_losses(load, kind, fate, mark);
}

static bool judge_target(struct campaign *campaign, const struct fault *fault, unsigned int on)
{
	struct target *target = &campaign->under_load[on];
	const char *wrong;
	unsigned int i;

	for (i = 0; i < target->count; i++) {
		struct load *load = &target->loads[i];

		wrong = judge_load(load, fault->kind, fate_of(fault, target, load),
				   &campaign->marks[on][i]);
		if (!wrong)
			continue;
		ksft_print_msg("%s, load %u (%s): %s (%s)\n", target->serial, i, load->method->name,
			       wrong, strerror(-load->code));
		return false;
	}
	return true;
}

static bool judge(struct campaign *campaign, const struct fault *fault)
{
	bool good = true;
	unsigned int i;

	for (i = 0; i < UNDER_LOAD; i++)
		good &= judge_target(campaign, fault, i);
	return good;
}

/* The time of the last peer that saw the fault. */
static void note_notice(struct campaign *campaign, const struct fault *fault)
{
	int64_t last = 0, noticed;
	unsigned int i;

	for (i = 0; i < TARGET_PEERS; i++) {
		noticed = atomic_load(&fault->target->loads[i].noticed);
		if (noticed > last)
			last = noticed;
	}
	campaign->notices[campaign->notice_count++] = last - fault->not_before;
}

static bool witnesses_intact(struct campaign *campaign)
{
	bool good = target_intact(&campaign->witness);
	unsigned int i;

	for (i = 0; i < UNDER_LOAD; i++)
		good &= target_intact(&campaign->under_load[i]);
	if (!good)
		ksft_print_msg("a region that must not change has changed\n");
	return good;
}

/* --- one fault ---------------------------------------------------------------------- */

static void let_end(const struct fault *fault)
{
	unsigned int i;

	for (i = 0; i < fault->target->count; i++) {
		struct load *load = &fault->target->loads[i];

		if (fate_of(fault, fault->target, load) == FATE_ENDED)
			atomic_store(&load->mortal, true);
	}
}

static int renew_ended(const struct fault *fault)
{
	struct target *target = fault->target;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < target->count && !ret; i++)
		if (atomic_load(&target->loads[i].ended))
			ret = target_renew(target, &target->loads[i]);
	return ret;
}

static int bring_back(struct fault *fault)
{
	int ret = target_mend(fault->target);

	if (!ret && fault->kind->mend)
		ret = fault->kind->mend(fault);
	if (ret)
		return ret;
	return fault->kind->cpu == FATE_ENDED ? target_revive(fault->target) : renew_ended(fault);
}

/* The kernel log gets a line too, to find the cause of messages. */
static void announce(const struct fault *fault, unsigned int number)
{
	char text[128];

	snprintf(text, sizeof(text), "fault %u of seed %u: %s at %s\n", number, options.seed,
		 fault->kind->name, fault->target->serial);
	ksft_print_msg("%s", text);
	np_write_file("/dev/kmsg", text);
}

static int strike(struct campaign *campaign, struct fault *fault)
{
	np_sleep_ms((int)below(fault, 10));
	mark_all(campaign);
	let_end(fault);
	if (fault->kind->hurry)
		np_bad_short_admin_timeout();
	fault->not_before = load_now();
	return fault->kind->strike(fault);
}

static void count(const struct campaign *campaign, const struct fault *fault, struct tally *tally,
		  int64_t took)
{
	tally->times[fault->target != campaign->under_load]++;
	tally->ms += took;
	if (took > tally->longest_ms)
		tally->longest_ms = took;
}

static bool do_fault(struct campaign *campaign, unsigned int number)
{
	int64_t began = np_now_ms();
	struct fault fault;
	unsigned int kind = choose(campaign, &fault, number);
	struct tally *tally = &campaign->tallies[kind];
	bool good, no_qid;
	int ret;

	announce(&fault, number);
	ret = strike(campaign, &fault);
	if (ret)
		ksft_print_msg("it cannot be injected: %s\n", strerror(-ret));
	no_qid = fault.kind->takes_qid && ret == -ENOSPC;
	good = judge(campaign, &fault) && (!ret || no_qid);
	if (fault.kind->hurry)
		np_bad_long_admin_timeout();
	if (!good)
		return false;
	if (no_qid)
		tally->no_qid++;
	else
		count(campaign, &fault, tally, np_now_ms() - began);
	if (fault.kind->watched)
		note_notice(campaign, &fault);
	ret = bring_back(&fault);
	if (ret)
		ksft_print_msg("a load that ended does not restart: %s\n", strerror(-ret));
	return !ret;
}

static bool do_all(struct campaign *campaign)
{
	unsigned int i;
	bool good = true;

	for (i = options.first; good && i < options.first + options.faults; i++) {
		good = do_fault(campaign, i);
		if (i % WITNESS_EVERY == 0)
			good = good && witnesses_intact(campaign);
	}
	return good;
}

/* --- reports ------------------------------------------------------------------------ */

static void report_kinds(const struct campaign *campaign)
{
	unsigned int i, times, all = 0;

	for (i = 0; i < campaign->kind_count; i++) {
		const struct tally *tally = &campaign->tallies[i];

		times = tally->times[0] + tally->times[1];
		all += times;
		if (tally->no_qid)
			ksft_print_msg("%s: %u more not injected, as this process kept all queue IDs\n",
				       campaign->kinds[i]->name, tally->no_qid);
		if (!times)
			continue;
		ksft_print_msg("%-46s %5u at %s %5u at %s, %5lld ms each, %6lld ms at most\n",
			       campaign->kinds[i]->name, tally->times[0],
			       campaign->under_load[0].serial, tally->times[1],
			       campaign->under_load[1].serial,
			       (long long)tally->ms / times,
			       (long long)tally->longest_ms);
	}
	ksft_print_msg("%u faults of seed %u\n", all, options.seed);
}

static void report_loads(const struct campaign *campaign)
{
	unsigned long long judged = 0, either = 0, lost = 0, corrupt = 0, losses = 0, done = 0;
	unsigned int i, j, values, members;

	for (i = 0; i < UNDER_LOAD; i++) {
		for (j = 0; j < campaign->under_load[i].count; j++) {
			const struct load *load = &campaign->under_load[i].loads[j];

			judged += load->ledger.judged;
			either += load->ledger.either;
			lost += load->ledger.lost;
			corrupt += load->ledger.corrupt;
			losses += atomic_load(&load->losses);
			done += atomic_load(&load->done);
		}
	}
	ksft_print_msg("%llu commands, %llu queue pairs lost and re-armed\n", done, losses);
	ksft_print_msg("%llu blocks verified, %llu of them old or new, %llu lost, %llu corrupt\n",
		       judged, either, lost, corrupt);
	load_store_counts(&values, &members);
	ksft_print_msg("%u values of the store verified, its member lost %u times\n", values, members);
}

static int earlier(const void *a, const void *b)
{
	const int64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* The kernels of selftests/setup/debug-kernel are too slow for the time limits. */
static bool slow_kernel(void)
{
	struct utsname system;

	return !uname(&system) && strstr(system.release, "-np-");
}

static void report_notices(struct campaign *campaign)
{
	unsigned int count = campaign->notice_count, late = 0, i;
	const int64_t *notices = campaign->notices;

	qsort(campaign->notices, count, sizeof(*notices), earlier);
	for (i = 0; i < count; i++)
		late += notices[i] > NOTICE_US;
	ksft_print_msg("%u detected by the health poll: a quarter after %lld us, half after %lld us, all after %lld us; %u later than %u us\n",
		       count, (long long)notices[count / 4], (long long)notices[count / 2],
		       (long long)notices[count - 1], late, NOTICE_US);
}

/*
 * The clock does not count that a guest stands still, but that it is slow, and delays of single threads.
 * So half of them must be in time; the number of late ones is printed.
 */
static void judge_notices(struct campaign *campaign)
{
	const char *what = "the health poll reports faults in time";

	if (campaign->notice_count)
		report_notices(campaign);
	if (!campaign->notice_count || slow_kernel())
		ksft_test_result_skip("%s: no samples\n", what);
	else
		ksft_test_result(campaign->notices[campaign->notice_count / 2] <= SLOW_NOTICE_US,
				 "%s\n", what);
}

/* --- planted errors ----------------------------------------------------------------- */

/*
 * The controller reports success for a write that it did not execute, or not completely:
 * is that detected? Every write is affected, because a block that is written again is
 * right again.
 */
static int plant(struct campaign *campaign, const struct load *load, uint32_t action)
{
	if (load->method->peer)
		return target_aim(campaign->under_load, load, NVMEPEER_OP_WRITE, action, 0, BADCTRL_EVERY);
	return np_bad_rule(&campaign->bad, 0, NP_IO_WRITE, action, 0, BADCTRL_EVERY);
}

static bool finds(struct campaign *campaign, struct load *load, uint32_t action)
{
	struct np_bad *bad = &campaign->bad;
	int64_t end = np_now_ms() + NP_TIMEOUT_MS;

	if (plant(campaign, load, action) || load_start(load))
		return false;
	while (np_bad_hits(bad, 0) < PLANTED_HITS && np_now_ms() < end)
		np_sleep_ms(1);
	load_end(load);
	return !target_mend(campaign->under_load) && load->error &&
	       load->ledger.lost + load->ledger.corrupt;
}

static void find_planted(struct campaign *campaign)
{
	struct target *target = &campaign->under_load[0];
	struct load *cpu = &target->loads[TARGET_PEERS];

	ksft_print_msg("from here on errors are planted\n");
	ksft_test_result(finds(campaign, &target->loads[0], BADCTRL_LIE),
			 "a lost write of a peer is detected\n");
	ksft_test_result(finds(campaign, &target->loads[1], BADCTRL_TEAR),
			 "a torn write of a peer is detected\n");
	ksft_test_result(finds(campaign, cpu, BADCTRL_LIE),
			 "a lost write of the CPU is detected\n");
	ksft_test_result(finds(campaign, cpu + 1, BADCTRL_LIE),
			 "a lost write of a store is detected\n");
}

static void skip_planted(void)
{
	unsigned int i;

	for (i = 0; i < PLANTED; i++)
		ksft_test_result_skip("planted errors: there are others\n");
}

/* --- beginning and end ------------------------------------------------------------------ */

static int start_all(struct campaign *campaign)
{
	struct target *targets = campaign->under_load;

	targets[0] = (struct target){ .serial = "bad", .ctrl = &campaign->bad.ctrl,
				      .bad = &campaign->bad, .count = TARGET_LOADS };
	targets[1] = (struct target){ .serial = "np0", .ctrl = &campaign->bad.good,
				      .count = TARGET_LOADS - 1 };
	campaign->witness = (struct target){ .serial = "np1", .ctrl = &campaign->idle };
	return np_ctrl_open(&campaign->idle, "np1") ?: target_start(&targets[0], 2, options.seed) ?:
	       target_start(&targets[1], 1, options.seed + TARGET_LOADS + 1) ?:
	       target_start(&campaign->witness, 1, options.seed + 2 * (TARGET_LOADS + 1));
}

static int open_all(struct campaign *campaign)
{
	int ret = np_bad_open(&campaign->bad);

	campaign->notices = calloc(options.faults, sizeof(*campaign->notices));
	if (!campaign->notices)
		return -ENOMEM;
	/* Of disks that are bound later. */
	return ret ?: load_clock_start() ?: np_bad_short_io_timeout() ?: start_all(campaign);
}

/* The final check of everything. */
static bool end_all(struct campaign *campaign)
{
	struct nvme_peer_info info;
	bool good = true;
	unsigned int i, j;

	for (i = 0; i < UNDER_LOAD; i++) {
		target_end(&campaign->under_load[i]);
		for (j = 0; j < campaign->under_load[i].count; j++)
			good &= !campaign->under_load[i].loads[j].error;
	}
	good &= witnesses_intact(campaign);
	return good && !np_info(campaign->idle.fd, &info) &&
	       info.generation == campaign->idle.info.generation;
}

static int close_all(struct campaign *campaign)
{
	unsigned int i;

	for (i = 0; i < UNDER_LOAD; i++)
		target_close(&campaign->under_load[i]);
	target_close(&campaign->witness);
	np_ctrl_close(&campaign->idle);
	load_clock_end();
	np_expected_splat("end", "dma-fault");
	return np_bad_close(&campaign->bad);
}

static void parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "faults", required_argument, NULL, 'n' },
		{ "first", required_argument, NULL, 'f' },
		{ "only", required_argument, NULL, 'o' },
		{ 0 }
	};
	int option;

	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (option) {
		case 's':
			options.seed = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'n':
			options.faults = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'f':
			options.first = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'o':
			options.only = optarg;
			break;
		default:
			ksft_exit_fail_msg("usage: fault_campaign [--seed N] [--faults N] [--first N] [--only PART-OF-A-KIND]\n");
		}
	}
}

static void run(struct campaign *campaign)
{
	bool good = do_all(campaign);

	good &= end_all(campaign);
	report_kinds(campaign);
	report_loads(campaign);
	ksft_test_result(good, "%u faults from %u on, of seed %u\n", options.faults, options.first,
			 options.seed);
	judge_notices(campaign);
	if (good)
		find_planted(campaign);
	else
		skip_planted();
	ksft_test_result(!close_all(campaign), "nothing is left behind\n");
}

int main(int argc, char **argv)
{
	static struct campaign campaign;
	int ret;

	ksft_print_header();
	parse_options(argc, argv);
	add_kinds(&campaign, controller_faults, misbehaviour_count);
	add_kinds(&campaign, external_faults, interference_count);
	if (!campaign.kind_count)
		ksft_exit_fail_msg("there is no kind '%s'\n", options.only);
	ret = open_all(&campaign);
	if (ret == -ENOENT)
		ksft_exit_skip("no badctrl in this guest\n");
	if (ret)
		ksft_exit_fail_msg("cannot set up: %s\n", strerror(-ret));
	ksft_set_plan(3 + PLANTED);
	run(&campaign);
	ksft_finished();
}
