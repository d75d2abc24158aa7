/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <certified.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "report.h"

enum { MAX_ITEMS = 1000000 };

/* A row of the table below. parse stores a value (null for options without an argument) and returns
 * null, or what is wrong with it, to be freed. */
typedef struct option option;
struct option {
    const char *name, *argument; /* argument is null for a flag */
    unsigned used;               /* USES_..., 0 for what every verb has */
    const char *help;
    char *(*parse)(program_options *s, const option *o, const char *value);
    size_t offset;       /* of the field in program_options */
    int64_t least, most; /* integers */
    bool aside;          /* no result depends on it */
};

/* ---- Lists of integers ---- */

static bool add_integer(integer_list *list, int64_t value)
{
    if (list->count == MAX_ITEMS)
        return false;
    if ((list->count & (list->count - 1)) == 0) /* room doubles at 0, 1, 2, 4, ... */
        list->items =
            must_resize(list->items, list->count ? 2 * (size_t)list->count : 1, sizeof(int64_t));
    list->items[list->count++] = value;
    return true;
}

/* Digits with an optional minus; moves *text past them. */
static bool read_integer(const char **text, int64_t *value)
{
    bool negative = **text == '-';
    *text += negative;
    if (**text < '0' || **text > '9')
        return false;
    for (*value = 0; **text >= '0' && **text <= '9'; ++*text) {
        int digit = **text - '0';
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, negative ? -digit : digit, value))
            return false;
    }
    return true;
}

static bool add_steps(integer_list *list, int64_t start, int64_t end, int64_t step)
{
    if (step == 0 || (step > 0) != (end >= start))
        return false;
    for (int64_t value = start; step > 0 ? value <= end : value >= end;) {
        if (!add_integer(list, value))
            return false;
        if (__builtin_add_overflow(value, step, &value))
            break;
    }
    return true;
}

static bool add_factors(integer_list *list, int64_t start, int64_t end, int64_t factor)
{
    if (factor < 2 || start < 1 || end < start)
        return false;
    for (int64_t value = start; value <= end;) {
        if (!add_integer(list, value))
            return false;
        if (__builtin_mul_overflow(value, factor, &value))
            break;
    }
    return true;
}

/* One of "a", "start:end", "start:end:step", "start:end:xfactor"; moves *text past it. */
static bool read_item(const char **text, integer_list *list)
{
    int64_t start, end, step = 1;
    if (!read_integer(text, &start))
        return false;
    if (**text != ':')
        return add_integer(list, start);
    ++*text;
    if (!read_integer(text, &end))
        return false;
    if (**text != ':')
        return add_steps(list, start, end, 1);
    ++*text;
    bool factor = **text == 'x';
    *text += factor;
    if (!read_integer(text, &step))
        return false;
    return factor ? add_factors(list, start, end, step) : add_steps(list, start, end, step);
}

bool parse_integer_list(const char *text, integer_list *list)
{
    int before = list->count;
    while (read_item(&text, list)) {
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            break;
    }
    list->count = before;
    return false;
}

static int compare_integers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* An item given twice would make every row of it twice. */
static char *check_integers(const integer_list *list, int64_t least, int64_t most)
{
    char *wrong = NULL;
    int64_t *sorted = must_allocate((size_t)list->count, sizeof *sorted);
    memcpy(sorted, list->items, (size_t)list->count * sizeof *sorted);
    qsort(sorted, (size_t)list->count, sizeof *sorted, compare_integers);
    for (int i = 0; i < list->count && !wrong; i++) {
        if (sorted[i] < least || sorted[i] > most)
            wrong =
                must_format("%" PRId64 " is outside %" PRId64 "..%" PRId64, sorted[i], least, most);
        else if (i && sorted[i] == sorted[i - 1])
            wrong = must_format("%" PRId64 " is given twice", sorted[i]);
    }
    free(sorted);
    return wrong;
}

static char *parse_integers(program_options *s, const option *o, const char *value)
{
    integer_list *list = (integer_list *)((char *)s + o->offset);
    if (!parse_integer_list(value, list))
        return must_format("expected integers %" PRId64 "..%" PRId64
                           " as a,b or start:end or start:end:step or start:end:xfactor, "
                           "at most %d of them",
                           o->least, o->most, (int)MAX_ITEMS);
    return check_integers(list, o->least, o->most);
}

/* ---- Single numbers ---- */

static char *read_bounded(const option *o, const char *value, int64_t *result)
{
    if (read_integer(&value, result) && !*value && *result >= o->least && *result <= o->most)
        return NULL;
    return must_format("expected an integer %" PRId64 "..%" PRId64, o->least, o->most);
}

static char *parse_integer(program_options *s, const option *o, const char *value)
{
    return read_bounded(o, value, (int64_t *)((char *)s + o->offset));
}

static char *parse_threads(program_options *s, const option *o, const char *value)
{
    int64_t threads = 0;
    char *wrong = read_bounded(o, value, &threads);
    s->threads = (int)threads;
    return wrong;
}

static bool read_positive(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    bool plain = strspn(text, "0123456789.eE+-") == strlen(text); /* no "nan", "inf", hex, blanks */
    return plain && end != text && *end == '\0' && isfinite(*value) && *value > 0;
}

static char *parse_alpha(program_options *s, const option *o, const char *value)
{
    return read_positive(value, &s->alpha) ? NULL : must_format("expected a number > 0");
}

/* "AxB" and nothing else. */
static bool read_pair(const char *text, int64_t *first, int64_t *second)
{
    return read_integer(&text, first) && *text++ == 'x' && read_integer(&text, second) && !*text;
}

static char *parse_grid(program_options *s, const option *o, const char *value)
{
    int64_t height, width, tokens;
    if (read_pair(value, &height, &width) && height >= 1 && width >= 1 &&
        !__builtin_mul_overflow(height, width, &tokens) && tokens <= o->most) {
        s->grid_height = height;
        s->grid_width = width;
        return NULL;
    }
    return must_format("expected HEIGHTxWIDTH, such as 56x56, at most %" PRId64 " tokens", o->most);
}

