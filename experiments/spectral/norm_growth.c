/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT (IJCV) Fig. 6b: the spectral norm of A^-1 against m, with and without normalisation, and
 * that of the iterate that replaces A^-1 in the papers. */
#include "spectral/norm_growth.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/fit.h"
#include "common/report.h"
#include "registry.h"
#include "spectral/matrices.h"

/* ---- One matrix ---- */

bool growth_below_floor(int64_t m, double lambda_min, double lambda_max)
{
    return !(lambda_min >= (double)m * atn_dtype_roundoff(ATN_F64) * lambda_max);
}

double growth_inverse_norm(int64_t m, double lambda_min, double lambda_max)
{
    if (growth_below_floor(m, lambda_min, lambda_max))
        return 1 / (2 * (double)m * atn_dtype_roundoff(ATN_F64) * lambda_max);
    return 1 / lambda_min;
}

double growth_iterate_cap(double norm1)
{
    return 0.6381726863 * sqrt(ldexp(1, PAPER_STEPS + 1)) / norm1;
}

/* How far |X_20| may exceed the cap: by 0.31/N = 3e-7 (growth_iterate_cap), and by rounding. Each
 * step rounds X by about m u |X|, and each later step at most doubles that error, while |X| itself
 * grows to the cap, sqrt(N) times the start. This adds up to a few sqrt(N) m u; the bound N m u
 * that is allowed is far larger, yet only 2e-6 at m = 16384. */
static double cap_allowance(int64_t m)
{
    return 1e-6 + ldexp((double)m, PAPER_STEPS) * atn_dtype_roundoff(ATN_F64);
}

/* scaled = R A R, R = diag(root). */
static void scale_both_sides(int64_t m, const double *a, const double *root, double *scaled)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            scaled[i * m + j] = a[i * m + j] * (root[i] * root[j]);
}

static int measure_exact(int64_t m, const double *a, const double *root, double *scaled,
                         growth_norms *norms)
{
    int code = checked_ends(m, a, &norms->lambda_min, &norms->lambda_max);
    scale_both_sides(m, a, root, scaled);
    code = exit_worst(code, checked_ends(m, scaled, &norms->normalised_lambda_min,
                                         &norms->normalised_lambda_max));
    norms->pinv_norm = growth_inverse_norm(m, norms->lambda_min, norms->lambda_max);
    norms->normalised_norm =
        growth_inverse_norm(m, norms->normalised_lambda_min, norms->normalised_lambda_max);
    norms->pinv_below_floor = growth_below_floor(m, norms->lambda_min, norms->lambda_max);
    norms->normalised_below_floor =
        growth_below_floor(m, norms->normalised_lambda_min, norms->normalised_lambda_max);
    return code;
}

/* inverse_root: the diagonal of D^-1/2. */
static int measure_iterate(atn_context *context, int64_t m, double *a, const double *inverse_root,
                           double *scaled, growth_norms *norms)
{
    double *x = must_allocate((size_t)m, (size_t)m * sizeof *x);
    int code = make_iterate(context, m, a, x);
    if (code == EXIT_PASS) {
        code = checked_norm(m, x, &norms->iterate_norm);
        scale_both_sides(m, x, inverse_root, scaled);
        code = exit_worst(code, checked_norm(m, scaled, &norms->normalised_iterate_norm));
    }
    free(x);
    return code;
}

int growth_measure(atn_context *context, int64_t m, double *a, growth_norms *norms)
{
    double *d = must_allocate((size_t)m, sizeof *d);
    double *scaled = must_allocate((size_t)m, (size_t)m * sizeof *scaled);
    memset(norms, 0, sizeof *norms);
    norms->d_min = INFINITY;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < m; j++)
            d[i] += a[i * m + j];
        norms->d_min = fmin(norms->d_min, d[i]);
        norms->d_max = fmax(norms->d_max, d[i]);
    }
    norms->iterate_cap = growth_iterate_cap(norms->d_max);
    for (int64_t i = 0; i < m; i++)
        d[i] = sqrt(d[i]);
    int code = measure_exact(m, a, d, scaled, norms);
    for (int64_t i = 0; i < m; i++)
        d[i] = 1 / d[i];
    code = exit_worst(code, measure_iterate(context, m, a, d, scaled, norms));
    if (code != EXIT_ENVIRONMENT &&
        !(norms->iterate_norm <= norms->iterate_cap * (1 + cap_allowance(m)))) {
        report_error("|X_%d|_2 = %.17g of a %" PRId64 "x%" PRId64 " matrix, expected at most %.17g",
                     (int)PAPER_STEPS, norms->iterate_norm, m, m, norms->iterate_cap);
        code = EXIT_CHECK;
    }
    free(scaled);
    free(d);
    return code;
}

