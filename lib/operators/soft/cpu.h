/* SPDX-License-Identifier: BSD-3-Clause */
/* What the forward and the backward pass of SOFT and SOFT++ share, for one `real`. */
#ifndef SOFT_CPU_H
#define SOFT_CPU_H

#include <omp.h>
#include <string.h>

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
    int64_t each = soft->kernel_reals;
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

static inline int64_t soft_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Each chunk of tokens has partial sums of its own (m x value_dim). A chunk has at least CHUNK and
 * 32 m tokens, so that all partial sums take no more than 1/32 of the values, and a head has at
 * most MOST_CHUNKS chunks, so that their memory stops growing with n. A thread that computes a
 * whole head keeps KEPT_BYTES of P for its second pass. */
static inline void soft_divide_tokens(cpu_soft *soft, int64_t block, int64_t kernel_reals)
{
    enum { CHUNK = 1024, CHUNK_PER_LANDMARK = 32, MOST_CHUNKS = 32, KEPT_BYTES = 1 << 22 };
    int64_t n = soft->shape.tokens, most = KEPT_BYTES / (int64_t)sizeof(real);
    soft->block = block;
    soft->kernel_reals = kernel_reals;
    soft->kept = soft_by_heads(soft) && kernel_reals > 0
                     ? soft_smaller(most / kernel_reals, (n + block - 1) / block)
                     : 0;
    int64_t least = soft_larger(soft->m * CHUNK_PER_LANDMARK, CHUNK);
    int64_t share = (n - 1) / MOST_CHUNKS + 1;
    soft->chunk = (soft_larger(share, least) + block - 1) / block * block;
    soft->chunks = (n + soft->chunk - 1) / soft->chunk;
}

/* The end of a chunk: the first token after it. */
static inline int64_t soft_chunk_end(const cpu_soft *soft, int64_t chunk)
{
    return soft_smaller((chunk + 1) * soft->chunk, soft->shape.tokens);
}

/* The passes over the tokens: first adds up U of a chunk, middle makes X U of all chunks' U, second
 * makes the chunk's rows of Y. by_heads: one thread runs all passes of the head. */
typedef struct {
    void (*first)(cpu_soft *soft, const atn_tensor *q, const atn_tensor *v, int64_t head,
                  int64_t chunk, bool by_heads);
    void (*middle)(const cpu_soft *soft, int64_t head);
    void (*second)(cpu_soft *soft, const atn_tensor *q, atn_tensor *out, int64_t head,
                   int64_t chunk, bool by_heads);
} soft_passes;

/* One thread computes a whole head, so that P, or else Q, is still in a cache when it is read
 * again; or threads share the chunks. */
static inline void soft_run_passes(const soft_passes *passes, cpu_soft *soft, const atn_tensor *q,
                                   const atn_tensor *v, atn_tensor *out)
{
    int threads = soft->threads;
    int64_t heads = soft_head_count(soft), chunks = soft->chunks, pieces = heads * chunks;
    if (soft_by_heads(soft)) {
#pragma omp parallel for num_threads(threads) schedule(dynamic)
        for (int64_t i = 0; i < heads; i++) {
            for (int64_t chunk = 0; chunk < chunks; chunk++)
                passes->first(soft, q, v, i, chunk, true);
            passes->middle(soft, i);
            for (int64_t chunk = 0; chunk < chunks; chunk++)
                passes->second(soft, q, out, i, chunk, true);
        }
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < pieces; i++)
        passes->first(soft, q, v, i / chunks, i % chunks, false);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < heads; i++)
        passes->middle(soft, i);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < pieces; i++)
        passes->second(soft, q, out, i / chunks, i % chunks, false);
}

/* Sets all outputs of each head to NaN that has NaN or infinity in its input or by overflow. */
static inline void soft_set_outputs_nan(cpu_soft *soft, atn_tensor *out)
{
    int threads = soft->threads;
    int64_t heads = soft_head_count(soft);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < heads; i++) {
        if (!memchr(soft->nonfinite + i * soft->chunks, 1, (size_t)soft->chunks))
            continue;
        soft->inverse.infos[i].status = ATN_NONFINITE;
        for (int64_t t = 0; t < out->rows; t++)
            for (int64_t c = 0; c < out->cols; c++)
                soft_rows(out, i, t)[c] = REAL_NAN;
    }
}

#endif