/* "I/N", 1 <= I <= N. */
static char *parse_shard(program_options *s, const option *o, const char *value)
{
    const char *rest = value;
    if (read_integer(&rest, &s->shard) && *rest++ == '/' && read_integer(&rest, &s->shards) &&
        !*rest && s->shard >= 1 && s->shard <= s->shards && s->shards <= o->most)
        return NULL;
    return must_format("expected I/N with 1 <= I <= N <= %" PRId64, o->most);
}

static char *parse_query(program_options *s, const option *o, const char *value)
{
    int64_t row, col;
    if (read_pair(value, &row, &col) && row >= 0 && col >= 0) {
        s->query_row = row;
        s->query_col = col;
        return NULL;
    }
    return must_format("expected ROWxCOL, both from 0, such as 14x14");
}

/* ---- Names ---- */

static bool add_text(text_list *list, const char *text, size_t length)
{
    for (int i = 0; i < list->count; i++)
        if (strlen(list->items[i]) == length && memcmp(list->items[i], text, length) == 0)
            return false;
    list->items = must_resize(list->items, (size_t)list->count + 1, sizeof *list->items);
    list->items[list->count++] = must_format("%.*s", (int)length, text);
    return true;
}

/* Splits at commas and appends. Returns what is wrong, or null. */
static char *split(const char *value, text_list *list)
{
    for (;; value++) {
        size_t length = strcspn(value, ",");
        if (length == 0 || length > INT32_MAX)
            return must_format("expected names with commas between them");
        if (!add_text(list, value, length))
            return must_format("%.*s is given twice", (int)length, value);
        value += length;
        if (!*value)
            return NULL;
    }
}

static void free_texts(text_list *list)
{
    for (int i = 0; i < list->count; i++)
        free((char *)list->items[i]);
    free(list->items);
}

#define SECOND(code, name, description) name,
static const char *const inverse_names[] = {ATN_INVERSE_LIST(SECOND) NULL};
static const char *const distance_names[] = {ATN_DISTANCE_LIST(SECOND) NULL};
static const char *const scale_names[] = {ATN_SCALE_LIST(SECOND) NULL};
static const char *const storage_names[] = {ATN_STORAGE_LIST(SECOND) NULL};
static const char *const isa_names[] = {ATN_ISA_LIST(SECOND) NULL};
static const char *const sampling_names[] = {SAMPLING_LIST(SECOND) NULL};
#undef SECOND
#define CASE_MASK_NAME(code, name) name,
static const char *const mask_names[] = {CASE_MASK_LIST(CASE_MASK_NAME) NULL};
#undef CASE_MASK_NAME
#define REFERENCE_CHOICE_NAME(code, name) name,
static const char *const reference_names[] = {REFERENCE_CHOICE_LIST(REFERENCE_CHOICE_NAME) NULL};
#undef REFERENCE_CHOICE_NAME
static const char *const format_names[] = {"table", "csv", "json", NULL};
static const char *const device_names[] = {[ATN_CPU] = "cpu", [ATN_CUDA] = "cuda", NULL};

static char *parse_inputs(program_options *s, const option *o, const char *value)
{
    return split(value, &s->inputs);
}

static char *parse_subjects(program_options *s, const option *o, const char *value)
{
    return split(value, &s->subjects);
}

static char *parse_variants(program_options *s, const option *o, const char *value)
{
    int before = s->variants.count;
    char *wrong = split(value, &s->variants);
    for (int i = before; i < s->variants.count && !wrong; i++)
        if (names_find(inverse_names, s->variants.items[i]) < 0)
            wrong = names_expected(inverse_names, s->variants.items[i]);
    return wrong;
}

/* "soft/paper"; to be freed. */
static char *variant_name(const atn_operator_info *info, int variant)
{
    return must_format("%s/%s", info->name, info->variants[variant].name);
}

/* What is wrong with the variant that text names, or null. */
static char *check_variant(const atn_operator_info *info, const char *text)
{
    char **names = must_allocate((size_t)info->variant_count + 1, sizeof *names);
    for (int i = 0; i < info->variant_count; i++)
        names[i] = variant_name(info, i);
    char *wrong = names_find((const char *const *)names, text) < 0
                      ? names_expected((const char *const *)names, text)
                      : NULL;
    for (int i = 0; i < info->variant_count; i++)
        free(names[i]);
    free(names);
    return wrong;
}

/* What is wrong with NAME or NAME/VARIANT, or null. */
static char *check_operator(const char *text)
{
    const char *names[ATN_OPERATOR_COUNT + 1] = {0};
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        names[op] = atn_operator_get((atn_operator)op)->name;
    size_t length = strcspn(text, "/");
    char *name = must_format("%.*s", (int)length, text), *wrong = NULL;
    int op = names_find(names, name);
    if (op < 0)
        wrong = names_expected(names, name);
    else if (text[length])
        wrong = check_variant(atn_operator_get((atn_operator)op), text);
    free(name);
    return wrong;
}

/* Whether the name of an operator, or of a variant, holds the variant named `variant`. */
static bool holds_variant(const char *name, const char *variant)
{
    size_t length = strlen(name);
    return strncmp(name, variant, length) == 0 && (!variant[length] || variant[length] == '/');
}

static char *parse_operators(program_options *s, const option *o, const char *value)
{
    int before = s->operators.count;
    char *wrong = split(value, &s->operators);
    for (int i = before; i < s->operators.count && !wrong; i++) {
        const char *text = s->operators.items[i];
        wrong = check_operator(text);
        for (int j = 0; j < i && !wrong; j++)
            if (holds_variant(s->operators.items[j], text) ||
                holds_variant(text, s->operators.items[j]))
                wrong = must_format("%s is given twice, beside %s", text, s->operators.items[j]);
    }
    return wrong;
}

bool options_take_variant(const program_options *s, const atn_operator_info *info, int variant)
{
    char *name = variant_name(info, variant);
    bool taken = s->operators.count == 0;
    for (int i = 0; i < s->operators.count; i++)
        taken |= holds_variant(s->operators.items[i], name);
    free(name);
    return taken;
}

/* Names of one list, each once: what they stand for goes to found, `count` of them so far. Returns
 * what is wrong, or null. */
