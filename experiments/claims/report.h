/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdicts for people and programs: stdout, claims.csv, claims.md. */
#ifndef EXPERIMENTS_CLAIMS_REPORT_H
#define EXPERIMENTS_CLAIMS_REPORT_H

#include "claims/claims.h"

typedef struct {
    const claim *claim;
    verdict verdict;
} judged;

/* To stdout for people: the statement, the verdict, and the numbers. */
void report_print(const claim_run *run, const judged *j);

/* To stdout for programs: the table of claims.csv. */
void report_print_table(const judged *all, int count);

/* Writes claims.csv with its metadata, and claims.md, into run->folder, whole or not at all. code:
 * the exit code of the run so far. Returns an exit code. */
int report_write(const claim_run *run, const judged *all, int count, int code);

#endif
