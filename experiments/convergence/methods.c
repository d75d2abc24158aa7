/* SPDX-License-Identifier: BSD-3-Clause */
/* How many products of m x m matrices each iteration for the inverse needs to reach 1e-6, in both
 * metrics, as a function of the condition number: for dense spectra, by the closed form (1001
 * eigenvalues stand for a continuum), for matrices with a log-uniform spectrum, and for kernel
 * matrices.
 *
 * A point is one spectrum, or one matrix in every dtype; it gives two rows per method. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <newton.h>

#include "common/experiment.h"
#include "common/random.h"
#include "common/report.h"
#include "convergence/bottleneck.h"
#include "convergence/iterations.h"
#include "convergence/methods.h"
#include "registry.h"

static const double target = 1e-6;

enum {
    LANDMARKS = 49,
    DENSE = 1001,    /* eigenvalues that approximate a continuum */
    MOST_STEPS = 64, /* of order 2: 2^64 is more than kappa^2 / 1e-6 */
    LINES_SHOWN = 400,
};

/* The |A|_1 / lambda_max that is assumed for dense spectra; for a matrix it is computed. */
static const double dense_norm_ratio = 1.2;

/* ---- Columns ---- */

#define ROW(X)                                                                                     \
    X(TEXT, spectrum, "",                                                                          \
      "dense: 1001 eigenvalues, equally spaced in their logarithm, mapped by the closed form, "    \
      "with |A|_1 = 1.2 lambda_max; rotated: a matrix Q diag(l) Q^T, l log-uniform with both "     \
      "ends, Q random orthogonal; otherwise an input, whose bottleneck matrix it is",              \
      on->spectrum)                                                                                \
    X(INTEGER_IF, seed, "", "missing for dense", on->seed >= 0, on->seed)                          \
    X(INTEGER_IF, sample, "", "inputs: the sample", on->sample >= 0, on->sample)                   \
    X(INTEGER, m, "", "eigenvalues", on->m)                                                        \
    X(TEXT, dtype, "", "arithmetic of A and of the iteration; exact for dense",                    \
      on->matrix ? atn_dtype_name(on->matrix->dtype) : "exact")                                    \
    X(REAL, condition, "",                                                                         \
      "lambda_max / lambda_min: as prescribed; for inputs that of A on its numerical range",       \
      on->condition)                                                                               \
    X(REAL, norm_ratio, "", "|A|_1 / lambda_max", on->norm / on->largest)                          \
    X(TEXT, method, "",                                                                            \
      "which iteration; nr-soft without its ridge, so that all invert the same matrix",            \
      atn_inverse_name(c->method))                                                                 \
    X(TEXT, start, "", "what X_0 = alpha A or alpha I is a multiple of",                           \
      c->start == ATN_START_IDENTITY ? "I" : "A")                                                  \
    X(TEXT, interval, "",                                                                          \
      "what alpha, for Chebyshev also d, comes from. norm: |A|_1, with numerator 2 for "           \
      "nr-paper, 1 for nystromformer, 1.8 for the others; exact: [lambda_min, lambda_max]; "       \
      "estimated: [lowest Ritz value of 16 Lanczos steps, |A|_1]",                                 \
      interval_names[c->interval])                                                                 \
    X(TEXT, metric, "", "axa: |A X A - A|_2 / |A|_2; i_ax: |I - A X|_2", metric_names[metric])     \
    X(INTEGER_IF, products, "",                                                                    \
      "products of m x m matrices until the metric is below 1e-6; missing if it never is", known,  \
      products)                                                                                    \
    X(INTEGER_IF, products_predicted, "",                                                          \
      "the same from the closed form on the eigenvalues of the same A, alpha and interval",        \
      predicted >= 0, products_of(c, predicted))                                                   \
    X(INTEGER_IF, steps, "", "the k of that X_k; missing as products", known, k)                   \
    X(REAL_IF, best, "",                                                                           \
      "the smallest value of the metric over all steps: the floor; missing for dense", on->matrix, \
      run->values[metric][best])                                                                   \
    X(INTEGER_IF, best_products, "", "products that took", on->matrix, products_of(c, best))       \
    X(REAL_IF, fewer_than_soft, "",                                                                \
      "products of nr-soft / products, in the same metric; missing if either is",                  \
      products > 0 && published[SOFT] > 0, (double)published[SOFT] / (double)products)             \
    X(REAL_IF, fewer_than_paper, "", "the same for nr-paper",                                      \
      products > 0 && published[PAPER] > 0, (double)published[PAPER] / (double)products)           \
    X(REAL_IF, lambda_low, "", "lower end of the interval used, Chebyshev only", chebyshev,        \
      run->low)                                                                                    \
    X(REAL_IF, lambda_high, "", "upper end", chebyshev, run->high)                                 \
    X(TEXT_IF, stop, "", "why the library stopped; missing for dense", run->stop, run->stop)       \
    X(BOOLEAN, judged, "",                                                                         \
      "whether products must agree with products_predicted to within one step: where m u "         \
      "condition (axa) or m u condition^2 (i_ax) is at most 1e-8, rounding stays two digits "      \
      "below 1e-6; and the closed form comes to 1e-6, to within one step as soon on "              \
      "eigenvalues that rounding has moved by 8 m^2 u lambda_max, up or down",                     \
      judged)
