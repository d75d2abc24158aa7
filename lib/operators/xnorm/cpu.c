/* SPDX-License-Identifier: BSD-3-Clause */
/* UFO-ViT's cross-normalisation (Eq. 4-8): T = K^T V summed over blocks of keys, then Y = q^ T^ a
 * block of queries at a time.
 *
 * Backward, with q_ and T_ normalised without gamma, Y = gamma^2 q_ T_, and D = q_^T dY:
 *   dgamma = 2 gamma D.T_,   dT_ = gamma^2 D,   dq_ = gamma^2 dY T_^T,   dK = V dT^T,   dV = K dT,
 * and through a norm, x_ = x / max(|x|, e):   dx = (dx_ - (dx_.x_) x_) / |x|, or dx_ / e. */
#include <string.h>

#include "operators/norms/cpu.h"

/* state: divisors of T's lines, T; T normalised, D or dT, and a transpose. work: a block of q^;
 * sums over a part of the tokens. */
typedef struct {
    double *divisors, *varies, gamma;
    real *state;
    real *normalised, *grad_state, *transposed;
    real *q, *part;
} pieces;

/* The lines of T that are normalised: columns over d, or rows over d_v. */
typedef struct {
    int64_t lines, start, count, step; /* line l: count elements, `step` apart, from l start on */
} line_layout;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc;
    int64_t d = shape->dim, dv = shape->value_dim;
    *thread_reals = HEAD_BLOCK * d + d * dv;
    *head_reals = R(norm_doubles)(2 * (d + dv)) + 4 * d * dv;
}

static double gamma_of(const head *h)
{
    const atn_tensor *gamma = &h->desc->xnorm.gamma;
    return gamma->data ? (double)*head_matrix(gamma, h->index) : 1;
}

static pieces split(const head *h)
{
    real *kept = h->state, *free = h->work;
    pieces p = {.divisors = R(norm_take)(&kept, 2 * (h->d + h->dv)), .gamma = gamma_of(h)};
    p.varies = p.divisors + h->d + h->dv;
    p.state = head_take(&kept, h->d * h->dv);
    p.normalised = head_take(&kept, h->d * h->dv);
    p.grad_state = head_take(&kept, h->d * h->dv);
    p.transposed = kept;
    p.q = head_take(&free, HEAD_BLOCK * h->d);
    p.part = free;
    return p;
}

static line_layout lines_of(const head *h)
{
    return h->desc->xnorm.axis == ATN_XNORM_COLUMNS ? (line_layout){h->dv, 1, h->d, h->dv}
                                                    : (line_layout){h->d, h->dv, h->dv, 1};
}

/* The divisor of a line. */
static double divisor_of(const head *h, int64_t count, int64_t step, const real *x, double *varies)
{
    return core_norm_divisor(R(line_norm)(count, step, x), h->desc->xnorm.epsilon, varies);
}

/* grad = factor (grad - part x_), of elements `step` apart. */
static inline void subtract_part(double factor, double part, int64_t count, int64_t step,
                                 const real *x_, real *grad)
{
    for (int64_t i = 0; i < count * step; i += step)
        grad[i] = (real)(factor * ((double)grad[i] - part * (double)x_[i]));
}

/* The gradient by the rows of x from `scale` times that by x_, dense, in place. */
static void finish_rows(double scale, const double *divisors, const double *varies, int64_t rows,
                        int64_t count, const real *x_, real *grad, int64_t stride)
{
    double along[HEAD_BLOCK];
    R(row_dots)(rows, count, grad, stride, x_, count, along);
    for (int64_t i = 0; i < rows; i++, x_ += count, grad += stride) {
        double factor = scale / divisors[i], part = along[i] * varies[i];
        subtract_part(factor, part, count, 1, x_, grad);
    }
}

/* The same for one line of T. */
static void finish_line(double scale, double divisor, double varies, int64_t count, int64_t step,
                        const real *x_, real *grad)
{
    enum { LANES = 8 }; /* partial sums, as in R(dot) */
    double lanes[LANES] = {0}, along = 0, factor = scale / divisor;
    for (int64_t i = 0; i < count; i++)
        lanes[i % LANES] += (double)grad[i * step] * (double)x_[i * step];
    for (int lane = 0; lane < LANES; lane++)
        along += lanes[lane];
    subtract_part(factor, along * varies, count, step, x_, grad);
}

/* K^T V of some keys. Parts are added up because one long sum would have larger rounding errors. */
static void sum_keys(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own;
    for (int64_t j = first; j < first + count; j += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - j);
        const real *k = h->k + j * h->k_stride, *v = h->v + j * h->v_stride;
        real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, h->d, h->dv, rows, k, h->k_stride, v,
                                   h->v_stride, j > first, p.part, h->dv),
                        real_next(k, rows, h->d, h->k_stride),
                        real_next(v, rows, h->dv, h->v_stride));
    }
}

/* Adds a part's sum to `to`, T or D. */
static void add_sum(const void *to, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)first, (void)count;
    head_add(h->d * h->dv, p.part, *(real *const *)to);
}

/* T and the divisors of its lines. */
static void before(const head *h)
{
    pieces p = split(h);
    line_layout l = lines_of(h);
    memset(p.state, 0, (size_t)(h->d * h->dv) * sizeof(real));
    R(head_share)(h, h->n_k, SUM_GROUP, &p.state, sum_keys, add_sum);
    R(store)(h->desc->storage, h->d, h->dv, p.state, h->dv);
    for (int64_t i = 0; i < l.lines; i++)
        p.divisors[i] = divisor_of(h, l.count, l.step, p.state + i * l.start, &p.varies[i]);
}

