/* SPDX-License-Identifier: BSD-3-Clause */
/* attnum inspect: its numbers on tokens and matrices with closed forms, its predictions against the
 * steps themselves, and each sentence appears and disappears with the numbers it is based on. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <certified.h>
#include <matrices.h>
#include <newton.h>

#include "common/layout.h"
#include "common/npy.h"
#include "common/report.h"
#include "inspect/advice.h"
#include "inspect/inspect.h"
#include "inspect/measure.h"
#include "inspect/svg.h"
#include "latms.h"
#include "runs.h"
#include "scratch.h"

TestSuite(inspect, .init = scratch_begin, .fini = scratch_end);

/* ---- Matrices ---- */

static const struct {
    ref_matrix matrix;
    int64_t m;
    double value, rank_f64;
} known[] = {
    {REF_IDENTITY, 7, 0, 7},       {REF_ONES, 8, 0, 1},         {REF_EQUICORRELATED, 49, 0.5, 49},
    {REF_CIRCULANT, 16, 0.7, 16},  {REF_BLOCKS, 48, 0.25, 48},  {REF_TWO, 2, 0.3, 2},
    {REF_DUPLICATES, 20, 0.1, 20}, {REF_DUPLICATES, 20, 0, 19},
};
enum { KNOWN = sizeof known / sizeof *known };

Test(inspect, spectra_are_the_closed_forms)
{
    for (int k = 0; k < KNOWN; k++) {
        int64_t m = known[k].m;
        double a[49 * 49], lambda[49], u = atn_dtype_roundoff(ATN_F64);
        cr_assert_eq(ref_matrix_make(known[k].matrix, m, known[k].value, a, lambda), ATN_OK);
        inspection *i = inspection_create(m);
        cr_expect_eq(measure_spectrum(m, a, i), EXIT_PASS);
        double allowed = 10 * (double)m * u * lambda[0]; /* of a backward stable solver */
        for (int64_t j = 0; j < m; j++)
            cr_expect(fabs(i->lambda[j] - lambda[j]) <= allowed, "matrix %d, eigenvalue %ld", k,
                      (long)j);
        cr_expect(fabs(i->lambda_max - lambda[0]) <= allowed && i->lambda_max == i->lambda[0]);
        cr_expect(i->lambda_min == i->lambda[m - 1]);
        cr_expect_eq(i->below_floor > 0, lambda[m - 1] < (double)m * u * lambda[0], "matrix %d", k);
        cr_expect_eq(i->rank_f64, known[k].rank_f64, "matrix %d: rank %g", k, i->rank_f64);
        double want = lambda[m - 1] > allowed ? lambda[0] / lambda[m - 1] : 1 / ((double)m * u);
        cr_expect(fabs(i->kappa / want - 1) <= 0.01, "matrix %d: kappa %g for %g", k, i->kappa,
                  want);
        double norm1 = ref_norm1(m, a);
        cr_expect_eq(i->norm1, norm1);
        cr_expect(fabs(i->margin - (1 - 2 * lambda[0] * lambda[0] / norm1 / norm1)) <= 1e-13);
        inspection_free(i);
    }
}

/* The modes that remain after 20 steps: with equal row sums all but the first. */
Test(inspect, the_boundary_loses_a_mode)
{
    enum { M = 10 };
    double a[M * M];
    cr_assert_eq(ref_matrix_make(REF_EQUICORRELATED, M, 0.5, a, NULL), ATN_OK);
    inspection *i = inspection_create(M);
    cr_assert_eq(measure_spectrum(M, a, i), EXIT_PASS);
    cr_expect_eq(i->inverted, M - 1, "%g", i->inverted);
    cr_expect(fabs(i->margin + 1) <= 1e-14, "%g", i->margin);
    cr_expect(i->rank_f64 == M && i->rank_f32 == M && i->rank_bf16 == M);
    inspection_free(i);
}

/* diag(1, l): X_20 of 2/|A|_1^2 has l f(l) = 1 - (1 - 2 l^2)^(2^20), a little less or more than a
 * half, and misses the first mode. */
Test(inspect, a_mode_is_inverted_from_half_on)
{
    static const double shares[] = {0.45, 0.499, 0.501};
    for (int k = 0; k < 3; k++) {
        double l = sqrt(-expm1(log1p(-shares[k]) / 0x1p20) / 2), a[4] = {1, 0, 0, l};
        inspection *i = inspection_create(2);
        cr_assert_eq(measure_spectrum(2, a, i), EXIT_PASS);
        cr_expect_eq(i->inverted, shares[k] > 0.5, "%g: %g modes", shares[k], i->inverted);
        inspection_free(i);
    }
}

Test(inspect, ranks_by_precision)
{
    enum { M = 20 };
    double a[M * M], lambda[M], want[2] = {0, 0};
    cr_assert_eq(latms_symmetric(M, 3, 1e9, 5, a, lambda), ATN_OK);
    for (int j = 0; j < M; j++) {
        want[0] += lambda[j] > M * 0x1p-24;
        want[1] += lambda[j] > M * 0x1p-8;
    }
    inspection *i = inspection_create(M);
    cr_assert_eq(measure_spectrum(M, a, i), EXIT_PASS);
    cr_expect(i->rank_f64 == M && i->rank_f32 == want[0] && i->rank_bf16 == want[1], "%g %g %g",
              i->rank_f64, i->rank_f32, i->rank_bf16);
    cr_expect(want[0] < M && want[1] < want[0]);
    inspection_free(i);
}

/* ---- Iterations ---- */

/* A map of e = 1 - l x for one step, and X_0 = alpha I or alpha A. */
static const struct {
    atn_inverse_method method;
    bool from_matrix;
    int order;
    double numerator, ridge;
} iterations[] = {
    {ATN_INVERSE_NR_PAPER, true, 2, 2, 0},         {ATN_INVERSE_NR_SOFT, true, 2, 1.8, 0.01},
    {ATN_INVERSE_NEWTON_SCHULZ, false, 2, 1.8, 0}, {ATN_INVERSE_HYPERPOWER_3, false, 3, 1.8, 0},
    {ATN_INVERSE_HYPERPOWER_9, false, 9, 1.8, 0},
};
enum { ITERATIONS = sizeof iterations / sizeof *iterations, STEPS = 60 };

/* The residual after k steps taken one by one in long double, the first k below each target. */
static double follow(int which, int64_t m, const double *lambda, double norm1, int steps,
                     int first[TARGETS])
{
    long double e[64], residual = 0, ridge = iterations[which].ridge;
    bool from_matrix = iterations[which].from_matrix;
    long double norm = from_matrix ? norm1 : norm1 + (double)ridge;
    long double alpha = iterations[which].numerator / norm / (from_matrix ? norm : 1);
    first[0] = first[1] = -1;
    double after = NAN;
    for (int64_t i = 0; i < m; i++) {
        long double mu = lambda[i] + ridge;
        e[i] = 1 - alpha * mu * (from_matrix ? mu : 1);
    }
    for (int k = 0; k <= STEPS; k++) {
        residual = 0;
        for (int64_t i = 0; i < m; i++) {
            long double mu = lambda[i] + ridge, f = (1 - e[i]) / mu;
            residual = fmaxl(residual, fabsl(lambda[i] * lambda[i] * f - lambda[i]));
            e[i] = powl(e[i], iterations[which].order);
        }
        residual /= lambda[0];
        for (int t = 0; t < TARGETS; t++)
            first[t] = first[t] < 0 && residual < inspect_targets[t] ? k : first[t];
        after = k == steps ? (double)residual : after;
    }
    return after;
}

