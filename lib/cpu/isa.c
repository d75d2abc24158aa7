/* SPDX-License-Identifier: BSD-3-Clause */
/* The instruction sets: which are available, and which one a context uses. */
#include "cpu/table.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const cpu_table *f32, *f64, *bf16; /* null: not in this build */
    bool (*available)(void);           /* whether the processor has it */
    const char *lacking;
} set;

static bool has_base(void)
{
    return true;
}

#ifdef __x86_64__
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx512_bf16(void)
{
    return __builtin_cpu_supports("avx512bf16");
}
#endif

/* In the order of simd_flags in lib/meson.build. */
static const set sets[ATN_ISA_COUNT] = {
    [ATN_ISA_BASE] = {&cpu_table_f32_base, &cpu_table_f64_base, &cpu_table_bf16_base, has_base, ""},
#ifdef __x86_64__
    [ATN_ISA_AVX2] = {&cpu_table_f32_avx2, &cpu_table_f64_avx2, &cpu_table_bf16_avx2, has_avx2,
                      "this processor lacks AVX2 or FMA"},
    [ATN_ISA_AVX512] = {&cpu_table_f32_avx512, &cpu_table_f64_avx512, &cpu_table_bf16_avx512,
                        has_avx512, "this processor lacks AVX-512 (F, VL, BW, DQ)"},
#endif
};

/* Why the set cannot be used; null if build and processor have it. */
static const char *why_not(atn_isa isa)
{
    const set *s = &sets[isa];
    return !s->available    ? "this build lacks it: it is of another architecture"
           : s->available() ? NULL
                            : s->lacking;
}

static atn_isa widest(void)
{
    int isa = ATN_ISA_COUNT - 1;
    while (why_not((atn_isa)isa))
        isa--;
    return (atn_isa)isa;
}

/* The set that ATTNUM_ISA names; ATN_ISA_COUNT if there is no such set. */
static atn_isa named_by_environment(void)
{
    const char *name = getenv("ATTNUM_ISA");
    int isa = ATN_ISA_AUTO;
    if (!name || !*name)
        return ATN_ISA_AUTO;
    while (isa < ATN_ISA_COUNT && strcmp(name, atn_isa_name((atn_isa)isa)) != 0)
        isa++;
    return (atn_isa)isa;
}

#define SPACED(code, name, description) " " name

atn_status atn_isa_choose(atn_isa isa, atn_isa *chosen, const char **reason)
{
    const char *why = "there is no such instruction set";
    atn_status status = ATN_ERR_VALUE;
    bool known = atn_isa_name(isa);
    if (isa == ATN_ISA_AUTO) {
        why = "ATTNUM_ISA is none of" ATN_ISA_LIST(SPACED);
        isa = named_by_environment();
        known = isa < ATN_ISA_COUNT;
    }
    if (known) {
        isa = isa == ATN_ISA_AUTO ? widest() : isa;
        why = why_not(isa);
        status = why ? ATN_ERR_DEVICE : ATN_OK;
    }
    if (chosen)
        *chosen = status == ATN_OK ? isa : ATN_ISA_AUTO;
    if (reason)
        *reason = why ? why : "";
    return status;
}

const cpu_table *cpu_table_get(const atn_context *context, atn_dtype dtype)
{
    const set *s = &sets[context->isa];
    if (dtype != ATN_BF16)
        return dtype == ATN_F64 ? s->f64 : s->f32;
#ifdef __x86_64__
    /* the code of bf16 for AVX-512 needs an instruction that its first processors lack */
    if (context->isa == ATN_ISA_AVX512 && !has_avx512_bf16())
        return sets[ATN_ISA_AVX2].bf16;
#endif
#ifdef CPU_AMX
    if (context->isa == ATN_ISA_AVX512 && cpu_has_amx())
        return &cpu_table_bf16_amx;
#endif
    return s->bf16;
}
