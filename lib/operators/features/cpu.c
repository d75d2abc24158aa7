/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear attention, streamed in blocks of tokens (operators/features/cpu.h).
 *
 * Backward, with N_i = phi(q_i)^T S, e_i = dL/d(phi(q_i).z) = -(dY_i.N_i) / D_i^2 (0 where D is
 * constant):
 *
 *   dphi(q_i) = S dY_i / D_i + e_i z,      dS = sum_i phi(q_i) dY_i^T / D_i,
 *   dphi(k_j) = dS v_j + dz,               dz = sum_i e_i phi(q_i),          dv_j = dS^T phi(k_j).
 *
 * Causal: S and z are prefix sums, computed forwards for dq; dS and dz are suffix sums, computed
 * backwards for dk and dv. Blocks are then runs of HEAD_BLOCK positions, and groups of blocks are
 * parts of a head_scan. The state is the sum over all earlier (later) groups, which the head's
 * state accumulates, and over the group's own earlier (later) blocks. The contribution of the same
 * block comes through
 *
 *   A_ij = phi(q_i).phi(k_j),   W_ij = dL/dA_ij = dY_i.v_j / D_i + e_i,   both 0 for j after i. */
#include "operators/features/cpu.h"

#include <string.h>

#include "operators/norms/cpu.h"

typedef struct {
    const head *h;
    const feature_map *map;
    bool causal;
    int64_t m, dv;
    /* m x dv, m: the head's; causal: sums of the groups so far */
    real *s, *z, *grad_s, *grad_z;
    real *part_s, *part_z;        /* sums over a part of the tokens, for s or grad_s */
    real *transposed;             /* backward: dv x m, S^T or dS^T */
    real *taken_s, *taken_z;      /* causal: sums of the groups before a part */
    real *block_s, *block_z;      /* causal: of all blocks before one */
    double *found;                /* by a part of the keys */
    real *slopes;                 /* HEAD_BLOCK x m: dL/dphi of a block */
    real *grad_n;                 /* HEAD_BLOCK x dv: dY / D of a block */
    real *inverse, *grad_sums;    /* 1 / D and e of a block; causal: of all queries, in the state */
    real *phi[2], *kept[2];       /* of a block of queries, of a block of keys */
    real *weights, *grad_weights; /* causal: A and W, HEAD_BLOCK x HEAD_BLOCK */
} linear;

int64_t R(linear_reals)(int64_t features, int64_t kept, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    int64_t square = features * shape->value_dim, sums = square + features;
    int64_t rest = desc->causal ? 2 * sums + 2 * HEAD_BLOCK * HEAD_BLOCK : 2 * HEAD_BLOCK;
    return sums + square + R(norm_doubles)(LINEAR_FOUND) +
           HEAD_BLOCK * (features + shape->value_dim) + 2 * HEAD_BLOCK * (features + kept) + rest;
}

int64_t R(linear_state)(int64_t features, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    return 2 * features * (shape->value_dim + 1) + (desc->causal ? 2 * shape->tokens : 0);
}

static linear open_linear(const head *h, const feature_map *map)
{
    int64_t m = map->features, rows = h->desc->causal ? h->length : HEAD_BLOCK;
    real *state = h->state, *free = h->work;
    linear l = {.h = h, .map = map, .causal = h->desc->causal, .m = m, .dv = h->dv};
    l.s = head_take(&state, m * h->dv);
    l.z = head_take(&state, m);
    l.grad_s = head_take(&state, m * h->dv);
    l.grad_z = head_take(&state, m);
    l.part_s = head_take(&free, m * h->dv);
    l.part_z = head_take(&free, m);
    l.transposed = head_take(&free, m * h->dv);
    l.slopes = head_take(&free, HEAD_BLOCK * m);
    l.grad_n = head_take(&free, HEAD_BLOCK * h->dv);
    for (int keys = 0; keys < 2; keys++) {
        l.phi[keys] = head_take(&free, HEAD_BLOCK * m);
        l.kept[keys] = head_take(&free, HEAD_BLOCK * map->kept);
    }
    if (l.causal) {
        l.weights = head_take(&free, HEAD_BLOCK * HEAD_BLOCK);
        l.grad_weights = head_take(&free, HEAD_BLOCK * HEAD_BLOCK);
        l.taken_s = head_take(&free, m * h->dv);
        l.taken_z = head_take(&free, m);
        l.block_s = head_take(&free, m * h->dv);
        l.block_z = head_take(&free, m);
    }
    l.inverse = head_take(l.causal ? &state : &free, rows);
    l.grad_sums = head_take(l.causal ? &state : &free, rows);
    l.found = R(norm_take)(&free, LINEAR_FOUND);
    return l;
}

