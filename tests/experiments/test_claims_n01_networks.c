/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of N01 - N05, N11 and N12. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "ledger.h"

/* Exponents of softmax and of all others. */
static verdict_kind judge_memory(const char *id, const char *stored, const char *streamed,
                                 const char *others, const char *others_streamed)
{
    static const char *const names[] = {"linformer", "performer", "nystromformer", "soft"};
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "memory", 1);
    for (int i = -1; i < 4; i++) {
        const char *name = i < 0 ? "softmax" : names[i];
        const char *exponents[] = {i < 0 ? stored : others, i < 0 ? streamed : others_streamed};
        for (int j = 0; j < 2; j++) {
            char *row = must_format("operator=%s mode=forward heads=12 quantity=%s exponent=%s",
                                    name, j ? "bytes_total" : "bytes_materialised", exponents[j]);
            ledger_row(t, row);
            free(row);
        }
    }
    verdict_kind kind = ledger_judge(&run, id);
    ledger_close(&run);
    return kind;
}

Test(claims_n01_networks, memory_is_quadratic_where_a_matrix_is_stored)
{
    cr_expect(judge_memory("N01", "2", "0.995", "1", "0.99") == VERDICT_HOLDS);
    cr_expect(judge_memory("N01", "2", "2", "1", "0.99") == VERDICT_HOLDS);
    cr_expect(judge_memory("N01", "2", "0.995", "1", "2") == VERDICT_HOLDS_IF);
    cr_expect(judge_memory("N01", "2", "0.995", "1", "0.4") == VERDICT_HOLDS_IF);
    cr_expect(judge_memory("N01", "1", "1", "1", "0.99") == VERDICT_FAILS);
    cr_expect(judge_memory("N01", "2", "0.995", "0", "0.99") == VERDICT_FAILS);
    cr_expect(judge_memory("N01", "2", "0.995", "2", "0.99") == VERDICT_FAILS);
    cr_expect(judge_memory("N01", "nan", "nan", "1", "0.99") == VERDICT_FAILS);
    cr_expect(judge_memory("N01", "2", "nan", "1", "0.99") == VERDICT_NOT_TESTABLE);
}

Test(claims_n01_networks, a_matrix_need_not_be_saved)
{
    cr_expect(judge_memory("N11", "2", "0.995", "1", "0.99") == VERDICT_FAILS);
    cr_expect(judge_memory("N11", "2", "2", "1", "0.99") == VERDICT_OBSERVED);
    cr_expect(judge_memory("N11", "2", "0.2", "1", "0.99") == VERDICT_OBSERVED);
    cr_expect(judge_memory("N11", "2", "nan", "1", "0.99") == VERDICT_NOT_TESTABLE);
}

static verdict_kind judge_bottleneck(const char *with, const char *without)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "counts", 1);
    ledger_row(t, with);
    ledger_row(t, without);
    /* of the other paper's network */
    ledger_row(t, "statement=N04 source=SOFT m=81 printed=2e8 "
                  "quantity=multiply_adds_growth_without_steps counted=4e8");
    verdict_kind kind = ledger_judge(&run, "N04");
    ledger_close(&run);
    return kind;
}

#define N04_ROW(quantity, counted)                                                                 \
    "statement=N04 source=NeurIPS m=81 printed=2e8 quantity=" quantity " counted=" counted

Test(claims_n01_networks, printed_flops_have_no_room_for_the_steps)
{
    const char *with = N04_ROW("multiply_adds_growth", "1.5e9");
    const char *without = N04_ROW("multiply_adds_growth_without_steps", "2.9e8");
    cr_expect(judge_bottleneck(with, without) == VERDICT_HOLDS_IF);
    cr_expect(judge_bottleneck(N04_ROW("multiply_adds_growth", "2.1e8"), without) == VERDICT_HOLDS);
    cr_expect(judge_bottleneck(with, N04_ROW("multiply_adds_growth_without_steps", "nan")) ==
              VERDICT_FAILS);
}

