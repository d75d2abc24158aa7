/* SPDX-License-Identifier: BSD-3-Clause */
/* Attention maps: SOFT (IJCV) Fig. 4 and 7, SimA Fig. 3, UFO-ViT Fig. 6. For a photograph and a
 * query patch, the query's row of every operator's attention matrix, on the photograph's tokens as
 * in `--input photos`.
 *
 * A point is one operator on one crop. Its raw rows are, for each map, a row that describes the map
 * and a row per weight, and one row for each width of V with which Y V^+ was tried. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/rows.h"
#include "common/experiment.h"
#include "common/inputs.h"
#include "common/random.h"
#include "common/report.h"
#include "registry.h"

/* ---- What is drawn ---- */

/* The patches of SOFT-Tiny's stages (IJCV Tab. 1), all of one 224 x 224 crop. */
enum { CROP = 224, STAGES = 3, LINES_SHOWN = 200 };
static const int64_t patches[STAGES] = {4, 8, 16};
static const int64_t usual_stage[EFFORT_COUNT] = {
    [EFFORT_QUICK] = 3, [EFFORT_DEFAULT] = 2, [EFFORT_FULL] = 1};

/* The default sample: a cup of coffee, white, brown and red, with the centre patch on the coffee.
 * LayerNorm leaves little of a patch's brightness, so that grey photographs show less. */
enum { USUAL_SAMPLE = 33 };

/* Every operator that is linear in V has a map of the query's row. It may also have: */
typedef enum {
    MORE_NONE,
    MORE_NORMS,    /* SimA's token norms */
    MORE_STAND_IN, /* UFO-ViT's row of Y V^+ */
} more_maps;

/* In the order of the picture. */
static const struct source {
    atn_operator op;
    const char *variant;
    more_maps more;
} sources[] = {
    {ATN_SOFTMAX, "attention", MORE_STAND_IN},
    {ATN_GAUSSIAN, "exact", MORE_NONE},
    {ATN_SOFT, "paper", MORE_NONE},
    {ATN_SOFT, "exact", MORE_NONE},
    {ATN_SOFTPP, "code", MORE_NONE},
    {ATN_NYSTROMFORMER, "original", MORE_NONE},
    {ATN_LINFORMER, "projected", MORE_NONE},
    {ATN_PERFORMER, "favor", MORE_NONE},
    {ATN_RFF, "fourier", MORE_NONE},
    {ATN_ELU, "stable", MORE_NONE},
    {ATN_EFFICIENT, "paper", MORE_NONE},
    {ATN_COSFORMER, "1d", MORE_NONE},
    {ATN_COSFORMER, "2d", MORE_NONE},
    {ATN_LSH, "reformer", MORE_NONE},
    {ATN_SIMA, "paper", MORE_NORMS},
    {ATN_XNORM, "paper", MORE_STAND_IN},
    {ATN_XNORM, "port", MORE_STAND_IN},
};
enum { SOURCES = sizeof sources / sizeof *sources };

/* Widths of V. Every token has mean 0, so that tokens span TOKEN_DIM - 1 dimensions: a V as wide as
 * the tokens is singular, one that is narrower by one is not. */
static const int64_t value_dims[] = {TOKEN_DIM, TOKEN_DIM - 1};
enum { VALUE_DIMS = sizeof value_dims / sizeof *value_dims };

/* ---- Columns ---- */

