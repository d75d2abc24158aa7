/* SPDX-License-Identifier: BSD-3-Clause */
/* Reformer's LSH attention (Kitaev et al. 2020). Weighting the rounds by their exp(lse_r) makes
 * them one softmax, over all keys that a token sees in any round, where a key seen several times
 * counts several times. That softmax is streamed here. */
#include <string.h>

#include "operators/checks.h"
#include "operators/lsh/plan.h"
#include "operators/norms/cpu.h"
#include "operators/softmax/cpu.h"

static const double smallest_norm = 1e-12;

/* Keys that a block of queries meets at a time: all that it sees if chunks have 64 tokens. */
enum { KEYS = 2 * HEAD_BLOCK };

/* A thread's memory for a block of queries and one of keys. */
typedef struct {
    real *q, *scaled_q, *grad_q; /* scaled: times c */
    real *rows;                  /* the queries' out or dY */
    real *k, *v, *grad_k, *grad_v;
    real *weights, *slopes; /* rows of KEYS */
    double sums[HEAD_BLOCK];
    real peaks[HEAD_BLOCK];
} block_memory;

typedef struct {
    real c;
    int64_t rounds, chunk, sequence; /* rounds n */
    block_memory own;
    /* the sequence; a copy and the buckets of one round (each int32_t in the memory of a real) */
    int32_t *order, *copy, *buckets;
    double *norms, *varies; /* per token: max(|q|, 1e-12), and whether that is |q| */
    real *keys;             /* per token: q / max(|q|, 1e-12) */
    real *peaks, *sums;     /* per token, in the head's state: the softmax's maximum and its sum, in
                               the end 1 / sum */
    real *out;              /* per token: h->out, or memory for backward */
    int64_t out_stride;
    real *means;     /* per token, backward: dY.Y */
    real *grad_keys; /* per token, backward: the derivative by q / |q| */
} pieces;

/* Tokens that are consecutive in the sequence, of which the first is at `at`. */
typedef struct {
    int64_t at, count;
    const int32_t *tokens;
} block;

static int64_t block_reals(int64_t d, int64_t dv)
{
    return HEAD_BLOCK * (3 * d + dv + 2 * KEYS) + 2 * KEYS * (d + dv);
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t n = shape->tokens, d = shape->dim, dv = shape->value_dim;
    *head_reals = 2 * n;
    *thread_reals = block_reals(d, dv) + n * (core_lsh_rounds(&desc->lsh) + 2 + 1 + 2 * d + dv) +
                    R(norm_doubles)(2 * n);
}

static block_memory block_memory_of(const head *h)
{
    real *work = h->work;
    int64_t d = h->d, dv = h->dv;
    return (block_memory){.q = head_take(&work, HEAD_BLOCK * d),
                          .scaled_q = head_take(&work, HEAD_BLOCK * d),
                          .grad_q = head_take(&work, HEAD_BLOCK * d),
                          .rows = head_take(&work, HEAD_BLOCK * dv),
                          .k = head_take(&work, KEYS * d),
                          .grad_k = head_take(&work, KEYS * d),
                          .v = head_take(&work, KEYS * dv),
                          .grad_v = head_take(&work, KEYS * dv),
                          .weights = head_take(&work, HEAD_BLOCK * KEYS),
                          .slopes = head_take(&work, HEAD_BLOCK * KEYS)};
}

static pieces split(const head *h)
{
    _Static_assert(sizeof(int32_t) <= sizeof(real), "tokens are kept in the memory of reals");
    int64_t n = h->n, d = h->d, dv = h->dv;
    real *work = h->work + block_reals(d, dv);
    pieces p = {.c = (real)core_logit_scale(h->desc, d),
                .rounds = core_lsh_rounds(&h->desc->lsh),
                .chunk = h->desc->lsh.chunk,
                .own = block_memory_of(h)};
    p.sequence = p.rounds * n;
    p.order = (int32_t *)head_take(&work, p.sequence);
    p.copy = (int32_t *)head_take(&work, n);
    p.buckets = (int32_t *)head_take(&work, n);
    p.norms = R(norm_take)(&work, 2 * n);
    p.varies = p.norms + n;
    p.peaks = h->state;
    p.sums = h->state + n;
    p.keys = head_take(&work, n * d);
    p.means = head_take(&work, n);
    p.grad_keys = head_take(&work, n * d);
    p.out = h->out ? h->out : head_take(&work, n * dv);
    p.out_stride = h->out ? h->out_stride : dv;
    return p;
}

