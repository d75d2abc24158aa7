/* SPDX-License-Identifier: BSD-3-Clause */
/* Reformer's LSH attention (Kitaev et al. 2020), as one softmax over all keys that a token sees in
 * any round (operators/lsh/cpu.c). Every round has each token once, so each round is a pass of its
 * own (step), in which no two blocks write a token's row. */
#include "operators/lsh/plan.h"
#include "operators/norms/cuda.cuh"
#include "operators/softmax/cuda.cuh"

/* Per head. */
typedef struct {
    int64_t rounds, chunk, sequence; /* rounds n */
    double *norms, *varies;          /* per token: max(|q|, 1e-12), and whether that is |q| */
    real *peaks, *sums;              /* per token: the softmax's maximum, and its sum, later 1 /
                                        sum */
    real *means;                     /* per token, backward: dY.Y */
    real *out;                       /* per token */
    real *grad_keys;                 /* per token, backward: the derivative by q / |q| */
    int32_t *order, *buckets, *copy; /* the sequence; every round's buckets; one round's order */
} lsh_memory;

/* Per block: queries, their out or dY, keys, values, gradients, weights and slopes, the state of
 * the queries' softmax. */
typedef struct {
    real *state; /* softmax_state_reals */
    real *q, *rows, *k, *v, *grad, *grad_v, *weights, *slopes;
} lsh_tiles;

/* Elements that hold `count` numbers of 32 bits. */
static __host__ __device__ int64_t integer_reals(int64_t count)
{
    int64_t each = (int64_t)(sizeof(real) / sizeof(int32_t));
    return (count + each - 1) / each;
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape, head_sizes *s)
{
    int64_t n = shape->tokens, d = shape->dim, dv = shape->value_dim;
    s->chunk_reals = 0;
    s->head_reals = double_reals(2 * n) + n * (3 + d + dv) +
                    integer_reals(n * (2 * core_lsh_rounds(&desc->lsh) + 1));
    s->block_reals = softmax_state_reals() + HEAD_TILE * (3 * d + 3 * dv + 2 * HEAD_TILE);
}

static __device__ lsh_memory memory_of(const head &h)
{
    const atn_lsh_options &options = h.desc->lsh;
    lsh_memory m;
    int64_t n = h.n;
    m.rounds = options.buckets ? options.rounds : options.rotations.heads;
    m.chunk = options.chunk;
    m.sequence = m.rounds * n;
    m.norms = (double *)h.state;
    m.varies = m.norms + n;
    real *free = (real *)(m.varies + n);
    m.peaks = head_take(&free, n);
    m.sums = head_take(&free, n);
    m.means = head_take(&free, n);
    m.out = head_take(&free, n * h.dv);
    m.grad_keys = head_take(&free, n * h.d);
    m.order = (int32_t *)free;
    m.buckets = m.order + m.sequence;
    m.copy = m.buckets + m.sequence;
    return m;
}

static __device__ lsh_tiles tiles_of(const head &h)
{
    lsh_tiles t;
    real *free = h.work;
    t.state = head_take(&free, softmax_state_reals());
    t.q = head_take(&free, HEAD_TILE * h.d);
    t.k = head_take(&free, HEAD_TILE * h.d);
    t.grad = head_take(&free, HEAD_TILE * h.d);
    t.rows = head_take(&free, HEAD_TILE * h.dv);
    t.v = head_take(&free, HEAD_TILE * h.dv);
    t.grad_v = head_take(&free, HEAD_TILE * h.dv);
    t.weights = head_take(&free, HEAD_TILE * HEAD_TILE);
    t.slopes = free;
    return t;
}

/* ---- Buckets, and the tokens sorted by them ---- */

/* The bucket of token i in round `step`: the first maximum of a row of [x, -x], where x comes in
 * tiles. */
