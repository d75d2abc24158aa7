/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "common/image.h"
#include "common/report.h"
#include "scratch.h"

static void write_png(const char *path, uint32_t width, uint32_t height, uint32_t format,
                      const void *pixels)
{
    png_image png = {.version = PNG_IMAGE_VERSION, .width = width, .height = height};
    png.format = format;
    cr_assert(png_image_write_to_file(&png, path, 0, pixels, 0, NULL), "%s: %s", path, png.message);
}

/* 12 x 7 pixels, every byte another one. */
static void write_colours(const char *path, unsigned char *pixels)
{
    for (int i = 0; i < 12 * 7 * 3; i++)
        pixels[i] = (unsigned char)(i * 37 + 11);
    write_png(path, 12, 7, PNG_FORMAT_RGB, pixels);
}

static void expect_refused(const char *path, const char *fragment, const char *what)
{
    image img;
    capture();
    int status = image_read_png(path, &img);
    const char *text = captured();
    cr_expect(status == EXIT_ENVIRONMENT && !img.rgb, "%s: status=%d", what, status);
    cr_expect(is_one_line_with(text, fragment) && strstr(text, path), "%s: said '%s'", what, text);
    free(img.rgb);
}

Test(image, reads_colours, .init = scratch_begin, .fini = scratch_end)
{
    unsigned char pixels[12 * 7 * 3];
    image img;
    write_colours("x.png", pixels);
    cr_assert(image_read_png("x.png", &img) == EXIT_PASS);
    cr_expect(img.height == 7 && img.width == 12, "%dx%d", (int)img.height, (int)img.width);
    for (int i = 0; i < 12 * 7 * 3; i++)
        cr_expect(img.rgb[i] == pixels[i] / 255.0, "value %d: %g", i, img.rgb[i]);
    free(img.rgb);
}

Test(image, reads_grey_as_three_equal_channels, .init = scratch_begin, .fini = scratch_end)
{
    unsigned char pixels[256];
    image img;
    for (int i = 0; i < 256; i++)
        pixels[i] = (unsigned char)i;
    write_png("x.png", 16, 16, PNG_FORMAT_GRAY, pixels);
    cr_assert(image_read_png("x.png", &img) == EXIT_PASS);
    for (int i = 0; i < 3 * 256; i++)
        cr_expect(img.rgb[i] == i / 3 / 255.0, "value %d: %g", i, img.rgb[i]);
    free(img.rgb);
}

/* Channel c of pixel (y, x) of an image whose pixels are v(y, x) (1 + c). */
static void expect_pixel(const image *img, int y, int x, double want)
{
    for (int c = 0; c < 3; c++) {
        double got = img->rgb[3 * (y * img->width + x) + c];
        cr_expect(fabs(got - want * (1 + c)) <= 1e-13 * (1 + fabs(want)),
                  "(%d,%d,%d) %.17g, want %.17g", y, x, c, got, want * (1 + c));
    }
}

static image make_image(int height, int width, double (*value)(double y, double x))
{
    image img = {height, width, malloc((size_t)(height * width) * 3 * sizeof(double))};
    for (int i = 0; i < 3 * height * width; i++)
        img.rgb[i] = value((i / 3 / width) + 0.5, i / 3 % width + 0.5) * (1 + i % 3);
    return img;
}

static double plane(double y, double x)
{
    return 1 + 3 * y - 2 * x;
}

static double spike(double y, double x)
{
    return y == 2.5 && x == 4.5;
}

Test(image, resampling_to_the_same_size_copies)
{
    image from = make_image(5, 8, plane), to;
    image_resample(&from, 5, 8, &to);
    cr_expect(to.height == 5 && to.width == 8 &&
              memcmp(to.rgb, from.rgb, 5 * 8 * 3 * sizeof(double)) == 0);
    free(to.rgb);
    free(from.rgb);
}

/* Away from the edges a plane stays the plane: enlarged in any ratio, shrunk in whole ones. */
Test(image, resampling_keeps_a_plane)
{
    static const int sizes[][2] = {{24, 24}, {6, 6}, {24, 4}, {17, 31}, {6, 29}};
    image from = make_image(12, 12, plane);
    for (int k = 0; k < 5; k++) {
        int height = sizes[k][0], width = sizes[k][1];
        image to;
        image_resample(&from, height, width, &to);
        double tall = 12.0 / height, wide = 12.0 / width;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                double at_y = (y + 0.5) * tall, at_x = (x + 0.5) * wide;
                bool in_interior = fmin(at_y, 12 - at_y) >= 0.5 + fmax(1, tall) &&
                                   fmin(at_x, 12 - at_x) >= 0.5 + fmax(1, wide);
                if (in_interior)
                    expect_pixel(&to, y, x, plane(at_y, at_x));
            }
        free(to.rgb);
    }
    free(from.rgb);
}

