/* SPDX-License-Identifier: BSD-3-Clause */
/* References of the linear operators: what holds for every input, and their derivatives against
 * differences. */
#include <criterion/criterion.h>
#include <criterion/logging.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "linear_attention.h"
#include "ratios.h"

/* 6 tokens, 2 x 3 on a grid; 4 features; room for 2 batches of 2 heads, every token twice. */
enum { N = 6, HEIGHT = 2, WIDTH = 3, D = 3, FEATURES = 4, HEADS = 2, ROOM = 8 * N * D };

/* How an operator looks at the order of tokens. */
typedef enum {
    FREE,    /* queries and keys are two sets */
    PAIRED,  /* a set of pairs */
    ORDERED, /* sequences: causal */
    PLACED   /* numbered places */
} arrangement;

typedef struct {
    const char *name;
    arrangement tokens;
    double duplication; /* every token twice: the output is multiplied by this; 0: no such law */
    bool stochastic;    /* rows of weights sum to 1 */
    bool column_free;   /* positive scales of the columns of q and k change nothing */
    atn_attention_desc desc;
} variant;

static const variant variants[] = {
    {"sima", FREE, 0.5, false, true, {.op = ATN_SIMA}},
    {"sima l2", FREE, 1, false, true, {.op = ATN_SIMA, .sima.norm = ATN_SIMA_L2}},
    {"sima none", FREE, 2, false, false, {.op = ATN_SIMA, .sima.norm = ATN_SIMA_NONE}},
    {"sima clamped", FREE, 0, false, false, {.op = ATN_SIMA, .sima.epsilon = 4}},
    {"xnorm", FREE, 1, false, false, {.op = ATN_XNORM}},
    {"xnorm rows", FREE, 1, false, false, {.op = ATN_XNORM, .xnorm.axis = ATN_XNORM_ROWS}},
    {"xnorm clamped", FREE, 0, false, false, {.op = ATN_XNORM, .xnorm.epsilon = 3}},
    {"performer",
     FREE,
     1,
     true,
     false,
     {.op = ATN_PERFORMER, .performer = {.stabilise = true, .feature_epsilon = 0.01}}},
    {"performer unbiased", FREE, 1, true, false, {.op = ATN_PERFORMER}},
    {"performer relu",
     FREE,
     1,
     true,
     false,
     {.op = ATN_PERFORMER, .performer = {.features = ATN_FEATURES_RELU, .feature_epsilon = 0.01}}},
    {"performer epsilon",
     FREE,
     0,
     false,
     false,
     {.op = ATN_PERFORMER,
      .performer = {.stabilise = true, .feature_epsilon = 0.01, .denominator_epsilon = 0.1}}},
    {"performer causal",
     ORDERED,
     0,
     true,
     false,
     {.op = ATN_PERFORMER, .causal = true, .performer.stabilise = true}},
    {"rff", FREE, 2, false, false, {.op = ATN_RFF, .scale = ATN_SCALE_HEAD}},
    {"rff causal",
     ORDERED,
     0,
     false,
     false,
     {.op = ATN_RFF, .causal = true, .scale = ATN_SCALE_VALUE, .scale_value = 0.7}},
    {"xca", PAIRED, 1, true, true, {.op = ATN_XCA}},
    {"xca clamped", PAIRED, 0, true, false, {.op = ATN_XCA, .xca.epsilon = 4}},
    {"efficient", FREE, 1, true, false, {.op = ATN_EFFICIENT}},
    {"elu", FREE, 1, true, false, {.op = ATN_ELU}},
    {"elu epsilon", FREE, 0, false, false, {.op = ATN_ELU, .elu.epsilon = 0.1}},
    {"elu causal", ORDERED, 0, true, false, {.op = ATN_ELU, .causal = true}},
    {"cosformer 1d", PLACED, 0, true, false, {.op = ATN_COSFORMER, .cosformer.length = N}},
    {"cosformer 2d",
     PLACED,
     0,
     true,
     false,
     {.op = ATN_COSFORMER,
      .cosformer = {.weighting = ATN_COSINE_2D, .height = HEIGHT, .width = WIDTH}}},
    {"cosformer none",
     FREE,
     1,
     true,
     false,
     {.op = ATN_COSFORMER, .cosformer.weighting = ATN_COSINE_NONE}},
    {"cosformer clamped",
     FREE,
     0,
     false,
     false,
     {.op = ATN_COSFORMER, .cosformer = {.weighting = ATN_COSINE_NONE, .epsilon = 4}}},
    {"cosformer causal",
     PLACED,
     0,
     true,
     false,
     {.op = ATN_COSFORMER, .causal = true, .cosformer.length = N}},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* A problem and all it points to. */
typedef struct {
    atn_attention_desc desc;
    ref_attention_problem problem;
    double q[ROOM], k[ROOM], v[ROOM], out[ROOM];
    double projection[HEADS * FEATURES * D], gamma[HEADS], temperature[HEADS];
    unsigned char query_mask[2 * N], key_mask[2 * N];
} instance;

/* d_v differs from d where it may. */
static atn_attention_shape shape_of(const variant *v, int64_t batch, int64_t heads, int64_t n,
                                    int64_t n_k)
{
    return (atn_attention_shape){.batch = batch,
                                 .heads = heads,
                                 .tokens = n,
                                 .dim = D,
                                 .value_dim = v->desc.op == ATN_XCA ? D : D - 1,
                                 .key_tokens = n_k};
}

/* Points an instance at its own memory. */
static void own(instance *x, const variant *v)
{
    int64_t heads = x->problem.shape.heads;
    atn_tensor projection = constant(x->projection, heads, FEATURES, D);
    x->desc = v->desc;
    x->desc.performer.projection = x->desc.rff.projection = projection;
    x->desc.xnorm.gamma = constant(x->gamma, heads, 1, 1);
    x->desc.xca.temperature = constant(x->temperature, heads, 1, 1);
    x->problem.desc = &x->desc;
    x->problem.q = x->q;
    x->problem.k = x->k;
    x->problem.v = x->v;
}

/* Normal numbers on a grid of 2^-16, none near 0, where |x|, ReLU and elu are not smooth. */
static void fill(uint64_t seed, int64_t count, double *x)
{
    data_normal(seed, count, x);
    for (int64_t i = 0; i < count; i++)
        x[i] = copysign(0x1p-16 * round(0x1p16 * (fabs(x[i]) + 0.0625)), x[i]);
}

static instance *new_instance(const variant *v, atn_attention_shape shape)
{
    instance *x = calloc(1, sizeof *x);
    cr_assert(x, "out of memory");
    x->problem.shape = shape;
    own(x, v);
    fill(1, ROOM, x->q);
    fill(2, ROOM, x->k);
    for (int i = 0; v->desc.op == ATN_COSFORMER && i < ROOM; i += D) /* ReLU leaves no zero row */
        x->q[i] = fabs(x->q[i]), x->k[i] = fabs(x->k[i]);
    fill(3, ROOM, x->v);
    fill(4, HEADS * FEATURES * D, x->projection);
    fill(8, HEADS, x->gamma);
    fill(6, HEADS, x->temperature);
    return x;
}

static instance *copy(const instance *from, const variant *v)
{
    instance *x = malloc(sizeof *x);
    cr_assert(x, "out of memory");
    *x = *from;
    own(x, v);
    if (from->problem.query_mask)
        x->problem.query_mask = x->query_mask;
    if (from->problem.key_mask)
        x->problem.key_mask = x->key_mask;
    if (!from->problem.k)
        x->problem.k = NULL;
    return x;
}

static int64_t outputs(const instance *x)
{
    const atn_attention_shape *s = &x->problem.shape;
    return s->batch * s->heads * s->tokens * s->value_dim;
}

static const double *evaluate(const variant *v, instance *x)
{
    atn_status status = ref_attention(&x->problem, x->out);
    cr_assert(status == ATN_OK, "%s: %s", v->name, atn_status_name(status));
    return x->out;
}

/* Row i of the result is row order[i] of x. */
static void gather_rows(int64_t rows, const int64_t *order, int64_t width, double *x)
{
    double from[ROOM];
    memcpy(from, x, sizeof from);
    for (int64_t i = 0; i < rows; i++)
        memcpy(x + i * width, from + order[i] * width, (size_t)width * sizeof *x);
}

static void gather_tokens(instance *x, int64_t n, const int64_t *queries, int64_t n_k,
                          const int64_t *keys)
{
    gather_rows(n, queries, D, x->q);
    gather_rows(n_k, keys, D, x->k);
    gather_rows(n_k, keys, x->problem.shape.value_dim, x->v);
    x->problem.shape.tokens = n;
    x->problem.shape.key_tokens = n_k;
}

/* Both sides are rounded once; sums in another order differ by long double's rounding. */
enum { TWO_ROUNDINGS = 4 };

/* Where a law does not hold, it must be seen not to. */
static void expect_apart(const char *what, int64_t count, const double *x, const double *y)
{
    ref_difference d = ref_compare_f64(1, count, x, count, y, count);
    cr_expect(d.relative_frobenius > 1e-3, "%s: %g apart", what, d.relative_frobenius);
}

/* Each token is there twice, one after the other. */
Test(linear_attention, duplication)
{
    int64_t twice[2 * N];
    for (int i = 0; i < 2 * N; i++)
        twice[i] = i / 2;
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        if (v->duplication == 0)
            continue;
        instance *once = new_instance(v, shape_of(v, 1, 1, N, N)), *both = copy(once, v);
        evaluate(v, once);
        gather_tokens(both, 2 * N, twice, 2 * N, twice);
        gather_rows(2 * N, twice, once->problem.shape.value_dim, once->out);
        for (int i = 0; i < ROOM; i++)
            once->out[i] *= v->duplication;
        expect_within(v->name, outputs(both), evaluate(v, both), once->out, TWO_ROUNDINGS);
        free(once), free(both);
    }
}

