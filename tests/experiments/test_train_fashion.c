/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/report.h"
#include "scratch.h"
#include "train/fashion.h"

TestSuite(train_fashion, .init = scratch_begin, .fini = scratch_end);

enum { PIXELS = FASHION_SIDE * FASHION_SIDE, COUNT = 3, IMAGES_SIZE = 16 + COUNT * PIXELS };

static void write_compressed(const char *name, const void *bytes, size_t size)
{
    gzFile file = gzopen(name, "wb");
    cr_assert(file && gzwrite(file, bytes, (unsigned)size) == (int)size && gzclose(file) == Z_OK);
}

static void write_images(void)
{
    unsigned char bytes[IMAGES_SIZE] = {0, 0, 8, 3, 0, 0, 0, COUNT, 0, 0, 0, 28, 0, 0, 0, 28};
    for (int i = 0; i < COUNT * PIXELS; i++)
        bytes[16 + i] = (unsigned char)(i % 251);
    write_compressed("some-images-idx3-ubyte.gz", bytes, sizeof bytes);
}

Test(train_fashion, reads_pixels_and_labels)
{
    unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, COUNT, 9, 0, 5};
    fashion_set set, other;
    write_images();
    write_compressed("some-labels-idx1-ubyte.gz", labels, sizeof labels);
    cr_assert_eq(fashion_read(".", "some", &other), EXIT_PASS);
    labels[10] = 4;
    write_compressed("some-labels-idx1-ubyte.gz", labels, sizeof labels);
    cr_assert_eq(fashion_read(".", "some", &set), EXIT_PASS);
    cr_expect_str_neq(set.sha256, other.sha256);
    fashion_free(&other);
    cr_expect_eq(set.count, COUNT);
    for (int i = 0; i < COUNT * PIXELS; i++)
        cr_assert_eq(set.pixels[i], i % 251);
    cr_expect(memcmp(set.labels, labels + 8, COUNT) == 0);
    cr_expect_eq(strlen(set.sha256), 64);
    fashion_free(&set);
}

/* What is wrong with the file of labels, and what is said. */
Test(train_fashion, refuses_everything_else)
{
    static const struct {
        unsigned char bytes[13];
        int size;
        const char *expected;
    } rows[] = {
        {{0}, 0, "ends inside its header"},
        {{0, 0, 8, 1, 0, 0, 0}, 7, "ends inside its header"},
        {{0, 0, 8, 1, 0, 0, 0, 3, 0, 0}, 10, "ends inside its values"},
        {{0, 0, 8, 1, 0, 0, 0, 3, 0, 0, 0, 0}, 12, "more values than announced"},
        {{0, 0, 8, 1, 0, 0, 0, 2, 0, 0}, 10, "dimension 1 is 2, expected 3"},
        {{0, 0, 8, 1, 0, 0, 0, 4, 0, 0, 0, 0}, 12, "dimension 1 is 4, expected 3"},
        {{0, 0, 8, 1, 255, 255, 255, 255, 0, 0, 0}, 11, "dimension 1 is 4294967295"},
        {{0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0}, 11, "expected 00000801"},
        {{0, 0, 9, 1, 0, 0, 0, 3, 0, 0, 0}, 11, "expected 00000801"},
        {{1, 0, 8, 1, 0, 0, 0, 3, 0, 0, 0}, 11, "expected 00000801"},
        {{0, 1, 8, 1, 0, 0, 0, 3, 0, 0, 0}, 11, "expected 00000801"},
        {{0, 0, 8, 1, 0, 0, 0, 3, 0, 10, 0}, 11, "label 1 is 10, expected 0 to 9"},
    };
    write_images();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fashion_set set;
        write_compressed("some-labels-idx1-ubyte.gz", rows[i].bytes, (size_t)rows[i].size);
        capture();
        cr_expect_eq(fashion_read(".", "some", &set), EXIT_ENVIRONMENT);
        const char *text = captured();
        cr_expect(is_one_line_with(text, rows[i].expected) && strstr(text, "some-labels"),
                  "%zu: %s", i, text);
        fashion_free(&set);
    }
}

Test(train_fashion, names_what_is_missing)
{
    fashion_set set;
    capture();
    cr_expect_eq(fashion_read("nowhere", "train", &set), EXIT_ENVIRONMENT);
    const char *text = captured();
    cr_expect(is_one_line_with(text, "dataset-fashion-mnist"), "%s", text);
    fashion_free(&set);
}

