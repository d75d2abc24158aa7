/* SPDX-License-Identifier: BSD-3-Clause */
/* Performer's random features (Choromanski et al. 2021), for features/cuda.cuh.
 * With u_r = w_r.x' and x' = sqrt(c) x,
 *
 *   phi_r = (exp(u_r - offset) + feature_epsilon) / sqrt(M),   offset = |x'|^2 / 2 + t,
 *
 * or max(u_r, 0) + feature_epsilon. A common factor of phi(q), or of all phi(k), that cancels in
 * the formula is chosen as in operators/performer/cpu.c: the largest feature is 1. */
#include <limits.h>

#include "operators/features/cuda.cuh"

typedef struct {
    double c, root_c, factor; /* factor: 1 / sqrt(M) */
    bool exponential, stabilise;
    bool free_queries, free_keys;
    bool seeks, shifts; /* the keys have a stabiliser; it has a derivative */
} performer_options;

static __host__ __device__ performer_options options_of(const atn_attention_desc &desc, int64_t d)
{
    const atn_performer_options &o = desc.performer;
    performer_options p;
    p.c = desc.logit_scale != 0 ? desc.logit_scale : 1 / sqrt((double)d);
    p.root_c = sqrt(p.c);
    p.factor = 1 / sqrt((double)o.projection.rows);
    p.exponential = o.features == ATN_FEATURES_EXP;
    p.stabilise = o.stabilise;
    p.free_queries = p.exponential && o.feature_epsilon == 0;
    p.free_keys = p.free_queries && o.denominator_epsilon == 0 && !desc.causal;
    p.seeks = p.exponential && (p.stabilise || p.free_keys);
    p.shifts = p.seeks && !p.free_keys;
    return p;
}

/* The stabiliser of a head's keys, or of a chunk's: keys' offset = |x'|^2 / 2 + shift. */
typedef struct {
    double shift, grad_shift; /* dL/dt */
    int64_t key, feature;     /* where u is largest; key -1: no key */
} key_stabiliser;
enum { STABILISER_DOUBLES = sizeof(key_stabiliser) / sizeof(double) };

static __device__ __forceinline__ key_stabiliser *stabiliser_of_head(const head &h)
{
    return (key_stabiliser *)h.state;
}

static __device__ __forceinline__ key_stabiliser *stabiliser_of_chunk(const head &h)
{
    return (key_stabiliser *)head_partial(h);
}

/* The head's projection w, M x d. */
static __device__ __forceinline__ real *projection_of(const head &h)
{
    return h.state + double_reals(STABILISER_DOUBLES);
}

/* The values kept for each token. */
typedef struct {
    double *offsets, *half_slopes; /* dL/d(|x'|^2 / 2) */
    int64_t *tops;                 /* where u is largest */
    real *u;                       /* tokens x M */
} kept_tokens;
enum { KEPT_DOUBLES = 3 };

static __device__ __forceinline__ kept_tokens kept_of(const linear &l)
{
    kept_tokens kept;
    kept.offsets = (double *)l.kept;
    kept.half_slopes = kept.offsets + l.tokens;
    kept.tops = (int64_t *)(kept.half_slopes + l.tokens);
    kept.u = (real *)(kept.tops + l.tokens);
    return kept;
}

/* u of a tile; l.x are its tokens. */
static __device__ void project(const head &h, const linear &l, const performer_options &p,
                               const token_tile &t)
{
    real *u = kept_of(l).u;
    block_load(linear_rows(h, t), t.first, t.rows, h.d, l.x);
    block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, t.rows, l.m, h.d, l.x, h.d, projection_of(h), h.d,
               false, u, l.m);
    BLOCK_EACH (e, t.rows * l.m)
        u[e] *= (real)p.root_c;
    __syncthreads();
}

/* Where u is largest, the first of equals, by one warp; valid in lane 0. */
static __device__ int64_t warp_top(int64_t count, const real *u)
{
    int lane = threadIdx.x % 32, at = lane < count ? lane : INT_MAX;
    real top = lane < count ? u[lane] : -REAL_INFINITY;
    for (int64_t r = lane + 32; r < count; r += 32)
        if (u[r] > top) {
            top = u[r];
            at = (int)r;
        }
    for (int away = 16; away > 0; away /= 2) {
        real other = __shfl_xor_sync(0xffffffffu, top, away);
        int other_at = __shfl_xor_sync(0xffffffffu, at, away);
        if (other > top || (other == top && other_at < at)) {
            top = other;
            at = other_at;
        }
    }
    return at;
}

