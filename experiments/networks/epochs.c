/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of SOFT's bottleneck matrix A = K(L, L), of its inverse by iteration and of Eq. 12
 * while a network is trained: statements S14, S15 and S16 on trained features. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include <linear_algebra.h>
#include <newton.h>

#include "common/median.h"
#include "common/report.h"
#include "common/staging.h"
#include "convergence/bottleneck.h"
#include "convergence/gradient.h"
#include "convergence/iterations.h"
#include "networks/heads.h"
#include "registry.h"
#include "spectral/matrices.h"

/* An inverse counts as converged if its residual is below this level. The papers' metric reaches it
 * for every A that is inverted itself (claim S14); of a converged inverse of A + ridge I it is
 * ridge / (lambda_max + ridge), which is above the level where lambda_max is small. */
static const double level = 1e-3;
enum { MOST_STEPS = 60, LINES_SHOWN = 100 };

/* ---- epochs.csv ---- */

#define ROW(X)                                                                                     \
    X(TEXT, network, "", "the trained network, as --network names it", network_name(p->in))        \
    X(TEXT, run, "", "what was trained: the name without -epochE.npz or .npz", run)                \
    X(INTEGER_IF, epoch, "",                                                                       \
      "passes over the images, by the network's metadata; 0: the initial weights; missing where "  \
      "they give no whole number",                                                                 \
      epoch >= 0, epoch)                                                                           \
    X(REAL_IF, test_accuracy, "", "of the network, by its metadata", isfinite(accuracy), accuracy) \
    X(TEXT, operator, "", "see attnum list operators", atn_operator_get(h->desc.op)->name)         \
    X(TEXT, trained_with, "", "the change with which it was trained; none: nothing",               \
      trained_shape(input_network(p->in))->change->name)                                           \
    X(TEXT, inverse, "", "the variant's start and ridge; each matrix has its own start",           \
      atn_inverse_name(h->desc.inverse.method))                                                    \
    X(INTEGER, steps, "", "T, of the variant", h->desc.inverse.iterations)                         \
    X(REAL, ridge, "", "of the variant: A + ridge I is inverted", h->desc.inverse.ridge)           \
    X(INTEGER, block, "", "from 0", p->block)                                                      \
    X(INTEGER, head, "", "from 0", h->head)                                                        \
    X(INTEGER, picture, "", "number in data/trained/pictures-images-idx3-ubyte.gz, from 0",        \
      h->picture)                                                                                  \
    X(INTEGER, m, "", "landmarks", a->m)                                                           \
    X(REAL, lambda_max, "", "the largest eigenvalue of A, in f64", a->lambda[0])                   \
    X(REAL, lambda_min, "", "the smallest; rounding where rank_f64 < m", a->lambda[a->m - 1])      \
    X(REAL, condition, "", "max |lambda| / min |lambda| of A",                                     \
      bottleneck_largest(a) / bottleneck_smallest(a, false))                                       \
    X(REAL, ridge_condition, "", "the same of A + ridge I",                                        \
      bottleneck_largest(&x->b) / bottleneck_smallest(&x->b, false))                               \
    X(INTEGER, rank_f64, "", "eigenvalues of A above m u lambda_max, u = 2^-53",                   \
      numerical_rank(a->m, a->lambda, atn_dtype_roundoff(ATN_F64)))                                \
    X(INTEGER, rank_f32, "", "the same with u = 2^-24",                                            \
      numerical_rank(a->m, a->lambda, atn_dtype_roundoff(ATN_F32)))                                \
    X(REAL, alpha, "", "the start, X_0 = alpha (A + ridge I)", x->alpha)                           \
    X(REAL, residual, "", "|A X_T A - A|_2 / |A|_2, the papers' metric", x->of[RESIDUAL].last)     \
    X(REAL, range_residual, "",                                                                    \
      "|Pi - A X_T|_2, Pi the projector on the eigenvectors with |lambda| > m u |A|_2; a ridge "   \
      "alone leaves ridge / (lambda + ridge)",                                                     \
      x->of[RANGE].last)                                                                           \
    X(REAL, inverse_residual, "", "|I - (A + ridge I) X_T|_2, of what is inverted",                \
      x->of[INVERSE].last)                                                                         \
    X(INTEGER_IF, residual_steps, "",                                                              \
      "the first k with residual < 1e-3; missing: not within 60 steps",                            \
      x->of[RESIDUAL].steps >= 0, x->of[RESIDUAL].steps)                                           \
    X(INTEGER_IF, range_steps, "", "the same for range_residual", x->of[RANGE].steps >= 0,         \
      x->of[RANGE].steps)                                                                          \
    X(INTEGER_IF, inverse_steps, "", "the same for inverse_residual", x->of[INVERSE].steps >= 0,   \
      x->of[INVERSE].steps)                                                                        \
    X(REAL, eq12_error, "",                                                                        \
      "|-X_T G X_T - dX_T(G)|_F / |dX_T(G)|_F: Eq. 12 against the derivative of the iterate, for " \
      "one random symmetric G, the same at all epochs; dX_T in long double, alpha held fixed",     \
      x->of_iterate.error)                                                                         \
    X(REAL, eq12_cosine, "", "<-X_T G X_T, dX_T(G)>_F over both norms", x->of_iterate.cosine)      \
    X(REAL_IF, eq12_exact_error, "",                                                               \
      "the same as eq12_error against the derivative of (A + ridge I)^-1; missing where it is "    \
      "singular in f64",                                                                           \
      x->invertible, x->of_inverse.error)                                                          \
    X(INTEGER, sample, "", "which picture of the seed, from 0", p->sample)                         \
    X(INTEGER, seed, "", "of the pictures and of G", (int64_t)p->seed)
