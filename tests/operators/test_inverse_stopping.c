/* SPDX-License-Identifier: BSD-3-Clause */
/* ATN_STOPPING_BEST: the iterate of smallest residual, and not before rounding takes over. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fixture.h"
#include "latms.h"
#include "matrices.h"
#include "pairs.h"

enum { M = 20, SIZE = M * M, STEPS = 70 };

/* Matrices that iterates treat differently. */
typedef enum { WELL, ILL, GAP, DUPLICATES, LINE, KIND_COUNT } kind;
static const char *const kind_names[] = {"well conditioned", "ill conditioned", "gap", "duplicates",
                                         "smooth kernel"};

/* Well-conditioned modes and one of size 1e-5: the others are done before it is seen. */
static void make_gap(double *a)
{
    double lambda[M];
    latms_symmetric(M, 3, 4, 5, a, lambda);
    for (int i = 0; i < M; i++)
        a[i] = a[i * M] = i == 0 ? 1e-5 : 0;
}

static void make(kind which, double *a)
{
    double lambda[M];
    switch (which) {
    case WELL:
        latms_symmetric(M, 3, 20, 3, a, lambda);
        break;
    case ILL:
        latms_symmetric(M, 3, 1e14, 4, a, lambda);
        break;
    case GAP:
        make_gap(a);
        break;
    case DUPLICATES:
        ref_matrix_make(REF_DUPLICATES, M, 0, a, NULL);
        break;
    default: /* tokens along a line, so close that most eigenvalues are below rounding */
        for (int i = 0; i < SIZE; i++)
            a[i] = exp(-0.002 * pow(i / M - i % M, 2));
    }
}

/* One matrix in a precision; a and x in f64. */
typedef struct {
    atn_dtype dtype;
    atn_storage storage;
} precision;

static const precision precisions[] = {{ATN_F64, ATN_STORAGE_NATIVE},
                                       {ATN_F32, ATN_STORAGE_NATIVE},
                                       {ATN_F32, ATN_STORAGE_TF32},
                                       {ATN_F32, ATN_STORAGE_BF16},
                                       {ATN_F32, ATN_STORAGE_F16}};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static void to_precision(precision p, double *a)
{
    for (int i = 0; p.dtype == ATN_F32 && i < SIZE; i++) {
        float value = (float)a[i];
        atn_storage_round(p.storage, 1, &value);
        a[i] = (double)value;
    }
}

static atn_status run(atn_context *context, const atn_inverse_desc *desc, precision p,
                      const double *a, double *x, atn_inverse_info *info, atn_trace *trace)
{
    guarded ta = guarded_make(p.dtype, GUARDED_DENSE, 1, 1, M, M);
    guarded tx = guarded_make(p.dtype, GUARDED_DENSE, 1, 1, M, M);
    guarded_set(&ta, a);
    atn_status status = fixture_inverse(context, desc, &ta, &tx, info, trace);
    cr_expect(status < 0 || (guarded_unwritten(&tx) == 0 && guarded_damaged(&tx) == 0));
    guarded_get(&tx, x);
    guarded_free(&tx);
    guarded_free(&ta);
    return status;
}

/* The residual in f64. */
static double residual_of(const double *a, const double *x)
{
    double sum = 0, norm = 0;
    for (int i = 0; i < M; i++) {
        double row[M] = {0}; /* of A X */
        for (int k = 0; k < M; k++)
            for (int j = 0; j < M; j++)
                row[j] += a[i * M + k] * x[k * M + j];
        for (int j = 0; j < M; j++) {
            double entry = -a[i * M + j];
            for (int k = 0; k < M; k++)
                entry += row[k] * a[k * M + j];
            sum += entry * entry;
            norm += a[i * M + j] * a[i * M + j];
        }
    }
    return sqrt(sum / norm);
}

static atn_inverse_desc describe(atn_inverse_method method, precision p, atn_stopping stopping)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    desc.iterations = STEPS;
    desc.stopping = stopping;
    desc.storage = p.storage;
    if (method == ATN_INVERSE_NR)
        desc.alpha = 0.01;
    if (method == ATN_INVERSE_NR_ADAPTIVE)
        desc.search_limit = 1.5;
    return desc;
}