/* |x'|^2 / 2, by one warp. */
static __device__ double warp_half_square(const performer_options &p, int64_t d, const real *x)
{
    double sum = 0;
    for (int64_t c = threadIdx.x % 32; c < d; c += 32)
        sum += (double)x[c] * (double)x[c];
    return p.c * warp_sum(sum) / 2;
}

/* Keeps the offset of the exponents of query or key i of a tile, and where u is largest. */
static __device__ void keep_offset(const head &h, const linear &l, const performer_options &p,
                                   const token_tile &t, int64_t i)
{
    kept_tokens kept = kept_of(l);
    double half = warp_half_square(p, h.d, l.x + i * h.d);
    int64_t top = warp_top(l.m, kept.u + i * l.m);
    if (threadIdx.x % 32 != 0)
        return;
    double largest = (double)kept.u[i * l.m + top];
    kept.tops[i] = top;
    if (t.keys)
        kept.offsets[i] = half + stabiliser_of_head(h)->shift;
    else if (p.free_queries)
        kept.offsets[i] = largest;
    else
        kept.offsets[i] = p.stabilise ? half + largest : half;
}

/* Turns slopes of one row into dL/du sqrt(c), by one warp: slopes_r E_r, E_r = exp(u_r - offset) /
 * sqrt(M), and the part through the offset. A factor that cancels has no derivative. */
static __device__ void exponentials_backward(const linear &l, const performer_options &p,
                                             const token_tile &t, int64_t i)
{
    kept_tokens kept = kept_of(l);
    real *slopes = l.slopes + i * l.m;
    double total = 0;
    for (int64_t r = threadIdx.x % 32; r < l.m; r += 32) {
        double exponent = (double)kept.u[i * l.m + r] - kept.offsets[i];
        slopes[r] *= real_exp((real)exponent) * (real)p.factor;
        total += (double)slopes[r];
    }
    total = !t.keys && p.free_queries ? 0 : warp_sum(total);
    for (int64_t r = threadIdx.x % 32; r < l.m; r += 32) {
        if (!t.keys && p.stabilise && r == kept.tops[i])
            slopes[r] -= (real)total;
        slopes[r] *= (real)p.root_c;
    }
    if (threadIdx.x % 32 == 0)
        kept.half_slopes[i] = -total;
}

/* Unnamed, because the linker would merge the f32 functions with those for f64. */
namespace
{
struct random_features {
    static __host__ __device__ feature_map describe(const atn_attention_desc &desc, int64_t d)
    {
        int64_t m = desc.performer.projection.rows, own = double_reals(STABILISER_DOUBLES);
        feature_map map = {
            m, m + double_reals(KEPT_DOUBLES),    own + (m * d + 1) / 2 * 2, own, LINEAR_ADDED,
            0, desc.performer.denominator_epsilon};
        return map;
    }

    static __device__ void map(const head &h, const linear &l, const token_tile &t)
    {
        performer_options p = options_of(*h.desc, h.d);
        kept_tokens kept = kept_of(l);
        real epsilon = (real)h.desc->performer.feature_epsilon;
        project(h, l, p, t);
        if (p.exponential)
            for (int64_t i = threadIdx.x / 32; i < t.rows; i += BLOCK_WARPS)
                keep_offset(h, l, p, t, i);
        __syncthreads();
        BLOCK_EACH (e, t.rows * l.m) {
            real u = kept.u[e];
            if (p.exponential)
                u = (real_exp((real)((double)u - kept.offsets[e / l.m])) + epsilon) *
                    (real)p.factor;
            else
                u = (u > 0 ? u : 0) + epsilon;
            t.phi[e] = u;
        }
        __syncthreads();
    }