static const column columns[] = {ROW(LIST_COLUMN)};

/* ---- epochs_blocks.csv: a row per measure, network and block ---- */

/* Columns of epochs.csv. */
static const char *const measures[] = {
    "condition",     "ridge_condition", "lambda_min",       "rank_f64",        "rank_f32",
    "residual",      "range_residual",  "inverse_residual", "residual_steps",  "range_steps",
    "inverse_steps", "eq12_error",      "eq12_cosine",      "eq12_exact_error"};
enum { MEASURES = sizeof measures / sizeof *measures };

#define BLOCK_ROW(X)                                                                               \
    X(TEXT, run, "", "as in epochs.csv", cell_text(raw, first, "run"))                             \
    X(INTEGER_IF, epoch, "", "as in epochs.csv", !cell_missing(raw, first, "epoch"),               \
      cell_integer(raw, first, "epoch"))                                                           \
    X(INTEGER, block, "", "from 0", cell_integer(raw, first, "block"))                             \
    X(TEXT, measure, "", "the column of epochs.csv", name)                                         \
    X(INTEGER, matrices, "", "its rows: heads and pictures of the block", count)                   \
    X(INTEGER, missing, "", "how many of them lack the value", missing)                            \
    X(REAL_IF, median, "", "missing ones count as larger than all others", !isnan(middle), middle) \
    X(REAL_IF, least, "", "the smallest value", missing < count, values[0])                        \
    X(REAL_IF, most, "", "the largest", missing < count, values[count - missing - 1])
static const column block_columns[] = {BLOCK_ROW(LIST_COLUMN)};

enum { MATRICES, BLOCKS, OUTPUTS };
static const output_spec outputs[OUTPUTS] = {
    [MATRICES] = {"epochs",
                  "The bottleneck matrices of trained networks, their inverses and Eq. 12.",
                  columns, sizeof columns / sizeof *columns},
    [BLOCKS] = {"epochs_blocks", "Medians and extremes over heads and pictures.", block_columns,
                sizeof block_columns / sizeof *block_columns},
};

/* ---- Points ---- */

/* The inverse of the network's attention, which a change of the training may have replaced. */
static int check_network(const program_options *s, const input *in)
{
    (void)s;
    const trained *t = input_network(in);
    model m;
    double *data;
    int code = trained_network(t, trained_shape(t), &m, &data);
    if (code == EXIT_PASS) {
        atn_attention_desc desc = model_attention(&m, 0, ATN_F64, data);
        bool iterates = (desc.op == ATN_SOFT || desc.op == ATN_SOFTPP) &&
                        desc.inverse.method <= ATN_INVERSE_NR_SOFTPP;
        code = iterates ? EXIT_PASS : EXIT_USAGE;
        if (!iterates)
            report_error("--network %s: its attention has no Newton-Raphson iteration, expected a "
                         "network of soft or softpp",
                         network_name(in));
    }
    free(data);
    model_free(&m);
    return code;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    static const char *const usual[] = {"soft", "soft-code-code-kernel-seed1", NULL};
    static const int64_t pictures[EFFORT_COUNT] = {
        [EFFORT_QUICK] = 1, [EFFORT_DEFAULT] = 8, [EFFORT_FULL] = 64};
    head_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    int code =
        heads_prepare(s, usual, s->samples ? s->samples : pictures[s->effort], check_network, w);
    *points = w->points;
    return code;
}

