/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of U01 - U11. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "ledger.h"
#include "scratch.h"

TestSuite(claims_u01_xnorm, .init = scratch_begin, .fini = scratch_end);

Test(claims_u01_xnorm, what_is_computed_by_the_judges_themselves)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U01") == VERDICT_HOLDS);
    cr_expect(ledger_judge(&run, "U02") == VERDICT_HOLDS);
    cr_expect(ledger_judge(&run, "U05") == VERDICT_OBSERVED);
    ledger_expect_measured(&run, "U05", "not testable here (A18). Largest output, 196 to 3136");
    ledger_expect_measured(&run, "U05", "XNorm × 1, LN × 1.1, GN × 0.97, IN × 0.93;");
    ledger_expect_measured(&run, "U05", "× 10: × 1, × 1, × 1, × 1; × 1e+02, × 10");
    ledger_expect_measured(&run, "U05", "ℓ2 of Q alone × 4.1 (V = K: × 17), of KᵀV alone × 1.1");
    ledger_expect_noted(&run, "U05", "| GN, 4 groups | independent | ");
    ledger_expect_noted(&run, "U05", "| IN | K | ");
    cr_expect(ledger_judge(&run, "U06") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U06", "Y = (0.6, 0.8)");
    cr_expect(ledger_judge(&run, "U07") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U07", "h = 1 to 64: 0.124035 to 0.707107");
    ledger_close(&run);
}

#define U03_WAY "operator=xnorm variant=paper mode=forward heads=12 "
#define U03_ROW U03_WAY "n_min=784 n_max=2352 std_error=0.001 "

/* 28672 bytes in addition to inputs and output: (28672 + 3 x)/(28672 + x) = 3^0.9964 for x =
 * 4816896. */
static void open_memory(claim_run *run, const char *fit)
{
    ledger_open(run);
    ledger_row(ledger_table(run, "memory", 0),
               U03_WAY "n=784 bytes_measured=28672 bytes_io=4816896");
    ledger_row(ledger_table(run, "memory", 1), fit);
}

static verdict_kind judge_memory(const char *row)
{
    claim_run run;
    open_memory(&run, row);
    verdict_kind kind = ledger_judge(&run, "U03");
    ledger_close(&run);
    return kind;
}

Test(claims_u01_xnorm, memory_is_linear_up_to_the_error_of_the_fit)
{
    claim_run run;
    open_memory(&run, U03_ROW "quantity=bytes_total exponent=0.9979");
    ledger_expect_noted(&run, "U03", "0.9979 is below 1 by a constant part (affine");
    ledger_expect_measured(&run, "U03", "has 8192 bytes for 784 tokens and 8192 for 2352");
    char *bound = ledger_bound(&run, "U03");
    cr_expect(strstr(bound, "down to 0.9964 by"), "%s", bound);
    free(bound);
    ledger_close(&run);
    cr_expect(judge_memory(U03_ROW "quantity=bytes_total exponent=0.997") == VERDICT_OBSERVED);
    cr_expect(judge_memory(U03_ROW "quantity=bytes_total exponent=1.01") == VERDICT_FAILS);
    cr_expect(judge_memory(U03_ROW "quantity=bytes_total exponent=0.99") == VERDICT_FAILS);
    cr_expect(judge_memory(U03_ROW "quantity=bytes_total exponent=0.5") == VERDICT_FAILS);
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

Test(claims_u01_xnorm, maps_are_away_from_the_attention_matrix)
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
Test(claims_u01_xnorm, outputs_that_are_not_reproduced_are_an_error)
{
    expect_not_to_be(U04_ROW("paper", "32", "0.1"));
    expect_not_to_be(U04_ROW("paper", "32", "nan"));
    expect_not_to_be(U04_ROW("paper", "31", "0.1")); /* no row of full column rank */
}

Test(claims_u01_xnorm, the_size_of_weights_does_not_matter_but_weights_do)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U08") == VERDICT_HOLDS_IF);
    ledger_expect_measured(&run, "U08", "× 4, 1/8 and 16: outputs change by 0, ×");
    ledger_expect_measured(&run, "U08", "same tokens in 8 of 8 columns × 3, 0.1, 7");
    ledger_expect_counterexample(&run, "U08", "the output is (1, 0) with W_Q = I and (0, 1) with");
    char *measured = ledger_measured(&run, "U08"), *drawn = strstr(measured, "drawn anew by ");
    cr_expect(drawn && strtod(drawn + strlen("drawn anew by "), NULL) > 0.5, "%s", measured);
    free(measured);
    ledger_close(&run);
}

Test(claims_u01_xnorm, the_printed_projection_aggregates_nothing)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U09") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U09", "one token, h = 2: off by 2");
    ledger_expect_counterexample(&run, "U09", "A(x) = (1, -1).");
    ledger_expect_counterexample(&run, "U09", "A(x)W_proj = (-1, 1); Eq. 9 gives (1, -1)");
    ledger_close(&run);
}

Test(claims_u01_xnorm, stiff_potentials_are_narrow)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U10") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U10", "goes from 2 to 0.0625, the least U from 0 to 0");
    ledger_expect_measured(&run, "U10", "to 0 in 4 steps with k = 1, to 81 with k = 4");
    ledger_expect_counterexample(&run, "U10", "2 wide for k = 1 and 1 for k = 4");
    ledger_expect_counterexample(&run, "U10", "x = 1, -3, 9, …");
    ledger_close(&run);
}

Test(claims_u01_xnorm, clusters_have_no_spatial_dimension)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U11") == VERDICT_FAILS);
    ledger_expect_measured(&run, "U11", "has 8192 and 8192 bytes");
    ledger_expect_counterexample(&run, "U11", "K over the tokens gives (3, 4), Eq. 8 (1, 1)");
    ledger_close(&run);
}
