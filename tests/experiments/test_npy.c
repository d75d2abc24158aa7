/* SPDX-License-Identifier: BSD-3-Clause */
/* Files are built here byte by byte, as the format's description has them, so that nothing of the
 * reader is used to make what it reads. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/npy.h"
#include "common/report.h"
#include "scratch.h"

typedef struct {
    unsigned char bytes[4096];
    size_t size;
} npy_file;

static void append(npy_file *f, const void *bytes, size_t size)
{
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
}

/* Everything before the elements. */
static void start_file(npy_file *f, int version, const char *header)
{
    size_t length = strlen(header);
    unsigned char prefix[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 0, 0, 0, 0, 0, 0};
    prefix[6] = (unsigned char)version;
    prefix[8] = (unsigned char)(length & 255);
    prefix[9] = (unsigned char)(length >> 8);
    f->size = 0;
    append(f, prefix, version == 1 ? 10 : 12);
    append(f, header, length);
}

/* A file of 6 elements 1, 2, ..., 6 of <f4. */
static void build_small(npy_file *f, const char *header)
{
    start_file(f, 1, header);
    for (int i = 1; i <= 6; i++) {
        float value = (float)i;
        append(f, &value, sizeof value); /* the tests run on little-endian machines */
    }
}

static int read_bytes(const void *bytes, size_t size, npy_array *array)
{
    scratch_write("x.npy", bytes, size);
    return npy_read("x.npy", array);
}

/* Reads a file that must be refused with one line that contains the fragment. */
static void expect_refused(const void *bytes, size_t size, const char *fragment, const char *what)
{
    npy_array array;
    capture();
    int status = read_bytes(bytes, size, &array);
    const char *text = captured();
    cr_expect(status == EXIT_ENVIRONMENT, "%s: status=%d", what, status);
    cr_expect(!array.data, "%s: data is set", what);
    cr_expect(is_one_line_with(text, fragment) && strstr(text, "x.npy: "),
              "%s: said '%s', not '%s'", what, text, fragment);
    free(array.data);
}

/* Values that halves, floats and doubles hold exactly, and the bits of the halves. */
static const struct {
    uint16_t half;
    double value;
} samples[] = {
    {0x0000, 0.0},       {0x8000, -0.0},     {0x3c00, 1.0},     {0xbe00, -1.5},
    {0x7bff, 65504.0},   {0xfbff, -65504.0}, {0x0001, 0x1p-24}, {0x8001, -0x1p-24},
    {0x03ff, 0x3ffp-24}, {0x0200, 0x1p-15},  {0x0400, 0x1p-14}, {0x3555, 0x555p-12},
    {0x4248, 3.140625},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static void append_element(npy_file *f, const char *dtype, int sample)
{
    unsigned char bytes[8];
    uint64_t bits = samples[sample].half;
    float single = (float)samples[sample].value;
    uint32_t word;
    int size = dtype[2] - '0';
    memcpy(&word, &single, sizeof word);
    if (size == 4)
        bits = word;
    if (size == 8)
        memcpy(&bits, &samples[sample].value, sizeof bits);
    for (int i = 0; i < size; i++)
        bytes[dtype[0] == '<' ? i : size - 1 - i] = (unsigned char)(bits >> 8 * i);
    append(f, bytes, (size_t)size);
}

/* The place in C order of element `place` of an array in Fortran order: the first index is the
 * fastest there. */
static int c_place(int place, int dims, const int *shape)
{
    int index = 0, weight = 1, tail = 1;
    for (int i = 0; i < dims; i++)
        tail *= shape[i];
    for (int i = 0; i < dims; i++, weight *= shape[i - 1]) {
        tail /= shape[i];
        index += place / weight % shape[i] * tail;
    }
    return index;
}

static void check_array(const npy_array *array, int dims, const int *shape, const char *dtype,
                        const char *what)
{
    int64_t sizes[4] = {1, 1, 1, 1};
    for (int i = 0; i < dims; i++)
        sizes[4 - dims + i] = shape[i];
    cr_expect(array->batch == sizes[0] && array->heads == sizes[1] && array->rows == sizes[2] &&
                  array->cols == sizes[3],
              "%s: shape", what);
    cr_expect(strcmp(array->dtype, dtype) == 0, "%s: dtype %s", what, array->dtype);
    for (int i = 0; i < sizes[0] * sizes[1] * sizes[2] * sizes[3]; i++)
        cr_expect(memcmp(&array->data[i], &samples[i % SAMPLES].value, 8) == 0,
                  "%s: element %d is %.17g, not %.17g", what, i, array->data[i],
                  samples[i % SAMPLES].value);
}

static void check_layout(int version, const char *dtype, bool fortran, int dims, const int *shape)
{
    static const char *const shapes[] = {"(%d, %d)", "(%d, %d, %d)", "(%d, %d, %d, %d)"};
    char shape_text[64], header[128], what[160];
    npy_file f;
    npy_array array;
    int count = 1;
    snprintf(shape_text, sizeof shape_text, shapes[dims - 2], shape[0], shape[1], shape[2],
             shape[3]);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }   \n",
             dtype, fortran ? "True" : "False", shape_text);
    snprintf(what, sizeof what, "version=%d %s", version, header);
    for (int i = 0; i < dims; i++)
        count *= shape[i];
    start_file(&f, version, header);
    for (int i = 0; i < count; i++)
        append_element(&f, dtype, (fortran ? c_place(i, dims, shape) : i) % SAMPLES);
    int status = read_bytes(f.bytes, f.size, &array);
    cr_assert(status == EXIT_PASS, "%s: status=%d", what, status);
    check_array(&array, dims, shape, dtype, what);
    free(array.data);
}

