/* SPDX-License-Identifier: BSD-3-Clause */
/* Landmarks against the reference's definitions, SOFT (IJCV) section 3.2. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>

#include "data.h"
#include "fixture.h"
#include "pairs.h"
#include "soft.h"

typedef struct {
    int64_t height, width, d, stride, count;
} sampling_shape;

static const sampling_shape shapes[] = {
    {1, 1, 1, 1, 1},  {1, 2, 3, 1, 2},    {4, 4, 3, 2, 5},    {7, 7, 5, 7, 49},
    {7, 9, 4, 2, 10}, {10, 13, 8, 3, 1},  {14, 14, 32, 2, 7}, {9, 5, 33, 4, 3},
    {5, 9, 2, 5, 45}, {3, 50, 6, 3, 150}, {4, 3, 70, 1, 2},
};

/* What rounding may do, in u relative to the worst landmark entry: every sum has at most `terms`
 * terms. A term of LayerNorm is amplified by 1/sigma, seen at no more than a hundredfold here. */
static double error_units(atn_sampling_kind kind, const sampling_shape *s)
{
    double cells = (double)(s->stride * s->stride);
    switch (kind) {
    case ATN_SAMPLING_POOL:
        return cells + 1;
    case ATN_SAMPLING_WINDOW:
        return (double)s->stride + 1;
    case ATN_SAMPLING_CONV:
        return cells * (double)s->d + 1;
    case ATN_SAMPLING_CONV_CODE:
        return 100 * (cells * (double)s->d + 1);
    case ATN_SAMPLING_KMEANS:
        return (double)(s->height * s->width) + 1;
    default:
        return 0;
    }
}

/* The largest sum of magnitudes behind one landmark entry: what `units` is relative to. */
static double largest_sum(const fixture_sampling *s, const sampling_shape *shape,
                          const double *tokens, int64_t n)
{
    double token = 0, weight = 0;
    for (int64_t i = 0; i < n * shape->d; i++)
        token = fmax(token, fabs(tokens[i]));
    if (!s->weights)
        return token;
    int64_t inner = shape->d * shape->stride * shape->stride;
    for (int64_t o = 0; o < shape->d; o++) {
        double sum = 0;
        for (int64_t i = 0; i < inner; i++)
            sum += fabs(s->weights[o * inner + i]);
        weight = fmax(weight, sum);
    }
    return token * weight;
}

static void check(atn_context *context, atn_sampling_kind kind, atn_dtype dtype,
                  guarded_layout layout, const sampling_shape *shape, bool affine)
{
    int64_t n = shape->height * shape->width, d = shape->d, m, counted;
    double *tokens = data_allocate(6 * n * d), *want = data_allocate(n * d), worst = 0;
    fixture_sampling s = fixture_sampling_make(kind, dtype, shape->height, shape->width, d,
                                               shape->stride, shape->count, affine, 3);
    data_normal(11, 6 * n * d, tokens);
    data_round(dtype, 6 * n * d, tokens);
    m = fixture_landmark_count(&s, n);
    guarded q = guarded_make(dtype, layout, 2, 3, n, d),
            l = guarded_make(dtype, layout, 2, 3, m, d);
    guarded_set(&q, tokens);
    atn_status status = fixture_sampling_count(context, &s.desc, n, d, &counted);
    cr_expect(status == ATN_OK && counted == m, "%s: m = %ld, expected %ld",
              atn_sampling_name(kind), (long)counted, (long)m);
    status = fixture_sample(context, &s.desc, &q.view, &l.view);
    for (int64_t head = 0; status == ATN_OK && head < 6; head++) {
        fixture_landmarks(&s, n, d, tokens + head * n * d, want);
        ref_difference difference = guarded_compare(&l, head / 3, head % 3, want);
        double scale = largest_sum(&s, shape, tokens, 6 * n);
        double bound = error_units(kind, shape) * atn_dtype_roundoff(dtype) * scale;
        double ratio = difference.max_abs == 0 ? 0 : difference.max_abs / bound;
        worst = isnan(worst) || ratio <= worst ? worst : ratio;
    }
    cr_expect(status == ATN_OK && ref_judge(REF_ROUNDING, worst) == REF_PASS &&
                  guarded_unwritten(&l) == 0 && guarded_damaged(&l) == 0,
              "%s %s layout=%d grid=%ldx%ld d=%ld k=%ld affine=%d: %s (%s) ratio=%.3g damaged=%ld",
              atn_sampling_name(kind), atn_dtype_name(dtype), layout, (long)shape->height,
              (long)shape->width, (long)d, (long)shape->stride, affine, atn_status_name(status),
              atn_last_error(context), worst, (long)guarded_damaged(&l));
    guarded_free(&l);
    guarded_free(&q);
    fixture_sampling_free(&s);
    free(want);
    free(tokens);
}

