/* SPDX-License-Identifier: BSD-3-Clause */
/* Y = X W: of a formed X its product, of a factor the solution without X. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "guarded.h"
#include "matrices.h"

enum { M = 23, K = 7, COUNT = 3 };

/* COUNT kernel matrices, right sides, and the results. */
typedef struct {
    double *a, *w, *y;
    guarded ga, gw, gy;
    atn_inverse_info infos[COUNT];
} apply_problem;

static apply_problem problem_make(atn_dtype dtype, guarded_layout layout, ref_matrix kind)
{
    apply_problem p = {.a = data_allocate(COUNT * M * M),
                       .w = data_allocate(COUNT * M * K),
                       .y = data_allocate(COUNT * M * K)};
    for (int64_t i = 0; i < COUNT; i++)
        ref_matrix_make(kind, M, 0.2 + 0.1 * (double)i, p.a + i * M * M, NULL);
    for (int64_t i = 0; i < COUNT * M * M && kind == REF_EQUICORRELATED; i++) {
        int64_t row = i / M % M, col = i % M; /* so that pivots are not in order */
        p.a[i] *= (double)((1 + row * 7 % M) * (1 + col * 7 % M));
    }
    data_normal(5, COUNT * M * K, p.w);
    data_round(dtype, COUNT * M * M, p.a);
    data_round(dtype, COUNT * M * K, p.w);
    p.ga = guarded_make(dtype, layout < GUARDED_STRIDED ? layout : GUARDED_HEADS, 1, COUNT, M, M);
    p.gw = guarded_make(dtype, layout, 1, COUNT, M, K);
    p.gy = guarded_make(dtype, layout, 1, COUNT, M, K);
    guarded_set(&p.ga, p.a);
    guarded_set(&p.gw, p.w);
    return p;
}

static void problem_free(apply_problem *p)
{
    guarded_free(&p->ga);
    guarded_free(&p->gw);
    guarded_free(&p->gy);
    free(p->a);
    free(p->w);
    free(p->y);
}

static atn_status apply(atn_context *context, apply_problem *p, atn_inverse_method method)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    guarded_poison(&p->gy);
    memset(p->infos, 0xff, sizeof p->infos);
    atn_status status =
        atn_inverse_apply(context, &desc, &p->ga.view, &p->gw.view, &p->gy.view, p->infos);
    guarded_get(&p->gy, p->y);
    return status;
}

/* The largest |y - X w| / (|X| |w|), in (M + 1) u: a product's bound. */
static double product_ratio(const apply_problem *p, const double *x, double u)
{
    double worst = 0;
    for (int64_t i = 0; i < COUNT; i++)
        for (int64_t r = 0; r < M; r++)
            for (int64_t k = 0; k < K; k++) {
                long double sum = 0, size = 0;
                for (int64_t c = 0; c < M; c++) {
                    long double term = (long double)x[(i * M + r) * M + c] *
                                       (long double)p->w[(i * M + c) * K + k];
                    sum += term;
                    size += fabsl(term);
                }
                double error = (double)fabsl((long double)p->y[(i * M + r) * K + k] - sum);
                if (size == 0 && error == 0) /* X = 0, as nr-adaptive leaves it */
                    continue;
                double ratio = error / ((M + 1) * u * (double)size);
                worst = isnan(worst) || ratio <= worst ? worst : ratio;
            }
    return worst;
}

/* Every method that forms X: the product with the X of atn_inverse. */
Test(inverse_apply, is_the_product)
{
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = ATN_F32; dtype <= ATN_F64; dtype++)
        for (int layout = 0; layout < GUARDED_LAYOUT_COUNT; layout++) {
            apply_problem p = problem_make((atn_dtype)dtype, (guarded_layout)layout, REF_CIRCULANT);
            guarded gx = guarded_make((atn_dtype)dtype, GUARDED_DENSE, 1, COUNT, M, M);
            double *x = data_allocate(COUNT * M * M);
            for (int method = ATN_INVERSE_NR_PAPER; method < ATN_INVERSE_PIVOTED_CHOLESKY;
                 method++) {
                atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
                atn_inverse_info infos[COUNT];
                atn_status want = atn_inverse(context, &desc, &p.ga.view, &gx.view, infos, NULL);
                guarded_get(&gx, x);
                const char *name = atn_inverse_name((atn_inverse_method)method);
                cr_expect_eq(apply(context, &p, (atn_inverse_method)method), want, "%s", name);
                double ratio = product_ratio(&p, x, atn_dtype_roundoff((atn_dtype)dtype));
                cr_expect(ratio <= 1, "%s: ratio %g", name, ratio);
                cr_expect(guarded_damaged(&p.gy) == 0 && guarded_unwritten(&p.gy) == 0, "%s", name);
                cr_expect(memcmp(infos, p.infos, sizeof infos) == 0, "%s: infos", name);
            }
            free(x);
            guarded_free(&gx);
            problem_free(&p);
        }
    atn_context_free(context);
}

