/* SPDX-License-Identifier: BSD-3-Clause */
/* The two passes of SOFT and SOFT++ over the tokens as a chain of library calls, K(Q, L) in device
 * memory between them, as the published PyTorch code runs: what the fused passes are compared with.
 *
 *   |x|^2, |l|^2;   Q L^T (cuBLAS);   K(Q, L), element by element;   U = K(L, Q) V (cuBLAS)
 *   Y = K(Q, L) W (cuBLAS)
 *
 * More than that code has: norms are not products with ones, K(Q, L) is formed once and kept for
 * the second product, Q L^T and the distances are f32 for narrow types. NaN is looked for, which
 * costs one more reading of Y. */
#ifndef SOFT_CUDA_CHAIN_H
#define SOFT_CUDA_CHAIN_H

#include "operators/soft/cuda_fused.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    soft_fused f;    /* one chunk; its partials are U */
    void *blas;      /* cublasHandle_t */
    void *factors;   /* per head: landmarks, and when they are used W, in the dtype */
    float *products; /* per head: n x m */
    void *kernel;    /* the same in the dtype; of four bytes, then it is the products' memory */
    float *norms;    /* per head: |x|^2, then |l|^2 */
} soft_chain;

/* As soft_fused_fits, on any device. */
bool soft_chain_fits(const atn_attention_desc *desc, const atn_attention_shape *shape, int64_t m,
                     const char **reason);

/* Everything but f and blas, from an arena. */
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
