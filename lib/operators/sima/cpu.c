/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA (Eq. 1-2): Y = Q^ K^^T V with normalised columns, either product first, in blocks of tokens.
 *
 * Backward, with G = dY, S = K^^T V and dS = Q^^T G:
 *   dQ^ = G S^T = (G V^T) K^,   dK^ = V dS^T = (G V^T)^T Q^,   dV = K^ dS = (Q^ K^^T)^T G,
 *
 * and the sums over tokens of dQ^ o Q^ and of dK^ o K^, for the norms, both are (S o dS) 1. */
#include <string.h>

#include "operators/norms/cpu.h"
#include "operators/sima/plan.h"

/* state: norms; channels first, S. work: sums for the norms' gradients; blocks of Q^, K^ and their
 * gradients; dS and another d x d_v, S^T, dS^T, or S or dS divided by deferred norms; tokens first,
 * blocks of Q^ K^^T and G V^T. Also norms of a part of the tokens and, channels first, its S or
 * dS. */
typedef struct {
    bool tokens_first;
    column_norms queries, keys, part_norms;
    double *along_queries, *along_keys;
    real *q, *k, *grad_q, *grad_k;
    real *state, *grad_state, *other, *part;
    real *weights, *slopes;
} pieces;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t d = shape->dim, dv = shape->value_dim;
    bool tokens = core_sima_tokens_first(&desc->sima, shape->tokens, shape->key_tokens, d, dv);
    *thread_reals = R(norm_doubles)(2 * d) + R(columns_reals)(d) + 4 * HEAD_BLOCK * d +
                    (tokens ? 2 * HEAD_BLOCK * HEAD_BLOCK : 3 * d * dv);
    *head_reals = 2 * R(columns_reals)(d) + (tokens ? 0 : d * dv);
}

static pieces split(const head *h)
{
    real *state = h->state, *free = h->work;
    pieces p = {.tokens_first =
                    core_sima_tokens_first(&h->desc->sima, h->length, h->key_length, h->d, h->dv)};
    int64_t square = p.tokens_first ? HEAD_BLOCK * HEAD_BLOCK : h->d * h->dv;
    p.queries = R(columns_open)(h->desc->sima.norm, h->d, &state);
    p.keys = R(columns_open)(h->desc->sima.norm, h->d, &state);
    p.state = state;
    p.along_queries = R(norm_take)(&free, 2 * h->d);
    p.along_keys = p.along_queries + h->d;
    p.part_norms = R(columns_open)(h->desc->sima.norm, h->d, &free);
    p.q = head_take(&free, HEAD_BLOCK * h->d);
    p.k = head_take(&free, HEAD_BLOCK * h->d);
    p.grad_q = head_take(&free, HEAD_BLOCK * h->d);
    p.grad_k = head_take(&free, HEAD_BLOCK * h->d);
    p.grad_state = p.weights = head_take(&free, square);
    p.other = p.slopes = head_take(&free, square);
    p.part = free;
    return p;
}

/* ---- Sums over the tokens ---- */

/* norms of X, if they are to be found, and sums (d x d_v) = X^^T Y, undivided by deferred norms, if
 * there is a Y. */
typedef struct {
    column_norms *norms;
    bool find;
    const real *x, *y;
    int64_t x_stride, y_stride;
    real *sums;
} token_sums;

static void sum_part(const void *own, const head *h, int64_t first, int64_t count)
{
    const token_sums *s = own;
    pieces p = split(h);
    if (s->find)
        R(columns_start)(&p.part_norms, h->desc->storage, count);
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i), stride = s->x_stride;
        const real *from = s->x + i * s->x_stride;
        if (s->find)
            R(columns_add)(&p.part_norms, rows, from, s->x_stride);
        if (!s->y)
            continue;
        const real *with = s->y + i * s->y_stride,
                   *factor =
                       R(columns_factor)(s->norms, h->desc->storage, rows, from, &stride, p.q);
        real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, h->d, h->dv, rows, factor, stride,
                                   with, s->y_stride, i > first, p.part, h->dv),
                        real_next(from, rows, h->d, s->x_stride),
                        real_next(with, rows, h->dv, s->y_stride));
    }
}

