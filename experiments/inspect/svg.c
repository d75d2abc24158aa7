/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/svg.h"

#include <math.h>

#include "common/html.h"

/* Sizes in the units of the picture; a row of a plot with rows is one and a half lines of text
 * high. */
enum { WIDTH = 480, HEIGHT = 330, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 46 };
enum { ROW_LEFT = 112, ROW_HEIGHT = 30, MOST_TICKS = 6 };
enum { SPILL = 5 }; /* how far a dot at the edge may extend beyond it */

/* ---- Places ---- */

static double left_of(const svg_plot *plot)
{
    return plot->rows ? ROW_LEFT : LEFT;
}

static double height_of(const svg_plot *plot)
{
    return plot->rows ? TOP + BOTTOM + ROW_HEIGHT * plot->row_count : HEIGHT;
}

/* A position from 0 to 1 along an axis; NaN if the value has none. */
static double part_of(const svg_axis *axis, double value)
{
    if (!axis->logarithmic)
        return (value - axis->low) / (axis->high - axis->low);
    return value > 0 ? log(value / axis->low) / log(axis->high / axis->low) : NAN;
}

static double place_x(const svg_plot *plot, double x)
{
    return left_of(plot) + part_of(&plot->x, x) * (WIDTH - RIGHT - left_of(plot));
}

static double place_y(const svg_plot *plot, double y)
{
    double bottom = height_of(plot) - BOTTOM;
    if (plot->rows)
        return TOP + (y + 0.5) * ROW_HEIGHT;
    return bottom - part_of(&plot->y, y) * (bottom - TOP);
}

/* ---- Axes ---- */

/* A step of 1, 2 or 5 times a power of ten with at most MOST_TICKS ticks. */
static double tick_step(double range)
{
    static const double factors[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(range / MOST_TICKS)));
    for (int i = 0; i < 3; i++)
        if (range / (factors[i] * power) <= MOST_TICKS)
            return factors[i] * power;
    return 10 * power;
}

/* Writes the number at a tick: as a power of 10, or in decimals. */
static void write_number(FILE *file, double value, bool logarithmic)
{
    int power = (int)lround(log10(value > 0 ? value : 1));
    if (logarithmic && (power < -1 || power > 3))
        fprintf(file, "10<tspan class=\"power\" dy=\"-5\">%s%d</tspan>", power < 0 ? "−" : "",
                power < 0 ? -power : power);
    else
        fprintf(file, "%g", value);
}

/* The first tick of an axis, and the tick that follows one. A decade of a logarithmic axis has one
 * tick, or 1, 2 and 5 where there are few decades. */
typedef struct {
    const svg_axis *axis;
    double step; /* of a logarithmic axis: decades */
    bool fine;
} ticks;

static ticks ticks_of(const svg_axis *axis)
{
    double decades = log10(axis->high / axis->low);
    if (!axis->logarithmic)
        return (ticks){axis, tick_step(axis->high - axis->low), false};
    return (ticks){axis, fmax(1, ceil(decades / MOST_TICKS)), decades < 2};
}

static double first_tick(const ticks *t)
{
    if (t->axis->logarithmic)
        return pow(10, ceil(log10(t->axis->low) / t->step - 1e-9) * t->step);
    return ceil(t->axis->low / t->step - 1e-9) * t->step + 0.0; /* no -0 */
}

static double next_tick(const ticks *t, double tick)
{
    if (!t->axis->logarithmic)
        return tick + t->step;
    if (!t->fine)
        return tick * pow(10, t->step);
    double digit = tick / pow(10, floor(log10(tick) + 1e-9));
    return tick * (digit > 1.5 && digit < 2.5 ? 2.5 : 2);
}

static void write_x_axis(FILE *file, const svg_plot *plot)
{
    ticks t = ticks_of(&plot->x);
    double bottom = height_of(plot) - BOTTOM;
    for (double x = first_tick(&t); x <= plot->x.high * (1 + 1e-9); x = next_tick(&t, x)) {
        double at = place_x(plot, x);
        fprintf(file,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">",
                at, at, TOP, bottom, at, bottom + 18);
        write_number(file, x, plot->x.logarithmic);
        fputs("</text>\n", file);
    }
    fprintf(file, "<text class=\"label\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">",
            (left_of(plot) + WIDTH - RIGHT) / 2, bottom + 38);
    html_text(file, plot->x.label);
    fputs("</text>\n", file);
}

