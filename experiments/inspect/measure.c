/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include <certified.h>
#include <newton.h>
#include <soft.h>

#include "common/random.h"
#include "common/report.h"
#include "convergence/bottleneck.h"
#include "convergence/iterations.h"
#include "spectral/norm_growth.h"
#include "spectral/nystrom.h"
#include "spectral/operator_norms.h"

enum {
    MOST_STEPS =
        64, /* for order 2: 2^64 exceeds kappa^2 / 1e-6 for every kappa that f64 resolves */
    STEPS_BEYOND = 3, /* steps that are run after those predicted to be enough */
    CERTIFY_BITS = 1024,
    USUAL_CERTIFY = 64, /* a certificate takes a few hundredths of a second */
    MOST_CLOSE = 64,    /* up to this m the inverses of all samplings take a second per head */
};

/* 2/|A|_1^2 is on the boundary of convergence for equal row sums; this start is within it. */
static const double convergent_numerator = 1.8;

static bool goes_on(int code)
{
    return code == EXIT_PASS || code == EXIT_CHECK;
}

static double *allocate(int64_t rows, int64_t cols)
{
    return must_allocate((size_t)rows, (size_t)cols * sizeof(double));
}

/* ---- Spectrum ---- */

/* Eigenvalues below 0 are rounding errors: A is semi-definite. */
static void clamp_spectrum(int64_t m, const double *lambda, double *clamped)
{
    for (int64_t i = 0; i < m; i++)
        clamped[i] = fmax(lambda[i], 0);
}

static double count_inverted(int64_t m, const double *lambda, double alpha)
{
    double count = 0;
    for (int64_t i = 0; i < m; i++)
        count += lambda[i] > 0 && lambda[i] * ref_filter(alpha, PAPER_STEPS, lambda[i]) >= 0.5;
    return count;
}

static void describe_spectrum(const bottleneck *b, inspection *out)
{
    int64_t m = b->m;
    double largest = b->lambda[0], least = b->lambda[m - 1], norm1 = ref_norm1(m, b->exact);
    double u = atn_dtype_roundoff(ATN_F64), alpha = 2 / (norm1 * norm1);
    memcpy(out->lambda, b->lambda, (size_t)m * sizeof *out->lambda);
    out->lambda_max = largest;
    out->lambda_min = least;
    out->below_floor = growth_below_floor(m, least, largest);
    out->kappa = out->below_floor > 0 ? 1 / ((double)m * u) : largest / least;
    out->rank_f64 = (double)numerical_rank(m, b->lambda, u);
    out->rank_f32 = (double)numerical_rank(m, b->lambda, atn_dtype_roundoff(ATN_F32));
    out->rank_bf16 = (double)numerical_rank(m, b->lambda, atn_dtype_roundoff(ATN_BF16));
    out->norm1 = norm1;
    out->margin = 1 - alpha * largest * largest;
    out->inverted = count_inverted(m, b->lambda, alpha);
}

int measure_spectrum(int64_t m, const double *a, inspection *out)
{
    bottleneck b = bottleneck_create(ATN_F64, m);
    int code = bottleneck_from_matrix(&b, a);
    if (goes_on(code))
        describe_spectrum(&b, out);
    bottleneck_free(&b);
    return code;
}

/* Certifies what f64 cannot resolve, if the build can. */
static int certify(const program_options *s, int64_t m, int64_t dim, const double *landmarks,
                   inspection *out)
{
    int64_t most = s->certify >= 0 ? s->certify : ref_certify_library() ? USUAL_CERTIFY : 0;
    double scale = s->scale == ATN_SCALE_VALUE ? s->scale_value : 0;
    ref_exact_matrix a = {.m = m, .d = dim, .tokens = landmarks, .scale = scale};
    ref_certified_spectrum found;
    if (!(out->below_floor > 0) || m > most)
        return EXIT_PASS;
    atn_status status = ref_certify_spectrum(&a, CERTIFY_BITS, &found);
    if (status < 0) {
        report_error("certifying a %" PRId64 "x%" PRId64 " matrix: %s", m, m,
                     atn_status_message(status));
        return EXIT_ENVIRONMENT;
    }
    if (!found.lambda_min.certified)
        return EXIT_PASS;
    out->lambda_min_lower = found.lambda_min.lower;
    out->lambda_min_upper = found.lambda_min.upper;
    out->singular = status == ATN_SINGULAR;
    out->kappa = out->singular > 0 ? INFINITY : out->lambda_max / found.lambda_min.lower;
    return EXIT_PASS;
}

