/* SPDX-License-Identifier: BSD-3-Clause */
#include "inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "npy.h"
#include "photographs.h"
#include "random.h"
#include "report.h"
#include "sha256.h"
#include "train/trained.h"

enum { PHOTO_SIDE = 64 };

static const double pi = 3.14159265358979323846;

struct input {
    const input_kind *kind;
    char *name;
    double parameter;
    photographs photographs;
    trained *network;
    npy_array file;
    int64_t grid_height, grid_width;
    char *doubt;
    char file_sha256[SHA256_HEX_SIZE];
};

static random_stream *stream(const input_draw *draw, const char *purpose)
{
    return random_create(draw->seed, purpose, (uint64_t)draw->sample);
}

static int64_t token_count(const input_draw *draw)
{
    return draw->height * draw->width;
}

/* values[i] += sigma N(0, 1). */
static void add_normal(random_stream *r, double sigma, int64_t count, double *values)
{
    for (int64_t i = 0; i < count; i++)
        values[i] += sigma * random_normal(r);
}

static void copy_token(double *to, const double *from)
{
    memcpy(to, from, TOKEN_DIM * sizeof *to);
}

static int make_photos(const input *in, const input_draw *draw, double *tokens)
{
    return photographs_tokens(&in->photographs, draw, tokens);
}

static int make_trained(const input *in, const input_draw *draw, double *tokens)
{
    return trained_tokens(in->network, draw, tokens);
}

static int make_iid(const input *in, const input_draw *draw, double *tokens)
{
    random_stream *r = stream(draw, "iid");
    int64_t count = token_count(draw) * TOKEN_DIM;
    memset(tokens, 0, (size_t)count * sizeof *tokens);
    add_normal(r, in->parameter, count, tokens);
    random_free(r);
    return EXIT_PASS;
}

/* Coefficients g of a smooth field, modes x modes x d, scaled so that each channel has variance 1
 * over the unit square: the cosines are orthogonal there, and cos^2 has mean 1 for mode 0 and 1/2
 * for the others. Without the mode (0, 0) the mean is 0. To be freed. */
static double *smooth_coefficients(const input_draw *draw, int64_t modes)
{
    random_stream *r = stream(draw, "smooth");
    double *g = must_allocate((size_t)(modes * modes), TOKEN_DIM * sizeof *g);
    double variance[TOKEN_DIM] = {0};
    for (int64_t k = 1; k < modes * modes; k++) {
        double mean_square = (k / modes ? 0.5 : 1) * (k % modes ? 0.5 : 1);
        for (int64_t c = 0; c < TOKEN_DIM; c++) {
            double *value = &g[k * TOKEN_DIM + c];
            *value = random_normal(r);
            variance[c] += mean_square * *value * *value;
        }
    }
    for (int64_t i = 0; i < modes * modes * TOKEN_DIM; i++)
        g[i] /= sqrt(variance[i % TOKEN_DIM]);
    random_free(r);
    return g;
}

/* One row of the grid: first the cosines in y are summed, then those in x. */
static void smooth_row(const double *g, int64_t modes, double y, int64_t width, double *partial,
                       double *tokens)
{
    memset(partial, 0, (size_t)(modes * TOKEN_DIM) * sizeof *partial);
    for (int64_t a = 0; a < modes; a++)
        for (int64_t i = 0; i < modes * TOKEN_DIM; i++)
            partial[i] += cos(pi * (double)a * y) * g[a * modes * TOKEN_DIM + i];
    memset(tokens, 0, (size_t)(width * TOKEN_DIM) * sizeof *tokens);
    for (int64_t j = 0; j < width; j++)
        for (int64_t b = 0; b < modes; b++) {
            double x = ((double)j + 0.5) / (double)width;
            double wave = cos(pi * (double)b * x);
            for (int64_t c = 0; c < TOKEN_DIM; c++)
                tokens[j * TOKEN_DIM + c] += wave * partial[b * TOKEN_DIM + c];
        }
}

