/* SPDX-License-Identifier: BSD-3-Clause */
#define REAL_F64 /* the network's arithmetic */
#include "train/trained.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/names.h"
#include "common/npz.h"
#include "common/random.h"
#include "common/report.h"
#include "common/resources.h"
#include "common/sha256.h"
#include "common/staging.h"
#include "train/pass.h"

#define PICTURES "pictures-images-idx3-ubyte.gz"

struct trained {
    char *path; /* of the weights */
    model_shape shape;
    int64_t block;
    int part;
    npz_file weights;
    fashion_set pictures;
    char sha256[SHA256_HEX_SIZE];
};

enum { QUERIES, KEYS, VALUES, PARTS };
static const char *const part_names[PARTS] = {"queries", "keys", "values"};

/* ---- Names ---- */

/* Removes "/END" from the end of a text; false if the text does not end so. */
static bool remove_end(char *text, const char *end)
{
    char *slash = strrchr(text, '/');
    bool found = slash && strcmp(slash + 1, end) == 0;
    if (found)
        *slash = '\0';
    return found;
}

/* Sets the block (-1 for the last) and the part, and leaves the name of the weights in `text`. */
static int read_place(trained *t, char *text)
{
    t->block = -1;
    for (int part = 0; part < PARTS; part++)
        if (remove_end(text, part_names[part])) {
            t->part = part;
            break;
        }
    char *slash = strrchr(text, '/'), *name = slash ? slash + 1 : text;
    if (strncmp(name, "block", 5) == 0 && strspn(name + 5, "0123456789") == strlen(name + 5)) {
        if (strlen(name) < 6 || strlen(name) > 9) {
            report_error("input 'trained': '%s', expected a block such as block3", name);
            return EXIT_USAGE;
        }
        t->block = strtoll(name + 5, NULL, 10);
        *(slash ? slash : text) = '\0';
    }
    return EXIT_PASS;
}

/* The name of the file in data/trained that a name stands for; an operator's name stands for its
 * usual variant and first seed. */
static char *shipped_file(const char *name)
{
    size_t length = strlen(name);
    char *file = NULL;
    model_shape shape;
    for (int i = 0; model_usual[i] && !file; i++)
        if (strncmp(model_usual[i], name, length) == 0 && strchr("/", model_usual[i][length]) &&
            model_defaults(model_usual[i], &shape))
            file = model_weights_name(&shape, 1);
    return file ? file : must_format("%s.npz", name);
}

static char *find_weights(const char *name)
{
    if (name_ends_with(name, ".npz"))
        return must_format("%s", name);
    char *file = shipped_file(name);
    char *path = resource_path("trained", file);
    free(file);
    return path;
}

bool trained_is_shipped(const char *name)
{
    char *file = shipped_file(name), *pictures = resource_path("trained", PICTURES);
    char *path =
        pictures ? must_format("%.*s/%s", (int)(strrchr(pictures, '/') - pictures), pictures, file)
                 : NULL;
    bool found = path && access(path, F_OK) == 0;
    free(path);
    free(pictures);
    free(file);
    return found;
}

/* ---- Weights ---- */

/* Gets a whole number from 1 to `most` from the metadata. */
static bool get_size(const cJSON *metadata, const char *name, double most, int64_t *value)
{
    double number = cJSON_GetNumberValue(cJSON_GetObjectItem(metadata, name));
    bool whole = number >= 1 && number <= most && number == floor(number);
    *value = whole ? (int64_t)number : 0;
    return whole;
}

/* The change with which the network was trained, which most files do not name. */
static bool get_change(const cJSON *metadata, model_shape *shape)
{
    const cJSON *item = cJSON_GetObjectItem(metadata, "change");
    const change *c = cJSON_IsString(item) ? change_find(item->valuestring) : NULL;
    double seed = cJSON_GetNumberValue(cJSON_GetObjectItem(metadata, "seed"));
    if (!item)
        return true;
    if (!c || !model_change(shape, c))
        return false;
    bool exact = seed >= 0 && seed <= (double)MODEL_SEED_MOST && seed == floor(seed);
    shape->seed = exact ? (uint64_t)seed : 0;
    return exact || !change_has_drawn_landmarks(c);
}

