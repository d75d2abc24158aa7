/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/cases.h"
#include "bench/machine.h"
#include "common/fit.h"
#include "common/median.h"
#include "common/report.h"
#include "cost/calls.h"
#include "cost/resident.h"

/* ---- Points ---- */

/* The quantity that grows along a line of calls. */
typedef enum { OVER_TOKENS, OVER_LANDMARKS } growth_over;
static const char *const over_names[] = {[OVER_TOKENS] = "n", [OVER_LANDMARKS] = "m"};

typedef struct {
    cost_setting setting;
    atn_inverse_method inverse; /* soft, softpp */
    growth_over over;
    int threads;
    bool resident;         /* with the published inverse, whose memory is measured */
    int64_t by_turns_with; /* tokens of the shorter call with which it alternates; 0: it is timed
                              alone */
    double work, constant_share;
    bool fitted;
    double workspace; /* bytes, estimated; exact where it is measured */
} growth_point;

typedef struct {
    growth_point *items;
    int64_t count;
    int effort;
    int fewest;           /* the fewest threads, with which memory is measured */
    double cache;         /* bytes of the last-level cache */
    const char *obstacle; /* why resident memory cannot be measured here, or null */
    atn_context *context; /* for the flush */
    rounds_flush flush;
} growth_sweep;

/* Two heads of 32 channels, since most operators give a head to a thread. n is 784 k, so that m =
 * 49 landmarks are averages throughout; k ends near 10^5, 10^6 and 10^7 tokens. Lists end with 0.
 */
enum { HEADS = 2 };
static const struct {
    int64_t multiples[16], landmarks[12];
    rounds_plan plan;
} efforts[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {{1, 8, 128}, {16, 64}, {.warm_ups = 1, .least = 3, .most = 3}},
    [EFFORT_DEFAULT] = {{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1280},
                        {16, 32, 64, 128, 256, 512},
                        {.warm_ups = 1, .least = 3, .most = 50, .seconds = 0.05, .again = 1}},
    [EFFORT_FULL] = {{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1280, 4096, 12800},
                     {16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024},
                     {.warm_ups = 1, .least = 5, .most = 100, .seconds = 0.5, .again = 1}},
};
/* A line over m has calls with n and with 2 n tokens, which separate the part that grows with n
 * from the rest. n is a multiple of every m. */
enum { LINE_TOKENS = 12288 };

/* Lines over m: the published inverses, and a factor that is used to solve and never inverted. */
static const struct {
    atn_operator op;
    const char *inverse; /* null: the operator's default */
} landmark_lines[] = {{ATN_SOFT, NULL},
                      {ATN_SOFT, "pivoted-cholesky"},
                      {ATN_SOFTPP, NULL},
                      {ATN_LINFORMER, NULL},
                      {ATN_NYSTROMFORMER, NULL}};
enum { LANDMARK_LINES = sizeof landmark_lines / sizeof *landmark_lines };

static bool has_inverse(atn_operator op)
{
    return op == ATN_SOFT || op == ATN_SOFTPP;
}

static atn_inverse_method find_inverse(atn_operator op, const char *name)
{
    int found = atn_attention_variant(op, 0, ATN_F32).inverse.method;
    for (int i = 0; name && i < ATN_INVERSE_COUNT; i++)
        if (strcmp(atn_inverse_name((atn_inverse_method)i), name) == 0)
            found = i;
    return (atn_inverse_method)found;
}

/* Sets the point's inverse in the description of a call. */
static void set_inverse(const growth_point *p, attention_case *c)
{
    if (has_inverse(p->setting.op) && c->desc.inverse.method != p->inverse)
        c->desc.inverse = atn_inverse_defaults(p->inverse);
}

static int count_call(atn_context *context, const growth_point *p, int64_t tokens, atn_cost *cost)
{
    cost_setting setting = p->setting;
    setting.tokens = tokens;
    attention_case c = cost_outline(&setting);
    set_inverse(p, &c);
    atn_status status = atn_attention_cost(context, &c.desc, &c.shape, cost);
    attention_case_free(&c);
    if (status != ATN_OK)
        report_error("bench memory: %s: %s", atn_operator_get(setting.op)->name,
                     atn_last_error(context));
    return status == ATN_OK ? EXIT_PASS : EXIT_ENVIRONMENT;
}

