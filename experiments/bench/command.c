/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/growth.h"
#include "common/names.h"
#include "common/printout.h"
#include "common/report.h"

/* What there is to time, and which experiment does. Without words: all but memory. */
static const struct {
    const char *name;
    const experiment *of;
    const char *what;
} subjects[] = {
    {"operators", &bench, "every operator, forward and backward"},
    {"inverses", &bench, "inverses, and what applying them costs"},
    {"kernel", &bench, "kernel matrices beside libm and OpenBLAS"},
    {"gemm", &bench, "products beside OpenBLAS and libxsmm"},
    {"exp", &bench, "exponentials beside libm"},
    {"memory", &bench_growth, "time and memory against n and m, with exponents"},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static void print_help(void)
{
    printf(
        "Times operators, inverses and what they are made of. What is compared runs in rounds,\n"
        "A B C A B C ..., after warm-up; each is checked against the CPU in f64 first, to within\n"
        "what rounding of its inputs may do; that f64 against the dense reference, or left open.\n"
        "bench.csv has a row for each: the median of the rounds, and its share of the best rates\n"
        "of copying, multiply-adds and exp in the same run; bench_ratios.csv puts some beside\n"
        "each other, round by round. Where others were at work the rounds are done again, twice\n"
        "at most (not with --quick), and then are marked dirty.\n");
    for (int i = 0; i < SUBJECTS; i++)
        printf("  %-10s %s\n", subjects[i].name, subjects[i].what);
    printf("Without words --operator leaves out all but operators, --variant all but inverses.\n"
           "%s\n\nexample: %s\n\nmemory: %s\n\nexample: %s\n",
           bench.defaults, bench.example, bench_growth.defaults, bench_growth.example);
}

static const experiment *find_subject(const char *name)
{
    for (int i = 0; i < SUBJECTS; i++)
        if (strcmp(subjects[i].name, name) == 0)
            return subjects[i].of;
    return NULL;
}

static int report_unknown(const char *name)
{
    const char *names[SUBJECTS + 1] = {0};
    for (int i = 0; i < SUBJECTS; i++)
        names[i] = subjects[i].name;
    char *expected = names_expected(names, name);
    report_error("bench '%s': %s", name, expected);
    free(expected);
    return EXIT_USAGE;
}

/* Each experiment that a word names, once; bench where there is none. */
static int run_subjects(const program_options *s)
{
    int code = s->subjects.count ? EXIT_SKIPPED : experiment_run(&bench, s);
    for (int i = 0; i < s->subjects.count; i++) {
        const experiment *e = find_subject(s->subjects.items[i]);
        bool before = false;
        for (int j = 0; j < i; j++)
            before |= find_subject(s->subjects.items[j]) == e;
        if (!before)
            code = exit_worst(code, experiment_run(e, s));
    }
    return code;
}

static int run(const program_options *s, int count, const char *const *words)
{
    for (int i = 0; i < s->subjects.count; i++)
        if (!find_subject(s->subjects.items[i]))
            return report_unknown(s->subjects.items[i]);
    if (s->emit)
        return bench_write_tokens(s, s->emit);
    printout_begin(s);
    int code = run_subjects(s);
    printout_end();
    return code;
}

const verb bench_verb = {
    .name = "bench",
    .operands = "[SUBJECT...]",
    .summary = "times, on the CPU or a GPU",
    .options = OPTIONS(BENCH_OPTIONS, OPTION_SEED, OPTION_QUICK, OPTION_FULL, OPTION_RESUME,
                       OPTION_SHARD, OPTION_OUT, OPTION_DRY_RUN, OPTION_FORMAT),
    .out = "results",
    .help = print_help,
    .run = run,
};
