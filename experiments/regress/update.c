/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commit.h"
#include "common/files.h"
#include "common/metadata.h"
#include "common/report.h"
#include "regress/regress.h"
#include "regress/rows.h"

/* Refuses FAILs in f32 or f64: with them in the baseline, the same FAILs would be expected. */
static int check_rows(const table *now)
{
    int64_t failed = 0;
    for (int64_t row = 0; row < table_rows(now); row++)
        failed += rows_native(now, row) && rows_verdict(now, row) == REF_FAIL;
    if (failed == 0)
        return EXIT_PASS;
    report_error("--update: %" PRId64 " rows of f32 or f64 FAIL: nothing is written", failed);
    return EXIT_CHECK;
}

/* The rows of `now`, then those of devices that have no rows in it. */
static table *merge(const table *now, const table *kept)
{
    table *merged = table_create(regress_columns, ROW_COLUMNS);
    for (int64_t row = 0; row < table_rows(now); row++)
        table_copy_row(merged, now, row);
    for (int64_t row = 0; kept && row < table_rows(kept); row++)
        if (!rows_have(now, table_get_text(kept, row, ROW_DEVICE)))
            table_copy_row(merged, kept, row);
    return merged;
}

static int write_csv(const table *rows, new_file *f)
{
    table_write_header(rows, f->file);
    for (int64_t row = 0; row < table_rows(rows); row++)
        table_write_row(rows, row, f->file);
    return new_file_close(f);
}

/* "accuracy" of "accuracy.csv" */
static int write_metadata(const char *name, const char *reason, const void *state, new_file *f)
{
    size_t length = strlen(name);
    bool csv = length > 4 && strcmp(name + length - 4, ".csv") == 0;
    char *stem = must_format("%.*s", (int)(csv ? length - 4 : length), name);
    output_spec output = {stem, "What attnum regress is compared with.", regress_columns,
                          ROW_COLUMNS};
    metadata_write_kept(&regress, &output, state, BUILD_COMMIT, reason, f->file);
    free(stem);
    return new_file_close(f);
}

/* Renames the files after both have been written. */
static int write_both(const table *rows, const char *folder, const char *name, const char *reason,
                      const void *state)
{
    new_file files[2] = {0};
    char *json = must_format("%s-metadata.json", name);
    int code = new_file_open(&files[0], folder, name);
    if (code == EXIT_PASS)
        code = write_csv(rows, &files[0]);
    if (code == EXIT_PASS)
        code = new_file_open(&files[1], folder, json);
    if (code == EXIT_PASS)
        code = write_metadata(name, reason, state, &files[1]);
    for (int i = 0; i < 2 && code == EXIT_PASS; i++)
        code = new_file_publish(&files[i]);
    for (int i = 0; i < 2; i++)
        new_file_free(&files[i]);
    free(json);
    return code;
}

int regress_update(const table *now, const table *kept, const char *path, const char *reason,
                   const void *state)
{
    int code = check_rows(now);
    if (code != EXIT_PASS)
        return code;
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash > path ? must_format("%.*s", (int)(slash - path), path)
                                         : must_format(slash ? "/" : ".");
    table *rows = merge(now, kept);
    code = write_both(rows, folder, slash ? slash + 1 : path, reason, state);
    if (code == EXIT_PASS)
        report_text("kept: %" PRId64 " rows → %s\n", table_rows(rows), path);
    table_free(rows);
    free(folder);
    return code;
}