static int open_context(int threads, atn_isa isa, atn_context **context)
{
    atn_context_options options = {.threads = threads, .isa = isa};
    atn_status status = atn_context_create(&options, context);
    if (status != ATN_OK)
        report_error("bench memory: no context of %d threads: %s", threads,
                     atn_status_message(status));
    return status == ATN_OK ? EXIT_PASS : EXIT_ENVIRONMENT;
}

/* Counts the work of a call with n tokens and of one with 2 n. */
static int count_two(const growth_point *p, int64_t n, atn_cost cost[2])
{
    atn_context *context = NULL;
    int code = open_context(p->threads, p->setting.isa, &context);
    for (int i = 0; i < 2 && code == EXIT_PASS; i++)
        code = count_call(context, p, (i + 1) * n, &cost[i]);
    atn_context_free(context);
    return code;
}

/* Adds a point with the given number of tokens. Its counts are extrapolated linearly from those of
 * calls with n and 2 n, because counting the call itself would need parameters of its size. */
static growth_point *add_point(growth_sweep *w, growth_point p, int64_t tokens, int64_t n,
                               const atn_cost cost[2])
{
    double x = (double)tokens / (double)n - 1, work = cost_work(&cost[0], false);
    double more = cost_work(&cost[1], false) - work;
    p.setting.tokens = tokens;
    p.work = work + more * x;
    p.constant_share = growth_constant_share(work, more, x);
    p.workspace = cost[0].workspace_bytes + (cost[1].workspace_bytes - cost[0].workspace_bytes) * x;
    p.resident = p.inverse == find_inverse(p.setting.op, NULL);
    p.fitted = p.over == OVER_TOKENS &&
               growth_is_fitted(p.constant_share, resident_io_bytes(&p.setting, false), w->cache);
    w->items = must_resize(w->items, (size_t)w->count + 1, sizeof *w->items);
    w->items[w->count] = p;
    return &w->items[w->count++];
}

/* Number i of those on the command line, or else of a list that ends with 0. */
static int64_t next_of(const integer_list *given, const int64_t *usual, int64_t scale, int i)
{
    if (given->count > 0)
        return i < given->count ? given->items[i] : 0;
    return usual[i] * scale;
}

void growth_alternate(int64_t count, const int64_t *tokens, const bool *fitted,
                      int64_t *by_turns_with)
{
    int64_t least = INT64_MAX;
    for (int64_t i = 0; i < count; i++)
        if (fitted[i] && tokens[i] < least)
            least = tokens[i];
    for (int64_t i = 0; i < count; i++)
        by_turns_with[i] = fitted[i] && tokens[i] > least ? least : 0;
}

/* Sets by_turns_with of the points from `start` on, which are one line. */
static void alternate(growth_sweep *w, int64_t start)
{
    int64_t count = w->count - start;
    int64_t *tokens = must_allocate(2 * (size_t)count + 1, sizeof *tokens), *with = tokens + count;
    bool *fitted = must_allocate((size_t)count + 1, sizeof *fitted);
    for (int64_t i = 0; i < count; i++) {
        tokens[i] = w->items[start + i].setting.tokens;
        fitted[i] = w->items[start + i].fitted;
    }
    growth_alternate(count, tokens, fitted, with);
    for (int64_t i = 0; i < count; i++)
        w->items[start + i].by_turns_with = with[i];
    free(tokens);
    free(fitted);
}

/* Adds no line if work grows faster than n: that of softmax and gaussian does, and that of lsh,
 * which has a bucket for every 49 tokens and hashes each token into all of them. */
static int add_tokens_line(growth_sweep *w, const program_options *s, atn_operator op, int threads)
{
    enum { SOME_TOKENS = 128 * PAPER_TOKENS };
    int64_t n, start = w->count;
    atn_cost cost[2];
    growth_point p = {.setting = {.op = op, .heads = HEADS, .dim = HEAD_DIM, .isa = s->isa},
                      .inverse = find_inverse(op, NULL),
                      .over = OVER_TOKENS,
                      .threads = threads};
    p.setting.landmarks = cost_has_landmarks(op) ? PAPER_LANDMARKS : 0;
    int code = count_two(&p, SOME_TOKENS, cost);
    if (code != EXIT_PASS || !cost_is_linear(&cost[0], &cost[1]))
        return code;
    const int64_t *multiples = efforts[s->effort].multiples;
    for (int i = 0; (n = next_of(&s->tokens, multiples, PAPER_TOKENS, i)) > 0; i++)
        if (n >= p.setting.landmarks)
            add_point(w, p, n, SOME_TOKENS, cost);
    alternate(w, start);
    return EXIT_PASS;
}

