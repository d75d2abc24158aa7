/* SPDX-License-Identifier: BSD-3-Clause */
#include "ledger.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

static program_options parsed;

/* What was judged last, until the evidence changes. */
static const claim *judged;
static verdict last;
static int last_code;

static void forget(void)
{
    if (judged)
        verdict_free(&last);
    judged = NULL;
}

void ledger_open(claim_run *run)
{
    int evidences = 0;
    while (evidence_at(evidences))
        evidences++;
    cr_assert(options_parse_verb(&parsed, "claims", NULL, claims_verb.options, 0, NULL) ==
              EXIT_PASS);
    *run = (claim_run){.s = &parsed, .seed = 1};
    run->tables = must_allocate((size_t)evidences * MAX_OUTPUTS, sizeof(table *));
    atn_context_options options = {.device = ATN_CPU, .threads = 1};
    cr_assert(atn_context_create(&options, &run->context) == ATN_OK);
}

void ledger_close(claim_run *run)
{
    forget();
    evidence_free(run);
    atn_context_free(run->context);
    options_free(&parsed);
}

table *ledger_table(claim_run *run, const char *name, int output)
{
    forget();
    const evidence *e = evidence_find(name);
    cr_assert(e, "%s", name);
    const output_spec *spec = &evidence_experiment(e)->outputs[output];
    table **place = &run->tables[(e - evidence_at(0)) * MAX_OUTPUTS + output];
    table_free(*place);
    return *place = table_create(spec->columns, spec->column_count);
}

/* The value of a column among the cells, to be freed, or null. A ~ means a blank. */
static char *find_cell(const char *cells, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = cells; *word; word += strcspn(word, " "), word += strspn(word, " "))
        if (strncmp(word, name, length) == 0 && word[length] == '=') {
            char *value =
                must_format("%.*s", (int)(strcspn(word, " ") - length - 1), word + length + 1);
            for (char *blank = value; (blank = strchr(blank, '~'));)
                *blank = ' ';
            return value;
        }
    return NULL;
}

static void add_cell(table *t, column_type type, const char *value)
{
    if (!value)
        table_missing(t);
    else if (type == COLUMN_TEXT)
        table_text(t, value);
    else if (type == COLUMN_INTEGER)
        table_integer(t, strtoll(value, NULL, 10));
    else if (type == COLUMN_REAL)
        table_real(t, strtod(value, NULL));
    else
        table_boolean(t, strcmp(value, "true") == 0);
}

void ledger_row(table *t, const char *cells)
{
    forget();
    const column *columns;
    int count = table_columns(t, &columns), found = 0, given = 0;
    for (const char *at = cells; (at = strchr(at, '=')); at++)
        given++;
    for (int i = 0; i < count; i++) {
        char *value = find_cell(cells, columns[i].name);
        found += value != NULL;
        add_cell(t, columns[i].type, value);
        free(value);
    }
    cr_assert(found == given, "a column is misspelt in: %s", cells);
}

const claim *ledger_find(const char *id)
{
    int found = 0;
    while (claims_all()[found] && strcmp(claims_all()[found]->id, id) != 0)
        found++;
    cr_assert(claims_all()[found], "no claim %s", id);
    return claims_all()[found];
}

/* The claim's verdict on the run as it is, judged once for all questions about it. */
static const verdict *judge(const claim_run *run, const char *id, int *code)
{
    const claim *asked = ledger_find(id);
    if (judged != asked) {
        forget();
        verdict_open(&last);
        last_code = asked->judge(run, &last);
        verdict_close(&last);
        judged = asked;
    }
    *code = last_code;
    return &last;
}

verdict_kind ledger_judge(const claim_run *run, const char *id)
{
    int code;
    const verdict *v = judge(run, id, &code);
    cr_assert(code == EXIT_PASS, "%s: exit code %d", id, code);
    cr_expect(!verdict_lacks(v), "%s lacks %s", id, verdict_lacks(v));
    return v->kind;
}

/* One of its texts, to be freed. */
#define LEDGER_TEXT(name, member)                                                                  \
    char *ledger_##name(const claim_run *run, const char *id)                                      \
    {                                                                                              \
        int code;                                                                                  \
        const verdict *v = judge(run, id, &code);                                                  \
        cr_assert(code == EXIT_PASS && v->member, "%s: exit code %d", id, code);                   \
        return must_format("%s", v->member);                                                       \
    }
LEDGER_TEXT(counterexample, counterexample)
LEDGER_TEXT(measured, measured)
LEDGER_TEXT(bound, bound)
LEDGER_TEXT(notes, notes_text)

void ledger_expect_measured(const claim_run *run, const char *id, const char *text)
{
    char *measured = ledger_measured(run, id);
    cr_expect(strstr(measured, text), "%s: %s, expected: %s", id, measured, text);
    free(measured);
}

void ledger_expect_noted(const claim_run *run, const char *id, const char *text)
{
    char *notes = ledger_notes(run, id);
    cr_expect(strstr(notes, text), "%s: expected: %s in\n%s", id, text, notes);
    free(notes);
}

void ledger_expect_counterexample(const claim_run *run, const char *id, const char *text)
{
    char *counterexample = ledger_counterexample(run, id);
    cr_expect(strstr(counterexample, text), "%s: %s, expected: %s", id, counterexample, text);
    free(counterexample);
}

int ledger_code(const claim_run *run, const char *id)
{
    int code;
    judge(run, id, &code);
    return code;
}
