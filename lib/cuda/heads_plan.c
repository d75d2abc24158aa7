/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans the operators that work head by head on CUDA (heads.cu runs them). */
#include "cuda/device.h"
#include "cuda/heads.h"

#include <inttypes.h>

#include "core/backend.h"
#include "cuda/device.h"

/* Tokens a chunk has at least, a multiple of those a block works on at a time, and the most chunks
 * per head: the partial sums then stay small compared with the tokens. Chunks depend on the shape
 * alone, so that the bits of a result do not depend on the device. */
enum { LEAST_CHUNK = 256, CHUNK_MULTIPLE = 64, MOST_CHUNKS = 128 };

/* If the blocks' work is in device memory, the number of blocks is limited by the work to do, by
 * what fills any device, and by the memory they need. */
enum { MOST_BLOCKS = 1024, UNLIMITED = INT32_MAX };
static const double most_work = 256.0 * 1024 * 1024;

size_t cuda_heads_element(const cuda_heads *heads)
{
    return heads->desc.dtype == ATN_F64 ? sizeof(double) : sizeof(float);
}

const cuda_heads_table *cuda_heads_get(const cuda_heads *heads)
{
    return heads->desc.dtype == ATN_F64 ? &cuda_heads_f64 : &cuda_heads_f32;
}

atn_status cuda_heads_forward(atn_context *context, const cuda_heads *heads,
                              const atn_attention_inputs *inputs, atn_tensor *out)
{
    int before;
    atn_status status = device_enter(context, &before);
    if (status == ATN_OK)
        status = cuda_heads_get(heads)->forward(context, heads, inputs, out);
    device_leave(before);
    return status;
}

atn_status cuda_heads_backward(atn_context *context, const cuda_heads *heads,
                               const atn_attention_inputs *inputs, const atn_tensor *dout,
                               atn_gradients *gradients)
{
    int before;
    atn_status status = device_enter(context, &before);
    if (status == ATN_OK)
        status = cuda_heads_get(heads)->backward(context, heads, inputs, dout, gradients);
    device_leave(before);
    return status;
}

void cuda_heads_cut(cuda_heads *heads, int64_t least)
{
    int64_t longest = heads->shape.tokens > heads->shape.key_tokens ? heads->shape.tokens
                                                                    : heads->shape.key_tokens;
    int64_t tokens = (longest + MOST_CHUNKS - 1) / MOST_CHUNKS;
    tokens = tokens > LEAST_CHUNK ? tokens : LEAST_CHUNK;
    tokens = tokens > least ? tokens : least;
    heads->chunk = (tokens + CHUNK_MULTIPLE - 1) / CHUNK_MULTIPLE * CHUNK_MULTIPLE;
    heads->chunks = (longest + heads->chunk - 1) / heads->chunk;
}

/* Decides where the blocks' work lies and how many blocks may run. */
static void place_work(cuda_heads *heads)
{
    double bytes = (double)heads->sizes.block_reals * (double)cuda_heads_element(heads);
    double most = (double)heads->shape.batch * (double)heads->shape.heads * (double)heads->chunks;
    heads->work_is_shared = bytes <= HEAD_SHARED;
    most = most > MOST_BLOCKS ? MOST_BLOCKS : most;
    most = most * bytes > most_work ? most_work / bytes : most;
    heads->blocks = heads->work_is_shared ? UNLIMITED : most < 1 ? 1 : (int64_t)most;
}

void cuda_heads_fit(cuda_heads *heads, head_sizes sizes)
{
    int64_t *const all[] = {&sizes.block_reals, &sizes.head_reals, &sizes.chunk_reals};
    for (int i = 0; i < 3; i++) /* so that every piece is aligned for doubles and vectors */
        *all[i] = (*all[i] + 3) / 4 * 4;
    heads->sizes = sizes;
    place_work(heads);
}