static void write_y_axis(FILE *file, const svg_plot *plot)
{
    ticks t = ticks_of(&plot->y);
    for (double y = first_tick(&t); y <= plot->y.high * (1 + 1e-9); y = next_tick(&t, y)) {
        double at = place_y(plot, y);
        fprintf(file,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">",
                LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4);
        write_number(file, y, plot->y.logarithmic);
        fputs("</text>\n", file);
    }
    fprintf(file,
            "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(14 %.1f) "
            "rotate(-90)\">",
            (TOP + height_of(plot) - BOTTOM) / 2);
    html_text(file, plot->y.label);
    fputs("</text>\n", file);
}

static void write_rows(FILE *file, const svg_plot *plot)
{
    for (int i = 0; i < plot->row_count; i++) {
        double at = place_y(plot, i);
        fprintf(file,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">",
                ROW_LEFT, WIDTH - RIGHT, at, at, ROW_LEFT - 8, at + 4);
        html_text(file, plot->rows[i]);
        fputs("</text>\n", file);
    }
}

/* ---- What is drawn ---- */

void svg_begin(FILE *file, const svg_plot *plot, int id)
{
    double bottom = height_of(plot) - BOTTOM;
    fprintf(file,
            "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-labelledby=\"title%d text%d\">\n"
            "<title id=\"title%d\">",
            WIDTH, height_of(plot), id, id, id);
    html_text(file, plot->title);
    fprintf(file, "</title>\n<desc id=\"text%d\">", id);
    html_text(file, plot->description);
    fprintf(file,
            "</desc>\n<clipPath id=\"clip%d\"><rect x=\"%.0f\" y=\"%d\" width=\"%.0f\" "
            "height=\"%.0f\"/></clipPath>\n",
            id, left_of(plot) - SPILL, TOP - SPILL, WIDTH - RIGHT - left_of(plot) + 2 * SPILL,
            bottom - TOP + 2 * SPILL);
    write_x_axis(file, plot);
    if (plot->rows)
        write_rows(file, plot);
    else
        write_y_axis(file, plot);
    fprintf(file, "<g clip-path=\"url(#clip%d)\">\n", id);
}

void svg_level(FILE *file, const svg_plot *plot, double y, const char *text)
{
    double at = place_y(plot, y);
    fprintf(file,
            "<line class=\"level\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
            "<text class=\"note\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">",
            LEFT, WIDTH - RIGHT, at, at, WIDTH - RIGHT - 4, at - 4);
    html_text(file, text);
    fputs("</text>\n", file);
}

void svg_upright(FILE *file, const svg_plot *plot, double x, const char *text)
{
    double at = place_x(plot, x);
    fprintf(file,
            "<line class=\"level\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\"/>"
            "<text class=\"note\" x=\"%.1f\" y=\"%d\">",
            at, at, TOP, height_of(plot) - BOTTOM, at + 4, TOP + 12);
    html_text(file, text);
    fputs("</text>\n", file);
}

void svg_line(FILE *file, const svg_plot *plot, int colour, int count, const double *x,
              const double *y)
{
    bool drawing = false;
    fprintf(file, "<path class=\"line s%d\" d=\"", colour % SVG_COLOURS);
    for (int i = 0; i < count; i++) {
        double across = place_x(plot, x[i]), down = place_y(plot, y[i]);
        bool known = isfinite(across) && isfinite(down);
        if (known)
            fprintf(file, "%s%.1f %.1f", drawing ? "L" : "M", across, fmin(down, 2 * HEIGHT));
        drawing = known;
    }
    fputs("\"/>\n", file);
}

void svg_dot(FILE *file, const svg_plot *plot, int colour, bool hollow, double x, double y,
             const char *text)
{
    double clamped = fmin(fmax(x, plot->x.low), plot->x.high);
    if (isnan(x) || isnan(y))
        return;
    fprintf(file, "<circle class=\"%s c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>",
            hollow ? "ring" : "dot", colour % SVG_COLOURS, place_x(plot, clamped),
            place_y(plot, y));
    html_text(file, text);
    fputs("</title></circle>\n", file);
}

void svg_end(FILE *file)
{
    fputs("</g>\n</svg>\n", file);
}
