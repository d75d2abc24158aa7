/* SPDX-License-Identifier: BSD-3-Clause */
/* Files for a test, and the messages of a call on stderr. Criterion runs each test in a process of
 * its own, so the working folder and stderr are free for a test to change. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* For .init and .fini: enter a fresh folder; remove it with the files and folders in it. */
void scratch_begin(void);
void scratch_end(void);

void scratch_write(const char *name, const void *bytes, size_t size);
/* A whole file; to be freed. */
unsigned char *scratch_read(const char *path, size_t *size);

/* Collects stderr from here on, until captured() returns what was written. */
void capture(void);
const char *captured(void);

/* A stream into memory; closes it and returns its text, to be freed; or expects that text. One at a
 * time. */
FILE *begin_text(void);
char *end_text(FILE *file);
void expect_written(FILE *file, const char *want);

/* True if `text` is one line that contains the fragment. */
bool is_one_line_with(const char *text, const char *fragment);

#endif
