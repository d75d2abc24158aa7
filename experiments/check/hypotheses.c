/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/hypotheses.h"

#include <inttypes.h>
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

static double *own(trial *t, int64_t count)
{
    double *x = must_allocate((size_t)count, sizeof *x);
    if (t->owned_count == (int)(sizeof t->owned / sizeof *t->owned))
        abort();
    t->owned[t->owned_count++] = x;
    return x;
}

static double *copy(trial *t, const double *x, int64_t count)
{
    double *y = own(t, count);
    memcpy(y, x, (size_t)count * sizeof *y);
    return y;
}

/* K as an array of its own. */
static void separate_keys(trial *t)
{
    attention_case *c = &t->s.c;
    if (!c->k)
        c->k = c->q;
    c->choice.cross = true;
}

/* A change of arrays also is one of what is judged, whose values say what is trivial; appended
 * landmarks stay where they are. */
static bool has_landmarks(const trial *t)
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
    NULL,
};

static bool set_scale(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    const atn_attention_shape *s = &t->s.c.shape;
    double d = (double)s->dim, h = (double)s->heads;
    const double scales[] = {1 / (2 * sqrt(d)),
                             1 / (2 * sqrt(h * d)),
                             1 / sqrt(d),
                             1 / (2 * d),
                             0.5,
                             1,
                             1 / (4 * sqrt(d)),
                             1 / d};
    double now = atn_kernel_scale(desc->scale, desc->scale_value, s->heads, s->dim);
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
    NULL,
};

static bool set_logits(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    double d = (double)t->s.c.shape.dim, h = (double)t->s.c.shape.heads;
    const double scales[] = {1 / sqrt(d), 1 / d, 1, 1 / sqrt(h * d), sqrt(d)};
    double now = desc->logit_scale != 0 ? desc->logit_scale : 1 / sqrt(d);
    desc->logit_scale = scales[value];
    return fabs(now - scales[value]) > 1e-12 * fabs(now);
}

/* ---- Published variants ---- */

static bool is_size(const parameter *p)
{
    return p->kind == PARAMETER_INTEGER || (p->offset >= offsetof(atn_attention_desc, sampling) &&
                                            p->offset < offsetof(atn_attention_desc, inverse));
}

/* Whether two descriptions differ in a number, name or flag. */
static bool differ(const parameter *p, const atn_attention_desc *a, const atn_attention_desc *b)
{
    char *one = parameter_text(p, a), *other = parameter_text(p, b);
    bool different = one && other && strcmp(one, other) != 0;
    free(one), free(other);
    return different;
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
            p->offset != offsetof(atn_attention_desc, logit_scale) && differ(p, desc, &other)) {
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

/* ---- SOFT ---- */

static bool run_dense(trial *t, normaliser normalise)
{
    t->dense = true;
    t->normalise = normalise;
    return true;
}

static bool set_normalisation(trial *t, int value)
{
    atn_attention_desc *desc = &t->s.c.reference;
    const normaliser kinds[] = {NORMALISE_NOT, NORMALISE_ROOT, NORMALISE_FULL, NORMALISE_INNER};
    if (t->dense || kinds[value] == (desc->op == ATN_SOFTPP ? NORMALISE_ROOT : NORMALISE_NOT))
        return false;
    if (value > 1)
        return run_dense(t, kinds[value]);
    desc->op = t->s.c.choice.op = value ? ATN_SOFTPP : ATN_SOFT;
    return true;
}

static const char *const normalisation_texts[] = {
    "no normalisation by D", "normalised: D^-1/2 A+ D^-1/2", "D^-1 A+ D^-1: no square root of D",
    "(D^-1/2 A D^-1/2)+: normalised before it is inverted", NULL};

/* The published code divides Q by d^(1/4) and leaves the landmarks as they are. */
static bool leave_landmarks(trial *t, int value)
{
    if (t->dense)
        return false;
    t->landmark_factor = pow((double)t->s.c.shape.dim, 0.25);
    return run_dense(t, t->s.c.choice.op == ATN_SOFTPP ? NORMALISE_ROOT : NORMALISE_NOT);
}

static const char *const sampling_texts[] = {
    "landmarks: averages over the grid", "landmarks: averages of consecutive tokens",
    "landmarks: the first tokens", "landmarks: every n/m-th token", NULL};

static bool set_sampling(trial *t, int value)
{
    atn_sampling *s = &t->s.c.reference.sampling;
    int64_t n = t->s.c.shape.tokens, m = subject_landmarks(&t->s);
    static const atn_sampling_kind kinds[] = {ATN_SAMPLING_POOL, ATN_SAMPLING_WINDOW,
                                              ATN_SAMPLING_FIRST, ATN_SAMPLING_INDICES};
    if (has_landmarks(t) || m < 1 || m > n || (value < 3 && s->kind == kinds[value]))
        return false;
    if (value == 0) {
        s->stride = (int64_t)llround(sqrt((double)n / (double)m));
        if (s->height < 1 || s->stride < 1)
            return false;
    } else if (value == 1)
        s->stride = (n + m - 1) / m;
    else if (value == 3) {
        int64_t *indices = must_allocate((size_t)m, sizeof *indices);
        t->owned[t->owned_count++] = indices;
        for (int64_t i = 0; i < m; i++)
            indices[i] = i * n / m;
        s->indices = indices;
    }
    s->count = m;
    s->kind = kinds[value];
    return true;
}

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
    return c->k && swap_pointers(&c->q, &c->k, c->shape.tokens == c->shape.key_tokens);
}

