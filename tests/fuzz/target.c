/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES = 2, PATH_SIZE = 64 };
static char paths[FILES][PATH_SIZE];
static int files[FILES];

static void remove_files(void)
{
    for (int i = 0; i < FILES; i++)
        if (*paths[i])
            unlink(paths[i]);
}

/* Makes file i unless it exists. */
static void open_file(int i)
{
    if (*paths[i])
        return;
    if (!*paths[!i])
        atexit(remove_files);
    snprintf(paths[i], PATH_SIZE, "/dev/shm/attnum-fuzz-%ld-%d", (long)getpid(), i);
    files[i] = open(paths[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    target_expect(files[i] >= 0, "a file in memory can be made");
}

const char *target_file(const uint8_t *data, size_t size)
{
    open_file(0);
    target_expect(ftruncate(files[0], 0) == 0 && pwrite(files[0], data, size, 0) == (ssize_t)size,
                  "a file in memory can be written");
    return paths[0];
}

const char *target_empty_file(void)
{
    open_file(1);
    return paths[1];
}

void target_expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}
