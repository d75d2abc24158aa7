/* SPDX-License-Identifier: BSD-3-Clause */
#include "metadata.h"

#include <certified.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <gsl/gsl_version.h>
#include <inttypes.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "blas.h"
#include "build_config.h"
#include "commit.h"
#include "files.h"
#include "report.h"
#include "sha256.h"
#include "utf8.h"

/* JSON is UTF-8; names of files need not be. */
static cJSON *text_node(const char *text)
{
    char *valid = must_format("%s", text);
    for (size_t i = 0, length; valid[i]; i += length) {
        length = utf8_length(valid + i);
        if (length == 0) {
            valid[i] = '?';
            length = 1;
        }
    }
    cJSON *node = cJSON_CreateString(valid);
    free(valid);
    return node;
}

static void add_text(cJSON *object, const char *name, const char *text)
{
    cJSON_AddItemToObject(object, name, text ? text_node(text) : cJSON_CreateNull());
}

/* Null if this machine does not report it. */
static char *cpu_model(void)
{
    static const char key[] = "model name";
    char line[512], *model = NULL;
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file && errno == ENOMEM)
        end_program("out of memory: the processor's name");
    while (file && !model && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        line[strcspn(line, "\n")] = '\0';
        if (colon && strncmp(line, key, sizeof key - 1) == 0)
            model = must_format("%s", colon + 1 + strspn(colon + 1, " "));
    }
    if (file)
        fclose(file);
    return model;
}

static cJSON *columns_node(const output_spec *output)
{
    static const char *const datatypes[] = {[COLUMN_TEXT] = "string",
                                            [COLUMN_INTEGER] = "integer",
                                            [COLUMN_REAL] = "double",
                                            [COLUMN_BOOLEAN] = "boolean"};
    cJSON *columns = cJSON_CreateArray();
    for (int i = 0; i < output->column_count; i++) {
        const column *c = &output->columns[i];
        cJSON *node = cJSON_CreateObject();
        add_text(node, "name", c->name);
        add_text(node, "titles", c->name);
        add_text(node, "dc:description", c->description);
        add_text(node, "datatype", datatypes[c->type]);
        if (c->unit && *c->unit)
            add_text(node, "unit", c->unit);
        cJSON_AddItemToArray(columns, node);
    }
    return columns;
}

static cJSON *blas_node(void)
{
    blas_description d = blas_describe();
    cJSON *blas = cJSON_CreateObject();
    add_text(blas, "config", d.config);
    add_text(blas, "core", d.core);
    add_text(blas, "parallel", d.parallel);
    cJSON_AddItemToObject(blas, "threads",
                          d.threads > 0 ? cJSON_CreateNumber(d.threads) : cJSON_CreateNull());
    add_text(blas, "file", d.file);
    add_text(blas, "lapack_file", d.lapack_file);
    return blas;
}

static void add_versions(cJSON *run)
{
    lapack_int major, minor, patch;
    LAPACKE_ilaver(&major, &minor, &patch);
    char *lapack = must_format("%d.%d.%d", (int)major, (int)minor, (int)patch);
    add_text(run, "version", ATN_VERSION);
    add_text(run, "compiler", BUILD_COMPILER);
    add_text(run, "flags", BUILD_FLAGS);
    cJSON_AddItemToObject(run, "blas", blas_node());
    add_text(run, "lapack", lapack);
    add_text(run, "gsl", gsl_version);
    add_text(run, "certify", ref_certify_library());
    free(lapack);
}

static cJSON *seeds_node(const program_options *s)
{
    cJSON *seeds = cJSON_CreateArray();
    for (int i = 0; i < s->seeds.count; i++) {
        char digits[32]; /* as raw text, because cJSON's numbers are doubles */
        snprintf(digits, sizeof digits, "%" PRId64, s->seeds.items[i]);
        cJSON_AddItemToArray(seeds, cJSON_CreateRaw(digits));
    }
    return seeds;
}

