/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry's rows and the counts they give. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "fixture.h"

Test(registry, every_row_is_complete)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        cr_assert_not_null(info, "operator %d", op);
        cr_expect_eq((int)info->op, op);
        const char *const texts[] = {info->name, info->formula, info->source, info->parameters};
        for (int i = 0; i < 4; i++)
            cr_expect(texts[i] && texts[i][0], "operator %d, text %d", op, i);
        unsigned always = ATN_CAN_F32 | ATN_CAN_F64 | ATN_CAN_CPU;
        cr_expect_eq(info->capabilities & always, always, "%s", info->name);
        cr_expect_eq(atn_operator_find(info->name), info);
        for (int other = 0; other < op; other++)
            cr_expect(strcmp(info->name, atn_operator_get((atn_operator)other)->name) != 0);
    }
    cr_expect_null(atn_operator_get(ATN_OPERATOR_COUNT));
    cr_expect_null(atn_operator_get((atn_operator)-1));
    cr_expect_null(atn_operator_find(NULL));
    cr_expect_null(atn_operator_find(""));
    cr_expect_null(atn_operator_find("SOFT"));
    cr_expect_eq(atn_operator_find("softpp"), atn_operator_get(ATN_SOFTPP));
}

Test(registry, published_defaults)
{
    atn_attention_desc soft = atn_attention_defaults(ATN_SOFT, ATN_F32);
    atn_attention_desc softpp = atn_attention_defaults(ATN_SOFTPP, ATN_F64);
    cr_expect(soft.op == ATN_SOFT && soft.dtype == ATN_F32 && softpp.op == ATN_SOFTPP &&
              softpp.dtype == ATN_F64);
    cr_expect_eq(soft.inverse.method, ATN_INVERSE_NR_PAPER);
    cr_expect_eq(softpp.inverse.method, ATN_INVERSE_NR_SOFTPP);
    cr_expect(soft.scale == ATN_SCALE_HEAD && soft.distance == ATN_DISTANCE_DIRECT &&
              soft.residual.data == NULL);
}

/* What an operator takes, and by which parameters it is differentiated, as its header says. */
Test(registry, what_each_operator_can)
{
    enum {
        M = ATN_CAN_MASK,
        X = ATN_CAN_CROSS,
        L = ATN_CAN_LENGTHS,
        C = ATN_CAN_CAUSAL,
        N = ATN_CAN_CPU_BF16
    };
    const unsigned bit = 1;
    const struct {
        unsigned can, differentiable;
    } claims[] = {
        [ATN_SOFT] = {N, bit << ATN_PARAMETER_CONV | bit << ATN_PARAMETER_NORM_WEIGHT |
                             bit << ATN_PARAMETER_NORM_BIAS | bit << ATN_PARAMETER_RESIDUAL},
        [ATN_SOFTPP] = {N, bit << ATN_PARAMETER_CONV | bit << ATN_PARAMETER_NORM_WEIGHT |
                               bit << ATN_PARAMETER_NORM_BIAS | bit << ATN_PARAMETER_RESIDUAL},
        [ATN_GAUSSIAN] = {M | X | L, 0},
        [ATN_SOFTMAX] = {M | X | L | C | N, 0},
        [ATN_SIMA] = {M | X | L | N, 0},
        [ATN_XNORM] = {M | X | L, bit << ATN_PARAMETER_GAMMA},
        [ATN_LINFORMER] = {M | X | L, bit << ATN_PARAMETER_E | bit << ATN_PARAMETER_F},
        [ATN_PERFORMER] = {M | X | L | C, 0},
        [ATN_RFF] = {M | X | L, 0},
        [ATN_NYSTROMFORMER] = {M | X | L, bit << ATN_PARAMETER_RESIDUAL},
        [ATN_XCA] = {M | X, bit << ATN_PARAMETER_TEMPERATURE},
        [ATN_EFFICIENT] = {M | X | L, 0},
        [ATN_ELU] = {M | X | L | C, 0},
        [ATN_COSFORMER] = {M | X | L | C, 0},
        [ATN_LSH] = {0, 0},
    };
    _Static_assert(sizeof claims / sizeof *claims == ATN_OPERATOR_COUNT, "one operator is missing");
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        unsigned all = claims[op].can | ATN_CAN_F32 | ATN_CAN_F64 | ATN_CAN_CPU | ATN_CAN_CUDA |
                       ATN_CAN_BACKWARD;
        cr_expect_eq(info->capabilities, all, "%s: %x, not %x", info->name, info->capabilities,
                     all);
        cr_expect_eq(info->differentiable, claims[op].differentiable, "%s: by %x, not %x",
                     info->name, info->differentiable, claims[op].differentiable);
    }
}

enum { NUMBERS = 32 }; /* room for more; the rest is 0 */

