/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention (Vaswani et al. 2017, Eq. 1) over blocks of queries and keys: a row's maximum
 * and sum are updated block by block (Milakov and Gimelshein 2018), without storing n x n
 * logits. */
#include <string.h>

#include "operators/checks.h"
#include "operators/softmax/cpu.h"

#include "cpu/simd.h"

/* A block of queries is multiplied with a transposed block of keys in strips of rows, so that a
 * tile's columns of keys stay in a first-level cache, and keys and a strip of weights in the
 * second. A last strip may have MOST_ROWS. Threads may share a head in groups of QUERY_GROUP
 * queries. */
enum { QUERIES = 768, ROWS = 32, MOST_ROWS = 48, KEYS = 1024 / sizeof(real), QUERY_GROUP = 64 };
_Static_assert((int)MOST_ROWS <= (int)SOFTMAX_GROUP, "softmax_raise takes no more rows");

/* A block of queries and the state of their softmax after the keys seen so far. Sums are relative
 * to exp(c largest). */
typedef struct {
    int64_t first, count;
    real largest[QUERIES];         /* q.k; -infinity: no key seen */
    int64_t largest_at[QUERIES];   /* the key of the largest */
    double sum[QUERIES];           /* of the weights */
    double largest_slope[QUERIES]; /* backward: dP at largest_at */
    double pivot[QUERIES];         /* backward: see softmax_pivot */
    double slope[QUERIES];         /* backward: the mean of dP - pivot; first its sum */
} queries;

/* A block of keys: K^T and, for backward, V^T, with columns padded to a multiple of
 * SIMD_COLUMNS. */
typedef struct {
    int64_t first, count, width;
    real *keys, *values;
} key_block;

/* What backward keeps of a strip of queries and a block of keys, of at most KEPT_KEYS keys: real
 * numbers alone, as which its memory is aligned. */
enum { KEPT_KEYS = 16384, MOST_KEPT = KEPT_KEYS / KEYS };
typedef struct {
    real weights[MOST_ROWS * KEYS], slopes[MOST_ROWS * KEYS];
    real largest[MOST_ROWS]; /* the maximum that the weights are relative to */
} kept_strip;

static int64_t kept_blocks(int64_t keys)
{
    return keys <= KEPT_KEYS ? (keys + KEYS - 1) / KEYS : 0;
}

/* K^T of a block of keys and a strip of weights; for backward also V^T and a strip of dY V^T, or
 * those of all blocks that it keeps. */
int64_t R(softmax_reals)(int64_t keys, int64_t d, int64_t dv)
{
    int64_t block = KEYS * (d + dv), kept = (int64_t)(sizeof(kept_strip) / sizeof(real));
    int64_t blocks = kept_blocks(keys);
    return blocks > 0 ? blocks * (block + kept) : block + 2 * KEYS * MOST_ROWS;
}

static real *weights_of(const head *h)
{
    return h->work + KEYS * (h->d + h->dv);
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    (void)desc;
    *thread_reals = R(softmax_reals)(shape->key_tokens, shape->dim, shape->value_dim);
    *head_reals = 0;
}

static void open_queries(const head *h, int64_t first, queries *b)
{
    b->first = first;
    b->count = head_smaller(QUERIES, h->n - first);
    for (int64_t i = 0; i < b->count; i++) {
        b->largest[i] = -(real)INFINITY;
        b->largest_at[i] = -1;
        b->sum[i] = b->largest_slope[i] = b->pivot[i] = b->slope[i] = 0;
    }
}

/* The number of rows of the strip that starts at `row`. */
static int64_t strip_rows(const queries *b, int64_t row)
{
    int64_t left = b->count - row;
    return left <= MOST_ROWS ? left : ROWS;
}

/* The next block of keys, transposed, in memory for KEYS (d + dv) numbers; false: the queries up to
 * `last` see no more keys. */
static bool next_keys(const head *h, int64_t last, bool values, real *memory, key_block *k)
{
    k->first += k->count;
    if (k->first >= h->n_k || !head_sees(h, last, k->first))
        return false;
    k->count = head_smaller(KEYS, h->n_k - k->first);
    k->width = whole_vectors(k->count);
    k->keys = memory;
    k->values = memory + KEYS * h->d;
    R(simd).transpose(k->count, h->d, h->k + k->first * h->k_stride, h->k_stride, k->keys,
                      k->width);
    if (values)
        R(simd).transpose(k->count, h->dv, h->v + k->first * h->v_stride, h->v_stride, k->values,
                          k->width);
    return true;
}

