/* SPDX-License-Identifier: BSD-3-Clause */
/* The inverses of attnum/inverse.h on CUDA, as the rest of the library calls them. All pointers in
 * the structs are to device memory. */
#ifndef INVERSE_CUDA_H
#define INVERSE_CUDA_H

#include "core/internal.h"
#include "inverse/stopping.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The iterations run one block for each matrix up to this m, from start to end; above it all
 * matrices take a step together, in batched products of cuBLAS and kernels over strips of rows
 * (inverse/cuda_batched.cuh). A single block uses one multiprocessor only, and its matrices exceed
 * the 227 KiB of shared memory of compute capability 9.0: for Newton-Raphson above m = 84 (f64) or
 * 116 (f32), for the polynomial iterations above 56 or 84. */
#ifndef CUDA_INVERSE_BLOCK_MOST
#define CUDA_INVERSE_BLOCK_MOST 64
#endif

/* Batched: the state of one matrix's iteration, whose X_k are in two places alternately. */
typedef struct {
    core_stopping stopping; /* Newton-Raphson: by residuals; polynomial: by the guard's |E B v|^2 */
    double gap;             /* polynomial: 1 - d */
    double before;          /* polynomial: |E_k|_F^2 */
    double update;          /* of the step to X_{k+1}, not yet accepted */
    double norm;            /* |B|_F */
    int64_t products;
    int at;         /* the last k that was accepted */
    int returned;   /* the k of what is returned */
    bool kept;      /* X_returned is the copy of the best iterate, not the last iterate */
    bool has_start; /* there is an X_0 */
    bool going;
    atn_stop stop;
} cuda_inverse_run;

/* Batched: rows of a strip, and the number of partial sums of a strip. */
enum { CUDA_INVERSE_STRIP = 16, CUDA_INVERSE_PARTIALS = 3 };

/* A call for `count` m x m matrices, laid out by cuda_inverse_layout. For bf16 and f16 the
 * arithmetic and the judgement are f32's; tf32 rounds the factors of the iterations' products. */
typedef struct {
    atn_inverse_desc desc;
    atn_dtype dtype;
    int64_t m, count;
    bool keep_factor;        /* and the method is pivoted-cholesky */
    atn_storage result;      /* set by the caller after the layout: the type that X is rounded to
                                before it is judged; native: none */
    bool batched;            /* as in inverse/cuda_batched.cuh; "block" below then means a matrix */
    int64_t reals;           /* of work, per block */
    int64_t blocks;          /* the most at a time, unless the work is in shared memory */
    void *work;              /* per block: reals */
    cuda_inverse_run *runs;  /* batched, per block */
    double *partials;        /* batched, per block, strip of rows: CUDA_INVERSE_PARTIALS */
    double *starts;          /* per matrix: alpha; < 0: the search found no n */
    unsigned char *accepted; /* search: per matrix and number of halvings */
    int *pivots;             /* per matrix: m */
    atn_inverse_info *infos; /* per matrix */
    void *iterates;          /* set by the caller after the layout, for traces: per matrix X_0 ..
                                X_T, or X; else null */
    int *recorded;           /* likewise: per matrix how many there are */
} cuda_inverse;

/* Whether such a call is batched. device_blas, which allocates, must then be called before it. */
bool cuda_inverse_is_batched(const atn_inverse_desc *desc, int64_t m);

/* Lays out the memory of a call; the sizes do not depend on the device. */
void cuda_inverse_layout(core_arena *arena, const atn_inverse_desc *desc, atn_dtype dtype,
                         int64_t m, int64_t count, bool keep_factor, cuda_inverse *inverse);

/* Backward, after a call of `inverse`. */
typedef struct {
    const cuda_inverse *inverse;
    atn_gradient gradient;
    int64_t reals; /* of work, per block */
    int64_t blocks;
    void *work;
    double *slopes; /* per matrix: the derivative by alpha, then by |A|_1; then the norms */
} cuda_inverse_adjoint;

void cuda_inverse_adjoint_layout(core_arena *arena, const cuda_inverse *inverse,
                                 atn_gradient gradient, cuda_inverse_adjoint *adjoint);

/* One table for each type of the arithmetic. Matrices are dense count x m x m arrays of that type.
 * The calls are enqueued, allocate nothing and do not wait. */
typedef struct {
    /* Elements of one block's work. */
    int64_t (*work_reals)(const atn_inverse_desc *desc, int64_t m, bool batched);
    /* X of every matrix, and infos. With keep_factor the lower triangle of the leading rank x rank
     * block of X is the factor L, A[pivots, pivots] = L L^T, rank = infos[i].rank. */
    atn_status (*batch)(atn_context *context, const cuda_inverse *inverse, const void *a, void *x);
} cuda_inverse_table;

typedef struct {
    int64_t (*work_reals)(const atn_inverse_desc *desc, atn_gradient gradient, int64_t m);
    /* From grad_x the derivative by A, symmetric, including the dependence of alpha on |A|_1; a, x
     * and the infos as batch left them. If it, grad_x or A is not finite, it is NaN and the info
     * has ATN_NONFINITE. */
    atn_status (*backward)(atn_context *context, const cuda_inverse_adjoint *adjoint, const void *a,
                           const void *x, const void *grad_x, void *grad_a);
} cuda_adjoint_table;

extern const cuda_inverse_table cuda_inverse_f32, cuda_inverse_f64;
extern const cuda_adjoint_table cuda_adjoint_f32, cuda_adjoint_f64;

/* The tables for the caller's dtype. */
const cuda_inverse_table *cuda_inverse_get(atn_dtype dtype);
const cuda_adjoint_table *cuda_adjoint_get(atn_dtype dtype);

/* The inverses' functions of core/backend.h. */
atn_status cuda_inverse_forward(atn_context *context, const atn_inverse_desc *desc,
                                const atn_tensor *a, atn_tensor *x, atn_inverse_info *infos,
                                atn_trace *traces);
atn_status cuda_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                 atn_gradient gradient, const atn_tensor *a, const atn_tensor *dx,
                                 atn_tensor *da, atn_inverse_info *infos);
atn_status cuda_find_asymmetric(atn_context *context, const atn_tensor *a, int64_t *index);
atn_status cuda_find_unstored(atn_context *context, atn_storage storage, const atn_tensor *a,
                              int64_t *index);

#ifdef __cplusplus
}
#endif
#endif
