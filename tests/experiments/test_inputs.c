/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <png.h>

#include "common/image.h"
#include "common/inputs.h"
#include "common/random.h"
#include "common/report.h"
#include "common/resources.h"
#include "common/sha256.h"
#include "scratch.h"

enum { D = TOKEN_DIM };

static double *tokens_of(const input *in, int64_t height, int64_t width, int64_t patch,
                         uint64_t seed, int64_t sample)
{
    double *tokens = malloc((size_t)(height * width * D) * sizeof *tokens);
    int status = input_tokens(in, height, width, patch, seed, sample, tokens);
    cr_assert(status == EXIT_PASS, "%s %dx%d: status=%d", input_name(in), (int)height, (int)width,
              status);
    return tokens;
}

static double *tokens_named(const char *name, int64_t height, int64_t width, uint64_t seed,
                            int64_t sample)
{
    input *in;
    cr_assert(input_open(name, 0, 0, &in) == EXIT_PASS, "%s", name);
    double *tokens = tokens_of(in, height, width, 8, seed, sample);
    input_free(in);
    return tokens;
}

static void expect_open_refused(const char *text, int64_t grid_height, int64_t grid_width,
                                int expected, const char *fragment)
{
    input *in;
    capture();
    int status = input_open(text, grid_height, grid_width, &in);
    const char *said = captured();
    cr_expect(status == expected && !in, "'%s': status=%d", text, status);
    cr_expect(is_one_line_with(said, fragment), "'%s': said '%s', not '%s'", text, said, fragment);
    input_free(in);
}

static void expect_tokens_refused(const input *in, int64_t height, int64_t width, int64_t patch,
                                  int64_t sample, const char *fragment)
{
    double *tokens = malloc(4096 * D * sizeof *tokens);
    capture();
    int status = input_tokens(in, height, width, patch, 1, sample, tokens);
    const char *said = captured();
    cr_expect(status == EXIT_USAGE && is_one_line_with(said, fragment),
              "%s %lldx%lld patch=%lld sample=%lld: status=%d said '%s'", input_name(in),
              (long long)height, (long long)width, (long long)patch, (long long)sample, status,
              said);
    free(tokens);
}

/* Names and parameters. */

Test(inputs, table_is_complete)
{
    int count = 0;
    for (const input_kind *kind = input_kinds; kind->name; kind++, count++) {
        cr_expect(*kind->name && *kind->formula && kind->parameter && kind->make, "%s", kind->name);
        bool text = strcmp(kind->name, "trained") == 0;
        cr_expect(*kind->parameter && !text ? kind->lowest > 0 && kind->highest > kind->lowest
                                            : kind->highest == 0,
                  "%s: parameter '%s'", kind->name, kind->parameter);
        for (const input_kind *other = input_kinds; other < kind; other++)
            cr_expect(strcmp(kind->name, other->name) != 0, "%s twice", kind->name);
    }
    cr_expect(count == 10, "%d kinds", count);
}

static const char *const good_names[] = {
    "iid",          "iid:0.3",      "iid:1e-3",  "iid:.5",     "iid:1e6",       "smooth",
    "smooth:2",     "smooth:8",     "smooth:64", "noisy",      "noisy:0.25",    "clusters",
    "clusters:1",   "clusters:100", "constant",  "circulant",  "circulant:2.5", "duplicates",
    "duplicates:1", "duplicates:8", "photos",    "smooth:1e1",
};
enum { GOOD_NAMES = sizeof good_names / sizeof *good_names };

Test(inputs, opens_good_names)
{
    for (size_t i = 0; i < GOOD_NAMES; i++) {
        input *in;
        int status = input_open(good_names[i], 0, 0, &in);
        cr_assert(status == EXIT_PASS, "%s: status=%d", good_names[i], status);
        cr_expect(strcmp(input_name(in), good_names[i]) == 0, "%s", input_name(in));
        cr_expect(!input_is_file(in), "%s", good_names[i]);
        size_t hash = strlen(input_sha256(in));
        cr_expect(hash == (strcmp(good_names[i], "photos") == 0 ? 64 : 0), "%s: hash of %zu digits",
                  good_names[i], hash);
        input_free(in);
    }
}