Test(npy, reads_every_dtype_order_version_and_rank, .init = scratch_begin, .fini = scratch_end)
{
    static const char *const dtypes[] = {"<f2", "<f4", "<f8", ">f2", ">f4", ">f8"};
    static const int shapes[][5] = {
        {2, 3, 5}, {3, 2, 3, 5}, {4, 2, 3, 4, 5}, {2, 1, 17}, {4, 1, 1, 1, 1}};
    for (int version = 1; version <= 3; version++)
        for (int t = 0; t < 6; t++)
            for (int fortran = 0; fortran < 2; fortran++)
                for (int s = 0; s < 5; s++) {
                    int shape[4] = {0};
                    memcpy(shape, shapes[s] + 1, (size_t)shapes[s][0] * sizeof *shape);
                    check_layout(version, dtypes[t], fortran, shapes[s][0], shape);
                }
}

Test(npy, reads_headers_however_they_are_spaced, .init = scratch_begin, .fini = scratch_end)
{
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2, 3)}",
        "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
        "{'fortran_order':False,'shape':(2,3,),'descr':'<f4',}",
        "  {  'shape' : ( 2 , 3 , ) ,\n'descr'\t:\r\n'<f4', 'fortran_order' : False , }  \n \n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2, 3)}",
    };
    npy_file f;
    npy_array array;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        build_small(&f, headers[i]);
        int status = read_bytes(f.bytes, f.size, &array);
        cr_expect(status == EXIT_PASS, "%s: status=%d", headers[i], status);
        if (status != EXIT_PASS)
            continue;
        cr_expect(array.rows == 2 && array.cols == 3 && array.data[5] == 6, "%s", headers[i]);
        free(array.data);
    }
}

#define START "{'descr': '<f4', 'fortran_order': False, "
#define ORDER "'fortran_order': False, 'shape': (2, 3)}"

