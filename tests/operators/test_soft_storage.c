/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ as arithmetic in narrow types would store them. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"

static fixture_soft make(int op, int method, atn_storage storage)
{
    fixture_soft_case c = {.op = (atn_operator)op, .dtype = ATN_F32, .layout = GUARDED_STRIDED};
    c.sampling = ATN_SAMPLING_FIRST;
    c.inverse = atn_inverse_defaults((atn_inverse_method)method);
    c.inverse.alpha = method == ATN_INVERSE_NR ? 0.1 : 0;
    c.batch = 1, c.heads = 2, c.height = 12, c.width = 15, c.stride = 1, c.count = 9;
    c.dim = 8, c.value_dim = 5, c.window = 3, c.seed = 3;
    c.scale = ATN_SCALE_VALUE, c.scale_value = 1;
    fixture_soft f = fixture_soft_make(&c);
    f.desc.storage = storage;
    return f;
}

static void round_inputs(fixture_soft *f, atn_storage storage)
{
    double *const inputs[] = {f->q, f->v};
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; j < 2 * f->n * (i ? f->c.value_dim : f->c.dim); j++) {
            float x = (float)inputs[i][j];
            atn_storage_round(storage, 1, &x);
            inputs[i][j] = (double)x;
        }
    fixture_soft_load(f);
}

/* Outputs are numbers of the type, and off from f32's by a few of its units, not by none. */
Test(soft_storage, outputs_are_of_the_type)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int method = 0; method < ATN_INVERSE_COUNT; method++)
            for (int storage = 1; storage < ATN_STORAGE_COUNT; storage++) {
                fixture_soft wide = make(op, method, ATN_STORAGE_NATIVE);
                fixture_soft narrow = make(op, method, (atn_storage)storage);
                int64_t count = 2 * wide.n * wide.c.value_dim, inexact = 0;
                double *want = data_allocate(count), *got = data_allocate(count);
                double error = 0, size = 0, u = atn_storage_roundoff((atn_storage)storage);
                if (method == ATN_INVERSE_NR_ADAPTIVE)
                    wide.desc.inverse.search_limit = narrow.desc.inverse.search_limit = 1.2;
                round_inputs(&wide, (atn_storage)storage);
                round_inputs(&narrow, (atn_storage)storage);
                cr_expect_geq(fixture_soft_run(&wide, context), 0);
                cr_expect_geq(fixture_soft_run(&narrow, context), 0, "%s", atn_last_error(context));
                guarded_get(&wide.out, want);
                guarded_get(&narrow.out, got);
                for (int64_t i = 0; i < count; i++) {
                    float rounded = (float)got[i];
                    atn_storage_round((atn_storage)storage, 1, &rounded);
                    inexact += (double)rounded != got[i];
                    error += (got[i] - want[i]) * (got[i] - want[i]);
                    size += want[i] * want[i];
                }
                error = sqrt(error / size);
                cr_expect(inexact == 0 && error > u / 8 && error < 60 * u,
                          "%s %s %s: %ld not of the type, off by %.3g u",
                          atn_operator_get((atn_operator)op)->name,
                          atn_inverse_name((atn_inverse_method)method),
                          atn_storage_name((atn_storage)storage), (long)inexact, error / u);
                free(got);
                free(want);
                fixture_soft_free(&narrow);
                fixture_soft_free(&wide);
            }
    atn_context_free(context);
}

/* Products of two bf16 numbers are exact in f32, so here is one way to round only. */
static float stored(float x)
{
    atn_storage_round(ATN_STORAGE_BF16, 1, &x);
    return x;
}

/* A matrix ((d, o), (o, d)), and its product with another or with a vector. */
typedef struct {
    float d, o;
} pair;

static pair product(pair a, pair b)
{
    return (pair){stored(a.d * b.d + a.o * b.o), stored(a.d * b.o + a.o * b.d)};
}

/* Two tokens 0 and x, both landmarks, one step, by hand: A = ((1, k), (k, 1)). */
static pair by_hand(atn_operator op, float x, pair v)
{
    float k = stored(expf(-0.7F * (x * x)));
    float alpha = (float)(2 / ((double)k + 1) / ((double)k + 1));
    pair a = {1, k}, inverse = {stored(alpha), stored(alpha * k)};
    pair removed = product(inverse, product(a, inverse));
    inverse = (pair){stored(2 * inverse.d - removed.d), stored(2 * inverse.o - removed.o)};
    if (op == ATN_SOFTPP) {
        float root = (float)sqrt(1 + (double)k);
        inverse = (pair){stored(inverse.d / (root * root)), stored(inverse.o / (root * root))};
    }
    return product(a, product(inverse, product(a, v)));
}