/* Every iteration that found a start, where rounding is far below 1e-6: the library agrees with the
 * closed form with its alpha and interval. */
static void expect_agreement(const inspection *i, double condition)
{
    int seen = 0;
    for (int method = 0; method < ATN_INVERSE_COUNT; method++) {
        const inverse_facts *f = &i->inverses[method];
        const char *name = atn_inverse_name((atn_inverse_method)method);
        if (f->length == 0)
            continue;
        cr_expect(fabs(f->residual - f->predicted) <= 1e-6 * f->predicted + 1e-9,
                  "%s kappa %g: %g, predicted %g", name, condition, f->residual, f->predicted);
        for (int t = 0; t < TARGETS; t++)
            cr_expect(f->steps[t] == f->steps_predicted[t], "%s kappa %g: %g, predicted %g", name,
                      condition, f->steps[t], f->steps_predicted[t]);
        cr_expect(f->length > f->published_steps || f->length > f->steps[TARGETS - 1]);
        seen++;
    }
    cr_expect(seen >= 10, "%d iterations", seen);
}

Test(inspect, predictions_are_the_steps_and_so_are_the_counts)
{
    enum { M = 30 };
    static const double conditions[] = {1e1, 1e3, 1e5};
    atn_context *context = make_context();
    for (int c = 0; c < 3; c++) {
        double a[M * M], lambda[M];
        cr_assert_eq(latms_symmetric(M, 3, conditions[c], 7 + c, a, lambda), ATN_OK);
        inspection *i = inspection_create(M);
        cr_assert_eq(measure_inverses(M, a, context, i), EXIT_PASS);
        for (int k = 0; k < ITERATIONS; k++) {
            const inverse_facts *f = &i->inverses[iterations[k].method];
            int first[TARGETS];
            double after = follow(k, M, lambda, ref_norm1(M, a), (int)f->published_steps, first);
            cr_expect(fabs(f->predicted - after) <= 1e-6 * after + 1e-12,
                      "%s kappa %g: %g predicted, %g by steps",
                      atn_inverse_name(iterations[k].method), conditions[c], f->predicted, after);
            cr_expect(fabs(f->residual - after) <= 1e-6 * after + 1e-9, "%g %g", f->residual,
                      after);
            for (int t = 0; t < TARGETS; t++)
                cr_expect(f->steps_predicted[t] == first[t] && f->steps[t] == first[t],
                          "%s kappa %g target %d: %g predicted, %g measured, %d by steps",
                          atn_inverse_name(iterations[k].method), conditions[c], t,
                          f->steps_predicted[t], f->steps[t], first[t]);
        }
        const inverse_facts *paper = &i->inverses[ATN_INVERSE_NR_PAPER];
        cr_expect_eq(paper->products[0], 2 * paper->steps[0]);
        const inverse_facts *schulz = &i->inverses[ATN_INVERSE_NEWTON_SCHULZ];
        cr_expect_eq(schulz->products[1], 2 * schulz->steps[1] - 2, "A X_0 is alpha A");
        expect_agreement(i, conditions[c]);
        cr_expect_eq(paper->published_steps, 20);
        cr_expect_eq(i->inverses[ATN_INVERSE_EIG].length, 0);
        cr_expect(isnan(i->inverses[ATN_INVERSE_EIG].published_steps));
        inspection_free(i);
    }
    atn_context_free(context);
}

/* A = I: every product is exact, and a wide type is no better than a narrow one. */
Test(inspect, precisions)
{
    enum { M = 12 };
    double a[M * M], lambda[M];
    atn_context *context = make_context();
    inspection *i = inspection_create(M);
    cr_assert_eq(ref_matrix_make(REF_IDENTITY, M, 0, a, NULL), ATN_OK);
    cr_assert_eq(measure_precisions(M, a, PAPER_STEPS, context, i), EXIT_PASS);
    for (int p = 0; p < PRECISIONS; p++)
        cr_expect(i->precisions[p].best == 0 && i->precisions[p].fixed == 0 &&
                      i->precisions[p].rank == M && advice_is_safe(&i->precisions[p]),
                  "%s", precision_name(precisions[p]));
    cr_assert_eq(latms_symmetric(M, 3, 1e6, 3, a, lambda), ATN_OK);
    cr_assert_eq(measure_precisions(M, a, PAPER_STEPS, context, i), EXIT_PASS);
    for (int p = 1; p < PRECISIONS; p++) { /* floors are about 0.14 sqrt(u), the wider the lower */
        double u = precision_roundoff(precisions[p]);
        cr_expect(i->precisions[p].best <= 2 * sqrt(u) && i->precisions[p].best >= u / 100,
                  "%s: %g", precision_name(precisions[p]), i->precisions[p].best);
    }
    cr_expect(i->precisions[0].best <= 1e-9 && i->precisions[4].best > i->precisions[1].best);
    cr_expect(i->precisions[4].fixed > i->precisions[4].best, "bf16 has too many steps");
    cr_expect(i->precisions[0].rank == M && i->precisions[4].rank < M);
    inspection_free(i);
    atn_context_free(context);
}

/* ---- Tokens ---- */

static inspection_list inspect_input(const char *name, const char *options)
{
    program_options s;
    void *state = NULL;
    int64_t points;
    cr_assert_eq(parse_options(&s, &inspect, options), EXIT_PASS);
    text_list none = s.inputs;
    s.inputs = (text_list){1, &name};
    table *raw = table_create(inspect.raw_columns, inspect.raw_column_count);
    atn_context *context = make_context();
    cr_assert_eq(inspect.prepare(&s, &state, &points), EXIT_PASS);
    for (int64_t point = 0; point < points; point++)
        cr_expect_eq(inspect.run(state, point, context, raw), EXIT_PASS);
    inspection_list list = inspections_read(raw);
    inspect.release(state);
    atn_context_free(context);
    table_free(raw);
    s.inputs = none;
    options_free(&s);
    return list;
}

/* Writes tokens.npy, heads x n x d, and inspects it. */
static inspection_list inspect_tokens(int64_t heads, int64_t n, int64_t d, const double *tokens,
                                      const char *options)
{
    const int64_t shape[] = {heads, n, d};
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, 3, shape, tokens), EXIT_PASS);
    return inspect_input("tokens.npy", options);
}

enum { POOL, WINDOW, RANDOM, FIRST };

static const inspection *find(const inspection_list *list, double m, int sampling)
{
    int64_t at = inspections_find(list, 0, m, sampling);
    cr_assert(at >= 0, "m = %g, sampling %d", m, sampling);
    return list->items[at];
}

/* The line of a rule, or null. */
static const advice_line *line_of(int count, const advice_line *lines, const char *rule)
{
    for (int i = 0; i < count; i++)
        if (strcmp(lines[i].rule, rule) == 0)
            return &lines[i];
    return NULL;
}

