/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans SOFT and SOFT++ on CUDA (operators/soft/cuda.cu runs them). */
#include "operators/soft/cuda.h"

#include "core/backend.h"
#include "cuda/device.h"
#include "operators/soft/plan.h"

/* Tokens, and columns of K(Q, L), that a block works on at a time (HEAD_TILE), and tokens that a
 * chunk has at least per landmark: the chunks' U take no more than 1/4 of the values. */
enum { TILE = 64, CHUNK_PER_LANDMARK = 4 };

/* The memory that tiles_of and memory_of in operators/soft/cuda.cu take. */
static head_sizes sizes_of(const cuda_soft *soft)
{
    const atn_attention_shape *s = &soft->heads.shape;
    const soft_matrices *matrices = &soft->matrices;
    int64_t m = matrices->m, d = s->dim, dv = s->value_dim, columns = matrices->columns;
    int64_t window = soft->heads.desc.residual.rows * soft->heads.desc.residual.cols;
    return (head_sizes){
        .block_reals = TILE * (d + larger_of(d + 1, dv) + columns + larger_of(columns, dv) + 2),
        .head_reals = m * (3 * d + 1 + 4 * dv),
        .chunk_reals = m * (2 * dv + d) + window,
    };
}

static atn_status choose_passes(atn_context *context, cuda_soft *soft)
{
    const atn_attention_desc *desc = &soft->heads.desc;
    const char *reason;
    bool fits = soft_fused_fits(desc, &soft->heads.shape, soft->matrices.m, device_shared(context),
                                &reason);
    if (desc->passes == ATN_SOFT_CHAIN) {
        soft->chained = soft_chain_fits(desc, &soft->heads.shape, soft->matrices.m, &reason);
        if (!soft->chained)
            return core_fail(context, ATN_ERR_UNSUPPORTED, "passes are a chain, against it is %s",
                             reason);
        return device_blas(context, &soft->chain.blas);
    }
    soft->fused = fits && desc->passes != ATN_SOFT_TILES;
    if (desc->passes == ATN_SOFT_FUSED && !fits)
        return core_fail(context, ATN_ERR_UNSUPPORTED, "passes are fused, against it is %s",
                         reason);
    return ATN_OK;
}

static atn_status prepare(atn_context *context, const atn_attention_desc *desc,
                          const atn_attention_shape *shape, void *state)
{
    cuda_soft *soft = state;
    core_soft_plan plan;
    atn_status status = core_check_soft(context, desc, shape, &plan);
    if (status != ATN_OK)
        return status;
    *soft = (cuda_soft){
        .heads = {.desc = plan.desc, .shape = *shape},
        .matrices = {.m = plan.m,
                     .normalise = desc->op == ATN_SOFTPP,
                     .factored = desc->inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY},
        .backward = plan.backward,
    };
    if ((status = choose_passes(context, soft)) != ATN_OK)
        return status;
    void *blas;
    if (cuda_inverse_is_batched(&plan.desc.inverse, plan.m) &&
        (status = device_blas(context, &blas)) != ATN_OK)
        return status;
    soft->matrices.columns = soft->matrices.factored || plan.m < TILE ? plan.m : TILE;
    const atn_tensor *filter = &desc->residual, *norm = &desc->sampling.norm_weight;
    soft->heads.sum_sizes[ATN_PARAMETER_RESIDUAL] = filter->data ? filter->rows * filter->cols : 0;
    for (int i = 0; i < 2; i++) /* the weight, the bias */
        soft->heads.sum_sizes[ATN_PARAMETER_NORM_WEIGHT + i] = norm[i].data ? shape->dim : 0;
    if (soft->chained) {
        soft->heads.chunk = shape->tokens;
        soft->heads.chunks = shape->tokens > 0;
    } else if (soft->fused)
        soft_fused_chunks(shape, &soft->heads.chunk, &soft->heads.chunks);
    else
        cuda_heads_cut(&soft->heads, CHUNK_PER_LANDMARK * plan.m);
    cuda_heads_fit(&soft->heads, sizes_of(soft));
    return ATN_OK;
}