static void add_part(const void *own, const head *h, int64_t first, int64_t count)
{
    const token_sums *s = own;
    pieces p = split(h);
    (void)first, (void)count;
    if (s->find)
        R(columns_merge)(s->norms, &p.part_norms);
    if (s->y)
        head_add(h->d * h->dv, p.part, s->sums);
}

static void sum_tokens(const head *h, int64_t n, const token_sums *s)
{
    if (s->y)
        memset(s->sums, 0, (size_t)(h->d * h->dv) * sizeof(real));
    R(head_share)(h, n, SUM_GROUP, s, sum_part, add_part);
    if (s->find)
        R(columns_finish)(s->norms, h->desc->sima.epsilon, n);
}

/* sums (d x d_v) = X^^T Y. With s->find the norms of X are provisionally deferred. */
static void sum_products(const head *h, int64_t n, token_sums s)
{
    int64_t size = h->d * h->dv;
    bool deferred = *s.norms->deferred != 0;
    sum_tokens(h, n, &s);
    if (deferred && (*s.norms->deferred == 0 || !R(all_finite)(1, size, s.sums, size))) {
        *s.norms->deferred = 0;
        s.find = false;
        sum_tokens(h, n, &s);
    }
    R(columns_divide_rows)(s.norms, h->dv, s.sums, s.sums);
    R(store)(h->desc->storage, h->d, h->dv, s.sums, h->dv);
}

/* ---- Channels first: S = K^^T V ---- */

static void forward_channels(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *whole = own;
    pieces p = split(h);
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i), stride = h->q_stride;
        const real *q = R(columns_factor)(&p.queries, h->desc->storage, rows,
                                          h->q + i * h->q_stride, &stride, p.q);
        real *to = h->out + i * h->out_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->dv, h->d, q, stride,
                                   whole->other, h->dv, 0, to, h->out_stride),
                        real_next(to, rows, h->dv, h->out_stride),
                        real_next(h->q + i * h->q_stride, rows, h->d, h->q_stride));
        head_finish_rows(h, i, rows);
    }
}

/* dS, and the sums that the norms' gradients need. */
static void sum_grad_state(const head *h, pieces *p)
{
    sum_products(h, h->n,
                 (token_sums){&p->queries, false, h->q, h->grad_out, h->q_stride,
                              h->grad_out_stride, p->grad_state});
    for (int64_t c = 0; c < h->d; c++)
        p->along_queries[c] = p->along_keys[c] =
            R(dot)(h->dv, p->state + c * h->dv, p->grad_state + c * h->dv);
}

static void backward_queries(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *whole = own;
    pieces p = split(h);
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i);
        const real *dy = h->grad_out + i * h->grad_out_stride;
        real *to = h->grad_q + i * h->grad_q_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->d, h->dv, dy,
                                   h->grad_out_stride, whole->other, h->d, 0, p.grad_q, h->d),
                        real_next(to, rows, h->d, h->grad_q_stride),
                        real_next(dy, rows, h->dv, h->grad_out_stride));
        R(columns_backward)
        (&p.queries, whole->along_queries, rows, h->q + i * h->q_stride, h->q_stride, p.grad_q,
         false, to, h->grad_q_stride);
        head_search_rows(h, rows, h->d, to, h->grad_q_stride);
    }
}

static void backward_keys(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *whole = own;
    pieces p = split(h);
    for (int64_t j = first; j < first + count; j += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - j), stride = h->k_stride;
        const real *tokens = h->k + j * h->k_stride, *v = h->v + j * h->v_stride;
        const real *k = R(columns_factor)(&p.keys, h->desc->storage, rows, tokens, &stride, p.k);
        real *grad_k = h->grad_k + j * h->grad_k_stride;
        real *grad_v = h->grad_v + j * h->grad_v_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->dv, h->d, k, stride,
                                   whole->grad_state, h->dv, 0, grad_v, h->grad_v_stride),
                        real_next(grad_v, rows, h->dv, h->grad_v_stride),
                        real_next(tokens, rows, h->d, h->k_stride));
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->d, h->dv, v, h->v_stride,
                                   whole->other, h->d, 0, p.grad_k, h->d),
                        real_next(grad_k, rows, h->d, h->grad_k_stride),
                        real_next(v, rows, h->dv, h->v_stride));
        R(columns_backward)
        (&p.keys, whole->along_keys, rows, tokens, h->k_stride, p.grad_k, h->grad_k == h->grad_q,
         grad_k, h->grad_k_stride);
        head_search_rows(h, rows, h->d, grad_k, h->grad_k_stride);
        head_search_rows(h, rows, h->dv, grad_v, h->grad_v_stride);
    }
}

