/* SPDX-License-Identifier: BSD-3-Clause */
/* The format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html. A magic, a version,
 * the length of a header, the header (a Python dictionary of three keys), the elements. The header
 * is parsed as NumPy writes it, not as general Python: no escapes in strings, no "2L", no
 * comments. */
#include "npy.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files.h"
#include "report.h"

enum {
    MAX_DIMS = 4,
    MAX_HEADER = 65535, /* NumPy writes 118 bytes for a plain array */
};

typedef struct {
    const char *name;
    int size;
    bool big_endian;
} element_type;

static const element_type element_types[] = {
    {"<f2", 2, false}, {"<f4", 4, false}, {"<f8", 8, false},
    {">f2", 2, true},  {">f4", 4, true},  {">f8", 8, true},
};
#define TYPES_EXPECTED "expected <f2, <f4, <f8, >f2, >f4 or >f8"

/* The state of reading: the text still to parse, and what the header has given so far. */
typedef struct {
    const char *path;
    const char *start, *at, *end;
    const element_type *type;
    bool any;    /* NaN and infinity too */
    int least;   /* dimensions */
    int fortran; /* -1 until known */
    int dims;    /* 0 until known */
    int64_t shape[MAX_DIMS];
} reader;

static bool fail_at(const reader *r, const char *expected)
{
    if (r->at < r->end)
        report_error("%s: header: '%c' at its byte %td, expected %s", r->path, *r->at,
                     r->at - r->start, expected);
    else
        report_error("%s: header: it ends early, expected %s", r->path, expected);
    return false;
}

static bool fail_key(const reader *r, const char *key, const char *problem)
{
    report_error("%s: header: %s %s, expected the keys descr, fortran_order and shape once each",
                 r->path, key, problem);
    return false;
}

