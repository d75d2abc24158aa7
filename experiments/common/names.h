/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding a name among the ones there are, and saying so if it is not one of them. Lists of names
 * end with null. */
#ifndef EXPERIMENTS_NAMES_H
#define EXPERIMENTS_NAMES_H

/* The index of text in names, or -1. */
int names_find(const char *const *names, const char *text);

/* "expected one of a, b, c", and the nearest name if one is near. To be freed. */
char *names_expected(const char *const *names, const char *text);

#endif
