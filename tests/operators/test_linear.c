/* SPDX-License-Identifier: BSD-3-Clause */
/* What the feature-map operators (performer, rff, elu, cosformer) share, apart from the definitions
 * in the references: influence of later keys, queries without a key, statuses, counts. */
#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

#include "data.h"
#include "fixture.h"

enum { N = 130, D = 6, DV = 4, M = 9 };

/* One head of f64 tokens. */
typedef struct {
    double q[N * D], k[N * D], v[N * DV], out[N * DV], w[M * D];
    unsigned char queries[N], keys[N];
} tokens;

static void fill(tokens *t)
{
    data_normal(1, N * D, t->q);
    data_normal(2, N * D, t->k);
    data_normal(3, N * DV, t->v);
    data_normal(4, M * D, t->w);
    memset(t->queries, 1, N);
    memset(t->keys, 1, N);
}

static atn_attention_desc describe(atn_operator op, int variant, atn_dtype dtype, void *w)
{
    atn_attention_desc desc = atn_attention_variant(op, variant, dtype);
    desc.performer.projection = desc.rff.projection = atn_tensor_dense(w, dtype, 1, 1, M, D);
    desc.cosformer.height = 10, desc.cosformer.width = 13;
    return desc;
}

static atn_status run(atn_context *context, const atn_attention_desc *desc, tokens *t)
{
    atn_attention_shape shape = {1, 1, N, D, DV, 0};
    atn_tensor q = atn_tensor_dense(t->q, ATN_F64, 1, 1, N, D), k = q, v = q, out = q;
    k.data = t->k;
    v = atn_tensor_dense(t->v, ATN_F64, 1, 1, N, DV);
    out = atn_tensor_dense(t->out, ATN_F64, 1, 1, N, DV);
    atn_attention_inputs inputs = {&q, &k, &v, NULL, NULL};
    if (desc->padding)
        inputs.query_mask = t->queries, inputs.key_mask = t->keys;
    atn_plan *plan;
    atn_status status = atn_attention_plan(context, desc, &shape, &plan);
    if (status == ATN_OK)
        status = atn_attention_forward(plan, &inputs, &out, NULL);
    atn_plan_free(plan);
    return status;
}

static const atn_operator family[] = {ATN_PERFORMER, ATN_RFF, ATN_ELU, ATN_COSFORMER};
enum { FAMILY = sizeof family / sizeof *family };

/* Later keys change no bit, except through the stabiliser. */
Test(linear, a_causal_output_does_not_see_later_keys)
{
    static tokens t, changed;
    static const int cuts[] = {1, 2, 63, 64, 65, 100, 128, 129};
    atn_context *context = fixture_context(1, NULL);
    int run_count = 0;
    for (int i = 0; i < FAMILY; i++) {
        const atn_operator_info *info = atn_operator_get(family[i]);
        for (int variant = 0; variant < info->variant_count; variant++) {
            atn_attention_desc desc = describe(family[i], variant, ATN_F64, t.w);
            bool open = desc.performer.stabilise && desc.performer.feature_epsilon > 0;
            if (!desc.causal)
                continue;
            fill(&t);
            cr_assert_eq(run(context, &desc, &t), ATN_OK);
            for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++, run_count++) {
                int64_t cut = cuts[c];
                fill(&changed);
                for (int64_t e = cut * D; e < N * D; e++)
                    changed.k[e] *= -3;
                for (int64_t e = cut * DV; e < N * DV; e++)
                    changed.v[e] += 100;
                cr_assert_eq(run(context, &desc, &changed), ATN_OK);
                size_t seen = (size_t)cut * DV * sizeof(double);
                bool same = memcmp(t.out, changed.out, seen) == 0;
                cr_expect(same || open, "%s/%s cut %ld", info->name, info->variants[variant].name,
                          (long)cut);
                cr_expect(memcmp(t.out, changed.out, seen + DV * sizeof(double)) != 0,
                          "%s: key %ld itself is not seen", info->name, (long)cut);
            }
        }
    }
    cr_expect_eq(run_count, 32);
    atn_context_free(context);
}

/* Keys from 70 on only: causal queries before have none; and no keys at all. */
Test(linear, a_query_that_sees_no_key_gives_0)
{
    static tokens t;
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < FAMILY; i++)
        for (int variant = 0; variant < atn_operator_get(family[i])->variant_count; variant++)
            for (int first = 70; first <= N; first += N - 70) {
                fill(&t);
                memset(t.keys, 0, (size_t)first);
                atn_attention_desc desc = describe(family[i], variant, ATN_F64, t.w);
                desc.padding = true;
                atn_status status = run(context, &desc, &t);
                int64_t none = desc.causal ? first : first == N ? N : 0;
                int64_t zeros = 0;
                for (int64_t e = 0; e < N * DV; e++)
                    zeros += t.out[e] == 0;
                for (int64_t e = 0; e < none * DV; e++)
                    cr_expect(t.out[e] == 0, "%d/%d element %ld is %g", i, variant, (long)e,
                              t.out[e]);
                cr_expect(status == ATN_OK && zeros < none * DV + N,
                          "operator %d variant %d first %d: %s, %ld zeros", i, variant, first,
                          atn_status_name(status), (long)zeros);
            }
    atn_context_free(context);
}

