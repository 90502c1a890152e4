// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Line charts over powers of two, as SVG; see plot.h.
 */
#include <math.h>

#include "plot.h"

enum { TITLE = 30, LEFT = 64, RIGHT = 424, TOP = 70, BOTTOM = 280 };

static const char *const colours[] = { "#1f77b4", "#2ca02c", "#ff7f0e", "#d62728" };

/**
 * struct axis - the vertical axis of a chart
 * @logarithmic: see struct plot
 * @low: value at the bottom
 * @high: value at the top
 */
struct axis {
	bool logarithmic;
	double low;
	double high;
};

void plot_begin(FILE *out, size_t charts, const char *title)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"12\" y=\"20\" font-size=\"14\">%s</text>\n",
		charts * PLOT_WIDTH, PLOT_HEIGHT + TITLE, title);
}

void plot_end(FILE *out)
{
	fputs("</svg>\n", out);
}

/* The smallest 1, 2 or 5 times a power of ten that is not below @value. */
static double round_up(double value)
{
	double power = pow(10, floor(log10(value))), part = value / power;

	return power * (part <= 1.0001 ? 1 : part <= 2.0001 ? 2 : part <= 5.0001 ? 5 : 10);
}

static struct axis make_axis(const struct plot *plot)
{
	double low = plot->line[0].values[0], high = low;
	size_t i, j;

	for (i = 0; i < plot->lines; i++)
		for (j = 0; j < plot->count; j++) {
			low = fmin(low, plot->line[i].values[j]);
			high = fmax(high, plot->line[i].values[j]);
		}
	return (struct axis){
		.logarithmic = plot->logarithmic,
		.low = plot->logarithmic ? low / 1.2 : 0,
		.high = high * (plot->logarithmic ? 1.2 : 1.05),
	};
}

static double height(const struct axis *axis, double value)
{
	double part = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low) :
					  (value - axis->low) / (axis->high - axis->low);

	return BOTTOM - part * (BOTTOM - TOP);
}

static double place(const struct plot *plot, size_t point)
{
	double first = log2(plot->places[0]), range = log2(plot->places[plot->count - 1]) - first;

	return range > 0 ? LEFT + (log2(plot->places[point]) - first) * (RIGHT - LEFT) / range : LEFT;
}

static void draw_tick(FILE *out, const struct axis *axis, double value)
{
	double y = height(axis, value);

	fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>", LEFT, y, RIGHT);
	fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6, y + 4, value);
}

static void draw_ticks(FILE *out, const struct axis *axis)
{
	double value = axis->logarithmic ? round_up(axis->low) : 0;
	double step = round_up(axis->high / 6);

	while (value <= axis->high) {
		draw_tick(out, axis, value);
		value = axis->logarithmic ? round_up(value * 1.01) : value + step;
	}
}

static void draw_line(FILE *out, const struct plot *plot, const struct axis *axis, size_t number)
{
	const struct plot_line *line = &plot->line[number];
	size_t i;

	fprintf(out, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"", colours[number]);
	for (i = 0; i < plot->count; i++)
		fprintf(out, "%.1f,%.1f ", place(plot, i), height(axis, line->values[i]));
	fputs("\"/>\n", out);
	for (i = 0; i < plot->count; i++)
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", place(plot, i),
			height(axis, line->values[i]), colours[number]);
	if (plot->lines > 1)
		fprintf(out, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", LEFT + 12 + 80 * (int)number,
			TOP - 8, colours[number], line->name);
}

void plot_chart(FILE *out, size_t number, const struct plot *plot)
{
	struct axis axis = make_axis(plot);
	size_t i;

	fprintf(out, "<g transform=\"translate(%zu %d)\">\n<text x=\"%d\" y=\"%d\">%s</text>\n",
		number * PLOT_WIDTH, TITLE - 10, LEFT, TOP - 26, plot->title);
	draw_ticks(out, &axis);
	for (i = 0; i < plot->count; i++)
		fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n", place(plot, i),
			BOTTOM + 18, plot->places[i]);
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", (LEFT + RIGHT) / 2,
		BOTTOM + 36, plot->axis);
	for (i = 0; i < plot->lines; i++)
		draw_line(out, plot, &axis, i);
	fputs("</g>\n", out);
}