/* Queries in another order give rows in that order; the order of keys does not matter. */
Test(linear_attention, permutation)
{
    static const int64_t queries[N] = {3, 0, 5, 1, 2, 4}, keys[N] = {5, 2, 1, 0, 4, 3};
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        instance *x = new_instance(v, shape_of(v, 1, 1, N, N)), *moved = copy(x, v);
        evaluate(v, x);
        gather_tokens(moved, N, queries, N, v->tokens == FREE ? keys : queries);
        gather_rows(N, queries, x->problem.shape.value_dim, x->out);
        evaluate(v, moved);
        if (v->tokens == FREE || v->tokens == PAIRED)
            expect_within(v->name, outputs(x), moved->out, x->out, TWO_ROUNDINGS);
        else
            expect_apart(v->name, outputs(x), moved->out, x->out);
        free(x), free(moved);
    }
}

/* Which tokens are left out. */
typedef struct {
    bool query[N], key[N];
} padding;

static const padding paddings[] = {
    [FREE] = {{0, 1, 0, 0, 1, 0}, {1, 0, 0, 0, 0, 0}},
    [PAIRED] = {{0, 1, 0, 0, 1, 0}, {0, 1, 0, 0, 1, 0}},
    [ORDERED] = {{0, 1, 0, 0, 1, 0}, {0, 1, 0, 0, 1, 0}},
    [PLACED] = {{0, 0, 0, 1, 1, 1}, {0, 0, 0, 1, 1, 1}}, /* the grid's second row */
};