/* The numbers that make a variant. */
static void numbers_of(const atn_attention_desc *d, double numbers[NUMBERS])
{
    const double all[NUMBERS] = {(double)d->causal,
                                 (double)d->scale,
                                 (double)d->gradient,
                                 (double)d->inverse.method,
                                 (double)d->sima.norm,
                                 (double)d->sima.order,
                                 d->sima.epsilon,
                                 (double)d->xnorm.axis,
                                 d->xnorm.epsilon,
                                 (double)d->nystromformer.inverse,
                                 (double)d->nystromformer.iterations,
                                 d->nystromformer.rcond,
                                 d->xca.epsilon,
                                 (double)d->performer.features,
                                 (double)d->performer.stabilise,
                                 d->performer.feature_epsilon,
                                 d->performer.denominator_epsilon,
                                 (double)d->elu.form,
                                 d->elu.epsilon,
                                 (double)d->cosformer.weighting,
                                 d->cosformer.epsilon,
                                 (double)d->lsh.rounds,
                                 (double)d->lsh.chunk,
                                 d->lsh.self_logit};
    memcpy(numbers, all, sizeof all);
}

/* The constants of the papers and of their published code. */
static const struct {
    atn_operator op;
    const char *name;
    atn_attention_desc desc;
} published[] = {
    {ATN_SOFT, "paper", {.inverse.method = ATN_INVERSE_NR_PAPER}},
    {ATN_SOFT, "code", {.inverse.method = ATN_INVERSE_NR_SOFT}},
    {ATN_SOFT, "exact", {.inverse.method = ATN_INVERSE_PIVOTED_CHOLESKY}},
    {ATN_SOFTPP, "code", {.inverse.method = ATN_INVERSE_NR_SOFTPP, .gradient = ATN_GRADIENT_STEPS}},
    {ATN_SOFTPP, "paper", {.inverse.method = ATN_INVERSE_NR_PAPER}},
    {ATN_SOFTPP, "exact", {.inverse.method = ATN_INVERSE_PIVOTED_CHOLESKY}},
    {ATN_GAUSSIAN, "exact", {.scale = ATN_SCALE_HEAD}},
    {ATN_SOFTMAX, "attention", {.causal = false}},
    {ATN_SOFTMAX, "causal", {.causal = true}},
    {ATN_SIMA, "paper", {.sima = {.norm = ATN_SIMA_L1, .order = ATN_ORDER_AUTO}}},
    {ATN_SIMA, "code", {.sima = {.norm = ATN_SIMA_L1, .epsilon = 1e-12}}},
    {ATN_SIMA, "class-attention", {.sima = {.norm = ATN_SIMA_L1, .epsilon = 1e-6}}},
    {ATN_SIMA, "l2", {.sima = {.norm = ATN_SIMA_L2}}},
    {ATN_SIMA, "none", {.sima = {.norm = ATN_SIMA_NONE}}},
    {ATN_SIMA, "tokens", {.sima = {.norm = ATN_SIMA_L1, .order = ATN_ORDER_TOKENS}}},
    {ATN_SIMA, "channels", {.sima = {.norm = ATN_SIMA_L1, .order = ATN_ORDER_CHANNELS}}},
    {ATN_XNORM, "paper", {.xnorm.axis = ATN_XNORM_COLUMNS}},
    {ATN_XNORM, "port", {.xnorm.axis = ATN_XNORM_ROWS}},
    {ATN_LINFORMER, "projected", {.causal = false}},
    {ATN_PERFORMER,
     "favor",
     {.performer = {.features = ATN_FEATURES_EXP, .stabilise = true, .feature_epsilon = 1e-4}}},
    {ATN_PERFORMER, "unbiased", {.performer = {.features = ATN_FEATURES_EXP, .stabilise = true}}},
    {ATN_PERFORMER,
     "relu",
     {.performer = {.features = ATN_FEATURES_RELU, .feature_epsilon = 1e-3}}},
    {ATN_PERFORMER,
     "favor-causal",
     {.causal = true,
      .performer = {.features = ATN_FEATURES_EXP,
                    .stabilise = true,
                    .feature_epsilon = 1e-4,
                    .denominator_epsilon = 1e-6}}},
    {ATN_PERFORMER, "causal", {.causal = true, .performer.features = ATN_FEATURES_EXP}},
    {ATN_RFF, "fourier", {.scale = ATN_SCALE_HEAD}},
    {ATN_NYSTROMFORMER,
     "original",
     {.nystromformer = {.inverse = ATN_NYSTROM_ORIGINAL, .iterations = 6, .rcond = -1}}},
    {ATN_NYSTROMFORMER,
     "exact",
     {.nystromformer = {.inverse = ATN_NYSTROM_EXACT, .iterations = 6, .rcond = -1}}},
    {ATN_NYSTROMFORMER, "pinv", {.nystromformer = {.inverse = ATN_NYSTROM_PINV, .rcond = -1}}},
    {ATN_XCA, "code", {.xca.epsilon = 1e-12}},
    {ATN_XCA, "paper", {.xca.epsilon = 0}},
    {ATN_EFFICIENT, "paper", {.causal = false}},
    {ATN_ELU, "stable", {.elu = {.form = ATN_ELU_STABLE, .epsilon = 1e-6}}},
    {ATN_ELU, "naive", {.elu = {.form = ATN_ELU_NAIVE, .epsilon = 1e-6}}},
    {ATN_ELU, "causal", {.causal = true, .elu = {.form = ATN_ELU_STABLE, .epsilon = 1e-6}}},
    {ATN_COSFORMER, "1d", {.cosformer = {.weighting = ATN_COSINE_1D, .epsilon = 1e-6}}},
    {ATN_COSFORMER, "2d", {.cosformer = {.weighting = ATN_COSINE_2D, .epsilon = 1e-6}}},
    {ATN_COSFORMER, "none", {.cosformer = {.weighting = ATN_COSINE_NONE, .epsilon = 1e-6}}},
    {ATN_COSFORMER,
     "causal",
     {.causal = true, .cosformer = {.weighting = ATN_COSINE_1D, .epsilon = 1e-6}}},
    {ATN_LSH, "reformer", {.lsh = {.rounds = 8, .chunk = 64, .self_logit = -5e4}}},
};

