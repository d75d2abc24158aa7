/* SPDX-License-Identifier: BSD-3-Clause */
/* What all spectral experiments promise: clear errors, points that can be repeated, results that do
 * not depend on the number of threads. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/matrices.h"

TestSuite(spectral, .init = scratch_begin, .fini = scratch_end);

/* Without --m: of each usual m the nearest that a file has, each once; from a grid (14 x 14 pools
 * to 1, 4, 9, 16, 49, 196), or in windows (ceil(60 / k)). A file is the same under all seeds. */
Test(spectral, a_file_gives_the_nearest_it_has)
{
    static const struct {
        const experiment *e;
        const char *options;
        int64_t m[8], samples;
    } cases[] = {
        {&spectral_norm_growth,
         "--input tokens.npy --seed 3,1 --sampling pool",
         {4, 9, 16, 49, 196},
         2},
        {&spectral_norm_growth, "--input line.npy", {4, 9, 15, 20, 30, 60}, 1},
        {&spectral_eigenvalues, "--input tokens.npy --samples 2 --seed 1,2", {196}, 2},
        {&spectral_eigenvalues, "--input line.npy --m 20", {20}, 1},
        {&spectral_bounds, "--input tokens.npy --stage 3", {49}, 2},
        {&spectral_bounds, "--input line.npy --stage 3", {60}, 1},
        {&spectral_bounds, "--input large.npy --stage 3", {36}, 1}, /* 18 x 18: 36, then 81 */
    };
    write_sine_tokens("tokens.npy", 2, 196, 3, 1);
    write_sine_tokens("line.npy", 1, 60, 4, 1);
    write_sine_tokens("large.npy", 1, 324, 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *state = NULL;
        int64_t points = 0, at = 0;
        program_options s;
        cr_assert(parse_options(&s, cases[i].e, cases[i].options) == EXIT_PASS);
        int code = cases[i].e->prepare(&s, &state, &points);
        cr_assert(code == EXIT_PASS, "%s %s", cases[i].e->name, cases[i].options);
        const landmark_sweep *sweep = state;
        for (const int64_t *m = cases[i].m; *m; m++)
            for (int64_t sample = 0; sample < cases[i].samples; sample++, at++) {
                const landmark_point *p = &sweep->points[at];
                cr_assert(at < points && p->in);
                cr_expect(p->m == *m && p->sample == sample &&
                              p->seed == (uint64_t)s.seeds.items[0] &&
                              grid_landmarks(&p->grid) == *m,
                          "%s %s: m=%" PRId64 ", want %" PRId64, cases[i].e->name, cases[i].options,
                          p->m, *m);
            }
        cr_expect(at == points || !sweep->points[at].in, "%s %s: more than %" PRId64 " points",
                  cases[i].e->name, cases[i].options, at);
        cases[i].e->release(state);
        options_free(&s);
    }
}

Test(spectral, every_experiment_runs_on_a_file_without_a_grid)
{
    static const experiment *const all[] = {&spectral_eigenvalues, &spectral_norm_growth,
                                            &spectral_bounds, &spectral_sampling};
    write_sine_tokens("line.npy", 1, 60, 4, 1);
    write_sine_tokens("one.npy", 1, 1, 1, 1);
    for (int i = 0; i < 4; i++)
        cr_expect(run_experiment(all[i], "--input line.npy,one.npy --out out") == EXIT_PASS, "%s",
                  all[i]->name);
}

Test(spectral, what_an_input_cannot_give_is_a_usage_error)
{
    static const struct {
        const experiment *e;
        const char *options, *line;
    } cases[] = {
        {&spectral_norm_growth, "--input photos --m 4,50", "--m 50: photos cannot give"},
        {&spectral_norm_growth, "--input photos --m 50", "nearest it can give is 49"},
        {&spectral_eigenvalues, "--input iid --m 57", "nearest it can give is 64"},
        {&spectral_eigenvalues, "--input tokens.npy --m 5", "nearest it can give is 4"},
        {&spectral_eigenvalues, "--input tokens.npy --grid 98x2 --m 49 --samples 3",
         "tokens.npy has 2 matrices"},
        {&spectral_norm_growth, "--input line.npy --m 50", "nearest it can give is 60"},
        {&spectral_bounds, "--input smooth --m 48", "nearest it can give is 49"},
        {&spectral_bounds, "--input tokens.npy --m 48", "nearest it can give is 49"},
        {&spectral_bounds, "--input tokens.npy --samples 3", "tokens.npy has 2 matrices"},
        {&spectral_bounds, "--input big.npy", "big.npy has 4097 tokens"},
        {&spectral_bounds, "--input smooth,big.npy --m 1", "at most 4096"},
        {&spectral_eigenvalues, "--input iid --m 16641", "expected at most 16384"},
        {&spectral_eigenvalues, "--input long.npy --grid 16385x1", "16384 landmarks or fewer"},
        {&spectral_bounds, "--input smoth", "smooth"},
        {&spectral_eigenvalues, "--input iid --scale embed", "an input is one head here"},
        {&spectral_norm_growth, "--input iid --scale embed", "an input is one head here"},
        {&spectral_bounds, "--input iid --scale embed", "an input is one head here"},
        {&spectral_eigenvalues, "--input tokens.npy,./tokens.npy", "two inputs are named tokens."},
        {&spectral_norm_growth, "--input tokens.npy,./tokens.npy", "two inputs are named tokens."},
        {&spectral_bounds, "--input tokens.npy,./tokens.npy", "two inputs are named tokens.npy"},
    };
    write_sine_tokens("tokens.npy", 2, 196, 3, 1);
    write_sine_tokens("line.npy", 1, 60, 4, 1);
    write_sine_tokens("big.npy", 1, 4097, 1, 1);
    write_sine_tokens("long.npy", 1, 16385, 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        capture();
        int code = run_experiment(cases[i].e, cases[i].options);
        const char *line = captured();
        cr_expect(code == EXIT_USAGE && is_one_line_with(line, cases[i].line), "%s %s: %d, %s",
                  cases[i].e->name, cases[i].options, code, line);
    }
}

