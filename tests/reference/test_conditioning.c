/* SPDX-License-Identifier: BSD-3-Clause */
/* How much operators magnify rounding: against cases that can be worked out by hand, and against
 * the references' own derivatives; and the verdicts that follow. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conditioning.h"
#include "data.h"
#include "soft.h"

static attention_case make_case(atn_operator op, int variant, int64_t n, int64_t d, uint64_t seed)
{
    attention_choice choice = {.op = op,
                               .variant = variant,
                               .dtype = ATN_F64,
                               .shape = {1, 1, n, d, d, 0},
                               .sampling = ATN_SAMPLING_POOL,
                               .seed = seed};
    return attention_case_make(&choice);
}

static double *expect(const attention_case *c)
{
    double *want = data_allocate(attention_case_outputs(c));
    ref_attention_problem problem = attention_case_problem(c);
    cr_assert_geq(ref_attention(&problem, want), 0);
    return want;
}

static double condition(const attention_case *c, int directions)
{
    double kappa = NAN, *want = expect(c);
    ref_attention_conditions(c, want, directions, &kappa);
    free(want);
    return kappa;
}

/* One token of width 1. Y = v where weights are averaged, so |dY|/|Y| = 1; q k v = q^2 v changes
 * by +-2 +- 1, of which 16 directions find 3; q/|q| (k v/|k v|) does not change at all. */
Test(conditioning, of_one_number)
{
    static const struct {
        atn_operator op;
        const char *variant;
        double kappa;
    } rows[] = {{ATN_SOFTMAX, "attention", 2}, {ATN_GAUSSIAN, "exact", 2},
                {ATN_SIMA, "none", 4},         {ATN_XNORM, "paper", 1},
                {ATN_ELU, "stable", 2},        {ATN_LSH, "reformer", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const atn_operator_info *info = atn_operator_get(rows[i].op);
        int variant = 0;
        while (strcmp(info->variants[variant].name, rows[i].variant) != 0)
            variant++;
        attention_case c = make_case(rows[i].op, variant, 1, 1, 5);
        double kappa = condition(&c, 16);
        cr_expect(fabs(kappa - rows[i].kappa) < 1e-3, "%s/%s: %.9g, expected %g", info->name,
                  rows[i].variant, kappa, rows[i].kappa);
        attention_case_free(&c);
    }
}

/* Y = gamma^2 q/|q| (k v/|k v|): of one token the signs, which no change reaches. */
Test(conditioning, of_a_parameter)
{
    attention_choice choice = {.op = ATN_XNORM,
                               .dtype = ATN_F64,
                               .shape = {1, 1, 1, 1, 1, 0},
                               .optional = true,
                               .seed = 5};
    attention_case c = attention_case_make(&choice);
    double kappa = condition(&c, 2);
    cr_expect(fabs(kappa - 3) < 1e-3, "%.9g, expected 3", kappa);
    attention_case_free(&c);
}

/* The norm of the derivative along q and v with random signs, relative to the output. */
static double derivative_condition(const attention_case *c, uint64_t seed)
{
    int64_t count = attention_case_queries(c), outputs = attention_case_outputs(c);
    double *want = expect(c), *q = data_allocate(count), *v = data_allocate(count);
    double *change = data_allocate(outputs), norm = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        q[i] = data_next(&seed) & 1 ? c->q[i] : -c->q[i];
        v[i] = data_next(&seed) & 1 ? c->v[i] : -c->v[i];
    }
    ref_attention_problem problem = attention_case_problem(c);
    ref_attention_arrays direction = {.q = q, .v = v};
    cr_assert_geq(ref_attention_derivative(&problem, &direction, change), 0);
    for (int64_t i = 0; i < outputs; i++) {
        norm += change[i] * change[i];
        size += want[i] * want[i];
    }
    free(change), free(v), free(q), free(want);
    return 1 + sqrt(norm / size);
}

