/* SPDX-License-Identifier: BSD-3-Clause */
/* Performer's random features (Choromanski et al. 2021), for features/cpu.c.
 * With u_r = w_r.x' and x' = sqrt(c) x,
 *
 *   phi_r = (exp(u_r - offset) + feature_epsilon) / sqrt(M),   offset = |x'|^2 / 2 + t,
 *
 * or max(u_r, 0) + feature_epsilon. */
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
    const real *w; /* m x d */
    int64_t m;
    double c, root_c, factor; /* factor: 1 / sqrt(M) */
    bool exponential, stabilise;
    bool free_queries, free_keys, shifted; /* shifted: the keys' t has a derivative */
    double *top;                           /* in the head's state, by `prepared` */
    double grad_shift;                     /* dL/dt of keys */
} performer;

/* Of keys: offset = |x'|^2 / 2 + top[SHIFT]; where w.x' is largest (key -1: there is none). */
enum { SHIFT, KEY, FEATURE, TOPS };
_Static_assert((int)TOPS <= (int)LINEAR_FOUND, "a part of the keys leaves its own");

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t m = desc->performer.projection.rows;
    *thread_reals = R(linear_reals)(m, m, desc, shape);
    *head_reals = R(linear_state)(m, desc, shape) + R(norm_doubles)(TOPS);
}

/* u of `rows` tokens. */
static void project(const performer *p, int64_t rows, const real *x, int64_t stride, real *u)
{
    int64_t d = p->h->d;
    real root_c = (real)p->root_c;
    real_gemm(CblasNoTrans, CblasTrans, rows, p->m, d, x, stride, p->w, d, 0, u, p->m);
    for (int64_t e = 0; e < rows * p->m; e++)
        u[e] *= root_c;
}

/* |x'|^2 / 2 */
static double half_square(const performer *p, const real *x)
{
    return p->c * R(dot)(p->h->d, x, x) / 2;
}

