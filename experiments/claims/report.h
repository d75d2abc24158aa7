/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the verdicts: on stdout, in claims.csv and in claims.md; page.h has claims.html. */
#ifndef EXPERIMENTS_CLAIMS_REPORT_H
#define EXPERIMENTS_CLAIMS_REPORT_H

#include "claims/claims.h"

typedef struct {
    const claim *claim;
    verdict verdict;
} judged;

/* The beginning of claims.md and claims.html: where the numbers come from, and the words of
 * report_basis. */
extern const char *const report_introduction;

/* The number of claims with a verdict. */
int report_count(const judged *all, int count, verdict_kind kind);

/* The basis of a verdict in words: "proved, certified"; to be freed. */
char *report_basis(const judged *j);

/* Prints the statement, the verdict and the numbers to stdout, as text. */
void report_print(const claim_run *run, const judged *j);

/* Prints the table of claims.csv to stdout. */
void report_print_table(const judged *all, int count);

/* The columns of claims.csv. */
extern const output_spec report_ledger;

/* Writes claims.csv with its metadata, claims.md and claims.html into run->folder; the files appear
 * only when all are complete. code: the exit code of the run so far. Returns an exit code. */
int report_write(const claim_run *run, const judged *all, int count, int code);

#endif
