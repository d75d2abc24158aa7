/* SPDX-License-Identifier: BSD-3-Clause */
/* The head-wise operators' driver at the ends of the number range, on the CPU and on CUDA, and the
 * cost of softmax attention. */
#include <criterion/criterion.h>

#include <math.h>

#include "fixture.h"
#include "staged.h"

static atn_tensor dense(void *data, atn_dtype dtype, int64_t heads, int64_t rows, int64_t cols)
{
    return atn_tensor_dense(data, dtype, 1, heads, rows, cols);
}

/* ---- Calls whose tensors are copied to the context's device and back ---- */

static atn_plan *plan_on_device(staged *s, const atn_attention_desc *desc,
                                const atn_attention_shape *shape)
{
    atn_attention_desc there = staged_desc(s, desc, shape);
    atn_plan *plan;
    cr_assert_eq(atn_attention_plan(s->context, &there, shape, &plan), ATN_OK, "%s",
                 atn_last_error(s->context));
    return plan;
}

static const atn_tensor *copied(staged *s, const atn_tensor *view, atn_tensor *copy)
{
    if (!view)
        return NULL;
    *copy = staged_view(s, view);
    return copy;
}

static atn_attention_inputs copied_inputs(staged *s, const atn_attention_inputs *inputs,
                                          atn_tensor copies[3])
{
    return (atn_attention_inputs){.q = copied(s, inputs->q, &copies[0]),
                                  .k = copied(s, inputs->k, &copies[1]),
                                  .v = copied(s, inputs->v, &copies[2])};
}

static atn_status forward(atn_context *context, atn_plan *plan, const atn_attention_inputs *inputs,
                          const atn_tensor *y, atn_attention_info *info)
{
    staged s = staged_open(context);
    atn_tensor in[3], out = staged_view(&s, y);
    atn_attention_inputs there = copied_inputs(&s, inputs, in);
    atn_attention_info own = {0}; /* without info a call on a device does not wait for its status */
    atn_status status = atn_attention_forward(plan, &there, &out, info ? info : &own);
    staged_fetch(&s, y, &out);
    staged_close(&s);
    return status;
}

static atn_status backward(atn_context *context, atn_plan *plan, const atn_attention_inputs *inputs,
                           const atn_tensor *dy, const atn_gradients *gradients,
                           atn_attention_info *info)
{
    enum { COUNT = 3 + ATN_PARAMETER_COUNT };
    staged s = staged_open(context);
    atn_tensor in[3], slope = staged_view(&s, dy), copies[COUNT];
    atn_attention_inputs there = copied_inputs(&s, inputs, in);
    atn_gradients out = *gradients;
    atn_tensor **each[COUNT] = {&out.q, &out.k, &out.v};
    const atn_tensor *views[COUNT] = {gradients->q, gradients->k, gradients->v};
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++) {
        each[3 + i] = &out.parameters[i];
        views[3 + i] = gradients->parameters[i];
    }
    for (int i = 0; i < COUNT; i++)
        if (copied(&s, views[i], &copies[i]))
            *each[i] = &copies[i];
    atn_status status = atn_attention_backward(plan, &there, &slope, &out, info);
    for (int i = 0; i < COUNT; i++)
        if (views[i])
            staged_fetch(&s, views[i], &copies[i]);
    staged_close(&s);
    return status;
}

/* ---- Overflow ---- */

