/* SPDX-License-Identifier: BSD-3-Clause */
/* Every inverse on matrices whose answers are known. */
#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "latms.h"
#include "linear_algebra.h"
#include "matrices.h"
#include "newton.h"
#include "pairs.h"
#include "soft.h"

/* A few matrices of one size through one atn_inverse call. */
typedef struct {
    int64_t count, m;
    double *values; /* f64, as the dtype holds them */
    guarded a, x;
    atn_inverse_info infos[8];
} batch;

static batch batch_make(atn_dtype dtype, guarded_layout layout, int64_t count, int64_t m)
{
    batch b = {.count = count, .m = m, .values = data_allocate(count * m * m)};
    b.a = guarded_make(dtype, layout, 1, count, m, m);
    b.x = guarded_make(dtype, layout, 1, count, m, m);
    return b;
}

static void batch_free(batch *b)
{
    guarded_free(&b->x);
    guarded_free(&b->a);
    free(b->values);
}

static atn_status batch_run(atn_context *context, batch *b, const atn_inverse_desc *desc)
{
    data_round(b->a.view.dtype, b->count * b->m * b->m, b->values);
    guarded_set(&b->a, b->values);
    guarded_poison(&b->x);
    memset(b->infos, 0xff, sizeof b->infos);
    return fixture_inverse(context, desc, &b->a, &b->x, b->infos, NULL);
}

/* One matrix, one method. */
static atn_status run_one(atn_context *context, batch *b, atn_inverse_method method)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    return batch_run(context, b, &desc);
}

/* Whether X is written everywhere, nothing else is, and X = X^T to the bit. */
static bool sound(const batch *b)
{
    for (int64_t h = 0; h < b->count; h++)
        for (int64_t i = 0; i < b->m; i++)
            for (int64_t j = 0; j < i; j++)
                if (guarded_at(&b->x, 0, h, i, j) != guarded_at(&b->x, 0, h, j, i))
                    return false;
    return guarded_unwritten(&b->x) == 0 && guarded_damaged(&b->x) == 0;
}

static bool all_zero(const batch *b, int64_t head)
{
    for (int64_t i = 0; i < b->m * b->m; i++)
        if (guarded_at(&b->x, 0, head, i / b->m, i % b->m) != 0)
            return false;
    return true;
}

/* v^T X v / v^T v for v of all ones: on a circulant, X's eigenvalue at the leading eigenvector. */
static double rayleigh_of_ones(const batch *b, int64_t head)
{
    double sum = 0;
    for (int64_t i = 0; i < b->m * b->m; i++)
        sum += guarded_at(&b->x, 0, head, i / b->m, i % b->m);
    return sum / (double)b->m;
}

static bool newton_method(atn_inverse_method method)
{
    return method <= ATN_INVERSE_NR_SOFTPP;
}

/* The rounding error of the iterates, carried along with the closed form. With all norms
 * Frobenius, g = m u / (1 - m u) and B the matrix inverted:
 *   X_0      2 u |X_0|, and the error of B itself, eta = u |B| (ridge, alpha) plus the reference's
 *            eigenvalue error, taken as 10 m u64 |B|
 *   each step, from E: 2 r E + |B| E^2, r = max |1 - mu f_k(mu)| (first and second order), plus
 *            g |X| |B X| + g |B| |X| |X| for the products, 2 u |X B X| + u |next| for averaging and
 *            subtracting, |X|^2 eta for B. */
typedef struct {
    int64_t m;
    const double *lambda;
    double alpha, ridge, u, error;
} rounding_model;

typedef struct {
    double b, x, b_x, x_b_x, next, r;
} step_norms;

static step_norms norms_at(const rounding_model *r, int k)
{
    step_norms n = {0};
    for (int64_t i = 0; i < r->m; i++) {
        double mu = r->lambda[i] + r->ridge, f = ref_filter(r->alpha, k, mu);
        double next = ref_filter(r->alpha, k + 1, mu);
        n.b += mu * mu;
        n.x += f * f;
        n.b_x += mu * f * mu * f;
        n.x_b_x += f * mu * f * f * mu * f;
        n.next += next * next;
        n.r = fmax(n.r, fabs(1 - mu * f));
    }
    n.b = sqrt(n.b), n.x = sqrt(n.x), n.b_x = sqrt(n.b_x), n.x_b_x = sqrt(n.x_b_x);
    n.next = sqrt(n.next);
    return n;
}

static void model_start(rounding_model *r)
{
    step_norms n = norms_at(r, 0);
    r->error = 2 * r->u * n.x + r->alpha * (r->u + 10 * (double)r->m * 0x1p-53) * n.b;
}

static void model_step(rounding_model *r, int k)
{
    step_norms n = norms_at(r, k);
    double mu = (double)r->m * r->u, g = mu / (1 - mu), x = n.x + r->error;
    double eta = (r->u + 10 * (double)r->m * 0x1p-53) * n.b;
    r->error = 2 * n.r * r->error + n.b * r->error * r->error + g * x * (n.b_x + n.b * r->error) +
               g * n.b * x * x + 2 * r->u * n.x_b_x + r->u * n.next + x * x * eta;
}

/* Compares X_k for k = 0 .. 20 with the filter, as long as the bound is meaningful. Returns the
 * worst ratio, and in *judged one more than the last k judged. */
static double follow_filter(atn_context *context, batch *b, atn_inverse_desc desc, int *judged)
{
    int64_t m = b->m;
    double *want = data_allocate(m * m), *lambda = data_allocate(m), worst = 0;
    ref_eigenvalues(m, b->values, lambda, NULL, NULL);
    rounding_model r = {m, lambda, 0, desc.ridge, atn_dtype_roundoff(b->x.view.dtype), 0};
    *judged = 0;
    for (int k = 0; k <= 20; k++) {
        const atn_inverse_info *info = &b->infos[0];
        if (k > 0)
            model_step(&r, k - 1);
        if (!fixture_looks_at(k))
            continue;
        desc.iterations = k;
        atn_status status = batch_run(context, b, &desc);
        r.alpha = info->alpha;
        if (k == 0)
            model_start(&r);
        if (status < 0 || info->stop == ATN_STOP_NO_ALPHA ||
            ref_filter_matrix(m, b->values, r.alpha, desc.ridge, k, want) != ATN_OK)
            break;
        ref_difference difference = guarded_compare(&b->x, 0, 0, want);
        if (!(r.error <= 0.1 * difference.want_frobenius))
            break;
        double ratio = difference.frobenius / r.error;
        if (!(ratio <= worst))
            worst = ratio;
        *judged = k + 1;
        cr_expect(sound(b) && info->iterations == k && info->stop == ATN_STOP_ITERATIONS,
                  "%s k=%d: not symmetric, not written or stopped at %d",
                  atn_inverse_name(desc.method), k, info->iterations);
    }
    free(lambda);
    free(want);
    return worst;
}

