/* SPDX-License-Identifier: BSD-3-Clause */
/* Landmarks from tokens (SOFT, IJCV section 3.2): averages, convolution, and the tokens that
 * sampling/cpu_choice.c chooses. */
#include <string.h>

#include "cpu/blocks.h"
#include "sampling/plan.h"

typedef struct {
    const atn_sampling *sampling;
    int64_t n, d, m, stride, landmark_stride;
    const void *tokens; /* real, or bf16 if they are narrow */
    bool narrow;
    real *landmarks, *work;
    int64_t *choices;
} job;

static inline real coordinate(const job *j, int64_t token, int64_t c)
{
    int64_t at = token * j->stride + c;
    if (!j->narrow)
        return ((const real *)j->tokens)[at];
    return (real)core_bf16_value(((const uint16_t *)j->tokens)[at]);
}

/* sum += some coordinates, whose number the compiler knows, of tokens first, first + 1, ... in this
 * order, in registers. If there are several, a line of each token is prefetched (AHEAD_REALS). */
static inline __attribute__((always_inline)) void
add_channels(int channels, const job *j, int64_t c, int64_t first, int64_t count, real *sum)
{
    enum { MOST = 32, AHEAD = AHEAD_REALS * sizeof(real) };
    int64_t bytes = (int64_t)(j->narrow ? sizeof(uint16_t) : sizeof(real));
    real sums[MOST];
    memcpy(sums, sum + c, (size_t)channels * sizeof *sums);
    for (int64_t i = first; i < first + count; i++) {
        if (channels > 1)
            __builtin_prefetch((const char *)j->tokens + (i * j->stride + c) * bytes + AHEAD);
        for (int k = 0; k < channels; k++)
            sums[k] += coordinate(j, i, c + k);
    }
    memcpy(sum + c, sums, (size_t)channels * sizeof *sums);
}

static void add_tokens(const job *j, int64_t first, int64_t count, real *sum)
{
    int64_t c = 0;
    for (; c + 32 <= j->d; c += 32)
        add_channels(32, j, c, first, count, sum);
    for (; c + 8 <= j->d; c += 8)
        add_channels(8, j, c, first, count, sum);
    for (; c < j->d; c++)
        add_channels(1, j, c, first, count, sum);
}

/* sum / count for every coordinate. */
static void divide_row(int64_t d, int64_t count, real *sum)
{
    for (int64_t c = 0; c < d; c++)
        sum[c] /= (real)count;
}

static void clear_row(int64_t d, real *row)
{
    for (int64_t c = 0; c < d; c++)
        row[c] = 0;
}

/* In the order of the tokens in memory: one row of the grid after the other. */
static void pool(const job *j)
{
    int64_t k = j->sampling->stride, width = j->sampling->width, across = width / k;
    for (int64_t l = 0; l < j->m; l++)
        clear_row(j->d, j->landmarks + l * j->landmark_stride);
    for (int64_t y = 0; y < j->m / across * k; y++)
        for (int64_t x = 0; x < across; x++)
            add_tokens(j, y * width + x * k, k,
                       j->landmarks + (y / k * across + x) * j->landmark_stride);
    for (int64_t l = 0; l < j->m; l++)
        divide_row(j->d, k * k, j->landmarks + l * j->landmark_stride);
}

static void window(const job *j)
{
    int64_t k = j->sampling->stride;
    for (int64_t l = 0; l < j->m; l++) {
        int64_t count = j->n - l * k < k ? j->n - l * k : k;
        real *sum = j->landmarks + l * j->landmark_stride;
        clear_row(j->d, sum);
        add_tokens(j, l * k, count, sum);
        divide_row(j->d, count, sum);
    }
}

/* Copies one window in the order of the weights, channel by channel: d x k k. */
static void gather_window(const job *j, int64_t l, real *window)
{
    int64_t k = j->sampling->stride, width = j->sampling->width, across = width / k;
    int64_t corner = l / across * k * width + l % across * k;
    for (int64_t y = 0; y < k; y++)
        for (int64_t x = 0; x < k; x++)
            for (int64_t c = 0; c < j->d; c++)
                window[c * k * k + y * k + x] = coordinate(j, corner + y * width + x, c);
}

static void conv(const job *j)
{
    int64_t inner = j->d * j->sampling->stride * j->sampling->stride;
    for (int64_t l = 0; l < j->m; l += SAMPLE_WINDOWS) {
        int64_t count = j->m - l < SAMPLE_WINDOWS ? j->m - l : SAMPLE_WINDOWS;
        for (int64_t i = 0; i < count; i++)
            gather_window(j, l + i, j->work + i * inner);
        real_gemm(CblasNoTrans, CblasTrans, count, j->d, inner, j->work, inner,
                  j->sampling->weights.data, inner, 0, j->landmarks + l * j->landmark_stride,
                  j->landmark_stride);
    }
}

