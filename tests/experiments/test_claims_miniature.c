/* SPDX-License-Identifier: BSD-3-Clause */
/* What statements say of small trained networks, from invented rows of networks/accuracy. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "claims/miniature.h"
#include "ledger.h"

#define ROW(network, operator, change, more)                                                       \
    "network=" network " operator="                                                                \
    operator" change=" change                                                                      \
            " pictures=16 accuracy_error=0.0625 difference=-0.25 difference_error=0.125 not_finite=2 " more

static const miniature_change changes[] = {
    {"none", "as it is"}, {"pool", "with averages"}, {"absent", "never"}, {0}};

static void expect_text(const claim_run *run, const char *operator_name, const char *want,
                        const char *want_notes)
{
    verdict v = {0};
    verdict_open(&v);
    char *text = miniature_accuracies(run, &v, operator_name, changes);
    verdict_close(&v);
    cr_expect_str_eq(text, want);
    cr_expect(*want_notes ? strstr(v.notes_text, want_notes) != NULL : !*v.notes_text, "%s",
              v.notes_text);
    free(text);
    verdict_free(&v);
}

/* In the order of the changes, of the operator alone, and of what is drawn the first draw. */
Test(claims_miniature, networks_of_an_operator)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, MINIATURE, 0);
    ledger_row(t, ROW("a", "soft", "pool", "accuracy=0.5 sample=1"));
    ledger_row(t, ROW("a", "soft", "pool", "accuracy=0.25 sample=0"));
    ledger_row(t, ROW("a", "soft", "gaussian", "accuracy=0.75"));
    ledger_row(t, ROW("b", "sima", "none", "accuracy=1"));
    ledger_row(t, ROW("a", "soft", "none", "accuracy=0.875"));
    expect_text(&run, "soft",
                "In miniature, no number of the paper's, one network of soft, one seed, 16 "
                "pictures: as it is 88 ± 6 %, with averages 25 ± 6 %",
                "|---|---|---|---|---|\n"
                "| a | as it is | 87.5 ± 6.2 | -25.0 ± 12.5 | 2 |\n"
                "| a | with averages | 25.0 ± 6.2 | -25.0 ± 12.5 | 2 |\n\nA network of `attnum "
                "train`, one training seed, on 16 pictures");
    expect_text(&run, "softpp", "data/trained has no network of softpp", "");
    ledger_close(&run);
}