/* Residuals of X_0 .. X_last, as the library reports them for runs of so many steps. Returns the
 * last k that is finite. */
static int every_residual(atn_context *context, atn_inverse_desc desc, precision p, const double *a,
                          double *residuals)
{
    double x[SIZE];
    atn_inverse_info info;
    desc.stopping = ATN_STOPPING_NONE;
    for (int k = 0; k <= STEPS; k++) {
        desc.iterations = k;
        run(context, &desc, p, a, x, &info, NULL);
        if (info.stop != ATN_STOP_ITERATIONS)
            return k - 1;
        cr_expect_eq(info.returned, k);
        residuals[k] = info.residual;
    }
    return STEPS;
}

/* X is the X_k of smallest residual among those considered, to the bit; and that is no more than 8
 * times the smallest of all, which may come later by luck. */
static void check_best(atn_context *context, atn_inverse_method method, precision p, kind which)
{
    double a[SIZE], x[SIZE], want[SIZE], residuals[STEPS + 1];
    atn_inverse_info info, none;
    const char *name = atn_inverse_name(method);
    make(which, a);
    to_precision(p, a);
    atn_inverse_desc desc = describe(method, p, ATN_STOPPING_BEST);
    run(context, &desc, p, a, x, &info, NULL);
    if (info.stop == ATN_STOP_NO_ALPHA)
        return;
    int last = every_residual(context, desc, p, a, residuals), best = 0, best_of_all = 0;
    for (int k = 0; k <= last; k++) {
        best = k <= info.iterations && residuals[k] < residuals[best] ? k : best;
        best_of_all = residuals[k] < residuals[best_of_all] ? k : best_of_all;
    }
    desc.stopping = ATN_STOPPING_NONE;
    desc.iterations = info.returned;
    run(context, &desc, p, a, want, &none, NULL);
    cr_expect(info.returned == best && info.best_iteration == best &&
                  info.residual == residuals[best] && memcmp(x, want, sizeof x) == 0,
              "%s %s %s %s: X_%d with residual %g, expected X_%d with %g", name,
              atn_dtype_name(p.dtype), atn_storage_name(p.storage), kind_names[which],
              info.returned, info.residual, best, residuals[best]);
    int64_t discarded = info.stop == ATN_STOP_NONFINITE;
    cr_expect_eq(info.products,
                 3 * (info.iterations + discarded) + 2 * !discarded +
                     (desc.search == ATN_SEARCH_SQUARE),
                 "%s %s after %d: %lld products", name, atn_stop_name(info.stop), info.iterations,
                 (long long)info.products);
    cr_expect(residuals[best] <= 8 * residuals[best_of_all],
              "%s %s %s %s: %s after %d, residual %g of X_%d; X_%d has %g", name,
              atn_dtype_name(p.dtype), atn_storage_name(p.storage), kind_names[which],
              atn_stop_name(info.stop), info.iterations, info.residual, info.returned, best_of_all,
              residuals[best_of_all]);
}

/* On a device, where it takes long, every value once unless all are asked for. */
static bool can_be_compared(const int *v)
{
    return fixture_device() == ATN_CPU || pairs_all() ||
           (v[1] == v[0] % PRECISIONS && v[2] == v[0] % KIND_COUNT);
}

Test(inverse_stopping, the_best_iterate_is_returned)
{
    static const int sizes[] = {ATN_INVERSE_NR_SOFTPP + 1, PRECISIONS, KIND_COUNT};
    atn_context *context = fixture_context(1, NULL);
    pairs chosen = pairs_make(3, sizes, can_be_compared);
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        check_best(context, (atn_inverse_method)v[0], precisions[v[1]], (kind)v[2]);
    }
    pairs_free(&chosen);
    atn_context_free(context);
}