Test(registry, published_constants)
{
    int variants = 0, rows = sizeof published / sizeof *published;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        variants += atn_operator_get((atn_operator)op)->variant_count;
    cr_expect_eq(variants, rows, "%d variants, %d rows", variants, rows);
    for (int i = 0, v = 0; i < rows; i++) {
        const atn_operator_info *info = atn_operator_get(published[i].op);
        v = i > 0 && published[i - 1].op == published[i].op ? v + 1 : 0; /* in the same order */
        double got[NUMBERS], want[NUMBERS];
        atn_attention_desc desc = atn_attention_variant(published[i].op, v, ATN_F32);
        cr_assert(v < info->variant_count && strcmp(info->variants[v].name, published[i].name) == 0,
                  "%s has no variant %d %s", info->name, v, published[i].name);
        numbers_of(&desc, got);
        numbers_of(&published[i].desc, want);
        for (int e = 0; e < NUMBERS; e++)
            cr_expect(got[e] == want[e], "%s %s: number %d is %g, not %g", info->name,
                      published[i].name, e, got[e], want[e]);
    }
}

static atn_cost cost_of(atn_context *context, const atn_attention_desc *desc,
                        const atn_attention_shape *shape)
{
    atn_cost cost = {-1, -1, -1, -1, -1, -1, -1, -1};
    atn_status status = atn_attention_cost(context, desc, shape, &cost);
    cr_assert_eq(status, ATN_OK, "%s", atn_last_error(context));
    return cost;
}

/* b = 2, h = 3, n = 100 on 10 x 10, d = 8, dv = 5, pooling by 2 (m = 25), nr-paper with 20 steps.
 */
Test(registry, counts_of_soft)
{
    atn_context *context = fixture_context(2, NULL);
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_POOL, .height = 10, .width = 10};
    desc.sampling.stride = 2;
    atn_attention_shape shape = {2, 3, 100, 8, 5, 0};
    atn_cost cost = cost_of(context, &desc, &shape);
    double pool = 25 * 8 * (4 + 1);            /* 4 additions, 1 division */
    double distances = (625 + 5000) * 3 * 8.0; /* A once, P twice; 3 per coordinate */
    double steps = (2 * 20 + 2) * 2 * 15625.0; /* 2 T + 2 products of 2 m^3 */
    double products = 2 * (2 * 25 * 100 * 5.0) + 2 * 625 * 5.0; /* P V, X U, P^T W */
    cr_expect_eq(cost.exps, 6 * (625 + 5000.0), "exps %.17g", cost.exps);
    cr_expect_eq(cost.state_bytes, 6 * 25 * (8 + 25 + 5) * 4.0, "state %.17g", cost.state_bytes);
    cr_expect_eq(cost.flops, 6 * (pool + distances + steps + products), "flops %.17g, %.17g",
                 cost.flops, 6 * (pool + distances + steps + products));
    cr_expect_eq(cost.bytes, 6 * 100 * (8 + 2 * 5) * 4.0, "bytes %.17g", cost.bytes);
    /* P once; of a kernel value 1 and 2 (2 d + 1), of a token of a pair 2 d; U, P dY, dV and dP
     * twice; X U, X dW and dA */
    double values = 3125 * (3 * 8 + 1 + 2 * 17) + 2 * 8 * (50 + 125.0);
    double newton = 2 * 20 * 2 * 15625.0, rest = 5 * (2 * 25 * 100 * 5) + 3 * 2 * 625 * 5.0;
    double backward = 2 * pool + values + newton + rest;
    cr_expect_eq(cost.backward_flops, 6 * backward, "backward %.17g, %.17g", cost.backward_flops,
                 6 * backward);
    cr_expect_eq(cost.backward_exps, 6 * 3125);
    cr_expect_eq(cost.backward_bytes, 6 * 100 * (2 * (8 + 5) + 5) * 4.0);
    desc.gradient = ATN_GRADIENT_STEPS; /* two products for each of 40 */
    cr_expect_eq(cost_of(context, &desc, &shape).backward_flops, 6 * (backward + 2 * newton));
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_EIG); /* 9 m^3, 5 products, 2 sums */
    desc.gradient = ATN_GRADIENT_PSEUDO;
    cr_expect_eq(cost_of(context, &desc, &shape).backward_flops,
                 6 * (backward - newton + (9 + 10) * 15625 + 2 * 625));
    /* 9 m^3; the pseudo-inverse, and 2 products for the residual */
    cr_expect_eq(cost_of(context, &desc, &shape).flops,
                 6 * (pool + distances + (9 + 2 + 4) * 15625 + products));
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_CHOLESKY);
    desc.gradient = ATN_GRADIENT_CLOSED;
    cr_expect_eq(cost_of(context, &desc, &shape).backward_flops, 6 * (backward - newton + 15625));
    cr_expect_eq(cost_of(context, &desc, &shape).flops,
                 6 * (pool + distances + (1 + 4) * 15625 + products));
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    /* A residual that the operator does not have costs nothing, whatever its sizes say. */
    desc.residual.rows = desc.residual.cols = 3;
    cr_expect_eq(cost_of(context, &desc, &shape).flops, cost.flops, "no residual, but its flops");
    atn_context_free(context);
}

