/* SPDX-License-Identifier: BSD-3-Clause */
/* The samplings that look at the tokens: what they draw with which probability, ties, tokens that
 * run out, and tokens that are no numbers. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"
#include "sampling.h"

static const atn_sampling_kind kinds[] = {ATN_SAMPLING_KMEANS, ATN_SAMPLING_LEVERAGE,
                                          ATN_SAMPLING_RPCHOLESKY, ATN_SAMPLING_GREEDY};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* One head of n tokens in f64; landmarks are count x d. */
static atn_status sample(atn_context *context, const atn_sampling *s, int64_t n, int64_t d,
                         double *tokens, double *landmarks)
{
    atn_tensor q = atn_tensor_dense(tokens, ATN_F64, 1, 1, n, d);
    atn_tensor l = atn_tensor_dense(landmarks, ATN_F64, 1, 1, s->count, d);
    return fixture_sample(context, s, &q, &l);
}

/* ---- Probabilities: all uniforms of a grid ---- */

enum { N = 4, GRID = 32 };

static double line[N] = {0, 0.5, 1.7, 2};

static double kernel(int i, int j, double s)
{
    return exp(-s * (line[i] - line[j]) * (line[i] - line[j]));
}

static int token_at(double x)
{
    for (int i = 0; i < N; i++)
        if (line[i] == x)
            return i;
    cr_assert_fail("%g is no token", x);
    return -1;
}

/* How often the `picks` last of `count` uniforms on a grid of midpoints take which tokens; the
 * others are `first`. The first of three picks takes each token once: it is uniform. */
static void count_choices(const atn_sampling *s, int64_t count, double first, int picks, int *seen)
{
    atn_context *context = fixture_context(1, NULL);
    double uniforms[4] = {first, first, first, first}, landmarks[N];
    atn_sampling sampling = *s;
    int grids[3], runs = 1;
    for (int p = 0; p < picks; p++)
        runs *= grids[p] = p == 0 && picks == 3 ? N : GRID;
    sampling.uniforms = uniforms;
    sampling.uniform_count = count;
    for (int run = 0; run < runs; run++) {
        int place = 0;
        for (int p = 0, rest = run; p < picks; rest /= grids[p++])
            uniforms[count - picks + p] = (rest % grids[p] + 0.5) / grids[p];
        cr_assert_eq(sample(context, &sampling, N, 1, line, landmarks), ATN_OK, "%s",
                     atn_last_error(context));
        for (int64_t l = 0; l < sampling.count; l++)
            place = place * N + token_at(landmarks[l]);
        seen[place]++;
    }
    atn_context_free(context);
}

/* Every uniform's share of a token is off by at most one point of its grid. */
static void expect_share(const char *name, int seen, int tries, double probability)
{
    cr_expect(fabs(seen - tries * probability) <= tries / (double)GRID + 1e-9,
              "%s: %d of %d, expected %g", name, seen, tries, tries * probability);
}

Test(sampling_choice, kmeans_draws_by_squared_distance)
{
    atn_sampling s = {.kind = ATN_SAMPLING_KMEANS, .count = 2};
    int seen[N * N] = {0};
    count_choices(&s, 2, 0, 2, seen);
    for (int i = 0; i < N; i++) {
        double total = 0;
        for (int j = 0; j < N; j++)
            total += pow(line[i] - line[j], 2);
        for (int j = 0; j < N; j++)
            expect_share("kmeans", seen[i * N + j], GRID * GRID / N,
                         pow(line[i] - line[j], 2) / total);
    }
}

/* The residual of j after i, and of l after i and j, from the inverse of a 2 x 2 matrix. */
static double residual(int i, int j, double s)
{
    return 1 - kernel(i, j, s) * kernel(i, j, s);
}

static double second_residual(int i, int j, int l, double s)
{
    double a = kernel(i, j, s), x = kernel(i, l, s), y = kernel(j, l, s);
    return 1 - (x * x - 2 * a * x * y + y * y) / (1 - a * a);
}

Test(sampling_choice, rpcholesky_draws_by_residual)
{
    const double scale = 0.8;
    atn_sampling s = {.kind = ATN_SAMPLING_RPCHOLESKY, .count = 3, .scale = scale};
    int *seen = calloc(N * N * N, sizeof *seen);
    count_choices(&s, 3, 0, 3, seen);
    for (int i = 0; i < N; i++) {
        double total = 0;
        for (int j = 0; j < N; j++)
            total += residual(i, j, scale);
        for (int j = 0; j < N; j++) {
            int pairs = 0;
            double left = 0;
            for (int l = 0; l < N; l++) {
                pairs += seen[(i * N + j) * N + l];
                left += i == j ? 0 : second_residual(i, j, l, scale);
            }
            expect_share("second", pairs, GRID * GRID, residual(i, j, scale) / total);
            for (int l = 0; l < N && i != j; l++)
                expect_share("third", seen[(i * N + j) * N + l], pairs,
                             second_residual(i, j, l, scale) / left);
        }
    }
    free(seen);
}

