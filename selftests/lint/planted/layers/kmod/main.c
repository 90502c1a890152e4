// SPDX-License-Identifier: GPL-2.0-only
/* The highest layer may use all others. */
#include "base.h"

int planted_parameter;

int planted_main(void)
{
	return planted_base() + planted_left();
}