static cJSON *inputs_node(const experiment *e, const void *state)
{
    const char *name, *sha256;
    cJSON *inputs = cJSON_CreateArray();
    for (int i = 0; e->input && e->input(state, i, &name, &sha256); i++) {
        cJSON *node = cJSON_CreateObject();
        add_text(node, "name", name);
        add_text(node, "sha256", sha256 && *sha256 ? sha256 : NULL);
        cJSON_AddItemToArray(inputs, node);
    }
    return inputs;
}

static void hash_text(const char *text, char hex[SHA256_HEX_SIZE])
{
    struct sha256_ctx sha256;
    sha256_init(&sha256);
    sha256_update(&sha256, strlen(text), (const uint8_t *)text);
    sha256_hex(&sha256, hex);
}

/* The name of the device; null for the CPU. */
static cJSON *gpu_node(atn_device device)
{
    atn_device_info info;
    if (device == ATN_CPU || atn_device_describe(device, 0, &info) != ATN_OK)
        return cJSON_CreateNull();
    cJSON *gpu = cJSON_CreateObject();
    add_text(gpu, "name", info.name);
    cJSON_AddNumberToObject(gpu, "capability", info.capability);
    cJSON_AddNumberToObject(gpu, "multiprocessors", info.multiprocessors);
    cJSON_AddNumberToObject(gpu, "memory_bytes", (double)info.memory_bytes);
    cJSON_AddNumberToObject(gpu, "driver", info.driver);
    cJSON_AddNumberToObject(gpu, "runtime", info.runtime);
    return gpu;
}

/* isa: null if this machine lacks it, where shards of others are merged. */
static void add_machine(cJSON *run, const program_options *s)
{
    char *cpu = cpu_model();
    atn_isa isa;
    bool here = atn_isa_choose(s->isa, &isa, NULL) == ATN_OK;
    add_text(run, "cpu", cpu);
    add_text(run, "isa", here ? atn_isa_name(isa) : NULL);
    cJSON_AddItemToObject(run, "gpu", gpu_node(s->device));
    free(cpu);
}

/* As one line, to be freed. */
static char *print_line(const cJSON *node)
{
    char *printed = cJSON_PrintUnformatted(node);
    char *line = must_format("%s", printed);
    cJSON_free(printed);
    return line;
}

/* Of objects the last member that differs is named: of BLAS its core, not the description, which
 * has it too. */
static char *value_difference(const char *what, const cJSON *x, const cJSON *y)
{
    const cJSON *item, *of_x = x, *of_y = y;
    const char *name = NULL;
    if (x && y && cJSON_Compare(x, y, true))
        return NULL;
    if (cJSON_IsObject(x) && cJSON_IsObject(y))
        cJSON_ArrayForEach(item, x)
        {
            const cJSON *other = cJSON_GetObjectItem(y, item->string);
            if (other && !cJSON_Compare(item, other, true)) {
                name = item->string;
                of_x = item;
                of_y = other;
            }
        }
    char *before = of_x ? print_line(of_x) : must_format("(none)");
    char *here = of_y ? print_line(of_y) : must_format("(none)");
    char *text =
        must_format("%s%s%s %s, here %s", what, name ? " " : "", name ? name : "", before, here);
    free(before);
    free(here);
    return text;
}

/* The first of `count` members of `run` that differs. */
static char *first_difference(const char *run, const char *other, int count)
{
    static const char *const members[][2] = {
        {"isa", "instruction set"}, {"blas", "BLAS"}, {"gpu", "GPU"}, {"cpu", "processor"}};
    cJSON *a = cJSON_Parse(run), *b = cJSON_Parse(other);
    char *difference = NULL;
    for (int i = 0; i < count && !difference; i++)
        difference = value_difference(members[i][1], cJSON_GetObjectItem(a, members[i][0]),
                                      cJSON_GetObjectItem(b, members[i][0]));
    cJSON_Delete(a);
    cJSON_Delete(b);
    return difference;
}

