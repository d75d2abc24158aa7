/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum bench: its cases, its clock, its checks, its tokens. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/check.h"
#include "bench/group.h"
#include "bench/plain.h"
#include "bench/rounds.h"
#include "bench/workload.h"
#include "common/blas.h"
#include "common/npy.h"
#include "common/progress.h"
#include "common/report.h"
#include "runs.h"
#include "scratch.h"

TestSuite(bench, .init = scratch_begin, .fini = scratch_end);

static bench_list cases_of(const char *options)
{
    static program_options s;
    options_free(&s);
    cr_assert_eq(parse_options(&s, &bench, options), EXIT_PASS, "%s", options);
    return bench_cases(&s);
}

/* The cases of a kind of work; with the operator unless it is ATN_OPERATOR_COUNT. */
static int64_t count_cases(const char *options, bench_work work, atn_operator op)
{
    int64_t found = 0;
    bench_list list = cases_of(options);
    for (int64_t i = 0; i < list.count; i++)
        found += list.cases[i].work == work && (op == ATN_OPERATOR_COUNT || list.cases[i].op == op);
    bench_list_free(&list);
    return found;
}

#define ANY ATN_OPERATOR_COUNT

Test(bench, cases)
{
    static const struct {
        const char *options;
        bench_work work;
        atn_operator op;
        int64_t count;
    } rows[] = {
        {"--operator=sima --threads=3", BENCH_COPY, ANY, 1},
        {"--operator=sima --threads=1,2,5", BENCH_COPY, ANY, 3},
        {"--operator=sima --threads=3", BENCH_ARITHMETIC, ANY, 2},
        {"--operator=sima --threads=3", BENCH_EXPONENTIALS, ANY, 2},
        {"--op=sima --n=8,9 --batch=1,2,3 --dtype=f32,f64 --threads=1", BENCH_FORWARD, ATN_SIMA,
         12},
        {"--operator=sima --n=8,9 --batch=1,2,3 --dtype=f32,f64 --threads=1,2", BENCH_BACKWARD,
         ATN_SIMA, 24},
        {"--operator=sima/paper,sima/tokens --n=8 --batch=1 --dtype=f32 --threads=1", BENCH_FORWARD,
         ATN_SIMA, 2},
        {"--operator=sima", BENCH_INVERSE, ANY, 0},
        {"--operator=sima", BENCH_GEMM, ANY, 0},
        /* the published inverse and the fast one; m over n is left out */
        {"--operator=soft --n=16 --m=4,16,25 --batch=1 --dtype=f32 --threads=1", BENCH_FORWARD,
         ATN_SOFT, 4},
        {"--variant=eig,nr-soft --m=3,4 --batch=5 --dtype=f64 --threads=1", BENCH_INVERSE, ANY, 4},
        /* and next to them the published steps through OpenBLAS */
        {"--variant=eig,nr-soft --m=3,4 --batch=5 --dtype=f64 --threads=1", BENCH_SOLVE, ANY, 6},
        /* no more threads than matrices */
        {"--variant=eig --m=3 --batch=1,2 --dtype=f64 --threads=1,2,3", BENCH_INVERSE, ANY, 3},
        {"--variant=eig", BENCH_FORWARD, ANY, 0},
        {"--variant=eig", BENCH_EXP, ANY, 0},
        {"--quick --threads=1", BENCH_FORWARD, ATN_SOFTMAX, 1},
        {"--threads=1", BENCH_FORWARD, ATN_SOFTMAX, 2},
        {"--full --threads=1", BENCH_FORWARD, ATN_SOFTMAX, 6},
        {"--threads=1", BENCH_EXP, ANY, 2},
        {"gemm --threads=1", BENCH_EXP, ANY, 0},
        {"gemm exp --threads=1", BENCH_EXP, ANY, 2},
        {"exp --threads=1", BENCH_COPY, ANY, 1},
        {"--threads=1", BENCH_TRAINING, ANY, 10},
        {"--quick --threads=1", BENCH_TRAINING, ANY, 1},
        {"--operator=sima", BENCH_TRAINING, ANY, 0},
        {"training --operator=sima/l2,soft/code --threads=1,2", BENCH_TRAINING, ATN_SIMA, 2},
        {"training --operator=sima --threads=1 --dtype=f64", BENCH_TRAINING, ANY, 0},
        {"training --operator=sima --threads=1 --dtype=f64,f32", BENCH_TRAINING, ANY, 1},
        {"exp --operator=sima", BENCH_FORWARD, ANY, 0},
        {"kernel --n=8,9 --m=4 --dtype=f32 --threads=1,2", BENCH_KERNEL, ANY, 12},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(count_cases(rows[i].options, rows[i].work, rows[i].op), rows[i].count,
                     "'%s': %" PRId64 ", expected %" PRId64, rows[i].options,
                     count_cases(rows[i].options, rows[i].work, rows[i].op), rows[i].count);
}

/* 1 and all processors, without --threads. */
Test(bench, threads)
{
    program_options s;
    cr_assert_eq(parse_options(&s, &bench, "exp"), EXIT_PASS);
    for (s.threads = 1; s.threads <= 3; s.threads += 2) {
        bench_list list = bench_cases(&s);
        cr_expect_eq(list.cases[0].threads, 1);
        cr_expect_eq(list.cases[1].work, s.threads == 1 ? BENCH_ARITHMETIC : BENCH_COPY);
        cr_expect_eq(list.cases[1].threads, s.threads);
        bench_list_free(&list);
    }
    options_free(&s);
}

/* Members that are compared are in one group: all of a shape, all of a batch. */
Test(bench, groups)
{
    bench_list list = cases_of("operators inverses --op=soft,sima --n=8,16 --m=4 --batch=2 "
                               "--variant=eig --dtype=f32,f64 --threads=1,2");
    static const int64_t sizes[] = {10, 16, 16, 8, 8, 6, 6};
    cr_assert_eq(list.groups, 7, "%" PRId64, list.groups);
    for (int64_t group = 0; group < list.groups; group++) {
        int64_t count;
        const bench_case *c = bench_group(&list, group, &count);
        cr_expect_eq(count, sizes[group], "group %" PRId64 ": %" PRId64, group, count);
        for (int64_t i = 1; i < count && group > 0; i++)
            cr_expect(c[i].tokens == c[0].tokens && c[i].op == c[0].op &&
                      c[i].landmarks == c[0].landmarks && c[i].batch == c[0].batch);
    }
    bench_list_free(&list);
}

/* Every operator of the CPU has a case, and the library can plan it. */
Test(bench, every_operator)
{
    int64_t seen = 0;
    atn_context *context = make_context();
    bench_list list = cases_of("--n=100 --m=10 --batch=1 --dtype=f32");
    for (int64_t i = 0; i < list.count; i++) {
        const bench_case *c = &list.cases[i];
        if (c->work != BENCH_FORWARD)
            continue;
        attention_case problem = bench_problem(c, ATN_F32, 1, 100, true);
        atn_cost cost;
        char text[300];
        bench_describe(c, text, sizeof text);
        cr_expect_eq(atn_attention_cost(context, &problem.desc, &problem.shape, &cost), ATN_OK,
                     "%s: %s", text, atn_last_error(context));
        seen |= INT64_C(1) << c->op;
        attention_case_free(&problem);
    }
    cr_expect_eq(seen, (INT64_C(1) << ATN_OPERATOR_COUNT) - 1);
    atn_context_free(context);
    bench_list_free(&list);
}

/* ---- Rounds ---- */

/* Three members whose work logs its calls. */
typedef struct {
    char log[512];
    int length, fails_at; /* fails_at: the call, from 0; -1: none */
} call_log;

typedef struct {
    call_log *calls;
    char name;
    int next;       /* the repeat that it expects */
    double seconds; /* it takes at least */
    int slow;       /* only so many calls, the first; 0: all */
} logged_work;

static atn_status log_call(void *state, int repeat)
{
    logged_work *w = state;
    double start = progress_seconds();
    cr_expect_eq(repeat, w->next++, "%c: inputs are taken in turn", w->name);
    while ((w->slow == 0 || w->next <= w->slow) && progress_seconds() - start < w->seconds)
        ;
    if (w->calls->length < (int)sizeof w->calls->log - 1)
        w->calls->log[w->calls->length] = w->name;
    return w->calls->length++ == w->calls->fails_at ? ATN_ERR_LIBRARY : ATN_OK;
}

/* Ticks of a machine on which other processes are at work in the first readings / 2 rounds. */
typedef struct {
    int readings, dirty_runs;
    bool silent;
    int64_t others;
} toy_ticks;

static bool read_toy(void *state, machine_ticks *ticks)
{
    toy_ticks *t = state;
    if (t->readings % 2 == 1) /* the second of a pair: 100 ticks later */
        t->others += t->readings / 2 < t->dirty_runs ? 50 : 0;
    int64_t all = 100 * ((t->readings + 1) / 2);
    *ticks = (machine_ticks){.all = all, .idle = all - t->others, .steal = 1 + t->readings};
    t->readings++;
    return !t->silent;
}

enum { MEMBERS = 3 };

/* Cold members: one call each a round. */
static atn_status run_toys(const rounds_plan *plan, call_log *calls, toy_ticks *ticks,
                           const double seconds[MEMBERS], rounds_result *result)
{
    atn_context *context = make_context();
    logged_work works[MEMBERS];
    rounds_member members[MEMBERS];
    rounds_meter meter = {read_toy, ticks};
    for (int i = 0; i < MEMBERS; i++) {
        works[i] = (logged_work){.calls = calls, .name = "ABC"[i], .seconds = seconds[i]};
        members[i] =
            (rounds_member){.context = context, .cold = true, .work = log_call, .state = &works[i]};
    }
    atn_status status = rounds_time(plan, &meter, NULL, MEMBERS, members, result);
    atn_context_free(context);
    return status;
}

Test(bench, rounds_interleave)
{
    static const double none[MEMBERS] = {0};
    call_log calls = {.fails_at = -1};
    toy_ticks ticks = {0};
    rounds_plan plan = {.warm_ups = 2, .least = 3, .most = 9, .seconds = 0};
    rounds_result r;
    cr_assert_eq(run_toys(&plan, &calls, &ticks, none, &r), ATN_OK);
    cr_expect_str_eq(calls.log, "AABBCCABCABCABC");
    cr_expect(r.members == 3 && r.rounds == 3 && r.repeated == 0 && r.dirty == 0);
    cr_expect_eq(r.idle, 100);
    cr_expect_eq(r.steal, 1);
    rounds_free(&r);
    plan.seconds = 1e9;
    calls = (call_log){.fails_at = -1};
    cr_assert_eq(run_toys(&plan, &calls, &ticks, none, &r), ATN_OK);
    cr_expect(r.rounds == 9, "%d", r.rounds);
    rounds_free(&r);
    calls = (call_log){.fails_at = 10};
    cr_expect_eq(run_toys(&plan, &calls, &ticks, none, &r), ATN_ERR_LIBRARY);
    cr_expect(calls.length == 11 && r.failed == 1, "%s", calls.log);
    rounds_free(&r);
}

/* If other processes are at work all rounds are repeated, twice at most, and the result says
 * whether it was disturbed. */
Test(bench, rounds_repeat)
{
    static const double none[MEMBERS] = {0};
    static const struct {
        toy_ticks ticks;
        int again, repeated, dirty, calls;
    } rows[] = {
        {{0}, 2, 0, 0, 9},
        {{.dirty_runs = 1}, 2, 1, 0, 15},
        {{.dirty_runs = 2}, 2, 2, 0, 21},
        {{.dirty_runs = 3}, 2, 2, 1, 21},
        {{.dirty_runs = 1}, 0, 0, 1, 9},
        {{.dirty_runs = 3, .silent = true}, 2, 0, -1, 9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        toy_ticks ticks = rows[i].ticks;
        call_log calls = {.fails_at = -1};
        rounds_plan plan = {.warm_ups = 1, .least = 2, .most = 2, .again = rows[i].again};
        rounds_result r;
        cr_assert_eq(run_toys(&plan, &calls, &ticks, none, &r), ATN_OK);
        cr_expect(r.repeated == rows[i].repeated && r.dirty == rows[i].dirty &&
                      calls.length == rows[i].calls,
                  "%zu: %d repeated, dirty %d, %s", i, r.repeated, r.dirty, calls.log);
        rounds_free(&r);
    }
}

/* Longer work has longer times, and ratios are those of two members. */
Test(bench, rounds_seconds)
{
    static const double lengths[MEMBERS] = {0.001, 0.002, 0.006};
    call_log calls = {.fails_at = -1};
    toy_ticks ticks = {0};
    rounds_plan plan = {.warm_ups = 1, .least = 5, .most = 5};
    rounds_result r;
    double start = progress_seconds();
    cr_assert_eq(run_toys(&plan, &calls, &ticks, lengths, &r), ATN_OK);
    double all = progress_seconds() - start, sum = 0;
    for (int i = 0; i < MEMBERS; i++) {
        rounds_statistics s = rounds_seconds(&r, i);
        cr_expect(s.least >= lengths[i] && s.least <= s.low && s.low <= s.median &&
                      s.median <= s.high && s.high <= s.largest,
                  "%d: %g %g %g %g %g", i, s.least, s.low, s.median, s.high, s.largest);
        sum += s.least * 5 + s.largest - s.least;
    }
    cr_expect(sum <= all, "%g of %g", sum, all);
    cr_expect(rounds_ratios(&r, 2, 0).largest >= 6 * lengths[0] / rounds_seconds(&r, 0).largest);
    rounds_free(&r);
}

/* Statistics of invented times: ratios are taken round by round, not between medians. */
Test(bench, rounds_statistics)
{
    double seconds[] = {1, 4, 9, 2, 100, 1, 2, 9, 4, 10};
    int calls[] = {1, 1};
    rounds_result r = {.members = 2, .rounds = 5, .seconds = seconds, .calls = calls};
    rounds_statistics s = rounds_seconds(&r, 0);
    cr_expect(s.least == 1 && s.low == 2 && s.median == 4 && s.high == 9 && s.largest == 100);
    s = rounds_ratios(&r, 0, 1); /* 1, 2, 1, 1/2, 10 */
    cr_expect(s.least == 0.5 && s.low == 1 && s.median == 1 && s.high == 2 && s.largest == 10);
    s = rounds_ratios(&r, 1, 0);
    cr_expect(s.least == 0.1 && s.low == 0.5 && s.median == 1 && s.high == 1 && s.largest == 2);
    r.rounds = 4;
    double even[] = {1, 2, 3, 5, 1, 1, 1, 1};
    r.seconds = even;
    s = rounds_seconds(&r, 0);
    cr_expect(s.median == 2.5 && s.low == 1.75 && s.high == 3.5);
}

/* Hot members: calls are doubled until they take the shortest time, and the result is the time of
 * one call. */
Test(bench, rounds_hot)
{
    atn_context *context = make_context();
    call_log calls = {.fails_at = -1};
    toy_ticks ticks = {0};
    rounds_meter meter = {read_toy, &ticks};
    logged_work work = {.calls = &calls, .name = 'A'};
    rounds_member member = {.context = context, .work = log_call, .state = &work};
    rounds_plan plan = {.warm_ups = 1, .least = 3, .most = 3, .shortest = 0.001};
    rounds_result r;
    double start = progress_seconds();
    cr_assert_eq(rounds_time(&plan, &meter, NULL, 1, &member, &r), ATN_OK);
    double all = progress_seconds() - start, sum = 0;
    cr_expect(r.calls[0] >= 2, "%d", r.calls[0]);
    /* the warm-up; 1, 2, 4 ... calls, each up to three times, then three times the final number */
    cr_expect(calls.length >= 1 + (r.calls[0] - 1) + 6 * r.calls[0] &&
                  calls.length <= 1 + 3 * (r.calls[0] - 1) + 6 * r.calls[0],
              "%d of %d", calls.length, r.calls[0]);
    for (int i = 0; i < r.rounds; i++)
        sum += r.seconds[i] * r.calls[0];
    cr_expect(sum > 0 && sum <= all, "%g of %g", sum, all);
    rounds_free(&r);
    atn_context_free(context);
}

/* Calls that were disturbed while their number was chosen, or in repeated rounds, do not make the
 * kept rounds too short. */
Test(bench, rounds_disturbed)
{
    static const struct {
        int slow, dirty_runs;
    } rows[] = {{2, 0}, {3, 0}, {7, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        atn_context *context = make_context();
        call_log calls = {.fails_at = -1};
        toy_ticks ticks = {.dirty_runs = rows[i].dirty_runs};
        rounds_meter meter = {read_toy, &ticks};
        logged_work work = {.calls = &calls, .name = 'A', .seconds = 0.004, .slow = rows[i].slow};
        rounds_member member = {.context = context, .work = log_call, .state = &work};
        rounds_plan plan = {.warm_ups = 1, .least = 3, .most = 3, .shortest = 0.002, .again = 1};
        rounds_result r;
        cr_assert_eq(rounds_time(&plan, &meter, NULL, 1, &member, &r), ATN_OK);
        cr_expect(r.calls[0] > 1 && r.repeated == rows[i].dirty_runs, "%zu: %d", i, r.calls[0]);
        rounds_free(&r);
        atn_context_free(context);
    }
}

/* The flush, which a machine's cache cannot hold, is run before each cold call only. */
Test(bench, flush)
{
    atn_context *context = make_context();
    rounds_flush flush;
    cr_assert_eq(rounds_flush_open(context, &flush), ATN_OK);
    cr_expect_geq(flush.half, (size_t)64 << 20);
    call_log calls = {.fails_at = -1};
    toy_ticks ticks = {0};
    rounds_meter meter = {read_toy, &ticks};
    logged_work work = {.calls = &calls, .name = 'A'};
    rounds_member member = {.context = context, .work = log_call, .state = &work};
    rounds_plan plan = {.warm_ups = 1, .least = 1, .most = 1};
    for (int cold = 0; cold < 2; cold++) {
        rounds_result r;
        work.next = 0;
        member.cold = cold;
        flush.memory[flush.half] = (char)~flush.memory[0];
        cr_assert_eq(rounds_time(&plan, &meter, &flush, 1, &member, &r), ATN_OK);
        cr_expect_eq(flush.memory[flush.half] == flush.memory[0], cold);
        rounds_free(&r);
    }
    rounds_flush_close(context, &flush);
    atn_context_free(context);
}

/* ---- Pairs ---- */

/* What the times of two members of a run are divided for, as text: "backward / forward". */
static bool are_paired(const bench_case *a, const bench_case *b)
{
    group_member x = {.c = a}, y = {.c = b};
    return group_pair(&x, &y) != NULL;
}

Test(bench, pairs)
{
    bench_case forward = {.work = BENCH_FORWARD, .op = ATN_SOFT, .landmarks = 9, .threads = 1};
    bench_case backward = forward, other = forward, fast = forward;
    forward.inverse = backward.inverse = other.inverse = ATN_INVERSE_NR_PAPER;
    backward.work = BENCH_BACKWARD;
    other.threads = 2;
    fast.inverse = ATN_INVERSE_CHEBYSHEV_2;
    cr_expect(are_paired(&backward, &forward));
    cr_expect(!are_paired(&forward, &backward) && !are_paired(&forward, &forward));
    cr_expect(are_paired(&forward, &other) && !are_paired(&other, &forward));
    cr_expect(!are_paired(&backward, &other), "in work and threads");
    cr_expect(are_paired(&fast, &forward) && !are_paired(&forward, &fast));
    bench_case newton = {.work = BENCH_SOLVE, .maker = BENCH_OPENBLAS, .landmarks = 9};
    bench_case paper = newton, pivoted = newton;
    newton.inverse = paper.inverse = ATN_INVERSE_NR_PAPER;
    paper.maker = pivoted.maker = BENCH_OURS;
    pivoted.inverse = ATN_INVERSE_PIVOTED_CHOLESKY;
    cr_expect(are_paired(&newton, &pivoted) && !are_paired(&pivoted, &newton));
    cr_expect(are_paired(&newton, &paper) && are_paired(&pivoted, &paper));
    cr_expect(!are_paired(&paper, &newton));
    bench_case libm = {.work = BENCH_EXP, .maker = BENCH_LIBM, .tokens = 5}, ours = libm;
    ours.maker = BENCH_OURS;
    cr_expect(are_paired(&libm, &ours) && !are_paired(&ours, &libm));
    ours.dtype = ATN_F64;
    cr_expect(!are_paired(&libm, &ours));
    bench_case copy = {.work = BENCH_COPY, .threads = 1},
               copies = {.work = BENCH_COPY, .threads = 2};
    cr_expect(!are_paired(&copy, &copies), "rates are what rows are compared with");
    group_member left_out = {.c = &backward, .place = -1}, timed = {.c = &forward};
    cr_expect(!group_pair(&left_out, &timed));
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
    cr_expect_eq(atn_timer_inverses(other, timer), ATN_ERR_VALUE);
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
    const double tiny = 0x1p-8;
    static const struct {
        atn_dtype dtype;
        double error; /* in roundoffs of dtype */
        double condition;
        check_kind kind;
        int64_t terms;
    } rows[] = {
        {ATN_F32, 7, 1, CHECK_PASS, 0},       {ATN_F32, 9, 1, CHECK_FAIL, 0},
        {ATN_F32, 9, 10, CHECK_PASS, 0},      {ATN_F64, 70, 10, CHECK_PASS, 0},
        {ATN_F64, 81, 10, CHECK_FAIL, 0},     {ATN_BF16, 7, 0, CHECK_PASS, 0},
        {ATN_BF16, 100, 1, CHECK_FAIL, 0},    {ATN_BF16, 30, 1000, CHECK_OPEN, 0},
        {ATN_F32, NAN, 1, CHECK_FAIL, 0},     {ATN_F32, INFINITY, 1, CHECK_FAIL, 0},
        {ATN_BF16, NAN, 1e9, CHECK_FAIL, 0},  {ATN_F32, 1, NAN, CHECK_OPEN, 0},
        {ATN_F32, 79, 1, CHECK_PASS, 81},     {ATN_F32, 81, 1, CHECK_FAIL, 81},
        {ATN_F64, 79, 1, CHECK_PASS, 81},     {ATN_F64, 81, 1, CHECK_FAIL, 81},
        {ATN_BF16, 9, 1, CHECK_FAIL, 81},     {ATN_BF16, 100, 16, CHECK_PASS, 0},
        {ATN_BF16, 100, 16.1, CHECK_OPEN, 0},
    };
    cr_expect_eq(atn_dtype_roundoff(ATN_BF16), tiny);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_result r =
            check_judge(rows[i].dtype, rows[i].error * atn_dtype_roundoff(rows[i].dtype),
                        rows[i].condition, rows[i].terms);
        cr_expect_eq(r.kind, rows[i].kind, "%zu: %s", i, check_name(r.kind));
    }
}

/* The bound follows from the problem: these matrices magnify rounding a hundred times, and both
 * types invert the same matrix. */
Test(bench, condition)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_CHOLESKY,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY};
    const double one = 8 * (1 + 7) * atn_dtype_roundoff(ATN_F32); /* of condition 1, 49 terms */
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        bench_case c = {.work = BENCH_SOLVE,
                        .inverse = methods[i],
                        .batch = 1,
                        .heads = 1,
                        .landmarks = 49,
                        .threads = 1};
        check_result r;
        cr_assert_eq(check_case(context, &c, &r), ATN_OK);
        cr_expect(r.kind == CHECK_PASS && r.bound > 10 * one && r.bound < 1000 * one,
                  "%zu: %s %g of %g", i, check_name(r.kind), r.error, r.bound / one);
        c.dtype = ATN_F64;
        cr_assert_eq(check_case(context, &c, &r), ATN_OK);
        cr_expect(r.kind == CHECK_PASS && r.error > 0, "%zu: %s %g of %g", i, check_name(r.kind),
                  r.error, r.bound);
    }
    atn_context_free(context);
}

