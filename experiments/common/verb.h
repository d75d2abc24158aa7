/* SPDX-License-Identifier: BSD-3-Clause */
/* A verb of the program, the first argument of `attnum`. */
#ifndef EXPERIMENTS_VERB_H
#define EXPERIMENTS_VERB_H

#include "options.h"

typedef struct {
    const char *name;
    const char *operands;     /* the operands in the usage, "[ID...]"; null: there are none */
    const char *summary;      /* one line, for `attnum --help` */
    const option_id *options; /* OPTIONS(...), or null */
    const char *out;          /* --out where not given */
    /* Printed by --help between the usage and the options. */
    void (*help)(void);
    /* Printed after the options, on which it may depend; null: nothing. */
    void (*help_more)(const program_options *s);
    /* Returns an exit code. */
    int (*run)(const program_options *s, int count, const char *const *words);
} verb;

/* The arguments after the verb: parsed, checked, and run. Returns an exit code. */
int verb_run(const verb *v, int argc, char **argv);

#endif