/* Weights by hand: halved, the triangle gives 1/8, 3/8, 3/8, 1/8; doubled, 1/4 and 3/4. */
Test(image, resampling_weighs_by_a_triangle)
{
    static const double halved[] = {0, 0.125, 0.375, 0, 0};
    image from = make_image(6, 10, spike), to;
    image_resample(&from, 6, 5, &to);
    for (int x = 0; x < 5; x++)
        expect_pixel(&to, 2, x, halved[x]);
    free(to.rgb);
    image_resample(&from, 12, 10, &to);
    for (int y = 0; y < 12; y++)
        expect_pixel(&to, y, 4, y == 3 || y == 6 ? 0.25 : y == 4 || y == 5 ? 0.75 : 0);
    free(to.rgb);
    free(from.rgb);
}

Test(image, refuses_what_it_cannot_read, .init = scratch_begin, .fini = scratch_end)
{
    static unsigned char row[4097];
    static const char jpeg[] = "\xff\xd8\xff\xe0\0\x10JFIF";
    write_png("alpha.png", 2, 2, PNG_FORMAT_RGBA, row);
    write_png("wide.png", 4097, 1, PNG_FORMAT_GRAY, row);
    write_png("high.png", 1, 4097, PNG_FORMAT_GRAY, row);
    scratch_write("jpeg.png", jpeg, sizeof jpeg);
    scratch_write("empty.png", "", 0);
    expect_refused("missing.png", "No such file", "missing");
    expect_refused("alpha.png", "transparent", "transparent");
    expect_refused("wide.png", "too large", "wide");
    expect_refused("high.png", "too large", "high");
    expect_refused("jpeg.png", "expected a PNG", "a JPEG");
    expect_refused("empty.png", "expected a PNG", "empty");
    expect_refused("/", "expected a PNG", "a folder");
}

/* Announces 2^31 - 1 pixels a side in 57 bytes. */
Test(image, refuses_a_giant_before_allocating, .init = scratch_begin, .fini = scratch_end)
{
    unsigned char pixels[12 * 7 * 3];
    size_t size;
    write_colours("x.png", pixels);
    unsigned char *bytes = scratch_read("x.png", &size);
    memcpy(bytes + 16, "\x7f\xff\xff\xff\x7f\xff\xff\xff", 8);
    scratch_write("giant.png", bytes, size);
    expect_refused("giant.png", "expected a PNG", "giant");
    free(bytes);
}

/* Everything but the end mark and its checksum is needed. */
Test(image, refuses_every_truncation, .init = scratch_begin, .fini = scratch_end)
{
    unsigned char pixels[12 * 7 * 3];
    size_t size;
    write_colours("x.png", pixels);
    unsigned char *bytes = scratch_read("x.png", &size);
    for (size_t length = 0; length + 12 < size; length++) {
        char what[32];
        snprintf(what, sizeof what, "%zu of %zu bytes", length, size);
        scratch_write("cut.png", bytes, length);
        expect_refused("cut.png", "expected a PNG", what);
    }
    free(bytes);
}

/* Whatever the bytes, the reader returns: with an image of numbers in [0, 1], or with one line. */
static void expect_calm(const char *path, const char *what)
{
    image img;
    capture();
    int status = image_read_png(path, &img);
    const char *text = captured();
    if (status == EXIT_PASS) {
        bool good = img.rgb != NULL && !*text;
        for (int64_t i = 0; good && i < 3 * img.height * img.width; i++)
            good = img.rgb[i] >= 0 && img.rgb[i] <= 1;
        cr_expect(good, "%s: accepted with '%s'", what, text);
    } else {
        cr_expect(status == EXIT_ENVIRONMENT && !img.rgb && is_one_line_with(text, path),
                  "%s: status=%d said '%s'", what, status, text);
    }
    free(img.rgb);
}

Test(image, survives_every_changed_byte, .init = scratch_begin, .fini = scratch_end)
{
    static const unsigned char changes[] = {1, 4, 16, 128, 255};
    unsigned char pixels[12 * 7 * 3];
    size_t size;
    write_colours("x.png", pixels);
    unsigned char *bytes = scratch_read("x.png", &size);
    for (size_t i = 0; i < size; i++)
        for (size_t k = 0; k < sizeof changes; k++) {
            char what[48];
            snprintf(what, sizeof what, "byte %zu changed by %d", i, changes[k]);
            bytes[i] ^= changes[k];
            scratch_write("changed.png", bytes, size);
            bytes[i] ^= changes[k];
            expect_calm("changed.png", what);
        }
    free(bytes);
}