/* The empty state: S = 0, z = z_0. */
static void clear_state(const linear *l)
{
    memset(l->s, 0, (size_t)(l->m * l->dv) * sizeof(real));
    for (int64_t r = 0; r < l->m; r++)
        l->z[r] = (real)l->map->start;
}

/* ---- Blocks ---- */

/* The block of queries or keys from `step` HEAD_BLOCK on; causal: of those at such positions. */
static token_block load(const linear *l, bool keys, int64_t step)
{
    const head *h = l->h;
    const int64_t *positions = keys ? h->key_positions : h->positions;
    int64_t count = keys ? h->n_k : h->n, begin = step * HEAD_BLOCK;
    if (!l->causal)
        positions = NULL;
    token_block b = {.keys = keys, .stride = keys ? h->k_stride : h->q_stride};
    b.first = core_count_before(positions, count, begin);
    b.rows = core_count_before(positions, count, begin + HEAD_BLOCK) - b.first;
    b.x = (keys ? h->k : h->q) + b.first * b.stride;
    b.phi = l->phi[keys];
    b.kept = l->kept[keys];
    b.found = l->found;
    head_search(h, b.rows, h->d, b.x, b.stride);
    if (b.rows > 0)
        l->map->map(l->map->own, &b);
    R(store)(h->desc->storage, b.rows, l->m, b.phi, l->m);
    return b;
}

static bool sees(const linear *l, int64_t query, int64_t key)
{
    return !l->causal ||
           core_position(l->h->key_positions, key) <= core_position(l->h->positions, query);
}

/* to += sum_i weights_i rows_i; null: weights 1. */
static void add_rows(const linear *l, const token_block *b, const real *weights, real *to)
{
    if (l->map->denominator != LINEAR_PLAIN) /* z is used */
        R(add_rows)(b->rows, l->m, weights, b->phi, l->m, to);
}

/* s += sum_j phi(k_j) v_j^T, z += sum_j phi(k_j). */
static void absorb_keys(const linear *l, const token_block *keys, real *s, real *z)
{
    const head *h = l->h;
    const real *v = h->v + keys->first * h->v_stride;
    if (l->causal) /* a key may come after all queries that are not padding */
        head_search(h, keys->rows, l->dv, v, h->v_stride);
    else
        head_search_summed(h, keys->rows, v);
    real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, l->m, l->dv, keys->rows, keys->phi, l->m,
                               v, h->v_stride, true, s, l->dv),
                    real_next(keys->x, keys->rows, h->d, h->k_stride),
                    real_next(v, keys->rows, l->dv, h->v_stride));
    add_rows(l, keys, NULL, z);
}

/* ---- Parts of a head ---- */

static void clear_part(const linear *l)
{
    memset(l->part_s, 0, (size_t)(l->m * l->dv) * sizeof(real));
    memset(l->part_z, 0, (size_t)l->m * sizeof(real));
    memset(l->found, 0, LINEAR_FOUND * sizeof(double));
}

/* S^T or dS^T, by which a part of the tokens is multiplied: once, instead of in every product.
 * Causal: once for each block, as every block has sums of its own. */
static void transpose_sums(const linear *l, const real *s)
{
    R(simd).transpose(l->m, l->dv, s, l->dv, l->transposed, l->m);
}

static void add_part(const linear *l, real *s, real *z)
{
    head_add(l->m * l->dv, l->part_s, s);
    head_add(l->m, l->part_z, z);
}

