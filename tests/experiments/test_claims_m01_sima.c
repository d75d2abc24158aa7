/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of M01, M03, M05, M07 and M08. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "ledger.h"

Test(claims_m01_sima, entries_are_bounded_by_the_width)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M01") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "M01", "q = (1, 1) has the entry 0 with k = (1, −1) and 1 with k");
    ledger_close(&run);
}

Test(claims_m01_sima, flops_cross_at_the_width_of_a_head)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "time", 1);
    cr_expect(ledger_judge(&run, "M03") == VERDICT_HOLDS);
    ledger_row(t, "statement=M03 d=32 from=8 to=128");
    ledger_row(t, "statement=M03 d=64 from=16 to=256 crossover_n=62");
    cr_expect(ledger_judge(&run, "M03") == VERDICT_HOLDS);
    char *measured = ledger_measured(&run, "M03");
    cr_expect(strstr(measured, "2 of 2 shapes of one head and 0 of 4 of more, at N = d_h in 6 of"));
    ledger_expect_noted(&run, "M03",
                        "H = 2, D = 4 (d_h = 2), N = 3: N < D, but tokens first takes");
    ledger_expect_noted(&run, "M03", " 192 flops and channels first 144");
    free(measured);
    ledger_close(&run);
}

/* Times of softmax attention and XCA over those of their exps: one ratio for all. */
#define M05_ROW(a, n, b, ratio)                                                                    \
    "statement=M05 a=" a " n=" n " d=64 b_work=" b " ratio_median=" ratio " ratio_min=" ratio      \
    " ratio_max=" ratio

/* What SimA leaves out is 1 - 1/ratio, the exps are 1/ratio. */
static void fill_shares(claim_run *run, const char *last)
{
    ledger_open(run);
    table *t = ledger_table(run, "time", 0);
    ledger_row(t, M05_ROW("softmax", "196", "forward", "2"));
    ledger_row(t, M05_ROW("softmax", "196", "exps", "4"));
    ledger_row(t, M05_ROW("softmax", "576", "forward", "2.5"));
    ledger_row(t, M05_ROW("softmax", "576", "exps", "5"));
    ledger_row(t, M05_ROW("xca", "32", "forward", "1.25"));
    ledger_row(t, M05_ROW("xca", "32", "exps", "8"));
    ledger_row(t, M05_ROW("xca", "512", "forward", "1.6"));
    ledger_row(t, last);
}

Test(claims_m01_sima, shares_of_exp_stand_beside_what_is_printed)
{
    claim_run run;
    fill_shares(&run, M05_ROW("xca", "512", "exps", "10"));
    cr_expect(ledger_judge(&run, "M05") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "M05", "would need the networks on the GPU");
    ledger_expect_measured(&run, "M05", "takes 50 % of softmax attention's time at the first");
    ledger_expect_measured(&run, "M05", "60 % at the last, the exps by themselves 25 and 20 %");
    ledger_expect_measured(&run, "M05",
                           "20 % at the first width and 38 % at the last, the exps 12 "
                           "and 10 %");
    ledger_close(&run);
    fill_shares(&run, M05_ROW("xca", "512", "exps", "inf"));
    ledger_expect_measured(&run, "M05", "the exps 12 and 12 %");
    ledger_close(&run);
    ledger_open(&run);
    ledger_row(ledger_table(&run, "time", 0), M05_ROW("softmax", "196", "forward", "nan"));
    ledger_expect_measured(&run, "M05", "no finite times");
    ledger_close(&run);
    ledger_open(&run); /* 67 % in exps, of another loop, where SimA leaves out 20 % */
    table *t = ledger_table(&run, "time", 0);
    ledger_row(t, M05_ROW("softmax", "196", "forward", "1.25"));
    ledger_row(t, M05_ROW("softmax", "196", "exps", "1.5"));
    ledger_row(t, M05_ROW("xca", "32", "forward", "1.25"));
    ledger_row(t, M05_ROW("xca", "32", "exps", "8"));
    ledger_expect_measured(&run, "M05", "times of no use, as the exps by themselves take longer");
    ledger_close(&run);
}

