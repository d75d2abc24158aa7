/* SPDX-License-Identifier: BSD-3-Clause */
/* A01 - A24, and that the ledger passes over no table of the four papers. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "ledger.h"

Test(claims_a01_accuracies, what_is_out_of_reach_says_what_it_needs_and_what_will_tell)
{
    claim_run run;
    ledger_open(&run);
    static const char *const refuted[] = {"A06", "A23"};
    int rows = 0;
    for (const claim *c = accuracy_claims; c->id; c++) {
        verdict v;
        verdict_open(&v);
        cr_assert(c->judge(&run, &v) == EXIT_PASS, "%s", c->id);
        verdict_close(&v);
        cr_expect(!verdict_lacks(&v), "%s lacks %s", c->id, verdict_lacks(&v));
        bool contradicted = false;
        for (size_t i = 0; i < sizeof refuted / sizeof *refuted; i++)
            contradicted = contradicted || strcmp(c->id, refuted[i]) == 0;
        cr_expect(v.kind == (contradicted ? VERDICT_FAILS : VERDICT_NOT_TESTABLE), "%s: %s", c->id,
                  verdict_name(v.kind));
        cr_expect(strstr(v.measured, "would need "), "%s", c->id);
        bool known = strstr(v.measured, "Small networks of ") || strstr(v.measured, "seeds.csv");
        cr_expect(strstr(v.would_test, known ? "in part, larger trained networks: "
                                             : "in part, small trained networks: "),
                  "%s", c->id);
        cr_expect_eq(known, strstr(c->method, "In miniature") != NULL, "%s", c->id);
        cr_expect(!v.bound || !strstr(v.bound, "small"), "%s: a plan is no bound", c->id);
        cr_expect(!strstr(c->method, "compares rows of its own") || strstr(v.measured, "printed"),
                  "%s compares no rows", c->id);
        verdict_free(&v);
        rows++;
    }
    cr_expect(rows == 24, "%d", rows);
    ledger_close(&run);
}

Test(claims_a01_accuracies, a_table_that_contradicts_its_sentence_refutes_it)
{
    claim_run run;
    ledger_open(&run);
    ledger_expect_measured(&run, "A01", "the table bears out 13 of 13 comparisons");
    ledger_expect_measured(&run, "A02", "bears out 4 of 4 comparisons");
    ledger_expect_measured(&run, "A06", "bears out 13 of 14 comparisons");
    char *counterexample = ledger_counterexample(&run, "A06");
    cr_expect(strstr(counterexample, "DLabV3+ with ResNet-101 (62 M), 46.5 against 46.9"), "%s",
              counterexample);
    free(counterexample);
    ledger_close(&run);
}

/* A tie does not outperform. 3.3 of 5.8 and 2.3 of 4.2 points. */
Test(claims_a01_accuracies, the_contributions_are_held_against_the_tables)
{
    claim_run run;
    ledger_open(&run);
    ledger_expect_measured(&run, "A23", "bears out 15 of 20 comparisons");
    ledger_expect_counterexample(&run, "A23", "SOFT++-Tiny, PVTv2-B1, 41.2 against 41.8");
    ledger_expect_measured(&run, "A24", "bears out 2 of 2 comparisons that 'main' is read as");
    ledger_expect_noted(&run, "A24", "points of overlapping | 3.3 | 2.5 |");
    ledger_expect_noted(&run, "A24", "points of overlapping | 2.3 | 1.9 |");
    ledger_close(&run);
}

/* A tie is as high, not higher. */
Test(claims_a01_accuracies, ties_are_counted_apart)
{
    claim_run run;
    ledger_open(&run);
    ledger_expect_measured(&run, "A02", "(3 higher, 1 as high)");
    ledger_expect_measured(&run, "A03",
                           "31 of 31 comparisons that the sentence makes (28 higher, "
                           "3 as high)");
    ledger_expect_noted(&run, "A03", "| IJCV: SOFT++-Medium, ViT-Small/16 | 83.7 | 80.8 |");
    ledger_expect_noted(&run, "A03", "| IJCV: SOFT++-Medium, CoAtNet-1 | 83.7 | 83.3 |");
    ledger_close(&run);
}

