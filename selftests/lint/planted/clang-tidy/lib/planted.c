/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Mistakes that clang-tidy and its analyser must find. */
#include <stdlib.h>
#include <string.h>

struct planted {
	int value;
	struct planted *next;
};

/* planted: [clang-analyzer-unix.Malloc] */
int planted_use_after_free(struct planted *list)
{
	struct planted *next;

	for (next = list; next; next = next->next)
		free(next);
	return 0;
}

/* planted: [clang-analyzer-core.NullDereference] */
int planted_null(struct planted *list)
{
	if (!list)
		return list->value;
	return 0;
}

/* planted: [bugprone-sizeof-expression] */
void planted_clear(struct planted *list)
{
	memset(list, 0, sizeof(list));
}
