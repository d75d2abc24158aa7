/* SPDX-License-Identifier: BSD-3-Clause */
/* table_read_rows: what it takes is what table_write_row would have written, and can be said in
 * JSON. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "rows.h"
#include "target.h"

static char *write_rows(const table *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    target_expect(memory != NULL, "there is memory");
    for (int64_t row = 0; row < table_rows(t); row++)
        table_write_row(t, row, memory);
    fclose(memory);
    return text;
}

static void check_json(const table *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    target_expect(memory != NULL, "there is memory");
    table_write_json(t, memory);
    fclose(memory);
    cJSON *list = cJSON_ParseWithOpts(text, NULL, true);
    target_expect(cJSON_IsArray(list) && cJSON_GetArraySize(list) == table_rows(t),
                  "JSON has an element per row");
    cJSON_Delete(list);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = must_allocate(size + 1, 1);
    if (size > 0)
        memcpy(text, data, size);
    table *t = table_create(row_columns, ROW_COLUMNS);
    bool read = table_read_rows(t, text);
    if (read) {
        char *again = write_rows(t);
        target_expect(strcmp(again, text) == 0, "what is taken is written the same");
        free(again);
        check_json(t);
    }
    target_expect(read || table_rows(t) == 0, "a refusal leaves the table as it was");
    table_free(t);
    free(text);
    return 0;
}