/* Compares the start that the library reports with the papers' rule. */
static void check_start(const batch *b, const atn_inverse_desc *desc)
{
    double alpha[8];
    int halvings[8];
    fixture_alpha(desc, b->count, b->m, b->values, alpha, halvings);
    double u = atn_dtype_roundoff(b->x.view.dtype);
    for (int64_t i = 0; i < b->count; i++) {
        double got = b->infos[i].alpha;
        cr_expect(fabs(got - alpha[i]) <= 4 * (double)b->m * u * alpha[i] &&
                      b->infos[i].halvings == halvings[i],
                  "%s %s m=%ld: alpha %.17g, expected %.17g; %d halvings, expected %d",
                  atn_inverse_name(desc->method), atn_dtype_name(b->x.view.dtype), (long)b->m, got,
                  alpha[i], b->infos[i].halvings, halvings[i]);
    }
}

static void check_newton(atn_context *context, batch *b, atn_inverse_method method,
                         const char *what, int fewest)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    int judged;
    if (method == ATN_INVERSE_NR)
        desc.alpha = 0.9 / pow(ref_norm1(b->m, b->values), 2);
    double ratio = follow_filter(context, b, desc, &judged);
    cr_expect(ref_judge(REF_ROUNDING, ratio) == REF_PASS && judged >= fewest,
              "%s %s %s m=%ld: ratio=%.3g, %d iterates judged", what, atn_inverse_name(method),
              atn_dtype_name(b->x.view.dtype), (long)b->m, ratio, judged);
    batch_run(context, b, &desc);
    check_start(b, &desc);
}

static void check_exact(atn_context *context, batch *b, atn_inverse_method method, const char *what)
{
    int64_t m = b->m;
    double *want = data_allocate(m * m), kappa, ratio;
    atn_status status = run_one(context, b, method);
    ref_symmetric_pinv(m, b->values, -1, want, NULL, NULL, NULL);
    ref_condition(m, m, b->values, &kappa, NULL);
    ref_difference difference = guarded_compare(&b->x, 0, 0, want);
    ref_verdict verdict =
        ref_judge_forward(&difference, kappa, m, atn_dtype_roundoff(b->x.view.dtype), &ratio);
    const atn_inverse_info *info = &b->infos[0];
    /* Rounding X alone may leave a residual of kappa u, which may be above the tolerance. */
    bool within =
        status == ATN_OK ||
        (status == ATN_SINGULAR && info->residual <= kappa * atn_dtype_roundoff(b->x.view.dtype));
    cr_expect(verdict == REF_SKIPPED || (within && verdict == REF_PASS),
              "%s %s %s m=%ld kappa=%.3g: %s ratio=%.3g", what, atn_inverse_name(method),
              atn_dtype_name(b->x.view.dtype), (long)m, kappa, atn_status_name(status), ratio);
    cr_expect(sound(b) && info->stop == ATN_STOP_DIRECT, "%s %s m=%ld: symmetry or stop", what,
              atn_inverse_name(method), (long)m);
    if (verdict != REF_SKIPPED && method != ATN_INVERSE_CHOLESKY)
        cr_expect_eq(info->rank, m, "%s %s: rank %ld of %ld", what, atn_inverse_name(method),
                     (long)info->rank, (long)m);
    free(want);
}

/* One of the Newton-Raphson variants or of the exact methods; test_inverse_polynomial.c has the
 * others. */
static void check_method(atn_context *context, batch *b, int method, const char *what, int fewest)
{
    data_round(b->a.view.dtype, b->m * b->m, b->values);
    if (newton_method((atn_inverse_method)method))
        check_newton(context, b, (atn_inverse_method)method, what, fewest);
    else
        check_exact(context, b, (atn_inverse_method)method, what);
}

/* At kappa m u near 0.1 or above, the bound ends before 20 steps, as it must. */
static int fewest_judged(atn_dtype dtype, double kappa, int64_t m)
{
    double loss = kappa * (double)(m * m) * atn_dtype_roundoff(dtype);
    return loss < 1e-4 ? 21 : loss < 1e-2 ? 12 : 4;
}

/* A method and its options. The adaptive rule has separate tests: it mostly finds no start. */
static bool method_is_judged_here(const int *v)
{
    return v[0] != ATN_INVERSE_NR_ADAPTIVE &&
           (newton_method((atn_inverse_method)v[0]) || !fixture_iterates(v[0]));
}

Test(inverse, prescribed_spectra)
{
    static const int64_t orders[] = {1, 2, 3, 5, 16, 17, 49};
    static const double kappas[] = {1e1, 1e2, 1e3, 1e4, 1e6, 1e8};
    static const int sizes[] = {ATN_INVERSE_COUNT, ATN_CPU_DTYPE_COUNT,
                                sizeof orders / sizeof *orders, sizeof kappas / sizeof *kappas, 2};
    atn_context *context = fixture_context(1, NULL);
    pairs chosen = pairs_make(5, sizes, method_is_judged_here);
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        int64_t m = orders[v[2]];
        double kappa = kappas[v[3]], lambda[64];
        batch b = batch_make((atn_dtype)v[1], v[4] ? GUARDED_HEADS : GUARDED_DENSE, 1, m);
        int mode = m < 3 ? 2 : 3 + v[3] % 2;
        char what[64];
        cr_assert_eq(latms_symmetric(m, mode, kappa, 7 + v[2], b.values, lambda), ATN_OK);
        snprintf(what, sizeof what, "kappa=%g", kappa);
        check_method(context, &b, v[0], what,
                     m == 1 ? 1 : fewest_judged((atn_dtype)v[1], kappa, m));
        batch_free(&b);
    }
    pairs_free(&chosen);
    atn_context_free(context);
}

/* The last row is of tokens in 6 dimensions. */
Test(inverse, kernel_matrices_and_known_matrices)
{
    static const struct {
        ref_matrix matrix;
        int64_t m;
        double value;
    } rows[] = {
        {REF_EQUICORRELATED, 9, 0.5}, {REF_EQUICORRELATED, 48, 0.9},
        {REF_CIRCULANT, 16, 2},       {REF_CIRCULANT, 49, 20},
        {REF_TORUS, 49, 1},           {REF_TWO, 2, 0.8},
        {REF_BLOCKS, 11, 0.7},        {REF_DUPLICATES, 12, 0.3},
        {REF_IDENTITY, 7, 0},
    };
    enum { ROWS = sizeof rows / sizeof *rows, M = 33 };
    static const int sizes[] = {ATN_INVERSE_COUNT, ATN_CPU_DTYPE_COUNT, ROWS + 1};
    atn_context *context = fixture_context(1, NULL);
    pairs chosen = pairs_make(3, sizes, method_is_judged_here);
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        bool kernel = v[2] == ROWS;
        batch b = batch_make((atn_dtype)v[1], GUARDED_DENSE, 1, kernel ? M : rows[v[2]].m);
        double tokens[M * 6];
        data_normal(3, M * 6, tokens);
        if (kernel)
            ref_gaussian(M, M, 6, tokens, tokens, 0.4, b.values);
        else
            cr_assert_eq(ref_matrix_make(rows[v[2]].matrix, b.m, rows[v[2]].value, b.values, NULL),
                         ATN_OK);
        check_method(context, &b, v[0], kernel ? "kernel" : ref_matrix_name(rows[v[2]].matrix),
                     kernel ? 4 : 1);
        batch_free(&b);
    }
    pairs_free(&chosen);
    atn_context_free(context);
}

