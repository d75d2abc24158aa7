/* SPDX-License-Identifier: BSD-3-Clause */
/* Verdicts, and that trivial answers do not get past them. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ruler.h"

static const double u64 = 0x1p-53, u32 = 0x1p-24;

/* The thresholds a second time: moving one must be a decision, not a slip. */
Test(judge, the_table_is_frozen)
{
    static const struct {
        const char *name;
        double pass, fail;
    } frozen[] = {
        [REF_BACKWARD] = {"backward", 30, 100}, [REF_ORTHOGONALITY] = {"orthogonality", 30, 100},
        [REF_FORWARD] = {"forward", 10, 30},    [REF_SPECTRUM] = {"spectrum", 10, 30},
        [REF_ROUNDING] = {"rounding", 1, 3},    [REF_BASELINE] = {"baseline", 1, 1.5},
        [REF_REACH] = {"reachable", 1, 1.5},    [REF_REGRESSION] = {"regression", 1, 1},
        [REF_EXACT] = {"exact", 0.5, 0.5},
    };
    cr_assert(sizeof frozen / sizeof *frozen == REF_RULE_COUNT);
    for (int rule = 0; rule < REF_RULE_COUNT; rule++) {
        const ref_threshold *t = ref_threshold_get(rule);
        cr_assert(t, "rule %d", rule);
        cr_expect(strcmp(t->name, frozen[rule].name) == 0 && t->pass == frozen[rule].pass &&
                      t->fail == frozen[rule].fail,
                  "rule %s pass=%g fail=%g", t->name, t->pass, t->fail);
        cr_expect(t->pass > 0 && t->pass <= t->fail, "rule %s", t->name);
        cr_expect(strlen(t->statistic) > 0 && strlen(t->reason) > 0, "rule %s", t->name);
    }
    cr_expect(!ref_threshold_get(REF_RULE_COUNT) && !ref_threshold_get((ref_rule)-1));
}