/* One token b as pilot: r_i = 1 - k_ib^2 / (1 + lambda). The default scale, 1/2 for d = 1. */
Test(sampling_choice, leverage_draws_by_score)
{
    static const double ridges[] = {0.05, 0.6, 0, 1e300};
    for (int r = 0; r < 4; r++)
        for (int b = 0; b < N; b++) {
            atn_sampling s = {.kind = ATN_SAMPLING_LEVERAGE, .count = 1, .ridge = ridges[r]};
            int seen[N] = {0};
            double lambda = ridges[r], least = 0x1p-50, score[N], total = 0;
            count_choices(&s, 2, (b + 0.5) / N, 1, seen);
            for (int i = 0; i < N && ridges[r] == 0; i++)
                lambda += 1 - pow(kernel(i, b, 0.5), 2) / (1 + least);
            for (int i = 0; i < N; i++) {
                score[i] = fmin(1, (1 - pow(kernel(i, b, 0.5), 2) / (1 + lambda)) / lambda);
                total += score[i];
            }
            for (int i = 0; i < N; i++)
                expect_share("leverage", seen[i], GRID, score[i] / total);
        }
}

/* 1 - k (A + lambda I)^-1 k of token i, A of tokens b and c. */
static double residual_of_two(int i, int b, int c, double lambda)
{
    double a = kernel(b, c, 0.5), kb = kernel(i, b, 0.5), kc = kernel(i, c, 0.5), d = 1 + lambda;
    return 1 - (d * (kb * kb + kc * kc) - 2 * a * kb * kc) / (d * d - a * a);
}

/* Without a ridge it is the mean of the residuals over the landmarks there will be: here 2. */
Test(sampling_choice, leverage_has_a_ridge_for_every_landmark)
{
    for (int b = 0; b < N; b++) {
        atn_sampling s = {.kind = ATN_SAMPLING_LEVERAGE, .count = 2};
        int seen[N * N] = {0}, c = (int)((b + 0.5) / N * (N - 1));
        double lambda = 0, score[N], total = 0;
        c += c >= b; /* the second of the pilots is drawn from the others */
        count_choices(&s, 4, (b + 0.5) / N, 2, seen);
        for (int i = 0; i < N; i++)
            lambda += residual_of_two(i, b, c, 4 * 0x1p-50) / 2;
        for (int i = 0; i < N; i++) {
            score[i] = fmin(1, residual_of_two(i, b, c, lambda) / lambda);
            total += score[i];
        }
        for (int i = 0; i < N; i++) {
            int first = 0;
            for (int j = 0; j < N; j++)
                first += seen[i * N + j];
            expect_share("leverage of 2", first, GRID * GRID, score[i] / total);
        }
    }
}

/* m^2 2^-50 is the least ridge. The pilots 0 and 2^-24 have a kernel of 1 - t with t = 2^-48, the
 * least ridge of two landmarks, so that each has the score 1 - lambda / (2 (lambda + t)), and a
 * token far away 1: numbers above 1 minus its share draw it. */
Test(sampling_choice, leverage_has_a_least_ridge)
{
    static const struct {
        double ridge, lambda;
    } cases[] = {{0x1p-50, 0x1p-48}, {0.99 * 0x1p-48, 0x1p-48}, {0x1p-47, 0x1p-47}};
    double tokens[] = {0, 0x1p-24, 10}, landmarks[2];
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 3; i++)
        for (int above = 0; above < 2; above++) {
            double lambda = cases[i].lambda, score = 1 - lambda / (2 * (lambda + 0x1p-48));
            double border = 1 - 1 / (2 * score + 1);
            double uniforms[] = {0, 0, border + (above ? 0.01 : -0.01), 0};
            atn_sampling s = {.kind = ATN_SAMPLING_LEVERAGE, .count = 2, .scale = 1};
            s.ridge = cases[i].ridge, s.uniforms = uniforms, s.uniform_count = 4;
            cr_assert_eq(sample(context, &s, 3, 1, tokens, landmarks), ATN_OK);
            cr_expect_eq(landmarks[0] == 10, above, "ridge %g, %g: token at %g", cases[i].ridge,
                         uniforms[2], landmarks[0]);
        }
    atn_context_free(context);
}