Test(soft_storage, every_array_is_rounded)
{
    atn_context *context = fixture_context(1, NULL);
    double numbers[3 * 40];
    data_normal(4, 3 * 40, numbers);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int i = 0; i < 40; i++) {
            float q[2] = {0, stored((float)numbers[3 * i])}, y[2];
            float v[2] = {stored((float)numbers[3 * i + 1]), stored((float)numbers[3 * i + 2])};
            atn_attention_desc desc = atn_attention_defaults((atn_operator)op, ATN_F32);
            desc.storage = ATN_STORAGE_BF16;
            desc.scale = ATN_SCALE_VALUE, desc.scale_value = 0.7;
            desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 2};
            desc.inverse = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
            desc.inverse.iterations = 1;
            atn_attention_shape shape = {1, 1, 2, 1, 1, 0};
            atn_tensor tq = atn_tensor_dense(q, ATN_F32, 1, 1, 2, 1), tv = tq, ty = tq;
            atn_plan *plan;
            tv.data = v, ty.data = y;
            cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
            atn_attention_inputs inputs = {.q = &tq, .v = &tv};
            cr_expect_geq(atn_attention_forward(plan, &inputs, &ty, NULL), 0);
            pair want = by_hand((atn_operator)op, q[1], (pair){v[0], v[1]});
            cr_expect(y[0] == want.d && y[1] == want.o, "%d: %g %g, expected %g %g", i,
                      (double)y[0], (double)y[1], (double)want.d, (double)want.o);
            atn_plan_free(plan);
        }
    atn_context_free(context);
}

/* The mean of 1 and 1 + 2^-7 is 1 in bf16, and a kernel this narrow tells. */
Test(soft_storage, landmarks_are_rounded)
{
    atn_context *context = fixture_context(1, NULL);
    float q[2] = {1, 1 + 0x1p-7F}, v[2] = {1, 0}, y[2];
    atn_attention_desc desc = atn_attention_variant(ATN_SOFT, 2, ATN_F32);
    atn_attention_shape shape = {1, 1, 2, 1, 1, 0};
    atn_tensor tq = atn_tensor_dense(q, ATN_F32, 1, 1, 2, 1), tv = tq, ty = tq;
    atn_plan *plan;
    desc.storage = ATN_STORAGE_BF16;
    desc.scale = ATN_SCALE_VALUE, desc.scale_value = 1e4;
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_WINDOW, .stride = 2};
    tv.data = v, ty.data = y;
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
    atn_attention_inputs inputs = {.q = &tq, .v = &tv};
    cr_expect_eq(atn_attention_forward(plan, &inputs, &ty, NULL), ATN_OK);
    cr_expect_eq(y[0], 1, "%g", (double)y[0]);
    atn_plan_free(plan);
    atn_context_free(context);
}

/* An iterate that leaves f16's range stops the iteration, and is not taken. */
Test(soft_storage, overflow_of_the_type_is_noticed)
{
    atn_context *context = fixture_context(1, NULL);
    fixture_soft f = make(ATN_SOFT, ATN_INVERSE_NR, ATN_STORAGE_F16);
    f.desc.inverse.alpha = 9; /* beyond 2 / lambda^2 */
    cr_expect_eq(fixture_soft_run(&f, context), ATN_NOT_CONVERGED);
    cr_expect_eq(f.infos[0].stop, ATN_STOP_NONFINITE);
    f.desc.inverse = atn_inverse_defaults(ATN_INVERSE_EIG);
    for (int64_t i = 0; i < f.n * f.c.value_dim; i++)
        f.v[i] = 60000;
    fixture_soft_load(&f);
    cr_expect_eq(fixture_soft_run(&f, context), ATN_NONFINITE, "the output overflows");
    fixture_soft_free(&f);
    atn_context_free(context);
}

Test(soft_storage, backward_is_not_emulated)
{
    atn_context *context = fixture_context(1, NULL);
    fixture_soft f = make(ATN_SOFT, ATN_INVERSE_EIG, ATN_STORAGE_BF16);
    guarded dq = guarded_make(ATN_F32, GUARDED_STRIDED, 1, 2, f.n, f.c.dim);
    guarded dv = guarded_make(ATN_F32, GUARDED_STRIDED, 1, 2, f.n, f.c.value_dim);
    atn_plan *plan;
    cr_assert_eq(atn_attention_plan(context, &f.desc, &f.shape, &plan), ATN_OK);
    cr_expect_eq(atn_attention_backward(
                     plan, &(atn_attention_inputs){.q = &f.q_view.view, .v = &f.v_view.view},
                     &f.out.view, &(atn_gradients){.q = &dq.view, .v = &dv.view}, NULL),
                 ATN_ERR_UNSUPPORTED);
    atn_plan_free(plan);
    guarded_free(&dv);
    guarded_free(&dq);
    fixture_soft_free(&f);
    atn_context_free(context);
}
