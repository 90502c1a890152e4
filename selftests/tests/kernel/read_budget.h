/* SPDX-License-Identifier: GPL-2.0-only */
/* What kmod/peer/read_budget.c needs of the kernel, for unit-read-budget. */
#ifndef SELFTESTS_READ_BUDGET_H
#define SELFTESTS_READ_BUDGET_H

#include "kernel.h"

#define MSEC_PER_SEC		1000L
#define NSEC_PER_SEC		1000000000L
#define NSEC_PER_MSEC		1000000L
#define max(a, b)		((a) > (b) ? (a) : (b))
#define div64_u64(a, b)		((u64)(a) / (u64)(b))

#endif /* SELFTESTS_READ_BUDGET_H */