/* The command that a failed check prints computes the same rows: the last sample, the same numbers.
 */
Test(spectral, a_point_can_be_replayed)
{
    static const char *const words[] = {
        "--input",    "smooth,tokens.npy", "--stage",   "3",      "--m",
        "4,49",       "--scale",           "0.3",       "--seed", "5,7",
        "--distance", "expanded",          "--samples", "2"};
    enum { WORDS = sizeof words / sizeof *words };
    void *state = NULL;
    int64_t points, at = 0;
    program_options s;
    write_sine_tokens("tokens.npy", 2, 196, 3, 1);
    cr_assert(options_parse(&s, spectral_bounds.options, WORDS, (char **)words) == EXIT_PASS);
    cr_assert(spectral_bounds.prepare(&s, &state, &points) == EXIT_PASS);
    const landmark_sweep *sweep = state;
    while (at < points && !(sweep->points[at].m == 49 && sweep->points[at].sample == 1 &&
                            sweep->points[at].seed == 7))
        at++;
    cr_assert(at < points);
    atn_context *context = make_context();
    table *want =
        table_create(spectral_bounds.outputs[0].columns, spectral_bounds.outputs[0].column_count);
    cr_assert(spectral_bounds.run(state, at, context, want) == EXIT_PASS);
    options_point options;
    spectral_bounds.replay(state, at, &options);
    char *line = options_replay(&s, spectral_bounds.name, spectral_bounds.options, &options);
    static const char start[] = "attnum run spectral/bounds ";
    const char *command = strstr(line, start);
    cr_assert(command, "%s", line);
    cr_assert(run_experiment(&spectral_bounds, command + strlen(start)) == EXIT_PASS, "%s", line);
    table *got = read_output(&spectral_bounds, "replay", 0);
    int64_t first = table_rows(want); /* sample 0 has as many rows before it */
    for (int64_t row = 0; row < table_rows(want); row++)
        cr_expect(first + row < table_rows(got) && cell_integer(got, first + row, "m") == 49 &&
                      cell_integer(got, first + row, "sample") == 1 &&
                      cell_integer(got, first + row, "seed") == 7 &&
                      cell_real(got, first + row, "measured") == cell_real(want, row, "measured"),
                  "%s: row %" PRId64, line, row);
    table_free(got);
    table_free(want);
    free(line);
    atn_context_free(context);
    spectral_bounds.release(state);
    options_free(&s);
}

/* ---- Threads ---- */

static void expect_same(const experiment *e, int output)
{
    size_t size[2];
    char *bytes[2] = {read_csv(e, "out1", output, &size[0]), read_csv(e, "out2", output, &size[1])};
    cr_expect(size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0 && size[0] > 200,
              "%s: %s.csv depends on the number of threads", e->name, e->outputs[output].name);
    free(bytes[0]);
    free(bytes[1]);
}

Test(spectral, results_do_not_depend_on_threads)
{
    static const struct {
        const experiment *e;
        const char *options;
    } cases[] = {
        {&spectral_eigenvalues, "--input photos,smooth --m 16,49"},
        {&spectral_norm_growth, "--input photos,smooth,iid --m 4,16 --samples 3"},
        {&spectral_bounds, "--input photos,smooth --stage 3 --samples 2"},
        {&spectral_sampling, "--input photos,clusters --quick"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int threads = 1; threads <= 2; threads++) {
            char *options =
                must_format("%s --threads %d --out out%d", cases[i].options, threads, threads);
            cr_assert(run_experiment(cases[i].e, options) == EXIT_PASS, "%s", options);
            free(options);
        }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int j = 0; j < cases[i].e->output_count; j++)
            expect_same(cases[i].e, j);
}