/* ---- Answers by hand ---- */

/* u = 0.5 of the squares 1, 100, 144 is the last; then {0, 1} and {10, 12}. */
Test(sampling_choice, lloyd_steps_by_hand)
{
    static const double uniforms[2] = {0, 0.5};
    atn_context *context = fixture_context(1, NULL);
    double tokens[4] = {0, 1, 10, 12}, l[2];
    atn_sampling s = {.kind = ATN_SAMPLING_KMEANS, .count = 2};
    s.uniforms = uniforms, s.uniform_count = 2;
    cr_expect_eq(sample(context, &s, 4, 1, tokens, l), ATN_OK);
    cr_expect(l[0] == 0 && l[1] == 12, "%g %g", l[0], l[1]);
    for (s.steps = 1; s.steps < 4; s.steps++) {
        cr_expect_eq(sample(context, &s, 4, 1, tokens, l), ATN_OK);
        cr_expect(l[0] == 0.5 && l[1] == 11, "%g %g", l[0], l[1]);
    }
    atn_context_free(context);
}

/* The first, the one farthest from it, the one between them; then of two equal residuals the
 * first. */
Test(sampling_choice, greedy_by_hand)
{
    atn_context *context = fixture_context(1, NULL);
    double tokens[5] = {0, -1, 4, 2, 1}, l[3], pair[3] = {0, 1, -1};
    atn_sampling s = {.kind = ATN_SAMPLING_GREEDY, .count = 3, .scale = 0.1};
    cr_expect_eq(sample(context, &s, 5, 1, tokens, l), ATN_OK);
    cr_expect(l[0] == 0 && l[1] == 4 && l[2] == 2, "%g %g %g", l[0], l[1], l[2]);
    s.count = 2;
    cr_expect_eq(sample(context, &s, 3, 1, pair, l), ATN_OK);
    cr_expect(l[0] == 0 && l[1] == 1, "%g %g", l[0], l[1]);
    atn_context_free(context);
}

/* Four probabilities of 1/4: the first i with i/4 > u. After token 0, u = 0 cannot be token 0. */
Test(sampling_choice, a_number_on_the_edge_is_the_next_token)
{
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < N; i++) {
        double uniforms[2] = {i / 4.0, 0}, l[2];
        atn_sampling s = {.kind = ATN_SAMPLING_RPCHOLESKY, .count = 2, .uniforms = uniforms};
        s.uniform_count = 2;
        cr_expect_eq(sample(context, &s, N, 1, line, l), ATN_OK);
        cr_expect(l[0] == line[i] && l[1] == line[i == 0], "%g: %g %g", uniforms[0], l[0], l[1]);
    }
    atn_context_free(context);
}

/* 1e-8 apart, a residual is about 1e-16: none is drawn, and what is left goes by its number. */
Test(sampling_choice, residuals_that_are_rounding_are_none)
{
    static const double uniforms[5] = {0, 0.999, 0.999, 0.999, 0.999};
    atn_context *context = fixture_context(1, NULL);
    double tokens[6] = {0, 1e-8, 2e-8, 3e-8, 4e-8, 5}, l[5];
    for (int k = 2; k < KINDS; k++) {
        atn_sampling s = {.kind = kinds[k], .count = 5, .uniforms = uniforms, .uniform_count = 5};
        cr_expect_eq(sample(context, &s, 6, 1, tokens, l), ATN_OK);
        cr_expect(l[0] == 0 && l[1] == 5 && l[2] == 1e-8 && l[3] == 2e-8 && l[4] == 3e-8,
                  "%s: %g %g %g %g %g", atn_sampling_name(s.kind), l[0], l[1], l[2], l[3], l[4]);
    }
    atn_context_free(context);
}

/* ---- Tokens that are equal ---- */

enum { POINTS = 6, COPIES = 4, MANY = POINTS * COPIES };

/* Distinct points of a plane, each four times, in a random order. */
static void scatter(uint64_t seed, double *tokens)
{
    int64_t order[MANY];
    data_permutation(seed, MANY, order);
    for (int i = 0; i < MANY; i++) {
        tokens[2 * i] = (double)(order[i] % POINTS);
        tokens[2 * i + 1] = (double)(order[i] % POINTS % 2);
    }
}

