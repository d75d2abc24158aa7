/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer (Xiong et al. 2021) with a change: Y = F Z B V with F = softmax(c Q K~^T), A =
 * softmax(c Q~ K~^T), B = softmax(c Q~ K^T), Z an iterate for A+. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/features.h"
#include "common/report.h"

/* A head's matrices. `iterates` holds steps + 1 matrices of m x m, the first one Z_0. */
typedef struct {
    const attention_case *c;
    const weight_form *form;
    int64_t batch, head, n, keys, m, d, dv;
    const double *q, *k, *v;
    const unsigned char *query_there, *key_there;
    int steps;
    double *q_means, *k_means, *f, *a, *b, *iterates, *bv, *zbv;
    double norm; /* by which Z_0 is divided */
    int64_t norm_column;
    double *da, *dq, *dk, *dv_; /* derivatives */
} nystrom;

static double *room(int64_t count)
{
    return must_allocate((size_t)count, sizeof(double));
}

/* ---- Landmarks ---- */

/* The segment of a token, its length and its first token. */
typedef struct {
    int64_t index, length, first;
} segment;

static segment segment_of(const nystrom *h, int64_t tokens, int64_t i)
{
    int64_t m = h->m, more = tokens % m, length = tokens / m, longer = more * (length + 1);
    segment s;
    if (h->form->nystrom == NYSTROM_INTERLEAVED)
        s = (segment){i % m, length + (i % m < more), i % m};
    else if (h->form->nystrom == NYSTROM_LONGER_FIRST) {
        s.index = i < longer ? i / (length + 1) : more + (i - longer) / length;
        s.length = length + (s.index < more);
        s.first = s.index * length + (s.index < more ? s.index : more);
    } else {
        int64_t shorter = m - more, short_tokens = shorter * length;
        s.index = i < short_tokens ? i / length : shorter + (i - short_tokens) / (length + 1);
        s.length = length + (s.index >= shorter);
        s.first = s.index * length + (s.index > shorter ? s.index - shorter : 0);
    }
    return s;
}

/* The weight of a token in its landmark; 0 for padding. */
static double share_of(const nystrom *h, const unsigned char *there, int64_t i, segment s)
{
    nystrom_form form = h->form->nystrom;
    return there && !there[i]             ? 0
           : form == NYSTROM_SUMS         ? 1
           : form == NYSTROM_FIRST_TOKENS ? i == s.first
           : form == NYSTROM_LAST_TOKENS  ? i == s.first + s.length - 1
                                          : 1 / (double)s.length;
}

static double *means_of(const nystrom *h, int64_t tokens, const unsigned char *there,
                        const double *x)
{
    double *means = room(h->m * h->d);
    for (int64_t i = 0; i < tokens; i++) {
        segment s = segment_of(h, tokens, i);
        double share = share_of(h, there, i, s);
        for (int64_t c = 0; c < h->d; c++)
            means[s.index * h->d + c] += share * x[i * h->d + c];
    }
    return means;
}

static void means_backward(const nystrom *h, int64_t tokens, const unsigned char *there,
                           const double *dmeans, double *dx)
{
    for (int64_t i = 0; i < tokens && h->form->nystrom != NYSTROM_DETACH_LANDMARKS; i++) {
        segment s = segment_of(h, tokens, i);
        double share = share_of(h, there, i, s);
        for (int64_t c = 0; c < h->d; c++)
            dx[i * h->d + c] += share * dmeans[s.index * h->d + c];
    }
}

/* ---- Softmax ---- */

static double logit_factor(const nystrom *h)
{
    double c = h->c->reference.logit_scale;
    return c != 0 ? c : 1 / sqrt((double)h->d);
}

