/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/features.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

void multiply_matrices(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                       double factor, const double *a, const double *b, double beta, double *c)
{
    if (m > 0 && n > 0)
        cblas_dgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                    transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, factor, a,
                    (int)(transpose_a ? m : k), b, (int)(transpose_b ? k : n), beta, c, (int)n);
}

/* ---- Pointwise maps ---- */

#define POINTWISE_LIST(X)                                                                          \
    X(MAP_IDENTITY, x, 1)                                                                          \
    X(MAP_ELU, x >= 0 ? x : expm1(x), x >= 0 ? 1 : exp(x))                                         \
    X(MAP_ELU_1, x >= 0 ? x + 1 : exp(x), x >= 0 ? 1 : exp(x))                                     \
    X(MAP_ELU_BRANCH, x >= 0 ? x : exp(x), x >= 0 ? 1 : exp(x))                                    \
    X(MAP_ELU_EXP2, x >= 0 ? x + 1 : exp2(x), x >= 0 ? 1 : log(2) * exp2(x))                       \
    X(MAP_RELU, x > 0 ? x : 0, x > 0)                                                              \
    X(MAP_RELU_1, x > 0 ? x + 1 : 1, x > 0)                                                        \
    X(MAP_EXP, exp(x), exp(x))                                                                     \
    X(MAP_SOFTPLUS, fmax(x, 0) + log1p(exp(-fabs(x))), 1 / (1 + exp(-x)))                          \
    X(MAP_SIGMOID, 1 / (1 + exp(-x)), 1 / ((1 + exp(-x)) * (1 + exp(x))))                          \
    X(MAP_SQUARE, x *x, 2 * x)                                                                     \
    X(MAP_ABSOLUTE, fabs(x), x > 0 ? 1 : -1)

#define POINTWISE_FUNCTIONS(code, value, slope)                                                    \
    static double value_##code(double x)                                                           \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    static double slope_##code(double x)                                                           \
    {                                                                                              \
        return slope;                                                                              \
    }
#define POINTWISE_ENTRY(code, value, slope) [code] = {value_##code, slope_##code},

POINTWISE_LIST(POINTWISE_FUNCTIONS)

static const struct {
    double (*value)(double x), (*slope)(double x);
} pointwise[MAP_POINTWISE_COUNT] = {POINTWISE_LIST(POINTWISE_ENTRY)};

/* ---- Softmax over channels or tokens ---- */

static bool is_there(const feature_input *in, int64_t i)
{
    return !in->there || in->form->pads_features || in->there[i];
}

/* exp(x - max) over rows (channels), columns (tokens) or the whole matrix, divided by its sum
 * except for MAP_EXP_CHANNELS and MAP_EXP_TOKENS. */
static void soft_lines(const feature_input *in, feature_map kind, double *phi)
{
    int64_t n = in->tokens, d = in->c->shape.dim;
    bool channels = kind == MAP_OVER_CHANNELS || kind == MAP_EXP_CHANNELS;
    int64_t lines = kind == MAP_OVER_ALL ? 1 : channels ? n : d;
    double *most = must_allocate((size_t)lines, sizeof *most);
    double *sums = must_allocate((size_t)lines, sizeof *sums);
#define LINE (kind == MAP_OVER_ALL ? 0 : channels ? i / d : i % d)
    for (int64_t i = 0; i < lines; i++)
        most[i] = -INFINITY;
    for (int64_t i = 0; i < n * d; i++)
        if (is_there(in, i / d))
            most[LINE] = fmax(most[LINE], in->x[i]);
    for (int64_t i = 0; i < n * d; i++)
        sums[LINE] += phi[i] =
            is_there(in, i / d) ? exponential_of(in->form, in->x[i] - most[LINE]) : 0;
    for (int64_t i = 0; i < n * d && kind < MAP_EXP_CHANNELS; i++)
        phi[i] /= sums[LINE] > 0 ? sums[LINE] : 1;
    free(sums), free(most);
}

