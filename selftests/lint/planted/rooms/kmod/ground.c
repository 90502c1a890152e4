// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ground asks the roof for a parameter.
 * planted: floor: kmod/ground -> kmod/main (planted_parameter)
 */
#include "ground.h"

int planted_ground(void)
{
	return planted_parameter;
}
