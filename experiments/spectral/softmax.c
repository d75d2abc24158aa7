/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT (IJCV) Prop. 3: the eigenvalues of softmax attention, which it bounds by 1, and the spectral
 * norm, which the paper equates with them and which can reach sqrt(n). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dominant.h>

#include "common/fit.h"
#include "common/report.h"
#include "registry.h"
#include "spectral/matrices.h"
#include "spectral/operator_norms.h"
#include "train/trained.h"

/* ---- What is measured ---- */

/* X(code, name, description) */
#define KEYS_LIST(X)                                                                               \
    X(KEYS_SAME, "tokens", "K = Q")                                                                \
    X(KEYS_OTHER, "other",                                                                         \
      "K is the trained network's own, and of other inputs the next sample: K != Q")

#define KEYS_CODE(code, name, description) code,
#define KEYS_NAME(code, name, description) name,
enum { KEYS_LIST(KEYS_CODE) KEYS_COUNT };
static const char *const keys_names[] = {KEYS_LIST(KEYS_NAME)};

#define KEYS_TEXT(code, name, description) name ": " description ". "
#define ROW(X)                                                                                     \
    X(TEXT, input, "",                                                                             \
      "where the tokens come from; iid-norms: q = r z, z ~ N(0, I), log r ~ N(0, 1); "             \
      "dominant: q_1 = r e, all others e, |e|^2 = sqrt(d)",                                        \
      origin_name(p))                                                                              \
    X(TEXT, keys, "", KEYS_LIST(KEYS_TEXT), keys_names[p->kind])                                   \
    X(INTEGER, n, "", "number of tokens", grid_tokens(&p->grid))                                   \
    X(REAL_IF, r, "", "dominant: the norm of token 1 over that of the others", dominant, p->norm)  \
    X(INTEGER, sample, "", "which sample of the input, from 0", p->sample)                         \
    X(REAL, radius, "", "the spectral radius of S = softmax(Q K^T / sqrt(d)): 1", norms->radius)   \
    X(REAL, lowest, "", "the smallest eigenvalue, of K != Q its real part", norms->lowest)         \
    X(REAL, largest_imaginary, "",                                                                 \
      "the largest |imaginary part| of an eigenvalue; K = Q: 0, S is similar to a "                \
      "symmetric matrix",                                                                          \
      norms->largest_imaginary)                                                                    \
    X(REAL, norm, "", "|S|_2", norms->norm)                                                        \
    X(REAL, norm_over_root, "", "|S|_2 / sqrt(n), at most 1",                                      \
      norms->norm / sqrt((double)grid_tokens(&p->grid)))                                           \
    X(REAL_IF, closed_form, "", "dominant: |S|_2 in closed form", dominant, closed_form)           \
    X(REAL_IF, closed_form_ratio, "",                                                              \
      "dominant: |norm - closed_form| / closed_form over `allowance`", dominant,                   \
      fabs(norms->norm - closed_form) / closed_form / allowance)                                   \
    X(REAL, allowance, "",                                                                         \
      "for rounding, of norms and eigenvalues: 10 (n + d L) u, L the largest |logit|; u = "        \
      "2^-53",                                                                                     \
      allowance)                                                                                   \
    X(INTEGER, seed, "", "the seed of the input", (int64_t)p->seed)
