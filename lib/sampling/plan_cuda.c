/* SPDX-License-Identifier: BSD-3-Clause */
#include "sampling/cuda.h"

#include "core/backend.h"
#include "sampling/plan.h"

/* Heads that choose landmarks at the same time: enough to fill a large device, fewer if their work
 * would take more than MOST_DOUBLES (256 MiB). */
enum { MOST_CHOOSING = 128, MOST_DOUBLES = 1 << 25 };

/* The threads of a block, each of which solves the triangular systems of its own tokens for
 * leverage (sampling/cuda_choice.cu). */
enum { THREADS = 256 };

/* Doubles of work for one head's choice: two numbers per token, and centroids, or the pilot's
 * factor and rows, or columns of the factor. */
static double choice_doubles(const atn_sampling *s, double n, double d, double m)
{
    switch (s->kind) {
    case ATN_SAMPLING_KMEANS:
        return 2 * n + m * d;
    case ATN_SAMPLING_LEVERAGE:
        return 2 * n + m * m + THREADS * m;
    case ATN_SAMPLING_RPCHOLESKY:
    case ATN_SAMPLING_GREEDY:
        return 2 * n + n * m;
    default:
        return 0;
    }
}

void cuda_sampling_layout(core_arena *arena, const atn_sampling *desc, atn_dtype dtype, int64_t n,
                          int64_t d, int64_t m, int64_t heads, cuda_sampling *sampling)
{
    double doubles = choice_doubles(desc, (double)n, (double)d, (double)m);
    bool norm = desc->kind == ATN_SAMPLING_CONV_CODE, chooses = core_sampling_chooses(desc->kind);
    size_t element = dtype == ATN_F64 ? sizeof(double) : sizeof(float);
    *sampling = (cuda_sampling){.desc = *desc, .n = n, .d = d, .m = m, .heads = heads};
    sampling->choice_count = core_sampling_choices(desc, n);
    arena->overflow |= core_too_large(MOST_CHOOSING * doubles) ||
                       core_too_large((double)heads * (double)sampling->choice_count) ||
                       core_too_large((double)heads * (double)m * (double)d);
    if (arena->overflow)
        return;
    sampling->doubles = (int64_t)doubles;
    sampling->blocks = doubles > 0 ? (int64_t)(MOST_DOUBLES / doubles) : 0;
    if (sampling->blocks < 1)
        sampling->blocks = 1;
    if (sampling->blocks > MOST_CHOOSING)
        sampling->blocks = MOST_CHOOSING;
    if (sampling->blocks > heads)
        sampling->blocks = heads;
    sampling->choices = core_take(arena, heads * sampling->choice_count, sizeof(int64_t));
    sampling->work = core_take(arena, sampling->blocks * sampling->doubles, sizeof(double));
    sampling->nonfinite = core_take(arena, chooses ? heads : 0, sizeof(int));
    sampling->moments = core_take(arena, norm ? heads * m * 2 : 0, sizeof(double));
    sampling->outputs = core_take(arena, norm ? heads * m * d : 0, element);
}

/* ATN_NONFINITE if any head's tokens were not finite. */
static atn_status sampled(atn_context *context, const cuda_sampling *sampling)
{
    int flags[256];
    enum { FETCHED = sizeof flags / sizeof *flags };
    bool bad = false;
    if (!core_sampling_chooses(sampling->desc.kind))
        return ATN_OK;
    for (int64_t i = 0; i < sampling->heads; i += FETCHED) {
        int64_t count = sampling->heads - i < FETCHED ? sampling->heads - i : FETCHED;
        atn_status status = context->backend->download(context, flags, sampling->nonfinite + i,
                                                       (size_t)count * sizeof *flags);
        if (status != ATN_OK)
            return status;
        for (int64_t j = 0; j < count; j++)
            bad |= flags[j] != 0;
    }
    return bad ? ATN_NONFINITE : ATN_OK;
}

atn_status cuda_sample(atn_context *context, const atn_sampling *desc, int64_t m,
                       const atn_tensor *tokens, const atn_tensor *landmarks)
{
    const cuda_sampling_table *table =
        tokens->dtype == ATN_F64 ? &cuda_sampling_f64 : &cuda_sampling_f32;
    int64_t heads = tokens->batch * tokens->heads;
    cuda_sampling sampling;
    core_arena arena = {0};
    void *memory;
    if (heads == 0)
        return ATN_OK;
    for (int run = 0; run < 2; run++) {
        cuda_sampling_layout(&arena, desc, tokens->dtype, tokens->rows, tokens->cols, m, heads,
                             &sampling);
        if (arena.overflow)
            return core_fail(context, ATN_ERR_SHAPE, "the workspace does not fit into memory");
        if (run == 1)
            break;
        atn_status status = context->backend->allocate(context, arena.used, &memory);
        if (status != ATN_OK)
            return status;
        arena = (core_arena){.base = memory};
    }
    atn_status status = table->sample(context, &sampling, tokens, landmarks);
    if (status == ATN_OK)
        status = context->backend->synchronise(context);
    if (status == ATN_OK)
        status = sampled(context, &sampling);
    context->backend->release(context, memory);
    return status;
}
