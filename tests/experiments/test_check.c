/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum check: what passes, what must not, and whether each known mistake is recognised. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/hypotheses.h"
#include "check/report.h"
#include "common/names.h"
#include "common/report.h"
#include "runs.h"
#include "scratch.h"

TestSuite(check, .init = scratch_begin, .fini = scratch_end);

/* ---- Problems ---- */

enum { HEADS = 2, TOKENS = 16, WIDTH = 8 };

/* A problem of two heads, its output not given yet. */
static subject problem_of(atn_operator op, int variant, atn_dtype claimed)
{
    attention_choice choice = {.op = op,
                               .variant = variant,
                               .dtype = ATN_F32,
                               .shape = {1, HEADS, TOKENS, WIDTH, WIDTH, 0},
                               .cross = true,
                               .optional = op == ATN_XNORM || op == ATN_XCA || op == ATN_LINFORMER,
                               .sampling = ATN_SAMPLING_POOL,
                               .seed = 3};
    attention_case c = attention_case_make(&choice);
    c.reference.dtype = ATN_F64;
    subject s = {.c = c, .judged = c, .grad_output = c.dout};
    subject_claim(&s, claimed);
    return s;
}

static void release(subject *s)
{
    attention_case_free(&s->c);
    for (int kind = 0; kind < RESULT_COUNT; kind++) {
        free(s->results[kind]);
        s->results[kind] = NULL;
    }
}

/* Gives it a result: its own exact answer. */
static double *give(subject *s, result_kind kind)
{
    double *y = must_allocate((size_t)result_size(&s->judged, kind), sizeof *y);
    cr_assert_eq(answer_exact(s, kind, y), ATN_OK);
    return s->results[kind] = y;
}

/* Gives it an output: its own exact answer. */
static double *give_output(subject *s)
{
    return give(s, RESULT_OUTPUT);
}

/* The verdict on one result. To be freed in any case. */
static int judge_result(atn_context *context, const subject *s, result_kind kind, result_verdict *v)
{
    result_group g = group_of_one(kind, v);
    int code = find_wanted(context, s, &g);
    if (code == EXIT_PASS)
        judge_heads(s, kind, v);
    return code;
}

static ref_verdict verdict_on(const subject *s, result_kind kind)
{
    result_verdict v;
    atn_context *context = make_context();
    cr_assert_eq(judge_result(context, s, kind, &v), EXIT_PASS);
    ref_verdict verdict = v.verdict;
    result_verdict_free(&v);
    atn_context_free(context);
    return verdict;
}

static ref_verdict verdict_of(const subject *s)
{
    return verdict_on(s, RESULT_OUTPUT);
}

/* ---- Verdicts ---- */

static const atn_dtype claims[] = {ATN_F64, ATN_F32, ATN_F16};

/* Half of the digits of bf16, u = 2^-8, are gone at kappa = 16, those of f16 at 45.25. */
Test(check, inverses_of_narrow_types_must_be_wide_beyond_half_of_the_digits)
{
    static const struct {
        atn_operator op;
        atn_storage storage;
        double kappa;
        bool wide;
    } cases[] = {
        {ATN_SOFT, ATN_STORAGE_BF16, 16, false},     {ATN_SOFT, ATN_STORAGE_BF16, 16.01, true},
        {ATN_SOFTPP, ATN_STORAGE_F16, 45.2, false},  {ATN_SOFTPP, ATN_STORAGE_F16, 45.3, true},
        {ATN_SOFT, ATN_STORAGE_NATIVE, 1e30, false}, {ATN_SIMA, ATN_STORAGE_BF16, 1e30, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const subject s = {
            .c.choice.op = cases[i].op, .dtype = ATN_F32, .storage = cases[i].storage};
        cr_expect_eq(subject_must_be_wide(&s, cases[i].kappa), cases[i].wide, "%zu", i);
    }
}

Test(check, exact_outputs_pass_and_trivial_ones_fail)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
            subject s = problem_of((atn_operator)op, 0, claims[i]);
            const char *label = attention_case_label(&s.c);
            double *y = give_output(&s), mean[HEADS * WIDTH] = {0};
            int64_t size = result_size(&s.judged, RESULT_OUTPUT);
            cr_expect_eq(verdict_of(&s), REF_PASS, "%s", label);
            for (int64_t j = 0; j < size; j++)
                mean[j / (TOKENS * WIDTH) * WIDTH + j % WIDTH] += y[j] / TOKENS;
            for (int64_t j = 0; j < size; j++)
                y[j] = mean[j / (TOKENS * WIDTH) * WIDTH + j % WIDTH];
            cr_expect_eq(verdict_of(&s), REF_FAIL, "the mean row: %s", label);
            memset(y, 0, (size_t)size * sizeof *y);
            cr_expect_eq(verdict_of(&s), REF_FAIL, "zeros: %s", label);
            release(&s);
        }
}

Test(check, one_bad_element_fails_and_is_named)
{
    const double bad[] = {NAN, INFINITY, 1e3};
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        subject s = problem_of(ATN_SIMA, 0, ATN_F32);
        result_verdict v;
        give_output(&s)[(1 * TOKENS + 5) * WIDTH + 3] = bad[i];
        cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
        cr_expect_eq(v.heads[0].verdict, REF_PASS, "%g", bad[i]);
        cr_expect_eq(v.heads[1].verdict, REF_FAIL, "%g", bad[i]);
        cr_expect_eq(v.heads[1].difference.worst_row, 5);
        cr_expect_eq(v.heads[1].difference.worst_col, 3);
        cr_expect_eq(v.verdict, REF_FAIL);
        result_verdict_free(&v);
        release(&s);
    }
    atn_context_free(context);
}

