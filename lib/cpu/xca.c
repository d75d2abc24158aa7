/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross-covariance attention (XCiT, El-Nouby et al. 2021): Y = V A^T, A = softmax(tau C), C = Q^^T
 * K^, over the tokens of which both query and key are there.
 *
 * Backward, with G = dY and L = tau C:
 *   dV = G A,   dA = G^T V,   dL = A o (dA - (A o dA) 1),   dtau = dL.C,   dC = tau dL,
 *   dQ^ = K^ dC^T,   dK^ = Q^ dC. */
#include <string.h>

#include "cpu/norms.h"
#include "cpu/softmax.h"

/* work: norms; blocks of raw Q and K, of Q^ and K^, of V, of G and of one gradient; C, A, dC. */
typedef struct {
    column_norms queries, keys;
    double *along_queries, *along_keys;
    real *raw_q, *raw_k, *q, *k, *v, *grad_out, *grad;
    real *covariance, *weights, *slopes;
    double tau;
} pieces;

/* A block of tokens: which rows of q and out, which of k and v. */
typedef struct {
    int64_t next_query, next_key;
    int64_t count, queries[HEAD_BLOCK], keys[HEAD_BLOCK];
} token_block;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc;
    int64_t d = shape->dim;
    *thread_reals =
        2 * R(columns_reals)(d) + R(norm_doubles)(2 * d) + 7 * HEAD_BLOCK * d + 3 * d * d;
    *head_reals = 0;
}

/* The next tokens that are there both as query and as key; false at the end. */
static bool next_tokens(const head *h, token_block *b)
{
    b->count = 0;
    while (b->count < HEAD_BLOCK && b->next_query < h->n && b->next_key < h->n_k) {
        int64_t query = core_position(h->positions, b->next_query);
        int64_t key = core_position(h->key_positions, b->next_key);
        if (query == key) {
            b->queries[b->count] = b->next_query;
            b->keys[b->count++] = b->next_key;
        }
        b->next_query += query <= key;
        b->next_key += key <= query;
    }
    return b->count > 0;
}

static void gather_raw(const head *h, const pieces *p, const token_block *b)
{
    R(gather_rows)(b->count, b->queries, h->d, h->q, h->q_stride, p->raw_q);
    R(gather_rows)(b->count, b->keys, h->d, h->k, h->k_stride, p->raw_k);
}

/* A block of Q^ and K^. */
static void load(const head *h, const pieces *p, const token_block *b)
{
    gather_raw(h, p, b);
    R(columns_apply)(&p->queries, b->count, p->raw_q, h->d, p->q);
    R(columns_apply)(&p->keys, b->count, p->raw_k, h->d, p->k);
    R(store)(h->desc->storage, b->count, h->d, p->q, h->d);
    R(store)(h->desc->storage, b->count, h->d, p->k, h->d);
}

static pieces split(const head *h)
{
    const atn_tensor *tau = &h->desc->xca.temperature;
    int64_t block = HEAD_BLOCK * h->d, square = h->d * h->d;
    real *free = h->work;
    pieces p = {.tau = tau->data ? (double)*head_matrix(tau, h->index) : 1};
    p.queries = R(columns_start)(ATN_SIMA_L2, h->d, &free);
    p.keys = R(columns_start)(ATN_SIMA_L2, h->d, &free);
    p.along_queries = R(norm_take)(&free, 2 * h->d);
    p.along_keys = p.along_queries + h->d;
    memset(p.along_queries, 0, (size_t)(2 * h->d) * sizeof(double));
    p.raw_q = head_take(&free, block);
    p.raw_k = head_take(&free, block);
    p.q = head_take(&free, block);
    p.k = head_take(&free, block);
    p.v = head_take(&free, block);
    p.grad_out = head_take(&free, block);
    p.grad = head_take(&free, block);
    p.covariance = head_take(&free, square);
    p.weights = head_take(&free, square);
    p.slopes = head_take(&free, square);
    return p;
}

/* The norms, C and A. */
static pieces make_weights(const head *h)
{
    pieces p = split(h);
    int64_t d = h->d;
    for (token_block b = {0}; next_tokens(h, &b);) {
        gather_raw(h, &p, &b);
        R(columns_add)(&p.queries, b.count, p.raw_q, d);
        R(columns_add)(&p.keys, b.count, p.raw_k, d);
    }
    R(columns_finish)(&p.queries, h->desc->xca.epsilon);
    R(columns_finish)(&p.keys, h->desc->xca.epsilon);
    memset(p.covariance, 0, (size_t)(d * d) * sizeof(real));
    for (token_block b = {0}; next_tokens(h, &b);) {
        load(h, &p, &b);
        real_gemm(CblasTrans, CblasNoTrans, d, d, b.count, p.q, d, p.k, d, 1, p.covariance, d);
    }
    R(store)(h->desc->storage, d, d, p.covariance, d);
    for (int64_t a = 0; a < d; a++)
        R(softmax_row)(d, p.tau, p.covariance + a * d, p.weights + a * d);
    R(store)(h->desc->storage, d, d, p.weights, d);
    return p;
}

