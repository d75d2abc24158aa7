/* SPDX-License-Identifier: BSD-3-Clause */
/* Softmax attention (Vaswani et al. 2017, Eq. 1) over blocks of queries and keys: a row's maximum
 * and sum are updated block by block (Milakov and Gimelshein 2018), without storing n x n
 * logits.
 *
 * Backward, with P_ij = exp(c (q_i.k_j - largest_i)) / sum_i and dP = dY V^T:
 *   dV = P^T dY,   c dS = c P (dP - pivot - mean),   dQ = c dS K,   dK = c dS^T Q,
 * where mean_i is that of dP_ij - pivot_i with the weights P_ij. Without a pivot it is dY_i.Y_i
 * (Dao et al. 2022); for the pivot see softmax_pivot and is_peaked. With maxima, sums and Y from
 * forward, or computed again, each block of keys is multiplied with all queries, while its
 * gradients stay in a cache. */
#include <string.h>

#include "operators/checks.h"
#include "operators/softmax/cpu.h"

#include "cpu/simd.h"

/* A block of queries is multiplied with a transposed block of keys in strips of rows, so that a
 * tile's columns of keys stay in a first-level cache, and keys and a strip of weights in the
 * second. ROWS is a multiple of six and of eight, the most rows of the tiles of products.c; a last
 * strip may have MOST_ROWS. Rows of transposed keys and of weights are STRIDE numbers apart: of
 * rows 1024 bytes apart the lines of a tile would share four sets of the first-level cache. */
enum { QUERIES = 768, ROWS = 48, MOST_ROWS = 64, KEYS = 1024 / sizeof(real) };
enum { STRIDE = KEYS + SIMD_COLUMNS };
_Static_assert((int)MOST_ROWS <= (int)SOFTMAX_GROUP, "softmax_raise takes no more rows");

/* ---- Memory ---- */

/* What is kept of each query if there is more than one block of keys; the last two by backward. */
typedef struct {
    real *largest; /* q.k; -infinity: no key is seen */
    real *factor;  /* 1 / sum of exp(c (q.k - largest)); 0: no key is seen */
    real *pivot, *mean;
} kept_rows;

/* A thread's: what head_share_pairs needs; a block of keys and values, transposed, a strip of
 * weights and, for backward, of dP; for several blocks also Y of a block of queries with the
 * largest products and the sums of weights (forward_keys), Y of few queries (softmax_backward), and
 * peaked queries (is_peaked), gathered, with weighted sums of V; for one block dK and dV of some
 * queries. */
typedef struct {
    real *keys, *values, *weights, *slopes;
    real *y, *largest, *weight_sums, *few_y, *peaked, *sums;
    real *grad_k, *grad_v;
} workspace;

static bool has_several_blocks(int64_t n_k)
{
    return n_k > KEYS;
}

int64_t R(softmax_state)(int64_t n, int64_t n_k)
{
    return has_several_blocks(n_k) ? 4 * n : 0;
}

/* With so many keys for each query there are more groups of keys than groups of HEAD_BLOCK queries.
 */
enum { KEYS_PER_QUERY = SUM_GROUP / HEAD_BLOCK };

/* Rows of the Y of has_few_queries, at most. */
static int64_t few_rows(int64_t n, int64_t n_k)
{
    return n_k > SUM_GROUP ? head_smaller(head_smaller(QUERIES, n), n_k / KEYS_PER_QUERY) : 0;
}

int64_t R(softmax_reals)(int64_t n, int64_t n_k, int64_t d, int64_t dv)
{
    int64_t block = STRIDE * (d + dv) + 2 * STRIDE * MOST_ROWS;
    if (!has_several_blocks(n_k))
        return block + (n > SUM_GROUP ? KEYS * (d + dv) : 0);
    return R(pair_reals)(n, KEYS, d) + block + head_smaller(QUERIES, n) * (dv + 2) +
           few_rows(n, n_k) * dv + MOST_ROWS * (d + dv);
}