static const column columns[] = {ROW(LIST_COLUMN)};

static const output_spec outputs[] = {
    {"methods", "Products of matrices to reach 1e-6, by iteration and condition number", columns,
     sizeof columns / sizeof *columns},
};

/* ---- The methods ---- */

typedef enum { FROM_NORM, EXACT, ESTIMATED } interval_kind;
static const char *const interval_names[] = {"norm", "exact", "estimated"};

enum { SOFT, PAPER }; /* the first methods, with which the others are compared */

typedef struct {
    atn_inverse_method method;
    atn_start start;
    interval_kind interval;
} method_choice;

#define BOTH_STARTS(method, interval)                                                              \
    {method, ATN_START_MATRIX, interval},                                                          \
    {                                                                                              \
        method, ATN_START_IDENTITY, interval                                                       \
    }

static const method_choice choices[] = {
    [SOFT] = {ATN_INVERSE_NR_SOFT, ATN_START_MATRIX, FROM_NORM},
    [PAPER] = {ATN_INVERSE_NR_PAPER, ATN_START_MATRIX, FROM_NORM},
    BOTH_STARTS(ATN_INVERSE_NEWTON_SCHULZ, EXACT),
    {ATN_INVERSE_NEWTON_SCHULZ, ATN_START_IDENTITY, FROM_NORM},
    BOTH_STARTS(ATN_INVERSE_HYPERPOWER_3, FROM_NORM),
    BOTH_STARTS(ATN_INVERSE_HYPERPOWER_7, FROM_NORM),
    BOTH_STARTS(ATN_INVERSE_HYPERPOWER_9, FROM_NORM),
    BOTH_STARTS(ATN_INVERSE_NYSTROMFORMER, FROM_NORM),
    BOTH_STARTS(ATN_INVERSE_CHEBYSHEV_2, EXACT),
    BOTH_STARTS(ATN_INVERSE_CHEBYSHEV_3, EXACT),
    BOTH_STARTS(ATN_INVERSE_CHEBYSHEV_9, EXACT),
    BOTH_STARTS(ATN_INVERSE_CHEBYSHEV_2, ESTIMATED),
    BOTH_STARTS(ATN_INVERSE_CHEBYSHEV_3, ESTIMATED),
    BOTH_STARTS(ATN_INVERSE_CHEBYSHEV_9, ESTIMATED),
};
enum { CHOICES = sizeof choices / sizeof *choices };

