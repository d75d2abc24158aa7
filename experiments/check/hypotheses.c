/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/hypotheses.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

#define BIT(op) (1u << (op))
#define ALL     (~0u)
#define SOFT    (BIT(ATN_SOFT) | BIT(ATN_SOFTPP))
#define KERNEL  (SOFT | BIT(ATN_GAUSSIAN) | BIT(ATN_RFF))
#define LOGITS                                                                                     \
    (BIT(ATN_SOFTMAX) | BIT(ATN_LINFORMER) | BIT(ATN_PERFORMER) | BIT(ATN_NYSTROMFORMER) |         \
     BIT(ATN_LSH))
#define PLAIN                                                                                      \
    (BIT(ATN_GAUSSIAN) | BIT(ATN_SOFTMAX) | BIT(ATN_SIMA) | BIT(ATN_EFFICIENT) | BIT(ATN_ELU))

/* ---- Arrays ---- */

result_kind parameter_result(atn_parameter which)
{
    return (result_kind)(RESULT_PARAMETERS + (int)which);
}

void trial_keep(trial *t, void *memory)
{
    owned_add(&t->owned, memory);
}

/* Adds a change of the result; false: there is no room for it. */
static bool trial_add_move(trial *t, result_move *move)
{
    if (t->move_count == MOST_MOVES)
        return false;
    t->moves[t->move_count++] = move;
    return true;
}

double *trial_own(trial *t, int64_t count)
{
    double *x = must_allocate((size_t)count, sizeof *x);
    trial_keep(t, x);
    return x;
}

double *trial_copy(trial *t, const double *x, int64_t count)
{
    double *y = trial_own(t, count);
    memcpy(y, x, (size_t)count * sizeof *y);
    return y;
}

void trial_separate_keys(trial *t)
{
    attention_case *c = &t->s.c;
    if (!c->k && !c->query_mask)
        c->query_mask = c->key_mask;
    if (!c->k)
        c->k = c->q;
    c->choice.cross = true;
}

/* The gradients of exchanged inputs are exchanged, too. */
static bool swap_gradients(trial *t, result_kind a, result_kind b)
{
    t->of = t->of == a ? b : t->of == b ? a : t->of;
    return true;
}

bool trial_has_landmarks(const trial *t)
{
    return t->s.c.shape.tokens != t->s.judged.shape.tokens;
}

/* ---- The kernel's and the logits' scale ---- */

static const char *const scale_texts[] = {
    "scale 1/(2 sqrt(d)), of one head",
    "scale 1/(2 sqrt(heads d)), of the embedding",
    "scale 1/sqrt(d), without the half",
    "scale 1/(2 d): no square root, or scaled twice",
    "scale 1/2, without the width",
    "scale 1: none",
    "scale 1/(4 sqrt(d)): halved twice",
    "scale 1/d",
    "scale 1/(2 sqrt(d + 1))",
    "scale 1/(2 sqrt(d - 1))",
    "exp2 without the factor log2(e)",
    "the scale multiplied by log2(e), but exp",
    "scale 1/(2 sqrt(d)) rounded to bf16",
    "scale 1/(4 d): scaled twice",
    NULL,
};

static double in_bf16(double x)
{
    float narrow = (float)x;
    atn_storage_round(ATN_STORAGE_BF16, 1, &narrow);
    return narrow;
}

static bool set_scale(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    const atn_attention_shape *s = &t->s.c.shape;
    double d = (double)s->dim, h = (double)s->heads;
    double now = atn_kernel_scale(desc->scale, desc->scale_value, s->heads, s->dim);
    const double scales[] = {1 / (2 * sqrt(d)),
                             1 / (2 * sqrt(h * d)),
                             1 / sqrt(d),
                             1 / (2 * d),
                             0.5,
                             1,
                             1 / (4 * sqrt(d)),
                             1 / d,
                             1 / (2 * sqrt(d + 1)),
                             1 / (2 * sqrt(d - 1)),
                             now * log(2),
                             now / log(2),
                             in_bf16(now),
                             now * now};
    desc->scale = ATN_SCALE_VALUE;
    desc->scale_value = scales[value];
    return fabs(now - scales[value]) > 1e-12 * now;
}

