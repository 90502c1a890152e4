/* SPDX-License-Identifier: GPL-2.0-only */
/* What the planted source files share. */
extern int planted_parameter;
extern int planted_lower_data;
extern int planted_right_data;
int planted_base(void);
int planted_left(void);
int planted_first(int depth);
int planted_second(int depth);
