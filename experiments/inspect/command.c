/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/inspect.h"

#include "common/printout.h"
#include "common/report.h"

static void print_help(void)
{
    printf(
        "Looks at the bottleneck matrices A = K(L, L) that the tokens of FILE.npy (n x d, h x n x d\n"
        "or b x h x n x d, or as --layout says) give under each way to take m landmarks: their\n"
        "spectra and conditioning, the steps each iteration takes to invert them, predicted and\n"
        "measured, the precisions that are safe, the attention matrix's norms and errors. Then\n"
        "says in plain words what to do, with the numbers behind it; first, whether A can be\n"
        "inverted in the type, by the sampling and in the steps of --dtype, --sampling and\n"
        "--iterations (f32, the first there is, 20).\n"
        "Inputs by name (attnum list inputs) are taken too. Samplings by trained weights (conv,\n"
        "conv-code) are left out; --landmarks takes what they make.\n"
        "%s\n\nexample: %s\n",
        inspect.defaults, inspect.example);
}

static int run(const program_options *s, int count, const char *const *words)
{
    if (count != 1) {
        report_error("inspect: %d files given, expected one FILE.npy", count);
        return EXIT_USAGE;
    }
    if (s->html && s->resume) { /* a run that is complete already writes nothing */
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
    .summary = "are these tokens safe? and what to do about it",
    .options = OPTIONS(INSPECT_OPTIONS, OPTION_QUICK, OPTION_FULL, OPTION_RESUME, OPTION_THREADS,
                       OPTION_ISA, OPTION_OUT, OPTION_DRY_RUN, OPTION_FORMAT),
    .out = "results",
    .help = print_help,
    .run = run,
};
