/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a consistent problem from the command line and the files it names. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "common/names.h"
#include "common/report.h"

void owned_add(owned_memory *o, void *memory)
{
    o->items = must_resize(o->items, (size_t)o->count + 1, sizeof *o->items);
    o->items[o->count++] = memory;
}

void owned_free(owned_memory *o)
{
    for (int i = 0; i < o->count; i++)
        free(o->items[i]);
    free(o->items);
    *o = (owned_memory){.items = NULL};
}

static const char *const result_names[RESULT_COUNT] = {[RESULT_OUTPUT] = "output",
                                                       [RESULT_TOKENS] = "grad-tokens",
                                                       [RESULT_KEYS] = "grad-keys",
                                                       [RESULT_VALUES] = "grad-values",
#define RESULT_NAME(code, name, description) [RESULT_PARAMETERS + code] = "grad-" name,
                                                       ATN_PARAMETER_LIST(RESULT_NAME)
#undef RESULT_NAME
};

const char *result_name(result_kind kind)
{
    return result_names[kind];
}

const char *gradient_name(result_kind kind)
{
    return result_names[kind] + strlen("grad-");
}

static const atn_tensor *parameter_of(const attention_case *c, result_kind kind)
{
    return atn_attention_parameter((atn_attention_desc *)&c->reference,
                                   (atn_parameter)(kind - RESULT_PARAMETERS));
}

bool result_exists(const attention_case *c, result_kind kind)
{
    if (kind < RESULT_PARAMETERS)
        return kind != RESULT_KEYS || c->k;
    unsigned differentiable = atn_operator_get(c->choice.op)->differentiable;
    return differentiable >> (kind - RESULT_PARAMETERS) & 1 && parameter_of(c, kind)->data;
}

int64_t result_heads(const attention_case *c, result_kind kind)
{
    return kind >= RESULT_PARAMETERS ? parameter_of(c, kind)->heads
                                     : c->shape.batch * c->shape.heads;
}

int64_t result_rows(const attention_case *c, result_kind kind)
{
    if (kind >= RESULT_PARAMETERS)
        return parameter_of(c, kind)->rows;
    return kind == RESULT_OUTPUT || kind == RESULT_TOKENS ? c->shape.tokens : c->shape.key_tokens;
}

int64_t result_cols(const attention_case *c, result_kind kind)
{
    if (kind >= RESULT_PARAMETERS)
        return parameter_of(c, kind)->cols;
    return kind == RESULT_OUTPUT || kind == RESULT_VALUES ? c->shape.value_dim : c->shape.dim;
}

int64_t result_size(const attention_case *c, result_kind kind)
{
    return result_heads(c, kind) * result_rows(c, kind) * result_cols(c, kind);
}

int64_t subject_landmarks(const subject *to)
{
    const atn_sampling *s = &to->c.reference.sampling;
    switch (s->kind) {
    case ATN_SAMPLING_POOL:
    case ATN_SAMPLING_CONV:
    case ATN_SAMPLING_CONV_CODE:
        return s->stride > 0 ? s->height / s->stride * (s->width / s->stride) : 0;
    case ATN_SAMPLING_WINDOW:
        return s->stride > 0 ? (to->c.shape.tokens + s->stride - 1) / s->stride : 0;
    default:
        return s->count;
    }
}

/* ---- Files ---- */

/* The file as an array that the subject owns; null: it could not be read. */
static npy_array *read_file(subject *s, const char *path, bool any)
{
    npy_array *a = &s->files[s->file_count];
    if (s->file_count == MOST_FILES) {
        report_error("%s: expected at most %d files", path, MOST_FILES);
        return NULL;
    }
    if ((any ? npy_read_any(path, a) : npy_read(path, a)) != EXIT_PASS)
        return NULL;
    s->file_count++;
    return a;
}

/* The same for tokens, values and outputs, whose order of dimensions --layout gives. */
static npy_array *read_tokens(const program_options *given, subject *s, const char *path, bool any)
{
    npy_array *a = read_file(s, path, any);
    return a && layout_read(&given->layout, path, a) == EXIT_PASS ? a : NULL;
}

