/* SPDX-License-Identifier: BSD-3-Clause */
/* The head-wise operators as arithmetic in narrow types would store them: against each formula by
 * hand, every array rounded where an implementation would write it. SOFT's are in
 * test_soft_storage.c. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_judge.h"
#include "data.h"
#include "fixture.h"

/* ---- The end of f16's range ---- */

/* Two equal tokens have the kernel 1: Y is the sum of both values, 65504 or infinity. */
Test(storage, f16_results_at_the_end_of_the_range)
{
    static const struct {
        float addend, want;
    } sums[] = {{0, 65504},     {8, 65504},     {15.9921875F, 65504},   {16, INFINITY},
                {24, INFINITY}, {31, INFINITY}, {31.984375F, INFINITY}, {32, INFINITY}};
    atn_context *context = fixture_context(1, NULL);
    if (fixture_device() != ATN_CPU) { /* where f16 is a type */
        atn_context_free(context);
        return;
    }
    atn_attention_desc desc = atn_attention_defaults(ATN_GAUSSIAN, ATN_F32);
    atn_attention_shape shape = {1, 1, 2, 3, 1, 0};
    atn_plan *plan;
    desc.storage = ATN_STORAGE_F16;
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
    for (size_t i = 0; i < 2 * (sizeof sums / sizeof *sums); i++) {
        float q[6] = {1, 2, 3, 1, 2, 3}, sign = i % 2 ? -1 : 1, y[2] = {0};
        float v[2] = {sign * 65504, sign * sums[i / 2].addend};
        atn_tensor tq = atn_tensor_dense(q, ATN_F32, 1, 1, 2, 3);
        atn_tensor tv = atn_tensor_dense(v, ATN_F32, 1, 1, 2, 1), ty = tv;
        ty.data = y;
        atn_status status =
            atn_attention_forward(plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &ty, NULL);
        bool over = sums[i / 2].want == INFINITY;
        for (int token = 0; token < 2; token++)
            cr_expect(over ? status == ATN_NONFINITE && isnan(y[token])
                           : status == ATN_OK && y[token] == sign * 65504,
                      "%g + %g: %s, %g", (double)v[0], (double)v[1], atn_status_name(status),
                      (double)y[token]);
    }
    atn_plan_free(plan);
    atn_context_free(context);
}

/* ---- Rounding itself ---- */

