/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/workload.h"
#include "common/files.h"
#include "common/npy.h"
#include "common/report.h"

static int write_input(const bench_case *c, int input, const char *folder)
{
    static const char *const names[WORKLOAD_INPUTS] = {"q", "k", "v"};
    const int64_t shape[] = {c->batch, c->heads, c->tokens, c->dim};
    char *name = must_format("tokens_b%" PRId64 "_h%" PRId64 "_n%" PRId64 "_d%" PRId64 "_%s.npy",
                             c->batch, c->heads, c->tokens, c->dim, names[input]);
    float *values =
        must_allocate((size_t)(c->batch * c->heads * c->tokens * c->dim), sizeof *values);
    workload_tokens(0, input, c->batch * c->heads, c->tokens, c->dim, values);
    int code = npy_write(folder, name, ATN_F32, 4, shape, values);
    if (code == EXIT_PASS)
        printf("%s/%s\n", folder, name);
    free(values);
    free(name);
    return code;
}

/* Whether an earlier case has the same tokens as case i. */
static bool is_written(const bench_case *cases, int64_t i)
{
    for (int64_t j = 0; j < i; j++)
        if (bench_is_attention(&cases[j]) && cases[j].batch == cases[i].batch &&
            cases[j].tokens == cases[i].tokens)
            return true;
    return false;
}

int bench_write_tokens(const program_options *s, const char *folder)
{
    bench_list list = bench_cases(s);
    const bench_case *cases = list.cases;
    bool any = false;
    for (int64_t i = 0; i < list.count; i++)
        any |= bench_is_attention(&cases[i]);
    if (!any)
        report_error("--emit-tokens: no operator is timed with these options");
    int code = any ? files_make_folder(folder) : EXIT_USAGE;
    for (int64_t i = 0; i < list.count; i++)
        if (bench_is_attention(&cases[i]) && !is_written(cases, i))
            for (int input = 0; input < WORKLOAD_INPUTS && code == EXIT_PASS; input++)
                code = write_input(&cases[i], input, folder);
    bench_list_free(&list);
    return code;
}