Test(npy, refuses_malformed_headers, .init = scratch_begin, .fini = scratch_end)
{
    static const struct {
        const char *header, *says;
    } rows[] = {
        {"", "ends early"},
        {"   \n", "ends early"},
        {"{", "quoted key"},
        {"}", "'{'"},
        {"{}", "descr is missing"},
        {"[]", "'{'"},
        {"None", "'{'"},
        {"{,}", "quoted key"},
        {"{'descr'", "':'"},
        {"{'descr: '<f4', " ORDER, "':'"},
        {"{'descr' '<f4', " ORDER, "':'"},
        {"{'descr': , " ORDER, "plain dtype"},
        {"{descr: '<f4', " ORDER, "quoted key"},
        {"{'descr': <f4, " ORDER, "plain dtype"},
        {"{'descr': '<f4\", " ORDER, "dtype '<f4\", '"},
        {"{'descr': '<f4", "plain dtype"},
        {"{'descr': '|O', " ORDER, "dtype '|O', expected <f2"},
        {"{'descr': '<i4', " ORDER, "dtype '<i4'"},
        {"{'descr': '|u1', " ORDER, "dtype '|u1'"},
        {"{'descr': '|b1', " ORDER, "dtype '|b1'"},
        {"{'descr': '<c8', " ORDER, "dtype '<c8'"},
        {"{'descr': '<f16', " ORDER, "dtype '<f16'"},
        {"{'descr': '=f4', " ORDER, "dtype '=f4'"},
        {"{'descr': 'f4', " ORDER, "dtype 'f4'"},
        {"{'descr': '', " ORDER, "dtype ''"},
        {"{'descr': '<f4<f4<f4<f4<f4<f4', " ORDER, "plain dtype"},
        {"{'descr': '<f4<f4<f4<f4<f4<', " ORDER, "plain dtype"},
        {"{'descr': '<f4<f4<f4<f4<f4', " ORDER, "dtype '<f4<f4<f4<f4<f4'"},
        {"{'descr': [('x', '<f4')], " ORDER, "plain dtype"},
        {"{'descr': ('<f4', (2,)), " ORDER, "plain dtype"},
        {"{'descr': '<f4', 'descr': '<f4', " ORDER, "descr appears twice"},
        {"{'descr': '<f4', 'shape': (2, 3), " ORDER, "shape appears twice"},
        {START ORDER, "fortran_order appears twice"},
        {START "'shape': (2, 3), 'more': 1}", "more is not a key"},
        {START "'a key far too long for this': 1}", "quoted key"},
        {START "'shape': (2, 3)", "',' or '}'"},
        {START "'shape': (2, 3) 'x': 1}", "',' or '}'"},
        {START "'shape': (2, 3)},", "nothing after"},
        {START "'shape': (2, 3)} junk", "nothing after"},
        {START "'shape': (2, 3),, }", "quoted key"},
        {START "}", "shape is missing"},
        {"{'descr': '<f4', 'shape': (2, 3)}", "fortran_order is missing"},
        {"{'shape': (2, 3), 'fortran_order': False}", "descr is missing"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}", "True or False"},
        {"{'descr': '<f4', 'fortran_order': 'False', 'shape': (2, 3)}", "True or False"},
        {"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2, 3)}", "',' or '}'"},
        {START "'shape': 6}", "tuple"},
        {START "'shape': [2, 3]}", "tuple"},
        {START "'shape': ()}", "fewer than 2"},
        {START "'shape': (6)}", "fewer than 2"},
        {START "'shape': (6,)}", "fewer than 2"},
        {START "'shape': (1, 1, 1, 2, 3)}", "more than 4"},
        {START "'shape': (2, 3", "',' or ')'"},
        {START "'shape': (2 3)}", "',' or ')'"},
        {START "'shape': (2,, 3)}", "whole number"},
        {START "'shape': (,)}", "whole number"},
        {START "'shape': (2, -3)}", "whole number"},
        {START "'shape': (-2, -3)}", "whole number"},
        {START "'shape': (+2, 3)}", "whole number"},
        {START "'shape': (2.0, 3)}", "',' or ')'"},
        {START "'shape': (2L, 3)}", "',' or ')'"},
        {START "'shape': (0x2, 3)}", "dimension of 0"},
        {START "'shape': (02, 3)}", "whole number"},
        {START "'shape': (1e0, 6)}", "',' or ')'"},
        {START "'shape': (None, 3)}", "whole number"},
        {START "'shape': (True, 6)}", "whole number"},
        {START "'shape': (0, 3)}", "dimension of 0"},
        {START "'shape': (2, 3, 0)}", "dimension of 0"},
        {START "'shape': (00, 3)}", "whole number"},
        {START "'shape': (9223372036854775808, 3)}", "below 2^63"},
        {START "'shape': (99999999999999999999999999, 3)}", "below 2^63"},
        {START "'shape': (9223372036854775807, 3)}", "overflows"},
        {START "'shape': (9223372036854775807, 9223372036854775807)}", "overflows"},
        {START "'shape': (4294967296, 4294967296)}", "overflows"},
        {START "'shape': (3037000500, 3037000500)}", "overflows"},
        {START "'shape': (65536, 65536, 65536, 65536)}", "overflows"},
        {START "'shape': (1073741824, 1073741824)}", "4611686018427387904 bytes"},
        {START "'shape': (2, 4)}", "needs 32 bytes of <f4, expected the 24 bytes"},
        {START "'shape': (2, 2)}", "overlong"},
        {"{'descr': '<f8', " ORDER, "truncated"},
        {"{'descr': '<f2', " ORDER, "overlong"},
    };
    npy_file f;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        build_small(&f, rows[i].header);
        expect_refused(f.bytes, f.size, rows[i].says, rows[i].header);
    }
}

