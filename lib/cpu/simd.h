/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops that are written for vectors, in the width of the instruction set (simd_kernels.c,
 * products.c, triangular.c, tridiagonal.c). No sum depends on the width, and a product is fused
 * with the addition or subtraction that follows (one rounding) where the set has such an
 * instruction. So AVX2 and AVX-512 give the same bits, apart from sin, cos, erfc and, in f64, exp,
 * which are SLEEF's (at most 1 ulp, erfc 1.5). */
#ifndef CPU_SIMD_H
#define CPU_SIMD_H

#include <stdbool.h>

#include "cpu/real.h"

/* C = A B, or C + A B: rows x columns, of elements a[i a_row + k a_step] and b[k b_step + j
 * b_column]; b_step or b_column is 1. ahead: two arrays of which the caller works on consecutive
 * elements next, null or out of bounds where it does not; lines of them are prefetched between the
 * multiply-adds. */
typedef struct {
    int64_t rows, columns, inner;
    const real *a;
    int64_t a_row, a_step;
    const real *b;
    int64_t b_step, b_column;
    bool add;
    real *c;
    int64_t c_row;
    const real *ahead[2];
} product_terms;

/* Rows `known` .. rows - 1 of Y <- L^-1 Y, where the rows before them hold the result already: Y is
 * rows x columns, L lower triangular with elements l[i l_row + k l_step]. columns is a multiple of
 * SIMD_COLUMNS. */
typedef struct {
    int64_t known, rows;
    const real *l;
    int64_t l_row, l_step;
    int64_t columns;
    real *y;
    int64_t y_row;
} triangle_terms;

/* Rows x_i (p x d) and y_j (count x d) with a weight w_ij for each pair, weights[i weight_row + j]:
 *   grad_x_i += sum_j w_ij (y_j - x_i),   grad_y_j += sum_i w_ij (x_i - y_j)
 * The first is the sum of two partial sums, over even and odd j; the second adds partial sums of
 * four i each, and the last p % 4 one by one. */
typedef struct {
    int64_t p, count, d;
    const real *weights;
    int64_t weight_row;
    const real *x;
    int64_t x_row;
    const real *y;
    int64_t y_row;
    real *grad_x;
    int64_t grad_x_row;
    real *grad_y;
    int64_t grad_y_row;
} R(weighted_pairs);
typedef R(weighted_pairs) weighted_pairs;

/* Landmarks made ready for distances: their rows (count x d), the transpose with columns padded
 * to a multiple of SIMD_COLUMNS (d x padded), their squared norms. */
typedef struct {
    int64_t count, padded, d;
    real *rows, *transposed, *norms;
} R(landmark_set);
typedef R(landmark_set) landmark_set;

