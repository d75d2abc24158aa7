/* SPDX-License-Identifier: BSD-3-Clause */
#include "verb.h"

#include <stdlib.h>

#include "report.h"

static void print_help(const verb *v, const program_options *s)
{
    printf("usage: attnum %s%s%s [OPTION...]\n", v->name, v->operands ? " " : "",
           v->operands ? v->operands : "");
    v->help();
    printf("\noptions\n");
    options_help(v->options);
    if (v->help_more)
        v->help_more(s);
}

int verb_run(const verb *v, int argc, char **argv)
{
    program_options s;
    const char **words = must_allocate((size_t)argc + 1, sizeof *words);
    int count = options_names(argc, argv, words), code = count < 0 ? EXIT_USAGE : EXIT_PASS;
    if (count > 0 && !v->operands) {
        report_error("%s '%s': expected options only", v->name, words[0]);
        code = EXIT_USAGE;
    }
    if (code == EXIT_PASS)
        code = options_parse_verb(&s, v->name, v->out, v->options, argc, argv);
    if (code == EXIT_PASS) {
        if (s.help)
            print_help(v, &s);
        else
            code = v->run(&s, count, words);
        options_free(&s);
    }
    free(words);
    return code;
}
