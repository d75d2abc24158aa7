/* SPDX-License-Identifier: BSD-3-Clause */
/* Efficient attention (Shen et al. 2021): Y = rho_q S, S = rho_k^T V, with rho_q the softmax of Q
 * over channels and rho_k that of K over tokens, in blocks of tokens.
 *
 * Backward, with G = dY and dS = rho_q^T G:
 *   dQ = rho_q o (G S^T - (rho_q o G S^T) 1),   dV = rho_k dS,   dK = rho_k o (V dS^T - 1 t^T),
 * where t_c = sum_j (V dS^T)_jc rho_k,jc is row c of S o dS. */
#include <string.h>

#include "cpu/simd.h"
#include "operators/norms/cpu.h"
#include "operators/softmax/cpu.h"

/* state: for each channel of K the sum of exps, t and what is subtracted from it before exp; S, dS.
 * work: the reciprocals of the sums; a block of rho_q or rho_k (in `backward` of exps) and one of a
 * gradient; the maxima, the sums and S or dS of a part of the tokens; backward, S^T or dS^T. */
typedef struct {
    double *sums, *along, *one_over, *part_sums;
    real *shifts, *rho, *grad, *part_maxima;
    real *state, *grad_state, *part_state, *transposed;
    real *exps; /* backward, not after forward: of all keys, in dK's memory; null: computed
                   again */
} pieces;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc;
    int64_t d = shape->dim;
    *thread_reals = R(norm_doubles)(2 * d) + 2 * HEAD_BLOCK * d + d + 2 * d * shape->value_dim;
    *head_reals = R(norm_doubles)(2 * d) + d + 2 * d * shape->value_dim;
}

static pieces split(const head *h)
{
    real *state = h->state, *free = h->work;
    pieces p = {.sums = R(norm_take)(&state, 2 * h->d), .one_over = R(norm_take)(&free, 2 * h->d)};
    p.along = p.sums + h->d;
    p.part_sums = p.one_over + h->d;
    p.shifts = head_take(&state, h->d);
    p.state = head_take(&state, h->d * h->dv);
    p.grad_state = head_take(&state, h->d * h->dv);
    p.rho = head_take(&free, HEAD_BLOCK * h->d);
    p.grad = head_take(&free, HEAD_BLOCK * h->d);
    p.part_maxima = head_take(&free, h->d);
    p.part_state = head_take(&free, h->d * h->dv);
    p.transposed = head_take(&free, h->d * h->dv);
    if (h->grad_k && !h->after_forward && !h->key_positions && h->grad_k != h->grad_q &&
        h->grad_k_stride == h->d)
        p.exps = h->grad_k;
    return p;
}

/* A block of rho_q. */
static void load_queries(const head *h, const pieces *p, int64_t first, int64_t rows)
{
    const real *q = h->q + first * h->q_stride;
    head_search(h, rows, h->d, q, h->q_stride);
    R(softmax_rows)(rows, h->d, 1, q, h->q_stride, p->rho, h->d);
    R(store)(h->desc->storage, rows, h->d, p->rho, h->d);
}

static inline real larger(real a, real b)
{
    return a > b ? a : b;
}

/* maxima = those of some keys or what it holds. Four keys at a time, which need not wait for one
 * another's maxima. */
static void raise_maxima(const head *h, int64_t keys, const real *first, real *restrict maxima)
{
    int64_t stride = h->k_stride, j = 0;
    for (; j + 4 <= keys; j += 4) {
        const real *k = first + j * stride;
        for (int64_t c = 0; c < h->d; c++)
            maxima[c] = larger(
                larger(larger(k[c], k[stride + c]), larger(k[2 * stride + c], k[3 * stride + c])),
                maxima[c]);
    }
    for (; j < keys; j++)
        for (int64_t c = 0; c < h->d; c++)
            maxima[c] = larger(first[j * stride + c], maxima[c]);
}

static void find_maxima(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own;
    for (int64_t c = 0; c < h->d; c++)
        p.part_maxima[c] = -INFINITY;
    for (int64_t j = first; j < first + count; j += HEAD_BLOCK) {
        int64_t keys = head_smaller(HEAD_BLOCK, first + count - j);
        const real *k = h->k + j * h->k_stride;
        head_search(h, keys, h->d, k, h->k_stride);
        raise_maxima(h, keys, k, p.part_maxima);
    }
}

static void add_maxima(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own, (void)first, (void)count;
    raise_maxima(h, 1, p.part_maxima, p.shifts);
}

/* Sums over keys, for add_state: S or dS. refused, of S or null: whether a key is more than MOST
 * above its shift, or not finite. */
typedef struct {
    real *sums;
    bool *refused;
} key_sums;

/* A difference of at most 4 is rounded by at most two roundoffs, which is the relative error of its
 * exp; and sums of such exps, by which backward divides dS, are not so large that it underflows. */