/* Directions are random: of 4 the largest, and with 256 numbers or more they differ little. */
Test(conditioning, is_the_derivative_by_differences)
{
    static const atn_operator ops[] = {ATN_GAUSSIAN,  ATN_SOFTMAX,   ATN_SIMA, ATN_XNORM,
                                       ATN_PERFORMER, ATN_RFF,       ATN_XCA,  ATN_EFFICIENT,
                                       ATN_ELU,       ATN_COSFORMER, ATN_LSH};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        attention_case c = make_case(ops[i], 0, 36, 8, 3);
        double kappa = condition(&c, 4), derivative = 1;
        for (uint64_t seed = 1; seed <= 4; seed++)
            derivative = fmax(derivative, derivative_condition(&c, seed));
        cr_expect(kappa > 1 && kappa < 1.5 * derivative && derivative < 1.5 * kappa,
                  "%s: %.4g by differences, %.4g by the derivative", atn_operator_get(ops[i])->name,
                  kappa, derivative);
        attention_case_free(&c);
    }
}

/* Twice the same token under an exact inverse: A is singular, any change makes it regular. */
Test(conditioning, of_what_has_no_limit_is_infinite)
{
    attention_case c = make_case(ATN_SOFT, 0, 36, 4, 7);
    for (int64_t i = 0; i < 36 * 4; i++)
        c.q[i] = 1;
    double kappa = condition(&c, 1);
    cr_expect(kappa > 1e12, "%g", kappa);
    attention_case_free(&c);
}

/* [[1, c], [c, 1]]: (1 + c) / (1 - c). */
Test(conditioning, of_inverses)
{
    double a[4] = {1, 0.6, 0.6, 1};
    atn_inverse_desc exact = atn_inverse_defaults(ATN_INVERSE_PIVOTED_CHOLESKY);
    atn_inverse_desc paper = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    double kappa = ref_inverse_condition(&exact, 2, a, 0);
    cr_expect(fabs(kappa - 4) < 1e-12, "%.17g", kappa);
    /* far from the edge, and converged: f = 1/mu, whose relative change is cond(A) at most */
    kappa = ref_inverse_condition(&paper, 2, a, 1 / (1.6 * 1.6));
    cr_expect(fabs(kappa - 4) < 1e-3, "%.17g", kappa);
    /* 2 / |A|_1^2 with equal row sums is the edge itself: r = -1, mu f' = 2 alpha mu^2 2^20 / mu
     * at mu = 1.6, times 1.6, over the other mode's f = 1/0.4: 2^20 */
    kappa = ref_inverse_condition(&paper, 2, a, 2 / (1.6 * 1.6));
    cr_expect(fabs(kappa / 0x1p20 - 1) < 1e-3, "%.17g", kappa);
    /* one step from 1 / 1.6^2: mu f' + f at mu = 0.4, times 1.6 / 0.4, over f = 1/1.6 at 1.6 */
    paper.iterations = 1;
    kappa = ref_inverse_condition(&paper, 2, a, 1 / (1.6 * 1.6));
    cr_expect(fabs(kappa - 5.6875) < 1e-12, "%.17g", kappa);
    /* f = alpha (2 - alpha mu): |mu f'| + f = 2 alpha at mu = 0.4, times 1.6 / 0.4, over f there */
    atn_inverse_desc schulz = atn_inverse_defaults(ATN_INVERSE_NEWTON_SCHULZ);
    schulz.alpha = 0.5, schulz.iterations = 1;
    kappa = ref_inverse_condition(&schulz, 2, a, 0);
    cr_expect(fabs(kappa - 4 / 0.9) < 1e-5, "%.17g", kappa);
}