static __device__ void hash_tokens(const head &h)
{
    __shared__ real highest[HEAD_TILE], lowest[HEAD_TILE];
    __shared__ int32_t highest_at[HEAD_TILE], lowest_at[HEAD_TILE];
    lsh_memory m = memory_of(h);
    lsh_tiles t = tiles_of(h);
    token_rows rotation = head_parameter(h.desc->lsh.rotations, h.step);
    int64_t half = h.desc->lsh.rotations.cols;
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        block_load(h.q, i, rows, h.d, t.q);
        for (int64_t first = 0; first < half; first += HEAD_TILE) {
            int64_t count = head_smaller(HEAD_TILE, half - first);
            BLOCK_EACH (e, h.d * count)
                t.k[e] = rows_get(rotation, e / count, first + e % count);
            __syncthreads();
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, count, h.d, t.q, h.d, t.k, count, false,
                       t.weights, HEAD_TILE);
            BLOCK_EACH (r, rows)
                for (int64_t j = 0; j < count; j++) {
                    real x = t.weights[r * HEAD_TILE + j];
                    if (first + j == 0 || x > highest[r]) {
                        highest[r] = x;
                        highest_at[r] = (int32_t)(first + j);
                    }
                    if (first + j == 0 || x < lowest[r]) {
                        lowest[r] = x;
                        lowest_at[r] = (int32_t)(first + j);
                    }
                }
            __syncthreads();
        }
        BLOCK_EACH (r, rows)
            m.buckets[h.step * h.n + i + r] =
                highest[r] >= -lowest[r] ? highest_at[r] : (int32_t)half + lowest_at[r];
        __syncthreads();
    }
}

/* One round's buckets: the caller's or computed ones. */
typedef struct {
    const int64_t *given;
    const int32_t *found;
} bucket_list;

static __device__ __forceinline__ int64_t bucket_of(const bucket_list &b, int32_t token)
{
    return b.given ? b.given[token] : b.found[token];
}

/* How many of the sorted tokens from[first], ..., from[last - 1] come before a bucket: those whose
 * bucket is smaller, or with `equal` not larger. */
static __device__ int64_t count_before(const bucket_list &b, const int32_t *from, int64_t first,
                                       int64_t last, int64_t bucket, bool equal)
{
    int64_t low = first, high = last;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, other = bucket_of(b, from[middle]);
        if (other < bucket || (equal && other == bucket))
            low = middle + 1;
        else
            high = middle;
    }
    return low - first;
}

/* Sorts the tokens of one round by bucket, stably: merges runs of 1, 2, 4, ... tokens, in which
 * every token finds its own place. */
static __device__ void sort_round(const bucket_list &b, int64_t n, int32_t *order, int32_t *copy)
{
    int32_t *from = order, *to = copy;
    BLOCK_EACH (i, n)
        order[i] = (int32_t)i;
    __syncthreads();
    for (int64_t width = 1; width < n; width *= 2) {
        BLOCK_EACH (i, n) {
            int64_t first = i / (2 * width) * (2 * width), middle = head_smaller(first + width, n);
            int64_t last = head_smaller(first + 2 * width, n), bucket = bucket_of(b, from[i]);
            int64_t others = i < middle ? count_before(b, from, middle, last, bucket, false)
                                        : count_before(b, from, first, middle, bucket, true);
            to[(i < middle ? i : first + i - middle) + others] = from[i];
        }
        __syncthreads();
        int32_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != order)
        BLOCK_EACH (i, n)
            order[i] = from[i];
    __syncthreads();
}

static __device__ void sort_tokens(const head &h)
{
    lsh_memory m = memory_of(h);
    const int64_t *all = h.desc->lsh.buckets;
    for (int64_t round = 0; round < m.rounds; round++) {
        bucket_list b = {all ? all + (h.piece * m.rounds + round) * h.n : NULL,
                         m.buckets + round * h.n};
        sort_round(b, h.n, m.order + round * h.n, m.copy);
    }
}

static __device__ void start_tokens(const head &h)
{
    static const double smallest_norm = 1e-12;
    lsh_memory m = memory_of(h);
    BLOCK_EACH (e, h.end - h.first) {
        int64_t i = h.first + e;
        norm_sum sum = {0, 0};
        for (int64_t c = 0; c < h.d; c++)
            norm_add(ATN_SIMA_L2, &sum, (double)rows_get(h.q, i, c));
        m.norms[i] = core_norm_divisor(norm_value(ATN_SIMA_L2, sum), smallest_norm, &m.varies[i]);
        m.peaks[i] = -REAL_INFINITY;
        m.sums[i] = 0;
    }
    block_fill((h.end - h.first) * h.dv, 0, m.out + h.first * h.dv);
    block_fill((h.end - h.first) * h.d, 0, m.grad_keys + h.first * h.d);
}

