/* SPDX-License-Identifier: BSD-3-Clause */
/* npy_read: what it takes is finite, and as much as the file holds. */
#include <math.h>
#include <stdlib.h>

#include "common/npy.h"
#include "common/report.h"
#include "target.h"

static void check_array(const npy_array *array, size_t size)
{
    int64_t count = 1, extents[4] = {array->batch, array->heads, array->rows, array->cols};
    for (int i = 0; i < 4; i++) {
        target_expect(extents[i] >= 1 && extents[i] <= (int64_t)size / count,
                      "no more elements than the file has bytes");
        count *= extents[i];
    }
    int64_t bytes = count * (array->dtype[2] - '0');
    target_expect(bytes + 10 < (int64_t)size, "the elements fit the file");
    for (int64_t i = 0; i < count; i++)
        target_expect(isfinite(array->data[i]), "every element is finite");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    npy_array array;
    if (npy_read(target_file(data, size), &array) == EXIT_PASS)
        check_array(&array, size);
    else
        target_expect(!array.data, "nothing is left after a refusal");
    free(array.data);
    return 0;
}
