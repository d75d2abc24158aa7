/* SPDX-License-Identifier: BSD-3-Clause */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

int files_sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? must_format("%.*s", (int)(slash - path) + 1, path) : must_format(".");
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EACCES: a folder that may not be listed; EINVAL: a file system without fsync */
    bool synced = file >= 0 ? fsync(file) == 0 || errno == EINVAL : errno == EACCES;
    if (!synced)
        report_error("%s: cannot write this folder to the disk: %s", folder, strerror(errno));
    if (file >= 0)
        close(file);
    free(folder);
    return synced ? EXIT_PASS : EXIT_ENVIRONMENT;
}

static int make_one_folder(const char *path)
{
    struct stat status;
    if (mkdir(path, 0777) == 0)
        return files_sync_folder_of(path);
    if (errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return EXIT_PASS;
    report_error("%s: cannot make this folder: %s", path,
                 errno == EEXIST ? "a file has its name" : strerror(errno));
    return EXIT_ENVIRONMENT;
}

int files_make_folder(const char *path)
{
    char *partial = must_format("%s", path);
    int code = EXIT_PASS;
    for (char *end = partial + 1; code == EXIT_PASS && *partial && *end; end++) {
        if (*end != '/')
            continue;
        *end = '\0';
        code = make_one_folder(partial);
        *end = '/';
    }
    if (code == EXIT_PASS)
        code = make_one_folder(partial);
    free(partial);
    return code;
}

/* Empties a folder that is open, and closes it. */
static void empty_folder(int file)
{
    DIR *folder = fdopendir(file);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            unlinkat(file, entry->d_name, 0) == 0)
            continue;
        /* a link that cannot be removed is not followed */
        int subfolder =
            openat(file, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (subfolder >= 0)
            empty_folder(subfolder);
        unlinkat(file, entry->d_name, AT_REMOVEDIR);
    }
    if (folder)
        closedir(folder);
    else
        close(file);
}

bool files_remove_folder(const char *path)
{
    int file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file >= 0)
        empty_folder(file);
    return rmdir(path) == 0 || errno == ENOENT;
}

/* ---- Reading ---- */

int files_open_descriptor(const char *path, const char *expected)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool regular = file >= 0 && fstat(file, &status) == 0;
    const char *wrong = !regular                   ? strerror(errno)
                        : !S_ISREG(status.st_mode) ? "not a regular file"
                                                   : NULL;
    if (!wrong)
        return file;
    if (expected)
        report_error("%s: %s, expected %s", path, wrong, expected);
    if (file >= 0)
        close(file);
    return -1;
}

FILE *files_open(const char *path, const char *expected)
{
    int descriptor = files_open_descriptor(path, expected);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "rb") : NULL;
    if (descriptor >= 0 && !file) {
        report_error("%s: %s, expected %s", path, strerror(errno), expected);
        close(descriptor);
    }
    return file;
}

char *files_read_descriptor(const char *path, int file, size_t *size)
{
    struct stat status;
    ssize_t got = fstat(file, &status);
    size_t expected = got == 0 && status.st_size > 0 ? (size_t)status.st_size : 0;
    char *text = must_allocate(expected + 1, 1);
    for (*size = 0; got >= 0 && *size < expected; *size += (size_t)got) {
        do
            got = pread(file, text + *size, expected - *size, (off_t)*size);
        while (got < 0 && errno == EINTR);
        if (got == 0)
            break;
    }
    if (got >= 0)
        return text;
    report_error("%s: cannot read: %s", path, strerror(errno));
    free(text);
    return NULL;
}

char *files_read(const char *path, const char *expected, size_t *size)
{
    int file = files_open_descriptor(path, expected);
    char *text = file >= 0 ? files_read_descriptor(path, file, size) : NULL;
    if (file >= 0)
        close(file);
    return text;
}

/* ---- Files of which there is one writer ---- */

/* Whether the file is ours alone: not a link to another file, not a pipe, and not owned by another
 * user. */
static bool is_own_file(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_nlink == 1 && status->st_uid == geteuid();
}

static int report_path(const char *path, const char *what)
{
    report_error("%s: cannot %s: %s", path, what, strerror(errno));
    return EXIT_ENVIRONMENT;
}

/* Locks the file, unless another process keeps its lock for two seconds: a run that was killed
 * leaves it, for a moment, to a child that it had forked, until that has been killed, too, or runs
 * its own program. A file system without locks counts as locked. */
static bool lock_file(int file)
{
    enum { ATTEMPTS = 200 };
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int locked = -1;
    for (int attempt = 0; locked != 0 && attempt < ATTEMPTS; attempt++) {
        if (attempt > 0)
            nanosleep(&pause, NULL);
        locked = flock(file, LOCK_EX | LOCK_NB);
        if (locked != 0 && errno != EWOULDBLOCK && errno != EINTR)
            return true;
    }
    return locked == 0;
}

