// SPDX-License-Identifier: GPL-2.0-only
/* Malformed kernel-doc comments. */

/**
 * nvmep_planted_one() - a function
 * @value: a value
 * @other: no such parameter
 * planted: Excess function parameter 'other'
 *
 * Return: 0
 */
int nvmep_planted_one(int value)
{
	return 0;
}

/**
 * nvmep_planted_two() - a function
 * planted: parameter 'value' not described in 'nvmep_planted_two'
 *
 * Return: 0
 */
int nvmep_planted_two(int value)
{
	return 0;
}

/* permitted: nvmep_planted_three */
int nvmep_planted_three(void)
{
	return 0;
}
