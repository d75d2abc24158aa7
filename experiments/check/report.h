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
/* The same in pieces, for the page; all to be freed. */
/* What was given, besides operator and precision: lines. */
char *subject_text(const subject *s);
/* What a result is compared with. */
char *basis_text(const subject *s, result_kind kind, const result_verdict *v);
/* The heads, the worst if there are many; which these are, or null: all; and what the columns mean.
 */
table *heads_table(const subject *s, result_kind kind, const result_verdict *v);
char *heads_text(const subject *s, result_kind kind);
char *ratio_text(const subject *s);
/* The findings, and what is to be said of them; null: nothing. */
table *findings_table(int count, const finding *findings);
char *findings_text(const result_verdict *v, ref_verdict by_rounding, int count);

/* ---- Maps ---- */

enum { MANY_HEADS = 16 }; /* more are not listed one by one */

/* What the rows and columns of a map are of: one, and several. */
extern const char *const of_rows[2], *const of_columns[2], *const of_batch[2], *const of_heads[2];
extern const char *const cell_state_names[CELL_STATES];

/* Which head that was not shown (null: none was) is worst: by verdict, then by error. */
int64_t worst_head(int64_t heads, const judgement *all, const bool *shown);
/* The heads that FAIL, the worst first: their number, and the first `most` of them. */
int64_t heads_that_fail(const subject *s, result_kind kind, const result_verdict *v, int most,
                        int64_t *heads);
/* "16 rows x 1 column", of a head's map; why there is no map of a head that FAILs, or null: there
 * is one. To be freed. */
char *map_blocks(const error_map *m);
char *map_missing(const error_map *m, const judgement *j);
/* Where the worst heads that FAIL are wrong. */
void print_maps(const subject *s, result_kind kind, const result_verdict *v);
/* Adds to the tables, too. by_rounding: the verdict before the findings were known. */
void print_findings(const subject *s, result_kind kind, const result_verdict *v,
                    ref_verdict by_rounding, int count, const finding *findings,
                    check_tables *tables);

#endif
