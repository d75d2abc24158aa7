/* SPDX-License-Identifier: BSD-3-Clause */
/* Orthogonal random features (Yu et al. 2016; Choromanski et al. 2021). */
#include <string.h>

#include "cpu/blocks.h"

enum { PANEL = 32 }; /* columns LAPACK eliminates at a time */

int64_t R(orthogonal_work)(int64_t d)
{
    return (PANEL + 1) * d;
}

/* LAPACK is column-major, so the rows of w are the columns that it orthogonalises. */
static atn_status orthogonalise(int64_t rows, int64_t d, real *w, real *work)
{
    real *tau = work + PANEL * d;
    lapack_int n = (lapack_int)d, k = (lapack_int)rows, size = (lapack_int)(PANEL * d);
    if (lapack_geqrf(LAPACK_COL_MAJOR, n, k, w, n, tau, work, size) != 0 ||
        lapack_orgqr(LAPACK_COL_MAJOR, n, k, k, w, n, tau, work, size) != 0)
        return ATN_ERR_LIBRARY;
    return ATN_OK;
}

static void fill_nan(int64_t count, real *w)
{
    for (int64_t i = 0; i < count; i++)
        w[i] = (real)NAN;
}

atn_status R(orthogonal_features)(int64_t m, int64_t d, const void *numbers, const void *norms,
                                  void *w, void *work)
{
    const real *lengths = norms;
    real *out = w;
    if (!R(all_finite)(m, d, numbers, d) || (norms && !R(all_finite)(m, d, norms, d))) {
        fill_nan(m * d, out);
        return ATN_NONFINITE;
    }
    memcpy(out, numbers, (size_t)(m * d) * sizeof(real));
    for (int64_t r = 0; r < m; r += d) {
        atn_status status = orthogonalise(m - r < d ? m - r : d, d, out + r * d, work);
        if (status != ATN_OK)
            return status;
    }
    for (int64_t r = 0; r < m; r++) {
        double length = norms ? R(frobenius)(d, lengths + r * d) : sqrt((double)d);
        for (int64_t c = 0; c < d; c++)
            out[r * d + c] = (real)(length * (double)out[r * d + c]);
    }
    return ATN_OK;
}
