/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ backward against differences of the dense reference (soft_model.h). */
#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "linear_algebra.h"
#include "pairs.h"
#include "sampling.h"
#include "soft_model.h"
#include "staged.h"

/* Of the whole gradient; differences of sixth order are good to about 1e-11 here. */
static const double tolerance = 1e-9;

static fixture_soft_case usual(atn_operator op, atn_dtype dtype)
{
    return (fixture_soft_case){
        .op = op,
        .dtype = dtype,
        .layout = GUARDED_STRIDED,
        .sampling = ATN_SAMPLING_FIRST,
        .inverse = atn_inverse_defaults(ATN_INVERSE_EIG),
        .batch = 2,
        .heads = 2,
        .height = 5, /* 5 x 7, stride 2: m = 6, a row and a column left over */
        .width = 7,
        .stride = 2,
        .count = 6,
        .dim = 6,
        .value_dim = 3,
        .scale = ATN_SCALE_VALUE,
        .scale_value = 1.5, /* keeps the condition of A below 10^3 for all samplings */
        .seed = 1,
    };
}

/* ---- A backward call ---- */

/* What has a gradient: q, v and the parameters. */
enum { SLOT_Q, SLOT_V, SLOT_PARAMETERS, SLOTS = SLOT_PARAMETERS + ATN_PARAMETER_RESIDUAL + 1 };

typedef struct {
    guarded dout, slots[SLOTS]; /* no memory where there is no such parameter */
    bool after_forward;         /* as in atn_gradients */
    atn_status status;
    atn_attention_info info;
} backward_run;

static const char *slot_name(int slot)
{
    static const char *const names[] = {"q", "v"};
    return slot < SLOT_PARAMETERS ? names[slot]
                                  : atn_parameter_name((atn_parameter)(slot - SLOT_PARAMETERS));
}

/* The numbers the reference sees, null if there are none; and how many. */
static double *slot_values(fixture_soft *f, int slot, int64_t *count)
{
    const fixture_soft_case *c = &f->c;
    int64_t heads = c->batch * c->heads, d = c->dim;
    double *const values[] = {
        f->q, f->v, f->sampling.weights, f->sampling.norm_weight, f->sampling.norm_bias, f->filter};
    const int64_t counts[] = {heads * f->n * d,
                              heads * f->n * c->value_dim,
                              d * d * c->stride * c->stride,
                              d,
                              d,
                              c->heads * c->window * c->window};
    *count = counts[slot];
    return values[slot];
}

static guarded slot_tensor(fixture_soft *f, int slot)
{
    const fixture_soft_case *c = &f->c;
    if (slot < SLOT_PARAMETERS)
        return guarded_make(c->dtype, c->layout, c->batch, c->heads, f->n,
                            slot == SLOT_Q ? c->dim : c->value_dim);
    const atn_tensor *p =
        atn_attention_parameter(&f->desc, (atn_parameter)(slot - SLOT_PARAMETERS));
    return guarded_make(c->dtype, GUARDED_DENSE, p->batch, p->heads, p->rows, p->cols);
}

/* A call of a plan whose description lies on the device. */
static atn_status call_backward(atn_context *context, atn_plan *plan, const fixture_soft *f,
                                backward_run *r)
{
    staged s = staged_open(context);
    atn_tensor q, v, dout, views[SLOTS];
    atn_attention_inputs inputs = {.q = staged_input(&s, &f->q_view, &q),
                                   .v = staged_input(&s, &f->v_view, &v)};
    atn_gradients gradients = {.q = staged_output(&s, &r->slots[SLOT_Q], &views[SLOT_Q]),
                               .v = staged_output(&s, &r->slots[SLOT_V], &views[SLOT_V]),
                               .after_forward = r->after_forward};
    for (int slot = SLOT_PARAMETERS; slot < SLOTS; slot++)
        gradients.parameters[slot - SLOT_PARAMETERS] =
            staged_output(&s, &r->slots[slot], &views[slot]);
    atn_status status = atn_attention_backward(plan, &inputs, staged_input(&s, &r->dout, &dout),
                                               &gradients, &r->info);
    staged_close(&s);
    return status;
}

static backward_run backward_make(fixture_soft *f, const double *dout)
{
    const fixture_soft_case *c = &f->c;
    backward_run r = {.info = {.inverses = f->infos}};
    r.dout = guarded_make(c->dtype, c->layout, c->batch, c->heads, f->n, c->value_dim);
    guarded_set(&r.dout, dout);
    for (int slot = 0; slot < SLOTS; slot++) {
        int64_t count;
        if (slot_values(f, slot, &count))
            r.slots[slot] = slot_tensor(f, slot);
    }
    return r;
}

static backward_run backward_of(fixture_soft *f, const double *dout, atn_context *context)
{
    backward_run r = backward_make(f, dout);
    staged s = staged_open(context);
    atn_attention_desc desc = staged_desc(&s, &f->desc, &f->shape);
    atn_plan *plan;
    r.status = atn_attention_plan(context, &desc, &f->shape, &plan);
    if (r.status == ATN_OK)
        r.status = call_backward(context, plan, f, &r);
    atn_plan_free(plan);
    staged_close(&s);
    return r;
}

static void backward_free(backward_run *r)
{
    for (int slot = 0; slot < SLOTS; slot++)
        if (r->slots[slot].memory)
            guarded_free(&r->slots[slot]);
    guarded_free(&r->dout);
}

/* ---- Against differences ---- */

static fixture_soft make(const fixture_soft_case *c, atn_gradient gradient)
{
    fixture_soft f = fixture_soft_make(c);
    f.desc.gradient = gradient;
    return f;
}

