/* SPDX-License-Identifier: BSD-3-Clause */
/* Sampling, each kind from its definition (attnum/sampling.h). */
#include "../ref_memory.h"
#include "sampling.h"
#include "soft.h"

static int64_t windows_count(const ref_head *h)
{
    const atn_sampling *s = &h->desc->sampling;
    bool fits = s->height > 0 && s->width > 0 && s->height * s->width == h->n && s->stride > 0;
    return fits ? s->height / s->stride * (s->width / s->stride) : 0;
}

static int64_t conv_count(const ref_head *h)
{
    const num *weights = h->all->parameters[ATN_PARAMETER_CONV];
    const atn_tensor *t = &h->desc->sampling.weights;
    int64_t k = h->desc->sampling.stride;
    bool fits = weights && t->heads == h->d && t->rows == h->d && t->cols == k * k;
    return fits ? windows_count(h) : 0;
}

static int64_t window_count(const ref_head *h)
{
    int64_t k = h->desc->sampling.stride;
    return k > 0 ? (h->n + k - 1) / k : 0;
}

static int64_t named_count(const ref_head *h)
{
    const atn_sampling *s = &h->desc->sampling;
    bool fits = s->count <= h->n;
    for (int64_t i = 0; fits && s->kind == ATN_SAMPLING_INDICES && i < s->count; i++)
        fits = s->indices && s->indices[i] >= 0 && s->indices[i] < h->n;
    return fits ? s->count : 0;
}

/* Token i of window w: i counts the window's k x k tokens row by row. */
static int64_t token_of(const ref_head *h, int64_t w, int64_t i)
{
    int64_t k = h->desc->sampling.stride, width = h->desc->sampling.width, across = width / k;
    return (w / across * k + i / k) * width + w % across * k + i % k;
}

static atn_status pool(const ref_head *h, int64_t m, num *landmarks)
{
    int64_t k = h->desc->sampling.stride;
    for (int64_t l = 0; l < m; l++)
        for (int64_t i = 0; i < k * k; i++)
            for (int64_t c = 0; c < h->d; c++)
                landmarks[l * h->d + c] +=
                    h->q[token_of(h, l, i) * h->d + c] / (long double)(k * k);
    return ATN_OK;
}

static atn_status window(const ref_head *h, int64_t m, num *landmarks)
{
    int64_t k = h->desc->sampling.stride;
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t c = 0; c < h->d; c++) {
            int64_t l = i / k, held = l == m - 1 ? h->n - l * k : k;
            landmarks[l * h->d + c] += h->q[i * h->d + c] / (long double)held;
        }
    return ATN_OK;
}

/* All heads share the filters: the second dimension of their tensor is the output channel. */
static atn_status conv(const ref_head *h, int64_t m, num *landmarks)
{
    const num *weights = h->all->parameters[ATN_PARAMETER_CONV];
    int64_t window_size = h->desc->sampling.stride * h->desc->sampling.stride, d = h->d;
    for (int64_t l = 0; l < m; l++)
        for (int64_t to = 0; to < d; to++)
            for (int64_t from = 0; from < d; from++)
                for (int64_t i = 0; i < window_size; i++)
                    landmarks[l * d + to] += weights[(to * d + from) * window_size + i] *
                                             h->q[token_of(h, l, i) * d + from];
    return ATN_OK;
}

/* x Phi(x), Phi the normal distribution function; the derivative is explicit: erfcl takes only
 * reals. */
static num gelu(num x)
{
    const long double pi = 3.14159265358979323846264338327950288L;
    long double value = num_value(x);
    long double distribution = erfcl(-value / sqrtl(2)) / 2;
    long double density = expl(-value * value / 2) / sqrtl(2 * pi);
    return num_with_slope(value * distribution, num_slope(x) * (distribution + value * density));
}

/* LayerNorm over the d channels: biased variance, 1e-5 under the root. */
static void layer_norm(const ref_head *h, num *row)
{
    const num *weight = NUM(ref_parameter)(h, ATN_PARAMETER_NORM_WEIGHT);
    const num *bias = NUM(ref_parameter)(h, ATN_PARAMETER_NORM_BIAS);
    long double width = (long double)h->d;
    num mean = 0, variance = 0;
    for (int64_t c = 0; c < h->d; c++)
        mean += row[c] / width;
    for (int64_t c = 0; c < h->d; c++)
        variance += (row[c] - mean) * (row[c] - mean) / width;
    for (int64_t c = 0; c < h->d; c++)
        row[c] = (row[c] - mean) / num_sqrt(variance + 1e-5L) * (weight ? weight[c] : 1) +
                 (bias ? bias[c] : 0);
}

