/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ forward, tokens streamed twice in blocks: SOFT (IJCV) Alg. 1, Eq. 9 and 17.
 *
 *   explicit inverse X:          U = P V,              Y = P^T (X U)
 *   factor A[piv,piv] = L L^T:   U = (L^-1 P) V,       Y = (L^-1 P)^T U      on the pivots' rows
 *
 * In the factor form of SOFT no number is large: |L^-1 P e_i|^2 = S^_ii <= 1. SOFT++ replaces X by
 * D^-1/2 X D^-1/2, and L by D^1/2 L. */
#include "operators/soft/cpu.h"

#include "inverse/plan.h"
#include "inverse/plan_cpu.h"
#include "sampling/plan.h"

/* Tokens per kernel block: 128 x 64 elements stay in a second-level cache of any size. */
enum { BLOCK = 128 };

static bool is_factored(const cpu_soft *soft)
{
    return soft->desc.inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY;
}

/* Whether the tokens are bf16 and the landmarks depend on them. */
static bool needs_wide_tokens(const cpu_soft *soft)
{
    return soft->desc.dtype != REAL_DTYPE && core_sampling_chooses(soft->desc.sampling.kind);
}

/* The additional memory of backward. */
static void take_backward(core_arena *arena, cpu_soft *soft)
{
    int64_t m = soft->m, d = soft->shape.dim, dv = soft->shape.value_dim,
            heads = soft_head_count(soft);
    soft->grad_reals = R(soft_backward_work)(soft);
    soft->grad_sums = core_take(arena, heads * soft->chunks * m * dv, sizeof(real));
    soft->grad_weights = core_take(arena, heads * m * dv, sizeof(real));
    soft->landmark_partials = core_take(arena, heads * soft->chunks * m * d, sizeof(real));
    soft->grad_landmarks = core_take(arena, heads * m * d, sizeof(real));
    soft->slopes = core_take(arena, soft->threads * soft->kernel_reals, sizeof(real));
    soft->grad_work = core_take(arena, soft->threads * soft->grad_reals, sizeof(real));
    soft->alpha_slopes = core_take(arena, heads, sizeof(double));
    soft->norm_sums = core_take(arena, heads * 2 * d, sizeof(double));
}

void R(soft_open_layout)(core_arena *arena, cpu_soft *soft)
{
    int64_t m = soft->m, n = soft->shape.tokens, d = soft->shape.dim, heads = soft_head_count(soft);
    int64_t scratch = R(gaussian_work)(m, d), sampling = R(sample_work)(&soft->desc.sampling, n, d);
    core_arena piece = {0};
    core_take(&piece, scratch > sampling ? scratch : sampling, sizeof(real));
    soft->scratch_bytes = piece.used;
    arena->overflow |= piece.overflow;
    cpu_inverse_layout(arena, soft->wide, &soft->desc.inverse, REAL_DTYPE, m, heads, soft->threads,
                       false, &soft->inverse);
    soft->choice_count = core_sampling_choices(&soft->desc.sampling, n);
    soft->choices = core_take(arena, heads * soft->choice_count, sizeof *soft->choices);
    soft->landmarks = core_take(arena, heads * m * d, sizeof(real));
    soft->pivoted = core_take(arena, is_factored(soft) ? heads * m * d : 0, sizeof(real));
    soft->a = core_take(arena, heads * m * m, sizeof(real));
    soft->x = core_take(arena, heads * m * m, sizeof(real));
    soft->prepared = core_take(arena, heads * R(landmark_elements)(m, d), sizeof(real));
    soft->roots = core_take(arena, heads * m, sizeof(real));
    soft->scratch = core_take(arena, soft->threads, soft->scratch_bytes);
    soft->widened =
        core_take(arena, needs_wide_tokens(soft) ? soft->threads * n * d : 0, sizeof(real));
}

void R(soft_layout)(core_arena *arena, cpu_soft *soft)
{
    int64_t m = soft->m, dv = soft->shape.value_dim, heads = soft_head_count(soft);
    soft_divide_tokens(soft, BLOCK, BLOCK * R(landmark_padded)(m));
    R(soft_open_layout)(arena, soft);
    soft->sums = core_take(arena, heads * soft->chunks * m * dv, sizeof(real));
    soft->weights = core_take(arena, heads * m * dv, sizeof(real));
    soft->kernel =
        core_take(arena, soft->threads * (soft->kept + 1) * soft->kernel_reals, sizeof(real));
    soft->block_reals = is_factored(soft) ? m * whole_vectors(dv > BLOCK ? dv : BLOCK) : 0;
    soft->block_work = core_take(arena, soft->threads * soft->block_reals, sizeof(real));
    soft->nonfinite = core_take(arena, heads * soft->chunks, 1);
    if (soft->backward)
        take_backward(arena, soft);
}