static const char *describe(const soft_model *model)
{
    static char text[200];
    const fixture_soft_case *c = &model->f.c;
    snprintf(text, sizeof text, "%s %s %s %s b=%ld h=%ld n=%ld m=%ld d=%ld dv=%ld window=%ld",
             atn_operator_get(c->op)->name, atn_sampling_name(c->sampling),
             atn_inverse_name(c->inverse.method), atn_gradient_name(model->f.desc.gradient),
             (long)c->batch, (long)c->heads, (long)model->f.n, (long)model->f.m, (long)c->dim,
             (long)c->value_dim, (long)c->window);
    return text;
}

static double dot(int64_t count, const double *a, const double *b)
{
    long double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (long double)a[i] * b[i];
    return (double)sum;
}

/* The largest condition number of the heads' A. */
static double condition_of(const soft_model *model)
{
    int64_t m = model->f.m;
    double worst = 0;
    for (int64_t i = 0; i < model->f.c.batch * model->f.c.heads; i++) {
        double kappa;
        if (ref_condition(m, m, model->a0 + i * m * m, &kappa, NULL) < 0)
            return INFINITY;
        worst = fmax(worst, kappa);
    }
    return worst;
}

/* How far <gradient, direction> is from the differences, for random directions (standard normal, so
 * it is about the Frobenius norm of the gradient's error), relative to the gradient's norm. */
static double along_directions(soft_model *model, int slot, const guarded *gradient, int directions,
                               double step)
{
    int64_t count;
    double *values = slot_values(&model->f, slot, &count), worst = 0;
    double *got = data_allocate(count), *direction = data_allocate(count);
    guarded_get(gradient, got);
    for (int i = 0; i < directions; i++) {
        data_normal(100 + (uint64_t)(10 * slot + i), count, direction);
        double want = soft_model_slope(model, count, values, direction, step);
        double error = fabs(dot(count, got, direction) - want) / sqrt(dot(count, got, got));
        worst = error >= worst ? error : isnan(error) ? INFINITY : worst;
    }
    free(direction);
    free(got);
    return worst;
}

/* Entry by entry. */
static double entry_by_entry(soft_model *model, int slot, const guarded *gradient, double step)
{
    int64_t count;
    double *values = slot_values(&model->f, slot, &count), error = 0;
    double *got = data_allocate(count), *direction = data_allocate(count);
    guarded_get(gradient, got);
    for (int64_t i = 0; i < count; i++) {
        memset(direction, 0, (size_t)count * sizeof *direction);
        direction[i] = 1;
        double off = got[i] - soft_model_slope(model, count, values, direction, step);
        error += off * off;
    }
    error = sqrt(error / dot(count, got, got));
    free(direction);
    free(got);
    return error;
}

/* Takes f over. directions 0: entry by entry. Returns the largest error. */
static double check(atn_context *context, fixture_soft f, int directions, double step)
{
    soft_model model = soft_model_make(f);
    backward_run r = backward_of(&model.f, model.dout, context);
    double worst = 0;
    cr_expect(r.status >= 0, "%s: %s (%s)", describe(&model), atn_status_name(r.status),
              atn_last_error(context));
    for (int slot = 0; slot < SLOTS; slot++) {
        const guarded *gradient = &r.slots[slot];
        if (!gradient->memory)
            continue;
        /* a landmark moves by a sum over its window */
        double window = sqrt((double)(model.f.c.dim * model.f.c.stride * model.f.c.stride));
        double h = slot - SLOT_PARAMETERS == ATN_PARAMETER_CONV ? step / window : step;
        double error = directions ? along_directions(&model, slot, gradient, directions, h)
                                  : entry_by_entry(&model, slot, gradient, h);
        cr_expect(error <= tolerance && guarded_unwritten(gradient) == 0 &&
                      guarded_damaged(gradient) == 0,
                  "%s kappa=%.2g: gradient of %s is off by %.3g, %ld unwritten, %ld damaged",
                  describe(&model), condition_of(&model), slot_name(slot), error,
                  (long)guarded_unwritten(gradient), (long)guarded_damaged(gradient));
        worst = error > worst ? error : worst;
    }
    backward_free(&r);
    soft_model_free(&model);
    return worst;
}

/* Every method with constants under which its start exists; 6 steps, because each may double
 * what the differences lose. */
static atn_inverse_desc inverse_for(int method)
{
    atn_inverse_desc desc = atn_inverse_defaults((atn_inverse_method)method);
    desc.alpha = method == ATN_INVERSE_NR ? 0.02 : 0;
    fixture_interval(&desc);
    desc.iterations = 6;
    if (method == ATN_INVERSE_NR_ADAPTIVE)
        desc.search_limit = 1.2; /* 1 as printed is never met */
    if (method == ATN_INVERSE_CHOLESKY)
        desc.jitter = 0; /* its own is u sqrt(m) |A|_1, kappa times that in the gradient */
    return desc;
}

static bool goes_with(int method, int gradient)
{
    return gradient == ATN_GRADIENT_CLOSED ||
           (gradient == ATN_GRADIENT_STEPS ? method <= ATN_INVERSE_NR_SOFTPP
                                           : method == ATN_INVERSE_EIG);
}

/* Differences across a kink of |A|_1 say nothing: takes the next seed whose largest row sums are
 * apart. */
static fixture_soft make_smooth(fixture_soft_case c, atn_gradient gradient)
{
    for (;; c.seed += 100) {
        soft_model model = soft_model_make(make(&c, gradient));
        double gap = soft_model_gap(&model);
        soft_model_free(&model);
        if (gap > 0.02)
            return make(&c, gradient);
    }
}

/* Sampling, inverse, gradient. Not the samplings that look at the tokens: a difference may cross
 * from one choice to another. The complex steps of test_gradients.c do not. */
static bool can_be_combined(const int *v)
{
    return goes_with(v[1], v[2]) && !ref_sampling_chooses((atn_sampling_kind)v[0]);
}

