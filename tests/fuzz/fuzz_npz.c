/* SPDX-License-Identifier: BSD-3-Clause */
/* npz_read: what it takes has names that differ, and finite numbers, no more than the file holds.
 */
#include <math.h>
#include <stdlib.h>

#include "common/npz.h"
#include "common/report.h"
#include "target.h"

static void check_archive(const npz_file *file, size_t size)
{
    int64_t all = 0;
    for (int64_t i = 0; i < file->count; i++) {
        const npy_array *array = &file->members[i].array;
        int64_t count = array->batch * array->heads * array->rows * array->cols;
        target_expect(npz_find(file, file->members[i].name) == array, "every name is there once");
        target_expect(count >= 1 && count <= (int64_t)size, "no more elements than bytes");
        for (int64_t k = 0; k < count; k++)
            target_expect(isfinite(array->data[k]), "every element is finite");
        all += count;
    }
    target_expect(all <= (int64_t)size, "no byte counts twice");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    npz_file file;
    if (npz_read(target_file(data, size), &file) == EXIT_PASS)
        check_archive(&file, size);
    npz_free(&file);
    return 0;
}
