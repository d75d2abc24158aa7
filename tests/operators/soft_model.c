/* SPDX-License-Identifier: BSD-3-Clause */
#include "soft_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "dense_soft.h"
#include "linear_algebra.h"
#include "newton.h"

/* out = a b for m x m matrices. */
static void multiply(int64_t m, const double *a, const double *b, double *out)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            long double sum = 0;
            for (int64_t k = 0; k < m; k++)
                sum += (long double)a[i * m + k] * b[k * m + j];
            out[i * m + j] = (double)sum;
        }
}

static soft_model_kind kind_of(const atn_attention_desc *desc)
{
    const atn_inverse_desc *inverse = &desc->inverse;
    if (fixture_iterates(inverse->method))
        return desc->gradient == ATN_GRADIENT_STEPS ? MODEL_STEPS : MODEL_EQ12;
    if (inverse->method == ATN_INVERSE_PIVOTED_CHOLESKY)
        return MODEL_PIVOTS;
    if (inverse->rcond > 0)
        return desc->gradient == ATN_GRADIENT_PSEUDO ? MODEL_PSEUDO : MODEL_EQ12;
    return MODEL_EXACT;
}

/* Every head's A from its current tokens. */
static void find_matrices(const soft_model *model, double *a)
{
    const fixture_soft *f = &model->f;
    int64_t m = f->m, d = f->c.dim;
    double *landmarks = data_allocate((f->n + 1) * d);
    for (int64_t i = 0; i < f->c.batch * f->c.heads; i++) {
        fixture_landmarks(&f->sampling, f->n, d, f->q + i * f->n * d, landmarks);
        ref_gaussian(m, m, d, landmarks, landmarks, model->s, a + i * m * m);
    }
    free(landmarks);
}

/* X of every head by the closed-form filter. */
static void filter_all(const soft_model *model, const double *a, double *x)
{
    const atn_inverse_desc *inverse = &model->f.desc.inverse;
    int64_t m = model->f.m, count = model->f.c.batch * model->f.c.heads;
    double *alpha = data_allocate(count);
    int *halvings = calloc((size_t)count, sizeof *halvings);
    fixture_alpha(inverse, count, m, a, alpha, halvings);
    for (int64_t i = 0; i < count; i++)
        fixture_filter(inverse, m, a + i * m * m, alpha[i], x + i * m * m);
    free(halvings);
    free(alpha);
}

/* Greedy pivots: the largest remaining diagonal entry, the first of them, by elimination. */
static int64_t find_pivots(int64_t m, const double *a, double rcond, int64_t *pivots)
{
    double *rest = data_allocate(m * m), cut = rcond < 0 ? (double)m * 0x1p-53 : rcond;
    int64_t rank = 0;
    memcpy(rest, a, (size_t)(m * m) * sizeof *rest);
    for (; rank < m; rank++) {
        int64_t pivot = 0;
        for (int64_t i = 1; i < m; i++)
            if (rest[i * m + i] > rest[pivot * m + pivot])
                pivot = i;
        if (rest[pivot * m + pivot] <= cut)
            break;
        pivots[rank] = pivot;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++)
                if (i != pivot && j != pivot)
                    rest[i * m + j] -=
                        rest[i * m + pivot] * rest[pivot * m + j] / rest[pivot * m + pivot];
        for (int64_t i = 0; i < m; i++)
            rest[i * m + pivot] = rest[pivot * m + i] = 0;
    }
    free(rest);
    return rank;
}

static void invert_pivots(int64_t m, const double *a, int64_t rank, const int64_t *pivots,
                          double *x)
{
    double *block = data_allocate(rank * rank), *inverse = data_allocate(rank * rank);
    for (int64_t i = 0; i < rank * rank; i++)
        block[i] = a[pivots[i / rank] * m + pivots[i % rank]];
    if (ref_symmetric_pinv(rank, block, -1, inverse, NULL, NULL, NULL) < 0)
        abort();
    memset(x, 0, (size_t)(m * m) * sizeof *x);
    for (int64_t i = 0; i < rank * rank; i++)
        x[pivots[i / rank] * m + pivots[i % rank]] = inverse[i];
    free(inverse);
    free(block);
}

/* X0: the filter, or the pseudo-inverse with the description's cut. */
static void find_start(soft_model *model)
{
    const atn_inverse_desc *inverse = &model->f.desc.inverse;
    int64_t m = model->f.m, count = model->f.c.batch * model->f.c.heads;
    find_matrices(model, model->a0);
    if (fixture_iterates(inverse->method))
        filter_all(model, model->a0, model->x0);
    for (int64_t i = 0; i < count; i++) {
        const double *a = model->a0 + i * m * m;
        if (!fixture_iterates(inverse->method) &&
            ref_symmetric_pinv(m, a, inverse->rcond, model->x0 + i * m * m, NULL, NULL, NULL) < 0)
            abort();
        model->rank = find_pivots(m, a, inverse->rcond, model->pivots + i * m);
    }
}

soft_model soft_model_make(fixture_soft f)
{
    const fixture_soft_case *c = &f.c;
    int64_t heads = c->batch * c->heads, size = heads * f.n * c->value_dim;
    soft_model model = {.f = f, .kind = kind_of(&f.desc)};
    model.s = atn_kernel_scale(c->scale, c->scale_value, c->heads, c->dim);
    model.dout = data_allocate(size);
    data_normal(c->seed + 20, size, model.dout);
    data_round(c->dtype, size, model.dout);
    model.a0 = data_allocate(heads * f.m * f.m);
    model.x0 = data_allocate(heads * f.m * f.m);
    model.pivots = calloc((size_t)(heads * f.m) + 1, sizeof *model.pivots);
    find_start(&model);
    return model;
}