static int64_t products_of(const method_choice *c, int64_t steps)
{
    return iteration_products(&(atn_inverse_desc){.method = c->method, .start = c->start}, steps);
}

/* The matrix or spectrum to invert; for a dense spectrum, matrix is null. */
typedef struct {
    const char *spectrum;
    int64_t seed, sample, m; /* -1: none */
    double condition, norm, smallest, largest;
    const double *lambda;
    bottleneck *matrix;
} method_problem;

static atn_inverse_desc describe_choice(const method_choice *c, const method_problem *on)
{
    atn_inverse_desc desc = atn_inverse_defaults(c->method);
    double low = on->smallest, high = on->largest;
    desc.start = c->start;
    desc.ridge = 0;
    desc.iterations = iteration_steps(c->method, MOST_STEPS);
    if (c->interval != EXACT)
        return desc;
    if (iteration_is_chebyshev(c->method)) {
        desc.interval_low = low;
        desc.interval_high = high;
    } else
        desc.alpha = 2 / (c->start == ATN_START_IDENTITY ? low + high : low * low + high * high);
    return desc;
}

/* ---- Running a method ---- */

static const char *const metric_names[] = {"axa", "i_ax"};

typedef struct {
    int length, predicted_length; /* numbers of entries used */
    double values[METRICS][MOST_STEPS + 1], predicted[METRICS][MOST_STEPS + 1];
    bool steady[METRICS]; /* rounding cannot move the predicted count by more than a step */
    double low, high;
    const char *stop;
} course;

/* The closed form's metrics for these eigenvalues, up to the first step at which both are below the
 * target. Returns the number of entries. */
static int predict(const ref_iteration *iteration, int64_t m, const double *lambda, int steps,
                   double predicted[METRICS][MOST_STEPS + 1])
{
    for (int k = 0; k <= steps; k++) {
        predicted[AXA][k] = ref_iteration_residual(iteration, k, m, lambda);
        predicted[I_AX][k] = ref_iteration_identity_residual(iteration, k, m, lambda);
        if (predicted[AXA][k] < target && predicted[I_AX][k] < target)
            return k + 1;
    }
    return steps + 1;
}

/* Near an eigenvalue where |e_0| is 1, and at the ends of an interval, e_k depends on the last bits
 * of A. Rounding errors of a product are at most m u times the product of |A| and |X|, so at most
 * m^2 u |A| |X| in norm; those of the few products up to X_1 act like changing each eigenvalue by
 * m^2 u |A| per product. A step at most doubles the errors made before it, so the errors of all
 * later steps together are as large as those of the first. */
void methods_find_steady(const ref_iteration *iteration, int64_t m, const double *lambda,
                         double largest, double roundoff, int steps, bool steady[METRICS])
{
    double(*values)[MOST_STEPS + 1] = must_allocate(METRICS, sizeof *values);
    double *moved = must_allocate((size_t)m, sizeof *moved);
    double most = 8 * (double)m * (double)m * roundoff * largest;
    int counts[METRICS];
    int length = predict(iteration, m, lambda, steps, values);
    for (int metric = 0; metric < METRICS; metric++) {
        counts[metric] = iteration_first_below(length, values[metric], target);
        steady[metric] = counts[metric] >= 0;
    }
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int64_t i = 0; i < m; i++)
            moved[i] = lambda[i] + sign * most;
        length = predict(iteration, m, moved, steps, values);
        for (int metric = 0; metric < METRICS; metric++)
            steady[metric] &= iteration_counts_agree(
                counts[metric], iteration_first_below(length, values[metric], target));
    }
    free(moved);
    free(values);
}

/* Runs the library's iteration. alpha and the interval are then those that it reports. Returns an
 * exit code. */
