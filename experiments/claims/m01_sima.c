/* SPDX-License-Identifier: BSD-3-Clause */
/* M01 - M08: SimA. The judges of M02, M04 and M06 are in m02_half.c. */
#include <data.h>
#include <math.h>
#include <stdlib.h>

#include "attention/magnitudes.h"
#include "claims/claims.h"
#include "claims/direct.h"
#include "claims/m01_sima.h"
#include "claims/miniature.h"
#include "common/inputs.h"
#include "common/report.h"

/* ---- M01 ---- */

static double largest_entry(int64_t count, const double *matrix)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = direct_worst(largest, fabs(matrix[i]));
    return largest;
}

/* q = k: one token is 1 in all d channels, the others are `rest`. */
static int one_row(const claim_run *run, int64_t n, int64_t d, double rest, double *largest,
                   double *sum)
{
    double *q = must_allocate((size_t)(n * d), sizeof *q);
    double *matrix = must_allocate((size_t)(n * n), sizeof *matrix);
    for (int64_t i = 0; i < n * d; i++)
        q[i] = i < d ? 1 : rest;
    int code = direct_attention_matrix(run, ATN_SIMA, n, d, q, q, matrix);
    *largest = largest_entry(n * n, matrix);
    *sum = 0;
    for (int64_t i = 0; i < n * n; i++)
        *sum += fabs(matrix[i]);
    free(matrix);
    free(q);
    return code;
}

/* The entry for one token with two channels, the smallest case in which Q and K have a single row
 * each. With the published epsilon a channel of zeros gives 0. */
static int single_entry(const claim_run *run, const double q[2], const double k[2], double *entry)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F64);
    const double one = 1;
    desc.sima.epsilon = 1e-12;
    return direct_forward(run, &desc, 1, 2, 1, q, k, &one, entry);
}

static int judge_m01(const claim_run *run, verdict *v)
{
    enum { TOKENS = 49, WIDTH = 32 };
    static const double ones[] = {1, 1}, signs[] = {1, -1}, one_dead[] = {1, 0};
    double opposed, dead;
    int code = single_entry(run, ones, signs, &opposed);
    if (code == EXIT_PASS)
        code = single_entry(run, ones, one_dead, &dead);
    if (code != EXIT_PASS)
        return code;
    static const double rests[] = {0, 1e-3, 1e-2, 0.1, 1};
    const double rounding = 4 * (TOKENS + WIDTH) * 0x1p-53 * WIDTH;
    double most = 0, at_zero = 0, elsewhere = 0, most_sum = 0;
    fprintf(v->notes, "| the other rows of Q and K | largest entry | sum of all absolute values "
                      "|\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        double largest, sum;
        code = one_row(run, TOKENS, WIDTH, rests[i], &largest, &sum);
        if (code != EXIT_PASS)
            return code;
        fprintf(v->notes, "| %g | %.6g | %.6g |\n", rests[i], largest, sum);
        most = direct_worst(most, largest);
        most_sum = direct_worst(most_sum, sum);
        if (rests[i] == 0)
            at_zero = largest;
        else
            elsewhere = direct_worst(elsewhere, largest);
    }
    fprintf(v->notes, "\nOne row of Q = K is 1 in all %d channels, %d tokens.\n", WIDTH, TOKENS);
    bool bounded = most <= WIDTH + rounding && most_sum <= WIDTH + rounding * TOKENS;
    bool attained = fabs(at_zero - WIDTH) <= rounding && elsewhere < WIDTH - rounding;
    /* whether a single non-zero row each is enough, or needs a condition */
    bool enough = fabs(opposed) > 2 - rounding && fabs(dead) > 2 - rounding;
    v->kind = !bounded || !attained ? VERDICT_FAILS : enough ? VERDICT_HOLDS : VERDICT_HOLDS_IF;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "no channel of the two rows is zero, and q_c k_c has the same "
                                   "sign in every channel c");
    verdict_set(&v->measured,
                "largest entry %.10g with a single non-zero row, %.6g otherwise; D = 2, one token: "
                "q = (1, 1) has the entry %g with k = (1, −1) and %g with k = (1, 0)",
                at_zero, elsewhere, opposed, dead);
    verdict_set(&v->bound, "D = %d", WIDTH);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "an entry of %.17g with D = %d (table)", most, WIDTH);
    else
        verdict_set(&v->counterexample,
                    "D = 2, one token, q = (1, 1), k = (1, −1): its entry is %g, not ±2", opposed);
    return EXIT_PASS;
}

/* ---- M03 ---- */

/* Exact flops of the heads, their norms included. */
static int order_flops(const claim_run *run, atn_order order, int64_t heads, int64_t n, int64_t d,
                       double *flops)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F32);
    desc.sima.order = order;
    return direct_flops(run, &desc, heads, n, d, d, flops);
}