static void every_combination(atn_operator op)
{
    static const int sizes[] = {ATN_SAMPLING_COUNT, ATN_INVERSE_COUNT, ATN_GRADIENT_COUNT};
    atn_context *context = fixture_context(2, NULL);
    pairs chosen = pairs_make(3, sizes, can_be_combined);
    double worst = 0;
    for (int i = 0; i < chosen.count; i++) {
        const int *v = chosen.combination[i];
        fixture_soft_case c = usual(op, ATN_F64);
        c.sampling = (atn_sampling_kind)v[0];
        c.inverse = inverse_for(v[1]);
        c.layout = (guarded_layout)(v[1] % GUARDED_LAYOUT_COUNT);
        c.seed = 11 + (uint64_t)(v[0] + v[1]);
        double error = check(context, make_smooth(c, (atn_gradient)v[2]), 1, 3e-4);
        worst = error > worst ? error : worst;
    }
    fprintf(stderr, "%s backward, %d combinations: off by up to %.2g\n", atn_operator_get(op)->name,
            chosen.count, worst);
    pairs_free(&chosen);
    atn_context_free(context);
}

Test(soft_backward, every_combination)
{
    every_combination(ATN_SOFT);
}

Test(softpp_backward, every_combination)
{
    every_combination(ATN_SOFTPP);
}

/* Few steps leave modes behind; then the derivative of the steps is not Eq. 12. T = 0 is X_0. */
Test(soft_backward, unconverged_steps)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int method = 0; method <= ATN_INVERSE_NR_SOFTPP; method++)
            for (int gradient = 0; gradient <= ATN_GRADIENT_STEPS; gradient++)
                for (int steps = 0; steps < 5; steps += 3) {
                    fixture_soft_case c = usual((atn_operator)op, ATN_F64);
                    c.inverse = inverse_for(method);
                    c.inverse.iterations = steps;
                    c.batch = gradient == ATN_GRADIENT_STEPS ? 2 : 1;
                    c.height = 4, c.width = 3, c.dim = 2, c.value_dim = 2;
                    c.scale_value = 0.5, c.seed = (uint64_t)method + 7;
                    check(context, make_smooth(c, (atn_gradient)gradient), 0, 1e-3);
                }
    atn_context_free(context);
}

/* Once the steps have converged both of their gradients are that of A^-1. */
Test(soft_backward, converged_steps)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int gradient = 0; gradient <= ATN_GRADIENT_STEPS; gradient++) {
            fixture_soft_case c = usual((atn_operator)op, ATN_F64);
            c.inverse = inverse_for(ATN_INVERSE_NR);
            c.inverse.iterations = 20;
            fixture_soft f = make(&c, (atn_gradient)gradient);
            soft_model model = soft_model_make(f);
            backward_run r = backward_of(&model.f, model.dout, context);
            model.kind = MODEL_EXACT;
            double error = along_directions(&model, SLOT_Q, &r.slots[SLOT_Q], 3, 1e-3);
            cr_expect(r.status == ATN_OK && error <= tolerance, "%s: %s, off by %.3g",
                      describe(&model), atn_status_name(r.status), error);
            backward_free(&r);
            soft_model_free(&model);
        }
    atn_context_free(context);
}

/* Cuts that take effect: modes or landmarks left out. */
Test(soft_backward, truncated_inverses)
{
    static const int methods[] = {ATN_INVERSE_EIG, ATN_INVERSE_EIG, ATN_INVERSE_PIVOTED_CHOLESKY};
    static const atn_gradient gradients[] = {ATN_GRADIENT_CLOSED, ATN_GRADIENT_PSEUDO,
                                             ATN_GRADIENT_CLOSED};
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int i = 0; i < 3; i++) {
            fixture_soft_case c = usual((atn_operator)op, ATN_F64);
            c.inverse = inverse_for(methods[i]);
            c.inverse.rcond = 0.3;
            c.heads = c.batch = 1, c.scale_value = 0.3, c.count = 9;
            fixture_soft f = make(&c, gradients[i]);
            check(context, f, 0, 1e-3);
            soft_model model = soft_model_make(make(&c, gradients[i]));
            backward_run r = backward_of(&model.f, model.dout, context);
            cr_expect(r.info.inverses[0].rank > 2 && r.info.inverses[0].rank < 9, "rank %ld",
                      (long)r.info.inverses[0].rank);
            backward_free(&r);
            soft_model_free(&model);
        }
    atn_context_free(context);
}

/* A token named twice among the landmarks: A is singular and stays so, every way is exact (in SOFT
 * P's columns are in A's range, and in SOFT++ D does not move them out of it). */
Test(soft_backward, duplicate_landmarks)
{
    static const int methods[] = {ATN_INVERSE_EIG, ATN_INVERSE_EIG, ATN_INVERSE_PIVOTED_CHOLESKY};
    static const atn_gradient gradients[] = {ATN_GRADIENT_CLOSED, ATN_GRADIENT_PSEUDO,
                                             ATN_GRADIENT_CLOSED};
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int i = 0; i < 3; i++) {
            fixture_soft_case c = usual((atn_operator)op, ATN_F64);
            c.sampling = ATN_SAMPLING_INDICES;
            c.inverse = inverse_for(methods[i]);
            c.batch = 1;
            fixture_soft f = make(&c, gradients[i]);
            f.sampling.indices[3] = f.sampling.indices[5] = f.sampling.indices[1];
            check(context, f, 2, 3e-4);
        }
    atn_context_free(context);
}

Test(soft_backward, residual_convolution)
{
    static const int64_t grids[][2] = {{1, 7}, {7, 1}, {4, 5}, {2, 3}, {2, 70}};
    atn_context *context = fixture_context(2, NULL);
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
        for (int64_t window = 1; window <= 5; window += 2) {
            fixture_soft_case c = usual((atn_operator)(g % 2), ATN_F64);
            c.height = grids[g][0], c.width = grids[g][1], c.count = 3;
            c.window = window, c.heads = 3;
            check(context, make(&c, ATN_GRADIENT_CLOSED), 2, 3e-4);
        }
    atn_context_free(context);
}

