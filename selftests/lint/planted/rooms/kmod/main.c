// SPDX-License-Identifier: GPL-2.0-only
/* The roof, which may know everybody. */
#include "ground.h"

int planted_parameter;

int planted_main(void)
{
	return planted_ground() + planted_left();
}