static void prepare_keys(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    l.map->prepare(l.map->own, first, count, l.kept[1], l.found);
}

static void add_prepared(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    (void)first, (void)count;
    l.map->prepared(l.map->own, l.found);
}

static void sum_keys(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    clear_part(&l);
    for (int64_t i = 0; i < count; i += HEAD_BLOCK) {
        token_block keys = load(&l, true, (first + i) / HEAD_BLOCK);
        absorb_keys(&l, &keys, l.part_s, l.part_z);
    }
}

static void add_keys(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    (void)first, (void)count;
    add_part(&l, l.s, l.z);
}

/* The state of all keys; causal forms begin with the empty one. */
void R(linear_before)(const head *h, const feature_map *map)
{
    linear l = open_linear(h, map);
    if (map->prepare)
        R(head_share)(h, h->n_k, SUM_GROUP, map, prepare_keys, add_prepared);
    if (l.causal)
        return;
    clear_state(&l);
    R(head_share)(h, h->n_k, SUM_GROUP, map, sum_keys, add_keys);
    R(store)(h->desc->storage, l.m, l.dv, l.s, l.dv);
    R(store)(h->desc->storage, 1, l.m, l.z, l.m);
}

/* ---- Parts of a causal head: runs of positions ---- */

static void take(const linear *l, const real *s, const real *z)
{
    memcpy(l->taken_s, s, (size_t)(l->m * l->dv) * sizeof(real));
    memcpy(l->taken_z, z, (size_t)l->m * sizeof(real));
}

static void take_keys(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    (void)first, (void)count;
    take(&l, l.s, l.z);
}

/* The sums over all blocks before one: of the groups before its own, and of its group so far. */
static void form_block_sums(const linear *l)
{
    for (int64_t e = 0; e < l->m * l->dv; e++)
        l->block_s[e] = l->taken_s[e] + l->part_s[e];
    for (int64_t r = 0; r < l->m; r++)
        l->block_z[r] = l->taken_z[r] + l->part_z[r];
}

/* The number of keys of a block that row i of a block of queries sees; they are its first ones. */
static int64_t seen_within(const linear *l, const token_block *queries, int64_t i,
                           const token_block *keys)
{
    const int64_t *positions = l->h->key_positions;
    int64_t after = core_position(l->h->positions, queries->first + i) + 1;
    return positions ? core_count_before(positions + keys->first, keys->rows, after)
                     : core_count_before(NULL, keys->rows, after - keys->first);
}

/* A of a block, 0 where the key comes after the query. */
static void weights_within(const linear *l, const token_block *queries, const token_block *keys)
{
    real_gemm(CblasNoTrans, CblasTrans, queries->rows, keys->rows, l->m, queries->phi, l->m,
              keys->phi, l->m, false, l->weights, HEAD_BLOCK);
    for (int64_t i = 0; i < queries->rows; i++) {
        int64_t seen = seen_within(l, queries, i, keys);
        memset(l->weights + i * HEAD_BLOCK + seen, 0, (size_t)(keys->rows - seen) * sizeof(real));
    }
}

/* phi(q).z of a block; keys: those of the same block, or null. multiply_vector adds in 16 parts, so
 * that up to MOST_FEATURES no part has more than the 256 terms that a product adds at a time.
 * Terms below 2^-126 lose digits in f32, which does not count in sums of at least SMALL. */
static void weight_sums(const linear *l, const token_block *queries, const token_block *keys,
                        double *sums)
{
    enum { MOST_FEATURES = 4096 };
    static const double SMALL = 0x1p-60;
    real products[HEAD_BLOCK];
    bool short_sums = l->m <= MOST_FEATURES;
    if (short_sums)
        R(multiply_vector)(queries->rows, l->m, queries->phi, l->m, l->z, products);
    for (int64_t i = 0; i < queries->rows; i++) {
        bool good = short_sums && products[i] >= SMALL && products[i] < INFINITY;
        sums[i] = good ? (double)products[i] : R(dot)(l->m, queries->phi + i * l->m, l->z);
    }
    for (int64_t i = 0; keys && i < queries->rows; i++)
        sums[i] += R(sum)(keys->rows, l->weights + i * HEAD_BLOCK);
}

