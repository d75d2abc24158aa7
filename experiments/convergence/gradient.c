/* SPDX-License-Identifier: BSD-3-Clause */
/* The error of SOFT (IJCV) Eq. 12 as the derivative of the iterate X_k, and that of backpropagation
 * through the steps, iteration by iteration.
 *
 * A point is one A (input, stage, seed, sample); it gives a row per dtype, variant and k. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <newton.h>

#include "common/experiment.h"
#include "common/random.h"
#include "common/report.h"
#include "common/staging.h"
#include "convergence/bottleneck.h"
#include "convergence/gradient.h"
#include "registry.h"

enum { DEFAULT_ITERATIONS = 20, LINES_SHOWN = 60 };

/* ---- Columns ---- */

#define ROW(X)                                                                                     \
    X(TEXT, input, "", "where the tokens come from", input_name(p->in))                            \
    X(INTEGER, m, "", "landmarks", x->a.m)                                                         \
    X(TEXT, sampling, "", "how landmarks come from tokens (attnum list samplings)",                \
      sampling_name(p->sampling))                                                                  \
    X(TEXT, variant, "",                                                                           \
      "the start alpha and the ridge; each matrix has its own alpha, which is a constant here",    \
      atn_inverse_name(method))                                                                    \
    X(INTEGER, iteration, "", "k of the iterate X_k", k)                                           \
    X(REAL, condition, "", "max |lambda| / min |lambda| of A in the dtype",                        \
      bottleneck_largest(&x->a) / bottleneck_smallest(&x->a, false))                               \
    X(REAL, eq12_error, "",                                                                        \
      "|-X_k G X_k - dX_k(G)|_F / |dX_k(G)|_F: Eq. 12 with the library's X_k against the "         \
      "derivative of X_k itself, for one random symmetric G with N(0, 1) entries; dX_k by the "    \
      "reference in long double from A as it is in the dtype. nan where an iterate overflowed",    \
      eq12.error)                                                                                  \
    X(REAL, through_steps_error, "",                                                               \
      "the same for the library's derivative through the k steps: its rounding error",             \
      steps.error)                                                                                 \
    X(REAL, eq12_cosine, "",                                                                       \
      "<-X_k G X_k, dX_k(G)>_F over both norms: 1 where the directions agree, negative where "     \
      "Eq. 12 points the wrong way",                                                               \
      eq12.cosine)                                                                                 \
    X(TEXT, dtype, "", "arithmetic of A, the iteration and the two gradients",                     \
      atn_dtype_name(x->a.dtype))                                                                  \
    X(INTEGER, stage, "", "stage of SOFT-Tiny; 0: the input's own grid", p->stage)                 \
    X(INTEGER, seed, "", "the seed", (int64_t)p->seed)                                             \
    X(INTEGER, sample, "", "the sample", p->sample)
static const column columns[] = {ROW(LIST_COLUMN)};

static const output_spec outputs[] = {
    {"gradient", "Eq. 12 and the derivative through the steps against the exact derivative of X_k",
     columns, sizeof columns / sizeof *columns},
};

/* ---- Points ---- */

static const usual_input quick_inputs[] = {{"photos", 1}, {"smooth", 1}, {"iid", 1}, {0}};
static const usual_input usual_inputs[] = {{"photos", 5},   {"trained:soft", 5}, {"smooth", 5},
                                           {"clusters", 5}, {"iid", 5},          {0}};
static const usual_input full_inputs[] = {{"photos", 20},   {"trained:soft", 20}, {"smooth", 20},
                                          {"clusters", 20}, {"iid", 20},          {"noisy", 20},
                                          {"iid:0.3", 20},  {"duplicates", 20},   {0}};
static const int64_t first_stage[] = {1, 0}, all_stages[] = {1, 2, 3, 0};
static const stage_defaults defaults[EFFORT_COUNT] = {
    [EFFORT_QUICK] = {quick_inputs, first_stage},
    [EFFORT_DEFAULT] = {usual_inputs, first_stage},
    [EFFORT_FULL] = {full_inputs, all_stages},
};

static const atn_inverse_method default_methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_NR_SOFT,
                                                     ATN_INVERSE_NR_SOFTPP};

typedef struct {
    landmark_sweep draws; /* first: see landmark_sweep_open_stages */
    const program_options *s;
    int method_count, iterations;
    atn_inverse_method methods[ATN_INVERSE_COUNT];
} gradient_sweep;

static int choose_methods(gradient_sweep *w)
{
    w->method_count = sizeof default_methods / sizeof *default_methods;
    memcpy(w->methods, default_methods, sizeof default_methods);
    if (w->s->variants.count > 0)
        w->method_count = 0;
    for (int v = 0; v < w->s->variants.count; v++) {
        int method = 0;
        while (strcmp(w->s->variants.items[v], atn_inverse_name((atn_inverse_method)method)) != 0)
            method++;
        if (method == ATN_INVERSE_NR || method > ATN_INVERSE_NR_SOFTPP) {
            report_error("--variant %s: expected a Newton-Raphson variant with its own start",
                         w->s->variants.items[v]);
            return EXIT_USAGE;
        }
        w->methods[w->method_count++] = (atn_inverse_method)method;
    }
    return EXIT_PASS;
}

