/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT (IJCV) Tab. 6 and App. D: norms of attention matrices as the input grows, by more pixels of
 * the same scene or by more of the scene; at a fixed number of landmarks and at a fixed stride. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "common/fit.h"
#include "common/photographs.h"
#include "common/report.h"
#include "registry.h"
#include "spectral/matrices.h"
#include "spectral/nonnegative.h"
#include "spectral/operator_norms.h"
#include "spectral/resolution.h"

/* ---- What grows ---- */

/* A scene has 64 x 64 tokens, which are patches of 4 pixels for a photograph. */
enum { SCENE_SIDE = 64, SCENE_PATCH = 4 };

/* X(code, name, description) */
#define VIEW_LIST(X)                                                                                \
    X(VIEW_ENLARGED, "enlarged",                                                                    \
      "the same scene at more points: photographs are resampled to 4 sqrt(n) pixels a side, "       \
      "synthetic fields evaluated on a finer grid, a trained network is given its picture resized") \
    X(VIEW_CROPPED, "cropped",                                                                      \
      "the central sqrt(n) x sqrt(n) tokens of the scene's 64 x 64; of a file's grid")

/* X(code, name, stride, description); stride 0: the one that gives 49 landmarks. */
#define RULE_LIST(X)                                                                               \
    X(RULE_NONE, "none", -1, "no landmarks: the exact attention matrices")                         \
    X(RULE_FIXED, "m49", 0, "49 landmarks, the stride grows (rows left over are dropped)")         \
    X(RULE_STRIDE_2, "stride2", 2,                                                                 \
      "stride 2 as in SOFT's stage 3, where it divides sqrt(n): m = n/4; to m = 1024")             \
    X(RULE_STRIDE_4, "stride4", 4, "stride 4 as in stage 2, in the same way: m = n/16")

enum { FIXED_LANDMARKS = 49 };

#define VIEW_CODE(code, name, description)         code,
#define VIEW_NAME(code, name, description)         name,
#define RULE_CODE(code, name, stride, description) code,
#define RULE_ROW(code, name, stride, description)  {name, stride},
enum { VIEW_LIST(VIEW_CODE) VIEWS };
enum { RULE_LIST(RULE_CODE) RULES };
static const char *const view_names[] = {VIEW_LIST(VIEW_NAME)};
static const struct {
    const char *name;
    int64_t stride;
} rules[] = {RULE_LIST(RULE_ROW)};

#define VIEW_TEXT(code, name, description)         name ": " description ". "
#define RULE_TEXT(code, name, stride, description) name ": " description ". "
#define ROW(X)                                                                                     \
    X(TEXT, input, "", "where the tokens come from", input_name(p->in))                            \
    X(TEXT, view, "", VIEW_LIST(VIEW_TEXT), view_names[p->kind])                                   \
    X(INTEGER, n, "", "number of tokens, on a square grid", grid_tokens(&p->grid))                 \
    X(TEXT, landmarks, "", RULE_LIST(RULE_TEXT), rules[rule].name)                                 \
    X(INTEGER_IF, m, "", "number of landmarks; missing: none", rule != RULE_NONE,                  \
      grid_landmarks(&p->grid))                                                                    \
    X(INTEGER_IF, stride, "", "stride of the pooling; missing: none", rule != RULE_NONE,           \
      p->grid.stride)                                                                              \
    X(INTEGER, sample, "", "which sample of the input, from 0", p->sample)                         \
    X(TEXT, operator, "",                                                                          \
      "gaussian: S = K(Q, Q); softmax: of Q Q^T / sqrt(d), the same tokens; soft: S^ = P^T "       \
      "X P; softpp: P^T D^-1/2 X D^-1/2 P, D = diag(A 1)",                                         \
      norm->operator)                                                                              \
    X(TEXT, inverse, "",                                                                           \
      "X: exact (A+ without eigenvalues <= m u lambda_max, never formed), or 20 steps of "         \
      "nr-paper, nr-soft, nr-softpp; empty: no landmarks",                                         \
      norm->inverse)                                                                               \
    X(REAL, norm, "",                                                                              \
      "the spectral norm; of gaussian and softmax a lower bound (a Rayleigh quotient)",            \
      norm->norm)                                                                                  \
    X(REAL_IF, norm_upper, "",                                                                     \
      "gaussian and softmax: an upper bound (Collatz and Wielandt); both hold but for 10 n "       \
      "u",                                                                                         \
      !isnan(norm->upper), norm->upper)                                                            \
    X(REAL_IF, row_sum_mean, "", "gaussian: the mean row sum of S, at most its norm",              \
      !isnan(norm->row_sum_mean), norm->row_sum_mean)                                              \
    X(REAL_IF, row_sum_max, "", "gaussian: the largest row sum of S, at least its norm",           \
      !isnan(norm->row_sum_max), norm->row_sum_max)                                                \
    X(INTEGER_IF, rank, "", "exact: eigenvalues of A kept", norm->rank >= 0, norm->rank)           \
    X(REAL_IF, cut_change, "",                                                                     \
      "exact: norm / (norm with eigenvalues <= 1000 m u lambda_max dropped) - 1: what "            \
      "hangs on the cut",                                                                          \
      !isnan(change), change)                                                                      \
    X(BOOLEAN, below_floor, "",                                                                    \
      "cut_change is above 0.01: the norm is one of many, and left out of fits", change > 0.01)    \
    X(INTEGER, seed, "", "the seed of the input", (int64_t)p->seed)
