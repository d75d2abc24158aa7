/* SPDX-License-Identifier: BSD-3-Clause */
/* The norm bounds of SOFT (IJCV) Eq. 15 and Prop. 3 to 6, and for each the bound that does hold;
 * all are compared with measurements. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "registry.h"
#include "spectral/matrices.h"
#include "spectral/norm_growth.h"
#include "spectral/operator_norms.h"

/* ---- What is measured ---- */

/* S = K(Q, Q), S^ = P^T A+ P, D = diag(A 1); NaN where it does not apply. */
typedef enum {
    ONE,
    TOKENS,
    ROOT_TOKENS,
    LANDMARKS,
    LANDMARKS_SQUARED,
    LAMBDA_1,           /* of S */
    ROW_SUM_MEAN,       /* of S */
    ROW_SUM_MAX,        /* of S */
    SOFT_NORM,          /* |P^T A+ P|_2 */
    ITERATE_NORM,       /* |P^T X_20 P|_2 */
    SOFTPP_NORM,        /* |P^T D^-1/2 A+ D^-1/2 P|_2 */
    PRODUCT,            /* |P|_2^2 |A+|_2 */
    SOFTPP_PRODUCT,     /* the same over d_min */
    PINV_NORM,          /* |A+|_2 */
    PINV_NORM_INF,      /* |A^-1|_inf */
    VARAH,              /* 1/(2 - d_max), if d_max < 2 */
    NORMALISED_NORM,    /* |D^-1/2 A^-1 D^-1/2|_2 */
    NORMALISED_LOWEST,  /* 1/(d_max lambda_min) */
    NORMALISED_HIGHEST, /* 1/(d_min lambda_min) */
    SOFTMAX_EIGENVALUE, /* the largest, of softmax attention with Q = K */
    SOFTMAX_SHORTFALL,  /* 1 - the smallest */
    SOFTMAX_NORM,       /* its |S|_2 */
    QUANTITIES
} quantity;

/* Which of a point's quantities have no reference in f64: |A^-1|_2, |D^-1/2 A^-1 D^-1/2|_2, A+ (two
 * routes keep different eigenvalues of A). */
enum { FLOOR_PLAIN = 1, FLOOR_NORMALISED = 2, FLOOR_PINV = 4 };

/* Which of these each quantity depends on. */
static const unsigned floors_of[QUANTITIES] = {
    [SOFT_NORM] = FLOOR_PLAIN | FLOOR_PINV,
    [SOFTPP_NORM] = FLOOR_PLAIN | FLOOR_PINV,
    [PRODUCT] = FLOOR_PLAIN | FLOOR_PINV,
    [SOFTPP_PRODUCT] = FLOOR_PLAIN | FLOOR_PINV,
    [PINV_NORM] = FLOOR_PLAIN,
    [PINV_NORM_INF] = FLOOR_PLAIN | FLOOR_PINV,
    [NORMALISED_NORM] = FLOOR_NORMALISED,
    [NORMALISED_LOWEST] = FLOOR_PLAIN,
    [NORMALISED_HIGHEST] = FLOOR_PLAIN,
};

/* The kinds of points: tokens and landmarks of an input; i.i.d. tokens with norms of very
 * different size, for softmax; two tokens at a given distance, as their own landmarks. */
typedef enum { FROM_INPUT = 1, FROM_NORMS = 2, FROM_PAIR = 4 } origin;

/* What magnifies rounding in addition to n: nothing, kappa(A), or the size of softmax's logits. */
typedef enum { PLAIN, INVERSE, LOGITS } rounding;

typedef struct {
    const char *name;
    unsigned origins; /* the kinds of points that it is about */
    quantity measured, bound;
    bool proved; /* a violation is an error of this program */
    rounding magnified;
} statement;

