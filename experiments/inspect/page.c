/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/html.h"
#include "common/report.h"
#include "convergence/iterations.h"
#include "inspect/summary.h"
#include "inspect/svg.h"
#include "spectral/matrices.h"

/* ---- Style ---- */

static const char own_style[] =
    ":root{--c0:#0b62a8;--c1:#d1480b;--c2:#0e8a63;--c3:#b8478e;--c4:#c98a00;--c5:#3a9bd9;"
    "--c6:#6f4fa0;--c7:#6b7280}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--c0:#5aaef2;--c1:#ff8a50;--c2:#4fcf9f;"
    "--c3:#e88cc4;--c4:#f2c14e;--c5:#8fd0ff;--c6:#b79be6;--c7:#a7afbd}}\n"
    ".headline{font-size:1.15rem;font-weight:600}\n"
    "ul.advice{list-style:none;margin:0;padding:0}\n"
    "ul.advice li{background:var(--card);border-left:5px solid;border-radius:4px;margin:.5em 0;"
    "padding:.55em .9em}\n"
    "ul.advice .warning{border-color:var(--warning)}ul.advice .tip{border-color:var(--tip)}"
    "ul.advice .fine{border-color:var(--fine)}\n"
    "li b{margin-right:.4em}li.warning b{color:var(--warning)}li.tip b{color:var(--tip)}"
    "li.fine b{color:var(--fine)}\n"
    ".basis{color:var(--soft);font-size:.85rem;white-space:nowrap}\n"
    "svg .power{font-size:9px}\n"
    ".grid{stroke:var(--line)}.level{stroke:var(--soft);stroke-dasharray:5 4}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    ".dot{fill-opacity:.75;stroke:none}.ring{fill:var(--bg);fill-opacity:.5;stroke-width:2}\n";

/* The page's own style rules, to be freed. Every second line is dashed, so that lines do not differ
 * in colour alone. */
static char *make_style(void)
{
    char *style;
    size_t size;
    FILE *text = must_open_text(&style, &size);
    fputs(own_style, text);
    for (int i = 0; i < SVG_COLOURS; i++)
        fprintf(text,
                ".s%d{stroke:var(--c%d)%s}.dot.c%d{fill:var(--c%d)}.ring.c%d{stroke:var(--c%d)}\n",
                i, i, i % 2 ? ";stroke-dasharray:7 3" : "", i, i, i, i);
    must_close_text(text, &style, &size);
    return style;
}

/* ---- Pieces ---- */

static void write_advice(FILE *file, const page_content *content)
{
    static const char *const titles[] = {"Warning", "Tip", "In order"};
    char *headline = advice_headline(content->line_count, content->lines);
    fputs("<h2>Advice</h2>\n<p class=\"headline\">", file);
    html_text(file, content->conclusion->text);
    fputs("</p>\n<p class=\"headline\">", file);
    html_text(file, headline);
    fputs("</p>\n<ul class=\"advice\">\n", file);
    for (int i = 0; i < content->line_count; i++) {
        const advice_line *line = &content->lines[i];
        fprintf(file, "<li class=\"%s\"><b>%s</b>", advice_level_name(line->level),
                titles[line->level]);
        html_text(file, line->text);
        fprintf(file, " <span class=\"basis\">%s</span></li>\n", line->basis);
    }
    fputs("</ul>\n", file);
    free(headline);
}

static void write_table(FILE *file, const char *title, const char *text, const table *t)
{
    fprintf(file, "<h2>%s</h2>\n<p class=\"soft\">%s</p>\n", title, text);
    html_table(file, title, t);
}

/* An entry of the legend of lines and dots. */
typedef struct {
    char *name; /* to be freed */
    int colour;
    enum { KEY_LINE, KEY_DOT, KEY_RING } kind;
} key_item;