/* D of a block, and whether each varies with its sum. A query that sees no key has N = 0, and D = 1
 * makes its output 0 rather than 0/0. */
static void denominators(const linear *l, const token_block *queries, const token_block *keys,
                         double *d, bool *varies)
{
    const feature_map *map = l->map;
    bool plain = map->denominator == LINEAR_PLAIN || l->h->n_k == 0;
    if (!plain)
        weight_sums(l, queries, keys, d);
    for (int64_t i = 0; i < queries->rows; i++) {
        bool one = plain || !sees(l, queries->first + i, 0);
        varies[i] = !one && (map->denominator == LINEAR_ADDED || d[i] > map->epsilon);
        d[i] = one                                ? 1
               : map->denominator == LINEAR_ADDED ? d[i] + map->epsilon
               : varies[i]                        ? d[i]
                                                  : map->epsilon;
    }
}

/* ---- Forward ---- */

static void answer(const linear *l, const token_block *queries, const token_block *keys)
{
    const head *h = l->h;
    real *out = h->out + queries->first * h->out_stride;
    real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, queries->rows, l->dv, l->m, queries->phi,
                               l->m, l->s, l->dv, false, out, h->out_stride),
                    real_next(queries->x, queries->rows, h->d, h->q_stride),
                    real_next(out, queries->rows, l->dv, h->out_stride));
    if (keys) {
        weights_within(l, queries, keys);
        real_gemm(CblasNoTrans, CblasNoTrans, queries->rows, l->dv, keys->rows, l->weights,
                  HEAD_BLOCK, h->v + keys->first * h->v_stride, h->v_stride, true, out,
                  h->out_stride);
    }
    double d[HEAD_BLOCK];
    bool varies[HEAD_BLOCK];
    denominators(l, queries, keys, d, varies);
    for (int64_t i = 0; i < queries->rows; i++) {
        real *restrict row = out + i * h->out_stride, factor = (real)(1 / d[i]);
        if (isnormal(factor))
            for (int64_t c = 0; c < l->dv; c++)
                row[c] *= factor;
        else /* in double */
            R(norm_scale)(1, d[i], l->dv, row, 1, row, 1);
    }
    head_finish_rows(h, queries->first, queries->rows);
}

static void answer_part(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    for (int64_t i = 0; i < count; i += HEAD_BLOCK) {
        token_block queries = load(&l, false, (first + i) / HEAD_BLOCK);
        answer(&l, &queries, NULL);
    }
}

/* Visits the blocks of a group, whose queries have the sums of all keys before them. */
static void visit_group(const void *map, const head *h, int64_t first, int64_t count,
                        void (*visit)(const linear *l, const token_block *queries,
                                      const token_block *keys))
{
    linear l = open_linear(h, map), block = l;
    block.s = l.block_s;
    block.z = l.block_z;
    clear_part(&l);
    for (int64_t i = first; i < first + count; i += HEAD_BLOCK) {
        token_block queries = load(&l, false, i / HEAD_BLOCK);
        token_block keys = load(&l, true, i / HEAD_BLOCK);
        form_block_sums(&l);
        visit(&block, &queries, &keys);
        absorb_keys(&l, &keys, l.part_s, l.part_z);
    }
}

static void answer_group(const void *map, const head *h, int64_t first, int64_t count)
{
    visit_group(map, h, first, count, answer);
}

void R(linear_forward)(const head *h, const feature_map *map)
{
    static const head_scan_parts groups = {sum_keys, take_keys, add_keys, answer_group, NULL};
    linear l = open_linear(h, map);
    if (!l.causal) {
        R(head_share_tokens)(h, h->n, map, answer_part);
        return;
    }
    clear_state(&l);
    R(head_scan)(h, h->length, SUM_GROUP, map, &groups);
}

/* ---- Backward ---- */