/* A fixed T near 20 is too many steps in narrow types, and too few in f64. */
Test(inverse_stopping, a_fixed_t_is_worse)
{
    atn_context *context = fixture_context(1, NULL);
    static const double fewest[PRECISIONS] = {100, 2, 1, 2, 1}; /* f64, f32, tf32, bf16, f16 */
    for (int p = 0; p < PRECISIONS; p++) {
        double a[SIZE], x[SIZE], best, fixed;
        atn_inverse_info info;
        make(LINE, a);
        to_precision(precisions[p], a);
        atn_inverse_desc desc = describe(ATN_INVERSE_NR_PAPER, precisions[p], ATN_STOPPING_BEST);
        run(context, &desc, precisions[p], a, x, &info, NULL);
        best = residual_of(a, x);
        cr_expect_eq(info.stop, ATN_STOP_ROUNDING, "%s after %d", atn_stop_name(info.stop),
                     info.iterations);
        desc.stopping = ATN_STOPPING_NONE;
        desc.iterations = 20;
        run(context, &desc, precisions[p], a, x, &info, NULL);
        fixed = residual_of(a, x);
        cr_expect(fixed > fewest[p] * best, "%d: residual %g at 20, %g at best", p, fixed, best);
    }
    atn_context_free(context);
}

/* Updates that do not shrink for 30 steps and residuals that do not fall for 30 are not a sign of
 * rounding. */
Test(inverse_stopping, slow_phases_are_waited_for)
{
    atn_context *context = fixture_context(1, NULL);
    for (int gap = 0; gap < 2; gap++) {
        double a[SIZE] = {0}, x[SIZE];
        atn_inverse_info info;
        if (gap)
            make_gap(a);
        for (int i = 0; i < M && !gap; i++)
            a[i * M + i] = 1;
        atn_inverse_desc desc = describe(ATN_INVERSE_NR, precisions[0], ATN_STOPPING_BEST);
        desc.alpha = gap ? 0.5 : 1e-10;
        atn_status status = run(context, &desc, precisions[0], a, x, &info, NULL);
        cr_expect(status == ATN_OK && info.stop == ATN_STOP_ROUNDING && info.returned > 30 &&
                      info.residual < 1e-11,
                  "gap %d: %s %s after %d, X_%d, residual %g", gap, atn_status_name(status),
                  atn_stop_name(info.stop), info.iterations, info.returned, info.residual);
    }
    atn_context_free(context);
}

/* The tolerance distinguishes stagnation from convergence, and too small a T is neither. */
Test(inverse_stopping, statuses)
{
    static const struct {
        const char *what;
        int iterations;
        double alpha, tolerance;
        atn_storage storage;
        kind matrix;
        atn_status status;
        atn_stop stop;
    } rows[] = {
        {"done", STEPS, 0.01, -1, ATN_STORAGE_NATIVE, WELL, ATN_OK, ATN_STOP_ROUNDING},
        {"rounding at sqrt(u)", STEPS, 0.004, 0, ATN_STORAGE_NATIVE, LINE, ATN_STAGNATED,
         ATN_STOP_ROUNDING},
        {"the same, but good enough", STEPS, 0.004, 1e-3, ATN_STORAGE_NATIVE, LINE, ATN_OK,
         ATN_STOP_ROUNDING},
        {"sqrt(u) of the storage", STEPS, 0.004, -1, ATN_STORAGE_BF16, LINE, ATN_OK,
         ATN_STOP_ROUNDING},
        {"too few steps", 5, 0.004, -1, ATN_STORAGE_NATIVE, LINE, ATN_NOT_CONVERGED,
         ATN_STOP_ITERATIONS},
        {"no steps", 0, 0.004, -1, ATN_STORAGE_NATIVE, LINE, ATN_NOT_CONVERGED,
         ATN_STOP_ITERATIONS},
        {"a start too large", STEPS, 9, -1, ATN_STORAGE_NATIVE, WELL, ATN_NOT_CONVERGED,
         ATN_STOP_DIVERGED},
        {"the same, but anything will do", STEPS, 9, 1e6, ATN_STORAGE_NATIVE, WELL, ATN_OK,
         ATN_STOP_DIVERGED},
        {"overflow of the next", STEPS, 1e25, -1, ATN_STORAGE_NATIVE, WELL, ATN_NOT_CONVERGED,
         ATN_STOP_NONFINITE},
        {"overflow of f16", STEPS, 1e4, -1, ATN_STORAGE_F16, WELL, ATN_NOT_CONVERGED,
         ATN_STOP_NONFINITE},
        {"the same, but anything will do", STEPS, 1e4, 1e6, ATN_STORAGE_F16, WELL, ATN_OK,
         ATN_STOP_NONFINITE},
    };
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double a[SIZE], x[SIZE];
        atn_inverse_info info;
        precision p = {ATN_F32, rows[i].storage};
        make(rows[i].matrix, a);
        to_precision(p, a);
        atn_inverse_desc desc = describe(ATN_INVERSE_NR, p, ATN_STOPPING_BEST);
        desc.iterations = rows[i].iterations;
        desc.alpha = rows[i].alpha;
        desc.tolerance = rows[i].tolerance;
        atn_status status = run(context, &desc, p, a, x, &info, NULL);
        cr_expect(status == rows[i].status && info.status == status && info.stop == rows[i].stop,
                  "%s: %s, %s after %d; X_%d has %g", rows[i].what, atn_status_name(status),
                  atn_stop_name(info.stop), info.iterations, info.returned, info.residual);
        bool first = info.stop == ATN_STOP_NONFINITE || info.stop == ATN_STOP_DIVERGED;
        cr_expect(!first || info.returned == 0, "%s: X_%d", rows[i].what, info.returned);
        for (int k = 0; first && k < SIZE; k++) {
            float start = (float)rows[i].alpha * (float)a[k];
            atn_storage_round(rows[i].storage, 1, &start);
            cr_expect_eq(x[k], (double)start);
        }
    }
    atn_context_free(context);
}

