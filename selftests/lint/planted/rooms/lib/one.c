// SPDX-License-Identifier: GPL-2.0-only
/* A third of a circle, by a call. planted: circle of 3: lib/one -> lib/two (planted_two) */
int planted_two(void);

int planted_one(void)
{
	return planted_two();
}