/* ---- Iterating over queries and the keys they see ---- */

/* Tokens that are consecutive in the sequence. */
typedef struct {
    int64_t count;
    const int32_t *tokens;
} token_list;

/* The tile that starts at position i of this chunk's part of round `step`; it does not extend
 * beyond an LSH chunk. *start is where that LSH chunk begins in the sequence. */
static __device__ token_list tile_at(const head &h, const lsh_memory &m, int64_t i, int64_t *start)
{
    int64_t at = h.step * h.n + i, left = h.end - i;
    *start = at / m.chunk * m.chunk;
    left = head_smaller(left, *start + m.chunk - at);
    token_list tile = {head_smaller(HEAD_TILE, left), m.order + at};
    return tile;
}

/* The tile `offset` into the LSH chunk that starts at `start`. */
static __device__ token_list tile_of(const lsh_memory &m, int64_t start, int64_t offset)
{
    token_list tile = {head_smaller(HEAD_TILE, m.chunk - offset), m.order + start + offset};
    return tile;
}

static __device__ void gather(const token_list &list, int64_t cols, const token_rows &from,
                              real *tile)
{
    BLOCK_EACH (e, list.count * cols)
        tile[e] = rows_get(from, list.tokens[e / cols], e % cols);
    __syncthreads();
}

static __device__ void gather_keys(const head &h, const lsh_memory &m, const token_list &keys,
                                   const lsh_tiles &t)
{
    BLOCK_EACH (e, keys.count * h.d) {
        int32_t token = keys.tokens[e / h.d];
        t.k[e] = (real)((double)rows_get(h.q, token, e % h.d) / m.norms[token]);
    }
    gather(keys, h.dv, h.v, t.v);
}

/* weights = the logits of the loaded tiles. */
static __device__ void find_logits(const head &h, const token_list &queries, const token_list &keys,
                                   const lsh_tiles &t)
{
    real c = (real)softmax_scale(h), self = (real)h.desc->lsh.self_logit;
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, queries.count, keys.count, h.d, t.q, h.d, t.k, h.d,
               false, t.weights, HEAD_TILE);
    BLOCK_EACH (e, queries.count * keys.count) {
        int64_t i = e / keys.count, j = e % keys.count;
        real *logit = &t.weights[i * HEAD_TILE + j];
        *logit = queries.tokens[i] == keys.tokens[j] ? self : c * *logit;
    }
    __syncthreads();
}

/* ---- Forward ---- */

static __device__ void meet_keys(const head &h, const lsh_memory &m, const softmax_state &state,
                                 const token_list &queries, const token_list &keys,
                                 const lsh_tiles &t)
{
    gather_keys(h, m, keys, t);
    find_logits(h, queries, keys, t);
    softmax_advance(state, queries.count, keys.count, t.weights, h.dv, t.rows,
                    [](int64_t, int64_t) { return true; });
    block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, queries.count, h.dv, keys.count, t.weights, HEAD_TILE,
               t.v, h.dv, true, t.rows, h.dv);
}

