/* SPDX-License-Identifier: BSD-3-Clause */
/* The points of convergence/ and spectral/: grids, stages, strides, and the landmarks they give. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <soft.h>

#include "common/landmarks.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(landmarks, .init = scratch_begin, .fini = scratch_end);

Test(landmarks, photographs_give_the_numbers_of_landmarks_that_pooling_has)
{
    static const int64_t sides[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 21, 32};
    program_options s = {.inputs = {1, (const char *[]){"photos"}}};
    input_set set;
    token_grid grid;
    cr_assert(input_set_open(&s, NULL, &set) == EXIT_PASS);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        int64_t p = sides[i];
        int64_t given = landmark_grid(set.items[0], p * p, &grid);
        cr_expect(given == p * p && grid.stride == 64 / p && grid_landmarks(&grid) == p * p &&
                      grid.height == 64 && grid.width == 64 && grid.patch == 4 && !grid.windows,
                  "p=%" PRId64 " given=%" PRId64 " stride=%" PRId64, p, given, grid.stride);
    }
    int64_t nearest = landmark_grid(set.items[0], 121, &grid);
    cr_expect(nearest == 100 && grid.stride == 6, "nearest to 121: %" PRId64, nearest);
    input_set_free(&set);
}

Test(landmarks, synthetic_inputs_give_squares)
{
    static const int64_t nearest_squares[][2] = {{1, 1},   {2, 1},   {3, 4},      {16, 16},
                                                 {56, 49}, {57, 64}, {1024, 1024}};
    program_options s = {.inputs = {1, (const char *[]){"iid"}}};
    input_set set;
    cr_assert(input_set_open(&s, NULL, &set) == EXIT_PASS);
    for (size_t i = 0; i < sizeof nearest_squares / sizeof *nearest_squares; i++) {
        token_grid grid;
        int64_t m = nearest_squares[i][0], nearest = landmark_grid(set.items[0], m, &grid);
        cr_expect(nearest == nearest_squares[i][1] && grid.height * grid.width == nearest &&
                      grid.stride == 1,
                  "m=%" PRId64 " nearest=%" PRId64, m, nearest);
    }
    input_set_free(&set);
}

Test(landmarks, landmarks_are_pooled_tokens)
{
    program_options s = {.inputs = {1, (const char *[]){"photos"}}};
    atn_context *context = make_context();
    input_set set;
    token_grid grid = {14, 14, 16, 3, false}; /* 3 does not divide 14 */
    double *tokens = make_matrix(196, TOKEN_DIM), *landmarks = make_matrix(16, TOKEN_DIM);
    double *want = make_matrix(16, TOKEN_DIM);
    cr_assert(input_set_open(&s, NULL, &set) == EXIT_PASS);
    cr_assert(make_landmarks(set.items[0], &grid, 3, 2, context, tokens, landmarks) == EXIT_PASS);
    ref_pool(14, 14, TOKEN_DIM, 3, tokens, want);
    for (int64_t i = 0; i < 16 * TOKEN_DIM; i++)
        cr_expect(fabs(landmarks[i] - want[i]) <= 1e-13, "(%" PRId64 ",%" PRId64 ") %g, want %g",
                  i / TOKEN_DIM, i % TOKEN_DIM, landmarks[i], want[i]);
    free(want);
    free(landmarks);
    free(tokens);
    input_set_free(&set);
    atn_context_free(context);
}

Test(landmarks, landmarks_of_a_file_without_a_grid_are_means_of_windows)
{
    write_sine_tokens("line.npy", 1, 60, 4, 1);
    program_options s = {.inputs = {1, (const char *[]){"line.npy"}}};
    atn_context *context = make_context();
    input_set set;
    token_grid grid;
    double tokens[60 * 4], landmarks[9 * 4];
    cr_assert(input_set_open(&s, NULL, &set) == EXIT_PASS);
    cr_assert(landmark_grid(set.items[0], 9, &grid) == 9 && grid.windows && grid.stride == 7);
    cr_assert(make_landmarks(set.items[0], &grid, 1, 0, context, tokens, landmarks) == EXIT_PASS);
    for (int i = 0; i < 9 * 4; i++) {
        int first = 7 * (i / 4), last = first + 7 < 60 ? first + 7 : 60;
        double sum = 0;
        for (int j = first; j < last; j++)
            sum += tokens[j * 4 + i % 4];
        cr_expect(fabs(landmarks[i] - sum / (last - first)) <= 1e-14, "(%d,%d) %g", i / 4, i % 4,
                  landmarks[i]);
    }
    input_set_free(&set);
    atn_context_free(context);
}

