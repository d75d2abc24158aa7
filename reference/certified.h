/* SPDX-License-Identifier: BSD-3-Clause */
/* Certified answers: numbers whose rounding errors could matter, enclosed by ball arithmetic
 * (FLINT, Arb) or computed exactly over the rationals.
 *
 * Method: X approximates A^-1, R = I - X A (in balls). |R| < 1 proves that A is not singular,
 * and then |X|/(1 + |R|) <= |A^-1| <= |X|/(1 - |R|); |X|_2 comes from an f64 eigendecomposition
 * whose residual and loss of orthogonality are bounded in balls (Ostrowski, Weyl). So a certified
 * enclosure is true whatever LAPACK returned.
 *
 * Inputs are doubles taken as exact numbers. Precision starts at REF_CERTIFY_BITS (or max_bits, if
 * that is less) and doubles until an answer is certified or max_bits is exceeded, however long that
 * takes. An answer that is not certified is NaN, never an approximation.
 *
 * Every function returns ATN_ERR_UNSUPPORTED in a build without the feature `certify`, its outputs
 * untouched; otherwise ATN_OK or what it documents, and of negative statuses ATN_ERR_NULL,
 * ATN_ERR_SHAPE (a size below 1, more than REF_CERTIFY_MOST rows), ATN_ERR_VALUE (max_bits outside
 * 53..2^16, and what each names), ATN_ERR_MEMORY, ATN_ERR_LIBRARY. ATN_NONFINITE: NaN or infinity
 * in the input; outputs are NaN and not certified. FLINT itself ends the program if memory runs
 * out, unless it has other allocation functions. All functions are thread-safe. */
#ifndef REFERENCE_CERTIFIED_H
#define REFERENCE_CERTIFIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <attnum/status.h>

enum { REF_CERTIFY_BITS = 128, REF_CERTIFY_MOST = 4096 };

/* The library used: "FLINT 3.1.0", or "FLINT 2.9.0, Arb 2.23.0". Null: not in this build. */
const char *ref_certify_library(void);

/* Sets the function with which FLINT and GMP allocate count * size bytes; it must never return
 * null, and its blocks are passed to free. Must be called before any other function of theirs. */
void ref_certify_memory(void *(*allocate)(size_t count, size_t size),
                        void *(*resize)(void *memory, size_t count, size_t size));

/* lower <= truth <= upper if certified; NaN, NaN otherwise. bits: the precision that was needed, or
 * the highest that was tried. */
typedef struct {
    double lower, upper;
    int bits;
    bool certified;
} ref_enclosure;

/* A symmetric m x m matrix, exactly: the doubles of `matrix`, or, if that is null, the kernel
 * matrix A_ij = exp(-s |x_i - x_j|^2) of the m x d `tokens`, with s = scale, or s = 1/(2 sqrt(d))
 * exactly if scale is 0. A kernel's entries are never rounded to doubles in between. */
typedef struct {
    int64_t m, d;
    const double *matrix, *tokens;
    double scale;
} ref_exact_matrix;

/* ---- Spectra ---- */

/* normalised: |D^-1/2 A^-1 D^-1/2|_2, D = diag(A 1). */
typedef struct {
    ref_enclosure lambda_min, lambda_max, inverse_norm, normalised_norm;
} ref_certified_spectrum;

/* Encloses the four numbers, each with relative width at most 1e-6 if certified (usually 1e-11).
 *
 * lambda_min = 1/|A^-1|_2 needs A positive definite. Kernel matrices are (positive semi-definite by
 * Bochner's theorem, and not singular). For `matrix`, that is certified as well: by the residual of
 * a Cholesky factorisation that is smaller than 1/|A^-1|_2. If it is not positive definite,
 * lambda_min is not certified, but inverse_norm is. normalised_norm needs positive row sums.
 *
 * ATN_OK: all four certified. ATN_SINGULAR: two tokens coincide; lambda_min = 0 is certified and so
 * is lambda_max; there are no inverses. ATN_BELOW_FLOOR: something is not certified: A is singular,
 * not positive definite, or max_bits too few. ATN_ERR_VALUE: matrix not symmetric, scale negative.
 *
 * One core, kernel of 32 wide tokens, 128 bits: 0.02 s for m = 64, 0.7 s for 256, half a minute and
 * 0.8 GB for 1024. */
atn_status ref_certify_spectrum(const ref_exact_matrix *a, int max_bits,
                                ref_certified_spectrum *spectrum);

/* ---- Outputs ---- */

/* S^ V = P^T X P V (IJCV Eq. 9, 17), P = K(L, Q), X = A^-1, or D^-1/2 A^-1 D^-1/2 if normalise. */
typedef struct {
    int64_t n, m, d, dv;
    const double *tokens, *landmarks, *values; /* n x d, m x d, n x dv */
    double scale;                              /* as in ref_exact_matrix */
    bool normalise;
} ref_certified_soft;

/* lower <= S^ V <= upper elementwise, n x dv each; widths at most 1e-9 of the largest |S^ V|. *bits
 * (or null) as in ref_enclosure. ATN_OK: certified. ATN_SINGULAR (two landmarks coincide) and
 * ATN_BELOW_FLOOR: not certified, and lower and upper are NaN. ATN_ERR_SHAPE also if n m or n dv >
 * 2^24. */
atn_status ref_certify_soft(const ref_certified_soft *problem, int max_bits, double *lower,
                            double *upper, int *bits);

/* ---- Newton-Raphson over the rationals ---- */

/* alpha = numerator/denominator, divided by |A|_1^2 if over_norm1: {2, 1, true} is IJCV Alg. 2. */
typedef struct {
    int64_t numerator, denominator;
    bool over_norm1;
} ref_rational_start;

/* Properties of X_k after k exact steps from X_0 = alpha A. */
typedef struct {
    bool iterate_is_zero;  /* X_k v = 0: then X_j v = 0 for all j > k as well (Eq. 10) */
    bool residual_is_zero; /* A X_k A v = A v */
    bool residual_is_full; /* A X_k A v = 0: the residual along v is -A v, as with X = 0 */
    bool equal_row_sums;   /* A 1 = |A|_1 1 (of a nonnegative A: 1 is its Perron vector) */
} ref_exact_newton;

/* k steps of X <- 2X - XAX on the symmetric m x m matrix of doubles; v: m doubles. residual_lower
 * and _upper (m each, or both null) enclose the exact vector A X_k A v - A v, equal where an entry
 * is a double. Along v = 1 with equal row sums r and alpha = 2/r^2, X_1 v = 0: the failure of S11,
 * which is not due to rounding. The number of digits doubles with every step: k is 0..10, which
 * takes 3 s for m = 16; k = 6 takes 0.6 s for m = 49. ATN_ERR_VALUE: k, denominator <= 0, A not
 * symmetric, |A|_1 = 0 with over_norm1. */
atn_status ref_exact_newton_steps(int64_t m, const double *a, ref_rational_start alpha, int k,
                                  const double *v, ref_exact_newton *result, double *residual_lower,
                                  double *residual_upper);

#endif
