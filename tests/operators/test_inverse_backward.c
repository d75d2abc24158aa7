/* SPDX-License-Identifier: BSD-3-Clause */
/* The inverses' backward: <da, E> must be the slope of <dx, X> along symmetric changes E of A. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "linear_algebra.h"
#include "newton.h"

enum { M = 7, COUNT = 4, SIZE = M * M };

/* X as a function of A, in f64, for all matrices of a call. */
typedef void (*inverse_function)(const atn_inverse_desc *desc, const double *a, double *x);

static void exact_inverses(const atn_inverse_desc *desc, const double *a, double *x)
{
    for (int i = 0; i < COUNT; i++)
        cr_assert_geq(ref_symmetric_pinv(M, a + i * SIZE, -1, x + i * SIZE, NULL, NULL, NULL), 0);
}

static void filters(const atn_inverse_desc *desc, const double *a, double *x)
{
    double alpha[COUNT];
    int halvings[COUNT];
    fixture_alpha(desc, COUNT, M, a, alpha, halvings);
    for (int i = 0; i < COUNT; i++)
        fixture_filter(desc, M, a + i * SIZE, alpha[i], x + i * SIZE);
}

/* COUNT kernel-like matrices: 1 on the diagonal, smaller off it, positive definite, the largest row
 * sum well apart from the others. */
static void make_matrices(uint64_t seed, double *a)
{
    double points[M * 3];
    for (int i = 0; i < COUNT; i++) {
        data_normal(seed + (uint64_t)i, M * 3, points);
        for (int c = 0; c < 3; c++) /* one point among the others */
            points[c] *= 0.1 * (i + 1);
        for (int j = 0; j < SIZE; j++) {
            double distance = 0;
            for (int c = 0; c < 3; c++)
                distance += pow(points[j / M * 3 + c] - points[j % M * 3 + c], 2);
            a[i * SIZE + j] = exp(-0.3 * distance);
        }
    }
}

static void symmetric_noise(uint64_t seed, double *e)
{
    data_normal(seed, COUNT * SIZE, e);
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < SIZE; j++)
            e[i * SIZE + j] = e[i * SIZE + j % M * M + j / M];
}

static double dot(int64_t count, const double *a, const double *b)
{
    long double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (long double)a[i] * b[i];
    return (double)sum;
}

/* Sixth order, along a path A(t). */
typedef void (*path)(const double *a, const double *direction, double t, double *moved);

static void straight(const double *a, const double *direction, double t, double *moved)
{
    for (int i = 0; i < COUNT * SIZE; i++)
        moved[i] = a[i] + t * direction[i];
}

static double slope(inverse_function inverse, const atn_inverse_desc *desc, path move,
                    const double *a, const double *direction, const double *dx, double step)
{
    static const int weights[] = {-1, 9, -45, 0, 45, -9, 1};
    double moved[COUNT * SIZE], x[COUNT * SIZE];
    long double sum = 0;
    for (int k = 0; k < 7; k++) {
        move(a, direction, (k - 3) * step, moved);
        inverse(desc, moved, x);
        sum += weights[k] * (long double)dot(COUNT * SIZE, dx, x);
    }
    return (double)(sum / (60 * (long double)step));
}

static atn_status run(atn_context *context, const atn_inverse_desc *desc, atn_gradient gradient,
                      atn_dtype dtype, const double *a, const double *dx, double *da,
                      atn_inverse_info *infos)
{
    guarded ta = guarded_make(dtype, GUARDED_HEADS, 2, 2, M, M);
    guarded tx = guarded_make(dtype, GUARDED_HEADS, 2, 2, M, M);
    guarded td = guarded_make(dtype, GUARDED_HEADS, 2, 2, M, M);
    guarded_set(&ta, a);
    guarded_set(&tx, dx);
    atn_status status = fixture_inverse_backward(context, desc, gradient, &ta, &tx, &td, infos);
    cr_expect(status < 0 || (guarded_unwritten(&td) == 0 && guarded_damaged(&td) == 0));
    guarded_get(&td, da);
    guarded_free(&td);
    guarded_free(&tx);
    guarded_free(&ta);
    return status;
}

static void expect_symmetric(const double *da)
{
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < SIZE; j++)
            cr_expect_eq(da[i * SIZE + j], da[i * SIZE + j % M * M + j / M]);
}

