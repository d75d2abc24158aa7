/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots as inline SVG, coloured by the page's variables --c0 .. --c7. */
#ifndef EXPERIMENTS_INSPECT_SVG_H
#define EXPERIMENTS_INSPECT_SVG_H

#include <stdbool.h>
#include <stdio.h>

enum { SVG_COLOURS = 8 };

typedef struct {
    const char *label;
    double low, high; /* low < high, both positive for a logarithmic axis */
    bool logarithmic;
} svg_axis;

/* If rows is not null, y has names instead of numbers: row i, from the top, is at y = i. */
typedef struct {
    const char *title, *description; /* for screen readers */
    svg_axis x, y;
    const char *const *rows;
    int row_count;
} svg_plot;

/* An element <svg>; id must be unique on the page. Call begin, then the drawing functions in order,
 * then end. */
void svg_begin(FILE *file, const svg_plot *plot, int id);
/* A dashed horizontal line with a text. */
void svg_level(FILE *file, const svg_plot *plot, double y, const char *text);
void svg_upright(FILE *file, const svg_plot *plot, double x, const char *text);
/* Points that cannot be drawn (NaN, or not positive on a logarithmic axis) interrupt the line; what
 * is outside the axes is clipped. */
void svg_line(FILE *file, const svg_plot *plot, int colour, int count, const double *x,
              const double *y);
/* A dot at the nearest position within the axes, with a tooltip; none for NaN. */
void svg_dot(FILE *file, const svg_plot *plot, int colour, bool hollow, double x, double y,
             const char *text);
void svg_end(FILE *file);

#endif
