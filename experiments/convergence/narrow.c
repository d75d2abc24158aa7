/* SPDX-License-Identifier: BSD-3-Clause */
#include "convergence/narrow.h"

#include <math.h>

const precision precisions[PRECISIONS] = {{ATN_F64, ATN_STORAGE_NATIVE},
                                          {ATN_F32, ATN_STORAGE_NATIVE},
                                          {ATN_F32, ATN_STORAGE_TF32},
                                          {ATN_F32, ATN_STORAGE_F16},
                                          {ATN_F32, ATN_STORAGE_BF16}};

const char *precision_name(precision p)
{
    return p.storage == ATN_STORAGE_NATIVE ? atn_dtype_name(p.dtype) : atn_storage_name(p.storage);
}

double precision_roundoff(precision p)
{
    return p.storage == ATN_STORAGE_NATIVE ? atn_dtype_roundoff(p.dtype)
                                           : atn_storage_roundoff(p.storage);
}

int precision_last(precision p)
{
    return -2 * ilogb(precision_roundoff(p)) + 20;
}

void precision_round(precision p, int64_t count, const double *from, double *to)
{
    for (int64_t i = 0; i < count; i++) {
        float narrow = (float)from[i];
        atn_storage_round(p.storage, 1, &narrow);
        to[i] = p.dtype == ATN_F64 ? from[i] : (double)narrow;
    }
}