/* X(name, text, origins, measured, bound, proved, magnified) */
#define STATEMENT_LIST(X)                                                                          \
    X("S06-printed", "|S^|_2 <= |P|_2^2 |A+|_2 (Eq. 15)", FROM_INPUT, SOFT_NORM, PRODUCT, true,    \
      INVERSE)                                                                                     \
    X("S06-corrected", "|S^|_2 <= lambda_1(S)", FROM_INPUT, SOFT_NORM, LAMBDA_1, true, INVERSE)    \
    X("S06-iterate", "|P^T X_20 P|_2 <= lambda_1(S), X_20 of nr-paper", FROM_INPUT, ITERATE_NORM,  \
      LAMBDA_1, true, INVERSE)                                                                     \
    X("S06-softpp", "|P^T D^-1/2 A+ D^-1/2 P|_2 <= |P|_2^2 |A+|_2 / d_min", FROM_INPUT,            \
      SOFTPP_NORM, SOFTPP_PRODUCT, true, INVERSE)                                                  \
    X("S20-eigenvalue", "lambda_1 <= 1 of softmax attention with Q = K (Prop. 3)",                 \
      FROM_INPUT | FROM_NORMS, SOFTMAX_EIGENVALUE, ONE, true, LOGITS)                              \
    X("S20-lower", "its lambda_n >= 0 (Prop. 3), as 1 - lambda_n <= 1", FROM_INPUT | FROM_NORMS,   \
      SOFTMAX_SHORTFALL, ONE, true, LOGITS)                                                        \
    X("S20-norm", "its |S|_2 <= 1 (what the text takes from it)", FROM_INPUT | FROM_NORMS,         \
      SOFTMAX_NORM, ONE, false, LOGITS)                                                            \
    X("S20-corrected", "its |S|_2 <= sqrt(n)", FROM_INPUT | FROM_NORMS, SOFTMAX_NORM, ROOT_TOKENS, \
      true, LOGITS)                                                                                \
    X("S21-printed", "lambda_1(S) <= n (Prop. 4)", FROM_INPUT, LAMBDA_1, TOKENS, true, PLAIN)      \
    X("S21-corrected", "lambda_1(S) <= largest row sum", FROM_INPUT, LAMBDA_1, ROW_SUM_MAX, true,  \
      PLAIN)                                                                                       \
    X("S21-lower", "mean row sum <= lambda_1(S)", FROM_INPUT, ROW_SUM_MEAN, LAMBDA_1, true, PLAIN) \
    X("S22-printed",                                                                               \
      "|A+|_2 <= m^2: O(m^2) of Prop. 5 with constant 1, so that one row is no counterexample",    \
      FROM_INPUT, PINV_NORM, LANDMARKS_SQUARED, false, INVERSE)                                    \
    X("S22-pair",                                                                                  \
      "the same for two tokens at distance delta: about 1/(s delta^2) at m = 2, a counterexample " \
      "for every constant",                                                                        \
      FROM_PAIR, PINV_NORM, LANDMARKS_SQUARED, false, INVERSE)                                     \
    X("S22-corrected", "|A^-1|_inf <= 1/(2 - d_max), for d_max < 2 only (Varah)",                  \
      FROM_INPUT | FROM_PAIR, PINV_NORM_INF, VARAH, true, INVERSE)                                 \
    X("S23-printed",                                                                               \
      "|D^-1/2 A^-1 D^-1/2|_2 <= m: O(m) of Prop. 6 with constant 1, so that one row is no "       \
      "counterexample",                                                                            \
      FROM_INPUT, NORMALISED_NORM, LANDMARKS, false, INVERSE)                                      \
    X("S23-pair",                                                                                  \
      "the same for two tokens at distance delta: about 1/(2 s delta^2) at m = 2, a "              \
      "counterexample for every constant",                                                         \
      FROM_PAIR, NORMALISED_NORM, LANDMARKS, false, INVERSE)                                       \
    X("S23-corrected", "|D^-1/2 A^-1 D^-1/2|_2 <= 1/(d_min lambda_min)", FROM_INPUT | FROM_PAIR,   \
      NORMALISED_NORM, NORMALISED_HIGHEST, true, INVERSE)                                          \
    X("S23-lower", "1/(d_max lambda_min) <= |D^-1/2 A^-1 D^-1/2|_2", FROM_INPUT | FROM_PAIR,       \
      NORMALISED_LOWEST, NORMALISED_NORM, true, INVERSE)

#define STATEMENT_ROW(name, text, ...) {name, __VA_ARGS__},
static const statement statements[] = {STATEMENT_LIST(STATEMENT_ROW)};
enum { STATEMENTS = sizeof statements / sizeof *statements };

