// SPDX-License-Identifier: GPL-2.0-only
/*
 * The core calls upward.
 * planted: include: kmod/core/lower.c:7 includes cpu/left.h
 * planted: floor: kmod/core/lower -> kmod/cpu/left (planted_left)
 */
#include "../cpu/left.h"

int planted_lower_data = 3;

int planted_lower(void)
{
	return planted_left();
}
