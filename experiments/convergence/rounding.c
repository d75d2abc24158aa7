/* SPDX-License-Identifier: BSD-3-Clause */
#include "convergence/rounding.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "common/report.h"

typedef struct {
    int64_t m;
    const double *lambda;
    double *mu, *r;  /* per mode */
    double *errors;  /* estimates of |E_ij|, m x m, i >= j */
    double *weights; /* sqrt(sum_l mu_l E_il^2): |(E B E)_ij| <= weights_i weights_j */
    double largest;  /* |A| */
} modes;

/* The largest lambda_i lambda_j |E_ij| / |A|. Once errors have overflowed it is infinite. */
static double shown_error(const modes *s)
{
    double worst = 0;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j <= i; j++) {
            double error = fabs(s->lambda[i] * s->lambda[j]) * s->errors[i * s->m + j];
            worst = isnan(error) ? INFINITY : fmax(worst, error);
        }
    return s->largest > 0 ? worst / s->largest : 0;
}

static void find_weights(const modes *s)
{
    for (int64_t i = 0; i < s->m; i++)
        s->weights[i] = 0;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j <= i; j++) {
            double square = s->errors[i * s->m + j] * s->errors[i * s->m + j];
            s->weights[i] += fabs(s->mu[j]) * square;
            if (i != j)
                s->weights[j] += fabs(s->mu[i]) * square;
        }
    for (int64_t i = 0; i < s->m; i++)
        s->weights[i] = sqrt(s->weights[i]);
}

static void advance(const modes *s, double added)
{
    find_weights(s);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j <= i; j++) {
            double *error = &s->errors[i * s->m + j];
            *error = fabs(s->r[i] + s->r[j]) * *error + s->weights[i] * s->weights[j] + added;
        }
    for (int64_t i = 0; i < s->m; i++)
        s->r[i] *= s->r[i];
}

void rounding_estimates(int64_t m, const double *lambda, double alpha, double ridge, double u,
                        int count, const double *norms, double *estimates)
{
    modes s = {.m = m, .lambda = lambda};
    double *vectors = must_allocate((size_t)m, 3 * sizeof *vectors), b_norm = 0;
    s.mu = vectors;
    s.r = vectors + m;
    s.weights = vectors + 2 * m;
    s.errors = must_allocate((size_t)m, (size_t)m * sizeof *s.errors);
    for (int64_t i = 0; i < m; i++) {
        s.mu[i] = lambda[i] + ridge;
        s.r[i] = 1 - alpha * s.mu[i] * s.mu[i];
        s.largest = fmax(s.largest, fabs(lambda[i]));
        b_norm = fmax(b_norm, fabs(s.mu[i]));
    }
    double dot = (double)m * u; /* relative error of an inner product of length m */
    for (int64_t i = 0; i < m * m; i++)
        s.errors[i] = dot * norms[0];
    for (int k = 0; k < count; k++) {
        estimates[k] = shown_error(&s) + (double)m * (DBL_EPSILON / 2) * (1 + s.largest * norms[k]);
        advance(&s, dot * norms[k] * (2 + b_norm * norms[k]));
    }
    free(s.errors);
    free(vectors);
}
