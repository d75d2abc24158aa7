/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention of a head, and the softmax of rows, for every operator that consists of them;
 * as operators/softmax/cpu.c and operators/softmax/cpu_rows.c, under the rules of
 * cuda/block.cuh. */
#ifndef SOFTMAX_CUDA_CUH
#define SOFTMAX_CUDA_CUH

#include "cuda/heads.cuh"

/* core_logit_scale */
static __device__ __forceinline__ double softmax_scale(const head &h)
{
    return h.desc->logit_scale != 0 ? h.desc->logit_scale : 1 / sqrt((double)h.d);
}

/* ---- The softmax of rows, one warp per row. Sums are in double: a row may be as long as a
 * sequence. ---- */

/* x (rows x count) = softmax(c x); c x is kept in double. */
static __device__ void softmax_rows(int64_t rows, int64_t count, double c, real *x, int64_t stride)
{
    int lane = threadIdx.x % 32;
    for (int64_t i = threadIdx.x / 32; i < rows; i += BLOCK_WARPS) {
        real *row = x + i * stride;
        double largest = -HUGE_VAL, sum = 0;
        for (int64_t j = lane; j < count; j += 32)
            largest = larger(largest, c * (double)row[j]);
        largest = warp_max(largest);
        for (int64_t j = lane; j < count; j += 32) {
            row[j] = real_exp((real)(c * (double)row[j] - largest));
            sum += (double)row[j];
        }
        sum = warp_sum(sum);
        for (int64_t j = lane; j < count; j += 32)
            row[j] = (real)((double)row[j] / sum);
    }
    __syncthreads();
}

/* The largest of the lanes' values and its place, the first of equals. */
static __device__ __forceinline__ void softmax_largest(real *value, int64_t *at)
{
    for (int away = 16; away > 0; away /= 2) {
        real other = __shfl_xor_sync(0xffffffffu, *value, away);
        int64_t other_at = __shfl_xor_sync(0xffffffffu, *at, away);
        if (other > *value || (other == *value && other_at < *at)) {
            *value = other;
            *at = other_at;
        }
    }
}

/* What dP is taken relative to, so that its difference from its mean keeps its digits; see
 * R(softmax_pivot). sum: that of the weights relative to the largest. */
static __device__ __forceinline__ double softmax_pivot(double sum, real largest_slope)
{
    return sum <= 2 ? (double)largest_slope : 0;
}

/* Backward: slopes, the derivative by the weights P, becomes that by x, c P (dP - P.dP). */
static __device__ void softmax_rows_backward(int64_t rows, int64_t count, double c,
                                             const real *weights, real *slopes, int64_t stride)
{
    int lane = threadIdx.x % 32;
    for (int64_t i = threadIdx.x / 32; i < rows; i += BLOCK_WARPS) {
        const real *weight = weights + i * stride;
        real *slope = slopes + i * stride, largest = -1;
        int64_t at = 0;
        for (int64_t j = lane; j < count; j += 32)
            if (weight[j] > largest) {
                largest = weight[j];
                at = j;
            }
        softmax_largest(&largest, &at);
        double pivot = softmax_pivot(1 / (double)largest, slope[at]), mean = 0;
        for (int64_t j = lane; j < count; j += 32)
            mean += (double)weight[j] * ((double)slope[j] - pivot);
        mean = warp_sum(mean);
        for (int64_t j = lane; j < count; j += 32)
            slope[j] = (real)(c * (double)weight[j] * ((double)slope[j] - pivot - mean));
    }
    __syncthreads();
}

/* ---- The softmax of a tile's rows over keys that come tile by tile (Milakov and Gimelshein 2018)
 * ---- */

/* The state of HEAD_TILE rows after the keys seen so far. Sums are relative to exp(largest). */
typedef struct {
    double *sum;         /* of the weights */
    double *slope;       /* backward: the sum of weight (dP - pivot) */
    real *largest;       /* logit; -infinity: no key seen */
    real *largest_slope; /* backward: dP of the largest */
} softmax_state;

static __host__ __device__ __forceinline__ int64_t softmax_state_reals(void)
{
    return HEAD_TILE * 2 * (int64_t)(sizeof(double) / sizeof(real) + 1);
}

/* The initial state, before any key; memory: softmax_state_reals, aligned for doubles. */
static __device__ softmax_state softmax_open(real *memory)
{
    softmax_state s;
    s.sum = (double *)memory;
    s.slope = s.sum + HEAD_TILE;
    s.largest = (real *)(s.slope + HEAD_TILE);
    s.largest_slope = s.largest + HEAD_TILE;
    BLOCK_EACH (i, HEAD_TILE) {
        s.sum[i] = s.slope[i] = 0;
        s.largest[i] = -REAL_INFINITY;
        s.largest_slope[i] = 0;
    }
    __syncthreads();
    return s;
}