static char *parse_names(const char *value, const char *const *names, int *count, int *found)
{
    text_list given = {0};
    char *wrong = split(value, &given);
    for (int i = 0; i < given.count && !wrong; i++) {
        int name = names_find(names, given.items[i]);
        if (name < 0)
            wrong = names_expected(names, given.items[i]);
        for (int j = 0; j < *count && !wrong; j++)
            if (found[j] == name)
                wrong = must_format("%s is given twice", given.items[i]);
        if (!wrong)
            found[(*count)++] = name;
    }
    free_texts(&given);
    return wrong;
}

static char *parse_storages(program_options *s, const option *o, const char *value)
{
    int found[ATN_STORAGE_COUNT];
    for (int i = 0; i < s->storage_count; i++)
        found[i] = s->storages[i];
    char *wrong = parse_names(value, storage_names, &s->storage_count, found);
    for (int i = 0; i < s->storage_count; i++)
        s->storages[i] = (atn_storage)found[i];
    return wrong;
}

static char *parse_samplings(program_options *s, const option *o, const char *value)
{
    int found[SAMPLING_COUNT];
    for (int i = 0; i < s->sampling_count; i++)
        found[i] = s->samplings[i];
    char *wrong = parse_names(value, sampling_names, &s->sampling_count, found);
    for (int i = 0; i < s->sampling_count; i++)
        s->samplings[i] = (sampling_kind)found[i];
    return wrong;
}

const char *case_mask_name(case_mask mask)
{
    return mask_names[mask];
}

static char *parse_masks(program_options *s, const option *o, const char *value)
{
    int found[CASE_MASK_COUNT], count = s->cases.masks.count, before = count;
    for (int i = 0; i < count; i++)
        found[i] = (int)s->cases.masks.items[i];
    char *wrong = parse_names(value, mask_names, &count, found);
    for (int i = before; i < count; i++)
        add_integer(&s->cases.masks, found[i]);
    return wrong;
}

static char *add_dtype(program_options *s, const char *name)
{
    const char *names[ATN_DTYPE_COUNT + 1] = {0};
    for (int i = 0; i < ATN_DTYPE_COUNT; i++)
        names[i] = atn_dtype_name((atn_dtype)i);
    int found = names_find(names, name);
    if (found < 0)
        return names_expected(names, name);
    for (int i = 0; i < s->dtype_count; i++)
        if (s->dtypes[i] == (atn_dtype)found)
            return must_format("%s is given twice", name);
    s->dtypes[s->dtype_count++] = (atn_dtype)found;
    return NULL;
}

static char *parse_dtypes(program_options *s, const option *o, const char *value)
{
    text_list given = {0};
    char *wrong = split(value, &given);
    for (int i = 0; i < given.count && !wrong; i++)
        wrong = add_dtype(s, given.items[i]);
    free_texts(&given);
    return wrong;
}

static char *parse_device(program_options *s, const option *o, const char *value)
{
    int found = names_find(device_names, value);
    s->device = (atn_device)found;
    return found < 0 ? names_expected(device_names, value) : NULL;
}

static char *parse_isa(program_options *s, const option *o, const char *value)
{
    int found = names_find(isa_names, value);
    s->isa = (atn_isa)found;
    return found < 0 ? names_expected(isa_names, value) : NULL;
}

static char *parse_distance(program_options *s, const option *o, const char *value)
{
    int found = names_find(distance_names, value);
    s->distance = (atn_distance)found;
    return found < 0 ? names_expected(distance_names, value) : NULL;
}

static char *parse_layout(program_options *s, const option *o, const char *value)
{
    return layout_parse(value, &s->layout);
}

static char *parse_scale(program_options *s, const option *o, const char *value)
{
    int found = names_find(scale_names, value);
    if (found < 0 || found == ATN_SCALE_VALUE) {
        s->scale = ATN_SCALE_VALUE;
        return read_positive(value, &s->scale_value)
                   ? NULL
                   : must_format("expected head, embed or a number > 0");
    }
    s->scale = (atn_scale)found;
    return NULL;
}

static char *parse_path(program_options *s, const option *o, const char *value)
{
    *(const char **)((char *)s + o->offset) = value;
    return *value ? NULL : must_format("expected a %s", o->argument);
}

static char *parse_reason(program_options *s, const option *o, const char *value)
{
    s->update = value;
    return value[strspn(value, " \t\r\n")] ? NULL : must_format("expected a reason");
}

/* NAME=VALUE, ...; what names there are and what they may be is for those who read them. */
/* NAME=VALUE, each NAME once. */
static char *parse_named(program_options *s, const option *o, const char *value)
{
    text_list *list = (text_list *)((char *)s + o->offset);
    int before = list->count;
    char *wrong = split(value, list);
    for (int i = before; i < list->count && !wrong; i++) {
        const char *text = list->items[i];
        size_t length = strcspn(text, "=");
        if (!length || !text[length] || !text[length + 1])
            wrong = must_format("expected NAME=%s",
                                o->offset == offsetof(program_options, check.gradients) ? "FILE.npy"
                                                                                        : "VALUE");
        for (int j = 0; j < i && !wrong; j++)
            if (strncmp(list->items[j], text, length + 1) == 0)
                wrong = must_format("%.*s is given twice", (int)length, text);
    }
    return wrong;
}

static char *parse_format(program_options *s, const option *o, const char *value)
{
    int found = names_find(format_names, value);
    s->format = (table_format)found;
    return found < 0 ? names_expected(format_names, value) : NULL;
}

static char *parse_reference(program_options *s, const option *o, const char *value)
{
    int found = names_find(reference_names, value);
    s->check.reference = (reference_choice)found;
    return found < 0 ? names_expected(reference_names, value) : NULL;
}

/* ---- Flags ---- */

static char *set_effort(program_options *s, effort wanted)
{
    if (s->effort != EFFORT_DEFAULT && s->effort != wanted)
        return must_format("--quick and --full exclude each other");
    s->effort = wanted;
    return NULL;
}

