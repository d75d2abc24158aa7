/* SPDX-License-Identifier: BSD-3-Clause */
#include "check/page.h"

#include <attnum/version.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "check/report.h"
#include "common/blas.h"
#include "common/html.h"
#include "common/report.h"

/* ---- Style ---- */

/* --m0: passes; --m1 to --m5: levels above that. Zeros are hatched, so that colour is not their
 * only mark. */
static const char style[] =
    ":root{--m0:#eef1f5;--m1:#fbd9a5;--m2:#f7ab6b;--m3:#ea7542;--m4:#c63c2a;--m5:#85101c;"
    "--zero:#0b62a8;--none:#6f4fa0}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--m0:#262c36;--m1:#5c3416;--m2:#8d4719;"
    "--m3:#c4602a;--m4:#f08a55;--m5:#ffc9a3;--zero:#5aaef2;--none:#b79be6}}\n"
    ".verdict[data-verdict=\"pass\"]{color:var(--fine)}"
    ".verdict[data-verdict=\"marginal\"]{color:var(--tip)}"
    ".verdict[data-verdict=\"FAIL\"]{color:var(--warning)}\n"
    "h1 .verdict{font-size:1rem;vertical-align:.25em}h2 .verdict{vertical-align:.15em}\n"
    "h3{font-size:1rem;margin:1.6em 0 .5em}"
    ".figures{grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));"
    "align-items:start}\n"
    ".wrap td{white-space:normal;vertical-align:top}.facts td{overflow-wrap:anywhere}\n"
    ".facts th{display:none}.facts td:first-child{white-space:nowrap;color:var(--soft)}\n"
    ".cells{shape-rendering:crispEdges}.m0{fill:var(--m0)}.m1{fill:var(--m1)}.m2{fill:var(--m2)}"
    ".m3{fill:var(--m3)}.m4{fill:var(--m4)}.m5{fill:var(--m5)}\n"
    ".zero{fill:url(#hatch)}.none{fill:var(--none)}.unknown{fill:var(--line)}\n"
    ".hatch{fill:var(--bg)}.hatch+path{stroke:var(--zero);stroke-width:2.5}\n"
    ".mark{stroke:var(--soft)}\n";

static const char hatch[] =
    "<svg style=\"position:absolute;width:0;height:0\" aria-hidden=\"true\"><defs>"
    "<pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
    "<rect class=\"hatch\" width=\"5\" height=\"5\"/><path d=\"M-1 6L6 -1M-1 1L1 -1M4 6L6 4\"/>"
    "</pattern></defs></svg>\n";

/* ---- Heat maps ---- */

/* In units of the SVG picture. */
enum { WIDTH = 360, LEFT = 70, RIGHT = 12, TOP = 10, BOTTOM = 44, TALL = 256, TALLEST_CELL = 24 };
enum { MOST_ROWS = 64, MOST_COLS = 64, LEVELS = 5, MOST_FIGURES = 8, MOST_TICKS = 8 };

typedef struct {
    const error_map *m;
    const char *const *rows, *const *cols; /* names, singular and plural */
    map_levels levels;
    double width, height; /* of a cell */
} heat_map;

static const char *cell_class(const map_levels *levels, const map_cell *cell)
{
    static const char *const states[CELL_STATES] = {[CELL_PASSES] = "m0",
                                                    [CELL_UNKNOWN] = "unknown",
                                                    [CELL_ZERO] = "zero",
                                                    [CELL_NONFINITE] = "none"};
    static const char *const over[LEVELS] = {"m1", "m2", "m3", "m4", "m5"};
    return cell->state != CELL_OVER ? states[cell->state]
                                    : over[LEVELS - levels->count + map_level(levels, cell->over)];
}

/* What a colour means. To be freed. */
static char *key_text(const map_levels *levels, const map_cell *cell)
{
    if (cell->state != CELL_OVER)
        return must_format("%s", cell_state_names[cell->state]);
    return must_format("over %g", levels->over[map_level(levels, cell->over)]);
}

static void write_mark(FILE *file, const heat_map *h, bool row, int64_t cell)
{
    double x = row ? LEFT : LEFT + (double)cell * h->width;
    double y = row ? TOP + (double)cell * h->height : TOP + (double)h->m->down * h->height;
    fprintf(file,
            "<path class=\"mark\" d=\"M%.1f %.1fl%s\"/>"
            "<text class=\"tick\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%" PRId64 "</text>\n",
            x, y, row ? "-4 0" : "0 4", row ? "end" : "middle", row ? x - 7 : x,
            row ? y + 4 : y + 17, cell * (row ? h->m->block_rows : h->m->block_cols));
}

static void write_marks(FILE *file, const heat_map *h, bool row)
{
    int64_t count = row ? h->m->down : h->m->across, step = 1;
    while (count > step * MOST_TICKS)
        step *= 2;
    for (int64_t i = 0; i < count; i += step)
        write_mark(file, h, row, i);
}

