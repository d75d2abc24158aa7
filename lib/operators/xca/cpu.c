/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross-covariance attention (XCiT, El-Nouby et al. 2021): Y = V A^T, A = softmax(tau C), C = Q^^T
 * K^, over the tokens of which both query and key are valid.
 *
 * Backward, with G = dY and L = tau C:
 *   dV = G A,   dA = G^T V,   dL = A o (dA - (A o dA) 1),   dtau = dL.C,   dC = tau dL,
 *   dQ^ = K^ dC^T,   dK^ = Q^ dC,
 *
 * and for the norms the sums over tokens of dQ^ o Q^ and dK^ o K^ are those of dC o C over rows and
 * over columns. */
#include <string.h>

#include "operators/norms/cpu.h"
#include "operators/softmax/cpu.h"

/* state: norms, C, A. work: sums for the norms' gradients; blocks of Q^, of K^ and of one gradient;
 * dC and its transpose; norms and C or dC of a part of the tokens. */
typedef struct {
    column_norms queries, keys, part_queries, part_keys;
    double *along_queries, *along_keys;
    real *q, *k, *grad;
    real *covariance, *weights, *slopes, *transposed, *part;
    double tau;
} pieces;

/* Consecutive tokens of which neither the query nor the key is padded. */
typedef struct {
    int64_t query, key, count;
} run;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc;
    int64_t d = shape->dim;
    *thread_reals =
        R(norm_doubles)(2 * d) + 2 * R(columns_reals)(d) + 3 * HEAD_BLOCK * d + 3 * d * d;
    *head_reals = 2 * R(columns_reals)(d) + 2 * d * d;
}

/* The next run of at most `most` tokens after this one; false at the end. */
static bool next_run(const head *h, int64_t most, run *r)
{
    int64_t query = r->query + r->count, key = r->key + r->count, count = 0;
    while (query + count < h->n && key + count < h->n_k && count < most) {
        int64_t at = core_position(h->positions, query + count);
        int64_t key_at = core_position(h->key_positions, key + count);
        if (at == key_at) {
            count++;
            continue;
        }
        if (count > 0)
            break;
        query += at < key_at;
        key += key_at < at;
    }
    *r = (run){query, key, count};
    return count > 0;
}

/* A block of Q^, or of Q if its norms are deferred; likewise of K. */
static const real *load_queries(const head *h, const pieces *p, const run *r, int64_t *stride)
{
    *stride = h->q_stride;
    return R(columns_factor)(&p->queries, h->desc->storage, r->count, h->q + r->query * h->q_stride,
                             stride, p->q);
}

static const real *load_keys(const head *h, const pieces *p, const run *r, int64_t *stride)
{
    *stride = h->k_stride;
    return R(columns_factor)(&p->keys, h->desc->storage, r->count, h->k + r->key * h->k_stride,
                             stride, p->k);
}

static pieces split(const head *h)
{
    const atn_tensor *tau = &h->desc->xca.temperature;
    int64_t block = HEAD_BLOCK * h->d, square = h->d * h->d;
    real *state = h->state, *free = h->work;
    pieces p = {.tau = tau->data ? (double)*head_matrix(tau, h->index) : 1};
    p.queries = R(columns_open)(ATN_SIMA_L2, h->d, &state);
    p.keys = R(columns_open)(ATN_SIMA_L2, h->d, &state);
    p.covariance = head_take(&state, square);
    p.weights = head_take(&state, square);
    p.along_queries = R(norm_take)(&free, 2 * h->d);
    p.along_keys = p.along_queries + h->d;
    p.part_queries = R(columns_open)(ATN_SIMA_L2, h->d, &free);
    p.part_keys = R(columns_open)(ATN_SIMA_L2, h->d, &free);
    p.q = head_take(&free, block);
    p.k = head_take(&free, block);
    p.grad = head_take(&free, block);
    p.slopes = head_take(&free, square);
    p.transposed = head_take(&free, square);
    p.part = free;
    return p;
}

/* ---- Parts of the tokens ---- */

/* With padding a query's index is not its key's: all tokens are then one part. */
static bool is_padded(const head *h)
{
    return h->key_positions;
}

/* add is null where the parts sum nothing up. */
static void share(const head *h, const void *own, head_part *part, head_part *add)
{
    if (is_padded(h) || add)
        R(head_share)(h, h->n, is_padded(h) ? h->n : SUM_GROUP, own, part, add);
    else
        R(head_share_tokens)(h, h->n, own, part);
}

/* Where next_run begins for a part; h is cut off after the part's last token. */
static run start_part(head *h, int64_t first, int64_t count)
{
    if (!is_padded(h))
        h->n = h->n_k = first + count;
    return (run){first, first, 0};
}

static bool both_deferred(const pieces *p)
{
    return *p->queries.deferred != 0 && *p->keys.deferred != 0;
}

