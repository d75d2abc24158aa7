/* SPDX-License-Identifier: BSD-3-Clause */
/* What a patch of a picture attends to in a trained network: the query's row of the attention
 * matrix, with the network's own Q, K and parameters, in every block and head. Compare SOFT (IJCV)
 * Fig. 4 and 7, SimA Fig. 3.
 *
 * A point is one head of one block on one picture. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/magnitudes.h"
#include "attention/rows.h"
#include "common/report.h"
#include "networks/heads.h"
#include "registry.h"

/* ---- maps.csv ---- */

#define ROW(X)                                                                                        \
    X(TEXT, network, "", "the trained network, as --network names it", network_name(p->of.in))        \
    X(TEXT, operator, "", "see attnum list operators", atn_operator_get(h->desc.op)->name)            \
    X(INTEGER, block, "", "the block, from 0", p->of.block)                                           \
    X(INTEGER, head, "", "the head, from 0", h->head)                                                 \
    X(INTEGER, picture, "", "number in data/trained/pictures-images-idx3-ubyte.gz, from 0",           \
      h->picture)                                                                                     \
    X(INTEGER, query_row, "patches", "the query patch, from 0", p->query_row)                         \
    X(INTEGER, query_col, "patches", "the query patch, from 0", p->query_col)                         \
    X(INTEGER, row, "patches", "the patch attended to, from 0", i / p->side)                          \
    X(INTEGER, col, "patches", "the patch attended to, from 0", i % p->side)                          \
    X(REAL, weight, "", "the weight of this patch, in f64", row[i])                                   \
    X(REAL, distance, "patches",                                                                      \
      "of the map: sum_j |w_j| r_j / sum_j |w_j|, r_j the distance of patch j from the query",        \
      distance)                                                                                       \
    X(REAL_IF, query_norm, "",                                                                        \
      "sima: |q^_j|_2 of the patch, the columns of Q divided by l1 norms", of, of->lengths[i])        \
    X(REAL_IF, key_norm, "", "sima: |k^_j|_2 of the patch", of,                                       \
      of->lengths[p->side * p->side + i])                                                             \
    X(REAL_IF, key_correlation, "", "sima: of the map: correlation of |weight| with key_norm", of,    \
      of->row)                                                                                        \
    X(REAL_IF, magnitude_correlation, "",                                                             \
      "sima: of the head: correlation over all pairs of patches of |q^_i . k^_j| with |q^_i| |k^_j|", \
      of, of->all.size)                                                                               \
    X(REAL, reference_error, "",                                                                      \
      "of the map: relative error of sum_j w_j v_j, or of forward if that is more, against the "      \
      "reference's Y_query, for 8 random columns of values",                                          \
      check->error)                                                                                   \
    X(REAL, condition, "",                                                                            \
      "of the map: 1 plus the relative change of that Y_query under relative changes of Q and K; "    \
      "soft and softpp: A's condition number if that is more",                                        \
      check->condition)                                                                               \
    X(REAL, reference_ratio, "",                                                                      \
      "of the map: reference_error / (condition n u), u = 2^-53; a check fails from 30; nan "         \
      "where condition n u > 0.1 and nothing can be said",                                            \
      check->ratio)                                                                                   \
    X(INTEGER, sample, "", "which picture of the seed, from 0", p->of.sample)                         \
    X(INTEGER, seed, "", "of the picture", (int64_t)p->of.seed)
static const column map_columns[] = {ROW(LIST_COLUMN)};
enum { MAP_COLUMNS = sizeof map_columns / sizeof *map_columns, LINES_SHOWN = 200 };

static const column picture_columns[] = {
    {"picture", COLUMN_INTEGER, "", "number in data/trained/pictures-images-idx3-ubyte.gz, from 0"},
    {"row", COLUMN_INTEGER, "pixels", "from the top, from 0"},
    {"col", COLUMN_INTEGER, "pixels", "from the left, from 0"},
    {"brightness", COLUMN_REAL, "", "0: black, 1: the picture's brightest pixel"},
};