static void release(void *state)
{
    heads_release(state);
    free(state);
}

/* ---- A matrix ---- */

enum { RESIDUAL, RANGE, INVERSE, RESIDUALS };

typedef struct {
    double last; /* after T steps; infinite if an iterate overflowed */
    int steps;   /* until it is below the level; -1: not within MOST_STEPS */
} residual;

typedef struct {
    bottleneck a, b; /* b: A + ridge I */
    double alpha;
    residual of[RESIDUALS];
    gradient_error of_iterate, of_inverse; /* of Eq. 12 */
    bool invertible;                       /* A + ridge I, in f64 */
} measurement;

/* A and A + ridge I of a head. */
static int make_matrices(const head_point *p, const trained_head *h, atn_context *context,
                         measurement *x)
{
    const trained *network = input_network(p->in);
    int64_t side = trained_side(network), m = x->a.m;
    double *l = must_allocate((size_t)(m * TOKEN_DIM), sizeof *l);
    double *kernel = must_allocate((size_t)(m * m), sizeof *kernel);
    atn_tensor tokens = atn_tensor_dense(h->q, ATN_F64, 1, 1, side * side, TOKEN_DIM);
    atn_tensor landmarks = atn_tensor_dense(l, ATN_F64, 1, 1, m, TOKEN_DIM);
    atn_tensor a = atn_tensor_dense(kernel, ATN_F64, 1, 1, m, m);
    double scale =
        atn_kernel_scale(h->desc.scale, h->desc.scale_value, trained_heads(network), TOKEN_DIM);
    atn_status status = staged_sample(context, &h->desc.sampling, &tokens, &landmarks);
    if (status >= 0)
        status = staged_gaussian_self(context, h->desc.distance, scale, &landmarks, &a);
    int code = check_status(context, status, "bottleneck matrix");
    if (code == EXIT_PASS)
        code = bottleneck_from_matrix(&x->a, kernel);
    for (int64_t i = 0; i < m; i++)
        kernel[i * m + i] += h->desc.inverse.ridge;
    if (code == EXIT_PASS)
        code = bottleneck_from_matrix(&x->b, kernel);
    free(kernel);
    free(l);
    return code;
}

static residual residual_of(const atn_trace *trace, const double *values, int steps)
{
    return (residual){steps < trace->length ? values[steps] : INFINITY,
                      iteration_first_below(trace->length, values, level)};
}

/* The residuals of the iterates, by two runs that differ in nothing but what they trace. */
static int measure_residuals(measurement *x, const atn_inverse_desc *published,
                             atn_context *context, double *inverse)
{
    int64_t m = x->a.m;
    double rcond = (double)m * atn_dtype_roundoff(ATN_F64);
    double values[RESIDUALS][MOST_STEPS + 1];
    double *projector = must_allocate((size_t)(m * m), sizeof *projector);
    double *identity = must_allocate((size_t)(m * m), sizeof *identity);
    int64_t rank;
    for (int64_t i = 0; i < m; i++)
        identity[i * m + i] = 1;
    atn_status status = ref_symmetric_pinv(m, x->a.exact, rcond, inverse, projector, NULL, NULL);
    if (status >= 0)
        status = ref_symmetric_pinv(m, x->b.exact, rcond, inverse, NULL, &rank, NULL);
    int code = EXIT_PASS;
    if (status < 0) {
        report_error("reference pseudo-inverse: %s", atn_status_message(status));
        code = EXIT_ENVIRONMENT;
    }
    x->invertible = status == ATN_OK && rank == m;
    atn_inverse_info info = {0};
    atn_inverse_desc desc = *published;
    desc.iterations = MOST_STEPS;
    atn_trace of_a = {
        .capacity = MOST_STEPS + 1,
        .values =
            {[ATN_METRIC_RESIDUAL] = values[RESIDUAL], [ATN_METRIC_RANGE_RESIDUAL] = values[RANGE]},
        .projector = projector};
    if (code == EXIT_PASS)
        code = bottleneck_invert(&x->a, context, &desc, &info, &of_a);
    x->alpha = info.alpha;
    desc = atn_inverse_defaults(ATN_INVERSE_NR);
    desc.iterations = MOST_STEPS;
    desc.alpha = x->alpha;
    atn_trace of_b = {.capacity = MOST_STEPS + 1,
                      .values = {[ATN_METRIC_RANGE_RESIDUAL] = values[INVERSE]},
                      .projector = identity};
    if (code == EXIT_PASS)
        code = bottleneck_invert(&x->b, context, &desc, &info, &of_b);
    for (int i = 0; i < RESIDUALS && code == EXIT_PASS; i++)
        x->of[i] = residual_of(i == INVERSE ? &of_b : &of_a, values[i], published->iterations);
    free(identity);
    free(projector);
    return code;
}

