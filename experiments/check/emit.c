/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes problems with their answers, for kernels in any language: a folder of .npy files for each,
 * and manifest.json, which describes them. */
#include <attnum/version.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/plan.h"
#include "common/files.h"
#include "common/report.h"
#include "common/sha256.h"

/* The most multiplications in long double for an exact answer, about half a second's worth, as
 * there are some hundred answers. Larger problems are answered by the library in f64. */
static const double most_emission_work = 3e8;

/* Contexts of one thread, and of the number of threads that the user allows. */
typedef struct {
    atn_context *single, *many;
} contexts;

/* A case being written. */
typedef struct {
    const char *folder; /* of all cases */
    const case_plan *plan;
    char *name; /* of this case's folder: "soft-paper" */
    subject s;
    cJSON *files, *command, *tolerances, *parameters;
    int code;
} emission;

/* ---- Files ---- */

static cJSON *shape_node(int dimensions, const int64_t *shape)
{
    cJSON *node = cJSON_CreateArray();
    for (int i = 0; i < dimensions; i++)
        cJSON_AddItemToArray(node, cJSON_CreateNumber((double)shape[i]));
    return node;
}

/* Writes values as name.npy, an entry in the manifest, and an option of the command (null: none),
 * whose value is prefix and file. Returns the entry; null if it could not be written. */
static cJSON *write_array(emission *e, const char *name, const char *option, const char *prefix,
                          atn_dtype dtype, int dimensions, const int64_t *shape,
                          const double *values)
{
    int64_t count = 1;
    for (int i = 0; i < dimensions; i++)
        count *= shape[i];
    if (e->code != EXIT_PASS)
        return NULL;
    char *folder = must_format("%s/%s", e->folder, e->name), *file = must_format("%s.npy", name);
    char *path = must_format("%s/%s", folder, file), *local = must_format("%s/%s", e->name, file);
    void *typed = must_allocate((size_t)count, atn_dtype_size(dtype));
    struct sha256_ctx state;
    char hex[SHA256_HEX_SIZE];
    atn_convert(dtype, typed, ATN_F64, values, count);
    sha256_init(&state);
    e->code = npy_write(folder, file, dtype, dimensions, shape, typed);
    if (e->code == EXIT_PASS)
        e->code = sha256_add_file(&state, path);
    sha256_hex(&state, hex);
    cJSON *node = cJSON_AddObjectToObject(e->files, name);
    cJSON_AddStringToObject(node, "file", local);
    cJSON_AddItemToObject(node, "shape", shape_node(dimensions, shape));
    cJSON_AddStringToObject(node, "sha256", hex);
    if (option) {
        char *word = must_format("%s%s", prefix, local);
        cJSON_AddItemToArray(e->command, cJSON_CreateString(option));
        cJSON_AddItemToArray(e->command, cJSON_CreateString(word));
        free(word);
    }
    free(typed), free(local), free(path), free(file), free(folder);
    return node;
}

/* The same for an array of b x h x rows x cols, in the layout of the files. */
static cJSON *write_heads(emission *e, const char *name, const char *option, const char *prefix,
                          atn_dtype dtype, const int64_t bhnd[4], const double *values)
{
    int64_t shape[4], count = bhnd[0] * bhnd[1] * bhnd[2] * bhnd[3];
    double *moved = must_allocate((size_t)count, sizeof *moved);
    layout_write(&e->plan->layout, bhnd, values, moved);
    int dimensions = layout_shape(&e->plan->layout, bhnd, shape);
    cJSON *node = write_array(e, name, option, prefix, dtype, dimensions, shape, moved);
    free(moved);
    return node;
}

/* Keys, values or their gradients where heads share them: of each group the first head's, or, for
 * gradients, the sum over the group. b x key heads x size; to be freed. */
static double *group_heads(const emission *e, int64_t size, bool sum, const double *x)
{
    const case_plan *plan = e->plan;
    int64_t times = plan->heads / plan->key_heads, batch = e->s.c.shape.batch;
    double *groups = must_allocate((size_t)(batch * plan->key_heads * size), sizeof *groups);
    for (int64_t i = 0; i < batch * plan->heads; i++)
        for (int64_t j = 0; j < size && (sum || i % times == 0); j++)
            groups[i / times * size + j] += x[i * size + j];
    return groups;
}

