/* SPDX-License-Identifier: BSD-3-Clause */
/* The ledger's Markdown as HTML. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims/markdown.h"
#include "scratch.h"

static const char *const anchors[] = {"S10", "S11", NULL};

Test(claims_markdown, lines_of_markdown)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"a_k * b* < c", "a_k * b* &lt; c"},
        {"run `a --b '<c>'` now", "run <code>a --b &#39;&lt;c&gt;&#39;</code> now"},
        {"half a `code", "half a `code"},
        {"``", "<code></code>"},
        {"by S10, (S11)–S10", "by <a href=\"#S10\">S10</a>, (<a href=\"#S11\">S11</a>)–<a "
                              "href=\"#S10\">S10</a>"},
        {"S1 S100 XS10 S10a S_10 S12 XCiT-S10 S10-x `S10`",
         "S1 S100 XS10 S10a S_10 S12 XCiT-S10 S10-x <code>S10</code>"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *file = begin_text();
        markdown_line(&(markdown){file, "label", anchors}, rows[i][0]);
        expect_written(file, rows[i][1]);
    }
}

#define TABLE                                                                                      \
    "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"a &amp; b\"><table>\n"

Test(claims_markdown, blocks_of_markdown)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"\n\n", ""},
        {"a\nb\n\nc & S10", "<p>a\nb</p>\n<p>c &amp; <a href=\"#S10\">S10</a></p>\n"},
        {"a\n- b < c\n- d\ne\n",
         "<p>a</p>\n<ul>\n<li>b &lt; c</li>\n<li>d</li>\n</ul>\n<p>e</p>\n"},
        {"|", "<p>|</p>\n"},
        {"| a | n |\n|---|---|\n| \\|x\\| < 1 | −2 |\n| | 1e-3 to 4 |\nb\n",
         TABLE "<thead><tr><th class=\"text\">a</th><th>n</th></tr>\n</thead>\n"
               "<tbody><tr><td class=\"text\">|x| &lt; 1</td><td>−2</td></tr>\n"
               "<tr><td class=\"text\"></td><td>1e-3 to 4</td></tr>\n</tbody></table></div>\n"
               "<p>b</p>\n"},
        /* missing cells, one too many, no bar at the end, numbers and other things in a column */
        {"| a | b\n|---|---|\n|2/3|\n| inf | 3 of 4 | x |",
         TABLE "<thead><tr><th class=\"text\">a</th><th>b</th></tr>\n</thead>\n"
               "<tbody><tr><td class=\"text\">2/3</td><td></td></tr>\n"
               "<tr><td class=\"text\">inf</td><td>3 of 4</td></tr>\n</tbody></table></div>\n"},
        {"| a |\n|---|\n| - |",
         TABLE "<thead><tr><th class=\"text\">a</th></tr>\n</thead>\n<tbody><tr><td "
               "class=\"text\">-</td></tr>\n</tbody></table></div>\n"},
        {"| a |\n|---|",
         TABLE "<thead><tr><th class=\"text\">a</th></tr>\n</thead>\n</table></div>\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *file = begin_text();
        markdown_blocks(&(markdown){file, "a & b", anchors}, rows[i][0]);
        expect_written(file, rows[i][1]);
    }
}
