/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ densely, in f64, from the equations of SOFT (IJCV) alone, for tests of operators
 * and references. Row-major, one head.
 *
 * Nothing here is streamed, blocked or optimised, and no code is shared with lib/. */
#ifndef TESTS_DENSE_SOFT_H
#define TESTS_DENSE_SOFT_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/status.h>
#include <soft.h>

/* Eq. 9 and 17: S^ = P^T X P, with D^-1/2 X D^-1/2 for X if normalise, D = diag(A 1).
 *
 *   tokens n x d, landmarks m x d, values n x dv
 *   inverse m x m, the X that replaces A+; null: the pseudo-inverse of A (ref_symmetric_pinv)
 *   s_hat n x n or null; out = S^ V, n x dv, or null (values may then be null)
 *
 * Returns ATN_OK, ATN_NONFINITE (NaN or infinity in an input; outputs NaN), ATN_BELOW_FLOOR from
 * ref_symmetric_pinv (outputs are those of its A+), ATN_ERR_SHAPE, ATN_ERR_NULL, ATN_ERR_VALUE
 * (s < 0 or not finite), ATN_ERR_MEMORY, ATN_ERR_LIBRARY. Sums run in long double. */
atn_status ref_soft(int64_t n, int64_t m, int64_t d, int64_t dv, const double *tokens,
                    const double *landmarks, const double *values, double s, const double *inverse,
                    bool normalise, double *s_hat, double *out);

/* Sampling (section 3.2), each from its definition. Grids are row-major, height * width = n. k < 1
 * writes nothing. */
void ref_window(int64_t n, int64_t d, int64_t k, const double *tokens, double *landmarks);

/* weights d x d x k x k (out channel, in channel, window row, window column), stride k, no bias. */
void ref_conv(int64_t height, int64_t width, int64_t d, int64_t k, const double *weights,
              const double *tokens, double *landmarks);

/* In place over each row of x (rows x d): LayerNorm with eps 1e-5 (biased variance) and affine
 * weight, bias (null: 1 and 0), then x Phi(x), Phi the normal distribution function. */
void ref_norm_gelu(int64_t rows, int64_t d, const double *weight, const double *bias, double *x);

/* The published code's residual: out (n x dv) += values (on a height x width grid) convolved
 * channel by channel with one k x k filter, k odd, zero padding floor(k/2). As in every deep
 * learning framework "convolved" means correlated: the filter is not mirrored. */
void ref_depthwise(int64_t height, int64_t width, int64_t dv, int64_t k, const double *filter,
                   const double *values, double *out);

#endif