static bool get_shape(const cJSON *metadata, model_shape *shape)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(metadata, "operator"));
    const char *variant = cJSON_GetStringValue(cJSON_GetObjectItem(metadata, "variant"));
    char *both = must_format("%s/%s", name ? name : "", variant ? variant : "");
    bool known = model_defaults(both, shape) && get_change(metadata, shape);
    free(both);
    const struct {
        const char *name;
        int64_t *value;
    } sizes[] = {{"side", &shape->side},          {"patch", &shape->patch},
                 {"width", &shape->width},        {"heads", &shape->heads},
                 {"depth", &shape->depth},        {"hidden", &shape->hidden},
                 {"landmarks", &shape->landmarks}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        known = known && get_size(metadata, sizes[i].name, 4096, sizes[i].value);
    if (cJSON_HasObjectItem(metadata, "residual")) /* which older files lack */
        known = known && get_size(metadata, "residual", 4096, &shape->residual);
    return known && shape->width == shape->heads * TOKEN_DIM && shape->side % FASHION_SIDE == 0 &&
           !shape->change->crossnorm;
}

static int read_shape(trained *t)
{
    cJSON *metadata = t->weights.metadata ? cJSON_Parse(t->weights.metadata) : NULL;
    bool known = get_shape(metadata, &t->shape);
    cJSON_Delete(metadata);
    if (!known) {
        report_error(
            "%s: its %s is not that of a network of attnum train with heads %d wide and an "
            "operator of the library",
            t->path, NPZ_METADATA, TOKEN_DIM);
        return EXIT_ENVIRONMENT;
    }
    if (t->block >= t->shape.depth) {
        report_error("input 'trained': block %" PRId64 " of %s, expected 0 to %" PRId64, t->block,
                     t->path, t->shape.depth - 1);
        return EXIT_USAGE;
    }
    if (t->part == KEYS && !model_has_keys(&t->shape)) {
        report_error("input 'trained': keys of %s, whose keys are its queries", t->path);
        return EXIT_USAGE;
    }
    t->block = t->block < 0 ? t->shape.depth - 1 : t->block;
    return EXIT_PASS;
}

/* The position of point i of `larger` points among `count` points that span the same picture: both
 * ends' points are half a pixel from the edge. */
static double position_at(int64_t i, int64_t larger, int64_t count)
{
    double at = ((double)i + 0.5) * (double)count / (double)larger - 0.5;
    return fmin(fmax(at, 0), (double)(count - 1));
}

/* Learned positions, grid x grid x width, on another grid: bilinear, as images are resized. */
static void resize_positions(const double *from, int64_t grid, int64_t width, int64_t to_grid,
                             double *to)
{
    for (int64_t i = 0; i < to_grid * to_grid; i++) {
        double y = position_at(i / to_grid, to_grid, grid);
        double x = position_at(i % to_grid, to_grid, grid);
        int64_t top = (int64_t)y, left = (int64_t)x;
        int64_t down = top + 1 < grid ? grid : 0, right = left + 1 < grid ? 1 : 0;
        const double *corner = from + (top * grid + left) * width;
        double fy = y - (double)top, fx = x - (double)left;
        for (int64_t c = 0; c < width; c++)
            to[i * width + c] = (1 - fy) * ((1 - fx) * corner[c] + fx * corner[right * width + c]) +
                                fy * ((1 - fx) * corner[down * width + c] +
                                      fx * corner[(down + right) * width + c]);
    }
}

/* The npz reader sets missing leading dimensions to 1. */
static bool same_shape(const model_parameter *p, const npy_array *a)
{
    const int64_t found[PARAMETER_DIMENSIONS] = {a->batch, a->heads, a->rows, a->cols};
    bool same = a->dimensions == p->dimensions;
    for (int i = 0; same && i < p->dimensions; i++)
        same = found[PARAMETER_DIMENSIONS - p->dimensions + i] == p->shape[i];
    return same;
}

/* Whether a parameter is the convolution, and its window a multiple of the trained one, of which
 * the file has the right size. */
static bool is_wider(const trained *t, const model_parameter *p, const npy_array *a)
{
    int64_t grid = trained_side(t), side = a->rows;
    return p->dimensions == 4 && a->dimensions == 4 && a->batch == p->shape[0] &&
           a->heads == p->shape[1] && side == a->cols && p->shape[2] % side == 0 &&
           side * side * t->shape.landmarks == grid * grid;
}

static void widen(const npy_array *a, const model_parameter *p, double *to)
{
    int64_t side = p->shape[3], factor = side / a->cols;
    for (int64_t i = 0; i < p->count; i++) {
        int64_t window = i / (side * side), row = i / side % side / factor;
        int64_t col = i % side / factor;
        to[i] = a->data[(window * a->rows + row) * a->cols + col] / (double)(factor * factor);
    }
}

