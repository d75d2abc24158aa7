/* SPDX-License-Identifier: BSD-3-Clause */
/* Every way a call can be wrong. */
#include <criterion/criterion.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "matrices.h"

/* A call with one thing wrong. `spoil` changes the arguments; the outcome must be `want`, the
 * detail must hold `detail`, and the output must be untouched. */
typedef struct {
    atn_context *context;
    atn_inverse_desc inverse;
    atn_sampling sampling;
    atn_attention_desc desc;
    atn_attention_shape shape;
    atn_distance distance;
    double s;
    atn_tensor x, y, out;
    const atn_tensor *px, *py;
    atn_tensor *pout;
    atn_trace trace;
    bool traced;
} wrong_call;

enum { N = 12, D = 3, SIDE = 4 };

typedef struct {
    const char *what;
    void (*spoil)(wrong_call *);
    atn_status want;
    const char *detail;
} spoiled;

static int64_t indices[] = {0, 5, 11};
static double memory[3][4 * N * N];

/* Runs a table: every row on a fresh call. */
static void run_table(const char *function, const spoiled *rows, size_t count,
                      void (*fill)(wrong_call *), atn_status (*run)(wrong_call *))
{
    for (size_t i = 0; i < count; i++) {
        wrong_call c = {.context = fixture_context(2, NULL)};
        double before[4 * N * N];
        data_normal(i, 3 * 4 * N * N, memory[0]);
        fill(&c);
        c.px = &c.x, c.py = &c.y, c.pout = &c.out;
        rows[i].spoil(&c);
        memcpy(before, memory[2], sizeof before);
        atn_status status = run(&c);
        const char *error = atn_last_error(c.context);
        cr_expect_eq(status, rows[i].want, "%s, %s: %s (%s)", function, rows[i].what,
                     atn_status_name(status), error);
        cr_expect(strstr(error, rows[i].detail), "%s, %s: \"%s\" lacks \"%s\"", function,
                  rows[i].what, error, rows[i].detail);
        cr_expect(memcmp(before, memory[2], sizeof before) == 0, "%s, %s: output touched", function,
                  rows[i].what);
        atn_context_free(c.context);
    }
}

#define RUN_TABLE(function, rows, fill, run)                                                       \
    run_table(function, rows, sizeof(rows) / sizeof *(rows), fill, run)

/* One spoiling statement as a function. */
#define SPOIL(name, statement)                                                                     \
    static void name(wrong_call *c)                                                                \
    {                                                                                              \
        statement;                                                                                 \
    }

SPOIL(x_null, c->px = NULL)
SPOIL(y_null, c->py = NULL)
SPOIL(out_null, c->pout = NULL)
SPOIL(x_data_null, c->x.data = NULL)
SPOIL(x_negative, c->x.rows = -1)
SPOIL(x_far, c->x.row_stride = (int64_t)1 << 31; c->x.head_stride = (int64_t)1 << 40;
      c->x.batch_stride = (int64_t)1 << 50)
SPOIL(x_overlaps, c->x.row_stride = c->x.cols - 1)
SPOIL(x_unknown_dtype, c->x.dtype = (atn_dtype)9)
SPOIL(y_dtype, c->y.dtype = ATN_F32)
SPOIL(y_width, c->y.cols -= 1)
SPOIL(y_heads, c->y = atn_tensor_dense(memory[1], ATN_F64, 1, 2, N, D))
SPOIL(y_batch, c->y = atn_tensor_dense(memory[1], ATN_F64, 2, 1, N, D))
SPOIL(out_dtype, c->out.dtype = ATN_F32)
SPOIL(out_rows, c->out.rows -= 1)
SPOIL(out_cols, c->out.cols -= 1)
SPOIL(out_batch, c->out.batch = 0)
SPOIL(out_heads, c->out.heads = 0)
SPOIL(out_on_x, c->x.data = (double *)c->out.data + 1)
SPOIL(out_on_y, c->y.data = c->out.data)
SPOIL(out_ends_in_x, c->x.data = (double *)c->out.data + c->out.rows * c->out.cols - 1)
SPOIL(scale_zero, c->s = 0)
SPOIL(scale_negative, c->s = -1)
SPOIL(scale_nan, c->s = NAN)
SPOIL(scale_infinite, c->s = INFINITY)
SPOIL(distance_unknown, c->distance = ATN_DISTANCE_COUNT)
SPOIL(distance_negative, c->distance = (atn_distance)-1)

static void fill_kernel(wrong_call *c)
{
    c->s = 0.5;
    c->x = atn_tensor_dense(memory[0], ATN_F64, 1, 1, N, D);
    c->y = atn_tensor_dense(memory[1], ATN_F64, 1, 1, N, D);
    c->out = atn_tensor_dense(memory[2], ATN_F64, 1, 1, N, N);
}

static atn_status run_self(wrong_call *c)
{
    return atn_gaussian_self(c->context, c->distance, c->s, c->px, c->pout);
}

static atn_status run_cross(wrong_call *c)
{
    return atn_gaussian_cross(c->context, c->distance, c->s, c->px, c->py, c->pout);
}

