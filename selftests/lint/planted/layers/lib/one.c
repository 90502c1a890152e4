// SPDX-License-Identifier: GPL-2.0-only
/* A third of a cycle, by a call. planted: cycle of 3: lib/one -> lib/two (planted_two) */
int planted_two(void);

int planted_one(void)
{
	return planted_two();
}