/* Rounding of the claimed type passes; ten times the bound's threshold does not. */
Test(check, an_error_is_judged_in_the_claimed_precision)
{
    static const struct {
        atn_dtype claimed;
        double error;
        ref_verdict verdict;
    } rows[] = {
        {ATN_F64, 3e-16, REF_PASS}, {ATN_F64, 1e-8, REF_FAIL},  {ATN_F32, 1e-7, REF_PASS},
        {ATN_F32, 1e-3, REF_FAIL},  {ATN_BF16, 2e-3, REF_PASS}, {ATN_BF16, 0.9, REF_FAIL},
        {ATN_F16, 3e-4, REF_PASS},  {ATN_TF32, 3e-4, REF_PASS}, {ATN_F16, 0.1, REF_FAIL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        subject s = problem_of(ATN_SOFTMAX, 0, rows[i].claimed);
        double *y = give_output(&s);
        for (int64_t j = 0; j < result_size(&s.judged, RESULT_OUTPUT); j++)
            y[j] *= j % 2 ? 1 + rows[i].error : 1 - rows[i].error;
        cr_expect_eq(verdict_of(&s), rows[i].verdict, "%s, %g: %s", atn_dtype_name(rows[i].claimed),
                     rows[i].error, ref_verdict_name(verdict_of(&s)));
        release(&s);
    }
}

/* Four operands, two products, cut off to tf32 make results smaller by a factor, by 0.7 u each.
 * bf16 and f16 are rounded to nearest. */
Test(check, operands_may_be_cut_off_to_tf32_alone)
{
    static const struct {
        atn_dtype claimed;
        double cuts;
        ref_verdict verdict;
    } rows[] = {{ATN_TF32, 4, REF_PASS}, {ATN_TF32, 16, REF_FAIL}, {ATN_F16, 4, REF_FAIL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        subject s = problem_of(ATN_SIMA, 0, rows[i].claimed);
        double *y = give_output(&s);
        for (int64_t j = 0; j < result_size(&s.judged, RESULT_OUTPUT); j++)
            y[j] *= 1 - rows[i].cuts * 0x1p-11 / (2 * log(2));
        cr_expect_eq(verdict_of(&s), rows[i].verdict, "%s, %g cuts: %s",
                     atn_dtype_name(rows[i].claimed), rows[i].cuts,
                     ref_verdict_name(verdict_of(&s)));
        release(&s);
    }
}

/* What the library in f64 errs by, where it stands in for the exact answer, is less than is said of
 * it, and that is nothing to f32. */
Test(check, baselines_err_by_less_than_is_estimated)
{
    atn_context *context = make_context();
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int kind = RESULT_OUTPUT; kind <= RESULT_VALUES; kind++) {
            subject s = problem_of((atn_operator)op, 0, ATN_F32);
            result_verdict v;
            result_group g = group_of_one((result_kind)kind, &v);
            if (!result_exists(&s.judged, (result_kind)kind)) {
                release(&s);
                continue;
            }
            double *want = give(&s, (result_kind)kind);
            s.reference = REFERENCE_F64;
            cr_assert_eq(find_wanted(context, &s, &g), EXIT_PASS);
            cr_assert(!v.exact);
            int64_t heads = result_heads(&s.judged, (result_kind)kind);
            int64_t size = result_size(&s.judged, (result_kind)kind) / heads;
            for (int64_t i = 0; i < heads; i++) {
                yardstick y = head_yardstick(&s, (result_kind)kind, &v, i);
                double error = ref_compare_f64(1, size, y.want, size, want + i * size, size)
                                   .relative_frobenius;
                cr_expect(error <= y.kappa * y.own, "%s, %s: %g, %g", attention_case_label(&s.c),
                          result_name((result_kind)kind), error, y.kappa * y.own);
                cr_expect(y.own <= 1e-4 * y.rounding, "%g, %g", y.own, y.rounding);
            }
            result_verdict_free(&v);
            release(&s);
        }
    atn_context_free(context);
}

/* What an ill-conditioned inverse makes of rounding is no failure; zeros are one. */
Test(check, ill_conditioned_problems_are_held_against_the_library)
{
    subject s = problem_of(ATN_SOFT, 2, ATN_F32);
    atn_context *context = make_context();
    result_verdict v;
    for (int64_t i = 0; i < attention_case_queries(&s.c); i++)
        s.c.q[i] *= 1.0 / 16; /* tokens that are almost equal */
    s.c.reference.inverse = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    s.c.reference.inverse.iterations = 8;
    s.judged = s.c;
    double *y = give_output(&s);
    cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
    cr_expect_eq(v.verdict, REF_PASS, "%s %g", v.heads[0].reason, v.heads[0].ratio);
    result_verdict_free(&v);
    memset(y, 0, (size_t)result_size(&s.judged, RESULT_OUTPUT) * sizeof *y);
    cr_expect_eq(verdict_of(&s), REF_FAIL);
    atn_context_free(context);
    release(&s);
}

/* Nor is one of the steps that is left out, though roundings of the inverse might err as much. */
Test(check, an_ill_conditioned_inverse_hides_no_missing_step)
{
    subject s = problem_of(ATN_SOFT, 2, ATN_F32);
    atn_context *context = make_context();
    result_verdict v;
    finding findings[MOST_FINDINGS];
    for (int64_t i = 0; i < attention_case_queries(&s.c); i++)
        s.c.q[i] /= 6; /* tokens that are nearly equal */
    s.c.reference.inverse = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    s.judged = s.c;
    s.c.reference.inverse.iterations--;
    give_output(&s);
    s.c.reference.inverse.iterations++;
    cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
    cr_expect_neq(v.verdict, REF_FAIL, "%g", v.heads[0].ratio);
    int count = explain_result(context, &s, RESULT_OUTPUT, &v, findings);
    cr_expect_eq(v.verdict, REF_FAIL, "error %g, reachable %g",
                 v.heads[0].difference.relative_frobenius, v.heads[0].reachable);
    cr_expect(count && strcmp(findings[0].text, "iterations=19") == 0, "%s",
              count ? findings[0].text : "nothing");
    while (count > 0)
        free(findings[--count].text);
    result_verdict_free(&v);
    atn_context_free(context);
    release(&s);
}

/* ---- Both sides of every bound ---- */

/* Walsh functions of 0 .. 511: signs, orthogonal to each other and, but for the 0th, to ones; of
 * which those with all bits of a tile's width or more keep one sign in it. */
static double walsh(unsigned which, unsigned i)
{
    return __builtin_parity(which & i) ? -1 : 1;
}

enum { LONG = 512, NARROW = 8 };

typedef double pattern(int i, int j);

/* Errors of one kind each, of norm |want|, whose part in the other statistics is 0 or no more. */
static double everywhere(int i, int j) /* no factor, no mean */
{
    return walsh(5, (unsigned)i) * walsh(1, (unsigned)j);
}

static double factor(int i, int j)
{
    return walsh(3, (unsigned)i) * walsh(2, (unsigned)j);
}

static double factors_of_rows(int i, int j)
{
    return factor(i, j) * walsh(1, (unsigned)i);
}

static double factors_of_columns(int i, int j)
{
    return factor(i, j) * walsh(1, (unsigned)j);
}

static double mean(int i, int j)
{
    return 1;
}

static double means_of_rows(int i, int j)
{
    return walsh(1, (unsigned)i);
}

static double means_of_columns(int i, int j)
{
    return walsh(1, (unsigned)j);
}

static double direction(int i, int j)
{
    return walsh(9, (unsigned)i) * walsh(4, (unsigned)j);
}

/* What one row has of columns' factors and means, and a column of rows'. */
static double in_columns(int i, int j)
{
    return factors_of_columns(i, j) + means_of_columns(i, j);
}

static double in_rows(int i, int j)
{
    return factors_of_rows(i, j) + means_of_rows(i, j);
}

static double one_row(int i, int j)
{
    return i == 7 ? everywhere(i, j) * sqrt(LONG) : 0;
}

static double one_column(int i, int j)
{
    return j == 3 ? everywhere(i, j) * sqrt(NARROW) : 0;
}

static double factor_of_column(int i, int j)
{
    return j == 3 ? factor(i, j) * sqrt(NARROW) : 0;
}

#define FACTOR_OF_TILE(rows)                                                                       \
    static double factor_of_##rows(int i, int j)                                                   \
    {                                                                                              \
        return i / rows == 1 ? factor(i, j) * sqrt(LONG / rows) : 0;                               \
    }
FACTOR_OF_TILE(16)
FACTOR_OF_TILE(32)
FACTOR_OF_TILE(64)
FACTOR_OF_TILE(128)
FACTOR_OF_TILE(256)

/* The ratio of an error of so much times the truncation's part of |want|, where good kernels reach
 * `reached` times that in everything that has no structure, and as much in factors of tiles of
 * fewer than `tile` rows and in `other`. */
static judgement judge_doctored(pattern *error, double size, double reached, unsigned tile,
                                pattern *other)
{
    static double want[LONG * NARROW], got[LONG * NARROW], run[LONG * NARROW];
    static double along[LONG * NARROW], noise[NOISES][LONG * NARROW];
    const double unit = 0x1p-24, truncation = unit / (2 * log(2));
    for (int i = 0; i < LONG; i++)
        for (int j = 0; j < NARROW; j++) {
            int at = i * NARROW + j;
            want[at] = factor(i, j);
            along[at] = direction(i, j);
            for (int k = 0; k < NOISES; k++) /* next to nothing, orthogonal: made of all numbers */
                noise[k][at] = 1e-9 * walsh(64U + (unsigned)k, (unsigned)i) * walsh(7, (unsigned)j);
            got[at] = want[at] + size * truncation * error(i, j);
            run[at] = reached * truncation * everywhere(i, j);
            if (other)
                run[at] += reached * truncation * other(i, j);
            if (tile > 0)
                run[at] += reached * truncation * factor(i, j) * walsh(tile / 2, (unsigned)i);
        }
    yardstick y = {.rows = LONG,
                   .cols = NARROW,
                   .want = want,
                   .reach = {.runs = 1,
                             .errors = {run},
                             .noises = NOISES,
                             .noise = {noise[0], noise[1], noise[2], noise[3], noise[4], noise[5]},
                             .directions = 1,
                             .direction = {along},
                             .direction_names = {"along"}},
                   .kappa = 1,
                   .rounding = unit,
                   .unit = unit,
                   .cut = unit,
                   .stages = 1};
    bounds b = find_bounds(&y);
    return judge_head(&y, &b, got);
}

/* A kernel may err twice what is reached and by a truncation: the part of a statistic's error where
 * nothing is reached, 1 of these, passes, 1.5 FAILs; so do 6 for a row where 1 is reached, ... */
Test(check, every_statistic_has_both_sides)
{
    static const struct {
        const char *name;
        pattern *error;
        double reached, bound; /* of size, in truncations; a row and a column of the three patterns
                                  together have at most sqrt(5) and sqrt(3) */
        unsigned tile;
        pattern *other;
        double shared; /* how many roundings of their own rows and columns may have as factors */
    } cases[] = {
        {"size", everywhere, 0, 1, 0, NULL, 0},
        {"size", everywhere, 1, 3, 0, NULL, 0},
        {"size", everywhere, 10, 21, 0, NULL, 0},
        {"row", one_row, 1e3, (6e3 * 2.23606797749979 + 1) / 22.62741699796952, 0, in_columns, 0},
        {"column", one_column, 1e3, (4e3 * 1.7320508075688772 + 1) / 2.8284271247461903, 0, in_rows,
         0},
        {"factor", factor, 1e3, 1, 0, NULL, 0},
        {"factors of rows", factors_of_rows, 1e3, 1, 0, NULL, 2},
        {"factors of columns", factors_of_columns, 1e3, 1, 0, NULL, 2},
        {"factor of a column", factor_of_column, 1e3, 1 / 2.8284271247461903, 0, NULL, 3},
        {"factor of 16 rows", factor_of_16, 1e3, 1 / 5.656854249492381, 16, NULL, 0},
        {"factor of 32 rows", factor_of_32, 1e3, 1 / 4.0, 32, NULL, 0},
        {"factor of 64 rows", factor_of_64, 1e3, 1 / 2.8284271247461903, 64, NULL, 0},
        {"factor of 128 rows", factor_of_128, 1e3, 1 / 2.0, 128, NULL, 0},
        {"factor of 256 rows", factor_of_256, 1e3, 1 / 1.4142135623730951, 256, NULL, 0},
        {"mean", mean, 1e3, 1, 0, NULL, 0},
        {"means of rows", means_of_rows, 1e3, 1, 0, NULL, 0},
        {"means of columns", means_of_columns, 1e3, 1, 0, NULL, 0},
        {"along", direction, 1e3, 1, 0, NULL, 0},
        /* where good kernels have that part, too */
        {"factor", factor, 1e3, 2, 0, factor, 0},
        {"factors of rows", factors_of_rows, 1e3, 2, 0, factors_of_rows, 0},
        {"factors of columns", factors_of_columns, 1e3, 2, 0, factors_of_columns, 0},
        {"mean", mean, 1e3, 2, 0, mean, 0},
        {"means of rows", means_of_rows, 1e3, 2, 0, means_of_rows, 0},
        {"means of columns", means_of_columns, 1e3, 2, 0, means_of_columns, 0},
        {"along", direction, 1e3, 2, 0, direction, 0},
    };
    static const struct {
        double part;
        ref_verdict verdict;
    } sides[] = {{0.98, REF_PASS}, {1.02, REF_MARGINAL}, {1.48, REF_MARGINAL}, {1.52, REF_FAIL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t side = 0; side < sizeof sides / sizeof *sides; side++) {
            /* of as many independent numbers, so much may lie along a direction by chance */
            bool own = cases[i].other == cases[i].error; /* bound is then the multiple */
            double chance =
                4 / sqrt(LONG * NARROW) * cases[i].reached * sqrt(cases[i].tile || own ? 2 : 1);
            bool energy = cases[i].error == everywhere || (cases[i].other && !own);
            double rounding = 2 * log(2) / sqrt(8 * log(2)); /* in truncations */
            double bound = own      ? cases[i].bound * cases[i].reached + chance + 1
                           : energy ? cases[i].bound
                                    : cases[i].bound * (1 + chance + cases[i].shared * rounding);
            double size = sides[side].part * bound;
            judgement j = judge_doctored(cases[i].error, size, cases[i].reached, cases[i].tile,
                                         cases[i].other);
            cr_expect(j.verdict == sides[side].verdict, "%s %g: %s by %s, ratio %g", cases[i].name,
                      sides[side].part, ref_verdict_name(j.verdict), j.rule, j.ratio);
            cr_expect(strcmp(j.rule, cases[i].name) == 0, "%s is called %s", cases[i].name, j.rule);
            cr_expect_float_eq(j.ratio, sides[side].part, 0.01, "%s: %g is %g", cases[i].name,
                               sides[side].part, j.ratio);
        }
    for (int bad = 0; bad < 2; bad++) {
        judgement j = judge_doctored(everywhere, bad ? INFINITY : NAN, 1, 0, NULL);
        cr_expect_eq(j.verdict, REF_FAIL);
    }
}

enum { FEW = 8 };

/* A yardstick of FEW x FEW numbers about 1 in f32, in which a relative error of 1e-6 FAILs; times
 * `scale`. */
static yardstick few_numbers(double scale, double *want, double noise[NOISES][FEW * FEW])
{
    yardstick y = {.rows = FEW,
                   .cols = FEW,
                   .want = want,
                   .kappa = 1,
                   .rounding = 0x1p-24,
                   .unit = 0x1p-24,
                   .stages = 1,
                   .reach = {.noises = NOISES}};
    for (int i = 0; i < FEW * FEW; i++) {
        want[i] = scale * walsh(17, (unsigned)i); /* its rows differ */
        for (int k = 0; k < NOISES; k++) {
            noise[k][i] = scale * walsh(8U + (unsigned)k, (unsigned)i);
            y.reach.noise[k] = noise[k];
        }
    }
    return y;
}

static ref_verdict few_verdict(const yardstick *y, const double *got)
{
    bounds b = find_bounds(y);
    return judge_head(y, &b, got).verdict;
}

/* NaN and infinity FAIL, however large the error of the answer that they are compared with may be;
 * a finite error within it is not judged. */
Test(check, what_is_not_finite_fails_against_any_baseline)
{
    double want[FEW * FEW], noise[NOISES][FEW * FEW], got[FEW * FEW];
    yardstick y = few_numbers(1, want, noise);
    y.kappa = y.own = INFINITY;
    static const double wrong[] = {NAN, INFINITY, -INFINITY, 5};
    for (int i = 0; i < 4; i++) {
        memcpy(got, want, sizeof got);
        got[9] = wrong[i];
        cr_expect_eq(few_verdict(&y, got), i < 3 ? REF_FAIL : REF_SKIPPED, "%g", wrong[i]);
    }
}

/* Where the library's run that stores everything in a narrow type overflows, NaN is excused only if
 * good kernels store everything in it. */
Test(check, another_run_excuses_no_nan)
{
    double want[FEW * FEW], noise[NOISES][FEW * FEW], got[FEW * FEW];
    double fine[FEW * FEW] = {0}, overflows[FEW * FEW] = {NAN};
    for (int wide = 0; wide < 2; wide++)
        for (int narrow = 0; narrow < 2; narrow++)
            for (int written = 0; written < 2; written++) {
                yardstick y = few_numbers(1, want, noise);
                y.wide = wide;
                y.summed = 0x1p-24;
                y.reach.runs = y.reach.writtens = 1;
                y.reach.errors[0] = narrow ? overflows : fine;
                y.reach.written[0] = written ? overflows : fine;
                memcpy(got, want, sizeof got);
                got[0] = NAN;
                bool excused = wide ? written : narrow;
                cr_expect_eq(few_verdict(&y, got), excused ? REF_SKIPPED : REF_FAIL,
                             "%d, the runs: %d, %d", wide, narrow, written);
            }
}

/* Answers of any size are judged alike, or not at all where squares leave the range of f64. */
Test(check, small_and_large_answers)
{
    static const double scales[] = {1e-170, 1e-134, 1e-130, 1e-100, 1, 1e100, 1e130, 1e134, 1e170};
    double want[FEW * FEW], noise[NOISES][FEW * FEW], got[FEW * FEW];
    yardstick y = few_numbers(1, want, noise);
    const bounds at_1 = find_bounds(&y);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        bool judged = scales[i] > 1e-132 && scales[i] < 1e132;
        y = few_numbers(scales[i], want, noise);
        const bounds b = find_bounds(&y);
        for (int at = 0; judged && at < MOST_STATISTICS; at++)
            cr_expect(fabs(b.bound[at] / scales[i] - at_1.bound[at]) <= 1e-9 * at_1.bound[at],
                      "%g: bound %d is %g instead of %g", scales[i], at, b.bound[at] / scales[i],
                      at_1.bound[at]);
        cr_expect_eq(few_verdict(&y, want), judged ? REF_PASS : REF_SKIPPED, "%g", scales[i]);
        for (int j = 0; j < FEW * FEW; j++)
            got[j] = -want[j];
        ref_verdict verdict = few_verdict(&y, got);
        cr_expect(verdict == REF_FAIL || (!judged && verdict == REF_SKIPPED), "%g: %s", scales[i],
                  ref_verdict_name(verdict));
        got[5] = NAN;
        cr_expect_eq(few_verdict(&y, got), REF_FAIL, "%g, NaN", scales[i]);
    }
}

/* Noise counts by its root mean square, and for more the fewer numbers it is made of. */
Test(check, noise_is_what_is_reached)
{
    static double want[64], got[64], noise[NOISES][64];
    for (int i = 0; i < 64; i++) {
        want[i] = walsh(1, (unsigned)i);
        for (int k = 0; k < NOISES; k++)
            noise[k][i] = 3 * walsh(8U + (unsigned)k, (unsigned)i);
        got[i] = want[i] * (i % 4 / 2 ? 1 + 1e-3 : 1 - 1e-3);
    }
    yardstick y = {.rows = 8,
                   .cols = 8,
                   .want = want,
                   .kappa = 1,
                   .unit = 0x1p-11,
                   .cut = 0x1p-11,
                   .rounding = 1,
                   .stages = 1};
    y.reach = (reach){.noises = NOISES,
                      .noise = {noise[0], noise[1], noise[2], noise[3], noise[4], noise[5]}};
    const double rounding = 0x1p-11 / sqrt(8 * log(2));
    bounds b = find_bounds(&y);
    judgement j = judge_head(&y, &b, got); /* orthogonal: made of 64 */
    cr_expect_float_eq(j.reachable, 3 * rounding * (1 + 4.0 / 8), 1e-6, "%g", j.reachable);
    cr_expect_float_eq(j.allowed, 2 * j.reachable + 0x1p-11 / (2 * log(2)), 1e-6, "%g", j.allowed);
    cr_expect_float_eq(b.bound[3] / 8, 3 * rounding * 4 / 8 + 0x1p-11 / (2 * log(2)), 1e-6,
                       "a factor, of which noises have nothing: %g", b.bound[3] / 8);
    for (int i = 0; i < NOISES * 64; i++)
        noise[i / 64][i % 64] += want[i % 64];
    b = find_bounds(&y);
    cr_expect_float_eq(b.bound[3] / 8, rounding * (2 + sqrt(10) / 2) + 0x1p-11 / (2 * log(2)), 1e-6,
                       "a factor, of which noises have 1: %g", b.bound[3] / 8);
    for (int i = 0; i < 64; i++)
        noise[0][i] -= want[i];
    for (int k = 1; k < NOISES; k++) /* of one */
        y.reach.noise[k] = noise[0];
    b = find_bounds(&y);
    j = judge_head(&y, &b, got);
    cr_expect_float_eq(j.reachable, 3 * rounding * 5, 1e-6, "%g", j.reachable);
    y.reach.noises--;
    b = find_bounds(&y);
    j = judge_head(&y, &b, got);
    cr_expect_eq(j.verdict, REF_SKIPPED);
}

/* The dense building blocks are SOFT and SOFT++, as the library has them. */
Test(check, dense_soft_is_the_library)
{
    atn_context *context = make_context();
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++) {
        subject s = problem_of((atn_operator)op, 1, ATN_F64);
        double *y = give_output(&s), left = 0, norm = 0;
        int64_t size = result_size(&s.judged, RESULT_OUTPUT);
        double *dense = must_allocate((size_t)size, sizeof *dense);
        dense_form form = dense_claimed(&s.c);
        cr_expect_eq(form.normalise, op == ATN_SOFT ? NORMALISE_NOT : NORMALISE_ROOT);
        cr_assert(dense_soft(context, &s.c, &form, dense) >= 0);
        for (int64_t i = 0; i < size; i++) {
            left += (dense[i] - y[i]) * (dense[i] - y[i]);
            norm += y[i] * y[i];
        }
        cr_expect(sqrt(left / norm) < 1e-12, "%g", sqrt(left / norm));
        free(dense);
        release(&s);
    }
    atn_context_free(context);
}

/* The same of what norms.c changes: every result, with masks and of keys of its own. */
Test(check, normed_is_the_library)
{
    static const atn_operator normed[] = {ATN_SIMA, ATN_XNORM, ATN_XCA};
    static const norm_form claimed;
    atn_context *context = make_context();
    for (int i = 0; i < 3 * 3 * 4; i++) {
        attention_choice choice = {.op = normed[i / 12],
                                   .variant = i / 4 % 3,
                                   .dtype = ATN_F64,
                                   .shape = {2, HEADS, TOKENS, WIDTH, WIDTH - 2, TOKENS + 3},
                                   .cross = i & 1,
                                   .padding = i & 2,
                                   .optional = true,
                                   .seed = 5};
        if (choice.variant >= atn_operator_get(choice.op)->variant_count)
            continue;
        attention_case c = attention_case_make(&choice);
        subject s = {.c = c, .judged = c, .grad_output = c.dout};
        subject_claim(&s, ATN_F64);
        for (int kind = 0; kind < RESULT_COUNT; kind++) {
            int64_t size = result_exists(&c, kind) ? result_size(&c, kind) : 0;
            double *y = must_allocate((size_t)(2 * size + 1), sizeof *y);
            if (size) {
                cr_assert(answer_library(context, &s, ATN_F64, ATN_STORAGE_NATIVE, kind, y) >= 0);
                cr_assert(normed_answer(&c, &claimed, c.dout, kind, y + size) >= 0);
            }
            ref_difference apart = ref_compare_f64(1, size, y + size, size, y, size);
            cr_expect(!size || apart.relative_frobenius < 1e-13, "%s, %s: %g",
                      attention_case_label(&c), result_name(kind), apart.relative_frobenius);
            free(y);
        }
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* sum of dY Y of a normed trial. */
static double through(const trial *t)
{
    int64_t size = result_size(&t->s.c, RESULT_OUTPUT);
    double *y = must_allocate((size_t)size, sizeof *y), sum = 0;
    cr_assert(normed_answer(&t->s.c, &t->norms, NULL, RESULT_OUTPUT, y) >= 0);
    for (int64_t i = 0; i < size; i++)
        sum += y[i] * t->s.grad_output[i];
    free(y);
    return sum;
}

/* Its gradient is as long as the slope along it is steep. */
static void expect_derivative(trial *t, result_kind kind, double *x, const char *label)
{
    const double by = 1e-5;
    int64_t size = result_size(&t->s.c, kind);
    double *slope = must_allocate((size_t)(2 * size), sizeof *slope), *kept = slope + size;
    double sides[2], square = 0;
    cr_assert(normed_answer(&t->s.c, &t->norms, t->s.grad_output, kind, slope) >= 0);
    memcpy(kept, x, (size_t)size * sizeof *x);
    for (int64_t i = 0; i < size; i++)
        square += slope[i] * slope[i];
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < size; i++)
            x[i] = kept[i] + (side ? by : -by) * slope[i] / sqrt(square);
        sides[side] = through(t);
    }
    memcpy(x, kept, (size_t)size * sizeof *x);
    double measured = (sides[1] - sides[0]) / (2 * by);
    cr_expect(fabs(measured - sqrt(square)) <= 1e-5 * sqrt(square), "%s, %s: %g for %g", label,
              result_name(kind), sqrt(square), measured);
    free(slope);
}