/* Whether an array has the expected shape; -1: any size. Otherwise reports an error. */
static bool has_shape(const npy_array *a, const char *path, const char *what, int64_t batch,
                      int64_t heads, int64_t rows, int64_t cols)
{
    const int64_t have[] = {a->batch, a->heads, a->rows, a->cols};
    const int64_t want[] = {batch, heads, rows, cols};
    char text[4][24];
    bool fits = true;
    for (int i = 0; i < 4; i++) {
        fits &= want[i] < 0 || have[i] == want[i];
        if (want[i] < 0)
            strcpy(text[i], "any");
        else
            snprintf(text[i], sizeof text[i], "%" PRId64, want[i]);
    }
    if (!fits)
        report_error("%s: shape: %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                     ", expected %s x %s x %s x %s (%s)",
                     path, have[0], have[1], have[2], have[3], text[0], text[1], text[2], text[3],
                     what);
    return fits;
}

/* ---- Operator and precision ---- */

static int choose_operator(const program_options *s, attention_choice *choice)
{
    if (s->operators.count != 1) {
        report_error("--operator: %s, expected one NAME or NAME/VARIANT",
                     s->operators.count ? "several are given" : "missing");
        return EXIT_USAGE;
    }
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = info->variant_count - 1; variant >= 0; variant--)
            if (options_include_variant(s, info, variant)) {
                choice->op = (atn_operator)op;
                choice->variant = variant;
            }
    }
    return EXIT_PASS;
}

void subject_claim(subject *s, atn_dtype claimed)
{
    static const atn_storage storages[ATN_DTYPE_COUNT] = {
        [ATN_TF32] = ATN_STORAGE_TF32, [ATN_BF16] = ATN_STORAGE_BF16, [ATN_F16] = ATN_STORAGE_F16};
    s->dtype = claimed == ATN_F64 ? ATN_F64 : ATN_F32;
    s->storage = storages[claimed];
    s->c.choice.dtype = s->judged.choice.dtype = s->dtype;
    s->c.choice.storage = s->judged.choice.storage = s->storage;
}

/* --dtype, or the type of the files that hold the results. */
static int choose_precision(const program_options *s, int count, const npy_array *results,
                            subject *to)
{
    atn_dtype claimed = s->dtypes[0];
    char type = results[0].dtype[2];
    if (s->dtypes_given && s->dtype_count != 1) {
        report_error("--dtype: several are given, expected the one that your kernel has");
        return EXIT_USAGE;
    }
    for (int i = 1; i < count && !s->dtypes_given; i++)
        if (results[i].dtype[2] != type) {
            report_error("--dtype: missing; the results are in files of several types, expected "
                         "the one that your kernel has");
            return EXIT_USAGE;
        }
    if (!s->dtypes_given)
        claimed = type == '8' ? ATN_F64 : type == '4' ? ATN_F32 : ATN_F16;
    subject_claim(to, claimed);
    return EXIT_PASS;
}

const char *subject_precision(const subject *s)
{
    return s->storage == ATN_STORAGE_NATIVE ? atn_dtype_name(s->dtype)
                                            : atn_storage_name(s->storage);
}

/* Refuses the options of the Gaussian kernel, unless they are at their defaults, where there is no
 * such kernel: they would be ignored. */
static int check_kernel(const program_options *s, const subject *to)
{
    const atn_operator op = to->c.choice.op;
    const char *wrong = s->scale != ATN_SCALE_HEAD && !scale_is_of(op)              ? "scale"
                        : s->distance != ATN_DISTANCE_DIRECT && !distance_is_of(op) ? "distance"
                                                                                    : NULL;
    if (wrong)
        report_error("--%s: %s takes none; attnum check --operator %s --help lists its parameters",
                     wrong, atn_operator_get(op)->name, atn_operator_get(op)->name);
    return wrong ? EXIT_USAGE : EXIT_PASS;
}

