/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear attention with a feature map phi: what performer, rff, elu and cosformer share; the
 * formulas, forward and backward, are those of operators/features/cpu.h and
 * operators/features/cpu.c. An operator supplies phi and its derivative for a tile of tokens.
 *
 * Every chunk sums over its own keys (S, z) and queries (dS, dz). A pass over heads then computes
 * the sums over all tokens or, causal, for every chunk those over the chunks before it (S, z) or
 * after it (dS, dz), which it continues tile by tile. Causal chunks and tiles are runs of
 * positions, the same for queries and keys, and the contribution of the same tile comes through
 *
 *   A_ij = phi(q_i).phi(k_j),   W_ij = dL/dA_ij = dY_i.v_j / D_i + e_i,   both 0 for j after i. */
#ifndef FEATURES_CUDA_CUH
#define FEATURES_CUDA_CUH

#include "cuda/heads.cuh"
#include "operators/features/plan.h"

/* The parameters of phi in a description. */
typedef struct {
    int64_t features, kept;          /* M; elements per token that map keeps for map_backward */
    int64_t head_reals, chunk_reals; /* of phi's own data, at the start of a head's and a chunk's
                                        memory; whole doubles */
    linear_denominator denominator;
    double epsilon, start; /* of D; every component of z_0 */
} feature_map;

/* Tokens first .. first + rows - 1 of the queries or keys that are not padding. */
typedef struct {
    bool keys;
    int64_t first, rows;
    real *phi; /* rows x features */
} token_tile;

/* M x dv and M each; s and z lie together, and so do their gradients. */
typedef struct {
    real *s, *z, *grad_s, *grad_z;
} linear_sums;

/* A feature map F is a struct of static functions:
 *
 *   feature_map describe(const atn_attention_desc &desc, int64_t d)
 *   void map(const head &h, const linear &l, const token_tile &t)     fills t.phi and l.kept
 *   void map_backward(const head &h, const linear &l, const token_tile &t)    given l.slopes =
 * dL/dphi (to be overwritten), and l.kept as map left it for this tile, makes l.x = dL/dx
 *
 * map may use l.x. A chunk's work, elements: */
typedef struct {
    feature_map map;
    bool causal;
    int64_t m, tokens;            /* features; tokens per tile */
    linear_sums own, met;         /* sums over the chunk's own tokens; the sums its tokens are
                                     multiplied with (causal: the same memory) */
    real *inverse, *grad_sums;    /* 1 / D and e of all queries */
    real *kept, *x;               /* tokens x kept, tokens x d */
    real *phi_queries, *phi_keys; /* tokens x M; the same unless causal */
    real *slopes;                 /* tokens x M */
    real *v, *g;                  /* tokens x dv: V or dV; dY, dY / D or the output */
    real *weights, *grad_weights; /* causal: A and W, tokens x tokens */
} linear;

/* ---- Memory ---- */

static __host__ __device__ __forceinline__ int64_t linear_block_reals(const feature_map &map,
                                                                      int64_t tokens, int64_t d,
                                                                      int64_t dv, bool causal)
{
    int64_t within = causal ? map.features + 2 * tokens : 0;
    return tokens * (map.kept + d + 2 * map.features + 2 * dv + within);
}

/* The most tokens per tile whose work fits into shared memory; the maximum if none does. */
static __host__ __device__ __forceinline__ int64_t linear_tokens(const feature_map &map, int64_t d,
                                                                 int64_t dv, bool causal)
{
    for (int64_t tokens = HEAD_TILE; tokens >= HEAD_TILE / 4; tokens /= 2)
        if (linear_block_reals(map, tokens, d, dv, causal) <= HEAD_SHARED / (int)sizeof(real))
            return tokens;
    return HEAD_TILE;
}

template <class F>
static void linear_sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                         head_sizes *s)
{
    feature_map map = F::describe(*desc, shape->dim);
    int64_t sums = 2 * map.features * (shape->value_dim + 1);
    int64_t tokens = linear_tokens(map, shape->dim, shape->value_dim, desc->causal);
    s->head_reals = map.head_reals + (desc->causal ? 0 : sums) + 2 * shape->tokens;
    s->chunk_reals = map.chunk_reals + sums;
    s->block_reals = linear_block_reals(map, tokens, shape->dim, shape->value_dim, desc->causal);
}

