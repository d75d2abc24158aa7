/* SPDX-License-Identifier: BSD-3-Clause */
/* M01 - M08: SimA. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/claims.h"
#include "claims/direct.h"
#include "common/report.h"

/* ---- M01 ---- */

/* The attention matrix Q^ K^^T (n x n), as the operator's output for V = I. */
static int attention_matrix(const claim_run *run, int64_t n, int64_t d, const double *q,
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
    int code = attention_matrix(run, n, d, q, q, matrix);
    *largest = largest_entry(n * n, matrix);
    *sum = 0;
    for (int64_t i = 0; i < n * n; i++)
        *sum += fabs(matrix[i]);
    free(matrix);
    free(q);
    return code;
}

static int judge_m01(const claim_run *run, verdict *v)
{
    enum { TOKENS = 49, WIDTH = 32 };
    static const double rests[] = {0, 1e-3, 1e-2, 0.1, 1};
    const double rounding = 4 * (TOKENS + WIDTH) * 0x1p-53 * WIDTH;
    double most = 0, at_zero = 0, beside = 0, most_sum = 0;
    fprintf(
        v->notes,
        "| the other rows of Q and K | largest entry | sum of all absolute values |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        double largest, sum;
        int code = one_row(run, TOKENS, WIDTH, rests[i], &largest, &sum);
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
    v->kind = bounded && attained ? VERDICT_HOLDS : VERDICT_FAILS;
    verdict_set(&v->measured, "largest entry %.10g with a single non-zero row, %.6g otherwise",
                at_zero, beside);
    verdict_set(&v->bound, "D = %d", WIDTH);
    if (v->kind == VERDICT_FAILS)
        verdict_set(&v->counterexample, "an entry of %.17g with D = %d (table)", most, WIDTH);
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
        .statement = "The attention values are bounded between −D and D. The extremes happen only "
                     "when a single row of Q and a single row of K are nonzero.",
        .method = "The attention matrix of 49 tokens in 32 channels, one of them 1 everywhere, the "
                  "others 0, 0.001, ... 1.",
        .corrected = "Sharper: the absolute values of all N² entries sum to at most D, so their "
                     "mean is at most D/N².",
        .proof = "Σ_i |q̂_ic| = 1 in every channel c, and the same for k̂. So "
                 "Σ_ij |Σ_c q̂_ic k̂_jc| ≤ Σ_c Σ_i |q̂_ic| Σ_j |k̂_jc| = D. An entry is ±D only if "
                 "|q̂_ic| = |k̂_jc| = 1 for all c, which leaves 0 for all other rows.",
        .judge = judge_m01,
    },
    {
        .id = "M07",
        .source = "SimA § 4.7, Fig. 3",
        .statement = "The norms of the tokens of Q̂ and K̂ highlight the important regions of an "
                     "image.",
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
