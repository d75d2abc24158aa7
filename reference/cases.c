/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "ref_memory.h"

/* The random stream of each array, so that adding one does not change the others. */
enum { DRAW_Q, DRAW_K, DRAW_V, DRAW_DOUT, DRAW_MASKS, DRAW_PARAMETERS = 16 };

enum { FEATURES = 12, LANDMARKS = 4, ROUNDS = 2, BUCKETS = 4, CHUNK = 16 };

/* The size that the caller gave, or the default. */
static int64_t size_or(int64_t asked, int64_t small)
{
    return asked > 0 ? asked : small;
}

static uint64_t stream(const attention_case *c, int draw)
{
    uint64_t state = c->choice.seed * 64 + (uint64_t)draw;
    return data_next(&state);
}

static void *own(attention_case *c, void *memory)
{
    if (!memory || c->owned_count == (int)(sizeof c->owned / sizeof *c->owned))
        ref_give_up("out of memory: a problem");
    return c->owned[c->owned_count++] = memory;
}

/* Rounds to the dtype, or to the storage that it emulates. */
static void round_values(const attention_case *c, int64_t count, double *values)
{
    data_round(c->choice.dtype, count, values);
    for (int64_t i = 0; c->choice.storage != ATN_STORAGE_NATIVE && i < count; i++) {
        float value = (float)values[i];
        atn_storage_round(c->choice.storage, 1, &value);
        values[i] = (double)value;
    }
}

static double *normal(attention_case *c, int draw, int64_t count, double factor)
{
    double *values = own(c, data_allocate(count));
    data_normal(stream(c, draw), count, values);
    for (int64_t i = 0; i < count; i++)
        values[i] *= factor;
    round_values(c, count, values);
    return values;
}

/* ---- Parameters, in f64 ---- */

/* A tensor of `mean` plus `factor` times normal numbers. In an outline it points to a single number
 * that is never read: with 10^7 tokens Linformer's E would take gigabytes. */
static atn_tensor tensor(attention_case *c, int draw, int64_t heads, int64_t rows, int64_t cols,
                         double mean, double factor)
{
    static double unread;
    if (c->choice.outline)
        return atn_tensor_dense(&unread, ATN_F64, 1, heads, rows, cols);
    int64_t count = heads * rows * cols;
    double *values = normal(c, DRAW_PARAMETERS + draw, count, factor);
    for (int64_t i = 0; i < count; i++)
        values[i] += mean;
    round_values(c, count, values);
    return atn_tensor_dense(values, ATN_F64, 1, heads, rows, cols);
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
    return x > most ? most : x < least ? least : x;
}

/* The most square grid that holds n tokens. */
static void grid_of(int64_t n, int64_t *height, int64_t *width)
{
    *height = n > 0 ? 1 : 0;
    for (int64_t h = 1; h * h <= n; h++)
        if (n % h == 0)
            *height = h;
    *width = n > 0 ? n / *height : 0;
}

static void give_draws(attention_case *c, atn_sampling *s)
{
    int64_t n = c->shape.tokens;
    int64_t *indices = own(c, ref_take((size_t)(n + 1), sizeof *indices));
    data_permutation(stream(c, DRAW_PARAMETERS), n, indices);
    s->indices = indices;
    double *uniforms = own(c, data_allocate(2 * n));
    uint64_t state = stream(c, DRAW_PARAMETERS + 5);
    for (int64_t i = 0; i < 2 * n; i++)
        uniforms[i] = (double)(data_next(&state) >> 11) * 0x1p-53;
    s->uniforms = uniforms;
    s->uniform_count = 2 * n;
}

/* At most 9 landmarks, but never 2: A would have equal row sums, for which the papers' start is on
 * the edge of divergence. */