static void write_grouped(emission *e, const char *name, const char *option, int64_t cols,
                          const double *x)
{
    const atn_attention_shape *s = &e->s.c.shape;
    const int64_t bhnd[] = {s->batch, e->plan->key_heads, s->key_tokens, cols};
    double *groups = group_heads(e, s->key_tokens * cols, false, x);
    write_heads(e, name, option, "", e->plan->given.dtype, bhnd, groups);
    free(groups);
}

static void write_mask(emission *e, const char *name, const char *option, int64_t count,
                       const unsigned char *mask)
{
    const int64_t shape[] = {e->s.c.shape.batch, count};
    if (!mask)
        return;
    double *values = must_allocate((size_t)(shape[0] * count), sizeof *values);
    for (int64_t i = 0; i < shape[0] * count; i++)
        values[i] = mask[i];
    write_array(e, name, option, "", ATN_F32, 2, shape, values);
    free(values);
}

static void write_inputs(emission *e)
{
    const attention_case *c = &e->s.c;
    const atn_attention_shape *s = &c->shape;
    const int64_t tokens[] = {s->batch, s->heads, s->tokens, s->dim};
    const int64_t outputs[] = {s->batch, s->heads, s->tokens, s->value_dim};
    atn_dtype dtype = e->plan->given.dtype;
    write_heads(e, "tokens", "--tokens", "", dtype, tokens, c->q);
    if (c->k)
        write_grouped(e, "keys", "--keys", s->dim, c->k);
    write_grouped(e, "values", "--values", s->value_dim, c->v);
    write_mask(e, "mask", "--mask", s->key_tokens, c->key_mask);
    write_mask(e, "query_mask", "--query-mask", s->tokens, c->query_mask);
    write_heads(e, "grad_output", "--grad-output", "", dtype, outputs, c->dout);
}

/* ---- Parameters ---- */

/* Writes an array of a parameter, in f32 if that holds its numbers exactly. */
static void write_values(emission *e, const parameter *p, int dimensions, const int64_t *shape,
                         const double *values)
{
    int64_t count = 1;
    atn_dtype dtype = ATN_F32;
    char *prefix = must_format("%s=", p->name);
    for (int i = 0; i < dimensions; i++)
        count *= shape[i];
    for (int64_t i = 0; i < count; i++)
        if ((double)(float)values[i] != values[i])
            dtype = ATN_F64;
    write_array(e, p->name, "--param", prefix, dtype, dimensions, shape, values);
    free(prefix);
}

