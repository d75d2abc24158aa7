/* SPDX-License-Identifier: BSD-3-Clause */
/* accuracy/operators: its verdicts distinguish right from wrong outputs, its table is complete and
 * always the same, and its numbers agree with independent ones. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <data.h>

#include "accuracy/operators.h"
#include "common/experiment.h"
#include "common/inputs.h"
#include "common/npy.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(accuracy_operators, .init = scratch_begin, .fini = scratch_end);

Test(accuracy_operators, lsh_has_four_chunks_or_more)
{
    static const int64_t chunks[][2] = {{4, 1},    {7, 1},    {8, 2},    {9, 1},    {49, 7},
                                        {196, 49}, {225, 45}, {256, 64}, {784, 56}, {1024, 64},
                                        {255, 51}, {252, 63}, {260, 52}, {3136, 64}};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        cr_expect_eq(accuracy_chunk(chunks[i][0]), chunks[i][1], "n = %d: %d", (int)chunks[i][0],
                     (int)accuracy_chunk(chunks[i][0]));
}

/* ---- Verdicts ---- */

enum { N = 64, D = 8 };

/* Softmax attention on random tokens, and the reference's answer as the library would give it. */
typedef struct {
    attention_case c;
    double want[N * D], f64[N * D];
    float f32[N * D];
} answers;

static answers make_answers(atn_storage storage)
{
    attention_choice choice = {.op = ATN_SOFTMAX,
                               .dtype = ATN_F32,
                               .shape = {1, 1, N, D, D, 0},
                               .seed = 4,
                               .storage = storage};
    answers a = {.c = attention_case_make(&choice)};
    ref_attention_problem problem = attention_case_problem(&a.c);
    cr_assert_eq(ref_attention(&problem, a.want), ATN_OK);
    for (int i = 0; i < N * D; i++) {
        a.f64[i] = a.want[i];
        a.f32[i] = (float)a.want[i];
        atn_storage_round(storage, 1, &a.f32[i]);
    }
    return a;
}

static accuracy judge(const answers *a, atn_dtype dtype, double kappa)
{
    const void *out = dtype == ATN_F32 ? (const void *)a->f32 : a->f64;
    return accuracy_judge(&a->c, dtype, out, ATN_OK, a->want, ATN_OK, kappa);
}

static void expect_pass(const accuracy *a, const char *what)
{
    cr_expect(a->verdict == REF_PASS && !*a->reason && a->measured && !a->fault && a->ratio < 1,
              "%s: %s %s, ratio %g", what, ref_verdict_name(a->verdict), a->reason, a->ratio);
}

static void expect_fault(const accuracy *a, const char *what)
{
    cr_expect(a->verdict == REF_FAIL && a->fault, "%s: %s %s, ratio %g", what,
              ref_verdict_name(a->verdict), a->reason, a->ratio);
}

Test(accuracy_operators, rounded_answers_pass)
{
    for (int storage = 0; storage < ATN_STORAGE_COUNT; storage++) {
        answers a = make_answers((atn_storage)storage);
        accuracy f32 = judge(&a, ATN_F32, 2);
        expect_pass(&f32, atn_storage_name((atn_storage)storage));
        double u = storage ? atn_storage_roundoff((atn_storage)storage) : 0x1p-24;
        cr_expect(f32.relative_error > 0 && f32.relative_error <= u &&
                      f32.digits == -log10(f32.relative_error) &&
                      f32.rounding == N * 0x1p-24 + (storage ? u : 0),
                  "%s: error %g, rounding %g", atn_storage_name((atn_storage)storage),
                  f32.relative_error, f32.rounding);
        attention_case_free(&a.c);
    }
    answers a = make_answers(ATN_STORAGE_NATIVE);
    accuracy f64 = judge(&a, ATN_F64, 2);
    expect_pass(&f64, "f64");
    cr_expect(f64.digits == 15.95 && f64.rounding == N * 0x1p-53);
    attention_case_free(&a.c);
}