#define STATEMENT_TEXT(name, text, ...) name ": " text ". "
#define ROW(X)                                                                                     \
    X(TEXT, statement, "", STATEMENT_LIST(STATEMENT_TEXT), st->name)                               \
    X(TEXT, input, "",                                                                             \
      "where the tokens come from; iid-norms: q = r z, z ~ N(0, I), log r ~ N(0, 1); "             \
      "pair:DELTA: two tokens at distance DELTA, which are their own landmarks",                   \
      name)                                                                                        \
    X(INTEGER, n, "", "number of tokens", grid_tokens(&p->grid))                                   \
    X(INTEGER_IF, m, "", "number of landmarks, pooled from the tokens; missing: none", p->m > 0,   \
      p->m)                                                                                        \
    X(INTEGER, sample, "", "which sample of the input, from 0", p->sample)                         \
    X(REAL, measured, "", "the left side", left)                                                   \
    X(REAL, bound, "", "the right side", right)                                                    \
    X(REAL, ratio, "", "measured / bound; 0 where measured is 0",                                  \
      left > 0 ? left / right : 0 /* 0/0: K(L, Q) may be all 0 */)                                 \
    X(BOOLEAN, within, "", "measured <= bound (1 + allowance)", within)                            \
    X(REAL, allowance, "",                                                                         \
      "for rounding: 10 n u; where A is inverted (S06, S22, S23) 10 m kappa(A) u more, "           \
      "kappa of what A+ keeps; for softmax (S20) 10 d L u more, L the largest |q|^2 / "            \
      "sqrt(d); u = 2^-53",                                                                        \
      allowance)                                                                                   \
    X(BOOLEAN, proved, "", "whether the statement is true, so that `within` must be", st->proved)  \
    X(BOOLEAN, below_floor, "",                                                                    \
      "f64 cannot tell what the row holds. S22: lambda_min(A) < m u lambda_max; S23: the "         \
      "same of D^1/2 A D^1/2; S06 with A+: lambda_min(A) is, or two routes to A+ keep "            \
      "different eigenvalues. S22-printed, S23-printed and the pairs then hold a lower "           \
      "bound of the norm, 1/(2 m u lambda_max), if rounding moved lambda_min by less than "        \
      "m u lambda_max (not certified), or have no row if two landmarks coincide, where "           \
      "that is none of A+; S22-corrected, S23-corrected and S23-lower have no row where "          \
      "any of this is so; A+ is without eigenvalues <= m u lambda_max",                            \
      (measured->floors & hangs_on) != 0)                                                          \
    X(INTEGER, seed, "", "the seed of the input", (int64_t)p->seed)
