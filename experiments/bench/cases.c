/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/xsmm.h"
#include "common/report.h"
#include "cost/operators.h"
#include "train/model.h"

/* SOFT-Tiny's first stage: 2 heads of 32 channels. */
enum { HEADS = 2, DIM = 32, LSH_CHUNK = 49, LSH_ROUNDS = 8 };

/* ---- Defaults where the command line selects nothing; lists end with 0 ---- */

/* n = (28, 56, 112, 256)^2 */
static const int64_t usual_tokens[EFFORT_COUNT][4] = {
    [EFFORT_QUICK] = {784}, [EFFORT_DEFAULT] = {3136, 12544}, [EFFORT_FULL] = {3136, 12544, 65536}};
static const int64_t usual_batches[EFFORT_COUNT][2][2] = {
    [EFFORT_QUICK] = {[ATN_CPU] = {1}, [ATN_CUDA] = {8}},
    [EFFORT_DEFAULT] = {[ATN_CPU] = {8}, [ATN_CUDA] = {64}},
    [EFFORT_FULL] = {[ATN_CPU] = {8}, [ATN_CUDA] = {64}}};
static const int64_t usual_landmarks[2] = {49};
/* Batches: one matrix, one matrix for each multiprocessor of a large device, and four times as
 * many. */
static const int64_t usual_matrices[EFFORT_COUNT][4] = {
    [EFFORT_QUICK] = {1, 132}, [EFFORT_DEFAULT] = {1, 132, 528}, [EFFORT_FULL] = {1, 132, 528}};
static const int64_t usual_sizes[EFFORT_COUNT][4] = {
    [EFFORT_QUICK] = {49, 128}, [EFFORT_DEFAULT] = {49, 128, 256}, [EFFORT_FULL] = {49, 128, 256}};
/* The largest sum of m^3 over a batch on the CPU. Larger batches are left out unless --m and
 * --batch name them. */
static const double most_cubes[EFFORT_COUNT] = {
    [EFFORT_QUICK] = 2e7, [EFFORT_DEFAULT] = 3e8, [EFFORT_FULL] = 1e10};
static const atn_inverse_method usual_inverses[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_CHEBYSHEV_2,
                                                    ATN_INVERSE_CHOLESKY,
                                                    ATN_INVERSE_PIVOTED_CHOLESKY};
enum { USUAL_INVERSES = sizeof usual_inverses / sizeof *usual_inverses };
/* f64 only with --full; tf32 and f16 only for work on matrices. */
static const atn_dtype usual_dtypes[2][ATN_DTYPE_COUNT] = {
    [ATN_CPU] = {ATN_F32, ATN_F64}, [ATN_CUDA] = {ATN_F32, ATN_TF32, ATN_BF16, ATN_F16, ATN_F64}};

static integer_list given_or(const integer_list *given, const int64_t *usual, int most)
{
    integer_list list = *given;
    if (list.count > 0)
        return list;
    list.items = (int64_t *)usual; /* only read */
    while (list.count < most && usual[list.count] > 0)
        list.count++;
    return list;
}

