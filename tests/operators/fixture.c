/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conditioning.h"
#include "data.h"
#include "dense_soft.h"
#include "filters.h"
#include "newton.h"
#include "pairs.h"
#include "sampling.h"
#include "staged.h"

atn_device fixture_device(void)
{
    const char *name = getenv("ATTNUM_TEST_DEVICE");
    return name && strcmp(name, "cuda") == 0 ? ATN_CUDA : ATN_CPU;
}

bool fixture_runs(const atn_operator_info *info)
{
    unsigned needed = fixture_device() == ATN_CUDA ? ATN_CAN_CUDA : ATN_CAN_CPU;
    return info->capabilities & needed;
}

int fixture_next(int op)
{
    int next = op + 1;
    while (next < ATN_OPERATOR_COUNT && !fixture_runs(atn_operator_get((atn_operator)next)))
        next++;
    if (op < 0 && next == ATN_OPERATOR_COUNT) {
        fprintf(stderr, "no operator runs on %s\n", atn_device_name(fixture_device()));
        abort();
    }
    return next;
}

bool fixture_looks_at(int k)
{
    return fixture_device() == ATN_CPU || pairs_all() || k <= 3 || k == 6 || k == 11 || k == 20;
}

/* Before any test: without the instruction set that ATTNUM_ISA asks for, the program is skipped. If
 * ATTNUM_TEST_CASES is "shared" each set that the processor has runs a share of the combinations,
 * because computing the references takes the time, and they are the same for all sets. */
__attribute__((constructor)) static void choose_cases(void)
{
    const char *reason, *cases = getenv("ATTNUM_TEST_CASES");
    atn_isa mine, other;
    atn_status status = atn_isa_choose(ATN_ISA_AUTO, &mine, &reason);
    if (status != ATN_OK) {
        fprintf(stderr, "ATTNUM_ISA is %s: %s\n", getenv("ATTNUM_ISA"), reason);
        _exit(status == ATN_ERR_DEVICE ? 77 : 2);
    }
    if (!cases || strcmp(cases, "shared") != 0)
        return;
    int index = 0, count = 0;
    for (int isa = ATN_ISA_AUTO + 1; isa < ATN_ISA_COUNT; isa++)
        if (atn_isa_choose((atn_isa)isa, &other, &reason) == ATN_OK) {
            index += other < mine;
            count++;
        }
    pairs_share(index, count);
}

atn_context *fixture_context(int threads, allocator_counts *counts)
{
    atn_context_options options = {.device = fixture_device(), .threads = threads};
    atn_context *context;
    if (counts)
        options.allocator = allocator_counting(counts);
    if (atn_context_create(&options, &context) != ATN_OK)
        abort();
    return context;
}

static double *random_values(atn_dtype dtype, uint64_t seed, int64_t count, double factor)
{
    double *values = data_allocate(count);
    data_normal(seed, count, values);
    for (int64_t i = 0; i < count; i++)
        values[i] *= factor;
    data_round(dtype, count, values);
    return values;
}

fixture_sampling fixture_sampling_make(atn_sampling_kind kind, atn_dtype dtype, int64_t height,
                                       int64_t width, int64_t d, int64_t stride, int64_t count,
                                       bool affine, uint64_t seed)
{
    int64_t n = height * width, inner = d * stride * stride;
    fixture_sampling s = {.desc = {.kind = kind, .height = height, .width = width}};
    s.desc.stride = stride;
    s.desc.count = count;
    if (kind == ATN_SAMPLING_INDICES) {
        s.indices = malloc((size_t)n * sizeof *s.indices);
        data_permutation(seed, n, s.indices);
        s.desc.indices = s.indices;
    }
    if (ref_sampling_chooses(kind)) {
        s.uniforms = data_allocate(2 * n);
        for (int64_t i = 0; i < 2 * n; i++)
            s.uniforms[i] = (double)(data_next(&seed) >> 11) * 0x1p-53;
        s.desc.uniforms = s.uniforms;
        s.desc.uniform_count = 2 * n;
        s.desc.steps = 2;
        s.desc.scale = 0.7 / sqrt((double)d);
        s.desc.ridge = 0.02;
    }
    if (kind == ATN_SAMPLING_CONV || kind == ATN_SAMPLING_CONV_CODE) {
        s.weights = random_values(dtype, seed + 1, d * inner, 1 / sqrt((double)inner));
        s.tensors[0] = guarded_make(dtype, GUARDED_DENSE, 1, d, d, stride * stride);
        guarded_set(&s.tensors[0], s.weights);
        s.desc.weights = s.tensors[0].view;
    }
    if (kind == ATN_SAMPLING_CONV_CODE && affine) {
        s.norm_weight = random_values(dtype, seed + 2, d, 1.5);
        s.norm_bias = random_values(dtype, seed + 3, d, 0.5);
        for (int i = 1; i < 3; i++)
            s.tensors[i] = guarded_make(dtype, GUARDED_DENSE, 1, 1, 1, d);
        guarded_set(&s.tensors[1], s.norm_weight);
        guarded_set(&s.tensors[2], s.norm_bias);
        s.desc.norm_weight = s.tensors[1].view;
        s.desc.norm_bias = s.tensors[2].view;
    }
    return s;
}

