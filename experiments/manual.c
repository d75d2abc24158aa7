/* SPDX-License-Identifier: BSD-3-Clause */
/* manual ATTNUM.1.IN: prints the manual page. In the input a line @NAME@ is replaced by the options
 * of that verb, @OPTIONS@ by the description of all options. */
#include <stdio.h>
#include <string.h>

#include "registry.h"

/* Prints what replaces a line @NAME@; false: the line is none. */
static bool expand(const char *line)
{
    char name[32];
    if (sscanf(line, "@%31[A-Za-z]@", name) != 1)
        return false;
    if (strcmp(name, "OPTIONS") == 0)
        options_manual(stdout);
    else if (strcmp(name, "run") == 0)
        options_manual_list(run_options, stdout);
    for (int i = 0; verbs[i]; i++)
        if (strcmp(name, verbs[i]->name) == 0)
            options_manual_list(verbs[i]->options, stdout);
    return true;
}

int main(int argc, char **argv)
{
    char line[1024];
    FILE *page = argc == 2 ? fopen(argv[1], "r") : NULL;
    while (page && fgets(line, sizeof line, page))
        if (!expand(line))
            fputs(line, stdout);
    return !page || ferror(page) || fclose(page) != 0 || fflush(stdout) != 0;
}
