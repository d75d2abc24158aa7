/* SPDX-License-Identifier: BSD-3-Clause */
#include "printout.h"

#include "report.h"

/* There is one stdout. */
static table_format format = FORMAT_TABLE;
static int tables_printed, experiments_printed;

void printout_begin(const program_options *s)
{
    format = s->format;
    report_silence(format != FORMAT_TABLE);
    report_text("%% attnum %s: %s\n", ATN_VERSION, s->command);
    if (format == FORMAT_JSON)
        printf("{");
}

bool printout_takes_tables(void)
{
    return format != FORMAT_TABLE;
}

static void print_csv(const table *t)
{
    if (tables_printed++ > 0)
        printf("\n");
    table_write_csv(t, stdout);
}

static void print_json(const char *owner, const output_spec *outputs, table *const *tables,
                       int count)
{
    printf("%s\n\"%s\": {", experiments_printed++ ? "," : "", owner);
    for (int i = 0; i < count; i++) {
        printf("%s\n\"%s\": ", i ? "," : "", outputs[i].name);
        table_write_json(tables[i], stdout);
    }
    printf("}");
}

void printout_tables(const char *owner, const output_spec *outputs, table *const *tables, int count)
{
    if (format == FORMAT_JSON)
        print_json(owner, outputs, tables, count);
    for (int i = 0; format == FORMAT_CSV && i < count; i++)
        print_csv(tables[i]);
    fflush(stdout); /* what stands there is whole, whatever comes after */
}

void printout_end(void)
{
    if (format == FORMAT_JSON)
        printf("\n}\n");
}