void fixture_sampling_free(fixture_sampling *s)
{
    for (int i = 0; i < 3; i++)
        guarded_free(&s->tensors[i]);
    free(s->norm_bias);
    free(s->norm_weight);
    free(s->weights);
    free(s->uniforms);
    free(s->indices);
}

int64_t fixture_landmark_count(const fixture_sampling *sampling, int64_t n)
{
    const atn_sampling *s = &sampling->desc;
    switch (s->kind) {
    case ATN_SAMPLING_POOL:
    case ATN_SAMPLING_CONV:
    case ATN_SAMPLING_CONV_CODE:
        return s->height / s->stride * (s->width / s->stride);
    case ATN_SAMPLING_WINDOW:
        return (n + s->stride - 1) / s->stride;
    default:
        return s->count;
    }
}

void fixture_landmarks(const fixture_sampling *sampling, int64_t n, int64_t d, const double *tokens,
                       double *landmarks)
{
    const atn_sampling *s = &sampling->desc;
    switch (s->kind) {
    case ATN_SAMPLING_POOL:
        ref_pool(s->height, s->width, d, s->stride, tokens, landmarks);
        break;
    case ATN_SAMPLING_WINDOW:
        ref_window(n, d, s->stride, tokens, landmarks);
        break;
    case ATN_SAMPLING_CONV:
    case ATN_SAMPLING_CONV_CODE:
        ref_conv(s->height, s->width, d, s->stride, sampling->weights, tokens, landmarks);
        if (s->kind == ATN_SAMPLING_CONV_CODE)
            ref_norm_gelu(fixture_landmark_count(sampling, n), d, sampling->norm_weight,
                          sampling->norm_bias, landmarks);
        break;
    default:
        if (ref_sampling_chooses(s->kind)) {
            if (ref_chosen_landmarks(s, n, d, tokens, landmarks) != ATN_OK)
                abort();
            break;
        }
        for (int64_t l = 0; l < s->count; l++) {
            int64_t token = s->kind == ATN_SAMPLING_FIRST ? l : sampling->indices[l];
            memcpy(landmarks + l * d, tokens + token * d, (size_t)d * sizeof *tokens);
        }
    }
}

atn_status fixture_inverse(atn_context *context, const atn_inverse_desc *desc, const guarded *a,
                           guarded *x, atn_inverse_info *infos, atn_trace *traces)
{
    staged s = staged_open(context);
    atn_tensor view_a, view_x;
    const atn_tensor *from = staged_input(&s, a, &view_a);
    atn_tensor *to = staged_output(&s, x, &view_x);
    atn_status status = atn_inverse(context, desc, from, to, infos, traces);
    staged_close(&s);
    return status;
}

atn_status fixture_inverse_backward(atn_context *context, const atn_inverse_desc *desc,
                                    atn_gradient gradient, const guarded *a, const guarded *dx,
                                    guarded *da, atn_inverse_info *infos)
{
    staged s = staged_open(context);
    atn_tensor view_a, view_dx, view_da;
    const atn_tensor *from = staged_input(&s, a, &view_a), *grad = staged_input(&s, dx, &view_dx);
    atn_tensor *to = staged_output(&s, da, &view_da);
    atn_status status = atn_inverse_backward(context, desc, gradient, from, grad, to, infos);
    staged_close(&s);
    return status;
}

