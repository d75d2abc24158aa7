/* SPDX-License-Identifier: BSD-3-Clause */
/* The judges of M01 - M08. */
#include <criterion/criterion.h>

#include "ledger.h"

Test(claims_sima, entries_are_bounded_by_the_width)
{
    claim_run run;
    ledger_open(&run);
    cr_expect(ledger_judge(&run, "M01") == VERDICT_HOLDS);
    ledger_close(&run);
}

Test(claims_sima, maps_are_observed_if_there_are_any)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "maps", 2);
    cr_expect(ledger_judge(&run, "M07") == VERDICT_NOT_TESTABLE);
    ledger_row(t, "operator=sima kind=query-norm least=1 largest=3 photo=a.png");
    cr_expect(ledger_judge(&run, "M07") == VERDICT_OBSERVED);
    ledger_close(&run);
}

#define M08_ROW(operator, exact, printed, counted, ratio)                                          \
    "statement=M08 quantity=exps n=784 d=384 heads=12 formula=f operator="                         \
    operator" exact=" exact " printed=" printed " counted=" counted " ratio=" ratio

/* What SOFT evaluates of H N^2, and whether the others' counts are the printed ones. */
static verdict_kind judge_counts(const char *soft, const char *xca)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, "counts", 1);
    ledger_row(t, M08_ROW("softmax", "true", "100", "100", "1"));
    ledger_row(t, M08_ROW("sima", "true", "0", "0", "nan"));
    ledger_row(t, soft);
    ledger_row(t, xca);
    verdict_kind kind = ledger_judge(&run, "M08");
    ledger_close(&run);
    return kind;
}

Test(claims_sima, soft_must_evaluate_what_it_is_charged_with)
{
    const char *small = M08_ROW("soft", "false", "100", "13", "0.13");
    const char *charged = M08_ROW("soft", "false", "100", "100", "1");
    const char *xca = M08_ROW("xca", "true", "7", "7", "1");
    const char *wrong = M08_ROW("xca", "true", "7", "8", "1.14");
    cr_expect(judge_counts(small, xca) == VERDICT_FAILS);
    cr_expect(judge_counts(charged, xca) == VERDICT_HOLDS);
    cr_expect(judge_counts(charged, wrong) == VERDICT_FAILS);
}
