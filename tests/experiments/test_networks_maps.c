/* SPDX-License-Identifier: BSD-3-Clause */
/* networks/maps: its rows against closed forms of the networks' own Q and K, its pictures, and what
 * it refuses. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/rows.h"
#include "common/report.h"
#include "common/resources.h"
#include "registry.h"
#include "runs.h"
#include "scratch.h"
#include "train/fashion.h"
#include "train/trained.h"

TestSuite(networks_maps, .init = scratch_begin, .fini = scratch_end);

enum { SIDE = 14, N = SIDE * SIDE, D = TOKEN_DIM, DEPTH = 4, HEADS = 2 };
enum { MAPS, PICTURE }; /* outputs */

static double dot(const double *x, const double *y)
{
    double sum = 0;
    for (int c = 0; c < D; c++)
        sum += x[c] * y[c];
    return sum;
}

static void softmax_row(const trained_head *h, int64_t query, double *row)
{
    double sum = 0;
    for (int64_t j = 0; j < N; j++)
        sum += row[j] = exp(dot(h->q + query * D, h->k + j * D) / sqrt(D));
    for (int64_t j = 0; j < N; j++)
        row[j] /= sum;
}

/* SimA Eq. 1: columns of Q and K divided by their l1 norms. */
static void sima_row(const trained_head *h, int64_t query, double *row)
{
    double of_q[D] = {0}, scaled[D];
    double of_k[D] = {0};
    for (int64_t i = 0; i < N * D; i++) {
        of_q[i % D] += fabs(h->q[i]);
        of_k[i % D] += fabs(h->k[i]);
    }
    for (int c = 0; c < D; c++)
        scaled[c] = h->q[query * D + c] / of_q[c] / of_k[c];
    for (int64_t j = 0; j < N; j++)
        row[j] = dot(scaled, h->k + j * D);
}

/* The condition of a map, by changes and values of seed 3. */
static double condition_of(trained_head *h, int64_t query)
{
    token_attention a;
    row_check check;
    double row[N];
    atn_context *context = make_context();
    cr_assert_eq(token_attention_describe(&a, &h->desc, N, D, h->q, h->k), EXIT_PASS);
    cr_assert_eq(token_attention_row(&a, context, query, row), EXIT_PASS);
    cr_assert_eq(token_attention_check(&a, context, query, row, 3, &check), EXIT_PASS);
    token_attention_free(&a);
    atn_context_free(context);
    return check.condition;
}

/* Lengths of the rows of Q^ and K^, K^ after Q^, and the correlation of the sizes of all entries of
 * Q^ K^^T, or those of the query's row alone, with the products of lengths. */
typedef struct {
    double lengths[2 * N], row, all;
} expected_magnitudes;

static double correlate(int64_t count, const double *x, const double *y)
{
    double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, n = (double)count;
    for (int64_t i = 0; i < count; i++) {
        sx += x[i], sy += y[i];
        sxx += x[i] * x[i], syy += y[i] * y[i], sxy += x[i] * y[i];
    }
    return (n * sxy - sx * sy) / sqrt((n * sxx - sx * sx) * (n * syy - sy * sy));
}

static void expect_magnitudes(const trained_head *h, int64_t query, expected_magnitudes *want)
{
    static double row[N], sizes[N * N], products[N * N];
    const double *const parts[] = {h->q, h->k};
    for (int part = 0; part < 2; part++)
        for (int64_t i = 0; i < N; i++) {
            double square = 0;
            for (int c = 0; c < D; c++) {
                double norm = 0;
                for (int64_t j = 0; j < N; j++)
                    norm += fabs(parts[part][j * D + c]);
                square += pow(parts[part][i * D + c] / norm, 2);
            }
            want->lengths[part * N + i] = sqrt(square);
        }
    for (int64_t i = 0; i < N; i++) {
        sima_row(h, i, row);
        for (int64_t j = 0; j < N; j++) {
            sizes[i * N + j] = fabs(row[j]);
            products[i * N + j] = want->lengths[i] * want->lengths[N + j];
        }
    }
    want->all = correlate(N * N, sizes, products);
    want->row = correlate(N, sizes + query * N, want->lengths + N);
}