/* Raw rows: those of maps.csv, and the numbers of the other tables. */
#define MAP_ROW(X)                                                                                 \
    X(TEXT, operator, "", "see attnum list operators", atn_operator_get(p->source->op)->name)      \
    X(TEXT, variant, "", "see attnum list operators", p->source->variant)                          \
    X(TEXT, kind, "",                                                                              \
      "row: the query's row of the attention matrix; query-norm, key-norm: |q^_i|_2 and |k^_i|_2 " \
      "over the channels of SimA's normalised tokens, equal because K = Q; pseudo-inverse: the "   \
      "query's row of Y V^+, V 32 wide",                                                           \
      r->kind)                                                                                     \
    X(INTEGER, query_row, "patches", "the query patch, from 0", p->grid.query_row)                 \
    X(INTEGER, query_col, "patches", "the query patch, from 0", p->grid.query_col)                 \
    X(INTEGER_IF, row, "patches", "the patch attended to, from 0", r->weight,                      \
      r->patch / p->grid.side)                                                                     \
    X(INTEGER_IF, col, "patches", "the patch attended to, from 0", r->weight,                      \
      r->patch % p->grid.side)                                                                     \
    X(REAL_IF, weight, "", "the weight of this patch, in f64", r->weight, *r->weight)              \
    X(TEXT, photo, "", "file in data/images", p->photo)                                            \
    X(INTEGER, stage, "", "1, 2, 3: patches of 4, 8, 16 pixels", p->grid.stage)                    \
    X(INTEGER, sample, "", "which crop of the seed, from 0", p->grid.sample)                       \
    X(INTEGER, seed, "", "of the crop, the projection and the operator's parameters",              \
      (int64_t)p->grid.seed)
#define RAW_ROW(X)                                                                                 \
    MAP_ROW(X)                                                                                     \
    X(REAL_IF, reference_error, "", "", r->check, r->check->error)                                 \
    X(REAL_IF, condition, "", "", r->check, r->check->condition)                                   \
    X(REAL_IF, reference_ratio, "", "", r->check, r->check->ratio)                                 \
    X(INTEGER_IF, value_dim, "", "", r->product, r->value_dim)                                     \
    X(INTEGER_IF, rank, "", "", r->product, r->product->rank)                                      \
    X(INTEGER_IF, null_space, "", "", r->product, p->n - r->product->rank)                         \
    X(REAL_IF, residual, "", "", r->product, r->product->residual)                                 \
    X(REAL_IF, rounding, "", "", r->product, r->product->rounding)                                 \
    X(REAL_IF, row_difference, "", "", r->difference, *r->difference)
static const column map_columns[] = {MAP_ROW(LIST_COLUMN)};
static const column raw_columns[] = {RAW_ROW(LIST_COLUMN)};

#define IMAGE_ROW(X)                                                                               \
    X(INTEGER, row, "pixels", "from the top, from 0", i / crop.width)                              \
    X(INTEGER, col, "pixels", "from the left, from 0", i % crop.width)                             \
    X(INTEGER, red, "", "0 to 255", llround(255 * rgb[0]))                                         \
    X(INTEGER, green, "", "0 to 255", llround(255 * rgb[1]))                                       \
    X(INTEGER, blue, "", "0 to 255; grey photographs have three equal values",                     \
      llround(255 * rgb[2]))                                                                       \
    X(TEXT, photo, "", "file in data/images", photo)                                               \
    X(INTEGER, sample, "", "which crop of the seed, from 0", g->sample)                            \
    X(INTEGER, seed, "", "of the crop", (int64_t)g->seed)
static const column image_columns[] = {IMAGE_ROW(LIST_COLUMN)};

static const column summary_columns[] = {
    {"operator", COLUMN_TEXT, "", "see attnum list operators"},
    {"variant", COLUMN_TEXT, "", "see attnum list operators"},
    {"kind", COLUMN_TEXT, "", "as in maps.csv"},
    {"sum", COLUMN_REAL, "", "of the weights: 1 where outputs average the values"},
    {"least", COLUMN_REAL, "", "the smallest weight"},
    {"largest", COLUMN_REAL, "", "the largest weight"},
    {"reference_error", COLUMN_REAL, "",
     "rows: relative error of sum_j w_j v_j, or of forward if that is more, against the "
     "reference's Y_query, for 8 random columns of values"},
    {"condition", COLUMN_REAL, "",
     "1 plus the relative change of that Y_query under relative changes of the tokens; soft and "
     "softpp: A's condition number if that is more"},
    {"reference_ratio", COLUMN_REAL, "",
     "reference_error / (condition n u), u = 2^-53; a check fails from 30; nan where condition n u "
     "> 0.1 and nothing can be said"},
    {"photo", COLUMN_TEXT, "", "file in data/images"},
    {"stage", COLUMN_INTEGER, "", "1, 2, 3: patches of 4, 8, 16 pixels"},
    {"sample", COLUMN_INTEGER, "", "which crop of the seed, from 0"},
    {"seed", COLUMN_INTEGER, "", "of the crop, the projection and the operator's parameters"},
};