Test(errors, gaussian_self)
{
    static const spoiled rows[] = {
        {"landmarks null", x_null, ATN_ERR_NULL, "landmarks"},
        {"data null", x_data_null, ATN_ERR_NULL, "landmarks"},
        {"a null", out_null, ATN_ERR_NULL, "a:"},
        {"negative rows", x_negative, ATN_ERR_SHAPE, "landmarks"},
        {"rows overlap", x_overlaps, ATN_ERR_STRIDE, "landmarks"},
        {"unknown dtype", x_unknown_dtype, ATN_ERR_DTYPE, "landmarks"},
        {"a in f32", out_dtype, ATN_ERR_DTYPE, "a is f32, expected f64"},
        {"a has too few rows", out_rows, ATN_ERR_SHAPE, "a: rows is 11, expected 12"},
        {"a has too few cols", out_cols, ATN_ERR_SHAPE, "a: cols is 11, expected 12"},
        {"a has no batch", out_batch, ATN_ERR_SHAPE, "a: batch is 0, expected 1"},
        {"a has no heads", out_heads, ATN_ERR_SHAPE, "a: heads is 0, expected 1"},
        {"a on the landmarks", out_on_x, ATN_ERR_ALIAS, "a overlaps landmarks"},
        {"a's last element", out_ends_in_x, ATN_ERR_ALIAS, "a overlaps landmarks"},
        {"s 0", scale_zero, ATN_ERR_VALUE, "s is 0"},
        {"s < 0", scale_negative, ATN_ERR_VALUE, "s is -1"},
        {"s NaN", scale_nan, ATN_ERR_VALUE, "nan"},
        {"s infinite", scale_infinite, ATN_ERR_VALUE, "s is inf"},
        {"unknown distance", distance_unknown, ATN_ERR_VALUE, "distance"},
        {"negative distance", distance_negative, ATN_ERR_VALUE, "distance"},
    };
    RUN_TABLE("gaussian_self", rows, fill_kernel, run_self);
    cr_expect_eq(atn_gaussian_self(NULL, ATN_DISTANCE_DIRECT, 1, NULL, NULL), ATN_ERR_NULL);
}

Test(errors, gaussian_cross)
{
    static const spoiled rows[] = {
        {"x null", x_null, ATN_ERR_NULL, "x:"},
        {"y null", y_null, ATN_ERR_NULL, "y:"},
        {"out null", out_null, ATN_ERR_NULL, "out:"},
        {"y in f32", y_dtype, ATN_ERR_DTYPE, "y is f32, expected f64"},
        {"y too narrow", y_width, ATN_ERR_SHAPE, "y: cols is 2, expected 3"},
        {"y of two heads", y_heads, ATN_ERR_SHAPE, "y: heads is 2, expected 1"},
        {"y of a batch of two", y_batch, ATN_ERR_SHAPE, "y: batch is 2, expected 1"},
        {"out too short", out_rows, ATN_ERR_SHAPE, "out: rows"},
        {"out too narrow", out_cols, ATN_ERR_SHAPE, "out: cols"},
        {"out on x", out_on_x, ATN_ERR_ALIAS, "out overlaps x"},
        {"out on y", out_on_y, ATN_ERR_ALIAS, "out overlaps y"},
        {"s 0", scale_zero, ATN_ERR_VALUE, "s is 0"},
        {"unknown distance", distance_unknown, ATN_ERR_VALUE, "distance"},
    };
    RUN_TABLE("gaussian_cross", rows, fill_kernel, run_cross);
    cr_expect_eq(atn_gaussian_cross(NULL, ATN_DISTANCE_DIRECT, 1, NULL, NULL, NULL), ATN_ERR_NULL);
    /* an output without columns overlaps nothing, whatever its stride */
    atn_context *context = fixture_context(1, NULL);
    atn_tensor x = atn_tensor_dense(memory[0], ATN_F64, 1, 1, N, D), none = x, out = x;
    none.rows = out.cols = 0;
    cr_expect_eq(atn_gaussian_cross(context, ATN_DISTANCE_DIRECT, 1, &x, &none, &out), ATN_OK, "%s",
                 atn_last_error(context));
    atn_context_free(context);
}

SPOIL(sampling_unknown, c->sampling.kind = ATN_SAMPLING_COUNT)
SPOIL(grid_zero, c->sampling.height = 0)
SPOIL(grid_wrong, c->sampling.width = 5)
SPOIL(grid_overflow, c->sampling.height = c->sampling.width = INT64_MAX / 2)
SPOIL(stride_zero, c->sampling.stride = 0)
SPOIL(stride_negative, c->sampling.stride = -2)
SPOIL(stride_tall, c->sampling.stride = 4)
SPOIL(stride_wide, c->sampling.height = c->sampling.stride = SIDE; c->sampling.width = 3)
SPOIL(window_zero, c->sampling.kind = ATN_SAMPLING_WINDOW; c->sampling.stride = 0)
SPOIL(first_none, c->sampling.kind = ATN_SAMPLING_FIRST; c->sampling.count = 0)
SPOIL(first_many, c->sampling.kind = ATN_SAMPLING_FIRST; c->sampling.count = N + 1)
SPOIL(indices_null, c->sampling.kind = ATN_SAMPLING_INDICES; c->sampling.indices = NULL)
SPOIL(indices_many, c->sampling.kind = ATN_SAMPLING_INDICES; c->sampling.count = N + 1)
SPOIL(weights_missing, c->sampling.kind = ATN_SAMPLING_CONV; c->sampling.weights.dtype = ATN_F64)

static int64_t index_high[] = {0, N, 1}, index_low[] = {0, 1, -1};

