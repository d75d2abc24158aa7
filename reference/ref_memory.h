/* SPDX-License-Identifier: BSD-3-Clause */
/* How reference/ allocates memory, and how it ends the program when it cannot continue. A program
 * may replace both functions. */
#ifndef REFERENCE_REF_MEMORY_H
#define REFERENCE_REF_MEMORY_H

#include <stddef.h>

/* allocate: as calloc, which is the default; end: does not return, and the default is abort. */
void ref_memory(void *(*allocate)(size_t count, size_t size), void (*end)(const char *why));

/* count * size zero bytes, at least one, to be freed by the caller. */
void *ref_take(size_t count, size_t size);

_Noreturn void ref_give_up(const char *why);

#endif