/* Masks what is left out, and puts NaN there. */
static void pad(instance *x, const padding *p)
{
    int64_t dv = x->problem.shape.value_dim;
    for (int i = 0; i < N; i++) {
        x->query_mask[i] = !p->query[i];
        x->key_mask[i] = !p->key[i];
        for (int c = 0; c < D && p->query[i]; c++)
            x->q[i * D + c] = NAN;
        for (int c = 0; c < D && p->key[i]; c++)
            x->k[i * D + c] = NAN;
        for (int64_t c = 0; c < dv && p->key[i]; c++)
            x->v[i * dv + c] = NAN;
    }
    x->problem.query_mask = x->query_mask;
    x->problem.key_mask = x->key_mask;
}

static int64_t kept(const bool *left_out, int64_t *order)
{
    int64_t count = 0;
    for (int i = 0; i < N; i++)
        if (!left_out[i])
            order[count++] = i;
    return count;
}

/* A token that is masked is as if it were not there. */
Test(linear_attention, masks_remove_tokens)
{
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        const padding *p = &paddings[v->tokens];
        instance *masked = new_instance(v, shape_of(v, 1, 1, N, N)), *removed = copy(masked, v);
        int64_t queries[N], keys[N], dv = masked->problem.shape.value_dim;
        int64_t n = kept(p->query, queries), n_k = kept(p->key, keys);
        double want[ROOM] = {0};
        pad(masked, p);
        evaluate(v, masked);
        gather_tokens(removed, n, queries, n_k, keys);
        removed->desc.cosformer.height = 1;
        removed->desc.cosformer.width = WIDTH;
        evaluate(v, removed);
        for (int64_t i = 0; i < n; i++)
            memcpy(want + queries[i] * dv, removed->out + i * dv, (size_t)dv * sizeof *want);
        expect_within(v->name, N * dv, masked->out, want, TWO_ROUNDINGS);
        free(masked), free(removed);
    }
}

