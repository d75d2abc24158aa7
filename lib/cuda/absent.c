/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA backend of a build without CUDA: no devices, so no other function is called. */
#include <stddef.h>

#include "core/backend.h"

static int count(const char **reason)
{
    if (reason)
        *reason = "this build has no CUDA";
    return 0;
}

const core_backend cuda_backend = {.count = count};