enum { MAPS, PICTURE, OUTPUTS };
static const output_spec outputs[OUTPUTS] = {
    [MAPS] = {"maps", "What one patch of a picture attends to in trained networks.", map_columns,
              MAP_COLUMNS},
    [PICTURE] = {"maps_picture", "The pixels of the pictures.", picture_columns,
                 sizeof picture_columns / sizeof *picture_columns},
};

/* ---- Points ---- */

typedef struct {
    head_sweep heads;
    int64_t query_row, query_col; /* as given; negative: the patch in the middle */
} maps_sweep;

typedef struct {
    head_point of;
    int64_t side, query_row, query_col;
} map_point;

/* Refuses a network without attention matrices, or without a patch at the query. */
static int check_network(const program_options *s, const input *in)
{
    const trained *network = input_network(in);
    if (!(trained_properties(network) & ATN_IS_LINEAR)) {
        report_error("--network %s: it has no attention matrix, its output is not linear in V",
                     network_name(in));
        return EXIT_USAGE;
    }
    int64_t side = trained_side(network);
    if (s->query_row < side && s->query_col < side)
        return EXIT_PASS;
    report_error("--query %" PRId64 "x%" PRId64 ": %s has %" PRId64 "x%" PRId64
                 " patches, expected one from 0x0 to %" PRId64 "x%" PRId64,
                 s->query_row, s->query_col, network_name(in), side, side, side - 1, side - 1);
    return EXIT_USAGE;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const char *const usual[] = {"softmax", "sima", NULL};
    maps_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->query_row = s->query_row;
    w->query_col = s->query_col;
    int code = heads_prepare(s, usual, s->samples ? s->samples : 1, check_network, &w->heads);
    *points = w->heads.points;
    return code;
}

static void release(void *state)
{
    heads_release(&((maps_sweep *)state)->heads);
    free(state);
}

static map_point point_of(const void *state, int64_t point)
{
    const maps_sweep *w = state;
    map_point p = {.of = *heads_point(state, point)};
    p.side = trained_side(input_network(p.of.in));
    p.query_row = w->query_row >= 0 ? w->query_row : p.side / 2;
    p.query_col = w->query_col >= 0 ? w->query_col : p.side / 2;
    return p;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    map_point p = point_of(state, point);
    heads_describe(state, point, buffer, size);
    size_t length = strlen(buffer);
    snprintf(buffer + length, size - length, " query %" PRId64 "x%" PRId64, p.query_row,
             p.query_col);
}

/* ---- A point ---- */

static double mean_distance(const map_point *p, const double *row)
{
    double sum = 0, all = 0;
    for (int64_t i = 0; i < p->side * p->side; i++) {
        double down = (double)(i / p->side - p->query_row);
        double right = (double)(i % p->side - p->query_col);
        sum += fabs(row[i]) * hypot(down, right);
        all += fabs(row[i]);
    }
    return sum / all;
}

/* How SimA's token lengths are related to its weights. */
typedef struct {
    double *lengths; /* of Q^'s rows, then of K^'s */
    double row;      /* correlation of the map's |w_j| with |k^_j| */
    magnitude all;
} map_magnitudes;

static void measure_map(const map_point *p, const trained_head *h, const double *row,
                        map_magnitudes *of)
{
    int64_t n = p->side * p->side;
    double *sizes = must_allocate((size_t)n, sizeof *sizes);
    of->lengths = must_allocate((size_t)(2 * n), sizeof *of->lengths);
    of->all = measure_magnitude(n, TOKEN_DIM, h->q, h->k, of->lengths);
    for (int64_t i = 0; i < n; i++)
        sizes[i] = fabs(row[i]);
    of->row = correlation(n, sizes, of->lengths + n);
    free(sizes);
}