/* The head's pieces, with the block memory of h's thread. */
static pieces pieces_on(const pieces *whole, const head *h)
{
    pieces p = *whole;
    p.own = block_memory_of(h);
    return p;
}

/* ---- Buckets, and the tokens sorted by them ---- */

/* Of a block of tokens the first maximum and the first minimum of x R so far. */
typedef struct {
    real highest[HEAD_BLOCK], lowest[HEAD_BLOCK];
    int32_t highest_at[HEAD_BLOCK], lowest_at[HEAD_BLOCK];
} extremes;

/* x: column `at` of x R. Without branches on data, which no processor could predict. */
static void update_extremes(extremes *e, int32_t at, int64_t rows, const real *restrict x)
{
    for (int64_t t = 0; t < rows; t++) {
        bool above = at == 0 || x[t] > e->highest[t], below = at == 0 || x[t] < e->lowest[t];
        e->highest[t] = above ? x[t] : e->highest[t];
        e->highest_at[t] = above ? at : e->highest_at[t];
        e->lowest[t] = below ? x[t] : e->lowest[t];
        e->lowest_at[t] = below ? at : e->lowest_at[t];
    }
}

/* Buckets of tokens i .. i + rows - 1 in one round. */
static void hash_block(const head *h, const pieces *p, int64_t round, int64_t i, int64_t rows)
{
    const atn_tensor *rotations = &h->desc->lsh.rotations;
    const real *rotation = atn_tensor_matrix(rotations, 0, round);
    int64_t half = rotations->cols;
    extremes e;
    for (int64_t first = 0; first < half; first += HEAD_BLOCK) {
        int64_t count = head_smaller(HEAD_BLOCK, half - first);
        real_gemm(CblasTrans, CblasTrans, count, rows, h->d, rotation + first, half,
                  h->q + i * h->q_stride, h->q_stride, 0, p->own.weights, HEAD_BLOCK);
        R(store)(h->desc->storage, count, rows, p->own.weights, HEAD_BLOCK);
        for (int64_t j = 0; j < count; j++)
            update_extremes(&e, (int32_t)(first + j), rows, p->own.weights + j * HEAD_BLOCK);
    }
    for (int64_t t = 0; t < rows; t++)
        p->buckets[i + t] =
            e.highest[t] >= -e.lowest[t] ? e.highest_at[t] : (int32_t)half + e.lowest_at[t];
}

/* A number that is larger for a larger bucket. given: the caller's buckets, or null. */
static inline uint64_t key_of(const pieces *p, const int64_t *given, int64_t token)
{
    return (uint64_t)(given ? given[token] : p->buckets[token]) ^ (uint64_t)1 << 63;
}

/* Sorts the tokens of one round by bucket, stably: a byte at a time, from the lowest, of those in
 * which buckets differ. */
static void sort_round(const pieces *p, const int64_t *given, int64_t n, int32_t *order)
{
    enum { KEY_BYTES = 8, VALUES = 256 };
    int32_t *from = order, *to = p->copy;
    uint64_t differing = 0;
    for (int64_t i = 0; i < n; i++) {
        order[i] = (int32_t)i;
        differing |= key_of(p, given, i) ^ key_of(p, given, 0);
    }
    for (int shift = 0; shift < 8 * KEY_BYTES; shift += 8) {
        if ((differing >> shift) % VALUES == 0)
            continue;
        int32_t places[VALUES + 1] = {0};
        for (int64_t i = 0; i < n; i++)
            places[(key_of(p, given, i) >> shift) % VALUES + 1]++;
        for (int value = 1; value < VALUES; value++)
            places[value] += places[value - 1];
        for (int64_t i = 0; i < n; i++)
            to[places[(key_of(p, given, from[i]) >> shift) % VALUES]++] = from[i];
        int32_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != order)
        memcpy(order, from, (size_t)n * sizeof *order);
}

/* Rounds first .. first + count - 1, with the thread's own copy and buckets. */
static void sort_rounds(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *whole = own;
    const int64_t *all = h->desc->lsh.buckets;
    pieces p = split(h);
    for (int64_t round = first; round < first + count; round++) {
        int64_t at = (h->batch * h->heads + h->index) * p.rounds + round;
        for (int64_t i = 0; !all && i < h->n; i += HEAD_BLOCK)
            hash_block(h, &p, round, i, head_smaller(HEAD_BLOCK, h->n - i));
        sort_round(&p, all ? all + at * h->n : NULL, h->n, whole->order + round * h->n);
    }
}

/* ---- Iterating over queries and the keys they see ---- */