static int add_landmarks_line(growth_sweep *w, const program_options *s, int line, int threads)
{
    const int64_t *landmarks = efforts[s->effort].landmarks;
    atn_operator op = landmark_lines[line].op;
    growth_point p = {.setting = {.op = op, .heads = HEADS, .dim = HEAD_DIM, .isa = s->isa},
                      .inverse = find_inverse(op, landmark_lines[line].inverse),
                      .over = OVER_LANDMARKS,
                      .threads = threads};
    int code = EXIT_PASS;
    for (int i = 0; (p.setting.landmarks = next_of(&s->landmarks, landmarks, 1, i)) > 0; i++) {
        atn_cost cost[2];
        if (p.setting.landmarks > LINE_TOKENS)
            continue;
        code = exit_worst(code, count_two(&p, LINE_TOKENS, cost));
        for (int k = 1; k <= 2 && code == EXIT_PASS; k++)
            add_point(w, p, k * LINE_TOKENS, LINE_TOKENS, cost)->by_turns_with =
                (k - 1) * LINE_TOKENS;
    }
    return code;
}

static int add_lines_of(growth_sweep *w, const program_options *s, int threads)
{
    int code = EXIT_PASS;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        if (options_include_variant(s, atn_operator_get((atn_operator)op), 0))
            code = exit_worst(code, add_tokens_line(w, s, (atn_operator)op, threads));
    for (int line = 0; line < LANDMARK_LINES; line++)
        if (options_include_variant(s, atn_operator_get(landmark_lines[line].op), 0))
            code = exit_worst(code, add_landmarks_line(w, s, line, threads));
    return code;
}

static int add_lines(growth_sweep *w, const program_options *s)
{
    int *threads = must_allocate((size_t)s->thread_counts.count + 2, sizeof *threads);
    int count = bench_threads(s, INT64_MAX, threads), code = EXIT_PASS;
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = add_lines_of(w, s, threads[i]);
    w->fewest = count ? threads[0] : 1;
    for (int i = 1; i < count; i++)
        w->fewest = threads[i] < w->fewest ? threads[i] : w->fewest;
    free(threads);
    return code;
}

/* The size of the last-level cache from Linux's files, which give this machine's share; sysconf may
 * give the cache of a whole processor. 32 MiB if it is unknown. */
