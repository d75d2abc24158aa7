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
     "copy, arithmetic, exponentials, forward, backward, inverse, solve, kernel, gemm, exp"},      \
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

#define MEMBER_COLUMNS                                                                             \
    KEY_COLUMNS,                                                                                   \
        {"cache", COLUMN_TEXT, "",                                                                 \
         "hot: many calls in a row, on one input; cold: flushed before each, inputs in turn"},     \
        BENCH_DEVICE_COLUMNS,                                                                      \
        {"repeats", COLUMN_INTEGER, "", "rounds, in each of which every member of the group ran"}, \
        {"calls", COLUMN_INTEGER, "", "in a row in each round"},                                   \
        {"input_sets", COLUMN_INTEGER, "", "inputs that the calls take in turn"},                  \
        {"seconds", COLUMN_REAL, "s",                                                              \
         "of one call: median of the rounds; inverse, solve: of the arithmetic, without what it "  \
         "takes to check A"},                                                                      \
        {"seconds_least", COLUMN_REAL, "s", "shortest round"},                                     \
        {"seconds_largest", COLUMN_REAL, "s", "longest"},                                          \
        {"spread", COLUMN_REAL, "", "between the rounds' quartiles, relative to the median"},      \
        {"check", COLUMN_TEXT, "",                                                                 \
         "pass; fail; open: too few digits, or no other code, to tell; left-out: not run"},        \
        {"check_error", COLUMN_REAL, "",                                                           \
         "|Y - Y64|_F / |Y64|_F, the CPU's Y64 in f64, or the reference's, on one sequence"},      \
        {"check_bound", COLUMN_REAL, "", "the most that passes"},                                  \
        {"iterations", COLUMN_INTEGER, "",                                                         \
         "inverse, solve: steps; from alpha I as many as reach the residual of nr-paper's 20"},    \
        {"flops", COLUMN_REAL, "",                                                                 \
         "of one call, by the registry's count (forward) or the products taken"},                  \
        {"exps", COLUMN_REAL, "", "of one call, likewise"},                                        \
        {"bytes", COLUMN_REAL, "B", "inputs read once, outputs written once"}, BENCH_TICK_COLUMNS

#define RATIO_COLUMNS                                                                              \
    {"by_seconds", COLUMN_REAL, "s", "median of what it is divided by"},                           \
        {"ratio", COLUMN_REAL, "", "of the two times: median of the ratios round by round"},       \
        {"ratio_low", COLUMN_REAL, "", "their lower quartile"},                                    \
        {"ratio_high", COLUMN_REAL, "", "their upper quartile"},                                   \
        {"rounds", COLUMN_INTEGER, "", "how many they are"},                                       \
    {                                                                                              \
        "ratio_dirty", COLUMN_INTEGER, "", "1: others were at work in them"                        \
    }

/* Raw rows are members or pairs of members; only pairs have a quantity. */
static const column raw_columns[] = {
    MEMBER_COLUMNS,
    {"quantity", COLUMN_TEXT, "", "what is divided by what"},
    RATIO_COLUMNS,
};

static const column columns[] = {
    MEMBER_COLUMNS,
    {"floor_s", COLUMN_REAL, "s",
     "flops and exps at the rates of this dtype and threads, each in its shortest round; cold: "
     "bytes at the copy's, if longer"},
    {"floor_share", COLUMN_REAL, "", "that over seconds"},
    {"rates_dirty", COLUMN_INTEGER, "",
     "1: other processes were at work while a rate that shares refer to was measured"},
    {"byte_floor_s", COLUMN_REAL, "s", "cold: bytes at the copy's bandwidth"},
    {"floor_ratio", COLUMN_REAL, "", "seconds over that"},
    {"bandwidth_share", COLUMN_REAL, "", "bytes a second, of the copy's"},
    {"flops_share", COLUMN_REAL, "", "flops a second, of the arithmetic measured in this dtype"},
};

static const column ratio_columns[] = {
    {"quantity", COLUMN_TEXT, "", "what is divided by what"},
    KEY_COLUMNS,
    {"seconds", COLUMN_REAL, "s", "median of what is divided, whose columns these are"},
    RATIO_COLUMNS,
};

enum {
    RAW_COLUMNS = sizeof raw_columns / sizeof *raw_columns,
    COLUMNS = sizeof columns / sizeof *columns,
    SHARES = 7,
    OF_MEMBERS = COLUMNS - SHARES,
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
    return EXIT_PASS;
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
            bench_add_integer_if(t, *text, *text ? strtoll(text, NULL, 10) : 0);
    }
}

