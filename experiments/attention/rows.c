/* SPDX-License-Identifier: BSD-3-Clause */
#include "attention/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <attnum/attnum.h>
#include <data.h>
#include <linear_algebra.h>

#include "common/report.h"
#include "common/staging.h"

/* A black patch is a zero token, for which XNorm as published is 0/0. 1e-12 is usual in code that
 * normalises. */
static const double SMALLEST_NORM = 1e-12;

enum { LANDMARKS = 49, FEATURES = 110, ROUNDS = 8, CHUNK = 64, CHECKED_VALUES = 8 };

static double *matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

/* ---- The operator and its parameters ---- */

static int find_variant(atn_operator op, const char *name)
{
    const atn_operator_info *info = atn_operator_get(op);
    for (int i = 0; i < info->variant_count; i++)
        if (strcmp(info->variants[i].name, name) == 0)
            return i;
    abort();
}

static int64_t chunk_size(int64_t n)
{
    int64_t chunk = n < CHUNK ? n : CHUNK;
    while (n % chunk != 0)
        chunk--;
    return chunk;
}

static ref_attention_problem problem_of(const token_attention *a, int64_t dv, const double *values)
{
    ref_attention_problem problem = {.desc = &a->parameters.reference,
                                     .shape = a->parameters.shape,
                                     .q = a->tokens,
                                     .k = a->keys,
                                     .v = values};
    problem.shape.value_dim = dv;
    return problem;
}

/* The library and the reference are both given the reference's buckets, so that rounding cannot
 * move a token to another bucket. */
static int give_buckets(token_attention *a)
{
    atn_lsh_options *lsh = &a->parameters.reference.lsh;
    ref_attention_problem problem = problem_of(a, 1, a->tokens);
    int64_t rounds = lsh->rotations.heads, n = a->parameters.shape.tokens;
    a->buckets = must_allocate((size_t)rounds, (size_t)n * sizeof *a->buckets);
    if (ref_lsh_buckets(&problem, a->buckets, NULL) != rounds * n) {
        report_error("lsh: no buckets for %" PRId64 " tokens", n);
        return EXIT_ENVIRONMENT;
    }
    lsh->buckets = a->parameters.desc.lsh.buckets = a->buckets;
    lsh->rounds = a->parameters.desc.lsh.rounds = rounds;
    return EXIT_PASS;
}

int token_attention_open(token_attention *a, atn_operator op, const char *variant, int64_t count,
                         int64_t dim, double *tokens, uint64_t seed)
{
    int64_t chunk = chunk_size(count), chunks = count / chunk;
    attention_choice choice = {
        .op = op,
        .variant = find_variant(op, variant),
        .dtype = ATN_F64,
        .shape = {.batch = 1, .heads = 1, .tokens = count, .dim = dim, .value_dim = 1},
        .sampling = ATN_SAMPLING_POOL,
        .seed = seed,
        .bare = true,
        .landmarks = LANDMARKS,
        .features = FEATURES,
        .chunk = chunk,
        .rounds = ROUNDS,
        .buckets = chunks < 2 ? 2 : chunks / 2 * 2};
    *a = (token_attention){.parameters = attention_case_make(&choice), .tokens = tokens};
    a->parameters.desc.xnorm.epsilon = a->parameters.reference.xnorm.epsilon = SMALLEST_NORM;
    return op == ATN_LSH ? give_buckets(a) : EXIT_PASS;
}

int token_attention_describe(token_attention *a, const atn_attention_desc *desc, int64_t count,
                             int64_t dim, double *tokens, double *keys)
{
    *a = (token_attention){.parameters = {.choice = {.op = desc->op,
                                                     .dtype = ATN_F64,
                                                     .features = desc->performer.projection.rows},
                                          .desc = *desc,
                                          .reference = *desc,
                                          .shape = {1, 1, count, dim, 1, count}},
                           .tokens = tokens,
                           .keys = keys};
    return desc->op == ATN_LSH ? give_buckets(a) : EXIT_PASS;
}

void token_attention_free(token_attention *a)
{
    attention_case_free(&a->parameters);
    free(a->buckets);
}

/* ---- Calls of the library ---- */

