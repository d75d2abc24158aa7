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

typedef struct option option;

/* How the values of a kind of option are read, written and freed. parse stores a value (null for a
 * flag) and returns null, or an error message to be freed; write writes the value for the
 * fingerprint, null if it is not part of that; clear is null if nothing is to be freed. */
typedef struct {
    char *(*parse)(program_options *s, const option *o, const char *value);
    void (*write)(const program_options *s, const option *o, FILE *file);
    void (*clear)(program_options *s, const option *o);
} option_kind;

/* What an option is part of. RESULT: of a run's fingerprint and of the options it keeps;
 * WHERE_GIVEN: the same, but of the fingerprint only if it is given; KEPT: only of the options it
 * keeps; ASIDE: of neither, because no result depends on it. */
typedef enum { RESULT, WHERE_GIVEN, KEPT, ASIDE } option_effect;

typedef enum { FOR_ALL, FOR_JUDGING, FOR_CASES } option_purpose;

/* A row of OPTION_LIST. */
struct option {
    const char *name, *argument;
    const option_kind *kind;
    size_t offset; /* of the field */
    option_effect effect;
    const char *help, *manual;
    int64_t least, most, unset;
    const char *const *names;
    size_t count; /* the offset of the number of choices */
    /* Returns an error message for an item of a list, or null. */
    char *(*check)(const option *o, const text_list *list, int item);
    option_purpose purpose;
    char letter; /* -h */
};

static void *field_of(program_options *s, const option *o)
{
    return (char *)s + o->offset;
}

static const void *value_of(const program_options *s, const option *o)
{
    return (const char *)s + o->offset;
}

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

/* Refuses repeated items: they would give every row twice. */
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
    integer_list *list = field_of(s, o);
    if (!parse_integer_list(value, list))
        return must_format("expected integers %" PRId64 "..%" PRId64
                           " as a,b or start:end or start:end:step or start:end:xfactor, "
                           "at most %d of them",
                           o->least, o->most, (int)MAX_ITEMS);
    return check_integers(list, o->least, o->most);
}

static void write_integers(const program_options *s, const option *o, FILE *file)
{
    const integer_list *list = value_of(s, o);
    for (int i = 0; i < list->count; i++)
        fprintf(file, "%s%" PRId64, i ? "," : "", list->items[i]);
}

static void clear_integers(program_options *s, const option *o)
{
    integer_list *list = field_of(s, o);
    free(list->items);
    *list = (integer_list){0};
}

static const option_kind integers_kind = {parse_integers, write_integers, clear_integers};

/* ---- Single numbers ---- */

static char *parse_integer(program_options *s, const option *o, const char *value)
{
    int64_t *field = field_of(s, o);
    if (read_integer(&value, field) && !*value && *field >= o->least && *field <= o->most)
        return NULL;
    return must_format("expected an integer %" PRId64 "..%" PRId64, o->least, o->most);
}

static void write_integer(const program_options *s, const option *o, FILE *file)
{
    fprintf(file, "%" PRId64, *(const int64_t *)value_of(s, o));
}

static const option_kind integer_kind = {parse_integer, write_integer, NULL};

/* Names the library, on which it depends what can be certified. */
static void write_certify(const program_options *s, const option *o, FILE *file)
{
    const char *library = ref_certify_library();
    fprintf(file, "%" PRId64 ":%s", s->certify, library ? library : "none");
}

static const option_kind certify_kind = {parse_integer, write_certify, NULL};

static bool read_positive(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    bool plain = strspn(text, "0123456789.eE+-") == strlen(text); /* no "nan", "inf", hex, blanks */
    return plain && end != text && *end == '\0' && isfinite(*value) && *value > 0;
}

static char *parse_positive(program_options *s, const option *o, const char *value)
{
    return read_positive(value, field_of(s, o)) ? NULL : must_format("expected a number > 0");
}

static void write_positive(const program_options *s, const option *o, FILE *file)
{
    fprintf(file, "%.17g", *(const double *)value_of(s, o));
}

static const option_kind positive_kind = {parse_positive, write_positive, NULL};

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

static void write_grid(const program_options *s, const option *o, FILE *file)
{
    fprintf(file, "%" PRId64 "x%" PRId64, s->grid_height, s->grid_width);
}

static const option_kind grid_kind = {parse_grid, write_grid, NULL};