/* PVT-Tiny is no network of SOFT's, and what the 15 M of IJCV's Tiny rest on is counted. */
Test(claims_n01_networks, the_digit_behind_tiny_is_told)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "networks", 0);
    ledger_row(t, "paper=SOFT~(IJCV) table=Tab.~3 network=PVT-Tiny params_verdict=disagrees");
    ledger_row(t, "paper=SOFT~(IJCV) table=Tab.~3 network=SOFT-Tiny params_verdict=agrees");
    ledger_row(t, "paper=SOFT~(IJCV) table=Tab.~9 network=Tiny~with~m params_verdict=agrees");
    cr_expect(ledger_judge(&run, "N02") == VERDICT_HOLDS);
    ledger_expect_measured(&run, "N02", "of 2 rows, parameters agree in 2");
    ledger_expect_noted(&run, "N02", "| 3 | 13.18 | agrees | disagrees |");
    ledger_expect_noted(&run, "N02", "| 5 | 15.45 | disagrees | disagrees |");
    ledger_close(&run);
}

#define HUGE_ROW(paper, network, reading, parameters, counted)                                     \
    "paper=" paper " table=Tab.~3 network=" network " reading=" reading                            \
    " params_verdict=" parameters " gmacs_verdict=disagrees printed_gflops=16.3 "                  \
    "printed_params_m=87 counted_params_m=95 params_ratio=1.09 counted_gmacs_no_inverse=16.2 "     \
    "counted_gmacs=" counted

/* The example is a row whose parameters agree, of the paper whose digits are not in doubt. */
Test(claims_n01_networks, the_steps_are_shown_on_a_row_without_doubt)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "networks", 0);
    ledger_row(t, HUGE_ROW("SOFT~(IJCV)", "SOFT-Tiny", "a", "disagrees", "30"));
    ledger_row(t, HUGE_ROW("SOFT~(NeurIPS)", "SOFT-Small", "a", "agrees", "16.9"));
    ledger_row(t, HUGE_ROW("SOFT~(NeurIPS)", "SOFT-Huge", "a", "agrees", "19"));
    ledger_row(t, HUGE_ROW("SOFT~(NeurIPS)", "SOFT-Huge", "b", "disagrees", "25"));
    ledger_expect_counterexample(&run, "N02",
                                 "SOFT (NeurIPS) Tab. 3, SOFT-Huge: 16.3·10⁹ printed, "
                                 "19.0·10⁹ counted with Algorithm 2's steps, 16.2·10⁹");
    ledger_close(&run);
}

/* Two readings of one network, and one network more. */
static verdict_kind judge_tables(const char *paper, const char *reading, const char *other)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "networks", 0);
    ledger_row(t, "paper=SimA table=1 network=SimA-a params_verdict=disagrees gmacs_verdict=agrees "
                  "printed_params_m=7 counted_params_m=8");
    ledger_row(t, reading);
    ledger_row(t, other);
    verdict_kind kind = ledger_judge(&run, paper);
    ledger_close(&run);
    return kind;
}

#define NETWORK_ROW(network, parameters, flops)                                                    \
    "paper=SimA table=1 network=" network " params_verdict=" parameters " gmacs_verdict=" flops

Test(claims_n01_networks, tables_must_agree_in_some_reading)
{
    const char *agrees = NETWORK_ROW("SimA-a", "agrees", "disagrees");
    const char *disagrees = NETWORK_ROW("SimA-a", "disagrees", "agrees");
    const char *fine = NETWORK_ROW("SimA-b", "agrees", "agrees");
    const char *unprinted = "paper=SimA table=1 network=SimA-b params_verdict=agrees";
    cr_expect(judge_tables("N03", agrees, fine) == VERDICT_HOLDS);
    cr_expect(judge_tables("N03", agrees, unprinted) == VERDICT_HOLDS);
    cr_expect(judge_tables("N03", agrees, NETWORK_ROW("host", "disagrees", "disagrees")) ==
              VERDICT_HOLDS);
    cr_expect(judge_tables("N03", disagrees, fine) == VERDICT_FAILS);
    cr_expect(judge_tables("N03", agrees, NETWORK_ROW("SimA-b", "agrees", "disagrees")) ==
              VERDICT_FAILS);
}