/* The last X_k that T allows is considered, too. */
Test(inverse_stopping, the_last_iterate_counts)
{
    atn_context *context = fixture_context(1, NULL);
    double a[SIZE], x[SIZE];
    atn_inverse_info info;
    make(LINE, a);
    atn_inverse_desc desc = describe(ATN_INVERSE_NR_PAPER, precisions[0], ATN_STOPPING_BEST);
    for (desc.iterations = 0; desc.iterations < 6; desc.iterations++) {
        run(context, &desc, precisions[0], a, x, &info, NULL);
        cr_expect(info.returned == desc.iterations && info.iterations == desc.iterations &&
                      fabs(info.residual - residual_of(a, x)) < 1e-12,
                  "T = %d: X_%d of %d, residual %g", desc.iterations, info.returned,
                  info.iterations, info.residual);
    }
    atn_context_free(context);
}

/* From alpha = 2.3 on I the residual is 1.3^(2^k): over ten times the first at k = 4. */
Test(inverse_stopping, a_tenfold_residual_has_diverged)
{
    atn_context *context = fixture_context(1, NULL);
    double a[SIZE] = {0}, x[SIZE];
    atn_inverse_info info;
    for (int i = 0; i < M; i++)
        a[i * M + i] = 1;
    atn_inverse_desc desc = describe(ATN_INVERSE_NR, precisions[0], ATN_STOPPING_BEST);
    desc.alpha = 2.3;
    run(context, &desc, precisions[0], a, x, &info, NULL);
    cr_expect(info.stop == ATN_STOP_DIVERGED && info.iterations == 4 && info.returned == 0,
              "%s after %d, X_%d", atn_stop_name(info.stop), info.iterations, info.returned);
    atn_context_free(context);
}

/* Zero, and matrices of sizes 0 and 1. */
Test(inverse_stopping, nothing_to_do)
{
    atn_context *context = fixture_context(1, NULL);
    double a[SIZE] = {0}, x[SIZE], half = 0.5;
    atn_inverse_info info;
    atn_inverse_desc desc = describe(ATN_INVERSE_NR_SOFT, precisions[0], ATN_STOPPING_BEST);
    desc.ridge = 0;
    cr_expect_eq(run(context, &desc, precisions[0], a, x, &info, NULL), ATN_OK);
    cr_expect(info.residual == 0 && info.returned == 0 && x[0] == 0 && x[SIZE - 1] == 0);
    guarded ta = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 1, 1);
    guarded tx = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, 1, 1);
    guarded_set(&ta, &half);
    cr_expect_eq(fixture_inverse(context, &desc, &ta, &tx, &info, NULL), ATN_OK);
    double two = guarded_at(&tx, 0, 0, 0, 0);
    cr_expect(fabs(two - 2) < 1e-15 && info.stop == ATN_STOP_ROUNDING, "%g %s", two,
              atn_stop_name(info.stop));
    ta.view.rows = ta.view.cols = tx.view.rows = tx.view.cols = 0;
    cr_expect_eq(fixture_inverse(context, &desc, &ta, &tx, &info, NULL), ATN_OK);
    guarded_free(&tx);
    guarded_free(&ta);
    atn_context_free(context);
}

