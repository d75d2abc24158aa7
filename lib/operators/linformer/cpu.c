/* SPDX-License-Identifier: BSD-3-Clause */
/* Linformer (Wang et al. 2020): Y = softmax(c Q K'^T) V' with K' = E^T K and V' = F^T V,
 * both summed over blocks of tokens. */
#include <string.h>

#include "operators/checks.h"
#include "operators/softmax/cpu.h"

/* One of the two sums over tokens, X' = M^T X: E with K or F with V. */
typedef struct {
    const real *matrix, *tokens;
    int64_t width, stride;
    real *sums, *grad_sums; /* r x width */
    real *grad_tokens;
    int64_t grad_stride;
    bool add;          /* to grad_tokens, which hold dQ already */
    real *grad_matrix; /* null: not wanted */
} projection;

/* state: K', V' and their gradients. work: two blocks of tokens by r; for a part of the tokens K'^T
 * and V'^T, and sums over them, for K' and V' or for their gradients. Weights, their slopes, K'^T
 * and V'^T have rows of `padded` numbers; rows of E and F, and gradients of such rows, have r. */
typedef struct {
    int64_t r, padded; /* padded: r rounded up to a multiple of SIMD_COLUMNS */
    double c;
    projection keys, values;
    real *weights, *slopes;
    real *transposed_keys, *transposed_values;
    real *part_keys, *part_values;
} pieces;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t r = desc->linformer.e.cols;
    *thread_reals = 2 * HEAD_BLOCK * whole_vectors(r) +
                    (whole_vectors(r) + r) * (shape->dim + shape->value_dim);
    *head_reals = 2 * r * (shape->dim + shape->value_dim);
}

static pieces split(const head *h)
{
    const atn_linformer_options *options = &h->desc->linformer;
    real *state = h->state, *work = h->work;
    bool shared = !options->f.data;
    pieces p = {.r = options->e.cols,
                .padded = whole_vectors(options->e.cols),
                .c = core_logit_scale(h->desc, h->d)};
    p.keys = (projection){.matrix = head_matrix(&options->e, h->index),
                          .tokens = h->k,
                          .width = h->d,
                          .stride = h->k_stride,
                          .grad_tokens = h->grad_k,
                          .grad_stride = h->grad_k_stride,
                          .add = h->grad_k == h->grad_q,
                          .grad_matrix = h->grad_parameters[ATN_PARAMETER_E]};
    p.values =
        (projection){.matrix = head_matrix(shared ? &options->e : &options->f, h->index),
                     .tokens = h->v,
                     .width = h->dv,
                     .stride = h->v_stride,
                     .grad_tokens = h->grad_v,
                     .grad_stride = h->grad_v_stride,
                     .grad_matrix = h->grad_parameters[shared ? ATN_PARAMETER_E : ATN_PARAMETER_F]};
    p.keys.sums = head_take(&state, p.r * h->d);
    p.values.sums = head_take(&state, p.r * h->dv);
    p.keys.grad_sums = head_take(&state, p.r * h->d);
    p.values.grad_sums = head_take(&state, p.r * h->dv);
    p.weights = head_take(&work, HEAD_BLOCK * p.padded);
    p.slopes = head_take(&work, HEAD_BLOCK * p.padded);
    p.transposed_keys = head_take(&work, p.padded * h->d);
    p.transposed_values = head_take(&work, p.padded * h->dv);
    p.part_keys = head_take(&work, p.r * h->d);
    p.part_values = head_take(&work, p.r * h->dv);
    return p;
}

/* The rows of E or F of keys first .. first + count - 1; with padding gathered in p->weights. */
static const real *rows_of(const head *h, const pieces *p, const real *matrix, int64_t first,
                           int64_t count)
{
    if (!h->key_positions)
        return matrix + first * p->r;
    R(gather_rows)(count, h->key_positions + first, p->r, matrix, p->r, p->weights);
    return p->weights;
}

/* sums = M^T X over some tokens. */
static void project(const head *h, const pieces *p, const projection *x, int64_t first,
                    int64_t count, real *sums)
{
    for (int64_t j = first; j < first + count; j += HEAD_BLOCK) {
        int64_t block = head_smaller(HEAD_BLOCK, first + count - j);
        const real *rows = rows_of(h, p, x->matrix, j, block), *tokens = x->tokens + j * x->stride;
        head_search(h, block, x->width, tokens, x->stride);
        real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, p->r, x->width, block, rows, p->r,
                                   tokens, x->stride, j > first, sums, x->width),
                        real_next(tokens, block, x->width, x->stride),
                        real_next(rows, block, p->r, p->r));
    }
}

static void project_part(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own;
    project(h, &p, &p.keys, first, count, p.part_keys);
    project(h, &p, &p.values, first, count, p.part_values);
}

/* Adds to K' and V', or to their gradients. */
static void add_part(const pieces *p, const head *h, real *keys, real *values)
{
    head_add(p->r * h->d, p->part_keys, keys);
    head_add(p->r * h->dv, p->part_values, values);
}

static void add_projected(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own, (void)first, (void)count;
    add_part(&p, h, p.keys.sums, p.values.sums);
}

static void before(const head *h)
{
    pieces p = split(h);
    memset(p.keys.sums, 0, (size_t)(p.r * (h->d + h->dv)) * sizeof(real));
    R(head_share)(h, h->n_k, SUM_GROUP, NULL, project_part, add_projected);
    R(store)(h->desc->storage, p.r, h->d, p.keys.sums, h->d);
    R(store)(h->desc->storage, p.r, h->dv, p.values.sums, h->dv);
}

