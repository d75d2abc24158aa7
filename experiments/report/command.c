/* SPDX-License-Identifier: BSD-3-Clause */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "common/metadata.h"
#include "common/report.h"
#include "report/report.h"

#define RESULT_NAME(code, name, meaning)    [code] = name,
#define RESULT_MEANING(code, name, meaning) [code] = meaning,
const char *const result_names[RESULT_STATES] = {RESULT_LIST(RESULT_NAME)};
const char *const result_meanings[RESULT_STATES] = {RESULT_LIST(RESULT_MEANING)};

static void print_help(void)
{
    printf(
        "Writes FOLDER/index.html (default: results/index.html): every figure with what it shows,\n"
        "how to read it, its command and its CSVs, what has not run or failed, the machine and\n"
        "the versions, and the verdicts of FOLDER/claims if there are any. The page needs no other\n"
        "file but the CSVs that it links to. The exit code is 0 whatever the results are.\n\n"
        "example: attnum report results\n");
}

char *result_path(const experiment *e, int output, const char *ending)
{
    return must_format("%.*s/%s%s", (int)strcspn(e->name, "/"), e->name, e->outputs[output].name,
                       ending);
}

static result_state state_of_run(const cJSON *metadata)
{
    const cJSON *run = cJSON_GetObjectItem(metadata, "run");
    double code = cJSON_GetNumberValue(cJSON_GetObjectItem(run, "exit_code"));
    return code == EXIT_PASS      ? RESULT_WHOLE
           : code == EXIT_CHECK   ? RESULT_FAILED
           : code == EXIT_SKIPPED ? RESULT_SKIPPED
                                  : RESULT_MISSING;
}

static bool has_text(const cJSON *object, const char *name, const char *text)
{
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return found && strcmp(found, text) == 0;
}

/* Finds the metadata and the state of a CSV that an experiment or a verb wrote; path: relative to
 * the folder. Returns an exit code. */
static int find_csv(const char *writer, const char *folder, const char *path, result_state *state,
                    cJSON **metadata)
{
    bool of_csv;
    char *csv = must_format("%s/%s", folder, path), *json = must_format("%s-metadata.json", csv);
    int code = metadata_read(json, csv, metadata, &of_csv);
    bool own = of_csv && has_text(*metadata, "url", strrchr(path, '/') + 1) &&
               has_text(cJSON_GetObjectItem(*metadata, "run"), "experiment", writer);
    *state = access(csv, F_OK) != 0 || !*metadata ? RESULT_MISSING
             : own                                ? state_of_run(*metadata)
                                                  : RESULT_CHANGED;
    free(json);
    free(csv);
    return code;
}

/* A run's journal exists as long as files of two runs may be mixed. */
static bool has_journal(const experiment *e, const char *folder)
{
    char *name = result_path(e, 0, ".journal"), *path = must_format("%s/%s", folder, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    free(name);
    return there;
}

/* Finds the state of an experiment's results: the worst over the CSV and metadata of all outputs,
 * which must be of one run. Returns an exit code. */
static int find_result(const experiment *e, const char *folder, result *found)
{
    int code = EXIT_PASS;
    const char *fingerprint = NULL;
    *found = (result){.e = e, .state = has_journal(e, folder) ? RESULT_MISSING : RESULT_WHOLE};
    for (int i = 0; i < e->output_count && code == EXIT_PASS; i++) {
        result_state state;
        cJSON *metadata;
        char *name = result_path(e, i, ".csv");
        code = find_csv(e->name, folder, name, &state, &metadata);
        const cJSON *run = cJSON_GetObjectItem(metadata, "run");
        if (i == 0)
            fingerprint = cJSON_GetStringValue(cJSON_GetObjectItem(run, "fingerprint"));
        if (state > RESULT_CHANGED && !(fingerprint && has_text(run, "fingerprint", fingerprint)))
            state = RESULT_CHANGED;
        found->state = state < found->state ? state : found->state;
        if (i == 0)
            found->metadata = metadata;
        else
            cJSON_Delete(metadata);
        free(name);
    }
    return code;
}

static int write_page(const char *folder, const result *results, int count, result_state verdicts,
                      const char *command)
{
    new_file page = {0};
    int code = new_file_open(&page, folder, "index.html");
    if (code == EXIT_PASS)
        code = report_page_write(folder, results, count, verdicts, command, page.file);
    if (code == EXIT_PASS)
        code = new_file_close(&page);
    if (code == EXIT_PASS)
        code = new_file_publish(&page);
    new_file_free(&page);
    return code;
}

static int run(const program_options *s, int count, const char *const *words)
{
    const char *folder = count ? words[0] : "results";
    int experiment_count = 0, states[RESULT_STATES] = {0};
    result_state verdicts = RESULT_MISSING;
    cJSON *ledger = NULL;
    if (count > 1) {
        report_error("report: %d folders given, expected one", count);
        return EXIT_USAGE;
    }
    if (access(folder, F_OK) != 0) {
        report_error("%s: no such folder; attnum run all makes results", folder);
        return EXIT_ENVIRONMENT;
    }
    while (experiments[experiment_count])
        experiment_count++;
    result *results = must_allocate((size_t)experiment_count, sizeof *results);
    int code = EXIT_PASS;
    for (int i = 0; i < experiment_count && code == EXIT_PASS; i++) {
        code = find_result(experiments[i], folder, &results[i]);
        states[results[i].state]++;
    }
    if (code == EXIT_PASS)
        code = find_csv("claims", folder, REPORT_VERDICTS, &verdicts, &ledger);
    cJSON_Delete(ledger);
    if (code == EXIT_PASS)
        code = write_page(folder, results, experiment_count, verdicts, s->command);
    if (code == EXIT_PASS) {
        printf("%d experiments:", experiment_count);
        for (int i = RESULT_STATES - 1, written = 0; i >= 0; i--)
            if (states[i] > 0)
                printf("%s %s %d", written++ ? "," : "", result_names[i], states[i]);
        if (verdicts != RESULT_MISSING)
            printf("; verdicts %s", result_names[verdicts]);
        printf(" → %s/index.html\n", folder);
    }
    for (int i = 0; i < experiment_count; i++)
        cJSON_Delete(results[i].metadata);
    free(results);
    return code;
}

const verb report_verb = {
    .name = "report",
    .operands = "[FOLDER]",
    .summary = "one page for all results of a folder",
    .help = print_help,
    .run = run,
};