/* The index at which 1 / D and e of a block are stored. */
static int64_t rows_at(const linear *l, const token_block *queries)
{
    return l->causal ? queries->first : 0;
}

/* A and dY V^T of a block. */
static void products_within(const linear *l, const token_block *queries, const token_block *keys)
{
    const head *h = l->h;
    weights_within(l, queries, keys);
    real_gemm(CblasNoTrans, CblasTrans, queries->rows, keys->rows, l->dv,
              h->grad_out + queries->first * h->grad_out_stride, h->grad_out_stride,
              h->v + keys->first * h->v_stride, h->v_stride, false, l->grad_weights, HEAD_BLOCK);
}

/* Turns dY V^T into W. */
static void finish_grad_weights(const linear *l, const token_block *queries,
                                const token_block *keys)
{
    const real *inverse = l->inverse + rows_at(l, queries), *e = l->grad_sums + rows_at(l, queries);
    for (int64_t i = 0; i < queries->rows; i++) {
        int64_t seen = seen_within(l, queries, i, keys);
        real *w = l->grad_weights + i * HEAD_BLOCK, factor = inverse[i], along = e[i];
        for (int64_t j = 0; j < seen; j++)
            w[j] = w[j] * factor + along;
        memset(w + seen, 0, (size_t)(keys->rows - seen) * sizeof(real));
    }
}

/* 1 / D and e of a block; slopes holds dY S^T, so that dY_i.N_i = phi(q_i).slopes_i. A and dY V^T
 * agree on which keys are seen: A is 0 for the others. */
static void differentiate_denominators(const linear *l, const token_block *queries,
                                       const token_block *keys)
{
    real *inverse = l->inverse + rows_at(l, queries), *e = l->grad_sums + rows_at(l, queries);
    double d[HEAD_BLOCK], along[HEAD_BLOCK];
    bool varies[HEAD_BLOCK], plain = l->map->denominator == LINEAR_PLAIN;
    denominators(l, queries, keys, d, varies);
    if (!plain)
        R(row_dots)(queries->rows, l->m, queries->phi, l->m, l->slopes, l->m, along);
    for (int64_t i = 0; i < queries->rows; i++) {
        if (!plain && keys)
            along[i] +=
                R(dot)(keys->rows, l->weights + i * HEAD_BLOCK, l->grad_weights + i * HEAD_BLOCK);
        inverse[i] = (real)(1 / d[i]);
        e[i] = varies[i] ? (real)(-along[i] / d[i] / d[i]) : 0;
    }
}

/* grad_n = dY / D. */
static void scale_grad_out(const linear *l, const token_block *queries)
{
    const head *h = l->h;
    const real *inverse = l->inverse + rows_at(l, queries);
    for (int64_t i = 0; i < queries->rows; i++) {
        const real *grad_out = h->grad_out + (queries->first + i) * h->grad_out_stride;
        real factor = inverse[i], *restrict grad_n = l->grad_n + i * l->dv;
        for (int64_t c = 0; c < l->dv; c++)
            grad_n[c] = factor * grad_out[c];
    }
}

/* dq of a block, and its 1 / D and e; transposed holds S^T. */
static void finish_queries(const linear *l, const token_block *queries, const token_block *keys)
{
    const head *h = l->h;
    int64_t m = l->m;
    if (queries->rows == 0)
        return;
    const real *dy = h->grad_out + queries->first * h->grad_out_stride;
    real *grad_q = h->grad_q + queries->first * h->grad_q_stride;
    head_search_grad_out(h, queries->rows, dy);
    real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, queries->rows, m, l->dv, dy,
                               h->grad_out_stride, l->transposed, m, false, l->slopes, m),
                    real_next(dy, queries->rows, l->dv, h->grad_out_stride),
                    real_next(queries->x, queries->rows, h->d, h->q_stride));
    if (keys)
        products_within(l, queries, keys);
    differentiate_denominators(l, queries, keys);
    const real *inverse = l->inverse + rows_at(l, queries), *e = l->grad_sums + rows_at(l, queries);
    for (int64_t i = 0; i < queries->rows; i++) {
        real factor = inverse[i], along = e[i], *restrict slopes = l->slopes + i * m;
        for (int64_t r = 0; r < m; r++)
            slopes[r] = factor * slopes[r] + along * l->z[r];
    }
    if (keys) {
        finish_grad_weights(l, queries, keys);
        real_gemm(CblasNoTrans, CblasNoTrans, queries->rows, m, keys->rows, l->grad_weights,
                  HEAD_BLOCK, keys->phi, m, true, l->slopes, m);
    }
    l->map->map_backward(l->map->own, queries, l->slopes, false, grad_q, h->grad_q_stride);
    head_search_rows(h, queries->rows, h->d, grad_q, h->grad_q_stride);
}

