/* SPDX-License-Identifier: BSD-3-Clause */
/* `attnum claims [ID...]`: runs the evidence, then the judges. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "claims/claims.h"
#include "claims/report.h"
#include "common/files.h"
#include "common/names.h"
#include "common/printout.h"
#include "common/report.h"

/* ---- Which claims ---- */

typedef struct {
    const claim **items;
    int count;
} claim_selection;

static int count_claims(void)
{
    int count = 0;
    while (claims_all()[count])
        count++;
    return count;
}

static int report_unknown(const char *word)
{
    const char **names = must_allocate((size_t)count_claims() + 1, sizeof *names);
    for (int i = 0; claims_all()[i]; i++)
        names[i] = claims_all()[i]->id;
    char *expected = names_expected(names, word);
    report_error("claims '%s': unknown statement; %s", word, expected);
    free(expected);
    free(names);
    return EXIT_USAGE;
}

static int select_claim(claim_selection *chosen, const char *id)
{
    for (int i = 0; i < chosen->count; i++)
        if (strcmp(chosen->items[i]->id, id) == 0)
            return EXIT_PASS;
    for (int i = 0; claims_all()[i]; i++)
        if (strcmp(claims_all()[i]->id, id) == 0) {
            chosen->items[chosen->count++] = claims_all()[i];
            return EXIT_PASS;
        }
    return report_unknown(id);
}

/* Selects the claims whose ids are operands; all claims if there are no operands. */
static int select_claims(claim_selection *chosen, int count, const char *const *ids)
{
    int code = EXIT_PASS;
    chosen->items = must_allocate((size_t)count_claims() + 1, sizeof *chosen->items);
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = select_claim(chosen, ids[i]);
    for (int i = 0; count == 0 && claims_all()[i]; i++)
        chosen->items[chosen->count++] = claims_all()[i];
    return code;
}

/* ---- Evidence and verdicts ---- */

static int gather_evidence(claim_run *run, const claim_selection *chosen)
{
    int code = EXIT_PASS;
    for (int i = 0; i < chosen->count; i++)
        for (int j = 0; chosen->items[i]->evidence[j] && code != EXIT_ENVIRONMENT; j++)
            code =
                exit_worst(code, evidence_run(run, evidence_find(chosen->items[i]->evidence[j])));
    return code;
}

static int judge_one(const claim_run *run, const claim *c, judged *j)
{
    j->claim = c;
    verdict_open(&j->verdict);
    int code = c->judge(run, &j->verdict);
    verdict_close(&j->verdict);
    const char *lacks = verdict_lacks(&j->verdict);
    if (code == EXIT_PASS && lacks) {
        report_error("%s: the verdict lacks %s", c->id, lacks);
        code = EXIT_CHECK;
    }
    if (code == EXIT_PASS || code == EXIT_CHECK)
        report_print(run, j);
    return code;
}

static void print_dry_run(const claim_run *run, const claim_selection *chosen)
{
    for (int i = 0; i < chosen->count; i++) {
        printf("%s\n", chosen->items[i]->id);
        for (int j = 0; chosen->items[i]->evidence[j]; j++) {
            char *command = evidence_command(run, evidence_find(chosen->items[i]->evidence[j]));
            printf("    %s\n", command);
            free(command);
        }
    }
}

/* "4 verdicts: holds 3, fails 1". */
static void print_tally(const judged *all, int count)
{
    report_text("%d verdict%s:", count, count == 1 ? "" : "s");
    for (int kind = VERDICT_NONE, printed = 0; kind < VERDICT_COUNT; kind++) {
        int number = report_count(all, count, (verdict_kind)kind);
        if (number > 0)
            report_text("%s %s %d", printed++ ? "," : "", verdict_name((verdict_kind)kind), number);
    }
    report_text("\n");
}

static int judge_all(claim_run *run, const claim_selection *chosen, bool keep)
{
    judged *all = must_allocate((size_t)chosen->count, sizeof *all);
    int code = gather_evidence(run, chosen);
    for (int i = 0; i < chosen->count && code != EXIT_ENVIRONMENT; i++)
        code = evidence_interrupted() ? EXIT_ENVIRONMENT
                                      : exit_worst(code, judge_one(run, chosen->items[i], &all[i]));
    if (evidence_interrupted())
        report_note("claims: interrupted");
    if (code != EXIT_ENVIRONMENT) {
        print_tally(all, chosen->count);
        report_print_table(all, chosen->count);
    }
    if (keep && code != EXIT_ENVIRONMENT) {
        code = exit_worst(code, report_write(run, all, chosen->count, code));
        if (code != EXIT_ENVIRONMENT)
            report_text("→ %s/claims.csv, %s/claims.md, %s/claims.html\n", run->folder, run->folder,
                        run->folder);
    }
    for (int i = 0; i < chosen->count; i++)
        verdict_free(&all[i].verdict);
    free(all);
    return code;
}