/* The precision in bits, enough for lambda_min = 2^-400 lambda_max. */
enum { CERTIFY_BITS = 1024 };

static void copy_enclosure(const ref_enclosure *from, ref_enclosure *to, double *norm,
                           bool *below_floor)
{
    *to = *from;
    if (!from->certified)
        return;
    *norm = from->lower + (from->upper - from->lower) / 2;
    *below_floor = false;
}

int growth_certify(int64_t m, int64_t dim, const double *landmarks, double scale,
                   growth_norms *norms)
{
    ref_exact_matrix a = {.m = m, .d = dim, .tokens = landmarks, .scale = scale};
    ref_certified_spectrum s;
    atn_status status = ref_certify_spectrum(&a, CERTIFY_BITS, &s);
    if (status < 0) {
        report_error("certifying a %" PRId64 "x%" PRId64 " matrix: %s", m, m,
                     atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    norms->singular = status == ATN_SINGULAR;
    copy_enclosure(&s.inverse_norm, &norms->pinv, &norms->pinv_norm, &norms->pinv_below_floor);
    copy_enclosure(&s.normalised_norm, &norms->normalised, &norms->normalised_norm,
                   &norms->normalised_below_floor);
    return EXIT_PASS;
}

/* ---- norm_growth.csv ---- */

#define ROW(X)                                                                                     \
    X(TEXT, input, "", "where the tokens come from", input_name(p->in))                            \
    X(INTEGER, m, "", "number of landmarks: A is m x m", p->m)                                     \
    X(TEXT, sampling, "", "how landmarks come from tokens (attnum list samplings)",                \
      sampling_name(p->sampling))                                                                  \
    X(INTEGER, sample, "", "which sample of the input, from 0", p->sample)                         \
    X(REAL, lambda_min, "",                                                                        \
      "the smallest eigenvalue of A in f64, by dsyevd, checked by dsyevr; noise below m u "        \
      "lambda_max",                                                                                \
      norms->lambda_min)                                                                           \
    X(REAL, lambda_max, "", "the largest eigenvalue of A", norms->lambda_max)                      \
    X(REAL, pinv_norm, "",                                                                         \
      "|A^-1|_2 = 1/lambda_min; where a norm of the row is certified, the middle of "              \
      "pinv_lower and pinv_upper; otherwise, where lambda_min < m u lambda_max, a lower "          \
      "bound, 1/(2 m u lambda_max), if what the solver and the rounding of the kernel's "          \
      "entries move lambda_min by stays below m u lambda_max, which is not certified; "            \
      "such a bound, too, where `singular`, as the norm is infinite; u = 2^-53",                   \
      norms->pinv_norm)                                                                            \
    X(REAL, normalised_norm, "",                                                                   \
      "|D^-1/2 A^-1 D^-1/2|_2 = 1/lambda_min(D^1/2 A D^1/2), D = diag(A 1); certified, or "        \
      "a lower bound, in the same way where that matrix is below the floor",                       \
      norms->normalised_norm)                                                                      \
    X(REAL, iterate_norm, "", "|X_20|_2, X_20 of nr-paper in f64; may be far from |A^-1|_2",       \
      norms->iterate_norm)                                                                         \
    X(REAL, normalised_iterate_norm, "", "|D^-1/2 X_20 D^-1/2|_2", norms->normalised_iterate_norm) \
    X(REAL, d_min, "", "the smallest row sum of A", norms->d_min)                                  \
    X(REAL, d_max, "", "the largest row sum of A: |A|_1", norms->d_max)                            \
    X(BOOLEAN, below_floor, "",                                                                    \
      "pinv_norm or normalised_norm is a lower bound only; pinv_below_floor and "                  \
      "normalised_below_floor say which",                                                          \
      norms->pinv_below_floor || norms->normalised_below_floor)                                    \
    X(REAL, normalised_lambda_min, "", "the smallest eigenvalue of D^1/2 A D^1/2",                 \
      norms->normalised_lambda_min)                                                                \
    X(REAL, normalised_lambda_max, "", "the largest eigenvalue of D^1/2 A D^1/2",                  \
      norms->normalised_lambda_max)                                                                \
    X(REAL, iterate_cap, "",                                                                       \
      "0.638 sqrt(2^21) / |A|_1: what |X_20|_2 cannot exceed in exact arithmetic by more "         \
      "than 3e-7 of it, for any symmetric A",                                                      \
      norms->iterate_cap)                                                                          \
    X(INTEGER, seed, "", "the seed of the input", (int64_t)p->seed)                                \
    X(BOOLEAN, pinv_below_floor, "",                                                               \
      "lambda_min < m u lambda_max for A, and not certified: pinv_norm is a lower bound "          \
      "and left out of its fits",                                                                  \
      norms->pinv_below_floor)                                                                     \
    X(BOOLEAN, normalised_below_floor, "", "the same for D^1/2 A D^1/2 and normalised_norm",       \
      norms->normalised_below_floor)                                                               \
    X(REAL_IF, pinv_lower, "",                                                                     \
      "certified by ball arithmetic: |A^-1|_2 is at least this, for the exact kernel "             \
      "matrix of the landmarks (doubles, taken as exact), not that of entries rounded to "         \
      "f64; empty where nothing is below the floor, m exceeds --certify, two landmarks "           \
      "coincide, 1024 bits do not suffice, or the program was built without FLINT and Arb",        \
      norms->pinv.certified, norms->pinv.lower)                                                    \
    X(REAL_IF, pinv_upper, "", "|A^-1|_2 is at most this, in the same way", norms->pinv.certified, \
      norms->pinv.upper)                                                                           \
    X(REAL_IF, normalised_lower, "", "|D^-1/2 A^-1 D^-1/2|_2 is at least this, the same way",      \
      norms->normalised.certified, norms->normalised.lower)                                        \
    X(REAL_IF, normalised_upper, "", "|D^-1/2 A^-1 D^-1/2|_2 is at most this, the same way",       \
      norms->normalised.certified, norms->normalised.upper)                                        \
    X(INTEGER_IF, certified_bits, "", "the precision that certified the row", certified,           \
      norms->pinv.bits)                                                                            \
    X(BOOLEAN, singular, "",                                                                       \
      "certified: two landmarks coincide, A has no inverse, and its norm is infinite; "            \
      "false also where nothing was to be certified",                                              \
      norms->singular)
static const column columns[] = {ROW(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* The largest m whose points are certified by default, which takes about a second. */
enum { USUAL_CERTIFY = 256 };

static void add_row(const landmark_point *p, const growth_norms *norms, table *to)
{
    bool certified = norms->pinv.certified || norms->normalised.certified;
    ROW(LIST_PUT)
}

/* Certifies the norms of a point where f64 cannot resolve them. */
static int certify(const landmark_sweep *sweep, const landmark_point *p, atn_context *context,
                   growth_norms *norms)
{
    const program_options *s = sweep->s;
    int64_t most = s->certify >= 0 ? s->certify : ref_certify_library() ? USUAL_CERTIFY : 0;
    if (p->m > most || !(norms->pinv_below_floor || norms->normalised_below_floor))
        return EXIT_PASS;
    double *landmarks, scale;
    int code = landmark_sweep_landmarks(sweep, p, context, &landmarks, &scale);
    if (p->sampling == SAMPLING_POOL && s->scale == ATN_SCALE_HEAD)
        scale = 0; /* 1/(2 sqrt(d)) itself, not the double nearest to it */
    if (code == EXIT_PASS)
        code = growth_certify(p->m, input_dim(p->in), landmarks, scale, norms);
    free(landmarks);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const landmark_sweep *sweep = state;
    const landmark_point *p = &sweep->points[point];
    growth_norms norms;
    double *a;
    int code = landmark_sweep_matrix(sweep, p, context, &a);
    if (code == EXIT_PASS)
        code = growth_measure(context, p->m, a, &norms);
    if (code == EXIT_PASS || code == EXIT_CHECK)
        code = exit_worst(code, certify(sweep, p, context, &norms));
    if (code == EXIT_PASS || code == EXIT_CHECK)
        add_row(p, &norms, raw);
    free(a);
    return code;
}

/* Above 256 a matrix costs seconds. */
static int64_t usual_samples(const program_options *s, int64_t m)
{
    static const int64_t samples[EFFORT_COUNT][2] = {
        [EFFORT_QUICK] = {2, 1}, [EFFORT_DEFAULT] = {5, 1}, [EFFORT_FULL] = {100, 100}};
    return samples[s->effort][m > 256];
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const int64_t quick[] = {4, 9, 16, 25, 36, 49, 64, 100, 144, 256, 0};
    static const int64_t usual[] = {4, 9, 16, 25, 36, 49, 64, 100, 144, 256, 441, 1024, 0};
    int code = landmark_sweep_open(s, s->effort == EFFORT_QUICK ? quick : usual, usual_samples,
                                   state, points);
    if (code == EXIT_PASS)
        code = landmark_sweep_vary_sampling(*state);
    *points = ((landmark_sweep *)*state)->count;
    return code;
}

/* ---- norm_growth_fit.csv ---- */

#define FIT_ROW(X)                                                                                     \
    X(TEXT, input, "", "where the tokens come from", name)                                             \
    X(TEXT, sampling, "", "how landmarks come from tokens", sampling)                                  \
    X(TEXT, quantity, "", "the fitted column of norm_growth.csv", quantity)                            \
    X(TEXT, law, "", "power: c m^p; exponential_sqrt: c exp(p sqrt(m))", growth_law_name(law))         \
    X(REAL_IF, exponent, "", "p, by least squares on the logarithms", found, fit.exponent)             \
    X(REAL_IF, std_error, "", "standard error of p, from the residuals", found, fit.std_error)         \
    X(REAL_IF, residual, "", "root mean square of log10(value / fit)", found, fit.residual)            \
    X(INTEGER, points, "",                                                                             \
      "rows fitted: those whose value is positive and not a lower bound (certified values are none); " \
      "an iterate is never one, but may be 0",                                                         \
      taken->count)                                                                                    \
    X(INTEGER_IF, m_min, "", "the smallest m fitted", taken->count > 0, (int64_t)least)                \
    X(INTEGER_IF, m_max, "", "the largest m fitted", taken->count > 0, (int64_t)most)
static const column fit_columns[] = {FIT_ROW(LIST_COLUMN)};
enum { FIT_COLUMNS = sizeof fit_columns / sizeof *fit_columns };

/* A fitted column, and the column that marks lower bounds. */
static const struct fitted_column {
    const char *quantity, *below_floor;
} fitted[] = {
    {"pinv_norm", "pinv_below_floor"},
    {"normalised_norm", "normalised_below_floor"},
    {"iterate_norm", NULL},
    {"normalised_iterate_norm", NULL},
};
enum { FITTED = sizeof fitted / sizeof *fitted };

/* The points of one input, sampling and quantity that are fitted. */
typedef struct {
    double *m, *y;
    int64_t count;
} growth_points;

static void collect_points(const table *raw, const char *name, const char *sampling,
                           const struct fitted_column *f, growth_points *taken)
{
    int m_column = table_column(raw, "m"), y_column = table_column(raw, f->quantity);
    taken->count = 0;
    for (int64_t row = 0; row < table_rows(raw); row++) {
        double y = table_get_real(raw, row, y_column);
        if (!cell_is(raw, row, "input", name) || !cell_is(raw, row, "sampling", sampling) ||
            !(y > 0) || (f->below_floor && cell_boolean(raw, row, f->below_floor)))
            continue;
        taken->m[taken->count] = (double)table_get_integer(raw, row, m_column);
        taken->y[taken->count++] = y;
    }
}

static void add_fit(table *to, const char *name, const char *sampling, const char *quantity,
                    growth_law law, const growth_points *taken)
{
    growth_fit fit = {0};
    double least = INFINITY, most = 0;
    bool found = fit_growth(law, taken->count, taken->m, taken->y, &fit);
    for (int64_t i = 0; i < taken->count; i++) {
        least = fmin(least, taken->m[i]);
        most = fmax(most, taken->m[i]);
    }
    FIT_ROW(LIST_PUT)
}

/* Prints how many rows f64 could not resolve, and how many of them were certified. */
static void print_certified_counts(const table *raw)
{
    int64_t certified = 0, bounds = 0, singular = 0;
    for (int64_t row = 0; row < table_rows(raw); row++) {
        certified += !cell_missing(raw, row, "certified_bits");
        bounds += cell_boolean(raw, row, "below_floor");
        singular += cell_boolean(raw, row, "singular");
    }
    const char *remedy = ref_certify_library()
                             ? " (see --certify)"
                             : ": this build has no FLINT and Arb to certify them";
    report_text("%" PRId64 " rows certified, %" PRId64 " with lower bounds only", certified,
                bounds);
    if (singular > 0)
        report_text(", %" PRId64 " of them singular", singular);
    report_text("%s\n", bounds > singular ? remedy : "");
}

static const char *const keys[] = {"input", "sampling"};
enum { KEYS = sizeof keys / sizeof *keys };

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    size_t rows = (size_t)table_rows(raw);
    growth_points taken = {must_allocate(rows, sizeof(double)), must_allocate(rows, sizeof(double)),
                           0};
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (table_row_is_first(raw, row, keys, KEYS))
            for (int j = 0; j < FITTED; j++) {
                const char *name = cell_text(raw, row, "input");
                const char *sampling = cell_text(raw, row, "sampling");
                collect_points(raw, name, sampling, &fitted[j], &taken);
                add_fit(tables[1], name, sampling, fitted[j].quantity, LAW_POWER, &taken);
                add_fit(tables[1], name, sampling, fitted[j].quantity, LAW_EXPONENTIAL, &taken);
            }
    free(taken.m);
    free(taken.y);
    print_certified_counts(raw);
    table_print(tables[1], table_rows(tables[1]), report_stream());
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"norm_growth", "Norms of the inverse of the bottleneck matrix against m.", columns, COLUMNS},
    {"norm_growth_fit", "Growth laws fitted to norm_growth.csv, lower bounds left out.",
     fit_columns, FIT_COLUMNS},
};

const experiment spectral_norm_growth = {
    .name = "spectral/norm-growth",
    .summary = "the norm of the inverse against m, with and without normalisation",
    .source = "SOFT (IJCV) Fig. 6b, Prop. 5, 6; S22, S23, S26",
    .example = "attnum run spectral/norm-growth --input smooth --m 4,16,64,256",
    .options = OPTIONS(OPTION_DEVICE, OPTION_INPUT, OPTION_GRID, OPTION_SAMPLES, OPTION_M,
                       OPTION_SCALE, OPTION_DISTANCE, OPTION_CERTIFY, OPTION_SAMPLING),
    .defaults =
        "inputs photos, trained:soft, trained:softmax, smooth, smooth:8, noisy, iid, iid:0.3, "
        "clusters; m = 4, 9, 16, 25, 36, 49, 64, 100, 144, 256, 441, 1024 (--quick: to 256), a file "
        "or a trained network without --m: the nearest it has to each, pooled on its grid, or in "
        "windows of consecutive tokens where no grid is known; pool, published and "
        "published-centred (without a grid: pool); "
        "5 samples, 1 for m > 256 (--quick: 2; "
        "--full: 100 for all m); --certify 256, 0 in a build without FLINT and Arb",
    .outputs = outputs,
    .output_count = 2,
    .plot = "spectral/norm_growth.gp",
    .prepare = prepare,
    .describe = landmark_sweep_describe,
    .weight = landmark_sweep_weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .replay = landmark_sweep_replay,
    .release = landmark_sweep_release,
};