static const column residual_columns[] = {
    {"operator", COLUMN_TEXT, "", "see attnum list operators"},
    {"variant", COLUMN_TEXT, "", "see attnum list operators"},
    {"value_dim", COLUMN_INTEGER, "",
     "width of V, tokens times the first columns of a random orthogonal matrix"},
    {"rank", COLUMN_INTEGER, "", "of V: tokens have mean 0 and span 31 dimensions"},
    {"null_space", COLUMN_INTEGER, "",
     "n - rank: to each row of M = Y V^+ anything orthogonal to V's columns can be added, and M V "
     "stays the same"},
    {"residual", COLUMN_REAL, "", "|M V - Y|_F / |Y|_F"},
    {"rounding", COLUMN_REAL, "",
     "n u times V's condition number on its range: what rounding may make of the residual"},
    {"row_difference", COLUMN_REAL, "",
     "|M_query - w|_2 / |w|_2, w the query's row of the attention matrix; missing where there is "
     "none"},
    {"photo", COLUMN_TEXT, "", "file in data/images"},
    {"stage", COLUMN_INTEGER, "", "1, 2, 3: patches of 4, 8, 16 pixels"},
    {"sample", COLUMN_INTEGER, "", "which crop of the seed, from 0"},
    {"seed", COLUMN_INTEGER, "", "of the crop, the projection and the operator's parameters"},
};

enum { MAPS, IMAGE, SUMMARY, RESIDUAL, OUTPUTS };
static const output_spec outputs[OUTPUTS] = {
    [MAPS] = {"maps", "What one patch of a photograph attends to, under every operator.",
              map_columns, sizeof map_columns / sizeof *map_columns},
    [IMAGE] = {"maps_image", "The pixels of the crops that the tokens were cut from.",
               image_columns, sizeof image_columns / sizeof *image_columns},
    [SUMMARY] = {"maps_summary", "A row per map: its range, and its check against the reference.",
                 summary_columns, sizeof summary_columns / sizeof *summary_columns},
    [RESIDUAL] = {"maps_residual",
                  "What M = Y V^+ (UFO-ViT Fig. 6) has to do with the attention matrix.",
                  residual_columns, sizeof residual_columns / sizeof *residual_columns},
};

/* ---- Points ---- */

typedef struct {
    const program_options *s;
    input *photos;
    int stage_count;
    int64_t stages[STAGES];
    int64_t samples;
} maps_sweep;

/* A crop in patches. */
typedef struct {
    int64_t stage, sample;
    uint64_t seed;
    int64_t side, patch, query_row, query_col;
} crop_grid;

/* The source of a point changes fastest, then the sample, the seed and the stage: so the last crop
 * is that of the last sample and seed. */
static crop_grid grid_of(const maps_sweep *w, int64_t point)
{
    int64_t crop = point / SOURCES, seed = crop / w->samples % w->s->seeds.count;
    crop_grid g = {.stage = w->stages[crop / w->samples / w->s->seeds.count],
                   .sample = w->s->samples ? crop % w->samples : USUAL_SAMPLE,
                   .seed = (uint64_t)w->s->seeds.items[seed]};
    bool given = w->s->query_row >= 0;
    g.patch = patches[g.stage - 1];
    g.side = CROP / g.patch;
    g.query_row = given ? w->s->query_row : g.side / 2;
    g.query_col = given ? w->s->query_col : g.side / 2;
    return g;
}

