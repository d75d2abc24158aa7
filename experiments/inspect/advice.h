/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about the measurements. Each rule of a table makes a sentence from numbers, and quotes
 * them. */
#ifndef EXPERIMENTS_INSPECT_ADVICE_H
#define EXPERIMENTS_INSPECT_ADVICE_H

#include <stdio.h>

#include "inspect/facts.h"

typedef enum { ADVICE_WARNING, ADVICE_TIP, ADVICE_FINE } advice_level;

/* A number on which a sentence is based; batch, head and m are NaN if it belongs to all. */
typedef struct {
    double batch, head, m;
    const char *of, *name; /* an inverse, a precision or a sampling; null: the matrix itself */
    double value;
} advice_number;

enum { ADVICE_NUMBERS = 16 };

typedef struct {
    const char *rule;  /* its name in the table */
    const char *basis; /* measured, predicted or certified */
    advice_level level;
    char *text;
    int number_count;
    advice_number numbers[ADVICE_NUMBERS];
} advice_line;

enum { ADVICE_RULES = 13 };

/* At most one line for each rule. Returns the number of lines; warnings come first, then tips. */
int advice_make(const inspection_list *list, advice_line lines[ADVICE_RULES]);
void advice_free(int count, advice_line *lines);

/* The setting of the first line, the conclusion: a type, a sampling (-1: the main one) and a number
 * of steps of the papers' iteration. It says whether A can be inverted with these. */
typedef struct {
    int precision, sampling, steps;
} inspect_setting;
advice_line advice_conclude(const inspection_list *list, const inspect_setting *setting);

const char *advice_level_name(advice_level level); /* "warning", "tip", "fine" */
/* "No warnings: ..." or how many warnings there are. To be freed. */
char *advice_headline(int count, const advice_line *lines);
void advice_print(int count, const advice_line *lines, FILE *file);

/* Whether the best residual is at most inspect_safe_residual. */
bool advice_is_safe(const precision_facts *p);

#endif
