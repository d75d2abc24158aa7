/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as one self-contained HTML page: it refers to no script, font or address outside. */
#ifndef EXPERIMENTS_INSPECT_PAGE_H
#define EXPERIMENTS_INSPECT_PAGE_H

#include "common/files.h"
#include "inspect/advice.h"
#include "inspect/facts.h"

typedef struct {
    const char *subject, *name, *command;
    const inspection_list *list;
    const table *summary;
    const advice_line *conclusion, *lines;
    int line_count;
} page_content;

/* Writes and publishes it. Returns an exit code. */
int page_write(new_file *page, const page_content *content);

#endif