static void soft_lines_backward(const feature_input *in, feature_map kind, const double *phi,
                                const double *dphi, double *dx)
{
    int64_t n = in->tokens, d = in->c->shape.dim;
    bool channels = kind == MAP_OVER_CHANNELS || kind == MAP_EXP_CHANNELS;
    double *along = must_allocate((size_t)(n + d), sizeof *along);
    for (int64_t i = 0; i < n * d && kind < MAP_EXP_CHANNELS && !in->form->detach_sum; i++)
        along[LINE] += phi[i] * dphi[i];
    for (int64_t i = 0; i < n * d; i++)
        dx[i] = phi[i] * (dphi[i] - along[LINE]);
    free(along);
#undef LINE
}

/* ---- Random features ---- */

static const atn_tensor *projection_of(const feature_input *in)
{
    const atn_attention_desc *desc = &in->c->reference;
    return desc->op == ATN_RFF ? &desc->rff.projection : &desc->performer.projection;
}

/* The factor of x before the projection. */
static double projection_factor(const feature_input *in)
{
    const atn_attention_desc *desc = &in->c->reference;
    const atn_attention_shape *s = &in->c->shape;
    if (desc->op == ATN_RFF)
        return sqrt(2 * atn_kernel_scale(desc->scale, desc->scale_value, s->heads, s->dim));
    return sqrt(desc->logit_scale != 0 ? desc->logit_scale : 1 / sqrt((double)s->dim));
}

static const double *weights_of(const feature_input *in)
{
    const atn_tensor *w = projection_of(in);
    return (const double *)w->data + (w->heads == 1 ? 0 : in->head * w->rows * w->cols);
}

static void project(const feature_input *in, double *wx)
{
    multiply_matrices(false, true, in->tokens, projection_of(in)->rows, in->c->shape.dim,
                      projection_factor(in), in->x, weights_of(in), 0, wx);
}

static void project_backward(const feature_input *in, const double *dwx, double beta, double *dx)
{
    multiply_matrices(false, false, in->tokens, in->c->shape.dim, projection_of(in)->rows,
                      projection_factor(in), dwx, weights_of(in), beta, dx);
}

/* The index of the largest number of row i, or, for keys with one common stabiliser, of all
 * rows. */
static int64_t largest_at(const feature_input *in, const double *wx, int64_t i)
{
    int64_t m = projection_of(in)->rows, at = -1;
    bool each = !in->keys || in->form->stabilise == STABILISED_EACH;
    for (int64_t j = each ? i * m : 0; j < (each ? (i + 1) * m : in->tokens * m); j++)
        if ((each || is_there(in, j / m)) && (at < 0 || wx[j] > wx[at]))
            at = j;
    return at;
}

static bool is_stabilised(const feature_input *in)
{
    return in->c->reference.performer.stabilise && in->form->stabilise != STABILISED_NOT;
}

static double square_factor(const feature_input *in)
{
    static const double factors[] = {1, 0, 2};
    return factors[in->form->squares];
}

/* exp(w.x' - |x'|^2/2 - t), tokens x M. */
static double *positive_features(const feature_input *in, const double *wx)
{
    int64_t m = projection_of(in)->rows, d = in->c->shape.dim, at = -1;
    double factor = projection_factor(in), *e = must_allocate((size_t)(in->tokens * m), sizeof *e);
    for (int64_t i = 0; i < in->tokens; i++) {
        double half = factor * factor * cblas_ddot((int)d, in->x + i * d, 1, in->x + i * d, 1) / 2;
        if (is_stabilised(in) && (i == 0 || !in->keys || in->form->stabilise == STABILISED_EACH))
            at = largest_at(in, wx, i);
        for (int64_t r = 0; r < m; r++)
            e[i * m + r] = exp(wx[i * m + r] - square_factor(in) * half - (at < 0 ? 0 : wx[at]));
    }
    return e;
}

