/* SPDX-License-Identifier: BSD-3-Clause */
/* --mistake: mistakes that users add for their own kernels; they are tried before the known
 * ones. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "common/files.h"
#include "common/report.h"

static const char expected_line[] =
    "NAME: PARAMETER=VALUE ..., scale=NUMBER or RESULT=FILE.npy (output, grad-tokens, ...)";

/* The result that a word NAME=FILE.npy names; RESULT_COUNT: it is a parameter. */
static result_kind result_of(const attention_case *c, const char *word, size_t length)
{
    for (int kind = 0; kind < RESULT_COUNT; kind++) {
        const char *name = result_name((result_kind)kind);
        if (result_exists(c, (result_kind)kind) && strlen(name) == length &&
            strncmp(name, word, length) == 0)
            return (result_kind)kind;
    }
    return RESULT_COUNT;
}

static int set_scale(const char *place, const char *value, own_mistake *m)
{
    char *end;
    double scale = strtod(value, &end);
    if (!scale_is_of(m->reference.op)) {
        report_error("%s scale: %s has none", place, atn_operator_get(m->reference.op)->name);
        return EXIT_USAGE;
    }
    if (!(scale > 0) || !isfinite(scale) || *end) {
        report_error("%s scale=%s: expected a number > 0", place, value);
        return EXIT_USAGE;
    }
    m->reference.scale = ATN_SCALE_VALUE;
    m->reference.scale_value = scale;
    m->changed = true;
    return EXIT_PASS;
}

/* Sets the parameters of a mistake in the same way as --param sets the claimed ones. */
static int set_parameters(const char *place, const text_list *changes, subject *to, own_mistake *m)
{
    const atn_attention_desc claimed = to->c.reference;
    to->c.reference = m->reference;
    int code = parameters_set_in(place, changes, to);
    m->reference = to->c.reference;
    m->changed |= changes->count > 0;
    to->c.reference = claimed;
    return code;
}

/* Reads the words after a mistake's name. */
static int read_words(const program_options *s, atn_context *context, const char *place,
                      char *words, subject *to, own_mistake *m)
{
    text_list changes = {0};
    int code = EXIT_PASS, count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(words, " \t", &rest); word && code == EXIT_PASS;
         word = strtok_r(NULL, " \t", &rest), count++) {
        size_t length = strcspn(word, "=");
        char *value = word + length + (word[length] != 0);
        result_kind kind = result_of(&to->judged, word, length);
        if (!length || !*value) {
            report_error("%s: '%s', expected %s", place, word, expected_line);
            code = EXIT_USAGE;
        } else if (kind != RESULT_COUNT)
            code = subject_read_result(s, value, place, false, &to->judged, kind, to,
                                       &m->results[kind]);
        else if (strncmp(word, "scale=", length + 1) == 0)
            code = set_scale(place, value, m);
        else {
            changes.items =
                must_resize(changes.items, (size_t)changes.count + 1, sizeof *changes.items);
            changes.items[changes.count++] = word;
        }
    }
    if (code == EXIT_PASS)
        code = set_parameters(place, &changes, to, m);
    free(changes.items);
    if (code == EXIT_PASS && !count) {
        report_error("%s: nothing after the name, expected %s", place, expected_line);
        code = EXIT_USAGE;
    }
    return code == EXIT_PASS && m->changed
               ? subject_check_problem(context, place, &m->reference, &to->c.shape)
               : code;
}

/* Reads a line that is neither empty nor a comment. */
static int read_line(const program_options *s, atn_context *context, const char *place, char *line,
                     subject *to)
{
    size_t length = strcspn(line, ":");
    bool plain = length > 0 && line[length];
    for (const char *c = line; *c; c++)
        plain &= !iscntrl((unsigned char)*c) || *c == '\t';
    if (!plain) {
        report_error("%s: expected %s", place, expected_line);
        return EXIT_USAGE;
    }
    to->mistakes = must_resize(to->mistakes, (size_t)to->mistake_count + 1, sizeof *to->mistakes);
    own_mistake *m = &to->mistakes[to->mistake_count++];
    *m =
        (own_mistake){.name = must_format("%.*s", (int)length, line), .reference = to->c.reference};
    return read_words(s, context, place, line + length + 1, to, m);
}

int mistakes_read(const program_options *s, atn_context *context, subject *to)
{
    size_t size;
    const char *path = s->check.mistakes;
    char *text = path ? files_read(path, "a text file of mistakes", &size) : NULL;
    if (!path)
        return EXIT_PASS;
    if (!text)
        return EXIT_ENVIRONMENT;
    int code = EXIT_PASS, number = 1;
    if (strlen(text) != size) {
        report_error("%s: expected a text file of mistakes, not one with a NUL", path);
        code = EXIT_USAGE;
    }
    for (char *line = text; code == EXIT_PASS && *line; number++) {
        char *end = line + strcspn(line, "\n"), *next = end + (*end != 0);
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = 0;
        line += strspn(line, " \t");
        if (*line && *line != '#') {
            char *place = must_format("--mistake %s, line %d", path, number);
            code = read_line(s, context, place, line, to);
            free(place);
        }
        line = next;
    }
    free(text);
    return code;
}