/* "I/N", 1 <= I <= N. */
static char *parse_shard(program_options *s, const option *o, const char *value)
{
    const char *rest = value;
    if (read_integer(&rest, &s->shard) && *rest++ == '/' && read_integer(&rest, &s->shards) &&
        !*rest && s->shard >= 1 && s->shard <= s->shards && s->shards <= o->most)
        return NULL;
    return must_format("expected I/N with 1 <= I <= N <= %" PRId64, o->most);
}

static const option_kind shard_kind = {parse_shard, NULL, NULL};

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

static void write_query(const program_options *s, const option *o, FILE *file)
{
    fprintf(file, "%" PRId64 "x%" PRId64, s->query_row, s->query_col);
}

static const option_kind query_kind = {parse_query, write_query, NULL};

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

/* Splits at commas and appends. Returns an error message, or null. */
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
    *list = (text_list){0};
}

static char *parse_texts(program_options *s, const option *o, const char *value)
{
    text_list *list = field_of(s, o);
    int before = list->count;
    char *wrong = split(value, list);
    for (int i = before; o->check && i < list->count && !wrong; i++)
        wrong = o->check(o, list, i);
    return wrong;
}

static void write_texts(const program_options *s, const option *o, FILE *file)
{
    const text_list *list = value_of(s, o);
    for (int i = 0; i < list->count; i++)
        fprintf(file, "%s%s", i ? "," : "", list->items[i]);
}

static void clear_texts(program_options *s, const option *o)
{
    free_texts(field_of(s, o));
}

static const option_kind texts_kind = {parse_texts, write_texts, clear_texts};

/* A file without its folders: they may differ on another machine, and the fingerprint has the
 * file's contents, too. */
static const char *without_folders(const char *text)
{
    const char *slash = options_names_file(text) ? strrchr(text, '/') : NULL;
    return slash ? slash + 1 : text;
}

static void write_inputs(const program_options *s, const option *o, FILE *file)
{
    for (int i = 0; i < s->inputs.count; i++)
        fprintf(file, "%s%s", i ? "," : "", without_folders(s->inputs.items[i]));
}

static const option_kind inputs_kind = {parse_texts, write_inputs, clear_texts};

static char *check_name(const option *o, const text_list *list, int item)
{
    const char *text = list->items[item];
    return names_find(o->names, text) < 0 ? names_expected(o->names, text) : NULL;
}

/* "soft/paper"; to be freed. */
static char *variant_name(const atn_operator_info *info, int variant)
{
    return must_format("%s/%s", info->name, info->variants[variant].name);
}

/* The error in the variant that text names, or null. */
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

/* The error in NAME or NAME/VARIANT, or null. */
static char *check_operator_name(const char *text)
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

static char *check_operator(const option *o, const text_list *list, int item)
{
    const char *text = list->items[item];
    char *wrong = check_operator_name(text);
    for (int i = 0; i < item && !wrong; i++)
        if (holds_variant(list->items[i], text) || holds_variant(text, list->items[i]))
            wrong = must_format("%s is given twice, also in %s", text, list->items[i]);
    return wrong;
}

bool options_include_variant(const program_options *s, const atn_operator_info *info, int variant)
{
    char *name = variant_name(info, variant);
    bool taken = s->operators.count == 0;
    for (int i = 0; i < s->operators.count; i++)
        taken |= holds_variant(s->operators.items[i], name);
    free(name);
    return taken;
}

/* NAME=VALUE, each NAME once; the names and values are checked by the code that uses them. */
static char *check_named(const option *o, const text_list *list, int item)
{
    const char *text = list->items[item];
    size_t length = strcspn(text, "=");
    if (!length || !text[length] || !text[length + 1])
        return must_format("expected NAME=%s",
                           o->offset == offsetof(program_options, check.gradients) ? "FILE.npy"
                                                                                   : "VALUE");
    for (int i = 0; i < item; i++)
        if (strncmp(list->items[i], text, length + 1) == 0)
            return must_format("%.*s is given twice", (int)length, text);
    return NULL;
}

/* ---- Choices ---- */

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
static const char *const dtype_names[] = {
    [ATN_F32] = "f32",   [ATN_F64] = "f64", [ATN_TF32] = "tf32",
    [ATN_BF16] = "bf16", [ATN_F16] = "f16", NULL};