static void give_soft(attention_case *c)
{
    atn_sampling *s = &c->reference.sampling;
    int64_t n = c->shape.tokens, d = c->shape.dim;
    s->kind = c->choice.sampling;
    grid_of(n, &s->height, &s->width);
    bool window = s->kind == ATN_SAMPLING_WINDOW;
    int64_t m = c->choice.landmarks, side = (int64_t)llround(sqrt((double)m));
    s->stride = !window ? clamp(s->height / 2, 1, 4) : n == 2 ? 2 : n / 8 + 1;
    s->count = n < 3 ? 1 : clamp((n + 1) / 2, 3, 9);
    if (m > 0) {
        s->stride = window ? clamp((n + m - 1) / m, 1, n) : clamp(s->height / side, 1, s->height);
        s->count = clamp(m, 1, n);
    }
    if (c->choice.outline)
        s->indices = own(c, ref_take((size_t)s->count, sizeof *s->indices));
    else
        give_draws(c, s);
    s->steps = 2;
    if (s->kind == ATN_SAMPLING_CONV || s->kind == ATN_SAMPLING_CONV_CODE) {
        int64_t window_cells = s->stride * s->stride;
        s->weights = tensor(c, 1, d, d, window_cells, 0, 1 / sqrt((double)(d * window_cells)));
    }
    if (s->kind == ATN_SAMPLING_CONV_CODE && c->choice.optional) {
        s->norm_weight = tensor(c, 2, 1, 1, d, 1, 0.3);
        s->norm_bias = tensor(c, 3, 1, 1, d, 0, 0.5);
    }
    if (!c->choice.optional)
        return;
    c->reference.residual = tensor(c, 4, c->shape.heads, 3, 3, 0, 1);
    grid_of(n, &c->reference.residual_height, &c->reference.residual_width);
}

static void give_xnorm(attention_case *c)
{
    if (c->choice.optional)
        c->reference.xnorm.gamma = tensor(c, 0, c->shape.heads, 1, 1, 1, 0.3);
}

static int64_t own_or_shared(const attention_case *c)
{
    return c->choice.optional ? c->shape.heads : 1;
}

/* E and F have more rows than there are keys, so that slicing is tested. */
static void give_linformer(attention_case *c)
{
    int64_t heads = own_or_shared(c), rows = c->shape.key_tokens + 3;
    int64_t width = size_or(c->choice.landmarks, LANDMARKS);
    double factor = 1 / sqrt((double)rows);
    c->reference.linformer.e = tensor(c, 0, heads, rows, width, 0, factor);
    if (c->choice.optional)
        c->reference.linformer.f = tensor(c, 1, heads, rows, width, 0, factor);
}

static void give_performer(attention_case *c)
{
    c->reference.performer.projection =
        tensor(c, 0, own_or_shared(c), size_or(c->choice.features, FEATURES), c->shape.dim, 0, 1);
}

static void give_rff(attention_case *c)
{
    c->reference.rff.projection =
        tensor(c, 0, own_or_shared(c), size_or(c->choice.features, FEATURES), c->shape.dim, 0, 1);
}

/* Fewer landmarks than tokens, if there are two tokens: with as many as tokens it is softmax
 * attention. */
static void give_nystromformer(attention_case *c)
{
    int64_t fewer = c->shape.tokens < c->shape.key_tokens ? c->shape.tokens : c->shape.key_tokens;
    c->reference.nystromformer.landmarks =
        clamp(fewer - 1, 1, size_or(c->choice.landmarks, LANDMARKS));
    if (c->choice.optional && c->shape.key_tokens == c->shape.tokens)
        c->reference.residual = tensor(c, 0, c->shape.heads, 3, 1, 0, 1);
}

static void give_xca(attention_case *c)
{
    if (c->choice.optional)
        c->reference.xca.temperature = tensor(c, 0, c->shape.heads, 1, 1, 1.5, 0.3);
}

static void give_cosformer(attention_case *c)
{
    if (c->reference.cosformer.weighting == ATN_COSINE_2D)
        grid_of(c->shape.tokens, &c->reference.cosformer.height, &c->reference.cosformer.width);
    else if (c->choice.optional)
        c->reference.cosformer.length = c->shape.tokens + c->shape.key_tokens;
}

/* The distance of the nearest token from the border between two buckets. */
static double nearest_border(const attention_case *c, const double *rotations)
{
    int64_t d = c->shape.dim, half = size_or(c->choice.buckets, BUCKETS) / 2;
    int64_t rounds = size_or(c->choice.rounds, ROUNDS);
    double nearest = INFINITY;
    for (int64_t i = 0; i < c->shape.batch * c->shape.heads * c->shape.tokens; i++)
        for (int64_t round = 0; round < rounds; round++) {
            double best = 0, second = 0; /* of |q.R|: the larger of q.R and -q.R */
            for (int64_t b = 0; b < half; b++) {
                double sum = 0;
                for (int64_t j = 0; j < d; j++)
                    sum += c->q[i * d + j] * rotations[(round * d + j) * half + b];
                sum = fabs(sum);
                second = sum > best ? best : sum > second ? sum : second;
                best = sum > best ? sum : best;
            }
            nearest = fmin(nearest, fmin(best, best - second));
        }
    return nearest;
}

