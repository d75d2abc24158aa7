/* SPDX-License-Identifier: BSD-3-Clause */
/* networks/epochs: its rows against closed forms in the eigenbasis of the reference's A, epochs and
 * runs by file, the summary, and what it refuses. */
#include <attention.h>
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <linear_algebra.h>
#include <newton.h>

#include "common/median.h"
#include "common/npz.h"
#include "common/random.h"
#include "common/report.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "train/trained.h"

TestSuite(networks_epochs, .init = scratch_begin, .fini = scratch_end);

static const experiment *const e = &networks_epochs;
enum { MATRICES, BLOCKS }; /* outputs */
enum { MOST = 49, SIZE = MOST * MOST, HEADS = 2, STEPS = 20, MOST_STEPS = 60 };
static const double level = 1e-3;

/* ---- A network of the test's own ---- */

enum { DEPTH = 3, PATCH = 7, HIDDEN = 8 };

/* Writes a network of 4 x 4 tokens and m landmarks with initial weights, those of the landmarks'
 * LayerNorm times `spread`: the smaller it is, the closer are the landmarks. `more` is the end of
 * its metadata. */
static void write_network(const char *file, const char *name, int64_t m, double spread,
                          const char *more)
{
    model_shape shape;
    model network;
    cr_assert(model_defaults(name, &shape));
    shape.patch = PATCH;
    shape.depth = DEPTH;
    shape.hidden = HIDDEN;
    shape.landmarks = m;
    cr_assert_eq(model_create(&shape, &network), EXIT_PASS);
    double *data = must_allocate((size_t)network.size, sizeof *data);
    npz_array *arrays = must_allocate((size_t)network.parameter_count, sizeof *arrays);
    model_initialise(&network, 5, data);
    for (int64_t i = 0; i < network.parameter_count; i++) {
        const model_parameter *p = &network.parameters[i];
        for (int64_t k = 0; k < p->count; k++)
            data[p->offset + k] *= strstr(p->name, "attention.norm_weight") ? spread : 1;
        arrays[i] = (npz_array){p->name, ATN_F64, p->dimensions, p->shape, data + p->offset};
    }
    char *metadata = must_format(
        "{\"operator\": \"%s\", \"variant\": \"%s\", \"side\": 28, \"patch\": %d, \"width\": 64, "
        "\"heads\": %d, \"depth\": %d, \"hidden\": %d, \"landmarks\": %" PRId64 "%s%s}",
        shape.attention->name, shape.attention->variants[shape.variant].name, PATCH, HEADS, DEPTH,
        HIDDEN, m, strstr(more, "\"batch\"") ? "" : ", \"images\": 70, \"batch\": 16", more);
    cr_assert_eq(npz_write(".", file, network.parameter_count, arrays, metadata), EXIT_PASS);
    free(metadata);
    free(arrays);
    free(data);
    model_free(&network);
}

/* ---- Closed forms ---- */

/* The reference's A of a head: its eigenvalues, |A|_1, and a matrix G in its eigenbasis. */
typedef struct {
    int64_t m;
    double norm1, lambda[MOST], rotated[SIZE];
} spectrum;

static void find_spectrum(const trained_head *h, int64_t n, uint64_t seed, int64_t sample,
                          spectrum *x)
{
    static double a[SIZE], w[SIZE], g[SIZE], half[SIZE];
    const ref_attention_problem problem = {
        .desc = &h->desc, .shape = {1, 1, n, TOKEN_DIM, TOKEN_DIM, n}, .q = h->q, .v = h->v};
    int64_t m = x->m = ref_attention_bottlenecks(&problem, a, NULL);
    cr_assert(m > 0 && m <= MOST);
    cr_assert_eq(ref_eigenvalues(m, a, x->lambda, w, NULL), ATN_OK);
    x->norm1 = ref_norm1(m, a);
    random_stream *r = random_create(seed, "gradient", (uint64_t)sample);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++)
            g[i * m + j] = g[j * m + i] = (double)(float)random_normal(r);
    random_free(r);
    for (int64_t i = 0; i < m * m; i++) { /* G W */
        half[i] = 0;
        for (int64_t j = 0; j < m; j++)
            half[i] += g[i / m * m + j] * w[j * m + i % m];
    }
    for (int64_t i = 0; i < m * m; i++) { /* W^T (G W) */
        x->rotated[i] = 0;
        for (int64_t j = 0; j < m; j++)
            x->rotated[i] += w[j * m + i / m] * half[j * m + i % m];
    }
}