static void performer_forward(const feature_input *in, double *phi)
{
    const atn_performer_options *o = &in->c->reference.performer;
    int64_t m = projection_of(in)->rows, count = in->tokens * m;
    project(in, phi);
    double *e = o->features == ATN_FEATURES_EXP ? positive_features(in, phi) : NULL;
    for (int64_t i = 0; i < count; i++)
        phi[i] = e ? (e[i] + o->feature_epsilon) / sqrt((double)m)
                   : fmax(phi[i], 0) + o->feature_epsilon;
    free(e);
}

static void performer_backward(const feature_input *in, double *dphi, double *dx)
{
    const atn_performer_options *o = &in->c->reference.performer;
    int64_t m = projection_of(in)->rows, d = in->c->shape.dim;
    double *wx = must_allocate((size_t)(in->tokens * m), sizeof *wx);
    double factor = projection_factor(in);
    project(in, wx);
    double *e = o->features == ATN_FEATURES_EXP ? positive_features(in, wx) : NULL;
    double *sums = must_allocate((size_t)in->tokens, sizeof *sums);
    for (int64_t i = 0; i < in->tokens * m; i++) {
        dphi[i] *= e ? e[i] / sqrt((double)m) : wx[i] > 0;
        sums[i / m] += e ? dphi[i] : 0;
    }
    for (int64_t i = 0; i < in->tokens * d; i++)
        dx[i] = -square_factor(in) * factor * factor * sums[i / d] * in->x[i];
    int64_t at = largest_at(in, wx, 0);
    for (int64_t i = 0; e && is_stabilised(in) && i < in->tokens; i++) {
        if (!in->keys || in->form->stabilise == STABILISED_EACH)
            at = largest_at(in, wx, i);
        if (at >= 0 && in->form->stabilise != STABILISED_DETACHED)
            dphi[at] -= sums[i];
    }
    project_backward(in, dphi, 1, dx);
    free(sums), free(e), free(wx);
}

/* Features are [cos, sin] / sqrt(M). The factor of sin: 0 if the sines are left out, -1 for the
 * queries if their sign is wrong. */
static double sine_factor(const feature_input *in)
{
    return in->form->sines == 1 ? 0 : in->form->sines == 2 && !in->keys ? -1 : 1;
}

static void fourier_forward(const feature_input *in, double *phi)
{
    int64_t m = projection_of(in)->rows, d = in->tokens * m;
    double *wx = must_allocate((size_t)d, sizeof *wx), factor = 1 / sqrt((double)m);
    project(in, wx);
    for (int64_t i = 0; i < d; i++) {
        phi[i / m * 2 * m + i % m] = factor * cos(wx[i]);
        phi[i / m * 2 * m + m + i % m] = factor * sine_factor(in) * sin(wx[i]);
    }
    free(wx);
}

static void fourier_backward(const feature_input *in, const double *dphi, double *dx)
{
    int64_t m = projection_of(in)->rows, count = in->tokens * m;
    double sign = sine_factor(in), factor = 1 / sqrt((double)m);
    double *wx = must_allocate((size_t)count, sizeof *wx);
    project(in, wx);
    for (int64_t i = 0; i < count; i++) {
        const double *to = dphi + i / m * 2 * m + i % m;
        wx[i] = factor * (sign * cos(wx[i]) * to[m] - sin(wx[i]) * to[0]);
    }
    project_backward(in, wx, 0, dx);
    free(wx);
}

/* ---- Angles of positions ---- */

static bool has_angles(const feature_input *in)
{
    const atn_attention_desc *desc = &in->c->reference;
    return desc->op == ATN_COSFORMER && desc->cosformer.weighting == ATN_COSINE_1D;
}

/* The factor of x in phi: the cosine of the position's angle in the first half, the sine in the
 * second. */
