/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of HTML that need nothing else: no file, no font and no address outside them is asked for,
 * and they are well-formed as XML, too. */
#ifndef EXPERIMENTS_HTML_H
#define EXPERIMENTS_HTML_H

#include <stdio.h>

#include "table.h"

typedef struct {
    const char *title;
    const char *style;  /* rules that follow those of every page */
    const char *script; /* null: none. Without "<" and "&", which XML does not take there. */
} html_page;

/* Text with &, <, >, quotes and all that is no character escaped. */
void html_text(FILE *file, const char *text);
/* Binary data, for a URL of the scheme data. */
void html_base64(FILE *file, size_t size, const void *bytes);

/* All up to the content of <main>, and all after it: the version and the command that wrote it. */
void html_begin(FILE *file, const html_page *page);
void html_end(FILE *file, const html_page *page, const char *command);

/* <table> in a box which scrolls where the table is wider than the page. The label is
 * for those who cannot see it. */
void html_begin_table(FILE *file, const char *label);
void html_end_table(FILE *file);
/* All of a table; numbers to three digits, what is missing a dash. */
void html_table(FILE *file, const char *label, const table *t);

/* <figure> and its title; figures are in a <div class="figures">. */
void html_begin_figure(FILE *file, const char *title);

#endif