static const char *const logit_texts[] = {
    "logits scaled by 1/sqrt(d)",
    "logits scaled by 1/d: no square root, or scaled twice",
    "logits not scaled",
    "logits scaled by 1/sqrt(heads d), of the embedding",
    "logits multiplied by sqrt(d)",
    "logits scaled by 1/sqrt(d + 1)",
    "logits scaled by 1/sqrt(d - 1)",
    "exp2 without the factor log2(e)",
    "logits multiplied by log2(e), but exp",
    "the logits' scale rounded to bf16",
    "logits scaled twice",
    NULL,
};

static bool set_logits(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    double d = (double)t->s.c.shape.dim, h = (double)t->s.c.shape.heads;
    double now = desc->logit_scale != 0 ? desc->logit_scale : 1 / sqrt(d);
    const double scales[] = {1 / sqrt(d),     1 / d,        1,
                             1 / sqrt(h * d), sqrt(d),      1 / sqrt(d + 1),
                             1 / sqrt(d - 1), now * log(2), now / log(2),
                             in_bf16(now),    now * now};
    desc->logit_scale = scales[value];
    return fabs(now - scales[value]) > 1e-12 * fabs(now);
}

/* ---- Published variants ---- */

static bool is_size(const parameter *p)
{
    return p->kind == PARAMETER_INTEGER || (p->offset >= offsetof(atn_attention_desc, sampling) &&
                                            p->offset < offsetof(atn_attention_desc, inverse));
}

static void assign(const parameter *p, const atn_attention_desc *from, atn_attention_desc *to)
{
    static const size_t sizes[] = {[PARAMETER_INT] = sizeof(int),
                                   [PARAMETER_INTEGER] = sizeof(int64_t),
                                   [PARAMETER_REAL] = sizeof(double),
                                   [PARAMETER_FLAG] = sizeof(bool),
                                   [PARAMETER_NAME] = sizeof(int)};
    memcpy((char *)to + p->offset, (const char *)from + p->offset, sizes[p->kind]);
}

static bool set_variant(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    if (value >= atn_operator_get(desc->op)->variant_count)
        return false;
    atn_attention_desc other = atn_attention_variant(desc->op, value, ATN_F64);
    bool changes = false;
    for (const parameter *p = parameters; p->name; p++)
        if (parameter_is_of(p, desc->op) && p->kind < PARAMETER_TENSOR && !is_size(p) &&
            p->offset != offsetof(atn_attention_desc, logit_scale) &&
            parameter_differs(p, desc, &other)) {
            assign(p, &other, desc);
            changes = true;
        }
    return changes;
}

static bool set_operator(trial *t, int value)
{
    static const atn_operator others[] = {ATN_GAUSSIAN, ATN_SOFTMAX, ATN_SIMA, ATN_EFFICIENT,
                                          ATN_ELU};
    attention_case *c = &t->s.c;
    if (others[value] == c->choice.op)
        return false;
    atn_attention_desc other = atn_attention_defaults(others[value], ATN_F64);
    other.padding = c->reference.padding;
    c->choice.op = others[value];
    c->reference = other;
    return true;
}

static const char *const operator_texts[] = {
    "another operator: gaussian",  "another operator: softmax", "another operator: sima",
    "another operator: efficient", "another operator: elu",     NULL};

/* ---- Grids ---- */

static bool swap_grid(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    int64_t height = desc->sampling.height, width = desc->sampling.width;
    if (height == width)
        return false;
    desc->sampling.height = desc->residual_height = desc->cosformer.height = width;
    desc->sampling.width = desc->residual_width = desc->cosformer.width = height;
    return true;
}

/* ---- Roles ---- */

static bool swap_pointers(double **a, double **b, bool fits)
{
    double *kept = *a;
    *a = *b;
    *b = kept;
    return fits;
}

static bool swap_queries_keys(trial *t, int value)
{
    attention_case *c = &t->s.c;
    return c->k && swap_pointers(&c->q, &c->k, c->shape.tokens == c->shape.key_tokens) &&
           swap_gradients(t, RESULT_TOKENS, RESULT_KEYS);
}

static bool ignore_keys(trial *t, int value)
{
    attention_case *c = &t->s.c;
    bool fits = c->k && c->shape.tokens == c->shape.key_tokens && t->of != RESULT_KEYS;
    c->k = NULL;
    c->choice.cross = false;
    return fits;
}

static bool swap_keys_values(trial *t, int value)
{
    attention_case *c = &t->s.c;
    return c->k && swap_pointers(&c->k, &c->v, c->shape.dim == c->shape.value_dim) &&
           swap_gradients(t, RESULT_KEYS, RESULT_VALUES);
}