/* A patch's columns about magnitudes, which other operators than sima lack. */
static void check_magnitudes(const table *maps, int64_t at, int64_t j,
                             const expected_magnitudes *want)
{
    const struct {
        const char *name;
        double want;
    } cells[] = {{"query_norm", want ? want->lengths[j] : 0},
                 {"key_norm", want ? want->lengths[N + j] : 0},
                 {"key_correlation", want ? want->row : 0},
                 {"magnitude_correlation", want ? want->all : 0}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        cr_expect(want ? close_to(cell_real(maps, at, cells[i].name), cells[i].want, 1e-10)
                       : cell_missing(maps, at, cells[i].name),
                  "%s: %g, %g", cells[i].name, cell_real(maps, at, cells[i].name), cells[i].want);
}

/* The maps of a network on the second picture of seed 3, with the query at row 2, column 9. */
static void check_maps(const table *maps, const char *name,
                       void (*make_row)(const trained_head *, int64_t, double *))
{
    enum { ROW = 2, COL = 9, SAMPLE = 1, QUERY = ROW * SIDE + COL };
    trained *network;
    double row[N];
    int64_t at = 0;
    cr_assert_eq(trained_open(name, &network), EXIT_PASS);
    while (!cell_is(maps, at, "network", name) || cell_integer(maps, at, "sample") != SAMPLE)
        at++;
    for (int64_t map = 0; map < HEADS * DEPTH; map++) {
        int64_t head = map / DEPTH, block = map % DEPTH;
        input_draw draw = {SIDE, SIDE, 0, 3, SAMPLE * HEADS + head};
        trained_head h;
        cr_assert_eq(trained_head_open(network, block, &draw, &h), EXIT_PASS);
        make_row(&h, QUERY, row);
        cr_expect_eq(cell_real(maps, at, "condition"), condition_of(&h, QUERY));
        static expected_magnitudes magnitudes;
        if (make_row == sima_row)
            expect_magnitudes(&h, QUERY, &magnitudes);
        double largest = 0, sum = 0, all = 0;
        for (int64_t j = 0; j < N; j++) {
            largest = fmax(largest, fabs(row[j]));
            sum += fabs(row[j]) * hypot((double)(j / SIDE - ROW), (double)(j % SIDE - COL));
            all += fabs(row[j]);
        }
        for (int64_t j = 0; j < N; j++, at++) {
            double got = cell_real(maps, at, "weight");
            cr_expect(fabs(got - row[j]) < 1e-12 * largest, "%s, map %" PRId64 ", %" PRId64, name,
                      map, j);
            cr_expect(cell_integer(maps, at, "block") == block &&
                      cell_integer(maps, at, "head") == head &&
                      cell_integer(maps, at, "picture") == h.picture &&
                      cell_integer(maps, at, "query_row") == ROW &&
                      cell_integer(maps, at, "query_col") == COL &&
                      cell_integer(maps, at, "row") == j / SIDE &&
                      cell_integer(maps, at, "col") == j % SIDE);
            cr_expect(fabs(cell_real(maps, at, "distance") - sum / all) < 1e-12 * SIDE);
            check_magnitudes(maps, at, j, make_row == sima_row ? &magnitudes : NULL);
            double ratio = cell_real(maps, at, "reference_ratio");
            cr_expect(ratio > 0 && ratio < 30, "%s: %g", name, ratio);
        }
        trained_head_free(&h);
    }
    trained_free(network);
}

/* Each picture once, between black and its brightest pixel. */
static void check_pictures(const table *maps, const table *pictures)
{
    enum { COUNT = FASHION_SIDE * FASHION_SIDE };
    char *path = resource_path("trained", "pictures-images-idx3-ubyte.gz");
    fashion_set set;
    *strrchr(path, '/') = '\0';
    cr_assert_eq(fashion_read(path, "pictures", &set), EXIT_PASS);
    free(path);
    cr_assert_eq(table_rows(pictures), 2 * COUNT);
    for (int64_t i = 0; i < 2; i++) {
        int64_t picture = cell_integer(pictures, i * COUNT, "picture");
        const unsigned char *pixels = set.pixels + picture * COUNT;
        unsigned char most = 0;
        for (int64_t j = 0; j < COUNT; j++)
            most = pixels[j] > most ? pixels[j] : most;
        cr_expect_eq(picture, cell_integer(maps, i * HEADS * DEPTH * N, "picture"));
        for (int64_t j = 0; j < COUNT; j++) {
            double got = cell_real(pictures, i * COUNT + j, "brightness");
            cr_expect(fabs(got - pixels[j] / (double)most) < 1e-6);
            cr_expect(cell_integer(pictures, i * COUNT + j, "row") == j / FASHION_SIDE &&
                      cell_integer(pictures, i * COUNT + j, "col") == j % FASHION_SIDE);
        }
    }
    fashion_free(&set);
}

Test(networks_maps, rows_of_softmax_and_sima)
{
    cr_assert_eq(run_experiment(&networks_maps, "--seed 3 --samples 2 --query 2x9 --out a"),
                 EXIT_PASS);
    table *maps = read_output(&networks_maps, "a", MAPS);
    table *pictures = read_output(&networks_maps, "a", PICTURE);
    cr_assert_eq(table_rows(maps), 2 * 2 * HEADS * DEPTH * N);
    check_maps(maps, "softmax", softmax_row);
    check_maps(maps, "sima", sima_row);
    check_pictures(maps, pictures);
    table_free(pictures);
    table_free(maps);
}

/* Printed once, although each map has a row per patch. */
Test(networks_maps, every_map_has_a_line)
{
    partial_run r;
    int lines = 0;
    size_t size;
    prepare_run(&r, &networks_maps, "--network sima --samples 2");
    atn_context *context = make_context();
    for (int64_t point = 0; point < 2; point++)
        cr_assert_eq(r.e->run(r.state, point, context, r.raw), EXIT_PASS);
    const output_spec *o = &r.e->outputs[PICTURE];
    table *tables[] = {NULL, table_create(o->columns, o->column_count)};
    cr_assert(freopen("stdout.txt", "w", stdout));
    cr_assert_eq(r.e->finish(&r.s, r.state, r.raw, tables), EXIT_PASS);
    fflush(stdout);
    char *text = (char *)scratch_read("stdout.txt", &size);
    for (const char *at = strstr(text, "\nsima"); at; at = strstr(at + 1, "\nsima"))
        lines++;
    cr_expect_eq(lines, 2, "%s", text);
    free(text);
    table_free(tables[PICTURE]);
    atn_context_free(context);
    end_run(&r);
}

/* The last map of the second network's second picture, by the command that a failed check prints.
 */
Test(networks_maps, points_are_replayed)
{
    enum { POINT = 31 };
    char text[200];
    partial_run r;
    options_point replayed;
    prepare_run(&r, &networks_maps, "--network softmax,sima --samples 2 --seed 5");
    cr_assert_eq(r.points, 2 * 2 * HEADS * DEPTH);
    r.e->describe(r.state, POINT, text, sizeof text);
    cr_expect_str_eq(text, "sima block 3 head 1 sample 1 seed 5 query 7x7");
    r.e->replay(r.state, POINT, &replayed);
    char *line = options_replay(&r.s, r.e->name, r.e->options, &replayed);
    cr_expect(strstr(line, "--network=softmax,sima") && strstr(line, "--samples 2") &&
                  strstr(line, "--seed 5"),
              "%s", line);
    free(line);
    end_run(&r);
}

Test(networks_maps, refusals)
{
    static const char *const options[] = {"--network sima,sima", "--network sima --query 14x0",
                                          "--query 0x14", "--network nobody"};
    static const int want[] = {EXIT_USAGE, EXIT_USAGE, EXIT_USAGE, EXIT_ENVIRONMENT};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        cr_expect_eq(run_experiment(&networks_maps, options[i]), want[i], "%s", options[i]);
    cr_expect_eq(run_experiment(&networks_maps, "--query 13x13 --out b"), EXIT_PASS);
}