/* The foot of a figure, with the key. */
static void end_figure(FILE *file, const char *caption, int count, const key_item *key)
{
    if (count > 0)
        fputs("<ul class=\"key\">", file);
    for (int i = 0; i < count; i++) {
        int c = key[i].colour % SVG_COLOURS;
        fputs("<li><svg viewBox=\"0 0 26 12\" aria-hidden=\"true\">", file);
        if (key[i].kind == KEY_LINE)
            fprintf(file, "<path class=\"line s%d\" d=\"M1 6L25 6\"/>", c);
        else
            fprintf(file, "<circle class=\"%s c%d\" cx=\"13\" cy=\"6\" r=\"4\"/>",
                    key[i].kind == KEY_RING ? "ring" : "dot", c);
        fputs("</svg>", file);
        html_text(file, key[i].name);
        fputs("</li>", file);
        free(key[i].name);
    }
    if (count > 0)
        fputs("</ul>\n", file);
    fputs("<figcaption>", file);
    html_text(file, caption);
    fputs("</figcaption></figure>\n", file);
}

/* ---- Spectrum and convergence, of one head ---- */

/* The main item of the usual m with the largest condition number. */
static const inspection *hardest(const inspection_list *list)
{
    const inspection *worst = NULL;
    double m = inspections_usual(list);
    for (int64_t i = inspections_find(list, 0, m, -1); i >= 0;
         i = inspections_find(list, i + 1, m, -1))
        if (!worst || list->items[i]->kappa > worst->kappa)
            worst = list->items[i];
    return worst;
}

static const struct {
    const char *text;
    atn_dtype dtype;
} floors[] = {{"floor of bf16", ATN_BF16}, {"floor of f32", ATN_F32}, {"floor of f64", ATN_F64}};
enum { FLOORS = sizeof floors / sizeof *floors };

/* The smallest eigenvalue divided by the largest, limited to a value not far below the floor of
 * f64. */
static double least_shown(const inspection *i)
{
    double floor = i->m * atn_dtype_roundoff(ATN_F64);
    return fmax(i->lambda[(int)i->m - 1] / i->lambda_max, floor);
}

static void draw_spectrum(FILE *file, const svg_plot *plot, const inspection *i)
{
    int m = (int)i->m;
    double *x = must_allocate((size_t)m, sizeof *x), *y = must_allocate((size_t)m, sizeof *y);
    for (int j = 0; j < m; j++) {
        x[j] = j + 1;
        y[j] = i->lambda[j] / i->lambda_max;
    }
    svg_line(file, plot, i->sampling, m, x, y);
    free(y);
    free(x);
}

static void write_spectrum(FILE *file, const inspection_list *list, const inspection *hard)
{
    char *title =
        must_format("Spectrum of A, batch %g, head %g, m = %g", hard->batch, hard->head, hard->m);
    key_item key[SAMPLINGS];
    int keys = 0;
    svg_plot plot = {
        .title = title,
        .description =
            "Eigenvalues of A over the largest, one line per way to take landmarks, on a "
            "logarithmic axis, with the floors of three precisions.",
        .x = {"i", 1, fmax(hard->m, 2), false},
        .y = {"λᵢ / λ₁", hard->m * atn_dtype_roundoff(ATN_F32) / 10, 2, true},
    };
    for (int64_t i = 0; i < list->count; i++)
        if (inspection_same_head(list->items[i], hard) && list->items[i]->m == hard->m)
            plot.y.low = fmin(plot.y.low, least_shown(list->items[i]) / 10);
    html_begin_figure(file, title);
    svg_begin(file, &plot, 0);
    for (int i = 0; i < FLOORS; i++)
        if (hard->m * atn_dtype_roundoff(floors[i].dtype) >= plot.y.low)
            svg_level(file, &plot, hard->m * atn_dtype_roundoff(floors[i].dtype), floors[i].text);
    for (int64_t i = 0; i < list->count; i++) {
        const inspection *item = list->items[i];
        if (!inspection_same_head(item, hard) || item->m != hard->m)
            continue;
        draw_spectrum(file, &plot, item);
        key[keys++] = (key_item){must_format("%s", inspect_samplings[item->sampling].name),
                                 item->sampling, KEY_LINE};
    }
    svg_end(file);
    end_figure(file,
               "What lies below a floor, m u λ₁, that precision cannot tell from 0. The head shown "
               "has the largest condition number.",
               keys, key);
    free(title);
}

