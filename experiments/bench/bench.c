/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/group.h"
#include "bench/machine.h"
#include "common/report.h"

/* ---- Tables ---- */

/* Columns of the keys (cases.h). */
#define KEY_COLUMNS                                                                                \
    {"work", COLUMN_TEXT, "",                                                                      \
     "copy, arithmetic, exponentials, forward, backward, training, inverse, solve, kernel, "       \
     "gemm, exp"},                                                                                 \
        {"operator", COLUMN_TEXT, "",                                                              \
         "name in the registry; of gemm AB, AtB (A transposed), ABt; empty: none"},                \
        {"variant", COLUMN_TEXT, "",                                                               \
         "of the operator; of kernel, gemm and exp whose it is: libm, openblas, libxsmm; ours: "   \
         "attnum, or the distance"},                                                               \
        {"inverse", COLUMN_TEXT, "",                                                               \
         "of the batch, or of soft's and softpp's A; newton-openblas: 20 steps of nr-paper by "    \
         "OpenBLAS's products; of a known interval: which is not estimated"},                      \
        {"passes", COLUMN_TEXT, "", "of soft and softpp over the tokens"},                         \
        {"distance", COLUMN_TEXT, "", "of their kernel"},                                          \
        {"dtype", COLUMN_TEXT, "", "of all arrays"},                                               \
        {"batch", COLUMN_INTEGER, "", "sequences or matrices in a call"},                          \
        {"heads", COLUMN_INTEGER, "", "of each sequence"},                                         \
        {"n", COLUMN_INTEGER, "", "tokens of a sequence; gemm: rows; exp: numbers of a thread"},   \
        {"m", COLUMN_INTEGER, "", "landmarks, or rows of a matrix; gemm: columns"},                \
        {"d", COLUMN_INTEGER, "", "channels of a head, keys and values alike; gemm: inner size"},  \
    {                                                                                              \
        "threads", COLUMN_INTEGER, "", "of the host"                                               \
    }

#define CACHE_ROW(X)                                                                               \
    X(TEXT, cache, "",                                                                             \
      "hot: many calls in a row, on one input; cold: flushed before each, inputs in turn",         \
      bench_is_hot(m->c, device) ? "hot" : "cold")
#define TIME_ROW(X)                                                                                \
    X(INTEGER_IF, repeats, "", "rounds, in each of which every member of the group ran", timed,    \
      g->rounds.rounds)                                                                            \
    X(INTEGER_IF, calls, "", "in a row in each round", timed, g->rounds.calls[m->place])           \
    X(INTEGER_IF, input_sets, "", "inputs that the calls take in turn",                            \
      timed && s->arrays->sets > 0, s->arrays->sets)                                               \
    X(REAL_IF, seconds, "s",                                                                       \
      "of one call: median of the rounds; inverse, solve: of the arithmetic, without what it "     \
      "takes to check A",                                                                          \
      timed, time.median)                                                                          \
    X(REAL_IF, seconds_least, "s", "shortest round", timed, time.least)                            \
    X(REAL_IF, seconds_largest, "s", "longest", timed, time.largest)                               \
    X(REAL_IF, spread, "", "between the rounds' quartiles, relative to the median", timed,         \
      (time.high - time.low) / time.median)                                                        \
    X(TEXT, check, "",                                                                             \
      "pass; fail; open: too few digits, or no other code, to tell; left-out: not run",            \
      m->checked || m->left_out ? check_name(m->check.kind) : "")                                  \
    X(REAL_IF, check_error, "",                                                                    \
      "|Y - Y64|_F / |Y64|_F, the CPU's Y64 in f64, or the reference's, on one sequence", checked, \
      m->check.error)                                                                              \
    X(REAL_IF, check_bound, "", "the most that passes", checked, m->check.bound)                   \
    X(INTEGER_IF, iterations, "",                                                                  \
      "inverse, solve: steps; from alpha I as many as reach the residual of nr-paper's 20",        \
      timed && s->infos && s->infos->iterations > 0, s->infos->iterations)                         \
    X(REAL_IF, flops, "",                                                                          \
      "of one call, by the registry's count (forward, backward) or the products taken", counted,   \
      s->flops)                                                                                    \
    X(REAL_IF, exps, "", "of one call, likewise", counted, s->exps)                                \
    X(REAL_IF, bytes, "B", "inputs read once, outputs written once", s->bytes > 0, s->bytes)
#define MEMBER_COLUMNS                                                                             \
    KEY_COLUMNS, CACHE_ROW(LIST_COLUMN) BENCH_DEVICE_ROW(LIST_COLUMN) TIME_ROW(LIST_COLUMN)        \
                     BENCH_TICK_ROW(LIST_COLUMN)

