/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/fashion.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/files.h"
#include "common/report.h"

enum { MOST_DIMENSIONS = 3, MOST_IMAGES = 1000000 };

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
           (uint32_t)bytes[3];
}

/* Reads the header (two zero bytes, 8 for unsigned bytes, the number of dimensions, and each of
 * them as four bytes) and returns the bytes after it. sizes: the expected dimensions; 0 accepts any
 * up to MOST_IMAGES and is replaced by it. Null, with the reason reported, for any other file. */
static unsigned char *read_idx(const char *path, gzFile file, int dimensions,
                               int64_t sizes[MOST_DIMENSIONS])
{
    unsigned char header[4 + 4 * MOST_DIMENSIONS];
    int length = 4 + 4 * dimensions;
    if (gzread(file, header, (unsigned)length) != length) {
        report_error("%s: the file ends inside its header", path);
        return NULL;
    }
    if (header[0] != 0 || header[1] != 0 || header[2] != 8 || header[3] != dimensions) {
        report_error("%s: begins with %02x%02x%02x%02x, expected 0000%02x%02x: bytes in %d "
                     "dimensions",
                     path, header[0], header[1], header[2], header[3], 8, dimensions, dimensions);
        return NULL;
    }
    int64_t count = 1;
    for (int i = 0; i < dimensions; i++) {
        int64_t size = big_endian(header + 4 + 4 * i);
        if (sizes[i] ? size != sizes[i] : size < 1 || size > MOST_IMAGES) {
            report_error("%s: dimension %d is %" PRId64 ", expected %s%" PRId64, path, i + 1, size,
                         sizes[i] ? "" : "1 to ", sizes[i] ? sizes[i] : MOST_IMAGES);
            return NULL;
        }
        sizes[i] = size;
        count *= size;
    }
    unsigned char *values = must_allocate((size_t)count + 1, 1);
    int got = gzread(file, values, (unsigned)count + 1);
    if (got != count) {
        report_error("%s: %s, expected %" PRId64 " values", path,
                     got < 0       ? "cannot be decompressed"
                     : got < count ? "the file ends inside its values"
                                   : "there are more values than announced",
                     count);
        free(values);
        return NULL;
    }
    return values;
}

static unsigned char *read_file(const char *folder, const char *name, const char *what,
                                int dimensions, int64_t sizes[MOST_DIMENSIONS])
{
    char *path = must_format("%s/%s-%s-idx%d-ubyte.gz", folder, name, what, dimensions);
    unsigned char *values = NULL;
    int descriptor = files_open_descriptor(
        path, "Fashion-MNIST: Debian's package dataset-fashion-mnist has it (scripts/setup "
              "--training), or --dataset names its folder");
    gzFile file = descriptor >= 0 ? gzdopen(descriptor, "rb") : NULL;
    if (file) {
        values = read_idx(path, file, dimensions, sizes);
        if (gzclose(file) != Z_OK && values) { /* checks the checksum at the end */
            report_error("%s: the file ends early", path);
            free(values);
            values = NULL;
        }
    } else if (descriptor >= 0) {
        report_error("%s: out of memory", path);
        close(descriptor);
    }
    free(path);
    return values;
}

int fashion_read(const char *folder, const char *name, fashion_set *set)
{
    int64_t sizes[MOST_DIMENSIONS] = {0, FASHION_SIDE, FASHION_SIDE};
    *set = (fashion_set){0};
    set->pixels = read_file(folder, name, "images", 3, sizes);
    if (set->pixels)
        set->labels = read_file(folder, name, "labels", 1, sizes);
    if (!set->labels)
        return EXIT_ENVIRONMENT;
    set->count = sizes[0];
    for (int64_t i = 0; i < set->count; i++)
        if (set->labels[i] >= FASHION_CLASSES) {
            report_error("%s/%s-labels-idx1-ubyte.gz: label %" PRId64 " is %d, expected 0 to %d",
                         folder, name, i, set->labels[i], FASHION_CLASSES - 1);
            return EXIT_ENVIRONMENT;
        }
    struct sha256_ctx state;
    sha256_init(&state);
    sha256_update(&state, (size_t)(set->count * FASHION_SIDE * FASHION_SIDE), set->pixels);
    sha256_update(&state, (size_t)set->count, set->labels);
    sha256_hex(&state, set->sha256);
    return EXIT_PASS;
}

void fashion_free(fashion_set *set)
{
    free(set->pixels);
    free(set->labels);
    *set = (fashion_set){0};
}

/* What pixel i of `side` pixels has in common with pixel `of` of 28 on the same line, in units of
 * 1/(28 side) of it. */
static int64_t overlap(int64_t i, int64_t side, int64_t of)
{
    int64_t first = i * FASHION_SIDE > of * side ? i * FASHION_SIDE : of * side;
    int64_t last =
        (i + 1) * FASHION_SIDE < (of + 1) * side ? (i + 1) * FASHION_SIDE : (of + 1) * side;
    return last - first;
}

/* The mean of the area that pixel (y, x) of side x side covers, of pixels that are black beyond the
 * edges; exact until it is rounded once. */
static float area_mean(const unsigned char *pixels, int64_t side, int64_t y, int64_t x,
                       int64_t down, int64_t right, bool flipped)
{
    int64_t sum = 0;
    for (int64_t i = y * FASHION_SIDE / side; i * side < (y + 1) * FASHION_SIDE; i++)
        for (int64_t j = x * FASHION_SIDE / side; j * side < (x + 1) * FASHION_SIDE; j++) {
            int64_t row = i + down, col = j + right;
            col = flipped ? FASHION_SIDE - 1 - col : col;
            bool there = row >= 0 && row < FASHION_SIDE && col >= 0 && col < FASHION_SIDE;
            if (there)
                sum += overlap(y, side, i) * overlap(x, side, j) * pixels[row * FASHION_SIDE + col];
        }
    return (float)sum / (FASHION_SIDE * FASHION_SIDE * 255);
}

void fashion_image(const fashion_set *set, int64_t image, int crop, int64_t side, float *out)
{
    enum { RANGE = 2 * FASHION_SHIFT + 1 };
    static const float mean = 0.2860f, deviation = 0.3530f;
    const unsigned char *pixels = set->pixels + image * FASHION_SIDE * FASHION_SIDE;
    bool flipped = crop >= 0 && crop % 2 == 1;
    int64_t down = crop < 0 ? 0 : crop / 2 % RANGE - FASHION_SHIFT;
    int64_t right = crop < 0 ? 0 : crop / 2 / RANGE - FASHION_SHIFT;
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            float value = area_mean(pixels, side, y, x, down, right, flipped);
            out[y * side + x] = (value - mean) / deviation;
        }
}
