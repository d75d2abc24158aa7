/* SPDX-License-Identifier: BSD-3-Clause */
#include "linear_attention.h"

#include <math.h>

#include "ratios.h"

double largest(int64_t count, const double *x)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(x[i]) <= most))
            most = fabs(x[i]);
    return most;
}

void expect_within(const char *what, int64_t count, const double *got, const double *want,
                   int operations)
{
    double bound = operations * UNIT_ROUNDOFF * largest(count, want);
    ref_difference d = ref_compare_f64(1, count, got, count, want, count);
    double ratio = d.max_abs > 0 ? d.max_abs / bound : 0;
    expect_ratio(REF_ROUNDING, ratio, "%s at %d got=%.17g want=%.17g", what, (int)d.worst_col,
                 d.worst_got, d.worst_want);
}

atn_tensor constant(double *data, int64_t heads, int64_t rows, int64_t cols)
{
    return atn_tensor_dense(data, ATN_F64, 1, heads, rows, cols);
}
