/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA's order of products. */
#ifndef SIMA_PLAN_H
#define SIMA_PLAN_H

#include "core/internal.h"

/* Flops of (Q^ K^^T) V and of Q^ (K^^T V). */
static inline double core_sima_tokens_flops(double n, double n_k, double d, double dv)
{
    return 2 * n * n_k * (d + dv);
}

static inline double core_sima_channels_flops(double n, double n_k, double d, double dv)
{
    return 2 * (n + n_k) * d * dv;
}

/* Whether Q^ K^^T comes first. n and n_k are those of the shape: masks do not matter. */
static inline bool core_sima_tokens_first(const atn_sima_options *options, int64_t n, int64_t n_k,
                                          int64_t d, int64_t dv)
{
    if (options->order != ATN_ORDER_AUTO)
        return options->order == ATN_ORDER_TOKENS;
    return core_sima_tokens_flops((double)n, (double)n_k, (double)d, (double)dv) <
           core_sima_channels_flops((double)n, (double)n_k, (double)d, (double)dv);
}

#endif