static const column columns[] = {ROW(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- Points ---- */

/* All sides have a stride that gives 7 x 7 landmarks, and stride 2 divides them. */
static const int64_t usual_sides[EFFORT_COUNT][7] = {[EFFORT_QUICK] = {14, 22, 28},
                                                     [EFFORT_DEFAULT] = {14, 22, 28, 44, 56},
                                                     [EFFORT_FULL] = {14, 22, 28, 44, 56, 64, 112}};

/* Larger points take hours: the norms of n x n matrices compute all entries again in every step,
 * and the inverse of A takes 20 steps. */
enum { LARGEST_SIDE = 128, MOST_LANDMARKS = 1024 };

static int64_t usual_samples(const program_options *s, const input *in)
{
    bool pictures = !input_has_own_grid(in) && *input_sha256(in);
    static const int64_t samples[EFFORT_COUNT][2] = {
        [EFFORT_QUICK] = {1, 2}, [EFFORT_DEFAULT] = {1, 5}, [EFFORT_FULL] = {5, 13}};
    return samples[s->effort][pictures];
}

/* Multiples of the side of a trained network's own grid. */
static const int64_t usual_multiples[EFFORT_COUNT][7] = {
    [EFFORT_QUICK] = {1, 2}, [EFFORT_DEFAULT] = {1, 2, 3, 4}, [EFFORT_FULL] = {1, 2, 3, 4, 6, 8}};

/* The side of the index-th grid; 0 after the last one; -1, after a message, if n is not a square.
 */
static int64_t get_side(const program_options *s, const input *in, int index)
{
    if (s->tokens.count == 0 && index >= 7)
        return 0;
    if (s->tokens.count == 0)
        return input_network(in) ? usual_multiples[s->effort][index] * input_side(in, 1)
                                 : usual_sides[s->effort][index];
    if (index >= s->tokens.count)
        return 0;
    int64_t n = s->tokens.items[index], side = llround(sqrt((double)n));
    if (side * side == n && side <= LARGEST_SIDE)
        return side;
    report_error("--n %" PRId64 ": expected a square of at most %d", n,
                 (int)LARGEST_SIDE * LARGEST_SIDE);
    return -1;
}

/* Whether an input has a view of that side. */
static bool has_view(const input *in, int view, int64_t side)
{
    bool cropped = view == VIEW_CROPPED;
    if (input_network(in))
        return !cropped && side <= LARGEST_SIDE && input_has_side(in, side);
    if (!input_is_file(in))
        return side <= (cropped ? SCENE_SIDE : LARGEST_SIDE);
    token_grid grid = own_grid(in);
    return cropped && !grid.windows && side <= grid.height && side <= grid.width;
}

static int add_input(landmark_sweep *sweep, uint64_t seed, const input *in)
{
    const program_options *s = sweep->s;
    int64_t side, before = sweep->count;
    int code = EXIT_PASS;
    for (int view = 0; view < VIEWS; view++)
        for (int i = 0; code == EXIT_PASS && (side = get_side(s, in, i)) != 0; i++) {
            if (side < 0)
                return EXIT_USAGE;
            landmark_point point = {.seed = seed,
                                    .in = in,
                                    .kind = view,
                                    .grid = {.height = side, .width = side, .patch = SCENE_PATCH}};
            if (has_view(in, view, side))
                code = landmark_sweep_add_samples(sweep, point, usual_samples(s, in));
        }
    bool asked = s->tokens.count > 0 && !is_left_out(s, in, sweep->count > before);
    if (code == EXIT_PASS && asked && sweep->count == before &&
        seed == (uint64_t)s->seeds.items[0]) {
        report_error("%s: it contains no square of the wanted numbers of tokens, expected %s",
                     input_name(in),
                     input_network(in) ? "its own grid, or one that the network takes"
                                       : "a file with a grid (--grid) and smaller --n");
        return EXIT_USAGE;
    }
    return code;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const char *const usual_inputs[] = {
        "photos", "trained:soft", "trained:softpp", "trained:softmax", "smooth", "smooth:8", "iid",
        NULL};
    int code = landmark_sweep_start(s, usual_inputs, state);
    landmark_sweep *sweep = *state;
    for (int i = 0; i < s->seeds.count; i++)
        for (int j = 0; j < sweep->inputs.count && code == EXIT_PASS; j++)
            code = add_input(sweep, (uint64_t)s->seeds.items[i], sweep->inputs.items[j]);
    *points = sweep->count;
    return code;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    snprintf(buffer, size, "%s %s n=%" PRId64 " sample=%" PRId64 " seed=%" PRIu64,
             input_name(p->in), view_names[p->kind], grid_tokens(&p->grid), p->sample, p->seed);
}

/* The cost of inverting A of n/4 landmarks, up to a factor. */
static double weight(const void *state, int64_t point)
{
    double n = (double)grid_tokens(&((const landmark_sweep *)state)->points[point].grid);
    return n * n * n;
}

static void replay(const void *state, int64_t point, options_point *options)
{
    landmark_sweep_replay(state, point, options);
    options->tokens = grid_tokens(&((const landmark_sweep *)state)->points[point].grid);
}

/* ---- Tokens ---- */

/* The scene's pixels at another resolution. */
static int enlarge_photograph(const landmark_point *p, double *tokens)
{
    const char *name;
    image scene, resampled;
    input_draw draw = {p->grid.height, p->grid.width, SCENE_PATCH, p->seed, p->sample};
    int code =
        input_crop(p->in, SCENE_SIDE, SCENE_SIDE, SCENE_PATCH, p->seed, p->sample, &scene, &name);
    if (code != EXIT_PASS)
        return code;
    image_resample(&scene, draw.height * SCENE_PATCH, draw.width * SCENE_PATCH, &resampled);
    photographs_embed(&resampled, &draw, tokens);
    free(resampled.rgb);
    free(scene.rgb);
    return EXIT_PASS;
}

static int crop_scene(const landmark_point *p, int64_t dim, double *tokens)
{
    token_grid scene = input_is_file(p->in)
                           ? own_grid(p->in)
                           : (token_grid){.height = SCENE_SIDE, .width = SCENE_SIDE};
    double *all = must_allocate((size_t)grid_tokens(&scene), (size_t)dim * sizeof *all);
    int64_t top = (scene.height - p->grid.height) / 2, left = (scene.width - p->grid.width) / 2;
    int code = input_tokens(p->in, scene.height, scene.width, SCENE_PATCH, p->seed, p->sample, all);
    for (int64_t y = 0; y < p->grid.height; y++)
        memcpy(tokens + y * p->grid.width * dim, all + ((top + y) * scene.width + left) * dim,
               (size_t)(p->grid.width * dim) * sizeof *tokens);
    free(all);
    return code;
}

static int make_tokens(const landmark_point *p, int64_t dim, double *tokens)
{
    if (p->kind == VIEW_CROPPED)
        return crop_scene(p, dim, tokens);
    if (*input_sha256(p->in) && !input_network(p->in))
        return enlarge_photograph(p, tokens);
    return input_tokens(p->in, p->grid.height, p->grid.width, SCENE_PATCH, p->seed, p->sample,
                        tokens);
}

/* ---- Exact attention matrices ---- */

typedef struct {
    const landmark_sweep *sweep;
    atn_context *context;
    int64_t n, dim;
    double *tokens;
} token_set;

static int gaussian_rows(void *state, int64_t first, int64_t count, double *out)
{
    const token_set *t = state;
    return make_cross_kernel(t->sweep->s, t->context, count, t->n, t->dim,
                             t->tokens + first * t->dim, t->tokens, out);
}

static int softmax_rows(void *state, int64_t first, int64_t count, double *out)
{
    const token_set *t = state;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)t->n, (int)t->dim,
                1 / sqrt((double)t->dim), t->tokens + first * t->dim, (int)t->dim, t->tokens,
                (int)t->dim, 0, out, (int)t->n);
    for (int64_t i = 0; i < count; i++) {
        double *row = out + i * t->n, largest = row[0], total = 0;
        for (int64_t j = 1; j < t->n; j++)
            largest = fmax(largest, row[j]);
        for (int64_t j = 0; j < t->n; j++)
            total += row[j] = exp(row[j] - largest);
        cblas_dscal((int)t->n, 1 / total, row, 1);
    }
    return EXIT_PASS;
}