static char *parse_quick(program_options *s, const option *o, const char *value)
{
    return set_effort(s, EFFORT_QUICK);
}

static char *parse_full(program_options *s, const option *o, const char *value)
{
    return set_effort(s, EFFORT_FULL);
}

static char *parse_flag(program_options *s, const option *o, const char *value)
{
    *(bool *)((char *)s + o->offset) = true;
    return NULL;
}

/* ---- The options ---- */

#define FIELD(name) .offset = offsetof(program_options, name)

static const option options[] = {
    {"input", "LIST", USES_INPUT, "NAME[:PARAMETER] (see attnum list inputs) or FILE.npy",
     .parse = parse_inputs},
    {"grid", "HxW", USES_GRID | USES_CHECK, "the grid that the tokens of FILE.npy stand on",
     .parse = parse_grid, .most = INT32_MAX},
    {"operator", "LIST", USES_OPERATOR, "NAME[/VARIANT] (see attnum list variants; default all)",
     .parse = parse_operators},
    {"subject", "LIST", USES_BENCH, "what is timed, as the words before the options name it",
     .parse = parse_subjects},
    {"op", "LIST", USES_BENCH, "the same as --operator", .parse = parse_operators},
    {"n", "LIST", USES_TOKENS | USES_EMIT_CASE, "numbers of tokens", .parse = parse_integers,
     FIELD(tokens), .least = 1, .most = 1000000},
    {"m", "LIST", USES_LANDMARKS | USES_EMIT_CASE, "numbers of landmarks", .parse = parse_integers,
     FIELD(landmarks), .least = 1, .most = 32768},
    {"batch", "LIST", USES_BATCH | USES_EMIT_CASE,
     "numbers of sequences, or of matrices, in a call", .parse = parse_integers, FIELD(batches),
     .least = 1, .most = 1000000},
    {"stage", "LIST", USES_STAGE, "stages 1, 2, 3: patches of 4, 8, 16 pixels",
     .parse = parse_integers, FIELD(stages), .least = 1, .most = 3},
    {"samples", "N", USES_SAMPLES, "samples drawn per input and seed", .parse = parse_integer,
     FIELD(samples), .least = 1, .most = 1000000},
    {"variant", "LIST", USES_VARIANT, "inverses, by name (see attnum list inverses)",
     .parse = parse_variants},
    {"alpha", "X", USES_ALPHA, "the start alpha of --variant nr", .parse = parse_alpha},
    {"iterations", "T", USES_ITERATIONS, "Newton-Raphson steps", .parse = parse_integer,
     FIELD(iterations), .least = 0, .most = 100000},
    {"scale", "S", USES_SCALE,
     "the kernel's s: head, 1/(2 sqrt(d)); embed, 1/(2 sqrt(heads d)); or a number (default head)",
     .parse = parse_scale},
    {"sampling", "LIST", USES_SAMPLING,
     "how landmarks come from tokens: pool, published, published-centred (see attnum list "
     "samplings)",
     .parse = parse_samplings},
    {"sampling", "NAME", USES_INSPECT,
     "whose safety the conclusion is about: pool, window, random, first, kmeans, leverage, "
     "rpcholesky, greedy, given (default the first there is)",
     .parse = parse_path, FIELD(asked)},
    {"skip-tokens", "N", USES_INSPECT, "leave out the first N tokens of every head: class tokens",
     .parse = parse_integer, FIELD(skip_tokens), .least = 0, .most = 1000000},
    {"distance", "NAME", USES_DISTANCE, "direct, expanded or clamped (default direct)",
     .parse = parse_distance},
    {"certify", "M", USES_CERTIFY,
     "enclose what f64 cannot resolve of matrices up to M x M (0: of none)", .parse = parse_integer,
     FIELD(certify), .least = 0, .most = REF_CERTIFY_MOST},
    {"query", "ROWxCOL", USES_QUERY, "the patch that attends, from 0x0 (default the centre)",
     .parse = parse_query},
    {"dtype", "LIST", USES_DTYPE, "f32, f64; where a device computes in them tf32, bf16, f16",
     .parse = parse_dtypes},
    {"storage", "LIST", USES_STORAGE,
     "native: the dtypes themselves; bf16, f16, tf32: f32 with every array rounded to it",
     .parse = parse_storages},
    {"device", "NAME", USES_DEVICE,
     "cpu, or cuda: what the library computes runs on the GPU (default cpu)",
     .parse = parse_device},
    {"emit-tokens", "FOLDER", USES_BENCH,
     "write the tokens that are timed to FOLDER as .npy files, and stop", .parse = parse_path,
     FIELD(emit), .aside = true},
    {"heads", "N", USES_INSPECT, "the most heads looked at, evenly spread (default 8)",
     .parse = parse_integer, FIELD(heads), .least = 1, .most = 1000000},
    {"heads", "N", USES_EMIT_CASE, "heads of the tokens of emitted cases (default 2)",
     .parse = parse_integer, FIELD(heads), .least = 1, .most = 1000000},
    {"kv-heads", "N", USES_EMIT_CASE,
     "heads of their keys and values, each for heads/N of the tokens' (default all)",
     .parse = parse_integer, FIELD(cases.key_heads), .least = 1, .most = 1000000},
    {"d", "LIST", USES_EMIT_CASE, "widths of their tokens (default 16)", .parse = parse_integers,
     FIELD(cases.widths), .least = 1, .most = 4096},
    {"value-width", "N", USES_EMIT_CASE, "the width of their values (default that of the tokens)",
     .parse = parse_integer, FIELD(cases.value_width), .least = 1, .most = 4096},
    {"key-tokens", "N", USES_EMIT_CASE, "the number of their keys (default that of the tokens)",
     .parse = parse_integer, FIELD(cases.key_tokens), .least = 1, .most = 1000000},
    {"masks", "LIST", USES_EMIT_CASE,
     "their masks: none, padding, causal, both (default none); operators without are left out",
     .parse = parse_masks},
    {"html", "FILE", USES_INSPECT | USES_CHECK,
     "write a report to FILE, one page that needs nothing else", .parse = parse_path, FIELD(html),
     .aside = true},
    {"format", "NAME", USES_FORMAT,
     "table, csv or json: text for people, or the published tables alone (default table)",
     .parse = parse_format, .aside = true},
    {"baseline", "FILE.csv", USES_KEPT, "the rows that are kept (default golden/accuracy.csv)",
     .parse = parse_path, FIELD(baseline)},
    {"against", "FILE.csv", USES_KEPT, "another run's regress.csv in place of the baseline",
     .parse = parse_path, FIELD(against)},
    {"update", "REASON", USES_KEPT, "keep this run's rows as the baseline, and why",
     .parse = parse_reason},
    {"layout", "NAME", USES_CHECK | USES_EMIT_CASE | USES_INSPECT,
     "the order of dimensions in files (see attnum list layouts; default bhnd, hnd or nd)",
     .parse = parse_layout},
#define CHECK_FILE(name, field, and_in, help)                                                      \
    {                                                                                              \
        name, "FILE.npy", USES_CHECK | (and_in), help, .parse = parse_path, FIELD(check.field)     \
    }
    CHECK_FILE("tokens", tokens, USES_EMIT_CASE, "Q, .npy: n x d, or h x n x d, or b x h x n x d"),
    CHECK_FILE("keys", keys, USES_EMIT_CASE, "K (default: K = Q)"),
    CHECK_FILE("values", values, USES_EMIT_CASE, "V"),
    CHECK_FILE("output", output, 0, "what your kernel made of it; it may hold NaN"),
    CHECK_FILE("landmarks", landmarks, USES_INSPECT,
               "soft, softpp: L itself, m x d per head, not a sampling"),
    CHECK_FILE("mask", mask, USES_EMIT_CASE,
               "which keys are there: 1 or 0 as f2, f4 or f8, batch x keys"),
    CHECK_FILE("query-mask", query_mask, USES_EMIT_CASE,
               "the same of queries (default: all, or the keys' if K = Q)"),
    CHECK_FILE("grad-output", grad_output, 0, "dY, which your gradients are for"),
#undef CHECK_FILE
    {"gradient", "LIST", USES_CHECK,
     "your gradients, NAME=FILE.npy: tokens, keys, values, or a parameter that has one (gamma, ...)",
     .parse = parse_named, FIELD(check.gradients)},
    {"param", "LIST", USES_CHECK | USES_EMIT_CASE,
     "NAME=VALUE, or NAME=FILE.npy (see --operator NAME --help)", .parse = parse_named,
     FIELD(check.parameters)},
    {"reference", "NAME", USES_CHECK,
     "what is right: auto, exact or f64 (default auto: exact where that takes seconds)",
     .parse = parse_reference},
    {"mistake", "FILE", USES_CHECK,
     "your own mistakes to try, lines NAME: PARAMETER=VALUE ..., scale=NUMBER or output=FILE.npy",
     .parse = parse_path, FIELD(check.mistakes)},
    {"emit-case", "FOLDER", USES_EMIT_CASE,
     "write inputs and answers of every variant (or --operator) to FOLDER, and stop",
     .parse = parse_path, FIELD(emit_case)},
    {"seed", "LIST", USES_SEED | USES_EMIT_CASE, "seeds of everything drawn at random (default 1)",
     .parse = parse_integers, FIELD(seeds), .least = 0, .most = INT64_MAX},
    {"quick", NULL, USES_SWEEP, "a small version, for a first look", .parse = parse_quick},
    {"full", NULL, USES_SWEEP, "the papers' scale", .parse = parse_full},
    {"threads", "LIST", USES_BENCH, "threads of what is timed (default 1 and all processors)",
     .parse = parse_integers, FIELD(thread_counts), .least = 1, .most = 1024},
    {"threads", "N", USES_THREADS,
     "points run at a time; no result depends on it (default: all processors)",
     .parse = parse_threads, .least = 1, .most = 1024, .aside = true},
    {"isa", "NAME", USES_THREADS | USES_BENCH,
     "the CPU's instructions: auto, base, avx2 or avx512 (default what ATTNUM_ISA says, or auto)",
     .parse = parse_isa},
    {"out", "FOLDER", USES_OUT, "where results go (claims: nowhere by default; others: results)",
     .parse = parse_path, FIELD(out), .aside = true},
    {"dry-run", NULL, USES_DRY_RUN, "print the points and stop", .parse = parse_flag,
     FIELD(dry_run), .aside = true},
    {"resume", NULL, USES_SWEEP, "go on where a run of the same options was stopped",
     .parse = parse_flag, FIELD(resume), .aside = true},
    {"shard", "I/N", USES_SHARD, "run the I-th of N parts of the points; attnum merge joins them",
     .parse = parse_shard, .most = SHARDS_MOST, .aside = true},
    {"help", NULL, 0, "print this and stop", .parse = parse_flag, FIELD(help), .aside = true},
};

