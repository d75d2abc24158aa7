/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims/verdict.h"

#include <stdarg.h>
#include <stdlib.h>

#include "common/report.h"

#define SECOND(code, name, description) name,
#define THIRD(code, name, description)  description,
static const char *const names[] = {VERDICT_LIST(SECOND)};
static const char *const descriptions[] = {VERDICT_LIST(THIRD)};
#undef SECOND
#undef THIRD

const char *verdict_name(verdict_kind kind)
{
    return names[kind];
}

const char *verdict_description(verdict_kind kind)
{
    return descriptions[kind];
}

const char *certified_name(certified_state state)
{
    static const char *const states[] = {
        [CERTIFIED_NOT_NEEDED] = "not needed", [CERTIFIED_YES] = "yes", [CERTIFIED_NO] = "no"};
    return states[state];
}

void verdict_open(verdict *v)
{
    *v = (verdict){0};
    v->notes = must_open_text(&v->notes_text, &v->notes_size);
}

void verdict_close(verdict *v)
{
    if (v->notes)
        must_close_text(v->notes, &v->notes_text, &v->notes_size);
    v->notes = NULL;
}

void verdict_free(verdict *v)
{
    verdict_close(v);
    free(v->condition);
    free(v->measured);
    free(v->bound);
    free(v->would_test);
    free(v->counterexample);
    free(v->certificate);
    free(v->notes_text);
    *v = (verdict){0};
}

void verdict_set(char **text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *made = must_format_list(format, arguments);
    va_end(arguments);
    free(*text);
    *text = made;
}

static bool is_empty(const char *text)
{
    return !text || !*text;
}

const char *verdict_lacks(const verdict *v)
{
    if (v->kind == VERDICT_NONE)
        return "a verdict";
    if ((v->kind == VERDICT_HOLDS_IF) == is_empty(v->condition))
        return "a condition, or has one though it is not 'holds if'";
    if (is_empty(v->measured))
        return v->kind == VERDICT_NOT_TESTABLE ? "what it would need" : "numbers";
    if (v->kind == VERDICT_FAILS && is_empty(v->counterexample))
        return "a counterexample";
    if (v->certified != CERTIFIED_NOT_NEEDED && is_empty(v->certificate))
        return "its certificate, or why there is none";
    return NULL;
}
