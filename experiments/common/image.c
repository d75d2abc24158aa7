/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

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
    FILE *file = fopen(path, "rb");
    if (!file) {
        report_error("%s: %s, expected a PNG file", path, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    int status = decode(path, file, img);
    fclose(file);
    return status;
}
