/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "bench/bench.h"
#include "bench/growth.h"
#include "common/printout.h"
#include "common/report.h"

static void print_help(void)
{
    printf("Times operators and batches of inverses on a device, one after the other: the median\n"
           "of repeats after warm-up, the cache flushed between them, inputs random and rotated,\n"
           "each case checked against the CPU in f64 before it is timed. bench.csv has a row for\n"
           "each, and its shares of the copy bandwidth and of the arithmetic that the same run\n"
           "measures; bench_ratios.csv puts some of them beside each other.\n"
           "With the word memory: time and memory of linear operators against n and m instead, in\n"
           "bench_growth.csv, the exponents in bench_growth_fits.csv.\n"
           "--operator alone leaves the inverses out, --variant alone the operators.\n"
           "%s\n\nexample: %s\n",
           bench.defaults, bench.example);
}

/* What the words run; none: the first. */
static const struct {
    const char *word;
    const experiment *e;
} parts[] = {{"", &bench}, {"memory", &bench_growth}};
enum { PARTS = sizeof parts / sizeof *parts };

static const experiment *find_part(int count, const char *const *words)
{
    for (int i = 0; i < PARTS && count < 2; i++)
        if (strcmp(parts[i].word, count ? words[0] : "") == 0)
            return parts[i].e;
    return NULL;
}

static int run(const settings *s, int count, const char *const *words)
{
    const experiment *e = find_part(count, words);
    if (!e)
        return report_error("bench '%s': expected memory or nothing", words[count - 1]), EXIT_USAGE;
    if (s->emit)
        return bench_write_tokens(s, s->emit);
    printout_begin(s);
    int code = experiment_run(e, s);
    printout_end();
    return code;
}

const verb bench_verb = {
    .name = "bench",
    .operands = "[memory]",
    .summary = "times, on the CPU or a GPU",
    .options = BENCH_OPTIONS | USES_RUN,
    .out = "results",
    .help = print_help,
    .run = run,
};
