/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without CUDA has no CUDA devices, so nothing else of the table is ever asked for. */
#include <stddef.h>

#include "core/backend.h"

static int count(const char **reason)
{
    if (reason)
        *reason = "this build has no CUDA";
    return 0;
}

const core_backend cuda_backend = {.count = count};
