/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/check.h"
#include "bench/rates.h"
#include "bench/subject.h"
#include "bench/time.h"
#include "commit.h"
#include "common/report.h"

/* ---- Tables ---- */

static const column columns[] = {
    {"work", COLUMN_TEXT, "", "copy, arithmetic, forward, backward, inverse"},
    {"operator", COLUMN_TEXT, "", "name in the registry; empty: none"},
    {"variant", COLUMN_TEXT, "", "of the operator"},
    {"inverse", COLUMN_TEXT, "", "of the batch, or of soft's and softpp's A"},
    {"passes", COLUMN_TEXT, "", "of soft and softpp over the tokens"},
    {"distance", COLUMN_TEXT, "", "of their kernel"},
    {"dtype", COLUMN_TEXT, "", "of all arrays"},
    {"batch", COLUMN_INTEGER, "", "sequences or matrices in a call"},
    {"heads", COLUMN_INTEGER, "", "of each sequence"},
    {"n", COLUMN_INTEGER, "", "tokens of a sequence"},
    {"m", COLUMN_INTEGER, "", "landmarks, or rows of a matrix"},
    {"d", COLUMN_INTEGER, "", "channels of a head, keys and values alike"},
    {"device", COLUMN_TEXT, "", "cpu or cuda"},
    {"device_name", COLUMN_TEXT, "", "as the device says it"},
    {"capability", COLUMN_INTEGER, "", "CUDA: 10 major + minor"},
    {"driver", COLUMN_INTEGER, "", "CUDA version of the driver: 1000 major + 10 minor"},
    {"runtime", COLUMN_INTEGER, "", "of the runtime this build is linked with"},
    {"clock_khz", COLUMN_INTEGER, "kHz", "largest clock of the processors, as the device says"},
    {"memory_clock_khz", COLUMN_INTEGER, "kHz", "largest clock of its memory"},
    {"threads", COLUMN_INTEGER, "", "of the host"},
    {"version", COLUMN_TEXT, "", "of attnum"},
    {"commit", COLUMN_TEXT, "", "of its sources, -dirty if they were changed; unknown without git"},
    {"repeats", COLUMN_INTEGER, "", "timed one by one, after the warm-up"},
    {"input_sets", COLUMN_INTEGER, "", "inputs that the repeats take in turn"},
    {"seconds", COLUMN_REAL, "s",
     "of one call: median of the repeats, the cache flushed before each; inverse: of the arithmetic, "
     "A just read"},
    {"seconds_least", COLUMN_REAL, "s", "shortest repeat"},
    {"seconds_largest", COLUMN_REAL, "s", "longest"},
    {"spread", COLUMN_REAL, "", "between the repeats' quartiles, relative to the median"},
    {"check", COLUMN_TEXT, "", "pass; fail; open: too few digits to tell; left-out: not run"},
    {"check_error", COLUMN_REAL, "",
     "|Y - Y64|_F / |Y64|_F, the CPU's Y64 in f64, on one sequence"},
    {"check_bound", COLUMN_REAL, "", "the most that passes"},
    {"flops", COLUMN_REAL, "",
     "of one call, by the registry's count (forward) or the products taken"},
    {"exps", COLUMN_REAL, "", "of one call, likewise"},
    {"bytes", COLUMN_REAL, "B", "inputs read once, outputs written once"},
    {"byte_floor_s", COLUMN_REAL, "s", "bytes at the copy's bandwidth"},
    {"floor_ratio", COLUMN_REAL, "", "seconds over that"},
    {"bandwidth_share", COLUMN_REAL, "", "bytes a second, of the copy's"},
    {"flops_share", COLUMN_REAL, "", "flops a second, of the arithmetic measured in this dtype"},
};
enum { COLUMNS = sizeof columns / sizeof *columns, SHARES = 4, RAW_COLUMNS = COLUMNS - SHARES };

static const column ratio_columns[] = {
    {"quantity", COLUMN_TEXT, "", "what is divided by what"},
    {"work", COLUMN_TEXT, "", "of both"},
    {"operator", COLUMN_TEXT, "", "of both"},
    {"variant", COLUMN_TEXT, "", "of both"},
    {"inverse", COLUMN_TEXT, "", "of what is divided"},
    {"passes", COLUMN_TEXT, "", "of what is divided"},
    {"dtype", COLUMN_TEXT, "", "of both"},
    {"batch", COLUMN_INTEGER, "", "of both"},
    {"n", COLUMN_INTEGER, "", "of both"},
    {"m", COLUMN_INTEGER, "", "of both"},
    {"seconds", COLUMN_REAL, "s", "of what is divided"},
    {"by_seconds", COLUMN_REAL, "s", "of what it is divided by"},
    {"ratio", COLUMN_REAL, "", "of the two"},
};

