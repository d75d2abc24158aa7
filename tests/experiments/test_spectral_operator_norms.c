/* SPDX-License-Identifier: BSD-3-Clause */
/* Norms of attention matrices against those of the dense matrices and against closed forms. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dense_soft.h"
#include <linear_algebra.h>
#include <newton.h>

#include "common/report.h"
#include "runs.h"
#include "spectral/matrices.h"
#include "spectral/operator_norms.h"

static const double u = 0x1p-53;

/* Dense matrices of an input: n = 196 tokens, m = 49 landmarks. */
enum { N = 196, M = 49 };
typedef struct {
    double tokens[N * TOKEN_DIM], landmarks[M * TOKEN_DIM], a[M * M], p[M * N], x[M * M];
    double s_hat[N * N];
} dense;

static dense *make_dense(atn_context *context, const char *name, double scale)
{
    program_options s = {.inputs = {1, &name}};
    dense *made = must_allocate(1, sizeof *made);
    token_grid grid = {14, 14, 16, 2, false};
    input_set set;
    cr_assert(input_set_open(&s, NULL, &set) == EXIT_PASS);
    cr_assert(make_landmarks(set.items[0], &grid, 1, 0, context, made->tokens, made->landmarks) ==
              EXIT_PASS);
    input_set_free(&set);
    ref_gaussian(M, M, TOKEN_DIM, made->landmarks, made->landmarks, scale, made->a);
    ref_gaussian(M, N, TOKEN_DIM, made->landmarks, made->tokens, scale, made->p);
    return made;
}

static double dense_norm(dense *d, double scale, const double *inverse, bool normalise)
{
    double norm = NAN;
    cr_assert(ref_soft(N, M, TOKEN_DIM, 0, d->tokens, d->landmarks, NULL, scale, inverse, normalise,
                       d->s_hat, NULL) == ATN_OK);
    cr_assert(ref_spectral_norm(N, N, d->s_hat, &norm) == ATN_OK);
    return norm;
}

/* |A+|_inf, the largest absolute row sum. x is overwritten. */
static double pinv_norm_inf(const double *a, double *x)
{
    double largest = 0;
    cr_assert(ref_symmetric_pinv(M, a, -1, x, NULL, NULL, NULL) == ATN_OK);
    for (int i = 0; i < M; i++) {
        double row = 0;
        for (int j = 0; j < M; j++)
            row += fabs(x[i * M + j]);
        largest = fmax(largest, row);
    }
    return largest;
}

/* ---- SOFT and SOFT++ ---- */

Test(spectral_operator_norms, small_norms_are_those_of_the_dense_matrices)
{
    static const char *const names[] = {"smooth", "iid:0.3", "photos", "clusters", "constant"};
    double scale = 1 / (2 * sqrt(TOKEN_DIM));
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dense *d = make_dense(context, names[i], scale);
        attention_norms got;
        double lambda[M], p_norm;
        int code = attention_norms_measure(context, M, N, d->a, d->p, &got);
        cr_assert(code == EXIT_PASS && make_iterate(context, M, d->a, d->x) == EXIT_PASS);
        cr_assert(ref_eigenvalues(M, d->a, lambda, NULL, NULL) == ATN_OK);
        cr_assert(ref_spectral_norm(M, N, d->p, &p_norm) == ATN_OK);
        double soft = dense_norm(d, scale, NULL, false), softpp = dense_norm(d, scale, NULL, true);
        double iterate = dense_norm(d, scale, d->x, false);
        double tolerance = 10 * u * (N + M * lambda[0] * got.pinv_norm);
        cr_expect(close_to(got.soft, soft, tolerance) && close_to(got.softpp, softpp, tolerance) &&
                      close_to(got.iterate, iterate, tolerance) &&
                      close_to(got.p_norm, p_norm, 1e-13),
                  "%s: soft %.12g, want %.12g; softpp %.12g, want %.12g; iterate %.12g, want %.12g "
                  "(tolerance %.2g)",
                  names[i], got.soft, soft, got.softpp, softpp, got.iterate, iterate, tolerance);
        double largest = pinv_norm_inf(d->a, d->x);
        cr_expect(close_to(got.pinv_norm_inf, largest, 1e-12) &&
                      (largest > 1.01 * got.pinv_norm) == (strcmp(names[i], "constant") != 0),
                  "%s: |A+|_inf %.12g, want %.12g", names[i], got.pinv_norm_inf, largest);
        free(d);
    }
    atn_context_free(context);
}