/* A = I: alpha lambda^2 = 2 exactly, so X_1 = 2 X_0 - X_0^2 = 0. */
Test(inverse, the_identity_defeats_the_papers_start)
{
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
        batch b = batch_make((atn_dtype)dtype, GUARDED_HEADS, 1, 49);
        ref_matrix_make(REF_IDENTITY, 49, 0, b.values, NULL);
        cr_expect_eq(run_one(context, &b, ATN_INVERSE_NR_PAPER), ATN_NOT_CONVERGED);
        const atn_inverse_info *info = &b.infos[0];
        cr_expect(all_zero(&b, 0) && sound(&b), "X is not 0");
        cr_expect(info->status == ATN_NOT_CONVERGED && info->stop == ATN_STOP_ITERATIONS &&
                      info->iterations == 20 && info->alpha == 2 && info->residual == 1,
                  "alpha=%g residual=%g iterations=%d", info->alpha, info->residual,
                  info->iterations);
        cr_expect_eq(run_one(context, &b, ATN_INVERSE_NR_SOFTPP), ATN_NOT_CONVERGED);
        cr_expect(all_zero(&b, 0) && b.infos[0].halvings == 0,
                  "nr-softpp accepts I at once: %d halvings", b.infos[0].halvings);
        cr_expect_eq(run_one(context, &b, ATN_INVERSE_EIG), ATN_OK);
        cr_expect_eq(rayleigh_of_ones(&b, 0), 1);
        batch_free(&b);
    }
    atn_context_free(context);
}

/* Constant row sums: |A|_1 = lambda_max, so alpha lambda_max^2 = 2 and f_k(lambda_max) = 0. */
Test(inverse, the_leading_eigenvector_is_lost_and_1_8_repairs_it)
{
    static const struct {
        ref_matrix matrix;
        int64_t m;
        double value;
    } rows[] = {{REF_ONES, 49, 0}, {REF_CIRCULANT, 16, 2}, {REF_TORUS, 49, 1}};
    atn_context *context = fixture_context(2, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double lambda[64];
        batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, rows[i].m);
        ref_matrix_make(rows[i].matrix, rows[i].m, rows[i].value, b.values, lambda);
        cr_expect_eq(run_one(context, &b, ATN_INVERSE_NR_PAPER), ATN_NOT_CONVERGED);
        double lost = rayleigh_of_ones(&b, 0) * lambda[0];
        atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
        desc.numerator = 1.8;
        cr_expect(batch_run(context, &b, &desc) >= 0);
        double kept = rayleigh_of_ones(&b, 0) * lambda[0];
        cr_expect(fabs(lost) < 1e-3 && fabs(kept - 1) < 1e-10,
                  "%s: f(lambda_1) lambda_1 = %g under 2, %.12g under 1.8",
                  ref_matrix_name(rows[i].matrix), lost, kept);
        batch_free(&b);
    }
    atn_context_free(context);
}

/* |I - alpha A|_1 <= 1 needs a_ii >= the other |a_ij| together: |A|_1 <= 2 for unit diagonals. */
Test(inverse, adaptive_start)
{
    static const struct {
        double correlation;
        bool found;
    } rows[] = {{0, true},     {0.05, true}, {0.1, true},  {0.111, true},
                {0.12, false}, {0.5, false}, {0.99, false}};
    enum { M = 10 };
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            batch b = batch_make((atn_dtype)dtype, GUARDED_DENSE, 1, M);
            ref_matrix_make(REF_EQUICORRELATED, M, rows[i].correlation, b.values, NULL);
            atn_status status = run_one(context, &b, ATN_INVERSE_NR_ADAPTIVE);
            const atn_inverse_info *info = &b.infos[0];
            if (rows[i].found)
                cr_expect(
                    info->stop == ATN_STOP_ITERATIONS && info->iterations == 20 && info->alpha > 0,
                    "correlation %g: stop %s", rows[i].correlation, atn_stop_name(info->stop));
            else
                cr_expect(status == ATN_NOT_CONVERGED && info->stop == ATN_STOP_NO_ALPHA &&
                              all_zero(&b, 0) && sound(&b) && info->halvings == 10 &&
                              info->alpha == 0 && info->iterations == 0 && info->residual == 1,
                          "correlation %g: %s stop %s, %d halvings, alpha %g", rows[i].correlation,
                          atn_status_name(status), atn_stop_name(info->stop), info->halvings,
                          info->alpha);
            batch_free(&b);
        }
    atn_context_free(context);
}

/* Diagonally dominant, with unequal row sums: a start is found, and the iteration is compared with
 * the filter like the others. */
Test(inverse, adaptive_iterates)
{
    enum { M = 10 };
    atn_context *context = fixture_context(1, NULL);
    double noise[M];
    data_uniform(6, M, noise);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
        batch b = batch_make((atn_dtype)dtype, GUARDED_DENSE, 1, M);
        for (int i = 0; i < M * M; i++)
            b.values[i] = i % (M + 1) == 0 ? 1 : 0.1 * (noise[i / M] * noise[i % M]);
        data_round((atn_dtype)dtype, M * M, b.values);
        check_newton(context, &b, ATN_INVERSE_NR_ADAPTIVE, "dominant", 12);
        batch_free(&b);
    }
    atn_context_free(context);
}

/* A published n > 0 needs a_ii > 1: here alpha starts at 2/9 and |I - alpha A|_1 falls. */
Test(inverse, adaptive_start_halves_where_that_helps)
{
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, 2);
    double a[4] = {0x1p-3, 0, 0, 0x1p-10}; /* alpha = 128: |1 - 16|, then 7, 3, 1 */
    memcpy(b.values, a, sizeof a);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_ADAPTIVE);
    cr_expect(batch_run(context, &b, &desc) >= 0);
    check_start(&b, &desc);
    cr_expect(b.infos[0].halvings == 3 && b.infos[0].alpha == 16, "%d halvings, alpha %.17g",
              b.infos[0].halvings, b.infos[0].alpha);
    desc.search_cap = 2;
    cr_expect_eq(batch_run(context, &b, &desc), ATN_NOT_CONVERGED);
    cr_expect(b.infos[0].stop == ATN_STOP_NO_ALPHA, "the cap is the most halvings");
    desc.search_accepts_last = true;
    batch_run(context, &b, &desc);
    cr_expect(b.infos[0].halvings == 2 && b.infos[0].alpha == 32, "%d halvings, alpha %.17g",
              b.infos[0].halvings, b.infos[0].alpha);
    batch_free(&b);
    atn_context_free(context);
}

