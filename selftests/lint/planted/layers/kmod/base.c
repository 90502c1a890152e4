// SPDX-License-Identifier: GPL-2.0-only
/*
 * The base uses a parameter of main.c.
 * planted: layer: kmod/base -> kmod/main (planted_parameter)
 */
#include "base.h"

int planted_base(void)
{
	return planted_parameter;
}
