/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs an operator's reference over all heads of a problem. */
#include "evaluate.h"

#include "problem.h"

/* The complex step: its square is far below the last bit of anything. */
#define STEP 1e-200L

#ifdef NUM_COMPLEX
#define NUM_RESULT(y) (num_slope(y) / STEP)
#else
#define NUM_RESULT(y) num_value(y)
#endif

static NUM(ref_operator) *const operators[ATN_OPERATOR_COUNT] = {
    [ATN_SOFT] = NUM(ref_soft),
    [ATN_SOFTPP] = NUM(ref_soft),
    [ATN_GAUSSIAN] = NUM(ref_gaussian_attention),
    [ATN_SIMA] = NUM(ref_sima),
    [ATN_XNORM] = NUM(ref_xnorm),
    [ATN_PERFORMER] = NUM(ref_performer),
    [ATN_RFF] = NUM(ref_rff),
    [ATN_XCA] = NUM(ref_xca),
    [ATN_EFFICIENT] = NUM(ref_efficient),
    [ATN_ELU] = NUM(ref_elu),
    [ATN_COSFORMER] = NUM(ref_cosformer),
    [ATN_SOFTMAX] = NUM(ref_softmax_attention),
    [ATN_LINFORMER] = NUM(ref_linformer),
    [ATN_NYSTROMFORMER] = NUM(ref_nystromformer),
    [ATN_LSH] = NUM(ref_lsh),
};

ref_head NUM(ref_head_of)(const problem *p, int64_t batch, int64_t head)
{
    const atn_attention_shape *s = &p->shape;
    int64_t index = batch * s->heads + head;
    return (ref_head){
        .all = p,
        .desc = p->desc,
        .batch = batch,
        .head = head,
        .n = s->tokens,
        .n_k = s->key_tokens,
        .d = s->dim,
        .dv = s->value_dim,
        .q = p->q + index * s->tokens * s->dim,
        .k = p->k + index * s->key_tokens * s->dim,
        .v = p->v + index * s->key_tokens * s->value_dim,
        .query_there = p->query_mask ? p->query_mask + batch * s->tokens : NULL,
        .key_there = p->key_mask ? p->key_mask + batch * s->key_tokens : NULL,
    };
}

const num *NUM(ref_parameter)(const ref_head *h, atn_parameter parameter)
{
    atn_attention_desc desc = *h->desc;
    const atn_tensor *t = atn_attention_parameter(&desc, parameter);
    const num *values = h->all->parameters[parameter];
    return values ? values + (t->heads == 1 ? 0 : h->head) * t->rows * t->cols : NULL;
}

const double *NUM(ref_constant)(const ref_head *h, const atn_tensor *tensor)
{
    int64_t index = tensor->heads == 1 ? 0 : h->head;
    return (const double *)tensor->data + index * tensor->rows * tensor->cols;
}

long double NUM(ref_logit_scale)(const ref_head *h)
{
    double given = h->desc->logit_scale;
    return given != 0 ? (long double)given : 1 / sqrtl((long double)h->d);
}

long double NUM(ref_kernel_scale)(const ref_head *h)
{
    const atn_attention_desc *desc = h->desc;
    long double width = desc->scale == ATN_SCALE_EMBED ? (long double)(h->d * h->all->shape.heads)
                                                       : (long double)h->d;
    return desc->scale == ATN_SCALE_VALUE ? (long double)desc->scale_value : 1 / (2 * sqrtl(width));
}

num NUM(ref_dot)(int64_t d, const num *x, const num *y)
{
    num sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += x[c] * y[c];
    return sum;
}

/* f64 numbers, each with its derivative where there is a direction; null: nothing given. */
static num *load(int64_t count, const double *values, const double *direction, bool *failed)
{
    if (!values)
        return NULL;
    num *x = ref_zeros(count);
    *failed |= !x;
    for (int64_t i = 0; x && i < count; i++)
        x[i] = num_with_slope(values[i], direction ? direction[i] * STEP : 0);
    return x;
}

/* Y, or its derivative. */
static void unload(int64_t count, const num *y, double *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)NUM_RESULT(y[i]);
}

static atn_status all_heads(const problem *p, num *out)
{
    const atn_attention_shape *s = &p->shape;
    bool known = (unsigned)p->desc->op < ATN_OPERATOR_COUNT && operators[p->desc->op];
    atn_status worst = known ? ATN_OK : ATN_ERR_VALUE;
    bool empty = s->tokens == 0 || s->value_dim == 0;
    for (int64_t i = 0; !empty && worst >= 0 && i < s->batch * s->heads; i++) {
        ref_head h = NUM(ref_head_of)(p, i / s->heads, i % s->heads);
        atn_status status = operators[p->desc->op](&h, out + i * s->tokens * s->value_dim);
        worst = status < 0 || status > worst ? status : worst;
    }
    return worst;
}

atn_status NUM(ref_evaluate)(const ref_attention_problem *given,
                             const ref_attention_arrays *direction, double *out)
{
    static const ref_attention_arrays none = {0};
    const ref_attention_arrays *e = direction ? direction : &none;
    const atn_attention_shape *s = &given->shape;
    int64_t heads = s->batch * s->heads, size = heads * s->tokens * s->value_dim;
    int64_t queries = heads * s->tokens * s->dim, keys = heads * s->key_tokens;
    atn_attention_desc desc = *given->desc;
    bool failed = false;
    num *q = load(queries, given->q, e->q, &failed);
    num *k = load(keys * s->dim, given->k, e->k, &failed);
    num *v = load(keys * s->value_dim, given->v, e->v, &failed);
    num *y = ref_zeros(size), *parameters[ATN_PARAMETER_COUNT];
    problem p = {.desc = given->desc,
                 .shape = *s,
                 .q = q,
                 .k = k ? k : q,
                 .v = v,
                 .query_mask = given->query_mask,
                 .key_mask = given->key_mask};
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++) {
        const atn_tensor *t = atn_attention_parameter(&desc, (atn_parameter)i);
        p.parameters[i] = parameters[i] =
            load(t->heads * t->rows * t->cols, t->data, e->parameters[i], &failed);
    }
    atn_status status = failed || !y ? ATN_ERR_MEMORY : all_heads(&p, y);
    if (status >= 0)
        unload(size, y, out);
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
        free(parameters[i]);
    free(q), free(k), free(v), free(y);
    return status;
}
