/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdicts for people and programs: stdout, claims.csv, claims.md; page.h has claims.html. */
#ifndef EXPERIMENTS_CLAIMS_REPORT_H
#define EXPERIMENTS_CLAIMS_REPORT_H

#include "claims/claims.h"

typedef struct {
    const claim *claim;
    verdict verdict;
} judged;

/* The beginning of claims.md and claims.html: the source of the numbers, and the words of
 * report_basis.
 */
extern const char *const report_introduction;

/* How many of them have a verdict. */
int report_count(const judged *all, int count, verdict_kind kind);

/* The basis of a verdict, for people: "proved, certified"; to be freed. */
char *report_basis(const judged *j);

/* Prints to stdout, for people: the statement, the verdict, and the numbers. */
void report_print(const claim_run *run, const judged *j);

/* Prints to stdout, for programs: the table of claims.csv. */
void report_print_table(const judged *all, int count);

/* What claims.csv holds. */
extern const output_spec report_ledger;

/* Writes claims.csv with its metadata, claims.md and claims.html into run->folder; the files appear
 * when all are complete. code: the exit code of the run so far. Returns an exit code. */
int report_write(const claim_run *run, const judged *all, int count, int code);

#endif
