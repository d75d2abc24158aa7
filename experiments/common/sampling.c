/* SPDX-License-Identifier: BSD-3-Clause */
#include "sampling.h"

#include <math.h>
#include <stdlib.h>

#include "landmarks.h"
#include "random.h"
#include "report.h"
#include "staging.h"
#include "train/trained.h"

/* Half a GiB in f64. */
enum { MOST_WEIGHTS = 1 << 26 };

const char *sampling_name(sampling_kind kind)
{
#define SECOND(code, name, description) name,
    static const char *const names[] = {SAMPLING_LIST(SECOND)};
#undef SECOND
    return names[kind];
}

/* Why the input's own network does not have the landmarks of these windows, or null. */
static const char *find_trained_obstacle(const input *in, const atn_sampling *windows)
{
    const struct trained *network = input_network(in);
    int64_t k = windows->stride, side = windows->height;
    int64_t count = network && side == windows->width ? trained_landmark_count(network, side) : 0;
    return count == 0 ? "it is no trained network with landmarks of its own; expected an input "
                        "such as trained:soft"
           : count != (side / k) * (side / k)
               ? "its network takes another number of landmarks; expected --m 49, or as many as it "
                 "was trained with"
               : NULL;
}

/* Why the sampling is not possible, or null. */
static const char *find_obstacle(sampling_kind kind, const input *in, const atn_sampling *windows,
                                 int64_t dim)
{
    int64_t weights;
    if (kind == SAMPLING_POOL)
        return NULL;
    if (kind == SAMPLING_TRAINED)
        return find_trained_obstacle(in, windows);
    if (windows->kind != ATN_SAMPLING_POOL)
        return "it has no grid to convolve; expected --grid, or --sampling pool";
    if (__builtin_mul_overflow(dim * dim, windows->stride * windows->stride, &weights) ||
        weights > MOST_WEIGHTS)
        return "the convolution would have more than 2^26 weights; expected --sampling pool";
    return NULL;
}

int sampling_choose(int count, const sampling_kind *given, bool all, const input *in,
                    const atn_sampling *windows, int64_t dim, sampling_kind chosen[SAMPLING_COUNT])
{
    int taken = 0;
    for (int i = 0; i < (count ? count : all ? SAMPLING_COUNT : 1); i++) {
        sampling_kind kind = count ? given[i] : (sampling_kind)i;
        const char *obstacle = find_obstacle(kind, in, windows, dim);
        if (obstacle && count) {
            report_error("--sampling %s: %s: %s", sampling_name(kind), input_name(in), obstacle);
            return 0;
        }
        if (!obstacle)
            chosen[taken++] = kind;
    }
    return taken;
}

static bool is_published(sampling_kind kind)
{
    return kind == SAMPLING_PUBLISHED || kind == SAMPLING_PUBLISHED_CENTRED;
}

void sampling_prepare(sampling_kind kind, int64_t n, int64_t dim, double s, double *tokens)
{
    double factor = sqrt(2 * s);
    for (int64_t c = 0; c < dim && kind == SAMPLING_PUBLISHED_CENTRED; c++) {
        long double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += tokens[i * dim + c];
        for (int64_t i = 0; i < n; i++)
            tokens[i * dim + c] -= (double)(sum / n);
    }
    for (int64_t i = 0; i < n * dim && is_published(kind); i++)
        tokens[i] *= factor;
}

double sampling_kernel_scale(sampling_kind kind, double s)
{
    return is_published(kind) ? 0.5 : s;
}

/* U(-b, b), b = 1/sqrt(dim k^2): PyTorch's initial weights of a convolution. To be freed. */
static void *draw_weights(atn_dtype dtype, int64_t dim, int64_t k, uint64_t seed, int64_t sample)
{
    int64_t count = dim * dim * k * k;
    double bound = 1 / sqrt((double)(dim * k * k));
    void *weights = must_allocate((size_t)count, atn_dtype_size(dtype));
    random_stream *r = random_create(seed, "published sampling", (uint64_t)sample);
    for (int64_t i = 0; i < count; i++) {
        double weight = bound * (2 * random_uniform(r) - 1);
        if (dtype == ATN_F32)
            ((float *)weights)[i] = (float)weight;
        else
            ((double *)weights)[i] = weight;
    }
    random_free(r);
    return weights;
}

int sampling_take(sampling_kind kind, atn_context *context, const input *in,
                  const atn_sampling *windows, uint64_t seed, int64_t sample,
                  const atn_tensor *tokens, atn_tensor *landmarks)
{
    if (kind == SAMPLING_TRAINED)
        return trained_landmarks(input_network(in), windows->height, context, tokens, landmarks);
    int64_t dim = tokens->cols, k = windows->stride;
    atn_sampling sampling = *windows;
    void *weights = NULL;
    if (is_published(kind)) {
        weights = draw_weights(tokens->dtype, dim, k, seed, sample);
        sampling.kind = ATN_SAMPLING_CONV_CODE;
        sampling.weights = atn_tensor_dense(weights, tokens->dtype, 1, dim, dim, k * k);
    }
    atn_status status = staged_sample(context, &sampling, tokens, landmarks);
    free(weights);
    return check_status(context, status, "landmarks");
}
