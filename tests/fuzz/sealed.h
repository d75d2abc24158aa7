/* SPDX-License-Identifier: BSD-3-Clause */
/* Journals and shards have a checksum for each part of the file, which mutations would break. */
#ifndef TESTS_FUZZ_SEALED_H
#define TESTS_FUZZ_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of a file with all bytes but the first; if that is 's', its checksums are corrected. */
const char *sealed_file(const uint8_t *data, size_t size);

#endif