static __device__ void add_round(const head &h)
{
    lsh_memory m = memory_of(h);
    lsh_tiles t = tiles_of(h);
    token_list queries;
    for (int64_t i = h.first; i < h.end; i += queries.count) {
        int64_t start;
        queries = tile_at(h, m, i, &start);
        gather(queries, h.d, h.q, t.q);
        BLOCK_EACH (e, queries.count * h.dv)
            t.rows[e] = m.out[queries.tokens[e / h.dv] * h.dv + e % h.dv];
        softmax_state state = softmax_open(t.state);
        BLOCK_EACH (r, queries.count) {
            state.largest[r] = m.peaks[queries.tokens[r]];
            state.sum[r] = (double)m.sums[queries.tokens[r]];
        }
        __syncthreads();
        /* the chunk before, cyclically; then the queries' own chunk */
        const int64_t seen[2] = {(start > 0 ? start : m.sequence) - m.chunk, start};
        for (int side = 0; side < 2; side++)
            for (int64_t j = 0; j < m.chunk; j += HEAD_TILE)
                meet_keys(h, m, state, queries, tile_of(m, seen[side], j), t);
        BLOCK_EACH (e, queries.count * h.dv)
            m.out[queries.tokens[e / h.dv] * h.dv + e % h.dv] = t.rows[e];
        BLOCK_EACH (r, queries.count) {
            m.peaks[queries.tokens[r]] = state.largest[r];
            m.sums[queries.tokens[r]] = (real)state.sum[r];
        }
        __syncthreads();
    }
}

/* Y and the reciprocal sums stay in the head's memory. */
static __device__ void finish_tokens(const head &h)
{
    lsh_memory m = memory_of(h);
    BLOCK_EACH (e, h.end - h.first)
        m.sums[h.first + e] = 1 / m.sums[h.first + e];
    __syncthreads();
    BLOCK_EACH (e, (h.end - h.first) * h.dv)
        m.out[h.first * h.dv + e] *= m.sums[h.first + e / h.dv];
    __syncthreads();
}

static __device__ void write_output(const head &h)
{
    block_store(h.out, h.first, h.end - h.first, h.dv, memory_of(h).out + h.first * h.dv);
}

static void find_output(head_launch *l)
{
    const atn_lsh_options *options = &l->call.plan.desc.lsh;
    int64_t rounds = core_lsh_rounds(options);
    for (l->call.step = 0; l->call.step < rounds && !options->buckets; l->call.step++)
        OVER_CHUNKS(l, hash_tokens);
    OVER_HEADS(l, sort_tokens);
    OVER_CHUNKS(l, start_tokens);
    for (l->call.step = 0; l->call.step < rounds; l->call.step++)
        OVER_CHUNKS(l, add_round);
    OVER_CHUNKS(l, finish_tokens);
}

static void forward(head_launch *l)
{
    find_output(l);
    OVER_CHUNKS(l, write_output);
}

/* ---- Backward ---- */

static __device__ void find_means(const head &h)
{
    lsh_memory m = memory_of(h);
    BLOCK_EACH (e, h.end - h.first) {
        int64_t i = h.first + e;
        double sum = 0;
        for (int64_t c = 0; c < h.dv; c++)
            sum += (double)rows_get(h.grad_out, i, c) * (double)m.out[i * h.dv + c];
        m.means[i] = (real)sum;
    }
    __syncthreads();
}

/* For the loaded tiles: weights, and in slopes the derivative by q.k. */
static __device__ void find_slopes(const head &h, const lsh_memory &m, const token_list &queries,
                                   const token_list &keys, const lsh_tiles &t)
{
    real c = (real)softmax_scale(h);
    find_logits(h, queries, keys, t);
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, queries.count, keys.count, h.dv, t.rows, h.dv, t.v,
               h.dv, false, t.slopes, HEAD_TILE);
    BLOCK_EACH (e, queries.count * keys.count) {
        int64_t i = e / keys.count, j = e % keys.count;
        int32_t token = queries.tokens[i];
        real *weight = &t.weights[i * HEAD_TILE + j], *slope = &t.slopes[i * HEAD_TILE + j];
        *weight = real_exp(*weight - m.peaks[token]) * m.sums[token];
        *slope = token == keys.tokens[j] ? 0 : c * *weight * (*slope - m.means[token]);
    }
    __syncthreads();
}

