/* SPDX-License-Identifier: BSD-3-Clause */
/* The papers' statements about speed, as ratios of times that are measured in alternation on one
 * thread (pairs.h). The results are those of this machine and this library, and differ from run to
 * run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/fit.h"
#include "common/report.h"
#include "cost/calls.h"
#include "cost/pairs.h"
#include "registry.h"

/* ---- Points ---- */

/* X(code, name, description) */
#define WORK_LIST(X)                                                                               \
    X(WORK_FORWARD, "forward", "the output")                                                       \
    X(WORK_UNSTEPPED, "forward-unstepped", "the output, of an inverse without steps: X = alpha A") \
    X(WORK_CLOSED, "backward-closed", "the gradients, the inverse's by IJCV Eq. 12")               \
    X(WORK_STEPS, "backward-steps", "the gradients, the inverse's through its T steps")            \
    X(WORK_EXPS, "exps", "as many of the operators' exps as its weights take, and nothing else")

#define WORK_CODE(code, name, description) code,
typedef enum { WORK_LIST(WORK_CODE) WORK_COUNT } work_kind;
#undef WORK_CODE
#define WORK_NAME(code, name, description) [code] = name,
static const char *const work_names[] = {WORK_LIST(WORK_NAME)};
#undef WORK_NAME

typedef struct {
    atn_operator op;
    const char *variant; /* null: the default */
    work_kind kind;
} timed_work;

/* The sweep of a statement: A against B at every m, n, d. Lists end with 0. */
typedef struct {
    const char *statement;
    timed_work a, b;
    int64_t tokens[EFFORT_COUNT][8];
    int64_t landmarks[EFFORT_COUNT][8]; /* empty: one point without landmarks */
    int64_t dims[EFFORT_COUNT][8];
    bool relative; /* tokens are multiples of d / 4 */
    bool square;   /* m = n, both from `tokens` */
    bool staged;   /* as many heads as SOFT-Tiny's stage with these tokens */
    bool subtle;   /* the difference of A and B is needed, not only the ratio: more pairs */
} timed_comparison;

#define ALL(...)                                                                                   \
    {__VA_ARGS__}, {__VA_ARGS__},                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const timed_comparison comparisons[] = {
    {.statement = "S17",
     .a = {ATN_SOFT, "paper", WORK_STEPS},
     .b = {ATN_SOFT, "paper", WORK_CLOSED},
     .tokens = {{784}, {784, 3136}, {784, 3136}},
     .landmarks = {{16, 49}, {16, 49, 98, 196}, {16, 49, 98, 196, 392}},
     .dims = {ALL(32)}},
    {.statement = "S29",
     .a = {ATN_SOFTPP, "paper", WORK_FORWARD},
     .b = {ATN_SOFT, "paper", WORK_FORWARD},
     .tokens = {{784}, {784, 3136}, {784, 3136}},
     .landmarks = {{16, 49}, {16, 49, 98, 196}, {16, 49, 98, 196, 392}},
     .dims = {ALL(32)}},
    {.statement = "S29",
     .a = {ATN_SOFTPP, "paper", WORK_UNSTEPPED},
     .b = {ATN_SOFT, "paper", WORK_UNSTEPPED},
     .tokens = {{49, 98, 196}, {49, 98, 196, 392, 784}, {49, 98, 196, 392, 784, 1568}},
     .dims = {ALL(32)},
     .square = true,
     .subtle = true},
    {.statement = "M03",
     .a = {ATN_SIMA, "tokens", WORK_FORWARD},
     .b = {ATN_SIMA, "channels", WORK_FORWARD},
     .tokens = {{1, 2, 3, 4, 6, 16}, {1, 2, 3, 4, 6, 8, 16}, {1, 2, 3, 4, 6, 8, 16}},
     .dims = {{32, 64}, {32, 64, 128}, {32, 64, 128, 256}},
     .relative = true},
    {.statement = "M05",
     .a = {ATN_SOFTMAX, NULL, WORK_FORWARD},
     .b = {ATN_SIMA, "tokens", WORK_FORWARD},
     .tokens = {{196, 576, 1024}, {196, 576, 1024, 2304, 4096}, {196, 576, 1024, 2304, 4096, 9216}},
     .dims = {ALL(64)}},
    {.statement = "M05",
     .a = {ATN_SOFTMAX, NULL, WORK_FORWARD},
     .b = {ATN_SOFTMAX, NULL, WORK_EXPS},
     .tokens = {{196, 576, 1024}, {196, 576, 1024, 2304, 4096}, {196, 576, 1024, 2304, 4096, 9216}},
     .dims = {ALL(64)}},
    {.statement = "M05",
     .a = {ATN_XCA, NULL, WORK_FORWARD},
     .b = {ATN_SIMA, "channels", WORK_FORWARD},
     .tokens = {ALL(196)},
     .dims = {{32, 128, 512}, {32, 64, 128, 256, 512}, {32, 64, 128, 256, 512}}},
    {.statement = "M05",
     .a = {ATN_XCA, NULL, WORK_FORWARD},
     .b = {ATN_XCA, NULL, WORK_EXPS},
     .tokens = {ALL(196)},
     .dims = {{32, 128, 512}, {32, 64, 128, 256, 512}, {32, 64, 128, 256, 512}}},
};
enum { COMPARISONS = sizeof comparisons / sizeof *comparisons };

