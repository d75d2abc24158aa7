/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims/report.h"

#include <attnum/version.h>
#include <stdlib.h>
#include <string.h>

#include "claims/page.h"
#include "common/files.h"
#include "common/metadata.h"
#include "common/printout.h"
#include "common/report.h"

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

const char *const report_introduction =
    "Some are printed in two papers, and a few are about published code or ours. Quotations leave "
    "out citations. Numbers are computed by this command, except where a row says 'as printed' or "
    "'printed'. Proved: the verdict (for 'fails' the counterexample) is proved by the proof that "
    "is given. Certified: by rational or whole-number arithmetic or by ball arithmetic, which is "
    "interval arithmetic with rigorous error bounds, where rounding could be blamed. Observed: "
    "measured on these inputs. Proved and observed: the proof covers what it says, the rest is "
    "observed.";

int report_count(const judged *all, int count, verdict_kind kind)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found += all[i].verdict.kind == kind;
    return found;
}

char *report_basis(const judged *j)
{
    static const char observation[] = "Observed:"; /* a corrected statement that is no theorem */
    if (j->verdict.kind == VERDICT_NOT_TESTABLE)   /* the text next to it has the proof */
        return must_format("%s", "");
    bool proved = *j->claim->proof, certified = j->verdict.certified == CERTIFIED_YES;
    bool observed = j->verdict.kind == VERDICT_OBSERVED || (!proved && !certified) ||
                    strncmp(j->claim->corrected, observation, strlen(observation)) == 0;
    const char *const words[] = {
        proved ? "proved" : NULL,
        certified                              ? "certified"
        : j->verdict.certified == CERTIFIED_NO ? "not certified"
                                               : NULL,
        observed ? "observed" : NULL,
    };
    char *basis = must_format("%s", "");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i]) {
            char *longer = must_format("%s%s%s", basis, *basis ? ", " : "", words[i]);
            free(basis);
            basis = longer;
        }
    return basis;
}

/* ---- stdout ---- */

enum { TEXT_WIDTH = 100, INDENT = 17 };