/* grad_s += sum_i phi(q_i) dY_i^T / D_i, grad_z += sum_i e_i phi(q_i). */
static void absorb_queries(const linear *l, const token_block *queries, real *grad_s, real *grad_z)
{
    const head *h = l->h;
    scale_grad_out(l, queries);
    real_gemm_ahead(real_terms(CblasTrans, CblasNoTrans, l->m, l->dv, queries->rows, queries->phi,
                               l->m, l->grad_n, l->dv, true, grad_s, l->dv),
                    real_next(h->grad_q + queries->first * h->grad_q_stride, queries->rows, h->d,
                              h->grad_q_stride),
                    NULL);
    add_rows(l, queries, l->grad_sums + rows_at(l, queries), grad_z);
}

/* dk and dv of a block; transposed holds dS^T; queries: those of the same block, or null. */
static void finish_keys(const linear *l, const token_block *keys, const token_block *queries)
{
    const head *h = l->h;
    int64_t m = l->m;
    const real *v = h->v + keys->first * h->v_stride;
    real *grad_v = h->grad_v + keys->first * h->grad_v_stride;
    if (keys->rows == 0)
        return;
    for (int64_t j = 0; j < keys->rows; j++)
        memcpy(l->slopes + j * m, l->grad_z, (size_t)m * sizeof(real));
    real *grad_k = h->grad_k + keys->first * h->grad_k_stride;
    real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, keys->rows, m, l->dv, v, h->v_stride,
                               l->transposed, m, true, l->slopes, m),
                    real_next(v, keys->rows, l->dv, h->v_stride),
                    real_next(grad_k, keys->rows, h->d, h->grad_k_stride));
    real_gemm_ahead(real_terms(CblasNoTrans, CblasNoTrans, keys->rows, l->dv, m, keys->phi, m,
                               l->grad_s, l->dv, false, grad_v, h->grad_v_stride),
                    real_next(grad_v, keys->rows, l->dv, h->grad_v_stride),
                    real_next(keys->x, keys->rows, h->d, h->k_stride));
    if (queries) {
        products_within(l, queries, keys);
        finish_grad_weights(l, queries, keys);
        scale_grad_out(l, queries);
        real_gemm(CblasTrans, CblasNoTrans, keys->rows, m, queries->rows, l->grad_weights,
                  HEAD_BLOCK, queries->phi, m, true, l->slopes, m);
        real_gemm(CblasTrans, CblasNoTrans, keys->rows, l->dv, queries->rows, l->weights,
                  HEAD_BLOCK, l->grad_n, l->dv, true, grad_v, h->grad_v_stride);
    }
    l->map->map_backward(l->map->own, keys, l->slopes, h->grad_k == h->grad_q, grad_k,
                         h->grad_k_stride);
    head_search_rows(h, keys->rows, l->dv, grad_v, h->grad_v_stride);
    head_search_rows(h, keys->rows, h->d, grad_k, h->grad_k_stride);
}

static void backward_queries(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    clear_part(&l);
    transpose_sums(&l, l.s);
    for (int64_t i = 0; i < count; i += HEAD_BLOCK) {
        token_block queries = load(&l, false, (first + i) / HEAD_BLOCK);
        finish_queries(&l, &queries, NULL);
        absorb_queries(&l, &queries, l.part_s, l.part_z);
    }
}

static void add_queries(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    (void)first, (void)count;
    add_part(&l, l.grad_s, l.grad_z);
}