Test(storage, rounding)
{
    static const struct {
        atn_storage storage;
        float x, want;
    } cases[] = {
        {ATN_STORAGE_BF16, 1 + 0x1p-8F, 1}, /* ties to even */
        {ATN_STORAGE_BF16, 1 + 0x3p-8F, 1 + 0x1p-6F},
        {ATN_STORAGE_BF16, -1 - 0x1p-8F - 0x1p-20F, -1 - 0x1p-7F},
        {ATN_STORAGE_BF16, 2 - 0x1p-9F, 2}, /* the carry reaches the exponent */
        {ATN_STORAGE_BF16, 0x1.ffp127F, INFINITY},
        {ATN_STORAGE_BF16, 0x1p-133F, 0x1p-133F}, /* the smallest subnormal */
        {ATN_STORAGE_BF16, 0x1p-134F, 0},
        {ATN_STORAGE_TF32, 1 + 0x1p-11F, 1},
        {ATN_STORAGE_TF32, 1 + 0x3p-11F, 1 + 0x1p-9F},
        {ATN_STORAGE_TF32, 0x1p-14F + 0x1p-24F, 0x1p-14F + 0x1p-24F},
        {ATN_STORAGE_F16, 1 + 0x1p-11F, 1},
        {ATN_STORAGE_F16, 1 + 0x3p-11F, 1 + 0x1p-9F},
        {ATN_STORAGE_F16, 65519, 65504},
        {ATN_STORAGE_F16, 0x1.ffdffep15F, 65504}, /* the last before 65520 */
        {ATN_STORAGE_F16, 65520, INFINITY},       /* half way to 65536, which there is not */
        {ATN_STORAGE_F16, -65520, -INFINITY},
        {ATN_STORAGE_F16, 0x1.ffe002p15F, INFINITY},
        {ATN_STORAGE_F16, -65535, -INFINITY},
        {ATN_STORAGE_F16, 0x1.fffffep15F, INFINITY},
        {ATN_STORAGE_F16, 65536, INFINITY},
        {ATN_STORAGE_F16, 0x1p-15F + 0x1p-25F, 0x1p-15F}, /* subnormal from 2^-14 down */
        {ATN_STORAGE_F16, 0x1p-15F + 0x1p-24F, 0x1p-15F + 0x1p-24F},
        {ATN_STORAGE_F16, -0x1.8p-25F, -0x1p-24F},
        {ATN_STORAGE_F16, 0x1p-25F, 0},
        {ATN_STORAGE_F16, -0x1p-25F, -0.0F},
        {ATN_STORAGE_F16, -INFINITY, -INFINITY},
        {ATN_STORAGE_NATIVE, 1 + 0x1p-23F, 1 + 0x1p-23F},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float x = cases[i].x;
        atn_storage_round(cases[i].storage, 1, &x);
        cr_expect(x == cases[i].want && signbit(x) == signbit(cases[i].want),
                  "%s: %a becomes %a, not %a", atn_storage_name(cases[i].storage),
                  (double)cases[i].x, (double)x, (double)cases[i].want);
    }
    for (int storage = 1; storage < ATN_STORAGE_COUNT; storage++) {
        const uint32_t bits[2] = {0x7f800001, 0x7fffffff}; /* NaN that rounding must not touch */
        float nan[2], next = 1 + 2 * (float)atn_storage_roundoff((atn_storage)storage);
        float half = 1 + (float)atn_storage_roundoff((atn_storage)storage), want = next;
        memcpy(nan, bits, sizeof nan);
        atn_storage_round((atn_storage)storage, 2, nan);
        atn_storage_round((atn_storage)storage, 1, &next);
        atn_storage_round((atn_storage)storage, 1, &half);
        cr_expect(isnan(nan[0]) && isnan(nan[1]) && next == want && half == 1, "%s",
                  atn_storage_name((atn_storage)storage));
    }
}

/* ---- Outputs are numbers of the type, and off from f32's by a few of its units, not by none ----
 */

/* Of a case in a storage: the share of inexact outputs and the distance from the same numbers in
 * f32, in units of the type. */
static void check_type(atn_context *context, int op, int variant, atn_storage storage)
{
    attention_choice choice = {.op = (atn_operator)op,
                               .variant = variant,
                               .dtype = ATN_F32,
                               .shape = {2, 2, 72, 8, 8, 0},
                               .optional = variant % 2 == 0,
                               .storage = storage,
                               .features = 16,
                               .landmarks = 6,
                               .seed = 9};
    attention_case c = attention_case_make(&choice);
    attention_run narrow = attention_run_make(&c, 1), wide = attention_run_make(&c, 1);
    int64_t count = attention_case_outputs(&c), inexact = 0;
    double *got = data_allocate(count), *want = data_allocate(count);
    cr_expect_geq((int)attention_run_forward(&narrow, context), 0, "%s", atn_last_error(context));
    c.desc.storage = ATN_STORAGE_NATIVE;
    cr_expect_geq((int)attention_run_forward(&wide, context), 0);
    guarded_get(&narrow.out, got);
    guarded_get(&wide.out, want);
    for (int64_t i = 0; i < count; i++) {
        float rounded = (float)got[i];
        atn_storage_round(storage, 1, &rounded);
        inexact += (double)rounded != got[i];
    }
    double off = judge_relative(count, got, want) / atn_storage_roundoff(storage);
    fprintf(stderr, "%s %s: off by %.3g u\n", attention_case_label(&c), atn_storage_name(storage),
            off);
    cr_expect(inexact == 0 && off > 0.3 && off < 8, "%s %s: %ld not of the type, off by %.3g u",
              attention_case_label(&c), atn_storage_name(storage), (long)inexact, off);
    free(want);
    free(got);
    attention_run_free(&wide);
    attention_run_free(&narrow);
    attention_case_free(&c);
}