typedef struct {
    /* exp(factor |x_i - l_j|^2) of p tokens and a set's landmarks: out is p x count; columns up to
     * set->padded may be written, too. A square is a sum over the coordinates in order, except in
     * the last count % SIMD_COLUMNS columns if they are at most SIMD_FEW_COLUMNS, not all, and d is
     * a multiple of SIMD_COLUMNS: there SIMD_COLUMNS partial sums, c mod SIMD_COLUMNS, of which i
     * and i + 8 are added, then i and i + 4, and so on. ahead: as in product_terms, or null. */
    void (*gaussian)(const landmark_set *set, double factor, int64_t p, const real *x,
                     int64_t x_stride, real *out, int64_t out_stride, const real *const *ahead);
    /* x_i = exp(x_i) */
    void (*exponentials)(int64_t count, real *x);
    /* slopes_i = exp(min(x_i, 0)), phi_i = slopes_i + max(x_i, 0), naive (slopes_i - 1) +
     * max(x_i, 0), where NaN counts as 0. The arrays must not overlap. */
    void (*elu)(int64_t count, bool naive, const real *x, real *slopes, real *phi);
    /* phi_ifc = factors_if max(x_ic, 0), where NaN counts as 0: each row of x gives `count` rows of
     * d numbers, and phi and slopes are dense; and its backward, grad_ic = sum_f factors_if
     * slopes_ifc where x_ic > 0, otherwise 0; add: that is added to what grad holds. */
    void (*relu)(int64_t rows, int64_t count, const real *factors, int64_t d, const real *x,
                 int64_t stride, real *phi);
    void (*relu_backward)(int64_t rows, int64_t count, const real *factors, int64_t d,
                          const real *x, int64_t stride, const real *slopes, bool add, real *grad,
                          int64_t grad_stride);
    /* x_i = exp(factor (x_i - shift)), with a relative error of 1 ulp and of three roundings of
     * the argument. */
    void (*scaled_exponentials)(int64_t count, double factor, real shift, real *x);
    /* y_ij = the same of x_ij and shifts_i, of counts_i numbers in each row; x may be y, with the
     * same stride. sums_i is the sum of row i: SIMD_COLUMNS partial sums of at most eight, which
     * are then added in double. */
    void (*exponential_rows)(int64_t rows, const int64_t *counts, double factor, const real *shifts,
                             const real *x, int64_t x_stride, real *y, int64_t y_stride,
                             double *sums);
    /* y_jc = exp(x_jc - shifts_c) of rows of d numbers, y dense; sums_c += the sum of column c,
     * eight terms at a time, which are then added in double; null: no sums. False if a difference
     * is more than `most`, which is at most 88, or not finite; its y and the sum of its column may
     * then be anything. */
    bool (*exponential_columns)(int64_t rows, int64_t d, const real *x, int64_t x_stride,
                                const real *shifts, real most, real *y, double *sums);
    /* Of rows of a softmax's weights and of the derivative by them, slopes: peaks_i is the slope
     * whose weight is above 1/2, the mean of two whose weights are 1/2 (half of the slope if one
     * is), or 0; and sums_i that of weights_ij (slopes_ij - pivots_i) over the first counts_i,
     * added as the sums of exponential_rows are. */
    void (*softmax_peaks)(int64_t rows, int64_t count, const real *weights, int64_t stride,
                          const real *slopes, int64_t slope_stride, real *peaks);
    void (*weighted_rows)(int64_t rows, const int64_t *counts, const real *weights, int64_t stride,
                          const real *slopes, int64_t slope_stride, const real *pivots,
                          double *sums);
    /* sines_i = sin(x_i), x_i = cos(x_i) */
    void (*sincos)(int64_t count, real *x, real *sines);
    void (*sincos_f64)(int64_t count, double *x, double *sines); /* the same in either copy */
    /* x_i becomes x_i Phi(x_i), Phi the normal distribution's function (Hendrycks and Gimpel 2016),
     * slopes_i its derivative; slopes may be null. In double in either copy. */
    void (*gelu)(int64_t count, double *x, double *slopes);
    /* Transposes rows x columns to columns x rows, with row stride `width`, padded with 0. */
    void (*transpose)(int64_t rows, int64_t columns, const real *from, int64_t stride, real *to,
                      int64_t width);
    /* The largest element, or `least` if that is larger; NaN is ignored. */
    real (*largest)(int64_t count, const real *x, real least);
    /* The same of counts_i numbers in each row: most_i, which is `least` before. */
    void (*largest_of_rows)(int64_t rows, const int64_t *counts, const real *x, int64_t stride,
                            real *most);
    /* row -= factor_0 row_0 + factor_1 row_1 + ..., product after product in this order. `columns`
     * is a multiple of SIMD_COLUMNS. */
    void (*eliminate)(int64_t count, const real *factors, int64_t factor_stride, const real *rows,
                      int64_t stride, int64_t columns, real *row);
    /* row_j /= divisor, then rest_j -= row_j^2; columns as above. */
    void (*scale_and_downdate)(int64_t columns, real divisor, real *row, real *rest);
    void (*add_differences)(const weighted_pairs *pairs);
    /* `steps` multiply-adds in each of many chains of whole vectors, in registers; *sum depends on
     * all results. Returns the number of chains, counting every lane. */
    int (*multiply_adds)(int64_t steps, real *sum);
    /* The smallest eigenvalue of a symmetric tridiagonal matrix of count <= SIMD_TRIDIAGONAL rows,
     * within roundoff of its norm; NaN where an element is not finite, and for count 0. */
    double (*smallest_eigenvalue)(int count, const double *diagonal, const double *off_diagonal);
    /* Sums over `inner` in order, up to 256 terms at a time. */
    void (*product)(const product_terms *terms);
    /* y_i = (y_i - l_i0 y_0 - l_i1 y_1 - ...) / l_ii, in this order. */
    void (*solve)(const triangle_terms *terms);
} simd;