/* After NOT_CONVERGED and SINGULAR the map can still be drawn and checked. */
static int report_status(const token_attention *a, const atn_context *context, atn_status status)
{
    const char *name = atn_operator_get(a->parameters.choice.op)->name;
    if (status < 0) {
        const char *detail = atn_last_error(context);
        report_error("%s: %s", name, *detail ? detail : atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    if (status == ATN_NONFINITE)
        report_note("%s: the output is not finite", name);
    return status == ATN_NONFINITE ? EXIT_CHECK : EXIT_PASS;
}

static atn_attention_shape shape_of(const token_attention *a, int64_t dv)
{
    atn_attention_shape shape = a->parameters.shape;
    shape.value_dim = dv;
    return shape;
}

static atn_tensor tensor_of(double *data, int64_t rows, int64_t cols)
{
    return data ? atn_tensor_dense(data, ATN_F64, 1, 1, rows, cols) : (atn_tensor){0};
}

int token_attention_forward(const token_attention *a, atn_context *context, int64_t dv,
                            double *values, double *out)
{
    atn_attention_shape shape = shape_of(a, dv);
    atn_tensor q = tensor_of(a->tokens, shape.tokens, shape.dim);
    atn_tensor k = tensor_of(a->keys, shape.tokens, shape.dim);
    atn_tensor v = tensor_of(values, shape.tokens, dv), y = tensor_of(out, shape.tokens, dv);
    atn_attention_inputs inputs = {.q = &q, .k = a->keys ? &k : NULL, .v = &v};
    atn_status status = staged_forward(context, &a->parameters.desc, &shape, &inputs, &y, NULL);
    return report_status(a, context, status);
}

int token_attention_row(const token_attention *a, atn_context *context, int64_t query, double *row)
{
    int64_t n = a->parameters.shape.tokens, d = a->parameters.shape.dim;
    double *memory = matrix(n, 2 * d + 2); /* dQ, dK, V, dY: only dY is set */
    double *values = memory + 2 * n * d, *weights = values + n;
    atn_tensor q = tensor_of(a->tokens, n, d), k = tensor_of(a->keys, n, d);
    atn_tensor v = tensor_of(values, n, 1), dout = tensor_of(weights, n, 1);
    atn_tensor dq = tensor_of(memory, n, d), dk = tensor_of(memory + n * d, n, d);
    atn_tensor dv = tensor_of(row, n, 1);
    weights[query] = 1;
    atn_attention_shape shape = shape_of(a, 1);
    atn_attention_inputs inputs = {.q = &q, .k = a->keys ? &k : NULL, .v = &v};
    atn_gradients gradients = {.q = &dq, .k = a->keys ? &dk : NULL, .v = &dv};
    atn_status status =
        staged_backward(context, &a->parameters.desc, &shape, &inputs, &dout, &gradients, NULL);
    free(memory);
    return report_status(a, context, status);
}

/* ---- The check ---- */

static double norm(int64_t count, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* The condition number of A = K(L, L); 0 for operators without A. */
static double bottleneck_condition(const token_attention *a)
{
    ref_attention_problem problem = problem_of(a, 1, a->tokens);
    atn_operator op = a->parameters.choice.op;
    int64_t m =
        op == ATN_SOFT || op == ATN_SOFTPP ? ref_attention_bottlenecks(&problem, NULL, NULL) : 0;
    if (m <= 0)
        return 0;
    double *kernel = matrix(m, m), condition = INFINITY;
    ref_attention_bottlenecks(&problem, kernel, NULL);
    if (ref_condition(m, m, kernel, &condition, NULL) < 0)
        condition = INFINITY;
    free(kernel);
    return condition;
}

/* Operators in which an output depends on no query but its own: the reference is computed for one
 * query. */
static const bool single_queries[ATN_OPERATOR_COUNT] = {
    [ATN_GAUSSIAN] = true, [ATN_SOFTMAX] = true,   [ATN_LINFORMER] = true, [ATN_PERFORMER] = true,
    [ATN_RFF] = true,      [ATN_EFFICIENT] = true, [ATN_ELU] = true,
};

/* The reference's Y_query and its derivative in a direction: n x d numbers for the tokens and, if
 * there are keys, as many for them. */
static atn_status reference_row(const token_attention *a, int64_t query, const double *values,
                                double *direction, double *want, double *change)
{
    int64_t n = a->parameters.shape.tokens, d = a->parameters.shape.dim, dv = CHECKED_VALUES;
    bool single = single_queries[a->parameters.choice.op];
    double *out = matrix(n, dv), *slope = matrix(n, dv);
    ref_attention_problem problem = problem_of(a, dv, values);
    ref_attention_arrays arrays = {.q = direction, .k = a->keys ? direction + n * d : NULL};
    if (single) {
        problem.shape.tokens = 1;
        problem.shape.key_tokens = n;
        problem.q = a->tokens + query * d;
        problem.k = a->keys ? a->keys : a->tokens;
        arrays.q = direction + query * d;
        arrays.k = a->keys ? direction + n * d : direction;
    }
    atn_status status = ref_attention(&problem, out);
    if (status >= 0)
        status = ref_attention_derivative(&problem, &arrays, slope);
    memcpy(want, out + (single ? 0 : query * dv), (size_t)dv * sizeof *want);
    memcpy(change, slope + (single ? 0 : query * dv), (size_t)dv * sizeof *change);
    free(slope);
    free(out);
    return status;
}

static void judge(int64_t terms, const double *got, const double *want, row_check *check)
{
    ref_difference difference =
        ref_compare_f64(1, CHECKED_VALUES, got, CHECKED_VALUES, want, CHECKED_VALUES);
    double ratio;
    ref_verdict verdict = ref_judge_forward(&difference, check->condition, terms,
                                            atn_dtype_roundoff(ATN_F64), &ratio);
    if (!(difference.relative_frobenius <= check->error))
        check->error = difference.relative_frobenius;
    if (!(ratio <= check->ratio))
        check->ratio = ratio;
    if (check->verdict != REF_FAIL && verdict > check->verdict)
        check->verdict = verdict;
}

/* Sets want and the conditioning: the relative change of Y_query, to first order, under relative
 * changes of size 1 and random sign in the tokens and keys. */
static int find_reference(const token_attention *a, int64_t query, const double *values,
                          uint64_t seed, double want[CHECKED_VALUES], row_check *check)
{
    int64_t count = a->parameters.shape.tokens * a->parameters.shape.dim;
    double *direction = matrix(2, count), change[CHECKED_VALUES];
    for (int64_t i = 0; i < count * (a->keys ? 2 : 1); i++) {
        double x = i < count ? a->tokens[i] : a->keys[i - count];
        direction[i] = data_next(&seed) & 1 ? x : -x;
    }
    atn_status status = reference_row(a, query, values, direction, want, change);
    free(direction);
    double relative = 1 + norm(CHECKED_VALUES, change) / norm(CHECKED_VALUES, want);
    double bottleneck = bottleneck_condition(a);
    check->condition = bottleneck > relative ? bottleneck : relative;
    if (status == ATN_OK)
        return EXIT_PASS;
    report_note("%s: the reference says: %s", atn_operator_get(a->parameters.choice.op)->name,
                atn_status_message(status));
    return EXIT_CHECK;
}

int token_attention_check(const token_attention *a, atn_context *context, int64_t query,
                          const double *row, uint64_t seed, row_check *check)
{
    int64_t n = a->parameters.shape.tokens, dv = CHECKED_VALUES;
    int64_t terms = attention_case_terms(&a->parameters);
    double *values = matrix(n, dv), *out = matrix(n, dv);
    double want[CHECKED_VALUES], by_row[CHECKED_VALUES] = {0};
    data_normal(seed, n * dv, values);
    *check = (row_check){.verdict = REF_PASS};
    for (int64_t i = 0; i < n * dv; i++)
        by_row[i % dv] += row[i / dv] * values[i];
    int code = token_attention_forward(a, context, dv, values, out);
    if (code == EXIT_PASS)
        code = find_reference(a, query, values, seed, want, check);
    if (code == EXIT_PASS) {
        judge(terms, by_row, want, check);
        judge(terms, out + query * dv, want, check);
        code = check->verdict == REF_FAIL ? EXIT_CHECK : EXIT_PASS;
    }
    free(out);
    free(values);
    return code;
}

/* ---- Without an attention matrix ---- */

/* x = a b, rows x inner x cols. */
static void multiply(int64_t rows, int64_t inner, int64_t cols, const double *a, const double *b,
                     double *x)
{
    memset(x, 0, (size_t)(rows * cols) * sizeof *x);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < inner; k++)
            for (int64_t j = 0; j < cols; j++)
                x[i * cols + j] += a[i * inner + k] * b[k * cols + j];
}

/* |M V - Y|_F / |Y|_F, where M V is Y (V^+ V), without forming M. */
static double residual_of(int64_t n, int64_t dv, const double *values, const double *pinv,
                          const double *out)
{
    double *projector = matrix(dv, dv), *back = matrix(n, dv);
    multiply(dv, n, dv, pinv, values, projector);
    multiply(n, dv, dv, out, projector, back);
    double residual = ref_compare_f64(n, dv, back, dv, out, dv).relative_frobenius;
    free(back);
    free(projector);
    return residual;
}

int stand_in_row(int64_t n, int64_t dv, const double *values, const double *out, int64_t query,
                 double *row, stand_in *m)
{
    double *pinv = matrix(dv, n), *sigma = matrix(1, dv), disagreement = NAN;
    int code = EXIT_PASS;
    if (ref_pinv(n, dv, values, -1, pinv, &m->rank, &disagreement) != ATN_OK ||
        ref_singular_values(n, dv, values, sigma, NULL) != ATN_OK || m->rank < 1 ||
        ref_judge(REF_FORWARD, disagreement) == REF_FAIL) {
        report_note("the routes to the pseudo-inverse of V, %" PRId64 "x%" PRId64
                    ", are %.3g rounding errors apart, expected less than %g",
                    n, dv, disagreement, ref_threshold_get(REF_FORWARD)->fail);
        code = EXIT_CHECK;
    } else {
        double u = atn_dtype_roundoff(ATN_F64);
        multiply(1, dv, n, out + query * dv, pinv, row);
        m->residual = residual_of(n, dv, values, pinv, out);
        m->rounding = (double)n * u * sigma[0] / sigma[m->rank - 1];
    }
    free(sigma);
    free(pinv);
    return code;
}

int stand_in_check(const stand_in *m, int64_t dv, bool linear)
{
    bool solvable = linear || m->rank == dv;
    return solvable && ref_judge(REF_FORWARD, m->residual / m->rounding) == REF_FAIL ? EXIT_CHECK
                                                                                     : EXIT_PASS;
}