static int distinct(const double *landmarks, int64_t count)
{
    bool there[POINTS] = {false};
    int sum = 0;
    for (int64_t l = 0; l < count; l++)
        there[(int)landmarks[2 * l]] = true;
    for (int i = 0; i < POINTS; i++)
        sum += there[i];
    return sum;
}

static void random_uniforms(uint64_t seed, int64_t count, double *uniforms)
{
    for (int64_t i = 0; i < count; i++)
        uniforms[i] = (double)(data_next(&seed) >> 11) * 0x1p-53;
}

/* All distinct ones come before a second copy of any, and the copies are as the reference has them.
 */
Test(sampling_choice, equal_tokens_come_last)
{
    atn_context *context = fixture_context(1, NULL);
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (int k = 0; k < KINDS; k++) {
            double tokens[2 * MANY], l[2 * MANY], want[2 * MANY], uniforms[2 * MANY];
            atn_sampling s = {.kind = kinds[k], .uniforms = uniforms, .uniform_count = 2 * MANY};
            s.ridge = 0.01; /* its own would be rounding where all tokens are in the pilot */
            s.steps = (int64_t)(seed % 3);
            scatter(seed, tokens);
            random_uniforms(seed, 2 * MANY, uniforms);
            for (s.count = 1; s.count <= MANY; s.count += s.count < 10 ? 1 : 7) {
                int64_t fewer = s.count < POINTS ? s.count : POINTS;
                cr_expect_eq(sample(context, &s, MANY, 2, tokens, l), ATN_OK);
                cr_assert_eq(ref_chosen_landmarks(&s, MANY, 2, tokens, want), ATN_OK);
                cr_expect(s.steps > 0 || distinct(l, s.count) == fewer, "%s m=%ld: %d distinct",
                          atn_sampling_name(s.kind), (long)s.count, distinct(l, s.count));
                for (int64_t i = 0; i < 2 * s.count; i++)
                    cr_expect(fabs(l[i] - want[i]) < 1e-14, "%s m=%ld: %g, expected %g",
                              atn_sampling_name(s.kind), (long)s.count, l[i], want[i]);
            }
        }
    atn_context_free(context);
}

/* ---- Numbers that are none ---- */

Test(sampling_choice, nan_and_infinity_spoil_their_head)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int k = 0; k < KINDS * 3; k++) {
            atn_context *context = fixture_context(2, NULL);
            enum { ROWS = 9, D = 3, M = 4 };
            double tokens[2 * ROWS * D], want[M * D];
            fixture_sampling s = fixture_sampling_make(kinds[k % KINDS], (atn_dtype)dtype, ROWS, 1,
                                                       D, 1, M, false, 5);
            guarded q = guarded_make((atn_dtype)dtype, GUARDED_DENSE, 1, 2, ROWS, D);
            guarded l = guarded_make((atn_dtype)dtype, GUARDED_DENSE, 1, 2, M, D);
            data_normal(3, 2 * ROWS * D, tokens);
            data_round((atn_dtype)dtype, 2 * ROWS * D, tokens);
            tokens[ROWS * D + 7] = bad[k / KINDS];
            guarded_set(&q, tokens);
            cr_expect_eq(fixture_sample(context, &s.desc, &q.view, &l.view), ATN_NONFINITE);
            fixture_landmarks(&s, ROWS, D, tokens, want);
            ref_difference first = guarded_compare(&l, 0, 0, want);
            cr_expect(first.max_abs < 1e-6, "%s: %g", atn_sampling_name(s.desc.kind),
                      first.max_abs);
            for (int64_t i = 0; i < M; i++)
                for (int64_t c = 0; c < D; c++)
                    cr_expect(isnan(guarded_at(&l, 0, 1, i, c)));
            cr_expect_eq(guarded_damaged(&l), 0);
            guarded_free(&l);
            guarded_free(&q);
            fixture_sampling_free(&s);
            atn_context_free(context);
        }
}

/* The squares of the distances to the first are 1, infinity, infinity. */
Test(sampling_choice, where_a_sum_overflows_the_largest_is_taken)
{
    static const double uniforms[2] = {0, 0.99};
    atn_context *context = fixture_context(1, NULL);
    double tokens[4] = {0, 1, 1e200, -1e300}, l[2];
    atn_sampling s = {.kind = ATN_SAMPLING_KMEANS, .count = 2, .uniforms = uniforms};
    s.uniform_count = 2;
    cr_expect_eq(sample(context, &s, 4, 1, tokens, l), ATN_OK);
    cr_expect(l[0] == 0 && l[1] == 1e200, "%g %g", l[0], l[1]);
    atn_context_free(context);
}