static void make_field(const input_draw *draw, int64_t modes, double *tokens)
{
    double *g = smooth_coefficients(draw, modes);
    double *partial = must_allocate((size_t)modes, TOKEN_DIM * sizeof *partial);
    for (int64_t i = 0; i < draw->height; i++)
        smooth_row(g, modes, ((double)i + 0.5) / (double)draw->height, draw->width, partial,
                   tokens + i * draw->width * TOKEN_DIM);
    free(partial);
    free(g);
}

#define DEFAULT_MODES 4

static int make_smooth(const input *in, const input_draw *draw, double *tokens)
{
    make_field(draw, (int64_t)in->parameter, tokens);
    return EXIT_PASS;
}

static int make_noisy(const input *in, const input_draw *draw, double *tokens)
{
    random_stream *r = stream(draw, "noise");
    make_field(draw, DEFAULT_MODES, tokens);
    add_normal(r, in->parameter, token_count(draw) * TOKEN_DIM, tokens);
    random_free(r);
    return EXIT_PASS;
}

static int make_clusters(const input *in, const input_draw *draw, double *tokens)
{
    random_stream *r = stream(draw, "clusters");
    int64_t count = (int64_t)in->parameter;
    double *centres = must_allocate((size_t)count, TOKEN_DIM * sizeof *centres);
    add_normal(r, 1, count * TOKEN_DIM, centres);
    for (int64_t i = 0; i < token_count(draw); i++) {
        double *token = tokens + i * TOKEN_DIM;
        copy_token(token, centres + random_below(r, count) * TOKEN_DIM);
        add_normal(r, 0.1, TOKEN_DIM, token);
    }
    free(centres);
    random_free(r);
    return EXIT_PASS;
}

static int make_constant(const input *in, const input_draw *draw, double *tokens)
{
    random_stream *r = stream(draw, "constant");
    memset(tokens, 0, TOKEN_DIM * sizeof *tokens);
    add_normal(r, 1, TOKEN_DIM, tokens);
    for (int64_t i = 1; i < token_count(draw); i++)
        copy_token(tokens + i * TOKEN_DIM, tokens);
    random_free(r);
    return EXIT_PASS;
}

static int make_circulant(const input *in, const input_draw *draw, double *tokens)
{
    random_stream *r = stream(draw, "circulant");
    double start = random_uniform(r);
    int64_t n = token_count(draw);
    memset(tokens, 0, (size_t)(n * TOKEN_DIM) * sizeof *tokens);
    for (int64_t i = 0; i < n; i++) {
        double angle = 2 * pi * (start + (double)i / (double)n);
        tokens[i * TOKEN_DIM] = in->parameter * cos(angle);
        tokens[i * TOKEN_DIM + 1] = in->parameter * sin(angle);
    }
    random_free(r);
    return EXIT_PASS;
}

static int make_duplicates(const input *in, const input_draw *draw, double *tokens)
{
    int64_t n = token_count(draw);
    int64_t copies = in->parameter > 0 ? (int64_t)in->parameter : n / 4;
    if (copies >= n) {
        report_error("duplicates: %lld copies among %lld tokens, expected fewer copies than tokens",
                     (long long)copies, (long long)n);
        return EXIT_USAGE;
    }
    random_stream *r = stream(draw, "duplicates");
    memset(tokens, 0, (size_t)(n * TOKEN_DIM) * sizeof *tokens);
    add_normal(r, 1, (n - copies) * TOKEN_DIM, tokens);
    for (int64_t i = n - copies; i < n; i++)
        copy_token(tokens + i * TOKEN_DIM, tokens + random_below(r, n - copies) * TOKEN_DIM);
    random_free(r);
    return EXIT_PASS;
}

