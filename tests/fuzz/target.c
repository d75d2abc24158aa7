/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const char *target_file(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0)
        file = memfd_create("input", 0);
    target_expect(file >= 0 && ftruncate(file, 0) == 0 &&
                      pwrite(file, data, size, 0) == (ssize_t)size,
                  "a file in memory can be written");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

void target_expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}