static __device__ __forceinline__ linear_sums linear_take_sums(real **free, int64_t m, int64_t dv)
{
    linear_sums sums;
    sums.s = head_take(free, m * dv);
    sums.z = head_take(free, m);
    sums.grad_s = head_take(free, m * dv);
    sums.grad_z = head_take(free, m);
    return sums;
}

template <class F> static __device__ linear linear_layout(const head &h)
{
    linear l;
    l.map = F::describe(*h.desc, h.d);
    l.causal = h.desc->causal;
    l.m = l.map.features;
    l.tokens = linear_tokens(l.map, h.d, h.dv, l.causal);
    real *partial = head_partial(h) + l.map.chunk_reals, *state = h.state + l.map.head_reals;
    l.own = linear_take_sums(&partial, l.m, h.dv);
    l.met = l.causal ? l.own : linear_take_sums(&state, l.m, h.dv);
    l.inverse = head_take(&state, h.length);
    l.grad_sums = state;
    real *free = h.work;
    l.kept = head_take(&free, l.tokens * l.map.kept);
    l.x = head_take(&free, l.tokens * h.d);
    l.phi_keys = head_take(&free, l.tokens * l.m);
    l.phi_queries = l.causal ? head_take(&free, l.tokens * l.m) : l.phi_keys;
    l.slopes = head_take(&free, l.tokens * l.m);
    l.v = head_take(&free, l.tokens * h.dv);
    l.g = head_take(&free, l.tokens * h.dv);
    l.weights = free;
    l.grad_weights = l.weights + l.tokens * l.tokens;
    return l;
}

/* At the start of a pass. */
template <class F> static __device__ const linear &linear_open(const head &h)
{
    __shared__ linear l; /* shared, to save the threads' registers */
    if (threadIdx.x == 0)
        l = linear_layout<F>(h);
    __syncthreads();
    return l;
}

/* Copies a projection, so that products can read it. */
static __device__ void linear_copy_projection(const head &h, const atn_tensor &projection, real *to)
{
    token_rows rows = head_parameter(projection, h.index);
    block_load(rows, 0, projection.rows, projection.cols, to);
}

/* ---- Tiles ---- */

/* The chunk's tiles. */
static __device__ int64_t linear_steps(const head &h, const linear &l, bool keys)
{
    int64_t all = l.causal ? h.length : keys ? h.n_k : h.n, begin = h.chunk * h.chunk_tokens;
    int64_t tokens = head_smaller(all - begin, h.chunk_tokens);
    return tokens > 0 ? (tokens + l.tokens - 1) / l.tokens : 0;
}

/* The queries or keys of a tile. */
static __device__ __forceinline__ token_rows linear_rows(const head &h, const token_tile &t)
{
    return t.keys ? h.k : h.q;
}

static __device__ token_tile linear_tile(const head &h, const linear &l, bool keys, int64_t step)
{
    token_tile t;
    t.keys = keys;
    t.phi = keys ? l.phi_keys : l.phi_queries;
    const int64_t *positions = l.causal ? linear_rows(h, t).positions : NULL;
    int64_t count = keys ? h.n_k : h.n, begin = h.chunk * h.chunk_tokens + step * l.tokens;
    t.first = core_count_before(positions, count, begin);
    t.rows = core_count_before(positions, count, begin + l.tokens) - t.first;
    return t;
}

template <class F>
static __device__ token_tile linear_queries(const head &h, const linear &l, int64_t step)
{
    token_tile t = linear_tile(h, l, false, step);
    F::map(h, l, t);
    return t;
}

/* Loads keys and their values. */
template <class F>
static __device__ token_tile linear_keys(const head &h, const linear &l, int64_t step)
{
    token_tile t = linear_tile(h, l, true, step);
    F::map(h, l, t);
    block_load(h.v, t.first, t.rows, h.dv, l.v);
    return t;
}

static __device__ __forceinline__ bool linear_sees(const head &h, const linear &l, int64_t query,
                                                   int64_t key)
{
    return !l.causal || head_position(h.k, key) <= head_position(h.q, query);
}

/* to += sum_i weights_i phi_i; null: weights 1. A tile's sum is made in double. */
static __device__ void linear_add_rows(const linear &l, const token_tile &t, const real *weights,
                                       real *to)
{
    if (l.map.denominator == LINEAR_PLAIN) /* z is not used */
        return;
    BLOCK_EACH (r, l.m) {
        double sum = 0;
        for (int64_t i = 0; i < t.rows; i++)
            sum += (weights ? (double)weights[i] : 1) * (double)t.phi[i * l.m + r];
        to[r] = (real)((double)to[r] + sum);
    }
    __syncthreads();
}