static int measure(const method_problem *on, const method_choice *c, const atn_inverse_desc *desc,
                   atn_context *context, const double *identity, ref_iteration *iteration,
                   course *out)
{
    atn_inverse_info info;
    atn_trace trace = {.capacity = MOST_STEPS + 1,
                       .projector = identity,
                       .values = {[ATN_METRIC_RESIDUAL] = out->values[AXA],
                                  [ATN_METRIC_RANGE_RESIDUAL] = out->values[I_AX]}};
    int code = bottleneck_invert(on->matrix, context, desc, &info, &trace);
    if (code != EXIT_PASS)
        return code;
    out->length = trace.length;
    out->stop = atn_stop_name(info.stop);
    iteration_take(desc, &info, iteration);
    if (info.stop == ATN_STOP_ITERATIONS && info.products != products_of(c, info.iterations)) {
        report_error("%s: %" PRId64 " products in %d steps, expected %" PRId64,
                     atn_inverse_name(c->method), info.products, info.iterations,
                     products_of(c, info.iterations));
        return EXIT_CHECK;
    }
    return EXIT_PASS;
}

static int follow(const method_problem *on, const method_choice *c, atn_context *context,
                  const double *identity, course *out)
{
    atn_inverse_desc desc = describe_choice(c, on);
    ref_iteration iteration = iteration_filter(&desc, on->norm);
    int code = EXIT_PASS;
    *out = (course){0};
    if (on->matrix)
        code = measure(on, c, &desc, context, identity, &iteration, out);
    out->predicted_length = predict(&iteration, on->m, on->lambda, desc.iterations, out->predicted);
    if (on->matrix)
        methods_find_steady(&iteration, on->m, on->lambda, on->largest,
                            atn_dtype_roundoff(on->matrix->dtype), desc.iterations, out->steady);
    else {
        memcpy(out->values, out->predicted, sizeof out->values);
        out->length = out->predicted_length;
    }
    out->low = iteration.low;
    out->high = iteration.high;
    return code;
}

static int least(int length, const double *values)
{
    int best = 0;
    for (int k = 1; k < length; k++)
        if (!(values[best] <= values[k]))
            best = k;
    return best;
}

/* ---- Rows ---- */

/* Whether rounding cannot explain a difference between the matrix and the closed form. A X has
 * rounding errors of m u |A| |X|. X times them is averaged with its transpose, which keeps X
 * symmetric but spreads an error of |X| m u |A| |X| into rows where A is not small. So |I - A X|
 * has a floor of m u kappa^2; A X A, in which that error is multiplied by a column of small A, has
 * one of m u kappa. */
static bool is_judged(const method_problem *on, const course *run, int metric)
{
    if (!on->matrix || !run->steady[metric])
        return false;
    double floor = (double)on->m * atn_dtype_roundoff(on->matrix->dtype) * on->condition;
    return floor * (metric == I_AX ? on->condition : 1) <= target / 100;
}

/* Adds a row. published: the products that nr-soft and nr-paper need in this metric, 0 if they do
 * not reach the target. Returns EXIT_CHECK if the matrix and the closed form disagree. */
static int put_row(table *to, const method_problem *on, const method_choice *c, const course *run,
                   int metric, const int64_t published[2])
{
    int k = iteration_first_below(run->length, run->values[metric], target);
    int predicted = iteration_first_below(run->predicted_length, run->predicted[metric], target);
    int best = least(run->length, run->values[metric]);
    bool judged = is_judged(on, run, metric), known = k >= 0;
    int64_t products = known ? products_of(c, k) : 0;
    bool chebyshev = iteration_is_chebyshev(c->method);
    ROW(LIST_PUT)
    if (!judged || iteration_counts_agree(k, predicted))
        return EXIT_PASS;
    report_error("%s kappa %g %s from %s, %s: %d steps to 1e-6, expected %d to within 1",
                 on->spectrum, on->condition, atn_inverse_name(c->method),
                 c->start == ATN_START_IDENTITY ? "I" : "A", metric_names[metric], k, predicted);
    return EXIT_CHECK;
}