/* One column of F: dF = v.dV' overflows, all other gradients are finite or 0. */
Test(heads, a_parameters_gradient_that_overflows_is_reported)
{
    static float q = 1, k = 1, v = 1e30F, dy = 1e30F, e = 1, f = 1e-30F, dq, dk, dv, df;
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_LINFORMER, ATN_F32);
    desc.linformer.e = dense(&e, ATN_F32, 1, 1, 1);
    desc.linformer.f = dense(&f, ATN_F32, 1, 1, 1);
    atn_tensor tq = dense(&q, ATN_F32, 1, 1, 1), tk = tq, tv = tq, tdy = tq, tdq = tq, tdk = tq,
               tdv = tq, tdf = tq;
    tk.data = &k, tv.data = &v, tdy.data = &dy;
    tdq.data = &dq, tdk.data = &dk, tdv.data = &dv, tdf.data = &df;
    atn_attention_shape shape = {1, 1, 1, 1, 1, 0};
    atn_attention_inputs inputs = {.q = &tq, .k = &tk, .v = &tv};
    atn_gradients gradients = {.q = &tdq, .k = &tdk, .v = &tdv};
    atn_attention_info info;
    atn_plan *plan = plan_on_device(&s, &desc, &shape);
    cr_expect_eq(backward(context, plan, &inputs, &tdy, &gradients, &info), ATN_OK);
    cr_expect(dq == 0 && dk == 0 && fabsf(dv - 1) < 1e-6F, "%g %g %g", (double)dq, (double)dk,
              (double)dv);
    gradients.parameters[ATN_PARAMETER_F] = &tdf;
    cr_expect_eq(backward(context, plan, &inputs, &tdy, &gradients, &info), ATN_NONFINITE);
    cr_expect(isnan(df) && isnan(dv) && info.failures == 1, "%g %g", (double)df, (double)dv);
    atn_plan_free(plan);
    staged_close(&s);
    atn_context_free(context);
}

/* Each head's part of a shared gradient is finite, their sum is not: both heads report it. */
Test(heads, a_shared_gradient_that_overflows_is_reported)
{
    static float q[2] = {1, 2}, k[2] = {1, 3}, v[2] = {1e19F, 1.1e19F}, dy[2] = {2e19F, 2.1e19F};
    static float e = 1, f = 1e-30F, dq[2], dk[2], dv[2], df;
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_LINFORMER, ATN_F32);
    desc.linformer.e = dense(&e, ATN_F32, 1, 1, 1);
    desc.linformer.f = dense(&f, ATN_F32, 1, 1, 1);
    atn_tensor tq = dense(q, ATN_F32, 2, 1, 1), tk = tq, tv = tq, tdy = tq, tdq = tq, tdk = tq,
               tdv = tq, tdf = desc.linformer.f;
    tk.data = k, tv.data = v, tdy.data = dy;
    tdq.data = dq, tdk.data = dk, tdv.data = dv, tdf.data = &df;
    atn_attention_inputs inputs = {.q = &tq, .k = &tk, .v = &tv};
    atn_gradients gradients = {.q = &tdq, .k = &tdk, .v = &tdv};
    gradients.parameters[ATN_PARAMETER_F] = &tdf;
    atn_attention_info info;
    atn_attention_shape shape = {1, 2, 1, 1, 1, 0};
    atn_plan *plan = plan_on_device(&s, &desc, &shape);
    cr_expect_eq(backward(context, plan, &inputs, &tdy, &gradients, &info), ATN_NONFINITE);
    cr_expect(isnan(df) && isnan(dq[0]) && isnan(dv[1]) && info.failures == 2, "%g %g %g",
              (double)df, (double)dq[0], (double)dv[1]);
    v[1] = 1e18F;
    cr_expect_eq(backward(context, plan, &inputs, &tdy, &gradients, &info), ATN_OK);
    cr_expect(fabsf(df / 2.21e38F - 1) < 1e-6F && isfinite(dv[1]), "%g %g", (double)df,
              (double)dv[1]);
    atn_plan_free(plan);
    staged_close(&s);
    atn_context_free(context);
}

/* SOFT: the second token is so far from the landmark that its value and dY meet in the filter's
 * gradient alone. */
Test(heads, a_filters_gradient_that_overflows_is_reported)
{
    static float q[2] = {0, 100}, v[2] = {1, 1e30F}, dy[2] = {2, 1.5e30F}, dq[2], dv[2];
    static float filter = 1e-10F, df;
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 1};
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_EIG);
    desc.residual = dense(&filter, ATN_F32, 1, 1, 1);
    desc.residual_height = 1, desc.residual_width = 2;
    atn_tensor tq = dense(q, ATN_F32, 1, 2, 1), tv = tq, tdy = tq, tdq = tq, tdv = tq;
    atn_tensor tdf = desc.residual;
    tv.data = v, tdy.data = dy, tdq.data = dq, tdv.data = dv, tdf.data = &df;
    atn_attention_inputs inputs = {.q = &tq, .v = &tv};
    atn_gradients gradients = {.q = &tdq, .v = &tdv};
    atn_attention_info info = {0};
    atn_attention_shape shape = {1, 1, 2, 1, 1, 0};
    atn_plan *plan = plan_on_device(&s, &desc, &shape);
    cr_expect_eq(backward(context, plan, &inputs, &tdy, &gradients, &info), ATN_OK);
    cr_expect(isfinite(dq[1]) && fabsf(dv[1] / 1.5e20F - 1) < 1e-6F, "%g %g", (double)dq[1],
              (double)dv[1]);
    gradients.parameters[ATN_PARAMETER_RESIDUAL] = &tdf;
    cr_expect_eq(backward(context, plan, &inputs, &tdy, &gradients, &info), ATN_NONFINITE);
    cr_expect(isnan(df) && isnan(dq[0]) && isnan(dv[1]) && info.failures == 1, "%g %g %g",
              (double)df, (double)dq[0], (double)dv[1]);
    atn_plan_free(plan);
    staged_close(&s);
    atn_context_free(context);
}

