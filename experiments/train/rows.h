/* SPDX-License-Identifier: BSD-3-Clause */
/* The elementwise and rowwise operations of a network, in the vectors of an instruction set: rows.c
 * is compiled for each type and set, like the library's arithmetic (lib/meson.build). Arrays are
 * rows x width, row-major and dense. The order of every sum depends on nothing but the sizes and
 * the set. */
#ifndef EXPERIMENTS_TRAIN_ROWS_H
#define EXPERIMENTS_TRAIN_ROWS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    /* GELU as SOFT's published code has it in its MLP (Hendrycks and Gimpel 2016, the form by
     * tanh): y = x s(2 sqrt(2/pi) (x + 0.044715 x^3)), s the logistic function. x becomes dy/dx. */
    void (*gelu)(int64_t count, real *x, real *y);

    /* y = max(x, 0), NaN where x is. x becomes dy/dx: 1 for positive x, else 0. */
    void (*relu)(int64_t count, real *x, real *y);

    /* LayerNorm (Ba, Kiros and Hinton 2016), eps 1e-5, of each row: y = (x - mean) rate weight +
     * bias, rate = 1 / sqrt(variance + eps). moments: mean and rate of each row. */
    void (*layer_norm)(int64_t rows, int64_t width, const real *x, const real *weight,
                       const real *bias, real *y, real *moments);
    /* Overwrites dx, or adds to it; dy may be dx. */
    void (*layer_norm_backward)(int64_t rows, int64_t width, const real *x, const real *weight,
                                const real *moments, const real *dy, bool add, real *dx,
                                real *dweight, real *dbias);

    /* y = x + scale_c z; scale null: factors of 1. y may be x. */
    void (*residual)(int64_t rows, int64_t width, const real *x, const real *scale, const real *z,
                     real *y);

    /* Every row of y becomes `row`. */
    void (*repeat)(int64_t rows, int64_t width, const real *row, real *y);

    /* sums_c = sum over rows of x_rc (times z_rc, if z is not null). */
    void (*column_sums)(int64_t rows, int64_t width, const real *x, const real *z, real *sums);

    /* y_i = y_i x_i */
    void (*multiply)(int64_t count, const real *x, real *y);
} row_kernels;

#endif