static atn_inverse_desc inverse_for(int method)
{
    atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
    desc.alpha = method == ATN_INVERSE_NR ? 0.05 : 0;
    fixture_interval(&desc);
    desc.jitter = 0;
    if (method == ATN_INVERSE_NR_ADAPTIVE)
        desc.search_limit = 1.2;
    return desc;
}

/* Through the steps, few and none; alpha of each matrix and of the whole call. */
Test(inverse_backward, steps)
{
    atn_context *context = fixture_context(2, NULL);
    double a[COUNT * SIZE], dx[COUNT * SIZE], e[COUNT * SIZE], da[COUNT * SIZE], worst = 0;
    make_matrices(3, a);
    for (int i = 0; i < SIZE; i++) /* of the same spectrum and norm, with entries of both signs */
        a[SIZE + i] *= (i / M + i % M) % 2 ? -1 : 1;
    data_normal(50, COUNT * SIZE, dx);
    for (int method = 0; method <= ATN_INVERSE_NR_SOFTPP; method++)
        for (int steps = 0; steps <= 8; steps += 2)
            for (int scope = ATN_SCOPE_MATRIX; scope <= ATN_SCOPE_BATCH; scope++) {
                atn_inverse_desc desc = inverse_for(method);
                desc.iterations = steps;
                desc.scope = (atn_alpha_scope)scope;
                atn_status status =
                    run(context, &desc, ATN_GRADIENT_STEPS, ATN_F64, a, dx, da, NULL);
                symmetric_noise(60 + (uint64_t)method, e);
                double want = slope(filters, &desc, straight, a, e, dx, 3e-4);
                double error =
                    fabs(dot(COUNT * SIZE, da, e) - want) / sqrt(dot(COUNT * SIZE, da, da));
                cr_expect(status >= 0 && error <= 1e-9, "%s T=%d scope %d: %s, off by %.3g",
                          atn_inverse_name(desc.method), steps, scope, atn_status_name(status),
                          error);
                expect_symmetric(da);
                worst = fmax(worst, error);
            }
    fprintf(stderr, "backward through the steps: off by up to %.2g\n", worst);
    atn_context_free(context);
}

/* Eq. 12 for every exact inverse. */
Test(inverse_backward, closed)
{
    atn_context *context = fixture_context(2, NULL);
    double a[COUNT * SIZE], dx[COUNT * SIZE], e[COUNT * SIZE], da[COUNT * SIZE];
    make_matrices(3, a);
    data_normal(50, COUNT * SIZE, dx);
    symmetric_noise(60, e);
    for (int method = ATN_INVERSE_EIG; method < ATN_INVERSE_COUNT; method++)
        for (int gradient = 0; gradient < ATN_GRADIENT_COUNT; gradient++) {
            atn_inverse_desc desc = inverse_for(method);
            if (gradient == ATN_GRADIENT_STEPS ||
                (gradient == ATN_GRADIENT_PSEUDO && method != ATN_INVERSE_EIG))
                continue;
            atn_status status =
                run(context, &desc, (atn_gradient)gradient, ATN_F64, a, dx, da, NULL);
            double want = slope(exact_inverses, &desc, straight, a, e, dx, 3e-5);
            double error = fabs(dot(COUNT * SIZE, da, e) - want) / sqrt(dot(COUNT * SIZE, da, da));
            cr_expect(status >= 0 && error <= 1e-9, "%s %s: %s, off by %.3g",
                      atn_inverse_name(desc.method), atn_gradient_name((atn_gradient)gradient),
                      atn_status_name(status), error);
            expect_symmetric(da);
        }
    atn_context_free(context);
}

/* Eq. 12 with the X of an unconverged iteration is exactly -X G X. */
Test(inverse_backward, closed_is_equation_12_whatever_x_is)
{
    atn_context *context = fixture_context(2, NULL);
    double a[COUNT * SIZE], dx[COUNT * SIZE], x[COUNT * SIZE], da[COUNT * SIZE], error = 0;
    make_matrices(3, a);
    symmetric_noise(50, dx);
    for (int method = 0; fixture_iterates(method); method++) {
        atn_inverse_desc desc = inverse_for(method);
        desc.iterations = 3;
        cr_expect_geq(run(context, &desc, ATN_GRADIENT_CLOSED, ATN_F64, a, dx, da, NULL), 0);
        filters(&desc, a, x);
        for (int i = 0; i < COUNT * SIZE; i++) {
            const double *row = x + i / M * M, *other = x + (i / SIZE * M + i % M) * M;
            long double sum = 0;
            for (int j = 0; j < SIZE; j++)
                sum += (long double)row[j / M] * dx[i / SIZE * SIZE + j] * other[j % M];
            error = fmax(error, fabs(da[i] + (double)sum) / (1 + fabs((double)sum)));
        }
    }
    cr_expect(error <= 1e-11, "off by %.3g", error); /* chebyshev-9's coefficients are near 100 */
    atn_context_free(context);
}

