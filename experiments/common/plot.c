/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "report.h"
#include "resources.h"
#include "signals.h"

enum { NO_PROGRAM = 127 };

/* In the child: gnuplot in the results' folder; what it says on stderr goes to messages. */
static void become_gnuplot(const char *folder, char **argv, FILE *messages)
{
    int nowhere = open("/dev/null", O_RDWR);
    if (nowhere >= 0 && chdir(folder) == 0 && dup2(nowhere, STDIN_FILENO) >= 0 &&
        dup2(nowhere, STDOUT_FILENO) >= 0 &&
        (!messages || dup2(fileno(messages), STDERR_FILENO) >= 0))
        execvp(argv[0], argv);
    _exit(NO_PROGRAM);
}

/* Runs gnuplot; its exit status, or -1 if it did not end by itself. It ends with this program: one
 * that went on after a kill would write to the files of the next run. */
static int run_gnuplot(const char *folder, char *variables, char *script, FILE *messages)
{
    pid_t parent = getpid();
    char *argv[] = {(char[]){"gnuplot"}, (char[]){"-d"}, /* not the user's own settings */
                    (char[]){"-e"},      variables,      script, NULL};
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(NO_PROGRAM);
        become_gnuplot(folder, argv, messages);
    }
    int status = -1;
    if (child > 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The names are the experiment's own: letters, digits, "_". */
static char *script_variables(const experiment *e, const char *terminal, const char *extension)
{
    char *text = must_format("set datafile separator comma; set datafile columnheaders; "
                             "terminal='%s'; out='.%s.%s.tmp'; csv='%s.csv'",
                             terminal, e->outputs[0].name, extension, e->outputs[0].name);
    for (int i = 1; i < e->output_count; i++) {
        char *longer = must_format("%s; csv%d='%s.csv'", text, i + 1, e->outputs[i].name);
        free(text);
        text = longer;
    }
    return text;
}

/* A plot that was made needs no comment: gnuplot warns of every curve without a point. */
static void show_messages(FILE *messages)
{
    rewind(messages);
    for (int c; (c = fgetc(messages)) != EOF;)
        fputc(c, stderr);
}

static bool plot_format(const experiment *e, const char *folder, char *script, const char *terminal,
                        const char *extension)
{
    new_file f;
    char *name = must_format("%s.%s", e->outputs[0].name, extension);
    char *variables = script_variables(e, terminal, extension);
    new_file_name(&f, folder, name);
    unlink(f.temporary);
    FILE *messages = tmpfile(); /* null: they go to stderr */
    int status = signals_stopped() ? -1 : run_gnuplot(folder, variables, script, messages);
    bool made = status == 0 && access(f.temporary, R_OK) == 0;
    if (messages && !made && !signals_stopped())
        show_messages(messages);
    if (messages)
        fclose(messages);
    if (!made)
        unlink(f.final);
    if (made)
        made = new_file_publish(&f) == EXIT_PASS;
    else if (status == NO_PROGRAM)
        report_note("%s: no %s: gnuplot is not installed", e->name, name);
    else if (!signals_stopped())
        report_note("%s: no %s: gnuplot failed on %s", e->name, name, script);
    new_file_free(&f);
    free(variables);
    free(name);
    return made;
}

bool plot_experiment(const experiment *e, const char *folder)
{
    char *script = resource_path("plots", e->plot);
    if (!script)
        return false;
    bool png = plot_format(e, folder, script, "pngcairo", "png");
    bool svg = plot_format(e, folder, script, "svg", "svg");
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
