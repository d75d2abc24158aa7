/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters and multiply-adds of every configuration the papers tabulate, beside what they print.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "networks/configurations.h"
#include "registry.h"

/* ---- A point is a row of a paper's table ---- */

static int prepare(const program_options *s, void **state, int64_t *points)
{
    *points = printed_row_count;
    return EXIT_PASS;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    const printed_row *row = &printed_rows[point];
    snprintf(buffer, size, "%s %s %s, %s", row->paper, row->table, row->name, row->reading);
}

static const column raw_columns[] = {
    {"row", COLUMN_INTEGER, "", "of the list of configurations, from 0"},
    {"stage", COLUMN_INTEGER, "", ""},
    {"part", COLUMN_TEXT, "", ""},
    {"parameters", COLUMN_INTEGER, "", ""},
    {"macs", COLUMN_REAL, "", ""},
    {"inverse_macs", COLUMN_REAL, "", ""},
};

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const printed_row *row = &printed_rows[point];
    network_count sheet;
    int code = network_counts(context, row->network, &row->change, &sheet);
    for (int i = 0; i < sheet.count; i++) {
        const part_count *part = &sheet.parts[i];
        table_integer(raw, point);
        table_integer(raw, part->stage);
        table_text(raw, part->part);
        table_integer(raw, part->count.parameters);
        table_real(raw, part->count.macs);
        table_real(raw, part->count.inverse_macs);
    }
    return code;
}

/* ---- counts.csv ---- */

static const column columns[] = {
    {"paper", COLUMN_TEXT, "", "whose table it is"},
    {"table", COLUMN_TEXT, "", "where it stands"},
    {"network", COLUMN_TEXT, "", "name in the table"},
    {"reading", COLUMN_TEXT, "", "which of the networks that the row could mean was counted"},
    {"resolution", COLUMN_INTEGER, "px", "side of the image"},
    {"printed_params_m", COLUMN_REAL, "1e6", "parameters, as printed; missing: not printed"},
    {"counted_params_m", COLUMN_REAL, "1e6", "parameters, counted"},
    {"params_difference_m", COLUMN_REAL, "1e6", "counted - printed"},
    {"params_ratio", COLUMN_REAL, "", "counted / printed"},
    {"params_verdict", COLUMN_TEXT, "",
     "agrees: rounded to the printed digits it is what is printed; within 2 %; disagrees"},
    {"printed_gflops", COLUMN_REAL, "1e9", "FLOPs, as printed"},
    {"counted_gmacs", COLUMN_REAL, "1e9",
     "multiply-adds of one image, which is what the papers call FLOPs"},
    {"gmacs_ratio", COLUMN_REAL, "", "counted / printed"},
    {"gmacs_verdict", COLUMN_TEXT, "", "as for parameters"},
    {"counted_gmacs_no_inverse", COLUMN_REAL, "1e9",
     "without the steps of iterated inverses; missing: there are none"},
    {"no_inverse_ratio", COLUMN_REAL, "", "counted without them / printed"},
    {"no_inverse_verdict", COLUMN_TEXT, "", "as for parameters"},
    {"explanation", COLUMN_TEXT, "", "of what does not agree"},
    {"assumption", COLUMN_TEXT, "", "what the count takes from elsewhere than the four papers"},
};

static layer_count sum_of(const table *raw, int64_t point)
{
    layer_count sum = {0};
    int row_column = table_column(raw, "row"), parameters = table_column(raw, "parameters");
    for (int64_t i = 0; i < table_rows(raw); i++)
        if (table_get_integer(raw, i, row_column) == point)
            sum = layer_add(sum, (layer_count){table_get_integer(raw, i, parameters),
                                               cell_real(raw, i, "macs"),
                                               cell_real(raw, i, "inverse_macs")});
    return sum;
}

/* Ratio and verdict. */
static void put_judgement(table *t, double counted, const char *printed)
{
    table_real_if(t, printed, printed ? counted / strtod(printed, NULL) : NAN);
    printed ? table_text(t, printed_verdict(counted, printed)) : table_missing(t);
}

