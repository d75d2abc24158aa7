/* SPDX-License-Identifier: BSD-3-Clause */
/* The orders that files have their dimensions in: where each element is, what is refused, and from
 * which shape on another order is suggested. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/layout.h"
#include "common/report.h"
#include "scratch.h"

TestSuite(layout, .init = scratch_begin, .fini = scratch_end);

enum { B = 2, H = 3, N = 5, D = 4 };

/* The position of element (b, h, n, d) in a file, written out by hand. */
static int64_t place_in(int row, int64_t b, int64_t h, int64_t n, int64_t d)
{
    switch (row) {
    case 0:
        return ((b * H + h) * N + n) * D + d;
    case 1:
        return ((b * N + n) * H + h) * D + d;
    case 2:
        return ((n * B + b) * H + h) * D + d;
    case 3:
        return (h * N + n) * D + d;
    case 4:
        return (n * H + h) * D + d;
    case 5:
        return (b * N + n) * (H * D) + h * D + d;
    case 6:
        return (n * B + b) * (H * D) + h * D + d;
    default:
        return n * (H * D) + h * D + d;
    }
}

static const struct {
    const char *name;
    int dimensions;
    int64_t shape[4], batch;
} rows[] = {
    {"bhnd", 4, {B, H, N, D}, B},  {"bnhd", 4, {B, N, H, D}, B}, {"nbhd", 4, {N, B, H, D}, B},
    {"hnd", 3, {H, N, D}, 1},      {"nhd", 3, {N, H, D}, 1},     {"bnd:3", 3, {B, N, H *D}, B},
    {"nbd:3", 3, {N, B, H *D}, B}, {"nd:3", 2, {N, H *D}, 1},
};
enum { ROWS = sizeof rows / sizeof *rows };

static layout parsed(const char *name)
{
    layout l;
    char *wrong = layout_parse(name, &l);
    cr_assert(!wrong, "%s: %s", name, wrong);
    return l;
}

#define COUNT_ROW(axes, others, description) +1
_Static_assert(ROWS == 0 LAYOUT_LIST(COUNT_ROW), "every layout has a row");
#undef COUNT_ROW

Test(layout, every_element_is_read_from_its_place)
{
    for (int i = 0; i < ROWS; i++) {
        double file[B * H * N * D];
        int64_t count = rows[i].batch * H * N * D, k = 0;
        layout l = parsed(rows[i].name);
        npy_array a;
        for (int64_t j = 0; j < count; j++)
            file[j] = (double)j;
        cr_assert_eq(npy_write(".", "x.npy", ATN_F64, rows[i].dimensions, rows[i].shape, file),
                     EXIT_PASS);
        cr_assert_eq(npy_read("x.npy", &a), EXIT_PASS);
        cr_assert_eq(layout_read(&l, "x.npy", &a), EXIT_PASS, "%s", rows[i].name);
        cr_assert(a.batch == rows[i].batch && a.heads == H && a.rows == N && a.cols == D, "%s",
                  rows[i].name);
        for (int64_t b = 0; b < a.batch; b++)
            for (int64_t h = 0; h < H; h++)
                for (int64_t n = 0; n < N; n++)
                    for (int64_t d = 0; d < D; d++, k++)
                        cr_expect(a.data[k] == (double)place_in(i, b, h, n, d), "%s: %g",
                                  rows[i].name, a.data[k]);
        free(a.data);
    }
}

Test(layout, what_is_written_is_where_it_is_read)
{
    for (int i = 0; i < ROWS; i++) {
        double from[B * H * N * D], to[B * H * N * D];
        const int64_t bhnd[] = {rows[i].batch, H, N, D};
        int64_t shape[4], k = 0;
        layout l = parsed(rows[i].name);
        cr_expect_eq(layout_shape(&l, bhnd, shape), rows[i].dimensions);
        for (int j = 0; j < rows[i].dimensions; j++)
            cr_expect_eq(shape[j], rows[i].shape[j], "%s", rows[i].name);
        for (int64_t j = 0; j < B * H * N * D; j++)
            from[j] = (double)j;
        layout_write(&l, bhnd, from, to);
        for (int64_t b = 0; b < rows[i].batch; b++)
            for (int64_t h = 0; h < H; h++)
                for (int64_t n = 0; n < N; n++)
                    for (int64_t d = 0; d < D; d++, k++)
                        cr_expect(to[place_in(i, b, h, n, d)] == (double)k, "%s", rows[i].name);
    }
}

