/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/train.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/printout.h"
#include "common/report.h"
#include "train/changes.h"

static void print_help(void)
{
    printf(
        "Trains vision transformers of 4 blocks of width 64 (some 147,000 numbers) with any of\n"
        "the operators on the 60,000 pictures of Fashion-MNIST, 28 x 28, in patches of %d x %d,\n"
        "and tests them on the 10,000 others. Leaves the curves in OUT/train.csv and the weights\n"
        "in OUT/trained/OPERATOR-VARIANT-seedN.npz (with a change OPERATOR-VARIANT-CHANGE-seedN),\n"
        "which numpy.load reads. OUT/train_seeds.csv compares accuracies over the seeds. A run\n"
        "that was stopped, or killed, goes on with --resume from its last epoch, to the same\n"
        "numbers. --keep-epochs leaves the weights of every epoch E in ...-seedN-epochE.npz as\n"
        "well, from the initial ones, epoch 0, to the last ones.\n"
        "The pictures come from Debian's package dataset-fashion-mnist.\n"
        "%s\n\nexample: %s\n",
        DEFAULT_PATCH, DEFAULT_PATCH, train.defaults, train.example);
    printf("\nchanges, with which networks can be trained (--change)\n");
    for (int i = 0; i < change_count; i++)
        if (changes[i].before) {
            char *operators = change_operators(&changes[i]);
            bool all = changes[i].operators == changes[CHANGE_NONE].operators;
            printf("  %-9s  %s%s%s\n", changes[i].name, all ? "" : operators, all ? "" : ": ",
                   changes[i].description);
            free(operators);
        }
}

static int run(const program_options *s, int count, const char *const *words)
{
    if (count > 0) {
        report_error("train: %s: expected no word", words[0]);
        return EXIT_USAGE;
    }
    printout_begin(s);
    int code = experiment_run(&train, s);
    printout_end();
    return code;
}

const verb train_verb = {
    .name = "train",
    .summary = "train small networks with any operator",
    .options = OPTIONS(TRAIN_OPTIONS, OPTION_QUICK, OPTION_FULL, OPTION_RESUME, OPTION_SHARD,
                       OPTION_THREADS, OPTION_ISA, OPTION_OUT, OPTION_DRY_RUN, OPTION_FORMAT),
    .out = "results",
    .help = print_help,
    .run = run,
};
