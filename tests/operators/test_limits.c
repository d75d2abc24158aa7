/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators compared with each other: orders of products, and the limits to which approximations
 * converge or at which they are exact. */
#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"

static double *output_of(atn_context *context, const attention_case *c)
{
    attention_run r = attention_run_make(c, 0);
    double *y = data_allocate(attention_case_outputs(c));
    atn_status status = attention_run_forward(&r, context);
    cr_expect_eq(status, ATN_OK, "%s: %s (%s)", attention_case_label(c), atn_status_name(status),
                 atn_last_error(context));
    guarded_get(&r.out, y);
    attention_run_free(&r);
    return y;
}

static bool runs(atn_operator op)
{
    return fixture_runs(atn_operator_get(op));
}

/* ---- SimA's and SOFT's products in either order ---- */

Test(limits, sima_in_either_order)
{
    atn_context *context = fixture_context(1, NULL);
    for (int variant = 0; runs(ATN_SIMA) && variant < atn_operator_get(ATN_SIMA)->variant_count;
         variant++) {
        attention_choice choice = {.op = ATN_SIMA,
                                   .variant = variant,
                                   .dtype = ATN_F64,
                                   .shape = {1, 2, 70, 9, 5, 66},
                                   .seed = 4};
        attention_case c = attention_case_make(&choice);
        double *y[ATN_ORDER_COUNT];
        for (int order = 0; order < ATN_ORDER_COUNT; order++) {
            c.desc.sima.order = (atn_order)order;
            y[order] = output_of(context, &c);
        }
        double apart =
            judge_relative(attention_case_outputs(&c), y[ATN_ORDER_TOKENS], y[ATN_ORDER_CHANNELS]);
        cr_expect(apart <= JUDGE_LAW && apart > 0, "%s: the orders are %.3g apart",
                  attention_case_label(&c), apart); /* 0: one order ran twice */
        for (int order = 0; order < ATN_ORDER_COUNT; order++)
            free(y[order]);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

static void product(int64_t rows, int64_t inner, int64_t cols, const double *a, const double *b,
                    double *c)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            c[i * cols + j] = 0;
            for (int64_t k = 0; k < inner; k++)
                c[i * cols + j] += a[i * inner + k] * b[k * cols + j];
        }
}

/* (P A+) P^T V from the library's own P and A+, as Eq. 7 has it, against P (A+ (P^T V)). */
Test(limits, soft_in_the_order_of_its_equation)
{
    enum { N = 40, M = 9, D = 6, DV = 3 };
    atn_context *context = fixture_context(1, NULL), *cpu;
    if (!runs(ATN_SOFT)) {
        atn_context_free(context);
        return;
    }
    cr_assert_eq(atn_context_create(NULL, &cpu), ATN_OK);
    attention_choice choice = {.op = ATN_SOFT,
                               .dtype = ATN_F64,
                               .shape = {1, 1, N, D, DV, 0},
                               .sampling = ATN_SAMPLING_FIRST,
                               .seed = 5};
    attention_case c = attention_case_make(&choice);
    double a[M * M], x[M * M], p[N * M], px[N * M], pt[M * N], w[N * N], want[N * DV];
    double s = atn_kernel_scale(c.desc.scale, c.desc.scale_value, 1, D);
    atn_tensor tokens = atn_tensor_dense(c.q, ATN_F64, 1, 1, N, D);
    atn_tensor landmarks = atn_tensor_dense(c.q, ATN_F64, 1, 1, M, D);
    atn_tensor ta = atn_tensor_dense(a, ATN_F64, 1, 1, M, M), tx = ta;
    atn_tensor tp = atn_tensor_dense(p, ATN_F64, 1, 1, N, M);
    tx.data = x;
    c.desc.inverse = atn_inverse_defaults(ATN_INVERSE_EIG);
    cr_assert_eq(c.desc.sampling.count, M);
    cr_assert_eq(atn_gaussian_self(cpu, c.desc.distance, s, &landmarks, &ta), ATN_OK);
    cr_assert_eq(atn_gaussian_cross(cpu, c.desc.distance, s, &tokens, &landmarks, &tp), ATN_OK);
    cr_assert_eq(atn_inverse(cpu, &c.desc.inverse, &ta, &tx, NULL, NULL), ATN_OK);
    for (int i = 0; i < N * M; i++)
        pt[i % M * N + i / M] = p[i];
    product(N, M, M, p, x, px);
    product(N, M, N, px, pt, w);
    product(N, N, DV, w, c.v, want);
    double *y = output_of(context, &c), apart = judge_relative((int64_t)N * DV, y, want);
    cr_expect(apart <= JUDGE_LAW, "%.3g apart", apart);
    free(y);
    attention_case_free(&c);
    atn_context_free(cpu);
    atn_context_free(context);
}

