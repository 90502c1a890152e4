/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A controller under load: peers and the CPU on its first namespace, each in a region of
 * its own, and a witness region that is written once and must not change.
 */
#ifndef TARGET_H
#define TARGET_H

#include "npbad.h"
#include "load.h"

#define TARGET_RINGS	2U	/* peers that access their rings themselves */
#define TARGET_PEERS	(TARGET_RINGS + 1)
#define TARGET_LOADS	(TARGET_PEERS + 2)

/**
 * struct target - the controller
 * @serial: as for np_ctrl_open()
 * @ctrl: its node
 * @strict: an IOMMU domain confines it, without delay
 * @bad: the same controller if it is badctrl, else NULL
 * @loads: peers first, that of the library after the others, then the CPU, and on badctrl a store
 * @count: of @loads, 0 for a controller without load
 * @witness: the region that must not change
 */
struct target {
	const char *serial;
	struct np_ctrl *ctrl;
	bool strict;
	struct np_bad *bad;
	struct load loads[TARGET_LOADS];
	unsigned int count;
	struct load witness;
};

/* @ctrl is open, or opened and bound if @bad; fills all regions and starts the loads. */
int target_start(struct target *target, uint32_t witness_nsid, uint32_t seed);
/* Ends, closes and opens @load again, and verifies the contents of its region. */
int target_renew(struct target *target, struct load *load);
/* The same for all loads, when the controller was failed, unbound or unplugged. */
int target_revive(struct target *target);
/* False: the witness region has changed. */
bool target_intact(struct target *target);
/* Ends all loads. */
void target_end(struct target *target);
void target_close(struct target *target);

/* Clears the faults injected into badctrl. */
int target_mend(struct target *target);
/*
 * A rule for commands of @load, a peer: of its queue, or, of the queues that mediated queue pairs share, those
 * in its region. @action and so on as for np_bad_rule(); @match without a queue.
 */
int target_aim(struct target *target, const struct load *load, uint32_t match, uint32_t action,
	       uint32_t argument, uint32_t times);

#endif /* TARGET_H */
