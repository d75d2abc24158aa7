/* SPDX-License-Identifier: BSD-3-Clause */
/* The inverses on CUDA where it differs from the CPU: narrow dtypes, matrices that do not fit into
 * shared memory, steps that all matrices take together, and calls that give the same bits. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "latms.h"
#include "linear_algebra.h"
#include "pairs.h"
#include "ruler.h"

enum { COUNT = 3 };

typedef struct {
    int64_t m;
    double *values, *want, kappa;
    guarded a, x;
    atn_inverse_info infos[COUNT];
} device_batch;

/* The same well-conditioned matrix COUNT times, as the dtype holds it. */
static device_batch batch_make(atn_dtype dtype, int64_t m, double kappa)
{
    double *lambda = data_allocate(m);
    device_batch b = {.m = m, .values = data_allocate(COUNT * m * m), .want = data_allocate(m * m)};
    b.a = guarded_make(dtype, GUARDED_HEADS, 1, COUNT, m, m);
    b.x = guarded_make(dtype, GUARDED_HEADS, 1, COUNT, m, m);
    cr_assert_eq(latms_symmetric(m, 3, kappa, 5, b.values, lambda), ATN_OK);
    data_round(dtype, m * m, b.values);
    for (int i = 1; i < COUNT; i++)
        memcpy(b.values + i * m * m, b.values, (size_t)(m * m) * sizeof *b.values);
    ref_symmetric_pinv(m, b.values, -1, b.want, NULL, NULL, NULL);
    ref_condition(m, m, b.values, &b.kappa, NULL);
    guarded_set(&b.a, b.values);
    free(lambda);
    return b;
}

static void batch_free(device_batch *b)
{
    guarded_free(&b->x);
    guarded_free(&b->a);
    free(b->want);
    free(b->values);
}

/* The last matrix's X against the inverse, the others' against it to the bit. */
static void check(atn_context *context, device_batch *b, atn_inverse_method method, double u)
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
        device_batch b = batch_make(dtypes[i], 12, 1.9);
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
        device_batch f32 = batch_make(ATN_F32, 9, 5), tf32 = f32;
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
    device_batch b = batch_make(ATN_F64, 90, 10);
    for (int i = 0; i < 5; i++)
        check(context, &b, methods[i], atn_dtype_roundoff(ATN_F64));
    batch_free(&b);
    atn_context_free(context);
}

/* ---- Above m = 64: steps in batched products ---- */

static const int64_t large[] = {65, 100, 128};

static bool can_start(const int *v)
{
    return v[0] != ATN_INVERSE_NR_ADAPTIVE && fixture_iterates(v[0]);
}

Test(cuda_inverse, batched)
{
    static const int sizes[] = {ATN_INVERSE_COUNT, ATN_CPU_DTYPE_COUNT, 3};
    atn_context *context = fixture_context(1, NULL);
    pairs chosen = pairs_make(3, sizes, can_start);
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        device_batch b = batch_make((atn_dtype)v[1], large[v[2]], 2);
        check(context, &b, (atn_inverse_method)v[0], atn_dtype_roundoff((atn_dtype)v[1]));
        batch_free(&b);
    }
    pairs_free(&chosen);
    atn_context_free(context);
}

/* |A X A - A|_F / |A|_F of the last matrix's X, in f64. */
static double residual_of(const device_batch *b)
{
    int64_t m = b->m;
    double *product = data_allocate(m * m), sum = 0, norm = 0;
    for (int64_t i = 0; i < m * m; i++)
        for (int64_t k = 0; k < m; k++)
            product[i] += b->values[i / m * m + k] * guarded_at(&b->x, 0, COUNT - 1, k, i % m);
    for (int64_t i = 0; i < m * m; i++) {
        double entry = -b->values[i];
        for (int64_t k = 0; k < m; k++)
            entry += product[i / m * m + k] * b->values[k * m + i % m];
        sum += entry * entry;
        norm += b->values[i] * b->values[i];
    }
    free(product);
    return sqrt(sum / norm);
}

