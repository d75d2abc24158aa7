/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of U01 - U07. */
#include <criterion/criterion.h>

#include "common/report.h"
#include "ledger.h"
#include "scratch.h"

TestSuite(claims_ufo_vit, .init = scratch_begin, .fini = scratch_end);

Test(claims_ufo_vit, what_is_computed_by_the_judges_themselves)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U01") == VERDICT_HOLDS);
    cr_expect(ledger_judge(&run, "U02") == VERDICT_HOLDS);
    cr_expect(ledger_judge(&run, "U05") == VERDICT_OBSERVED);
    cr_expect(ledger_judge(&run, "U06") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U06", "Y = (0.6, 0.8)");
    cr_expect(ledger_judge(&run, "U07") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U07", "h = 1 to 64: 0.124035 to 0.707107");
    ledger_close(&run);
}

static verdict_kind judge_memory(const char *row)
{
    claim_run run;
    ledger_open(&run);
    ledger_row(ledger_table(&run, "memory", 1), row);
    verdict_kind kind = ledger_judge(&run, "U03");
    ledger_close(&run);
    return kind;
}

#define U03_ROW "operator=xnorm mode=forward n_min=784 n_max=2352 std_error=0.001 "

Test(claims_ufo_vit, memory_is_linear_up_to_the_error_of_the_fit)
{
    cr_expect(judge_memory(U03_ROW "quantity=bytes_total exponent=0.997") == VERDICT_HOLDS);
    cr_expect(judge_memory(U03_ROW "quantity=bytes_total exponent=1.01") == VERDICT_FAILS);
    cr_expect(judge_memory(U03_ROW "quantity=bytes_total exponent=nan") == VERDICT_FAILS);
    cr_expect(judge_memory(U03_ROW "quantity=bytes_measured exponent=2") == VERDICT_NOT_TESTABLE);
}

#define U04_ROW(variant, rank, residual)                                                           \
    "operator=xnorm value_dim=32 variant=" variant " rank=" rank " residual=" residual
#define U04_MAP(operator, rank, difference)                                                        \
    "operator=" operator" value_dim=32 rank=" rank " row_difference=" difference

/* An operator's map is 0.25 away, another's 0.5, and 0.75 where the values have lost a rank. */
static void fill_maps(claim_run *run, const char *residual)
{
    ledger_open(run);
    table *t = ledger_table(run, "maps", 3);
    ledger_row(t, U04_ROW("port", "32", "2e-15"));
    ledger_row(t, U04_ROW("port", "31", "1e-15"));
    ledger_row(t, U04_MAP("softmax", "32", "0.25"));
    ledger_row(t, U04_MAP("elu", "32", "0.5"));
    ledger_row(t, U04_MAP("xca", "31", "0.75"));
    ledger_row(t, residual);
    ledger_row(t, U04_ROW("paper", "31", "0.1"));
}

Test(claims_ufo_vit, maps_are_away_from_the_attention_matrix)
{
    claim_run run;
    fill_maps(&run, U04_ROW("paper", "32", "3e-15"));
    cr_expect(ledger_judge(&run, "U04") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "U04", "0.25 (softmax) to 0.5 (elu) away");
    ledger_expect_measured(&run, "U04",
                           "3e-15 where V has full column rank, else 0.1 along "
                           "columns; along rows 2e-15");
    ledger_close(&run);
}

static void expect_not_to_be(const char *residual)
{
    claim_run run;
    fill_maps(&run, residual);
    capture();
    cr_expect(ledger_code(&run, "U04") == EXIT_CHECK);
    cr_expect(is_one_line_with(captured(), "which is proved not to be"));
    ledger_close(&run);
}

/* With full column rank the pseudo-inverse reproduces outputs: else the fault is ours. */
Test(claims_ufo_vit, outputs_that_are_not_reproduced_are_an_error)
{
    expect_not_to_be(U04_ROW("paper", "32", "0.1"));
    expect_not_to_be(U04_ROW("paper", "32", "nan"));
    expect_not_to_be(U04_ROW("paper", "31", "0.1")); /* no row of full column rank */
}
