/* SPDX-License-Identifier: BSD-3-Clause */
/* Gaussian kernel matrices, SOFT (IJCV) Eq. 4, 5, 8. */
#include "cpu/blocks.h"
#include "cpu/simd.h"

int64_t R(landmark_padded)(int64_t count)
{
    return whole_vectors(count);
}

int64_t R(landmark_elements)(int64_t count, int64_t d)
{
    return (d + 1) * R(landmark_padded)(count);
}

static real squared_norm(int64_t d, const real *x)
{
    real sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += x[c] * x[c];
    return sum;
}

/* The norms are summed by columns, in squared_norm's order. */
void R(landmark_prepare)(landmark_set *set)
{
    R(simd).transpose(set->count, set->d, set->rows, set->d, set->transposed, set->padded);
    for (int64_t j = 0; j < set->padded; j++)
        set->norms[j] = 0;
    for (int64_t c = 0; c < set->d; c++)
        for (int64_t j = 0; j < set->padded; j++) {
            real x = set->transposed[c * set->padded + j];
            set->norms[j] += x * x;
        }
}

/* |x|^2 + |l|^2 - 2 x.l, as the published torch kernel evaluates it. */
static void distances_expanded(int64_t p, const real *x, int64_t x_stride, const landmark_set *set,
                               real *out, int64_t out_stride, bool clamp)
{
    real_gemm(CblasNoTrans, CblasTrans, p, set->count, set->d, x, x_stride, set->rows, set->d, 0,
              out, out_stride);
    for (int64_t i = 0; i < p; i++) {
        real norm = squared_norm(set->d, x + i * x_stride);
        real *row = out + i * out_stride;
        for (int64_t j = 0; j < set->count; j++) {
            real squared = norm + set->norms[j] - 2 * row[j];
            row[j] = clamp && squared < 0 ? 0 : squared;
        }
    }
}

void R(gaussian_block)(atn_distance distance, double s, int64_t p, const real *x, int64_t x_stride,
                       const landmark_set *set, real *out, int64_t out_stride,
                       const real *const *ahead)
{
    if (distance == ATN_DISTANCE_DIRECT) {
        R(simd).gaussian(set, -s, p, x, x_stride, out, out_stride, ahead);
        return;
    }
    distances_expanded(p, x, x_stride, set, out, out_stride, distance == ATN_DISTANCE_CLAMPED);
    for (int64_t i = 0; i < p; i++)
        R(simd).scaled_exponentials(set->count, -s, 0, out + i * out_stride);
}

int64_t R(gaussian_work)(int64_t q, int64_t d)
{
    /* rows, transposed and norms of the set, and one padded row of output */
    return q * d + R(landmark_elements)(q, d) + R(landmark_padded)(q);
}

void R(gaussian_cross)(atn_distance distance, double s, int64_t p, int64_t q, int64_t d,
                       const void *x, int64_t x_stride, const void *y, int64_t y_stride, void *out,
                       int64_t out_stride, void *work)
{
    const real *from = y;
    real *to = out;
    landmark_set set = {.count = q, .padded = R(landmark_padded)(q), .d = d, .rows = work};
    set.transposed = set.rows + q * d;
    set.norms = set.transposed + d * set.padded;
    real *padded_row = set.norms + set.padded;
    for (int64_t j = 0; j < q; j++)
        for (int64_t c = 0; c < d; c++)
            set.rows[j * d + c] = from[j * y_stride + c];
    R(landmark_prepare)(&set);
    for (int64_t i = 0; i < p; i++) {
        R(gaussian_block)
        (distance, s, 1, (const real *)x + i * x_stride, d, &set, padded_row, set.padded, NULL);
        for (int64_t j = 0; j < q; j++)
            to[i * out_stride + j] = padded_row[j];
    }
}

void R(gaussian_self)(atn_distance distance, double s, int64_t m, int64_t d, const void *l,
                      int64_t l_stride, void *a, int64_t a_stride, void *work)
{
    R(gaussian_cross)(distance, s, m, m, d, l, l_stride, l, l_stride, a, a_stride, work);
    real *matrix = a;
    R(mirror_lower)(m, matrix, a_stride);
    if (distance == ATN_DISTANCE_CLAMPED)
        for (int64_t i = 0; i < m; i++)
            matrix[i * a_stride + i] = 1;
}