/* NeurIPS Tab. 1: the operators of its rows, and this library's other linear attentions, each
 * against softmax at the stages of SOFT-Tiny. The table's operators are timed backward, too: a
 * training step is both. */
static const struct rival {
    atn_operator op;
    const char *variant;
    bool backward;
} rivals[] = {
    {ATN_LINFORMER, NULL, true}, {ATN_PERFORMER, NULL, true},  {ATN_NYSTROMFORMER, NULL, true},
    {ATN_SOFT, "paper", true},   {ATN_SOFTPP, "paper", true},  {ATN_SIMA, "channels", true},
    {ATN_XNORM, NULL, false},    {ATN_XCA, NULL, false},       {ATN_EFFICIENT, NULL, false},
    {ATN_ELU, NULL, false},      {ATN_COSFORMER, NULL, false}, {ATN_RFF, NULL, false},
    {ATN_LSH, NULL, false},
};
enum { RIVALS = sizeof rivals / sizeof *rivals };

static const int64_t stages[EFFORT_COUNT][8] = {{196, 784}, {196, 784, 3136}, {196, 784, 3136}};

/* NeurIPS Tab. 2: 64, 128 and 320 channels in the first three stages, 32 in a head. */
static int64_t stage_heads(int64_t tokens)
{
    return tokens >= 3136 ? 2 : tokens >= 784 ? 4 : 10;
}

typedef struct {
    const char *statement;
    timed_work work[2];
    cost_setting settings[2]; /* different in operator and variant only */
    bool subtle;
} time_point;

typedef struct {
    time_point *points;
    int64_t count;
    pair_plan plan;
} time_sweep;

static const pair_plan plans[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {.pairs = 3, .again = 3, .least = 2e-3, .most_once = 20e-3},
    [EFFORT_DEFAULT] = {.pairs = 9, .again = 9, .least = 10e-3, .most_once = 60e-3},
    [EFFORT_FULL] = {.pairs = 25, .again = 50, .least = 50e-3, .most_once = 1},
};

enum { SUBTLE_MORE = 5 };

static void add_point(time_sweep *w, const timed_comparison *c, int64_t n, int64_t m, int64_t d)
{
    time_point p = {.statement = c->statement, .work = {c->a, c->b}, .subtle = c->subtle};
    for (int i = 0; i < 2; i++) {
        const timed_work *work = &p.work[i];
        p.settings[i] =
            (cost_setting){.op = work->op,
                           .variant = work->variant ? cost_variant(work->op, work->variant) : 0,
                           .tokens = n,
                           .heads = c->staged ? stage_heads(n) : 1,
                           .dim = d,
                           .landmarks = cost_has_landmarks(work->op) ? m : 0};
    }
    w->points = must_resize(w->points, (size_t)w->count + 1, sizeof *w->points);
    w->points[w->count++] = p;
}

static void add_comparison(time_sweep *w, effort size, const timed_comparison *c)
{
    for (const int64_t *d = c->dims[size]; *d; d++)
        for (const int64_t *t = c->tokens[size]; *t; t++) {
            int64_t n = c->relative ? *t * *d / 4 : *t;
            const int64_t *m = c->landmarks[size];
            if (!*m)
                add_point(w, c, n, c->square ? n : 0, *d);
            for (; *m; m++)
                add_point(w, c, n, *m, *d);
        }
}

static void add_rivals(time_sweep *w, effort size)
{
    for (int i = 0; i < RIVALS; i++)
        for (int backward = 0; backward <= rivals[i].backward; backward++) {
            work_kind kind = backward ? WORK_CLOSED : WORK_FORWARD;
            timed_comparison c = {.statement = "N05",
                                  .a = {rivals[i].op, rivals[i].variant, kind},
                                  .b = {ATN_SOFTMAX, NULL, kind},
                                  .landmarks = {ALL(PAPER_LANDMARKS)},
                                  .dims = {ALL(HEAD_DIM)},
                                  .staged = true};
            memcpy(c.tokens, stages, sizeof stages);
            add_comparison(w, size, &c);
        }
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    time_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->plan = plans[s->effort];
    for (int i = 0; i < COMPARISONS; i++)
        add_comparison(w, s->effort, &comparisons[i]);
    add_rivals(w, s->effort);
    *points = w->count;
    return EXIT_PASS;
}

