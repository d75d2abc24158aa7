/* SPDX-License-Identifier: BSD-3-Clause */
/* attention/maps: its rows against dense references and closed forms, and the contents of its
 * tables. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/rows.h"
#include "common/inputs.h"
#include "common/random.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"

TestSuite(attention_maps, .init = scratch_begin, .fini = scratch_end);

enum { SIDE = 14, N = SIDE * SIDE, D = TOKEN_DIM, PATCH = 16 };
enum { MAPS, IMAGE, SUMMARY, RESIDUAL }; /* outputs */

/* ---- Running it ---- */

static bool is_map(const table *t, int64_t row, const char *op, const char *variant,
                   const char *kind)
{
    return cell_is(t, row, "operator", op) && cell_is(t, row, "variant", variant) &&
           cell_is(t, row, "kind", kind);
}

/* The first row of a map in the table. */
static int64_t find_map(const table *t, const char *op, const char *variant, const char *kind)
{
    int64_t row = 0;
    while (row < table_rows(t) && !is_map(t, row, op, variant, kind))
        row++;
    cr_assert(row < table_rows(t), "no map %s %s %s", op, variant, kind);
    return row;
}

/* Its weights, N of them. */
static void read_map(const table *t, const char *op, const char *variant, const char *kind,
                     double *weights)
{
    int64_t first = find_map(t, op, variant, kind);
    for (int64_t i = 0; i < N; i++)
        weights[i] = cell_real(t, first + i, "weight");
}

/* ---- Tokens ---- */

static double *matrix(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

static double *make_tokens(uint64_t seed, int64_t sample)
{
    double *tokens = matrix(N, D);
    input *in;
    cr_assert(input_open("photos", 0, 0, &in) == EXIT_PASS);
    cr_assert(input_tokens(in, SIDE, SIDE, PATCH, seed, sample, tokens) == EXIT_PASS);
    input_free(in);
    return tokens;
}

static double dot(const double *x, const double *y)
{
    double sum = 0;
    for (int c = 0; c < D; c++)
        sum += x[c] * y[c];
    return sum;
}

static double difference(const double *got, const double *want)
{
    return ref_compare_f64(1, N, got, N, want, N).relative_frobenius;
}

/* ---- Rows ---- */

/* V = I: all of the attention matrix from the reference. Every variant that is linear in V, and
 * both ends of the grid. kappa u is below 1e-9 here; a wrong entry is off by 1e-3. */
Test(attention_maps, rows_are_those_of_the_dense_matrix)
{
    double *tokens = make_tokens(3, 1), *identity = matrix(N, N), *dense = matrix(N, N);
    double row[N];
    atn_context *context = make_context();
    int tried = 0;
    for (int64_t i = 0; i < N; i++)
        identity[i * N + i] = 1;
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        for (int v = 0; op != ATN_XCA && op != ATN_RFF && v < info->variant_count; v++) {
            if (!(info->variants[v].properties & ATN_IS_LINEAR))
                continue;
            token_attention a;
            cr_assert(token_attention_open(&a, info->op, info->variants[v].name, N, D, tokens, 5) ==
                      EXIT_PASS);
            ref_attention_problem p = {.desc = &a.parameters.reference,
                                       .shape = {1, 1, N, D, N, 0},
                                       .q = tokens,
                                       .v = identity};
            cr_assert(ref_attention(&p, dense) == ATN_OK, "%s", info->name);
            for (int64_t query = 0; query < N; query += N - 1) {
                cr_expect(token_attention_row(&a, context, query, row) == EXIT_PASS);
                double error = difference(row, dense + query * N);
                cr_expect(error < 1e-9, "%s %s, row %" PRId64 ": %g", info->name,
                          info->variants[v].name, query, error);
            }
            tried++;
            token_attention_free(&a);
        }
    }
    cr_expect(tried > 20, "%d variants", tried);
    atn_context_free(context);
    free(dense);
    free(identity);
    free(tokens);
}