/* Overwrites dQ and dV, and dK unless it is dQ's memory. */
static void backward_channels(const head *h, pieces *p)
{
    sum_grad_state(h, p);
    R(simd).transpose(h->d, h->dv, p->state, h->dv, p->other, h->d);
    R(head_share_tokens)(h, h->n, p, backward_queries);
    R(simd).transpose(h->d, h->dv, p->grad_state, h->dv, p->other, h->d);
    R(columns_divide_rows)(&p->keys, h->dv, p->grad_state, p->grad_state);
    R(head_share_tokens)(h, h->n_k, p, backward_keys);
}

/* ---- Tokens first: Q^ K^^T, a block at a time ---- */

static void load_queries(const head *h, const pieces *p, int64_t i, int64_t rows)
{
    R(columns_apply)(&p->queries, rows, h->q + i * h->q_stride, h->q_stride, p->q);
    R(store)(h->desc->storage, rows, h->d, p->q, h->d);
}

static void load_keys(const head *h, const pieces *p, int64_t j, int64_t rows)
{
    R(columns_apply)(&p->keys, rows, h->k + j * h->k_stride, h->k_stride, p->k);
    R(store)(h->desc->storage, rows, h->d, p->k, h->d);
}

/* weights = rows of Q^ K^^T, for the loaded queries and keys. */
static void weigh(const head *h, const pieces *p, int64_t rows, int64_t keys)
{
    real_gemm(CblasNoTrans, CblasTrans, rows, keys, h->d, p->q, h->d, p->k, h->d, 0, p->weights,
              HEAD_BLOCK);
    R(store)(h->desc->storage, rows, keys, p->weights, HEAD_BLOCK);
}

static void forward_tokens(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces parts = split(h), *p = &parts;
    (void)own;
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i);
        real *out = h->out + i * h->out_stride;
        load_queries(h, p, i, rows);
        head_clear_rows(rows, h->dv, out, h->out_stride);
        for (int64_t j = 0; j < h->n_k; j += HEAD_BLOCK) {
            int64_t keys = head_smaller(HEAD_BLOCK, h->n_k - j);
            load_keys(h, p, j, keys);
            weigh(h, p, rows, keys);
            real_gemm(CblasNoTrans, CblasNoTrans, rows, h->dv, keys, p->weights, HEAD_BLOCK,
                      h->v + j * h->v_stride, h->v_stride, 1, out, h->out_stride);
        }
        head_finish_rows(h, i, rows);
    }
}

/* From grad, by a block of normalised columns, adds the first term of the gradient. */
static void scatter_gradient(const column_norms *c, double *along, int64_t rows,
                             const real *normalised, real *grad, real *to, int64_t stride)
{
    R(columns_backward_partial)(c, along, rows, normalised, grad);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < c->d; e++)
            to[i * stride + e] += grad[i * c->d + e];
}

static void scatter_queries(const head *h, const pieces *p, int64_t i, int64_t rows)
{
    scatter_gradient(&p->queries, p->along_queries, rows, p->q, p->grad_q,
                     h->grad_q + i * h->grad_q_stride, h->grad_q_stride);
}

static void scatter_keys(const head *h, const pieces *p, int64_t j, int64_t rows)
{
    scatter_gradient(&p->keys, p->along_keys, rows, p->k, p->grad_k,
                     h->grad_k + j * h->grad_k_stride, h->grad_k_stride);
}

