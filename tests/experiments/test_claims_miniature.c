/* SPDX-License-Identifier: BSD-3-Clause */
/* What statements say of small trained networks, from invented rows of networks/accuracy and of
 * data/trained/seeds.csv. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "claims/miniature.h"
#include "common/report.h"
#include "ledger.h"
#include "scratch.h"

#define ROW(network, operator, change, more)                                                       \
    "network=" network " operator="                                                                \
    operator" change=" change                                                                      \
            " pictures=16 accuracy_error=0.0625 difference=-0.25 difference_error=0.125 not_finite=2 " more
#define SEEDS_ROW(operator, change, more)                                                          \
    "operator=" operator" change=" change " seeds=3 accuracy=0.5 deviation=0.125 " more

static const miniature_change changes[] = {
    {"none", "as it is"}, {"pool", "with averages"}, {"absent", "never"}, {0}};

/* Takes the text and the verdict over. */
static void expect_said(char *text, verdict *v, const char *want, const char *want_notes)
{
    verdict_close(v);
    cr_expect_str_eq(text, want);
    cr_expect(*want_notes ? strstr(v->notes_text, want_notes) != NULL : !*v->notes_text, "%s",
              v->notes_text);
    free(text);
    verdict_free(v);
}

static void expect_text(const claim_run *run, const char *operator_name, const char *want,
                        const char *want_notes)
{
    verdict v = {0};
    verdict_open(&v);
    expect_said(miniature_accuracies(run, &v, operator_name, changes), &v, want, want_notes);
}

/* In the order of the changes, of the operator alone, and of what is drawn the first draw. */
Test(claims_miniature, networks_of_an_operator)
{
    claim_run run;
    ledger_open(&run);
    table *t = ledger_table(&run, MINIATURE, 0), *seeds = ledger_table(&run, MINIATURE, 1);
    ledger_row(t, ROW("a", "soft", "pool", "accuracy=0.5 verdict=lower sample=1"));
    ledger_row(t, ROW("a", "soft", "pool", "accuracy=0.25 verdict=lower sample=0"));
    ledger_row(t, ROW("a", "soft", "gaussian", "accuracy=0.75 verdict=lower"));
    ledger_row(t, ROW("b", "sima", "none", "accuracy=1"));
    ledger_row(t, ROW("b2", "sima", "none", "accuracy=0.75"));
    ledger_row(t, ROW("b", "sima", "pool", "accuracy=1 verdict=lower"));
    ledger_row(t, ROW("b2", "sima", "pool", "accuracy=0.75 verdict=lower"));
    ledger_row(t, ROW("a", "soft", "none", "accuracy=0.875"));
    ledger_row(seeds, "operator=soft change=none seeds=1 accuracy=0.875");
    ledger_row(seeds, SEEDS_ROW("softmax", "pool", "difference=1 interval=1 verdict=higher"));
    ledger_row(seeds, SEEDS_ROW("sima", "none", ""));
    ledger_row(seeds, SEEDS_ROW("sima", "pool", "difference=-0.25 interval=0.5 verdict=lower"));
    expect_text(&run, "soft",
                "In miniature, no number of the paper's, one network of soft, one seed, 16 "
                "pictures: as it is 88 ± 6 %, with averages 25 ± 6 %",
                "| soft in miniature | seeds | accuracy, % | difference, points | losses not "
                "finite |\n|---|---|---|---|---|\n"
                "| as it is | 1 | 87.5 ± 6.2 |  | 2 |\n"
                "| with averages | 1 | 25.0 ± 6.2 | −25.0 ± 12.5 | 2 |\n\nNetworks of `attnum "
                "train` on 16 pictures of Fashion-MNIST's test set; changes are made after "
                "training (networks/accuracy). One seed: standard errors");
    expect_text(&run, "sima",
                "In miniature, no number of the paper's, 3 networks of sima, one for each seed "
                "(mean and standard deviation), 16 pictures: as it is 50 ± 12 %, with averages "
                "50 ± 12 %",
                "| as it is | 3 | 50.0 ± 12.5 |  | 4 |\n"
                "| with averages | 3 | 50.0 ± 12.5 | −25.0 ± 50.0 | 4 |\n\nNetworks of `attnum "
                "train` on 16 pictures of Fashion-MNIST's test set; changes are made after "
                "training (networks/accuracy). Over the seeds");
    expect_text(&run, "softpp", "data/trained has no network of softpp", "");
    ledger_close(&run);
}

