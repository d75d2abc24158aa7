/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/inspect.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/names.h"
#include "common/report.h"
#include "common/sha256.h"
#include "inspect/advice.h"
#include "inspect/facts.h"
#include "inspect/measure.h"
#include "inspect/page.h"
#include "inspect/summary.h"

enum { MOST_INSPECTED = 1024 };

/* ---- Columns ---- */

#define HEAD_ROW(X)                                                                                \
    X(INTEGER, batch, "", "from 0; inputs by name are one", (int64_t)i->batch)                     \
    X(INTEGER, head, "", "of that batch entry, from 0", (int64_t)i->head)                          \
    X(INTEGER, m, "", "landmarks: A = K(L, L) is m x m", (int64_t)i->m)                            \
    X(TEXT, sampling, "",                                                                          \
      "how landmarks are taken: pool, averages on the grid; window, of consecutive tokens; "       \
      "random, first, kmeans (10 Lloyd steps), leverage, rpcholesky, greedy as in "                \
      "attnum/sampling.h; given, those of --landmarks",                                            \
      inspect_samplings[i->sampling].name)
#define MATRIX_ROW(X)                                                                              \
    HEAD_ROW(X)                                                                                    \
    X(BOOLEAN, main, "",                                                                           \
      "the sampling that SOFT has without training, pool, on no grid window; or given; for m "     \
      "above 64, unless --full is given, the only one whose inverses and precisions are measured", \
      i->main)
#define INVERSE_ROW(X)                                                                             \
    HEAD_ROW(X)                                                                                    \
    X(TEXT, inverse, "", "as `attnum list inverses` names it",                                     \
      atn_inverse_name((atn_inverse_method)k))
#define PRECISION_ROW(X)                                                                           \
    HEAD_ROW(X)                                                                                    \
    X(TEXT, precision, "",                                                                         \
      "of A and of the iteration; tf32, f16 and bf16 are emulated: every array rounded, sums in "  \
      "f32",                                                                                       \
      precision_name(precisions[k]))
#define SPECTRUM_ROW(X)                                                                            \
    HEAD_ROW(X)                                                                                    \
    X(INTEGER, index, "", "i of lambda_i, from 1, the largest first", j + 1)                       \
    X(REAL, eigenvalue, "", "lambda_i of A in f64, by dsyevd, checked by dsyevr", i->lambda[j])    \
    X(BOOLEAN, below_floor, "", "|lambda_i| < m 2^-53 lambda_1: rounding",                         \
      !(fabs(i->lambda[j]) >= floor))

#define RULE_ROW(X)                                                                                \
    X(TEXT, rule, "", "what the advice is about; at most one line of each", line->rule)
#define ADVICE_ROW(X)                                                                              \
    X(TEXT, severity, "", "warning, tip or fine", advice_level_name(line->level))                  \
    RULE_ROW(X)                                                                                    \
    X(TEXT, basis, "", "what the numbers are: measured, predicted by a closed form, or certified", \
      line->basis)                                                                                 \
    X(TEXT, advice, "", "the sentence; its numbers in full are in inspect_advice_numbers",         \
      line->text)
#define NUMBER_ROW(X)                                                                              \
    RULE_ROW(X)                                                                                    \
    X(INTEGER_IF, batch, "", "whose number it is; missing: all heads'", !isnan(n->batch),          \
      (int64_t)n->batch)                                                                           \
    X(INTEGER_IF, head, "", "the same", !isnan(n->head), (int64_t)n->head)                         \
    X(INTEGER_IF, m, "", "of how many landmarks; missing: over all that were looked at",           \
      !isnan(n->m), (int64_t)n->m)                                                                 \
    X(TEXT_IF, of, "", "the inverse, precision or sampling it is of; missing: the matrix's",       \
      n->of, n->of)                                                                                \
    X(TEXT, number, "",                                                                            \
      "its column in the other tables (medians over heads where head is missing and m is not; "    \
      "the worst where both are); matrices: how many were looked at; concerned: how many of them " \
      "are on the wrong side of the rule's limit; lost_mode: what X_20 misses of the largest "     \
      "mode",                                                                                      \
      n->name)                                                                                     \
    X(REAL_IF, value, "", "in full; infinite: not reached everywhere", !isnan(n->value), n->value)

