// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses data of a layer beside its own.
 * planted: include: kmod/cpu/left.c:6 includes peer/right.h
 */
#include "peer/right.h"

/* planted: layer: kmod/cpu/left -> kmod/peer/right (planted_right_data) */
int planted_left(void)
{
	return planted_right_data + planted_lower_data;
}