/* Of two heads that share a norm, one is spoilt: the one that has the norm where the derivatives by
 * it are finite and their sum is not, the other one where its own derivative is not. */
Test(heads, a_coupled_gradient_that_overflows_spoils_one_head)
{
    enum { HEADS = 2, N = 2, COUNT = HEADS * N };
    static const float slopes[][HEADS] = {{1.2e38F, 1.2e38F}, {1, 2e38F}};
    static float q[COUNT] = {1, 2, 3, 4}, v[COUNT] = {1, 1, 1, 1}, dq[COUNT], dv[COUNT], dy[COUNT];
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_NYSTROMFORMER, ATN_F32);
    desc.nystromformer.landmarks = 1;
    desc.nystromformer.iterations = 0;
    atn_tensor tq = dense(q, ATN_F32, HEADS, N, 1), tv = tq, tdy = tq, tdq = tq, tdv = tq;
    tv.data = v, tdy.data = dy, tdq.data = dq, tdv.data = dv;
    atn_attention_shape shape = {1, HEADS, N, 1, 1, 0};
    atn_attention_inputs inputs = {.q = &tq, .v = &tv};
    atn_gradients gradients = {.q = &tdq, .v = &tdv};
    atn_attention_info info;
    atn_plan *plan = plan_on_device(&s, &desc, &shape);
    for (int bad = 0; bad < HEADS; bad++) {
        int good = 1 - bad;
        for (int i = 0; i < COUNT; i++)
            dy[i] = slopes[bad][i / N];
        cr_expect_eq(backward(context, plan, &inputs, &tdy, &gradients, &info), ATN_NONFINITE);
        cr_expect_eq(info.failures, 1, "head %d: %d", bad, (int)info.failures);
        cr_expect(isnan(dq[bad * N]) && isfinite(dq[good * N]) && isfinite(dv[good * N]),
                  "head %d: %g %g %g", bad, (double)dq[bad * N], (double)dq[good * N],
                  (double)dv[good * N]);
    }
    atn_plan_free(plan);
    staged_close(&s);
    atn_context_free(context);
}

/* |q|^2 is beyond the range, q / |q| is not; short keys are normalised as well. Token 0 attends to
 * the key of the smaller angle. */
Test(heads, lsh_keys_of_any_length_are_normalised)
{
    enum { N = 3, D = 2 };
    static const struct {
        double length, logit_scale;
    } rows[] = {{1e200, 0}, {1e-9, 1e12}};
    static const double angles[N * D] = {1, 1, 1, 0.9, 1, 0.5};
    static double q[N * D], v[N] = {1, 2, 3}, y[N];
    static const int64_t buckets[N] = {0, 0, 0};
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_LSH, ATN_F64);
    desc.lsh.buckets = buckets;
    desc.lsh.rounds = 1;
    desc.lsh.chunk = N;
    atn_tensor tq = dense(q, ATN_F64, 1, N, D), tv = dense(v, ATN_F64, 1, N, 1);
    atn_tensor ty = dense(y, ATN_F64, 1, N, 1);
    atn_attention_shape shape = {1, 1, N, D, 1, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int j = 0; j < N * D; j++)
            q[j] = rows[i].length * angles[j];
        desc.logit_scale = rows[i].logit_scale;
        atn_plan *plan = plan_on_device(&s, &desc, &shape);
        cr_expect_eq(forward(context, plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &ty, NULL),
                     ATN_OK);
        cr_expect(fabs(y[0] - v[1]) < 1e-15, "%g, not %g", y[0], v[1]);
        atn_plan_free(plan);
    }
    staged_close(&s);
    atn_context_free(context);
}