/* ---- All tokens as landmarks: SOFT is Gaussian attention (IJCV Eq. 5) ---- */

Test(limits, soft_with_all_landmarks_is_gaussian)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_EIG, ATN_INVERSE_CHOLESKY,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY};
    enum { N = 30 };
    atn_context *context = fixture_context(1, NULL);
    int64_t all[N];
    for (int64_t i = 0; i < N; i++)
        all[i] = i;
    for (size_t i = 0; runs(ATN_SOFT) && runs(ATN_GAUSSIAN) && i < sizeof methods / sizeof *methods;
         i++) {
        attention_choice choice = {
            .op = ATN_SOFT, .dtype = ATN_F64, .shape = {2, 2, N, 12, 4, 0}, .seed = 6};
        choice.sampling = ATN_SAMPLING_INDICES;
        attention_case soft = attention_case_make(&choice);
        choice.op = ATN_GAUSSIAN;
        attention_case gaussian = attention_case_make(&choice);
        soft.desc.inverse = atn_inverse_defaults(methods[i]);
        soft.desc.sampling.indices = all;
        soft.desc.sampling.count = N;
        double *y = output_of(context, &soft), *want = output_of(context, &gaussian);
        double apart = judge_relative(attention_case_outputs(&soft), y, want);
        cr_expect(apart <= JUDGE_LAW, "%s: %.3g apart", atn_inverse_name(methods[i]), apart);
        free(want);
        free(y);
        attention_case_free(&gaussian);
        attention_case_free(&soft);
    }
    atn_context_free(context);
}

/* ---- Softmax does not see what all logits have in common ---- */

/* Y of keys moved by 1000 in every channel, whose exp overflows, is Y; of queries as well where the
 * softmax is over channels. */
Test(limits, logits_of_any_size)
{
    static const atn_operator ops[] = {ATN_SOFTMAX, ATN_EFFICIENT, ATN_NYSTROMFORMER};
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int sign = -1; runs(ops[i]) && sign <= 1; sign += 2) {
            attention_choice choice = {.op = ops[i],
                                       .dtype = ATN_F64,
                                       .shape = {1, 2, 70, 4, 3, 0},
                                       .cross = true,
                                       .seed = 8};
            attention_case c = attention_case_make(&choice);
            double *want = output_of(context, &c);
            for (int64_t j = 0; j < attention_case_keys(&c); j++) {
                c.k[j] += 1000 * sign;
                c.q[j] += ops[i] == ATN_EFFICIENT ? 1000 * sign : 0;
            }
            double *y = output_of(context, &c);
            double apart = judge_relative(attention_case_outputs(&c), y, want);
            cr_expect(apart <= JUDGE_LAW, "%s, sign %d: %.3g apart", attention_case_label(&c), sign,
                      apart);
            free(y);
            free(want);
            attention_case_free(&c);
        }
    atn_context_free(context);
}

/* A key whose channels are far above all others, whichever it is, has all their weight, however far
 * it is above. */