/* Null where nothing is kept. */
static kept_rows rows_of(const head *h)
{
    real *first = h->state + h->first;
    if (!has_several_blocks(h->key_length))
        return (kept_rows){0};
    return (kept_rows){first, first + h->length, first + 2 * h->length, first + 3 * h->length};
}

static workspace split(const head *h)
{
    real *free = h->work;
    int64_t queries = head_smaller(QUERIES, h->length);
    if (has_several_blocks(h->key_length))
        head_take(&free, R(pair_reals)(h->length, KEYS, h->d));
    workspace w = {.keys = head_take(&free, STRIDE * h->d),
                   .values = head_take(&free, STRIDE * h->dv)};
    w.weights = head_take(&free, STRIDE * MOST_ROWS);
    w.slopes = head_take(&free, STRIDE * MOST_ROWS);
    if (!has_several_blocks(h->key_length) && h->length > SUM_GROUP) {
        w.grad_k = head_take(&free, KEYS * h->d);
        w.grad_v = head_take(&free, KEYS * h->dv);
    }
    if (!has_several_blocks(h->key_length))
        return w;
    w.y = head_take(&free, queries * h->dv);
    w.few_y = head_take(&free, few_rows(h->length, h->key_length) * h->dv);
    w.largest = head_take(&free, queries);
    w.weight_sums = head_take(&free, queries);
    w.peaked = head_take(&free, MOST_ROWS * h->d);
    w.sums = head_take(&free, MOST_ROWS * h->dv);
    return w;
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t n = shape->tokens, n_k = shape->key_tokens;
    (void)desc;
    *thread_reals = R(softmax_reals)(n, n_k, shape->dim, shape->value_dim);
    *head_reals = R(softmax_state)(n, n_k);
}

/* ---- Blocks ---- */

/* A block of keys: K^T and, for backward, V^T, with columns padded to a multiple of
 * SIMD_COLUMNS. */
typedef struct {
    int64_t first, count, width;
    real *keys, *values;
} key_block;

/* The next block of keys, transposed; false: the queries up to `last` see no more keys. */
static bool next_keys(const head *h, int64_t last, bool values, const workspace *w, key_block *k)
{
    k->first += k->count;
    if (k->first >= h->n_k || !head_sees(h, last, k->first))
        return false;
    k->count = head_smaller(KEYS, h->n_k - k->first);
    k->width = whole_vectors(k->count) == KEYS ? STRIDE : whole_vectors(k->count);
    k->keys = w->keys;
    k->values = w->values;
    R(simd).transpose(k->count, h->d, h->k + k->first * h->k_stride, h->k_stride, k->keys,
                      k->width);
    if (values)
        R(simd).transpose(k->count, h->dv, h->v + k->first * h->v_stride, h->v_stride, k->values,
                          k->width);
    return true;
}

/* The number of rows of the next strip, of those that are left. */
static int64_t strip_rows(int64_t left)
{
    return left <= MOST_ROWS ? left : ROWS;
}

/* The part of a block that a query sees, and with it all queries before it. */
static key_block visible_keys(const head *h, int64_t last, const key_block *k)
{
    key_block visible = *k;
    visible.count = head_keys_seen(h, last, k->first, k->count);
    return visible;
}

/* x_i.y_j for some rows of `inner` numbers, y being the transposed keys or values of a block: out
 * has rows of STRIDE, and columns beyond the block's keys are 0. */
static product_terms products_of(int64_t rows, int64_t inner, const real *x, int64_t stride,
                                 const key_block *k, const real *transposed, real *out)
{
    return real_terms(CblasNoTrans, CblasNoTrans, rows, whole_vectors(k->count), inner, x, stride,
                      transposed, k->width, 0, out, STRIDE);
}

/* How many keys of a block each of some queries sees. */
static void count_seen(const head *h, int64_t first, int64_t rows, const key_block *k,
                       int64_t *seen)
{
    for (int64_t i = 0; i < rows; i++)
        seen[i] = head_keys_seen(h, first + i, k->first, k->count);
}

static void clear_rest(int64_t from, int64_t to, real *row)
{
    for (int64_t j = from; j < to; j++)
        row[j] = 0;
}