/* b = 1, h = 2, n = 50, d = 4, dv = 6, first 10, pivoted Cholesky, SOFT++, expanded distance, a
 * 3 x 3 residual. */
Test(registry, counts_of_softpp)
{
    static double filter[2 * 9];
    atn_context *context = fixture_context(2, NULL);
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFTPP, ATN_F64);
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 10};
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_PIVOTED_CHOLESKY);
    desc.gradient = ATN_GRADIENT_CLOSED;
    desc.distance = ATN_DISTANCE_EXPANDED;
    desc.residual = atn_tensor_dense(filter, ATN_F64, 1, 2, 3, 3);
    desc.residual_height = 5, desc.residual_width = 10;
    atn_attention_shape shape = {1, 2, 50, 4, 6, 0};
    atn_cost cost = cost_of(context, &desc, &shape);
    double distances = (100 + 1000) * (2 * 4 + 3.0); /* a product of 2 d, 3 to put together */
    double factor = 1000 / 3.0;                      /* Cholesky */
    double solves = 2 * 50 * 100.0;                  /* L^-1 P twice, m^2 per token */
    double products = 2 * (2 * 10 * 50 * 6.0);
    double normalise = 3 * 100.0; /* row sums and scaling */
    double residual = 2 * 50 * 6 * 9.0;
    double want = 2 * (distances + factor + solves + products + normalise + residual);
    double values = (100 + 500) * (2 * 4 + 3 + 1 + 2 * 9) + 2 * 4 * (20 + 60.0);
    double chosen = 10 * 4, narrow = 3 * 2 * 100 * 6; /* L^-1 P once */
    double backward = 2 * (values + chosen + factor + 50 * 100 + 5 * (2 * 10 * 50 * 6.0) + narrow +
                           2 * normalise + residual);
    cr_expect(fabs(cost.flops - want) < 1e-9 * want, "flops %.17g, %.17g", cost.flops, want);
    cr_expect(fabs(cost.backward_flops - backward) < 1e-9 * backward, "backward %.17g, %.17g",
              cost.backward_flops, backward);
    cr_expect_eq(cost.exps, 2 * (100 + 1000.0));
    cr_expect_eq(cost.backward_exps, 2 * (100 + 500.0));
    cr_expect_eq(cost.state_bytes, 2 * 10 * (4 + 10 + 6) * 8.0, "state %.17g", cost.state_bytes);
    cr_expect_eq(cost.bytes, 2 * (50 * (4 + 12) + 9) * 8.0);
    cr_expect_eq(cost.backward_bytes, cost.bytes + 2 * 50 * (4 + 6) * 8.0);
    atn_context_free(context);
}

/* One head of 10 queries, 20 keys, d = 4, dv = 5, or what a row says of keys and dv, in f64, by
 * hand; softmax attention from a to b is a b (2 4 + 2 + 2 5) + 5 a = 20 a b + 5 a. Bytes: besides
 * those of q, k, v and out.
 *
 * Backward of that: a b (6 4 + 4 5 + 7) + 5 a = 51 a b + 5 a; of Q (K^T V): 2 20 (2 10 + 3 20) =
 * 3200. First what forward does but for the last product, then derivatives. As many exps. */
typedef struct {
    atn_operator op;
    int variant;
    int64_t keys, dv;
    bool optional;
    double flops, exps, state, bytes, backward;
} count_row;

