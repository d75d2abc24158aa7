/* SPDX-License-Identifier: BSD-3-Clause */
/* Status codes: names and messages. */
#include <criterion/criterion.h>
#include <string.h>

#include <attnum/attnum.h>

Test(status, every_code_has_its_name_and_message)
{
    static const struct {
        atn_status status;
        int value;
        const char *name, *message;
    } rows[] = {
#define ROW(code, value, message) {code, value, #code, message},
        ATN_STATUS_LIST(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq((int)rows[i].status, rows[i].value, "%s", rows[i].name);
        cr_expect_str_eq(atn_status_name(rows[i].status), rows[i].name);
        cr_expect_str_eq(atn_status_message(rows[i].status), rows[i].message);
        for (size_t j = 0; j < i; j++)
            cr_expect(strcmp(rows[i].message, rows[j].message) != 0, "%s and %s", rows[i].name,
                      rows[j].name);
    }
    static const int unknown[] = {-11, 6, 1000, -1000};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_expect_str_eq(atn_status_name((atn_status)unknown[i]), "unknown status");
        cr_expect_str_eq(atn_status_message((atn_status)unknown[i]), "unknown status");
    }
}