Test(bench, worst)
{
    const check_result passes = {CHECK_PASS, 1, 2}, closer = {CHECK_PASS, 3, 4},
                       open = {CHECK_OPEN, 1, 9}, unknown = {CHECK_OPEN, 1, NAN},
                       fails = {CHECK_FAIL, 2, 1};
    const check_result *const orders[][4] = {{&passes, &closer, &open, &fails},
                                             {&closer, &passes, &unknown, &fails}};
    for (size_t i = 0; i < 2; i++)
        for (int from = 0; from < 4; from++)
            for (int other = 0; other < 4; other++) {
                check_result worst = {0};
                check_keep_worse(&worst, *orders[i][from]);
                check_keep_worse(&worst, *orders[i][other]);
                const check_result *want = orders[i][from > other ? from : other];
                if (from > 1 || other > 1)
                    cr_expect_eq(worst.kind, want->kind, "%d, %d", from, other);
                else
                    cr_expect_eq(worst.error, from == other ? orders[i][from]->error : 3);
            }
}

/* A member that fails leaves the existing arrays of its type alone, and no incomplete ones. */
Test(bench, failing_member)
{
    atn_context *context = make_context();
    bench_case good = {
        .work = BENCH_GEMM, .batch = 1, .heads = 1, .tokens = 6, .landmarks = 4, .dim = 5};
    good.threads = 1;
    good.transpose_b = true;
    bench_case bad = good; /* libxsmm has no A B^T */
    bad.maker = BENCH_LIBXSMM;
    workload_store store;
    workload first, s, second, again;
    workload_store_open(context, 1, &good, &store);
    const workload_arrays *arrays = &store.types[good.dtype];
    workload_open(&store, context, &bad, &first);
    cr_expect(first.status == ATN_ERR_UNSUPPORTED && !arrays->open && store.owned_count == 0);
    workload_open(&store, context, &good, &s);
    cr_expect(arrays->open && store.owned_count == 3);
    const workload_arrays before = *arrays;
    workload_open(&store, context, &bad, &second);
    workload_open(&store, context, &bad, &again);
    cr_expect(arrays->open && arrays->inputs[0][0].data == before.inputs[0][0].data &&
              arrays->outputs[0].data == before.outputs[0].data && store.owned_count == 3);
    cr_expect_eq(workload_try(&s), ATN_OK);
    store.owned_count = STORE_OWNED;
    cr_expect_null(workload_take_array(&store, &s, 2, 2).data);
    cr_expect_eq(s.status, ATN_ERR_MEMORY);
    store.owned_count = 3;
    workload_close(&again);
    workload_close(&second);
    workload_close(&s);
    workload_close(&first);
    workload_store_close(&store);
    atn_context_free(context);
}

