/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu/table.h"

const cpu_table *cpu_table_get(atn_dtype dtype)
{
    return dtype == ATN_F32 ? &cpu_table_f32 : &cpu_table_f64;
}
