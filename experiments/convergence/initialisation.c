/* SPDX-License-Identifier: BSD-3-Clause */
/* The effect of each published start alpha: SOFT (IJCV) Proposition 1, Algorithm 2 and section 3.2,
 * on matrices with known spectra and on inputs.
 *
 * A point is one matrix; it gives a row per dtype and rule. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <matrices.h>
#include <newton.h>

#include "common/experiment.h"
#include "common/report.h"
#include "convergence/bottleneck.h"
#include "registry.h"

enum { SHORT_RUN = 20, LONG_RUN = 60, SEARCH_CAP = 64, LINES_SHOWN = 200 };

/* ---- Columns ---- */

#define ROW(X)                                                                                     \
    X(TEXT, matrix, "", "a known matrix, NAME:PARAMETER, or an input", name)                       \
    X(INTEGER, m, "", "its size", b->m)                                                            \
    X(TEXT, rule, "",                                                                              \
      "paper: 2/|A|_1^2; safe: 1.8/|A|_1^2; adaptive and adaptive-squared: paper's, halved "       \
      "until |I - alpha A|_1 <= 1 or |I - alpha A^2|_1 <= 1, at most 64 times; soft: "             \
      "1.8/|A|_1^2 on A + 0.01 I; softpp: paper's, halved until |I - alpha A^2|_1 <= 1.01, at "    \
      "most 10 times, for this matrix alone (the published code: for its batch at once); "         \
      "optimal: 2/(lambda_min^2 + lambda_max^2) on the numerical range",                           \
      rule->name)                                                                                  \
    X(TEXT, dtype, "", "arithmetic of the search and of the iteration", atn_dtype_name(b->dtype))  \
    X(REAL_IF, alpha, "", "the start X_0 = alpha B; missing if the search found none", started,    \
      alpha)                                                                                       \
    X(REAL, lambda_max, "",                                                                        \
      "largest eigenvalue of B, the matrix inverted: A, for soft A + 0.01 I", largest)             \
    X(REAL, norm1, "", "|A|_1, the largest row sum", ref_norm1(b->m, b->exact))                    \
    X(REAL_IF, margin, "",                                                                         \
      "1 - alpha lambda_max^2. In exact arithmetic the iteration converges iff this is above "     \
      "-1, and a margin within a few u of -1 cannot be told from that boundary. In floating "      \
      "point, rounding errors double in every step on the boundary and in the null space: as "     \
      "the steps go on they may bring a boundary mode back, or make a start with a margin "        \
      "above -1 overflow",                                                                         \
      started, 1 - alpha * largest * largest)                                                      \
    X(INTEGER_IF, search_n, "",                                                                    \
      "halvings until the test was met; missing for rules that do not search and where "           \
      "search_found is false",                                                                     \
      searches &&found, o.info.halvings)                                                           \
    X(BOOLEAN_IF, search_found, "",                                                                \
      "whether the test was met before the cap, in the dtype; missing for rules that do not "      \
      "search",                                                                                    \
      searches, found)                                                                             \
    X(REAL_IF, residual_t20, "",                                                                   \
      "|A X A - A|_2 / |A|_2 after 20 steps; inf if the iteration overflowed", started,            \
      o.residual_short)                                                                            \
    X(REAL_IF, residual_t60, "", "the same after 60 steps", started, o.residual_long)              \
    X(BOOLEAN_IF, search_exact, "",                                                                \
      "whether any n meets the test in exact arithmetic (if so, n = 0 does); missing where the "   \
      "rule is neither adaptive nor adaptive-squared",                                             \
      rule->search != ATN_SEARCH_NONE, search_exists(b, rule->search))                             \
    X(TEXT, status_t20, "",                                                                        \
      "converged (|B X B - B|_F <= sqrt(u) |B|_F), not converged, overflowed or no start",         \
      o.status_short)                                                                              \
    X(TEXT, status_t60, "", "the same after 60 steps", o.status_long)                              \
    X(INTEGER_IF, stage, "", "inputs: the stage, 0 for files", p, p->stage)                        \
    X(INTEGER_IF, seed, "", "inputs: the seed", p, (int64_t)p->seed)                               \
    X(INTEGER_IF, sample, "", "inputs: the sample", p, p->sample)