/* ---- Inputs ---- */

static int report_missing(const program_options *s)
{
    const check_arguments *files = &s->check;
    const bool any = files->gradients.count > 0;
    const char *missing = !files->tokens               ? "tokens"
                          : !files->values             ? "values"
                          : files->grad_output && !any ? "gradient"
                          : !files->output && !any     ? "output"
                          : any && !files->grad_output ? "grad-output"
                                                       : NULL;
    if (missing)
        report_error("--%s: missing; attnum check --help says what is needed", missing);
    return missing ? EXIT_USAGE : EXIT_PASS;
}

/* Grouped attention: keys or values of fewer heads are shared, head i of the tokens using head i /
 * (heads / fewer). Repeats them so that the array has all heads. */
static void repeat_heads(npy_array *a, int64_t heads)
{
    int64_t size = a->rows * a->cols, times = heads / a->heads;
    double *all = must_allocate((size_t)(a->batch * heads * size), sizeof *all);
    for (int64_t i = 0; i < a->batch * heads; i++)
        memcpy(all + i * size, a->data + i / times * size, (size_t)size * sizeof *all);
    free(a->data);
    a->data = all;
    a->heads = heads;
}

static bool is_grouped(const npy_array *a, const npy_array *q)
{
    return a->heads < q->heads && q->heads % a->heads == 0;
}

/* Whether keys (null: K = Q) and values have as many heads as the tokens, or fewer that are shared.
 * Repeats shared ones. */
static bool fit_heads(const program_options *s, const npy_array *q, npy_array *k, npy_array *v,
                      subject *to)
{
    npy_array *first = k ? k : v;
    int64_t heads = first && is_grouped(first, q) ? first->heads : q->heads;
    int64_t keys = k ? k->rows : q->rows;
    if ((k && !has_shape(k, s->check.keys, "the tokens' batch, heads and width", q->batch, heads,
                         -1, q->cols)) ||
        (v && !has_shape(v, s->check.values, "the batch, heads and number of keys", q->batch, heads,
                         keys, -1)))
        return false;
    to->key_heads = heads;
    if (k)
        repeat_heads(k, q->heads);
    if (v)
        repeat_heads(v, q->heads);
    return true;
}

int subject_read_inputs(const program_options *s, subject *to)
{
    attention_case *c = &to->c;
    npy_array *q = read_tokens(s, to, s->check.tokens, false), *k = NULL, *v = NULL;
    if (q && s->check.keys)
        k = read_tokens(s, to, s->check.keys, false);
    if (q && s->check.values && (k || !s->check.keys))
        v = read_tokens(s, to, s->check.values, false);
    if (!q || (s->check.keys && !k) || (s->check.values && !v) || !fit_heads(s, q, k, v, to))
        return EXIT_ENVIRONMENT;
    to->doubt = s->layout.axes ? NULL : layout_doubt(s->check.tokens, q);
    c->shape = (atn_attention_shape){
        q->batch, q->heads, q->rows, q->cols, v ? v->cols : q->cols, k ? k->rows : q->rows};
    c->q = q->data, c->k = k ? k->data : NULL, c->v = v ? v->data : NULL;
    return EXIT_PASS;
}

static int read_inputs(const program_options *s, subject *to)
{
    attention_case *c = &to->c;
    int code = subject_read_inputs(s, to);
    if (code != EXIT_PASS)
        return code;
    const atn_operator_info *info = atn_operator_get(c->choice.op);
    if (c->k && !(info->capabilities & ATN_CAN_CROSS)) {
        report_error("--keys: %s takes none: %s", info->name, info->unsupported);
        return EXIT_USAGE;
    }
    c->choice.shape = c->shape;
    c->choice.cross = c->k != NULL;
    c->choice.seed = 1;
    return EXIT_PASS;
}

