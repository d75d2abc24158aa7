/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators that work head by head on CUDA, as the rest of the library calls them. */
#ifndef CUDA_HEADS_H
#define CUDA_HEADS_H

#include "operators/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operator's memory, in elements of the type of the arithmetic: per running block, per head of
 * the batch, and per head and chunk. */
typedef struct {
    int64_t block_reals, head_reals, chunk_reals;
} head_sizes;

static inline CORE_ON_DEVICE int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Bytes. A block that needs more than this for its work has it in device memory instead of shared
 * memory; two blocks of this size fit a multiprocessor of compute capability 8.0 or 9.0. */
enum { HEAD_SHARED = 80 * 1024 };

/* A planned operator. All pointers are to device memory. */
typedef struct {
    atn_attention_desc desc;
    atn_attention_shape shape;
    int64_t sum_sizes[ATN_PARAMETER_COUNT]; /* of a head's part of a parameter's gradient; 0: not
                                               given, or not differentiable */
    head_sizes sizes;
    int64_t chunk, chunks;           /* tokens per chunk; chunks per head */
    int64_t blocks;                  /* the most that run at a time; 0: no limit */
    bool work_is_shared;             /* the blocks' work lies in shared memory */
    void *work;                      /* per block, unless shared */
    void *state;                     /* per head of the batch */
    void *partials;                  /* per head and chunk */
    void *sums[ATN_PARAMETER_COUNT]; /* per head of the batch: a parameter's gradient */
    void *gradients;                 /* bf16, f16: those of q, k, v, dense, in f32 */
    int64_t *positions;              /* padding: per entry of the batch, queries then keys */
    int64_t *counts;                 /* padding: per entry of the batch, the queries and keys */
    int *nonfinite;                  /* per head of the batch */
} cuda_heads;

extern const operator_family cuda_heads_family;

/* For plans of other families that heads.cu runs, whose first member is a cuda_heads. */

/* Cuts heads into chunks of at least `least` tokens. */
void cuda_heads_cut(cuda_heads *heads, int64_t least);
/* A block whose work does not fit into shared memory has it in device memory. */
void cuda_heads_fit(cuda_heads *heads, head_sizes sizes);
void cuda_heads_layout(core_arena *arena, cuda_heads *heads);
/* `count` pieces of `each` elements. */
void *cuda_heads_take(core_arena *arena, int64_t count, int64_t each, size_t size);
/* Bytes of an element in the type of the arithmetic. */
size_t cuda_heads_element(const cuda_heads *heads);

/* One table for each type of the arithmetic. */
typedef struct {
    void (*sizes)(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  head_sizes *sizes);
    atn_status (*forward)(atn_context *context, const cuda_heads *heads,
                          const atn_attention_inputs *inputs, atn_tensor *out);
    atn_status (*backward)(atn_context *context, const cuda_heads *heads,
                           const atn_attention_inputs *inputs, const atn_tensor *dout,
                           atn_gradients *gradients);
} cuda_heads_table;

extern const cuda_heads_table cuda_heads_f32, cuda_heads_f64;

const cuda_heads_table *cuda_heads_get(const cuda_heads *heads);

/* The functions of the table, with the context's device as the current one. */
atn_status cuda_heads_forward(atn_context *context, const cuda_heads *heads,
                              const atn_attention_inputs *inputs, atn_tensor *out);
atn_status cuda_heads_backward(atn_context *context, const cuda_heads *heads,
                               const atn_attention_inputs *inputs, const atn_tensor *dout,
                               atn_gradients *gradients);

#ifdef __cplusplus
}
#endif
#endif