/* Once for a part of the tokens, instead of in each product of a block. */
static void transpose(const pieces *p, const projection *x, real *to)
{
    R(simd).transpose(p->r, x->width, x->sums, x->width, to, p->padded);
}

/* Rows first .. first + count - 1 of softmax(c Q K'^T), in p->weights. */
static void load_weights(const head *h, const pieces *p, int64_t first, int64_t count)
{
    const real *q = h->q + first * h->q_stride;
    head_search(h, count, h->d, q, h->q_stride);
    real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, count, p->padded, h->d, q, h->q_stride,
                               p->transposed_keys, p->padded, 0, p->weights, p->padded),
                    real_next(q, count, h->d, h->q_stride), NULL);
    R(softmax_rows)(count, p->r, p->c, p->weights, p->padded, p->weights, p->padded);
    R(store)(h->desc->storage, count, p->r, p->weights, p->padded);
}

static void forward_part(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own;
    transpose(&p, &p.keys, p.transposed_keys);
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i);
        load_weights(h, &p, i, rows);
        real *to = h->out + i * h->out_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->dv, p.r, p.weights,
                                   p.padded, p.values.sums, h->dv, 0, to, h->out_stride),
                        real_next(to, rows, h->dv, h->out_stride), NULL);
        head_finish_rows(h, i, rows);
    }
}

static void forward(const head *h)
{
    R(head_share_tokens)(h, h->n, NULL, forward_part);
}

/* Backward through a block of queries: dQ, and what it adds to dK' and dV'. */
static void backward_queries(const head *h, const pieces *p, int64_t first, int64_t count)
{
    const real *q = h->q + first * h->q_stride;
    const real *dy = h->grad_out + first * h->grad_out_stride;
    real *grad_q = h->grad_q + first * h->grad_q_stride;
    head_search_grad_out(h, count, dy);
    load_weights(h, p, first, count);
    real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, p->r, h->dv, count, p->weights, p->padded,
                               dy, h->grad_out_stride, 1, p->part_values, h->dv),
                    real_next(dy, count, h->dv, h->grad_out_stride), NULL);
    real_gemm(CblasNoTrans, CblasNoTrans, count, p->padded, h->dv, dy, h->grad_out_stride,
              p->transposed_values, p->padded, 0, p->slopes, p->padded);
    R(softmax_rows_backward)(count, p->r, p->c, p->weights, p->padded, p->slopes, p->padded);
    real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, count, h->d, p->r, p->slopes, p->padded,
                               p->keys.sums, h->d, 0, grad_q, h->grad_q_stride),
                    real_next(grad_q, count, h->d, h->grad_q_stride), NULL);
    head_search_rows(h, count, h->d, grad_q, h->grad_q_stride);
    real_gemm(CblasTrans, CblasNoTrans, p->r, h->d, count, p->slopes, p->padded, q, h->q_stride, 1,
              p->part_keys, h->d);
}

static void backward_part(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own;
    memset(p.part_keys, 0, (size_t)(p.r * (h->d + h->dv)) * sizeof(real));
    transpose(&p, &p.keys, p.transposed_keys);
    transpose(&p, &p.values, p.transposed_values);
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK)
        backward_queries(h, &p, i, head_smaller(HEAD_BLOCK, first + count - i));
}

static void add_gradients(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own, (void)first, (void)count;
    add_part(&p, h, p.keys.grad_sums, p.values.grad_sums);
}

/* Backward through the sums over tokens: dX = M dX', dM += X dX'^T. */
static void backward_tokens(const head *h, const pieces *p, const projection *x, int64_t first,
                            int64_t count)
{
    for (int64_t j = first; j < first + count; j += HEAD_BLOCK) {
        int64_t block = head_smaller(HEAD_BLOCK, first + count - j);
        const real *rows = rows_of(h, p, x->matrix, j, block);
        real *grad = x->grad_tokens + j * x->grad_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, block, x->width, p->r, rows, p->r,
                                   x->grad_sums, x->width, x->add, grad, x->grad_stride),
                        real_next(grad, block, x->width, x->grad_stride),
                        real_next(rows, block, p->r, p->r));
        head_search_rows(h, block, x->width, grad, x->grad_stride);
        if (!x->grad_matrix)
            continue;
        real_gemm(CblasNoTrans, CblasTrans, block, p->r, x->width, x->tokens + j * x->stride,
                  x->stride, x->grad_sums, x->width, 0, p->slopes, p->r);
        for (int64_t i = 0; i < block; i++) {
            real *to = x->grad_matrix + core_position(h->key_positions, j + i) * p->r;
            for (int64_t c = 0; c < p->r; c++)
                to[c] += p->slopes[i * p->r + c];
        }
    }
}

static void backward_keys(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own;
    backward_tokens(h, &p, &p.keys, first, count);
    backward_tokens(h, &p, &p.values, first, count);
}

static void backward(const head *h)
{
    pieces p = split(h);
    memset(p.keys.grad_sums, 0, (size_t)(p.r * (h->d + h->dv)) * sizeof(real));
    R(head_share)(h, h->n, SUM_GROUP, NULL, backward_part, add_gradients);
    R(head_share_tokens)(h, h->n_k, NULL, backward_keys);
}

const head_operator R(cpu_operator_linformer) = {
    .sizes = sizes,
    .before = before,
    .forward = forward,
    .backward = backward,
    .shares = HEAD_SHARED,
    .overwrites = true,
    .searches = true,
    .searches_gradients = true,
};
