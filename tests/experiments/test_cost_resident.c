/* SPDX-License-Identifier: BSD-3-Clause */
/* Resident memory of a call. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/report.h"
#include "cost/resident.h"
#include "runs.h"
#include "scratch.h"

TestSuite(cost_resident, .init = scratch_begin, .fini = scratch_end);

/* Pages that are not the plan's. */
static const double few_pages = 16 * 4096;

/* Backward touches all of the workspace, but softmax's not dK of a group of 256 keys, which only K
 * = Q needs. Softmax's forward touches less than half: it keeps nothing of a strip. 496 tokens
 * nearly fill two blocks of 256 keys, and end with a strip of 48 queries, the largest. Several
 * threads may ask at once, as the engine's do. */
Test(cost_resident, resident_memory_is_the_workspace)
{
    static const struct {
        cost_setting setting;
        bool backward;
        double spare; /* bytes that it does not need */
    } calls[] = {{{ATN_SOFT, 0, 784, 12, 32, 49, false, ATN_ISA_AUTO}, true, 0},
                 {{ATN_SOFT, 0, 3136, 3, 32, 49, false, ATN_ISA_AUTO}, true, 0},
                 {{ATN_SOFTMAX, 0, 496, 2, 64, 0, false, ATN_ISA_AUTO}, true, 256 * 64 * 4},
                 {{ATN_SOFTMAX, 0, 496, 2, 64, 0, false, ATN_ISA_AUTO}, false, 0},
                 {{ATN_XNORM, 0, 20000, 1, 32, 0, false, ATN_ISA_AUTO}, true, 0}};
    enum { CALLS = 5 };
    int codes[CALLS];
    int64_t bytes[CALLS];
#pragma omp parallel for num_threads(CALLS) schedule(static, 1)
    for (int i = 0; i < CALLS; i++)
        codes[i] = resident_measure(&calls[i].setting, calls[i].backward, &bytes[i]);
    atn_context *context = make_context();
    for (int i = 0; i < CALLS; i++) {
        atn_cost cost;
        cr_assert(codes[i] == EXIT_PASS, "call %d", i);
        cr_assert(cost_count(context, &calls[i].setting, &cost) == EXIT_PASS);
        double untouched = cost.workspace_bytes - (double)bytes[i];
        if (!resident_obstacle())
            cr_expect(calls[i].backward ? fabs(untouched - calls[i].spare) <= few_pages
                                        : untouched > cost.workspace_bytes / 2,
                      "call %d: %" PRId64 " bytes, workspace %.17g", i, bytes[i],
                      cost.workspace_bytes);
    }
    atn_context_free(context);
}

/* More than an address space holds. */
Test(cost_resident, a_call_that_cannot_be_measured_says_so)
{
    cost_setting huge = {.op = ATN_SIMA, .tokens = 10000000000000, .heads = 1, .dim = 32};
    int64_t bytes;
    capture();
    int code = resident_measure(&huge, false, &bytes);
    const char *text = captured();
    cr_expect(code == EXIT_ENVIRONMENT && strstr(text, "sima paper n=10000000000000"), "%d: %s",
              code, text);
}