/* Rotations are drawn again while rounding could move a token to another bucket. */
static void give_lsh(attention_case *c)
{
    atn_lsh_options *lsh = &c->reference.lsh;
    int64_t n = c->shape.tokens, tokens = c->shape.batch * c->shape.heads * n;
    int64_t chunk = size_or(c->choice.chunk, clamp(n / 4, 1, CHUNK));
    for (lsh->chunk = clamp(chunk, 1, clamp(n, 1, chunk)); n % lsh->chunk != 0;)
        lsh->chunk--;
    if (c->choice.optional) {
        int64_t *buckets = own(c, ref_take((size_t)(tokens * 3 + 1), sizeof *buckets));
        uint64_t state = stream(c, DRAW_PARAMETERS);
        for (int64_t i = 0; i < tokens * 3; i++)
            buckets[i] = (int64_t)(data_next(&state) % BUCKETS);
        lsh->buckets = buckets;
        lsh->rounds = 3;
        return;
    }
    int draw = 0;
    do
        lsh->rotations = tensor(c, draw++, size_or(c->choice.rounds, ROUNDS), c->shape.dim,
                                size_or(c->choice.buckets, BUCKETS) / 2, 0, 1);
    while (!c->choice.bare && draw < 16 && nearest_border(c, lsh->rotations.data) < 1e-5);
}

static void (*const givers[ATN_OPERATOR_COUNT])(attention_case *) = {
    [ATN_SOFT] = give_soft,
    [ATN_SOFTPP] = give_soft,
    [ATN_XNORM] = give_xnorm,
    [ATN_LINFORMER] = give_linformer,
    [ATN_PERFORMER] = give_performer,
    [ATN_RFF] = give_rff,
    [ATN_NYSTROMFORMER] = give_nystromformer,
    [ATN_XCA] = give_xca,
    [ATN_COSFORMER] = give_cosformer,
    [ATN_LSH] = give_lsh,
};

/* ---- The case ---- */

/* Drops the options that the operator does not have. */
static void adjust(attention_case *c)
{
    attention_choice *choice = &c->choice;
    atn_attention_shape *s = &choice->shape;
    unsigned can = atn_operator_get(choice->op)->capabilities;
    bool grid = c->reference.cosformer.weighting == ATN_COSINE_2D && choice->op == ATN_COSFORMER;
    choice->causal = c->reference.causal || (choice->causal && (can & ATN_CAN_CAUSAL));
    choice->padding = choice->padding && (can & ATN_CAN_MASK);
    if (s->key_tokens == 0 || !(can & ATN_CAN_LENGTHS) || choice->causal || grid)
        s->key_tokens = s->tokens;
    choice->cross = (choice->cross || s->key_tokens != s->tokens) && (can & ATN_CAN_CROSS);
    if (choice->op == ATN_XCA)
        s->value_dim = s->dim;
    c->shape = *s;
}

/* The last token is not masked, so that a mask differs from a length; nor is the first of a causal
 * form, so that every output sees a key. */
static unsigned char *random_mask(attention_case *c, uint64_t *state, int64_t tokens)
{
    unsigned char *mask = own(c, ref_take((size_t)(c->shape.batch * tokens + 1), 1));
    for (int64_t i = 0; i < c->shape.batch * tokens; i++) {
        bool kept = i % tokens == tokens - 1 || (c->choice.causal && i % tokens == 0);
        mask[i] = data_next(state) % 3 != 0 || kept;
    }
    return mask;
}

static void give_inputs(attention_case *c)
{
    uint64_t state = stream(c, DRAW_MASKS);
    c->q = normal(c, DRAW_Q, attention_case_queries(c), 1);
    if (c->choice.cross)
        c->k = normal(c, DRAW_K, attention_case_keys(c), 1);
    c->v = normal(c, DRAW_V, attention_case_values(c), 1);
    c->dout = normal(c, DRAW_DOUT, attention_case_outputs(c), 1);
    if (!c->choice.padding)
        return;
    c->key_mask = random_mask(c, &state, c->shape.key_tokens);
    if (c->choice.cross)
        c->query_mask = random_mask(c, &state, c->shape.tokens);
}

/* Tensor number i of a description; null after the last. */
static atn_tensor *tensor_of(atn_attention_desc *desc, int i)
{
    atn_tensor *const others[] = {&desc->performer.projection, &desc->rff.projection,
                                  &desc->lsh.rotations, NULL};
    return i < ATN_PARAMETER_COUNT ? atn_attention_parameter(desc, (atn_parameter)i)
                                   : others[i - ATN_PARAMETER_COUNT];
}

