/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces a trial to one head, or to some of its queries: a mistake in all heads is also in one. */
#include <stddef.h>
#include <string.h>

#include "check/hypotheses.h"

static bool has_landmarks_of(atn_operator op)
{
    return op == ATN_SOFT || op == ATN_SOFTPP;
}

/* Whether a head's result depends on that head alone. */
static bool heads_are_independent(const atn_attention_desc *desc)
{
    static const unsigned plain = 1u << ATN_SAMPLING_POOL | 1u << ATN_SAMPLING_WINDOW |
                                  1u << ATN_SAMPLING_INDICES | 1u << ATN_SAMPLING_FIRST;
    if (has_landmarks_of(desc->op))
        return plain >> desc->sampling.kind & 1 && desc->inverse.scope == ATN_SCOPE_MATRIX;
    return desc->op != ATN_NYSTROMFORMER || desc->nystromformer.inverse != ATN_NYSTROM_ORIGINAL;
}

/* Reduces parameters to one head: tensors with a matrix for each head, buckets, and a scale that
 * depends on the number of heads. */
static void keep_parameters(atn_attention_desc *desc, const atn_attention_shape *shape,
                            int64_t index)
{
    for (const parameter *p = parameters; p->name && desc->op != ATN_LSH; p++) {
        atn_tensor *t = (atn_tensor *)((char *)desc + p->offset);
        if (p->kind != PARAMETER_TENSOR || !parameter_is_of(p, desc->op) || !t->data ||
            t->heads != shape->heads)
            continue;
        t->data = (double *)t->data + index % shape->heads * t->rows * t->cols;
        t->heads = 1;
    }
    if (desc->lsh.buckets)
        desc->lsh.buckets += index * desc->lsh.rounds * shape->tokens;
    desc->scale_value = atn_kernel_scale(desc->scale, desc->scale_value, shape->heads, shape->dim);
    desc->scale = ATN_SCALE_VALUE;
}

static void keep_case(attention_case *c, int64_t index)
{
    const atn_attention_shape s = c->shape;
    int64_t batch = index / s.heads;
    keep_parameters(&c->reference, &s, index);
    c->q += index * s.tokens * s.dim;
    c->k = c->k ? c->k + index * s.key_tokens * s.dim : NULL;
    c->v += index * s.key_tokens * s.value_dim;
    c->query_mask = c->query_mask ? c->query_mask + batch * s.tokens : NULL;
    c->key_mask = c->key_mask ? c->key_mask + batch * s.key_tokens : NULL;
    c->shape.batch = c->shape.heads = 1;
    c->choice.shape.batch = c->choice.shape.heads = 1;
}

bool trial_keep_head(trial *t, int64_t index)
{
    subject *s = &t->s;
    bool of_others = t->own || t->weights || (t->normed && t->norms.stale != STALE_NOT);
    if (t->kind >= RESULT_PARAMETERS || t->of >= RESULT_PARAMETERS || t->move_count || of_others ||
        !heads_are_independent(&s->c.reference))
        return false;
    for (int kind = 0; kind < RESULT_PARAMETERS; kind++)
        if (s->results[kind])
            s->results[kind] += index * result_rows(&s->judged, (result_kind)kind) *
                                result_cols(&s->judged, (result_kind)kind);
    if (s->grad_output)
        s->grad_output += index * s->c.shape.tokens * s->c.shape.value_dim;
    keep_case(&s->c, index);
    keep_case(&s->judged, index);
    return true;
}

bool trial_keep_rows(trial *t, int64_t rows)
{
    attention_case *c = &t->s.c;
    const int64_t n = c->shape.tokens, d = c->shape.dim;
    atn_operator op = c->reference.op;
    if ((op != ATN_GAUSSIAN && op != ATN_SOFTMAX) || c->reference.causal ||
        t->of != RESULT_OUTPUT || t->kind != RESULT_OUTPUT || c->query_mask || c->key_mask)
        return false;
    trial_separate_keys(t);
    double *q = trial_own(t, rows * d);
    for (int64_t i = 0; i < rows; i++)
        memcpy(q + i * d, c->q + i * n / rows * d, (size_t)d * sizeof *q);
    c->q = q;
    c->shape.tokens = c->choice.shape.tokens = t->s.judged.shape.tokens = rows;
    return true;
}
