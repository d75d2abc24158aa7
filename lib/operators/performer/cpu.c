/* SPDX-License-Identifier: BSD-3-Clause */
/* Performer's random features (Choromanski et al. 2021), for features/cpu.c. With u_r = w_r.x,
 *
 *   phi_r = (exp(sqrt(c) (u_r - offset)) + feature_epsilon) / sqrt(M),
 *   offset = sqrt(c) |x|^2 / 2 + t,
 *
 * or max(sqrt(c) u_r, 0) + feature_epsilon; this t is that of attnum/operators.h over sqrt(c). Rows
 * of features are padded with zeros to whole vectors, so that z_0 does not matter there. */
#include <string.h>

#include "operators/checks.h"
#include "operators/features/cpu.h"
#include "operators/norms/cpu.h"

#include "cpu/simd.h"

/* Without epsilons a common factor of phi(q), or of all phi(k), cancels in the formula. It is then
 * chosen so that the largest feature is 1, and nothing overflows or vanishes, whatever t. Not for
 * causal keys: with a factor from all keys the rounding of early queries would depend on later
 * keys. */
typedef struct {
    const head *h;
    const real *w;         /* m x d */
    real *transposed;      /* d x padded, in the head's state, by `before` */
    int64_t m, padded;     /* M; the same rounded up to a multiple of SIMD_COLUMNS */
    double root_c, factor; /* factor: 1 / sqrt(M) */
    bool exponential, stabilise;
    bool free_queries, free_keys, shifted; /* shifted: the keys' t has a derivative */
    double *top;                           /* in the head's state, by `prepared` */
    double grad_shift;                     /* dL/dt of keys */
} performer;

/* Of keys: t is top[SHIFT]; where w.x is largest (key -1: there is none). */
enum { SHIFT, KEY, FEATURE, TOPS };
_Static_assert((int)TOPS <= (int)LINEAR_FOUND, "a part of the keys leaves its own");

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t padded = whole_vectors(desc->performer.projection.rows);
    *thread_reals = R(linear_reals)(padded, padded, desc, shape);
    *head_reals =
        R(linear_state)(padded, desc, shape) + R(norm_doubles)(TOPS) + padded * shape->dim;
}

/* u of `rows` tokens, 0 in the padding. */
static void project(const performer *p, int64_t rows, const real *x, int64_t stride, real *u)
{
    real_gemm(CblasNoTrans, CblasNoTrans, rows, p->padded, p->h->d, x, stride, p->transposed,
              p->padded, 0, u, p->padded);
}

/* The largest u of each row of a block; `most` has HEAD_BLOCK numbers. */
static void find_largest(const performer *p, int64_t rows, const real *u, real *most)
{
    int64_t counts[HEAD_BLOCK];
    for (int64_t i = 0; i < HEAD_BLOCK; i++) {
        counts[i] = p->m;
        most[i] = -(real)INFINITY;
    }
    R(simd).largest_of_rows(rows, counts, u, p->padded, most);
}

/* sqrt(c) |x|^2 / 2 of each row of a block. */
static void find_half_squares(const performer *p, int64_t rows, const real *x, int64_t stride,
                              double *halves)
{
    R(row_dots)(rows, p->h->d, x, stride, x, stride, halves);
    for (int64_t i = 0; i < rows; i++)
        halves[i] *= p->root_c / 2;
}

static void start_top(double *top)
{
    top[SHIFT] = 0;
    top[KEY] = -1;
    top[FEATURE] = 0;
}

static bool raises(const double *top, double value)
{
    return top[KEY] < 0 || value > top[SHIFT];
}

static void prepare(const void *own, int64_t first, int64_t count, real *work, double *found)
{
    const performer *p = own;
    const head *h = p->h;
    start_top(found);
    for (int64_t j0 = first; j0 < first + count; j0 += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, first + count - j0);
        const real *k = h->k + j0 * h->k_stride;
        real most[HEAD_BLOCK];
        double halves[HEAD_BLOCK] = {0};
        project(p, rows, k, h->k_stride, work);
        find_largest(p, rows, work, most);
        if (p->free_keys)
            find_half_squares(p, rows, k, h->k_stride, halves);
        for (int64_t j = 0; j < rows; j++) {
            double value = (double)most[j] - halves[j];
            if (raises(found, value)) {
                found[SHIFT] = value;
                found[KEY] = (double)(j0 + j);
                found[FEATURE] = (double)R(find)(p->m, work + j * p->padded, most[j]);
            }
        }
    }
}