Test(storage, outputs_are_of_the_type)
{
    atn_context *context = fixture_context(1, NULL);
    for (int op = ATN_SOFTPP + 1; op < ATN_OPERATOR_COUNT; op++)
        for (int variant = 0; variant < atn_operator_get((atn_operator)op)->variant_count;
             variant++)
            for (int storage = 1; storage < ATN_STORAGE_COUNT; storage++)
                check_type(context, op, variant, (atn_storage)storage);
    atn_context_free(context);
}

/* ---- Every array that is written is rounded: 4 tokens and every width 2, by hand ---- */

enum { N = 4, W = 2, SQUARE = W * W, TOKENS = N * W };

typedef struct {
    const atn_attention_desc *desc;
    const float *q, *k, *v;
    float *y;
} head_problem;

static void store(int count, float *x)
{
    atn_storage_round(ATN_STORAGE_BF16, count, x);
}

/* out = op(A) op(B), dense; not yet stored. */
static void product(bool a_t, bool b_t, int rows, int inner, int cols, const float *a,
                    const float *b, float *out)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            float sum = 0;
            for (int l = 0; l < inner; l++)
                sum +=
                    a[a_t ? l * rows + i : i * inner + l] * b[b_t ? j * inner + l : l * cols + j];
            out[i * cols + j] = sum;
        }
}

static void stored_product(bool a_t, bool b_t, int rows, int inner, int cols, const float *a,
                           const float *b, float *out)
{
    product(a_t, b_t, rows, inner, cols, a, b, out);
    store(rows * cols, out);
}

/* Softmax of `count` numbers, `step` apart, times c; stored. */
static void softmax_line(int count, int step, double c, const float *x, float *out)
{
    double largest = -INFINITY, sum = 0;
    for (int j = 0; j < count; j++)
        largest = fmax(largest, c * (double)x[j * step]);
    for (int j = 0; j < count; j++)
        sum += exp(c * (double)x[j * step] - largest);
    for (int j = 0; j < count; j++) {
        out[j * step] = (float)(exp(c * (double)x[j * step] - largest) / sum);
        store(1, &out[j * step]);
    }
}

/* x / |x|_2, or |x|_1; `count` numbers, `step` apart; stored. */
static void normalise_line(bool l1, int count, int step, const float *x, float *out)
{
    double norm = 0;
    for (int j = 0; j < count; j++)
        norm += l1 ? fabs((double)x[j * step]) : (double)x[j * step] * (double)x[j * step];
    for (int j = 0; j < count; j++) {
        out[j * step] = (float)((double)x[j * step] / (l1 ? norm : sqrt(norm)));
        store(1, &out[j * step]);
    }
}

static const float *data_of(const atn_tensor *t)
{
    return t->data;
}

static double logit_scale(const head_problem *p)
{
    return p->desc->logit_scale;
}

static void gaussian(const head_problem *p)
{
    float kernel[N * N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float a = p->q[i * W] - p->k[j * W], b = p->q[i * W + 1] - p->k[j * W + 1];
            kernel[i * N + j] = expf((float)-p->desc->scale_value * (a * a + b * b));
        }
    store(N * N, kernel);
    stored_product(false, false, N, N, W, kernel, p->v, p->y);
}

/* Streamed softmax: exps are stored, the sums they are divided by at the end are not. */
static void attention(double c, int rows, int keys, const float *q, const float *k, const float *v,
                      float *out)
{
    float weights[N * N];
    product(false, true, rows, W, keys, q, k, weights);
    for (int i = 0; i < rows; i++) {
        float *row = weights + i * keys, largest = -INFINITY;
        double sum = 0;
        for (int j = 0; j < keys; j++)
            largest = fmaxf(largest, row[j] *= (float)c);
        for (int j = 0; j < keys; j++)
            sum += (double)(row[j] = expf(row[j] - largest));
        store(keys, row);
        product(false, false, 1, keys, W, row, v, out + i * W);
        for (int e = 0; e < W; e++)
            out[i * W + e] = (float)((double)out[i * W + e] / sum);
    }
    store(rows * W, out);
}

