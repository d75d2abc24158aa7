/* SPDX-License-Identifier: BSD-3-Clause */
/* The inverses as arithmetic in narrow types would store them. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"

/* A matrix ((d, o), (o, d)), its entries rounded to a type. Products of two such numbers are exact
 * in f32 for all of the types, so there is one way to round their sum. */
typedef struct {
    float d, o;
} rounded_pair;

static float stored(atn_storage storage, float x)
{
    atn_storage_round(storage, 1, &x);
    return x;
}

static rounded_pair rounded(atn_storage storage, float d, float o)
{
    return (rounded_pair){stored(storage, d), stored(storage, o)};
}

static rounded_pair product(atn_storage storage, rounded_pair a, rounded_pair b)
{
    return rounded(storage, a.d * b.d + a.o * b.o, a.d * b.o + a.o * b.d);
}

/* B = A + ridge I, X_0 = alpha B and `steps` steps. */
static rounded_pair by_hand(atn_storage storage, rounded_pair a, float alpha, float ridge,
                            int steps)
{
    rounded_pair b = rounded(storage, a.d + ridge, a.o);
    rounded_pair x = rounded(storage, alpha * b.d, alpha * b.o);
    for (int k = 0; k < steps; k++) {
        rounded_pair removed = product(storage, x, product(storage, b, x));
        x = rounded(storage, 2 * x.d - removed.d, 2 * x.o - removed.o);
    }
    return x;
}

static atn_status invert(atn_context *context, const atn_inverse_desc *desc, atn_dtype dtype,
                         int64_t m, void *a, void *x, atn_inverse_info *info)
{
    size_t bytes = (size_t)(m * m) * atn_dtype_size(dtype);
    void *da, *dx; /* where the context's device can read them */
    cr_assert(atn_allocate(context, bytes, &da) == ATN_OK &&
              atn_allocate(context, bytes, &dx) == ATN_OK &&
              atn_upload(context, da, a, bytes) == ATN_OK &&
              atn_upload(context, dx, x, bytes) == ATN_OK);
    atn_tensor ta = atn_tensor_dense(da, dtype, 1, 1, m, m);
    atn_tensor tx = atn_tensor_dense(dx, dtype, 1, 1, m, m);
    atn_status status = atn_inverse(context, desc, &ta, &tx, info, NULL);
    cr_assert_eq(atn_download(context, x, dx, bytes), ATN_OK);
    atn_release(context, dx);
    atn_release(context, da);
    return status;
}

static void multiply(int m, const double *a, const double *b, double *out)
{
    for (int i = 0; i < m * m; i++) {
        out[i] = 0;
        for (int k = 0; k < m; k++)
            out[i] += a[i / m * m + k] * b[k * m + i % m];
    }
}

Test(inverse_storage, every_array_is_rounded)
{
    atn_context *context = fixture_context(1, NULL);
    double numbers[20];
    data_uniform(4, 20, numbers);
    for (int storage = 1; storage < ATN_STORAGE_COUNT; storage++)
        for (int i = 0; i < 20; i++)
            for (int steps = 0; steps <= 4; steps++) {
                atn_storage type = (atn_storage)storage;
                rounded_pair a = rounded(type, 1, (float)numbers[i]);
                float matrix[4] = {a.d, a.o, a.o, a.d}, x[4];
                atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_SOFT);
                atn_inverse_info info;
                desc.iterations = steps;
                desc.storage = type;
                cr_expect_geq(invert(context, &desc, ATN_F32, 2, matrix, x, &info), 0, "%s",
                              atn_last_error(context));
                rounded_pair want = by_hand(type, a, (float)info.alpha, 0.01F, steps);
                cr_expect(x[0] == want.d && x[1] == want.o && x[2] == want.o && x[3] == want.d,
                          "%s %d, %d steps: %g %g, expected %g %g", atn_storage_name(type), i,
                          steps, (double)x[0], (double)x[1], (double)want.d, (double)want.o);
            }
    atn_context_free(context);
}