static double last_cache(void)
{
    double bytes = 0;
    for (int i = 0; i < 8; i++) {
        char *path = must_format("/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *file = fopen(path, "r");
        double kibibytes;
        if (file && fscanf(file, "%lfK", &kibibytes) == 1 && 1024 * kibibytes > bytes)
            bytes = 1024 * kibibytes;
        if (file)
            fclose(file);
        free(path);
    }
    return bytes > 0 ? bytes : 32 * 0x1p20;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    if (s->device != ATN_CPU) {
        report_error("bench memory: --device %s: expected cpu", atn_device_name(s->device));
        return EXIT_USAGE;
    }
    growth_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    *w =
        (growth_sweep){.effort = s->effort, .cache = last_cache(), .obstacle = resident_obstacle()};
    int code = add_lines(w, s);
    if (code == EXIT_PASS)
        code = open_context(1, s->isa, &w->context);
    if (code == EXIT_PASS && !s->dry_run && rounds_flush_open(w->context, &w->flush) != ATN_OK) {
        report_error("bench memory: %s", atn_last_error(w->context));
        code = EXIT_ENVIRONMENT;
    }
    *points = w->count;
    return code;
}

static void release(void *state)
{
    growth_sweep *w = state;
    if (w->context)
        rounds_flush_close(w->context, &w->flush);
    atn_context_free(w->context);
    free(w->items);
    free(w);
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const growth_point *p = &((const growth_sweep *)state)->items[point];
    char text[200];
    cost_describe(&p->setting, text, sizeof text);
    snprintf(buffer, size, "%s %s threads=%d", text,
             has_inverse(p->setting.op) ? atn_inverse_name(p->inverse) : "", p->threads);
}

static double weight(const void *state, int64_t point)
{
    return 1e8 + ((const growth_sweep *)state)->items[point].work;
}

/* ---- A point ---- */

double growth_constant_share(double work, double more, double x)
{
    return work > more ? (work - more) / (work + more * x) : 0;
}

bool growth_is_fitted(double constant_share, double bytes_io, double cache_bytes)
{
    return constant_share <= 0.01 && bytes_io > 4 * cache_bytes;
}

typedef struct {
    rounds_result rounds;
    double cpu_seconds;
    atn_cost cost; /* exact */
    int64_t bytes;
    bool counted, timed, measured;
} measurement;

typedef struct {
    atn_plan *plan;
    prepared_call call;
    double cpu_seconds[GROWTH_KEPT];
    int calls;
} timed_call;

/* CPU time of all threads of this process, in seconds. */
static double cpu_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Not having converged is no failure here: the inverse takes the same time. */
static atn_status run_call(void *state, int repeat)
{
    timed_call *t = state;
    double start = cpu_clock();
    atn_status status = call_forward(t->plan, &t->call);
    t->cpu_seconds[t->calls++ % GROWTH_KEPT] = cpu_clock() - start;
    return status < 0 || status == ATN_NONFINITE ? status : ATN_OK;
}

double growth_median_of_last(const double *ring, int calls, int rounds)
{
    double values[GROWTH_KEPT];
    for (int i = 0; i < rounds; i++)
        values[i] = ring[(calls - rounds + i) % GROWTH_KEPT];
    return median(rounds, values);
}

/* Longer calls have no warm-up: the median ignores a slow first call. */
static const double long_work = 1e11;

/* calls: the point's, and the one that alternates with it. */
static atn_status time_calls(atn_context *context, const growth_sweep *w, const growth_point *p,
                             int count, timed_call *calls, measurement *m)
{
    rounds_plan plan = efforts[w->effort].plan;
    rounds_member members[2];
    if (p->work > long_work)
        plan.warm_ups = 0;
    for (int i = 0; i < count; i++)
        members[i] =
            (rounds_member){.context = context, .cold = true, .work = run_call, .state = &calls[i]};
    atn_status status = rounds_time(&plan, &rounds_machine, &w->flush, count, members, &m->rounds);
    m->timed = status == ATN_OK;
    if (m->timed)
        m->cpu_seconds =
            growth_median_of_last(calls[0].cpu_seconds, calls[0].calls, m->rounds.rounds);
    return status;
}

static atn_status open_plan(atn_context *context, const growth_point *p, timed_call *t)
{
    set_inverse(p, &t->call.problem);
    return atn_attention_plan(context, &t->call.problem.desc, &t->call.problem.shape, &t->plan);
}

static atn_status time_point(atn_context *context, const growth_sweep *w, const growth_point *p,
                             measurement *m)
{
    timed_call calls[2] = {0};
    int count = p->by_turns_with > 0 ? 2 : 1;
    cost_setting shorter = p->setting;
    shorter.tokens = p->by_turns_with;
    atn_status status = call_open(&p->setting, false, &calls[0].call) ? ATN_OK : ATN_ERR_MEMORY;
    if (status == ATN_OK && count > 1)
        call_open_within(&shorter, &calls[0].call, &calls[1].call);
    for (int i = 0; i < count && status == ATN_OK; i++)
        status = open_plan(context, p, &calls[i]);
    const attention_case *problem = &calls[0].call.problem;
    if (status == ATN_OK)
        status = atn_attention_cost(context, &problem->desc, &problem->shape, &m->cost);
    m->counted = status == ATN_OK;
    if (status == ATN_OK)
        status = time_calls(context, w, p, count, calls, m);
    for (int i = count - 1; i >= 0; i--) {
        atn_plan_free(calls[i].plan);
        call_close(&calls[i].call);
    }
    return status;
}

static int report_failure(const growth_point *p, const atn_context *context, atn_status status)
{
    char text[200];
    cost_describe(&p->setting, text, sizeof text);
    const char *detail = status < 0 ? atn_last_error(context) : "";
    report_error("bench memory: %s: %s", text, *detail ? detail : atn_status_message(status));
    return status == ATN_NONFINITE ? EXIT_CHECK : EXIT_ENVIRONMENT;
}

/* Memory of the shorter call: its inputs are the beginnings of the point's, and of everything else
 * it takes at most its share. */
static double shorter_bytes(const growth_point *p)
{
    double share = (double)p->by_turns_with / (double)p->setting.tokens;
    return share * (p->workspace + resident_parameter_bytes(&p->setting));
}

/* Measures memory first, in a separate process, while this one holds no inputs. */
static int measure(const growth_sweep *w, const growth_point *p, measurement *m)
{
    int code = EXIT_PASS;
    double shorter = p->by_turns_with > 0 ? shorter_bytes(p) : 0;
    if (!resident_fits(&p->setting, false, p->workspace + shorter, 1))
        return code;
    if (p->resident && p->threads == w->fewest && !w->obstacle) {
        code = exit_worst(code, resident_measure(&p->setting, false, &m->bytes));
        if (code == EXIT_ENVIRONMENT)
            return code;
        m->measured = true;
    }
    atn_context *context = NULL;
    code = exit_worst(code, open_context(p->threads, p->setting.isa, &context));
    if (context) {
        atn_status status = time_point(context, w, p, m);
        if (status != ATN_OK)
            code = exit_worst(code, report_failure(p, context, status));
        else if (m->measured)
            code = exit_worst(code, resident_check(&p->setting, m->cost.workspace_bytes, m->bytes));
    }
    atn_context_free(context);
    return code;
}

/* ---- bench_growth.csv ---- */

#define CASE_ROW(X)                                                                                \
    X(TEXT, operator, "", "name in the registry; those whose work is linear in n", info->name)     \
    X(TEXT, variant, "", "the default", info->variants[s->variant].name)                           \
    X(TEXT_IF, inverse, "", "of soft's and softpp's A", has_inverse(s->op),                        \
      atn_inverse_name(p->inverse))                                                                \
    X(TEXT, over, "", "what grows along the line: n, or m", over_names[p->over])                   \
    X(TEXT, dtype, "", "of all arrays", atn_dtype_name(ATN_F32))                                   \
    X(INTEGER, batch, "", "sequences", 1)                                                          \
    X(INTEGER, heads, "", "of the sequence", s->heads)                                             \
    X(INTEGER, n, "", "tokens, as many queries as keys", s->tokens)                                \
    X(INTEGER_IF, m, "", "landmarks, Linformer's r; missing where there are none",                 \
      s->landmarks > 0, s->landmarks)                                                              \
    X(INTEGER, d, "", "channels of a head, keys and values alike", s->dim)                         \
    X(INTEGER, threads, "", "of the call", p->threads)
#define TIME_ROW(X)                                                                                \
    X(INTEGER_IF, repeats, "", "timed one by one, after a warm-up", timed, m->rounds.rounds)       \
    X(REAL_IF, seconds, "s",                                                                       \
      "of one forward call: median of the repeats, the cache flushed before each", timed,          \
      time.median)                                                                                 \
    X(REAL_IF, seconds_least, "s", "shortest repeat", timed, time.least)                           \
    X(REAL_IF, seconds_largest, "s", "longest", timed, time.largest)                               \
    X(REAL_IF, spread, "", "between the repeats' quartiles, relative to the median", timed,        \
      (time.high - time.low) / time.median)                                                        \
    X(REAL_IF, cpu_seconds, "s",                                                                   \
      "of one call, on all processors together: the median; what others do takes none of it "      \
      "away, waiting threads may spin in it",                                                      \
      timed, m->cpu_seconds)                                                                       \
    X(INTEGER_IF, by_turns_with, "",                                                               \
      "tokens of the call that it was timed by turns with, on the beginnings of the same arrays: " \
      "the shortest fitted one of its line, or the one with the same m; missing: it was timed "    \
      "alone",                                                                                     \
      by_turns, p->by_turns_with)                                                                  \
    X(REAL_IF, ratio, "", "time over that call's: median of the ratios round by round",            \
      timed &&by_turns, ratio.median)                                                              \
    X(REAL_IF, ratio_spread, "", "between the ratios' quartiles, relative to the median",          \
      timed &&by_turns, (ratio.high - ratio.low) / ratio.median)
#define WORK_ROW(X)                                                                                \
    X(INTEGER_IF, bytes_measured, "B",                                                             \
      "by how much resident memory grows at most during the call, beyond inputs, output and "      \
      "parameters; on one thread, with the published inverse",                                     \
      m->measured, m->bytes)                                                                       \
    X(INTEGER_IF, bytes_workspace, "B",                                                            \
      "the plan's memory on so many threads, for forward and backward; exact", m->counted,         \
      (int64_t)m->cost.workspace_bytes)                                                            \
    X(INTEGER, bytes_io, "B", "q, k (where it may differ from q), v and the output",               \
      (int64_t)resident_io_bytes(s, false))                                                        \
    X(REAL_IF, flops, "", "of one call, by the registry's count", m->counted, m->cost.flops)       \
    X(REAL_IF, exps, "", "likewise", m->counted, m->cost.exps)                                     \
    X(REAL, constant_share, "",                                                                    \
      "of the counted work (an exp is 30 flops): what does not grow with n", p->constant_share)    \
    X(BOOLEAN, fitted, "",                                                                         \
      "the exponent of n is fitted through this row: constant_share is at most 0.01 and bytes_io " \
      "more than four times the last cache",                                                       \
      p->fitted)
static const column columns[] = {CASE_ROW(LIST_COLUMN) BENCH_DEVICE_ROW(LIST_COLUMN) TIME_ROW(
    LIST_COLUMN) BENCH_TICK_ROW(LIST_COLUMN) WORK_ROW(LIST_COLUMN)};

static void put_row(table *to, const growth_sweep *w, const growth_point *p, const measurement *m)
{
    const cost_setting *s = &p->setting;
    const atn_operator_info *info = atn_operator_get(s->op);
    const bool timed = m->timed, by_turns = p->by_turns_with > 0;
    rounds_statistics time = {0}, ratio = {0};
    if (timed)
        time = rounds_seconds(&m->rounds, 0);
    if (timed && by_turns)
        ratio = rounds_ratios(&m->rounds, 0, 1);
    CASE_ROW(LIST_PUT)
    bench_add_device(to, w->context);
    TIME_ROW(LIST_PUT)
    bench_add_ticks(to, &m->rounds, timed);
    WORK_ROW(LIST_PUT)
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const growth_sweep *w = state;
    measurement m = {0};
    int code = measure(w, &w->items[point], &m);
    if (code != EXIT_ENVIRONMENT)
        put_row(raw, w, &w->items[point], &m);
    rounds_free(&m.rounds);
    return code;
}

/* ---- bench_growth_fits.csv ---- */

#define FIT_ROW(X)                                                                                  \
    X(TEXT, operator, "", "name in the registry", cell_text(raw, row, "operator"))                  \
    X(TEXT, variant, "", "its variant", cell_text(raw, row, "variant"))                             \
    X(TEXT_IF, inverse, "", "of soft's and softpp's A", !cell_missing(raw, row, "inverse"),         \
      cell_text(raw, row, "inverse"))                                                               \
    X(INTEGER, threads, "", "of the calls", cell_integer(raw, row, "threads"))                      \
    X(TEXT, over, "", "what x is in c x^p: n, or m", cell_text(raw, row, "over"))                   \
    X(TEXT, quantity, "",                                                                           \
      "seconds: through bench_growth.csv's fitted rows, by their ratios to the shortest; "          \
      "seconds_all: through all of a line's seconds, whatever they hold; bytes_measured, "          \
      "bytes_workspace; seconds_growing, seconds_constant: the part that grows with n, for the "    \
      "smaller n, and the one that does not, by calls with n and 2 n",                              \
      k->quantity)                                                                                  \
    X(INTEGER, points, "", "how many x", s->count)                                                  \
    X(INTEGER_IF, from, "", "the smallest x fitted", s->count > 0, (int64_t)s->x[0])                \
    X(INTEGER_IF, to, "", "the largest", s->count > 0, (int64_t)s->x[last])                         \
    X(REAL_IF, exponent, "", "p, by least squares on the logarithms; missing: under 3 points",      \
      found, fit.exponent)                                                                          \
    X(REAL_IF, std_error, "", "of p, from the residuals", found, fit.std_error)                     \
    X(REAL_IF, expected, "", "p, as the operator's description says; missing: no one power",        \
      isfinite(k->expected), k->expected)                                                           \
    X(BOOLEAN_IF, holds, "",                                                                        \
      "seconds over n: p is within 0.03 of 1; bytes: x more tokens need at most x times as many",   \
      of_bytes || (found && isfinite(k->tolerance)),                                                \
      of_bytes ? grows_no_faster(s) : fabs(fit.exponent - k->expected) <= k->tolerance)             \
    X(REAL_IF, per_token, "",                                                                       \
      "over n: seconds of the largest call over its n; bytes a token more, between the last two n", \
      isfinite(slope), slope)                                                                       \
    X(REAL_IF, constant, "B", "bytes in addition to those that grow with n", isfinite(constant),    \
      constant)
static const column fit_columns[] = {FIT_ROW(LIST_COLUMN)};

/* In the order of x, whatever that of --n and --m is. */
typedef struct {
    int64_t count;
    double *x, *y;
} growth_series;

static void put(growth_series *s, double x, double y)
{
    if (!isfinite(y))
        return;
    int64_t at = s->count++;
    s->x = must_resize(s->x, (size_t)s->count, sizeof *s->x);
    s->y = must_resize(s->y, (size_t)s->count, sizeof *s->y);
    for (; at > 0 && s->x[at - 1] > x; at--) {
        s->x[at] = s->x[at - 1];
        s->y[at] = s->y[at - 1];
    }
    s->x[at] = x;
    s->y[at] = y;
}

static void free_series(growth_series *s)
{
    free(s->x);
    free(s->y);
}

/* A cell as a number; NaN if it is missing. */
static double number(const table *t, int64_t row, const char *name)
{
    int col = table_column(t, name);
    const column *c;
    table_columns(t, &c);
    if (table_is_missing(t, row, col))
        return NAN;
    return c[col].type == COLUMN_INTEGER ? (double)table_get_integer(t, row, col)
                                         : table_get_real(t, row, col);
}

typedef struct {
    const char *quantity;
    double expected;   /* NaN: none */
    double tolerance;  /* of the exponent; NaN: not judged */
    bool bytes;        /* whether it is judged as memory */
    double seconds_of; /* seconds per token; NaN: none */
} fit_kind;

static double bytes_a_token(const growth_series *s)
{
    int64_t last = s->count - 1;
    return last > 0 ? (s->y[last] - s->y[last - 1]) / (s->x[last] - s->x[last - 1]) : NAN;
}

/* Whether y never grows faster than x. */
static bool grows_no_faster(const growth_series *s)
{
    bool holds = s->count > 1;
    for (int64_t i = 1; i < s->count; i++)
        holds &= s->y[i] * s->x[i - 1] <= s->y[i - 1] * s->x[i];
    return holds;
}

static void put_fit(table *to, const table *raw, int64_t row, const growth_series *s,
                    const fit_kind *k)
{
    growth_fit fit = {.exponent = NAN};
    const bool found = fit_growth(LAW_POWER, s->count, s->x, s->y, &fit);
    const bool of_bytes = k->bytes && s->count > 1;
    const int64_t last = s->count - 1;
    double slope = k->bytes ? bytes_a_token(s) : k->seconds_of;
    double constant = of_bytes ? s->y[last] - slope * s->x[last] : NAN;
    FIT_ROW(LIST_PUT)
}

/* Fits rows start ... end - 1 of raw, which differ only in n. The fit is through ratios to the
 * shortest fitted call, since the machine may have been faster at the time of one n than of
 * another. */
static void fit_tokens(const table *raw, int64_t start, int64_t end, table *t)
{
    growth_series fitted = {0}, all = {0}, measured = {0}, workspace = {0};
    for (int64_t row = start; row < end; row++) {
        double n = number(raw, row, "n"), seconds = number(raw, row, "seconds");
        if (cell_boolean(raw, row, "fitted") && isfinite(seconds))
            put(&fitted, n,
                isnan(number(raw, row, "by_turns_with")) ? 1 : number(raw, row, "ratio"));
        put(&all, n, seconds);
        put(&measured, n, number(raw, row, "bytes_measured"));
        put(&workspace, n, number(raw, row, "bytes_workspace"));
    }
    double per_token = all.count > 0 ? all.y[all.count - 1] / all.x[all.count - 1] : NAN;
    put_fit(t, raw, start, &fitted, &(fit_kind){"seconds", 1, 0.03, false, per_token});
    put_fit(t, raw, start, &all, &(fit_kind){"seconds_all", NAN, NAN, false, per_token});
    if (measured.count > 0)
        put_fit(t, raw, start, &measured, &(fit_kind){"bytes_measured", NAN, NAN, false, NAN});
    put_fit(t, raw, start, &workspace, &(fit_kind){"bytes_workspace", NAN, NAN, true, NAN});
    free_series(&fitted);
    free_series(&all);
    free_series(&measured);
    free_series(&workspace);
}

/* Fits rows start ... end - 1 of raw: two n for each m. t(2n) - t(n) is the time that grows with n,
 * 2 t(n) - t(2n) the rest. Each is fitted where it is at least a quarter of the counted work:
 * elsewhere it is a small difference of large times. Solves with a factor take m^2 operations per
 * token, for which no power of m is expected. */
static void fit_landmarks(const table *raw, int64_t start, int64_t end, table *t)
{
    growth_series growing = {0}, constant = {0};
    bool factor = cell_is(raw, start, "inverse", atn_inverse_name(ATN_INVERSE_PIVOTED_CHOLESKY));
    for (int64_t row = start; row + 1 < end; row += 2) {
        double m = number(raw, row, "m"), share = number(raw, row, "constant_share");
        double one = number(raw, row, "seconds"), two = one * number(raw, row + 1, "ratio");
        if (1 - share >= 0.25)
            put(&growing, m, two - one);
        if (share >= 0.25)
            put(&constant, m, 2 * one - two);
    }
    put_fit(t, raw, start, &growing,
            &(fit_kind){"seconds_growing", factor ? NAN : 1, NAN, false, NAN});
    if (constant.count > 0)
        put_fit(t, raw, start, &constant, &(fit_kind){"seconds_constant", 3, NAN, false, NAN});
    free_series(&growing);
    free_series(&constant);
}

static bool same_line(const table *raw, int64_t a, int64_t b)
{
    static const char *const names[] = {"operator", "variant", "inverse", "threads", "over"};
    return table_rows_agree(raw, a, b, names, sizeof names / sizeof *names);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    static const char *const shown[] = {"operator", "inverse", "threads",  "over",     "quantity",
                                        "from",     "to",      "points",   "exponent", "std_error",
                                        "expected", "holds",   "per_token"};
    for (int64_t start = 0, end; start < table_rows(raw); start = end) {
        for (end = start + 1; end < table_rows(raw) && same_line(raw, start, end);)
            end++;
        if (cell_is(raw, start, "over", over_names[OVER_TOKENS]))
            fit_tokens(raw, start, end, tables[1]);
        else
            fit_landmarks(raw, start, end, tables[1]);
    }
    table_print_columns(tables[1], shown, sizeof shown / sizeof *shown, INT64_MAX, report_stream());
    int code = EXIT_PASS;
    for (int64_t row = 0; row < table_rows(tables[1]); row++)
        if (cell_is(tables[1], row, "quantity", "bytes_workspace") &&
            !cell_missing(tables[1], row, "holds") && !cell_boolean(tables[1], row, "holds"))
            code = EXIT_CHECK;
    const growth_sweep *w = state;
    if (w && w->obstacle)
        report_text("bytes_measured is left out: %s\n", w->obstacle);
    return code;
}

/* ---- The experiment ---- */

static const output_spec outputs[] = {
    {"bench_growth",
     "Time and memory of one forward call against tokens and landmarks, f32, two heads.", columns,
     sizeof columns / sizeof *columns},
    {"bench_growth_fits", "Power laws fitted to bench_growth.csv.", fit_columns,
     sizeof fit_columns / sizeof *fit_columns},
};

const experiment bench_growth = {
    .name = "bench_growth",
    .summary = "time and memory of one call against tokens and landmarks",
    .source = "SOFT (IJCV, NeurIPS) Fig. 1b; N01, N05",
    .example = "attnum bench memory --quick --operator soft,sima",
    .options = OPTIONS(OPTION_OPERATOR, OPTION_OP, OPTION_N, OPTION_M, OPTION_SUBJECT,
                       OPTION_EMIT_TOKENS, OPTION_BENCH_THREADS, OPTION_ISA),
    .alone = true,
    .defaults =
        "every operator that is linear in n, f32, two heads of 32 channels\n"
        "quick: n = 784 ... 10^5, m = 16 ... 64 (too few for exponents)\n"
        "default: n = 784 ... 10^6, m = 16 ... 512\n"
        "full: n = 784 ... 10^7, m = 16 ... 1024; what does not fit into memory (10 GB, 18 of\n"
        "linformer) is left out",
    .outputs = outputs,
    .output_count = sizeof outputs / sizeof *outputs,
    .plot = "bench/growth.gp",
    .prepare = prepare,
    .describe = describe,
    .weight = weight,
    .run = run,
    .finish = finish,
    .release = release,
};
