/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum merge FOLDER...`: finds shards, sets up the run of each experiment from their options,
 * and lets the engine (experiment_merge) check and publish it. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/growth.h"
#include "common/experiment.h"
#include "common/metadata.h"
#include "common/printout.h"
#include "common/report.h"
#include "common/signals.h"
#include "merge/merge.h"
#include "train/train.h"

/* The values that the merge needs from a shard's line of JSON. */
typedef struct {
    cJSON *run;
    const experiment *e;
} shard_run;

/* ---- Reading shards ---- */

/* The experiments of verbs that take --shard; all others are in the registry. */
static const struct {
    const experiment *e;
    const verb *verb;
} of_verbs[] = {{&bench, &bench_verb}, {&bench_growth, &bench_verb}, {&train, &train_verb}};
enum { OF_VERBS = sizeof of_verbs / sizeof *of_verbs };

/* The experiment of that name, or null. *of_verb: the verb that runs it; null: `run`. */
static const experiment *find_experiment(const char *name, const verb **of_verb)
{
    *of_verb = NULL;
    for (int i = 0; i < OF_VERBS; i++)
        if (strcmp(of_verbs[i].e->name, name) == 0) {
            *of_verb = of_verbs[i].verb;
            return of_verbs[i].e;
        }
    for (int i = 0; experiments[i]; i++)
        if (strcmp(experiments[i]->name, name) == 0)
            return experiments[i];
    return NULL;
}

static bool has_options(const cJSON *run)
{
    const cJSON *options = cJSON_GetObjectItem(run, "options"), *option;
    cJSON_ArrayForEach(option,
                       options) if (!cJSON_IsString(option) ||
                                    strncmp(option->valuestring, "--", 2) != 0) return false;
    return cJSON_IsArray(options);
}

static int open_run(shard_run *r, const shard_file *f)
{
    r->run = cJSON_Parse(f->run);
    const char *version = cJSON_GetStringValue(cJSON_GetObjectItem(r->run, "version"));
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(r->run, "experiment"));
    const verb *of_verb;
    r->e = name ? find_experiment(name, &of_verb) : NULL;
    if (!version || strcmp(version, ATN_VERSION) != 0)
        report_error("%s: is of version %s, expected " ATN_VERSION, f->path,
                     version ? version : "(none)");
    else if (!r->e)
        report_error("%s: is of '%s', expected an experiment there is", f->path, name ? name : "");
    else if (!has_options(r->run))
        report_error("%s: expected a list of options in its second line", f->path);
    else
        return EXIT_PASS;
    return EXIT_ENVIRONMENT;
}

/* Reads the options into s, as kept ones. words has pointers into the JSON, and must be freed after
 * s. */
static int parse_run(const shard_run *r, program_options *s, const char *out, char ***words)
{
    const cJSON *options = cJSON_GetObjectItem(r->run, "options"), *option;
    option_id taken[OPTION_COUNT + 1] = {OPTION_END};
    const verb *of_verb;
    int count = 0;
    find_experiment(r->e->name, &of_verb);
    options_add(taken, of_verb ? of_verb->options : r->e->options);
    if (!of_verb)
        options_add(taken, run_options);
    *words = must_allocate((size_t)cJSON_GetArraySize(options) + 1, sizeof **words);
    cJSON_ArrayForEach(option, options)(*words)[count++] = option->valuestring;
    return options_parse_kept(s, out, taken, count, *words);
}

/* ---- The shards of one experiment ---- */

typedef struct {
    const experiment *e;
    int count;
    shard_file *files;
    shard_run *runs;
} group;

/* Checks that shards belong together. Times of different machines must not be in one table. */
static int check_group(const group *g)
{
    const shard_file *first = &g->files[0];
    for (int i = 1; i < g->count; i++) {
        const shard_file *f = &g->files[i];
        const char *wrong = NULL;
        char *machine = g->e->alone ? metadata_machine_difference(f->run, first->run) : NULL;
        if (f->shards != first->shards)
            wrong = "is one of another number of shards";
        else if (strcmp(f->fingerprint, first->fingerprint) != 0)
            wrong = "was run with other options, version or input";
        else if (machine)
            wrong = "measures another machine";
        free(machine);
        if (wrong) {
            report_error("%s: %s than %s; merge one run at a time", f->path, wrong, first->path);
            return EXIT_ENVIRONMENT;
        }
    }
    return EXIT_PASS;
}

/* Notes if BLAS kernels or instruction sets differ: they round differently, so that the merged
 * results are not bitwise those of one machine. */
static void note_kernels(const group *g)
{
    static const char *const names[][2] = {{"blas", "BLAS kernels"}, {"isa", "instruction sets"}};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const cJSON *first = cJSON_GetObjectItem(g->runs[0].run, names[n][0]);
        bool same = true;
        for (int i = 1; i < g->count && same; i++)
            same = cJSON_Compare(first, cJSON_GetObjectItem(g->runs[i].run, names[n][0]), true);
        if (!same)
            report_note("%s: shards ran with different %s, which the metadata name: last digits "
                        "may depend on that",
                        g->e->name, names[n][1]);
    }
}

static bool inputs_are_here(const program_options *s)
{
    for (int i = 0; i < s->inputs.count; i++)
        if (options_names_file(s->inputs.items[i]) && access(s->inputs.items[i], R_OK) != 0)
            return false;
    return true;
}

/* Reads the options of a group. Files of tokens may have had other paths on each machine, so the
 * first shard is used whose paths exist here; the fingerprint contains their SHA-256. */
static int parse_group(const group *g, program_options *s, const char *out, char ***words)
{
    int code = EXIT_PASS;
    for (int i = 0; i <= g->count; i++) {
        code = parse_run(&g->runs[i % g->count], s, out, words);
        if (code != EXIT_PASS || inputs_are_here(s) || i == g->count)
            break;
        options_free(s);
        free(*words);
    }
    return code;
}

static int merge_group(const group *g, const program_options *merge, const char *folder)
{
    program_options s;
    char **words = NULL;
    int code = check_group(g);
    if (code != EXIT_PASS)
        return code;
    code = parse_group(g, &s, merge->out, &words);
    if (code == EXIT_PASS) {
        note_kernels(g);
        const verb *of_verb;
        find_experiment(g->e->name, &of_verb);
        char *made_by =
            of_verb ? must_format("%s", of_verb->name) : must_format("run %s", g->e->name);
        free(s.command);
        s.command = must_format("%s", merge->command);
        code = experiment_merge(g->e, &s, made_by, folder, g->files, g->count);
        free(made_by);
        options_free(&s);
    }
    free(words);
    return code;
}

/* Merges the shards of one experiment, and marks them as done by setting their experiment to null.
 */
static int merge_experiment(const shard_list *list, shard_run *runs, const experiment *e,
                            const program_options *s, const char *folder)
{
    group g = {.e = e};
    g.files = must_allocate((size_t)list->count, sizeof *g.files);
    g.runs = must_allocate((size_t)list->count, sizeof *g.runs);
    for (int i = 0; i < list->count; i++)
        if (runs[i].e == e) {
            g.files[g.count] = list->files[i]; /* borrowed */
            g.runs[g.count++] = runs[i];
            runs[i].e = NULL;
        }
    int code = merge_group(&g, s, folder);
    free(g.files);
    free(g.runs);
    return code;
}

/* ---- The verb ---- */

static void print_help(void)
{
    printf(
        "Merges the shards that `attnum run EXPERIMENT --shard I/N` left in these folders, of one\n"
        "or more experiments, and writes the CSV, metadata and plots of the whole run: the same\n"
        "bytes of CSV. All N shards must exist, from one version, with the same options and\n"
        "the same input; the exit code includes failures of their checks.\n\n"
        "example: attnum merge results node2/results --out results\n");
}

static int merge_all(const shard_list *list, shard_run *runs, const program_options *s,
                     const char *folder)
{
    int code = EXIT_SKIPPED;
    for (int i = 0; i < list->count && !signals_stopped(); i++)
        if (runs[i].e)
            code = exit_worst(code, merge_experiment(list, runs, runs[i].e, s, folder));
    return signals_stopped() ? exit_worst(code, EXIT_ENVIRONMENT) : code;
}

static int run(const program_options *s, int count, const char *const *folders)
{
    shard_list list = {0};
    int code = EXIT_PASS;
    if (count == 0) {
        report_error("merge: expected the folders that the shards are in");
        return EXIT_USAGE;
    }
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = shards_find(&list, folders[i]);
    shard_run *runs = must_allocate((size_t)list.count, sizeof *runs);
    for (int i = 0; i < list.count && code == EXIT_PASS; i++)
        code = open_run(&runs[i], &list.files[i]);
    if (code == EXIT_PASS) {
        printout_begin(s);
        code = merge_all(&list, runs, s, folders[0]);
        printout_end();
    }
    for (int i = 0; i < list.count; i++)
        cJSON_Delete(runs[i].run);
    free(runs);
    shards_free(&list);
    return code;
}

const verb merge_verb = {
    .name = "merge",
    .operands = "FOLDER...",
    .summary = "the results of a run in shards",
    .options = OPTIONS(OPTION_OUT, OPTION_FORMAT),
    .out = "results",
    .help = print_help,
    .run = run,
};