static int prepare(const program_options *s, void **state, int64_t *points)
{
    gradient_sweep *w = must_allocate(1, sizeof *w);
    *state = w;
    w->s = s;
    w->iterations = s->iterations >= 0 ? (int)s->iterations : DEFAULT_ITERATIONS;
    int code = landmark_sweep_open_stages(&w->draws, s, &defaults[s->effort]);
    *points = w->draws.count;
    return code == EXIT_PASS ? choose_methods(w) : code;
}

/* ---- A point ---- */

/* A matrix in one dtype, G, and memory for the derivatives that are compared. */
typedef struct {
    bottleneck a;
    double *g, *exact; /* g is m x m; exact holds dX_k(G) for iterations + 1 values of k */
    void *narrow_g, *gradient;
} gradient_matrix;

static gradient_matrix matrix_create(atn_dtype dtype, int64_t m, int iterations)
{
    size_t size = (size_t)m * (size_t)m;
    gradient_matrix x = {.a = bottleneck_create(dtype, m)};
    x.g = must_allocate(size, sizeof *x.g);
    x.exact = must_allocate(size * ((size_t)iterations + 1), sizeof *x.exact);
    x.narrow_g = must_allocate(size, atn_dtype_size(dtype));
    x.gradient = must_allocate(size, atn_dtype_size(dtype));
    return x;
}

static void matrix_free(gradient_matrix *x)
{
    free(x->gradient);
    free(x->narrow_g);
    free(x->exact);
    free(x->g);
    bottleneck_free(&x->a);
}

void gradient_direction(uint64_t seed, int64_t sample, int64_t m, double *g)
{
    random_stream *r = random_create(seed, "gradient", (uint64_t)sample);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++)
            g[i * m + j] = g[j * m + i] = (double)(float)random_normal(r);
    random_free(r);
}

static void draw_direction(gradient_matrix *x, const landmark_point *p)
{
    int64_t m = x->a.m;
    gradient_direction(p->seed, p->sample, m, x->g);
    for (int64_t i = 0; i < m * m; i++)
        if (x->a.dtype == ATN_F32)
            ((float *)x->narrow_g)[i] = (float)x->g[i];
        else
            ((double *)x->narrow_g)[i] = x->g[i];
}

gradient_error gradient_compare(int64_t size, atn_dtype dtype, const void *got, const double *want,
                                int k, int taken)
{
    if (taken < k)
        return (gradient_error){NAN, NAN};
    long double difference = 0, product = 0, got_size = 0, want_size = 0;
    for (int64_t i = 0; i < size; i++) {
        long double x =
            dtype == ATN_F32 ? (long double)((const float *)got)[i] : ((const double *)got)[i];
        difference += (x - want[i]) * (x - want[i]);
        product += x * want[i];
        got_size += x * x;
        want_size += (long double)want[i] * want[i];
    }
    return (gradient_error){(double)sqrtl(difference / want_size),
                            (double)(product / sqrtl(got_size * want_size))};
}

/* The error of the library's derivative of X_k, the last iterate. Returns an exit code. */
static int measure(gradient_matrix *x, atn_context *context, const atn_inverse_desc *desc,
                   atn_gradient gradient, gradient_error *c)
{
    atn_dtype dtype = x->a.dtype;
    int64_t m = x->a.m;
    atn_tensor a = atn_tensor_dense(x->a.a, dtype, 1, 1, m, m);
    atn_tensor g = atn_tensor_dense(x->narrow_g, dtype, 1, 1, m, m);
    atn_tensor da = atn_tensor_dense(x->gradient, dtype, 1, 1, m, m);
    atn_inverse_info info;
    atn_status status = staged_inverse_backward(context, desc, gradient, &a, &g, &da, &info);
    if (status < 0) {
        report_error("backward of %s: %s", atn_inverse_name(desc->method), atn_last_error(context));
        return EXIT_ENVIRONMENT;
    }
    int k = desc->iterations;
    *c = gradient_compare(m * m, dtype, x->gradient, x->exact + k * m * m, k, info.iterations);
    return EXIT_PASS;
}

/* Describes a variant as an iteration from a constant alpha, the start that the variant chooses,
 * and computes the exact derivatives of its iterates. */
static int find_start(const gradient_sweep *w, gradient_matrix *x, atn_context *context,
                      atn_inverse_method method, atn_inverse_desc *desc, bool *started)
{
    atn_inverse_info info = {0};
    *desc = atn_inverse_defaults(method);
    desc->iterations = 0;
    int code = bottleneck_invert(&x->a, context, desc, &info, NULL);
    *started = code == EXIT_PASS && info.status != ATN_NONFINITE && info.alpha > 0;
    double ridge = desc->ridge;
    *desc = atn_inverse_defaults(ATN_INVERSE_NR);
    desc->alpha = info.alpha;
    desc->ridge = ridge;
    if (*started &&
        ref_newton_tangents(x->a.m, x->a.exact, info.alpha, bottleneck_round(x->a.dtype, ridge),
                            w->iterations + 1, x->g, x->exact) != ATN_OK) {
        report_error("reference derivative of X_k failed");
        code = EXIT_ENVIRONMENT;
    }
    return code;
}