static int check_query(const program_options *s, int64_t stage)
{
    int64_t side = CROP / patches[stage - 1];
    if (s->query_row < side && s->query_col < side)
        return EXIT_PASS;
    report_error("--query %" PRId64 "x%" PRId64 ": stage %" PRId64 " has %" PRId64 "x%" PRId64
                 " patches, expected one from 0x0 to %" PRId64 "x%" PRId64,
                 s->query_row, s->query_col, stage, side, side, side - 1, side - 1);
    return EXIT_USAGE;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    maps_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->s = s;
    w->samples = s->samples ? s->samples : 1;
    w->stage_count = s->stages.count ? s->stages.count : 1;
    int code = EXIT_PASS;
    for (int i = 0; i < w->stage_count && code == EXIT_PASS; i++) {
        w->stages[i] = s->stages.count ? s->stages.items[i] : usual_stage[s->effort];
        code = check_query(s, w->stages[i]);
    }
    *points = w->stage_count * w->samples * s->seeds.count * SOURCES;
    return code == EXIT_PASS ? input_open("photos", 0, 0, &w->photos) : code;
}

static void release(void *state)
{
    maps_sweep *w = state;
    input_free(w->photos);
    free(w);
}

static bool input_at(const void *state, int index, const char **name, const char **sha256)
{
    const maps_sweep *w = state;
    *name = input_name(w->photos);
    *sha256 = input_sha256(w->photos);
    return index == 0;
}

static void describe(const void *state, int64_t point, char *buffer, size_t size)
{
    crop_grid g = grid_of(state, point);
    const struct source *source = &sources[point % SOURCES];
    snprintf(buffer, size,
             "%s %s stage %" PRId64 " seed %" PRIu64 " sample %" PRId64 " query %" PRId64
             "x%" PRId64,
             atn_operator_get(source->op)->name, source->variant, g.stage, g.seed, g.sample,
             g.query_row, g.query_col);
}

static void replay(const void *state, int64_t point, options_point *options)
{
    crop_grid g = grid_of(state, point);
    *options = (options_point){
        .input = "photos", .stage = g.stage, .seed = (int64_t)g.seed, .samples = g.sample + 1};
}

static double weight(const void *state, int64_t point)
{
    crop_grid g = grid_of(state, point);
    return (double)(g.side * g.side) * (double)(g.side * g.side);
}

/* ---- A point ---- */

typedef struct {
    const struct source *source;
    crop_grid grid;
    const char *photo;
    int64_t n, query;
    double *tokens;
    token_attention attention;
    atn_context *context;
    table *raw;
} map_point;

static double *matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

static double norm(int64_t count, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Pointers are null where a row has no such cells. */
typedef struct {
    const char *kind;
    int64_t patch, value_dim;
    const double *weight;
    const row_check *check;
    const stand_in *product;
    const double *difference;
} raw_row;

static void put_raw(const map_point *p, const raw_row *r)
{
    table *to = p->raw;
    RAW_ROW(LIST_PUT)
}

/* Adds the row about a map and its weights; check may be null. */
static void put_map(const map_point *p, const char *kind, const double *weights,
                    const row_check *check)
{
    put_raw(p, &(raw_row){.kind = kind, .check = check});
    for (int64_t i = 0; i < p->n; i++)
        put_raw(p, &(raw_row){.kind = kind, .patch = i, .weight = &weights[i]});
}

static int put_row(const map_point *p, double *row)
{
    row_check check;
    int code = token_attention_row(&p->attention, p->context, p->query, row);
    if (code != EXIT_PASS)
        return code;
    code = token_attention_check(&p->attention, p->context, p->query, row, p->grid.seed, &check);
    if (code == EXIT_PASS || code == EXIT_CHECK)
        put_map(p, "row", row, &check);
    return code;
}

/* SimA Fig. 3: |q^_i|_2 over the channels, q^ with columns of l1 norm 1 (Eq. 1). */
static void put_norms(const map_point *p)
{
    double *scaled = matrix(p->n, TOKEN_DIM), *norms = matrix(p->n, 1), sums[TOKEN_DIM] = {0};
    for (int64_t i = 0; i < p->n * TOKEN_DIM; i++)
        sums[i % TOKEN_DIM] += fabs(p->tokens[i]);
    for (int64_t i = 0; i < p->n * TOKEN_DIM; i++)
        scaled[i] = p->tokens[i] / sums[i % TOKEN_DIM];
    for (int64_t i = 0; i < p->n; i++)
        norms[i] = norm(TOKEN_DIM, scaled + i * TOKEN_DIM);
    put_map(p, "query-norm", norms, NULL);
    put_map(p, "key-norm", norms, NULL);
    free(norms);
    free(scaled);
}

/* V = tokens times the first dv columns of a random orthogonal matrix. */
static double *make_values(const map_point *p, int64_t dv)
{
    double *rotation = matrix(TOKEN_DIM, TOKEN_DIM), *values = matrix(p->n, dv);
    random_stream *r = random_create(p->grid.seed, "maps values", 0);
    random_orthonormal(r, TOKEN_DIM, TOKEN_DIM, rotation);
    random_free(r);
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < TOKEN_DIM; k++)
            for (int64_t c = 0; c < dv; c++)
                values[i * dv + c] += p->tokens[i * TOKEN_DIM + k] * rotation[k * TOKEN_DIM + c];
    free(rotation);
    return values;
}