/* One block of queries and one of keys; its contribution to dQ^ is left in p->grad_q. */
static void backward_pair(const head *h, const pieces *p, const real *dy, int64_t rows, int64_t j,
                          int64_t keys)
{
    load_keys(h, p, j, keys);
    weigh(h, p, rows, keys);
    real_gemm(CblasTrans, CblasNoTrans, keys, h->dv, rows, p->weights, HEAD_BLOCK, dy,
              h->grad_out_stride, 1, h->grad_v + j * h->grad_v_stride, h->grad_v_stride);
    real_gemm(CblasNoTrans, CblasTrans, rows, keys, h->dv, dy, h->grad_out_stride,
              h->v + j * h->v_stride, h->v_stride, 0, p->slopes, HEAD_BLOCK);
    real_gemm(CblasNoTrans, CblasNoTrans, rows, h->d, keys, p->slopes, HEAD_BLOCK, p->k, h->d, 1,
              p->grad_q, h->d);
    real_gemm(CblasTrans, CblasNoTrans, keys, h->d, rows, p->slopes, HEAD_BLOCK, p->q, h->d, 0,
              p->grad_k, h->d);
    scatter_keys(h, p, j, keys);
}

static void backward_tokens(const head *h, pieces *p)
{
    memset(p->along_queries, 0, (size_t)(2 * h->d) * sizeof(double));
    for (int64_t i = 0; i < h->n; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, h->n - i);
        load_queries(h, p, i, rows);
        memset(p->grad_q, 0, (size_t)(rows * h->d) * sizeof(real));
        for (int64_t j = 0; j < h->n_k; j += HEAD_BLOCK)
            backward_pair(h, p, h->grad_out + i * h->grad_out_stride, rows, j,
                          head_smaller(HEAD_BLOCK, h->n_k - j));
        scatter_queries(h, p, i, rows);
    }
    R(columns_backward_finish)
    (&p->queries, p->along_queries, h->n, h->q, h->q_stride, h->grad_q, h->grad_q_stride);
    R(columns_backward_finish)
    (&p->keys, p->along_keys, h->n_k, h->k, h->k_stride, h->grad_k, h->grad_k_stride);
    head_search_rows(h, h->n, h->d, h->grad_q, h->grad_q_stride);
    head_search_rows(h, h->n_k, h->d, h->grad_k, h->grad_k_stride);
    head_search_rows(h, h->n_k, h->dv, h->grad_v, h->grad_v_stride);
}

/* ---- Both orders ---- */

/* The norms and, channels first, S. */
static void before(const head *h)
{
    pieces p = split(h);
    token_sums keys = {.norms = &p.keys, .find = true, .x = h->k, .x_stride = h->k_stride};
    token_sums queries = {.norms = &p.queries, .find = true, .x = h->q, .x_stride = h->q_stride};
    R(columns_start)(&p.keys, h->desc->storage, h->n_k);
    R(columns_start)(&p.queries, h->desc->storage, h->n);
    bool together = !p.tokens_first && *p.keys.deferred != 0; /* K is read once */
    if (!together)
        sum_tokens(h, h->n_k, &keys);
    if (!p.tokens_first)
        sum_products(
            h, h->n_k,
            (token_sums){&p.keys, together, h->k, h->v, h->k_stride, h->v_stride, p.state});
    sum_tokens(h, h->n, &queries);
}

static void forward(const head *h)
{
    pieces p = split(h);
    if (!p.tokens_first)
        R(columns_divide_rows)(&p.queries, h->dv, p.state, p.other);
    R(head_share_tokens)(h, h->n, &p, p.tokens_first ? forward_tokens : forward_channels);
}

static void backward(const head *h)
{
    pieces p = split(h);
    bool empty = h->n == 0; /* no output, so a dead channel of K does not matter */
    if (empty || p.tokens_first)
        R(clear_gradients)(h);
    if (!empty)
        (p.tokens_first ? backward_tokens : backward_channels)(h, &p);
}

const head_operator R(cpu_operator_sima) = {.sizes = sizes,
                                            .before = before,
                                            .forward = forward,
                                            .backward = backward,
                                            .shares = HEAD_SHARED,
                                            .propagates = true,
                                            .overwrites = true,
                                            .searches_gradients = true};