void soft_model_free(soft_model *model)
{
    free(model->pivots);
    free(model->x0);
    free(model->a0);
    free(model->dout);
    fixture_soft_free(&model->f);
}

double soft_model_gap(const soft_model *model)
{
    int64_t m = model->f.m, group = model->f.desc.inverse.scope == ATN_SCOPE_BATCH
                                        ? model->f.c.batch * model->f.c.heads
                                        : 1;
    double gap = INFINITY, first = 0, second = 0;
    for (int64_t row = 0; row < model->f.c.batch * model->f.c.heads * m; row++) {
        double sum = 0;
        for (int64_t j = 0; j < m; j++)
            sum += model->a0[row * m + j];
        second = fmax(second, fmin(sum, first));
        first = fmax(sum, first);
        if ((row + 1) % (group * m) == 0) {
            gap = fmin(gap, (first - second) / (first - 1));
            first = second = 0;
        }
    }
    return gap;
}

/* Adds factor (left E right) to x. */
static void add_sandwich(int64_t m, double factor, const double *left, const double *e,
                         const double *right, double *x)
{
    double *half = data_allocate(m * m), *whole = data_allocate(m * m);
    multiply(m, left, e, half);
    multiply(m, half, right, whole);
    for (int64_t i = 0; i < m * m; i++)
        x[i] += factor * whole[i];
    free(whole);
    free(half);
}

static void linear_inverse(const soft_model *model, int64_t head, const double *a, double *x)
{
    int64_t m = model->f.m;
    const double *x0 = model->x0 + head * m * m, *a0 = model->a0 + head * m * m;
    double *e = data_allocate(m * m), *square = data_allocate(m * m), *rest = data_allocate(m * m);
    double *other = data_allocate(m * m);
    for (int64_t i = 0; i < m * m; i++)
        e[i] = a[i] - a0[i];
    memcpy(x, x0, (size_t)(m * m) * sizeof *x);
    add_sandwich(m, -1, x0, e, x0, x);
    if (model->kind == MODEL_PSEUDO) {
        multiply(m, x0, x0, square);
        multiply(m, a0, x0, rest);
        multiply(m, x0, a0, other);
        for (int64_t i = 0; i < m * m; i++) {
            rest[i] = (i % (m + 1) == 0) - rest[i];
            other[i] = (i % (m + 1) == 0) - other[i];
        }
        add_sandwich(m, 1, square, e, rest, x);
        add_sandwich(m, 1, other, e, square, x);
    }
    free(other);
    free(rest);
    free(square);
    free(e);
}

/* X of every head, into x; null for A+ itself. */
static const double *find_inverses(const soft_model *model, const double *a, double *x)
{
    int64_t m = model->f.m;
    if (model->kind == MODEL_EXACT)
        return NULL;
    if (model->kind == MODEL_STEPS)
        filter_all(model, a, x);
    for (int64_t i = 0; i < model->f.c.batch * model->f.c.heads; i++)
        if (model->kind == MODEL_PIVOTS)
            invert_pivots(m, a + i * m * m, model->rank, model->pivots + i * m, x + i * m * m);
        else if (model->kind != MODEL_STEPS)
            linear_inverse(model, i, a + i * m * m, x + i * m * m);
    return x;
}

static long double head_scalar(const soft_model *model, int64_t i, const double *x)
{
    const fixture_soft *f = &model->f;
    const fixture_soft_case *c = &f->c;
    int64_t n = f->n, d = c->dim, dv = c->value_dim;
    double *landmarks = data_allocate((n + 1) * d), *out = data_allocate(n * dv);
    long double sum = 0;
    fixture_landmarks(&f->sampling, n, d, f->q + i * n * d, landmarks);
    if (ref_soft(n, f->m, d, dv, f->q + i * n * d, landmarks, f->v + i * n * dv, model->s, x,
                 c->op == ATN_SOFTPP, NULL, out) < 0)
        abort();
    if (c->window > 0)
        ref_depthwise(c->height, c->width, dv, c->window,
                      f->filter + i % c->heads * c->window * c->window, f->v + i * n * dv, out);
    for (int64_t j = 0; j < n * dv; j++)
        sum += (long double)model->dout[i * n * dv + j] * out[j];
    free(out);
    free(landmarks);
    return sum;
}

long double soft_model_scalar(soft_model *model)
{
    int64_t size = model->f.m * model->f.m, count = model->f.c.batch * model->f.c.heads;
    double *a = data_allocate(count * size), *x = data_allocate(count * size);
    long double sum = 0;
    find_matrices(model, a);
    const double *inverses = find_inverses(model, a, x);
    for (int64_t i = 0; i < count; i++)
        sum += head_scalar(model, i, inverses ? inverses + i * size : NULL);
    free(x);
    free(a);
    return sum;
}

double soft_model_slope(soft_model *model, int64_t count, double *values, const double *direction,
                        double step)
{
    static const int weights[] = {-1, 9, -45, 0, 45, -9, 1}; /* times 1/60 */
    double *kept = data_allocate(count);
    long double sum = 0;
    memcpy(kept, values, (size_t)count * sizeof *kept);
    for (int k = 0; k < 7; k++) {
        for (int64_t i = 0; i < count; i++)
            values[i] = kept[i] + (k - 3) * step * direction[i];
        if (weights[k] != 0)
            sum += weights[k] * soft_model_scalar(model);
    }
    memcpy(values, kept, (size_t)count * sizeof *kept);
    free(kept);
    return (double)(sum / (60 * (long double)step));
}