static char *parse_choice(program_options *s, const option *o, const char *value)
{
    int found = names_find(o->names, value);
    if (found < 0)
        return names_expected(o->names, value);
    *(int *)field_of(s, o) = found;
    return NULL;
}

static void write_choice(const program_options *s, const option *o, FILE *file)
{
    fputs(o->names[*(const int *)value_of(s, o)], file);
}

static const option_kind choice_kind = {parse_choice, write_choice, NULL};

/* Parses names of one list, each at most once: their indices go to found, of which *count are set.
 * Returns an error message, or null. */
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

static char *parse_choices(program_options *s, const option *o, const char *value)
{
    return parse_names(value, o->names, (int *)((char *)s + o->count), field_of(s, o));
}

static void write_choices(const program_options *s, const option *o, FILE *file)
{
    const int *chosen = value_of(s, o);
    for (int i = 0; i < *(const int *)((const char *)s + o->count); i++)
        fprintf(file, "%s%s", i ? "," : "", o->names[chosen[i]]);
}

static const option_kind choices_kind = {parse_choices, write_choices, NULL};

const char *case_mask_name(case_mask mask)
{
    return mask_names[mask];
}

static char *parse_masks(program_options *s, const option *o, const char *value)
{
    int found[CASE_MASK_COUNT], count = s->cases.masks.count, before = count;
    for (int i = 0; i < count; i++)
        found[i] = (int)s->cases.masks.items[i];
    char *wrong = parse_names(value, o->names, &count, found);
    for (int i = before; i < count; i++)
        add_integer(&s->cases.masks, found[i]);
    return wrong;
}

static const option_kind masks_kind = {parse_masks, write_integers, clear_integers};

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

static void write_scale(const program_options *s, const option *o, FILE *file)
{
    fprintf(file, "%s:%.17g", scale_names[s->scale], s->scale_value);
}

static const option_kind scale_kind = {parse_scale, write_scale, NULL};

/* ---- Texts ---- */

static char *parse_text(program_options *s, const option *o, const char *value)
{
    *(const char **)field_of(s, o) = value;
    return *value ? NULL : must_format("expected a %s", o->argument);
}

static void write_text(const program_options *s, const option *o, FILE *file)
{
    fputs(without_folders(*(const char *const *)value_of(s, o)), file);
}

static const option_kind text_kind = {parse_text, write_text, NULL};

static char *parse_reason(program_options *s, const option *o, const char *value)
{
    s->update = value;
    return value[strspn(value, " \t\r\n")] ? NULL : must_format("expected a reason");
}

static const option_kind reason_kind = {parse_reason, NULL, NULL};

static char *parse_layout(program_options *s, const option *o, const char *value)
{
    return layout_parse(value, &s->layout);
}

static void write_layout(const program_options *s, const option *o, FILE *file)
{
    fprintf(file, "%s:%" PRId64, s->layout.axes, s->layout.heads);
}

static const option_kind layout_kind = {parse_layout, write_layout, NULL};

/* ---- Flags ---- */

static char *parse_effort(program_options *s, const option *o, const char *value)
{
    if (s->effort != EFFORT_DEFAULT && s->effort != (effort)o->most)
        return must_format("--quick and --full exclude each other");
    s->effort = (effort)o->most;
    return NULL;
}

static const option_kind effort_kind = {parse_effort, NULL, NULL};

static char *parse_flag(program_options *s, const option *o, const char *value)
{
    *(bool *)field_of(s, o) = true;
    return NULL;
}

static void write_flag(const program_options *s, const option *o, FILE *file)
{
    fprintf(file, "%d", *(const bool *)field_of((program_options *)s, o));
}

static const option_kind flag_kind = {parse_flag, write_flag, NULL};

/* ---- The options ---- */

#define OPTION_ROW(id, name_, argument_, kind_, field, effect_, ...)                               \
    [OPTION_##id] = {.name = name_,                                                                \
                     .argument = argument_,                                                        \
                     .kind = &kind_##_kind,                                                        \
                     .offset = offsetof(program_options, field),                                   \
                     .effect = effect_,                                                            \
                     __VA_ARGS__},
static const option rows[OPTION_COUNT] = {OPTION_LIST(OPTION_ROW)};