static void skip_spaces(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

/* Consumes the character and the spaces before it. */
static bool take(reader *r, char c)
{
    skip_spaces(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool accept_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* A quoted text of fewer than `size` characters. */
static bool read_text(reader *r, char *text, size_t size, const char *expected)
{
    skip_spaces(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return fail_at(r, expected);
    char quote = *r->at;
    const char *start = r->at + 1;
    const char *stop = memchr(start, quote, (size_t)(r->end - start));
    if (!stop || (size_t)(stop - start) >= size || memchr(start, 0, (size_t)(stop - start)))
        return fail_at(r, expected);
    memcpy(text, start, (size_t)(stop - start));
    text[stop - start] = 0;
    r->at = stop + 1;
    return true;
}

static bool read_descr(reader *r)
{
    char name[16];
    if (r->type)
        return fail_key(r, "descr", "appears twice");
    if (!read_text(r, name, sizeof name, "a plain dtype for descr, such as '<f4'"))
        return false;
    for (size_t i = 0; i < sizeof element_types / sizeof *element_types; i++)
        if (strcmp(name, element_types[i].name) == 0)
            r->type = &element_types[i];
    if (!r->type)
        report_error("%s: descr: dtype '%s', " TYPES_EXPECTED "%s", r->path, name,
                     strcmp(name + strspn(name, "|<>"), "V2") == 0
                         ? "; save bfloat16 as f4, which holds it exactly"
                         : "");
    return r->type != NULL;
}

static bool read_order(reader *r)
{
    if (r->fortran >= 0)
        return fail_key(r, "fortran_order", "appears twice");
    if (accept_word(r, "True"))
        r->fortran = 1;
    else if (accept_word(r, "False"))
        r->fortran = 0;
    else
        return fail_at(r, "True or False for fortran_order");
    return true;
}

static bool read_extent(reader *r, int64_t *extent)
{
    static const char expected[] = "a positive whole number below 2^63 in shape";
    int64_t value = 0;
    skip_spaces(r);
    const char *start = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        int digit = *r->at - '0';
        if (value > (INT64_MAX - digit) / 10)
            return fail_at(r, expected);
        value = 10 * value + digit;
    }
    if (r->at == start || (*start == '0' && r->at - start > 1))
        return fail_at(r, expected);
    if (value == 0) {
        report_error("%s: shape: a dimension of 0, expected at least one token", r->path);
        return false;
    }
    *extent = value;
    return true;
}

static bool read_shape(reader *r)
{
    if (r->dims)
        return fail_key(r, "shape", "appears twice");
    if (!take(r, '('))
        return fail_at(r, "a tuple for shape, such as (3, 64, 196, 32)");
    bool closed = take(r, ')');
    while (!closed && r->dims < MAX_DIMS) {
        if (!read_extent(r, &r->shape[r->dims++]))
            return false;
        bool comma = take(r, ',');
        closed = take(r, ')');
        if (!comma && !closed)
            return fail_at(r, "',' or ')' in shape");
    }
    if (closed && r->dims >= r->least)
        return true;
    report_error("%s: shape: %s dimensions, expected %d to 4%s", r->path,
                 !closed         ? "more than 4"
                 : r->least == 2 ? "fewer than 2"
                                 : "no",
                 r->least, r->least == 2 ? ": (batch, heads, tokens, width)" : "");
    return false;
}

typedef struct {
    const char *name;
    bool (*read)(reader *);
} header_key;

static const header_key header_keys[] = {
    {"descr", read_descr},
    {"fortran_order", read_order},
    {"shape", read_shape},
};

static bool read_entry(reader *r)
{
    char key[16];
    if (!read_text(r, key, sizeof key, "a quoted key"))
        return false;
    if (!take(r, ':'))
        return fail_at(r, "':'");
    for (size_t i = 0; i < sizeof header_keys / sizeof *header_keys; i++)
        if (strcmp(key, header_keys[i].name) == 0)
            return header_keys[i].read(r);
    return fail_key(r, key, "is not a key of this format");
}

static bool read_dictionary(reader *r)
{
    if (!take(r, '{'))
        return fail_at(r, "'{'");
    bool closed = take(r, '}');
    while (!closed) {
        if (!read_entry(r))
            return false;
        bool comma = take(r, ',');
        closed = take(r, '}');
        if (!comma && !closed)
            return fail_at(r, "',' or '}'");
    }
    skip_spaces(r);
    if (r->at < r->end)
        return fail_at(r, "nothing after '}'");
    if (!r->type)
        return fail_key(r, "descr", "is missing");
    if (r->fortran < 0)
        return fail_key(r, "fortran_order", "is missing");
    if (!r->dims)
        return fail_key(r, "shape", "is missing");
    return true;
}

/* Reads everything before the elements. *header is to be freed. */
static bool read_header(reader *r, FILE *file, int64_t file_size, char **header, int64_t *offset)
{
    unsigned char start[12] = {0};
    if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY", 6) != 0) {
        report_error("%s: magic: not a NumPy file, expected it to start with \\x93NUMPY", r->path);
        return false;
    }
    if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
        report_error("%s: version: %d.%d, expected 1.0, 2.0 or 3.0", r->path, start[6], start[7]);
        return false;
    }
    int prefix = start[6] == 1 ? 10 : 12;
    size_t more = (size_t)prefix - 10;
    bool whole = fread(start + 10, 1, more, file) == more;
    int64_t length =
        start[8] | (int64_t)start[9] << 8 | (int64_t)start[10] << 16 | (int64_t)start[11] << 24;
    if (!whole || length > file_size - prefix || length > MAX_HEADER) {
        report_error("%s: header length: %lld bytes in a file of %lld, expected it inside the file "
                     "and at most %d",
                     r->path, (long long)length, (long long)file_size, MAX_HEADER);
        return false;
    }
    *header = must_allocate((size_t)length, 1);
    if (fread(*header, 1, (size_t)length, file) != (size_t)length) {
        report_error("%s: header: the file ends inside it", r->path);
        return false;
    }
    r->start = r->at = *header;
    r->end = *header + length;
    *offset = prefix + length;
    return true;
}

/* Compares the shape with the number of bytes; *count is then the number of elements. */
static bool check_size(const reader *r, int64_t available, int64_t *count)
{
    int64_t bytes = r->type->size;
    for (int i = 0; i < r->dims; i++) {
        if (r->shape[i] > INT64_MAX / bytes) {
            report_error("%s: shape: its number of bytes overflows, expected the %lld bytes that "
                         "follow the header",
                         r->path, (long long)available);
            return false;
        }
        bytes *= r->shape[i];
    }
    if (bytes != available) {
        report_error("%s: shape: it needs %lld bytes of %s, expected the %lld bytes that follow "
                     "the header (%s file)",
                     r->path, (long long)bytes, r->type->name, (long long)available,
                     bytes > available ? "truncated" : "overlong");
        return false;
    }
    *count = bytes / r->type->size;
    return true;
}

static double half_value(uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double fraction = (double)(bits & 1023), magnitude;
    if (exponent == 31)
        magnitude = fraction > 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, -24);
    else
        magnitude = ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
}