SPOIL(indices_high, c->sampling.kind = ATN_SAMPLING_INDICES; c->sampling.indices = index_high)
SPOIL(indices_low, c->sampling.kind = ATN_SAMPLING_INDICES; c->sampling.indices = index_low)

/* Numbers are looked at a few hundred at a time. */
enum { MANY = 300, FAR = 290 };
static int64_t index_far[MANY] = {[FAR] = -1};

SPOIL(indices_far, c->sampling.kind = ATN_SAMPLING_INDICES; c->sampling.indices = index_far;
      c->sampling.count = c->x.rows = MANY; c->x.cols = c->x.row_stride = 1)

static void conv_weights(wrong_call *c, int64_t window)
{
    c->sampling.kind = ATN_SAMPLING_CONV_CODE;
    c->sampling.weights = atn_tensor_dense(memory[1], ATN_F64, 1, D, D, window);
}

SPOIL(weights_window, conv_weights(c, 3))
SPOIL(weights_dtype, conv_weights(c, 4); c->sampling.weights.dtype = ATN_F32)
SPOIL(weights_gaps, conv_weights(c, 4); c->sampling.weights.row_stride = 5;
      c->sampling.weights.head_stride = 20)
SPOIL(weights_apart, conv_weights(c, 4); c->sampling.weights.head_stride = 13)
SPOIL(norm_wide, conv_weights(c, 4);
      c->sampling.norm_weight = atn_tensor_dense(memory[1], ATN_F64, 1, 1, 1, D + 1))
SPOIL(bias_f32, conv_weights(c, 4);
      c->sampling.norm_bias = atn_tensor_dense(memory[1], ATN_F32, 1, 1, 1, D))
SPOIL(landmarks_rows, c->out.rows = 3)

static double good_uniforms[] = {0, 0.5, 0.25, 0.75, 0.125, 0.875}, bad_uniforms[6];

/* 3 tokens with the uniforms they need; uniform 1 is u. */
static void choose(wrong_call *c, atn_sampling_kind kind, double u)
{
    memcpy(bad_uniforms, good_uniforms, sizeof bad_uniforms);
    bad_uniforms[1] = u;
    c->sampling.kind = kind;
    c->sampling.uniforms = bad_uniforms;
    c->sampling.uniform_count = kind == ATN_SAMPLING_LEVERAGE ? 6 : 3;
}

SPOIL(chosen_none, choose(c, ATN_SAMPLING_GREEDY, 0); c->sampling.count = 0)
SPOIL(chosen_many, choose(c, ATN_SAMPLING_KMEANS, 0); c->sampling.count = N + 1)
SPOIL(uniforms_null, choose(c, ATN_SAMPLING_RPCHOLESKY, 0); c->sampling.uniforms = NULL)
SPOIL(uniforms_few, choose(c, ATN_SAMPLING_KMEANS, 0); c->sampling.uniform_count = 2)
SPOIL(uniforms_half, choose(c, ATN_SAMPLING_LEVERAGE, 0); c->sampling.uniform_count = 5)
SPOIL(uniform_one, choose(c, ATN_SAMPLING_RPCHOLESKY, 1))
SPOIL(uniform_negative, choose(c, ATN_SAMPLING_LEVERAGE, -0.5))
SPOIL(uniform_nan, choose(c, ATN_SAMPLING_KMEANS, NAN))
SPOIL(steps_negative, choose(c, ATN_SAMPLING_KMEANS, 0); c->sampling.steps = -1)
SPOIL(chosen_scale_nan, choose(c, ATN_SAMPLING_GREEDY, 0); c->sampling.scale = NAN)
SPOIL(chosen_scale_negative, choose(c, ATN_SAMPLING_RPCHOLESKY, 0); c->sampling.scale = -1)
SPOIL(chosen_ridge_infinite, choose(c, ATN_SAMPLING_LEVERAGE, 0); c->sampling.ridge = INFINITY)
SPOIL(chosen_ridge_negative, choose(c, ATN_SAMPLING_LEVERAGE, 0); c->sampling.ridge = -1)

static void fill_sample(wrong_call *c)
{
    c->sampling = (atn_sampling){.kind = ATN_SAMPLING_POOL, .height = 3, .width = SIDE};
    c->sampling.stride = 2;
    c->sampling.count = 3;
    c->sampling.indices = indices;
    c->x = atn_tensor_dense(memory[0], ATN_F64, 1, 1, N, D);
    c->out = atn_tensor_dense(memory[2], ATN_F64, 1, 1, 2, D);
}

static atn_status run_sample(wrong_call *c)
{
    return atn_sample(c->context, &c->sampling, c->px, c->pout);
}