/* Every change of norms has its own, but those of gradients, and of heads that hold others' sums.
 */
Test(check, other_norms_have_their_derivatives)
{
    static const atn_operator normed[] = {ATN_SIMA, ATN_XNORM, ATN_XCA};
    for (int op = 0; op < 3; op++)
        for (int i = 0; i < norm_change_count(); i++) {
            subject s = problem_of(normed[op], 0, ATN_F64);
            trial t = trial_start(&s, RESULT_TOKENS);
            bool made = norm_change_is_of(i, normed[op], false) && change_norm(&t, i);
            bool maximum = normed[op] == ATN_XCA && t.norms.of[NORM_OF_STATE].kind == NORM_NOT;
            if (made && !t.norms.stale && !maximum) {
                char *label = norm_change_text(i, normed[op]);
                for (int place = 0; place < NORM_PLACES; place++)
                    t.norms.of[place].epsilon = 0.25;
                expect_derivative(&t, RESULT_TOKENS, s.c.q, label);
                expect_derivative(&t, RESULT_KEYS, s.c.k, label);
                expect_derivative(&t, RESULT_VALUES, s.c.v, label);
                free(label);
            }
            trial_free(&t);
            release(&s);
        }
}

static int set_parameters(subject *s, const char *a, const char *b)
{
    const char *items[] = {a, b};
    text_list given = {b ? 2 : 1, items};
    return parameters_set(&given, s);
}

/* An inverse brings its own constants, whatever the order on the command line. */
Test(check, parameters_are_set_after_their_inverse)
{
    subject s = problem_of(ATN_SOFT, 0, ATN_F64);
    const atn_inverse_desc *inverse = &s.c.reference.inverse;
    cr_assert_eq(set_parameters(&s, "iterations=7", "inverse=nr-soft"), EXIT_PASS);
    cr_expect_eq(inverse->method, ATN_INVERSE_NR_SOFT);
    cr_expect_eq(inverse->iterations, 7);
    cr_expect_eq(inverse->ridge, 0.01);
    cr_expect_eq(inverse->numerator, 1.8);
    cr_expect_eq(set_parameters(&s, "ridge=0.5", "sampling=first"), EXIT_PASS);
    cr_expect_eq(inverse->ridge, 0.5);
    cr_expect_eq(s.c.reference.sampling.kind, ATN_SAMPLING_FIRST);
    capture();
    cr_expect_eq(set_parameters(&s, "epsilon=1", NULL), EXIT_USAGE); /* sima's */
    cr_expect(is_one_line_with(captured(), "--param epsilon"));
    attention_case_free(&s.c);
}

/* ---- Diagnosis ---- */

/* What is wanted of a problem, which is the same whatever its output is. */
static result_verdict wanted_of(atn_context *context, subject *s, result_kind kind)
{
    result_verdict v;
    s->results[kind] = must_allocate((size_t)result_size(&s->judged, kind), sizeof(double));
    cr_assert_eq(judge_result(context, s, kind, &v), EXIT_PASS);
    free(s->results[kind]);
    s->results[kind] = NULL;
    return v;
}

/* The verdict on the problem's output, by what is wanted. */
static ref_verdict verdict_by(const subject *s, result_kind kind, const result_verdict *v)
{
    ref_verdict worst = REF_SKIPPED;
    int64_t size = result_rows(&s->judged, kind) * result_cols(&s->judged, kind);
    for (int64_t i = 0; i < result_heads(&s->judged, kind); i++) {
        yardstick y = head_yardstick(s, kind, v, i);
        judgement j = judge_head(&y, &v->bounds[i], s->results[kind] + i * size);
        worst = worse_verdict(worst, j.verdict);
    }
    return worst;
}

/* What is said about a problem whose output is what a change makes of it. Null: the change cannot
 * be made, or makes no difference. */
static char *diagnose_change(atn_context *context, subject *s, const hypothesis *h,
                             const result_verdict *v)
{
    int64_t size = result_size(&s->judged, h->kind);
    double *y = must_allocate((size_t)size, sizeof *y);
    trial t = trial_start(s, h->kind);
    t.s.results[h->kind] = y; /* a multiple of nothing: a factor is 0/0 */
    bool made =
        trial_change(&t, h) && trial_answer(context, &t, ATN_F64, ATN_STORAGE_NATIVE, y) >= 0;
    trial_free(&t);
    bool zero = true; /* an inverse that finds no start: nobody's output, and trivial */
    for (int64_t i = 0; i < size; i++) {
        made &= isfinite(y[i]);
        zero &= y[i] == 0;
    }
    made &= !zero;
    s->results[h->kind] = y;
    char *text = NULL;
    if (made && verdict_by(s, h->kind, v) == REF_FAIL) {
        finding findings[MOST_FINDINGS];
        int count = diagnose(context, s, h->kind, v, findings);
        text = count && findings[0].explains ? must_format("%s", findings[0].text)
                                             : must_format("nothing");
        while (count > 0)
            free(findings[--count].text);
    }
    s->results[h->kind] = NULL;
    free(y);
    return text;
}

/* Whether two changes make the same of a problem. */
static bool are_equivalent(atn_context *context, const subject *s, const hypothesis *a,
                           const hypothesis *b)
{
    int64_t size = result_size(&s->judged, a->kind);
    double *y = must_allocate((size_t)(2 * size), sizeof *y), left = 0, norm = 0;
    const hypothesis *const both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        trial t = trial_start(s, a->kind);
        t.s.results[a->kind] = y;
        trial_change(&t, both[i]);
        trial_answer(context, &t, ATN_F64, ATN_STORAGE_NATIVE, y + i * size);
        trial_free(&t);
    }
    for (int64_t i = 0; i < size; i++) {
        left += (y[i] - y[size + i]) * (y[i] - y[size + i]);
        norm += y[i] * y[i];
    }
    free(y);
    return left <= 1e-24 * norm;
}

/* Every change that makes a difference is named, or another that makes the same of this problem. */
static void expect_all_named(atn_operator op, int variant, result_kind kind)
{
    atn_context *context = make_context();
    subject s = problem_of(op, variant, ATN_F64);
    int count, named = 0;
    hypothesis *all = hypotheses_of(&s, kind, &count);
    result_verdict v = wanted_of(context, &s, kind);
    for (int i = 0; i < count; i++) {
        char *own = hypothesis_text(&all[i], &s);
        bool step = strncmp(own, "iterations=", 11) == 0 && all[i].value % 6 != 0;
        bool fit = hypothesis_numbers(&all[i]) == 1; /* to what is judged: nothing yet */
        char *said = step || fit ? NULL : diagnose_change(context, &s, &all[i], &v);
        bool good = !said || strcmp(own, said) == 0;
        for (int j = 0; j < count && !good; j++) {
            char *other = hypothesis_text(&all[j], &s);
            good = strcmp(other, said) == 0 && are_equivalent(context, &s, &all[i], &all[j]);
            free(other);
        }
        cr_expect(good, "%s, %s: %s is taken for %s", attention_case_label(&s.c), result_name(kind),
                  own, said);
        named += said != NULL;
        free(said);
        free(own);
    }
    cr_expect(named >= 5, "%s: only %d changes make a difference", attention_case_label(&s.c),
              named);
    result_verdict_free(&v);
    free(all);
    attention_case_free(&s.c);
    atn_context_free(context);
}

Test(check, every_mistake_of_soft_is_named)
{
    expect_all_named(ATN_SOFT, 1, RESULT_OUTPUT);
}

Test(check, every_mistake_of_softpp_is_named)
{
    expect_all_named(ATN_SOFTPP, 0, RESULT_OUTPUT);
}

Test(check, every_mistake_of_the_others_is_named)
{
    for (int op = ATN_GAUSSIAN; op < ATN_OPERATOR_COUNT; op++)
        expect_all_named((atn_operator)op, 0, RESULT_OUTPUT);
}

/* Whether one head of a changed problem, and rows of it where they can be kept, are those of all.
 * Returns whether they were kept. */
static bool expect_head_of_all(atn_context *context, const subject *s, const hypothesis *h,
                               int64_t head, int64_t rows)
{
    int64_t size = result_size(&s->judged, h->kind), n = result_rows(&s->judged, h->kind);
    int64_t cols = result_cols(&s->judged, h->kind);
    double *all = must_allocate((size_t)(size + n * cols), sizeof *all), *one = all + size;
    double left = 0, norm = 0;
    trial t = trial_start(s, h->kind), part = trial_start(s, h->kind);
    /* what is fitted needs a result to be fitted to */
    bool kept = !hypothesis_is_of_result(h) && !hypothesis_numbers(h) && trial_change(&t, h) &&
                trial_change(&part, h) &&
                trial_answer(context, &t, ATN_F64, ATN_STORAGE_NATIVE, all) >= 0 &&
                trial_keep_head(&part, head) && (rows == n || trial_keep_rows(&part, rows));
    if (kept && trial_answer(context, &part, ATN_F64, ATN_STORAGE_NATIVE, one) >= 0)
        for (int64_t i = 0; i < rows * cols; i++) {
            double want = all[(head * n + i / cols * n / rows) * cols + i % cols];
            left += (one[i] - want) * (one[i] - want);
            norm += want * want;
        }
    char *text = hypothesis_text(h, s);
    cr_expect(!(left > 1e-24 * norm), "%s %s: %s: head %d alone is another by %g",
              attention_case_label(&s->c), result_name(h->kind), text, (int)head,
              sqrt(left / norm));
    free(text);
    trial_free(&part), trial_free(&t);
    free(all);
    return kept;
}

Test(check, one_head_of_a_trial_is_that_of_all)
{
    static const result_kind kinds[] = {RESULT_OUTPUT, RESULT_TOKENS};
    atn_context *context = make_context();
    for (int i = 0; i < 2 * ATN_OPERATOR_COUNT; i++) {
        subject s = problem_of((atn_operator)(i / 2), i / 2 == ATN_SOFTPP, ATN_F64);
        int count, kept = 0, of_some = 0;
        hypothesis *all = hypotheses_of(&s, kinds[i % 2], &count);
        for (int j = 0; j < count; j++) {
            kept += expect_head_of_all(context, &s, &all[j], j % HEADS, TOKENS);
            of_some += expect_head_of_all(context, &s, &all[j], j % HEADS, 3);
        }
        bool by_rows = i == 2 * ATN_SOFTMAX || i == 2 * ATN_GAUSSIAN;
        cr_expect(!by_rows || of_some >= 5, "%s: only %d are of some rows",
                  attention_case_label(&s.c), of_some);
        cr_expect(kept >= 5 || i / 2 == ATN_NYSTROMFORMER, "%s: only %d are of one head",
                  attention_case_label(&s.c), kept);
        free(all);
        attention_case_free(&s.c);
    }
    atn_context_free(context);
}

/* Of many tokens hypotheses are tried on a part, and what that finds is found on all. */
Test(check, mistakes_of_many_tokens_are_named)
{
    static const char mistake[] = "logits not scaled";
    attention_choice choice = {.op = ATN_SOFTMAX,
                               .dtype = ATN_F32,
                               .shape = {1, HEADS, 2304, WIDTH, WIDTH, 0},
                               .cross = true,
                               .seed = 3};
    atn_context *context = make_context();
    attention_case c = attention_case_make(&choice);
    c.reference.dtype = ATN_F64;
    subject s = {.c = c, .judged = c, .most_work = 1};
    subject_claim(&s, ATN_F32);
    result_verdict v = wanted_of(context, &s, RESULT_OUTPUT);
    int count;
    hypothesis *all = hypotheses_of(&s, RESULT_OUTPUT, &count);
    for (int i = 0; i < count; i++) {
        char *own = hypothesis_text(&all[i], &s);
        if (strcmp(own, mistake) == 0) {
            char *said = diagnose_change(context, &s, &all[i], &v);
            cr_expect(said && strcmp(said, mistake) == 0, "%s", said ? said : "not made");
            free(said);
        }
        free(own);
    }
    free(all);
    result_verdict_free(&v);
    attention_case_free(&s.c);
    atn_context_free(context);
}

/* What a change is called, where it is the only one of its kind. */
static void expect_named(atn_operator op, int variant, const char *name)
{
    atn_context *context = make_context();
    subject s = problem_of(op, variant, ATN_F64);
    int count;
    bool found = false;
    hypothesis *all = hypotheses_of(&s, RESULT_OUTPUT, &count);
    result_verdict v = wanted_of(context, &s, RESULT_OUTPUT);
    for (int i = 0; i < count; i++) {
        char *own = hypothesis_text(&all[i], &s);
        if (strcmp(own, name) == 0) {
            char *said = diagnose_change(context, &s, &all[i], &v);
            cr_expect(said && strcmp(said, name) == 0, "%s: %s", name, said ? said : "not made");
            free(said);
            found = true;
        }
        free(own);
    }
    cr_expect(found, "no hypothesis '%s'", name);
    result_verdict_free(&v);
    free(all);
    attention_case_free(&s.c);
    atn_context_free(context);
}