/* The reference has no operator with an inverse that is not published. */
static bool is_told(const bench_case *c)
{
    return c->dtype != ATN_F64 || c->maker != BENCH_OURS || bench_is_inverse(c) ||
           c->inverse != ATN_INVERSE_CHEBYSHEV_2;
}

/* Every case passes in both types, and the work itself writes the outputs. */
Test(bench, workloads)
{
    atn_context *context = make_context();
    bench_list list = cases_of("operators inverses kernel gemm exp "
                               "--operator=soft,sima,lsh,linformer --n=49 --m=7 --batch=2 "
                               "--dtype=f32,f64 --threads=1");
    for (int64_t group = 0; group < list.groups; group++) {
        int64_t count;
        const bench_case *cases = bench_group(&list, group, &count);
        workload_store store;
        workload_store_open(context, count, cases, &store);
        for (int64_t i = 0; i < count && group > 0; i++) {
            char text[300];
            check_result check;
            workload s;
            bench_describe(&cases[i], text, sizeof text);
            workload_open(&store, context, &cases[i], &s);
            if (s.status != ATN_ERR_UNSUPPORTED) { /* libxsmm has no A B^T */
                cr_expect_eq(check_case(context, &cases[i], &check), ATN_OK, "%s", text);
                cr_expect_eq(check.kind, is_told(&cases[i]) ? CHECK_PASS : CHECK_OPEN,
                             "%s: %s %g of %g", text, check_name(check.kind), check.error,
                             check.bound);
                bool same = cases[i].work == BENCH_GEMM; /* OpenBLAS may add in the same order */
                cr_expect(same || check.kind == CHECK_OPEN || check.error > 0,
                          "%s: compared with itself", text);
                cr_expect(same || bench_is_inverse(&cases[i]) || check.bound != 8 * check.error,
                          "%s: its bound is made of its own error", text);
                cr_expect_eq(s.status, ATN_OK, "%s: %s", text, atn_last_error(context));
                cr_expect_eq(workload_try(&s), ATN_OK, "%s", text);
                cr_expect(s.bytes > 0 && (s.flops + s.exps > 0 || cases[i].work == BENCH_BACKWARD),
                          "%s", text);
                for (int set = 0; set <= WORKLOAD_SETS; set++)
                    workload_run(&s, set);
                cr_expect_eq(workload_outcome(&s), ATN_OK, "%s", text);
            } else
                cr_expect(cases[i].maker == BENCH_LIBXSMM && cases[i].transpose_b, "%s", text);
            workload_close(&s);
        }
        workload_store_close(&store);
    }
    bench_list_free(&list);
    atn_context_free(context);
}