static atn_status conv_code(const ref_head *h, int64_t m, num *landmarks)
{
    conv(h, m, landmarks);
    for (int64_t l = 0; l < m; l++)
        layer_norm(h, landmarks + l * h->d);
    for (int64_t i = 0; i < m * h->d; i++)
        landmarks[i] = gelu(landmarks[i]);
    return ATN_OK;
}

static atn_status named(const ref_head *h, int64_t m, num *landmarks)
{
    const atn_sampling *s = &h->desc->sampling;
    for (int64_t l = 0; l < m; l++)
        for (int64_t c = 0; c < h->d; c++) {
            int64_t token = s->kind == ATN_SAMPLING_FIRST ? l : s->indices[l];
            landmarks[l * h->d + c] = h->q[token * h->d + c];
        }
    return ATN_OK;
}

/* m, if the sampling is possible; the caller has checked the four data-dependent kinds. */
static int64_t chosen_count(const ref_head *h)
{
    const atn_sampling *s = &h->desc->sampling;
    bool given = s->kind == ATN_SAMPLING_GREEDY || s->uniforms;
    return given && s->count <= h->n ? s->count : 0;
}

/* The choice depends on the values alone: it has no derivative. */
static void mean_of(const ref_head *h, const int64_t *assigned, int64_t l, int64_t seed, num *mean)
{
    int64_t held = 0;
    for (int64_t i = 0; assigned && i < h->n; i++)
        held += assigned[i] == l;
    for (int64_t c = 0; c < h->d; c++)
        mean[c] = held > 0 ? 0 : h->q[seed * h->d + c];
    for (int64_t i = 0; held > 0 && i < h->n; i++)
        for (int64_t c = 0; c < h->d && assigned[i] == l; c++)
            mean[c] += h->q[i * h->d + c] / (long double)held;
}

static atn_status chosen(const ref_head *h, int64_t m, num *landmarks)
{
    const atn_sampling *s = &h->desc->sampling;
    bool means = s->kind == ATN_SAMPLING_KMEANS && s->steps > 0;
    double *tokens = ref_take((size_t)(h->n * h->d), sizeof *tokens);
    int64_t *taken = ref_take((size_t)(m + h->n), sizeof *taken),
            *assigned = taken ? taken + m : NULL;
    atn_status status = ATN_ERR_MEMORY;
    for (int64_t i = 0; tokens && i < h->n * h->d; i++)
        tokens[i] = (double)num_value(h->q[i]);
    if (tokens && taken)
        status = ref_choose(s, h->n, h->d, tokens, taken, assigned);
    for (int64_t l = 0; status == ATN_OK && l < m; l++)
        mean_of(h, means ? assigned : NULL, l, taken[l], landmarks + l * h->d);
    free(taken);
    free(tokens);
    return status;
}

static const struct {
    int64_t (*count)(const ref_head *h);
    atn_status (*sample)(const ref_head *h, int64_t m, num *landmarks); /* zeros when called */
} kinds[ATN_SAMPLING_COUNT] = {
    [ATN_SAMPLING_POOL] = {windows_count, pool},
    [ATN_SAMPLING_WINDOW] = {window_count, window},
    [ATN_SAMPLING_CONV] = {conv_count, conv},
    [ATN_SAMPLING_CONV_CODE] = {conv_count, conv_code},
    [ATN_SAMPLING_INDICES] = {named_count, named},
    [ATN_SAMPLING_FIRST] = {named_count, named},
    [ATN_SAMPLING_KMEANS] = {chosen_count, chosen},
    [ATN_SAMPLING_LEVERAGE] = {chosen_count, chosen},
    [ATN_SAMPLING_RPCHOLESKY] = {chosen_count, chosen},
    [ATN_SAMPLING_GREEDY] = {chosen_count, chosen},
};

int64_t NUM(ref_landmark_count)(const ref_head *h)
{
    atn_sampling_kind kind = h->desc->sampling.kind;
    int64_t count = (unsigned)kind < ATN_SAMPLING_COUNT ? kinds[kind].count(h) : 0;
    return count > 0 ? count : 0;
}

atn_status NUM(ref_landmarks)(const ref_head *h, num *landmarks)
{
    int64_t m = NUM(ref_landmark_count)(h);
    for (int64_t i = 0; i < m * h->d; i++)
        landmarks[i] = 0;
    return kinds[h->desc->sampling.kind].sample(h, m, landmarks);
}
