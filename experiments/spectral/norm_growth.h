/* SPDX-License-Identifier: BSD-3-Clause */
/* The norms of Fig. 6b for one bottleneck matrix. */
#ifndef EXPERIMENTS_SPECTRAL_NORM_GROWTH_H
#define EXPERIMENTS_SPECTRAL_NORM_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include <attnum/attnum.h>
#include <certified.h>

/* D = diag(A 1), X = X_20 of nr-paper. */
typedef struct {
    double lambda_min, lambda_max;                       /* of A */
    double normalised_lambda_min, normalised_lambda_max; /* of D^1/2 A D^1/2 */
    double pinv_norm, normalised_norm; /* |A^-1|_2, |D^-1/2 A^-1 D^-1/2|_2; see inverse_norm */
    double iterate_norm, normalised_iterate_norm; /* |X|_2, |D^-1/2 X D^-1/2|_2 */
    double d_min, d_max;
    double iterate_cap;                            /* see growth_iterate_cap */
    bool pinv_below_floor, normalised_below_floor; /* lambda_min < m u lambda_max */
    ref_enclosure pinv, normalised; /* of the two norms; not certified by growth_measure */
    bool singular;                  /* certified: two landmarks coincide, there is no inverse */
} growth_norms;

/* Whether f64 cannot tell lambda_min from 0: !(lambda_min >= m u lambda_max). */
bool growth_below_floor(int64_t m, double lambda_min, double lambda_max);

/* The norm of the inverse of a positive definite matrix with these computed eigenvalues:
 * 1/lambda_min, or 1/(2 m u lambda_max) below the floor. The latter is a lower bound if the true
 * lambda_min is at most 2 m u lambda_max. By Weyl it is, if the errors of the computed matrix and
 * of the solver (backward) are together less than m u lambda_max in norm. The solver's usually is.
 * A kernel entry has an error of about (d + 4) s |x - y|^2 + 3 times u, which makes a few m u in
 * norm at most, less where A is nearly diagonal. Not certified. */
double growth_inverse_norm(int64_t m, double lambda_min, double lambda_max);

/* |X_T|_2 <= c sqrt(2^(T+1)) / |A|_1 for any symmetric A (S26), in exact arithmetic and up to a
 * relative 3e-7. X_T has the eigenvalues f(l) = (1 - (1 - alpha l^2)^N) / l, N = 2^T, alpha =
 * 2/|A|_1^2. With t = N alpha l^2, f = sqrt(alpha N) (1 - (1 - t/N)^N) / sqrt(t), and for large N
 * (1 - t/N)^N = exp(-t). The largest (1 - exp(-t)) / sqrt(t) is c = 0.6381726863, where 1 + 2 t =
 * exp(t). For T = 20, c is too small by a relative 0.31/N = 3e-7. */
double growth_iterate_cap(double norm1);

/* Encloses both norms of the kernel matrix of the landmarks, m x dim: of the exact numbers exp(-s
 * |x - y|^2), not of the doubles nearest to them. scale as in ref_exact_matrix. A norm that is
 * certified is set to the middle of its enclosure, and its below_floor is cleared. Where two
 * landmarks coincide, neither is certified, and singular is set. Returns an exit code. */
int growth_certify(int64_t m, int64_t dim, const double *landmarks, double scale,
                   growth_norms *norms);

/* Measures a, m x m, symmetric with positive row sums. Returns an exit code: EXIT_CHECK, reported
 * and the norms set, if two routes to eigenvalues disagree or the iterate exceeds its cap. */
int growth_measure(atn_context *context, int64_t m, double *a, growth_norms *norms);

#endif