/* The type of the field of each kind: a row whose field has another type does not compile. */
typedef integer_list integers_field, masks_field;
typedef int64_t integer_field, certify_field, grid_field, query_field, shard_field;
typedef double positive_field;
typedef text_list texts_field, inputs_field;
typedef const char *text_field, *reason_field;
typedef unsigned choice_field, *choices_field, scale_field, effort_field; /* of enumerations */
typedef layout layout_field;
typedef bool flag_field;
#define OPTION_FIELD(id, name, argument, kind, field, ...)                                         \
    _Static_assert(_Generic(((program_options *)0)->field, kind##_field : 1, default : 0),         \
                   "--" name ": its kind needs a field of another type");
OPTION_LIST(OPTION_FIELD)

#define OPTION_ENTRY(id, ...) OPTION_##id,
const option_id every_option[] = {OPTION_LIST(OPTION_ENTRY) OPTION_END};
const option_id run_options[] = {OPTION_SEED,    OPTION_THREADS, OPTION_ISA,  OPTION_OUT,
                                 OPTION_DRY_RUN, OPTION_QUICK,   OPTION_FULL, OPTION_RESUME,
                                 OPTION_SHARD,   OPTION_FORMAT,  OPTION_END};

bool options_include(const option_id *list, option_id id)
{
    for (; list && *list != OPTION_END; list++)
        if (*list == id)
            return true;
    return id == OPTION_HELP;
}

void options_add(option_id list[OPTION_COUNT + 1], const option_id *more)
{
    int count = 0;
    while (list[count] != OPTION_END)
        count++;
    for (; more && *more != OPTION_END; more++)
        if (!options_include(list, *more)) {
            list[count++] = *more;
            list[count] = OPTION_END;
        }
}

/* The option that a word such as "--seed=1" names, or OPTION_END; of two with one name, the one
 * that is taken. *value is the text after "=", or null. */
static option_id find_option(const char *word, const option_id *taken, const char **value)
{
    option_id found = OPTION_END;
    size_t length = strcspn(word, "=");
    *value = word[length] ? word + length + 1 : NULL;
    for (int i = 0; i < OPTION_COUNT; i++) {
        bool letter = word[0] == '-' && rows[i].letter && word[1] == rows[i].letter && !word[2];
        bool name = length == strlen(rows[i].name) + 2 && strncmp(word, "--", 2) == 0 &&
                    memcmp(word + 2, rows[i].name, length - 2) == 0;
        if ((letter || name) && (found == OPTION_END || !options_include(taken, found)))
            found = (option_id)i;
    }
    return found;
}

static int report_unknown(const char *word, bool known, const option_id *taken)
{
    const char *names[OPTION_COUNT + 1] = {0};
    int count = 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (options_include(taken, (option_id)i) && names_find(names, rows[i].name) < 0)
            names[count++] = rows[i].name;
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

/* Parses the option at argv[*i] and moves *i to its last word. One that only `all` has is skipped.
 */
static int parse_option(program_options *s, const option_id *taken, const option_id *all, int argc,
                        char **argv, int *i)
{
    const char *word = argv[*i], *value;
    option_id id = find_option(word, taken, &value);
    if (!options_include(taken, id)) {
        id = find_option(word, all, &value);
        if (!options_include(all, id))
            return report_unknown(word, id != OPTION_END, taken);
        *i += rows[id].argument && !value;
        return EXIT_PASS;
    }
    const option *o = &rows[id];
    if (!o->argument && value) {
        report_error("--%s: takes no value, given '%s'", o->name, value);
        return EXIT_USAGE;
    }
    if (o->argument && !value) {
        /* the next option is no value: `regress --update --help` must not replace what is kept */
        const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
        if (!next || strncmp(next, "--", 2) == 0) {
            report_error("--%s%s%s: expected a value: %s, %s", o->name, next ? " " : "",
                         next ? next : "", o->argument, o->help);
            return EXIT_USAGE;
        }
        value = argv[++*i];
    }
    if (s->given[id] && !is_list(o)) {
        report_error("--%s: given twice; expected once, only lists may be repeated", o->name);
        return EXIT_USAGE;
    }
    s->given[id] = true;
    if (o->effect != ASIDE)
        keep_option(s, o, value);
    char *wrong = o->kind->parse(s, o, value);
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

/* ATTNUM_ISA is an option that is given elsewhere: kept like --isa, and part of the fingerprint.
 * check_isa has accepted it. */
static void take_environment(program_options *s)
{
    const char *given = getenv("ATTNUM_ISA");
    int isa = given ? names_find(isa_names, given) : -1, at = 0;
    if (s->isa != ATN_ISA_AUTO || isa <= ATN_ISA_AUTO)
        return;
    s->isa = (atn_isa)isa;
    while (at < s->kept.count && strcmp(s->kept.items[at], "--isa=auto") != 0)
        at++;
    if (at < s->kept.count) {
        free((char *)s->kept.items[at]);
        s->kept.items[at] = must_format("--isa=%s", given);
    } else
        keep_option(s, &rows[OPTION_ISA], given);
}

/* Checks that need all options. here: devices and instruction sets must exist on this machine. */
static int check_together(const program_options *s, const option_id *taken, bool here)
{
    bool nr = false, file = false;
    const char *reason, *narrow = NULL;
    /* bench also times the operators that the CPU computes in bf16 */
    bool is_bench = options_include(taken, OPTION_SUBJECT);
    for (int i = 0; i < s->dtype_count; i++)
        if (s->dtypes[i] >= ATN_CPU_DTYPE_COUNT && !(is_bench && s->dtypes[i] == ATN_BF16))
            narrow = atn_dtype_name(s->dtypes[i]);
    for (int i = 0; i < s->variants.count; i++)
        nr |= strcmp(s->variants.items[i], "nr") == 0;
    for (int i = 0; i < s->inputs.count; i++)
        file |= options_names_file(s->inputs.items[i]);
    if (s->alpha > 0 && s->variants.count && !nr)
        report_error("--alpha: only --variant nr takes it");
    else if (s->grid_height && !file && options_include(taken, OPTION_INPUT))
        report_error("--grid: only --input FILE.npy takes it");
    else if (s->format != FORMAT_TABLE && (s->dry_run || s->emit || s->emit_case || s->shards))
        report_error("--format %s: %s prints no tables; leave out one of them",
                     format_names[s->format],
                     s->dry_run     ? "--dry-run"
                     : s->shards    ? "--shard"
                     : s->emit_case ? "--emit-case"
                                    : "--emit-tokens");
    else if (narrow && s->device == ATN_CPU && options_include(taken, OPTION_DEVICE))
        report_error("--dtype %s: needs --device cuda; on the CPU expected f32%s or f64", narrow,
                     is_bench ? ", bf16" : "");
    else if (here && atn_device_count(s->device, &reason) == 0) {
        report_error("--device %s: %s", atn_device_name(s->device), reason);
        return EXIT_ENVIRONMENT;
    } else if (s->certify > 0 && !ref_certify_library()) {
        report_error("--certify %" PRId64 ": this build lacks FLINT and Arb; expected 0",
                     s->certify);
        return EXIT_ENVIRONMENT;
    } else
        return here && options_include(taken, OPTION_ISA) ? check_isa(s) : EXIT_PASS;
    return EXIT_USAGE;
}

/* `check` has options for judging, for writing cases, and for both. */
static int check_purpose(const program_options *s, const option_id *taken)
{
    if (!options_include(taken, OPTION_EMIT_CASE))
        return EXIT_PASS;
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!s->given[i])
            continue;
        if (s->emit_case && rows[i].purpose == FOR_JUDGING)
            report_error("--%s: not with --emit-case, which makes its own", rows[i].name);
        else if (!s->emit_case && rows[i].purpose == FOR_CASES)
            report_error("--%s: only --emit-case takes it", rows[i].name);
        else
            continue;
        return EXIT_USAGE;
    }
    return EXIT_PASS;
}

char *options_add_word(char *command, const char *word)
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
        option_id id = find_option(argv[i], every_option, &value);
        if (argv[i][0] != '-')
            names[count++] = argv[i];
        else if (id == OPTION_END) {
            report_unknown(argv[i], false, every_option);
            return -1;
        } else if (rows[id].argument && !value)
            i++;
    }
    return count;
}