static const output_spec outputs[] = {
    {"bench", "Times of one call, and their shares of what the device does at most.", columns,
     COLUMNS},
    {"bench_ratios", "Times of the first table beside each other.", ratio_columns,
     sizeof ratio_columns / sizeof *ratio_columns},
};

/* ---- Points ---- */

typedef struct {
    const settings *s;
    bench_case *cases;
    int64_t count;
} bench_state;

static const time_plan plans[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {.warm_ups = 2, .least = 5, .most = 20, .seconds = 0.2},
    [EFFORT_DEFAULT] = {.warm_ups = 3, .least = 5, .most = 100, .seconds = 0.5},
    [EFFORT_FULL] = {.warm_ups = 5, .least = 7, .most = 200, .seconds = 2}};
/* Of a call, on the CPU and on CUDA: longer ones are left out. */
static const double most_flops[EFFORT_COUNT][2] = {
    [EFFORT_QUICK] = {1e10, 1e12}, [EFFORT_DEFAULT] = {2e11, 1e13}, [EFFORT_FULL] = {2e12, 2e14}};

static int prepare(const settings *s, void **state, int64_t *points)
{
    bench_state *b = must_allocate(1, sizeof *b);
    b->s = s;
    b->cases = bench_cases(s, &b->count);
    *state = b;
    *points = b->count;
    return EXIT_PASS;
}

static void release(void *state)
{
    bench_state *b = state;
    free(b->cases);
    free(b);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const bench_state *b = state;
    bench_describe(&b->cases[point], buffer, size);
}

/* What a row says beside its case. */
typedef struct {
    time_result time;
    int sets;
    check_result check;
    bool timed, checked;
    double flops, exps, bytes; /* 0: not known */
} measurement;

static void add_integer_if(table *t, int64_t value)
{
    if (value > 0)
        table_integer(t, value);
    else
        table_missing(t);
}

static void add_case(table *t, const bench_case *c)
{
    const atn_operator_info *info = bench_is_attention(c) ? atn_operator_get(c->op) : NULL;
    table_text(t, bench_work_name(c->work));
    table_text(t, info ? info->name : "");
    table_text(t, info ? info->variants[c->variant].name : "");
    table_text(t, bench_has_inverse(c) ? atn_inverse_name(c->inverse) : "");
    bool soft = info && bench_has_inverse(c);
    table_text(t, soft ? atn_soft_passes_name(c->passes) : "");
    table_text(t, soft ? atn_distance_name(bench_distance(c)) : "");
    table_text(t, c->work == BENCH_COPY ? "" : atn_dtype_name(c->dtype));
    add_integer_if(t, c->batch);
    add_integer_if(t, c->heads);
    add_integer_if(t, c->tokens);
    add_integer_if(t, c->landmarks);
    add_integer_if(t, c->dim);
}

static void add_device(table *t, const atn_context *context, int threads)
{
    atn_device_info info;
    atn_device device = atn_context_device(context);
    if (atn_device_describe(device, 0, &info) != ATN_OK)
        info = (atn_device_info){.name = ""};
    table_text(t, atn_device_name(device));
    table_text(t, info.name);
    add_integer_if(t, info.capability);
    add_integer_if(t, info.driver);
    add_integer_if(t, info.runtime);
    add_integer_if(t, info.clock_khz);
    add_integer_if(t, info.memory_clock_khz);
    table_integer(t, threads);
    table_text(t, ATN_VERSION);
    table_text(t, BUILD_COMMIT);
}

static void add_measurement(table *t, const measurement *m)
{
    add_integer_if(t, m->timed ? m->time.repeats : 0);
    add_integer_if(t, m->timed ? m->sets : 0);
    table_real_if(t, m->timed, m->time.median);
    table_real_if(t, m->timed, m->time.smallest);
    table_real_if(t, m->timed, m->time.largest);
    table_real_if(t, m->timed, m->time.spread);
    table_text(t, m->checked ? check_name(m->check.kind) : "");
    table_real_if(t, m->checked && m->check.kind != CHECK_LEFT_OUT, m->check.error);
    table_real_if(t, m->checked && m->check.kind != CHECK_LEFT_OUT, m->check.bound);
    table_real_if(t, m->flops > 0, m->flops);
    table_real_if(t, m->flops > 0, m->exps);
    table_real_if(t, m->bytes > 0, m->bytes);
}

