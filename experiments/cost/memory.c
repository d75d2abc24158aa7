/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT (IJCV) Fig. 1b, UFO-ViT Fig. 8: memory against the number of tokens: as measured, as planned
 * (exact), and of the arrays in the papers' descriptions. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fit.h"
#include "common/report.h"
#include "cost/calls.h"
#include "cost/resident.h"
#include "registry.h"

/* ---- Arrays of the papers beyond inputs and outputs, in elements of one head ---- */

static double all_pairs(const cost_setting *s, const attention_case *c)
{
    return (double)s->tokens * (double)s->tokens;
}

/* SOFT (IJCV) section 3.2: n x m, m x m and m x n; Nystromformer the same. */
static double three_factors(const cost_setting *s, const attention_case *c)
{
    double n = (double)s->tokens, m = (double)s->landmarks;
    return 2 * n * m + m * m;
}

static double one_factor(const cost_setting *s, const attention_case *c)
{
    return (double)s->tokens * (double)s->landmarks;
}

static double performer_features(const cost_setting *s, const attention_case *c)
{
    return 2 * (double)s->tokens * (double)c->desc.performer.projection.rows;
}

/* A cosine and a sine of each feature, for Q and K. */
static double fourier_features(const cost_setting *s, const attention_case *c)
{
    return 4 * (double)s->tokens * (double)c->desc.rff.projection.rows;
}

/* Q and K, normalised or mapped to features as wide as they are. */
static double both_mapped(const cost_setting *s, const attention_case *c)
{
    return 2 * (double)s->tokens * (double)s->dim;
}

/* Q normalised; K is multiplied with V as it is. */
static double queries_mapped(const cost_setting *s, const attention_case *c)
{
    return (double)s->tokens * (double)s->dim;
}

/* Q and K, each weighted by a cosine and a sine. */
static double both_weighted(const cost_setting *s, const attention_case *c)
{
    return 2 * both_mapped(s, c);
}

static double sima_arrays(const cost_setting *s, const attention_case *c)
{
    bool tokens = c->desc.sima.order == ATN_ORDER_TOKENS;
    return both_mapped(s, c) + (tokens ? all_pairs(s, c) : 0);
}

/* In every round each token has weights for two chunks. */
static double chunk_pairs(const cost_setting *s, const attention_case *c)
{
    return (double)c->desc.lsh.rounds * (double)s->tokens * 2 * (double)c->desc.lsh.chunk;
}

static double (*const materialised[])(const cost_setting *, const attention_case *) = {
    [ATN_SOFT] = three_factors,   [ATN_SOFTPP] = three_factors,
    [ATN_GAUSSIAN] = all_pairs,   [ATN_SOFTMAX] = all_pairs,
    [ATN_SIMA] = sima_arrays,     [ATN_XNORM] = queries_mapped,
    [ATN_LINFORMER] = one_factor, [ATN_PERFORMER] = performer_features,
    [ATN_RFF] = fourier_features, [ATN_NYSTROMFORMER] = three_factors,
    [ATN_XCA] = both_mapped,      [ATN_EFFICIENT] = both_mapped,
    [ATN_ELU] = both_mapped,      [ATN_COSFORMER] = both_weighted,
    [ATN_LSH] = chunk_pairs,
};
_Static_assert(sizeof materialised / sizeof *materialised == ATN_OPERATOR_COUNT,
               "the last operator's arrays are missing");

static double materialised_bytes(const cost_setting *s)
{
    attention_case c = cost_outline(s);
    double elements = materialised[s->op](s, &c);
    attention_case_free(&c);
    return (double)s->heads * elements * sizeof(float);
}

/* ---- Points ---- */

typedef struct {
    cost_setting setting;
    bool backward;
    double work;                         /* flops, and exps at their cost in flops */
    double workspace, doubled_workspace; /* for n and for 2 n tokens */
} memory_point;

typedef struct {
    memory_point *items;
    int64_t count;
    int threads;
    const char *obstacle; /* why resident memory cannot be measured here; null: it can */
} memory_sweep;

/* Long calls need no more memory, but n must be limited to keep them short. Lists end with 0; the
 * first of two is for forward, the second for forward+backward. */
static const struct {
    int64_t multiples[2][PAPER_MULTIPLES + 1]; /* n/784, in 12 heads */
    int64_t far[2][5];                         /* n, in one head */
    double most_work, most_other_work;         /* linear in n and forward; all others */
} efforts[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {{{1, 2, 3}, {1, 2, 3}}, {{10000}, {10000}}, 2e9, 2e9},
    [EFFORT_DEFAULT] = {{{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 4}},
                        {{10000, 100000, 1000000}, {10000, 30000, 100000}},
                        5e10,
                        2e10},
    [EFFORT_FULL] = {{{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}},
                     {{10000, 100000, 1000000, 10000000}, {10000, 100000, 1000000, 10000000}},
                     1e12,
                     2e12},
};

