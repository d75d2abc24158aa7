/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims/markdown.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/html.h"
#include "common/report.h"

/* ---- A line ---- */

static void write_part(FILE *file, const char *text, size_t length)
{
    char *part = must_format("%.*s", (int)length, text);
    html_text(file, part);
    free(part);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* The length of the anchor that is the whole word at text + at, 0 if there is none: S12 in
 * XCiT-S12/16 is not an anchor. */
static size_t anchor_at(const markdown *m, const char *text, size_t at)
{
    if (at > 0 && is_word(text[at - 1]))
        return 0;
    for (int i = 0; m->anchors[i]; i++) {
        size_t length = strlen(m->anchors[i]);
        if (strncmp(text + at, m->anchors[i], length) == 0 && !is_word(text[at + length]))
            return length;
    }
    return 0;
}

void markdown_line(const markdown *m, const char *text)
{
    size_t from = 0, at = 0;
    while (text[at]) {
        const char *end = text[at] == '`' ? strchr(text + at + 1, '`') : NULL;
        size_t code = end ? (size_t)(end - text) - at + 1 : 0;
        size_t anchor = code ? 0 : anchor_at(m, text, at);
        if (!code && !anchor) {
            at++;
            continue;
        }
        write_part(m->file, text + from, at - from);
        if (code) {
            fputs("<code>", m->file);
            write_part(m->file, text + at + 1, code - 2);
            fputs("</code>", m->file);
        } else {
            fprintf(m->file, "<a href=\"#%.*s\">%.*s</a>", (int)anchor, text + at, (int)anchor,
                    text + at);
        }
        from = at += code + anchor;
    }
    write_part(m->file, text + from, at - from);
}

/* ---- Tables ---- */

/* The number of cells in a line "| a | b |"; "\|" is a bar in a cell. */
static int count_cells(const char *line)
{
    int bars = 0;
    bool open = false; /* text follows the last bar */
    for (const char *at = line; *at; at++) {
        bool bar = *at == '|';
        at += at[0] == '\\' && at[1] == '|';
        bars += bar;
        open = !bar && (open || *at != ' ');
    }
    return bars - 1 + open;
}

/* The cells, to be freed one by one; missing ones are "", as in Markdown. */
static void split_cells(const char *line, int columns, char **cells)
{
    const char *at = line + 1;
    for (int i = 0; i < columns; i++) {
        size_t size = 0;
        cells[i] = must_allocate(strlen(at) + 1, 1);
        at += strspn(at, " ");
        while (*at && *at != '|') {
            at += at[0] == '\\' && at[1] == '|';
            cells[i][size++] = *at++;
        }
        while (size > 0 && cells[i][size - 1] == ' ')
            cells[i][--size] = '\0';
        at += *at == '|';
    }
}

/* Whether a cell is empty or a number with any text after a blank: "12", "-1e-3 to 2", "3 of 4",
 * "inf". */
static bool is_numeric(const char *cell)
{
    static const char minus[] = "−";
    char *end;
    if (strncmp(cell, minus, sizeof minus - 1) == 0)
        cell += sizeof minus - 1;
    strtod(cell, &end);
    return *cell == '\0' || (end != cell && (*end == '\0' || *end == ' ' || *end == '%'));
}

static void write_row(const markdown *m, const char *tag, int columns, char *const *cells,
                      const bool *numeric)
{
    fputs("<tr>", m->file);
    for (int i = 0; i < columns; i++) {
        fprintf(m->file, "<%s%s>", tag, numeric[i] ? "" : " class=\"text\"");
        markdown_line(m, cells[i]);
        fprintf(m->file, "</%s>", tag);
    }
    fputs("</tr>\n", m->file);
}

/* "|---|", as below the names of the columns. */
static bool is_rule(const char *line)
{
    return line[strspn(line, "|-: ")] == '\0';
}

/* Columns of numbers alone are aligned to the right. */
static void write_table(const markdown *m, int count, char *const *lines)
{
    int columns = count_cells(lines[0]), rows = 0;
    char **cells = must_allocate((size_t)count * (size_t)columns, sizeof *cells);
    bool *numeric = must_allocate((size_t)columns, sizeof *numeric);
    for (int i = 0; i < count; i++)
        if (i != 1 || !is_rule(lines[i]))
            split_cells(lines[i], columns, cells + columns * rows++);
    for (int i = 0; i < columns; i++) {
        numeric[i] = rows > 1;
        for (int row = 1; row < rows; row++)
            numeric[i] = numeric[i] && is_numeric(cells[columns * row + i]);
    }
    html_begin_table(m->file, m->label);
    for (int row = 0; row < rows; row++) {
        fputs(row == 0 ? "<thead>" : row == 1 ? "<tbody>" : "", m->file);
        write_row(m, row == 0 ? "th" : "td", columns, cells + columns * row, numeric);
        fputs(row == 0 ? "</thead>\n" : row == rows - 1 ? "</tbody>" : "", m->file);
    }
    html_end_table(m->file);
    for (int i = 0; i < rows * columns; i++)
        free(cells[i]);
    free(numeric);
    free(cells);
}

/* ---- Blocks ---- */

static void write_list(const markdown *m, int count, char *const *lines)
{
    fputs("<ul>\n", m->file);
    for (int i = 0; i < count; i++) {
        fputs("<li>", m->file);
        markdown_line(m, lines[i] + strlen("- "));
        fputs("</li>\n", m->file);
    }
    fputs("</ul>\n", m->file);
}

static void write_paragraph(const markdown *m, int count, char *const *lines)
{
    fputs("<p>", m->file);
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? "\n" : "", m->file);
        markdown_line(m, lines[i]);
    }
    fputs("</p>\n", m->file);
}

static bool is_table(const char *line)
{
    return count_cells(line) > 0 && *line == '|';
}

static bool is_list(const char *line)
{
    return strncmp(line, "- ", 2) == 0;
}

static bool is_paragraph(const char *line)
{
    return *line && !is_table(line) && !is_list(line);
}

static bool is_empty(const char *line)
{
    return !*line;
}

static void write_nothing(const markdown *m, int count, char *const *lines) {}

/* Consecutive lines of one kind make a block. */
static const struct {
    bool (*is)(const char *line);
    void (*write)(const markdown *m, int count, char *const *lines);
} kinds[] = {{is_empty, write_nothing},
             {is_table, write_table},
             {is_list, write_list},
             {is_paragraph, write_paragraph}};

void markdown_blocks(const markdown *m, const char *text)
{
    int count = 0, to;
    char *copy = must_format("%s", text);
    char **lines = must_allocate(strlen(copy) + 1, sizeof *lines);
    for (char *at = copy; at; at = strchr(at, '\n')) {
        if (*at == '\n')
            *at++ = '\0';
        lines[count++] = at;
    }
    for (int from = 0; from < count; from = to) {
        size_t kind = 0;
        while (!kinds[kind].is(lines[from]))
            kind++;
        for (to = from + 1; to < count && kinds[kind].is(lines[to]);)
            to++;
        kinds[kind].write(m, to - from, lines + from);
    }
    free(lines);
    free(copy);
}