static void release(void *state)
{
    time_sweep *w = state;
    free(w->points);
    free(w);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const time_point *p = &((const time_sweep *)state)->points[point];
    char text[200];
    cost_describe(&p->settings[0], text, sizeof text);
    snprintf(buffer, size, "%s %s %s / %s %s", p->statement, text, work_names[p->work[0].kind],
             atn_operator_get(p->work[1].op)->name, work_names[p->work[1].kind]);
}

static void replay(const void *state, int64_t point, options_point *options)
{
    (void)state, (void)point;
    *options = (options_point){.input = "", .seed = 1, .by_effort = true};
}

/* ---- A side of a pair ---- */

typedef struct {
    work_kind kind;
    prepared_call call;
    atn_plan *plan;
    atn_status status; /* the last failure */
    int64_t exps;
    atn_context *context; /* one thread */
    atn_cost cost;
} timed_side;

static void do_work(void *state, int64_t times)
{
    timed_side *s = state;
    double done;
    for (int64_t i = 0; i < times; i++) {
        atn_status status = ATN_OK;
        if (s->kind == WORK_EXPS)
            status = call_exps(s->context, s->exps, &done);
        else if (s->kind == WORK_CLOSED || s->kind == WORK_STEPS)
            status = call_backward(s->plan, &s->call);
        else
            status = call_forward(s->plan, &s->call);
        if (status < 0 || status == ATN_NONFINITE)
            s->status = status;
    }
}

/* Reports a failure. An inverse that has not converged is none: it takes the same time. Returns an
 * exit code. */
static int report_side(const timed_side *s, const atn_context *context, const char *name)
{
    if (s->status >= 0 && s->status != ATN_NONFINITE)
        return EXIT_PASS;
    const char *detail = s->status < 0 ? atn_last_error(context) : "";
    report_error("cost/time: %s: %s", name, *detail ? detail : atn_status_message(s->status));
    return s->status < 0 ? EXIT_ENVIRONMENT : EXIT_CHECK;
}

/* Returns an exit code; s must be closed in any case. */
static int open_side(const time_point *p, int i, atn_context *context, timed_side *s)
{
    const cost_setting *setting = &p->settings[i];
    *s = (timed_side){.kind = p->work[i].kind, .context = context};
    bool backward = s->kind == WORK_CLOSED || s->kind == WORK_STEPS;
    bool opened = call_open(setting, backward, &s->call);
    atn_attention_desc *desc = &s->call.problem.desc;
    const atn_attention_shape *shape = &s->call.problem.shape;
    desc->gradient = s->kind == WORK_STEPS ? ATN_GRADIENT_STEPS : ATN_GRADIENT_CLOSED;
    if (s->kind == WORK_UNSTEPPED)
        desc->inverse.iterations = 0;
    s->status = opened ? atn_attention_cost(context, desc, shape, &s->cost) : ATN_ERR_MEMORY;
    if (s->status == ATN_OK)
        s->status = atn_attention_plan(context, desc, shape, &s->plan);
    s->exps = (int64_t)s->cost.exps;
    return report_side(s, context, atn_operator_get(setting->op)->name);
}

static void close_side(timed_side *s)
{
    atn_plan_free(s->plan);
    call_close(&s->call);
}

/* ---- Rows ---- */

