/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of N06 - N10 and N13 - N15. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "ledger.h"

Test(claims_n06_tables, what_is_computed_by_the_judges_themselves)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "N06") == VERDICT_FAILS);
    ledger_expect_measured(&run, "N06", "0 of 2 in NeurIPS's, 1 of 2 in IJCV's");
    char *counterexample = ledger_counterexample(&run, "N06");
    cr_expect(strstr(counterexample, "NeurIPS Tab. 3: Twins-SVT-S has 24 M, 3.7 GFLOPs and 81.7 %; "
                                     "the smallest row of the paper's own above it is SOFT-Small, "
                                     "24 M, 3.3 GFLOPs, 82.2 %"),
              "%s", counterexample);
    free(counterexample);
    cr_expect(ledger_judge(&run, "N13") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "N13", "5 of 5 rows of others that both tables have repeat");
    ledger_expect_noted(&run, "N13", "| SOFT | 13 M, 1.9, 79.3 | 13 M, 1.9, 79.3 |");
    cr_expect(ledger_judge(&run, "N09") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "N09", "5 of 5 operators");
    ledger_expect_measured(&run, "N09", "with a fixed stride SOFT's flops have degree 3");
    ledger_expect_noted(&run, "N09", "| softmax | O(n²) | 2 | 2 |");
    ledger_close(&run);
}

#define PVT_ROW(network, parameters, verdict, printed, counted, ratio)                             \
    "paper=SOFT~(IJCV) table=Tab.~3 network=" network " params_verdict=" parameters                \
    " gmacs_verdict=" verdict " printed_gflops=" printed " counted_gmacs=" counted                 \
    " gmacs_ratio=" ratio
#define PVT_PART(network, part, macs)                                                              \
    "paper=SOFT~(IJCV) table=Tab.~3 network=" network " part=" part " macs=" macs

/* A network that agrees, and another. The products are counted: 76.4 and 142.9 million. */
static void fill_daggers(claim_run *run, const char *other)
{
    ledger_open(run);
    table *t = ledger_table(run, "networks", 0), *parts = ledger_table(run, "networks", 1);
    ledger_row(t, PVT_ROW("PVT-Tiny", "within~2~%", "agrees", "1.9", "1.93", "1.016"));
    ledger_row(t, other);
    ledger_row(t, "paper=SOFT~(IJCV) table=Tab.~3 network=SOFT-a gmacs_verdict=disagrees "
                  "counted_gmacs=4 counted_gmacs_no_inverse=3");
    ledger_row(parts, PVT_PART("PVT-Tiny", "attention", "0.0774e9"));
    ledger_row(parts, PVT_PART("PVT-Small", "attention", "0.0829e9"));
    ledger_row(parts, PVT_PART("PVT-Small", "attention", "0.0625e9"));
    ledger_row(parts, PVT_PART("PVT-Small", "mlp", "9e9"));
}

static verdict_kind judge_daggers(const char *other)
{
    claim_run run;
    fill_daggers(&run, other);
    verdict_kind kind = ledger_judge(&run, "N07");
    ledger_close(&run);
    return kind;
}

Test(claims_n06_tables, daggers_are_held_against_the_products)
{
    claim_run run;
    const char *off = PVT_ROW("PVT-Small", "agrees", "disagrees", "3.2", "3.0", "0.9375");
    fill_daggers(&run, off);
    cr_expect(ledger_judge(&run, "N07") == VERDICT_FAILS);
    ledger_expect_measured(&run, "N07", "agree in 1 with the printed ones (1 more within 2 %)");
    ledger_expect_measured(&run, "N07", "FLOPs: 1 agree with the count that has the two products");
    ledger_expect_measured(&run, "N07", "exceed the latter by 2.4 to 2.4 times the products");
    ledger_expect_measured(&run, "N07", "0 of 1 readings");
    ledger_expect_measured(&run, "N07", "which are 25 to 25 % of it");
    /* 3 - 0.1454 without attention; of that 0.1429 are products */
    ledger_expect_noted(&run, "N07", "| PVT-Small | 3.2† | 2.855 | 0.1429 | 0.0025 | 3.000 |");
    ledger_expect_noted(&run, "N07", "| PVT-Tiny | 1.9† | 1.853 | 0.0764 | 0.0010 | 1.930 |");
    ledger_expect_counterexample(&run, "N07",
                                 "PVT-Small: 3.2·10⁹ printed, 3·10⁹ counted with the products, "
                                 "2.857·10⁹ without");
    ledger_close(&run);
    cr_expect(judge_daggers(PVT_ROW("PVT-Small", "agrees", "agrees", "3.0", "3.0", "1")) ==
              VERDICT_HOLDS);
    cr_expect(judge_daggers(PVT_ROW("PVT-Small", "disagrees", "disagrees", "3.2", "3.0", "0.94")) ==
              VERDICT_NOT_TESTABLE);
}

