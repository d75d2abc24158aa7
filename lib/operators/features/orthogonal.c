/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <limits.h>

#include "core/internal.h"
#include "cpu/table.h"

static atn_status check(atn_context *context, const atn_tensor *numbers, const atn_tensor *norms,
                        const atn_tensor *w)
{
    atn_status status = core_check_dense(context, "numbers", numbers, -1, 1, 1, -1, -1);
    if (status != ATN_OK)
        return status;
    int64_t m = numbers->rows, d = numbers->cols;
    if (d < 1 || d > INT_MAX / 64)
        return core_fail(context, ATN_ERR_SHAPE, "numbers: cols is %" PRId64 ", expected 1 to %d",
                         d, INT_MAX / 64);
    status = core_check_dense(context, "w", w, (int)numbers->dtype, 1, 1, m, d);
    if (status == ATN_OK && norms)
        status = core_check_dense(context, "norms", norms, (int)numbers->dtype, 1, 1, m, d);
    if (status == ATN_OK)
        status = core_check_alias(context, "w", w, "numbers", numbers);
    return status == ATN_OK && norms ? core_check_alias(context, "w", w, "norms", norms) : status;
}

atn_status atn_orthogonal_features(atn_context *context, const atn_tensor *numbers,
                                   const atn_tensor *norms, atn_tensor *w)
{
    if (!context)
        return ATN_ERR_NULL;
    atn_status status = check(context, numbers, norms, w);
    if (status != ATN_OK || numbers->rows == 0)
        return status;
    const cpu_table *cpu = cpu_table_get(context, numbers->dtype);
    core_arena arena = {0};
    core_take(&arena, cpu->orthogonal_work(numbers->cols), atn_dtype_size(numbers->dtype));
    void *work;
    if ((status = core_arena_allocate(context, &arena, &work)) != ATN_OK)
        return status;
    status = cpu->orthogonal_features(numbers->rows, numbers->cols, numbers->data,
                                      norms ? norms->data : NULL, w->data, work);
    core_release(context, work);
    if (status == ATN_ERR_LIBRARY)
        core_fail(context, status, "LAPACK failed on a finite matrix");
    return status;
}