/* flops[0] tokens first, flops[1] channels first. */
static int both_flops(const claim_run *run, int64_t heads, int64_t n, int64_t d, double flops[2])
{
    int code = order_flops(run, ATN_ORDER_TOKENS, heads, n, d, &flops[0]);
    return exit_worst(code, order_flops(run, ATN_ORDER_CHANNELS, heads, n, d, &flops[1]));
}

/* The n at which both orders take equally many flops, with tokens first taking fewer below it; -1
 * if there is none up to twice the width of all heads. */
static int find_crossing(const claim_run *run, int64_t heads, int64_t d, int64_t *crossing)
{
    *crossing = -1;
    for (int64_t n = 1; n <= 2 * heads * d; n++) {
        double flops[2];
        int code = both_flops(run, heads, n, d, flops);
        if (code != EXIT_PASS)
            return code;
        if (flops[0] < flops[1])
            continue;
        *crossing = flops[0] == flops[1] ? n : -1;
        return EXIT_PASS;
    }
    return EXIT_PASS;
}

/* The smallest D, and for it the smallest N < D, of two heads for which tokens first, the paper's
 * choice, takes more flops than channels first; n = 0 if there are none up to D = 16. */
static int wrong_choice(const claim_run *run, int64_t *n, int64_t *width, double flops[2])
{
    for (*width = 2; *width <= 16; *width += 2)
        for (*n = 1; *n < *width; ++*n) {
            int code = both_flops(run, 2, *n, *width / 2, flops);
            if (code != EXIT_PASS || flops[0] > flops[1])
                return code;
        }
    *n = 0;
    return EXIT_PASS;
}

/* Whether tokens first is quadratic and channels first linear in the number of tokens (in_tokens),
 * or the opposite in the number of channels: the second difference is positive in the one order and
 * 0 in the other. */
static int is_quadratic(const claim_run *run, bool in_tokens, bool *quadratic)
{
    enum { STEP = 64 };
    double flops[3][2];
    for (int i = 0; i < 3; i++) {
        int64_t size = (i + 1) * STEP;
        int code = both_flops(run, 2, in_tokens ? size : STEP, in_tokens ? STEP : size, flops[i]);
        if (code != EXIT_PASS)
            return code;
    }
    double tokens = flops[2][0] - 2 * flops[1][0] + flops[0][0];
    double channels = flops[2][1] - 2 * flops[1][1] + flops[0][1];
    *quadratic = in_tokens ? tokens > 0 && channels == 0 : tokens == 0 && channels > 0;
    return EXIT_PASS;
}

/* Shapes with one head and with several, and how many of them have their crossing at D (one head,
 * several) and at d_h = D/H. */
typedef struct {
    int single, many, at_width, at_width_many, at_head;
} crossings;

static int count_crossings(const claim_run *run, crossings *found, FILE *notes)
{
    static const struct {
        int64_t heads, d;
    } shapes[] = {{1, 32}, {1, 64}, {2, 32}, {4, 32}, {6, 64}, {12, 32}};
    *found = (crossings){0};
    fprintf(notes, "Exact counts:\n\n| H | d_h = D/H | D | as many flops at N = |\n"
                   "|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t heads = shapes[i].heads, d = shapes[i].d, at;
        int code = find_crossing(run, heads, d, &at);
        if (code != EXIT_PASS)
            return code;
        fprintf(notes, "| %lld | %lld | %lld | %lld |\n", (long long)heads, (long long)d,
                (long long)(heads * d), (long long)at);
        found->single += heads == 1;
        found->many += heads > 1;
        found->at_width += heads == 1 && at == d;
        found->at_width_many += heads > 1 && at == heads * d;
        found->at_head += at == d;
    }
    return EXIT_PASS;
}

/* Adds the n at which measured times cross. */
static void note_times(const table *fits, FILE *notes)
{
    fprintf(notes, "\nMeasured (this library, f32, one thread, one head):\n\n");
    for (int64_t row = 0; row < table_rows(fits); row++)
        if (cell_is(fits, row, "statement", "M03") && cell_missing(fits, row, "crossover_n"))
            fprintf(notes, "- d = %lld: times do not cross once between n = %lld and %lld\n",
                    (long long)cell_integer(fits, row, "d"),
                    (long long)cell_integer(fits, row, "from"),
                    (long long)cell_integer(fits, row, "to"));
        else if (cell_is(fits, row, "statement", "M03"))
            fprintf(notes, "- d = %lld: times cross at n = %.0f\n",
                    (long long)cell_integer(fits, row, "d"), cell_real(fits, row, "crossover_n"));
}