/* S += sum_j phi(k_j) v_j^T, z += sum_j phi(k_j). */
static __device__ void linear_absorb_keys(const head &h, const linear &l, const token_tile &keys)
{
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, l.m, h.dv, keys.rows, keys.phi, l.m, l.v, h.dv, true,
               l.own.s, h.dv);
    linear_add_rows(l, keys, NULL, l.own.z);
}

/* dS += sum_i phi(q_i) dY_i^T / D_i, dz += sum_i e_i phi(q_i). */
static __device__ void linear_absorb_queries(const head &h, const linear &l,
                                             const token_tile &queries)
{
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, l.m, h.dv, queries.rows, queries.phi, l.m, l.g, h.dv,
               true, l.own.grad_s, h.dv);
    linear_add_rows(l, queries, l.grad_sums + queries.first, l.own.grad_z);
}

/* A of a tile. */
static __device__ void linear_weigh(const head &h, const linear &l, const token_tile &queries,
                                    const token_tile &keys)
{
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, queries.rows, keys.rows, l.m, queries.phi, l.m,
               keys.phi, l.m, false, l.weights, l.tokens);
    BLOCK_EACH (e, queries.rows * keys.rows) {
        int64_t i = e / keys.rows, j = e % keys.rows;
        if (!linear_sees(h, l, queries.first + i, keys.first + j))
            l.weights[i * l.tokens + j] = 0;
    }
    __syncthreads();
}

/* a.b by one warp, returned to all of its lanes. */
static __device__ double linear_dot(int64_t count, const real *a, const real *b)
{
    double sum = 0;
    for (int64_t i = threadIdx.x % 32; i < count; i += 32)
        sum += (double)a[i] * (double)b[i];
    return warp_sum(sum);
}

/* D of query i of a tile, by one warp; *varies: whether it varies with the sum. keys: those of the
 * same tile if causal, otherwise none. A query that sees no key has N = 0, and D = 1 makes its
 * output 0 rather than 0/0. */
static __device__ double linear_denominator_of(const head &h, const linear &l,
                                               const token_tile &queries, int64_t i,
                                               const token_tile &keys, bool *varies)
{
    *varies = false;
    if (l.map.denominator == LINEAR_PLAIN || h.n_k == 0 || !linear_sees(h, l, queries.first + i, 0))
        return 1;
    double within = 0, sum = linear_dot(l.m, queries.phi + i * l.m, l.met.z);
    for (int64_t j = threadIdx.x % 32; j < keys.rows; j += 32)
        within += (double)l.weights[i * l.tokens + j];
    sum += warp_sum(within);
    *varies = l.map.denominator == LINEAR_ADDED || sum > l.map.epsilon;
    if (l.map.denominator == LINEAR_ADDED)
        return sum + l.map.epsilon;
    return *varies ? sum : l.map.epsilon;
}

/* ---- Sums over keys and over queries ---- */

template <class F> static __device__ void linear_sum_keys(const head &h)
{
    const linear &l = linear_open<F>(h);
    block_fill(l.m * (h.dv + 1), 0, l.own.s);
    for (int64_t step = 0; step < linear_steps(h, l, true); step++) {
        token_tile keys = linear_keys<F>(h, l, step);
        linear_absorb_keys(h, l, keys);
    }
}

/* Computes from the chunks' S and z those that their tokens are multiplied with. */
template <class F> static __device__ void linear_finish_keys(const head &h)
{
    const linear &l = linear_open<F>(h);
    BLOCK_EACH (e, l.m * (h.dv + 1)) {
        real sum = e < l.m * h.dv ? 0 : (real)l.map.start;
        for (int64_t c = 0; c < h.chunks; c++) {
            real *own = &l.own.s[c * h.chunk_reals + e], share = *own;
            if (l.causal)
                *own = sum;
            sum += share;
        }
        if (!l.causal)
            l.met.s[e] = sum;
    }
}

/* The same for the chunks' dS and dz. */
template <class F> static __device__ void linear_finish_queries(const head &h)
{
    const linear &l = linear_open<F>(h);
    BLOCK_EACH (e, l.m * (h.dv + 1)) {
        real sum = 0;
        for (int64_t c = h.chunks - 1; c >= 0; c--) {
            real *own = &l.own.grad_s[c * h.chunk_reals + e], share = *own;
            if (l.causal)
                *own = sum;
            sum += share;
        }
        if (!l.causal)
            l.met.grad_s[e] = sum;
    }
}