/* One row, by one warp: turns logits into weights exp(logit - largest), 0 for keys that it does not
 * see, and adds them to the sum. If the tile raises the largest, *at is its place. Returns the
 * factor by which sums over earlier keys must be multiplied, as s.sum[i] has been. If the largest
 * logit is not finite, all are NaN. */
template <class F>
static __device__ double softmax_advance_row(const softmax_state &s, int64_t i, int64_t keys,
                                             real *logit, int64_t *at, F sees)
{
    int lane = threadIdx.x % 32;
    real before = s.largest[i], highest = before;
    double old_sum = s.sum[i], added = 0;
    *at = -1;
    for (int64_t j = lane; j < keys; j += 32)
        if (sees(i, j) && logit[j] > highest) {
            highest = logit[j];
            *at = j;
        }
    softmax_largest(&highest, at);
    for (int64_t j = lane; j < keys; j += 32) {
        logit[j] = sees(i, j) ? real_exp(logit[j] - highest) : 0;
        added += (double)logit[j];
    }
    added = warp_sum(added);
    double shrink = highest > before ? exp((double)before - (double)highest) : 1;
    if (lane == 0) {
        s.largest[i] = highest;
        s.sum[i] = old_sum * shrink + added;
    }
    return shrink;
}

/* Turns a tile of logits (rows x keys, row stride HEAD_TILE) into weights, and rescales `sums`
 * (rows x cols) over earlier keys to the new largest. sees(i, j): whether row i sees key j of the
 * tile. */
template <class F>
static __device__ void softmax_advance(const softmax_state &s, int64_t rows, int64_t keys,
                                       real *logits, int64_t cols, real *sums, F sees)
{
    for (int64_t i = threadIdx.x / 32; i < rows; i += BLOCK_WARPS) {
        int64_t at;
        double shrink = softmax_advance_row(s, i, keys, logits + i * HEAD_TILE, &at, sees);
        if (shrink != 1)
            for (int64_t c = threadIdx.x % 32; c < cols; c += 32)
                sums[i * cols + c] = (real)((double)sums[i * cols + c] * shrink);
    }
    __syncthreads();
}

/* Turns logits into weights as softmax_advance, and updates slopes by the tile's dP. */
template <class F>
static __device__ void softmax_measure_tile(const softmax_state &s, int64_t rows, int64_t keys,
                                            real *logits, const real *slopes, F sees)
{
    for (int64_t i = threadIdx.x / 32; i < rows; i += BLOCK_WARPS) {
        const real *weight = logits + i * HEAD_TILE, *slope = slopes + i * HEAD_TILE;
        double before = s.sum[i], old_pivot = softmax_pivot(before, s.largest_slope[i]), added = 0;
        int64_t at;
        double shrink = softmax_advance_row(s, i, keys, logits + i * HEAD_TILE, &at, sees);
        __syncwarp(); /* lane 0 has written the sum */
        real largest_slope = at >= 0 ? slope[at] : s.largest_slope[i];
        double pivot = softmax_pivot(s.sum[i], largest_slope);
        for (int64_t j = threadIdx.x % 32; j < keys; j += 32)
            added += sees(i, j) ? (double)weight[j] * ((double)slope[j] - pivot) : 0;
        added = warp_sum(added);
        if (threadIdx.x % 32 == 0) {
            s.slope[i] = s.slope[i] * shrink + before * shrink * (old_pivot - pivot) + added;
            s.largest_slope[i] = largest_slope;
        }
    }
    __syncthreads();
}

/* ---- Softmax attention ----
 *
 * The head need not be one of the call: any rows can be its tokens, as long as q, k, v and the
 * outputs are set and n and n_k count the tokens. */

/* Tiles in a block's work. q holds queries or dY, k keys or values; rest is scratch. */
typedef struct {
    real *q, *k, *weights, *rest;
} softmax_tiles;

/* The least block_reals: rest holds Y and the state, or dP and the state, or dY and dQ, or dK and
 * dV. */
static __host__ __device__ __forceinline__ int64_t softmax_work_reals(int64_t d, int64_t dv)
{
    int64_t width = larger_of(d, dv), streaming = larger_of(HEAD_TILE, dv);
    return 2 * HEAD_TILE * width + HEAD_TILE * HEAD_TILE +
           larger_of(HEAD_TILE * streaming + softmax_state_reals(), HEAD_TILE * (d + dv));
}

/* What backward keeps of a query: its largest logit, 1 / its sum, its pivot and the mean of
 * dP - pivot. */
enum { SOFTMAX_STATISTICS = 4 };

static __device__ softmax_tiles softmax_tiles_of(const head &h)
{
    int64_t width = larger_of(h.d, h.dv);
    real *free = h.work;
    softmax_tiles t;
    t.q = head_take(&free, HEAD_TILE * width);
    t.k = head_take(&free, HEAD_TILE * width);
    t.weights = head_take(&free, HEAD_TILE * HEAD_TILE);
    t.rest = free;
    return t;
}