static int put_rows(table *t, const method_problem *on, atn_context *context)
{
    int64_t published[METRICS][2] = {{0}};
    double *identity = must_allocate((size_t)(on->matrix ? on->m * on->m : 1), sizeof *identity);
    course *run = must_allocate(1, sizeof *run);
    int code = EXIT_PASS;
    for (int64_t i = 0; on->matrix && i < on->m; i++)
        identity[i * (on->m + 1)] = 1;
    for (int i = SOFT; i <= PAPER && code == EXIT_PASS; i++) {
        code = follow(on, &choices[i], context, identity, run);
        for (int metric = 0; metric < METRICS; metric++) {
            int k = iteration_first_below(run->length, run->values[metric], target);
            published[metric][i] = k < 0 ? 0 : products_of(&choices[i], k);
        }
    }
    for (int i = 0; i < CHOICES && (code == EXIT_PASS || code == EXIT_CHECK); i++) {
        if (!on->matrix && choices[i].interval == ESTIMATED)
            continue; /* only matrices have an estimated interval */
        code = exit_worst(code, follow(on, &choices[i], context, identity, run));
        for (int metric = 0; metric < METRICS && code != EXIT_ENVIRONMENT; metric++)
            code = exit_worst(code, put_row(t, on, &choices[i], run, metric, published[metric]));
    }
    free(run);
    free(identity);
    return code;
}

/* ---- Points ---- */

static const double kappas[EFFORT_COUNT][9] = {
    [EFFORT_QUICK] = {1e1, 1e3, 1e6},
    [EFFORT_DEFAULT] = {1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8},
    [EFFORT_FULL] = {1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8},
};

static const usual_input quick_inputs[] = {{"smooth", 1}, {0}};
static const usual_input usual_inputs[] = {
    {"photos", 4}, {"trained:soft", 4}, {"smooth", 2}, {"iid", 2}, {0}};
static const usual_input full_inputs[] = {{"photos", 30},   {"trained:soft", 30}, {"smooth", 30},
                                          {"noisy", 30},    {"iid", 30},          {"iid:0.3", 30},
                                          {"clusters", 30}, {"duplicates", 10},   {0}};
static const int64_t last_stage[] = {3, 0};
static const stage_defaults defaults[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {quick_inputs, last_stage},
    [EFFORT_DEFAULT] = {usual_inputs, last_stage},
    [EFFORT_FULL] = {full_inputs, last_stage},
};

/* Points in their order: the dense spectra, one per kappa; the rotated matrices, whose seed changes
 * fastest; the matrices of inputs. */
typedef struct {
    landmark_sweep draws; /* first: see landmark_sweep_open_stages */
    const program_options *s;
    int kappa_count;
} methods_sweep;

static int64_t seeds_of(const methods_sweep *w)
{
    return w->s->seeds.count;
}

static int64_t made_points(const methods_sweep *w)
{
    return w->kappa_count * (1 + seeds_of(w));
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    methods_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->s = s;
    while (kappas[s->effort][w->kappa_count] > 0)
        w->kappa_count++;
    int code = landmark_sweep_open_stages(&w->draws, s, &defaults[s->effort]);
    *points = made_points(w) + w->draws.count;
    return code;
}

static double kappa_of(const methods_sweep *w, int64_t point)
{
    int64_t i = point < w->kappa_count ? point : (point - w->kappa_count) / seeds_of(w);
    return kappas[w->s->effort][i];
}

static int64_t seed_of(const methods_sweep *w, int64_t point)
{
    return point < w->kappa_count ? -1 : w->s->seeds.items[(point - w->kappa_count) % seeds_of(w)];
}

