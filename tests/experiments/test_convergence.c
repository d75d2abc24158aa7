/* SPDX-License-Identifier: BSD-3-Clause */
/* The convergence experiments: iterates against the closed form, the starts against what theory
 * says of them, published rows against the raw ones. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <matrices.h>
#include <newton.h>
#include <ruler.h>

#include "common/experiment.h"
#include "common/npy.h"
#include "common/report.h"
#include "convergence/bottleneck.h"
#include "convergence/rounding.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(convergence, .init = scratch_begin, .fini = scratch_end);

/* ---- Running an experiment in parts ---- */

typedef struct {
    const experiment *e;
    program_options s;
    void *state;
    int64_t points;
    table *raw, *published;
} run;

static void prepare_run(run *r, const experiment *e, const char *options)
{
    *r = (run){.e = e};
    cr_assert_eq(parse_options(&r->s, e, options), EXIT_PASS);
    cr_assert_eq(e->prepare(&r->s, &r->state, &r->points), EXIT_PASS);
    r->raw = table_create(e->raw_columns ? e->raw_columns : e->outputs[0].columns,
                          e->raw_columns ? e->raw_column_count : e->outputs[0].column_count);
}

static void run_points(run *r)
{
    atn_context *context = make_context();
    for (int64_t point = 0; point < r->points; point++)
        cr_expect_eq(r->e->run(r->state, point, context, r->raw), EXIT_PASS, "point %" PRId64,
                     point);
    atn_context_free(context);
}

static void finish_run(run *r)
{
    r->published = table_create(r->e->outputs[0].columns, r->e->outputs[0].column_count);
    cr_assert(freopen("stdout.txt", "w", stdout));
    cr_assert_eq(r->e->finish(&r->s, r->state, r->raw, &r->published), EXIT_PASS);
}

static void end_run(run *r)
{
    r->e->release(r->state);
    options_free(&r->s);
    table_free(r->raw);
    table_free(r->published);
}

/* ---- The closed form ---- */

enum { STEPS = 20 };

typedef struct {
    int points;   /* all */
    int relative; /* above 1e-9 and within 1e-6 of the closed form */
    int excess;   /* above 1e-9 and not */
    double worst; /* rounding ratio of all that are not within 1e-6 */
} tally;

static void report(const tally *t, atn_dtype dtype)
{
    cr_log_info("%s: %d points; residual above 1e-9: %d within 1e-6 of the closed form, %d not; "
                "largest rounding ratio %.3g",
                atn_dtype_name(dtype), t->points, t->relative, t->excess, t->worst);
}

/* Iterates of one method on b against the closed form. */
static void check_method(const bottleneck *source, atn_inverse_method method, const char *name,
                         tally *t)
{
    double residuals[STEPS + 1], norms[STEPS + 1], estimates[STEPS + 1];
    atn_trace trace = {.capacity = STEPS + 1,
                       .values = {[ATN_METRIC_RESIDUAL] = residuals, [ATN_METRIC_NORM] = norms}};
    bottleneck b = *source;
    atn_inverse_desc desc = atn_inverse_defaults(method);
    double norm1 = ref_norm1(b.m, b.exact);
    if (method == ATN_INVERSE_NR)
        desc.alpha = 1.8 / (norm1 * norm1);
    atn_inverse_info info;
    atn_context *context;
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    cr_assert_eq(bottleneck_invert(&b, context, &desc, &info, &trace), EXIT_PASS);
    atn_context_free(context);
    double alpha = info.alpha;
    double ridge = bottleneck_round(b.dtype, desc.ridge);
    rounding_estimates(b.m, b.lambda, alpha, ridge, atn_dtype_roundoff(b.dtype), trace.length,
                       norms, estimates);
    for (int k = 0; k < trace.length; k++) {
        double want = ref_filter_residual(b.m, b.lambda, alpha, ridge, k);
        double difference = fabs(residuals[k] - want);
        t->points++;
        if (want > 1e-9 && difference <= 1e-6 * want) {
            t->relative++;
            continue;
        }
        double ratio = difference / estimates[k];
        t->excess += want > 1e-9;
        t->worst = fmax(t->worst, ratio);
        cr_expect(ref_judge(REF_ROUNDING, ratio) != REF_FAIL,
                  "%s %s %s k=%d: residual %.17g, closed form %.17g, ratio %.3g", name,
                  atn_inverse_name(method), atn_dtype_name(b.dtype), k, residuals[k], want, ratio);
    }
}