static __device__ __forceinline__ bool softmax_sees(const head &h, int64_t i, int64_t j)
{
    return !h.desc->causal || head_position(h.k, j) <= head_position(h.q, i);
}

/* The number of keys from `first` on, at most a tile, that a tile of queries up to `last` attends
 * to; 0: they see neither these nor any later key, because positions ascend. */
static __device__ __forceinline__ int64_t softmax_keys(const head &h, int64_t last, int64_t first)
{
    if (first >= h.n_k || !softmax_sees(h, last, first))
        return 0;
    return head_smaller(HEAD_TILE, h.n_k - first);
}

/* weights = c Q K^T of the loaded tiles. The product by c is rounded to `real`, so that every pass
 * has the same logits. */
static __device__ void softmax_logits(const head &h, const softmax_tiles &t, int64_t rows,
                                      int64_t keys)
{
    real c = (real)softmax_scale(h), *out = t.weights;
    block_gemm_each(h.tf32, AS_IT_IS, TRANSPOSED, rows, keys, h.d, t.q, h.d, t.k, h.d,
                    [&](int64_t i, int64_t j, real sum) { out[i * HEAD_TILE + j] = c * sum; });
}

/* Y of queries h.first .. h.end - 1. */
static __device__ void softmax_forward(const head &h)
{
    softmax_tiles t = softmax_tiles_of(h);
    real *out = t.rest + softmax_state_reals();
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        softmax_state state = softmax_open(t.rest);
        block_load(h.q, i, rows, h.d, t.q);
        block_fill(rows * h.dv, 0, out);
        for (int64_t j = 0, keys; (keys = softmax_keys(h, i + rows - 1, j)) > 0; j += keys) {
            block_load(h.k, j, keys, h.d, t.k);
            softmax_logits(h, t, rows, keys);
            softmax_advance(state, rows, keys, t.weights, h.dv, out,
                            [&](int64_t r, int64_t s) { return softmax_sees(h, i + r, j + s); });
            block_load(h.v, j, keys, h.dv, t.k);
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.dv, keys, t.weights, HEAD_TILE, t.k,
                       h.dv, true, out, h.dv);
        }
        BLOCK_ENTRIES (r, c, rows, h.dv) { /* a sum of 0: no key seen, a row of 0 */
            double sum = state.sum[r];
            rows_set(h.out, i + r, c, sum != 0 ? (real)((double)out[r * h.dv + c] / sum) : 0);
        }
        __syncthreads();
    }
}

/* The statistics of queries h.first .. h.end - 1; those of query i start at
 * statistics[SOFTMAX_STATISTICS i]. pivot + mean = sum_j P_ij dP_ij = dY_i.Y_i, without Y (Dao et
 * al. 2022); relative to the pivot as in softmax_rows_backward. */
static __device__ void softmax_measure(const head &h, real *statistics)
{
    softmax_tiles t = softmax_tiles_of(h);
    real *slopes = t.rest + softmax_state_reals();
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        softmax_state state = softmax_open(t.rest);
        for (int64_t j = 0, keys; (keys = softmax_keys(h, i + rows - 1, j)) > 0; j += keys) {
            block_load(h.q, i, rows, h.d, t.q);
            block_load(h.k, j, keys, h.d, t.k);
            softmax_logits(h, t, rows, keys);
            block_load(h.grad_out, i, rows, h.dv, t.q);
            block_load(h.v, j, keys, h.dv, t.k);
            block_gemm(h.tf32, AS_IT_IS, TRANSPOSED, rows, keys, h.dv, t.q, h.dv, t.k, h.dv, false,
                       slopes, HEAD_TILE);
            softmax_measure_tile(state, rows, keys, t.weights, slopes, [&](int64_t r, int64_t s) {
                return softmax_sees(h, i + r, j + s);
            });
        }
        BLOCK_EACH (r, rows) {
            real *to = statistics + SOFTMAX_STATISTICS * (i + r);
            double sum = state.sum[r] != 0 ? state.sum[r] : 1;
            to[0] = state.largest[r];
            to[1] = (real)(1 / sum);
            to[2] = (real)softmax_pivot(state.sum[r], state.largest_slope[r]);
            to[3] = (real)(state.slope[r] / sum);
        }
        __syncthreads();
    }
}

/* Turns logits of queries from i on and keys from j on into P. */
static __device__ void softmax_weights(const head &h, const real *statistics, int64_t i,
                                       int64_t rows, int64_t j, int64_t keys, real *weights)
{
    BLOCK_ENTRIES (r, s, rows, keys) {
        const real *of = statistics + SOFTMAX_STATISTICS * (i + r);
        real *weight = weights + r * HEAD_TILE + s;
        *weight = softmax_sees(h, i + r, j + s) ? real_exp(*weight - of[0]) * of[1] : 0;
    }
    __syncthreads();
}

