/* SPDX-License-Identifier: BSD-3-Clause */
/* HTML pages: text is escaped, tables and the frame of a page are written as they should be. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/html.h"
#include "scratch.h"

Test(html, hostile_text_is_escaped)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;"},
        {"\x01\n\x7f", "???"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xff\xc3", "??"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *file = begin_text();
        html_text(file, rows[i].text);
        expect_written(file, rows[i].want);
    }
}

/* RFC 4648, 10. */
Test(html, base64)
{
    static const char *const rows[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *file = begin_text();
        html_base64(file, strlen(rows[i][0]), rows[i][0]);
        expect_written(file, rows[i][1]);
    }
}

/* A page allows its own script, by its SHA-256, and no other. */
Test(html, frame)
{
    static const struct {
        const char *script, *policy, *end;
    } rows[] = {
        {NULL, "\"default-src 'none'; img-src data:; style-src", "</main>\n</body>\n</html>\n"},
        {"abc",
         "\"default-src 'none'; img-src data:; script-src "
         "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='; style-src 'unsafe-inline'\"",
         "</main>\n<script>abc</script>\n</body>\n</html>\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        html_page page = {.title = "a & b", .style = "p{c:d}", .script = rows[i].script};
        FILE *file = begin_text();
        html_begin(file, &page);
        html_end(file, &page, "attnum '<x>'");
        char *text = end_text(file);
        cr_expect(strncmp(text, "<!DOCTYPE html>", 15) == 0 &&
                      strstr(text, "<title>a &amp; b</title>") && strstr(text, "p{c:d}</style>") &&
                      strstr(text, "<code>attnum &#39;&lt;x&gt;&#39;</code>") &&
                      strstr(text, rows[i].policy) && strstr(text, rows[i].end),
                  "%s", text);
        cr_expect(!strstr(text, "<script>") == !rows[i].script, "%s", text);
        free(text);
    }
}

Test(html, tables)
{
    static const column columns[] = {
        {"a <b>", COLUMN_TEXT, "", ""}, {"n", COLUMN_INTEGER, "", ""}, {"x", COLUMN_REAL, "", ""}};
    table *t = table_create(columns, 3);
    table_text(t, "c & d"), table_integer(t, 12345678), table_real(t, 1.23456e-7);
    table_missing(t), table_missing(t), table_real(t, INFINITY);
    FILE *file = begin_text();
    html_table(file, "a & b", t);
    expect_written(file,
                   "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"a &amp; b\">"
                   "<table>\n<thead><tr><th scope=\"col\" class=\"text\">a &lt;b&gt;</th>"
                   "<th scope=\"col\">n</th><th scope=\"col\">x</th></tr></thead>\n<tbody>\n"
                   "<tr><td class=\"text\">c &amp; d</td><td>12345678</td><td>1.23e-07</td></tr>\n"
                   "<tr><td class=\"text\">–</td><td>–</td><td>∞</td></tr>\n"
                   "</tbody></table></div>\n");
    table_free(t);
}
