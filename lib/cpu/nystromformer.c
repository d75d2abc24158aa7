/* SPDX-License-Identifier: BSD-3-Clause */
/* Nystromformer (Xiong et al. 2021): Y = F Z (B V), as three softmax attentions: tokens to
 * landmarks (F), landmarks among themselves (A, which Z inverts), landmarks to tokens (B). F and B
 * are never held: keys are taken in blocks, with running maxima and sums. */
#include <string.h>

#include "cpu/nystrom.h"
#include "cpu/online_softmax.h"

/* ---- Softmax attention of a few rows to any number of keys ---- */

typedef struct {
    atn_storage storage;
    real c;
    int64_t keys, d, dv;
    const real *k, *v;
    int64_t k_stride, v_stride;
    real *weights, *slopes; /* HEAD_BLOCK x HEAD_BLOCK each */
} attention;

/* Up to HEAD_BLOCK rows, what comes out, and what its softmax was divided by: row i's weights are
 * exp(logit - peaks[i]) inverses[i]. */
typedef struct {
    int64_t count;
    const real *x;
    int64_t x_stride;
    real *out;
    int64_t out_stride;
    real *peaks, *inverses;
} attending;

/* weights = c X K^T for keys j .. j + keys - 1 */
static void logits(const attention *a, const attending *r, int64_t j, int64_t keys)
{
    real_gemm(CblasNoTrans, CblasTrans, r->count, keys, a->d, r->x, r->x_stride,
              a->k + j * a->k_stride, a->k_stride, 0, a->weights, HEAD_BLOCK);
    for (int64_t i = 0; i < r->count; i++)
        for (int64_t l = 0; l < keys; l++)
            a->weights[i * HEAD_BLOCK + l] *= a->c;
}

/* out = softmax(c X K^T) V; zeros where there are no keys. */
static void attend(const attention *a, const attending *r)
{
    double sums[HEAD_BLOCK] = {0};
    for (int64_t i = 0; i < r->count; i++) {
        r->peaks[i] = -INFINITY;
        memset(r->out + i * r->out_stride, 0, (size_t)a->dv * sizeof(real));
    }
    for (int64_t j = 0; j < a->keys; j += HEAD_BLOCK) {
        int64_t keys = head_smaller(HEAD_BLOCK, a->keys - j);
        logits(a, r, j, keys);
        for (int64_t i = 0; i < r->count; i++)
            online_softmax_row(keys, a->weights + i * HEAD_BLOCK, &r->peaks[i], &sums[i], a->dv,
                               r->out + i * r->out_stride);
        R(store)(a->storage, r->count, keys, a->weights, HEAD_BLOCK);
        real_gemm(CblasNoTrans, CblasNoTrans, r->count, a->dv, keys, a->weights, HEAD_BLOCK,
                  a->v + j * a->v_stride, a->v_stride, 1, r->out, r->out_stride);
    }
    for (int64_t i = 0; i < r->count; i++) {
        r->inverses[i] = a->keys > 0 ? (real)(1 / sums[i]) : 0;
        for (int64_t c = 0; c < a->dv; c++)
            r->out[i * r->out_stride + c] *= r->inverses[i];
    }
    R(store)(a->storage, r->count, a->dv, r->out, r->out_stride);
}

/* Where the derivatives by X, K and V are added up. */
typedef struct {
    const real *grad_out;
    int64_t grad_out_stride;
    real *grad_x, *grad_k, *grad_v;
    int64_t grad_x_stride, grad_k_stride, grad_v_stride;
} attended;

/* slopes: from the derivative by the weights W to that by X K^T, c W_ij (slope_ij - dY_i.Y_i). */
static void logit_slopes(const attention *a, const attending *r, const attended *g, int64_t keys)
{
    for (int64_t i = 0; i < r->count; i++) {
        real mean =
            (real)row_dot(a->dv, g->grad_out + i * g->grad_out_stride, r->out + i * r->out_stride);
        for (int64_t l = i * HEAD_BLOCK; l < i * HEAD_BLOCK + keys; l++)
            a->slopes[l] = a->c * a->weights[l] * (a->slopes[l] - mean);
    }
}