static const column columns[] = {ROW(LIST_COLUMN)};

static const output_spec outputs[] = {
    {"initialisation", "What each start of the Newton-Raphson inverse leads to", columns,
     sizeof columns / sizeof *columns},
};

/* ---- The rules ---- */

typedef struct {
    const char *name;
    atn_inverse_method method;
    double numerator;        /* 0: the method's own */
    atn_alpha_search search; /* none: the method's own */
    bool optimal;
} start_rule;

static const start_rule rules[] = {
    {"paper", ATN_INVERSE_NR_PAPER, 0, ATN_SEARCH_NONE, false},
    {"safe", ATN_INVERSE_NR_PAPER, 1.8, ATN_SEARCH_NONE, false},
    {"adaptive", ATN_INVERSE_NR_ADAPTIVE, 0, ATN_SEARCH_MATRIX, false},
    {"adaptive-squared", ATN_INVERSE_NR_ADAPTIVE, 0, ATN_SEARCH_SQUARE, false},
    {"soft", ATN_INVERSE_NR_SOFT, 0, ATN_SEARCH_NONE, false},
    {"softpp", ATN_INVERSE_NR_SOFTPP, 0, ATN_SEARCH_NONE, false},
    {"optimal", ATN_INVERSE_NR, 0, ATN_SEARCH_NONE, true},
};
enum { RULES = sizeof rules / sizeof *rules };

static atn_inverse_desc describe_rule(const start_rule *rule, const bottleneck *b)
{
    atn_inverse_desc desc = atn_inverse_defaults(rule->method);
    if (rule->numerator > 0)
        desc.numerator = rule->numerator;
    if (rule->search != ATN_SEARCH_NONE) { /* more halvings than published, to find starts that only
                                              rounding makes acceptable */
        desc.search = rule->search;
        desc.search_cap = SEARCH_CAP;
    }
    if (rule->optimal) {
        double least = bottleneck_smallest(b, true), largest = bottleneck_largest(b);
        desc.alpha = b->finite ? 2 / (least * least + largest * largest) : 1;
    }
    return desc;
}

/* Whether an n exists with |I - c C|_1 <= 1, c = 2 (1/2)^n / |A|_1^2, C = A or A^2, for entries
 * >= 0 and |A|_1 >= 1. Column j, with diagonal d and sum r, has |1 - c d| + c (r - d). If c d <= 1
 * that is 1 + c (r - 2 d), at most 1 if and only if r <= 2 d, whatever c is. If c d > 1 it is
 * c r - 1, at most 1 because c r <= 2 for both C, and then r <= 2 / c < 2 d. */
static bool search_exists(const bottleneck *b, atn_alpha_search search)
{
    int64_t m = b->m;
    for (int64_t j = 0; j < m; j++) {
        long double sum = 0, diagonal = 0;
        for (int64_t i = 0; i < m; i++) {
            long double entry = b->exact[j * m + i];
            if (search == ATN_SEARCH_SQUARE) {
                long double row_sum = 0;
                for (int64_t k = 0; k < m; k++)
                    row_sum += b->exact[i * m + k];
                sum += entry * row_sum;
                diagonal += entry * entry;
            } else {
                sum += entry;
                diagonal += i == j ? entry : 0;
            }
        }
        if (!(sum <= 2 * diagonal))
            return false;
    }
    return true;
}

/* ---- Points ---- */

static const struct {
    ref_matrix matrix;
    int64_t m;
    double value;
    bool has_value;
} known[] = {
    {REF_IDENTITY, 49, 0, false},     {REF_ONES, 8, 0, false},
    {REF_ONES, 49, 0, false},         {REF_EQUICORRELATED, 49, 0.5, true},
    {REF_CIRCULANT, 49, 5, true},     {REF_TORUS, 49, 1, true},
    {REF_TWO, 2, 0.3, true},          {REF_BLOCKS, 48, 0.5, true},
    {REF_DUPLICATES, 49, 1e-3, true}, {REF_DUPLICATES, 49, 0, true},
};
enum { KNOWN = sizeof known / sizeof *known };