/* Residuals of a well-conditioned matrix are some u, of every type and by every method. */
Test(inverse_storage, residuals_are_of_the_type)
{
    enum { M = 12 };
    atn_context *context = fixture_context(1, NULL);
    for (int method = 0; method < ATN_INVERSE_COUNT; method++)
        for (int storage = 1; storage < ATN_STORAGE_COUNT; storage++) {
            float a[M * M], x[M * M], again[M * M];
            double u = atn_storage_roundoff((atn_storage)storage);
            for (int i = 0; i < M * M; i++)
                a[i] = stored((atn_storage)storage, expf(-1.5F * (float)abs(i / M - i % M)));
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            atn_inverse_info info;
            desc.alpha = method == ATN_INVERSE_NR ? 0.5 : 0;
            desc.search_limit = method == ATN_INVERSE_NR_ADAPTIVE ? 1.5 : desc.search_limit;
            desc.storage = (atn_storage)storage;
            atn_status status = invert(context, &desc, ATN_F32, M, a, x, &info);
            memcpy(again, x, sizeof x);
            atn_storage_round((atn_storage)storage, M * M, again);
            cr_expect(status == ATN_OK && memcmp(again, x, sizeof x) == 0 &&
                          info.residual < 20 * u && info.residual > u / 20,
                      "%s %s: %s, residual %g u", atn_inverse_name((atn_inverse_method)method),
                      atn_storage_name((atn_storage)storage), atn_status_name(status),
                      info.residual / u);
        }
    atn_context_free(context);
}

/* X is stored in the type; its residual is exact, not that of products in the type.
 * A sum of m products has m u_f32 of its terms, two of them in a row are subtracted. */
Test(inverse_storage, residuals_are_not_rounded)
{
    enum { M = 12 };
    atn_context *context = fixture_context(1, NULL);
    for (int method = 0; method < ATN_INVERSE_PIVOTED_CHOLESKY; method++)
        for (int storage = 1; storage < ATN_STORAGE_COUNT; storage++) {
            float a[M * M], x[M * M];
            double da[M * M], dx[M * M], product[M * M], again[M * M];
            for (int i = 0; i < M * M; i++)
                da[i] = (double)(a[i] = stored((atn_storage)storage,
                                               expf(-1.5F * (float)abs(i / M - i % M))));
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            atn_inverse_info info;
            desc.alpha = method == ATN_INVERSE_NR ? 0.5 : 0;
            desc.search_limit = method == ATN_INVERSE_NR_ADAPTIVE ? 1.5 : desc.search_limit;
            desc.storage = (atn_storage)storage;
            desc.ridge = 0;
            desc.jitter = 0;
            invert(context, &desc, ATN_F32, M, a, x, &info);
            for (int i = 0; i < M * M; i++)
                dx[i] = (double)x[i];
            multiply(M, da, dx, product);
            multiply(M, product, da, again);
            double want = ref_compare_f64(M, M, again, M, da, M).relative_frobenius;
            cr_expect(fabs(info.residual - want) <= 4 * M * 0x1p-24, "%s %s: %g, expected %g",
                      atn_inverse_name((atn_inverse_method)method),
                      atn_storage_name((atn_storage)storage), info.residual, want);
        }
    atn_context_free(context);
}

/* The search for halvings uses A^2 rounded to the type: off by an eighth in bf16's case. */
Test(inverse_storage, the_square_is_rounded)
{
    atn_context *context = fixture_context(1, NULL);
    float a = 1 + 0x1p-7F, x, b = stored(ATN_STORAGE_BF16, a * a);
    double alpha = 2 / (double)a / (double)a;
    cr_assert_neq(b, a * a);
    for (int below = 0; below < 2; below++) { /* the limit on either side of |1 - alpha b| */
        atn_inverse_info info;
        atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_SOFTPP);
        desc.storage = ATN_STORAGE_BF16;
        double exact = fabs(1 - alpha * (double)(a * a)),
               rounded_norm = fabs(1 - alpha * (double)b);
        desc.search_limit = below ? rounded_norm - 1e-6 : (rounded_norm + exact) / 2;
        invert(context, &desc, ATN_F32, 1, &a, &x, &info);
        cr_expect_eq(info.halvings, below || rounded_norm > exact, "%d: %d halvings", below,
                     info.halvings);
    }
    atn_context_free(context);
}

