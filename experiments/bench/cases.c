/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/names.h"
#include "common/report.h"
#include "cost/operators.h"

/* SOFT-Tiny's first stage: 2 heads of 32 channels. */
enum { HEADS = 2, DIM = 32, LSH_CHUNK = 49, LSH_ROUNDS = 8 };

/* ---- What is timed where the command line does not say; lists end with 0 ---- */

/* n = (28, 56, 112, 256)^2 */
static const int64_t usual_tokens[EFFORT_COUNT][4] = {
    [EFFORT_QUICK] = {784}, [EFFORT_DEFAULT] = {3136, 12544}, [EFFORT_FULL] = {3136, 12544, 65536}};
static const int64_t usual_batches[EFFORT_COUNT][2][2] = {
    [EFFORT_QUICK] = {[ATN_CPU] = {1}, [ATN_CUDA] = {8}},
    [EFFORT_DEFAULT] = {[ATN_CPU] = {8}, [ATN_CUDA] = {64}},
    [EFFORT_FULL] = {[ATN_CPU] = {8}, [ATN_CUDA] = {64}}};
static const int64_t usual_landmarks[2] = {49};
/* One matrix, one for each multiprocessor of a large device, and four. */
static const int64_t usual_matrices[EFFORT_COUNT][4] = {
    [EFFORT_QUICK] = {1, 132}, [EFFORT_DEFAULT] = {1, 132, 528}, [EFFORT_FULL] = {1, 132, 528}};
static const int64_t usual_sizes[EFFORT_COUNT][4] = {
    [EFFORT_QUICK] = {49}, [EFFORT_DEFAULT] = {49, 64, 128}, [EFFORT_FULL] = {49, 64, 128}};
static const atn_inverse_method usual_inverses[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_CHEBYSHEV_2,
                                                    ATN_INVERSE_CHOLESKY,
                                                    ATN_INVERSE_PIVOTED_CHOLESKY};
enum { USUAL_INVERSES = sizeof usual_inverses / sizeof *usual_inverses };
/* f64 where all is asked for; tf32 and f16 where matrices are what is worked on. */
static const atn_dtype usual_dtypes[2][ATN_DTYPE_COUNT] = {
    [ATN_CPU] = {ATN_F32, ATN_F64}, [ATN_CUDA] = {ATN_F32, ATN_TF32, ATN_BF16, ATN_F16, ATN_F64}};

static integer_list given_or(const integer_list *given, const int64_t *usual, int most)
{
    integer_list list = *given;
    if (list.count > 0)
        return list;
    list.items = (int64_t *)usual; /* not written to */
    while (list.count < most && usual[list.count] > 0)
        list.count++;
    return list;
}

static int list_dtypes(const settings *s, bool matrices, atn_dtype dtypes[ATN_DTYPE_COUNT])
{
    int count = 0;
    if (s->dtypes_given) {
        memcpy(dtypes, s->dtypes, (size_t)s->dtype_count * sizeof *dtypes);
        return s->dtype_count;
    }
    for (int i = 0; i < (s->device == ATN_CUDA ? ATN_DTYPE_COUNT : ATN_CPU_DTYPE_COUNT); i++) {
        atn_dtype dtype = usual_dtypes[s->device][i];
        bool wanted = dtype == ATN_F64                        ? s->effort == EFFORT_FULL
                      : dtype == ATN_TF32 || dtype == ATN_F16 ? matrices
                                                              : true;
        if (wanted)
            dtypes[count++] = dtype;
    }
    return count;
}

/* ---- The list ---- */

typedef struct {
    bench_case *items;
    int64_t count;
} case_list;

static void add(case_list *list, const bench_case *c)
{
    if ((list->count & (list->count - 1)) == 0) /* room doubles at 0, 1, 2, 4, ... */
        list->items = must_resize(list->items, list->count ? 2 * (size_t)list->count : 1,
                                  sizeof *list->items);
    list->items[list->count++] = *c;
}

static void add_directions(case_list *list, bench_case c)
{
    c.work = BENCH_FORWARD;
    add(list, &c);
    c.work = BENCH_BACKWARD;
    if (atn_operator_get(c.op)->capabilities & ATN_CAN_BACKWARD)
        add(list, &c);
}