Test(limits, one_large_key_anywhere)
{
    static const atn_operator ops[] = {ATN_SOFTMAX, ATN_EFFICIENT};
    enum { KEYS = 70, DIM = 4 };
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int64_t at = 0; runs(ops[i]) && at < KEYS; at++) {
            attention_choice choice = {.op = ops[i],
                                       .dtype = ATN_F64,
                                       .shape = {1, 1, KEYS, DIM, 3, 0},
                                       .cross = true,
                                       .seed = 8};
            attention_case c = attention_case_make(&choice);
            for (int64_t e = 0; e < KEYS * DIM; e++)
                c.q[e] = fabs(c.q[e]) + 1; /* softmax: so that all queries see that key alone */
            double *y[2];
            for (int more = 0; more < 2; more++) {
                for (int64_t e = 0; e < DIM; e++)
                    c.k[at * DIM + e] += 2000;
                y[more] = output_of(context, &c);
            }
            double apart = judge_relative(attention_case_outputs(&c), y[1], y[0]);
            cr_expect(apart <= JUDGE_LAW, "%s, key %d: %.3g apart", attention_case_label(&c),
                      (int)at, apart);
            free(y[1]);
            free(y[0]);
            attention_case_free(&c);
        }
    atn_context_free(context);
}

/* Keys that rise above the first ones, by whose maxima efficient attention tries to sum them all:
 * f32 is as near to f64 whether they do so in the first group of keys or the last, by little or
 * much, with small gradients, and with values so large that sums of exps times values overflow
 * unless the largest exp is 1. The largest errors seen, in FLT_EPSILON: of Y 0.7, of dQ, a
 * difference that cancels, 26, of dK 10, of dV 4. */
Test(limits, keys_that_rise, .timeout = 120)
{
    enum { KEYS = 1100, DIM = 20, VALUES = 3, PARTS = 4 };
    static const double rises[] = {0, 2, 3.5, 5, 30, 64, 66, 82, 200};
    static const int64_t firsts[] = {64, 600, 1099};
    static const int powers[] = {0, 118};
    enum { RISES = sizeof rises / sizeof *rises, FIRSTS = 3, POWERS = 2 };
    atn_context *context = fixture_context(2, NULL);
    for (int i = 0; runs(ATN_EFFICIENT) && i < RISES * FIRSTS * POWERS; i++) {
        double rise = rises[i % RISES];
        int64_t first = firsts[i / RISES % FIRSTS], count;
        int power = powers[i / RISES / FIRSTS];
        double *results[2];
        attention_case cases[2];
        for (int wide = 0; wide < 2; wide++) {
            attention_choice choice = {.op = ATN_EFFICIENT,
                                       .dtype = wide ? ATN_F64 : ATN_F32,
                                       .shape = {1, 1, KEYS, DIM, VALUES, 0},
                                       .cross = true,
                                       .seed = 8};
            attention_case *c = &cases[wide];
            *c = attention_case_make(&choice);
            for (int64_t e = 0; e < KEYS * DIM; e++) {
                c->k[e] = (double)(float)(c->k[e] + (e >= first * DIM ? rise : 0));
                c->q[e] = (double)(float)c->q[e];
            }
            for (int64_t e = 0; e < KEYS * VALUES; e++) {
                c->v[e] = ldexp((double)(float)fabs(c->v[e]), power);
                c->dout[e] = ldexp((double)(float)c->dout[e], -20);
            }
            results[wide] = attention_run_results(c, 0, context, &count);
        }
        int64_t ends[] = {KEYS * VALUES, KEYS * (VALUES + DIM), KEYS * (VALUES + 2 * DIM), count};
        for (int part = 0; part < PARTS; part++) {
            int64_t from = part > 0 ? ends[part - 1] : 0;
            if (first == KEYS - 1 && (part == 1 || part == 2))
                continue; /* dQ and dK, which cancel where one key has all the weight */
            double apart = judge_relative(ends[part] - from, results[0] + from, results[1] + from);
            cr_expect(apart <= (part > 0 ? 30 : 3) * FLT_EPSILON,
                      "%s: keys from %d on rise by %g, values 2^%d: %.3g apart",
                      part > 0 ? attention_slot_name(part - 1) : "y", (int)first, rise, power,
                      apart);
        }
        for (int wide = 0; wide < 2; wide++) {
            free(results[wide]);
            attention_case_free(&cases[wide]);
        }
    }
    atn_context_free(context);
}