static void softmax(const head_problem *p)
{
    attention(logit_scale(p), N, N, p->q, p->k, p->v, p->y);
}

static void linformer(const head_problem *p)
{
    const float *e = data_of(&p->desc->linformer.e);
    float keys[SQUARE], values[SQUARE], weights[TOKENS];
    stored_product(true, false, W, N, W, e, p->k, keys);
    stored_product(true, false, W, N, W, e, p->v, values);
    product(false, true, N, W, W, p->q, keys, weights);
    for (int i = 0; i < N; i++)
        softmax_line(W, 1, logit_scale(p), weights + i * W, weights + i * W);
    stored_product(false, false, N, W, W, weights, values, p->y);
}

static void sima(const head_problem *p)
{
    float q[TOKENS], k[TOKENS], state[SQUARE], weights[N * N];
    for (int c = 0; c < W; c++) {
        normalise_line(p->desc->sima.norm == ATN_SIMA_L1, N, W, p->q + c, q + c);
        normalise_line(p->desc->sima.norm == ATN_SIMA_L1, N, W, p->k + c, k + c);
    }
    if (p->desc->sima.order == ATN_ORDER_TOKENS) {
        stored_product(false, true, N, W, N, q, k, weights);
        stored_product(false, false, N, N, W, weights, p->v, p->y);
        return;
    }
    stored_product(true, false, W, N, W, k, p->v, state);
    stored_product(false, false, N, W, W, q, state, p->y);
}

static void xnorm(const head_problem *p)
{
    float q[TOKENS], state[SQUARE];
    stored_product(true, false, W, N, W, p->k, p->v, state);
    for (int c = 0; c < W; c++)
        normalise_line(false, W, W, state + c, state + c);
    for (int i = 0; i < N; i++)
        normalise_line(false, W, 1, p->q + i * W, q + i * W);
    stored_product(false, false, N, W, W, q, state, p->y);
}

static void xca(const head_problem *p)
{
    float q[TOKENS], k[TOKENS], weights[SQUARE];
    for (int c = 0; c < W; c++) {
        normalise_line(false, N, W, p->q + c, q + c);
        normalise_line(false, N, W, p->k + c, k + c);
    }
    stored_product(true, false, W, N, W, q, k, weights);
    for (int a = 0; a < W; a++)
        softmax_line(W, 1, 1, weights + a * W, weights + a * W);
    stored_product(false, true, N, W, W, p->v, weights, p->y);
}

static void efficient(const head_problem *p)
{
    float q[TOKENS], k[TOKENS], state[SQUARE];
    for (int i = 0; i < N; i++)
        softmax_line(W, 1, 1, p->q + i * W, q + i * W);
    for (int c = 0; c < W; c++)
        softmax_line(N, W, 1, p->k + c, k + c);
    stored_product(true, false, W, N, W, k, p->v, state);
    stored_product(false, false, N, W, W, q, state, p->y);
}

/* The order-3 step, every factor of it stored. */
static void inverse_step(const float *a, float *z)
{
    static const float diagonals[3] = {7, 15, 13};
    float y[SQUARE], bracket[SQUARE], next[SQUARE];
    stored_product(false, false, W, W, W, a, z, y);
    memcpy(bracket, y, sizeof y);
    for (int t = 0; t < 3; t++) {
        if (t > 0)
            product(false, false, W, W, W, y, bracket, next);
        else
            memcpy(next, y, sizeof y);
        for (int i = 0; i < SQUARE; i++)
            bracket[i] = (i % (W + 1) == 0 ? diagonals[t] : 0) - next[i];
        store(SQUARE, bracket);
    }
    product(false, false, W, W, W, z, bracket, next);
    for (int i = 0; i < SQUARE; i++)
        z[i] = next[i] / 4;
    store(SQUARE, z);
}

static void inverse(const float *a, float *z)
{
    double scale = 1 / ((double)a[0] * (double)a[3] - (double)a[1] * (double)a[2]);
    for (int i = 0; i < SQUARE; i++)
        z[i] = (float)(scale * (double)(i % (W + 1) == 0 ? a[SQUARE - 1 - i] : -a[i]));
    store(SQUARE, z);
}