static void prepared(void *own, const double *found)
{
    performer *p = own;
    if (raises(p->top, found[SHIFT]))
        memcpy(p->top, found, TOPS * sizeof *found);
}

/* What is subtracted from u of each row of a block, rounded like u. */
static void find_offsets(const performer *p, const token_block *b, real *offsets)
{
    bool free = !b->keys && p->free_queries, looks = !b->keys && (free || p->stabilise);
    real most[HEAD_BLOCK];
    double halves[HEAD_BLOCK] = {0};
    if (looks)
        find_largest(p, b->rows, b->kept, most);
    if (!free)
        find_half_squares(p, b->rows, b->x, b->stride, halves);
    for (int64_t i = 0; i < b->rows; i++)
        offsets[i] = (real)(halves[i] + (b->keys ? p->top[SHIFT] : looks ? (double)most[i] : 0));
}

/* exp(sqrt(c) (u - offset)) of a block, 0 in the padding; to may be kept. */
static void load_exponentials(const performer *p, const token_block *b, real *to)
{
    int64_t counts[HEAD_BLOCK];
    real offsets[HEAD_BLOCK];
    double sums[HEAD_BLOCK];
    find_offsets(p, b, offsets);
    for (int64_t i = 0; i < b->rows; i++)
        counts[i] = p->padded;
    R(simd).exponential_rows(b->rows, counts, p->root_c, offsets, b->kept, p->padded, to, p->padded,
                             sums);
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t r = p->m; r < p->padded; r++)
            to[i * p->padded + r] = 0;
}

static void map(const void *own, const token_block *b)
{
    const performer *p = own;
    real epsilon = (real)p->h->desc->performer.feature_epsilon;
    real factor = (real)p->factor, root_c = (real)p->root_c;
    project(p, b->rows, b->x, b->stride, b->kept);
    if (p->exponential)
        load_exponentials(p, b, b->phi);
    for (int64_t i = 0; i < b->rows; i++) {
        const real *restrict u = b->kept + i * p->padded;
        real *restrict phi = b->phi + i * p->padded;
        if (p->exponential)
            for (int64_t r = 0; r < p->padded; r++)
                phi[r] = (phi[r] + epsilon) * factor;
        else
            for (int64_t r = 0; r < p->padded; r++)
                phi[r] = (u[r] > 0 ? root_c * u[r] : 0) + epsilon;
        for (int64_t r = p->m; r < p->padded; r++)
            phi[r] = 0;
    }
}

/* Turns slopes into dL/du of a block, sqrt(c / M) slopes_r exp(sqrt(c) (u_r - offset)), less their
 * sum where a stabilised query's u is largest; and writes the part through |x|^2, multiples of x,
 * to grad, or adds it. A factor that cancels has no derivative. */
static void exponentials_backward(const performer *p, const token_block *b, real *slopes, bool add,
                                  real *grad, int64_t grad_stride)
{
    static const real zeros[HEAD_BLOCK];
    int64_t counts[HEAD_BLOCK], top[HEAD_BLOCK] = {0};
    bool free = !b->keys && p->free_queries, stabilised = !b->keys && p->stabilise && !free;
    real most[HEAD_BLOCK], factor = (real)(p->root_c * p->factor), *ones = b->kept;
    double totals[HEAD_BLOCK] = {0};
    if (stabilised)
        find_largest(p, b->rows, b->kept, most);
    for (int64_t i = 0; stabilised && i < b->rows; i++)
        top[i] = R(find)(p->m, b->kept + i * p->padded, most[i]);
    load_exponentials(p, b, b->kept);
    for (int64_t e = 0; e < b->rows * p->padded; e++)
        slopes[e] *= b->kept[e] * factor;
    for (int64_t r = 0; r < p->padded; r++) /* the exponentials are no longer needed */
        ones[r] = 1;
    for (int64_t i = 0; i < b->rows; i++)
        counts[i] = p->padded;
    if (!free) /* sums of rows */
        R(simd).weighted_rows(b->rows, counts, slopes, p->padded, ones, 0, zeros, totals);
    for (int64_t i = 0; i < b->rows; i++) {
        const real *x = b->x + i * b->stride;
        real *restrict to = grad + i * grad_stride;
        double along = -p->root_c * totals[i];
        if (b->keys && p->shifted)
            b->found[SHIFT] -= totals[i];
        if (stabilised)
            slopes[i * p->padded + top[i]] -= (real)totals[i];
        for (int64_t c = 0; c < p->h->d; c++)
            to[c] = (add ? to[c] : 0) + (real)(along * (double)x[c]);
    }
}

