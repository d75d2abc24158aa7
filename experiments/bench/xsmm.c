/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/xsmm.h"

#include <libxsmm.h>
#include <stdlib.h>

#include "common/report.h"

struct xsmm_product {
    libxsmm_smmfunction f32; /* one of the two */
    libxsmm_dmmfunction f64;
};

bool xsmm_found(void)
{
    return true;
}

/* libxsmm is column-major: C^T = op(B)^T op(A)^T, so B comes first. */
xsmm_product *xsmm_make(atn_dtype dtype, bool transpose_a, bool transpose_b, int64_t rows,
                        int64_t cols, int64_t inner)
{
    xsmm_product *p = must_allocate(1, sizeof *p);
    int m = (int)cols, n = (int)rows, k = (int)inner, flags = LIBXSMM_GEMM_FLAG_NONE;
    int ldb = transpose_b ? k : m, lda = transpose_a ? n : k;
    if (transpose_b)
        flags |= LIBXSMM_GEMM_FLAG_TRANS_A;
    if (transpose_a)
        flags |= LIBXSMM_GEMM_FLAG_TRANS_B;
    const float one = 1, zero = 0;
    const double one_f64 = 1, zero_f64 = 0;
    *p = (xsmm_product){NULL, NULL};
    if (dtype == ATN_F32)
        p->f32 = libxsmm_smmdispatch(m, n, k, &ldb, &lda, &m, &one, &zero, &flags, NULL);
    else if (dtype == ATN_F64)
        p->f64 = libxsmm_dmmdispatch(m, n, k, &ldb, &lda, &m, &one_f64, &zero_f64, &flags, NULL);
    if (!p->f32 && !p->f64) {
        free(p);
        return NULL;
    }
    return p;
}

void xsmm_run(const xsmm_product *product, const void *a, const void *b, void *c)
{
    if (product->f32)
        product->f32(b, a, c);
    else
        product->f64(b, a, c);
}

void xsmm_free(xsmm_product *product)
{
    free(product);
}