/* Reads batch x count numbers that are 0 or 1 as bytes. */
static int read_mask(subject *to, const char *path, int64_t count, unsigned char **mask)
{
    if (!path)
        return EXIT_PASS;
    const npy_array *a = read_file(to, path, false);
    if (!a || !has_shape(a, path, "batch x tokens", 1, 1, to->c.shape.batch, count))
        return EXIT_ENVIRONMENT;
    *mask = must_allocate((size_t)(to->c.shape.batch * count), sizeof **mask);
    owned_add(&to->owned, *mask);
    for (int64_t i = 0; i < to->c.shape.batch * count; i++) {
        if (a->data[i] != 0 && a->data[i] != 1) {
            report_error("%s: element %" PRId64 " is %g, expected 0 or 1", path, i, a->data[i]);
            return EXIT_ENVIRONMENT;
        }
        (*mask)[i] = a->data[i] == 1;
    }
    to->c.choice.padding = to->c.reference.padding = true;
    return EXIT_PASS;
}

int subject_read_masks(const program_options *s, subject *to)
{
    attention_case *c = &to->c;
    int code = read_mask(to, s->check.mask, c->shape.key_tokens, &c->key_mask);
    return code == EXIT_PASS ? read_mask(to, s->check.query_mask, c->shape.tokens, &c->query_mask)
                             : code;
}

/* Sets --grid, or by default a square grid if n is a square, in every option that has a grid. */
static int set_grid(const program_options *s, subject *to)
{
    int64_t n = to->c.shape.tokens, side = (int64_t)llround(sqrt((double)n));
    int64_t height = s->grid_height, width = s->grid_width;
    atn_attention_desc *desc = &to->c.reference;
    if (height && height * width != n) {
        report_error("--grid %" PRId64 "x%" PRId64 ": expected %" PRId64 " tokens, as %s has",
                     height, width, n, s->check.tokens);
        return EXIT_USAGE;
    }
    if (!height && side * side == n)
        height = width = side;
    desc->sampling.height = desc->residual_height = desc->cosformer.height = height;
    desc->sampling.width = desc->residual_width = desc->cosformer.width = width;
    return EXIT_PASS;
}

/* ---- Landmarks ---- */

/* Appends `more` rows of `tail` (null: zeros) to the rows x cols of every head. */
static double *append_rows(subject *to, const double *x, int64_t rows, int64_t cols,
                           const double *tail, int64_t more)
{
    int64_t heads = to->c.shape.batch * to->c.shape.heads, size = (rows + more) * cols;
    double *longer = must_allocate((size_t)(heads * size), sizeof *longer);
    owned_add(&to->owned, longer);
    for (int64_t i = 0; i < heads; i++) {
        memcpy(longer + i * size, x + i * rows * cols, (size_t)(rows * cols) * sizeof *x);
        for (int64_t j = 0; tail && j < more * cols; j++)
            longer[i * size + rows * cols + j] = tail[i * more * cols + j];
    }
    return longer;
}

static int append_landmarks(const program_options *s, subject *to)
{
    attention_case *c = &to->c;
    atn_attention_shape *shape = &c->shape;
    int64_t n = shape->tokens;
    if (c->choice.op != ATN_SOFT && c->choice.op != ATN_SOFTPP) {
        report_error("--landmarks: only soft and softpp take them");
        return EXIT_USAGE;
    }
    const char *unwanted = c->reference.residual.data
                               ? "residual"
                               : parameter_of_sampling(&s->check.parameters, c->choice.op);
    if (unwanted) {
        report_error("--landmarks: expected no --param %s with them", unwanted);
        return EXIT_USAGE;
    }
    const npy_array *l = read_tokens(s, to, s->check.landmarks, false);
    if (!l || !has_shape(l, s->check.landmarks, "landmarks of every head, as wide as tokens",
                         shape->batch, shape->heads, -1, shape->dim))
        return EXIT_ENVIRONMENT;
    int64_t m = l->rows, *indices = must_allocate((size_t)m, sizeof *indices);
    owned_add(&to->owned, indices);
    for (int64_t i = 0; i < m; i++)
        indices[i] = n + i;
    c->q = append_rows(to, c->q, n, shape->dim, l->data, m);
    c->v = append_rows(to, c->v, n, shape->value_dim, NULL, m);
    if (to->grad_output)
        to->grad_output = append_rows(to, to->grad_output, n, shape->value_dim, NULL, m);
    shape->tokens = shape->key_tokens = n + m;
    c->choice.shape = *shape;
    c->reference.sampling =
        (atn_sampling){.kind = ATN_SAMPLING_INDICES, .count = m, .indices = indices};
    return EXIT_PASS;
}