/* Differences are those of the direct form, whichever way the distance is evaluated. */
Test(soft_backward, scales_and_distances)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int scale = 0; scale < ATN_SCALE_COUNT; scale++)
            for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++) {
                fixture_soft_case c = usual((atn_operator)op, ATN_F64);
                c.heads = 3, c.batch = 1;
                c.scale = (atn_scale)scale;
                c.distance = (atn_distance)distance;
                if (distance == op)
                    c.inverse = inverse_for(ATN_INVERSE_PIVOTED_CHOLESKY);
                check(context, make(&c, ATN_GRADIENT_CLOSED), 2, 1e-3);
            }
    atn_context_free(context);
}

/* Tokens of one window lie around their own centre: averages stay apart. */
static void spread_windows(fixture_soft *f)
{
    const fixture_soft_case *c = &f->c;
    double *centres = data_allocate(f->n * c->dim);
    data_normal(c->seed + 30, f->n * c->dim, centres);
    for (int64_t i = 0; i < c->batch * c->heads * f->n * c->dim; i++) {
        int64_t token = i / c->dim % f->n;
        int64_t window = token / c->width / c->stride * c->width + token % c->width / c->stride;
        f->q[i] += centres[window * c->dim + i % c->dim];
    }
    free(centres);
    fixture_soft_load(f);
}

/* Several chunks (1024 tokens, or a 32nd of all) and blocks (128), with remainders, windows of a
 * convolution that take several blocks of landmarks (64), and several blocks of channels (64) in
 * its LayerNorm. The last case is for the CPU: an emulated device is slow. */
Test(soft_backward, chunks_and_blocks)
{
    static const struct {
        atn_sampling_kind sampling;
        int64_t height, width, stride;
        int method;
        int64_t dim; /* 0: the usual one */
    } cases[] = {
        {ATN_SAMPLING_WINDOW, 1, 1025, 171, ATN_INVERSE_EIG, 0},
        {ATN_SAMPLING_POOL, 47, 53, 17, ATN_INVERSE_PIVOTED_CHOLESKY, 0},
        {ATN_SAMPLING_FIRST, 1, 2303, 1, ATN_INVERSE_NR_SOFTPP, 0},
        {ATN_SAMPLING_INDICES, 3, 385, 1, ATN_INVERSE_CHOLESKY, 0},
        {ATN_SAMPLING_CONV, 19, 21, 2, ATN_INVERSE_EIG, 0},
        {ATN_SAMPLING_CONV_CODE, 43, 50, 16, ATN_INVERSE_PIVOTED_CHOLESKY, 0},
        {ATN_SAMPLING_CONV_CODE, 5, 7, 2, ATN_INVERSE_PIVOTED_CHOLESKY, 70},
        {ATN_SAMPLING_WINDOW, 1, 32769, 4000, ATN_INVERSE_EIG, 0},
    };
    atn_context *context = fixture_context(2, NULL);
    size_t count = sizeof cases / sizeof *cases - (fixture_device() != ATN_CPU);
    for (size_t i = 0; i < count; i++) {
        fixture_soft_case c = usual((atn_operator)(i % 2), ATN_F64);
        c.sampling = cases[i].sampling;
        c.height = cases[i].height, c.width = cases[i].width, c.stride = cases[i].stride;
        c.inverse = inverse_for(cases[i].method);
        c.batch = 1, c.window = 3, c.scale_value = 0.4;
        if (cases[i].dim) {
            c.dim = cases[i].dim;
            c.scale_value = 0.01; /* distances are larger */
        }
        atn_gradient gradient =
            cases[i].method == ATN_INVERSE_NR_SOFTPP ? ATN_GRADIENT_STEPS : ATN_GRADIENT_CLOSED;
        fixture_soft f = make(&c, gradient);
        spread_windows(&f);
        check(context, f, 2, cases[i].dim ? 1e-3 : 3e-4); /* its gradients by bias are small */
    }
    atn_context_free(context);
}

/* ---- What must not change the answer ---- */

static fixture_soft_case long_case(int i)
{
    static const int methods[] = {ATN_INVERSE_NR_PAPER, ATN_INVERSE_NR_SOFTPP, ATN_INVERSE_EIG,
                                  ATN_INVERSE_PIVOTED_CHOLESKY};
    fixture_soft_case c = usual((atn_operator)(i % 2), (atn_dtype)(i / 2 % 2));
    c.sampling = i < 4 ? ATN_SAMPLING_CONV_CODE : ATN_SAMPLING_POOL;
    c.inverse = inverse_for(methods[i % 4]);
    c.height = 45, c.width = 50, c.stride = 9; /* n = 2250: 3 chunks */
    c.batch = 2, c.heads = 3, c.value_dim = 5, c.window = 3;
    return c;
}

static fixture_soft long_make(int i)
{
    fixture_soft_case c = long_case(i);
    bool newton = c.inverse.method <= ATN_INVERSE_NR_SOFTPP;
    return make(&c, newton && i % 3 ? ATN_GRADIENT_STEPS : ATN_GRADIENT_CLOSED);
}

/* From one long case to the next: an emulated device is slow. */
static int long_step(void)
{
    return fixture_device() == ATN_CPU || pairs_all() ? 1 : 3;
}

static double *random_dout(const fixture_soft *f)
{
    int64_t count = f->c.batch * f->c.heads * f->n * f->c.value_dim;
    double *dout = data_allocate(count);
    data_normal(77, count, dout);
    data_round(f->c.dtype, count, dout);
    return dout;
}

static void expect_same_bits(const backward_run *a, const backward_run *b, const char *what)
{
    cr_expect_eq(a->status, b->status, "%s: %s, %s", what, atn_status_name(a->status),
                 atn_status_name(b->status));
    for (int slot = 0; slot < SLOTS; slot++)
        if (a->slots[slot].memory)
            cr_expect(guarded_same_bits(&a->slots[slot], &b->slots[slot]) &&
                          guarded_unwritten(&b->slots[slot]) == 0,
                      "%s: gradient of %s differs", what, slot_name(slot));
}

