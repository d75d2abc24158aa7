/* SPDX-License-Identifier: BSD-3-Clause */
/* The bottleneck matrix A: its spectrum, and landmarks as the published SOFT code takes them. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/npy.h"
#include "common/random.h"
#include "common/report.h"
#include "convergence/bottleneck.h"
#include "drawn_case.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/matrices.h"

TestSuite(convergence_bottleneck, .init = scratch_begin, .fini = scratch_end);

/* The numerical range of f32 ends at 3 u |A| = 7e-7, that of f64 at 1e-15. */
Test(convergence_bottleneck, ends_of_a_spectrum)
{
    static const double a[9] = {0.5, 0, 0, 0, -4, 0, 0, 0, 0x1p-24};
    for (int dtype = 0; dtype < ATN_CPU_DTYPE_COUNT; dtype++) {
        bottleneck b = bottleneck_create((atn_dtype)dtype, 3);
        cr_assert(bottleneck_from_matrix(&b, a) == EXIT_PASS);
        double least = bottleneck_smallest(&b, false), in_range = bottleneck_smallest(&b, true);
        cr_expect(bottleneck_largest(&b) == 4 && least == 0x1p-24 &&
                      in_range == (dtype == ATN_F32 ? 0.5 : 0x1p-24),
                  "%s: %g, %g, %g", atn_dtype_name((atn_dtype)dtype), bottleneck_largest(&b), least,
                  in_range);
        bottleneck_free(&b);
    }
}

/* ---- The published sampling ---- */

/* GELU(LayerNorm(convolution)) of tokens on a 14 x 14 grid, by loops in long double. */
static void take_landmarks(const double *tokens, const double *weights, double *landmarks)
{
    for (int l = 0; l < M; l++) {
        long double out[D], mean = 0, variance = 0;
        for (int c = 0; c < D; c++) {
            out[c] = 0;
            for (int in = 0; in < D; in++)
                for (int cell = 0; cell < CELLS; cell++) {
                    int y = l / 7 * STRIDE + cell / STRIDE, x = l % 7 * STRIDE + cell % STRIDE;
                    out[c] += (long double)weights[(c * D + in) * CELLS + cell] *
                              tokens[(y * SIDE + x) * D + in];
                }
            mean += out[c] / D;
        }
        for (int c = 0; c < D; c++)
            variance += (out[c] - mean) * (out[c] - mean) / D;
        for (int c = 0; c < D; c++) {
            long double normal = (out[c] - mean) / sqrtl(variance + 1e-5L);
            landmarks[l * D + c] = (double)(normal / 2 * (1 + erfl(normal / sqrtl(2))));
        }
    }
}

/* exp(-|x - y|^2/2) */
static double kernel(const double *x, const double *y)
{
    double square = 0;
    for (int c = 0; c < D; c++)
        square += (x[c] - y[c]) * (x[c] - y[c]);
    return exp(-square / 2);
}

/* Half of the weights' range is in either half of it, and none beyond. */
static void draw_weights(double *weights)
{
    double bound = 1 / sqrt(D * CELLS);
    int inner = 0;
    random_stream *r = random_create(1, "published sampling", 0);
    for (int i = 0; i < D * D * CELLS; i++) {
        weights[i] = bound * (2 * random_uniform(r) - 1);
        inner += fabs(weights[i]) < bound / 2;
    }
    random_free(r);
    cr_expect(abs(2 * inner - D * D * CELLS) < 6 * sqrt(D * D * CELLS), "%d", inner);
}

/* A and P of the published sampling against loops over its definition. */
static void check_published(bool centred)
{
    drawn_case c;
    char *options =
        must_format("--input photos --samples 1 --sampling published%s", centred ? "-centred" : "");
    double *weights = must_allocate(D * D * CELLS, sizeof *weights), worst = 0;
    double *landmarks = must_allocate(M * D, sizeof *landmarks);
    draw_case(&c, options);
    cr_expect_eq(c.draws.count, 1);
    draw_weights(weights);
    for (int j = 0; j < D; j++) {
        double mean = 0;
        for (int i = 0; i < N; i++)
            mean += c.raw[i * D + j] / N;
        for (int i = 0; i < N; i++)
            c.raw[i * D + j] = (c.raw[i * D + j] - (centred ? mean : 0)) / pow(D, 0.25);
    }
    take_landmarks(c.raw, weights, landmarks);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++)
            worst = fmax(worst,
                         fabs(c.b.exact[i * M + j] - kernel(landmarks + i * D, landmarks + j * D)));
        for (int j = 0; j < N; j++)
            worst =
                fmax(worst, fabs(c.cross[i * N + j] - kernel(landmarks + i * D, c.raw + j * D)));
    }
    cr_expect(worst < 1e-13, "%s: off by %g", options, worst);
    free(landmarks);
    free(weights);
    free_case(&c);
    free(options);
}

Test(convergence_bottleneck, landmarks_are_those_of_the_definition)
{
    check_published(false);
    check_published(true);
}

/* The spectral experiments take the same landmarks: of a file of the same tokens, A has the same
 * eigenvalues. */
