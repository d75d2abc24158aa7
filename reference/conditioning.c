/* SPDX-License-Identifier: BSD-3-Clause */
#include "conditioning.h"

#include <math.h>
#include <stdlib.h>

#include "data.h"
#include "filters.h"
#include "linear_algebra.h"
#include "newton.h"
#include "ref_memory.h"

/* The relative change of inputs. The change and its effect are rounded to f64, with a relative
 * error of 2^-13; nonlinearity of the output matters only for kappa near 2^40. */
static const double step = 0x1p-40;

/* ---- Inverses ---- */

/* The factor by which f_k(A + ridge I) magnifies a relative change of A or alpha: the largest of
 * l_1 |f_k'(mu)| / max f_k, where mu f_k' = 2 alpha mu N r^(N-1) - f_k, r = 1 - alpha mu^2,
 * N = 2^k. It is large where r is close to -1: there the papers' start is on the edge of
 * divergence. */
static double filter_condition(int64_t m, const double *a, double alpha, double ridge, int k)
{
    double *lambda = data_allocate(m), steepest = 0, largest = 0, steps = ldexp(1, k);
    if (ref_eigenvalues(m, a, lambda, NULL, NULL) < 0)
        ref_give_up("the reference has no condition number");
    for (int64_t i = 0; i < m; i++) {
        double mu = lambda[i] + ridge, f = ref_filter(alpha, k, mu);
        double power = pow(fabs(1 - alpha * mu * mu), steps - 1);
        double slope = fabs(2 * alpha * mu * steps * power) + fabs(f);
        steepest = fmax(steepest, lambda[0] * slope / mu);
        largest = fmax(largest, fabs(f));
    }
    free(lambda);
    return largest > 0 ? steepest / largest : INFINITY;
}

/* The same for a polynomial iteration, f' from a difference. */
static double iteration_condition(int64_t m, const double *a, const atn_inverse_desc *inverse)
{
    ref_iteration iteration;
    double *lambda = data_allocate(m), steepest = 0, largest = 0;
    int k = inverse->iterations;
    if (!ref_iteration_of(inverse, m, a, &iteration) ||
        ref_eigenvalues(m, a, lambda, NULL, NULL) < 0)
        ref_give_up("the reference has no condition number");
    for (int64_t i = 0; i < m; i++) {
        double mu = lambda[i] + iteration.ridge, f = ref_iteration_filter(&iteration, k, mu);
        double change = ref_iteration_filter(&iteration, k, mu * (1 + 0x1p-20)) - f;
        double slope = (fabs(change) * 0x1p20 + fabs(f)) * lambda[0] / mu;
        steepest = slope <= steepest ? steepest : slope;
        largest = fmax(largest, fabs(f));
    }
    free(lambda);
    return largest > 0 ? steepest / largest : INFINITY;
}

double ref_inverse_condition(const atn_inverse_desc *inverse, int64_t m, const double *a,
                             double alpha)
{
    double kappa = INFINITY;
    if (ref_condition(m, m, a, &kappa, NULL) < 0)
        ref_give_up("the reference has no condition number");
    if (inverse->method <= ATN_INVERSE_NR_SOFTPP)
        kappa = fmax(kappa, filter_condition(m, a, alpha, inverse->ridge, inverse->iterations));
    else if (inverse->method < ATN_INVERSE_EIG)
        kappa = fmax(kappa, iteration_condition(m, a, inverse));
    return kappa;
}

/* The inverse's part of every head's kappa. */
static void bottleneck_conditions(const attention_case *c, double *kappa)
{
    ref_attention_problem problem = attention_case_problem(c);
    int64_t heads = c->shape.batch * c->shape.heads;
    int64_t m = ref_attention_bottlenecks(&problem, NULL, NULL);
    if (m < 0)
        ref_give_up("the reference has no condition number");
    double *a = data_allocate(heads * m * m), *alpha = data_allocate(heads);
    if (ref_attention_bottlenecks(&problem, a, alpha) < 0)
        ref_give_up("the reference has no condition number");
    for (int64_t i = 0; i < heads; i++) {
        const double *one = a + i * m * m;
        double condition = INFINITY;
        if (c->choice.op != ATN_NYSTROMFORMER)
            condition = ref_inverse_condition(&c->reference.inverse, m, one, alpha[i]);
        else if (ref_condition(m, m, one, &condition, NULL) < 0)
            ref_give_up("the reference has no condition number");
        kappa[i] = fmax(kappa[i], condition);
    }
    free(alpha);
    free(a);
}