Test(soft_backward, threads_change_no_bit)
{
    static const int thread_counts[] = {1, 7, 2, 3};
    const int counts = long_step() == 1 ? 4 : 2;
    for (int i = 0; i < 8; i += long_step()) {
        fixture_soft f = long_make(i);
        double *dout = random_dout(&f);
        backward_run runs[4];
        for (int t = 0; t < counts; t++) {
            atn_context *context = fixture_context(thread_counts[t], NULL);
            runs[t] = backward_of(&f, dout, context);
            cr_expect(runs[t].status >= 0, "%s", atn_last_error(context));
            expect_same_bits(&runs[0], &runs[t], "threads");
            atn_context_free(context);
        }
        for (int t = 0; t < counts; t++)
            backward_free(&runs[t]);
        free(dout);
        fixture_soft_free(&f);
    }
}

/* One plan, forward and backward by turns: nothing is allocated, nothing is left over from the call
 * before, no write leaves the workspace, whose size is the one promised. after_forward changes no
 * bit: not after forward, and not where there was none. */
Test(soft_backward, plans_are_used_again)
{
    for (int i = 0; i < 8; i += long_step()) {
        allocator_counts counts = {0};
        atn_context *context = fixture_context(3, &counts);
        fixture_soft f = long_make(i);
        double *dout = random_dout(&f);
        backward_run first = backward_make(&f, dout), second = backward_make(&f, dout),
                     third = backward_make(&f, dout);
        first.after_forward = second.after_forward = true;
        atn_plan *plan;
        atn_cost cost;
        staged s = staged_open(context);
        atn_attention_desc desc = staged_desc(&s, &f.desc, &f.shape);
        cr_assert_eq(atn_attention_cost(context, &desc, &f.shape, &cost), ATN_OK);
        cr_assert_eq(atn_attention_plan(context, &desc, &f.shape, &plan), ATN_OK);
        if (fixture_device() == ATN_CPU) /* the device's memory is not the allocator's */
            cr_expect_eq(cost.workspace_bytes, (double)counts.last_bytes);
        int64_t calls = counts.calls;
        first.status = call_backward(context, plan, &f, &first);
        cr_expect(fixture_soft_forward(&f, context, plan, &f.out, NULL) >= 0);
        second.status = call_backward(context, plan, &f, &second);
        third.status = call_backward(context, plan, &f, &third);
        cr_expect_eq(counts.calls, calls, "%ld allocations", (long)(counts.calls - calls));
        expect_same_bits(&first, &second, "second call");
        expect_same_bits(&first, &third, "third call");
        atn_plan_free(plan);
        staged_close(&s);
        cr_expect_eq(counts.overruns, 0, "writes past the workspace");
        backward_free(&third);
        backward_free(&second);
        backward_free(&first);
        free(dout);
        fixture_soft_free(&f);
        atn_context_free(context);
    }
}

/* Parameters whose gradient is not wanted change nothing. */
Test(soft_backward, parameters_are_optional)
{
    atn_context *context = fixture_context(2, NULL);
    fixture_soft f = long_make(0);
    double *dout = random_dout(&f);
    backward_run all = backward_of(&f, dout, context);
    for (int wanted = SLOT_PARAMETERS - 1; wanted < SLOTS; wanted++) {
        backward_run r = backward_make(&f, dout);
        atn_plan *plan;
        staged s = staged_open(context);
        atn_attention_desc desc = staged_desc(&s, &f.desc, &f.shape);
        for (int slot = SLOT_PARAMETERS; slot < SLOTS; slot++)
            if (slot != wanted)
                guarded_free(&r.slots[slot]);
        cr_assert_eq(atn_attention_plan(context, &desc, &f.shape, &plan), ATN_OK);
        r.status = call_backward(context, plan, &f, &r);
        expect_same_bits(&r, &all, "one parameter");
        atn_plan_free(plan);
        staged_close(&s);
        backward_free(&r);
    }
    backward_free(&all);
    free(dout);
    fixture_soft_free(&f);
    atn_context_free(context);
}

/* f32 against f64 on the same numbers. */
Test(soft_backward, f32_is_as_good_as_f32_can_be)
{
    atn_context *context = fixture_context(2, NULL);
    double largest = 0;
    for (int i = 0; i < 8; i += long_step()) {
        fixture_soft narrow = long_make(i);
        narrow.c.dtype = ATN_F32; /* round the inputs, then give them to both */
        fixture_soft_case c = narrow.c;
        atn_gradient gradient = narrow.desc.gradient;
        fixture_soft_free(&narrow);
        narrow = make(&c, gradient);
        c.dtype = ATN_F64;
        fixture_soft wide = make(&c, gradient);
        int64_t count;
        for (int slot = 0; slot < SLOTS; slot++) {
            double *from = slot_values(&narrow, slot, &count);
            double *to = slot_values(&wide, slot, &count);
            if (from)
                memcpy(to, from, (size_t)count * sizeof *to);
        }
        fixture_soft_load(&wide);
        if (wide.filter)
            guarded_set(&wide.filter_view, wide.filter);
        double *const weights[] = {wide.sampling.weights, wide.sampling.norm_weight,
                                   wide.sampling.norm_bias};
        for (int k = 0; k < 3; k++)
            if (weights[k])
                guarded_set(&wide.sampling.tensors[k], weights[k]);
        double *dout = random_dout(&narrow);
        fixture_soft_expect(&narrow); /* for kappa */
        backward_run a = backward_of(&narrow, dout, context);
        backward_run b = backward_of(&wide, dout, context);
        for (int slot = 0; slot < SLOTS; slot++) {
            if (!slot_values(&wide, slot, &count))
                continue;
            double *got = data_allocate(count), *want = data_allocate(count);
            guarded_get(&a.slots[slot], got);
            guarded_get(&b.slots[slot], want);
            double size = dot(count, want, want);
            for (int64_t j = 0; j < count; j++)
                got[j] -= want[j];
            double error = sqrt(dot(count, got, got) / size);
            double ratio = error / (narrow.kappa * (double)narrow.m * 0x1p-24);
            cr_expect(ratio <= 10, "%s: gradient of %s is off by %.3g, kappa %.3g, ratio %.3g",
                      atn_inverse_name(c.inverse.method), slot_name(slot), error, narrow.kappa,
                      ratio);
            largest = fmax(largest, ratio);
            free(want);
            free(got);
        }
        backward_free(&b);
        backward_free(&a);
        free(dout);
        fixture_soft_free(&wide);
        fixture_soft_free(&narrow);
    }
    fprintf(stderr, "f32 backward: off by up to %.2g kappa m u\n", largest);
    atn_context_free(context);
}

