/* SPDX-License-Identifier: BSD-3-Clause */
/* convergence/curves: published rows against the raw ones. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/report.h"
#include "convergence/bottleneck.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(convergence_curves, .init = scratch_begin, .fini = scratch_end);

/* Mean, minimum and maximum of a measure over the raw rows of a curve at an iteration. */
typedef struct {
    int64_t samples, rows;
    double mean, least, most;
} expected;

static expected gather(const table *raw, int64_t curve, int64_t k, const char *measure)
{
    expected e = {0, 0, 0, INFINITY, -INFINITY};
    for (int64_t row = 0; row < table_rows(raw); row++) {
        if (cell_integer(raw, row, "curve") != curve || cell_integer(raw, row, "iteration") != k)
            continue;
        e.rows++;
        if (cell_missing(raw, row, measure))
            continue;
        double value = cell_real(raw, row, measure);
        e.samples++;
        e.mean += value;
        e.least = fmin(e.least, value);
        e.most = fmax(e.most, value);
    }
    e.mean /= (double)e.samples;
    return e;
}

static bool near(double a, double b)
{
    return a == b || fabs(a - b) <= 1e-14 * fabs(b);
}

static void check_row(const partial_run *r, int64_t row, int64_t curve)
{
    static const struct {
        const char *raw, *mean, *least, *most;
    } measures[] = {
        {"residual", "residual_mean", "residual_min", "residual_max"},
        {"inverse_error", "inverse_error_mean", NULL, "inverse_error_max"},
        {"range_residual", "range_residual_mean", NULL, "range_residual_max"},
        {"attention_error", "attention_error_mean", NULL, "attention_error_max"},
        {"predicted_residual", "predicted_residual_mean", NULL, NULL},
        {"rounding_ratio", NULL, NULL, "rounding_ratio_max"},
    };
    const table *t = r->published;
    int64_t k = cell_integer(t, row, "iteration");
    cr_expect_eq(gather(r->raw, curve, k, "residual").samples, cell_integer(t, row, "samples"));
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++) {
        expected e = gather(r->raw, curve, k, measures[i].raw);
        const char *names[] = {measures[i].mean, measures[i].least, measures[i].most};
        double want[] = {e.mean, e.least, e.most};
        for (int j = 0; j < 3; j++)
            if (names[j])
                cr_expect(e.samples == 0 ? cell_missing(t, row, names[j])
                                         : near(cell_real(t, row, names[j]), want[j]),
                          "row %" PRId64 " curve %" PRId64 " k=%" PRId64 " %s: %.17g, want %.17g",
                          row, curve, k, names[j], cell_real(t, row, names[j]), want[j]);
    }
}

Test(convergence_curves, published_rows_are_those_of_the_raw_ones)
{
    partial_run r;
    prepare_run(&r, &convergence_curves,
                "--input smooth,constant --stage 2,3 --samples 3 --seed 1,2 --iterations 6 "
                "--variant nr-paper,nr-adaptive,eig --sampling pool");
    cr_assert_eq(r.points, 2 * 2 * 3 * 2);
    run_points(&r);
    finish_run(&r);
    static const int lengths[] = {7, 1, 1}; /* of a curve: paper, adaptive, eig */
    int64_t row = 0;
    for (int64_t curve = 0; curve < 2 * 2 * 3 * 2; curve++) {
        for (int k = 0; k < lengths[curve / 2 % 3]; k++, row++) {
            cr_assert(row < table_rows(r.published));
            cr_expect_eq(cell_integer(r.published, row, "iteration"), k);
            cr_expect(cell_is(r.published, row, "dtype", curve % 2 ? "f64" : "f32"));
            cr_expect(cell_is(r.published, row, "input", curve < 12 ? "smooth" : "constant"));
            cr_expect_eq(cell_integer(r.published, row, "stage"), curve / 6 % 2 ? 3 : 2);
            check_row(&r, row, curve);
            bool adaptive = cell_is(r.published, row, "variant", "nr-adaptive");
            cr_expect_eq(cell_integer(r.published, row, "samples"), adaptive ? 0 : 6);
            cr_expect_eq(cell_integer(r.published, row, "samples_without_start"), adaptive ? 6 : 0);
        }
    }
    cr_expect_eq(row, table_rows(r.published));
    end_run(&r);
}

static void add_raw(table *raw, int64_t k, bool started, double condition, bool below_floor,
                    double value)
{
    table_integer(raw, 0);
    table_integer(raw, k);
    table_boolean(raw, started);
    table_boolean(raw, started && value < 1);
    table_real(raw, condition);
    table_boolean(raw, below_floor);
    for (int i = 0; i < 6; i++)
        if (started)
            table_real(raw, value);
        else
            table_missing(raw);
}

