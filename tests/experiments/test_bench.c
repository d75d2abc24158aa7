/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum bench: its cases, its clock, its checks, its tokens. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/check.h"
#include "bench/rates.h"
#include "bench/subject.h"
#include "bench/time.h"
#include "common/npy.h"
#include "common/progress.h"
#include "common/report.h"
#include "runs.h"
#include "scratch.h"

TestSuite(bench, .init = scratch_begin, .fini = scratch_end);

static bench_case *cases_of(const char *options, int64_t *count)
{
    static settings s;
    settings_free(&s);
    cr_assert_eq(parse_options(&s, &bench, options), EXIT_PASS, "%s", options);
    return bench_cases(&s, count);
}

/* The cases of a kind of work; with the operator unless it is ATN_OPERATOR_COUNT. */
static int64_t count_cases(const char *options, bench_work work, atn_operator op)
{
    int64_t count, found = 0;
    bench_case *cases = cases_of(options, &count);
    for (int64_t i = 0; i < count; i++)
        found += cases[i].work == work && (op == ATN_OPERATOR_COUNT || cases[i].op == op);
    free(cases);
    return found;
}

Test(bench, cases)
{
    static const struct {
        const char *options;
        bench_work work;
        atn_operator op;
        int64_t count;
    } rows[] = {
        {"--operator=sima", BENCH_COPY, ATN_OPERATOR_COUNT, 1},
        {"--operator=sima", BENCH_ARITHMETIC, ATN_OPERATOR_COUNT, 2},
        {"--operator=sima --n=8,9 --batch=1,2,3 --dtype=f32,f64", BENCH_FORWARD, ATN_SIMA, 12},
        {"--operator=sima --n=8,9 --batch=1,2,3 --dtype=f32,f64", BENCH_BACKWARD, ATN_SIMA, 12},
        {"--operator=sima/paper,sima/tokens --n=8 --batch=1 --dtype=f32", BENCH_FORWARD, ATN_SIMA,
         2},
        {"--operator=sima", BENCH_INVERSE, ATN_OPERATOR_COUNT, 0},
        /* the published inverse and the fast one; m over n is left out */
        {"--operator=soft --n=16 --m=4,16,25 --batch=1 --dtype=f32", BENCH_FORWARD, ATN_SOFT, 4},
        {"--variant=eig,nr-soft --m=3,4 --batch=5 --dtype=f64", BENCH_INVERSE, ATN_OPERATOR_COUNT,
         4},
        {"--variant=eig", BENCH_FORWARD, ATN_OPERATOR_COUNT, 0},
        {"--quick", BENCH_FORWARD, ATN_SOFTMAX, 1},
        {"", BENCH_FORWARD, ATN_SOFTMAX, 2},
        {"--full", BENCH_FORWARD, ATN_SOFTMAX, 6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(count_cases(rows[i].options, rows[i].work, rows[i].op), rows[i].count,
                     "'%s': %" PRId64 ", expected %" PRId64, rows[i].options,
                     count_cases(rows[i].options, rows[i].work, rows[i].op), rows[i].count);
}

/* Every operator that the CPU has is there, and is a problem that it can plan. */
Test(bench, every_operator)
{
    int64_t count, seen = 0;
    atn_context *context = make_context();
    bench_case *cases = cases_of("--n=100 --m=10 --batch=1 --dtype=f32", &count);
    for (int64_t i = 0; i < count; i++) {
        if (cases[i].work != BENCH_FORWARD)
            continue;
        attention_case problem = bench_problem(&cases[i], ATN_F32, 1, 100, true);
        atn_cost cost;
        char text[200];
        bench_describe(&cases[i], text, sizeof text);
        cr_expect_eq(atn_attention_cost(context, &problem.desc, &problem.shape, &cost), ATN_OK,
                     "%s: %s", text, atn_last_error(context));
        seen |= INT64_C(1) << cases[i].op;
        attention_case_free(&problem);
    }
    cr_expect_eq(seen, (INT64_C(1) << ATN_OPERATOR_COUNT) - 1);
    atn_context_free(context);
    free(cases);
}

/* ---- Time ---- */

typedef struct {
    int calls, fails_at;
    int repeats[64];
} counted_work;

static atn_status count_call(void *state, int repeat)
{
    counted_work *w = state;
    w->repeats[w->calls++] = repeat;
    return repeat == w->fails_at ? ATN_ERR_LIBRARY : ATN_OK;
}

Test(bench, repeats)
{
    atn_context *context = make_context();
    counted_work w = {.fails_at = -1};
    time_plan plan = {.warm_ups = 2, .least = 5, .most = 9, .seconds = 0};
    time_result result;
    cr_assert_eq(time_repeats(context, &plan, NULL, count_call, &w, &result), ATN_OK);
    cr_expect(w.calls == 7 && result.repeats == 5, "%d calls, %d repeats", w.calls, result.repeats);
    for (int i = 0; i < w.calls; i++)
        cr_expect_eq(w.repeats[i], i, "inputs are taken in turn");
    cr_expect(result.smallest >= 0 && result.smallest <= result.median &&
              result.median <= result.largest);
    plan.seconds = 1e9;
    w.calls = 0;
    cr_assert_eq(time_repeats(context, &plan, NULL, count_call, &w, &result), ATN_OK);
    cr_expect(w.calls == 11 && result.repeats == 9);
    w = (counted_work){.fails_at = 4};
    cr_expect_eq(time_repeats(context, &plan, NULL, count_call, &w, &result), ATN_ERR_LIBRARY);
    cr_expect_eq(w.calls, 5);
    atn_context_free(context);
}

static atn_status sleep_long(void *state, int repeat)
{
    static const double lengths[] = {0.001, 0.002, 0.03, 0.002, 0.002};
    double start, now;
    struct timespec t;
    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &t);
    start = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    do {
        clock_gettime(CLOCK_MONOTONIC, &t);
        now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    } while (now - start < lengths[repeat]);
    return ATN_OK;
}

/* Nothing is shorter than it was, or longer in all; the outlier is the largest and not the median.
 */
Test(bench, seconds)
{
    atn_context *context = make_context();
    time_plan plan = {.warm_ups = 0, .least = 5, .most = 5};
    time_result result;
    double start = progress_seconds();
    cr_assert_eq(time_repeats(context, &plan, NULL, sleep_long, NULL, &result), ATN_OK);
    double all = progress_seconds() - start;
    cr_expect(result.largest + 4 * result.smallest <= all, "%g of %g", result.largest, all);
    cr_expect(result.smallest >= 0.001 && result.median >= 0.002 && result.largest >= 0.03,
              "%g %g %g", result.smallest, result.median, result.largest);
    atn_context_free(context);
}

Test(bench, timer)
{
    atn_context *context = make_context(), *other = make_context();
    atn_timer *timer;
    double seconds = -1, flops = -1, scratch[8];
    char from[] = "copied", to[sizeof from] = "";
    cr_assert_eq(atn_timer_create(context, &timer), ATN_OK);
    cr_expect_eq(atn_timer_elapsed(timer, &seconds), ATN_ERR_VALUE);
    cr_expect_eq(atn_timer_start(timer), ATN_OK);
    cr_expect_eq(atn_timer_elapsed(timer, &seconds), ATN_ERR_VALUE);
    cr_expect_eq(atn_timer_stop(timer), ATN_OK);
    cr_expect_eq(atn_timer_elapsed(timer, &seconds), ATN_OK);
    cr_expect(seconds >= 0 && seconds < 60);
    cr_expect_eq(atn_timer_inside(other, timer), ATN_ERR_VALUE);
    cr_expect_eq(atn_timer_elapsed(NULL, &seconds), ATN_ERR_NULL);
    cr_expect_eq(atn_timer_create(NULL, &timer), ATN_ERR_NULL);
    cr_expect_eq(atn_copy(context, to, from, sizeof from), ATN_OK);
    cr_expect_str_eq(to, "copied");
    cr_expect_eq(atn_copy(context, NULL, from, 1), ATN_ERR_NULL);
    cr_expect_eq(atn_multiply_add(context, ATN_F32, 0, scratch, &flops), ATN_ERR_VALUE);
    cr_expect_eq(atn_multiply_add(context, ATN_BF16, 1, scratch, &flops), ATN_ERR_UNSUPPORTED);
    cr_expect_eq(atn_multiply_add(context, ATN_F32, 3, scratch, &flops), ATN_OK);
    cr_expect(flops > 0 && fmod(flops, 2 * 16 * 3) == 0, "%g", flops);
    atn_timer_free(timer);
    atn_timer_free(NULL);
    atn_context_free(other);
    atn_context_free(context);
}

/* ---- Checks ---- */

Test(bench, judge)
{
    const double u = atn_dtype_roundoff(ATN_F32), tiny = 0x1p-8;
    static const struct {
        atn_dtype dtype;
        double error, f32_error; /* in roundoffs of dtype, and of f32 */
        check_kind kind;
    } rows[] = {
        {ATN_F32, 7, 1, CHECK_PASS},      {ATN_F32, 9, 1, CHECK_FAIL},
        {ATN_F32, 9, 10, CHECK_PASS},     {ATN_F64, 70, 10, CHECK_PASS},
        {ATN_F64, 81, 10, CHECK_FAIL},    {ATN_BF16, 7, 0, CHECK_PASS},
        {ATN_BF16, 100, 1, CHECK_FAIL},   {ATN_BF16, 30, 1000, CHECK_OPEN},
        {ATN_F32, NAN, 1, CHECK_FAIL},    {ATN_F32, INFINITY, 1, CHECK_FAIL},
        {ATN_BF16, NAN, 1e9, CHECK_FAIL}, {ATN_F32, 1, NAN, CHECK_PASS},
    };
    cr_expect_eq(atn_dtype_roundoff(ATN_BF16), tiny);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_result r =
            check_judge(rows[i].dtype, rows[i].error * atn_dtype_roundoff(rows[i].dtype),
                        rows[i].f32_error * u);
        cr_expect_eq(r.kind, rows[i].kind, "%zu: %s", i, check_name(r.kind));
    }
}

