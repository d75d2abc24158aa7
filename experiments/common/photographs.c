/* SPDX-License-Identifier: BSD-3-Clause */
#include "photographs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "random.h"
#include "report.h"
#include "resources.h"

enum {
    HEX_LENGTH = SHA256_HEX_SIZE - 1,
    MIN_PATCH = 4, /* the smallest patch with at least TOKEN_DIM values: 3 * 4 * 4 */
};

/* Compares the SHA-256 of the file with `expected` and adds its bytes to the digest over all files.
 */
static int check_sum(const char *path, const char *expected, struct sha256_ctx *all)
{
    struct sha256_ctx own;
    char found[SHA256_HEX_SIZE];
    sha256_init(&own);
    int status = sha256_add_file(&own, path);
    if (status != EXIT_PASS)
        return status;
    sha256_hex(&own, found);
    if (strcmp(found, expected) != 0) {
        report_error("%s: SHA-256 %s, expected %s (SHA256SUMS)", path, found, expected);
        return EXIT_ENVIRONMENT;
    }
    return sha256_add_file(all, path);
}

static int read_photograph(photographs *set, const char *name, const char *sum,
                           struct sha256_ctx *all)
{
    char *path = resource_path("images", name);
    if (!path)
        return EXIT_ENVIRONMENT;
    struct photograph item = {0};
    int status = check_sum(path, sum, all);
    if (status == EXIT_PASS)
        status = image_read_png(path, &item.image);
    free(path);
    if (status != EXIT_PASS)
        return status;
    item.name = must_format("%s", name);
    set->items = must_resize(set->items, (size_t)set->count + 1, sizeof *set->items);
    set->items[set->count++] = item;
    return EXIT_PASS;
}

/* Splits "HEX  NAME" in place; a name has no folder, so that it stays among the photographs. Null
 * if the line is anything else. */
static char *split_line(char *line)
{
    line[strcspn(line, "\n")] = 0;
    if (strspn(line, "0123456789abcdef") != HEX_LENGTH || strncmp(line + HEX_LENGTH, "  ", 2) != 0)
        return NULL;
    char *name = line + HEX_LENGTH + 2;
    if (!*name || *name == '.' || strchr(name, '/'))
        return NULL;
    line[HEX_LENGTH] = 0;
    return name;
}

static int read_list(photographs *set, const char *path, FILE *list)
{
    struct sha256_ctx all;
    char line[512];
    sha256_init(&all);
    while (fgets(line, sizeof line, list)) {
        char *name = split_line(line);
        if (!name) {
            report_error("%s: line %lld, expected a SHA-256, two spaces and a file's name", path,
                         (long long)set->count + 1);
            return EXIT_ENVIRONMENT;
        }
        int status = read_photograph(set, name, line, &all);
        if (status != EXIT_PASS)
            return status;
    }
    if (ferror(list) || set->count == 0) {
        report_error("%s: no lines can be read, expected one per photograph", path);
        return EXIT_ENVIRONMENT;
    }
    sha256_hex(&all, set->sha256);
    return EXIT_PASS;
}

int photographs_read(photographs *set)
{
    *set = (photographs){0};
    char *path = resource_path("images", "SHA256SUMS");
    if (!path)
        return EXIT_ENVIRONMENT;
    FILE *list = files_open(path, "the list of photographs");
    int status = list ? read_list(set, path, list) : EXIT_ENVIRONMENT;
    if (list)
        fclose(list);
    free(path);
    return status;
}

void photographs_free(photographs *set)
{
    for (int64_t i = 0; i < set->count; i++) {
        free(set->items[i].name);
        free(set->items[i].image.rgb);
    }
    free(set->items);
    *set = (photographs){0};
}

