/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that test_npy.py compares with NumPy.
 *   npy_echo read FILE
 *       "dtype b h n d" in a line, then the elements as f64
 *   npy_echo write DTYPE FOLDER NAME EXTENT...
 *       writes stdin's bytes as the elements of a file
 *   npy_echo copy FILE FOLDER NAME
 *       reads an .npz file and writes its arrays again, all as f64 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/npz.h"
#include "common/report.h"

enum { MOST_BYTES = 1 << 20, MOST_EXTENTS = 4, FIRST_EXTENT = 5 };

static int echo_read(const char *path)
{
    npy_array array;
    int code = npy_read(path, &array);
    if (code != EXIT_PASS)
        return code;
    printf("%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", array.dtype, array.batch,
           array.heads, array.rows, array.cols);
    size_t count = (size_t)(array.batch * array.heads * array.rows * array.cols);
    fwrite(array.data, sizeof *array.data, count, stdout);
    free(array.data);
    return code;
}

static int echo_write(int argc, char **argv)
{
    static double bytes[MOST_BYTES / sizeof(double)];
    int64_t shape[MOST_EXTENTS];
    int dimensions = argc - FIRST_EXTENT;
    size_t count = 1, size = fread(bytes, 1, sizeof bytes, stdin);
    for (int i = 0; i < dimensions && i < MOST_EXTENTS; i++) {
        shape[i] = strtoll(argv[FIRST_EXTENT + i], NULL, 10);
        count *= (size_t)shape[i];
    }
    for (int dtype = 0; dtype < ATN_DTYPE_COUNT; dtype++)
        if (strcmp(argv[2], atn_dtype_name((atn_dtype)dtype)) == 0 &&
            size == count * atn_dtype_size((atn_dtype)dtype))
            return npy_write(argv[3], argv[4], (atn_dtype)dtype, dimensions, shape, bytes);
    return EXIT_USAGE;
}

static int copy_archive(const char *path, const char *folder, const char *name)
{
    npz_file file;
    int code = npz_read(path, &file);
    npz_array *arrays = must_allocate((size_t)file.count + 1, sizeof *arrays);
    int64_t(*shapes)[4] = must_allocate((size_t)file.count + 1, sizeof *shapes);
    for (int64_t i = 0; i < file.count; i++) {
        const npy_array *a = &file.members[i].array;
        const int64_t all[4] = {a->batch, a->heads, a->rows, a->cols};
        memcpy(shapes[i], all + 4 - a->dimensions, (size_t)a->dimensions * sizeof *all);
        arrays[i] = (npz_array){file.members[i].name, ATN_F64, a->dimensions, shapes[i], a->data};
    }
    if (code == EXIT_PASS)
        code = npz_write(folder, name, file.count, arrays, file.metadata ? file.metadata : "{}");
    free(arrays);
    free(shapes);
    npz_free(&file);
    return code;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "read") == 0)
        return echo_read(argv[2]);
    if (argc > FIRST_EXTENT && argc <= FIRST_EXTENT + MOST_EXTENTS && strcmp(argv[1], "write") == 0)
        return echo_write(argc, argv);
    if (argc == 5 && strcmp(argv[1], "copy") == 0)
        return copy_archive(argv[2], argv[3], argv[4]);
    return EXIT_USAGE;
}
