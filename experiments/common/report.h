/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the program, and memory without which it cannot continue. */
#ifndef EXPERIMENTS_REPORT_H
#define EXPERIMENTS_REPORT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The program's exit codes (experiments/README.md). */
enum {
    EXIT_PASS = 0,        /* all checks pass or marginal */
    EXIT_CHECK = 1,       /* a check failed */
    EXIT_USAGE = 2,       /* the command line */
    EXIT_ENVIRONMENT = 3, /* a file, the disk, the machine */
    EXIT_SKIPPED = 77,    /* everything skipped */
};

/* The exit code for two results: EXIT_ENVIRONMENT or EXIT_USAGE if either is, otherwise EXIT_CHECK
 * if either is, otherwise EXIT_PASS; EXIT_SKIPPED only if both are. */
int exit_worst(int a, int b);

/* Prints "attnum: " and one line on stderr, after clearing the progress; control characters become
 * "?". */
void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Readable text on stdout: report_stream is stdout, or null if a program reads it (printout.h);
 * table_print and report_text then print nothing. */
void report_silence(bool silent);
FILE *report_stream(void);
void report_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program, from any thread: one line on stderr, the functions given to at_quick_exit, and
 * exit code EXIT_ENVIRONMENT. */
_Noreturn void end_program(const char *why);

/* calloc of count * size; on overflow or failure it ends the program. */
void *must_allocate(size_t count, size_t size);
/* realloc to count * size, likewise; new elements are not set. */
void *must_resize(void *memory, size_t count, size_t size);
/* A formatted string, to be freed; never null. */
char *must_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *must_format_list(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
/* open_memstream, and fclose, after which *text is all that was written: never null, to be freed.
 */
FILE *must_open_text(char **text, size_t *size);
void must_close_text(FILE *file, char *const *text, const size_t *size);

#endif