/* The inverses in the plot: few enough to be distinguished. */
static const atn_inverse_method shown[] = {ATN_INVERSE_NR_PAPER,      ATN_INVERSE_NR_SOFT,
                                           ATN_INVERSE_NR_SOFTPP,     ATN_INVERSE_NYSTROMFORMER,
                                           ATN_INVERSE_NEWTON_SCHULZ, ATN_INVERSE_HYPERPOWER_9,
                                           ATN_INVERSE_CHEBYSHEV_2,   ATN_INVERSE_CHEBYSHEV_9};
enum { SHOWN = sizeof shown / sizeof *shown };

static double products_at(atn_inverse_method method, int step)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    return (double)iteration_products(&desc, step);
}

static void draw_curve(FILE *file, const svg_plot *plot, int colour, atn_inverse_method method,
                       const inverse_facts *f)
{
    double x[MOST_CURVE];
    for (int k = 0; k < f->length; k++)
        x[k] = products_at(method, k);
    svg_line(file, plot, colour, f->length, x, f->curve);
}

static void write_curves(FILE *file, const inspection *hard)
{
    const double published = products_at(ATN_INVERSE_NR_PAPER, PAPER_STEPS);
    char *title = must_format("Residuals of the inverses, batch %g, head %g, m = %g", hard->batch,
                              hard->head, hard->m);
    key_item key[SHOWN];
    int keys = 0;
    double most = published + 10;
    for (int i = 0; i < SHOWN; i++)
        if (hard->inverses[shown[i]].steps[TARGETS - 1] >= 0) /* others never reach it */
            most = fmax(most, products_at(shown[i], hard->inverses[shown[i]].length - 1));
    svg_plot plot = {
        .title = title,
        .description = "The papers' residual against products of m by m matrices, one line per "
                       "iteration, measured in f64, with 1e-3, 1e-6 and 20 Newton-Raphson steps "
                       "marked.",
        .x = {"products of m × m matrices", 0, most, false},
        .y = {"‖AXA − A‖ / ‖A‖", 1e-10, 4, true},
    };
    html_begin_figure(file, title);
    svg_begin(file, &plot, 1);
    svg_level(file, &plot, inspect_targets[0], "10⁻³");
    svg_level(file, &plot, inspect_targets[1], "10⁻⁶");
    svg_upright(file, &plot, published, "20 steps");
    for (int i = 0; i < SHOWN; i++) {
        const inverse_facts *f = &hard->inverses[shown[i]];
        if (f->length == 0)
            continue;
        draw_curve(file, &plot, i, shown[i], f);
        key[keys++] = (key_item){must_format("%s", atn_inverse_name(shown[i])), i, KEY_LINE};
    }
    svg_end(file);
    end_figure(
        file,
        "Measured in f64. Newton–Raphson takes two products a step. A curve ends a few steps "
        "after 10⁻⁶, or where the library's guard against rounding ends the iteration.",
        keys, key);
    free(title);
}

/* ---- All heads ---- */

/* The numbers of landmarks, each with a colour and a height in a row. */
typedef struct {
    double *m;
    int count;
} landmark_rows;

static int which_m(const landmark_rows *rows, double m)
{
    int which = 0;
    while (rows->m[which] != m)
        which++;
    return which;
}

/* An offset from the middle of a row, so that the dots of different m do not hide each other. */
static double row_offset(const landmark_rows *rows, int which)
{
    return rows->count < 2 ? 0 : 0.5 * ((double)which / (rows->count - 1) - 0.5);
}

static int key_of_m(const landmark_rows *rows, key_item *key)
{
    int count = rows->count < SVG_COLOURS ? rows->count : SVG_COLOURS;
    for (int i = 0; i < count; i++)
        key[i] = (key_item){must_format("m = %g", rows->m[i]), i, KEY_DOT};
    return count;
}

