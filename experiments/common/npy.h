/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads NumPy .npy files (format 1.0, 2.0, 3.0), written by anyone, trusted by no one. */
#ifndef EXPERIMENTS_NPY_H
#define EXPERIMENTS_NPY_H

#include <stdint.h>

/* Tokens: b x h x n x d, C order, f64. Missing leading dimensions are 1. */
typedef struct {
    int64_t batch, heads, rows, cols;
    double *data;  /* to be freed */
    char dtype[8]; /* as in the file: "<f4" */
} npy_array;

/* Takes 2, 3 or 4 dimensions, f2, f4 or f8, either byte order, C or Fortran order. Returns an exit
 * code; on failure one line on stderr names the file, the field and what was expected: a missing or
 * truncated file, wrong magic or version, a malformed header, an object or integer dtype, a shape
 * that is empty, negative, does not fit the file's size or overflows, NaN or infinity. Never reads
 * or allocates more than the file's size warrants. */
int npy_read(const char *path, npy_array *array);

#endif
