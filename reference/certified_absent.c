/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without the feature `certify`: nothing is certified, and every routine says so. */
#include "certified.h"

const char *ref_certify_library(void)
{
    return NULL;
}

void ref_certify_memory(void *(*allocate)(size_t count, size_t size),
                        void *(*resize)(void *memory, size_t count, size_t size))
{
}

atn_status ref_certify_spectrum(const ref_exact_matrix *a, int max_bits,
                                ref_certified_spectrum *spectrum)
{
    return ATN_ERR_UNSUPPORTED;
}

atn_status ref_certify_soft(const ref_certified_soft *problem, int max_bits, double *lower,
                            double *upper, int *bits)
{
    return ATN_ERR_UNSUPPORTED;
}

atn_status ref_exact_newton_steps(int64_t m, const double *a, ref_rational_start alpha, int k,
                                  const double *v, ref_exact_newton *result, double *residual_lower,
                                  double *residual_upper)
{
    return ATN_ERR_UNSUPPORTED;
}