static bool fits(atn_sampling_kind kind, const sampling_shape *s)
{
    bool grid =
        kind == ATN_SAMPLING_POOL || kind == ATN_SAMPLING_CONV || kind == ATN_SAMPLING_CONV_CODE;
    return !grid || (s->stride <= s->height && s->stride <= s->width);
}

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Kind, dtype, shape, layout, whether conv-code has a norm weight and bias. */
static bool can_be_combined(const int *v)
{
    return fits((atn_sampling_kind)v[0], &shapes[v[2]]) &&
           (v[0] == ATN_SAMPLING_CONV_CODE || v[4] == 0);
}

Test(sampling, every_kind_matches_the_reference)
{
    static const int sizes[] = {ATN_SAMPLING_COUNT, ATN_CPU_DTYPE_COUNT, SHAPES,
                                GUARDED_LAYOUT_COUNT, 2};
    atn_context *context = fixture_context(2, NULL);
    pairs chosen = pairs_make(5, sizes, can_be_combined);
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        check(context, (atn_sampling_kind)v[0], (atn_dtype)v[1], (guarded_layout)v[3],
              &shapes[v[2]], v[4]);
    }
    cr_expect(chosen.count > 2 * ATN_SAMPLING_COUNT, "%d cases", chosen.count);
    pairs_free(&chosen);
    atn_context_free(context);
}

/* 6 tokens by 4: two windows, the second of 2 tokens only. */
Test(sampling, the_last_window_holds_the_remainder)
{
    atn_context *context = fixture_context(1, NULL);
    double tokens[6] = {1, 2, 3, 6, 10, 20}, landmarks[2];
    atn_sampling window = {.kind = ATN_SAMPLING_WINDOW, .stride = 4};
    atn_tensor q = atn_tensor_dense(tokens, ATN_F64, 1, 1, 6, 1);
    atn_tensor l = atn_tensor_dense(landmarks, ATN_F64, 1, 1, 2, 1);
    cr_expect_eq(fixture_sample(context, &window, &q, &l), ATN_OK);
    cr_expect(landmarks[0] == 3 && landmarks[1] == 15, "%g %g", landmarks[0], landmarks[1]);
    int64_t m;
    static const int64_t counts[][3] = {
        {6, 4, 2}, {6, 3, 2}, {6, 6, 1}, {6, 7, 1}, {6, 1, 6}, {6, INT64_MAX, 1}, {1, 1, 1},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        window.stride = counts[i][1];
        cr_expect_eq(fixture_sampling_count(context, &window, counts[i][0], 1, &m), ATN_OK);
        cr_expect_eq(m, counts[i][2], "n=%ld k=%ld: %ld", (long)counts[i][0], (long)counts[i][1],
                     (long)m);
    }
    atn_context_free(context);
}

/* 3 x 5 by 2: one row and one column are dropped. */
Test(sampling, pooling_drops_what_is_left_over)
{
    atn_context *context = fixture_context(1, NULL);
    double tokens[15], landmarks[2];
    for (int i = 0; i < 15; i++)
        tokens[i] = i % 5 == 4 || i / 5 == 2 ? 1000 : i;
    atn_sampling pool = {.kind = ATN_SAMPLING_POOL, .height = 3, .width = 5, .stride = 2};
    atn_tensor q = atn_tensor_dense(tokens, ATN_F64, 1, 1, 15, 1);
    atn_tensor l = atn_tensor_dense(landmarks, ATN_F64, 1, 1, 2, 1);
    cr_expect_eq(fixture_sample(context, &pool, &q, &l), ATN_OK);
    cr_expect(landmarks[0] == 3 && landmarks[1] == 5, "%g %g", landmarks[0], landmarks[1]);
    atn_context_free(context);
}

