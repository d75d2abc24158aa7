/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/operators.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/report.h"

enum { LSH_CHUNK = 49, LSH_ROUNDS = 8 };

bool cost_has_landmarks(atn_operator op)
{
    return op == ATN_SOFT || op == ATN_SOFTPP || op == ATN_LINFORMER || op == ATN_NYSTROMFORMER;
}

int cost_variant(atn_operator op, const char *name)
{
    const atn_operator_info *info = atn_operator_get(op);
    int variant = 0;
    while (strcmp(info->variants[variant].name, name) != 0) {
        variant++;
        assert(variant < info->variant_count);
    }
    return variant;
}

static attention_case make_case(const cost_setting *s, bool outline)
{
    bool windows = !s->as_they_are && s->landmarks > 0 && s->tokens % s->landmarks == 0;
    int64_t buckets = s->tokens / LSH_CHUNK / 2 * 2;
    attention_choice choice = {
        .op = s->op,
        .variant = s->variant,
        .dtype = ATN_F32,
        .shape = {1, s->heads, s->tokens, s->dim, s->dim, 0},
        .cross = true,
        .sampling = windows ? ATN_SAMPLING_WINDOW : ATN_SAMPLING_INDICES,
        .seed = 1,
        .bare = true,
        .outline = outline,
        .landmarks = s->landmarks,
        .features = (int64_t)((double)s->dim * log((double)s->dim)),
        .chunk = LSH_CHUNK,
        .rounds = LSH_ROUNDS,
        .buckets = buckets > 2 ? buckets : 2,
    };
    return attention_case_make(&choice);
}

attention_case cost_case(const cost_setting *s)
{
    return make_case(s, false);
}

attention_case cost_outline(const cost_setting *s)
{
    return make_case(s, true);
}

/* Whether the case has exactly m landmarks: operators may differ in nothing else. */
static bool has_its_landmarks(atn_context *context, const cost_setting *s, const attention_case *c)
{
    int64_t m = s->landmarks;
    if (s->op == ATN_SOFT || s->op == ATN_SOFTPP)
        return atn_sampling_count(context, &c->desc.sampling, s->tokens, s->dim, &m) == ATN_OK &&
               m == s->landmarks;
    return s->op != ATN_NYSTROMFORMER || c->desc.nystromformer.landmarks == m;
}

int cost_count(atn_context *context, const cost_setting *setting, atn_cost *cost)
{
    attention_case c = cost_outline(setting);
    char text[200];
    int code = EXIT_PASS;
    cost_describe(setting, text, sizeof text);
    if (atn_attention_cost(context, &c.desc, &c.shape, cost) != ATN_OK) {
        report_error("%s: %s", text, atn_last_error(context));
        code = EXIT_ENVIRONMENT;
    } else if (!has_its_landmarks(context, setting, &c)) {
        report_error("%s: not the %" PRId64 " landmarks it is asked for", text, setting->landmarks);
        code = EXIT_CHECK;
    }
    attention_case_free(&c);
    return code;
}

/* In flops: backward takes 2 to 3 times forward's (attention.h), and an exponential some 30. */
double cost_work(const atn_cost *cost, bool backward)
{
    return (cost->flops + 30 * cost->exps) * (backward ? 4 : 1);
}

bool cost_is_linear(const atn_cost *cost, const atn_cost *doubled)
{
    return cost_work(doubled, false) <= 3 * cost_work(cost, false);
}

void cost_describe(const cost_setting *s, char *buffer, size_t size)
{
    const atn_operator_info *info = atn_operator_get(s->op);
    int length = snprintf(buffer, size, "%s %s n=%" PRId64 " h=%" PRId64 " d=%" PRId64, info->name,
                          info->variants[s->variant].name, s->tokens, s->heads, s->dim);
    if (cost_has_landmarks(s->op) && length > 0 && (size_t)length < size)
        snprintf(buffer + length, size - (size_t)length, " m=%" PRId64, s->landmarks);
}