/* The bottlenecks against definitions from elsewhere. */
Test(conditioning, bottlenecks_are_those_of_the_operators)
{
    enum { N = 36, D = 4, M = 4 };
    double landmarks[M * D], want[M * M], a[M * M], alpha = 0;
    attention_case c = make_case(ATN_SOFT, 0, N, D, 2);
    ref_attention_problem problem = attention_case_problem(&c);
    int64_t k = c.reference.sampling.stride;
    cr_assert_eq(k, 3, "6 x 6 tokens in windows of %ld", (long)k);
    cr_assert_eq(ref_attention_bottlenecks(&problem, NULL, NULL), M);
    cr_assert_eq(ref_attention_bottlenecks(&problem, a, &alpha), M);
    ref_pool(6, 6, D, 3, c.q, landmarks);
    ref_gaussian(M, M, D, landmarks, landmarks, 1 / (2 * sqrt(D)), want);
    for (int i = 0; i < M * M; i++)
        cr_expect(fabs(a[i] - want[i]) < 1e-15, "%d: %.17g, expected %.17g", i, a[i], want[i]);
    double largest = 0;
    for (int j = 0; j < M; j++) {
        double sum = 0;
        for (int i = 0; i < M; i++)
            sum += want[i * M + j];
        largest = fmax(largest, sum);
    }
    cr_expect(fabs(alpha * largest * largest - 2) < 1e-14, "alpha %.17g", alpha);
    attention_case_free(&c);
    c = make_case(ATN_NYSTROMFORMER, 2, N, D, 2);
    problem = attention_case_problem(&c);
    cr_assert_eq(ref_attention_bottlenecks(&problem, a, NULL), M);
    for (int i = 0; i < M; i++) {
        double sum = 0;
        for (int j = 0; j < M; j++) {
            want[i * M + j] = 0;
            for (int p = 0; p < D; p++) { /* means of 9 tokens */
                double x = 0, y = 0;
                for (int t = 0; t < 9; t++) {
                    x += c.q[(9 * i + t) * D + p] / 9;
                    y += c.q[(9 * j + t) * D + p] / 9;
                }
                want[i * M + j] += x * y / sqrt(D);
            }
            sum += want[i * M + j] = exp(want[i * M + j]);
        }
        for (int j = 0; j < M; j++)
            cr_expect(fabs(a[i * M + j] - want[i * M + j] / sum) < 1e-15, "%d %d", i, j);
    }
    attention_case_free(&c);
    c = make_case(ATN_SOFTMAX, 0, 4, 2, 1);
    problem = attention_case_problem(&c);
    cr_expect_eq(ref_attention_bottlenecks(&problem, NULL, NULL), 0);
    attention_case_free(&c);
}

/* ---- Verdicts ---- */

static ref_verdict judge(const attention_case *c, const double *got, const double *want,
                         double kappa, double rounding, bool *trivial)
{
    int64_t rows = c->shape.tokens, cols = c->shape.value_dim;
    ref_difference difference = ref_compare_f64(rows, cols, got, cols, want, cols);
    double ratio;
    return ref_judge_head(c, 0, &difference, want, kappa, rounding, &ratio, trivial);
}

Test(conditioning, verdicts_on_heads)
{
    attention_case c = make_case(ATN_SOFTMAX, 0, 36, 8, 3);
    double *want = expect(&c), *got = expect(&c);
    bool trivial;
    cr_expect(judge(&c, got, want, 2, 1e-6, &trivial) == REF_PASS && !trivial);
    for (int64_t i = 0; i < 36 * 8; i++)
        got[i] = want[i] * (1 + 4e-5); /* 20 times 2 1e-6 */
    cr_expect(judge(&c, got, want, 2, 1e-6, &trivial) == REF_MARGINAL && !trivial);
    cr_expect(judge(&c, got, want, 1, 1e-6, &trivial) == REF_FAIL && !trivial);
    cr_expect(judge(&c, got, want, INFINITY, 1e-6, &trivial) == REF_SKIPPED && !trivial);
    /* a tolerance of 10 0.09: rows of zeros would pass */
    cr_expect(judge(&c, want, want, 1, 0.09, &trivial) == REF_PASS && trivial);
    got[5] = NAN;
    cr_expect(judge(&c, got, want, INFINITY, 1e-6, &trivial) == REF_FAIL && !trivial);
    free(got);
    free(want);
    attention_case_free(&c);
}