/* The largest |A y - w|_i in the bound of a solution by Cholesky's factor (Higham 2002, Theorem
 * 10.4): gamma_{3m+1} |L| |L^T| |y|, (|L| |L^T|)_ij <= sqrt(a_ii a_jj). */
static double solution_ratio(const apply_problem *p, double u)
{
    double worst = 0;
    for (int64_t i = 0; i < COUNT; i++)
        for (int64_t r = 0; r < M; r++)
            for (int64_t k = 0; k < K; k++) {
                long double sum = -(long double)p->w[(i * M + r) * K + k], size = 0;
                for (int64_t c = 0; c < M; c++) {
                    const double *a = p->a + i * M * M;
                    long double y = (long double)p->y[(i * M + c) * K + k];
                    sum += (long double)a[r * M + c] * y;
                    size += sqrtl((long double)(a[r * M + r] * a[c * M + c])) * fabsl(y);
                }
                double ratio = (double)(fabsl(sum) / size) / ((3 * M + 1) * u);
                worst = isnan(worst) || ratio <= worst ? worst : ratio;
            }
    return worst;
}

Test(inverse_apply, solves_by_the_factor)
{
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = ATN_F32; dtype <= ATN_F64; dtype++)
        for (int layout = 0; layout < GUARDED_LAYOUT_COUNT; layout++) {
            apply_problem p =
                problem_make((atn_dtype)dtype, (guarded_layout)layout, REF_EQUICORRELATED);
            cr_expect_eq(apply(context, &p, ATN_INVERSE_PIVOTED_CHOLESKY), ATN_OK);
            double ratio = solution_ratio(&p, atn_dtype_roundoff((atn_dtype)dtype));
            cr_expect(ratio <= 1, "ratio %g", ratio);
            cr_expect(guarded_damaged(&p.gy) == 0 && guarded_unwritten(&p.gy) == 0);
            for (int i = 0; i < COUNT; i++)
                cr_expect(p.infos[i].rank == M && isnan(p.infos[i].residual));
            problem_free(&p);
        }
    atn_context_free(context);
}

/* All ones have rank 1: the first row is solved for, the others are 0. */
Test(inverse_apply, leaves_out_what_has_no_pivot)
{
    atn_context *context = fixture_context(1, NULL);
    apply_problem p = problem_make(ATN_F64, GUARDED_STRIDED, REF_ONES);
    cr_expect_eq(apply(context, &p, ATN_INVERSE_PIVOTED_CHOLESKY), ATN_OK);
    for (int64_t i = 0; i < COUNT * M * K; i++)
        cr_expect_eq(p.y[i], i / K % M == 0 ? p.w[i] : 0, "element %d", (int)i);
    cr_expect(p.infos[0].rank == 1);
    problem_free(&p);
    atn_context_free(context);
}

/* A factor that leaves the type's range has rank 0: Y = 0, as X would be. */
Test(inverse_apply, overflow_of_the_factor)
{
    atn_context *context = fixture_context(1, NULL);
    float a[] = {0x1p-100F, 0x1p100F, 0x1p100F, 0x1p-100F}, w[] = {1, 2}, y[] = {NAN, NAN};
    atn_tensor ta = atn_tensor_dense(a, ATN_F32, 1, 1, 2, 2),
               tw = atn_tensor_dense(w, ATN_F32, 1, 1, 2, 1),
               ty = atn_tensor_dense(y, ATN_F32, 1, 1, 2, 1);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_PIVOTED_CHOLESKY);
    atn_inverse_info info;
    cr_expect_eq(atn_inverse_apply(context, &desc, &ta, &tw, &ty, &info), ATN_SINGULAR);
    cr_expect(y[0] == 0 && y[1] == 0 && info.rank == 0, "%g %g", (double)y[0], (double)y[1]);
    atn_context_free(context);
}

/* A matrix that is not finite gives zeros; the others are not affected. */
Test(inverse_apply, nonfinite)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_CHOLESKY,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY};
    atn_context *context = fixture_context(2, NULL);
    for (int i = 0; i < 3; i++) {
        apply_problem p = problem_make(ATN_F64, GUARDED_DENSE, REF_EQUICORRELATED);
        p.a[M * M + 5 * M + 5] = NAN;
        guarded_set(&p.ga, p.a);
        cr_expect_eq(apply(context, &p, methods[i]), ATN_NONFINITE);
        for (int64_t j = 0; j < M * K; j++)
            cr_expect(p.y[M * K + j] == 0 && p.y[j] != 0 && p.y[2 * M * K + j] != 0);
        problem_free(&p);
    }
    atn_context_free(context);
}