static int judge_m03(const claim_run *run, verdict *v)
{
    crossings found;
    bool in_tokens = false, in_channels = false;
    int64_t n = 0, width = 0;
    double flops[2] = {NAN, NAN};
    int code = count_crossings(run, &found, v->notes);
    if (code == EXIT_PASS)
        code =
            exit_worst(is_quadratic(run, true, &in_tokens), is_quadratic(run, false, &in_channels));
    if (code == EXIT_PASS)
        code = wrong_choice(run, &n, &width, flops);
    if (code != EXIT_PASS)
        return code;
    note_times(evidence_table(run, "time", 1), v->notes);
    bool one_head = in_tokens && in_channels && found.at_width == found.single;
    bool per_head = found.at_head == found.single + found.many;
    /* "for each head separately": N is then compared with the width of one head */
    v->kind = one_head && per_head ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "tokens first is %squadratic in N and linear in D, channels first %sthe reverse; "
                "flops cross at N = D in %d of %d shapes of one head and %d of %d of more, at "
                "N = d_h in %d of %d",
                in_tokens ? "" : "NOT ", in_channels ? "" : "NOT ", found.at_width, found.single,
                found.at_width_many, found.many, found.at_head, found.single + found.many);
    verdict_set(&v->bound, "exact counts");
    if (n > 0)
        fprintf(v->notes,
                "\nWith D as the width of all heads it would fail: H = 2, D = %lld (d_h = %lld), N "
                "= %lld: N < D, but tokens first takes %g flops and channels first %g, norms "
                "included in both.\n",
                (long long)width, (long long)width / 2, (long long)n, flops[0], flops[1]);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "a shape in the table");
    return EXIT_PASS;
}

/* ---- M05 ---- */

/* The share of A's time that a pair of cost/time measures: 1 - B/A, or B/A where B is A's exps. */
typedef struct {
    int points;
    double first, last; /* by the swept size, ascending */
    double least, most;
} time_shares;

static double share_of(double ratio, bool exps)
{
    return exps ? 1 / ratio : 1 - 1 / ratio;
}

/* The rows of one operator A against SimA or its own exps, in the order of the table: by ascending
 * n or d. */
static time_shares collect_shares(const table *t, const char *a, bool exps, FILE *notes)
{
    time_shares found = {.least = INFINITY, .most = -INFINITY};
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "statement", "M05") || !cell_is(t, row, "a", a) ||
            cell_is(t, row, "b_work", "exps") != exps ||
            !isfinite(cell_real(t, row, "ratio_median")))
            continue;
        double share = share_of(cell_real(t, row, "ratio_median"), exps);
        double ends[2] = {share_of(cell_real(t, row, "ratio_min"), exps),
                          share_of(cell_real(t, row, "ratio_max"), exps)};
        fprintf(notes, "| %s | %lld | %lld | %s | %.1f %% | %.1f to %.1f %% |\n", a,
                (long long)cell_integer(t, row, "n"), (long long)cell_integer(t, row, "d"),
                exps ? "its exps alone" : "all that SimA does not do", 100 * share,
                100 * direct_least(ends[0], ends[1]), 100 * direct_worst(ends[0], ends[1]));
        found.first = found.points++ == 0 ? share : found.first;
        found.last = share;
        found.least = direct_least(found.least, direct_least(ends[0], ends[1]));
        found.most = direct_worst(found.most, direct_worst(ends[0], ends[1]));
    }
    return found;
}

static int judge_m05(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "time", 0);
    fprintf(v->notes, "Shares of the operator's time, f32, one thread, with the spread over "
                      "repetitions. SimA multiplies in the same order: tokens first beside "
                      "softmax, channels first beside XCA.\n\n"
                      "| operator | n | d | what | share | spread |\n|---|---|---|---|---|---|\n");
    time_shares softmax = collect_shares(t, "softmax", false, v->notes);
    time_shares exps = collect_shares(t, "softmax", true, v->notes);
    time_shares xca = collect_shares(t, "xca", false, v->notes);
    time_shares xca_exps = collect_shares(t, "xca", true, v->notes);
    bool all = softmax.points && exps.points && xca.points && xca_exps.points;
    /* true if the exps take no longer than all that SimA leaves out, of which they are a part */
    bool parts = exps.least <= softmax.most && xca_exps.least <= xca.most;
    char *shares = must_format(
        "what SimA leaves out takes %.0f %% of softmax attention's time at the first resolution "
        "and %.0f %% at the last, the exps by themselves %.0f and %.0f %%; of XCA's time %.0f %% "
        "at the first width and %.0f %% at the last, the exps %.0f and %.0f %%",
        100 * softmax.first, 100 * softmax.last, 100 * exps.first, 100 * exps.last, 100 * xca.first,
        100 * xca.last, 100 * xca_exps.first, 100 * xca_exps.last);
    v->kind = VERDICT_NOT_TESTABLE;
    verdict_set(&v->measured,
                "would need the networks on the GPU of the paper, at 9216 tokens and 8192 "
                "dimensions. A related share, not that slowdown, is of the operators alone on one "
                "thread of a CPU: %s",
                !all     ? "no finite times"
                : !parts ? "times of no use, as the exps by themselves take longer than all that "
                           "SimA leaves out, of which they are a part"
                         : shares);
    free(shares);
    if (!all || !parts)
        return EXIT_PASS;
    verdict_set(
        &v->bound,
        "printed: networks 58 %% and 22 %% slower, which is 37 and 18 %% of their own time, and "
        "which no time here is of. Spread of what SimA leaves out here: softmax %.0f to %.0f %%, "
        "XCA %.0f to %.0f %%",
        100 * softmax.least, 100 * softmax.most, 100 * xca.least, 100 * xca.most);
    return EXIT_PASS;
}