static void expect_line(const inspection_list *list, const char *rule, advice_level level,
                        const char *fragment)
{
    advice_line lines[ADVICE_RULES];
    int count = advice_make(list, lines);
    const advice_line *line = line_of(count, lines, rule);
    cr_assert(line, "%s says nothing", rule);
    cr_expect(line->level == level && strstr(line->text, fragment), "%s: %s, expected %s, '%s'",
              rule, line->text, advice_level_name(level), fragment);
    cr_expect(strpbrk(line->text, "0123456789"), "%s: no number in '%s'", rule, line->text);
    advice_free(count, lines);
}

static void expect_silence(const inspection_list *list, const char *rule)
{
    advice_line lines[ADVICE_RULES];
    int count = advice_make(list, lines);
    const advice_line *line = line_of(count, lines, rule);
    cr_expect(!line, "%s: %s", rule, line ? line->text : "");
    advice_free(count, lines);
}

Test(inspect, constant_tokens)
{
    double tokens[36 * 4];
    for (int i = 0; i < 36 * 4; i++)
        tokens[i] = i % 4;
    inspection_list list = inspect_tokens(1, 36, 4, tokens, "--m=9");
    const inspection *i = find(&list, 9, POOL);
    cr_expect(i->main && i->stride == 2 && i->rank_f64 == 1 && i->rank_bf16 == 1);
    cr_expect(fabs(i->lambda_max - 9) <= 1e-13 && i->below_floor == 1);
    cr_expect(fabs(i->margin + 1) <= 1e-13 && i->inverted == 0);
    cr_expect(i->trace_error <= 1e-15 && fabs(i->soft_norm - 36) <= 1e-11, "%g", i->soft_norm);
    cr_expect(fabs(i->softpp_norm - 4) <= 1e-11, "divided by m: %g", i->softpp_norm);
    cr_expect(i->inverses[ATN_INVERSE_NR_PAPER].residual == 1);
    expect_line(&list, "steps", ADVICE_WARNING, "do not suffice for 1 of 1");
    expect_line(&list, "start", ADVICE_WARNING, "-1 to rounding");
    expect_line(&list, "rank", ADVICE_WARNING, "rank 1 of 9");
    if (ref_certify_library()) {
        cr_expect(i->singular == 1 && isinf(i->kappa) && i->lambda_min_upper == 0);
        expect_line(&list, "certified", ADVICE_WARNING, "two landmarks coincide");
    }
    inspections_free(&list);
}

/* 25 tokens on a ring of radius 3: K(Q, Q) is the circulant with value 9 s. */
Test(inspect, ring_of_tokens)
{
    enum { N = 25 };
    double tokens[N * 2], a[N * N], lambda[N], s = 1 / (2 * sqrt(2));
    for (int i = 0; i < N; i++) {
        tokens[2 * i] = 3 * cos(2 * acos(-1) * i / N);
        tokens[2 * i + 1] = 3 * sin(2 * acos(-1) * i / N);
    }
    cr_assert_eq(ref_matrix_make(REF_CIRCULANT, N, 9 * s, a, lambda), ATN_OK);
    inspection_list list = inspect_tokens(1, N, 2, tokens, "--m=25,4");
    for (int sampling = POOL; sampling < SAMPLING_GIVEN; sampling++) {
        const inspection *i = find(&list, N, sampling);
        for (int j = 0; j < N; j++)
            cr_expect(fabs(i->lambda[j] - lambda[j]) <= 1e-13 * lambda[0], "sampling %d: %d",
                      sampling, j);
        cr_expect(i->trace_error <= 1e-14 && isnan(i->trace_ratio));
        cr_expect(fabs(i->soft_norm / lambda[0] - 1) <= 1e-12, "all tokens: S^ is S");
    }
    const inspection *i = find(&list, 4, FIRST);
    double best = 0;
    for (int j = 4; j < N; j++)
        best += lambda[j] / N;
    cr_expect(fabs(i->best_trace_error - best) <= 1e-13, "%g %g", i->best_trace_error, best);
    cr_expect(i->trace_ratio >= 1 && fabs(i->trace_error / best - i->trace_ratio) <= 1e-9);
    cr_expect(find(&list, 4, POOL)->stride == 2 && i->compared == N && i->tokens == N);
    cr_expect(find(&list, 4, WINDOW)->stride == 7 && !find(&list, 4, WINDOW)->main);
    inspections_free(&list);
}

/* Far apart but for one copy: lambda is 2, 1, ..., 1, 0. */
Test(inspect, a_copied_token)
{
    double tokens[10];
    for (int i = 0; i < 10; i++)
        tokens[i] = 1000 * (i < 9 ? i : 4);
    inspection_list list = inspect_tokens(1, 10, 1, tokens, "--m=10");
    const inspection *i = find(&list, 10, WINDOW);
    cr_expect(i->main && i->rank_f64 == 9 && fabs(i->lambda_max - 2) <= 1e-14);
    cr_expect(fabs(i->soft_norm - 2) <= 1e-13 && fabs(i->lambda[1] - 1) <= 1e-14);
    expect_line(&list, "rank", ADVICE_WARNING, "rank is 9 of 10 in f64");
    expect_silence(&list, "apart");
    if (ref_certify_library())
        expect_line(&list, "certified", ADVICE_WARNING, "two landmarks coincide");
    inspections_free(&list);
}

/* Smooth tokens in a line: what is below f64's floor is certified, and truly below. */
Test(inspect, certified_where_f64_cannot_tell)
{
    double tokens[40];
    for (int i = 0; i < 40; i++)
        tokens[i] = 0.05 * i;
    inspection_list list = inspect_tokens(1, 40, 1, tokens, "--m=20");
    const inspection *i = find(&list, 20, WINDOW);
    cr_expect(i->below_floor == 1);
    if (ref_certify_library()) {
        cr_expect(i->lambda_min_lower > 0 && i->lambda_min_lower <= i->lambda_min_upper &&
                  i->lambda_min_upper < 20 * 0x1p-53 * i->lambda_max);
        cr_expect(fabs(i->kappa * i->lambda_min_lower / i->lambda_max - 1) <= 1e-6);
        cr_expect_eq(i->singular, 0);
        expect_line(&list, "certified", ADVICE_WARNING, "lambda_min is");
    }
    inspections_free(&list);
    list = inspect_tokens(1, 40, 1, tokens, "--m=20 --certify=20");
    cr_expect_eq(isnan(find(&list, 20, WINDOW)->lambda_min_lower), !ref_certify_library());
    inspections_free(&list);
    list = inspect_tokens(1, 40, 1, tokens, "--m=20 --certify=19");
    cr_expect(isnan(find(&list, 20, WINDOW)->lambda_min_lower));
    expect_line(&list, "unresolved", ADVICE_WARNING, "1 of 1");
    inspections_free(&list);
}