static void backward_keys(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    memset(l.found, 0, LINEAR_FOUND * sizeof(double));
    transpose_sums(&l, l.grad_s);
    for (int64_t i = 0; i < count; i += HEAD_BLOCK) {
        token_block keys = load(&l, true, (first + i) / HEAD_BLOCK);
        finish_keys(&l, &keys, NULL);
    }
}

static void add_found(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    (void)first, (void)count;
    if (l.map->add)
        l.map->add(l.map->own, l.found);
}

static void backward_all(const linear *l)
{
    const head *h = l->h;
    R(head_share)(h, h->n, SUM_GROUP, l->map, backward_queries, add_queries);
    if (l->map->add)
        R(head_share)(h, h->n_k, SUM_GROUP, l->map, backward_keys, add_found);
    else
        R(head_share_tokens)(h, h->n_k, l->map, backward_keys);
}

/* ---- Causal backward: dq of groups forwards, then dk and dv of groups backwards ---- */

static void backward_block_queries(const linear *l, const token_block *queries,
                                   const token_block *keys)
{
    transpose_sums(l, l->s);
    finish_queries(l, queries, keys);
}

static void backward_query_group(const void *map, const head *h, int64_t first, int64_t count)
{
    visit_group(map, h, first, count, backward_block_queries);
}

/* The blocks of the group whose index counts from the last one: from `last` down to `first`. */
static void group_from_end(const head *h, int64_t index, int64_t *first, int64_t *last)
{
    int64_t groups = (h->length + SUM_GROUP - 1) / SUM_GROUP;
    int64_t begin = (groups - 1 - index / SUM_GROUP) * SUM_GROUP;
    *first = begin / HEAD_BLOCK;
    *last = (head_smaller(begin + SUM_GROUP, h->length) - 1) / HEAD_BLOCK;
}

static void sum_query_group(const void *map, const head *h, int64_t index, int64_t count)
{
    linear l = open_linear(h, map);
    int64_t first, last;
    (void)count;
    group_from_end(h, index, &first, &last);
    clear_part(&l);
    for (int64_t step = last; step >= first; step--) {
        token_block queries = load(&l, false, step);
        absorb_queries(&l, &queries, l.part_s, l.part_z);
    }
}

static void take_queries(const void *map, const head *h, int64_t first, int64_t count)
{
    linear l = open_linear(h, map);
    (void)first, (void)count;
    take(&l, l.grad_s, l.grad_z);
}

static void backward_key_group(const void *map, const head *h, int64_t index, int64_t count)
{
    linear l = open_linear(h, map), block = l;
    int64_t first, last;
    (void)count;
    block.grad_s = l.block_s;
    block.grad_z = l.block_z;
    group_from_end(h, index, &first, &last);
    clear_part(&l);
    for (int64_t step = last; step >= first; step--) {
        token_block queries = load(&l, false, step), keys = load(&l, true, step);
        form_block_sums(&l);
        transpose_sums(&block, block.grad_s);
        finish_keys(&block, &keys, &queries);
        absorb_queries(&l, &queries, l.part_s, l.part_z);
    }
}

static void backward_causal(const linear *l)
{
    static const head_scan_parts forwards = {sum_keys, take_keys, add_keys, backward_query_group,
                                             NULL};
    static const head_scan_parts backwards = {sum_query_group, take_queries, add_queries,
                                              backward_key_group, add_found};
    clear_state(l);
    R(head_scan)(l->h, l->h->length, SUM_GROUP, l->map, &forwards);
    R(head_scan)(l->h, l->h->length, SUM_GROUP, l->map, &backwards);
}

void R(linear_backward)(const head *h, const feature_map *map)
{
    linear l = open_linear(h, map);
    memset(l.grad_s, 0, (size_t)(l.m * l.dv) * sizeof(real));
    memset(l.grad_z, 0, (size_t)l.m * sizeof(real));
    if (l.causal)
        backward_causal(&l);
    else
        backward_all(&l);
    if (map->finish)
        map->finish(map->own);
}
