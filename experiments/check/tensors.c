/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong reads of an operator's own tensors: projections, and factors of heads. */
#include <math.h>
#include <string.h>

#include "check/hypotheses.h"

/* The change of a tensor. */
typedef enum {
    WITHOUT_LAST_ROW,
    WITHOUT_HALF_OF_ROWS,
    WITHOUT_LAST_COLUMN,
    WITHOUT_HALF_OF_COLUMNS,
    OVER_ROWS,          /* divided by their number */
    TRANSPOSED,         /* its memory read as cols x rows */
    EXPONENTIAL,        /* exp of every number */
    OVER_ROOT_OF_WIDTH, /* divided by sqrt(d) */
    OVER_ROOT_OF_TOKENS /* and by sqrt(n) */
} tensor_reading;

const char *const tensor_texts[] = {
    "the last feature left out",
    "the second half of the features left out",
    "the projection read as d x M",
    "the last column of E and F left out",
    "the second half of the columns of E and F left out",
    "E and F divided by the number of tokens",
    "E and F read as r x n",
    "E read as r x n",
    "F read as r x n",
    "tau: exp of it",
    "gamma: exp of it",
    "divided by sqrt(d), a scale that the operator has not",
    "divided by sqrt(n), a scale that the operator has not",
    NULL,
};

static const struct {
    const char *names[2]; /* of the changed parameters; the second may be null */
    tensor_reading how;
} readings[] = {
    {{"projection"}, WITHOUT_LAST_ROW},
    {{"projection"}, WITHOUT_HALF_OF_ROWS},
    {{"projection"}, TRANSPOSED},
    {{"e", "f"}, WITHOUT_LAST_COLUMN},
    {{"e", "f"}, WITHOUT_HALF_OF_COLUMNS},
    {{"e", "f"}, OVER_ROWS},
    {{"e", "f"}, TRANSPOSED},
    {{"e"}, TRANSPOSED},
    {{"f"}, TRANSPOSED},
    {{"temperature"}, EXPONENTIAL},
    {{"gamma"}, EXPONENTIAL},
    {{"temperature"}, OVER_ROOT_OF_WIDTH},
    {{"temperature"}, OVER_ROOT_OF_TOKENS},
};
_Static_assert(sizeof readings / sizeof *readings == TENSORS_READ, "hypotheses.h says how many");

static atn_tensor *tensor_of(trial *t, const char *name)
{
    atn_attention_desc *desc = &t->s.c.reference;
    for (const parameter *p = parameters; p->name && name; p++)
        if (p->kind == PARAMETER_TENSOR && parameter_is_of(p, desc->op) &&
            strcmp(p->name, name) == 0)
            return (atn_tensor *)((char *)desc + p->offset);
    return NULL;
}

/* Copies the first rows and columns of a tensor. */
static void keep(trial *t, int64_t rows, int64_t cols, atn_tensor *tensor)
{
    double *to = trial_own(t, tensor->heads * rows * cols);
    const double *from = tensor->data;
    for (int64_t i = 0; i < tensor->heads * rows; i++)
        memcpy(to + i * cols, from + (i / rows * tensor->rows + i % rows) * tensor->cols,
               (size_t)cols * sizeof *to);
    *tensor = atn_tensor_dense(to, ATN_F64, 1, tensor->heads, rows, cols);
}

static double changed(tensor_reading how, const atn_tensor *tensor, const atn_attention_shape *s,
                      int64_t i)
{
    int64_t rows = tensor->rows, cols = tensor->cols, size = rows * cols, at = i % size;
    const double *x = (const double *)tensor->data + (i - at);
    return how == OVER_ROWS             ? x[at] / (double)rows
           : how == TRANSPOSED          ? x[at % cols * rows + at / cols]
           : how == EXPONENTIAL         ? exp(x[at])
           : how == OVER_ROOT_OF_WIDTH  ? x[at] / sqrt((double)s->dim)
           : how == OVER_ROOT_OF_TOKENS ? x[at] / sqrt((double)s->tokens)
                                        : x[at];
}

/* Changes a tensor; false: it is not given, or nothing would be left of it. */
static bool change_tensor(trial *t, tensor_reading how, atn_tensor *tensor)
{
    int64_t rows = tensor->rows, cols = tensor->cols;
    if (!tensor->data)
        return false;
    if (how > WITHOUT_HALF_OF_COLUMNS) {
        double *to = trial_own(t, tensor->heads * rows * cols);
        for (int64_t i = 0; i < tensor->heads * rows * cols; i++)
            to[i] = changed(how, tensor, &t->s.c.shape, i);
        tensor->data = to;
        return true;
    }
    rows -= how == WITHOUT_LAST_ROW ? 1 : how == WITHOUT_HALF_OF_ROWS ? (rows + 1) / 2 : 0;
    cols -= how == WITHOUT_LAST_COLUMN ? 1 : how == WITHOUT_HALF_OF_COLUMNS ? (cols + 1) / 2 : 0;
    if (rows < 1 || cols < 1)
        return false;
    keep(t, rows, cols, tensor);
    return true;
}

bool read_tensors(trial *t, int value)
{
    bool found = false;
    if (t->of >= RESULT_PARAMETERS)
        return false;
    for (int i = 0; i < 2; i++) {
        atn_tensor *tensor = tensor_of(t, readings[value].names[i]);
        found |= tensor && change_tensor(t, readings[value].how, tensor);
    }
    return found;
}