/* The inverses of every sampling are followed up to m = 64, from 65 on those of the main one. */
Test(inspect, all_samplings_of_few_landmarks_are_followed)
{
    double tokens[65];
    for (int i = 0; i < 65; i++)
        tokens[i] = 10 * i;
    for (int m = 64; m <= 65; m++) {
        char options[16];
        snprintf(options, sizeof options, "--m=%d", m);
        inspection_list list = inspect_tokens(1, m, 1, tokens, options);
        int length = find(&list, m, FIRST)->inverses[ATN_INVERSE_NR_PAPER].length;
        cr_expect_eq(length > 0, m == 64, "m = %d: %d steps", m, length);
        inspections_free(&list);
    }
}

Test(inspect, of_two_numbers_as_near_to_49_the_first_is_usual)
{
    inspection *items[] = {inspection_create(58), inspection_create(40), inspection_create(90)};
    inspection_list list = {.count = 3, .items = items};
    cr_expect_eq(inspections_usual(&list), 58);
    for (int i = 0; i < 3; i++)
        inspection_free(items[i]);
}

/* Some heads of many, evenly spread; a grid where none is a square. */
Test(inspect, heads_and_grids)
{
    double tokens[5 * 12];
    for (int i = 0; i < 5 * 12; i++)
        tokens[i] = i % 12 + i / 12;
    inspection_list list = inspect_tokens(5, 12, 1, tokens, "--m=3 --heads=2 --grid=2x6");
    cr_expect_eq(inspections_heads(&list), 2);
    cr_expect(list.items[0]->head == 0 && list.items[list.count - 1]->head == 2);
    cr_expect(find(&list, 3, POOL)->stride == 2, "2 x 2 tokens each");
    inspections_free(&list);
}

/* A network's tokens are those of its own grid, 14 x 14, of which a stride of 2 leaves 49. */
Test(inspect, tokens_of_a_network)
{
    inspection_list list = inspect_input("trained:soft", "--m=49 --heads=1 --quick");
    cr_expect_eq(find(&list, 49, POOL)->stride, 2);
    inspections_free(&list);
}

/* More tokens than are used: the sentences say so, and the numbers are those of the smaller set. */
Test(inspect, many_tokens_are_sampled)
{
    enum { N = 9000 };
    double *tokens = must_allocate(N, sizeof *tokens);
    for (int i = 0; i < N; i++)
        tokens[i] = 5 * sin(i);
    inspection_list list = inspect_tokens(1, N, 1, tokens, "--m=9 --quick");
    const inspection *i = find(&list, 9, WINDOW);
    cr_expect(i->compared == MOST_COMPARED && i->norm_tokens == MOST_CHOICE && i->tokens == N);
    cr_expect(find(&list, 9, FIRST)->inverses[ATN_INVERSE_NR_PAPER].length == 0, "--quick");
    cr_expect(i->inverses[ATN_INVERSE_NR_PAPER].length > 0);
    expect_line(&list, "samplings", ADVICE_TIP, "on 1024 of its 9000 tokens");
    inspections_free(&list);
    memcpy(tokens + 1100, tokens, 1100 * sizeof *tokens);
    list = inspect_tokens(2, 1100, 1, tokens, "--m=9 --quick");
    cr_expect(list.items[0]->lambda_min == list.items[list.count / 2]->lambda_min &&
                  list.items[0]->trace_error != list.items[list.count / 2]->trace_error,
              "the same tokens in another head are sampled anew");
    inspections_free(&list);
    free(tokens);
}

/* Every number that two inspections have is the same. */
static void expect_same(const inspection_list *a, const inspection_list *b, const char *what)
{
    cr_assert_eq(a->count, b->count, "%s", what);
    for (int64_t i = 0; i < a->count; i++) {
        const inspection *x = a->items[i], *y = b->items[i];
        cr_expect(x->batch == y->batch && x->head == y->head && x->sampling == y->sampling, "%s",
                  what);
        for (const fact_field *f = fact_fields[FACTS_MATRIX]; f->name; f++)
            cr_expect(fact_get(f, x) == fact_get(f, y) ||
                          (isnan(fact_get(f, x)) && isnan(fact_get(f, y))),
                      "%s: %s: %g, %g", what, f->name, fact_get(f, x), fact_get(f, y));
    }
}

/* Another order of dimensions, and class tokens in front: the same tokens, the same numbers. */
Test(inspect, layouts_and_class_tokens)
{
    enum { BATCH = 2, PER_BATCH = 3, N = 16, D = 2, ALL = BATCH * PER_BATCH };
    double tokens[ALL * N * D], more[ALL * (N + 2) * D], moved[ALL * N * D];
    const int64_t bhnd[] = {BATCH, PER_BATCH, N, D};
    int64_t shape[4];
    layout l;
    for (int i = 0; i < ALL * N * D; i++)
        tokens[i] = sin(i * i);
    for (int i = 0; i < ALL; i++) {
        for (int j = 0; j < 2 * D; j++)
            more[i * (N + 2) * D + j] = 100 + i + j;
        memcpy(more + i * (N + 2) * D + 2 * D, tokens + i * N * D, N * D * sizeof *tokens);
    }
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, 4, bhnd, tokens), EXIT_PASS);
    inspection_list want = inspect_input("tokens.npy", "--m=4 --quick --heads=4");
    cr_expect(want.items[want.count - 1]->batch == 1 && want.items[want.count - 1]->head == 1,
              "of 6 heads 0, 1, 3, 4");
    cr_assert(!layout_parse("bnd:3", &l));
    layout_write(&l, bhnd, tokens, moved);
    int dimensions = layout_shape(&l, bhnd, shape);
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, dimensions, shape, moved), EXIT_PASS);
    inspection_list got = inspect_input("tokens.npy", "--m=4 --quick --heads=4 --layout=bnd:3");
    expect_same(&got, &want, "bnd:3");
    inspections_free(&got);
    const int64_t longer[] = {BATCH, PER_BATCH, N + 2, D};
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, 4, longer, more), EXIT_PASS);
    got = inspect_input("tokens.npy", "--m=4 --quick --heads=4 --skip-tokens=2");
    expect_same(&got, &want, "two class tokens");
    inspections_free(&got);
    inspections_free(&want);
}

/* Landmarks that are given: the first tokens as `first` takes them, for each head its own. */
Test(inspect, given_landmarks)
{
    enum { N = 12, D = 2, M = 5 };
    double tokens[2 * N * D], landmarks[2 * M * D];
    const int64_t shape[] = {2, M, D};
    for (int i = 0; i < 2 * N * D; i++)
        tokens[i] = sin(i * i);
    for (int i = 0; i < 2 * M * D; i++)
        landmarks[i] = tokens[i / (M * D) * N * D + i % (M * D)];
    cr_assert_eq(npy_write(".", "l.npy", ATN_F64, 3, shape, landmarks), EXIT_PASS);
    inspection_list list = inspect_tokens(2, N, D, tokens, "--landmarks=l.npy");
    int compared = 0;
    for (int64_t i = 0; i < list.count; i++) {
        const inspection *a = list.items[i];
        cr_expect_eq(a->main, a->sampling == SAMPLING_GIVEN);
        for (int64_t j = 0; j < list.count && a->sampling == SAMPLING_GIVEN; j++) {
            const inspection *b = list.items[j];
            if (b->sampling != FIRST || !inspection_same_head(a, b))
                continue;
            compared++;
            cr_expect(a->m == M && a->kappa == b->kappa && a->trace_error == b->trace_error &&
                          a->soft_norm == b->soft_norm,
                      "head %g: %g %g", a->head, a->kappa, b->kappa);
        }
    }
    cr_expect_eq(compared, 2);
    inspections_free(&list);
}