static void write_whole_numbers(emission *e, const parameter *p, int dimensions,
                                const int64_t *shape, const int64_t *numbers)
{
    int64_t count = 1;
    for (int i = 0; i < dimensions; i++)
        count *= shape[i];
    double *values = must_allocate((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)numbers[i];
    write_values(e, p, dimensions, shape, values);
    free(values);
}

/* Writes the file of a parameter that has one. */
static void write_parameter_file(emission *e, const parameter *p)
{
    const atn_attention_desc *desc = &e->s.c.reference;
    const atn_tensor *t = (const atn_tensor *)((const char *)desc + p->offset);
    const atn_sampling *sampling = &desc->sampling;
    const atn_attention_shape *s = &e->s.c.shape;
    if (p->kind == PARAMETER_TENSOR && t->data)
        write_values(e, p, 3, (const int64_t[]){t->heads, t->rows, t->cols}, t->data);
    if (p->kind == PARAMETER_INDICES)
        write_whole_numbers(e, p, 2, (const int64_t[]){1, sampling->count}, sampling->indices);
    if (p->kind == PARAMETER_UNIFORMS)
        write_values(e, p, 2, (const int64_t[]){1, sampling->uniform_count}, sampling->uniforms);
    if (p->kind == PARAMETER_BUCKETS && desc->lsh.buckets)
        write_whole_numbers(e, p, 4,
                            (const int64_t[]){s->batch, s->heads, desc->lsh.rounds, s->tokens},
                            desc->lsh.buckets);
}

static void write_parameter(emission *e, const parameter *p)
{
    const atn_attention_desc *desc = &e->s.c.reference;
    write_parameter_file(e, p);
    char *text = parameter_text(p, desc);
    if (!text || (p->kind == PARAMETER_INTEGER && strcmp(text, "0") == 0)) {
        free(text);
        return;
    }
    if (p->kind == PARAMETER_FLAG)
        cJSON_AddBoolToObject(e->parameters, p->name, strcmp(text, "true") == 0);
    else if (p->kind == PARAMETER_NAME)
        cJSON_AddStringToObject(e->parameters, p->name, text);
    else
        cJSON_AddNumberToObject(e->parameters, p->name, strtod(text, NULL));
    char *word = must_format("%s=%s", p->name, text);
    cJSON_AddItemToArray(e->command, cJSON_CreateString("--param"));
    cJSON_AddItemToArray(e->command, cJSON_CreateString(word));
    free(word);
    free(text);
}

static void write_parameters(emission *e)
{
    atn_attention_desc *desc = &e->s.c.reference;
    atn_operator op = e->s.c.choice.op;
    for (const parameter *p = parameters; p->name; p++)
        if (parameter_is_used(p, desc))
            write_parameter(e, p);
    if (scale_is_of(op))
        cJSON_AddNumberToObject(
            e->parameters, "kernel_scale",
            atn_kernel_scale(desc->scale, desc->scale_value, e->s.c.shape.heads, e->s.c.shape.dim));
}

/* ---- Answers ---- */

static char *answer_name(result_kind kind)
{
    return kind == RESULT_OUTPUT ? must_format("output")
                                 : must_format("grad_%s", gradient_name(kind));
}

/* The relative error (Frobenius norm, the smallest over heads) that passes; negative where no
 * verdict is possible: the problem is ill-conditioned, or a trivial output would pass as well. */
static double least_tolerance(const result_verdict *v, int64_t heads)
{
    double least = INFINITY;
    for (int64_t head = 0; head < heads; head++) {
        const bounds *b = &v->bounds[head];
        least = !b->why && b->norm > 0 ? fmin(least, b->bound[0] / b->norm) : -1;
    }
    return least;
}

/* The tolerance of each result in each precision. */
static void write_tolerances(emission *e, atn_context *context, const result_group *known)
{
    static const atn_dtype precisions[] = {ATN_F64, ATN_F32, ATN_TF32, ATN_BF16, ATN_F16};
    cJSON *nodes[RESULT_COUNT];
    for (int i = 0; i < known->count; i++) {
        char *name = answer_name(known->kinds[i]);
        nodes[i] = cJSON_AddObjectToObject(e->tolerances, name);
        free(name);
    }
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        subject s = e->s;
        result_verdict v[RESULT_COUNT];
        result_group g = *known;
        for (int j = 0; j < g.count; j++)
            g.of[j] = &v[j];
        subject_claim(&s, precisions[i]);
        claim_another(context, &s, known, &g);
        for (int j = 0; j < g.count; j++) {
            double least = least_tolerance(&v[j], result_heads(&s.c, g.kinds[j]));
            cJSON_AddItemToObject(nodes[j], atn_dtype_name(precisions[i]),
                                  least > 0 ? cJSON_CreateNumber(least) : cJSON_CreateNull());
            claim_free(&v[j]);
        }
    }
}

/* Writes an answer as output.npy, grad_tokens.npy, ...; that of a parameter, which has no batch and
 * no layout, as heads x rows x cols. The gradient of keys that heads share has no option: `check`
 * does not take it. */
static void write_wanted(emission *e, result_kind kind, const char *name, const result_verdict *v)
{
    const attention_case *c = &e->s.c;
    bool output = kind == RESULT_OUTPUT, shared = kind == RESULT_KEYS || kind == RESULT_VALUES;
    int64_t shape[] = {c->shape.batch, c->shape.heads, result_rows(c, kind), result_cols(c, kind)};
    char *prefix = output ? must_format("%s", "") : must_format("%s=", gradient_name(kind));
    const char *option = output ? "--output" : "--gradient";
    cJSON *node = NULL;
    if (kind >= RESULT_PARAMETERS) {
        shape[1] = result_heads(c, kind);
        node = write_array(e, name, option, prefix, ATN_F64, 3, shape + 1, v->want);
    } else if (shared && case_plan_is_grouped(e->plan)) {
        double *sums = group_heads(e, shape[2] * shape[3], true, v->want);
        shape[1] = e->plan->key_heads;
        node = write_heads(e, name, NULL, "", ATN_F64, shape, sums);
        free(sums);
    } else
        node = write_heads(e, name, option, prefix, ATN_F64, shape, v->want);
    if (node)
        cJSON_AddStringToObject(node, "answer", v->exact ? "exact" : "baseline");
    if (node && v->status != ATN_OK) /* defined all the same, e.g. after too few steps */
        cJSON_AddStringToObject(node, "status", atn_status_message(v->status));
    free(prefix);
}