/* ---- Iterations ---- */

/* Finds the library's start by a run without steps. */
static int find_start(bottleneck *b, atn_context *context, atn_inverse_desc desc,
                      atn_inverse_info *info)
{
    desc.iterations = 0;
    return bottleneck_invert(b, context, &desc, info, NULL);
}

/* Predicts the residual and the steps; returns how many steps to run. */
static int predict(const bottleneck *b, const atn_inverse_desc *desc, const ref_iteration *filter,
                   inverse_facts *out)
{
    int most = iteration_steps(desc->method, MOST_STEPS), enough = most;
    double *lambda = allocate(b->m, 1);
    clamp_spectrum(b->m, b->lambda, lambda);
    out->predicted = ref_iteration_residual(filter, desc->iterations, b->m, lambda);
    out->steps_predicted[0] = out->steps_predicted[1] = -1;
    for (int k = 0; k <= most && out->steps_predicted[TARGETS - 1] < 0; k++) {
        double residual = ref_iteration_residual(filter, k, b->m, lambda);
        for (int target = 0; target < TARGETS; target++)
            if (out->steps_predicted[target] < 0 && residual < inspect_targets[target])
                out->steps_predicted[target] = k;
    }
    if (out->steps_predicted[TARGETS - 1] >= 0)
        enough = (int)out->steps_predicted[TARGETS - 1] + STEPS_BEYOND;
    free(lambda);
    enough = enough < desc->iterations ? desc->iterations : enough;
    return enough < most ? enough : most;
}

/* The residual of the library's X after T steps. */
static double after_steps(const inverse_facts *f, int steps, const atn_inverse_info *info)
{
    if (f->length > steps)
        return f->curve[steps];
    if (info->stop == ATN_STOP_DIVERGED && info->returned < f->length)
        return f->curve[info->returned];
    return INFINITY; /* an iterate overflowed */
}

static int measure_inverse(bottleneck *b, atn_context *context, atn_inverse_method method,
                           inverse_facts *out)
{
    atn_inverse_desc desc = atn_inverse_defaults(method);
    atn_inverse_info info;
    ref_iteration filter = iteration_filter(&desc, ref_norm1(b->m, b->exact));
    int steps = desc.iterations, code = find_start(b, context, desc, &info);
    out->published_steps = steps;
    out->length = 0;
    if (code != EXIT_PASS)
        return code;
    if (info.stop == ATN_STOP_NO_ALPHA) { /* X = 0 */
        out->predicted = out->residual = 1;
        out->steps_run = 0;
        for (int target = 0; target < TARGETS; target++)
            out->steps_predicted[target] = out->steps[target] = -1;
        return EXIT_PASS;
    }
    iteration_take(&desc, &info, &filter);
    out->alpha = info.alpha;
    desc.iterations = predict(b, &desc, &filter, out);
    atn_trace trace = {.capacity = MOST_CURVE, .values = {[ATN_METRIC_RESIDUAL] = out->curve}};
    code = bottleneck_invert(b, context, &desc, &info, &trace);
    out->steps_run = desc.iterations;
    out->length = trace.length;
    out->residual = after_steps(out, steps, &info);
    for (int target = 0; target < TARGETS; target++) {
        int k = iteration_first_below(out->length, out->curve, inspect_targets[target]);
        out->steps[target] = k;
        out->products[target] = k >= 0 ? (double)iteration_products(&desc, k) : NAN;
    }
    return code;
}

int measure_inverses(int64_t m, const double *a, atn_context *context, inspection *out)
{
    bottleneck b = bottleneck_create(ATN_F64, m);
    int code = bottleneck_from_matrix(&b, a);
    for (int method = 0; method < ATN_INVERSE_COUNT && goes_on(code); method++)
        if (method != ATN_INVERSE_NR && iteration_order((atn_inverse_method)method) > 0)
            code = exit_worst(code, measure_inverse(&b, context, (atn_inverse_method)method,
                                                    &out->inverses[method]));
    bottleneck_free(&b);
    return code;
}