Test(inputs, refuses_bad_names_and_parameters, .init = scratch_begin, .fini = scratch_end)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"",
         "photos, trained, iid, smooth, noisy, clusters, constant, circulant, duplicates, FILE.npy"},
        {"smoth", "did you mean smooth"},
        {"iidx", "input 'iidx': expected one of photos, trained, iid"},
        {"ii", "expected one of"},
        {"IID", "expected one of"},
        {" iid", "expected one of"},
        {":1", "expected one of"},
        {"file.npz", "expected one of"},
        {"iid:", "parameter '', expected a number from 1e-06 to 1e+06 (sigma, default 1)"},
        {"iid:x", "parameter 'x', expected a number"},
        {"iid:1x", "expected a number"},
        {"iid: 1", "expected a number"},
        {"iid:1 ", "expected a number"},
        {"iid:1:2", "parameter '1:2', expected a number"},
        {"iid:1e", "expected a number"},
        {"iid:1.2.3", "expected a number"},
        {"iid:0x1p3", "expected a number"},
        {"iid:nan", "expected a number"},
        {"iid:inf", "expected a number"},
        {"iid:1e999", "expected a number"},
        {"iid:0", "expected a number"},
        {"iid:-1", "expected a number"},
        {"iid:1e-7", "expected a number"},
        {"iid:1000001", "expected a number"},
        {"noisy:0", "sigma, default 0.1"},
        {"smooth:1", "expected a whole number from 2 to 64"},
        {"smooth:65", "expected a whole number from 2 to 64"},
        {"smooth:2.5", "expected a whole number"},
        {"clusters:0", "expected a whole number from 1 to 65536"},
        {"clusters:1e9", "expected a whole number"},
        {"circulant:0", "radius"},
        {"circulant:-3", "radius"},
        {"duplicates:0", "expected a whole number from 1"},
        {"duplicates:1.5", "expected a whole number from 1"},
        {"photos:3", "takes no parameter"},
        {"photos:", "takes no parameter"},
        {"constant:1", "takes no parameter"},
        {"FILE.npy:1", "takes no parameter"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_open_refused(rows[i].text, 0, 0, EXIT_USAGE, rows[i].says);
}

Test(inputs, refuses_bad_requests, .init = scratch_begin, .fini = scratch_end)
{
    for (size_t i = 0; i < GOOD_NAMES; i++) {
        input *in;
        cr_assert(input_open(good_names[i], 0, 0, &in) == EXIT_PASS);
        expect_tokens_refused(in, 0, 4, 8, 0, "expected a sample from 0 and a grid");
        expect_tokens_refused(in, 4, 0, 8, 0, "expected a sample from 0 and a grid");
        expect_tokens_refused(in, -4, -4, 8, 0, "expected a sample from 0 and a grid");
        expect_tokens_refused(in, 4, 4, 8, -1, "expected a sample from 0 and a grid");
        input_free(in);
    }
}

/* Seeds. */

Test(inputs, same_key_same_tokens_other_key_others)
{
    enum { HEIGHT = 6, WIDTH = 7 };
    size_t size = HEIGHT * WIDTH * D * sizeof(double);
    for (size_t i = 0; i < GOOD_NAMES; i++) {
        const char *name = good_names[i];
        double *first = tokens_named(name, HEIGHT, WIDTH, 1, 0);
        double *again = tokens_named(name, HEIGHT, WIDTH, 1, 0);
        double *other_seed = tokens_named(name, HEIGHT, WIDTH, 2, 0);
        double *other_sample = tokens_named(name, HEIGHT, WIDTH, 1, 1);
        double *swapped = tokens_named(name, HEIGHT, WIDTH, 0, 1);
        for (int k = 0; k < HEIGHT * WIDTH * D; k++)
            cr_assert(isfinite(first[k]), "%s: value %d", name, k);
        cr_expect(memcmp(first, again, size) == 0, "%s: not the same again", name);
        cr_expect(memcmp(first, other_seed, size) != 0, "%s: the seed changes nothing", name);
        cr_expect(memcmp(first, other_sample, size) != 0, "%s: the sample changes nothing", name);
        cr_expect(memcmp(first, swapped, size) != 0, "%s: seed and sample are exchanged", name);
        free(first);
        free(again);
        free(other_seed);
        free(other_sample);
        free(swapped);
    }
}

Test(inputs, same_tokens_from_any_thread)
{
    enum { SAMPLES = 16, SIZE = 5 * 5 * D };
    static double alone[SAMPLES][SIZE], together[SAMPLES][SIZE];
    for (size_t i = 0; i < GOOD_NAMES; i++) {
        input *in;
        cr_assert(input_open(good_names[i], 0, 0, &in) == EXIT_PASS);
        for (int s = 0; s < SAMPLES; s++)
            input_tokens(in, 5, 5, 8, 1, s, alone[s]);
#pragma omp parallel for num_threads(4) schedule(dynamic)
        for (int s = 0; s < SAMPLES; s++)
            input_tokens(in, 5, 5, 8, 1, s, together[s]);
        cr_expect(memcmp(alone, together, sizeof alone) == 0, "%s", good_names[i]);
        input_free(in);
    }
}

/* Photographs. */

/* The folder of the photographs; to be freed. */
static char *photographs_folder(void)
{
    char *path = resource_path("images", "SHA256SUMS");
    cr_assert(path != NULL);
    *strrchr(path, '/') = 0;
    return path;
}