/* ---- Forward ---- */

/* A block of queries and the state of their softmax after the keys seen so far. Sums are relative
 * to exp(c largest). */
typedef struct {
    int64_t first, count;
    real largest[QUERIES]; /* q.k; -infinity: no key seen */
    double sum[QUERIES];   /* of the weights */
    real *out;             /* of the block */
    int64_t stride;
} queries;

static void open_queries(queries *b)
{
    for (int64_t i = 0; i < b->count; i++) {
        b->largest[i] = -(real)INFINITY;
        b->sum[i] = 0;
    }
}

/* A strip of a block's queries, from `row` on, and a block of keys, of which the first one writes
 * `out`. Each step runs over all rows, which are independent of each other. Q and Y are prefetched
 * only for a single block of keys: several use them again and again, while they are in a cache, and
 * what was prefetched would take the first-level cache from the keys and the weights. */
static void forward_strip(const head *h, queries *b, int64_t row, int64_t rows, const key_block *k,
                          real *weights)
{
    const real *q = h->q + (b->first + row) * h->q_stride;
    double c = core_logit_scale(h->desc, h->d), sums[MOST_ROWS], shrink[MOST_ROWS];
    key_block visible = visible_keys(h, b->first + row + rows - 1, k);
    real *largest = b->largest + row, *out = b->out + row * b->stride;
    int64_t seen[MOST_ROWS];
    bool add = k->first > 0, several = has_several_blocks(h->key_length);
    if (visible.count == 0) {
        if (!add)
            head_clear_rows(rows, h->dv, out, b->stride);
        return;
    }
    real_gemm_ahead(products_of(rows, h->d, q, h->q_stride, &visible, visible.keys, weights),
                    several ? NULL : real_next(q, rows, h->d, h->q_stride), NULL);
    count_seen(h, b->first + row, rows, &visible, seen);
    R(softmax_raise)(rows, seen, c, weights, STRIDE, largest, shrink);
    R(simd).exponential_rows(rows, seen, c, largest, weights, STRIDE, weights, STRIDE, sums);
    for (int64_t i = 0; i < rows; i++) {
        b->sum[row + i] = b->sum[row + i] * shrink[i] + sums[i];
        clear_rest(seen[i], visible.count, weights + i * STRIDE);
        if (add && shrink[i] != 1) /* not 1: few rows, and only they need a call */
            R(scale_row)(h->dv, shrink[i], out + i * b->stride);
    }
    R(store)(h->desc->storage, rows, visible.count, weights, STRIDE);
    real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, rows, h->dv, visible.count, weights,
                               STRIDE, h->v + k->first * h->v_stride, h->v_stride, add, out,
                               b->stride),
                    several ? NULL : real_next(out, rows, h->dv, b->stride), NULL);
}

/* A block of queries and all keys. */
static void attend_keys(const head *h, queries *b, const workspace *w)
{
    int64_t last = b->first + b->count - 1;
    key_block k = {0};
    open_queries(b);
    if (!next_keys(h, last, false, w, &k)) {
        head_clear_rows(b->count, h->dv, b->out, b->stride);
        return;
    }
    do {
        for (int64_t row = 0, rows; (rows = strip_rows(b->count - row)) > 0; row += rows)
            forward_strip(h, b, row, rows, &k, w->weights);
    } while (next_keys(h, last, false, w, &k));
}

/* Y, and what is kept of the queries. */
static void close_queries(const head *h, const queries *b)
{
    kept_rows kept = rows_of(h);
    for (int64_t i = 0; i < b->count; i++) {
        double factor = b->sum[i] != 0 ? 1 / b->sum[i] : 0; /* 0: no key seen, a row of 0 */
        if (b->sum[i] != 0)
            R(scale_row)(h->dv, factor, b->out + i * b->stride);
        if (kept.largest) {
            kept.largest[b->first + i] = b->largest[i];
            kept.factor[b->first + i] = (real)factor;
        }
    }
}