static bool swap_queries_values(trial *t, int value)
{
    attention_case *c = &t->s.c;
    bool fits = c->shape.dim == c->shape.value_dim && c->shape.tokens == c->shape.key_tokens;
    return fits && !trial_has_landmarks(t) && swap_pointers(&c->q, &c->v, true) &&
           swap_gradients(t, RESULT_TOKENS, RESULT_VALUES);
}

/* ---- Tensors ---- */

static bool swap_e_f(trial *t, int value)
{
    atn_linformer_options *o = &t->s.c.reference.linformer;
    atn_tensor kept = o->e;
    if (!o->f.data)
        return false;
    o->e = o->f;
    o->f = kept;
    return swap_gradients(t, parameter_result(ATN_PARAMETER_E), parameter_result(ATN_PARAMETER_F));
}

/* ---- cosFormer's length ---- */

static const char *const length_texts[] = {"length M = n + 1",
                                           "length M = n + 16",
                                           "length M = n + 32",
                                           "length M = n + 64",
                                           "length M = 2 n",
                                           "length M of whole tiles of 16",
                                           "length M of whole tiles of 64",
                                           "length M = 512",
                                           "length M = 1024",
                                           "length M = 2048",
                                           "length M = 4096",
                                           "length M = n",
                                           NULL};

static bool set_length(trial *t, int value)
{
    atn_cosformer_options *o = &t->s.c.reference.cosformer;
    const atn_attention_shape *s = &t->s.c.shape;
    int64_t n = s->tokens > s->key_tokens ? s->tokens : s->key_tokens;
    const int64_t lengths[] = {n + 1,         n + 16, n + 32, n + 64, 2 * n, n + (-n & 15),
                               n + (-n & 63), 512,    1024,   2048,   4096,  n};
    bool changed = lengths[value] != (o->length > 0 ? o->length : n) && lengths[value] >= n;
    o->length = lengths[value];
    return changed;
}

/* ---- The result ---- */

/* Loops over the elements (b, h, i, c) of the result; `at` is the element's index. Sizes are those
 * of `judged`. */
#define EACH_ELEMENT(t)                                                                            \
    const attention_case *judged = &(t)->s.judged;                                                 \
    int64_t B = (t)->kind < RESULT_PARAMETERS ? judged->shape.batch : 1, at = 0;                   \
    int64_t H = result_heads(judged, (t)->kind) / B;                                               \
    int64_t N = result_rows(judged, (t)->kind), D = result_cols(judged, (t)->kind);                \
    for (int64_t b = 0; b < B; b++)                                                                \
        for (int64_t h = 0; h < H; h++)                                                            \
            for (int64_t i = 0; i < N; i++)                                                        \
                for (int64_t c = 0; c < D; c++, at++)

static void tokens_before_heads(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[((b * N + i) * H + h) * D + c] = from[at];
}

static void transposed(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[((b * H + h) * D + c) * N + i] = from[at];
}

static void heads_before_batch(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[((h * B + b) * N + i) * D + c] = from[at];
}

static void fortran_order(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[((c * N + i) * H + h) * B + b] = from[at];
}

static void called_fortran(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[at] = from[((c * N + i) * H + h) * B + b];
}

static void heads_reversed(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[((b * H + H - 1 - h) * N + i) * D + c] = from[at];
}

static void tokens_reversed(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[((b * H + h) * N + N - 1 - i) * D + c] = from[at];
}

static void grid_columns_first(const trial *t, const double *from, double *to)
{
    int64_t height = t->s.judged.reference.sampling.height;
    int64_t width = t->s.judged.reference.sampling.width;
    EACH_ELEMENT(t)
    {
        int64_t place = i % width * height + i / width;
        to[((b * H + h) * N + place) * D + c] = from[at];
    }
}

/* Y + V; for V's gradient dV + dY. */
static void values_added(const trial *t, const double *from, double *to)
{
    const double *v = t->kind == RESULT_OUTPUT ? t->s.judged.v : t->s.grad_output;
    EACH_ELEMENT(t) to[at] = from[at] + v[at];
}