/* Writes the answers that the same calls compute. */
static void write_answers(emission *e, atn_context *context, int first, int end)
{
    result_verdict v[RESULT_COUNT] = {{0}};
    result_group g = {0};
    for (int kind = first; kind < end && e->code == EXIT_PASS; kind++)
        if (result_exists(&e->s.c, (result_kind)kind)) {
            g.kinds[g.count] = (result_kind)kind;
            g.of[g.count] = &v[g.count];
            g.count++;
        }
    if (g.count)
        e->code = find_wanted(context, &e->s, &g);
    for (int i = 0; i < g.count && e->code == EXIT_PASS; i++) {
        char *name = answer_name(g.kinds[i]);
        write_wanted(e, g.kinds[i], name, g.of[i]);
        free(name);
    }
    if (g.count && e->code == EXIT_PASS)
        write_tolerances(e, context, &g);
    for (int i = 0; i < g.count; i++)
        result_verdict_free(g.of[i]);
}

/* ---- A case ---- */

static void add_word(emission *e, const char *word)
{
    cJSON_AddItemToArray(e->command, cJSON_CreateString(word));
}

static void add_option(emission *e, const char *option, char *value)
{
    add_word(e, option);
    add_word(e, value);
    free(value);
}

/* Adds to the command the operator and what the files do not say: layout, grid, scale and
 * distance. */
static void start_command(emission *e, const atn_operator_info *info, int variant)
{
    const program_options *s = e->plan->s;
    const atn_attention_desc *desc = &e->s.c.reference;
    const atn_sampling *grid = &desc->sampling;
    bool soft = info->op == ATN_SOFT || info->op == ATN_SOFTPP;
    add_option(e, "--operator", must_format("%s/%s", info->name, info->variants[variant].name));
    if (s->layout.axes)
        add_option(e, "--layout", layout_name(&e->plan->layout));
    if (soft && grid->kind != ATN_SAMPLING_WINDOW)
        add_option(e, "--grid", must_format("%" PRId64 "x%" PRId64, grid->height, grid->width));
    else if (desc->cosformer.height > 0)
        add_option(
            e, "--grid",
            must_format("%" PRId64 "x%" PRId64, desc->cosformer.height, desc->cosformer.width));
    if (s->scale != ATN_SCALE_HEAD && scale_is_of(info->op))
        add_option(e, "--scale",
                   s->scale == ATN_SCALE_VALUE ? must_format("%.17g", s->scale_value)
                                               : must_format("embed"));
    if (s->distance != ATN_DISTANCE_DIRECT && distance_is_of(info->op))
        add_option(e, "--distance", must_format("%s", atn_distance_name(s->distance)));
}

static cJSON *size_node(const emission *e)
{
    const attention_case *c = &e->s.c;
    const atn_attention_shape *s = &c->shape;
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"batch", s->batch},
                 {"heads", s->heads},
                 {"tokens", s->tokens},
                 {"key_heads", e->plan->key_heads},
                 {"width", s->dim},
                 {"key_tokens", s->key_tokens},
                 {"value_width", s->value_dim}};
    cJSON *node = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        cJSON_AddNumberToObject(node, sizes[i].name, (double)sizes[i].value);
    cJSON_AddBoolToObject(node, "keys_are_tokens", !c->k);
    cJSON_AddBoolToObject(node, "causal", c->reference.causal);
    cJSON_AddBoolToObject(node, "padding", c->key_mask != NULL);
    return node;
}

