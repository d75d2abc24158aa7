/* SPDX-License-Identifier: BSD-3-Clause */
/* Norms that arrays are divided by, in double, and their derivatives: x^ = x / max(|x|, e).
 * Where e is larger the divisor is a constant. */
#ifndef NORMS_CPU_H
#define NORMS_CPU_H

#include "cpu/heads.h"

/* The elements that `count` doubles take at most, and the doubles taken from *free: they, and what
 * is left, begin at cache lines. */
int64_t R(norm_doubles)(int64_t count);
double *R(norm_take)(real **free, int64_t count);

/* x of such norms is between 1/tokens and 1024 on average. From 1 on, x has no smaller entries than
 * x^; and a sum divided by a norm of x and multiplied by x loses at most ten bits more to underflow
 * than one multiplied by x^. */
static inline bool norm_is_moderate(double norm, int64_t tokens)
{
    return norm >= 1 && norm <= 1024 * (double)tokens;
}

/* x / divisor. f32 multiplies by the reciprocal, which is as accurate in double and faster; f64
 * divides, so that x / x is 1 and gradients that should be 0 are 0. */
static inline double R(norm_divide)(double x, double divisor, double reciprocal)
{
    return sizeof(real) < sizeof(double) ? x * reciprocal : x / divisor;
}

/* to = factor x / divisor, with the strides given. */
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

/* The Euclidean norm of count elements with stride `step`. */
double R(line_norm)(int64_t count, int64_t step, const real *x);

/* The norms of d columns over tokens in any number of blocks: open, start, add each block, finish.
 * All that is found lies in the memory, so that norms in a head's state can be opened again. */
typedef struct {
    atn_sima_norm norm;
    int64_t d;
    double *units;    /* l2: powers of two that keep squares within double's range */
    double *divisors; /* the sums, then max(norm, epsilon) */
    double *reciprocals, *varies;
    double *deferred; /* 1: products with x are divided by the norms, so that x^ need not be formed;
                       * between start and finish provisional */
} R(column_norms);
typedef R(column_norms) column_norms;

int64_t R(columns_reals)(int64_t d);
/* Takes their memory from *free and leaves what it holds. */
column_norms R(columns_open)(atn_sima_norm norm, int64_t d, real **free);
/* tokens: how many will be added, or more. Norms are deferred unless tokens are fewer than
 * HEAD_BLOCK, or x^ is rounded to a storage. */
void R(columns_start)(column_norms *c, atn_storage storage, int64_t tokens);
void R(columns_add)(column_norms *c, int64_t rows, const real *x, int64_t stride);
/* Adds the sums of `from`, which are over other tokens. */
void R(columns_merge)(column_norms *c, const column_norms *from);
/* tokens: how many were added. Norms stay deferred unless tokens are fewer than HEAD_BLOCK, or
 * dividing a product instead of x could underflow or overflow earlier. What is summed with deferred
 * norms may still overflow although its quotient does not. */
void R(columns_finish)(column_norms *c, double epsilon, int64_t tokens);

/* out (rows x d, dense; may be x) = x with each column divided by its norm. */
void R(columns_apply)(const column_norms *c, int64_t rows, const real *x, int64_t stride,
                      real *out);

/* x^ as a factor of a product, rounded to the storage, in `block` (rows x d), or if the norms are
 * deferred x itself; *stride, that of x, becomes the factor's. */
const real *R(columns_factor)(const column_norms *c, atn_storage storage, int64_t rows,
                              const real *x, int64_t *stride, real *block);
/* The deferred division of x^T y: out (d x cols, dense; may be product) = each row of the product
 * divided by its norm; without deferred norms the product itself. */
void R(columns_divide_rows)(const column_norms *c, int64_t cols, const real *product, real *out);

/* The gradient by x from g, that by x^, has two terms:
 *
 *   dx = (g - along d|x|/dx) / |x|,   along = sum over all tokens of g x^,
 *   d|x|/dx = sign(x), +1 at 0 (l1), or x^ (l2).
 *
 * If along is known, columns_backward writes both terms for a block to out, or with add adds them.
 * Otherwise columns_backward_partial replaces a block's g by the first term and adds to along; when
 * along is complete, columns_backward_finish subtracts the second term from out. */
void R(columns_backward)(const column_norms *c, const double *along, int64_t rows, const real *x,
                         int64_t stride, const real *g, bool add, real *out, int64_t out_stride);
void R(columns_backward_partial)(const column_norms *c, double *along, int64_t rows,
                                 const real *normalised, real *g);
void R(columns_backward_finish)(const column_norms *c, const double *along, int64_t rows,
                                const real *x, int64_t stride, real *out, int64_t out_stride);

#endif
