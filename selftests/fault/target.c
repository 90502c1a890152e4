// SPDX-License-Identifier: GPL-2.0-only
/* A controller under load: see target.h. */
#include "target.h"

#include <unistd.h>

/* Regions are far apart, so that a write to a wrong place does not hit another region. */
#define REGION_STEP	(4 * (uint64_t)LOAD_BYTES)
#define REGIONS		NP_AREA(2) / 16
#define BAD_NAMESPACES	3U

static const struct load_method *method_of(unsigned int load)
{
	if (load < TARGET_RINGS)
		return &load_by_rings;
	if (load < TARGET_PEERS)
		return &load_by_library;
	return load == TARGET_PEERS ? &load_by_disk : &load_by_store;
}

static void init_loads(struct target *target, uint32_t witness_nsid, uint32_t seed)
{
	uint64_t place = REGIONS;
	unsigned int i;

	for (i = 0; i < target->count; i++, place += REGION_STEP)
		load_init(&target->loads[i], method_of(i), 1, place, seed + i);
	load_init(&target->witness, &load_by_disk, witness_nsid, place, seed + i);
}

static int open_load(struct target *target, struct load *load)
{
	return load_open(load, target->ctrl);
}

/* Call for each load, then for the witness if @witness, until one returns an error. */
static int for_all(struct target *target, bool witness,
		   int (*action)(struct target *target, struct load *load))
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < target->count && !ret; i++)
		ret = action(target, &target->loads[i]);
	if (!ret && witness)
		ret = action(target, &target->witness);
	return ret;
}

static int fill_load(struct target *target, struct load *load)
{
	(void)target;
	return load_fill(load);
}

static int start_load(struct target *target, struct load *load)
{
	(void)target;
	return load_start(load);
}

static int end_load(struct target *target, struct load *load)
{
	(void)target;
	load_end(load);
	return 0;
}

static int close_load(struct target *target, struct load *load)
{
	(void)target;
	load_close(load);
	return 0;
}

int target_mend(struct target *target)
{
	unsigned int i;
	int ret = 0;

	if (!target->bad)
		return 0;
	for (i = 0; i < BADCTRL_RULES && !ret; i++)
		ret = np_bad_rule(target->bad, i, 0, BADCTRL_COUNT, 0, 0);
	return ret ?: np_bad_set(target->bad, BADCTRL_LATE, 0);
}

/* Queue IDs above those of the CPU are those of all others. */
static int aim_at_tenant(struct target *target, const struct load *load, uint32_t match, uint32_t action,
			 uint32_t argument, uint32_t times)
{
	const struct np_bad_place place = {
		.first = (uint32_t)(ledger_place(&load->ledger, 0) / NP_BLOCK), .blocks = LEDGER_BLOCKS,
	};
	struct nvme_peer_info info;
	int ret = np_info(target->ctrl->fd, &info);

	match |= BADCTRL_ON_QUEUE(info.qids_cpu + 1) | BADCTRL_AND_ABOVE;
	return ret ?: np_bad_rule_in(target->bad, &place, 0, match, action, argument, times);
}

int target_aim(struct target *target, const struct load *load, uint32_t match, uint32_t action,
	       uint32_t argument, uint32_t times)
{
	if (np_as_tenant())
		return aim_at_tenant(target, load, match, action, argument, times);
	return np_bad_rule(target->bad, 0, match | BADCTRL_ON_QUEUE(load->qid), action, argument, times);
}

/*
 * badctrl keeps its words and disk when it is unbound. It grants as many queues as
 * possible, because a queue ID that this process used is quarantined for others while the
 * process lives.
 */
static int bind_bad(struct np_bad *bad)
{
	return np_bad_unbind(bad) ?: np_bad_set(bad, BADCTRL_MODE, BADCTRL_WORKS) ?:
	       np_bad_set(bad, BADCTRL_ACTIVE, (1U << BAD_NAMESPACES) - 1) ?:
	       np_bad_set(bad, BADCTRL_GRANT, BADCTRL_QUEUES) ?:
	       np_bad_bind(bad, BAD_NAMESPACES);
}

static int bind_good(struct target *target)
{
	np_ctrl_close(target->ctrl);
	/* A DEAD controller is still bound. */
	np_unbind(target->ctrl->address);
	return np_ctrl_open(target->ctrl, target->serial);
}

int target_start(struct target *target, uint32_t witness_nsid, uint32_t seed)
{
	int ret = target->bad ? bind_bad(target->bad) : 0;
	struct nvme_peer_info info;

	init_loads(target, witness_nsid, seed);
	ret = ret ?: np_info(target->ctrl->fd, &info);
	if (!ret)
		target->strict = info.domain == NVME_PEER_DOMAIN_STRICT;
	return ret ?: for_all(target, true, open_load) ?: for_all(target, true, fill_load) ?:
	       for_all(target, false, start_load);
}

int target_renew(struct target *target, struct load *load)
{
	load_end(load);
	load_close(load);
	return load_open(load, target->ctrl) ?: load_start(load);
}

int target_revive(struct target *target)
{
	int ret;

	for_all(target, false, end_load);
	for_all(target, true, close_load);
	ret = target->bad ? bind_bad(target->bad) : bind_good(target);
	return ret ?: for_all(target, true, open_load) ?: for_all(target, false, start_load);
}

bool target_intact(struct target *target)
{
	return load_judge(&target->witness);
}

void target_end(struct target *target)
{
	for_all(target, false, end_load);
}

void target_close(struct target *target)
{
	for_all(target, true, close_load);
}