/* Multiplies by the factor that fits best. */
static void any_multiple(const trial *t, const double *from, double *to)
{
    const double *got = t->s.results[t->kind];
    double product = 0, square = 0;
    int64_t count = result_size(&t->s.judged, t->kind);
    for (int64_t i = 0; i < count; i++) {
        product += from[i] * got[i];
        square += from[i] * from[i];
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = product / square * from[i];
}

static void multiply(const trial *t, double factor, const double *from, double *to)
{
    EACH_ELEMENT(t) to[at] = factor * from[at];
}

static void sign_changed(const trial *t, const double *from, double *to)
{
    multiply(t, -1, from, to);
}

static void halved(const trial *t, const double *from, double *to)
{
    multiply(t, 0.5, from, to);
}

static void doubled(const trial *t, const double *from, double *to)
{
    multiply(t, 2, from, to);
}

/* s of the kernel, c of the logits; 1 where there is neither. */
static double scale_of(const trial *t)
{
    const atn_attention_desc *desc = &t->s.judged.reference;
    const atn_attention_shape *s = &t->s.judged.shape;
    if (KERNEL & BIT(desc->op))
        return atn_kernel_scale(desc->scale, desc->scale_value, s->heads, s->dim);
    if (LOGITS & BIT(desc->op))
        return desc->logit_scale != 0 ? desc->logit_scale : 1 / sqrt((double)s->dim);
    return 1;
}

static void scale_missing(const trial *t, const double *from, double *to)
{
    multiply(t, 1 / scale_of(t), from, to);
}

static void scaled_twice(const trial *t, const double *from, double *to)
{
    multiply(t, scale_of(t), from, to);
}

static void log_2_missing(const trial *t, const double *from, double *to)
{
    multiply(t, 1 / log(2), from, to);
}

/* The results to which a change applies. */
enum { OF_OUTPUT = 1, OF_GRADIENT = 2, OF_BOTH = 3 };

/* %s is "gradient" for gradients, "output" for outputs. */
static const struct {
    int of;
    const char *text;
    result_move *move;
} result_moves[] = {
    {OF_GRADIENT, "%s of the wrong sign", sign_changed},
    {OF_GRADIENT, "%s halved: the 2 of a square's derivative is missing", halved},
    {OF_GRADIENT, "%s doubled", doubled},
    {OF_GRADIENT, "%s without the factor of the scale", scale_missing},
    {OF_GRADIENT, "%s scaled twice", scaled_twice},
    {OF_GRADIENT, "%s without the factor log(2) of exp2's derivative", log_2_missing},
    {OF_BOTH, "%s laid out as batch x tokens x heads x width", tokens_before_heads},
    {OF_BOTH, "%s transposed: width x tokens", transposed},
    {OF_BOTH, "%s laid out as heads x batch", heads_before_batch},
    {OF_BOTH, "%s in Fortran order", fortran_order},
    {OF_BOTH, "%s in C order, but called Fortran's in its file", called_fortran},
    {OF_BOTH, "heads in reverse order", heads_reversed},
    {OF_BOTH, "tokens in reverse order", tokens_reversed},
    {OF_BOTH, "%s's grid transposed: columns first", grid_columns_first},
    {OF_BOTH, "values added: a residual connection", values_added},
    {OF_BOTH, "%s multiplied by a constant", any_multiple},
};
enum { RESULT_MOVES = sizeof result_moves / sizeof *result_moves };

/* Whether V can be added to Y, or dY to V's gradient: they have the same shape, except where
 * landmarks are appended. */
static bool can_add_values(const trial *t)
{
    const atn_attention_shape *s = &t->s.judged.shape;
    bool of_values =
        t->kind == RESULT_OUTPUT || (t->kind == RESULT_VALUES && !trial_has_landmarks(t));
    return of_values && s->tokens == s->key_tokens;
}

static bool move_result(trial *t, int value)
{
    result_move *move = result_moves[value].move;
    const attention_case *c = &t->s.judged;
    bool scaled = scale_of(t) != 1 && (t->kind == RESULT_TOKENS || t->kind == RESULT_KEYS);
    const atn_sampling *s = &c->reference.sampling;
    if (move == values_added && !can_add_values(t))
        return false;
    if ((move == scale_missing || move == scaled_twice || move == log_2_missing) && !scaled)
        return false;
    if (move == grid_columns_first &&
        (s->height < 2 || s->height * s->width != result_rows(c, t->kind)))
        return false;
    return trial_add_move(t, move);
}

/* ---- The tables ---- */

/* Changes that are functions of their own. */
static const struct {
    int of;
    unsigned operators;
    const char *const *texts; /* one for each value; null: `text` */
    const char *text;
    int values;
    bool (*change)(trial *t, int value);
} changes[] = {
    {OF_GRADIENT, ALL, in_place_texts, NULL, RESULT_PARAMETERS, set_result},
    {OF_GRADIENT, ALL, NULL, "weights not transposed: W dY, not W^T dY", 1, leave_untransposed},
    {OF_GRADIENT, SOFT, part_texts, NULL, 4, keep_parts},
    {OF_GRADIENT, ALL, role_texts, NULL, 2, keep_role},
    {OF_GRADIENT, BIT(ATN_LINFORMER), projection_texts, NULL, 2, keep_projection},
    {OF_GRADIENT, ALL, grad_output_texts, NULL, 3, change_grad_output},
    {OF_GRADIENT, ALL, summed_texts, NULL, 6, sum_some},
    {OF_BOTH, SOFT, normalisation_texts, NULL, 6, set_normalisation},
    {OF_BOTH, KERNEL, scale_texts, NULL, 14, set_scale},
    {OF_BOTH, LOGITS, logit_texts, NULL, 11, set_logits},
    {OF_BOTH, SOFT, NULL, "landmarks not scaled by d^-1/4, as in published code", 1,
     leave_landmarks},
    {OF_BOTH, SOFT, inverse_texts, NULL, 2, leave_inverse_out},
    {OF_BOTH, SOFT, distance_texts, NULL, 5, set_distance},
    {OF_BOTH, SOFT, landmark_texts, NULL, 5, set_landmarks},
    {OF_BOTH, SOFT | BIT(ATN_NYSTROMFORMER), landmark_count_texts, NULL, 2, set_landmark_count},
    {OF_BOTH, SOFT, NULL, "landmarks: sums of tokens, not means", 1, sum_landmarks},
    {OF_BOTH, SOFT, sampling_texts, NULL, 4, set_sampling},
    {OF_BOTH, ALL, NULL, "height and width of the grid swapped", 1, swap_grid},
    {OF_BOTH, ALL, NULL, "queries and keys swapped", 1, swap_queries_keys},
    {OF_BOTH, ALL, NULL, "keys ignored: K = Q", 1, ignore_keys},
    {OF_BOTH, ALL, NULL, "keys and values swapped", 1, swap_keys_values},
    {OF_BOTH, ALL, NULL, "queries and values swapped", 1, swap_queries_values},
    {OF_BOTH, BIT(ATN_LINFORMER), NULL, "E and F swapped", 1, swap_e_f},
    {OF_BOTH, BIT(ATN_COSFORMER), length_texts, NULL, 12, set_length},
    {OF_BOTH, PLAIN, operator_texts, NULL, 5, set_operator},
    {OF_BOTH, ALL, left_out_texts, NULL, TAILS, leave_out_tail},
    {OF_BOTH, ALL, NULL, "left out: the first token", 1, leave_out_first},
    {OF_BOTH, ALL, product_texts, NULL, TAILS, leave_out_of_product},
    {OF_BOTH, ALL, twice_texts, NULL, TAILS, count_tail_twice},
    {OF_GRADIENT, ALL, grad_output_tail_texts, NULL, TAILS, leave_out_grad_output_tail},
    {OF_BOTH, ALL, kept_texts, NULL, TAILS, keep_tail_alone},
    {OF_GRADIENT, ALL, grad_output_kept_texts, NULL, TAILS, keep_grad_output_tail_alone},
    {OF_BOTH, ALL, first_texts, NULL, 6, change_first_tile},
    {OF_BOTH, ALL, padded_texts, NULL, 4, count_padding},
    {OF_BOTH, ALL, shift_texts, NULL, 10, shift_inputs},
    {OF_BOTH, ALL, stride_texts, NULL, STRIDES, change_stride},
    {OF_BOTH, ALL, mask_texts, NULL, 6, change_mask},
    {OF_BOTH, ALL, type_texts, NULL, TYPED, set_type},
    {OF_BOTH, ALL, channel_texts, NULL, 4, leave_out_channels},
    {OF_BOTH, ALL, tensor_texts, NULL, TENSORS_READ, read_tensors},
    {OF_OUTPUT, ALL, row_texts, NULL, 4, change_rows},
    {OF_BOTH, ALL, tile_texts, NULL, TILED, misread_tiles},
};
enum { CHANGES = sizeof changes / sizeof *changes, MOST_REALS = 9 };

/* Values that published code has for real parameters. */
static const struct {
    const char *name;
    int count;
    double values[MOST_REALS];
} reals[] = {
    {"epsilon", 9, {0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1}},
    {"ridge", 4, {0, 1e-4, 1e-3, 0.01}},
    {"numerator", 4, {1, 1.8, 2, 0.9}},
    {"search_limit", 2, {1, 1.01}},
    {"feature_epsilon", 4, {0, 1e-6, 1e-4, 1e-3}},
    {"denominator_epsilon", 3, {0, 1e-8, 1e-6}},
    {"self_logit", 2, {0, -5e4}},
};
enum { REALS = sizeof reals / sizeof *reals };

/* The kind of a hypothesis: below CHANGES it is a row of the table of changes. */
enum {
    ROW_OWN = CHANGES, /* --mistake */
    ROW_VARIANT,
    ROW_NORM,
    ROW_WEIGHTS,
    ROW_MOVE,
    ROW_RESULT,
    ROW_NAME,
    ROW_FLAG,
    ROW_INT,
    ROW_REAL,
    ROW_IGNORED,
    ROW_OF_HEAD_0
};

enum { MOST_STEPS = 40 };

typedef struct {
    result_kind kind;
    hypothesis *items;
    int count;
} list;

static void add(list *l, int row, const parameter *p, int value, double real)
{
    l->items = must_resize(l->items, (size_t)l->count + 1, sizeof *l->items);
    l->items[l->count++] = (hypothesis){l->kind, row, p, value, real};
}

static void add_parameter(list *l, const parameter *p)
{
    for (int i = 0; p->kind == PARAMETER_NAME && p->choices[i] && !is_size(p); i++)
        add(l, ROW_NAME, p, i, 0);
    if (p->kind == PARAMETER_FLAG)
        add(l, ROW_FLAG, p, 0, 0);
    for (int i = 0; p->kind == PARAMETER_INT && i <= MOST_STEPS; i++)
        add(l, ROW_INT, p, i, 0);
    for (int i = 0; i < REALS && p->kind == PARAMETER_REAL; i++)
        for (int j = 0; strcmp(reals[i].name, p->name) == 0 && j < reals[i].count; j++)
            add(l, ROW_REAL, p, 0, reals[i].values[j]);
    if (p->kind == PARAMETER_TENSOR) {
        add(l, ROW_IGNORED, p, 0, 0);
        add(l, ROW_OF_HEAD_0, p, 0, 0);
    }
}

hypothesis *hypotheses_of(const subject *s, result_kind kind, int *count)
{
    const int of = kind == RESULT_OUTPUT ? OF_OUTPUT : OF_GRADIENT;
    atn_operator op = s->c.choice.op;
    list l = {kind, NULL, 0};
    for (int i = 0; i < s->mistake_count; i++)
        if (s->mistakes[i].changed || s->mistakes[i].results[kind])
            add(&l, ROW_OWN, NULL, i, 0);
    for (int i = 0; i < atn_operator_get(op)->variant_count; i++)
        add(&l, ROW_VARIANT, NULL, i, 0);
    for (int i = 0; i < CHANGES; i++)
        for (int j = 0;
             changes[i].operators & BIT(op) && changes[i].of & of && j < changes[i].values; j++)
            add(&l, i, NULL, j, 0);
    for (int i = 0; i < norm_change_count(); i++)
        if (norm_change_is_of(i, op, of == OF_GRADIENT))
            add(&l, ROW_NORM, NULL, i, 0);
    for (const parameter *p = parameters; p->name; p++)
        if (parameter_is_of(p, op))
            add_parameter(&l, p);
    for (int i = 0; i < weight_change_count; i++)
        if (weight_change_fits(&weight_changes[i], s, kind))
            add(&l, ROW_WEIGHTS, NULL, i, 0);
    for (int i = 0; i < RESULT_MOVES; i++)
        if (result_moves[i].of & of)
            add(&l, ROW_MOVE, NULL, i, 0);
    for (int i = 0; i < result_change_count; i++)
        add(&l, ROW_RESULT, NULL, i, 0);
    *count = l.count;
    return l.items;
}

static char *move_text(const hypothesis *h)
{
    const char *text =
        h->row == ROW_MOVE ? result_moves[h->value].text : result_changes[h->value].text;
    const char *at = strstr(text, "%s");
    if (!at)
        return must_format("%s", text);
    return must_format("%.*s%s%s", (int)(at - text), text,
                       h->kind == RESULT_OUTPUT ? "output" : "gradient", at + strlen("%s"));
}

char *hypothesis_text(const hypothesis *h, const subject *s)
{
    switch (h->row) {
    case ROW_OWN:
        return must_format("%s", s->mistakes[h->value].name);
    case ROW_VARIANT: {
        const atn_operator_info *info = atn_operator_get(s->c.choice.op);
        return must_format("variant %s/%s", info->name, info->variants[h->value].name);
    }
    case ROW_WEIGHTS:
        return must_format("%s", weight_changes[h->value].text);
    case ROW_MOVE:
    case ROW_RESULT:
        return move_text(h);
    case ROW_NAME:
        return must_format("%s=%s", h->p->name, h->p->choices[h->value]);
    case ROW_FLAG: {
        bool now = *(const bool *)((const char *)&s->c.reference + h->p->offset);
        return must_format("%s=%s", h->p->name, now ? "false" : "true");
    }
    case ROW_INT:
        return must_format("%s=%d", h->p->name, h->value);
    case ROW_REAL:
        return must_format("%s=%g", h->p->name, h->real);
    case ROW_IGNORED:
        return must_format("%s ignored", h->p->name);
    case ROW_OF_HEAD_0:
        return must_format("%s of head 0 for every head", h->p->name);
    case ROW_NORM:
        return norm_change_text(h->value, s->c.choice.op);
    default:
        return must_format("%s", changes[h->row].texts ? changes[h->row].texts[h->value]
                                                       : changes[h->row].text);
    }
}

int hypothesis_numbers(const hypothesis *h)
{
    if (h->row == ROW_RESULT)
        return result_changes[h->value].fitted ? 2 : 0;
    if (h->row == ROW_WEIGHTS) /* counts as many: none of them is printed */
        return weight_changes[h->value].numbers > 0 ? 2 : 0;
    return hypothesis_searches(h) ||
           (h->row == ROW_MOVE && result_moves[h->value].move == any_multiple);
}

bool hypothesis_searches(const hypothesis *h)
{
    return h->row == ROW_NORM && norm_change_is_fitted(h->value);
}

bool hypothesis_is_of_norms(const hypothesis *h)
{
    return h->row == ROW_NORM;
}

bool hypothesis_is_of_result(const hypothesis *h)
{
    return h->row == ROW_MOVE || h->row == ROW_RESULT;
}

bool hypothesis_pairs(const hypothesis *h)
{
    return hypothesis_numbers(h) <= 1 && !hypothesis_searches(h) && h->row != ROW_WEIGHTS;
}

/* ---- Trials ---- */

trial trial_start(const subject *s, result_kind kind)
{
    return (trial){.s = *s, .kind = kind, .of = kind, .form = dense_claimed(&s->c)};
}

void trial_free(trial *t)
{
    owned_free(&t->owned);
}

static bool set_name(trial *t, const hypothesis *h)
{
    int *field = (int *)((char *)&t->s.c.reference + h->p->offset);
    if (*field == h->value)
        return false;
    *field = h->value;
    if (h->p->offset == offsetof(atn_attention_desc, inverse.method))
        t->s.c.reference.inverse = atn_inverse_defaults((atn_inverse_method)h->value);
    return true;
}

/* Gives all heads the matrix of head 0, if there is one for each head. */
static bool share_head_0(trial *t, atn_tensor *tensor)
{
    int64_t size = tensor->rows * tensor->cols;
    if (!tensor->data || tensor->heads < 2)
        return false;
    double *values = trial_copy(t, tensor->data, tensor->heads * size);
    for (int64_t i = size; i < tensor->heads * size; i++)
        values[i] = values[i % size];
    tensor->data = values;
    return true;
}

static bool set_weights(trial *t, const weight_change *change)
{
    bool fits = !t->weights && weight_change_fits(change, &t->s, t->of);
    t->weights = change;
    return fits;
}

/* Sets a mistake of --mistake; it comes before all other changes. */
static bool set_own(trial *t, int value)
{
    t->own = &t->s.mistakes[value];
    if (t->own->changed)
        t->s.c.reference = t->own->reference;
    return true;
}

bool trial_change(trial *t, const hypothesis *h)
{
    char *field = (char *)&t->s.c.reference + (h->p ? h->p->offset : 0);
    if (h->p && !parameter_is_of(h->p, t->s.c.reference.op))
        return false;
    /* a given result can only be moved */
    if (t->own && (h->row == ROW_OWN ||
                   (t->own->results[t->kind] && h->row != ROW_MOVE && h->row != ROW_RESULT)))
        return false;
    if (h->row == ROW_OWN)
        return set_own(t, h->value);
    if (h->row < CHANGES)
        return (changes[h->row].operators & BIT(t->s.c.reference.op)) &&
               changes[h->row].change(t, h->value);
    if (h->row == ROW_VARIANT)
        return set_variant(t, h->value);
    if (h->row == ROW_NORM)
        return change_norm(t, h->value);
    if (h->row == ROW_OF_HEAD_0)
        return share_head_0(t, (atn_tensor *)field);
    if (h->row == ROW_WEIGHTS)
        return set_weights(t, &weight_changes[h->value]);
    if (h->row == ROW_MOVE)
        return move_result(t, h->value);
    if (h->row == ROW_RESULT)
        return result_change_fits(t, h->value) && trial_add_move(t, result_changes[h->value].move);
    if (h->row == ROW_NAME)
        return set_name(t, h);
    if (h->row == ROW_FLAG) {
        *(bool *)field = !*(bool *)field;
        return true;
    }
    if (h->row == ROW_INT) {
        bool changed = *(int *)field != h->value;
        *(int *)field = h->value;
        return changed;
    }
    if (h->row == ROW_REAL) {
        bool changed = *(double *)field != h->real;
        *(double *)field = h->real;
        return changed;
    }
    bool given = ((atn_tensor *)field)->data != NULL;
    ((atn_tensor *)field)->data = NULL;
    return given;
}

/* V's gradient is the output with dY as values, because P^T X P is symmetric. */
static atn_status answer_dense(atn_context *context, const trial *t, double *to)
{
    attention_case c = t->s.c;
    if (t->of != RESULT_OUTPUT && t->of != RESULT_VALUES)
        return ATN_ERR_UNSUPPORTED;
    if (t->of == RESULT_VALUES)
        c.v = t->s.grad_output;
    double *all = must_allocate((size_t)result_size(&t->s.c, t->of), sizeof *all);
    atn_status status = dense_soft(context, &c, &t->form, all);
    keep_judged_rows(&t->s, t->of, all, to);
    free(all);
    return status;
}

/* Q's gradient with only some parts, or without some. */
static atn_status answer_parts(atn_context *context, const trial *t, double *to)
{
    const attention_case *c = &t->s.c;
    if (t->of != RESULT_TOKENS || t->dense)
        return ATN_ERR_UNSUPPORTED;
    if (t->kept)
        return dense_soft_gradient(context, c, &t->form, t->s.grad_output, t->kept, to);
    int64_t size = result_size(c, RESULT_TOKENS);
    double *part = must_allocate((size_t)size, sizeof *part);
    atn_status status =
        answer_library(context, &t->s, ATN_F64, ATN_STORAGE_NATIVE, RESULT_TOKENS, to);
    if (status >= 0)
        status = dense_soft_gradient(context, c, &t->form, t->s.grad_output, t->missing, part);
    for (int64_t i = 0; i < size; i++)
        to[i] -= part[i];
    free(part);
    return status;
}

void trial_move(const trial *t, double *to)
{
    int64_t size = result_size(&t->s.judged, t->kind);
    double *from = must_allocate((size_t)size, sizeof *from);
    for (int i = 0; i < t->move_count; i++) {
        memcpy(from, to, (size_t)size * sizeof *from);
        t->moves[i](t, from, to);
    }
    free(from);
}

atn_status trial_answer(atn_context *context, trial *t, atn_dtype dtype, atn_storage storage,
                        double *to)
{
    bool parts = t->kept || t->missing;
    if ((t->dense || parts || t->normed || t->weights) && dtype != ATN_F64)
        return ATN_ERR_UNSUPPORTED;
    if (t->of >= RESULT_PARAMETERS && !result_exists(&t->s.c, t->of))
        return ATN_ERR_UNSUPPORTED;
    const double *given = t->own ? t->own->results[t->kind] : NULL;
    if (given)
        memcpy(to, given, (size_t)result_size(&t->s.judged, t->kind) * sizeof *to);
    atn_status status = given       ? ATN_OK
                        : parts     ? answer_parts(context, t, to)
                        : t->dense  ? answer_dense(context, t, to)
                        : t->normed ? answer_normed(t, to)
                        : t->weights
                            ? weights_answer(t->weights, &t->s, t->of, t->s.results[t->kind], to)
                            : answer_library(context, &t->s, dtype, storage, t->of, to);
    if (status >= 0)
        trial_move(t, to);
    return status;
}