/* The SHA-256 that coreutils computes. */
static void shell_sha256(const char *files, char hex[SHA256_HEX_SIZE])
{
    char command[8192];
    snprintf(command, sizeof command, "cat %s | sha256sum", files);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe && fgets(hex, SHA256_HEX_SIZE, pipe), "%s", command);
    pclose(pipe);
}

static int photograph_count(const char *folder)
{
    char path[4096], line[512];
    int count = 0;
    snprintf(path, sizeof path, "%s/SHA256SUMS", folder);
    FILE *list = fopen(path, "r");
    cr_assert(list != NULL);
    while (fgets(line, sizeof line, list)) {
        char file[8192];
        image img;
        snprintf(file, sizeof file, "%s/%.*s", folder, (int)strcspn(line + 66, "\n"), line + 66);
        cr_assert(image_read_png(file, &img) == EXIT_PASS, "%s", file);
        cr_expect(img.height >= 256 && img.width >= 256, "%s: %dx%d", file, (int)img.height,
                  (int)img.width);
        free(img.rgb);
        count++;
    }
    fclose(list);
    return count;
}

Test(inputs, photographs_load_and_hash)
{
    char files[4096], expected[SHA256_HEX_SIZE];
    char *folder = photographs_folder();
    int count = photograph_count(folder);
    cr_expect(count >= 12, "%d photographs", count);
    snprintf(files, sizeof files, "'%s'/*.png", folder);
    shell_sha256(files, expected);
    input *in;
    cr_assert(input_open("photos", 0, 0, &in) == EXIT_PASS);
    cr_expect(strcmp(input_sha256(in), expected) == 0, "%s", input_sha256(in));
    for (int sample = 0; sample < count; sample++) /* 256 x 256 and 224 x 224 fit all */
        for (int64_t side = 8; side <= 64; side *= 2)
            free(tokens_of(in, side, side, 256 / side, 1, sample));
    input_free(in);
    free(folder);
}

/* LayerNorm: mean 0; variance v / (v + 1e-5), below 1 and near it where there is any contrast. */
Test(inputs, photograph_tokens_are_normalised)
{
    input *in;
    double near_one = 0, count = 0;
    cr_assert(input_open("photos", 0, 0, &in) == EXIT_PASS);
    for (int sample = 0; sample < 26; sample++) {
        double *tokens = tokens_of(in, 28, 28, 8, 3, sample);
        for (int i = 0; i < 28 * 28; i++) {
            double mean = 0, variance = 0;
            for (int c = 0; c < D; c++)
                mean += tokens[i * D + c] / D;
            for (int c = 0; c < D; c++)
                variance += pow(tokens[i * D + c] - mean, 2) / D;
            cr_expect(fabs(mean) < 1e-14, "sample=%d token=%d mean=%.3g", sample, i, mean);
            cr_expect(variance <= 1 + 1e-14, "sample=%d token=%d variance=%.17g", sample, i,
                      variance);
            near_one += fabs(variance - 1) < 0.01;
            count++;
        }
        free(tokens);
    }
    cr_expect(near_one > 0.95 * count, "%g of %g tokens have variance 1", near_one, count);
    input_free(in);
}

/* Makes images/NAME of random colours and lists it. */
static void add_photograph(const char *name, int height, int width, uint64_t seed)
{
    static unsigned char pixels[64 * 64 * 3];
    char path[256], hex[SHA256_HEX_SIZE];
    png_image png = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB};
    struct sha256_ctx state;
    random_stream *r = random_create(seed, "pixels", 0);
    for (int i = 0; i < height * width * 3; i++)
        pixels[i] = (unsigned char)random_below(r, 256);
    random_free(r);
    png.width = (png_uint_32)width;
    png.height = (png_uint_32)height;
    mkdir("images", 0700);
    snprintf(path, sizeof path, "images/%s", name);
    cr_assert(png_image_write_to_file(&png, path, 0, pixels, 0, NULL));
    sha256_init(&state);
    cr_assert(sha256_add_file(&state, path) == EXIT_PASS);
    sha256_hex(&state, hex);
    FILE *list = fopen("images/SHA256SUMS", "a");
    cr_assert(list && fprintf(list, "%s  %s\n", hex, name) > 0 && fclose(list) == 0);
    setenv("ATTNUM_DATADIR", ".", 1);
}

/* A token by the definition: the patch at (y, x) of the crop at (top, left) of the photograph, of
 * which the crop is mirrored if `flip`. */
