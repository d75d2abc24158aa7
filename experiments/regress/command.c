/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/printout.h"
#include "common/report.h"
#include "regress/compare.h"
#include "regress/regress.h"
#include "regress/report.h"
#include "regress/rows.h"

static void print_help(void)
{
    printf(
        "Measures the error of every operator and variant in every type, and compares it row by\n"
        "row with the rows kept in golden/accuracy.csv: digits are lost if the error, in units\n"
        "of the effect of one rounding of every stored number, is more than twice the kept one\n"
        "plus two such units. regress.csv has a row for each.\n"
        "--against FILE: compares with another run's regress.csv, of another machine or commit;\n"
        "with FILE.csv before it compares two such files and runs nothing.\n"
        "--update REASON: keeps this run's rows, and lists the changes.\n"
        "Exit code 1: digits are lost, a row FAILs or is gone, or more are marginal.\n"
        "%s\n\nexample: %s\n",
        regress.defaults, regress.example);
}

static int check_options(const program_options *s)
{
    for (int i = 0; i < s->dtype_count; i++)
        if (s->dtypes[i] >= ATN_CPU_DTYPE_COUNT) {
            report_error("--dtype %s: expected f32 or f64; --storage takes the narrow types",
                         atn_dtype_name(s->dtypes[i]));
            return EXIT_USAGE;
        }
    if (s->against && (s->baseline || s->update))
        report_error("--against: takes the place of --baseline, and nothing of it is kept by "
                     "--update; expected it alone");
    else if (s->update && !regress_is_full(s))
        report_error("--update: would keep a part of the rows alone; expected none of --operator, "
                     "--input, --dtype, --storage, --n, --m");
    else
        return EXIT_PASS;
    return EXIT_USAGE;
}

static int compare_files(const char *file, const char *against)
{
    table *now, *kept = NULL;
    int code = rows_read(file, &now);
    if (code == EXIT_PASS)
        code = rows_read(against, &kept);
    if (code == EXIT_PASS) {
        compare_outcome o;
        table *compared = table_create(regress_columns, COMPARED_COLUMNS);
        compare_rows(now, kept, true, compared, &o);
        regress_report(compared, &o, against, false);
        printout_tables(regress.name, regress.outputs, &compared, 1);
        code = compare_failed(&o) ? EXIT_CHECK : EXIT_PASS;
        compare_free(&o);
        table_free(compared);
    }
    table_free(kept);
    table_free(now);
    return code;
}

static int run(const program_options *s, int count, const char *const *words)
{
    bool files = count == 1 && s->against && !s->baseline && !s->update && regress_is_full(s) &&
                 s->device == ATN_CPU && !s->dry_run;
    if (count > 0 && !files) {
        report_error("regress '%s': expected options only, or FILE.csv --against FILE.csv and "
                     "nothing else",
                     words[0]);
        return EXIT_USAGE;
    }
    if (check_options(s) != EXIT_PASS)
        return EXIT_USAGE;
    printout_begin(s);
    int code = files ? compare_files(words[0], s->against) : experiment_run(&regress, s);
    printout_end();
    return code;
}

const verb regress_verb = {
    .name = "regress",
    .operands = "[FILE.csv]",
    .summary = "the accuracy of every operator, against what was kept",
    .options = OPTIONS(REGRESS_OPTIONS, OPTION_THREADS, OPTION_ISA, OPTION_OUT, OPTION_DRY_RUN,
                       OPTION_FORMAT),
    .out = "results",
    .help = print_help,
    .run = run,
};