/* can: an operator's capabilities; 0 for what is no operator. */
static int list_dtypes(const program_options *s, bool matrices, unsigned can,
                       atn_dtype dtypes[ATN_DTYPE_COUNT])
{
    int count = 0;
    for (int i = 0; s->dtypes_given && i < s->dtype_count; i++)
        if (s->device == ATN_CUDA || s->dtypes[i] < ATN_CPU_DTYPE_COUNT || can & ATN_CAN_CPU_BF16)
            dtypes[count++] = s->dtypes[i];
    if (s->dtypes_given)
        return count;
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

int bench_threads(const program_options *s, int64_t most, int threads[])
{
    const integer_list *given = &s->thread_counts;
    const int64_t usual[] = {s->device == ATN_CUDA ? s->threads : 1, s->threads};
    int all = given->count > 0 ? given->count : usual[0] == usual[1] ? 1 : 2, count = 0;
    const int64_t *items = given->count > 0 ? given->items : usual;
    for (int i = 0; i < all; i++)
        if (items[i] <= most || i == 0)
            threads[count++] = (int)items[i];
    return count;
}

/* ---- The list ---- */

/* Adds a case. The memory doubles at 1, 2, 4, ... cases. */
static void add(bench_list *list, const bench_case *c)
{
    if ((list->count & (list->count - 1)) == 0)
        list->cases = must_resize(list->cases, list->count ? 2 * (size_t)list->count : 1,
                                  sizeof *list->cases);
    list->cases[list->count++] = *c;
}

/* Ends a group: all cases since the last one, if there are any. */
static void end_group(bench_list *list)
{
    if (list->count == (list->groups ? list->ends[list->groups - 1] : 0))
        return;
    if ((list->groups & (list->groups - 1)) == 0)
        list->ends = must_resize(list->ends, list->groups ? 2 * (size_t)list->groups : 1,
                                 sizeof *list->ends);
    list->ends[list->groups++] = list->count;
}

/* Adds a case for each number of threads, up to the number `most` that have work. */
static void add_threads(bench_list *list, const program_options *s, int64_t most, bench_case c)
{
    int *threads = must_allocate((size_t)s->thread_counts.count + 2, sizeof *threads);
    int count = bench_threads(s, most, threads);
    for (int i = 0; i < count; i++) {
        c.threads = threads[i];
        add(list, &c);
    }
    free(threads);
}

void bench_list_free(bench_list *list)
{
    free(list->cases);
    free(list->ends);
    *list = (bench_list){0};
}

const bench_case *bench_group(const bench_list *list, int64_t group, int64_t *count)
{
    int64_t first = group ? list->ends[group - 1] : 0;
    *count = list->ends[group] - first;
    return &list->cases[first];
}

/* ---- Operators ---- */

static void add_directions(bench_list *list, const program_options *s, bench_case c)
{
    c.work = BENCH_FORWARD;
    add_threads(list, s, INT64_MAX, c);
    c.work = BENCH_BACKWARD;
    if (atn_operator_get(c.op)->capabilities & ATN_CAN_BACKWARD &&
        (s->device == ATN_CUDA || c.dtype < ATN_CPU_DTYPE_COUNT))
        add_threads(list, s, INT64_MAX, c);
}

/* Adds all forms of the passes to the group, where the operator has all of them. */
static void add_passes(bench_list *list, const program_options *s, bench_case c)
{
    enum { FUSED_MOST = 64 };
    bool on_tensor_cores = c.dtype == ATN_BF16 || c.dtype == ATN_F16 || c.dtype == ATN_TF32;
    if (s->device != ATN_CUDA || !on_tensor_cores || c.landmarks > FUSED_MOST)
        return;
    c.work = BENCH_FORWARD;
    for (int passes = ATN_SOFT_AUTO + 1; passes < ATN_SOFT_PASSES_COUNT; passes++) {
        c.passes = (atn_soft_passes)passes;
        add_threads(list, s, INT64_MAX, c);
    }
}

/* Whether its inverse can be chosen. */
static bool has_inverse(const bench_case *c)
{
    return bench_is_inverse(c) ||
           (bench_is_attention(c) && (c->op == ATN_SOFT || c->op == ATN_SOFTPP));
}

/* Adds the published inverse, and the fastest iteration. */
static void add_inverses_of(bench_list *list, const program_options *s, bench_case c)
{
    c.work = BENCH_FORWARD;
    c.inverse = atn_attention_variant(c.op, c.variant, ATN_F32).inverse.method;
    add_directions(list, s, c);
    if (!has_inverse(&c))
        return;
    add_passes(list, s, c);
    if (c.inverse != ATN_INVERSE_CHEBYSHEV_2) {
        c.inverse = ATN_INVERSE_CHEBYSHEV_2;
        add_directions(list, s, c);
        add_passes(list, s, c);
    }
}

/* Adds a group for each shape, with all types. */
static void add_variant(bench_list *list, const program_options *s, bench_case c)
{
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    int dtype_count = list_dtypes(s, c.op == ATN_SOFT || c.op == ATN_SOFTPP,
                                  atn_operator_get(c.op)->capabilities, dtypes);
    integer_list tokens = given_or(&s->tokens, usual_tokens[s->effort], 4);
    integer_list batches = given_or(&s->batches, usual_batches[s->effort][s->device], 1);
    integer_list landmarks = given_or(&s->landmarks, usual_landmarks, 1);
    bool has_landmarks = cost_has_landmarks(c.op);
    for (int b = 0; b < batches.count; b++)
        for (int n = 0; n < tokens.count; n++)
            for (int m = 0; m < (has_landmarks ? landmarks.count : 1); m++) {
                c.batch = batches.items[b];
                c.tokens = tokens.items[n];
                c.landmarks = has_landmarks ? landmarks.items[m] : 0;
                for (int t = 0; t < dtype_count && c.landmarks <= c.tokens; t++) {
                    c.dtype = dtypes[t];
                    add_inverses_of(list, s, c);
                }
                end_group(list);
            }
}

/* Whether the options select a variant. An operator's name alone means its first variant. */
static bool is_wanted(const program_options *s, const atn_operator_info *info, int variant)
{
    char *name = must_format("%s/%s", info->name, info->variants[variant].name);
    bool wanted = s->operators.count == 0 && variant == 0;
    for (int i = 0; i < s->operators.count; i++)
        wanted |= (variant == 0 && strcmp(s->operators.items[i], info->name) == 0) ||
                  strcmp(s->operators.items[i], name) == 0;
    free(name);
    return wanted;
}

static void add_operators(bench_list *list, const program_options *s)
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

/* ---- Steps of training ---- */

/* They are in f32 alone. */
static void add_training(bench_list *list, const program_options *s)
{
    enum { BATCH = 32 }; /* that of attnum train */
    bool wanted = !s->dtypes_given;
    for (int i = 0; i < s->dtype_count; i++)
        wanted |= s->dtypes[i] == ATN_F32;
    if (!wanted)
        return;
    static const char *const quick[] = {"softmax", NULL};
    const char *const *usual = s->effort == EFFORT_QUICK ? quick : model_usual;
    const char *const *names = s->operators.count ? s->operators.items : usual;
    for (int i = 0; s->operators.count ? i < s->operators.count : names[i] != NULL; i++) {
        model_shape shape;
        if (!model_defaults(names[i], &shape))
            continue;
        int64_t grid = shape.side / shape.patch;
        bench_case c = {.work = BENCH_TRAINING,
                        .dtype = ATN_F32,
                        .op = shape.attention->op,
                        .variant = shape.variant,
                        .batch = BATCH,
                        .heads = shape.heads,
                        .tokens = grid * grid,
                        .landmarks = cost_has_landmarks(shape.attention->op) ? shape.landmarks : 0,
                        .dim = shape.width / shape.heads};
        add_threads(list, s, INT64_MAX, c);
        end_group(list);
    }
}

/* ---- Inverses ---- */

static bool wants_inverse(const program_options *s, atn_inverse_method method)
{
    bool wanted = false;
    for (int i = 0; !s->variants.count && i < USUAL_INVERSES; i++)
        wanted |= usual_inverses[i] == method;
    for (int i = 0; i < s->variants.count; i++)
        wanted |= strcmp(s->variants.items[i], atn_inverse_name(method)) == 0;
    return wanted;
}

/* Adds a batch with every method. On the CPU the group also has the published steps through
 * OpenBLAS, and X W, for which a factor need not be inverted. */
static void add_methods(bench_list *list, const program_options *s, bench_case c)
{
    bool on_cpu = s->device == ATN_CPU;
    if (on_cpu) {
        bench_case newton = c;
        newton.work = BENCH_SOLVE;
        newton.maker = BENCH_OPENBLAS;
        newton.inverse = ATN_INVERSE_NR_PAPER;
        add_threads(list, s, c.batch, newton);
    }
    for (int method = 0; method < ATN_INVERSE_COUNT; method++) {
        c.inverse = (atn_inverse_method)method;
        c.work = BENCH_SOLVE;
        if (wants_inverse(s, c.inverse) && on_cpu)
            add_threads(list, s, c.batch, c);
        c.interval_known = c.inverse == ATN_INVERSE_CHEBYSHEV_2;
        if (wants_inverse(s, c.inverse) && on_cpu && c.interval_known && c.batch == 1)
            add_threads(list, s, c.batch, c);
        c.interval_known = false;
        c.work = BENCH_INVERSE;
        if (wants_inverse(s, c.inverse))
            add_threads(list, s, on_cpu ? c.batch : INT64_MAX, c);
    }
    end_group(list);
}

static bool is_too_much(const program_options *s, const bench_case *c)
{
    double cubes = (double)c->batch * pow((double)c->landmarks, 3);
    bool named = s->batches.count > 0 && s->landmarks.count > 0;
    return s->device == ATN_CPU && !named && c->batch > 1 && cubes > most_cubes[s->effort];
}

static void add_inverses(bench_list *list, const program_options *s)
{
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    int dtype_count = list_dtypes(s, true, 0, dtypes);
    integer_list batches = given_or(&s->batches, usual_matrices[s->effort], 4);
    integer_list sizes = given_or(&s->landmarks, usual_sizes[s->effort], 4);
    for (int m = 0; m < sizes.count; m++)
        for (int b = 0; b < batches.count; b++)
            for (int t = 0; t < dtype_count; t++) {
                bench_case c = {.heads = 1,
                                .landmarks = sizes.items[m],
                                .batch = batches.items[b],
                                .dtype = dtypes[t]};
                bool is_memory_type = c.dtype == ATN_BF16 || c.dtype == ATN_F16;
                if ((!is_memory_type || s->dtypes_given) /* computed as f32 */
                    && !is_too_much(s, &c))
                    add_methods(list, s, c);
            }
}

/* ---- Parts of operators, on the CPU ---- */

static void add_makers(bench_list *list, const program_options *s, int64_t threads, bench_case c,
                       int count, const bench_maker *makers)
{
    for (int i = 0; i < count; i++) {
        c.maker = makers[i];
        add_threads(list, s, threads, c);
    }
}

static void add_kernels(bench_list *list, const program_options *s)
{
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    int dtype_count = list_dtypes(s, true, 0, dtypes);
    integer_list tokens = given_or(&s->tokens, usual_tokens[EFFORT_QUICK], 4);
    integer_list landmarks = given_or(&s->landmarks, usual_landmarks, 1);
    static const bench_maker libm[] = {BENCH_LIBM}, ours[] = {BENCH_OURS};
    for (int n = 0; n < tokens.count; n++)
        for (int m = 0; m < landmarks.count; m++)
            for (int t = 0; t < dtype_count; t++) {
                bench_case c = {.work = BENCH_KERNEL,
                                .dtype = dtypes[t],
                                .batch = 1,
                                .heads = HEADS,
                                .tokens = tokens.items[n],
                                .landmarks = landmarks.items[m],
                                .dim = DIM};
                c.distance = ATN_DISTANCE_EXPANDED;
                add_makers(list, s, INT64_MAX, c, 1, libm);
                add_makers(list, s, INT64_MAX, c, 1, ours);
                c.distance = ATN_DISTANCE_DIRECT;
                add_makers(list, s, INT64_MAX, c, 1, ours);
                end_group(list);
            }
}

/* Adds the products in a step of an iteration, and those for a block of tokens: Q L^T, P^T V, P
 * W. */
static void add_gemms(bench_list *list, const program_options *s)
{
    enum { BLOCK = 128, M = 0 };
    static const struct {
        int64_t rows, cols, inner; /* M: m */
        bool transpose_a, transpose_b;
    } shapes[] = {{M, M, M, false, false},
                  {BLOCK, M, DIM, false, true},
                  {M, DIM, BLOCK, true, false},
                  {BLOCK, DIM, M, false, false}};
    static const bench_maker makers[] = {BENCH_OPENBLAS, BENCH_OURS, BENCH_LIBXSMM};
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    int dtype_count = list_dtypes(s, true, 0, dtypes);
    integer_list sizes = given_or(&s->landmarks, usual_sizes[s->effort], 4);
    for (int m = 0; m < sizes.count; m++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int t = 0; t < dtype_count; t++) {
                bench_case c = {.work = BENCH_GEMM, .dtype = dtypes[t], .batch = 1, .heads = 1};
                c.tokens = shapes[i].rows != M ? shapes[i].rows : sizes.items[m];
                c.landmarks = shapes[i].cols != M ? shapes[i].cols : sizes.items[m];
                c.dim = shapes[i].inner != M ? shapes[i].inner : sizes.items[m];
                c.transpose_a = shapes[i].transpose_a;
                c.transpose_b = shapes[i].transpose_b;
                add_makers(list, s, 1, c, xsmm_found() ? 3 : 2, makers);
                end_group(list);
            }
}

/* Adds exponentials of few enough numbers for each thread to stay in its first-level cache. */
static void add_exps(bench_list *list, const program_options *s)
{
    enum { NUMBERS = 2048 };
    static const bench_maker makers[] = {BENCH_LIBM, BENCH_OURS};
    atn_dtype dtypes[ATN_DTYPE_COUNT];
    int dtype_count = list_dtypes(s, true, 0, dtypes);
    for (int t = 0; t < dtype_count; t++) {
        bench_case c = {.work = BENCH_EXP, .dtype = dtypes[t], .tokens = NUMBERS};
        add_makers(list, s, INT64_MAX, c, 2, makers);
        end_group(list);
    }
}

/* ---- All cases ---- */

static void add_rates(bench_list *list, const program_options *s)
{
    add_threads(list, s, INT64_MAX, (bench_case){.work = BENCH_COPY});
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++)
        for (int work = BENCH_ARITHMETIC; work <= BENCH_EXPONENTIALS; work++)
            if (work == BENCH_ARITHMETIC || s->device == ATN_CPU)
                add_threads(list, s, INT64_MAX,
                            (bench_case){.work = (bench_work)work, .dtype = (atn_dtype)dtype});
    end_group(list);
}