/* The residual is that of the X that is returned, by products of f32, whose own rounding is all
 * that is left of it where cuBLAS, which may but need not round factors to tf32, does not. */
Test(cuda_inverse, batched_narrow_types)
{
    static const atn_dtype dtypes[] = {ATN_TF32, ATN_F16}; /* m u is too much in bf16 */
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR_SOFTPP, ATN_INVERSE_HYPERPOWER_7,
                                                 ATN_INVERSE_CHEBYSHEV_9};
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 2; i++) {
        device_batch b = batch_make(dtypes[i], 67, 1.9);
        for (int j = 0; j < 3; j++) {
            check(context, &b, methods[j], atn_dtype_roundoff(dtypes[i]));
            double want = residual_of(&b), got = b.infos[COUNT - 1].residual;
            double rounding = 2 * sqrt((double)b.m) * atn_dtype_roundoff(ATN_F32);
            cr_expect(fabs(got - want) <= fmax(1e-3 * want, rounding),
                      "%s %s: residual %g, expected %g", atn_inverse_name(methods[j]),
                      atn_dtype_name(dtypes[i]), got, want);
        }
        batch_free(&b);
    }
    atn_context_free(context);
}

/* Matrices that take different ways through one call. */
enum { GOOD, ILL, INDEFINITE, LAST_ROW, ZERO, NONFINITE, OVERFLOWING, MIXED };

static const char *const mixed_names[MIXED] = {"good", "ill-conditioned", "indefinite", "last row",
                                               "zero", "nonfinite",       "overflowing"};

typedef struct {
    guarded a, x;
    atn_inverse_info infos[MIXED];
    atn_status status;
} mixed;

static mixed mixed_make(atn_dtype dtype, int64_t m, double *values)
{
    double *lambda = data_allocate(m);
    int64_t size = m * m;
    mixed b;
    memset(values, 0, (size_t)(MIXED * size) * sizeof *values);
    latms_symmetric(m, 3, 5, 5, values + GOOD * size, lambda);
    latms_symmetric(m, 3, 1e4, 6, values + ILL * size, lambda);
    latms_symmetric(m, 3, 5, 7, values + INDEFINITE * size, lambda);
    for (int64_t i = 0; i < m; i++) {
        values[INDEFINITE * size + i * (m + 1)] -= 0.6;
        values[LAST_ROW * size + i * (m + 1)] = i < m - 1 ? 0.9 : 0.05; /* what is still moving */
    }
    memcpy(values + NONFINITE * size, values, (size_t)size * sizeof *values);
    values[NONFINITE * size + 1] = values[NONFINITE * size + m] = NAN;
    for (int64_t i = 0; i < size; i++) /* alpha, or X_k, leaves the range of the type */
        values[OVERFLOWING * size + i] = values[i] * (dtype == ATN_F32 ? 0x1p-80 : 0x1p-600);
    b.a = guarded_make(dtype, GUARDED_HEADS, 1, MIXED, m, m);
    b.x = guarded_make(dtype, GUARDED_HEADS, 1, MIXED, m, m);
    guarded_set(&b.a, values);
    free(lambda);
    return b;
}

static void mixed_run(atn_context *context, const atn_inverse_desc *desc, mixed *b)
{
    guarded_poison(&b->x);
    memset(b->infos, 0xff, sizeof b->infos);
    b->status = fixture_inverse(context, desc, &b->a, &b->x, b->infos, NULL);
}

static bool near(double a, double b, double relative)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= relative * fmax(fabs(a), fabs(b));
}

/* What does not hang on rounding is the CPU's, which sums in another order: a residual or update
 * that is rounding itself is only as small. The polynomial guard sees |E|_F^2 m u precisely, far
 * below its 1 %. */