static double *soft_weights(const nystrom *h, int64_t rows, int64_t cols, const double *x,
                            const double *y, const unsigned char *there)
{
    double *w = room(rows * cols);
    multiply_matrices(false, true, rows, cols, h->d, logit_factor(h), x, y, 0, w);
    for (int64_t i = 0; i < rows; i++) {
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < cols; j++)
            most = !there || there[j] ? fmax(most, w[i * cols + j]) : most;
        for (int64_t j = 0; j < cols; j++) {
            double *e = &w[i * cols + j];
            *e = !there || there[j] ? exponential_of(h->form, *e - most) : 0;
            sum += *e;
        }
        for (int64_t j = 0; j < cols && h->form->divide != DIVIDE_NOT; j++)
            w[i * cols + j] /= sum > 0 ? sum : 1;
    }
    return w;
}

/* Adds to dx and dy; dw is overwritten. */
static void soft_backward(const nystrom *h, int64_t rows, int64_t cols, const double *x,
                          const double *y, const double *w, double *dw, double *dx, double *dy)
{
    for (int64_t i = 0; i < rows; i++) {
        double along = 0;
        for (int64_t j = 0; j < cols && h->form->divide != DIVIDE_NOT && !h->form->detach_sum; j++)
            along += w[i * cols + j] * dw[i * cols + j];
        for (int64_t j = 0; j < cols; j++)
            dw[i * cols + j] = w[i * cols + j] * (dw[i * cols + j] - along);
    }
    multiply_matrices(false, false, rows, h->d, cols, logit_factor(h), dw, y, 1, dx);
    multiply_matrices(true, false, cols, h->d, rows, logit_factor(h), dw, x, 1, dy);
}

/* ---- The inverse ---- */

static void find_norm(nystrom *h)
{
    double rows = 0;
    for (int64_t j = 0; j < h->m; j++) {
        double of_column = 0, of_row = 0;
        for (int64_t i = 0; i < h->m; i++) {
            of_column += fabs(h->a[i * h->m + j]);
            of_row += fabs(h->a[j * h->m + i]);
        }
        if (of_column > h->norm) {
            h->norm = of_column;
            h->norm_column = j;
        }
        rows = fmax(rows, of_row);
    }
    if (h->form->nystrom == NYSTROM_BOTH_NORMS)
        h->norm *= rows;
}

/* factor I - A B */
static void subtract_product(int64_t m, double factor, const double *a, const double *b, double *to)
{
    multiply_matrices(false, false, m, m, m, -1, a, b, 0, to);
    for (int64_t i = 0; i < m; i++)
        to[i * m + i] += factor;
}

/* T = A Z, P = 7 I - T, R = 15 I - T P, U = 13 I - T R: 4 m^2 numbers. */
static void step_factors(const nystrom *h, const double *z, double *t)
{
    int64_t m = h->m, size = m * m;
    multiply_matrices(false, false, m, m, m, 1, h->a, z, 0, t);
    for (int64_t i = 0; i < size; i++)
        t[size + i] = (i % (m + 1) == 0 ? 7 : 0) - t[i];
    subtract_product(m, 15, t, t + size, t + 2 * size);
    subtract_product(m, 13, t, t + 2 * size, t + 3 * size);
}

static void invert(nystrom *h)
{
    int64_t m = h->m, size = m * m;
    bool transposed = h->form->nystrom != NYSTROM_START_A;
    double *t = room(4 * size);
    h->iterates = room((h->steps + 1) * size);
    for (int64_t i = 0; i < size; i++)
        h->iterates[i] = h->a[transposed ? i % m * m + i / m : i] / h->norm;
    for (int step = 0; step < h->steps; step++) {
        double *z = h->iterates + step * size;
        step_factors(h, z, t);
        multiply_matrices(false, false, m, m, m, 0.25, z, t + 3 * size, 0, z + size);
    }
    free(t);
}