/* The setting of SOFT (IJCV) Fig. 1b: all operators are measured there, however long it takes. */
static bool is_in_figure(const memory_point *p)
{
    return !p->backward && p->setting.heads == PAPER_HEADS;
}

/* Adds the point unless its call takes too long. */
static int add_point(memory_sweep *w, const program_options *s, atn_context *context,
                     cost_setting setting, bool backward)
{
    atn_cost cost, doubled_cost;
    cost_setting doubled = setting;
    doubled.tokens *= 2;
    int code = cost_count(context, &setting, &cost);
    code = exit_worst(code, cost_count(context, &doubled, &doubled_cost));
    if (code != EXIT_PASS)
        return code;
    memory_point p = {setting, backward, cost_work(&cost, backward), cost.workspace_bytes,
                      doubled_cost.workspace_bytes};
    bool linear = cost_is_linear(&cost, &doubled_cost);
    double most =
        linear && !backward ? efforts[s->effort].most_work : efforts[s->effort].most_other_work;
    if (p.work > most && !is_in_figure(&p))
        return EXIT_PASS;
    w->items = must_resize(w->items, (size_t)w->count + 1, sizeof *w->items);
    w->items[w->count++] = p;
    return EXIT_PASS;
}

static int add_operator(memory_sweep *w, const program_options *s, atn_context *context,
                        cost_setting setting)
{
    int code = EXIT_PASS;
    for (int backward = 0; backward <= 1; backward++) {
        setting.heads = PAPER_HEADS;
        for (const int64_t *p = efforts[s->effort].multiples[backward]; *p; p++) {
            setting.tokens = *p * PAPER_TOKENS;
            code = exit_worst(code, add_point(w, s, context, setting, backward));
        }
        setting.heads = 1;
        for (const int64_t *n = efforts[s->effort].far[backward]; *n; n++) {
            setting.tokens = *n;
            code = exit_worst(code, add_point(w, s, context, setting, backward));
        }
    }
    return code;
}