/* Widens an axis so that it contains a value with a margin. */
static void hold(svg_axis *axis, double value)
{
    if (!isfinite(value) || !(value > 0))
        return;
    axis->low = fmin(axis->low, value / 1.15);
    axis->high = fmax(axis->high, value * 1.15);
}

static void draw_dot(FILE *file, const svg_plot *plot, const landmark_rows *rows,
                     const inspection *i, bool hollow, double x, int row)
{
    int which = which_m(rows, i->m);
    char *text = must_format("batch %g, head %g, m = %g: %.3g", i->batch, i->head, i->m, x);
    svg_dot(file, plot, which, hollow, x, row + row_offset(rows, which), text);
    free(text);
}

static void write_errors(FILE *file, const inspection_list *list, const landmark_rows *rows)
{
    const char *names[SAMPLINGS];
    int row_of[SAMPLINGS], count = 0, known = 0;
    key_item key[SVG_COLOURS];
    svg_plot plot = {
        .title = "Nyström error by sampling",
        .description =
            "tr(S - S^) over that of the best matrix of rank m, a dot per head, a row per "
            "way to take landmarks.",
        .x = {"tr(S − Ŝ) over the best possible", 1, 2, true},
        .rows = names};
    for (int i = 0; i < SAMPLINGS; i++) {
        bool there = false;
        for (int j = 0; j < rows->count && !there; j++)
            there = inspections_find(list, 0, rows->m[j], i) >= 0;
        row_of[i] = count;
        if (there)
            names[count++] = inspect_samplings[i].name;
    }
    plot.row_count = count;
    for (int64_t i = 0; i < list->count; i++) {
        hold(&plot.x, list->items[i]->trace_ratio);
        known += !isnan(list->items[i]->trace_ratio);
    }
    if (known == 0)
        return; /* every error is rounding */
    html_begin_figure(file, plot.title);
    svg_begin(file, &plot, 2);
    for (int64_t i = 0; i < list->count; i++)
        draw_dot(file, &plot, rows, list->items[i], false, list->items[i]->trace_ratio,
                 row_of[list->items[i]->sampling]);
    svg_end(file);
    end_figure(file,
               "How much of S the landmarks miss, against the best matrix of that rank (Eckart and "
               "Young); 1 cannot be beaten. A dot is a head.",
               key_of_m(rows, key), key);
}

static void write_norms(FILE *file, const inspection_list *list, const landmark_rows *rows)
{
    static const char *const names[] = {"SOFT", "SOFT, X₂₀", "SOFT++", "SOFT++, X₂₀"};
    key_item key[SVG_COLOURS];
    svg_plot plot = {.title = "Norm of the attention matrix",
                     .description =
                         "The spectral norm of S^ without and with symmetric normalisation, "
                         "by an exact inverse and by 20 steps, a dot per head.",
                     .x = {"‖Ŝ‖₂", 0.9, 2, true},
                     .rows = names,
                     .row_count = 4};
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) {
            html_begin_figure(file, plot.title);
            svg_begin(file, &plot, 3);
        }
        for (int64_t i = 0; i < list->count; i++) {
            const inspection *item = list->items[i];
            const double norms[] = {item->soft_norm, item->soft_norm_20, item->softpp_norm,
                                    item->softpp_norm_20};
            for (int row = 0; row < 4 && item->main; row++)
                if (pass == 0)
                    hold(&plot.x, fmax(norms[row], 1e-2));
                else
                    draw_dot(file, &plot, rows, item, false, norms[row], row);
        }
    }
    svg_end(file);
    end_figure(file,
               "How much larger than V the output can be. SOFT's grows with the number of tokens; "
               "normalising by D^(−1/2) on both sides of A⁺ divides it, by m where all landmarks "
               "are alike. A dot on the left edge is there or beyond it.",
               key_of_m(rows, key), key);
}