/* IJCV Tab. 1, and what files become where --m has no say: 100 = 10 x 10 tokens stay as they are,
 * as stride 2 leaves 25; 230 without a grid are averaged over 230 / 49 = 4; 1 x 600 is too thin. */
Test(landmarks, stages_and_files_have_their_grids)
{
    static const struct {
        const char *options;
        int64_t stage, samples, m;
        token_grid grid;
        double width; /* w of the scale 1/(2 sqrt(w)): d, or h d with --scale embed */
    } cases[] = {
        {"--input iid --scale embed --stage 1 --samples 2", 1, 2, 49, {56, 56, 4, 8, false}, 64},
        {"--input iid --stage 2 --scale embed", 2, 3, 49, {28, 28, 8, 4, false}, 128},
        {"--input iid --stage 3 --scale embed", 3, 3, 49, {14, 14, 16, 2, false}, 320},
        {"--input iid --stage 3", 3, 3, 49, {14, 14, 16, 2, false}, 32},
        {"--input square.npy", 0, 5, 100, {10, 10, 0, 1, false}, 4},
        {"--input square.npy --samples 2", 0, 2, 100, {10, 10, 0, 1, false}, 4},
        {"--input line.npy", 0, 1, 58, {230, 1, 0, 4, true}, 4},
        {"--input thin.npy --grid 1x600", 0, 1, 50, {600, 1, 0, 12, true}, 4},
        /* 49 landmarks are enough, 36 are not; 4 * 49 are not too many, one more is */
        {"--input edge.npy --grid 14x14", 0, 1, 49, {14, 14, 0, 2, false}, 4},
        {"--input less.npy --grid 13x13", 0, 1, 169, {13, 13, 0, 1, false}, 4},
        {"--input edge.npy --grid 1x196", 0, 1, 196, {1, 196, 0, 1, false}, 4},
        {"--input more.npy --grid 1x197", 0, 1, 50, {197, 1, 0, 4, true}, 4},
        {"--input trained:soft", 0, 3, 49, {14, 14, 4, 2, false}, 32},
        {"--input trained:soft --scale embed", 0, 3, 49, {14, 14, 4, 2, false}, 64},
        {"--input trained:soft --stage 2 --scale embed", 2, 3, 49, {28, 28, 8, 4, false}, 64},
    };
    static const int64_t stages[] = {1, 2, 3, 0};
    static const usual_input inputs[] = {{"photos", 3}, {0}};
    write_sine_tokens("square.npy", 5, 100, 4, 1);
    write_sine_tokens("line.npy", 1, 230, 4, 1);
    write_sine_tokens("thin.npy", 1, 600, 4, 1);
    write_sine_tokens("less.npy", 1, 169, 4, 1);
    write_sine_tokens("edge.npy", 1, 196, 4, 1);
    write_sine_tokens("more.npy", 1, 197, 4, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const stage_defaults usual = {inputs, stages, false};
        const token_grid *want = &cases[i].grid;
        landmark_sweep sweep;
        program_options s;
        cr_assert_eq(parse_options(&s, &convergence_curves, cases[i].options), EXIT_PASS);
        cr_assert_eq(landmark_sweep_open_stages(&sweep, &s, &usual), EXIT_PASS);
        cr_expect_eq(sweep.count, cases[i].samples, "%s: %" PRId64, cases[i].options, sweep.count);
        for (int64_t k = 0; k < sweep.count; k++) {
            const landmark_point *p = &sweep.points[k];
            const token_grid *got = &p->grid;
            cr_expect(p->stage == cases[i].stage && p->m == cases[i].m && p->sample == k &&
                          p->series == 0 && got->height == want->height &&
                          got->width == want->width && got->patch == want->patch &&
                          got->stride == want->stride && got->windows == want->windows,
                      "%s: m = %" PRId64 ", stride %" PRId64, cases[i].options, p->m, got->stride);
            double scale = landmark_point_scale(&s, p);
            cr_expect(fabs(2 * scale * sqrt(cases[i].width) - 1) <= 4e-16, "%s: scale %.17g",
                      cases[i].options, scale);
        }
        landmark_sweep_close(&sweep);
        options_free(&s);
    }
}

