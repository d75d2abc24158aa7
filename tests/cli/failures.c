/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into the program (LD_PRELOAD): calls of the C library fail as they do on a machine that
 * has run out of memory, disk or processes. FAILURE is KIND:K, the K-th call of that kind from main
 * on, or KIND:K+, that one and all after it. FAILURE_COUNT names a file that gets the number of
 * calls of each kind. Calls of malloc inside libc and other libraries count too; programs that the
 * program starts are left alone. It needs glibc. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { MEMORY, FILES, PROCESSES, KINDS };
static const char *const kinds[KINDS] = {"memory", "files", "processes"};

static atomic_long calls[KINDS];
static int failing = KINDS;
static long first;
static bool and_all_after, in_main;

/* Counts a call; whether it fails, errno set. */
static bool fails(int kind, int reason)
{
    if (!in_main)
        return false;
    long number = ++calls[kind];
    if (kind != failing || number < first || (number > first && !and_all_after))
        return false;
    errno = reason;
    return true;
}

static void read_failure(const char *text)
{
    char kind[16], more = '\0';
    if (!text)
        return;
    if (sscanf(text, "%15[a-z]:%ld%c", kind, &first, &more) < 2)
        abort();
    and_all_after = more == '+';
    for (failing = 0; failing < KINDS && strcmp(kinds[failing], kind) != 0; failing++)
        continue;
}

static char *count_path;

static void write_counts(void)
{
    in_main = false;
    FILE *file = fopen(count_path, "w");
    for (int i = 0; file && i < KINDS; i++)
        fprintf(file, "%s %ld\n", kinds[i], (long)calls[i]);
    if (file)
        fclose(file);
}

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **environment)
{
    read_failure(getenv("FAILURE"));
    count_path = getenv("FAILURE_COUNT");
    if (count_path)
        atexit(write_counts);
    unsetenv("LD_PRELOAD");
    in_main = true;
    return real_main(argc, argv, environment);
}

/* What libc and other libraries do before main is not the program's. */
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*finish)(void), void (*linker_finish)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*finish)(void), void (*linker_finish)(void), void *stack_end)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                void (*)(void), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return real(counted_main, argc, argv, init, finish, linker_finish, stack_end);
}

/* ---- Memory: dlsym itself allocates, so these go to glibc by its own names ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails(MEMORY, ENOMEM) ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *taken = memalign(alignment, size);
    if (!taken)
        return ENOMEM;
    *memory = taken;
    return 0;
}

/* ---- Files and processes ---- */

/* Defines a function that fails with `failed` and `reason`, or does what the next one does. */
#define WRAP(kind, reason, type, failed, name, parameters, arguments)                              \
    type name parameters;                                                                          \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*next) parameters;                                                             \
        if (fails(kind, reason))                                                                   \
            return failed;                                                                         \
        if (!next)                                                                                 \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                             \
        return next arguments;                                                                     \
    }

/* Not what the kernel says of the machine, which the program can do without. */
static bool is_of_disk(const char *path)
{
    return strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0;
}

#define WRAP_OPEN(name, before, given)                                                             \
    int name(before const char *path, int flags, ...);                                             \
    int name(before const char *path, int flags, ...)                                              \
    {                                                                                              \
        static int (*next)(before const char *, int, mode_t);                                      \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;                                  \
        va_end(more);                                                                              \
        if (is_of_disk(path) && fails(FILES, EIO))                                                 \
            return -1;                                                                             \
        if (!next)                                                                                 \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                             \
        return next(given path, flags, mode);                                                      \
    }

#define NO_MORE
#define FOLDER       int folder,
#define FOLDER_GIVEN folder,
WRAP_OPEN(open, NO_MORE, NO_MORE)
WRAP_OPEN(open64, NO_MORE, NO_MORE)
WRAP_OPEN(openat, FOLDER, FOLDER_GIVEN)
WRAP_OPEN(openat64, FOLDER, FOLDER_GIVEN)
WRAP(FILES, EIO, FILE *, NULL, fdopen, (int file, const char *mode), (file, mode))
WRAP(FILES, EIO, DIR *, NULL, fdopendir, (int file), (file))
WRAP(FILES, EIO, ssize_t, -1, read, (int file, void *to, size_t size), (file, to, size))
WRAP(FILES, EIO, ssize_t, -1, pread64, (int file, void *to, size_t size, off64_t at),
     (file, to, size, at))
WRAP(FILES, ENOSPC, ssize_t, -1, write, (int file, const void *from, size_t size),
     (file, from, size))
WRAP(FILES, EIO, int, -1, fsync, (int file), (file))
WRAP(FILES, EIO, int, -1, fdatasync, (int file), (file))
WRAP(FILES, ENOSPC, int, -1, rename, (const char *from, const char *to), (from, to))
WRAP(FILES, ENOSPC, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(FILES, ENOSPC, char *, NULL, mkdtemp, (char *path), (path))
WRAP(FILES, EIO, int, -1, ftruncate, (int file, off_t size), (file, size))
WRAP(FILES, EIO, int, -1, ftruncate64, (int file, off64_t size), (file, size))
WRAP(PROCESSES, EAGAIN, pid_t, -1, fork, (void), ())
WRAP(PROCESSES, EMFILE, int, -1, pipe, (int ends[2]), (ends))
WRAP(PROCESSES, EMFILE, int, -1, pipe2, (int ends[2], int flags), (ends, flags))
WRAP(PROCESSES, EAGAIN, int, EAGAIN, pthread_create,
     (pthread_t * thread, const pthread_attr_t *how, void *(*body)(void *), void *argument),
     (thread, how, body, argument))

#define WRAP_FOPEN(name)                                                                           \
    FILE *name(const char *path, const char *mode)                                                 \
    {                                                                                              \
        static FILE *(*next)(const char *, const char *);                                          \
        if (is_of_disk(path) && fails(FILES, EIO))                                                 \
            return NULL;                                                                           \
        if (!next)                                                                                 \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                             \
        FILE *file = next(path, mode);                                                             \
        of_machine = is_of_disk(path) ? of_machine : file;                                         \
        return file;                                                                               \
    }

static _Thread_local FILE *of_machine;
WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)

/* A write or a read that fails inside stdio sets the error flag of the stream. */
enum { GLIBC_ERROR_FLAG = 0x20 };

static bool stream_fails(FILE *file, int reason)
{
    bool failed = file && file != of_machine && fails(FILES, reason);
    if (failed)
        file->_flags |= GLIBC_ERROR_FLAG;
    return failed;
}

int fflush(FILE *file)
{
    static int (*next)(FILE *);
    if (stream_fails(file, ENOSPC))
        return EOF;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fflush");
    return next(file);
}

size_t fread(void *to, size_t size, size_t count, FILE *file)
{
    static size_t (*next)(void *, size_t, size_t, FILE *);
    if (stream_fails(file, EIO))
        return 0;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fread");
    return next(to, size, count, file);
}

char *fgets(char *to, int size, FILE *file)
{
    static char *(*next)(char *, int, FILE *);
    if (stream_fails(file, EIO))
        return NULL;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fgets");
    return next(to, size, file);
}
