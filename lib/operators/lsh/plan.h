/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounds of LSH attention. */
#ifndef LSH_PLAN_H
#define LSH_PLAN_H

#include "core/internal.h"

static inline int64_t core_lsh_rounds(const atn_lsh_options *options)
{
    return options->buckets ? options->rounds : options->rotations.heads;
}

#endif