static const column columns[] = {ROW(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- Points ---- */

static const int64_t usual_tokens[EFFORT_COUNT][6] = {[EFFORT_QUICK] = {4, 16, 64},
                                                      [EFFORT_DEFAULT] = {4, 16, 64, 256, 1024},
                                                      [EFFORT_FULL] = {4, 16, 64, 256, 1024, 4096}};

/* The eigenvalues of S take n^3; without symmetry they cost 20 times as much. */
enum { MOST_OTHER_KEYS = 256, PHOTO_PATCH = 4 };

/* Norms of the dominant token: from equal tokens to one that gets almost all of the weight. */
static const double ratios[] = {1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
enum { RATIOS = sizeof ratios / sizeof *ratios };

/* The index-th n, 0 past the last one. */
static int64_t get_tokens(const program_options *s, int index)
{
    if (s->tokens.count > 0)
        return index < s->tokens.count ? s->tokens.items[index] : 0;
    return index < 6 ? usual_tokens[s->effort][index] : 0;
}

static int check_tokens(const program_options *s)
{
    for (int i = 0; i < s->tokens.count; i++) {
        int64_t n = s->tokens.items[i], side = llround(sqrt((double)n));
        if (n < 2 || n > MOST_TOKENS || side * side != n) {
            report_error("--n %" PRId64 ": expected a square from 4 to %d", n, (int)MOST_TOKENS);
            return EXIT_USAGE;
        }
    }
    return EXIT_PASS;
}

static int add_point(landmark_sweep *sweep, landmark_point point)
{
    static const int64_t usual[EFFORT_COUNT] = {
        [EFFORT_QUICK] = 2, [EFFORT_DEFAULT] = 5, [EFFORT_FULL] = 13};
    int64_t samples = sweep->s->samples > 0 ? sweep->s->samples : usual[sweep->s->effort];
    if (point.in)
        return landmark_sweep_add_samples(sweep, point, samples);
    for (; point.sample < samples; point.sample++)
        landmark_sweep_add(sweep, &point);
    return EXIT_PASS;
}

/* Whether there are keys other than the tokens. */
static bool has_other_keys(const input *in)
{
    return !in || !input_network(in) || trained_has_keys(input_network(in));
}

/* Adds the points of an input under one seed, or of tokens with heterogeneous norms (null). */
static int add_input(landmark_sweep *sweep, uint64_t seed, const input *in)
{
    landmark_point point = {.seed = seed, .in = in};
    int64_t n;
    int code = EXIT_PASS;
    if (in && input_is_file(in)) {
        point.grid = own_grid(in);
        return add_point(sweep, point);
    }
    for (int keys = 0; keys < KEYS_COUNT && (keys == KEYS_SAME || has_other_keys(in)); keys++) {
        int64_t before = 0; /* a network may have one grid for several n */
        for (int i = 0; code == EXIT_PASS && (n = get_tokens(sweep->s, i)) > 0; i++) {
            int64_t side = llround(sqrt((double)n));
            if (in && sweep->s->tokens.count == 0)
                side = nearest_side(in, side);
            if (in && is_left_out(sweep->s, in, input_has_side(in, side)))
                continue;
            if (in && check_side(in, side) != EXIT_PASS)
                return EXIT_USAGE;
            point.grid = (token_grid){.height = side, .width = side, .patch = PHOTO_PATCH};
            point.kind = keys;
            if (side != before && (keys == KEYS_SAME || side * side <= MOST_OTHER_KEYS))
                code = add_point(sweep, point);
            before = side;
        }
    }
    return code;
}

static void add_ratios(landmark_sweep *sweep, int64_t n)
{
    for (int i = 0; i < RATIOS; i++)
        landmark_sweep_add(sweep, &(landmark_point){.seed = (uint64_t)sweep->s->seeds.items[0],
                                                    .norm = ratios[i],
                                                    .grid = {.height = n, .width = 1}});
}

/* Adds the points with a dominant token, which do not depend on the seed. */
static void add_dominant(landmark_sweep *sweep)
{
    int64_t n;
    add_ratios(sweep, 2);
    for (int i = 0; (n = get_tokens(sweep->s, i)) > 0; i++)
        add_ratios(sweep, n);
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const char *const usual_inputs[] = {"photos", "trained:softmax", "smooth",
                                               "iid",    "clusters",        NULL};
    int code = landmark_sweep_start(s, usual_inputs, state);
    landmark_sweep *sweep = *state;
    if (code == EXIT_PASS)
        code = check_tokens(s);
    if (code == EXIT_PASS)
        code = refuse_large_files(&sweep->inputs, "spectral/softmax");
    for (int i = 0; i < s->seeds.count && code == EXIT_PASS; i++) {
        for (int j = 0; j < sweep->inputs.count && code == EXIT_PASS; j++)
            code = add_input(sweep, (uint64_t)s->seeds.items[i], sweep->inputs.items[j]);
        if (code == EXIT_PASS)
            code = add_input(sweep, (uint64_t)s->seeds.items[i], NULL);
    }
    if (code == EXIT_PASS)
        add_dominant(sweep);
    *points = sweep->count;
    return code;
}

static const char *origin_name(const landmark_point *p)
{
    return p->in ? input_name(p->in) : p->norm > 0 ? "dominant" : "iid-norms";
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    snprintf(buffer, size, "%s keys=%s n=%" PRId64 " r=%g sample=%" PRId64 " seed=%" PRIu64,
             origin_name(p), keys_names[p->kind], grid_tokens(&p->grid), p->norm, p->sample,
             p->seed);
}

static double weight(const void *state, int64_t point)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    double n = (double)grid_tokens(&p->grid);
    return n * n * n * (p->kind == KEYS_OTHER ? 20 : 1);
}

static void replay(const void *state, int64_t point, options_point *options)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    int64_t n = grid_tokens(&p->grid);
    landmark_sweep_replay(state, point, options);
    options->tokens = (p->in && input_is_file(p->in)) || n == 2 ? 0 : n;
}

/* ---- Tokens ---- */

/* Tokens on a line, multiples of an e with |e|^2 = sqrt(d): the logits are products of the
 * multiples, as in ref_dominant_softmax with c = 1. */
static void make_dominant(double norm, int64_t n, double *tokens)
{
    for (int64_t i = 0; i < n; i++)
        tokens[i * TOKEN_DIM] = (i == 0 ? norm : 1) * sqrt(sqrt((double)TOKEN_DIM));
}

/* Queries, or keys other than these. */
static int make_tokens(const landmark_point *p, bool keys, double *tokens)
{
    int64_t n = grid_tokens(&p->grid), height = p->grid.height, width = p->grid.width;
    int64_t sample = keys ? p->sample + 1 : p->sample;
    if (keys && p->in && input_network(p->in))
        return trained_keys(input_network(p->in),
                            &(input_draw){height, width, p->grid.patch, p->seed, p->sample},
                            tokens);
    if (p->in)
        return input_tokens(p->in, height, width, p->grid.patch, p->seed, sample, tokens);
    if (p->norm > 0)
        make_dominant(p->norm, n, tokens);
    else
        make_norms(p->seed, sample, n, tokens);
    return EXIT_PASS;
}

/* ---- Rows ---- */

/* EXIT_CHECK, reported, unless low <= high up to the allowance. */
static int check_order(const landmark_point *p, const char *what, double low, double high,
                       double allowance)
{
    if (low <= high + allowance)
        return EXIT_PASS;
    report_error("%s keys=%s n=%" PRId64 " sample=%" PRId64 ": %s: %.17g, expected at most %.17g",
                 origin_name(p), keys_names[p->kind], grid_tokens(&p->grid), p->sample, what, low,
                 high);
    return EXIT_CHECK;
}

/* Without symmetry rounding may move eigenvalues in a cluster, such as those of an S near I, by its
 * square root. */
static int check_rows(const landmark_point *p, const cross_norms *norms, double closed_form,
                      double allowance)
{
    bool same = p->kind == KEYS_SAME;
    double root = sqrt((double)grid_tokens(&p->grid)), slack = same ? allowance : sqrt(allowance);
    const struct {
        const char *what;
        double low, high, allowance;
        bool applies;
    } checks[] = {{"radius <= 1", norms->radius, 1, slack, true},
                  {"radius >= 1", 1, norms->radius, slack, true},
                  {"eigenvalues >= 0", 0, norms->lowest, allowance, same},
                  {"1 <= |S|_2", 1, norms->norm, allowance, true},
                  {"|S|_2 <= sqrt(n)", norms->norm, root, root * allowance, true},
                  {"|S|_2 = its closed form", fabs(norms->norm - closed_form), 0,
                   closed_form * allowance, !isnan(closed_form)}};
    int code = EXIT_PASS;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i].applies)
            code = exit_worst(code, check_order(p, checks[i].what, checks[i].low, checks[i].high,
                                                checks[i].allowance));
    return code;
}

