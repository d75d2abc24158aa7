/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine's ticks (/proc/stat). */
#include <criterion/criterion.h>

#include "cost/pairs.h"

Test(ticks, ticks_are_read)
{
    machine_ticks t = {.own = 77};
    cr_expect(machine_ticks_parse("cpu  10 2 3 100 5 1 6 7 9 9\ncpu0 1 1 1 1 1 1 1 1\n", &t));
    cr_expect(t.all == 134 && t.idle == 105 && t.steal == 7 && t.own == 77);
    static const char *const bad[] = {"", "cpu0 10 2 3 100 5 1 6 7", "cpu 10 2 3", "intr 1 2 3"};
    for (int i = 0; i < 4; i++)
        cr_expect(!machine_ticks_parse(bad[i], &t), "%s", bad[i]);
}

Test(ticks, others_make_a_pair_dirty)
{
    /* Since zero: all, idle, steal, own. Of 200, 2 + 20 may be others', 2 + 4 stolen. */
    static const struct {
        machine_ticks after;
        bool dirty;
    } cases[] = {
        {{200, 100, 0, 100}, false}, {{200, 78, 0, 100}, false}, {{200, 77, 0, 100}, true},
        {{200, 100, 6, 94}, false},  {{200, 100, 7, 93}, true},  {{8, 3, 0, 4}, false},
        {{8, 1, 0, 4}, true},        {{8, 4, 0, 4}, false},      {{0, 0, 0, 0}, false},
    };
    static const machine_ticks starts[] = {{0, 0, 0, 0}, {1000, 300, 50, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int j = 0; j < 2; j++) {
            machine_ticks after = cases[i].after;
            after.all += starts[j].all;
            after.idle += starts[j].idle;
            after.steal += starts[j].steal;
            after.own += starts[j].own;
            cr_expect(machine_is_dirty(&starts[j], &after) == cases[i].dirty, "%zu", i);
        }
}