/* Effects of bugs: a lost token, a row from elsewhere, a scaled column, everything slightly wrong.
 */
static void lose_token(answers *a)
{
    for (int c = 0; c < D; c++)
        a->f64[17 * D + c] = 0;
}

static void repeat_row(answers *a)
{
    memcpy(a->f64 + 63 * D, a->f64 + 62 * D, D * sizeof *a->f64);
}

static void scale_column(answers *a)
{
    for (int i = 0; i < N; i++)
        a->f64[i * D + 3] *= 1.01;
}

static void scale_all(answers *a)
{
    for (int i = 0; i < N * D; i++)
        a->f64[i] *= 1 + 40 * 2 * N * 0x1p-24;
}

static void zero_all(answers *a)
{
    memset(a->f64, 0, sizeof a->f64);
}

static void put_nan(answers *a)
{
    a->f64[100] = NAN;
}

static void put_infinity(answers *a)
{
    a->f64[0] = INFINITY;
}

/* Every row the mean of V. */
static void average(answers *a)
{
    for (int i = 0; i < N * D; i++) {
        a->f64[i] = 0;
        for (int j = 0; j < N; j++)
            a->f64[i] += a->c.v[j * D + i % D] / N;
    }
}

Test(accuracy_operators, spoilt_answers_fail)
{
    static const struct {
        const char *name;
        void (*spoil)(answers *a);
    } rows[] = {{"a token lost", lose_token},
                {"a row twice", repeat_row},
                {"a column off", scale_column},
                {"40 times rounding", scale_all},
                {"zeros", zero_all},
                {"the mean of V", average},
                {"NaN", put_nan},
                {"infinity", put_infinity}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        answers a = make_answers(ATN_STORAGE_NATIVE);
        rows[i].spoil(&a);
        for (int j = 0; j < N * D; j++)
            a.f32[j] = (float)a.f64[j];
        accuracy f32 = judge(&a, ATN_F32, 2), f64 = judge(&a, ATN_F64, 2);
        expect_fault(&f32, rows[i].name);
        expect_fault(&f64, rows[i].name);
        attention_case_free(&a.c);
    }
}

Test(accuracy_operators, skipped_for_a_reason)
{
    answers a = make_answers(ATN_STORAGE_NATIVE);
    accuracy skipped = judge(&a, ATN_F32, 1e6); /* 1e6 N u = 3.8 */
    cr_expect(skipped.verdict == REF_SKIPPED && strcmp(skipped.reason, "ill-conditioned") == 0 &&
              isnan(skipped.ratio) && skipped.measured && !skipped.fault);
    skipped = judge(&a, ATN_F32, 2e4); /* 10 kappa N u = 0.76: zeros would pass */
    cr_expect(skipped.verdict == REF_SKIPPED && strcmp(skipped.reason, "trivial") == 0 &&
              skipped.ratio < 1 && !skipped.fault);
    /* NaN FAILs, but is not a fault where nothing can be judged */
    a.f32[0] = NAN;
    skipped = judge(&a, ATN_F32, INFINITY);
    cr_expect(skipped.verdict == REF_FAIL && !skipped.fault && isinf(skipped.ratio));
    attention_case_free(&a.c);
}

Test(accuracy_operators, without_a_reference)
{
    static const struct {
        atn_status status, reference;
        ref_verdict verdict;
        const char *reason;
    } rows[] = {{ATN_NONFINITE, ATN_NONFINITE, REF_SKIPPED, "undefined"},
                {ATN_OK, ATN_NONFINITE, REF_FAIL, "missed"},
                {ATN_OK, ATN_SINGULAR, REF_SKIPPED, "singular"},
                {ATN_SINGULAR, ATN_SINGULAR, REF_SKIPPED, "singular"}};
    answers a = make_answers(ATN_STORAGE_NATIVE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        accuracy got = accuracy_judge(&a.c, ATN_F32, a.f32, rows[i].status, a.want,
                                      rows[i].reference, INFINITY);
        cr_expect(got.verdict == rows[i].verdict && strcmp(got.reason, rows[i].reason) == 0 &&
                      !got.measured && isnan(got.ratio) &&
                      got.fault == (rows[i].verdict == REF_FAIL),
                  "row %zu: %s %s", i, ref_verdict_name(got.verdict), got.reason);
    }
    attention_case_free(&a.c);
}