/* The part of a block that the last of some rows sees; no other row sees more. */
static key_block visible_keys(const head *h, const queries *b, int64_t row, int64_t rows,
                              const key_block *k)
{
    key_block visible = *k;
    visible.count = head_keys_seen(h, b->first + row + rows - 1, k->first, k->count);
    return visible;
}

static int64_t last_of(const queries *b)
{
    return b->first + b->count - 1;
}

/* q_i.k_j for a strip of queries; columns beyond the keys are 0. */
static void products(const head *h, const queries *b, int64_t row, int64_t rows, const key_block *k,
                     real *out)
{
    real_gemm(CblasNoTrans, CblasNoTrans, rows, whole_vectors(k->count), h->d,
              h->q + (b->first + row) * h->q_stride, h->q_stride, k->keys, k->width, 0, out, KEYS);
}

/* A strip of queries and a block of keys. */
typedef struct {
    int64_t seen[MOST_ROWS];  /* the number of its keys that each query sees */
    double before[MOST_ROWS]; /* the sums over earlier keys, relative to the new maximum */
    double shrink[MOST_ROWS]; /* the factors by which they were rescaled */
} strip;

/* Turns products into weights, 0 for keys that are not seen. Each step runs over all rows, which
 * are independent of each other. places: also stores where the largest are. */
static void advance(const head *h, queries *b, int64_t row, int64_t rows, const key_block *k,
                    bool places, real *products, strip *s)
{
    double c = core_logit_scale(h->desc, h->d), sums[MOST_ROWS];
    real *largest = b->largest + row;
    int64_t at[MOST_ROWS];
    for (int64_t i = 0; i < rows; i++)
        s->seen[i] = head_keys_seen(h, b->first + row + i, k->first, k->count);
    R(softmax_raise)(rows, s->seen, c, products, KEYS, largest, places ? at : NULL, s->shrink);
    R(simd).exponential_rows(rows, s->seen, c, largest, products, KEYS, sums);
    for (int64_t i = 0; i < rows; i++) {
        real *weights = products + i * KEYS;
        if (places && at[i] >= 0)
            b->largest_at[row + i] = k->first + at[i];
        s->before[i] = b->sum[row + i] * s->shrink[i];
        b->sum[row + i] = s->before[i] + sums[i];
        for (int64_t j = s->seen[i]; j < k->count; j++)
            weights[j] = 0;
    }
}

static void forward_strip(const head *h, queries *b, int64_t row, int64_t rows, const key_block *k)
{
    real *weights = weights_of(h), *out = h->out + (b->first + row) * h->out_stride;
    key_block visible = visible_keys(h, b, row, rows, k);
    strip s;
    if (visible.count == 0)
        return;
    products(h, b, row, rows, &visible, weights);
    advance(h, b, row, rows, &visible, false, weights, &s);
    for (int64_t i = 0; i < rows; i++)
        if (s.shrink[i] != 1) /* most rows, which need no call */
            R(scale_row)(h->dv, s.shrink[i], out + i * h->out_stride);
    R(store)(h->desc->storage, rows, visible.count, weights, KEYS);
    real_gemm(CblasNoTrans, CblasNoTrans, rows, h->dv, visible.count, weights, KEYS,
              h->v + k->first * h->v_stride, h->v_stride, 1, out, h->out_stride);
}

static void forward_block(const head *h, queries *b)
{
    real *out = h->out + b->first * h->out_stride;
    for (int64_t i = 0; i < b->count; i++)
        memset(out + i * h->out_stride, 0, (size_t)h->dv * sizeof(real));
    for (key_block k = {0}; next_keys(h, last_of(b), false, h->work, &k);)
        for (int64_t row = 0, rows; (rows = strip_rows(b, row)) > 0; row += rows)
            forward_strip(h, b, row, rows, &k);
    for (int64_t i = 0; i < b->count; i++)
        if (b->sum[i] != 0) /* 0: no key seen, a row of 0 */
            R(scale_row)(h->dv, 1 / b->sum[i], out + i * h->out_stride);
}

void R(softmax_forward)(const head *h)
{
    queries b;
    for (int64_t i = 0; i < h->n; i += QUERIES) {
        open_queries(h, i, &b);
        forward_block(h, &b);
    }
    R(store)(h->desc->storage, h->n, h->dv, h->out, h->out_stride);
}

