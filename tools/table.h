/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A table: cells are added row by row and printed with columns of equal width.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>
#include <stdio.h>

/**
 * struct table - table in progress
 * @columns: number of columns
 * @cells: cells of all rows, the heading first; owned
 * @count: number of cells
 */
struct table {
	size_t columns;
	char **cells;
	size_t count;
};

/* table_cell() - add a cell; an empty cell is printed as "-". */
void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* table_print() - print and free all cells. */
void table_print(struct table *table, FILE *out);

#endif /* TABLE_H */
