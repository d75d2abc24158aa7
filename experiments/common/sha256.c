/* SPDX-License-Identifier: BSD-3-Clause */
#include "sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "report.h"

int sha256_add_file(struct sha256_ctx *state, const char *path)
{
    FILE *file = files_open(path, "a readable file");
    if (!file)
        return EXIT_ENVIRONMENT;
    uint8_t block[16384];
    size_t count;
    while ((count = fread(block, 1, sizeof block, file)) > 0)
        sha256_update(state, count, block);
    int failed = ferror(file);
    if (failed)
        report_error("%s: %s, expected a readable file", path, strerror(errno));
    fclose(file);
    return failed ? EXIT_ENVIRONMENT : EXIT_PASS;
}

void sha256_hex(struct sha256_ctx *state, char hex[SHA256_HEX_SIZE])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(state, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}
