// SPDX-License-Identifier: GPL-2.0-only
/* The other half of the cycle. permitted: kmod/core/second -> kmod/core/first */
#include "lower.h"

int planted_second(int depth)
{
	return planted_first(depth);
}
