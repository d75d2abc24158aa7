/* SPDX-License-Identifier: BSD-3-Clause */
/* How close S^ = K(Q,L) K(L,L)+ K(L,Q) is to S = K(Q,Q) for every way to take the landmarks L,
 * against the best matrix of rank m: SOFT (IJCV) section 3.2, Tab. 10, App. A. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include <linear_algebra.h>
#include <soft.h>

#include "common/median.h"
#include "common/random.h"
#include "common/report.h"
#include "registry.h"
#include "spectral/matrices.h"
#include "spectral/nystrom.h"
#include "spectral/samplers.h"

/* ---- Samplers ---- */

enum { VALUE_DIM = 32 };

/* How many draws a sampler gets. */
static int64_t draws_of(const program_options *s, const sampler *with)
{
    static const int64_t usual[EFFORT_COUNT] = {
        [EFFORT_QUICK] = 3, [EFFORT_DEFAULT] = 3, [EFFORT_FULL] = 20};
    return with->random ? usual[s->effort] : 1;
}

/* ---- sampling.csv ---- */

#define ROW(X)                                                                                     \
    X(TEXT, input, "", "where the tokens come from", input_name(data->p->in))                      \
    X(INTEGER, n, "", "number of tokens", data->n)                                                 \
    X(INTEGER, m, "", "number of landmarks", data->p->m)                                           \
    X(INTEGER, sample, "", "which sample of the input, from 0", data->p->sample)                   \
    X(TEXT, sampler, "",                                                                           \
      "pool: averages of windows; conv: convolution with weights ~ N(0, 1/(d k^2)), a "            \
      "stand-in for trained ones; random: m tokens uniformly; first: the first m tokens; "         \
      "kmeans++: seeds drawn by squared distance; kmeans: 10 Lloyd steps after them; "             \
      "leverage: by ridge leverage scores; rpcholesky: randomly pivoted Cholesky; greedy: "        \
      "pivoted Cholesky",                                                                          \
      with->name)                                                                                  \
    X(INTEGER, draw, "", "which draw of the sampler, from 0; the tokens are the same", draw)       \
    X(REAL, trace_error, "", "tr(S - S^) / tr(S), 0 if rounding made it negative", missed / n)     \
    X(REAL, spectral_error, "", "|S - S^|_2 / |S|_2", got->spectral / norm)                        \
    X(REAL, value_error, "", "|S V - S^ V|_F / |S V|_F, V ~ N(0, 1), 32 wide, seeded",             \
      got->values)                                                                                 \
    X(REAL, kernel_norm, "", "|S|_2; tr(S) = n", norm)                                             \
    X(REAL, best_trace_error, "",                                                                  \
      "the same for the best matrix of rank m (Eckart and Young): the sum of the "                 \
      "eigenvalues of S behind the m-th over tr(S)",                                               \
      trace / n)                                                                                   \
    X(REAL, best_spectral_error, "", "lambda_{m+1}(S) / lambda_1(S)", spectral / norm)             \
    X(REAL_IF, trace_ratio, "",                                                                    \
      "trace_error / best_trace_error; missing where the latter is rounding, n^2 u |S|_2 / "       \
      "tr(S) or less",                                                                             \
      trace > n * n * u * norm, missed / trace)                                                    \
    X(REAL_IF, spectral_ratio, "",                                                                 \
      "spectral_error / best_spectral_error; missing where the latter is n u or less",             \
      spectral > n * u * norm, got->spectral / spectral)                                           \
    X(REAL, kappa, "",                                                                             \
      "lambda_max(A) / lambda_min(A), A = K(L,L); where lambda_min < m u lambda_max that "         \
      "floor stands for it, 1/(m u); u = 2^-53",                                                   \
      got->lambda_max / fmax(got->lambda_min, floor))                                              \
    X(BOOLEAN, below_floor, "", "lambda_min(A) < m u lambda_max(A)", !(got->lambda_min >= floor))  \
    X(INTEGER, rank_f64, "", "eigenvalues of A above m 2^-53 lambda_max", got->rank_f64)           \
    X(INTEGER, rank_f32, "", "eigenvalues of A above m 2^-24 lambda_max", got->rank_f32)           \
    X(INTEGER, pivots, "",                                                                         \
      "landmarks that S^ is made of: those whose pivot in the Cholesky factor of A is "            \
      "above m u",                                                                                 \
      got->pivots)                                                                                 \
    X(REAL, lowest_eigenvalue, "",                                                                 \
      "lambda_min(S - S^), which is 0 or more but for rounding: S - S^ is semi-definite",          \
      got->lowest)                                                                                 \
    X(REAL, rounding, "",                                                                          \
      "what rounding can move the eigenvalues of S - S^ by, to first order: a bound",              \
      got->rounding)                                                                               \
    X(REAL, negative_ratio, "", "max(0, -lowest_eigenvalue) / rounding; above 1 the run fails",    \
      fmax(0, -got->lowest) / got->rounding)                                                       \
    X(REAL_IF, exact_error, "",                                                                    \
      "max |S - S^| over the rows of the tokens that are pivots, where S^ = S; missing if "        \
      "landmarks are no tokens",                                                                   \
      with->subset, got->exact)                                                                    \
    X(REAL_IF, exact_ratio, "", "exact_error / rounding; above 1 the run fails", with->subset,     \
      got->exact / got->rounding)                                                                  \
    X(INTEGER, seed, "", "the seed of input and samplers", (int64_t)data->p->seed)