/* With one landmark X is 0, as are linformer's gradients of Q and K; with two, rounding doubles in
 * each step from the papers' start, so that f32 has no digits left. */
Test(bench, few_landmarks)
{
    atn_context *context = make_context();
    bench_list list = cases_of("operators inverses --operator=soft,softpp,linformer "
                               "--variant=nr-paper,nr-softpp,cholesky --n=48 --m=1,2 --batch=1 "
                               "--dtype=f32,f64 --threads=1");
    for (int64_t i = 0; i < list.count; i++) {
        const bench_case *c = &list.cases[i];
        check_result r;
        char text[300];
        if (bench_is_rate(c) || (c->op == ATN_SOFTPP && c->inverse == ATN_INVERSE_CHEBYSHEV_2))
            continue; /* softpp's gradient through the steps is not one of these */
        bench_describe(c, text, sizeof text);
        cr_expect_eq(check_case(context, c, &r), ATN_OK, "%s", text);
        bool doubled = c->dtype == ATN_F32 && c->op != ATN_LINFORMER &&
                       (c->inverse == ATN_INVERSE_NR_PAPER || c->inverse == ATN_INVERSE_NR_SOFTPP);
        check_kind kind = doubled || !is_told(c) ? CHECK_OPEN : CHECK_PASS;
        cr_expect_eq(r.kind, kind, "%s: %s %g of %g", text, check_name(r.kind), r.error, r.bound);
    }
    bench_list_free(&list);
    atn_context_free(context);
}

