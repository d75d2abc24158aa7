/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces: every metric against the same number from reference functions, and no effect on X. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "latms.h"
#include "linear_algebra.h"

enum { M = 14, T = 20, CAPACITY = 32 };

typedef struct {
    double a[M * M], pinv[M * M], projector[M * M];
    double values[ATN_METRIC_COUNT][CAPACITY];
    atn_trace trace;
    guarded ga, gx;
    atn_inverse_info info;
} traced;

static void traced_make(traced *t, atn_dtype dtype)
{
    double lambda[M];
    atn_status made = latms_symmetric(M, 3, 300, 5, t->a, lambda);
    cr_assert_eq(made, ATN_OK, "%s", atn_status_name(made));
    data_round(dtype, M * M, t->a);
    ref_symmetric_pinv(M, t->a, -1, t->pinv, t->projector, NULL, NULL);
    t->trace = (atn_trace){.capacity = CAPACITY, .pinv = t->pinv, .projector = t->projector};
    for (int i = 0; i < ATN_METRIC_COUNT; i++)
        t->trace.values[i] = t->values[i];
    t->ga = guarded_make(dtype, GUARDED_DENSE, 1, 1, M, M);
    t->gx = guarded_make(dtype, GUARDED_DENSE, 1, 1, M, M);
    guarded_set(&t->ga, t->a);
}

static void traced_free(traced *t)
{
    guarded_free(&t->gx);
    guarded_free(&t->ga);
}

static void multiply(const double *a, const double *b, double *c)
{
    for (int i = 0; i < M * M; i++) {
        long double sum = 0;
        for (int k = 0; k < M; k++)
            sum += (long double)a[i / M * M + k] * b[k * M + i % M];
        c[i] = (double)sum;
    }
}

/* |a - b|_2 */
static double distance(const double *a, const double *b)
{
    double difference[M * M], norm;
    for (int i = 0; i < M * M; i++)
        difference[i] = a[i] - b[i];
    ref_spectral_norm(M, M, difference, &norm);
    return norm;
}

static const double zero[M * M];

/* All metrics of one X, from their definitions. */
static void expected_metrics(const traced *t, const double *x, double *metrics)
{
    double ax[M * M], axa[M * M], xax[M * M];
    multiply(t->a, x, ax);
    multiply(ax, t->a, axa);
    multiply(x, ax, xax);
    metrics[ATN_METRIC_RESIDUAL] = distance(axa, t->a) / distance(t->a, zero);
    metrics[ATN_METRIC_INVERSE_ERROR] = distance(x, t->pinv) / distance(t->pinv, zero);
    metrics[ATN_METRIC_RANGE_RESIDUAL] = distance(t->projector, ax);
    metrics[ATN_METRIC_REFLEXIVE] = distance(xax, x) / distance(x, zero);
    metrics[ATN_METRIC_SYMMETRY] = 0;
    metrics[ATN_METRIC_NORM] = distance(x, zero);
}

/* The products' rounding in f64, relative to the size of what is subtracted: 4 m u of it. */
static void check_entry(const traced *t, const double *x, int k, const char *what)
{
    double want[ATN_METRIC_COUNT], ax[M * M];
    expected_metrics(t, x, want);
    multiply(t->a, x, ax);
    double size = 1 + distance(ax, zero) * (1 + distance(t->a, zero));
    for (int i = 0; i < ATN_METRIC_COUNT; i++) {
        double bound = 8 * M * 0x1p-53 * (size + want[i]);
        if (i == ATN_METRIC_RANGE_RESIDUAL) /* from a square root of squares */
            bound = fmax(bound, sqrt(4 * M * 0x1p-53) * fmin(bound / want[i], 1e-3));
        double ratio = fabs(t->values[i][k] - want[i]) / bound;
        cr_expect(ref_judge(REF_ROUNDING, ratio) == REF_PASS,
                  "%s k=%d %s: %.17g, expected %.17g, ratio=%.3g", what, k,
                  atn_metric_name((atn_metric)i), t->values[i][k], want[i], ratio);
    }
}

Test(inverse_trace, metrics_of_every_iterate)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_NR_SOFT,
                                                 ATN_INVERSE_NR_SOFTPP};
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
            traced t;
            double x[M * M];
            traced_make(&t, (atn_dtype)dtype);
            atn_inverse_desc desc = atn_inverse_defaults(methods[i]);
            cr_assert(fixture_inverse(context, &desc, &t.ga, &t.gx, &t.info, &t.trace) >= 0);
            cr_expect_eq(t.trace.length, T + 1);
            for (int k = 0; k <= T; k++) {
                desc.iterations = k;
                fixture_inverse(context, &desc, &t.ga, &t.gx, NULL, NULL);
                guarded_get(&t.gx, x);
                check_entry(&t, x, k, atn_inverse_name(methods[i]));
            }
            traced_free(&t);
        }
    atn_context_free(context);
}