/* ---- Rows ---- */

/* A norm with its bounds and counts; NaN and -1: missing. */
typedef struct {
    const char *operator, * inverse;
    double norm, upper, row_sum_mean, row_sum_max, coarse;
    int64_t rank;
} measured;

static void add_row(const landmark_point *p, int rule, const measured *norm, table *to)
{
    double change = norm->norm / norm->coarse - 1;
    ROW(LIST_PUT)
}

/* EXIT_CHECK, reported, unless low <= high up to rounding. */
static int check_order(const landmark_point *p, const char *what, double low, double high,
                       double allowance)
{
    if (low <= high * (1 + allowance))
        return EXIT_PASS;
    report_error("%s %s n=%" PRId64 " sample=%" PRId64 ": %s: %.17g, expected at most %.17g",
                 input_name(p->in), view_names[p->kind], grid_tokens(&p->grid), p->sample, what,
                 low, high);
    return EXIT_CHECK;
}

/* The rounding error of sums of n numbers of one sign, and of the d products in a logit of size
 * |q|^2/sqrt(d), with a margin of 10. */
static double sum_allowance(const token_set *t)
{
    double largest = 0;
    for (int64_t i = 0; i < t->n; i++)
        largest = fmax(largest, cblas_dnrm2((int)t->dim, t->tokens + i * t->dim, 1));
    double logit = largest * largest / sqrt((double)t->dim);
    return 10 * atn_dtype_roundoff(ATN_F64) * ((double)t->n + (double)t->dim * (1 + logit));
}