static double element_value(const element_type *type, const unsigned char *bytes)
{
    uint64_t bits = 0;
    for (int i = 0; i < type->size; i++)
        bits = bits << 8 | bytes[type->big_endian ? i : type->size - 1 - i];
    if (type->size == 2)
        return half_value(bits);
    if (type->size == 4) {
        uint32_t word = (uint32_t)bits;
        float value;
        memcpy(&value, &word, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void report_element(const reader *r, const int64_t *index, double value)
{
    char text[100] = "";
    size_t used = 0;
    for (int i = 0; i < r->dims; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? ", " : "",
                                 (long long)index[i]);
    report_error("%s: element [%s] is %s, expected a finite number", r->path, text,
                 isnan(value) ? "nan"
                 : value > 0  ? "inf"
                              : "-inf");
}

/* Steps through the elements in C order; `place` is where the file has each of them. */
static bool convert(const reader *r, const unsigned char *raw, int64_t count, double *data)
{
    int64_t step[MAX_DIMS], index[MAX_DIMS] = {0}, stride = 1, place = 0;
    for (int k = 0; k < r->dims; k++) {
        int dim = r->fortran ? k : r->dims - 1 - k;
        step[dim] = stride;
        stride *= r->shape[dim];
    }
    for (int64_t i = 0; i < count; i++) {
        data[i] = element_value(r->type, raw + place * r->type->size);
        if (!r->any && !isfinite(data[i])) {
            report_element(r, index, data[i]);
            return false;
        }
        for (int dim = r->dims - 1; dim >= 0; dim--) {
            place += step[dim];
            if (++index[dim] < r->shape[dim])
                break;
            place -= step[dim] * r->shape[dim];
            index[dim] = 0;
        }
    }
    return true;
}

static bool read_elements(const reader *r, FILE *file, int64_t count, npy_array *array)
{
    size_t bytes = (size_t)count * (size_t)r->type->size;
    unsigned char *raw = must_allocate(bytes, 1);
    double *data = must_allocate((size_t)count, sizeof *data);
    bool good = fread(raw, 1, bytes, file) == bytes;
    if (!good)
        report_error("%s: the file ends inside its elements", r->path);
    good = good && convert(r, raw, count, data);
    free(raw);
    if (!good) {
        free(data);
        return false;
    }
    int64_t sizes[MAX_DIMS] = {1, 1, 1, 1};
    memcpy(sizes + MAX_DIMS - r->dims, r->shape, (size_t)r->dims * sizeof *sizes);
    *array = (npy_array){sizes[0], sizes[1], sizes[2], sizes[3], data, "", r->dims};
    strcpy(array->dtype, r->type->name);
    return true;
}

static bool read_file(const char *path, bool any, int least, FILE *file, int64_t size,
                      npy_array *array)
{
    reader r = {.path = path, .any = any, .least = least, .fortran = -1};
    char *header = NULL;
    int64_t offset = 0, count = 0;
    bool good = read_header(&r, file, size, &header, &offset) && read_dictionary(&r) &&
                check_size(&r, size - offset, &count) && read_elements(&r, file, count, array);
    free(header);
    return good;
}

static int read_path(const char *path, bool any, npy_array *array)
{
    *array = (npy_array){0};
    struct stat status;
    FILE *file = files_open(path, "a .npy file");
    if (!file)
        return EXIT_ENVIRONMENT;
    bool good =
        fstat(fileno(file), &status) == 0 && read_file(path, any, 2, file, status.st_size, array);
    fclose(file);
    return good ? EXIT_PASS : EXIT_ENVIRONMENT;
}

int npy_read(const char *path, npy_array *array)
{
    return read_path(path, false, array);
}

int npy_read_any(const char *path, npy_array *array)
{
    return read_path(path, true, array);
}

int npy_read_memory(const char *name, const char *bytes, size_t size, npy_array *array)
{
    *array = (npy_array){0};
    FILE *file = fmemopen((char *)bytes, size, "r"); /* opened for reading only */
    if (!file)
        end_program("out of memory");
    bool good = read_file(name, false, 1, file, (int64_t)size, array);
    fclose(file);
    return good ? EXIT_PASS : EXIT_ENVIRONMENT;
}

/* ---- Writing ---- */

static const char *const written_types[ATN_DTYPE_COUNT] = {
    [ATN_F16] = "f2", [ATN_F32] = "f4", [ATN_F64] = "f8"};

static bool is_little_endian(void)
{
    uint16_t one = 1;
    return *(unsigned char *)&one == 1;
}

/* The data begin at a multiple of 64 bytes. */
static void write_header(FILE *file, atn_dtype dtype, int dimensions, const int64_t *shape)
{
    char text[256];
    int length = snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                          is_little_endian() ? '<' : '>', written_types[dtype]);
    for (int i = 0; i < dimensions; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%" PRId64 ", ", shape[i]);
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    const unsigned char length_bytes[2] = {(unsigned char)(padded % 256),
                                           (unsigned char)(padded / 256)};
    fwrite("\x93NUMPY\x01", 1, 8, file); /* including the terminating 0 */
    fwrite(length_bytes, 1, sizeof length_bytes, file);
    fprintf(file, "%-*s\n", padded - 1, text);
}

void npy_write_stream(FILE *file, atn_dtype dtype, int dimensions, const int64_t *shape,
                      const void *values)
{
    assert(written_types[dtype] && dimensions >= 1 && dimensions <= MAX_DIMS);
    size_t count = 1;
    for (int i = 0; i < dimensions; i++)
        count *= (size_t)shape[i];
    write_header(file, dtype, dimensions, shape);
    fwrite(values, atn_dtype_size(dtype), count, file);
}

int npy_write(const char *folder, const char *name, atn_dtype dtype, int dimensions,
              const int64_t *shape, const void *values)
{
    new_file file = {0};
    int code = new_file_open(&file, folder, name);
    if (code == EXIT_PASS) {
        npy_write_stream(file.file, dtype, dimensions, shape, values);
        code = new_file_close(&file);
    }
    if (code == EXIT_PASS)
        code = new_file_publish(&file);
    new_file_free(&file);
    return code;
}