static const column columns[] = {ROW(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- Points ---- */

static const double pair_distances[] = {1e-1, 1e-2, 1e-3, 1e-4};
enum { PAIR_DISTANCES = sizeof pair_distances / sizeof *pair_distances };

static origin point_origin(const landmark_point *p)
{
    return p->in ? FROM_INPUT : p->distance > 0 ? FROM_PAIR : FROM_NORMS;
}

/* The index-th stage of --stage, or else of 3 and 2 (196 and 784 tokens), 0 past the last one. A
 * file has one stage. */
static int64_t get_stage(const program_options *s, const input *in, int index)
{
    static const int64_t usual[] = {3, 2};
    int count = s->stages.count > 0 ? s->stages.count : 2;
    if (index >= (in && input_is_file(in) ? 1 : count))
        return 0;
    return s->stages.count > 0 ? s->stages.items[index] : usual[index];
}

/* Points without an input. Pairs do not depend on the seed and are added once. */
static void add_own_points(landmark_sweep *sweep, uint64_t seed)
{
    int64_t stage;
    for (int j = 0; (stage = get_stage(sweep->s, NULL, j)) > 0; j++)
        landmark_sweep_add(
            sweep,
            &(landmark_point){.seed = seed, .stage = stage, .grid = stage_grid(NULL, stage)});
    for (size_t i = 0; i < PAIR_DISTANCES && seed == (uint64_t)sweep->s->seeds.items[0]; i++)
        landmark_sweep_add(sweep,
                           &(landmark_point){.seed = seed,
                                             .distance = pair_distances[i],
                                             .m = 2,
                                             .grid = {.height = 2, .width = 1, .stride = 1}});
}

static int add_points(landmark_sweep *sweep, uint64_t seed)
{
    const program_options *s = sweep->s;
    static const int64_t usual[] = {49};
    static const int64_t samples[EFFORT_COUNT] = {
        [EFFORT_QUICK] = 1, [EFFORT_DEFAULT] = 5, [EFFORT_FULL] = 100};
    const int64_t *m = s->landmarks.count > 0 ? s->landmarks.items : usual;
    int m_count = s->landmarks.count > 0 ? s->landmarks.count : 1, code = EXIT_PASS;
    int64_t stage;
    for (int i = 0; i < sweep->inputs.count; i++)
        for (int j = 0; (stage = get_stage(s, sweep->inputs.items[i], j)) > 0; j++)
            for (int k = 0; k < m_count && code == EXIT_PASS; k++)
                code = landmark_sweep_add_stage(sweep, seed, sweep->inputs.items[i], stage, m[k],
                                                samples[s->effort]);
    add_own_points(sweep, seed);
    return code;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const char *const usual_inputs[] = {"photos",   "trained:soft", "smooth",    "smooth:8",
                                               "noisy",    "iid",          "iid:0.3",   "clusters",
                                               "constant", "duplicates",   "circulant", NULL};
    int code = landmark_sweep_start(s, usual_inputs, state);
    landmark_sweep *sweep = *state;
    if (code == EXIT_PASS)
        code = refuse_large_files(&sweep->inputs, "spectral/bounds");
    for (int i = 0; i < s->seeds.count && code == EXIT_PASS; i++)
        code = add_points(sweep, (uint64_t)s->seeds.items[i]);
    *points = sweep->count;
    return code;
}

static void origin_name(const landmark_point *p, char *name, size_t size)
{
    if (p->distance > 0)
        snprintf(name, size, "pair:%g", p->distance);
    else
        snprintf(name, size, "%s", p->in ? input_name(p->in) : "iid-norms");
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    char name[256];
    origin_name(p, name, sizeof name);
    snprintf(buffer, size, "%s n=%" PRId64 " sample=%" PRId64 " seed=%" PRIu64, name,
             grid_tokens(&p->grid), p->sample, p->seed);
}

static double weight(const void *state, int64_t point)
{
    double n = (double)grid_tokens(&((const landmark_sweep *)state)->points[point].grid);
    return n * n * n;
}

/* ---- Measuring ---- */

typedef struct {
    double values[QUANTITIES];
    double kappa;  /* condition number of the part of A that A+ keeps */
    double logits; /* d times the largest logit of softmax */
    unsigned floors;
} bound_quantities;

/* S20 is about the tokens alone, which are queries and keys of softmax. */
static int measure_softmax(int64_t n, int64_t dim, const double *tokens, bound_quantities *out)
{
    softmax_norms norms;
    int code = softmax_norms_measure(n, dim, tokens, &norms);
    out->logits = (double)dim * norms.logit;
    out->values[ROOT_TOKENS] = sqrt((double)n);
    out->values[SOFTMAX_EIGENVALUE] = norms.highest;
    out->values[SOFTMAX_SHORTFALL] = 1 - norms.lowest;
    out->values[SOFTMAX_NORM] = norms.norm;
    return code;
}

/* S21: S = K(Q, Q). */
static int measure_kernel(const landmark_sweep *sweep, atn_context *context, int64_t n, int64_t dim,
                          double *tokens, bound_quantities *out)
{
    double *s = must_allocate((size_t)n, (size_t)n * sizeof *s), total = 0, largest = 0;
    int code = make_kernel(sweep->s, context, n, dim, tokens, s);
    for (int64_t i = 0; i < n && code == EXIT_PASS; i++) {
        double row = 0;
        for (int64_t j = 0; j < n; j++)
            row += s[i * n + j];
        total += row;
        largest = fmax(largest, row);
    }
    if (code == EXIT_PASS)
        code = checked_norm(n, s, &out->values[LAMBDA_1]);
    out->values[TOKENS] = (double)n;
    out->values[ROW_SUM_MEAN] = total / (double)n;
    out->values[ROW_SUM_MAX] = largest;
    free(s);
    return code;
}

/* Whether two landmarks coincide to rounding. If not, A is nonsingular: A+ = A^-1. */
static bool has_equal_landmarks(int64_t m, const double *a)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < i; j++)
            if (a[i * m + j] >= 1)
                return true;
    return false;
}

