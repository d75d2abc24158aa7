/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/html.h"

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
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        html_text(file, rows[i].text);
        fclose(file);
        cr_expect_str_eq(text, rows[i].want);
        free(text);
    }
}