Test(errors, sample)
{
    static const spoiled rows[] = {
        {"tokens null", x_null, ATN_ERR_NULL, "tokens"},
        {"landmarks null", out_null, ATN_ERR_NULL, "landmarks"},
        {"unknown kind", sampling_unknown, ATN_ERR_VALUE, "kind"},
        {"grid 0", grid_zero, ATN_ERR_VALUE, "grid 0x4"},
        {"grid too large", grid_wrong, ATN_ERR_SHAPE, "grid 3x5 does not hold 12 tokens"},
        {"grid overflows", grid_overflow, ATN_ERR_SHAPE, "does not hold"},
        {"stride 0", stride_zero, ATN_ERR_VALUE, "stride 0"},
        {"stride negative", stride_negative, ATN_ERR_VALUE, "stride -2"},
        {"stride over the height", stride_tall, ATN_ERR_SHAPE, "stride 4 is larger"},
        {"stride over the width", stride_wide, ATN_ERR_SHAPE, "stride 4 is larger"},
        {"window 0", window_zero, ATN_ERR_VALUE, "stride is 0"},
        {"first 0", first_none, ATN_ERR_SHAPE, "0 landmarks"},
        {"first n + 1", first_many, ATN_ERR_SHAPE, "13 landmarks, expected 1 to 12"},
        {"indices null", indices_null, ATN_ERR_NULL, "indices"},
        {"n + 1 indices", indices_many, ATN_ERR_SHAPE, "13 landmarks"},
        {"index n", indices_high, ATN_ERR_VALUE, "index 1 is 12, expected 0 to 11"},
        {"index -1", indices_low, ATN_ERR_VALUE, "index 2 is -1"},
        {"index -1 after many", indices_far, ATN_ERR_VALUE, "index 290 is -1, expected 0 to 299"},
        {"weights missing", weights_missing, ATN_ERR_SHAPE, "sampling weights"},
        {"weights' window", weights_window, ATN_ERR_SHAPE, "weights: cols is 3, expected 4"},
        {"weights in f32", weights_dtype, ATN_ERR_DTYPE, "weights is f32"},
        {"weights with gaps", weights_gaps, ATN_ERR_STRIDE, "weights is not dense"},
        {"weights apart", weights_apart, ATN_ERR_STRIDE, "weights is not dense"},
        {"norm_weight too wide", norm_wide, ATN_ERR_SHAPE, "norm_weight: cols is 4, expected 3"},
        {"norm_bias in f32", bias_f32, ATN_ERR_DTYPE, "norm_bias is f32"},
        {"greedy 0", chosen_none, ATN_ERR_SHAPE, "0 landmarks"},
        {"kmeans n + 1", chosen_many, ATN_ERR_SHAPE, "13 landmarks, expected 1 to 12"},
        {"uniforms null", uniforms_null, ATN_ERR_NULL, "uniforms"},
        {"m - 1 uniforms", uniforms_few, ATN_ERR_SHAPE, "2 uniforms, expected at least 3"},
        {"2 m - 1 uniforms", uniforms_half, ATN_ERR_SHAPE, "5 uniforms, expected at least 6"},
        {"a uniform of 1", uniform_one, ATN_ERR_VALUE, "uniform 1 is 1"},
        {"a uniform below 0", uniform_negative, ATN_ERR_VALUE, "uniform 1 is -0.5"},
        {"a uniform that is NaN", uniform_nan, ATN_ERR_VALUE, "uniform 1 is"},
        {"steps -1", steps_negative, ATN_ERR_VALUE, "-1 steps"},
        {"scale NaN", chosen_scale_nan, ATN_ERR_VALUE, "scale is"},
        {"scale negative", chosen_scale_negative, ATN_ERR_VALUE, "scale is -1"},
        {"ridge infinite", chosen_ridge_infinite, ATN_ERR_VALUE, "ridge is inf"},
        {"ridge negative", chosen_ridge_negative, ATN_ERR_VALUE, "ridge is -1"},
        {"too many landmark rows", landmarks_rows, ATN_ERR_SHAPE, "landmarks: rows is 3"},
        {"landmarks in f32", out_dtype, ATN_ERR_DTYPE, "landmarks is f32"},
        {"landmarks on tokens", out_on_x, ATN_ERR_ALIAS, "landmarks overlaps tokens"},
    };
    RUN_TABLE("sample", rows, fill_sample, run_sample);
    atn_context *context = fixture_context(1, NULL);
    atn_sampling first = {.kind = ATN_SAMPLING_FIRST, .count = 1};
    int64_t m;
    cr_expect_eq(atn_sample(NULL, &first, NULL, NULL), ATN_ERR_NULL);
    cr_expect_eq(atn_sampling_count(context, NULL, 4, 1, &m), ATN_ERR_NULL);
    cr_expect_eq(atn_sampling_count(context, &first, 4, 1, NULL), ATN_ERR_NULL);
    cr_expect_eq(atn_sampling_count(context, &first, 0, 1, &m), ATN_ERR_SHAPE);
    cr_expect_eq(atn_sampling_count(context, &first, 4, 0, &m), ATN_ERR_SHAPE);
    atn_context_free(context);
}

/* 2 m is more than there are numbers. */
Test(errors, uniforms_without_number)
{
    atn_context *context = fixture_context(1, NULL);
    double u = 0;
    int64_t m, many = INT64_MAX / 2 + 1;
    atn_sampling s = {.kind = ATN_SAMPLING_LEVERAGE, .count = many};
    cr_expect_eq(atn_sampling_count(context, &s, many, 1, &m), ATN_ERR_NULL);
    s.uniforms = &u, s.uniform_count = 1;
    cr_expect_eq(atn_sampling_count(context, &s, many, 1, &m), ATN_ERR_SHAPE);
    cr_expect(strstr(atn_last_error(context), "uniforms"), "%s", atn_last_error(context));
    atn_context_free(context);
}