static bool has_parameter(const model *m, const char *name)
{
    for (int64_t i = 0; i < m->parameter_count; i++)
        if (strcmp(m->parameters[i].name, name) == 0)
            return true;
    return false;
}

/* Finds the arrays of the file that are no parameters of a network. Refuses those that are none of
 * such a network without its change either, or that it lacks although the file's has this change;
 * the others are only counted. */
static int find_left_out(const trained *t, const model *m, int64_t *count, const char **first)
{
    model_shape shape = m->shape;
    model unchanged;
    shape.change = &changes[CHANGE_NONE];
    *count = 0;
    *first = NULL;
    int code = model_create(&shape, &unchanged);
    for (int64_t i = 0; i < t->weights.count && code == EXIT_PASS; i++) {
        const char *name = t->weights.members[i].name;
        if (has_parameter(m, name))
            continue;
        *first = (*count)++ ? *first : name;
        if (m->shape.change != t->shape.change && has_parameter(&unchanged, name))
            continue;
        char *network = model_name(&m->shape);
        report_error("%s: %s is no parameter of a network of %s with %" PRId64 " blocks", t->path,
                     name, network, m->shape.depth);
        free(network);
        code = EXIT_ENVIRONMENT;
    }
    model_free(&unchanged);
    return code;
}

void trained_note_left_out(const trained *t, const model *m)
{
    int64_t count;
    const char *first;
    if (find_left_out(t, m, &count, &first) == EXIT_PASS && count > 0)
        report_note("%s: %" PRId64 " of its arrays are left out, which %s does without: %s, ...",
                    t->path, count, m->shape.change->name, first);
}

/* Fills in the parameters of a network whose grid or windows may be larger than the trained ones.
 */
static int fill_parameters(const trained *t, const model *m, double *data)
{
    int64_t grid = trained_side(t), width = t->shape.width;
    for (int64_t i = 0; i < m->parameter_count; i++) {
        const model_parameter *p = &m->parameters[i];
        const npy_array *a = npz_find(&t->weights, p->name);
        bool positions = p->offset == m->position && a && a->dimensions == 2 &&
                         a->rows == grid * grid && a->cols == width;
        bool wider = a && is_wider(t, p, a);
        if (!positions && !wider && !(a && same_shape(p, a))) {
            report_error("%s: %s %s of a network of %" PRId64 " x %" PRId64 " tokens", t->path,
                         p->name, a ? "has another shape than that" : "is missing, expected that",
                         m->grid, m->grid);
            return EXIT_ENVIRONMENT;
        }
        if (positions)
            resize_positions(a->data, grid, width, m->grid, data + p->offset);
        else if (wider)
            widen(a, p, data + p->offset);
        else
            memcpy(data + p->offset, a->data, (size_t)p->count * sizeof *data);
    }
    int64_t left_out;
    const char *first;
    return find_left_out(t, m, &left_out, &first);
}

bool trained_has_side(const trained *t, int64_t side)
{
    int64_t step = model_grid_step(&t->shape);
    return side == trained_side(t) || (step > 0 && side > 0 && side % step == 0);
}

int trained_check_side(const trained *t, int64_t side)
{
    int64_t grid = trained_side(t), step = model_grid_step(&t->shape);
    if (trained_has_side(t, side))
        return EXIT_PASS;
    char *others =
        step > 0 ? must_format(" or a side that is a multiple of %" PRId64, step)
                 : must_format(", of which its %s", model_has_parameter(&t->shape, ATN_PARAMETER_E)
                                                        ? "matrix E is"
                                                        : "landmarks were drawn");
    report_error("%s: %" PRId64 " x %" PRId64 " tokens, expected %" PRId64 " x %" PRId64 "%s",
                 t->path, side, side, grid, grid, others);
    free(others);
    return EXIT_USAGE;
}

/* The network's shape on a grid that it has. */
static model_shape shape_on(const trained *t, int64_t side)
{
    return side == trained_side(t) ? t->shape : model_resized(&t->shape, side * t->shape.patch);
}

/* Makes the network on a grid of `side` tokens. To be freed in any case. */
static int make_network(const trained *t, int64_t side, model *m, double **data)
{
    *m = (model){0};
    *data = NULL;
    int code = trained_check_side(t, side);
    if (code != EXIT_PASS)
        return code;
    model_shape shape = shape_on(t, side);
    return trained_network(t, &shape, m, data);
}

