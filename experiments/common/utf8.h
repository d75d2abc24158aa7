/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPERIMENTS_UTF8_H
#define EXPERIMENTS_UTF8_H

#include <stddef.h>

/* The length of the UTF-8 character at text, the NUL at its end included; 0 if there is none: RFC
 * 3629 has no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t utf8_length(const char *text);

#endif
