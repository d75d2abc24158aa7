/* SPDX-License-Identifier: BSD-3-Clause */
/* Each variant has the properties that the registry claims (ATN_IS_, duplication, causal), and
 * lacks those that it does not claim: a claim can be neither false nor forgotten. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"

static attention_case make(int op, int variant, bool causal, int64_t tokens)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = ATN_F64,
                               .shape = {2, 2, tokens, 4, 4, 0},
                               .cross = true,
                               .causal = causal,
                               .sampling = ATN_SAMPLING_INDICES,
                               .seed = 21};
    attention_case c = attention_case_make(&choice);
    /* the properties are those of the formulas without the epsilons in their denominators */
    c.desc.elu.epsilon = c.desc.performer.denominator_epsilon = 0;
    return c;
}

/* Y of the unchanged case. */
static double *output_of(atn_context *context, const attention_case *c)
{
    attention_run r = attention_run_make(c, 0);
    double *y = data_allocate(attention_case_outputs(c));
    atn_status status = attention_run_forward(&r, context);
    cr_expect(status >= 0 && status != ATN_NONFINITE, "%s: %s (%s)", attention_case_label(c),
              atn_status_name(status), atn_last_error(context));
    guarded_get(&r.out, y);
    attention_run_free(&r);
    return y;
}

/* Rows `order` of each head's matrix. */
static void permute(double *x, int64_t heads, int64_t rows, int64_t cols, const int64_t *order)
{
    double *old = data_allocate(rows * cols);
    for (int64_t h = 0; x && h < heads; h++) {
        double *matrix = x + h * rows * cols;
        memcpy(old, matrix, (size_t)(rows * cols) * sizeof *old);
        for (int64_t i = 0; i < rows; i++)
            memcpy(matrix + i * cols, old + order[i] * cols, (size_t)cols * sizeof *old);
    }
    free(old);
}

/* ---- Laws: each returns by how much it is broken, relative to the output. They may change the
 * case. ---- */

static double permutation(atn_context *context, attention_case *c, double *y)
{
    const atn_attention_shape *s = &c->shape;
    int64_t order[64], heads = s->batch * s->heads;
    data_permutation(5, s->tokens, order);
    permute(c->q, heads, s->tokens, s->dim, order);
    permute(c->k, heads, s->tokens, s->dim, order);
    permute(c->v, heads, s->tokens, s->value_dim, order);
    permute(y, heads, s->tokens, s->value_dim, order);
    double *moved = output_of(context, c);
    double broken = judge_relative(attention_case_outputs(c), moved, y);
    free(moved);
    return broken;
}

/* Y(2 V - 3 W) = 2 Y(V) - 3 Y(W). */
static double linearity(atn_context *context, attention_case *c, double *y)
{
    int64_t values = attention_case_values(c), outputs = attention_case_outputs(c);
    double *v = data_allocate(values);
    memcpy(v, c->v, (size_t)values * sizeof *v);
    data_normal(77, values, c->v);
    double *w = output_of(context, c);
    for (int64_t i = 0; i < values; i++)
        c->v[i] = 2 * v[i] - 3 * c->v[i];
    for (int64_t i = 0; i < outputs; i++)
        y[i] = 2 * y[i] - 3 * w[i];
    double *both = output_of(context, c);
    double broken = judge_relative(outputs, both, y);
    free(both);
    free(w);
    free(v);
    return broken;
}

/* Outputs are averages of value vectors: V = 1 gives 1, and a V that is 1 in one place gives, in
 * that channel, weights of at least 0, and 0 in the others. */
static double stochasticity(atn_context *context, attention_case *c, double *y)
{
    int64_t values = attention_case_values(c), outputs = attention_case_outputs(c);
    int64_t dv = c->shape.value_dim, size = c->shape.key_tokens * dv;
    const atn_variant *variant = &atn_operator_get(c->choice.op)->variants[c->choice.variant];
    double broken = 0;
    (void)y;
    for (int64_t i = 0; i < c->shape.dim; i++)
        c->q[i] = -fabs(c->q[i]); /* a query of which ReLU leaves nothing */
    for (int64_t unit = -1; unit < (variant->properties & ATN_IS_LINEAR ? size : 0); unit++) {
        for (int64_t i = 0; i < values; i++)
            c->v[i] = unit < 0 || i % size == unit;
        double *weights = output_of(context, c);
        for (int64_t i = 0; i < outputs; i++)
            broken = fmax(broken, unit < 0              ? fabs(weights[i] - 1)
                                  : i % dv == unit % dv ? -weights[i]
                                                        : fabs(weights[i]));
        free(weights);
    }
    return broken;
}

