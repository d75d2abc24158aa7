/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ in bf16, forward, as operators/soft/cpu.c with an explicit inverse: of landmarks
 * rounded to bf16, A and its inverse X are f32; P = K(L,Q) and X U are rounded to bf16, sums are
 * f32. A row of P belongs to a landmark, so that tokens fill vectors and tiles, for any m:
 *
 *   U = P V,   Y^T = (X U)^T P
 */
#include <string.h>

#include "cpu/bf16.h"
#include "operators/soft/cpu.h"

/* A block's P, pairs and products stay in a second-level cache. Rows are STRIDE numbers apart, so
 * that the 16 rows of an AMX tile fall into different sets of the first-level cache. */
enum { BLOCK = 256, STRIDE = BLOCK + 32 };

/* What a thread needs for a block besides P. */
typedef struct {
    bf16_pair *tokens; /* bf16_pairs(d) x STRIDE; later, of P: bf16_pairs(m) x STRIDE */
    bf16_pair *values; /* BLOCK / 2 x width */
    float *products;   /* of tokens and landmarks: m x STRIDE; later Y^T: dv x STRIDE */
    float *norms;      /* of the tokens, squared */
} memory;

/* One head. */
typedef struct {
    const cpu_soft *soft;
    int64_t m, d, dv, width;        /* width: dv in whole vectors */
    int64_t token_pairs, row_pairs; /* of d and of m */
    const real *landmarks;          /* m x 2 token_pairs */
    const float *norms;             /* of the landmarks, squared */
    float *sums, *weighted;         /* U of each chunk, X U: m x width */
    real *weights;                  /* (X U)^T: dv x 2 row_pairs */
} narrow_head;

static narrow_head sizes_of(const cpu_soft *soft)
{
    int64_t m = soft->m, d = soft->shape.dim, dv = soft->shape.value_dim;
    return (narrow_head){.soft = soft,
                         .m = m,
                         .d = d,
                         .dv = dv,
                         .width = whole_vectors(dv),
                         .token_pairs = bf16_pairs(d),
                         .row_pairs = bf16_pairs(m)};
}

static narrow_head head_of(const cpu_soft *soft, int64_t head)
{
    narrow_head h = sizes_of(soft);
    int64_t padded = whole_vectors(h.m);
    h.landmarks = (real *)soft->narrow_landmarks + head * h.m * 2 * h.token_pairs;
    h.norms = (float *)soft->prepared + head * (h.d + 1) * padded + h.d * padded; /* landmark_set */
    h.sums = (float *)soft->sums + head * soft->chunks * h.m * h.width;
    h.weighted = (float *)soft->weights + head * h.m * h.width;
    h.weights = (real *)soft->narrow_weights + head * h.dv * 2 * h.row_pairs;
    return h;
}

static memory memory_of(const narrow_head *h)
{
    float *words = (float *)soft_thread(h->soft->block_work, h->soft->block_reals);
    memory t = {.tokens = (bf16_pair *)words};
    t.values = t.tokens + soft_larger(h->token_pairs, h->row_pairs) * STRIDE;
    t.products = (float *)(t.values + BLOCK / 2 * h->width);
    t.norms = t.products + soft_larger(h->m, h->dv) * STRIDE;
    return t;
}

void R(soft_layout)(core_arena *arena, cpu_soft *soft)
{
    narrow_head h = sizes_of(soft);
    int64_t heads = soft_head_count(soft), threads = soft->threads;
    int64_t words =
        (soft_larger(h.token_pairs, h.row_pairs) + soft_larger(h.m, h.dv) + 1) * STRIDE +
        BLOCK / 2 * h.width;
    soft_divide_tokens(soft, BLOCK, h.m * STRIDE);
    soft->wide->soft_open_layout(arena, soft);
    soft->block_reals = 2 * words;
    soft->block_work = core_take(arena, threads * words, sizeof(float));
    soft->kernel = core_take(arena, threads * (soft->kept + 1) * soft->kernel_reals, sizeof(real));
    soft->sums = core_take(arena, heads * soft->chunks * h.m * h.width, sizeof(float));
    soft->weights = core_take(arena, heads * h.m * h.width, sizeof(float));
    soft->narrow_landmarks = core_take(arena, heads * h.m * 2 * h.token_pairs, sizeof(real));
    soft->narrow_weights = core_take(arena, heads * h.dv * 2 * h.row_pairs, sizeof(real));
    soft->nonfinite = core_take(arena, heads * soft->chunks, 1);
}

static void narrow_landmarks(const cpu_soft *soft, int64_t head)
{
    narrow_head h = head_of(soft, head);
    const float *from = (float *)soft->landmarks + head * h.m * h.d;
    real *to = (real *)soft->narrow_landmarks + head * h.m * 2 * h.token_pairs;
    for (int64_t i = 0; i < h.m; i++, to += 2 * h.token_pairs) {
        R(narrow)(h.d, from + i * h.d, to);
        if (h.d % 2)
            to[h.d] = 0;
    }
}

/* Whether distances may be |q|^2 + |l|^2 - 2 q.l. Some instruction sets take numbers and products
 * below 2^-126 for 0, which a small s keeps from mattering. Where the distances are to be direct,
 * their error by this form, at most 2 d + 3 roundoffs of f32 of |q|^2 + |l|^2, must change exp(-s
 * |q - l|^2) by at most 2^-10, a quarter of the roundoff that P has anyway. */
static bool takes_products(const narrow_head *h, float token_norm)
{
    double norm = (double)token_norm, s = h->soft->s, largest = 0;
    for (int64_t i = 0; i < h->m; i++)
        largest = core_max(largest, (double)h->norms[i]);
    bool exact = s * (norm + largest) * (double)(2 * h->d + 3) <= 0x1p14;
    return s <= 0x1p64 && (exact || h->soft->desc.distance != ATN_DISTANCE_DIRECT);
}