/* One pass: calls open for a block of queries, then one function for each block of keys that they
 * see, then close. */
typedef struct {
    void (*open)(const head *h, pieces *p, const block *queries);
    void (*meet)(const head *h, pieces *p, const block *queries, const block *keys);
    void (*close)(const head *h, pieces *p, const block *queries);
} pass;

/* Queries of one round, and which keys they meet. */
typedef struct {
    const pieces *whole;
    const pass *over;
    int64_t start;     /* where in the sequence the first query is */
    bool before, same; /* the chunk before the queries', cyclically; the queries' chunk */
} walk;

/* At most `most` tokens from `at` to `end` in the sequence. */
static block block_at(const pieces *p, int64_t at, int64_t end, int64_t most)
{
    return (block){at, head_smaller(most, end - at), p->order + at};
}

static void meet_keys(const walk *w, const head *h, pieces *p, const block *queries, int64_t from,
                      int64_t to)
{
    for (int64_t at = from; at < to; at += KEYS) {
        block keys = block_at(p, at, to, KEYS);
        w->over->meet(h, p, queries, &keys);
    }
}

/* Whole chunks of queries. */
static void walk_chunks(const void *own, const head *h, int64_t first, int64_t count)
{
    const walk *w = own;
    pieces p = pieces_on(w->whole, h);
    for (int64_t at = w->start + first; at < w->start + first + count; at += p.chunk) {
        int64_t from = w->before ? at - p.chunk : at, to = w->same ? at + p.chunk : at;
        for (int64_t i = at; i < at + p.chunk; i += HEAD_BLOCK) {
            block queries = block_at(&p, i, at + p.chunk, HEAD_BLOCK);
            w->over->open(h, &p, &queries);
            if (from < 0)
                meet_keys(w, h, &p, &queries, p.sequence - p.chunk, p.sequence);
            meet_keys(w, h, &p, &queries, from < 0 ? 0 : from, to);
            w->over->close(h, &p, &queries);
        }
    }
}

static void share_chunks(const head *h, const walk *w, int64_t queries)
{
    int64_t chunk = w->whole->chunk, chunks = SUM_GROUP / chunk;
    R(head_share)(h, queries, (chunks > 1 ? chunks : 1) * chunk, w, walk_chunks, NULL);
}

static void gather(const block *b, int64_t cols, const real *from, int64_t stride, real *to)
{
    for (int64_t i = 0; i < b->count; i++)
        memcpy(to + i * cols, from + b->tokens[i] * stride, (size_t)cols * sizeof *to);
}

static void scatter_add(const block *b, int64_t cols, const real *from, real *to, int64_t stride)
{
    for (int64_t i = 0; i < b->count; i++)
        for (int64_t c = 0; c < cols; c++)
            to[b->tokens[i] * stride + c] += from[i * cols + c];
}

/* Writes `value` where a query meets itself: in its own round at its own place in the sequence;
 * keys of another round are compared one by one. */
static void set_self(const head *h, const block *queries, const block *keys, real value, real *to)
{
    int64_t round = queries->at / h->n * h->n;
    for (int64_t j = 0; j < keys->count; j++) {
        int64_t at = keys->at + j, i = at - queries->at;
        if (round <= at && at < round + h->n) {
            if (0 <= i && i < queries->count)
                to[i * KEYS + j] = value;
            continue;
        }
        for (i = 0; i < queries->count; i++)
            if (queries->tokens[i] == keys->tokens[j])
                to[i * KEYS + j] = value;
    }
}

static void load_queries(const head *h, const pieces *p, const block *queries)
{
    gather(queries, h->d, h->q, h->q_stride, p->own.q);
    for (int64_t e = 0; e < queries->count * h->d; e++)
        p->own.scaled_q[e] = p->c * p->own.q[e];
}

/* weights = the logits; loads k and v of the keys. */
static void meet_logits(const head *h, const pieces *p, const block *queries, const block *keys)
{
    gather(keys, h->d, p->keys, h->d, p->own.k);
    gather(keys, h->dv, h->v, h->v_stride, p->own.v);
    real_gemm(CblasNoTrans, CblasTrans, queries->count, keys->count, h->d, p->own.scaled_q, h->d,
              p->own.k, h->d, 0, p->own.weights, KEYS);
    set_self(h, queries, keys, (real)h->desc->lsh.self_logit, p->own.weights);
}

/* ---- Forward ---- */

