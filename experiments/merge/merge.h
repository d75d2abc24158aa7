/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum merge`: the results of a sweep whose shards (--shard) were run separately. */
#ifndef EXPERIMENTS_MERGE_H
#define EXPERIMENTS_MERGE_H

#include "common/journal.h"
#include "common/verb.h"

extern const verb merge_verb;

/* The files of shards, each with its parsed line of JSON. */
typedef struct {
    int count;
    shard_file *files;
} shard_list;

/* Reads all files named <name>.shard-<i>-of-<N> in a folder and below, by name, and appends them.
 * Returns an exit code; on failure it has reported the reason. */
int shards_find(shard_list *list, const char *folder);
void shards_free(shard_list *list);

#endif