/* f_k[x, y]; where x and y are close, the derivative between them. */
static double divided_difference(double alpha, int k, double x, double y)
{
    double middle = (x + y) / 2, r = 1 - alpha * middle * middle, steps = ldexp(1, k);
    if (fabs(x - y) > 1e-5 * middle)
        return (ref_filter(alpha, k, x) - ref_filter(alpha, k, y)) / (x - y);
    return 2 * alpha * steps * pow(r, steps - 1) - ref_filter(alpha, k, middle) / middle;
}

/* What the iteration and Eq. 12 give on these eigenvalues. */
typedef struct {
    double residual, range, inverse, eq12, cosine, exact;
} expected;

static double range_residual(const spectrum *x, double alpha, double ridge, int k)
{
    double most = 0;
    for (int64_t i = 0; i < x->m; i++)
        most = fmax(most, fabs(1 - x->lambda[i] * ref_filter(alpha, k, x->lambda[i] + ridge)));
    return most;
}

static double inverse_residual(const spectrum *x, double alpha, double ridge, int k)
{
    double most = 0;
    for (int64_t i = 0; i < x->m; i++)
        most = fmax(most, pow(fabs(1 - alpha * pow(x->lambda[i] + ridge, 2)), ldexp(1, k)));
    return most;
}

static expected expect_of(const spectrum *x, double alpha, double ridge)
{
    double of_iterate = 0, of_inverse = 0, product = 0, eq12 = 0, iterate = 0, inverse = 0;
    for (int64_t i = 0; i < x->m * x->m; i++) {
        double first = x->lambda[i / x->m] + ridge, second = x->lambda[i % x->m] + ridge;
        double g = x->rotated[i], want = divided_difference(alpha, STEPS, first, second) * g;
        double got = -ref_filter(alpha, STEPS, first) * ref_filter(alpha, STEPS, second) * g;
        double exact = -g / (first * second);
        of_iterate += pow(got - want, 2);
        of_inverse += pow(got - exact, 2);
        product += got * want;
        eq12 += got * got;
        iterate += want * want;
        inverse += exact * exact;
    }
    return (expected){.residual = ref_filter_residual(x->m, x->lambda, alpha, ridge, STEPS),
                      .range = range_residual(x, alpha, ridge, STEPS),
                      .inverse = inverse_residual(x, alpha, ridge, STEPS),
                      .eq12 = sqrt(of_iterate / iterate),
                      .cosine = product / sqrt(eq12 * iterate),
                      .exact = sqrt(of_inverse / inverse)};
}

/* Whether a column holds the first k with a residual below the level, by its closed form; where
 * that is within 1e-5 of the level both sides are right. */
static bool is_first_below(const table *t, int64_t row, const char *name, const spectrum *x,
                           double alpha, double ridge,
                           double (*of)(const spectrum *, double, double, int))
{
    if (cell_missing(t, row, name))
        return of(x, alpha, ridge, MOST_STEPS) > level * (1 - 1e-5);
    int k = (int)cell_integer(t, row, name);
    return k <= MOST_STEPS && of(x, alpha, ridge, k) < level * (1 + 1e-5) &&
           (k == 0 || of(x, alpha, ridge, k - 1) > level * (1 - 1e-5));
}

static double papers_residual(const spectrum *x, double alpha, double ridge, int k)
{
    return ref_filter_residual(x->m, x->lambda, alpha, ridge, k);
}

static int64_t rank_of(const spectrum *x, double u)
{
    int64_t rank = 0;
    for (int64_t i = 0; i < x->m; i++)
        rank += x->lambda[i] > (double)x->m * u * x->lambda[0];
    return rank;
}

/* Rounding in modes that have not converged grows by up to 2 in each of 20 steps. */
static bool near(double got, double want)
{
    return fabs(got - want) <= 1e-6 * fabs(want) + 1e-8;
}