/* The same wherever the norm's largest column is. */
Test(inverse, adaptive_start_sees_every_column)
{
    enum { M = 70 };
    static const int places[] = {0, 1, 15, 16, 63, 64, 68, 69};
    atn_context *context = fixture_context(1, NULL);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_ADAPTIVE);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, M);
        memset(b.values, 0, M * M * sizeof *b.values);
        for (int j = 0; j < M; j++)
            b.values[j * (M + 1)] = j == places[i] ? 0x1p-3 : 0x1p-10;
        batch_run(context, &b, &desc);
        cr_expect(b.infos[0].halvings == 3 && b.infos[0].alpha == 16,
                  "column %d: %d halvings, alpha %.17g", places[i], b.infos[0].halvings,
                  b.infos[0].alpha);
        batch_free(&b);
    }
    atn_context_free(context);
}

Test(inverse, soft_code_inverts_the_shifted_matrix)
{
    enum { M = 20 };
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, M);
    double shifted[M * M], want[M * M], kappa, ratio;
    ref_matrix_make(REF_EQUICORRELATED, M, 0.6, b.values, NULL);
    cr_expect_eq(run_one(context, &b, ATN_INVERSE_NR_SOFT), ATN_OK);
    for (int i = 0; i < M * M; i++)
        shifted[i] = b.values[i] + (i % (M + 1) == 0 ? 0.01 : 0);
    ref_symmetric_pinv(M, shifted, -1, want, NULL, NULL, NULL);
    ref_condition(M, M, shifted, &kappa, NULL);
    ref_difference difference = guarded_compare(&b.x, 0, 0, want);
    cr_expect_eq(ref_judge_forward(&difference, kappa, M, 0x1p-53, &ratio), REF_PASS, "ratio=%.3g",
                 ratio);
    cr_expect(b.infos[0].residual < 1e-13, "residual is of A + 0.01 I: %g", b.infos[0].residual);
    batch_free(&b);
    atn_context_free(context);
}

/* Published SOFT++: correlated matrices need some halvings, never more than 8. */
Test(inverse, softpp_halvings)
{
    atn_context *context = fixture_context(2, NULL);
    static const int64_t sizes[] = {2, 4, 16, 49, 100};
    int most = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (double value = 0.05; value <= 1; value += 0.19) {
            batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, sizes[i]);
            ref_matrix_make(REF_EQUICORRELATED, sizes[i], value, b.values, NULL);
            atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_SOFTPP);
            batch_run(context, &b, &desc);
            check_start(&b, &desc);
            most = b.infos[0].halvings > most ? b.infos[0].halvings : most;
            batch_free(&b);
        }
    cr_expect(most >= 4 && most <= 8, "%d halvings", most);
    atn_context_free(context);
}

/* One alpha for the whole call, from its largest norm, or each its own. */
Test(inverse, batch_scope_couples_matrices)
{
    enum { M = 8 };
    atn_context *context = fixture_context(2, NULL);
    for (int scope = ATN_SCOPE_MATRIX; scope <= ATN_SCOPE_BATCH; scope++) {
        atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_SOFTPP);
        desc.scope = (atn_alpha_scope)scope;
        batch alone = batch_make(ATN_F64, GUARDED_HEADS, 1, M);
        batch both = batch_make(ATN_F64, GUARDED_HEADS, 2, M);
        ref_matrix_make(REF_EQUICORRELATED, M, 0.2, alone.values, NULL);
        memcpy(both.values, alone.values, M * M * sizeof(double));
        ref_matrix_make(REF_EQUICORRELATED, M, 0.95, both.values + M * M, NULL);
        batch_run(context, &alone, &desc);
        batch_run(context, &both, &desc);
        check_start(&alone, &desc);
        check_start(&both, &desc);
        bool same = alone.infos[0].alpha == both.infos[0].alpha;
        cr_expect(same == (scope == ATN_SCOPE_MATRIX), "scope %d: alpha %g alone, %g with another",
                  scope, alone.infos[0].alpha, both.infos[0].alpha);
        cr_expect((both.infos[0].alpha == both.infos[1].alpha) == (scope == ATN_SCOPE_BATCH));
        batch_free(&both);
        batch_free(&alone);
    }
    atn_context_free(context);
}

/* A start outside (0, 2 / lambda_max^2) diverges; X stays the last finite iterate. */
Test(inverse, a_large_alpha_diverges_to_a_finite_x)
{
    static const double alphas[] = {1, 3, 1e4, 1e30, 1e39, 1e300};
    enum { M = 6 };
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++) {
            batch b = batch_make((atn_dtype)dtype, GUARDED_DENSE, 1, M);
            ref_matrix_make(REF_EQUICORRELATED, M, 0.5, b.values, NULL);
            atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR);
            desc.alpha = alphas[i];
            desc.iterations = 60;
            atn_status status = batch_run(context, &b, &desc);
            int64_t nonfinite = 0;
            for (int64_t k = 0; k < M * M; k++)
                nonfinite += !isfinite(guarded_at(&b.x, 0, 0, k / M, k % M));
            const atn_inverse_info *info = &b.infos[0];
            cr_expect(status == ATN_NOT_CONVERGED && info->stop == ATN_STOP_NONFINITE &&
                          info->iterations < 60 && nonfinite == 0 && sound(&b),
                      "%s alpha=%g: %s stop %s after %d, %ld entries not finite",
                      atn_dtype_name((atn_dtype)dtype), alphas[i], atn_status_name(status),
                      atn_stop_name(info->stop), info->iterations, (long)nonfinite);
            batch_free(&b);
        }
    atn_context_free(context);
}