/* After attend, with the same r. */
static void attend_backward(const attention *a, const attending *r, const attended *g)
{
    for (int64_t j = 0; j < a->keys; j += HEAD_BLOCK) {
        int64_t keys = head_smaller(HEAD_BLOCK, a->keys - j);
        logits(a, r, j, keys);
        for (int64_t i = 0; i < r->count; i++)
            for (int64_t l = i * HEAD_BLOCK; l < i * HEAD_BLOCK + keys; l++)
                a->weights[l] = real_exp(a->weights[l] - r->peaks[i]) * r->inverses[i];
        real_gemm(CblasTrans, CblasNoTrans, keys, a->dv, r->count, a->weights, HEAD_BLOCK,
                  g->grad_out, g->grad_out_stride, 1, g->grad_v + j * g->grad_v_stride,
                  g->grad_v_stride);
        real_gemm(CblasNoTrans, CblasTrans, r->count, keys, a->dv, g->grad_out, g->grad_out_stride,
                  a->v + j * a->v_stride, a->v_stride, 0, a->slopes, HEAD_BLOCK);
        logit_slopes(a, r, g, keys);
        real_gemm(CblasNoTrans, CblasNoTrans, r->count, a->d, keys, a->slopes, HEAD_BLOCK,
                  a->k + j * a->k_stride, a->k_stride, 1, g->grad_x, g->grad_x_stride);
        real_gemm(CblasTrans, CblasNoTrans, keys, a->d, r->count, a->slopes, HEAD_BLOCK, r->x,
                  r->x_stride, 1, g->grad_k + j * g->grad_k_stride, g->grad_k_stride);
    }
}

/* ---- Memory ---- */

/* The head's state begins with these numbers. */
enum {
    OWN_NORM,   /* |A|_1 */
    NORM,       /* what Z_0 is divided by: its own or the batch's largest */
    IS_LARGEST, /* 1: NORM is this head's own */
    NORM_SLOPE, /* the derivative by NORM; after backward_join, what is this head's to pass on */
    IS_COUPLED, /* 1: NORM is the batch's */
    NUMBERS
};

typedef struct {
    bool exact; /* m = n = n_k */
    int64_t m;
    /* state */
    real *numbers, *a, *query_means, *key_means;
    real *grad_a, *grad_query_means, *grad_key_means;
    /* work */
    real *weights, *slopes, *out, *block_peaks, *block_inverses;
    real *summary, *grad_summary; /* U = B V */
    real *solved, *grad_solved;   /* Z U */
    real *peaks, *inverses;       /* of B's rows */
    real *grad_z, *inverse_work;
} pieces;

static bool is_exact(const atn_attention_desc *desc, int64_t n, int64_t n_k)
{
    return desc->nystromformer.landmarks == n && n == n_k;
}

static void sizes(const atn_attention_desc *desc, const atn_attention_shape *shape,
                  int64_t *thread_reals, int64_t *head_reals)
{
    int64_t m = desc->nystromformer.landmarks, d = shape->dim, dv = shape->value_dim;
    *head_reals = NUMBERS;
    *thread_reals = HEAD_BLOCK * (2 * HEAD_BLOCK + dv + 2);
    if (is_exact(desc, shape->tokens, shape->key_tokens))
        return;
    *head_reals += 2 * m * m + 4 * m * d;
    *thread_reals += m * (4 * dv + 2 + m) + R(nystrom_inverse_work)(&desc->nystromformer, m);
}

static real *take(real **free, int64_t count)
{
    real *taken = *free;
    *free += count;
    return taken;
}

