/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/inspect.h"

#include "common/printout.h"
#include "common/report.h"

static void print_help(void)
{
    printf(
        "Examines the bottleneck matrices A = K(L, L) of the tokens of FILE.npy (n x d, h x n x d\n"
        "or b x h x n x d, or in the order of --layout) for each way to take m landmarks: their\n"
        "spectra and conditioning, the steps that each iteration needs to invert them, predicted\n"
        "and measured, the precisions that are safe, the attention matrix's norms and errors.\n"
        "Then gives advice, with the numbers it is based on; first, whether A can be inverted in\n"
        "the type, with the sampling and in the steps of --dtype, --sampling and --iterations\n"
        "(by default f32, the first sampling that applies, and 20).\n"
        "Inputs by name (attnum list inputs) are accepted, too. Samplings with trained weights\n"
        "(conv, conv-code) are left out; --landmarks takes their landmarks.\n"
        "%s\n\nexample: %s\n",
        inspect.defaults, inspect.example);
}

static int run(const program_options *s, int count, const char *const *words)
{
    if (count != 1) {
        report_error("inspect: %d files given, expected one FILE.npy", count);
        return EXIT_USAGE;
    }
    if (s->html && s->resume) { /* resuming a complete run writes nothing */
        report_error("--html: --resume may find nothing left to do; expected one of the two");
        return EXIT_USAGE;
    }
    program_options with_tokens = *s;
    const char *word = words[0];
    with_tokens.inputs = (text_list){1, &word};
    printout_begin(s);
    int code = experiment_run(&inspect, &with_tokens);
    printout_end();
    return code;
}

const verb inspect_verb = {
    .name = "inspect",
    .operands = "FILE.npy",
    .summary = "are these tokens safe, and what to do if not",
    .options = OPTIONS(INSPECT_OPTIONS, OPTION_QUICK, OPTION_FULL, OPTION_RESUME, OPTION_THREADS,
                       OPTION_ISA, OPTION_OUT, OPTION_DRY_RUN, OPTION_FORMAT),
    .out = "results",
    .help = print_help,
    .run = run,
};