/* The description with tensors of the dtype, in separate memory. */
static void describe(attention_case *c)
{
    c->desc = c->reference;
    for (int i = 0; tensor_of(&c->desc, i); i++) {
        atn_tensor *t = tensor_of(&c->desc, i);
        const double *values = t->data;
        if (!values)
            continue;
        t->dtype = c->choice.dtype;
        if (c->choice.outline)
            continue;
        int64_t count = t->heads * t->rows * t->cols;
        t->data = own(c, data_allocate(count));
        atn_convert(c->choice.dtype, t->data, ATN_F64, values, count);
    }
}

attention_case attention_case_make(const attention_choice *choice)
{
    attention_case c = {.choice = *choice};
    c.reference = atn_attention_variant(choice->op, choice->variant, choice->dtype);
    adjust(&c);
    c.reference.causal = c.choice.causal;
    c.reference.padding = c.choice.padding;
    c.reference.storage = c.choice.storage;
    if (!c.choice.bare)
        give_inputs(&c);
    if (givers[choice->op])
        givers[choice->op](&c);
    describe(&c);
    return c;
}

void attention_case_free(attention_case *c)
{
    while (c->owned_count > 0)
        free(c->owned[--c->owned_count]);
}

static double *copy(attention_case *owner, const double *values, int64_t count)
{
    double *memory = own(owner, data_allocate(count));
    memcpy(memory, values, (size_t)count * sizeof *memory);
    return memory;
}

attention_case attention_case_widened(const attention_case *c)
{
    attention_case wide = *c;
    wide.owned_count = 0;
    wide.desc = c->reference;
    wide.desc.dtype = wide.choice.dtype = ATN_F64;
    wide.q = copy(&wide, c->q, attention_case_queries(c));
    wide.k = c->k ? copy(&wide, c->k, attention_case_keys(c)) : NULL;
    wide.v = copy(&wide, c->v, attention_case_values(c));
    wide.dout = copy(&wide, c->dout, attention_case_outputs(c));
    return wide;
}

ref_attention_problem attention_case_problem(const attention_case *c)
{
    return (ref_attention_problem){&c->reference, c->shape,      c->q,       c->k,
                                   c->v,          c->query_mask, c->key_mask};
}

int64_t attention_case_queries(const attention_case *c)
{
    return c->shape.batch * c->shape.heads * c->shape.tokens * c->shape.dim;
}

int64_t attention_case_keys(const attention_case *c)
{
    return c->choice.cross ? c->shape.batch * c->shape.heads * c->shape.key_tokens * c->shape.dim
                           : 0;
}

int64_t attention_case_values(const attention_case *c)
{
    return c->shape.batch * c->shape.heads * c->shape.key_tokens * c->shape.value_dim;
}

int64_t attention_case_outputs(const attention_case *c)
{
    return c->shape.batch * c->shape.heads * c->shape.tokens * c->shape.value_dim;
}

int64_t attention_case_parameter(const attention_case *c, atn_parameter parameter)
{
    atn_attention_desc desc = c->reference;
    const atn_tensor *t = atn_attention_parameter(&desc, parameter);
    return t->data ? t->heads * t->rows * t->cols : 0;
}

int64_t attention_case_terms(const attention_case *c)
{
    const atn_attention_shape *s = &c->shape;
    int64_t sizes[] = {s->tokens, s->key_tokens, s->dim, s->value_dim, 1};
    int64_t terms = c->choice.op == ATN_PERFORMER || c->choice.op == ATN_RFF
                        ? 2 * size_or(c->choice.features, FEATURES)
                        : 1;
    const atn_sampling *sampling = &c->reference.sampling;
    if (sampling->weights.data)
        terms = s->dim * sampling->stride * sampling->stride;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        terms = sizes[i] > terms ? sizes[i] : terms;
    return terms;
}

const char *attention_case_label(const attention_case *c)
{
    static char text[300];
    const atn_operator_info *info = atn_operator_get(c->choice.op);
    const atn_attention_shape *s = &c->shape;
    bool soft = c->choice.op == ATN_SOFT || c->choice.op == ATN_SOFTPP;
    snprintf(text, sizeof text,
             "%s %s %s b=%ld h=%ld n=%ld n_k=%ld d=%ld dv=%ld%s%s%s%s %s%s seed=%lu", info->name,
             info->variants[c->choice.variant].name, atn_dtype_name(c->choice.dtype),
             (long)s->batch, (long)s->heads, (long)s->tokens, (long)s->key_tokens, (long)s->dim,
             (long)s->value_dim, c->choice.cross ? " cross" : "",
             c->choice.padding ? " padding" : "", c->choice.causal ? " causal" : "",
             c->choice.optional ? " optional" : "", soft ? "sampling=" : "",
             soft ? atn_sampling_name(c->choice.sampling) : "", (unsigned long)c->choice.seed);
    return text;
}
