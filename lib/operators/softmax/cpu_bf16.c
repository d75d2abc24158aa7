/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention in bf16, forward: as operators/softmax/cpu.c, with logits and sums in f32 and
 * weights exp(c (q.k - largest)) rounded to bf16. */
#include <string.h>

#include "cpu/bf16.h"
#include "cpu/heads.h"
#include "operators/checks.h"

/* What belongs to a strip of queries and a block of keys stays in a second-level cache; a block of
 * queries shares the pairs made of the keys and values. The 16 rows of an AMX tile, which are
 * STRIDE numbers apart, fall into different sets of the first-level cache. Groups of queries that
 * threads take are whole strips, so that their number changes no bit. */
enum { QUERIES = 384, ROWS = 64, KEYS = 1024, STRIDE = KEYS + 32 };
_Static_assert(HEAD_BLOCK % ROWS == 0 && QUERIES % ROWS == 0 && KEYS % 2 == 0, "as said above");

/* A thread's memory. */
typedef struct {
    int64_t width;            /* dv in whole vectors */
    bf16_pair *keys, *values; /* of a block: bf16_pairs(d) x STRIDE, KEYS / 2 x width */
    float *logits, *sums;     /* of a strip: ROWS x STRIDE; of a block: QUERIES x width */
    real *weights;            /* of a strip: ROWS x STRIDE */
    real *padded;             /* odd d: a block of queries, QUERIES x (d + 1) */
} memory;

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc;
    int64_t d = shape->dim, width = whole_vectors(shape->value_dim);
    int64_t words = bf16_pairs(d) * STRIDE + KEYS / 2 * width + ROWS * STRIDE + QUERIES * width;
    *thread_reals = 2 * words + ROWS * STRIDE + d % 2 * QUERIES * (d + 1);
    *head_reals = 0;
}

static memory memory_of(const head *h)
{
    memory m = {.width = whole_vectors(h->dv)};
    m.keys = (bf16_pair *)h->work;
    m.values = m.keys + bf16_pairs(h->d) * STRIDE;
    m.logits = (float *)(m.values + KEYS / 2 * m.width);
    m.sums = m.logits + ROWS * STRIDE;
    m.weights = (real *)(m.sums + QUERIES * m.width);
    m.padded = m.weights + ROWS * STRIDE;
    return m;
}

/* A block of queries. Sums are relative to exp(c largest). */
typedef struct {
    int64_t first, count;
    const real *rows; /* of pairs, row_stride apart */
    int64_t row_stride;
    float largest[QUERIES]; /* q.k; -infinity: no key seen */
    double sum[QUERIES];    /* of the weights */
} queries;

static void open_queries(const head *h, const memory *m, int64_t first, int64_t count, queries *b)
{
    b->first = first;
    b->count = count;
    b->rows = h->q + first * h->q_stride;
    b->row_stride = h->q_stride;
    for (int64_t i = 0; i < b->count; i++) {
        b->largest[i] = -INFINITY;
        b->sum[i] = 0;
    }
    memset(m->sums, 0, (size_t)(b->count * m->width) * sizeof *m->sums);
    if (h->d % 2 == 0)
        return;
    for (int64_t i = 0; i < b->count; i++) {
        real *row = m->padded + i * (h->d + 1);
        memcpy(row, b->rows + i * b->row_stride, (size_t)h->d * sizeof *row);
        row[h->d] = 0;
    }
    b->rows = m->padded;
    b->row_stride = h->d + 1;
}

/* Adds a block of keys to the sums of one strip, `row` to row + rows. */
static void add_strip(const head *h, const memory *m, queries *b, int64_t row, int64_t rows,
                      int64_t first, int64_t keys)
{
    double c = core_logit_scale(h->desc, h->d);
    keys = head_keys_seen(h, b->first + row + rows - 1, first, keys); /* no row sees more */
    if (keys == 0)
        return;
    R(multiply_pairs_any_order)
    (&(bf16_terms){rows, whole_vectors(keys), bf16_pairs(h->d), b->rows + row * b->row_stride,
                   b->row_stride, 2, m->keys, STRIDE, false, m->logits, STRIDE});
    for (int64_t i = 0; i < rows; i++) {
        float *logits = m->logits + i * STRIDE, *sums = m->sums + (row + i) * m->width;
        real *weights = m->weights + i * STRIDE;
        int64_t seen = head_keys_seen(h, b->first + row + i, first, keys);
        float before = b->largest[row + i], highest = R(largest_logit)(seen, logits, before);
        if (highest > before) {
            double shrink = exp(c * ((double)before - (double)highest));
            for (int64_t e = 0; e < m->width; e++)
                sums[e] = (float)(sums[e] * shrink);
            b->sum[row + i] *= shrink;
            b->largest[row + i] = highest;
        }
        b->sum[row + i] += R(weigh_logits)(seen, c, highest, logits, weights);
        memset(weights + seen, 0, (size_t)(2 * bf16_pairs(keys) - seen) * sizeof *weights);
    }
    R(multiply_pairs_any_order)
    (&(bf16_terms){rows, m->width, bf16_pairs(keys), m->weights, STRIDE, 2, m->values, m->width,
                   true, m->sums + row * m->width, m->width});
}

static void forward_block(const head *h, const memory *m, int64_t first, int64_t count)
{
    queries b;
    open_queries(h, m, first, count, &b);
    for (int64_t j = 0; j < h->n_k && head_sees(h, first + count - 1, j); j += KEYS) {
        int64_t keys = head_smaller(KEYS, h->n_k - j);
        R(pair_columns)(keys, h->d, h->k + j * h->k_stride, h->k_stride, m->keys, STRIDE);
        R(pair_rows)(keys, h->dv, h->v + j * h->v_stride, h->v_stride, m->values, m->width);
        for (int64_t row = 0; row < count; row += ROWS)
            add_strip(h, m, &b, row, head_smaller(ROWS, count - row), j, keys);
    }
    for (int64_t r = 0; r < count; r++) {
        float *sums = m->sums + r * m->width;
        double reciprocal = b.sum[r] != 0 ? 1 / b.sum[r] : 0; /* no key seen: a row of 0 */
        for (int64_t e = 0; e < h->dv; e++)
            sums[e] = (float)(sums[e] * reciprocal);
        R(narrow)(h->dv, sums, h->out + (first + r) * h->out_stride);
    }
    head_finish_rows(h, first, count);
}

static void forward_part(const void *own, const head *h, int64_t first, int64_t count)
{
    memory m = memory_of(h);
    (void)own;
    for (int64_t i = first; i < first + count; i += QUERIES)
        forward_block(h, &m, i, head_smaller(QUERIES, first + count - i));
}

static void forward(const head *h)
{
    R(head_share_tokens)(h, h->n, NULL, forward_part);
}

const head_operator R(cpu_operator_softmax) = {
    .sizes = sizes,
    .forward = forward,
    .shares = HEAD_SHARED,
};
