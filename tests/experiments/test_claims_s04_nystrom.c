/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of S04 - S07. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "ledger.h"
#include "scratch.h"

TestSuite(claims_s04_nystrom, .init = scratch_begin, .fini = scratch_end);

#define SAMPLING_ROW(sampler, cells)                                                               \
    "input=a n=4 m=2 sample=0 seed=1 draw=0 trace_error=0.25 trace_ratio=2 sampler=" sampler       \
    " " cells

/* One row next to two correct ones. */
static verdict_kind judge_landmarks(claim_run *run, const char *row)
{
    ledger_open(run);
    table *t = ledger_table(run, "sampling", 0);
    ledger_row(t, SAMPLING_ROW("pool", "negative_ratio=0"));
    ledger_row(t, SAMPLING_ROW("first", "negative_ratio=1 exact_error=1e-16 exact_ratio=1"));
    ledger_row(t, row);
    return ledger_judge(run, "S04");
}

static verdict_kind judge_sampled_rows(const char *row)
{
    claim_run run;
    verdict_kind kind = judge_landmarks(&run, row);
    ledger_close(&run);
    return kind;
}

#define RANDOM_ROW(ratio)                                                                          \
    SAMPLING_ROW("random", "negative_ratio=0 exact_error=0.5 exact_ratio=" ratio)

/* The smallest example is computed by the judge: a fault in lib/sampling/cpu.c must turn it. */
Test(claims_s04_nystrom, rows_of_landmarks_that_are_tokens_are_exact)
{
    cr_expect(judge_sampled_rows(RANDOM_ROW("0.9")) == VERDICT_OBSERVED);
    cr_expect(judge_sampled_rows(RANDOM_ROW("1.1")) == VERDICT_FAILS);
    cr_expect(judge_sampled_rows(RANDOM_ROW("nan")) == VERDICT_FAILS);
    claim_run run;
    ledger_open(&run);
    ledger_table(&run, "sampling", 0);
    cr_expect(ledger_judge(&run, "S04") == VERDICT_FAILS, "without a row");
    ledger_close(&run);
}

Test(claims_s04_nystrom, rows_of_landmarks_are_counted)
{
    claim_run run;
    judge_landmarks(&run, RANDOM_ROW("1.1"));
    char *measured = ledger_measured(&run, "S04");
    cr_expect(strstr(measured, "≤ 0.5 on their rows, beyond rounding in 1 of 2"), "%s", measured);
    cr_expect(strstr(measured, "not semi-definite in 0 of 3"), "%s", measured);
    cr_expect(strstr(measured, "0.25 to 0.25 of tr(S), 2 to 2 times"), "%s", measured);
    free(measured);
    ledger_close(&run);
}

/* It is proved: the fault is ours. */
Test(claims_s04_nystrom, an_approximation_above_the_kernel_is_an_error)
{
    static const char *const ratios[] = {"1.1", "nan"};
    for (int i = 0; i < 2; i++) {
        claim_run run;
        ledger_open(&run);
        char *row = must_format(SAMPLING_ROW("pool", "negative_ratio=%s"), ratios[i]);
        ledger_row(ledger_table(&run, "sampling", 0), row);
        free(row);
        capture();
        cr_expect(ledger_code(&run, "S04") == EXIT_CHECK);
        cr_expect(is_one_line_with(captured(), "which is proved"));
        ledger_close(&run);
    }
}

/* conv, pool, random, first. */
static void add_order(table *t, const char *tokens, const double errors[4])
{
    static const char *const names[4] = {"conv", "pool", "random", "first"};
    for (int i = 0; i < 4; i++) {
        char *row = must_format("input=%s n=4 m=2 sampler=%s trace_error_median=%g draw_spread=%g",
                                tokens, names[i], errors[i], i == 2 ? 1.5 : 1);
        ledger_row(t, row);
        free(row);
    }
}