Test(inverse_trace, exact_methods_have_one_entry)
{
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int method = ATN_INVERSE_EIG; method < ATN_INVERSE_COUNT; method++) {
            traced t;
            double x[M * M];
            traced_make(&t, (atn_dtype)dtype);
            t.trace.capacity = 1;
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            cr_assert_eq(fixture_inverse(context, &desc, &t.ga, &t.gx, NULL, &t.trace), ATN_OK,
                         "%s", atn_last_error(context));
            cr_expect_eq(t.trace.length, 1);
            guarded_get(&t.gx, x);
            check_entry(&t, x, 0, atn_inverse_name((atn_inverse_method)method));
            traced_free(&t);
        }
    atn_context_free(context);
}

/* X has the same bits with all metrics, with none, and without a trace. */
Test(inverse_trace, recording_does_not_change_x)
{
    atn_context *context = fixture_context(2, NULL);
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int method = 1; method < ATN_INVERSE_COUNT; method++) {
            traced t;
            traced_make(&t, (atn_dtype)dtype);
            atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
            atn_trace silent = {.capacity = CAPACITY};
            double *iterates = calloc(CAPACITY, M * M * sizeof *iterates);
            t.trace.iterates = iterates;
            guarded plain = guarded_make((atn_dtype)dtype, GUARDED_DENSE, 1, 1, M, M);
            guarded none = guarded_make((atn_dtype)dtype, GUARDED_DENSE, 1, 1, M, M);
            fixture_inverse(context, &desc, &t.ga, &plain, NULL, NULL);
            fixture_inverse(context, &desc, &t.ga, &t.gx, NULL, &t.trace);
            fixture_inverse(context, &desc, &t.ga, &none, NULL, &silent);
            cr_expect(guarded_same_bits(&plain, &t.gx) && guarded_same_bits(&plain, &none), "%s",
                      atn_inverse_name((atn_inverse_method)method));
            cr_expect_eq(guarded_unwritten(&plain), 0);
            const double *last = iterates + (t.trace.length - 1) * M * M;
            bool found = t.trace.length > 0; /* nr-adaptive finds no start */
            cr_expect_eq(found, method != ATN_INVERSE_NR_ADAPTIVE);
            for (int i = 0; i < M * M && found; i++)
                cr_expect_eq(last[i], guarded_at(&plain, 0, 0, i / M, i % M), "%s",
                             atn_inverse_name((atn_inverse_method)method));
            free(iterates);
            guarded_free(&none);
            guarded_free(&plain);
            traced_free(&t);
        }
    atn_context_free(context);
}

/* Entries beyond length stay as they were; one more than needed is enough, one less is not. */
Test(inverse_trace, capacity)
{
    atn_context *context = fixture_context(1, NULL);
    traced t;
    traced_make(&t, ATN_F32);
    for (int i = 0; i < ATN_METRIC_COUNT; i++)
        for (int k = 0; k < CAPACITY; k++)
            t.values[i][k] = -7;
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    desc.iterations = 5;
    t.trace.capacity = 5;
    cr_expect_eq(fixture_inverse(context, &desc, &t.ga, &t.gx, NULL, &t.trace), ATN_ERR_SHAPE);
    t.trace.capacity = 6;
    cr_expect(fixture_inverse(context, &desc, &t.ga, &t.gx, NULL, &t.trace) >= 0);
    cr_expect_eq(t.trace.length, 6);
    for (int i = 0; i < ATN_METRIC_COUNT; i++)
        cr_expect(t.values[i][6] == -7 && t.values[i][5] != -7, "%s",
                  atn_metric_name((atn_metric)i));
    traced_free(&t);
    atn_context_free(context);
}