static void put_row(table *t, const printed_row *row, layer_count sum)
{
    double parameters = (double)sum.parameters / 1e6, gmacs = sum.macs / 1e9;
    double printed = row->parameters_m ? strtod(row->parameters_m, NULL) : NAN;
    const char *const names[] = {row->paper, row->table, row->name, row->reading};
    for (int i = 0; i < 4; i++)
        table_text(t, names[i]);
    table_integer(t, row->change.resolution > 0 ? row->change.resolution : RESOLUTION);
    table_real_if(t, row->parameters_m, printed);
    table_real(t, parameters);
    table_real_if(t, row->parameters_m, parameters - printed);
    put_judgement(t, parameters, row->parameters_m);
    table_real(t, strtod(row->gflops, NULL));
    table_real(t, gmacs);
    put_judgement(t, gmacs, row->gflops);
    bool steps = sum.inverse_macs > 0;
    double rest = gmacs - sum.inverse_macs / 1e9;
    table_real_if(t, steps, rest);
    put_judgement(t, rest, steps ? row->gflops : NULL);
    table_text(t, row->explanation);
    table_text(t, row->network->assumption);
}

/* ---- counts_parts.csv ---- */

static const column parts_columns[] = {
    {"paper", COLUMN_TEXT, "", "as in counts.csv"},
    {"table", COLUMN_TEXT, "", "as in counts.csv"},
    {"network", COLUMN_TEXT, "", "as in counts.csv"},
    {"reading", COLUMN_TEXT, "", "as in counts.csv"},
    {"stage", COLUMN_INTEGER, "",
     "from 1; class attention layers and the classifier: one more than there are stages"},
    {"part", COLUMN_TEXT, "",
     "embedding (convolutions and their norms), positions (and class token), norms (and "
     "LayerScale), projections (into and out of attention), attention (the operator, with its "
     "landmarks, inverse and filter on V), local (convolutions beside it), mlp, class attention, "
     "classifier; of all blocks of the stage"},
    {"parameters", COLUMN_INTEGER, "", "exact"},
    {"macs", COLUMN_REAL, "", "multiply-adds"},
    {"inverse_macs", COLUMN_REAL, "", "of them in the steps of an iterated inverse"},
};

static void put_parts(table *t, const table *raw)
{
    for (int64_t i = 0; i < table_rows(raw); i++) {
        const printed_row *row = &printed_rows[cell_integer(raw, i, "row")];
        const char *const names[] = {row->paper, row->table, row->name, row->reading};
        for (int j = 0; j < 4; j++)
            table_text(t, names[j]);
        table_integer(t, cell_integer(raw, i, "stage"));
        table_text(t, cell_text(raw, i, "part"));
        table_integer(t, cell_integer(raw, i, "parameters"));
        table_real(t, cell_real(raw, i, "macs"));
        table_real(t, cell_real(raw, i, "inverse_macs"));
    }
}

/* ---- The experiment ---- */

/* For people: without the words. */
static void print_rows(const table *t)
{
    enum { SHOWN = 9 };
    static const char *const names[SHOWN] = {"paper",
                                             "table",
                                             "network",
                                             "printed_params_m",
                                             "counted_params_m",
                                             "printed_gflops",
                                             "counted_gmacs",
                                             "gmacs_ratio",
                                             "counted_gmacs_no_inverse"};
    table_print_columns(t, names, SHOWN, table_rows(t), report_stream());
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    for (int i = 0; i < printed_row_count; i++)
        put_row(tables[0], &printed_rows[i], sum_of(raw, i));
    put_parts(tables[1], raw);
    print_rows(tables[0]);
    return EXIT_PASS;
}

static const output_spec outputs[] = {
    {"counts", "Parameters and multiply-adds of the papers' networks, printed and counted.",
     columns, sizeof columns / sizeof *columns},
    {"counts_parts", "The same counts by stage and part.", parts_columns,
     sizeof parts_columns / sizeof *parts_columns},
};

const experiment networks_counts = {
    .name = "networks/counts",
    .summary = "parameters and multiply-adds of every tabulated network, beside the printed ones",
    .source = "SOFT (NeurIPS) Tab. 1, 3, 4, SOFT (IJCV) Tab. 2, 3, 9, 10, SimA Tab. 1, 2, 4, "
              "UFO-ViT Tab. 1, 4; N02-N04, N07, N08, N10",
    .example = "attnum run networks/counts",
    .options = 0,
    .defaults = "always the same: every configuration, 224 x 224 but where a table says 384",
    .outputs = outputs,
    .output_count = 2,
    .plot = "networks/counts.gp",
    .raw_columns = raw_columns,
    .raw_column_count = sizeof raw_columns / sizeof *raw_columns,
    .prepare = prepare,
    .describe = describe,
    .run = run,
    .finish = finish,
};
