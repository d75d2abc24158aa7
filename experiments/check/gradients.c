/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong gradients: another result, a part of the gradient, or the gradient of another dY. */
#include <stddef.h>

#include "check/hypotheses.h"
const char *const in_place_texts[] = {
    "the output in its place", "the gradient of tokens in its place",
    "the gradient of keys in its place", "the gradient of values in its place", NULL};

/* Computes another result of the same shape. */
bool set_result(trial *t, int value)
{
    const attention_case *c = &t->s.judged;
    result_kind of = (result_kind)value;
    if (of == t->of || t->of != t->kind || t->kind >= RESULT_PARAMETERS || !result_exists(c, of) ||
        trial_has_landmarks(t))
        return false;
    t->of = of;
    return result_rows(c, of) == result_rows(c, t->kind) &&
           result_cols(c, of) == result_cols(c, t->kind);
}

/* W dY is the output with dY as values; they must have the same rows and columns. */
bool leave_untransposed(trial *t, int value)
{
    attention_case *c = &t->s.c;
    bool fits = t->kind == RESULT_VALUES && t->of == t->kind &&
                c->shape.tokens == c->shape.key_tokens && !trial_has_landmarks(t);
    c->v = t->s.grad_output;
    t->of = RESULT_OUTPUT;
    return fits;
}

const char *const role_texts[] = {"the part of Q as queries alone: that of K = Q is missing",
                                  "the part of K = Q alone: that of Q is missing", NULL};

bool keep_role(trial *t, int value)
{
    unsigned can = atn_operator_get(t->s.c.reference.op)->capabilities;
    if (t->s.c.k || t->of != RESULT_TOKENS || !(can & ATN_CAN_CROSS))
        return false;
    trial_separate_keys(t);
    t->of = value ? RESULT_KEYS : RESULT_TOKENS;
    return true;
}

const char *const projection_texts[] = {"E's sum alone: that of F = E is missing",
                                        "the sum of F = E alone: E's is missing", NULL};

bool keep_projection(trial *t, int value)
{
    atn_linformer_options *o = &t->s.c.reference.linformer;
    if (o->f.data || t->of != parameter_result(ATN_PARAMETER_E))
        return false;
    o->f = o->e;
    t->of = parameter_result(value ? ATN_PARAMETER_F : ATN_PARAMETER_E);
    return true;
}

const char *const part_texts[] = {"inverse detached: no gradient through A+",
                                  "landmarks detached: no gradient through L",
                                  "K(L, Q) detached: K(Q, L)'s gradient alone",
                                  "K(Q, L) detached: K(L, Q)'s gradient alone", NULL};

bool keep_parts(trial *t, int value)
{
    if (t->of != RESULT_TOKENS || trial_has_landmarks(t) || t->kept || t->missing)
        return false;
    if (value < 2)
        t->kept = value ? PART_QUERIES | PART_KEYS : PART_ALL;
    else
        t->missing = (value == 2 ? PART_KEYS : PART_QUERIES) | PART_LANDMARKS;
    return true;
}

const char *const grad_output_texts[] = {"dY transposed: read as width x tokens",
                                         "dY read as batch x tokens x heads x width",
                                         "dY not used: ones in its place", NULL};

bool change_grad_output(trial *t, int value)
{
    const atn_attention_shape *s = &t->s.c.shape;
    int64_t B = s->batch, H = s->heads, N = s->tokens, D = s->value_dim, at = 0;
    if (trial_has_landmarks(t))
        return false;
    const double *from = t->s.grad_output;
    double *to = t->s.grad_output = trial_own(t, B * H * N * D);
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t i = 0; i < N; i++)
                for (int64_t c = 0; c < D; c++, at++)
                    to[at] = value == 0   ? from[((b * H + h) * D + c) * N + i]
                             : value == 1 ? from[((b * N + i) * H + h) * D + c]
                                          : 1;
    return true;
}

const char *const summed_texts[] = {"the sum over the batch: of entry 0 alone",
                                    "the sum over the batch: of the last entry alone",
                                    "the sum over the batch: without entry 0",
                                    "the sum over the batch: without the last entry",
                                    "the sum over heads: of head 0 alone",
                                    "the sum over heads: of the last head alone",
                                    NULL};

/* A parameter's gradient from only some of the batch entries or heads that share it: dY of the
 * others is 0. */
bool sum_some(trial *t, int value)
{
    const atn_attention_shape *s = &t->s.c.shape;
    int64_t size = s->tokens * s->value_dim, count = s->batch * s->heads;
    bool of_heads = value >= 4, last = value % 2 == 1, alone = value < 2 || of_heads;
    int64_t summed = of_heads ? s->heads : s->batch;
    if (t->kind < RESULT_PARAMETERS || summed < 2 ||
        (of_heads && result_heads(&t->s.c, t->kind) > 1))
        return false;
    double *dy = t->s.grad_output = trial_copy(t, t->s.grad_output, count * size);
    for (int64_t i = 0; i < count * size; i++) {
        int64_t at = of_heads ? i / size % s->heads : i / size / s->heads;
        dy[i] *= (at == (last ? summed - 1 : 0)) == alone;
    }
    return true;
}
