/* SPDX-License-Identifier: BSD-3-Clause */
/* libxsmm's products, generated for their shape and timed for comparison with ours, if the build
 * has it (xsmm.c, no_xsmm.c). */
#ifndef EXPERIMENTS_BENCH_XSMM_H
#define EXPERIMENTS_BENCH_XSMM_H

#include <attnum/attnum.h>

typedef struct xsmm_product xsmm_product;

bool xsmm_found(void);

/* C = op(A) op(B), dense and row-major. Null: libxsmm has no such product. To be freed. */
xsmm_product *xsmm_make(atn_dtype dtype, bool transpose_a, bool transpose_b, int64_t rows,
                        int64_t cols, int64_t inner);
void xsmm_run(const xsmm_product *product, const void *a, const void *b, void *c);
void xsmm_free(xsmm_product *product);

#endif
