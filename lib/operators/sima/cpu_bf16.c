/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA (Eq. 1-2) in bf16, forward, channels first: Y = Q W, W = D_Q^-1 (D_K^-1 K^T V), where D_Q
 * and D_K hold the norms of the columns. S = K^T V is in f32 and W is rounded to bf16. Norms are
 * in double; an l1 norm adds up f32 sums of a block of rows. */
#include <string.h>

#include "cpu/bf16.h"
#include "cpu/heads.h"
#include "operators/norms/cpu.h"
#include "operators/sima/plan.h"

/* A thread's memory. */
typedef struct {
    int64_t width, even;          /* dv in whole vectors; d, or d + 1 if it is odd */
    double *queries, *keys;       /* the norms, whole_vectors(d) each */
    float *state, *out;           /* S: d x width; a block of Y: HEAD_BLOCK x width */
    bf16_pair *left, *right;      /* of a block of K and of V: HEAD_BLOCK / 2 x d or width */
    bf16_pair *weights;           /* of W: even / 2 x width */
    real *rounded_state, *tokens; /* W: d x width; a block of Q or K: HEAD_BLOCK x even */
} memory;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc;
    int64_t d = shape->dim, width = whole_vectors(shape->value_dim), even = 2 * bf16_pairs(d);
    int64_t words = 4 * whole_vectors(d) + (d + HEAD_BLOCK) * width + HEAD_BLOCK / 2 * (d + width) +
                    even / 2 * width;
    *thread_reals = 2 * words + d * width + HEAD_BLOCK * even;
    *head_reals = 0;
}

static memory memory_of(const head *h)
{
    memory m = {.width = whole_vectors(h->dv), .even = 2 * bf16_pairs(h->d)};
    m.queries = (double *)h->work;
    m.keys = m.queries + whole_vectors(h->d);
    m.state = (float *)(m.keys + whole_vectors(h->d));
    m.out = m.state + h->d * m.width;
    m.left = (bf16_pair *)(m.out + HEAD_BLOCK * m.width);
    m.right = m.left + HEAD_BLOCK / 2 * h->d;
    m.weights = m.right + HEAD_BLOCK / 2 * m.width;
    m.rounded_state = (real *)(m.weights + m.even / 2 * m.width);
    m.tokens = m.rounded_state + h->d * m.width;
    return m;
}

/* The norms of the columns of X. Returns whether products of X itself with V or W can be divided by
 * them instead of X. */
static bool find_norms(const head *h, int64_t n, const real *x, int64_t stride, double *norms)
{
    const atn_sima_options *o = &h->desc->sima;
    bool moderate = true;
    double varies;
    memset(norms, 0, (size_t)h->d * sizeof *norms);
    if (o->norm != ATN_SIMA_NONE)
        R(add_magnitudes)(o->norm == ATN_SIMA_L1, n, h->d, x, stride, norms);
    for (int64_t e = 0; e < h->d; e++) {
        if (o->norm == ATN_SIMA_L2)
            norms[e] = sqrt(norms[e]);
        norms[e] = o->norm == ATN_SIMA_NONE ? 1 : core_norm_divisor(norms[e], o->epsilon, &varies);
        moderate = moderate && (o->norm == ATN_SIMA_NONE || norm_is_moderate(norms[e], n));
    }
    return moderate;
}

/* A block of X, divided by its norms and rounded again unless `as_is`; rows are `even` long, padded
 * with 0. */
static const real *load(const head *h, const memory *m, int64_t rows, const real *x,
                        int64_t *stride, bool as_is, const double *norms)
{
    if (as_is && h->d == m->even)
        return x;
    for (int64_t i = 0; i < rows; i++) {
        real *row = m->tokens + i * m->even;
        memcpy(row, x + i * *stride, (size_t)h->d * sizeof *row);
        memset(row + h->d, 0, (size_t)(m->even - h->d) * sizeof *row);
        for (int64_t first = 0; !as_is && first < h->d; first += HEAD_BLOCK) {
            int64_t count = head_smaller(HEAD_BLOCK, h->d - first);
            float divided[HEAD_BLOCK];
            for (int64_t e = 0; e < count; e++)
                divided[e] = (float)((double)core_bf16_value(row[first + e]) / norms[first + e]);
            R(narrow)(count, divided, row + first);
        }
    }
    *stride = m->even;
    return m->tokens;
}

/* S = K^T V */
static void sum_state(const head *h, const memory *m, bool as_is)
{
    memset(m->state, 0, (size_t)(h->d * m->width) * sizeof *m->state);
    for (int64_t j = 0; j < h->n_k; j += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, h->n_k - j), stride = h->k_stride;
        const real *k = load(h, m, rows, h->k + j * h->k_stride, &stride, as_is, m->keys);
        R(pair_rows)(rows, h->d, k, stride, m->left, h->d);
        R(pair_rows)(rows, h->dv, h->v + j * h->v_stride, h->v_stride, m->right, m->width);
        R(multiply_pairs)
        (&(bf16_terms){h->d, m->width, bf16_pairs(rows), (const real *)m->left, 2, 2 * h->d,
                       m->right, m->width, true, m->state, m->width});
    }
}

static bool all_finite(int64_t count, const float *x)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static void forward(const head *h)
{
    memory m = memory_of(h);
    bool queries_as_is = find_norms(h, h->n, h->q, h->q_stride, m.queries);
    bool keys_as_is = find_norms(h, h->n_k, h->k, h->k_stride, m.keys);
    sum_state(h, &m, keys_as_is);
    if (keys_as_is && !all_finite(h->d * m.width, m.state)) {
        keys_as_is = false;
        sum_state(h, &m, false);
    }
    for (int64_t c = 0; c < h->d; c++) {
        float *row = m.state + c * m.width;
        double divisor = (keys_as_is ? m.keys[c] : 1) * (queries_as_is ? m.queries[c] : 1);
        for (int64_t e = 0; e < m.width; e++)
            row[e] = (float)((double)row[e] / divisor);
        R(narrow)(m.width, row, m.rounded_state + c * m.width);
    }
    R(pair_rows)(h->d, m.width, m.rounded_state, m.width, m.weights, m.width);
    for (int64_t i = 0; i < h->n; i += HEAD_BLOCK) {
        int64_t rows = head_smaller(HEAD_BLOCK, h->n - i), stride = h->q_stride;
        const real *q =
            load(h, &m, rows, h->q + i * h->q_stride, &stride, queries_as_is, m.queries);
        R(multiply_pairs)
        (&(bf16_terms){rows, m.width, bf16_pairs(h->d), q, stride, 2, m.weights, m.width, false,
                       m.out, m.width});
        bool dense = h->out_stride == h->dv && h->dv == m.width; /* one long row */
        int64_t lines = dense ? 1 : rows, length = dense ? rows * m.width : h->dv;
        for (int64_t r = 0; r < lines; r++)
            R(narrow)(length, m.out + r * m.width, h->out + (i + r) * h->out_stride);
        head_finish_rows(h, i, rows);
    }
}

const head_operator R(cpu_operator_sima) = {.sizes = sizes, .forward = forward, .propagates = true};
