/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs an operator's reference over all heads of a problem. */
#include "evaluate.h"

#include "problem.h"
#include "soft.h"

/* The complex step: its square is far below the last bit of any result. */
#define STEP 1e-200L

#ifdef NUM_COMPLEX
#define NUM_RESULT(y) (num_slope(y) / STEP)
#else
#define NUM_RESULT(y) num_value(y)
#endif

/* SOFT++ uses SOFT's function. */
#define HEADS_ROW(name)             NUM(ref_##name),
#define SOFT_ROW(name)              NUM(ref_soft),
#define REF_ROW(code, name, family) family##_ROW(name)
static NUM(ref_operator) *const operators[] = {OPERATOR_LIST(REF_ROW)};

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
        .query_mask = p->query_mask ? p->query_mask + batch * s->tokens : NULL,
        .key_mask = p->key_mask ? p->key_mask + batch * s->key_tokens : NULL,
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

/* Numbers from f64, with derivatives if there is a direction; null: not given. */
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

/* A problem over num, with its arrays. */
typedef struct {
    problem p;
    num *q, *k, *v, *parameters[ATN_PARAMETER_COUNT];
} loaded;

static atn_status load_problem(const ref_attention_problem *given, const ref_attention_arrays *e,
                               loaded *l)
{
    const atn_attention_shape *s = &given->shape;
    int64_t heads = s->batch * s->heads, keys = heads * s->key_tokens;
    atn_attention_desc desc = *given->desc;
    bool failed = false;
    l->q = load(heads * s->tokens * s->dim, given->q, e->q, &failed);
    l->k = load(keys * s->dim, given->k, e->k, &failed);
    l->v = load(keys * s->value_dim, given->v, e->v, &failed);
    l->p = (problem){.desc = given->desc,
                     .shape = *s,
                     .q = l->q,
                     .k = l->k ? l->k : l->q,
                     .v = l->v,
                     .query_mask = given->query_mask,
                     .key_mask = given->key_mask};
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++) {
        const atn_tensor *t = atn_attention_parameter(&desc, (atn_parameter)i);
        l->p.parameters[i] = l->parameters[i] =
            load(t->heads * t->rows * t->cols, t->data, e->parameters[i], &failed);
    }
    return failed ? ATN_ERR_MEMORY : ATN_OK;
}

static void unload_problem(loaded *l)
{
    for (int i = 0; i < ATN_PARAMETER_COUNT; i++)
        free(l->parameters[i]);
    free(l->q), free(l->k), free(l->v);
}

atn_status NUM(ref_evaluate)(const ref_attention_problem *given,
                             const ref_attention_arrays *direction, double *out)
{
    static const ref_attention_arrays none = {0};
    const atn_attention_shape *s = &given->shape;
    int64_t size = s->batch * s->heads * s->tokens * s->value_dim;
    loaded l;
    atn_status status = load_problem(given, direction ? direction : &none, &l);
    num *y = ref_zeros(size);
    if (!y)
        status = ATN_ERR_MEMORY;
    if (status == ATN_OK)
        status = all_heads(&l.p, y);
    if (status >= 0)
        unload(size, y, out);
    unload_problem(&l);
    free(y);
    return status;
}

static int64_t bottleneck_size(const problem *p)
{
    ref_head first = NUM(ref_head_of)(p, 0, 0);
    switch (p->desc->op) {
    case ATN_SOFT:
    case ATN_SOFTPP:
        return NUM(ref_landmark_count)(&first);
    case ATN_NYSTROMFORMER:
        return p->desc->nystromformer.landmarks;
    default:
        return 0;
    }
}

int64_t NUM(ref_evaluate_bottlenecks)(const ref_attention_problem *given, double *a, double *alpha)
{
    static const ref_attention_arrays none = {0};
    int64_t heads = given->shape.batch * given->shape.heads;
    loaded l;
    atn_status status = load_problem(given, &none, &l);
    int64_t m = status == ATN_OK ? bottleneck_size(&l.p) : 0;
    num *matrices = ref_zeros(heads * m * m), *starts = ref_zeros(heads);
    if (!matrices || !starts)
        status = ATN_ERR_MEMORY;
    if (status == ATN_OK && a && m > 0)
        status = given->desc->op == ATN_NYSTROMFORMER
                     ? NUM(ref_nystrom_bottlenecks)(&l.p, m, matrices)
                     : NUM(ref_soft_bottlenecks)(&l.p, m, matrices, starts);
    for (int64_t i = 0; status == ATN_OK && a && i < heads * m * m; i++)
        a[i] = (double)num_value(matrices[i]);
    for (int64_t i = 0; status == ATN_OK && alpha && i < heads; i++)
        alpha[i] = (double)num_value(starts[i]);
    unload_problem(&l);
    free(matrices), free(starts);
    return status < 0 ? status : m;
}
