/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu/table.h"

enum { REALS = 2 };

/* By dtype. */
static const cpu_table *const base[REALS] = {&cpu_table_f32_base, &cpu_table_f64_base};

/* The widest instruction set that this processor has, of those in lib/meson.build. */
#ifdef __x86_64__
static const cpu_table *const avx2[REALS] = {&cpu_table_f32_avx2, &cpu_table_f64_avx2};
static const cpu_table *const avx512[REALS] = {&cpu_table_f32_avx512, &cpu_table_f64_avx512};

static const cpu_table *const *widest(void)
{
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return !has_avx2 ? base : has_avx512 ? avx512 : avx2;
}
#else
static const cpu_table *const *widest(void)
{
    return base;
}
#endif

const cpu_table *cpu_table_get(atn_dtype dtype)
{
    return widest()[dtype == ATN_F64];
}
