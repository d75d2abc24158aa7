/* SPDX-License-Identifier: BSD-3-Clause */
/* NumPy's .npy files: reads those of any program (format 1.0, 2.0, 3.0) with all checks, and writes
 * them. */
#ifndef EXPERIMENTS_NPY_H
#define EXPERIMENTS_NPY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <attnum/tensor.h>

/* Tokens: b x h x n x d, C order, f64. Missing leading dimensions are 1. */
typedef struct {
    int64_t batch, heads, rows, cols;
    double *data;   /* to be freed */
    char dtype[8];  /* as in the file: "<f4" */
    int dimensions; /* that the file has */
} npy_array;

/* Takes 2, 3 or 4 dimensions, f2, f4 or f8, either byte order, C or Fortran order. Returns an exit
 * code; on failure one line on stderr names the file, the field and what was expected: a missing or
 * truncated file, wrong magic or version, a malformed header, an object or integer dtype, a shape
 * that is empty, negative, does not fit the file's size or overflows, NaN or infinity. The dtype
 * 'V2', two bytes of unknown meaning, is refused, too: bfloat16 may be saved in this way, but a
 * guess could give a wrong verdict, and f4 holds bfloat16 exactly. Never reads or allocates more
 * than the file's size warrants. */
int npy_read(const char *path, npy_array *array);
/* The same, but accepts NaN and infinity: for outputs that are to be judged. */
int npy_read_any(const char *path, npy_array *array);
/* npy_read for the contents of a file, which may have one dimension. name: for messages. */
int npy_read_memory(const char *name, const char *bytes, size_t size, npy_array *array);

/* Writes f16, f32 or f64, in C order, as folder/name in format 1.0; the file appears only when it
 * is complete. Returns an exit code; on failure it has reported the reason. */
int npy_write(const char *folder, const char *name, atn_dtype dtype, int dimensions,
              const int64_t *shape, const void *values);
/* The same into an open file, which keeps write errors. */
void npy_write_stream(FILE *file, atn_dtype dtype, int dimensions, const int64_t *shape,
                      const void *values);

#endif