/* ---- Columns that are normalised may be of any size ---- */

/* One column in the first block of 64 and one in the second, so large that their squares overflow
 * and so small that they vanish: l2 norms take a power of two away without rounding. */
Test(limits, columns_of_any_size)
{
    atn_context *context = fixture_context(1, NULL);
    attention_choice choice = {
        .op = ATN_SIMA, .variant = 3, .dtype = ATN_F64, .shape = {1, 2, 66, 70, 3, 0}, .seed = 9};
    static const int powers[] = {900, 998, 999, 1000, 1001, 1002, 1010};
    enum { POWERS = sizeof powers / sizeof *powers };
    for (int turn = 0; runs(ATN_SIMA) && turn < 2 * POWERS; turn++) {
        attention_case c = attention_case_make(&choice);
        double *want = output_of(context, &c);
        int power = turn % 2 ? -powers[turn / 2] : powers[turn / 2];
        for (int64_t i = 0; i < attention_case_queries(&c); i++)
            c.q[i] = ldexp(c.q[i], i % 70 == 3 ? power : i % 70 == 66 ? -power : 0);
        double *y = output_of(context, &c);
        double apart = judge_relative(attention_case_outputs(&c), y, want);
        cr_expect(apart <= JUDGE_LAW, "2^%d: %.3g apart", power, apart);
        free(y);
        free(want);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

static void scale_by_power(int64_t count, double *x, int power)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = ldexp(x[i], power);
}

static double *value_gradient_of(atn_context *context, const attention_case *c)
{
    attention_run r = attention_run_make(c, 0);
    double *grad = data_allocate(attention_slot_count(c, SLOT_V));
    cr_expect_eq(attention_run_backward(&r, context), ATN_OK, "%s", attention_case_label(c));
    guarded_get(&r.gradients[SLOT_V], grad);
    attention_run_free(&r);
    return grad;
}

/* Y of tokens and V, and dV of tokens and dY, times powers of two: normalised tokens lose theirs,
 * also where the product of the tokens as they are would overflow or underflow. So many tokens that
 * the CPU may divide the product instead of the tokens. */
static void check_sizes(atn_dtype dtype, int token_count, const int *tokens, int value_count,
                        const int *values, double bound)
{
    static const struct {
        atn_operator op;
        int variant;
    } ops[] = {{ATN_SIMA, 0}, {ATN_SIMA, 3}, {ATN_XCA, 1}};
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int turn = 0; runs(ops[i].op) && turn < token_count * value_count; turn++) {
            attention_choice choice = {.op = ops[i].op,
                                       .variant = ops[i].variant,
                                       .dtype = dtype,
                                       .shape = {1, 2, 130, 6, 6, 0},
                                       .cross = true,
                                       .seed = 12};
            attention_case c = attention_case_make(&choice);
            int64_t count = attention_case_outputs(&c);
            int token = tokens[turn % token_count], value = values[turn / token_count];
            double *y = output_of(context, &c), *grad = value_gradient_of(context, &c);
            scale_by_power(attention_case_queries(&c), c.q, token);
            scale_by_power(attention_case_keys(&c), c.k, token);
            scale_by_power(count, c.dout, value);
            scale_by_power(count, c.v, -value); /* or V dY would overflow in the other gradients */
            double *scaled_grad = value_gradient_of(context, &c);
            scale_by_power(count, c.v, 2 * value);
            double *scaled_y = output_of(context, &c);
            scale_by_power(count, scaled_y, -value);
            scale_by_power(count, scaled_grad, -value);
            double apart = judge_relative(count, scaled_y, y);
            double grad_apart = judge_relative(count, scaled_grad, grad);
            cr_expect(apart <= bound && grad_apart <= bound,
                      "%s, tokens 2^%d, values 2^%d: Y %.3g apart, dV %.3g",
                      attention_case_label(&c), token, value, apart, grad_apart);
            free(y);
            free(grad);
            free(scaled_y);
            free(scaled_grad);
            attention_case_free(&c);
        }
    atn_context_free(context);
}