static atn_status run_rate(atn_context *context, const bench_case *c, const time_plan *plan,
                           measurement *m)
{
    atn_status status = c->work == BENCH_COPY
                            ? rates_copy(context, plan, &m->time, &m->bytes)
                            : rates_arithmetic(context, c->dtype, plan, &m->time, &m->flops);
    m->timed = status == ATN_OK;
    m->sets = 1;
    return status == ATN_ERR_UNSUPPORTED ? ATN_OK : status;
}

static atn_status run_subject(void *state, int repeat)
{
    subject *s = state;
    subject_run(s, repeat);
    return s->status;
}

/* The products of an iteration, for a batch: its matrices took about as many. */
static void count_work(const subject *s, measurement *m)
{
    const bench_case *c = s->c;
    double size = (double)c->landmarks;
    m->bytes = subject_bytes(s);
    if (c->work == BENCH_FORWARD) {
        m->flops = s->cost.flops;
        m->exps = s->cost.exps;
    }
    for (int64_t i = 0; c->work == BENCH_INVERSE && i < c->batch; i++)
        m->flops += 2 * size * size * size * (double)s->infos[i].products;
}

static atn_status time_subject(subject *s, const time_plan *usual, double flops, measurement *m)
{
    time_plan plan = *usual;
    plan.inside = s->c->work == BENCH_INVERSE;
    time_flush flush;
    m->sets = s->sets;
    if (s->cost.flops > flops) {
        m->checked = true;
        m->check = (check_result){.kind = CHECK_LEFT_OUT};
        m->bytes = subject_bytes(s);
        return ATN_OK;
    }
    atn_status status = check_case(s->context, s->c, &m->check);
    m->checked = true;
    if (status != ATN_OK)
        return status;
    status = time_flush_open(s->context, &flush);
    if (status == ATN_OK)
        status = time_repeats(s->context, &plan, &flush, run_subject, s, &m->time);
    time_flush_close(s->context, &flush);
    atn_status outcome = status == ATN_OK ? subject_outcome(s) : status;
    if (outcome < 0)
        return outcome;
    if (outcome != ATN_OK)
        m->check.kind = CHECK_FAIL;
    m->timed = true;
    count_work(s, m);
    return ATN_OK;
}

static atn_status run_case(atn_context *context, const bench_state *b, const bench_case *c,
                           measurement *m)
{
    const time_plan *plan = &plans[b->s->effort];
    if (c->work == BENCH_COPY || c->work == BENCH_ARITHMETIC)
        return run_rate(context, c, plan, m);
    subject s;
    subject_open(context, c, &s);
    atn_status status = s.status;
    if (status == ATN_OK)
        status = time_subject(&s, plan, most_flops[b->s->effort][b->s->device], m);
    subject_close(&s);
    return status;
}

static int report_failure(atn_context *context, const bench_case *c, atn_status status)
{
    char text[200];
    bench_describe(c, text, sizeof text);
    report_error("bench: %s: %s: %s", text, atn_status_message(status), atn_last_error(context));
    return EXIT_ENVIRONMENT;
}

/* A context of all threads; what the device lacks the memory for, or cannot do, is left out. */
static int run(const void *state, int64_t point, atn_context *outer, table *raw)
{
    const bench_state *b = state;
    const bench_case *c = &b->cases[point];
    measurement m = {.timed = false};
    atn_context *context;
    atn_context_options options = {.device = atn_context_device(outer), .threads = b->s->threads};
    atn_status status = atn_context_create(&options, &context);
    if (status != ATN_OK)
        return report_failure(outer, c, status);
    status = run_case(context, b, c, &m);
    int code = EXIT_PASS;
    if (status == ATN_ERR_MEMORY || status == ATN_ERR_UNSUPPORTED) {
        report_note("bench: %s", atn_last_error(context));
        m = (measurement){.checked = true, .check = {.kind = CHECK_LEFT_OUT}};
    } else if (status < 0)
        code = report_failure(context, c, status);
    add_case(raw, c);
    add_device(raw, context, b->s->threads);
    add_measurement(raw, &m);
    atn_context_free(context);
    if (code == EXIT_PASS && m.checked && m.check.kind == CHECK_FAIL)
        code = EXIT_CHECK;
    return code;
}

/* ---- Shares and ratios ---- */

/* Work in a second, by the column that holds a call's, of the rate's row; 0 if there is none. */
static double rate_of(const table *raw, const char *work, const char *dtype, const char *amount)
{
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (cell_is(raw, row, "work", work) && cell_is(raw, row, "dtype", dtype) &&
            !cell_missing(raw, row, "seconds"))
            return cell_real(raw, row, amount) / cell_real(raw, row, "seconds");
    return 0;
}