static const usual_input few_inputs[] = {{"smooth", 1}, {"photos", 1}, {"trained:soft", 1}, {0}};
static const usual_input many_inputs[] = {
    {"smooth", 10},  {"photos", 13},   {"trained:soft", 16}, {"noisy", 10},      {"iid", 10},
    {"iid:0.3", 10}, {"clusters", 10}, {"circulant", 1},     {"duplicates", 10}, {0}};
static const int64_t last_stage[] = {3, 0}, all_stages[] = {1, 2, 3, 0};
static const stage_defaults defaults[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {few_inputs, last_stage},
    [EFFORT_DEFAULT] = {few_inputs, last_stage},
    [EFFORT_FULL] = {many_inputs, all_stages},
};

/* The first points are the known matrices, the others are matrices of inputs. */
typedef struct {
    landmark_sweep draws; /* first: see landmark_sweep_open_stages */
    const program_options *s;
} initialisation_sweep;

static int prepare(const program_options *s, void **state, int64_t *points)
{
    initialisation_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->s = s;
    int code = landmark_sweep_open_stages(&w->draws, s, &defaults[s->effort]);
    *points = KNOWN + w->draws.count;
    return code;
}

static void replay(const void *state, int64_t point, options_point *options)
{
    landmark_sweep_replay(state, point < KNOWN ? 0 : point - KNOWN, options);
}

static void known_name(int64_t point, char *buffer, size_t size)
{
    const char *name = ref_matrix_name(known[point].matrix);
    if (known[point].has_value)
        snprintf(buffer, size, "%s:%g", name, known[point].value);
    else
        snprintf(buffer, size, "%s", name);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    if (point < KNOWN)
        known_name(point, buffer, size);
    else
        landmark_sweep_describe(state, point - KNOWN, buffer, size);
}

/* ---- A point ---- */

static const char overflowed[] = "overflowed";

static const char *describe_status(const atn_inverse_info *info)
{
    if (info->stop == ATN_STOP_NO_ALPHA)
        return "no start";
    if (info->stop == ATN_STOP_NONFINITE)
        return overflowed;
    return info->status == ATN_OK ? "converged" : "not converged";
}

/* The outcome of a rule on a matrix. */
typedef struct {
    atn_inverse_info info; /* of the short run */
    double residual_short, residual_long;
    const char *status_short, *status_long;
} start_outcome;

/* Both runs have the same iterates, so one trace is enough. Returns an exit code. */
static int run_rule(bottleneck *b, atn_context *context, atn_inverse_desc desc, start_outcome *o)
{
    double residuals[LONG_RUN + 1], beyond = b->finite ? INFINITY : NAN;
    atn_trace trace = {.capacity = LONG_RUN + 1, .values = {[ATN_METRIC_RESIDUAL] = residuals}};
    atn_inverse_info info;
    desc.iterations = SHORT_RUN;
    int code = bottleneck_invert(b, context, &desc, &o->info, NULL);
    desc.iterations = LONG_RUN;
    if (code == EXIT_PASS)
        code = bottleneck_invert(b, context, &desc, &info, &trace);
    if (code != EXIT_PASS)
        return code;
    o->status_short = describe_status(&o->info);
    o->status_long = describe_status(&info);
    o->residual_short = trace.length > SHORT_RUN ? residuals[SHORT_RUN] : beyond;
    o->residual_long = trace.length > LONG_RUN ? residuals[LONG_RUN] : beyond;
    return EXIT_PASS;
}