/* What is timed passes, in both types; and outputs are the numbers of the right set. */
Test(bench, subjects)
{
    int64_t count;
    atn_context *context = make_context();
    bench_case *cases =
        cases_of("--operator=soft,sima,lsh,linformer --n=49 --m=7 --batch=2", &count);
    for (int64_t i = 0; i < count; i++) {
        char text[200];
        check_result check;
        subject s;
        if (!bench_is_attention(&cases[i]))
            continue;
        bench_describe(&cases[i], text, sizeof text);
        cr_expect_eq(check_case(context, &cases[i], &check), ATN_OK, "%s", text);
        cr_expect_eq(check.kind, CHECK_PASS, "%s: %s %g", text, check_name(check.kind),
                     check.error);
        subject_open(context, &cases[i], &s);
        cr_expect_eq(s.status, ATN_OK, "%s: %s", text, atn_last_error(context));
        cr_expect_eq(subject_outcome(&s), ATN_NONFINITE, "%s: nothing was written yet", text);
        for (int set = 0; set <= SUBJECT_SETS; set++)
            subject_run(&s, set);
        cr_expect_eq(subject_outcome(&s), ATN_OK, "%s", text);
        subject_close(&s);
    }
    free(cases);
    atn_context_free(context);
}

/* All heads have the tokens that are written for peers, also those that repeat others'. */
Test(bench, inputs)
{
    int64_t count, elements = 6 * 2 * 10 * 32;
    atn_context *context = make_context();
    bench_case *cases = cases_of("--operator=sima --n=10 --batch=6 --dtype=f32", &count);
    float *values = must_allocate((size_t)elements, sizeof *values);
    subject s;
    int64_t i = 0;
    while (cases[i].work != BENCH_FORWARD)
        i++;
    subject_open(context, &cases[i], &s);
    cr_assert_eq(s.sets, SUBJECT_SETS);
    for (int set = 0; set < SUBJECT_SETS; set++)
        for (int input = 0; input < SUBJECT_INPUTS; input++) {
            subject_tokens(set, input, 12, 10, 32, values);
            cr_expect(
                memcmp(values, s.inputs[set][input].data, (size_t)elements * sizeof *values) == 0,
                "input %d of set %d", input, set);
        }
    cr_expect(memcmp(s.inputs[0][0].data, s.inputs[1][0].data, 64) != 0, "sets differ");
    subject_close(&s);
    free(values);
    free(cases);
    atn_context_free(context);
}