static int measure_exact(const landmark_point *p, token_set *t, table *raw, double *lambda_1)
{
    norm_bracket kernel, softmax;
    double allowance = sum_allowance(t);
    int code = nonnegative_norm(&(row_source){t->n, gaussian_rows, t}, &kernel);
    if (code == EXIT_PASS)
        code = nonnegative_norm(&(row_source){t->n, softmax_rows, t}, &softmax);
    if (code != EXIT_PASS)
        return code;
    *lambda_1 = kernel.upper;
    add_row(p, RULE_NONE,
            &(measured){"gaussian", "", kernel.lower, kernel.upper, kernel.row_sum_mean,
                        kernel.row_sum_max, NAN, -1},
            raw);
    add_row(p, RULE_NONE,
            &(measured){"softmax", "", softmax.lower, softmax.upper, NAN, NAN, NAN, -1}, raw);
    const struct {
        const char *what;
        double low, high;
    } checks[] = {{"gaussian, two bounds", kernel.lower, kernel.upper},
                  {"gaussian, mean row sum <= norm", kernel.row_sum_mean, kernel.upper},
                  {"gaussian, norm <= largest row sum", kernel.lower, kernel.row_sum_max},
                  {"gaussian, largest row sum <= n", kernel.row_sum_max, (double)t->n},
                  {"softmax, two bounds", softmax.lower, softmax.upper},
                  {"softmax, 1 <= norm", 1, softmax.upper},
                  {"softmax, norm <= sqrt(n)", softmax.lower, sqrt((double)t->n)},
                  {"softmax, row sums <= 1", softmax.row_sum_max, 1},
                  {"softmax, row sums >= 1", 1, softmax.row_sum_mean}};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        code = exit_worst(code,
                          check_order(p, checks[i].what, checks[i].low, checks[i].high, allowance));
    return code;
}

/* Checks that 0 <= P^T X P <= S in the Loewner order, which holds for every X with 0 <= X <= A+, as
 * exact inverses and filters are. Rounding may take an exact norm beyond it by a relative 2 c
 * sqrt(u/m), c a modest number: the error of Z is u |P| / sqrt(m u lambda_max) where an eigenvalue
 * is at the cut, and |P|^2 <= lambda_max |S^|. X_20 has norms up to 924/|A|_1, and its rounding
 * errors double 20 times: 2^20 u 924. */