/* Every iterate is traced, those after the best too. */
Test(inverse_stopping, traced)
{
    atn_context *context = fixture_context(1, NULL);
    double a[SIZE], x[SIZE], residuals[STEPS + 1], norms[STEPS + 1];
    atn_inverse_info info;
    atn_trace trace = {.capacity = STEPS + 1,
                       .values = {[ATN_METRIC_RESIDUAL] = residuals, [ATN_METRIC_NORM] = norms}};
    make(LINE, a);
    to_precision(precisions[1], a);
    atn_inverse_desc desc = describe(ATN_INVERSE_NR_PAPER, precisions[1], ATN_STOPPING_BEST);
    run(context, &desc, precisions[1], a, x, &info, &trace);
    cr_expect(trace.length == info.iterations + 1 && info.returned < info.iterations,
              "%d entries, %d steps, X_%d", trace.length, info.iterations, info.returned);
    for (int k = 0; k < trace.length; k++)
        cr_expect(residuals[k] * 4 > residuals[info.returned], "X_%d has %g", k, residuals[k]);
    trace.capacity = STEPS;
    cr_expect_eq(run(context, &desc, precisions[1], a, x, &info, &trace), ATN_ERR_SHAPE);
    atn_context_free(context);
}

/* Backward goes through the steps that led to X and through no others. */
Test(inverse_stopping, backward)
{
    atn_context *context = fixture_context(1, NULL);
    double a[SIZE], dx[SIZE], da[2][SIZE];
    for (int gradient = ATN_GRADIENT_CLOSED; gradient <= ATN_GRADIENT_STEPS; gradient++) {
        atn_inverse_info infos[2];
        atn_inverse_desc desc = describe(ATN_INVERSE_NR_PAPER, precisions[0], ATN_STOPPING_BEST);
        make(ILL, a);
        data_normal(7, SIZE, dx);
        for (int i = 0; i < 2; i++) {
            guarded ta = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, M, M);
            guarded tx = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, M, M);
            guarded td = guarded_make(ATN_F64, GUARDED_DENSE, 1, 1, M, M);
            guarded_set(&ta, a);
            guarded_set(&tx, dx);
            cr_expect_geq(fixture_inverse_backward(context, &desc, (atn_gradient)gradient, &ta, &tx,
                                                   &td, &infos[i]),
                          0);
            guarded_get(&td, da[i]);
            guarded_free(&td);
            guarded_free(&tx);
            guarded_free(&ta);
            desc.stopping = ATN_STOPPING_NONE;
            desc.iterations = infos[0].returned;
        }
        cr_expect(infos[0].returned < infos[0].iterations && infos[0].returned > 20, "X_%d of %d",
                  infos[0].returned, infos[0].iterations);
        cr_expect(memcmp(da[0], da[1], sizeof da[0]) == 0, "%s",
                  atn_gradient_name((atn_gradient)gradient));
    }
    atn_context_free(context);
}

/* As an operator's inverse; on CUDA operators emulate no narrow types. */
Test(inverse_stopping, within_soft)
{
    atn_context *context = fixture_context(2, NULL);
    int storages = fixture_device() == ATN_CUDA ? ATN_STORAGE_NATIVE + 1 : ATN_STORAGE_COUNT;
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int storage = 0; storage < storages; storage++) {
            if (!fixture_runs(atn_operator_get((atn_operator)op)))
                continue;
            fixture_soft_case c = {.op = (atn_operator)op, .dtype = ATN_F32};
            c.layout = GUARDED_STRIDED, c.sampling = ATN_SAMPLING_FIRST;
            c.inverse = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
            c.batch = 1, c.heads = 1, c.height = 12, c.width = 15, c.stride = 1, c.count = 30;
            c.dim = 2, c.value_dim = 5, c.seed = 3, c.scale = ATN_SCALE_VALUE;
            c.scale_value = 0.05;
            double out[2][180 * 5];
            atn_inverse_info infos[2];
            for (int i = 0; i < 2; i++) {
                c.inverse.stopping = i ? ATN_STOPPING_NONE : ATN_STOPPING_BEST;
                c.inverse.iterations = i ? infos[0].returned : STEPS;
                fixture_soft f = fixture_soft_make(&c);
                f.desc.storage = (atn_storage)storage;
                f.desc.inverse.storage = i ? (atn_storage)storage : ATN_STORAGE_NATIVE;
                cr_expect_geq(fixture_soft_run(&f, context), 0, "%s", atn_last_error(context));
                guarded_get(&f.out, out[i]);
                infos[i] = f.infos[0];
                fixture_soft_free(&f);
            }
            cr_expect(infos[0].stop == ATN_STOP_ROUNDING && infos[0].returned < infos[0].iterations,
                      "%s: %s after %d", atn_storage_name((atn_storage)storage),
                      atn_stop_name(infos[0].stop), infos[0].iterations);
            cr_expect(memcmp(out[0], out[1], sizeof out[0]) == 0, "%s %s",
                      atn_operator_get((atn_operator)op)->name,
                      atn_storage_name((atn_storage)storage));
        }
    atn_context_free(context);
}