/* |I - alpha B|_1, B = A or A^2. */
static double start_norm(int64_t m, const double *a, bool square, double alpha)
{
    double *b = data_allocate(m * m);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            double entry = a[i * m + j];
            if (square) {
                entry = 0;
                for (int64_t k = 0; k < m; k++)
                    entry += a[i * m + k] * a[k * m + j];
            }
            b[i * m + j] = (i == j) - alpha * entry;
        }
    double norm = ref_norm1(m, b);
    free(b);
    return norm;
}

bool fixture_iterates(int method)
{
    return method < ATN_INVERSE_EIG;
}

void fixture_interval(atn_inverse_desc *desc)
{
    bool chebyshev =
        desc->method >= ATN_INVERSE_CHEBYSHEV_2 && desc->method <= ATN_INVERSE_CHEBYSHEV_9;
    desc->interval_low = chebyshev ? 0.01 : 0;
    desc->interval_high = chebyshev ? 100 : 0;
}

void fixture_filter(const atn_inverse_desc *desc, int64_t m, const double *a, double alpha,
                    double *x)
{
    ref_iteration iteration;
    atn_status status = ref_iteration_of(desc, m, a, &iteration)
                            ? ref_iteration_matrix(m, a, &iteration, desc->iterations, x)
                            : ref_filter_matrix(m, a, alpha, desc->ridge, desc->iterations, x);
    if (status != ATN_OK)
        abort();
}

void fixture_alpha(const atn_inverse_desc *desc, int64_t count, int64_t m, const double *a,
                   double *alpha, int *halvings)
{
    bool shared = desc->scope == ATN_SCOPE_BATCH, square = desc->search == ATN_SEARCH_SQUARE;
    for (int64_t i = 0; i < count; i++) {
        int64_t first = shared ? 0 : i, end = shared ? count : i + 1;
        double norm = 0;
        for (int64_t j = first; j < end; j++)
            norm = fmax(norm, ref_norm1(m, a + j * m * m));
        alpha[i] = desc->alpha > 0 ? desc->alpha : norm > 0 ? desc->numerator / (norm * norm) : 0;
        for (halvings[i] = 0; desc->search != ATN_SEARCH_NONE; halvings[i]++) {
            double worst = 0;
            for (int64_t j = first; j < end; j++)
                worst = fmax(worst, start_norm(m, a + j * m * m, square, alpha[i]));
            if (worst <= desc->search_limit)
                break;
            if (halvings[i] == desc->search_cap) {
                alpha[i] = desc->search_accepts_last ? alpha[i] : 0;
                break;
            }
            alpha[i] /= 2;
        }
    }
}

static void plan_description(fixture_soft *f)
{
    const fixture_soft_case *c = &f->c;
    f->desc = atn_attention_defaults(c->op, c->dtype);
    f->desc.scale = c->scale;
    f->desc.scale_value = c->scale_value;
    f->desc.distance = c->distance;
    f->desc.sampling = f->sampling.desc;
    f->desc.inverse = c->inverse;
    if (c->window > 0) {
        f->filter = random_values(c->dtype, c->seed + 9, c->heads * c->window * c->window, 1);
        /* heads with gaps between them; what goes to a device is dense (atn_attention_upload) */
        guarded_layout layout = fixture_device() == ATN_CPU ? GUARDED_HEADS : GUARDED_DENSE;
        f->filter_view = guarded_make(c->dtype, layout, 1, c->heads, c->window, c->window);
        guarded_set(&f->filter_view, f->filter);
        f->desc.residual = f->filter_view.view;
        f->desc.residual_height = c->height;
        f->desc.residual_width = c->width;
    }
    f->shape = (atn_attention_shape){c->batch, c->heads, f->n, c->dim, c->value_dim, 0};
}