static void replay(const void *state, int64_t point, options_point *options)
{
    const methods_sweep *w = state;
    int64_t made = made_points(w);
    landmark_sweep_replay(state, point < made ? 0 : point - made, options);
    if (point < made && point >= w->kappa_count)
        options->seed = seed_of(w, point);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const methods_sweep *w = state;
    if (point < w->kappa_count)
        snprintf(buffer, size, "dense kappa %g", kappa_of(w, point));
    else if (point < made_points(w))
        snprintf(buffer, size, "rotated kappa %g seed %" PRId64, kappa_of(w, point),
                 seed_of(w, point));
    else
        landmark_sweep_describe(state, point - made_points(w), buffer, size);
}

/* ---- A point ---- */

static int run_dense(const methods_sweep *w, int64_t point, table *raw)
{
    double kappa = kappa_of(w, point), *lambda = must_allocate(DENSE, sizeof *lambda);
    for (int i = 0; i < DENSE; i++)
        lambda[i] = i + 1 < DENSE ? pow(kappa, -(double)i / (DENSE - 1)) : 1 / kappa;
    method_problem on = {.spectrum = "dense",
                         .seed = -1,
                         .sample = -1,
                         .m = DENSE,
                         .condition = kappa,
                         .norm = dense_norm_ratio,
                         .smallest = 1 / kappa,
                         .largest = 1,
                         .lambda = lambda};
    int code = put_rows(raw, &on, NULL);
    free(lambda);
    return code;
}

/* Completes the problem from its matrix and adds its rows. If on.condition is 0, it is computed. */
static int run_matrix(bottleneck *b, method_problem on, atn_context *context, table *raw)
{
    if (!b->finite) {
        report_error("%s: A is not finite, expected finite tokens", on.spectrum);
        return EXIT_USAGE;
    }
    on.m = b->m;
    on.matrix = b;
    on.lambda = b->lambda;
    on.norm = ref_norm1(b->m, b->exact);
    on.largest = bottleneck_largest(b);
    on.smallest = bottleneck_smallest(b, true);
    if (on.condition == 0)
        on.condition = on.largest / on.smallest;
    return put_rows(raw, &on, context);
}

/* Q diag(lambda) Q^T */
static void rotate(random_stream *r, int64_t m, double kappa, double *a)
{
    double *q = must_allocate((size_t)(m * m), sizeof *q);
    double *lambda = must_allocate((size_t)m, sizeof *lambda);
    random_orthonormal(r, m, m, q);
    for (int64_t i = 0; i < m; i++)
        lambda[i] = i == 0 ? 1 : i == 1 ? 1 / kappa : pow(kappa, -random_uniform(r));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++) {
            long double sum = 0;
            for (int64_t k = 0; k < m; k++)
                sum += (long double)q[i * m + k] * lambda[k] * q[j * m + k];
            a[i * m + j] = a[j * m + i] = (double)sum;
        }
    free(lambda);
    free(q);
}

static int run_rotated(const methods_sweep *w, int64_t point, atn_context *context, table *raw)
{
    method_problem on = {.spectrum = "rotated",
                         .seed = seed_of(w, point),
                         .sample = -1,
                         .condition = kappa_of(w, point)};
    random_stream *r = random_create((uint64_t)on.seed, "rotated", (uint64_t)log10(on.condition));
    double *a = must_allocate(LANDMARKS * LANDMARKS, sizeof *a);
    int code = EXIT_PASS;
    rotate(r, LANDMARKS, on.condition, a);
    for (int i = 0; i < w->s->dtype_count && (code == EXIT_PASS || code == EXIT_CHECK); i++) {
        bottleneck b = bottleneck_create(w->s->dtypes[i], LANDMARKS);
        int made = bottleneck_from_matrix(&b, a);
        if (made == EXIT_PASS || made == EXIT_CHECK)
            made = exit_worst(made, run_matrix(&b, on, context, raw));
        code = exit_worst(code, made);
        bottleneck_free(&b);
    }
    free(a);
    random_free(r);
    return code;
}