/* Work that writes nothing is detected, whatever the outputs contained before. */
Test(bench, unwritten)
{
    atn_context *context = make_context();
    bench_case c = {.work = BENCH_SOLVE,
                    .maker = BENCH_OPENBLAS,
                    .inverse = ATN_INVERSE_NR_PAPER,
                    .batch = 3,
                    .heads = 1,
                    .landmarks = 5,
                    .threads = 1};
    workload_store store;
    workload s;
    workload_store_open(context, 1, &c, &store);
    workload_open(&store, context, &c, &s);
    cr_expect_eq(workload_try(&s), ATN_OK);
    c.batch = 2;
    cr_expect_eq(workload_try(&s), ATN_NONFINITE, "the last was not written");
    workload_close(&s);
    workload_store_close(&store);
    atn_context_free(context);
}

/* The first case of a kind of work and maker. */
static const bench_case *find_case(const bench_list *list, bench_work work, bench_maker maker)
{
    for (int64_t i = 0; i < list->count; i++)
        if (list->cases[i].work == work && list->cases[i].maker == maker)
            return &list->cases[i];
    cr_assert(false);
    return NULL;
}

/* All heads have the tokens that are written for peers, including heads that repeat others. */
Test(bench, inputs)
{
    int64_t elements = 6 * 2 * 10 * 32;
    atn_context *context = make_context();
    bench_list list = cases_of("--operator=sima --n=10 --batch=6 --dtype=f32");
    const bench_case *c = find_case(&list, BENCH_FORWARD, BENCH_OURS);
    float *values = must_allocate((size_t)elements, sizeof *values);
    workload_store store;
    workload s, again;
    bench_case members[] = {*c, *c, *c};
    members[1].dtype = ATN_F64;
    workload_store_open(context, 3, members, &store);
    cr_expect_eq(store.type_count, 2, "members of a type share arrays");
    workload_open(&store, context, c, &s);
    workload_open(&store, context, c, &again);
    cr_assert_eq(s.arrays->sets, WORKLOAD_SETS);
    cr_expect_eq(s.arrays, again.arrays, "members share them");
    for (int set = 0; set < WORKLOAD_SETS; set++)
        for (int input = 0; input < WORKLOAD_INPUTS; input++) {
            workload_tokens(set, input, 12, 10, 32, values);
            cr_expect(memcmp(values, s.arrays->inputs[set][input].data,
                             (size_t)elements * sizeof *values) == 0,
                      "input %d of set %d", input, set);
        }
    cr_expect(memcmp(s.arrays->inputs[0][0].data, s.arrays->inputs[1][0].data, 64) != 0,
              "sets differ");
    workload_close(&again);
    workload_close(&s);
    workload_store_close(&store);
    free(values);
    bench_list_free(&list);
    atn_context_free(context);
}