/* Weights name out channel, in channel, window row, window column, in this order. */
Test(sampling, convolution_reads_its_weights_in_order)
{
    enum { D = 2, K = 2, SIDE = 2 };
    atn_context *context = fixture_context(1, NULL);
    double tokens[SIDE * SIDE * D], weights[D * D * K * K] = {0}, landmarks[D];
    for (int i = 0; i < SIDE * SIDE * D; i++)
        tokens[i] = i + 1;                      /* token t has 2 t + 1 and 2 t + 2 */
    weights[((0 * D + 1) * K + 0) * K + 1] = 1; /* out 0 = channel 1 at row 0, column 1 */
    weights[((1 * D + 0) * K + 1) * K + 0] = 1; /* out 1 = channel 0 at row 1, column 0 */
    atn_sampling conv = {.kind = ATN_SAMPLING_CONV, .height = SIDE, .width = SIDE, .stride = K};
    conv.weights = atn_tensor_dense(weights, ATN_F64, 1, D, D, K * K);
    atn_tensor q = atn_tensor_dense(tokens, ATN_F64, 1, 1, SIDE * SIDE, D);
    atn_tensor l = atn_tensor_dense(landmarks, ATN_F64, 1, 1, 1, D);
    cr_expect_eq(fixture_sample(context, &conv, &q, &l), ATN_OK);
    cr_expect(landmarks[0] == 4 && landmarks[1] == 5, "%g %g", landmarks[0], landmarks[1]);
    atn_context_free(context);
}

/* LayerNorm of (-1, 1) is (-1, 1) / sqrt(1 + 1e-5); x Phi(x) from tables of the normal law. */
Test(sampling, layer_norm_and_exact_gelu)
{
    atn_context *context = fixture_context(1, NULL);
    double tokens[2] = {-1, 1}, weights[4] = {1, 0, 0, 1}, landmarks[2];
    atn_sampling code = {.kind = ATN_SAMPLING_CONV_CODE, .height = 1, .width = 1, .stride = 1};
    code.weights = atn_tensor_dense(weights, ATN_F64, 1, 2, 2, 1);
    atn_tensor q = atn_tensor_dense(tokens, ATN_F64, 1, 1, 1, 2);
    atn_tensor l = atn_tensor_dense(landmarks, ATN_F64, 1, 1, 1, 2);
    cr_expect_eq(fixture_sample(context, &code, &q, &l), ATN_OK);
    double shrink = 5e-6; /* 1 - 1 / sqrt(1 + 1e-5); GELU' is 1.0833 at 1 and -0.0833 at -1 */
    cr_expect(fabs(landmarks[1] - (0.841344746068543 - 1.083315470587 * shrink)) < 1e-10 &&
                  fabs(landmarks[0] - (-0.158655253931457 - 0.083315470587 * shrink)) < 1e-10,
              "%.12g %.12g", landmarks[0], landmarks[1]);
    atn_context_free(context);
}

Test(sampling, empty_batches_do_nothing)
{
    atn_context *context = fixture_context(1, NULL);
    atn_sampling first = {.kind = ATN_SAMPLING_FIRST, .count = 2};
    atn_tensor q = atn_tensor_dense(NULL, ATN_F32, 0, 3, 4, 5);
    atn_tensor l = atn_tensor_dense(NULL, ATN_F32, 0, 3, 2, 5);
    cr_expect_eq(fixture_sample(context, &first, &q, &l), ATN_OK);
    atn_context_free(context);
}

Test(sampling, names)
{
    static const char *const names[] = {"pool",  "window", "conv",     "conv-code",  "indices",
                                        "first", "kmeans", "leverage", "rpcholesky", "greedy"};
    for (int i = 0; i < ATN_SAMPLING_COUNT; i++)
        cr_expect_str_eq(atn_sampling_name((atn_sampling_kind)i), names[i]);
    cr_expect_null(atn_sampling_name(ATN_SAMPLING_COUNT));
    cr_expect_null(atn_sampling_name((atn_sampling_kind)-1));
}