static void check_matrix(const bottleneck *b, const char *name, tally *t)
{
    static const atn_inverse_method methods[] = {ATN_INVERSE_NR, ATN_INVERSE_NR_PAPER,
                                                 ATN_INVERSE_NR_ADAPTIVE, ATN_INVERSE_NR_SOFT,
                                                 ATN_INVERSE_NR_SOFTPP};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        check_method(b, methods[i], name, t);
}

/* Prescribed spectra: n, mode and condition number of ref_latms_symmetric. */
static void check_spectra(atn_dtype dtype, double most_condition, tally *t)
{
    static const int sizes[] = {1, 2, 7, 49};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int mode = 1; mode <= 5; mode++)
            for (double condition = 100; condition <= most_condition; condition *= 100) {
                char name[64];
                snprintf(name, sizeof name, "n=%d mode=%d condition=%g", sizes[i], mode, condition);
                bottleneck b = bottleneck_create(dtype, sizes[i]);
                double *a = must_allocate((size_t)sizes[i], (size_t)sizes[i] * sizeof *a);
                cr_assert_eq(ref_latms_symmetric(sizes[i], mode, condition, 1, a, b.lambda), ATN_OK,
                             "%s", name);
                cr_assert_eq(bottleneck_from_matrix(&b, a), EXIT_PASS);
                check_matrix(&b, name, t);
                free(a);
                bottleneck_free(&b);
            }
}

/* A of inputs, where its condition number is at most the given one. Returns how many were. */
static int check_inputs(atn_dtype dtype, double most_condition, tally *t)
{
    run r;
    int used = 0;
    prepare_run(&r, &convergence_curves,
                "--input photos,smooth,noisy,iid,iid:0.3,clusters --samples 1");
    case_list list;
    static const int64_t stages[] = {1, 2, 3, 0};
    case_defaults defaults = {NULL, stages, false};
    cr_assert_eq(case_list_open(&r.s, &defaults, &list), EXIT_PASS);
    atn_context *context;
    cr_assert_eq(atn_context_create(NULL, &context), ATN_OK);
    for (int64_t point = 0; point < list.points; point++) {
        char name[128];
        double *tokens;
        case_draw draw = case_list_draw(&list, point);
        case_draw_describe(&draw, name, sizeof name);
        bottleneck b = bottleneck_create(dtype, draw.c->plan.landmarks);
        cr_assert_eq(case_draw_tokens(&draw, &tokens), EXIT_PASS);
        cr_assert_eq(bottleneck_from_tokens(&b, &draw, context, tokens, NULL), EXIT_PASS);
        if (bottleneck_largest(&b) <= most_condition * bottleneck_smallest(&b, false)) {
            used++;
            check_matrix(&b, name, t);
        }
        free(tokens);
        bottleneck_free(&b);
    }
    atn_context_free(context);
    case_list_free(&list);
    end_run(&r);
    return used;
}

Test(convergence, f64_residuals_follow_the_closed_form)
{
    tally t = {0};
    check_spectra(ATN_F64, 1e6, &t);
    cr_expect(check_inputs(ATN_F64, 1e6, &t) >= 10);
    report(&t, ATN_F64);
    cr_expect(t.relative > 5000 && t.excess == 0, "%d and %d of %d", t.relative, t.excess,
              t.points);
}

/* Where f32 follows the closed form to 1e-6, or the estimate of rounding explains it; also for
 * condition numbers beyond f32. */
Test(convergence, f32_residuals_stay_within_rounding)
{
    tally t = {0};
    check_spectra(ATN_F32, 1e4, &t);
    cr_expect(check_inputs(ATN_F32, INFINITY, &t) == 18);
    report(&t, ATN_F32);
    cr_expect(t.points > 1000);
}

/* An estimate that is never exceeded says nothing if it is large. */
Test(convergence, rounding_estimate_is_small_where_nothing_amplifies)
{
    double lambda[49], norms[STEPS + 1], estimates[STEPS + 1], alpha = 1.0 / (2 * 2);
    for (int i = 0; i < 49; i++)
        lambda[i] = 2 - i / 49.0; /* from 2 down to 1.02: r from 0 to 0.74 */
    for (int k = 0; k <= STEPS; k++) {
        norms[k] = 0;
        for (int i = 0; i < 49; i++)
            norms[k] = fmax(norms[k], ref_filter(alpha, k, lambda[i]));
    }
    rounding_estimates(49, lambda, alpha, 0, 0x1p-53, STEPS + 1, norms, estimates);
    for (int k = 0; k <= STEPS; k++)
        cr_expect(estimates[k] > 49 * 0x1p-53 && estimates[k] < 100 * 49 * 0x1p-53, "k=%d: %g", k,
                  estimates[k]);
}

