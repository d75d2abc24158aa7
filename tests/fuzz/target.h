/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parsers of files and words that anyone may have written are fed, and the operators: one
 * function per program, which libFuzzer calls with what it invents and replay.c with what is kept
 * in corpus/. It aborts when a promise of what it feeds does not hold. */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0; libFuzzer's name and form. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The path of a file that holds these bytes and lies in memory; there until the next call. */
const char *target_file(const uint8_t *data, size_t size);

/* The path of a file without a byte. */
const char *target_empty_file(void);

/* Aborts, saying what is wrong, unless it holds. */
void target_expect(int holds, const char *what);

#endif
