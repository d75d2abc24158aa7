/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are whole or not there: written under a temporary name in the same folder, flushed to
 * the disk, then renamed. A temporary name is fixed, so that one left by a kill is used again.
 *
 * All functions return an exit code; on failure they have reported the reason. */
#ifndef EXPERIMENTS_FILES_H
#define EXPERIMENTS_FILES_H

#include <stdio.h>

/* Makes a folder and the ones it lies in. */
int files_make_folder(const char *path);

/* Flushes the names in a file's folder to the disk: before that a crash may undo a rename. */
int files_sync_folder_of(const char *path);

/* Removes a folder and all that is in it; what cannot be removed stays. */
void files_remove_folder(const char *path);

typedef struct {
    FILE *file; /* null once closed */
    char *final, *temporary;
} new_file;

/* Opens folder/name for writing, under a temporary name. */
int new_file_open(new_file *f, const char *folder, const char *name);
/* The same for a file that another program will write to f->temporary. */
void new_file_name(new_file *f, const char *folder, const char *name);
/* Flushes, syncs and closes it, still under its temporary name. */
int new_file_close(new_file *f);
/* Gives it its final name, on the disk too. */
int new_file_publish(new_file *f);
/* Removes what has not been published, and frees the names. */
void new_file_free(new_file *f);

#endif
