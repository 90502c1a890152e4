/* SPDX-License-Identifier: GPL-2.0-only */
/* What is right and wrong in answers to the fuzzer's calls; who is wrong is named. */
#ifndef FUZZ_JUDGE_H
#define FUZZ_JUDGE_H

#include "fuzz.h"
#include "permit.h"

/**
 * struct fuzz_judge - of all threads of a round
 * @round: its name
 * @effects: what the controller declares of I/O commands
 * @violations: calls with a wrong answer
 * @allowed: calls that nobody may refuse for want of a right
 * @refused: calls that must be refused
 */
struct fuzz_judge {
	const char *round;
	const uint32_t *effects;
	atomic_uint violations;
	atomic_uint allowed;
	atomic_uint refused;
};

/* A wrong answer: which call it was, and the program that makes it again. */
void fuzz_violation(struct fuzz_thread *thread, const char *call, const char *wrong, int answer);
/* Of any call: an errno that user space must never see is a violation. */
void fuzz_result(struct fuzz_thread *thread, const char *call, int answer);
/*
 * Of one whose rights are known.  @exact: nothing but rights can be in its way; if
 * something else is wrong with it too, it may be refused for that.
 */
void fuzz_judge(struct fuzz_thread *thread, const char *call, struct np_permit permit, bool exact,
		int answer);

#endif /* FUZZ_JUDGE_H */