int trained_network(const trained *t, const model_shape *shape, model *m, double **data)
{
    *data = NULL;
    int code = model_create(shape, m);
    if (code != EXIT_PASS)
        return code;
    *data = must_allocate((size_t)m->size, sizeof **data);
    return fill_parameters(t, m, *data);
}

/* ---- Landmarks ---- */

int64_t trained_landmark_count(const trained *t, int64_t side)
{
    bool samples = model_has_parameter(&t->shape, ATN_PARAMETER_CONV) && t->part == QUERIES &&
                   trained_has_side(t, side);
    return samples ? shape_on(t, side).landmarks : 0;
}

int trained_landmarks(const trained *t, int64_t side, atn_context *context,
                      const atn_tensor *tokens, atn_tensor *landmarks)
{
    model m;
    double *data;
    int code = make_network(t, side, &m, &data);
    if (code == EXIT_PASS) {
        for (int64_t i = 0; i < m.size && tokens->dtype == ATN_F32; i++)
            ((float *)data)[i] = (float)data[i];
        atn_attention_desc desc = model_attention(&m, t->block, tokens->dtype, data);
        atn_status status = staged_sample(context, &desc.sampling, tokens, landmarks);
        if (status < 0) {
            report_error("%s: landmarks: %s", t->path, atn_last_error(context));
            code = EXIT_ENVIRONMENT;
        }
    }
    free(data);
    model_free(&m);
    return code;
}

/* ---- The input ---- */

static int set_sha256(trained *t)
{
    struct sha256_ctx state;
    sha256_init(&state);
    int code = sha256_add_file(&state, t->path);
    sha256_update(&state, SHA256_HEX_SIZE - 1, (const uint8_t *)t->pictures.sha256);
    sha256_hex(&state, t->sha256);
    return code;
}

static int open_files(trained *t)
{
    char *images = resource_path("trained", PICTURES);
    char *end = images ? strrchr(images, '/') : NULL;
    int code = images ? EXIT_PASS : EXIT_ENVIRONMENT;
    if (code == EXIT_PASS) {
        *end = '\0';
        code = fashion_read(images, "pictures", &t->pictures);
    }
    free(images);
    if (code == EXIT_PASS)
        code = npz_read(t->path, &t->weights);
    if (code == EXIT_PASS)
        code = read_shape(t);
    if (code == EXIT_PASS)
        code = set_sha256(t);
    if (code == EXIT_PASS) { /* shows before the first draw whether all parameters are there */
        model m;
        double *data;
        code = make_network(t, trained_side(t), &m, &data);
        free(data);
        model_free(&m);
    }
    return code;
}

int trained_open(const char *text, trained **t)
{
    char *name = must_format("%s", text);
    *t = must_allocate(1, sizeof **t);
    int code = read_place(*t, name);
    if (code == EXIT_PASS) {
        (*t)->path = find_weights(*name ? name : TRAINED_USUAL);
        code = (*t)->path ? open_files(*t) : EXIT_ENVIRONMENT;
    }
    free(name);
    return code;
}

void trained_free(trained *t)
{
    if (!t)
        return;
    npz_free(&t->weights);
    fashion_free(&t->pictures);
    free(t->path);
    free(t);
}

const char *trained_sha256(const trained *t)
{
    return t->sha256;
}

int64_t trained_side(const trained *t)
{
    return t->shape.side / t->shape.patch;
}

const model_shape *trained_shape(const trained *t)
{
    return &t->shape;
}

const char *trained_path(const trained *t)
{
    return t->path;
}

const fashion_set *trained_pictures(const trained *t)
{
    return &t->pictures;
}

unsigned trained_properties(const trained *t)
{
    return t->shape.attention->variants[t->shape.variant].properties;
}

int64_t trained_depth(const trained *t)
{
    return t->shape.depth;
}

int64_t trained_heads(const trained *t)
{
    return t->shape.heads;
}

int64_t trained_samples(const trained *t)
{
    return t->shape.heads * t->pictures.count;
}

double trained_number(const trained *t, const char *name)
{
    cJSON *metadata = cJSON_Parse(t->weights.metadata);
    double number = cJSON_GetNumberValue(cJSON_GetObjectItem(metadata, name));
    cJSON_Delete(metadata);
    return number;
}

/* ---- A head ---- */

/* A dense copy of the rows of one head, to be freed; null: the block has no such part. */
static double *take_part(const pass *p, const model *m, int64_t block, int part, int64_t head)
{
    atn_tensor rows = pass_tokens(p, block, part);
    if (!rows.data)
        return NULL;
    double *values = must_allocate((size_t)(m->tokens * TOKEN_DIM), sizeof *values);
    const double *first = (const double *)rows.data + head * rows.head_stride;
    for (int64_t i = 0; i < m->tokens * TOKEN_DIM; i++)
        values[i] = first[i / TOKEN_DIM * rows.row_stride + i % TOKEN_DIM];
    return values;
}