#define AS_COLUMN(name, member, type, text) {name, type, "", text},
static const column matrix_columns[] = {MATRIX_ROW(LIST_COLUMN) MATRIX_FACTS(AS_COLUMN)};
static const column inverse_columns[] = {INVERSE_ROW(LIST_COLUMN) INVERSE_FACTS(AS_COLUMN)};
static const column precision_columns[] = {PRECISION_ROW(LIST_COLUMN) PRECISION_FACTS(AS_COLUMN){
    "safe", COLUMN_BOOLEAN, "", "best_residual is at most 0.01"}};
static const column spectrum_columns[] = {SPECTRUM_ROW(LIST_COLUMN)};
static const column advice_columns[] = {ADVICE_ROW(LIST_COLUMN)};
static const column number_columns[] = {NUMBER_ROW(LIST_COLUMN)};

#define COUNT(list) (int)(sizeof(list) / sizeof *(list))

enum { OUT_MATRIX, OUT_INVERSES, OUT_PRECISIONS, OUT_SPECTRUM, OUT_ADVICE, OUT_NUMBERS };
static const output_spec outputs[] = {
    {"inspect", "What f64 says of each head's bottleneck matrix, norms and errors.", matrix_columns,
     COUNT(matrix_columns)},
    {"inspect_inverses", "Steps that each iteration takes to invert it.", inverse_columns,
     COUNT(inverse_columns)},
    {"inspect_precisions", "How far the iteration gets in each precision.", precision_columns,
     COUNT(precision_columns)},
    {"inspect_spectrum", "The eigenvalues.", spectrum_columns, COUNT(spectrum_columns)},
    {"inspect_advice", "What to do, in sentences.", advice_columns, COUNT(advice_columns)},
    {"inspect_advice_numbers", "The numbers behind them.", number_columns, COUNT(number_columns)},
};

/* ---- Planning ---- */

typedef struct {
    inspect_plan plan; /* must be the first member */
    input *in;
    char landmarks_sha256[SHA256_HEX_SIZE];
    new_file *page; /* open if --html was given */
} inspect_state;

/* The tokens' grid: a file's or a network's own, photographs and fields in 28 x 28 patches. */
static void plan_tokens(inspect_plan *plan)
{
    int64_t height, width;
    plan->grid = input_has_own_grid(plan->in) ? own_grid(plan->in) : stage_grid(plan->in, 2);
    plan->tokens = grid_tokens(&plan->grid);
    plan->dim = input_dim(plan->in);
    plan->matrices = plan->per_batch = DEFAULT_HEADS;
    if (!input_is_file(plan->in))
        return;
    input_file_shape(plan->in, &plan->matrices, &plan->tokens, &plan->dim, &height, &width);
    plan->per_batch = input_heads(plan->in);
    if (input_doubt(plan->in))
        report_note("%s", input_doubt(plan->in));
}

/* --landmarks: those of one head, used for all heads, or those of each head. */
static int read_landmarks(inspect_state *w)
{
    inspect_plan *plan = &w->plan;
    const char *path = plan->s->check.landmarks;
    npy_array *l = &plan->given;
    struct sha256_ctx state;
    if (!path)
        return EXIT_PASS;
    if (plan->s->landmarks.count > 0) {
        report_error("--m: not with --landmarks, whose file decides");
        return EXIT_USAGE;
    }
    int code = npy_read(path, l);
    if (code == EXIT_PASS)
        code = layout_read(&plan->s->layout, path, l);
    sha256_init(&state);
    if (code == EXIT_PASS)
        code = sha256_add_file(&state, path);
    sha256_hex(&state, w->landmarks_sha256);
    int64_t heads = l->batch * l->heads;
    if (code == EXIT_PASS && (l->cols != plan->dim || (heads != 1 && heads != plan->matrices) ||
                              l->rows > plan->tokens || l->rows > MOST_INSPECTED)) {
        report_error("%s: shape: %" PRId64 " landmarks of width %" PRId64 " for %" PRId64
                     " heads, expected at most %" PRId64 " of width %" PRId64
                     " for 1 head or all %" PRId64,
                     path, l->rows, l->cols, heads,
                     plan->tokens < MOST_INSPECTED ? plan->tokens : MOST_INSPECTED, plan->dim,
                     plan->matrices);
        code = EXIT_ENVIRONMENT;
    }
    return code;
}