#define ROW(X)                                                                                     \
    X(TEXT, statement, "", "which statement the pair is about", p->statement)                      \
    X(TEXT, a, "", "operator timed as A", a->name)                                                 \
    X(TEXT, a_variant, "", "its variant", a->variants[p->settings[0].variant].name)                \
    X(TEXT, a_work, "",                                                                            \
      "forward; forward-unstepped: of an inverse without steps; backward-closed, "                 \
      "backward-steps: all gradients, by IJCV Eq. 12 or through the T steps (no difference "       \
      "but for soft, softpp); exps: nothing but as many exps, by the operators' own vector "       \
      "loop, as forward makes",                                                                    \
      work_names[p->work[0].kind])                                                                 \
    X(TEXT, b, "", "operator timed as B", b->name)                                                 \
    X(TEXT, b_variant, "", "its variant", b->variants[p->settings[1].variant].name)                \
    X(TEXT, b_work, "", "as a_work", work_names[p->work[1].kind])                                  \
    X(INTEGER, n, "", "tokens", p->settings[0].tokens)                                             \
    X(INTEGER_IF, m, "", "landmarks, Linformer's r; missing where there are none",                 \
      p->settings[0].landmarks > 0, p->settings[0].landmarks)                                      \
    X(INTEGER, d, "", "width of a head", p->settings[0].dim)                                       \
    X(INTEGER, heads, "", "h", p->settings[0].heads)                                               \
    X(REAL, ratio_median, "", "of time A / time B over the pairs", r->ratio.median)                \
    X(REAL, ratio_min, "", "the smallest", r->ratio.least)                                         \
    X(REAL, ratio_max, "", "the largest", r->ratio.largest)                                        \
    X(INTEGER, pairs, "", "timed one after the other: A B A B ...", r->pairs)                      \
    X(INTEGER_IF, dirty, "",                                                                       \
      "of them, others were at work on the machine; missing if it does not say", r->dirty >= 0,    \
      r->dirty)                                                                                    \
    X(INTEGER, repeated, "", "dirty pairs that were timed again", r->repeated)                     \
    X(REAL, a_seconds, "s", "median time of A once, of the thread on the CPU", r->seconds[0])      \
    X(REAL, b_seconds, "s", "median time of B once", r->seconds[1])                                \
    X(REAL, difference_seconds, "s", "median of time A - time B in a pair", r->difference.median)  \
    X(INTEGER, a_workspace_bytes, "B", "A's plan; exact", (int64_t)sides[0].cost.workspace_bytes)  \
    X(INTEGER, b_workspace_bytes, "B", "B's plan; exact", (int64_t)sides[1].cost.workspace_bytes)  \
    X(REAL, a_flops, "", "A's forward; exact", sides[0].cost.flops)                                \
    X(REAL, b_flops, "", "B's forward; exact", sides[1].cost.flops)                                \
    X(REAL, exps, "", "A's forward; exact", sides[0].cost.exps)
