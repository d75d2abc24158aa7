/* SPDX-License-Identifier: BSD-3-Clause */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "claims/markdown.h"
#include "claims/report.h"
#include "common/files.h"
#include "common/html.h"
#include "common/report.h"
#include "common/resources.h"
#include "report/report.h"

static const char style[] =
    "main{max-width:66rem}a{color:var(--note)}\n"
    ":focus-visible{outline:2px solid var(--note);outline-offset:2px}\n"
    "code{font-size:.9em;background:var(--card);border-radius:3px;padding:.1em .3em}"
    "code.command{display:block;white-space:pre;overflow-x:auto;padding:.3em .5em;margin:.5em 0}\n"
    "section{border-top:1px solid var(--line);margin-top:2.2em;padding-top:.5em}"
    "section h2{margin-top:.5em}\n"
    "figure{background:#fff;margin:1em 0;padding:10px}figure img{max-width:100%;height:auto;"
    "display:block;margin:0 auto}\n"
    ".time{white-space:nowrap}details{margin:.8em 0}summary{cursor:pointer;font-weight:600}\n"
    ".prose p,.prose li{max-width:46rem}h4{margin:1.2em 0 .3em}\n"
    ".overview td,.overview th{text-align:left;white-space:normal;vertical-align:top}\n"
    /* on a phone a row is a block: the name and the pill, below them the other cells */
    "@media (max-width:640px){.overview thead{display:none}.overview table{width:100%}"
    ".overview tr{display:grid;grid-template-columns:1fr auto;border-bottom:1px solid var(--line);"
    "padding:.4em 0}.overview td,.overview th{border:0;padding:.1em 0}"
    ".overview td:nth-child(2){order:1;grid-column:1/-1}.overview td:nth-child(4){order:2}}\n"
    ".verdict.whole,.verdict.holds{color:var(--fine)}.verdict.missing,.verdict.skipped,"
    ".verdict.holds-if{color:var(--tip)}"
    ".verdict.check-failed,.verdict.changed,.verdict.fails{color:var(--warning)}"
    ".verdict.observed{color:var(--note)}\n"
    "dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1em 1.2em;margin:1em 0}"
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
    "@media (max-width:640px){dl{grid-template-columns:minmax(0,1fr)}dd{margin-bottom:.5em}}\n"
    "@media print{code.command{white-space:pre-wrap}section,figure{break-inside:avoid}}\n";

/* ---- Elements ---- */

/* One of our own names in a pill of its own colour; "holds if" has the class holds-if. */
static void write_pill(FILE *file, const char *name)
{
    fputs("<span class=\"verdict ", file);
    for (const char *c = name; *c; c++)
        fputc(*c == ' ' ? '-' : *c, file);
    fputs("\">", file);
    html_text(file, name);
    fputs("</span>", file);
}

/* The identifier of an experiment on the page: "convergence-curves". */
static void write_anchor(FILE *file, const char *name)
{
    for (; *name; name++)
        fputc(*name == '/' ? '-' : *name, file);
}

static cJSON *run_of(const result *r)
{
    return cJSON_GetObjectItem(r->metadata, "run");
}

/* Text at a path such as "blas.config"; null: there is none. */
static const char *get_text(const cJSON *run, const char *path)
{
    const char *dot = strchr(path, '.');
    char *first = must_format("%.*s", (int)strcspn(path, "."), path);
    const cJSON *item = cJSON_GetObjectItem(run, first);
    free(first);
    return dot ? get_text(item, dot + 1) : cJSON_GetStringValue(item);
}

/* Writes and frees a command, with --out. */
static void write_command(FILE *file, char *command, const char *out)
{
    command = options_add_word(options_add_word(command, "--out"), out);
    fputs("<code>", file);
    html_text(file, command);
    fputs("</code>", file);
    free(command);
}

/* ---- The head ---- */

static const struct {
    const char *path, *title;
} facts[] = {{"cpu", "Processor"},  {"isa", "Instruction set"}, {"gpu.name", "GPU"},
             {"version", "attnum"}, {"commit", "Commit"},       {"compiler", "Compiler"},
             {"flags", "Flags"},    {"blas.config", "BLAS"},    {"lapack", "LAPACK"},
             {"gsl", "GSL"},        {"certify", "Certificates"}};

/* The runs that computed the results: of merged ones the shards, since the other fields are about
 * the merge. To be freed with cJSON_Delete. */