soft_head R(soft_head_of)(const cpu_soft *soft, int64_t head)
{
    int64_t m = soft->m, d = soft->shape.dim, dv = soft->shape.value_dim;
    bool factored = is_factored(soft);
    soft_head h = {
        .soft = soft,
        .landmarks = (real *)soft->landmarks + head * m * d,
        .a = (real *)soft->a + head * m * m,
        .x = (real *)soft->x + head * m * m,
        .roots = (real *)soft->roots + head * m,
        .sums = (real *)soft->sums + head * soft->chunks * m * dv,
        .weights = (real *)soft->weights + head * m * dv,
        .factor = factored ? &soft->inverse.factors[head] : NULL,
    };
    h.set.count = factored ? h.factor->rank : m;
    h.set.padded = R(landmark_padded)(m);
    h.set.d = d;
    h.set.rows = factored ? (real *)soft->pivoted + head * m * d : h.landmarks;
    h.set.transposed = (real *)soft->prepared + head * R(landmark_elements)(m, d);
    h.set.norms = h.set.transposed + d * h.set.padded;
    return h;
}

/* A head's tokens, from bf16. */
static const real *widen(const cpu_soft *soft, const atn_tensor *q, const uint16_t *tokens)
{
    real *to = soft_thread(soft->widened, q->rows * q->cols);
    for (int64_t i = 0; i < q->rows; i++)
        for (int64_t c = 0; c < q->cols; c++)
            to[i * q->cols + c] = (real)core_bf16_value(tokens[i * q->row_stride + c]);
    return to;
}

static void bottleneck(cpu_soft *soft, const atn_tensor *q, int64_t head)
{
    soft_head h = R(soft_head_of)(soft, head);
    void *scratch = (char *)soft->scratch + soft->scratch_bytes * (size_t)omp_get_thread_num();
    const void *tokens = atn_tensor_matrix(q, head / q->heads, head % q->heads);
    bool widens = needs_wide_tokens(soft);
    R(sample)
    (&soft->desc.sampling, widens ? REAL_DTYPE : q->dtype, q->rows, q->cols,
     widens ? widen(soft, q, tokens) : tokens, widens ? q->cols : q->row_stride, soft->m,
     h.landmarks, q->cols, soft->choices + head * soft->choice_count, scratch);
    R(store)
    (soft->desc.dtype == ATN_BF16 ? ATN_STORAGE_BF16 : soft->desc.storage, soft->m, q->cols,
     h.landmarks, q->cols);
    R(gaussian_self)
    (soft->desc.distance, soft->s, soft->m, q->cols, h.landmarks, q->cols, h.a, soft->m, scratch);
    R(store)(soft->desc.storage, soft->m, soft->m, h.a, soft->m);
}

/* D^1/2, D = diag(A 1) (Eq. 17). */
static void fill_roots(const soft_head *h)
{
    for (int64_t i = 0; i < h->soft->m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < h->soft->m; j++)
            sum += (double)h->a[i * h->soft->m + j];
        h->roots[i] = (real)sqrt(sum);
    }
}

static void normalise(const soft_head *h)
{
    int64_t m = h->soft->m;
    fill_roots(h);
    if (h->factor) {
        for (int64_t i = 0; i < h->factor->rank; i++)
            for (int64_t j = 0; j <= i; j++)
                h->x[i * m + j] *= h->roots[h->factor->pivots[i]];
    } else {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++)
                h->x[i * m + j] /= h->roots[i] * h->roots[j];
    }
    R(store)(h->soft->desc.storage, m, m, h->x, m);
}

/* Copies the landmarks in the order of the pivots. */
static void pick_pivots(const soft_head *h)
{
    int64_t d = h->soft->shape.dim;
    for (int64_t i = 0; i < h->factor->rank; i++)
        memcpy(h->set.rows + i * d, h->landmarks + h->factor->pivots[i] * d,
               (size_t)d * sizeof(real));
}

