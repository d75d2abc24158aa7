/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/report.h"
#include "merge/merge.h"

/* Deep enough for results/<folder of the experiment>/ of several machines in one folder. */
enum { MAX_DEPTH = 8 };

static const char digits[] = "0123456789";

/* "curves.shard-2-of-8" */
static bool is_shard_name(const char *name)
{
    const char *text = strstr(name, ".shard-");
    if (!text || text == name)
        return false;
    text += strlen(".shard-");
    size_t shard = strspn(text, digits);
    text += shard;
    if (shard == 0 || strncmp(text, "-of-", 4) != 0)
        return false;
    size_t shards = strspn(text + 4, digits);
    return shards > 0 && !text[4 + shards];
}

static int add_file(shard_list *list, const char *path)
{
    list->files = must_resize(list->files, (size_t)list->count + 1, sizeof *list->files);
    return shard_read(&list->files[list->count++], path);
}

static int find_below(shard_list *list, const char *folder, int depth);

static int look_at(shard_list *list, const char *folder, const char *name, int depth)
{
    struct stat status;
    char *path = must_format("%s/%s", folder, name);
    int code = EXIT_PASS;
    if (name[0] != '.' && lstat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode) && depth < MAX_DEPTH)
            code = find_below(list, path, depth + 1);
        else if (!S_ISDIR(status.st_mode) && is_shard_name(name))
            code = add_file(list, path);
    }
    free(path);
    return code;
}

static int find_below(shard_list *list, const char *folder, int depth)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort), code = EXIT_PASS;
    if (count < 0) {
        report_error("%s: %s, expected a folder with shards", folder, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    for (int i = 0; i < count; i++) {
        if (code == EXIT_PASS)
            code = look_at(list, folder, entries[i]->d_name, depth);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int shards_find(shard_list *list, const char *folder)
{
    int before = list->count;
    int code = find_below(list, folder, 0);
    if (code == EXIT_PASS && list->count == before) {
        report_error("%s: no shards here, expected files like curves.shard-1-of-8", folder);
        code = EXIT_ENVIRONMENT;
    }
    return code;
}

void shards_free(shard_list *list)
{
    for (int i = 0; i < list->count; i++)
        shard_free(&list->files[i]);
    free(list->files);
    *list = (shard_list){0};
}