/* Two segments of two tokens; Z after one step, or the inverse. */
static void nystromformer(const head_problem *p)
{
    const float *taps = data_of(&p->desc->residual);
    float q[SQUARE], k[SQUARE], a[SQUARE], z[SQUARE], summary[SQUARE], solved[SQUARE];
    double c = logit_scale(p);
    for (int i = 0; i < SQUARE; i++) {
        int at = i / W * 2 * W + i % W;
        q[i] = (p->q[at] + p->q[at + W]) / 2;
        k[i] = (p->k[at] + p->k[at + W]) / 2;
    }
    store(SQUARE, q);
    store(SQUARE, k);
    product(false, true, W, W, W, q, k, a);
    for (int i = 0; i < W; i++)
        softmax_line(W, 1, c, a + i * W, a + i * W);
    float norm = fmaxf(a[0] + a[2], a[1] + a[3]);
    for (int i = 0; i < SQUARE; i++)
        z[i] = a[i % W * W + i / W] / norm;
    store(SQUARE, z);
    if (p->desc->nystromformer.inverse == ATN_NYSTROM_PINV)
        inverse(a, z);
    else
        inverse_step(a, z);
    attention(c, W, N, q, p->k, p->v, summary);
    stored_product(false, false, W, W, W, z, summary, solved);
    attention(c, N, W, p->q, k, solved, p->y);
    for (int i = 0; i < N; i++)
        for (int tap = 0; tap < 3; tap++)
            for (int e = 0; e < W && i + tap >= 1 && i + tap <= N; e++)
                p->y[i * W + e] += taps[tap] * p->v[(i + tap - 1) * W + e];
    store(TOKENS, p->y);
}

/* Y = phi(Q) S / phi(Q).z; plain: undivided. Causal: no state is written. */
static void linear(const head_problem *p, int features, float *phi_q, float *phi_k, bool plain,
                   double epsilon)
{
    float state[4 * W * W], z[4 * W] = {0};
    store(N * features, phi_q);
    store(N * features, phi_k);
    for (int i = 0; i < N; i++) {
        int keys = p->desc->causal ? i + 1 : N;
        double sum = 0;
        memset(z, 0, sizeof z);
        for (int j = 0; j < keys * features; j++)
            z[j % features] += phi_k[j];
        product(true, false, features, keys, W, phi_k, p->v, state);
        if (!p->desc->causal) {
            store(features * W, state);
            store(features, z);
        }
        for (int r = 0; r < features; r++)
            sum += (double)phi_q[i * features + r] * (double)z[r];
        product(false, false, 1, features, W, phi_q + i * features, state, p->y + i * W);
        for (int e = 0; e < W && !plain; e++)
            p->y[i * W + e] = (float)((double)p->y[i * W + e] / (sum + epsilon));
    }
    store(TOKENS, p->y);
}

/* u = root X W^T */
static void project(const float *x, const float *w, double root, float *u)
{
    product(false, true, N, W, W, x, w, u);
    for (int i = 0; i < TOKENS; i++)
        u[i] *= (float)root;
}

static void performer(const head_problem *p)
{
    double c = logit_scale(p), epsilon = p->desc->performer.feature_epsilon;
    const float *tokens[2] = {p->q, p->k}, *w = data_of(&p->desc->performer.projection);
    float u[2][TOKENS];
    for (int keys = 0; keys < 2; keys++) {
        float top = -INFINITY; /* in double gcc 12 fails for aarch64 */
        project(tokens[keys], w, sqrt(c), u[keys]);
        for (int i = 0; i < TOKENS; i++)
            top = fmaxf(top, u[keys][i]);
        for (int i = 0; i < N; i++) {
            const float *x = tokens[keys] + i * W;
            float *row = u[keys] + i * W;
            double half = c * ((double)x[0] * (double)x[0] + (double)x[1] * (double)x[1]) / 2;
            double shift = half + (double)(keys ? top : fmaxf(row[0], row[1]));
            for (int r = 0; r < W; r++)
                row[r] = (expf((float)((double)row[r] - shift)) + (float)epsilon) * sqrtf(0.5F);
        }
    }
    linear(p, W, u[0], u[1], false, 0);
}

