// SPDX-License-Identifier: GPL-2.0-only
/* Half of a circle. planted: circle of 2: kmod/core/first -> kmod/core/second (planted_second) */
#include "lower.h"

int planted_first(int depth)
{
	return depth ? planted_second(depth - 1) : 0;
}