/* A token of XCA is a query, a key and a value: if one of them is masked, so is the token. */
Test(linear_attention, masks_of_pairs)
{
    static const padding apart = {{0, 1, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 0}};
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        if (v->tokens != PAIRED)
            continue;
        instance *x = new_instance(v, shape_of(v, 1, 1, N, N)), *y = copy(x, v);
        pad(x, &apart);
        pad(y, &paddings[PAIRED]);
        expect_within(v->name, outputs(x), evaluate(v, x), evaluate(v, y), TWO_ROUNDINGS);
        free(x), free(y);
    }
}

/* Causal: row i is what the operator makes of the keys up to i. (The features' stabiliser cancels
 * where they have no epsilon.) */
Test(linear_attention, causal_rows)
{
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        if (!v->desc.causal)
            continue;
        instance *x = new_instance(v, shape_of(v, 1, 1, N, N)), *past = copy(x, v);
        int64_t dv = x->problem.shape.value_dim;
        evaluate(v, x);
        past->desc.causal = false;
        past->problem.key_mask = past->key_mask;
        for (int i = 0; i < N; i++) {
            past->key_mask[i] = 1;
            evaluate(v, past);
            expect_within(v->name, dv, x->out + i * dv, past->out + i * dv, TWO_ROUNDINGS);
        }
        free(x), free(past);
    }
}

Test(linear_attention, weights_sum_to_one)
{
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        instance *x = new_instance(v, shape_of(v, 1, 1, N, N));
        double ones[ROOM];
        for (int i = 0; i < ROOM; i++)
            x->v[i] = ones[i] = 1;
        evaluate(v, x);
        if (v->stochastic)
            expect_within(v->name, outputs(x), x->out, ones, TWO_ROUNDINGS);
        else
            expect_apart(v->name, outputs(x), x->out, ones);
        free(x);
    }
}

/* Columns times 2, 1/4 and 8. */
Test(linear_attention, column_scales)
{
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        instance *x = new_instance(v, shape_of(v, 1, 1, N, N)), *scaled = copy(x, v);
        for (int i = 0; i < N; i++)
            for (int c = 0; c < D; c++) {
                scaled->q[i * D + c] *= ldexp(1, 1 - 3 * (c % 2));
                scaled->k[i * D + c] *= ldexp(1, 3 - 2 * c);
            }
        evaluate(v, x);
        evaluate(v, scaled);
        if (v->column_free)
            expect_within(v->name, outputs(x), scaled->out, x->out, TWO_ROUNDINGS);
        else
            expect_apart(v->name, outputs(x), scaled->out, x->out);
        free(x), free(scaled);
    }
}

/* Without epsilons neither stabiliser nor form of elu changes the function. */
Test(linear_attention, forms_of_one_function)
{
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        const atn_performer_options *o = &v->desc.performer;
        if (v->desc.op != ATN_ELU && (v->desc.op != ATN_PERFORMER || o->feature_epsilon > 0))
            continue;
        instance *x = new_instance(v, shape_of(v, 1, 1, N, N)), *other = copy(x, v);
        other->desc.performer.stabilise = !o->stabilise;
        other->desc.elu.form = ATN_ELU_NAIVE;
        expect_within(v->name, outputs(x), evaluate(v, x), evaluate(v, other), TWO_ROUNDINGS);
        free(x), free(other);
    }
}

/* Two batch entries of two heads, each with its own parameters and mask, against one at a time. */
Test(linear_attention, heads_and_batches)
{
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        atn_attention_shape shape = shape_of(v, 2, HEADS, N, N);
        instance *all = new_instance(v, shape);
        int64_t values = N * shape.value_dim;
        all->problem.query_mask = all->query_mask;
        all->problem.key_mask = all->key_mask;
        for (int i = 0; i < 2 * N; i++)
            all->query_mask[i] = all->key_mask[i] = i != 2 && i != N + 4;
        evaluate(v, all);
        for (int i = 0; i < 2 * HEADS; i++) {
            instance *one = copy(all, v);
            one->problem.shape.batch = one->problem.shape.heads = 1;
            own(one, v);
            one->problem.q += i * N * D;
            one->problem.k += i * N * D;
            one->problem.v += i * values;
            one->problem.query_mask += i / HEADS * N;
            one->problem.key_mask += i / HEADS * N;
            memcpy(one->projection, all->projection + i % HEADS * FEATURES * D,
                   FEATURES * D * sizeof(double));
            one->gamma[0] = all->gamma[i % HEADS];
            one->temperature[0] = all->temperature[i % HEADS];
            expect_within(v->name, values, all->out + i * values, evaluate(v, one), TWO_ROUNDINGS);
            free(one);
        }
        free(all);
    }
}

/* ---- Derivatives ---- */

/* One array of a problem, and the same in the arrays of directions. */
typedef struct {
    const char *name;
    double *values, **direction;
    int64_t count;
} slot;