static bool same_way(const atn_inverse_info *cpu, const atn_inverse_info *cuda, int64_t m, double u)
{
    double rounding = 100 * (double)m * u;
    return cpu->status == cuda->status && cpu->stop == cuda->stop &&
           cpu->iterations == cuda->iterations && cpu->returned == cuda->returned &&
           cpu->products == cuda->products && cpu->halvings == cuda->halvings &&
           near(cpu->alpha, cuda->alpha, 4 * (double)m * u) &&
           near(cpu->interval_low, cuda->interval_low, 1e-3) &&
           near(cpu->interval_high, cuda->interval_high, 4 * (double)m * u) &&
           (near(cpu->residual, cuda->residual, 0.01) ||
            (cpu->residual <= rounding && cuda->residual <= rounding)) &&
           (near(cpu->last_update, cuda->last_update, 0.01) ||
            (cpu->last_update <= rounding && cuda->last_update <= rounding));
}

/* How far X is from the CPU's, over the CPU's largest entry. */
static double distance_of(const mixed *cpu, const mixed *cuda, int64_t m, int which)
{
    double largest = 0, apart = 0;
    for (int64_t i = 0; i < m * m; i++) {
        double want = guarded_at(&cpu->x, 0, which, i / m, i % m);
        double got = guarded_at(&cuda->x, 0, which, i / m, i % m);
        largest = fmax(largest, fabs(want));
        apart = fabs(got - want) <= apart ? apart : fabs(got - want);
    }
    return largest > 0 ? apart / largest : apart;
}

static void compare(atn_context *cpu_context, atn_context *cuda_context,
                    const atn_inverse_desc *desc, int64_t m, mixed *cpu, mixed *cuda)
{
    double u = atn_dtype_roundoff(cpu->a.view.dtype);
    mixed_run(cpu_context, desc, cpu);
    mixed_run(cuda_context, desc, cuda);
    cr_expect(cpu->status == cuda->status && guarded_unwritten(&cuda->x) == 0 &&
                  guarded_damaged(&cuda->x) == 0,
              "%s: %s, on the CPU %s", atn_inverse_name(desc->method),
              atn_status_name(cuda->status), atn_status_name(cpu->status));
    for (int i = 0; i < MIXED; i++) {
        const atn_inverse_info *a = &cpu->infos[i], *b = &cuda->infos[i];
        double apart = distance_of(cpu, cuda, m, i);
        /* steps let rounding grow by about the condition number (attnum/inverse.h) */
        bool close = apart <= (i == GOOD || b->residual == 1 ? 1e2 : 1e6) * (double)m * u;
        cr_expect(same_way(a, b, m, u) && close,
                  "%s %s %s m=%ld: %s %s after %d, X_%d, %ld products, residual %g, update %g, "
                  "alpha %g, n %d; on the CPU %s %s after %d, X_%d, %ld products, residual %g, "
                  "update %g, alpha %g, n %d; X apart %g",
                  atn_inverse_name(desc->method), atn_dtype_name(cpu->a.view.dtype), mixed_names[i],
                  (long)m, atn_status_name(b->status), atn_stop_name(b->stop), b->iterations,
                  b->returned, (long)b->products, b->residual, b->last_update, b->alpha,
                  b->halvings, atn_status_name(a->status), atn_stop_name(a->stop), a->iterations,
                  a->returned, (long)a->products, a->residual, a->last_update, a->alpha,
                  a->halvings, apart);
    }
}

Test(cuda_inverse, batched_matrices_go_their_own_ways)
{
    atn_context *cuda = fixture_context(1, NULL), *cpu;
    cr_assert_eq(atn_context_create(NULL, &cpu), ATN_OK);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
        int64_t m = dtype == ATN_F64 ? 100 : 65;
        double *values = data_allocate(MIXED * m * m);
        mixed a = mixed_make((atn_dtype)dtype, m, values);
        mixed b = mixed_make((atn_dtype)dtype, m, values);
        for (int method = 0; fixture_iterates(method); method++) {
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            desc.alpha = method == ATN_INVERSE_NR ? 0.5 : 0;
            desc.iterations = method < ATN_INVERSE_NEWTON_SCHULZ ? 12 : 4;
            compare(cpu, cuda, &desc, m, &a, &b);
        }
        guarded_free(&b.x), guarded_free(&b.a), guarded_free(&a.x), guarded_free(&a.a);
        free(values);
    }
    atn_context_free(cpu);
    atn_context_free(cuda);
}