static void check_row(const table *t, int64_t row, const spectrum *x, double numerator,
                      double ridge)
{
    double alpha = numerator / (x->norm1 * x->norm1), last = x->lambda[x->m - 1];
    double kappa = x->lambda[0] / last, ridged = (x->lambda[0] + ridge) / (last + ridge);
    expected want = expect_of(x, alpha, ridge);
    cr_expect_eq(cell_integer(t, row, "m"), x->m);
    cr_expect_eq(cell_integer(t, row, "steps"), STEPS);
    cr_expect_eq(cell_real(t, row, "ridge"), ridge);
    cr_expect(close_to(cell_real(t, row, "lambda_max"), x->lambda[0], 1e-13));
    cr_expect(fabs(cell_real(t, row, "lambda_min") - last) < 1e-13 * x->lambda[0]);
    cr_expect(close_to(cell_real(t, row, "condition"), kappa, 1e-14 * kappa), "%g, %g",
              cell_real(t, row, "condition"), kappa);
    cr_expect(close_to(cell_real(t, row, "ridge_condition"), ridged, 1e-14 * ridged));
    cr_expect(close_to(cell_real(t, row, "alpha"), alpha, 1e-13));
    cr_expect_eq(cell_integer(t, row, "rank_f64"), rank_of(x, 0x1p-53));
    cr_expect_eq(cell_integer(t, row, "rank_f32"), rank_of(x, 0x1p-24));
    const struct {
        const char *name;
        double want;
    } cells[] = {{"residual", want.residual},        {"range_residual", want.range},
                 {"inverse_residual", want.inverse}, {"eq12_error", want.eq12},
                 {"eq12_cosine", want.cosine},       {"eq12_exact_error", want.exact}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        cr_expect(near(cell_real(t, row, cells[i].name), cells[i].want),
                  "row %" PRId64 ": %s %.10g, expected %.10g", row, cells[i].name,
                  cell_real(t, row, cells[i].name), cells[i].want);
    cr_expect(is_first_below(t, row, "residual_steps", x, alpha, ridge, papers_residual));
    cr_expect(is_first_below(t, row, "range_steps", x, alpha, ridge, range_residual));
    cr_expect(is_first_below(t, row, "inverse_steps", x, alpha, ridge, inverse_residual));
}

/* All rows of a network on the pictures of a seed. */
static void check_network(const char *name, uint64_t seed, int64_t samples, double numerator,
                          double ridge)
{
    trained *network;
    char *options = must_format("--network %s --seed %" PRIu64 " --samples %" PRId64 " --out a",
                                name, seed, samples);
    spectrum *x = must_allocate(1, sizeof *x);
    cr_assert_eq(run_experiment(e, options), EXIT_PASS);
    cr_assert_eq(trained_open(name, &network), EXIT_PASS);
    table *t = read_output(e, "a", MATRICES);
    int64_t side = trained_side(network), depth = trained_depth(network);
    cr_assert_eq(table_rows(t), samples * HEADS * depth);
    for (int64_t row = 0; row < table_rows(t); row++) {
        int64_t block = row % depth, head = row / depth % HEADS, sample = row / depth / HEADS;
        input_draw draw = {side, side, 0, seed, sample * HEADS + head};
        trained_head h;
        cr_assert_eq(trained_head_open(network, block, &draw, &h), EXIT_PASS);
        cr_expect(
            cell_is(t, row, "network", name) && cell_is(t, row, "operator", "soft") &&
            cell_is(t, row, "trained_with", strstr(name, "code-kernel") ? "code-kernel" : "none") &&
            cell_integer(t, row, "block") == block && cell_integer(t, row, "head") == head &&
            cell_integer(t, row, "picture") == h.picture &&
            cell_integer(t, row, "sample") == sample &&
            cell_integer(t, row, "seed") == (int64_t)seed);
        find_spectrum(&h, side * side, seed, draw.sample * depth + block, x);
        check_row(t, row, x, numerator, ridge);
        trained_head_free(&h);
    }
    table_free(t);
    trained_free(network);
    free(x);
    free(options);
}

/* The shipped network: some matrices have converged, and one is singular in f32. */
Test(networks_epochs, rows_of_the_shipped_network)
{
    check_network("soft", 1, 2, 1.8, 0.01);
}

/* A is that of the published code's kernel, whose queries are divided and landmarks are not. */
Test(networks_epochs, rows_with_the_published_codes_kernel)
{
    write_network("w-code-kernel.npz", "soft/code", 4, 0.3, ", \"change\": \"code-kernel\"");
    check_network("w-code-kernel.npz", 2, 2, 1.8, 0.01);
}

Test(networks_epochs, rows_without_a_ridge)
{
    write_network("w.npz", "soft/paper", 4, 0.3, "");
    check_network("w.npz", 5, 3, 2, 0);
}

/* All landmarks are equal: A is all ones, and its inverse has no derivative. Algorithm 2 starts on
 * the boundary of convergence, so that X_1 = 0. */
Test(networks_epochs, equal_landmarks)
{
    write_network("w.npz", "soft/paper", 4, 0, "");
    cr_assert_eq(run_experiment(e, "--network w.npz --quick --out a"), EXIT_PASS);
    table *t = read_output(e, "a", MATRICES);
    for (int64_t row = 0; row < table_rows(t); row++) {
        cr_expect(cell_integer(t, row, "rank_f64") == 1 && cell_integer(t, row, "rank_f32") == 1);
        cr_expect(cell_real(t, row, "residual") == 1 && cell_missing(t, row, "residual_steps"));
        cr_expect(cell_missing(t, row, "eq12_exact_error") &&
                  cell_missing(t, row, "inverse_steps"));
    }
    table_free(t);
}

/* ---- Files ---- */

Test(networks_epochs, epochs_and_runs_of_files)
{
    static const struct {
        const char *file, *run, *more;
        int64_t epoch; /* -1: not known */
        double accuracy;
    } files[] = {
        {"a-epoch0.npz", "a", ", \"steps\": 0, \"test_accuracy\": 0.125", 0, 0.125},
        {"a-epoch12.npz", "a", ", \"steps\": 48, \"test_accuracy\": 0.5", 12, 0.5},
        {"a.npz", "a", ", \"steps\": 52, \"test_accuracy\": 0.75", 13, 0.75},
        {"a-epoch13.npz", "a", ", \"steps\": 51", -1, NAN}, /* within an epoch */
        {"c0.npz", "c0", ", \"images\": 70, \"batch\": 0, \"steps\": 8", -1, NAN},
        {"c1.npz", "c1", ", \"images\": 70, \"batch\": 0.5, \"steps\": 140", -1, NAN},
        {"c2.npz", "c2", ", \"images\": 70, \"batch\": 71, \"steps\": 0", -1, NAN},
        {"c3.npz", "c3", ", \"images\": -70, \"batch\": 16, \"steps\": 0", -1, NAN},
        {"c4.npz", "c4", ", \"images\": 1e999, \"batch\": 16, \"steps\": 8", -1, NAN},
        {"c5.npz", "c5", ", \"images\": 70, \"batch\": 16, \"steps\": -4", -1, NAN},
        {"b-epoch.npz", "b-epoch", "", -1, NAN},
        {"epoch3.npz", "epoch3", ", \"steps\": \"8\"", -1, NAN},
    };
    enum { FILES = sizeof files / sizeof *files };
    for (int i = 0; i < FILES; i++)
        write_network(files[i].file, "soft/code", 4, 1, files[i].more);
    cr_assert_eq(run_experiment(e, "--network a-epoch0.npz,a-epoch12.npz,a.npz,a-epoch13.npz,"
                                   "c0.npz,c1.npz,c2.npz,c3.npz,c4.npz,c5.npz,b-epoch.npz,"
                                   "epoch3.npz --samples 1 --out a"),
                 EXIT_PASS);
    table *t = read_output(e, "a", MATRICES);
    cr_assert_eq(table_rows(t), FILES * HEADS * DEPTH);
    for (int64_t row = 0; row < table_rows(t); row++) {
        int64_t i = row / (HEADS * DEPTH);
        cr_expect(cell_is(t, row, "network", files[i].file));
        cr_expect(cell_is(t, row, "run", files[i].run), "%s", cell_text(t, row, "run"));
        cr_expect(files[i].epoch < 0 ? cell_missing(t, row, "epoch")
                                     : cell_integer(t, row, "epoch") == files[i].epoch,
                  "%s", files[i].file);
        cr_expect(isnan(files[i].accuracy)
                      ? cell_missing(t, row, "test_accuracy")
                      : cell_real(t, row, "test_accuracy") == files[i].accuracy);
    }
    table_free(t);
}

/* ---- The summary ---- */

/* A value of epochs.csv, NaN where it is missing. */
static double value_at(const table *t, int64_t row, const char *name)
{
    return cell_missing(t, row, name) ? NAN : cell_number(t, row, name);
}

/* One measure of one network and block. */
static void check_block(const table *t, const table *blocks, int64_t at, const char *network)
{
    double values[64];
    int64_t count = 0, known = 0;
    const char *name = cell_text(blocks, at, "measure");
    for (int64_t row = 0; row < table_rows(t); row++)
        if (cell_is(t, row, "network", network) &&
            cell_integer(t, row, "block") == cell_integer(blocks, at, "block")) {
            values[count++] = value_at(t, row, name);
            known += !isnan(values[count - 1]);
        }
    sort_numbers(count, values);
    double middle = (values[(count - 1) / 2] + values[count / 2]) / 2;
    cr_expect_eq(cell_integer(blocks, at, "matrices"), count);
    cr_expect_eq(cell_integer(blocks, at, "missing"), count - known);
    cr_expect(isnan(middle) ? cell_missing(blocks, at, "median")
                            : close_to(cell_real(blocks, at, "median"), middle, 1e-15),
              "%s: %g, %g", name, cell_real(blocks, at, "median"), middle);
    cr_expect(known ? cell_real(blocks, at, "least") == values[0] &&
                          cell_real(blocks, at, "most") == values[known - 1]
                    : cell_missing(blocks, at, "least") && cell_missing(blocks, at, "most"),
              "%s", name);
}

/* A row for each of 14 measures, 2 networks and 3 blocks; each over 2 heads and 3 pictures. In the
 * second network some inverses take more than 60 steps. */
Test(networks_epochs, medians_over_heads_and_pictures)
{
    write_network("w-epoch0.npz", "soft/code", 16, 0.5, ", \"steps\": 0");
    write_network("w-epoch1.npz", "soft/paper", 16, 0.006, ", \"steps\": 4");
    cr_assert_eq(
        run_experiment(e, "--network w-epoch0.npz,w-epoch1.npz --samples 3 --seed 2 --out a"),
        EXIT_PASS);
    table *t = read_output(e, "a", MATRICES), *blocks = read_output(e, "a", BLOCKS);
    int64_t part = 0, lost = 0;
    cr_assert_eq(table_rows(blocks), 14 * 2 * DEPTH);
    for (int64_t at = 0; at < table_rows(blocks); at++) {
        int64_t epoch = cell_integer(blocks, at, "epoch");
        cr_expect(cell_is(blocks, at, "run", "w") && cell_integer(blocks, at, "matrices") == 6);
        check_block(t, blocks, at, epoch ? "w-epoch1.npz" : "w-epoch0.npz");
        int64_t missing = cell_integer(blocks, at, "missing");
        part += missing > 0 && missing < 6;
        lost += missing == 6;
    }
    cr_expect(part > 0 && lost > 0, "%" PRId64 ", %" PRId64, part, lost);
    table_free(blocks);
    table_free(t);
}

/* ---- The run ---- */

Test(networks_epochs, points)
{
    char text[200];
    partial_run r;
    write_network("w.npz", "softpp/code", 4, 1, "");
    prepare_run(&r, e, "--network soft,w.npz --seed 5,6 --samples 3");
    cr_expect_eq(r.points, 2 * 3 * HEADS * (4 + DEPTH));
    r.e->describe(r.state, 0, text, sizeof text);
    cr_expect_str_eq(text, "soft block 0 head 0 sample 0 seed 5");
    r.e->describe(r.state, r.points - 1, text, sizeof text);
    cr_expect_str_eq(text, "w.npz block 2 head 1 sample 2 seed 6");
    options_point replayed;
    r.e->replay(r.state, r.points - 1, &replayed);
    cr_expect(replayed.seed == 6 && replayed.samples == 3 && strcmp(replayed.input, "") == 0);
    end_run(&r);
}

Test(networks_epochs, threads_change_no_bit)
{
    size_t sizes[2];
    char *csv[2];
    cr_assert_eq(run_experiment(e, "--quick --out one --threads 1"), EXIT_PASS);
    cr_assert_eq(run_experiment(e, "--quick --out three --threads 3"), EXIT_PASS);
    for (int i = 0; i < 2; i++)
        csv[i] = read_csv(e, i ? "three" : "one", MATRICES, &sizes[i]);
    cr_expect(sizes[0] == sizes[1] && memcmp(csv[0], csv[1], sizes[0]) == 0);
    free(csv[0]);
    free(csv[1]);
}

/* Networks of other operators, and one whose inverse takes no steps. */
Test(networks_epochs, refusals)
{
    write_network("w.npz", "soft/exact", 4, 1, "");
    static const char *const names[] = {"sima", "softmax", "w.npz"};
    for (int i = 0; i < 3; i++) {
        char *options = must_format("--network soft,%s", names[i]);
        capture();
        cr_expect_eq(run_experiment(e, options), EXIT_USAGE);
        cr_expect(is_one_line_with(captured(), names[i]));
        free(options);
    }
}

/* Sample 256 would be sample 0 again, here and in networks/maps. */
Test(networks_epochs, no_more_samples_than_pictures)
{
    static const experiment *const all[] = {&networks_epochs, &networks_maps};
    for (int i = 0; i < 4; i++) {
        program_options s;
        void *state;
        int64_t points;
        cr_assert_eq(parse_options(&s, all[i / 2], i % 2 ? "--samples 257" : "--samples 256"),
                     EXIT_PASS);
        capture();
        int code = all[i / 2]->prepare(&s, &state, &points);
        const char *said = captured();
        cr_expect(i % 2 ? code == EXIT_USAGE &&
                              is_one_line_with(said, "--samples 257: data/trained has 256 pictures")
                        : code == EXIT_PASS && !*said,
                  "%d: %d %s", i, code, said);
        all[i / 2]->release(state);
        options_free(&s);
    }
}