Test(npy, refuses_nul_and_control_bytes_in_headers, .init = scratch_begin, .fini = scratch_end)
{
    static const char valid[] = START "'shape': (2, 3), }";
    npy_file f;
    for (size_t i = 0; i < strlen(valid); i++) {
        build_small(&f, valid);
        f.bytes[10 + i] = i % 2 ? 0 : 27;
        expect_refused(f.bytes, f.size, "attnum: ", valid + i);
    }
}

/* C's own functions would stop at the NUL and take the text before it. */
Test(npy, refuses_texts_with_a_nul_inside, .init = scratch_begin, .fini = scratch_end)
{
    static const char *const headers[] = {
        "{'descr@': '<f4', " ORDER,
        "{'descr': '<f4@', " ORDER,
        "{'descr': '<f4@f8', " ORDER,
    };
    npy_file f;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        build_small(&f, headers[i]);
        *(unsigned char *)memchr(f.bytes, '@', f.size) = 0;
        expect_refused(f.bytes, f.size, "header: '\'' at its byte", headers[i]);
    }
}

Test(npy, refuses_bad_beginnings, .init = scratch_begin, .fini = scratch_end)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *says;
    } rows[] = {
        {"", 0, "magic"},
        {"\x93", 1, "magic"},
        {"\x93NUMPY", 6, "magic"},
        {"\x93NUMPY\1\0\0", 9, "magic"},
        {"\x89PNG\r\n\x1a\n\0\0\0\0", 12, "magic"},
        {"PK\3\4\0\0\0\0\0\0\0\0", 12, "magic"},
        {"\x93NUMPX\1\0\0\0\0\0", 12, "magic"},
        {"\x93NUMPY\0\0\0\0\0\0", 12, "version: 0.0"},
        {"\x93NUMPY\4\0\0\0\0\0", 12, "version: 4.0"},
        {"\x93NUMPY\1\1\0\0\0\0", 12, "version: 1.1"},
        {"\x93NUMPY\xff\xff\0\0\0\0", 12, "version: 255.255"},
        {"\x93NUMPY\1\0\0\0", 10, "header: it ends early"},
        {"\x93NUMPY\1\0\1\0", 10, "header length: 1 bytes"},
        {"\x93NUMPY\1\0\xff\xff{}", 12, "header length: 65535 bytes"},
        {"\x93NUMPY\2\0\2\0", 10, "header length"},
        {"\x93NUMPY\2\0\2\0\0", 11, "header length"},
        {"\x93NUMPY\2\0\1\0\0\0", 12, "header length"},
        {"\x93NUMPY\2\0\xff\xff\xff\xff", 12, "header length: 4294967295 bytes"},
        {"\x93NUMPY\3\0\0\0\1\0{}", 14, "header length: 65536 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_refused(rows[i].bytes, rows[i].size, rows[i].says, rows[i].says);
}

/* A length within the file but beyond what a header can need. */
Test(npy, refuses_a_header_of_a_megabyte, .init = scratch_begin, .fini = scratch_end)
{
    enum { SIZE = 1 << 20 };
    char *bytes = malloc(SIZE);
    memset(bytes, ' ', SIZE);
    memcpy(bytes, "\x93NUMPY\2\0\0\0\1\0", 12);
    expect_refused(bytes, SIZE, "header length: 65536 bytes in a file of 1048576", "megabyte");
    free(bytes);
}

/* Opening a pipe would wait for a writer, and the suite run into its time limit. */
Test(npy, refuses_what_is_not_a_regular_file, .init = scratch_begin, .fini = scratch_end)
{
    static const struct {
        const char *path, *says;
    } rows[] = {
        {"missing.npy", "missing.npy: No such file or directory"},
        {"folder.npy", "folder.npy: not a regular file"},
        {"pipe.npy", "pipe.npy: not a regular file"},
        {"/dev/null", "/dev/null: not a regular file"},
    };
    mkdir("folder.npy", 0700);
    mkfifo("pipe.npy", 0600);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        npy_array array;
        capture();
        int status = npy_read(rows[i].path, &array);
        const char *text = captured();
        cr_expect(status == EXIT_ENVIRONMENT && !array.data, "%s: status=%d", rows[i].path, status);
        cr_expect(is_one_line_with(text, rows[i].says), "%s: said '%s'", rows[i].path, text);
    }
}