Test(check, mistakes_have_names)
{
    static const struct {
        atn_operator op;
        int variant;
        const char *name;
    } rows[] = {
        {ATN_SOFT, 0, "variant soft/code"},
        {ATN_SOFT, 1, "iterations=6"},
        {ATN_SOFT, 1, "scale 1/(2 sqrt(heads d)), of the embedding"},
        {ATN_SOFT, 1, "landmarks: the first tokens"},
        {ATN_SOFT, 1, "landmarks not scaled by d^-1/4, as in published code"},
        {ATN_SOFTPP, 0, "no normalisation by D"},
        {ATN_SOFTPP, 0, "D^-1 A+ D^-1: no square root of D"},
        {ATN_SOFTPP, 0, "(D^-1/2 A D^-1/2)+: normalised before it is inverted"},
        {ATN_SIMA, 0, "Q and K normalised over channels, not over tokens"},
        {ATN_SIMA, 0, "variant sima/l2"},
        {ATN_XNORM, 0, "variant xnorm/port"},
        {ATN_XNORM, 0, "gamma ignored"},
        {ATN_SOFTMAX, 0, "variant softmax/causal"},
        {ATN_SOFTMAX, 0, "logits scaled by 1/d: no square root, or scaled twice"},
        {ATN_SOFTMAX, 0, "output laid out as batch x tokens x heads x width"},
        {ATN_SOFTMAX, 0, "output in Fortran order"},
        {ATN_GAUSSIAN, 0, "queries and keys swapped"},
        {ATN_LINFORMER, 0, "E and F swapped"},
        {ATN_XCA, 0, "divided by tau"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_named(rows[i].op, rows[i].variant, rows[i].name);
}

/* The first finding about an output; to be freed. */
static char *first_finding_on(atn_context *context, const subject *s, result_kind kind,
                              bool *explains)
{
    result_verdict v;
    finding findings[MOST_FINDINGS];
    cr_assert_eq(judge_result(context, s, kind, &v), EXIT_PASS);
    int count = diagnose(context, s, kind, &v, findings);
    char *text = must_format("%s", count ? findings[0].text : "nothing");
    *explains = count && findings[0].explains;
    while (count > 0)
        free(findings[--count].text);
    result_verdict_free(&v);
    return text;
}

static char *first_finding(atn_context *context, const subject *s, bool *explains)
{
    return first_finding_on(context, s, RESULT_OUTPUT, explains);
}

/* Mistakes made here, without the hypotheses' own code. */
static void scale_of(subject *s, double *y, double scale)
{
    s->c.reference.scale = ATN_SCALE_VALUE;
    s->c.reference.scale_value = scale;
    cr_assert_eq(answer_exact(s, RESULT_OUTPUT, y), ATN_OK);
}

static void no_root_scale(subject *s, double *y)
{
    scale_of(s, y, 1.0 / (2 * WIDTH));
}

static void no_half_scale(subject *s, double *y)
{
    scale_of(s, y, 1 / sqrt(WIDTH));
}

static void embedding_scale(subject *s, double *y)
{
    scale_of(s, y, 1 / (2 * sqrt(HEADS * WIDTH)));
}

static void no_root_logits(subject *s, double *y)
{
    s->c.reference.logit_scale = 1.0 / WIDTH;
    cr_assert_eq(answer_exact(s, RESULT_OUTPUT, y), ATN_OK);
}

static void first_tokens(subject *s, double *y)
{
    s->c.reference.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 4};
    cr_assert_eq(answer_exact(s, RESULT_OUTPUT, y), ATN_OK);
}

static void strided_tokens(subject *s, double *y)
{
    static const int64_t indices[] = {0, 4, 8, 12};
    s->c.reference.sampling =
        (atn_sampling){.kind = ATN_SAMPLING_INDICES, .count = 4, .indices = indices};
    cr_assert_eq(answer_exact(s, RESULT_OUTPUT, y), ATN_OK);
}

/* Y of heads, tokens, width as tokens, heads, width. */
static void swap_layout(subject *s, double *y)
{
    double x[HEADS * TOKENS * WIDTH];
    memcpy(x, y, sizeof x);
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < TOKENS; i++)
            memcpy(y + (i * HEADS + h) * WIDTH, x + (h * TOKENS + i) * WIDTH, WIDTH * sizeof *y);
}

static void transpose_heads(subject *s, double *y)
{
    double x[HEADS * TOKENS * WIDTH];
    memcpy(x, y, sizeof x);
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < TOKENS; i++)
            for (int c = 0; c < WIDTH; c++)
                y[(h * WIDTH + c) * TOKENS + i] = x[(h * TOKENS + i) * WIDTH + c];
}

static void keep_queries(subject *s, double *y)
{
    for (int i = 0; i < HEADS * TOKENS; i++) {
        double norm = 0;
        for (int c = 0; c < WIDTH; c++)
            norm += s->c.q[i * WIDTH + c] * s->c.q[i * WIDTH + c];
        for (int c = 0; c < WIDTH; c++)
            y[i * WIDTH + c] *= sqrt(norm);
    }
}

/* Rows of Q and K of l1 norm 1, not columns. */
static void rows_of_norm_1(subject *s, double *y)
{
    double *const both[] = {s->c.q, s->c.k};
    double kept[2][HEADS * TOKENS * WIDTH];
    for (int x = 0; x < 2; x++) {
        memcpy(kept[x], both[x], sizeof kept[x]);
        for (int i = 0; i < HEADS * TOKENS; i++) {
            double norm = 0;
            for (int c = 0; c < WIDTH; c++)
                norm += fabs(both[x][i * WIDTH + c]);
            for (int c = 0; c < WIDTH; c++)
                both[x][i * WIDTH + c] /= norm;
        }
    }
    s->c.reference.sima.norm = ATN_SIMA_NONE;
    cr_assert_eq(answer_exact(s, RESULT_OUTPUT, y), ATN_OK);
    for (int x = 0; x < 2; x++)
        memcpy(both[x], kept[x], sizeof kept[x]);
}

/* Head 1's output by head 0's keys and values as well: what its accumulator still holds. */
static void keep_head_0(subject *s, double *y)
{
    enum { SIZE = TOKENS * WIDTH };
    double more[HEADS * SIZE], k[HEADS * SIZE], v[HEADS * SIZE];
    subject other = *s;
    for (int i = 0; i < HEADS * SIZE; i++) {
        k[i] = s->c.k[i % SIZE];
        v[i] = s->c.v[i % SIZE];
    }
    other.c.k = k, other.c.v = v;
    cr_assert_eq(answer_exact(&other, RESULT_OUTPUT, more), ATN_OK);
    for (int i = SIZE; i < HEADS * SIZE; i++)
        y[i] += more[i];
}

/* gamma^2 becomes gamma. */
static void gamma_once(subject *s, double *y)
{
    const double *gamma = s->c.reference.xnorm.gamma.data;
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        y[i] /= gamma[i / (TOKENS * WIDTH)];
}

static void triple(subject *s, double *y)
{
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        y[i] *= 3;
}

Test(check, mistakes_made_by_hand_are_named)
{
    static const struct {
        atn_operator op;
        void (*make)(subject *s, double *y);
        const char *name;
    } rows[] = {
        {ATN_GAUSSIAN, no_root_scale, "scale 1/(2 d): no square root, or scaled twice"},
        {ATN_SOFT, no_half_scale, "scale 1/sqrt(d), without the half"},
        {ATN_RFF, embedding_scale, "scale 1/(2 sqrt(heads d)), of the embedding"},
        {ATN_SOFTMAX, no_root_logits, "logits scaled by 1/d: no square root, or scaled twice"},
        {ATN_SOFTPP, first_tokens, "landmarks: the first tokens"},
        {ATN_SOFT, strided_tokens, "landmarks: every n/m-th token"},
        {ATN_ELU, swap_layout, "output laid out as batch x tokens x heads x width"},
        {ATN_LSH, transpose_heads, "output transposed: width x tokens"},
        {ATN_XNORM, keep_queries, "Q not normalised"},
        {ATN_SIMA, rows_of_norm_1, "Q and K normalised over channels, not over tokens"},
        {ATN_SIMA, keep_head_0, "the accumulator still holds the head before"},
        {ATN_XNORM, gamma_once, "gamma applied once, not to Q and to K^T V"},
        {ATN_EFFICIENT, triple, "output multiplied by a constant, 3"},
    };
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        subject s = problem_of(rows[i].op, 0, ATN_F64), claimed = s;
        bool explains;
        rows[i].make(&s, claimed.results[RESULT_OUTPUT] = give_output(&s));
        char *text = first_finding(context, &claimed, &explains);
        cr_expect(explains && strcmp(text, rows[i].name) == 0, "%s: %s", rows[i].name, text);
        free(text);
        release(&s);
    }
    atn_context_free(context);
}

/* A channel of zeros, and no epsilon. */
Test(check, what_makes_nan_is_named)
{
    static const atn_operator operators[] = {ATN_SIMA, ATN_XCA};
    atn_context *context = make_context();
    for (size_t i = 0; i < 2; i++) {
        subject s = problem_of(operators[i], 0, ATN_F32);
        int64_t size = result_size(&s.judged, RESULT_OUTPUT);
        result_verdict v;
        finding findings[MOST_FINDINGS];
        s.c.reference.sima.epsilon = s.c.reference.xca.epsilon = 1e-6;
        s.judged = s.c;
        for (int64_t j = 0; j < attention_case_queries(&s.c); j += WIDTH)
            s.c.q[j] = s.c.k[j] = 0;
        double *y = s.results[RESULT_OUTPUT] = must_allocate((size_t)size, sizeof *y);
        for (int64_t j = 0; j < size; j++)
            y[j] = NAN;
        cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
        cr_expect_eq(v.verdict, REF_FAIL);
        int count = explain_result(context, &s, RESULT_OUTPUT, &v, findings);
        cr_expect(count && strncmp(findings[0].text, "epsilon forgotten", 17) == 0, "%s",
                  count ? findings[0].text : "nothing");
        while (count > 0)
            free(findings[--count].text);
        result_verdict_free(&v);
        release(&s);
    }
    atn_context_free(context);
}

/* What --mistake names: a description that no known mistake has, and a result. */
Test(check, mistakes_of_ones_own_are_named)
{
    enum { SIZE = HEADS * TOKENS * WIDTH };
    static double given[SIZE], changed[SIZE];
    static char names[][8] = {"result", "epsilon"};
    subject s = problem_of(ATN_SIMA, 0, ATN_F32), other = s;
    double *y = give_output(&s);
    own_mistake mistakes[] = {{.name = names[0], .results = {given}},
                              {.name = names[1], .changed = true, .reference = s.c.reference}};
    other.c.reference.sima.epsilon = mistakes[1].reference.sima.epsilon = 12;
    cr_assert_eq(answer_exact(&other, RESULT_OUTPUT, changed), ATN_OK);
    for (int i = 0; i < SIZE; i++)
        given[i] = i % 3 ? y[i] : -y[i];
    static const struct {
        const double *output;
        bool reversed, own; /* tokens are; the mistakes are known */
        const char *text;
    } rows[] = {
        {given, false, true, "result"},
        {given, false, false, NULL},
        {changed, false, true, "epsilon"},
        {changed, false, false, "Q and K: norms are at least epsilon, 12"},
        {given, true, true, "result and tokens in reverse order"},
        {changed, true, true, "epsilon and tokens in reverse order"},
    };
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool explains;
        s.mistakes = mistakes;
        s.mistake_count = rows[i].own ? 2 : 0;
        for (int j = 0; j < SIZE; j++) {
            int row = j / WIDTH % TOKENS, from = rows[i].reversed ? TOKENS - 1 - row : row;
            y[j] = rows[i].output[j + (from - row) * WIDTH];
        }
        char *text = first_finding(context, &s, &explains);
        cr_expect(rows[i].text ? explains && strcmp(text, rows[i].text) == 0 : !explains,
                  "row %zu: '%s'", i, text);
        free(text);
    }
    s.mistake_count = 0;
    release(&s);
    atn_context_free(context);
}

/* One row for all tokens says nothing about them, but a mistake may give just that. */
Test(check, a_mistake_that_says_nothing_about_tokens_is_named)
{
    enum { SIZE = HEADS * TOKENS * WIDTH };
    static double given[SIZE];
    static char name[] = "mean";
    atn_context *context = make_context();
    subject s = problem_of(ATN_SIMA, 0, ATN_F32);
    double *y = give_output(&s);
    own_mistake mistake = {.name = name, .results = {given}};
    for (int i = 0; i < SIZE; i++)
        given[i / (TOKENS * WIDTH) * TOKENS * WIDTH + i % WIDTH] += y[i] / TOKENS;
    for (int i = 0; i < SIZE; i++)
        given[i] = given[i / (TOKENS * WIDTH) * TOKENS * WIDTH + i % WIDTH];
    memcpy(y, given, sizeof given);
    s.mistakes = &mistake;
    s.mistake_count = 1;
    bool explains;
    char *text = first_finding(context, &s, &explains);
    cr_expect(explains && strcmp(text, name) == 0, "'%s'", text);
    free(text);
    s.mistake_count = 0;
    release(&s);
    atn_context_free(context);
}

/* elu + 1 with another alpha where x < 0: in size what sums in bf16 make, but no rounding. */
Test(check, an_error_with_a_structure_is_not_said_to_be_of_sums)
{
    enum { LENGTH = 88 };
    atn_context *context = make_context();
    attention_choice choice = {.op = ATN_ELU,
                               .dtype = ATN_F32,
                               .shape = {1, HEADS, LENGTH, WIDTH, WIDTH, 0},
                               .cross = true,
                               .seed = 3};
    attention_case c = attention_case_make(&choice);
    c.reference.dtype = ATN_F64;
    subject s = {.c = c, .judged = c};
    subject_claim(&s, ATN_F32);
    static double kept[2][HEADS * LENGTH * WIDTH];
    double *const both[] = {s.c.q, s.c.k};
    for (int x = 0; x < 2; x++)
        for (int i = 0; i < HEADS * LENGTH * WIDTH; i++) {
            kept[x][i] = both[x][i];
            /* phi of it is 1 + (exp(2 x) - 1) / 2 */
            if (both[x][i] < 0)
                both[x][i] = log(0.5 + exp(2 * both[x][i]) / 2);
        }
    give_output(&s);
    for (int x = 0; x < 2; x++)
        memcpy(both[x], kept[x], sizeof kept[x]);
    result_verdict v;
    finding findings[MOST_FINDINGS];
    cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
    for (int count = diagnose(context, &s, RESULT_OUTPUT, &v, findings); count > 0;) {
        cr_expect(!strstr(findings[--count].text, "sums in"), "%s", findings[count].text);
        free(findings[count].text);
    }
    result_verdict_free(&v);
    release(&s);
    atn_context_free(context);
}

Test(check, pairs_and_types_are_found)
{
    atn_context *context = make_context();
    bool explains;
    subject s = problem_of(ATN_SIMA, 0, ATN_F64), other = s;
    double *y = give_output(&s);
    other.c.reference.sima.norm = ATN_SIMA_NONE;
    double *q = other.c.q;
    other.c.q = other.c.k;
    other.c.k = q;
    cr_assert_eq(answer_exact(&other, RESULT_OUTPUT, y), ATN_OK);
    char *text = first_finding(context, &s, &explains);
    cr_expect(explains && strstr(text, "variant sima/none and queries and keys swapped"), "%s",
              text);
    free(text);
    cr_assert(answer_library(context, &s, ATN_F32, ATN_STORAGE_BF16, RESULT_OUTPUT, y) >= 0);
    text = first_finding(context, &s, &explains);
    cr_expect(explains && strcmp(text, "stored in bf16") == 0, "%s", text);
    free(text);
    cr_assert(answer_library(context, &s, ATN_F32, ATN_STORAGE_TF32, RESULT_OUTPUT, y) >= 0);
    text = first_finding(context, &s, &explains);
    cr_expect(explains && strcmp(text, "stored in f16") == 0, "%s", text);
    free(text);
    cr_assert(answer_library(context, &s, ATN_F32, ATN_STORAGE_NATIVE, RESULT_OUTPUT, y) >= 0);
    text = first_finding(context, &s, &explains);
    cr_expect(explains && strcmp(text, "stored in f32") == 0, "%s", text);
    free(text);
    release(&s);
    atn_context_free(context);
}