/* Fields a kind does not name are ignored. */
Test(errors, fields_that_are_not_named)
{
    atn_context *context = fixture_context(1, NULL);
    static const atn_sampling_kind kinds[] = {ATN_SAMPLING_KMEANS, ATN_SAMPLING_RPCHOLESKY,
                                              ATN_SAMPLING_GREEDY};
    double u = 0;
    int64_t m;
    for (int i = 0; i < 3; i++) {
        atn_sampling s = {.kind = kinds[i], .count = 1, .ridge = NAN};
        s.uniforms = &u, s.uniform_count = 1, s.scale = i == 0 ? NAN : 1, s.steps = i == 0 ? 0 : -1;
        cr_expect_eq(atn_sampling_count(context, &s, 4, 1, &m), ATN_OK, "%s: %s",
                     atn_sampling_name(kinds[i]), atn_last_error(context));
    }
    atn_context_free(context);
}

SPOIL(method_unknown, c->inverse.method = ATN_INVERSE_COUNT)
SPOIL(iterations_negative, c->inverse.iterations = -1)
SPOIL(alpha_missing, c->inverse.method = ATN_INVERSE_NR)
SPOIL(alpha_negative, c->inverse.method = ATN_INVERSE_NR; c->inverse.alpha = -1)
SPOIL(alpha_nan, c->inverse.method = ATN_INVERSE_NR; c->inverse.alpha = NAN)
SPOIL(alpha_unwanted, c->inverse.alpha = 0.1)
SPOIL(numerator_zero, c->inverse.numerator = 0)
SPOIL(ridge_negative, c->inverse.ridge = -0.01)
SPOIL(ridge_nan, c->inverse.ridge = NAN)
SPOIL(search_unknown, c->inverse.search = (atn_alpha_search)3)
SPOIL(limit_nan, c->inverse.search_limit = NAN)
SPOIL(cap_negative, c->inverse.search_cap = -1)
SPOIL(scope_unknown, c->inverse.scope = (atn_alpha_scope)2)
SPOIL(tolerance_nan, c->inverse.tolerance = NAN)
SPOIL(rcond_large, c->inverse.rcond = 1.5)
SPOIL(jitter_nan, c->inverse.jitter = NAN)
SPOIL(not_square, c->x.cols = 3)
SPOIL(not_symmetric, ((double *)c->x.data)[1] += 1e-15)
SPOIL(nan_above, ((double *)c->x.data)[1] = NAN)
SPOIL(row_gaps, c->x.rows = c->x.cols = c->out.rows = c->out.cols = 3;)
SPOIL(trace_short, c->traced = true; c->trace.capacity = 20)
SPOIL(trace_no_pinv, c->traced = true; c->trace.capacity = 21;
      c->trace.values[ATN_METRIC_INVERSE_ERROR] = memory[1])
SPOIL(trace_no_projector, c->traced = true; c->trace.capacity = 21;
      c->trace.values[ATN_METRIC_RANGE_RESIDUAL] = memory[1])
/* memory[2] is x, of which the last element is the first, or the only one, that is shared. */
SPOIL(trace_pinv_on_x, c->traced = true; c->trace.capacity = 21; c->trace.pinv = memory[2] + 15;
      c->trace.values[ATN_METRIC_INVERSE_ERROR] = memory[1])
SPOIL(trace_projector_on_x, c->traced = true; c->trace.capacity = 21;
      c->trace.projector = memory[2] + 15; c->trace.values[ATN_METRIC_RANGE_RESIDUAL] = memory[1])
SPOIL(trace_ends_on_x, c->traced = true; c->trace.capacity = 21;
      c->trace.values[ATN_METRIC_NORM] = memory[2] - 20) /* 21 entries */
SPOIL(trace_values_on_x, c->traced = true; c->trace.capacity = 21;
      c->trace.values[ATN_METRIC_NORM] = memory[2] + 15)

static void fill_inverse(wrong_call *c)
{
    c->inverse = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    ref_matrix_make(REF_CIRCULANT, SIDE, 0.5, memory[0], NULL);
    c->x = atn_tensor_dense(memory[0], ATN_F64, 1, 1, SIDE, SIDE);
    c->out = atn_tensor_dense(memory[2], ATN_F64, 1, 1, SIDE, SIDE);
}

static atn_status run_inverse(wrong_call *c)
{
    return atn_inverse(c->context, &c->inverse, c->px, c->pout, NULL, c->traced ? &c->trace : NULL);
}

