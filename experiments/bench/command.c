/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <attnum/attention.h>

#include "bench/bench.h"
#include "bench/growth.h"
#include "common/names.h"
#include "common/printout.h"
#include "common/report.h"

/* The subjects, with the experiment that times each and the options that choose what is timed; all
 * take the others. Without operands all but memory are timed. */
static const struct {
    const char *name;
    const experiment *of;
    const char *what;
    const option_id *takes;
} subjects[] = {
    {"operators", &bench, "every operator, forward and backward",
     OPTIONS(OPTION_OPERATOR, OPTION_N, OPTION_M, OPTION_DTYPE, OPTION_BATCH)},
    {"inverses", &bench, "inverses, and what applying them costs",
     OPTIONS(OPTION_M, OPTION_DTYPE, OPTION_BATCH, OPTION_VARIANT)},
    {"kernel", &bench, "kernel matrices, compared with libm and OpenBLAS",
     OPTIONS(OPTION_N, OPTION_M, OPTION_DTYPE)},
    {"gemm", &bench, "products, compared with OpenBLAS and libxsmm",
     OPTIONS(OPTION_M, OPTION_DTYPE)},
    {"exp", &bench, "exponentials, compared with libm", OPTIONS(OPTION_DTYPE)},
    {"training", &bench, "steps of attnum train, with each of its operators",
     OPTIONS(OPTION_OPERATOR, OPTION_DTYPE)},
    {"memory", &bench_growth, "time and memory against n and m, with exponents",
     OPTIONS(OPTION_OPERATOR, OPTION_N, OPTION_M)},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static void print_help(void)
{
    printf(
        "Times operators, inverses and their parts. Cases that are compared run in rounds,\n"
        "A B C A B C ..., after warm-up. Each is first checked against the CPU in f64, to within\n"
        "the effect of rounding its inputs; that f64 against references, or left open.\n"
        "bench.csv has a row for each: the median of the rounds, and its share of the best rates\n"
        "of copying, multiply-adds and exp in the same run; bench_ratios.csv has ratios of some,\n"
        "round by round. If other processes were at work the rounds are repeated, twice at most\n"
        "(not with --quick), and then marked dirty.\n");
    for (int i = 0; i < SUBJECTS; i++)
        printf("  %-10s %s\n", subjects[i].name, subjects[i].what);
    printf("Without a subject --operator selects operators alone, --variant inverses alone.\n"
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

/* Runs each experiment that an operand names, once; bench if there is no operand. */
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

static bool is_named(const program_options *s, int subject)
{
    bool named = false;
    for (int i = 0; i < s->subjects.count; i++)
        named |= strcmp(s->subjects.items[i], subjects[subject].name) == 0;
    return named;
}

/* Names the subjects that take an option. To be freed. */
static char *takers_of(option_id option)
{
    char *text;
    size_t size;
    FILE *list = must_open_text(&text, &size);
    for (int k = 0; k < SUBJECTS; k++)
        if (options_include(subjects[k].takes, option))
            fprintf(list, "%s%s", ftell(list) > 0 ? ", " : "", subjects[k].name);
    must_close_text(list, &text, &size);
    return text;
}

/* An option that none of the named subjects takes is refused. */
static int check_taken(const program_options *s)
{
    const struct {
        const char *name;
        bool given;
        option_id option;
    } rows[] = {{"operator", s->operators.count > 0, OPTION_OPERATOR},
                {"n", s->tokens.count > 0, OPTION_N},
                {"m", s->landmarks.count > 0, OPTION_M},
                {"dtype", s->dtypes_given, OPTION_DTYPE},
                {"batch", s->batches.count > 0, OPTION_BATCH},
                {"variant", s->variants.count > 0, OPTION_VARIANT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool taken = s->subjects.count == 0 || !rows[i].given;
        for (int k = 0; k < SUBJECTS; k++)
            taken |= is_named(s, k) && options_include(subjects[k].takes, rows[i].option);
        if (taken)
            continue;
        char *takers = takers_of(rows[i].option);
        report_error("--%s: not for %s%s; it is for %s", rows[i].name, s->subjects.items[0],
                     s->subjects.count > 1 ? " and the others" : "", takers);
        free(takers);
        return EXIT_USAGE;
    }
    return EXIT_PASS;
}

/* In bf16 the CPU computes some operators alone; all else that is named is refused. The operators'
 * names are known to be right. */
static int check_dtypes(const program_options *s)
{
    bool narrow = false;
    for (int i = 0; i < s->dtype_count; i++)
        narrow |= s->device == ATN_CPU && s->dtypes[i] >= ATN_CPU_DTYPE_COUNT;
    for (int i = 0; narrow && i < s->subjects.count; i++)
        if (strcmp(s->subjects.items[i], "operators") != 0) {
            report_error("--dtype bf16: on the CPU for operators, not for %s; expected f32 or f64",
                         s->subjects.items[i]);
            return EXIT_USAGE;
        }
    if (narrow && s->variants.count > 0) {
        report_error(
            "--dtype bf16: on the CPU for operators, not for --variant; expected f32 or f64");
        return EXIT_USAGE;
    }
    for (int i = 0; narrow && i < s->operators.count; i++) {
        const char *name = s->operators.items[i];
        char *alone = must_format("%.*s", (int)strcspn(name, "/"), name);
        const atn_operator_info *info = atn_operator_find(alone);
        free(alone);
        if (!(info->capabilities & ATN_CAN_CPU_BF16)) {
            report_error(
                "--dtype bf16: on the CPU not for %s, which lacks cpu-bf16 in 'attnum list "
                "operators'; expected f32 or f64",
                info->name);
            return EXIT_USAGE;
        }
    }
    return EXIT_PASS;
}

static int run(const program_options *s, int count, const char *const *words)
{
    for (int i = 0; i < s->subjects.count; i++)
        if (!find_subject(s->subjects.items[i]))
            return report_unknown(s->subjects.items[i]);
    if (check_taken(s) != EXIT_PASS || check_dtypes(s) != EXIT_PASS)
        return EXIT_USAGE;
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