static void token_by_definition(const image *img, const double *projection, int top, int left,
                                int crop_width, bool flip, int patch, int y, int x, double *token)
{
    double mean = 0, variance = 0;
    for (int c = 0; c < D; c++) {
        token[c] = 0;
        for (int k = 0; k < 3 * patch * patch; k++) {
            int row = y * patch + k / 3 / patch, column = x * patch + k / 3 % patch;
            if (flip)
                column = crop_width - 1 - column;
            int64_t pixel = (top + row) * img->width + left + column;
            token[c] += projection[k * D + c] * img->rgb[3 * pixel + k % 3];
        }
        mean += token[c] / D;
    }
    for (int c = 0; c < D; c++)
        variance += pow(token[c] - mean, 2) / D;
    for (int c = 0; c < D; c++)
        token[c] = (token[c] - mean) / sqrt(variance + 1e-5);
}

/* True if the tokens are those of the given crop. */
static bool is_view(const double *tokens, const image *img, const double *projection, int top,
                    int left, bool flip, int patch, int height, int width)
{
    for (int i = 0; i < height * width; i++) {
        double token[D];
        token_by_definition(img, projection, top, left, width * patch, flip, patch, i / width,
                            i % width, token);
        for (int c = 0; c < D; c++)
            if (!(fabs(tokens[i * D + c] - token[c]) < 1e-11))
                return false;
    }
    return true;
}

/* Photographs of 21 x 26 and 23 x 24 pixels, crops of 3 x 4 patches of 5 x 5: every sample must be
 * exactly one of the possible crops, and among many samples all offsets and both flips turn up. */
Test(inputs, photograph_tokens_follow_the_definition, .init = scratch_begin, .fini = scratch_end)
{
    enum { PATCH = 5, HEIGHT = 3, WIDTH = 4, SAMPLES = 400 };
    static double projection[3 * PATCH * PATCH * D];
    int tops[9] = {0}, lefts[7] = {0}, flips[2] = {0};
    image img[2];
    add_photograph("a.png", 21, 26, 1);
    add_photograph("b.png", 23, 24, 2);
    cr_assert(image_read_png("images/a.png", &img[0]) == EXIT_PASS);
    cr_assert(image_read_png("images/b.png", &img[1]) == EXIT_PASS);
    random_stream *r = random_create(9, "photos projection", PATCH);
    random_orthonormal(r, 3 * PATCH * PATCH, D, projection);
    random_free(r);
    input *in;
    cr_assert(input_open("photos", 0, 0, &in) == EXIT_PASS);
    for (int sample = 0; sample < SAMPLES; sample++) {
        const image *from = &img[sample % 2];
        double *tokens = tokens_of(in, HEIGHT, WIDTH, PATCH, 9, sample);
        image crop;
        const char *name;
        int found = 0;
        cr_assert(input_crop(in, HEIGHT, WIDTH, PATCH, 9, sample, &crop, &name) == EXIT_PASS);
        cr_expect(crop.height == HEIGHT * PATCH && crop.width == WIDTH * PATCH &&
                  strcmp(name, sample % 2 ? "b.png" : "a.png") == 0);
        cr_expect(is_view(tokens, &crop, projection, 0, 0, false, PATCH, HEIGHT, WIDTH),
                  "sample=%d: not the crop's tokens", sample);
        free(crop.rgb);
        for (int top = 0; top <= from->height - PATCH * HEIGHT; top++)
            for (int left = 0; left <= from->width - PATCH * WIDTH; left++)
                for (int flip = 0; flip < 2; flip++)
                    if (is_view(tokens, from, projection, top, left, flip, PATCH, HEIGHT, WIDTH)) {
                        found++;
                        tops[top]++;
                        lefts[left]++;
                        flips[flip]++;
                    }
        cr_expect(found == 1, "sample=%d is %d of the possible crops", sample, found);
        free(tokens);
    }
    for (int i = 0; i < 9; i++)
        cr_expect(tops[i] > 0, "no crop starts at row %d", i);
    for (int i = 0; i < 7; i++)
        cr_expect(lefts[i] > 0, "no crop starts at column %d", i);
    cr_expect(abs(flips[1] - SAMPLES / 2) < 50, "%d of %d flipped", flips[1], SAMPLES);
    input_free(in);
    free(img[0].rgb);
    free(img[1].rgb);
}

Test(inputs, only_photographs_have_crops, .init = scratch_begin, .fini = scratch_end)
{
    input *in;
    image crop;
    const char *name;
    cr_assert(input_open("iid", 0, 0, &in) == EXIT_PASS);
    capture();
    int code = input_crop(in, 2, 2, 8, 1, 0, &crop, &name);
    cr_expect(code == EXIT_USAGE && is_one_line_with(captured(), "iid: expected photos"));
    input_free(in);
}