static void attend(const head *h, int64_t first, int64_t count, const workspace *w, real *out,
                   int64_t stride)
{
    queries b = {.first = first, .count = count, .out = out, .stride = stride};
    attend_keys(h, &b, w);
    close_queries(h, &b);
}

static void forward_part(const void *own, const head *h, int64_t first, int64_t count)
{
    workspace w = split(h);
    (void)own;
    for (int64_t i = first; i < first + count; i += QUERIES) {
        int64_t some = head_smaller(QUERIES, first + count - i);
        real *out = h->out + i * h->out_stride;
        attend(h, i, some, &w, out, h->out_stride);
        head_finish_rows(h, i, some);
    }
}

/* Whether threads share the keys and not the queries, as of one query of a long text, or of
 * nystromformer's landmarks. */
static bool has_few_queries(const head *h)
{
    return 0 < h->n && h->n <= QUERIES && KEYS_PER_QUERY * h->n <= h->n_k && h->n_k > SUM_GROUP;
}

/* All queries and a group of keys. */
static void forward_keys(const void *own, const head *h, int64_t first, int64_t count)
{
    workspace w = split(h);
    queries b = {.count = h->n, .out = w.y, .stride = h->dv};
    head group = *h;
    (void)own;
    group.first_key = first;
    group.n_k = count;
    group.k += first * h->k_stride;
    group.v += first * h->v_stride;
    attend_keys(&group, &b, &w);
    for (int64_t i = 0; i < b.count; i++) {
        w.largest[i] = b.largest[i];
        w.weight_sums[i] = (real)b.sum[i];
    }
}

/* Adds a group's sums to those of all keys so far, relative to the larger of both maxima. */
static void add_keys(const void *own, const head *h, int64_t first, int64_t count)
{
    queries *all = *(queries *const *)own;
    double c = core_logit_scale(h->desc, h->d);
    workspace w = split(h);
    (void)first, (void)count;
    for (int64_t i = 0; i < all->count; i++) {
        real *restrict out = all->out + i * all->stride, *restrict y = w.y + i * h->dv;
        double above = (double)w.largest[i] - (double)all->largest[i];
        if (w.weight_sums[i] == 0) /* no key is seen; NaN where a product overflowed */
            continue;
        double shrink = above > 0 ? exp(-c * above) : 1, factor = above < 0 ? exp(c * above) : 1;
        for (int64_t e = 0; e < h->dv; e++)
            out[e] = (real)shrink * out[e] + (real)factor * y[e];
        if (above > 0)
            all->largest[i] = w.largest[i];
        all->sum[i] = all->sum[i] * shrink + (double)w.weight_sums[i] * factor;
    }
}

static void attend_few(const head *h, real *out, int64_t stride)
{
    queries all = {.count = h->n, .out = out, .stride = stride}, *own = &all;
    open_queries(&all);
    head_clear_rows(all.count, h->dv, out, stride);
    R(head_share)(h, h->n_k, SUM_GROUP, &own, forward_keys, add_keys);
    close_queries(h, &all);
}

void R(softmax_forward)(const head *h)
{
    if (!has_few_queries(h)) {
        R(head_share_tokens)(h, h->n, NULL, forward_part);
        return;
    }
    attend_few(h, h->out, h->out_stride);
    head_finish_rows(h, 0, h->n);
}

/* ---- Backward ---- */

/* Turns a row's weights, which are exp(c (q.k - largest)), into P, and dP into c dS = c P (dP -
 * pivot - mean), mean being that of dP - pivot. */
static void finish_row(double c, double factor, real pivot, real mean, int64_t seen, int64_t keys,
                       real *weights, real *slopes)
{
    real to_p = (real)factor, scaled = (real)(c * factor);
    for (int64_t j = 0; j < seen; j++) {
        slopes[j] = scaled * weights[j] * (slopes[j] - pivot - mean);
        weights[j] *= to_p;
    }
    clear_rest(seen, keys, weights);
    clear_rest(seen, keys, slopes);
}