/* Q and K are the judge's own, and not alike. */
Test(claims_m01_sima, magnitudes_are_held_against_the_dot_product)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "maps", 2);
    ledger_row(t, "operator=sima kind=query-norm least=1 largest=3 photo=a.png");
    cr_expect(ledger_judge(&run, "M07") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "M07", "random projections Q ≠ K of photographs, 6 samples");
    ledger_expect_noted(&run, "M07", "- a.png, query-norm: norms from 1 to 3");
    char *measured = ledger_measured(&run, "M07"), *maps = strstr(measured, "two maps ");
    maps = maps ? strstr(maps, " to ") : NULL; /* 1 for K = Q */
    cr_expect(maps && strtod(maps + strlen(" to "), NULL) < 0.99, "%s", measured);
    free(measured);
    char *counterexample = ledger_counterexample(&run, "M07");
    cr_expect(strstr(counterexample, "correlation -1 with the products of magnitudes; with k = "
                                     "(1, 2) it is 1"),
              "%s", counterexample);
    free(counterexample);
    ledger_close(&run);
}

#define M08_ROW(operator, quantity, exact, printed, counted)                                       \
    "statement=M08 n=784 d=384 heads=12 formula=f operator=" operator" quantity=" quantity         \
                                                                     " exact=" exact               \
                                                                     " printed=" printed           \
                                                                     " counted=" counted

/* SOFT's P made twice, and XCA with D of a head, are not what the table's words say. */
static void fill_charges(claim_run *run, const char *soft, const char *xca)
{
    static const char *const others[] = {"linformer", "nystromformer", "performer", "efficient",
                                         "softmax"};
    ledger_open(run);
    table *t = ledger_table(run, "counts", 1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char *row = must_format(M08_ROW("%s", "exps", "false", "100", "100"), others[i]);
        ledger_row(t, row);
        free(row);
    }
    ledger_row(t, M08_ROW("sima", "exps", "true", "0", "0"));
    ledger_row(t, M08_ROW("cosformer", "exps", "true", "0", "0"));
    ledger_row(t, M08_ROW("soft", "exps", "false", "100", "26"));
    ledger_row(t, M08_ROW("xca", "exps", "true", "7", "7"));
    ledger_row(t, soft);
    if (xca)
        ledger_row(t, xca);
}

static verdict_kind judge_charges(const char *soft, const char *xca)
{
    claim_run run;
    fill_charges(&run, soft, xca);
    verdict_kind kind = ledger_judge(&run, "M08");
    ledger_close(&run);
    return kind;
}

Test(claims_m01_sima, exps_are_judged_by_the_captions_words)
{
    const char *once = M08_ROW("soft", "exps_if_p_is_kept", "false", "100", "13");
    const char *full = M08_ROW("soft", "exps_if_p_is_kept", "false", "100", "100");
    const char *token = M08_ROW("xca", "exps", "false", "144", "1");
    const char *right = M08_ROW("xca", "exps", "false", "144", "144");
    cr_expect(judge_charges(once, token) == VERDICT_FAILS);
    cr_expect(judge_charges(full, right) == VERDICT_HOLDS);
    cr_expect(judge_charges(full, token) == VERDICT_FAILS);
    cr_expect(judge_charges(once, right) == VERDICT_FAILS);
    cr_expect(judge_charges(full, M08_ROW("xca", "exps", "false", "144", "nan")) == VERDICT_FAILS);
    claim_run run;
    fill_charges(&run, once, token);
    ledger_expect_measured(&run, "M08", "7 of 9 formulas give the number of exps");
    ledger_expect_measured(&run, "M08", "otherwise: XCA 0.006944, SOFT 0.13");
    char *counterexample = ledger_counterexample(&run, "M08");
    cr_expect(strstr(counterexample, "evaluates 1 exps, printed HD² = 144; SOFT, m = 49, 13, "),
              "%s", counterexample);
    free(counterexample);
    ledger_close(&run);
}
