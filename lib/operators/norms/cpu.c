/* SPDX-License-Identifier: BSD-3-Clause */
/* Norms that arrays are divided by, in double but for short sums of magnitudes. */
#include "operators/norms/cpu.h"

#include <float.h>
#include <string.h>

enum { LINE = 64 }; /* bytes of a cache line */

int64_t R(norm_doubles)(int64_t count)
{
    return (count * (int64_t)sizeof(double) + 2 * LINE) / (int64_t)sizeof(real);
}

static uintptr_t whole_lines(const void *at)
{
    return ((uintptr_t)at + LINE - 1) / LINE * LINE;
}

double *R(norm_take)(real **free, int64_t count)
{
    double *taken = (double *)whole_lines(*free);
    *free = (real *)whole_lines(taken + count);
    return taken;
}

/* The sum of squares of `unit` times strided elements, in as many partial sums as R(dot). */
static double strided_squares(int64_t count, int64_t step, const real *x, double unit)
{
    enum { LANES = 8 };
    double lanes[LANES] = {0}, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double scaled = (double)x[i * step] * unit;
        lanes[i % LANES] += scaled * scaled;
    }
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

double R(line_norm)(int64_t count, int64_t step, const real *x)
{
    double largest = 0;
    if (step == 1)
        return R(frobenius)(count, x);
    for (int64_t i = 0; i < count; i++)
        largest = core_max(largest, fabs((double)x[i * step]));
    if (!(largest > 0 && largest < INFINITY))
        return largest;
    double unit = core_unit_of(largest);
    return sqrt(strided_squares(count, step, x, unit)) / unit;
}

int64_t R(columns_reals)(int64_t d)
{
    return R(norm_doubles)(4 * d + 1);
}

column_norms R(columns_open)(atn_sima_norm norm, int64_t d, real **free)
{
    column_norms c = {.norm = norm, .d = d, .units = R(norm_take)(free, 4 * d + 1)};
    c.divisors = c.units + d;
    c.reciprocals = c.divisors + d;
    c.varies = c.reciprocals + d;
    c.deferred = c.varies + d;
    return c;
}

void R(columns_start)(column_norms *c, atn_storage storage, int64_t tokens)
{
    *c->deferred = storage == ATN_STORAGE_NATIVE && tokens >= HEAD_BLOCK; /* few gain nothing */
    memset(c->units, 0, (size_t)(4 * c->d) * sizeof(double));
    for (int64_t e = 0; sizeof(real) < sizeof(double) && e < c->d; e++)
        c->units[e] = 1;
}

/* |x| or (x unit)^2; f32's unit is 1. */
static inline double term(atn_sima_norm norm, double x, double unit)
{
    double scaled = sizeof(real) < sizeof(double) ? x : x * unit;
    return norm == ATN_SIMA_L1 ? fabs(x) : scaled * scaled;
}

/* sums += terms of each column, four rows at a time, to access the sums less often. */
static inline __attribute__((always_inline)) void add_terms(atn_sima_norm norm, int64_t rows,
                                                            int64_t count, const real *x,
                                                            int64_t stride, const double *units,
                                                            double *restrict sums)
{
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * stride)
        for (int64_t e = 0; e < count; e++) {
            double low =
                term(norm, (double)x[e], units[e]) + term(norm, (double)x[stride + e], units[e]);
            double high = term(norm, (double)x[2 * stride + e], units[e]) +
                          term(norm, (double)x[3 * stride + e], units[e]);
            sums[e] += low + high;
        }
    for (; i < rows; i++, x += stride)
        for (int64_t e = 0; e < count; e++)
            sums[e] += term(norm, (double)x[e], units[e]);
}

/* f32: sums += |x| of each column of rows that are a multiple of eight, of which eight at a time
 * are added in f32 (three roundings). False, and nothing is added, if such a sum overflows. */
static bool add_short_sums(int64_t rows, int64_t count, const real *x, int64_t stride,
                           double *restrict sums)
{
    double totals[HEAD_BLOCK] = {0};
    bool finite = true;
    for (int64_t i = 0; i < rows; i += 8, x += 8 * stride) {
        __builtin_prefetch(x + AHEAD_REALS);
        for (int64_t e = 0; e < count; e++) {
            real first = (real_abs(x[e]) + real_abs(x[stride + e])) +
                         (real_abs(x[2 * stride + e]) + real_abs(x[3 * stride + e]));
            real second = (real_abs(x[4 * stride + e]) + real_abs(x[5 * stride + e])) +
                          (real_abs(x[6 * stride + e]) + real_abs(x[7 * stride + e]));
            totals[e] += (double)(first + second);
        }
    }
    for (int64_t e = 0; e < count; e++)
        finite &= totals[e] < INFINITY;
    for (int64_t e = 0; finite && e < count; e++)
        sums[e] += totals[e];
    return finite;
}

