/* SPDX-License-Identifier: BSD-3-Clause */
/* shard_read, shard_records: a shard's file, from another machine, is taken whole or refused. */
#include <stdlib.h>
#include <string.h>

#include "common/journal.h"
#include "common/options.h"
#include "common/report.h"
#include "rows.h"
#include "sealed.h"
#include "target.h"

enum { POINTS = 8 };

static void check_shard(shard_file *f)
{
    point_record records[POINTS] = {0};
    target_expect(f->shard >= 1 && f->shard <= f->shards && f->shards <= SHARDS_MOST,
                  "a shard has a number");
    target_expect(f->fingerprint && f->run && f->records <= f->size, "all of it is there");
    shard_records(f, row_columns, ROW_COLUMNS, POINTS, records);
    for (int i = 0; i < POINTS; i++) {
        target_expect(!records[i].rows || records_agree(&records[i], &records[i]),
                      "a record is itself");
        table_free(records[i].rows);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shard_file f;
    if (shard_read(&f, sealed_file(data, size)) == EXIT_PASS)
        check_shard(&f);
    shard_free(&f);
    return 0;
}