/* The number of columns that the UTF-8 word at text takes. */
static int word_width(const char *text)
{
    int width = 0;
    for (; *text && *text != ' '; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

/* A title, and a text to the right of it, broken at blanks. */
static void print_field(const char *title, const char *text)
{
    if (!text || !*text)
        return;
    int used = printf("     %-12s", title);
    while (*text) {
        int width = word_width(text);
        if (used > INDENT && used + 1 + width > TEXT_WIDTH)
            used = printf("\n%*s", INDENT, "") - 1;
        else if (used > INDENT)
            used += printf(" ");
        size_t length = strcspn(text, " ");
        fwrite(text, 1, length, stdout);
        used += width;
        text += length + strspn(text + length, " ");
    }
    printf("\n");
}

void report_print(const claim_run *run, const judged *j)
{
    const verdict *v = &j->verdict;
    if (!report_stream())
        return;
    printf("%-4s %s\n", j->claim->id, verdict_name(v->kind));
    print_field("statement", j->claim->statement);
    print_field("source", j->claim->source);
    print_field("condition", v->condition);
    print_field("measured", v->measured);
    print_field("bound", v->bound);
    print_field("would test", v->would_test);
    print_field("example", v->counterexample);
    print_field("certificate", v->certificate);
    print_field("corrected", j->claim->corrected);
    printf("\n");
}

/* ---- claims.csv ---- */

static const column columns[] = {
    {"id", COLUMN_TEXT, "", "the number of the statement"},
    {"source", COLUMN_TEXT, "", "paper, and where in it"},
    {"statement", COLUMN_TEXT, "", "what it says, briefly"},
    {"verdict", COLUMN_TEXT, "", "holds, holds if, fails, observed, or not testable here"},
    {"condition", COLUMN_TEXT, "", "of 'holds if'"},
    {"measured", COLUMN_TEXT, "", "the numbers behind the verdict"},
    {"bound", COLUMN_TEXT, "", "what they are compared with"},
    {"counterexample", COLUMN_TEXT, "", "the smallest there is"},
    {"certified", COLUMN_TEXT, "",
     "whether ball or rational arithmetic proves it: yes, no, or not needed where rounding could "
     "not be blamed"},
    {"evidence_csv", COLUMN_TEXT, "", "the CSVs behind it, relative to this file"},
    {"corrected", COLUMN_TEXT, "", "the corrected statement"},
};

/* "a.csv b.csv"; to be freed. */
static char *list_evidence(const claim *c)
{
    char *list = must_format("%s", "");
    for (int i = 0; c->evidence[i]; i++) {
        char *path = evidence_path(evidence_find(c->evidence[i]), 0, ".csv");
        char *longer = must_format("%s%s%s", list, i ? " " : "", path);
        free(path);
        free(list);
        list = longer;
    }
    return list;
}

static void add_cell(table *t, const char *text)
{
    if (text && *text)
        table_text(t, text);
    else
        table_missing(t);
}

static void add_row(table *t, const judged *j)
{
    char *paths = list_evidence(j->claim);
    const char *const cells[] = {
        j->claim->id,
        j->claim->source,
        j->claim->statement,
        verdict_name(j->verdict.kind),
        j->verdict.condition,
        j->verdict.measured,
        j->verdict.bound,
        j->verdict.counterexample,
        certified_name(j->verdict.certified),
        paths,
        j->claim->corrected,
    };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        add_cell(t, cells[i]);
    free(paths);
}

const output_spec report_ledger = {"claims", "A verdict per statement of the papers.", columns,
                                   sizeof columns / sizeof *columns};

static table *make_table(const judged *all, int count)
{
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++)
        add_row(t, &all[i]);
    return t;
}

void report_print_table(const judged *all, int count)
{
    table *t = make_table(all, count);
    printout_tables("claims", &report_ledger, &t, 1);
    table_free(t);
}

static void write_csv(const claim_run *run, const judged *all, int count, FILE *file)
{
    table *t = make_table(all, count);
    table_write_csv(t, file);
    table_free(t);
}

/* csv: where claims.csv is now. Returns an exit code. */
static int write_metadata(const claim_run *run, int code, const char *csv, FILE *file)
{
    static const experiment ledger = {
        .name = "claims", .outputs = &report_ledger, .output_count = 1};
    return metadata_write(&ledger, run->s, NULL, 0, &(run_facts){.fingerprint = "", .code = code},
                          csv, file);
}

/* ---- claims.md ---- */

/* "3 hold, 5 fail, ..." as a table. */
static void write_counts(const judged *all, int count, FILE *file)
{
    fprintf(file, "| verdict | statements | what it means |\n|---|---|---|\n");
    for (int kind = VERDICT_NONE + 1; kind < VERDICT_COUNT; kind++)
        fprintf(file, "| %s | %d | %s |\n", verdict_name((verdict_kind)kind),
                report_count(all, count, (verdict_kind)kind),
                verdict_description((verdict_kind)kind));
    fprintf(file, "\n");
}

/* Writes a text in a cell of a table, where a bar must be escaped. */
static void write_cell(const char *text, FILE *file)
{
    for (; *text; text++)
        fprintf(file, *text == '|' ? "\\|" : "%c", *text);
}

static void write_summary(const judged *all, int count, FILE *file)
{
    fprintf(file, "| id | source | statement | verdict | rests on |\n|---|---|---|---|---|\n");
    for (int i = 0; i < count; i++) {
        const claim *c = all[i].claim;
        fprintf(file, "| [%s](#%s) | %s | ", c->id, c->id, c->source);
        write_cell(c->statement, file);
        char *basis = report_basis(&all[i]);
        fprintf(file, " | **%s** | %s |\n", verdict_name(all[i].verdict.kind), basis);
        free(basis);
    }
    fprintf(file, "\n");
}

static void write_field(const char *title, const char *text, FILE *file)
{
    if (text && *text)
        fprintf(file, "**%s.** %s\n\n", title, text);
}

static void write_evidence(const claim_run *run, const claim *c, FILE *file)
{
    for (int i = 0; c->evidence[i]; i++) {
        const evidence *e = evidence_find(c->evidence[i]);
        char *command = evidence_command(run, e);
        fprintf(file, "%s `%s` gives", i ? ";" : "**Evidence.**", command);
        for (int output = 0; output < evidence_experiment(e)->output_count; output++) {
            char *path = evidence_path(e, output, ".csv");
            fprintf(file, "%s [%s](%s)", output ? "," : "", path, path);
            free(path);
        }
        free(command);
    }
    if (c->evidence[0])
        fprintf(file, ".\n\n");
}

static void write_plots(const claim *c, FILE *file)
{
    for (int i = 0; c->evidence[i]; i++) {
        const evidence *e = evidence_find(c->evidence[i]);
        char *path = evidence_path(e, 0, ".png");
        if (evidence_experiment(e)->plot)
            fprintf(file, "![%s](%s)\n\n", e->experiment, path);
        free(path);
    }
}

static void write_claim(const claim_run *run, const judged *j, FILE *file)
{
    const verdict *v = &j->verdict;
    char *again = evidence_claim_command(run, j->claim->id), *basis = report_basis(j);
    fprintf(file, "## <a id=\"%s\"></a>%s: %s\n\n", j->claim->id, j->claim->id,
            verdict_name(v->kind));
    fprintf(file, "> %s\n>\n> %s\n\n", j->claim->statement, j->claim->source);
    write_field("Condition", v->condition, file);
    write_field("Rests on", basis, file);
    write_field("What was done", j->claim->method, file);
    write_field("Measured", v->measured, file);
    write_field("Compared with", v->bound, file);
    write_field("What would test it", v->would_test, file);
    write_field("Smallest counterexample", v->counterexample, file);
    write_field("Certificate", v->certificate, file);
    if (*or_empty(v->notes_text))
        fprintf(file, "%s\n", v->notes_text);
    write_field("Corrected", j->claim->corrected, file);
    write_field("Proof", j->claim->proof, file);
    write_evidence(run, j->claim, file);
    fprintf(file, "**Run again.** `%s`\n\n", again);
    write_plots(j->claim, file);
    free(basis);
    free(again);
}

static void write_markdown(const claim_run *run, const judged *all, int count, FILE *file)
{
    fprintf(file,
            "# The papers' statements, tested\n\nattnum %s, `%s`. %d statement%s on softmax-free "
            "attention. %s\n\n",
            ATN_VERSION, run->s->command, count, count == 1 ? "" : "s", report_introduction);
    write_counts(all, count, file);
    write_summary(all, count, file);
    for (int i = 0; i < count; i++)
        write_claim(run, &all[i], file);
}

/* ---- Files ---- */

int report_write(const claim_run *run, const judged *all, int count, int code)
{
    static const struct {
        const char *name;
        void (*write)(const claim_run *run, const judged *all, int count, FILE *file);
    } kinds[] = {{"claims.csv", write_csv},
                 {"claims.md", write_markdown},
                 {"claims.html", claims_page_write}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    new_file files[KINDS + 1] = {0}, *metadata = &files[KINDS];
    int written = EXIT_PASS;
    for (int i = 0; i < KINDS && written == EXIT_PASS; i++) {
        written = new_file_open(&files[i], run->folder, kinds[i].name);
        if (written == EXIT_PASS) {
            kinds[i].write(run, all, count, files[i].file);
            written = new_file_close(&files[i]);
        }
    }
    if (written == EXIT_PASS)
        written = new_file_open(metadata, run->folder, "claims.csv-metadata.json");
    if (written == EXIT_PASS)
        written = write_metadata(run, code, files[0].temporary, metadata->file);
    if (written == EXIT_PASS)
        written = new_file_close(metadata);
    for (int i = 0; i <= KINDS && written == EXIT_PASS; i++)
        written = new_file_publish(&files[i]);
    for (int i = 0; i <= KINDS; i++)
        new_file_free(&files[i]);
    return written;
}
