/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref_memory.h"

#include <stdlib.h>

static void *(*allocate_memory)(size_t count, size_t size) = calloc;
static void (*end_program)(const char *why);

void ref_memory(void *(*allocate)(size_t count, size_t size), void (*end)(const char *why))
{
    allocate_memory = allocate;
    end_program = end;
}

void *ref_take(size_t count, size_t size)
{
    return allocate_memory(count ? count : 1, size);
}

void ref_give_up(const char *why)
{
    if (end_program)
        end_program(why);
    abort();
}