/* Columns of Q and K, scaled by powers of two. */
static double column_freedom(atn_context *context, attention_case *c, double *y)
{
    int64_t d = c->shape.dim;
    for (int64_t i = 0; i < attention_case_queries(c); i++)
        c->q[i] *= ldexp(1, (int)(i % d % 3));
    for (int64_t i = 0; i < attention_case_keys(c); i++)
        c->k[i] *= ldexp(1, -(int)(i % d % 2));
    double *scaled = output_of(context, c);
    double broken = judge_relative(attention_case_outputs(c), scaled, y);
    free(scaled);
    return broken;
}

static const struct {
    unsigned property;
    const char *name;
    double (*broken)(atn_context *, attention_case *, double *y);
} laws[] = {
    {ATN_IS_PERMUTABLE, "permutable", permutation},
    {ATN_IS_LINEAR, "linear", linearity},
    {ATN_IS_STOCHASTIC, "stochastic", stochasticity},
    {ATN_IS_COLUMN_FREE, "column-free", column_freedom},
};

/* Whether the other batch entry's tokens change a bit of entry 0's output: made larger, equal, or
 * other ones. */
static double coupling(atn_context *context, attention_case *c, double *y)
{
    int64_t q = attention_case_queries(c) / 2, k = attention_case_keys(c) / 2;
    size_t bytes = (size_t)(attention_case_outputs(c) / 2) * sizeof *y;
    bool coupled = false;
    for (int turn = 0; turn < 3; turn++) {
        for (int64_t i = 0; turn < 2 && i < q; i++)
            c->q[q + i] = turn == 0 ? 4 * c->q[q + i] : 0.5;
        for (int64_t i = 0; turn < 2 && i < k; i++)
            c->k[k + i] = turn == 0 ? 4 * c->k[k + i] : 0.5;
        if (turn == 2) {
            data_normal(91, q, c->q + q);
            data_normal(92, k, c->k ? c->k + k : c->q + q);
        }
        double *other = output_of(context, c);
        coupled = coupled || memcmp(y, other, bytes) != 0;
        free(other);
    }
    return coupled;
}

/* A converged iteration does not depend on its start, nor on the matrices to which that is coupled.
 */
enum { FEW_STEPS = 4 };

static void check_laws(atn_context *context, int op, int variant)
{
    const atn_operator_info *info = atn_operator_get((atn_operator)op);
    unsigned claimed = info->variants[variant].properties;
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        attention_case c = make(op, variant, false, 8);
        double *y = output_of(context, &c), broken = laws[i].broken(context, &c, y);
        bool claims = claimed & laws[i].property;
        cr_expect(claims ? broken <= JUDGE_LAW : broken >= JUDGE_BROKEN,
                  "%s %s %s %s, but breaks it by %.3g", info->name, info->variants[variant].name,
                  claims ? "says it is" : "does not say it is", laws[i].name, broken);
        free(y);
        attention_case_free(&c);
    }
    attention_case c = make(op, variant, false, 8);
    if (c.desc.inverse.iterations > FEW_STEPS)
        c.desc.inverse.iterations = FEW_STEPS;
    double *y = output_of(context, &c), coupled = coupling(context, &c, y);
    cr_expect_eq(coupled, (claimed & ATN_IS_COUPLED) ? 1 : 0, "%s %s: coupled is %g", info->name,
                 info->variants[variant].name, coupled);
    free(y);
    attention_case_free(&c);
}

Test(properties, claimed_and_only_those)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op))
        for (int variant = 0; variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            check_laws(context, op, variant);
    atn_context_free(context);
}

/* ---- Every token twice ---- */

static void double_rows(int64_t rows, int64_t cols, const double *from, double *to)
{
    for (int64_t i = 0; from && i < 2 * rows; i++)
        memcpy(to + i * cols, from + i / 2 * cols, (size_t)cols * sizeof *to);
}