/* ---- Doctored numbers ---- */

enum { HEADS = 3 };

/* Numbers that nothing is wrong with. */
static inspection *healthy(double head, int sampling)
{
    inspection *i = inspection_create(49);
    i->head = head;
    i->sampling = sampling;
    i->main = sampling == POOL;
    i->tokens = i->norm_tokens = i->compared = 784;
    i->stride = 4;
    i->lambda_max = 10, i->lambda_min = 0.1, i->kappa = 100, i->below_floor = 0;
    i->rank_f64 = i->rank_f32 = 49, i->rank_bf16 = 40, i->inverted = 49;
    i->norm1 = 12, i->margin = -0.4;
    i->soft_norm = 20, i->softpp_norm = 2;
    i->trace_error = 0.013, i->best_trace_error = 0.01, i->trace_ratio = 1.3;
    for (int k = ATN_INVERSE_NR_PAPER; k < ATN_INVERSE_EIG; k++)
        i->inverses[k] = (inverse_facts){.published_steps = 20,
                                         .predicted = 1e-5,
                                         .residual = 1e-5,
                                         .steps_predicted = {12, 22},
                                         .steps = {12, 22},
                                         .products = {24, 44},
                                         .steps_run = 25};
    for (int p = 0; p < PRECISIONS; p++)
        i->precisions[p] = (precision_facts){
            .best = 1e-3, .best_steps = 18, .fixed = 2e-3, .asked = 2e-3, .rank = 49};
    return i;
}

static inspection_list healthy_list(void)
{
    inspection_list list = {must_allocate(2 * HEADS, sizeof(inspection *)), 0};
    for (int head = 0; head < HEADS; head++)
        for (int sampling = POOL; sampling <= WINDOW; sampling++)
            list.items[list.count++] = healthy(head, sampling);
    return list;
}

/* Changes a number of head 1's main item, and expects the sentence of the rule. */
static const struct {
    const char *rule, *fragment;
    advice_level level;
    size_t offset, second; /* of doubles in inspection; second 0: none */
    double value, second_value;
} doctored[] = {
#define AT(member)    offsetof(inspection, member)
#define PAPER(member) offsetof(inspection, inverses[ATN_INVERSE_NR_PAPER].member)
    {"steps", "head 1, m = 49, the residual |AXA - A|/|A| after 20 is 0.12", ADVICE_WARNING,
     PAPER(residual), PAPER(steps[0]), 0.12, 34},
    {"steps", "1e-3 takes 34 steps", ADVICE_WARNING, PAPER(residual), PAPER(steps[0]), 0.12, 34},
    {"steps", "is not reached in 25", ADVICE_WARNING, PAPER(residual), PAPER(steps[0]), 0.12, -1},
    {"steps", "is inf", ADVICE_WARNING, PAPER(residual), PAPER(steps[0]), INFINITY, -1},
    {"steps", "for 1 of 3", ADVICE_WARNING, PAPER(residual), 0, NAN, 0},
    {"steps", "takes 12 to 19 steps", ADVICE_FINE, PAPER(residual), PAPER(steps[0]), 9e-4, 19},
    {"steps", "takes 12 steps", ADVICE_FINE, 0, 0, 0, 0},
    {"start", "is -1 to rounding", ADVICE_WARNING, AT(margin), 0, -1, 0},
    {"start", "is -1 + 1e-06", ADVICE_WARNING, AT(margin), 0, -1 + 1e-6, 0},
    {"start", "where it is -0.8", ADVICE_WARNING, AT(margin), 0, -1, 0},
    {"start", "least -1 + 0.001 (batch 0, head 1", ADVICE_FINE, AT(margin), 0, -0.999, 0},
    {"modes", "invert 31 of the 49 modes", ADVICE_WARNING, AT(inverted), 0, 31, 0},
    {"modes", "residual hides modes", ADVICE_WARNING, AT(inverted), PAPER(residual), 31, 1e-3},
    {"modes", "Modes are missing", ADVICE_WARNING, AT(inverted), PAPER(residual), 31, 2e-3},
    {"modes", "Modes are missing", ADVICE_WARNING, AT(inverted), PAPER(residual), 31, NAN},
    {"rank", "rank is 30 of 49 in f64, 20 in f32", ADVICE_WARNING, AT(rank_f64), AT(rank_f32), 30,
     20},
    {"rank", "its rank is 22 of 49 in f32", ADVICE_WARNING, AT(rank_f32), AT(kappa), 22, 1e9},
    {"rank", "has rank 1 of 49", ADVICE_WARNING, AT(rank_f64), AT(rank_f32), 1, 1},
    {"rank", "the same for every token but for its factor", ADVICE_WARNING, AT(rank_f64),
     AT(rank_f32), 1, 1},
    {"rank", "kappa(A) is 100 to 2300.", ADVICE_FINE, AT(kappa), 0, 2300, 0},
    {"rank", "kappa(A) is 100.", ADVICE_FINE, 0, 0, 0, 0},
    {"unresolved", "for 1 of 3 matrices", ADVICE_WARNING, AT(below_floor), 0, 1, 0},
    {"samplings", "rather than averages of 4 x 4 tokens", ADVICE_TIP, 0, 0, 0, 0},
    {"reach", "93% of tr(S) is missed", ADVICE_WARNING, AT(trace_error), AT(best_trace_error), 0.93,
     0.8},
    {"reach", "not of low rank", ADVICE_WARNING, AT(trace_error), AT(best_trace_error), 0.93, 0.8},
    {"reach", "misses 4%.", ADVICE_WARNING, AT(trace_error), AT(best_trace_error), 0.93, 0.04},
    {"reach", "at most 0.21 of tr(S) is missed (batch 0, head", ADVICE_FINE, AT(trace_error), 0,
     0.21, 0},
    {"reach", "as far as f64 resolves it", ADVICE_FINE, AT(trace_error), AT(rank_f64), 0.21, 48},
    {"reach", "as far as f64 resolves it", ADVICE_WARNING, AT(trace_error), AT(rank_f64), 0.93, 48},
    {"reach", "on 500 of its 784 tokens", ADVICE_FINE, AT(trace_error), AT(compared), 0.21, 500},
    {"norms", "reaches 1834 (batch 0, head 1", ADVICE_WARNING, AT(soft_norm), AT(softpp_norm), 1834,
     38},
    {"norms", "38: normalise", ADVICE_WARNING, AT(soft_norm), AT(softpp_norm), 1834, 38},
    {"norms", "gains little", ADVICE_WARNING, AT(soft_norm), AT(softpp_norm), 1834, 1800},
    {"norms", "at most 99 (batch 0, head 1, m = 49, n = 784);", ADVICE_FINE, AT(soft_norm), 0, 99,
     0},
    {"norms", "reaches 396 (batch 0, head 1, m = 49, n = 784, estimated from 196 of them)",
     ADVICE_WARNING, AT(soft_norm), AT(norm_tokens), 99, 196},
    {"norms", "normalisation it is 40: normalise", ADVICE_WARNING, AT(softpp_norm), AT(norm_tokens),
     2, 39.2},
    {"precision", "f16 (0.031 after 11 steps at batch 0, head 1, m = 49)", ADVICE_WARNING,
     AT(precisions[3].best), AT(precisions[3].best_steps), 0.031, 11},
    {"precision", "f64 (nan after 18 steps at batch 0, head 1", ADVICE_WARNING,
     AT(precisions[0].best), 0, NAN, 0},
    {"precision", "Every precision is safe", ADVICE_FINE, AT(precisions[3].best), 0, 0.0099, 0},
    {"too-many", "bf16: residual 3.2 after 20, 0.001 after 18 (batch 0, head 1", ADVICE_WARNING,
     AT(precisions[4].fixed), 0, 3.2, 0},
};