Test(errors, inverse)
{
    static const spoiled rows[] = {
        {"a null", x_null, ATN_ERR_NULL, "a:"},
        {"x null", out_null, ATN_ERR_NULL, "x:"},
        {"a not square", not_square, ATN_ERR_SHAPE, "a: cols is 3, expected 4"},
        {"a not symmetric", not_symmetric, ATN_ERR_VALUE, "matrix (0, 0) is not symmetric"},
        {"NaN on one side", nan_above, ATN_ERR_VALUE, "matrix (0, 0) is not symmetric"},
        {"rows with gaps", row_gaps, ATN_ERR_STRIDE, "side by side"},
        {"x in f32", out_dtype, ATN_ERR_DTYPE, "x is f32"},
        {"x too short", out_rows, ATN_ERR_SHAPE, "x: rows is 3"},
        {"x on a", out_on_x, ATN_ERR_ALIAS, "x overlaps a"},
        {"unknown method", method_unknown, ATN_ERR_VALUE, "method"},
        {"iterations -1", iterations_negative, ATN_ERR_VALUE, "nr-paper: iterations is -1"},
        {"nr without alpha", alpha_missing, ATN_ERR_VALUE, "nr: alpha is 0"},
        {"nr, alpha < 0", alpha_negative, ATN_ERR_VALUE, "nr: alpha is -1"},
        {"nr, alpha NaN", alpha_nan, ATN_ERR_VALUE, "nr: alpha"},
        {"nr-paper with alpha", alpha_unwanted, ATN_ERR_VALUE, "nr-paper: alpha is 0.1"},
        {"numerator 0", numerator_zero, ATN_ERR_VALUE, "numerator is 0"},
        {"ridge < 0", ridge_negative, ATN_ERR_VALUE, "ridge is -0.01"},
        {"ridge NaN", ridge_nan, ATN_ERR_VALUE, "ridge"},
        {"unknown search", search_unknown, ATN_ERR_VALUE, "search is 3"},
        {"search limit NaN", limit_nan, ATN_ERR_VALUE, "search_limit"},
        {"search cap -1", cap_negative, ATN_ERR_VALUE, "search_cap is -1"},
        {"unknown scope", scope_unknown, ATN_ERR_VALUE, "scope is 2"},
        {"tolerance NaN", tolerance_nan, ATN_ERR_VALUE, "tolerance"},
        {"rcond > 1", rcond_large, ATN_ERR_VALUE, "rcond is 1.5"},
        {"jitter NaN", jitter_nan, ATN_ERR_VALUE, "jitter"},
        {"trace too short", trace_short, ATN_ERR_SHAPE, "capacity is 20, expected at least 21"},
        {"trace without pinv", trace_no_pinv, ATN_ERR_NULL, "pinv"},
        {"trace without projector", trace_no_projector, ATN_ERR_NULL, "projector"},
        {"x on the trace's pinv", trace_pinv_on_x, ATN_ERR_ALIAS, "x overlaps trace: pinv"},
        {"x on its projector", trace_projector_on_x, ATN_ERR_ALIAS, "x overlaps trace: projector"},
        {"x on its last value", trace_ends_on_x, ATN_ERR_ALIAS, "x overlaps iterate_norm"},
        {"x on its values", trace_values_on_x, ATN_ERR_ALIAS, "x overlaps iterate_norm"},
    };
    RUN_TABLE("inverse", rows, fill_inverse, run_inverse);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_EIG);
    cr_expect_eq(atn_inverse(NULL, &desc, NULL, NULL, NULL, NULL), ATN_ERR_NULL);
    atn_context *context = fixture_context(1, NULL);
    cr_expect_eq(atn_inverse(context, NULL, NULL, NULL, NULL, NULL), ATN_ERR_NULL);
    atn_context_free(context);
}

SPOIL(op_unknown, c->desc.op = ATN_OPERATOR_COUNT)
SPOIL(plan_dtype, c->desc.dtype = (atn_dtype)5)
SPOIL(plan_scale, c->desc.scale = ATN_SCALE_COUNT)
SPOIL(plan_scale_value, c->desc.scale = ATN_SCALE_VALUE; c->desc.scale_value = NAN)
SPOIL(plan_scale_zero, c->desc.scale = ATN_SCALE_VALUE; c->desc.scale_value = 0)
SPOIL(plan_scale_inf, c->desc.scale = ATN_SCALE_VALUE; c->desc.scale_value = INFINITY)
SPOIL(plan_distance, c->desc.distance = ATN_DISTANCE_COUNT)
SPOIL(plan_sampling, c->desc.sampling.stride = 0)
SPOIL(plan_inverse, c->desc.inverse.iterations = -3)
SPOIL(shape_negative, c->shape.heads = -1)
SPOIL(shape_huge, c->shape.batch = c->shape.heads = 3037000499)
SPOIL(shape_no_dim, c->shape.dim = 0; c->desc.scale = ATN_SCALE_VALUE; c->desc.scale_value = 1)
SPOIL(residual_even, c->desc.residual = atn_tensor_dense(memory[1], ATN_F64, 1, 1, 2, 2))
SPOIL(residual_oblong, c->desc.residual = atn_tensor_dense(memory[1], ATN_F64, 1, 1, 3, 5))
SPOIL(residual_heads, c->desc.residual = atn_tensor_dense(memory[1], ATN_F64, 1, 2, 3, 3))
SPOIL(residual_dtype, c->desc.residual = atn_tensor_dense(memory[1], ATN_F32, 1, 1, 3, 3))
SPOIL(residual_grid, c->desc.residual = atn_tensor_dense(memory[1], ATN_F64, 1, 1, 3, 3);
      c->desc.residual_height = 5; c->desc.residual_width = 2)
SPOIL(q_tokens, c->x.rows -= 1)
SPOIL(q_width, c->x.cols -= 1)
SPOIL(v_tokens, c->y.rows -= 1)
SPOIL(cross, c->traced = true)

static void fill_soft(wrong_call *c)
{
    c->desc = atn_attention_defaults(ATN_SOFT, ATN_F64);
    c->desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_WINDOW, .stride = 3};
    c->shape = (atn_attention_shape){1, 1, N, D, D, 0};
    c->x = atn_tensor_dense(memory[0], ATN_F64, 1, 1, N, D);
    c->y = atn_tensor_dense(memory[1], ATN_F64, 1, 1, N, D);
    c->out = atn_tensor_dense(memory[2], ATN_F64, 1, 1, N, D);
}

