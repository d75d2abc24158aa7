/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The kinds of plot: gnuplot's terminal, and what a file ends with, but for white space. */
static const struct {
    const char *terminal, *extension, *end;
} formats[] = {{"pngcairo", "png", "IEND\xae\x42\x60\x82"}, {"svg", "svg", "</svg>"}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* The outputs' names are the experiment's own: letters, digits, "_". */
static char *script_variables(const experiment *e, const program_options *s, int format)
{
    char *run = describe_run(e, s);
    char *text = must_format("terminal='%s'; out='.%s.%s.tmp'; run=%s; csv='%s.csv'",
                             formats[format].terminal, e->outputs[0].name,
                             formats[format].extension, run, e->outputs[0].name);
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

/* gnuplot does not look whether it could write: on a full disk it leaves a part of the file. */
static int check_whole(const new_file *f, int format)
{
    size_t size, length = strlen(formats[format].end);
    char *bytes = files_read_descriptor(f->final, f->lock, &size);
    if (!bytes)
        return EXIT_ENVIRONMENT;
    while (size > 0 && isspace((unsigned char)bytes[size - 1]))
        size--;
    bool whole = size >= length && memcmp(bytes + size - length, formats[format].end, length) == 0;
    free(bytes);
    if (whole)
        return EXIT_PASS;
    report_error("%s: cannot write: gnuplot wrote only a part of it", f->final);
    return EXIT_ENVIRONMENT;
}

/* Returns an exit code: EXIT_SKIPPED, with a note, if gnuplot made no plot. */
static int plot_format(const experiment *e, const program_options *s, const char *folder,
                       char *scripts[2], int format)
{
    new_file f;
    char *name = must_format("%s.%s", e->outputs[0].name, formats[format].extension);
    char *variables = script_variables(e, s, format);
    int code = new_file_open(&f, folder, name);
    if (code == EXIT_PASS) {
        FILE *messages = tmpfile(); /* null: they go to stderr */
        int ended = signals_stopped() ? PROCESS_NOT_ENDED
                                      : run_gnuplot(folder, variables, scripts, messages);
        code = ended == 0 ? EXIT_PASS : EXIT_SKIPPED;
        if (messages && ended != 0 && !signals_stopped())
            show_messages(messages);
        if (messages)
            fclose(messages);
        if (ended == PROCESS_NO_PROGRAM)
            report_note("%s: no %s: gnuplot is not installed", e->name, name);
        else if (ended != 0 && !signals_stopped())
            report_note("%s: no %s: gnuplot failed on %s", e->name, name, scripts[1]);
    }
    if (code == EXIT_PASS)
        code = check_whole(&f, format);
    if (code == EXIT_PASS)
        code = new_file_close(&f);
    if (code == EXIT_PASS)
        code = new_file_publish(&f);
    new_file_free(&f);
    free(variables);
    free(name);
    return code;
}

static char *plot_path(const experiment *e, const char *folder, int format)
{
    return must_format("%s/%s.%s", folder, e->outputs[0].name, formats[format].extension);
}

int plot_experiment(const experiment *e, const program_options *s, const char *folder, bool *made)
{
    char *script = resource_path("plots", e->plot);
    char *common = script ? resource_path("plots", "common/plots.gp") : NULL;
    char *scripts[2] = {common, script};
    int code = EXIT_PASS;
    *made = common;
    for (int i = 0; i < FORMATS; i++) {
        char *old = plot_path(e, folder, i);
        unlink(old);
        free(old);
    }
    for (int i = 0; common && i < FORMATS && code != EXIT_ENVIRONMENT; i++) {
        code = plot_format(e, s, folder, scripts, i);
        *made = *made && code == EXIT_PASS;
    }
    free(common);
    free(script);
    return code == EXIT_ENVIRONMENT ? code : EXIT_PASS;
}

bool plot_is_there(const experiment *e, const char *folder)
{
    bool there = true;
    for (int i = 0; i < FORMATS; i++) {
        char *path = plot_path(e, folder, i);
        there = there && access(path, F_OK) == 0;
        free(path);
    }
    return there;
}