static const column columns[] = {ROW(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- Points ---- */

static int add_points(landmark_sweep *sweep, uint64_t seed, const input *in, int64_t stage)
{
    static const int64_t usual[] = {49, 196}, quick[] = {16, 49};
    static const int64_t samples[EFFORT_COUNT] = {
        [EFFORT_QUICK] = 1, [EFFORT_DEFAULT] = 3, [EFFORT_FULL] = 10};
    const program_options *s = sweep->s;
    const int64_t *own = s->effort == EFFORT_QUICK ? quick : usual;
    const int64_t *m = s->landmarks.count > 0 ? s->landmarks.items : own;
    int count = s->landmarks.count > 0 ? s->landmarks.count : 2, code = EXIT_PASS;
    int64_t before = 0;
    for (int i = 0; i < count && code == EXIT_PASS; i++) {
        token_grid grid = stage_grid(in, stage);
        int64_t given = choose_stride(&grid, m[i]);
        if (given == before) /* a file may give the same number again */
            continue;
        before = given;
        code = landmark_sweep_add_stage(sweep, seed, in, stage, m[i], samples[s->effort]);
    }
    return code;
}

static int add_input(landmark_sweep *sweep, uint64_t seed, const input *in)
{
    const program_options *s = sweep->s;
    const int64_t own = s->effort == EFFORT_QUICK ? 3 : 2;
    const int64_t *stages = s->stages.count > 0 ? s->stages.items : &own;
    int count = s->stages.count > 0 && !input_is_file(in) ? s->stages.count : 1, code = EXIT_PASS;
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = add_points(sweep, seed, in, stages[i]);
    return code;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const char *const usual_inputs[] = {
        "photos",   "trained:softmax", "trained:sima", "smooth",
        "smooth:8", "clusters",        "iid:0.3",      NULL};
    int code = landmark_sweep_start(s, usual_inputs, state);
    landmark_sweep *sweep = *state;
    if (code == EXIT_PASS)
        code = refuse_large_files(&sweep->inputs, "spectral/sampling");
    for (int i = 0; i < s->seeds.count && code == EXIT_PASS; i++)
        for (int j = 0; j < sweep->inputs.count && code == EXIT_PASS; j++)
            code = add_input(sweep, (uint64_t)s->seeds.items[i], sweep->inputs.items[j]);
    *points = sweep->count;
    return code;
}

/* n^3 for eigenvalues, a few times per draw. An operation of n m^2 in long double costs some thirty
 * times as much. */
static double weight(const void *state, int64_t point)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    double n = (double)grid_tokens(&p->grid), m = (double)p->m;
    return n * n * n + 30 * n * m * m;
}

/* ---- What all samplers of a point are compared with ---- */

typedef struct {
    const landmark_sweep *sweep;
    const landmark_point *p;
    atn_context *context;
    int64_t n, dim;
    double *tokens, *s, *lambda, *values, *product; /* S, its eigenvalues, V, S V */
} point_data;

static void multiply_values(const point_data *data, const double *matrix, double *product)
{
    int n = (int)data->n;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, VALUE_DIM, n, 1, matrix, n,
                data->values, VALUE_DIM, 0, product, VALUE_DIM);
}