Test(limits, tokens_and_values_of_any_size)
{
    static const int tokens[] = {-600, -9, 9, 600}, values[] = {-960, 0, 1010};
    check_sizes(ATN_F64, 4, tokens, 3, values, JUDGE_LAW);
}

/* Up to where the largest tokens, which are below 4, are just in the range of f32. */
Test(limits, tokens_and_values_of_any_size_in_f32)
{
    static const int tokens[] = {-100, -9, 9, 60, 120, 125}, values[] = {-90, 0, 90};
    check_sizes(ATN_F32, 6, tokens, 3, values, 130 * atn_dtype_roundoff(ATN_F32)); /* terms */
}

/* All tokens alike but one, x = 11: the gradient by each x^ is g = 1.02e38, within f32, as dx is.
 * Its part along all x^, 8.8 g, and that times x^ = 0.7 are not. */
Test(limits, a_gradient_along_the_tokens)
{
    atn_context *context = fixture_context(1, NULL);
    attention_choice choice = {.op = ATN_SIMA,
                               .variant = 3, /* l2 */
                               .dtype = ATN_F32,
                               .shape = {1, 1, 128, 1, 1, 0},
                               .cross = true,
                               .seed = 3};
    if (!runs(ATN_SIMA))
        return;
    attention_case c = attention_case_make(&choice);
    for (int i = 0; i < 128; i++) {
        c.q[i] = c.k[i] = 1;
        c.v[i] = c.dout[i] = 3e18;
    }
    c.q[0] = 11;
    attention_run r = attention_run_make(&c, 0);
    attention_slots got;
    atn_status status = attention_run_backward(&r, context);
    double g = 9e36 * sqrt(128.0), norm = sqrt(121.0 + 127), along = g * (11 + 127) / norm;
    int wrong = 0;
    got = attention_run_slots(&r);
    for (int i = 0; i < 128; i++) {
        double want = (g - along * c.q[i] / norm) / norm;
        wrong += !(fabs(got.of[SLOT_Q][i] / want - 1) < 128 * atn_dtype_roundoff(ATN_F32));
    }
    cr_expect(status == ATN_OK && wrong == 0, "%s, %d wrong, the first is %.9g",
              atn_status_name(status), wrong, got.of[SLOT_Q][0]);
    attention_slots_free(&got);
    attention_run_free(&r);
    attention_case_free(&c);
    atn_context_free(context);
}

/* All tokens are alike, so Y is v, whose size is such that phi(q)^T S is within f32. phi(q).z, n d
 * 2^140 or 2^-144, is too large for f32 or has only a few digits there; its reciprocal is below or
 * beyond f32's normal numbers. */
