/* SPDX-License-Identifier: BSD-3-Clause */
/* What the convergence experiments promise together: clear errors, points that can be repeated,
 * results that do not depend on the number of threads. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(convergence, .init = scratch_begin, .fini = scratch_end);

Test(convergence, two_files_of_one_name_are_refused)
{
    static const experiment *const both[] = {&convergence_curves, &convergence_initialisation};
    write_sine_tokens("tokens.npy", 1, 64, 2, 1);
    for (int i = 0; i < 2; i++) {
        partial_run r = {.e = both[i]};
        cr_assert_eq(parse_options(&r.s, r.e, "--input tokens.npy,./tokens.npy"), EXIT_PASS);
        capture();
        int code = r.e->prepare(&r.s, &r.state, &r.points);
        const char *text = captured();
        cr_expect_eq(code, EXIT_USAGE, "%s: exit code %d", r.e->name, code);
        cr_expect(is_one_line_with(text, "two inputs are named tokens.npy"), "%s", text);
        r.e->release(r.state);
        options_free(&r.s);
    }
}

/* The command for a point computes that point again, as its last one. */
static void check_again(const partial_run *r, int64_t point)
{
    static const char start[] = "attnum run ";
    char want[256], got[256];
    options_point picked;
    r->e->replay(r->state, point, &picked);
    char *command = options_replay(&r->s, r->e->name, r->e->options, &picked);
    cr_assert_eq(strncmp(command, start, strlen(start)), 0, "%s", command);
    partial_run again;
    prepare_run(&again, r->e, command + strlen(start));
    r->e->describe(r->state, point, want, sizeof want);
    r->e->describe(again.state, again.points - 1, got, sizeof got);
    cr_expect_str_eq(got, want, "%s", command);
    const program_options *a = &again.s, *b = &r->s;
    cr_expect(a->scale_value == b->scale_value && a->iterations == b->iterations &&
                  a->distance == b->distance && a->alpha == b->alpha &&
                  a->grid_height == (strstr(want, ".npy") ? b->grid_height : 0) &&
                  a->variants.count == b->variants.count && a->dtype_count == b->dtype_count,
              "%s", command);
    free(command);
    end_run(&again);
}

Test(convergence, a_failing_point_can_be_run_again)
{
    static const struct {
        const experiment *e;
        const char *options;
        int64_t known;
    } rows[] = {
        {&convergence_curves,
         "--quick --input iid:0.3,tokens.npy --stage 3,1 --seed 7,3 --iterations 4 --variant "
         "nr,eig --alpha 0.1 --scale 0.3 --distance clamped --grid 4x16 --dtype f64",
         0},
        {&convergence_curves, "--quick", 0},
        {&convergence_initialisation, "--scale 1e-3 --seed 2", 10},
    };
    write_sine_tokens("tokens.npy", 1, 64, 2, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        partial_run r;
        prepare_run(&r, rows[i].e, rows[i].options);
        for (int64_t point = rows[i].known; point < r.points; point++)
            check_again(&r, point);
        options_point first;
        r.e->replay(r.state, 0, &first);
        cr_expect_eq(first.samples, 1, "known matrices are in every run");
        end_run(&r);
    }
}

static char *run_to_csv(const experiment *e, const char *options, const char *out, size_t *size)
{
    cr_assert_eq(run_experiment(e, options), EXIT_PASS);
    return read_csv(e, out, 0, size);
}

Test(convergence, csv_does_not_depend_on_threads)
{
    static const struct {
        const experiment *e;
        const char *options;
    } cases[] = {
        {&convergence_curves, "--input photos,iid --samples 3 --stage 1,3 --iterations 4"},
        {&convergence_initialisation, "--input smooth,iid --samples 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *csv[2];
        size_t sizes[2];
        for (int threads = 1; threads <= 2; threads++) {
            char options[256], out[16];
            snprintf(out, sizeof out, "out%d", threads);
            snprintf(options, sizeof options, "%s --threads %d --out %s", cases[i].options, threads,
                     out);
            csv[threads - 1] = run_to_csv(cases[i].e, options, out, &sizes[threads - 1]);
        }
        cr_expect(sizes[0] == sizes[1] && sizes[0] > 1000 && memcmp(csv[0], csv[1], sizes[0]) == 0,
                  "%s", cases[i].e->name);
        free(csv[0]);
        free(csv[1]);
    }
}