/* of: null for other operators than sima. */
static void add_map(const map_point *p, const trained_head *h, const double *row,
                    const map_magnitudes *of, const row_check *check, table *to)
{
    double distance = mean_distance(p, row);
    for (int64_t i = 0; i < p->side * p->side; i++) {
        ROW(LIST_PUT)
    }
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const map_point at = point_of(state, point), *p = &at;
    int64_t n = p->side * p->side, query = p->query_row * p->side + p->query_col;
    double *row = must_allocate((size_t)n, sizeof *row);
    token_attention a = {0};
    row_check check;
    trained_head h;
    int code = heads_open(&p->of, &h);
    if (code == EXIT_PASS)
        code = token_attention_describe(&a, &h.desc, n, TOKEN_DIM, h.q, h.k);
    if (code == EXIT_PASS)
        code = token_attention_row(&a, context, query, row);
    if (code == EXIT_PASS) {
        bool sima = h.desc.op == ATN_SIMA && h.desc.sima.norm == ATN_SIMA_L1;
        map_magnitudes of = {0};
        if (sima)
            measure_map(p, &h, row, &of);
        code = token_attention_check(&a, context, query, row, p->of.seed, &check);
        if (code == EXIT_PASS || code == EXIT_CHECK)
            add_map(p, &h, row, sima ? &of : NULL, &check, raw);
        free(of.lengths);
    }
    token_attention_free(&a);
    trained_head_free(&h);
    free(row);
    return code;
}

/* ---- The tables ---- */

static bool has_picture(const table *t, int64_t picture)
{
    int64_t rows = table_rows(t);
    for (int64_t at = 0; at < rows; at++)
        if (table_get_integer(t, at, 0) == picture)
            return true;
    return false;
}

static void add_picture(const trained_head *h, table *t)
{
    int64_t count = h->side * h->side;
    float least = h->pixels[0], most = h->pixels[0];
    for (int64_t i = 1; i < count; i++) {
        least = fminf(least, h->pixels[i]);
        most = fmaxf(most, h->pixels[i]);
    }
    for (int64_t i = 0; i < count; i++) {
        table_integer(t, h->picture);
        table_integer(t, i / h->side);
        table_integer(t, i % h->side);
        table_real(t, (double)((h->pixels[i] - least) / (most - least)));
    }
}

/* Prints a line per map, from the row of its first patch. */
static void print_maps(const table *maps)
{
    static const char *const shown[] = {"network",
                                        "block",
                                        "head",
                                        "distance",
                                        "key_correlation",
                                        "magnitude_correlation",
                                        "reference_ratio",
                                        "picture",
                                        "sample",
                                        "seed"};
    table *lines = table_create(map_columns, MAP_COLUMNS);
    for (int64_t at = 0; at < table_rows(maps); at++)
        if (cell_integer(maps, at, "row") == 0 && cell_integer(maps, at, "col") == 0)
            table_copy_row(lines, maps, at);
    report_text(
        "mean distance of the weights from the query in patches; of sima the correlations of the "
        "map's |w_j|\nwith |k^_j|, and of all |q^_i . k^_j| with |q^_i| |k^_j|; the map's error "
        "against the reference\nover the rounding to be expected\n");
    table_print_columns(lines, shown, sizeof shown / sizeof *shown, LINES_SHOWN, report_stream());
    table_free(lines);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    const head_sweep *w = state;
    int code = EXIT_PASS;
    for (int64_t i = 0; i < w->points && code == EXIT_PASS; i++)
        if (w->all[i].block == 0 && w->all[i].head == 0) {
            trained_head h;
            code = heads_open(&w->all[i], &h);
            if (code == EXIT_PASS && !has_picture(tables[PICTURE], h.picture))
                add_picture(&h, tables[PICTURE]);
            trained_head_free(&h);
        }
    print_maps(raw);
    return code;
}

const experiment networks_maps = {
    .name = "networks/maps",
    .summary = "what a patch of a picture attends to in trained networks",
    .source = "SOFT (IJCV) Fig. 4, 7; SimA Fig. 3",
    .example = "attnum run networks/maps --network softmax --samples 3 --query 4x9",
    .options = OPTIONS(OPTION_NETWORK, OPTION_DEVICE, OPTION_SAMPLES, OPTION_QUERY),
    .defaults = "every block and head of softmax and sima on one picture; "
                "--samples N takes N\npictures. The picture shows the last picture and seed.",
    .outputs = outputs,
    .output_count = OUTPUTS,
    .plot = "networks/maps.gp",
    .prepare = prepare,
    .describe = describe,
    .replay = heads_replay,
    .input = heads_input,
    .run = run,
    .finish = finish,
    .release = release,
};
