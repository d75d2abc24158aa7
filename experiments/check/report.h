/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program prints about results. */
#ifndef EXPERIMENTS_CHECK_REPORT_H
#define EXPERIMENTS_CHECK_REPORT_H

#include "check/check.h"
#include "common/table.h"

enum { CHECK_TABLES = 4 };

/* The same as tables, for --format. */
typedef struct {
    table *tables[CHECK_TABLES];
} check_tables;

check_tables check_tables_create(void);
void check_tables_summarise(check_tables *tables, const subject *s, ref_verdict verdict,
                            int exit_code);
void check_tables_publish(check_tables *t); /* and frees them */

/* Prints what is judged. */
void print_subject(const subject *s);
/* Prints the verdict, and adds it to the tables. */
void print_verdict(const subject *s, result_kind kind, const result_verdict *v, check_tables *t);
/* Parts of these texts, for the page; all to be freed. */
/* Sizes and inputs, in lines; operator and precision are printed before them. */
char *subject_text(const subject *s);
/* What a result is compared with. */
char *basis_text(const subject *s, result_kind kind, const result_verdict *v);
/* The heads, or the worst if there are many; a note that says so and how many are skipped, or null;
 * and what the columns mean. */
table *heads_table(const subject *s, result_kind kind, const result_verdict *v);
char *heads_text(const subject *s, result_kind kind, const result_verdict *v);
char *ratio_text(const subject *s);
/* The findings, and a remark on them; null: none. */
table *findings_table(int count, const finding *findings);
char *findings_text(const result_verdict *v, ref_verdict by_rounding, int count);

/* ---- Maps ---- */

enum { MANY_HEADS = 16 }; /* the most heads that are listed one by one */

/* Names of the rows and columns of a map: singular and plural. */
extern const char *const of_rows[2], *const of_columns[2], *const of_batch[2], *const of_heads[2];
extern const char *const cell_state_names[CELL_STATES];

/* The worst of the heads that are not yet shown (null: of all): by verdict, then by error. */
int64_t worst_head(int64_t heads, const judgement *all, const bool *shown);
/* The heads that FAIL, worst first: returns their number and sets the first `most` of them. */
int64_t heads_that_fail(const subject *s, result_kind kind, const result_verdict *v, int most,
                        int64_t *heads);
/* "16 rows x 1 column": the blocks of a head's map; and why a head that FAILs has no map, or null
 * if it has one. To be freed. */
char *map_blocks(const error_map *m);
char *map_missing(const error_map *m, const judgement *j);
/* Prints where the worst heads that FAIL are wrong. */
void print_maps(const subject *s, result_kind kind, const result_verdict *v);
/* Prints the findings and adds them to the tables. by_rounding: the verdict before the findings
 * were known. */
void print_findings(const subject *s, result_kind kind, const result_verdict *v,
                    ref_verdict by_rounding, int count, const finding *findings,
                    check_tables *tables);

#endif
