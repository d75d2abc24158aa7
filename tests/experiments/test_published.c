/* SPDX-License-Identifier: BSD-3-Clause */
/* The published setting: landmarks as the SOFT code takes them, and what the error of an inverse
 * does to the attention matrix. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <linear_algebra.h>

#include "common/npy.h"
#include "common/random.h"
#include "common/report.h"
#include "convergence/attention_error.h"
#include "convergence/bottleneck.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "spectral/landmarks.h"

TestSuite(published, .init = scratch_begin, .fini = scratch_end);

enum { SIDE = 14, N = SIDE * SIDE, STRIDE = 2, M = 49, D = 32, CELLS = STRIDE * STRIDE };

/* ---- Landmarks ---- */

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

/* The first draw of iid tokens at stage 3 in f64, in one sampling; `raw` is what it draws from. */
typedef struct {
    program_options s;
    case_list list;
    case_draw draw;
    bottleneck b;
    double *raw, *tokens, *cross;
} drawn;

static void draw_case(drawn *c, const char *options)
{
    static const int64_t stages[] = {3, 0};
    const case_defaults defaults = {NULL, stages, true};
    cr_assert_eq(parse_options(&c->s, &convergence_curves, options), EXIT_PASS);
    cr_assert_eq(case_list_open(&c->s, &defaults, &c->list), EXIT_PASS);
    c->draw = case_list_draw(&c->list, 0);
    c->b = bottleneck_create(ATN_F64, M);
    c->raw = must_allocate(N * D, sizeof *c->raw);
    c->cross = must_allocate(M * N, sizeof *c->cross);
    cr_assert_eq(input_tokens(c->draw.c->in, SIDE, SIDE, 16, 1, 0, c->raw), EXIT_PASS);
    cr_assert_eq(case_draw_tokens(&c->draw, &c->tokens), EXIT_PASS);
    atn_context *context = make_context();
    cr_assert_eq(bottleneck_from_tokens(&c->b, &c->draw, context, c->tokens, c->cross), EXIT_PASS);
    atn_context_free(context);
}

static void free_case(drawn *c)
{
    free(c->cross);
    free(c->tokens);
    free(c->raw);
    bottleneck_free(&c->b);
    case_list_free(&c->list);
    options_free(&c->s);
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
    drawn c;
    char *options =
        must_format("--input photos --samples 1 --sampling published%s", centred ? "-centred" : "");
    double *weights = must_allocate(D * D * CELLS, sizeof *weights), worst = 0;
    double *landmarks = must_allocate(M * D, sizeof *landmarks);
    draw_case(&c, options);
    cr_expect_eq(c.list.points, 1);
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

Test(published, landmarks_are_those_of_the_definition)
{
    check_published(false);
    check_published(true);
}

/* The spectral experiments take the same landmarks: of a file of the same tokens, A has the same
 * eigenvalues. */
Test(published, both_kinds_of_sweep_agree)
{
    drawn c;
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
Test(published, where_it_is_not_possible)
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
    expect_samplings("--input wide.npy --grid 2x2", "", 1);
    expect_samplings("--input wide.npy --grid 2x2", "--sampling published", 0);
    free(tokens);
}

/* ---- What the error does to the attention matrix ---- */

/* |P^T (X - A+) P|_2 / |P^T A+ P|_2 with the n x n matrices, by singular values. */
static double dense_error(const drawn *c, const double *pinv, const double *x)
{
    double *half = must_allocate(M * N, sizeof *half), norms[2];
    double *form = must_allocate((size_t)N * N, sizeof *form);
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                half[i * N + j] = 0;
                for (int k = 0; k < M; k++)
                    half[i * N + j] +=
                        ((which ? 0 : x[i * M + k]) - (which ? -1 : 1) * pinv[i * M + k]) *
                        c->cross[k * N + j];
            }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                form[i * N + j] = 0;
                for (int k = 0; k < M; k++)
                    form[i * N + j] += c->cross[k * N + i] * half[k * N + j];
            }
        cr_assert_eq(ref_spectral_norm(N, N, form, &norms[which]), ATN_OK);
    }
    free(form);
    free(half);
    return norms[0] / norms[1];
}

static void check_error(const char *options, int steps, double least)
{
    drawn c;
    double *pinv = must_allocate(M * M, sizeof *pinv);
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    atn_inverse_info info;
    draw_case(&c, options);
    desc.iterations = steps;
    atn_context *context = make_context();
    cr_assert_eq(bottleneck_invert(&c.b, context, &desc, &info, NULL), EXIT_PASS);
    atn_context_free(context);
    cr_assert_eq(ref_symmetric_pinv(M, c.b.exact, -1, pinv, NULL, NULL, NULL), ATN_OK);
    attention_error e = attention_error_create(M);
    cr_assert_eq(attention_error_set(&e, N, c.b.exact, M * 0x1p-53, c.cross), EXIT_PASS);
    double want = dense_error(&c, pinv, c.b.x), got = attention_error_of(&e, c.b.x);
    cr_expect(want > least && fabs(got - want) <= 1e-8 * want, "%s: %.17g, expected %.17g", options,
              got, want);
    cr_expect(attention_error_of(&e, pinv) < 1e-8, "%s: A+ itself", options);
    attention_error_free(&e);
    free(pinv);
    free_case(&c);
}

Test(published, attention_error_is_that_of_dense_matrices)
{
    check_error("--input iid --sampling pool --samples 1", 8, 1e-3);
    check_error("--input smooth --sampling pool --samples 1", 5, 1e-3);
    check_error("--input smooth --sampling published --samples 1", 3, 1e-3);
    check_error("--input photos --sampling published-centred --samples 1", 4, 1e-4);
}

/* Two equal landmarks: A has a null space, which A+ and the iterates leave alone. What is not
 * finite is NaN. */
Test(published, attention_error_of_a_singular_matrix)
{
    double a[4] = {1, 1, 1, 1}, x[4] = {0.125, 0.125, 0.125, 0.125}, p[6] = {1, 0.5, 0, 1, 0.5, 0};
    attention_error e = attention_error_create(2);
    cr_assert_eq(attention_error_set(&e, 3, a, 2 * 0x1p-53, p), EXIT_PASS);
    /* A+ = A/4, X = A/8 */
    cr_expect(fabs(attention_error_of(&e, x) - 0.5) < 1e-15, "%.17g", attention_error_of(&e, x));
    cr_expect(fabs(e.norm - 1.25) < 1e-15, "%.17g", e.norm);
    x[0] = INFINITY;
    cr_expect(isnan(attention_error_of(&e, x)));
    p[2] = NAN;
    cr_assert_eq(attention_error_set(&e, 3, a, 2 * 0x1p-53, p), EXIT_PASS);
    cr_expect(isnan(attention_error_of(&e, x)));
    attention_error_free(&e);
}
