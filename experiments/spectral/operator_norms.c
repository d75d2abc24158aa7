/* SPDX-License-Identifier: BSD-3-Clause */
#include "spectral/operator_norms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include <linear_algebra.h>

#include "common/report.h"
#include "spectral/matrices.h"

static double *allocate_matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

/* A product rounds (i, j) and (j, i) differently. */
static void symmetrise(int64_t n, double *a)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            a[i * n + j] = a[j * n + i] = 0.5 * (a[i * n + j] + a[j * n + i]);
}

/* Reduces P (m x n, m <= n) for norms of P^T X P: with P = U diag(sigma) V^T, the m x m matrix r =
 * U diag(sigma) has P^T X P = V (r^T X r) V^T, so that both have the same nonzero eigenvalues.
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

/* Computes A+ in x and measures its norms; x is normalised afterwards. */
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

/* ---- Without forming A+ ---- */

int factor_cross_kernel(int64_t m, int64_t n, const double *p, double *r)
{
    double *copy = allocate_matrix(m, n), *tau = allocate_matrix(m, 1);
    memcpy(copy, p, (size_t)m * (size_t)n * sizeof *copy);
    /* the rows of P are the columns of P^T = Q r^T */
    int info = LAPACKE_dgeqrf(LAPACK_COL_MAJOR, (int)n, (int)m, copy, (int)n, tau);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            r[i * m + j] = j <= i ? copy[i * n + j] : 0;
    free(tau);
    free(copy);
    if (info == 0)
        return EXIT_PASS;
    report_error("QR factors of the cross kernel: LAPACK's status %d", info);
    return EXIT_ENVIRONMENT;
}

/* |Z^T Z|_2, and the same for Z's first rows alone: the norms of Z Z^T and of its leading block. */
static int gram_norms(int64_t m, int64_t rank, int64_t coarse_rank, const double *z,
                      inverse_norms *norms)
{
    double *gram = allocate_matrix(rank, rank);
    int code = EXIT_PASS;
    const int64_t sizes[] = {rank, coarse_rank};
    double *const results[] = {&norms->exact, &norms->coarse};
    for (int i = 0; i < 2; i++) {
        int size = (int)sizes[i];
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size, size, (int)m, 1, z, (int)m, z,
                    (int)m, 0, gram, size);
        symmetrise(size, gram);
        code = exit_worst(code, checked_norm(size, gram, results[i]));
    }
    free(gram);
    return code;
}

static int64_t count_above(int64_t m, const double *lambda, double cut)
{
    int64_t count = 0;
    while (count < m && lambda[count] > cut * lambda[0])
        count++;
    return count;
}

/* The norms of r^T A+ r. For D^-1/2 A+ D^-1/2 (SOFT++) r is D^-1/2 times that of P. */
static int measure_factored(int64_t m, const double *lambda, const double *w, const double *r,
                            int64_t *rank, inverse_norms *norms)
{
    double cut = (double)m * atn_dtype_roundoff(ATN_F64);
    int64_t coarse_rank = count_above(m, lambda, 1000 * cut);
    *rank = count_above(m, lambda, cut);
    double *z = allocate_matrix(*rank, m);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)*rank, (int)m, (int)m, 1, w, (int)m,
                r, (int)m, 0, z, (int)m);
    for (int64_t i = 0; i < *rank; i++)
        cblas_dscal((int)m, 1 / sqrt(lambda[i]), z + i * m, 1);
    int code = gram_norms(m, *rank, coarse_rank, z, norms);
    free(z);
    return code;
}

/* |r^T X r|_2 for X = X_20 of a method, or X = D^-1/2 X_20 D^-1/2 if normalised. */
static int measure_iterate(atn_context *context, atn_inverse_method method, bool normalised,
                           int64_t m, double *a, const double *r, double *norm)
{
    double *x = allocate_matrix(m, m);
    int code = make_iterate_of(context, method, m, a, x);
    if (code == EXIT_PASS && normalised)
        normalise(m, a, x);
    if (code == EXIT_PASS)
        code = quadratic_norm(m, r, x, norm);
    free(x);
    return code;
}

/* r becomes D^-1/2 r, D = diag(A 1). */
static void scale_rows(int64_t m, const double *a, double *r)
{
    for (int64_t i = 0; i < m; i++)
        cblas_dscal((int)m, 1 / sqrt(cblas_dasum((int)m, a + i * m, 1)), r + i * m, 1);
}