/* The subjects: those that the command names, or all; with --operator only operators, with
 * --variant only inverses. */
static const struct {
    const char *name;
    void (*add)(bench_list *list, const program_options *s);
    bool with_operator, with_variant; /* whether the option keeps the subject */
    bool on_cuda;
} subjects[] = {
    {"operators", add_operators, true, false, true},
    {"inverses", add_inverses, false, true, true},
    {"kernel", add_kernels, false, false, false},
    {"gemm", add_gemms, false, false, false},
    {"exp", add_exps, false, false, false},
    {"training", add_training, false, false, false},
};

static bool wants_subject(const program_options *s, int i)
{
    bool wanted = (!s->operators.count && !s->variants.count) ||
                  (s->operators.count && subjects[i].with_operator) ||
                  (s->variants.count && subjects[i].with_variant);
    if (s->subjects.count)
        wanted = false;
    for (int j = 0; j < s->subjects.count; j++)
        wanted |= strcmp(s->subjects.items[j], subjects[i].name) == 0;
    return wanted && (s->device == ATN_CPU || subjects[i].on_cuda);
}

bench_list bench_cases(const program_options *s)
{
    bench_list list = {0};
    add_rates(&list, s);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (wants_subject(s, (int)i))
            subjects[i].add(&list, s);
    return list;
}