/* Merges cells that look alike into rectangles, as wide and then as tall as possible. */
static void write_cells(FILE *file, const heat_map *h)
{
    const error_map *m = h->m;
    bool *done = must_allocate((size_t)(m->down * m->across), sizeof *done);
    for (int64_t i = 0; i < m->down; i++)
        for (int64_t j = 0; j < m->across; j++) {
            const char *class = cell_class(&h->levels, &m->cells[i * m->across + j]);
            int64_t right = j, below = i;
            bool alike = !done[i * m->across + j];
            if (!alike)
                continue;
            while (right < m->across && !done[i * m->across + right] &&
                   cell_class(&h->levels, &m->cells[i * m->across + right]) == class)
                right++;
            while (alike) {
                for (int64_t k = j; k < right; k++)
                    done[below * m->across + k] = true;
                alike = ++below < m->down;
                for (int64_t k = j; k < right && alike; k++)
                    alike = !done[below * m->across + k] &&
                            cell_class(&h->levels, &m->cells[below * m->across + k]) == class;
            }
            char *text = key_text(&h->levels, &m->cells[i * m->across + j]);
            fprintf(file,
                    "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">"
                    "<title>%s %" PRId64 " to %" PRId64 ", %s %" PRId64 " to %" PRId64
                    ": %s</title></rect>\n",
                    class, LEFT + (double)j * h->width, TOP + (double)i * h->height,
                    (double)(right - j) * h->width, (double)(below - i) * h->height, h->rows[1],
                    i * m->block_rows, map_last_row(m, below - 1), h->cols[1], j * m->block_cols,
                    map_last_col(m, right - 1), text);
            free(text);
        }
    free(done);
}

static void write_key(FILE *file, const heat_map *h)
{
    bool there[CELL_STATES] = {false}, level_there[MOST_LEVELS] = {false};
    fputs("<ul class=\"key\">", file);
    for (int64_t i = 0; i < h->m->down * h->m->across; i++) {
        const map_cell *cell = &h->m->cells[i];
        there[cell->state] = true;
        if (cell->state == CELL_OVER)
            level_there[map_level(&h->levels, cell->over)] = true;
    }
    for (int i = 0; i < CELL_STATES; i++)
        for (int j = 0; j < (i == CELL_OVER ? h->levels.count : 1); j++) {
            const map_cell cell = {(cell_state)i, 1.01 * h->levels.over[j]};
            if (!(i == CELL_OVER ? level_there[j] : there[i]))
                continue;
            char *text = key_text(&h->levels, &cell);
            fprintf(file,
                    "<li><svg viewBox=\"0 0 26 12\" aria-hidden=\"true\"><rect class=\"%s\" "
                    "width=\"26\" height=\"12\"/></svg>%s</li>",
                    cell_class(&h->levels, &cell), text);
            free(text);
        }
    fputs("</ul>\n", file);
}

/* A figure: title, map, key and caption. */
static void write_map(check_page *page, const error_map *m, const char *title,
                      const char *const rows[2], const char *const cols[2], const char *caption)
{
    FILE *file = page->text;
    int id = page->figures++;
    heat_map h = {m, rows, cols, map_levels_of(m, LEVELS), (double)(WIDTH - LEFT - RIGHT), TALL};
    h.width /= (double)m->across;
    h.height = fmin(h.height / (double)m->down, TALLEST_CELL);
    double bottom = TOP + (double)m->down * h.height;
    html_begin_figure(file, title);
    fprintf(file,
            "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-labelledby=\"title%d\">\n"
            "<title id=\"title%d\">%s</title>\n<g class=\"cells\">\n",
            WIDTH, bottom + BOTTOM, id, id, title);
    write_cells(file, &h);
    fputs("</g>\n", file);
    write_marks(file, &h, true);
    write_marks(file, &h, false);
    fprintf(file,
            "<text text-anchor=\"middle\" x=\"%d\" y=\"%.1f\">%s</text>\n"
            "<text text-anchor=\"middle\" transform=\"translate(16 %.1f) rotate(-90)\">%s</text>\n"
            "</svg>\n",
            (LEFT + WIDTH - RIGHT) / 2, bottom + 36, cols[0], (TOP + bottom) / 2, rows[0]);
    write_key(file, &h);
    fprintf(file, "<figcaption>%s</figcaption></figure>\n", caption);
}

/* ---- A result ---- */

static void write_verdict(FILE *file, ref_verdict verdict)
{
    const char *name = ref_verdict_name(verdict);
    fprintf(file, "<span class=\"verdict\" data-verdict=\"%s\">%s</span>", name, name);
}