static int check_soft(const landmark_point *p, const form_norms *norms, double lambda_1)
{
    double u = atn_dtype_roundoff(ATN_F64);
    const struct {
        const char *what;
        double norm, allowance;
    } checks[] = {{"soft, exact, <= the kernel's", norms->soft.exact, 10 * sqrt(u)},
                  {"soft, coarse, <= soft, exact", norms->soft.coarse, 10 * sqrt(u)},
                  {"soft, nr-paper, <= the kernel's", norms->soft.paper, 924 * ldexp(u, 20)},
                  {"soft, nr-soft, <= the kernel's", norms->soft.published, 924 * ldexp(u, 20)}};
    int code = EXIT_PASS;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        code = exit_worst(
            code, check_order(p, checks[i].what, checks[i].norm, lambda_1, checks[i].allowance));
    return code;
}

static void add_form_rows(const landmark_point *p, int rule, const form_norms *norms, table *raw)
{
    const struct {
        const char *operator, * published;
        const inverse_norms *norms;
    } operators[] = {{"soft", "nr-soft", &norms->soft}, {"softpp", "nr-softpp", &norms->softpp}};
    for (int i = 0; i < 2; i++) {
        const inverse_norms *of = operators[i].norms;
        const measured rows[] = {
            {operators[i].operator, "exact", of->exact, NAN, NAN, NAN, of->coarse, norms->rank},
            {operators[i].operator, "nr-paper", of->paper, NAN, NAN, NAN, NAN, -1},
            {operators[i].operator, operators[i].published, of->published, NAN, NAN, NAN, NAN, -1},
        };
        for (int j = 0; j < 3; j++)
            add_row(p, rule, &rows[j], raw);
    }
}

bool resolution_takes(const token_grid *grid)
{
    return grid->height % grid->stride == 0 && grid_landmarks(grid) <= MOST_LANDMARKS;
}

/* Sets the stride; false if the rule has no landmarks on this grid. */
static bool apply_rule(int rule, token_grid *grid)
{
    grid->stride = rules[rule].stride;
    if (rule == RULE_FIXED)
        return choose_stride(grid, FIXED_LANDMARKS) == FIXED_LANDMARKS;
    return rule != RULE_NONE && resolution_takes(grid);
}

static int measure_landmarks(landmark_point p, int rule, const token_set *t, double lambda_1,
                             table *raw)
{
    if (!apply_rule(rule, &p.grid))
        return EXIT_PASS;
    int64_t m = grid_landmarks(&p.grid);
    double *landmarks = must_allocate((size_t)m, (size_t)t->dim * sizeof *landmarks);
    double *a = must_allocate((size_t)m, (size_t)m * sizeof *a);
    double *cross = must_allocate((size_t)m, (size_t)t->n * sizeof *cross);
    form_norms norms;
    int code = pool_tokens(&p.grid, t->context, t->dim, t->tokens, landmarks);
    if (code == EXIT_PASS)
        code = make_kernel(t->sweep->s, t->context, m, t->dim, landmarks, a);
    if (code == EXIT_PASS)
        code = make_cross_kernel(t->sweep->s, t->context, m, t->n, t->dim, landmarks, t->tokens,
                                 cross);
    if (code == EXIT_PASS)
        code = form_norms_measure(t->context, m, t->n, a, cross, &norms);
    if (code == EXIT_PASS || code == EXIT_CHECK) {
        add_form_rows(&p, rule, &norms, raw);
        code = exit_worst(code, check_soft(&p, &norms, lambda_1));
    }
    free(cross);
    free(a);
    free(landmarks);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const landmark_sweep *sweep = state;
    const landmark_point *p = &sweep->points[point];
    token_set t = {sweep, context, grid_tokens(&p->grid), input_dim(p->in), NULL};
    double lambda_1 = NAN;
    t.tokens = must_allocate((size_t)t.n, (size_t)t.dim * sizeof *t.tokens);
    int code = make_tokens(p, t.dim, t.tokens);
    if (code == EXIT_PASS)
        code = measure_exact(p, &t, raw, &lambda_1);
    for (int rule = 0; rule < RULES && (code == EXIT_PASS || code == EXIT_CHECK); rule++)
        code = exit_worst(code, measure_landmarks(*p, rule, &t, lambda_1, raw));
    free(t.tokens);
    return code;
}

/* ---- resolution_fit.csv ---- */