/* The setting of the conclusion: --dtype, --sampling and --iterations, or f32, the main sampling
 * and the papers' 20 steps. */
static int plan_setting(inspect_plan *plan)
{
    const program_options *s = plan->s;
    const char *names[SAMPLINGS + 1] = {0};
    if (s->dtypes_given && s->dtype_count != 1) {
        report_error("--dtype: several are given, expected the one that the conclusion is about");
        return EXIT_USAGE;
    }
    const char *type = s->dtypes_given ? atn_dtype_name(s->dtypes[0]) : atn_dtype_name(ATN_F32);
    for (int p = 0; p < PRECISIONS; p++)
        if (strcmp(precision_name(precisions[p]), type) == 0)
            plan->precision = p;
    plan->steps = s->iterations >= 0 ? (int)s->iterations : PAPER_STEPS;
    for (int i = 0; i < SAMPLINGS; i++)
        names[i] = inspect_samplings[i].name;
    plan->sampling = s->asked ? names_find(names, s->asked) : -1;
    if (!s->asked || plan->sampling >= 0)
        return EXIT_PASS;
    char *expected = names_expected(names, s->asked);
    report_error("--sampling '%s': %s", s->asked, expected);
    free(expected);
    return EXIT_USAGE;
}

/* The number of landmarks nearest to m that averages can give: on the grid, or of consecutive
 * tokens if there is no grid or if it is so thin that no stride gives a number near m. */
static int64_t plan_landmarks(const inspect_plan *plan, int64_t m, token_grid *grid)
{
    *grid = plan->grid;
    int64_t given = choose_stride(grid, m);
    if (grid->windows || (given > 0 && 2 * llabs(given - m) <= m))
        return given;
    *grid = (token_grid){.height = plan->tokens, .width = 1, .windows = true};
    return choose_stride(grid, m);
}

static int add_landmarks(inspect_plan *plan, int64_t m)
{
    bool asked = plan->s->landmarks.count > 0;
    if (asked && (m > plan->tokens || m > MOST_INSPECTED)) {
        report_error("--m %" PRId64 ": %s has %" PRId64
                     " tokens, expected at most as many, and at most %d",
                     m, input_name(plan->in), plan->tokens, (int)MOST_INSPECTED);
        return EXIT_USAGE;
    }
    inspect_landmarks *l = &plan->landmarks[plan->landmark_count];
    l->m = plan_landmarks(plan, m < plan->tokens ? m : plan->tokens, &l->grid);
    if (plan->given.data && l->m != m) { /* averages, which give another number, are left out */
        l->grid = (token_grid){.height = plan->tokens, .width = 1, .windows = true};
        l->m = m;
    }
    int code = asked ? check_landmarks(plan->s, plan->in, m, l->m) : EXIT_PASS;
    for (int i = 0; i < plan->landmark_count; i++)
        if (plan->landmarks[i].m == l->m) /* with few tokens several m may become the same number */
            return code;
    plan->landmark_count++;
    return code;
}

