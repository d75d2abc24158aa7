/* SPDX-License-Identifier: BSD-3-Clause */
/* SimA's two orders in half precision: (Q^ K^^T) V and Q^ (K^^T V) in f64, f32, and emulated bf16
 * and f16, with l1 norms (paper), l2 norms and none (section 4.6).
 *
 * A point is one input, n, d and norm. Q^ and K^ are computed here, so that the norms can be formed
 * as a half-precision program forms them. The library multiplies them, for only `queries` rows of
 * Q^, so that either order is linear in n. The reference is the definition in long double, on the
 * numbers as rounded to the type. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ruler.h>

#include "attention/products.h"
#include "common/experiment.h"
#include "common/fit.h"
#include "common/inputs.h"
#include "common/report.h"
#include "registry.h"

enum { WIDTHS_TOKENS = 784 };

#define NAMED_ENTRY(code, name, description) [code] = name,
static const char *const form_names[] = {HALF_NORM_LIST(NAMED_ENTRY)};
static const char *const norm_names[] = {ATN_SIMA_NORM_LIST(NAMED_ENTRY)};
static const char *const order_names[] = {ATN_ORDER_LIST(NAMED_ENTRY)};
#undef NAMED_ENTRY

/* ---- Points ---- */

static const half_input cases[] = {
    {.name = "normal", .scale = 1, .widths = true},
    {.name = "aligned", .scale = 1, .aligned = true, .widths = true},
    {.name = "independent", .scale = 1, .independent = true},
    {.name = "normal-x8", .scale = 8},
    {.name = "normal-x64", .scale = 64},
    {.name = "dead-channel", .scale = 1, .dead = true},
    {.name = "photos", .scale = 1, .photos = true},
};
enum { CASES = sizeof cases / sizeof *cases };

static const half_type types[] = {
    {"f64", ATN_F64, ATN_STORAGE_NATIVE, HALF_WIDE},
    {"f32", ATN_F32, ATN_STORAGE_NATIVE, HALF_WIDE},
    {"bf16", ATN_F32, ATN_STORAGE_BF16, HALF_WIDE},
    {"bf16", ATN_F32, ATN_STORAGE_BF16, HALF_STORED},
    {"bf16", ATN_F32, ATN_STORAGE_BF16, HALF_SUMMED},
    {"f16", ATN_F32, ATN_STORAGE_F16, HALF_WIDE},
    {"f16", ATN_F32, ATN_STORAGE_F16, HALF_STORED},
    {"f16", ATN_F32, ATN_STORAGE_F16, HALF_SUMMED},
};
enum { TYPES = sizeof types / sizeof *types };

/* Sides of the grid of n tokens; widths at n = 784. Lists end with 0. */
static const struct {
    int64_t sides[9], widths[8];
} efforts[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {{7, 14, 28, 56}, {16, 32, 64}},
    [EFFORT_DEFAULT] = {{7, 14, 28, 56, 112, 224}, {16, 32, 64, 128, 256}},
    [EFFORT_FULL] = {{7, 14, 28, 56, 112, 224, 448, 1024}, {16, 32, 64, 128, 256, 512, 1024}},
};
enum { SMALLEST_PATCH = 4 };

typedef struct {
    half_point *points;
    int64_t count;
    input *photos;
} half_sweep;

static void add_norms(half_sweep *w, half_point p)
{
    w->points = must_resize(w->points, (size_t)w->count + ATN_SIMA_NORM_COUNT, sizeof *w->points);
    for (int norm = 0; norm < ATN_SIMA_NORM_COUNT; norm++) {
        p.norm = (atn_sima_norm)norm;
        w->points[w->count++] = p;
    }
}

static int64_t root_of(int64_t n)
{
    return (int64_t)llround(sqrt((double)n));
}

static void add_side(half_sweep *w, half_point p, int64_t side)
{
    p.side = side;
    p.d = TOKEN_DIM;
    if (!p.input->photos || (HALF_CROP % side == 0 && HALF_CROP / side >= SMALLEST_PATCH))
        add_norms(w, p);
}

static void add_points(half_sweep *w, const program_options *s, half_point p)
{
    const int64_t *sides = efforts[s->effort].sides, *widths = efforts[s->effort].widths;
    for (int i = 0; i < s->tokens.count; i++)
        add_side(w, p, root_of(s->tokens.items[i]));
    if (s->tokens.count > 0)
        return;
    for (int i = 0; sides[i]; i++)
        add_side(w, p, sides[i]);
    for (int i = 0; p.input->widths && widths[i]; i++) {
        p.side = root_of(WIDTHS_TOKENS);
        p.d = widths[i];
        if (p.d != TOKEN_DIM)
            add_norms(w, p);
    }
}