/* The check accepts correct rows, and rejects rows with one weight wrong by 1%. */
Test(attention_maps, a_wrong_row_fails_the_check)
{
    static const struct {
        atn_operator op;
        const char *variant;
    } cases[] = {{ATN_SOFTMAX, "attention"}, {ATN_SOFT, "exact"}, {ATN_LSH, "reformer"},
                 {ATN_RFF, "fourier"},       {ATN_SIMA, "paper"}, {ATN_NYSTROMFORMER, "original"}};
    double *tokens = make_tokens(1, 33), row[N];
    atn_context *context = make_context();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = atn_operator_get(cases[i].op)->name;
        token_attention a;
        row_check check;
        cr_assert(token_attention_open(&a, cases[i].op, cases[i].variant, N, D, tokens, 1) ==
                  EXIT_PASS);
        cr_assert(token_attention_row(&a, context, 100, row) == EXIT_PASS);
        cr_expect(token_attention_check(&a, context, 100, row, 1, &check) == EXIT_PASS &&
                      check.verdict == REF_PASS && check.ratio < 1 && check.condition >= 1,
                  "%s: ratio %g, condition %g", name, check.ratio, check.condition);
        row[99] *= 1.01;
        cr_expect(token_attention_check(&a, context, 100, row, 1, &check) == EXIT_CHECK &&
                      check.verdict == REF_FAIL,
                  "%s: ratio %g, condition %g", name, check.ratio, check.condition);
        row[99] = NAN;
        cr_expect(token_attention_check(&a, context, 100, row, 1, &check) == EXIT_CHECK, "%s: NaN",
                  name);
        token_attention_free(&a);
    }
    atn_context_free(context);
    free(tokens);
}

/* exp(-s |q - k|^2) with s = 1 / (2 sqrt(d)), and softmax of q.k / sqrt(d): by hand. */
static void check_kernel_and_softmax(const table *t, const double *tokens)
{
    double kernel[N], softmax[N], got[N], sum = 0;
    const double *q = tokens + (3 * SIDE + 11) * D;
    for (int i = 0; i < N; i++) {
        const double *k = tokens + i * D;
        double squared = dot(q, q) - 2 * dot(q, k) + dot(k, k);
        kernel[i] = exp(-squared / (2 * sqrt(D)));
        softmax[i] = exp(dot(q, k) / sqrt(D));
        sum += softmax[i];
    }
    for (int i = 0; i < N; i++)
        softmax[i] /= sum;
    read_map(t, "gaussian", "exact", "row", got);
    cr_expect(difference(got, kernel) < 1e-13, "gaussian: %g", difference(got, kernel));
    read_map(t, "softmax", "attention", "row", got);
    cr_expect(difference(got, softmax) < 1e-13, "softmax: %g", difference(got, softmax));
}

/* SimA Eq. 1: |q^_i|^2 = sum_c q_ic^2 / (sum_j |q_jc|)^2. */
static void check_token_norms(const table *t, const double *tokens)
{
    double norms[N], got[N];
    for (int i = 0; i < N; i++) {
        double squared = 0;
        for (int c = 0; c < D; c++) {
            double sum = 0;
            for (int j = 0; j < N; j++)
                sum += fabs(tokens[j * D + c]);
            squared += pow(tokens[i * D + c] / sum, 2);
        }
        norms[i] = sqrt(squared);
    }
    read_map(t, "sima", "paper", "query-norm", got);
    cr_expect(difference(got, norms) < 1e-13, "queries: %g", difference(got, norms));
    read_map(t, "sima", "paper", "key-norm", got);
    cr_expect(difference(got, norms) < 1e-13, "keys: %g", difference(got, norms));
}

Test(attention_maps, rows_and_token_norms_by_hand)
{
    double *tokens = make_tokens(4, 33);
    cr_assert(run_experiment(&attention_maps, "--quick --seed 4 --query 3x11 --out out") ==
              EXIT_PASS);
    table *t = read_output(&attention_maps, "out", MAPS);
    check_kernel_and_softmax(t, tokens);
    check_token_norms(t, tokens);
    cr_expect(cell_integer(t, 0, "query_row") == 3 && cell_integer(t, 0, "query_col") == 11);
    table_free(t);
    free(tokens);
}

/* ---- Y V^+ ---- */

/* w's part in the span of the tokens' columns (V's, whatever rotation V is): Gram-Schmidt, twice,
 * over all columns but the last, which is minus the sum of the others. */