/* to = -x g x, all m x m and symmetric. */
static void multiply_both_sides(int64_t m, const double *x, const double *g, double *to)
{
    int size = (int)m;
    double *half = must_allocate((size_t)(m * m), sizeof *half);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, x, size, g, size, 0,
                half, size);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, -1, half, size, x,
                size, 0, to, size);
    free(half);
}

/* Eq. 12 by the iterate against the derivatives of the iterate and of the inverse. */
static int measure_gradient(measurement *x, const atn_inverse_desc *published, const double *g,
                            const double *inverse, atn_context *context)
{
    int64_t m = x->a.m;
    int steps = published->iterations;
    size_t size = (size_t)(m * m);
    double *tangents = must_allocate(size * ((size_t)steps + 1), sizeof *tangents);
    double *eq12 = must_allocate(size, sizeof *eq12), *exact = must_allocate(size, sizeof *exact);
    atn_inverse_info info = {0};
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR);
    desc.iterations = steps;
    desc.alpha = x->alpha;
    atn_tensor b = atn_tensor_dense(x->b.a, ATN_F64, 1, 1, m, m);
    atn_tensor dx = atn_tensor_dense((double *)g, ATN_F64, 1, 1, m, m);
    atn_tensor da = atn_tensor_dense(eq12, ATN_F64, 1, 1, m, m);
    atn_status status =
        staged_inverse_backward(context, &desc, ATN_GRADIENT_CLOSED, &b, &dx, &da, &info);
    int code = check_status(context, status, "Eq. 12");
    if (code == EXIT_PASS &&
        ref_newton_tangents(m, x->b.exact, x->alpha, 0, steps + 1, g, tangents) != ATN_OK) {
        report_error("reference derivative of X_k failed");
        code = EXIT_ENVIRONMENT;
    }
    if (code == EXIT_PASS) {
        multiply_both_sides(m, inverse, g, exact);
        x->of_iterate = gradient_compare(m * m, ATN_F64, eq12, tangents + steps * m * m, steps,
                                         info.iterations);
        x->of_inverse = gradient_compare(m * m, ATN_F64, eq12, exact, steps, info.iterations);
    }
    free(exact);
    free(eq12);
    free(tangents);
    return code;
}

/* The passes over the images that a network was trained; -1: its metadata give no whole number. */
static int64_t epoch_of(const trained *t)
{
    double batch = trained_number(t, "batch"), batches = floor(trained_number(t, "images") / batch);
    double epoch = trained_number(t, "steps") / batches;
    bool known = batch >= 1 && batches >= 1 && isfinite(batches) && epoch >= 0 && epoch <= 1e9;
    return known && epoch == floor(epoch) ? (int64_t)epoch : -1;
}

/* A network's name without -epochE.npz or .npz, to be freed. */
static char *run_of(const char *name)
{
    size_t length = strlen(name);
    length -= name_ends_with(name, ".npz") ? strlen(".npz") : 0;
    size_t end = length;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    size_t mark = strlen("-epoch");
    bool kept = end < length && end > mark && strncmp(name + end - mark, "-epoch", mark) == 0;
    return must_format("%.*s", (int)(kept ? end - mark : length), name);
}

static void add_row(const head_point *p, const trained_head *h, const measurement *x, table *to)
{
    const bottleneck *a = &x->a;
    const trained *network = input_network(p->in);
    int64_t epoch = epoch_of(network);
    double accuracy = trained_number(network, "test_accuracy");
    char *run = run_of(network_name(p->in));
    ROW(LIST_PUT)
    free(run);
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const head_point *p = heads_point(state, point);
    const trained *network = input_network(p->in);
    int64_t m = trained_shape(network)->landmarks;
    int64_t number = heads_draw(p).sample * trained_depth(network) + p->block;
    measurement x = {.a = bottleneck_create(ATN_F64, m), .b = bottleneck_create(ATN_F64, m)};
    double *g = must_allocate((size_t)(m * m), sizeof *g);
    double *inverse = must_allocate((size_t)(m * m), sizeof *inverse);
    trained_head h;
    gradient_direction(p->seed, number, m, g);
    int code = heads_open(p, &h);
    if (code == EXIT_PASS)
        code = make_matrices(p, &h, context, &x);
    if (code == EXIT_PASS)
        code = measure_residuals(&x, &h.desc.inverse, context, inverse);
    if (code == EXIT_PASS)
        code = measure_gradient(&x, &h.desc.inverse, g, inverse, context);
    if (code == EXIT_PASS)
        add_row(p, &h, &x, raw);
    trained_head_free(&h);
    free(inverse);
    free(g);
    bottleneck_free(&x.b);
    bottleneck_free(&x.a);
    return code;
}