#define QUANTITY_ROW(X) X(TEXT, quantity, "", "what is divided by what", quantity)
#define RATIO_ROW(X)                                                                               \
    X(REAL, by_seconds, "s", "median of what it is divided by",                                    \
      rounds_seconds(&g->rounds, b->place).median)                                                 \
    X(REAL, ratio, "", "of the two times: median of the ratios round by round", ratios.median)     \
    X(REAL, ratio_low, "", "their lower quartile", ratios.low)                                     \
    X(REAL, ratio_high, "", "their upper quartile", ratios.high)                                   \
    X(INTEGER, rounds, "", "how many they are", g->rounds.rounds)                                  \
    X(INTEGER_IF, ratio_dirty, "", "1: others were at work in them", g->rounds.dirty >= 0,         \
      g->rounds.dirty)

/* Raw rows are members or pairs of members; only pairs have a quantity. */
static const column raw_columns[] = {MEMBER_COLUMNS QUANTITY_ROW(LIST_COLUMN)
                                         RATIO_ROW(LIST_COLUMN)};

#define SHARE_ROW(X)                                                                               \
    X(REAL_IF, floor_s, "s",                                                                       \
      "flops and exps at the rates of this dtype and threads, each in its shortest round; cold: "  \
      "bytes at the copy's, if longer",                                                            \
      has_floor, floor)                                                                            \
    X(REAL_IF, floor_share, "", "that over seconds", has_floor &&timed, floor / seconds)           \
    X(INTEGER_IF, rates_dirty, "",                                                                 \
      "1: other processes were at work while a rate that shares refer to was measured",            \
      dirty >= 0, dirty)                                                                           \
    X(REAL_IF, byte_floor_s, "s", "cold: bytes at the copy's bandwidth", has_bytes,                \
      bytes / bandwidth)                                                                           \
    X(REAL_IF, floor_ratio, "", "seconds over that", has_bytes &&timed,                            \
      seconds / (bytes / bandwidth))                                                               \
    X(REAL_IF, bandwidth_share, "", "bytes a second, of the copy's", has_bytes &&timed,            \
      bytes / bandwidth / seconds)                                                                 \
    X(REAL_IF, flops_share, "", "flops a second, of the arithmetic measured in this dtype",        \
      has_flops &&timed, flops / peak / seconds)
static const column columns[] = {MEMBER_COLUMNS SHARE_ROW(LIST_COLUMN)};

static const column ratio_columns[] = {
    QUANTITY_ROW(LIST_COLUMN) KEY_COLUMNS,
    {"seconds", COLUMN_REAL, "s", "median of what is divided, whose columns these are"},
    RATIO_ROW(LIST_COLUMN)};

enum {
    RAW_COLUMNS = sizeof raw_columns / sizeof *raw_columns,
    COLUMNS = sizeof columns / sizeof *columns,
    OF_MEMBERS = COLUMNS - (0 SHARE_ROW(LIST_COUNT)),
    OF_RATIOS = sizeof ratio_columns / sizeof *ratio_columns,
};

static const output_spec outputs[] = {
    {"bench", "Times of one call, and their shares of what the device does at most.", columns,
     COLUMNS},
    {"bench_ratios", "Ratios of times of the first table, round by round.", ratio_columns,
     OF_RATIOS},
};

/* ---- Points: groups ---- */

typedef struct {
    const program_options *s;
    bench_list list;
} bench_state;

static const rounds_plan plans[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {.warm_ups = 1, .least = 5, .most = 20, .seconds = 0.02, .again = 0},
    [EFFORT_DEFAULT] = {.warm_ups = 2, .least = 7, .most = 100, .seconds = 0.3, .again = 2},
    [EFFORT_FULL] = {.warm_ups = 3, .least = 9, .most = 200, .seconds = 2, .again = 2}};
/* The least time of a hot member in a round, and that of a rate. */
static const double shortest = 5e-5, shortest_rate = 1e-3;
/* The most flops of a call, on the CPU and on CUDA: longer calls are left out. */
static const double most_flops[EFFORT_COUNT][2] = {
    [EFFORT_QUICK] = {1e10, 1e12}, [EFFORT_DEFAULT] = {2e11, 1e13}, [EFFORT_FULL] = {2e12, 2e14}};

static int prepare(const program_options *s, void **state, int64_t *points)
{
    if (s->device == ATN_CUDA && s->thread_counts.count > 1) {
        report_error("--threads: with --device cuda they are the host's: expected one number");
        return EXIT_USAGE;
    }
    bench_state *b = must_allocate(1, sizeof *b);
    b->s = s;
    b->list = bench_cases(s);
    *state = b;
    *points = b->list.groups;
    if (b->list.groups > 1) /* the first has the rates */
        return EXIT_PASS;
    report_error("bench: these options leave nothing to time: operators have at least as many "
                 "tokens (--n) as landmarks (--m, 49 by default), training is in f32, and kernel, "
                 "gemm, exp and training are on the CPU");
    return EXIT_USAGE;
}