/* 1 + elu(-9) = 1.2e-4 is lost next to 1 in bfloat16; exp(-9) is not. All tokens are equal, so Y is
 * their value, less what epsilon takes: phi.z = 2 (1.2e-4)^2 against 1e-12. */
Test(linear, naive_elu_cancels_in_a_narrow_type)
{
    atn_context *context = fixture_context(1, NULL);
    for (int naive = 0; naive < 2; naive++) {
        float q[2] = {-9, -9}, v[2] = {1.5F, 1.5F}, out[2];
        atn_attention_desc desc = atn_attention_variant(ATN_ELU, naive, ATN_F32);
        desc.storage = ATN_STORAGE_BF16;
        desc.elu.epsilon = 1e-12;
        atn_attention_shape shape = {1, 1, 2, 1, 1, 0};
        atn_tensor tq = atn_tensor_dense(q, ATN_F32, 1, 1, 2, 1), tv = tq, to = tq;
        tv.data = v, to.data = out;
        atn_plan *plan;
        cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
        cr_assert_eq(
            atn_attention_forward(plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &to, NULL),
            ATN_OK);
        cr_expect(out[0] == (naive ? 0 : 1.5F) && out[1] == out[0], "naive %d: %g %g", naive,
                  (double)out[0], (double)out[1]);
        atn_plan_free(plan);
    }
    atn_context_free(context);
}

/* ---- Statuses ---- */

static atn_status plan_status(atn_context *context, const atn_attention_desc *desc, int64_t keys)
{
    atn_attention_shape shape = {1, 2, N, D, DV, keys};
    atn_plan *plan;
    atn_status status = atn_attention_plan(context, desc, &shape, &plan);
    atn_plan_free(plan);
    return status;
}

Test(linear, projections_that_do_not_fit)
{
    static double w[2 * M * D];
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 2; i++) {
        atn_attention_desc good = describe(family[i], 0, ATN_F64, w), bad = good;
        atn_tensor *t = i == 0 ? &bad.performer.projection : &bad.rff.projection;
        const atn_tensor fits = *t;
        const struct {
            atn_tensor tensor;
            atn_status want;
        } cases[] = {
            {fits, ATN_OK},
            {atn_tensor_dense(w, ATN_F64, 1, 2, M, D), ATN_OK},
            {atn_tensor_dense(NULL, ATN_F64, 1, 1, M, D), ATN_ERR_NULL},
            {atn_tensor_dense(w, ATN_F32, 1, 1, M, D), ATN_ERR_DTYPE},
            {atn_tensor_dense(w, ATN_F64, 1, 1, M, D - 1), ATN_ERR_SHAPE},
            {atn_tensor_dense(w, ATN_F64, 1, 1, 0, D), ATN_ERR_SHAPE},
            {atn_tensor_dense(w, ATN_F64, 1, 3, 1, D), ATN_ERR_SHAPE},
            {atn_tensor_dense(w, ATN_F64, 2, 1, 1, D), ATN_ERR_SHAPE},
            {atn_tensor_dense(w, ATN_F64, 1, 1, 40000000, D), ATN_ERR_SHAPE},
        };
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            *t = cases[c].tensor;
            cr_expect_eq(plan_status(context, &bad, 0), cases[c].want, "%d case %zu: %s", i, c,
                         atn_last_error(context));
        }
        *t = fits;
        t->row_stride = D + 1;
        cr_expect_eq(plan_status(context, &bad, 0), ATN_ERR_STRIDE);
    }
    atn_context_free(context);
}

Test(linear, options_out_of_range)
{
    static double w[M * D];
    static const double bad[] = {-1e-300, NAN, INFINITY};
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 3; i++) {
        atn_attention_desc d = describe(ATN_PERFORMER, 0, ATN_F64, w);
        d.performer.feature_epsilon = bad[i];
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
        d = describe(ATN_PERFORMER, 0, ATN_F64, w), d.performer.denominator_epsilon = bad[i];
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
        d = describe(ATN_PERFORMER, 0, ATN_F64, w), d.logit_scale = bad[i];
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
        d = describe(ATN_ELU, 0, ATN_F64, w), d.elu.epsilon = bad[i];
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
        d = describe(ATN_COSFORMER, 0, ATN_F64, w), d.cosformer.epsilon = bad[i];
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
        d = describe(ATN_RFF, 0, ATN_F64, w), d.scale = ATN_SCALE_VALUE, d.scale_value = bad[i];
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
    }
    for (int i = -1; i <= 9; i += 10) {
        atn_attention_desc d = describe(ATN_PERFORMER, 0, ATN_F64, w);
        d.performer.features = (atn_features)i;
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
        d = describe(ATN_ELU, 0, ATN_F64, w), d.elu.form = (atn_elu_form)i;
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
        d = describe(ATN_COSFORMER, 0, ATN_F64, w), d.cosformer.weighting = (atn_cosine)i;
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
        d = describe(ATN_RFF, 0, ATN_F64, w), d.scale = (atn_scale)i;
        cr_expect_eq(plan_status(context, &d, 0), ATN_ERR_VALUE);
    }
    atn_context_free(context);
}