Test(convergence_bottleneck, both_kinds_of_sweep_agree)
{
    drawn_case c;
    const int64_t shape[] = {N, D};
    draw_case(&c, "--input iid --sampling published --samples 1");
    cr_assert_eq(npy_write(".", "tokens.npy", ATN_F64, 2, shape, c.raw), EXIT_PASS);
    cr_assert_eq(run_experiment(&spectral_norm_growth, "--input tokens.npy --grid 14x14 --m 49"),
                 EXIT_PASS);
    table *t = read_output(&spectral_norm_growth, "results", 0);
    cr_assert_eq(table_rows(t), 3);
    for (int i = 0; i < 3; i++)
        cr_expect(cell_is(t, i, "sampling", sampling_name((sampling_kind)i)));
    cr_expect(fabs(cell_real(t, 1, "lambda_min") - c.b.lambda[M - 1]) < 1e-13);
    cr_expect(fabs(cell_real(t, 1, "lambda_max") - c.b.lambda[0]) < 1e-13);
    cr_expect(fabs(cell_real(t, 0, "lambda_max") - c.b.lambda[0]) > 1e-3);
    table_free(t);
    free_case(&c);
}

/* The matrices of a network's own landmarks are those of networks/epochs, which its tests compare
 * with loops in long double, but for the tokens, which an input rounds to f32. nr-soft and nr-paper
 * are the inverses of these networks. */
static void check_landmarks_of_network(const char *network, int64_t block, const char *inverse)
{
    char *options = must_format("--network %s --seed 4 --samples 1 --out a", network);
    cr_assert_eq(run_experiment(&networks_epochs, options), EXIT_PASS);
    free(options);
    table *t = read_output(&networks_epochs, "a", 0);
    int64_t row = block; /* of the first head */
    cr_assert(cell_integer(t, row, "block") == block && cell_integer(t, row, "head") == 0);
    double condition = cell_real(t, row, "condition"), residual = cell_real(t, row, "residual");
    options = must_format("--input trained:%s/block%" PRId64 " --sampling trained --samples 1 "
                          "--seed 4 --variant %s --out b",
                          network, block, inverse);
    cr_assert_eq(run_experiment(&convergence_curves, options), EXIT_PASS);
    table *curves = read_output(&convergence_curves, "b", 0);
    cr_expect_eq(table_rows(curves), 2 * 21);
    for (int64_t k = 0; k < table_rows(curves); k++) {
        double found = cell_real(curves, k, "condition_median");
        double last = cell_real(curves, k, "residual_mean");
        cr_expect(cell_is(curves, k, "sampling", "trained") &&
                      cell_integer(curves, k, "stage") == 0 &&
                      close_to(found, condition, 100 * 0x1p-24 * condition),
                  "%s: %.10g, not %.10g", options, found, condition);
        cr_expect(cell_integer(curves, k, "iteration") < 20 || close_to(last, residual, 1e-3),
                  "%s: %.10g, not %.10g", options, last, residual);
    }
    table_free(curves);
    free(options);
    table_free(t);
}

Test(convergence_bottleneck, landmarks_of_a_network)
{
    check_landmarks_of_network("soft", 1, "nr-soft");
    check_landmarks_of_network("soft", 3, "nr-soft");
    check_landmarks_of_network("softpp", 2, "nr-paper");
}

/* The points of a file with these options; 0 where they are refused. */
static int64_t count_points(const experiment *e, const char *options)
{
    program_options s;
    void *state = NULL;
    int64_t points = 0;
    cr_assert_eq(parse_options(&s, e, options), EXIT_PASS);
    int code = e->prepare(&s, &state, &points);
    cr_expect(code == EXIT_PASS || code == EXIT_USAGE, "%s %s: %d", e->name, options, code);
    e->release(state);
    options_free(&s);
    return code == EXIT_PASS ? points : 0;
}

/* `times` as many points as with pooling alone. */
static void expect_samplings(const char *file, const char *sampling, int times)
{
    static const experiment *const both[] = {&convergence_curves, &spectral_norm_growth};
    for (int i = 0; i < 2; i++) {
        char *options = must_format("%s %s", file, sampling);
        char *pooled = must_format("%s --sampling pool", file);
        cr_expect_eq(count_points(both[i], options), times * count_points(both[i], pooled), "%s %s",
                     both[i]->name, options);
        cr_expect(count_points(both[i], pooled) > 0);
        free(pooled);
        free(options);
    }
}

/* A convolution needs a grid: without one there is pooling alone, or a refusal; and one of stride 1
 * of tokens 10000 wide would have 10^8 weights. */
Test(convergence_bottleneck, where_it_is_not_possible)
{
    enum { WIDE = 10000 };
    double *tokens = must_allocate(4 * WIDE, sizeof *tokens);
    const int64_t square[] = {64, 4}, row[] = {61, 4}, wide[] = {4, WIDE};
    for (int i = 0; i < 4 * WIDE; i++)
        tokens[i] = sin(i);
    cr_assert_eq(npy_write(".", "square.npy", ATN_F64, 2, square, tokens), EXIT_PASS);
    cr_assert_eq(npy_write(".", "row.npy", ATN_F64, 2, row, tokens), EXIT_PASS);
    cr_assert_eq(npy_write(".", "wide.npy", ATN_F64, 2, wide, tokens), EXIT_PASS);
    cr_assert(freopen("stderr.txt", "w", stderr));
    expect_samplings("--input square.npy", "", 3);
    expect_samplings("--input square.npy --grid 4x16", "--sampling published,pool", 2);
    expect_samplings("--input row.npy", "", 1);
    expect_samplings("--input row.npy", "--sampling published", 0);
    expect_samplings("--input row.npy", "--sampling pool,published-centred", 0);
    cr_expect_eq(count_points(&convergence_curves, "--input trained:soft --samples 1"), 4);
    cr_expect_eq(count_points(&convergence_curves, "--input trained:softmax --samples 1"), 3);
    expect_samplings("--input wide.npy --grid 2x2", "", 1);
    expect_samplings("--input wide.npy --grid 2x2", "--sampling published", 0);
    free(tokens);
}
