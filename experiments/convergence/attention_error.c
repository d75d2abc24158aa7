/* SPDX-License-Identifier: BSD-3-Clause */
#include "convergence/attention_error.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <linear_algebra.h>

#include "common/report.h"
#include "spectral/operator_norms.h"

attention_error attention_error_create(int64_t m)
{
    size_t size = (size_t)m * (size_t)m;
    attention_error e = {.m = m};
    e.r = must_allocate(size, sizeof *e.r);
    e.exact = must_allocate(size, sizeof *e.exact);
    e.work = must_allocate(2 * size, sizeof *e.work);
    return e;
}

void attention_error_free(attention_error *e)
{
    free(e->work);
    free(e->exact);
    free(e->r);
    *e = (attention_error){0};
}

/* c = op(a) b of m x m matrices. */
static void multiply(int64_t m, CBLAS_TRANSPOSE op, const double *a, const double *b, double *c)
{
    cblas_dgemm(CblasRowMajor, op, CblasNoTrans, (int)m, (int)m, (int)m, 1, a, (int)m, b, (int)m, 0,
                c, (int)m);
}

/* |a|_2 of a matrix that is symmetric up to rounding; NaN if it is not finite. */
static double symmetric_norm(int64_t m, const double *a)
{
    double *lambda = must_allocate((size_t)m, sizeof *lambda), norm = NAN;
    if (ref_eigenvalues(m, a, lambda, NULL, NULL) == ATN_OK)
        norm = fmax(fabs(lambda[0]), fabs(lambda[m - 1]));
    free(lambda);
    return norm;
}

/* r^T A+ r = Z^T J Z, where J has the signs of the kept eigenvalues. z has room for m x m. */
static void form_exact(attention_error *e, const double *lambda, const double *w, double cut,
                       double *z)
{
    int64_t m = e->m;
    double *signs = e->work;
    multiply(m, CblasTrans, w, e->r, z);
    memcpy(signs, z, (size_t)(m * m) * sizeof *z);
    for (int64_t i = 0; i < m; i++) {
        bool kept = fabs(lambda[i]) > cut;
        cblas_dscal((int)m, kept ? 1 / sqrt(fabs(lambda[i])) : 0, z + i * m, 1);
        cblas_dscal((int)m, kept ? copysign(1 / sqrt(fabs(lambda[i])), lambda[i]) : 0,
                    signs + i * m, 1);
    }
    multiply(m, CblasTrans, z, signs, e->exact);
}

int attention_error_set(attention_error *e, int64_t n, const double *a, double rcond,
                        const double *p)
{
    int64_t m = e->m;
    double *lambda = must_allocate((size_t)m, sizeof *lambda);
    double *w = must_allocate((size_t)(m * m), sizeof *w);
    double *z = must_allocate((size_t)(m * m), sizeof *z);
    atn_status status = ref_eigen(REF_DSYEVD, m, a, lambda, w);
    int code = EXIT_PASS;
    e->norm = NAN;
    for (int64_t i = 0; i < m * n && status == ATN_OK; i++)
        status = isfinite(p[i]) ? ATN_OK : ATN_NONFINITE;
    if (status < 0) {
        report_error("reference eigenvectors: %s", atn_status_message(status));
        code = EXIT_ENVIRONMENT;
    } else if (status == ATN_OK) {
        code = factor_cross_kernel(m, n, p, e->r);
        form_exact(e, lambda, w, rcond * fmax(fabs(lambda[0]), fabs(lambda[m - 1])), z);
        e->norm = symmetric_norm(m, e->exact);
    }
    free(z);
    free(w);
    free(lambda);
    return code;
}

double attention_error_of(const attention_error *e, const double *x)
{
    int64_t m = e->m;
    double *product = e->work, *form = e->work + m * m;
    if (isnan(e->norm))
        return NAN;
    multiply(m, CblasNoTrans, x, e->r, product);
    multiply(m, CblasTrans, e->r, product, form);
    for (int64_t i = 0; i < m * m; i++)
        form[i] -= e->exact[i];
    double error = symmetric_norm(m, form);
    return error == 0 ? 0 : error / e->norm;
}