/* r = -1: an error doubles in every step, and once it is of the size of the modes it explodes. */
Test(convergence, rounding_estimate_doubles_on_the_edge_of_convergence)
{
    double lambda = 1, norms[60] = {2}, estimates[60];
    rounding_estimates(1, &lambda, 2, 0, 0x1p-53, 60, norms, estimates);
    for (int k = 10; k < 40; k++)
        cr_expect(estimates[k] >= 1.9 * estimates[k - 1] && estimates[k] <= 2.1 * estimates[k - 1],
                  "k=%d", k);
    cr_expect(estimates[59] > 1, "%g", estimates[59]);
}

/* ---- Spectra ---- */

/* Of these the range of f32 ends at 3 u |A| = 7e-7, that of f64 at 1e-15. */
Test(convergence, ends_of_a_spectrum)
{
    static const double a[9] = {0.5, 0, 0, 0, -4, 0, 0, 0, 0x1p-24};
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
        bottleneck b = bottleneck_create((atn_dtype)dtype, 3);
        cr_assert(bottleneck_from_matrix(&b, a) == EXIT_PASS);
        double least = bottleneck_smallest(&b, false), in_range = bottleneck_smallest(&b, true);
        cr_expect(bottleneck_largest(&b) == 4 && least == 0x1p-24 &&
                      in_range == (dtype == ATN_F32 ? 0.5 : 0x1p-24),
                  "%s: %g, %g, %g", atn_dtype_name((atn_dtype)dtype), bottleneck_largest(&b), least,
                  in_range);
        bottleneck_free(&b);
    }
}

/* ---- Starts ---- */

static run initialisation;

static void run_initialisation(void)
{
    prepare_run(&initialisation, &convergence_initialisation, "--input smooth,iid");
    run_points(&initialisation);
}

/* Walks over the rows of a rule. */
static int64_t next_row(const table *t, int64_t row, const char *rule)
{
    for (row++; row < table_rows(t); row++)
        if (cell_is(t, row, "rule", rule))
            return row;
    return -1;
}

static const char *row_name(const table *t, int64_t row)
{
    static char name[128];
    snprintf(name, sizeof name, "%s m=%" PRId64 " %s %s", cell_text(t, row, "matrix"),
             cell_integer(t, row, "m"), cell_text(t, row, "rule"), cell_text(t, row, "dtype"));
    return name;
}

/* Known matrices have all row sums equal, or their largest eigenvalue in a block of that kind. */
static bool is_known(const table *t, int64_t row)
{
    return cell_missing(t, row, "stage");
}

Test(convergence, paper_start_annihilates_the_leading_eigenvector)
{
    run_initialisation();
    const table *t = initialisation.raw;
    int count = 0;
    for (int64_t row = -1; (row = next_row(t, row, "paper")) >= 0;) {
        bool f64 = cell_is(t, row, "dtype", "f64");
        if (!is_known(t, row))
            continue;
        count++;
        cr_expect(fabs(cell_real(t, row, "margin") + 1) <= (f64 ? 1e-13 : 1e-5), "%s: margin %.17g",
                  row_name(t, row), cell_real(t, row, "margin"));
        /* in f32 some u of rounding, doubled 20 times, have come near 1 */
        cr_expect(cell_real(t, row, "residual_t20") >= (f64 ? 0.999999 : 0.2), "%s: %g",
                  row_name(t, row), cell_real(t, row, "residual_t20"));
        cr_expect(cell_is(t, row, "status_t20", "not converged"), "%s", row_name(t, row));
        if (cell_is(t, row, "matrix", "identity")) {
            cr_expect_eq(cell_real(t, row, "residual_t20"), 1, "%s", row_name(t, row));
            cr_expect_eq(cell_real(t, row, "residual_t60"), 1, "%s", row_name(t, row));
        }
    }
    cr_expect_eq(count, 20);
    end_run(&initialisation);
}

