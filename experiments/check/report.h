/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said about a result. */
#ifndef EXPERIMENTS_CHECK_REPORT_H
#define EXPERIMENTS_CHECK_REPORT_H

#include "check/check.h"
#include "common/table.h"

enum { CHECK_TABLES = 4 };

/* All that was said, for programs (--format). */
typedef struct {
    table *tables[CHECK_TABLES];
} check_tables;

check_tables check_tables_create(void);
void check_tables_summarise(check_tables *tables, const subject *s, ref_verdict verdict,
                            int exit_code);
void check_tables_publish(check_tables *t); /* and frees them */

/* For people; the last two add to the tables. */
void print_subject(const subject *s);
void print_verdict(const subject *s, result_kind kind, const result_verdict *v, check_tables *t);
/* by_rounding: the verdict before the findings were known. */
void print_findings(const subject *s, result_kind kind, const result_verdict *v,
                    ref_verdict by_rounding, int count, const finding *findings,
                    check_tables *tables);

#endif
