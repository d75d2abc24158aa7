/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 of files, through Nettle. */
#ifndef EXPERIMENTS_SHA256_H
#define EXPERIMENTS_SHA256_H

#include <nettle/sha2.h>

enum { SHA256_HEX_SIZE = 2 * SHA256_DIGEST_SIZE + 1 };

/* Feeds a file's bytes to `state`. Returns an exit code; on failure one line on stderr. */
int sha256_add_file(struct sha256_ctx *state, const char *path);

/* Lower-case hexadecimal, as sha256sum prints it; resets `state`. */
void sha256_hex(struct sha256_ctx *state, char hex[SHA256_HEX_SIZE]);

#endif
