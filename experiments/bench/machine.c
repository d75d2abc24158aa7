/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/machine.h"

#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "commit.h"
#include "common/blas.h"
#include "common/report.h"

void bench_add_integer_if(table *t, bool known, int64_t value)
{
    if (known)
        table_integer(t, value);
    else
        table_missing(t);
}

/* Adds "OpenBLAS 0.3.21", the first two words of its description; for another library its file. */
static void add_blas(table *t)
{
    blas_description d = blas_describe();
    size_t name = strcspn(d.config, " ");
    size_t length = d.config[name] ? name + 1 + strcspn(d.config + name + 1, " ") : name;
    char *text = must_format("%.*s", (int)length, d.config);
    table_text(t, text);
    if (d.core)
        table_text(t, d.core);
    else
        table_missing(t);
    free(text);
}

void bench_add_device(table *t, const atn_context *context)
{
    atn_device_info info;
    atn_device device = atn_context_device(context);
    if (atn_device_describe(device, 0, &info) != ATN_OK)
        info = (atn_device_info){.name = ""};
    table_text(t, atn_device_name(device));
    table_text(t, info.name);
    bench_add_integer_if(t, info.capability > 0, info.capability);
    bench_add_integer_if(t, info.driver > 0, info.driver);
    bench_add_integer_if(t, info.runtime > 0, info.runtime);
    bench_add_integer_if(t, info.clock_khz > 0, info.clock_khz);
    bench_add_integer_if(t, info.memory_clock_khz > 0, info.memory_clock_khz);
    table_text(t, ATN_VERSION);
    table_text(t, BUILD_COMMIT);
    table_text(t, BUILD_COMPILER);
    table_text(t, atn_isa_name(atn_context_isa(context)));
    add_blas(t);
}

void bench_add_ticks(table *t, const rounds_result *r, bool timed)
{
    bool said = timed && r->dirty >= 0;
    bench_add_integer_if(t, said, r->idle);
    bench_add_integer_if(t, said, r->steal);
    bench_add_integer_if(t, said, r->dirty);
    bench_add_integer_if(t, timed, r->repeated);
}