static void release(void *state)
{
    bench_state *b = state;
    bench_list_free(&b->list);
    free(b);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const bench_state *b = state;
    int64_t count;
    const bench_case *first = bench_group(&b->list, point, &count);
    bench_describe(first, buffer, size);
    size_t used = strlen(buffer);
    if (count > 1)
        snprintf(buffer + used, size - used, " and %" PRId64 " more", count - 1);
}

static double weigh(const void *state, int64_t point)
{
    const bench_state *b = state;
    int64_t count;
    bench_group(&b->list, point, &count);
    return (double)count;
}

/* ---- Rows ---- */

static void add_case(table *t, const bench_case *c)
{
    for (int key = 0; key < BENCH_KEY_COUNT; key++) {
        char text[BENCH_TEXT];
        bench_key_text(c, (bench_key)key, text);
        if (columns[key].type == COLUMN_TEXT)
            table_text(t, text);
        else
            *text ? table_integer(t, strtoll(text, NULL, 10)) : table_missing(t);
    }
}

static void add_member(table *to, const case_group *g, const group_member *m, atn_device device)
{
    const workload *s = &m->workload;
    const bool timed = m->place >= 0, counted = timed && s->flops + s->exps > 0;
    const bool checked = m->checked && !m->left_out;
    rounds_statistics time = {0};
    if (timed)
        time = rounds_seconds(&g->rounds, m->place);
    add_case(to, m->c);
    CACHE_ROW(LIST_PUT)
    bench_add_device(to, m->context);
    TIME_ROW(LIST_PUT)
    bench_add_ticks(to, &g->rounds, timed);
    for (int col = OF_MEMBERS; col < RAW_COLUMNS; col++)
        table_missing(to);
}

/* "backward / forward"; "threads 1 / 2". */
static char *quantity_of(const group_pairing *p, const bench_case *a, const bench_case *b)
{
    char value[BENCH_TEXT], by[BENCH_TEXT];
    bench_key_text(a, p->key, value);
    bench_key_text(b, p->key, by);
    return must_format("%s%s%s / %s", p->key == BENCH_KEY_THREADS ? "threads" : "",
                       p->key == BENCH_KEY_THREADS ? " " : "", value, by);
}

static void add_ratio(table *to, const case_group *g, const group_member *a, const group_member *b,
                      const group_pairing *p)
{
    char *quantity = quantity_of(p, a->c, b->c);
    rounds_statistics ratios = rounds_ratios(&g->rounds, a->place, b->place);
    int seconds = table_column(to, "seconds");
    add_case(to, a->c);
    for (int col = BENCH_KEY_COUNT; col < OF_MEMBERS; col++)
        table_real_if(to, col == seconds, rounds_seconds(&g->rounds, a->place).median);
    QUANTITY_ROW(LIST_PUT)
    RATIO_ROW(LIST_PUT)
    free(quantity);
}

static group_plan plan_of(const program_options *s)
{
    group_plan plan = {.plan = plans[s->effort],
                       .rates = plans[s->effort],
                       .meter = rounds_machine,
                       .most_flops = most_flops[s->effort][s->device],
                       .isa = s->isa};
    plan.plan.shortest = shortest;
    plan.rates.shortest = shortest_rate;
    return plan;
}

static int run(const void *state, int64_t point, atn_context *outer, table *raw)
{
    const bench_state *b = state;
    int64_t count;
    const bench_case *cases = bench_group(&b->list, point, &count);
    atn_device device = atn_context_device(outer);
    group_plan plan = plan_of(b->s);
    case_group g;
    int code = group_run(&plan, device, cases, count, &g);
    bool done = code == EXIT_PASS || code == EXIT_CHECK;
    for (int i = 0; done && i < g.count; i++)
        add_member(raw, &g, &g.members[i], device);
    for (int i = 0; done && i < g.count; i++)
        for (int j = 0; j < g.count; j++) {
            const group_pairing *p = group_pair(&g.members[i], &g.members[j]);
            if (p)
                add_ratio(raw, &g, &g.members[i], &g.members[j], p);
        }
    group_close(&g);
    return code;
}

/* ---- Shares ---- */

typedef struct {
    double most; /* per second; 0: unknown */
    int dirty;   /* as in rounds_result */
} device_rate;

/* The best rate of an amount (a column), from the row of that rate with the same number of threads.
 * It is that of the shortest round: rounds that other processes slowed down are not the device's
 * best. */
