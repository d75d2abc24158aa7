/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that never exist incomplete: they are written under a temporary name in the same folder,
 * flushed to the disk, then renamed. The temporary name is fixed, so that the next run reuses the
 * file that a killed one left; the file is locked, and links are not followed.
 *
 * Functions of type int return an exit code; on failure all have reported the reason. */
#ifndef EXPERIMENTS_FILES_H
#define EXPERIMENTS_FILES_H

#include <stdbool.h>
#include <stdio.h>

/* Makes a folder and its parents. */
int files_make_folder(const char *path);

/* Flushes the names in a file's folder to the disk: before that a crash may undo a rename. */
int files_sync_folder_of(const char *path);

/* Removes a folder and everything in it; true if it succeeded. Reports nothing, and may be called
 * in a forked child. */
bool files_remove_folder(const char *path);

/* Opens a regular file for reading; anything else might block forever or never end. -1 or null
 * after a failure, with a message that says what was expected, or without one if `expected` is
 * null. */
int files_open_descriptor(const char *path, const char *expected);
FILE *files_open(const char *path, const char *expected);
/* The contents of a regular file, followed by NUL, to be freed; failures likewise. */
char *files_read(const char *path, const char *expected, size_t *size);
char *files_read_descriptor(const char *path, int file, size_t *size);

/* Opens a file for reading and appending, creates it if necessary, and locks it against other calls
 * of this function, which wait for two seconds and then fail. Closing the last descriptor releases
 * the lock. *file: -1 on failure. */
int files_open_locked(const char *path, int *file);

typedef struct {
    FILE *file; /* null once closed */
    char *final, *temporary;
    int lock;
} new_file;

/* Opens folder/name for writing, under a temporary name. */
int new_file_open(new_file *f, const char *folder, const char *name);
/* The same for a path. Open a file before anything is measured: a bad path is then found at
 * once. */
int new_file_open_path(new_file *f, const char *path);
/* Flushes, syncs and closes it, still under its temporary name. */
int new_file_close(new_file *f);
/* Gives it its final name, on the disk too. */
int new_file_publish(new_file *f);
/* Removes the file unless it has been published, and frees the names; {0} is allowed. */
void new_file_free(new_file *f);
/* Removes all unpublished files when the program ends; a signal handler may call it. */
void new_files_remove(void);

#endif