static bool ignore_keys(trial *t, int value)
{
    attention_case *c = &t->s.c;
    bool fits = c->k && c->shape.tokens == c->shape.key_tokens;
    c->k = NULL;
    c->choice.cross = false;
    return fits;
}

static bool swap_keys_values(trial *t, int value)
{
    attention_case *c = &t->s.c;
    return c->k && swap_pointers(&c->k, &c->v, c->shape.dim == c->shape.value_dim);
}

static bool swap_queries_values(trial *t, int value)
{
    attention_case *c = &t->s.c;
    bool fits = c->shape.dim == c->shape.value_dim && c->shape.tokens == c->shape.key_tokens;
    return fits && !has_landmarks(t) && swap_pointers(&c->q, &c->v, true);
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
    return true;
}

static bool invert_temperature(trial *t, int value)
{
    atn_tensor *tau = &t->s.c.reference.xca.temperature;
    if (!tau->data)
        return false;
    double *values = copy(t, tau->data, tau->heads);
    for (int64_t i = 0; i < tau->heads; i++)
        values[i] = 1 / values[i];
    tau->data = values;
    return true;
}

/* ---- Norms of tokens ---- */

/* x (rows x d of every head) divided by the norms of its lines: over columns, or along rows. */
static void normalise(trial *t, double **x, int64_t rows, bool along, bool squares)
{
    const atn_attention_shape *s = &t->s.c.shape;
    int64_t d = s->dim, heads = s->batch * s->heads, lines = along ? rows : d;
    double *y = copy(t, *x, heads * rows * d);
    double *sums = must_allocate((size_t)(heads * lines), sizeof *sums);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < heads * rows * d; i++) {
            double *sum = &sums[i / (rows * d) * lines + (along ? i / d % rows : i % d)];
            if (pass == 0)
                *sum += squares ? y[i] * y[i] : fabs(y[i]);
            else
                y[i] = *sum > 0 ? y[i] / *sum : 0;
        }
    free(sums);
    *x = y;
}

static const char *const sima_texts[] = {"norms over channels, not over tokens", "K not normalised",
                                         "Q not normalised", "l2 norms without the square root",
                                         NULL};

static bool set_sima(trial *t, int value)
{
    attention_case *c = &t->s.c;
    atn_sima_options *o = &c->reference.sima;
    if (o->norm == ATN_SIMA_NONE || (o->norm == ATN_SIMA_L2 && value != 3))
        return false;
    separate_keys(t);
    o->norm = ATN_SIMA_NONE;
    if (value != 2)
        normalise(t, &c->q, c->shape.tokens, value == 0, value == 3);
    if (value != 1)
        normalise(t, &c->k, c->shape.key_tokens, value == 0, value == 3);
    return true;
}

/* ---- The output ---- */

static bool add_move(trial *t, output_move *move)
{
    if (t->move_count == MOST_MOVES)
        return false;
    t->moves[t->move_count++] = move;
    return true;
}

/* Where element (b, h, i, c) of Y stands; sizes are those of `judged`. */
#define EACH_ELEMENT(t)                                                                            \
    const atn_attention_shape *s = &(t)->s.judged.shape;                                           \
    int64_t B = s->batch, H = s->heads, N = s->tokens, D = s->value_dim, at = 0;                   \
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