static void layout(core_arena *arena, void *state)
{
    cuda_soft *soft = state;
    cuda_heads *heads = &soft->heads;
    soft_matrices *matrices = &soft->matrices;
    const atn_attention_shape *s = &heads->shape;
    int64_t count = s->batch * s->heads, m = matrices->m, size = m * m;
    bool adjoint = soft->backward && heads->desc.gradient != ATN_GRADIENT_CLOSED;
    size_t element = cuda_heads_element(heads);
    cuda_heads_layout(arena, heads);
    cuda_sampling_layout(arena, &heads->desc.sampling, heads->desc.dtype, s->tokens, s->dim, m,
                         count, &soft->sampling);
    if (arena->overflow)
        return;
    /* In tf32, too, the inverse has factors in f32: its products are few and small, and the
     * iterations magnify rounding. */
    atn_dtype inverse_dtype = heads->desc.dtype == ATN_TF32 ? ATN_F32 : heads->desc.dtype;
    cuda_inverse_layout(arena, &heads->desc.inverse, inverse_dtype, m, count, true, &soft->inverse);
    if (adjoint)
        cuda_inverse_adjoint_layout(arena, &soft->inverse, heads->desc.gradient, &soft->adjoint);
    if (soft->chained)
        soft_chain_layout(arena, &heads->desc, s, m, &soft->chain);
    if (arena->overflow)
        return;
    matrices->a = cuda_heads_take(arena, count, size, element);
    matrices->x = cuda_heads_take(arena, count, size, element);
    matrices->grad_x = cuda_heads_take(arena, soft->backward ? count : 0, size, element);
    matrices->grad_a = cuda_heads_take(arena, soft->backward ? count : 0, size, element);
    matrices->pivots = soft->inverse.pivots;
    matrices->infos = soft->inverse.infos;
    matrices->nonfinite = heads->nonfinite;
}

/* The number of heads whose flags and infos are fetched at a time. */
enum { FETCHED = 32 };

static atn_status outcome(atn_context *context, void *state, atn_attention_info *info)
{
    const cuda_soft *soft = state;
    int64_t heads = soft->heads.shape.batch * soft->heads.shape.heads;
    core_soft_outcome all = {ATN_OK, 0};
    for (int64_t i = 0; i < heads; i += FETCHED) {
        atn_inverse_info infos[FETCHED];
        int flags[FETCHED];
        int64_t count = heads - i < FETCHED ? heads - i : FETCHED;
        atn_status status = context->backend->download(context, infos, soft->inverse.infos + i,
                                                       (size_t)count * sizeof *infos);
        if (status == ATN_OK)
            status = context->backend->download(context, flags, soft->heads.nonfinite + i,
                                                (size_t)count * sizeof *flags);
        if (status != ATN_OK)
            return status;
        for (int64_t j = 0; j < count; j++) {
            if (flags[j])
                infos[j].status = ATN_NONFINITE;
            core_soft_count(&all, infos[j].status);
            if (info && info->inverses)
                info->inverses[i + j] = infos[j];
        }
    }
    if (info) {
        info->landmarks = soft->matrices.m;
        info->failures = all.failures;
    }
    return all.worst;
}

static atn_status forward(atn_context *context, void *state, const atn_attention_inputs *inputs,
                          atn_tensor *out, atn_attention_info *info)
{
    cuda_soft *soft = state;
    atn_status status = cuda_heads_forward(context, &soft->heads, inputs, out);
    return status == ATN_OK && info ? outcome(context, soft, info) : status;
}

static atn_status backward(atn_context *context, void *state, const atn_attention_inputs *inputs,
                           const atn_tensor *dout, atn_gradients *gradients,
                           atn_attention_info *info)
{
    cuda_soft *soft = state;
    atn_status status = cuda_heads_backward(context, &soft->heads, inputs, dout, gradients);
    return status == ATN_OK && info ? outcome(context, soft, info) : status;
}

const operator_family cuda_soft_family = {
    sizeof(cuda_soft), prepare, layout, forward, backward, outcome, core_check_soft_backward};