/* ---- Precisions ---- */

/* |A X A - A|_2 / |A|_2 for the X in b, in f64. */
static int find_residual(const bottleneck *b, double *residual)
{
    int size = (int)b->m;
    int64_t m = b->m, entries = m * m;
    double *x = allocate(m, m), *ax = allocate(m, m), *difference = allocate(m, m);
    double norm = 0, largest = bottleneck_largest(b);
    atn_convert(ATN_F64, x, b->dtype, b->x, entries);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, b->exact, size, x,
                size, 0, ax, size);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, ax, size, b->exact,
                size, 0, difference, size);
    for (int64_t i = 0; i < entries; i++)
        difference[i] -= b->exact[i];
    for (int64_t i = 0; i < m; i++) /* products round (i, j) and (j, i) apart */
        for (int64_t j = 0; j < i; j++)
            difference[i * m + j] = difference[j * m + i] =
                0.5 * (difference[i * m + j] + difference[j * m + i]);
    int code = checked_norm(m, difference, &norm);
    *residual = norm / largest;
    free(difference);
    free(ax);
    free(x);
    return code;
}

static int run_precision(bottleneck *b, atn_context *context, const atn_inverse_desc *desc,
                         double *residual, double *steps)
{
    atn_inverse_info info;
    int code = bottleneck_invert(b, context, desc, &info, NULL);
    *steps = info.returned;
    if (code == EXIT_PASS && desc->stopping == ATN_STOPPING_NONE &&
        info.stop == ATN_STOP_NONFINITE) {
        *residual = INFINITY;
        return EXIT_PASS;
    }
    return code == EXIT_PASS ? find_residual(b, residual) : code;
}

static int measure_precision(bottleneck *b, atn_context *context, precision p, int steps,
                             precision_facts *out)
{
    atn_inverse_desc desc = atn_inverse_defaults(ATN_INVERSE_NR_PAPER);
    double unused;
    desc.numerator = convergent_numerator;
    desc.storage = p.storage;
    desc.iterations = PAPER_STEPS;
    int code = run_precision(b, context, &desc, &out->fixed, &unused);
    out->asked = out->fixed;
    desc.iterations = steps;
    if (goes_on(code) && steps != PAPER_STEPS)
        code = exit_worst(code, run_precision(b, context, &desc, &out->asked, &unused));
    desc.stopping = ATN_STOPPING_BEST;
    desc.iterations = precision_last(p);
    if (goes_on(code))
        code = exit_worst(code, run_precision(b, context, &desc, &out->best, &out->best_steps));
    out->rank = (double)numerical_rank(b->m, b->lambda, precision_roundoff(p));
    return code;
}

int measure_precisions(int64_t m, const double *a, int steps, atn_context *context, inspection *out)
{
    double *rounded = allocate(m, m);
    int code = EXIT_PASS;
    for (int i = 0; i < PRECISIONS && goes_on(code); i++) {
        bottleneck b = bottleneck_create(precisions[i].dtype, m);
        precision_round(precisions[i], m * m, a, rounded);
        code = exit_worst(code, bottleneck_from_matrix(&b, rounded));
        if (goes_on(code))
            code = exit_worst(
                code, measure_precision(&b, context, precisions[i], steps, &out->precisions[i]));
        bottleneck_free(&b);
    }
    free(rounded);
    return code;
}

/* ---- Tokens ---- */

typedef struct {
    int64_t count;
    double *tokens;
} token_subset;

typedef struct {
    const inspect_plan *plan;
    int64_t head;
    double scale;
    double *tokens;                /* all tokens of the head */
    token_subset choice, compared; /* tokens null: all */
    double *spectrum;              /* of S on `compared` */
    atn_context *context;
} head_data;

static double *subset_tokens(const head_data *data, const token_subset *subset)
{
    return subset->tokens ? subset->tokens : data->tokens;
}

/* Draws `most` of n tokens in ascending order, each subset with the same probability (Knuth's
 * Algorithm S). */