static double *number_at(inspection *i, size_t offset)
{
    return (double *)((char *)i + offset);
}

/* Item 2 is head 1's main one. */
static void doctor(inspection_list *list, size_t offset, double value)
{
    if (offset > 0)
        *number_at(list->items[2], offset) = value;
}

Test(inspect, numbers_turn_sentences)
{
    for (size_t k = 0; k < sizeof doctored / sizeof *doctored; k++) {
        inspection_list list = healthy_list();
        doctor(&list, doctored[k].offset, doctored[k].value);
        doctor(&list, doctored[k].second, doctored[k].second_value);
        if (doctored[k].level == ADVICE_TIP) /* another sampling is better in every head */
            for (int64_t i = 1; i < list.count; i += 2)
                list.items[i]->trace_error = 0.005;
        expect_line(&list, doctored[k].rule, doctored[k].level, doctored[k].fragment);
        inspections_free(&list);
    }
}

/* Every limit from both sides: a number of head 1's main item, or of all main items, just within
 * the limit and just beyond it, and what the rule says of each; a null fragment: nothing. The
 * second number goes with both. */
static const struct {
    const char *rule;
    bool everywhere;
    size_t offset, second;
    double within, beyond, second_value;
    advice_level level_within, level_beyond;
    const char *says_within, *says_beyond;
} limits[] = {
#define UP(limit) limit, (limit) * (1 + 1e-15) /* a few units in the last place above */
    {"steps", false, PAPER(residual), 0, UP(1e-3), 0, ADVICE_FINE, ADVICE_WARNING,
     "printed start 2/|A|_1^2 suffice", "do not suffice for 1 of 3"},
    {"steps", false, PAPER(steps[0]), PAPER(residual), 0, -1, 0.12, ADVICE_WARNING, ADVICE_WARNING,
     "1e-3 takes 0 steps", "1e-3 is not reached"},
    /* (1 - 6.588e-6)^(2^20) = 0.001 */
    {"start", false, AT(margin), 0, -1 + 6.589e-6, -1 + 6.587e-6, 0, ADVICE_FINE, ADVICE_WARNING,
     "converges", "for 1 of 3 matrices"},
    {"start", false, AT(margin), 0, -1 + 4 * 49 * 0x1p-53, -1 + 4 * 50 * 0x1p-53, 0, ADVICE_WARNING,
     ADVICE_WARNING, "is -1 to rounding", "is -1 + 2.2e-14"},
    {"modes", false, AT(inverted), 0, 49, 48, 0, ADVICE_FINE, ADVICE_WARNING, "49 of 49",
     "invert 48 of the 49"},
    {"modes", false, PAPER(residual), AT(inverted), UP(1e-3), 31, ADVICE_WARNING, ADVICE_WARNING,
     "residual hides modes", "Modes are missing"},
    {"rank", false, AT(rank_f64), AT(rank_f32), 49, 48, 48, ADVICE_WARNING, ADVICE_WARNING,
     "full rank in f64 but", "singular in f64 for 1 of 3"},
    {"rank", false, AT(rank_f32), 0, 49, 48, 0, ADVICE_FINE, ADVICE_WARNING, "and in f32",
     "singular in f32 for 1 of 3"},
    {"rank", false, AT(rank_f64), AT(rank_f32), 1, 2, 1, ADVICE_WARNING, ADVICE_WARNING,
     "has rank 1 of 49", "its rank is 2 of 49"},
    {"unresolved", false, AT(below_floor), 0, 0, 1, 0, ADVICE_FINE, ADVICE_WARNING, NULL,
     "for 1 of 3"},
    {"precision", false, AT(precisions[3].best), 0, UP(0.01), 0, ADVICE_FINE, ADVICE_WARNING,
     "Every precision is safe", "from 1.8/|A|_1^2: f16"},
    {"too-many", false, AT(precisions[4].fixed), AT(precisions[4].best), 0.5, 0.5 * (1 + 1e-15),
     0.05, ADVICE_FINE, ADVICE_WARNING, NULL, "bf16: residual 0.5 after 20"},
    {"too-many", false, AT(precisions[2].fixed), AT(precisions[2].best), UP(0.01), 1e-9,
     ADVICE_FINE, ADVICE_WARNING, NULL, "residual 0.01 after 20"},
    {"too-many", false, AT(precisions[1].best_steps), AT(precisions[1].fixed), 20, 19, 0.5,
     ADVICE_FINE, ADVICE_WARNING, NULL, "0.001 after 19"},
    {"faster", true, offsetof(inspection, inverses[ATN_INVERSE_HYPERPOWER_3].products[0]), 0, 18,
     18 * (1 + 1e-15), 0, ADVICE_TIP, ADVICE_FINE, "in at most 18 products",
     "No iteration is much faster"},
    {"faster", true, offsetof(inspection, inverses[ATN_INVERSE_HYPERPOWER_3].products[0]), 0, 0, 1,
     0, ADVICE_TIP, ADVICE_TIP, "with no products", "in at most 1 products"},
    {"samplings", true, AT(trace_error), 0, 0.013 * 1.5 * (1 - 1e-15), 0.013 * 1.5 * (1 + 1e-15), 0,
     ADVICE_FINE, ADVICE_TIP, "the sampling hardly matters", "rather than averages of 4 x 4"},
    {"samplings", true, AT(trace_error), 0, 0.013 / 1.5 * (1 + 1e-15), 0.013 / 1.5 * (1 - 1e-15), 0,
     ADVICE_FINE, ADVICE_FINE, "the sampling hardly matters", "keep averages of 4 x 4"},
    {"reach", false, AT(trace_error), 0, UP(0.5), 0, ADVICE_FINE, ADVICE_WARNING,
     "at most 0.5 of tr(S) is missed", "50% of tr(S) is missed"},
    {"reach", false, AT(best_trace_error), AT(trace_error), UP(0.5), 0.93, ADVICE_WARNING,
     ADVICE_WARNING, "misses 50%", "S is not of low rank"},
    {"norms", false, AT(soft_norm), 0, UP(100.), 0, ADVICE_FINE, ADVICE_WARNING, "is at most 100",
     "reaches 100 (batch 0, head 1"},
    {"norms", false, AT(softpp_norm), AT(soft_norm), UP(50.), 200, ADVICE_WARNING, ADVICE_WARNING,
     "50: normalise", "gains little"},
    {"norms", false, AT(norm_tokens), AT(soft_norm), 784, 783, 99, ADVICE_FINE, ADVICE_FINE,
     "n = 784);", "estimated from 783 of them"},
    {"apart", true, AT(norm1), 0, 1.0999, 1.1001, 0, ADVICE_TIP, ADVICE_FINE, "at most 1 + 0.1",
     NULL},
#undef UP
};