/* Adds to dA from dZ, which is overwritten. Returns the derivative by the norm. */
static double invert_backward(const nystrom *h, double *dz, double *da)
{
    int64_t m = h->m, size = m * m;
    bool transposed = h->form->nystrom != NYSTROM_START_A;
    double *t = room(4 * size), *dt = room(4 * size), *before = room(size), dnorm = 0;
    double *p = t + size, *r = t + 2 * size, *u = t + 3 * size;
    double *dp = dt + size, *dr = dt + 2 * size, *du = dt + 3 * size;
    for (int step = h->steps; step-- > 0;) {
        const double *z = h->iterates + step * size;
        step_factors(h, z, t);
        multiply_matrices(false, true, m, m, m, 0.25, dz, u, 0, before);
        multiply_matrices(true, false, m, m, m, 0.25, z, dz, 0, du);
        multiply_matrices(false, true, m, m, m, -1, du, r, 0, dt);
        multiply_matrices(true, false, m, m, m, -1, t, du, 0, dr);
        multiply_matrices(false, true, m, m, m, -1, dr, p, 1, dt);
        multiply_matrices(true, false, m, m, m, -1, t, dr, 0, dp);
        for (int64_t i = 0; i < size; i++)
            dt[i] -= dp[i];
        multiply_matrices(false, true, m, m, m, 1, dt, z, 1, da);
        multiply_matrices(true, false, m, m, m, 1, h->a, dt, 1, before);
        memcpy(dz, before, (size_t)size * sizeof *dz);
    }
    for (int64_t i = 0; i < size; i++) {
        da[transposed ? i % m * m + i / m : i] += dz[i] / h->norm;
        dnorm -= dz[i] * h->iterates[i] / h->norm;
    }
    free(before), free(dt), free(t);
    return dnorm;
}

/* ---- A head ---- */

static nystrom head_start(const subject *s, const weight_form *form, int64_t which)
{
    const attention_case *c = &s->c;
    const atn_attention_shape *p = &c->shape;
    const unsigned char *query_mask = c->query_mask || c->k ? c->query_mask : c->key_mask;
    nystrom h = {.c = c,
                 .form = form,
                 .batch = which / p->heads,
                 .head = which % p->heads,
                 .n = p->tokens,
                 .keys = p->key_tokens,
                 .m = c->reference.nystromformer.landmarks,
                 .d = p->dim,
                 .dv = p->value_dim,
                 .steps = c->reference.nystromformer.iterations};
    h.q = c->q + which * h.n * h.d;
    h.k = (c->k ? c->k : c->q) + which * h.keys * h.d;
    h.v = c->v + which * h.keys * h.dv;
    h.query_there = query_mask ? query_mask + h.batch * h.n : NULL;
    h.key_there = c->key_mask ? c->key_mask + h.batch * h.keys : NULL;
    bool q_of_keys = form->nystrom == NYSTROM_OF_KEYS;
    bool k_of_queries = form->nystrom == NYSTROM_OF_QUERIES;
    h.q_means =
        q_of_keys ? means_of(&h, h.keys, h.key_there, h.k) : means_of(&h, h.n, h.query_there, h.q);
    h.k_means = k_of_queries ? means_of(&h, h.n, h.query_there, h.q)
                             : means_of(&h, h.keys, h.key_there, h.k);
    h.f = soft_weights(&h, h.n, h.m, h.q, h.k_means, NULL);
    h.a = soft_weights(&h, h.m, h.m, h.q_means, h.k_means, NULL);
    h.b = soft_weights(&h, h.m, h.keys, h.q_means, h.k, h.key_there);
    find_norm(&h);
    return h;
}

static void head_free(nystrom *h)
{
    free(h->q_means), free(h->k_means), free(h->f), free(h->a), free(h->b), free(h->iterates);
    free(h->bv), free(h->zbv), free(h->da), free(h->dq), free(h->dk), free(h->dv_);
}

static const double *inverse_of(const nystrom *h)
{
    return h->iterates + h->steps * h->m * h->m;
}

static void clear_padded(const nystrom *h, double *y)
{
    for (int64_t i = 0; h->query_there && i < h->n * h->dv; i++)
        y[i] = h->query_there[i / h->dv] ? y[i] : 0;
}