static void map_backward(const void *own, const token_block *b, real *slopes, bool add, real *grad,
                         int64_t grad_stride)
{
    const performer *p = own;
    int64_t d = p->h->d, count = b->rows * p->padded;
    real root_c = (real)p->root_c;
    if (p->exponential)
        exponentials_backward(p, b, slopes, add, grad, grad_stride);
    else
        for (int64_t e = 0; e < count; e++)
            slopes[e] = b->kept[e] > 0 ? root_c * slopes[e] : 0;
    real_gemm(CblasNoTrans, CblasNoTrans, b->rows, d, p->m, slopes, p->padded, p->w, d,
              add || p->exponential, grad, grad_stride);
}

static void add_shift(void *own, const double *found)
{
    ((performer *)own)->grad_shift += found[SHIFT];
}

/* The stabiliser of the keys is the u of one key and feature, which receives its derivative. */
static void finish(void *own)
{
    performer *p = own;
    if (p->top[KEY] < 0)
        return;
    const real *w = p->w + (int64_t)p->top[FEATURE] * p->h->d;
    real *grad = p->h->grad_k + (int64_t)p->top[KEY] * p->h->grad_k_stride;
    for (int64_t c = 0; c < p->h->d; c++)
        grad[c] += (real)(p->grad_shift * (double)w[c]);
    head_search_rows(p->h, 1, p->h->d, grad, p->h->d);
}

static performer open_performer(const head *h)
{
    const atn_performer_options *o = &h->desc->performer;
    bool exponential = o->features == ATN_FEATURES_EXP;
    bool free_queries = exponential && o->feature_epsilon == 0;
    bool free_keys = free_queries && o->denominator_epsilon == 0 && !h->desc->causal;
    atn_attention_shape shape = {.tokens = h->length, .value_dim = h->dv};
    int64_t padded = whole_vectors(o->projection.rows);
    real *own = h->state + R(linear_state)(padded, h->desc, &shape);
    performer p = {
        .h = h,
        .w = head_matrix(&o->projection, h->index),
        .m = o->projection.rows,
        .padded = padded,
        .root_c = sqrt(core_logit_scale(h->desc, h->d)),
        .factor = 1 / sqrt((double)o->projection.rows),
        .top = R(norm_take)(&own, TOPS),
        .exponential = exponential,
        .stabilise = o->stabilise,
        .free_queries = free_queries,
        .free_keys = free_keys,
        .shifted = exponential && o->stabilise && !free_keys,
    };
    p.transposed = head_take(&own, padded * h->d);
    return p;
}

static feature_map map_of(performer *p)
{
    bool looks = p->exponential && (p->stabilise || p->free_keys);
    return (feature_map){.features = p->padded,
                         .kept = p->padded,
                         .denominator = LINEAR_ADDED,
                         .start = p->h->desc->performer.denominator_epsilon,
                         .own = p,
                         .prepare = looks ? prepare : NULL,
                         .prepared = prepared,
                         .map = map,
                         .map_backward = map_backward,
                         .add = p->shifted ? add_shift : NULL,
                         .finish = p->shifted ? finish : NULL};
}

static void run(const head *h, void (*pass)(const head *, const feature_map *))
{
    performer p = open_performer(h);
    feature_map features = map_of(&p);
    pass(h, &features);
}

static void before(const head *h)
{
    performer p = open_performer(h);
    start_top(p.top);
    R(simd).transpose(p.m, h->d, p.w, h->d, p.transposed, p.padded);
    run(h, R(linear_before));
}

static void forward(const head *h)
{
    run(h, R(linear_forward));
}

static void backward(const head *h)
{
    run(h, R(linear_backward));
}

const head_operator R(cpu_operator_performer) = {
    .sizes = sizes,
    .before = before,
    .forward = forward,
    .backward = backward,
    .shares = HEAD_SHARED,
    .overwrites = true,
    .searches = true,
    .searches_gradients = true,
};
