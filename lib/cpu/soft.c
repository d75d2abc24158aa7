/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ forward, tokens streamed twice in blocks: SOFT (IJCV) Alg. 1, Eq. 9 and 17.
 *
 *   explicit inverse X:          U = P V,              Y = P^T (X U)
 *   factor A[piv,piv] = L L^T:   U = (L^-1 P) V,       Y = (L^-1 P)^T U      on the pivots' rows
 *
 * The factor form of SOFT never meets a large number: |L^-1 P e_i|^2 = S^_ii <= 1. SOFT++ replaces
 * X by D^-1/2 X D^-1/2, and L by D^1/2 L. */
#include <omp.h>
#include <string.h>

#include "core/inverse.h"
#include "cpu/blocks.h"

/* Tokens per kernel block: 128 x 64 elements stay in a second-level cache of any size. */
enum { BLOCK = 128 };

/* At least this many tokens per chunk, and 32 m, so that all chunks' sums (m x value_dim each)
 * take no more than 1/32 of the values. */
enum { CHUNK = 1024, CHUNK_PER_LANDMARK = 32 };

static int64_t head_count(const cpu_soft *soft)
{
    return soft->shape.batch * soft->shape.heads;
}

static int64_t round_up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

void R(soft_layout)(core_arena *arena, cpu_soft *soft)
{
    const atn_attention_shape *shape = &soft->shape;
    int64_t m = soft->m, d = shape->dim, heads = head_count(soft);
    soft->block = BLOCK;
    soft->chunk = round_up(m * CHUNK_PER_LANDMARK > CHUNK ? m * CHUNK_PER_LANDMARK : CHUNK, BLOCK);
    soft->chunks = (shape->tokens + soft->chunk - 1) / soft->chunk;
    int64_t scratch = R(gaussian_work)(m, d), sampling = R(sample_work)(&soft->desc.sampling, d);
    core_arena piece = {0};
    core_take(&piece, scratch > sampling ? scratch : sampling, sizeof(real));
    soft->scratch_bytes = piece.used;

    core_inverse_layout(arena, &soft->desc.inverse, REAL_DTYPE, m, heads, soft->threads, false,
                        &soft->inverse);
    soft->landmarks = core_take(arena, heads * m * d, sizeof(real));
    soft->a = core_take(arena, heads * m * m, sizeof(real));
    soft->x = core_take(arena, heads * m * m, sizeof(real));
    soft->prepared = core_take(arena, heads * R(landmark_elements)(m, d), sizeof(real));
    soft->roots = core_take(arena, heads * m, sizeof(real));
    soft->sums = core_take(arena, heads * soft->chunks * m * shape->value_dim, sizeof(real));
    soft->weights = core_take(arena, heads * m * shape->value_dim, sizeof(real));
    soft->kernel =
        core_take(arena, soft->threads * soft->block * R(landmark_padded)(m), sizeof(real));
    soft->scratch = core_take(arena, soft->threads, soft->scratch_bytes);
    soft->nonfinite = core_take(arena, heads * soft->chunks, 1);
    arena->overflow |= piece.overflow;
}

/* Everything one head's passes need. */
typedef struct {
    const cpu_soft *soft;
    landmark_set set;
    real *landmarks, *a, *x, *roots, *sums, *weights;
    const cpu_factor *factor; /* null: x is explicit */
} head_state;

static head_state head_of(const cpu_soft *soft, int64_t head)
{
    int64_t m = soft->m, d = soft->shape.dim, dv = soft->shape.value_dim;
    bool factored = soft->desc.inverse.method == ATN_INVERSE_PIVOTED_CHOLESKY;
    head_state h = {
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
    h.set.rows = h.landmarks;
    h.set.transposed = (real *)soft->prepared + head * R(landmark_elements)(m, d);
    h.set.norms = h.set.transposed + d * h.set.padded;
    return h;
}

static void bottleneck(cpu_soft *soft, const atn_tensor *q, int64_t head)
{
    head_state h = head_of(soft, head);
    void *scratch = (char *)soft->scratch + soft->scratch_bytes * (size_t)omp_get_thread_num();
    const void *tokens = atn_tensor_matrix(q, head / q->heads, head % q->heads);
    R(sample)
    (&soft->desc.sampling, q->rows, q->cols, tokens, q->row_stride, soft->m, h.landmarks, q->cols,
     scratch);
    R(gaussian_self)
    (soft->desc.distance, soft->s, soft->m, q->cols, h.landmarks, q->cols, h.a, soft->m, scratch);
}

/* D^1/2, D = diag(A 1) (Eq. 17). */
static void fill_roots(const head_state *h)
{
    for (int64_t i = 0; i < h->soft->m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < h->soft->m; j++)
            sum += (double)h->a[i * h->soft->m + j];
        h->roots[i] = (real)sqrt(sum);
    }
}