/* ---- The table ---- */

static const experiment *const e = &accuracy_operators;

/* Tools read the first ten columns by position. */
Test(accuracy_operators, the_first_columns)
{
    static const char begin[] = "operator,variant,dtype,n,m,d,input,ratio,digits,verdict,";
    cr_assert_eq(run_experiment(e, "--operator lsh --input iid --n 16 --out r"), EXIT_PASS);
    size_t size;
    char *text = read_csv(e, "r", 0, &size);
    cr_expect_eq(strncmp(text, begin, sizeof begin - 1), 0, "%.80s", text);
    free(text);
}

/* A row for every variant, type and input, in the registry's order; no unknown verdict, and no FAIL
 * of f32 or f64. */
Test(accuracy_operators, every_variant_in_every_type)
{
    static const char *const dtypes[] = {"f32", "f64", "bf16", "f16"};
    static const char *const inputs[] = {"photos", "constant"};
    cr_assert_eq(run_experiment(e, "--input photos,constant --n 16 --m 4 --out r"), EXIT_PASS);
    table *t = read_output(e, "r", 0);
    int64_t row = 0;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int i = 0; i < info->variant_count * 8; i++, row++) {
            cr_assert_lt(row, table_rows(t));
            cr_expect(cell_is(t, row, "operator", info->name) &&
                          cell_is(t, row, "variant", info->variants[i / 8].name) &&
                          cell_is(t, row, "input", inputs[i / 4 % 2]) &&
                          cell_is(t, row, "dtype", dtypes[i % 4]),
                      "row %" PRId64, row);
            const char *verdict = cell_text(t, row, "verdict"),
                       *reason = cell_text(t, row, "reason");
            bool skipped = strcmp(verdict, "skipped") == 0;
            cr_expect(strcmp(verdict, "pass") == 0 || (skipped && *reason) || i % 4 > 1,
                      "row %" PRId64 ": %s %s", row, verdict, reason);
            double error = cell_real(t, row, "relative_error"), kappa = cell_real(t, row, "kappa");
            cr_expect(kappa == cell_real(t, row - i % 4, "kappa"), "row %" PRId64 ": %g", row,
                      kappa);
            double ratio = error / (kappa * cell_real(t, row, "rounding"));
            bool judged = !cell_missing(t, row, "ratio");
            cr_expect(skipped || judged, "row %" PRId64, row);
            if (judged && isfinite(error))
                cr_expect(fabs(ratio - cell_real(t, row, "ratio")) <= 1e-12 * ratio, "row %" PRId64,
                          row);
        }
    }
    cr_expect_eq(table_rows(t), row);
    table_free(t);
}

/* The bytes depend neither on threads nor on the other rows of the run. */
Test(accuracy_operators, always_the_same)
{
    cr_assert_eq(run_experiment(e, "--operator soft,sima,performer/favor,lsh --input smooth,iid "
                                   "--n 16,36 --m 4 --threads 1 --out r1"),
                 EXIT_PASS);
    cr_assert_eq(run_experiment(e, "--operator soft,sima,performer/favor,lsh --input smooth,iid "
                                   "--n 16,36 --m 4 --threads 3 --out r2"),
                 EXIT_PASS);
    size_t size;
    char *one = read_csv(e, "r1", 0, &size), *three = read_csv(e, "r2", 0, &size);
    cr_expect_str_eq(one, three);
    cr_assert_eq(run_experiment(e, "--operator lsh --input iid --n 36 --storage f16 --out r3"),
                 EXIT_PASS);
    char *alone = read_csv(e, "r3", 0, &size), *line = strchr(alone, '\n');
    cr_assert(line);
    cr_expect(strstr(one, line), "'%s' is not in '%s'", line, one);
    free(alone);
    free(three);
    free(one);
}