static atn_status run_soft(wrong_call *c)
{
    atn_plan *plan = (atn_plan *)c;
    atn_status status = atn_attention_plan(c->context, &c->desc, &c->shape, &plan);
    if (status != ATN_OK)
        cr_expect_null(plan, "a failed plan is null");
    else
        status = atn_attention_forward(
            plan, &(atn_attention_inputs){.q = c->px, .k = c->traced ? c->px : NULL, .v = c->py},
            c->pout, NULL);
    atn_plan_free(plan);
    return status;
}

Test(errors, attention)
{
    static const spoiled rows[] = {
        {"unknown operator", op_unknown, ATN_ERR_VALUE, "unknown operator"},
        {"unknown dtype", plan_dtype, ATN_ERR_DTYPE, "dtype 5"},
        {"unknown scale", plan_scale, ATN_ERR_VALUE, "scale"},
        {"scale NaN", plan_scale_value, ATN_ERR_VALUE, "scale is"},
        {"scale 0", plan_scale_zero, ATN_ERR_VALUE, "scale is 0"},
        {"scale infinite", plan_scale_inf, ATN_ERR_VALUE, "scale is inf"},
        {"unknown distance", plan_distance, ATN_ERR_VALUE, "distance"},
        {"sampling", plan_sampling, ATN_ERR_VALUE, "stride is 0"},
        {"inverse", plan_inverse, ATN_ERR_VALUE, "iterations is -3"},
        {"heads -1", shape_negative, ATN_ERR_SHAPE, "heads is -1"},
        {"a huge shape", shape_huge, ATN_ERR_SHAPE, "does not fit into memory"},
        {"dim 0", shape_no_dim, ATN_ERR_SHAPE, "12 tokens of width 0"},
        {"even window", residual_even, ATN_ERR_SHAPE, "odd size"},
        {"oblong window", residual_oblong, ATN_ERR_SHAPE, "residual: cols is 5, expected 3"},
        {"window per head", residual_heads, ATN_ERR_SHAPE, "residual: heads is 2, expected 1"},
        {"window in f32", residual_dtype, ATN_ERR_DTYPE, "residual is f32"},
        {"residual's grid", residual_grid, ATN_ERR_SHAPE, "residual: grid 5x2 does not hold 12"},
        {"q null", x_null, ATN_ERR_NULL, "q:"},
        {"v null", y_null, ATN_ERR_NULL, "v:"},
        {"out null", out_null, ATN_ERR_NULL, "out:"},
        {"q too short", q_tokens, ATN_ERR_SHAPE, "q: rows is 11, expected 12"},
        {"q too narrow", q_width, ATN_ERR_SHAPE, "q: cols is 2, expected 3"},
        {"q's rows too far apart", x_far, ATN_ERR_STRIDE, "q: row_stride is 2147483648"},
        {"v too short", v_tokens, ATN_ERR_SHAPE, "v: rows is 11, expected 12"},
        {"v too narrow", y_width, ATN_ERR_SHAPE, "v: cols is 2, expected 3"},
        {"v in f32", y_dtype, ATN_ERR_DTYPE, "v is f32, expected f64"},
        {"out too short", out_rows, ATN_ERR_SHAPE, "out: rows"},
        {"out on q", out_on_x, ATN_ERR_ALIAS, "out overlaps q"},
        {"out on v", out_on_y, ATN_ERR_ALIAS, "out overlaps v"},
        {"k given", cross, ATN_ERR_UNSUPPORTED, "k must be null"},
    };
    RUN_TABLE("attention", rows, fill_soft, run_soft);
    atn_plan *plan;
    cr_expect_eq(atn_attention_plan(NULL, NULL, NULL, &plan), ATN_ERR_NULL);
    cr_expect_eq(atn_attention_forward(NULL, NULL, NULL, NULL), ATN_ERR_NULL);
    atn_plan_free(NULL);
}

SPOIL(segments_none, c->desc.nystromformer.landmarks = 0)
SPOIL(segments_many, c->desc.nystromformer.landmarks = N + 1)
SPOIL(segments_more_than_keys, c->desc.nystromformer.landmarks = N - 1; c->shape.key_tokens = N - 2)
SPOIL(nystrom_unknown, c->desc.nystromformer.inverse = ATN_NYSTROM_COUNT)
SPOIL(nystrom_iterations, c->desc.nystromformer.iterations = -1)
SPOIL(nystrom_rcond, c->desc.nystromformer.rcond = NAN)
SPOIL(taps_even, c->desc.residual = atn_tensor_dense(memory[1], ATN_F64, 1, 1, 2, 1))
SPOIL(taps_wide, c->desc.residual = atn_tensor_dense(memory[1], ATN_F64, 1, 1, 3, 3))
SPOIL(taps_of_other_keys, c->desc.residual = atn_tensor_dense(memory[1], ATN_F64, 1, 1, 3, 1);
      c->shape.key_tokens = N - 2)
SPOIL(no_keys_given, c->y.rows = c->shape.key_tokens = N - 2)

static void fill_nystromformer(wrong_call *c)
{
    fill_soft(c);
    c->desc = atn_attention_defaults(ATN_NYSTROMFORMER, ATN_F64);
    c->desc.nystromformer.landmarks = 3;
}

