/* SPDX-License-Identifier: BSD-3-Clause */
#include "spectral/operator_norms.h"

#include <math.h>
#include <stdlib.h>

#include <cblas.h>

#include <linear_algebra.h>

#include "common/report.h"
#include "spectral/landmarks.h"

static double *allocate_matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

/* Products round (i, j) and (j, i) apart. */
static void symmetrise(int64_t n, double *a)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            a[i * n + j] = a[j * n + i] = 0.5 * (a[i * n + j] + a[j * n + i]);
}

/* P (m x n, m <= n) as seen by P^T X P: with P = U diag(sigma) V^T, the m x m matrix
 * r = U diag(sigma) has P^T X P = V (r^T X r) V^T, so that both have the same nonzero eigenvalues.
 * Forming P P^T instead would square P's condition number. norm receives |P|_2. */
static int reduce_cross_kernel(int64_t m, int64_t n, const double *p, double *r, double *norm)
{
    double *sigma = allocate_matrix(m, 1), *vt = allocate_matrix(m, n);
    atn_status status = ref_svd(REF_DGESVD, m, n, p, r, sigma, vt);
    for (int64_t i = 0; i < m * m; i++)
        r[i] *= sigma[i % m];
    *norm = sigma[0];
    free(vt);
    free(sigma);
    if (status == ATN_OK)
        return EXIT_PASS;
    report_error("singular values of the cross kernel: %s", atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

/* |P^T X P|_2 = |r^T X r|_2 for symmetric X, m x m. */
static int quadratic_norm(int64_t m, const double *r, const double *x, double *norm)
{
    double *xr = allocate_matrix(m, m), *form = allocate_matrix(m, m);
    int size = (int)m;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, x, size, r, size, 0,
                xr, size);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, size, size, size, 1, r, size, xr, size, 0,
                form, size);
    symmetrise(m, form);
    int code = checked_norm(m, form, norm);
    free(form);
    free(xr);
    return code;
}

/* |a|_inf: the largest absolute row sum. */
static double norm_inf(int64_t m, const double *a)
{
    double largest = 0;
    for (int64_t i = 0; i < m; i++)
        largest = fmax(largest, cblas_dasum((int)m, a + i * m, 1));
    return largest;
}

/* x becomes D^-1/2 x D^-1/2, D = diag(A 1). */
static void normalise(int64_t m, const double *a, double *x)
{
    double *root = allocate_matrix(m, 1);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < m; j++)
            root[i] += a[i * m + j];
        root[i] = sqrt(root[i]);
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            x[i * m + j] /= root[i] * root[j];
    free(root);
}

/* x: A+. Leaves it normalised. */
static int measure_pinv(int64_t m, const double *a, const double *r, double *x,
                        attention_norms *norms)
{
    double disagreement = 0;
    atn_status status = ref_symmetric_pinv(m, a, -1, x, NULL, NULL, &disagreement);
    norms->below_floor = status == ATN_BELOW_FLOOR; /* A+ is then the first route's */
    if (status != ATN_OK && !norms->below_floor) {
        report_error("pseudo-inverse: %s", atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    int code =
        norms->below_floor ? EXIT_PASS : check_disagreement(disagreement, "pseudo-inverse", m);
    code = exit_worst(code, checked_norm(m, x, &norms->pinv_norm));
    code = exit_worst(code, quadratic_norm(m, r, x, &norms->soft));
    norms->pinv_norm_inf = norm_inf(m, x);
    normalise(m, a, x);
    return exit_worst(code, quadratic_norm(m, r, x, &norms->softpp));
}

int attention_norms_measure(atn_context *context, int64_t m, int64_t n, double *a, const double *p,
                            attention_norms *norms)
{
    double *r = allocate_matrix(m, m), *x = allocate_matrix(m, m);
    int code = reduce_cross_kernel(m, n, p, r, &norms->p_norm);
    if (code == EXIT_PASS)
        code = make_iterate(context, m, a, x);
    if (code == EXIT_PASS) {
        code = quadratic_norm(m, r, x, &norms->iterate);
        code = exit_worst(code, measure_pinv(m, a, r, x, norms));
    }
    free(x);
    free(r);
    return code;
}

/* log sum_j exp(row_j), whatever the size of the entries. */
static double log_sum_exp(int64_t n, const double *row)
{
    double largest = row[0], sum = 0;
    for (int64_t j = 1; j < n; j++)
        largest = fmax(largest, row[j]);
    for (int64_t j = 0; j < n; j++)
        sum += exp(row[j] - largest);
    return largest + log(sum);
}

/* Q Q^T / sqrt(d), and the logarithms of D's diagonal. */
static void softmax_logits(int64_t n, int64_t d, const double *tokens, double *logits,
                           double *log_d)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)n, (int)d,
                1 / sqrt((double)d), tokens, (int)d, tokens, (int)d, 0, logits, (int)n);
    symmetrise(n, logits);
    for (int64_t i = 0; i < n; i++)
        log_d[i] = log_sum_exp(n, logits + i * n);
}

/* e_ij = exp(l_ij - (a r_i + b r_j)) */
static void exponentials(int64_t n, const double *logits, const double *r, double a, double b,
                         double *e)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            e[i * n + j] = exp(logits[i * n + j] - (a * r[i] + b * r[j]));
}

int softmax_norms_measure(int64_t n, int64_t d, const double *tokens, softmax_norms *norms)
{
    double *logits = allocate_matrix(n, n), *log_d = allocate_matrix(n, 1);
    double *s = allocate_matrix(n, n), *square = allocate_matrix(n, n);
    int code = EXIT_PASS;
    *norms = (softmax_norms){NAN, NAN, NAN, 0};
    softmax_logits(n, d, tokens, logits, log_d);
    for (int64_t i = 0; i < n; i++) /* Cauchy-Schwarz: the largest is on the diagonal */
        norms->logit = fmax(norms->logit, logits[i * n + i]);
    if (isfinite(norms->logit)) {
        exponentials(n, logits, log_d, 0.5, 0.5, s);
        code = checked_ends(n, s, &norms->lowest, &norms->highest);
        /* |S|_2^2 is the largest eigenvalue of S S^T; squaring costs the small ones only */
        exponentials(n, logits, log_d, 1, 0, s);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)n, (int)n, 1, s, (int)n,
                    s, (int)n, 0, square, (int)n);
        symmetrise(n, square);
        code = exit_worst(code, checked_norm(n, square, &norms->norm));
        norms->norm = sqrt(norms->norm);
    }
    free(square);
    free(s);
    free(log_d);
    free(logits);
    return code;
}