static int check_tokens(const program_options *s)
{
    for (int i = 0; i < s->tokens.count; i++) {
        int64_t n = s->tokens.items[i];
        if (n < 4 || root_of(n) * root_of(n) != n) {
            report_error("--n %" PRId64
                         ": expected a square number from 4: tokens are placed on a square grid",
                         n);
            return EXIT_USAGE;
        }
    }
    return EXIT_PASS;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    if (check_tokens(s) != EXIT_PASS)
        return EXIT_USAGE;
    half_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    for (int i = 0; i < CASES; i++)
        for (int j = 0; j < s->seeds.count; j++)
            add_points(w, s, (half_point){.input = &cases[i], .seed = (uint64_t)s->seeds.items[j]});
    *points = w->count;
    return input_open("photos", 0, 0, &w->photos);
}

static void release(void *state)
{
    half_sweep *w = state;
    input_free(w->photos);
    free(w->points);
    free(w);
}

static bool input_at(const void *state, int index, const char **name, const char **sha256)
{
    const half_sweep *w = state;
    *name = input_name(w->photos);
    *sha256 = input_sha256(w->photos);
    return index == 0;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const half_point *p = &((const half_sweep *)state)->points[point];
    snprintf(buffer, size, "%s n=%" PRId64 " d=%" PRId64 " %s seed=%" PRIu64, p->input->name,
             p->side * p->side, p->d, norm_names[p->norm], p->seed);
}

static void replay(const void *state, int64_t point, options_point *options)
{
    const half_point *p = &((const half_sweep *)state)->points[point];
    *options = (options_point){.input = "",
                               .seed = (int64_t)p->seed,
                               .tokens = p->d == TOKEN_DIM ? p->side * p->side : 0,
                               .by_effort = true};
}

static double weight(const void *state, int64_t point)
{
    const half_point *p = &((const half_sweep *)state)->points[point];
    return (double)(p->side * p->side) * (double)p->d * (double)(p->d + HALF_QUERIES);
}

/* ---- Columns ---- */

#define ROW(X)                                                                                     \
    X(TEXT, input, "",                                                                             \
      "normal: tokens N(0, 1), Q, K and V of three random rotations of them; aligned: Q = K = "    \
      "V; independent: each of different tokens; -x8, -x64: so many times normal; "                \
      "dead-channel: the first channel of Q and K is 0; photos: rotations of a photograph's "      \
      "tokens",                                                                                    \
      p->input->name)                                                                              \
    X(INTEGER, n, "", "tokens", g->n)                                                              \
    X(INTEGER, d, "", "width of queries, keys and values", g->d)                                   \
    X(TEXT, norm, "", "of the columns of Q and K: l1 (paper), l2, none (section 4.6)",             \
      norm_names[p->norm])                                                                         \
    X(TEXT, storage, "",                                                                           \
      "f64, f32: the arithmetic; bf16, f16: Q, K, V, Q^, K^, the first product and the output "    \
      "are rounded to it, sums of products are in f32",                                            \
      type->name)                                                                                  \
    X(TEXT, norm_form, "",                                                                         \
      "how the norms are formed; wide: in f64; stored: summed so, then norm and epsilon are "      \
      "rounded to the storage; summed: so is every partial sum, token by token",                   \
      form_names[type->form])                                                                      \
    X(TEXT, order, "", "tokens: (Q^ K^^T) V; channels: Q^ (K^^T V)", order_names[r->order])        \
    X(TEXT, outcome, "", "the status that the library returned", atn_status_name(r->outcome))      \
    X(REAL, digits, "", "-log10 of relative_error, within 0 .. 15.95; 0 if not finite",            \
      difference.digits)                                                                           \
    X(REAL, relative_error, "",                                                                    \
      "|Y - reference|_F / |reference|_F over `queries` rows of Y; the reference is the "          \
      "definition in long double, on Q, K and V as the type holds them",                           \
      difference.relative_frobenius)                                                               \
    X(REAL_IF, order_difference, "",                                                               \
      "|Y_tokens - Y_channels|_F / |reference|_F; missing if one of them is not finite",           \
      isfinite(r->difference), r->difference)                                                      \
    X(REAL, kappa, "", "||Q^| (|K^|^T |V|)|_F / |reference|_F", r->want->kappa)                    \
    X(REAL, ratio, "",                                                                             \
      "relative_error / (kappa rounding): above 1, range or the norms' sums explain what "         \
      "rounding of the factors and products does not",                                             \
      ratio)                                                                                       \
    X(REAL, rounding, "",                                                                          \
      "f64: (3 n + d + 8) u; f32: (n + d + 8) u; narrow types: the latter and 4 times their "      \
      "own u",                                                                                     \
      rounding)                                                                                    \
    X(REAL, first_largest, "",                                                                     \
      "largest |entry| of the first product, Q^ K^^T (of `queries` rows) or K^^T V, before "       \
      "rounding",                                                                                  \
      first.largest)                                                                               \
    X(REAL, first_nonfinite, "", "share of its entries that are not finite in the type",           \
      share(first.nonfinite, &first))                                                              \
    X(REAL, first_subnormal, "", "share that is subnormal", share(first.subnormal, &first))        \
    X(REAL, first_vanished, "", "share that is 0 in the type, but not before",                     \
      share(first.vanished, &first))                                                               \
    X(REAL, factors_subnormal, "", "share of the entries of Q^ and K^ that is subnormal",          \
      share(h->factors.subnormal, &h->factors))                                                    \
    X(REAL, factors_vanished, "", "share of them that is 0 in the type, but not before",           \
      share(h->factors.vanished, &h->factors))                                                     \
    X(REAL, factors_nonfinite, "", "share of them that is not finite",                             \
      share(h->factors.nonfinite, &h->factors))                                                    \
    X(REAL, output_largest, "", "largest |entry| of the reference", r->want->largest)              \
    X(REAL_IF, norm_largest, "",                                                                   \
      "what columns of Q and K are divided by, the largest; infinite: the norm overflows, and "    \
      "the column becomes 0; missing without norms",                                               \
      normed, h->norm_largest)                                                                     \
    X(REAL_IF, norm_error, "",                                                                     \
      "largest relative difference of a norm from that in f64; missing without norms, infinite "   \
      "if not finite",                                                                             \
      normed, h->norm_error)                                                                       \
    X(REAL, limit, "", "the largest finite number of the type",                                    \
      half_limit(type->dtype, type->storage))                                                      \
    X(INTEGER, queries, "", "rows of Y that are computed, spread evenly over the tokens", rows)    \
    X(INTEGER, seed, "", "the seed of the tokens and the rotations", (int64_t)p->seed)