layer_norm_moments R(layer_norm_moments_of)(int64_t d, const real *row)
{
    enum { LANES = 8 }; /* partial sums */
    double sums[LANES] = {0}, squares[LANES] = {0}, mean = 0, variance = 0;
    for (int64_t c = 0; c < d; c++)
        sums[c % LANES] += (double)row[c];
    for (int lane = 0; lane < LANES; lane++)
        mean += sums[lane] / (double)d;
    for (int64_t c = 0; c < d; c++)
        squares[c % LANES] += ((double)row[c] - mean) * ((double)row[c] - mean);
    for (int lane = 0; lane < LANES; lane++)
        variance += squares[lane] / (double)d;
    return (layer_norm_moments){mean, 1 / sqrt(variance + 1e-5)};
}

void R(layer_norm)(layer_norm_moments moments, int64_t d, const real *weight, const real *bias,
                   const real *row, double *u, double *x)
{
    for (int64_t c = 0; c < d; c++) {
        double value = ((double)row[c] - moments.mean) * moments.rate;
        if (u)
            u[c] = value;
        x[c] = value * (weight ? (double)weight[c] : 1) + (bias ? (double)bias[c] : 0);
    }
}

/* LayerNorm over d, then GELU(x) = x Phi(x), which the published code applies to the convolution's
 * output (neither is in the papers). */
static void norm_gelu(int64_t d, const real *weight, const real *bias, real *row)
{
    layer_norm_moments moments = R(layer_norm_moments_of)(d, row);
    double x[NORM_CHANNELS];
    for (int64_t first = 0; first < d; first += NORM_CHANNELS) {
        int64_t count = d - first < NORM_CHANNELS ? d - first : NORM_CHANNELS;
        R(layer_norm)
        (moments, count, weight ? weight + first : NULL, bias ? bias + first : NULL, row + first,
         NULL, x);
        R(simd).gelu(count, x, NULL);
        for (int64_t c = 0; c < count; c++)
            row[first + c] = (real)x[c];
    }
}

static void conv_code(const job *j)
{
    conv(j);
    for (int64_t l = 0; l < j->m; l++)
        norm_gelu(j->d, j->sampling->norm_weight.data, j->sampling->norm_bias.data,
                  j->landmarks + l * j->landmark_stride);
}

static void copy_row(const job *j, int64_t l, int64_t token)
{
    for (int64_t c = 0; c < j->d; c++)
        j->landmarks[l * j->landmark_stride + c] = coordinate(j, token, c);
}

static void indices(const job *j)
{
    for (int64_t l = 0; l < j->m; l++)
        copy_row(j, l, j->sampling->indices[l]);
}

static void first(const job *j)
{
    for (int64_t l = 0; l < j->m; l++)
        copy_row(j, l, l);
}

static void chosen(const job *j)
{
    const double *centroids =
        R(choose)(j->sampling, j->n, j->d, j->tokens, j->stride, j->choices, (void *)j->work);
    for (int64_t l = 0; l < j->m; l++)
        if (!centroids)
            copy_row(j, l, j->choices[l]);
        else
            for (int64_t c = 0; c < j->d; c++)
                j->landmarks[l * j->landmark_stride + c] = (real)centroids[l * j->d + c];
}

static void (*const samplers[ATN_SAMPLING_COUNT])(const job *) = {
    [ATN_SAMPLING_POOL] = pool,         [ATN_SAMPLING_WINDOW] = window,
    [ATN_SAMPLING_CONV] = conv,         [ATN_SAMPLING_CONV_CODE] = conv_code,
    [ATN_SAMPLING_INDICES] = indices,   [ATN_SAMPLING_FIRST] = first,
    [ATN_SAMPLING_KMEANS] = chosen,     [ATN_SAMPLING_LEVERAGE] = chosen,
    [ATN_SAMPLING_RPCHOLESKY] = chosen, [ATN_SAMPLING_GREEDY] = chosen,
};

int64_t R(sample_work)(const atn_sampling *sampling, int64_t n, int64_t d)
{
    bool gathers = sampling->kind == ATN_SAMPLING_CONV || sampling->kind == ATN_SAMPLING_CONV_CODE;
    return gathers ? SAMPLE_WINDOWS * d * sampling->stride * sampling->stride
                   : R(choose_work)(sampling, n, d) * (int64_t)(sizeof(double) / sizeof(real));
}

/* Sets the landmarks to NaN, and the choices to valid ones. */
static void reject_tokens(const job *j)
{
    for (int64_t i = 0; i < core_sampling_choices(j->sampling, j->n); i++)
        j->choices[i] = i < j->m ? i : 0;
    for (int64_t l = 0; l < j->m; l++)
        for (int64_t c = 0; c < j->d; c++)
            j->landmarks[l * j->landmark_stride + c] = (real)NAN;
}

bool R(sample)(const atn_sampling *sampling, atn_dtype type, int64_t n, int64_t d,
               const void *tokens, int64_t stride, int64_t m, void *landmarks,
               int64_t landmark_stride, int64_t *choices, void *work)
{
    job j = {.sampling = sampling,
             .n = n,
             .d = d,
             .m = m,
             .stride = stride,
             .landmark_stride = landmark_stride,
             .tokens = tokens,
             .narrow = type != REAL_DTYPE,
             .landmarks = landmarks,
             .work = work,
             .choices = choices};
    bool usable = !core_sampling_chooses(sampling->kind) || R(all_finite)(n, d, tokens, stride);
    if (usable)
        samplers[sampling->kind](&j);
    else
        reject_tokens(&j);
    return usable;
}