/* ---- The summary ---- */

static double number_at(const table *t, int64_t row, const char *name)
{
    const column *of;
    int at = table_column(t, name);
    table_columns(t, &of);
    if (table_is_missing(t, row, at))
        return NAN;
    return of[at].type == COLUMN_INTEGER ? (double)table_get_integer(t, row, at)
                                         : table_get_real(t, row, at);
}

/* Adds the row of a measure in the network and the block of row `first`. */
static void add_block(const table *raw, int64_t first, const char *name, table *to)
{
    static const char *const group[] = {"network", "block"};
    double *values = must_allocate((size_t)table_rows(raw), sizeof *values);
    int64_t count = 0, missing = 0;
    for (int64_t row = first; row < table_rows(raw); row++)
        if (table_rows_agree(raw, row, first, group, 2)) {
            values[count++] = number_at(raw, row, name);
            missing += isnan(values[count - 1]) != 0;
        }
    double middle = median(count, values);
    BLOCK_ROW(LIST_PUT)
    free(values);
}

/* Prints a line per network and block, from the summary's rows, which are those of one measure
 * after the other's. */
static void print_blocks(const table *blocks)
{
    static const char *const shown[] = {"condition",        "rank_f32",      "residual",
                                        "inverse_residual", "inverse_steps", "eq12_error",
                                        "eq12_exact_error"};
    enum { SHOWN = sizeof shown / sizeof *shown, NAMES = 3 };
    column of[NAMES + SHOWN] = {{"run", COLUMN_TEXT, "", ""},
                                {"epoch", COLUMN_INTEGER, "", ""},
                                {"block", COLUMN_INTEGER, "", ""}};
    for (int i = 0; i < SHOWN; i++)
        of[NAMES + i] = (column){shown[i], COLUMN_REAL, "", ""};
    table *lines = table_create(of, NAMES + SHOWN);
    int64_t count = table_rows(blocks) / MEASURES;
    for (int64_t line = 0; line < count; line++) {
        for (int i = 0; i < NAMES; i++)
            table_copy(lines, blocks, line, of[i].name);
        for (int64_t at = line; at < table_rows(blocks); at += count)
            for (int i = 0; i < SHOWN; i++)
                if (cell_is(blocks, at, "measure", shown[i]))
                    table_real_if(lines, !cell_missing(blocks, at, "median"),
                                  cell_real(blocks, at, "median"));
    }
    report_text("medians over heads and pictures: A's condition number and rank in f32, the "
                "papers' residual,\n|I - (A + ridge I) X|_2, the steps until that is below %g (-: "
                "not within %d), and\nEq. 12's relative error as the derivative of the iterate and "
                "of the inverse\n",
                level, MOST_STEPS);
    table_print(lines, LINES_SHOWN, report_stream());
    table_free(lines);
}

static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    static const char *const group[] = {"network", "block"};
    for (int i = 0; i < MEASURES; i++)
        for (int64_t row = 0; row < table_rows(raw); row++)
            if (table_row_is_first(raw, row, group, 2))
                add_block(raw, row, measures[i], tables[BLOCKS]);
    print_blocks(tables[BLOCKS]);
    return EXIT_PASS;
}

const experiment networks_epochs = {
    .name = "networks/epochs",
    .summary = "A, its inverse and Eq. 12 in networks of SOFT, epoch by epoch",
    .source = "SOFT IJCV section 3.2, Fig. 5, Eq. 12; S14, S15, S16",
    .example = "attnum run networks/epochs --network "
               "results/trained/soft-code-seed1-epoch0.npz,results/trained/soft-code-seed1.npz",
    .options = OPTIONS(OPTION_NETWORK, OPTION_SAMPLES),
    .defaults = "every block and head of soft, trained with the papers' kernel and with the "
                "published\ncode's, on 8 pictures; the files that attnum train --keep-epochs "
                "leaves are given\nby --network. quick: 1 picture. full: 64. --samples N takes N "
                "pictures.",
    .outputs = outputs,
    .output_count = OUTPUTS,
    .plot = "networks/epochs.gp",
    .prepare = prepare,
    .describe = heads_describe,
    .replay = heads_replay,
    .input = heads_input,
    .run = run,
    .finish = finish,
    .release = release,
};