Test(npy, names_the_element_that_is_not_finite, .init = scratch_begin, .fini = scratch_end)
{
    static const struct {
        const char *dtype;
        uint64_t bits;
        const char *fortran, *says;
    } rows[] = {
        {"<f2", 0x7c00, "False", "element [0, 1, 2] is inf"},
        {"<f2", 0xfc00, "False", "element [0, 1, 2] is -inf"},
        {"<f2", 0x7e00, "False", "element [0, 1, 2] is nan"},
        {"<f2", 0xfc01, "False", "element [0, 1, 2] is nan"},
        {"<f4", 0x7f800000, "False", "element [0, 1, 2] is inf"},
        {"<f4", 0xff800000, "False", "element [0, 1, 2] is -inf"},
        {"<f4", 0x7fc00000, "False", "element [0, 1, 2] is nan"},
        {"<f8", 0x7ff0000000000000, "False", "element [0, 1, 2] is inf"},
        {"<f8", 0x7ff0000000000001, "False", "element [0, 1, 2] is nan"},
        {"<f8", 0xfff8000000000000, "True", "element [1, 0, 1] is nan"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[128];
        npy_file f;
        int size = rows[i].dtype[2] - '0';
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 2, 3)}",
                 rows[i].dtype, rows[i].fortran);
        start_file(&f, 1, header);
        for (int k = 0; k < 12; k++) {
            uint64_t bits = k == 5 ? rows[i].bits : 0;
            append(&f, &bits, (size_t)size);
        }
        expect_refused(f.bytes, f.size, rows[i].says, rows[i].says);
    }
}

Test(npy, refuses_every_truncation_and_any_trailing_byte, .init = scratch_begin,
     .fini = scratch_end)
{
    npy_file f;
    build_small(&f, START "'shape': (2, 3), }       \n");
    for (size_t size = 0; size < f.size; size++) {
        char what[32];
        snprintf(what, sizeof what, "%zu bytes", size);
        expect_refused(f.bytes, size, "expected", what);
    }
    f.bytes[f.size] = 0;
    expect_refused(f.bytes, f.size + 1, "overlong", "one byte more");
}

/* Whatever the bytes, the reader returns: with finite numbers, or with one line. */
static void expect_calm(const npy_file *f, const char *what)
{
    npy_array array;
    capture();
    int status = read_bytes(f->bytes, f->size, &array);
    const char *text = captured();
    if (status == EXIT_PASS) {
        int64_t count = array.batch * array.heads * array.rows * array.cols;
        bool finite = array.data && count >= 1 && count <= (int64_t)f->size / 2;
        for (int64_t i = 0; finite && i < count; i++)
            finite = isfinite(array.data[i]);
        cr_expect(finite && !*text, "%s: accepted with '%s'", what, text);
    } else {
        cr_expect(status == EXIT_ENVIRONMENT && !array.data && is_one_line_with(text, "x.npy: "),
                  "%s: status=%d said '%s'", what, status, text);
    }
    free(array.data);
}

