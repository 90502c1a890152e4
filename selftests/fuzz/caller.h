/* SPDX-License-Identifier: GPL-2.0-only */
/* Take on the rights of a caller, for each thread. */
#ifndef FUZZ_CALLER_H
#define FUZZ_CALLER_H

#include "permit.h"

/*
 * Drop all effective rights of this and all later threads: 0 or -errno. They stay
 * permitted for fuzz_caller_become().
 */
int fuzz_caller_leave_root(void);
/* After that: the calling thread and its children have exactly the rights of @caller. */
int fuzz_caller_become(const struct np_caller *caller);

#endif /* FUZZ_CALLER_H */
