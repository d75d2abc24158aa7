/* SPDX-License-Identifier: BSD-3-Clause */
#include "html.h"

#include <attnum/version.h>
#include <inttypes.h>
#include <math.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "utf8.h"

static const char common_style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1d2433;--soft:#5b6577;--line:#dfe3ea;"
    "--card:#f6f7f9;--warning:#b3261e;--tip:#8a5a00;--fine:#1b7040;--note:#0b62a8}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--bg:#14171d;--fg:#e6e9ef;--soft:#a2acbd;"
    "--line:#333a47;--card:#1d222b;--warning:#ff8a80;--tip:#f0b850;--fine:#6fd39b;"
    "--note:#5aaef2}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--fg);font:1rem/1.5 system-ui,sans-serif}\n"
    "main{max-width:1120px;margin:0 auto;padding:20px 16px 48px}\n"
    "h1{font-size:1.6rem;margin:.2em 0}h2{font-size:1.2rem;margin:2em 0 .5em}\n"
    "p{margin:.4em 0}.soft,main>footer{color:var(--soft)}\n"
    "p,li,h1,code{overflow-wrap:anywhere}\n"
    "figure{margin:0;padding:14px;border:1px solid var(--line);border-radius:6px}\n"
    "svg{width:100%;height:auto;display:block}\n"
    ".figures{display:grid;gap:20px;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),"
    "1fr))}\n"
    ".figures figcaption{font-size:.9rem;color:var(--soft)}"
    "figcaption b{color:var(--fg);display:block;font-size:1rem}\n"
    ".figures svg{margin:.5em 0}"
    ".figures text{fill:var(--fg);font:13px system-ui,sans-serif}\n"
    ".figures .tick,.figures .note{fill:var(--soft);font-size:12px}\n"
    ".key{display:flex;flex-wrap:wrap;gap:.2em 1em;list-style:none;margin:0 0 .5em;padding:0;"
    "font-size:.85rem}\n"
    ".key svg{width:26px;height:12px;display:inline-block;margin:0 .35em 0 0;"
    "vertical-align:middle}\n"
    ".verdict{border:1px solid;border-radius:99px;padding:.05em .65em;font-size:.85rem;"
    "font-weight:600;white-space:nowrap;color:var(--soft)}\n"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.25em .7em;text-align:right;border-bottom:1px solid var(--line);white-space:"
    "nowrap}\n"
    "th{vertical-align:bottom;font-weight:600;white-space:normal}td.text,th.text{text-align:left}\n"
    "main>footer{margin-top:2.5em;font-size:.85rem}\n";

void html_text(FILE *file, const char *text)
{
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    while (*text) {
        size_t length = utf8_length(text);
        const char *entity = NULL;
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
            if (*text == entities[i].character)
                entity = entities[i].entity;
        bool control = length == 1 && ((unsigned char)*text < 0x20 || *text == 0x7f);
        if (entity)
            fputs(entity, file);
        else if (length == 0 || control)
            fputc('?', file);
        else
            fwrite(text, 1, length, file);
        text += length ? length : 1;
    }
}

void html_base64(FILE *file, size_t size, const void *bytes)
{
    size_t length = BASE64_ENCODE_RAW_LENGTH(size);
    char *text = must_allocate(length + 1, 1);
    base64_encode_raw(text, size, bytes);
    fwrite(text, 1, length, file);
    free(text);
}

/* The browser must run this script and no other, even if a text should ever contain one. */
static void allow_script(FILE *file, const char *script)
{
    struct sha256_ctx state;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&state);
    sha256_update(&state, strlen(script), (const uint8_t *)script);
    sha256_digest(&state, sizeof digest, digest);
    fputs(" script-src 'sha256-", file);
    html_base64(file, sizeof digest, digest);
    fputs("';", file);
}

void html_begin(FILE *file, const html_page *page)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:;",
        file);
    if (page->script)
        allow_script(file, page->script);
    fputs(" style-src 'unsafe-inline'\"/>\n<title>", file);
    html_text(file, page->title);
    fprintf(file, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<main>\n", common_style,
            page->style);
}

void html_end(FILE *file, const html_page *page, const char *command)
{
    fputs("<footer><p>attnum " ATN_VERSION ": <code>", file);
    html_text(file, command);
    fputs("</code></p></footer>\n</main>\n", file);
    if (page->script) /* after all elements that it works on */
        fprintf(file, "<script>%s</script>\n", page->script);
    fputs("</body>\n</html>\n", file);
}

void html_begin_table(FILE *file, const char *label)
{
    fputs("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", file);
    html_text(file, label);
    fputs("\"><table>\n", file);
}

void html_end_table(FILE *file)
{
    fputs("</table></div>\n", file);
}

static void write_cell(FILE *file, const table *t, const column *c, int64_t row, int col)
{
    bool text = c->type == COLUMN_TEXT;
    fputs(text ? "<td class=\"text\">" : "<td>", file);
    if (table_is_missing(t, row, col))
        fputs("–", file);
    else if (text)
        html_text(file, table_get_text(t, row, col));
    else if (c->type == COLUMN_INTEGER)
        fprintf(file, "%" PRId64, table_get_integer(t, row, col));
    else if (isinf(table_get_real(t, row, col)))
        fputs("∞", file);
    else
        fprintf(file, "%.3g", table_get_real(t, row, col));
    fputs("</td>", file);
}

void html_table(FILE *file, const char *label, const table *t)
{
    const column *columns;
    int count = table_columns(t, &columns);
    html_begin_table(file, label);
    fputs("<thead><tr>", file);
    for (int i = 0; i < count; i++) {
        fprintf(file, "<th scope=\"col\"%s>",
                columns[i].type == COLUMN_TEXT ? " class=\"text\"" : "");
        html_text(file, columns[i].name);
        fputs("</th>", file);
    }
    fputs("</tr></thead>\n<tbody>\n", file);
    for (int64_t row = 0; row < table_rows(t); row++) {
        fputs("<tr>", file);
        for (int i = 0; i < count; i++)
            write_cell(file, t, &columns[i], row, i);
        fputs("</tr>\n", file);
    }
    fputs("</tbody>", file);
    html_end_table(file);
}

void html_begin_figure(FILE *file, const char *title)
{
    fputs("<figure><figcaption><b>", file);
    html_text(file, title);
    fputs("</b></figcaption>\n", file);
}