enum { MOST = 4 };

/* exp(k - shift) of a block of keys; add: adds it to the part's sums, too. */
static const real *load_exps(const head *h, const pieces *p, int64_t first, int64_t rows,
                             const key_sums *add)
{
    real *exps = p->exps ? p->exps + first * h->d : p->rho;
    if (p->exps && !add)
        return exps;
    bool good = R(simd).exponential_columns(rows, h->d, h->k + first * h->k_stride, h->k_stride,
                                            p->shifts, MOST, exps, add ? p->part_sums : NULL);
    if (add && add->refused && !good) {
#pragma omp atomic write
        *add->refused = true;
    }
    return exps;
}

/* A block of rho_k, the sums being known. */
static void load_keys(const head *h, const pieces *p, int64_t first, int64_t rows)
{
    load_exps(h, p, first, rows, NULL);
    for (int64_t c = 0; c < h->d; c++)
        p->one_over[c] = 1 / p->sums[c];
    for (int64_t j = 0; j < rows; j++) {
        real *restrict rho = p->rho + j * h->d;
        for (int64_t c = 0; c < h->d; c++)
            rho[c] = (real)R(norm_divide)((double)rho[c], p->sums[c], p->one_over[c]);
    }
    R(store)(h->desc->storage, rows, h->d, p->rho, h->d);
}

static bool is_narrow(const head *h)
{
    return h->desc->storage != ATN_STORAGE_NATIVE;
}

static void sum_exps(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    memset(p.part_sums, 0, (size_t)h->d * sizeof(double));
    for (int64_t j = first; j < first + count; j += HEAD_BLOCK)
        load_exps(h, &p, j, head_smaller(HEAD_BLOCK, first + count - j), own);
}

static void add_exps(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own, (void)first, (void)count;
    for (int64_t c = 0; c < h->d; c++)
        p.sums[c] += p.part_sums[c];
}

static bool was_refused(const key_sums *to)
{
    bool refused = false;
    if (to->refused) {
#pragma omp atomic read
        refused = *to->refused;
    }
    return refused;
}

static void sum_state(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    const key_sums *to = own;
    memset(p.part_sums, 0, (size_t)h->d * sizeof(double));
    for (int64_t j = first; j < first + count && !was_refused(to); j += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - j);
        const real *rho = p.rho, *v = h->v + j * h->v_stride;
        if (is_narrow(h))
            load_keys(h, &p, j, rows);
        else
            rho = load_exps(h, &p, j, rows, to);
        head_search_summed(h, rows, v);
        real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, h->d, h->dv, rows, rho, h->d, v,
                                   h->v_stride, j > first, p.part_state, h->dv),
                        real_next(v, rows, h->dv, h->v_stride),
                        real_next(h->k + j * h->k_stride, rows, h->d, h->k_stride));
    }
}

/* Adds a part's S or dS. */
static void add_state(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    const key_sums *to = own;
    if (was_refused(to)) /* the part may not have been summed */
        return;
    if (to->sums == p.state && !is_narrow(h))
        add_exps(own, h, first, count);
    head_add(h->d * h->dv, p.part_state, to->sums);
}

static void clear_state(const head *h, const pieces *p)
{
    memset(p->sums, 0, (size_t)h->d * sizeof(double));
    memset(p->state, 0, (size_t)(h->d * h->dv) * sizeof(real));
    for (int64_t c = 0; c < h->d; c++)
        p->shifts[c] = -INFINITY;
}

/* S and the sums with the maxima of the first keys as shifts, so that the others are read once: no
 * sum is less than 1. False if a key is refused or S has overflowed. */
static bool sum_at_once(const head *h, const pieces *p)
{
    bool refused = false;
    key_sums to = {p->state, &refused};
    raise_maxima(h, head_smaller(HEAD_BLOCK, h->n_k), h->k, p->shifts);
    R(head_share)(h, h->n_k, SUM_GROUP, &to, sum_state, add_state);
    return !refused && R(all_finite)(h->d, h->dv, p->state, h->dv);
}

/* S, shifts and sums. S is divided by the sums at the end; only if rho_k itself is rounded to a
 * narrow type the sums must be known before. */
static void before(const head *h)
{
    pieces p = split(h);
    key_sums to = {p.state, NULL};
    clear_state(h, &p);
    if (is_narrow(h) || !sum_at_once(h, &p)) {
        clear_state(h, &p);
        R(head_share)(h, h->n_k, SUM_GROUP, NULL, find_maxima, add_maxima);
        if (is_narrow(h))
            R(head_share)(h, h->n_k, SUM_GROUP, &to, sum_exps, add_exps);
        R(head_share)(h, h->n_k, SUM_GROUP, &to, sum_state, add_state);
    }
    /* no keys: S is an empty sum */
    for (int64_t c = 0; !is_narrow(h) && h->n_k > 0 && c < h->d; c++)
        for (int64_t e = 0; e < h->dv; e++)
            p.state[c * h->dv + e] = (real)((double)p.state[c * h->dv + e] / p.sums[c]);
    R(store)(h->desc->storage, h->d, h->dv, p.state, h->dv);
}