Test(npy, survives_every_changed_byte_of_a_header, .init = scratch_begin, .fini = scratch_end)
{
    static const unsigned char changes[] = {1, 2, 4, 8, 16, 32, 64, 128, 255};
    npy_file valid, f;
    build_small(&valid, START "'shape': (2, 3), }\n");
    for (size_t i = 0; i < valid.size - 24; i++)
        for (size_t k = 0; k < sizeof changes; k++) {
            char what[64];
            snprintf(what, sizeof what, "byte %zu changed by %d", i, changes[k]);
            f = valid;
            f.bytes[i] ^= changes[k];
            expect_calm(&f, what);
        }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Overwrites, deletes or inserts a piece: bytes of the file itself, or a word of the format. */
static void mutate(npy_file *f, uint64_t *state)
{
    static const char *const words[] = {"(",       ")",       ",",           "'",   "{",  "}",
                                        ":",       "0",       "9",           "-",   "\0", "True",
                                        "'descr'", "'shape'", "99999999999", "<f8", "\n"};
    size_t at = next_random(state) % (f->size + 1), tail = f->size - at;
    const char *word = words[next_random(state) % (sizeof words / sizeof *words)];
    size_t length = *word ? strlen(word) : 1;
    switch (next_random(state) % 4) {
    case 0:
        if (tail > 0)
            f->bytes[at] = (unsigned char)next_random(state);
        break;
    case 1:
        length = tail ? next_random(state) % tail % 16 : 0;
        memmove(f->bytes + at, f->bytes + at + length, tail - length);
        f->size -= length;
        break;
    case 2:
        memmove(f->bytes + at + length, f->bytes + at, tail);
        memcpy(f->bytes + at, word, length);
        f->size += length;
        break;
    default:
        if (tail >= length)
            memcpy(f->bytes + at, word, length);
    }
}

Test(npy, survives_random_mutations, .init = scratch_begin, .fini = scratch_end)
{
    uint64_t state = 88172645463325252;
    for (int round = 0; round < 3000; round++) {
        char what[32];
        npy_file f;
        build_small(&f, round % 2 ? START "'shape': (2, 3), }\n"
                                  : "{'descr': '>f2', 'fortran_order': True, 'shape': (3, 4)}");
        for (uint64_t k = next_random(&state) % 6; k-- > 0;)
            mutate(&f, &state);
        snprintf(what, sizeof what, "round %d", round);
        expect_calm(&f, what);
    }
}

/* ---- Writing ---- */

/* What is written is read again, to the last bit, and is laid out as the format says. */
Test(npy, what_is_written_is_read, .init = scratch_begin, .fini = scratch_end)
{
    static const int64_t shape[] = {2, 3, 5, 7};
    enum { COUNT = 2 * 3 * 5 * 7 };
    double wide[COUNT];
    float narrow[COUNT];
    for (int i = 0; i < COUNT; i++) {
        wide[i] = ldexp(1.0 + i / 211.0, i - 100);
        narrow[i] = (float)wide[i];
    }
    for (int dimensions = 2; dimensions <= 4; dimensions++) {
        const int64_t *sizes = shape + 4 - dimensions;
        cr_assert(npy_write(".", "wide.npy", ATN_F64, dimensions, sizes, wide) == EXIT_PASS);
        cr_assert(npy_write(".", "narrow.npy", ATN_F32, dimensions, sizes, narrow) == EXIT_PASS);
        for (int type = 0; type < 2; type++) {
            npy_array array;
            char *path = must_format("%s.npy", type ? "narrow" : "wide");
            cr_assert(npy_read(path, &array) == EXIT_PASS);
            cr_expect(strcmp(array.dtype, type ? "<f4" : "<f8") == 0, "%s", array.dtype);
            cr_expect(array.batch == (dimensions > 3 ? 2 : 1) && array.rows == 5 &&
                      array.cols == 7 && array.heads == (dimensions > 2 ? 3 : 1));
            int64_t count = array.batch * array.heads * array.rows * array.cols;
            for (int64_t i = 0; i < count; i++)
                cr_expect(array.data[i] == (type ? (double)narrow[i] : wide[i]), "%d", (int)i);
            free(array.data);
            free(path);
        }
    }
}
