/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds a name in a list, and reports one that is not in it. Lists of names end with null. */
#ifndef EXPERIMENTS_NAMES_H
#define EXPERIMENTS_NAMES_H

#include <stdbool.h>

/* A macro's number as text, for help. */
#define TEXT_OF(number)    TEXT_OF_IT(number)
#define TEXT_OF_IT(number) #number

/* The index of text in names, or -1. */
int names_find(const char *const *names, const char *text);

/* "expected one of a, b, c", and the nearest name if one is near. To be freed. */
char *names_expected(const char *const *names, const char *text);

/* Whether a name has this ending, for instance ".npz". */
bool name_ends_with(const char *name, const char *end);

#endif