static cJSON *list_runs(const result *results, int count)
{
    cJSON *runs = cJSON_CreateArray();
    for (int i = 0; i < count; i++) {
        cJSON *run = run_of(&results[i]), *shards = cJSON_GetObjectItem(run, "shards");
        cJSON *shard = shards ? shards->child : NULL;
        if (!shard)
            cJSON_AddItemReferenceToArray(runs, run);
        for (; shard; shard = shard->next)
            cJSON_AddItemReferenceToArray(runs, shard);
    }
    return runs;
}

/* All values that the runs have, each once: results may come from several machines. */
static void write_facts(FILE *file, const result *results, int count)
{
    cJSON *runs = list_runs(results, count);
    fputs("<dl>\n", file);
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++) {
        int written = 0;
        for (const cJSON *run = runs->child; run; run = run->next) {
            const char *value = get_text(run, facts[k].path);
            bool seen = false;
            for (const cJSON *i = runs->child; value && i != run && !seen; i = i->next) {
                const char *other = get_text(i, facts[k].path);
                seen = other && strcmp(other, value) == 0;
            }
            if (!value || seen)
                continue;
            if (written++ == 0)
                fprintf(file, "<dt>%s</dt><dd>", facts[k].title);
            else
                fputs("; ", file);
            html_text(file, value);
        }
        fputs(written ? "</dd>\n" : "", file);
    }
    fputs("</dl>\n", file);
    cJSON_Delete(runs);
}

/* "2026-11-23 20:15 UTC, 1.5 s" from the metadata's "2026-11-23T20:15:07Z"; of a run that was
 * resumed the seconds are its last part's. */
static void write_time(FILE *file, const char *date, double seconds, bool resumed)
{
    int year, month, day, hour, minute;
    if (!date || sscanf(date, "%4d-%2d-%2dT%2d:%2d", &year, &month, &day, &hour, &minute) != 5) {
        fputs("–", file);
        return;
    }
    fprintf(file, "<span class=\"time\">%04d-%02d-%02d %02d:%02d UTC", year, month, day, hour,
            minute);
    if (seconds > 0)
        fprintf(file, ", %.1f s%s", seconds, resumed ? " (the last part)" : "");
    fputs("</span>", file);
}

static void write_overview(FILE *file, const result *results, int count)
{
    html_begin_table(file, "Experiments");
    fputs("<thead><tr><th scope=\"col\">experiment</th><th scope=\"col\">shows</th>"
          "<th scope=\"col\">results</th><th scope=\"col\">run</th></tr></thead>\n<tbody>\n",
          file);
    for (int i = 0; i < count; i++) {
        const cJSON *run = run_of(&results[i]);
        double seconds = cJSON_GetNumberValue(cJSON_GetObjectItem(run, "seconds"));
        const char *date = results[i].state == RESULT_MISSING ? NULL : get_text(run, "date");
        fputs("<tr><th scope=\"row\"><a href=\"#", file);
        write_anchor(file, results[i].e->name);
        fprintf(file, "\">%s</a></th><td>", results[i].e->name);
        html_text(file, results[i].e->summary);
        fputs("</td><td>", file);
        write_pill(file, result_names[results[i].state]);
        fputs("</td><td>", file);
        write_time(file, date, seconds, cJSON_HasObjectItem(run, "resumed_points"));
        fputs("</td></tr>\n", file);
    }
    fputs("</tbody>", file);
    html_end_table(file);
}

static void write_head(FILE *file, const result *results, int count)
{
    fputs("<h1>Softmax-free attention: figures and statements</h1>\n"
          "<p>The experiments of attnum and their results in this folder: what each shows, how to "
          "read it, the command that made it and its numbers as CSV.</p>\n<ul>\n",
          file);
    for (int state = RESULT_STATES - 1; state >= 0; state--) {
        int number = 0;
        for (int i = 0; i < count; i++)
            number += results[i].state == (result_state)state;
        if (number == 0)
            continue;
        fprintf(file, "<li>%d ", number);
        write_pill(file, result_names[state]);
        fputs(": ", file);
        html_text(file, result_meanings[state]);
        fputs("</li>\n", file);
    }
    fputs("</ul>\n", file);
    write_facts(file, results, count);
    fputs("<div class=\"overview\">\n", file);
    write_overview(file, results, count);
    fputs("</div>\n", file);
}

/* ---- How to read it: the page of an experiment, EXPERIMENT.md ---- */

/* Removes "**" and the addresses of links, and joins the lines of list items, but those of tables,
 * and not to what an empty line ends; in place. */
