/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kinds of faults: what is injected into a controller under load, and its permitted
 * effects.
 */
#ifndef KIND_H
#define KIND_H

#include "target.h"

/* Controllers that a kind can be injected into. */
#define ON_BAD		(1U << 0)	/* badctrl */
#define ON_WELL		(1U << 1)	/* QEMU's own */
#define ON_BOTH		(ON_BAD | ON_WELL)

/**
 * enum fate - permitted effect on a load
 * @FATE_SPARED: none: its queue pair is not lost
 * @FATE_LOST: its queue pair is lost and re-armed
 * @FATE_ENDED: its queue pair ends, and it creates a new one
 */
enum fate {
	FATE_SPARED,
	FATE_LOST,
	FATE_ENDED,
};

/**
 * struct fault - one fault
 * @kind: what is injected
 * @target: the controller
 * @other: the other controller under load
 * @victim: a peer on @target that writes its rings itself
 * @random: for further choices
 * @not_before: the last time at which the fault had not happened yet, by load_now()
 */
struct fault {
	const struct kind *kind;
	struct target *target;
	struct target *other;
	struct load *victim;
	unsigned short random[3];
	int64_t not_before;
};

/**
 * struct kind - a kind of faults
 * @name: in reports
 * @on: ON_*
 * @weight: how often, relative to others
 * @victim: effect on the victim
 * @others: effect on the other peers of the controller
 * @cpu: effect on the CPU: its commands wait, unless its disk ends
 * @confined: effect on the other peers if @by_node and the IOMMU translates strictly, or in
 *	mediated mode
 * @by_node: a strict domain confines it to peers whose node imported the memory
 * @tenants: effect on all peers in mediated mode, if it is not FATE_SPARED
 * @both: the other controller is affected in the same way
 * @again: a queue pair may be lost a second time, before or after its re-arm
 * @watched: the health poll detects it
 * @takes_qid: it cannot be injected while this process keeps all queue IDs from others
 * @hurry: an admin command hangs, so the admin timeout is short until the fault is over
 * @strike: injects it: 0, or a negative errno if that failed
 * @mend: further repair before loads that ended restart, or NULL
 */
struct kind {
	const char *name;
	unsigned int on;
	unsigned int weight;
	enum fate victim;
	enum fate others;
	enum fate cpu;
	enum fate confined;
	bool by_node;
	enum fate tenants;
	bool both;
	bool again;
	bool watched;
	bool takes_qid;
	bool hurry;
	int (*strike)(struct fault *fault);
	int (*mend)(struct fault *fault);
};

/* Faults of the controller itself, and faults from outside. */
extern const struct kind controller_faults[];
extern const unsigned int misbehaviour_count;
extern const struct kind external_faults[];
extern const unsigned int interference_count;

#endif /* KIND_H */