static token_subset draw_subset(const head_data *data, const char *purpose, int64_t most)
{
    int64_t n = data->plan->tokens, dim = data->plan->dim, taken = 0;
    token_subset subset = {.count = n < most ? n : most};
    if (n <= most)
        return subset;
    random_stream *r =
        random_create((uint64_t)data->plan->s->seeds.items[0], purpose, (uint64_t)data->head);
    subset.tokens = allocate(most, dim);
    for (int64_t i = 0; i < n && taken < most; i++)
        if (random_uniform(r) * (double)(n - i) < (double)(most - taken))
            memcpy(subset.tokens + taken++ * dim, data->tokens + i * dim,
                   (size_t)dim * sizeof(double));
    random_free(r);
    return subset;
}

static int open_head(head_data *data)
{
    const inspect_plan *plan = data->plan;
    data->tokens = allocate(plan->tokens, plan->dim);
    int code = input_tokens(plan->in, plan->grid.height, plan->grid.width, plan->grid.patch,
                            (uint64_t)plan->s->seeds.items[0], data->head, data->tokens);
    if (code != EXIT_PASS)
        return code;
    data->choice = draw_subset(data, "inspect choice", MOST_CHOICE);
    data->compared = draw_subset(data, "inspect compared", MOST_COMPARED);
    int64_t n = data->compared.count;
    double *from = subset_tokens(data, &data->compared), *s = allocate(n, n);
    data->spectrum = allocate(n, 1);
    ref_gaussian(n, n, plan->dim, from, from, data->scale, s);
    code = checked_eigenvalues(n, s, data->spectrum, NULL);
    free(s);
    return code;
}

static void close_head(head_data *data)
{
    free(data->spectrum);
    free(data->compared.tokens);
    free(data->choice.tokens);
    free(data->tokens);
}

/* ---- A sampling ---- */

/* The grid on which a sampling averages, with its stride. Returns the number of landmarks; 0: the
 * sampling does not apply. */
static int64_t sampling_grid(const inspect_plan *plan, const inspect_landmarks *l,
                             const inspect_sampling *with, token_grid *grid)
{
    *grid = l->grid;
    if (with->sampler < 0)
        return plan->given.data ? l->m : 0;
    if (samplers[with->sampler].kind != ATN_SAMPLING_POOL)
        return l->m;
    if (!with->windows)
        return l->grid.windows ? 0 : l->m;
    *grid = (token_grid){.height = plan->tokens,
                         .width = 1,
                         .stride = (plan->tokens + l->m - 1) / l->m,
                         .windows = true};
    return grid_landmarks(grid) == l->m ? l->m : 0;
}

/* Takes landmarks with a sampler; null: those of --landmarks. */
static int choose_landmarks(const head_data *data, const sampler *with, const token_grid *grid,
                            int64_t m, double *landmarks)
{
    const inspect_plan *plan = data->plan;
    if (!with) { /* the same for all heads, or each head's own */
        int64_t size = m * plan->dim, own = plan->given.batch * plan->given.heads > 1;
        memcpy(landmarks, plan->given.data + own * data->head * size,
               (size_t)size * sizeof *landmarks);
        return EXIT_PASS;
    }
    bool chooses = with->kind != ATN_SAMPLING_POOL && with->kind != ATN_SAMPLING_FIRST;
    const sampler_source from = {.name = input_name(plan->in),
                                 .grid = grid,
                                 .n = chooses ? data->choice.count : plan->tokens,
                                 .dim = plan->dim,
                                 .tokens =
                                     chooses ? subset_tokens(data, &data->choice) : data->tokens,
                                 .scale = data->scale,
                                 .seed = (uint64_t)plan->s->seeds.items[0],
                                 .sample = data->head};
    int code = sampler_take(with, &from, m, 0, data->context, landmarks);
    for (int64_t i = 0; i < m * plan->dim && code == EXIT_PASS; i++)
        if (!isfinite(landmarks[i])) {
            report_error("%s: sums of its tokens overflow, expected smaller numbers",
                         input_name(plan->in));
            code = EXIT_USAGE;
        }
    return code;
}

static int measure_norms(const head_data *data, double *landmarks, double *a, inspection *out)
{
    int64_t m = (int64_t)out->m, n = data->choice.count;
    double *p = allocate(m, n);
    form_norms norms;
    int code = make_cross_kernel(data->plan->s, data->context, m, n, data->plan->dim, landmarks,
                                 subset_tokens(data, &data->choice), p);
    if (code == EXIT_PASS)
        code = form_norms_measure(data->context, m, n, a, p, &norms);
    if (goes_on(code)) {
        out->norm_tokens = (double)n;
        out->soft_norm = norms.soft.exact;
        out->softpp_norm = norms.softpp.exact;
        out->soft_norm_20 = norms.soft.paper;
        out->softpp_norm_20 = norms.softpp.paper;
    }
    free(p);
    return code;
}