Test(bench, inverses)
{
    int64_t count;
    atn_context *context = make_context();
    bench_case *cases = cases_of("--variant=nr-paper,chebyshev-2,pivoted-cholesky --m=12 "
                                 "--batch=3",
                                 &count);
    for (int64_t i = 0; i < count; i++) {
        check_result check;
        subject s;
        if (cases[i].work != BENCH_INVERSE)
            continue;
        cr_expect_eq(check_case(context, &cases[i], &check), ATN_OK);
        cr_expect_eq(check.kind, CHECK_PASS, "%s %g", atn_inverse_name(cases[i].inverse),
                     check.error);
        subject_open(context, &cases[i], &s);
        subject_run(&s, 0);
        cr_expect_eq(subject_outcome(&s), ATN_OK);
        cr_expect_eq(subject_bytes(&s), 2.0 * 3 * 12 * 12 * (double)atn_dtype_size(cases[i].dtype));
        subject_close(&s);
    }
    free(cases);
    atn_context_free(context);
}

/* ---- Whole runs ---- */

Test(bench, tokens)
{
    settings s;
    npy_array array;
    float *values = must_allocate(2 * 2 * 50 * 32, sizeof *values);
    cr_assert_eq(parse_options(&s, &bench, "--operator=soft --n=50 --m=5 --batch=2"), EXIT_PASS);
    cr_assert(freopen("/dev/null", "w", stdout));
    cr_assert_eq(bench_write_tokens(&s, "tokens"), EXIT_PASS);
    for (int input = 0; input < 3; input += 2) {
        char *path = must_format("tokens/tokens_b2_h2_n50_d32_%c.npy", "qkv"[input]);
        cr_assert_eq(npy_read(path, &array), EXIT_PASS);
        cr_expect(array.batch == 2 && array.heads == 2 && array.rows == 50 && array.cols == 32);
        subject_tokens(0, input, 4, 50, 32, values);
        for (int i = 0; i < 2 * 2 * 50 * 32; i++)
            cr_assert_eq(array.data[i], (double)values[i], "%s, element %d", path, i);
        free(array.data);
        free(path);
    }
    free(values);
    settings_free(&s);
}