/* The header of the images, just inside and just outside of what is taken. */
Test(train_fashion, sizes_at_their_ends)
{
    static const struct {
        unsigned char count[4], height, width;
        const char *expected;
    } rows[] = {
        {{0, 0, 0, 0}, 28, 28, "dimension 1 is 0, expected 1 to 1000000"},
        {{0, 0, 0, 1}, 28, 28, "ends inside its values"},
        {{0, 15, 66, 64}, 28, 28, "ends inside its values, expected 784000000"},
        {{0, 15, 66, 65}, 28, 28, "dimension 1 is 1000001, expected 1 to 1000000"},
        {{0, 0, 0, 1}, 27, 28, "dimension 2 is 27, expected 28"},
        {{0, 0, 0, 1}, 29, 28, "dimension 2 is 29, expected 28"},
        {{0, 0, 0, 1}, 28, 27, "dimension 3 is 27, expected 28"},
        {{0, 0, 0, 1}, 28, 29, "dimension 3 is 29, expected 28"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char bytes[17] = {0, 0, 8, 3};
        fashion_set set;
        memcpy(bytes + 4, rows[i].count, 4);
        bytes[11] = rows[i].height;
        bytes[15] = rows[i].width;
        write_compressed("some-images-idx3-ubyte.gz", bytes, sizeof bytes);
        capture();
        cr_expect_eq(fashion_read(".", "some", &set), EXIT_ENVIRONMENT);
        const char *text = captured();
        cr_expect(is_one_line_with(text, rows[i].expected) && strstr(text, "some-images"),
                  "%zu: %s", i, text);
        fashion_free(&set);
    }
}

/* What is not a file, or cannot be opened, is called so; a link to a file is one. */
Test(train_fashion, other_things_in_a_files_place)
{
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, COUNT, 9, 0, 4};
    static const char *const name = "some-labels-idx1-ubyte.gz";
    static const char *const expected[] = {"not a regular file", "not a regular file",
                                           "No such file", "Too many levels"};
    fashion_set set;
    write_images();
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(i == 0   ? mkfifo(name, 0600)
                     : i == 1 ? mkdir(name, 0700)
                              : symlink(i == 2 ? "nowhere" : name, name),
                     0);
        capture();
        cr_expect_eq(fashion_read(".", "some", &set), EXIT_ENVIRONMENT);
        const char *text = captured();
        cr_expect(is_one_line_with(text, expected[i]) && strstr(text, name), "%d: %s", i, text);
        fashion_free(&set);
        remove(name);
    }
    write_compressed("elsewhere", labels, sizeof labels);
    cr_assert_eq(symlink("elsewhere", name), 0);
    cr_expect_eq(fashion_read(".", "some", &set), EXIT_PASS);
    fashion_free(&set);
}

/* A file cut anywhere, or that is no gzip file. */
Test(train_fashion, cut_files_are_refused)
{
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, COUNT, 9, 0, 4};
    fashion_set set;
    size_t size;
    write_images();
    write_compressed("some-labels-idx1-ubyte.gz", labels, sizeof labels);
    unsigned char *bytes = scratch_read("some-images-idx3-ubyte.gz", &size);
    for (size_t cut = 0; cut < size; cut += 7) {
        scratch_write("some-images-idx3-ubyte.gz", bytes, cut);
        capture();
        cr_expect_eq(fashion_read(".", "some", &set), EXIT_ENVIRONMENT, "%zu", cut);
        const char *text = captured();
        cr_expect(is_one_line_with(text, "some-images"), "%zu: %s", cut, text);
        fashion_free(&set);
    }
    free(bytes);
}

/* One bright pixel, in row 5 and column 9: where each crop puts it. */
Test(train_fashion, crops_move_and_flip)
{
    enum { ROW = 5, COL = 9, FACTOR = 2, LARGE = FACTOR * FASHION_SIDE };
    static unsigned char pixels[2 * PIXELS];
    static float out[LARGE * LARGE];
    const fashion_set set = {.count = 2, .pixels = pixels};
    bool seen[FASHION_SIDE][FASHION_SIDE] = {{false}};
    pixels[PIXELS + ROW * FASHION_SIDE + COL] = 255;
    for (int crop = FASHION_WHOLE; crop < FASHION_CROPS; crop++) {
        int bright = 0, row = -1, col = -1;
        fashion_image(&set, 1, crop, FASHION_SIDE, out);
        for (int i = 0; i < PIXELS; i++)
            if (out[i] > 0) {
                bright++;
                row = i / FASHION_SIDE;
                col = i % FASHION_SIDE;
            } else
                cr_assert_float_eq(out[i], -0.2860f / 0.3530f, 1e-6f);
        cr_assert_eq(bright, 1, "crop %d", crop);
        cr_expect_float_eq(out[row * FASHION_SIDE + col], 0.7140f / 0.3530f, 1e-6f);
        if (crop == FASHION_WHOLE) {
            cr_expect(row == ROW && col == COL);
            continue;
        }
        int middle = crop % 2 ? FASHION_SIDE - 1 - COL : COL;
        cr_expect(abs(row - ROW) <= FASHION_SHIFT && abs(col - middle) <= FASHION_SHIFT,
                  "crop %d: %d, %d", crop, row, col);
        /* crops go down fastest, then right; a shifted crop moves the pixel the other way */
        int shift = crop / 2, range = 2 * FASHION_SHIFT + 1;
        int down = shift % range - FASHION_SHIFT, right = shift / range - FASHION_SHIFT;
        cr_expect(row == ROW - down && col == middle - right, "crop %d: %d, %d", crop, row, col);
        cr_expect(!seen[row][col], "crop %d is another one", crop);
        seen[row][col] = true;
    }
    /* of 42 x 42 the pixel covers columns 13.5 to 15 and rows 7.5 to 9 */
    fashion_image(&set, 1, FASHION_WHOLE, 42, out);
    for (int i = 0; i < 42 * 42; i++) {
        double rows[] = {[7] = 0.5, [8] = 1}, cols[] = {[13] = 0.5, [14] = 1};
        int y = i / 42, x = i % 42;
        double share = y > 6 && y < 9 && x > 12 && x < 15 ? rows[y] * cols[x] : 0;
        cr_expect_float_eq(out[i], (float)((share - 0.2860) / 0.3530), 1e-6f, "%d, %d", y, x);
    }
    fashion_image(&set, 1, FASHION_WHOLE, 4, out); /* means of 7 x 7 */
    for (int i = 0; i < 16; i++)
        cr_expect_float_eq(out[i], (float)(((i == 1) / 49.0 - 0.2860) / 0.3530), 1e-6f, "%d", i);
    fashion_image(&set, 1, FASHION_WHOLE, LARGE, out);
    for (int i = 0; i < LARGE * LARGE; i++)
        cr_expect((out[i] > 0) == (i / LARGE / FACTOR == ROW && i % LARGE / FACTOR == COL));
}