/* x . r = -x . s for the first token's largest two: it is in the bucket of r, not in that of -s. */
Test(heads, of_equal_hashes_the_positive_one_is_taken)
{
    enum { N = 6, D = 2 };
    static double q[N * D] = {1, -1, -1, -.5, .5, 1, -.2, -1, 2, .1, -.1, -3};
    static double identity[D * D] = {1, 0, 0, 1}, v[N] = {1, 2, 4, 8, 16, 32}, y[3][N];
    static const int64_t buckets[][N] = {{0}, {0, 2, 1, 3, 0, 3}, {3, 2, 1, 3, 0, 3}};
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_LSH, ATN_F64);
    atn_tensor tq = dense(q, ATN_F64, 1, N, D), tv = dense(v, ATN_F64, 1, N, 1);
    atn_attention_shape shape = {1, 1, N, D, 1, 0};
    desc.lsh.rounds = 1;
    desc.lsh.chunk = 2;
    desc.lsh.rotations = dense(identity, ATN_F64, 1, D, D);
    for (int i = 0; i < 3; i++) {
        atn_tensor ty = dense(y[i], ATN_F64, 1, N, 1);
        desc.lsh.buckets = i ? buckets[i] : NULL;
        desc.lsh.rotations.data = i ? NULL : identity;
        atn_plan *plan = plan_on_device(&s, &desc, &shape);
        cr_expect_eq(forward(context, plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &ty, NULL),
                     ATN_OK);
        atn_plan_free(plan);
    }
    cr_expect(memcmp(y[0], y[1], sizeof y[0]) == 0 && memcmp(y[0], y[2], sizeof y[0]) != 0);
    staged_close(&s);
    atn_context_free(context);
}

/* dY.V is 1e36 and the logits' scale 1e-6: gradients are near c P dP = 1e29, but without c the sum
 * of P dP q is beyond the range. */
Test(heads, lsh_gradients_of_a_small_scale_are_in_range)
{
    enum { N = 4, D = 2 };
    static float q[N * D] = {1000, 100, 900, -300, 1100, 200, 1000, 0}, v[N] = {1, -1, 1, -1};
    static float dy[N] = {1, 1, -1, 1}, dq[N * D], dv[N];
    static const int64_t buckets[N] = {0};
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_LSH, ATN_F32);
    atn_attention_shape shape = {1, 1, N, D, 1, 0};
    desc.lsh.buckets = buckets;
    desc.lsh.rounds = 1;
    desc.lsh.chunk = N;
    desc.logit_scale = 1e-6;
    for (int i = 0; i < N; i++) {
        v[i] *= 1e18F;
        dy[i] *= 1e18F;
    }
    atn_tensor tq = dense(q, ATN_F32, 1, N, D), tv = dense(v, ATN_F32, 1, N, 1);
    atn_tensor tdy = dense(dy, ATN_F32, 1, N, 1);
    atn_tensor tdq = dense(dq, ATN_F32, 1, N, D), tdv = dense(dv, ATN_F32, 1, N, 1);
    atn_attention_inputs inputs = {.q = &tq, .v = &tv};
    atn_gradients gradients = {.q = &tdq, .v = &tdv};
    atn_attention_info info;
    atn_plan *plan = plan_on_device(&s, &desc, &shape);
    cr_expect_eq(backward(context, plan, &inputs, &tdy, &gradients, &info), ATN_OK);
    cr_expect(fabs((double)dq[0]) > 1e25 && fabs((double)dq[0]) < 1e33, "%g", (double)dq[0]);
    atn_plan_free(plan);
    staged_close(&s);
    atn_context_free(context);
}