/* ---- The folder ---- */

/* A temporary folder, and the process that removes it. */
typedef struct {
    char *path;
    pid_t remover;
    int alive; /* write end of a pipe that the remover reads from */
} temporary_folder;

/* Waits until the program has ended in any way, then removes the folder. An experiment may still
 * write there for a moment. */
static _Noreturn void remove_at_end(const char *path, int alive)
{
    enum { TRIES = 50 };
    char none;
    setsid(); /* signals from the terminal must not end this process */
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        close(i);
    while (read(alive, &none, 1) < 0 && errno == EINTR)
        continue;
    for (int i = 0; i < TRIES && !files_remove_folder(path); i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    _exit(EXIT_PASS);
}

static int start_remover(temporary_folder *f)
{
    int ends[2];
    if (pipe(ends) != 0)
        return EXIT_ENVIRONMENT;
    f->alive = ends[1];
    fcntl(f->alive, F_SETFD, FD_CLOEXEC);
    f->remover = fork();
    if (f->remover == 0) {
        close(ends[1]);
        remove_at_end(f->path, ends[0]);
    }
    close(ends[0]);
    return f->remover > 0 ? EXIT_PASS : EXIT_ENVIRONMENT;
}

static int make_temporary(temporary_folder *f)
{
    const char *place = getenv("TMPDIR");
    *f = (temporary_folder){.alive = -1};
    f->path = must_format("%s/attnum-claims-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(f->path)) {
        report_error("%s: cannot make a temporary folder: %s; --out names another", f->path,
                     strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    if (start_remover(f) == EXIT_PASS)
        return EXIT_PASS;
    report_error("%s: no process to remove it in the end: %s", f->path, strerror(errno));
    rmdir(f->path);
    return EXIT_ENVIRONMENT;
}

/* A zeroed folder is allowed. */
static void remove_temporary(temporary_folder *f)
{
    if (f->remover > 0) {
        close(f->alive);
        while (waitpid(f->remover, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    free(f->path);
}

static int run_claims(const program_options *s, const claim_selection *chosen)
{
    /* the program that makes the evidence is this one */
    atn_context_options options = {.device = s->device, .threads = s->threads, .isa = s->isa};
    claim_run run = {.s = s, .seed = (uint64_t)s->seeds.items[0], .program = "/proc/self/exe"};
    temporary_folder temporary = {0};
    report_text("\n");
    if (s->dry_run) {
        print_dry_run(&run, chosen);
        return EXIT_PASS;
    }
    if (atn_context_create(&options, &run.context) != ATN_OK) {
        report_error("claims: no context");
        return EXIT_ENVIRONMENT;
    }
    evidence_handle_signals();
    int code = s->out ? files_make_folder(s->out) : make_temporary(&temporary);
    run.folder = s->out ? s->out : temporary.path;
    if (code == EXIT_PASS)
        code = judge_all(&run, chosen, s->out);
    evidence_free(&run);
    atn_context_free(run.context);
    remove_temporary(&temporary);
    return code;
}

static void print_help(void)
{
    printf("Tests the papers' statements (attnum list claims), and prints a verdict for each with\n"
           "the numbers behind it. Without an ID: all of them, 55 s on two cores. --out keeps\n"
           "the evidence and writes claims.csv and the report, claims.html for browsers and\n"
           "claims.md; without it nothing is kept.\n\nexample: attnum claims S11 S22\n");
}

static int run(const program_options *s, int count, const char *const *words)
{
    claim_selection chosen = {0};
    int code = select_claims(&chosen, count, words);
    if (code == EXIT_PASS) {
        printout_begin(s);
        code = run_claims(s, &chosen);
        printout_end();
    }
    free(chosen.items);
    return code;
}

const verb claims_verb = {
    .name = "claims",
    .operands = "[ID...]",
    .summary = "the papers' statements, judged",
    .options =
        OPTIONS(OPTION_SEED, OPTION_THREADS, OPTION_ISA, OPTION_OUT, OPTION_DRY_RUN, OPTION_FORMAT),
    .help = print_help,
    .run = run,
};