/* The published rules on matrices far from norm 1: alpha itself may leave the type's range. */
Test(inverse, tiny_and_huge_matrices_leave_a_finite_x)
{
    static const double sizes[] = {1e-40, 1e-30, 1e-20, 1e-10, 1e10, 1e20, 1e30};
    enum { M = 5 };
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int method = 1; method < ATN_INVERSE_COUNT; method++) {
            batch b = batch_make(ATN_F32, GUARDED_DENSE, 1, M);
            ref_matrix_make(REF_EQUICORRELATED, M, 0.5, b.values, NULL);
            for (int64_t k = 0; k < M * M; k++)
                b.values[k] *= sizes[i];
            atn_status status = run_one(context, &b, (atn_inverse_method)method);
            int64_t nonfinite = 0;
            for (int64_t k = 0; k < M * M; k++)
                nonfinite += !isfinite(guarded_at(&b.x, 0, 0, k / M, k % M));
            cr_expect(i > 0 || method < ATN_INVERSE_EIG ||
                          (b.infos[0].residual == 1 && guarded_at(&b.x, 0, 0, 0, 0) == 0),
                      "%s: 1/|A| is not an f32, residual %g",
                      atn_inverse_name((atn_inverse_method)method), b.infos[0].residual);
            cr_expect(status >= 0 && nonfinite == 0 && sound(&b) &&
                          (status != ATN_OK || b.infos[0].residual < 1e-2),
                      "%s, A = %g: %s, residual %g, %ld entries not finite",
                      atn_inverse_name((atn_inverse_method)method), sizes[i],
                      atn_status_name(status), b.infos[0].residual, (long)nonfinite);
            batch_free(&b);
        }
    atn_context_free(context);
}

/* |B X B - B|_F / |B|_F in long double, whose range holds squares of f64. */
static double residual_of(int64_t m, const double *b, const batch *of)
{
    long double sum = 0, norm = 0;
    for (int64_t i = 0; i < m * m; i++) {
        long double entry = -(long double)b[i];
        for (int64_t j = 0; j < m; j++)
            for (int64_t k = 0; k < m; k++)
                entry += (long double)b[i / m * m + j] * guarded_at(&of->x, 0, 0, j, k) *
                         b[k * m + i % m];
        sum += entry * entry;
        norm += (long double)b[i] * b[i];
    }
    return (double)sqrtl(sum / norm);
}

/* Squares of B's entries under- and overflow in f64: the status of X is right nevertheless, and no
 * X far from an inverse passes. Three terms of a sum have at most 8 u of their sizes, twice. */
Test(inverse, residuals_of_tiny_and_huge_matrices)
{
    enum { M = 3 };
    static const double sizes[] = {1e-300, 1e-200, 1e-161, 1e-155, 1e155, 1e200, 1e300};
    static const double shape[M * M] = {1, 0.5, 0, 0.5, 1, 0.25, 0, 0.25, 1};
    atn_context *context = fixture_context(1, NULL);
    for (int method = 0; method < ATN_INVERSE_COUNT; method++)
        for (int i = 0; i < 14; i++) {
            double size = sizes[i / 2], shifted[M * M], tolerance = sqrt(0x1p-53);
            batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, M);
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            desc.alpha = method == ATN_INVERSE_NR ? 1 / size / size : 0;
            desc.alpha = desc.alpha > 0 && desc.alpha <= DBL_MAX ? desc.alpha : 0;
            if (method == ATN_INVERSE_NR && desc.alpha == 0)
                desc.alpha = 1;
            desc.iterations = i % 2 ? desc.iterations : 0;
            for (int j = 0; j < M * M; j++)
                b.values[j] = size * shape[j];
            for (int j = 0; j < M * M; j++)
                shifted[j] = b.values[j] + (j % (M + 1) == 0 ? desc.ridge : 0);
            atn_status status = batch_run(context, &b, &desc);
            double want = residual_of(M, shifted, &b), got = b.infos[0].residual;
            bool overflows = want > 1e100; /* so does B X */
            cr_expect((overflows || fabs(got - want) <= 16 * 0x1p-53 * (1 + want)) &&
                          (status == ATN_OK) == (want <= tolerance),
                      "%s %g, T = %d: %s with residual %g, expected %g",
                      atn_inverse_name((atn_inverse_method)method), size, desc.iterations,
                      atn_status_name(status), got, want);
            batch_free(&b);
        }
    atn_context_free(context);
}

/* No steps: X_0 = alpha A, and the fields that need a step are 0. */
Test(inverse, no_iterations)
{
    enum { M = 4 };
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, M);
    ref_matrix_make(REF_EQUICORRELATED, M, 0.5, b.values, NULL);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    desc.iterations = 0;
    cr_expect_eq(batch_run(context, &b, &desc), ATN_NOT_CONVERGED);
    const atn_inverse_info *info = &b.infos[0];
    for (int64_t i = 0; i < M * M; i++)
        cr_expect_eq(guarded_at(&b.x, 0, 0, i / M, i % M), info->alpha * b.values[i]);
    cr_expect(info->iterations == 0 && info->returned == 0 && info->last_update == 0 &&
              info->best_update == 0 && info->best_iteration == 0 &&
              info->stop == ATN_STOP_ITERATIONS);
    batch_free(&b);
    atn_context_free(context);
}

/* The fields of the info, recomputed from iterates got by running with fewer steps. */
Test(inverse, info_fields)
{
    enum { M = 12, T = 20 };
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, M);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    double lambda[M], previous[M * M], x[M * M], best = INFINITY, update = 0;
    int best_iteration = 0;
    latms_symmetric(M, 3, 50, 4, b.values, lambda);
    for (int k = 0; k <= T; k++) {
        desc.iterations = k;
        batch_run(context, &b, &desc);
        guarded_get(&b.x, x);
        ref_difference difference = ref_compare_f64(M, M, previous, M, x, M);
        update = difference.relative_frobenius;
        cr_expect(k == 0 || fabs(b.infos[0].last_update - update) <= 1e-6 * update + 1e-13,
                  "k=%d: last_update %g, %g", k, b.infos[0].last_update, update);
        if (k > 0 && update < best) {
            best = update;
            best_iteration = k;
        }
        memcpy(previous, x, sizeof x);
    }
    const atn_inverse_info *info = &b.infos[0];
    cr_expect(fabs(info->best_update - best) <= 1e-15 + 1e-3 * best, "best_update %g, %g",
              info->best_update, best);
    cr_expect(info->best_iteration == best_iteration, "best_iteration %d, %d", info->best_iteration,
              best_iteration);
    double residual = 0, norm = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            double sum = -b.values[i * M + j];
            for (int k = 0; k < M; k++)
                for (int l = 0; l < M; l++)
                    sum += b.values[i * M + k] * x[k * M + l] * b.values[l * M + j];
            residual += sum * sum;
            norm += b.values[i * M + j] * b.values[i * M + j];
        }
    residual = sqrt(residual / norm);
    cr_expect(fabs(info->residual - residual) <= 1e-14, "residual %g, %g", info->residual,
              residual);
    cr_expect_eq(info->rank, 0);
    cr_expect_eq(info->jitter, 0);
    batch_free(&b);
    atn_context_free(context);
}