char *metadata_kernel_difference(const char *run, const char *other)
{
    return first_difference(run, other, 3);
}

char *metadata_machine_difference(const char *run, const char *other)
{
    return first_difference(run, other, 4);
}

static cJSON *options_node(const program_options *s)
{
    cJSON *options = cJSON_CreateArray();
    for (int i = 0; i < s->kept.count; i++)
        cJSON_AddItemToArray(options, text_node(s->kept.items[i]));
    return options;
}

static cJSON *run_node(const experiment *e, const program_options *s, const void *state,
                       const char *fingerprint)
{
    char hash[SHA256_HEX_SIZE];
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    cJSON *run = cJSON_CreateObject();
    add_text(run, "command", s->command);
    add_text(run, "experiment", e->name);
    cJSON_AddItemToObject(run, "options", options_node(s));
    add_versions(run);
    add_text(run, "commit", BUILD_COMMIT);
    cJSON_AddNumberToObject(run, "threads", s->threads);
    add_machine(run, s);
    cJSON_AddItemToObject(run, "seeds", seeds_node(s));
    cJSON_AddItemToObject(run, "inputs", inputs_node(e, state));
    add_text(
        run, "inputs_note",
        "photos: pixels through a random projection; trained: heads of small networks that "
        "attnum train trained; other names: formulas; what a .npy file holds is its owner's to "
        "say");
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    add_text(run, "date", date);
    hash_text(fingerprint, hash);
    add_text(run, "fingerprint", hash);
    return run;
}

char *metadata_run(const experiment *e, const program_options *s, const void *state,
                   const char *fingerprint)
{
    char *number = must_format("%" PRId64 "/%" PRId64, s->shard, s->shards);
    cJSON *run = run_node(e, s, state, fingerprint);
    if (s->shards)
        add_text(run, "shard", number);
    char *line = print_line(run);
    cJSON_Delete(run);
    free(number);
    return line;
}

/* How the shards were run: with the machine and the time, which the fields about the merge do not
 * repeat. A shard of which several copies were merged is there once. */
static cJSON *shards_node(const program_options *s, const run_facts *facts)
{
    cJSON *shards = cJSON_CreateArray();
    for (int i = 0; i < facts->shard_count; i++) {
        int first = 0;
        while (strcmp(facts->shards[first].run, facts->shards[i].run) != 0)
            first++;
        if (first < i)
            continue;
        cJSON *run = cJSON_Parse(facts->shards[i].run);
        /* in the fingerprint, where they are not rounded to doubles */
        cJSON_DeleteItemFromObject(run, "seeds");
        cJSON_AddItemToObject(run, "seeds", seeds_node(s));
        cJSON_AddItemToArray(shards, run);
    }
    return shards;
}

/* The bytes and the SHA-256 of a file; false, reported, if it cannot be read. */
static bool measure_file(const char *path, double *bytes, char hex[SHA256_HEX_SIZE])
{
    struct sha256_ctx sha256;
    struct stat status;
    sha256_init(&sha256);
    if (sha256_add_file(&sha256, path) != EXIT_PASS || stat(path, &status) != 0)
        return false;
    sha256_hex(&sha256, hex);
    *bytes = (double)status.st_size;
    return true;
}

/* The description of a table, without how it was made. */
static cJSON *table_node(const experiment *e, const output_spec *o)
{
    char *url = must_format("%s.csv", o->name);
    cJSON *root = cJSON_CreateObject();
    add_text(root, "@context", "http://www.w3.org/ns/csvw");
    add_text(root, "url", url);
    add_text(root, "dc:title", e->summary);
    add_text(root, "dc:description", o->description);
    add_text(root, "dc:source", e->source);
    cJSON *schema = cJSON_AddObjectToObject(root, "tableSchema");
    cJSON_AddItemToObject(schema, "columns", columns_node(o));
    free(url);
    return root;
}