static void expect_side(int row, double value, advice_level level, const char *fragment,
                        const char *other)
{
    inspection_list list = healthy_list();
    for (int64_t i = 0; i < list.count; i += 2)
        if (limits[row].everywhere || i == 2) {
            *number_at(list.items[i], limits[row].offset) = value;
            if (limits[row].second > 0)
                *number_at(list.items[i], limits[row].second) = limits[row].second_value;
        }
    advice_line lines[ADVICE_RULES];
    int count = advice_make(&list, lines);
    const advice_line *line = line_of(count, lines, limits[row].rule);
    cr_expect(!line == !fragment, "row %d: %s", row, line ? line->text : "silence");
    if (line && fragment)
        cr_expect(line->level == level && strstr(line->text, fragment) &&
                      !(other && strstr(line->text, other)),
                  "%s: %s, expected %s, '%s', not '%s'", limits[row].rule, line->text,
                  advice_level_name(level), fragment, other ? other : "");
    advice_free(count, lines);
    inspections_free(&list);
}

Test(inspect, limits_from_both_sides)
{
    for (int row = 0; row < (int)(sizeof limits / sizeof *limits); row++) {
        const char *within = limits[row].says_within, *beyond = limits[row].says_beyond;
        expect_side(row, limits[row].within, limits[row].level_within, within, beyond);
        expect_side(row, limits[row].beyond, limits[row].level_beyond, beyond, NULL);
    }
}

/* ---- The conclusion ---- */

static void expect_conclusion(const inspection_list *list, inspect_setting setting,
                              advice_level level, const char *fragment)
{
    advice_line line = advice_conclude(list, &setting);
    cr_expect(line.level == level && strstr(line.text, fragment), "%s, expected %s, '%s'",
              line.text, advice_level_name(level), fragment);
    advice_free(1, &line);
}

static bool concludes_on_start(const inspection_list *list, inspect_setting setting)
{
    advice_line line = advice_conclude(list, &setting);
    bool found = strstr(line.text, "printed start") != NULL;
    advice_free(1, &line);
    return found;
}

enum { F64, F32, TF32, F16, BF16 };

Test(inspect, one_conclusion_for_a_setting)
{
    inspection_list list = healthy_list();
    const inspect_setting bf16 = {BF16, -1, 20}, window = {BF16, WINDOW, 7};
    precision_facts *f = &list.items[2]->precisions[BF16];
    expect_conclusion(&list, bf16, ADVICE_FINE,
                      "bf16, sampling pool, 20 steps from 1.8/|A|_1^2: safe by the papers");
    f->asked = 0.01;
    expect_conclusion(&list, bf16, ADVICE_FINE,
                      "at most 0.01 (batch 0, head 1, m = 49) over 3 matrices, below 0.01.");
    /* (1 - 4.3918e-6)^(2^20) = 0.01 */
    double margin = list.items[2]->margin;
    list.items[2]->margin = -1 + 4.392e-6;
    cr_expect(!concludes_on_start(&list, bf16) &&
              concludes_on_start(&list, (inspect_setting){BF16, -1, 19}));
    list.items[2]->margin = -1 + 4.391e-6;
    expect_conclusion(&list, bf16, ADVICE_FINE,
                      "below 0.01. From the printed start 2/|A|_1^2 it is not, for 1 of 3.");
    list.items[2]->margin = margin;
    f->asked = 0.01 * (1 + 1e-15);
    f->best = 0.004, f->best_steps = 11;
    expect_conclusion(&list, bf16, ADVICE_WARNING,
                      "NOT safe by the papers' residual for 1 of 3 matrices");
    expect_conclusion(&list, bf16, ADVICE_WARNING, "stopping = best it is at most 0.004 (11 steps");
    f->asked = NAN;
    expect_conclusion(&list, bf16, ADVICE_WARNING, "is nan (batch 0, head 1");
    f->best = 0.02;
    list.items[2]->precisions[F16].asked = 0.5;
    expect_conclusion(&list, bf16, ADVICE_WARNING, "In tf32 it is at most 0.002");
    for (int p = F64; p <= BF16; p++)
        list.items[2]->precisions[p].asked = 0.5;
    expect_conclusion(&list, bf16, ADVICE_WARNING, "No wider type is safe");
    expect_conclusion(&list, window, ADVICE_FINE,
                      "bf16, sampling window, 7 steps from 1.8/|A|_1^2: safe by the papers");
    expect_conclusion(&list, (inspect_setting){BF16, FIRST, 20}, ADVICE_WARNING,
                      "Nothing was measured for bf16, first");
    inspections_free(&list);
}

/* --iterations reaches the type that is asked about, and 20 is what residual_20 is. */
Test(inspect, steps_that_are_asked_for)
{
    enum { M = 8 };
    double a[M * M], lambda[M];
    atn_context *context = make_context();
    cr_assert_eq(latms_symmetric(M, 3, 1e3, 3, a, lambda), ATN_OK);
    inspection *i = inspection_create(M);
    cr_assert_eq(measure_precisions(M, a, 20, context, i), EXIT_PASS);
    cr_expect(i->precisions[F32].asked == i->precisions[F32].fixed);
    cr_assert_eq(measure_precisions(M, a, 3, context, i), EXIT_PASS);
    cr_expect(i->precisions[F32].asked > 0.1 && i->precisions[F32].fixed < 0.1, "%g %g",
              i->precisions[F32].asked, i->precisions[F32].fixed);
    inspection_free(i);
    atn_context_free(context);
}

/* Errors too small to choose by. */
Test(inspect, small_errors_are_no_reason)
{
    for (int beyond = 0; beyond < 2; beyond++) {
        inspection_list list = healthy_list();
        for (int64_t i = 0; i < list.count; i++)
            list.items[i]->trace_error = i % 2 == 0 ? 1e-6 * (1 + beyond * 1e-15) : 1e-9;
        expect_line(&list, "samplings", beyond ? ADVICE_TIP : ADVICE_FINE,
                    beyond ? "rather than" : "any sampling does");
        for (int64_t i = 0; i < list.count; i++)
            list.items[i]->trace_error = i % 2 == 1 ? 1e-6 * (1 + beyond * 1e-15) : 1e-9;
        expect_line(&list, "samplings", ADVICE_FINE, beyond ? "keep averages" : "any sampling");
        inspections_free(&list);
    }
}

