/* SPDX-License-Identifier: BSD-3-Clause */
/* M01 - M08: SimA. The judges of M02, M04 and M06 are in sima_half.c. */
#include <math.h>
#include <stdlib.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "claims/sima.h"
#include "common/report.h"

/* ---- M01 ---- */

int sima_attention_matrix(const claim_run *run, int64_t n, int64_t d, const double *q,
                          const double *k, double *matrix)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SIMA, ATN_F64);
    double *identity = must_allocate((size_t)(n * n), sizeof *identity);
    for (int64_t i = 0; i < n; i++)
        identity[i * n + i] = 1;
    int code = direct_forward(run, &desc, n, d, n, q, k, identity, matrix);
    free(identity);
    return code;
}

static double largest_entry(int64_t count, const double *matrix)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fabs(matrix[i]) <= largest ? largest : fabs(matrix[i]);
    return largest;
}

/* Tokens of d channels of which one is 1 and the others are `rest`, q = k. */
static int one_row(const claim_run *run, int64_t n, int64_t d, double rest, double *largest,
                   double *sum)
{
    double *q = must_allocate((size_t)(n * d), sizeof *q);
    double *matrix = must_allocate((size_t)(n * n), sizeof *matrix);
    for (int64_t i = 0; i < n * d; i++)
        q[i] = i < d ? 1 : rest;
    int code = sima_attention_matrix(run, n, d, q, q, matrix);
    *largest = largest_entry(n * n, matrix);
    *sum = 0;
    for (int64_t i = 0; i < n * n; i++)
        *sum += fabs(matrix[i]);
    free(matrix);
    free(q);
    return code;
}

/* The entry of one token, two channels: the smallest case of a single row each. With an epsilon, as
 * published, a dead channel is 0. */
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
    double most = 0, at_zero = 0, beside = 0, most_sum = 0;
    fprintf(v->notes, "| the other rows of Q and K | largest entry | sum of all absolute values "
                      "|\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        double largest, sum;
        code = one_row(run, TOKENS, WIDTH, rests[i], &largest, &sum);
        if (code != EXIT_PASS)
            return code;
        fprintf(v->notes, "| %g | %.6g | %.6g |\n", rests[i], largest, sum);
        most = largest <= most ? most : largest;
        most_sum = sum <= most_sum ? most_sum : sum;
        if (rests[i] == 0)
            at_zero = largest;
        else
            beside = largest <= beside ? beside : largest;
    }
    fprintf(v->notes, "\nOne row of Q = K is 1 in all %d channels, %d tokens.\n", WIDTH, TOKENS);
    bool bounded = most <= WIDTH + rounding && most_sum <= WIDTH + rounding * TOKENS;
    bool attained = fabs(at_zero - WIDTH) <= rounding && beside < WIDTH - rounding;
    /* what the two rows must be besides the only ones */
    bool enough = fabs(opposed) > 2 - rounding && fabs(dead) > 2 - rounding;
    v->kind = !bounded || !attained ? VERDICT_FAILS : enough ? VERDICT_HOLDS : VERDICT_HOLDS_IF;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "no channel of the two rows is zero, and q_c k_c has the same "
                                   "sign in every channel c");
    verdict_set(&v->measured,
                "largest entry %.10g with a single non-zero row, %.6g otherwise; D = 2, one token: "
                "q = (1, 1) has the entry %g with k = (1, −1) and %g with k = (1, 0)",
                at_zero, beside, opposed, dead);
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
    atn_attention_shape shape = {.batch = 1, .heads = heads, .tokens = n, .dim = d, .value_dim = d};
    atn_cost cost = {0};
    int code = direct_cost(run, &desc, &shape, &cost);
    *flops = cost.flops;
    return code;
}

/* flops[0] tokens first, flops[1] channels first. */
static int both_flops(const claim_run *run, int64_t heads, int64_t n, int64_t d, double flops[2])
{
    int code = order_flops(run, ATN_ORDER_TOKENS, heads, n, d, &flops[0]);
    return exit_worst(code, order_flops(run, ATN_ORDER_CHANNELS, heads, n, d, &flops[1]));
}

/* The n at which both orders take as many flops, tokens first fewer below it; -1 if there is none
 * up to twice the width of all heads. */
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

/* The smallest D and then N < D of two heads for which tokens first, the paper's choice, takes more
 * flops than channels first; n = 0 if there are none up to D = 16. */
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

/* Whether the second difference is positive in the one order and 0 in the other: over the tokens
 * for `in_tokens`, over the channels else. */
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

/* How many of the sweep's crossings are at D with one head, at D with more, at d_h = D/H. */
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