#define N05_ROW(a, work, median, least, most)                                                      \
    "statement=N05 b=softmax n=784 a=" a " a_work=" work " ratio_median=" median                   \
    " ratio_min=" least " ratio_max=" most

/* Forward, Linformer 0.1, Performer as given, Nystromformer 0.3, SOFT 0.4 of softmax. */
static char *measure_ranking(const char *performer)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "time", 0);
    ledger_row(t, N05_ROW("linformer", "forward", "0.1", "0.09", "0.11"));
    ledger_row(t, performer);
    ledger_row(t, N05_ROW("nystromformer", "forward", "0.3", "0.29", "0.31"));
    ledger_row(t, N05_ROW("soft", "forward", "0.4", "0.39", "0.41"));
    cr_expect(ledger_judge(&run, "N05") == VERDICT_NOT_TESTABLE);
    char *measured = ledger_measured(&run, "N05");
    ledger_close(&run);
    return measured;
}

Test(claims_n01_networks, throughput_is_ranked_beyond_its_spread)
{
    static const struct {
        const char *performer, *text;
    } cases[] = {
        {N05_ROW("performer", "forward", "0.2", "0.19", "0.21"),
         "linformer, performer, nystromformer, soft, softmax (10 of 10 pairs as printed, 0 rev"},
        {N05_ROW("performer", "forward", "0.35", "0.28", "0.38"),
         "linformer, nystromformer, performer, soft, softmax (9 of 10 pairs as printed, 0 rev"},
        {N05_ROW("performer", "forward", "0.25", "0.19", "0.3"),
         "linformer, performer, nystromformer, soft, softmax (9 of 10 pairs as printed, 0 rev"},
        {N05_ROW("performer", "forward", "1.2", "1.1", "1.3"),
         "linformer, nystromformer, soft, softmax, performer (7 of 10 pairs as printed, 3 rev"},
        {N05_ROW("performer", "forward", "0.2", "0.19", "nan"), "no finite times"},
        {N05_ROW("performer", "backward-closed", "0.2", "0.19", "0.21"), "no finite times"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *measured = measure_ranking(cases[i].performer);
        cr_expect(strstr(measured, "would need the whole networks") == measured, "%s", measured);
        cr_expect(strstr(measured, cases[i].text) != NULL, "%s", measured);
        free(measured);
    }
}

#define UFO_ROW(network, counted)                                                                  \
    "paper=UFO-ViT table=Tab.~4 network=" network " printed_gflops=7 counted_gmacs=" counted

static verdict_kind judge_resolution(const char *tuned)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "networks", 0);
    ledger_row(t, UFO_ROW("UFO-ViT", "1"));
    ledger_row(t, UFO_ROW("UFO-ViT-M", "10"));
    ledger_row(t, UFO_ROW("Swin-B/384", "99"));
    ledger_row(t, tuned);
    verdict_kind kind = ledger_judge(&run, "N12");
    ledger_close(&run);
    return kind;
}

Test(claims_n01_networks, more_pixels_cost_more)
{
    cr_expect(judge_resolution(UFO_ROW("UFO-ViT-M/384", "29")) == VERDICT_OBSERVED);
    cr_expect(judge_resolution(UFO_ROW("UFO-ViT-M/384", "10")) == VERDICT_HOLDS);
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "networks", 0);
    ledger_row(t, UFO_ROW("UFO-ViT-M", "10"));
    ledger_row(t, UFO_ROW("UFO-ViT-M/384", "29"));
    ledger_expect_measured(&run, "N12",
                           "2.9 times the multiply-adds for 2.939 times the tokens "
                           "(DeiT-S, for comparison: 3.37");
    ledger_close(&run);
}