static const count_row count_rows[] = {
    {ATN_GAUSSIAN, 0, 20, 5, false, 200 * (3 * 4 + 10), 200, 0, 0,
     200 * (12 + 20 + 1 + 2 * 9) + 2 * 4 * 30},
    {ATN_GAUSSIAN, 0, 20, 5, true, 200 * (2 * 4 + 3 + 10), 200, 0, 0,
     200 * (11 + 20 + 1 + 2 * 9) + 2 * 4 * 30}, /* expanded */
    {ATN_SOFTMAX, 0, 20, 5, false, 4050, 200, 0, 0, 200 * 51 + 50},
    {ATN_SOFTMAX, 1, 10, 5, false, 20 * 55 + 50, 55, 0, 0, 55 * 51 + 50},
    {ATN_LINFORMER, 0, 20, 5, false, 2 * 20 * 3 * 9 + 650, 30, 8 * 27, 8 * 60,
     2 * (2 * 20 * 3 * 9) + 30 * 51 + 50},
    {ATN_LINFORMER, 0, 20, 5, true, 2 * 20 * 3 * 9 + 650, 30, 8 * 27, 2 * 8 * 120,
     2 * (2 * 20 * 3 * 9) + 30 * 51 + 50},
    /* norms 2 per element, K^^T V and Q^ S; norms and S are kept */
    {ATN_SIMA, 0, 20, 5, false, 2 * 120 + 2 * 30 * 20, 0, 8 * 28, 0, (2 + 2) * 120 + 40 + 3200},
    {ATN_SIMA, 3, 20, 5, false, 3 * 120 + 2 * 30 * 20, 0, 8 * 28, 0, (3 + 3) * 120 + 40 + 3200},
    {ATN_SIMA, 4, 20, 5, false, 2 * 30 * 20, 0, 8 * 20, 0, 3200},
    {ATN_SIMA, 5, 20, 5, false, 2 * 120 + 2 * 200 * 9, 0, 8 * 8, 0,
     (2 + 2) * 120 + 2 * 120 + 2 * 200 * (3 * 4 + 2 * 5)},
    {ATN_SIMA, 6, 20, 5, false, 2 * 120 + 2 * 30 * 20, 0, 8 * 28, 0, (2 + 2) * 120 + 40 + 3200},
    {ATN_SIMA, 0, 3, 5, false, 2 * 52 + 2 * 13 * 20, 0, 8 * 28, 0,
     (2 + 2) * 52 + 40 + 2 * 20 * (20 + 9)}, /* 520 against 540 */
    {ATN_SIMA, 0, 2, 5, false, 2 * 48 + 2 * 20 * 9, 0, 8 * 8, 0,
     (2 + 2) * 48 + 2 * 48 + 2 * 20 * (3 * 4 + 2 * 5)}, /* 480 against 360 */
    /* norms 3 per element of q and of T */
    {ATN_XNORM, 0, 20, 5, false, 2 * 30 * 20 + 3 * 40 + 3 * 20, 0, 8 * 20, 0,
     3200 + (3 + 5) * 40 + (3 + 5) * 20},
    {ATN_XNORM, 1, 20, 5, true, 2 * 30 * 20 + 3 * 40 + 3 * 20, 0, 8 * 20, 8 * 2,
     3200 + (3 + 5) * 40 + (3 + 5) * 20},
    {ATN_XCA, 0, 10, 4, false, 3 * 80 + 2 * 2 * 160 + 3 * 16, 16, 8 * (8 + 16), 0,
     (3 + 3) * 80 + 5 * 2 * 160 + (3 + 5 + 4) * 16},
    {ATN_XCA, 0, 10, 4, true, 3 * 80 + 2 * 2 * 160 + 3 * 16, 16, 8 * (8 + 16), 8 * 2,
     (3 + 3) * 80 + 5 * 2 * 160 + (3 + 5 + 4) * 16},
    {ATN_EFFICIENT, 0, 20, 5, false, 2 * 120 + 2 * 30 * 20, 120, 8 * (20 + 8), 0,
     3200 + 2 * 120 + 4 * 40 + 2 * 80 + 40},
    /* means, A, 6 steps of 4 products (pinv: 24 m^3), Z (B V), B, F; A, means and B V are kept */
    {ATN_NYSTROMFORMER, 0, 20, 5, false, 120 + 9 * 11 + 6 * 8 * 27 + 90 + 1215 + 650, 9 + 60 + 30,
     8 * (9 + 24 + 15), 0,
     2 * 120 + 9 * (11 + 5 + 16) + 6 * (8 + 16) * 27 + 3 * 90 + 600 + 15 + 60 * 51 + 15 + 30 * 51 +
         50},
    {ATN_NYSTROMFORMER, 1, 10, 5, true, 80 + 9 * 11 + 6 * 8 * 27 + 90 + 615 + 650 + 300,
     9 + 30 + 30, 8 * (9 + 24 + 15), 8 * 6,
     2 * 80 + 9 * (11 + 5 + 16) + 6 * (8 + 16) * 27 + 3 * 90 + 300 + 15 + 30 * 51 + 15 + 30 * 51 +
         50 + 300},
    {ATN_NYSTROMFORMER, 2, 20, 5, false, 120 + 9 * 11 + 24 * 27 + 90 + 1215 + 650, 9 + 60 + 30,
     8 * (9 + 24 + 15), 0,
     2 * 120 + 9 * (11 + 5 + 16) + (24 + 8) * 27 + 3 * 90 + 600 + 15 + 60 * 51 + 15 + 30 * 51 + 50},
    /* M = 7: features, then S and z, then answers */
    {ATN_PERFORMER, 0, 20, 5, false, 30 * (4 + 8 + 7 * 12) + 2 * 30 * 35 + 140 + 140 + 50, 210,
     8 * (35 + 7 + 1), 8 * 28,
     30 * (4 + 8 + 7 * 12) + 30 * (7 * 10 + 8 + 4) + 2 * 35 * 80 + 2 * 140 + 8 * 70 + 50},
    {ATN_PERFORMER, 2, 20, 5, true, 30 * (4 + 7 * 9) + 2 * 30 * 35 + 140 + 140 + 50, 0,
     8 * (35 + 7), 2 * 8 * 28,
     30 * (4 + 7 * 9) + 30 * (7 * 9 + 4) + 2 * 35 * 80 + 2 * 140 + 8 * 70 + 50},
    {ATN_PERFORMER, 3, 10, 5, false, 20 * (4 + 8 + 7 * 12) + 2 * 20 * 35 + 70 + 140 + 50 + 7, 140,
     8 * (35 + 7 + 1), 8 * 28,
     20 * (4 + 8 + 7 * 12) + 20 * (7 * 10 + 8 + 4) + 2 * 35 * 50 + 2 * 70 + 8 * 70 + 50 + 7},
    {ATN_PERFORMER, 4, 10, 5, false, 20 * (4 + 8 + 7 * 11) + 2 * 20 * 35 + 70 + 140 + 50, 140,
     8 * (35 + 7), 8 * 28,
     20 * (4 + 8 + 7 * 11) + 20 * (7 * 10 + 8 + 4) + 2 * 35 * 50 + 2 * 70 + 8 * 70 + 50},
    {ATN_RFF, 0, 20, 5, true, 30 * (4 + 7 * 10) + 2 * 30 * 70, 420, 8 * 70, 2 * 8 * 28,
     30 * (4 + 7 * 10) + 30 * (7 * 11 + 4) + 2 * 70 * 80},
    {ATN_ELU, 0, 20, 5, false, 120 + 10 + 2 * 30 * 20 + 80 + 80 + 50, 120, 8 * (20 + 4), 0,
     120 + 10 + 120 + 3200 + 2 * 80 + 8 * 40 + 50},
    {ATN_ELU, 1, 20, 5, false, 120 + 10 + 2 * 30 * 20 + 80 + 80 + 50, 120, 8 * (20 + 4), 0,
     120 + 10 + 120 + 3200 + 2 * 80 + 8 * 40 + 50},
    {ATN_COSFORMER, 0, 20, 5, false, 30 * 8 + 2 * 30 * 40 + 160 + 160 + 50, 60, 8 * (40 + 8), 0,
     30 * 8 + 30 * (8 + 4) + 2 * 40 * 80 + 2 * 160 + 8 * 80 + 50},
    {ATN_COSFORMER, 1, 10, 5, false, 20 * (4 + 16) + 2 * 20 * 80 + 160 + 320 + 50, 80,
     8 * (80 + 16), 0, 20 * (4 + 16) + 20 * (16 + 12) + 2 * 80 * 50 + 2 * 160 + 8 * 160 + 50},
    {ATN_COSFORMER, 2, 20, 5, false, 2 * 30 * 20 + 80 + 80 + 50, 0, 8 * (20 + 4), 0,
     3200 + 2 * 80 + 8 * 40 + 50},
    /* 2 rounds, chunks of 5: 20 keys each; |q|, hashes; int32 order, 3 numbers per token */
    {ATN_LSH, 0, 10, 5, false, 4050 + 120 + 2 * 10 * 2 * 4 * 3, 200, 4 * 20 + 8 * 30, 8 * 24,
     200 * 51 + 50 + (3 + 5) * 40 + 2 * 10 * 2 * 4 * 3},
    {ATN_LSH, 0, 10, 5, true, 4050 + 120, 200, 4 * 20 + 8 * 30, 2 * 3 * 8 * 20,
     200 * 51 + 50 + (3 + 5) * 40},
};

