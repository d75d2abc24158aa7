/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_SAMPLING_H
#define CORE_SAMPLING_H

#include "core/internal.h"

/* atn_sampling_count, plus the weights against dtype and dim. */
atn_status core_check_sampling(atn_context *context, const atn_sampling *sampling, atn_dtype dtype,
                               int64_t tokens, int64_t dim, int64_t *count);

#endif