Test(layout, names)
{
    static const char *const same[][2] = {{"bshd", "bnhd"}, {"btnh", "bnhd"}, {"bhsd", "bhnd"},
                                          {"sbhd", "nbhd"}, {"thd", "nhd"},   {"bsd:8", "bnd:8"},
                                          {"sd", "nd"}};
    static const char *const wrong[] = {"",      "bdhn",   "bnh",   "bnhd:3",  "bnd:", "bnd:0",
                                        "bnd:x", "bnd:8x", "bnhd ", "shd thd", "?"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        layout l = parsed(same[i][0]);
        char *name = layout_name(&l);
        cr_expect_str_eq(name, same[i][1]);
        free(name);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        layout l;
        char *said = layout_parse(wrong[i], &l);
        cr_expect(said && strstr(said, "expected"), "'%s' is taken", wrong[i]);
        free(said);
    }
    layout none = {NULL, 0};
    char *name = layout_name(&none);
    cr_expect_str_eq(name, "bhnd");
    free(name);
}

Test(layout, files_of_other_dimensions_are_refused)
{
    static const struct {
        const char *layout, *said;
        int dimensions;
        int64_t shape[4];
    } wrong[] = {
        {"bnhd", "3 dimensions, expected the 4 of --layout bnhd", 3, {2, 3, 4}},
        {"nhd", "4 dimensions, expected the 3 of --layout nhd", 4, {1, 2, 3, 4}},
        {"bnd:5", "a width of 12, expected a multiple of the 5 heads", 3, {2, 3, 12}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double file[72] = {0};
        layout l = parsed(wrong[i].layout);
        npy_array a;
        cr_assert_eq(npy_write(".", "x.npy", ATN_F64, wrong[i].dimensions, wrong[i].shape, file),
                     EXIT_PASS);
        cr_assert_eq(npy_read("x.npy", &a), EXIT_PASS);
        capture();
        cr_expect_eq(layout_read(&l, "x.npy", &a), EXIT_ENVIRONMENT);
        const char *text = captured();
        cr_expect(is_one_line_with(text, wrong[i].said), "%s", text);
        free(a.data);
    }
}

/* Every doubt just within its limit and just beyond it; null: none. */
static const struct {
    int dimensions;
    int64_t batch, heads, rows, cols;
    const char *says;
} shapes[] = {
    {4, 1, 8, 8, 32, NULL},
    {4, 1, 9, 8, 32, "--layout bnhd"},
    {4, 1, 1024, 2, 32, "1 x 1024 x 2 x 32"},
    {3, 1, 8, 8, 32, NULL},
    {3, 1, 9, 8, 32, "--layout nhd, if not, --layout hnd"},
    {2, 1, 1, 1, 32, NULL},
    {4, 128, 4, 32, 64, NULL},
    {4, 129, 4, 32, 64, "--layout nbhd, if not, --layout bhnd"},
    {4, 4096, 4, 33, 64, NULL}, /* windows of an image have 49 tokens */
    {4, 1, 8, 64, 257, NULL},   /* its heads are a dimension already */
    {3, 1, 8, 64, 256, NULL},
    {3, 1, 8, 64, 257, "--layout bnd:HEADS, if not, --layout hnd"},
    {2, 1, 1, 64, 256, NULL},
    {2, 1, 1, 64, 257, "--layout nd:HEADS, if not, --layout nd"},
};

Test(layout, doubts_from_both_sides)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        npy_array a = {.batch = shapes[i].batch,
                       .heads = shapes[i].heads,
                       .rows = shapes[i].rows,
                       .cols = shapes[i].cols,
                       .dimensions = shapes[i].dimensions};
        char *said = layout_doubt("q.npy", &a);
        if (!shapes[i].says)
            cr_expect(!said, "row %d: %s", (int)i, said);
        else
            cr_expect(said && strstr(said, shapes[i].says), "row %d: %s", (int)i,
                      said ? said : "nothing");
        free(said);
    }
}