/* Rescales the sum of column e to a unit in which `largest` is about 1; unit 0: none yet. */
static void fit_unit(column_norms *c, int64_t e, double largest)
{
    if (largest == 0 || (c->units[e] > 0 && largest * c->units[e] <= 1))
        return;
    double unit = core_unit_of(largest), ratio = c->units[e] > 0 ? unit / c->units[e] : 0;
    c->divisors[e] = c->divisors[e] * ratio * ratio;
    c->units[e] = unit;
}

/* f64: chooses units in which no square of these rows overflows or underflows. Squares of f32 are
 * well within the range of double. */
static void fit_units(column_norms *c, int64_t rows, const real *x, int64_t stride)
{
    for (int64_t first = 0; first < c->d; first += HEAD_BLOCK) {
        int64_t count = head_smaller(HEAD_BLOCK, c->d - first);
        double largest[HEAD_BLOCK] = {0};
        for (int64_t i = 0; i < rows; i++)
            for (int64_t e = 0; e < count; e++) {
                double size = fabs((double)x[i * stride + first + e]);
                largest[e] = size > largest[e] ? size : largest[e];
            }
        for (int64_t e = 0; e < count; e++)
            fit_unit(c, first + e, largest[e]);
    }
}

void R(columns_add)(column_norms *c, int64_t rows, const real *x, int64_t stride)
{
    if (c->norm == ATN_SIMA_L1)
        for (int64_t e = 0; e < c->d; e += HEAD_BLOCK) {
            int64_t count = head_smaller(HEAD_BLOCK, c->d - e);
            int64_t some = sizeof(real) < sizeof(double) ? rows / 8 * 8 : 0;
            if (!add_short_sums(some, count, x + e, stride, c->divisors + e))
                some = 0;
            add_terms(ATN_SIMA_L1, rows - some, count, x + some * stride + e, stride, c->units + e,
                      c->divisors + e);
        }
    if (c->norm != ATN_SIMA_L2)
        return;
    if (sizeof(real) == sizeof(double))
        fit_units(c, rows, x, stride);
    add_terms(ATN_SIMA_L2, rows, c->d, x, stride, c->units, c->divisors);
}

/* Brings both sums of a column to the smaller of their units; 0: only zeros so far. */
static void merge_units(column_norms *c, const column_norms *from, int64_t e)
{
    double mine = c->units[e], other = from->units[e];
    double unit = mine > 0 && (other == 0 || mine < other) ? mine : other;
    double ratio = mine > 0 ? unit / mine : 1, other_ratio = other > 0 ? unit / other : 1;
    c->divisors[e] = c->divisors[e] * ratio * ratio + from->divisors[e] * other_ratio * other_ratio;
    c->units[e] = unit;
}

void R(columns_merge)(column_norms *c, const column_norms *from)
{
    bool alike = sizeof(real) < sizeof(double) || c->norm != ATN_SIMA_L2;
    for (int64_t e = 0; e < c->d; e++) {
        if (alike)
            c->divisors[e] += from->divisors[e];
        else
            merge_units(c, from, e);
    }
}

void R(columns_finish)(column_norms *c, double epsilon, int64_t tokens)
{
    bool deferred = *c->deferred != 0 && tokens >= HEAD_BLOCK;
    for (int64_t e = 0; e < c->d; e++) {
        double norm = c->divisors[e];
        if (c->norm == ATN_SIMA_L2 && norm > 0)
            norm = sqrt(norm) / c->units[e];
        c->divisors[e] = 1;
        if (c->norm != ATN_SIMA_NONE)
            c->divisors[e] = core_norm_divisor(norm, epsilon, &c->varies[e]);
        c->reciprocals[e] = 1 / c->divisors[e];
        deferred = deferred && norm_is_moderate(c->divisors[e], tokens);
    }
    *c->deferred = deferred;
}

static double divide(const column_norms *c, int64_t e, double x)
{
    return R(norm_divide)(x, c->divisors[e], c->reciprocals[e]);
}

void R(columns_apply)(const column_norms *c, int64_t rows, const real *x, int64_t stride, real *out)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < c->d; e++)
            out[i * c->d + e] = (real)divide(c, e, (double)x[i * stride + e]);
}

const real *R(columns_factor)(const column_norms *c, atn_storage storage, int64_t rows,
                              const real *x, int64_t *stride, real *block)
{
    if (*c->deferred != 0)
        return x;
    R(columns_apply)(c, rows, x, *stride, block);
    R(store)(storage, rows, c->d, block, c->d);
    *stride = c->d;
    return block;
}

