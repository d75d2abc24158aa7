/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT (IJCV) Fig. 6a: the eigenvalues of a 1024 x 1024 bottleneck matrix, for every input. */
#include <stdlib.h>

#include "common/report.h"
#include "registry.h"
#include "spectral/matrices.h"

#define ROW(X)                                                                                     \
    X(TEXT, input, "", "where the tokens come from", input_name(p->in))                            \
    X(INTEGER, m, "", "number of landmarks: A is m x m", p->m)                                     \
    X(INTEGER, index, "", "i of lambda_i, from 1, the largest first", i + 1)                       \
    X(REAL, eigenvalue, "", "lambda_i of A, by dsyevd, checked by dsyevr", lambda[i])              \
    X(BOOLEAN, below_floor, "",                                                                    \
      "|lambda_i| < m u lambda_1: rounding, whatever its digits say; u = 2^-53",                   \
      !(lambda[i] >= floor || -lambda[i] >= floor))                                                \
    X(INTEGER, sample, "", "which sample of the input, from 0", p->sample)                         \
    X(INTEGER, seed, "", "the seed of the input", (int64_t)p->seed)
static const column columns[] = {ROW(LIST_COLUMN)};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const output_spec outputs[] = {
    {"eigenvalues", "The spectrum of the bottleneck matrix A = K(L, L) in f64.", columns, COLUMNS}};

static int64_t usual_samples(const program_options *s, int64_t m)
{
    return 1;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const int64_t usual[EFFORT_COUNT][2] = {
        [EFFORT_QUICK] = {256}, [EFFORT_DEFAULT] = {1024}, [EFFORT_FULL] = {1024}};
    return landmark_sweep_open(s, usual[s->effort], usual_samples, state, points);
}

static void add_rows(const landmark_point *p, const double *lambda, table *to)
{
    double floor = (double)p->m * atn_dtype_roundoff(ATN_F64) * lambda[0];
    for (int64_t i = 0; i < p->m; i++) {
        ROW(LIST_PUT)
    }
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const landmark_sweep *sweep = state;
    const landmark_point *p = &sweep->points[point];
    double *a, *lambda = must_allocate((size_t)p->m, sizeof *lambda);
    int code = landmark_sweep_matrix(sweep, p, context, &a);
    if (code == EXIT_PASS)
        code = checked_eigenvalues(p->m, a, lambda, NULL);
    if (code == EXIT_PASS || code == EXIT_CHECK)
        add_rows(p, lambda, raw);
    free(lambda);
    free(a);
    return code;
}

/* Prints a line per spectrum: its ends, and how much of it is above the floor of f64. */
#define SUMMARY_ROW(X)                                                                             \
    X(TEXT, input, "", "", input_name(p->in))                                                      \
    X(INTEGER, m, "", "", p->m)                                                                    \
    X(INTEGER, sample, "", "", p->sample)                                                          \
    X(REAL, lambda_1, "", "", table_get_real(raw, row, eigenvalue))                                \
    X(REAL, lambda_m, "", "", table_get_real(raw, row + p->m - 1, eigenvalue))                     \
    X(INTEGER, above_floor, "", "", above)                                                         \
    X(INTEGER, half_of_trace, "", "how many eigenvalues hold half of m", half)
static const column summary_columns[] = {SUMMARY_ROW(LIST_COLUMN)};

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    const landmark_sweep *sweep = state;
    int eigenvalue = table_column(raw, "eigenvalue"), below = table_column(raw, "below_floor");
    table *to = table_create(summary_columns, sizeof summary_columns / sizeof *summary_columns);
    int64_t row = 0;
    for (int64_t i = 0; i < sweep->count; i++) {
        const landmark_point *p = &sweep->points[i];
        int64_t above = 0, half = 0;
        double sum = 0;
        for (int64_t j = 0; j < p->m; j++) {
            above += !table_get_boolean(raw, row + j, below);
            half += sum < 0.5 * (double)p->m;
            sum += table_get_real(raw, row + j, eigenvalue);
        }
        SUMMARY_ROW(LIST_PUT)
        row += p->m;
    }
    table_print(to, table_rows(to), report_stream());
    table_free(to);
    return EXIT_PASS;
}

const experiment spectral_eigenvalues = {
    .name = "spectral/eigenvalues",
    .summary = "the eigenvalues of a bottleneck matrix, for every input",
    .source = "SOFT (IJCV) Fig. 6a; S25",
    .example = "attnum run spectral/eigenvalues --input photos,iid --m 1024",
    .options = OPTIONS(OPTION_DEVICE, OPTION_INPUT, OPTION_GRID, OPTION_SAMPLES, OPTION_M,
                       OPTION_SCALE, OPTION_DISTANCE),
    .defaults =
        "inputs photos, trained:soft, trained:softmax, smooth, smooth:8, noisy, iid, iid:0.3, "
        "clusters; 1 sample; m = 1024 (--quick: 256); a file or a trained network without --m: the "
        "nearest it has, pooled on its grid, or in windows of consecutive tokens where no grid is "
        "known",
    .outputs = outputs,
    .output_count = 1,
    .plot = "spectral/eigenvalues.gp",
    .prepare = prepare,
    .describe = landmark_sweep_describe,
    .weight = landmark_sweep_weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .replay = landmark_sweep_replay,
    .release = landmark_sweep_release,
};