/* Without --m a network takes the numbers of its own grid that are nearest to the usual ones, each
 * once, and so do files; a convolution that was trained has one number of landmarks, so that growth
 * with m leaves it out. */
Test(landmarks, networks_and_files_take_the_nearest_numbers)
{
    static const int64_t m[] = {4, 9, 16, 49, 196};
    static const char *const inputs[] = {"--input trained:soft", "--input trained:linformer",
                                         "--input edge.npy"};
    write_sine_tokens("edge.npy", 1, 196, 4, 1);
    for (int i = 0; i < 3; i++) {
        program_options s;
        void *state = NULL;
        int64_t points = 0;
        cr_assert_eq(parse_options(&s, &spectral_norm_growth, inputs[i]), EXIT_PASS);
        cr_assert_eq(spectral_norm_growth.prepare(&s, &state, &points), EXIT_PASS);
        int64_t samples = i < 2 ? 5 : 1;
        cr_assert_eq(points, 3 * 5 * samples, "%s: %" PRId64, inputs[i], points);
        for (int64_t k = 0; k < points; k++) {
            const landmark_point *p = &((landmark_sweep *)state)->points[k];
            cr_expect(p->m == m[k / samples % 5] && p->grid.height == 14 && p->grid.width == 14 &&
                          p->sampling == (sampling_kind)(k / samples / 5),
                      "%s, point %" PRId64 ": m = %" PRId64, inputs[i], k, p->m);
        }
        spectral_norm_growth.release(state);
        options_free(&s);
    }
}

/* A network that is one of the usual inputs is left out where it does not have what is asked for;
 * one that is asked for is refused. */