/* ---- Statuses ---- */

static void expect_head(const backward_run *r, int slot, int64_t b, int64_t h, bool nan)
{
    const guarded *g = &r->slots[slot];
    int64_t wrong = 0;
    for (int64_t i = 0; i < g->view.rows * g->view.cols; i++)
        wrong += nan == (isfinite(guarded_at(g, b, h, i / g->view.cols, i % g->view.cols)) != 0);
    cr_expect_eq(wrong, 0, "gradient of %s, head (%ld, %ld): %ld entries are not %s",
                 slot_name(slot), (long)b, (long)h, (long)wrong, nan ? "NaN" : "finite");
}

/* A bad number in head (1, 0) spoils its own gradients and those of parameters it shares. */
Test(soft_backward, nonfinite_input_spoils_its_own_head_only)
{
    atn_context *context = fixture_context(2, NULL);
    for (int i = 0; i < 4; i += long_step()) {
        fixture_soft sound = long_make(i);
        double *sound_dout = random_dout(&sound);
        backward_run clean = backward_of(&sound, sound_dout, context);
        for (int where = 0; where < 4; where++) { /* q of a landmark, q of another, v, dout */
            fixture_soft f = long_make(i);
            double *dout = random_dout(&f);
            int64_t dv = f.c.value_dim, first = f.c.heads * f.n, last = first + f.n - 1;
            if (where < 2)
                f.q[(where ? last : first) * f.c.dim] = where ? INFINITY : NAN;
            else
                (where == 2 ? f.v : dout)[last * dv] = NAN;
            fixture_soft_load(&f);
            backward_run r = backward_of(&f, dout, context);
            cr_expect(r.status == ATN_NONFINITE && r.info.failures >= 1);
            for (int64_t head = 0; head < f.c.batch * f.c.heads; head++)
                for (int slot = SLOT_Q; slot <= SLOT_V; slot++)
                    expect_head(&r, slot, head / f.c.heads, head % f.c.heads, head == f.c.heads);
            for (int slot = SLOT_PARAMETERS; slot <= SLOT_PARAMETERS + ATN_PARAMETER_NORM_BIAS;
                 slot++)
                expect_head(&r, slot, 0, 0, true);
            for (int64_t h = 0; h < f.c.heads; h++)
                expect_head(&r, SLOT_PARAMETERS + ATN_PARAMETER_RESIDUAL, 0, h, h == 0);
            if (f.c.inverse.scope == ATN_SCOPE_MATRIX)
                cr_expect_eq(guarded_at(&r.slots[SLOT_Q], 0, 1, 5, 2),
                             guarded_at(&clean.slots[SLOT_Q], 0, 1, 5, 2));
            backward_free(&r);
            free(dout);
            fixture_soft_free(&f);
        }
        backward_free(&clean);
        free(sound_dout);
        fixture_soft_free(&sound);
    }
    atn_context_free(context);
}

/* Gradients that overflow are NaN, and said to be. */
Test(soft_backward, overflow_is_not_ok)
{
    atn_context *context = fixture_context(1, NULL);
    fixture_soft_case c = usual(ATN_SOFT, ATN_F32);
    fixture_soft f = make(&c, ATN_GRADIENT_CLOSED);
    double *dout = random_dout(&f);
    for (int64_t i = 0; i < f.n * c.value_dim; i++) {
        dout[i] = 1e30;
        f.v[i] *= 1e20;
    }
    fixture_soft_load(&f);
    backward_run r = backward_of(&f, dout, context);
    cr_expect(r.status == ATN_NONFINITE && r.info.failures == 1, "%s, %ld failures",
              atn_status_name(r.status), (long)r.info.failures);
    expect_head(&r, SLOT_Q, 0, 0, true);
    expect_head(&r, SLOT_Q, 1, 1, false);
    backward_free(&r);
    free(dout);
    fixture_soft_free(&f);
    atn_context_free(context);
}

/* Moves the last token of a head so far away that no landmark sees it: its value and dY meet in the
 * gradients of what is convolved alone. */
static void part_with(fixture_soft *f, double *dout, int64_t head, double far, double v, double dy)
{
    int64_t last = (head + 1) * f->n - 1;
    f->q[last * f->c.dim] = far;
    f->v[last * f->c.value_dim] = v;
    dout[last * f->c.value_dim] = dy;
}

/* Head 0 of two batch entries shares a filter, whose gradient leaves the range where all else is
 * finite: the head whose part does is spoilt, or both if only the sum does; never the other's. */