/* row is null where the operator is not linear in V. */
static int put_stand_in(const map_point *p, int64_t dv, const double *row)
{
    double *values = make_values(p, dv), *out = matrix(p->n, dv), *got = matrix(1, p->n);
    stand_in m;
    int code = token_attention_forward(&p->attention, p->context, dv, values, out);
    if (code == EXIT_PASS)
        code = stand_in_row(p->n, dv, values, out, p->query, got, &m);
    if (code == EXIT_PASS) {
        double difference =
            row ? ref_compare_f64(1, p->n, got, p->n, row, p->n).relative_frobenius : 0;
        put_raw(p, &(raw_row){.kind = "residual",
                              .value_dim = dv,
                              .product = &m,
                              .difference = row ? &difference : NULL});
        if (p->source->more == MORE_STAND_IN && dv == TOKEN_DIM)
            put_map(p, "pseudo-inverse", got, NULL);
        code = stand_in_check(&m, dv, row);
    }
    free(got);
    free(out);
    free(values);
    return code;
}

static int put_maps(const map_point *p)
{
    const atn_operator_info *info = atn_operator_get(p->source->op);
    unsigned properties = info->variants[p->attention.parameters.choice.variant].properties;
    double *row = properties & ATN_IS_LINEAR ? matrix(p->n, 1) : NULL;
    int code = row ? put_row(p, row) : EXIT_PASS;
    if (p->source->more == MORE_NORMS)
        put_norms(p);
    for (int i = 0; i < VALUE_DIMS && (code == EXIT_PASS || code == EXIT_CHECK); i++)
        code = exit_worst(code, put_stand_in(p, value_dims[i], row));
    free(row);
    return code;
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const maps_sweep *w = state;
    crop_grid g = grid_of(w, point);
    map_point p = {.source = &sources[point % SOURCES],
                   .grid = g,
                   .n = g.side * g.side,
                   .query = g.query_row * g.side + g.query_col,
                   .context = context,
                   .raw = raw};
    image crop = {0};
    p.tokens = matrix(p.n, TOKEN_DIM);
    int code = input_crop(w->photos, g.side, g.side, g.patch, g.seed, g.sample, &crop, &p.photo);
    if (code == EXIT_PASS)
        code = input_tokens(w->photos, g.side, g.side, g.patch, g.seed, g.sample, p.tokens);
    if (code == EXIT_PASS) {
        code = token_attention_open(&p.attention, p.source->op, p.source->variant, p.n, TOKEN_DIM,
                                    p.tokens, g.seed);
        if (code == EXIT_PASS)
            code = put_maps(&p);
        token_attention_free(&p.attention);
    }
    free(crop.rgb);
    free(p.tokens);
    return code;
}

/* ---- The tables ---- */

/* Adds the summary of a map: raw row `first` describes it, and the rows from there to `end` are its
 * weights. */