enum { OPTION_COUNT = sizeof options / sizeof *options };

static bool is_used(const option *o, unsigned used)
{
    return !o->used || (o->used & used);
}

/* The option a word such as "--seed=1" names, or null: of two of that name the one that is used.
 * *value is what follows "=", or null. */
static const option *find_option(const char *word, unsigned used, const char **value)
{
    const option *found = NULL;
    if (strcmp(word, "-h") == 0)
        word = "--help";
    size_t length = strcspn(word, "=");
    *value = word[length] ? word + length + 1 : NULL;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (length == strlen(options[i].name) + 2 && word[0] == '-' && word[1] == '-' &&
            memcmp(word + 2, options[i].name, length - 2) == 0 && (!found || !is_used(found, used)))
            found = &options[i];
    return found;
}

static int report_unknown(const char *word, bool known, unsigned used)
{
    const char *names[OPTION_COUNT + 1] = {0};
    int count = 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (is_used(&options[i], used) &&
            !(count && strcmp(names[count - 1], options[i].name) == 0)) /* --threads */
            names[count++] = options[i].name;
    char *name = must_format("%.*s", (int)strcspn(word, "="), word);
    char *expected = names_expected(names, name + strspn(name, "-"));
    report_error("%s: %s; %s", name, known ? "not an option here" : "unknown option", expected);
    free(name);
    free(expected);
    return EXIT_USAGE;
}