static int open_point(point_data *data)
{
    int64_t n = data->n;
    double s = kernel_scale(data->sweep->s, data->dim);
    data->tokens = must_allocate((size_t)n, (size_t)data->dim * sizeof(double));
    data->s = must_allocate((size_t)n, (size_t)n * sizeof(double));
    data->lambda = must_allocate((size_t)n, sizeof(double));
    data->values = must_allocate((size_t)n, VALUE_DIM * sizeof(double));
    data->product = must_allocate((size_t)n, VALUE_DIM * sizeof(double));
    int code = make_landmarks(data->p->in, &data->p->grid, data->p->seed, data->p->sample,
                              data->context, data->tokens, NULL);
    if (code != EXIT_PASS)
        return code;
    ref_gaussian(n, n, data->dim, data->tokens, data->tokens, s, data->s);
    code = checked_eigenvalues(n, data->s, data->lambda, NULL);
    random_stream *r = random_create(data->p->seed, "sampling values 0", (uint64_t)data->p->sample);
    for (int64_t i = 0; i < n * VALUE_DIM; i++)
        data->values[i] = random_normal(r);
    random_free(r);
    multiply_values(data, data->s, data->product);
    return code;
}

static void close_point(point_data *data)
{
    free(data->product);
    free(data->values);
    free(data->lambda);
    free(data->s);
    free(data->tokens);
}

/* ---- One sampler, one draw ---- */

typedef struct {
    double trace, spectral, values; /* absolute, absolute, relative */
    double lambda_min, lambda_max;  /* of A */
    int64_t rank_f64, rank_f32;
    double lowest, rounding, exact;
    int64_t pivots;
} sampler_errors;

static int choose_landmarks(const point_data *data, const sampler *with, int64_t draw,
                            double *landmarks)
{
    const landmark_point *p = data->p;
    const sampler_source from = {.name = input_name(p->in),
                                 .grid = &p->grid,
                                 .n = data->n,
                                 .dim = data->dim,
                                 .tokens = data->tokens,
                                 .scale = kernel_scale(data->sweep->s, data->dim),
                                 .seed = p->seed,
                                 .sample = p->sample};
    return sampler_take(with, &from, p->m, draw, data->context, landmarks);
}

static int measure_bottleneck(const point_data *data, const double *landmarks, sampler_errors *out)
{
    int64_t m = data->p->m;
    double *a = must_allocate((size_t)m, (size_t)m * sizeof *a);
    double *lambda = must_allocate((size_t)m, sizeof *lambda);
    ref_gaussian(m, m, data->dim, landmarks, landmarks, kernel_scale(data->sweep->s, data->dim), a);
    int code = checked_eigenvalues(m, a, lambda, NULL);
    out->lambda_max = lambda[0];
    out->lambda_min = lambda[m - 1];
    out->rank_f64 = numerical_rank(m, lambda, atn_dtype_roundoff(ATN_F64));
    out->rank_f32 = numerical_rank(m, lambda, atn_dtype_roundoff(ATN_F32));
    free(lambda);
    free(a);
    return code;
}

/* The largest absolute entry in the rows of tokens that equal a pivot landmark. */
static double largest_on_pivots(const point_data *data, const double *landmarks,
                                const nystrom_approximation *made, const double *difference)
{
    int64_t n = data->n;
    size_t bytes = (size_t)data->dim * sizeof(double);
    double largest = 0;
    for (int64_t l = 0; l < made->kept; l++)
        for (int64_t i = 0; i < n; i++)
            if (memcmp(data->tokens + i * data->dim, landmarks + made->pivots[l] * data->dim,
                       bytes) == 0)
                for (int64_t j = 0; j < n; j++)
                    largest = fmax(largest, fabs(difference[i * n + j]));
    return largest;
}

/* Eigenvalues of S - S^ by one route. Their sum and the root of their sum of squares must agree
 * with the trace and the Frobenius norm to within n times their own rounding. */