static pieces split(const head *h)
{
    int64_t m = h->desc->nystromformer.landmarks;
    real *state = h->state, *work = h->work;
    pieces p = {.exact = is_exact(h->desc, h->length, h->key_length), .m = m};
    p.numbers = take(&state, NUMBERS);
    p.weights = take(&work, HEAD_BLOCK * HEAD_BLOCK);
    p.slopes = take(&work, HEAD_BLOCK * HEAD_BLOCK);
    p.out = take(&work, HEAD_BLOCK * h->dv);
    p.block_peaks = take(&work, HEAD_BLOCK);
    p.block_inverses = take(&work, HEAD_BLOCK);
    if (p.exact)
        return p;
    p.a = take(&state, m * m);
    p.query_means = take(&state, m * h->d);
    p.key_means = take(&state, m * h->d);
    p.grad_a = take(&state, m * m);
    p.grad_query_means = take(&state, m * h->d);
    p.grad_key_means = take(&state, m * h->d);
    p.summary = take(&work, m * h->dv);
    p.grad_summary = take(&work, m * h->dv);
    p.solved = take(&work, m * h->dv);
    p.grad_solved = take(&work, m * h->dv);
    p.peaks = take(&work, m);
    p.inverses = take(&work, m);
    p.grad_z = take(&work, m * m);
    p.inverse_work = work;
    return p;
}

static real logit_scale(const head *h)
{
    return (real)(h->desc->logit_scale != 0 ? h->desc->logit_scale : 1 / sqrt((double)h->d));
}

/* B, and F where there are as many landmarks as tokens: whatever attends to the tokens. */
static attention to_tokens(const head *h, const pieces *p)
{
    return (attention){h->desc->storage, logit_scale(h), h->n_k,     h->d,     h->dv, h->k, h->v,
                       h->k_stride,      h->v_stride,    p->weights, p->slopes};
}

/* F, to the landmarks with Z B V as their values. */
static attention to_landmarks(const head *h, const pieces *p)
{
    return (attention){h->desc->storage, logit_scale(h), p->m,  h->d,       h->dv,    p->key_means,
                       p->solved,        h->d,           h->dv, p->weights, p->slopes};
}

/* ---- Segment means ---- */

/* m segments of `length` positions: the first `few` hold `size` of them, the others one more. */
typedef struct {
    int64_t size, few;
} segments;

static segments segments_of(int64_t m, int64_t length)
{
    return (segments){length / m, m - length % m};
}

static int64_t segment_end(const segments *s, int64_t segment)
{
    int64_t extra = segment + 1 - s->few;
    return (segment + 1) * s->size + (extra > 0 ? extra : 0);
}

static int64_t segment_size(const segments *s, int64_t segment)
{
    return s->size + (segment >= s->few);
}

/* The first token from `first` on that stands at `end` or later. */
static int64_t tokens_before(int64_t count, const int64_t *positions, int64_t first, int64_t end)
{
    while (first < count && core_position(positions, first) < end)
        first++;
    return first;
}

/* Sums over a segment in double; tokens that are not there count as zeros. */
static void one_mean(int64_t first, int64_t last, int64_t d, const real *x, int64_t stride,
                     int64_t size, real *mean)
{
    for (int64_t c0 = 0; c0 < d; c0 += HEAD_BLOCK) {
        double sums[HEAD_BLOCK] = {0};
        int64_t channels = head_smaller(HEAD_BLOCK, d - c0);
        for (int64_t i = first; i < last; i++)
            for (int64_t c = 0; c < channels; c++)
                sums[c] += (double)x[i * stride + c0 + c];
        for (int64_t c = 0; c < channels; c++)
            mean[c0 + c] = (real)(sums[c] / (double)size);
    }
}

static void means(int64_t m, int64_t length, int64_t count, const int64_t *positions, int64_t d,
                  const real *x, int64_t stride, real *out)
{
    segments s = segments_of(m, length);
    for (int64_t i = 0, first = 0; i < m; i++) {
        int64_t last = tokens_before(count, positions, first, segment_end(&s, i));
        one_mean(first, last, d, x, stride, segment_size(&s, i), out + i * d);
        first = last;
    }
}