Test(spectral_operator_norms, norms_without_an_inverse_are_those_of_the_dense_matrices)
{
    static const char *const names[] = {"smooth", "iid", "photos", "clusters"};
    double scale = 1 / (2 * sqrt(TOKEN_DIM));
    atn_context *context = make_context();
    for (int i = 0; i < 4; i++) {
        dense *d = make_dense(context, names[i], scale);
        form_norms got;
        double lambda[M], n1 = ref_norm1(M, d->a);
        cr_assert(form_norms_measure(context, M, N, d->a, d->p, &got) == EXIT_PASS);
        cr_assert(ref_eigenvalues(M, d->a, lambda, NULL, NULL) == ATN_OK);
        double exact = 10 * u * (N + M * lambda[0] / lambda[M - 1]), iterate = 1e-7;
        double want[6] = {dense_norm(d, scale, NULL, false), dense_norm(d, scale, NULL, true)};
        cr_assert(ref_filter_matrix(M, d->a, 2 / (n1 * n1), 0, 20, d->x) == ATN_OK);
        want[2] = dense_norm(d, scale, d->x, false);
        want[3] = dense_norm(d, scale, d->x, true);
        cr_assert(ref_filter_matrix(M, d->a, 1.8 / (n1 * n1), 0.01, 20, d->x) == ATN_OK);
        want[4] = dense_norm(d, scale, d->x, false);
        cr_assert(make_iterate_of(context, ATN_INVERSE_NR_SOFTPP, M, d->a, d->x) == EXIT_PASS);
        want[5] = dense_norm(d, scale, d->x, true);
        const double have[6] = {got.soft.exact,   got.softpp.exact,   got.soft.paper,
                                got.softpp.paper, got.soft.published, got.softpp.published};
        for (int k = 0; k < 6; k++)
            cr_expect(close_to(have[k], want[k], k < 2 ? exact : iterate),
                      "%s %d: %.15g, want %.15g", names[i], k, have[k], want[k]);
        cr_expect(got.rank == M && got.soft.coarse == got.soft.exact &&
                      got.softpp.coarse == got.softpp.exact,
                  "%s: rank %" PRId64, names[i], got.rank);
        free(d);
    }
    atn_context_free(context);
}

/* A = diag(l), P = A B: P^T A+ P = B^T A B in what is kept. With B of orthogonal rows |b_i|^2 = b_i
 * the norm is max l_i b_i, so that one row at a time shows which cut drops it. */
Test(spectral_operator_norms, the_cuts_are_m_u_and_1000_m_u)
{
    enum { SIZE = 4, COLS = 8 };
    static const double lowest[] = {1e-2, 500 * SIZE * 0x1p-53, 2 * SIZE * 0x1p-53,
                                    0.5 * SIZE * 0x1p-53};
    static const int64_t ranks[] = {4, 4, 4, 3};
    atn_context *context = make_context();
    for (int k = 0; k < 4; k++) {
        double a[SIZE * SIZE] = {0}, p[SIZE * COLS] = {0}, l = lowest[k];
        for (int i = 0; i < SIZE; i++) {
            a[i * SIZE + i] = i < 3 ? 1 : l;
            p[i * COLS + 2 * i] = i < 3 ? 1 : l * sqrt(10 / l);
        }
        form_norms got;
        cr_assert(form_norms_measure(context, SIZE, COLS, a, p, &got) == EXIT_PASS);
        /* the last direction has norm 10, of SOFT++ 10/l: d = l there */
        bool kept = ranks[k] == 4, kept_by_coarse = k == 0;
        cr_expect(got.rank == ranks[k] && close_to(got.soft.exact, kept ? 10 : 1, 1e-12) &&
                      close_to(got.soft.coarse, kept_by_coarse ? 10 : 1, 1e-12),
                  "l=%g: rank %" PRId64 " %g %g", l, got.rank, got.soft.exact, got.soft.coarse);
        cr_expect(close_to(got.softpp.exact, kept ? 10 / l : 1, 1e-12) &&
                      close_to(got.softpp.coarse, kept_by_coarse ? 10 / l : 1, 1e-12),
                  "l=%g: %g %g", l, got.softpp.exact, got.softpp.coarse);
    }
    atn_context_free(context);
}

/* ---- Softmax ---- */

Test(spectral_operator_norms, softmax_norms_are_those_of_the_dense_matrix)
{
    enum { COUNT = 60 };
    double tokens[COUNT * 3], s[COUNT * COUNT], symmetric[COUNT * COUNT], d[COUNT];
    double lambda[COUNT], norm, largest = 0;
    softmax_norms got;
    for (int i = 0; i < COUNT * 3; i++)
        tokens[i] = 4 * sin(i * 1.3) / (1 + i % 7);
    for (int i = 0; i < COUNT; i++) {
        d[i] = 0;
        for (int j = 0; j < COUNT; j++) {
            double dot = 0;
            for (int k = 0; k < 3; k++)
                dot += tokens[i * 3 + k] * tokens[j * 3 + k];
            d[i] += s[i * COUNT + j] = exp(dot / sqrt(3));
            largest = fmax(largest, dot / sqrt(3));
        }
    }
    for (int i = 0; i < COUNT * COUNT; i++) {
        symmetric[i] = s[i] / sqrt(d[i / COUNT] * d[i % COUNT]);
        s[i] /= d[i / COUNT];
    }
    cr_assert(ref_spectral_norm(COUNT, COUNT, s, &norm) == ATN_OK);
    cr_assert(ref_eigenvalues(COUNT, symmetric, lambda, NULL, NULL) == ATN_OK);
    cr_assert(softmax_norms_measure(COUNT, 3, tokens, &got) == EXIT_PASS);
    cr_expect(close_to(got.highest, 1, 1e-13) && close_to(got.norm, norm, 1e-13) && norm > 1.3,
              "lambda_1=%.17g |S|=%.17g, want %.17g", got.highest, got.norm, norm);
    cr_expect(fabs(got.lowest - lambda[COUNT - 1]) <= 1e-13 && close_to(got.logit, largest, 1e-13),
              "lambda_n=%.17g, want %.17g; logit %.17g", got.lowest, lambda[COUNT - 1], got.logit);
}