/* Treats a word among bench's options as an argument of --subject. */
static int parse_subject(program_options *s, const option_id *taken, char *word)
{
    char name[] = "--subject", *words[] = {name, word};
    int i = 0;
    return parse_option(s, taken, NULL, 2, words, &i);
}

static int parse_all(program_options *s, const option_id *taken, const option_id *all, bool here,
                     int argc, char **argv)
{
    int code = EXIT_PASS;
    for (int i = 0; i < argc; i++)
        s->command = options_add_word(s->command, argv[i]);
    for (int i = 0; i < argc && code == EXIT_PASS; i++)
        if (argv[i][0] == '-')
            code = parse_option(s, taken, all, argc, argv, &i);
        else if (options_include(taken, OPTION_SUBJECT))
            code = parse_subject(s, taken, argv[i]);
    if (code == EXIT_PASS && here)
        code = check_purpose(s, taken);
    if (code == EXIT_PASS)
        code = check_together(s, taken, here);
    if (code != EXIT_PASS) {
        options_free(s);
        return code;
    }
    if (here && options_include(taken, OPTION_ISA))
        take_environment(s);
    if (!s->seeds.count)
        add_integer(&s->seeds, DEFAULT_SEED);
    s->dtypes_given = s->dtype_count > 0;
    if (!s->dtypes_given)
        for (; s->dtype_count < ATN_CPU_DTYPE_COUNT; s->dtype_count++)
            s->dtypes[s->dtype_count] = (atn_dtype)s->dtype_count;
    return EXIT_PASS;
}