/* ---- M07 ---- */

enum { MAP_SAMPLES = 6, MAP_SIDE = 14, MAP_PATCH = 16, MAP_TOKENS = MAP_SIDE * MAP_SIDE };

/* One channel, two tokens q = (1, 2) and k = (sign, 2 sign). */
static double signed_correlation(double sign)
{
    double q[2] = {1, 2}, k[2] = {sign, 2 * sign}, lengths[4];
    return measure_magnitude(2, 1, q, k, lengths).product;
}

typedef struct {
    value_range ratio, maps, product, size;
} magnitudes;

static void add_magnitude(magnitudes *all, const magnitude *m)
{
    range_widen(&all->ratio, m->query_ratio);
    range_widen(&all->ratio, m->key_ratio);
    range_widen(&all->maps, m->maps);
    range_widen(&all->product, m->product);
    range_widen(&all->size, m->size);
}

/* Photographs' tokens X, Q = X W_q and K = X W_k with independent normal W. */
static int measure_photographs(const claim_run *run, FILE *notes, magnitudes *all)
{
    double *x = must_allocate(3 * MAP_TOKENS * TOKEN_DIM, sizeof *x);
    double *q = x + MAP_TOKENS * TOKEN_DIM, *k = q + MAP_TOKENS * TOKEN_DIM;
    double *weights = must_allocate(2 * TOKEN_DIM * TOKEN_DIM, sizeof *weights);
    double lengths[2 * MAP_TOKENS];
    input *in;
    data_normal(run->seed, 2 * TOKEN_DIM * TOKEN_DIM, weights);
    int code = input_open("photos", 0, 0, &in);
    bool open = code == EXIT_PASS;
    *all = (magnitudes){range_empty, range_empty, range_empty, range_empty};
    for (int i = 0; i < MAP_SAMPLES && code == EXIT_PASS; i++) {
        code = input_tokens(in, MAP_SIDE, MAP_SIDE, MAP_PATCH, run->seed, i, x);
        if (code != EXIT_PASS)
            break;
        direct_multiply(MAP_TOKENS, TOKEN_DIM, TOKEN_DIM, x, weights, q);
        direct_multiply(MAP_TOKENS, TOKEN_DIM, TOKEN_DIM, x, weights + TOKEN_DIM * TOKEN_DIM, k);
        magnitude m = measure_magnitude(MAP_TOKENS, TOKEN_DIM, q, k, lengths);
        add_magnitude(all, &m);
        fprintf(notes, "| %d | %.3g | %.3g | %.2f | %.2f | %.2f |\n", i, m.query_ratio, m.key_ratio,
                m.maps, m.product, m.size);
    }
    if (open)
        input_free(in);
    free(weights);
    free(x);
    return code;
}

static int judge_m07(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "maps", 2);
    double agreeing = signed_correlation(1), opposed = signed_correlation(-1);
    magnitudes all;
    fprintf(v->notes, "| photograph | largest over least ‖q̂_i‖ | ‖k̂_i‖ | correlation of both | "
                      "of ‖q̂_i‖‖k̂_j‖ with (Q̂K̂ᵀ)_ij | with its size "
                      "|\n|---|---|---|---|---|---|\n");
    int code = measure_photographs(run, v->notes, &all);
    fprintf(v->notes,
            "\n%d tokens of a photograph's patches, projected to Q and K by independent "
            "random matrices. The figure has K = Q, one map:\n\n",
            MAP_TOKENS);
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "operator", "sima") && !cell_is(t, row, "kind", "row"))
            fprintf(v->notes, "- %s, %s: norms from %.3g to %.3g\n", cell_text(t, row, "photo"),
                    cell_text(t, row, "kind"), cell_real(t, row, "least"),
                    cell_real(t, row, "largest"));
    fprintf(v->notes, "\nLayerNorm has given all tokens the same norm before; what differs is how "
                      "unusual a token's channels are.\n");
    v->kind = all.size.least <= all.size.most ? VERDICT_OBSERVED : VERDICT_NOT_TESTABLE;
    verdict_set(&v->measured,
                "independent random projections Q ≠ K of photographs, %d samples: the correlation "
                "of ‖q̂_i‖‖k̂_j‖ with (Q̂K̂ᵀ)_ij is %.2f to %.2f, with its absolute value %.2f to "
                "%.2f, that of the two maps %.2f to %.2f; largest over least norm: %.2g to %.2g",
                MAP_SAMPLES, all.product.least, all.product.most, all.size.least, all.size.most,
                all.maps.least, all.maps.most, all.ratio.least, all.ratio.most);
    verdict_set(&v->bound,
                "correlations of 1, or 0 for none; a ratio of 1 is a flat map. These are "
                "no trained features: whether the norms of a trained network mark what "
                "matters, networks/maps measures in small ones");
    verdict_set(&v->counterexample,
                "to the correlation by itself: one channel, two tokens, q = (1, 2), k = (−1, −2): "
                "Q̂K̂ᵀ = −[1 2; 2 4]/9, correlation %g with the products of magnitudes; with k = "
                "(1, 2) it is %g",
                opposed, agreeing);
    return code;
}

