/* SPDX-License-Identifier: BSD-3-Clause */
/* convergence/precision: its results for curves made by hand, for the closed form, and for the
 * library's runs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include <linear_algebra.h>
#include <newton.h>

#include "common/experiment.h"
#include "common/median.h"
#include "common/report.h"
#include "convergence/precision.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/matrices.h"

TestSuite(convergence_precision, .init = scratch_begin, .fini = scratch_end);

static const experiment *const e = &convergence_precision;

Test(convergence_precision, curves_by_hand)
{
    double r[30];
    for (int k = 0; k < 30; k++)
        r[k] = k <= 7 ? pow(2, -k) : pow(2, k - 14); /* least at 7, tenfold from 11 on */
    precision_curve c = precision_judge(30, r, 0x1p-8);
    cr_expect(c.best == 7 && c.floor == r[7] && c.divergence == 11 && c.fixed == r[20] &&
                  c.law_iteration == 11 && fabs(c.law_floor - 0.14 / 16) < 1e-15,
              "%d %g %d %g %g %g", c.best, c.floor, c.divergence, c.fixed, c.law_iteration,
              c.law_floor);
    r[9] = NAN;
    cr_expect_eq(precision_judge(30, r, 0x1p-8).divergence, 9, "NaN has diverged");
    c = precision_judge(9, r, 0x1p-24);
    cr_expect(c.best == 7 && c.divergence == -1 && isinf(c.fixed) && c.law_iteration == 27);
    r[8] = r[7];
    cr_expect_eq(precision_judge(9, r, 1).best, 7, "the first of equals");
    r[8] = 10 * r[7];
    cr_expect_eq(precision_judge(9, r, 1).divergence, 8, "ten times is tenfold");
    cr_expect_eq(precision_judge(1, r, 1).best, 0);
}

Test(convergence_precision, rises_by_hand)
{
    double values[] = {5, 4, 4.5, 3, 7, NAN};
    cr_expect_eq(precision_first_rise(6, values, 0), 2);
    cr_expect_eq(precision_first_rise(6, values, 0.5), 4, "a rise of the allowance is none");
    cr_expect_eq(precision_first_rise(6, values, 5), 5, "NaN is a rise");
    cr_expect_eq(precision_first_rise(2, values, 0), -1);
    cr_expect_eq(precision_first_rise(1, values, 0), -1);
}

/* 10 m 2^-53 |A|_2, of either sign of the largest eigenvalue. */
Test(convergence_precision, negative_eigenvalues_are_beyond_rounding)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        const double noise = 10 * 4 * 0x1p-53 * 3;
        const double lambda[] = {3 * sign, -0.999 * noise, -1.001 * noise, 1.001 * noise};
        cr_expect_eq(precision_count_negative(4, lambda), sign > 0 ? 1 : 2, "%d", sign);
    }
    cr_expect_eq(precision_count_negative(2, (double[]){0, 0}), 0);
}

Test(convergence_precision, medians)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, with_nan[] = {NAN, 1, 2};
    cr_expect_eq(median(3, odd), 2);
    cr_expect(even[0] == 4 && median(4, even) == 2.5 && even[0] == 1, "it sorts");
    cr_expect_eq(median(3, with_nan), 2);
}

/* ---- Runs ---- */

typedef struct {
    program_options s;
    landmark_sweep *sweep;
    int64_t points;
    atn_context *context;
    table *raw, *tables[3];
} whole_run;

static int prepare(whole_run *r, const char *options)
{
    void *state = NULL;
    cr_assert_eq(parse_options(&r->s, e, options), EXIT_PASS);
    int code = e->prepare(&r->s, &state, &r->points);
    r->sweep = state;
    return code;
}

/* The sweep keeps a pointer to r->s. */
static void run_all(whole_run *r, const char *options)
{
    cr_assert_eq(prepare(r, options), EXIT_PASS);
    r->context = make_context();
    r->raw = table_create(e->raw_columns, e->raw_column_count);
    for (int i = 0; i < 3; i++)
        r->tables[i] = table_create(e->outputs[i].columns, e->outputs[i].column_count);
    for (int64_t point = 0; point < r->points; point++)
        cr_expect_eq(e->run(r->sweep, point, r->context, r->raw), EXIT_PASS);
    cr_assert(freopen("stdout.txt", "w", stdout));
    cr_expect_eq(e->finish(&r->s, r->sweep, r->raw, r->tables), EXIT_PASS);
}

static void run_free(whole_run *r)
{
    for (int i = 0; i < 3; i++)
        table_free(r->tables[i]);
    table_free(r->raw);
    atn_context_free(r->context);
    e->release(r->sweep);
    options_free(&r->s);
}

