/* SPDX-License-Identifier: BSD-3-Clause */
#include "allocator.h"

#include <stdlib.h>
#include <string.h>

/* Requests over this get null, as on any machine the tests run on. */
static const size_t most_bytes = (size_t)1 << 36;

/* Before each block its size, after it END bytes of filling. */
enum { ALIGNMENT = 64, END = 64, FILL = 0xff, END_FILL = 0xa5 };

static void *allocate(void *user, size_t bytes)
{
    allocator_counts *counts = user;
    if (++counts->calls == counts->fail_at || bytes > most_bytes)
        return NULL;
    size_t whole = (ALIGNMENT + bytes + END + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    unsigned char *memory = aligned_alloc(ALIGNMENT, whole);
    if (!memory)
        return NULL;
    memcpy(memory, &bytes, sizeof bytes);
    memset(memory + ALIGNMENT, FILL, bytes);
    memset(memory + ALIGNMENT + bytes, END_FILL, END);
    counts->live++;
    counts->last_bytes = bytes;
    return memory + ALIGNMENT;
}

static void release(void *user, void *block)
{
    allocator_counts *counts = user;
    unsigned char *memory = (unsigned char *)block - ALIGNMENT, end[END];
    size_t bytes;
    memcpy(&bytes, memory, sizeof bytes);
    memset(end, END_FILL, END);
    counts->overruns += memcmp(memory + ALIGNMENT + bytes, end, END) != 0;
    counts->live--;
    free(memory);
}

atn_allocator allocator_counting(allocator_counts *counts)
{
    return (atn_allocator){allocate, release, counts};
}
