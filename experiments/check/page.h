/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict as one self-contained HTML page: it refers to no script, font or address outside. */
#ifndef EXPERIMENTS_CHECK_PAGE_H
#define EXPERIMENTS_CHECK_PAGE_H

#include "check/check.h"
#include "common/files.h"
#include "common/table.h"

/* The content so far; {0}: no page was asked for, and all functions do nothing. */
typedef struct {
    new_file file; /* appears only when it is complete */
    FILE *text;    /* sections of the judged results */
    char *body;
    size_t size;
    table *results;
    int figures;
} check_page;

/* Opens path for writing. Returns an exit code. */
int check_page_open(check_page *page, const char *path);
/* by_rounding: the verdict before the findings were known. */
void check_page_add(check_page *page, const subject *s, result_kind kind, const result_verdict *v,
                    ref_verdict by_rounding, int count, const finding *findings);
/* Writes and publishes it. Returns an exit code. */
int check_page_write(check_page *page, const program_options *s, const subject *judged,
                     ref_verdict verdict);
/* Removes what was not published. */
void check_page_free(check_page *page);

#endif