/* gamma T, normalised. */
static void normalise_state(const head *h, const pieces *p, double gamma)
{
    line_layout l = lines_of(h);
    for (int64_t i = 0; i < l.lines; i++)
        R(norm_scale)
    (gamma, p->divisors[i], l.count, p->state + i * l.start, l.step, p->normalised + i * l.start,
     l.step);
    R(store)(h->desc->storage, h->d, h->dv, p->normalised, h->dv);
}

/* A block of queries normalised, and their divisors. */
static void load_queries(const head *h, const pieces *p, double gamma, int64_t first, int64_t rows,
                         double *divisors, double *varies)
{
    const real *q = h->q + first * h->q_stride;
    R(row_norms)(rows, h->d, q, h->q_stride, divisors);
    for (int64_t i = 0; i < rows; i++)
        divisors[i] = core_norm_divisor(divisors[i], h->desc->xnorm.epsilon, &varies[i]);
    for (int64_t i = 0; i < rows; i++)
        R(norm_scale)(gamma, divisors[i], h->d, q + i * h->q_stride, 1, p->q + i * h->d, 1);
    R(store)(h->desc->storage, rows, h->d, p->q, h->d);
}

static void forward_part(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    double divisors[HEAD_BLOCK], varies[HEAD_BLOCK];
    (void)own;
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i);
        load_queries(h, &p, p.gamma, i, rows, divisors, varies);
        real *to = h->out + i * h->out_stride;
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->dv, h->d, p.q, h->d,
                                   p.normalised, h->dv, 0, to, h->out_stride),
                        real_next(h->q + i * h->q_stride, rows, h->d, h->q_stride),
                        real_next(to, rows, h->dv, h->out_stride));
        head_finish_rows(h, i, rows);
    }
}

static void forward(const head *h)
{
    pieces p = split(h);
    normalise_state(h, &p, p.gamma);
    R(head_share_tokens)(h, h->n, NULL, forward_part);
}

/* D of some queries, and the gradient by them. */
static void backward_queries(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces parts = split(h), *p = &parts;
    double divisors[HEAD_BLOCK], varies[HEAD_BLOCK];
    (void)own;
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - i);
        const real *dy = h->grad_out + i * h->grad_out_stride;
        real *to = h->grad_q + i * h->grad_q_stride;
        load_queries(h, p, 1, i, rows, divisors, varies);
        real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, h->d, h->dv, rows, p->q, h->d, dy,
                                   h->grad_out_stride, i > first, p->part, h->dv),
                        real_next(h->q + i * h->q_stride, rows, h->d, h->q_stride),
                        real_next(dy, rows, h->dv, h->grad_out_stride));
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->d, h->dv, dy,
                                   h->grad_out_stride, p->transposed, h->d, 0, to,
                                   h->grad_q_stride),
                        real_next(to, rows, h->d, h->grad_q_stride), NULL);
        finish_rows(p->gamma * p->gamma, divisors, varies, rows, h->d, p->q, to, h->grad_q_stride);
        head_search_rows(h, rows, h->d, to, h->grad_q_stride);
    }
}

/* The gradient by gamma from D, and dT in place of D. */
static void backward_state(const head *h, const pieces *p)
{
    line_layout l = lines_of(h);
    real *grad_gamma = h->grad_parameters[ATN_PARAMETER_GAMMA];
    double sum = 0;
    for (int64_t i = 0; grad_gamma && i < h->d * h->dv; i++)
        sum += (double)p->grad_state[i] * (double)p->normalised[i];
    if (grad_gamma)
        *grad_gamma += (real)(2 * p->gamma * sum);
    for (int64_t i = 0; i < l.lines; i++)
        finish_line(p->gamma * p->gamma, p->divisors[i], p->varies[i], l.count, l.step,
                    p->normalised + i * l.start, p->grad_state + i * l.start);
}

/* Overwrites dK, unless it is dQ's memory: then it adds. */
static void backward_keys(const void *own, const head *h, int64_t first, int64_t count)
{
    pieces p = split(h);
    (void)own;
    for (int64_t j = first; j < first + count; j += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - j);
        real *grad_k = h->grad_k + j * h->grad_k_stride, *grad_v = h->grad_v + j * h->grad_v_stride;
        R(multiply_tokens)
        (rows, h->d, h->dv, h->v + j * h->v_stride, h->v_stride, p.transposed,
         h->grad_k == h->grad_q, grad_k, h->grad_k_stride);
        head_search_rows(h, rows, h->d, grad_k, h->grad_k_stride);
        R(multiply_tokens)
        (rows, h->dv, h->d, h->k + j * h->k_stride, h->k_stride, p.grad_state, false, grad_v,
         h->grad_v_stride);
        head_search_rows(h, rows, h->dv, grad_v, h->grad_v_stride);
    }
}

static void backward(const head *h)
{
    pieces p = split(h);
    memset(p.grad_state, 0, (size_t)(h->d * h->dv) * sizeof(real));
    if (h->n > 0) { /* otherwise there is no output, whatever the norms of T are */
        normalise_state(h, &p, 1);
        R(simd).transpose(h->d, h->dv, p.normalised, h->dv, p.transposed, h->d);
        R(head_share)(h, h->n, SUM_GROUP, &p.grad_state, backward_queries, add_sum);
        backward_state(h, &p);
    }
    R(simd).transpose(h->d, h->dv, p.grad_state, h->dv, p.transposed, h->d);
    R(head_share_tokens)(h, h->n_k, NULL, backward_keys);
}

const head_operator R(cpu_operator_xnorm) = {.sizes = sizes,
                                             .before = before,
                                             .forward = forward,
                                             .backward = backward,
                                             .shares = HEAD_SHARED,
                                             .propagates = true,
                                             .overwrites = true,
                                             .searches_gradients = true};