static void add_row(const landmark_point *p, const cross_norms *norms, double closed_form,
                    double allowance, table *to)
{
    bool dominant = p->norm > 0;
    ROW(LIST_PUT)
}

static int measure(const landmark_point *p, int64_t dim, cross_norms *norms)
{
    int64_t n = grid_tokens(&p->grid);
    double *queries = must_allocate((size_t)n, (size_t)dim * sizeof *queries);
    double *keys = must_allocate((size_t)n, (size_t)dim * sizeof *keys);
    int code = make_tokens(p, false, queries);
    if (code == EXIT_PASS && p->kind == KEYS_OTHER) {
        code = make_tokens(p, true, keys);
        if (code == EXIT_PASS)
            code = softmax_cross_measure(n, dim, queries, keys, norms);
    } else if (code == EXIT_PASS) {
        softmax_norms same;
        code = softmax_norms_measure(n, dim, queries, &same);
        *norms =
            (cross_norms){fmax(same.highest, -same.lowest), same.lowest, 0, same.norm, same.logit};
    }
    free(keys);
    free(queries);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const landmark_point *p = &((const landmark_sweep *)state)->points[point];
    int64_t n = grid_tokens(&p->grid), dim = p->in ? input_dim(p->in) : TOKEN_DIM;
    cross_norms norms;
    int code = measure(p, dim, &norms);
    if (code != EXIT_PASS && code != EXIT_CHECK)
        return code;
    if (isnan(norms.norm)) {
        report_error("%s n=%" PRId64 ": logits of %g, expected finite ones", origin_name(p), n,
                     norms.logit);
        return EXIT_USAGE;
    }
    double closed_form = p->norm > 0 ? (double)ref_dominant_softmax(n, 1, p->norm).norm : NAN;
    double allowance =
        10 * atn_dtype_roundoff(ATN_F64) * ((double)n + (double)dim * fmax(1, norms.logit));
    add_row(p, &norms, closed_form, allowance, raw);
    return exit_worst(code, check_rows(p, &norms, closed_form, allowance));
}

