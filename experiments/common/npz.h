/* SPDX-License-Identifier: BSD-3-Clause */
/* NumPy's .npz files: archives in the zip format that hold a .npy file per array, not compressed,
 * as numpy.savez writes them; and one text, metadata.json, which numpy.load returns as bytes. */
#ifndef EXPERIMENTS_NPZ_H
#define EXPERIMENTS_NPZ_H

#include "npy.h"

#define NPZ_METADATA "metadata.json"

typedef struct {
    const char *name; /* without ".npy" */
    atn_dtype dtype;  /* f16, f32 or f64 */
    int dimensions;
    const int64_t *shape;
    const void *values;
} npz_array;

/* Writes folder/name, which appears only when it is complete; the same values give the same bytes.
 * Returns an exit code; on failure it has reported the reason. */
int npz_write(const char *folder, const char *name, int64_t count, const npz_array *arrays,
              const char *metadata);

typedef struct {
    int64_t count;
    struct npz_member {
        char *name; /* without ".npy" */
        npy_array array;
    } * members;
    char *metadata; /* null: there is none */
} npz_file;

/* Reads files by npz_write and numpy.savez, checking every offset, size and checksum, and the
 * arrays as npy_read does. Returns an exit code; on failure one line on stderr names the file, the
 * member and what was expected. To be freed in any case. */
int npz_read(const char *path, npz_file *file);
void npz_free(npz_file *file);

/* The array of a name; null: there is none. */
const npy_array *npz_find(const npz_file *file, const char *name);

#endif