/* q.k and dP = dY V^T of a strip. */
static void load_strip(const head *h, int64_t row, int64_t rows, const key_block *k,
                       const workspace *w)
{
    const real *q = h->q + row * h->q_stride, *dy = h->grad_out + row * h->grad_out_stride;
    real_gemm_ahead(products_of(rows, h->d, q, h->q_stride, k, k->keys, w->weights),
                    real_next(q, rows, h->d, h->q_stride),
                    real_next(dy, rows, h->dv, h->grad_out_stride));
    real_gemm_ahead(products_of(rows, h->dv, dy, h->grad_out_stride, k, k->values, w->slopes),
                    real_next(h->grad_q + row * h->grad_q_stride, rows, h->d, h->grad_q_stride),
                    NULL);
}

/* From a strip's P and c dS:   dV += P^T dY, dQ += c dS K, dK += c dS^T Q */
static void add_strip(const head *h, int64_t row, int64_t rows, const key_block *k,
                      const workspace *w)
{
    int64_t keys = k->count;
    real_gemm(CblasTrans, CblasNoTrans, keys, h->dv, rows, w->weights, STRIDE,
              h->grad_out + row * h->grad_out_stride, h->grad_out_stride, 1,
              h->grad_v + k->first * h->grad_v_stride, h->grad_v_stride);
    real_gemm(CblasNoTrans, CblasNoTrans, rows, h->d, keys, w->slopes, STRIDE,
              h->k + k->first * h->k_stride, h->k_stride, 1, h->grad_q + row * h->grad_q_stride,
              h->grad_q_stride);
    real_gemm(CblasTrans, CblasNoTrans, keys, h->d, rows, w->slopes, STRIDE,
              h->q + row * h->q_stride, h->q_stride, 1, h->grad_k + k->first * h->grad_k_stride,
              h->grad_k_stride);
}

/* Where a row of products has its largest; -1: in another block of keys. */
static int64_t place_of_largest(int64_t count, const real *products, real largest)
{
    int64_t at = count > 0 ? R(find)(count, products, largest) : -1;
    return at >= 0 && products[at] == largest ? at : -1;
}

/* With one block of keys, a strip's products are all that its maxima, sums and means need. */
static void backward_one_block(const head *h, const workspace *w)
{
    double c = core_logit_scale(h->desc, h->d), sums[MOST_ROWS];
    key_block k = {0};
    if (!next_keys(h, h->n - 1, true, w, &k))
        return;
    for (int64_t row = 0, rows; (rows = strip_rows(h->n - row)) > 0; row += rows) {
        key_block visible = visible_keys(h, row + rows - 1, &k);
        int64_t seen[MOST_ROWS], at[MOST_ROWS];
        real largest[MOST_ROWS], pivots[MOST_ROWS];
        double factors[MOST_ROWS], means[MOST_ROWS];
        if (visible.count == 0)
            continue;
        load_strip(h, row, rows, &visible, w);
        count_seen(h, row, rows, &visible, seen);
        for (int64_t i = 0; i < rows; i++)
            largest[i] = -(real)INFINITY;
        R(simd).largest_of_rows(rows, seen, w->weights, STRIDE, largest);
        for (int64_t i = 0; i < rows; i++)
            at[i] = place_of_largest(seen[i], w->weights + i * STRIDE, largest[i]);
        R(simd).exponential_rows(rows, seen, c, largest, w->weights, STRIDE, w->weights, STRIDE,
                                 sums);
        for (int64_t i = 0; i < rows; i++) {
            bool sees = at[i] >= 0;
            factors[i] = sees ? 1 / sums[i] : 0;
            pivots[i] =
                sees ? (real)R(softmax_pivot)(factors[i], (double)w->slopes[i * STRIDE + at[i]])
                     : 0;
        }
        R(simd).weighted_rows(rows, seen, w->weights, STRIDE, w->slopes, STRIDE, pivots, means);
        for (int64_t i = 0; i < rows; i++)
            finish_row(c, factors[i], pivots[i], at[i] >= 0 ? (real)(means[i] / sums[i]) : 0,
                       seen[i], visible.count, w->weights + i * STRIDE, w->slopes + i * STRIDE);
        add_strip(h, row, rows, &visible, w);
    }
}

