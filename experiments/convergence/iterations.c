/* SPDX-License-Identifier: BSD-3-Clause */
#include "convergence/iterations.h"

#include <math.h>
#include <stdlib.h>

/* The order of a method, and the matrix products of one of its steps. */
static const struct {
    int order, products;
} costs[ATN_INVERSE_COUNT] = {
    [ATN_INVERSE_NR] = {2, 2},           [ATN_INVERSE_NR_PAPER] = {2, 2},
    [ATN_INVERSE_NR_ADAPTIVE] = {2, 2},  [ATN_INVERSE_NR_SOFT] = {2, 2},
    [ATN_INVERSE_NR_SOFTPP] = {2, 2},    [ATN_INVERSE_NEWTON_SCHULZ] = {2, 2},
    [ATN_INVERSE_HYPERPOWER_3] = {3, 3}, [ATN_INVERSE_HYPERPOWER_7] = {7, 5},
    [ATN_INVERSE_HYPERPOWER_9] = {9, 5}, [ATN_INVERSE_NYSTROMFORMER] = {3, 4},
    [ATN_INVERSE_CHEBYSHEV_2] = {2, 2},  [ATN_INVERSE_CHEBYSHEV_3] = {3, 3},
    [ATN_INVERSE_CHEBYSHEV_9] = {9, 5},
};

int iteration_order(atn_inverse_method method)
{
    return costs[method].order;
}

bool iteration_is_chebyshev(atn_inverse_method method)
{
    return method >= ATN_INVERSE_CHEBYSHEV_2 && method <= ATN_INVERSE_CHEBYSHEV_9;
}

int64_t iteration_products(const atn_inverse_desc *desc, int64_t steps)
{
    bool saved =
        desc->start == ATN_START_IDENTITY && steps > 0; /* B X_0 = alpha B, X_1 = alpha Q */
    return costs[desc->method].products * steps - (saved ? 2 : 0);
}

int iteration_steps(atn_inverse_method method, int steps)
{
    return (int)ceil(steps * log(2) / log(costs[method].order));
}

ref_iteration iteration_filter(const atn_inverse_desc *desc, double norm)
{
    ref_iteration iteration;
    if (!ref_iteration_of(desc, 1, &norm, &iteration)) {
        iteration.kind = REF_POWER; /* Newton-Raphson */
        iteration.order = 2;
    }
    return iteration;
}

void iteration_take(const atn_inverse_desc *desc, const atn_inverse_info *info,
                    ref_iteration *iteration)
{
    iteration->alpha = info->alpha;
    if (iteration_is_chebyshev(desc->method)) {
        iteration->low = info->interval_low;
        iteration->high = info->interval_high;
    }
}

int iteration_first_below(int length, const double *values, double target)
{
    for (int k = 0; k < length; k++)
        if (values[k] < target)
            return k;
    return -1;
}

bool iteration_counts_agree(int a, int b)
{
    return a < 0 || b < 0 ? a < 0 && b < 0 : abs(a - b) <= 1;
}