enum { SIMD_COLUMNS = 16, SIMD_FEW_COLUMNS = 4, SIMD_TRIDIAGONAL = 16 };

extern const simd R(simd);

/* Rounds up to a multiple of SIMD_COLUMNS. */
static inline int64_t whole_vectors(int64_t columns)
{
    return (columns + SIMD_COLUMNS - 1) / SIMD_COLUMNS * SIMD_COLUMNS;
}

/* C (rows x cols) = op(A) op(B), plus what C holds with add; row-major, inner the shared size. */
static inline product_terms real_terms(CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b,
                                       int64_t rows, int64_t cols, int64_t inner, const real *a,
                                       int64_t lda, const real *b, int64_t ldb, bool add, real *c,
                                       int64_t ldc)
{
    bool flip_a = trans_a == CblasTrans, flip_b = trans_b == CblasTrans;
    return (product_terms){.rows = rows,
                           .columns = cols,
                           .inner = inner,
                           .a = a,
                           .a_row = flip_a ? 1 : lda,
                           .a_step = flip_a ? lda : 1,
                           .b = b,
                           .b_step = flip_b ? 1 : ldb,
                           .b_column = flip_b ? ldb : 1,
                           .add = add,
                           .c = c,
                           .c_row = ldc};
}

static inline void real_gemm(CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int64_t rows,
                             int64_t cols, int64_t inner, const real *a, int64_t lda, const real *b,
                             int64_t ldb, bool add, real *c, int64_t ldc)
{
    product_terms terms =
        real_terms(trans_a, trans_b, rows, cols, inner, a, lda, b, ldb, add, c, ldc);
    R(simd).product(&terms);
}

/* The address of row `rows` of x, or null if rows do not lie one after the other. */
static inline const real *real_next(const real *x, int64_t rows, int64_t cols, int64_t stride)
{
    return stride == cols ? x + rows * stride : NULL;
}

/* real_gemm, with the arrays that `ahead` of product_terms names. */
static inline void real_gemm_ahead(product_terms terms, const real *first, const real *second)
{
    terms.ahead[0] = first;
    terms.ahead[1] = second;
    R(simd).product(&terms);
}

/* C = A B for dense m x m matrices, A symmetric, with the same bits as real_multiply: small ones
 * are read by columns, which is faster where rows are not whole vectors (bench/NOTES.md). */
static inline void real_multiply_by_symmetric(int64_t m, const real *a, const real *b, real *c)
{
    bool by_columns = m < 256 && m % SIMD_COLUMNS != 0;
    real_gemm(by_columns ? CblasTrans : CblasNoTrans, CblasNoTrans, m, m, m, a, m, b, m, false, c,
              m);
}

/* C = A B for dense m x m matrices. */
static inline void real_multiply(int64_t m, const real *a, const real *b, real *c)
{
    real_gemm(CblasNoTrans, CblasNoTrans, m, m, m, a, m, b, m, false, c, m);
}

/* Y <- L^-1 Y or L^-T Y; L lower, r x r, row-major. columns is a multiple of SIMD_COLUMNS. */
static inline void real_solve(CBLAS_TRANSPOSE trans, int64_t r, const real *l, int64_t l_stride,
                              int64_t columns, real *y, int64_t y_stride)
{
    int64_t last = r - 1;
    if (r == 0)
        return;
    triangle_terms terms = {0, r, l, l_stride, 1, columns, y, y_stride};
    if (trans == CblasTrans) /* lower from its last row to its first */
        terms = (triangle_terms){0,         r,       l + last * l_stride + last, -1,
                                 -l_stride, columns, y + last * y_stride,        -y_stride};
    R(simd).solve(&terms);
}

#endif