static void project(const double *tokens, const double *w, double *part)
{
    static double basis[D - 1][N];
    memset(part, 0, N * sizeof *part);
    for (int c = 0; c < D - 1; c++) {
        double norm = 0, along = 0;
        for (int i = 0; i < N; i++)
            basis[c][i] = tokens[i * D + c];
        for (int b = 0; b < 2 * c; b++) {
            double overlap = 0;
            for (int i = 0; i < N; i++)
                overlap += basis[b % c][i] * basis[c][i];
            for (int i = 0; i < N; i++)
                basis[c][i] -= overlap * basis[b % c][i];
        }
        for (int i = 0; i < N; i++)
            norm += basis[c][i] * basis[c][i];
        for (int i = 0; i < N; i++)
            along += (basis[c][i] /= sqrt(norm)) * w[i];
        for (int i = 0; i < N; i++)
            part[i] += along * basis[c][i];
    }
}

/* Y = W V gives W V V^+, W's rows in the span of V's columns: M V = Y whatever else is in W. */
static void check_stand_in(const table *t, const table *residuals)
{
    double *tokens = make_tokens(1, 33), row[N], got[N], want[N];
    read_map(t, "softmax", "attention", "row", row);
    read_map(t, "softmax", "attention", "pseudo-inverse", got);
    project(tokens, row, want);
    cr_expect(difference(got, want) < 1e-11, "softmax: %g", difference(got, want));
    for (int64_t i = 0; i < table_rows(residuals); i++) {
        const char *op = cell_text(residuals, i, "operator");
        const char *variant = cell_text(residuals, i, "variant");
        int64_t dv = cell_integer(residuals, i, "value_dim");
        double residual = cell_real(residuals, i, "residual");
        bool lost = strcmp(op, "xnorm") == 0 && strcmp(variant, "paper") == 0 && dv == D;
        cr_expect(cell_integer(residuals, i, "rank") == 31 &&
                  cell_integer(residuals, i, "null_space") == N - 31);
        cr_expect(lost ? residual > 1e-3 : residual < 1e-12, "%s %s %" PRId64 ": %g", op, variant,
                  dv, residual);
        int row_difference = table_column(residuals, "row_difference");
        if (strcmp(op, "xnorm") == 0) {
            cr_expect(table_is_missing(residuals, i, row_difference));
            continue;
        }
        read_map(t, op, variant, "row", row);
        project(tokens, row, want);
        double expected = difference(want, row);
        cr_expect(fabs(table_get_real(residuals, i, row_difference) - expected) < 1e-11,
                  "%s %s: %g", op, variant, expected);
    }
    free(tokens);
}

/* V = tokens R, as the experiment draws it, and p, the unit vector with V p = 0: tokens have mean
 * 0, so R^T (1, ..., 1). */
static double *make_values(const double *tokens, uint64_t seed, double p[D])
{
    double *rotation = matrix(D, D), *values = matrix(N, D);
    random_stream *r = random_create(seed, "maps values", 0);
    random_orthonormal(r, D, D, rotation);
    random_free(r);
    for (int i = 0; i < N * D; i++)
        for (int c = 0; c < D; c++)
            values[i] += tokens[i / D * D + c] * rotation[c * D + i % D];
    for (int c = 0; c < D; c++) {
        p[c] = 0;
        for (int k = 0; k < D; k++)
            p[c] += rotation[k * D + c] / sqrt(D);
    }
    free(rotation);
    return values;
}

/* T = K^T V, with its rows or its columns normalised: UFO-ViT Eq. 8. */
static void make_clusters(const double *tokens, const double *values, bool rows, double t[D][D])
{
    double squares[D] = {0};
    for (int r = 0; r < D; r++)
        for (int c = 0; c < D; c++) {
            t[r][c] = 0;
            for (int j = 0; j < N; j++)
                t[r][c] += tokens[j * D + r] * values[j * D + c];
            squares[rows ? r : c] += t[r][c] * t[r][c];
        }
    for (int r = 0; r < D; r++)
        for (int c = 0; c < D; c++)
            t[r][c] /= sqrt(squares[rows ? r : c]);
}

/* With rows of T normalised, Y = q^ diag(1/|T_r|) K^T V has one matrix for all channels of V, with
 * rows in the span of K's columns: Y V^+ finds it. */