enum { SLOTS = 5 };

static void list_slots(instance *x, ref_attention_arrays *e, slot slots[SLOTS])
{
    const atn_attention_shape *s = &x->problem.shape;
    atn_operator op = x->desc.op;
    int64_t heads = s->heads;
    const slot all[SLOTS] = {
        {"q", x->q, &e->q, heads * s->tokens * D},
        {"k", x->k, &e->k, x->problem.k ? heads * s->key_tokens * D : 0},
        {"v", x->v, &e->v, heads * s->key_tokens * s->value_dim},
        {"gamma", x->gamma, &e->parameters[ATN_PARAMETER_GAMMA], op == ATN_XNORM ? heads : 0},
        {"temperature", x->temperature, &e->parameters[ATN_PARAMETER_TEMPERATURE],
         op == ATN_XCA ? heads : 0},
    };
    memcpy(slots, all, sizeof all);
}

/* Y at x + step e. */
static void move(const variant *v, instance *x, const slot *s, const double *e, double step,
                 double *out)
{
    for (int64_t i = 0; i < s->count; i++)
        s->values[i] += step * e[i];
    memcpy(out, evaluate(v, x), sizeof x->out);
    for (int64_t i = 0; i < s->count; i++)
        s->values[i] -= step * e[i];
}

/* (8 (Y(h) - Y(-h)) - (Y(2h) - Y(-2h))) / 12h = Y' - h^4 Y^(5) / 30 + ... */
static void difference(const variant *v, instance *x, const slot *s, const double *e, double *out)
{
    const double h = 0x1p-11;
    static const double steps[] = {1, -1, 2, -2}, weights[] = {8, -8, -1, 1};
    double y[ROOM];
    memset(out, 0, sizeof y);
    for (int t = 0; t < 4; t++) {
        move(v, x, s, e, steps[t] * h, y);
        for (int i = 0; i < ROOM; i++)
            out[i] += weights[t] / (12 * h) * y[i];
    }
}

/* The largest error of the derivative in one direction over the largest derivative. */
static double slope_error(const variant *v, instance *x, const slot *s,
                          ref_attention_arrays *direction)
{
    double e[ROOM] = {0}, want[ROOM], got[ROOM];
    data_uniform(7, s->count, e);
    for (int64_t i = 0; i < s->count; i++) /* on a grid: steps from x are exact */
        e[i] = ldexp(round(512 * (e[i] - 0.5)), -8);
    *s->direction = e;
    atn_status status = ref_attention_derivative(&x->problem, direction, got);
    *s->direction = NULL;
    cr_assert(status == ATN_OK, "%s by %s: %s", v->name, s->name, atn_status_name(status));
    difference(v, x, s, e, want);
    double scale = largest(outputs(x), want);
    cr_expect(scale > 1e-3, "%s by %s is %g: nothing to compare", v->name, s->name, scale);
    for (int64_t i = 0; i < outputs(x); i++)
        want[i] -= got[i];
    return largest(outputs(x), want) / scale;
}

/* Differences err by h^4 |Y^(5)| / 30 = 2e-15 |Y^(5)| and by u |Y| / h = 2e-13 |Y|. */
static double expect_slopes(const char *what, const variant *v, instance *x)
{
    ref_attention_arrays direction = {0};
    slot slots[SLOTS];
    double worst = 0;
    list_slots(x, &direction, slots);
    for (const slot *s = slots; s < slots + SLOTS; s++) {
        if (s->count == 0)
            continue;
        double error = slope_error(v, x, s, &direction);
        cr_expect(error < 1e-8, "%s, %s, by %s: %g", v->name, what, s->name, error);
        worst = error > worst ? error : worst;
    }
    free(x);
    return worst;
}

Test(linear_attention, derivatives)
{
    for (const variant *v = variants; v < variants + VARIANTS; v++) {
        int64_t keys = v->tokens == FREE ? N - 1 : N;
        double worst[3];
        worst[0] = expect_slopes("cross", v, new_instance(v, shape_of(v, 1, HEADS, N, keys)));
        instance *self = new_instance(v, shape_of(v, 1, HEADS, N, N));
        self->problem.k = NULL;
        worst[1] = expect_slopes("K = Q", v, self);
        instance *masked = new_instance(v, shape_of(v, 1, 1, N, N));
        pad(masked, &paddings[v->tokens]);
        worst[2] = expect_slopes("masked", v, masked);
        cr_log_info("%s: %g, %g, %g", v->name, worst[0], worst[1], worst[2]);
    }
}