/* The row of a rule. p is null for the known matrices. */
static int put_rule(table *to, bottleneck *b, atn_context *context, const char *name,
                    const start_rule *rule, const landmark_point *p)
{
    atn_inverse_desc desc = describe_rule(rule, b);
    start_outcome o;
    int code = run_rule(b, context, desc, &o);
    if (code != EXIT_PASS)
        return code;
    bool started = o.info.stop != ATN_STOP_NO_ALPHA, searches = desc.search != ATN_SEARCH_NONE;
    bool found =
        b->finite && started && (o.info.halvings < desc.search_cap || !desc.search_accepts_last);
    double alpha = o.info.alpha;
    double largest = bottleneck_largest(b) + bottleneck_round(b->dtype, desc.ridge);
    ROW(LIST_PUT)
    return EXIT_PASS;
}

/* The rows of a matrix in one dtype. */
static int put_rules(table *t, bottleneck *b, atn_context *context, const char *name,
                     const landmark_point *p)
{
    int code = EXIT_PASS;
    for (int i = 0; i < RULES && code == EXIT_PASS; i++)
        code = put_rule(t, b, context, name, &rules[i], p);
    return code;
}

static int run_known(const initialisation_sweep *w, int64_t point, atn_context *context, table *raw)
{
    int64_t m = known[point].m;
    char name[64];
    known_name(point, name, sizeof name);
    double *matrix = must_allocate((size_t)(m * m), sizeof *matrix);
    atn_status status = ref_matrix_make(known[point].matrix, m, known[point].value, matrix, NULL);
    int code = EXIT_PASS;
    if (status != ATN_OK) {
        report_error("%s: %s", name, atn_status_message(status));
        code = EXIT_ENVIRONMENT;
    }
    for (int i = 0; i < w->s->dtype_count && (code == EXIT_PASS || code == EXIT_CHECK); i++) {
        bottleneck b = bottleneck_create(w->s->dtypes[i], m);
        int made = bottleneck_from_matrix(&b, matrix);
        if (made == EXIT_PASS || made == EXIT_CHECK)
            made = exit_worst(made, put_rules(raw, &b, context, name, NULL));
        code = exit_worst(code, made);
        bottleneck_free(&b);
    }
    free(matrix);
    return code;
}

static int run_input(const initialisation_sweep *w, const landmark_point *p, atn_context *context,
                     table *raw)
{
    double *tokens;
    int code = landmark_sweep_tokens(&w->draws, p, &tokens);
    for (int i = 0; i < w->s->dtype_count && (code == EXIT_PASS || code == EXIT_CHECK); i++) {
        bottleneck b = bottleneck_create(w->s->dtypes[i], p->m);
        int made = bottleneck_from_tokens(&b, &w->draws, p, context, tokens, NULL);
        if (made == EXIT_PASS || made == EXIT_CHECK)
            made = exit_worst(made, put_rules(raw, &b, context, input_name(p->in), p));
        code = exit_worst(code, made);
        bottleneck_free(&b);
    }
    free(tokens);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const initialisation_sweep *w = state;
    if (point < KNOWN)
        return run_known(w, point, context, raw);
    return run_input(w, &w->draws.points[point - KNOWN], context, raw);
}

/* ---- Printed summary ---- */

enum {
    SHARED_COLUMNS = 3,
    DTYPE_COLUMNS = 4,
    SHOWN = SHARED_COLUMNS + DTYPE_COLUMNS * ATN_DTYPE_COUNT
};

/* Whether a row is of the safe start and overflows in the long run. */
static bool overflows_later(const table *rows, int64_t row)
{
    return cell_is(rows, row, "rule", "safe") && cell_is(rows, row, "status_t60", overflowed);
}

/* Names the matrices of such rows, each once, with the dtype. Which they are depends on rounding,
 * and with it on the instruction set. */