/* ---- A case ---- */

#define BENCH_NAME(code, name, description) [code] = name,
static const char *const work_names[] = {BENCH_WORK_LIST(BENCH_NAME)};
static const char *const maker_names[] = {BENCH_MAKER_LIST(BENCH_NAME)};
#undef BENCH_NAME
#define BENCH_NAME(code, column) [code] = column,
static const char *const key_columns[] = {BENCH_KEY_LIST(BENCH_NAME)};
#undef BENCH_NAME

bool bench_is_attention(const bench_case *c)
{
    return c->work == BENCH_FORWARD || c->work == BENCH_BACKWARD;
}

bool bench_is_inverse(const bench_case *c)
{
    return c->work == BENCH_INVERSE || c->work == BENCH_SOLVE;
}

bool bench_is_rate(const bench_case *c)
{
    return c->work <= BENCH_EXPONENTIALS;
}

bool bench_is_hot(const bench_case *c, atn_device device)
{
    return !bench_is_attention(c) && !(bench_is_inverse(c) && device != ATN_CPU);
}

static bool has_operator(const bench_case *c)
{
    return bench_is_attention(c) || c->work == BENCH_TRAINING;
}

static const char *operator_text(const bench_case *c)
{
    static const char *const products[2][2] = {{"AB", "ABt"}, {"AtB", "AtBt"}};
    if (c->work == BENCH_GEMM)
        return products[c->transpose_a][c->transpose_b];
    return has_operator(c) ? atn_operator_get(c->op)->name : "";
}

