/* SPDX-License-Identifier: BSD-3-Clause */
/* test_npy.py compares archives with NumPy's. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/npz.h"
#include "common/report.h"
#include "scratch.h"

TestSuite(npz, .init = scratch_begin, .fini = scratch_end);

static const double values[] = {1, -2.5, 1e300, 0, 4, 5};
static const float singles[] = {0.1f, 2};

static void write_archive(const char *name)
{
    static const int64_t shapes[][2] = {{2, 3}, {2, 1}};
    const npz_array arrays[] = {{"a.b", ATN_F64, 2, shapes[0], values},
                                {"c", ATN_F32, 1, shapes[1], singles}};
    cr_assert_eq(npz_write(".", name, 2, arrays, "{\"x\": 1}"), EXIT_PASS);
}

Test(npz, what_is_written_is_read)
{
    npz_file file;
    write_archive("x.npz");
    cr_assert_eq(npz_read("x.npz", &file), EXIT_PASS);
    cr_expect_eq(file.count, 2);
    cr_expect_str_eq(file.metadata, "{\"x\": 1}");
    const npy_array *a = npz_find(&file, "a.b"), *c = npz_find(&file, "c");
    cr_assert(a && c && !npz_find(&file, "a"));
    cr_expect(a->dimensions == 2 && a->rows == 2 && a->cols == 3 && strcmp(a->dtype, "<f8") == 0);
    cr_expect(memcmp(a->data, values, sizeof values) == 0);
    cr_expect(c->dimensions == 1 && c->cols == 2 && c->data[0] == (double)0.1f && c->data[1] == 2);
    npz_free(&file);
}

Test(npz, the_same_values_give_the_same_bytes)
{
    size_t sizes[2];
    write_archive("x.npz");
    write_archive("y.npz");
    unsigned char *x = scratch_read("x.npz", &sizes[0]), *y = scratch_read("y.npz", &sizes[1]);
    cr_expect(sizes[0] == sizes[1] && memcmp(x, y, sizes[0]) == 0);
    free(x);
    free(y);
}

/* The most arrays that a directory without zip64 fields counts, and one more. */
Test(npz, as_many_arrays_as_there_may_be, .timeout = 60)
{
    enum { MOST = 65533 };
    static const int64_t one = 1;
    npz_array *arrays = must_allocate(MOST + 1, sizeof *arrays);
    for (int i = 0; i <= MOST; i++)
        arrays[i] = (npz_array){must_format("%d", i), ATN_F32, 1, &one, &singles[i % 2]};
    npz_file file;
    cr_assert_eq(npz_write(".", "x.npz", MOST, arrays, "{}"), EXIT_PASS);
    cr_assert_eq(npz_read("x.npz", &file), EXIT_PASS);
    cr_expect_eq(file.count, MOST);
    cr_expect_eq(npz_find(&file, "65532")->data[0], (double)singles[0]);
    npz_free(&file);
    capture();
    cr_expect_eq(npz_write(".", "y.npz", MOST + 1, arrays, "{}"), EXIT_ENVIRONMENT);
    cr_expect(is_one_line_with(captured(), "y.npz: more than an archive holds"));
    cr_expect_neq(access("y.npz", F_OK), 0);
    for (int i = 0; i <= MOST; i++)
        free((char *)arrays[i].name);
    free(arrays);
}

Test(npz, names_are_there_once)
{
    static const int64_t one = 1;
    const npz_array arrays[] = {{"b", ATN_F32, 1, &one, singles},
                                {"a", ATN_F32, 1, &one, singles},
                                {"b", ATN_F32, 1, &one, singles}};
    npz_file file;
    cr_assert_eq(npz_write(".", "x.npz", 3, arrays, "{}"), EXIT_PASS);
    capture();
    cr_expect_eq(npz_read("x.npz", &file), EXIT_ENVIRONMENT);
    cr_expect(is_one_line_with(captured(), "x.npz: b: expected once"));
    npz_free(&file);
}

/* A directory that names the bytes of one member again and again would fill the memory. */
Test(npz, members_that_share_bytes_are_refused)
{
    static const int64_t shapes[] = {1000};
    static const double zeros[1000];
    const npz_array arrays[] = {{"a", ATN_F64, 1, shapes, zeros}, {"b", ATN_F64, 1, shapes, zeros}};
    size_t size;
    cr_assert_eq(npz_write(".", "x.npz", 2, arrays, "{}"), EXIT_PASS);
    unsigned char *bytes = scratch_read("x.npz", &size);
    const size_t entry = 46 + strlen("a.npy"), last = 46 + strlen(NPZ_METADATA) + 22;
    unsigned char *first = bytes + size - last - 2 * entry;
    unsigned char *bomb = must_allocate(size + entry, 1);
    size_t before = (size_t)(first - bytes) + entry;
    memcpy(bomb, bytes, before);
    memcpy(bomb + before, first, entry); /* a's again, under another name */
    bomb[before + 46] = 'c';
    memcpy(bomb + before + entry, first + entry, size - before);
    unsigned char *end = bomb + size + entry - 22;
    end[8] = end[10] = 4;
    end[12] = (unsigned char)(end[12] + entry);
    scratch_write("bomb.npz", bomb, size + entry);
    npz_file file;
    capture();
    cr_expect_eq(npz_read("bomb.npz", &file), EXIT_ENVIRONMENT);
    const char *text = captured();
    cr_expect(is_one_line_with(text, "bomb.npz: its members have more bytes than it"), "%s", text);
    npz_free(&file);
    free(bomb);
    free(bytes);
}

/* Cut anywhere it is refused; with any byte changed it is refused, or holds the same. */
Test(npz, damaged_archives_are_refused)
{
    size_t size;
    int survived = 0;
    write_archive("x.npz");
    unsigned char *bytes = scratch_read("x.npz", &size);
    for (size_t i = 0; i < size; i++)
        for (int change = 0; change < 3; change++) {
            unsigned char was = bytes[i];
            bytes[i] ^= (unsigned char)(change == 1 ? 1 : change == 2 ? 0xff : 0);
            scratch_write("y.npz", bytes, change ? size : i);
            bytes[i] = was;
            npz_file file;
            capture();
            int code = npz_read("y.npz", &file);
            const char *text = captured();
            const npy_array *a = code == EXIT_PASS ? npz_find(&file, "a.b") : NULL;
            survived += code == EXIT_PASS;
            cr_expect(code == EXIT_PASS
                          ? change && (!a || memcmp(a->data, values, sizeof values) == 0)
                          : code == EXIT_ENVIRONMENT && is_one_line_with(text, "y.npz"),
                      "byte %zu, change %d: %d %s", i, change, code, text);
            npz_free(&file);
        }
    /* versions, times, attributes, names */
    cr_expect(survived < (int)size / 2, "%d of %zu", survived, size);
    free(bytes);
}