/* The forms of the passes beside each other, where all of them are. */
static void add_passes(case_list *list, const settings *s, bench_case c)
{
    enum { FUSED_MOST = 64 };
    bool on_tensor_cores = c.dtype == ATN_BF16 || c.dtype == ATN_F16 || c.dtype == ATN_TF32;
    if (s->device != ATN_CUDA || !on_tensor_cores || c.landmarks > FUSED_MOST)
        return;
    c.work = BENCH_FORWARD;
    for (int passes = ATN_SOFT_AUTO + 1; passes < ATN_SOFT_PASSES_COUNT; passes++) {
        c.passes = (atn_soft_passes)passes;
        add(list, &c);
    }
}

/* The published inverse, and the fastest iteration. */
static void add_inverses_of(case_list *list, const settings *s, bench_case c)
{
    c.work = BENCH_FORWARD;
    c.inverse = atn_attention_variant(c.op, c.variant, ATN_F32).inverse.method;
    add_directions(list, c);
    if (!bench_has_inverse(&c))
        return;
    add_passes(list, s, c);
    if (c.inverse != ATN_INVERSE_CHEBYSHEV_2) {
        c.inverse = ATN_INVERSE_CHEBYSHEV_2;
        add_directions(list, c);
        add_passes(list, s, c);
    }
}

static void add_variant(case_list *list, const settings *s, bench_case c)
{
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    int dtype_count = list_dtypes(s, c.op == ATN_SOFT || c.op == ATN_SOFTPP, dtypes);
    integer_list tokens = given_or(&s->tokens, usual_tokens[s->effort], 4);
    integer_list batches = given_or(&s->batches, usual_batches[s->effort][s->device], 1);
    integer_list landmarks = given_or(&s->landmarks, usual_landmarks, 1);
    bool has_landmarks = cost_has_landmarks(c.op);
    for (int b = 0; b < batches.count; b++)
        for (int n = 0; n < tokens.count; n++)
            for (int m = 0; m < (has_landmarks ? landmarks.count : 1); m++)
                for (int t = 0; t < dtype_count; t++) {
                    c.batch = batches.items[b];
                    c.tokens = tokens.items[n];
                    c.landmarks = has_landmarks ? landmarks.items[m] : 0;
                    c.dtype = dtypes[t];
                    if (c.landmarks <= c.tokens)
                        add_inverses_of(list, s, c);
                }
}

/* An operator's name alone stands for its first variant. */
static bool is_wanted(const settings *s, const atn_operator_info *info, int variant)
{
    char *name = must_format("%s/%s", info->name, info->variants[variant].name);
    bool wanted = s->operators.count == 0 && variant == 0;
    for (int i = 0; i < s->operators.count; i++)
        wanted |= (variant == 0 && strcmp(s->operators.items[i], info->name) == 0) ||
                  strcmp(s->operators.items[i], name) == 0;
    free(name);
    return wanted;
}

static void add_operators(case_list *list, const settings *s)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        unsigned can = s->device == ATN_CUDA ? ATN_CAN_CUDA : ATN_CAN_CPU;
        for (int v = 0; v < info->variant_count; v++) {
            bench_case c = {.op = info->op, .variant = v, .heads = HEADS, .dim = DIM};
            if (is_wanted(s, info, v) && info->capabilities & can)
                add_variant(list, s, c);
        }
    }
}

static void add_batches(case_list *list, const settings *s, bench_case c)
{
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    int dtype_count = list_dtypes(s, true, dtypes);
    integer_list batches = given_or(&s->batches, usual_matrices[s->effort], 4);
    integer_list sizes = given_or(&s->landmarks, usual_sizes[s->effort], 4);
    for (int m = 0; m < sizes.count; m++)
        for (int b = 0; b < batches.count; b++)
            for (int t = 0; t < dtype_count; t++) {
                bool is_memory_type = dtypes[t] == ATN_BF16 || dtypes[t] == ATN_F16;
                c.landmarks = sizes.items[m];
                c.batch = batches.items[b];
                c.dtype = dtypes[t];
                if (!is_memory_type || s->dtypes_given) /* computed as f32 */
                    add(list, &c);
            }
}

static void add_inverses(case_list *list, const settings *s)
{
    bench_case c = {.work = BENCH_INVERSE, .heads = 1};
    for (int i = 0; i < (s->variants.count ? ATN_INVERSE_COUNT : USUAL_INVERSES); i++) {
        c.inverse = s->variants.count ? (atn_inverse_method)i : usual_inverses[i];
        bool wanted = !s->variants.count;
        for (int j = 0; j < s->variants.count; j++)
            wanted |= strcmp(s->variants.items[j], atn_inverse_name(c.inverse)) == 0;
        if (wanted)
            add_batches(list, s, c);
    }
}

