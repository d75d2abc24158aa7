/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

/* Default sizes: 72 tokens are a tile of 64 and a tail of 8; 16 is the narrowest tile of a GPU. */
static const int64_t usual[AXES] = {[AXIS_N] = DEFAULT_CASE_TOKENS,
                                    [AXIS_D] = DEFAULT_CASE_WIDTH,
                                    [AXIS_BATCH] = DEFAULT_CASE_BATCH,
                                    [AXIS_MASKS] = CASE_MASK_NONE};

/* From so many tokens on there are about 7 x 7 landmarks, as in SOFT (SOFT IJCV, Tab. 1); below,
 * fewer. */
enum { MANY_TOKENS = 196, SOFT_LANDMARKS = 49 };

/* The fewest rows of a grid; otherwise landmarks are those of windows of consecutive tokens. */
enum { LEAST_ROWS = 4 };

/* ---- Reading ---- */

/* Refuses options whose values the given files determine. */
static int check_shape_options(const program_options *s)
{
    const struct {
        const char *option, *file;
        bool clashes;
    } clashes[] = {
        {"n", "tokens", s->check.tokens && s->tokens.count},
        {"d", "tokens", s->check.tokens && s->cases.widths.count},
        {"batch", "tokens", s->check.tokens && s->batches.count},
        {"heads", "tokens", s->check.tokens && s->heads > 0},
        {"key-tokens", "tokens", s->check.tokens && s->cases.key_tokens > 0},
        {"kv-heads", "tokens", s->check.tokens && s->cases.key_heads > 0},
        {"value-width", "values", s->check.values && s->cases.value_width > 0},
        {"masks", "mask", (s->check.mask || s->check.query_mask) && s->cases.masks.count},
    };
    static const struct {
        const char *option;
        size_t offset;
    } others[] = {{"keys", offsetof(check_arguments, keys)},
                  {"values", offsetof(check_arguments, values)},
                  {"mask", offsetof(check_arguments, mask)},
                  {"query-mask", offsetof(check_arguments, query_mask)}};
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++)
        if (clashes[i].clashes) {
            report_error("--%s: not with --%s, whose file decides", clashes[i].option,
                         clashes[i].file);
            return EXIT_USAGE;
        }
    for (size_t i = 0; i < sizeof others / sizeof *others && !s->check.tokens; i++)
        if (*(const char *const *)((const char *)&s->check + others[i].offset)) {
            report_error("--%s: needs --tokens, too", others[i].option);
            return EXIT_USAGE;
        }
    return EXIT_PASS;
}

/* The type of the inputs: --dtype, or the type of the tokens' file, or bf16, whose mantissa fits
 * every type. */
static int choose_inputs(case_plan *plan)
{
    const program_options *s = plan->s;
    plan->inputs = ATN_BF16;
    if (s->dtypes_given && s->dtype_count != 1) {
        report_error("--dtype: several are given, expected the one whose numbers inputs are to be");
        return EXIT_USAGE;
    }
    if (s->dtypes_given)
        plan->inputs = s->dtypes[0];
    else if (s->check.tokens)
        plan->inputs = plan->given.files[0].dtype[2] == '8'   ? ATN_F64
                       : plan->given.files[0].dtype[2] == '4' ? ATN_F32
                                                              : ATN_F16;
    subject_claim(&plan->given, plan->inputs);
    return EXIT_PASS;
}

/* Rounds given numbers to the type of the inputs. */
static void round_given(const case_plan *plan, int64_t count, double *values)
{
    for (int64_t i = 0; values && plan->inputs != ATN_F64 && i < count; i++) {
        float value = (float)values[i];
        if (plan->given.storage != ATN_STORAGE_NATIVE)
            atn_storage_round(plan->given.storage, 1, &value);
        values[i] = (double)value;
    }
}

static int read_given(case_plan *plan)
{
    attention_case *c = &plan->given.c;
    int code = plan->s->check.tokens ? subject_read_inputs(plan->s, &plan->given) : EXIT_PASS;
    if (code == EXIT_PASS && plan->s->check.tokens)
        code = subject_read_masks(plan->s, &plan->given);
    if (code == EXIT_PASS)
        code = choose_inputs(plan);
    if (code != EXIT_PASS || !c->q)
        return code;
    c->choice.cross = c->k != NULL;
    round_given(plan, attention_case_queries(c), c->q);
    round_given(plan, attention_case_keys(c), c->k);
    round_given(plan, attention_case_values(c), c->v);
    if (plan->given.doubt)
        report_note("%s", plan->given.doubt);
    return EXIT_PASS;
}