static void open_forward(const head *h, pieces *p, const block *queries)
{
    load_queries(h, p, queries);
    gather(queries, h->dv, p->out, p->out_stride, p->own.rows);
    for (int64_t i = 0; i < queries->count; i++) {
        p->own.peaks[i] = p->peaks[queries->tokens[i]];
        p->own.sums[i] = (double)p->sums[queries->tokens[i]];
    }
}

_Static_assert((int)HEAD_BLOCK <= (int)SOFTMAX_GROUP, "softmax_raise takes no more rows");

static void meet_forward(const head *h, pieces *p, const block *queries, const block *keys)
{
    int64_t rows = queries->count, counts[HEAD_BLOCK];
    double shrink[HEAD_BLOCK], sums[HEAD_BLOCK];
    meet_logits(h, p, queries, keys);
    for (int64_t i = 0; i < rows; i++)
        counts[i] = keys->count;
    R(softmax_raise)(rows, counts, 1, p->own.weights, KEYS, p->own.peaks, shrink);
    R(simd).exponential_rows(rows, counts, 1, p->own.peaks, p->own.weights, KEYS, p->own.weights,
                             KEYS, sums);
    for (int64_t i = 0; i < rows; i++) {
        p->own.sums[i] = p->own.sums[i] * shrink[i] + sums[i];
        if (shrink[i] != 1)
            R(scale_row)(h->dv, shrink[i], p->own.rows + i * h->dv);
    }
    R(store)(h->desc->storage, rows, keys->count, p->own.weights, KEYS);
    real_gemm(CblasNoTrans, CblasNoTrans, rows, h->dv, keys->count, p->own.weights, KEYS, p->own.v,
              h->dv, 1, p->own.rows, h->dv);
}

static void close_forward(const head *h, pieces *p, const block *queries)
{
    for (int64_t i = 0; i < queries->count; i++) {
        int64_t token = queries->tokens[i];
        memcpy(p->out + token * p->out_stride, p->own.rows + i * h->dv,
               (size_t)h->dv * sizeof(real));
        p->peaks[token] = p->own.peaks[i];
        p->sums[token] = (real)p->own.sums[i];
    }
}

/* The norms and keys of some tokens. */
static void load_keys(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *p = own;
    R(row_norms)(count, h->d, h->q + first * h->q_stride, h->q_stride, p->norms + first);
    for (int64_t i = first; i < first + count; i++) {
        p->norms[i] = core_norm_divisor(p->norms[i], smallest_norm, &p->varies[i]);
        R(norm_scale)(1, p->norms[i], h->d, h->q + i * h->q_stride, 1, p->keys + i * h->d, 1);
    }
    R(store)(h->desc->storage, count, h->d, p->keys + first * h->d, h->d);
}

/* The state of a softmax that has seen no key. */
static void open_tokens(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *p = own;
    for (int64_t i = first; i < first + count; i++) {
        p->peaks[i] = -INFINITY;
        p->sums[i] = 0;
        memset(p->out + i * p->out_stride, 0, (size_t)h->dv * sizeof(real));
    }
}

static void close_tokens(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *p = own;
    for (int64_t i = first; i < first + count; i++) {
        p->sums[i] = 1 / p->sums[i];
        for (int64_t c = 0; c < h->dv; c++)
            p->out[i * p->out_stride + c] *= p->sums[i];
    }
    if (h->out)
        head_finish_rows(h, first, count);
}

/* The sequence and the keys. */
static void arrange(const head *h, const pieces *p)
{
    R(head_share)(h, p->rounds, 1, p, sort_rounds, NULL);
    R(head_share_tokens)(h, h->n, p, load_keys);
}

/* Leaves Y in p->out and the reciprocal sums in p->sums. In a round every token is a query once. */
static void attend(const head *h, const pieces *p)
{
    static const pass forward_pass = {open_forward, meet_forward, close_forward};
    R(head_share_tokens)(h, h->n, p, open_tokens);
    for (int64_t start = 0; start < p->sequence; start += h->n) {
        walk w = {p, &forward_pass, start, true, true};
        share_chunks(h, &w, h->n);
    }
    R(head_share_tokens)(h, h->n, p, close_tokens);
}

static void forward(const head *h)
{
    pieces p = split(h);
    arrange(h, &p);
    attend(h, &p);
}

/* ---- Backward ---- */

static void open_backward(const head *h, pieces *p, const block *queries)
{
    load_queries(h, p, queries);
    gather(queries, h->dv, h->grad_out, h->grad_out_stride, p->own.rows);
    memset(p->own.grad_q, 0, (size_t)(queries->count * h->d) * sizeof(real));
}

