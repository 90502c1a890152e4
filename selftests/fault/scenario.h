/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Paths of the module, each visible to users, in which failures are injected: prepare,
 * act, undo.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "fault.h"

#define SCENARIO_FILES	8

/**
 * struct stage - what scenarios act on
 * @ctrl: np0, bound and open when a scenario begins and ends
 * @files: descriptors for the scenario, -1 where unused; undo closes them
 * @handles: buffers imported on @ctrl, 0 where unused; undo releases them
 * @map: a mapping that undo removes, or NULL
 * @map_length: of @map
 * @bytes: page-aligned memory for data
 */
struct stage {
	struct np_ctrl ctrl;
	int files[SCENARIO_FILES];
	uint32_t handles[2];
	void *map;
	size_t map_length;
	uint8_t *bytes;
};

#define STAGE_BYTES	(256U * 1024)

/**
 * struct scenario - one path through the module
 * @name: as printed
 * @where: the context in which failures are injected
 * @prepare: creates what @act needs, without failures; may be NULL
 * @act: the path: 0 or a negative errno. May leave files, handles and a mapping on the
 *	stage for undo
 * @must_succeed: the path cannot report a failure, so it must not fail
 * @may_die: the controller may be DEAD afterwards; it must work after a new bind
 * @near: only failures of the module's own allocations
 * @costly: a round takes seconds: only some of the later failures, unless all are
 *	requested
 */
struct scenario {
	const char *name;
	enum fault_where where;
	int (*prepare)(struct stage *stage);
	int (*act)(struct stage *stage);
	bool must_succeed;
	bool may_die;
	bool near;
	bool costly;
};

extern const struct scenario scenarios[];
extern const unsigned int scenario_count;

/* An empty stage around an open controller. */
int stage_open(struct stage *stage);
/* Close, release and unmap what @act and @prepare left. */
void stage_clear(struct stage *stage);
void stage_close(struct stage *stage);
/* A command of the CPU and a queue pair of a peer still work. */
int stage_check(struct stage *stage);

#endif /* SCENARIO_H */
