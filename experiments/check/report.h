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

/* For people. */
void print_subject(const subject *s);
/* And adds to the tables. */
void print_verdict(const subject *s, result_kind kind, const result_verdict *v, check_tables *t);
/* "16 rows x 1 column", of a head's map; why there is no map of a head that FAILs, or null: there
 * is one. To be freed. */
char *map_blocks(const error_map *m);
char *map_missing(const error_map *m, const judgement *j);
/* Where the worst heads that FAIL are wrong. */
void print_maps(const subject *s, result_kind kind, const result_verdict *v);
/* Adds to the tables, too. by_rounding: the verdict before the findings were known. */
void print_findings(result_kind kind, const result_verdict *v, ref_verdict by_rounding, int count,
                    const finding *findings, check_tables *tables);

#endif
