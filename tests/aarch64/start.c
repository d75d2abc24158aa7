/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded under user-mode emulation (scripts/test-aarch64). Criterion starts a process for each
 * test, and `attnum claims` one for each experiment; the emulator hands such a start to the kernel,
 * which cannot run the file unless it was told of the emulator (binfmt_misc). That takes root, and
 * containers rarely have it. So programs for aarch64 are started as
 *     $EMULATOR -L $EMULATOR_ROOT PROGRAM ARGUMENT...
 * and all others, such as gnuplot, as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_for_aarch64(const char *path)
{
    Elf64_Ehdr head = {0};
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(&head, sizeof head, 1, file) : 0;
    if (file)
        fclose(file);
    return count == 1 && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_machine == EM_AARCH64;
}

/* The command line in the emulator, for the life of the process; null if the memory or a variable
 * is missing. /proc/self/exe is resolved here: to the emulator's process it is the emulator. */
static char **emulated(const char *path, char *const arguments[])
{
    char *emulator = getenv("EMULATOR"), *root = getenv("EMULATOR_ROOT");
    char *real = realpath(path, NULL);
    char *const first[] = {emulator, "-L", root, real};
    size_t count = 0;
    while (arguments[count])
        count++;
    char **words = emulator && root && real ? calloc(count + 5, sizeof *words) : NULL;
    if (!words)
        return NULL;
    memcpy(words, first, sizeof first);
    for (size_t i = 1; i < count; i++)
        words[i + 3] = arguments[i];
    return words;
}

int execve(const char *path, char *const arguments[], char *const environment[])
{
    int (*start)(const char *, char *const *, char *const *);
    *(void **)&start = dlsym(RTLD_NEXT, "execve");
    if (!is_for_aarch64(path))
        return start(path, arguments, environment);
    char **words = emulated(path, arguments);
    if (!words) {
        errno = ENOMEM;
        return -1;
    }
    return start(words[0], words, environment);
}

/* Of a name without a slash PATH decides, and those are programs of this machine. */
int execvp(const char *file, char *const arguments[])
{
    int (*start)(const char *, char *const *);
    *(void **)&start = dlsym(RTLD_NEXT, "execvp");
    return strchr(file, '/') ? execve(file, arguments, environ) : start(file, arguments);
}

int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[],
                char *const environment[])
{
    int (*start)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                 const posix_spawnattr_t *, char *const *, char *const *);
    *(void **)&start = dlsym(RTLD_NEXT, "posix_spawn");
    if (!is_for_aarch64(path))
        return start(child, path, actions, attributes, arguments, environment);
    char **words = emulated(path, arguments);
    if (!words)
        return ENOMEM;
    return start(child, words[0], actions, attributes, words, environment);
}