static atn_attention_desc count_desc(const count_row *row, int64_t heads)
{
    static double memory[20 * 4 * 7];
    static const int64_t buckets[2 * 3 * 2 * 10];
    atn_attention_desc desc = atn_attention_variant(row->op, row->variant, ATN_F64);
    int64_t own = row->optional ? heads : 1;
    desc.distance = row->optional ? ATN_DISTANCE_EXPANDED : ATN_DISTANCE_DIRECT;
    desc.linformer.e = atn_tensor_dense(memory, ATN_F64, 1, own, 20, 3);
    desc.performer.projection = atn_tensor_dense(memory, ATN_F64, 1, own, 7, 4);
    desc.rff.projection = desc.performer.projection;
    desc.nystromformer.landmarks = 3;
    desc.cosformer.height = 2, desc.cosformer.width = 5;
    desc.lsh.rotations = atn_tensor_dense(memory, ATN_F64, 1, 2, 4, 3);
    desc.lsh.rounds = 2, desc.lsh.chunk = 5;
    if (!row->optional)
        return desc;
    desc.linformer.f = desc.linformer.e;
    desc.xnorm.gamma = desc.xca.temperature = atn_tensor_dense(memory, ATN_F64, 1, heads, 1, 1);
    desc.residual = atn_tensor_dense(memory, ATN_F64, 1, heads, 3, 1);
    desc.lsh.buckets = buckets;
    return desc;
}

