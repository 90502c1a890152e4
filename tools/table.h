/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A table for people: cells are put one after the other, row by row, and printed
 * when it is known how wide each column is.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>
#include <stdio.h>

/**
 * struct table - rows of one width
 * @columns: of a row
 * @cells: of all rows, the first of which is the heading; owned
 * @count: of them
 */
struct table {
	size_t columns;
	char **cells;
	size_t count;
};

/* table_cell() - the next cell; an empty one shows as "-". */
void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* table_print() - print and free all cells. */
void table_print(struct table *table, FILE *out);

#endif /* TABLE_H */