static void rff(const head_problem *p)
{
    const float *tokens[2] = {p->q, p->k};
    float phi[2][2 * TOKENS], u[TOKENS];
    for (int keys = 0; keys < 2; keys++) {
        project(tokens[keys], data_of(&p->desc->rff.projection), sqrt(2 * p->desc->scale_value), u);
        for (int i = 0; i < TOKENS; i++) {
            float *row = phi[keys] + i / W * 2 * W;
            row[i % W] = cosf(u[i]) * sqrtf(0.5F);
            row[W + i % W] = sinf(u[i]) * sqrtf(0.5F);
        }
    }
    linear(p, 2 * W, phi[0], phi[1], true, 0);
}

static void elu(const head_problem *p)
{
    bool naive = p->desc->elu.form == ATN_ELU_NAIVE;
    const float *tokens[2] = {p->q, p->k};
    float phi[2][TOKENS];
    for (int i = 0; i < 2 * TOKENS; i++) {
        float x = tokens[i / TOKENS][i % TOKENS], *out = &phi[i / TOKENS][i % TOKENS];
        *out = (x < 0 ? expf(x) : x + 1) - naive;
        store(naive, out);
        *out += naive;
    }
    linear(p, W, phi[0], phi[1], false, p->desc->elu.epsilon);
}

static void cosformer(const head_problem *p)
{
    const float *tokens[2] = {p->q, p->k};
    float phi[2][2 * TOKENS];
    for (int i = 0; i < 2 * TOKENS; i++) {
        float x = fmaxf(tokens[i / TOKENS][i % TOKENS], 0);
        double angle = acos(0.0) * (i % TOKENS / W + 1) / N;
        float *row = phi[i / TOKENS] + i % TOKENS / W * 2 * W;
        row[i % W] = (float)sin(angle) * x;
        row[W + i % W] = (float)cos(angle) * x;
    }
    linear(p, 2 * W, phi[0], phi[1], false, 1e-30); /* 0 / 0 is 0 */
}

/* One chunk: softmax attention with keys of norm 1, all but to oneself. */
static void lsh(const head_problem *p)
{
    float keys[TOKENS], weights[N * N];
    for (int i = 0; i < N; i++)
        normalise_line(false, W, 1, p->q + i * W, keys + i * W);
    product(false, true, N, W, N, p->q, keys, weights);
    for (int i = 0; i < N; i++) {
        float *row = weights + i * N, largest = -INFINITY, sum = 0;
        row[i] = -INFINITY;
        for (int j = 0; j < N; j++)
            largest = fmaxf(largest, row[j] *= (float)logit_scale(p));
        for (int j = 0; j < N; j++)
            sum += row[j] = expf(row[j] - largest);
        store(N, row);
        product(false, false, 1, N, W, row, p->v, p->y + i * W);
        for (int e = 0; e < W; e++)
            p->y[i * W + e] *= 1 / sum;
    }
    store(TOKENS, p->y);
}

static const struct {
    atn_operator op;
    int variant;
    void (*by_hand)(const head_problem *);
} hands[] = {
    {ATN_GAUSSIAN, 0, gaussian},
    {ATN_SOFTMAX, 0, softmax},
    {ATN_LINFORMER, 0, linformer},
    {ATN_SIMA, 5, sima},
    {ATN_SIMA, 6, sima},
    {ATN_SIMA, 3, sima},
    {ATN_XNORM, 0, xnorm},
    {ATN_XCA, 1, xca},
    {ATN_EFFICIENT, 0, efficient},
    {ATN_NYSTROMFORMER, 1, nystromformer},
    {ATN_NYSTROMFORMER, 2, nystromformer},
    {ATN_PERFORMER, 0, performer},
    {ATN_RFF, 0, rff},
    {ATN_ELU, 0, elu},
    {ATN_ELU, 1, elu},
    {ATN_ELU, 2, elu},
    {ATN_COSFORMER, 0, cosformer},
    {ATN_COSFORMER, 3, cosformer},
    {ATN_LSH, 0, lsh},
};