fixture_soft fixture_soft_make(const fixture_soft_case *c)
{
    fixture_soft f = {.c = *c, .n = c->height * c->width};
    int64_t count = c->batch * c->heads;
    f.q = random_values(c->dtype, c->seed + 7, count * f.n * c->dim, 1);
    f.v = random_values(c->dtype, c->seed + 8, count * f.n * c->value_dim, 1);
    f.q_view = guarded_make(c->dtype, c->layout, c->batch, c->heads, f.n, c->dim);
    f.v_view = guarded_make(c->dtype, c->layout, c->batch, c->heads, f.n, c->value_dim);
    f.out = guarded_make(c->dtype, c->layout, c->batch, c->heads, f.n, c->value_dim);
    f.sampling = fixture_sampling_make(c->sampling, c->dtype, c->height, c->width, c->dim,
                                       c->stride, c->count, true, c->seed);
    f.m = fixture_landmark_count(&f.sampling, f.n);
    plan_description(&f);
    fixture_soft_load(&f);
    f.infos = calloc((size_t)count + 1, sizeof *f.infos);
    f.a = data_allocate(count * f.m * f.m);
    f.want = data_allocate(count * f.n * c->value_dim);
    return f;
}

void fixture_soft_free(fixture_soft *f)
{
    free(f->want);
    free(f->a);
    free(f->infos);
    fixture_sampling_free(&f->sampling);
    guarded_free(&f->filter_view);
    guarded_free(&f->out);
    guarded_free(&f->v_view);
    guarded_free(&f->q_view);
    free(f->filter);
    free(f->v);
    free(f->q);
}

void fixture_soft_load(fixture_soft *f)
{
    guarded_set(&f->q_view, f->q);
    guarded_set(&f->v_view, f->v);
}

atn_status fixture_soft_forward(fixture_soft *f, atn_context *context, atn_plan *plan, guarded *out,
                                atn_attention_info *info)
{
    staged s = staged_open(context);
    atn_tensor q, v, y;
    guarded_poison(out);
    atn_attention_inputs inputs = {.q = staged_input(&s, &f->q_view, &q),
                                   .v = staged_input(&s, &f->v_view, &v)};
    atn_status status = atn_attention_forward(plan, &inputs, staged_output(&s, out, &y), info);
    staged_close(&s);
    return status;
}

atn_status fixture_soft_run(fixture_soft *f, atn_context *context)
{
    atn_plan *plan;
    atn_attention_info info = {.inverses = f->infos};
    staged s = staged_open(context);
    atn_attention_desc desc = staged_desc(&s, &f->desc, &f->shape);
    atn_status status = atn_attention_plan(context, &desc, &f->shape, &plan);
    if (status == ATN_OK)
        status = fixture_soft_forward(f, context, plan, &f->out, &info);
    atn_plan_free(plan);
    staged_close(&s);
    return status;
}

/* One head of want. x is room for m x m. */
static void expect_head(fixture_soft *f, int64_t i, double s, double alpha, const double *landmarks,
                        double *x)
{
    const fixture_soft_case *c = &f->c;
    int64_t n = f->n, m = f->m, d = c->dim, dv = c->value_dim;
    const double *a = f->a + i * m * m;
    double *want = f->want + i * n * dv;
    bool iterates = fixture_iterates(c->inverse.method);
    if (iterates)
        fixture_filter(&c->inverse, m, a, alpha, x);
    if (ref_soft(n, m, d, dv, f->q + i * n * d, landmarks, f->v + i * n * dv, s,
                 iterates ? x : NULL, c->op == ATN_SOFTPP, NULL, want) < 0)
        abort();
    if (c->window > 0)
        ref_depthwise(c->height, c->width, dv, c->window,
                      f->filter + i % c->heads * c->window * c->window, f->v + i * n * dv, want);
    f->kappa = fmax(f->kappa, ref_inverse_condition(&c->inverse, m, a, alpha));
}

