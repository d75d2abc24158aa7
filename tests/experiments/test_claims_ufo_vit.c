/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of U01 - U05. */
#include <criterion/criterion.h>

#include "ledger.h"

Test(claims_ufo_vit, what_is_computed_by_the_judges_themselves)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "U01") == VERDICT_HOLDS_IF);
    cr_expect(ledger_judge(&run, "U02") == VERDICT_HOLDS);
    cr_expect(ledger_judge(&run, "U05") == VERDICT_OBSERVED);
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

static verdict_kind judge_pseudo_inverse(const char *full, const char *lost)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "maps", 3);
    ledger_row(t, U04_ROW("port", "32", "1e-15"));
    ledger_row(t, U04_ROW("port", "31", "1e-15"));
    ledger_row(t, full);
    ledger_row(t, lost);
    verdict_kind kind = ledger_judge(&run, "U04");
    ledger_close(&run);
    return kind;
}

Test(claims_ufo_vit, the_pseudo_inverse_reproduces_outputs_where_values_have_full_rank)
{
    const char *exact = U04_ROW("paper", "32", "1e-15"), *nan = U04_ROW("paper", "32", "nan");
    const char *off = U04_ROW("paper", "32", "0.1");
    const char *lost = U04_ROW("paper", "31", "0.1"), *kept = U04_ROW("paper", "31", "1e-15");
    cr_expect(judge_pseudo_inverse(exact, lost) == VERDICT_HOLDS_IF);
    cr_expect(judge_pseudo_inverse(exact, kept) == VERDICT_HOLDS);
    cr_expect(judge_pseudo_inverse(off, lost) == VERDICT_FAILS);
    cr_expect(judge_pseudo_inverse(nan, lost) == VERDICT_FAILS);
}