/* P of p tokens; whether they are finite. */
static bool kernel_rows(const narrow_head *h, const memory *t, int64_t p, const real *tokens,
                        int64_t stride, real *rows)
{
    const cpu_soft *soft = h->soft;
    int64_t columns = whole_vectors(p);
    bool clamp = soft->desc.distance != ATN_DISTANCE_EXPANDED;
    R(pair_columns)(p, h->d, tokens, stride, t->tokens, STRIDE);
    float largest = R(pair_norms)(columns, h->token_pairs, t->tokens, STRIDE, t->norms);
    bool products = takes_products(h, largest);
    if (products) {
        R(multiply_pairs_any_order)
        (&(bf16_terms){h->m, columns, h->token_pairs, h->landmarks, 2 * h->token_pairs, 2,
                       t->tokens, STRIDE, false, t->products, STRIDE});
    }
    for (int64_t i = 0; i < h->m; i++) {
        float *squares = t->products + i * STRIDE;
        const real *landmark = h->landmarks + i * 2 * h->token_pairs;
        if (products) {
            R(expand_distances)(columns, t->norms, h->norms[i], clamp, squares, squares);
        } else {
            R(pair_distances)
            (columns, h->token_pairs, t->tokens, STRIDE, landmark, squares);
        }
        R(gaussian_weights)(columns, soft->s, squares, rows + i * STRIDE);
    }
    return !isnan(largest) || R(all_finite)(p, h->d, tokens, stride);
}

/* U of one chunk. NaN or infinity in V is in Y, too: 0 times it is NaN. */
static void first_pass(cpu_soft *soft, const atn_tensor *q, const atn_tensor *v, int64_t head,
                       int64_t chunk, bool by_heads)
{
    narrow_head h = head_of(soft, head);
    memory t = memory_of(&h);
    int64_t end = soft_chunk_end(soft, chunk);
    float *sums = h.sums + chunk * h.m * h.width;
    unsigned char *nonfinite = &soft->nonfinite[head * soft->chunks + chunk];
    *nonfinite = soft->inverse.infos[head].status == ATN_NONFINITE;
    for (int64_t first = chunk * soft->chunk; first < end; first += BLOCK) {
        int64_t p = soft_smaller(BLOCK, end - first);
        const real *tokens = soft_rows(q, head, first), *values = soft_rows(v, head, first);
        real *rows = soft_place(soft, by_heads, first);
        if (!kernel_rows(&h, &t, p, tokens, q->row_stride, rows))
            *nonfinite = 1;
        R(pair_rows)(p, h.dv, values, v->row_stride, t.values, h.width);
        R(multiply_pairs_any_order)
        (&(bf16_terms){h.m, h.width, bf16_pairs(p), rows, STRIDE, 2, t.values, h.width,
                       first > chunk * soft->chunk, sums, h.width});
    }
}

/* Adds up the chunks' U, then computes X U. */
static void middle(const cpu_soft *soft, int64_t head)
{
    narrow_head h = head_of(soft, head);
    int64_t size = h.m * h.width;
    const float *x = (float *)soft->x + head * h.m * h.m;
    for (int64_t chunk = 1; chunk < soft->chunks; chunk++)
        for (int64_t e = 0; e < size; e++)
            h.sums[e] += h.sums[chunk * size + e];
    soft->wide->product(&(atn_product_shape){.rows = h.m, .cols = h.width, .inner = h.m}, x, h.sums,
                        h.weighted);
    R(narrow_transposed)(h.dv, h.m, h.weighted, h.width, h.weights, 2 * h.row_pairs);
    for (int64_t e = 0; h.m % 2 && e < h.dv; e++)
        h.weights[e * 2 * h.row_pairs + h.m] = 0;
}

/* Y of one chunk. */
static void second_pass(cpu_soft *soft, const atn_tensor *q, atn_tensor *out, int64_t head,
                        int64_t chunk, bool by_heads)
{
    narrow_head h = head_of(soft, head);
    memory t = memory_of(&h);
    int64_t end = soft_chunk_end(soft, chunk);
    for (int64_t first = chunk * soft->chunk; first < end; first += BLOCK) {
        int64_t p = soft_smaller(BLOCK, end - first), columns = whole_vectors(p);
        real *rows = soft_place(soft, by_heads, first), *y = soft_rows(out, head, first);
        if (!soft_is_kept(soft, by_heads, first))
            kernel_rows(&h, &t, p, soft_rows(q, head, first), q->row_stride, rows);
        R(pair_rows)(h.m, columns, rows, STRIDE, t.tokens, STRIDE);
        R(multiply_pairs_any_order)
        (&(bf16_terms){h.dv, columns, h.row_pairs, h.weights, 2 * h.row_pairs, 2, t.tokens, STRIDE,
                       false, t.products, STRIDE});
        R(narrow_transposed)(p, h.dv, t.products, STRIDE, y, out->row_stride);
        if (!R(all_finite)(p, h.dv, y, out->row_stride))
            soft->nonfinite[head * soft->chunks + chunk] = 1;
    }
}

atn_status R(soft_forward)(atn_context *context, cpu_soft *soft, const atn_tensor *q,
                           const atn_tensor *v, atn_tensor *out)
{
    static const soft_passes passes = {first_pass, middle, second_pass};
    int threads = soft->threads;
    int64_t heads = soft_head_count(soft);
    atn_status status = soft->wide->soft_open(context, soft, q);
    if (status < 0)
        return status;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < heads; i++)
        narrow_landmarks(soft, i);
    soft_run_passes(&passes, soft, q, v, out);
    soft_set_outputs_nan(soft, out);
    return ATN_OK;
}