static int measure_difference(const point_data *data, const double *difference, sampler_errors *out)
{
    int64_t n = data->n;
    double u = atn_dtype_roundoff(ATN_F64), trace = 0, sum = 0, squares = 0;
    double norm = cblas_dnrm2((int)(n * n), difference, 1);
    double *lambda = must_allocate((size_t)n, sizeof *lambda);
    atn_status status = ref_eigenvalues(n, difference, lambda, NULL, NULL);
    for (int64_t i = 0; i < n; i++) {
        trace += difference[i * n + i];
        sum += lambda[i];
        squares += lambda[i] * lambda[i];
    }
    out->lowest = lambda[n - 1];
    out->spectral = fmax(fabs(lambda[0]), fabs(lambda[n - 1]));
    out->rounding += 2 * u * data->lambda[0] + u * norm + 10 * (double)n * u * out->spectral;
    free(lambda);
    double allowed = 10 * (double)n * (double)n * u * norm;
    if (status == ATN_OK && fabs(sum - trace) <= allowed && fabs(sqrt(squares) - norm) <= allowed)
        return EXIT_PASS;
    report_error("eigenvalues of S - S^: %s, sum %.17g, trace %.17g, norm %.17g and %.17g",
                 atn_status_message(status), sum, trace, sqrt(squares), norm);
    return status < 0 ? EXIT_ENVIRONMENT : EXIT_CHECK;
}

static int measure_approximation(const point_data *data, const sampler *with,
                                 const double *landmarks, sampler_errors *out)
{
    int64_t n = data->n, m = data->p->m;
    double *difference = must_allocate((size_t)n, (size_t)n * sizeof *difference);
    double *product = must_allocate((size_t)n, VALUE_DIM * sizeof *product);
    nystrom_approximation made = {.pivots = must_allocate((size_t)m, sizeof *made.pivots)};
    nystrom_make(n, m, data->dim, data->tokens, landmarks, kernel_scale(data->sweep->s, data->dim),
                 difference, &made);
    for (int64_t i = 0; i < n * n; i++)
        difference[i] = data->s[i] - difference[i];
    multiply_values(data, difference, product);
    out->trace = made.shortfall;
    out->values = cblas_dnrm2((int)n * VALUE_DIM, product, 1) /
                  cblas_dnrm2((int)n * VALUE_DIM, data->product, 1);
    out->pivots = made.kept;
    out->rounding = made.rounding;
    int code = measure_difference(data, difference, out);
    out->exact = with->subset ? largest_on_pivots(data, landmarks, &made, difference) : NAN;
    free(made.pivots);
    free(product);
    free(difference);
    return code;
}

/* ---- Rows ---- */

/* The sum of the eigenvalues of S that the best matrix of rank m leaves out. */
static double best_trace(const point_data *data)
{
    double sum = 0;
    for (int64_t i = data->n - 1; i >= data->p->m; i--)
        sum += fmax(data->lambda[i], 0);
    return sum;
}

static double best_spectral(const point_data *data)
{
    return data->p->m < data->n ? fmax(data->lambda[data->p->m], 0) : 0;
}

static void add_row(const point_data *data, const sampler *with, int64_t draw,
                    const sampler_errors *got, table *to)
{
    double n = (double)data->n, m = (double)data->p->m, u = atn_dtype_roundoff(ATN_F64);
    double norm = data->lambda[0], trace = best_trace(data), spectral = best_spectral(data);
    double floor = m * u * got->lambda_max;
    double missed = got->trace < 0 ? 0 : got->trace;
    ROW(LIST_PUT)
}

/* Sums of n eigenvalues may have n times the error of one. */
static int judge(const point_data *data, const sampler *with, const sampler_errors *got)
{
    double n = (double)data->n, own = n * atn_dtype_roundoff(ATN_F64) * data->lambda[0];
    char *what =
        must_format("%s m=%" PRId64 " %s", input_name(data->p->in), data->p->m, with->name);
    const nystrom_errors errors = {.lowest = got->lowest,
                                   .exact = with->subset ? got->exact : 0,
                                   .trace = got->trace,
                                   .norm = got->spectral,
                                   .rounding = got->rounding,
                                   .least_trace = best_trace(data) - n * own - got->rounding,
                                   .least_norm = best_spectral(data) - own - got->rounding};
    int code = nystrom_judge(what, &errors);
    free(what);
    return code;
}

