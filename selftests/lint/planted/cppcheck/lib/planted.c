/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Mistakes that cppcheck must find. */
#include <stdio.h>
#include <stdlib.h>

/* planted: [memleak] */
int planted_leak(int value)
{
	int *memory = malloc(sizeof(*memory));

	if (!memory || value < 0)
		return -1;
	*memory = value;
	if (value == 3)
		return 0;
	free(memory);
	return 1;
}

/* planted: [resourceLeak] */
int planted_file(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		return -1;
	if (fgetc(file) == 'x')
		return 1;
	fclose(file);
	return 0;
}

/* planted: [arrayIndexOutOfBounds] */
int planted_bounds(void)
{
	int values[4] = { 0 };

	return values[4];
}