static void check_port(const table *maps, const double *tokens, const double *values)
{
    double t[D][D], scaled[D], got[N], want[N];
    const double *q = tokens + (5 * SIDE + 2) * D;
    make_clusters(tokens, values, true, t);
    for (int r = 0; r < D; r++) {
        double length = 0; /* T_r . T_r / |T_r| = |T_r| */
        for (int c = 0; c < D; c++)
            for (int j = 0; j < N; j++)
                length += tokens[j * D + r] * values[j * D + c] * t[r][c];
        scaled[r] = q[r] / sqrt(dot(q, q)) / length;
    }
    for (int i = 0; i < N; i++)
        want[i] = dot(scaled, tokens + i * D);
    read_map(maps, "xnorm", "port", "pseudo-inverse", got);
    cr_expect(difference(got, want) < 1e-11, "%g", difference(got, want));
}

/* With columns normalised, rows of Y leave the span of V's rows: V^+ V = I - p p^T, so
 * M V = Y - (Y p) p^T, and the residual is |Y p| / |Y|. */
static void check_paper(const table *maps, const table *residuals, const double *tokens,
                        const double *values, const double p[D])
{
    double t[D][D], got[N], row[D] = {0}, along = 0, all = 0;
    make_clusters(tokens, values, false, t);
    read_map(maps, "xnorm", "paper", "pseudo-inverse", got);
    for (int i = 0; i < N * D; i++)
        row[i % D] += got[i / D] * values[i];
    for (int i = 0; i < N; i++) {
        double y[D] = {0};
        const double *q = tokens + i * D;
        for (int r = 0; r < D; r++)
            for (int c = 0; c < D; c++)
                y[c] += q[r] / sqrt(dot(q, q)) * t[r][c];
        for (int c = 0; c < D && i == 5 * SIDE + 2; c++)
            cr_expect(fabs(row[c] - (y[c] - dot(y, p) * p[c])) < 1e-11 * sqrt(dot(y, y)),
                      "channel %d: %g", c, row[c]);
        along += dot(y, p) * dot(y, p);
        all += dot(y, y);
    }
    int64_t at = 0;
    while (!cell_is(residuals, at, "operator", "xnorm"))
        at++;
    double residual = cell_real(residuals, at, "residual");
    cr_expect(cell_integer(residuals, at, "value_dim") == D &&
                  fabs(residual - sqrt(along / all)) < 1e-11,
              "%g, want %g", residual, sqrt(along / all));
}

Test(attention_maps, xnorm_has_an_attention_matrix_where_rows_are_normalised)
{
    double p[D], *tokens = make_tokens(3, 33), *values = make_values(tokens, 3, p);
    cr_assert(run_experiment(&attention_maps, "--quick --seed 3 --query 5x2 --out out") ==
              EXIT_PASS);
    table *maps = read_output(&attention_maps, "out", MAPS),
          *residuals = read_output(&attention_maps, "out", RESIDUAL);
    check_port(maps, tokens, values);
    check_paper(maps, residuals, tokens, values, p);
    table_free(residuals);
    table_free(maps);
    free(values);
    free(tokens);
}

/* Y V^+ V is Y if V has full rank, and if rows of Y are sums of values; nothing is asked of others.
 */
Test(attention_maps, a_substitute_must_give_the_output_where_it_can)
{
    static const struct {
        int64_t rank;
        bool linear, asked;
    } cases[] = {{31, true, true}, {32, true, true}, {32, false, true}, {31, false, false}};
    for (int i = 0; i < 4; i++) {
        stand_in m = {.rank = cases[i].rank, .residual = 29e-12, .rounding = 1e-12};
        int wrong = cases[i].asked ? EXIT_CHECK : EXIT_PASS;
        cr_expect_eq(stand_in_check(&m, 32, cases[i].linear), EXIT_PASS, "%d", i);
        m.residual = 31e-12;
        cr_expect_eq(stand_in_check(&m, 32, cases[i].linear), wrong, "%d", i);
        m.residual = NAN;
        cr_expect_eq(stand_in_check(&m, 32, cases[i].linear), wrong, "%d: NaN", i);
    }
}

/* ---- Tables ---- */

