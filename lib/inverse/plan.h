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

/* Null for other methods. */
const core_polynomial *core_polynomial_of(atn_inverse_method method);

/* The products of m x m matrices of a run that takes all its steps, less the 2 that measure the
 * residual of the last X. */
double core_inverse_products(const atn_inverse_desc *desc);

/* ATN_OK, or which constant of the description is out of range. */
atn_status core_check_inverse(atn_context *context, const atn_inverse_desc *desc);

/* ATN_ERR_UNSUPPORTED if this inverse cannot be differentiated in this way. */
atn_status core_check_gradient(atn_context *context, const atn_inverse_desc *desc,
                               atn_gradient gradient);

/* Whether backward's elements, per matrix of the call and per thread, are more than there can be.
 */
bool core_inverse_backward_too_large(const atn_inverse_desc *desc, atn_gradient gradient, int64_t m,
                                     int threads);

/* Whether inverse_batch's memory is more than there can be; to be asked before cpu_inverse_layout.
 */
bool core_inverse_too_large(int64_t m, int64_t count, int threads);

static inline bool core_is_newton(const atn_inverse_desc *desc)
{
    return desc->method <= ATN_INVERSE_NR_SOFTPP;
}

/* How many matrices that follow one another a thread takes at a time, of `count`. */
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
/* Says what failed, where something did; returns the status. */
atn_status core_inverse_end(atn_context *context, atn_status worst);

#ifdef __cplusplus
}
#endif
#endif