static int run_draw(const point_data *data, const sampler *with, int64_t draw, table *raw)
{
    double *landmarks = must_allocate((size_t)data->p->m, (size_t)data->dim * sizeof *landmarks);
    sampler_errors got = {.trace = 0};
    int code = choose_landmarks(data, with, draw, landmarks);
    if (code == EXIT_PASS)
        code = measure_bottleneck(data, landmarks, &got);
    if (code == EXIT_PASS || code == EXIT_CHECK)
        code = exit_worst(code, measure_approximation(data, with, landmarks, &got));
    if (code == EXIT_PASS || code == EXIT_CHECK) {
        add_row(data, with, draw, &got, raw);
        code = exit_worst(code, judge(data, with, &got));
    }
    free(landmarks);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const landmark_sweep *sweep = state;
    const landmark_point *p = &sweep->points[point];
    point_data data = {.sweep = sweep, .p = p, .context = context};
    data.n = grid_tokens(&p->grid);
    data.dim = input_dim(p->in);
    int code = open_point(&data);
    for (int i = 0; i < SAMPLERS; i++)
        for (int64_t draw = 0; draw < draws_of(sweep->s, &samplers[i]); draw++)
            if ((code == EXIT_PASS || code == EXIT_CHECK) &&
                !(samplers[i].on_grid && p->grid.windows))
                code = exit_worst(code, run_draw(&data, &samplers[i], draw, raw));
    close_point(&data);
    return code;
}

/* ---- sampling_summary.csv ---- */

#define SUMMARY_ROW(X)                                                                             \
    X(TEXT, input, "", "where the tokens come from", cell_text(raw, like, "input"))                \
    X(INTEGER, n, "", "number of tokens", cell_integer(raw, like, "n"))                            \
    X(INTEGER, m, "", "number of landmarks", cell_integer(raw, like, "m"))                         \
    X(TEXT, sampler, "", "as in sampling.csv", name)                                               \
    X(INTEGER, draws, "", "rows of sampling.csv: seeds, samples and draws", trace.count)           \
    X(REAL, trace_error_median, "", "of them", trace.median)                                       \
    X(REAL, trace_error_min, "", "the smallest", trace.least)                                      \
    X(REAL, trace_error_max, "", "the largest", trace.most)                                        \
    X(REAL_IF, trace_ratio_median, "", "to the best matrix of rank m; missing as there",           \
      trace_ratio.count > 0, trace_ratio.median)                                                   \
    X(REAL_IF, trace_ratio_min, "", "the smallest", trace_ratio.count > 0, trace_ratio.least)      \
    X(REAL_IF, trace_ratio_max, "", "the largest", trace_ratio.count > 0, trace_ratio.most)        \
    X(REAL_IF, draw_spread, "",                                                                    \
      "the largest over the smallest trace error of draws of the same tokens, the worst seed "     \
      "and sample; 1 for samplers without randomness, missing where an error is 0",                \
      isfinite(draws), draws)                                                                      \
    X(REAL, spectral_error_median, "", "of them", norm.median)                                     \
    X(REAL, spectral_error_min, "", "the smallest", norm.least)                                    \
    X(REAL, spectral_error_max, "", "the largest", norm.most)                                      \
    X(REAL_IF, spectral_ratio_median, "", "to the best matrix of rank m; missing as there",        \
      norm_ratio.count > 0, norm_ratio.median)                                                     \
    X(REAL, value_error_median, "", "of them", collect(raw, like, name, "value_error").median)     \
    X(REAL, kappa_median, "", "of A's condition numbers; those at the floor stand for more",       \
      collect(raw, like, name, "kappa").median)                                                    \
    X(INTEGER, rank_f32_min, "", "the smallest numerical rank of A in f32",                        \
      least_rank(raw, like, name))                                                                 \
    X(INTEGER, place, "",                                                                          \
      "1 for the sampler with the smallest median trace error of this input, n and m", place)
static const column summary_columns[] = {SUMMARY_ROW(LIST_COLUMN)};
enum { SUMMARY_COLUMNS = sizeof summary_columns / sizeof *summary_columns };

typedef struct {
    int64_t count;
    double least, median, most;
} spread;

static const char *const keys[] = {"input", "n", "m"};
enum { KEYS = sizeof keys / sizeof *keys };

/* Whether a row of raw has the input, n and m of row `like` and the sampler `name`. */
static bool belongs(const table *raw, int64_t row, int64_t like, const char *name)
{
    return table_rows_agree(raw, row, like, keys, KEYS) && cell_is(raw, row, "sampler", name);
}