Test(linear, lengths_and_grids_of_cosformer)
{
    static double w[M * D];
    atn_context *context = fixture_context(1, NULL);
    static const struct {
        int variant;
        int64_t length, height, width, keys;
        atn_status want;
    } cases[] = {
        {0, 0, 0, 0, 7, ATN_OK},
        {0, N, 0, 0, 0, ATN_OK},
        {0, N - 1, 0, 0, 7, ATN_ERR_SHAPE},
        {0, N, 0, 0, N + 1, ATN_ERR_SHAPE},
        {0, -1, 0, 0, 0, ATN_ERR_SHAPE},
        {1, 0, 13, 10, 0, ATN_OK},
        {1, 0, 13, 10, 7, ATN_ERR_SHAPE},
        {1, 0, 12, 10, 0, ATN_ERR_SHAPE},
        {1, 0, -13, -10, 0, ATN_ERR_SHAPE},
        {1, 0, 0, 0, 0, ATN_ERR_SHAPE},
        {1, 0, INT64_MAX, 2, 0, ATN_ERR_SHAPE},
        {2, 1, 0, 0, 7, ATN_OK},
        {3, 0, 0, 0, 7, ATN_ERR_SHAPE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        atn_attention_desc desc = describe(ATN_COSFORMER, cases[i].variant, ATN_F64, w);
        desc.cosformer.length = cases[i].length;
        desc.cosformer.height = cases[i].height;
        desc.cosformer.width = cases[i].width;
        atn_status status = plan_status(context, &desc, cases[i].keys);
        cr_expect_eq(status, cases[i].want, "case %zu: %s (%s)", i, atn_status_name(status),
                     atn_last_error(context));
    }
    atn_attention_desc desc = describe(ATN_RFF, 0, ATN_F64, w);
    desc.causal = true;
    cr_expect_eq(plan_status(context, &desc, 0), ATN_ERR_UNSUPPORTED);
    atn_context_free(context);
}

/* ---- Counts ---- */

/* b = 2, h = 3, n = 10, n_k = 20, d = 4, dv = 5, M = 7. */
Test(linear, counts)
{
    static float w[7 * 4];
    atn_context *context = fixture_context(2, NULL);
    atn_attention_shape shape = {2, 3, 10, 4, 5, 20};
    const double t = 30;
    const struct {
        atn_operator op;
        int variant;
        double maps, features, normalised, exps, state;
    } cases[] = {
        {ATN_PERFORMER, 0, t * (4 + 8 + 7 * (2 * 4 + 4)), 7, 1, t * 7, 1},
        {ATN_PERFORMER, 2, t * (4 + 7 * (2 * 4 + 1)), 7, 1, 0, 0},
        {ATN_RFF, 0, t * (4 + 7 * (2 * 4 + 2)), 14, 0, t * 14, 0},
        {ATN_ELU, 0, t * 4 + 10, 4, 1, t * 4, 0},
        {ATN_COSFORMER, 0, t * 8, 8, 1, t * 2, 0},
        {ATN_COSFORMER, 2, 0, 4, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        atn_attention_desc desc = atn_attention_variant(cases[i].op, cases[i].variant, ATN_F32);
        desc.performer.projection = desc.rff.projection = atn_tensor_dense(w, ATN_F32, 1, 1, 7, 4);
        double m = cases[i].features, sums = cases[i].normalised;
        double products = 2 * t * m * 5 + sums * (20 * m + 2 * 10 * m + 10 * 5);
        double parameters = cases[i].op == ATN_PERFORMER || cases[i].op == ATN_RFF ? 28 : 0;
        atn_cost cost;
        cr_assert_eq(atn_attention_cost(context, &desc, &shape, &cost), ATN_OK);
        cr_expect_eq(cost.flops, 6 * (cases[i].maps + products), "case %zu: %.17g flops", i,
                     cost.flops);
        cr_expect_eq(cost.exps, 6 * cases[i].exps, "case %zu: %.17g exps", i, cost.exps);
        cr_expect_eq(cost.state_bytes, 6 * 4 * (m * (5 + sums) + cases[i].state), "case %zu: %g", i,
                     cost.state_bytes);
        cr_expect_eq(cost.bytes, 4 * (parameters + 6 * (10 * 9 + 20 * 9.0)), "case %zu: %g", i,
                     cost.bytes);
    }
    atn_context_free(context);
}