static cJSON *start_case(emission *e, const atn_operator_info *info, int variant,
                         const case_point *point)
{
    cJSON *node = cJSON_CreateObject();
    char *order = layout_name(&e->plan->layout);
    cJSON_AddStringToObject(node, "name", e->name);
    cJSON_AddStringToObject(node, "operator", info->name);
    cJSON_AddStringToObject(node, "variant", info->variants[variant].name);
    cJSON_AddStringToObject(node, "description", info->variants[variant].description);
    cJSON_AddStringToObject(node, "formula", info->formula);
    cJSON_AddStringToObject(node, "source", info->source);
    cJSON_AddStringToObject(node, "version", ATN_VERSION);
    cJSON_AddStringToObject(node, "dtype", atn_dtype_name(e->plan->inputs));
    cJSON_AddStringToObject(node, "layout", order);
    cJSON_AddNumberToObject(node, "seed", (double)point->of[AXIS_SEED]);
    cJSON_AddItemToObject(node, "sizes", size_node(e));
    e->parameters = cJSON_AddObjectToObject(node, "parameters");
    const int64_t grid[] = {e->s.c.reference.sampling.height, e->s.c.reference.sampling.width};
    if (info->op == ATN_SOFT || info->op == ATN_SOFTPP)
        cJSON_AddItemToObject(e->parameters, "grid", shape_node(2, grid));
    e->files = cJSON_AddObjectToObject(node, "files");
    e->tolerances = cJSON_AddObjectToObject(node, "tolerance");
    e->command = cJSON_AddArrayToObject(node, "check");
    start_command(e, info, variant);
    free(order);
    return node;
}

/* Sets --param, which is given for one operator only. */
static int set_parameters(emission *e)
{
    int code = parameters_set(&e->plan->s->check.parameters, &e->s);
    e->s.c.choice.causal = e->s.c.reference.causal;
    e->s.judged = e->s.c;
    return code;
}

static int emit_case(const case_plan *plan, const contexts *with, const atn_operator_info *info,
                     int variant, const case_point *point, attention_case *c, cJSON *cases)
{
    emission e = {.folder = plan->s->emit_case,
                  .plan = plan,
                  .name = case_plan_name(plan, info, variant, point),
                  .s = {.c = *c, .grad_output = c->dout, .most_work = most_emission_work}};
    char *path = must_format("%s/%s", e.folder, e.name);
    e.code = set_parameters(&e);
    subject_claim(&e.s, ATN_F64);
    if (e.code == EXIT_PASS) {
        cJSON_AddItemToArray(cases, start_case(&e, info, variant, point));
        e.code = files_make_folder(e.folder);
    }
    if (e.code == EXIT_PASS)
        e.code = files_make_folder(path);
    write_inputs(&e);
    if (e.code == EXIT_PASS)
        write_parameters(&e);
    atn_context *context = is_worth_threads(with->single, &e.s.c) ? with->many : with->single;
    write_answers(&e, context, RESULT_OUTPUT, RESULT_TOKENS);
    write_answers(&e, context, RESULT_TOKENS, RESULT_COUNT);
    free(path);
    free(e.name);
    subject_free(&e.s);
    return e.code;
}

/* ---- All cases ---- */

static int write_manifest(const char *folder, const cJSON *manifest)
{
    new_file file = {0};
    int code = new_file_open(&file, folder, "manifest.json");
    char *text = cJSON_Print(manifest);
    if (code == EXIT_PASS) {
        fprintf(file.file, "%s\n", text);
        code = new_file_close(&file);
    }
    if (code == EXIT_PASS)
        code = new_file_publish(&file);
    new_file_free(&file);
    cJSON_free(text);
    return code;
}

static const char about[] =
    "Problems and their answers, rounded to f64: exact ones (dense, in long double), or, where "
    "that takes too long, a baseline, the library in f64; each file says which. layout: the "
    "order of the dimensions of tokens, keys, values, outputs and their gradients: batch, "
    "heads, n tokens, d width. Inputs are numbers that dtype holds; every file of them is f4 "
    "but for f64. Fewer key_heads than heads: head i takes key head i / (heads / key_heads), "
    "and the gradients of keys and values are sums over the heads that share them. tolerance: "
    "the relative error |yours - output| / |output| (Frobenius norms, of each batch entry and "
    "head) that rounding in that precision explains; null: nothing can be said. check: the "
    "arguments of attnum check for the answers themselves, --output and --gradient files to be "
    "replaced by yours.";

/* How many cases an operator cannot do, and what it lacks for the last of them. */
typedef struct {
    int count;
    const char *why;
} omission;