static void prepare_head(const cpu_soft *soft, int64_t head)
{
    soft_head h = R(soft_head_of)(soft, head);
    if (soft->normalise)
        normalise(&h);
    if (h.factor)
        pick_pivots(&h);
    R(landmark_prepare)(&h.set);
}

void R(soft_kernel)(const soft_head *h, int64_t p, const real *tokens, int64_t stride, real *block,
                    const real *const *ahead)
{
    const cpu_soft *soft = h->soft;
    R(gaussian_block)
    (soft->desc.distance, soft->s, p, tokens, stride, &h->set, block, h->set.padded, ahead);
    R(store)(soft->desc.storage, p, h->set.count, block, h->set.padded);
}

void R(soft_solve)(const soft_head *h, int64_t p, real *block)
{
    int64_t count = h->set.count, padded = h->set.padded, width = whole_vectors(p);
    if (!h->factor || count == 0)
        return;
    real *transposed = soft_thread(h->soft->block_work, h->soft->block_reals);
    R(simd).transpose(p, count, block, padded, transposed, width);
    real_solve(CblasNoTrans, count, h->x, h->soft->m, width, transposed, width);
    R(simd).transpose(count, p, transposed, width, block, padded);
    R(store)(h->soft->desc.storage, p, count, block, padded);
}

/* The rows of the kernel for p tokens, times L^-T in factor form. */
static void features(const soft_head *h, int64_t p, const real *tokens, int64_t stride, real *block,
                     const real *const *ahead)
{
    R(soft_kernel)(h, p, tokens, stride, block, ahead);
    R(soft_solve)(h, p, block);
}

/* The sum U over one chunk of tokens. by_heads: the thread runs second_pass for it, too. V is not
 * searched: 0 times NaN or infinity is NaN, so one of them in V makes a whole column of U, of X U
 * and of Y NaN or infinite, and Y is searched; unless A = 0, where the factor has no rows. */
static void first_pass(cpu_soft *soft, const atn_tensor *q, const atn_tensor *v, int64_t head,
                       int64_t chunk, bool by_heads)
{
    soft_head h = R(soft_head_of)(soft, head);
    int64_t dv = v->cols, end = soft_chunk_end(soft, chunk);
    real *sum = h.sums + chunk * soft->m * dv;
    unsigned char *nonfinite = &soft->nonfinite[head * soft->chunks + chunk];
    *nonfinite = soft->inverse.infos[head].status == ATN_NONFINITE;
    memset(sum, 0, (size_t)(soft->m * dv) * sizeof(real));
    for (int64_t t = chunk * soft->chunk; t < end; t += soft->block) {
        int64_t p = soft_smaller(soft->block, end - t);
        const real *tokens = soft_rows(q, head, t), *values = soft_rows(v, head, t);
        if (!R(all_finite)(p, q->cols, tokens, q->row_stride) ||
            (h.set.count == 0 && !R(all_finite)(p, dv, values, v->row_stride)))
            *nonfinite = 1;
        real *f = soft_place(soft, by_heads, t);
        const real *ahead[2] = {soft_ahead(q, head, t + p), soft_ahead(v, head, t + p)};
        features(&h, p, tokens, q->row_stride, f, ahead);
        real_gemm(CblasTrans, CblasNoTrans, h.set.count, dv, p, f, h.set.padded, values,
                  v->row_stride, 1, sum, dv);
    }
}

void R(soft_add_chunks)(const cpu_soft *soft, int64_t size, real *sums)
{
    for (int64_t chunk = 1; chunk < soft->chunks; chunk++)
        for (int64_t i = 0; i < size; i++)
            sums[i] += sums[chunk * size + i];
}

/* Adds up the chunks' U, then computes X U. */
static void middle(const cpu_soft *soft, int64_t head)
{
    soft_head h = R(soft_head_of)(soft, head);
    int64_t dv = soft->shape.value_dim, size = soft->m * dv;
    R(soft_add_chunks)(soft, size, h.sums);
    R(store)(soft->desc.storage, soft->m, dv, h.sums, dv);
    if (h.factor)
        memcpy(h.weights, h.sums, (size_t)size * sizeof(real));
    else
        real_gemm(CblasNoTrans, CblasNoTrans, soft->m, dv, soft->m, h.x, soft->m, h.sums, dv, 0,
                  h.weights, dv);
    R(store)(soft->desc.storage, soft->m, dv, h.weights, dv);
}

