// SPDX-License-Identifier: GPL-2.0-only
/* Mistakes that checkpatch must find. */

/* planted: TRAILING_STATEMENTS */
int planted_statement(int value)
{
	if (value) return 1;
	return 0;
}

/* planted: SPACING */
int planted_space(int value)
{
	return value==1;
}

/* planted: BRACES */
int planted_braces(int value)
{
	if (value) {
		return 1;
	}
	return 0;
}
