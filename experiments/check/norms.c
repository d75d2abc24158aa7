/* SPDX-License-Identifier: BSD-3-Clause */
/* Q and K divided by other norms than they should be. */
#include <math.h>
#include <stdlib.h>

#include "check/hypotheses.h"
#include "common/report.h"
/* What a line's numbers are divided by. */
typedef enum { NORM_SUM, NORM_SQUARES, NORM_LARGEST } norm_kind;

static void add_to_norm(norm_kind kind, double x, double *norm)
{
    if (kind == NORM_LARGEST)
        *norm = fmax(*norm, fabs(x));
    else
        *norm += kind == NORM_SUM ? fabs(x) : x * x;
}

/* The norms of x (rows x d of every head): of columns, of rows, or of all. */
typedef enum { LINES_COLUMNS, LINES_ROWS, LINES_ALL } line_kind;

static double *norms_of(trial *t, const double *x, int64_t rows, line_kind lines, norm_kind kind)
{
    const atn_attention_shape *s = &t->s.c.shape;
    int64_t d = s->dim, heads = s->batch * s->heads, size = rows * d;
    double *sums = must_allocate((size_t)(heads * (rows + d)), sizeof *sums);
    double *norms = trial_own(t, heads * size);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < heads * size; i++) {
            int64_t line = lines == LINES_ROWS ? i / d % rows : lines == LINES_COLUMNS ? i % d : 0;
            double *sum = &sums[i / size * (rows + d) + line];
            if (pass == 0)
                add_to_norm(kind, x[i], sum);
            else
                norms[i] = *sum;
        }
    free(sums);
    return norms;
}

static double *divided(trial *t, const double *x, int64_t count, const double *norms)
{
    double *y = trial_copy(t, x, count);
    for (int64_t i = 0; i < count; i++)
        y[i] = norms[i] > 0 ? y[i] / norms[i] : 0;
    return y;
}

const char *const sima_norm_texts[] = {"norms over channels, not over tokens",
                                       "K not normalised",
                                       "Q not normalised",
                                       "l2 norms without the square root",
                                       "K normalised over channels, not over tokens",
                                       "Q normalised over channels, not over tokens",
                                       "the maximum (amax) in the place of the norm's sum",
                                       "one norm for the whole matrix",
                                       NULL};

/* What Q and K of SimA are divided by in the place of the l1 norms of their columns. */
static const struct {
    bool of_q, of_k; /* whether it is changed; the other has its right norm */
    bool none;
    line_kind lines;
    norm_kind kind;
} sima_norms[SIMA_NORMS] = {
    {true, true, false, LINES_ROWS, NORM_SUM},
    {false, true, true, LINES_ROWS, NORM_SUM},
    {true, false, true, LINES_ROWS, NORM_SUM},
    {true, true, false, LINES_COLUMNS, NORM_SQUARES},
    {false, true, false, LINES_ROWS, NORM_SUM},
    {true, false, false, LINES_ROWS, NORM_SUM},
    {true, true, false, LINES_COLUMNS, NORM_LARGEST},
    {true, true, false, LINES_ALL, NORM_SUM},
};

bool set_sima(trial *t, int value)
{
    attention_case *c = &t->s.c;
    atn_sima_options *o = &c->reference.sima;
    if (o->norm != ATN_SIMA_L1)
        return false;
    if (t->kind == RESULT_TOKENS || t->kind == RESULT_KEYS) /* would go through the norms */
        return false;
    trial_separate_keys(t);
    o->norm = ATN_SIMA_NONE;
    double **const inputs[] = {&c->q, &c->k};
    const int64_t rows[] = {c->shape.tokens, c->shape.key_tokens};
    for (int i = 0; i < 2; i++) {
        bool changed = i ? sima_norms[value].of_k : sima_norms[value].of_q;
        int64_t count = c->shape.batch * c->shape.heads * rows[i] * c->shape.dim;
        line_kind lines = changed ? sima_norms[value].lines : LINES_COLUMNS;
        norm_kind kind = changed ? sima_norms[value].kind : NORM_SUM;
        if (!changed || !sima_norms[value].none)
            *inputs[i] =
                divided(t, *inputs[i], count, norms_of(t, *inputs[i], rows[i], lines, kind));
    }
    return true;
}

/* Q^ (V^T K^): the state K^T V transposed. */
bool transpose_state(trial *t, int value)
{
    attention_case *c = &t->s.c;
    int norms = 3;
    if (c->shape.dim != c->shape.value_dim || t->kind != RESULT_OUTPUT || !set_sima(t, norms))
        return false;
    c->q = t->s.judged.q, c->k = t->s.judged.k ? t->s.judged.k : t->s.judged.q;
    const int64_t rows[] = {c->shape.tokens, c->shape.key_tokens};
    double **const inputs[] = {&c->q, &c->k};
    for (int i = 0; i < 2; i++)
        *inputs[i] =
            divided(t, *inputs[i], c->shape.batch * c->shape.heads * rows[i] * c->shape.dim,
                    norms_of(t, *inputs[i], rows[i], LINES_COLUMNS, NORM_SUM));
    double *kept = c->k;
    c->k = c->v;
    c->v = kept;
    return true;
}

/* The gradient by what is normalised, without what goes through the norm, or as if all were
 * positive. */
static void divide_by_norms(const trial *t, const double *from, double *to, bool derivative)
{
    const attention_case *c = &t->s.judged;
    bool keys = t->kind == RESULT_KEYS;
    const double *x = keys ? c->k : c->q;
    int64_t rows = result_rows(c, t->kind), d = c->shape.dim, heads = result_heads(c, t->kind);
    for (int64_t line = 0; line < heads * d; line++) {
        int64_t at = line / d * rows * d + line % d;
        double norm = 0, along = 0;
        for (int64_t i = 0; i < rows; i++)
            norm += fabs(x[at + i * d]);
        for (int64_t i = 0; i < rows; i++)
            along += from[at + i * d] * x[at + i * d] / norm;
        for (int64_t i = 0; i < rows; i++)
            to[at + i * d] = (from[at + i * d] - (derivative ? along : 0)) / norm;
    }
}

static void detach_norms(const trial *t, const double *from, double *to)
{
    divide_by_norms(t, from, to, false);
}

static void forget_sign(const trial *t, const double *from, double *to)
{
    divide_by_norms(t, from, to, true);
}

const char *const sima_gradient_texts[] = {"norms detached: no gradient through them",
                                           "sign(q) missing in the norm's derivative", NULL};

bool set_sima_gradient(trial *t, int value)
{
    attention_case *c = &t->s.c;
    result_kind kind = t->kind;
    if ((kind != RESULT_TOKENS && kind != RESULT_KEYS) || !c->k || t->of != kind)
        return false;
    t->kind = RESULT_OUTPUT; /* of which the norms are those of values */
    bool set = set_sima(t, 3);
    t->kind = kind;
    if (!set)
        return false;
    const int64_t rows[] = {c->shape.tokens, c->shape.key_tokens};
    double **const inputs[] = {&c->q, &c->k}, *const from[] = {t->s.judged.q, t->s.judged.k};
    for (int i = 0; i < 2; i++)
        *inputs[i] = divided(t, from[i], c->shape.batch * c->shape.heads * rows[i] * c->shape.dim,
                             norms_of(t, from[i], rows[i], LINES_COLUMNS, NORM_SUM));
    return trial_add_move(t, value ? forget_sign : detach_norms);
}
