/* SPDX-License-Identifier: BSD-3-Clause */
/* How reference/ takes memory, and how it ends where it cannot continue. A program may set its
 * own way for both. */
#ifndef REFERENCE_REF_MEMORY_H
#define REFERENCE_REF_MEMORY_H

#include <stddef.h>

/* allocate: as calloc, which is the default; end: does not return, and the default is abort. */
void ref_memory(void *(*allocate)(size_t count, size_t size), void (*end)(const char *why));

/* count * size zero bytes, one at least, to be freed. */
void *ref_take(size_t count, size_t size);

_Noreturn void ref_give_up(const char *why);

#endif