/* Writes and frees it. Write errors stay with the file. */
static void write_node(cJSON *root, FILE *file)
{
    char *text = cJSON_Print(root);
    fprintf(file, "%s\n", text);
    cJSON_free(text);
    cJSON_Delete(root);
}

int metadata_write(const experiment *e, const program_options *s, const void *state, int output,
                   const run_facts *facts, const char *csv, FILE *file)
{
    double bytes;
    char hex[SHA256_HEX_SIZE];
    if (!measure_file(csv, &bytes, hex))
        return EXIT_ENVIRONMENT;
    cJSON *root = table_node(e, &e->outputs[output]);
    cJSON_AddNumberToObject(root, "bytes", bytes);
    add_text(root, "sha256", hex);
    cJSON *run = run_node(e, s, state, facts->fingerprint);
    cJSON_AddNumberToObject(run, "exit_code", facts->code);
    if (facts->seconds > 0)
        cJSON_AddNumberToObject(run, "seconds", round(10 * facts->seconds) / 10);
    if (facts->resumed > 0) /* the seconds are without those of these points */
        cJSON_AddNumberToObject(run, "resumed_points", (double)facts->resumed);
    if (facts->shard_count)
        cJSON_AddItemToObject(run, "shards", shards_node(s, facts));
    cJSON_AddItemToObject(root, "run", run);
    write_node(root, file);
    return EXIT_PASS;
}

void metadata_write_kept(const experiment *e, const output_spec *o, const void *state,
                         const char *commit, const char *reason, FILE *file)
{
    cJSON *root = table_node(e, o), *kept = cJSON_AddObjectToObject(root, "kept");
    add_text(kept, "reason", reason);
    add_text(kept, "commit", commit);
    add_versions(kept);
    cJSON_AddItemToObject(kept, "inputs", inputs_node(e, state));
    write_node(root, file);
}

/* Null if there is no such file, or it holds no JSON. */
static cJSON *read_json(const char *path)
{
    size_t size;
    char *text = files_read(path, NULL, &size);
    cJSON *root = text ? cJSON_Parse(text) : NULL;
    free(text);
    return root;
}

/* Whether the metadata belong to the CSV in its current form; *read: false, reported, if that
 * cannot be read. */
static bool is_of_csv(const cJSON *root, const char *csv, bool *read)
{
    double bytes;
    char hex[SHA256_HEX_SIZE];
    const cJSON *size = cJSON_GetObjectItem(root, "bytes");
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItem(root, "sha256"));
    *read = measure_file(csv, &bytes, hex);
    return *read && sha256 && cJSON_IsNumber(size) && bytes == size->valuedouble &&
           strcmp(sha256, hex) == 0;
}

int metadata_read(const char *path, const char *csv, cJSON **metadata, bool *of_csv)
{
    size_t size;
    bool exists = access(path, F_OK) == 0, read = true;
    char *text = exists ? files_read(path, "a readable file", &size) : NULL;
    *metadata = text ? cJSON_Parse(text) : NULL;
    *of_csv = access(csv, F_OK) == 0 && is_of_csv(*metadata, csv, &read);
    read = read && (text || !exists);
    free(text);
    return read ? EXIT_PASS : EXIT_ENVIRONMENT;
}

bool metadata_matches(const char *path, const char *csv, const char *fingerprint, int *code)
{
    char hash[SHA256_HEX_SIZE];
    hash_text(fingerprint, hash);
    cJSON *root = read_json(path);
    const cJSON *run = cJSON_GetObjectItem(root, "run");
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(run, "fingerprint"));
    const cJSON *exit_code = cJSON_GetObjectItem(run, "exit_code");
    double value = cJSON_GetNumberValue(exit_code);
    bool published = value == EXIT_PASS || value == EXIT_CHECK || value == EXIT_SKIPPED;
    bool read;
    bool same = found && strcmp(found, hash) == 0 && published && is_of_csv(root, csv, &read);
    if (same)
        *code = (int)value;
    cJSON_Delete(root);
    return same;
}