/* Far apart, softmax is the identity: lambda_n = 1. */
Test(spectral_operator_norms, softmax_eigenvalues_may_all_be_1)
{
    double tokens[] = {100, 0, 0, 100};
    softmax_norms got;
    cr_assert(softmax_norms_measure(2, 2, tokens, &got) == EXIT_PASS);
    cr_expect(got.lowest == 1 && got.highest == 1 && got.norm == 1, "%g %g %g", got.lowest,
              got.highest, got.norm);
    double huge[] = {1e200, 1}; /* its logit overflows */
    cr_assert(softmax_norms_measure(2, 1, huge, &got) == EXIT_PASS);
    cr_expect(isnan(got.lowest) && isnan(got.highest) && isnan(got.norm));
}

/* One token so large that all rows pick it: S has one column of ones, |S|_2 = sqrt(n), and the
 * exponentials overflow unless they are shifted. */
Test(spectral_operator_norms, softmax_norm_reaches_the_root_of_n)
{
    enum { COUNT = 25 };
    double tokens[COUNT];
    softmax_norms got;
    for (int i = 0; i < COUNT; i++)
        tokens[i] = i ? 1 : 1e5;
    cr_assert(softmax_norms_measure(COUNT, 1, tokens, &got) == EXIT_PASS);
    cr_expect(close_to(got.norm, 5, 1e-13) && close_to(got.highest, 1, 1e-13),
              "lambda_1=%.17g |S|=%.17g", got.highest, got.norm);
}

/* Keys that are the queries, moved on by one: S is the permutation, with cube roots of unity. */
Test(spectral_operator_norms, keys_of_their_own_have_complex_eigenvalues)
{
    double queries[9] = {0}, keys[9] = {0};
    cross_norms got;
    for (int i = 0; i < 3; i++)
        queries[4 * i] = keys[3 * i + (i + 1) % 3] = 40;
    cr_assert(softmax_cross_measure(3, 3, queries, keys, &got) == EXIT_PASS);
    cr_expect(close_to(got.radius, 1, 1e-14) && close_to(got.lowest, -0.5, 1e-14) &&
                  close_to(got.largest_imaginary, sqrt(0.75), 1e-14) &&
                  close_to(got.norm, 1, 1e-14) && close_to(got.logit, 1600 / sqrt(3), 1e-14),
              "%g %g %g %g", got.radius, got.lowest, got.largest_imaginary, got.norm);
    keys[0] = 1e200;
    queries[0] = 1e200;
    cr_assert(softmax_cross_measure(3, 3, queries, keys, &got) == EXIT_PASS);
    cr_expect(isnan(got.radius) && isnan(got.norm) && isinf(got.logit));
}

/* S = [x 1-x; y 1-y]: eigenvalues 1 and x - y. */
Test(spectral_operator_norms, two_queries_and_two_keys)
{
    double queries[2] = {-1, 2}, keys[2] = {0.5, 1.5};
    double x = 1 / (1 + exp(-1)), y = 1 / (1 + exp(2)), d = x - y;
    double f = x * x + (1 - x) * (1 - x) + y * y + (1 - y) * (1 - y);
    cross_norms got;
    cr_assert(softmax_cross_measure(2, 1, queries, keys, &got) == EXIT_PASS);
    cr_expect(close_to(got.radius, 1, 1e-14) && close_to(got.lowest, d, 1e-14) &&
                  got.largest_imaginary == 0 &&
                  close_to(got.norm, sqrt((f + sqrt(f * f - 4 * d * d)) / 2), 1e-14),
              "%g %g %g", got.radius, got.lowest, got.norm);
    queries[0] = 2;
    queries[1] = -1; /* S's rows exchanged: the eigenvalue is y - x */
    cr_assert(softmax_cross_measure(2, 1, queries, keys, &got) == EXIT_PASS);
    cr_expect(close_to(got.radius, 1, 1e-14) && close_to(got.lowest, -d, 1e-14));
}