static void normalise(const head_state *h)
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
}

/* Puts the pivots' landmarks first, one coordinate at a time. A has been used by now and lends its
 * memory. */
static void permute_landmarks(const head_state *h)
{
    int64_t d = h->soft->shape.dim;
    real *column = h->a;
    for (int64_t c = 0; c < d; c++) {
        for (int64_t i = 0; i < h->soft->m; i++)
            column[i] = h->landmarks[i * d + c];
        for (int64_t i = 0; i < h->factor->rank; i++)
            h->landmarks[i * d + c] = column[h->factor->pivots[i]];
    }
}

static void prepare_head(const cpu_soft *soft, int64_t head)
{
    head_state h = head_of(soft, head);
    if (soft->normalise)
        normalise(&h);
    if (h.factor)
        permute_landmarks(&h);
    R(landmark_prepare)(&h.set);
}

/* The kernel's rows for p tokens, times L^-T in factor form: p x count, row stride padded. */
static real *features(const head_state *h, int64_t p, const real *tokens, int64_t stride)
{
    const cpu_soft *soft = h->soft;
    real *block =
        (real *)soft->kernel + omp_get_thread_num() * soft->block * R(landmark_padded)(soft->m);
    R(gaussian_block)
    (soft->desc.distance, soft->s, p, tokens, stride, &h->set, block, h->set.padded);
    if (h->factor && h->set.count > 0)
        cblas_trsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (blasint)p,
                   (blasint)h->set.count, 1, h->x, (blasint)soft->m, block, (blasint)h->set.padded);
    return block;
}