/* One attempt; *done: no further attempt is needed. final: null, or the name that the file will be
 * renamed to, so that any other file of this name may be removed. */
static int try_locked(const char *path, const char *final, int *file, bool *done)
{
    const char *name = final ? final : path;
    struct stat ours, there;
    *done = true;
    *file = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (*file < 0 && (errno != ELOOP || !final))
        return report_path(name, "write");
    if (*file >= 0) {
        if (!lock_file(*file)) {
            report_error("%s: another run is writing here; wait for it or choose another place",
                         name);
            return EXIT_ENVIRONMENT;
        }
        if (fstat(*file, &ours) != 0)
            return report_path(name, "read");
        *done =
            lstat(path, &there) == 0 && there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
        if (!*done || is_own_file(&ours) || (!final && S_ISREG(ours.st_mode)))
            return EXIT_PASS;
        if (!final) {
            report_error("%s: expected a file", name);
            return EXIT_ENVIRONMENT;
        }
    }
    *done = false;
    return unlink(path) == 0 ? EXIT_PASS : report_path(name, "write");
}

enum { MOST_ATTEMPTS = 1000 };

/* Another run may remove or rename the file after it was opened and before it is locked: the lock
 * is then on a file that nobody else can find. */
static int open_locked(const char *path, const char *final, int *file)
{
    bool done = false;
    int code = EXIT_PASS;
    for (int attempt = 0; code == EXIT_PASS && !done; attempt++) {
        if (attempt == MOST_ATTEMPTS) {
            report_error("%s: other runs keep removing it; choose another place",
                         final ? final : path);
            return EXIT_ENVIRONMENT;
        }
        code = try_locked(path, final, file, &done);
        if ((code != EXIT_PASS || !done) && *file >= 0) {
            close(*file);
            *file = -1;
        }
    }
    return code;
}

int files_open_locked(const char *path, int *file)
{
    return open_locked(path, NULL, file);
}

/* ---- Files that are complete or do not exist ---- */

/* The most files under temporary names; a program that is killed leaves others behind. */
enum { MOST_TEMPORARIES = 64 };
static _Atomic(const char *) temporaries[MOST_TEMPORARIES];
static pid_t owner; /* the process that made them, as opposed to a forked child */

static void remember(const char *path)
{
    const char *none = NULL;
    owner = getpid();
    for (int i = 0; i < MOST_TEMPORARIES; i++, none = NULL)
        if (atomic_compare_exchange_strong(&temporaries[i], &none, path))
            return;
}

static void forget(const char *path)
{
    for (int i = 0; i < MOST_TEMPORARIES; i++) {
        const char *same = path;
        atomic_compare_exchange_strong(&temporaries[i], &same, NULL);
    }
}

void new_files_remove(void)
{
    for (int i = 0; i < MOST_TEMPORARIES && owner == getpid(); i++)
        if (temporaries[i])
            unlink(temporaries[i]);
}

int new_file_open(new_file *f, const char *folder, const char *name)
{
    *f = (new_file){.final = must_format("%s/%s", folder, name), .lock = -1};
    char *temporary = must_format("%s/.%s.tmp", folder, name);
    int code = open_locked(temporary, f->final, &f->lock);
    if (code != EXIT_PASS) {
        free(temporary);
        return code;
    }
    f->temporary = temporary;
    remember(temporary);
    int copy = ftruncate(f->lock, 0) == 0 ? fcntl(f->lock, F_DUPFD_CLOEXEC, 0) : -1;
    f->file = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (f->file)
        return EXIT_PASS;
    code = report_path(f->final, "write");
    if (copy >= 0)
        close(copy);
    return code;
}

int new_file_open_path(new_file *f, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == path ? must_format("/")
                   : slash       ? must_format("%.*s", (int)(slash - path), path)
                                 : must_format(".");
    int code = new_file_open(f, folder, slash ? slash + 1 : path);
    free(folder);
    return code;
}

int new_file_close(new_file *f)
{
    FILE *file = f->file;
    f->file = NULL;
    bool written = fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
    int reason = errno;
    bool closed = fclose(file) == 0;
    if (written && closed)
        return EXIT_PASS;
    if (!written)
        errno = reason;
    return report_path(f->final, "write");
}

int new_file_publish(new_file *f)
{
    if (rename(f->temporary, f->final) != 0)
        return report_path(f->final, "rename to this");
    forget(f->temporary);
    free(f->temporary);
    f->temporary = NULL;
    return files_sync_folder_of(f->final);
}

void new_file_free(new_file *f)
{
    if (!f->final) /* never opened */
        return;
    if (f->file)
        fclose(f->file);
    if (f->temporary) {
        unlink(f->temporary);
        forget(f->temporary);
    }
    if (f->lock >= 0)
        close(f->lock);
    free(f->temporary);
    free(f->final);
    *f = (new_file){0};
}
