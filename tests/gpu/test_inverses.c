/* SPDX-License-Identifier: BSD-3-Clause */
/* The inverses on CUDA where it differs from the CPU: narrow dtypes, matrices that do not fit into
 * shared memory, and calls that give the same bits. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "linear_algebra.h"
#include "matrices.h"
#include "ruler.h"

enum { COUNT = 3 };

typedef struct {
    int64_t m;
    double *values, *want, kappa;
    guarded a, x;
    atn_inverse_info infos[COUNT];
} batch;

/* The same well-conditioned matrix COUNT times, as the dtype holds it. */
static batch batch_make(atn_dtype dtype, int64_t m, double kappa)
{
    double *lambda = data_allocate(m);
    batch b = {.m = m, .values = data_allocate(COUNT * m * m), .want = data_allocate(m * m)};
    b.a = guarded_make(dtype, GUARDED_HEADS, 1, COUNT, m, m);
    b.x = guarded_make(dtype, GUARDED_HEADS, 1, COUNT, m, m);
    cr_assert_eq(ref_latms_symmetric(m, 3, kappa, 5, b.values, lambda), ATN_OK);
    data_round(dtype, m * m, b.values);
    for (int i = 1; i < COUNT; i++)
        memcpy(b.values + i * m * m, b.values, (size_t)(m * m) * sizeof *b.values);
    ref_symmetric_pinv(m, b.values, -1, b.want, NULL, NULL, NULL);
    ref_condition(m, m, b.values, &b.kappa, NULL);
    guarded_set(&b.a, b.values);
    free(lambda);
    return b;
}

static void batch_free(batch *b)
{
    guarded_free(&b->x);
    guarded_free(&b->a);
    free(b->want);
    free(b->values);
}

/* The last matrix's X against the inverse, the others' against it to the bit. */
static void check(atn_context *context, batch *b, atn_inverse_method method, double u)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    const char *name = atn_inverse_name(method), *type = atn_dtype_name(b->a.view.dtype);
    int64_t m = b->m, different = 0;
    double ratio;
    desc.alpha = method == ATN_INVERSE_NR ? 0.5 : 0;
    desc.ridge = 0;
    desc.numerator = method == ATN_INVERSE_NYSTROMFORMER ? 1 : 1.8;
    desc.iterations = method == ATN_INVERSE_NYSTROMFORMER ? 12 : desc.iterations;
    guarded_poison(&b->x);
    atn_status status = fixture_inverse(context, &desc, &b->a, &b->x, b->infos, NULL);
    for (int64_t i = 0; i < m * m; i++) {
        double x = guarded_at(&b->x, 0, 2, i / m, i % m);
        different += x != guarded_at(&b->x, 0, 0, i / m, i % m) ||
                     x != guarded_at(&b->x, 0, 1, i / m, i % m) ||
                     x != guarded_at(&b->x, 0, 2, i % m, i / m);
    }
    ref_difference difference = guarded_compare(&b->x, 0, 2, b->want);
    cr_expect(ref_judge_forward(&difference, b->kappa, m, u, &ratio) == REF_PASS &&
                  status == ATN_OK && different == 0 && b->infos[1].status == ATN_OK,
              "%s %s m=%ld: %s, ratio=%.3g, residual %g, %ld entries differ", name, type, (long)m,
              atn_status_name(status), ratio, b->infos[2].residual, (long)different);
    cr_expect(guarded_unwritten(&b->x) == 0 && guarded_damaged(&b->x) == 0, "%s %s", name, type);
}

Test(cuda_inverse, narrow_types)
{
    static const atn_dtype dtypes[] = {ATN_TF32, ATN_BF16, ATN_F16};
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 3; i++) {
        batch b = batch_make(dtypes[i], 12, 1.9);
        for (int method = 0; method < ATN_INVERSE_COUNT; method++)
            if (method != ATN_INVERSE_NR_ADAPTIVE) /* which has no start here */
                check(context, &b, (atn_inverse_method)method, atn_dtype_roundoff(dtypes[i]));
        batch_free(&b);
    }
    atn_context_free(context);
}

/* Exact methods do not round factors: tf32 and f32 are one type to them, and rounding is seen in
 * an iteration's X. */
Test(cuda_inverse, tf32_rounds_the_iterations_factors_only)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_EIG, ATN_INVERSE_CHOLESKY,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY, ATN_INVERSE_NR_PAPER,
                                                 ATN_INVERSE_CHEBYSHEV_3};
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 5; i++) {
        batch f32 = batch_make(ATN_F32, 9, 5), tf32 = f32;
        atn_inverse_desc desc = atn_inverse_defaults(methods[i]);
        desc.interval_low = methods[i] == ATN_INVERSE_CHEBYSHEV_3 ? 0.1 : 0;
        int64_t different = 0;
        tf32.a = guarded_make(ATN_TF32, GUARDED_HEADS, 1, COUNT, 9, 9);
        tf32.x = guarded_make(ATN_TF32, GUARDED_HEADS, 1, COUNT, 9, 9);
        guarded_set(&f32.a, f32.values);
        memcpy(tf32.a.memory, f32.a.memory, (size_t)f32.a.elements * sizeof(float));
        cr_expect(fixture_inverse(context, &desc, &f32.a, &f32.x, f32.infos, NULL) >= 0);
        cr_expect(fixture_inverse(context, &desc, &tf32.a, &tf32.x, tf32.infos, NULL) >= 0);
        for (int64_t e = 0; e < 81; e++)
            different +=
                guarded_at(&f32.x, 0, 0, e / 9, e % 9) != guarded_at(&tf32.x, 0, 0, e / 9, e % 9);
        cr_expect(i < 3 ? different == 0 : different > 40, "%s: %ld entries differ",
                  atn_inverse_name(methods[i]), (long)different);
        guarded_free(&tf32.x);
        guarded_free(&tf32.a);
        batch_free(&f32);
    }
    atn_context_free(context);
}

/* 90 x 90 in f64 is more than a block's shared memory holds three times. */
Test(cuda_inverse, beyond_shared_memory)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR_SOFTPP, ATN_INVERSE_CHEBYSHEV_3,
                                                 ATN_INVERSE_EIG, ATN_INVERSE_CHOLESKY,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY};
    atn_context *context = fixture_context(1, NULL);
    batch b = batch_make(ATN_F64, 90, 10);
    for (int i = 0; i < 5; i++)
        check(context, &b, methods[i], atn_dtype_roundoff(ATN_F64));
    batch_free(&b);
    atn_context_free(context);
}
