/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims/page.h"

#include <attnum/version.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "claims/markdown.h"
#include "common/files.h"
#include "common/html.h"
#include "common/report.h"

/* ---- Style and script ---- */

static const char style[] =
    "main{max-width:60rem}\n"
    "a{color:var(--note)}:focus-visible{outline:2px solid var(--note);outline-offset:2px}\n"
    "[hidden]{display:none!important}\n"
    "code{font-size:.9em;background:var(--card);border-radius:3px;padding:.1em .3em}"
    "code.command{display:block;white-space:pre;overflow-x:auto;padding:.3em .5em}\n"
    ".skip{position:absolute;left:-99rem}.skip:focus{position:static}\n"
    ".verdict[data-verdict=\"holds\"]{color:var(--fine)}"
    ".verdict[data-verdict=\"holds if\"]{color:var(--tip)}"
    ".verdict[data-verdict=\"fails\"]{color:var(--warning)}"
    ".verdict[data-verdict=\"observed\"]{color:var(--note)}\n"
    ".prose td,.prose th{white-space:normal;vertical-align:top;text-align:left;font-size:1rem;"
    "padding:.45em .7em .45em 0}.prose td:last-child{padding-right:0}\n"
    ".prose .number{text-align:right;width:1%}\n"
    ".prose .soft{font-size:.85rem}.prose table{width:100%}\n"
    ".clamp{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;line-clamp:3;"
    "overflow:hidden;overflow-wrap:anywhere}\n"
    "form{display:flex;flex-wrap:wrap;gap:.6em 1em;align-items:center;background:var(--card);"
    "border-radius:6px;padding:.7em .9em;margin:.5em 0 1em}\n"
    "select,input,button{font:inherit;color:inherit;background:var(--bg);border:1px solid "
    "var(--soft);border-radius:4px;padding:.2em .5em;max-width:100%}select{width:10rem}input{width:9rem}\n"
    "section{border-top:1px solid var(--line);margin-top:2.2em;padding-top:1em}\n"
    "h3{font-size:1.15rem;margin:0;display:flex;flex-wrap:wrap;gap:.3em .7em;"
    "align-items:baseline}\n"
    "h3 a{text-decoration:none}h3 .soft{font-size:.85rem;font-weight:400}"
    "h3 .up{margin-left:auto;font-size:.85rem;font-weight:400}\n"
    "blockquote{margin:.8em 0;padding:.1em 0 .1em 1em;border-left:4px solid var(--line)}\n"
    "blockquote p{font-size:1.08rem}blockquote,dd,.notes p,.notes li{max-width:46rem}\n"
    "cite{font-style:normal;color:var(--soft);font-size:.9rem}\n"
    "dl{margin:.6em 0}dl>div{display:grid;grid-template-columns:9.5rem minmax(0,1fr);gap:0 1rem;"
    "margin:.45em 0}\n"
    "dt{color:var(--soft);font-size:.9rem;padding-top:.1em}dd{margin:0;overflow-wrap:anywhere}\n"
    ".notes .scroll{margin:.7em 0}.notes td.text,.notes th.text{white-space:normal;min-width:5em}\n"
    ".notes th:first-child,.notes td:first-child{padding-left:0}\n"
    "figure{background:#fff;color:#1d2433;margin:1em 0;padding:10px}"
    "figcaption{font-size:.85rem;color:#5b6577}\n"
    "dd ul{list-style:none;margin:0;padding:0}dd li+li{margin-top:.5em}\n"
    "@media (min-width:641px){.prose th:last-child{min-width:9rem}}\n"
    "@media (max-width:640px){dl>div{grid-template-columns:minmax(0,1fr)}"
    ".prose td,.prose th{padding-right:.5em}}\n"
    "@media print{html{font-size:10pt}main{max-width:none;padding:0}form,.up{display:none}"
    "a{color:inherit;text-decoration:none}.scroll{overflow:visible}"
    "code.command{white-space:pre-wrap}.clamp{display:block}"
    "h2,h3,dt{break-after:avoid}blockquote,figure,tr{break-inside:avoid}table{font-size:8pt}}\n";