/* Rounds final rows of the output to the storage, and flags the chunk if they have overflowed. */
static void finish(cpu_soft *soft, const atn_tensor *out, int64_t head, int64_t chunk,
                   int64_t first, int64_t rows)
{
    real *from = soft_rows(out, head, first);
    R(store)(soft->desc.storage, rows, out->cols, from, out->row_stride);
    if (!R(all_finite)(rows, out->cols, from, out->row_stride))
        soft->nonfinite[head * soft->chunks + chunk] = 1;
}

static void second_pass(cpu_soft *soft, const atn_tensor *q, atn_tensor *out, int64_t head,
                        int64_t chunk, bool by_heads)
{
    soft_head h = R(soft_head_of)(soft, head);
    int64_t dv = out->cols, end = soft_chunk_end(soft, chunk);
    for (int64_t t = chunk * soft->chunk; t < end; t += soft->block) {
        int64_t p = soft_smaller(soft->block, end - t);
        real *f = soft_place(soft, by_heads, t);
        if (!soft_is_kept(soft, by_heads, t))
            features(&h, p, soft_rows(q, head, t), q->row_stride, f, NULL);
        real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, p, dv, h.set.count, f, h.set.padded,
                                   h.weights, dv, false, soft_rows(out, head, t), out->row_stride),
                        soft_ahead(out, head, t + p), NULL);
        if (!soft->desc.residual.data)
            finish(soft, out, head, chunk, t, p); /* while they are in the cache */
    }
}

/* The published code's depthwise convolution on V, on rows of the grid that start in this chunk. */
static void add_residual(const cpu_soft *soft, const atn_tensor *v, atn_tensor *out, int64_t head,
                         int64_t chunk)
{
    const atn_tensor *filter = &soft->desc.residual;
    int64_t width = soft->desc.residual_width, height = soft->desc.residual_height;
    int64_t y0 = chunk * height / soft->chunks, y1 = (chunk + 1) * height / soft->chunks;
    R(depthwise_rows)
    (height, width, v->cols, filter->rows, filter->cols, soft_rows(filter, head % filter->heads, 0),
     soft_rows(v, head, 0), v->row_stride, y0, y1, soft_rows(out, head, 0), out->row_stride);
}

static void finish_chunk(cpu_soft *soft, const atn_tensor *out, int64_t head, int64_t chunk)
{
    int64_t first = chunk * soft->chunk;
    finish(soft, out, head, chunk, first, soft_chunk_end(soft, chunk) - first);
}

static atn_status invert(atn_context *context, cpu_soft *soft)
{
    int64_t b = soft->shape.batch, h = soft->shape.heads, m = soft->m;
    atn_tensor a = atn_tensor_dense(soft->a, REAL_DTYPE, b, h, m, m);
    atn_tensor x = atn_tensor_dense(soft->x, REAL_DTYPE, b, h, m, m);
    return R(inverse_batch)(context, &soft->desc.inverse, &a, &x, true, &soft->inverse, NULL);
}

atn_status R(soft_open)(atn_context *context, cpu_soft *soft, const atn_tensor *q)
{
    int64_t heads = soft_head_count(soft);
    int threads = soft->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < heads; i++)
        bottleneck(soft, q, i);
    atn_status status = invert(context, soft);
    if (status < 0)
        return status;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < heads; i++)
        prepare_head(soft, i);
    return ATN_OK;
}

static void add_residuals(cpu_soft *soft, const atn_tensor *v, atn_tensor *out)
{
    int threads = soft->threads;
    int64_t pieces = soft_head_count(soft) * soft->chunks;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < pieces; i++)
        add_residual(soft, v, out, i / soft->chunks, i % soft->chunks);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < pieces; i++)
        finish_chunk(soft, out, i / soft->chunks, i % soft->chunks);
}

atn_status R(soft_forward)(atn_context *context, cpu_soft *soft, const atn_tensor *q,
                           const atn_tensor *v, atn_tensor *out)
{
    static const soft_passes passes = {first_pass, middle, second_pass};
    atn_status status = R(soft_open)(context, soft, q);
    if (status < 0)
        return status;
    soft_run_passes(&passes, soft, q, v, out);
    if (soft->desc.residual.data)
        add_residuals(soft, v, out);
    soft_set_outputs_nan(soft, out);
    return ATN_OK;
}