/* S22, S23: A and its inverse. */
static void set_inverse_bounds(int64_t m, const double *a, const growth_norms *growth,
                               const attention_norms *norms, bound_quantities *out)
{
    double *values = out->values;
    out->floors = (growth->pinv_below_floor ? FLOOR_PLAIN : 0) |
                  (growth->normalised_below_floor ? FLOOR_NORMALISED : 0) |
                  (norms->below_floor ? FLOOR_PINV : 0);
    if (out->floors && has_equal_landmarks(m, a))
        return;
    values[LANDMARKS] = (double)m;
    values[LANDMARKS_SQUARED] = (double)m * (double)m;
    values[PINV_NORM] = growth->pinv_norm;
    values[NORMALISED_NORM] = growth->normalised_norm;
    if (out->floors)
        return;
    values[NORMALISED_LOWEST] = 1 / (growth->d_max * growth->lambda_min);
    values[NORMALISED_HIGHEST] = 1 / (growth->d_min * growth->lambda_min);
    values[PINV_NORM_INF] = norms->pinv_norm_inf;
    if (growth->d_max < 2)
        values[VARAH] = 1 / (2 - growth->d_max);
}

/* S06: the attention matrices P^T X P. */
static void set_attention_bounds(const growth_norms *growth, const attention_norms *norms,
                                 bound_quantities *out)
{
    double *values = out->values;
    out->kappa = growth->lambda_max * norms->pinv_norm;
    values[SOFT_NORM] = norms->soft;
    values[ITERATE_NORM] = norms->iterate;
    values[SOFTPP_NORM] = norms->softpp;
    values[PRODUCT] = norms->p_norm * norms->p_norm * norms->pinv_norm;
    values[SOFTPP_PRODUCT] = values[PRODUCT] / growth->d_min;
}

static int measure_landmarks(const landmark_sweep *sweep, atn_context *context, int64_t n,
                             int64_t dim, double *tokens, int64_t m, double *landmarks,
                             bound_quantities *out)
{
    double *a = must_allocate((size_t)m, (size_t)m * sizeof *a);
    double *p = must_allocate((size_t)m, (size_t)n * sizeof *p);
    growth_norms growth;
    attention_norms norms;
    int code = make_kernel(sweep->s, context, m, dim, landmarks, a);
    if (code == EXIT_PASS)
        code = make_cross_kernel(sweep->s, context, m, n, dim, landmarks, tokens, p);
    if (code == EXIT_PASS)
        code = growth_measure(context, m, a, &growth);
    if (code != EXIT_ENVIRONMENT)
        code = exit_worst(code, attention_norms_measure(context, m, n, a, p, &norms));
    if (code == EXIT_PASS || code == EXIT_CHECK) {
        set_inverse_bounds(m, a, &growth, &norms, out);
        set_attention_bounds(&growth, &norms, out);
    }
    free(p);
    free(a);
    return code;
}

static int make_point_tokens(const landmark_point *p, atn_context *context, int64_t dim,
                             double *tokens, double *landmarks)
{
    if (p->in)
        return make_landmarks(p->in, &p->grid, p->seed, p->sample, context, tokens, landmarks);
    if (point_origin(p) == FROM_NORMS)
        make_norms(p->seed, 0, grid_tokens(&p->grid), tokens);
    else
        tokens[dim] = landmarks[dim] = p->distance; /* the rest is 0 */
    return EXIT_PASS;
}

static int measure_point(const landmark_sweep *sweep, const landmark_point *p, atn_context *context,
                         bound_quantities *out)
{
    int64_t n = grid_tokens(&p->grid), m = p->m, dim = p->in ? input_dim(p->in) : TOKEN_DIM;
    double *tokens = must_allocate((size_t)n, (size_t)dim * sizeof *tokens);
    double *landmarks = must_allocate((size_t)m + 1, (size_t)dim * sizeof *landmarks);
    *out = (bound_quantities){.kappa = 0};
    for (int i = 0; i < QUANTITIES; i++)
        out->values[i] = NAN;
    out->values[ONE] = 1;
    int code = make_point_tokens(p, context, dim, tokens, landmarks);
    if (code == EXIT_PASS && point_origin(p) != FROM_PAIR)
        code = measure_softmax(n, dim, tokens, out);
    if (p->in && (code == EXIT_PASS || code == EXIT_CHECK))
        code = exit_worst(code, measure_kernel(sweep, context, n, dim, tokens, out));
    if (m > 0 && (code == EXIT_PASS || code == EXIT_CHECK))
        code =
            exit_worst(code, measure_landmarks(sweep, context, n, dim, tokens, m, landmarks, out));
    free(landmarks);
    free(tokens);
    return code;
}

/* ---- Rows ---- */

