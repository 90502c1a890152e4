// SPDX-License-Identifier: GPL-2.0-only
/* A third, by a weak address. planted: cycle of 3: lib/three -> lib/one (planted_one) */
__attribute__((weak)) int planted_one(void);

int planted_a, planted_b, planted_c, planted_d;
int (*planted_three)(void) = planted_one;