static int choose_heads(case_plan *plan)
{
    const program_options *s = plan->s;
    bool given = plan->given.c.q != NULL;
    plan->heads = given ? plan->given.c.shape.heads : s->heads > 0 ? s->heads : DEFAULT_CASE_HEADS;
    plan->key_heads = given                    ? plan->given.key_heads
                      : s->cases.key_heads > 0 ? s->cases.key_heads
                                               : plan->heads;
    if (plan->heads % plan->key_heads == 0)
        return EXIT_PASS;
    report_error("--kv-heads %" PRId64 ": expected a divisor of the %" PRId64
                 " heads of the tokens",
                 plan->key_heads, plan->heads);
    return EXIT_USAGE;
}

/* In a layout without h the width holds all heads, and one without b has no batch. */
static int choose_layout(case_plan *plan)
{
    const layout *asked = &plan->s->layout;
    char *name = layout_name(asked);
    int code = EXIT_USAGE;
    plan->layout = *asked;
    bool packed = layout_is_packed(asked), batches = false;
    for (int64_t i = 0; i < plan->counts[AXIS_BATCH]; i++)
        batches |= plan->values[AXIS_BATCH][i] > 1;
    if (packed)
        plan->layout.heads = plan->heads;
    if (asked->heads > 0 && asked->heads != plan->heads)
        report_error("--layout %s: expected the %" PRId64 " heads that the cases have", name,
                     plan->heads);
    else if (packed && case_plan_is_grouped(plan))
        report_error("--layout %s: expected a layout with h where heads share keys", name);
    else if (batches && asked->axes && !strchr(asked->axes, 'b'))
        report_error("--layout %s: expected a layout with b for a batch of several", name);
    else
        code = EXIT_PASS;
    free(name);
    return code;
}

static void set_axis(case_plan *plan, case_axis axis, const integer_list *given,
                     const int64_t *from_file)
{
    plan->values[axis] = from_file ? from_file : given->count ? given->items : &usual[axis];
    plan->counts[axis] = from_file || !given->count ? 1 : given->count;
}

int case_plan_read(const program_options *s, case_plan *plan)
{
    *plan = (case_plan){.s = s};
    int code = check_shape_options(s);
    if (code == EXIT_PASS)
        code = read_given(plan);
    if (code != EXIT_PASS)
        return code;
    const atn_attention_shape *shape = plan->given.c.q ? &plan->given.c.shape : NULL;
    set_axis(plan, AXIS_N, &s->tokens, shape ? &shape->tokens : NULL);
    set_axis(plan, AXIS_D, &s->cases.widths, shape ? &shape->dim : NULL);
    set_axis(plan, AXIS_BATCH, &s->batches, shape ? &shape->batch : NULL);
    set_axis(plan, AXIS_M, &s->landmarks, NULL);
    set_axis(plan, AXIS_SEED, &s->seeds, NULL);
    set_axis(plan, AXIS_MASKS, &s->cases.masks, NULL);
    code = choose_heads(plan);
    return code == EXIT_PASS ? choose_layout(plan) : code;
}

void case_plan_free(case_plan *plan)
{
    subject_free(&plan->given);
}

bool case_plan_is_grouped(const case_plan *plan)
{
    return plan->key_heads < plan->heads;
}

/* ---- Points ---- */

int64_t case_plan_count(const case_plan *plan)
{
    int64_t count = 1;
    for (int axis = 0; axis < AXES; axis++)
        count *= plan->counts[axis];
    return count;
}

/* The last axis varies fastest. */
case_point case_plan_point(const case_plan *plan, int64_t index)
{
    case_point point;
    for (int axis = AXES - 1; axis >= 0; axis--) {
        point.of[axis] = plan->values[axis][index % plan->counts[axis]];
        index /= plan->counts[axis];
    }
    return point;
}

char *case_plan_name(const case_plan *plan, const atn_operator_info *info, int variant,
                     const case_point *point)
{
    static const char *const letters[AXES] = {"n", "d", "b", "m", "seed", ""};
    char *name = must_format("%s-%s", info->name, info->variants[variant].name);
    for (int axis = 0; axis < AXES; axis++) {
        if (plan->counts[axis] == 1)
            continue;
        char *longer = axis == AXIS_MASKS
                           ? must_format("%s-%s", name, case_mask_name((case_mask)point->of[axis]))
                           : must_format("%s-%s%" PRId64, name, letters[axis], point->of[axis]);
        free(name);
        name = longer;
    }
    return name;
}

/* ---- Cases ---- */