static int run_input(const methods_sweep *w, const landmark_point *p, atn_context *context,
                     table *raw)
{
    method_problem on = {
        .spectrum = input_name(p->in), .seed = (int64_t)p->seed, .sample = p->sample};
    double *tokens;
    int code = landmark_sweep_tokens(&w->draws, p, &tokens);
    for (int i = 0; i < w->s->dtype_count && (code == EXIT_PASS || code == EXIT_CHECK); i++) {
        bottleneck b = bottleneck_create(w->s->dtypes[i], p->m);
        int made = bottleneck_from_tokens(&b, &w->draws, p, context, tokens, NULL);
        if (made == EXIT_PASS || made == EXIT_CHECK)
            made = exit_worst(made, run_matrix(&b, on, context, raw));
        code = exit_worst(code, made);
        bottleneck_free(&b);
    }
    free(tokens);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const methods_sweep *w = state;
    if (point < w->kappa_count)
        return run_dense(w, point, raw);
    if (point < made_points(w))
        return run_rotated(w, point, context, raw);
    return run_input(w, &w->draws.points[point - made_points(w)], context, raw);
}

/* ---- Printed summary ---- */

static bool row_is(const table *rows, int64_t row, const char *spectrum, const method_choice *c,
                   int metric)
{
    return cell_is(rows, row, "spectrum", spectrum) &&
           !cell_is(rows, row, "dtype", atn_dtype_name(ATN_F32)) &&
           cell_is(rows, row, "metric", metric_names[metric]) &&
           cell_is(rows, row, "method", atn_inverse_name(c->method)) &&
           cell_is(rows, row, "start", c->start == ATN_START_IDENTITY ? "I" : "A") &&
           cell_is(rows, row, "interval", interval_names[c->interval]);
}

/* The first row of a method at this condition number; -1 if there is none. */
static int64_t find_row(const table *rows, const char *spectrum, const method_choice *c, int metric,
                        double condition)
{
    int col = table_column(rows, "condition");
    for (int64_t row = 0; row < table_rows(rows); row++)
        if (table_get_real(rows, row, col) == condition && row_is(rows, row, spectrum, c, metric))
            return row;
    return -1;
}

enum { MOST_SHOWN = 12 };

/* A table with a column per kappa. */
static table *create_shown(const methods_sweep *w, column *shown, char names[][16])
{
    static const column keys[] = {{"method", COLUMN_TEXT, "", ""},
                                  {"start", COLUMN_TEXT, "", ""},
                                  {"from", COLUMN_TEXT, "", ""}};
    memcpy(shown, keys, sizeof keys);
    for (int i = 0; i < w->kappa_count; i++) {
        snprintf(names[i], 16, "%.0e", kappas[w->s->effort][i]);
        shown[3 + i] = (column){names[i], COLUMN_REAL, "", ""};
    }
    return table_create(shown, 3 + w->kappa_count);
}

/* Prints the values of a column, with a line per method (or for one method only) and a column per
 * kappa. */
static void print_by_kappa(const methods_sweep *w, const table *rows, const char *spectrum,
                           int metric, const char *name, const method_choice *only)
{
    column shown[MOST_SHOWN];
    char names[MOST_SHOWN][16];
    table *t = create_shown(w, shown, names);
    int col = table_column(rows, name);
    bool whole = strcmp(name, "products") == 0;
    for (const method_choice *c = choices; c < choices + CHOICES; c++) {
        if ((only && c != only) || find_row(rows, spectrum, c, metric, kappas[w->s->effort][0]) < 0)
            continue;
        table_text(t, atn_inverse_name(c->method));
        table_text(t, c->start == ATN_START_IDENTITY ? "alpha I" : "alpha A");
        table_text(t, interval_names[c->interval]);
        for (int i = 0; i < w->kappa_count; i++) {
            int64_t row = find_row(rows, spectrum, c, metric, kappas[w->s->effort][i]);
            bool known = row >= 0 && !table_is_missing(rows, row, col);
            table_real_if(t, known,
                          !known  ? 0
                          : whole ? (double)table_get_integer(rows, row, col)
                                  : table_get_real(rows, row, col));
        }
    }
    table_print(t, LINES_SHOWN, report_stream());
    table_free(t);
}

