/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/crossnorm.h"

#include <math.h>

#include <attnum/timing.h>

/* ---- One norm ---- */

enum { GROUP_CHANNELS = 8 };

/* Q or C: rows x channels, dense. */
typedef struct {
    crossnorm_kind kind; /* CROSSNORM_NONE: as it is */
    int64_t rows, channels;
    real *x;     /* afterwards normalised: x^ */
    real *rates; /* of each part that is normalised by itself: the factor */
    const real *gamma, *p, *weight, *bias; /* of this norm; null: it has none */
} normed;

/* The parts that are normalised by themselves, each a rectangle of x. */
typedef struct {
    int64_t first, rows, channels; /* x[first + row * all channels + channel] */
} rectangle;

static bool standardises(crossnorm_kind kind)
{
    return kind == CROSSNORM_LAYER || kind == CROSSNORM_GROUP || kind == CROSSNORM_INSTANCE;
}

static int64_t part_count(const normed *a)
{
    return a->kind == CROSSNORM_NONE       ? 0
           : a->kind == CROSSNORM_INSTANCE ? a->channels
           : a->kind == CROSSNORM_GROUP    ? (a->channels + GROUP_CHANNELS - 1) / GROUP_CHANNELS
                                           : a->rows;
}

static rectangle part_of(const normed *a, int64_t part)
{
    int64_t first = GROUP_CHANNELS * part, left = a->channels - first;
    if (a->kind == CROSSNORM_INSTANCE)
        return (rectangle){part, a->rows, 1};
    if (a->kind == CROSSNORM_GROUP)
        return (rectangle){first, a->rows, left < GROUP_CHANNELS ? left : GROUP_CHANNELS};
    return (rectangle){part * a->channels, 1, a->channels};
}

#define PART_ENTRIES(a, part, index)                                                               \
    for (int64_t row_ = 0; row_ < (part).rows; row_++)                                             \
        for (int64_t index = (part).first + row_ * (a)->channels, end_ = index + (part).channels;  \
             index < end_; index++)

/* |x|^p, 0 for 0. */
static double power(double x, double p)
{
    return x == 0 ? 0 : exp(p * log(fabs(x)));
}

static double length_of(const normed *a, const rectangle *part)
{
    double sum = 0, p = a->p ? (double)*a->p : 2;
    PART_ENTRIES (a, *part, i)
        sum += a->p ? power((double)a->x[i], p) : (double)a->x[i] * (double)a->x[i];
    return a->p ? pow(sum, 1 / p) : sqrt(sum);
}

/* x becomes x^. */
static void normalise(const normed *a)
{
    static const double epsilon = 1e-5;
    for (int64_t g = 0; g < part_count(a); g++) {
        rectangle part = part_of(a, g);
        double mean = 0, squares = 0, count = (double)(part.rows * part.channels), rate;
        if (standardises(a->kind)) {
            PART_ENTRIES (a, part, i)
                mean += (double)a->x[i];
            mean /= count;
            PART_ENTRIES (a, part, i)
                squares += ((double)a->x[i] - mean) * ((double)a->x[i] - mean);
            rate = 1 / sqrt(squares / count + epsilon);
        } else {
            double length = length_of(a, &part);
            rate = length == 0 ? 0 : 1 / length;
        }
        PART_ENTRIES (a, part, i)
            a->x[i] = (real)(((double)a->x[i] - mean) * rate);
        a->rates[g] = (real)rate;
    }
}

/* to = x^ with the parameters. */
static void scale(const normed *a, real *to)
{
    const real *x = a->x;
    for (int64_t row = 0; row < a->rows; row++, x += a->channels, to += a->channels)
        for (int64_t c = 0; c < a->channels; c++)
            to[c] = a->gamma    ? *a->gamma * x[c]
                    : a->weight ? a->weight[c] * x[c] + a->bias[c]
                                : x[c];
}

/* The gradients of the parameters of one norm; null as in `normed`. */
typedef struct {
    real *gamma, *p, *weight, *bias;
} normed_gradient;

