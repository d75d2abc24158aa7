/* SPDX-License-Identifier: BSD-3-Clause */
#include "attention_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "linear_algebra.h"
#include "soft.h"

double judge_norm(int64_t count, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

double judge_largest(int64_t count, const double *x)
{
    double largest = 0;
    for (int64_t i = 0; i < count && !isnan(largest); i++)
        if (!(fabs(x[i]) <= largest))
            largest = fabs(x[i]);
    return largest;
}

static double distance(int64_t count, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

double judge_relative(int64_t count, const double *x, const double *y)
{
    double error = distance(count, x, y);
    return error == 0 ? 0 : error / judge_norm(count, y);
}

/* ---- Conditioning ---- */

/* The inverse's part, for all heads. */
static void soft_conditions(const attention_case *c, double *kappa)
{
    const atn_attention_desc *desc = &c->reference;
    int64_t heads = c->shape.batch * c->shape.heads, n = c->shape.tokens, d = c->shape.dim;
    double s = atn_kernel_scale(desc->scale, desc->scale_value, c->shape.heads, d);
    fixture_sampling sampling = {.desc = desc->sampling,
                                 .indices = (int64_t *)(uintptr_t)desc->sampling.indices,
                                 .weights = desc->sampling.weights.data,
                                 .norm_weight = desc->sampling.norm_weight.data,
                                 .norm_bias = desc->sampling.norm_bias.data};
    double *landmarks = data_allocate((n + 1) * d), *alpha = data_allocate(heads), *a = NULL;
    int *halvings = calloc((size_t)heads + 1, sizeof *halvings);
    int64_t m = 0;
    for (int64_t i = 0; i < heads; i++) {
        m = fixture_landmarks(&sampling, n, d, c->q + i * n * d, landmarks);
        a = a ? a : data_allocate(heads * m * m);
        ref_gaussian(m, m, d, landmarks, landmarks, s, a + i * m * m);
    }
    fixture_alpha(&desc->inverse, heads, m, a, alpha, halvings);
    for (int64_t i = 0; i < heads; i++)
        kappa[i] = fmax(kappa[i], fixture_condition(&desc->inverse, m, a + i * m * m, alpha[i]));
    free(halvings);
    free(a);
    free(alpha);
    free(landmarks);
}

/* Means of m segments of floor(n/m) tokens, the last n mod m of them one longer; padding is 0. */
static void segment_means(int64_t n, int64_t m, int64_t d, const double *x,
                          const unsigned char *mask, double *means)
{
    for (int64_t l = 0, first = 0; l < m; l++) {
        int64_t length = n / m + (l >= m - n % m);
        for (int64_t i = 0; i < length * d; i++)
            if (!mask || mask[first + i / d])
                means[l * d + i % d] += x[first * d + i] / (double)length;
        first += length;
    }
}

/* The pseudo-inverse's part: the condition of A = softmax(c Q~ K~^T), which is softmax attention
 * between the means with V = I. */
static void nystrom_conditions(const attention_case *c, double *kappa)
{
    const atn_attention_shape *s = &c->shape;
    int64_t m = c->reference.nystromformer.landmarks, d = s->dim;
    const unsigned char *queries = c->choice.cross ? c->query_mask : c->key_mask;
    atn_attention_desc softmax = {.op = ATN_SOFTMAX, .logit_scale = c->reference.logit_scale};
    double *q = data_allocate(m * d), *k = data_allocate(m * d), *v = data_allocate(m * m);
    double *a = data_allocate(m * m), condition;
    for (int64_t i = 0; i < m; i++)
        v[i * m + i] = 1;
    for (int64_t i = 0; i < s->batch * s->heads; i++) {
        int64_t b = i / s->heads, n = s->tokens, n_k = s->key_tokens;
        const double *keys = c->k ? c->k : c->q;
        memset(q, 0, (size_t)(m * d) * sizeof *q);
        memset(k, 0, (size_t)(m * d) * sizeof *k);
        segment_means(n, m, d, c->q + i * n * d, queries ? queries + b * n : NULL, q);
        segment_means(n_k, m, d, keys + i * n_k * d, c->key_mask ? c->key_mask + b * n_k : NULL, k);
        ref_attention_problem problem = {&softmax, {1, 1, m, d, m, m}, q, k, v, NULL, NULL};
        if (ref_attention(&problem, a) != ATN_OK || ref_condition(m, m, a, &condition, NULL) < 0)
            abort();
        kappa[i] = fmax(kappa[i], condition);
    }
    free(a), free(v), free(k), free(q);
}

/* x with random signs: a relative change of 1 in every element. */
static void random_signs(uint64_t *state, int64_t count, const double *x, double *direction)
{
    for (int64_t i = 0; i < count; i++)
        direction[i] = data_next(state) & 1 ? x[i] : -x[i];
}

void judge_conditions(const attention_case *c, const double *want, double *kappa)
{
    int64_t heads = c->shape.batch * c->shape.heads;
    int64_t size = c->shape.tokens * c->shape.value_dim;
    ref_attention_problem problem = attention_case_problem(c);
    attention_slots slots = attention_slots_make(c);
    ref_attention_arrays direction = attention_slots_arrays(&slots);
    double *change = data_allocate(heads * size);
    uint64_t state = c->choice.seed;
    for (int64_t i = 0; i < heads; i++)
        kappa[i] = 1;
    for (int turn = 0; turn < 3; turn++) {
        for (int s = 0; s < SLOT_COUNT; s++)
            random_signs(&state, attention_slot_count(c, s), attention_slot_values(c, s),
                         slots.of[s]);
        if (ref_attention_derivative(&problem, &direction, change) < 0)
            abort();
        for (int64_t i = 0; i < heads; i++) {
            double norm = judge_norm(size, want + i * size);
            if (norm > 0)
                kappa[i] = fmax(kappa[i], 1 + judge_norm(size, change + i * size) / norm);
        }
    }
    if (c->choice.op == ATN_SOFT || c->choice.op == ATN_SOFTPP)
        soft_conditions(c, kappa);
    if (c->choice.op == ATN_NYSTROMFORMER &&
        c->reference.nystromformer.inverse == ATN_NYSTROM_PINV && attention_case_outputs(c) > 0)
        nystrom_conditions(c, kappa);
    free(change);
    attention_slots_free(&slots);
}

/* ---- Forward ---- */

/* Whether the mean of the values, in every row, would FAIL against want. */
static bool mean_fails(const attention_case *c, int64_t head, const double *want, double kappa,
                       double u)
{
    int64_t n = c->shape.tokens, n_k = c->shape.key_tokens, dv = c->shape.value_dim;
    const double *v = c->v + head * n_k * dv;
    const unsigned char *mask = c->key_mask ? c->key_mask + head / c->shape.heads * n_k : NULL;
    double *answer = data_allocate(n * dv), count = 0, ratio;
    for (int64_t j = 0; j < n_k; j++)
        count += !mask || mask[j];
    for (int64_t i = 0; i < n * dv; i++)
        for (int64_t j = 0; j < n_k; j++)
            answer[i] += !mask || mask[j] ? v[j * dv + i % dv] / count : 0;
    ref_difference difference = ref_compare_f64(n, dv, answer, dv, want, dv);
    ref_verdict verdict = ref_judge_forward(&difference, kappa, attention_case_terms(c), u, &ratio);
    free(answer);
    return verdict == REF_FAIL;
}

ref_verdict judge_forward(const attention_run *r, const double *want, const double *kappa,
                          double *ratio)
{
    const attention_case *c = r->c;
    int64_t rows = c->shape.tokens, cols = c->shape.value_dim, terms = attention_case_terms(c);
    double u = atn_dtype_roundoff(c->choice.dtype);
    ref_verdict worst = REF_PASS;
    *ratio = 0;
    for (int64_t i = 0; i < c->shape.batch * c->shape.heads; i++) {
        const double *answer = want + i * rows * cols;
        ref_difference difference =
            guarded_compare(&r->out, i / c->shape.heads, i % c->shape.heads, answer);
        double one;
        ref_verdict verdict = ref_judge_forward(&difference, kappa[i], terms, u, &one);
        bool averages = rows > 1 && c->shape.key_tokens > 1;
        if (verdict != REF_FAIL && averages &&
            (!ref_discriminates(rows, cols, answer, 10 * kappa[i] * (double)terms * u) ||
             !mean_fails(c, i, answer, kappa[i], u)))
            verdict = REF_SKIPPED;
        worst = verdict > worst && worst != REF_FAIL ? verdict : worst;
        *ratio = one > *ratio ? one : *ratio;
    }
    return worst;
}

/* ---- Gradients ---- */

double judge_gradient_error(const attention_case *c, const double *output, int slot,
                            const double *got, const double *want)
{
    int64_t count = attention_slot_count(c, slot), outputs = attention_case_outputs(c);
    double size = judge_norm(count, want),
           inputs = judge_norm(count, attention_slot_values(c, slot));
    double natural =
        inputs > 0 ? judge_norm(outputs, c->dout) * judge_norm(outputs, output) / inputs : 0;
    double error = distance(count, got, want);
    return error == 0 ? 0 : error / fmax(size, JUDGE_FLOOR[c->choice.dtype] * natural);
}

double judge_gradients(const attention_case *c, const double *output, const attention_slots *got,
                       const attention_slots *want, int *worst_slot)
{
    double worst = 0;
    *worst_slot = SLOT_Q;
    for (int s = 0; s < SLOT_COUNT && !isnan(worst); s++) {
        if (!want->of[s])
            continue;
        double error = judge_gradient_error(c, output, s, got->of[s], want->of[s]);
        if (!(error <= worst)) {
            worst = error;
            *worst_slot = s;
        }
    }
    return worst;
}
