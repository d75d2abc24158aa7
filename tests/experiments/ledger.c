/* SPDX-License-Identifier: BSD-3-Clause */
#include "ledger.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"

static program_options parsed;

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
    evidence_free(run);
    atn_context_free(run->context);
    options_free(&parsed);
}

table *ledger_table(claim_run *run, const char *name, int output)
{
    const evidence *e = evidence_find(name);
    cr_assert(e, "%s", name);
    const output_spec *spec = &evidence_experiment(e)->outputs[output];
    table **place = &run->tables[(e - evidence_at(0)) * MAX_OUTPUTS + output];
    table_free(*place);
    return *place = table_create(spec->columns, spec->column_count);
}

/* The value of a column among the cells, to be freed, or null. A ~ stands for a blank. */
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

static int judge(const claim_run *run, const char *id, verdict *v)
{
    verdict_open(v);
    int code = ledger_find(id)->judge(run, v);
    verdict_close(v);
    return code;
}

verdict_kind ledger_judge(const claim_run *run, const char *id)
{
    verdict v;
    int code = judge(run, id, &v);
    cr_assert(code == EXIT_PASS, "%s: exit code %d", id, code);
    cr_expect(!verdict_lacks(&v), "%s lacks %s", id, verdict_lacks(&v));
    verdict_kind kind = v.kind;
    verdict_free(&v);
    return kind;
}

char *ledger_counterexample(const claim_run *run, const char *id)
{
    verdict v;
    int code = judge(run, id, &v);
    cr_assert(code == EXIT_PASS && v.counterexample, "%s: exit code %d", id, code);
    char *counterexample = must_format("%s", v.counterexample);
    verdict_free(&v);
    return counterexample;
}

char *ledger_measured(const claim_run *run, const char *id)
{
    verdict v;
    int code = judge(run, id, &v);
    cr_assert(code == EXIT_PASS, "%s: exit code %d", id, code);
    char *measured = must_format("%s", v.measured);
    verdict_free(&v);
    return measured;
}

char *ledger_bound(const claim_run *run, const char *id)
{
    verdict v;
    int code = judge(run, id, &v);
    cr_assert(code == EXIT_PASS && v.bound, "%s: exit code %d", id, code);
    char *bound = must_format("%s", v.bound);
    verdict_free(&v);
    return bound;
}

char *ledger_notes(const claim_run *run, const char *id)
{
    verdict v;
    int code = judge(run, id, &v);
    cr_assert(code == EXIT_PASS, "%s: exit code %d", id, code);
    char *notes = must_format("%s", v.notes_text);
    verdict_free(&v);
    return notes;
}

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
    verdict v;
    int code = judge(run, id, &v);
    verdict_free(&v);
    return code;
}