/* d is the gradient by scale(x^), and becomes that by x^. */
static void scale_backward(const normed *a, real *d, const normed_gradient *gradient)
{
    double along = 0;
    const real *x = a->x;
    for (int64_t row = 0; row < a->rows; row++, x += a->channels, d += a->channels)
        for (int64_t c = 0; c < a->channels; c++) {
            if (a->gamma) {
                along += (double)d[c] * (double)x[c];
                d[c] *= *a->gamma;
            } else if (a->weight) {
                gradient->weight[c] += d[c] * x[c];
                gradient->bias[c] += d[c];
                d[c] *= a->weight[c];
            }
        }
    if (a->gamma)
        *gradient->gamma += (real)along;
}

/* Through x^ = (x - mean) rate: dx = rate (d - mean(d) - x^ mean(d x^)). */
static void standardise_backward(const normed *a, const rectangle *part, double rate, real *d)
{
    double sum = 0, along = 0, count = (double)(part->rows * part->channels);
    PART_ENTRIES (a, *part, i) {
        sum += (double)d[i];
        along += (double)d[i] * (double)a->x[i];
    }
    PART_ENTRIES (a, *part, i)
        d[i] = (real)(rate * ((double)d[i] - sum / count - (double)a->x[i] * (along / count)));
}

/* Through x^ = x/|x|_p, with u = |x^|, whose p-th powers have the sum 1:
 *   d|x|_p/dx = sign(x) u^(p-1),   d|x|_p/dp = |x|_p (1/p) sum_c u_c^p log u_c. */
static void length_backward(const normed *a, const rectangle *part, double rate, real *d,
                            const normed_gradient *gradient)
{
    double along = 0, entropy = 0, p = a->p ? (double)*a->p : 2;
    PART_ENTRIES (a, *part, i)
        along += (double)d[i] * (double)a->x[i];
    PART_ENTRIES (a, *part, i) {
        double x = (double)a->x[i], slope = x;
        if (a->p && x != 0) {
            double logarithm = log(fabs(x)), of_power = exp(p * logarithm);
            slope = of_power / x;
            entropy += of_power * logarithm;
        }
        d[i] = (real)(rate * ((double)d[i] - along * slope));
    }
    if (a->p)
        *gradient->p -= (real)(along * entropy / p);
}

/* d becomes the gradient by x. */
static void normalise_backward(const normed *a, real *d, const normed_gradient *gradient)
{
    for (int64_t g = 0; g < part_count(a); g++) {
        rectangle part = part_of(a, g);
        if (standardises(a->kind))
            standardise_backward(a, &part, (double)a->rates[g], d);
        else
            length_backward(a, &part, (double)a->rates[g], d, gradient);
    }
}

/* ---- One head ---- */

/* All dense. */
typedef struct {
    real *q, *k, *v; /* q: normalised */
    real *clusters;  /* C, normalised */
    real *scaled_q, *scaled_clusters;
    real *rates[2];
    real *dy, *dq, *dclusters; /* dy also for dk and dv */
} pieces;

int64_t crossnorm_size(int64_t tokens, int64_t dim)
{
    return 6 * tokens * dim + 3 * dim * dim + 2 * (tokens + dim);
}

static pieces split(const crossnorm_head *h, real *free)
{
    int64_t n = h->tokens, d = h->dim;
    pieces p;
    real **of_tokens[] = {&p.q, &p.k, &p.v, &p.scaled_q, &p.dy, &p.dq};
    real **of_clusters[] = {&p.clusters, &p.scaled_clusters, &p.dclusters};
    for (size_t i = 0; i < sizeof of_tokens / sizeof *of_tokens; i++, free += n * d)
        *of_tokens[i] = free;
    for (size_t i = 0; i < sizeof of_clusters / sizeof *of_clusters; i++, free += d * d)
        *of_clusters[i] = free;
    p.rates[0] = free;
    p.rates[1] = free + n + d;
    return p;
}

