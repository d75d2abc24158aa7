/* SPDX-License-Identifier: BSD-3-Clause */
/* mistakes_read: lines of --mistake are taken as they stand or refused, and what was claimed stays
 * what it was. The first byte says of which operator. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "common/report.h"
#include "target.h"

static attention_case case_of(atn_operator op)
{
    attention_choice choice = {.op = op,
                               .dtype = ATN_F32,
                               .shape = {1, 2, 16, 4, 4, 0},
                               .cross = true,
                               .sampling = ATN_SAMPLING_POOL,
                               .landmarks = 4,
                               .features = 8,
                               .seed = 1};
    attention_case c = attention_case_make(&choice);
    c.reference.dtype = ATN_F64;
    return c;
}

static void check_mistake(const own_mistake *m)
{
    bool given = m->changed;
    for (int kind = 0; kind < RESULT_COUNT; kind++)
        given |= m->results[kind] != NULL;
    target_expect(m->name && *m->name && given, "a mistake has a name and says what is wrong");
    for (const char *c = m->name; *c; c++)
        target_expect(*c == '\t' || !iscntrl((unsigned char)*c), "a name can be printed");
    target_expect(m->reference.scale != ATN_SCALE_VALUE ||
                      (m->reference.scale_value > 0 && isfinite(m->reference.scale_value)),
                  "a scale is a number > 0");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static atn_context *context;
    static attention_case cases[ATN_OPERATOR_COUNT];
    static bool made[ATN_OPERATOR_COUNT];
    atn_operator op = size ? (atn_operator)(data[0] % ATN_OPERATOR_COUNT) : ATN_SOFT;
    target_expect(context || atn_context_create(NULL, &context) == ATN_OK, "there is a context");
    if (!made[op])
        cases[op] = case_of(op);
    made[op] = true;
    subject s = {.c = cases[op], .judged = cases[op], .grad_output = cases[op].dout};
    const program_options given = {
        .check = {.mistakes = target_file(data + (size > 0), size - (size > 0))}};
    int code = mistakes_read(&given, context, &s);
    target_expect(code == EXIT_PASS || code == EXIT_USAGE || code == EXIT_ENVIRONMENT,
                  "an exit code of its own");
    target_expect(memcmp(&s.c.reference, &cases[op].reference, sizeof s.c.reference) == 0 &&
                      memcmp(&s.c.shape, &cases[op].shape, sizeof s.c.shape) == 0,
                  "what was claimed is as it was");
    for (int i = 0; i < s.mistake_count && code == EXIT_PASS; i++)
        check_mistake(&s.mistakes[i]);
    subject_free(&s);
    return 0;
}