/* Adds the residual: V convolved over tokens, or, for gradients, dY with the filter reversed. */
static void convolve(const nystrom *h, bool reversed, const double *x, double *to)
{
    const atn_tensor *w = &h->c->reference.residual;
    const double *filter = w->data ? (const double *)w->data + h->head * w->rows : NULL;
    for (int64_t i = 0; filter && i < h->n; i++)
        for (int64_t f = 0; f < w->rows; f++) {
            int64_t j = i + (reversed ? w->rows / 2 - f : f - w->rows / 2);
            bool there = j >= 0 && j < h->n && (reversed || !h->key_there || h->key_there[j]);
            for (int64_t c = 0; there && c < h->dv; c++)
                to[i * h->dv + c] += filter[f] * x[j * h->dv + c];
        }
    for (int64_t i = 0; filter && reversed && h->key_there && i < h->keys * h->dv; i++)
        to[i] = h->key_there[i / h->dv] ? to[i] : 0;
}

static void head_output(nystrom *h, double *y)
{
    bool transposed = h->form->nystrom == NYSTROM_INVERSE_TRANSPOSED;
    h->bv = room(h->m * h->dv), h->zbv = room(h->m * h->dv);
    invert(h);
    multiply_matrices(false, false, h->m, h->dv, h->keys, 1, h->b, h->v, 0, h->bv);
    if (h->form->nystrom == NYSTROM_NO_INVERSE)
        memcpy(h->zbv, h->bv, (size_t)(h->m * h->dv) * sizeof *h->bv);
    else
        multiply_matrices(transposed, false, h->m, h->dv, h->m, 1, inverse_of(h), h->bv, 0, h->zbv);
    multiply_matrices(false, false, h->n, h->dv, h->m, 1, h->f, h->zbv, 0, y);
    convolve(h, false, h->v, y);
    clear_padded(h, y);
}

/* All of the gradient except the part through A. Returns the derivative by the norm. */
static double head_gradient(nystrom *h, const double *dout)
{
    int64_t m = h->m, n = h->n, keys = h->keys, d = h->d, dv = h->dv;
    nystrom_form form = h->form->nystrom;
    bool transposed = form == NYSTROM_INVERSE_TRANSPOSED, none = form == NYSTROM_NO_INVERSE;
    double *dy = room(n * dv), *df = room(n * m), *dzbv = room(m * dv), *dbv = room(m * dv);
    double *dz = room(m * m), *db = room(m * keys), dnorm = 0;
    double *dq_means = room(m * d), *dk_means = room(m * d);
    h->dq = room(n * d), h->dk = room(keys * d), h->dv_ = room(keys * dv), h->da = room(m * m);
    memcpy(dy, dout, (size_t)(n * dv) * sizeof *dy);
    clear_padded(h, dy);
    multiply_matrices(false, true, n, m, dv, 1, dy, h->zbv, 0, df);
    multiply_matrices(true, false, m, dv, n, 1, h->f, dy, 0, dzbv);
    if (none)
        memcpy(dbv, dzbv, (size_t)(m * dv) * sizeof *dbv);
    else
        multiply_matrices(!transposed, false, m, dv, m, 1, inverse_of(h), dzbv, 0, dbv);
    multiply_matrices(false, true, m, m, dv, 1, transposed ? h->bv : dzbv,
                      transposed ? dzbv : h->bv, 0, dz);
    multiply_matrices(false, true, m, keys, dv, 1, dbv, h->v, 0, db);
    multiply_matrices(true, false, keys, dv, m, 1, h->b, dbv, 0, h->dv_);
    convolve(h, true, dy, h->dv_);
    if (!none && form != NYSTROM_DETACH_INVERSE)
        dnorm = invert_backward(h, dz, h->da);
    soft_backward(h, n, m, h->q, h->k_means, h->f, df, h->dq, dk_means);
    soft_backward(h, m, keys, h->q_means, h->k, h->b, db, dq_means, h->dk);
    means_backward(h, n, h->query_there, dq_means, h->dq);
    means_backward(h, keys, h->key_there, dk_means, h->dk);
    free(dk_means), free(dq_means), free(db), free(dz);
    free(dbv), free(dzbv), free(df), free(dy);
    return form == NYSTROM_DETACH_START ? 0 : dnorm;
}