static void forward(const head *h)
{
    pieces p = make_weights(h);
    int64_t d = h->d;
    for (int64_t i = 0; i < h->n; i++)
        memset(h->out + i * h->out_stride, 0, (size_t)d * sizeof(real));
    for (token_block b = {0}; next_tokens(h, &b);) {
        R(gather_rows)(b.count, b.keys, d, h->v, h->v_stride, p.v);
        real_gemm(CblasNoTrans, CblasTrans, b.count, d, d, p.v, d, p.weights, d, 0, p.grad, d);
        R(scatter_add_rows)(b.count, b.queries, d, p.grad, h->out, h->out_stride);
    }
    R(store)(h->desc->storage, h->n, d, h->out, h->out_stride);
}

/* dC from dA in place; returns dtau. */
static double backward_weights(const head *h, const pieces *p)
{
    int64_t d = h->d;
    double grad_tau = 0;
    for (int64_t a = 0; a < d; a++) {
        real *slopes = p->slopes + a * d;
        R(softmax_row_backward)(d, 1, p->weights + a * d, slopes);
        grad_tau += R(dot)(d, slopes, p->covariance + a * d);
        R(scale_row)(d, p->tau, slopes);
    }
    return grad_tau;
}

/* The gradients by Q and K from dC: the terms of columns_push, then those of columns_pull. */
static void backward_tokens(const head *h, const pieces *p)
{
    int64_t d = h->d;
    for (token_block b = {0}; next_tokens(h, &b);) {
        load(h, p, &b);
        real_gemm(CblasNoTrans, CblasTrans, b.count, d, d, p->k, d, p->slopes, d, 0, p->grad, d);
        R(columns_push)(&p->queries, p->along_queries, b.count, p->q, p->grad);
        R(scatter_add_rows)(b.count, b.queries, d, p->grad, h->grad_q, h->grad_q_stride);
        real_gemm(CblasNoTrans, CblasNoTrans, b.count, d, d, p->q, d, p->slopes, d, 0, p->grad, d);
        R(columns_push)(&p->keys, p->along_keys, b.count, p->k, p->grad);
        R(scatter_add_rows)(b.count, b.keys, d, p->grad, h->grad_k, h->grad_k_stride);
    }
    for (token_block b = {0}; next_tokens(h, &b);)
        for (int64_t i = 0; i < b.count; i++) {
            int64_t query = b.queries[i], key = b.keys[i];
            R(columns_pull)
            (&p->queries, p->along_queries, 1, h->q + query * h->q_stride, h->q_stride,
             h->grad_q + query * h->grad_q_stride, h->grad_q_stride);
            R(columns_pull)
            (&p->keys, p->along_keys, 1, h->k + key * h->k_stride, h->k_stride,
             h->grad_k + key * h->grad_k_stride, h->grad_k_stride);
        }
}

static void backward(const head *h)
{
    pieces p = make_weights(h);
    int64_t d = h->d;
    real *grad_tau = h->grad_parameters[ATN_PARAMETER_TEMPERATURE];
    memset(p.slopes, 0, (size_t)(d * d) * sizeof(real));
    for (token_block b = {0}; next_tokens(h, &b);) {
        R(gather_rows)(b.count, b.keys, d, h->v, h->v_stride, p.v);
        R(gather_rows)(b.count, b.queries, d, h->grad_out, h->grad_out_stride, p.grad_out);
        real_gemm(CblasTrans, CblasNoTrans, d, d, b.count, p.grad_out, d, p.v, d, 1, p.slopes, d);
        real_gemm(CblasNoTrans, CblasNoTrans, b.count, d, d, p.grad_out, d, p.weights, d, 0, p.grad,
                  d);
        R(scatter_add_rows)(b.count, b.keys, d, p.grad, h->grad_v, h->grad_v_stride);
    }
    double sum = backward_weights(h, &p);
    if (grad_tau)
        *grad_tau += (real)sum;
    backward_tokens(h, &p);
}

const head_operator R(xca) = {.sizes = sizes, .forward = forward, .backward = backward};