static int plan_points(inspect_plan *plan)
{
    static const int64_t usual[EFFORT_COUNT][4] = {
        [EFFORT_QUICK] = {16, 49}, [EFFORT_DEFAULT] = {16, 49, 64}, [EFFORT_FULL] = {16, 49, 64}};
    const program_options *s = plan->s;
    int code = EXIT_PASS, count = s->landmarks.count;
    const int64_t *m = count > 0 ? s->landmarks.items : usual[s->effort];
    const int64_t given[2] = {plan->given.rows};
    if (plan->given.data)
        m = given;
    while (s->landmarks.count == 0 && m[count] > 0)
        count++;
    plan->landmarks = must_allocate((size_t)count, sizeof *plan->landmarks);
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = add_landmarks(plan, m[i]);
    int64_t most = s->heads > 0                  ? s->heads
                   : s->effort == EFFORT_QUICK   ? 2
                   : s->effort == EFFORT_DEFAULT ? DEFAULT_HEADS
                                                 : plan->matrices;
    plan->head_count = plan->matrices < most ? plan->matrices : most;
    plan->heads = must_allocate((size_t)plan->head_count, sizeof *plan->heads);
    for (int64_t i = 0; i < plan->head_count; i++)
        plan->heads[i] = i * plan->matrices / plan->head_count;
    return code;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    inspect_state *w = must_allocate(1, sizeof *w);
    *state = w;
    w->page = must_allocate(1, sizeof *w->page);
    w->plan.s = s;
    if (s->scale == ATN_SCALE_EMBED) {
        report_error("--scale embed: a matrix is one head here; expected head or a number");
        return EXIT_USAGE;
    }
    const input_reading how = {s->grid_height, s->grid_width, s->skip_tokens, s->layout};
    int code = input_open_as(s->inputs.items[0], &how, &w->in);
    if (code != EXIT_PASS)
        return code;
    w->plan.in = w->in;
    const char *of_files = s->grid_height > 0   ? "grid"
                           : s->layout.axes     ? "layout"
                           : s->skip_tokens > 0 ? "skip-tokens"
                           : s->check.landmarks ? "landmarks"
                                                : NULL;
    if (!input_is_file(w->in) && of_files) {
        report_error("--%s: only FILE.npy takes it", of_files);
        return EXIT_USAGE;
    }
    plan_tokens(&w->plan);
    code = read_landmarks(w);
    if (code == EXIT_PASS)
        code = plan_setting(&w->plan);
    if (code == EXIT_PASS)
        code = plan_points(&w->plan);
    if (code == EXIT_PASS && s->html && !s->dry_run)
        code = new_file_open_path(w->page, s->html);
    *points = w->plan.head_count;
    return code;
}

static void release(void *state)
{
    inspect_state *w = state;
    new_file_free(w->page);
    free(w->page);
    free(w->plan.given.data);
    free(w->plan.heads);
    free(w->plan.landmarks);
    input_free(w->in);
    free(w);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const inspect_plan *plan = state;
    snprintf(buffer, size, "%s batch %" PRId64 " head %" PRId64, input_name(plan->in),
             plan->heads[point] / plan->per_batch, plan->heads[point] % plan->per_batch);
}

static bool get_input(const void *state, int index, const char **name, const char **sha256)
{
    const inspect_state *w = state;
    const char *landmarks = w->plan.s->check.landmarks;
    const char *slash = landmarks ? strrchr(landmarks, '/') : NULL;
    *name = index == 0 ? input_name(w->in) : slash ? slash + 1 : landmarks;
    *sha256 = index == 0 ? input_sha256(w->in) : w->landmarks_sha256;
    return index == 0 || (index == 1 && landmarks);
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const inspect_plan *plan = state;
    return inspect_head(plan, plan->heads[point], context, raw);
}

/* ---- Tables ---- */

static void add_fields(table *t, fact_group group, const void *facts)
{
    for (const fact_field *f = fact_fields[group]; f->name; f++) {
        double value = fact_get(f, facts);
        if (isnan(value))
            table_missing(t);
        else if (f->type == COLUMN_INTEGER)
            table_integer(t, (int64_t)value);
        else if (f->type == COLUMN_BOOLEAN)
            table_boolean(t, value > 0);
        else
            table_real(t, value);
    }
}

static void add_rows(const inspection *i, table **tables)
{
    table *to = tables[OUT_MATRIX];
    MATRIX_ROW(LIST_PUT)
    add_fields(to, FACTS_MATRIX, i);
    to = tables[OUT_INVERSES];
    for (int k = 0; k < ATN_INVERSE_COUNT; k++)
        if (i->inverses[k].published_steps > 0) {
            INVERSE_ROW(LIST_PUT)
            add_fields(to, FACTS_INVERSE, &i->inverses[k]);
        }
    to = tables[OUT_PRECISIONS];
    for (int k = 0; k < PRECISIONS; k++)
        if (!isnan(i->precisions[k].rank)) {
            PRECISION_ROW(LIST_PUT)
            add_fields(to, FACTS_PRECISION, &i->precisions[k]);
            table_boolean(to, advice_is_safe(&i->precisions[k]));
        }
    to = tables[OUT_SPECTRUM];
    double floor = i->m * atn_dtype_roundoff(ATN_F64) * i->lambda_max;
    for (int64_t j = 0; j < (int64_t)i->m; j++) {
        SPECTRUM_ROW(LIST_PUT)
    }
}

