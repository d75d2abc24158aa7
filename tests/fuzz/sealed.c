/* SPDX-License-Identifier: BSD-3-Clause */
#include "sealed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "target.h"

enum { SUM_DIGITS = 16 };

/* FNV-1a, as journal.h has it. */
static uint64_t add_to_sum(uint64_t sum, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Rewrites the sum of the part whose first line starts at `line`; `left` bytes are there. */
static void seal_part(char *line, size_t left)
{
    size_t bytes;
    char digits[SUM_DIGITS + 1];
    char *end = memchr(line, '\n', left);
    if (!end || end - line < SUM_DIGITS + 5 || memcmp(end - SUM_DIGITS - 5, " sum ", 5) != 0 ||
        (sscanf(line, "point %*d code %*d rows %*d bytes %zu", &bytes) != 1 &&
         sscanf(line, "shard %*d of %*d bytes %zu", &bytes) != 1) ||
        bytes > left - (size_t)(end + 1 - line))
        return;
    uint64_t sum =
        add_to_sum(UINT64_C(0xcbf29ce484222325), line, (size_t)(end - SUM_DIGITS - 5 - line));
    snprintf(digits, sizeof digits, "%016" PRIx64, add_to_sum(sum, end + 1, bytes));
    memcpy(end - SUM_DIGITS, digits, SUM_DIGITS);
}

const char *sealed_file(const uint8_t *data, size_t size)
{
    char *text = must_allocate(size, 1);
    bool seal = size > 0 && data[0] == 's';
    if (size > 0)
        memcpy(text, data + 1, --size);
    for (size_t i = 0; seal && i + 6 < size; i++)
        if (memcmp(text + i, "point ", 6) == 0 || memcmp(text + i, "shard ", 6) == 0)
            seal_part(text + i, size - i);
    const char *path = target_file((const uint8_t *)text, size);
    free(text);
    return path;
}