static int put_row(table *to, gradient_matrix *x, atn_context *context, const landmark_point *p,
                   atn_inverse_method method, const atn_inverse_desc *start, int k)
{
    atn_inverse_desc desc = *start;
    desc.iterations = k;
    gradient_error eq12, steps;
    int code = measure(x, context, &desc, ATN_GRADIENT_CLOSED, &eq12);
    if (code == EXIT_PASS)
        code = measure(x, context, &desc, ATN_GRADIENT_STEPS, &steps);
    if (code != EXIT_PASS)
        return code;
    ROW(LIST_PUT)
    return EXIT_PASS;
}

static int run_dtype(const gradient_sweep *w, const landmark_point *p, atn_dtype dtype,
                     const double *tokens, atn_context *context, table *raw)
{
    gradient_matrix x = matrix_create(dtype, p->m, w->iterations);
    int checked = bottleneck_from_tokens(&x.a, &w->draws, p, context, tokens, NULL);
    int code = checked == EXIT_CHECK ? EXIT_PASS : checked;
    draw_direction(&x, p);
    for (int v = 0; v < w->method_count && code == EXIT_PASS; v++) {
        atn_inverse_desc desc;
        bool started;
        code = find_start(w, &x, context, w->methods[v], &desc, &started);
        for (int k = 1; k <= w->iterations && started && code == EXIT_PASS; k++)
            code = put_row(raw, &x, context, p, w->methods[v], &desc, k);
    }
    matrix_free(&x);
    return exit_worst(code, checked);
}

static int run(const void *state, int64_t point, atn_context *context, table *raw)
{
    const gradient_sweep *w = state;
    const landmark_point *p = &w->draws.points[point];
    double *tokens;
    int code = landmark_sweep_tokens(&w->draws, p, &tokens);
    for (int i = 0; i < w->s->dtype_count && (code == EXIT_PASS || code == EXIT_CHECK); i++)
        code = exit_worst(code, run_dtype(w, p, w->s->dtypes[i], tokens, context, raw));
    free(tokens);
    return code;
}

/* ---- Printed summary ---- */

/* Prints the last iterate of the first sample of each curve. */
static int finish(const program_options *s, const void *state, const table *raw, table **tables)
{
    const gradient_sweep *w = state;
    static const char *const shown[] = {"input",
                                        "sampling",
                                        "variant",
                                        "dtype",
                                        "stage",
                                        "condition",
                                        "eq12_error=Eq. 12",
                                        "eq12_cosine=its cosine",
                                        "through_steps_error=through the steps"};
    table *t = table_create(outputs->columns, outputs->column_count);
    for (int64_t row = 0; row < table_rows(raw); row++)
        if (cell_integer(raw, row, "iteration") == w->iterations &&
            cell_integer(raw, row, "sample") == 0 &&
            cell_integer(raw, row, "seed") == s->seeds.items[0])
            table_copy_row(t, raw, row);
    report_text("relative error of the derivative of X_%d in one random direction, first samples\n",
                w->iterations);
    table_print_columns(t, shown, sizeof shown / sizeof *shown, LINES_SHOWN, report_stream());
    table_free(t);
    return EXIT_PASS;
}

const experiment convergence_gradient = {
    .name = "convergence/gradient",
    .summary = "Eq. 12 and the derivative through the steps against that of the iterate itself",
    .source = "SOFT IJCV Eq. 12; S16",
    .example = "attnum run convergence/gradient --input smooth,iid --samples 2 --dtype f64",
    .options = OPTIONS(OPTION_INPUT, OPTION_GRID, OPTION_DTYPE, OPTION_DEVICE, OPTION_SAMPLES,
                       OPTION_ITERATIONS, OPTION_VARIANT, OPTION_STAGE, OPTION_SCALE,
                       OPTION_DISTANCE, OPTION_SAMPLING),
    .defaults =
        "Pooled landmarks; 20 iterations; nr-paper, nr-soft, nr-softpp, each with a matrix's "
        "own alpha.\n"
        "quick: 1 sample each of photos, smooth, iid at stage 1. default: 5 each of "
        "those,\nof clusters and of trained:soft, which has no stage. full: 20 each of eight inputs at "
        "stages 1, 2, 3.",
    .outputs = outputs,
    .output_count = 1,
    .plot = "convergence/gradient.gp",
    .prepare = prepare,
    .describe = landmark_sweep_describe,
    .replay = landmark_sweep_replay,
    .weight = landmark_sweep_weight,
    .input = landmark_sweep_input,
    .run = run,
    .finish = finish,
    .release = landmark_sweep_release,
};
