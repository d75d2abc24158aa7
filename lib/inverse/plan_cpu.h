/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INVERSE_PLAN_CPU_H
#define INVERSE_PLAN_CPU_H

#include "cpu/table.h"

/* Lays out the memory of cpu->inverse_batch for `count` m x m matrices. */
void cpu_inverse_layout(core_arena *arena, const cpu_table *cpu, const atn_inverse_desc *desc,
                        atn_dtype dtype, int64_t m, int64_t count, int threads, bool traced,
                        cpu_inverse_memory *memory);

#endif