static void add_shares(const table *raw, int64_t row, table *t)
{
    double seconds = cell_real(raw, row, "seconds"), bytes = cell_real(raw, row, "bytes");
    double flops = cell_real(raw, row, "flops");
    double bandwidth = rate_of(raw, "copy", "", "bytes");
    double peak = rate_of(raw, "arithmetic", cell_text(raw, row, "dtype"), "flops");
    bool timed = !cell_missing(raw, row, "seconds");
    bool has_bytes = bandwidth > 0 && !cell_missing(raw, row, "bytes");
    bool has_flops = peak > 0 && !cell_missing(raw, row, "flops");
    table_real_if(t, has_bytes, bytes / bandwidth);
    table_real_if(t, has_bytes && timed, seconds / (bytes / bandwidth));
    table_real_if(t, has_bytes && timed, bytes / bandwidth / seconds);
    table_real_if(t, has_flops && timed, flops / peak / seconds);
}

/* Rows that agree in all but one column, in which they hold `value` and `by`. */
static const struct pairing {
    const char *quantity, *column, *value, *by;
} pairings[] = {
    {"backward / forward", "work", "backward", "forward"},
    {"any inverse / nr-paper", "inverse", NULL, "nr-paper"},
    {"chain / fused", "passes", "chain", "fused"},
    {"tiles / fused", "passes", "tiles", "fused"},
    {"bf16 / f32", "dtype", "bf16", "f32"},
};
enum { PAIRINGS = sizeof pairings / sizeof *pairings };
static const char *const keys[] = {"work",  "operator", "variant", "inverse", "passes", "distance",
                                   "dtype", "batch",    "heads",   "n",       "m",      "d"};
enum { KEYS = sizeof keys / sizeof *keys };

static bool are_paired(const table *raw, int64_t a, int64_t b, const struct pairing *p)
{
    const char *others[KEYS];
    int count = 0;
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i], p->column) != 0)
            others[count++] = keys[i];
    bool named = p->value ? cell_is(raw, a, p->column, p->value)
                          : !cell_is(raw, a, p->column, p->by) && *cell_text(raw, a, p->column);
    return named && cell_is(raw, b, p->column, p->by) && !cell_missing(raw, a, "seconds") &&
           !cell_missing(raw, b, "seconds") && table_rows_agree(raw, a, b, others, count);
}

static void add_ratio(const table *raw, int64_t a, int64_t b, const char *quantity, table *t)
{
    const column *c;
    int count = table_columns(t, &c);
    table_text(t, quantity);
    for (int i = 1; i < count - 3; i++)
        table_copy(t, raw, a, table_column(raw, c[i].name));
    double seconds = cell_real(raw, a, "seconds"), by = cell_real(raw, b, "seconds");
    table_real(t, seconds);
    table_real(t, by);
    table_real(t, seconds / by);
}

static int finish(const settings *s, const void *state, const table *raw, table **tables)
{
    static const char *const shown[] = {
        "work", "operator", "variant", "inverse", "passes",      "dtype",           "batch",
        "n",    "m",        "seconds", "spread",  "floor_ratio", "bandwidth_share", "flops_share",
        "check"};
    for (int64_t row = 0; row < table_rows(raw); row++) {
        for (int col = 0; col < RAW_COLUMNS; col++)
            table_copy(tables[0], raw, row, col);
        add_shares(raw, row, tables[0]);
    }
    for (int p = 0; p < PAIRINGS; p++)
        for (int64_t a = 0; a < table_rows(raw); a++)
            for (int64_t b = 0; b < table_rows(raw); b++)
                if (are_paired(raw, a, b, &pairings[p]))
                    add_ratio(raw, a, b, pairings[p].quantity, tables[1]);
    table_print_columns(tables[0], shown, sizeof shown / sizeof *shown, INT64_MAX, report_stream());
    return EXIT_PASS;
}

const experiment bench = {
    .name = "bench",
    .summary = "times of operators and inverses on a device",
    .source = "NeurIPS Tab. 1; N05",
    .example = "attnum bench --device cuda --operator soft,softmax --n 12544 --dtype bf16",
    .options = BENCH_OPTIONS,
    .alone = true,
    .defaults =
        "quick: n = 784, few sequences, one size of matrices\n"
        "default: n = 3136, 12544; 64 sequences on cuda, 8 on the cpu; matrices of 49, 64, 128\n"
        "full: n = 65536 and f64 too, more repeats",
    .outputs = outputs,
    .output_count = sizeof outputs / sizeof *outputs,
    .raw_columns = columns,
    .raw_column_count = RAW_COLUMNS,
    .prepare = prepare,
    .describe = describe,
    .run = run,
    .finish = finish,
    .release = release,
};