/* Every operator whose output is linear in V and mixes tokens has the row of its default variant;
 * weights are in the grid's order and sum to 1 where outputs are averages. 1e-9: elu's epsilon,
 * 1e-6 compared with a sum of at least n. */
static void check_maps(const table *t, const table *summary)
{
    for (int op = 0; op < ATN_OPERATOR_COUNT; op++) {
        const atn_operator_info *info = atn_operator_get((atn_operator)op);
        bool row = op != ATN_XCA && op != ATN_XNORM;
        if (op != ATN_XCA)
            find_map(t, info->name, info->variants[0].name, row ? "row" : "pseudo-inverse");
    }
    cr_expect(table_rows(t) == N * table_rows(summary));
    for (int64_t map = 0; map < table_rows(summary); map++) {
        const char *op = cell_text(summary, map, "operator");
        const char *variant = cell_text(summary, map, "variant");
        const char *kind = cell_text(summary, map, "kind");
        const atn_operator_info *info = atn_operator_find(op);
        double sum = 0, least = INFINITY, largest = -INFINITY;
        for (int64_t i = 0; i < N; i++) {
            int64_t at = map * N + i;
            double weight = cell_real(t, at, "weight");
            cr_expect(is_map(t, at, op, variant, kind) && cell_integer(t, at, "row") == i / SIDE &&
                          cell_integer(t, at, "col") == i % SIDE &&
                          cell_integer(t, at, "query_row") == SIDE / 2 &&
                          cell_integer(t, at, "query_col") == SIDE / 2 &&
                          cell_integer(t, at, "stage") == 3 &&
                          cell_integer(t, at, "sample") == 33 && cell_integer(t, at, "seed") == 1 &&
                          cell_is(t, at, "photo", "coffee.png"),
                      "%s %s %s %" PRId64, op, variant, kind, i);
            sum += weight;
            least = fmin(least, weight);
            largest = fmax(largest, weight);
        }
        cr_expect(cell_real(summary, map, "sum") == sum &&
                  cell_real(summary, map, "least") == least &&
                  cell_real(summary, map, "largest") == largest);
        bool is_row = strcmp(kind, "row") == 0;
        cr_expect(cell_missing(summary, map, "reference_ratio") != is_row &&
                  (!is_row || cell_real(summary, map, "reference_ratio") < 1));
        for (int v = 0; v < info->variant_count; v++)
            if (is_row && strcmp(info->variants[v].name, variant) == 0 &&
                info->variants[v].properties & ATN_IS_STOCHASTIC)
                cr_expect(least >= 0 && fabs(sum - 1) < 1e-9, "%s %s: %.17g, least %g", op, variant,
                          sum, least);
    }
}

/* From one thread and two. */
Test(attention_maps, every_operator_has_its_map)
{
    cr_assert(run_experiment(&attention_maps, "--quick --threads 1 --out out1") == EXIT_PASS);
    cr_assert(run_experiment(&attention_maps, "--quick --threads 2 --out out2") == EXIT_PASS);
    table *t = read_output(&attention_maps, "out1", MAPS),
          *summary = read_output(&attention_maps, "out1", SUMMARY),
          *residuals = read_output(&attention_maps, "out1", RESIDUAL);
    check_maps(t, summary);
    check_stand_in(t, residuals);
    for (int i = 0; i < attention_maps.output_count; i++) {
        size_t size[2];
        char *bytes[2] = {read_csv(&attention_maps, "out1", i, &size[0]),
                          read_csv(&attention_maps, "out2", i, &size[1])};
        cr_expect(size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0,
                  "%s depends on the number of threads", attention_maps.outputs[i].name);
        free(bytes[0]);
        free(bytes[1]);
    }
    table_free(residuals);
    table_free(summary);
    table_free(t);
}

/* Samples run faster than seeds, seeds faster than stages; pixels once per seed and sample, and
 * they are those of the crop at every stage. */