/* The library is given what the storage holds, not what the file does. */
Test(check, inputs_are_rounded_to_the_storage)
{
    atn_context *context = make_context();
    subject s = problem_of(ATN_SOFTMAX, 0, ATN_BF16);
    int64_t size = result_size(&s.judged, RESULT_OUTPUT);
    double *y = give_output(&s), *again = must_allocate((size_t)size, sizeof *again);
    double *const inputs[] = {s.c.q, s.c.k, s.c.v};
    cr_expect_eq(subject_unit(&s), 0x1p-8);
    cr_assert_eq(answer_library(context, &s, ATN_F32, ATN_STORAGE_BF16, RESULT_OUTPUT, y), ATN_OK);
    for (int x = 0; x < 3; x++)
        for (int i = 0; i < HEADS * TOKENS * WIDTH; i++) {
            float value = (float)inputs[x][i];
            atn_storage_round(ATN_STORAGE_BF16, 1, &value);
            inputs[x][i] = (double)value;
        }
    cr_assert_eq(answer_library(context, &s, ATN_F32, ATN_STORAGE_BF16, RESULT_OUTPUT, again),
                 ATN_OK);
    cr_expect(memcmp(y, again, (size_t)size * sizeof *y) == 0);
    free(again);
    release(&s);
    atn_context_free(context);
}

/* Long tokens close to each other: expanded distances lose digits, as published kernels do. */
Test(check, expanded_distances_are_no_failure)
{
    atn_context *context = make_context();
    subject s = problem_of(ATN_GAUSSIAN, 0, ATN_F32);
    double *y = give_output(&s);
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++) {
        s.c.q[i] = (double)(float)(s.c.q[i] + 100);
        s.c.k[i] = (double)(float)(s.c.k[i] + 100);
    }
    s.c.reference.distance = ATN_DISTANCE_EXPANDED;
    cr_assert_eq(answer_library(context, &s, ATN_F32, ATN_STORAGE_NATIVE, RESULT_OUTPUT, y),
                 ATN_OK);
    s.c.reference.distance = ATN_DISTANCE_DIRECT;
    cr_expect_eq(verdict_of(&s), REF_PASS);
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        y[i] *= 1.01;
    cr_expect_eq(verdict_of(&s), REF_FAIL);
    release(&s);
    atn_context_free(context);
}

/* ---- What bf16 used to let through ---- */

/* An output of SimA, exact and then spoilt, rounded to bf16, which is claimed. named: whether the
 * first finding says so, where it is not null. */
static ref_verdict verdict_in_bf16(void (*spoil)(double *y, int64_t rows, int64_t cols),
                                   const char *named)
{
    enum { ROWS = 256, COLS = 32 };
    attention_choice choice = {.op = ATN_SIMA,
                               .dtype = ATN_F32,
                               .shape = {1, 1, ROWS, COLS, COLS, 0},
                               .cross = true,
                               .seed = 5,
                               .storage = ATN_STORAGE_BF16};
    attention_case c = attention_case_make(&choice);
    c.reference.dtype = ATN_F64;
    c.reference.storage = ATN_STORAGE_NATIVE;
    subject s = {.c = c, .judged = c};
    subject_claim(&s, ATN_BF16);
    double *y = give_output(&s);
    if (spoil)
        spoil(y, ROWS, COLS);
    for (int i = 0; i < ROWS * COLS; i++) {
        float narrow = (float)y[i];
        atn_storage_round(ATN_STORAGE_BF16, 1, &narrow);
        y[i] = (double)narrow;
    }
    ref_verdict verdict = verdict_of(&s);
    if (named) {
        bool explains;
        atn_context *context = make_context();
        char *text = first_finding(context, &s, &explains);
        cr_expect(explains && strcmp(text, named) == 0, "%s", text);
        free(text);
        atn_context_free(context);
    }
    release(&s);
    return verdict;
}

static void by_1_02(double *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++)
        y[i] *= 1.02;
}

static void channel_by_1_1(double *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 3; i < rows * cols; i += cols)
        y[i] *= 1.1;
}

static void second_rows_by_1_02(double *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++)
        y[i] *= i / cols % 2 ? 1.02 : 1;
}

static void noise_of_2_percent(double *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++)
        y[i] *= 1 + 0.03 * sin(17.0 * (double)i);
}

/* Truncated instead of rounded: next to each other in bf16, but all of them too small. */
static void truncated(double *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++) {
        int exponent;
        double mantissa = frexp(y[i], &exponent);
        y[i] = ldexp(trunc(ldexp(mantissa, 8)), exponent - 8);
    }
}

Test(check, bf16_lets_no_factor_through)
{
    cr_expect_eq(verdict_in_bf16(NULL, NULL), REF_PASS);
    cr_expect_eq(verdict_in_bf16(truncated, "numbers cut off, not rounded to nearest"), REF_FAIL);
    cr_expect_eq(verdict_in_bf16(by_1_02, NULL), REF_FAIL);
    cr_expect_eq(verdict_in_bf16(channel_by_1_1, NULL), REF_FAIL);
    cr_expect_eq(verdict_in_bf16(second_rows_by_1_02, NULL), REF_FAIL);
    cr_expect_eq(verdict_in_bf16(noise_of_2_percent, NULL), REF_FAIL);
}

/* SOFT's inverse leaves less than half of bf16's digits where P is stored in it: good kernels are
 * in f32 between what they read and what they write, and nothing else is excused. */
Test(check, an_inverse_excuses_no_factor_in_bf16)
{
    static const struct {
        double factor;
        ref_verdict verdict;
    } rows[] = {{1, REF_PASS}, {1.01, REF_FAIL}};
    for (int op = 0; op < 2; op++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            attention_choice choice = {.op = op ? ATN_SOFTPP : ATN_SOFT,
                                       .dtype = ATN_F32,
                                       .shape = {1, 2, 64, 8, 8, 0},
                                       .sampling = ATN_SAMPLING_POOL,
                                       .landmarks = 16,
                                       .seed = 3};
            subject s = {.c = attention_case_make(&choice)};
            s.c.reference.dtype = ATN_F64;
            s.judged = s.c;
            subject_claim(&s, ATN_BF16);
            double *y = give_output(&s);
            for (int64_t j = 0; j < result_size(&s.judged, RESULT_OUTPUT); j++) {
                float narrow = (float)(rows[i].factor * y[j]);
                atn_storage_round(ATN_STORAGE_BF16, 1, &narrow);
                y[j] = (double)narrow;
            }
            cr_expect_eq(verdict_of(&s), rows[i].verdict, "%s x %g", attention_case_label(&s.c),
                         rows[i].factor);
            release(&s);
        }
}

/* What is left out of 16384 tokens is within what rounding may do in bf16, and yet seen. */
Test(check, rounding_excuses_no_token_that_is_left_out)
{
    enum { KEYS = 16384 };
    attention_choice choice = {.op = ATN_SIMA,
                               .dtype = ATN_F32,
                               .shape = {1, 1, 64, 8, 8, KEYS},
                               .cross = true,
                               .seed = 2,
                               .storage = ATN_STORAGE_BF16};
    attention_case c = attention_case_make(&choice), without;
    atn_context *context = make_context();
    c.reference.dtype = ATN_F64;
    c.reference.storage = ATN_STORAGE_NATIVE;
    subject s = {.c = c, .judged = c}, spoilt;
    subject_claim(&s, ATN_BF16);
    double *y = s.results[RESULT_OUTPUT] = must_allocate(64 * 8, sizeof *y);
    spoilt = s;
    without = c;
    unsigned char *mask = without.key_mask = must_allocate(KEYS, sizeof *mask);
    memset(mask, 1, KEYS);
    mask[KEYS - 1] = 0;
    without.reference.padding = true;
    spoilt.c = without;
    cr_assert(answer_library(context, &spoilt, ATN_F64, ATN_STORAGE_NATIVE, RESULT_OUTPUT, y) >= 0);
    result_verdict v;
    finding findings[MOST_FINDINGS];
    cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
    cr_expect_neq(v.verdict, REF_FAIL, "%s %g", v.heads[0].rule, v.heads[0].ratio);
    int count = explain_result(context, &s, RESULT_OUTPUT, &v, findings);
    cr_expect_eq(v.verdict, REF_FAIL);
    cr_expect(count && strcmp(findings[0].text, "left out: the last token") == 0, "%s",
              count ? findings[0].text : "nothing");
    while (count > 0)
        free(findings[--count].text);
    result_verdict_free(&v);
    free(mask);
    free(y);
    attention_case_free(&s.c);
    atn_context_free(context);
}

/* One column that is 2 % off is as far from the answer as bf16 would be, but is not like it. */
Test(check, a_type_explains_only_what_has_no_structure)
{
    atn_context *context = make_context();
    subject s = problem_of(ATN_SIMA, 0, ATN_F32);
    double *y = give_output(&s);
    for (int i = 3; i < HEADS * TOKENS * WIDTH; i += WIDTH)
        y[i] *= 1.02;
    bool explains;
    char *text = first_finding(context, &s, &explains);
    cr_expect(explains && strstr(text, "each column (channel) multiplied by a factor of its own"),
              "%s", text);
    free(text);
    /* nor is an error that is too small for it */
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        y[i] = 0;
    cr_assert_eq(answer_exact(&s, RESULT_OUTPUT, y), ATN_OK);
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        y[i] *= 1 + 1e-5 * sin(17.0 * i);
    result_verdict v;
    finding findings[MOST_FINDINGS];
    cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
    for (int count = diagnose(context, &s, RESULT_OUTPUT, &v, findings); count > 0;) {
        count--;
        cr_expect(!strstr(findings[count].text, "in bf16"), "%s", findings[count].text);
        free(findings[count].text);
    }
    result_verdict_free(&v);
    release(&s);
    atn_context_free(context);
}

/* The last rows alone, stored in bf16, err as much as computing in f16 would, but that would change
 * the other rows, too. */
Test(check, a_type_explains_no_error_of_a_few_rows)
{
    atn_context *context = make_context();
    for (int wrong = 3; wrong <= TOKENS / 2; wrong++) {
        subject s = problem_of(ATN_SIMA, 0, ATN_F32);
        double *y = give_output(&s);
        for (int i = 0; i < HEADS * TOKENS * WIDTH; i++) {
            float value = (float)y[i];
            atn_storage_round(ATN_STORAGE_BF16, 1, &value);
            y[i] = i / WIDTH % TOKENS >= TOKENS - wrong ? (double)value : y[i];
        }
        bool explains;
        char *text = first_finding(context, &s, &explains);
        cr_expect(!explains, "%d rows: %s", wrong, text);
        free(text);
        release(&s);
    }
    atn_context_free(context);
}

/* Whether any finding names f16. */
static bool names_f16(atn_context *context, const subject *s)
{
    result_verdict v;
    finding findings[MOST_FINDINGS];
    bool named = false;
    cr_assert_eq(judge_result(context, s, RESULT_OUTPUT, &v), EXIT_PASS);
    cr_expect_eq(v.verdict, REF_FAIL);
    for (int count = diagnose(context, s, RESULT_OUTPUT, &v, findings); count > 0;) {
        named |= strstr(findings[--count].text, "f16") && !strstr(findings[count].text, "bf16");
        free(findings[count].text);
    }
    result_verdict_free(&v);
    return named;
}

/* The least and the largest `stages` of the heads of a result in bf16, of 88 tokens. */
static void find_stages(atn_operator op, const char *variant, result_kind kind, double to[2])
{
    attention_choice choice = {.op = op,
                               .dtype = ATN_F32,
                               .shape = {1, 4, 88, 8, 8, 0},
                               .cross = true,
                               .sampling = ATN_SAMPLING_POOL,
                               .landmarks = 16,
                               .seed = 2};
    while (strcmp(atn_operator_get(op)->variants[choice.variant].name, variant) != 0)
        choice.variant++;
    attention_case c = attention_case_make(&choice);
    c.reference.dtype = ATN_F64;
    subject s = {.c = c, .judged = c, .grad_output = c.dout};
    atn_context *context = make_context();
    result_verdict v;
    result_group g = group_of_one(kind, &v);
    subject_claim(&s, ATN_BF16);
    cr_assert_eq(find_wanted(context, &s, &g), EXIT_PASS);
    to[0] = INFINITY, to[1] = 0;
    for (int64_t i = 0; i < result_heads(&s.judged, kind); i++) {
        yardstick y = head_yardstick(&s, kind, &v, i);
        to[0] = fmin(to[0], y.stages), to[1] = fmax(to[1], y.stages);
    }
    result_verdict_free(&v);
    atn_context_free(context);
    attention_case_free(&c);
}

/* Nystromformer's inverse magnifies what is stored between inputs and result, and so do gradients
 * of elu's tokens, a small difference of what the numerator and the denominator make; SimA does not
 * and its gradients are made of four arrays. */
Test(check, what_is_stored_in_between_counts_for_what_it_makes)
{
    double stages[2];
    find_stages(ATN_NYSTROMFORMER, "exact", RESULT_OUTPUT, stages);
    cr_expect(stages[0] > 2 && stages[1] < 32, "%g to %g", stages[0], stages[1]);
    find_stages(ATN_NYSTROMFORMER, "exact", RESULT_TOKENS, stages);
    cr_expect(stages[0] > 2 && stages[1] < 64, "%g to %g", stages[0], stages[1]);
    find_stages(ATN_ELU, atn_operator_get(ATN_ELU)->variants[0].name, RESULT_TOKENS, stages);
    cr_expect(stages[0] > 2.5 && stages[1] < 16, "%g to %g", stages[0], stages[1]);
    find_stages(ATN_SIMA, "code", RESULT_OUTPUT, stages);
    cr_expect(stages[0] == 1 && stages[1] == 1, "%g to %g", stages[0], stages[1]);
    find_stages(ATN_SIMA, "code", RESULT_TOKENS, stages);
    cr_expect(stages[0] >= 2 && stages[1] < 3, "%g to %g", stages[0], stages[1]);
}

/* Roundings in an inverse are independent: what they make in f32 is less than V in f16 does. */
Test(check, an_inverse_does_not_excuse_values_in_f16)
{
    atn_context *context = make_context();
    attention_choice choice = {.op = ATN_SOFT,
                               .variant = 1,
                               .dtype = ATN_F32,
                               .shape = {1, HEADS, 256, 32, 32, 0},
                               .sampling = ATN_SAMPLING_POOL,
                               .landmarks = 16,
                               .seed = 3};
    attention_case c = attention_case_make(&choice);
    int64_t count = attention_case_values(&c);
    double *v = must_allocate((size_t)count, sizeof *v);
    c.reference.dtype = ATN_F64;
    subject s = {.c = c, .judged = c};
    subject_claim(&s, ATN_F32);
    for (int64_t i = 0; i < count; i++) {
        float value = (float)(v[i] = c.v[i]);
        atn_storage_round(ATN_STORAGE_F16, 1, &value);
        c.v[i] = (double)value;
    }
    give_output(&s);
    memcpy(c.v, v, (size_t)count * sizeof *v);
    result_verdict verdict;
    cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &verdict), EXIT_PASS);
    cr_expect_eq(verdict.verdict, REF_FAIL, "error %g, ratio %g",
                 verdict.heads[0].difference.relative_frobenius, verdict.heads[0].ratio);
    result_verdict_free(&verdict);
    free(v);
    release(&s);
    atn_context_free(context);
}

