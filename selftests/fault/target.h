/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A controller under load: peers and the CPU on its first namespace, each in a region
 * of its own, and a region that is written once and that nobody has any business in.
 */
#ifndef TARGET_H
#define TARGET_H

#include "badknob.h"
#include "load.h"

#define TARGET_RINGS	2U	/* peers that write their rings themselves */
#define TARGET_PEERS	(TARGET_RINGS + 1)
#define TARGET_LOADS	(TARGET_PEERS + 1)

/**
 * struct target - the controller
 * @serial: as np_ctrl_open() wants it
 * @ctrl: its node
 * @bad: the same if it is one that misbehaves, else NULL
 * @loads: peers first, that of the library after the others, the CPU last
 * @count: of @loads, 0 for one that is only looked at
 * @witness: what must stay as it is
 */
struct target {
	const char *serial;
	struct np_ctrl *ctrl;
	struct np_bad *bad;
	struct load loads[TARGET_LOADS];
	unsigned int count;
	struct load witness;
};

/* @ctrl is open, or opened and bound if @bad; fills all regions and starts the loads. */
int target_start(struct target *target, uint32_t witness_nsid, uint32_t seed);
/* Ends, closes and opens @load again; what was on the disk has to be there. */
int target_renew(struct target *target, struct load *load);
/* The same for all, when the controller was given up, unbound or pulled. */
int target_revive(struct target *target);
/* False: somebody wrote to what nobody has any business in. */
bool target_intact(struct target *target);
/* Ends all loads. */
void target_end(struct target *target);
void target_close(struct target *target);

/* Forgets what a fault left in a controller that misbehaves. */
int target_mend(struct target *target);

#endif /* TARGET_H */
