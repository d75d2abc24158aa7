/* SPDX-License-Identifier: BSD-3-Clause */
#include "fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_fit.h>
#include <math.h>
#include <stdlib.h>

#include "report.h"

const char *growth_law_name(growth_law law)
{
    return law == LAW_POWER ? "power" : "exponential_sqrt";
}

static bool usable(int64_t points, const double *m, const double *y)
{
    bool different = false;
    for (int64_t i = 0; i < points; i++) {
        if (!(m[i] > 0 && isfinite(m[i]) && y[i] > 0 && isfinite(y[i])))
            return false;
        different |= m[i] != m[0];
    }
    return different;
}

bool fit_growth(growth_law law, int64_t points, const double *m, const double *y, growth_fit *fit)
{
    if (!usable(points, m, y))
        return false;
    size_t n = (size_t)points;
    double *x = must_allocate(n, sizeof *x), *log_y = must_allocate(n, sizeof *log_y);
    for (size_t i = 0; i < n; i++) {
        x[i] = law == LAW_POWER ? log(m[i]) : sqrt(m[i]);
        log_y[i] = log(y[i]);
    }
    double intercept, slope, cov00, cov01, cov11, squares;
    int failed =
        gsl_fit_linear(x, 1, log_y, 1, n, &intercept, &slope, &cov00, &cov01, &cov11, &squares);
    free(x);
    free(log_y);
    /* the m are so close together that their logarithms are equal, or there are only two points,
     * which have no standard error */
    if (failed || !isfinite(slope) || !isfinite(cov11))
        return false;
    *fit = (growth_fit){.exponent = slope,
                        .std_error = sqrt(cov11),
                        .residual = sqrt(squares / (double)n) / log(10),
                        .constant = exp(intercept)};
    return true;
}