Test(convergence, safe_start_repairs_it)
{
    run_initialisation();
    const table *t = initialisation.raw;
    for (int64_t row = -1; (row = next_row(t, row, "safe")) >= 0;) {
        if (is_known(t, row))
            cr_expect(fabs(cell_real(t, row, "margin") + 0.8) <= 1e-5, "%s: %g", row_name(t, row),
                      cell_real(t, row, "margin"));
        cr_expect(cell_real(t, row, "residual_t20") < 1e-3, "%s: %g", row_name(t, row),
                  cell_real(t, row, "residual_t20"));
        if (cell_is(t, row, "matrix", "identity")) {
            cr_expect(cell_real(t, row, "residual_t20") <= 1e-7, "%s", row_name(t, row));
            cr_expect(cell_is(t, row, "status_t20", "converged"), "%s", row_name(t, row));
        }
    }
    end_run(&initialisation);
}

/* As README has it: the circulant matrix, singular to f32, overflows by step 60 there; and not in
 * f64, nor the matrix of ones, whose entries are all sums of the same numbers in the same order. */
Test(convergence, noise_overflows_a_singular_matrix_in_f32)
{
    run_initialisation();
    const table *t = initialisation.raw;
    for (int64_t row = -1; (row = next_row(t, row, "safe")) >= 0;) {
        if (!is_known(t, row))
            continue;
        bool overflows =
            cell_is(t, row, "matrix", "circulant:5") && cell_is(t, row, "dtype", "f32");
        cr_expect_eq(cell_is(t, row, "status_t60", "overflowed"), overflows, "%s",
                     row_name(t, row));
        cr_expect_eq(cell_real(t, row, "residual_t60") == INFINITY, overflows, "%s",
                     row_name(t, row));
    }
    end_run(&initialisation);
}

/* In exact arithmetic the printed search ends at n = 0 if |A|_1 <= 2 and never otherwise; in
 * floating point it ends where c (r - 2) drowns in 1, and alpha is lost. */
Test(convergence, adaptive_start_exists_only_by_rounding)
{
    run_initialisation();
    const table *t = initialisation.raw;
    int by_rounding = 0;
    for (int64_t row = -1; (row = next_row(t, row, "adaptive")) >= 0;) {
        bool f64 = cell_is(t, row, "dtype", "f64");
        bool exists = cell_boolean(t, row, "search_exact");
        int64_t n = cell_integer(t, row, "search_n");
        cr_expect_eq(exists, cell_real(t, row, "norm1") <= 2, "%s", row_name(t, row));
        cr_expect(cell_boolean(t, row, "search_found"), "%s", row_name(t, row));
        cr_expect(exists ? n == 0 : n >= (f64 ? 47 : 18) && n <= (f64 ? 54 : 25), "%s: n %" PRId64,
                  row_name(t, row), n);
        if (exists)
            continue;
        by_rounding++;
        cr_expect(cell_real(t, row, "residual_t20") > (f64 ? 0.999 : 0.1), "%s: %g",
                  row_name(t, row), cell_real(t, row, "residual_t20"));
    }
    cr_expect_eq(by_rounding, 16);
    for (int64_t row = -1; (row = next_row(t, row, "adaptive-squared")) >= 0;)
        if (!is_known(t, row))
            cr_expect(!cell_boolean(t, row, "search_exact") &&
                          cell_real(t, row, "residual_t20") > 0.9,
                      "%s", row_name(t, row));
    end_run(&initialisation);
}

/* Three tokens at equal distances: A has 1 and a, and columns that sum to 1 + 2 a; A^2 has 1 + 2
 * a^2 and 2 a + a^2. The search through A has an answer if a <= 1/2, that through A^2 if a <= 1/4.
 */
Test(convergence, adaptive_start_exists_on_one_side_of_its_limits)
{
    static const double off_diagonal[] = {0.2499, 0.2501, 0.4999, 0.5001};
    for (int i = 0; i < 4; i++) {
        run r;
        double a = off_diagonal[i], tokens[9] = {0};
        int64_t shape[] = {3, 3};
        int seen = 0;
        tokens[0] = tokens[4] = tokens[8] = sqrt(-log(a) / 2);
        cr_assert_eq(npy_write(".", "simplex.npy", ATN_F64, 2, shape, tokens), EXIT_PASS);
        prepare_run(&r, &convergence_initialisation, "--input simplex.npy --scale 1 --dtype f64");
        run_points(&r);
        for (int64_t row = 0; row < table_rows(r.raw); row++) {
            bool square = cell_is(r.raw, row, "rule", "adaptive-squared");
            if (!cell_is(r.raw, row, "matrix", "simplex.npy") ||
                !(square || cell_is(r.raw, row, "rule", "adaptive")))
                continue;
            cr_expect_eq(cell_boolean(r.raw, row, "search_exact"), a <= (square ? 0.25 : 0.5),
                         "%s, a = %g", cell_text(r.raw, row, "rule"), a);
            seen++;
        }
        cr_expect_eq(seen, 2);
        end_run(&r);
    }
}