/* Tolerance decides between ATN_OK and ATN_NOT_CONVERGED, nothing else. */
Test(inverse, tolerance)
{
    enum { M = 10 };
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, M);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    double lambda[M];
    latms_symmetric(M, 3, 100, 4, b.values, lambda);
    desc.iterations = 10;
    batch_run(context, &b, &desc);
    double residual = b.infos[0].residual;
    cr_assert(residual > 1e-12 && residual < 1);
    desc.tolerance = residual * 1.001;
    cr_expect_eq(batch_run(context, &b, &desc), ATN_OK);
    desc.tolerance = residual * 0.999;
    cr_expect_eq(batch_run(context, &b, &desc), ATN_NOT_CONVERGED);
    desc.tolerance = 0;
    cr_expect_eq(batch_run(context, &b, &desc), ATN_NOT_CONVERGED);
    batch_free(&b);
    atn_context_free(context);
}

/* Rank r by a product of tall matrices; eig and pivoted-cholesky find it. */
Test(inverse, rank_deficient)
{
    enum { M = 20 };
    static const int64_t ranks[] = {1, 2, 7, 19};
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
            batch b = batch_make((atn_dtype)dtype, GUARDED_DENSE, 1, M);
            double g[M * M], want[M * M];
            int64_t r = ranks[i];
            data_normal(40 + (uint64_t)i, M * r, g);
            for (int64_t k = 0; k < M * r; k++)
                g[k] = round(8 * g[k]) / 8; /* so that A is exact in f32 as well */
            for (int64_t k = 0; k < M * M; k++)
                for (int64_t c = 0; c < r; c++)
                    b.values[k] += g[k / M * r + c] * g[k % M * r + c];
            for (int method = ATN_INVERSE_EIG; method < ATN_INVERSE_COUNT; method++) {
                if (method == ATN_INVERSE_CHOLESKY)
                    continue;
                atn_status status = run_one(context, &b, (atn_inverse_method)method);
                cr_expect(status == ATN_OK && b.infos[0].rank == r && sound(&b) &&
                              b.infos[0].residual < 1e4 * atn_dtype_roundoff((atn_dtype)dtype),
                          "%s %s: %s rank %ld, expected %ld, residual %g",
                          atn_inverse_name((atn_inverse_method)method),
                          atn_dtype_name((atn_dtype)dtype), atn_status_name(status),
                          (long)b.infos[0].rank, (long)r, b.infos[0].residual);
            }
            run_one(context, &b, ATN_INVERSE_EIG);
            ref_symmetric_pinv(M, b.values, 1e-6, want, NULL, NULL, NULL);
            ref_difference difference = guarded_compare(&b.x, 0, 0, want);
            cr_expect(difference.relative_frobenius < 1e5 * atn_dtype_roundoff((atn_dtype)dtype),
                      "eig of rank %ld: relative error %g", (long)r, difference.relative_frobenius);
            batch_free(&b);
        }
    atn_context_free(context);
}

/* rcond is relative to the largest eigenvalue; below 0 it is m u, and 0 keeps all that is not 0. */
Test(inverse, rcond)
{
    enum { M = 5 };
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, M);
    for (int i = 0; i < M; i++)
        b.values[i * M + i] = i < 4 ? 5 * pow(10, -i) : 5e-20;
    static const struct {
        double rcond;
        int64_t rank;
    } rows[] = {{-1, 4}, {0, 5}, {5e-3, 3}, {0.05, 2}, {0.5, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int method = ATN_INVERSE_EIG; method < ATN_INVERSE_COUNT; method++) {
            if (method == ATN_INVERSE_CHOLESKY)
                continue;
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            desc.rcond = rows[i].rcond;
            batch_run(context, &b, &desc);
            cr_expect_eq(b.infos[0].rank, rows[i].rank, "%s rcond=%g: rank %ld",
                         atn_inverse_name((atn_inverse_method)method), desc.rcond,
                         (long)b.infos[0].rank);
            for (int k = 0; k < M; k++) {
                double want = k < rows[i].rank ? 1 / b.values[k * M + k] : 0;
                double got = guarded_at(&b.x, 0, 0, k, k);
                cr_expect(fabs(got - want) <= 1e-14 * want, "rcond=%g: x_%d = %g", desc.rcond, k,
                          got);
            }
        }
    batch_free(&b);
    atn_context_free(context);
}

Test(inverse, eig_keeps_negative_eigenvalues)
{
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, 2);
    b.values[0] = b.values[3] = 1;
    b.values[1] = b.values[2] = 2; /* eigenvalues 3, -1 */
    cr_expect_eq(run_one(context, &b, ATN_INVERSE_EIG), ATN_OK);
    cr_expect(b.infos[0].rank == 2 && fabs(guarded_at(&b.x, 0, 0, 0, 0) + 1.0 / 3) < 1e-15 &&
              fabs(guarded_at(&b.x, 0, 0, 0, 1) - 2.0 / 3) < 1e-15);
    batch_free(&b);
    atn_context_free(context);
}

/* Jitter: as given, or from u sqrt(m) |A|_1 tenfold until the factorisation succeeds. */
Test(inverse, cholesky_jitter)
{
    enum { M = 16 };
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, M);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_CHOLESKY);
    double start = 0x1p-53 * 4 * M;
    ref_matrix_make(REF_ONES, M, 0, b.values, NULL);
    cr_expect_eq(batch_run(context, &b, &desc), ATN_SINGULAR, "ones");
    cr_expect(b.infos[0].residual > 1e-8, "residual %g", b.infos[0].residual);
    double tenfold = log10(b.infos[0].jitter / start);
    cr_expect(fabs(tenfold - round(tenfold)) < 1e-9 && tenfold > -0.5, "jitter %g",
              b.infos[0].jitter);
    desc.jitter = 0.5;
    cr_expect_eq(batch_run(context, &b, &desc), ATN_OK);
    cr_expect_eq(b.infos[0].jitter, 0.5 * M);
    /* (1 1^T + 8 I)^-1 = (I - 1 1^T / 24) / 8 */
    cr_expect(fabs(guarded_at(&b.x, 0, 0, 0, 0) - (1 - 1.0 / 24) / 8) < 1e-15 &&
              fabs(guarded_at(&b.x, 0, 0, 3, 1) + 1.0 / 192) < 1e-15);
    /* eigenvalue -1 of |A|_1 = 1 (the rest is I): jitter of 0.44 fails, ten times as much does not
     */
    desc.jitter = -1;
    for (int i = 0; i < M * M; i++)
        b.values[i] = i == 1 || i == M || (i % (M + 1) == 0 && i > M + 1);
    cr_expect_eq(batch_run(context, &b, &desc), ATN_SINGULAR, "indefinite");
    cr_expect(!all_zero(&b, 0) && fabs(b.infos[0].jitter - 1e16 * start / M) < 1e-9, "jitter %g",
              b.infos[0].jitter);
    desc.jitter = 0;
    ref_matrix_make(REF_ONES, M, 0, b.values, NULL);
    b.values[0] = -1;
    cr_expect_eq(batch_run(context, &b, &desc), ATN_SINGULAR, "indefinite, no jitter");
    cr_expect(all_zero(&b, 0) && sound(&b) && b.infos[0].residual == 1);
    batch_free(&b);
    atn_context_free(context);
}

