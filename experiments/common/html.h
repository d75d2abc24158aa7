/* SPDX-License-Identifier: BSD-3-Clause */
/* HTML pages that need no other file, font or address, and that are well-formed XML, too. */
#ifndef EXPERIMENTS_HTML_H
#define EXPERIMENTS_HTML_H

#include <stdio.h>

#include "table.h"

typedef struct {
    const char *title;
    const char *style;  /* rules that follow those of every page */
    const char *script; /* without "<" and "&", which XML forbids there; null: none */
} html_page;

/* Writes text with &, <, >, quotes and invalid characters escaped. */
void html_text(FILE *file, const char *text);
/* Binary data, for a URL of the scheme data. */
void html_base64(FILE *file, size_t size, const void *bytes);

/* Everything before the content of <main>, and everything after it: the version and the command
 * that wrote the page. */
void html_begin(FILE *file, const html_page *page);
void html_end(FILE *file, const html_page *page, const char *command);

/* <table> in a box which scrolls where the table is wider than the page. The label is for screen
 * readers. */
void html_begin_table(FILE *file, const char *label);
void html_end_table(FILE *file);
/* A whole table: numbers have three digits, missing values are dashes. */
void html_table(FILE *file, const char *label, const table *t);

/* <figure> and its title; figures are in a <div class="figures">. */
void html_begin_figure(FILE *file, const char *title);

#endif
