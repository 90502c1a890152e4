// SPDX-License-Identifier: GPL-2.0-only
/* A third, by data. planted: cycle of 3: lib/two -> lib/three (planted_a, planted_b, planted_c and 1 more) */
extern int planted_a, planted_b, planted_c, planted_d;

int planted_two(void)
{
	return planted_a + planted_b + planted_c + planted_d;
}
