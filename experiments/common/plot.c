/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "process.h"
#include "report.h"
#include "resources.h"
#include "signals.h"

/* Runs gnuplot, without the user's own settings; its stderr goes to messages. It is killed when
 * this program ends: otherwise it could write to the files of the next run. */
static int run_gnuplot(const char *folder, char *variables, char *scripts[2], FILE *messages)
{
    volatile int running;
    char *argv[] = {(char[]){"gnuplot"},
                    (char[]){"-d"},
                    (char[]){"-e"},
                    variables,
                    scripts[0],
                    scripts[1],
                    NULL};
    return process_run(argv, folder, -1, messages ? fileno(messages) : -1, &running);
}

/* A gnuplot string, to be freed: in single quotes, with single quotes in the text doubled. */
static char *quote(const char *text)
{
    char *quoted = must_allocate(2 * strlen(text) + 3, 1), *end = quoted;
    *end++ = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            *end++ = '\'';
        *end++ = *text;
    }
    *end = '\'';
    return quoted;
}

/* The experiment and the options of this run, which identify its figures. To be freed. */
static char *describe_run(const experiment *e, const program_options *s)
{
    char *text = must_format("%s", e->name);
    for (int i = 0; i < s->kept.count; i++) {
        char *longer = must_format("%s %s", text, s->kept.items[i]);
        free(text);
        text = longer;
    }
    char *quoted = quote(text);
    free(text);
    return quoted;
}

/* The outputs' names are the experiment's own: letters, digits, "_". */
static char *script_variables(const experiment *e, const program_options *s, const char *terminal,
                              const char *extension)
{
    char *run = describe_run(e, s);
    char *text = must_format("terminal='%s'; out='.%s.%s.tmp'; run=%s; csv='%s.csv'", terminal,
                             e->outputs[0].name, extension, run, e->outputs[0].name);
    free(run);
    for (int i = 1; i < e->output_count; i++) {
        char *longer = must_format("%s; csv%d='%s.csv'", text, i + 1, e->outputs[i].name);
        free(text);
        text = longer;
    }
    return text;
}

/* Shows gnuplot's messages. They are not shown if the plot was made, because gnuplot warns of every
 * curve without points. */
static void show_messages(FILE *messages)
{
    rewind(messages);
    for (int c; (c = fgetc(messages)) != EOF;)
        fputc(c, stderr);
}

static bool plot_format(const experiment *e, const program_options *s, const char *folder,
                        char *scripts[2], const char *terminal, const char *extension)
{
    new_file f;
    struct stat status;
    char *name = must_format("%s.%s", e->outputs[0].name, extension);
    char *variables = script_variables(e, s, terminal, extension);
    bool opened = new_file_open(&f, folder, name) == EXIT_PASS;
    FILE *messages = tmpfile(); /* null: they go to stderr */
    int code = opened && !signals_stopped() ? run_gnuplot(folder, variables, scripts, messages)
                                            : PROCESS_NOT_ENDED;
    bool made = code == 0 && fstat(f.lock, &status) == 0 && status.st_size > 0;
    if (messages && !made && !signals_stopped())
        show_messages(messages);
    if (messages)
        fclose(messages);
    if (!made)
        unlink(f.final);
    if (made)
        made = new_file_close(&f) == EXIT_PASS && new_file_publish(&f) == EXIT_PASS;
    else if (code == PROCESS_NO_PROGRAM)
        report_note("%s: no %s: gnuplot is not installed", e->name, name);
    else if (opened && !signals_stopped())
        report_note("%s: no %s: gnuplot failed on %s", e->name, name, scripts[1]);
    new_file_free(&f);
    free(variables);
    free(name);
    return made;
}

bool plot_experiment(const experiment *e, const program_options *s, const char *folder)
{
    char *script = resource_path("plots", e->plot);
    char *common = script ? resource_path("plots", "common/plots.gp") : NULL;
    char *scripts[2] = {common, script};
    bool png = common && plot_format(e, s, folder, scripts, "pngcairo", "png");
    bool svg = common && plot_format(e, s, folder, scripts, "svg", "svg");
    free(common);
    free(script);
    return png && svg;
}

static bool has_file(const char *folder, const char *name, const char *extension)
{
    char *path = must_format("%s/%s.%s", folder, name, extension);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

bool plot_is_there(const experiment *e, const char *folder)
{
    return has_file(folder, e->outputs[0].name, "png") &&
           has_file(folder, e->outputs[0].name, "svg");
}