/* What a pass over the tokens finds. */
typedef struct {
    bool norms, covariance;
} found;

static void sum_part(const void *own, const head *h, int64_t first, int64_t count)
{
    const found *f = own;
    pieces p = split(h);
    head part = *h;
    int64_t d = h->d, q_stride, k_stride;
    R(columns_start)(&p.part_queries, h->desc->storage, count);
    R(columns_start)(&p.part_keys, h->desc->storage, count);
    memset(p.part, 0, (size_t)(d * d) * sizeof(real));
    for (run r = start_part(&part, first, count); next_run(&part, HEAD_BLOCK, &r);) {
        const real *queries = h->q + r.query * h->q_stride, *keys = h->k + r.key * h->k_stride;
        if (f->norms) {
            R(columns_add)(&p.part_queries, r.count, queries, h->q_stride);
            R(columns_add)(&p.part_keys, r.count, keys, h->k_stride);
        }
        if (!f->covariance)
            continue;
        const real *q = load_queries(h, &p, &r, &q_stride), *k = load_keys(h, &p, &r, &k_stride);
        real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, d, d, r.count, q, q_stride, k,
                                   k_stride, 1, p.part, d),
                        real_next(queries, r.count, d, h->q_stride),
                        real_next(keys, r.count, d, h->k_stride));
    }
}

static void add_part(const void *own, const head *h, int64_t first, int64_t count)
{
    const found *f = own;
    pieces p = split(h);
    (void)first, (void)count;
    if (f->norms) {
        R(columns_merge)(&p.queries, &p.part_queries);
        R(columns_merge)(&p.keys, &p.part_keys);
    }
    if (f->covariance)
        head_add(h->d * h->d, p.part, p.covariance);
}

/* Tokens of which neither the query nor the key is padded. */
static int64_t count_tokens(const head *h)
{
    int64_t tokens = 0;
    for (run r = {0}; next_run(h, h->n, &r);)
        tokens += r.count;
    return tokens;
}

/* The norms, and C, undivided by deferred norms. */
static void sum_tokens(const head *h, pieces *p, bool norms, bool covariance)
{
    found f = {norms, covariance};
    memset(p->covariance, 0, (size_t)(h->d * h->d) * sizeof(real));
    share(h, &f, sum_part, add_part);
    if (!norms)
        return;
    int64_t tokens = count_tokens(h);
    R(columns_finish)(&p->queries, h->desc->xca.epsilon, tokens);
    R(columns_finish)(&p->keys, h->desc->xca.epsilon, tokens);
}

/* The norms, C and A. Tokens are read once if norms can be deferred. */
static void before(const head *h)
{
    pieces p = split(h);
    int64_t d = h->d;
    R(columns_start)(&p.queries, h->desc->storage, h->n);
    R(columns_start)(&p.keys, h->desc->storage, h->n_k);
    bool together = both_deferred(&p);
    sum_tokens(h, &p, true, together);
    if (!together || !both_deferred(&p))
        sum_tokens(h, &p, false, true);
    R(columns_divide_rows)(&p.queries, d, p.covariance, p.covariance);
    if (*p.keys.deferred != 0)
        R(columns_apply)(&p.keys, d, p.covariance, d, p.covariance);
    R(store)(h->desc->storage, d, d, p.covariance, d);
    R(softmax_rows)(d, d, p.tau, p.covariance, d, p.weights, d);
    R(store)(h->desc->storage, d, d, p.weights, d);
}

static void forward_part(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *whole = own;
    head part = *h;
    int64_t d = h->d, done = first;
    for (run r = start_part(&part, first, count); next_run(&part, h->n, &r);
         done = r.query + r.count) {
        head_clear_rows(r.query - done, d, h->out + done * h->out_stride, h->out_stride);
        for (int64_t i = 0; i < r.count; i += HEAD_BLOCK) {
            int64_t rows = head_smaller(HEAD_BLOCK, r.count - i), query = r.query + i;
            R(multiply_tokens)
            (rows, d, d, h->v + (r.key + i) * h->v_stride, h->v_stride, whole->transposed, false,
             h->out + query * h->out_stride, h->out_stride);
            head_finish_rows(h, query, rows);
        }
    }
    head_clear_rows(first + count - done, d, h->out + done * h->out_stride, h->out_stride);
}

static void forward(const head *h)
{
    pieces p = split(h);
    R(simd).transpose(h->d, h->d, p.weights, h->d, p.transposed, h->d);
    share(h, &p, forward_part, NULL);
}

