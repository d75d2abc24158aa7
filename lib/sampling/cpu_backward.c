/* SPDX-License-Identifier: BSD-3-Clause */
/* Backward of the samplings: from landmarks' gradients to tokens' and to the convolution's
 * parameters. */
#include "cpu/blocks.h"
#include "sampling/plan.h"

/* Landmarks whose windows are copied at a time for the gradient of the weights. */
enum { WINDOWS = 64 };

typedef struct {
    const atn_sampling *sampling;
    int64_t n, d, m, stride, grad_stride;
    const real *tokens;
    const int64_t *choices;
    real *landmarks; /* m x d: gradients of the landmarks */
    real *grad, *work;
    double *norm_sums;
} job;

/* The gradient of a landmark becomes that of each of its `count` tokens. */
static void divide_row(int64_t d, int64_t count, real *row)
{
    for (int64_t c = 0; c < d; c++)
        row[c] /= (real)count;
}

/* Adds it to tokens first, first + 1, ... */
static void add_to_tokens(const job *j, const real *row, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++)
        for (int64_t c = 0; c < j->d; c++)
            j->grad[i * j->grad_stride + c] += row[c];
}

/* The first token of landmark l's window on the grid. */
static int64_t corner_of(const atn_sampling *s, int64_t l)
{
    int64_t across = s->width / s->stride;
    return l / across * s->stride * s->width + l % across * s->stride;
}

/* In the order of the tokens in memory: one row of the grid after the other. */
static void pool(const job *j)
{
    int64_t k = j->sampling->stride, width = j->sampling->width, across = width / k;
    for (int64_t l = 0; l < j->m; l++)
        divide_row(j->d, k * k, j->landmarks + l * j->d);
    for (int64_t y = 0; y < j->m / across * k; y++)
        for (int64_t x = 0; x < across; x++)
            add_to_tokens(j, j->landmarks + (y / k * across + x) * j->d, y * width + x * k, k);
}

static void window(const job *j)
{
    int64_t k = j->sampling->stride;
    for (int64_t l = 0; l < j->m; l++) {
        int64_t count = j->n - l * k < k ? j->n - l * k : k;
        divide_row(j->d, count, j->landmarks + l * j->d);
        add_to_tokens(j, j->landmarks + l * j->d, l * k, count);
    }
}

static void add_window(const job *j, int64_t l, const real *window)
{
    int64_t k = j->sampling->stride, width = j->sampling->width;
    real *corner = j->grad + corner_of(j->sampling, l) * j->grad_stride;
    for (int64_t y = 0; y < k; y++)
        for (int64_t x = 0; x < k; x++)
            for (int64_t c = 0; c < j->d; c++)
                corner[(y * width + x) * j->grad_stride + c] += window[c * k * k + y * k + x];
}

/* Each window's gradient is W^T times that of its landmark, by channels like W's rows. */
static void conv(const job *j)
{
    int64_t inner = j->d * j->sampling->stride * j->sampling->stride;
    for (int64_t l = 0; l < j->m; l += SAMPLE_WINDOWS) {
        int64_t count = j->m - l < SAMPLE_WINDOWS ? j->m - l : SAMPLE_WINDOWS;
        real_gemm(CblasNoTrans, CblasNoTrans, count, inner, j->d, j->landmarks + l * j->d, j->d,
                  j->sampling->weights.data, inner, 0, j->work, inner);
        for (int64_t i = 0; i < count; i++)
            add_window(j, l + i, j->work + i * inner);
    }
}

/* Backward of LayerNorm and GELU for one row: grad, the gradient of the output, becomes that of
 * `row`. sums: d elements of the weight's gradient, then d of the bias's. */
