/* SPDX-License-Identifier: BSD-3-Clause */
/* The two passes of SOFT and SOFT++ over the tokens as a chain of library calls, K(Q, L) in device
 * memory between them, as the published PyTorch code runs. The fused passes are compared with this.
 *
 *   |x|^2, |l|^2;   Q L^T (cuBLAS);   K(Q, L), element by element;   U = K(L, Q) V (cuBLAS)
 *   Y = K(Q, L) W (cuBLAS)
 *
 * It is better than that code in three ways: norms are not computed as products with ones, K(Q, L)
 * is formed once and kept for the second product, and Q L^T and the distances are f32 for narrow
 * types. The check for NaN reads Y once more. */
#ifndef SOFT_CUDA_CHAIN_H
#define SOFT_CUDA_CHAIN_H

#include "operators/soft/cuda_fused.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    soft_fused f;    /* one chunk; its partials are U */
    void *blas;      /* cublasHandle_t */
    void *factors;   /* per head: landmarks, later overwritten by W, in the dtype */
    float *products; /* per head: n x m */
    void *kernel;    /* the same in the dtype; in place if it has four bytes */
    float *norms;    /* per head: |x|^2, then |l|^2 */
} soft_chain;

/* As soft_fused_fits, on any device. */
bool soft_chain_fits(const atn_attention_desc *desc, const atn_attention_shape *shape, int64_t m,
                     const char **reason);

/* Lays out all arrays except those of f. */
void soft_chain_layout(core_arena *arena, const atn_attention_desc *desc,
                       const atn_attention_shape *shape, int64_t m, soft_chain *chain);

atn_status soft_chain_sum(atn_context *context, const soft_chain *chain, const atn_tensor *q,
                          const atn_tensor *v);
atn_status soft_chain_write(atn_context *context, const soft_chain *chain, const atn_tensor *q,
                            const atn_tensor *y);

#ifdef __cplusplus
}
#endif
#endif