/* Some queries and the one block of keys, whose dK and dV go to the thread's work. A causal
 * head is no longer than the block: one group. */
static void backward_queries(const void *own, const head *h, int64_t first, int64_t count)
{
    workspace w = split(h);
    head group = *h;
    (void)own;
    group.n = count;
    group.q += first * h->q_stride;
    group.grad_out += first * h->grad_out_stride;
    group.grad_q += first * h->grad_q_stride;
    group.grad_k = w.grad_k;
    group.grad_v = w.grad_v;
    group.grad_k_stride = h->d;
    group.grad_v_stride = h->dv;
    memset(w.grad_k, 0, (size_t)(h->n_k * h->d) * sizeof(real));
    memset(w.grad_v, 0, (size_t)(h->n_k * h->dv) * sizeof(real));
    backward_one_block(&group, &w);
}

static void add_queries(const void *own, const head *h, int64_t first, int64_t count)
{
    workspace w = split(h);
    (void)own, (void)first, (void)count;
    head_add_rows(h->n_k, h->d, w.grad_k, h->grad_k, h->grad_k_stride);
    head_add_rows(h->n_k, h->dv, w.grad_v, h->grad_v, h->grad_v_stride);
}

/* Rows whose largest weight P_im is above 1/2 have the pivot dP_im. As the other weights are small,
 * dY.Y would lose the digits of
 *   mean = sum_j P_ij (dP_ij - dP_im) = dY.(sum_j P_ij v_j) - dP_im sum_j P_ij   over j other than
 * m, for which the row's products are computed once more. At exactly 1/2 two keys may have the
 * largest weight; above it, one has, and in one block. */
static bool is_peaked(const kept_rows *kept, int64_t row)
{
    return (double)kept->factor[row] > 0.5;
}

static void measure_peaked(const head *h, const kept_rows *kept, int64_t count, const int64_t *rows,
                           const workspace *w)
{
    double c = core_logit_scale(h->desc, h->d), rest[MOST_ROWS] = {0};
    int64_t largest_at[MOST_ROWS] = {0};
    memset(w->sums, 0, (size_t)(count * h->dv) * sizeof(real));
    for (int64_t i = 0; i < count; i++)
        memcpy(w->peaked + i * h->d, h->q + rows[i] * h->q_stride, (size_t)h->d * sizeof(real));
    for (key_block k = {0}; next_keys(h, rows[count - 1], false, w, &k);) {
        product_terms logits = products_of(count, h->d, w->peaked, h->d, &k, k.keys, w->weights);
        R(simd).product(&logits);
        for (int64_t i = 0; i < count; i++) {
            real *weights = w->weights + i * STRIDE, largest = kept->largest[rows[i]];
            int64_t seen = head_keys_seen(h, rows[i], k.first, k.count);
            int64_t at = place_of_largest(seen, weights, largest);
            R(simd).scaled_exponentials(seen, c, largest, weights);
            if (at >= 0) {
                largest_at[i] = k.first + at;
                weights[at] = 0;
            }
            for (int64_t j = 0; j < seen; j++)
                rest[i] += (double)weights[j];
            clear_rest(seen, k.count, weights);
        }
        real_gemm(CblasNoTrans, CblasNoTrans, count, h->dv, k.count, w->weights, STRIDE,
                  h->v + k.first * h->v_stride, h->v_stride, 1, w->sums, h->dv);
    }
    for (int64_t i = 0; i < count; i++) {
        const real *dy = h->grad_out + rows[i] * h->grad_out_stride;
        double pivot = R(dot)(h->dv, dy, h->v + largest_at[i] * h->v_stride);
        double sum = R(dot)(h->dv, dy, w->sums + i * h->dv) - rest[i] * pivot;
        kept->pivot[rows[i]] = (real)pivot;
        kept->mean[rows[i]] = (real)((double)kept->factor[rows[i]] * sum);
    }
}