static const column columns[] = {ROW(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns };

#define FIT_ROW(X)                                                                                 \
    X(TEXT, quantity, "",                                                                          \
      "the fitted column of half.csv: first_largest of either order, output_largest, "             \
      "order_difference",                                                                          \
      f->quantity)                                                                                 \
    X(TEXT_IF, order, "", "the rows it is taken from; missing for what both orders share",         \
      strcmp(f->quantity, "first_largest") == 0, f->order)                                         \
    X(TEXT, input, "", "as in half.csv", name)                                                     \
    X(TEXT, norm, "", "as in half.csv", norm)                                                      \
    X(TEXT, storage, "", "as in half.csv; norms are wide", f->storage)                             \
    X(TEXT, against, "", "n, with d = 32; or d, with n = 784", widths ? "d" : "n")                 \
    X(REAL_IF, exponent, "", "p of c n^p or c d^p, by least squares on the logarithms", found,     \
      fit.exponent)                                                                                \
    X(REAL_IF, std_error, "", "standard error of p, from the residuals", found, fit.std_error)     \
    X(INTEGER, points, "", "rows fitted", s.count)                                                 \
    X(INTEGER, from, "", "the smallest n or d", s.from)                                            \
    X(INTEGER, to, "", "the largest n or d", s.to)
static const column fit_columns[] = {FIT_ROW(LIST_COLUMN)};
enum { FIT_COLUMNS = sizeof fit_columns / sizeof *fit_columns };

/* ---- Rows ---- */

typedef struct {
    const half_tokens *g;
    const half_factors *h;
    const half_answer *want;
    atn_order order;
    atn_status outcome;
    const double *out;
    double difference; /* relative, of the two orders; NaN if one is not finite */
} result;

static double rounding_of(const half_tokens *g, const half_type *type)
{
    double terms = (double)((type->dtype == ATN_F64 ? 3 : 1) * g->n + g->d + 8);
    return terms * atn_dtype_roundoff(type->dtype) + 4 * atn_storage_roundoff(type->storage);
}

static double share(int64_t part, const half_census *census)
{
    return (double)part / (double)census->count;
}

/* Adds a row. In native types rounding must explain the error: the bound holds for every input
 * without overflow. */
static int put_result(table *to, const result *r)
{
    const half_tokens *g = r->g;
    const half_factors *h = r->h;
    const half_type *type = h->type;
    const half_point *p = g->point;
    int64_t rows = g->queries, cols = g->d;
    ref_difference difference = ref_compare_f64(rows, cols, r->out, cols, r->want->out, cols);
    double rounding = rounding_of(g, type);
    double ratio = difference.relative_frobenius / (r->want->kappa * rounding);
    half_census first = half_count_first(g, h, r->order);
    bool normed = p->norm != ATN_SIMA_NONE;
    ROW(LIST_PUT)
    if (type->storage != ATN_STORAGE_NATIVE || ref_judge(REF_ROUNDING, ratio) != REF_FAIL)
        return EXIT_PASS;
    report_error("sima %s %s: relative error %.3g, %.3g times what rounding explains",
                 order_names[r->order], type->name, difference.relative_frobenius, ratio);
    return EXIT_CHECK;
}

static double *matrix(int64_t count)
{
    return must_allocate((size_t)count, sizeof(double));
}

static int run_type(const half_tokens *g, const half_factors *h, const half_answer *want,
                    atn_context *context, table *raw)
{
    int64_t count = g->queries * g->d;
    double *out[2] = {matrix(count), matrix(count)};
    result r = {.g = g, .h = h, .want = want};
    static const atn_order orders[2] = {ATN_ORDER_TOKENS, ATN_ORDER_CHANNELS};
    atn_status outcomes[2];
    int code = EXIT_PASS;
    for (int i = 0; i < 2; i++)
        code = exit_worst(code, half_multiply(g, h, orders[i], context, out[i], &outcomes[i]));
    double sum = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += (out[0][i] - out[1][i]) * (out[0][i] - out[1][i]);
        size += want->out[i] * want->out[i];
    }
    r.difference = sqrt(sum / size);
    for (int i = 0; i < 2 && code != EXIT_ENVIRONMENT; i++) {
        r.order = orders[i];
        r.outcome = outcomes[i];
        r.out = out[i];
        code = exit_worst(code, put_result(raw, &r));
    }
    free(out[0]);
    free(out[1]);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const half_sweep *w = state;
    const half_point *p = &w->points[point];
    half_tokens g;
    int code = half_draw(&g, p, w->photos);
    half_answer want = {0};
    for (int i = 0; i < TYPES && code != EXIT_ENVIRONMENT; i++) {
        if (types[i].form != HALF_WIDE && p->norm == ATN_SIMA_NONE)
            continue;
        half_factors h = half_make_factors(&g, &types[i]);
        if (types[i].form == HALF_WIDE) { /* first of its storage; the others have its q, k, v */
            free(want.out);
            want = half_find_answer(&g, h.q, h.k, h.v);
        }
        code = exit_worst(code, run_type(&g, &h, &want, context, raw));
        half_free_factors(&h);
    }
    free(want.out);
    half_free_tokens(&g);
    return code;
}