/* margin is what its description says, and the codes' starts behave as published. */
Test(convergence, starts_of_the_published_codes)
{
    run_initialisation();
    const table *t = initialisation.raw;
    for (int64_t row = 0; row < table_rows(t); row++) {
        double largest = cell_real(t, row, "lambda_max");
        cr_expect_eq(cell_real(t, row, "margin"),
                     1 - cell_real(t, row, "alpha") * largest * largest, "%s", row_name(t, row));
        bool diverges = !(cell_real(t, row, "margin") > -1 + 1e-5);
        cr_expect(!diverges || cell_is(t, row, "status_t20", "not converged"), "%s",
                  row_name(t, row));
        cr_expect_eq(cell_missing(t, row, "search_found"),
                     cell_is(t, row, "rule", "paper") || cell_is(t, row, "rule", "safe") ||
                         cell_is(t, row, "rule", "soft") || cell_is(t, row, "rule", "optimal"),
                     "%s", row_name(t, row));
    }
    for (int64_t row = -1; (row = next_row(t, row, "softpp")) >= 0;) {
        cr_expect(cell_integer(t, row, "search_n") <= 8, "%s", row_name(t, row));
        if (cell_is(t, row, "matrix", "identity"))
            cr_expect_eq(cell_real(t, row, "residual_t60"), 1, "%s", row_name(t, row));
    }
    for (int64_t row = -1; (row = next_row(t, row, "soft")) >= 0;) {
        if (!cell_is(t, row, "matrix", "identity"))
            continue;
        cr_expect(fabs(cell_real(t, row, "lambda_max") - 1.01) < 1e-6, "%s", row_name(t, row));
        cr_expect(fabs(cell_real(t, row, "residual_t20") - 0.01 / 1.01) < 1e-6, "%s: 1 - 1 / 1.01",
                  row_name(t, row));
    }
    end_run(&initialisation);
}

/* ---- Inputs ---- */

/* A .npy file of 64 tokens of width 2, in f64. */
static void write_tokens(const char *name, double scale)
{
    enum { VALUES = 64 * 2, HEAD = 128 };
    double values[VALUES];
    char file[HEAD + sizeof values];
    for (int i = 0; i < VALUES; i++)
        values[i] = scale * sin(i);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    snprintf(file + 10, HEAD - 9, "%-117s\n",
             "{'descr': '<f8', 'fortran_order': False, 'shape': (64, 2), }");
    memcpy(file + HEAD, values, sizeof values);
    scratch_write(name, file, sizeof file);
}

/* Tokens that overflow f32 make an A of NaN: no test was met on it, and nothing converged. */
Test(convergence, no_search_succeeds_on_an_a_that_is_not_finite)
{
    run r;
    write_tokens("huge.npy", 1e39);
    prepare_run(&r, &convergence_initialisation, "--input huge.npy --dtype f32");
    run_points(&r);
    int searches = 0;
    for (int64_t row = 0; row < table_rows(r.raw); row++) {
        if (!cell_is(r.raw, row, "matrix", "huge.npy"))
            continue;
        bool searched = !cell_missing(r.raw, row, "search_found");
        searches += searched;
        cr_expect(isnan(cell_real(r.raw, row, "margin")), "%s", row_name(r.raw, row));
        cr_expect(cell_is(r.raw, row, "status_t20", "overflowed"), "%s", row_name(r.raw, row));
        cr_expect(cell_missing(r.raw, row, "search_n"), "%s", row_name(r.raw, row));
        cr_expect(!searched || !cell_boolean(r.raw, row, "search_found"), "%s: found",
                  row_name(r.raw, row));
    }
    cr_expect_eq(searches, 3);
    end_run(&r);
}

Test(convergence, two_files_of_one_name_are_refused)
{
    static const experiment *const both[] = {&convergence_curves, &convergence_initialisation};
    write_tokens("tokens.npy", 1);
    for (int i = 0; i < 2; i++) {
        run r = {.e = both[i]};
        cr_assert_eq(parse_options(&r.s, r.e, "--input tokens.npy,./tokens.npy"), EXIT_PASS);
        capture();
        int code = r.e->prepare(&r.s, &r.state, &r.points);
        const char *text = captured();
        cr_expect_eq(code, EXIT_USAGE, "%s: exit code %d", r.e->name, code);
        cr_expect(is_one_line_with(text, "./tokens.npy: another input is called tokens.npy too"),
                  "%s", text);
        r.e->release(r.state);
        options_free(&r.s);
    }
}