Test(inputs, photographs_refuse_crops_that_do_not_fit, .init = scratch_begin, .fini = scratch_end)
{
    input *in;
    add_photograph("a.png", 40, 48, 1);
    cr_assert(input_open("photos", 0, 0, &in) == EXIT_PASS);
    free(tokens_of(in, 10, 12, 4, 1, 0)); /* all of it */
    expect_tokens_refused(in, 11, 12, 4, 0, "fits a.png (40x48)");
    expect_tokens_refused(in, 10, 13, 4, 0, "fits a.png (40x48)");
    expect_tokens_refused(in, 1, 1, 41, 0, "fits a.png (40x48)");
    expect_tokens_refused(in, 2, 2, 3, 0, "patches of at least 4x4");
    expect_tokens_refused(in, 2, 2, 0, 0, "patches of at least 4x4");
    expect_tokens_refused(in, 2, 2, -8, 0, "patches of at least 4x4");
    expect_tokens_refused(in, INT64_MAX, INT64_MAX, INT64_MAX, 0, "fits a.png");
    input_free(in);
}

/* Copies of the photographs; then one of them, or the list, is damaged. */
Test(inputs, photographs_must_match_their_sums, .init = scratch_begin, .fini = scratch_end)
{
    static const char empty_sum[] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    static const struct {
        const char *list, *says; /* "%s" is the sum of nothing */
    } rows[] = {
        {"", "SHA256SUMS: no lines"},
        {"\n", "line 1, expected a SHA-256"},
        {"junk\n", "line 1, expected a SHA-256"},
        {"%s\n", "line 1, expected a SHA-256"},
        {"%s empty.png\n", "line 1, expected a SHA-256"},
        {"%s  \n", "line 1, expected a SHA-256"},
        {"%s0  empty.png\n", "line 1, expected a SHA-256"},
        {"%s  ../images/a.png\n", "line 1, expected a SHA-256"},
        {"%s  sub/empty.png\n", "line 1, expected a SHA-256"},
        {"%s  /empty.png\n", "line 1, expected a SHA-256"},
        {"%s  .hidden\n", "line 1, expected a SHA-256"},
        {"%s  missing.png\n", "images/missing.png: not in"},
        {"%s  a.png\n", "a.png: SHA-256"},
        {"%s  empty.png\n", "empty.png: "},
    };
    char list[1024];
    add_photograph("a.png", 32, 32, 1);
    scratch_write("images/empty.png", "", 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* A list without "%s" has no use for the argument. */
        const char *mark = strstr(rows[i].list, "%s");
        snprintf(list, sizeof list, "%s%s", mark ? empty_sum : "", mark ? mark + 2 : rows[i].list);
        scratch_write("images/SHA256SUMS", list, strlen(list));
        expect_open_refused("photos", 0, 0, EXIT_ENVIRONMENT, rows[i].says);
    }
    setenv("ATTNUM_DATADIR", "nowhere", 1);
    expect_open_refused("photos", 0, 0, EXIT_ENVIRONMENT, "SHA256SUMS");
}

Test(inputs, photographs_notice_one_changed_bit, .init = scratch_begin, .fini = scratch_end)
{
    size_t size;
    input *in;
    add_photograph("a.png", 32, 32, 1);
    add_photograph("b.png", 32, 32, 2);
    cr_assert(input_open("photos", 0, 0, &in) == EXIT_PASS);
    input_free(in);
    unsigned char *bytes = scratch_read("images/b.png", &size);
    bytes[size - 1] ^= 1;
    scratch_write("images/b.png", bytes, size);
    free(bytes);
    expect_open_refused("photos", 0, 0, EXIT_ENVIRONMENT, "b.png: SHA-256");
}

/* Synthetic tokens. */

static double mean_of(const double *values, int64_t count, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i * step];
    return sum / (double)count;
}

static double variance_of(const double *values, int64_t count, int64_t step)
{
    double mean = mean_of(values, count, step), sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (values[i * step] - mean) * (values[i * step] - mean);
    return sum / (double)count;
}

Test(inputs, iid_has_the_deviation_asked_for)
{
    static const struct {
        const char *name;
        double sigma;
    } rows[] = {{"iid", 1}, {"iid:0.3", 0.3}, {"iid:1000", 1000}};
    enum { COUNT = 64 * 64 * D };
    for (size_t i = 0; i < 3; i++) {
        double *tokens = tokens_named(rows[i].name, 64, 64, 1, 0), sigma = rows[i].sigma;
        double mean = mean_of(tokens, COUNT, 1) / (sigma / sqrt(COUNT));
        double variance = (variance_of(tokens, COUNT, 1) / (sigma * sigma) - 1) / sqrt(2.0 / COUNT);
        cr_expect(fabs(mean) < 5 && fabs(variance) < 5, "%s: mean=%.3g variance=%.3g deviations",
                  rows[i].name, mean, variance);
        free(tokens);
    }
}