/* ---- The fits ---- */

static const struct fitted {
    const char *quantity, *order, *storage;
    bool every_norm; /* fitted for every norm; else for l1 alone */
} fitted[] = {
    {"first_largest", "tokens", "f64", true},     {"first_largest", "channels", "f64", true},
    {"output_largest", "tokens", "f64", true},    {"order_difference", "tokens", "f64", false},
    {"order_difference", "tokens", "f32", false}, {"order_difference", "tokens", "bf16", false},
    {"order_difference", "tokens", "f16", false},
};
enum { FITTED = sizeof fitted / sizeof *fitted };

typedef struct {
    int64_t count, from, to;
    double *x, *y;
} half_series;

/* The values of a quantity against n (at d = 32) or d (at n = 784); each seed adds points. */
static half_series collect_series(const table *raw, const struct fitted *f, const char *name,
                                  const char *norm, bool widths)
{
    size_t rows = (size_t)table_rows(raw);
    half_series s = {.from = INT64_MAX,
                     .x = must_allocate(rows, sizeof(double)),
                     .y = must_allocate(rows, sizeof(double))};
    for (int64_t row = 0; row < table_rows(raw); row++) {
        int64_t fixed = cell_integer(raw, row, widths ? "n" : "d");
        int64_t x = cell_integer(raw, row, widths ? "d" : "n");
        int col = table_column(raw, f->quantity);
        if (!cell_is(raw, row, "input", name) || !cell_is(raw, row, "norm", norm) ||
            !cell_is(raw, row, "storage", f->storage) || !cell_is(raw, row, "order", f->order) ||
            !cell_is(raw, row, "norm_form", form_names[HALF_WIDE]) ||
            fixed != (widths ? WIDTHS_TOKENS : TOKEN_DIM) || table_is_missing(raw, row, col))
            continue;
        s.x[s.count] = (double)x;
        s.y[s.count++] = table_get_real(raw, row, col);
        s.from = x < s.from ? x : s.from;
        s.to = x > s.to ? x : s.to;
    }
    return s;
}

