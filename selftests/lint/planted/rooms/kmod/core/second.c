// SPDX-License-Identifier: GPL-2.0-only
/* The other half. planted: circle of 2: kmod/core/second -> kmod/core/first (planted_first) */
#include "lower.h"

int planted_second(int depth)
{
	return planted_first(depth);
}
