/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict on a statement, and the numbers behind it. */
#ifndef EXPERIMENTS_CLAIMS_VERDICT_H
#define EXPERIMENTS_CLAIMS_VERDICT_H

#include <stdbool.h>
#include <stdio.h>

/* X(code, name, description). VERDICT_NONE remains if a judge forgets to set one. */
#define VERDICT_LIST(X)                                                                            \
    X(VERDICT_NONE, "none", "no verdict")                                                          \
    X(VERDICT_HOLDS, "holds",                                                                      \
      "under the conditions it is printed with: no counterexample on "                             \
      "these inputs, and a proof or certified bound")                                              \
    X(VERDICT_HOLDS_IF, "holds if", "a condition that is not printed is needed; both sides shown") \
    X(VERDICT_FAILS, "fails", "there is a counterexample")                                         \
    X(VERDICT_OBSERVED, "observed",                                                                \
      "an empirical statement, measured here; the row says whether these inputs show it")          \
    X(VERDICT_NOT_TESTABLE, "not testable here",                                                   \
      "it would need training on ImageNet or COCO, or hardware, which this command does not have")

#define VERDICT_ENTRY(code, name, description) code,
typedef enum { VERDICT_LIST(VERDICT_ENTRY) VERDICT_COUNT } verdict_kind;
#undef VERDICT_ENTRY

const char *verdict_name(verdict_kind kind);
const char *verdict_description(verdict_kind kind);

typedef enum { CERTIFIED_NOT_NEEDED, CERTIFIED_YES, CERTIFIED_NO } certified_state;

const char *certified_name(certified_state state); /* "not needed", "yes", "no" */

/* Texts are one line each, in plain Unicode; null until set. */
typedef struct {
    verdict_kind kind;
    char *condition;      /* for "holds if" alone: the condition that the paper does not state */
    char *measured;       /* the numbers; for "observed" also the observation */
    char *bound;          /* what they are compared with */
    char *would_test;     /* if it cannot be tested here: what would decide it */
    char *counterexample; /* the smallest one, complete enough to be redone by hand */
    /* Whether rounding could be the cause, and if so what ball or rational arithmetic proves. */
    certified_state certified;
    char *certificate;
    FILE *notes; /* Markdown for the report: tables, and what a reader should know */
    char *notes_text;
    size_t notes_size;
} verdict;

void verdict_open(verdict *v);
void verdict_close(verdict *v); /* notes_text is complete after it */
void verdict_free(verdict *v);

/* Replaces one of the texts of a verdict. */
void verdict_set(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What an incomplete verdict lacks: a condition, numbers, a counterexample, ...; null if it is
 * complete. */
const char *verdict_lacks(const verdict *v);

#endif