/* The row of an input in a precision (first sample). */
static int64_t find(const table *t, const char *given, const char *precision)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "input", given) && cell_is(t, row, "precision", precision))
            return row;
    cr_assert_fail("no row of %s in %s", given, precision);
    return -1;
}

/* Early residuals are those of the closed form, for A rounded to each precision. */
Test(convergence_precision, the_first_residuals_are_the_filters)
{
    enum { M = 16 };
    static const struct {
        const char *name;
        atn_storage storage;
        double u;
    } types[] = {{"f64", ATN_STORAGE_NATIVE, 0x1p-53},
                 {"f32", ATN_STORAGE_NATIVE, 0x1p-24},
                 {"tf32", ATN_STORAGE_TF32, 0x1p-11},
                 {"f16", ATN_STORAGE_F16, 0x1p-11},
                 {"bf16", ATN_STORAGE_BF16, 0x1p-8}};
    whole_run r;
    run_all(&r, "--input smooth,iid --m 16 --samples 1 --quick");
    for (int64_t point = 0; point < 2; point++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            const char *given = point ? "iid" : "smooth";
            double *a, b[M * M], lambda[M];
            cr_assert_eq(landmark_sweep_matrix(r.sweep, &r.sweep->points[point], r.context, &a),
                         EXIT_PASS);
            for (int i = 0; i < M * M; i++) {
                float narrow = (float)a[i];
                atn_storage_round(types[t].storage, 1, &narrow);
                b[i] = t == 0 ? a[i] : (double)narrow;
            }
            free(a);
            ref_eigenvalues(M, b, lambda, NULL, NULL);
            double alpha = 1.8 / pow(ref_norm1(M, b), 2);
            int64_t row = find(r.tables[1], given, types[t].name);
            for (int k = 0; k < 4; k++) {
                double want = ref_filter_residual(M, lambda, alpha, 0, k);
                double got = cell_real(r.tables[1], row + k, "residual");
                cr_expect(cell_integer(r.tables[1], row + k, "iteration") == k &&
                              fabs(got - want) <= 10 * M * (k + 1) * types[t].u,
                          "%s %s k=%d: %g, expected %g", given, types[t].name, k, got, want);
            }
            row = find(r.tables[0], given, types[t].name);
            double condition = lambda[0] / fabs(lambda[M - 1]);
            cr_expect_eq(cell_real(r.tables[0], row, "u"), types[t].u);
            cr_expect(fabs(cell_real(r.tables[0], row, "condition") / condition - 1) < 1e-9);
            cr_expect_eq(cell_integer(r.tables[0], row, "last"), -2 * ilogb(types[t].u) + 20);
        }
    run_free(&r);
}

/* The columns of a row, recomputed from its curve. */
static void check_row(const whole_run *r, int64_t row)
{
    const table *t = r->tables[0], *curves = r->tables[1];
    const char *given = cell_text(t, row, "input"), *precision = cell_text(t, row, "precision");
    int64_t first = find(curves, given, precision), k = 0, best = 0;
    int64_t stopped = cell_integer(t, row, "stop_iteration");
    for (; first + k < table_rows(curves) && cell_integer(curves, first + k, "iteration") == k; k++)
        if (cell_real(curves, first + k, "residual") < cell_real(curves, first + best, "residual"))
            best = k;
    double floor = cell_real(curves, first + best, "residual"), u = cell_real(t, row, "u");
    cr_expect(cell_integer(t, row, "best_iteration") == best &&
                  cell_real(t, row, "floor") == floor &&
                  cell_real(t, row, "floor_over_law") == floor / (0.14 * sqrt(u)) &&
                  cell_real(t, row, "iteration_minus_law") == (double)best + log2(u) - 3,
              "%s %s: k* %ld, expected %ld", given, precision,
              (long)cell_integer(t, row, "best_iteration"), (long)best);
    cr_expect(
        cell_real(t, row, "stop_residual") == cell_real(curves, first + stopped, "residual") &&
            stopped <= cell_integer(t, row, "stop_steps") &&
            cell_real(t, row, "stop_over_floor") >= 1 && cell_real(t, row, "stop_over_floor") < 8,
        "%s %s: stopped at X_%ld, %g times the floor", given, precision, (long)stopped,
        cell_real(t, row, "stop_over_floor"));
    cr_expect_eq(cell_real(t, row, "t20_over_floor"),
                 cell_real(curves, first + 20, "residual") / floor);
    bool overflows = !cell_missing(t, row, "overflow");
    cr_expect_eq(cell_integer(t, row, "last"), overflows ? k : k - 1);
    cr_expect(!overflows || cell_integer(t, row, "overflow") == k);
}

