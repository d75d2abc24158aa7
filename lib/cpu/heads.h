/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of an operator that works head by head, for one `real`. heads.c runs it: it checks for
 * NaN where the operator does not, removes padding, distributes heads over threads (or, if there
 * are few, a head's tokens) and adds up parameters' gradients. */
#ifndef CPU_HEADS_H
#define CPU_HEADS_H

#include <string.h>

#include "cpu/blocks.h"
#include "operators/list.h"

/* One head of a call. Padding has been removed: n and n_k count the remaining tokens. */
typedef struct {
    const atn_attention_desc *desc;
    int64_t index, heads;         /* which of the h heads, for parameters */
    int64_t batch;                /* which entry of the batch */
    int64_t n, n_k, d, dv;        /* queries, keys (either may be 0), widths */
    int64_t length, key_length;   /* with padding */
    int threads;                  /* that work on this head (head_share) */
    int64_t first, first_key;     /* of a part of a head: indices of its first query and key */
    const int64_t *positions;     /* of query i with padding: core_position(positions, first + i) */
    const int64_t *key_positions; /* likewise, of key j */
    const real *q, *k, *v;        /* k = q where the call's k is null */
    int64_t q_stride, k_stride, v_stride;
    real *out; /* forward only: n x dv, to be overwritten */
    int64_t out_stride;
    /* backward only; gradients are added to, or overwritten if the operator asks for it. grad_k may
     * be the same memory as grad_q */
    const real *grad_out;
    const real *y; /* what forward left in out, of the same inputs and not rounded; or null */
    int64_t y_stride;
    real *grad_q, *grad_k, *grad_v;
    int64_t grad_out_stride, grad_q_stride, grad_k_stride, grad_v_stride;
    real *grad_parameters[ATN_PARAMETER_COUNT]; /* this head's, dense; null: not wanted */
    real *work;                                 /* thread_reals, uninitialised */
    int64_t work_stride;                        /* from one thread's work to the next one's */
    real *state; /* head_reals, kept from `before` to `after` of a call, and to the next one */
    bool after_forward;       /* backward: state is as forward left it for the same inputs */
    unsigned char *nonfinite; /* see head_search */
} R(head);
typedef R(head) head;

/* How much of the work of before, forward and backward is divided by head_share or head_scan. If
 * there are fewer heads than threads, heads may come one after the other, each with all threads;
 * where a head is shared in part, only if there is one. Causal and padded heads count as shared in
 * part. */
typedef enum { HEAD_ALONE, HEAD_SHARED_IN_PART, HEAD_SHARED } head_sharing;

/* Every call runs these functions in this order, each over all heads, and skips those that are
 * null. Only join and backward_join run once, for the states of all finite heads of the batch:
 *   forward:  before, join, forward
 *   backward: before, join (neither after_forward), backward, backward_join, after */
typedef struct {
    void (*sizes)(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals);
    void (*forward)(const head *h);
    void (*backward)(const head *h);
    void (*before)(const head *h);
    void (*join)(int64_t count, real *const *states);
    void (*backward_join)(int64_t count, real *const *states);
    void (*after)(const head *h);
    head_sharing shares;
    /* backward overwrites grad_q, grad_v and, if it is not the same memory as grad_q, grad_k, which
     * are not initialised before it. */
    bool overwrites;
    /* A NaN or an infinity anywhere in Q, K or V (backward: or dY) makes some of Y (of dQ, dK or
     * dV) NaN or infinite if nothing is masked out: without masks inputs are not searched. */
    bool propagates;
    /* Without that: before and forward (backward, if not after forward) search all blocks of Q, K
     * and V by head_search when they load them; V, if every row of Y sums over all keys, by
     * head_search_summed; and efficient attention finds a bad key by its exponential. backward
     * searches dY by head_search_grad_out. */
    bool searches;
    /* backward searches all rows of dQ, dK and dV by head_search_rows, after the last change to
     * each: a block that has just been written is still in a first-level cache, and is not read
     * again after the whole head. With masks heads.c searches them all the same. */
    bool searches_gradients;
} R(head_operator);
typedef R(head_operator) head_operator;

/* One for each operator, in the cpu.c of its folder. */
#define HEADS_EXTERN(code, name) extern const head_operator R(cpu_operator_##name);
#define SOFT_EXTERN(code, name)
#define CPU_EXTERN(code, name, family) family##_EXTERN(code, name)
OPERATOR_LIST(CPU_EXTERN)

/* Tokens that are processed at a time: blocks of 64 x 64 stay in a first-level cache. */
enum { HEAD_BLOCK = 64 };

static inline int64_t head_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Whether query i sees key j: causal attention compares their positions. */
static inline bool head_sees(const head *h, int64_t i, int64_t j)
{
    return !h->desc->causal || core_position(h->key_positions, h->first_key + j) <=
                                   core_position(h->positions, h->first + i);
}

/* The number of the keys first .. first + keys - 1 that query i sees: the first ones, as positions
 * ascend. */
static inline int64_t head_keys_seen(const head *h, int64_t i, int64_t first, int64_t keys)
{
    while (keys > 0 && !head_sees(h, i, first + keys - 1))
        keys--;
    return keys;
}

/* Notes NaN and infinities in some rows. */
static inline void head_search_rows(const head *h, int64_t rows, int64_t cols, const real *x,
                                    int64_t stride)
{
    if (!R(all_finite)(rows, cols, x, stride)) {
#pragma omp atomic write
        *h->nonfinite = 1;
    }
}

/* Rows of Y to which nothing is added any more: rounds them to the storage and notes NaN and
 * infinities, while they are in a cache. forward finishes every row that it does not clear. */
static inline void head_finish_rows(const head *h, int64_t first, int64_t rows)
{
    real *y = h->out + first * h->out_stride;
    R(store)(h->desc->storage, rows, h->dv, y, h->out_stride);
    head_search_rows(h, rows, h->dv, y, h->out_stride);
}

/* The same of Q, K or V, unless after forward, which has found none. */
static inline void head_search(const head *h, int64_t rows, int64_t cols, const real *x,
                               int64_t stride)
{
    if (!h->after_forward)
        head_search_rows(h, rows, cols, x, stride);
}

/* The same of V where every sum over the keys has a term of each row, even if its weight is 0: 0
 * times NaN or infinity is NaN. Forward then need not search it, unless there is no query, because
 * Y is searched. */
static inline void head_search_summed(const head *h, int64_t rows, const real *v)
{
    if (!h->out || h->n == 0)
        head_search(h, rows, h->dv, v, h->v_stride);
}

/* Notes NaN and infinities in rows of dY where they may be in no gradient: of a query that sees no
 * key. Otherwise they are in dV, which is searched: 0 times NaN is NaN. */
static inline void head_search_grad_out(const head *h, int64_t rows, const real *dy)
{
    if ((h->desc->causal && h->key_positions) || h->n_k == 0)
        head_search_rows(h, rows, h->dv, dy, h->grad_out_stride);
}

/* ---- Parts of a head ---- */

/* Runs part(own, h, first, count) for groups of `group` of so many tokens (the last may have
 * fewer), on h->threads threads, each with work of its own. The calling thread takes part with
 * h->work itself: a part must not write there what its caller still reads. Of the state and of
 * shared arrays a part writes only elements that no other part writes. add, if not null, is called
 * after each part, on its thread and in the order of the tokens, so that sums of what parts leave
 * in their work have the same bits for any number of threads. */
typedef void R(head_part)(const void *own, const head *h, int64_t first, int64_t count);
typedef R(head_part) head_part;
void R(head_share)(const head *h, int64_t tokens, int64_t group, const void *own, head_part *part,
                   head_part *add);

/* Tokens whose sums are added to a head's: few groups, so that adding costs little. */
enum { SUM_GROUP = 512 };

/* The same for tokens whose results depend on no others: one group or, for several threads, groups
 * of a multiple of HEAD_BLOCK. */
void R(head_share_tokens)(const head *h, int64_t tokens, const void *own, head_part *part);

/* Prefix sums, for parts that need the sums of all groups before their own. For each group, of a
 * multiple of HEAD_BLOCK tokens:
 *   sum    leaves the group's own sums in its work; take must keep them
 *   take   copies the sums of the groups before to its work
 *   add    adds the group's to those
 *   part   does the work, and leaves the group's own sums in its work as `sum` does
 *   after  or null
 * take, add and after run in the order of the tokens, on any thread, with the work of the group's
 * thread. One thread takes, does its part and adds, without sum. */
typedef struct {
    head_part *sum, *take, *add, *part, *after;
} R(head_scan_parts);
typedef R(head_scan_parts) head_scan_parts;
void R(head_scan)(const head *h, int64_t tokens, int64_t group, const void *own,
                  const head_scan_parts *parts);

/* sums += a part's */
static inline void head_add(int64_t count, const real *part, real *sums)
{
    for (int64_t e = 0; e < count; e++)
        sums[e] += part[e];
}

/* The same for rows of `cols`; the part's are dense. */
static inline void head_add_rows(int64_t rows, int64_t cols, const real *part, real *sums,
                                 int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        head_add(cols, part + i * cols, sums + i * stride);
}

/* Backward of operators whose pairs of tokens each add to dQ, dK and dV: runs pairs(h) for spans of
 * queries and groups of keys, which the head h then consists of. Threads share the groups; their
 * dQ, and dK if it is the same array, is in h->work, of which `pairs` may use what follows the
 * first pair_reals elements. */
int64_t R(pair_reals)(int64_t n, int64_t key_group, int64_t d);
void R(head_share_pairs)(const head *h, int64_t key_group, void (*pairs)(const head *h));

/* Rows of `cols` become 0. */
static inline void head_clear_rows(int64_t rows, int64_t cols, real *a, int64_t stride)
{
    if (stride == cols) { /* one long row */
        cols *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++)
        memset(a + i * stride, 0, (size_t)cols * sizeof *a);
}

/* The next `count` elements of an operator's memory. */
static inline real *head_take(real **free, int64_t count)
{
    real *taken = *free;
    *free += count;
    return taken;
}

/* The matrix of a 1 x (1 or h) x rows x cols tensor that belongs to a head. */
static inline real *head_matrix(const atn_tensor *t, int64_t index)
{
    return (real *)atn_tensor_matrix(t, 0, t->heads == 1 ? 0 : index);
}

/* Copies rows[0], rows[1], ... of `from`. */
void R(gather_rows)(int64_t count, const int64_t *rows, int64_t cols, const real *from,
                    int64_t stride, real *to);

/* grad_q, grad_k and grad_v become 0, for operators that overwrite them only in part. */
void R(clear_gradients)(const head *h);

void R(heads_layout)(core_arena *arena, cpu_heads *heads);
void R(heads_forward)(cpu_heads *heads, const atn_attention_inputs *inputs, atn_tensor *out);
void R(heads_backward)(cpu_heads *heads, const atn_attention_inputs *inputs, const atn_tensor *dout,
                       atn_gradients *gradients);

#endif
