/* SPDX-License-Identifier: GPL-2.0-only */
/* Becoming a caller with some rights or none, thread by thread. */
#ifndef FUZZ_CALLER_H
#define FUZZ_CALLER_H

#include "permit.h"

/* Nobody from here on, as all threads made later are: 0 or -errno. Rights wait to be taken. */
int fuzz_caller_leave_root(void);
/* After that: the calling thread, and what it makes, has the rights of @caller and no others. */
int fuzz_caller_become(const struct np_caller *caller);

#endif /* FUZZ_CALLER_H */