/* Iterates that overflow must not come out of the trace as small numbers. */
Test(inverse_trace, diverging_iterates_are_not_reported_small)
{
    atn_context *context = fixture_context(1, NULL);
    traced t;
    traced_make(&t, ATN_F64);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR);
    desc.alpha = 30;
    desc.iterations = CAPACITY - 1;
    cr_expect_eq(fixture_inverse(context, &desc, &t.ga, &t.gx, &t.info, &t.trace),
                 ATN_NOT_CONVERGED);
    cr_expect_eq(t.info.stop, ATN_STOP_NONFINITE);
    cr_expect_eq(t.trace.length, t.info.iterations + 1);
    for (int k = 2; k < t.trace.length; k++)
        for (int i = 0; i < ATN_METRIC_COUNT; i++) {
            bool large = !(t.values[i][k] < t.values[i][k - 1]) && t.values[i][k] != 0;
            cr_expect(large || i == ATN_METRIC_SYMMETRY, "%s k=%d: %g after %g",
                      atn_metric_name((atn_metric)i), k, t.values[i][k], t.values[i][k - 1]);
        }
    traced_free(&t);
    atn_context_free(context);
}

/* Several matrices, each with its own trace and metrics. */
/* One NaN anywhere in the given arrays is enough: no maximum may skip it. */
Test(inverse_trace, a_nan_in_the_reference_is_seen)
{
    atn_context *context = fixture_context(1, NULL);
    for (int at = 0; at < M * M; at += 13) {
        traced t;
        traced_make(&t, ATN_F64);
        t.projector[at] = t.pinv[at] = NAN;
        atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
        fixture_inverse(context, &desc, &t.ga, &t.gx, &t.info, &t.trace);
        cr_expect(isnan(t.values[ATN_METRIC_RANGE_RESIDUAL][T]) &&
                      isnan(t.values[ATN_METRIC_INVERSE_ERROR][T]),
                  "NaN at %d: range residual %g, inverse error %g", at,
                  t.values[ATN_METRIC_RANGE_RESIDUAL][T], t.values[ATN_METRIC_INVERSE_ERROR][T]);
        traced_free(&t);
    }
    atn_context_free(context);
}

Test(inverse_trace, one_trace_per_matrix)
{
    atn_context *context = fixture_context(2, NULL);
    double values[3][CAPACITY], lambda[M], a[3 * M * M];
    guarded ga = guarded_make(ATN_F64, GUARDED_HEADS, 3, 1, M, M);
    guarded gx = guarded_make(ATN_F64, GUARDED_HEADS, 3, 1, M, M);
    atn_trace traces[3];
    for (int i = 0; i < 3; i++) {
        latms_symmetric(M, 3, 10 * (i + 1), i + 1, a + i * M * M, lambda);
        traces[i] = (atn_trace){.capacity = CAPACITY};
        traces[i].values[ATN_METRIC_NORM] = values[i];
    }
    guarded_set(&ga, a);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_EIG);
    cr_assert_eq(fixture_inverse(context, &desc, &ga, &gx, NULL, traces), ATN_OK);
    for (int i = 0; i < 3; i++) /* |A^-1|_2 = kappa: lambda_max is 1 */
        cr_expect(traces[i].length == 1 && fabs(values[i][0] - 10 * (i + 1)) < 1e-11, "%d: %g", i,
                  values[i][0]);
    guarded_free(&gx);
    guarded_free(&ga);
    atn_context_free(context);
}

/* Of A = 0 every error is 0, relative ones too. */
Test(inverse_trace, the_zero_matrix)
{
    atn_context *context = fixture_context(1, NULL);
    guarded ga = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, M, M);
    guarded gx = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, M, M);
    double values[ATN_METRIC_COUNT] = {-1, -1, -1, -1, -1, -1};
    atn_trace trace = {.capacity = 1, .pinv = zero, .projector = zero};
    for (int i = 0; i < ATN_METRIC_COUNT; i++)
        trace.values[i] = &values[i];
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_EIG);
    guarded_set(&ga, zero);
    cr_expect_geq((int)fixture_inverse(context, &desc, &ga, &gx, NULL, &trace), 0);
    for (int i = 0; i < ATN_METRIC_COUNT; i++)
        cr_expect_eq(values[i], 0, "%s: %g", atn_metric_name((atn_metric)i), values[i]);
    guarded_free(&gx);
    guarded_free(&ga);
    atn_context_free(context);
}

Test(inverse_trace, names)
{
    static const char *const names[] = {"residual",           "inverse_error",   "range_residual",
                                        "reflexive_residual", "symmetry_defect", "iterate_norm"};
    for (int i = 0; i < ATN_METRIC_COUNT; i++)
        cr_expect_str_eq(atn_metric_name((atn_metric)i), names[i]);
    cr_expect_null(atn_metric_name(ATN_METRIC_COUNT));
}
