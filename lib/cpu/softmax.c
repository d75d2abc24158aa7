/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention (Vaswani et al. 2017, Eq. 1) over blocks of queries and keys: a row's maximum
 * and sum are carried along the keys (Milakov and Gimelshein 2018), so that n x n logits
 * are never held. */
#include <string.h>

#include "core/heads.h"
#include "cpu/softmax.h"

#include "cpu/simd.h"

/* A block of queries and where their softmax stands after the keys seen so far. Sums are relative
 * to exp(largest). */
typedef struct {
    int64_t first, count;
    real largest[HEAD_BLOCK];       /* logit; -infinity: no key seen */
    int64_t largest_at[HEAD_BLOCK]; /* its key */
    double sum[HEAD_BLOCK];         /* of the weights */
    double pivot[HEAD_BLOCK];       /* backward: dP at largest_at */
    double slope[HEAD_BLOCK];       /* backward: of weight (dP - pivot), then that over sum */
} queries;

/* The block of weights, the block of dY V^T (backward). */
int64_t R(softmax_reals)(void)
{
    return (int64_t)2 * HEAD_BLOCK * HEAD_BLOCK;
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc, (void)shape;
    *thread_reals = R(softmax_reals)();
    *head_reals = 0;
}

static queries open_queries(const head *h, int64_t first)
{
    queries b = {.first = first, .count = head_smaller(HEAD_BLOCK, h->n - first)};
    for (int64_t i = 0; i < b.count; i++)
        b.largest[i] = -(real)INFINITY, b.largest_at[i] = -1;
    return b;
}

static bool sees(const head *h, int64_t i, int64_t j)
{
    return !h->desc->causal || core_position(h->key_positions, j) <= core_position(h->positions, i);
}

/* Of the block's keys, how many query i sees: the first ones, as positions ascend. */
static int64_t keys_seen(const head *h, int64_t i, int64_t first, int64_t keys)
{
    while (keys > 0 && !sees(h, i, first + keys - 1))
        keys--;
    return keys;
}

/* The keys from `first` on that the block of queries is worked on with; 0: none of them is seen. */
static int64_t keys_at(const head *h, const queries *b, int64_t first)
{
    if (first >= h->n_k || !sees(h, b->first + b->count - 1, first))
        return 0;
    return head_smaller(HEAD_BLOCK, h->n_k - first);
}

/* c q_i.k_j */
static void logits(const head *h, const queries *b, int64_t first, int64_t keys, real *out)
{
    real c = (real)core_logit_scale(h->desc, h->d);
    real_gemm(CblasNoTrans, CblasTrans, b->count, keys, h->d, h->q + b->first * h->q_stride,
              h->q_stride, h->k + first * h->k_stride, h->k_stride, 0, out, HEAD_BLOCK);
    for (int64_t i = 0; i < b->count; i++)
        for (int64_t j = 0; j < keys; j++)
            out[i * HEAD_BLOCK + j] *= c;
}

/* softmax_advance with the `seen` of the block's `keys`, from `first` on, that a row sees; those it
 * does not see get weight 0. */
static double advance(queries *b, int64_t row, int64_t first, int64_t seen, int64_t keys,
                      real *logit)
{
    int64_t at = -1;
    double shrink = R(softmax_advance)(seen, logit, &b->largest[row], &b->sum[row], &at);
    if (at >= 0)
        b->largest_at[row] = first + at;
    for (int64_t j = seen; j < keys; j++)
        logit[j] = 0;
    return shrink;
}

static void forward_block(const head *h, queries *b)
{
    real *weights = h->work, *out = h->out + b->first * h->out_stride;
    for (int64_t i = 0; i < b->count; i++)
        memset(out + i * h->out_stride, 0, (size_t)h->dv * sizeof(real));
    for (int64_t j = 0, keys; (keys = keys_at(h, b, j)) > 0; j += keys) {
        logits(h, b, j, keys, weights);
        for (int64_t i = 0; i < b->count; i++) {
            int64_t seen = keys_seen(h, b->first + i, j, keys);
            double shrink = advance(b, i, j, seen, keys, weights + i * HEAD_BLOCK);
            R(scale_row)(h->dv, shrink, out + i * h->out_stride);
        }
        R(store)(h->desc->storage, b->count, keys, weights, HEAD_BLOCK);
        real_gemm(CblasNoTrans, CblasNoTrans, b->count, h->dv, keys, weights, HEAD_BLOCK,
                  h->v + j * h->v_stride, h->v_stride, 1, out, h->out_stride);
    }
    for (int64_t i = 0; i < b->count; i++)
        if (b->sum[i] != 0) /* 0: no key seen, a row of 0 */
            R(scale_row)(h->dv, 1 / b->sum[i], out + i * h->out_stride);
}

void R(softmax_forward)(const head *h)
{
    for (int64_t i = 0; i < h->n; i += HEAD_BLOCK) {
        queries b = open_queries(h, i);
        forward_block(h, &b);
    }
    R(store)(h->desc->storage, h->n, h->dv, h->out, h->out_stride);
}

