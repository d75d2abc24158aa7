/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel matrices of tokens and landmarks, the papers' iterate for A+, and eigenvalues that two
 * routes agree on. */
#ifndef EXPERIMENTS_SPECTRAL_MATRICES_H
#define EXPERIMENTS_SPECTRAL_MATRICES_H

#include "common/landmarks.h"

/* K(X, X) of count tokens, f64, with the options' distance, and scale for one head: an input is
 * one. Returns an exit code. */
int make_kernel(const program_options *s, atn_context *context, int64_t count, int64_t dim,
                double *tokens, double *kernel);
/* K(X, Y) of rows tokens x and cols tokens y, the same way. */
int make_cross_kernel(const program_options *s, atn_context *context, int64_t rows, int64_t cols,
                      int64_t dim, double *x, double *y, double *kernel);

/* X_20 of a Newton-Raphson variant for symmetric a, m x m, and of nr-paper: the papers' stand-in
 * for A+. Return an exit code. */
enum { PAPER_STEPS = 20 };
int make_iterate_of(atn_context *context, atn_inverse_method method, int64_t m, double *a,
                    double *x);
int make_iterate(atn_context *context, int64_t m, double *a, double *x);

/* EXIT_CHECK and a line on stderr if two routes to what disagree by so many times the rounding
 * error to be expected that the ruler's rule for spectra FAILs. */
int check_disagreement(double disagreement, const char *what, int64_t n);
/* lambda (descending) and w, or null, of symmetric a by two routes, their disagreement checked. */
int checked_eigenvalues(int64_t n, const double *a, double *lambda, double *w);
/* The smallest and the largest of them, and |a|_2, the same way. */
int checked_ends(int64_t n, const double *a, double *lowest, double *highest);
int checked_norm(int64_t n, const double *a, double *norm);

/* Eigenvalues (descending) above m u lambda_1. */
int64_t numerical_rank(int64_t m, const double *lambda, double u);

/* A of a point, m x m, to be freed. Returns an exit code. */
int landmark_sweep_matrix(const landmark_sweep *sweep, const landmark_point *point,
                          atn_context *context, double **a);

#endif
