/* SPDX-License-Identifier: BSD-3-Clause */
/* The inverses of attnum/inverse.h on CUDA, as the rest of the library sees them. Everything but
 * the structs themselves is device memory. */
#ifndef INVERSE_CUDA_H
#define INVERSE_CUDA_H

#include "core/internal.h"
#include "inverse/stopping.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The iterations run one block for each matrix up to this m, from start to end; above it all
 * matrices take a step together, in batched products of cuBLAS and kernels over strips of rows
 * (batched.cuh). A block's own products are one multiprocessor's, and its matrices leave the 227
 * KiB of shared memory there is on compute capability 9.0: Newton-Raphson's above m = 84 (f64) or
 * 116 (f32), the polynomial ones' above 56 or 84. */
#ifndef CUDA_INVERSE_BLOCK_MOST
#define CUDA_INVERSE_BLOCK_MOST 64
#endif

/* Batched: one matrix on its way, X_k in one of two places in turn. */
typedef struct {
    core_stopping stopping; /* Newton-Raphson: by residuals; polynomial: by the guard's |E B v|^2 */
    double gap;             /* polynomial: 1 - d */
    double before;          /* polynomial: |E_k|_F^2 */
    double update;          /* of the step to X_{k+1}, until that is accepted */
    double norm;            /* |B|_F */
    int64_t products;
    int at;       /* the last k that was accepted */
    int returned; /* the k of what is returned */
    bool kept;    /* which is where the best one is kept, not at the last one's place */
    bool open;    /* there is an X_0 */
    bool going;
    atn_stop stop;
} cuda_inverse_run;

/* Batched: rows of a strip, and what a strip leaves of its sums. */
enum { CUDA_INVERSE_STRIP = 16, CUDA_INVERSE_PARTIALS = 3 };

/* A call for `count` m x m matrices, laid out by cuda_inverse_layout. bf16 and f16 are computed and
 * judged as f32, tf32 rounds the factors of the iterations' products. */
typedef struct {
    atn_inverse_desc desc;
    atn_dtype dtype;
    int64_t m, count;
    bool keep_factor;        /* and the method is pivoted-cholesky */
    atn_storage result;      /* set by the caller after the layout: what X is rounded to in the
                                end, before it is judged; native: nothing */
    bool batched;            /* as batched.cuh; then "block" below is a matrix */
    int64_t reals;           /* of work, per block */
    int64_t blocks;          /* that run at a time, unless the work fits into shared memory */
    void *work;              /* per block: reals */
    cuda_inverse_run *runs;  /* batched, per block */
    double *partials;        /* batched, per block, strip of rows: CUDA_INVERSE_PARTIALS */
    double *starts;          /* per matrix: alpha; < 0: no such n */
    unsigned char *accepted; /* search: per matrix and number of halvings */
    int *pivots;             /* per matrix: m */
    atn_inverse_info *infos; /* per matrix */
    void *iterates;          /* set by the caller after the layout, for traces: per matrix X_0 ..
                                X_T, or X; else null */
    int *recorded;           /* likewise: per matrix how many there are */
} cuda_inverse;

/* Whether such a call is batched. Then device_blas must have been asked for before it, which
 * allocates. */
bool cuda_inverse_is_batched(const atn_inverse_desc *desc, int64_t m);

/* Lays out the memory of a call; the sizes do not depend on the device. */
void cuda_inverse_layout(core_arena *arena, const atn_inverse_desc *desc, atn_dtype dtype,
                         int64_t m, int64_t count, bool keep_factor, cuda_inverse *inverse);

/* The other way, after a call of `inverse`. */
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

/* One table for each type that is computed in. Matrices are dense count x m x m arrays of that
 * type. What is enqueued needs no memory and does not wait. */
typedef struct {
    /* Elements of one block's work. */
    int64_t (*work_reals)(const atn_inverse_desc *desc, int64_t m, bool batched);
    /* X of every matrix, and infos. With keep_factor the lower triangle of the leading rank x rank
     * block of X is the factor L, A[pivots, pivots] = L L^T, rank = infos[i].rank. */
    atn_status (*batch)(atn_context *context, const cuda_inverse *inverse, const void *a, void *x);
} cuda_inverse_table;

typedef struct {
    int64_t (*work_reals)(const atn_inverse_desc *desc, atn_gradient gradient, int64_t m);
    /* From grad_x the derivative by A, symmetric, with all that alpha has from |A|_1; a, x and the
     * infos as batch left them. NaN, and ATN_NONFINITE in the info, where it, grad_x or A is not
     * finite. */
    atn_status (*backward)(atn_context *context, const cuda_inverse_adjoint *adjoint, const void *a,
                           const void *x, const void *grad_x, void *grad_a);
} cuda_adjoint_table;

extern const cuda_inverse_table cuda_inverse_f32, cuda_inverse_f64;
extern const cuda_adjoint_table cuda_adjoint_f32, cuda_adjoint_f64;

/* The tables for a dtype of the caller's. */
const cuda_inverse_table *cuda_inverse_get(atn_dtype dtype);
const cuda_adjoint_table *cuda_adjoint_get(atn_dtype dtype);

/* What core/backend.h asks for. */
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