static void means_backward(int64_t m, int64_t length, int64_t count, const int64_t *positions,
                           int64_t d, const real *grad, real *grad_x, int64_t stride)
{
    segments s = segments_of(m, length);
    for (int64_t i = 0, first = 0; i < m; i++) {
        int64_t last = tokens_before(count, positions, first, segment_end(&s, i));
        for (int64_t t = first; t < last; t++)
            for (int64_t c = 0; c < d; c++)
                grad_x[t * stride + c] += grad[i * d + c] / (real)segment_size(&s, i);
        first = last;
    }
}

/* ---- A and its norm ---- */

static void softmax_row(int64_t count, real c, real *row)
{
    real highest = -INFINITY;
    double sum = 0;
    for (int64_t j = 0; j < count; j++) {
        row[j] *= c;
        highest = row[j] > highest ? row[j] : highest;
    }
    for (int64_t j = 0; j < count; j++) {
        row[j] = real_exp(row[j] - highest);
        sum += (double)row[j];
    }
    for (int64_t j = 0; j < count; j++)
        row[j] = (real)((double)row[j] / sum);
}

/* |A|_1: the largest column sum (A >= 0), and the first column that has it. */
static real column_norm(int64_t m, const real *a, int64_t *column)
{
    double norm = 0;
    *column = 0;
    for (int64_t j = 0; j < m; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += (double)a[i * m + j];
        if (sum > norm) {
            norm = sum;
            *column = j;
        }
    }
    return (real)norm;
}

static void before(const head *h)
{
    pieces p = split(h);
    int64_t m = p.m, d = h->d, column;
    memset(p.numbers, 0, NUMBERS * sizeof(real));
    if (p.exact)
        return;
    means(m, h->length, h->n, h->positions, d, h->q, h->q_stride, p.query_means);
    means(m, h->key_length, h->n_k, h->key_positions, d, h->k, h->k_stride, p.key_means);
    R(store)(h->desc->storage, m, d, p.query_means, d);
    R(store)(h->desc->storage, m, d, p.key_means, d);
    real_gemm(CblasNoTrans, CblasTrans, m, m, d, p.query_means, d, p.key_means, d, 0, p.a, m);
    for (int64_t i = 0; i < m; i++)
        softmax_row(m, logit_scale(h), p.a + i * m);
    R(store)(h->desc->storage, m, m, p.a, m);
    p.numbers[OWN_NORM] = p.numbers[NORM] = column_norm(m, p.a, &column);
    p.numbers[IS_LARGEST] = 1;
    p.numbers[IS_COUPLED] = h->desc->nystromformer.inverse == ATN_NYSTROM_ORIGINAL;
}

/* The published code starts all heads of a batch from one norm, the largest. */
static void join(int64_t count, real *const *states)
{
    int64_t largest = 0;
    if (count == 0 || states[0][IS_COUPLED] == 0)
        return;
    for (int64_t i = 0; i < count; i++) {
        states[i][IS_LARGEST] = 0;
        if (states[i][OWN_NORM] > states[largest][OWN_NORM])
            largest = i;
    }
    states[largest][IS_LARGEST] = 1;
    for (int64_t i = 0; i < count; i++)
        states[i][NORM] = states[largest][OWN_NORM];
}

/* All heads' derivatives by the norm are its owner's; those that are not finite spoil their own
 * head alone. */
static void backward_join(int64_t count, real *const *states)
{
    double sum = 0;
    if (count == 0 || states[0][IS_COUPLED] == 0)
        return;
    for (int64_t i = 0; i < count; i++)
        sum += real_abs(states[i][NORM_SLOPE]) < INFINITY ? (double)states[i][NORM_SLOPE] : 0;
    for (int64_t i = 0; i < count; i++)
        states[i][NORM_SLOPE] = (real)sum * states[i][IS_LARGEST];
}

/* ---- The residual on V ---- */

/* Query i and the keys that stand within the filter around it. */
static void residual(const head *h)
{
    const atn_tensor *filter = &h->desc->residual;
    const real *taps = head_matrix(filter, h->index);
    int64_t half = filter->rows / 2, first = 0;
    for (int64_t i = 0; i < h->n; i++) {
        int64_t start = core_position(h->positions, i) - half;
        first = tokens_before(h->n_k, h->key_positions, first, start);
        for (int64_t j = first; j < h->n_k; j++) {
            int64_t tap = core_position(h->key_positions, j) - start;
            if (tap >= filter->rows)
                break;
            for (int64_t c = 0; c < h->dv; c++)
                h->out[i * h->out_stride + c] += taps[tap] * h->v[j * h->v_stride + c];
        }
    }
}