Test(inverse_apply, threads_change_nothing)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_CHEBYSHEV_2,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY};
    for (int i = 0; i < 2; i++) {
        apply_problem p[2];
        for (int threads = 1; threads <= 2; threads++) {
            atn_context *context = fixture_context(threads, NULL);
            p[threads - 1] = problem_make(ATN_F32, GUARDED_DENSE, REF_CIRCULANT);
            apply(context, &p[threads - 1], methods[i]);
            atn_context_free(context);
        }
        cr_expect(guarded_same_bits(&p[0].gy, &p[1].gy));
        problem_free(&p[0]);
        problem_free(&p[1]);
    }
}

/* So many matrices that a thread has several; statuses and infos of each as well. */
Test(inverse_apply, many_matrices_on_threads)
{
    enum { MANY = 70, SIZE = 9, SIDES = 5 };
    static float a[MANY * SIZE * SIZE], w[MANY * SIZE * SIDES], y[2][MANY * SIZE * SIDES];
    static double kernel[SIZE * SIZE], sides[MANY * SIZE * SIDES];
    static atn_inverse_info infos[2][MANY];
    for (int64_t i = 0; i < MANY; i++) {
        ref_matrix_make(REF_CIRCULANT, SIZE, 0.1 + 0.01 * (double)i, kernel, NULL);
        for (int64_t j = 0; j < SIZE * SIZE; j++)
            a[i * SIZE * SIZE + j] = i == 33 ? NAN : (float)kernel[j];
    }
    data_normal(7, MANY * SIZE * SIDES, sides);
    for (int64_t i = 0; i < MANY * SIZE * SIDES; i++)
        w[i] = (float)sides[i];
    atn_tensor ta = atn_tensor_dense(a, ATN_F32, 2, MANY / 2, SIZE, SIZE),
               tw = atn_tensor_dense(w, ATN_F32, 2, MANY / 2, SIZE, SIDES);
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR_SOFTPP, ATN_INVERSE_CHEBYSHEV_2,
                                                 ATN_INVERSE_CHOLESKY,
                                                 ATN_INVERSE_PIVOTED_CHOLESKY};
    for (int i = 0; i < 4; i++) {
        atn_inverse_desc desc = atn_inverse_defaults(methods[i]);
        for (int k = 0; k < 2; k++) {
            atn_context *context = fixture_context(k == 0 ? 1 : 3, NULL);
            atn_tensor ty = atn_tensor_dense(y[k], ATN_F32, 2, MANY / 2, SIZE, SIDES);
            cr_expect_eq(atn_inverse_apply(context, &desc, &ta, &tw, &ty, infos[k]), ATN_NONFINITE);
            atn_context_free(context);
        }
        cr_expect(memcmp(y[0], y[1], sizeof y[0]) == 0, "%s", atn_inverse_name(methods[i]));
        cr_expect(memcmp(infos[0], infos[1], sizeof infos[0]) == 0, "%s: infos",
                  atn_inverse_name(methods[i]));
        for (int64_t j = 0; j < MANY; j++)
            cr_expect((infos[0][j].status == ATN_NONFINITE) == (j == 33), "matrix %d", (int)j);
    }
}

/* Larger than the matrices that the library factorises itself: LAPACK's pivots. |A y - w| <= (3 m +
 * 1) u m |A| |y| by Cholesky's backward error, with |A| <= m for a kernel matrix and its ridge. */
