/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/subject.h"
#include "common/files.h"
#include "common/report.h"

/* NumPy's format 1.0: the data begin at a multiple of 64 bytes. */
static void write_header(FILE *file, const bench_case *c)
{
    char text[256];
    uint16_t little_endian = 1;
    int length = snprintf(text, sizeof text,
                          "{'descr': '%cf4', 'fortran_order': False, 'shape': (%" PRId64
                          ", %" PRId64 ", %" PRId64 ", %" PRId64 "), }",
                          *(unsigned char *)&little_endian ? '<' : '>', c->batch, c->heads,
                          c->tokens, c->dim);
    int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    const unsigned char length_bytes[2] = {(unsigned char)(padded % 256),
                                           (unsigned char)(padded / 256)};
    fwrite("\x93NUMPY\x01", 1, 8, file); /* and the 0 that ends the text */
    fwrite(length_bytes, 1, sizeof length_bytes, file);
    fprintf(file, "%-*s\n", padded - 1, text);
}

static int write_input(const bench_case *c, int input, const char *folder)
{
    static const char *const names[SUBJECT_INPUTS] = {"q", "k", "v"};
    int64_t count = c->batch * c->heads * c->tokens * c->dim;
    char *name = must_format("tokens_b%" PRId64 "_h%" PRId64 "_n%" PRId64 "_d%" PRId64 "_%s.npy",
                             c->batch, c->heads, c->tokens, c->dim, names[input]);
    float *values = must_allocate((size_t)count, sizeof *values);
    new_file file = {0};
    int code = new_file_open(&file, folder, name);
    if (code == EXIT_PASS) {
        subject_tokens(0, input, c->batch * c->heads, c->tokens, c->dim, values);
        write_header(file.file, c);
        fwrite(values, sizeof *values, (size_t)count, file.file);
        code = new_file_close(&file);
    }
    if (code == EXIT_PASS)
        code = new_file_publish(&file);
    if (code == EXIT_PASS)
        printf("%s/%s\n", folder, name);
    new_file_free(&file);
    free(values);
    free(name);
    return code;
}

/* Whether the tokens of case i are those of one before it. */
static bool is_written(const bench_case *cases, int64_t i)
{
    for (int64_t j = 0; j < i; j++)
        if (bench_is_attention(&cases[j]) && cases[j].batch == cases[i].batch &&
            cases[j].tokens == cases[i].tokens)
            return true;
    return false;
}

int bench_write_tokens(const settings *s, const char *folder)
{
    int64_t count;
    bench_case *cases = bench_cases(s, &count);
    int code = files_make_folder(folder);
    for (int64_t i = 0; i < count; i++)
        if (bench_is_attention(&cases[i]) && !is_written(cases, i))
            for (int input = 0; input < SUBJECT_INPUTS && code == EXIT_PASS; input += 2)
                code = write_input(&cases[i], input, folder);
    free(cases);
    return code;
}