Test(attention_maps, the_pixels_are_those_of_the_tokens)
{
    enum { PIXELS = 224 * 224 };
    static const int64_t patches[] = {4, 8, 16};
    cr_assert(run_experiment(&attention_maps, "--stage 3 --samples 2 --seed 7,2 --out out") ==
              EXIT_PASS);
    table *t = read_output(&attention_maps, "out", IMAGE),
          *maps = read_output(&attention_maps, "out", SUMMARY);
    input *in;
    cr_assert(input_open("photos", 0, 0, &in) == EXIT_PASS);
    cr_assert(table_rows(t) == 4 * PIXELS);
    for (int crop = 0; crop < 4; crop++) {
        int64_t seed = crop / 2 ? 2 : 7, sample = crop % 2, first = table_rows(maps) / 4 * crop;
        cr_expect(cell_integer(maps, first, "seed") == seed &&
                  cell_integer(maps, first, "sample") == sample);
        for (int stage = 0; stage < 3; stage++) {
            image pixels;
            const char *name;
            int64_t side = 224 / patches[stage], wrong = 0;
            cr_assert(input_crop(in, side, side, patches[stage], (uint64_t)seed, sample, &pixels,
                                 &name) == EXIT_PASS);
            for (int64_t i = 0; i < PIXELS; i++) {
                int64_t row = crop * PIXELS + i;
                wrong += cell_integer(t, row, "row") != i / 224 ||
                         cell_integer(t, row, "col") != i % 224 ||
                         (double)cell_integer(t, row, "red") / 255 != pixels.rgb[3 * i] ||
                         (double)cell_integer(t, row, "green") / 255 != pixels.rgb[3 * i + 1] ||
                         (double)cell_integer(t, row, "blue") / 255 != pixels.rgb[3 * i + 2] ||
                         cell_integer(t, row, "seed") != seed ||
                         cell_integer(t, row, "sample") != sample ||
                         !cell_is(t, row, "photo", name);
            }
            cr_expect(wrong == 0, "crop %d: %" PRId64 " wrong pixels", crop, wrong);
            free(pixels.rgb);
        }
    }
    input_free(in);
    table_free(maps);
    table_free(t);
}

Test(attention_maps, a_query_must_be_on_the_grid)
{
    static const struct {
        const char *options, *line;
    } cases[] = {
        {"--quick --query 14x0", "--query 14x0: stage 3 has 14x14 patches"},
        {"--quick --query 0x14", "expected one from 0x0 to 13x13"},
        {"--stage 2,3 --query 20x20", "stage 3 has 14x14"},
        {"--full --query 56x1", "stage 1 has 56x56"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        capture();
        int code = run_experiment(&attention_maps, cases[i].options);
        const char *line = captured();
        cr_expect(code == EXIT_USAGE && is_one_line_with(line, cases[i].line), "%s: %d, %s",
                  cases[i].options, code, line);
    }
    cr_expect(run_experiment(&attention_maps, "--quick --query 13x13 --dry-run") == EXIT_PASS);
}

/* The options that a failed check prints draw the same crop last, and run the same operator. */
Test(attention_maps, a_point_can_be_replayed)
{
    char first[256], again[256];
    program_options s, r;
    options_point p;
    void *state, *replayed;
    int64_t points, count;
    char *words[] = {(char[]){"--seed=4,9"}, (char[]){"--samples=3"}, (char[]){"--stage=3,2"},
                     (char[]){"--query=1x2"}};
    cr_assert(options_parse(&s, attention_maps.options, 4, words) == EXIT_PASS);
    cr_assert(attention_maps.prepare(&s, &state, &points) == EXIT_PASS);
    for (int64_t point = 0; point < points; point += 5) {
        attention_maps.replay(state, point, &p);
        attention_maps.describe(state, point, first, sizeof first);
        char *options[] = {must_format("--seed=%" PRId64, p.seed),
                           must_format("--samples=%" PRId64, p.samples),
                           must_format("--stage=%" PRId64, p.stage), (char[]){"--query=1x2"}};
        cr_assert(options_parse(&r, attention_maps.options, 4, options) == EXIT_PASS);
        cr_assert(attention_maps.prepare(&r, &replayed, &count) == EXIT_PASS);
        int64_t sources = points / 12; /* 2 stages, 2 seeds, 3 samples */
        attention_maps.describe(replayed, count - sources + point % sources, again, sizeof again);
        cr_expect_str_eq(first, again);
        attention_maps.release(replayed);
        options_free(&r);
        for (int i = 0; i < 3; i++)
            free(options[i]);
    }
    attention_maps.release(state);
    options_free(&s);
}
