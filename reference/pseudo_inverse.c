/* SPDX-License-Identifier: BSD-3-Clause */
#include "pseudo_inverse.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ref_memory.h"

/* x.y of columns i and j. */
static long double columns_dot(int64_t m, const long double *a, int64_t i, int64_t j)
{
    long double sum = 0;
    for (int64_t r = 0; r < m; r++)
        sum += a[r * m + i] * a[r * m + j];
    return sum;
}

static void rotate(int64_t m, long double *a, int64_t i, int64_t j, long double c, long double s)
{
    for (int64_t r = 0; r < m; r++) {
        long double x = a[r * m + i], y = a[r * m + j];
        a[r * m + i] = c * x - s * y;
        a[r * m + j] = s * x + c * y;
    }
}

/* Makes columns i and j of w orthogonal, and applies the same rotation to v. False if they already
 * were. */
static bool orthogonalise(int64_t m, long double *w, long double *v, int64_t i, int64_t j)
{
    long double ii = columns_dot(m, w, i, i), jj = columns_dot(m, w, j, j);
    long double ij = columns_dot(m, w, i, j);
    if (!(fabsl(ij) > LDBL_EPSILON * sqrtl(ii) * sqrtl(jj)))
        return false;
    long double cotangent = (jj - ii) / (2 * ij); /* of twice the angle */
    long double t = copysignl(1, cotangent) / (fabsl(cotangent) + hypotl(1, cotangent));
    long double c = 1 / hypotl(1, t);
    rotate(m, w, i, j, c, c * t);
    rotate(m, v, i, j, c, c * t);
    return true;
}

/* w = A becomes A V with orthogonal columns (Hestenes 1958). Converges quadratically; columns that
 * consist of rounding errors may never converge, so the number of sweeps is bounded. */
static void orthogonalise_all(int64_t m, long double *w, long double *v)
{
    bool moved = true;
    for (int sweep = 0; moved && sweep < 30; sweep++) {
        moved = false;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = i + 1; j < m; j++)
                moved = orthogonalise(m, w, v, i, j) || moved;
    }
}

/* A V = U S, so A+ = V S^-1 U^T = sum over columns c kept of v_c (A V)_c^T / s_c^2. */
int64_t ref_pseudo_inverse_long(int64_t m, const long double *a, double rcond, long double *x)
{
    long double *w = ref_take((size_t)(2 * m * m + 1), sizeof *w), *v = w + m * m, largest = 0;
    if (!w)
        return -1;
    for (int64_t i = 0; i < m * m; i++) {
        w[i] = a[i];
        v[i] = i % (m + 1) == 0;
        x[i] = 0;
    }
    orthogonalise_all(m, w, v);
    for (int64_t c = 0; c < m; c++)
        largest = fmaxl(largest, columns_dot(m, w, c, c));
    long double cut = rcond < 0 ? 8 * (long double)m * LDBL_EPSILON : (long double)rcond;
    int64_t rank = 0;
    for (int64_t c = 0; c < m; c++) {
        long double squared = columns_dot(m, w, c, c);
        if (!(sqrtl(squared) > cut * sqrtl(largest)))
            continue;
        rank++;
        for (int64_t i = 0; i < m * m; i++)
            x[i] += v[i / m * m + c] * w[i % m * m + c] / squared;
    }
    free(w);
    return rank;
}