/* A case run once: what it counts. */
static workload count_work(const char *options, bench_work work, bench_maker maker)
{
    atn_context *context = make_context();
    bench_list list = cases_of(options);
    workload_store store;
    workload s;
    workload_store_open(context, 1, find_case(&list, work, maker), &store);
    workload_open(&store, context, find_case(&list, work, maker), &s);
    cr_expect_eq(workload_try(&s), ATN_OK, "%s", options);
    workload_close(&s);
    workload_store_close(&store);
    bench_list_free(&list);
    atn_context_free(context);
    return s;
}

Test(bench, counts)
{
    const double cube = 12.0 * 12 * 12, side = 2.0 * 12 * 12 * BENCH_RIGHT_SIDES;
    static const char *const three = "--m=12 --batch=3 --dtype=f32 --threads=1 --variant=";
    char *options = must_format("%snr-paper", three);
    workload s = count_work(options, BENCH_SOLVE, BENCH_OPENBLAS);
    cr_expect_eq(s.flops, 3 * (40 * 2 * cube + side), "%g", s.flops);
    s = count_work(options, BENCH_SOLVE, BENCH_OURS);
    cr_expect_eq(s.flops, 3 * (40 * 2 * cube + side), "%g", s.flops);
    cr_expect_eq(s.bytes, 3 * 12.0 * (12 + 2 * BENCH_RIGHT_SIDES) * 4, "%g", s.bytes);
    s = count_work(options, BENCH_INVERSE, BENCH_OURS);
    cr_expect_eq(s.flops, 3 * 40 * 2 * cube, "%g", s.flops);
    cr_expect_eq(s.bytes, 2.0 * 3 * 12 * 12 * 4);
    free(options);
    options = must_format("%spivoted-cholesky", three);
    s = count_work(options, BENCH_SOLVE, BENCH_OURS);
    cr_expect(fabs(s.flops - 3 * (cube / 3 + side)) < 1, "%g", s.flops);
    free(options);
    static const char *const parts =
        "kernel gemm exp --n=40 --m=12 --dtype=f64 --threads=2"; /* d = 32, 2 heads */
    s = count_work(parts, BENCH_KERNEL, BENCH_LIBM);
    cr_expect(s.flops == 2 * 40 * 12 * 67.0 && s.exps == 2 * 40 * 12 &&
              s.bytes == 2 * 8.0 * (40 * 32 + 12 * 32 + 40 * 12));
    s = count_work(parts, BENCH_GEMM, BENCH_OURS);
    cr_expect(s.flops == 2 * cube && s.exps == 0 && s.bytes == 8.0 * 3 * 12 * 12);
    s = count_work(parts, BENCH_EXP, BENCH_LIBM);
    cr_expect(s.exps == 2 * 2048.0 * WORKLOAD_EXPONENTIALS && s.flops == 0);
    /* norms and their derivatives, 2 each; of K^T V 5 products; d = 32, 2 heads */
    static const char *const sima = "operators --op=sima --n=40 --batch=1 --dtype=f32 --threads=1";
    s = count_work(sima, BENCH_FORWARD, BENCH_OURS);
    cr_expect_eq(s.flops, 2 * (2 * 80 * 32 + 2 * 80 * 1024.0), "%g", s.flops);
    s = count_work(sima, BENCH_BACKWARD, BENCH_OURS);
    cr_expect_eq(s.flops, 2 * (4 * 80 * 32 + 2 * 200 * 1024.0 + 2 * 1024), "%g", s.flops);
    cr_expect(s.exps == 0 && s.bytes == 7.0 * 2 * 40 * 32 * 4);
    static const char *const soft =
        "operators --op=soft --n=40 --m=10 --batch=1 --dtype=f32 --threads=1";
    s = count_work(soft, BENCH_FORWARD, BENCH_OURS);
    cr_expect_eq(s.exps, 2 * (100 + 400), "P once: %g", s.exps);
    /* averages of 4 tokens; A and P, 96 a pair; 40 products and the residual's; P V, P^T W; X U */
    cr_expect_eq(s.flops, 2 * (50 * 32 + 500 * 96.0 + 84e3 + 4 * 400 * 32 + 2 * 100 * 32), "%g",
                 s.flops);
    s = count_work(soft, BENCH_BACKWARD, BENCH_OURS);
    cr_expect_eq(s.exps, 2 * (100 + 400), "P once: %g", s.exps);
    cr_expect(s.bytes == 5.0 * 2 * 40 * 32 * 4, "%g", s.bytes);
    /* 32 pictures of 196 tokens, 4 blocks of width 64: 64 x 512 weights for queries, keys, values,
     * output and the MLP of 128, 3 products each; of the patches of 4 pixels 2; sima's backward as
     * above */
    s = count_work("training --op=sima --threads=1", BENCH_TRAINING, BENCH_OURS);
    double linear = 6272.0 * (4 * 6 * 64 * 512 + 4 * 4 * 64) + 6 * 32 * 64 * 10;
    double attention = 64 * (4 * 392 * 32 + 2 * 980 * 1024.0 + 2 * 1024);
    cr_expect_eq(s.flops, linear + 4 * attention, "%g", s.flops);
    cr_expect_eq(s.exps, 4 * 6272.0 * 128, "GELU: %g", s.exps);
    /* softmax takes each exp once, although forward and backward compute it */
    s = count_work("training --op=softmax --threads=1", BENCH_TRAINING, BENCH_OURS);
    cr_expect_eq(s.exps, 4 * (6272.0 * 128 + 64 * 196.0 * 196), "%g", s.exps);
}

/* Our code is compared with the published 20 steps: before convergence one step more or less gives
 * another result. */
Test(bench, plain_newton)
{
    enum { M = 30, COLS = 4 };
    atn_context *context = make_context();
    double *a = must_allocate(4 * M * M + 2 * M * COLS, sizeof *a), *w = a + 4 * M * M;
    double want[M * COLS], largest = 0, error = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++)
            a[i * M + j] = exp(-0.01 * (i - j) * (i - j)); /* condition 1e17 */
    for (int i = 0; i < M * COLS; i++)
        w[i] = sin(i);
    atn_inverse_desc paper = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    atn_tensor ta = atn_tensor_dense(a, ATN_F64, 1, 1, M, M);
    atn_tensor tw = atn_tensor_dense(w, ATN_F64, 1, 1, M, COLS);
    atn_tensor ty = atn_tensor_dense(want, ATN_F64, 1, 1, M, COLS);
    cr_assert_geq(atn_inverse_apply(context, &paper, &ta, &tw, &ty, NULL), 0);
    plain_newton(ATN_F64, M, COLS, a, w, a + M * M, w + M * COLS);
    for (int i = 0; i < M * COLS; i++) {
        largest = fmax(largest, fabs(want[i]));
        double apart = fabs(want[i] - w[M * COLS + i]);
        error = apart <= error ? error : apart; /* NaN stays */
    }
    /* rounding of X doubles in each step that does not converge: 2^20 u, and 100 for the sizes */
    cr_expect(error <= 100 * 0x1p20 * 0x1p-53 * largest, "%g of %g", error, largest);
    free(a);
    atn_context_free(context);
}