/* 15.45 - 2 (3 320^2 + 8 320^2 + 64 ...) is 13.18, with FLOPs that are not printed. */
Test(claims_n06_tables, costs_are_those_of_the_other_papers_network)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "N08") == VERDICT_FAILS);
    ledger_expect_measured(&run, "N08", "5 of 5 rows repeat the memory, parameters, FLOPs and");
    ledger_expect_measured(&run, "N08", "3 have another accuracy");
    ledger_expect_measured(&run, "N08", "of 1 to 9 blocks in stage 3, 0 have both");
    ledger_expect_counterexample(&run, "N08", "15.45 M and 2.65·10⁹; 13.18 M and 2.18·10⁹ with 3");
    ledger_close(&run);
}

#define HOST_ROW(network, counted, ratio, parameters, flops)                                       \
    "paper=UFO-ViT table=Tab.~4 network=" network " printed_params_m=26 counted_params_m=" counted \
    " params_ratio=" ratio " params_verdict=" parameters " gmacs_verdict=" flops

/* Next to a row that is within 2 %. */
static verdict_kind judge_host(const char *row, const char *measured)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "networks", 0);
    ledger_row(t, HOST_ROW("DeiT-Ti", "26.4", "1.015", "within~2~%", "agrees"));
    ledger_row(t, HOST_ROW("UFO-ViT-T", "9", "1.8", "disagrees", "disagrees"));
    ledger_row(t, row);
    verdict_kind kind = ledger_judge(&run, "N10");
    ledger_expect_measured(&run, "N10", measured);
    ledger_close(&run);
    return kind;
}

/* The rule is that of counts.csv: what would have to be cut is off. */
Test(claims_n06_tables, other_networks_are_counted)
{
    cr_expect(judge_host(HOST_ROW("XCiT-a", "6.7", "0.2577", "disagrees", "agrees"),
                         "of 2 rows, parameters are off in 1, FLOPs in 0") == VERDICT_FAILS);
    cr_expect(judge_host(HOST_ROW("DeiT-b", "26.9", "1.0346", "disagrees", "agrees"),
                         "parameters are off in 1, FLOPs in 0") == VERDICT_FAILS);
    cr_expect(judge_host(HOST_ROW("XCiT-a", "26.4", "1.015", "agrees", "disagrees"),
                         "parameters are off in 0, FLOPs in 1") == VERDICT_FAILS);
    cr_expect(judge_host(HOST_ROW("XCiT-a", "26.4", "1.015", "agrees", "within~2~%"),
                         "parameters are off in 0, FLOPs in 0") == VERDICT_OBSERVED);
    cr_expect(judge_host(HOST_ROW("XCiT-a", "nan", "nan", "disagrees", "agrees"),
                         "parameters are off in 1") == VERDICT_FAILS);
}

/* 1730/1891; 3436/3779 and 3436/3518. */
Test(claims_n06_tables, printed_throughputs_are_compared)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "N14") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "N14", "10 of 10 comparisons of training");
    ledger_expect_measured(&run, "N14", "trains at 0.915 of Nyströmformer's");
    ledger_expect_measured(&run, "N14", "infers at 0.909 to 0.977 of the others'");
    ledger_close(&run);
}

static void fill_linear(claim_run *run, const char *soft)
{
    static const char *const names[] = {"Transformer", "Linformer", "Performer", "Nyströmformer"};
    static const char *const tables[][2] = {{"NeurIPS", "1"}, {"IJCV", "2"}};
    ledger_open(run);
    table *t = ledger_table(run, "networks", 0);
    ledger_row(t, "paper=SOFT~(NeurIPS) table=Tab.~3 network=SOFT counted_gmacs=99 "
                  "counted_params_m=99");
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < 5; i++) {
            char *row = must_format("paper=SOFT~(%s) table=Tab.~%s network=%s counted_gmacs=%s "
                                    "counted_params_m=%d",
                                    tables[p][0], tables[p][1], i < 4 ? names[i] : "SOFT",
                                    i == 0  ? "4"
                                    : i < 4 ? "2"
                                            : soft,
                                    i == 1 ? 11 : 10);
            ledger_row(t, row);
            free(row);
        }
}

/* 11.7/19.0 and 17.2/19.0, a quarter of it for an image. */
Test(claims_n06_tables, linear_attentions_are_held_against_the_transformer)
{
    claim_run run;
    fill_linear(&run, "3");
    cr_expect(ledger_judge(&run, "N15") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "N15",
                           "multiply-adds 0.5 to 0.75, parameters 1 to 1.1, counted; "
                           "memory as printed 0.616 to 0.905, for one image 0.154 to "
                           "0.226.");
    ledger_close(&run);
    fill_linear(&run, "4");
    cr_expect(ledger_judge(&run, "N15") == VERDICT_FAILS);
    ledger_close(&run);
}