static void write_precisions(FILE *file, const inspection_list *list, const landmark_rows *rows)
{
    const char *names[PRECISIONS];
    key_item key[SVG_COLOURS + 1];
    svg_plot plot = {.title = "Residuals in five precisions",
                     .description =
                         "The best residual in each precision as a dot, the one after 20 "
                         "steps as a ring, for every head; 0.01 is marked.",
                     .x = {"‖AXA − A‖ / ‖A‖", 1e-16, 10, true},
                     .rows = names,
                     .row_count = PRECISIONS};
    for (int p = 0; p < PRECISIONS; p++)
        names[p] = precision_name(precisions[p]);
    html_begin_figure(file, plot.title);
    svg_begin(file, &plot, 4);
    svg_upright(file, &plot, inspect_safe_residual, "0.01");
    for (int64_t i = 0; i < list->count; i++)
        for (int p = 0; p < PRECISIONS && list->items[i]->main; p++) {
            const precision_facts *f = &list->items[i]->precisions[p];
            draw_dot(file, &plot, rows, list->items[i], true, f->fixed, p);
            draw_dot(file, &plot, rows, list->items[i], false, f->best, p);
        }
    svg_end(file);
    int keys = key_of_m(rows, key);
    key[keys++] = (key_item){must_format("after 20 steps"), SVG_COLOURS - 1, KEY_RING};
    end_figure(file,
               "Dots: the best any step reaches (the library's stopping = best). Right of 0.01 a "
               "precision is called unsafe; a ring far right of its dot: the best step is another "
               "than the 20th. A dot on the left edge is there or beyond it.",
               keys, key);
}

/* ---- The page ---- */

static void write_figures(FILE *file, const page_content *content)
{
    const inspection_list *list = content->list;
    const inspection *hard = hardest(list);
    landmark_rows rows = {must_allocate((size_t)list->count + 1, sizeof *rows.m), 0};
    rows.count = inspections_landmarks(list, rows.m);
    fputs("<h2>Figures</h2>\n<div class=\"figures\">\n", file);
    write_spectrum(file, list, hard);
    write_curves(file, hard);
    write_precisions(file, list, &rows);
    write_errors(file, list, &rows);
    write_norms(file, list, &rows);
    fputs("</div>\n", file);
    free(rows.m);
}

static void write_tables(FILE *file, const page_content *content)
{
    table *inverses = inspect_inverse_summary(content->list);
    table *by_precision = inspect_precision_summary(content->list);
    write_table(
        file, "Every sampling",
        "Over heads. A precision's rank counts eigenvalues above m u λ₁; inverted by 20: modes "
        "that 20 Newton–Raphson steps invert to half or more, by the closed form.",
        content->summary);
    write_table(
        file, "Every inverse",
        "The worst head, measured in f64 on landmarks of the first sampling; predicted: by the "
        "closed form on A's eigenvalues. ∞: not within the steps looked at.",
        inverses);
    write_table(
        file, "Every precision",
        "The worst head. tf32, f16 and bf16 are emulated: every array rounded, sums in f32.",
        by_precision);
    table_free(by_precision);
    table_free(inverses);
}

static void write_page(FILE *file, const page_content *content)
{
    char *title = must_format("%s: are these tokens safe?", content->name);
    char *style = make_style();
    html_page page = {.title = title, .style = style};
    html_begin(file, &page);
    fputs("<h1>Are these tokens safe?</h1>\n<p>", file);
    html_text(file, content->subject);
    fputs(
        "</p>\n<p class=\"soft\">For softmax-free attention with landmarks: S = K(Q, Q) is replaced "
        "by Ŝ = Pᵀ A⁺ P with A = K(L, L) and P = K(L, Q), and A is inverted by an iteration.</p>\n",
        file);
    write_advice(file, content);
    write_figures(file, content);
    write_tables(file, content);
    html_end(file, &page, content->command);
    free(style);
    free(title);
}

int page_write(new_file *page, const page_content *content)
{
    write_page(page->file, content);
    int code = new_file_close(page);
    return code == EXIT_PASS ? new_file_publish(page) : code;
}