    static __device__ void map_backward(const head &h, const linear &l, const token_tile &t)
    {
        performer_options p = options_of(*h.desc, h.d);
        kept_tokens kept = kept_of(l);
        if (p.exponential)
            for (int64_t i = threadIdx.x / 32; i < t.rows; i += BLOCK_WARPS)
                exponentials_backward(l, p, t, i);
        else
            BLOCK_EACH (e, t.rows * l.m)
                l.slopes[e] = kept.u[e] > 0 ? l.slopes[e] * (real)p.root_c : 0;
        __syncthreads();
        block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, t.rows, h.d, l.m, l.slopes, l.m, projection_of(h),
                   h.d, false, l.x, h.d);
        if (!p.exponential)
            return;
        token_rows rows = linear_rows(h, t);
        BLOCK_EACH (e, t.rows * h.d) {
            double x = (double)rows_get(rows, t.first + e / h.d, e % h.d);
            l.x[e] += (real)(p.c * kept.half_slopes[e / h.d] * x);
        }
        if (t.keys && p.shifts && threadIdx.x == 0)
            for (int64_t i = 0; i < t.rows; i++)
                stabiliser_of_chunk(h)->grad_shift += kept.half_slopes[i];
        __syncthreads();
    }
};
} // namespace

/* ---- The keys' stabiliser: one pass over all keys ---- */

static __device__ void load_projection(const head &h)
{
    key_stabiliser none = {0, 0, -1, 0};
    linear_copy_projection(h, h.desc->performer.projection, projection_of(h));
    if (threadIdx.x == 0)
        *stabiliser_of_head(h) = none;
}

/* The chunk's first largest w.x', or w.x' - |x'|^2 / 2 if the keys' factor cancels. */
static __device__ void find_stabiliser(const head &h)
{
    performer_options p = options_of(*h.desc, h.d);
    const linear &l = linear_open<random_features>(h);
    kept_tokens kept = kept_of(l);
    key_stabiliser found = {0, 0, -1, 0};
    for (int64_t step = 0; step < linear_steps(h, l, true); step++) {
        token_tile t = linear_tile(h, l, true, step);
        project(h, l, p, t);
        for (int64_t i = threadIdx.x / 32; i < t.rows; i += BLOCK_WARPS)
            keep_offset(h, l, p, t, i);
        __syncthreads();
        for (int64_t i = 0; i < t.rows && threadIdx.x == 0; i++) {
            double top = (double)kept.u[i * l.m + kept.tops[i]];
            top -= p.free_keys ? kept.offsets[i] : 0;
            if (top > found.shift || found.key < 0) {
                found.shift = top;
                found.key = t.first + i;
                found.feature = kept.tops[i];
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *stabiliser_of_chunk(h) = found;
}

static __device__ void finish_stabiliser(const head &h)
{
    key_stabiliser found = {0, 0, -1, 0};
    for (int64_t c = 0; c < h.chunks; c++) {
        const key_stabiliser *other = (const key_stabiliser *)(h.partials + c * h.chunk_reals);
        if (other->key >= 0 && (other->shift > found.shift || found.key < 0))
            found = *other;
    }
    if (threadIdx.x == 0)
        *stabiliser_of_head(h) = found;
}

/* The stabiliser is the u of one key and feature, which receives its derivative. */
static __device__ void stabiliser_backward(const head &h)
{
    performer_options p = options_of(*h.desc, h.d);
    key_stabiliser from = *stabiliser_of_head(h);
    double slope = 0;
    for (int64_t c = 0; c < h.chunks; c++)
        slope += ((const key_stabiliser *)(h.partials + c * h.chunk_reals))->grad_shift;
    if (from.key < 0)
        return;
    BLOCK_EACH (e, h.d) {
        double w = (double)projection_of(h)[from.feature * h.d + e];
        rows_set(h.grad_k, from.key, e,
                 rows_get(h.grad_k, from.key, e) + (real)(slope * p.root_c * w));
    }
}

static performer_options options_of_call(const head_launch *l)
{
    return options_of(l->call.plan.desc, l->call.plan.shape.dim);
}

static void prepare(head_launch *l)
{
    OVER_HEADS(l, load_projection);
    if (options_of_call(l).seeks) {
        OVER_CHUNKS(l, find_stabiliser);
        OVER_HEADS(l, finish_stabiliser);
    }
}

static void forward(head_launch *l)
{
    prepare(l);
    linear_forward<random_features>(l);
}

static void backward(head_launch *l)
{
    prepare(l);
    linear_backward<random_features>(l);
    if (options_of_call(l).shifts)
        OVER_HEADS(l, stabiliser_backward);
}

extern "C" const head_operator R(cuda_operator_performer) = {linear_sizes<random_features>, forward,
                                                             backward};