Test(landmarks, usual_networks_do_not_refuse_options)
{
    static const struct {
        const experiment *e;
        const char *options;
        int64_t points;
    } cases[] = {
        {&spectral_eigenvalues, "--samples 1 --m 1024", 7},
        {&spectral_eigenvalues, "--samples 1 --m 16", 9},
        {&spectral_norm_growth, "--samples 1 --m 25,49 --sampling pool", 16},
        {&spectral_resolution, "--samples 1 --n 441", 9}, /* softmax's has it */
        {&accuracy_operators, "--operator softmax/causal --n 25", 11},
        {&accuracy_operators, "--operator softmax/causal --n 784", 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program_options s;
        void *state = NULL;
        int64_t points = 0;
        cr_assert_eq(parse_options(&s, cases[i].e, cases[i].options), EXIT_PASS);
        cr_assert_eq(cases[i].e->prepare(&s, &state, &points), EXIT_PASS);
        cr_expect_eq(points, cases[i].points, "%s %s: %" PRId64, cases[i].e->name, cases[i].options,
                     points);
        cases[i].e->release(state);
        options_free(&s);
    }
}

Test(landmarks, the_nearest_side_that_an_input_has)
{
    static const struct {
        const char *input;
        int64_t side, nearest;
    } cases[] = {{"iid", 9, 9},
                 {"photos", 20, 20},
                 {"trained:sima", 2, 14},
                 {"trained:sima", 20, 14},
                 {"trained:sima", 21, 28},
                 {"trained:sima", 56, 56},
                 {"trained:linformer", 14, 14},
                 {"trained:linformer", 56, 14}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        input *in;
        cr_assert_eq(input_open(cases[i].input, 0, 0, &in), EXIT_PASS);
        cr_expect_eq(nearest_side(in, cases[i].side), cases[i].nearest, "%s, %" PRId64,
                     cases[i].input, cases[i].side);
        input_free(in);
    }
}

/* Points of an input, a stage and a sampling follow each other, and are one series. */
Test(landmarks, a_series_holds_samples_and_seeds)
{
    static const usual_input inputs[] = {{"photos", 2}, {0}};
    static const int64_t stages[] = {3, 2, 0};
    const stage_defaults usual = {inputs, stages, true};
    landmark_sweep sweep;
    program_options s;
    write_sine_tokens("square.npy", 1, 196, 4, 1);
    cr_assert_eq(parse_options(&s, &convergence_curves,
                               "--input iid,square.npy --samples 1 --seed 7,5 --sampling "
                               "published,pool"),
                 EXIT_PASS);
    cr_assert_eq(landmark_sweep_open_stages(&sweep, &s, &usual), EXIT_PASS);
    cr_assert_eq(sweep.count, 2 * 2 * 2 + 2); /* seeds do not change a file */
    cr_expect_eq(sweep.series, 6);
    for (int64_t k = 0; k < sweep.count; k++) {
        const landmark_point *p = &sweep.points[k];
        bool file = k >= 8;
        cr_expect(p->series == (file ? k - 4 : k / 2) &&
                      p->seed == (uint64_t)(file || k % 2 == 0 ? 7 : 5) &&
                      p->sampling == (p->series % 2 ? SAMPLING_POOL : SAMPLING_PUBLISHED) &&
                      p->stage == (file ? 0 : stages[k / 4]),
                  "point %" PRId64 ": series %d, seed %" PRIu64, k, p->series, p->seed);
    }
    landmark_sweep_close(&sweep);
    options_free(&s);
}

/* The largest sizes are taken and one more is refused before anything is computed. */
Test(landmarks, sizes_have_limits)
{
    static const struct {
        const experiment *e;
        const char *options, *refusal; /* null: taken */
    } cases[] = {
        {&spectral_softmax, "--input iid --n 4", NULL},
        {&spectral_softmax, "--input iid --n 1", "expected a square from 4 to 4096"},
        {&spectral_softmax, "--input iid --n 4096", NULL},
        {&spectral_softmax, "--input iid --n 4225", "expected a square from 4 to 4096"},
        {&spectral_softmax, "--input most.npy", NULL},
        {&spectral_softmax, "--input more.npy", "4097 tokens a matrix, expected at most 4096"},
        {&spectral_bounds, "--input most.npy", NULL},
        {&spectral_bounds, "--input more.npy", "4097 tokens a matrix, expected at most 4096"},
        {&spectral_norm_growth, "--input iid --m 16384", NULL},
        {&spectral_norm_growth, "--input iid --m 16641", "--m 16641: expected at most 16384"},
        {&spectral_norm_growth, "--input trained:soft", NULL},
        {&spectral_norm_growth, "--input trained:linformer --m 784", "nearest it can give is 196"},
        {&spectral_norm_growth, "--input trained:soft --m 25", "the nearest it can give is 16"},
        {&spectral_norm_growth, "--input trained:soft --m 16,17", "the nearest it can give is 16"},
        {&spectral_norm_growth, "--input trained:soft --m 49,196 --sampling trained",
         "another number of landmarks"},
        {&spectral_norm_growth, "--input trained:soft --m 49 --sampling trained", NULL},
        {&convergence_curves, "--input photos --sampling trained",
         "no trained network with landmarks"},
        {&convergence_curves, "--input trained:sima --sampling trained",
         "no trained network with landmarks"},
        {&convergence_curves, "--input trained:soft/values --sampling trained",
         "no trained network with landmarks"},
        {&convergence_curves, "--input trained:soft --stage 2 --sampling trained",
         "another number of landmarks"},
        {&convergence_curves, "--input trained:linformer --stage 1", "of which its matrix E is"},
        {&spectral_bounds, "--input trained:linformer", "of which its matrix E is"},
        {&spectral_softmax, "--input trained:soft --n 25", "a multiple of 2"},
        {&accuracy_operators, "--input trained:soft --n 25", "a multiple of 2"},
        {&convergence_curves, "--input trained:softpp --sampling trained", NULL},
        {&attention_half, "--n 4", NULL},
        {&attention_half, "--n 1", "a square number from 4:"},
    };
    write_sine_tokens("most.npy", 1, 4096, 4, 1);
    write_sine_tokens("more.npy", 1, 4097, 4, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program_options s;
        void *state = NULL;
        int64_t points = 0;
        cr_assert_eq(parse_options(&s, cases[i].e, cases[i].options), EXIT_PASS);
        capture();
        int code = cases[i].e->prepare(&s, &state, &points);
        const char *said = captured();
        cr_expect(cases[i].refusal ? code == EXIT_USAGE && is_one_line_with(said, cases[i].refusal)
                                   : code == EXIT_PASS && points > 0,
                  "%s: %d %s", cases[i].options, code, said);
        if (state)
            cases[i].e->release(state);
        options_free(&s);
    }
}

/* A file has as many as matrices, a network 2 heads of 256 pictures. */
Test(landmarks, samples_are_those_that_an_input_has)
{
    static const struct {
        const char *options, *expected; /* null: taken */
        int64_t samples;
    } cases[] = {
        {"--input three.npy --samples 3", NULL, 3},
        {"--input three.npy --samples 4", "three.npy has 3 matrices, expected at most as many", 0},
        {"--input trained:soft --samples 512", NULL, 512},
        {"--input trained:soft --samples 513", "trained:soft has 512 heads of pictures", 0},
        {"--input trained:soft --stage 2 --samples 513", "trained:soft has 512 heads of", 0},
        {"--input trained:soft", NULL, 512}, /* the usual number is larger */
        {"--input iid", NULL, 600},
    };
    static const int64_t stages[] = {3, 0};
    static const usual_input inputs[] = {{"iid", 600}, {0}};
    const stage_defaults usual = {inputs, stages, false};
    write_sine_tokens("three.npy", 3, 16, 4, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        landmark_sweep sweep;
        program_options s;
        cr_assert_eq(parse_options(&s, &convergence_curves, cases[i].options), EXIT_PASS);
        capture();
        int code = landmark_sweep_open_stages(&sweep, &s, &usual);
        const char *said = captured();
        cr_expect(cases[i].expected
                      ? code == EXIT_USAGE && is_one_line_with(said, cases[i].expected)
                      : code == EXIT_PASS && !*said,
                  "%s: %d %s", cases[i].options, code, said);
        cr_expect_eq(sweep.count, cases[i].samples, "%s: %" PRId64, cases[i].options, sweep.count);
        landmark_sweep_close(&sweep);
        options_free(&s);
    }
}

/* 2^22 points are taken, one more is not: as if all but three were there. */
Test(landmarks, points_have_a_limit)
{
    enum { MOST = 1 << 22 };
    static const usual_input inputs[] = {{"iid", 1}, {0}};
    static const int64_t stages[] = {3, 0};
    const stage_defaults usual = {inputs, stages, false};
    landmark_sweep sweep;
    program_options s;
    cr_assert_eq(parse_options(&s, &convergence_curves, "--input iid"), EXIT_PASS);
    cr_assert_eq(landmark_sweep_open_stages(&sweep, &s, &usual), EXIT_PASS);
    landmark_point point = sweep.points[0];
    sweep.points = must_resize(sweep.points, MOST, sizeof *sweep.points);
    sweep.capacity = MOST;
    for (int samples = 3; samples <= 4; samples++) {
        sweep.count = MOST - 3;
        s.samples = samples;
        capture();
        int code = landmark_sweep_add_samples(&sweep, point, 1);
        cr_expect(code == (samples == 3 ? EXIT_PASS : EXIT_USAGE), "%d: %s", samples, captured());
        cr_expect_eq(sweep.count, samples == 3 ? MOST : MOST - 3);
    }
    landmark_sweep_close(&sweep);
    options_free(&s);
}