/* ---- softmax_fit.csv ---- */

#define FIT_ROW(X)                                                                                 \
    X(TEXT, input, "", "where the tokens come from", cell_text(raw, row, "input"))                 \
    X(TEXT, keys, "", "tokens or other", cell_text(raw, row, "keys"))                              \
    X(REAL_IF, r, "", "dominant: the norm of token 1 over that of the others", !isnan(r), r)       \
    X(REAL_IF, exponent, "", "p of |S|_2 = c n^p, by least squares on the logarithms", found,      \
      fit.exponent)                                                                                \
    X(REAL_IF, std_error, "", "standard error of p, from the residuals", found, fit.std_error)     \
    X(REAL_IF, residual, "", "root mean square of log10(norm / fit)", found, fit.residual)         \
    X(INTEGER, points, "", "rows fitted", count)                                                   \
    X(REAL, norm_max, "", "the largest |S|_2", largest)                                            \
    X(REAL, root_share_max, "", "the largest |S|_2 / sqrt(n)", share)
static const column fit_columns[] = {FIT_ROW(LIST_COLUMN)};
enum { FIT_COLUMNS = sizeof fit_columns / sizeof *fit_columns };

/* The columns that a fit's rows have in common. */
static const char *const keys[] = {"input", "keys", "r"};
enum { KEYS = sizeof keys / sizeof *keys };

static void add_fit(const table *raw, int64_t row, double *n, double *norms, table *to)
{
    int64_t count = 0;
    double largest = 0, share = 0, r = cell_real(raw, row, "r");
    growth_fit fit = {0};
    for (int64_t i = row; i < table_rows(raw); i++) {
        if (!table_rows_agree(raw, row, i, keys, KEYS))
            continue;
        n[count] = (double)cell_integer(raw, i, "n");
        norms[count] = cell_real(raw, i, "norm");
        largest = fmax(largest, norms[count++]);
        share = fmax(share, cell_real(raw, i, "norm_over_root"));
    }
    bool found = fit_growth(LAW_POWER, count, n, norms, &fit);
    FIT_ROW(LIST_PUT)
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    size_t rows = (size_t)table_rows(raw);
    double *n = must_allocate(rows, sizeof *n), *norms = must_allocate(rows, sizeof *norms);
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (table_row_is_first(raw, row, keys, KEYS))
            add_fit(raw, row, n, norms, tables[1]);
    free(norms);
    free(n);
    table_print(tables[1], table_rows(tables[1]), report_stream());
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"softmax", "Eigenvalues and spectral norms of softmax attention.", columns, COLUMNS},
    {"softmax_fit", "Power laws of the norm in n, fitted to softmax.csv.", fit_columns,
     FIT_COLUMNS},
};

const experiment spectral_softmax = {
    .name = "spectral/softmax",
    .summary = "eigenvalues of softmax attention, and the norm that reaches sqrt(n)",
    .source = "SOFT (IJCV) Prop. 3; S20",
    .example = "attnum run spectral/softmax --input photos,iid --n 16,64,256",
    .options = OPTIONS(OPTION_DEVICE, OPTION_INPUT, OPTION_SAMPLES, OPTION_N),
    .defaults =
        "inputs photos, trained:softmax, smooth, iid, clusters, and always iid-norms and dominant; "
        "n = 4, 16, 64, 256, 1024 (--quick: to 64, --full: also 4096), K != Q to 256, dominant "
        "also 2, a file all its tokens, a trained network the nearest n that it has; 5 samples "
        "(--quick: 2, --full: 13)",
    .outputs = outputs,
    .output_count = 2,
    .plot = "spectral/softmax.gp",
    .prepare = prepare,
    .describe = describe,
    .weight = weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .replay = replay,
    .release = landmark_sweep_release,
};