/* dC from dA in place; returns dtau. */
static double backward_weights(const head *h, const pieces *p)
{
    int64_t d = h->d;
    double grad_tau = 0;
    R(softmax_rows_backward)(d, d, 1, p->weights, d, p->slopes, d);
    for (int64_t a = 0; a < d; a++) {
        real *slopes = p->slopes + a * d;
        grad_tau += R(dot)(d, slopes, p->covariance + a * d);
        R(scale_row)(d, p->tau, slopes);
    }
    return grad_tau;
}

static void sum_along(const pieces *p, int64_t d)
{
    memset(p->along_keys, 0, (size_t)d * sizeof(double));
    for (int64_t a = 0; a < d; a++) {
        const real *slopes = p->slopes + a * d, *covariance = p->covariance + a * d;
        p->along_queries[a] = R(dot)(d, slopes, covariance);
        for (int64_t c = 0; c < d; c++)
            p->along_keys[c] += (double)slopes[c] * (double)covariance[c];
    }
}

/* The gradients by Q and K from dC; dK is added if it is dQ's memory. */
static void backward_tokens(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *whole = own;
    pieces parts = split(h), *p = &parts;
    head part = *h;
    int64_t d = h->d, q_stride, k_stride;
    for (run r = start_part(&part, first, count); next_run(&part, HEAD_BLOCK, &r);) {
        const real *q = load_queries(h, p, &r, &q_stride), *k = load_keys(h, p, &r, &k_stride);
        const real *queries = h->q + r.query * h->q_stride, *keys = h->k + r.key * h->k_stride;
        real *grad_q = h->grad_q + r.query * h->grad_q_stride;
        real *grad_k = h->grad_k + r.key * h->grad_k_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, r.count, d, d, k, k_stride,
                                   whole->transposed, d, 0, p->grad, d),
                        real_next(keys, r.count, d, h->k_stride),
                        real_next(grad_k, r.count, d, h->grad_k_stride));
        R(columns_backward)
        (&p->queries, whole->along_queries, r.count, queries, h->q_stride, p->grad, false, grad_q,
         h->grad_q_stride);
        head_search_rows(h, r.count, d, grad_q, h->grad_q_stride);
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, r.count, d, d, q, q_stride,
                                   whole->slopes, d, 0, p->grad, d),
                        real_next(queries, r.count, d, h->q_stride),
                        real_next(grad_q, r.count, d, h->grad_q_stride));
        R(columns_backward)
        (&p->keys, whole->along_keys, r.count, keys, h->k_stride, p->grad, h->grad_k == h->grad_q,
         grad_k, h->grad_k_stride);
        head_search_rows(h, r.count, d, grad_k, h->grad_k_stride);
    }
}

/* dV of some tokens, and what they add to dA. */
static void backward_values(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    head part = *h;
    int64_t d = h->d;
    (void)own;
    memset(p.part, 0, (size_t)(d * d) * sizeof(real));
    for (run r = start_part(&part, first, count); next_run(&part, HEAD_BLOCK, &r);) {
        const real *dy = h->grad_out + r.query * h->grad_out_stride;
        const real *v = h->v + r.key * h->v_stride;
        real *grad_v = h->grad_v + r.key * h->grad_v_stride;
        real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, d, d, r.count, dy, h->grad_out_stride,
                                   v, h->v_stride, 1, p.part, d),
                        real_next(dy, r.count, d, h->grad_out_stride),
                        real_next(v, r.count, d, h->v_stride));
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, r.count, d, d, dy,
                                   h->grad_out_stride, p.weights, d, 0, grad_v, h->grad_v_stride),
                        real_next(grad_v, r.count, d, h->grad_v_stride), NULL);
        head_search_rows(h, r.count, d, grad_v, h->grad_v_stride);
    }
}

static void add_values(const void *own, const head *h, int64_t first, int64_t count)
{
    const pieces *whole = own;
    pieces p = split(h);
    (void)first, (void)count;
    head_add(h->d * h->d, p.part, whole->slopes);
}

static void backward(const head *h)
{
    pieces p = split(h);
    int64_t d = h->d;
    real *grad_tau = h->grad_parameters[ATN_PARAMETER_TEMPERATURE];
    memset(p.slopes, 0, (size_t)(d * d) * sizeof(real));
    share(h, &p, backward_values, add_values);
    double sum = backward_weights(h, &p);
    if (grad_tau)
        *grad_tau += (real)sum;
    sum_along(&p, d);
    R(simd).transpose(d, d, p.slopes, d, p.transposed, d);
    R(columns_divide_rows)(&p.keys, d, p.transposed, p.transposed);
    R(columns_divide_rows)(&p.queries, d, p.slopes, p.slopes);
    share(h, &p, backward_tokens, NULL);
}

const head_operator R(cpu_operator_xca) = {.sizes = sizes,
                                           .before = before,
                                           .forward = forward,
                                           .backward = backward,
                                           .shares = HEAD_SHARED,
                                           .propagates = true,
                                           .overwrites = true,
                                           .searches_gradients = true};