static const column columns[] = {ROW(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void put_row(table *to, const time_point *p, const timed_side sides[2], const pair_result *r)
{
    const atn_operator_info *a = atn_operator_get(p->work[0].op),
                            *b = atn_operator_get(p->work[1].op);
    ROW(LIST_PUT)
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const time_sweep *w = state;
    const time_point *p = &w->points[point];
    timed_side sides[2] = {0};
    pair_side pair[2] = {{do_work, &sides[0]}, {do_work, &sides[1]}};
    int code = open_side(p, 0, context, &sides[0]);
    code = exit_worst(code, open_side(p, 1, context, &sides[1]));
    if (code == EXIT_PASS) {
        pair_plan plan = w->plan;
        plan.pairs *= p->subtle ? SUBTLE_MORE : 1;
        pair_result r = pair_time(&pair_machine, &pair[0], &pair[1], &plan);
        put_row(raw, p, sides, &r);
        for (int i = 0; i < 2; i++)
            code = exit_worst(
                code, report_side(&sides[i], context, atn_operator_get(p->work[i].op)->name));
    }
    close_side(&sides[0]);
    close_side(&sides[1]);
    return code;
}

/* ---- time_fit.csv ---- */

#define FIT_ROW(X)                                                                                 \
    X(TEXT, statement, "", "which statement the law is about", cell_text(raw, start, "statement")) \
    X(TEXT, quantity, "",                                                                          \
      "the fitted column of time.csv: difference_seconds, the time of the normalisation (S29); "   \
      "ratio_median, tokens first over channels first (M03)",                                      \
      quantity)                                                                                    \
    X(TEXT, against, "", "m (= n), or n", orders ? "n" : "m")                                      \
    X(INTEGER, d, "", "width of the head", cell_integer(raw, start, "d"))                          \
    X(REAL_IF, exponent, "", "p of c m^p or c n^p, by least squares on the logarithms", found,     \
      fit.exponent)                                                                                \
    X(REAL_IF, std_error, "", "standard error of p, from the residuals", found, fit.std_error)     \
    X(REAL_IF, crossover_n, "",                                                                    \
      "M03: the n where both orders take as long, between two measured n by a power law; "         \
      "missing if they do not cross once, from below",                                             \
      !isnan(crossover), crossover)                                                                \
    X(INTEGER, points, "", "rows fitted", points)                                                  \
    X(INTEGER, from, "", "the smallest m or n", (int64_t)x[0])                                     \
    X(INTEGER, to, "", "the largest", (int64_t)x[points - 1])
static const column fit_columns[] = {FIT_ROW(LIST_COLUMN)};

/* Consecutive rows that differ in n, or in m = n, alone. */
static bool same_line(const table *raw, int64_t a, int64_t b)
{
    static const char *const names[] = {"statement", "a",      "a_variant", "a_work",
                                        "b",         "b_work", "d"};
    return table_rows_agree(raw, a, b, names, sizeof names / sizeof *names);
}

static void put_fit(table *to, const table *raw, int64_t start, int64_t end, const char *quantity)
{
    int64_t points = end - start;
    bool orders = strcmp(quantity, "ratio_median") == 0;
    double *x = must_allocate(2 * (size_t)points, sizeof *x), *y = x + points;
    for (int64_t i = 0; i < points; i++) {
        x[i] = (double)cell_integer(raw, start + i, "n");
        y[i] = cell_real(raw, start + i, quantity);
    }
    growth_fit fit = {0};
    bool found = fit_growth(LAW_POWER, points, x, y, &fit);
    double crossover = orders ? pair_crossover(points, x, y) : NAN;
    FIT_ROW(LIST_PUT)
    free(x);
}

static void add_fits(const table *raw, table *fits)
{
    for (int64_t start = 0, end; start < table_rows(raw); start = end) {
        for (end = start + 1; end < table_rows(raw) && same_line(raw, start, end);)
            end++;
        if (cell_is(raw, start, "a_work", work_names[WORK_UNSTEPPED]))
            put_fit(fits, raw, start, end, "difference_seconds");
        else if (cell_is(raw, start, "statement", "M03"))
            put_fit(fits, raw, start, end, "ratio_median");
    }
}

/* ---- Printed summary ---- */

static const column summary_columns[] = {
    {"statement", COLUMN_TEXT, "", ""},
    {"A", COLUMN_TEXT, "", ""},
    {"B", COLUMN_TEXT, "", ""},
    {"n", COLUMN_INTEGER, "", ""},
    {"m", COLUMN_INTEGER, "", ""},
    {"d", COLUMN_INTEGER, "", ""},
    {"ratio", COLUMN_REAL, "", ""},
    {"min", COLUMN_REAL, "", ""},
    {"max", COLUMN_REAL, "", ""},
    {"dirty", COLUMN_INTEGER, "", ""},
    {"A_microseconds", COLUMN_REAL, "", ""},
};

static void put_label(table *t, const table *raw, int64_t row, const char *name, const char *work)
{
    char *text = must_format("%s %s", cell_text(raw, row, name), cell_text(raw, row, work));
    table_text(t, text);
    free(text);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    (void)s, (void)state;
    table *t = table_create(summary_columns, sizeof summary_columns / sizeof *summary_columns);
    for (int64_t row = 0; row < table_rows(raw); row++) {
        table_copy(t, raw, row, "statement");
        put_label(t, raw, row, "a", "a_work");
        put_label(t, raw, row, "b", "b_work");
        table_copy_row(t, raw, row); /* n, m, d */
        table_real(t, cell_real(raw, row, "ratio_median"));
        table_real(t, cell_real(raw, row, "ratio_min"));
        table_real(t, cell_real(raw, row, "ratio_max"));
        table_copy(t, raw, row, "dirty");
        table_real(t, 1e6 * cell_real(raw, row, "a_seconds"));
    }
    report_text("time A / time B, one thread, f32\n");
    table_print(t, table_rows(t), report_stream());
    table_free(t);
    add_fits(raw, tables[1]);
    table_print(tables[1], table_rows(tables[1]), report_stream());
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"time", "Times of two pieces of work, taken side by side, one thread, f32.", columns, COLUMNS},
    {"time_fit", "Power laws and crossovers of time.csv.", fit_columns,
     sizeof fit_columns / sizeof *fit_columns},
};

const experiment cost_time = {
    .name = "cost/time",
    .summary = "what the papers say about speed, as ratios of times taken side by side",
    .source = "IJCV 3.2, 3.3; NeurIPS Tab. 1; SimA 2.2, Fig. 1; S17, S29, M03, M05, N05",
    .example = "attnum run cost/time --quick",
    .options = 0,
    .alone = true,
    .defaults =
        "9 pairs of at least 10 ms a side (--quick: 3 of 2 ms and few points, --full: 25 "
        "of 50 ms); pairs in which others were at work are timed again, up to as many times "
        "(--full: 50 times).\nOne thread whatever --threads says. No two runs give the "
        "same numbers.",
    .outputs = outputs,
    .output_count = 2,
    .plot = "cost/time.gp",
    .prepare = prepare,
    .describe = describe,
    .replay = replay,
    .run = run,
    .finish = finish,
    .release = release,
};