/* Distances that overflow: some tokens all the same. Numbers that turn bad after the plan are
 * refused by those that draw, tokens that do spoil their head. */
Test(sampling_choice, overflow_and_late_nan_stay_inside)
{
    enum { ROWS = 7, M = 5 };
    atn_context *context = fixture_context(1, NULL);
    for (int k = 0; k < KINDS; k++) {
        double tokens[ROWS], values[ROWS], out[ROWS], uniforms[2 * M];
        atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F64);
        atn_attention_shape shape = {1, 1, ROWS, 1, 1, 0};
        atn_sampling *s = &desc.sampling;
        atn_plan *plan;
        atn_tensor q = atn_tensor_dense(tokens, ATN_F64, 1, 1, ROWS, 1);
        atn_tensor v = atn_tensor_dense(values, ATN_F64, 1, 1, ROWS, 1);
        atn_tensor y = atn_tensor_dense(out, ATN_F64, 1, 1, ROWS, 1);
        atn_attention_inputs inputs = {.q = &q, .v = &v};
        *s = (atn_sampling){.kind = kinds[k], .count = M, .uniforms = uniforms};
        s->uniform_count = 2 * M;
        random_uniforms(8, 2 * M, uniforms);
        for (int i = 0; i < ROWS; i++)
            tokens[i] = i % 2 ? 1e200 * i : -1e307 * i, values[i] = i;
        cr_expect_eq(sample(context, s, ROWS, 1, tokens, out), ATN_OK);
        for (int l = 0; l < M; l++) {
            bool found = false;
            for (int i = 0; i < ROWS; i++)
                found = found || out[l] == tokens[i];
            cr_expect(found, "%s: %g", atn_sampling_name(s->kind), out[l]);
        }
        if (fixture_device() != ATN_CPU)
            continue; /* what follows changes arrays under a plan */
        cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
        for (int i = 0; i < 2 * M; i++)
            uniforms[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? 1e300 : -3;
        atn_status status = atn_attention_forward(plan, &inputs, &y, NULL);
        cr_expect(kinds[k] == ATN_SAMPLING_GREEDY ? status >= 0 : status == ATN_ERR_VALUE, "%s: %s",
                  atn_sampling_name(kinds[k]), atn_status_name(status));
        random_uniforms(8, 2 * M, uniforms);
        tokens[3] = NAN;
        cr_expect_eq(atn_attention_forward(plan, &inputs, &y, NULL), ATN_NONFINITE);
        cr_expect(isnan(out[0]) && isnan(out[ROWS - 1]));
        atn_plan_free(plan);
    }
    atn_context_free(context);
}

/* A head that is refused leaves the others' gradients alone, in every layout: in one of them its
 * rows follow theirs. */
Test(sampling_choice, backward_of_a_nan_head)
{
    for (int i = 0; i < KINDS * GUARDED_LAYOUT_COUNT; i++) {
        int k = i % KINDS, layout = i / KINDS;
        atn_context *context = fixture_context(2, NULL);
        attention_choice choice = {.op = ATN_SOFT,
                                   .dtype = ATN_F64,
                                   .shape = {1, 2, 12, 3, 2, 0},
                                   .sampling = kinds[k],
                                   .seed = 4};
        attention_case c = attention_case_make(&choice), bad = attention_case_make(&choice);
        bad.q[12 * 3 + 5] = NAN;
        attention_run good_run = attention_run_make(&c, layout);
        attention_run bad_run = attention_run_make(&bad, layout);
        cr_expect(attention_run_backward(&good_run, context) >= 0);
        cr_expect_eq(attention_run_backward(&bad_run, context), ATN_NONFINITE);
        cr_expect(attention_run_clean(&bad_run, true), "%s", atn_sampling_name(kinds[k]));
        attention_slots want = attention_run_slots(&good_run), got = attention_run_slots(&bad_run);
        for (int e = 0; e < 12 * 3; e++)
            cr_expect(got.of[SLOT_Q][e] == want.of[SLOT_Q][e] && isnan(got.of[SLOT_Q][36 + e]),
                      "%s: %g, %g", atn_sampling_name(kinds[k]), got.of[SLOT_Q][e],
                      want.of[SLOT_Q][e]);
        attention_slots_free(&got);
        attention_slots_free(&want);
        attention_run_free(&bad_run);
        attention_run_free(&good_run);
        attention_case_free(&bad);
        attention_case_free(&c);
        atn_context_free(context);
    }
}
