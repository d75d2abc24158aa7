/* SPDX-License-Identifier: BSD-3-Clause */
/* Small problems with their exact answers, for kernels in any language: a folder of .npy files for
 * each variant, and manifest.json, which says what they are. */
#include <attnum/version.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "common/files.h"
#include "common/report.h"
#include "common/sha256.h"

enum { BATCH = 1, HEADS = 2, TOKENS = 16, WIDTH = 8 };

/* A case being written. */
typedef struct {
    const char *folder; /* of all cases */
    char *name;         /* of this one's folder: "soft-paper" */
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

/* Values as name.npy, an entry in the manifest, and the command's option, whose value is prefix and
 * file. */
static void write_array(emission *e, const char *name, const char *option, const char *prefix,
                        atn_dtype dtype, int dimensions, const int64_t *shape, const double *values)
{
    int64_t count = 1;
    for (int i = 0; i < dimensions; i++)
        count *= shape[i];
    if (e->code != EXIT_PASS)
        return;
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
    char *word = must_format("%s%s", prefix, local);
    cJSON_AddItemToArray(e->command, cJSON_CreateString(option));
    cJSON_AddItemToArray(e->command, cJSON_CreateString(word));
    free(word);
    free(typed), free(local), free(path), free(file), free(folder);
}

static void write_inputs(emission *e)
{
    const attention_case *c = &e->s.c;
    const atn_attention_shape *s = &c->shape;
    const int64_t tokens[] = {s->batch, s->heads, s->tokens, s->dim};
    const int64_t keys[] = {s->batch, s->heads, s->key_tokens, s->dim};
    const int64_t values[] = {s->batch, s->heads, s->key_tokens, s->value_dim};
    const int64_t outputs[] = {s->batch, s->heads, s->tokens, s->value_dim};
    write_array(e, "tokens", "--tokens", "", ATN_F32, 4, tokens, c->q);
    if (c->k)
        write_array(e, "keys", "--keys", "", ATN_F32, 4, keys, c->k);
    write_array(e, "values", "--values", "", ATN_F32, 4, values, c->v);
    write_array(e, "grad_output", "--grad-output", "", ATN_F32, 4, outputs, c->dout);
}

/* ---- Parameters ---- */

static void write_parameter(emission *e, const parameter *p)
{
    const atn_attention_desc *desc = &e->s.c.reference;
    const atn_tensor *t = (const atn_tensor *)((const char *)desc + p->offset);
    if (p->kind == PARAMETER_TENSOR && t->data) {
        const int64_t shape[] = {t->heads, t->rows, t->cols};
        char *prefix = must_format("%s=", p->name);
        write_array(e, p->name, "--param", prefix, ATN_F32, 3, shape, t->data);
        free(prefix);
    }
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
        if (parameter_is_of(p, op))
            write_parameter(e, p);
    if (op == ATN_SOFT || op == ATN_SOFTPP || op == ATN_GAUSSIAN || op == ATN_RFF)
        cJSON_AddNumberToObject(
            e->parameters, "kernel_scale",
            atn_kernel_scale(desc->scale, desc->scale_value, e->s.c.shape.heads, e->s.c.shape.dim));
}

/* ---- Answers ---- */

/* The relative error (Frobenius, of a head) that passes, for each precision; null where nothing can
 * be said: ill-conditioned, or a trivial output would pass as well. */
static cJSON *tolerance_node(atn_context *context, const subject *given, result_kind kind,
                             const result_verdict *known)
{
    static const atn_dtype precisions[] = {ATN_F64, ATN_F32, ATN_TF32, ATN_BF16, ATN_F16};
    cJSON *node = cJSON_CreateObject();
    int64_t heads = result_heads(&given->c, kind);
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        subject s = *given;
        double least = INFINITY;
        result_verdict v;
        subject_claim(&s, precisions[i]);
        claim_another(context, &s, kind, known, &v);
        for (int64_t head = 0; head < heads; head++) {
            const bounds *b = &v.bounds[head];
            if (!b->why && b->norm > 0)
                least = fmin(least, b->bound[0] / b->norm);
            else
                least = -1;
        }
        claim_free(&v);
        cJSON_AddItemToObject(node, atn_dtype_name(precisions[i]),
                              least > 0 ? cJSON_CreateNumber(least) : cJSON_CreateNull());
    }
    return node;
}

/* An answer as output.npy, grad_tokens.npy, ..., batch x heads x rows x cols; of a parameter, which
 * has no batch, the last three. */
static void write_wanted(emission *e, result_kind kind, const char *name, const double *want)
{
    const attention_case *c = &e->s.c;
    bool shared = kind >= RESULT_PARAMETERS, output = kind == RESULT_OUTPUT;
    const int64_t shape[] = {c->shape.batch, shared ? result_heads(c, kind) : c->shape.heads,
                             result_rows(c, kind), result_cols(c, kind)};
    char *prefix = output ? must_format("%s", "") : must_format("%s=", gradient_name(kind));
    write_array(e, name, output ? "--output" : "--gradient", prefix, ATN_F64, shared ? 3 : 4,
                shared ? shape + 1 : shape, want);
    free(prefix);
}