static spread collect(const table *raw, int64_t like, const char *name, const char *quantity)
{
    double *values = must_allocate((size_t)table_rows(raw), sizeof *values);
    int col = table_column(raw, quantity);
    int64_t count = 0;
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (belongs(raw, row, like, name) && !table_is_missing(raw, row, col))
            values[count++] = table_get_real(raw, row, col);
    spread s = {0, NAN, NAN, NAN};
    if (count > 0) {
        double middle = median(count, values); /* which sorts them */
        s = (spread){count, values[0], middle, values[count - 1]};
    }
    free(values);
    return s;
}

/* Rows of one seed and sample are consecutive. */
static double draw_spread(const table *raw, int64_t like, const char *name)
{
    int error = table_column(raw, "trace_error"), draw = table_column(raw, "draw");
    double worst = 1, least = NAN, most = NAN;
    for (int64_t row = 0; row < table_rows(raw); row++) {
        double value = table_get_real(raw, row, error);
        if (!belongs(raw, row, like, name))
            continue;
        bool first = table_get_integer(raw, row, draw) == 0;
        least = first ? value : fmin(least, value);
        most = first ? value : fmax(most, value);
        worst = isnan(worst) || most / least <= worst ? worst : most / least;
    }
    return worst;
}

static int64_t least_rank(const table *raw, int64_t like, const char *name)
{
    int col = table_column(raw, "rank_f32");
    int64_t least = INT64_MAX;
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (belongs(raw, row, like, name) && table_get_integer(raw, row, col) < least)
            least = table_get_integer(raw, row, col);
    return least;
}

static int64_t place_of(const double *medians, int which)
{
    int64_t place = 1;
    for (int i = 0; i < SAMPLERS; i++)
        place += medians[i] < medians[which];
    return place;
}

static void summarise(const table *raw, int64_t like, const char *name, int64_t place, table *to)
{
    spread trace = collect(raw, like, name, "trace_error");
    spread norm = collect(raw, like, name, "spectral_error");
    spread trace_ratio = collect(raw, like, name, "trace_ratio");
    spread norm_ratio = collect(raw, like, name, "spectral_ratio");
    double draws = draw_spread(raw, like, name);
    SUMMARY_ROW(LIST_PUT)
}

/* Adds the rows of all samplers for the input, n and m of row `like`. */
static void summarise_all(const table *raw, int64_t like, table *summary)
{
    double medians[SAMPLERS];
    for (int i = 0; i < SAMPLERS; i++)
        medians[i] = collect(raw, like, samplers[i].name, "trace_error").median;
    for (int i = 0; i < SAMPLERS; i++)
        if (!isnan(medians[i]))
            summarise(raw, like, samplers[i].name, place_of(medians, i), summary);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    (void)s, (void)state;
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (table_row_is_first(raw, row, keys, KEYS) &&
            cell_is(raw, row, "sampler", samplers[0].name))
            summarise_all(raw, row, tables[1]);
    table_print(tables[1], table_rows(tables[1]), report_stream());
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"sampling", "Errors of the attention matrix that landmarks give, and A's conditioning.",
     columns, COLUMNS},
    {"sampling_summary", "sampling.csv over seeds, samples and draws.", summary_columns,
     SUMMARY_COLUMNS},
};

const experiment spectral_sampling = {
    .name = "spectral/sampling",
    .summary = "how well the landmarks of every sampler represent all tokens",
    .source = "SOFT (IJCV) section 3.2, Tab. 10, Eq. 7, 9, App. A; S04, S05",
    .example = "attnum run spectral/sampling --input photos,smooth --m 49",
    .options = OPTIONS(OPTION_DEVICE, OPTION_INPUT, OPTION_GRID, OPTION_SAMPLES, OPTION_STAGE,
                       OPTION_M, OPTION_SCALE),
    .defaults =
        "inputs photos, trained:softmax, trained:sima, smooth, smooth:8, clusters, iid:0.3; "
        "stage 2, 784 tokens (--quick: 3, "
        "196), a file: its own, at most 4096; m = 49, 196 (--quick: 16, 49); 3 draws of every "
        "random sampler (--full: 20) for each of 3 samples (--quick: 1; --full: 10)",
    .outputs = outputs,
    .output_count = 2,
    .plot = "spectral/sampling.gp",
    .prepare = prepare,
    .describe = landmark_sweep_describe,
    .weight = weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .replay = landmark_sweep_replay,
    .release = landmark_sweep_release,
};