Test(registry, counts_of_every_operator)
{
    enum { B = 3, H = 2 };
    atn_context *context = fixture_context(1, NULL);
    unsigned seen = 1u << ATN_SOFT | 1u << ATN_SOFTPP;
    for (size_t i = 0; i < sizeof count_rows / sizeof *count_rows; i++) {
        const count_row *row = &count_rows[i];
        atn_attention_desc desc = count_desc(row, H);
        atn_attention_shape shape = {B, H, 10, 4, row->dv, row->keys};
        if (row->op != ATN_NYSTROMFORMER)
            desc.residual.data = NULL;
        atn_cost cost = cost_of(context, &desc, &shape);
        double k = row->op == ATN_LSH ? 0 : (double)row->keys * 4;
        double tensors = 10 * (4 + (double)row->dv) + k + (double)(row->keys * row->dv);
        double bytes = B * H * tensors * 8 + row->bytes;
        double gradients = B * H * (tensors - 10 * (double)row->dv) * 8;
        cr_expect(cost.flops == B * H * row->flops && cost.exps == B * H * row->exps &&
                      cost.state_bytes == B * H * row->state && cost.bytes == bytes,
                  "%s, row %zu: %.17g flops, %g exps, state %g, bytes %g; expected %.17g, %g, %g, "
                  "%g",
                  atn_operator_get(row->op)->name, i, cost.flops / B / H, cost.exps / B / H,
                  cost.state_bytes / B / H, cost.bytes, row->flops, row->exps, row->state, bytes);
        cr_expect(cost.backward_flops == B * H * row->backward &&
                      cost.backward_exps == B * H * row->exps &&
                      cost.backward_bytes == bytes + gradients,
                  "%s, row %zu, backward: %.17g flops, %g exps, bytes %g; expected %.17g, %g, %g",
                  atn_operator_get(row->op)->name, i, cost.backward_flops / B / H,
                  cost.backward_exps / B / H, cost.backward_bytes, row->backward, row->exps,
                  bytes + gradients);
        seen |= 1u << row->op;
    }
    cr_expect_eq(seen, (1u << ATN_OPERATOR_COUNT) - 1, "an operator is not counted: %x", seen);
    atn_context_free(context);
}

/* What looking at the tokens costs, over taking the first 10 of 50: n = 50, m = 10, d = 4, two
 * heads.
 */
Test(registry, counts_of_choices)
{
    static const double uniforms[20];
    static const double distances = 3 * 4 * 50.0 * 10, pilot = 3 * 4 * 45.0 + 1000.0 / 3;
    static const struct {
        atn_sampling_kind kind;
        int64_t steps;
        double ridge, flops, exps;
    } rows[] = {
        {ATN_SAMPLING_KMEANS, 0, 0, distances, 0},
        {ATN_SAMPLING_KMEANS, 3, 0, 4 * distances + 3 * (50 + 10) * 4, 0},
        {ATN_SAMPLING_LEVERAGE, 0, 1, 3 * distances + pilot + 50 * 10 * 12 + 100, 45 + 500},
        {ATN_SAMPLING_LEVERAGE, 0, 0, 4 * distances + 2 * (pilot + 50 * 10 * 12 + 100),
         2 * (45 + 500)},
        {ATN_SAMPLING_RPCHOLESKY, 0, 0, distances + 50 * 90 + 3 * 50 * 10, 500},
        {ATN_SAMPLING_GREEDY, 0, 0, distances + 50 * 90 + 3 * 50 * 10, 500},
    };
    atn_context *context = fixture_context(1, NULL);
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
    atn_attention_shape shape = {1, 2, 50, 4, 6, 0};
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 10, .uniforms = uniforms};
    desc.sampling.uniform_count = 20;
    atn_cost first = cost_of(context, &desc, &shape);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        desc.sampling.kind = rows[i].kind;
        desc.sampling.steps = rows[i].steps;
        desc.sampling.ridge = rows[i].ridge;
        atn_cost cost = cost_of(context, &desc, &shape);
        double flops = cost.flops - first.flops, exps = cost.exps - first.exps;
        cr_expect(fabs(flops - 2 * rows[i].flops) < 1e-6 * flops && exps == 2 * rows[i].exps,
                  "row %zu: %.17g flops, %.17g exps, expected %.17g and %.17g", i, flops, exps,
                  2 * rows[i].flops, 2 * rows[i].exps);
        cr_expect_eq(cost.bytes, first.bytes);
        /* backward chooses them again; the mean of a cluster's tokens gives each its share */
        double backward = cost.backward_flops - first.backward_flops;
        double shares = rows[i].steps > 0 ? 2 * 50 * 4 : 0;
        cr_expect(fabs(backward - 2 * rows[i].flops - shares) < 1e-6 * backward &&
                      cost.backward_exps - first.backward_exps == 2 * rows[i].exps,
                  "row %zu: backward %.17g flops, %.17g exps", i, backward,
                  cost.backward_exps - first.backward_exps);
    }
    atn_context_free(context);
}

