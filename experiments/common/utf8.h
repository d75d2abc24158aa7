/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPERIMENTS_UTF8_H
#define EXPERIMENTS_UTF8_H

#include <stddef.h>

/* The length of the UTF-8 sequence at text, or 0 if there is none. */
size_t utf8_length(const char *text);

#endif