/* From alpha I: the fewest steps that reach the residual of nr-paper's 20. */
Test(bench, steps)
{
    enum { M = 49 };
    atn_context *context = make_context();
    double *a = must_allocate(2 * M * M, sizeof *a), residuals[3];
    bench_case c = {.work = BENCH_SOLVE,
                    .inverse = ATN_INVERSE_CHEBYSHEV_2,
                    .batch = 1,
                    .heads = 1,
                    .landmarks = M};
    atn_tensor from = atn_tensor_dense(a, ATN_F64, 1, 1, M, M);
    atn_tensor to = atn_tensor_dense(a + M * M, ATN_F64, 1, 1, M, M);
    atn_inverse_desc desc, paper = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    cr_assert_eq(workload_inverse(&c, ATN_ISA_AUTO, &desc), ATN_OK);
    cr_expect(desc.iterations > 2 && desc.iterations < 20, "%d", desc.iterations);
    workload_matrices(0, 1, M, a);
    const atn_inverse_desc *const descs[] = {&paper, &desc, &desc};
    for (int i = 0; i < 3; i++) {
        atn_inverse_info info;
        desc.iterations -= i == 2;
        cr_assert_geq(atn_inverse(context, descs[i], &from, &to, &info, NULL), 0);
        residuals[i] = info.residual;
    }
    double wanted = fmax(residuals[0], atn_dtype_roundoff(ATN_F32));
    cr_expect(residuals[1] <= wanted && residuals[2] > wanted, "%g: %g, one step less %g", wanted,
              residuals[1], residuals[2]);
    c.inverse = ATN_INVERSE_NR_PAPER;
    cr_assert_eq(workload_inverse(&c, ATN_ISA_AUTO, &desc), ATN_OK);
    cr_expect_eq(desc.iterations, 20);
    free(a);
    atn_context_free(context);
}

/* ---- Whole runs ---- */

Test(bench, tokens)
{
    program_options s;
    npy_array array;
    float *values = must_allocate(2 * 2 * 50 * 32, sizeof *values);
    cr_assert_eq(parse_options(&s, &bench, "--operator=soft --n=50 --m=5 --batch=2"), EXIT_PASS);
    cr_assert(freopen("/dev/null", "w", stdout));
    cr_assert_eq(bench_write_tokens(&s, "tokens"), EXIT_PASS);
    for (int input = 0; input < 3; input += 2) {
        char *path = must_format("tokens/tokens_b2_h2_n50_d32_%c.npy", "qkv"[input]);
        cr_assert_eq(npy_read(path, &array), EXIT_PASS);
        cr_expect(array.batch == 2 && array.heads == 2 && array.rows == 50 && array.cols == 32);
        workload_tokens(0, input, 4, 50, 32, values);
        for (int i = 0; i < 2 * 2 * 50 * 32; i++)
            cr_assert_eq(array.data[i], (double)values[i], "%s, element %d", path, i);
        free(array.data);
        free(path);
    }
    free(values);
    options_free(&s);
}

/* Work in a second in the shortest round, of the row of a kind of work with as many threads. */
static double rate_in(const table *t, const char *work, const char *amount, int64_t threads)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "work", work) && !cell_is(t, row, "dtype", "f64") &&
            cell_integer(t, row, "threads") == threads)
            return cell_real(t, row, amount) / cell_real(t, row, "seconds_least");
    cr_assert(false, "no %s", work);
    return 0;
}

static bool near(double x, double y)
{
    return fabs(x - y) <= 1e-12 * fabs(y);
}

/* Shares are of the rates of as many threads: of the longer of arithmetic and memory where the
 * cache was cold, of arithmetic alone where all is in it. */
static void check_shares(const table *t, int64_t row)
{
    int64_t threads = cell_integer(t, row, "threads");
    double seconds = cell_real(t, row, "seconds");
    double work = cell_real(t, row, "flops") / rate_in(t, "arithmetic", "flops", threads) +
                  cell_real(t, row, "exps") / rate_in(t, "exponentials", "exps", threads);
    double memory = cell_real(t, row, "bytes") / rate_in(t, "copy", "bytes", threads);
    bool cold = cell_is(t, row, "cache", "cold");
    if (!cell_missing(t, row, "flops")) {
        double floor = cold && memory > work ? memory : work;
        cr_expect(near(cell_real(t, row, "floor_s"), floor), "row %" PRId64, row);
        cr_expect(near(cell_real(t, row, "floor_share"), floor / seconds), "row %" PRId64, row);
    }
    cr_expect_eq(cell_missing(t, row, "byte_floor_s"), !cold, "row %" PRId64, row);
    if (cold)
        cr_expect(near(cell_real(t, row, "byte_floor_s"), memory) &&
                      near(cell_real(t, row, "floor_ratio"), seconds / memory),
                  "row %" PRId64, row);
}

static void check_rows(const table *t)
{
    atn_isa isa;
    cr_assert_eq(atn_isa_choose(ATN_ISA_AUTO, &isa, NULL), ATN_OK);
    blas_description blas = blas_describe();
    for (int64_t row = 0; row < table_rows(t); row++) {
        double seconds = cell_real(t, row, "seconds");
        bool rate = cell_is(t, row, "check", "");
        bool cold = cell_is(t, row, "work", "forward") || cell_is(t, row, "work", "backward");
        cr_expect(cell_is(t, row, "cache", cold ? "cold" : "hot"), "row %" PRId64, row);
        if (cell_is(t, row, "check", "left-out")) { /* libxsmm has no A B^T */
            cr_expect(cell_is(t, row, "variant", "libxsmm") && cell_missing(t, row, "seconds"));
            continue;
        }
        cr_expect(seconds > 0 && cell_integer(t, row, "repeats") >= 5, "row %" PRId64, row);
        cr_expect(cell_real(t, row, "seconds_least") <= seconds &&
                  seconds <= cell_real(t, row, "seconds_largest"));
        cr_expect(rate || cell_is(t, row, "check", "pass"), "row %" PRId64, row);
        cr_expect(cell_missing(t, row, "dirty") ||
                  (cell_integer(t, row, "dirty") == (cell_integer(t, row, "dirty") != 0) &&
                   cell_integer(t, row, "idle_ticks") >= 0 &&
                   cell_integer(t, row, "steal_ticks") >= 0));
        cr_expect(strlen(cell_text(t, row, "compiler")) > 2 && *cell_text(t, row, "blas") &&
                  strstr(blas.config, cell_text(t, row, "blas")) == blas.config &&
                  (blas.core ? strcmp(cell_text(t, row, "blas_core"), blas.core) == 0
                             : cell_missing(t, row, "blas_core")) &&
                  cell_is(t, row, "isa", atn_isa_name(isa)));
        if (!rate)
            check_shares(t, row);
    }
}