static void simplify(char *text)
{
    char *to = text;
    bool in_table = false;
    for (const char *from = text; *from;) {
        const char *close = *from == '[' ? strstr(from, "](") : NULL;
        const char *end =
            close && !memchr(from, '\n', (size_t)(close - from)) ? strchr(close, ')') : NULL;
        if (strncmp(from, "**", 2) == 0) {
            from += 2;
        } else if (end) {
            memmove(to, from + 1, (size_t)(close - from - 1));
            to += close - from - 1;
            from = end + 1;
        } else if (strncmp(from, "\n  ", 3) == 0) {
            from += 1 + strspn(from + 1, " ");
            bool apart = in_table || *from == '|' || (to > text && to[-1] == '\n');
            in_table = *from == '|';
            *to++ = apart ? '\n' : ' ';
        } else if (strncmp(from, "\n* ", 3) == 0) {
            memcpy(to, "\n- ", 3);
            to += 3;
            from += 3;
        } else {
            in_table = in_table && *from != '\n';
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* Writes the text without blocks of code, with headings as titles. */
static void write_guide(FILE *file, const char *label, char *text)
{
    static const char *const none[] = {NULL};
    const markdown m = {file, label, none};
    bool code = false;
    char *part = text;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        bool fence = strncmp(line, "```", 3) == 0, heading = !code && *line == '#';
        if (next)
            next++;
        if (!fence && !heading && !code)
            continue;
        char first = *line;
        *line = '\0'; /* ends the part before it */
        markdown_blocks(&m, part);
        *line = first;
        part = next ? next : line + strlen(line);
        code = fence ? !code : code;
        if (heading && line > text) { /* the first one is the experiment's name */
            char *title = must_format("%.*s", (int)strcspn(line, "\n"), line);
            fputs("<h4>", file);
            html_text(file, title + strspn(title, "# "));
            fputs("</h4>\n", file);
            free(title);
        }
    }
    markdown_blocks(&m, part);
}

static int write_reading(FILE *file, const experiment *e)
{
    size_t size;
    char *name = result_path(e, 0, ".md"), *path = resource_path("plots", name);
    char *text = path ? files_read(path, "a readable file", &size) : NULL;
    int code = text ? EXIT_PASS : EXIT_ENVIRONMENT;
    if (text) {
        fputs("<details><summary>What it shows, and how to read it</summary>\n<div class=\"prose\">"
              "\n",
              file);
        simplify(text);
        write_guide(file, e->name, text);
        fputs("</div></details>\n", file);
    }
    free(text);
    free(path);
    free(name);
    return code;
}

/* ---- An experiment ---- */

static int write_figure(FILE *file, const char *folder, const experiment *e)
{
    static const char signature[] = "\x89PNG\r\n\x1a\n";
    size_t size;
    char *name = result_path(e, 0, ".png"), *path = must_format("%s/%s", folder, name);
    bool exists = access(path, F_OK) == 0;
    char *bytes = exists ? files_read(path, "a readable file", &size) : NULL;
    int code = exists && !bytes ? EXIT_ENVIRONMENT : EXIT_PASS;
    if (bytes && size > sizeof signature && memcmp(bytes, signature, sizeof signature - 1) == 0) {
        fprintf(file, "<figure><img alt=\"Plot of %s\" src=\"data:image/png;base64,", e->name);
        html_base64(file, size, bytes);
        fputs("\"/></figure>\n", file);
    } else if (e->plot) {
        fputs("<p class=\"soft\">There is no plot: gnuplot did not make one.</p>\n", file);
    }
    free(bytes);
    free(path);
    free(name);
    return code;
}

static void write_outputs(FILE *file, const char *folder, const experiment *e)
{
    fputs("<ul>\n", file);
    for (int i = 0; i < e->output_count; i++) {
        char *name = result_path(e, i, ".csv"), *path = must_format("%s/%s", folder, name);
        bool there = access(path, F_OK) == 0;
        fputs("<li>", file);
        if (there)
            fprintf(file, "<a href=\"%s\">%s</a>", name, name);
        else
            fprintf(file, "%s (missing)", name);
        fputs(": ", file);
        html_text(file, e->outputs[i].description);
        fputs("</li>\n", file);
        free(path);
        free(name);
    }
    fputs("</ul>\n", file);
}

static int write_experiment(FILE *file, const char *folder, const result *r)
{
    int code = EXIT_PASS;
    const char *command = get_text(run_of(r), "command");
    fputs("<section id=\"", file);
    write_anchor(file, r->e->name);
    fprintf(file, "\">\n<h2>%s ", r->e->name);
    write_pill(file, result_names[r->state]);
    fputs("</h2>\n<p>", file);
    html_text(file, r->e->summary);
    fputs(" <span class=\"soft\">(", file);
    html_text(file, r->e->source);
    fputs(")</span></p>\n", file);
    if (r->state != RESULT_WHOLE) {
        fputs("<p>", file);
        html_text(file, result_meanings[r->state]);
        fputs("; ", file);
        write_command(file, must_format("attnum run %s", r->e->name), folder);
        fputs(" runs it.</p>\n", file);
    }
    if (r->state != RESULT_MISSING)
        code = write_figure(file, folder, r->e);
    if (code == EXIT_PASS)
        code = write_reading(file, r->e);
    if (command) {
        fputs("<code class=\"command\" tabindex=\"0\">", file);
        html_text(file, command);
        fputs("</code>\n", file);
    }
    write_outputs(file, folder, r->e);
    fputs("</section>\n", file);
    return code;
}

/* ---- The verdicts ---- */

/* A verdict, which is as a file has it. */
static void write_verdict(FILE *file, const char *name)
{
    int kind = 0;
    while (kind < VERDICT_COUNT && strcmp(verdict_name((verdict_kind)kind), name) != 0)
        kind++;
    if (kind < VERDICT_COUNT)
        write_pill(file, verdict_name((verdict_kind)kind));
    else
        html_text(file, name);
}

static void write_verdict_table(FILE *file, const table *t)
{
    fprintf(file,
            "<p>%" PRId64 " statements were tested. <a href=\"claims/claims.html\">claims.html</a> "
            "has the numbers, proofs and corrections.</p>\n<div class=\"overview\">\n",
            table_rows(t));
    html_begin_table(file, "Verdicts");
    fputs("<thead><tr><th scope=\"col\">id</th><th scope=\"col\">statement</th>"
          "<th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n",
          file);
    for (int64_t i = 0; i < table_rows(t); i++) {
        const char *id = cell_text(t, i, "id");
        fputs("<tr><th scope=\"row\"><a href=\"claims/claims.html#", file);
        html_text(file, id);
        fputs("\">", file);
        html_text(file, id);
        fputs("</a></th><td>", file);
        html_text(file, cell_text(t, i, "statement"));
        fputs("</td><td>", file);
        write_verdict(file, cell_text(t, i, "verdict"));
        fputs("</td></tr>\n", file);
    }
    fputs("</tbody>", file);
    html_end_table(file);
    fputs("</div>\n", file);
}

/* Verdicts are shown only as a run of attnum claims wrote them. */
static int write_verdicts(FILE *file, const char *folder, result_state state)
{
    char *path = must_format("%s/" REPORT_VERDICTS, folder);
    bool exists = access(path, F_OK) == 0;
    table *t =
        exists ? table_read_file(path, report_ledger.columns, report_ledger.column_count) : NULL;
    free(path);
    if (exists && !t)
        return EXIT_ENVIRONMENT;
    fputs("<section id=\"verdicts\">\n<h2>The papers' statements ", file);
    if (t)
        write_pill(file, result_names[state]);
    fputs("</h2>\n", file);
    if (state != RESULT_WHOLE) {
        char *out = must_format("%s/claims", folder);
        fputs("<p>", file);
        html_text(file, t ? result_meanings[state] : "There are no verdicts in this folder");
        fputs("; ", file);
        write_command(file, must_format("attnum claims"), out);
        fputs(" makes them.</p>\n", file);
        free(out);
    }
    if (t && state > RESULT_CHANGED)
        write_verdict_table(file, t);
    fputs("</section>\n", file);
    table_free(t);
    return EXIT_PASS;
}

int report_page_write(const char *folder, const result *results, int count, result_state verdicts,
                      const char *command, FILE *file)
{
    int code = EXIT_PASS;
    static const html_page frame = {.title = "Softmax-free attention: figures and statements",
                                    .style = style};
    html_begin(file, &frame);
    write_head(file, results, count);
    for (int i = 0; i < count && code == EXIT_PASS; i++)
        code = write_experiment(file, folder, &results[i]);
    if (code == EXIT_PASS)
        code = write_verdicts(file, folder, verdicts);
    html_end(file, &frame, command);
    return code;
}
