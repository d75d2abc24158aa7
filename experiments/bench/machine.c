/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/machine.h"

#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "commit.h"
#include "common/blas.h"
#include "common/report.h"

/* "OpenBLAS 0.3.21", the first two words of its description; for another library its file. To be
 * freed. */
static char *name_of(const blas_description *blas)
{
    size_t name = strcspn(blas->config, " ");
    size_t length = blas->config[name] ? name + 1 + strcspn(blas->config + name + 1, " ") : name;
    return must_format("%.*s", (int)length, blas->config);
}

void bench_add_device(table *to, const atn_context *context)
{
    atn_device_info info;
    atn_device device = atn_context_device(context);
    if (atn_device_describe(device, 0, &info) != ATN_OK)
        info = (atn_device_info){.name = ""};
    blas_description blas = blas_describe();
    char *blas_name = name_of(&blas);
    BENCH_DEVICE_ROW(LIST_PUT)
    free(blas_name);
}

void bench_add_ticks(table *to, const rounds_result *r, bool timed)
{
    bool known = timed && r->dirty >= 0;
    BENCH_TICK_ROW(LIST_PUT)
}