static void add_fit(const table *raw, const struct fitted *f, const char *name, const char *norm,
                    bool widths, table *to)
{
    half_series s = collect_series(raw, f, name, norm, widths);
    growth_fit fit = {0};
    if (s.from < s.to) {
        bool found = fit_growth(LAW_POWER, s.count, s.x, s.y, &fit);
        FIT_ROW(LIST_PUT)
    }
    free(s.x);
    free(s.y);
}

static void add_fits(const table *raw, table *fits)
{
    for (int i = 0; i < FITTED; i++)
        for (int j = 0; j < CASES; j++)
            for (int norm = 0; norm < ATN_SIMA_NORM_COUNT; norm++)
                for (int widths = 0; widths < 2; widths++)
                    if (cases[j].scale == 1 && !cases[j].dead &&
                        (fitted[i].every_norm || norm == ATN_SIMA_L1))
                        add_fit(raw, &fitted[i], cases[j].name, norm_names[norm], widths, fits);
}

/* ---- Printed summary ---- */

#define SUMMARY_ROW(X)                                                                             \
    X(TEXT, input, "", "", cell_text(raw, row, "input"))                                           \
    X(TEXT, norm, "", "", cell_text(raw, row, "norm"))                                             \
    X(TEXT, norm_form, "", "", cell_text(raw, row, "norm_form"))                                   \
    X(INTEGER, n, "", "", cell_integer(raw, row, "n"))                                             \
    X(INTEGER, seed, "", "", cell_integer(raw, row, "seed"))                                       \
    X(REAL, tokens_digits, "", "", cell_real(raw, row, "digits"))                                  \
    X(REAL, channels_digits, "", "", cell_real(raw, row + 1, "digits"))                            \
    X(REAL_IF, order_difference, "", "", !isnan(difference), difference)                           \
    X(REAL, weights_vanished, "", "", cell_real(raw, row, "first_vanished"))                       \
    X(REAL, weights_nonfinite, "", "", cell_real(raw, row, "first_nonfinite"))                     \
    X(TEXT, outcome, "", "", cell_text(raw, row, "outcome"))
static const column summary_columns[] = {SUMMARY_ROW(LIST_COLUMN)};

/* Prints f16 at the largest n of each input; the row of channels-first follows that of
 * tokens-first. */
static void print_half(const table *raw)
{
    table *to = table_create(summary_columns, sizeof summary_columns / sizeof *summary_columns);
    for (int64_t row = 0; row + 1 < table_rows(raw); row++) {
        bool largest = true;
        for (int64_t other = 0; other < table_rows(raw) && largest; other++)
            largest = !cell_is(raw, other, "input", table_get_text(raw, row, 0)) ||
                      cell_integer(raw, other, "n") <= cell_integer(raw, row, "n");
        if (!largest || !cell_is(raw, row, "storage", "f16") ||
            !cell_is(raw, row, "order", "tokens") || cell_integer(raw, row, "d") != TOKEN_DIM)
            continue;
        double difference = cell_real(raw, row, "order_difference");
        SUMMARY_ROW(LIST_PUT)
    }
    table_print(to, table_rows(to), report_stream());
    table_free(to);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    (void)s;
    (void)state;
    add_fits(raw, tables[1]);
    report_text("f16 at the largest n\n");
    print_half(raw);
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"half", "SimA's two orders in f64, f32, bf16 and f16.", columns, COLUMNS},
    {"half_fit", "Power laws in n and d fitted to half.csv.", fit_columns, FIT_COLUMNS},
};

const experiment attention_half = {
    .name = "attention/half",
    .summary = "SimA's two orders in half precision: how far apart, what over- and underflows",
    .source = "SimA sections 1, 2.2, 4.6; M02, M04, M06",
    .example = "attnum run attention/half --seed 1:3",
    .options = OPTIONS(OPTION_DEVICE, OPTION_N),
    .defaults = "n = 49 ... 50176 with d = 32 (--quick: to 3136, --full: to 200704; photos: to "
                "3136), and d = 16 ... 256 with n = 784 (--quick: to 64, --full: to 1024); --n: "
                "these n (photos: if their grid divides 224 pixels), d = 32",
    .outputs = outputs,
    .output_count = 2,
    .plot = "attention/half.gp",
    .prepare = prepare,
    .describe = describe,
    .replay = replay,
    .weight = weight,
    .input = input_at,
    .run = run,
    .finish = finish,
    .release = release,
};