/* Shows the rows and sections that contain the words and have the chosen paper and verdict. */
static const char script[] =
    "'use strict';\n"
    "const form = document.getElementById('filter'), shown = document.getElementById('shown');\n"
    "const plain =\n"
    "  text => text.normalize('NFKD').replace(/[\\u0300-\\u036f]/g, '').toLowerCase();\n"
    "const rows = Array.from(document.querySelectorAll('tr[data-id]'), row => {\n"
    "  const section = document.getElementById(row.dataset.id);\n"
    "  return {row, section, papers: row.dataset.papers.split(','), verdict: row.dataset.verdict,\n"
    "    text: plain(section.textContent)};\n"
    "});\n"
    "const apply = () => {\n"
    "  const paper = form.elements.paper.value, verdict = form.elements.verdict.value;\n"
    "  const words = plain(form.elements.words.value).split(/\\s+/);\n"
    "  let count = 0;\n"
    "  for (const r of rows) {\n"
    "    const take = [!paper || r.papers.includes(paper), !verdict || r.verdict === verdict,\n"
    "      ...words.map(word => r.text.includes(word))].every(Boolean);\n"
    "    r.row.hidden = r.section.hidden = !take;\n"
    "    count += take;\n"
    "  }\n"
    "  shown.textContent = `${count} of ${rows.length} shown`;\n"
    "};\n"
    "/* A link to a hidden statement shows all statements. */\n"
    "const reveal = () => {\n"
    "  const target = rows.find(r => '#' + r.row.dataset.id === location.hash);\n"
    "  if (target ? target.section.hidden : false) {\n"
    "    form.reset();\n"
    "    apply();\n"
    "    target.section.scrollIntoView();\n"
    "  }\n"
    "};\n"
    "form.addEventListener('input', apply);\n"
    "form.addEventListener('reset', () => setTimeout(apply));\n"
    "form.addEventListener('submit', event => event.preventDefault());\n"
    "addEventListener('hashchange', reveal);\n"
    "form.hidden = false;\n"
    "apply();\n";

/* ---- Figures ---- */

/* A plot of the evidence; its bytes are null if gnuplot did not make it. */
typedef struct {
    const evidence *e;
    char *bytes;
    size_t size;
    uint32_t width, height;
} figure;

typedef struct {
    const claim_run *run;
    const judged *all;
    int count;
    markdown text; /* also the page's file */
    figure *figures;
    int figure_count;
} page;