/* Where the sentence leaves open how near is enough, lower rows are named and refute nothing. */
Test(claims_a01_accuracies, words_without_a_tolerance_refute_nothing)
{
    claim_run run;
    ledger_open(&run);
    ledger_expect_measured(&run, "A13",
                           "3 of 5 are as high or higher, 2 lower (XCiT-T12/8 → SimA, "
                           "XCiT-T12/8 79.4 against 79.7, −0.3; CvT-13 → SimA, CvT-13 "
                           "81.4 against 81.6, −0.2), against 'without degrading'");
    ledger_expect_measured(&run, "A22",
                           "6 of 7 are as high or higher, 1 lower (XCiT-T20/16 → SimA, SOFT 79.2 "
                           "against 79.3, −0.1), against 'better or on-par'");
    ledger_expect_measured(&run, "A14", "0 of 4 are as high or higher, 4 lower (box AP");
    ledger_expect_measured(&run, "A14", "75.5 against 75.8, −0.3");
    ledger_close(&run);
}

Test(claims_a01_accuracies, every_row_of_ufo_vits_groups_is_compared)
{
    claim_run run;
    ledger_open(&run);
    ledger_expect_measured(&run, "A19",
                           "with no more FLOPs than a model these are below it: T 2 of 2, S 2 of "
                           "2, M 5 of 5, B 7 of 7; of those with no more parameters: T 1 of 1, S 1 "
                           "of 1, M 5 of 5, B 7 of 7;");
    ledger_expect_measured(&run, "A19",
                           "of its group: T 2 of 2, S 2 of 3, M 1 of 2, B 2 of 3, with more FLOPs: "
                           "T 0 of 2, S 2 of 3, M 1 of 2, B 2 of 3");
    ledger_expect_measured(&run, "A19",
                           "bears out 2 of the 7 readings by which every model is to be above "
                           "most, and 3 of the 4");
    ledger_expect_noted(&run, "A19",
                        "| higher with fewer FLOPs, for every model, of all groups | 0 of 10 |");
    ledger_expect_noted(&run, "A19",
                        "as high or higher with fewer FLOPs, of all comparisons | 0 of 2 | 3 of 3 "
                        "| 1 of 2 | 2 of 3 | 6 of 10 | yes |");
    ledger_expect_noted(&run, "A19",
                        "higher with fewer parameters, for every model | 1 of 2 | 2 of 3 | 1 of 2 "
                        "| 2 of 3 | 6 of 10 | no |");
    ledger_expect_measured(&run, "A20",
                           "6 of 6 comparisons with CNNs; of 16 with transformers UFO-ViT is "
                           "higher in 6 (PVT 6 of 6, Swin 0 of 4, XCiT 0 of 6) and not in 10; in 0 "
                           "of these the transformer has as few parameters or fewer");
    ledger_expect_noted(&run, "A20",
                        "| UFO-ViT-M, 56.4 M | 46.0 | 41.0 | ResNet101, 63.2 M | 42.8 | 39.2 |");
    ledger_close(&run);
}

/* ---- Tables ---- */

/* "IJCV Tab. 2, 3, 9a; NeurIPS Tab. 1": whether the numbers after a paper's "Tab. ", up to what is
 * no number, have one. */
static bool lists(const char *numbers, int wanted)
{
    for (const char *at = numbers; isdigit((unsigned char)*at);) {
        char *end;
        if (strtol(at, &end, 10) == wanted)
            return true;
        end += islower((unsigned char)*end) ? 1 : 0;
        if (strncmp(end, ", ", 2) != 0)
            return false;
        at = end + 2;
    }
    return false;
}

static bool names_table(const char *source, const char *paper, int number)
{
    static const char *const all[] = {"IJCV", "NeurIPS", "SimA", "UFO-ViT"};
    bool mine = false;
    for (const char *at = source; *at; at++) {
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (strncmp(at, all[i], strlen(all[i])) == 0)
                mine = strcmp(all[i], paper) == 0;
        if (mine && strncmp(at, "Tab. ", 5) == 0 && lists(at + 5, number))
            return true;
    }
    return false;
}

/* The tables of sizes alone, IJCV's first and NeurIPS's second, are what N02 counts. */
static const struct {
    const char *paper;
    int first, last, left_out;
} tables[] = {{"IJCV", 1, 12, 1}, {"NeurIPS", 1, 6, 2}, {"SimA", 1, 5, 0}, {"UFO-ViT", 1, 5, 0}};

Test(claims_a01_accuracies, every_table_of_the_papers_has_a_row)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (int number = tables[i].first; number <= tables[i].last; number++) {
            bool found = number == tables[i].left_out;
            for (int c = 0; claims_all()[c] && !found; c++)
                found = names_table(claims_all()[c]->source, tables[i].paper, number);
            cr_expect(found, "%s Tab. %d", tables[i].paper, number);
        }
    cr_expect(names_table("IJCV Tab. 9, 10; NeurIPS Tab. 4a, 5", "NeurIPS", 5));
    cr_expect(!names_table("IJCV Tab. 9, 10; NeurIPS Tab. 4a, 5", "IJCV", 5));
}