/* ---- Forward ---- */

/* l.g, which is N, becomes Y. */
static __device__ void linear_divide(const head &h, const linear &l, const token_tile &queries,
                                     const token_tile &keys)
{
    for (int64_t i = threadIdx.x / 32; i < queries.rows; i += BLOCK_WARPS) {
        bool varies;
        double d = linear_denominator_of(h, l, queries, i, keys, &varies);
        for (int64_t c = threadIdx.x % 32; c < h.dv; c += 32)
            l.g[i * h.dv + c] = (real)((double)l.g[i * h.dv + c] / d);
    }
    __syncthreads();
}

template <class F> static __device__ void linear_write_output(const head &h)
{
    const linear &l = linear_open<F>(h);
    for (int64_t step = 0; step < linear_steps(h, l, false); step++) {
        token_tile keys = {};
        if (l.causal)
            keys = linear_keys<F>(h, l, step);
        token_tile queries = linear_queries<F>(h, l, step);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, queries.rows, h.dv, l.m, queries.phi, l.m, l.met.s,
                   h.dv, false, l.g, h.dv);
        if (l.causal) {
            linear_weigh(h, l, queries, keys);
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, queries.rows, h.dv, keys.rows, l.weights,
                       l.tokens, l.v, h.dv, true, l.g, h.dv);
        }
        linear_divide(h, l, queries, keys);
        block_store(h.out, queries.first, queries.rows, h.dv, l.g);
        if (l.causal)
            linear_absorb_keys(h, l, keys);
    }
}

template <class F> static void linear_forward(head_launch *launch)
{
    OVER_CHUNKS(launch, linear_sum_keys<F>);
    OVER_HEADS(launch, linear_finish_keys<F>);
    OVER_CHUNKS(launch, linear_write_output<F>);
}

/* ---- Backward ---- */

/* A and dY V^T of a tile. */
static __device__ void linear_products_within(const head &h, const linear &l,
                                              const token_tile &queries, const token_tile &keys)
{
    linear_weigh(h, l, queries, keys);
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, queries.rows, keys.rows, h.dv, l.g, h.dv, l.v, h.dv,
               false, l.grad_weights, l.tokens);
}

/* Turns dY V^T into W. */
static __device__ void linear_finish_within(const head &h, const linear &l,
                                            const token_tile &queries, const token_tile &keys)
{
    BLOCK_EACH (e, queries.rows * keys.rows) {
        int64_t i = e / keys.rows, j = e % keys.rows, query = queries.first + i;
        real *w = &l.grad_weights[i * l.tokens + j];
        *w = linear_sees(h, l, query, keys.first + j) ? *w * l.inverse[query] + l.grad_sums[query]
                                                      : 0;
    }
    __syncthreads();
}

/* 1 / D and e of a tile; slopes holds dY S^T, so that dY_i.N_i = phi(q_i).slopes_i. A and dY V^T
 * agree on which keys are seen: A is 0 for the others. */
static __device__ void linear_differentiate_denominators(const head &h, const linear &l,
                                                         const token_tile &queries,
                                                         const token_tile &keys)
{
    for (int64_t i = threadIdx.x / 32; i < queries.rows; i += BLOCK_WARPS) {
        bool varies;
        double d = linear_denominator_of(h, l, queries, i, keys, &varies), along = 0;
        if (varies) {
            along = linear_dot(l.m, queries.phi + i * l.m, l.slopes + i * l.m);
            along += linear_dot(keys.rows, l.weights + i * l.tokens, l.grad_weights + i * l.tokens);
        }
        if (threadIdx.x % 32 == 0) {
            l.inverse[queries.first + i] = (real)(1 / d);
            l.grad_sums[queries.first + i] = (real)(-along / d / d);
        }
    }
    __syncthreads();
}

/* Turns slopes = dY S^T into dY S^T / D + e z^T, without the contribution of the same tile. */
static __device__ void linear_finish_slopes(const linear &l, const token_tile &queries)
{
    BLOCK_EACH (e, queries.rows * l.m) {
        int64_t query = queries.first + e / l.m;
        real along = l.map.denominator == LINEAR_PLAIN ? 0 : l.grad_sums[query] * l.met.z[e % l.m];
        l.slopes[e] = l.inverse[query] * l.slopes[e] + along;
    }
    __syncthreads();
}