/* Writes a text and frees it. */
static void write_paragraph(FILE *file, const char *class, char *text)
{
    fprintf(file, "<p%s>", class);
    html_text(file, text);
    fputs("</p>\n", file);
    free(text);
}

/* Replaces line breaks by spaces. */
static char *in_one_line(char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        text[i] = text[i] == '\n' ? ' ' : text[i];
    while (length > 0 && text[length - 1] == ' ')
        text[--length] = 0;
    return text;
}

static void write_head_map(check_page *page, const subject *s, result_kind kind, const error_map *m,
                           int64_t head)
{
    char *place = where_head(s, kind, head), *block = map_blocks(m);
    char *title = must_format("%s, %s", result_name(kind), place);
    char *caption = must_format("The error of every block of %s, in units of what passes.", block);
    write_map(page, m, title, of_rows, of_columns, caption);
    free(caption), free(title), free(block), free(place);
}

/* Says why some heads have no map, each reason once. */
static void write_missing(FILE *file, const subject *s, result_kind kind, const result_verdict *v,
                          int count, const int64_t *heads)
{
    char *before = NULL;
    for (int i = 0; i < count; i++) {
        error_map m = map_head(s, kind, v, heads[i], MOST_ROWS, MOST_COLS);
        char *missing = map_missing(&m, &v->heads[heads[i]]);
        if (missing && !(before && strcmp(before, missing) == 0)) {
            char *place = where_head(s, kind, heads[i]);
            write_paragraph(file, "", must_format("%s: %s", place, missing));
            free(place);
        }
        if (missing) {
            free(before);
            before = missing;
        }
        map_free(&m);
    }
    free(before);
}

static void write_maps(check_page *page, const subject *s, result_kind kind,
                       const result_verdict *v)
{
    FILE *file = page->text;
    int64_t heads[MOST_FIGURES], all = result_heads(&s->judged, kind);
    int64_t failed = heads_that_fail(s, kind, v, MOST_FIGURES, heads);
    int count = failed < MOST_FIGURES ? (int)failed : MOST_FIGURES;
    if (!failed)
        return;
    fprintf(file, "<h3>Where</h3>\n<p>%" PRId64 " of %" PRId64 " heads FAIL%s</p>\n", failed, all,
            count < failed ? "; of the worst:" : ".");
    write_missing(file, s, kind, v, count, heads);
    fputs("<div class=\"figures\">\n", file);
    if (all > MANY_HEADS) {
        error_map m = map_heads(s, kind, v, MOST_ROWS, MOST_COLS);
        char *title = must_format("%s, heads", result_name(kind));
        write_map(page, &m, title, of_batch, of_heads,
                  "The ratio of every head; the gravest, where a cell is of several.");
        free(title);
        map_free(&m);
    }
    for (int i = 0; i < count; i++) {
        error_map m = map_head(s, kind, v, heads[i], MOST_ROWS, MOST_COLS);
        if (!map_is_uniform(&m))
            write_head_map(page, s, kind, &m, heads[i]);
        map_free(&m);
    }
    fputs("</div>\n", file);
}

static const column result_columns[] = {
    {"result", COLUMN_TEXT, "", ""},    {"verdict", COLUMN_TEXT, "", ""},
    {"answer", COLUMN_TEXT, "", ""},    {"worst head", COLUMN_TEXT, "", ""},
    {"ratio", COLUMN_REAL, "", ""},     {"test", COLUMN_TEXT, "", ""},
    {"error", COLUMN_REAL, "", ""},     {"expected", COLUMN_REAL, "", ""},
    {"reachable", COLUMN_REAL, "", ""},
};
enum { RESULT_COLUMNS = sizeof result_columns / sizeof *result_columns };

static void add_row(table *t, const subject *s, result_kind kind, const result_verdict *v)
{
    int64_t head = worst_head(result_heads(&s->judged, kind), v->heads, NULL);
    const judgement *j = &v->heads[head];
    char *place = where_head(s, kind, head);
    table_text(t, result_name(kind));
    table_text(t, ref_verdict_name(v->verdict));
    table_text(t, v->exact ? "exact" : "baseline");
    table_text(t, place);
    table_real_if(t, !isnan(j->ratio), j->ratio);
    table_text(t, j->rule);
    table_real(t, j->difference.relative_frobenius);
    table_real_if(t, !isnan(j->expected), j->expected);
    table_real_if(t, !isnan(j->reachable), j->reachable);
    free(place);
}