int form_norms_measure(atn_context *context, int64_t m, int64_t n, double *a, const double *p,
                       form_norms *norms)
{
    double *r = allocate_matrix(m, m), *w = allocate_matrix(m, m), *lambda = allocate_matrix(m, 1);
    const struct {
        atn_inverse_method method;
        bool normalised;
        double *norm;
    } iterates[] = {{ATN_INVERSE_NR_PAPER, false, &norms->soft.paper},
                    {ATN_INVERSE_NR_SOFT, false, &norms->soft.published},
                    {ATN_INVERSE_NR_PAPER, true, &norms->softpp.paper},
                    {ATN_INVERSE_NR_SOFTPP, true, &norms->softpp.published}};
    int code = factor_cross_kernel(m, n, p, r);
    for (int i = 0; i < 4 && code != EXIT_ENVIRONMENT; i++)
        code = exit_worst(code, measure_iterate(context, iterates[i].method, iterates[i].normalised,
                                                m, a, r, iterates[i].norm));
    if (code != EXIT_ENVIRONMENT)
        code = exit_worst(code, checked_eigenvalues(m, a, lambda, w));
    if (code != EXIT_ENVIRONMENT) {
        code = exit_worst(code, measure_factored(m, lambda, w, r, &norms->rank, &norms->soft));
        scale_rows(m, a, r);
        code = exit_worst(code, measure_factored(m, lambda, w, r, &norms->rank, &norms->softpp));
    }
    free(lambda);
    free(w);
    free(r);
    return code;
}

/* ---- Softmax ---- */

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

/* |S|_2^2 is the largest eigenvalue of S S^T; squaring makes only the small ones inaccurate. */
static int square_norm(int64_t n, const double *s, double *square, double *norm)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)n, (int)n, 1, s, (int)n, s,
                (int)n, 0, square, (int)n);
    symmetrise(n, square);
    int code = checked_norm(n, square, norm);
    *norm = sqrt(*norm);
    return code;
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
        exponentials(n, logits, log_d, 1, 0, s);
        code = exit_worst(code, square_norm(n, s, square, &norms->norm));
    }
    free(square);
    free(s);
    free(log_d);
    free(logits);
    return code;
}

/* c Q K^T, and the largest absolute value. */
static double cross_logits(int64_t n, int64_t d, const double *queries, const double *keys,
                           double *logits)
{
    double largest = 0;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)n, (int)d,
                1 / sqrt((double)d), queries, (int)d, keys, (int)d, 0, logits, (int)n);
    for (int64_t i = 0; i < n * n; i++)
        largest = isfinite(logits[i]) ? fmax(largest, fabs(logits[i])) : INFINITY;
    return largest;
}

/* s is overwritten. */
static int general_eigenvalues(int64_t n, double *s, cross_norms *norms)
{
    double *re = allocate_matrix(n, 1), *im = allocate_matrix(n, 1);
    int info =
        LAPACKE_dgeev(LAPACK_ROW_MAJOR, 'N', 'N', (int)n, s, (int)n, re, im, NULL, 1, NULL, 1);
    norms->radius = norms->largest_imaginary = 0;
    norms->lowest = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        norms->radius = fmax(norms->radius, hypot(re[i], im[i]));
        norms->lowest = fmin(norms->lowest, re[i]);
        norms->largest_imaginary = fmax(norms->largest_imaginary, fabs(im[i]));
    }
    free(im);
    free(re);
    if (info == 0)
        return EXIT_PASS;
    report_error("eigenvalues of a %lldx%lld matrix: LAPACK's status %d", (long long)n,
                 (long long)n, info);
    return EXIT_ENVIRONMENT;
}

int softmax_cross_measure(int64_t n, int64_t d, const double *queries, const double *keys,
                          cross_norms *norms)
{
    double *s = allocate_matrix(n, n), *log_d = allocate_matrix(n, 1);
    double *square = allocate_matrix(n, n);
    int code = EXIT_PASS;
    *norms = (cross_norms){NAN, NAN, NAN, NAN, cross_logits(n, d, queries, keys, s)};
    if (isfinite(norms->logit)) {
        for (int64_t i = 0; i < n; i++)
            log_d[i] = log_sum_exp(n, s + i * n);
        exponentials(n, s, log_d, 1, 0, s);
        code = square_norm(n, s, square, &norms->norm);
        code = exit_worst(code, general_eigenvalues(n, s, norms));
    }
    free(square);
    free(log_d);
    free(s);
    return code;
}