/* The first of X_k = I has residual 0: it ends after four more steps without a smaller one. */
Test(inverse_stopping, four_steps_without_a_smaller_residual_end_it)
{
    atn_context *context = fixture_context(1, NULL);
    double a[SIZE] = {0}, x[SIZE];
    atn_inverse_info info;
    for (int i = 0; i < M; i++)
        a[i * M + i] = 1;
    atn_inverse_desc desc = describe(ATN_INVERSE_NR, precisions[0], ATN_STOPPING_BEST);
    desc.alpha = 1;
    atn_status status = run(context, &desc, precisions[0], a, x, &info, NULL);
    cr_expect(status == ATN_OK && info.stop == ATN_STOP_ROUNDING && info.returned == 0 &&
                  info.iterations == 4,
              "%s %s after %d, X_%d", atn_status_name(status), atn_stop_name(info.stop),
              info.iterations, info.returned);
    atn_context_free(context);
}

/* A residual costs a product in every step. */
Test(inverse_stopping, counted)
{
    atn_context *context = fixture_context(1, NULL);
    atn_attention_shape shape = {1, 1, 64, 4, 4, 0};
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F64);
    atn_cost none, best;
    if (!fixture_runs(atn_operator_get(ATN_SOFT))) {
        atn_context_free(context);
        return;
    }
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 10};
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    cr_expect_eq(atn_attention_cost(context, &desc, &shape, &none), ATN_OK);
    desc.inverse.stopping = ATN_STOPPING_BEST;
    cr_expect_eq(atn_attention_cost(context, &desc, &shape, &best), ATN_OK);
    cr_expect_eq(best.flops - none.flops, 20 * 2 * 1000.0, "%g more", best.flops - none.flops);
    atn_context_free(context);
}

Test(inverse_stopping, names_and_range)
{
    atn_context *context = fixture_context(1, NULL);
    double a[SIZE], x[SIZE];
    cr_expect_str_eq(atn_stopping_name(ATN_STOPPING_NONE), "none");
    cr_expect_str_eq(atn_stopping_name(ATN_STOPPING_BEST), "best");
    cr_expect_null(atn_stopping_name(ATN_STOPPING_COUNT));
    cr_expect_null(atn_stopping_name((atn_stopping)-1));
    make(WELL, a);
    for (int method = 0; method < ATN_INVERSE_COUNT; method++) {
        atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
        cr_expect_eq(desc.stopping, ATN_STOPPING_NONE, "the published behaviour");
        desc.alpha = method == ATN_INVERSE_NR;
        desc.stopping = ATN_STOPPING_COUNT;
        cr_expect_eq(run(context, &desc, precisions[0], a, x, NULL, NULL), ATN_ERR_VALUE);
        bool polynomial = method >= ATN_INVERSE_NEWTON_SCHULZ && method <= ATN_INVERSE_CHEBYSHEV_9;
        desc.stopping = ATN_STOPPING_BEST;
        atn_status status = run(context, &desc, precisions[0], a, x, NULL, NULL);
        cr_expect(polynomial ? status == ATN_ERR_VALUE : status >= 0, "%s: %s",
                  atn_inverse_name(desc.method), atn_status_name(status));
    }
    atn_context_free(context);
}
