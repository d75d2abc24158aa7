/* SPDX-License-Identifier: BSD-3-Clause */
#include "latms.h"

#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

static int descending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

/* dlatms wants four numbers of 12 bits, the last one odd. Neighbouring seeds are spread out first
 * (the finaliser of splitmix64). */
static void spread_seed(int64_t seed, lapack_int iseed[4])
{
    uint64_t bits = (uint64_t)seed;
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    bits ^= bits >> 31;
    for (int i = 0; i < 4; i++)
        iseed[i] = (lapack_int)(bits >> 12 * i & 4095);
    iseed[3] |= 1;
}

/* symmetry as in dlatms: 'N' none, 'P' positive semi-definite. In column-major order A^T is made,
 * whose singular values are A's. */
static atn_status generate(char symmetry, int64_t rows, int64_t cols, int mode, double condition,
                           int64_t seed, double *a, double *values)
{
    size_t k = (size_t)(rows < cols ? rows : cols);
    lapack_int iseed[4];
    spread_seed(seed, iseed);
    /* LAPACKE looks for NaN in what dlatms only writes */
    memset(a, 0, (size_t)rows * (size_t)cols * sizeof *a);
    memset(values, 0, k * sizeof *values);
    lapack_int info = LAPACKE_dlatms(
        LAPACK_COL_MAJOR, (lapack_int)cols, (lapack_int)rows, 'N', iseed, symmetry, values, mode,
        condition, 1, (lapack_int)cols - 1, (lapack_int)rows - 1, 'N', a, (lapack_int)cols);
    if (info != 0)
        return info == LAPACK_WORK_MEMORY_ERROR ? ATN_ERR_MEMORY : ATN_ERR_LIBRARY;
    qsort(values, k, sizeof *values, descending);
    return ATN_OK;
}

atn_status latms(int64_t rows, int64_t cols, int mode, double condition, int64_t seed, double *a,
                 double *sigma)
{
    return generate('N', rows, cols, mode, condition, seed, a, sigma);
}

atn_status latms_symmetric(int64_t n, int mode, double condition, int64_t seed, double *a,
                           double *lambda)
{
    atn_status status = generate('P', n, n, mode, condition, seed, a, lambda);
    for (int64_t i = 0; status == ATN_OK && i < n; i++)
        for (int64_t j = 0; j < i; j++)
            a[j * n + i] = a[i * n + j];
    return status;
}