Test(inspect, nothing_is_wrong)
{
    inspection_list list = healthy_list();
    advice_line lines[ADVICE_RULES];
    int count = advice_make(&list, lines);
    char *headline = advice_headline(count, lines);
    cr_expect(strncmp(headline, "No warnings: 9 points", 21) == 0, "%s", headline);
    for (int i = 0; i < count; i++)
        cr_expect(lines[i].level == ADVICE_FINE && strpbrk(lines[i].text, "0123456789"), "%s: %s",
                  lines[i].rule, lines[i].text);
    cr_expect_eq(count, 9, "%d lines", count);
    free(headline);
    advice_free(count, lines);
    static const char *const silent[] = {"certified", "unresolved", "too-many", "apart"};
    for (int i = 0; i < 4; i++)
        expect_silence(&list, silent[i]);
    list.items[3]->soft_norm = 1e9; /* no main sampling: others' numbers are not advised on */
    list.items[3]->margin = -1;
    expect_line(&list, "norms", ADVICE_FINE, "at most 20");
    expect_line(&list, "start", ADVICE_FINE, "converges");
    inspections_free(&list);
}

/* If 20 steps are too few, there is no advice that they are too many. */
Test(inspect, too_few_is_not_too_many)
{
    inspection_list list = healthy_list();
    list.items[2]->precisions[0] =
        (precision_facts){.best = 1e-9, .best_steps = 40, .fixed = 0.5, .rank = 49};
    expect_silence(&list, "too-many");
    list.items[2]->precisions[0].best_steps = 15;
    expect_line(&list, "too-many", ADVICE_WARNING, "f64: residual 0.5 after 20");
    inspections_free(&list);
}

Test(inspect, a_faster_inverse)
{
    inspection_list list = healthy_list();
    expect_line(&list, "faster", ADVICE_FINE, "No iteration is much faster");
    for (int64_t i = 0; i < list.count; i++)
        list.items[i]->inverses[ATN_INVERSE_CHEBYSHEV_2].products[0] = 14;
    expect_line(&list, "faster", ADVICE_TIP,
                "chebyshev-2 brings every residual below 1e-3 in at "
                "most 14 products");
    list.items[0]->inverses[ATN_INVERSE_CHEBYSHEV_2].products[0] = NAN; /* not everywhere */
    expect_line(&list, "faster", ADVICE_FINE, "No iteration is much faster");
    list.items[4]->inverses[ATN_INVERSE_NR_PAPER].products[0] = NAN;
    expect_line(&list, "faster", ADVICE_TIP, "nr-paper does not get there");
    inspections_free(&list);
}

Test(inspect, far_apart)
{
    inspection_list list = healthy_list();
    for (int64_t i = 0; i < list.count; i++)
        list.items[i]->norm1 = 1.05;
    expect_line(&list, "apart", ADVICE_TIP, "1 + 0.05");
    list.items[2]->norm1 = 1.2;
    expect_silence(&list, "apart");
    inspections_free(&list);
}

/* On the boundary of convergence an iteration converges by rounding alone. */
Test(inspect, reached_by_rounding)
{
    inspection_list list = healthy_list();
    list.items[2]->inverses[ATN_INVERSE_NR_PAPER].residual = 1;
    list.items[2]->inverses[ATN_INVERSE_NR_PAPER].steps[0] = 53;
    list.items[2]->margin = -1;
    expect_line(&list, "steps", ADVICE_WARNING, "1e-3 takes 53 steps, which rounding decides;");
    list.items[2]->margin = -1 + 1e-7;
    expect_line(&list, "steps", ADVICE_WARNING, "1e-3 takes 53 steps;");
    inspections_free(&list);
}

Test(inspect, no_precision_is_safe)
{
    inspection_list list = healthy_list();
    for (int p = 0; p < PRECISIONS; p++)
        list.items[2]->precisions[p].best = 0.5;
    expect_line(&list, "precision", ADVICE_WARNING, "stays above 0.01. Safe: none.");
    inspections_free(&list);
}

/* No advice to keep a sampling that another one equals, nor to use one that does not suffice. */
Test(inspect, samplings_that_are_alike)
{
    static const struct {
        double main, other;
        const char *fragment;
    } rows[] = {
        {0.96, 0.94, "the sampling hardly matters: tr(S - S^) is 0.94 to 0.96 of tr(S)"},
        {0.94, 0.96, "the sampling hardly matters: tr(S - S^) is 0.94 to 0.96 of tr(S)"},
        {1e-9, 1e-7, "any sampling does: tr(S - S^) is 1e-09 to 1e-07 of tr(S)"},
        {0.1, 0.2, "keep averages of 4 x 4 tokens, not averages of 4 consecutive tokens"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        inspection_list list = healthy_list();
        for (int64_t i = 0; i < list.count; i++)
            list.items[i]->trace_error = i % 2 == 0 ? rows[k].main : rows[k].other;
        expect_line(&list, "samplings", ADVICE_FINE, rows[k].fragment);
        inspections_free(&list);
    }
}

/* ---- Raw rows, and text ---- */

Test(inspect, raw_rows_keep_every_number)
{
    table *raw = table_create(inspect_raw_columns, INSPECT_RAW_COLUMNS);
    inspection *i = healthy(5, WINDOW);
    for (int j = 0; j < 49; j++)
        i->lambda[j] = 49 - j;
    i->inverses[ATN_INVERSE_NR_PAPER].length = 3;
    i->inverses[ATN_INVERSE_NR_PAPER].curve[2] = 0.25;
    inspection_write(i, raw);
    i->head = 6;
    inspection_write(i, raw);
    inspection_list list = inspections_read(raw);
    cr_assert_eq(list.count, 2);
    for (int which = 0; which < 2; which++) {
        const inspection *got = list.items[which];
        cr_expect(got->head == 5 + which && got->m == 49 && got->sampling == WINDOW && !got->main);
        for (const fact_field *f = fact_fields[FACTS_MATRIX]; f->name; f++)
            cr_expect(fact_get(f, got) == fact_get(f, i) || isnan(fact_get(f, i)), "%s", f->name);
        cr_expect(got->lambda[48] == 1 && got->precisions[2].best == 1e-3);
        cr_expect(got->inverses[ATN_INVERSE_NR_PAPER].length == 3 &&
                  got->inverses[ATN_INVERSE_NR_PAPER].curve[2] == 0.25);
        cr_expect(isnan(got->lambda_min_lower));
    }
    inspections_free(&list);
    inspection_free(i);
    table_free(raw);
}

/* ---- Ticks ---- */

Test(inspect, axes_have_round_ticks)
{
    static const struct {
        svg_axis y;
        const char *ticks;
    } axes[] = {{{"", 7, 13, false}, "7 8 9 10 11 12 13 "},
                {{"", -1, 1, false}, "-1 -0.5 0 0.5 1 "},
                {{"", 100, 118, false}, "100 105 110 115 "},
                {{"", 1, 60, true}, "1 2 5 10 20 50 "},
                {{"", 0.5, 1e3, true}, "1 10 100 1000 "}};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        svg_plot plot = {.title = "", .description = "", .x = {"", 0, 1, false}, .y = axes[i].y};
        FILE *file = begin_text(), *found;
        svg_begin(file, &plot, 0);
        char *svg = end_text(file), *ticks = NULL;
        size_t size;
        cr_assert(found = open_memstream(&ticks, &size));
        for (const char *at = svg; (at = strstr(at, "\"tick\" text-anchor=\"end\""));) {
            at = strchr(at, '>') + 1;
            fprintf(found, "%.*s ", (int)strcspn(at, "<"), at);
        }
        fclose(found);
        cr_expect_str_eq(ticks, axes[i].ticks);
        free(ticks);
        free(svg);
    }
}