/* False if a proved statement is violated. */
static bool add_row(const landmark_point *p, const statement *st, const bound_quantities *measured,
                    table *to)
{
    char name[256];
    const double magnified[] = {0, (double)p->m * measured->kappa, measured->logits};
    double left = measured->values[st->measured], right = measured->values[st->bound];
    double allowance = 10 * atn_dtype_roundoff(ATN_F64) *
                       ((double)grid_tokens(&p->grid) + magnified[st->magnified]);
    unsigned hangs_on = floors_of[st->measured] | floors_of[st->bound];
    bool within = left <= right * (1 + allowance);
    origin_name(p, name, sizeof name);
    ROW(LIST_PUT)
    if (st->proved && !within)
        report_error("%s: %s n=%" PRId64 " sample=%" PRId64 ": %.17g, expected at most %.17g",
                     st->name, name, grid_tokens(&p->grid), p->sample, left, right);
    return within || !st->proved;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const landmark_sweep *sweep = state;
    const landmark_point *p = &sweep->points[point];
    bound_quantities measured;
    int code = measure_point(sweep, p, context, &measured);
    if (code != EXIT_PASS && code != EXIT_CHECK)
        return code;
    for (int i = 0; i < STATEMENTS; i++) {
        const statement *st = &statements[i];
        bool applies = (st->origins & (unsigned)point_origin(p)) &&
                       !isnan(measured.values[st->measured]) && !isnan(measured.values[st->bound]);
        if (applies && !add_row(p, st, &measured, raw))
            code = EXIT_CHECK;
    }
    return code;
}

/* Prints a line per statement: how many rows satisfy it, and the largest ratio. */
#define SUMMARY_ROW(X)                                                                             \
    X(TEXT, statement, "", "", st->name)                                                           \
    X(BOOLEAN, proved, "", "", st->proved)                                                         \
    X(INTEGER, rows, "", "", rows)                                                                 \
    X(INTEGER, within, "", "", kept)                                                               \
    X(REAL, largest_ratio, "", "", table_get_real(raw, worst, ratio))                              \
    X(TEXT, of_input, "", "", cell_text(raw, worst, "input"))
static const column summary_columns[] = {SUMMARY_ROW(LIST_COLUMN)};

static void summarise(const table *raw, const statement *st, table *to)
{
    int name = table_column(raw, "statement"), ratio = table_column(raw, "ratio");
    int within = table_column(raw, "within");
    int64_t rows = 0, kept = 0, worst = -1;
    for (int64_t row = 0; row < table_rows(raw); row++) {
        if (strcmp(table_get_text(raw, row, name), st->name) != 0)
            continue;
        rows++;
        kept += table_get_boolean(raw, row, within);
        if (worst < 0 || table_get_real(raw, row, ratio) > table_get_real(raw, worst, ratio))
            worst = row;
    }
    if (rows == 0)
        return;
    SUMMARY_ROW(LIST_PUT)
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    table *summary =
        table_create(summary_columns, sizeof summary_columns / sizeof *summary_columns);
    for (int i = 0; i < STATEMENTS; i++)
        summarise(raw, &statements[i], summary);
    table_print(summary, table_rows(summary), report_stream());
    table_free(summary);
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"bounds", "Printed and corrected norm bounds, and measurements in f64.", columns, COLUMNS}};

const experiment spectral_bounds = {
    .name = "spectral/bounds",
    .summary = "printed and corrected norm bounds, compared with measurements",
    .source = "SOFT (IJCV) Eq. 15, Prop. 3-6; S06, S20-S23",
    .example = "attnum run spectral/bounds --input photos,smooth --samples 10",
    .options = OPTIONS(OPTION_DEVICE, OPTION_INPUT, OPTION_GRID, OPTION_SAMPLES, OPTION_STAGE,
                       OPTION_M, OPTION_SCALE, OPTION_DISTANCE),
    .defaults =
        "inputs photos, trained:soft, smooth, smooth:8, noisy, iid, iid:0.3, clusters, constant, "
        "duplicates, circulant, and two that only this experiment has (iid-norms, pair); stages 3, 2 (n = "
        "196, 784), a file has its own n, at most 4096; m = 49, a file without --m the "
        "nearest it has, pooled on its grid, or in windows of consecutive tokens where no "
        "grid is known; 5 samples (--quick: 1; --full: 100)",
    .outputs = outputs,
    .output_count = 1,
    .plot = "spectral/bounds.gp",
    .prepare = prepare,
    .describe = describe,
    .weight = weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .replay = landmark_sweep_replay,
    .release = landmark_sweep_release,
};