/* The values of options that are not given. */
static program_options initial_options(const char *verb, const char *out)
{
    program_options s = {.effort = EFFORT_DEFAULT,
                         .threads = omp_get_max_threads(),
                         .out = out,
                         .query_col = -1,
                         .command = must_format("attnum %s", verb)};
    for (int i = 0; i < OPTION_COUNT; i++)
        if (rows[i].unset)
            *(int64_t *)field_of(&s, &rows[i]) = rows[i].unset;
    return s;
}

int options_parse_verb(program_options *s, const char *verb, const char *out,
                       const option_id *taken, int argc, char **argv)
{
    *s = initial_options(verb, out);
    return parse_all(s, taken, NULL, true, argc, argv);
}

int options_parse_part(program_options *s, const option_id *taken, const option_id *all, int argc,
                       char **argv)
{
    option_id own[OPTION_COUNT + 1] = {OPTION_END};
    options_add(own, taken);
    options_add(own, run_options);
    *s = initial_options("run", "results");
    return parse_all(s, own, all, true, argc, argv);
}

int options_parse(program_options *s, const option_id *taken, int argc, char **argv)
{
    return options_parse_part(s, taken, NULL, argc, argv);
}

int options_parse_kept(program_options *s, const char *out, const option_id *taken, int argc,
                       char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *value;
        option_id id = find_option(argv[i], taken, &value);
        if (id != OPTION_END && (rows[id].effect == ASIDE || (rows[id].argument && !value))) {
            report_error("%s: not an option that a run keeps", argv[i]);
            return EXIT_USAGE;
        }
    }
    *s = initial_options("run", out);
    return parse_all(s, taken, NULL, false, argc, argv);
}

void options_free(program_options *s)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (rows[i].kind->clear)
            rows[i].kind->clear(s, &rows[i]);
    free_texts(&s->kept);
    free(s->command);
    *s = (program_options){0};
}

/* "--name ARGUMENT"; to be freed. */
static char *usage_of(const option *o)
{
    return must_format("--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
}

void options_help(const option_id *taken)
{
    int width = 0;
    bool lists = false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < OPTION_COUNT; i++) {
            if (!options_include(taken, (option_id)i))
                continue;
            char *usage = usage_of(&rows[i]);
            int length = (int)strlen(usage);
            if (pass)
                printf("  %-*s  %s\n", width, usage, rows[i].help);
            width = length > width ? length : width;
            lists |= is_list(&rows[i]);
            free(usage);
        }
    if (lists)
        printf("LIST is a,b,...; of integers also start:end, start:end:step and "
               "start:end:xfactor.\n"
               "A LIST option may be repeated and then appends; any other is given once.\n");
}

/* ---- The manual page ---- */

/* Options that only --emit-case takes come last. */
void options_manual_list(const option_id *taken, FILE *file)
{
    for (int cases = 0; cases < 1 + options_include(taken, OPTION_EMIT_CASE); cases++)
        for (int i = 0, count = 0; i < OPTION_COUNT; i++)
            if (options_include(taken, (option_id)i) &&
                (!options_include(taken, OPTION_EMIT_CASE) ||
                 (rows[i].purpose == FOR_CASES) == cases)) {
                fputs(count ? " ,\n" : cases ? " ;\nfor cases\n" : "", file);
                fprintf(file, ".Fl -%s", rows[i].name);
                count++;
            }
    fputs(" .\n", file);
}