/* Equal tokens give equal rows: the mean of V under softmax, a multiple of it without norms, and
 * then only the mean row of the answer itself passes for it. */
Test(conditioning, equal_rows_are_trivial)
{
    static const struct {
        atn_operator op;
        int variant;
    } rows[] = {{ATN_SOFTMAX, 0}, {ATN_SIMA, 4}};
    cr_assert_str_eq(atn_operator_get(ATN_SIMA)->variants[4].name, "none");
    for (int i = 0; i < 2; i++) {
        attention_case c = make_case(rows[i].op, rows[i].variant, 36, 8, 3);
        for (int64_t j = 8; j < 36 * 8; j++) {
            c.q[j] = c.q[j - 8];
            c.v[j] = c.v[j - 8];
        }
        double *want = expect(&c);
        bool trivial;
        cr_expect(judge(&c, want, want, 2, 1e-6, &trivial) == REF_PASS && trivial, "row %d", i);
        /* rows 1.5e-5 from their mean, which passes if the tolerance is 10 times 2 1e-6 */
        for (int64_t j = 0; j < 36 * 8; j++)
            want[j] *= j / 8 % 2 ? 1 + 1.5e-5 : 1 - 1.5e-5;
        cr_expect(judge(&c, want, want, 2, 1e-6, &trivial) == REF_PASS && trivial, "row %d", i);
        judge(&c, want, want, 1, 1e-6, &trivial);
        cr_expect_eq(trivial, rows[i].op == ATN_SOFTMAX, "row %d: the mean of V", i);
        free(want);
        attention_case_free(&c);
    }
}

/* The rows are 20 roundings from the mean of V over the keys of their own batch entry: each other's
 * mean row fails, and that mean does not. */
Test(conditioning, means_are_of_the_keys_that_are_not_padding)
{
    enum { N = 12, D = 4 };
    attention_choice choice = {.op = ATN_SOFTMAX,
                               .dtype = ATN_F64,
                               .shape = {2, 1, N, D, D, 0},
                               .padding = true,
                               .seed = 3};
    attention_case c = attention_case_make(&choice);
    cr_assert(memcmp(c.key_mask, c.key_mask + N, N) != 0);
    for (int head = 0; head < 2; head++) {
        double want[N * D], ratio;
        for (int col = 0; col < D; col++) {
            double sum = 0, count = 0;
            for (int j = 0; j < N; j++)
                if (c.key_mask[head * N + j])
                    sum += c.v[(head * N + j) * D + col], count++;
            for (int i = 0; i < N; i++)
                want[i * D + col] = sum / count * (i % 2 ? 1 + 2e-5 : 1 - 2e-5);
        }
        ref_difference none = ref_compare_f64(N, D, want, D, want, D);
        bool trivial = false;
        cr_expect(ref_judge_head(&c, head, &none, want, 1, 1e-6, &ratio, &trivial) == REF_PASS &&
                      trivial,
                  "head %d", head);
    }
    attention_case_free(&c);
}

/* There are no rows, or no keys, to be told apart. */
Test(conditioning, one_token_or_one_key_is_not_trivial)
{
    for (int keys = 0; keys < 2; keys++) {
        attention_choice choice = {.op = ATN_SOFTMAX,
                                   .dtype = ATN_F64,
                                   .shape = {1, 1, keys ? 12 : 1, 4, 4, keys ? 1 : 12},
                                   .seed = 3};
        attention_case c = attention_case_make(&choice);
        double *want = expect(&c);
        bool trivial = true;
        cr_expect(judge(&c, want, want, 2, 1e-6, &trivial) == REF_PASS && !trivial, "one %s",
                  keys ? "key" : "token");
        free(want);
        attention_case_free(&c);
    }
}