/* Infinities and NaN reach the published rows; a sample without a start is left out and counted,
 * one without a reference is only counted. */
Test(convergence_curves, nothing_is_dropped_in_silence)
{
    partial_run r;
    prepare_run(&r, &convergence_curves,
                "--input smooth --stage 3 --samples 4 --iterations 2 --variant nr-paper "
                "--dtype f64 --sampling pool");
    static const double values[3][3] = {{0.5, INFINITY, 2}, {0x1p-10, NAN, 2}, {1e-3, 1.001e-3, 5}};
    for (int sample = 0; sample < 3; sample++)
        for (int k = 0; k < 3; k++)
            add_raw(r.raw, k, true, sample + 1, sample == 1, values[k][sample]);
    add_raw(r.raw, 0, false, INFINITY, true, 0);
    finish_run(&r);
    const table *t = r.published;
    cr_assert_eq(table_rows(t), 3);
    cr_expect(cell_real(t, 0, "residual_mean") == INFINITY &&
              cell_real(t, 0, "residual_min") == 0.5 &&
              cell_real(t, 0, "residual_max") == INFINITY);
    cr_expect(isnan(cell_real(t, 1, "residual_mean")) && isnan(cell_real(t, 1, "residual_min")) &&
              isnan(cell_real(t, 1, "residual_max")) && !cell_missing(t, 1, "residual_max"));
    cr_expect_eq(cell_integer(t, 0, "samples"), 3);
    cr_expect_eq(cell_integer(t, 0, "samples_without_start"), 1);
    cr_expect_eq(cell_integer(t, 0, "samples_converged"), 1);
    cr_expect_eq(cell_integer(t, 0, "samples_below_floor"), 2, "one of them without a start");
    cr_expect_eq(cell_real(t, 0, "condition_median"), 2.5, "of 1, 2, 3, inf");
    cr_expect(cell_integer(t, 0, "samples_on_range") == 0 &&
              cell_integer(t, 1, "samples_on_range") == 1);
    cr_expect_eq(cell_integer(t, 2, "samples_on_range"), 1, "1e-3 is, 1.001e-3 is not");
    cr_expect(near(cell_real(t, 2, "residual_mean"), 5.002001 / 3), "of those with a start: %.17g",
              cell_real(t, 2, "residual_mean"));
    end_run(&r);
}

/* A+ is cut where its own type cannot tell an eigenvalue from 0; the condition number is not. */
Test(convergence_curves, a_type_has_its_own_cut)
{
    partial_run r;
    write_pair_tokens("pair.npy");
    prepare_run(&r, &convergence_curves,
                "--input pair.npy --scale 1 --variant eig --sampling pool");
    run_points(&r);
    cr_assert_eq(table_rows(r.raw), 2);
    for (int64_t row = 0; row < 2; row++)
        cr_expect(cell_real(r.raw, row, "inverse_error") < 1e-3 &&
                      close_to(cell_real(r.raw, row, "condition"), 2e6, 0.1),
                  "%s: %g, condition %g", row ? "f64" : "f32",
                  cell_real(r.raw, row, "inverse_error"), cell_real(r.raw, row, "condition"));
    end_run(&r);
}

/* From where a guard stops an iteration its rows are those of the iterate that it returned to. */
Test(convergence_curves, a_guarded_iteration_repeats_what_it_returned)
{
    partial_run r;
    prepare_run(&r, &convergence_curves,
                "--input photos --stage 3 --samples 1 --sampling pool --scale 0.01 --dtype f32 "
                "--iterations 60 --variant nystromformer");
    run_points(&r);
    const landmark_sweep *draws = r.state;
    double *tokens;
    atn_context *context = make_context();
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NYSTROMFORMER);
    atn_inverse_info info;
    bottleneck b = bottleneck_create(ATN_F32, draws->points[0].m);
    desc.iterations = 60;
    cr_assert_eq(landmark_sweep_tokens(draws, &draws->points[0], &tokens), EXIT_PASS);
    cr_assert_eq(bottleneck_from_tokens(&b, draws, &draws->points[0], context, tokens, NULL),
                 EXIT_PASS);
    cr_assert_eq(bottleneck_invert(&b, context, &desc, &info, NULL), EXIT_PASS);
    cr_assert(info.stop == ATN_STOP_DIVERGED && info.iterations < 60);
    for (int64_t k = info.iterations + 1; k <= 60; k++)
        cr_expect_eq(cell_real(r.raw, k, "residual"), cell_real(r.raw, info.returned, "residual"),
                     "k=%" PRId64 ": %g, of X_%d %g", k, cell_real(r.raw, k, "residual"),
                     info.returned, cell_real(r.raw, info.returned, "residual"));
    bottleneck_free(&b);
    free(tokens);
    atn_context_free(context);
    end_run(&r);
}