/* At cell centres the midpoint rule integrates cosines of fewer than 2 height half-waves exactly,
 * so mean 0 and variance 1 hold on a grid up to rounding, once it is fine enough for the modes. */
Test(inputs, smooth_has_mean_0_and_variance_1)
{
    static const struct {
        const char *name;
        int height, width;
    } rows[] = {{"smooth", 4, 4},   {"smooth", 7, 9},    {"smooth", 64, 64},  {"smooth", 100, 5},
                {"smooth:2", 2, 2}, {"smooth:8", 8, 14}, {"smooth:8", 56, 56}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t count = rows[i].height * rows[i].width;
        double *tokens = tokens_named(rows[i].name, rows[i].height, rows[i].width, 4, 2);
        for (int c = 0; c < D; c++) {
            double mean = mean_of(tokens + c, count, D),
                   variance = variance_of(tokens + c, count, D);
            cr_expect(fabs(mean) < 1e-13 && fabs(variance - 1) < 1e-13,
                      "%s %dx%d channel=%d mean=%.3g variance=%.17g", rows[i].name, rows[i].height,
                      rows[i].width, c, mean, variance);
        }
        free(tokens);
    }
}

/* The centre of a cell is the centre of the middle one of 3 x 3 smaller cells. */
Test(inputs, smooth_is_one_field_on_all_grids)
{
    double *coarse = tokens_named("smooth", 5, 7, 4, 2),
           *fine = tokens_named("smooth", 15, 21, 4, 2);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 7; j++)
            for (int c = 0; c < D; c++) {
                double error =
                    coarse[(i * 7 + j) * D + c] - fine[((3 * i + 1) * 21 + 3 * j + 1) * D + c];
                cr_expect(fabs(error) < 1e-13, "token (%d, %d) channel=%d error=%.3g", i, j, c,
                          error);
            }
    free(coarse);
    free(fine);
}

/* The part of a channel along cos(pi a y) cos(pi b x). */
static double mode_amplitude(const double *channel, int side, int a, int b)
{
    double sum = 0, pi = acos(-1);
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            sum += channel[(i * side + j) * D] * cos(pi * a * (i + 0.5) / side) *
                   cos(pi * b * (j + 0.5) / side);
    return sum / (side * side) * (a ? 2 : 1) * (b ? 2 : 1);
}

/* All modes below the limit but (0, 0), of like size, and no others. */
Test(inputs, smooth_has_the_modes_asked_for)
{
    static const struct {
        const char *name;
        int modes;
    } rows[] = {{"smooth:2", 2}, {"smooth", 4}, {"smooth:8", 8}};
    enum { SIDE = 12 };
    for (size_t row = 0; row < 3; row++) {
        double *tokens = tokens_named(rows[row].name, SIDE, SIDE, 4, 2);
        int modes = rows[row].modes;
        /* The expected square of an amplitude, by the variance 1 of a channel, is about this. */
        double like = 1 / (pow((modes + 1) / 2.0, 2) - 1);
        for (int a = 0; a < SIDE; a++)
            for (int b = 0; b < SIDE; b++) {
                double square = 0;
                for (int c = 0; c < D; c++)
                    square += pow(mode_amplitude(tokens + c, SIDE, a, b), 2) / D;
                if (a < modes && b < modes && a + b > 0)
                    cr_expect(square > like / 4 && square < 4 * like, "%s: (%d, %d) has %.3g",
                              rows[row].name, a, b, square);
                else
                    cr_expect(square < 1e-26, "%s: (%d, %d) has %.3g", rows[row].name, a, b,
                              square);
            }
        free(tokens);
    }
}

Test(inputs, noisy_is_smooth_plus_noise)
{
    static const struct {
        const char *name;
        double sigma;
    } rows[] = {{"noisy", 0.1}, {"noisy:0.5", 0.5}, {"noisy:2", 2}};
    enum { COUNT = 40 * 40 * D };
    double *field = tokens_named("smooth", 40, 40, 4, 2);
    for (size_t i = 0; i < 3; i++) {
        double *tokens = tokens_named(rows[i].name, 40, 40, 4, 2), sigma = rows[i].sigma;
        for (int k = 0; k < COUNT; k++)
            tokens[k] -= field[k];
        double mean = mean_of(tokens, COUNT, 1) / (sigma / sqrt(COUNT));
        double variance = (variance_of(tokens, COUNT, 1) / (sigma * sigma) - 1) / sqrt(2.0 / COUNT);
        cr_expect(fabs(mean) < 5 && fabs(variance) < 5, "%s: mean=%.3g variance=%.3g deviations",
                  rows[i].name, mean, variance);
        free(tokens);
    }
    free(field);
}