/* dP = dY V^T */
static void weight_gradients(const head *h, const queries *b, int64_t row, int64_t rows,
                             const key_block *k, real *out)
{
    real_gemm(CblasNoTrans, CblasNoTrans, rows, whole_vectors(k->count), h->dv,
              h->grad_out + (b->first + row) * h->grad_out_stride, h->grad_out_stride, k->values,
              k->width, 0, out, KEYS);
}

/* One row of `measure`, for the weights and dP of a block's keys, of which the row's sum has the
 * weights already. */
static void measure_row(queries *b, int64_t row, const key_block *k, int64_t seen, double before,
                        double shrink, const real *weights, const real *slopes)
{
    if (b->largest_at[row] >= k->first)
        b->largest_slope[row] = (double)slopes[b->largest_at[row] - k->first];
    double pivot = R(softmax_pivot)(1 / b->sum[row], b->largest_slope[row]);
    b->slope[row] = b->slope[row] * shrink + before * (b->pivot[row] - pivot);
    b->pivot[row] = pivot;
    b->slope[row] += R(softmax_slope)(seen, weights, slopes, (real)pivot);
}

/* Computes products and dP of a strip; false if it sees none of the keys. */
static bool load_strip(const head *h, const queries *b, int64_t row, int64_t rows,
                       const key_block *visible, real *weights, real *slopes)
{
    if (visible->count == 0)
        return false;
    products(h, b, row, rows, visible, weights);
    weight_gradients(h, b, row, rows, visible, slopes);
    return true;
}

/* `measure` for a loaded strip, whose products become weights. */
static void measure_strip(const head *h, queries *b, int64_t row, int64_t rows, const key_block *k,
                          real *weights, const real *slopes)
{
    strip s;
    advance(h, b, row, rows, k, true, weights, &s);
    for (int64_t i = 0; i < rows; i++)
        if (s.seen[i] > 0)
            measure_row(b, row + i, k, s.seen[i], s.before[i], s.shrink[i], weights + i * KEYS,
                        slopes + i * KEYS);
}

/* After all keys. */
static void finish_measure(queries *b, int64_t row, int64_t rows)
{
    for (int64_t i = row; i < row + rows; i++)
        if (b->sum[i] != 0)
            b->slope[i] /= b->sum[i];
}

/* The maxima and sums of all rows, and pivot + slope = sum_j P_ij dP_ij = dY_i.Y_i, without Y (Dao
 * et al. 2022). */
static void measure(const head *h, queries *b)
{
    real *weights = weights_of(h), *slopes = weights + KEYS * MOST_ROWS;
    for (key_block k = {0}; next_keys(h, last_of(b), true, h->work, &k);)
        for (int64_t row = 0, rows; (rows = strip_rows(b, row)) > 0; row += rows) {
            key_block visible = visible_keys(h, b, row, rows, &k);
            if (load_strip(h, b, row, rows, &visible, weights, slopes))
                measure_strip(h, b, row, rows, &visible, weights, slopes);
        }
    finish_measure(b, 0, b->count);
}

/* Turns a measured row's weights, which are exp(c (q.k - largest)) / shrink, into P, and dP into
 * c dS = c P (dP - mean). */
static void finish_row(double c, const queries *b, int64_t row, double shrink, int64_t seen,
                       int64_t keys, real *weights, real *slope)
{
    real factor = (real)(shrink / b->sum[row]), scaled = (real)(c * shrink / b->sum[row]),
         pivot = (real)b->pivot[row], mean = (real)b->slope[row];
    for (int64_t j = 0; j < seen; j++) {
        slope[j] = scaled * weights[j] * (slope[j] - pivot - mean);
        weights[j] *= factor;
    }
    for (int64_t j = seen; j < keys; j++)
        weights[j] = slope[j] = 0;
}

/* From a strip's P and c dS:   dV += P^T dY, dQ += c dS K, dK += c dS^T Q */
static void add_strip(const head *h, const queries *b, int64_t row, int64_t rows,
                      const key_block *k, const real *weights, const real *slopes)
{
    int64_t first = b->first + row, keys = k->count;
    real_gemm(CblasTrans, CblasNoTrans, keys, h->dv, rows, weights, KEYS,
              h->grad_out + first * h->grad_out_stride, h->grad_out_stride, 1,
              h->grad_v + k->first * h->grad_v_stride, h->grad_v_stride);
    real_gemm(CblasNoTrans, CblasNoTrans, rows, h->d, keys, slopes, KEYS,
              h->k + k->first * h->k_stride, h->k_stride, 1, h->grad_q + first * h->grad_q_stride,
              h->grad_q_stride);
    real_gemm(CblasTrans, CblasNoTrans, keys, h->d, rows, slopes, KEYS, h->q + first * h->q_stride,
              h->q_stride, 1, h->grad_k + k->first * h->grad_k_stride, h->grad_k_stride);
}

