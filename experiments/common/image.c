/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <png.h>

#include "files.h"
#include "report.h"

/* A few bytes of PNG can announce any size; this bounds what is allocated for them. */
enum { MAX_SIDE = 4096 };

static int refuse(const char *path, png_image *png, const char *reason)
{
    report_error("%s: %s, expected a PNG photograph of at most %dx%d pixels without transparency",
                 path, reason, MAX_SIDE, MAX_SIDE);
    png_image_free(png);
    return EXIT_ENVIRONMENT;
}

static int decode(const char *path, FILE *file, image *img)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_stdio(&png, file))
        return refuse(path, &png, png.message);
    if (png.width > MAX_SIDE || png.height > MAX_SIDE)
        return refuse(path, &png, "it is too large");
    if (png.format & PNG_FORMAT_FLAG_ALPHA)
        return refuse(path, &png, "it has transparent pixels");
    png.format = PNG_FORMAT_RGB;
    size_t count = PNG_IMAGE_SIZE(png);
    png_byte *bytes = must_allocate(count, 1);
    if (!png_image_finish_read(&png, NULL, bytes, 0, NULL)) {
        free(bytes);
        return refuse(path, &png, png.message);
    }
    img->height = png.height;
    img->width = png.width;
    img->rgb = must_allocate(count, sizeof *img->rgb);
    for (size_t i = 0; i < count; i++)
        img->rgb[i] = bytes[i] / 255.0;
    free(bytes);
    return EXIT_PASS;
}

int image_read_png(const char *path, image *img)
{
    *img = (image){0};
    FILE *file = files_open(path, "a PNG file");
    if (!file)
        return EXIT_ENVIRONMENT;
    int status = decode(path, file, img);
    fclose(file);
    return status;
}

/* to_j += w_ij from_i for pixel j of `count_to` along one axis; a pixel is `inner` values. */
static void resample_pixel(int64_t count, const double *from, int64_t count_to, int64_t j,
                           int64_t inner, double *to)
{
    double ratio = (double)count / (double)count_to, reach = fmax(ratio, 1), total = 0;
    double centre = ((double)j + 0.5) * ratio;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = (int64_t)fmax(0, floor(centre - reach)); i < count; i++) {
            double weight = 1 - fabs((double)i + 0.5 - centre) / reach;
            if ((double)i > centre + reach)
                break;
            if (weight <= 0)
                continue;
            if (pass == 0)
                total += weight;
            for (int64_t c = 0; c < inner && pass == 1; c++)
                to[c] += weight / total * from[i * inner + c];
        }
}

void image_resample(const image *from, int64_t height, int64_t width, image *to)
{
    int64_t row = 3 * from->width;
    double *tall = must_allocate((size_t)height, (size_t)row * sizeof *tall);
    *to = (image){height, width, must_allocate((size_t)height, 3 * (size_t)width * sizeof *tall)};
    for (int64_t y = 0; y < height; y++)
        resample_pixel(from->height, from->rgb, height, y, row, tall + y * row);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            resample_pixel(from->width, tall + y * row, width, x, 3, to->rgb + 3 * (y * width + x));
    free(tall);
}