/* The command for a point makes that point again, as its last one. */
static void check_again(const run *r, int64_t point)
{
    static const char start[] = "attnum run ";
    char want[256], got[256];
    options_point picked;
    r->e->replay(r->state, point, &picked);
    char *command = options_replay(&r->s, r->e->name, r->e->options, &picked);
    cr_assert_eq(strncmp(command, start, strlen(start)), 0, "%s", command);
    run again;
    prepare_run(&again, r->e, command + strlen(start));
    r->e->describe(r->state, point, want, sizeof want);
    r->e->describe(again.state, again.points - 1, got, sizeof got);
    cr_expect_str_eq(got, want, "%s", command);
    const program_options *a = &again.s, *b = &r->s;
    cr_expect(a->scale_value == b->scale_value && a->iterations == b->iterations &&
                  a->distance == b->distance && a->alpha == b->alpha &&
                  a->grid_height == (strstr(want, ".npy") ? b->grid_height : 0) &&
                  a->variants.count == b->variants.count && a->dtype_count == b->dtype_count,
              "%s", command);
    free(command);
    end_run(&again);
}

Test(convergence, a_failing_point_can_be_run_again)
{
    static const struct {
        const experiment *e;
        const char *options;
        int64_t known;
    } rows[] = {
        {&convergence_curves,
         "--quick --input iid:0.3,tokens.npy --stage 3,1 --seed 7,3 --iterations 4 --variant "
         "nr,eig --alpha 0.1 --scale 0.3 --distance clamped --grid 4x16 --dtype f64",
         0},
        {&convergence_curves, "--quick", 0},
        {&convergence_initialisation, "--scale 1e-3 --seed 2", 10},
    };
    write_tokens("tokens.npy", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run r;
        prepare_run(&r, rows[i].e, rows[i].options);
        for (int64_t point = rows[i].known; point < r.points; point++)
            check_again(&r, point);
        options_point first;
        r.e->replay(r.state, 0, &first);
        cr_expect_eq(first.samples, 1, "known matrices are in every run");
        end_run(&r);
    }
}

/* ---- Published rows against raw rows ---- */

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

static void check_row(const run *r, int64_t row, int64_t curve)
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

Test(convergence, published_rows_are_those_of_the_raw_ones)
{
    run r;
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
Test(convergence, nothing_is_dropped_in_silence)
{
    run r;
    prepare_run(&r, &convergence_curves,
                "--input smooth --stage 3 --samples 4 --iterations 1 --variant nr-paper "
                "--dtype f64 --sampling pool");
    static const double values[2][3] = {{0.5, INFINITY, 2}, {0x1p-10, NAN, 2}};
    for (int sample = 0; sample < 3; sample++)
        for (int k = 0; k < 2; k++)
            add_raw(r.raw, k, true, sample + 1, sample == 1, values[k][sample]);
    add_raw(r.raw, 0, false, INFINITY, true, 0);
    finish_run(&r);
    const table *t = r.published;
    cr_assert_eq(table_rows(t), 2);
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
    end_run(&r);
}

/* ---- The whole experiment ---- */

static char *run_to_csv(const experiment *e, const char *options, const char *out, size_t *size)
{
    cr_assert_eq(run_experiment(e, options), EXIT_PASS);
    return read_csv(e, out, 0, size);
}

Test(convergence, csv_does_not_depend_on_threads)
{
    static const struct {
        const experiment *e;
        const char *options;
    } cases[] = {
        {&convergence_curves, "--input photos,iid --samples 3 --stage 1,3 --iterations 4"},
        {&convergence_initialisation, "--input smooth,iid --samples 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *csv[2];
        size_t sizes[2];
        for (int threads = 1; threads <= 2; threads++) {
            char options[256], out[16];
            snprintf(out, sizeof out, "out%d", threads);
            snprintf(options, sizeof options, "%s --threads %d --out %s", cases[i].options, threads,
                     out);
            csv[threads - 1] = run_to_csv(cases[i].e, options, out, &sizes[threads - 1]);
        }
        cr_expect(sizes[0] == sizes[1] && sizes[0] > 1000 && memcmp(csv[0], csv[1], sizes[0]) == 0,
                  "%s", cases[i].e->name);
        free(csv[0]);
        free(csv[1]);
    }
}