Test(judge, every_rule_at_its_edges)
{
    for (int rule = 0; rule < REF_RULE_COUNT; rule++) {
        const ref_threshold *t = ref_threshold_get(rule);
        bool band = t->pass < t->fail;
        const struct {
            double ratio;
            ref_verdict verdict;
        } cases[] = {
            {0, REF_PASS},
            {-0.0, REF_PASS},
            {5e-324, REF_PASS},
            {nextafter(t->pass, 0), REF_PASS},
            {t->pass, band ? REF_MARGINAL : REF_FAIL},
            {nextafter(t->fail, 0), band ? REF_MARGINAL : REF_PASS},
            {t->fail, REF_FAIL},
            {1e300, REF_FAIL},
            {INFINITY, REF_FAIL},
            {-INFINITY, REF_FAIL},
            {NAN, REF_FAIL},
            {-5e-324, REF_FAIL},
            {-1, REF_FAIL},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            cr_expect(ref_judge(rule, cases[i].ratio) == cases[i].verdict,
                      "rule=%s ratio=%.17g verdict=%s want=%s", t->name, cases[i].ratio,
                      ref_verdict_name(ref_judge(rule, cases[i].ratio)),
                      ref_verdict_name(cases[i].verdict));
    }
    cr_expect(ref_judge(REF_EXACT, 1) == REF_FAIL);
    cr_expect(ref_judge(REF_RULE_COUNT, 0) == REF_FAIL, "a rule that does not exist passes");
    cr_expect(ref_judge((ref_rule)-1, 0) == REF_FAIL, "a rule that does not exist passes");
}

Test(judge, verdict_names)
{
    static const char *const names[] = {"pass", "marginal", "FAIL", "skipped"};
    for (int i = 0; i < 4; i++)
        cr_expect(strcmp(ref_verdict_name((ref_verdict)i), names[i]) == 0, "%d", i);
    cr_expect(!ref_verdict_name((ref_verdict)4) && !ref_verdict_name((ref_verdict)-1));
}

Test(judge, forward_ratios)
{
    /* |want|_F = 5; the error is the second column, in the first element */
    static const double want[2] = {3, 4};
    static const struct {
        double error, kappa;
        int n;
        double u, ratio;
        ref_verdict verdict;
    } cases[] = {
        {0, 1, 1, 0x1p-53, 0, REF_PASS},
        {5 * 0x1p-50, 1, 1, 0x1p-53, 8, REF_PASS},
        {5 * 0x1p-49, 1, 1, 0x1p-53, 16, REF_MARGINAL},
        {5 * 0x1p-48, 1, 1, 0x1p-53, 32, REF_FAIL},
        {5 * 0x1p-48, 4, 1, 0x1p-53, 8, REF_PASS},
        {5 * 0x1p-48, 1, 4, 0x1p-53, 8, REF_PASS},
        {5 * 0x1p-48, 2, 2, 0x1p-53, 8, REF_PASS},
        {5 * 0x1p-21, 1, 1, 0x1p-24, 8, REF_PASS},
        {5 * 0x1p-21, 1, 1, 0x1p-53, 0x1p32, REF_FAIL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got[2] = {3 + cases[i].error, 4}, ratio = -1;
        ref_difference d = ref_compare_f64(1, 2, got, 2, want, 2);
        ref_verdict verdict = ref_judge_forward(&d, cases[i].kappa, cases[i].n, cases[i].u, &ratio);
        /* got itself is rounded: the error is off by up to u |3| */
        cr_expect(fabs(ratio - cases[i].ratio) <= 0.5 + 1e-12 * ratio,
                  "error=%g kappa=%g n=%d ratio=%.17g want=%g", cases[i].error, cases[i].kappa,
                  cases[i].n, ratio, cases[i].ratio);
        cr_expect(verdict == cases[i].verdict, "error=%g kappa=%g n=%d ratio=%.17g verdict=%s",
                  cases[i].error, cases[i].kappa, cases[i].n, ratio, ref_verdict_name(verdict));
    }
}

/* want is (3, -4): an ulp is 4 2u; plain is off in the second element, got in the first. */
Test(judge, baseline_ratios)
{
    static const double want[2] = {3, -4};
    static const struct {
        double error, plain, u, ratio;
        ref_verdict verdict;
    } cases[] = {
        {0, 0, 0x1p-11, 0, REF_PASS},
        {0x1p-7, 0, 0x1p-11, 1, REF_MARGINAL}, /* 2 ulp are 2^-7 */
        {0x1.fp-8, 0, 0x1p-11, 0.96875, REF_PASS},
        {0x1.8p-7, 0, 0x1p-11, 1.5, REF_FAIL},
        {0x1p-6, 0, 0x1p-11, 2, REF_FAIL},
        {0x1p-4, 0, 0x1p-8, 1, REF_MARGINAL},
        {0x1p-4, 0x1p-5, 0x1p-11, 0x1p-4 / (0x1p-4 + 0x1p-7), REF_PASS},
        {0x1p-4, 0x1p-6, 0x1p-11, 0x1p-4 / (0x1p-5 + 0x1p-7), REF_FAIL},
        {0.5, 0.25, 0x1p-53, 1 / (1 + 0x1p-49), REF_PASS},
        {0.5, 0.249, 0x1p-53, 1.0 / 0.996, REF_MARGINAL},
        {0.75, 0.25, 0x1p-53, 1.5 / (1 + 0x1p-49), REF_MARGINAL},
        {0.8, 0.25, 0x1p-53, 1.6, REF_FAIL},
        {8, 0.25, 0x1p-53, 16, REF_FAIL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got[2] = {3 - cases[i].error, -4}, plain[2] = {3, -4 + cases[i].plain}, ratio = -1;
        ref_difference d = ref_compare_f64(1, 2, got, 2, want, 2);
        ref_difference p = ref_compare_f64(1, 2, plain, 2, want, 2);
        ref_verdict verdict = ref_judge_baseline(&d, &p, cases[i].u, &ratio);
        cr_expect(fabs(ratio - cases[i].ratio) <= 1e-12 * cases[i].ratio &&
                      verdict == cases[i].verdict,
                  "error=%g plain=%g u=%g ratio=%.17g want=%g verdict=%s", cases[i].error,
                  cases[i].plain, cases[i].u, ratio, cases[i].ratio, ref_verdict_name(verdict));
        cr_expect(ref_judge_baseline(&d, &p, cases[i].u, NULL) == verdict);
    }
}

/* A plain version that fails excuses nothing but itself; want = 0 demands what plain reached. */
Test(judge, baseline_without_numbers)
{
    static const struct {
        double got, plain, want;
        ref_verdict verdict;
    } cases[] = {
        {NAN, 1, 1, REF_FAIL},        {INFINITY, 1, 1, REF_FAIL}, {NAN, NAN, 1, REF_FAIL},
        {INFINITY, NAN, 1, REF_FAIL}, {1, NAN, 1, REF_SKIPPED},   {7, INFINITY, 1, REF_SKIPPED},
        {0, 0, 0, REF_PASS},          {5e-324, 0, 0, REF_FAIL},   {1, 1, 0, REF_PASS},
        {3, 1, 0, REF_FAIL},          {1, 1, NAN, REF_FAIL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double ratio = -1;
        ref_difference d = ref_compare_f64(1, 1, &cases[i].got, 1, &cases[i].want, 1);
        ref_difference p = ref_compare_f64(1, 1, &cases[i].plain, 1, &cases[i].want, 1);
        ref_verdict verdict = ref_judge_baseline(&d, &p, u64, &ratio);
        cr_expect(verdict == cases[i].verdict, "got=%g plain=%g want=%g: %s", cases[i].got,
                  cases[i].plain, cases[i].want, ref_verdict_name(verdict));
        cr_expect(isnan(ratio) == (verdict == REF_SKIPPED), "got=%g plain=%g want=%g: ratio=%g",
                  cases[i].got, cases[i].plain, cases[i].want, ratio);
    }
}

/* Skipped is not passed, and NaN is not skipped. */
Test(judge, forward_skips_what_rounding_hides)
{
    static const struct {
        double got, kappa;
        ref_verdict verdict;
    } cases[] = {
        {1, 0.1 * 0x1p53, REF_PASS},
        {1, 0.11 * 0x1p53, REF_SKIPPED},
        {7, 0.11 * 0x1p53, REF_SKIPPED},
        {7, 0.1 * 0x1p53, REF_FAIL}, /* relative error 6 over 0.1 */
        {1, INFINITY, REF_SKIPPED},
        {1, NAN, REF_SKIPPED},
        {7, NAN, REF_SKIPPED},
        {7, 0, REF_FAIL},
        {7, -1, REF_FAIL},
        {NAN, 0.11 * 0x1p53, REF_FAIL},
        {NAN, INFINITY, REF_FAIL},
        {INFINITY, NAN, REF_FAIL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double one = 1;
        double ratio = -1;
        ref_difference d = ref_compare_f64(1, 1, &cases[i].got, 1, &one, 1);
        ref_verdict verdict = ref_judge_forward(&d, cases[i].kappa, 1, u64, &ratio);
        ref_verdict expected = cases[i].verdict;
        cr_expect(verdict == expected, "got=%g kappa=%g verdict=%s want=%s", cases[i].got,
                  cases[i].kappa, ref_verdict_name(verdict), ref_verdict_name(expected));
        cr_expect(isnan(ratio) == (expected == REF_SKIPPED), "got=%g kappa=%g ratio=%g",
                  cases[i].got, cases[i].kappa, ratio);
        cr_expect(ref_judge_forward(&d, cases[i].kappa, 1, u64, NULL) == expected);
    }
}

Test(judge, forward_against_zero)
{
    static const double zeros[2] = {0, -0.0}, tiny[2] = {0, 5e-324};
    ref_difference equal = ref_compare_f64(1, 2, zeros, 2, zeros, 2);
    ref_difference off = ref_compare_f64(1, 2, tiny, 2, zeros, 2);
    double ratio = -1;
    cr_expect(ref_judge_forward(&equal, 10, 2, u64, &ratio) == REF_PASS && ratio == 0, "ratio=%g",
              ratio);
    cr_expect(ref_judge_forward(&off, 10, 2, u64, &ratio) == REF_FAIL && isinf(ratio), "ratio=%g",
              ratio);
    ref_difference empty = ref_compare_f64(0, 0, NULL, 0, NULL, 0);
    cr_expect(ref_judge_forward(&empty, 1, 0, u64, &ratio) == REF_PASS && ratio == 0, "ratio=%g",
              ratio);
}

Test(judge, discriminates)
{
    static const double constant[] = {2, 3, 2, 3, 2, 3}, nearly[] = {2, 3, 2, 3, 2, 3.01};
    static const double varied[] = {1, -2, -1, 2, 0.5, 0}, zeros[6], bad[] = {1, 2, NAN, 4, 5, 6};
    static const double giant[] = {1e200, -1e200, -1e200, 1e200, 0, 0}, tiny[] = {5e-324, 0};
    static const struct {
        const char *name;
        int rows, cols;
        const double *want;
        double tolerance;
        bool tells;
    } cases[] = {
        {"varied", 3, 2, varied, 0.01, true},
        {"varied, tolerance over 1", 3, 2, varied, 1.5, false},
        {"varied, tolerance 1: zeros are within", 3, 2, varied, 1, false},
        {"varied, tolerance NaN", 3, 2, varied, NAN, false},
        {"varied, tolerance 0", 3, 2, varied, 0, true},
        {"constant columns", 3, 2, constant, 1e-10, false},
        {"nearly constant, loose", 3, 2, nearly, 0.01, false},
        {"nearly constant, tight", 3, 2, nearly, 1e-4, true},
        {"zeros", 3, 2, zeros, 1e-10, false},
        {"zeros, tolerance 0", 3, 2, zeros, 0, false},
        {"NaN", 3, 2, bad, 1e-10, false},
        {"one row", 1, 6, varied, 1e-10, false},
        {"giant", 3, 2, giant, 0.01, true},
        {"subnormal", 2, 1, tiny, 0.01, true},
        {"empty", 0, 0, NULL, 0.01, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect(ref_discriminates(cases[i].rows, cases[i].cols, cases[i].want,
                                    cases[i].tolerance) == cases[i].tells,
                  "%s tolerance=%g", cases[i].name, cases[i].tolerance);
}

enum { ROWS = 16, COLS = 5 };

typedef enum { ANSWER_RIGHT, ANSWER_ZEROS, ANSWER_MEANS, ANSWER_NAN, ANSWER_SHIFTED } answer;

/* An answer to want: the right one up to 2 u, or one of the lazy ones. */
static void give_answer(answer kind, double u, const double *want, double *got)
{
    for (int j = 0; j < COLS; j++) {
        double mean = 0;
        for (int i = 0; i < ROWS; i++)
            mean += want[i * COLS + j] / ROWS;
        for (int i = 0; i < ROWS; i++) {
            const double answers[] = {
                [ANSWER_RIGHT] = want[i * COLS + j] * (1 + (i % 3 - 1) * 2 * u),
                [ANSWER_ZEROS] = 0,
                [ANSWER_MEANS] = mean,
                [ANSWER_NAN] = i == 7 && j == 3 ? NAN : want[i * COLS + j],
                [ANSWER_SHIFTED] = want[(i + 1) % ROWS * COLS + j],
            };
            got[i * COLS + j] = answers[kind];
        }
    }
}

/* The comparison, the verdict and the discrimination test together, in both types. */
Test(judge, trivial_answers_fail)
{
    static const char *const names[] = {"right", "zeros", "column means", "one NaN", "shifted"};
    double want[ROWS * COLS], got[ROWS * COLS];
    float single[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        want[i] = sin(1 + 2.385 * i) + 0.1;
    cr_assert(ref_discriminates(ROWS, COLS, want, 30 * 100 * ROWS * u32));
    for (answer kind = ANSWER_RIGHT; kind <= ANSWER_SHIFTED; kind++) {
        ref_verdict expected = kind == ANSWER_RIGHT ? REF_PASS : REF_FAIL;
        double ratio;
        give_answer(kind, u64, want, got);
        ref_difference d = ref_compare_f64(ROWS, COLS, got, COLS, want, COLS);
        cr_expect(ref_judge_forward(&d, 100, ROWS, u64, &ratio) == expected, "f64 %s ratio=%g",
                  names[kind], ratio);
        give_answer(kind, u32, want, got);
        for (int i = 0; i < ROWS * COLS; i++)
            single[i] = (float)got[i];
        d = ref_compare_f32(ROWS, COLS, single, COLS, want, COLS);
        cr_expect(ref_judge_forward(&d, 100, ROWS, u32, &ratio) == expected, "f32 %s ratio=%g",
                  names[kind], ratio);
    }
}

/* ---- The regression rule ---- */

Test(judge, regression)
{
    static const struct {
        double error, kept, ratio;
        ref_verdict verdict;
    } rows[] = {
        {0, 0, 0, REF_PASS},
        {1.999, 0, 0.9995, REF_PASS}, /* below two roundings luck decides */
        {2, 0, 1, REF_FAIL},
        {1, 1, 0.25, REF_PASS},
        {3.99, 1, 0.9975, REF_PASS},
        {4, 1, 1, REF_FAIL},
        {1, 1e300, 0, REF_PASS},
        {202, 100, 1, REF_FAIL},
        {201, 100, 201. / 202, REF_PASS},
        {INFINITY, 5, INFINITY, REF_FAIL},
        {INFINITY, INFINITY, 0, REF_PASS}, /* an overflow that was there before */
        {1, INFINITY, 0, REF_PASS},
        {NAN, 1, NAN, REF_FAIL},
        {1, NAN, NAN, REF_FAIL},
        {NAN, INFINITY, NAN, REF_FAIL},
        {1, -0.5, NAN, REF_FAIL},
        {-1, 1, -0.25, REF_FAIL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double ratio = -7;
        ref_verdict verdict = ref_judge_regression(rows[i].error, rows[i].kept, &ratio);
        bool same = isnan(rows[i].ratio)
                        ? isnan(ratio)
                        : ratio == rows[i].ratio || fabs(ratio - rows[i].ratio) <= 1e-15;
        cr_expect(verdict == rows[i].verdict && same, "row %zu: %s, ratio %g", i,
                  ref_verdict_name(verdict), ratio);
        cr_expect(ref_judge_regression(rows[i].error, rows[i].kept, NULL) == verdict);
    }
}
