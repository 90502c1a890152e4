/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Line charts over powers of two, as SVG.
 */
#ifndef PLOT_H
#define PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { PLOT_POINTS = 16, PLOT_WIDTH = 440, PLOT_HEIGHT = 320 };

/**
 * struct plot_line - one line of a chart
 * @name: for the legend
 * @values: one for each point, above 0
 */
struct plot_line {
	const char *name;
	double values[PLOT_POINTS];
};

/**
 * struct plot - a chart
 * @title: heading, with the unit of the values
 * @axis: name of the horizontal axis
 * @logarithmic: the vertical axis is logarithmic; otherwise it begins at 0
 * @count: number of points
 * @places: their places on the horizontal axis, ascending
 * @lines: number of lines, at most 4
 * @line: the lines
 */
struct plot {
	const char *title;
	const char *axis;
	bool logarithmic;
	size_t count;
	unsigned int places[PLOT_POINTS];
	size_t lines;
	struct plot_line line[4];
};

/* plot_begin() - start a picture of some charts side by side. */
void plot_begin(FILE *out, size_t charts, const char *title);

/* plot_chart() - draw chart @number. */
void plot_chart(FILE *out, size_t number, const struct plot *plot);

void plot_end(FILE *out);

#endif /* PLOT_H */