/* Buckets are ordered as the numbers that they are: negative ones first, and by every byte. */
Test(heads, lsh_buckets_are_any_numbers)
{
    enum { N = 12 };
    static const int64_t buckets[][N] = {
        {5, 300, -1, INT64_MAX, 5, -1, INT64_MIN, 1 << 20, 5, INT64_C(1) << 40, 261, 44},
        {2, 5, 1, 8, 2, 1, 0, 6, 2, 7, 4, 3}};
    static double q[N * 2], v[N], y[2][N];
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_LSH, ATN_F64);
    atn_tensor tq = dense(q, ATN_F64, 1, N, 2), tv = dense(v, ATN_F64, 1, N, 1);
    atn_attention_shape shape = {1, 1, N, 2, 1, 0};
    desc.lsh.rounds = 1;
    desc.lsh.chunk = 2;
    for (int j = 0; j < N; j++) {
        q[2 * j] = cos(j);
        q[2 * j + 1] = sin(j);
        v[j] = 1 << j;
    }
    for (int i = 0; i < 2; i++) {
        atn_tensor ty = dense(y[i], ATN_F64, 1, N, 1);
        desc.lsh.buckets = buckets[i];
        atn_plan *plan = plan_on_device(&s, &desc, &shape);
        cr_expect_eq(forward(context, plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &ty, NULL),
                     ATN_OK);
        atn_plan_free(plan);
    }
    cr_expect(memcmp(y[0], y[1], sizeof y[0]) == 0);
    staged_close(&s);
    atn_context_free(context);
}

/* exp(200) is beyond f32's range: in whichever chunk of the tokens the largest key is, all keys are
 * shifted by it. Its value is the output. */
Test(heads, keys_are_shifted_by_the_largest_of_all_chunks)
{
    enum { N = 600 };
    static const int at[] = {0, N / 2, N - 1};
    static float q[N], k[N], v[N], y[N];
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_EFFICIENT, ATN_F32);
    atn_attention_shape shape = {1, 1, N, 1, 1, 0};
    atn_tensor tq = dense(q, ATN_F32, 1, N, 1), tk = tq, tv = tq, ty = tq;
    tk.data = k, tv.data = v, ty.data = y;
    atn_plan *plan = plan_on_device(&s, &desc, &shape);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        for (int j = 0; j < N; j++) {
            k[j] = j == at[i] ? 200 : 0;
            v[j] = (float)j + 1;
        }
        cr_expect_eq(forward(context, plan, &(atn_attention_inputs){.q = &tq, .k = &tk, .v = &tv},
                             &ty, NULL),
                     ATN_OK);
        cr_expect(y[0] == v[at[i]] && y[N - 1] == v[at[i]], "key %d: %g and %g", at[i],
                  (double)y[0], (double)y[N - 1]);
    }
    atn_plan_free(plan);
    staged_close(&s);
    atn_context_free(context);
}

/* Two equal tokens: finite inputs, and a sum of values that overflows. */
Test(heads, an_output_that_overflows_is_reported)
{
    static float q[2] = {1, 1}, v[2] = {3e38F, 3e38F}, y[2];
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_GAUSSIAN, ATN_F32);
    atn_attention_shape shape = {1, 1, 2, 1, 1, 0};
    atn_tensor tq = dense(q, ATN_F32, 1, 2, 1), tv = dense(v, ATN_F32, 1, 2, 1);
    atn_tensor ty = dense(y, ATN_F32, 1, 2, 1);
    atn_attention_info info;
    atn_plan *plan = plan_on_device(&s, &desc, &shape);
    cr_expect_eq(forward(context, plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &ty, &info),
                 ATN_NONFINITE);
    cr_expect(info.failures == 1 && isnan(y[0]) && isnan(y[1]), "%g %g", (double)y[0],
              (double)y[1]);
    atn_plan_free(plan);
    staged_close(&s);
    atn_context_free(context);
}

/* Nystromformer's batch starts from its largest |A|_1; a head with NaN has none, not even the one
 * that it had in the call before: the other head is as if alone. */