static double squared_distance(const double *x, const double *y)
{
    double sum = 0;
    for (int c = 0; c < D; c++)
        sum += (x[c] - y[c]) * (x[c] - y[c]);
    return sum;
}

/* Two tokens of one centre are about 0.8 apart, of two centres about 8. */
Test(inputs, clusters_are_as_many_as_asked)
{
    static const struct {
        const char *name;
        int count;
    } rows[] = {{"clusters", 8}, {"clusters:1", 1}, {"clusters:2", 2}, {"clusters:20", 20}};
    enum { N = 30 * 30 };
    for (size_t row = 0; row < 4; row++) {
        double *tokens = tokens_named(rows[row].name, 30, 30, 1, 0), spread = 0;
        const double *seen[N];
        int clusters = 0, pairs = 0;
        for (int i = 0; i < N; i++) {
            int k = 0;
            while (k < clusters && squared_distance(seen[k], tokens + i * D) > 9)
                k++;
            if (k == clusters) {
                seen[clusters++] = tokens + i * D;
            } else {
                spread += squared_distance(seen[k], tokens + i * D) / D;
                pairs++;
            }
        }
        double sigma = sqrt(spread / pairs / 2);
        cr_expect(clusters == rows[row].count, "%s: %d clusters", rows[row].name, clusters);
        cr_expect(sigma > 0.085 && sigma < 0.115, "%s: sigma=%.3g", rows[row].name, sigma);
        free(tokens);
    }
}

Test(inputs, constant_is_one_token)
{
    double *tokens = tokens_named("constant", 9, 5, 1, 0);
    for (int i = 1; i < 45; i++)
        cr_expect(memcmp(tokens, tokens + i * D, D * sizeof *tokens) == 0, "token %d", i);
    double variance = variance_of(tokens, D, 1);
    cr_expect(variance > 0.3 && variance < 3, "variance over the channels: %g", variance);
    free(tokens);
}

/* K_ij = exp(-|q_i - q_j|^2 / (2 sqrt(d))) depends on j - i mod n only. */
Test(inputs, circulant_kernel_is_circulant)
{
    static const struct {
        const char *name;
        double radius;
    } rows[] = {{"circulant", 20}, {"circulant:5", 5}, {"circulant:0.5", 0.5}};
    static const int grids[][2] = {{7, 7}, {1, 1}, {2, 1}, {5, 6}, {14, 14}};
    for (size_t row = 0; row < 3; row++)
        for (size_t g = 0; g < 5; g++) {
            int n = grids[g][0] * grids[g][1];
            double *q = tokens_named(rows[row].name, grids[g][0], grids[g][1], 3, 1);
            double worst = 0, radius = rows[row].radius;
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) {
                    double angle = acos(-1) * (j - i) / n;
                    double expected = exp(-pow(2 * radius * sin(angle), 2) / (2 * sqrt(D)));
                    double found = exp(-squared_distance(q + i * D, q + j * D) / (2 * sqrt(D)));
                    worst = fmax(worst, fabs(found - expected));
                }
            cr_expect(worst < 1e-13, "%s n=%d: %.3g", rows[row].name, n, worst);
            if (n == 49 && row == 0) {
                double neighbour = exp(-squared_distance(q, q + D) / (2 * sqrt(D)));
                cr_expect(fabs(neighbour - 0.56) < 0.005, "neighbours: %.4g", neighbour);
            }
            free(q);
        }
}

Test(inputs, duplicates_are_exact)
{
    static const struct {
        const char *name;
        int height, width, copies;
    } rows[] = {{"duplicates", 7, 7, 12},
                {"duplicates", 1, 1, 0},
                {"duplicates", 1, 4, 1},
                {"duplicates:5", 6, 6, 5},
                {"duplicates:35", 6, 6, 35}};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        int n = rows[row].height * rows[row].width, originals = n - rows[row].copies, copies = 0;
        double *q = tokens_named(rows[row].name, rows[row].height, rows[row].width, 1, 0);
        for (int i = 0; i < n; i++) {
            bool is_copy = false;
            for (int j = 0; j < i && j < originals; j++)
                is_copy |= memcmp(q + i * D, q + j * D, D * sizeof *q) == 0;
            copies += is_copy;
            cr_expect(is_copy == (i >= originals), "%s n=%d token=%d", rows[row].name, n, i);
        }
        cr_expect(copies == rows[row].copies, "%s n=%d: %d copies", rows[row].name, n, copies);
        free(q);
    }
}

Test(inputs, duplicates_need_an_original, .init = scratch_begin, .fini = scratch_end)
{
    input *in;
    cr_assert(input_open("duplicates:16", 0, 0, &in) == EXIT_PASS);
    expect_tokens_refused(in, 4, 4, 8, 0, "16 copies among 16 tokens");
    expect_tokens_refused(in, 1, 1, 8, 0, "16 copies among 1 tokens");
    free(tokens_of(in, 1, 17, 8, 1, 0));
    input_free(in);
}