static int compare_names(const void *a, const void *b)
{
    const option *x = *(const option *const *)a, *y = *(const option *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

void options_manual(FILE *file)
{
    const option *sorted[OPTION_COUNT];
    for (int i = 0; i < OPTION_COUNT; i++)
        sorted[i] = &rows[i];
    qsort(sorted, OPTION_COUNT, sizeof *sorted, compare_names);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const option *o = sorted[i];
        if (i && strcmp(sorted[i - 1]->name, o->name) == 0)
            fprintf(file, ".Pp\n.Ar %s :\n", o->argument);
        else
            fprintf(file, ".It Fl -%s%s%s\n", o->name, o->argument ? " Ar " : "",
                    o->argument ? o->argument : "");
        fprintf(file, "%s.\n", o->help);
        if (o->manual)
            fprintf(file, "%s\n", o->manual);
    }
}

/* ---- The command of a point ---- */

static char *add_option(char *command, option_id id, const char *value)
{
    char *option_name = must_format("--%s", rows[id].name);
    command = options_add_word(options_add_word(command, option_name), value);
    free(option_name);
    return command;
}

/* Whether the command of a point repeats an option: all kept ones that select no points. */
static bool repeats(const option_id *taken, option_id id, const options_point *point)
{
    if (id == OPTION_QUICK || id == OPTION_FULL)
        return point->by_effort;
    if (id == OPTION_GRID && !options_names_file(point->input))
        return false;
    return options_include(taken, id);
}

char *options_replay(const program_options *s, const char *experiment, const option_id *taken,
                     const options_point *point)
{
    const struct {
        option_id id;
        bool wanted;
        char *value;
    } own[] = {{
        OPTION_OPERATOR,
        point->operator,
        point->operator? variant_name(point->operator, point->variant) : NULL },
        {OPTION_INPUT, *point->input, must_format("%s", point->input)},
        {OPTION_STAGE, point->stage > 0, must_format("%" PRId64, point->stage)},
        {OPTION_N, point->tokens > 0, must_format("%" PRId64, point->tokens)},
        {OPTION_M, point->landmarks > 0, must_format("%" PRId64, point->landmarks)},
        {OPTION_SAMPLING, point->sampling,
         must_format("%s", point->sampling ? point->sampling : "")},
        {OPTION_SEED, true, must_format("%" PRId64, point->seed)},
        {OPTION_SAMPLES, true, must_format("%" PRId64, point->samples)},
    };
    enum { OWN = sizeof own / sizeof *own };
    option_id all[OPTION_COUNT + 1] = {OPTION_END};
    options_add(all, taken);
    options_add(all, run_options);
    char *command = options_add_word(must_format("attnum run"), experiment);
    for (int i = 0; i < OWN; i++) {
        if (own[i].wanted && options_include(all, own[i].id))
            command = add_option(command, own[i].id, own[i].value);
        free(own[i].value);
    }
    for (int i = 0; i < s->kept.count; i++) {
        const char *value;
        option_id id = find_option(s->kept.items[i], all, &value);
        bool picks = false;
        for (int j = 0; j < OWN; j++)
            picks |= own[j].id == id;
        if (!picks && repeats(all, id, point))
            command = options_add_word(command, s->kept.items[i]);
    }
    return add_option(command, OPTION_OUT, "replay");
}

char *options_shard_command(const program_options *s, const char *verb, int64_t shard,
                            int64_t shards, const char *out)
{
    char *command = must_format("attnum %s", verb), *part;
    for (int i = 0; i < s->kept.count; i++)
        command = options_add_word(command, s->kept.items[i]);
    part = must_format("%" PRId64 "/%" PRId64, shard, shards);
    command = add_option(add_option(command, OPTION_SHARD, part), OPTION_OUT, out);
    free(part);
    return options_add_word(command, "--resume");
}

/* ---- The fingerprint ---- */

/* The fingerprint has the instruction set as given, since another one rounds differently. The set
 * that `auto` selects is not in it, like BLAS's choice of kernels, so that shards of several
 * machines can be merged; a journal names both, and is not continued with others. */
void options_fingerprint(const program_options *s, FILE *file)
{
    fprintf(file, " effort=%d", (int)s->effort);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const option *o = &rows[i];
        if (o->effect == RESULT || (o->effect == WHERE_GIVEN && s->given[i])) {
            fprintf(file, " %s=", o->name);
            o->kind->write(s, o, file);
        }
    }
}