static void norm_gelu(int64_t d, const real *weight, const real *bias, const real *row, real *grad,
                      double *sums)
{
    enum { LANES = 8 }; /* partial sums */
    layer_norm_moments moments = R(layer_norm_moments_of)(d, row);
    double u[NORM_CHANNELS], x[NORM_CHANNELS], slopes[NORM_CHANNELS];
    double shifts[LANES] = {0}, projections[LANES] = {0}, shift = 0, projection = 0;
    for (int64_t first = 0; first < d; first += NORM_CHANNELS) {
        int64_t count = d - first < NORM_CHANNELS ? d - first : NORM_CHANNELS;
        const real *w = weight ? weight + first : NULL;
        real *g = grad + first;
        R(layer_norm)(moments, count, w, bias ? bias + first : NULL, row + first, u, x);
        R(simd).gelu(count, x, slopes);
        for (int64_t c = 0; c < count; c++) {
            double by_x = (double)g[c] * slopes[c], by_u = by_x * (w ? (double)w[c] : 1);
            sums[first + c] += by_x * u[c];
            sums[d + first + c] += by_x;
            shifts[c % LANES] += by_u;
            projections[c % LANES] += by_u * u[c];
            g[c] = (real)by_u;
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        shift += shifts[lane] / (double)d;
        projection += projections[lane] / (double)d;
    }
    for (int64_t c = 0; c < d; c++) {
        double value = ((double)row[c] - moments.mean) * moments.rate;
        grad[c] = (real)(moments.rate * ((double)grad[c] - shift - value * projection));
    }
}

static void conv_code(const job *j)
{
    int64_t d = j->d;
    atn_sampling plain = *j->sampling;
    real *rows = j->work, *work = j->work + j->m * d; /* the convolution's output, computed again */
    plain.kind = ATN_SAMPLING_CONV;
    R(sample)(&plain, REAL_DTYPE, j->n, d, j->tokens, j->stride, j->m, rows, d, NULL, work);
    for (int64_t l = 0; l < j->m; l++)
        norm_gelu(d, j->sampling->norm_weight.data, j->sampling->norm_bias.data, rows + l * d,
                  j->landmarks + l * d, j->norm_sums);
    conv(j);
}

static void add_row(const job *j, int64_t l, int64_t token)
{
    for (int64_t c = 0; c < j->d; c++)
        j->grad[token * j->grad_stride + c] += j->landmarks[l * j->d + c];
}

/* A token that is named twice receives both gradients. */
static void indices(const job *j)
{
    for (int64_t l = 0; l < j->m; l++)
        add_row(j, l, j->sampling->indices[l]);
}

static void first(const job *j)
{
    for (int64_t l = 0; l < j->m; l++)
        add_row(j, l, l);
}

static void chosen(const job *j)
{
    for (int64_t l = 0; l < j->m; l++)
        add_row(j, l, j->choices[l]);
}

/* A centroid is the mean of its tokens, or its seed if it has none. */
static void kmeans(const job *j)
{
    const int64_t *counts = j->choices + j->m, *assigned = counts + j->m;
    if (j->sampling->steps == 0) {
        chosen(j);
        return;
    }
    for (int64_t l = 0; l < j->m; l++)
        if (counts[l] > 0) /* 0 also where the tokens were not finite */
            divide_row(j->d, counts[l], j->landmarks + l * j->d);
    for (int64_t i = 0; i < j->n; i++)
        if (counts[assigned[i]] > 0)
            add_to_tokens(j, j->landmarks + assigned[i] * j->d, i, 1);
    for (int64_t l = 0; l < j->m; l++)
        if (counts[l] == 0)
            add_row(j, l, j->choices[l]);
}

static void (*const samplers[ATN_SAMPLING_COUNT])(const job *) = {
    [ATN_SAMPLING_POOL] = pool,         [ATN_SAMPLING_WINDOW] = window,
    [ATN_SAMPLING_CONV] = conv,         [ATN_SAMPLING_CONV_CODE] = conv_code,
    [ATN_SAMPLING_INDICES] = indices,   [ATN_SAMPLING_FIRST] = first,
    [ATN_SAMPLING_KMEANS] = kmeans,     [ATN_SAMPLING_LEVERAGE] = chosen,
    [ATN_SAMPLING_RPCHOLESKY] = chosen, [ATN_SAMPLING_GREEDY] = chosen,
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t R(sample_backward_work)(const atn_sampling *sampling, int64_t m, int64_t d)
{
    if (sampling->kind != ATN_SAMPLING_CONV && sampling->kind != ATN_SAMPLING_CONV_CODE)
        return 0;
    int64_t cells = sampling->stride * sampling->stride;
    return larger(m * d + SAMPLE_WINDOWS * d * cells, (m < WINDOWS ? m : WINDOWS) * cells);
}

void R(sample_backward)(const atn_sampling *sampling, int64_t n, int64_t d, const real *tokens,
                        int64_t stride, int64_t m, const int64_t *choices, real *landmarks,
                        real *grad, int64_t grad_stride, double *norm_sums, real *work)
{
    job j = {sampling, n,       d,         m,    stride, grad_stride,
             tokens,   choices, landmarks, grad, work,   norm_sums};
    samplers[sampling->kind](&j);
}

/* The windows of landmarks l .. l + count - 1 in one channel: count x k k. */
static void gather_channel(const atn_sampling *s, const real *tokens, int64_t stride, int64_t l,
                           int64_t count, int64_t channel, real *windows)
{
    int64_t k = s->stride;
    for (int64_t i = 0; i < count; i++) {
        const real *corner = tokens + corner_of(s, l + i) * stride + channel;
        for (int64_t y = 0; y < k; y++)
            for (int64_t x = 0; x < k; x++)
                windows[(i * k + y) * k + x] = corner[(y * s->width + x) * stride];
    }
}

void R(conv_weights_backward)(const atn_sampling *sampling, int64_t d, const real *tokens,
                              int64_t stride, int64_t m, const real *landmarks, int64_t channel,
                              real *weights, real *work)
{
    int64_t cells = sampling->stride * sampling->stride;
    for (int64_t l = 0; l < m; l += WINDOWS) {
        int64_t count = m - l < WINDOWS ? m - l : WINDOWS;
        gather_channel(sampling, tokens, stride, l, count, channel, work);
        real_gemm(CblasTrans, CblasNoTrans, d, cells, count, landmarks + l * d, d, work, cells, 1,
                  weights + channel * cells, d * cells);
    }
}