Test(inverse_storage, overflow_of_f16)
{
    enum { M = 4 };
    atn_context *context = fixture_context(1, NULL);
    float a[M * M] = {0}, x[M * M];
    atn_inverse_info info;
    for (int i = 0; i < M; i++)
        a[i * M + i] = i < 3 ? 1 : 0x1p-20F; /* 1/a leaves f16, alpha a does not */
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR);
    desc.alpha = 1.5, desc.iterations = 60, desc.storage = ATN_STORAGE_F16;
    cr_expect_eq(invert(context, &desc, ATN_F32, M, a, x, &info), ATN_NOT_CONVERGED);
    cr_expect(info.stop == ATN_STOP_NONFINITE && info.iterations == info.returned &&
                  info.iterations > 25 && x[15] > 20000 && x[15] < 65520,
              "%s after %d: %g", atn_stop_name(info.stop), info.iterations, (double)x[15]);
    desc.storage = ATN_STORAGE_BF16;
    cr_expect_eq(invert(context, &desc, ATN_F32, M, a, x, &info), ATN_OK, "bf16 has f32's range");
    atn_context_free(context);
}

Test(inverse_storage, what_is_refused)
{
    atn_context *context = fixture_context(1, NULL);
    double wide[4] = {1, 0.5, 0.5, 1}, wide_x[4];
    float a[4] = {1, 0.5F, 0.5F, 1}, x[4] = {7, 7, 7, 7};
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_EIG);
    desc.storage = ATN_STORAGE_BF16;
    cr_expect_eq(invert(context, &desc, ATN_F64, 2, wide, wide_x, NULL), ATN_ERR_DTYPE);
    a[3] = 1 + 0x1p-10F;
    cr_expect_eq(invert(context, &desc, ATN_F32, 2, a, x, NULL), ATN_ERR_VALUE);
    cr_expect(strstr(atn_last_error(context), "bf16"), "%s", atn_last_error(context));
    desc.storage = ATN_STORAGE_TF32;
    cr_expect_eq(invert(context, &desc, ATN_F32, 2, a, x, NULL), ATN_OK, "tf32 has that number");
    desc.storage = ATN_STORAGE_COUNT;
    x[0] = 7;
    cr_expect_eq(invert(context, &desc, ATN_F32, 2, a, x, NULL), ATN_ERR_VALUE);
    cr_expect_eq(x[0], 7);
    a[3] = NAN;
    desc.storage = ATN_STORAGE_BF16;
    cr_expect_eq(invert(context, &desc, ATN_F32, 2, a, x, NULL), ATN_NONFINITE);
    a[3] = 1;
    guarded ta = guarded_make(ATN_F32, GUARDED_DENSE, 1, 1, 2, 2);
    guarded td = guarded_make(ATN_F32, GUARDED_DENSE, 1, 1, 2, 2);
    const double identity[4] = {1, 0, 0, 1};
    guarded_set(&ta, identity);
    cr_expect_eq(fixture_inverse_backward(context, &desc, ATN_GRADIENT_CLOSED, &ta, &ta, &td, NULL),
                 ATN_ERR_UNSUPPORTED);
    guarded_free(&td);
    guarded_free(&ta);
    atn_context_free(context);
}

/* An operator has one storage; its inverse may name it or leave it to the operator. On CUDA it has
 * dtypes instead. */
Test(inverse_storage, of_an_operator)
{
    atn_context *context = fixture_context(1, NULL);
    if (fixture_device() == ATN_CUDA) {
        atn_context_free(context);
        return;
    }
    for (int plan_storage = 0; plan_storage < ATN_STORAGE_COUNT; plan_storage++)
        for (int storage = 0; storage < ATN_STORAGE_COUNT; storage++) {
            atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
            atn_attention_shape shape = {1, 1, 8, 2, 2, 0};
            atn_plan *plan;
            desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 4};
            desc.storage = (atn_storage)plan_storage;
            desc.inverse.storage = (atn_storage)storage;
            bool right = storage == ATN_STORAGE_NATIVE || storage == plan_storage;
            cr_expect_eq(atn_attention_plan(context, &desc, &shape, &plan),
                         right ? ATN_OK : ATN_ERR_VALUE, "%d in %d: %s", storage, plan_storage,
                         atn_last_error(context));
            atn_plan_free(plan);
        }
    atn_context_free(context);
}