/* The default stride of average pooling gives SOFT's 7 x 7 landmarks (SOFT IJCV, Tab. 1: strides 8,
 * 4, 2 and 1 for 56 to 7 tokens a side), where the grid's side is a multiple of 7. */
static int choose_stride(subject *to)
{
    enum { SIDE = 7 };
    atn_sampling *s = &to->c.reference.sampling;
    bool needed = (to->c.choice.op == ATN_SOFT || to->c.choice.op == ATN_SOFTPP) &&
                  s->kind == ATN_SAMPLING_POOL && s->stride == 0;
    if (needed && s->height > 0 && s->height == s->width && s->height % SIDE == 0)
        s->stride = s->height / SIDE;
    else if (needed) {
        report_error("landmarks: %" PRId64 " x %" PRId64 " of the grid's %" PRId64 " x %" PRId64
                     " are no averages of squares; expected --landmarks L.npy, or --grid HxW and "
                     "--param stride=K",
                     (int64_t)SIDE, (int64_t)SIDE, s->height, s->width);
        return EXIT_USAGE;
    }
    return EXIT_PASS;
}

/* ---- What is judged ---- */

int subject_read_result(const program_options *s, const char *path, const char *what, bool any,
                        const attention_case *c, result_kind kind, subject *to,
                        const double **result)
{
    if ((kind == RESULT_KEYS || kind == RESULT_VALUES) && to->key_heads < c->shape.heads) {
        report_error("%s %s: sums over groups of heads are not judged; expected keys and values of "
                     "all %" PRId64 " heads, not of %" PRId64,
                     what, gradient_name(kind), c->shape.heads, to->key_heads);
        return EXIT_USAGE;
    }
    npy_array *a =
        kind < RESULT_PARAMETERS ? read_tokens(s, to, path, any) : read_file(to, path, any);
    if (!a)
        return EXIT_ENVIRONMENT;
    npy_array have = *a;
    int64_t batch = c->shape.batch, heads = c->shape.heads;
    if (kind >= RESULT_PARAMETERS) { /* a parameter's gradient may have the shapes that the
                                        parameter may have */
        atn_tensor t = parameter_tensor(a);
        have.batch = batch = 1;
        have.heads = t.heads, have.rows = t.rows, have.cols = t.cols;
        heads = result_heads(c, kind);
    }
    if (!has_shape(&have, path,
                   kind == RESULT_OUTPUT ? "the tokens', as wide as the values"
                                         : "that of what it is a gradient of",
                   batch, heads, result_rows(c, kind), result_cols(c, kind)))
        return EXIT_ENVIRONMENT;
    *result = a->data;
    return EXIT_PASS;
}

static int read_result(const program_options *s, subject *to, result_kind kind, const char *path)
{
    const double *result = NULL;
    int code = subject_read_result(s, path, "--gradient", true, &to->c, kind, to, &result);
    to->results[kind] = (double *)result;
    return code;
}

/* The result that --gradient NAME=FILE names. RESULT_COUNT: there is none, which has been
 * reported. */
static result_kind find_gradient(const attention_case *c, const char *text)
{
    const char *names[RESULT_COUNT] = {0};
    size_t length = strcspn(text, "=");
    int count = 0;
    for (int kind = RESULT_TOKENS; kind < RESULT_COUNT; kind++) {
        const char *name = gradient_name((result_kind)kind);
        if (!result_exists(c, (result_kind)kind))
            continue;
        if (strlen(name) == length && strncmp(name, text, length) == 0)
            return (result_kind)kind;
        names[count++] = name;
    }
    char *name = must_format("%.*s", (int)length, text), *expected = names_expected(names, name);
    report_error("--gradient %s: %s", name, expected);
    free(expected);
    free(name);
    return RESULT_COUNT;
}