static void copy(const crossnorm_head *h, const real *from, int64_t from_stride, real *to,
                 int64_t to_stride)
{
    for (int64_t i = 0; i < h->tokens; i++)
        for (int64_t c = 0; c < h->dim; c++)
            to[i * to_stride + c] = from[i * from_stride + c];
}

static void multiply(atn_context *context, bool transpose_a, bool transpose_b, int64_t rows,
                     int64_t cols, int64_t inner, const real *a, const real *b, real *c)
{
    atn_product_shape shape = {transpose_a, transpose_b, rows, cols, inner, false};
    atn_product(context, REAL_DTYPE, &shape, a, b, c);
}

/* The norm of Q, or of C. */
static normed norm_of(const crossnorm_head *h, const pieces *p, bool clusters)
{
    bool none = h->kind == (clusters ? CROSSNORM_QUERIES : CROSSNORM_CLUSTERS);
    return (normed){.kind = none ? CROSSNORM_NONE : h->kind,
                    .rows = clusters ? h->dim : h->tokens,
                    .channels = h->dim,
                    .x = clusters ? p->clusters : p->q,
                    .rates = p->rates[clusters],
                    .gamma = none ? NULL : h->parameters[CROSSNORM_GAMMA],
                    .p = h->parameters[CROSSNORM_P],
                    .weight = h->parameters[CROSSNORM_WEIGHT + clusters],
                    .bias = h->parameters[CROSSNORM_BIAS + clusters]};
}

/* Q, K, V, N(Q) and N(C). */
static void prepare(atn_context *context, const crossnorm_head *h, const pieces *p)
{
    int64_t n = h->tokens, d = h->dim;
    normed queries = norm_of(h, p, false), clusters = norm_of(h, p, true);
    copy(h, h->q, h->stride, p->q, d);
    copy(h, h->k, h->stride, p->k, d);
    copy(h, h->v, h->stride, p->v, d);
    multiply(context, true, false, d, d, n, p->v, p->k, p->clusters);
    normalise(&queries);
    normalise(&clusters);
    scale(&queries, p->scaled_q);
    scale(&clusters, p->scaled_clusters);
}

void crossnorm_forward(atn_context *context, const crossnorm_head *h, real *workspace, real *y,
                       int64_t y_stride)
{
    pieces p = split(h, workspace);
    prepare(context, h, &p);
    multiply(context, false, true, h->tokens, h->dim, h->dim, p.scaled_q, p.scaled_clusters, p.dy);
    copy(h, p.dy, h->dim, y, y_stride);
}

void crossnorm_backward(atn_context *context, const crossnorm_head *h, real *workspace,
                        const real *dy, int64_t y_stride, real *dq, real *dk, real *dv,
                        real *const gradient[CROSSNORM_PARAMETERS])
{
    pieces p = split(h, workspace);
    int64_t n = h->tokens, d = h->dim;
    prepare(context, h, &p);
    copy(h, dy, y_stride, p.dy, d);
    multiply(context, false, false, n, d, d, p.dy, p.scaled_clusters, p.dq);
    multiply(context, true, false, d, d, n, p.dy, p.scaled_q, p.dclusters);
    real *changed[] = {p.dq, p.dclusters};
    for (int i = 0; i < 2; i++) {
        normed a = norm_of(h, &p, i);
        normed_gradient of = {gradient[CROSSNORM_GAMMA], gradient[CROSSNORM_P],
                              gradient[CROSSNORM_WEIGHT + i], gradient[CROSSNORM_BIAS + i]};
        scale_backward(&a, changed[i], &of);
        normalise_backward(&a, changed[i], &of);
    }
    copy(h, p.dq, d, dq, y_stride);
    multiply(context, false, false, n, d, d, p.v, p.dclusters, p.dy);
    copy(h, p.dy, d, dk, y_stride);
    multiply(context, false, true, n, d, d, p.k, p.dclusters, p.dy);
    copy(h, p.dy, d, dv, y_stride);
}