/* Turns logits into weights, and the derivative by the weights into that by q.k. */
static void slopes_of(const head *h, const pieces *p, const block *queries, const block *keys)
{
    int64_t rows = queries->count, counts[HEAD_BLOCK];
    double sums[HEAD_BLOCK];
    real peaks[HEAD_BLOCK];
    for (int64_t i = 0; i < rows; i++) {
        counts[i] = keys->count;
        peaks[i] = p->peaks[queries->tokens[i]];
    }
    R(simd).exponential_rows(rows, counts, 1, peaks, p->own.weights, KEYS, p->own.weights, KEYS,
                             sums);
    for (int64_t i = 0; i < rows; i++) {
        real factor = p->sums[queries->tokens[i]], mean = p->means[queries->tokens[i]];
        real *restrict weights = p->own.weights + i * KEYS;
        real *restrict slopes = p->own.slopes + i * KEYS;
        for (int64_t j = 0; j < keys->count; j++) {
            weights[j] *= factor;
            slopes[j] = p->c * weights[j] * (slopes[j] - mean);
        }
    }
    set_self(h, queries, keys, 0, p->own.slopes);
}

static void meet_backward(const head *h, pieces *p, const block *queries, const block *keys)
{
    int64_t d = h->d, dv = h->dv;
    meet_logits(h, p, queries, keys);
    real_gemm(CblasNoTrans, CblasTrans, queries->count, keys->count, dv, p->own.rows, dv, p->own.v,
              dv, 0, p->own.slopes, KEYS);
    slopes_of(h, p, queries, keys);
    real_gemm(CblasTrans, CblasNoTrans, keys->count, dv, queries->count, p->own.weights, KEYS,
              p->own.rows, dv, 0, p->own.grad_v, dv);
    scatter_add(keys, dv, p->own.grad_v, h->grad_v, h->grad_v_stride);
    real_gemm(CblasNoTrans, CblasNoTrans, queries->count, d, keys->count, p->own.slopes, KEYS,
              p->own.k, d, 1, p->own.grad_q, d);
    real_gemm(CblasTrans, CblasNoTrans, keys->count, d, queries->count, p->own.slopes, KEYS,
              p->own.q, d, 0, p->own.grad_k, d);
    scatter_add(keys, d, p->own.grad_k, p->grad_keys, d);
}

static void close_backward(const head *h, pieces *p, const block *queries)
{
    scatter_add(queries, h->d, p->own.grad_q, h->grad_q, h->grad_q_stride);
}

static void open_gradients(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *p = own;
    const real *y = h->y ? h->y : p->out;
    int64_t stride = h->y ? h->y_stride : p->out_stride;
    for (int64_t i = first; i < first + count; i++)
        p->means[i] = (real)R(dot)(h->dv, h->grad_out + i * h->grad_out_stride, y + i * stride);
    memset(p->grad_keys + first * h->d, 0, (size_t)(count * h->d) * sizeof(real));
}

/* Backward through k = q / max(|q|, 1e-12): dq += (dk - k (k.dk)) / |q|, or dk / 1e-12. */
static void normalised_backward(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *p = own;
    for (int64_t i = first; i < first + count; i++) {
        const real *q = h->q + i * h->q_stride, *grad = p->grad_keys + i * h->d;
        double norm = p->norms[i], along = p->varies[i] * R(dot)(h->d, q, grad) / norm / norm;
        for (int64_t c = 0; c < h->d; c++)
            h->grad_q[i * h->grad_q_stride + c] +=
                (real)(((double)grad[c] - along * (double)q[c]) / norm);
    }
}

/* In a round every token is a key of its own chunk and of the next one, in two passes. But
 * the first chunk meets keys of the round before, which may be of any chunk in this one: alone. */
static void backward(const head *h)
{
    static const pass backward_pass = {open_backward, meet_backward, close_backward};
    pieces p = split(h);
    arrange(h, &p);
    if (!h->y)
        attend(h, &p);
    R(head_share_tokens)(h, h->n, &p, open_gradients);
    for (int64_t start = 0; start < p.sequence; start += h->n) {
        walk same = {&p, &backward_pass, start, false, true};
        walk before = {&p, &backward_pass, start, true, false};
        share_chunks(h, &same, h->n);
        walk_chunks(&before, h, 0, p.chunk);
        before.start += p.chunk;
        share_chunks(h, &before, h->n - p.chunk);
    }
    R(head_share_tokens)(h, h->n, &p, normalised_backward);
}

const head_operator R(cpu_operator_lsh) = {
    .sizes = sizes, .forward = forward, .backward = backward, .shares = HEAD_SHARED};