static int make_file(const input *in, const input_draw *draw, double *tokens)
{
    const npy_array *file = &in->file;
    bool is_grid = draw->height == in->grid_height && draw->width == in->grid_width;
    bool is_list = draw->height == file->rows && draw->width == 1;
    if (draw->sample >= file->batch * file->heads || (!is_grid && !is_list)) {
        report_error("%s: matrix %lld of %lldx%lld tokens, expected one of its %lld matrices of "
                     "%lld tokens",
                     in->name, (long long)draw->sample, (long long)draw->height,
                     (long long)draw->width, (long long)(file->batch * file->heads),
                     (long long)file->rows);
        return EXIT_USAGE;
    }
    int64_t size = file->rows * file->cols;
    memcpy(tokens, file->data + draw->sample * size, (size_t)size * sizeof *tokens);
    return EXIT_PASS;
}

#define WITH_DEFAULT(parameter, number) parameter ", default " TEXT_OF(number), number
const input_kind input_kinds[] = {
    {.name = "photos",
     .parameter = "",
     .formula = "q = LayerNorm(P^T v), v: a patch of a seeded crop of a photograph, P: random with "
                "orthonormal columns",
     .make = make_photos},
    {.name = "trained",
     .parameter = "[WEIGHTS][/blockB][/queries|keys|values], default " TRAINED_USUAL
                  ", its last block, queries",
     .formula =
         "a head of a network that attnum train trained on Fashion-MNIST, on a picture of its "
         "test set; WEIGHTS: an operator, a name in data/trained, or a file FILE.npz",
     .make = make_trained},
    {"iid", WITH_DEFAULT("sigma", 1), 1e-6, 1e6, false, make_iid, "q ~ N(0, sigma^2 I)"},
    {"smooth", WITH_DEFAULT("modes per axis", DEFAULT_MODES), 2, 64, true, make_smooth,
     "q_c(y, x) = sum_ab g_cab cos(pi a y) cos(pi b x) without a = b = 0, g ~ N(0, 1), scaled to "
     "variance 1 over the unit square; token (i, j) at y = (i + 1/2) / height, x = (j + 1/2) / "
     "width"},
    {"noisy", WITH_DEFAULT("sigma", 0.1), 1e-6, 1e6, false, make_noisy,
     "q = smooth + N(0, sigma^2 I)"},
    {"clusters", WITH_DEFAULT("number of centres", 8), 1, 65536, true, make_clusters,
     "q = c_k + 0.1 N(0, I), k uniform, c_1, c_2, ... ~ N(0, I)"},
    {.name = "constant",
     .parameter = "",
     .formula = "all q equal, ~ N(0, I)",
     .make = make_constant},
    {"circulant", WITH_DEFAULT("radius", 20), 1e-6, 1e6, false, make_circulant,
     "q_i = radius (cos t_i, sin t_i, 0, ..., 0), t_i = 2 pi (u + i / n), u uniform: the Gaussian "
     "kernel matrix is circulant; at radius 20 neighbours among 49 have kernel value 0.56 (scale "
     "1 / (2 sqrt(d)))"},
    {"duplicates", "number of copies, default a quarter of the tokens", 0, 1, 1e9, true,
     make_duplicates, "q ~ N(0, I), the last ones copies of random earlier ones"},
    {.name = "FILE.npy",
     .parameter = "",
     .formula = "tokens of batch x heads matrices as they are in the file",
     .make = make_file},
    {0},
};

static const input_kind *find_kind(const char *text)
{
    const input_kind *kind = input_kinds;
    size_t length = strcspn(text, ":");
    while (kind->name && (strlen(kind->name) != length || strncmp(kind->name, text, length) != 0))
        kind++;
    return kind->name ? kind : NULL;
}

static int report_unknown(const char *text)
{
    const char *names[sizeof input_kinds / sizeof *input_kinds] = {0};
    for (size_t i = 0; input_kinds[i].name; i++)
        names[i] = input_kinds[i].name;
    char *expected = names_expected(names, text);
    report_error("input '%s': %s", text, expected);
    free(expected);
    return EXIT_USAGE;
}