static const char *variant_text(const bench_case *c)
{
    if (has_operator(c))
        return atn_operator_get(c->op)->variants[c->variant].name;
    if (c->work == BENCH_KERNEL && c->maker == BENCH_OURS)
        return atn_distance_name(c->distance);
    return c->work >= BENCH_KERNEL ? maker_names[c->maker] : "";
}

static const char *inverse_text(const bench_case *c)
{
    if (!has_inverse(c))
        return "";
    if (c->maker == BENCH_OPENBLAS)
        return "newton-openblas";
    return c->interval_known ? "chebyshev-2 of a known interval" : atn_inverse_name(c->inverse);
}

static atn_distance distance_of(const bench_case *c)
{
    return c->passes == ATN_SOFT_AUTO ? atn_attention_variant(c->op, c->variant, ATN_F32).distance
                                      : ATN_DISTANCE_CLAMPED;
}

void bench_key_text(const bench_case *c, bench_key key, char text[BENCH_TEXT])
{
    bool soft = bench_is_attention(c) && has_inverse(c);
    const char *const texts[BENCH_KEY_COUNT] = {
        [BENCH_KEY_WORK] = work_names[c->work],
        [BENCH_KEY_OPERATOR] = operator_text(c),
        [BENCH_KEY_VARIANT] = variant_text(c),
        [BENCH_KEY_INVERSE] = inverse_text(c),
        [BENCH_KEY_PASSES] = soft ? atn_soft_passes_name(c->passes) : "",
        [BENCH_KEY_DISTANCE] = soft ? atn_distance_name(distance_of(c)) : "",
        [BENCH_KEY_DTYPE] = c->work == BENCH_COPY ? "" : atn_dtype_name(c->dtype),
    };
    const int64_t numbers[BENCH_KEY_COUNT] = {
        [BENCH_KEY_BATCH] = c->batch,   [BENCH_KEY_HEADS] = c->heads,
        [BENCH_KEY_TOKENS] = c->tokens, [BENCH_KEY_LANDMARKS] = c->landmarks,
        [BENCH_KEY_DIM] = c->dim,       [BENCH_KEY_THREADS] = c->threads,
    };
    if (texts[key])
        snprintf(text, BENCH_TEXT, "%s", texts[key]);
    else if (numbers[key] > 0)
        snprintf(text, BENCH_TEXT, "%" PRId64, numbers[key]);
    else
        *text = '\0';
}

/* The largest divisor of n that is at most LSH_CHUNK. */
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
        .optional =
            !bare &&
            c->op == ATN_LSH, /* the buckets are given, so that rounding cannot change them */
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
    if (has_inverse(c)) {
        if (problem.desc.inverse.method != c->inverse)
            problem.desc.inverse = atn_inverse_defaults(c->inverse);
        problem.reference.inverse = problem.desc.inverse;
        problem.desc.passes = c->passes;
        problem.desc.distance = problem.reference.distance = distance_of(c);
    }
    return problem;
}

/* "forward soft paper nr-paper auto direct f32 batch=8 heads=2 n=3136 m=49 d=32 threads=1" */
void bench_describe(const bench_case *c, char *buffer, size_t size)
{
    size_t used = 0;
    *buffer = '\0';
    for (int key = 0; key < BENCH_KEY_COUNT; key++) {
        char text[BENCH_TEXT];
        bench_key_text(c, (bench_key)key, text);
        if (*text && used < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s%s%s", used ? " " : "",
                                     key >= BENCH_KEY_BATCH ? key_columns[key] : "",
                                     key >= BENCH_KEY_BATCH ? "=" : "", text);
    }
}
