/* SPDX-License-Identifier: GPL-2.0-only */
/* Check the results of the fuzzer's calls, and report wrong ones. */
#ifndef FUZZ_JUDGE_H
#define FUZZ_JUDGE_H

#include "fuzz.h"
#include "permit.h"

/**
 * struct fuzz_judge - shared by all threads of a round
 * @round: its name
 * @effects: the effects log for I/O commands
 * @violations: calls with a wrong result
 * @allowed: calls that must not be refused for a missing permission
 * @refused: calls that must be refused
 */
struct fuzz_judge {
	const char *round;
	const uint32_t *effects;
	atomic_uint violations;
	atomic_uint allowed;
	atomic_uint refused;
};

/* Report a wrong result: the call, and the program that repeats it. */
void fuzz_violation(struct fuzz_thread *thread, const char *call, const char *wrong, int answer);
/* For any call: a kernel-internal errno is a violation. */
void fuzz_result(struct fuzz_thread *thread, const char *call, int answer);
/*
 * For a call with a known permission. @exact: the call can fail for missing permissions
 * only; otherwise it may be refused for other errors.
 */
void fuzz_judge(struct fuzz_thread *thread, const char *call, struct np_permit permit, bool exact,
		int answer);

#endif /* FUZZ_JUDGE_H */
