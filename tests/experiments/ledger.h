/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges on invented evidence: which numbers change which verdict. */
#ifndef TESTS_LEDGER_H
#define TESTS_LEDGER_H

#include "claims/claims.h"

/* A run with seed 1, a context, and no evidence yet. */
void ledger_open(claim_run *run);
void ledger_close(claim_run *run);

/* An empty table as the evidence's output, in place of the one before. */
table *ledger_table(claim_run *run, const char *evidence, int output);

/* A row from "column=value column=value", ~ for a blank in a value; the other columns are missing.
 */
void ledger_row(table *t, const char *cells);

/* The row of a claim. */
const claim *ledger_find(const char *id);
/* The verdict of a claim's judge; its texts are checked for completeness. */
verdict_kind ledger_judge(const claim_run *run, const char *id);
/* The numbers it gives, to be freed. */
char *ledger_measured(const claim_run *run, const char *id);
/* What they are compared with, to be freed. */
char *ledger_bound(const claim_run *run, const char *id);
/* Its notes, to be freed. */
char *ledger_notes(const claim_run *run, const char *id);
/* That they contain a text. */
void ledger_expect_measured(const claim_run *run, const char *id, const char *text);
void ledger_expect_noted(const claim_run *run, const char *id, const char *text);
/* The smallest counterexample it gives, to be freed. */
char *ledger_counterexample(const claim_run *run, const char *id);
/* That it contains a text. */
void ledger_expect_counterexample(const claim_run *run, const char *id, const char *text);
/* The exit code alone. */
int ledger_code(const claim_run *run, const char *id);

#endif
