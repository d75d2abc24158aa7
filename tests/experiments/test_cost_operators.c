/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting without the numbers of the operators' parameters. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "common/report.h"
#include "cost/resident.h"
#include "runs.h"

Test(cost_operators, an_outline_counts_as_the_case_does)
{
    static const int64_t tokens[] = {784, 1000}; /* windows of soft, and tokens as they are */
    atn_context *context = make_context();
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        for (int i = 0; i < 2; i++) {
            cost_setting s = {.op = (atn_operator)op, .tokens = tokens[i], .heads = 2, .dim = 32};
            s.landmarks = cost_has_landmarks(s.op) ? PAPER_LANDMARKS : 0;
            atn_cost expected, found;
            attention_case c = cost_case(&s);
            cr_assert(atn_attention_cost(context, &c.desc, &c.shape, &expected) == ATN_OK);
            cr_assert(cost_count(context, &s, &found) == EXIT_PASS);
            cr_expect(memcmp(&found, &expected, sizeof found) == 0,
                      "%s n=%" PRId64 ": %g flops, %g", atn_operator_get(s.op)->name, s.tokens,
                      found.flops, expected.flops);
            attention_case_free(&c);
        }
    atn_context_free(context);
}