static int add_points(memory_sweep *w, const program_options *s, atn_context *context)
{
    int code = EXIT_PASS, tokens = cost_variant(ATN_SIMA, "tokens");
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        cost_setting setting = {.op = (atn_operator)op, .dim = HEAD_DIM, .isa = s->isa};
        setting.landmarks = cost_has_landmarks(setting.op) ? PAPER_LANDMARKS : 0;
        code = exit_worst(code, add_operator(w, s, context, setting));
        setting.variant = tokens;
        if (op == ATN_SIMA)
            code = exit_worst(code, add_operator(w, s, context, setting));
    }
    return code;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    atn_context *context;
    atn_context_options options = {.threads = 1, .isa = s->isa};
    atn_status status = atn_context_create(&options, &context);
    if (status != ATN_OK) {
        report_error("no context: %s", atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    memory_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->threads = s->threads;
    w->obstacle = resident_obstacle();
    int code = add_points(w, s, context);
    *points = w->count;
    atn_context_free(context);
    return code;
}

static void release(void *state)
{
    memory_sweep *w = state;
    free(w->items);
    free(w);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const memory_point *p = &((const memory_sweep *)state)->items[point];
    char text[200];
    cost_describe(&p->setting, text, sizeof text);
    snprintf(buffer, size, "%s %s", text, call_mode_name(p->backward));
}

static double weight(const void *state, int64_t point)
{
    return 1e8 + ((const memory_sweep *)state)->items[point].work;
}

static void replay(const void *state, int64_t point, options_point *options)
{
    *options = (options_point){.input = "", .seed = 1, .by_effort = true};
}

/* ---- A point ---- */

/* Memory is O(n) for every operator: twice the tokens need at most twice the workspace. */
static int check_growth(const memory_point *p)
{
    if (p->doubled_workspace <= 2 * p->workspace)
        return EXIT_PASS;
    report_error("%s: a workspace of %.17g bytes for n = %" PRId64 ", %.17g for twice as many",
                 atn_operator_get(p->setting.op)->name, p->workspace, p->setting.tokens,
                 p->doubled_workspace);
    return EXIT_CHECK;
}

#define ROW(X)                                                                                     \
    X(TEXT, operator, "", "name in the registry", info->name)                                      \
    X(TEXT, variant, "", "the default, and sima's order that is quadratic in time",                \
      info->variants[s->variant].name)                                                             \
    X(TEXT, mode, "", "forward, or forward+backward", call_mode_name(p->backward))                 \
    X(INTEGER, n, "", "tokens, as many queries as keys", s->tokens)                                \
    X(INTEGER_IF, m, "", "landmarks, Linformer's r; missing where there are none",                 \
      s->landmarks > 0, s->landmarks)                                                              \
    X(INTEGER, d, "", "width of a token, all heads together", s->heads * s->dim)                   \
    X(INTEGER, heads, "", "h: 12 at the papers' n, 1 far beyond", s->heads)                        \
    X(INTEGER_IF, bytes_measured, "B",                                                             \
      "by how much resident memory grows at most during the call, beyond inputs, outputs "         \
      "and parameters; a few pages change from run to run",                                        \
      measured, bytes)                                                                             \
    X(INTEGER, bytes_io, "B",                                                                      \
      "q, k (where it may differ from q), v and the output, in the second mode also their "        \
      "gradients; no parameters",                                                                  \
      (int64_t)resident_io_bytes(s, p->backward))                                                  \
    X(INTEGER, bytes_workspace, "B",                                                               \
      "the plan's memory, on one thread, for forward and backward; exact", (int64_t)p->workspace)  \
    X(INTEGER, bytes_materialised, "B",                                                            \
      "the arrays between inputs and output that the papers' descriptions name, each "             \
      "stored once",                                                                               \
      (int64_t)materialised_bytes(s))
static const column columns[] = {ROW(LIST_COLUMN)};

static void put_row(table *to, const memory_point *p, bool measured, int64_t bytes)
{
    const cost_setting *s = &p->setting;
    const atn_operator_info *info = atn_operator_get(s->op);
    ROW(LIST_PUT)
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const memory_sweep *w = state;
    const memory_point *p = &w->items[point];
    int64_t bytes = 0;
    int code = check_growth(p);
    bool fitted = resident_fits(&p->setting, p->backward, p->workspace, w->threads);
    bool measured = fitted && !w->obstacle;
    if (fitted) /* the call runs under sanitisers, too, where its memory is not measured */
        code = exit_worst(code, resident_measure(&p->setting, p->backward, &bytes));
    if (code == EXIT_ENVIRONMENT)
        return code;
    if (measured)
        code = exit_worst(code, resident_check(&p->setting, p->workspace, bytes));
    put_row(raw, p, measured, bytes);
    return code;
}

/* ---- memory_fit.csv ---- */

#define FIT_ROW(X)                                                                                 \
    X(TEXT, operator, "", "name in the registry", cell_text(raw, start, "operator"))               \
    X(TEXT, mode, "", "forward, or forward+backward", cell_text(raw, start, "mode"))               \
    X(REAL_IF, exponent, "", "p of c n^p, by least squares on the logarithms", found,              \
      fit.exponent)                                                                                \
    X(REAL_IF, std_error, "", "standard error of p, from the residuals", found, fit.std_error)     \
    X(TEXT, quantity, "",                                                                          \
      "the fitted column of memory.csv; bytes_total: bytes_measured + bytes_io", quantity)         \
    X(TEXT, variant, "", "its variant", cell_text(raw, start, "variant"))                          \
    X(INTEGER, heads, "", "12: the papers' n; 1: far beyond", cell_integer(raw, start, "heads"))   \
    X(INTEGER, points, "", "how many n", end - start)                                              \
    X(INTEGER, n_min, "", "the smallest n fitted", cell_integer(raw, start, "n"))                  \
    X(INTEGER, n_max, "", "the largest n fitted", cell_integer(raw, end - 1, "n"))
static const column fit_columns[] = {FIT_ROW(LIST_COLUMN)};

static const char *const quantities[] = {"bytes_measured", "bytes_total", "bytes_workspace",
                                         "bytes_materialised"};
enum { QUANTITIES = sizeof quantities / sizeof *quantities };

/* NaN if missing. */
static double row_bytes(const table *raw, int64_t row, const char *name)
{
    int col = table_column(raw, name);
    return table_is_missing(raw, row, col) ? NAN : (double)table_get_integer(raw, row, col);
}

static double row_quantity(const table *raw, int64_t row, const char *quantity)
{
    if (strcmp(quantity, "bytes_total") == 0)
        return row_bytes(raw, row, "bytes_measured") + row_bytes(raw, row, "bytes_io");
    return row_bytes(raw, row, quantity);
}

/* Fits a power law to rows start ... end - 1 of raw, which differ in n alone. */
static bool fit_rows(const table *raw, int64_t start, int64_t end, const char *quantity,
                     growth_fit *fit)
{
    double *n = must_allocate((size_t)(end - start), sizeof *n);
    double *y = must_allocate((size_t)(end - start), sizeof *y);
    for (int64_t row = start; row < end; row++) {
        n[row - start] = row_bytes(raw, row, "n");
        y[row - start] = row_quantity(raw, row, quantity);
    }
    bool found = fit_growth(LAW_POWER, end - start, n, y, fit);
    free(n);
    free(y);
    return found;
}

static void put_fit(table *to, const table *raw, int64_t start, int64_t end, const char *quantity)
{
    growth_fit fit = {0};
    bool found = fit_rows(raw, start, end, quantity, &fit);
    FIT_ROW(LIST_PUT)
}

/* Printed with the exponents of all quantities on one line. */
static const column summary_columns[] = {
    {"operator", COLUMN_TEXT, "", ""},
    {"variant", COLUMN_TEXT, "", ""},
    {"mode", COLUMN_TEXT, "", ""},
    {"heads", COLUMN_INTEGER, "", ""},
    {"n_max", COLUMN_INTEGER, "", ""},
    {"measured_MiB", COLUMN_REAL, "", ""},
    {"materialised_MiB", COLUMN_REAL, "", ""},
    {"p_measured", COLUMN_REAL, "", ""},
    {"p_total", COLUMN_REAL, "", ""},
    {"p_workspace", COLUMN_REAL, "", ""},
    {"p_materialised", COLUMN_REAL, "", ""},
};

static void put_summary(table *t, const table *raw, int64_t start, int64_t end)
{
    double measured = row_bytes(raw, end - 1, "bytes_measured");
    table_text(t, cell_text(raw, start, "operator"));
    table_text(t, cell_text(raw, start, "variant"));
    table_text(t, cell_text(raw, start, "mode"));
    table_integer(t, (int64_t)row_bytes(raw, start, "heads"));
    table_integer(t, (int64_t)row_bytes(raw, end - 1, "n"));
    table_real_if(t, !isnan(measured), measured / 0x1p20);
    table_real(t, row_bytes(raw, end - 1, "bytes_materialised") / 0x1p20);
    for (int i = 0; i < QUANTITIES; i++) {
        growth_fit fit = {0};
        bool found = fit_rows(raw, start, end, quantities[i], &fit);
        table_real_if(t, found, fit.exponent);
    }
}

static bool same_line(const table *raw, int64_t a, int64_t b)
{
    static const char *const names[] = {"operator", "variant", "mode", "heads"};
    return table_rows_agree(raw, a, b, names, sizeof names / sizeof *names);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    table *summary =
        table_create(summary_columns, sizeof summary_columns / sizeof *summary_columns);
    for (int64_t start = 0, end; start < table_rows(raw); start = end) {
        for (end = start + 1; end < table_rows(raw) && same_line(raw, start, end);)
            end++;
        for (int i = 0; i < QUANTITIES; i++)
            put_fit(tables[1], raw, start, end, quantities[i]);
        put_summary(summary, raw, start, end);
    }
    table_print(summary, table_rows(summary), report_stream());
    table_free(summary);
    const memory_sweep *w = state;
    if (w->obstacle)
        report_text("bytes_measured is left out: %s\n", w->obstacle);
    return EXIT_PASS;
}

/* ---- The experiment ---- */

static const output_spec outputs[] = {
    {"memory", "Memory of one call against the number of tokens, f32, batch 1.", columns,
     sizeof columns / sizeof *columns},
    {"memory_fit", "Power laws in n fitted to memory.csv.", fit_columns,
     sizeof fit_columns / sizeof *fit_columns},
};

const experiment cost_memory = {
    .name = "cost/memory",
    .summary = "memory against the number of tokens: measured, exact, and of the papers' arrays",
    .source = "SOFT (IJCV, NeurIPS) Fig. 1b, UFO-ViT Fig. 8; N01, U03, S07",
    .example = "attnum run cost/memory --quick",
    .options = 0,
    .defaults =
        "every operator; m = 49; n = 784 p, p = 1 ... 8, with backward 1, 2, 4 (--quick: 1, 2, 3, "
        "--full: 1 ... 8), d = 384, h = 12, and n = 10^4 ... 10^6, with backward to 10^5 (--quick: "
        "10^4, --full: to 10^7), d = 32, h = 1; but for forward with h = 12, points that take long "
        "are left out: large n of operators quadratic in time, and of backward",
    .outputs = outputs,
    .output_count = 2,
    .plot = "cost/memory.gp",
    .prepare = prepare,
    .describe = describe,
    .weight = weight,
    .replay = replay,
    .run = run,
    .finish = finish,
    .release = release,
};