/* Each number of landmarks once; none for operators that have none; a file's own tokens. */
Test(accuracy_operators, points)
{
    static const struct {
        const char *options;
        int64_t rows;
    } rows[] = {
        {"--operator soft/paper,softmax/causal --input iid --n 16 --m 1,4,16", 3 + 1},
        {"--operator nystromformer,linformer --input iid --n 16 --m 3,15", 2 * 4},
        {"--operator soft/paper --input seven.npy --m 4,7", 2}, /* windows of 2 and 1 */
        {"--operator softmax --input iid --n 16,25 --samples 3 --seed 1,2", 2 * 2 * 3 * 2},
        {"--operator softmax/causal --input photos,iid", 4}, /* 196 and 784 each */
        {"--operator softmax/causal --quick", 10},
        {"--operator softmax/causal --input iid --n 4", 1},
        {"--operator softmax/causal --input three.npy", 1},
        {"--operator softmax/causal --input three.npy --samples 2 --seed 1,2", 2},
        {"--operator softmax/causal --input three.npy --samples 3", 3},
        {"--operator softmax/causal --n 16", 12},
        {"--operator softmax/causal --n 25", 11}, /* trained:soft has a stride of 2 */
        {"--operator softmax/causal", 14},
        {"--operator softmax/causal --full", 12 + 12 + 10},
        {"--operator softmax/causal --quick --input trained:sima", 1}, /* 196, nearest to 64 */
        {"--operator softmax/causal --input trained:sima", 2},
        {"--operator softmax/causal --input trained:linformer", 1}, /* takes no larger pictures */
    };
    write_sine_tokens("three.npy", 3, 16, 4, 1);
    write_sine_tokens("seven.npy", 1, 7, 4, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *state = NULL;
        int64_t points = 0;
        program_options s;
        cr_assert_eq(parse_options(&s, e, rows[i].options), EXIT_PASS);
        cr_expect_eq(accuracy_operators.prepare(&s, &state, &points), EXIT_PASS);
        cr_expect_eq(points, rows[i].rows, "%s: %" PRId64, rows[i].options, points);
        accuracy_operators.release(state);
        options_free(&s);
    }
    capture();
    cr_expect_eq(run_experiment(e, "--n 15 --out r"), EXIT_USAGE);
    cr_expect(is_one_line_with(captured(), "--n 15"));
    capture();
    cr_expect_eq(run_experiment(e, "--n 1 --out r"), EXIT_USAGE);
    cr_expect(is_one_line_with(captured(), "--n 1:"));
}

/* What would be changed or ignored is refused. */
Test(accuracy_operators, refused_options)
{
    static const char *const rows[][2] = {
        {"--operator soft/paper --input iid --n 196 --m 49,50",
         "--m 50: iid cannot give as many landmarks; the nearest it can give is 49"},
        {"--operator softpp/paper --input iid --n 196 --m 60", "the nearest it can give is 49"},
        {"--operator soft/paper --input iid --n 16 --m 3", "the nearest it can give is 4"},
        {"--operator nystromformer --input iid --n 16 --m 16", "the nearest it can give is 15"},
        {"--operator soft/paper --input seven.npy --m 5", "the nearest it can give is 4"},
        {"--operator soft/paper --input iid --n 16 --m 20000", "--m 20000: expected at most 16384"},
        {"--operator elu --input iid --n 16 --dtype f64 --storage f16",
         "--dtype f64: --storage f16"},
        {"--operator elu --input iid --n 16 --dtype f32 --storage bf16,f16",
         "--dtype f32: --storage bf16"},
    };
    write_sine_tokens("seven.npy", 1, 7, 4, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        capture();
        cr_expect_eq(run_experiment(e, rows[i][0]), EXIT_USAGE, "%s", rows[i][0]);
        const char *text = captured();
        cr_expect(is_one_line_with(text, rows[i][1]), "%s: %s", rows[i][0], text);
    }
}

