/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims/direct.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "common/report.h"

int direct_forward(const claim_run *run, const atn_attention_desc *desc, int64_t n, int64_t d,
                   int64_t dv, const double *q, const double *k, const double *v, double *y)
{
    atn_attention_shape shape = {.batch = 1, .heads = 1, .tokens = n, .dim = d, .value_dim = dv};
    atn_tensor tq = atn_tensor_dense((void *)q, ATN_F64, 1, 1, n, d);
    atn_tensor tk = atn_tensor_dense((void *)k, ATN_F64, 1, 1, n, d);
    atn_tensor tv = atn_tensor_dense((void *)v, ATN_F64, 1, 1, n, dv);
    atn_tensor ty = atn_tensor_dense(y, ATN_F64, 1, 1, n, dv);
    atn_attention_inputs inputs = {.q = &tq, .k = k ? &tk : NULL, .v = &tv};
    atn_plan *plan = NULL;
    atn_status status = atn_attention_plan(run->context, desc, &shape, &plan);
    if (status == ATN_OK)
        status = atn_attention_forward(plan, &inputs, &ty, NULL);
    atn_plan_free(plan);
    if (status >= 0)
        return EXIT_PASS;
    report_error("%s: %s", atn_operator_get(desc->op)->name, atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

int direct_cost(const claim_run *run, const atn_attention_desc *desc,
                const atn_attention_shape *shape, atn_cost *cost)
{
    atn_status status = atn_attention_cost(run->context, desc, shape, cost);
    if (status >= 0)
        return EXIT_PASS;
    report_error("%s: %s", atn_operator_get(desc->op)->name, atn_status_message(status));
    return EXIT_ENVIRONMENT;
}

int direct_flops(const claim_run *run, const atn_attention_desc *desc, int64_t heads, int64_t n,
                 int64_t d, int64_t dv, double *flops)
{
    atn_attention_shape shape = {
        .batch = 1, .heads = heads, .tokens = n, .dim = d, .value_dim = dv};
    atn_cost cost = {0};
    int code = direct_cost(run, desc, &shape, &cost);
    *flops = cost.flops;
    return code;
}

int direct_attention_matrix(const claim_run *run, atn_operator op, int64_t n, int64_t d,
                            const double *q, const double *k, double *matrix)
{
    atn_attention_desc desc = atn_attention_defaults(op, ATN_F64);
    double *identity = must_allocate((size_t)(n * n), sizeof *identity);
    for (int64_t i = 0; i < n; i++)
        identity[i * n + i] = 1;
    int code = direct_forward(run, &desc, n, d, n, q, k, identity, matrix);
    free(identity);
    return code;
}

int direct_invert(const claim_run *run, const atn_inverse_desc *desc, int64_t m, const double *a,
                  double *x, atn_inverse_info *info, atn_trace *trace)
{
    double given[DIRECT_SMALL * DIRECT_SMALL], found[DIRECT_SMALL * DIRECT_SMALL];
    memcpy(given, a, (size_t)(m * m) * sizeof *a);
    atn_tensor ta = atn_tensor_dense(given, ATN_F64, 1, 1, m, m);
    atn_tensor tx = atn_tensor_dense(x ? x : found, ATN_F64, 1, 1, m, m);
    atn_status status = atn_inverse(run->context, desc, &ta, &tx, info, trace);
    if (status >= 0)
        return EXIT_PASS;
    report_error("inverse: %s", atn_last_error(run->context));
    return EXIT_ENVIRONMENT;
}

double *direct_normal(const claim_run *run, const char *purpose, int64_t count)
{
    double *numbers = must_allocate((size_t)count, sizeof *numbers);
    random_stream *r = random_create(run->seed, purpose, 0);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = random_normal(r);
    random_free(r);
    return numbers;
}

/* Element (i, c) of A is at a[i * row + c * col]. */
static void multiply(int64_t rows, int64_t inner, int64_t cols, const double *a, int64_t row,
                     int64_t col, const double *b, double *c)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            long double sum = 0;
            for (int64_t l = 0; l < inner; l++)
                sum += (long double)a[i * row + l * col] * b[l * cols + j];
            c[i * cols + j] = (double)sum;
        }
}

void direct_multiply(int64_t rows, int64_t inner, int64_t cols, const double *a, const double *b,
                     double *c)
{
    multiply(rows, inner, cols, a, inner, 1, b, c);
}

void direct_multiply_transposed(int64_t rows, int64_t inner, int64_t cols, const double *a,
                                const double *b, double *c)
{
    multiply(rows, inner, cols, a, 1, rows, b, c);
}

double direct_norm(int64_t count, int64_t step, const double *x)
{
    long double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (long double)x[i * step] * x[i * step];
    return (double)sqrtl(sum);
}

double direct_worst(double so_far, double next)
{
    return isnan(so_far) || next <= so_far ? so_far : next;
}

double direct_least(double so_far, double next)
{
    return isnan(so_far) || next >= so_far ? so_far : next;
}

const value_range range_empty = {INFINITY, -INFINITY};

void range_widen(value_range *r, double value)
{
    r->least = direct_least(r->least, value);
    r->most = direct_worst(r->most, value);
}

const char *range_text(const value_range *r, int digits, char text[RANGE_TEXT])
{
    char most[RANGE_TEXT / 2];
    snprintf(text, RANGE_TEXT / 2, "%.*g", digits, r->least);
    snprintf(most, sizeof most, "%.*g", digits, r->most);
    if (strcmp(text, most) != 0)
        snprintf(text, RANGE_TEXT, "%.*g to %s", digits, r->least, most);
    return text;
}