/* An exact method reports an X that is not an inverse: Cholesky cannot factorise indefinite
 * matrices. */
Test(inverse, exact_methods_are_judged_too)
{
    static const double matrices[][4] = {{0, 1, 1, 0}, {1, 2, 2, 1}};
    static const atn_inverse_method methods[] = {ATN_INVERSE_CHOLESKY,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY};
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int i = 0; i < 4; i++) {
            batch b = batch_make((atn_dtype)dtype, GUARDED_DENSE, 1, 2);
            for (int k = 0; k < 4; k++)
                b.values[k] = matrices[i / 2][k];
            atn_status status = run_one(context, &b, methods[i % 2]);
            cr_expect(status == ATN_SINGULAR && sound(&b), "%s of matrix %d: %s, residual %g",
                      atn_inverse_name(methods[i % 2]), i / 2, atn_status_name(status),
                      b.infos[0].residual);
            status = run_one(context, &b, ATN_INVERSE_EIG);
            cr_expect_eq(status, ATN_OK, "eig of matrix %d: %s", i / 2, atn_status_name(status));
            batch_free(&b);
        }
    atn_context_free(context);
}

Test(inverse, the_zero_matrix)
{
    static const atn_status want[ATN_INVERSE_COUNT] = {
        [ATN_INVERSE_CHOLESKY] = ATN_SINGULAR, [ATN_INVERSE_PIVOTED_CHOLESKY] = ATN_SINGULAR};
    enum { M = 5 };
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int method = 1; method < ATN_INVERSE_COUNT; method++) {
            if (method == ATN_INVERSE_NR_SOFT || method == ATN_INVERSE_NR_ADAPTIVE)
                continue;
            batch b = batch_make((atn_dtype)dtype, GUARDED_DENSE, 1, M);
            atn_status status = run_one(context, &b, (atn_inverse_method)method);
            cr_expect(status == want[method] && all_zero(&b, 0) && sound(&b) &&
                          b.infos[0].status == status && b.infos[0].rank == 0 &&
                          b.infos[0].best_iteration <= 1,
                      "%s: %s", atn_inverse_name((atn_inverse_method)method),
                      atn_status_name(status));
            batch_free(&b);
        }
    atn_context_free(context);
}

/* Exact duplicates among the landmarks: A is singular. eig and pivoted-cholesky handle that; the
 * explicit inverse by Cholesky contains 1 / jitter, and the residual that rounding leaves decides
 * its status.
 */
Test(inverse, duplicates)
{
    enum { M = 12 };
    atn_context *context = fixture_context(1, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
        batch b = batch_make((atn_dtype)dtype, GUARDED_DENSE, 1, M);
        ref_matrix_make(REF_DUPLICATES, M, 0, b.values, NULL);
        for (int method = ATN_INVERSE_EIG; method < ATN_INVERSE_COUNT; method++) {
            atn_status status = run_one(context, &b, (atn_inverse_method)method);
            bool ranked = method != ATN_INVERSE_CHOLESKY;
            bool close = b.infos[0].residual <= sqrt(atn_dtype_roundoff((atn_dtype)dtype));
            cr_expect(status == (ranked || close ? ATN_OK : ATN_SINGULAR) &&
                          (!ranked || b.infos[0].rank == M - 1) && sound(&b),
                      "%s: %s rank %ld", atn_inverse_name((atn_inverse_method)method),
                      atn_status_name(status), (long)b.infos[0].rank);
        }
        batch_free(&b);
    }
    atn_context_free(context);
}

/* A NaN or infinity affects its own matrix and no other. */
Test(inverse, nonfinite_input)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    enum { M = 6 };
    atn_context *context = fixture_context(2, NULL);
    double noise[3 * M * M];
    data_uniform(4, 3 * M * M, noise);
    for (size_t i = 0; i < 3; i++)
        for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
            for (int method = 1; method < ATN_INVERSE_COUNT; method++) {
                batch b = batch_make((atn_dtype)dtype, GUARDED_HEADS, 3, M);
                for (int64_t k = 0; k < 3 * M * M; k++) /* every method inverts I + a little */
                    b.values[k] =
                        k % (M * M) % (M + 1) == 0
                            ? 1
                            : 0.05 * (noise[k] +
                                      noise[k / (M * M) * M * M + k % M * M + k % (M * M) / M]);
                b.values[M * M + 1] = b.values[M * M + M] = bad[i];
                atn_status status = run_one(context, &b, (atn_inverse_method)method);
                cr_expect(status == ATN_NONFINITE && b.infos[1].status == ATN_NONFINITE &&
                              isnan(b.infos[1].residual) && all_zero(&b, 1) && sound(&b) &&
                              b.infos[0].status == ATN_OK && b.infos[2].status == ATN_OK &&
                              !all_zero(&b, 0) && !all_zero(&b, 2),
                          "%s %s with %g: %s, neighbours %s %s",
                          atn_inverse_name((atn_inverse_method)method),
                          atn_dtype_name((atn_dtype)dtype), bad[i], atn_status_name(status),
                          atn_status_name(b.infos[0].status), atn_status_name(b.infos[2].status));
                batch_free(&b);
            }
    atn_context_free(context);
}

/* A batch starts where all of its matrices that are finite can, whatever the others hold. */
Test(inverse, nonfinite_matrices_have_no_say_in_a_batchs_start)
{
    static const double bad[] = {NAN, INFINITY};
    enum { M = 3 };
    atn_context *context = fixture_context(2, NULL);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_ADAPTIVE);
    desc.scope = ATN_SCOPE_BATCH;
    for (int square = 0; square < 2; square++)
        for (size_t i = 0; i < 2; i++) {
            batch b = batch_make(ATN_F64, GUARDED_HEADS, 3, M);
            desc.search = square ? ATN_SEARCH_SQUARE : ATN_SEARCH_MATRIX;
            for (int k = 0; k < 3 * M; k++)
                b.values[k / M * M * M + k % M * (M + 1)] = k < M ? 0.25 : 0.5;
            b.values[M * M] = bad[i];
            batch_run(context, &b, &desc);
            for (int k = 0; k < 3; k += 2) /* of 2/0.5^2 */
                cr_expect(b.infos[k].halvings == (square ? 0 : 1) &&
                              b.infos[k].alpha == (square ? 8 : 4),
                          "A%s with %g: %d halvings, alpha %g", square ? "^2" : "", bad[i],
                          b.infos[k].halvings, b.infos[k].alpha);
            batch_free(&b);
        }
    atn_context_free(context);
}