/* Where times cross, beside. */
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
    v->kind = one_head && found.at_width_many == found.many && n == 0 ? VERDICT_HOLDS
              : one_head && per_head && n > 0                         ? VERDICT_HOLDS_IF
                                                                      : VERDICT_FAILS;
    if (v->kind == VERDICT_HOLDS_IF)
        verdict_set(&v->condition, "there is one head, or D is read as the width d_h of a head");
    verdict_set(&v->measured,
                "tokens first is %squadratic in N and linear in D, channels first %sthe reverse; "
                "flops cross at N = D in %d of %d shapes of one head and %d of %d of more, at "
                "N = d_h in %d of %d",
                in_tokens ? "" : "NOT ", in_channels ? "" : "NOT ", found.at_width, found.single,
                found.at_width_many, found.many, found.at_head, found.single + found.many);
    verdict_set(&v->bound, "exact counts");
    if (n > 0)
        verdict_set(&v->counterexample,
                    "H = 2, D = %lld (d_h = %lld), N = %lld: N < D, but tokens first takes %g "
                    "flops and channels first %g, norms included in both",
                    (long long)width, (long long)width / 2, (long long)n, flops[0], flops[1]);
    else if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "a shape in the table");
    return EXIT_PASS;
}

/* ---- M05 ---- */

/* What a pair of cost/time says about a share of A's time, in A's own: 1 - B/A, or B/A for exps. */
typedef struct {
    int points;
    double first, last; /* by the swept size, ascending */
    double least, most;
} time_shares;

static double share_of(double ratio, bool exps)
{
    return exps ? 1 / ratio : 1 - 1 / ratio;
}

/* Rows of one operator A against SimA or its own exps, in the order of the table: n or d rising. */
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
                100 * fmin(ends[0], ends[1]), 100 * fmax(ends[0], ends[1]));
        found.first = found.points++ == 0 ? share : found.first;
        found.last = share;
        found.least = fmin(found.least, fmin(ends[0], ends[1]));
        found.most = fmax(found.most, fmax(ends[0], ends[1]));
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
    v->kind = all ? VERDICT_OBSERVED : VERDICT_NOT_TESTABLE;
    if (!all) {
        verdict_set(&v->measured, "no finite times");
        verdict_set(&v->bound, "it would need a clock");
        return EXIT_PASS;
    }
    verdict_set(&v->measured,
                "what SimA leaves out takes %.0f %% of softmax attention's time at the first "
                "resolution and %.0f %% at the last, the exps by themselves %.0f and %.0f %%; of "
                "XCA's time %.0f %% at the first width and %.0f %% at the last, the exps %.0f and "
                "%.0f %%",
                100 * softmax.first, 100 * softmax.last, 100 * exps.first, 100 * exps.last,
                100 * xca.first, 100 * xca.last, 100 * xca_exps.first, 100 * xca_exps.last);
    verdict_set(
        &v->bound,
        "printed: networks 58 %% and 22 %% slower, which is 37 and 18 %% of their own time, on a "
        "GPU, at 9216 tokens and 8192 dimensions, which are not reached here. Here operators "
        "alone, on one "
        "thread of this CPU. Spread of what SimA leaves out: softmax %.0f to %.0f %%, XCA "
        "%.0f to %.0f %%",
        100 * softmax.least, 100 * softmax.most, 100 * xca.least, 100 * xca.most);
    return EXIT_PASS;
}

/* ---- M07 ---- */

static int judge_m07(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "maps", 2);
    double least = INFINITY, most = 0;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "operator", "sima") || cell_is(t, row, "kind", "row"))
            continue;
        double ratio = cell_real(t, row, "largest") / cell_real(t, row, "least");
        least = fmin(least, ratio);
        most = fmax(most, ratio);
        fprintf(v->notes, "- %s, %s: norms from %.3g to %.3g\n", cell_text(t, row, "photo"),
                cell_text(t, row, "kind"), cell_real(t, row, "least"),
                cell_real(t, row, "largest"));
    }
    fprintf(v->notes, "\nThe maps are in the plot. LayerNorm has given all tokens the same norm "
                      "before; what differs is how unusual a token's channels are.\n");
    v->kind = most > 0 ? VERDICT_OBSERVED : VERDICT_NOT_TESTABLE;
    verdict_set(&v->measured,
                "largest over least token norm: %.2g to %.2g, on tokens that are no "
                "trained features",
                least, most);
    verdict_set(&v->bound, "1 is a flat map. Whether the norms of a trained network mark what "
                           "matters would need that network");
    return EXIT_PASS;
}

/* ---- M08 ---- */

/* Rows of Table 1 that the statement is about, and what the paper charges them with. */
static bool is_counted(const table *t, int64_t row, const char *operator)
{
    return cell_is(t, row, "statement", "M08") && cell_is(t, row, "operator", operator) &&
           cell_is(t, row, "quantity", "exps");
}