static int read_results(const program_options *s, subject *to)
{
    const atn_attention_shape *shape = &to->c.shape;
    int first = to->file_count, count, code = EXIT_PASS;
    if (s->check.output)
        code = read_result(s, to, RESULT_OUTPUT, s->check.output);
    for (int i = 0; i < s->check.gradients.count && code == EXIT_PASS; i++) {
        const char *text = s->check.gradients.items[i];
        result_kind kind = find_gradient(&to->c, text);
        code = kind == RESULT_COUNT ? EXIT_USAGE : read_result(s, to, kind, strchr(text, '=') + 1);
    }
    count = to->file_count - first;
    if (code == EXIT_PASS && s->check.grad_output) {
        const npy_array *a = read_tokens(s, to, s->check.grad_output, false);
        if (!a || !has_shape(a, s->check.grad_output, "that of the output", shape->batch,
                             shape->heads, shape->tokens, shape->value_dim))
            return EXIT_ENVIRONMENT;
        to->grad_output = a->data;
    }
    return code == EXIT_PASS ? choose_precision(s, count, &to->files[first], to) : code;
}

int subject_check_problem(atn_context *context, const char *what, const atn_attention_desc *desc,
                          const atn_attention_shape *shape)
{
    atn_attention_desc in_f64 = *desc;
    atn_plan *plan = NULL;
    in_f64.dtype = ATN_F64;
    atn_status status = atn_attention_plan(context, &in_f64, shape, &plan);
    atn_plan_free(plan);
    if (status == ATN_OK)
        return EXIT_PASS;
    report_error("%s: %s", what, atn_last_error(context));
    return status == ATN_ERR_MEMORY ? EXIT_ENVIRONMENT : EXIT_USAGE;
}

int subject_read(const program_options *s, atn_context *context, subject *to)
{
    attention_case *c = &to->c;
    *to = (subject){.c = {.choice = {.bare = true}}, .reference = s->check.reference};
    int code = choose_operator(s, &c->choice);
    if (code == EXIT_PASS)
        code = check_kernel(s, to);
    if (code == EXIT_PASS)
        code = report_missing(s);
    if (code == EXIT_PASS)
        code = read_inputs(s, to);
    if (code != EXIT_PASS)
        return code;
    c->reference = atn_attention_variant(c->choice.op, c->choice.variant, ATN_F64);
    c->reference.scale = s->scale;
    c->reference.scale_value = s->scale_value;
    c->reference.distance = s->distance;
    if ((code = set_grid(s, to)) != EXIT_PASS ||
        (code = parameters_set(&s->check.parameters, to)) != EXIT_PASS ||
        (code = subject_read_masks(s, to)) != EXIT_PASS ||
        (code = read_results(s, to)) != EXIT_PASS)
        return code;
    c->choice.causal = c->reference.causal;
    c->choice.features = c->choice.op == ATN_PERFORMER ? c->reference.performer.projection.rows
                                                       : c->reference.rff.projection.rows;
    if (!s->check.landmarks)
        code = choose_stride(to);
    to->judged = *c;
    if (s->check.landmarks)
        code = append_landmarks(s, to);
    if (code == EXIT_PASS)
        code = subject_check_problem(context, atn_operator_get(c->choice.op)->name, &c->reference,
                                     &c->shape);
    return code == EXIT_PASS ? mistakes_read(s, context, to) : code;
}

void subject_free(subject *s)
{
    for (int i = 0; i < s->file_count; i++)
        free(s->files[i].data);
    owned_free(&s->owned);
    for (int i = 0; i < s->mistake_count; i++)
        free(s->mistakes[i].name);
    free(s->mistakes);
    free(s->doubt);
    *s = (subject){.file_count = 0};
}