/* A plain decimal number, no spaces, no "inf", no hexadecimal. */
static bool parse_number(const char *text, double *value)
{
    char *end;
    if (!*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    *value = strtod(text, &end);
    return !*end && isfinite(*value);
}

static int set_parameter(input *in, const char *text)
{
    const input_kind *kind = in->kind;
    double value = 0;
    in->parameter = kind->initial;
    if (!text)
        return EXIT_PASS;
    if (!*kind->parameter) {
        report_error("input '%s': it takes no parameter, expected '%s'", in->name, kind->name);
        return EXIT_USAGE;
    }
    if (!parse_number(text, &value) || !(value >= kind->lowest && value <= kind->highest) ||
        (kind->whole && value != floor(value))) {
        report_error("input '%s': parameter '%s', expected a %snumber from %g to %g (%s)", in->name,
                     text, kind->whole ? "whole " : "", kind->lowest, kind->highest,
                     kind->parameter);
        return EXIT_USAGE;
    }
    in->parameter = value;
    return EXIT_PASS;
}

/* Sets the grid: --grid if it was given, else the square grid if n is a square, else none. */
static int set_grid(input *in, int64_t height, int64_t width)
{
    int64_t n = in->file.rows;
    if (height == 0 && width == 0) {
        int64_t root = (int64_t)llround(sqrt((double)n));
        in->grid_height = in->grid_width = root * root == n ? root : 0;
        return EXIT_PASS;
    }
    if (height <= 0 || width <= 0 || n % height != 0 || n / height != width) {
        report_error("--grid %lldx%lld: %s has %lld tokens per matrix, expected a grid of as many",
                     (long long)height, (long long)width, in->name, (long long)n);
        return EXIT_USAGE;
    }
    in->grid_height = height;
    in->grid_width = width;
    return EXIT_PASS;
}

/* Leaves out the first tokens of every head. */
static int skip_tokens(input *in, int64_t skipped)
{
    npy_array *a = &in->file;
    if (skipped >= a->rows) {
        report_error("--skip-tokens %lld: %s has %lld tokens per matrix, expected more",
                     (long long)skipped, in->name, (long long)a->rows);
        return EXIT_USAGE;
    }
    int64_t size = a->rows * a->cols, kept = (a->rows - skipped) * a->cols;
    for (int64_t i = 0; i < a->batch * a->heads; i++)
        memmove(a->data + i * kept, a->data + i * size + skipped * a->cols,
                (size_t)kept * sizeof *a->data);
    a->rows -= skipped;
    return EXIT_PASS;
}

static int open_file(input *in, const char *path, const input_reading *how)
{
    struct sha256_ctx state;
    sha256_init(&state);
    int status = npy_read(path, &in->file);
    if (status == EXIT_PASS && !how->layout.axes)
        in->doubt = layout_doubt(path, &in->file);
    if (status == EXIT_PASS)
        status = layout_read(&how->layout, path, &in->file);
    if (status == EXIT_PASS)
        status = skip_tokens(in, how->skipped);
    if (status == EXIT_PASS)
        status = set_grid(in, how->grid_height, how->grid_width);
    if (status == EXIT_PASS)
        status = sha256_add_file(&state, path);
    if (status == EXIT_PASS)
        sha256_hex(&state, in->file_sha256);
    return status;
}

int input_open(const char *text, int64_t grid_height, int64_t grid_width, input **in)
{
    const input_reading how = {.grid_height = grid_height, .grid_width = grid_width};
    return input_open_as(text, &how, in);
}

/* The name as given, for a file without its folders: "trained:soft-code-seed1.npz/block3". */
static char *short_name(const char *text)
{
    static const char prefix[] = "trained:";
    bool is_trained = strncmp(text, prefix, sizeof prefix - 1) == 0;
    const char *start = is_trained ? text + sizeof prefix - 1 : text;
    const char *weights = is_trained ? strstr(text, ".npz") : NULL;
    const char *base = weights                        ? weights
                       : name_ends_with(text, ".npy") ? text + strlen(text)
                                                      : start;
    while (base > start && base[-1] != '/')
        base--;
    return must_format("%.*s%s", (int)(start - text), text, base);
}

int input_open_as(const char *text, const input_reading *how, input **in)
{
    *in = NULL;
    bool is_path = name_ends_with(text, ".npy");
    const input_kind *kind = find_kind(is_path ? "FILE.npy" : text);
    if (!kind)
        return report_unknown(text);
    input *opened = must_allocate(1, sizeof *opened);
    opened->kind = kind;
    opened->name = short_name(text);
    int status;
    if (is_path) {
        status = open_file(opened, text, how);
    } else {
        const char *colon = strchr(text, ':');
        if (kind->make == make_trained)
            status = trained_open(colon ? colon + 1 : "", &opened->network);
        else
            status = set_parameter(opened, colon ? colon + 1 : NULL);
        if (status == EXIT_PASS && kind->make == make_photos)
            status = photographs_read(&opened->photographs);
    }
    if (status == EXIT_PASS)
        *in = opened;
    else
        input_free(opened);
    return status;
}

const struct trained *input_network(const input *in)
{
    return in->network;
}

void input_free(input *in)
{
    if (!in)
        return;
    photographs_free(&in->photographs);
    trained_free(in->network);
    free(in->file.data);
    free(in->doubt);
    free(in->name);
    free(in);
}

const char *input_name(const input *in)
{
    return in->name;
}

const char *input_sha256(const input *in)
{
    return input_is_file(in) ? in->file_sha256
           : in->network     ? trained_sha256(in->network)
                             : in->photographs.sha256;
}

bool input_is_file(const input *in)
{
    return in->kind->make == make_file;
}

int64_t input_samples(const input *in)
{
    return input_is_file(in) ? in->file.batch * in->file.heads
           : in->network     ? trained_samples(in->network)
                             : INT64_MAX;
}

const char *input_doubt(const input *in)
{
    return in->doubt;
}

int64_t input_heads(const input *in)
{
    return in->file.heads;
}

void input_file_shape(const input *in, int64_t *matrices, int64_t *tokens, int64_t *dim,
                      int64_t *grid_height, int64_t *grid_width)
{
    *matrices = in->file.batch * in->file.heads;
    *tokens = in->file.rows;
    *dim = in->file.cols;
    *grid_height = in->grid_height;
    *grid_width = in->grid_width;
}

int64_t input_side(const input *in, int64_t m)
{
    if (in->kind->make == make_photos)
        return PHOTO_SIDE;
    int64_t own = in->network ? trained_side(in->network) : 0, side = own;
    while (own > 0 && side * side < m && trained_has_side(in->network, side + own))
        side += own;
    return side;
}

static int check_draw(const input *in, const input_draw *draw)
{
    if (draw->height > 0 && draw->width > 0 && draw->sample >= 0)
        return EXIT_PASS;
    report_error("%s: sample %lld of %lldx%lld tokens, expected a sample from 0 and a grid of "
                 "at least 1x1",
                 in->name, (long long)draw->sample, (long long)draw->height,
                 (long long)draw->width);
    return EXIT_USAGE;
}

int input_tokens(const input *in, int64_t height, int64_t width, int64_t patch, uint64_t seed,
                 int64_t sample, double *tokens)
{
    input_draw draw = {height, width, patch, seed, sample};
    int code = check_draw(in, &draw);
    return code == EXIT_PASS ? in->kind->make(in, &draw, tokens) : code;
}

int input_crop(const input *in, int64_t height, int64_t width, int64_t patch, uint64_t seed,
               int64_t sample, image *crop, const char **name)
{
    input_draw draw = {height, width, patch, seed, sample};
    int code = check_draw(in, &draw);
    if (code == EXIT_PASS && in->kind->make != make_photos) {
        report_error("%s: expected photos, whose tokens are cut from a picture", in->name);
        code = EXIT_USAGE;
    }
    return code == EXIT_PASS ? photographs_crop(&in->photographs, &draw, crop, name) : code;
}