static void forward_part(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own;
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i);
        real *to = h->out + i * h->out_stride;
        load_queries(h, &p, i, rows);
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->dv, h->d, p.rho, h->d,
                                   p.state, h->dv, 0, to, h->out_stride),
                        real_next(h->q + i * h->q_stride, rows, h->d, h->q_stride),
                        real_next(to, rows, h->dv, h->out_stride));
        head_finish_rows(h, i, rows);
    }
}

static void forward(const head *h)
{
    R(head_share_tokens)(h, h->n, NULL, forward_part);
}

/* dS of some queries, and the gradient by them. */
static void backward_queries(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces parts = split(h), *p = &parts;
    (void)own;
    R(simd).transpose(h->d, h->dv, p->state, h->dv, p->transposed, h->d);
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i);
        const real *dy = h->grad_out + i * h->grad_out_stride;
        real *to = h->grad_q + i * h->grad_q_stride;
        head_search_grad_out(h, rows, dy);
        load_queries(h, p, i, rows);
        real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, h->d, h->dv, rows, p->rho, h->d, dy,
                                   h->grad_out_stride, i > first, p->part_state, h->dv),
                        real_next(h->q + i * h->q_stride, rows, h->d, h->q_stride),
                        real_next(dy, rows, h->dv, h->grad_out_stride));
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->d, h->dv, dy,
                                   h->grad_out_stride, p->transposed, h->d, 0, to,
                                   h->grad_q_stride),
                        real_next(to, rows, h->d, h->grad_q_stride), NULL);
        R(softmax_rows_backward)(rows, h->d, 1, p->rho, h->d, to, h->grad_q_stride);
        head_search_rows(h, rows, h->d, to, h->grad_q_stride);
    }
}

/* t and dS, divided by the sums because load_exps does not divide. */
static void finish_grad_state(const head *h, const pieces *p)
{
    for (int64_t c = 0; c < h->d; c++) {
        real *row = p->grad_state + c * h->dv;
        p->along[c] = R(dot)(h->dv, p->state + c * h->dv, row) / p->sums[c];
        for (int64_t e = 0; e < h->dv; e++)
            row[e] = (real)((double)row[e] / p->sums[c]);
    }
}

/* Overwrites dK, unless it is dQ's memory: then it adds. */
static void backward_keys(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces parts = split(h), *p = &parts;
    bool add = h->grad_k == h->grad_q;
    (void)own;
    R(simd).transpose(h->d, h->dv, p->grad_state, h->dv, p->transposed, h->d);
    for (int64_t j = first; j < first + count; j += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - j);
        const real *exps = load_exps(h, p, j, rows, NULL), *v = h->v + j * h->v_stride;
        real *grad_v = h->grad_v + j * h->grad_v_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->dv, h->d, exps, h->d,
                                   p->grad_state, h->dv, 0, grad_v, h->grad_v_stride),
                        real_next(grad_v, rows, h->dv, h->grad_v_stride),
                        real_next(h->k + j * h->k_stride, rows, h->d, h->k_stride));
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->d, h->dv, v, h->v_stride,
                                   p->transposed, h->d, 0, p->grad, h->d),
                        real_next(v, rows, h->dv, h->v_stride),
                        real_next(h->grad_k + j * h->grad_k_stride, rows, h->d, h->grad_k_stride));
        for (int64_t r = 0; r < rows; r++) {
            const real *rho = exps + r * h->d, *grad = p->grad + r * h->d;
            real *to = h->grad_k + (j + r) * h->grad_k_stride;
            for (int64_t c = 0; c < h->d; c++)
                to[c] =
                    (add ? to[c] : 0) + (real)((double)rho[c] * ((double)grad[c] - p->along[c]));
        }
        head_search_rows(h, rows, h->d, h->grad_k + j * h->grad_k_stride, h->grad_k_stride);
        head_search_rows(h, rows, h->dv, grad_v, h->grad_v_stride);
    }
}

static void backward(const head *h)
{
    pieces p = split(h);
    memset(p.grad_state, 0, (size_t)(h->d * h->dv) * sizeof(real));
    key_sums to = {p.grad_state, NULL};
    R(head_share)(h, h->n, SUM_GROUP, &to, backward_queries, add_state);
    finish_grad_state(h, &p);
    R(head_share_tokens)(h, h->n_k, NULL, backward_keys);
}

const head_operator R(cpu_operator_efficient) = {
    .sizes = sizes,
    .before = before,
    .forward = forward,
    .backward = backward,
    .shares = HEAD_SHARED,
    .overwrites = true,
    .searches = true,
    .searches_gradients = true,
};