/* (I + t S) A (I + t S)^T: the rank stays. */
static void congruent(const double *a, const double *s, double t, double *moved)
{
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < SIZE; j++) {
            long double sum = 0;
            for (int k = 0; k < SIZE; k++) {
                int p = k / M, q = k % M, row = j / M, col = j % M;
                sum += ((row == p) + (long double)t * s[i * SIZE + row * M + p]) * a[i * SIZE + k] *
                       ((col == q) + (long double)t * s[i * SIZE + col * M + q]);
            }
            moved[i * SIZE + j] = (double)sum;
        }
}

/* Keeps the eigenvalues above the gap. */
static void pseudo_inverses(const atn_inverse_desc *desc, const double *a, double *x)
{
    for (int i = 0; i < COUNT; i++)
        cr_assert_geq(
            ref_symmetric_pinv(M, a + i * SIZE, desc->rcond, x + i * SIZE, NULL, NULL, NULL), 0);
}

/* Singular matrices of rank 4 that keep it, and dx that sees the null space. */
Test(inverse_backward, pseudo_inverse_at_constant_rank)
{
    enum { RANK = 4 };
    atn_context *context = fixture_context(2, NULL);
    double a[COUNT * SIZE], dx[COUNT * SIZE], s[COUNT * SIZE], da[COUNT * SIZE], e[COUNT * SIZE];
    double factors[COUNT * M * RANK];
    atn_inverse_info infos[COUNT];
    data_normal(9, COUNT * M * RANK, factors);
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < SIZE; j++) {
            a[i * SIZE + j] = 0;
            for (int r = 0; r < RANK; r++)
                a[i * SIZE + j] += factors[(i * M + j / M) * RANK + r] * (r % 2 ? -1 : 1) *
                                   factors[(i * M + j % M) * RANK + r];
        }
    data_normal(50, COUNT * SIZE, dx);
    data_normal(51, COUNT * SIZE, s);
    atn_inverse_desc desc = inverse_for(ATN_INVERSE_EIG);
    desc.rcond = 1e-9;
    cr_expect_eq(run(context, &desc, ATN_GRADIENT_PSEUDO, ATN_F64, a, dx, da, infos), ATN_OK);
    for (int i = 0; i < COUNT; i++)
        cr_expect_eq(infos[i].rank, RANK);
    for (int i = 0; i < COUNT * SIZE; i++) { /* A'(0) = S A + A S^T */
        int matrix = i / SIZE, row = i % SIZE / M, col = i % M;
        e[i] = 0;
        for (int k = 0; k < M; k++)
            e[i] += s[matrix * SIZE + row * M + k] * a[matrix * SIZE + k * M + col] +
                    a[matrix * SIZE + row * M + k] * s[matrix * SIZE + col * M + k];
    }
    double want = slope(pseudo_inverses, &desc, congruent, a, s, dx, 1e-4);
    double error = fabs(dot(COUNT * SIZE, da, e) - want) / sqrt(dot(COUNT * SIZE, da, da));
    cr_expect(error <= 1e-9, "off by %.3g", error);
    cr_expect_eq(run(context, &desc, ATN_GRADIENT_CLOSED, ATN_F64, a, dx, da, infos), ATN_OK);
    cr_expect(fabs(dot(COUNT * SIZE, da, e) - want) > 1e-2 * fabs(want),
              "Eq. 12 is exact here too");
    expect_symmetric(da);
    atn_context_free(context);
}

Test(inverse_backward, threads_change_no_bit)
{
    double a[COUNT * SIZE], dx[COUNT * SIZE], da[2][COUNT * SIZE];
    make_matrices(5, a);
    data_normal(50, COUNT * SIZE, dx);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
        atn_inverse_desc desc = inverse_for(ATN_INVERSE_NR_SOFTPP);
        data_round((atn_dtype)dtype, COUNT * SIZE, a);
        for (int i = 0; i < 2; i++) {
            atn_context *context = fixture_context(i ? 3 : 1, NULL);
            run(context, &desc, ATN_GRADIENT_STEPS, (atn_dtype)dtype, a, dx, da[i], NULL);
            atn_context_free(context);
        }
        cr_expect(memcmp(da[0], da[1], sizeof da[0]) == 0, "%s", atn_dtype_name((atn_dtype)dtype));
    }
}