#define FIT_ROW(X)                                                                                 \
    X(TEXT, input, "", "where the tokens come from", cell_text(raw, row, "input"))                 \
    X(TEXT, view, "", "enlarged or cropped", cell_text(raw, row, "view"))                          \
    X(TEXT, landmarks, "", "none, m49, stride2 or stride4", cell_text(raw, row, "landmarks"))      \
    X(TEXT, operator, "", "gaussian, softmax, soft or softpp", cell_text(raw, row, "operator"))    \
    X(TEXT, inverse, "", "exact, nr-paper, nr-soft, nr-softpp or empty",                           \
      cell_text(raw, row, "inverse"))                                                              \
    X(REAL_IF, exponent, "", "p of norm = c n^p, by least squares on the logarithms", found,       \
      fit.exponent)                                                                                \
    X(REAL_IF, std_error, "",                                                                      \
      "standard error of p, from the residuals: differences between samples count in it", found,   \
      fit.std_error)                                                                               \
    X(REAL_IF, residual, "", "root mean square of log10(norm / fit)", found, fit.residual)         \
    X(INTEGER, points, "", "rows fitted: those that are not below the floor", count)               \
    X(INTEGER, left_out, "", "rows that are", left_out)                                            \
    X(INTEGER_IF, n_min, "", "the smallest n fitted", count > 0, least)                            \
    X(INTEGER_IF, n_max, "", "the largest n fitted", count > 0, most)
static const column fit_columns[] = {FIT_ROW(LIST_COLUMN)};
enum { FIT_COLUMNS = sizeof fit_columns / sizeof *fit_columns };

/* The columns that a fit's rows have in common. */
static const char *const keys[] = {"input", "view", "landmarks", "operator", "inverse"};
enum { KEYS = sizeof keys / sizeof *keys };

static void add_fit(const table *raw, int64_t row, double *n, double *norms, table *to)
{
    int64_t count = 0, left_out = 0, least = INT64_MAX, most = 0;
    growth_fit fit = {0};
    for (int64_t i = row; i < table_rows(raw); i++) {
        if (!table_rows_agree(raw, row, i, keys, KEYS))
            continue;
        int64_t tokens = cell_integer(raw, i, "n");
        if (cell_boolean(raw, i, "below_floor")) {
            left_out++;
            continue;
        }
        n[count] = (double)tokens;
        norms[count++] = cell_real(raw, i, "norm");
        least = tokens < least ? tokens : least;
        most = tokens > most ? tokens : most;
    }
    bool found = fit_growth(LAW_POWER, count, n, norms, &fit);
    FIT_ROW(LIST_PUT)
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    size_t rows = (size_t)table_rows(raw);
    double *n = must_allocate(rows, sizeof *n), *norms = must_allocate(rows, sizeof *norms);
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (table_row_is_first(raw, row, keys, KEYS))
            add_fit(raw, row, n, norms, tables[1]);
    free(norms);
    free(n);
    table_print(tables[1], table_rows(tables[1]), report_stream());
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"resolution", "Spectral norms of attention matrices against the number of tokens.", columns,
     COLUMNS},
    {"resolution_fit", "Power laws fitted to resolution.csv.", fit_columns, FIT_COLUMNS},
};

const experiment spectral_resolution = {
    .name = "spectral/resolution",
    .summary = "norms of attention as the input grows, at fixed m and at fixed stride",
    .source = "SOFT (IJCV) Tab. 6, App. D; S27, S28",
    .example = "attnum run spectral/resolution --input photos --n 196,784,3136",
    .options = OPTIONS(OPTION_DEVICE, OPTION_INPUT, OPTION_GRID, OPTION_SAMPLES, OPTION_N,
                       OPTION_SCALE, OPTION_DISTANCE),
    .defaults =
        "inputs photos, trained:soft, trained:softpp, trained:softmax, smooth, smooth:8, iid; "
        "n = 196, 484, 784, 1936, 3136 (--quick: to 784, --full: also 4096, 12544; cropped: to "
        "4096); 5 photographs, 1 sample of others (--quick: 2 and 1; --full: 13 and 5); a file is "
        "cropped on its grid; a trained network gets 1, 2, 3 and 4 times its side (--quick: to 2, "
        "--full: also 6, 8)",
    .outputs = outputs,
    .output_count = 2,
    .plot = "spectral/resolution.gp",
    .prepare = prepare,
    .describe = describe,
    .weight = weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .replay = replay,
    .release = landmark_sweep_release,
};