/* Keeps the option as one word. */
static void keep_option(program_options *s, const option *o, const char *value)
{
    text_list *list = &s->kept;
    list->items = must_resize(list->items, (size_t)list->count + 1, sizeof *list->items);
    list->items[list->count++] =
        must_format("--%s%s%s", o->name, value ? "=" : "", value ? value : "");
}

static bool is_list(const option *o)
{
    return o->argument && strcmp(o->argument, "LIST") == 0;
}

/* Parses the option at argv[*i] and moves *i to its last word. given: whether each option has been
 * there before. */
static int parse_option(program_options *s, unsigned used, int argc, char **argv, int *i,
                        bool given[OPTION_COUNT])
{
    const char *word = argv[*i], *value;
    const option *o = find_option(word, used, &value);
    if (!o || !is_used(o, used))
        return report_unknown(word, o != NULL, used);
    if (!o->argument && value) {
        report_error("--%s: takes no value, given '%s'", o->name, value);
        return EXIT_USAGE;
    }
    if (o->argument && !value) {
        if (*i + 1 == argc) {
            report_error("--%s: expected a value: %s, %s", o->name, o->argument, o->help);
            return EXIT_USAGE;
        }
        value = argv[++*i];
    }
    if (given[o - options] && !is_list(o)) {
        report_error("--%s: given twice; expected once, only lists may be repeated", o->name);
        return EXIT_USAGE;
    }
    given[o - options] = true;
    if (!o->aside)
        keep_option(s, o, value);
    char *wrong = o->parse(s, o, value);
    if (!wrong)
        return EXIT_PASS;
    if (value)
        report_error("--%s '%s': %s", o->name, value, wrong);
    else
        report_error("--%s: %s", o->name, wrong);
    free(wrong);
    return EXIT_USAGE;
}

bool options_names_file(const char *input)
{
    size_t length = strlen(input);
    return length >= 4 && strcmp(input + length - 4, ".npy") == 0;
}

/* Whether the library can compute with what --isa or ATTNUM_ISA says. */
static int check_isa(const program_options *s)
{
    const char *reason, *given = getenv("ATTNUM_ISA");
    atn_status status = atn_isa_choose(s->isa, NULL, &reason);
    if (status == ATN_OK)
        return EXIT_PASS;
    if (s->isa != ATN_ISA_AUTO)
        report_error("--isa %s: %s", isa_names[s->isa], reason);
    else if (status == ATN_ERR_DEVICE)
        report_error("ATTNUM_ISA '%s': %s", given, reason);
    else {
        char *expected = names_expected(isa_names, given);
        report_error("ATTNUM_ISA '%s': %s", given, expected);
        free(expected);
    }
    return status == ATN_ERR_DEVICE ? EXIT_ENVIRONMENT : EXIT_USAGE;
}

/* What only shows once all options are known. here: what they name must be on this machine. */
static int check_together(const program_options *s, unsigned used, bool here)
{
    bool nr = false, file = false;
    const char *reason, *narrow = NULL;
    for (int i = 0; i < s->dtype_count; i++)
        if (s->dtypes[i] >= ATN_CPU_DTYPE_COUNT)
            narrow = atn_dtype_name(s->dtypes[i]);
    for (int i = 0; i < s->variants.count; i++)
        nr |= strcmp(s->variants.items[i], "nr") == 0;
    for (int i = 0; i < s->inputs.count; i++)
        file |= options_names_file(s->inputs.items[i]);
    if (s->alpha > 0 && s->variants.count && !nr)
        report_error("--alpha: only --variant nr takes it");
    else if (s->grid_height && !file && used & USES_INPUT)
        report_error("--grid: only --input FILE.npy takes it");
    else if (s->format != FORMAT_TABLE && (s->dry_run || s->emit || s->emit_case || s->shards))
        report_error("--format %s: %s prints no tables; leave out one of them",
                     format_names[s->format],
                     s->dry_run     ? "--dry-run"
                     : s->shards    ? "--shard"
                     : s->emit_case ? "--emit-case"
                                    : "--emit-tokens");
    else if (narrow && s->device == ATN_CPU && used & USES_DEVICE)
        report_error("--dtype %s: needs --device cuda; on the CPU expected f32 or f64", narrow);
    else if (here && atn_device_count(s->device, &reason) == 0) {
        report_error("--device %s: %s", atn_device_name(s->device), reason);
        return EXIT_ENVIRONMENT;
    } else if (s->certify > 0 && !ref_certify_library()) {
        report_error("--certify %" PRId64 ": this build lacks FLINT and Arb; expected 0",
                     s->certify);
        return EXIT_ENVIRONMENT;
    } else
        return here && used & (USES_THREADS | USES_BENCH) ? check_isa(s) : EXIT_PASS;
    return EXIT_USAGE;
}

/* What `check` takes to judge and what it takes to write cases are two sets of options; those of
 * both say so. */
static int check_purpose(const program_options *s, unsigned used, const bool given[OPTION_COUNT])
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        unsigned purpose = options[i].used & used;
        if (!given[i])
            continue;
        if (s->emit_case && purpose == USES_CHECK)
            report_error("--%s: not with --emit-case, which makes its own", options[i].name);
        else if (!s->emit_case && purpose == USES_EMIT_CASE)
            report_error("--%s: only --emit-case takes it", options[i].name);
        else
            continue;
        return EXIT_USAGE;
    }
    return EXIT_PASS;
}

/* Appends a word as a shell would have to read it. */
static char *quote_word(char *command, const char *word)
{
    bool plain = *word && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789_-+=./,:@%^") == strlen(word);
    char *quoted = must_allocate(strlen(command) + 4 * strlen(word) + 4, 1);
    char *end = quoted + sprintf(quoted, "%s %s", command, plain ? word : "'");
    for (; !plain && *word; word++)
        end += sprintf(end, *word == '\'' ? "'\\''" : "%c", *word);
    if (!plain)
        strcpy(end, "'");
    free(command);
    return quoted;
}