void check_page_add(check_page *page, const subject *s, result_kind kind, const result_verdict *v,
                    ref_verdict by_rounding, int count, const finding *findings)
{
    FILE *file = page->text;
    if (!file)
        return;
    add_row(page->results, s, kind, v);
    fprintf(file, "<section>\n<h2>%s ", result_name(kind));
    write_verdict(file, v->verdict);
    fputs("</h2>\n", file);
    write_paragraph(file, " class=\"soft\"", in_one_line(basis_text(s, kind, v)));
    char *text = findings_text(v, by_rounding, count);
    if (count || text)
        fputs("<h3>Diagnosis</h3>\n", file);
    if (text)
        write_paragraph(file, "", in_one_line(text));
    if (count) {
        table *t = findings_table(count, findings);
        fputs("<div class=\"wrap\">\n", file);
        html_table(file, "What else it could be", t);
        fputs("</div>\n", file);
        table_free(t);
    }
    write_maps(page, s, kind, v);
    fputs("<h3>Heads</h3>\n", file);
    char *some = heads_text(s, kind, v);
    if (some)
        write_paragraph(file, "", in_one_line(some));
    table *heads = heads_table(s, kind, v);
    html_table(file, "Heads", heads);
    table_free(heads);
    fputs("</section>\n", file);
}

/* ---- How it was computed ---- */

static const column fact_columns[] = {{"what", COLUMN_TEXT, "", ""},
                                      {"value", COLUMN_TEXT, "", ""}};

/* Adds a row and frees the value. */
static void add_fact(table *t, const char *what, char *value)
{
    table_text(t, what);
    table_text(t, value);
    free(value);
}

static table *make_facts(const program_options *s, const subject *judged)
{
    const attention_case *c = &judged->c;
    const atn_operator_info *info = atn_operator_get(c->choice.op);
    blas_description blas = blas_describe();
    atn_isa isa;
    table *t = table_create(fact_columns, 2);
    add_fact(t, "operator", must_format("%s: %s", info->name, info->formula));
    add_fact(t, "variant", must_format("%s", info->variants[c->choice.variant].name));
    add_fact(t, "claimed precision", must_format("%s", subject_precision(judged)));
    add_fact(t, "sizes", in_one_line(subject_text(judged)));
    add_fact(t, "layout of the files", layout_name(&s->layout));
    for (const parameter *p = parameters; p->name; p++) {
        char *value = parameter_is_used(p, &c->reference) ? parameter_text(p, &c->reference) : NULL;
        if (value)
            add_fact(t, p->name, value);
    }
    add_fact(t, "attnum", must_format("%s, by %s", ATN_VERSION, BUILD_COMPILER));
    if (atn_isa_choose(s->isa, &isa, NULL) == ATN_OK)
        add_fact(t, "instruction set", must_format("%s", atn_isa_name(isa)));
    add_fact(t, "BLAS", must_format("%s", blas.config ? blas.config : "unknown"));
    return t;
}

/* ---- The page ---- */

int check_page_open(check_page *page, const char *path)
{
    if (!path)
        return EXIT_PASS;
    page->text = must_open_text(&page->body, &page->size);
    page->results = table_create(result_columns, RESULT_COLUMNS);
    return new_file_open_path(&page->file, path);
}

static void write_page(FILE *file, const check_page *page, const program_options *s,
                       const subject *judged, ref_verdict verdict)
{
    const atn_operator_info *info = atn_operator_get(judged->c.choice.op);
    char *name =
        must_format("%s/%s in %s", info->name, info->variants[judged->c.choice.variant].name,
                    subject_precision(judged));
    char *title = must_format("%s: %s", name, ref_verdict_name(verdict));
    html_page frame = {.title = title, .style = style};
    table *facts = make_facts(s, judged);
    html_begin(file, &frame);
    fprintf(file, "%s<h1>%s ", hatch, name);
    write_verdict(file, verdict);
    fputs("</h1>\n", file);
    write_paragraph(file, "", must_format("%s", info->formula));
    write_paragraph(file, "", in_one_line(subject_text(judged)));
    fputs("<h2>Results</h2>\n", file);
    html_table(file, "Results", page->results);
    write_paragraph(file, " class=\"soft\"", in_one_line(ratio_text(judged)));
    fwrite(page->body, 1, page->size, file);
    fputs("<h2>How it was computed</h2>\n<div class=\"wrap facts\">\n", file);
    html_table(file, "How it was computed", facts);
    fputs("</div>\n", file);
    html_end(file, &frame, s->command);
    table_free(facts);
    free(title), free(name);
}

int check_page_write(check_page *page, const program_options *s, const subject *judged,
                     ref_verdict verdict)
{
    if (!page->text)
        return EXIT_PASS;
    must_close_text(page->text, &page->body, &page->size);
    page->text = NULL;
    write_page(page->file.file, page, s, judged, verdict);
    int code = new_file_close(&page->file);
    if (code == EXIT_PASS)
        code = new_file_publish(&page->file);
    if (code == EXIT_PASS)
        report_text("→ %s\n", s->html);
    return code;
}

void check_page_free(check_page *page)
{
    if (page->text)
        must_close_text(page->text, &page->body, &page->size);
    if (page->results)
        table_free(page->results);
    free(page->body);
    new_file_free(&page->file);
}