Test(errors, nystromformer)
{
    static const spoiled rows[] = {
        {"no landmarks", segments_none, ATN_ERR_VALUE, "landmarks is 0"},
        {"n + 1 landmarks", segments_many, ATN_ERR_SHAPE, "landmarks is 13"},
        {"more than keys", segments_more_than_keys, ATN_ERR_SHAPE, "the keys, 10"},
        {"unknown inverse", nystrom_unknown, ATN_ERR_VALUE, "nystromformer.inverse"},
        {"iterations -1", nystrom_iterations, ATN_ERR_VALUE, "iterations is -1"},
        {"rcond NaN", nystrom_rcond, ATN_ERR_VALUE, "rcond is NaN"},
        {"even window", taps_even, ATN_ERR_SHAPE, "odd length"},
        {"a window of 3 columns", taps_wide, ATN_ERR_SHAPE, "residual: cols is 3, expected 1"},
        {"a window, other keys", taps_of_other_keys, ATN_ERR_SHAPE, "12 queries, 10 keys"},
        {"other keys, which are not given", no_keys_given, ATN_ERR_NULL, "there are 10 keys"},
    };
    RUN_TABLE("nystromformer", rows, fill_nystromformer, run_soft);
}

/* One row may have any stride; heads must touch. */
Test(errors, strides_of_parameters)
{
    double numbers[8] = {1, 1, 1, 1};
    atn_context *context = fixture_context(1, NULL);
    atn_attention_desc desc = atn_attention_defaults(ATN_XNORM, ATN_F64);
    atn_attention_shape shape = {1, 2, N, D, D, 0};
    for (int apart = 0; apart < 2; apart++) {
        atn_cost cost;
        desc.xnorm.gamma = atn_tensor_dense(numbers, ATN_F64, 1, 2, 1, 1);
        desc.xnorm.gamma.row_stride = 3;
        desc.xnorm.gamma.head_stride = apart ? 4 : 1;
        cr_expect_eq(atn_attention_cost(context, &desc, &shape, &cost),
                     apart ? ATN_ERR_STRIDE : ATN_OK, "%s", atn_last_error(context));
    }
    atn_context_free(context);
}

/* Nothing may be added up or multiplied past INT64_MAX on the way to an answer. */
Test(errors, hostile_sizes_do_not_overflow)
{
    allocator_counts counts = {0};
    atn_context *context = fixture_context(2, &counts);
    static const struct {
        const char *what;
        int64_t p, q, d;
    } kernels[] = {
        {"no tokens against INT64_MAX of width 0", 0, INT64_MAX, 0},
        {"no tokens against 2^61 - 1 of width 1", 0, ((int64_t)1 << 61) - 1, 1},
        {"no tokens against 1e8 of width 1e9", 0, 100000000, 1000000000},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        int64_t p = kernels[i].p, q = kernels[i].q, d = kernels[i].d;
        atn_tensor x = atn_tensor_dense(NULL, ATN_F32, 1, 1, p, d), y = x, out = x;
        y.rows = q, y.data = memory;
        out.cols = out.row_stride = q;
        atn_status status = atn_gaussian_cross(context, ATN_DISTANCE_DIRECT, 1, &x, &y, &out);
        cr_expect(status == ATN_OK || status == ATN_ERR_SHAPE || status == ATN_ERR_MEMORY, "%s: %s",
                  kernels[i].what, atn_status_name(status));
    }
    /* nothing, very often: answered at once, not counted through */
    atn_tensor nothing = atn_tensor_dense(NULL, ATN_F32, (int64_t)1 << 31, (int64_t)1 << 30, 0, 3);
    atn_tensor no_matrix = nothing;
    no_matrix.cols = no_matrix.row_stride = 0;
    atn_inverse_desc inverse = atn_inverse_defaults(ATN_INVERSE_EIG);
    cr_expect_eq(atn_gaussian_self(context, ATN_DISTANCE_DIRECT, 1, &nothing, &no_matrix),
                 ATN_ERR_SHAPE);
    cr_expect_eq(atn_inverse(context, &inverse, &no_matrix, &no_matrix, NULL, NULL), ATN_ERR_SHAPE);
    no_matrix.batch = nothing.batch = 1 << 20;
    no_matrix.heads = nothing.heads = 1 << 20;
    cr_expect_eq(atn_gaussian_self(context, ATN_DISTANCE_DIRECT, 1, &nothing, &no_matrix), ATN_OK);
    cr_expect_eq(atn_inverse(context, &inverse, &no_matrix, &no_matrix, NULL, NULL), ATN_OK);
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 30000000};
    static const atn_attention_shape shapes[] = {
        {1, 100000, 30000000, 1, 1, 0},
        {1, 1, 30000000, 1, 1, 0},
        {1, 1, 30000000, 30000000, 1, 0},
        {1000, 1000, 30000000, 1, 1000, 0},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        atn_plan *plan;
        atn_status status = atn_attention_plan(context, &desc, &shapes[i], &plan);
        cr_expect(status == ATN_ERR_SHAPE || status == ATN_ERR_MEMORY, "shape %zu: %s", i,
                  atn_status_name(status));
        atn_plan_free(plan);
    }
    /* few queries, of more keys than there are bytes */
    desc = atn_attention_defaults(ATN_SIMA, ATN_F32);
    atn_cost cost;
    cr_expect_eq(atn_attention_cost(context, &desc,
                                    &(atn_attention_shape){1, 1, 4, 8, 8, INT64_C(1) << 60}, &cost),
                 ATN_ERR_SHAPE);
    cr_expect(strstr(atn_last_error(context), "the shape does not fit"), "%s",
              atn_last_error(context));
    atn_context_free(context);
}
