/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT's kernel matrix and pooled landmarks, in f64, from the equations of SOFT (IJCV) alone.
 *
 * Nothing here is blocked or optimised, and no code is shared with lib/. */
#ifndef REFERENCE_SOFT_H
#define REFERENCE_SOFT_H

#include <stdint.h>

/* Eq. 5, 8: k_ij = exp(-s |x_i - y_j|^2), x p x d, y q x d, k p x q; distances summed in long
 * double. */
void ref_gaussian(int64_t p, int64_t q, int64_t d, const double *x, const double *y, double s,
                  double *k);

/* Pooling (section 3.2): averages of windows of k x k tokens on a row-major height x width grid;
 * landmarks floor(height/k) floor(width/k) x d. k < 1 writes nothing. */
void ref_pool(int64_t height, int64_t width, int64_t d, int64_t k, const double *tokens,
              double *landmarks);

#endif