static void residual_backward(const head *h)
{
    const atn_tensor *filter = &h->desc->residual;
    const real *taps = head_matrix(filter, h->index);
    int64_t half = filter->rows / 2;
    real *grad = h->grad_parameters[ATN_PARAMETER_RESIDUAL];
    for (int64_t tap = 0; tap < filter->rows; tap++) {
        double sum = 0;
        for (int64_t i = 0, j = 0; i < h->n; i++) {
            int64_t position = core_position(h->positions, i) + tap - half;
            j = tokens_before(h->n_k, h->key_positions, j, position);
            if (j == h->n_k || core_position(h->key_positions, j) != position)
                continue;
            const real *dy = h->grad_out + i * h->grad_out_stride;
            sum += grad ? row_dot(h->dv, dy, h->v + j * h->v_stride) : 0;
            for (int64_t c = 0; c < h->dv; c++)
                h->grad_v[j * h->grad_v_stride + c] += taps[tap] * dy[c];
        }
        if (grad)
            grad[tap] += (real)sum;
    }
}

/* ---- Forward ---- */

/* Queries i .. of a block, with the softmax's record in the block's memory. */
static attending queries(const head *h, const pieces *p, int64_t i, real *out, int64_t out_stride)
{
    return (attending){head_smaller(HEAD_BLOCK, h->n - i),
                       h->q + i * h->q_stride,
                       h->q_stride,
                       out,
                       out_stride,
                       p->block_peaks,
                       p->block_inverses};
}

static attending landmarks(const head *h, const pieces *p, int64_t i)
{
    return (attending){head_smaller(HEAD_BLOCK, p->m - i),
                       p->query_means + i * h->d,
                       h->d,
                       p->summary + i * h->dv,
                       h->dv,
                       p->peaks + i,
                       p->inverses + i};
}

static nystrom_problem inverse_problem_of(const head *h, const pieces *p)
{
    return (nystrom_problem){h->desc, p->m, p->a, p->numbers[NORM], p->inverse_work};
}

/* U = B V and Z U; returns Z. */
static const real *solve(const head *h, const pieces *p)
{
    attention b = to_tokens(h, p);
    nystrom_problem inverse = inverse_problem_of(h, p);
    const real *z = R(nystrom_inverse)(&inverse);
    for (int64_t i = 0; i < p->m; i += HEAD_BLOCK) {
        attending rows = landmarks(h, p, i);
        attend(&b, &rows);
    }
    real_gemm(CblasNoTrans, CblasNoTrans, p->m, h->dv, p->m, z, p->m, p->summary, h->dv, 0,
              p->solved, h->dv);
    R(store)(h->desc->storage, p->m, h->dv, p->solved, h->dv);
    return z;
}

static void forward(const head *h)
{
    pieces p = split(h);
    attention a = p.exact ? to_tokens(h, &p) : to_landmarks(h, &p);
    if (!p.exact)
        solve(h, &p);
    for (int64_t i = 0; i < h->n; i += HEAD_BLOCK) {
        attending rows = queries(h, &p, i, h->out + i * h->out_stride, h->out_stride);
        attend(&a, &rows);
    }
    if (h->desc->residual.data) {
        residual(h);
        R(store)(h->desc->storage, h->n, h->dv, h->out, h->out_stride);
    }
}

/* ---- Backward ---- */

