// SPDX-License-Identifier: GPL-2.0-only
/* A cycle inside one layer. permitted: kmod/core/first -> kmod/core/second */
#include "lower.h"

int planted_first(int depth)
{
	return depth ? planted_second(depth - 1) : 0;
}