void R(columns_divide_rows)(const column_norms *c, int64_t cols, const real *product, real *out)
{
    for (int64_t e = 0; e < c->d; e++)
        for (int64_t i = e * cols; i < (e + 1) * cols; i++)
            out[i] = *c->deferred != 0 ? (real)divide(c, e, (double)product[i]) : product[i];
}

/* The compiler knows `add`. */
static inline __attribute__((always_inline)) void
add_gradient(const column_norms *c, const double *along, bool l1, bool add, int64_t rows,
             const real *x, int64_t stride, const real *g, real *out, int64_t out_stride)
{
    for (int64_t i = 0; i < rows; i++, x += stride, g += c->d, out += out_stride)
        for (int64_t e = 0; e < c->d; e++) {
            double value = (double)x[e];
            double slope = l1 ? (value < 0 ? -1 : 1) : divide(c, e, value);
            real both = (real)divide(c, e, (double)g[e] - c->varies[e] * along[e] * slope);
            out[e] = add ? out[e] + both : both;
        }
}

/* Of |x|'s derivative times along / |x| (l2) or along (l1): x, or its sign, times this. */
static double along_part(const column_norms *c, const double *along, int64_t e)
{
    double part = c->varies[e] * along[e];
    return c->norm == ATN_SIMA_L1 ? part : part * c->reciprocals[e];
}

/* Whether f32 holds the second term of every gradient with all its digits. Norms are at least 1, so
 * that no step towards it is larger than along, or smaller than the term itself once `part` is a
 * normal number; half of f32's range leaves room for roundings. */
static bool gradients_are_moderate(const column_norms *c, const double *along)
{
    bool moderate = sizeof(real) < sizeof(double) && *c->deferred != 0;
    for (int64_t e = 0; moderate && e < c->d; e++) {
        double part = fabs(along_part(c, along, e));
        moderate = fabs(along[e]) <= FLT_MAX / 2.0 && (part == 0 || part >= FLT_MIN);
    }
    return moderate;
}

/* Writes the gradient of up to HEAD_BLOCK columns from `first` on in f32: g is a sum of products in
 * f32, next to which the roundings do not count. */
static inline __attribute__((always_inline)) void
write_moderate_gradient(const column_norms *c, const double *along, bool l1, int64_t first,
                        int64_t count, int64_t rows, const real *x, int64_t stride, const real *g,
                        real *restrict out, int64_t out_stride)
{
    real reciprocals[HEAD_BLOCK], parts[HEAD_BLOCK];
    for (int64_t e = 0; e < count; e++) {
        reciprocals[e] = (real)c->reciprocals[first + e];
        parts[e] = (real)along_part(c, along, first + e);
    }
    for (int64_t i = 0; i < rows; i++, x += stride, g += c->d, out += out_stride)
        for (int64_t e = 0; e < count; e++) {
            real second = l1 ? (x[e] < 0 ? -parts[e] : parts[e]) : x[e] * parts[e];
            out[e] = g[e] * reciprocals[e] - second * reciprocals[e];
        }
}

void R(columns_backward)(const column_norms *c, const double *along, int64_t rows, const real *x,
                         int64_t stride, const real *g, bool add, real *out, int64_t out_stride)
{
    bool l1 = c->norm == ATN_SIMA_L1;
    if (!add && gradients_are_moderate(c, along)) {
        for (int64_t e = 0; e < c->d; e += HEAD_BLOCK) {
            int64_t count = head_smaller(HEAD_BLOCK, c->d - e);
            if (l1)
                write_moderate_gradient(c, along, true, e, count, rows, x + e, stride, g + e,
                                        out + e, out_stride);
            else
                write_moderate_gradient(c, along, false, e, count, rows, x + e, stride, g + e,
                                        out + e, out_stride);
        }
        return;
    }
    if (add)
        add_gradient(c, along, l1, true, rows, x, stride, g, out, out_stride);
    else
        add_gradient(c, along, l1, false, rows, x, stride, g, out, out_stride);
}

void R(columns_backward_partial)(const column_norms *c, double *along, int64_t rows,
                                 const real *normalised, real *g)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < c->d; e++)
            along[e] += (double)g[i * c->d + e] * (double)normalised[i * c->d + e];
    R(columns_apply)(c, rows, g, c->d, g);
}

void R(columns_backward_finish)(const column_norms *c, const double *along, int64_t rows,
                                const real *x, int64_t stride, real *out, int64_t out_stride)
{
    if (c->norm == ATN_SIMA_NONE)
        return;
    bool l1 = c->norm == ATN_SIMA_L1;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < c->d; e++) {
            double value = (double)x[i * stride + e];
            double slope = l1 ? (value < 0 ? -1 : 1) : divide(c, e, value);
            out[i * out_stride + e] -= (real)divide(c, e, c->varies[e] * along[e] * slope);
        }
}
