/* SPDX-License-Identifier: BSD-3-Clause */
#define _XOPEN_SOURCE 700 /* realpath */
#include "resources.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_config.h"
#include "report.h"

/* The absolute path of folder/middle/name, if that file exists. */
static char *try_path(const char *folder, const char *middle, const char *name)
{
    char *path = must_format("%s/%s/%s", folder, middle, name);
    char *absolute = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;
    free(path);
    return absolute;
}

/* The folder of a kind in the source tree. */
static const char *source_folder(const char *kind)
{
    static const struct {
        const char *kind, *folder;
    } folders[] = {
        {"images", "data/images"}, {"golden", "data/golden"}, {"trained", "data/trained"}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strcmp(kind, folders[i].kind) == 0)
            return folders[i].folder;
    return "experiments";
}

char *resource_path(const char *kind, const char *name)
{
    const char *set = getenv("ATTNUM_DATADIR");
    char *path = NULL;
    if (set && *set)
        path = try_path(set, kind, name);
    else if (!(path = try_path(BUILD_DATA_FOLDER, kind, name)))
        path = try_path(BUILD_SOURCE_FOLDER, source_folder(kind), name);
    if (!path && set && *set)
        report_error("%s/%s: not in ATTNUM_DATADIR, which is %s", kind, name, set);
    else if (!path)
        report_error("%s/%s: neither in %s nor in %s; set ATTNUM_DATADIR to the folder with %s/",
                     kind, name, BUILD_DATA_FOLDER, BUILD_SOURCE_FOLDER, kind);
    return path;
}
