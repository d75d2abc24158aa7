/* SPDX-License-Identifier: BSD-3-Clause */
/* Norms that arrays are divided by, kept in double, and their derivatives: x^ = x / max(|x|, e).
 * Where e is the larger the norm is a constant. */
#ifndef NORMS_CPU_H
#define NORMS_CPU_H

#include "cpu/heads.h"

/* The elements that hold `count` doubles wherever they start, and the doubles from *free on. */
int64_t R(norm_doubles)(int64_t count);
double *R(norm_take)(real **free, int64_t count);

/* max(norm, epsilon), and NaN for a norm beyond double's range. *varies: 1 where the norm is the
 * larger, else 0. */
double R(norm_divisor)(double norm, double epsilon, double *varies);

/* x / divisor. In f32 times the reciprocal, as good in double and faster; f64 divides, so that
 * x / x is 1 and gradients that are 0 come out as 0. */
static inline double R(norm_divide)(double x, double divisor, double reciprocal)
{
    return sizeof(real) < sizeof(double) ? x * reciprocal : x / divisor;
}

/* to = factor x / divisor; elements apart by as much as is said. */
static inline void R(norm_scale)(double factor, double divisor, int64_t count, const real *x,
                                 int64_t step, real *to, int64_t to_step)
{
    double reciprocal = factor / divisor;
    for (int64_t i = 0; i < count; i++) {
        double value = (double)x[i * step];
        to[i * to_step] =
            (real)(sizeof(real) < sizeof(double) ? value * reciprocal : factor * (value / divisor));
    }
}

/* The Euclidean norm of count elements, step apart. */
double R(line_norm)(int64_t count, int64_t step, const real *x);

/* The norms of d columns over tokens that come in blocks, in any number of them: start, add each
 * block, finish. */
typedef struct {
    atn_sima_norm norm;
    int64_t d;
    double *units;    /* l2: powers of two that keep squares within double's range */
    double *divisors; /* the sums, then max(norm, epsilon) */
    double *reciprocals, *varies;
} R(column_norms);
typedef R(column_norms) column_norms;

int64_t R(columns_reals)(int64_t d);
column_norms R(columns_start)(atn_sima_norm norm, int64_t d, real **free);
void R(columns_add)(column_norms *c, int64_t rows, const real *x, int64_t stride);
void R(columns_finish)(column_norms *c, double epsilon);

/* out (rows x d, dense; may be x) = x with each column divided by its norm. */
void R(columns_apply)(const column_norms *c, int64_t rows, const real *x, int64_t stride,
                      real *out);

/* The gradient by x from g, that by x^, has two terms:
 *
 *   dx = (g - along d|x|/dx) / |x|,   along = sum over all tokens of g x^,
 *   d|x|/dx = sign(x), +1 at 0 (l1), or x^ (l2).
 *
 * columns_backward adds both for a block to out where along is known. Where it is not,
 * columns_backward_partial makes a block's g the first in place and adds to along;
 * columns_backward_finish takes the second from out, when along is whole. */
void R(columns_backward)(const column_norms *c, const double *along, int64_t rows, const real *x,
                         int64_t stride, const real *g, real *out, int64_t out_stride);
void R(columns_backward_partial)(const column_norms *c, double *along, int64_t rows,
                                 const real *normalised, real *g);
void R(columns_backward_finish)(const column_norms *c, const double *along, int64_t rows,
                                const real *x, int64_t stride, real *out, int64_t out_stride);

#endif
