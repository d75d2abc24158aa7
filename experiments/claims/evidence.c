/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims/evidence.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "common/process.h"
#include "common/report.h"

/* Sizes are such that each takes seconds, and all of them less than a minute on two cores. */
static const evidence rows[] = {
    {"bounds", "spectral/bounds", "--quick"},
    {"bounds-landmarks", "spectral/bounds",
     "--quick --input photos,smooth,iid --stage 2 --m 4,16,49,196"},
    {"curves", "convergence/curves",
     "--input photos,smooth,iid --samples 10 --dtype f64 --sampling pool "
     "--variant nr-paper,nr-adaptive,nr-soft,nr-softpp"},
    {"curves-published", "convergence/curves",
     "--input photos --samples 10 --dtype f64 --sampling published,published-centred "
     "--variant nr-paper,nr-soft"},
    {"curves-fields", "convergence/curves",
     "--input smooth,iid --samples 2 --dtype f64 --sampling published --variant nr-paper"},
    {"eigenvalues", "spectral/eigenvalues",
     "--m 1024 --samples 1 --input photos,smooth,iid,iid:0.3"},
    {"gradient", "convergence/gradient", "--quick"},
    {"gradient-published", "convergence/gradient",
     "--input photos,iid --samples 1 --dtype f64 --variant nr-paper "
     "--sampling published,published-centred"},
    {"initialisation", "convergence/initialisation", ""},
    {"norm-growth", "spectral/norm-growth", /* the usual inputs, without norm-growth-trained's */
     "--quick --sampling pool --input photos,smooth,smooth:8,noisy,iid,iid:0.3,clusters"},
    {"norm-growth-published", "spectral/norm-growth",
     "--input photos,smooth,clusters --m 16,49,100,144 --samples 2 "
     "--sampling published,published-centred"},
    {"norm-growth-trained", "spectral/norm-growth",
     "--input trained:soft,trained:softpp,trained:softmax,trained:sima --m 4,16,49,196 "
     "--samples 3 --sampling pool"},
    {"precision", "convergence/precision", "--quick"},
    {"sampling", "spectral/sampling", "--quick --input photos,smooth,smooth:8,clusters,iid:0.3"},
    {"sampling-photos", "spectral/sampling", "--input photos --stage 2 --m 49 --samples 2"},
    {"scale-head", "spectral/eigenvalues", "--input photos,smooth,iid --m 49 --samples 5"},
    /* 1/(2 sqrt(64)) and 1/(2 sqrt(512)) */
    {"scale-64", "spectral/eigenvalues",
     "--input photos,smooth,iid --m 49 --samples 5 --scale 0.0625"},
    {"scale-512", "spectral/eigenvalues",
     "--input photos,smooth,iid --m 49 --samples 5 --scale 0.022097086912079608"},
    {"maps", "attention/maps", "--quick"},
    {"counts", "cost/counts", ""},
    {"half", "attention/half", "--n 49,784,9216"},
    {"memory", "cost/memory", "--quick"},
    {"resolution", "spectral/resolution", "--n 196,784,1936 --samples 1"},
    {"resolution-trained", "spectral/resolution",
     "--input trained:soft,trained:softpp,trained:softmax --n 196,784,1764 --samples 1"},
    {"softmax", "spectral/softmax", "--quick"},
    {"time", "cost/time", "--quick"},
    {"networks", "networks/counts", ""},
    {"accuracy", "networks/accuracy", "--quick"},
    {"epochs", "networks/epochs", ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

const evidence *evidence_at(int index)
{
    return index < ROWS ? &rows[index] : NULL;
}

const evidence *evidence_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const experiment *evidence_experiment(const evidence *e)
{
    for (int i = 0; experiments[i]; i++)
        if (strcmp(experiments[i]->name, e->experiment) == 0)
            return experiments[i];
    assert(!"evidence of an unknown experiment");
    return NULL;
}

/* ---- Paths and commands ---- */

char *evidence_path(const evidence *e, int output, const char *ending)
{
    int directory = (int)strcspn(e->experiment, "/");
    return must_format("%s/%.*s/%s%s", e->name, directory, e->experiment,
                       evidence_experiment(e)->outputs[output].name, ending);
}

/* " --isa NAME", or nothing; to be freed. */
static char *isa_option(const program_options *s)
{
    bool given = s->isa != ATN_ISA_AUTO;
    return must_format("%s%s", given ? " --isa " : "", given ? atn_isa_name(s->isa) : "");
}

/* "1,2,3"; to be freed. */
static char *join_seeds(const program_options *s)
{
    char *text = must_format("%" PRId64, s->seeds.items[0]);
    for (int i = 1; i < s->seeds.count; i++) {
        char *longer = must_format("%s,%" PRId64, text, s->seeds.items[i]);
        free(text);
        text = longer;
    }
    return text;
}

/* "attnum VERB WORDS" with the options that change numbers; to be freed. */
static char *command_line(const claim_run *run, const char *verb, const char *word,
                          const char *options)
{
    char *seeds = join_seeds(run->s), *isa = isa_option(run->s);
    char *command = must_format("attnum %s %s%s%s --seed %s%s", verb, word, *options ? " " : "",
                                options, seeds, isa);
    free(isa);
    free(seeds);
    return command;
}

char *evidence_command(const claim_run *run, const evidence *e)
{
    return command_line(run, "run", e->experiment, e->options);
}

char *evidence_claim_command(const claim_run *run, const char *id)
{
    return command_line(run, "claims", id, "");
}

/* ---- Running ---- */

enum { MAX_WORDS = 64 };

/* the only state that a signal handler can reach */
static volatile sig_atomic_t interrupted;
static volatile int running;

/* Stops the running experiment too, even if the signal was sent to this process alone. */
static void interrupt(int number)
{
    interrupted = 1;
    if (running > 0)
        kill(running, number);
}

void evidence_handle_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction stop = {.sa_handler = interrupt}, old;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup */
            sigaction(numbers[i], &stop, NULL);
}

bool evidence_interrupted(void)
{
    return interrupted;
}

/* Runs words[0] with its output going to `log`. Returns its exit code, or one of process.h. */
static int run_program(char *const *words, const char *log)
{
    int file = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        report_error("%s: cannot write: %s", log, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    int code = process_run(words, NULL, file, -1, &running);
    close(file);
    return code;
}

static int run_experiment(const claim_run *run, const evidence *e, const char *folder)
{
    char *seeds = join_seeds(run->s), *threads = must_format("%d", (int)run->s->threads);
    char *isa = isa_option(run->s), *options = must_format("%s%s", e->options, isa);
    char *log = must_format("%s/log.txt", folder);
    const char *words[MAX_WORDS] = {run->program, "run",   e->experiment, "--seed", seeds,
                                    "--threads",  threads, "--out",       folder};
    int count = 9;
    for (char *word = strtok(options, " "); word; word = strtok(NULL, " ")) {
        assert(count < MAX_WORDS - 1);
        words[count++] = word;
    }
    int code = run_program((char *const *)words, log);
    free(log);
    free(options);
    free(isa);
    free(threads);
    free(seeds);
    return code;
}

static int read_outputs(claim_run *run, const evidence *e)
{
    const experiment *x = evidence_experiment(e);
    int code = EXIT_PASS;
    for (int i = 0; i < x->output_count && code == EXIT_PASS; i++) {
        char *below = evidence_path(e, i, ".csv"), *path = must_format("%s/%s", run->folder, below);
        table *t = table_read_file(path, x->outputs[i].columns, x->outputs[i].column_count);
        run->tables[(e - rows) * MAX_OUTPUTS + i] = t;
        code = t ? EXIT_PASS : EXIT_ENVIRONMENT;
        free(path);
        free(below);
    }
    return code;
}

int evidence_run(claim_run *run, const evidence *e)
{
    if (!run->tables)
        run->tables = must_allocate(ROWS * MAX_OUTPUTS, sizeof(table *));
    if (run->tables[(e - rows) * MAX_OUTPUTS])
        return EXIT_PASS;
    char *folder = must_format("%s/%s", run->folder, e->name);
    int code = files_make_folder(folder);
    if (code == EXIT_PASS)
        code = run_experiment(run, e, folder);
    free(folder);
    if (interrupted)
        return EXIT_ENVIRONMENT;
    if (code != EXIT_PASS && code != EXIT_CHECK) {
        if (code != EXIT_ENVIRONMENT) /* the experiment has reported why */
            report_error("%s: no evidence, its run ended with %d", e->experiment, code);
        return EXIT_ENVIRONMENT;
    }
    return exit_worst(code, read_outputs(run, e));
}

void evidence_free(claim_run *run)
{
    for (int i = 0; run->tables && i < ROWS * MAX_OUTPUTS; i++)
        table_free(run->tables[i]);
    free(run->tables);
    run->tables = NULL;
}

/* ---- Reading tables ---- */

const table *evidence_table(const claim_run *run, const char *name, int output)
{
    const evidence *e = evidence_find(name);
    assert(e && run->tables && run->tables[(e - rows) * MAX_OUTPUTS + output]);
    return run->tables[(e - rows) * MAX_OUTPUTS + output];
}

int64_t largest_row(const table *t, const char *name,
                    bool (*take)(const table *t, int64_t row, const void *data), const void *data)
{
    int64_t found = -1;
    double largest = -INFINITY;
    for (int64_t row = 0; row < table_rows(t); row++) {
        if (cell_missing(t, row, name) || (take && !take(t, row, data)))
            continue;
        double value = cell_real(t, row, name);
        if (found < 0 || !(value <= largest)) {
            largest = value;
            found = row;
        }
        if (isnan(value))
            break;
    }
    return found;
}
