/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel matrices of tokens and landmarks, the papers' iterate for A+, and eigenvalues that two
 * routes agree on. */
#ifndef EXPERIMENTS_SPECTRAL_MATRICES_H
#define EXPERIMENTS_SPECTRAL_MATRICES_H

#include "common/landmarks.h"

/* n tokens, a few of which have large norms: many rows of S put their weight on the same one. */
void make_norms(uint64_t seed, int64_t sample, int64_t n, double *tokens);

/* K(X, X) of count tokens, in f64, with the options' distance and scale, for one head. Returns an
 * exit code. */
int make_kernel(const program_options *s, atn_context *context, int64_t count, int64_t dim,
                double *tokens, double *kernel);
/* K(X, Y) of rows tokens x and cols tokens y, the same way. */
int make_cross_kernel(const program_options *s, atn_context *context, int64_t rows, int64_t cols,
                      int64_t dim, double *x, double *y, double *kernel);

/* X_20, with which the papers replace A+, for a symmetric a, m x m: of a Newton-Raphson variant,
 * and of nr-paper. Both return an exit code. */
enum { PAPER_STEPS = 20 };
int make_iterate_of(atn_context *context, atn_inverse_method method, int64_t m, double *a,
                    double *x);
int make_iterate(atn_context *context, int64_t m, double *a, double *x);

/* Judges the disagreement of two routes to `what`, in units of the expected rounding error, by the
 * ruler's rule for spectra: EXIT_CHECK and a line on stderr if it FAILs. */
int check_disagreement(double disagreement, const char *what, int64_t n);
/* The eigenvalues lambda (descending) and eigenvectors w (or null) of a symmetric a, by two routes
 * whose disagreement is checked. */
int checked_eigenvalues(int64_t n, const double *a, double *lambda, double *w);
/* Likewise the smallest and the largest eigenvalue, and |a|_2. */
int checked_ends(int64_t n, const double *a, double *lowest, double *highest);
int checked_norm(int64_t n, const double *a, double *norm);

/* The number of eigenvalues (descending) above m u lambda_1. */
int64_t numerical_rank(int64_t m, const double *lambda, double u);

/* A of a point, m x m, to be freed. Returns an exit code. */
int landmark_sweep_matrix(const landmark_sweep *sweep, const landmark_point *point,
                          atn_context *context, double **a);

#endif