/* ---- Numbers ---- */

/* The relative error of the library's softmax attention in f32, from the formula alone. */
static double softmax_error(const double *tokens, int64_t n, int64_t d)
{
    float *x = must_allocate((size_t)(n * d), sizeof *x);
    float *y = must_allocate((size_t)(n * d), sizeof *y);
    double *weights = must_allocate((size_t)n, sizeof *weights), error = 0, size = 0;
    for (int64_t i = 0; i < n * d; i++)
        x[i] = (float)tokens[i];
    atn_context *context = make_context();
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFTMAX, ATN_F32);
    atn_attention_shape shape = {1, 1, n, d, d, 0};
    atn_tensor tx = atn_tensor_dense(x, ATN_F32, 1, 1, n, d);
    atn_tensor ty = atn_tensor_dense(y, ATN_F32, 1, 1, n, d);
    atn_plan *plan;
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
    cr_assert_eq(
        atn_attention_forward(plan, &(atn_attention_inputs){.q = &tx, .v = &tx}, &ty, NULL),
        ATN_OK);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            weights[j] = 0;
            for (int64_t c = 0; c < d; c++)
                weights[j] += (double)x[i * d + c] * (double)x[j * d + c];
            sum += weights[j] = exp(weights[j] / sqrt((double)d));
        }
        for (int64_t c = 0; c < d; c++) {
            double want = 0;
            for (int64_t j = 0; j < n; j++)
                want += weights[j] / sum * (double)x[j * d + c];
            error += ((double)y[i * d + c] - want) * ((double)y[i * d + c] - want);
            size += want * want;
        }
    }
    atn_plan_free(plan);
    atn_context_free(context);
    free(weights), free(y), free(x);
    return sqrt(error / size);
}

Test(accuracy_operators, errors_are_the_librarys)
{
    input *in;
    double *tokens = must_allocate(36 * TOKEN_DIM, sizeof *tokens);
    cr_assert_eq(input_open("iid:0.5", 0, 0, &in), EXIT_PASS);
    cr_assert_eq(input_tokens(in, 6, 6, 37, 9, 1, tokens), EXIT_PASS);
    double want = softmax_error(tokens, 36, TOKEN_DIM);
    cr_assert_eq(run_experiment(e, "--operator softmax/attention --input iid:0.5 --n 36 --seed 9 "
                                   "--samples 2 --storage native --dtype f32 --out r"),
                 EXIT_PASS);
    table *t = read_output(e, "r", 0);
    cr_assert_eq(table_rows(t), 2);
    double got = cell_real(t, 1, "relative_error"), kappa = cell_real(t, 1, "kappa");
    cr_expect(fabs(got - want) < 1e-6 * want && want > 1e-9, "%.9g, expected %.9g", got, want);
    cr_expect(cell_real(t, 1, "rounding") == 36 * 0x1p-24);
    cr_expect(kappa > 1.5 && kappa < 4, "kappa %g: Y is linear in V, and tokens are small", kappa);
    table_free(t);
    input_free(in);
    free(tokens);
}

/* Narrow types get tokens rounded to them: the average of equal tokens is then exact. */
Test(accuracy_operators, tokens_are_rounded_first)
{
    cr_assert_eq(run_experiment(e, "--operator softmax/attention --input constant --n 16 --storage "
                                   "bf16,f16,tf32 --out r"),
                 EXIT_SKIPPED); /* a mean row is the answer */
    table *t = read_output(e, "r", 0);
    cr_assert_eq(table_rows(t), 3);
    for (int64_t row = 0; row < 3; row++)
        cr_expect(cell_real(t, row, "relative_error") == 0, "%s: %g", cell_text(t, row, "dtype"),
                  cell_real(t, row, "relative_error"));
    table_free(t);
}