/* The number promised is the size of the plan's last block, and forward asks for nothing more. */
Test(registry, workspace_is_what_the_allocator_saw)
{
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
            for (int method = 1; method < ATN_INVERSE_COUNT; method++) {
                allocator_counts counts = {0};
                atn_context *context = fixture_context(3, &counts);
                fixture_soft_case c = {.op = (atn_operator)op, .dtype = (atn_dtype)dtype};
                c.sampling = (atn_sampling_kind)(method % ATN_SAMPLING_COUNT);
                c.inverse = atn_inverse_defaults((atn_inverse_method)method);
                c.batch = 2, c.heads = 2, c.height = 40, c.width = 60, c.stride = 9, c.count = 19;
                c.dim = 5, c.value_dim = 3;
                fixture_soft f = fixture_soft_make(&c);
                atn_plan *plan;
                atn_cost cost = cost_of(context, &f.desc, &f.shape);
                cr_expect_eq(counts.live, 1, "counting keeps memory");
                cr_assert_eq(atn_attention_plan(context, &f.desc, &f.shape, &plan), ATN_OK);
                cr_expect_eq(cost.workspace_bytes, (double)counts.last_bytes, "%s %s: %g, %zu",
                             atn_inverse_name(c.inverse.method), atn_dtype_name(c.dtype),
                             cost.workspace_bytes, counts.last_bytes);
                int64_t calls = counts.calls;
                cr_expect(atn_attention_forward(
                              plan,
                              &(atn_attention_inputs){.q = &f.q_view.view, .v = &f.v_view.view},
                              &f.out.view, NULL) >= 0);
                cr_expect_eq(counts.calls, calls, "forward allocated %ld times",
                             (long)(counts.calls - calls));
                atn_plan_free(plan);
                cr_expect_eq(counts.live, 1);
                cr_expect_eq(counts.overruns, 0, "%s writes past its workspace",
                             atn_inverse_name(c.inverse.method));
                fixture_soft_free(&f);
                atn_context_free(context);
            }
}

Test(registry, cost_checks_as_the_plan_does)
{
    atn_context *context = fixture_context(1, NULL);
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
    atn_attention_shape shape = {1, 1, 10, 4, 4, 0};
    atn_cost cost;
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 11};
    cr_expect_eq(atn_attention_cost(context, &desc, &shape, &cost), ATN_ERR_SHAPE);
    atn_context_free(context);
}

/* An allocator that has nothing to give. */
static void *no_memory(void *user, size_t bytes)
{
    (void)user;
    return bytes < 65536 ? malloc(bytes) : NULL;
}

static void give_back(void *user, void *memory)
{
    (void)user;
    free(memory);
}

/* Shapes up to where sizes in bytes leave int64_t: cost and plan refuse the same ones. A plan may
 * lack memory; cost takes none. */
Test(registry, cost_and_plan_refuse_the_same_shapes)
{
    atn_context_options options = {
        .device = fixture_device(), .threads = 2, .allocator = {no_memory, give_back, NULL}};
    atn_context *context;
    cr_assert_eq(atn_context_create(&options, &context), ATN_OK);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int masked = 0; masked < 2; masked++)
            for (int power = 20; power < 62; power++) {
                attention_choice choice = {.op = (atn_operator)op,
                                           .dtype = ATN_F64,
                                           .shape = {2, 1, 12, 4, 4, 0},
                                           .padding = masked,
                                           .sampling = ATN_SAMPLING_FIRST,
                                           .seed = 9};
                attention_case c = attention_case_make(&choice);
                atn_plan *plan;
                atn_cost cost = {.flops = -1};
                c.shape.tokens = (int64_t)1 << power;
                c.shape.key_tokens = 0;
                c.desc.lsh.chunk = 4;
                c.desc.linformer.e =
                    atn_tensor_dense(c.desc.linformer.e.data, ATN_F64, 1, 1, c.shape.tokens, 3);
                atn_status costs = atn_attention_cost(context, &c.desc, &c.shape, &cost);
                atn_status plans = atn_attention_plan(context, &c.desc, &c.shape, &plan);
                cr_expect(costs == plans || (costs == ATN_OK && plans == ATN_ERR_MEMORY),
                          "%s, n = 2^%d: cost %s, plan %s", attention_case_label(&c), power,
                          atn_status_name(costs), atn_status_name(plans));
                cr_expect((costs == ATN_OK) == (cost.flops >= 0) && (costs == ATN_OK || power > 26),
                          "%s, n = 2^%d: cost %s, %g flops", attention_case_label(&c), power,
                          atn_status_name(costs), cost.flops);
                atn_plan_free(plan);
                attention_case_free(&c);
            }
    atn_context_free(context);
}