static device_rate rate_of(const table *raw, int64_t like, const char *work, const char *dtype,
                           const char *amount)
{
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (cell_is(raw, row, "work", work) && cell_is(raw, row, "dtype", dtype) &&
            cell_integer(raw, row, "threads") == cell_integer(raw, like, "threads") &&
            !cell_missing(raw, row, "seconds"))
            return (device_rate){
                .most = cell_real(raw, row, amount) / cell_real(raw, row, "seconds_least"),
                .dirty =
                    cell_missing(raw, row, "dirty") ? -1 : (int)cell_integer(raw, row, "dirty")};
    return (device_rate){0};
}

/* The time of an amount at a rate: 0 for no work, NaN for an unknown rate. */
static double seconds_at(double amount, device_rate rate)
{
    return amount > 0 ? rate.most > 0 ? amount / rate.most : NAN : 0;
}

/* 1 if one of the rates in use is dirty; -1 if that is unknown for one and none is dirty, or none
 * is in use. */
static int rates_dirty(int count, const device_rate *rates, const bool *used)
{
    int worst = 0;
    bool any = false;
    for (int i = 0; i < count; i++)
        if (used[i] && rates[i].most > 0) {
            any = true;
            worst = worst == 1 || rates[i].dirty == 0 ? worst : rates[i].dirty;
        }
    return any ? worst : -1;
}

static void add_shares(const table *raw, int64_t row, table *to)
{
    const char *dtype = cell_text(raw, row, "dtype");
    double seconds = cell_real(raw, row, "seconds"), bytes = cell_real(raw, row, "bytes");
    double flops = cell_real(raw, row, "flops"), exps = cell_real(raw, row, "exps");
    const device_rate rates[] = {rate_of(raw, row, "copy", "", "bytes"),
                                 rate_of(raw, row, "arithmetic", dtype, "flops"),
                                 rate_of(raw, row, "exponentials", dtype, "exps")};
    double bandwidth = rates[0].most, peak = rates[1].most;
    double floor = seconds_at(flops, rates[1]) + seconds_at(exps, rates[2]);
    bool timed = !cell_missing(raw, row, "seconds");
    bool cold = cell_is(raw, row, "cache", "cold") || cell_is(raw, row, "work", "copy");
    bool has_bytes = cold && bandwidth > 0 && !cell_missing(raw, row, "bytes");
    bool has_flops = peak > 0 && flops > 0;
    if (has_bytes && bytes / bandwidth > floor)
        floor = bytes / bandwidth;
    bool has_floor = (has_bytes || !cold) && !cell_missing(raw, row, "flops") && !isnan(floor);
    int dirty = rates_dirty(3, rates, (bool[]){has_bytes, flops > 0, exps > 0});
    SHARE_ROW(LIST_PUT)
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    static const char *const shown[] = {
        "work",    "operator", "variant",     "inverse",     "passes",  "dtype",
        "batch",   "n",        "m",           "d",           "threads", "cache",
        "seconds", "spread",   "floor_share", "rates_dirty", "check",   "dirty"};
    static const char *const ratios[] = {
        "quantity", "work", "operator", "variant", "inverse",   "dtype",      "batch",      "n",
        "m",        "d",    "threads",  "ratio",   "ratio_low", "ratio_high", "ratio_dirty"};
    for (int64_t row = 0; row < table_rows(raw); row++) {
        if (!cell_missing(raw, row, "ratio")) {
            table_copy_row(tables[1], raw, row);
            continue;
        }
        table_copy_row(tables[0], raw, row);
        add_shares(raw, row, tables[0]);
    }
    table_print_columns(tables[0], shown, sizeof shown / sizeof *shown, INT64_MAX, report_stream());
    table_print_columns(tables[1], ratios, sizeof ratios / sizeof *ratios, INT64_MAX,
                        report_stream());
    return EXIT_PASS;
}

const experiment bench = {
    .name = "bench",
    .summary = "times of operators, of inverses and of what they are made of",
    .source = "NeurIPS Tab. 1; N05",
    .example = "attnum bench operators --op soft,softmax --n 12544 --threads 1,2",
    .options = OPTIONS(BENCH_OPTIONS),
    .alone = true,
    .defaults =
        "quick: n = 784, few sequences, matrices of 49 and 128: a minute on two cores\n"
        "default: n = 3136, 12544; 64 sequences on cuda, 8 on the cpu; matrices of 49, 128, 256\n"
        "full: n = 65536 and f64 too, more rounds",
    .outputs = outputs,
    .output_count = sizeof outputs / sizeof *outputs,
    .raw_columns = raw_columns,
    .raw_column_count = RAW_COLUMNS,
    .prepare = prepare,
    .describe = describe,
    .weight = weigh,
    .run = run,
    .finish = finish,
    .release = release,
};