Test(convergence_precision, rows_sum_up_their_curves)
{
    whole_run r;
    run_all(&r, "--input photos,smooth,duplicates --m 49 --samples 1 --quick");
    const table *t = r.tables[0];
    cr_assert_eq(table_rows(t), 15);
    int overflows = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool duplicates = cell_is(t, row, "input", "duplicates");
        check_row(&r, row);
        overflows += !cell_missing(t, row, "overflow");
        cr_expect_eq(cell_boolean(t, row, "coincident"), duplicates);
        cr_expect(!duplicates || cell_integer(t, row, "rank") <= 49 - 12, "rank %ld",
                  (long)cell_integer(t, row, "rank"));
        cr_expect_eq(cell_integer(t, row, "rank") < 49,
                     cell_real(t, row, "condition") * 49 * cell_real(t, row, "u") >= 1 - 1e-6,
                     "a small eigenvalue is one of the null space");
        cr_expect_str_eq(cell_text(t, row, "stop"), "rounding");
        cr_expect_str_eq(cell_text(t, row, "status"), "ATN_OK");
    }
    cr_expect_geq(overflows, 2);
    int64_t bf16 = find(t, "photos", "bf16"), f64 = find(t, "photos", "f64");
    cr_expect(cell_integer(t, bf16, "divergence") < 36 && cell_real(t, bf16, "t20_over_floor") > 2);
    cr_expect(cell_real(t, f64, "t20_over_floor") > 1e3, "20 steps are few in f64");
    cr_expect(cell_integer(t, bf16, "negative") > 0 && cell_integer(t, f64, "negative") == 0);
    cr_expect_eq(cell_integer(t, find(t, "duplicates", "f64"), "negative"), 0, "zeros are none");
    cr_expect(cell_integer(t, bf16, "residual_rise") > 5, "monotone at first (Prop. 2)");
    run_free(&r);
}

Test(convergence_precision, the_summary_counts_rows)
{
    whole_run r;
    run_all(&r, "--input photos,iid,duplicates --m 16 --samples 2 --quick");
    const table *t = r.tables[2], *rows = r.tables[0];
    int64_t total = 0, singular = 0, rises = 0, error_rises = 0, within = 0;
    double largest = 0, low = INFINITY;
    for (int64_t row = 0; row < table_rows(rows); row++) {
        int64_t rise = cell_integer(rows, row, "residual_rise"); /* missing: the least integer */
        singular += cell_integer(rows, row, "rank") < 16;
        rises += rise > 0 && rise <= cell_integer(rows, row, "best_iteration");
        rise = cell_integer(rows, row, "inverse_error_rise");
        error_rises += rise > 0 && rise <= cell_integer(rows, row, "best_iteration");
        double ratio = cell_real(rows, row, "floor_over_law");
        within += ratio <= 3 && 3 * ratio >= 1;
        largest = fmax(largest, cell_real(rows, row, "stop_over_floor"));
        low = fmin(low, cell_real(rows, row, "floor_over_law"));
    }
    for (int64_t row = 0; row < table_rows(t); row++) {
        bool each = !cell_is(t, row, "precision", "all");
        bool all = cell_is(t, row, "matrices", "all");
        total += each && !all ? cell_integer(t, row, "count") : 0;
        if (each || !all)
            continue;
        cr_expect_eq(cell_integer(t, row, "count"), 30);
        cr_expect_eq(cell_integer(t, row, "singular"), singular);
        cr_expect_eq(cell_integer(t, row, "residual_rises"), rises);
        cr_expect_eq(cell_integer(t, row, "inverse_error_rises"), error_rises);
        cr_expect(fabs(cell_real(t, row, "within_3") - (double)within / 30) < 1e-15);
        cr_expect_eq(cell_real(t, row, "stop_over_floor_max"), largest);
        cr_expect_eq(cell_real(t, row, "floor_over_law_min"), low);
    }
    cr_expect_eq(total, 30, "the groups are disjoint: %ld", (long)total);
    run_free(&r);
}

Test(convergence_precision, which_precisions)
{
    whole_run r;
    run_all(&r, "--input iid --m 4 --quick --dtype f32 --storage bf16,native");
    cr_expect_eq(table_rows(r.tables[0]), 2);
    cr_expect_str_eq(cell_text(r.tables[0], 0, "precision"), "f32");
    cr_expect_str_eq(cell_text(r.tables[0], 1, "precision"), "bf16");
    run_free(&r);
    run_all(&r, "--input iid --m 4 --quick --dtype f64 --samples 2 --seed 2,1");
    cr_expect_eq(table_rows(r.tables[0]), 4);
    cr_expect_eq(table_rows(r.tables[1]), -2 * -53 + 21, "of the first sample and seed alone");
    run_free(&r);
    whole_run none = {0};
    capture();
    cr_expect_eq(prepare(&none, "--input iid --m 4 --dtype f64 --storage bf16"), EXIT_USAGE);
    cr_expect(is_one_line_with(captured(), "--storage"));
    e->release(none.sweep);
    options_free(&none.s);
}
