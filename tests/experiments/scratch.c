/* SPDX-License-Identifier: BSD-3-Clause */
#include "scratch.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[4096];
static int true_stderr = -1;
static FILE *collected;

static void must(bool done, const char *what)
{
    if (!done) {
        perror(what);
        abort();
    }
}

void scratch_begin(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/attnum-test-XXXXXX", parent && *parent ? parent : "/tmp");
    must(mkdtemp(folder) != NULL, "mkdtemp");
    must(chdir(folder) == 0, folder);
}

static void empty_folder(const char *path)
{
    DIR *open = opendir(path);
    must(open != NULL, path);
    struct dirent *entry;
    while ((entry = readdir(open))) {
        char inner[8192];
        struct stat status;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (lstat(inner, &status) == 0 && S_ISDIR(status.st_mode)) {
            empty_folder(inner);
            rmdir(inner);
        } else {
            unlink(inner);
        }
    }
    closedir(open);
}

void scratch_end(void)
{
    must(chdir("/") == 0, "/");
    empty_folder(folder);
    must(rmdir(folder) == 0, folder);
}

void scratch_write(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    must(file != NULL, name);
    must(fwrite(bytes, 1, size, file) == size && fclose(file) == 0, name);
}

unsigned char *scratch_read(const char *path, size_t *size)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    must(file != NULL && fstat(fileno(file), &status) == 0, path);
    *size = (size_t)status.st_size;
    unsigned char *bytes = malloc(*size + 1);
    must(bytes != NULL && fread(bytes, 1, *size, file) == *size, path);
    bytes[*size] = 0;
    fclose(file);
    return bytes;
}

void capture(void)
{
    fflush(stderr);
    if (true_stderr < 0)
        true_stderr = dup(STDERR_FILENO);
    collected = tmpfile();
    must(true_stderr >= 0 && collected != NULL, "a file for stderr");
    dup2(fileno(collected), STDERR_FILENO);
}

const char *captured(void)
{
    static char text[16384];
    fflush(stderr);
    dup2(true_stderr, STDERR_FILENO);
    rewind(collected);
    text[fread(text, 1, sizeof text - 1, collected)] = 0;
    fclose(collected);
    return text;
}

static char *written;
static size_t written_size;

FILE *begin_text(void)
{
    FILE *file = open_memstream(&written, &written_size);
    cr_assert(file);
    return file;
}

char *end_text(FILE *file)
{
    fclose(file);
    return written;
}

void expect_written(FILE *file, const char *want)
{
    char *text = end_text(file);
    cr_expect(strcmp(text, want) == 0, "%s, expected:\n%s", text, want);
    free(text);
}

bool is_one_line_with(const char *text, const char *fragment)
{
    const char *newline = strchr(text, '\n');
    return strncmp(text, "attnum: ", 8) == 0 && newline && !newline[1] &&
           strstr(text, fragment) != NULL;
}