/* One head's rows first .. last - 1 of a tensor, as a pointer. */
static real *rows_from(const atn_tensor *t, int64_t head, int64_t first)
{
    return (real *)atn_tensor_matrix(t, head / t->heads, head % t->heads) + first * t->row_stride;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* U over one chunk of tokens, into the chunk's own sum. */
static void first_pass(cpu_soft *soft, const atn_tensor *q, const atn_tensor *v, int64_t head,
                       int64_t chunk)
{
    head_state h = head_of(soft, head);
    int64_t dv = v->cols, end = smaller((chunk + 1) * soft->chunk, q->rows);
    real *sum = h.sums + chunk * soft->m * dv;
    unsigned char *nonfinite = &soft->nonfinite[head * soft->chunks + chunk];
    *nonfinite = soft->inverse.infos[head].status == ATN_NONFINITE;
    memset(sum, 0, (size_t)(soft->m * dv) * sizeof(real));
    for (int64_t t = chunk * soft->chunk; t < end; t += soft->block) {
        int64_t p = smaller(soft->block, end - t);
        const real *tokens = rows_from(q, head, t), *values = rows_from(v, head, t);
        if (!R(all_finite)(p, q->cols, tokens, q->row_stride) ||
            !R(all_finite)(p, dv, values, v->row_stride))
            *nonfinite = 1;
        const real *f = features(&h, p, tokens, q->row_stride);
        real_gemm(CblasTrans, CblasNoTrans, h.set.count, dv, p, f, h.set.padded, values,
                  v->row_stride, 1, sum, dv);
    }
}

/* Adds the chunks in order, then X U. */
static void middle(const cpu_soft *soft, int64_t head)
{
    head_state h = head_of(soft, head);
    int64_t size = soft->m * soft->shape.value_dim;
    for (int64_t chunk = 1; chunk < soft->chunks; chunk++)
        for (int64_t i = 0; i < size; i++)
            h.sums[i] += h.sums[chunk * size + i];
    if (h.factor)
        memcpy(h.weights, h.sums, (size_t)size * sizeof(real));
    else
        real_gemm(CblasNoTrans, CblasNoTrans, soft->m, soft->shape.value_dim, soft->m, h.x, soft->m,
                  h.sums, soft->shape.value_dim, 0, h.weights, soft->shape.value_dim);
}

static void second_pass(const cpu_soft *soft, const atn_tensor *q, atn_tensor *out, int64_t head,
                        int64_t chunk)
{
    head_state h = head_of(soft, head);
    int64_t dv = out->cols, end = smaller((chunk + 1) * soft->chunk, q->rows);
    for (int64_t t = chunk * soft->chunk; t < end; t += soft->block) {
        int64_t p = smaller(soft->block, end - t);
        const real *f = features(&h, p, rows_from(q, head, t), q->row_stride);
        real_gemm(CblasNoTrans, CblasNoTrans, p, dv, h.set.count, f, h.set.padded, h.weights, dv, 0,
                  rows_from(out, head, t), out->row_stride);
    }
}

/* The published code's depthwise convolution on V, on the rows of the grid this chunk starts. */
static void add_residual(const cpu_soft *soft, const atn_tensor *v, atn_tensor *out, int64_t head,
                         int64_t chunk)
{
    const atn_tensor *filter = &soft->desc.residual;
    int64_t width = soft->desc.residual_width, height = soft->desc.residual_height;
    int64_t y0 = chunk * height / soft->chunks, y1 = (chunk + 1) * height / soft->chunks;
    R(depthwise_rows)
    (height, width, v->cols, filter->rows, filter->cols, rows_from(filter, head % filter->heads, 0),
     rows_from(v, head, 0), v->row_stride, y0, y1, rows_from(out, head, 0), out->row_stride);
}

/* Notes an output that has overflowed. */
static void inspect(cpu_soft *soft, const atn_tensor *out, int64_t head, int64_t chunk)
{
    int64_t first = chunk * soft->chunk, end = smaller(first + soft->chunk, out->rows);
    if (!R(all_finite)(end - first, out->cols, rows_from(out, head, first), out->row_stride))
        soft->nonfinite[head * soft->chunks + chunk] = 1;
}

/* A head that met NaN or infinity, in its input or by overflow, says so in every output. */
static void poison(cpu_soft *soft, atn_tensor *out, int64_t head)
{
    bool bad = false;
    for (int64_t chunk = 0; chunk < soft->chunks; chunk++)
        bad |= soft->nonfinite[head * soft->chunks + chunk];
    if (!bad)
        return;
    soft->inverse.infos[head].status = ATN_NONFINITE;
    for (int64_t t = 0; t < out->rows; t++)
        for (int64_t c = 0; c < out->cols; c++)
            rows_from(out, head, t)[c] = (real)NAN;
}

static atn_status invert(atn_context *context, cpu_soft *soft)
{
    int64_t b = soft->shape.batch, h = soft->shape.heads, m = soft->m;
    atn_tensor a = atn_tensor_dense(soft->a, REAL_DTYPE, b, h, m, m);
    atn_tensor x = atn_tensor_dense(soft->x, REAL_DTYPE, b, h, m, m);
    return R(inverse_batch)(context, &soft->desc.inverse, &a, &x, true, &soft->inverse, NULL);
}

atn_status R(soft_forward)(atn_context *context, cpu_soft *soft, const atn_tensor *q,
                           const atn_tensor *v, atn_tensor *out)
{
    int64_t heads = head_count(soft), pieces = heads * soft->chunks;
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
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < pieces; i++)
        first_pass(soft, q, v, i / soft->chunks, i % soft->chunks);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < heads; i++)
        middle(soft, i);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < pieces; i++)
        second_pass(soft, q, out, i / soft->chunks, i % soft->chunks);
    if (soft->desc.residual.data)
#pragma omp parallel for num_threads(threads) schedule(dynamic)
        for (int64_t i = 0; i < pieces; i++)
            add_residual(soft, v, out, i / soft->chunks, i % soft->chunks);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < pieces; i++)
        inspect(soft, out, i / soft->chunks, i % soft->chunks);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < heads; i++)
        poison(soft, out, i);
    return ATN_OK;
}
