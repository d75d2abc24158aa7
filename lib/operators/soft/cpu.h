/* SPDX-License-Identifier: BSD-3-Clause */
/* What the forward and the backward pass of SOFT and SOFT++ share, for one `real`. */
#ifndef SOFT_CPU_H
#define SOFT_CPU_H

#include <omp.h>

#include "cpu/blocks.h"

/* The arrays of one head. */
typedef struct {
    const cpu_soft *soft;
    landmark_set set; /* the landmarks used: all, or the pivots of the factor in their order */
    real *landmarks, *a, *x, *roots, *sums, *weights;
    const cpu_factor *factor; /* null: x is explicit */
} R(soft_head);
typedef R(soft_head) soft_head;

soft_head R(soft_head_of)(const cpu_soft *soft, int64_t head);

/* Computes all heads' landmarks, A, its inverse or factor, and the arrays derived from them for the
 * passes over the tokens. Negative: LAPACK failed. */
atn_status R(soft_open)(atn_context *context, cpu_soft *soft, const atn_tensor *q);

/* K(Q, L) for p tokens into block: p x count, row stride set.padded. */
void R(soft_kernel)(const soft_head *h, int64_t p, const real *tokens, int64_t stride, real *block);
/* The same times L^-T in factor form. */
void R(soft_solve)(const soft_head *h, int64_t p, real *block);

/* Adds the sums of all chunks, `size` elements each, to the first one, in order. */
void R(soft_add_chunks)(const cpu_soft *soft, int64_t size, real *sums);

int64_t R(soft_backward_work)(const cpu_soft *soft);

/* The memory of one thread, of `each` elements. */
static inline real *soft_thread(void *memory, int64_t each)
{
    return (real *)memory + omp_get_thread_num() * each;
}

static inline int64_t soft_block_reals(const cpu_soft *soft)
{
    return soft->block * R(landmark_padded)(soft->m);
}

/* One head's rows from `first` on, as a pointer. */
static inline real *soft_rows(const atn_tensor *t, int64_t head, int64_t first)
{
    return (real *)atn_tensor_matrix(t, head / t->heads, head % t->heads) + first * t->row_stride;
}

static inline int64_t soft_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The end of a chunk: the first token after it. */
static inline int64_t soft_chunk_end(const cpu_soft *soft, int64_t chunk)
{
    return soft_smaller((chunk + 1) * soft->chunk, soft->shape.tokens);
}

#endif