static void backward_strip(const head *h, const queries *b, int64_t row, int64_t rows,
                           const key_block *k)
{
    double c = core_logit_scale(h->desc, h->d);
    real *weights = weights_of(h), *slopes = weights + KEYS * MOST_ROWS;
    key_block visible = visible_keys(h, b, row, rows, k);
    if (!load_strip(h, b, row, rows, &visible, weights, slopes))
        return;
    k = &visible;
    for (int64_t i = 0; i < rows; i++) {
        int64_t seen = head_keys_seen(h, b->first + row + i, k->first, k->count);
        R(simd).scaled_exponentials(seen, c, b->largest[row + i], weights + i * KEYS);
        finish_row(c, b, row + i, 1, seen, k->count, weights + i * KEYS, slopes + i * KEYS);
    }
    add_strip(h, b, row, rows, k, weights, slopes);
}

static void backward_block(const head *h, queries *b)
{
    measure(h, b);
    for (key_block k = {0}; next_keys(h, last_of(b), true, h->work, &k);)
        for (int64_t row = 0, rows; (rows = strip_rows(b, row)) > 0; row += rows)
            backward_strip(h, b, row, rows, &k);
}

/* ---- Up to KEPT_KEYS keys: what is measured of a strip is kept, so that both products and exp are
 * computed once, five products in all instead of seven ---- */

static void measure_kept(const head *h, queries *b, int64_t row, int64_t rows,
                         const key_block *visible, kept_strip *kept)
{
    if (load_strip(h, b, row, rows, visible, kept->weights, kept->slopes))
        measure_strip(h, b, row, rows, visible, kept->weights, kept->slopes);
    memcpy(kept->largest, b->largest + row, (size_t)rows * sizeof(real));
}

static void backward_kept(const head *h, const queries *b, int64_t row, int64_t rows,
                          const key_block *k, kept_strip *kept)
{
    double c = core_logit_scale(h->desc, h->d);
    if (k->count == 0)
        return;
    for (int64_t i = 0; i < rows; i++) {
        int64_t seen = head_keys_seen(h, b->first + row + i, k->first, k->count);
        double raised = (double)b->largest[row + i] - (double)kept->largest[i];
        double shrink = seen > 0 && raised > 0 ? exp(-c * raised) : 1; /* by keys of later blocks */
        finish_row(c, b, row + i, shrink, seen, k->count, kept->weights + i * KEYS,
                   kept->slopes + i * KEYS);
    }
    add_strip(h, b, row, rows, k, kept->weights, kept->slopes);
}

static void backward_all_kept(const head *h)
{
    kept_strip *kept = (kept_strip *)h->work;
    real *memory = (real *)(kept + kept_blocks(h->key_length));
    key_block blocks[MOST_KEPT], visible[MOST_KEPT], k = {0};
    queries b;
    int count = 0;
    for (; next_keys(h, h->n - 1, true, memory, &k); memory += KEYS * (h->d + h->dv))
        blocks[count++] = k;
    for (int64_t i = 0; i < h->n; i += QUERIES) {
        open_queries(h, i, &b);
        for (int64_t row = 0, rows; (rows = strip_rows(&b, row)) > 0; row += rows) {
            for (int n = 0; n < count; n++) {
                visible[n] = visible_keys(h, &b, row, rows, &blocks[n]);
                measure_kept(h, &b, row, rows, &visible[n], &kept[n]);
            }
            finish_measure(&b, row, rows);
            for (int n = 0; n < count; n++)
                backward_kept(h, &b, row, rows, &visible[n], &kept[n]);
        }
    }
}

void R(softmax_backward)(const head *h)
{
    queries b;
    if (h->n > 0 && kept_blocks(h->key_length) > 0) { /* as `work` was sized */
        backward_all_kept(h);
        return;
    }
    for (int64_t i = 0; i < h->n; i += QUERIES) {
        open_queries(h, i, &b);
        backward_block(h, &b);
    }
}

const head_operator R(cpu_operator_softmax) = {
    .sizes = sizes,
    .forward = R(softmax_forward),
    .backward = R(softmax_backward),
    .query_group = QUERY_GROUP,
};
