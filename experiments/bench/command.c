/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "bench/bench.h"
#include "common/report.h"

static void print_help(void)
{
    printf("usage: attnum bench [OPTION...]\n"
           "Times operators and batches of inverses on a device, one after the other: the median\n"
           "of repeats after warm-up, the cache flushed between them, inputs random and rotated,\n"
           "each case checked against the CPU in f64 before it is timed. bench.csv has a row for\n"
           "each, and its shares of the copy bandwidth and of the arithmetic that the same run\n"
           "measures; bench_ratios.csv puts some of them beside each other.\n"
           "--operator alone leaves the inverses out, --variant alone the operators.\n"
           "%s\n\nexample: %s\n\noptions\n",
           bench.defaults, bench.example);
    settings_help(bench.options | USES_SWEEP);
}

int bench_command(int argc, char **argv)
{
    settings s;
    const char **words = must_allocate((size_t)argc + 1, sizeof *words);
    int count = settings_names(argc, argv, words), code = count < 0 ? EXIT_USAGE : EXIT_PASS;
    if (count > 0) {
        report_error("bench '%s': expected options only", words[0]);
        code = EXIT_USAGE;
    }
    if (code == EXIT_PASS)
        code = settings_parse_verb(&s, "bench", "results", bench.options | USES_SWEEP, argc, argv);
    if (code == EXIT_PASS) {
        if (s.help)
            print_help();
        else if (s.emit)
            code = bench_write_tokens(&s, s.emit);
        else {
            printf("%% attnum %s: %s\n", ATN_VERSION, s.command);
            code = experiment_run(&bench, &s);
        }
        settings_free(&s);
    }
    free(words);
    return code;
}