static double angle_factor(const feature_input *in, int64_t token, bool second)
{
    const atn_attention_shape *s = &in->c->shape;
    int64_t length = in->c->reference.cosformer.length;
    if (length <= 0)
        length = s->tokens > s->key_tokens ? s->tokens : s->key_tokens;
    double turn = in->form->whole_turn ? acos(-1) : acos(0);
    turn *= in->form->angles ? in->form->fitted[0] : 1;
    token += in->keys ? in->form->positions : 0;
    double angle = turn * (double)token / (double)length;
    return second ? sine_factor(in) * sin(angle) : cos(angle);
}

static feature_map map_of(const feature_input *in)
{
    feature_map chosen = in->keys ? in->form->keys : in->form->queries;
    if (chosen != MAP_CLAIMED)
        return chosen;
    return in->c->reference.op == ATN_ELU         ? MAP_ELU_1
           : in->c->reference.op == ATN_COSFORMER ? MAP_RELU
           : in->keys                             ? MAP_OVER_TOKENS
                                                  : MAP_OVER_CHANNELS;
}

static void mapped_forward(const feature_input *in, double *phi)
{
    int64_t d = in->c->shape.dim, count = in->tokens * d;
    feature_map kind = map_of(in);
    if (kind >= MAP_POINTWISE_COUNT)
        soft_lines(in, kind, phi);
    else if (!has_angles(in))
        for (int64_t i = 0; i < count; i++)
            phi[i] = pointwise[kind].value(in->x[i]);
    else
        for (int64_t i = 0; i < 2 * count; i++)
            phi[i] = pointwise[kind].value(in->x[i / (2 * d) * d + i % d]) *
                     angle_factor(in, i / (2 * d), i % (2 * d) >= d);
}

static void mapped_backward(const feature_input *in, const double *phi, const double *dphi,
                            double *dx)
{
    int64_t d = in->c->shape.dim;
    feature_map kind = map_of(in);
    if (kind >= MAP_POINTWISE_COUNT) {
        soft_lines_backward(in, kind, phi, dphi, dx);
        return;
    }
    for (int64_t i = 0; i < in->tokens * d; i++) {
        const double *to = dphi + (has_angles(in) ? i / d * 2 * d + i % d : i);
        double back = has_angles(in) ? to[0] * angle_factor(in, i / d, false) +
                                           to[d] * angle_factor(in, i / d, true)
                                     : to[0];
        dx[i] = back * pointwise[kind].slope(in->x[i]);
    }
}

/* ---- All operators ---- */

bool features_exist(const attention_case *c)
{
    const atn_attention_desc *desc = &c->reference;
    return desc->op == ATN_ELU || desc->op == ATN_EFFICIENT || desc->op == ATN_PERFORMER ||
           desc->op == ATN_RFF ||
           (desc->op == ATN_COSFORMER && desc->cosformer.weighting != ATN_COSINE_2D);
}

int64_t feature_width(const feature_input *in)
{
    atn_operator op = in->c->reference.op;
    if (op == ATN_PERFORMER || op == ATN_RFF)
        return projection_of(in)->rows * (op == ATN_RFF ? 2 : 1);
    return in->c->shape.dim * (has_angles(in) ? 2 : 1);
}

void features_forward(const feature_input *in, double *phi)
{
    atn_operator op = in->c->reference.op;
    if (op == ATN_PERFORMER)
        performer_forward(in, phi);
    else if (op == ATN_RFF)
        fourier_forward(in, phi);
    else
        mapped_forward(in, phi);
}

void features_backward(const feature_input *in, const double *phi, double *dphi, double *dx)
{
    atn_operator op = in->c->reference.op;
    if (op == ATN_PERFORMER)
        performer_backward(in, dphi, dx);
    else if (op == ATN_RFF)
        fourier_backward(in, dphi, dx);
    else
        mapped_backward(in, phi, dphi, dx);
}
