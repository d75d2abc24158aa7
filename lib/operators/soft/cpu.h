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
void R(soft_kernel)(const soft_head *h, int64_t p, const real *tokens, int64_t stride, real *block,
                    const real *const *ahead);
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

static inline int64_t soft_head_count(const cpu_soft *soft)
{
    return soft->shape.batch * soft->shape.heads;
}

/* Whether a thread computes whole heads, not chunks of all of them. */
static inline bool soft_by_heads(const cpu_soft *soft)
{
    enum { MANY = 8 }; /* heads per thread: then it costs little that some threads have one more */
    int64_t heads = soft_head_count(soft);
    return heads % soft->threads == 0 || heads >= MANY * soft->threads;
}

/* Whether the thread that computes a whole head keeps P of the block of tokens from t on. */
static inline bool soft_is_kept(const cpu_soft *soft, bool by_heads, int64_t t)
{
    return by_heads && t / soft->block < soft->kept;
}

/* Where it keeps it, or the thread's block for all others. */
static inline real *soft_place(const cpu_soft *soft, bool by_heads, int64_t t)
{
    int64_t each = soft_block_reals(soft);
    int64_t place = soft_is_kept(soft, by_heads, t) ? t / soft->block + 1 : 0;
    return (real *)soft_thread(soft->kernel, (soft->kept + 1) * each) + place * each;
}

/* One head's rows from `first` on, as a pointer. */
static inline real *soft_rows(const atn_tensor *t, int64_t head, int64_t first)
{
    return (real *)atn_tensor_matrix(t, head / t->heads, head % t->heads) + first * t->row_stride;
}

/* The rows from `first` on, to be prefetched if they lie one after the other. */
static inline const real *soft_ahead(const atn_tensor *t, int64_t head, int64_t first)
{
    return t->row_stride == t->cols ? soft_rows(t, head, first) : NULL;
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