/* The last softmax: F, with gradients of the landmarks and of Z U, or all there is. */
static void queries_backward(const head *h, const pieces *p)
{
    attention a = p->exact ? to_tokens(h, p) : to_landmarks(h, p);
    attended g = {.grad_out_stride = h->grad_out_stride, .grad_x_stride = h->grad_q_stride};
    g.grad_k = p->exact ? h->grad_k : p->grad_key_means;
    g.grad_v = p->exact ? h->grad_v : p->grad_solved;
    g.grad_k_stride = p->exact ? h->grad_k_stride : h->d;
    g.grad_v_stride = p->exact ? h->grad_v_stride : h->dv;
    for (int64_t i = 0; i < h->n; i += HEAD_BLOCK) {
        attending rows = queries(h, p, i, p->out, h->dv);
        g.grad_out = h->grad_out + i * h->grad_out_stride;
        g.grad_x = h->grad_q + i * h->grad_q_stride;
        attend(&a, &rows);
        attend_backward(&a, &rows, &g);
    }
}

/* B V, from the derivative by it. */
static void landmarks_backward(const head *h, const pieces *p)
{
    attention b = to_tokens(h, p);
    attended g = {.grad_out_stride = h->dv,
                  .grad_k = h->grad_k,
                  .grad_v = h->grad_v,
                  .grad_x_stride = h->d,
                  .grad_k_stride = h->grad_k_stride,
                  .grad_v_stride = h->grad_v_stride};
    for (int64_t i = 0; i < p->m; i += HEAD_BLOCK) {
        attending rows = landmarks(h, p, i);
        g.grad_out = p->grad_summary + i * h->dv;
        g.grad_x = p->grad_query_means + i * h->d;
        attend_backward(&b, &rows, &g);
    }
}

static void clear(int64_t count, real *values)
{
    memset(values, 0, (size_t)count * sizeof *values);
}

static void backward(const head *h)
{
    pieces p = split(h);
    int64_t m = p.m, dv = h->dv;
    if (h->desc->residual.data)
        residual_backward(h);
    if (p.exact) {
        queries_backward(h, &p);
        return;
    }
    clear(m * m, p.grad_a);
    clear(m * h->d, p.grad_query_means);
    clear(m * h->d, p.grad_key_means);
    clear(m * dv, p.grad_solved);
    const real *z = solve(h, &p);
    queries_backward(h, &p);
    real_gemm(CblasTrans, CblasNoTrans, m, dv, m, z, m, p.grad_solved, dv, 0, p.grad_summary, dv);
    real_gemm(CblasNoTrans, CblasTrans, m, m, dv, p.grad_solved, dv, p.summary, dv, 0, p.grad_z, m);
    landmarks_backward(h, &p);
    nystrom_problem inverse = inverse_problem_of(h, &p);
    R(nystrom_inverse_backward)(&inverse, p.grad_z, p.grad_a, &p.numbers[NORM_SLOPE]);
}

/* What comes through A, once the norm's derivative is known: its softmax and the means. */
static void after(const head *h)
{
    pieces p = split(h);
    int64_t m = p.m, d = h->d, column;
    if (p.exact)
        return;
    column_norm(m, p.a, &column);
    for (int64_t i = 0; i < m; i++) {
        real *slopes = p.grad_a + i * m, *a = p.a + i * m;
        slopes[column] += p.numbers[NORM_SLOPE];
        real mean = (real)row_dot(m, slopes, a);
        for (int64_t j = 0; j < m; j++)
            slopes[j] = logit_scale(h) * a[j] * (slopes[j] - mean);
    }
    real_gemm(CblasNoTrans, CblasNoTrans, m, d, m, p.grad_a, m, p.key_means, d, 1,
              p.grad_query_means, d);
    real_gemm(CblasTrans, CblasNoTrans, m, d, m, p.grad_a, m, p.query_means, d, 1, p.grad_key_means,
              d);
    means_backward(m, h->length, h->n, h->positions, d, p.grad_query_means, h->grad_q,
                   h->grad_q_stride);
    means_backward(m, h->key_length, h->n_k, h->key_positions, d, p.grad_key_means, h->grad_k,
                   h->grad_k_stride);
}

const head_operator R(nystromformer) = {.sizes = sizes,
                                        .forward = forward,
                                        .backward = backward,
                                        .before = before,
                                        .join = join,
                                        .backward_join = backward_join,
                                        .after = after};
