/* SPDX-License-Identifier: BSD-3-Clause */
/* The program attnum: its verbs, and `attnum run`. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/blas.h"
#include "common/experiment.h"
#include "common/names.h"
#include "common/printout.h"
#include "common/process.h"
#include "common/report.h"
#include "common/signals.h"
#include "registry.h"

/* ---- attnum run ---- */

typedef struct {
    const experiment **items;
    int count;
} experiment_selection;

static void select_one(experiment_selection *chosen, const experiment *e)
{
    for (int i = 0; i < chosen->count; i++)
        if (chosen->items[i] == e)
            return;
    chosen->items[chosen->count++] = e;
}

static int count_experiments(void)
{
    int count = 0;
    while (experiments[count])
        count++;
    return count;
}

static int report_unknown_experiment(const char *word)
{
    const char **names = must_allocate((size_t)count_experiments() + 2, sizeof *names);
    for (int i = 0; experiments[i]; i++)
        names[i] = experiments[i]->name;
    names[count_experiments()] = "all";
    char *expected = names_expected(names, word);
    if (*word)
        report_error("run '%s': unknown experiment; %s", word, expected);
    else
        report_error("run: no experiment given; %s", expected);
    free(expected);
    free(names);
    return EXIT_USAGE;
}

static int select_named(experiment_selection *chosen, const char *name)
{
    bool all = strcmp(name, "all") == 0, found = all;
    for (int i = 0; experiments[i]; i++)
        if (all || strcmp(experiments[i]->name, name) == 0) {
            select_one(chosen, experiments[i]);
            found = true;
        }
    return found ? EXIT_PASS : report_unknown_experiment(name);
}

/* The experiments that the operands name, in their order. */
static int select_experiments(experiment_selection *chosen, int argc, char **argv)
{
    const char **names = must_allocate((size_t)argc, sizeof *names);
    int count = options_names(argc, argv, names);
    int code = count < 0 ? EXIT_USAGE : EXIT_PASS;
    chosen->items = must_allocate((size_t)count_experiments(), sizeof *chosen->items);
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = select_named(chosen, names[i]);
    free(names);
    return code;
}

/* A title, and a text of one or more lines to the right of it. */
static void print_titled(const char *title, const char *text)
{
    printf("  %-9s ", title);
    for (; *text; text++) {
        putchar(*text);
        if (*text == '\n')
            printf("%12s", "");
    }
    putchar('\n');
}

static void help_experiment(const experiment *e)
{
    printf("attnum run %s [OPTION...]\n  %s\n", e->name, e->summary);
    print_titled("source:", e->source);
    print_titled("defaults:", e->defaults);
    print_titled("example:", e->example);
    printf("\n");
}

static void help_run(const experiment_selection *chosen, const option_id *taken)
{
    if (chosen->count == 0) {
        printf("usage: attnum run EXPERIMENT...|all [OPTION...]\n"
               "Runs experiments and writes their CSV, metadata and plots. Each has its own\n"
               "options: attnum run EXPERIMENT --help\n\nexperiments\n");
        for (int i = 0; experiments[i]; i++)
            printf("  %-24s %s\n", experiments[i]->name, experiments[i]->summary);
        printf("\n");
    }
    for (int i = 0; i < chosen->count; i++)
        help_experiment(chosen->items[i]);
    printf("options\n");
    options_help(taken);
}

/* Runs one experiment with those of the options, `all`, that it takes: no other is kept with its
 * results. */
static int run_one(const experiment *e, const option_id *all, int argc, char **argv)
{
    program_options s;
    int code = options_parse_part(&s, e->options, all, argc, argv);
    if (code == EXIT_PASS) {
        code = experiment_run(e, &s);
        options_free(&s);
    }
    return code;
}

static int run_selected(const experiment_selection *chosen, const program_options *s,
                        const option_id *all, int argc, char **argv)
{
    int code = EXIT_SKIPPED;
    printout_begin(s);
    for (int i = 0; i < chosen->count && !signals_stopped(); i++)
        code = exit_worst(code, run_one(chosen->items[i], all, argc, argv));
    printout_end();
    return signals_stopped() ? exit_worst(code, EXIT_ENVIRONMENT) : code;
}

static int run_command(int argc, char **argv)
{
    experiment_selection chosen = {0};
    program_options s;
    int code = select_experiments(&chosen, argc, argv);
    option_id taken[OPTION_COUNT + 1] = {OPTION_END};
    options_add(taken, run_options);
    for (int i = 0; i < chosen.count; i++)
        options_add(taken, chosen.items[i]->options);
    if (code == EXIT_PASS)
        code = options_parse(&s, taken, argc, argv);
    if (code == EXIT_PASS) {
        if (s.help)
            help_run(&chosen, taken);
        else if (chosen.count == 0)
            code = report_unknown_experiment("");
        else
            code = run_selected(&chosen, &s, taken, argc, argv);
        options_free(&s);
    }
    free(chosen.items);
    return code;
}

/* ---- attnum ---- */

static void print_verb(const char *name, const char *operands, const char *summary)
{
    char *usage =
        must_format("%s %s%s[OPTION...]", name, operands ? operands : "", operands ? " " : "");
    printf("  attnum %-36s %s\n", usage, summary);
    free(usage);
}

static int help_command(void)
{
    printf("attnum %s: the numerics of softmax-free attention\n\n", ATN_VERSION);
    print_verb("run", "EXPERIMENT...|all", "results as CSV and plots");
    for (int i = 0; verbs[i]; i++)
        print_verb(verbs[i]->name, verbs[i]->operands, verbs[i]->summary);
    printf("  attnum VERB --help, attnum run EXPERIMENT --help\n"
           "  attnum --help, --version\n\n"
           "example: attnum run all --quick\n\n"
           "exit code: 0 all passed, 1 a check failed, 2 the command line, 3 a file, the disk or\n"
           "the machine, 77 all was skipped\n");
    return EXIT_PASS;
}

static int version_command(void)
{
    printf("attnum %s\n", ATN_VERSION);
    return EXIT_PASS;
}

static int report_unknown_verb(const char *word)
{
    int count = 0;
    while (verbs[count])
        count++;
    const char **names = must_allocate((size_t)count + 4, sizeof *names);
    names[0] = "run";
    for (int i = 0; i < count; i++)
        names[1 + i] = verbs[i]->name;
    names[1 + count] = "--help";
    names[2 + count] = "--version";
    char *expected = names_expected(names, word ? word : "");
    if (word)
        report_error("'%s': %s", word, expected);
    else
        report_error("no command: %s", expected);
    free(expected);
    free(names);
    return EXIT_USAGE;
}

static int run_named(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return help_command();
    if (strcmp(word, "--version") == 0)
        return version_command();
    if (strcmp(word, "run") == 0)
        return run_command(argc - 2, argv + 2);
    for (int i = 0; verbs[i]; i++)
        if (strcmp(word, verbs[i]->name) == 0)
            return verb_run(verbs[i], argc - 2, argv + 2);
    return report_unknown_verb(argc > 1 ? word : NULL);
}

int main(int argc, char **argv)
{
    int code = process_begin();
    blas_on_one_thread();
    setlocale(LC_ALL, "C");
    return process_end(code == EXIT_PASS ? run_named(argc, argv) : code);
}