static void write_answer(emission *e, atn_context *context, result_kind kind)
{
    result_verdict v = {.want = NULL};
    if (e->code != EXIT_PASS || !result_exists(&e->s.c, kind))
        return;
    double *none = must_allocate((size_t)result_size(&e->s.c, kind), sizeof *none);
    char *name =
        kind == RESULT_OUTPUT ? must_format("output") : must_format("grad_%s", gradient_name(kind));
    e->s.results[kind] = none;
    e->code = judge_result(context, &e->s, kind, &v);
    e->s.results[kind] = NULL;
    if (e->code == EXIT_PASS && v.status != ATN_OK) {
        report_error("%s: %s: %s", e->name, name, atn_status_message(v.status));
        e->code = EXIT_CHECK;
    }
    if (e->code == EXIT_PASS) {
        write_wanted(e, kind, name, v.want);
        cJSON_AddItemToObject(e->tolerances, name, tolerance_node(context, &e->s, kind, &v));
    }
    result_verdict_free(&v);
    free(name);
    free(none);
}

/* ---- A case ---- */

/* Numbers that every type holds: those of bf16. Parameters that may be left out are there where a
 * kernel has to have them. */
static attention_case make_case(atn_operator op, int variant)
{
    attention_choice choice = {.op = op,
                               .variant = variant,
                               .dtype = ATN_F32,
                               .shape = {BATCH, HEADS, TOKENS, WIDTH, WIDTH, 0},
                               .cross = true,
                               .optional = op == ATN_XNORM || op == ATN_XCA || op == ATN_LINFORMER,
                               .sampling = ATN_SAMPLING_POOL,
                               .seed = 1,
                               .storage = ATN_STORAGE_BF16};
    attention_case c = attention_case_make(&choice);
    c.reference.storage = ATN_STORAGE_NATIVE;
    c.reference.dtype = ATN_F64;
    c.reference.sampling.count = c.reference.sampling.steps = 0; /* of other samplings */
    return c;
}

static void add_word(emission *e, const char *word)
{
    cJSON_AddItemToArray(e->command, cJSON_CreateString(word));
}

static cJSON *start_case(emission *e, const atn_operator_info *info, int variant)
{
    cJSON *node = cJSON_CreateObject();
    char *name = must_format("%s/%s", info->name, info->variants[variant].name);
    cJSON_AddStringToObject(node, "operator", info->name);
    cJSON_AddStringToObject(node, "variant", info->variants[variant].name);
    cJSON_AddStringToObject(node, "description", info->variants[variant].description);
    cJSON_AddStringToObject(node, "formula", info->formula);
    cJSON_AddStringToObject(node, "source", info->source);
    e->parameters = cJSON_AddObjectToObject(node, "parameters");
    const int64_t grid[] = {e->s.c.reference.sampling.height, e->s.c.reference.sampling.width};
    if (info->op == ATN_SOFT || info->op == ATN_SOFTPP)
        cJSON_AddItemToObject(e->parameters, "grid", shape_node(2, grid));
    e->files = cJSON_AddObjectToObject(node, "files");
    e->tolerances = cJSON_AddObjectToObject(node, "tolerance");
    e->command = cJSON_AddArrayToObject(node, "check");
    add_word(e, "--operator");
    add_word(e, name);
    free(name);
    return node;
}

static int emit_case(const char *folder, atn_context *context, const atn_operator_info *info,
                     int variant, cJSON *cases)
{
    attention_case c = make_case(info->op, variant);
    emission e = {.folder = folder,
                  .name = must_format("%s-%s", info->name, info->variants[variant].name),
                  .s = {.c = c, .judged = c, .grad_output = c.dout}};
    subject_claim(&e.s, ATN_F64);
    char *path = must_format("%s/%s", folder, e.name);
    cJSON_AddItemToArray(cases, start_case(&e, info, variant));
    e.code = files_make_folder(path);
    write_inputs(&e);
    write_parameters(&e);
    for (int kind = 0; kind < RESULT_COUNT; kind++)
        write_answer(&e, context, (result_kind)kind);
    free(path);
    free(e.name);
    attention_case_free(&c);
    return e.code;
}

/* ---- All of them ---- */

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
    "Problems and their exact answers (dense, in long double, rounded to f64). Arrays are batch x "
    "heads x tokens x width, rows first; inputs are numbers that bf16 holds. tolerance: the "
    "relative error |yours - output| / |output| (Frobenius norms, of each batch entry and head) "
    "that rounding in that precision explains; null: nothing can be said. check: the arguments of "
    "attnum check for the answers themselves, --output and --gradient files to be replaced by yours.";

int emit_cases(const settings *s)
{
    atn_context *context = NULL;
    atn_context_options options = {.threads = 1, .isa = s->isa}; /* small problems */
    if (atn_context_create(&options, &context) != ATN_OK) {
        report_error("the library: no context");
        return EXIT_ENVIRONMENT;
    }
    cJSON *manifest = cJSON_CreateObject();
    cJSON_AddStringToObject(manifest, "attnum", ATN_VERSION);
    cJSON_AddStringToObject(manifest, "about", about);
    cJSON *cases = cJSON_AddArrayToObject(manifest, "cases");
    int code = files_make_folder(s->emit_case);
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int variant = 0; variant < info->variant_count && code == EXIT_PASS; variant++)
            if (settings_take_variant(s, info, variant))
                code = emit_case(s->emit_case, context, info, variant, cases);
    }
    if (code == EXIT_PASS)
        code = write_manifest(s->emit_case, manifest);
    if (code == EXIT_PASS)
        printf("%d case%s in %s\n", cJSON_GetArraySize(cases),
               cJSON_GetArraySize(cases) == 1 ? "" : "s", s->emit_case);
    cJSON_Delete(manifest);
    atn_context_free(context);
    return code;
}