Test(claims_s04_nystrom, samplings_are_compared_on_every_input)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "sampling", 1);
    add_order(t, "a", (const double[4]){0.1, 0.2, 0.3, 0.4});
    add_order(t, "b", (const double[4]){0.4, 0.3, 0.3, 0.2});
    add_order(t, "c", (const double[4]){0.4, 0.3, 0.2, 0.5});
    add_order(t, "d", (const double[4]){0.4, NAN, 0.2, 0.5});
    ledger_table(&run, "accuracy", 1);
    t = ledger_table(&run, "accuracy", 0);
    ledger_row(t, "network=b operator=soft change=pool pictures=8 accuracy=0.5 accuracy_error=0.25 "
                  "difference=0.5 difference_error=0.25 not_finite=3");
    cr_expect(ledger_judge(&run, "S05") == VERDICT_NOT_TESTABLE);
    ledger_expect_measured(&run, "S05",
                           "8 pictures: averages instead 50 ± 25 % after the training "
                           "with the convolution");
    char *measured = ledger_measured(&run, "S05");
    cr_expect(strstr(measured, "would need training on ImageNet-1K"), "%s", measured);
    cr_expect(strstr(measured, "A related number, not accuracy, is what is left of tr(S): pooling "
                               "no worse than random in 2 of 4 cases, random no worse than first "
                               "in 3, an untrained convolution no worse than pooling in 1, all "
                               "three in 1"),
              "%s", measured);
    cr_expect(strstr(measured, "by a factor of 1.5 to 1.5"), "%s", measured);
    char *bound = ledger_bound(&run, "S05");
    cr_expect(strstr(bound, "convolution is above 3 of 3 others in IJCV's Tab. 10, above 1 in "
                            "NeurIPS's Tab. 4b"),
              "%s", bound);
    free(bound);
    char *notes = ledger_notes(&run, "S05");
    cr_expect(strstr(notes, "| a | 2 | 0.1 | 0.2 | 0.3 | 0.4 | yes |"), "%s", notes);
    cr_expect(strstr(notes, "| b | 2 | 0.4 | 0.3 | 0.3 | 0.2 | no: first before random |"));
    cr_expect(strstr(notes, "| c | 2 | 0.4 | 0.3 | 0.2 | 0.5 | no: random before pool |"));
    free(notes);
    /* 1 - e^(-1/4), 1 - e^-1, (1 - e^-1)/2, (1 - e^-4)/2 */
    cr_expect(strstr(measured, "pooling leaves 0.221 at distance 1, 0.632 at 2, where a token "
                               "leaves 0.316, 0.491"),
              "%s", measured);
    free(measured);
    ledger_close(&run);
}

#define S06_ROW(statement, measured, bound)                                                        \
    "input=a n=4 m=2 sample=0 seed=1 allowance=1e-15 statement=" statement " measured=" measured   \
    " bound=" bound

static void fill_bounds(claim_run *run, const char *printed, const char *corrected)
{
    ledger_table(run, "bounds-landmarks", 0);
    table *t = ledger_table(run, "bounds", 0);
    ledger_row(t, S06_ROW("S06-printed", "3", "7"));
    ledger_row(t, S06_ROW("S06-iterate", "2", "4"));
    ledger_row(t, printed);
    ledger_row(t, corrected);
}

static verdict_kind judge_bound(const char *printed)
{
    claim_run run;
    ledger_open(&run);
    fill_bounds(&run, printed, S06_ROW("S06-corrected", "3", "4"));
    verdict_kind kind = ledger_judge(&run, "S06");
    ledger_close(&run);
    return kind;
}

Test(claims_s04_nystrom, a_norm_above_the_product_refutes)
{
    cr_expect(judge_bound(S06_ROW("S06-printed", "5", "5")) == VERDICT_HOLDS);
    cr_expect(judge_bound(S06_ROW("S06-printed", "5", "4.9")) == VERDICT_FAILS);
    cr_expect(judge_bound(S06_ROW("S06-printed", "nan", "5")) == VERDICT_FAILS);
}

/* It is proved: the fault is ours. */
Test(claims_s04_nystrom, a_norm_above_that_of_the_kernel_is_an_error)
{
    claim_run run;
    ledger_open(&run);
    fill_bounds(&run, S06_ROW("S06-printed", "5", "5"), S06_ROW("S06-corrected", "4.1", "4"));
    capture();
    cr_expect(ledger_code(&run, "S06") == EXIT_CHECK);
    cr_expect(is_one_line_with(captured(), "which is proved"));
    ledger_close(&run);
}

static verdict_kind judge_cost(const char *flops, const char *bytes)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "counts", 1);
    ledger_row(t, flops);
    ledger_row(t, bytes);
    verdict_kind kind = ledger_judge(&run, "S07");
    ledger_close(&run);
    return kind;
}

#define S07_ROW(quantity, ratio) "statement=S07 quantity=" quantity " ratio=" ratio

Test(claims_s04_nystrom, costs_are_linear_while_m_is_fixed)
{
    const char *bytes = S07_ROW("state_bytes", "0.1");
    cr_expect(judge_cost(S07_ROW("flops", "2.5"), bytes) == VERDICT_HOLDS);
    cr_expect(judge_cost(S07_ROW("flops", "5.1"), bytes) == VERDICT_FAILS);
    cr_expect(judge_cost(S07_ROW("flops", "nan"), bytes) == VERDICT_FAILS);
    cr_expect(judge_cost(S07_ROW("flops", "2.5"), S07_ROW("state_bytes", "2.1")) == VERDICT_FAILS);
    claim_run run;
    ledger_open(&run);
    ledger_table(&run, "counts", 1);
    ledger_expect_noted(&run, "S07", "| 1 | 2.457 | 2.457 |");
    ledger_expect_noted(&run, "S07", "| 16 | 2.910 | 2.003 |");
    char *measured = ledger_measured(&run, "S07");
    cr_expect(strstr(measured, "0.998 (time), 0.000 (space); stride fixed: 2.999 and 1.999"), "%s",
              measured);
    free(measured);
    ledger_close(&run);
}