static void narrowed(int64_t count, const double *from, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)from[i];
}

/* Outputs that differ from those by hand. */
static int differing(atn_context *context, int row, uint64_t seed)
{
    attention_choice choice = {.op = hands[row].op,
                               .variant = hands[row].variant,
                               .dtype = ATN_F32,
                               .shape = {1, 1, N, W, W, 0},
                               .cross = true,
                               .storage = ATN_STORAGE_BF16,
                               .landmarks = W,
                               .features = W,
                               .chunk = N,
                               .optional = hands[row].op == ATN_NYSTROMFORMER,
                               .seed = seed};
    attention_case c = attention_case_make(&choice);
    c.desc.logit_scale = 0.7, c.desc.scale = ATN_SCALE_VALUE, c.desc.scale_value = 0.7;
    c.desc.nystromformer.iterations = 1;
    attention_run r = attention_run_make(&c, 0);
    float q[TOKENS], k[TOKENS], v[TOKENS], y[TOKENS];
    narrowed(TOKENS, c.q, q);
    narrowed(TOKENS, c.k ? c.k : c.q, k);
    narrowed(TOKENS, c.v, v);
    head_problem p = {&c.desc, q, k, v, y};
    cr_expect_geq((int)attention_run_forward(&r, context), 0, "%s", atn_last_error(context));
    hands[row].by_hand(&p);
    int count = 0;
    for (int i = 0; i < TOKENS; i++)
        count += guarded_at(&r.out, 0, 0, i / W, i % W) != (double)y[i];
    attention_run_free(&r);
    attention_case_free(&c);
    return count;
}

/* The last bit of an f32 sum or exp may turn a tie now and then; an array left unrounded, or one
 * more, changes many outputs. */
Test(storage, every_array_is_rounded)
{
    enum { SEEDS = 40 };
    atn_context *context = fixture_context(1, NULL);
    for (int row = 0; row < (int)(sizeof hands / sizeof *hands); row++) {
        int count = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            count += differing(context, row, seed);
        const atn_operator_info *info = atn_operator_get(hands[row].op);
        cr_expect(count <= SEEDS * TOKENS / 100, "%s %s: %d of %d outputs differ", info->name,
                  info->variants[hands[row].variant].name, count, SEEDS * TOKENS);
    }
    atn_context_free(context);
}

/* LSH hashes with stored products: those of token 0, 1 and 1 + 2^-9, tie in bf16 and give it the
 * first bucket. Each token sees the one before it; in f32 that of token 1 would be the last. */
Test(storage, hashes_are_of_rounded_products)
{
    static float q[6] = {1, 0, 1, 1, -1, 0}, v[3] = {1, 2, 3}, y[3];
    static float rotations[4] = {1, 1 + 0x1p-9F, 1, 0};
    atn_context *context = fixture_context(1, NULL);
    for (int narrow = 0; narrow < 2; narrow++) {
        atn_attention_desc desc = atn_attention_defaults(ATN_LSH, ATN_F32);
        atn_attention_shape shape = {1, 1, 3, 2, 1, 0};
        atn_tensor tq = atn_tensor_dense(q, ATN_F32, 1, 1, 3, 2), tv = tq, ty = tq;
        atn_plan *plan;
        tv = atn_tensor_dense(v, ATN_F32, 1, 1, 3, 1);
        ty = atn_tensor_dense(y, ATN_F32, 1, 1, 3, 1);
        desc.storage = narrow ? ATN_STORAGE_BF16 : ATN_STORAGE_NATIVE;
        desc.lsh.rotations = atn_tensor_dense(rotations, ATN_F32, 1, 1, 2, 2);
        desc.lsh.chunk = 1;
        cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK);
        cr_expect_eq(
            atn_attention_forward(plan, &(atn_attention_inputs){.q = &tq, .v = &tv}, &ty, NULL),
            ATN_OK);
        cr_expect_eq(y[1], narrow ? v[0] : v[2], "narrow %d: %g", narrow, (double)y[1]);
        atn_plan_free(plan);
    }
    atn_context_free(context);
}
