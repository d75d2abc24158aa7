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
        "file but the CSVs that it links to.\n\n"
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

/* Finds the state of an experiment's results: the worst over the CSV and metadata of all outputs.
 * Returns an exit code. */
static int find_result(const experiment *e, const char *folder, result *found)
{
    int code = EXIT_PASS;
    *found = (result){.e = e, .state = RESULT_WHOLE};
    for (int i = 0; i < e->output_count && code == EXIT_PASS; i++) {
        bool of_csv;
        cJSON *metadata;
        char *name = result_path(e, i, ".csv"), *csv = must_format("%s/%s", folder, name);
        char *json = must_format("%s-metadata.json", csv);
        code = metadata_read(json, csv, &metadata, &of_csv);
        result_state state = access(csv, F_OK) != 0 || !metadata ? RESULT_MISSING
                             : of_csv                            ? state_of_run(metadata)
                                                                 : RESULT_CHANGED;
        found->state = state < found->state ? state : found->state;
        if (i == 0)
            found->metadata = metadata;
        else
            cJSON_Delete(metadata);
        free(json);
        free(csv);
        free(name);
    }
    return code;
}

static int write_page(const char *folder, const result *results, int count, const char *command)
{
    new_file page = {0};
    int code = new_file_open(&page, folder, "index.html");
    if (code == EXIT_PASS)
        code = report_page_write(folder, results, count, command, page.file);
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
        code = write_page(folder, results, experiment_count, s->command);
    if (code == EXIT_PASS) {
        printf("%d experiments:", experiment_count);
        for (int i = RESULT_STATES - 1, written = 0; i >= 0; i--)
            if (states[i] > 0)
                printf("%s %s %d", written++ ? "," : "", result_names[i], states[i]);
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