/* Turns P into c dS = c P (dP - mean), dP = dY V^T of the tiles given. */
static __device__ void softmax_slopes(const head &h, const real *statistics, int64_t i,
                                      int64_t rows, int64_t j, int64_t keys, const real *dy,
                                      const real *v, real *weights)
{
    real c = (real)softmax_scale(h);
    block_gemm_each(h.tf32, AS_IT_IS, TRANSPOSED, rows, keys, h.dv, dy, h.dv, v, h.dv,
                    [&](int64_t r, int64_t s, real sum) {
                        const real *of = statistics + SOFTMAX_STATISTICS * (i + r);
                        real *weight = weights + r * HEAD_TILE + s;
                        if (softmax_sees(h, i + r, j + s))
                            *weight *= c * (sum - of[2] - of[3]);
                    });
}

/* dQ += c dS K for queries h.first .. h.end - 1. */
static __device__ void softmax_grad_queries(const head &h, const real *statistics)
{
    softmax_tiles t = softmax_tiles_of(h);
    real *dy = t.rest, *grad = dy + HEAD_TILE * h.dv;
    for (int64_t i = h.first; i < h.end; i += HEAD_TILE) {
        int64_t rows = head_smaller(HEAD_TILE, h.end - i);
        block_load(h.q, i, rows, h.d, t.q);
        block_load(h.grad_out, i, rows, h.dv, dy);
        block_fill(rows * h.d, 0, grad);
        for (int64_t j = 0, keys; (keys = softmax_keys(h, i + rows - 1, j)) > 0; j += keys) {
            block_load(h.k, j, keys, h.d, t.k);
            softmax_logits(h, t, rows, keys);
            softmax_weights(h, statistics, i, rows, j, keys, t.weights);
            block_load(h.v, j, keys, h.dv, t.k);
            softmax_slopes(h, statistics, i, rows, j, keys, dy, t.k, t.weights);
            block_load(h.k, j, keys, h.d, t.k);
            block_gemm(h.tf32, AS_IT_IS, AS_IT_IS, rows, h.d, keys, t.weights, HEAD_TILE, t.k, h.d,
                       true, grad, h.d);
        }
        block_add(h.grad_q, i, rows, h.d, grad);
    }
}

/* Adds the contribution of queries i .. i + rows - 1 to dK and dV of keys j .. j + keys - 1: dV +=
 * P^T dY, dK += c dS^T Q. */
static __device__ void softmax_grad_key_tile(const head &h, const real *statistics, int64_t i,
                                             int64_t rows, int64_t j, int64_t keys, real *grad_k,
                                             real *grad_v)
{
    softmax_tiles t = softmax_tiles_of(h);
    block_load(h.q, i, rows, h.d, t.q);
    block_load(h.k, j, keys, h.d, t.k);
    softmax_logits(h, t, rows, keys);
    softmax_weights(h, statistics, i, rows, j, keys, t.weights);
    block_load(h.grad_out, i, rows, h.dv, t.q);
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, keys, h.dv, rows, t.weights, HEAD_TILE, t.q, h.dv,
               true, grad_v, h.dv);
    block_load(h.v, j, keys, h.dv, t.k);
    softmax_slopes(h, statistics, i, rows, j, keys, t.q, t.k, t.weights);
    block_load(h.q, i, rows, h.d, t.q);
    block_gemm(h.tf32, TRANSPOSED, AS_IT_IS, keys, h.d, rows, t.weights, HEAD_TILE, t.q, h.d, true,
               grad_k, h.d);
}

/* dK and dV of keys h.first_key .. h.end_key - 1, over queries first .. end - 1. */
static __device__ void softmax_grad_keys(const head &h, const real *statistics, int64_t first,
                                         int64_t end)
{
    softmax_tiles t = softmax_tiles_of(h);
    real *grad_k = t.rest, *grad_v = grad_k + HEAD_TILE * h.d;
    for (int64_t j = h.first_key; j < h.end_key; j += HEAD_TILE) {
        int64_t keys = head_smaller(HEAD_TILE, h.end_key - j);
        block_fill(keys * h.d, 0, grad_k);
        block_fill(keys * h.dv, 0, grad_v);
        for (int64_t i = first; i < end; i += HEAD_TILE) {
            int64_t rows = head_smaller(HEAD_TILE, end - i);
            if (softmax_sees(h, i + rows - 1, j))
                softmax_grad_key_tile(h, statistics, i, rows, j, keys, grad_k, grad_v);
        }
        block_add(h.grad_k, j, keys, h.d, grad_k);
        block_add(h.grad_v, j, keys, h.dv, grad_v);
    }
}

#endif
