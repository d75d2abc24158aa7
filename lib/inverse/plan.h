/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INVERSE_PLAN_H
#define INVERSE_PLAN_H

#include "core/internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A polynomial iteration: r(e) is of this order, a step takes this many products. */
typedef struct {
    int order, products;
    bool chebyshev;
} core_polynomial;

/* Null if the method is no polynomial iteration. */
const core_polynomial *core_polynomial_of(atn_inverse_method method);

/* The products of m x m matrices of all steps, without the 2 for the residual of the last X. */
double core_inverse_products(const atn_inverse_desc *desc);

/* ATN_OK, or which constant of the description is out of range. */
atn_status core_check_inverse(atn_context *context, const atn_inverse_desc *desc);

/* ATN_ERR_UNSUPPORTED if this inverse cannot be differentiated in this way. */
atn_status core_check_gradient(atn_context *context, const atn_inverse_desc *desc,
                               atn_gradient gradient);

/* Whether backward's memory, per matrix of the call and per thread, is too large
 * (core_too_large). */
bool core_inverse_backward_too_large(const atn_inverse_desc *desc, atn_gradient gradient, int64_t m,
                                     int threads);

/* Whether inverse_batch's memory is too large (core_too_large); check this before
 * cpu_inverse_layout. */
bool core_inverse_too_large(int64_t m, int64_t count, int threads);

static inline bool core_is_newton(const atn_inverse_desc *desc)
{
    return desc->method <= ATN_INVERSE_NR_SOFTPP;
}

/* The start of Newton-Raphson before any halving, and d alpha / d norm of its alpha. */
static inline CORE_ON_DEVICE double core_alpha_from_norm(const atn_inverse_desc *desc, double norm)
{
    if (desc->alpha > 0)
        return desc->alpha;
    return norm > 0 ? desc->numerator / norm / norm : 0; /* A = 0: X = 0 is its pseudo-inverse */
}

static inline CORE_ON_DEVICE double core_alpha_slope(const atn_inverse_info *info, double norm)
{
    return norm > 0 ? -2 * info->alpha / norm : 0;
}

/* 1 - 1 / T_p(1 / d) from 1 - d without cancellation; T_9 is T_3 twice. */
static inline CORE_ON_DEVICE double core_next_gap(int order, double gap)
{
    double square = gap * (2 - gap); /* 1 - d^2 */
    if (order == 2)
        return 2 * square / (1 + square);
    gap = gap * (3 - gap) * (3 - gap) / (1 + 3 * square);
    if (order == 3)
        return gap;
    square = gap * (2 - gap);
    return gap * (3 - gap) * (3 - gap) / (1 + 3 * square);
}

/* The status for a residual above the tolerance, by why the method stopped. */
static inline CORE_ON_DEVICE atn_status core_inverse_failure(atn_stop stop)
{
    return stop == ATN_STOP_DIRECT     ? ATN_SINGULAR
           : stop == ATN_STOP_ROUNDING ? ATN_STAGNATED
                                       : ATN_NOT_CONVERGED;
}

/* How many consecutive matrices, of `count`, a thread takes at a time. */
int core_inverse_neighbours(const atn_context *context, int64_t count);

/* The worst of two statuses: any negative one first, then the larger positive. */
static inline atn_status core_worse(atn_status a, atn_status b)
{
    if (a < 0 || b < 0)
        return a < 0 ? a : b;
    return a > b ? a : b;
}
#ifdef _OPENMP
#pragma omp declare reduction(worst:atn_status                                                     \
                              : omp_out = core_worse(omp_out, omp_in))                             \
    initializer(omp_priv = ATN_OK)
#endif
/* Stores the reason if LAPACK failed; returns the status. */
atn_status core_inverse_end(atn_context *context, atn_status worst);

#ifdef __cplusplus
}
#endif
#endif
