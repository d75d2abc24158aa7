/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the Markdown of the ledger to HTML: in every text `code`, in notes also paragraphs,
 * lists of lines that begin with "- ", and tables. Everything else is plain text: "*" and "_" are
 * mathematics. */
#ifndef EXPERIMENTS_CLAIMS_MARKDOWN_H
#define EXPERIMENTS_CLAIMS_MARKDOWN_H

#include <stdio.h>

typedef struct {
    FILE *file;
    const char *label;          /* of tables, for screen readers */
    const char *const *anchors; /* words that become links to "#word"; null after the last */
} markdown;

/* One line of text. */
void markdown_line(const markdown *m, const char *text);
/* Notes. */
void markdown_blocks(const markdown *m, const char *text);

#endif