bench_case *bench_cases(const settings *s, int64_t *count)
{
    case_list list = {0};
    add(&list, &(bench_case){.work = BENCH_COPY});
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        add(&list, &(bench_case){.work = BENCH_ARITHMETIC, .dtype = (atn_dtype)dtype});
    if (s->operators.count || !s->variants.count)
        add_operators(&list, s);
    if (s->variants.count || !s->operators.count)
        add_inverses(&list, s);
    *count = list.count;
    return list.items;
}

/* ---- A case ---- */

#define BENCH_NAME(code, name, description) [code] = name,
static const char *const work_names[] = {BENCH_WORK_LIST(BENCH_NAME)};
#undef BENCH_NAME

const char *bench_work_name(bench_work work)
{
    return work_names[work];
}

bool bench_is_attention(const bench_case *c)
{
    return c->work == BENCH_FORWARD || c->work == BENCH_BACKWARD;
}

bool bench_has_inverse(const bench_case *c)
{
    return c->work == BENCH_INVERSE ||
           (bench_is_attention(c) && (c->op == ATN_SOFT || c->op == ATN_SOFTPP));
}

atn_distance bench_distance(const bench_case *c)
{
    return c->passes == ATN_SOFT_AUTO ? atn_attention_variant(c->op, c->variant, ATN_F32).distance
                                      : ATN_DISTANCE_CLAMPED;
}

/* What divides n and is nearest below a chunk. */
static int64_t chunk_of(int64_t tokens)
{
    int64_t chunk = tokens < LSH_CHUNK ? tokens : LSH_CHUNK;
    while (tokens % chunk != 0)
        chunk--;
    return chunk;
}

attention_case bench_problem(const bench_case *c, atn_dtype dtype, int64_t batch, int64_t tokens,
                             bool bare)
{
    bool windows = c->landmarks > 0 && tokens % c->landmarks == 0;
    int64_t chunk = chunk_of(tokens), buckets = tokens / chunk / 2 * 2;
    attention_choice choice = {
        .op = c->op,
        .variant = c->variant,
        .dtype = dtype,
        .shape = {batch, c->heads, tokens, c->dim, c->dim, 0},
        .cross = true,
        .optional = !bare && c->op == ATN_LSH, /* buckets: rounding must not choose others */
        .sampling = windows ? ATN_SAMPLING_WINDOW : ATN_SAMPLING_INDICES,
        .seed = 1,
        .bare = bare,
        .landmarks = c->landmarks,
        .features = (int64_t)((double)c->dim * log((double)c->dim)),
        .chunk = chunk,
        .rounds = LSH_ROUNDS,
        .buckets = buckets > 2 ? buckets : 2,
    };
    attention_case problem = attention_case_make(&choice);
    if (bench_has_inverse(c)) {
        if (problem.desc.inverse.method != c->inverse)
            problem.desc.inverse = atn_inverse_defaults(c->inverse);
        problem.reference.inverse = problem.desc.inverse;
        problem.desc.passes = c->passes;
        problem.desc.distance = problem.reference.distance = bench_distance(c);
    }
    return problem;
}

void bench_describe(const bench_case *c, char *buffer, size_t size)
{
    char what[80] = "";
    if (bench_is_attention(c)) {
        const atn_operator_info *info = atn_operator_get(c->op);
        snprintf(what, sizeof what, " %s/%s h=%" PRId64 " n=%" PRId64 " d=%" PRId64, info->name,
                 info->variants[c->variant].name, c->heads, c->tokens, c->dim);
    }
    char *inverse = bench_has_inverse(c)
                        ? must_format(" %s m=%" PRId64, atn_inverse_name(c->inverse), c->landmarks)
                        : must_format("%s", "");
    char *batch = c->batch ? must_format(" b=%" PRId64, c->batch) : must_format("%s", "");
    const char *passes = c->passes ? atn_soft_passes_name(c->passes) : "";
    snprintf(buffer, size, "%s%s%s%s%s%s %s", bench_work_name(c->work), what, inverse,
             *passes ? " " : "", passes, batch,
             c->work == BENCH_COPY ? "" : atn_dtype_name(c->dtype));
    free(batch);
    free(inverse);
}
