/* SPDX-License-Identifier: BSD-3-Clause */
/* PROGRAM FOLDER: runs the target on each file of a folder, in place of libFuzzer. Fails if there
 * is none. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/report.h"
#include "target.h"

enum { MOST_BYTES = 65536 };

static bool run_file(const char *folder, const char *name)
{
    static uint8_t data[MOST_BYTES];
    char *path = must_format("%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    bool good = file != NULL;
    if (good) {
        size_t size = fread(data, 1, sizeof data, file);
        good = !ferror(file) && size < sizeof data;
        fclose(file);
        /* a copy of its own size, so that a sanitizer sees what is read past its end */
        uint8_t *exact = must_allocate(size, 1);
        for (size_t i = 0; i < size; i++)
            exact[i] = data[i];
        printf("%s\n", name);
        fflush(stdout); /* the last name is the culprit's */
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    free(path);
    return good;
}

int main(int argc, char **argv)
{
    int count = 0, failed = 0;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return EXIT_USAGE;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            count++;
            failed += !run_file(argv[1], entry->d_name);
        }
    closedir(folder);
    printf("%d files, %d could not be read\n", count, failed);
    return count > 0 && failed == 0 ? EXIT_PASS : EXIT_CHECK;
}