/* The verdict after a diagnosis, the first finding's text or null, to be freed. */
static ref_verdict explained_verdict(atn_context *context, const subject *s, char **text)
{
    result_verdict v;
    finding findings[MOST_FINDINGS];
    cr_assert_eq(judge_result(context, s, RESULT_OUTPUT, &v), EXIT_PASS);
    cr_expect_neq(v.verdict, REF_FAIL, "%s %g", v.heads[0].rule, v.heads[0].ratio);
    int count = explain_result(context, s, RESULT_OUTPUT, &v, findings);
    *text = count ? findings[0].text : NULL;
    while (count > 1)
        free(findings[--count].text);
    ref_verdict verdict = v.verdict;
    result_verdict_free(&v);
    return verdict;
}

/* SOFT's inverse excuses in f32 what f16 would do to the output; numbers of f16 alone it does not.
 * Rows of V that softmax has chosen are numbers of bf16 where V is. */
Test(check, what_is_stored_in_less_fails)
{
    enum { SIZE = HEADS * TOKENS * WIDTH };
    atn_context *context = make_context();
    char *text;
    subject s = problem_of(ATN_SOFT, 2, ATN_F32);
    for (int i = 0; i < SIZE; i++)
        s.c.q[i] *= 1.0 / 16; /* tokens that are almost equal */
    s.c.reference.inverse = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    s.c.reference.inverse.iterations = 16;
    s.judged = s.c;
    double *y = give_output(&s);
    cr_expect_eq(explained_verdict(context, &s, &text), REF_PASS, "as it is");
    free(text);
    for (int i = 0; i < SIZE; i++) {
        float value = (float)y[i];
        atn_storage_round(ATN_STORAGE_F16, 1, &value);
        y[i] = (double)value;
    }
    cr_expect_eq(explained_verdict(context, &s, &text), REF_FAIL);
    cr_expect(text && strcmp(text, "stored in f16") == 0, "%s", text ? text : "nothing");
    free(text);
    release(&s);
    s = problem_of(ATN_SOFTMAX, 0, ATN_F32);
    for (int i = 0; i < SIZE; i++) {
        float value = (float)s.c.v[i];
        atn_storage_round(ATN_STORAGE_BF16, 1, &value);
        s.c.v[i] = (double)value;
        s.c.q[i] *= 1e5;
    }
    y = give_output(&s);
    for (int i = 0; i < SIZE; i++)
        y[i] = (double)(float)y[i];
    cr_expect_eq(explained_verdict(context, &s, &text), REF_PASS, "chosen: %s", text);
    free(text);
    release(&s);
    atn_context_free(context);
}

/* Errors as f16's roundings make them, of inputs that are no numbers of f16. */
Test(check, what_is_computed_in_f16_is_named)
{
    enum { SIZE = HEADS * TOKENS * WIDTH };
    static const atn_operator ops[] = {ATN_SIMA, ATN_SOFTMAX, ATN_ELU};
    atn_context *context = make_context();
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        subject s = problem_of(ops[o], 0, ATN_F32);
        double *const inputs[] = {s.c.q, s.c.k, s.c.v};
        static double kept[3][SIZE];
        for (int x = 0; x < 3; x++)
            for (int i = 0; i < SIZE; i++) {
                kept[x][i] = inputs[x][i];
                inputs[x][i] *= 1 + 0x1p-12 * sin(i * i + x);
            }
        give_output(&s);
        for (int x = 0; x < 3; x++)
            memcpy(inputs[x], kept[x], sizeof kept[x]);
        bool explains;
        char *text = first_finding(context, &s, &explains);
        cr_expect(explains && strncmp(text, "computed in f16", strlen("computed in f16")) == 0,
                  "%s", text);
        free(text);
        release(&s);
    }
    atn_context_free(context);
}

/* A kernel that claims f32, takes its inputs in f16 and gives its sums out in f32: nothing of it is
 * a number of f16. An error of the same size that is a factor, or in one row, is not f16's. */
Test(check, what_is_read_in_f16_is_named_and_nothing_that_is_as_large)
{
    static const atn_operator ops[] = {ATN_SIMA, ATN_SOFTMAX, ATN_ELU};
    enum { SIZE = HEADS * TOKENS * WIDTH };
    atn_context *context = make_context();
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        subject s = problem_of(ops[o], 0, ATN_F32);
        double *const inputs[] = {s.c.q, s.c.k, s.c.v}, *y = give_output(&s);
        double kept[3][SIZE], want[SIZE];
        memcpy(want, y, sizeof want);
        for (int x = 0; x < 3; x++) {
            memcpy(kept[x], inputs[x], sizeof kept[x]);
            for (int i = 0; i < SIZE; i++) {
                float value = (float)inputs[x][i];
                atn_storage_round(ATN_STORAGE_F16, 1, &value);
                inputs[x][i] = (double)value;
            }
        }
        cr_assert_eq(answer_exact(&s, RESULT_OUTPUT, y), ATN_OK);
        for (int x = 0; x < 3; x++)
            memcpy(inputs[x], kept[x], sizeof kept[x]);
        bool explains;
        char *text = first_finding(context, &s, &explains);
        cr_expect(explains && strcmp(text, "Q, K and V read in f16") == 0, "%s", text);
        free(text);
        double error = ref_compare_f64(1, SIZE, y, SIZE, want, SIZE).relative_frobenius;
        for (int i = 0; i < SIZE; i++)
            y[i] = want[i] * (1 + error);
        cr_expect(!names_f16(context, &s), "a factor of %g", 1 + error);
        for (int i = 0; i < SIZE; i++)
            y[i] = want[i] * (i / WIDTH % TOKENS == 5 ? 1 + error * sqrt(TOKENS) : 1);
        cr_expect(!names_f16(context, &s), "a row's factor of %g", 1 + error * sqrt(TOKENS));
        release(&s);
    }
    atn_context_free(context);
}

/* A mistake that nobody knows, of a size that bf16's roundings or its sums have, is explained by
 * neither: a little of V is in the output. */
Test(check, a_type_explains_nothing_by_its_size)
{
    static const atn_operator ops[] = {ATN_SOFTMAX, ATN_SIMA, ATN_XNORM};
    atn_context *context = make_context();
    for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
        for (double part = 1e-3; part < 0.05; part *= 2) {
            subject s = problem_of(ops[op], 0, ATN_F32);
            double *y = give_output(&s), wanted = 0, values = 0;
            for (int i = 0; i < HEADS * TOKENS * WIDTH; i++) {
                wanted += y[i] * y[i];
                values += s.c.v[i] * s.c.v[i];
            }
            for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
                y[i] += part * sqrt(wanted / values) * s.c.v[i];
            bool explains;
            char *text = first_finding(context, &s, &explains);
            cr_expect(!explains, "%s, %g of V: %s", attention_case_label(&s.c), part, text);
            free(text);
            release(&s);
        }
    atn_context_free(context);
}

/* ---- Where ---- */

typedef struct {
    int first_head, heads, first_row, rows, first_col, cols;
    double factor;
} spoilt_block;

/* Head 1 by twice the factor. */
static void spoil(double *y, const spoilt_block *b)
{
    for (int h = b->first_head; h < b->first_head + b->heads; h++)
        for (int row = b->first_row; row < b->first_row + b->rows; row++)
            for (int col = b->first_col; col < b->first_col + b->cols; col++)
                y[(h * TOKENS + row) * WIDTH + col] *= b->factor * (h ? 2 : 1);
}

Test(check, it_is_said_where_a_result_is_wrong)
{
    static const struct {
        spoilt_block block;
        const char *text;
    } rows[] = {
        {{1, 1, 4, 4, 0, WIDTH, 0}, "batch 0, head 1 alone: rows 4 to 7: zero"},
        {{1, 1, 12, 4, 0, WIDTH, 0}, "batch 0, head 1 alone: rows 12 to 15, the last ones: zero"},
        {{0, 1, 5, 1, 0, WIDTH, 2}, "batch 0, head 0 alone: row 5"},
        {{0, 1, 0, TOKENS, 6, 2, 0}, "batch 0, head 0 alone: columns 6 to 7, the last ones: zero"},
        {{0, 2, 0, TOKENS, 3, 1, 1.5}, "2 of 2 heads; in batch 0, head 1 column 3 alone"},
        {{0, 1, 2, 1, 0, WIDTH, NAN}, "batch 0, head 0 alone: row 2: NaN or infinity"},
        {{1, 1, 0, TOKENS, 0, WIDTH, 3}, "batch 0, head 1 alone, the other heads are right"},
        /* half of the rows or columns are a part, more are not */
        {{1, 1, 4, TOKENS / 2, 0, WIDTH, 3}, "batch 0, head 1 alone: rows 4 to 11"},
        {{1, 1, 4, TOKENS / 2 + 1, 0, WIDTH, 3},
         "batch 0, head 1 alone, the other heads are right"},
        {{1, 1, 0, TOKENS, 2, WIDTH / 2, 3}, "batch 0, head 1 alone: columns 2 to 5"},
        {{1, 1, 0, TOKENS, 2, WIDTH / 2 + 1, 3},
         "batch 0, head 1 alone, the other heads are right"},
        {{0, 2, 0, TOKENS, 0, WIDTH, 3}, NULL},
        {{1, 1, 0, TOKENS, 0, WIDTH, 0}, "batch 0, head 1 alone: zero throughout"},
        {{0, 2, 0, TOKENS, 0, WIDTH, 0}, "it is zero throughout: every row and column"},
        {{0, 2, 0, TOKENS, 0, WIDTH, INFINITY},
         "it is NaN or infinity throughout: every row and column"},
    };
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        subject s = problem_of(ATN_SIMA, 0, ATN_F32);
        const spoilt_block *b = &rows[i].block;
        double *y = give_output(&s);
        spoil(y, b);
        result_verdict v;
        cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
        char *text = where_wrong(&s, RESULT_OUTPUT, &v);
        bool same = rows[i].text ? text && strcmp(text, rows[i].text) == 0 : !text;
        cr_expect(same, "'%s', expected '%s'", text ? text : "", rows[i].text ? rows[i].text : "");
        free(text);
        result_verdict_free(&v);
        release(&s);
    }
    atn_context_free(context);
}

/* Noise is everywhere, though some rows have more of it than others: none of them alone is wrong.
 */
Test(check, what_is_wrong_everywhere_has_no_place)
{
    atn_context *context = make_context();
    subject s = problem_of(ATN_SIMA, 0, ATN_BF16);
    double *y = give_output(&s);
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        y[i] *= 1 + (i / WIDTH % 3 == 0 ? 0.06 : 0.02) * sin(i * i);
    result_verdict v;
    cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
    cr_expect_eq(v.verdict, REF_FAIL);
    char *text = where_wrong(&s, RESULT_OUTPUT, &v);
    cr_expect_null(text, "%s", text);
    free(text);
    result_verdict_free(&v);
    release(&s);
    atn_context_free(context);
}

/* A character a cell, lines parted by '/'. */
static char *map_text(const error_map *m)
{
    static const char states[CELL_STATES] = ".?o0N";
    char *text = must_allocate((size_t)(m->down * (m->across + 1) + 1), 1), *at = text;
    for (int64_t i = 0; i < m->down * m->across; i++) {
        if (i > 0 && i % m->across == 0)
            *at++ = '/';
        *at++ = states[m->cells[i].state];
    }
    return text;
}

Test(check, maps_show_where_a_result_is_wrong)
{
    static const struct {
        spoilt_block block;
        int head, most_rows, most_cols;
        const char *text;
        bool uniform;
    } rows[] = {
        {{1, 1, 4, 4, 0, WIDTH, 0}, 1, 4, 4, "..../0000/..../....", false},
        {{1, 1, 4, 4, 0, WIDTH, 0}, 0, 4, 4, "..../..../..../....", true},
        {{0, 1, 5, 1, 0, WIDTH, 2}, 0, 4, 4, "..../oooo/..../....", false},
        {{0, 1, 0, TOKENS, 6, 2, 0}, 0, 3, 5, "...0/...0", false},
        {{0, 1, 2, 1, 3, 1, NAN}, 0, 8, 2, "../N./../../../../../..", false},
        {{0, 1, 2, 1, 3, 1, 0}, 0, 8, 2, "../o./../../../../../..", false},
        {{0, 2, 0, TOKENS, 0, WIDTH, 3}, 1, 2, 2, "oo/oo", true},
        {{0, 2, 0, TOKENS, 0, WIDTH, 0}, 1, 2, 2, "00/00", true},
    };
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        subject s = problem_of(ATN_SIMA, 0, ATN_F32);
        spoil(give_output(&s), &rows[i].block);
        result_verdict v;
        cr_assert_eq(judge_result(context, &s, RESULT_OUTPUT, &v), EXIT_PASS);
        error_map m =
            map_head(&s, RESULT_OUTPUT, &v, rows[i].head, rows[i].most_rows, rows[i].most_cols);
        char *text = map_text(&m);
        cr_expect(m.rows == TOKENS && m.cols == WIDTH &&
                      map_last_row(&m, m.down - 1) == TOKENS - 1 &&
                      map_last_col(&m, m.across - 1) == WIDTH - 1,
                  "%s", text);
        cr_expect_str_eq(text, rows[i].text);
        cr_expect_eq(map_is_uniform(&m), rows[i].uniform, "%s", text);
        free(text);
        map_free(&m);
        error_map heads = map_heads(&s, RESULT_OUTPUT, &v, 4, 4);
        text = map_text(&heads);
        for (int h = 0; h < HEADS; h++)
            cr_expect_eq(text[h] == '.', v.heads[h].verdict == REF_PASS, "head %d: %s", h, text);
        free(text);
        map_free(&heads);
        result_verdict_free(&v);
        release(&s);
    }
    atn_context_free(context);
}

Test(check, levels_of_maps_are_powers_of_ten_below_the_largest)
{
    map_cell cells[] = {
        {CELL_PASSES, 0.5}, {CELL_OVER, 3}, {CELL_OVER, 740}, {CELL_OVER, 7.7e4}, {CELL_PASSES, 1}};
    error_map m = {1, 5, 1, 1, 1, 5, cells};
    map_levels levels = map_levels_of(&m, 3);
    const int want[] = {0, 0, 1, 2};
    cr_expect(levels.count == 3 && levels.over[0] == 1 && levels.over[1] == 700 &&
                  levels.over[2] == 7000,
              "%d: %g %g %g", levels.count, levels.over[0], levels.over[1], levels.over[2]);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(map_level(&levels, cells[i].over), want[i], "%g", cells[i].over);
    cells[2].over = cells[3].over = 15; /* nothing between 1 and what is near the largest */
    cr_expect_eq(map_levels_of(&m, 3).count, 1);
    cells[2].over = 3, cells[3].over = 200; /* 200/100 is twice what passes */
    cr_expect_eq(map_levels_of(&m, 3).count, 3);
    cells[3].over = 199;
    cr_expect_eq(map_levels_of(&m, 3).count, 2);
    cr_expect(map_level(&levels, 700) == 0 && map_level(&levels, 701) == 1);
}