/* A ratio is between those of the extremes of its two rows. */
static void check_ratio(const table *t, const table *ratios, int64_t row)
{
    const double times[] = {cell_real(ratios, row, "seconds"),
                            cell_real(ratios, row, "by_seconds")};
    double least[2] = {0}, largest[2] = {0};
    for (int64_t r = 0; r < table_rows(t); r++)
        for (int i = 0; i < 2; i++)
            if (cell_real(t, r, "seconds") == times[i]) {
                least[i] = cell_real(t, r, "seconds_least");
                largest[i] = cell_real(t, r, "seconds_largest");
            }
    double ratio = cell_real(ratios, row, "ratio");
    cr_expect(ratio >= least[0] / largest[1] && ratio <= largest[0] / least[1],
              "%s: %g, of %g to %g by %g to %g", cell_text(ratios, row, "quantity"), ratio,
              least[0], largest[0], least[1], largest[1]);
    cr_expect(cell_real(ratios, row, "ratio_low") <= ratio &&
              ratio <= cell_real(ratios, row, "ratio_high") &&
              cell_integer(ratios, row, "rounds") >= 5);
}

/* The best share of a rate, which is that of its shortest round. */
static double best_share(const table *t, int64_t row)
{
    return cell_real(t, row, "seconds_least") / cell_real(t, row, "seconds");
}

static bool same_integer(const table *t, int64_t row, const char *a, const char *b)
{
    return cell_missing(t, row, a)
               ? cell_missing(t, row, b)
               : !cell_missing(t, row, b) && cell_integer(t, row, a) == cell_integer(t, row, b);
}

static table *read_rows(int output)
{
    const output_spec *spec = &bench.outputs[output];
    char *path = must_format("out/%s.csv", spec->name);
    table *t = table_read_file(path, spec->columns, spec->column_count);
    cr_assert(t);
    free(path);
    return t;
}

/* A row with the columns that shares need; all others are missing. */
static void add_made_up(table *t, const char *work, double seconds, double flops, int64_t dirty)
{
    const struct {
        const char *name;
        double value;
    } reals[] = {{"seconds", seconds}, {"seconds_least", seconds / 2}, {"flops", flops}};
    for (int col = 0; col < bench.raw_column_count; col++) {
        const column *c = &bench.raw_columns[col];
        double value = NAN;
        for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
            value = strcmp(c->name, reals[i].name) == 0 ? reals[i].value : value;
        if (c->type == COLUMN_TEXT)
            table_text(t, strcmp(c->name, "work") == 0 ? work : "");
        else if (strcmp(c->name, "threads") == 0 || strcmp(c->name, "dirty") == 0)
            table_integer(t, strcmp(c->name, "dirty") == 0 ? dirty : 1);
        else if (c->type == COLUMN_REAL && value > 0)
            table_real(t, value);
        else
            table_missing(t);
    }
}

/* A share refers to the rate's shortest round, and is marked if other processes were at work in its
 * rounds. */
Test(bench, dirty_rates)
{
    program_options s;
    cr_assert_eq(parse_options(&s, &bench, "gemm"), EXIT_PASS);
    cr_assert(freopen("/dev/null", "w", stdout));
    for (int dirty = 0; dirty < 2; dirty++) {
        table *raw = table_create(bench.raw_columns, bench.raw_column_count);
        table *made[2];
        for (int i = 0; i < 2; i++)
            made[i] = table_create(bench.outputs[i].columns, bench.outputs[i].column_count);
        add_made_up(raw, "arithmetic", 2, 100, dirty); /* 100 a second at best */
        add_made_up(raw, "gemm", 4, 200, 0);
        cr_assert_eq(bench.finish(&s, NULL, raw, made), EXIT_PASS);
        cr_expect_eq(cell_real(made[0], 1, "floor_share"), 0.5);
        cr_expect_eq(cell_integer(made[0], 1, "rates_dirty"), dirty);
        cr_expect_eq(cell_integer(made[0], 1, "dirty"), 0);
        for (int i = 0; i < 2; i++)
            table_free(made[i]);
        table_free(raw);
    }
    options_free(&s);
}

Test(bench, run)
{
    program_options s;
    cr_assert_eq(parse_options(&s, &bench,
                               "operators gemm --quick --operator=sima --n=40 --m=9 --batch=1 "
                               "--dtype=f32 --threads=1,2 --out=out"),
                 EXIT_PASS);
    cr_assert(freopen("/dev/null", "w", stdout));
    cr_assert_eq(experiment_run(&bench, &s), EXIT_PASS);
    table *t = read_rows(0), *ratios = read_rows(1);
    check_rows(t);
    cr_expect(near(cell_real(t, 0, "bandwidth_share"), best_share(t, 0)));
    cr_expect_eq(cell_real(t, 0, "bytes"), 0x1p28, "128 MiB are read, and written");
    cr_expect_eq(cell_real(t, 1, "bytes"), 0x1p28, "by all threads together");
    cr_expect(cell_is(t, 2, "work", "arithmetic") &&
              near(cell_real(t, 2, "flops_share"), best_share(t, 2)) &&
              near(cell_real(t, 2, "floor_share"), best_share(t, 2)));
    cr_expect(cell_is(t, 4, "work", "exponentials") &&
              near(cell_real(t, 4, "floor_share"), best_share(t, 4)));
    for (int64_t row = 0; row < 6; row++) /* each is of itself */
        cr_expect(same_integer(t, row, "rates_dirty", "dirty"), "row %" PRId64, row);
    /* q, k, v read and y written; backward reads dy and writes three gradients */
    cr_expect(cell_is(t, 10, "work", "forward") && cell_is(t, 12, "work", "backward"));
    cr_expect_eq(cell_real(t, 10, "bytes"), 4.0 * 2 * 40 * 32 * 4);
    cr_expect_eq(cell_real(t, 12, "bytes"), 7.0 * 2 * 40 * 32 * 4);
    cr_expect(cell_real(t, 12, "floor_share") > 0 && cell_real(t, 12, "flops_share") > 0);
    /* 1 thread by 2 in each direction, backward by forward with each; products after that */
    cr_expect(cell_is(ratios, 0, "quantity", "threads 1 / 2") &&
              cell_is(ratios, 1, "quantity", "backward / forward"));
    cr_expect(near(cell_real(ratios, 1, "seconds"), cell_real(t, 12, "seconds")) &&
              near(cell_real(ratios, 1, "by_seconds"), cell_real(t, 10, "seconds")));
    for (int64_t row = 0; row < table_rows(ratios); row++)
        check_ratio(t, ratios, row);
    table_free(ratios);
    table_free(t);
    options_free(&s);
}