static atn_status prepare(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, void *state)
{
    cuda_heads *heads = state;
    *heads = (cuda_heads){.desc = *desc, .shape = *shape};
    if (shape->dim < 1)
        return core_fail(context, ATN_ERR_SHAPE, "dim is %" PRId64 ", expected at least 1",
                         shape->dim);
    const operator_row *row = operator_row_get(desc->op);
    atn_status status = row->check(context, desc, shape);
    for (int p = 0; status == ATN_OK && p < ATN_PARAMETER_COUNT; p++) {
        const atn_tensor *t = atn_attention_parameter(&heads->desc, (atn_parameter)p);
        if (t->data && (row->info.differentiable & 1u << p))
            heads->sum_sizes[p] = t->rows * t->cols;
    }
    if (status != ATN_OK)
        return status;
    head_sizes sizes = {0};
    cuda_heads_cut(heads, LEAST_CHUNK);
    cuda_heads_get(heads)->sizes(desc, shape, &sizes);
    cuda_heads_fit(heads, sizes);
    return ATN_OK;
}

void *cuda_heads_take(core_arena *arena, int64_t count, int64_t each, size_t size)
{
    arena->overflow |= each < 0 || core_too_large((double)count * (double)each);
    return arena->overflow ? NULL : core_take(arena, count * each, size);
}

/* Elements of the gradients that are rounded when they are complete. */
static int64_t gradient_reals(const cuda_heads *heads)
{
    const atn_attention_shape *s = &heads->shape;
    bool narrow = heads->desc.dtype == ATN_BF16 || heads->desc.dtype == ATN_F16;
    return narrow ? (s->tokens + s->key_tokens) * s->dim + s->key_tokens * s->value_dim : 0;
}

void cuda_heads_layout(core_arena *arena, cuda_heads *heads)
{
    const atn_attention_shape *s = &heads->shape;
    const head_sizes *sizes = &heads->sizes;
    int64_t pieces = s->batch * s->heads;
    size_t size = cuda_heads_element(heads);
    heads->work =
        cuda_heads_take(arena, heads->work_is_shared ? 0 : heads->blocks, sizes->block_reals, size);
    heads->state = cuda_heads_take(arena, pieces, sizes->head_reals, size);
    heads->partials = cuda_heads_take(arena, pieces * heads->chunks, sizes->chunk_reals, size);
    heads->nonfinite = cuda_heads_take(arena, pieces, 1, sizeof(int));
    heads->gradients = cuda_heads_take(arena, pieces, gradient_reals(heads), sizeof(float));
    if (heads->desc.padding) {
        heads->positions =
            cuda_heads_take(arena, s->batch, s->tokens + s->key_tokens, sizeof(int64_t));
        heads->counts = cuda_heads_take(arena, s->batch, 2, sizeof(int64_t));
    }
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        heads->sums[p] = cuda_heads_take(arena, pieces, heads->sum_sizes[p], size);
}

static void layout(core_arena *arena, void *state)
{
    cuda_heads_layout(arena, state);
}

/* The number of heads whose flags are fetched at a time. */
enum { FETCHED = 256 };

static atn_status outcome(atn_context *context, void *state, atn_attention_info *info)
{
    const cuda_heads *heads = state;
    int64_t failures = 0, pieces = heads->shape.batch * heads->shape.heads;
    for (int64_t i = 0; i < pieces; i += FETCHED) {
        int flags[FETCHED];
        int64_t count = pieces - i < FETCHED ? pieces - i : FETCHED;
        atn_status status = context->backend->download(context, flags, heads->nonfinite + i,
                                                       (size_t)count * sizeof *flags);
        if (status != ATN_OK)
            return status;
        for (int64_t j = 0; j < count; j++)
            failures += flags[j] != 0;
    }
    if (info) {
        info->landmarks = 0;
        info->failures = failures;
    }
    return failures > 0 ? ATN_NONFINITE : ATN_OK;
}

static atn_status forward(atn_context *context, void *state, const atn_attention_inputs *inputs,
                          atn_tensor *out, atn_attention_info *info)
{
    const cuda_heads *heads = state;
    atn_status status = cuda_heads_forward(context, heads, inputs, out);
    return status == ATN_OK && info ? outcome(context, state, info) : status;
}

static atn_status backward(atn_context *context, void *state, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients,
                           atn_attention_info *info)
{
    const cuda_heads *heads = state;
    atn_status status = cuda_heads_backward(context, heads, inputs, dout, gradients);
    return status == ATN_OK && info ? outcome(context, state, info) : status;
}

const operator_family cuda_heads_family = {sizeof(cuda_heads), prepare, layout, forward,
                                           backward,           outcome, NULL};