Test(check, maps_are_uniform_within_a_factor_of_100)
{
    map_cell cells[] = {{CELL_OVER, 300}, {CELL_OVER, 3}};
    const error_map m = {1, 2, 1, 1, 1, 2, cells};
    cr_expect(map_is_uniform(&m));
    cells[1].over = 2.99;
    cr_expect(!map_is_uniform(&m));
}

/* A head is over its bound from the first number above 1 on. */
Test(check, heads_of_a_map_pass_up_to_their_bound)
{
    const subject s = {.judged.shape = {1, HEADS, TOKENS, WIDTH, WIDTH, TOKENS}};
    judgement heads[HEADS] = {{.verdict = REF_PASS, .ratio = 1},
                              {.verdict = REF_MARGINAL, .ratio = 1 + 0x1p-52}};
    const result_verdict v = {.heads = heads};
    error_map m = map_heads(&s, RESULT_OUTPUT, &v, 4, 4);
    cr_expect(m.cells[0].state == CELL_PASSES && m.cells[1].state == CELL_OVER);
    map_free(&m);
}

/* As many heads as are listed one by one need no words, if something can be said of all or of none;
 * one more does. */
Test(check, many_heads_are_said_to_be_the_worst)
{
    static const struct {
        int heads, skipped;
        const char *text;
    } cases[] = {
        {16, 0, ""},
        {16, 16, ""},
        {16, 1, "nothing can be said of 1 of 16 heads\n"},
        {17, 0, "the worst 16 of 17 heads\n"},
        {17, 2, "the worst 16 of 17 heads\nnothing can be said of 2 of 17 heads\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        subject s = {.judged.shape = {1, cases[i].heads, TOKENS, WIDTH, WIDTH, TOKENS}};
        judgement heads[17] = {{.verdict = REF_PASS}};
        for (int j = 0; j < cases[i].skipped; j++)
            heads[cases[i].heads - 1 - j].verdict = REF_SKIPPED;
        const result_verdict v = {.heads = heads};
        char *text = heads_text(&s, RESULT_OUTPUT, &v);
        cr_expect_str_eq(text ? text : "", cases[i].text);
        free(text);
    }
}

/* ---- What was read in the place of the inputs ---- */

enum { KEYS = 21 };

static void without_last_keys(subject *s, int count)
{
    static unsigned char mask[KEYS];
    for (int i = 0; i < KEYS; i++)
        mask[i] = i < KEYS - count;
    s->c.key_mask = mask;
    s->c.reference.padding = true;
}

static void without_the_last(subject *s)
{
    without_last_keys(s, 1);
}

static void without_the_tile(subject *s)
{
    without_last_keys(s, KEYS % 16);
}

static void times_of_rows(subject *s, int from, int to, double factor)
{
    for (int i = 0; i < HEADS * KEYS * WIDTH; i++)
        s->c.v[i] *= i / WIDTH % KEYS >= from && i / WIDTH % KEYS < to ? factor : 1;
}

static void product_without_4(subject *s)
{
    times_of_rows(s, KEYS - 4, KEYS, 0);
}

static void first_tile_twice(subject *s)
{
    times_of_rows(s, 0, 16, 2);
}

static void values_of_head_0(subject *s)
{
    memcpy(s->c.v + KEYS * WIDTH, s->c.v, KEYS * WIDTH * sizeof *s->c.v);
}

static void keys_of_head_0(subject *s)
{
    memcpy(s->c.k + KEYS * WIDTH, s->c.k, KEYS * WIDTH * sizeof *s->c.k);
}

static void values_shifted(subject *s)
{
    for (int h = 0; h < HEADS; h++) {
        double *v = s->c.v + h * KEYS * WIDTH;
        memmove(v + WIDTH, v, (KEYS - 1) * WIDTH * sizeof *v);
        memset(v, 0, WIDTH * sizeof *v);
    }
}

static void product_of_4(subject *s)
{
    times_of_rows(s, 0, KEYS - 4, 0);
}

/* Row i of all heads' K and V, one below the other, is what row from(i) was; less than 0: 0. */
static void read_rows(subject *s, int (*from)(int row))
{
    double *both[] = {s->c.k, s->c.v}, was[HEADS * KEYS * WIDTH];
    for (int which = 0; which < 2; which++) {
        memcpy(was, both[which], sizeof was);
        for (int row = 0; row < HEADS * KEYS; row++)
            for (int c = 0; c < WIDTH; c++)
                both[which][row * WIDTH + c] = from(row) < 0 ? 0 : was[from(row) * WIDTH + c];
    }
}

static int next_row(int row)
{
    return row + 1 < HEADS * KEYS ? row + 1 : -1;
}

static int stale_row(int row)
{
    return row % KEYS == KEYS - 1 ? row - 1 : row;
}

static int row_of_tokens_first(int row)
{
    return row % KEYS * HEADS + row / KEYS;
}

static void one_row_too_far(subject *s)
{
    read_rows(s, next_row);
}

static void last_row_stale(subject *s)
{
    read_rows(s, stale_row);
}

static void tokens_first(subject *s)
{
    read_rows(s, row_of_tokens_first);
}

/* Each head's K and V of so many rows: row i is what row from(i) was. */
static void read_more_rows(subject *s, int rows, int (*from)(int row))
{
    static double longer[2][HEADS * 2 * KEYS * WIDTH];
    double **both[] = {&s->c.k, &s->c.v};
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < HEADS * rows * WIDTH; i++) {
            int head = i / WIDTH / rows, row = from(i / WIDTH % rows);
            longer[which][i] = (*both[which])[(head * KEYS + row) * WIDTH + i % WIDTH];
        }
        *both[which] = longer[which];
    }
    s->c.shape.key_tokens = rows;
}

static int row_of_tile_moved_back(int row)
{
    return row < 16 ? row : row - 16 + KEYS - 16;
}

static int row_of_tile_before(int row)
{
    return row < KEYS ? row : row - 16;
}

static void tile_overlaps(subject *s)
{
    read_more_rows(s, 32, row_of_tile_moved_back);
}

static void tile_stale(subject *s)
{
    read_more_rows(s, 32, row_of_tile_before);
}

static void values_tile_again(subject *s)
{
    for (int i = 0; i < HEADS * KEYS * WIDTH; i++)
        s->c.v[i] = i / WIDTH % KEYS < 16 ? s->c.v[i] : s->c.v[i - 16 * WIDTH];
}

static void keys_tail_zero(subject *s)
{
    for (int i = 0; i < HEADS * KEYS * WIDTH; i++)
        s->c.k[i] = i / WIDTH % KEYS < 16 ? s->c.k[i] : 0;
}

static void keys_in_bf16(subject *s)
{
    for (int i = 0; i < HEADS * KEYS * WIDTH; i++) {
        float narrow = (float)s->c.k[i];
        atn_storage_round(ATN_STORAGE_BF16, 1, &narrow);
        s->c.k[i] = (double)narrow;
    }
}

/* Three bits behind the first; from 2^-6 on a step is 2^-9. */
static void values_in_f8(subject *s)
{
    for (int i = 0; i < HEADS * KEYS * WIDTH; i++) {
        double step = 0x1p-9;
        while (fabs(s->c.v[i]) >= 16 * step)
            step *= 2;
        s->c.v[i] = rint(s->c.v[i] / step) * step;
    }
}

static void keys_in_int8(subject *s)
{
    for (int h = 0; h < HEADS; h++) {
        double *k = s->c.k + h * KEYS * WIDTH, most = 0;
        for (int i = 0; i < KEYS * WIDTH; i++)
            most = fmax(most, fabs(k[i]));
        for (int i = 0; i < KEYS * WIDTH; i++)
            k[i] = rint(k[i] / (most / 127)) * (most / 127);
    }
}

static void half_of_the_channels(subject *s)
{
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        s->c.q[i] *= i % WIDTH < WIDTH / 2;
}

/* Pairs of neighbours as complex numbers, times exp(i angle). */
static void turn_rows(double *x, int rows)
{
    for (int i = 0; i < HEADS * rows; i++)
        for (int c = 0; c < WIDTH; c += 2) {
            double angle = i % rows / pow(10000, (double)c / WIDTH), *at = x + i * WIDTH + c;
            double real = at[0] * cos(angle) - at[1] * sin(angle);
            at[1] = at[0] * sin(angle) + at[1] * cos(angle);
            at[0] = real;
        }
}

static void turned_by_positions(subject *s)
{
    turn_rows(s->c.q, TOKENS);
    turn_rows(s->c.k, KEYS);
}

static void divide_rows(double *x, int rows)
{
    for (int i = 0; i < HEADS * rows; i++) {
        double sum = 0;
        for (int c = 0; c < WIDTH; c++)
            sum += x[i * WIDTH + c] * x[i * WIDTH + c];
        for (int c = 0; c < WIDTH; c++)
            x[i * WIDTH + c] /= sqrt(sum);
    }
}

static void divided_by_norms(subject *s)
{
    divide_rows(s->c.q, TOKENS);
    divide_rows(s->c.k, KEYS);
}

static void log2_forgotten(subject *s)
{
    s->c.reference.logit_scale = log(2) / sqrt(WIDTH);
}

Test(check, wrong_inputs_are_named)
{
    static const struct {
        void (*change)(subject *s);
        const char *name;
    } rows[] = {
        {without_the_last, "left out: the last token"},
        {without_the_tile, "left out: the last tile, n mod 16"},
        {product_without_4, "left out of the product alone: the last 4 tokens"},
        {first_tile_twice, "counted twice: the first 16 tokens"},
        {values_of_head_0, "V of head 0 for every head"},
        {keys_of_head_0, "K of head 0 for every head"},
        {values_shifted, "V's rows shifted down by one, the first 0"},
        {product_of_4, "= for +=: the product holds nothing but the last 4 tokens"},
        {one_row_too_far, "K and V read one row too far"},
        {last_row_stale, "K and V of the last token are those of the one before"},
        {tokens_first, "K and V read as batch x tokens x heads x width"},
        {log2_forgotten, "exp2 without the factor log2(e)"},
        {tile_overlaps,
         "counted twice: tokens of the tile before, to make the last one whole (tiles of 16)"},
        {tile_stale,
         "counted twice: tokens of the tile before, to make the last one whole (tiles of 16)"},
        {values_tile_again, "V's second tile is the first again (tiles of 16)"},
        {keys_tail_zero, "K's last rows, which fill no tile, are 0, but count (tiles of 16)"},
        {keys_in_bf16, "K read in bf16"},
        {values_in_f8, "V read in f8 (e4m3)"},
        {keys_in_int8, "K read in int8, a scale for each head"},
        {half_of_the_channels, "the second half of the channels of Q and K left out"},
        {turned_by_positions,
         "Q and K turned by their positions (a rotary embedding of neighbouring channels)"},
        {divided_by_norms, "rows of Q and K divided by their Euclidean norms (a QK norm)"},
    };
    atn_context *context = make_context();
    attention_choice choice = {.op = ATN_SOFTMAX,
                               .dtype = ATN_F32,
                               .shape = {1, HEADS, TOKENS, WIDTH, WIDTH, KEYS},
                               .cross = true,
                               .seed = 3};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        attention_case wrong = attention_case_make(&choice), right = attention_case_make(&choice);
        wrong.reference.dtype = right.reference.dtype = ATN_F64;
        subject s = {.c = wrong, .judged = wrong};
        rows[i].change(&s);
        double *y = give_output(&s);
        s.c = s.judged = right;
        subject_claim(&s, ATN_F64);
        s.results[RESULT_OUTPUT] = y;
        bool explains;
        char *text = first_finding(context, &s, &explains);
        cr_expect(explains && strcmp(text, rows[i].name) == 0, "%s: %s", rows[i].name, text);
        free(text);
        release(&s);
        attention_case_free(&wrong);
    }
    atn_context_free(context);
}

/* ---- Weights ---- */

/* 2^i (1 + f - c) for 2^(i + f): N. N. Schraudolph, A fast, compact approximation of the
 * exponential function, 1999. */
static double fast_exp(double x)
{
    double y = x / log(2), whole = floor(y);
    return ldexp(1 + (y - whole) - 0.0430, (int)whole);
}

/* exp of 10 tanh(x / 10) */
static double capped_exp(double x)
{
    return exp(10 - 20 / (exp(x / 5) + 1));
}

static bool of_whole_blocks(int64_t i, int64_t j)
{
    return j < 48;
}

static bool every_key(int64_t i, int64_t j)
{
    return true;
}

static bool before(int64_t i, int64_t j)
{
    return j <= i;
}

static bool before_by_tiles(int64_t i, int64_t j)
{
    return j / 16 <= i / 16;
}

static bool from_32_on(int64_t i, int64_t j)
{
    return j >= 32;
}

enum { LONGER = 56 };

/* A wrong softmax attention: which keys its sums are over. */
typedef struct {
    bool causal; /* as claimed */
    double (*exponential)(double x);
    bool (*seen)(int64_t i, int64_t j), (*counted)(int64_t i, int64_t j);
    const char *name;
} wrong_softmax;

static void attend_wrongly(const subject *s, const wrong_softmax *how, double *y)
{
    for (int64_t row = 0; row < HEADS * LONGER; row++) {
        int64_t i = row % LONGER, first = row - i;
        double sum = 0;
        for (int64_t j = 0; j < LONGER; j++) {
            double x = 0;
            for (int c = 0; c < WIDTH; c++)
                x += s->c.q[row * WIDTH + c] * s->c.k[(first + j) * WIDTH + c] / sqrt(WIDTH);
            double e = how->exponential(x);
            sum += how->counted(i, j) ? e : 0;
            for (int c = 0; c < WIDTH && how->seen(i, j); c++)
                y[row * WIDTH + c] += e * s->c.v[(first + j) * WIDTH + c];
        }
        for (int c = 0; c < WIDTH; c++)
            y[row * WIDTH + c] /= sum;
    }
}

Test(check, wrong_weights_are_named)
{
    static const wrong_softmax rows[] = {
        {false, fast_exp, every_key, every_key,
         "fast exp without the maximum: 2^i times a polynomial, i rounded down"},
        {true, exp, before, every_key, "causal mask after the division: denominator over all keys"},
        {true, exp, before_by_tiles, before_by_tiles,
         "causal mask by tiles only: all of the diagonal one is seen (blocks of 16)"},
        {false, exp, every_key, from_32_on,
         "denominator of the last block of keys alone (blocks of 32)"},
        {false, exp, every_key, of_whole_blocks,
         "denominator without the last keys, which fill no block (blocks of 16)"},
        {false, capped_exp, every_key, every_key, "logits capped: 10 tanh(x / 10)"},
    };
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        attention_choice choice = {.op = ATN_SOFTMAX,
                                   .dtype = ATN_F32,
                                   .shape = {1, HEADS, LONGER, WIDTH, WIDTH, 0},
                                   .cross = true,
                                   .causal = rows[i].causal,
                                   .seed = 3};
        attention_case c = attention_case_make(&choice);
        c.reference.dtype = ATN_F64;
        subject s = {.c = c, .judged = c};
        subject_claim(&s, ATN_F64);
        double *y = must_allocate(HEADS * LONGER * WIDTH, sizeof *y);
        attend_wrongly(&s, &rows[i], y);
        s.results[RESULT_OUTPUT] = y;
        bool explains;
        char *text = first_finding(context, &s, &explains);
        cr_expect(explains && strcmp(text, rows[i].name) == 0, "%s: %s", rows[i].name, text);
        free(text);
        release(&s);
    }
    atn_context_free(context);
}