Test(heads, a_bad_head_has_no_part_in_the_shared_norm)
{
    enum { N = 6, D = 2, DV = 1 };
    /* the first head's landmarks all attend to the last one: |A|_1 is nearly 3 */
    static double q[2 * N * D] = {9, 9,  9, 9,  9,  9,   9, 9,  9,  9,  9, 9,
                                  1, -1, 2, .5, -1, .25, 1, .5, .5, -2, 0, 1};
    static double k[2 * N * D] = {0, 0, 0, 0,  0,  0, 0,  0,   9, 9,  9,  9,
                                  1, 0, 2, -1, .5, 1, -1, .25, 0, .5, -2, 1};
    static double v[2 * N] = {1, 2, 3, 4, 5, 6, 1, -1, 2, -2, 3, 0}, y[2 * N], alone[N];
    atn_context *context = fixture_context(1, NULL);
    staged s = staged_open(context);
    atn_attention_desc desc = atn_attention_defaults(ATN_NYSTROMFORMER, ATN_F64);
    desc.nystromformer.landmarks = 3;
    desc.nystromformer.iterations = 2;
    atn_plan *plans[2];
    for (int heads = 1; heads <= 2; heads++) {
        atn_attention_shape shape = {1, heads, N, D, DV, 0};
        plans[heads - 1] = plan_on_device(&s, &desc, &shape);
    }
    atn_tensor tq = dense(q, ATN_F64, 2, N, D), tk = dense(k, ATN_F64, 2, N, D);
    atn_tensor tv = dense(v, ATN_F64, 2, N, DV), ty = dense(y, ATN_F64, 2, N, DV);
    atn_attention_inputs both = {.q = &tq, .k = &tk, .v = &tv};
    atn_tensor oq = dense(q + N * D, ATN_F64, 1, N, D), ok = dense(k + N * D, ATN_F64, 1, N, D);
    atn_tensor ov = dense(v + N, ATN_F64, 1, N, DV), oy = dense(alone, ATN_F64, 1, N, DV);
    atn_attention_inputs one = {.q = &oq, .k = &ok, .v = &ov};
    cr_expect_eq(forward(context, plans[1], &both, &ty, NULL), ATN_OK);
    double together = y[N];
    q[0] = NAN;
    cr_expect_eq(forward(context, plans[1], &both, &ty, NULL), ATN_NONFINITE);
    q[0] = 9;
    cr_expect_eq(forward(context, plans[0], &one, &oy, NULL), ATN_OK);
    for (int i = 0; i < N; i++)
        cr_expect(y[N + i] == alone[i], "%d: %g, alone %g", i, y[N + i], alone[i]);
    cr_expect(fabs(together - alone[0]) > 1e-3, "the heads do not act on each other");
    for (int i = 0; i < 2; i++)
        atn_plan_free(plans[i]);
    staged_close(&s);
    atn_context_free(context);
}

/* ---- Counts ---- */

/* One head, n = 12, n_k = 24, d = 4, dv = 5: the cost of softmax attention of `rows` to `keys`. */
static double softmax_flops(double rows, double keys)
{
    return rows * keys * (2 * 4 + 2 + 2 * 5) + rows * 5;
}

Test(heads, counts_of_softmax_attention)
{
    static float e[24 * 3];
    static const int64_t buckets[2 * 12];
    const struct {
        atn_operator op;
        int variant;
        int64_t keys;
        double flops, exps;
    } cases[] = {
        {ATN_SOFTMAX, 0, 24, softmax_flops(12, 24), 12 * 24},
        {ATN_SOFTMAX, 1, 12, softmax_flops(12, 6.5), 12 * 6.5},
        {ATN_LINFORMER, 0, 24, 2 * 24 * 3 * 9 + softmax_flops(12, 3), 12 * 3},
        /* means, A, 6 steps, Z (B V), B, F */
        {ATN_NYSTROMFORMER, 0, 24,
         36 * 4 + 9 * (2 * 4 + 3) + 6 * 8 * 27 + 2 * 9 * 5 + softmax_flops(3, 24) +
             softmax_flops(12, 3),
         9 + 3 * 24 + 12 * 3},
        {ATN_LSH, 0, 12, softmax_flops(12, 2 * 2 * 4) + 3 * 12 * 4, 12 * 2 * 2 * 4},
    };
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        atn_attention_desc desc = atn_attention_variant(cases[i].op, cases[i].variant, ATN_F32);
        atn_attention_shape shape = {1, 1, 12, 4, 5, cases[i].keys};
        atn_cost cost;
        desc.linformer.e = dense(e, ATN_F32, 1, 24, 3);
        desc.nystromformer.landmarks = 3;
        desc.lsh.buckets = buckets;
        desc.lsh.rounds = 2;
        desc.lsh.chunk = 4;
        cr_assert_eq(atn_attention_cost(context, &desc, &shape, &cost), ATN_OK);
        cr_expect_eq(cost.flops, cases[i].flops, "case %zu: %.17g flops, not %.17g", i, cost.flops,
                     cases[i].flops);
        cr_expect_eq(cost.exps, cases[i].exps, "case %zu: %.17g exps", i, cost.exps);
    }
    atn_context_free(context);
}
