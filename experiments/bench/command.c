/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/bench.h"
#include "common/printout.h"

static void print_help(void)
{
    printf("Times operators and batches of inverses on a device, one after the other: the median\n"
           "of repeats after warm-up, the cache flushed between them, inputs random and rotated,\n"
           "each case checked against the CPU in f64 before it is timed. bench.csv has a row for\n"
           "each, and its shares of the copy bandwidth and of the arithmetic that the same run\n"
           "measures; bench_ratios.csv puts some of them beside each other.\n"
           "--operator alone leaves the inverses out, --variant alone the operators.\n"
           "%s\n\nexample: %s\n",
           bench.defaults, bench.example);
}

static int run(const settings *s, int count, const char *const *words)
{
    if (s->emit)
        return bench_write_tokens(s, s->emit);
    printout_begin(s);
    int code = experiment_run(&bench, s);
    printout_end();
    return code;
}

const verb bench_verb = {
    .name = "bench",
    .summary = "times, on the CPU or a GPU",
    .options = BENCH_OPTIONS | USES_RUN,
    .out = "results",
    .help = print_help,
    .run = run,
};