/* Token i becomes tokens 2i and 2i + 1. Of a causal form the second sees both of every key. */
static void check_duplication(atn_context *context, int op, int variant, double factor)
{
    attention_case once = make(op, variant, false, 8), twice = make(op, variant, false, 16);
    const atn_attention_shape *s = &once.shape;
    int64_t heads = s->batch * s->heads, indices[64], outputs = attention_case_outputs(&once);
    double_rows(heads * s->tokens, s->dim, once.q, twice.q);
    double_rows(heads * s->tokens, s->dim, once.k, twice.k);
    double_rows(heads * s->tokens, s->value_dim, once.v, twice.v);
    for (int64_t l = 0; l < once.desc.sampling.count; l++)
        indices[l] = 2 * once.desc.sampling.indices[l];
    twice.desc.sampling.indices = indices;
    twice.desc.sampling.count = once.desc.sampling.count;
    twice.desc.nystromformer = once.desc.nystromformer;
    double *y = output_of(context, &once), *both = output_of(context, &twice);
    double *second = data_allocate(outputs);
    for (int64_t i = 0; i < outputs; i++) {
        int64_t row = i / s->value_dim;
        second[i] = both[(2 * row + 1) * s->value_dim + i % s->value_dim];
        y[i] *= factor;
    }
    double broken = judge_relative(outputs, second, y);
    cr_expect(broken <= JUDGE_LAW, "%s: every token twice, not %g times the output but off by %.3g",
              attention_case_label(&once), factor, broken);
    free(second);
    free(both);
    free(y);
    attention_case_free(&twice);
    attention_case_free(&once);
}

Test(properties, every_token_twice)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count; variant++)
            if (info->variants[variant].duplication != 0)
                check_duplication(context, op, variant, info->variants[variant].duplication);
    }
    atn_context_free(context);
}

/* ---- Causal forms ---- */

/* The first row of any head whose bits differ. */
static int64_t first_difference(const attention_case *c, const double *x, const double *y)
{
    int64_t n = c->shape.tokens, dv = c->shape.value_dim, first = n;
    for (int64_t row = 0; row < c->shape.batch * c->shape.heads * n; row++)
        if (memcmp(x + row * dv, y + row * dv, (size_t)dv * sizeof *x) != 0 && row % n < first)
            first = row % n;
    return first;
}

/* Another q, k and v for one token of every head. */
static void change_token(attention_case *c, int64_t token)
{
    const atn_attention_shape *s = &c->shape;
    for (int64_t head = 0; head < s->batch * s->heads; head++) {
        int64_t row = head * s->tokens + token;
        for (int64_t j = 0; j < s->dim; j++) {
            c->q[row * s->dim + j] = 2 - c->q[row * s->dim + j];
            if (c->k)
                c->k[row * s->dim + j] = 3 - c->k[row * s->dim + j];
        }
        for (int64_t j = 0; j < s->value_dim; j++)
            c->v[row * s->value_dim + j] += 1;
    }
}

/* Output i sees keys j <= i, bit for bit. Performer's published stabiliser is a maximum over all
 * keys, later ones too (operators.h): there an earlier output must be seen to change. */
static void check_causal(atn_context *context, int op, int variant)
{
    static const int64_t tokens[] = {0, 1, 5, 63, 64, 69};
    bool leaks = false;
    const atn_operator_info *info = atn_operator_get((atn_operator)op);
    attention_case whole = make(op, variant, true, 70);
    bool stabilised = op == ATN_PERFORMER && whole.desc.performer.stabilise &&
                      whole.desc.performer.features == ATN_FEATURES_EXP;
    double *y = output_of(context, &whole);
    for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
        attention_case c = make(op, variant, true, 70);
        change_token(&c, tokens[t]);
        double *changed = output_of(context, &c);
        int64_t first = first_difference(&c, y, changed);
        cr_expect(stabilised ? first <= tokens[t] : first == tokens[t],
                  "%s %s: token %ld changes output %ld", info->name, info->variants[variant].name,
                  (long)tokens[t], (long)first);
        leaks = leaks || first < tokens[t];
        free(changed);
        attention_case_free(&c);
    }
    cr_expect_eq(leaks, stabilised, "%s %s: earlier outputs %s", info->name,
                 info->variants[variant].name, leaks ? "change" : "do not change");
    free(y);
    attention_case_free(&whole);
}

Test(properties, causal_outputs_do_not_see_later_tokens)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = fixture_next(-1); op < ATN_OPERATOR_COUNT; op = fixture_next(op)) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count; variant++)
            if (info->capabilities & ATN_CAN_CAUSAL)
                check_causal(context, op, variant);
    }
    atn_context_free(context);
}
