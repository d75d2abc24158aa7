/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without libxsmm. */
#include "bench/xsmm.h"

bool xsmm_found(void)
{
    return false;
}

xsmm_product *xsmm_make(atn_dtype dtype, bool transpose_a, bool transpose_b, int64_t rows,
                        int64_t cols, int64_t inner)
{
    return NULL;
}

void xsmm_run(const xsmm_product *product, const void *a, const void *b, void *c) {}

void xsmm_free(xsmm_product *product) {}