Test(inverse_backward, statuses)
{
    atn_context *context = fixture_context(2, NULL);
    double a[COUNT * SIZE], dx[COUNT * SIZE], da[COUNT * SIZE];
    atn_inverse_info infos[COUNT];
    make_matrices(3, a);
    symmetric_noise(50, dx);
    for (int method = 1; method < ATN_INVERSE_COUNT; method++)
        for (int gradient = 0; gradient <= ATN_GRADIENT_COUNT; gradient++) {
            atn_inverse_desc desc = inverse_for(method);
            bool newton = method <= ATN_INVERSE_NR_SOFTPP;
            bool possible = gradient == ATN_GRADIENT_CLOSED ||
                            (gradient == ATN_GRADIENT_STEPS && newton) ||
                            (gradient == ATN_GRADIENT_PSEUDO && method == ATN_INVERSE_EIG);
            atn_status status =
                run(context, &desc, (atn_gradient)gradient, ATN_F64, a, dx, da, NULL);
            cr_expect(possible                         ? status >= 0
                      : gradient == ATN_GRADIENT_COUNT ? status == ATN_ERR_VALUE
                                                       : status == ATN_ERR_UNSUPPORTED,
                      "%s %d: %s", atn_inverse_name(desc.method), gradient,
                      atn_status_name(status));
        }
    for (int in_a = 0; in_a < 2; in_a++) { /* NaN in matrix 2 */
        double kept = (in_a ? a : dx)[2 * SIZE];
        atn_inverse_desc desc = inverse_for(ATN_INVERSE_NR_SOFTPP);
        (in_a ? a : dx)[2 * SIZE] = NAN;
        cr_expect_eq(run(context, &desc, ATN_GRADIENT_STEPS, ATN_F64, a, dx, da, infos),
                     ATN_NONFINITE);
        for (int i = 0; i < COUNT; i++)
            cr_expect((infos[i].status == ATN_NONFINITE) == (i == 2) &&
                          (isnan(da[i * SIZE]) != 0) == (i == 2),
                      "matrix %d: %s, %g", i, atn_status_name(infos[i].status), da[i * SIZE]);
        (in_a ? a : dx)[2 * SIZE] = kept;
    }
    atn_inverse_desc desc = inverse_for(ATN_INVERSE_NR_ADAPTIVE);
    desc.search_limit = 1; /* no start: X = 0, a constant */
    cr_expect_eq(run(context, &desc, ATN_GRADIENT_STEPS, ATN_F64, a, dx, da, infos),
                 ATN_NOT_CONVERGED);
    cr_expect_eq(dot(COUNT * SIZE, da, da), 0);
    cr_expect_eq(atn_inverse_backward(NULL, &desc, ATN_GRADIENT_CLOSED, NULL, NULL, NULL, NULL),
                 ATN_ERR_NULL);
    cr_expect_eq(atn_inverse_backward(context, &desc, ATN_GRADIENT_CLOSED, NULL, NULL, NULL, NULL),
                 ATN_ERR_NULL);
    atn_tensor t = atn_tensor_dense(a, ATN_F64, 1, 1, M, M);
    cr_expect_eq(atn_inverse_backward(context, &desc, ATN_GRADIENT_CLOSED, &t, &t, &t, NULL),
                 ATN_ERR_ALIAS);
    atn_tensor apart = atn_tensor_dense(dx, ATN_F64, 1, 1, M, M);
    atn_tensor to = atn_tensor_dense(da, ATN_F64, 1, 1, M, M);
    apart.row_stride = M + 1;
    atn_tensor two = atn_tensor_dense(dx, ATN_F64, 1, 2, M, M);
    const struct {
        const atn_tensor *dx;
        atn_status status;
    } rows[] = {{&apart, ATN_ERR_STRIDE}, {&two, ATN_ERR_SHAPE}, {&to, ATN_ERR_ALIAS}};
    for (int i = 0; i < 3 && fixture_device() == ATN_CPU; i++) /* a device refuses the host's memory
                                                                  before it looks at dX */
        cr_expect_eq(
            atn_inverse_backward(context, &desc, ATN_GRADIENT_CLOSED, &t, rows[i].dx, &to, NULL),
            rows[i].status, "row %d", i);
    atn_context_free(context);
}
