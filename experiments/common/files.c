/* SPDX-License-Identifier: BSD-3-Clause */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

int files_sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? must_format("%.*s", (int)(slash - path) + 1, path) : must_format(".");
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EACCES: a folder one may write to and not list; EINVAL: a file system that cannot */
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

void files_remove_folder(const char *path)
{
    /* a link that cannot be removed is not followed */
    int file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = file >= 0 ? fdopendir(file) : NULL;
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *inside = must_format("%s/%s", path, entry->d_name);
        if (unlink(inside) != 0)
            files_remove_folder(inside);
        free(inside);
    }
    if (folder)
        closedir(folder);
    rmdir(path);
}

void new_file_name(new_file *f, const char *folder, const char *name)
{
    *f = (new_file){.final = must_format("%s/%s", folder, name),
                    .temporary = must_format("%s/.%s.tmp", folder, name)};
}

static int report_file(const new_file *f, const char *what)
{
    report_error("%s: cannot %s: %s", f->final, what, strerror(errno));
    return EXIT_ENVIRONMENT;
}

int new_file_open(new_file *f, const char *folder, const char *name)
{
    new_file_name(f, folder, name);
    f->file = fopen(f->temporary, "w");
    return f->file ? EXIT_PASS : report_file(f, "write");
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
    return report_file(f, "write");
}

int new_file_publish(new_file *f)
{
    if (rename(f->temporary, f->final) != 0)
        return report_file(f, "rename to this");
    free(f->temporary);
    f->temporary = NULL;
    return files_sync_folder_of(f->final);
}

void new_file_free(new_file *f)
{
    if (f->file)
        fclose(f->file);
    if (f->temporary)
        unlink(f->temporary);
    free(f->temporary);
    free(f->final);
    *f = (new_file){0};
}