Test(bench, run)
{
    settings s;
    size_t size;
    cr_assert_eq(parse_options(&s, &bench,
                               "--quick --operator=sima --n=40 --batch=1 --dtype=f32 "
                               "--threads=1 --out=out"),
                 EXIT_PASS);
    cr_assert(freopen("/dev/null", "w", stdout));
    cr_assert_eq(experiment_run(&bench, &s), EXIT_PASS);
    const output_spec *spec = &bench.outputs[0];
    char *text = (char *)scratch_read("out/bench.csv", &size);
    table *t = table_create(spec->columns, spec->column_count);
    cr_assert(table_read_rows(t, strchr(text, '\n') + 1));
    cr_assert_eq(table_rows(t), 5);
    for (int64_t row = 0; row < 5; row++) {
        double seconds = cell_real(t, row, "seconds");
        cr_expect(seconds > 0 && cell_integer(t, row, "repeats") >= 5, "row %" PRId64, row);
        if (!cell_missing(t, row, "bytes"))
            cr_expect(fabs(cell_real(t, row, "floor_ratio") * cell_real(t, row, "bandwidth_share") -
                           1) < 1e-12);
        cr_expect(cell_is(t, row, "check", row < 3 ? "" : "pass"), "row %" PRId64, row);
    }
    cr_expect(fabs(cell_real(t, 0, "bandwidth_share") - 1) < 1e-12);
    cr_expect(fabs(cell_real(t, 1, "flops_share") - 1) < 1e-12);
    /* q, k, v read and y written; backward reads dy and writes three gradients */
    cr_expect_eq(cell_real(t, 3, "bytes"), 4.0 * 2 * 40 * 32 * 4);
    cr_expect_eq(cell_real(t, 4, "bytes"), 7.0 * 2 * 40 * 32 * 4);
    table_free(t);
    free(text);
    settings_free(&s);
}
