/* SPDX-License-Identifier: BSD-3-Clause */
/* cuSOLVER's decompositions against LAPACK's. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>

#include "cusolver.h"
#include "data.h"
#include "linear_algebra.h"

/* In units of n u, as for two LAPACK routes, whose reflections change a vector n times. */
static const double healthy = 10;

/* Jacobi's rotations change it n - 1 times in a sweep; errors of sweeps are independent. */
static double healthy_jacobi(void)
{
    return healthy * sqrt(REF_DEVICE_SWEEPS);
}

/* The largest distance of two lists of values, in units of n u times the largest of them. */
static double apart(int64_t count, int64_t n, const double *x, const double *y)
{
    double distance = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        distance = fmax(distance, fabs(x[i] - y[i]));
        largest = fmax(largest, fabs(y[i]));
        if (x[i] != x[i])
            return NAN;
    }
    return largest > 0 ? distance / (largest * (double)n * 0x1p-53) : distance;
}

static double *random_matrix(int64_t rows, int64_t cols, uint64_t seed)
{
    double *a = data_allocate(rows * cols);
    data_normal(seed, rows * cols, a);
    return a;
}

/* a a^T / n */
static double *random_symmetric(int64_t n, uint64_t seed)
{
    double *a = random_matrix(n, n, seed), *s = data_allocate(n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += a[i * n + k] * a[j * n + k];
            s[i * n + j] = s[j * n + i] = sum / (double)n;
        }
    free(a);
    return s;
}

Test(references, singular_values)
{
    static const int64_t sizes[][2] = {{1, 1}, {1, 5}, {5, 1}, {7, 4}, {4, 7}, {33, 33}, {49, 60}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t rows = sizes[i][0], cols = sizes[i][1], k = rows < cols ? rows : cols;
        int64_t larger = rows > cols ? rows : cols;
        double *a = random_matrix(rows, cols, i + 1), *u = data_allocate(rows * k);
        double *sigma = data_allocate(k), *vt = data_allocate(k * cols), *want = data_allocate(k);
        ref_device_check check;
        cr_assert_eq(ref_device_svd(rows, cols, a, u, sigma, vt, &check), ATN_OK);
        cr_assert_eq(ref_svd(REF_DGESVD, rows, cols, a, NULL, want, NULL), ATN_OK);
        double distance = apart(k, larger, sigma, want);
        cr_expect(distance <= healthy && check.residual <= healthy &&
                      check.orthogonality <= healthy,
                  "%ld x %ld: LAPACK %.3g away, residual %.3g, orthogonality %.3g", (long)rows,
                  (long)cols, distance, check.residual, check.orthogonality);
        free(want);
        free(vt);
        free(sigma);
        free(u);
        free(a);
    }
}

Test(references, a_batch_of_singular_values)
{
    enum { COUNT = 3, N = 17 };
    double *a = random_matrix(COUNT * N, N, 5), *u = data_allocate(COUNT * N * N);
    double *sigma = data_allocate(COUNT * N), *vt = data_allocate(COUNT * N * N), want[N];
    ref_device_check check;
    cr_assert_eq(ref_device_svd_batch(COUNT, N, a, u, sigma, vt, &check), ATN_OK);
    cr_expect(check.residual <= healthy_jacobi() && check.orthogonality <= healthy_jacobi(),
              "residual %.3g, orthogonality %.3g", check.residual, check.orthogonality);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(ref_svd(REF_DGESVD, N, N, a + i * N * N, NULL, want, NULL), ATN_OK);
        double distance = apart(N, N, sigma + i * N, want);
        cr_expect(distance <= healthy, "matrix %d: LAPACK %.3g away", i, distance);
    }
    cr_expect_eq(ref_device_svd_batch(1, REF_DEVICE_BATCHED_SVD + 1, a, u, sigma, vt, &check),
                 ATN_ERR_SHAPE, "cuSOLVER takes no larger ones");
    free(vt);
    free(sigma);
    free(u);
    free(a);
}

Test(references, eigenvalues)
{
    static const int64_t sizes[] = {1, 2, 9, 49, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t n = sizes[i];
        double *a = random_symmetric(n, i + 1), *w = data_allocate(n * n);
        double *lambda = data_allocate(n), *batch = data_allocate(n), *want = data_allocate(n);
        ref_device_check check, of_batch;
        cr_assert_eq(ref_device_eigen(n, a, lambda, w, &check), ATN_OK);
        cr_assert_eq(ref_device_eigen_batch(1, n, a, batch, w, &of_batch), ATN_OK);
        cr_assert_eq(ref_eigen(REF_DSYEVD, n, a, want, NULL), ATN_OK);
        double one = apart(n, n, lambda, want), many = apart(n, n, batch, want);
        cr_expect(one <= healthy && many <= healthy, "n = %ld: LAPACK %.3g and %.3g away", (long)n,
                  one, many);
        cr_expect(check.residual <= healthy && check.orthogonality <= healthy &&
                      of_batch.residual <= healthy_jacobi() &&
                      of_batch.orthogonality <= healthy_jacobi(),
                  "n = %ld: residuals %.3g, %.3g, orthogonality %.3g, %.3g", (long)n,
                  check.residual, of_batch.residual, check.orthogonality, of_batch.orthogonality);
        free(want);
        free(batch);
        free(lambda);
        free(w);
        free(a);
    }
}

Test(references, bad_input_is_refused)
{
    double a[4] = {1, 2, NAN, 4}, u[4], sigma[2], vt[4];
    ref_device_check check;
    cr_expect_eq(ref_device_svd(2, 2, a, u, sigma, vt, &check), ATN_NONFINITE);
    cr_expect_eq(ref_device_svd(0, 2, a, u, sigma, vt, &check), ATN_ERR_SHAPE);
    cr_expect_eq(ref_device_svd(2, 2, NULL, u, sigma, vt, &check), ATN_ERR_NULL);
    cr_expect_eq(ref_device_eigen(INT64_MAX, a, sigma, u, &check), ATN_ERR_SHAPE);
}