Test(soft_backward, a_filters_gradient_that_overflows_spoils_its_own_heads)
{
    static const struct {
        double v[2], dy[2];
        bool bad[2];
    } rows[] = {
        {{1, 1e30}, {1, 1e30}, {false, true}},
        {{1e30, 1}, {1e30, 1}, {true, false}},
        {{1e25, -1e25}, {1e25, 1e25}, {true, true}}, /* though the sum would be 0 */
        {{1.5e19, 1.5e19}, {1.5e19, 1.5e19}, {true, true}},
        {{1.5e19, 1e18}, {1.5e19, 1e18}, {false, false}},
    };
    atn_context *context = fixture_context(2, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture_soft_case c = usual(ATN_SOFT, ATN_F32);
        c.window = 3;
        fixture_soft f = make(&c, ATN_GRADIENT_CLOSED);
        double *dout = random_dout(&f);
        for (int b = 0; b < 2; b++)
            part_with(&f, dout, b * c.heads, 100, rows[i].v[b], rows[i].dy[b]);
        fixture_soft_load(&f);
        backward_run r = backward_of(&f, dout, context);
        int bad = rows[i].bad[0] + rows[i].bad[1];
        cr_expect((r.status == ATN_NONFINITE) == (bad > 0) && r.info.failures == bad,
                  "%zu: %s, %ld failures", i, atn_status_name(r.status), (long)r.info.failures);
        for (int64_t head = 0; head < 4; head++)
            for (int slot = SLOT_Q; slot <= SLOT_V; slot++)
                expect_head(&r, slot, head / 2, head % 2, head % 2 == 0 && rows[i].bad[head / 2]);
        for (int64_t h = 0; h < 2; h++)
            expect_head(&r, SLOT_PARAMETERS + ATN_PARAMETER_RESIDUAL, 0, h, h == 0 && bad > 0);
        backward_free(&r);
        free(dout);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}

/* All heads share the landmarks' convolution: a gradient of its weights that leaves the range
 * spoils all of them, and is told from one that does not. */
Test(soft_backward, a_convolutions_gradient_that_overflows_is_told)
{
    atn_context *context = fixture_context(2, NULL);
    for (int overflows = 0; overflows < 2; overflows++) {
        fixture_soft_case c = usual(ATN_SOFT, ATN_F32);
        c.sampling = ATN_SAMPLING_CONV;
        c.width = 8, c.height = 6, c.count = 12;
        fixture_soft f = make(&c, ATN_GRADIENT_CLOSED);
        int64_t cells = c.stride * c.stride;
        double *dout = random_dout(&f);
        for (int64_t i = 0; i < c.dim * cells; i++) /* no landmark holds channel 0 */
            f.sampling.weights[i / cells * c.dim * cells + i % cells] = 0;
        guarded_set(&f.sampling.tensors[0], f.sampling.weights);
        for (int64_t i = 2 * f.n * c.value_dim; i < 3 * f.n * c.value_dim; i++) {
            f.v[i] *= 1e12;
            dout[i] *= 1e12;
        }
        part_with(&f, dout, 2, overflows ? 1e17 : 1e6, 0, 0);
        fixture_soft_load(&f);
        backward_run r = backward_of(&f, dout, context);
        cr_expect((r.status == ATN_NONFINITE) == overflows && r.info.failures == 4 * overflows,
                  "%s, %ld failures", atn_status_name(r.status), (long)r.info.failures);
        for (int64_t head = 0; head < 4; head++)
            for (int slot = SLOT_Q; slot <= SLOT_V; slot++)
                expect_head(&r, slot, head / 2, head % 2, overflows);
        expect_head(&r, SLOT_PARAMETERS + ATN_PARAMETER_CONV, 0, 0, overflows);
        backward_free(&r);
        free(dout);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}

/* SOFT++'s default gradient goes with its default inverse. Another inverse runs forward as it is;
 * backward says what to set, and has touched nothing. */
Test(soft_backward, gradients_that_do_not_go_with_the_inverse)
{
    atn_context *context = fixture_context(2, NULL);
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int method = 1; method < ATN_INVERSE_COUNT; method++)
            for (int gradient = 0; gradient < ATN_GRADIENT_COUNT; gradient++) {
                fixture_soft_case c = usual((atn_operator)op, ATN_F64);
                c.inverse = inverse_for(method);
                fixture_soft f = make(&c, (atn_gradient)gradient);
                double *dout = random_dout(&f);
                cr_expect(fixture_soft_run(&f, context) >= 0, "forward: %s",
                          atn_last_error(context));
                backward_run r = backward_of(&f, dout, context);
                bool possible = goes_with(method, gradient);
                cr_expect(possible ? r.status >= 0 : r.status == ATN_ERR_UNSUPPORTED, "%s %s: %s",
                          atn_inverse_name(c.inverse.method),
                          atn_gradient_name((atn_gradient)gradient), atn_status_name(r.status));
                if (!possible)
                    cr_expect(
                        strstr(atn_last_error(context), "set gradient") &&
                            strstr(atn_last_error(context), atn_inverse_name(c.inverse.method)) &&
                            guarded_unwritten(&r.slots[SLOT_Q]) > 0,
                        "%s", atn_last_error(context));
                backward_free(&r);
                free(dout);
                fixture_soft_free(&f);
            }
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F64);
    atn_attention_shape shape = {1, 1, 4, 2, 2, 0};
    atn_plan *plan;
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = 2};
    desc.gradient = ATN_GRADIENT_COUNT;
    cr_expect_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_ERR_VALUE);
    atn_context_free(context);
}

