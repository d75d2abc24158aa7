/* SPDX-License-Identifier: BSD-3-Clause */
/* Journals and shards guard each part of the file by a sum that no mutation hits. */
#ifndef TESTS_FUZZ_SEALED_H
#define TESTS_FUZZ_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of a file of all but the first byte, which is 's' where sums are to be set right. */
const char *sealed_file(const uint8_t *data, size_t size);

#endif
