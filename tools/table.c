// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Columns as wide as their widest cell; see table.h.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* Out of memory for a cell: abort. */
static void *or_abort(void *memory)
{
	if (memory)
		return memory;
	perror("nvme-peer");
	abort();
}

void table_cell(struct table *table, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	table->cells = or_abort(reallocarray(table->cells, table->count + 1, sizeof(*table->cells)));
	table->cells[table->count++] = or_abort(text);
}

static const char *cell_text(const struct table *table, size_t cell)
{
	return table->cells[cell][0] ? table->cells[cell] : "-";
}

static int column_width(const struct table *table, size_t column)
{
	size_t cell, width = 0;

	for (cell = column; cell < table->count; cell += table->columns)
		if (strlen(cell_text(table, cell)) > width)
			width = strlen(cell_text(table, cell));
	return (int)width;
}

void table_print(struct table *table, FILE *out)
{
	size_t cell, column;

	for (cell = 0; cell < table->count; cell++) {
		column = cell % table->columns;
		if (column + 1 < table->columns)
			fprintf(out, "%-*s  ", column_width(table, column), cell_text(table, cell));
		else
			fprintf(out, "%s\n", cell_text(table, cell));
	}
	for (cell = 0; cell < table->count; cell++)
		free(table->cells[cell]);
	free(table->cells);
	table->cells = NULL;
	table->count = 0;
}