Test(inverse_apply, large_ones_by_lapack)
{
    enum { LARGE = 401 };
    double *a = data_allocate(2 * LARGE * LARGE), *x = a + LARGE * LARGE;
    double *w = data_allocate(2 * LARGE), *y = w + LARGE;
    ref_matrix_make(REF_CIRCULANT, LARGE, 0.3, a, NULL);
    for (int64_t i = 0; i < LARGE; i++) /* pivots out of order */
        a[i * LARGE + i] += 1 + (double)(i * 7 % 11);
    data_normal(3, LARGE, w);
    atn_context *context = fixture_context(1, NULL);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_PIVOTED_CHOLESKY);
    atn_tensor ta = atn_tensor_dense(a, ATN_F64, 1, 1, LARGE, LARGE), tx = ta,
               tw = atn_tensor_dense(w, ATN_F64, 1, 1, LARGE, 1), ty = tw;
    atn_inverse_info info;
    tx.data = x;
    ty.data = y;
    cr_expect_eq(atn_inverse_apply(context, &desc, &ta, &tw, &ty, &info), ATN_OK);
    cr_expect(info.rank == LARGE);
    cr_expect_eq(atn_inverse(context, &desc, &ta, &tx, NULL, NULL), ATN_OK);
    double worst = 0, largest = 0, apart = 0;
    for (int64_t i = 0; i < LARGE; i++) {
        long double sum = -(long double)w[i], other = 0;
        for (int64_t j = 0; j < LARGE; j++) {
            sum += (long double)a[i * LARGE + j] * (long double)y[j];
            other += (long double)x[i * LARGE + j] * (long double)w[j];
        }
        worst = fmax(worst, (double)fabsl(sum));
        largest = fmax(largest, fabs(y[i]));
        apart = fmax(apart, (double)fabsl(other - (long double)y[i]));
    }
    double bound = (3 * LARGE + 1) * 0x1p-53 * LARGE * (LARGE + 12) * largest;
    cr_expect(worst <= bound, "%g, bound %g", worst, bound);
    cr_expect(apart <= bound, "X w - y: %g, bound %g", apart, bound); /* |A^-1| <= 1 */
    free(a);
    free(w);
    atn_context_free(context);
}

Test(inverse_apply, refuses)
{
    double a[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, w[9], y[9];
    atn_context *context = fixture_context(1, NULL);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_CHOLESKY), unknown = desc;
    atn_inverse_desc stored = desc;
    atn_tensor ta = atn_tensor_dense(a, ATN_F64, 1, 1, 3, 3), skew = ta, none = ta;
    atn_tensor tw = atn_tensor_dense(w, ATN_F64, 1, 1, 3, 2), ty = tw, shorter = tw, narrow = tw;
    double skewed[9] = {1, 1, 0, 0, 1, 0, 0, 0, 1};
    skew.data = skewed;
    ty.data = y;
    none.batch = 0;
    shorter.rows = 2;
    narrow.dtype = ATN_F32;
    unknown.method = ATN_INVERSE_COUNT;
    stored.storage = ATN_STORAGE_BF16;
    data_normal(1, 9, w);
    const struct {
        const char *what;
        const atn_inverse_desc *desc;
        atn_tensor *a, *w, *y;
        atn_status status;
    } rows[] = {
        {"all well", &desc, &ta, &tw, &ty, ATN_OK},
        {"no description", NULL, &ta, &tw, &ty, ATN_ERR_NULL},
        {"no a", &desc, NULL, &tw, &ty, ATN_ERR_NULL},
        {"no w", &desc, &ta, NULL, &ty, ATN_ERR_NULL},
        {"no y", &desc, &ta, &tw, NULL, ATN_ERR_NULL},
        {"unknown method", &unknown, &ta, &tw, &ty, ATN_ERR_VALUE},
        {"a storage of f32", &stored, &ta, &tw, &ty, ATN_ERR_DTYPE},
        {"not symmetric", &desc, &skew, &tw, &ty, ATN_ERR_VALUE},
        {"w too short", &desc, &ta, &shorter, &ty, ATN_ERR_SHAPE},
        {"y of another shape", &desc, &ta, &ta, &ty, ATN_ERR_SHAPE},
        {"w in f32", &desc, &ta, &narrow, &ty, ATN_ERR_DTYPE},
        {"y on w", &desc, &ta, &tw, &tw, ATN_ERR_ALIAS},
        {"y on a", &desc, &ta, &tw, &ta, ATN_ERR_SHAPE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(
            atn_inverse_apply(context, rows[i].desc, rows[i].a, rows[i].w, rows[i].y, NULL),
            rows[i].status, "%s", rows[i].what);
    tw.cols = tw.row_stride = ty.cols = ty.row_stride = 3;
    ty.data = a;
    cr_expect_eq(atn_inverse_apply(context, &desc, &ta, &tw, &ty, NULL), ATN_ERR_ALIAS);
    tw.batch = ty.batch = 0;
    cr_expect_eq(atn_inverse_apply(context, &desc, &none, &tw, &ty, NULL), ATN_OK);
    atn_inverse_info info = {.rank = 7};
    atn_tensor empty = atn_tensor_dense(NULL, ATN_F64, 1, 1, 0, 0);
    cr_expect_eq(atn_inverse_apply(context, &desc, &empty, &empty, &empty, &info), ATN_OK);
    cr_expect_eq(info.rank, 0, "a matrix without rows has an info, too");
    atn_context_free(context);
}