/* ---- M08 ---- */

/* The attention blocks of SimA's tables that this library has. SOFT's P is counted once, as in its
 * Algorithm 1 and its published code. */
static const struct {
    const char *operator, * name, *quantity;
} charged[] = {
    {"softmax", "softmax attention", "exps"},
    {"xca", "XCA", "exps"},
    {"sima", "SimA", "exps"},
    {"soft", "SOFT", "exps_if_p_is_kept"},
    {"linformer", "Linformer", "exps"},
    {"nystromformer", "Nyströmformer", "exps"},
    {"performer", "Performer", "exps"},
    {"efficient", "efficient attention", "exps"},
    {"cosformer", "CosFormer without re-weighting", "exps"},
};
enum { CHARGED = sizeof charged / sizeof *charged, CHARGED_XCA = 1, CHARGED_SOFT = 3 };

/* The row of an attention block that takes D as the caption does, as the token dimension; -1 if
 * there is none. For XCA the table also has a row with the D of a head, which is exact. */
static int64_t find_charged(const table *t, int i)
{
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "statement", "M08") &&
            cell_is(t, row, "operator", charged[i].operator) &&
            cell_is(t, row, "quantity", charged[i].quantity) && cell_integer(t, row, "n") == 784 &&
            cell_integer(t, row, "heads") == 12 &&
            !(i == CHARGED_XCA && cell_boolean(t, row, "exact")))
            return row;
    return -1;
}

static int judge_m08(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "counts", 1);
    int64_t rows[CHARGED];
    int agree = 0, found = 0;
    char *text;
    size_t size;
    FILE *wrong = must_open_text(&text, &size);
    fprintf(v->notes, "| attention block | printed | printed exps | counted | counted / printed "
                      "|\n|---|---|---|---|---|\n");
    for (int i = 0; i < CHARGED; i++) {
        rows[i] = find_charged(t, i);
        if (rows[i] < 0)
            continue;
        double printed = cell_real(t, rows[i], "printed"),
               counted = cell_real(t, rows[i], "counted");
        found++;
        fprintf(v->notes, "| %s | %s | %.9g | %.9g | ", charged[i].name,
                cell_text(t, rows[i], "formula"), printed, counted);
        if (printed != 0)
            fprintf(v->notes, "%.3g", counted / printed);
        fprintf(v->notes, " |\n");
        agree += counted == printed;
        if (!(counted == printed))
            fprintf(wrong, "%s%s %.4g", agree + 1 < found ? ", " : "", charged[i].name,
                    counted / printed);
    }
    must_close_text(wrong, &text, &size);
    fprintf(v->notes, "\nN = 784, D = 384, H = 12, m = r = 49, Performer's 110 features of a head. "
                      "M22 to M24 have the entries of Swin, Twins, PVT and CvT.\n");
    v->kind = found < CHARGED ? VERDICT_NONE : agree < CHARGED ? VERDICT_FAILS : VERDICT_HOLDS;
    verdict_set(&v->measured,
                "%d of %d formulas give the number of exps, with D and H as the caption defines "
                "them. Counted over printed otherwise: %s",
                agree, found, text);
    free(text);
    verdict_set(&v->bound, "1");
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample,
                    "N = 784, D = 384, H = 12: XCA, whose heads have matrices of D/H × D/H, "
                    "evaluates %.9g exps, printed HD² = %.9g; SOFT, m = 49, %.9g, printed HN² = "
                    "%.9g",
                    cell_real(t, rows[CHARGED_XCA], "counted"),
                    cell_real(t, rows[CHARGED_XCA], "printed"),
                    cell_real(t, rows[CHARGED_SOFT], "counted"),
                    cell_real(t, rows[CHARGED_SOFT], "printed"));
    return EXIT_PASS;
}

