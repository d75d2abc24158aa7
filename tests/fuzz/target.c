/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

const char *target_file(const uint8_t *data, size_t size)
{
    static int file = -1;
    if (file < 0) {
        snprintf(path, sizeof path, "/dev/shm/attnum-fuzz-%ld", (long)getpid());
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        atexit(remove_file);
    }
    target_expect(file >= 0 && ftruncate(file, 0) == 0 &&
                      pwrite(file, data, size, 0) == (ssize_t)size,
                  "a file in memory can be written");
    return path;
}

void target_expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}
