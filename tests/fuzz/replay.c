/* SPDX-License-Identifier: BSD-3-Clause */
/* PROGRAM FOLDER [twice]: runs the target on each file of a folder, in place of libFuzzer; twice:
 * then in two threads at once, for targets that keep nothing from one call to the next. (Not at
 * first: LLVM 14's OpenMP makes the lock of a reduction where it is first met, and may crash, in
 * __kmpc_end_critical, where two threads do so together.) Fails if there is no file. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "target.h"

enum { MOST_BYTES = 65536 };

static struct {
    uint8_t data[MOST_BYTES];
    size_t size;
} input;

/* On a copy of exactly its size, so that a sanitizer sees what is read past its end. */
static void *run_target(void *unused)
{
    (void)unused;
    uint8_t *exact = must_allocate(input.size, 1);
    memcpy(exact, input.data, input.size);
    LLVMFuzzerTestOneInput(exact, input.size);
    free(exact);
    return NULL;
}

static bool run_file(const char *folder, const char *name, bool twice)
{
    char *path = must_format("%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    bool good = file != NULL;
    if (good) {
        pthread_t other;
        input.size = fread(input.data, 1, sizeof input.data, file);
        good = !ferror(file) && input.size < sizeof input.data;
        fclose(file);
        printf("%s\n", name);
        fflush(stdout); /* the last name is the culprit's */
        run_target(NULL);
        if (twice && pthread_create(&other, NULL, run_target, NULL) == 0) {
            run_target(NULL);
            pthread_join(other, NULL);
        }
    }
    free(path);
    return good;
}

int main(int argc, char **argv)
{
    int count = 0, failed = 0;
    bool twice = argc == 3 && strcmp(argv[2], "twice") == 0;
    DIR *folder = argc == 2 || twice ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER [twice]\n", argv[0]);
        return EXIT_USAGE;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            count++;
            failed += !run_file(argv[1], entry->d_name, twice);
        }
    closedir(folder);
    printf("%d files, %d could not be read\n", count, failed);
    return count > 0 && failed == 0 ? EXIT_PASS : EXIT_CHECK;
}
