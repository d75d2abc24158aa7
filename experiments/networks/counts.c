/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters and multiply-adds of the papers' networks, their hosts and some that they are compared
 * with, next to the printed numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "networks/configurations.h"
#include "registry.h"

/* ---- Points: the rows of the papers' tables ---- */

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

#define RAW_ROW(X)                                                                                 \
    X(INTEGER, row, "", "of the list of configurations, from 0", point)                            \
    X(INTEGER, stage, "", "", part->stage)                                                         \
    X(TEXT, part, "", "", part->part)                                                              \
    X(INTEGER, parameters, "", "", part->count.parameters)                                         \
    X(REAL, macs, "", "", part->count.macs)                                                        \
    X(REAL, inverse_macs, "", "", part->count.inverse_macs)
static const column raw_columns[] = {RAW_ROW(LIST_COLUMN)};

static int run(const void *state, int64_t point, atn_context *context, table *to)
{
    const printed_row *row = &printed_rows[point];
    network_count sheet;
    int code = network_counts(context, row->network, &row->change, &sheet);
    for (int i = 0; i < sheet.count; i++) {
        const part_count *part = &sheet.parts[i];
        RAW_ROW(LIST_PUT)
    }
    return code;
}

/* ---- counts.csv ---- */

#define ROW(X)                                                                                     \
    X(TEXT, paper, "", "whose table it is", row->paper)                                            \
    X(TEXT, table, "", "where it stands", row->table)                                              \
    X(TEXT, network, "", "name in the table", row->name)                                           \
    X(TEXT, reading, "", "which of the networks that the row could mean was counted",              \
      row->reading)                                                                                \
    X(INTEGER, resolution, "px", "side of the image",                                              \
      row->change.resolution > 0 ? row->change.resolution : RESOLUTION)                            \
    X(REAL_IF, printed_params_m, "1e6", "parameters, as printed; missing: not printed",            \
      row->parameters_m, printed)                                                                  \
    X(REAL, counted_params_m, "1e6", "parameters, counted", parameters)                            \
    X(REAL_IF, params_difference_m, "1e6", "counted - printed", row->parameters_m,                 \
      parameters - printed)                                                                        \
    X(REAL_IF, params_ratio, "", "counted / printed", row->parameters_m, parameters / printed)     \
    X(TEXT_IF, params_verdict, "",                                                                 \
      "agrees: rounded to the printed digits it is what is printed; within 2 %; disagrees",        \
      row->parameters_m, printed_verdict(parameters, row->parameters_m))                           \
    X(REAL, printed_gflops, "1e9", "FLOPs, as printed", flops)                                     \
    X(REAL, counted_gmacs, "1e9",                                                                  \
      "multiply-adds of one image, which is what the papers call FLOPs", gmacs)                    \
    X(REAL, gmacs_ratio, "", "counted / printed", gmacs / flops)                                   \
    X(TEXT, gmacs_verdict, "", "as for parameters", printed_verdict(gmacs, row->gflops))           \
    X(REAL_IF, counted_gmacs_no_inverse, "1e9",                                                    \
      "without the steps of iterated inverses; missing: there are none", steps, rest)              \
    X(REAL_IF, no_inverse_ratio, "", "counted without them / printed", steps, rest / flops)        \
    X(TEXT_IF, no_inverse_verdict, "", "as for parameters", steps,                                 \
      printed_verdict(rest, row->gflops))                                                          \
    X(TEXT, explanation, "", "of what does not agree", row->explanation)                           \
    X(TEXT, assumption, "", "what the count takes from elsewhere than the four papers",            \
      row->network->assumption)
static const column columns[] = {ROW(LIST_COLUMN)};

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

static void put_row(table *to, const printed_row *row, layer_count sum)
{
    double parameters = (double)sum.parameters / 1e6, gmacs = sum.macs / 1e9;
    double printed = row->parameters_m ? strtod(row->parameters_m, NULL) : NAN;
    double flops = strtod(row->gflops, NULL), rest = gmacs - sum.inverse_macs / 1e9;
    bool steps = sum.inverse_macs > 0;
    ROW(LIST_PUT)
}

/* ---- counts_parts.csv ---- */

#define PARTS_ROW(X)                                                                               \
    X(TEXT, paper, "", "as in counts.csv", row->paper)                                             \
    X(TEXT, table, "", "as in counts.csv", row->table)                                             \
    X(TEXT, network, "", "as in counts.csv", row->name)                                            \
    X(TEXT, reading, "", "as in counts.csv", row->reading)                                         \
    X(INTEGER, stage, "",                                                                          \
      "from 1; class attention layers and the classifier: one more than there are stages",         \
      cell_integer(raw, i, "stage"))                                                               \
    X(TEXT, part, "",                                                                              \
      "embedding (convolutions and their norms), positions (and class token), norms (and "         \
      "LayerScale), projections (into and out of attention), attention (the operator, with its "   \
      "landmarks, inverse and filter on V), local (convolutions in parallel with it), mlp, "       \
      "class attention, classifier; of all blocks of the stage",                                   \
      cell_text(raw, i, "part"))                                                                   \
    X(INTEGER, parameters, "", "exact", cell_integer(raw, i, "parameters"))                        \
    X(REAL, macs, "", "multiply-adds", cell_real(raw, i, "macs"))                                  \
    X(REAL, inverse_macs, "", "of them in the steps of an iterated inverse",                       \
      cell_real(raw, i, "inverse_macs"))
static const column parts_columns[] = {PARTS_ROW(LIST_COLUMN)};

static void put_parts(table *to, const table *raw)
{
    for (int64_t i = 0; i < table_rows(raw); i++) {
        const printed_row *row = &printed_rows[cell_integer(raw, i, "row")];
        PARTS_ROW(LIST_PUT)
    }
}

/* ---- The experiment ---- */

/* Prints the table without its columns of explanations. */
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
    .summary = "parameters and multiply-adds of the papers' networks, next to the printed ones",
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