/* Without a start X = 0, a constant: what is left is the residual's gradient. */
Test(soft_backward, adaptive_without_a_start)
{
    atn_context *context = fixture_context(2, NULL);
    for (int gradient = 0; gradient <= ATN_GRADIENT_STEPS; gradient++) {
        fixture_soft_case c = usual(ATN_SOFT, ATN_F64);
        c.inverse = atn_inverse_defaults(ATN_INVERSE_NR_ADAPTIVE);
        c.scale_value = 0.02, c.window = 3, c.batch = c.heads = 1;
        fixture_soft f = make(&c, (atn_gradient)gradient);
        double *dout = random_dout(&f), *grad = data_allocate(f.n * c.dim);
        backward_run r = backward_of(&f, dout, context);
        cr_expect(r.status == ATN_NOT_CONVERGED && r.info.failures == 1 &&
                  f.infos[0].stop == ATN_STOP_NO_ALPHA);
        guarded_get(&r.slots[SLOT_Q], grad);
        cr_expect_eq(dot(f.n * c.dim, grad, grad), 0);
        cr_expect(guarded_at(&r.slots[SLOT_V], 0, 0, 0, 0) != 0);
        backward_free(&r);
        free(grad);
        free(dout);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}

/* One alpha for the batch: the head whose A has the largest norm hears of all the others. */
Test(soft_backward, shared_alpha_couples_the_heads)
{
    atn_context *context = fixture_context(2, NULL);
    for (int scope = ATN_SCOPE_MATRIX; scope <= ATN_SCOPE_BATCH; scope++) {
        fixture_soft_case c = usual(ATN_SOFTPP, ATN_F64);
        c.inverse = inverse_for(ATN_INVERSE_NR_SOFTPP);
        c.inverse.iterations = 4;
        c.inverse.scope = (atn_alpha_scope)scope;
        fixture_soft f = make(&c, ATN_GRADIENT_STEPS);
        for (int64_t i = 0; i < f.n * c.dim; i++)
            f.q[2 * f.n * c.dim + i] /= 4; /* head (1, 0): tokens closer, the largest norm */
        fixture_soft_load(&f);
        double *dout = random_dout(&f);
        memset(dout + 2 * f.n * c.value_dim, 0, (size_t)(f.n * c.value_dim) * sizeof *dout);
        backward_run r = backward_of(&f, dout, context);
        double entry = guarded_at(&r.slots[SLOT_Q], 1, 0, 1, 0);
        cr_expect(scope == ATN_SCOPE_BATCH ? entry != 0 : entry == 0, "scope %d: %g", scope, entry);
        backward_free(&r);
        free(dout);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}

Test(soft_backward, empty_shapes)
{
    static const atn_attention_shape shapes[] = {
        {0, 2, 6, 3, 4, 0}, {1, 1, 0, 3, 4, 0}, {1, 1, 6, 3, 0, 0}};
    atn_context *context = fixture_context(2, NULL);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const atn_attention_shape *s = &shapes[i];
        atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_F32);
        desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_WINDOW, .stride = 2};
        const int64_t widths[] = {s->dim, s->value_dim, s->value_dim, s->dim, s->value_dim};
        guarded t[5]; /* q, v, dout and the gradients of q and v */
        atn_tensor views[5];
        atn_plan *plan;
        staged on_device = staged_open(context);
        for (int k = 0; k < 5; k++)
            t[k] = guarded_make(ATN_F32, GUARDED_DENSE, s->batch, s->heads, s->tokens, widths[k]);
        atn_attention_inputs inputs = {.q = staged_input(&on_device, &t[0], &views[0]),
                                       .v = staged_input(&on_device, &t[1], &views[1])};
        const atn_tensor *dout = staged_input(&on_device, &t[2], &views[2]);
        atn_gradients gradients = {.q = staged_output(&on_device, &t[3], &views[3]),
                                   .v = staged_output(&on_device, &t[4], &views[4])};
        cr_assert_eq(atn_attention_plan(context, &desc, s, &plan), ATN_OK);
        cr_expect_eq(atn_attention_backward(plan, &inputs, dout, &gradients, NULL), ATN_OK);
        atn_plan_free(plan);
        staged_close(&on_device);
        for (int64_t j = 0; j < s->batch * s->heads * s->tokens * s->dim; j++)
            cr_expect_eq(guarded_at(&t[3], 0, 0, j / s->dim, j % s->dim), 0, "shape %zu", i);
        cr_expect(guarded_damaged(&t[3]) == 0 && guarded_damaged(&t[4]) == 0, "shape %zu", i);
        for (int k = 0; k < 5; k++)
            guarded_free(&t[k]);
    }
    atn_context_free(context);
}

/* dV overflows, and only dV: V = 0, so that dQ = 0. Eight tokens r e_i, which are the landmarks,
 * and 0: with s r^2 = log(2) K is 1/2 for 0 and a landmark and 1/4 for two landmarks, A^-1 T = T
 * / 2.75, and dV of the last token is 4 / 2.75 T, T = 3.25 dY. With the residual r is large, A = P
 * = I and dV = dY, to which it adds 2 dY. */
Test(soft_backward, a_gradient_of_values_alone_that_overflows)
{
    enum { N = 9, M = 8 };
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 4; i++) {
        bool residual = i / 2, overflows = i % 2;
        fixture_soft_case c = usual(ATN_SOFT, ATN_F32);
        c.batch = c.heads = c.value_dim = 1;
        c.height = c.width = 3;
        c.count = c.dim = M;
        c.window = residual;
        c.scale = ATN_SCALE_VALUE;
        c.scale_value = residual ? 100 : log(2);
        fixture_soft f = make(&c, ATN_GRADIENT_CLOSED);
        double dout[N], size = overflows ? 1 : 0.25;
        for (int t = 0; t < N; t++) {
            for (int e = 0; e < M; e++)
                f.q[t * M + e] = t == e;
            f.v[t] = 0;
            dout[t] = (double)FLT_MAX * size * (residual ? 0.6 : 0.8 / 3.25);
        }
        if (residual) {
            f.filter[0] = 2;
            guarded_set(&f.filter_view, f.filter);
        }
        fixture_soft_load(&f);
        backward_run r = backward_of(&f, dout, context);
        cr_expect_eq(r.status, overflows ? ATN_NONFINITE : ATN_OK, "%d: %s", i,
                     atn_status_name(r.status));
        expect_head(&r, SLOT_Q, 0, 0, overflows);
        expect_head(&r, SLOT_V, 0, 0, overflows);
        backward_free(&r);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}