/* Runs the network on h->pixels and takes the head's q, k and v. */
static int run_network(const trained *t, int64_t block, trained_head *h)
{
    const model *m = &h->m;
    double *pixels = must_allocate((size_t)(h->side * h->side), sizeof *pixels);
    double logits[FASHION_CLASSES];
    for (int64_t i = 0; i < h->side * h->side; i++)
        pixels[i] = (double)h->pixels[i];
    atn_context *context = NULL;
    pass *p = NULL;
    atn_status status =
        atn_context_create(&(atn_context_options){.device = ATN_CPU, .threads = 1}, &context);
    int code = status == ATN_OK ? pass_create(m, h->parameters, context, 1, &p) : EXIT_ENVIRONMENT;
    if (code == EXIT_PASS) {
        status = pass_forward(p, pixels, logits);
        code = status < 0 ? EXIT_ENVIRONMENT : EXIT_PASS;
    }
    if (status < 0)
        report_error("%s: %s", t->path, atn_status_name(status));
    double **const parts[PARTS] = {&h->q, &h->k, &h->v};
    for (int i = 0; i < PARTS && code == EXIT_PASS; i++)
        *parts[i] = take_part(p, m, block, i, h->head);
    pass_free(p);
    atn_context_free(context);
    free(pixels);
    return code;
}

/* Restricts a parameter with a matrix per head to that of one head. */
static void take_matrix(atn_tensor *parameter, int64_t head)
{
    if (parameter->data && parameter->heads > 1) {
        parameter->data = (double *)parameter->data + head * parameter->head_stride;
        parameter->heads = 1;
    }
}

int trained_head_open(const trained *t, int64_t block, const input_draw *draw, trained_head *h)
{
    *h = (trained_head){0};
    if (draw->height != draw->width) {
        report_error("%s: %" PRId64 " x %" PRId64 " tokens, expected a square", t->path,
                     draw->height, draw->width);
        return EXIT_USAGE;
    }
    random_stream *r = random_create(draw->seed, "trained", 0);
    int64_t heads = t->shape.heads;
    h->head = draw->sample % heads;
    h->picture = (random_below(r, t->pictures.count) + draw->sample / heads) % t->pictures.count;
    random_free(r);
    int code = make_network(t, draw->height, &h->m, &h->parameters);
    if (code == EXIT_PASS) {
        h->side = h->m.shape.side;
        h->pixels = must_allocate((size_t)(h->side * h->side), sizeof *h->pixels);
        fashion_image(&t->pictures, h->picture, FASHION_WHOLE, h->side, h->pixels);
        code = run_network(t, block, h);
    }
    if (code == EXIT_PASS) {
        h->desc = model_attention(&h->m, block, ATN_F64, h->parameters);
        take_matrix(&h->desc.residual, h->head);
        take_matrix(&h->desc.xnorm.gamma, h->head);
        take_matrix(&h->desc.xca.temperature, h->head);
    }
    return code;
}

void trained_head_free(trained_head *h)
{
    model_free(&h->m);
    free(h->parameters);
    free(h->v);
    free(h->k);
    free(h->q);
    free(h->pixels);
}

static int make_part(const trained *t, int part, const input_draw *draw, double *tokens)
{
    trained_head h;
    if (t->shape.change->code_kernel) {
        report_error("%s: queries of a network that was trained with --change %s, whose kernel is "
                     "not that of these commands; networks/ reads it",
                     t->path, t->shape.change->name);
        return EXIT_USAGE;
    }
    int code = trained_head_open(t, t->block, draw, &h);
    const double *const parts[PARTS] = {h.q, h.k, h.v};
    for (int64_t i = 0; i < draw->height * draw->width * TOKEN_DIM && code == EXIT_PASS; i++)
        tokens[i] = (double)(float)parts[part][i];
    trained_head_free(&h);
    return code;
}

int trained_tokens(const trained *t, const input_draw *draw, double *tokens)
{
    return make_part(t, t->part, draw, tokens);
}

int trained_keys(const trained *t, const input_draw *draw, double *tokens)
{
    return make_part(t, KEYS, draw, tokens);
}

bool trained_has_keys(const trained *t)
{
    return t->part == QUERIES && model_has_keys(&t->shape);
}