static void add_advice(const advice_line *line, table **tables)
{
    table *to = tables[OUT_ADVICE];
    ADVICE_ROW(LIST_PUT)
    to = tables[OUT_NUMBERS];
    for (const advice_number *n = line->numbers; n < line->numbers + line->number_count; n++) {
        NUMBER_ROW(LIST_PUT)
    }
}

/* What was examined. To be freed. */
static char *describe_subject(const inspect_plan *plan)
{
    const token_grid *grid = &plan->grid;
    bool assumed = plan->s->grid_height == 0 && input_is_file(plan->in);
    char *place = grid->windows
                      ? must_format("no grid known (see --grid)")
                      : must_format("grid %" PRId64 "x%" PRId64 "%s", grid->height, grid->width,
                                    assumed ? " (n is a square; --grid says otherwise)" : "");
    char *heads =
        plan->head_count < plan->matrices
            ? must_format("%" PRId64 " of %" PRId64 " heads, evenly spread (see --heads)",
                          plan->head_count, plan->matrices)
            : must_format("%" PRId64 " head%s", plan->matrices, plan->matrices == 1 ? "" : "s");
    char *part =
        plan->tokens > MOST_COMPARED
            ? must_format("; S is compared on %d of the tokens%s", (int)MOST_COMPARED,
                          plan->tokens > MOST_CHOICE ? ", norms and choices are of 8192 of them"
                                                     : "")
            : must_format("%s", "");
    char *without =
        plan->s->skip_tokens > 0
            ? must_format(" (without the first %" PRId64 " of every head)", plan->s->skip_tokens)
            : must_format("%s", "");
    char *text = must_format("%s: %s, %" PRId64 " tokens of width %" PRId64 "%s, %s, kernel scale "
                             "%.4g%s",
                             input_name(plan->in), heads, plan->tokens, plan->dim, without, place,
                             kernel_scale(plan->s, plan->dim), part);
    free(without);
    free(part);
    free(heads);
    free(place);
    return text;
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    const inspect_state *w = state;
    inspection_list list = inspections_read(raw);
    advice_line lines[ADVICE_RULES];
    for (int64_t i = 0; i < list.count; i++)
        add_rows(list.items[i], tables);
    char *subject = describe_subject(&w->plan);
    table *summary = inspect_summary(&list);
    advice_line conclusion = advice_conclude(
        &list, &(inspect_setting){w->plan.precision, w->plan.sampling, w->plan.steps});
    int count = advice_make(&list, lines), code = EXIT_PASS;
    add_advice(&conclusion, tables);
    for (int i = 0; i < count; i++)
        add_advice(&lines[i], tables);
    report_text("%s\n\nConclusion: %s\n\n", subject, conclusion.text);
    table_print(summary, table_rows(summary), report_stream());
    if (report_stream())
        advice_print(count, lines, report_stream());
    if (s->html)
        code = page_write(w->page, &(page_content){.subject = subject,
                                                   .name = input_name(w->in),
                                                   .command = s->command,
                                                   .list = &list,
                                                   .summary = summary,
                                                   .conclusion = &conclusion,
                                                   .lines = lines,
                                                   .line_count = count});
    if (s->html && code == EXIT_PASS)
        report_text("→ %s\n", s->html);
    advice_free(count, lines);
    advice_free(1, &conclusion);
    table_free(summary);
    free(subject);
    inspections_free(&list);
    return code;
}

#define HEADS TEXT_OF(DEFAULT_HEADS)

const experiment inspect = {
    .name = "inspect",
    .summary = "the health of someone's tokens, and what to do about it",
    .source = "SOFT IJCV section 3.2, Fig. 5, 6; SOFT++ section 3.3",
    .example = "attnum inspect tokens.npy --grid 56x56 --html report.html",
    .options = OPTIONS(INSPECT_OPTIONS),
    .defaults = "m = 16, 49, 64, or the nearest that averaging gives; " HEADS " heads\n"
                "quick: m = 16, 49, 2 heads; inverses and precisions under the first sampling\n"
                "full: all heads; inverses and precisions also for m above 64",
    .outputs = outputs,
    .output_count = COUNT(outputs),
    .raw_columns = inspect_raw_columns,
    .raw_column_count = INSPECT_RAW_COLUMNS,
    .prepare = prepare,
    .describe = describe,
    .input = get_input,
    .run = run,
    .finish = finish,
    .release = release,
};