int options_names(int argc, char **argv, const char **names)
{
    int count = 0;
    for (int i = 0; i < argc; i++) {
        const char *value;
        const option *o = find_option(argv[i], ~0u, &value);
        if (argv[i][0] != '-')
            names[count++] = argv[i];
        else if (!o) {
            report_unknown(argv[i], false, ~0u);
            return -1;
        } else if (o->argument && !value)
            i++;
    }
    return count;
}

int options_parse(program_options *s, unsigned used, int argc, char **argv)
{
    return options_parse_verb(s, "run", "results", used | USES_RUN, argc, argv);
}

/* A word among bench's options is what --subject takes. */
static int parse_subject(program_options *s, unsigned used, char *word)
{
    bool given[OPTION_COUNT] = {false};
    char name[] = "--subject", *words[] = {name, word};
    int i = 0;
    return parse_option(s, used, 2, words, &i, given);
}

static int parse_all(program_options *s, unsigned used, bool here, int argc, char **argv)
{
    bool given[OPTION_COUNT] = {false};
    int code = EXIT_PASS;
    for (int i = 0; i < argc; i++)
        s->command = quote_word(s->command, argv[i]);
    for (int i = 0; i < argc && code == EXIT_PASS; i++)
        if (argv[i][0] == '-')
            code = parse_option(s, used, argc, argv, &i, given);
        else if (used & USES_BENCH)
            code = parse_subject(s, used, argv[i]);
    if (code == EXIT_PASS)
        code = check_purpose(s, used, given);
    if (code == EXIT_PASS)
        code = check_together(s, used, here);
    if (code != EXIT_PASS) {
        options_free(s);
        return code;
    }
    if (!s->seeds.count)
        add_integer(&s->seeds, 1);
    s->dtypes_given = s->dtype_count > 0;
    if (!s->dtypes_given)
        for (; s->dtype_count < ATN_CPU_DTYPE_COUNT; s->dtype_count++)
            s->dtypes[s->dtype_count] = (atn_dtype)s->dtype_count;
    return EXIT_PASS;
}

/* What the command line does not say. */
static program_options initial_options(const char *verb, const char *out)
{
    return (program_options){.effort = EFFORT_DEFAULT,
                             .threads = omp_get_max_threads(),
                             .out = out,
                             .iterations = -1,
                             .certify = -1,
                             .scale = ATN_SCALE_HEAD,
                             .distance = ATN_DISTANCE_DIRECT,
                             .query_row = -1,
                             .query_col = -1,
                             .command = must_format("attnum %s", verb)};
}

int options_parse_verb(program_options *s, const char *verb, const char *out, unsigned used,
                       int argc, char **argv)
{
    *s = initial_options(verb, out);
    return parse_all(s, used, true, argc, argv);
}

int options_parse_kept(program_options *s, const char *out, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *value;
        const option *o = find_option(argv[i], ~0u, &value);
        if (o && (o->aside || (o->argument && !value))) {
            report_error("%s: not an option that a run keeps", argv[i]);
            return EXIT_USAGE;
        }
    }
    *s = initial_options("run", out);
    return parse_all(s, ~0u, false, argc, argv);
}

void options_free(program_options *s)
{
    free_texts(&s->inputs);
    free_texts(&s->variants);
    free_texts(&s->operators);
    free_texts(&s->subjects);
    free_texts(&s->kept);
    free_texts(&s->check.gradients);
    free_texts(&s->check.parameters);
    free(s->tokens.items);
    free(s->seeds.items);
    free(s->stages.items);
    free(s->landmarks.items);
    free(s->batches.items);
    free(s->thread_counts.items);
    free(s->cases.widths.items);
    free(s->cases.masks.items);
    free(s->command);
    *s = (program_options){0};
}

/* "--name ARGUMENT"; to be freed. */
static char *usage_of(const option *o)
{
    return must_format("--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
}

void options_help(unsigned used)
{
    int width = 0;
    bool lists = false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < OPTION_COUNT; i++) {
            if (!is_used(&options[i], used))
                continue;
            char *usage = usage_of(&options[i]);
            int length = (int)strlen(usage);
            if (pass)
                printf("  %-*s  %s\n", width, usage, options[i].help);
            width = length > width ? length : width;
            lists |= is_list(&options[i]);
            free(usage);
        }
    if (lists)
        printf("LIST is a,b,...; of integers also start:end, start:end:step and "
               "start:end:xfactor.\n"
               "A LIST option may be repeated and then appends; any other is given once.\n");
}

/* ---- The command of a point ---- */

static void add_option(char **command, bool wanted, const char *name, char *value)
{
    if (wanted)
        *command = quote_word(quote_word(*command, name), value);
    free(value);
}

/* "a,b,..."; to be freed. */
static char *join(int count, const char *const *items)
{
    char *text = must_format("%s", count ? items[0] : "");
    for (int i = 1; i < count; i++) {
        char *longer = must_format("%s,%s", text, items[i]);
        free(text);
        text = longer;
    }
    return text;
}

