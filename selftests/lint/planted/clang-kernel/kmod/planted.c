// SPDX-License-Identifier: GPL-2.0-only
/* Mistakes that clang's analyser must find. */
#include <linux/list.h>
#include <linux/module.h>

struct planted {
	struct planted *next;
	int value;
};

/* planted: Access to field 'value' results in a dereference of a null pointer */
int planted_null(struct planted *planted);
int planted_null(struct planted *planted)
{
	if (!planted)
		return planted->value;
	return 0;
}

/* planted: Undefined or garbage value returned to caller */
int planted_uninitialised(int value);
int planted_uninitialised(int value)
{
	int result;

	if (value > 3)
		result = 1;
	return result;
}

/* planted: Division by zero */
int planted_division(int value);
int planted_division(int value)
{
	if (value == 0)
		return 7 / value;
	return 0;
}

MODULE_LICENSE("GPL");