static void add_time(table *t, const case_group *g, const group_member *m)
{
    bool timed = m->place >= 0;
    rounds_statistics time = {0};
    if (timed)
        time = rounds_seconds(&g->rounds, m->place);
    bench_add_integer_if(t, timed, g->rounds.rounds);
    bench_add_integer_if(t, timed, timed ? g->rounds.calls[m->place] : 0);
    bench_add_integer_if(t, timed && m->workload.arrays->sets > 0, m->workload.arrays->sets);
    table_real_if(t, timed, time.median);
    table_real_if(t, timed, time.least);
    table_real_if(t, timed, time.largest);
    table_real_if(t, timed, (time.high - time.low) / time.median);
}

static void add_work(table *t, const group_member *m)
{
    const workload *s = &m->workload;
    const atn_inverse_info *info = m->place >= 0 ? s->infos : NULL;
    bool judged = m->checked || m->left_out, counted = m->place >= 0 && s->flops + s->exps > 0;
    table_text(t, judged ? check_name(m->check.kind) : "");
    table_real_if(t, m->checked && !m->left_out, m->check.error);
    table_real_if(t, m->checked && !m->left_out, m->check.bound);
    bench_add_integer_if(t, info && info->iterations > 0, info ? info->iterations : 0);
    table_real_if(t, counted, s->flops);
    table_real_if(t, counted, s->exps);
    table_real_if(t, s->bytes > 0, s->bytes);
}

static void add_member(table *t, const case_group *g, const group_member *m, atn_device device)
{
    add_case(t, m->c);
    table_text(t, bench_is_hot(m->c, device) ? "hot" : "cold");
    bench_add_device(t, m->context);
    add_time(t, g, m);
    add_work(t, m);
    bench_add_ticks(t, &g->rounds, m->place >= 0);
    for (int col = OF_MEMBERS; col < RAW_COLUMNS; col++)
        table_missing(t);
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

static void add_ratio(table *t, const case_group *g, const group_member *a, const group_member *b,
                      const group_pairing *p)
{
    char *quantity = quantity_of(p, a->c, b->c);
    rounds_statistics ratios = rounds_ratios(&g->rounds, a->place, b->place);
    int seconds = table_column(t, "seconds");
    add_case(t, a->c);
    for (int col = BENCH_KEY_COUNT; col < OF_MEMBERS; col++)
        if (col == seconds)
            table_real(t, rounds_seconds(&g->rounds, a->place).median);
        else
            table_missing(t);
    table_text(t, quantity);
    table_real(t, rounds_seconds(&g->rounds, b->place).median);
    table_real(t, ratios.median);
    table_real(t, ratios.low);
    table_real(t, ratios.high);
    table_integer(t, g->rounds.rounds);
    bench_add_integer_if(t, g->rounds.dirty >= 0, g->rounds.dirty);
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

/* Whether one of the rates in use is dirty; missing if that is unknown for one and none is
 * dirty. */
static void add_rates_dirty(table *t, int count, const device_rate *rates, const bool *used)
{
    int worst = 0;
    bool any = false;
    for (int i = 0; i < count; i++)
        if (used[i] && rates[i].most > 0) {
            any = true;
            worst = worst == 1 || rates[i].dirty == 0 ? worst : rates[i].dirty;
        }
    bench_add_integer_if(t, any && worst >= 0, worst);
}

static void add_shares(const table *raw, int64_t row, table *t)
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
    table_real_if(t, has_floor, floor);
    table_real_if(t, has_floor && timed, floor / seconds);
    add_rates_dirty(t, 3, rates, (bool[]){has_bytes, flops > 0, exps > 0});
    table_real_if(t, has_bytes, bytes / bandwidth);
    table_real_if(t, has_bytes && timed, seconds / (bytes / bandwidth));
    table_real_if(t, has_bytes && timed, bytes / bandwidth / seconds);
    table_real_if(t, has_flops && timed, flops / peak / seconds);
}

static void publish_ratio(const table *raw, int64_t row, table *t)
{
    for (int i = 0; i < OF_RATIOS; i++)
        table_copy(t, raw, row, table_column(raw, ratio_columns[i].name));
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
            publish_ratio(raw, row, tables[1]);
            continue;
        }
        for (int col = 0; col < OF_MEMBERS; col++)
            table_copy(tables[0], raw, row, col);
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
