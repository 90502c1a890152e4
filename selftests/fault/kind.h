/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kinds of faults: what is done to a controller under load, and what may come of it.
 */
#ifndef KIND_H
#define KIND_H

#include "target.h"

/* Controllers that a kind can be done to. */
#define ON_BAD		(1U << 0)	/* the one that misbehaves as it is told */
#define ON_WELL		(1U << 1)	/* QEMU's own */
#define ON_BOTH		(ON_BAD | ON_WELL)

/**
 * enum fate - what a fault may cost a peer
 * @FATE_SPARED: nothing: its queue pair is not lost
 * @FATE_LOST: its queue pair is lost and comes back
 * @FATE_ENDED: its queue pair ends, and it makes a new one
 */
enum fate {
	FATE_SPARED,
	FATE_LOST,
	FATE_ENDED,
};

/**
 * struct fault - one fault
 * @kind: what is done
 * @target: to which controller
 * @other: the other controller under load
 * @victim: a peer on @target that writes its rings itself
 * @random: for what else is to be chosen
 * @bitten: when it was not yet done for the last time that anybody looked, in microseconds
 */
struct fault {
	const struct kind *kind;
	struct target *target;
	struct target *other;
	struct load *victim;
	unsigned short random[3];
	int64_t bitten;
};

/**
 * struct kind - a kind of faults
 * @name: in reports
 * @on: ON_*
 * @weight: how often, compared with others
 * @victim: fate of the victim
 * @others: fate of the other peers on the controller
 * @cpu: fate of the CPU: its commands wait, unless its disk ends
 * @both: the other controller has the same fate
 * @again: it may cost a queue pair a second time, before or after that is back
 * @watched: it is the watch that notices
 * @hurry: an admin command does not end: with a short timeout of those until all is judged
 * @strike: does it: 0, or a negative errno if it could not be done
 * @mend: what else has to be done before those that ended begin again, or NULL
 */
struct kind {
	const char *name;
	unsigned int on;
	unsigned int weight;
	enum fate victim;
	enum fate others;
	enum fate cpu;
	bool both;
	bool again;
	bool watched;
	bool hurry;
	int (*strike)(struct fault *fault);
	int (*mend)(struct fault *fault);
};

/* What a controller does of its own accord, and what is done to one. */
extern const struct kind misbehaviours[];
extern const unsigned int misbehaviour_count;
extern const struct kind interferences[];
extern const unsigned int interference_count;

#endif /* KIND_H */