static const struct photograph *choose_photograph(const photographs *set, const input_draw *draw)
{
    const struct photograph *item = &set->items[draw->sample % set->count];
    const image *img = &item->image;
    if (draw->patch >= MIN_PATCH && draw->height <= img->height / draw->patch &&
        draw->width <= img->width / draw->patch)
        return item;
    report_error("photos: %lldx%lld patches of %lldx%lld pixels, expected patches of at least "
                 "%dx%d and a crop that fits %s (%lldx%lld)",
                 (long long)draw->height, (long long)draw->width, (long long)draw->patch,
                 (long long)draw->patch, MIN_PATCH, MIN_PATCH, item->name, (long long)img->height,
                 (long long)img->width);
    return NULL;
}

static void copy_row(const double *from, int64_t width, bool flip, double *to)
{
    for (int64_t x = 0; x < width; x++)
        memcpy(to + 3 * x, from + 3 * (flip ? width - 1 - x : x), 3 * sizeof *to);
}

int photographs_crop(const photographs *set, const input_draw *draw, image *crop, const char **name)
{
    const struct photograph *item = choose_photograph(set, draw);
    if (!item)
        return EXIT_USAGE;
    const image *img = &item->image;
    crop->height = draw->patch * draw->height;
    crop->width = draw->patch * draw->width;
    crop->rgb = must_allocate((size_t)crop->height, 3 * (size_t)crop->width * sizeof *crop->rgb);
    random_stream *r = random_create(draw->seed, "photos crop", (uint64_t)draw->sample);
    int64_t top = random_below(r, img->height - crop->height + 1);
    int64_t left = random_below(r, img->width - crop->width + 1);
    bool flip = random_uniform(r) < 0.5;
    random_free(r);
    for (int64_t y = 0; y < crop->height; y++)
        copy_row(img->rgb + 3 * ((top + y) * img->width + left), crop->width, flip,
                 crop->rgb + 3 * y * crop->width);
    *name = item->name;
    return EXIT_PASS;
}

static void copy_patch(const image *crop, int64_t top, int64_t left, int64_t patch, double *vector)
{
    size_t row = 3 * (size_t)patch;
    for (int64_t y = 0; y < patch; y++)
        memcpy(vector + 3 * y * patch, crop->rgb + 3 * ((top + y) * crop->width + left),
               row * sizeof *vector);
}

/* LayerNorm (Ba, Kiros, Hinton 2016) without gain and bias, as SOFT's blocks apply it to their
 * input: biased variance. eps, because a patch of one colour has almost no variance. */
static void layer_norm(double *token)
{
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < TOKEN_DIM; c++)
        mean += token[c] / TOKEN_DIM;
    for (int64_t c = 0; c < TOKEN_DIM; c++)
        variance += (token[c] - mean) * (token[c] - mean) / TOKEN_DIM;
    for (int64_t c = 0; c < TOKEN_DIM; c++)
        token[c] = (token[c] - mean) / sqrt(variance + 1e-5);
}

void photographs_embed(const image *crop, const input_draw *draw, double *tokens)
{
    int64_t length = 3 * draw->patch * draw->patch;
    double *vector = must_allocate((size_t)length, sizeof *vector);
    double *projection = must_allocate((size_t)length, TOKEN_DIM * sizeof *projection);
    random_stream *r = random_create(draw->seed, "photos projection", (uint64_t)draw->patch);
    random_orthonormal(r, length, TOKEN_DIM, projection);
    random_free(r);
    for (int64_t i = 0; i < draw->height * draw->width; i++) {
        double *token = tokens + i * TOKEN_DIM;
        copy_patch(crop, i / draw->width * draw->patch, i % draw->width * draw->patch, draw->patch,
                   vector);
        memset(token, 0, TOKEN_DIM * sizeof *token);
        for (int64_t k = 0; k < length; k++)
            for (int64_t c = 0; c < TOKEN_DIM; c++)
                token[c] += vector[k] * projection[k * TOKEN_DIM + c];
        layer_norm(token);
    }
    free(projection);
    free(vector);
}

int photographs_tokens(const photographs *set, const input_draw *draw, double *tokens)
{
    image crop;
    const char *name;
    int status = photographs_crop(set, draw, &crop, &name);
    if (status != EXIT_PASS)
        return status;
    photographs_embed(&crop, draw, tokens);
    free(crop.rgb);
    return EXIT_PASS;
}
