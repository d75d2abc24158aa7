/* SPDX-License-Identifier: BSD-3-Clause */
/* Growth laws, fitted by GSL's linear least squares on logarithms. */
#ifndef EXPERIMENTS_FIT_H
#define EXPERIMENTS_FIT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LAW_POWER,       /* y = c m^p:               log y against log m; exponent p */
    LAW_EXPONENTIAL, /* y = c exp(p sqrt(m)):    log y against sqrt(m); exponent p */
} growth_law;

typedef struct {
    double exponent, std_error;
    double residual; /* root mean square of log10 y - log10 fit */
    double constant; /* c */
} growth_fit;

const char *growth_law_name(growth_law law); /* "power", "exponential_sqrt" */

/* False, and fit not set, with fewer than 3 points, or fewer than 2 different m, or m or y not
 * positive and finite. The standard error is the usual one, from the residuals over n - 2. */
bool fit_growth(growth_law law, int64_t points, const double *m, const double *y, growth_fit *fit);

#endif