/* dY becomes dY / D. */
static __device__ void linear_scale_grad_out(const head &h, const linear &l,
                                             const token_tile &queries)
{
    BLOCK_EACH (e, queries.rows * h.dv)
        l.g[e] *= l.inverse[queries.first + e / h.dv];
    __syncthreads();
}

/* dQ, every query's 1 / D and e, and the chunk's dS and dz. */
template <class F> static __device__ void linear_push_queries(const head &h)
{
    const linear &l = linear_open<F>(h);
    block_fill(l.m * (h.dv + 1), 0, l.own.grad_s);
    for (int64_t step = 0; step < linear_steps(h, l, false); step++) {
        token_tile keys = {};
        if (l.causal)
            keys = linear_keys<F>(h, l, step);
        token_tile queries = linear_queries<F>(h, l, step);
        block_load(h.grad_out, queries.first, queries.rows, h.dv, l.g);
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, queries.rows, l.m, h.dv, l.g, h.dv, l.met.s, h.dv,
                   false, l.slopes, l.m);
        if (l.causal)
            linear_products_within(h, l, queries, keys);
        linear_differentiate_denominators(h, l, queries, keys);
        linear_finish_slopes(l, queries);
        if (l.causal) {
            linear_finish_within(h, l, queries, keys);
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, queries.rows, l.m, keys.rows, l.grad_weights,
                       l.tokens, keys.phi, l.m, true, l.slopes, l.m);
            linear_absorb_keys(h, l, keys);
        }
        linear_scale_grad_out(h, l, queries);
        linear_absorb_queries(h, l, queries);
        F::map_backward(h, l, queries);
        block_add(h.grad_q, queries.first, queries.rows, h.d, l.x);
    }
}

/* Adds the contribution of the queries of the same tile to dphi(k); l.g becomes dY / D. */
static __device__ void linear_add_queries_within(const head &h, const linear &l,
                                                 const token_tile &keys, const token_tile &queries)
{
    linear_products_within(h, l, queries, keys);
    linear_finish_within(h, l, queries, keys);
    linear_scale_grad_out(h, l, queries);
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, keys.rows, l.m, queries.rows, l.grad_weights, l.tokens,
               queries.phi, l.m, true, l.slopes, l.m);
}

/* dK and dV, from the last tile to the first. The tile of V is overwritten by dV. */
template <class F> static __device__ void linear_push_keys(const head &h)
{
    const linear &l = linear_open<F>(h);
    for (int64_t step = linear_steps(h, l, true) - 1; step >= 0; step--) {
        token_tile queries = {};
        if (l.causal) {
            queries = linear_queries<F>(h, l, step);
            block_load(h.grad_out, queries.first, queries.rows, h.dv, l.g);
        }
        token_tile keys = linear_keys<F>(h, l, step);
        BLOCK_EACH (e, keys.rows * l.m)
            l.slopes[e] = l.map.denominator == LINEAR_PLAIN ? 0 : l.met.grad_z[e % l.m];
        __syncthreads();
        block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, keys.rows, l.m, h.dv, l.v, h.dv, l.met.grad_s,
                   h.dv, true, l.slopes, l.m);
        if (l.causal)
            linear_add_queries_within(h, l, keys, queries);
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, keys.rows, h.dv, l.m, keys.phi, l.m, l.met.grad_s,
                   h.dv, false, l.v, h.dv);
        if (l.causal) {
            block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, keys.rows, h.dv, queries.rows, l.weights,
                       l.tokens, l.g, h.dv, true, l.v, h.dv);
            linear_absorb_queries(h, l, queries);
        }
        block_add(h.grad_v, keys.first, keys.rows, h.dv, l.v);
        F::map_backward(h, l, keys);
        block_add(h.grad_k, keys.first, keys.rows, h.d, l.x);
    }
}

template <class F> static void linear_backward(head_launch *launch)
{
    OVER_CHUNKS(launch, linear_sum_keys<F>);
    OVER_HEADS(launch, linear_finish_keys<F>);
    OVER_CHUNKS(launch, linear_push_queries<F>);
    OVER_HEADS(launch, linear_finish_queries<F>);
    OVER_CHUNKS(launch, linear_push_keys<F>);
}

#endif