void fixture_soft_expect(fixture_soft *f)
{
    const fixture_soft_case *c = &f->c;
    int64_t n = f->n, m = f->m, d = c->dim, count = c->batch * c->heads;
    double s = c->scale == ATN_SCALE_HEAD    ? 1 / (2 * sqrt((double)d))
               : c->scale == ATN_SCALE_EMBED ? 1 / (2 * sqrt((double)(c->heads * d)))
                                             : c->scale_value;
    double *landmarks = data_allocate(count * m * d), *x = data_allocate(m * m);
    double *alpha = data_allocate(count);
    int *halvings = calloc((size_t)count + 1, sizeof *halvings);
    for (int64_t i = 0; i < count; i++) {
        double *l = landmarks + i * m * d;
        fixture_landmarks(&f->sampling, n, d, f->q + i * n * d, l);
        ref_gaussian(m, m, d, l, l, s, f->a + i * m * m);
    }
    fixture_alpha(&c->inverse, count, m, f->a, alpha, halvings);
    f->kappa = 0;
    for (int64_t i = 0; i < count; i++)
        expect_head(f, i, s, alpha[i], landmarks + i * m * d, x);
    free(halvings);
    free(alpha);
    free(x);
    free(landmarks);
}

ref_verdict fixture_soft_judge(const fixture_soft *f, double *ratio)
{
    const fixture_soft_case *c = &f->c;
    int64_t rows = f->n, cols = c->value_dim, n = f->n > f->m ? f->n : f->m;
    bool conv = c->sampling == ATN_SAMPLING_CONV || c->sampling == ATN_SAMPLING_CONV_CODE;
    if (conv && c->dim * c->stride * c->stride > n) /* the landmarks' own sums */
        n = c->dim * c->stride * c->stride;
    double u = atn_dtype_roundoff(c->dtype);
    ref_verdict worst = REF_PASS;
    *ratio = 0;
    for (int64_t i = 0; i < c->batch * c->heads; i++) {
        const double *want = f->want + i * rows * cols;
        ref_difference difference = guarded_compare(&f->out, i / c->heads, i % c->heads, want);
        double one;
        ref_verdict verdict = ref_judge_forward(&difference, f->kappa, n, u, &one);
        if (verdict != REF_FAIL && rows > 1 &&
            !ref_discriminates(rows, cols, want, 10 * f->kappa * (double)n * u))
            verdict = REF_SKIPPED;
        worst = verdict > worst && worst != REF_FAIL ? verdict : worst;
        *ratio = one > *ratio ? one : *ratio;
    }
    return worst;
}

/* ---- Calls whose arrays lie on the device ---- */

/* A sampling is part of a description. */
static atn_sampling place_sampling(staged *s, const atn_sampling *sampling)
{
    atn_attention_desc desc = {.sampling = *sampling};
    return staged_desc(s, &desc, &(atn_attention_shape){0}).sampling;
}

atn_status fixture_sample(atn_context *context, const atn_sampling *sampling,
                          const atn_tensor *tokens, atn_tensor *landmarks)
{
    staged s = staged_open(context);
    atn_sampling placed = place_sampling(&s, sampling);
    atn_tensor q = staged_view(&s, tokens), l = staged_view(&s, landmarks);
    atn_status status = atn_sample(context, &placed, &q, &l);
    staged_fetch(&s, landmarks, &l);
    staged_close(&s);
    return status;
}

atn_status fixture_sampling_count(atn_context *context, const atn_sampling *sampling,
                                  int64_t tokens, int64_t dim, int64_t *count)
{
    staged s = staged_open(context);
    atn_sampling placed = place_sampling(&s, sampling);
    atn_status status = atn_sampling_count(context, &placed, tokens, dim, count);
    staged_close(&s);
    return status;
}

atn_status fixture_gaussian_self(atn_context *context, atn_distance distance, double scale,
                                 const atn_tensor *landmarks, atn_tensor *a)
{
    staged s = staged_open(context);
    atn_tensor l = staged_view(&s, landmarks), out = staged_view(&s, a);
    atn_status status = atn_gaussian_self(context, distance, scale, &l, &out);
    staged_fetch(&s, a, &out);
    staged_close(&s);
    return status;
}

atn_status fixture_gaussian_cross(atn_context *context, atn_distance distance, double scale,
                                  const atn_tensor *x, const atn_tensor *y, atn_tensor *out)
{
    staged s = staged_open(context);
    atn_tensor tx = staged_view(&s, x), ty = staged_view(&s, y), to = staged_view(&s, out);
    atn_status status = atn_gaussian_cross(context, distance, scale, &tx, &ty, &to);
    staged_fetch(&s, out, &to);
    staged_close(&s);
    return status;
}