static bool inverts(const attention_case *c)
{
    switch (c->choice.op) {
    case ATN_SOFT:
    case ATN_SOFTPP:
        return true;
    case ATN_NYSTROMFORMER:
        return c->reference.nystromformer.inverse == ATN_NYSTROM_PINV;
    default:
        return false;
    }
}

/* ---- Changes of the inputs ---- */

/* x (1 + or - step) with random signs, to be freed by the caller; null if x is null. */
static double *changed(uint64_t *state, int64_t count, const double *x)
{
    double *y = x ? data_allocate(count) : NULL;
    for (int64_t i = 0; y && i < count; i++)
        y[i] = data_next(state) & 1 ? x[i] * (1 + step) : x[i] * (1 - step);
    return y;
}

/* Y of inputs and parameters changed at random. */
static atn_status evaluate_changed(const attention_case *c, uint64_t *state, double *out)
{
    ref_attention_problem problem = attention_case_problem(c);
    atn_attention_desc desc = c->reference;
    double *parameters[ATN_PARAMETER_COUNT];
    double *q = changed(state, attention_case_queries(c), c->q);
    double *k = changed(state, attention_case_keys(c), c->k);
    double *v = changed(state, attention_case_values(c), c->v);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        atn_tensor *t = atn_attention_parameter(&desc, (atn_parameter)p);
        int64_t count = attention_case_parameter(c, (atn_parameter)p);
        t->data = parameters[p] = changed(state, count, t->data);
    }
    problem.desc = &desc;
    problem.q = q, problem.k = k, problem.v = v;
    atn_status status = ref_attention(&problem, out);
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++)
        free(parameters[p]);
    free(v), free(k), free(q);
    return status;
}

/* |x - y| / |y| of count numbers; 0 where y is 0. */
static double relative_change(int64_t count, const double *x, const double *y)
{
    ref_difference difference = ref_compare_f64(1, count, x, count, y, count);
    return difference.want_frobenius > 0 ? difference.relative_frobenius : 0;
}

void ref_attention_conditions(const attention_case *c, const double *want, int directions,
                              double *kappa)
{
    int64_t heads = c->shape.batch * c->shape.heads;
    int64_t size = c->shape.tokens * c->shape.value_dim;
    double *output = data_allocate(heads * size);
    uint64_t state = c->choice.seed;
    for (int64_t i = 0; i < heads; i++)
        kappa[i] = 1;
    for (int turn = 0; turn < directions; turn++) {
        if (evaluate_changed(c, &state, output) < 0)
            ref_give_up("the reference has no condition number");
        for (int64_t i = 0; i < heads; i++) {
            double change = relative_change(size, output + i * size, want + i * size);
            kappa[i] = fmax(kappa[i], 1 + change / step);
        }
    }
    if (heads * size > 0 && inverts(c))
        bottleneck_conditions(c, kappa);
    free(output);
}

/* ---- Verdicts ---- */

/* Whether an output whose rows are all the mean of the values would FAIL. */
static bool mean_fails(const attention_case *c, int64_t head, const double *want, double kappa,
                       double rounding)
{
    int64_t n = c->shape.tokens, n_k = c->shape.key_tokens, dv = c->shape.value_dim;
    const double *v = c->v + head * n_k * dv;
    const unsigned char *mask = c->key_mask ? c->key_mask + head / c->shape.heads * n_k : NULL;
    double *answer = data_allocate(n * dv), count = 0;
    for (int64_t j = 0; j < n_k; j++)
        count += !mask || mask[j];
    for (int64_t j = 0; j < n_k * dv; j++)
        answer[j % dv] += !mask || mask[j / dv] ? v[j] / count : 0;
    for (int64_t i = dv; i < n * dv; i++)
        answer[i] = answer[i - dv];
    ref_difference difference = ref_compare_f64(n, dv, answer, dv, want, dv);
    free(answer);
    return ref_judge_forward(&difference, kappa, 1, rounding, NULL) == REF_FAIL;
}

ref_verdict ref_judge_head(const attention_case *c, int64_t head, const ref_difference *difference,
                           const double *want, double kappa, double rounding, double *ratio,
                           bool *trivial)
{
    int64_t rows = c->shape.tokens, cols = c->shape.value_dim;
    ref_verdict verdict = ref_judge_forward(difference, kappa, 1, rounding, ratio);
    if (!trivial)
        return verdict;
    double tolerance = ref_threshold_get(REF_FORWARD)->pass * kappa * rounding;
    *trivial = verdict != REF_FAIL && verdict != REF_SKIPPED && rows > 1 &&
               c->shape.key_tokens > 1 &&
               (!ref_discriminates(rows, cols, want, tolerance) ||
                !mean_fails(c, head, want, kappa, rounding));
    return verdict;
}