/* dQ of a tile of queries, from all keys they see. */
static __device__ void add_queries(const head &h)
{
    lsh_memory m = memory_of(h);
    lsh_tiles t = tiles_of(h);
    token_list queries;
    for (int64_t i = h.first; i < h.end; i += queries.count) {
        int64_t start;
        queries = tile_at(h, m, i, &start);
        gather(queries, h.d, h.q, t.q);
        gather(queries, h.dv, h.grad_out, t.rows);
        block_fill(queries.count * h.d, 0, t.grad);
        const int64_t seen[2] = {(start > 0 ? start : m.sequence) - m.chunk, start};
        for (int side = 0; side < 2; side++)
            for (int64_t j = 0; j < m.chunk; j += HEAD_TILE) {
                token_list keys = tile_of(m, seen[side], j);
                gather_keys(h, m, keys, t);
                find_slopes(h, m, queries, keys, t);
                block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, queries.count, h.d, keys.count, t.slopes,
                           HEAD_TILE, t.k, h.d, true, t.grad, h.d);
            }
        BLOCK_EACH (e, queries.count * h.d) {
            int32_t token = queries.tokens[e / h.d];
            rows_set(h.grad_q, token, e % h.d, rows_get(h.grad_q, token, e % h.d) + t.grad[e]);
        }
        __syncthreads();
    }
}

/* dK and dV of a tile of keys, from the queries of its LSH chunk and of the next. */
static __device__ void add_keys(const head &h)
{
    lsh_memory m = memory_of(h);
    lsh_tiles t = tiles_of(h);
    token_list keys;
    for (int64_t i = h.first; i < h.end; i += keys.count) {
        int64_t start;
        keys = tile_at(h, m, i, &start);
        gather_keys(h, m, keys, t);
        block_fill(keys.count * h.d, 0, t.grad);
        block_fill(keys.count * h.dv, 0, t.grad_v);
        const int64_t seeing[2] = {start, (start + m.chunk) % m.sequence};
        for (int side = 0; side < 2; side++)
            for (int64_t j = 0; j < m.chunk; j += HEAD_TILE) {
                token_list queries = tile_of(m, seeing[side], j);
                gather(queries, h.d, h.q, t.q);
                gather(queries, h.dv, h.grad_out, t.rows);
                find_slopes(h, m, queries, keys, t);
                block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, keys.count, h.dv, queries.count, t.weights,
                           HEAD_TILE, t.rows, h.dv, true, t.grad_v, h.dv);
                block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, keys.count, h.d, queries.count, t.slopes,
                           HEAD_TILE, t.q, h.d, true, t.grad, h.d);
            }
        BLOCK_EACH (e, keys.count * h.d)
            m.grad_keys[keys.tokens[e / h.d] * h.d + e % h.d] += t.grad[e];
        BLOCK_EACH (e, keys.count * h.dv) {
            int32_t token = keys.tokens[e / h.dv];
            rows_set(h.grad_v, token, e % h.dv, rows_get(h.grad_v, token, e % h.dv) + t.grad_v[e]);
        }
        __syncthreads();
    }
}

/* Backward through k = q / max(|q|, 1e-12): dq += (dk - k (k.dk)) / |q|, or dk / 1e-12. */
static __device__ void through_norms(const head &h)
{
    lsh_memory m = memory_of(h);
    BLOCK_EACH (e, h.end - h.first) {
        int64_t i = h.first + e;
        const real *grad = m.grad_keys + i * h.d;
        double norm = m.norms[i], along = 0;
        for (int64_t c = 0; c < h.d; c++)
            along += (double)rows_get(h.q, i, c) * (double)grad[c];
        along *= m.varies[i] / norm / norm;
        for (int64_t c = 0; c < h.d; c++) {
            double change = ((double)grad[c] - along * (double)rows_get(h.q, i, c)) / norm;
            rows_set(h.grad_q, i, c, rows_get(h.grad_q, i, c) + (real)change);
        }
    }
    __syncthreads();
}

static void backward(head_launch *l)
{
    int64_t rounds = core_lsh_rounds(&l->call.plan.desc.lsh);
    find_output(l);
    OVER_CHUNKS(l, find_means);
    for (l->call.step = 0; l->call.step < rounds; l->call.step++) {
        OVER_CHUNKS(l, add_queries);
        OVER_CHUNKS(l, add_keys);
    }
    OVER_CHUNKS(l, through_norms);
}

extern "C" const head_operator R(cuda_operator_lsh) = {sizes, forward, backward};
