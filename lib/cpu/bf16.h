/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic on bf16 numbers (`real` is their type in memory) for the operators that have a
 * cpu_bf16.c. Factors are bf16 and sums f32. Products of matrices add terms two by two, as AVX-512
 * BF16 does, whose instruction reads pairs of bf16 numbers: the second of a pair, then the first,
 * each rounded once. A product of two bf16 numbers is exact in f32, so every instruction set gives
 * the same bits unless a product overflows or is subnormal (AVX-512 BF16 takes subnormal numbers
 * for 0). Exponentials, sums of weights and products in any order depend on the set, as in f32. */
#ifndef CPU_BF16_H
#define CPU_BF16_H

#include "cpu/blocks.h"

/* Two numbers, the first in the lower half. */
typedef uint32_t bf16_pair;

/* C = A B, or C + A B, in f32: rows x columns. Row i of A holds `pairs` pairs, the first at a[i
 * a_row], each a_step further; B is `pairs` x b_width pairs. columns is a multiple of
 * SIMD_COLUMNS. */
typedef struct {
    int64_t rows, columns, pairs;
    const real *a;
    int64_t a_row, a_step;
    const bf16_pair *b;
    int64_t b_width;
    bool add;
    float *c;
    int64_t c_row;
} bf16_terms;
void R(multiply_pairs)(const bf16_terms *terms);
/* The same for a_step = 2 and at least one pair, in an order of the sums that depends on the
 * instruction set; by AMX in the copy for it (cpu/isa.c chooses). */
void R(multiply_pairs_any_order)(const bf16_terms *terms);

static inline int64_t bf16_pairs(int64_t count)
{
    return (count + 1) / 2;
}

/* Pairs of consecutive rows of X: to[p width + c] = (x[2 p][c], x[2 p + 1][c]), padded with 0. */
void R(pair_rows)(int64_t rows, int64_t columns, const real *x, int64_t stride, bf16_pair *to,
                  int64_t width);
/* Pairs of consecutive columns, transposed: to[p width + r] = (x[r][2 p], x[r][2 p + 1]), padded
 * with 0 to whole vectors. */
void R(pair_columns)(int64_t rows, int64_t columns, const real *x, int64_t stride, bf16_pair *to,
                     int64_t width);

/* out_i = x_i, rounded to nearest, ties to even. */
void R(narrow)(int64_t count, const float *x, real *out);
/* The same of the transpose: out[i][j] = x[j][i]. Whole vectors of the rows of x may be read. */
void R(narrow_transposed)(int64_t rows, int64_t columns, const float *x, int64_t stride, real *out,
                          int64_t out_stride);

/* Of `count` tokens, as pair_columns left them; count is a multiple of SIMD_COLUMNS. Their squared
 * norms; returns the largest, or NaN if their sum is not finite. */
float R(pair_norms)(int64_t count, int64_t pairs, const bf16_pair *x, int64_t width, float *norms);
/* out_i = |x_i - l|^2, of differences; l has 2 `pairs` numbers. */
void R(pair_distances)(int64_t count, int64_t pairs, const bf16_pair *x, int64_t width,
                       const real *l, float *out);
/* out_i = (norms_i + norm) - 2 x_i, x_i a product: squared distances, of which negative ones become
 * 0 with clamp. count as above; out may be x. */
void R(expand_distances)(int64_t count, const float *norms, float norm, bool clamp, const float *x,
                         float *out);
/* out_i = exp(-s x_i), rounded to bf16; count as above. */
void R(gaussian_weights)(int64_t count, double s, const float *x, real *out);

/* The largest of x and `least`; NaN is ignored. */
float R(largest_logit)(int64_t count, const float *x, float least);
/* weights_i = exp(c (x_i - largest)), rounded to bf16, for c > 0. weights has room for the next
 * multiple of 2 SIMD_COLUMNS, and what is written past count is 0. Returns the sum of the rounded
 * weights, so that they average what they are multiplied by. */
double R(weigh_logits)(int64_t count, double c, float largest, const float *x, real *weights);

/* sums_e += |x_e| (l1) or x_e^2, over all rows; |x_e| in f32 for HEAD_BLOCK rows at a time. */
void R(add_magnitudes)(bool l1, int64_t rows, int64_t columns, const real *x, int64_t stride,
                       double *sums);

#endif