/* dP = dY V^T */
static void weight_gradients(const head *h, const queries *b, int64_t first, int64_t keys,
                             real *out)
{
    real_gemm(CblasNoTrans, CblasTrans, b->count, keys, h->dv,
              h->grad_out + b->first * h->grad_out_stride, h->grad_out_stride,
              h->v + first * h->v_stride, h->v_stride, 0, out, HEAD_BLOCK);
}

/* One row of `measure`: its logits and dP at keys first, first + 1, ... */
static void measure_row(queries *b, int64_t row, int64_t first, int64_t seen, int64_t keys,
                        real *logit, const real *slope)
{
    double before = b->sum[row], shrink = advance(b, row, first, seen, keys, logit);
    b->slope[row] *= shrink;
    if (b->largest_at[row] >= first) {
        double pivot = (double)slope[b->largest_at[row] - first];
        b->slope[row] += before * shrink * (b->pivot[row] - pivot);
        b->pivot[row] = pivot;
    }
    for (int64_t j = 0; j < seen; j++)
        b->slope[row] += (double)logit[j] * ((double)slope[j] - b->pivot[row]);
}

/* The maxima and sums of all rows, and pivot + slope = sum_j P_ij dP_ij = dY_i.Y_i, without Y (Dao
 * et al. 2022). Relative to dP where P is largest: where P is nearly 1, dP less the mean of
 * dP would be the rounding error of the mean. */
static void measure(const head *h, queries *b)
{
    real *weights = h->work, *slopes = weights + HEAD_BLOCK * HEAD_BLOCK;
    for (int64_t j = 0, keys; (keys = keys_at(h, b, j)) > 0; j += keys) {
        logits(h, b, j, keys, weights);
        weight_gradients(h, b, j, keys, slopes);
        for (int64_t i = 0; i < b->count; i++)
            measure_row(b, i, j, keys_seen(h, b->first + i, j, keys), keys,
                        weights + i * HEAD_BLOCK, slopes + i * HEAD_BLOCK);
    }
    for (int64_t i = 0; i < b->count; i++)
        if (b->sum[i] != 0)
            b->slope[i] /= b->sum[i];
}

/* A measured row: logits become P, dP becomes c dS = c P (dP - mean). */
static void finish_row(const head *h, const queries *b, int64_t row, int64_t seen, int64_t keys,
                       real *logit, real *slope)
{
    double c = core_logit_scale(h->desc, h->d);
    R(simd).exponentials(seen, 1, b->largest[row], logit);
    for (int64_t j = 0; j < seen; j++) {
        double weight = (double)logit[j] / b->sum[row];
        logit[j] = (real)weight;
        slope[j] = (real)(c * weight * ((double)slope[j] - b->pivot[row] - b->slope[row]));
    }
    for (int64_t j = seen; j < keys; j++)
        logit[j] = slope[j] = 0;
}

/* dV += P^T dY, dQ += c dS K, dK += c dS^T Q */
static void backward_block(const head *h, const queries *b)
{
    real *weights = h->work, *slopes = weights + HEAD_BLOCK * HEAD_BLOCK;
    const real *q = h->q + b->first * h->q_stride;
    const real *dy = h->grad_out + b->first * h->grad_out_stride;
    for (int64_t j = 0, keys; (keys = keys_at(h, b, j)) > 0; j += keys) {
        logits(h, b, j, keys, weights);
        weight_gradients(h, b, j, keys, slopes);
        for (int64_t i = 0; i < b->count; i++)
            finish_row(h, b, i, keys_seen(h, b->first + i, j, keys), keys, weights + i * HEAD_BLOCK,
                       slopes + i * HEAD_BLOCK);
        real_gemm(CblasTrans, CblasNoTrans, keys, h->dv, b->count, weights, HEAD_BLOCK, dy,
                  h->grad_out_stride, 1, h->grad_v + j * h->grad_v_stride, h->grad_v_stride);
        real_gemm(CblasNoTrans, CblasNoTrans, b->count, h->d, keys, slopes, HEAD_BLOCK,
                  h->k + j * h->k_stride, h->k_stride, 1, h->grad_q + b->first * h->grad_q_stride,
                  h->grad_q_stride);
        real_gemm(CblasTrans, CblasNoTrans, keys, h->d, b->count, slopes, HEAD_BLOCK, q,
                  h->q_stride, 1, h->grad_k + j * h->grad_k_stride, h->grad_k_stride);
    }
}

void R(softmax_backward)(const head *h)
{
    for (int64_t i = 0; i < h->n; i += HEAD_BLOCK) {
        queries b = open_queries(h, i);
        measure(h, &b);
        backward_block(h, &b);
    }
}

const head_operator R(softmax) = {
    .sizes = sizes, .forward = R(softmax_forward), .backward = R(softmax_backward)};