static uint32_t big_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* A PNG begins with a signature and a chunk with its size. */
static figure read_figure(const claim_run *run, const evidence *e)
{
    static const char signature[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    enum { WIDTH_AT = sizeof signature - 1, HEIGHT_AT = WIDTH_AT + 4, HEAD = HEIGHT_AT + 4 };
    figure f = {.e = e};
    char *below = evidence_path(e, 0, ".png"), *path = must_format("%s/%s", run->folder, below);
    f.bytes = files_read(path, NULL, &f.size);
    if (f.bytes && (f.size < HEAD || memcmp(f.bytes, signature, WIDTH_AT) != 0)) {
        free(f.bytes);
        f.bytes = NULL;
    }
    if (f.bytes) {
        f.width = big_endian(f.bytes + WIDTH_AT);
        f.height = big_endian(f.bytes + HEIGHT_AT);
    }
    free(path);
    free(below);
    return f;
}

static bool is_read_by(const evidence *e, const claim *c)
{
    for (int i = 0; c->evidence[i]; i++)
        if (strcmp(c->evidence[i], e->name) == 0)
            return true;
    return false;
}

/* Reads the figures of all claims on the page, each once. */
static void read_figures(page *p)
{
    int evidences = 0;
    while (evidence_at(evidences))
        evidences++;
    p->figures = must_allocate((size_t)evidences, sizeof *p->figures);
    for (int i = 0; i < evidences; i++) {
        const evidence *e = evidence_at(i);
        bool wanted = false;
        for (int j = 0; j < p->count && evidence_experiment(e)->plot && !wanted; j++)
            wanted = is_read_by(e, p->all[j].claim);
        if (wanted)
            p->figures[p->figure_count++] = read_figure(p->run, e);
    }
}

/* Writes the images once; the figures of the statements refer to them, since some are used by
 * several statements. */
static void write_images(const page *p)
{
    FILE *file = p->text.file;
    fputs("<svg style=\"position:absolute;width:0;height:0\" aria-hidden=\"true\"><defs>\n", file);
    for (int i = 0; i < p->figure_count; i++) {
        const figure *f = &p->figures[i];
        if (!f->bytes)
            continue;
        fprintf(file,
                "<image id=\"figure-%s\" width=\"%" PRIu32 "\" height=\"%" PRIu32
                "\" href=\"data:image/png;base64,",
                f->e->name, f->width, f->height);
        html_base64(file, f->size, f->bytes);
        fputs("\"/>\n", file);
    }
    fputs("</defs></svg>\n", file);
}

static void write_figures(const page *p, const claim *c)
{
    FILE *file = p->text.file;
    for (int i = 0; i < p->figure_count; i++) {
        const figure *f = &p->figures[i];
        const experiment *x = evidence_experiment(f->e);
        if (!is_read_by(f->e, c))
            continue;
        if (!f->bytes) {
            fprintf(file,
                    "<p class=\"soft\">No plot of %s is shown: gnuplot did not make one.</p>\n",
                    x->name);
            continue;
        }
        fprintf(file,
                "<figure><svg viewBox=\"0 0 %" PRIu32 " %" PRIu32
                "\" role=\"img\" aria-label=\"Plot of %s\"><use href=\"#figure-%s\"/></svg>\n"
                "<figcaption>%s: ",
                f->width, f->height, x->name, f->e->name, x->name);
        html_text(file, x->summary);
        if (*f->e->options) {
            fputs(" (", file);
            html_text(file, f->e->options);
            fputs(")", file);
        }
        fputs("</figcaption></figure>\n", file);
    }
}

/* ---- The head ---- */

static void write_verdict(FILE *file, verdict_kind kind)
{
    fprintf(file, "<span class=\"verdict\" data-verdict=\"%s\">%s</span>", verdict_name(kind),
            verdict_name(kind));
}

static void write_counts(const page *p)
{
    FILE *file = p->text.file;
    fputs("<div class=\"prose\">\n", file);
    html_begin_table(file, "Verdicts");
    fputs("<thead><tr><th scope=\"col\" class=\"number\">number</th>"
          "<th scope=\"col\">verdict, and what it means</th></tr></thead>\n<tbody>\n",
          file);
    for (int kind = VERDICT_NONE + 1; kind < VERDICT_COUNT; kind++) {
        fprintf(file, "<tr><td class=\"number\">%d</td><td>",
                report_count(p->all, p->count, (verdict_kind)kind));
        write_verdict(file, (verdict_kind)kind);
        fputs(" ", file);
        html_text(file, verdict_description((verdict_kind)kind));
        fputs("</td></tr>\n", file);
    }
    fputs("</tbody>", file);
    html_end_table(file);
    fputs("</div>\n", file);
}

static int count_of_paper(const page *p, claim_paper which)
{
    int found = 0;
    for (int i = 0; i < p->count; i++)
        found += claim_is_in(p->all[i].claim, which);
    return found;
}

static void write_summary(const page *p)
{
    FILE *file = p->text.file;
    fputs("<a class=\"skip\" href=\"#statements\">Skip to the statements</a>\n"
          "<h1>The papers' statements, tested</h1>\n<p>",
          file);
    fprintf(file, "%d statement%s on softmax-free attention. ", p->count, p->count == 1 ? "" : "s");
    html_text(file, report_introduction);
    fputs("</p>\n<p class=\"soft\">attnum " ATN_VERSION ": <code>", file);
    html_text(file, p->run->s->command);
    fputs("</code></p>\n", file);
    write_counts(p);
    fputs("<ul>\n", file);
    for (int i = 0; i < PAPER_COUNT; i++) {
        int found = count_of_paper(p, (claim_paper)i);
        fprintf(file, "<li><b>%s</b> (%d statement%s): ", paper_name((claim_paper)i), found,
                found == 1 ? "" : "s");
        html_text(file, paper_reference((claim_paper)i));
        fputs("</li>\n", file);
    }
    fputs("</ul>\n", file);
}

/* ---- The table ---- */

static void write_filter(const page *p)
{
    FILE *file = p->text.file;
    fputs("<form id=\"filter\" hidden=\"\" autocomplete=\"off\">\n"
          "<label>Paper <select name=\"paper\"><option value=\"\">all</option>",
          file);
    for (int i = 0; i < PAPER_COUNT; i++)
        fprintf(file, "<option>%s</option>", paper_name((claim_paper)i));
    fputs("</select></label>\n<label>Verdict <select name=\"verdict\"><option value=\"\">all"
          "</option>",
          file);
    for (int kind = VERDICT_NONE + 1; kind < VERDICT_COUNT; kind++)
        fprintf(file, "<option>%s</option>", verdict_name((verdict_kind)kind));
    fputs("</select></label>\n<label>Words <input type=\"search\" name=\"words\"/></label>\n"
          "<button type=\"reset\">Clear</button> <output id=\"shown\"></output>\n</form>\n",
          file);
}

static void write_row(const page *p, const judged *j)
{
    FILE *file = p->text.file;
    char *basis = report_basis(j);
    fprintf(file, "<tr data-id=\"%s\" data-verdict=\"%s\" data-papers=\"", j->claim->id,
            verdict_name(j->verdict.kind));
    for (int i = 0, written = 0; i < PAPER_COUNT; i++)
        if (claim_is_in(j->claim, (claim_paper)i))
            fprintf(file, "%s%s", written++ ? "," : "", paper_name((claim_paper)i));
    fprintf(file, "\"><th scope=\"row\"><a href=\"#%s\">%s</a></th><td><div class=\"clamp\">",
            j->claim->id, j->claim->id);
    markdown_line(&p->text, j->claim->statement);
    fputs("</div><span class=\"soft\">", file);
    markdown_line(&p->text, j->claim->source);
    fputs("</span></td><td>", file);
    write_verdict(file, j->verdict.kind);
    fprintf(file, "<br/><span class=\"soft\">%s</span></td></tr>\n", basis);
    free(basis);
}

static void write_table(const page *p)
{
    FILE *file = p->text.file;
    fputs("<h2 id=\"statements\">Statements</h2>\n", file);
    write_filter(p);
    fputs("<div class=\"prose\">\n", file);
    html_begin_table(file, "Statements");
    fputs("<thead><tr><th scope=\"col\">id</th><th scope=\"col\">statement and source</th>"
          "<th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n",
          file);
    for (int i = 0; i < p->count; i++)
        write_row(p, &p->all[i]);
    fputs("</tbody>", file);
    html_end_table(file);
    fputs("</div>\n", file);
}

/* ---- A statement ---- */

static void write_field(const page *p, const char *title, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(p->text.file, "<div><dt>%s</dt><dd>", title);
    markdown_line(&p->text, text);
    fputs("</dd></div>\n", p->text.file);
}

static void write_head(const page *p, const judged *j)
{
    FILE *file = p->text.file;
    const char *id = j->claim->id;
    char *basis = report_basis(j);
    fprintf(file, "<section id=\"%s\">\n<h3><a href=\"#%s\">%s</a> ", id, id, id);
    write_verdict(file, j->verdict.kind);
    fprintf(file,
            " <span class=\"soft\">%s</span> <a class=\"up\" href=\"#statements\">all "
            "statements</a></h3>\n<blockquote><p>",
            basis);
    markdown_line(&p->text, j->claim->statement);
    fputs("</p><cite>", file);
    markdown_line(&p->text, j->claim->source);
    fputs("</cite></blockquote>\n", file);
    free(basis);
}

static void write_command(FILE *file, const char *command)
{
    fputs("<code class=\"command\" tabindex=\"0\">", file);
    html_text(file, command);
    fputs("</code>", file);
}

static void write_commands(const page *p, const claim *c)
{
    FILE *file = p->text.file;
    char *again = evidence_claim_command(p->run, c->id);
    if (c->evidence[0])
        fputs("<div><dt>Evidence</dt><dd><ul>\n", file);
    for (int i = 0; c->evidence[i]; i++) {
        const evidence *e = evidence_find(c->evidence[i]);
        char *command = evidence_command(p->run, e);
        fputs("<li>", file);
        write_command(file, command);
        fputs("gives", file);
        for (int output = 0; output < evidence_experiment(e)->output_count; output++) {
            char *path = evidence_path(e, output, ".csv");
            fprintf(file, "%s <a href=\"%s\">%s</a>", output ? "," : "", path, path);
            free(path);
        }
        fputs("</li>\n", file);
        free(command);
    }
    if (c->evidence[0])
        fputs("</ul></dd></div>\n", file);
    fputs("<div><dt>Run again</dt><dd>", file);
    write_command(file, again);
    fputs("</dd></div>\n", file);
    free(again);
}

static void write_claim(page *p, const judged *j)
{
    FILE *file = p->text.file;
    const verdict *v = &j->verdict;
    char *label = must_format("Numbers of %s", j->claim->id);
    p->text.label = label;
    write_head(p, j);
    fputs("<dl>\n", file);
    write_field(p, "Condition", v->condition);
    write_field(p, "What was done", j->claim->method);
    write_field(p, "Measured", v->measured);
    write_field(p, "Compared with", v->bound);
    write_field(p, "What would test it", v->would_test);
    write_field(p, "Smallest counterexample", v->counterexample);
    write_field(p, "Certificate", v->certificate);
    fputs("</dl>\n", file);
    if (v->notes_text && *v->notes_text) {
        fputs("<div class=\"notes\">\n", file);
        markdown_blocks(&p->text, v->notes_text);
        fputs("</div>\n", file);
    }
    fputs("<dl>\n", file);
    write_field(p, "Corrected", j->claim->corrected);
    write_field(p, "Proof", j->claim->proof);
    write_commands(p, j->claim);
    fputs("</dl>\n", file);
    write_figures(p, j->claim);
    fputs("</section>\n", file);
    free(label);
}

/* ---- The page ---- */

void claims_page_write(const claim_run *run, const judged *all, int count, FILE *file)
{
    static const html_page frame = {
        .title = "The papers' statements, tested", .style = style, .script = script};
    const char **ids = must_allocate((size_t)count + 1, sizeof *ids);
    page p = {run, all, count, {.file = file, .anchors = ids}, NULL, 0};
    for (int i = 0; i < count; i++)
        ids[i] = all[i].claim->id;
    read_figures(&p);
    html_begin(file, &frame);
    write_summary(&p);
    write_table(&p);
    fputs("<h2>One by one</h2>\n", file);
    for (int i = 0; i < count; i++)
        write_claim(&p, &all[i]);
    write_images(&p);
    html_end(file, &frame, run->s->command);
    for (int i = 0; i < p.figure_count; i++)
        free(p.figures[i].bytes);
    free(p.figures);
    free(ids);
}