/* Heads that were exchanged are not each other's factors. */
Test(check, heads_in_another_order_are_found)
{
    atn_context *context = make_context();
    attention_choice choice = {
        .op = ATN_SIMA, .dtype = ATN_F32, .shape = {1, 3, TOKENS, WIDTH, WIDTH, 0}, .seed = 3};
    attention_case c = attention_case_make(&choice);
    c.reference.dtype = ATN_F64;
    subject s = {.c = c, .judged = c};
    subject_claim(&s, ATN_F64);
    double *y = give_output(&s), kept[TOKENS * WIDTH];
    memcpy(kept, y, sizeof kept);
    memcpy(y, y + TOKENS * WIDTH, sizeof kept);
    memcpy(y + TOKENS * WIDTH, kept, sizeof kept);
    bool explains;
    char *text = first_finding(context, &s, &explains);
    cr_expect(explains && strcmp(text, "heads in another order, or one in another's place") == 0,
              "%s", text);
    free(text);
    release(&s);
    atn_context_free(context);
}

/* ---- Gradients ---- */

/* Of every head, in a type; where narrow types' conditioning allows everything it says so. */
static void expect_told_from_zeros(atn_context *context, const subject *problem, result_kind kind,
                                   const result_verdict *known, atn_dtype claimed)
{
    subject s = *problem;
    int64_t size = result_rows(&s.judged, kind) * result_cols(&s.judged, kind);
    double *zeros = must_allocate((size_t)size, sizeof *zeros);
    bool wide = claimed == ATN_F64 || claimed == ATN_F32;
    subject_claim(&s, claimed);
    result_verdict v, other = *known;
    result_group g = group_of_one(kind, &v), of_known = group_of_one(kind, &other);
    claim_another(context, &s, &of_known, &g);
    for (int64_t i = 0; i < result_heads(&s.judged, kind); i++) {
        yardstick y = head_yardstick(&s, kind, &v, i);
        ref_verdict right = judge_head(&y, &v.bounds[i], y.want).verdict;
        ref_verdict zero = judge_head(&y, &v.bounds[i], zeros).verdict;
        cr_expect(right == REF_PASS || (!wide && right == REF_SKIPPED), "%s %s %s: %s",
                  attention_case_label(&s.c), result_name(kind), atn_dtype_name(claimed),
                  ref_verdict_name(right));
        cr_expect(zero == REF_FAIL || (!wide && zero == REF_SKIPPED), "%s %s %s, zeros: %s",
                  attention_case_label(&s.c), result_name(kind), atn_dtype_name(claimed),
                  ref_verdict_name(zero));
    }
    claim_free(&v);
    free(zeros);
}

Test(check, exact_gradients_pass_and_zeros_fail)
{
    static const atn_dtype all[] = {ATN_F64, ATN_F32, ATN_TF32, ATN_F16, ATN_BF16};
    atn_context *context = make_context();
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int kind = RESULT_TOKENS; kind < RESULT_COUNT; kind++) {
            subject s = problem_of((atn_operator)op, 0, ATN_F64);
            result_verdict v = {.want = NULL};
            if (result_exists(&s.c, (result_kind)kind)) {
                s.results[kind] = must_allocate((size_t)result_size(&s.judged, (result_kind)kind),
                                                sizeof(double));
                cr_assert_eq(judge_result(context, &s, (result_kind)kind, &v), EXIT_PASS);
                for (int i = 0; i < 5; i++)
                    expect_told_from_zeros(context, &s, (result_kind)kind, &v, all[i]);
            }
            result_verdict_free(&v);
            release(&s);
        }
    atn_context_free(context);
}

/* The library's own gradient in f32 passes as f32's. */
Test(check, gradients_of_the_library_pass)
{
    atn_context *context = make_context();
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int kind = RESULT_TOKENS; kind < RESULT_COUNT; kind++) {
            subject s = problem_of((atn_operator)op, 0, ATN_F32);
            if (result_exists(&s.c, (result_kind)kind)) {
                double *y = s.results[kind] =
                    must_allocate((size_t)result_size(&s.judged, (result_kind)kind), sizeof *y);
                cr_assert(answer_library(context, &s, ATN_F32, ATN_STORAGE_NATIVE,
                                         (result_kind)kind, y) >= 0);
                cr_expect_eq(verdict_on(&s, (result_kind)kind), REF_PASS, "%s %s",
                             attention_case_label(&s.c), result_name((result_kind)kind));
            }
            release(&s);
        }
    atn_context_free(context);
}

Test(check, every_mistake_of_a_gradient_of_soft_is_named)
{
    expect_all_named(ATN_SOFT, 1, RESULT_TOKENS);
    expect_all_named(ATN_SOFT, 1, RESULT_VALUES);
}

Test(check, every_mistake_of_a_gradient_of_softpp_is_named)
{
    expect_all_named(ATN_SOFTPP, 0, RESULT_TOKENS);
}

Test(check, every_mistake_of_the_other_gradients_is_named)
{
    for (int op = ATN_GAUSSIAN; op < ATN_OPERATOR_COUNT; op++)
        expect_all_named((atn_operator)op, 0, RESULT_TOKENS);
    expect_all_named(ATN_SIMA, 0, RESULT_KEYS);
    expect_all_named(ATN_SOFTMAX, 0, RESULT_VALUES);
}

/* Mistakes made by hand: dy of a kind is the right one, or what a changed problem has. */
static void no_factor_2(subject *s, double *dy)
{
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        dy[i] /= 2;
}

static void wrong_sign(subject *s, double *dy)
{
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        dy[i] = -dy[i];
}

static void no_logit_scale(subject *s, double *dy)
{
    for (int i = 0; i < HEADS * TOKENS * WIDTH; i++)
        dy[i] *= sqrt(WIDTH);
}

static void values_for_tokens(subject *s, double *dy)
{
    cr_assert_eq(answer_exact(s, RESULT_VALUES, dy), ATN_OK);
}

static void transposed_arriving(subject *s, double *dy)
{
    double x[HEADS * TOKENS * WIDTH], *kept = s->grad_output;
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < TOKENS; i++)
            for (int c = 0; c < WIDTH; c++)
                x[(h * TOKENS + i) * WIDTH + c] = kept[(h * WIDTH + c) * TOKENS + i];
    s->grad_output = x;
    cr_assert_eq(answer_exact(s, RESULT_TOKENS, dy), ATN_OK);
    s->grad_output = kept;
}

static void as_published(subject *s, double *dy)
{
    s->c.reference.gradient = ATN_GRADIENT_CLOSED;
    cr_assert_eq(answer_exact(s, RESULT_TOKENS, dy), ATN_OK);
}

static void through_the_steps(subject *s, double *dy)
{
    s->c.reference.gradient = ATN_GRADIENT_STEPS;
    cr_assert_eq(answer_exact(s, RESULT_TOKENS, dy), ATN_OK);
}

static void queries_alone(subject *s, double *dy)
{
    s->c.k = s->c.q;
    cr_assert_eq(answer_exact(s, RESULT_TOKENS, dy), ATN_OK);
    s->c.k = NULL;
}

static void keys_alone(subject *s, double *dy)
{
    s->c.k = s->c.q;
    cr_assert_eq(answer_exact(s, RESULT_KEYS, dy), ATN_OK);
    s->c.k = NULL;
}

/* L as tokens that nobody differentiates: 4 more of every head, averages of 2 x 2 of 4 x 4. */
static void landmarks_detached(subject *s, double *dy)
{
    enum { MORE = 4, ALL = TOKENS + MORE };
    static double q[HEADS * ALL * WIDTH], v[HEADS * ALL * WIDTH], arriving[HEADS * ALL * WIDTH];
    static const int64_t indices[MORE] = {16, 17, 18, 19};
    subject longer = *s;
    for (int h = 0; h < HEADS; h++) {
        for (int i = 0; i < TOKENS * WIDTH; i++) {
            int at = h * ALL * WIDTH + i, from = h * TOKENS * WIDTH + i, token = i / WIDTH;
            int landmark = token / 8 * 2 + token % 4 / 2;
            q[at] = s->c.q[from], v[at] = s->c.v[from], arriving[at] = s->grad_output[from];
            q[(h * ALL + TOKENS + landmark) * WIDTH + i % WIDTH] += s->c.q[from] / 4;
        }
    }
    longer.c.q = q, longer.c.v = v, longer.grad_output = arriving;
    longer.c.shape.tokens = longer.c.shape.key_tokens = ALL;
    longer.c.reference.sampling =
        (atn_sampling){.kind = ATN_SAMPLING_INDICES, .count = MORE, .indices = indices};
    cr_assert_eq(answer_exact(&longer, RESULT_TOKENS, dy), ATN_OK);
}

/* SimA's gradient by what is normalised, divided by the norms: these taken for constants. */
static void norms_detached(subject *s, double *dy)
{
    enum { SIZE = TOKENS * WIDTH };
    double *const from[] = {s->c.q, s->c.k}, hats[2][HEADS * SIZE], norms[2][HEADS * WIDTH] = {{0}};
    subject plain = *s;
    for (int x = 0; x < 2; x++)
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < HEADS * SIZE; i++) {
                double *norm = &norms[x][i / SIZE * WIDTH + i % WIDTH];
                *norm += pass ? 0 : fabs(from[x][i]);
                hats[x][i] = from[x][i] / *norm;
            }
    plain.c.q = hats[0], plain.c.k = hats[1];
    plain.c.reference.sima.norm = ATN_SIMA_NONE;
    cr_assert_eq(answer_exact(&plain, RESULT_TOKENS, dy), ATN_OK);
    for (int i = 0; i < HEADS * SIZE; i++)
        dy[i] /= norms[0][i / SIZE * WIDTH + i % WIDTH];
}

/* The claim: K = Q where keys are dropped, and an inverse of 4 steps, which has not converged. */
static subject gradient_problem(atn_operator op, atn_gradient gradient, bool self)
{
    subject s = problem_of(op, 0, ATN_F64);
    s.c.reference.gradient = gradient;
    s.c.reference.inverse.iterations = 4;
    if (self)
        s.c.k = NULL;
    s.judged = s.c;
    return s;
}

Test(check, mistakes_of_gradients_made_by_hand_are_named)
{
    static const struct {
        atn_operator op;
        atn_gradient gradient;
        bool self;
        void (*make)(subject *s, double *dy);
        const char *name;
    } rows[] = {
        {ATN_GAUSSIAN, ATN_GRADIENT_STEPS, false, no_factor_2,
         "gradient halved: the 2 of a square's derivative is missing"},
        {ATN_SOFT, ATN_GRADIENT_STEPS, false, wrong_sign, "gradient of the wrong sign"},
        {ATN_SOFTMAX, ATN_GRADIENT_STEPS, false, no_logit_scale,
         "gradient without the factor of the scale"},
        {ATN_ELU, ATN_GRADIENT_STEPS, false, values_for_tokens,
         "the gradient of values in its place"},
        {ATN_SIMA, ATN_GRADIENT_STEPS, false, transposed_arriving,
         "dY transposed: read as width x tokens"},
        {ATN_SOFT, ATN_GRADIENT_STEPS, false, as_published, "gradient=closed"},
        {ATN_SOFT, ATN_GRADIENT_CLOSED, false, through_the_steps, "gradient=steps"},
        {ATN_SOFT, ATN_GRADIENT_STEPS, false, landmarks_detached,
         "landmarks detached: no gradient through L"},
        {ATN_SIMA, ATN_GRADIENT_STEPS, false, norms_detached,
         "norms detached: no gradient through those of Q and K"},
        {ATN_SOFTMAX, ATN_GRADIENT_STEPS, true, queries_alone,
         "the part of Q as queries alone: that of K = Q is missing"},
        {ATN_GAUSSIAN, ATN_GRADIENT_STEPS, true, keys_alone,
         "the part of K = Q alone: that of Q is missing"},
    };
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        subject s = gradient_problem(rows[i].op, rows[i].gradient, rows[i].self), claimed = s;
        bool explains;
        double *dy = must_allocate((size_t)HEADS * TOKENS * WIDTH, sizeof *dy);
        cr_assert_eq(answer_exact(&s, RESULT_TOKENS, dy), ATN_OK);
        claimed.results[RESULT_TOKENS] = dy;
        rows[i].make(&s, dy);
        char *text = first_finding_on(context, &claimed, RESULT_TOKENS, &explains);
        cr_expect(explains && strcmp(text, rows[i].name) == 0, "%s: %s", rows[i].name, text);
        free(text);
        free(dy);
        attention_case_free(&claimed.c);
    }
    atn_context_free(context);
}

/* Zeros must FAIL, not be marginal, or nothing is said: of one row, too. */
Test(check, zeros_are_never_marginal)
{
    for (double unit = 1e-4; unit < 2; unit *= 1.5)
        for (int rows = 1; rows < 4; rows++) {
            static const double want[] = {1, -2, 3, -1, 2, -3, 1, 1, 1}, zeros[9];
            static double noise[] = {1, 2, -3, 1, -2, 3, -1, 1, -1};
            yardstick y = {
                .rows = rows, .cols = 3, .want = want, .kappa = 1, .unit = unit, .stages = 1};
            y.reach =
                (reach){.noises = NOISES, .noise = {noise, noise, noise, noise, noise, noise}};
            bounds b = find_bounds(&y);
            ref_verdict verdict = judge_head(&y, &b, zeros).verdict;
            cr_expect(verdict == REF_FAIL || verdict == REF_SKIPPED, "%g, %d rows: %s", unit, rows,
                      ref_verdict_name(verdict));
        }
}

/* What underflows in f16 does so in the library, too: kappa knows nothing of it. */
Test(check, underflow_is_held_against_the_library)
{
    atn_context *context = make_context();
    subject s = problem_of(ATN_SOFTMAX, 0, ATN_F16);
    for (int64_t i = 0; i < attention_case_values(&s.c); i++)
        s.c.v[i] *= 0x1p-20;
    s.judged = s.c;
    double *y = give_output(&s);
    int64_t size = result_size(&s.judged, RESULT_OUTPUT);
    cr_assert(answer_library(context, &s, ATN_F32, ATN_STORAGE_F16, RESULT_OUTPUT, y) >= 0);
    cr_expect_neq(verdict_of(&s), REF_FAIL);
    for (int64_t i = 0; i < size; i++)
        y[i] *= 5;
    cr_expect_eq(verdict_of(&s), REF_FAIL);
    release(&s);
    atn_context_free(context);
}

/* Noise is nobody's mistake. */
Test(check, noise_is_explained_by_nothing)
{
    atn_context *context = make_context();
    subject s = problem_of(ATN_SOFTMAX, 0, ATN_F32);
    double *y = give_output(&s);
    for (int64_t i = 0; i < result_size(&s.judged, RESULT_OUTPUT); i++)
        y[i] += sin(17.0 * (double)i);
    bool explains;
    char *text = first_finding(context, &s, &explains);
    cr_expect(!explains, "%s", text);
    free(text);
    release(&s);
    atn_context_free(context);
}