Test(inverse, empty_and_one)
{
    atn_context *context = fixture_context(2, NULL);
    for (int method = 0; method < ATN_INVERSE_COUNT; method++) {
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        desc.alpha = method == ATN_INVERSE_NR ? 0.25 : 0;
        atn_inverse_info info[2];
        memset(info, 0xff, sizeof info);
        atn_tensor none = atn_tensor_dense(NULL, ATN_F64, 1, 2, 0, 0), no_heads = none;
        cr_expect_eq(atn_inverse(context, &desc, &none, &none, info, NULL), ATN_OK);
        cr_expect(info[0].status == ATN_OK && info[1].iterations == 0, "0 x 0 infos are cleared");
        no_heads.heads = 0;
        cr_expect_eq(atn_inverse(context, &desc, &no_heads, &no_heads, NULL, NULL), ATN_OK);
        batch b = batch_make(ATN_F64, GUARDED_DENSE, 1, 1);
        b.values[0] = 1.5;
        atn_status status = batch_run(context, &b, &desc);
        double x = guarded_at(&b.x, 0, 0, 0, 0), ridge = desc.ridge;
        bool lost = method == ATN_INVERSE_NR_PAPER || method == ATN_INVERSE_NR_SOFTPP;
        if (method == ATN_INVERSE_NR_ADAPTIVE) /* |1 - 2/1.5| <= 1: n = 0, alpha l^2 = 2 */
            lost = true;
        cr_expect(lost ? fabs(x) < 1e-3 && status == ATN_NOT_CONVERGED
                       : fabs(x - 1 / (1.5 + ridge)) < 1e-15 && status == ATN_OK,
                  "%s of 1.5: %.17g (%s)", atn_inverse_name((atn_inverse_method)method), x,
                  atn_status_name(status));
        batch_free(&b);
    }
    atn_context_free(context);
}

/* Whichever thread finds which first. */
Test(inverse, the_first_asymmetric_matrix_is_named)
{
    enum { M = 2, MATRICES = 6 };
    atn_context *context = fixture_context(2, NULL);
    batch b = batch_make(ATN_F64, GUARDED_HEADS, MATRICES, M);
    for (int i = 0; i < MATRICES * M * M; i++)
        b.values[i] = i % 4 == 0 || i % 4 == 3;
    b.values[2 * M * M + 1] = b.values[4 * M * M + 2] = 0.5;
    cr_expect_eq(run_one(context, &b, ATN_INVERSE_CHOLESKY), ATN_ERR_VALUE);
    cr_expect(strstr(atn_last_error(context), "(0, 2) is not symmetric"), "%s",
              atn_last_error(context));
    batch_free(&b);
    atn_context_free(context);
}

/* The call's status is the worst of its matrices', and infos say which. */
Test(inverse, the_worst_status_wins)
{
    enum { M = 4 };
    atn_context *context = fixture_context(2, NULL);
    batch b = batch_make(ATN_F64, GUARDED_HEADS, 2, M);
    ref_matrix_make(REF_EQUICORRELATED, M, 0.5, b.values, NULL);
    cr_expect_eq(run_one(context, &b, ATN_INVERSE_CHOLESKY), ATN_SINGULAR);
    cr_expect(b.infos[0].status == ATN_OK && b.infos[1].status == ATN_SINGULAR);
    cr_expect(!all_zero(&b, 0) && all_zero(&b, 1));
    batch_free(&b);
    for (int first = 0; first < 2; first++) { /* ones, not converged, and a NaN in either order */
        batch c = batch_make(ATN_F64, GUARDED_HEADS, 2, M);
        ref_matrix_make(REF_ONES, M, 0, c.values, NULL);
        ref_matrix_make(REF_ONES, M, 0, c.values + M * M, NULL);
        c.values[first * M * M] = NAN;
        cr_expect_eq(run_one(context, &c, ATN_INVERSE_NR_PAPER), ATN_NONFINITE, "%d", first);
        cr_expect_eq(c.infos[1 - first].status, ATN_NOT_CONVERGED);
        batch_free(&c);
    }
    atn_context_free(context);
}

Test(inverse, names_and_published_constants)
{
    static const struct {
        const char *name;
        int iterations;
    } rows[] = {
        {"nr", 20},          {"nr-paper", 20},      {"nr-adaptive", 20},  {"nr-soft", 20},
        {"nr-softpp", 20},   {"newton-schulz", 20}, {"hyperpower-3", 13}, {"hyperpower-7", 8},
        {"hyperpower-9", 7}, {"nystromformer", 6},  {"chebyshev-2", 20},  {"chebyshev-3", 13},
        {"chebyshev-9", 7},  {"eig", 20},           {"cholesky", 20},     {"pivoted-cholesky", 20},
    };
    for (int i = 0; i < ATN_INVERSE_COUNT; i++) {
        cr_expect_str_eq(atn_inverse_name((atn_inverse_method)i), rows[i].name);
        cr_expect_not_null(atn_inverse_description((atn_inverse_method)i));
        cr_expect_eq(atn_inverse_defaults((atn_inverse_method)i).iterations, rows[i].iterations);
    }
    cr_expect_null(atn_inverse_name(ATN_INVERSE_COUNT));
    cr_expect_null(atn_inverse_description((atn_inverse_method)-1));
    static const char *const stops[] = {"iterations", "no-alpha", "nonfinite",
                                        "direct",     "rounding", "diverged"};
    for (int i = 0; i < ATN_STOP_COUNT; i++)
        cr_expect_str_eq(atn_stop_name((atn_stop)i), stops[i]);
    cr_expect_null(atn_stop_name(ATN_STOP_COUNT));
    atn_inverse_desc soft = atn_inverse_defaults(ATN_INVERSE_NR_SOFT);
    cr_expect(soft.numerator == 1.8 && soft.ridge == 0.01 && soft.search == ATN_SEARCH_NONE);
    atn_inverse_desc softpp = atn_inverse_defaults(ATN_INVERSE_NR_SOFTPP);
    cr_expect(softpp.numerator == 2 && softpp.search_limit == 1.01 && softpp.search_cap == 10 &&
              softpp.search == ATN_SEARCH_SQUARE && softpp.scope == ATN_SCOPE_BATCH &&
              softpp.search_accepts_last && softpp.ridge == 0);
    atn_inverse_desc adaptive = atn_inverse_defaults(ATN_INVERSE_NR_ADAPTIVE);
    cr_expect(adaptive.search == ATN_SEARCH_MATRIX && adaptive.search_limit == 1 &&
              !adaptive.search_accepts_last && adaptive.scope == ATN_SCOPE_MATRIX);
}