static void add_summary(const table *raw, int64_t first, int64_t end, table *summary)
{
    double sum = 0, least = INFINITY, largest = -INFINITY;
    for (int64_t row = first + 1; row < end; row++) {
        double value = cell_real(raw, row, "weight");
        sum += value;
        least = fmin(least, value);
        largest = fmax(largest, value);
    }
    table_copy_row(summary, raw, first);
    table_real(summary, sum);
    table_real(summary, least);
    table_real(summary, largest);
    table_copy_row(summary, raw, first);
}

static void split_rows(const table *raw, table **tables)
{
    for (int64_t row = 0, end; row < table_rows(raw); row = end) {
        end = row + 1;
        if (!cell_missing(raw, row, "value_dim")) {
            table_copy_row(tables[RESIDUAL], raw, row);
            continue;
        }
        for (; end < table_rows(raw) && !cell_missing(raw, end, "weight"); end++)
            table_copy_row(tables[MAPS], raw, end);
        add_summary(raw, row, end, tables[SUMMARY]);
    }
}

static int add_image(const maps_sweep *w, const crop_grid *g, table *to)
{
    image crop;
    const char *photo;
    int code = input_crop(w->photos, g->side, g->side, g->patch, g->seed, g->sample, &crop, &photo);
    if (code != EXIT_PASS)
        return code;
    for (int64_t i = 0; i < crop.height * crop.width; i++) {
        const double *rgb = crop.rgb + 3 * i;
        IMAGE_ROW(LIST_PUT)
    }
    free(crop.rgb);
    return EXIT_PASS;
}

static void print_tables(table **tables)
{
    static const char *const summary[] = {"operator", "variant",         "kind",  "sum",    "least",
                                          "largest",  "reference_ratio", "stage", "sample", "seed"};
    static const char *const residual[] = {"operator",       "variant", "value_dim", "residual",
                                           "row_difference", "stage",   "sample",    "seed"};
    report_text(
        "weights, and their error against the reference over the rounding to be expected\n");
    table_print_columns(tables[SUMMARY], summary, sizeof summary / sizeof *summary, LINES_SHOWN,
                        report_stream());
    report_text(
        "M = Y V^+ for an attention matrix W: residual |M V - Y| / |Y|, which is rounding for "
        "every linear operator\nwhatever W is, and row_difference |M_i - W_i| / |W_i|\n");
    table_print_columns(tables[RESIDUAL], residual, sizeof residual / sizeof *residual, LINES_SHOWN,
                        report_stream());
    report_text("xca has no map: it mixes channels, no token attends to another\n");
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    const maps_sweep *w = state;
    int code = EXIT_PASS;
    split_rows(raw, tables);
    for (int64_t i = 0; i < w->samples * s->seeds.count && code == EXIT_PASS; i++) {
        crop_grid g = grid_of(w, i * SOURCES); /* all stages have the same pixels */
        code = add_image(w, &g, tables[IMAGE]);
    }
    print_tables(tables);
    return code;
}

const experiment attention_maps = {
    .name = "attention/maps",
    .summary = "what a patch of a photograph attends to, under every operator",
    .source = "SOFT (IJCV) Fig. 4, 7; SimA Fig. 3; UFO-ViT Fig. 6; M07, U04",
    .example = "attnum run attention/maps --samples 13 --query 8x14",
    .options = OPTIONS(OPTION_DEVICE, OPTION_SAMPLES, OPTION_STAGE, OPTION_QUERY),
    .defaults = "crop 33 (a cup of coffee) at stage 2 (--quick: 3, --full: 1); --samples N takes "
                "crops 0 to N - 1.\nThe picture shows the last stage, seed and crop.",
    .outputs = outputs,
    .output_count = OUTPUTS,
    .plot = "attention/maps.gp",
    .raw_columns = raw_columns,
    .raw_column_count = sizeof raw_columns / sizeof *raw_columns,
    .prepare = prepare,
    .describe = describe,
    .replay = replay,
    .weight = weight,
    .input = input_at,
    .run = run,
    .finish = finish,
    .release = release,
};