const claim sima_claims[] = {
    {
        .id = "M01",
        .source = "SimA § 2.2",
        .statement = "The attention values are bounded between −D and D. The extremes happen when "
                     "only a single row of Q and a single row of K are nonzero.",
        .method = "The attention matrix of 49 tokens in 32 channels, one of them 1 everywhere, the "
                  "others 0, 0.001, ... 1; one token of two channels with a zero, and with two "
                  "signs.",
        .corrected = "|entries| ≤ D. An entry is ±D if and only if Q and K have a single non-zero "
                     "row each, without a zero channel, and q_c k_c has the same sign in every "
                     "channel. Sharper: the absolute values of all N² entries sum to at most D, so "
                     "their mean is at most D/N². D: the channels of one head (D/H of § 2.1's "
                     "D).",
        .proof =
            "Σ_i |q̂_ic| ≤ 1 in every channel c (1 without ε; 0 in a zero channel, taken as 0), "
            "and the same for k̂. So "
            "Σ_ij |Σ_c q̂_ic k̂_jc| ≤ Σ_c Σ_i |q̂_ic| Σ_j |k̂_jc| = D. An entry is ±D if "
            "and only if |q̂_ic| = |k̂_jc| = 1 for all c, which leaves 0 for all other rows, "
            "and the D products ±1 have one sign; for the only non-zero row, |q̂_ic| is 1 "
            "where q_ic ≠ 0, and 0 elsewhere.",
        .judge = judge_m01,
    },
    {
        .id = "M02",
        .source = "SimA § 1, 2.2",
        .statement =
            "[D]ue to the associative property of multiplication, there are two possible orderings "
            "of multiplying these three matrices at the test time. … Hence, we can reduce the "
            "computation further by dynamically deciding on the ordering at the test time by "
            "comparing N and D without affecting the training process.",
        .method =
            "Exactly: 8 tokens of whole numbers whose columns have ℓ1 norms 32 and 64, both orders "
            "in f64 against whole-number arithmetic. Rounded: random tokens and photographs, "
            "both orders in f64, f32, bf16, f16, with wide norms. The smallest examples of "
            "underflow, in f16, and of overflow, in f32, by the library. Which order is the "
            "cheaper is M03.",
        .corrected =
            "As long as nothing underflows or overflows the orders agree to the accuracy of the "
            "arithmetic, relative to |Q̂||K̂|ᵀ|V|: in whatever order terms are added up to N ≤ 2²² "
            "where sums are taken in f32 (M04: a running sum stops at 2²⁴ equal terms). In f64, "
            "f32 and bf16 only extreme tokens underflow; in f16 many tokens are enough, in either "
            "order. |q̂_ic| and |k̂_jc| average 1/N in channels that are not zero, below f16's "
            "smallest normal number for N > 2¹⁴; for N ≥ 2²⁵ equal tokens they are 0, if their "
            "norms are right to rounding (a running sum in f32 gives 2²⁴ for all of them, and 2⁻²⁴ "
            "stays). Tokens first, moreover, entries of Q̂K̂ᵀ average at most D/N² in size (M01), "
            "and those of 2⁻²⁵ or less in size are 0. How many digits are left before depends on "
            "the tokens: more where V follows K, so that K̂ᵀV is of the size of V, fewer where they "
            "are independent.",
        .proof =
            "Multiplication of matrices is associative. If every rounding is a factor 1 + δ, "
            "|δ| ≤ u, a sum of N terms, in any order, is off the exact one by at most Nu/(1 − Nu) "
            "times the sum of their sizes. With Nu ≤ ¼, which N ≤ 2²² is for f32's u = 2⁻²⁴, "
            "the quotients by such norms are right to a factor of 1 ± Nu/(1 − 2Nu), and either "
            "order is within cu|Q̂||K̂|ᵀ|V| of the exact Y, c depending on N and D alone; "
            "underflow and overflow are no such factors. Σ_i |q̂_ic| = 1 over N "
            "tokens; f16's smallest normal number is 2⁻¹⁴, and it rounds 2⁻²⁵ to 0.",
        .evidence = {"half"},
        .judge = sima_judge_m02,
    },
    {
        .id = "M03",
        .source = "SimA § 1, 2.2, 5",
        .statement =
            "Depending on the ordering, the computation can be quadratic on the number of tokens, "
            "N, or that of channels, D. Hence, we can reduce the computation further by "
            "dynamically deciding on the ordering at the test time by comparing N and D … "
            "enabling dynamically switching between O(DN²) or O(D²N) depending on the number of "
            "tokens (e.g., image resolution).",
        .method = "Exact counts of both orders: crossing sought for every N up to 2D, for six "
                  "shapes of 1 to 12 heads; second differences over N and over D; the smallest "
                  "shape of two heads in which comparing N and D goes wrong. Measured times beside "
                  "them.",
        .corrected =
            "One head is printed: Alg. 1 is \"Single Head\", and § 2.2 uses the block \"for each "
            "head separately\". With H heads of d_h = D/H channels the orders cost 4HN²d_h and "
            "4HNd_h² flops: they cross at N = d_h, which is N = D only for one head.",
        .proof = "Tokens first, a head takes 2N²d_h for Q̂K̂ᵀ and as many for the product with V; "
                 "channels first, 2Nd_h² twice. The quotient is N/d_h, whatever H.",
        .evidence = {"time"},
        .judge = judge_m03,
    },
    {
        .id = "M04",
        .source = "SimA § 1",
        .statement = "[S]ince we normalize the vectors before multiplying, our method is "
                     "numerically more stable so we use half-precision floating point without "
                     "overflowing.",
        .method = "f16 emulated, norms wide or stored in f16: random tokens, 8 and 64 times as "
                  "large, with a dead channel, and photographs. The smallest examples by the "
                  "library.",
        .corrected =
            "Nothing overflows if norms and ε are kept and all sums taken in f32 or wider and D "
            "max|V| is at most 60000, for N ≤ 2¹⁹ tokens and D ≤ 2¹³ channels of one head (D/H of "
            "§ 2.1's D), in whatever order sums are taken: |Y| ≤ D max|V| becomes |Y| < 1.09 D "
            "max|V| + ½. For many more tokens that order matters: a running sum in f32 stops at "
            "2²⁴ equal terms, and with such norms Σ_j |k̂_jc| is N/2²⁴. Where D max|V| is larger, "
            "V/D in place of V gives Y/D, which is at most max|V| in size: exactly if D is a "
            "power of two and nothing underflows, else to rounding (M12). A norm stored in f16 is "
            "infinite once Σ|x| ≥ 65520, which takes its channel out of the output without a "
            "warning (all channels: Y = 0), and ε = 10⁻¹² is 0 in f16, which makes it NaN for a "
            "dead channel. The price is underflow: tokens first from N ≈ 2⁷√D on, in both orders "
            "from N ≈ 2¹⁴ on (M02).",
        .proof =
            "Σ_i |q̂_ic| ≤ 1 and Σ_j |k̂_jc| ≤ 1 in every channel. So |q̂_ic| ≤ 1, |(Q̂K̂ᵀ)_ij| ≤ "
            "D, |(K̂ᵀV)_ce| ≤ max|V| and |Y_ie| ≤ D max|V|, attained by one token with all "
            "channels 1. Rounded, u = 2⁻²⁴: a sum of N products in f32, in any order, is within "
            "Nu times the sum of their sizes (Jeannerod and Rump 2013), and one of sizes is not "
            "below the largest of them, as rounding is monotone. So |q̂_ic| ≤ 1 still, and Σ_j "
            "|k̂_jc| ≤ S = (1 + 2⁻¹¹)(1 + u)/(1 − Nu) + N·2⁻²⁵, each term being off by a factor "
            "of 1 + 2⁻¹¹ at most in f16 or, if it is subnormal, by 2⁻²⁵. Channels first, "
            "|(K̂ᵀV)_ce| ≤ S(1 + Nu) max|V|; rounded to f16 it is so but for a factor 1 + 2⁻¹¹ "
            "or, if it is subnormal, for 2⁻²⁵ more, which makes less than ½ of |Y_ie|. Tokens "
            "first, an entry of Q̂K̂ᵀ is a sum of products of size |k̂_jc| at most. Where it is "
            "normal, its rounding is a factor 1 + 2⁻¹¹ at most. Where it is subnormal, it is not "
            "above σ = Σ_c |k̂_jc| even when rounded: σ is 2⁻¹⁴ or more, or a multiple of 2⁻²⁴ "
            "below that f32 and f16 hold, as they do its partial sums, and rounding is monotone. "
            "So its rows have Σ_j |entries| ≤ (1 + 2⁻¹¹)(1 + Du)DS. Either way |Y_ie| ≤ (1 + "
            "2⁻¹¹)(1 + Nu)(1 + Du)S·D max|V| + ½, and f16 rounds what is below 65520 to a finite "
            "number.",
        .evidence = {"half"},
        .judge = sima_judge_m04,
    },
    {
        .id = "M05",
        .source = "SimA § 2.2, Fig. 1",
        .statement =
            "Softmax will be bottleneck when increasing the number of tokens (higher image "
            "resolutions) in MSA and number of channels (higher capacity transformers) in XCA. … "
            "At 1536 × 1536 resolution, DeiT is 58% slower than our method due to the overhead of "
            "exp(·) function in Softmax. … With 8192 dimensions, XCiT is 22% slower due to Softmax "
            "overhead.",
        .method =
            "Not measured here: the paper has whole networks on a GPU. A related share: times of "
            "softmax attention and SimA tokens first, of XCA and SimA channels first, taken side "
            "by side, and of the same number of exps alone, by the operators' own loop, on one "
            "thread of a CPU: a head of 64 channels as N grows, 196 tokens as a head's width "
            "grows.",
        .corrected =
            "Let an exp take as long as e flops of products, whatever N and D. Of exps and "
            "products together the exps then take e/(e + 4d_h) in softmax attention, d_h = D/H, "
            "for every N, and e/(e + 4N) in XCA for every d_h: neither share grows with what Fig. 1 "
            "enlarges. Beside the linear layers of their block, too, softmax's exps take e/(e + "
            "4d_h + 24D·d_h/N), which grows with N, but not beyond e/(e + 4d_h); XCA's take e/(e + "
            "4N + 24NH), which for a fixed H does not change with D.",
        .proof =
            "A head of softmax attention has N² exps and 2N²d_h flops in each of its two products, "
            "one of XCA d_h² exps and 2Nd_h² flops in each: one exp to 4d_h flops, and one to 4N. "
            "What else the two do is left aside (2N² + Nd_h flops in softmax attention). The linear "
            "layers of a block (Q, K, V, W_proj and an MLP of 4D) take 24ND² flops: for one of HN² "
            "exps 24D²/(HN) = 24D·d_h/N, for one of H d_h² = D²/H exps 24NH.",
        .evidence = {"time"},
        .judge = judge_m05,
    },
    {
        .id = "M06",
        .source = "SimA § 4.6",
        .statement = "[W]ithout normalization, the range of QKᵀ can be from −∞ to +∞.",
        .method = "Entries of QKᵀ and Q̂K̂ᵀ for one token, and for random tokens 8 and 64 times as "
                  "large; f16 emulated beside f32 and f64. In miniature: a small network of SimA "
                  "without its norms after training.",
        .corrected = "",
        .proof =
            "(sQ)(tK)ᵀ = st QKᵀ for all s, t ≠ 0, of either sign: an entry that is not 0 takes "
            "every value but 0. With LayerNorm before, it is the weights that are unbounded: Q = "
            "X(sW_q). ℓ1 norms make Q̂ and K̂ independent of |s| and |t| and the entries of Q̂K̂ᵀ "
            "at most D in size (M01).",
        .evidence = {"half", MINIATURE},
        .judge = sima_judge_m06,
    },
    {
        .id = "M07",
        .source = "SimA § 4.7, Fig. 3, 4",
        .statement =
            "[W]e believe this magnitude [of Q̂ and K̂ vectors] can highlight the important tokens "
            "or image regions. This can be seen as a form of explanation or saliency map.",
        .method = "Photographs' tokens projected to Q ≠ K by independent random matrices: norms of "
                  "q̂_i and k̂_j, and their correlation with all entries of Q̂K̂ᵀ. One channel and "
                  "two tokens by hand. Not trained features. The sentence before, of the "
                  "correlation itself, is M19.",
        .corrected =
            "|(Q̂K̂ᵀ)_ij| ≤ ‖q̂_i‖‖k̂_j‖: magnitude bounds the size of an entry, and says nothing "
            "of its sign. With one channel, Q > 0 and tokens not all alike, the correlation with "
            "the entries is 1 for K = Q and −1 for K = −Q.",
        .proof = "Cauchy–Schwarz. With one channel of one sign, the entries are ±‖q̂_i‖‖k̂_j‖, one "
                 "sign for all, and the products are not all equal.",
        .evidence = {"maps"},
        .judge = judge_m07,
    },
    {
        .id = "M08",
        .source = "SimA Tab. 1, 2",
        .statement =
            "Softmax column indicates the number of exp(·) operations in the attention block. N is "
            "the number of tokens, D is the token dimension, H is the number of heads, … [That "
            "column has: HN² for softmax attention and SOFT, HD² for XCA, HN for Linformer and "
            "Nyströmformer, ND for Performer and Efficient Attention, 0 for \"CosFormer w/o "
            "re-weighting\" and SimA.]",
        .method = "Exact counts of the operators beside the printed formulas, with N, D and H as "
                  "the caption has them; SOFT's with P formed once, as in its published code. § "
                  "2.2's orders are M26, the entries of Swin, Twins, PVT and CvT M22 to M24.",
        .corrected =
            "XCA evaluates H(D/H)² exponentials, H² times fewer than printed; SOFT H(Nm + m²) with "
            "P formed once, Nm more if it is formed again for the output; Linformer HNr with r "
            "keys, Nyströmformer H(2Nm + m²), Performer 2HNM with M features, Efficient Attention "
            "2ND. HN² for softmax attention and 0 for CosFormer without re-weighting and SimA are "
            "right.",
        .proof = "One exponential for each entry of what is exponentiated: N × N a head; D/H × D/H "
                 "a head; P (m × N) and A (m × m); N × r; N × m, m × m and m × N; the N × M "
                 "features of Q and of K; the N × D/H entries of Q and of K a head.",
        .evidence = {"counts"},
        .judge = judge_m08,
    },
    {0},
};