static void print_overflows(const table *rows)
{
    bool any = false;
    for (int64_t row = 0; row < table_rows(rows); row++) {
        const char *matrix = cell_text(rows, row, "matrix"), *dtype = cell_text(rows, row, "dtype");
        int64_t m = cell_integer(rows, row, "m");
        bool first = overflows_later(rows, row); /* of its samples and stages */
        for (int64_t other = 0; other < row && first; other++)
            first = !(overflows_later(rows, other) && cell_is(rows, other, "matrix", matrix) &&
                      cell_integer(rows, other, "m") == m && cell_is(rows, other, "dtype", dtype));
        if (first)
            report_text("%s%s m=%" PRId64 " (%s)",
                        any ? ", " : "From the safe start, too, these overflow by step 60: ",
                        matrix, m, dtype);
        any |= first;
    }
    if (any)
        report_text(". That is growth of noise, not the start.\n");
}

/* A line per matrix and rule, the dtypes side by side. */
static void print_rows(const program_options *s, const table *rows)
{
    char names[SHOWN][32];
    column shown[SHOWN] = {{"matrix", COLUMN_TEXT, "", ""},
                           {"m", COLUMN_INTEGER, "", ""},
                           {"rule", COLUMN_TEXT, "", ""}};
    static const struct {
        const char *name;
        column_type type;
    } each[DTYPE_COLUMNS] = {
        {"margin", COLUMN_REAL}, {"n", COLUMN_INTEGER}, {"t=20", COLUMN_REAL}, {"", COLUMN_TEXT}};
    int count = SHARED_COLUMNS;
    for (int d = 0; d < s->dtype_count; d++)
        for (int i = 0; i < DTYPE_COLUMNS; i++, count++) {
            snprintf(names[count], sizeof names[count], "%s %s", atn_dtype_name(s->dtypes[d]),
                     each[i].name);
            shown[count] = (column){names[count], each[i].type, "", ""};
        }
    table *t = table_create(shown, count);
    int64_t block = (int64_t)s->dtype_count * RULES;
    for (int64_t first = 0; first < table_rows(rows); first += block)
        for (int64_t rule = 0; rule < RULES; rule++) {
            table_copy_row(t, rows, first + rule); /* matrix, m, rule */
            for (int64_t row = first + rule; row < first + block; row += RULES) {
                table_copy(t, rows, row, "margin");
                table_copy(t, rows, row, "search_n");
                table_copy(t, rows, row, "residual_t20");
                table_copy(t, rows, row, "status_t20");
            }
        }
    report_text(
        "margin 1 - alpha lambda_max^2 (in exact arithmetic the iteration converges iff above -1), "
        "halvings n, |A X A - A|_2 / |A|_2 and status after 20 steps\n");
    table_print(t, LINES_SHOWN, report_stream());
    report_text(
        "where all row sums are equal, 2/|A|_1^2 (paper) puts lambda_max on the boundary, margin -1 "
        "but for a few u, and does\nnot converge in exact arithmetic; 1.8/|A|_1^2 (safe) repairs "
        "it, see t=20. Rounding errors double in every step on the\nboundary and in the null "
        "space. Later (status_t60 in the CSV) they may bring boundary modes back, or overflow.\n");
    print_overflows(rows);
    table_free(t);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    print_rows(s, raw);
    return EXIT_PASS;
}

const experiment convergence_initialisation = {
    .name = "convergence/initialisation",
    .summary = "what every published start alpha does to matrices with known answers",
    .source = "SOFT IJCV Prop. 1, Alg. 2, section 3.2; S10-S12",
    .example = "attnum run convergence/initialisation --input photos,iid --stage 1,2,3",
    .options = OPTIONS(OPTION_INPUT, OPTION_GRID, OPTION_DTYPE, OPTION_DEVICE, OPTION_SAMPLES,
                       OPTION_STAGE, OPTION_SCALE, OPTION_DISTANCE),
    .defaults =
        "The known matrices always; 20 and 60 steps.\n"
        "quick, default: 1 sample each of smooth and photos at stage 3, and of trained:soft.\n"
        "full: 10 or more of nine inputs at stages 1, 2, 3.",
    .outputs = outputs,
    .output_count = 1,
    .plot = "convergence/initialisation.gp",
    .prepare = prepare,
    .describe = describe,
    .replay = replay,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .release = landmark_sweep_release,
};