char *options_replay(const program_options *s, const char *experiment, unsigned used,
                     const options_point *point)
{
    const char *dtypes[ATN_DTYPE_COUNT], *storages[ATN_STORAGE_COUNT];
    for (int i = 0; i < s->dtype_count; i++)
        dtypes[i] = atn_dtype_name(s->dtypes[i]);
    for (int i = 0; i < s->storage_count; i++)
        storages[i] = atn_storage_name(s->storages[i]);
    static const char *const efforts[EFFORT_COUNT] = {
        [EFFORT_QUICK] = "--quick", [EFFORT_FULL] = "--full"};
    char *command = quote_word(must_format("attnum run"), experiment);
    if (point->by_effort && efforts[s->effort])
        command = quote_word(command, efforts[s->effort]);
    if (point->operator)
        add_option(&command, true, "--operator", variant_name(point->operator, point->variant));
    add_option(&command, used & USES_INPUT, "--input", must_format("%s", point->input));
    add_option(&command, options_names_file(point->input) && s->grid_height, "--grid",
               must_format("%" PRId64 "x%" PRId64, s->grid_height, s->grid_width));
    add_option(&command, point->stage > 0, "--stage", must_format("%" PRId64, point->stage));
    add_option(&command, point->tokens > 0, "--n", must_format("%" PRId64, point->tokens));
    add_option(&command, point->landmarks > 0, "--m", must_format("%" PRId64, point->landmarks));
    add_option(&command, used & USES_SAMPLING && point->sampling, "--sampling",
               must_format("%s", point->sampling ? point->sampling : ""));
    add_option(&command, true, "--seed", must_format("%" PRId64, point->seed));
    add_option(&command, used & USES_SAMPLES, "--samples", must_format("%" PRId64, point->samples));
    add_option(&command, used & USES_DTYPE, "--dtype", join(s->dtype_count, dtypes));
    add_option(&command, used & USES_STORAGE && s->storage_count, "--storage",
               join(s->storage_count, storages));
    add_option(&command, used & USES_VARIANT && s->variants.count, "--variant",
               join(s->variants.count, s->variants.items));
    add_option(&command, used & USES_ALPHA && s->alpha > 0, "--alpha",
               must_format("%.17g", s->alpha));
    add_option(&command, used & USES_ITERATIONS && s->iterations >= 0, "--iterations",
               must_format("%" PRId64, s->iterations));
    add_option(&command, used & USES_SCALE && s->scale != ATN_SCALE_HEAD, "--scale",
               s->scale == ATN_SCALE_VALUE ? must_format("%.17g", s->scale_value)
                                           : must_format("%s", scale_names[s->scale]));
    add_option(&command, used & USES_DISTANCE && s->distance != ATN_DISTANCE_DIRECT, "--distance",
               must_format("%s", distance_names[s->distance]));
    add_option(&command, used & USES_CERTIFY && s->certify >= 0, "--certify",
               must_format("%" PRId64, s->certify));
    add_option(&command, used & USES_QUERY && s->query_row >= 0, "--query",
               must_format("%" PRId64 "x%" PRId64, s->query_row, s->query_col));
    add_option(&command, s->isa != ATN_ISA_AUTO, "--isa", must_format("%s", isa_names[s->isa]));
    add_option(&command, true, "--out", must_format("replay"));
    return command;
}

char *options_shard_command(const program_options *s, const char *verb, int64_t shard,
                            int64_t shards, const char *out)
{
    char *command = must_format("attnum %s", verb);
    for (int i = 0; i < s->kept.count; i++)
        command = quote_word(command, s->kept.items[i]);
    add_option(&command, true, "--shard", must_format("%" PRId64 "/%" PRId64, shard, shards));
    add_option(&command, true, "--out", must_format("%s", out));
    return quote_word(command, "--resume");
}

/* ---- The fingerprint ---- */

static void write_texts(FILE *file, const char *name, const text_list *list)
{
    fprintf(file, " %s=", name);
    for (int i = 0; i < list->count; i++)
        fprintf(file, "%s%s", i ? "," : "", list->items[i]);
}

static void write_integers(FILE *file, const char *name, const integer_list *list)
{
    fprintf(file, " %s=", name);
    for (int i = 0; i < list->count; i++)
        fprintf(file, "%s%" PRId64, i ? "," : "", list->items[i]);
}

/* Files without their folders: they may lie elsewhere on another machine, and what they hold is in
 * the fingerprint too. */
static void write_inputs(FILE *file, const text_list *list)
{
    fprintf(file, " input=");
    for (int i = 0; i < list->count; i++) {
        const char *text = list->items[i],
                   *slash = options_names_file(text) ? strrchr(text, '/') : NULL;
        fprintf(file, "%s%s", i ? "," : "", slash ? slash + 1 : text);
    }
}

/* Of the instruction set what was given: another one rounds differently. What auto comes to is the
 * machine's, like BLAS's choice of kernels, so that shards of several machines can be joined. */
void options_fingerprint(const program_options *s, FILE *file)
{
    fprintf(file, " effort=%d", (int)s->effort);
    write_integers(file, "seed", &s->seeds);
    write_inputs(file, &s->inputs);
    fprintf(file, " grid=%" PRId64 "x%" PRId64 " dtype=", s->grid_height, s->grid_width);
    for (int i = 0; i < s->dtype_count; i++)
        fprintf(file, "%s%s", i ? "," : "", atn_dtype_name(s->dtypes[i]));
    fprintf(file, " device=%s isa=%s samples=%" PRId64 " iterations=%" PRId64,
            device_names[s->device], isa_names[s->isa], s->samples, s->iterations);
    write_texts(file, "variant", &s->variants);
    fprintf(file, " alpha=%.17g", s->alpha);
    write_integers(file, "stage", &s->stages);
    write_texts(file, "operator", &s->operators);
    write_integers(file, "n", &s->tokens);
    write_integers(file, "m", &s->landmarks);
    write_integers(file, "batch", &s->batches);
    if (s->thread_counts.count)
        write_integers(file, "threads", &s->thread_counts);
    if (s->subjects.count)
        write_texts(file, "subject", &s->subjects);
    fprintf(file, " storage=");
    for (int i = 0; i < s->storage_count; i++)
        fprintf(file, "%s%s", i ? "," : "", atn_storage_name(s->storages[i]));
    fprintf(file, " sampling=");
    for (int i = 0; i < s->sampling_count; i++)
        fprintf(file, "%s%s", i ? "," : "", sampling_names[s->samplings[i]]);
    fprintf(file, " scale=%s:%.17g distance=%s query=%" PRId64 "x%" PRId64, scale_names[s->scale],
            s->scale_value, distance_names[s->distance], s->query_row, s->query_col);
    const char *library = ref_certify_library();
    fprintf(file, " certify=%" PRId64 ":%s heads=%" PRId64, s->certify, library ? library : "none",
            s->heads);
    if (s->layout.axes)
        fprintf(file, " layout=%s:%" PRId64, s->layout.axes, s->layout.heads);
    if (s->skip_tokens)
        fprintf(file, " skip-tokens=%" PRId64, s->skip_tokens);
    if (s->asked)
        fprintf(file, " asked=%s", s->asked);
    if (s->check.landmarks)
        fprintf(file, " landmarks=given");
}