static real largest(int64_t count, const real *u)
{
    return R(simd).largest(count, u, -INFINITY);
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
        project(p, rows, h->k + j0 * h->k_stride, h->k_stride, work);
        for (int64_t j = 0; j < rows; j++) {
            const real *u = work + j * p->m;
            real most = largest(p->m, u);
            double value = (double)most;
            if (p->free_keys)
                value -= half_square(p, h->k + (j0 + j) * h->k_stride);
            if (raises(found, value)) {
                found[SHIFT] = value;
                found[KEY] = (double)(j0 + j);
                found[FEATURE] = (double)R(find)(p->m, u, most);
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

/* What is subtracted from row i's exponents. */
static double offset_of(const performer *p, const token_block *b, int64_t i)
{
    const real *u = b->kept + i * p->m;
    if (!b->keys && p->free_queries)
        return (double)largest(p->m, u);
    double half = half_square(p, b->x + i * b->stride);
    if (b->keys)
        return half + p->top[SHIFT];
    return p->stabilise ? half + (double)largest(p->m, u) : half;
}

/* exp(u - offset) of a block; to may be kept. */
static void load_exponentials(const performer *p, const token_block *b, real *to)
{
    for (int64_t i = 0; i < b->rows; i++) {
        double offset = offset_of(p, b, i);
        for (int64_t r = i * p->m; r < (i + 1) * p->m; r++)
            to[r] = (real)((double)b->kept[r] - offset);
    }
    R(simd).exponentials(b->rows * p->m, to);
}

static void map(const void *own, const token_block *b)
{
    const performer *p = own;
    real epsilon = (real)p->h->desc->performer.feature_epsilon, factor = (real)p->factor;
    int64_t count = b->rows * p->m;
    project(p, b->rows, b->x, b->stride, b->kept);
    if (!p->exponential) {
        for (int64_t e = 0; e < count; e++)
            b->phi[e] = (b->kept[e] > 0 ? b->kept[e] : 0) + epsilon;
        return;
    }
    load_exponentials(p, b, b->phi);
    for (int64_t e = 0; e < count; e++)
        b->phi[e] = (b->phi[e] + epsilon) * factor;
}

/* Turns slopes into dL/du of one row of exponentials: slopes_r E_r, E_r = exp(u_r - offset) /
 * sqrt(M) (kept holds E_r sqrt(M)), and the part through the offset; top: where u is largest.
 * Returns dL/d(|x'|^2 / 2). A factor that cancels has no derivative. */
static double offset_backward(const performer *p, const token_block *b, int64_t i, int64_t top,
                              real *slopes)
{
    const real *exps = b->kept + i * p->m;
    real factor = (real)p->factor;
    for (int64_t r = 0; r < p->m; r++)
        slopes[r] *= exps[r] * factor;
    if (!b->keys && p->free_queries)
        return 0;
    double total = R(sum)(p->m, slopes);
    if (b->keys && p->shifted)
        b->found[SHIFT] -= total;
    if (!b->keys && p->stabilise)
        slopes[top] -= (real)total;
    return -total;
}

static void exponentials_backward(const performer *p, const token_block *b, real *slopes, bool add,
                                  real *grad, int64_t grad_stride)
{
    bool stabilised = !b->keys && p->stabilise && !p->free_queries;
    int64_t top[HEAD_BLOCK] = {0};
    for (int64_t i = 0; stabilised && i < b->rows; i++) {
        const real *u = b->kept + i * p->m;
        top[i] = R(find)(p->m, u, largest(p->m, u));
    }
    load_exponentials(p, b, b->kept);
    for (int64_t i = 0; i < b->rows; i++) {
        double half_slope = p->c * offset_backward(p, b, i, top[i], slopes + i * p->m);
        const real *x = b->x + i * b->stride;
        real *restrict to = grad + i * grad_stride;
        for (int64_t c = 0; c < p->h->d; c++)
            to[c] = (add ? to[c] : 0) + (real)(half_slope * (double)x[c]);
    }
}

static void map_backward(const void *own, const token_block *b, real *slopes, bool add, real *grad,
                         int64_t grad_stride)
{
    const performer *p = own;
    int64_t d = p->h->d, count = b->rows * p->m;
    real root_c = (real)p->root_c;
    if (p->exponential)
        exponentials_backward(p, b, slopes, add, grad, grad_stride);
    else
        for (int64_t e = 0; e < count; e++)
            slopes[e] = b->kept[e] > 0 ? slopes[e] : 0;
    for (int64_t e = 0; e < count; e++)
        slopes[e] *= root_c;
    real_gemm(CblasNoTrans, CblasNoTrans, b->rows, d, p->m, slopes, p->m, p->w, d,
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
        grad[c] += (real)(p->grad_shift * p->root_c * (double)w[c]);
}

static performer open_performer(const head *h)
{
    const atn_performer_options *o = &h->desc->performer;
    double c = core_logit_scale(h->desc, h->d);
    bool exponential = o->features == ATN_FEATURES_EXP;
    bool free_queries = exponential && o->feature_epsilon == 0;
    bool free_keys = free_queries && o->denominator_epsilon == 0 && !h->desc->causal;
    atn_attention_shape shape = {.tokens = h->length, .value_dim = h->dv};
    real *own = h->state + R(linear_state)(o->projection.rows, h->desc, &shape);
    return (performer){
        .h = h,
        .w = head_matrix(&o->projection, h->index),
        .m = o->projection.rows,
        .c = c,
        .root_c = sqrt(c),
        .factor = 1 / sqrt((double)o->projection.rows),
        .top = R(norm_take)(&own, TOPS),
        .exponential = exponential,
        .stabilise = o->stabilise,
        .free_queries = free_queries,
        .free_keys = free_keys,
        .shifted = exponential && o->stabilise && !free_keys,
    };
}

static feature_map map_of(performer *p)
{
    bool looks = p->exponential && (p->stabilise || p->free_keys);
    return (feature_map){.features = p->m,
                         .kept = p->m,
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
    start_top(open_performer(h).top);
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
};
