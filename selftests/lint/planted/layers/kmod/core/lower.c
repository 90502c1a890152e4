// SPDX-License-Identifier: GPL-2.0-only
/*
 * The core uses a higher layer, which uses the core.
 * planted: include: kmod/core/lower.c:8 includes cpu/left.h
 * planted: layer: kmod/core/lower -> kmod/cpu/left (planted_left)
 * planted: cycle of 2: kmod/core/lower -> kmod/cpu/left (planted_left)
 */
#include "../cpu/left.h"

int planted_lower_data = 3;

int planted_lower(void)
{
	return planted_left();
}