static void measure_approximation(const head_data *data, const double *landmarks, inspection *out)
{
    int64_t n = data->compared.count, m = (int64_t)out->m;
    double best = 0, size = (double)n, noise = size * size * atn_dtype_roundoff(ATN_F64);
    double *s_hat = allocate(n, n);
    nystrom_approximation made = {.pivots = must_allocate((size_t)m, sizeof *made.pivots)};
    nystrom_make(n, m, data->plan->dim, subset_tokens(data, &data->compared), landmarks,
                 data->scale, s_hat, &made);
    for (int64_t i = n - 1; i >= m; i--)
        best += fmax(data->spectrum[i], 0);
    out->compared = size;
    out->trace_error = fmax(made.shortfall, 0) / size;
    out->best_trace_error = best / size;
    if (best > noise * data->spectrum[0]) /* bound on the rounding errors' sum over n eigenvalues */
        out->trace_ratio = fmax(made.shortfall, 0) / best;
    free(made.pivots);
    free(s_hat);
}

static int measure_sampling(const head_data *data, double *landmarks, inspection *out)
{
    const inspect_plan *plan = data->plan;
    int64_t m = (int64_t)out->m;
    double *a = allocate(m, m);
    int code = make_kernel(plan->s, data->context, m, plan->dim, landmarks, a);
    if (code == EXIT_PASS)
        code = measure_spectrum(m, a, out);
    if (goes_on(code))
        code = exit_worst(code, certify(plan->s, m, plan->dim, landmarks, out));
    if (goes_on(code))
        code = exit_worst(code, measure_norms(data, landmarks, a, out));
    if (goes_on(code))
        measure_approximation(data, landmarks, out);
    bool close = out->main || out->sampling == plan->sampling || plan->s->effort == EFFORT_FULL ||
                 (plan->s->effort == EFFORT_DEFAULT && m <= MOST_CLOSE);
    if (goes_on(code) && close)
        code = exit_worst(code, measure_inverses(m, a, data->context, out));
    if (goes_on(code) && close)
        code = exit_worst(code, measure_precisions(m, a, plan->steps, data->context, out));
    free(a);
    return code;
}

static int inspect_landmarks_of(const head_data *data, const inspect_landmarks *l, table *raw)
{
    const inspect_plan *plan = data->plan;
    double *landmarks = allocate(l->m, plan->dim);
    bool main = true;
    int code = EXIT_PASS;
    for (int i = 0; i < SAMPLINGS && goes_on(code); i++) {
        int place = inspect_samplings[i].sampler;
        const sampler *with = place < 0 ? NULL : &samplers[place];
        token_grid grid;
        if (sampling_grid(plan, l, &inspect_samplings[i], &grid) != l->m)
            continue;
        inspection *out = inspection_create(l->m);
        out->batch = (double)(data->head / plan->per_batch);
        out->head = (double)(data->head % plan->per_batch);
        out->sampling = i;
        out->main = plan->given.data ? i == SAMPLING_GIVEN : main;
        out->tokens = (double)plan->tokens;
        if (with && with->kind == ATN_SAMPLING_POOL)
            out->stride = (double)grid.stride;
        code = exit_worst(code, choose_landmarks(data, with, &grid, l->m, landmarks));
        if (goes_on(code))
            code = exit_worst(code, measure_sampling(data, landmarks, out));
        if (goes_on(code))
            inspection_write(out, raw);
        inspection_free(out);
        main = false;
    }
    free(landmarks);
    return code;
}

int inspect_head(const inspect_plan *plan, int64_t head, atn_context *context, table *raw)
{
    head_data data = {
        .plan = plan, .head = head, .scale = kernel_scale(plan->s, plan->dim), .context = context};
    int code = open_head(&data);
    for (int i = 0; i < plan->landmark_count && goes_on(code); i++)
        code = exit_worst(code, inspect_landmarks_of(&data, &plan->landmarks[i], raw));
    close_head(&data);
    return code;
}
