/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices of balls (Arb), used only by the certified part of reference/ and its tests. A ball
 * encloses a number; every routine encloses its formula's results for all numbers in its
 * arguments. */
#ifndef REFERENCE_BALLS_H
#define REFERENCE_BALLS_H

#include <flint/flint.h>
/* FLINT 3 contains Arb, which was a separate library before. */
#if __FLINT_RELEASE >= 30000
#include <flint/arb_mat.h>
#define BALLS_LIBRARY "FLINT " FLINT_VERSION
#else
#include <arb_mat.h>
#define BALLS_LIBRARY "FLINT " FLINT_VERSION ", Arb " ARB_VERSION
#endif

#include "certified.h"

/* ATN_OK, ATN_NONFINITE, or a negative status of certified.h; max_bits not checked. */
atn_status balls_check(const ref_exact_matrix *a);
bool balls_symmetric(int64_t m, const double *a);
bool balls_bits_allowed(int max_bits);

/* The scale of ref_exact_matrix. */
void balls_scale(arb_t s, double scale, int64_t d, slong bits);

/* kernel (p x q, initialised) = exp(-s |x_i - y_j|^2), x is p x d, y is q x d. y null: Y = X, one
 * triangle is computed and mirrored, and the diagonal is 1. */
void balls_kernel(arb_mat_t kernel, int64_t d, const double *x, const double *y, const arb_t s,
                  slong bits);

/* to (initialised) = from, exactly. */
void balls_doubles(arb_mat_t to, const double *from);
void balls_matrix(arb_mat_t to, const ref_exact_matrix *a, slong bits);

/* d_i = the sum of row i; room for as many rows. */
void balls_row_sums(arb_ptr d, const arb_mat_t a, slong bits);

/* S_ij *= r_i c_j; either may be null: all 1. */
void balls_scale_rows_columns(arb_mat_t s, arb_srcptr r, arb_srcptr c, slong bits);

/* What balls_top encloses. */
typedef enum { BALLS_SPECTRAL_NORM, BALLS_LARGEST_EIGENVALUE } balls_quantity;

/* Encloses |S|_2 or the largest eigenvalue of every symmetric matrix in the balls S, from an
 * approximate eigendecomposition in doubles (lambda, and the columns of w), of any accuracy: a poor
 * one only makes the ball wider, or not finite if W may be singular. */
void balls_top_from(arb_t top, balls_quantity quantity, const arb_mat_t s, const double *lambda,
                    const double *w);

/* The same from LAPACK's eigendecomposition: the ball has a radius of a few m u |S|_2 if the radii
 * of S are smaller. ATN_ERR_MEMORY, ATN_ERR_LIBRARY. */
atn_status balls_top(arb_t top, balls_quantity quantity, const arb_mat_t s);

/* x = an approximate inverse of A, exact and exactly symmetric; r = I - X A. False if there is none
 * at this precision. */
bool balls_inverse(arb_mat_t x, arb_mat_t r, const arb_mat_t a, slong bits);

/* From any symmetric X and R = I - X B: norm encloses |B^-1|_2. Not finite if |R|_F < 1 is not
 * certain. Statuses as for balls_top. */
atn_status balls_inverse_norm(arb_t norm, const arb_mat_t x, const arb_mat_t r);

/* Turns X and R of A into those of D^1/2 A D^1/2, whose inverse is D^-1/2 A^-1 D^-1/2: X becomes
 * D^-1/2 X D^-1/2, R becomes D^-1/2 R D^1/2. root and inverse_root: the diagonals of D^1/2,
 * D^-1/2. */
void balls_normalise(arb_mat_t x, arb_mat_t r, arb_srcptr root, arb_srcptr inverse_root,
                     slong bits);

/* From any X and R = I - X A: c encloses A^-1 W. Not finite if |R|_F < 1 is not certain. */
void balls_solve(arb_mat_t c, const arb_mat_t x, const arb_mat_t r, const arb_mat_t w, slong bits);

/* Whether A is certainly positive definite; norm encloses |A^-1|_2. */
bool balls_positive_definite(const arb_mat_t a, const arb_t norm, slong bits);

/* The doubles around a ball. Certified if they are within `width` of each other, relative to the
 * smaller, and not 0; otherwise NaN. */
ref_enclosure balls_enclosure(const arb_t x, double width, slong bits);
void balls_bounds(const arb_t x, double *lower, double *upper);

ref_enclosure balls_nothing(slong bits);

#endif