/* Makes data/trained/seeds.csv of these rows the one that is read; null: there is none. */
static void write_seeds(const char *rows)
{
    cr_assert_eq(mkdir("trained", 0755), 0);
    setenv("ATTNUM_DATADIR", ".", 1);
    if (!rows)
        return;
    FILE *file = fopen("trained/seeds.csv", "w");
    cr_assert(file && fprintf(file,
                              "operator,variant,change,epochs,steps,seeds,finished,accuracy,"
                              "deviation,against,difference,interval,verdict\n%s",
                              rows) > 0);
    fclose(file);
}

static void expect_trained(const char *operator_name, const char *want, const char *want_notes)
{
    verdict v = {0};
    verdict_open(&v);
    expect_said(miniature_trained(&v, operator_name, changes), &v, want, want_notes);
}

/* In the order of the changes, of the operator alone, and only what is compared with the first
 * change. */
Test(claims_miniature, networks_that_are_trained_with_changes, .init = scratch_begin,
     .fini = scratch_end)
{
    write_seeds("soft,code,pool,5,40,3,3,0.625,0.03125,none,-0.125,0.0625,lower\n"
                "sima,paper,none,5,40,3,3,0.5,0.03125,,,,\n"
                "sima,paper,pool,5,40,3,1,0.25,,none,,,\n"
                "elu,stable,none,5,40,2,0,,,,,,\n"
                "elu,stable,pool,5,40,2,2,0.5,0.25,none,,,\n"
                "xnorm,paper,pool,5,40,3,3,0.5,0.25,,,,\n"
                "linformer,projected,none,5,40,3,3,0.5,0.25,,,,\n"
                "linformer,projected,pool,5,40,3,3,0.75,0.25,first,0.25,0.5,no difference\n"
                "soft,code,none,5,40,3,3,0.75,0.015625,,,,\n"
                "soft,code,random,5,40,3,3,0.5,0.03125,none,-0.25,0.0625,lower\n");
    expect_trained("soft",
                   "Small networks of soft, trained with each (3 seeds, 95 % intervals; no number "
                   "of the paper's): as it is 75.0 %; with averages −12.5 ± 6.2 points (lower)",
                   "| as it is | 3 | 3 | 75.00 ± 1.56 | | |\n"
                   "| with averages | 3 | 3 | 62.50 ± 3.12 | −12.50 ± 6.25 | lower |\n\n"
                   "Networks of `attnum train --operator soft --change`, 5 epochs of 8 steps");
    expect_trained("sima",
                   "Small networks of sima, trained with each (3 seeds, 95 % intervals; no number "
                   "of the paper's): as it is 50.0 %; with averages did not stay finite in 2 of 3",
                   "| with averages | 3 | 1 | 25.00 | | |\n");
    expect_trained("elu",
                   "Small networks of elu, trained with each (2 seeds, 95 % intervals; no number "
                   "of the paper's): as it is did not stay finite in 2 of 2; with averages 50.0 %",
                   "| as it is | 2 | 0 |  | | |\n");
    expect_trained("linformer",
                   "Small networks of linformer, trained with each (3 seeds, 95 % intervals; no "
                   "number of the paper's): as it is 50.0 %",
                   "| as it is | 3 | 3 | 50.00 ± 25.00 | | |\n\n");
    expect_trained("xnorm", "data/trained/seeds.csv has no networks of xnorm", "");
}

Test(claims_miniature, no_networks_that_are_trained_with_changes, .init = scratch_begin,
     .fini = scratch_end)
{
    write_seeds(NULL);
    capture();
    expect_trained("soft",
                   "Of small networks trained with each nothing is known here: "
                   "data/trained/seeds.csv cannot be read",
                   "");
    cr_expect(is_one_line_with(captured(), "seeds.csv"));
}