/* Unnormalised products of large tokens leave f16's range and not bf16's: a result of the types,
 * which is in the table and does not change the run's exit code. */
Test(accuracy_operators, an_overflow_of_f16_is_a_result)
{
    cr_assert_eq(run_experiment(e, "--operator sima/none --input circulant:100 --n 36 --out r"),
                 EXIT_PASS);
    table *t = read_output(e, "r", 0);
    cr_assert_eq(table_rows(t), 4);
    for (int64_t row = 0; row < 4; row++) {
        bool f16 = cell_is(t, row, "dtype", "f16");
        cr_expect_str_eq(cell_text(t, row, "verdict"), f16 ? "FAIL" : "pass", "row %" PRId64, row);
        cr_expect_str_eq(cell_text(t, row, "outcome"), f16 ? "ATN_NONFINITE" : "ATN_OK");
        cr_expect(!f16 || isinf(cell_real(t, row, "ratio")));
    }
    table_free(t);
}

/* Tokens that a type does not hold are the reason, not 0/0 by definition; and one zero among them
 * is not. A run without a verdict is skipped. */
Test(accuracy_operators, tokens_beyond_the_range_of_a_type)
{
    static const struct {
        const char *options;
        double scale;
        const char *reasons[4]; /* of the rows; "": judged */
        int code;
    } rows[] = {
        {"--operator softmax/attention --storage native", 1e39, {"range", "range"}, EXIT_SKIPPED},
        {"--operator soft/exact --storage native --dtype f64", 1e39, {"range"}, EXIT_SKIPPED},
        {"--operator sima/paper --storage native --dtype f64", 1e-50, {"range"}, EXIT_SKIPPED},
        {"--operator softmax/attention --dtype f64 --storage native",
         1e-50,
         {"range"},
         EXIT_SKIPPED},
        {"--operator sima/paper", 1e5, {"", "", "", "range"}, EXIT_PASS},
        {"--operator sima/paper", 1e-12, {"", "", "", "range"}, EXIT_PASS},
        {"--operator performer/unbiased --storage native",
         1e39,
         {"undefined", "undefined"},
         EXIT_SKIPPED},
        {"--operator sima/paper --storage f16", 1, {""}, EXIT_PASS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char options[160];
        write_sine_tokens("t.npy", 1, 16, 32, rows[i].scale);
        snprintf(options, sizeof options, "--input t.npy %s --out r", rows[i].options);
        cr_expect_eq(run_experiment(e, options), rows[i].code, "%zu", i);
        table *t = read_output(e, "r", 0);
        for (int64_t row = 0; row < table_rows(t); row++) {
            cr_expect_str_eq(cell_text(t, row, "reason"), rows[i].reasons[row], "%zu, %s", i,
                             cell_text(t, row, "dtype"));
            cr_expect(cell_is(t, row, "verdict", "skipped") == (*rows[i].reasons[row] != 0));
        }
        table_free(t);
    }
}

/* A channel of zeros is 0/0 by definition, also where an entry elsewhere becomes 0. */
Test(accuracy_operators, a_zero_beyond_the_range_is_no_dead_channel)
{
    const int64_t shape[] = {1, 16, 2};
    double tokens[16][2];
    for (int channel = 0; channel < 2; channel++) {
        for (int i = 0; i < 16; i++) {
            tokens[i][0] = i == 3 ? 1e-50 : 1 + i;
            tokens[i][1] = channel == 0 ? 0 : 1e-50;
        }
        cr_assert_eq(npy_write(".", "t.npy", ATN_F64, 3, shape, tokens), EXIT_PASS);
        cr_expect_eq(run_experiment(e,
                                    "--input t.npy --operator sima/paper --storage native --dtype "
                                    "f32 --out r"),
                     EXIT_SKIPPED);
        table *t = read_output(e, "r", 0);
        cr_expect_str_eq(cell_text(t, 0, "reason"), channel == 0 ? "undefined" : "range");
        table_free(t);
    }
}