/* Optional parameters are present where a kernel needs them. */
static attention_choice choose(const case_plan *plan, const case_point *point, atn_operator op,
                               int variant)
{
    const attention_case *given = &plan->given.c;
    const case_sizes *sizes = &plan->s->cases;
    int64_t mask = point->of[AXIS_MASKS], m = point->of[AXIS_M], n = point->of[AXIS_N];
    attention_choice choice = {
        .op = op,
        .variant = variant,
        .dtype = plan->given.dtype,
        .shape = {point->of[AXIS_BATCH], plan->heads, n, point->of[AXIS_D], point->of[AXIS_D],
                  sizes->key_tokens},
        .cross = !given->q || given->k,
        .padding = mask == CASE_MASK_PADDING || mask == CASE_MASK_BOTH || given->reference.padding,
        .causal = mask == CASE_MASK_CAUSAL || mask == CASE_MASK_BOTH,
        .optional = op == ATN_XNORM || op == ATN_XCA || op == ATN_LINFORMER,
        .sampling = ATN_SAMPLING_POOL,
        .seed = (uint64_t)point->of[AXIS_SEED],
        .storage = plan->given.storage,
        .landmarks = m > 0              ? m
                     : n >= MANY_TOKENS ? SOFT_LANDMARKS
                                        : 0,
    };
    if (sizes->value_width > 0)
        choice.shape.value_dim = sizes->value_width;
    if (given->q)
        choice.shape.key_tokens = given->shape.key_tokens;
    if (given->v)
        choice.shape.value_dim = given->shape.value_dim;
    return choice;
}

/* Gives every head of a group what its first head has. */
static void share_heads(const case_plan *plan, int64_t batch, int64_t size, double *x)
{
    int64_t times = plan->heads / plan->key_heads;
    for (int64_t i = 0; x && i < batch * plan->heads; i++)
        memcpy(x + i * size, x + i / times * times * size, (size_t)size * sizeof *x);
}

static void use_given(const case_plan *plan, attention_case *c)
{
    const attention_case *given = &plan->given.c;
    const atn_attention_shape *s = &c->shape;
    if (case_plan_is_grouped(plan)) {
        share_heads(plan, s->batch, s->key_tokens * s->dim, c->k);
        share_heads(plan, s->batch, s->key_tokens * s->value_dim, c->v);
    }
    if (given->q)
        c->q = given->q;
    if (given->q && c->k)
        c->k = given->k;
    if (given->v && s->value_dim == given->shape.value_dim)
        c->v = given->v;
    if (given->reference.padding && c->choice.padding) {
        c->key_mask = given->key_mask;
        c->query_mask = given->query_mask;
    }
}

attention_case case_plan_make(const case_plan *plan, const case_point *point, atn_operator op,
                              int variant)
{
    attention_choice choice = choose(plan, point, op, variant);
    attention_case c = attention_case_make(&choice);
    bool soft = op == ATN_SOFT || op == ATN_SOFTPP;
    if (soft && c.reference.sampling.height < LEAST_ROWS && c.shape.tokens > LEAST_ROWS) {
        attention_case_free(&c);
        choice.sampling = ATN_SAMPLING_WINDOW;
        c = attention_case_make(&choice);
    }
    use_given(plan, &c);
    c.reference.storage = ATN_STORAGE_NATIVE;
    c.reference.dtype = ATN_F64;
    c.reference.sampling.count = c.reference.sampling.steps = 0; /* for other samplings */
    if (plan->s->scale != ATN_SCALE_HEAD) {
        c.reference.scale = plan->s->scale;
        c.reference.scale_value = plan->s->scale_value;
    }
    if (plan->s->distance != ATN_DISTANCE_DIRECT)
        c.reference.distance = plan->s->distance;
    return c;
}

const char *case_plan_misfit(const case_plan *plan, const case_point *point,
                             const attention_case *c)
{
    attention_choice asked = choose(plan, point, c->choice.op, c->choice.variant);
    bool keys = case_plan_is_grouped(plan) || plan->given.c.k;
    bool landmarks = asked.op == ATN_SOFT || asked.op == ATN_SOFTPP || asked.op == ATN_LINFORMER ||
                     asked.op == ATN_NYSTROMFORMER;
    if (!landmarks && point->of[AXIS_M] != plan->values[AXIS_M][0])
        return "it has no landmarks, and is there once";
    if (asked.padding && !c->choice.padding)
        return "it takes no padding masks";
    if (asked.causal && !c->choice.causal)
        return "it has no causal form";
    if (keys && !c->k)
        return "it takes no keys, K = Q";
    if (asked.shape.key_tokens > 0 && asked.shape.key_tokens != c->shape.key_tokens)
        return "it takes as many keys as tokens";
    if (asked.shape.value_dim != c->shape.value_dim)
        return "its values are as wide as its tokens";
    return NULL;
}