Test(limits, denominators_of_any_size)
{
    static const struct {
        atn_operator op;
        int variant, power;
    } sizes[] = {{ATN_ELU, 0, 70}, {ATN_COSFORMER, 2, 70}, {ATN_COSFORMER, 2, -72}};
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        attention_choice choice = {.op = sizes[i].op,
                                   .variant = sizes[i].variant,
                                   .dtype = ATN_F32,
                                   .shape = {1, 1, 130, 32, 3, 0},
                                   .cross = true,
                                   .seed = 5};
        if (!runs(sizes[i].op))
            continue;
        attention_case c = attention_case_make(&choice);
        int64_t count = attention_case_outputs(&c), wrong = 0;
        double v = ldexp(1, -sizes[i].power * 6 / 7);
        c.desc.elu.epsilon = c.desc.cosformer.epsilon = 0;
        for (int64_t e = 0; e < attention_case_queries(&c); e++)
            c.q[e] = c.k[e] = ldexp(1 + 0x1p-9, sizes[i].power);
        for (int64_t e = 0; e < count; e++)
            c.v[e] = v;
        double *y = output_of(context, &c);
        for (int64_t e = 0; e < count; e++)
            wrong += !(fabs(y[e] / v - 1) <= 8 * atn_dtype_roundoff(ATN_F32));
        cr_expect(wrong == 0, "%s, tokens 2^%d: %ld wrong, the first is %.9g v",
                  attention_case_label(&c), sizes[i].power, (long)wrong, y[0] / v);
        free(y);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* The last query of a block has no positive channel, and so no features: Y of the others keeps its
 * bits. */
Test(limits, a_query_changes_no_other)
{
    enum { N = 64, D = 32 };
    atn_context *context = fixture_context(1, NULL);
    for (int variant = 2; runs(ATN_COSFORMER) && variant <= 3; variant++) { /* 3: causal */
        attention_choice choice = {.op = ATN_COSFORMER,
                                   .variant = variant,
                                   .dtype = ATN_F32,
                                   .shape = {1, 1, N, D, D, 0},
                                   .cross = true,
                                   .seed = 6};
        attention_case c = attention_case_make(&choice);
        double *y = output_of(context, &c);
        for (int64_t e = (N - 1) * D; e < N * D; e++)
            c.q[e] = -1;
        double *changed = output_of(context, &c);
        size_t others = (N - 1) * D * sizeof *y, last = D * sizeof *y;
        cr_expect(memcmp(y, changed, others) == 0 &&
                      memcmp(y + (N - 1) * D, changed + (N - 1) * D, last) != 0,
                  "%s", attention_case_label(&c));
        free(y);
        free(changed);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* As large and as small, a query, and a line of K^T V through V's channel or K's: XNorm's Y has
 * nothing of their size. */
Test(limits, lines_of_any_size)
{
    atn_context *context = fixture_context(1, NULL);
    for (int turn = 0; runs(ATN_XNORM) && turn < 4; turn++) {
        attention_choice choice = {.op = ATN_XNORM,
                                   .variant = turn / 2,
                                   .dtype = ATN_F64,
                                   .shape = {1, 2, 66, 40, 35, 0},
                                   .cross = true,
                                   .seed = 10};
        attention_case c = attention_case_make(&choice);
        bool columns = c.desc.xnorm.axis == ATN_XNORM_COLUMNS;
        int64_t cols = columns ? c.shape.value_dim : c.shape.dim;
        int power = turn % 2 ? 900 : -900;
        double *want = output_of(context, &c), *lines = columns ? c.v : c.k;
        for (int64_t i = 0; i < attention_case_queries(&c); i++)
            c.q[i] = i / c.shape.dim % 66 == 65 ? ldexp(c.q[i], power) : c.q[i];
        for (int64_t row = 0; row < c.shape.heads * c.shape.key_tokens; row++)
            lines[row * cols + 33] = ldexp(lines[row * cols + 33], -power);
        double *y = output_of(context, &c);
        double apart = judge_relative(attention_case_outputs(&c), y, want);
        cr_expect(apart <= JUDGE_LAW, "%s: %.3g apart", attention_case_label(&c), apart);
        free(y);
        free(want);
        attention_case_free(&c);
    }
    atn_context_free(context);
}

/* ---- Random features ---- */

enum { DRAWS = 16, SIZES = 5, FEWEST = 16 };

/* An operator with M random features, w_r ~ N(0, I), and what it estimates. Tokens of norm about 1:
 * the positive features' variance grows like exp(|q + k|^2). */
static double squared_error(atn_context *context, const attention_choice *choice,
                            atn_operator estimated, int64_t features, uint64_t seed)
{
    attention_choice other = *choice;
    other.op = estimated;
    other.variant = 0;
    attention_case c = attention_case_make(choice), exact = attention_case_make(&other);
    double *w = data_allocate(features * c.shape.dim);
    data_normal(seed, features * c.shape.dim, w);
    atn_tensor projection = atn_tensor_dense(w, ATN_F64, 1, 1, features, c.shape.dim);
    c.desc.performer.projection = c.desc.rff.projection = projection;
    c.desc.performer.feature_epsilon = c.desc.performer.denominator_epsilon = 0;
    for (int64_t i = 0; i < attention_case_queries(&c); i++)
        c.q[i] = exact.q[i] = c.q[i] / 2;
    for (int64_t i = 0; i < attention_case_keys(&c); i++)
        c.k[i] = exact.k[i] = c.k[i] / 2;
    double *y = output_of(context, &c), *want = output_of(context, &exact);
    double error = judge_relative(attention_case_outputs(&c), y, want);
    free(want);
    free(y);
    free(w);
    attention_case_free(&exact);
    attention_case_free(&c);
    return error * error;
}

/* The slope of log error against log M is -1/2. 16 draws tell each log error to about 0.18 (a mean
 * square of 16 has relative deviation sqrt(2/16), its root half of that), five sizes a factor of 4
 * apart the slope to 0.18 / sqrt(sum (log M - mean)^2) = 0.04; three of those are allowed. */
static void check_rate(atn_context *context, atn_operator op, int variant, atn_operator estimated)
{
    static const double allowed = 0.12;
    attention_choice choice = {.op = op,
                               .variant = variant,
                               .dtype = ATN_F64,
                               .shape = {1, 1, 12, 4, 3, 0},
                               .cross = true,
                               .seed = 8};
    double x[SIZES], y[SIZES], mean_x = 0, mean_y = 0, above = 0, below = 0;
    for (int i = 0; i < SIZES; i++) {
        int64_t features = (int64_t)FEWEST << 2 * i;
        double squares = 0;
        for (uint64_t draw = 0; draw < DRAWS; draw++)
            squares += squared_error(context, &choice, estimated, features, 1000 + draw);
        x[i] = log((double)features);
        y[i] = log(squares / DRAWS) / 2;
        mean_x += x[i] / SIZES;
        mean_y += y[i] / SIZES;
    }
    for (int i = 0; i < SIZES; i++) {
        above += (x[i] - mean_x) * (y[i] - mean_y);
        below += (x[i] - mean_x) * (x[i] - mean_x);
    }
    const atn_operator_info *info = atn_operator_get((atn_operator)op);
    cr_expect(fabs(above / below + 0.5) <= allowed && y[SIZES - 1] < log(0.1),
              "%s %s: error ~ M^%.3f, %.3g with %d features", info->name,
              info->variants[variant].name, above / below, exp(y[SIZES - 1]),
              FEWEST << 2 * (SIZES - 1));
    fprintf(stderr, "%s %s: error ~ M^%.3f, %.3g with %d features\n", info->name,
            info->variants[variant].name, above / below, exp(y[SIZES - 1]),
            FEWEST << 2 * (SIZES - 1));
}

Test(limits, random_features_converge_at_the_monte_carlo_rate)
{
    atn_context *context = fixture_context(1, NULL);
    const atn_operator_info *performer = atn_operator_get(ATN_PERFORMER);
    if (runs(ATN_RFF) && runs(ATN_GAUSSIAN))
        check_rate(context, ATN_RFF, 0, ATN_GAUSSIAN);
    bool softmax = runs(ATN_PERFORMER) && runs(ATN_SOFTMAX);
    for (int variant = 0; softmax && variant < performer->variant_count; variant++) {
        atn_attention_desc desc = atn_attention_variant(ATN_PERFORMER, variant, ATN_F64);
        if (desc.performer.features == ATN_FEATURES_EXP && !desc.causal)
            check_rate(context, ATN_PERFORMER, variant, ATN_SOFTMAX);
    }
    atn_context_free(context);
}