static const method_choice *claimed(void)
{
    for (const method_choice *c = choices; c < choices + CHOICES; c++)
        if (c->method == ATN_INVERSE_CHEBYSHEV_2 && c->start == ATN_START_IDENTITY &&
            c->interval == EXACT)
            return c;
    return NULL;
}

/* Prints on how many of the inputs' matrices chebyshev-2 needs at least 2.4 times fewer products.
 */
static void print_inputs(const table *rows, int metric)
{
    int col = table_column(rows, "fewer_than_soft"), sample = table_column(rows, "sample");
    int64_t count = 0, known = 0, enough = 0;
    double lowest = INFINITY, highest = 0;
    for (int64_t row = 0; row < table_rows(rows); row++) {
        if (table_is_missing(rows, row, sample) ||
            !row_is(rows, row, cell_text(rows, row, "spectrum"), claimed(), metric))
            continue;
        count++;
        if (table_is_missing(rows, row, col))
            continue;
        double ratio = table_get_real(rows, row, col);
        known++;
        enough += ratio >= 2.4;
        lowest = fmin(lowest, ratio);
        highest = fmax(highest, ratio);
    }
    report_text("inputs, %s: both reach 1e-6 on %" PRId64 " of %" PRId64 " matrices",
                metric_names[metric], known, count);
    if (known > 0)
        report_text(", with %.3g to %.3g times fewer products, at least 2.4 on %" PRId64, lowest,
                    highest, enough);
    report_text("\n");
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    static const char *const spectra[] = {"dense", "rotated"};
    static const char *const arithmetic[] = {"numbers", "matrices in f64"};
    const methods_sweep *w = state;
    (void)tables;
    for (int i = 0; i < 2; i++)
        for (int metric = 0; metric < METRICS; metric++) {
            report_text("products until %s < 1e-6, by condition number: %s (%s)\n",
                        metric_names[metric], spectra[i], arithmetic[i]);
            print_by_kappa(w, raw, spectra[i], metric, "products", NULL);
            report_text(
                "products of nr-soft over those of chebyshev-2 from alpha I (stated: at least 2.4)\n");
            print_by_kappa(w, raw, spectra[i], metric, "fewer_than_soft", claimed());
        }
    for (int metric = 0; metric < METRICS; metric++)
        print_inputs(raw, metric);
    return EXIT_PASS;
}

const experiment convergence_methods = {
    .name = "convergence/methods",
    .summary =
        "products of matrices until 1e-6: Newton-Schulz, hyperpower, Nystromformer, Chebyshev",
    .source = "SOFT IJCV Fig. 5, Alg. 2; Nystromformer section 3; Pan and Schreiber 1991",
    .example = "attnum run convergence/methods --input photos,noisy --dtype f64",
    .options = OPTIONS(OPTION_INPUT, OPTION_GRID, OPTION_DTYPE, OPTION_DEVICE, OPTION_SAMPLES,
                       OPTION_STAGE, OPTION_SCALE, OPTION_DISTANCE),
    .defaults =
        "Numbers and rotated matrices (m = 49) always.\n"
        "quick: condition 1e1, 1e3, 1e6; 1 sample of smooth at stage 3.\n"
        "default: 1e1, 1e2, .. 1e8; 4 samples of photos and trained:soft, 2 of smooth and iid at\n"
        "stage 3. full: 10 or more samples of eight inputs.",
    .outputs = outputs,
    .output_count = 1,
    .plot = "convergence/methods.gp",
    .prepare = prepare,
    .describe = describe,
    .replay = replay,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .release = landmark_sweep_release,
};