static void values_added(const trial *t, const double *from, double *to)
{
    const double *v = t->s.judged.v;
    EACH_ELEMENT(t) to[at] = from[at] + v[at];
}

/* By |q_i|, or one over it; UFO-ViT divides queries by it. */
static double query_norm(const trial *t, int64_t row)
{
    int64_t d = t->s.judged.shape.dim;
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += t->s.judged.q[row * d + c] * t->s.judged.q[row * d + c];
    return sqrt(sum);
}

static void queries_as_they_are(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[at] = from[at] * query_norm(t, (b * H + h) * N + i);
}

static void queries_over_squares(const trial *t, const double *from, double *to)
{
    EACH_ELEMENT(t) to[at] = from[at] / query_norm(t, (b * H + h) * N + i);
}

/* The factor that fits best. */
static void any_multiple(const trial *t, const double *from, double *to)
{
    const double *got = t->s.results[RESULT_OUTPUT];
    double product = 0, square = 0;
    int64_t count = result_size(&t->s.judged, RESULT_OUTPUT);
    for (int64_t i = 0; i < count; i++) {
        product += from[i] * got[i];
        square += from[i] * from[i];
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = product / square * from[i];
}

static const struct {
    const char *text;
    output_move *move;
} output_moves[] = {
    {"output laid out as batch x tokens x heads x width", tokens_before_heads},
    {"output transposed: width x tokens", transposed},
    {"output laid out as heads x batch", heads_before_batch},
    {"output in Fortran order", fortran_order},
    {"output in C order, but called Fortran's in its file", called_fortran},
    {"heads in reverse order", heads_reversed},
    {"tokens in reverse order", tokens_reversed},
    {"output's grid transposed: columns first", grid_columns_first},
    {"values added: a residual connection", values_added},
    {"queries not normalised", queries_as_they_are},
    {"queries divided by |q|^2: no square root", queries_over_squares},
    {"output multiplied by a constant", any_multiple},
};
enum { OUTPUT_MOVES = sizeof output_moves / sizeof *output_moves };

static bool move_output(trial *t, int value)
{
    output_move *move = output_moves[value].move;
    const attention_case *c = &t->s.judged;
    const atn_attention_shape *s = &c->shape;
    if (move == values_added && s->tokens != s->key_tokens)
        return false;
    if (move == grid_columns_first && c->reference.sampling.height < 2)
        return false;
    if ((move == queries_as_they_are || move == queries_over_squares) && c->choice.op != ATN_XNORM)
        return false;
    return add_move(t, move);
}

/* ---- The tables ---- */

/* Changes by hand. */
static const struct {
    unsigned operators;
    const char *const *texts; /* of each value; null: text */
    const char *text;
    int values;
    bool (*change)(trial *t, int value);
} changes[] = {
    {SOFT, normalisation_texts, NULL, 4, set_normalisation},
    {KERNEL, scale_texts, NULL, 8, set_scale},
    {LOGITS, logit_texts, NULL, 5, set_logits},
    {SOFT, NULL, "landmarks not scaled by d^-1/4, as in published code", 1, leave_landmarks},
    {SOFT, sampling_texts, NULL, 4, set_sampling},
    {BIT(ATN_SIMA), sima_texts, NULL, 4, set_sima},
    {ALL, NULL, "height and width of the grid swapped", 1, swap_grid},
    {ALL, NULL, "queries and keys swapped", 1, swap_queries_keys},
    {ALL, NULL, "keys ignored: K = Q", 1, ignore_keys},
    {ALL, NULL, "keys and values swapped", 1, swap_keys_values},
    {ALL, NULL, "queries and values swapped", 1, swap_queries_values},
    {BIT(ATN_LINFORMER), NULL, "E and F swapped", 1, swap_e_f},
    {BIT(ATN_XCA), NULL, "divided by tau", 1, invert_temperature},
    {PLAIN, operator_texts, NULL, 5, set_operator},
};
enum { CHANGES = sizeof changes / sizeof *changes, MOST_REALS = 6 };

/* Numbers that published code has, by parameter. */
static const struct {
    const char *name;
    int count;
    double values[MOST_REALS];
} reals[] = {
    {"epsilon", 5, {0, 1e-12, 1e-8, 1e-6, 1e-5}},
    {"ridge", 4, {0, 1e-4, 1e-3, 0.01}},
    {"numerator", 4, {1, 1.8, 2, 0.9}},
    {"search_limit", 2, {1, 1.01}},
    {"feature_epsilon", 4, {0, 1e-6, 1e-4, 1e-3}},
    {"denominator_epsilon", 3, {0, 1e-8, 1e-6}},
    {"self_logit", 2, {0, -5e4}},
};
enum { REALS = sizeof reals / sizeof *reals };

/* What a hypothesis is of: rows below CHANGES are of the table of changes. */
enum { ROW_VARIANT = CHANGES, ROW_MOVE, ROW_NAME, ROW_FLAG, ROW_INT, ROW_REAL, ROW_IGNORED };

enum { MOST_STEPS = 40 };

typedef struct {
    hypothesis *items;
    int count;
} list;

static void add(list *l, int row, const parameter *p, int value, double real)
{
    l->items = must_resize(l->items, (size_t)l->count + 1, sizeof *l->items);
    l->items[l->count++] = (hypothesis){row, p, value, real};
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
    if (p->kind == PARAMETER_TENSOR)
        add(l, ROW_IGNORED, p, 0, 0);
}

hypothesis *hypotheses_of(const subject *s, int *count)
{
    atn_operator op = s->c.choice.op;
    list l = {NULL, 0};
    for (int i = 0; i < atn_operator_get(op)->variant_count; i++)
        add(&l, ROW_VARIANT, NULL, i, 0);
    for (int i = 0; i < CHANGES; i++)
        for (int j = 0; changes[i].operators & BIT(op) && j < changes[i].values; j++)
            add(&l, i, NULL, j, 0);
    for (const parameter *p = parameters; p->name; p++)
        if (parameter_is_of(p, op))
            add_parameter(&l, p);
    for (int i = 0; i < OUTPUT_MOVES; i++)
        add(&l, ROW_MOVE, NULL, i, 0);
    *count = l.count;
    return l.items;
}

char *hypothesis_text(const hypothesis *h, const subject *s)
{
    switch (h->row) {
    case ROW_VARIANT: {
        const atn_operator_info *info = atn_operator_get(s->c.choice.op);
        return must_format("variant %s/%s", info->name, info->variants[h->value].name);
    }
    case ROW_MOVE:
        return must_format("%s", output_moves[h->value].text);
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
    default:
        return must_format("%s", changes[h->row].texts ? changes[h->row].texts[h->value]
                                                       : changes[h->row].text);
    }
}

/* ---- Trials ---- */

trial trial_start(const subject *s)
{
    return (trial){.s = *s, .landmark_factor = 1};
}

void trial_free(trial *t)
{
    while (t->owned_count > 0)
        free(t->owned[--t->owned_count]);
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

bool trial_change(trial *t, const hypothesis *h)
{
    char *field = (char *)&t->s.c.reference + (h->p ? h->p->offset : 0);
    if (h->p && !parameter_is_of(h->p, t->s.c.reference.op))
        return false;
    if (h->row < CHANGES)
        return (changes[h->row].operators & BIT(t->s.c.reference.op)) &&
               changes[h->row].change(t, h->value);
    if (h->row == ROW_VARIANT)
        return set_variant(t, h->value);
    if (h->row == ROW_MOVE)
        return move_output(t, h->value);
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

atn_status trial_answer(atn_context *context, const trial *t, atn_dtype dtype, atn_storage storage,
                        double *to)
{
    int64_t size = result_size(&t->s.judged, RESULT_OUTPUT);
    atn_status status;
    if (t->dense && dtype != ATN_F64)
        return ATN_ERR_UNSUPPORTED;
    if (t->dense) {
        double *all = must_allocate((size_t)result_size(&t->s.c, RESULT_OUTPUT), sizeof *all);
        status = dense_soft(context, &t->s.c, t->normalise, t->landmark_factor, all);
        keep_judged_rows(&t->s, RESULT_OUTPUT, all, to);
        free(all);
    } else
        status = answer_library(context, &t->s, dtype, storage, RESULT_OUTPUT, to);
    double *from = must_allocate((size_t)size, sizeof *from);
    for (int i = 0; i < t->move_count && status >= 0; i++) {
        memcpy(from, to, (size_t)size * sizeof *from);
        t->moves[i](t, from, to);
    }
    free(from);
    return status;
}