/* Files. */

/* batch 2, heads 3, n rows, width 5; element k is k / 8. */
static void write_tokens(const char *path, int n)
{
    static unsigned char bytes[65536];
    char header[128];
    int length =
        snprintf(header, sizeof header,
                 "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, %d, 5), }\n", n);
    memcpy(bytes, "\x93NUMPY\1\0", 8);
    bytes[8] = (unsigned char)length;
    bytes[9] = 0;
    memcpy(bytes + 10, header, (size_t)length);
    for (int k = 0; k < 30 * n; k++) {
        double value = k / 8.0;
        memcpy(bytes + 10 + length + 8 * k, &value, sizeof value);
    }
    scratch_write(path, bytes, (size_t)(10 + length + 240 * n));
}

Test(inputs, files_give_their_own_tokens, .init = scratch_begin, .fini = scratch_end)
{
    static const struct {
        int n, grid_height, grid_width, height, width;
    } rows[] = {
        {9, 0, 0, 3, 3},    {12, 0, 0, 0, 0}, {12, 3, 4, 3, 4}, {12, 12, 1, 12, 1},
        {12, 1, 12, 1, 12}, {16, 2, 8, 2, 8}, {1, 0, 0, 1, 1},
    };
    mkdir("sub", 0700);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        input *in;
        int64_t matrices, tokens, dim, height, width;
        char expected[SHA256_HEX_SIZE];
        double q[16 * 5];
        write_tokens("sub/x.npy", rows[i].n);
        cr_assert(input_open("./sub/x.npy", rows[i].grid_height, rows[i].grid_width, &in) ==
                  EXIT_PASS);
        input_file_shape(in, &matrices, &tokens, &dim, &height, &width);
        shell_sha256("sub/x.npy", expected);
        cr_expect(input_is_file(in) && strcmp(input_name(in), "x.npy") == 0, "%s", input_name(in));
        cr_expect(strcmp(input_sha256(in), expected) == 0, "%s", input_sha256(in));
        cr_expect(matrices == 6 && tokens == rows[i].n && dim == 5, "row %zu", i);
        cr_expect(height == rows[i].height && width == rows[i].width, "row %zu: %dx%d", i,
                  (int)height, (int)width);
        for (int sample = 0; sample < 6; sample++)
            for (int flat = height > 0 ? 0 : 1; flat < 2; flat++) {
                int status =
                    input_tokens(in, flat ? tokens : height, flat ? 1 : width, 4, 1, sample, q);
                cr_assert(status == EXIT_PASS, "row %zu sample=%d", i, sample);
                for (int k = 0; k < 5 * rows[i].n; k++)
                    cr_expect(q[k] == (sample * 5 * rows[i].n + k) / 8.0, "row %zu", i);
            }
        input_free(in);
    }
}

Test(inputs, files_refuse_other_grids_and_samples, .init = scratch_begin, .fini = scratch_end)
{
    static const int64_t grids[][2] = {
        {3, 3},   {4, 4}, {12, 12}, {0, 12},        {12, 0},
        {-3, -4}, {5, 2}, {24, 1},  {INT64_MAX, 2}, {INT64_MIN, INT64_MIN}};
    input *in;
    write_tokens("x.npy", 12);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        expect_open_refused("x.npy", grids[i][0], grids[i][1], EXIT_USAGE, "x.npy has 12 tokens");
    cr_assert(input_open("x.npy", 3, 4, &in) == EXIT_PASS);
    expect_tokens_refused(in, 3, 4, 8, 6, "expected one of its 6 matrices of 12 tokens");
    expect_tokens_refused(in, 4, 3, 8, 0, "expected one of its 6 matrices of 12 tokens");
    expect_tokens_refused(in, 1, 12, 8, 0, "expected one of its 6 matrices of 12 tokens");
    expect_tokens_refused(in, 11, 1, 8, 0, "expected one of its 6 matrices of 12 tokens");
    input_free(in);
}

Test(inputs, files_that_cannot_be_read, .init = scratch_begin, .fini = scratch_end)
{
    scratch_write("bad.npy", "\x93NUMPY\1\0", 8);
    expect_open_refused("missing.npy", 0, 0, EXIT_ENVIRONMENT, "missing.npy: No such file");
    expect_open_refused("bad.npy", 0, 0, EXIT_ENVIRONMENT, "bad.npy: magic");
    expect_open_refused(".npy", 0, 0, EXIT_ENVIRONMENT, ".npy: No such file");
    expect_open_refused("iid:1.npy", 0, 0, EXIT_ENVIRONMENT, "iid:1.npy: No such file");
}
