/* SPDX-License-Identifier: BSD-3-Clause */
#include "attention.h"

#include <math.h>
#include <stdlib.h>

#include "operators/evaluate.h"
#include "ref_memory.h"

static atn_status prepare(const ref_attention_problem *given, ref_attention_problem *problem)
{
    if (!given || !given->desc)
        return ATN_ERR_NULL;
    *problem = *given;
    atn_attention_shape *s = &problem->shape;
    if (s->key_tokens == 0)
        s->key_tokens = s->tokens;
    if (s->batch < 0 || s->heads < 0 || s->tokens < 0 || s->dim < 0 || s->value_dim < 0 ||
        s->key_tokens < 0)
        return ATN_ERR_SHAPE;
    bool empty = s->batch == 0 || s->heads == 0 || s->tokens == 0;
    if (!empty && (!given->q || !given->v))
        return ATN_ERR_NULL;
    if (!given->k && s->key_tokens != s->tokens)
        return ATN_ERR_SHAPE;
    /* with K = Q one mask serves both */
    if (!given->k && !problem->query_mask)
        problem->query_mask = problem->key_mask;
    if (!given->k && !problem->key_mask)
        problem->key_mask = problem->query_mask;
    return ATN_OK;
}

/* Padded queries have rows of 0; everything else must be finite. */
static atn_status inspect(int64_t count, const double *out, atn_status status)
{
    for (int64_t i = 0; status == ATN_OK && i < count; i++)
        if (!(fabs(out[i]) < INFINITY))
            status = ATN_NONFINITE;
    return status;
}

static int64_t size_of(const atn_attention_shape *s)
{
    return s->batch * s->heads * s->tokens * s->value_dim;
}

atn_status ref_attention(const ref_attention_problem *given, double *out)
{
    ref_attention_problem problem;
    atn_status status = prepare(given, &problem);
    if (status != ATN_OK)
        return status;
    return inspect(size_of(&problem.shape), out, ref_evaluate_real(&problem, NULL, out));
}

atn_status ref_attention_derivative(const ref_attention_problem *given,
                                    const ref_attention_arrays *direction, double *dout)
{
    ref_attention_problem problem;
    atn_status status = prepare(given, &problem);
    if (status != ATN_OK)
        return status;
    return inspect(size_of(&problem.shape), dout, ref_evaluate_complex(&problem, direction, dout));
}

int64_t ref_attention_bottlenecks(const ref_attention_problem *given, double *a, double *alpha)
{
    ref_attention_problem problem;
    atn_status status = prepare(given, &problem);
    return status != ATN_OK ? status : ref_evaluate_bottlenecks_real(&problem, a, alpha);
}

/* The derivatives by each of `count` numbers: *slot of the direction is each unit vector in
 * turn. */
static atn_status differentiate(const ref_attention_problem *problem, const double *weights,
                                ref_attention_arrays *direction, double **slot, int64_t count,
                                double *dout, double *gradient)
{
    double *unit = ref_take((size_t)(count > 0 ? count : 0), sizeof *unit);
    atn_status status = unit ? ATN_OK : ATN_ERR_MEMORY;
    *slot = unit;
    for (int64_t i = 0; status >= 0 && i < count; i++) {
        unit[i] = 1;
        atn_status one = ref_attention_derivative(problem, direction, dout);
        unit[i] = 0;
        long double sum = 0;
        for (int64_t j = 0; one >= 0 && j < size_of(&problem->shape); j++)
            sum += (long double)weights[j] * (long double)dout[j];
        gradient[i] = (double)sum;
        status = one < 0 || one > status ? one : status;
    }
    *slot = NULL;
    free(unit);
    return status;
}

static atn_status worse(atn_status a, atn_status b)
{
    return a < 0 || (b >= 0 && a > b) ? a : b;
}

atn_status ref_attention_gradient(const ref_attention_problem *given, const double *weights,
                                  const ref_attention_arrays *gradient)
{
    ref_attention_problem problem;
    ref_attention_arrays direction = {0};
    atn_status status = prepare(given, &problem);
    if (status != ATN_OK)
        return status;
    const atn_attention_shape *s = &problem.shape;
    int64_t heads = s->batch * s->heads, size = size_of(s);
    double *dout = ref_take((size_t)(size > 0 ? size : 0), sizeof *dout);
    if (!dout)
        return ATN_ERR_MEMORY;
    double *const wanted[] = {gradient->q, gradient->k, gradient->v};
    double **const slots[] = {&direction.q, &direction.k, &direction.v};
    const int64_t counts[] = {s->tokens * s->dim, s->key_tokens * s->dim,
                              s->key_tokens * s->value_dim};
    for (int i = 0; i < 3; i++)
        if (wanted[i])
            status = worse(status, differentiate(&problem, weights, &direction, slots[i],
                                                 heads * counts[i], dout, wanted[i]));
    atn_attention_desc desc = *problem.desc;
    for (int p = 0; p < ATN_PARAMETER_COUNT; p++) {
        const atn_tensor *t = atn_attention_parameter(&desc, (atn_parameter)p);
        if (gradient->parameters[p])
            status = worse(
                status, differentiate(&problem, weights, &direction, &direction.parameters[p],
                                      t->heads * t->rows * t->cols, dout, gradient->parameters[p]));
    }
    free(dout);
    return status;
}