static int emit_operator(const case_plan *plan, const contexts *with, const atn_operator_info *info,
                         omission *left_out, cJSON *cases)
{
    int code = EXIT_PASS;
    for (int variant = 0; variant < info->variant_count; variant++)
        for (int64_t i = 0; i < case_plan_count(plan) && code == EXIT_PASS; i++) {
            if (!options_include_variant(plan->s, info, variant))
                continue;
            case_point point = case_plan_point(plan, i);
            attention_case c = case_plan_make(plan, &point, info->op, variant);
            const char *misfit = case_plan_misfit(plan, &point, &c);
            if (misfit)
                *left_out = (omission){left_out->count + 1, misfit};
            else
                code = emit_case(plan, with, info, variant, &point, &c, cases);
            attention_case_free(&c);
        }
    return code;
}

static int report_cases(const char *folder, int count, const omission *left_out)
{
    int last = -1;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        last = left_out[op].count ? op : last;
    if (count == 0) {
        report_error("--emit-case: no operator can do it; %s: %s",
                     atn_operator_get((atn_operator)last)->name, left_out[last].why);
        return EXIT_USAGE;
    }
    printf("%d case%s in %s\n", count, count == 1 ? "" : "s", folder);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++)
        if (left_out[op].count)
            printf("left out: %d of %s: %s\n", left_out[op].count,
                   atn_operator_get((atn_operator)op)->name, left_out[op].why);
    return EXIT_PASS;
}

static int emit_plan(const case_plan *plan, const contexts *with)
{
    omission left_out[ATN_OPERATOR_COUNT] = {0};
    cJSON *manifest = cJSON_CreateObject();
    cJSON_AddStringToObject(manifest, "attnum", ATN_VERSION);
    cJSON_AddStringToObject(manifest, "about", about);
    cJSON *cases = cJSON_AddArrayToObject(manifest, "cases");
    int code = EXIT_PASS;
    for (int op = 0; op < ATN_OPERATOR_COUNT && code == EXIT_PASS; op++)
        code = emit_operator(plan, with, atn_operator_get((atn_operator)op), &left_out[op], cases);
    int count = cJSON_GetArraySize(cases);
    if (code == EXIT_PASS && count > 0)
        code = write_manifest(plan->s->emit_case, manifest);
    if (code == EXIT_PASS)
        code = report_cases(plan->s->emit_case, count, left_out);
    cJSON_Delete(manifest);
    return code;
}

static int make_contexts(const program_options *s, contexts *to)
{
    atn_context_options single = {.threads = 1, .isa = s->isa},
                        many = {.threads = s->threads, .isa = s->isa};
    if (atn_context_create(&single, &to->single) == ATN_OK &&
        atn_context_create(&many, &to->many) == ATN_OK)
        return EXIT_PASS;
    report_error("the library: no context");
    return EXIT_ENVIRONMENT;
}

/* An option of the Gaussian kernel that is given although none of the operators has such a kernel:
 * it would be ignored. Null: there is none. */
static const char *ignored_option(const program_options *s)
{
    bool scale = false, distance = false;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count; variant++) {
            bool named = options_include_variant(s, info, variant);
            scale |= named && scale_is_of(info->op);
            distance |= named && distance_is_of(info->op);
        }
    }
    return s->scale != ATN_SCALE_HEAD && !scale              ? "scale"
           : s->distance != ATN_DISTANCE_DIRECT && !distance ? "distance"
                                                             : NULL;
}

int emit_cases(const program_options *s)
{
    case_plan plan;
    contexts with = {0};
    int code = case_plan_read(s, &plan);
    const char *ignored = ignored_option(s);
    if (code == EXIT_PASS && ignored) {
        report_error("--%s: none of these operators takes it", ignored);
        code = EXIT_USAGE;
    }
    if (code == EXIT_PASS && s->check.parameters.count && s->operators.count != 1) {
        report_error("--param: expected one --operator, whose parameters they are");
        code = EXIT_USAGE;
    }
    if (code == EXIT_PASS)
        code = make_contexts(s, &with);
    if (code == EXIT_PASS)
        code = emit_plan(&plan, &with);
    atn_context_free(with.many);
    atn_context_free(with.single);
    case_plan_free(&plan);
    return code;
}
