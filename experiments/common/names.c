/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

int names_find(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    return -1;
}

enum { LONGEST = 64 };

/* Levenshtein's distance, in which two neighbours that are swapped count as one change, too; texts
 * longer than LONGEST count as distant. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows = strlen(a), cols = strlen(b), d[LONGEST + 1][LONGEST + 1];
    if (rows > LONGEST || cols > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j <= cols; j++) {
            size_t best = i == 0 ? j : d[i - 1][j] + 1;
            if (i > 0 && j > 0 && d[i - 1][j - 1] + (a[i - 1] != b[j - 1]) < best)
                best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (j > 0 && d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[rows][cols];
}

/* A name that contains the text, or one of which at most half the letters would have to change; or
 * null. */
static const char *nearest(const char *const *names, const char *text)
{
    const char *found = NULL;
    size_t least = LONGEST;
    for (int i = 0; names[i]; i++) {
        size_t distance = edit_distance(names[i], text);
        if (strlen(text) >= 3 && strstr(names[i], text))
            distance = 1;
        if (distance < least && 2 * distance <= strlen(names[i])) {
            least = distance;
            found = names[i];
        }
    }
    return found;
}

char *names_expected(const char *const *names, const char *text)
{
    char *all = must_format("expected one of");
    for (int i = 0; names[i]; i++) {
        char *longer = must_format("%s%s %s", all, i ? "," : "", names[i]);
        free(all);
        all = longer;
    }
    const char *near = nearest(names, text);
    if (!near)
        return all;
    char *hint = must_format("%s (did you mean %s?)", all, near);
    free(all);
    return hint;
}

bool name_ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}