/* Whether printed = counted in every row of an operator that reads D as a head's width. */
static bool counts_agree(const table *t, const char *operator)
{
    bool any = false;
    for (int64_t row = 0; row < table_rows(t); row++)
        if (is_counted(t, row, operator) && cell_boolean(t, row, "exact")) {
            any = true;
            if (!(cell_real(t, row, "printed") == cell_real(t, row, "counted")))
                return false;
        }
    return any;
}

static int judge_m08(const claim_run *run, verdict *v)
{
    const table *t = evidence_table(run, "counts", 1);
    double largest = 0;
    int64_t found = -1;
    fprintf(v->notes, "| operator | printed | n | m | D | H | printed exps | counted | ratio |\n"
                      "|---|---|---|---|---|---|---|---|---|\n");
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (!cell_is(t, row, "statement", "M08") || cell_integer(t, row, "n") != 784 ||
            cell_integer(t, row, "heads") != 12 || !cell_is(t, row, "quantity", "exps"))
            continue;
        fprintf(v->notes, "| %s | %s | 784 | %s | %lld | 12 | %.9g | %.9g | %.3g |\n",
                cell_text(t, row, "operator"), cell_text(t, row, "formula"),
                cell_missing(t, row, "m") ? "" : "49", (long long)cell_integer(t, row, "d"),
                cell_real(t, row, "printed"), cell_real(t, row, "counted"),
                cell_real(t, row, "ratio"));
        if (is_counted(t, row, "soft") && cell_real(t, row, "ratio") > largest) {
            largest = cell_real(t, row, "ratio");
            found = row;
        }
    }
    bool others = counts_agree(t, "softmax") && counts_agree(t, "xca") && counts_agree(t, "sima");
    bool charged = found >= 0 && largest >= 1;
    v->kind = others && charged ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured,
                "softmax HN², XCA HD² (D of a head) and SimA 0 %s; SOFT evaluates %.3g of the HN² "
                "it is charged with",
                others ? "agree to the unit" : "DISAGREE", largest);
    verdict_set(&v->bound, "1");
    if (v->kind == VERDICT_FAILS && found >= 0)
        verdict_set(&v->counterexample, "SOFT, n = 784, m = 49, 12 heads: %.9g exps, printed %.9g",
                    cell_real(t, found, "counted"), cell_real(t, found, "printed"));
    else if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "the table");
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
                     "their mean is at most D/N².",
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
        .statement = "Due to the associative property of multiplication, there are two possible "
                     "orderings at the test time, (Q̂K̂ᵀ)V and Q̂(K̂ᵀV). One is chosen "
                     "dynamically, "
                     "without affecting the training process.",
        .method =
            "Exactly: 8 tokens of whole numbers whose columns have ℓ1 norms 32 and 64, both orders "
            "in f64 against whole-number arithmetic. Rounded: random tokens and photographs, "
            "both orders in f64, f32, bf16, f16, with wide norms. The smallest example in "
            "f16 by the library.",
        .corrected =
            "As long as nothing underflows or overflows the orders agree to the accuracy of the "
            "arithmetic, relative to |Q̂||K̂|ᵀ|V|. In f64, f32 and bf16 only extreme tokens "
            "underflow; in f16 many tokens are enough, in either order. |q̂_ic| and |k̂_jc| "
            "average 1/N in channels that are not zero, below f16's smallest normal number for N "
            "> 2¹⁴; for N ≥ 2²⁵ equal tokens they are 0. Tokens first, moreover, entries of "
            "Q̂K̂ᵀ average at most D/N² in size (M01), and those of 2⁻²⁵ or less in size are 0. "
            "How many digits are left before depends on the tokens: more where V follows K, so "
            "that K̂ᵀV is of the size of V, fewer where they are independent.",
        .proof = "Multiplication of matrices is associative. If every rounding is a factor 1 + δ, "
                 "|δ| ≤ u, either order is within c u |Q̂||K̂|ᵀ|V| of the exact Y, c depending "
                 "on N "
                 "and D alone; underflow is no such factor. Σ_i |q̂_ic| = 1 over N tokens; f16's "
                 "smallest normal number is 2⁻¹⁴, and it rounds 2⁻²⁵ to 0.",
        .evidence = {"half"},
        .judge = sima_judge_m02,
    },
    {
        .id = "M03",
        .source = "SimA § 1, 2.2, 5",
        .statement = "Depending on the ordering, the computation is quadratic in the number of "
                     "tokens, N, or that of channels, D: O(DN²) or O(D²N). The ordering is decided "
                     "by comparing N and D.",
        .method = "Exact counts of both orders: crossing sought for every N up to 2D, for six "
                  "shapes of 1 to 12 heads; second differences over N and over D; the smallest "
                  "shape of two heads in which comparing N and D goes wrong. Measured times beside "
                  "them.",
        .corrected =
            "With H heads of d_h = D/H channels the orders cost 4HN²d_h and 4HNd_h² flops: "
            "they cross at N = d_h, not at N = D.",
        .proof = "Tokens first, a head takes 2N²d_h for Q̂K̂ᵀ and as many for the product with V; "
                 "channels first, 2Nd_h² twice. The quotient is N/d_h, whatever H.",
        .evidence = {"time"},
        .judge = judge_m03,
    },
    {
        .id = "M04",
        .source = "SimA § 1",
        .statement = "Since we normalize the vectors before multiplying, our method is numerically "
                     "more stable, so we use half-precision floating point without overflowing.",
        .method = "f16 emulated, norms wide or stored in f16: random tokens, 8 and 64 times as "
                  "large, with a dead channel, and photographs. The smallest examples by the "
                  "library.",
        .corrected =
            "Nothing overflows if norms and ε are kept in f32 or wider and D max|V| < 65504 "
            "with room for rounding (divide V by D if not). A norm stored in f16 is infinite "
            "once Σ|x| ≥ 65520, which takes its channel out of the output without a warning "
            "(all channels: Y = 0), and ε = 10⁻¹² is 0 in f16, which makes "
            "it NaN for a dead channel. The price is underflow: tokens first from N ≈ 2⁷√D on, "
            "in both orders from N ≈ 2¹⁴ on (M02).",
        .proof = "Σ_i |q̂_ic| ≤ 1 and Σ_j |k̂_jc| ≤ 1 in every channel. So |q̂_ic| ≤ 1, "
                 "|(Q̂K̂ᵀ)_ij| ≤ D, |(K̂ᵀV)_ce| ≤ max|V| and |Y_ie| ≤ D max|V|, attained by one "
                 "token "
                 "with all channels 1.",
        .evidence = {"half"},
        .judge = sima_judge_m04,
    },
    {
        .id = "M05",
        .source = "SimA § 2.2, Fig. 1",
        .statement = "Softmax will be bottleneck when increasing the number of tokens in softmax "
                     "attention and the number of channels in XCA: at 1536 × 1536 pixels DeiT is "
                     "58 % slower than SimA, with 8192 dimensions XCiT 22 %, due to the overhead "
                     "of exp.",
        .method =
            "Times of softmax attention and SimA tokens first, of XCA and SimA channels "
            "first, taken side by side, and of nothing but as many exps by the operators' own "
            "loop: a head of 64 channels as N grows, 196 tokens as a head's width grows.",
        .corrected = "",
        .proof = "",
        .evidence = {"time"},
        .judge = judge_m05,
    },
    {
        .id = "M06",
        .source = "SimA § 4.6",
        .statement = "Without normalization, the range of QKᵀ can be from −∞ to +∞. (None of "
                     "several trials converged, as the training becomes unstable and results in a "
                     "frequent NaN loss.)",
        .method = "Entries of QKᵀ and Q̂K̂ᵀ for one token, and for random tokens 8 and 64 times as "
                  "large; f16 emulated beside f32 and f64.",
        .corrected = "",
        .proof = "(sQ)(tK)ᵀ = st QKᵀ for all s, t, of either sign: an entry that is not 0 takes "
                 "every value. ℓ1 norms make Q̂ and K̂ independent of |s| and |t|, and their "
                 "entries "
                 "at most D (M01).",
        .evidence = {"half"},
        .judge = sima_judge_m06,
    },
    {
        .id = "M07",
        .source = "SimA § 4.7, Fig. 3",
        .statement =
            "We believe the magnitude of the tokens of Q̂ and K̂ can highlight the important "
            "regions of an image.",
        .method = "Token norms of a photograph's patches, as maps.",
        .corrected = "",
        .proof = "",
        .evidence = {"maps"},
        .judge = judge_m07,
    },
    {
        .id = "M08",
        .source = "SimA Tab. 1, 2",
        .statement = "exp operations of an attention block: HN² for softmax attention, HD² for "
                     "XCA, 0 for SimA, and HN² for SOFT.",
        .method = "Exact counts of the operators beside the printed formulas.",
        .corrected = "SOFT evaluates H(Nm + m²) exponentials with P kept, H(2Nm + m²) with P made "
                     "twice; with m fixed that is linear in N. The other three are right, with D "
                     "the width of a head.",
        .proof = "SOFT's exponentials are the entries of P (m × N) and A (m × m) of each head; no "
                 "N × N matrix is formed.",
        .evidence = {"counts"},
        .judge = judge_m08,
    },
    {0},
};