/* The part through A, after the part through the norm has been computed. */
static void bottleneck_gradient(nystrom *h, double dnorm)
{
    double *dq_means = room(h->m * h->d), *dk_means = room(h->m * h->d);
    for (int64_t i = 0; i < h->m; i++)
        h->da[i * h->m + h->norm_column] += dnorm;
    soft_backward(h, h->m, h->m, h->q_means, h->k_means, h->a, h->da, dq_means, dk_means);
    means_backward(h, h->n, h->query_there, dq_means, h->dq);
    means_backward(h, h->keys, h->key_there, dk_means, h->dk);
    free(dk_means), free(dq_means);
}

/* ---- All heads ---- */

bool nystrom_exists(const attention_case *c, const weight_form *form)
{
    const atn_nystromformer_options *o = &c->reference.nystromformer;
    bool whole = o->landmarks == c->shape.tokens && o->landmarks == c->shape.key_tokens;
    return c->reference.op == ATN_NYSTROMFORMER && o->inverse != ATN_NYSTROM_PINV && !whole &&
           o->landmarks > 0 && o->landmarks <= c->shape.tokens &&
           o->landmarks <= c->shape.key_tokens &&
           (form->nystrom != NYSTROM_LONGER_FIRST ||
            c->shape.tokens % o->landmarks + c->shape.key_tokens % o->landmarks > 0);
}

/* Replaces each norm by the largest of the whole batch. Returns the index of the matrix that has
 * it, which receives its gradient. */
static int64_t share_norms(nystrom *all, int64_t heads)
{
    int64_t largest = 0;
    for (int64_t i = 0; i < heads; i++)
        largest = all[i].norm > all[largest].norm ? i : largest;
    for (int64_t i = 0; i < heads; i++)
        all[i].norm = all[largest].norm;
    return largest;
}

void nystrom_answer(const weight_form *form, const subject *s, result_kind kind, double *to)
{
    const attention_case *c = &s->c;
    int64_t heads = c->shape.batch * c->shape.heads, outputs = c->shape.tokens * c->shape.value_dim;
    bool shared = c->reference.nystromformer.inverse == ATN_NYSTROM_ORIGINAL;
    nystrom *all = must_allocate((size_t)heads, sizeof *all);
    double *y = room(outputs), *dnorms = room(heads), sum = 0;
    for (int64_t i = 0; i < heads; i++)
        all[i] = head_start(s, form, i);
    int64_t largest = shared ? share_norms(all, heads) : 0;
    for (int64_t i = 0; i < heads; i++) {
        head_output(&all[i], kind == RESULT_OUTPUT ? to + i * outputs : y);
        if (kind != RESULT_OUTPUT)
            dnorms[i] = head_gradient(&all[i], s->grad_output + i * outputs);
        sum += dnorms[i];
    }
    for (int64_t i = 0; i < heads; i++) {
        nystrom *h = &all[i];
        if (kind != RESULT_OUTPUT)
            bottleneck_gradient(h, !shared ? dnorms[i] : i == largest ? sum : 0);
        int64_t size = result_rows(c, kind) * result_cols(c, kind);
        const double *from = kind == RESULT_TOKENS ? h->dq : kind == RESULT_KEYS ? h->dk : h->dv_;
        for (int64_t j = 0; kind != RESULT_OUTPUT && j < size; j++)
            to[i * size + j] = from[j] + (kind == RESULT_TOKENS && !c->k ? h->dk[j] : 0);
        head_free(h);
    }
    free(dnorms), free(y), free(all);
}