/* The pivots and means of some rows, from their Y. */
static void measure(const head *h, const kept_rows *kept, int64_t first, int64_t rows,
                    const real *y, int64_t stride, const workspace *w)
{
    int64_t peaked[MOST_ROWS], count = 0;
    for (int64_t i = first; i < first + rows; i++, y += stride) {
        if (is_peaked(kept, i)) {
            peaked[count++] = i;
        } else {
            kept->pivot[i] = 0;
            kept->mean[i] = (real)R(dot)(h->dv, h->grad_out + i * h->grad_out_stride, y);
        }
        if (count == MOST_ROWS || (count > 0 && i == first + rows - 1)) {
            measure_peaked(h, kept, count, peaked, w);
            count = 0;
        }
    }
}

static void backward_strip(const head *h, const kept_rows *kept, int64_t row, int64_t rows,
                           const key_block *k, const workspace *w)
{
    double c = core_logit_scale(h->desc, h->d);
    key_block visible = visible_keys(h, row + rows - 1, k);
    if (visible.count == 0)
        return;
    load_strip(h, row, rows, &visible, w);
    for (int64_t i = row; i < row + rows; i++) {
        real *weights = w->weights + (i - row) * STRIDE, *slopes = w->slopes + (i - row) * STRIDE;
        int64_t seen = head_keys_seen(h, i, k->first, visible.count);
        if (is_peaked(kept, i)) { /* dP less the pivot is 0 there, without rounding */
            int64_t at = place_of_largest(seen, weights, kept->largest[i]);
            if (at >= 0)
                slopes[at] = kept->pivot[i];
        }
        R(simd).scaled_exponentials(seen, c, kept->largest[i], weights);
        finish_row(c, (double)kept->factor[i], kept->pivot[i], kept->mean[i], seen, visible.count,
                   weights, slopes);
    }
    add_strip(h, row, rows, &visible, w);
}

static void measure_part(const void *own, const head *h, int64_t first, int64_t count)
{
    workspace w = split(h);
    kept_rows kept = rows_of(h);
    (void)own;
    if (h->y) {
        measure(h, &kept, first, count, h->y + first * h->y_stride, h->y_stride, &w);
        return;
    }
    for (int64_t i = first; i < first + count; i += QUERIES) {
        int64_t some = head_smaller(QUERIES, first + count - i);
        attend(h, i, some, &w, w.y, h->dv);
        measure(h, &kept, i, some, w.y, h->dv, &w);
    }
}

static void backward_pairs(const head *h)
{
    workspace w = split(h);
    kept_rows kept = rows_of(h);
    for (key_block k = {0}; next_keys(h, h->n - 1, true, &w, &k);)
        for (int64_t row = 0, rows; (rows = strip_rows(h->n - row)) > 0; row += rows)
            backward_strip(h, &kept, row, rows, &k, &w);
}

/* Means by the Y that forward left, or by one that is computed as forward does. */
static void measure_all(const head *h)
{
    head with_y = *h;
    if (!h->y && has_few_queries(h)) {
        workspace w = split(h);
        attend_few(h, w.few_y, h->dv);
        with_y.y = w.few_y;
        with_y.y_stride = h->dv;
    }
    R(head_share_tokens)(&with_y, h->n, NULL, measure_part);
}

/* With one block of keys, dK may be the same array as dQ only if there is one group of queries. */
_Static_assert((int)KEYS <= (int)SUM_GROUP, "as many queries as keys are one group");

void R(softmax_backward)(const head *h)
{
    if (has_several_blocks(h->key_length)) {
        measure_all(h);
        R(head_share_pairs)(h, KEYS, backward_pairs);
    } else if (h->n > SUM_GROUP) {
        R(head_share)(h, h->n, SUM_GROUP, NULL, backward_queries, add_queries);
    } else if (h->n > 0) {
        workspace w = split(h);
        backward_one_block(h, &w);
    }
}

const head_operator R(cpu_operator_softmax) = {
    .sizes = sizes,
    .forward = R(softmax_forward),
    .backward = R(softmax_backward),
    .shares = HEAD_SHARED,
};
