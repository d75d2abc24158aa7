/* SPDX-License-Identifier: BSD-3-Clause */
/* The fused passes of SOFT and SOFT++ (operators/soft/cuda_fused.h): every sum against f64 and a
 * bound derived from what is rounded, and the output by the same-precision rule: its error is at
 * most twice that of the plain chain in the same type (P formed, rounded and multiplied), and 2
 * ulps. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device.h"
#include "data.h"
#include "fixture.h"
#include "operators/soft/cuda_fused.h"
#include "staged.h"

typedef struct {
    atn_dtype dtype;
    int64_t heads, n, m, d, dv;
    bool strided, softpp, clamp;
    double offset; /* added to every token */
} fused_case;

/* A case, its inputs as the dtype holds them, and answers in f64. */
typedef struct {
    fused_case c;
    double s;
    soft_fused f;
    double *q, *v, *landmarks; /* landmarks: m x d, hold values of the dtype */
    double *middle;            /* m x m: W = middle U */
    double *p, *p_error;       /* n x m, of the head looked at: K(Q, L), its relative error */
    guarded q_view, v_view, y_view;
    double *sums, *weights, *out; /* what the passes made: U, W in f32, Y */
    int *nonfinite;
} fused_run;

static const atn_dtype types[] = {ATN_BF16, ATN_F16, ATN_TF32};

static const char *label(const fused_case *c)
{
    static char text[200];
    snprintf(text, sizeof text, "%s h=%d n=%d m=%d d=%d dv=%d%s%s%s offset %g",
             atn_dtype_name(c->dtype), (int)c->heads, (int)c->n, (int)c->m, (int)c->d, (int)c->dv,
             c->strided ? " strided" : "", c->softpp ? " softpp" : " soft",
             c->clamp ? " clamped" : " expanded", c->offset);
    return text;
}

/* Rows with gaps that are multiples of 16 bytes. */
static guarded make_view(const fused_case *c, int64_t cols)
{
    int64_t gap = c->strided ? 8 : 0;
    guarded g = guarded_make(c->dtype, GUARDED_DENSE, 1, c->heads, c->n + gap / 8, cols + gap);
    g.view.rows = c->n;
    g.view.cols = cols;
    return g;
}

static double random_normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 11) * 0x1p-53;
    }
    return sum;
}

static void as_held(atn_dtype type, int64_t count, double *x)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t held;
        atn_convert(type, &held, ATN_F64, &x[i], 1);
        atn_convert(ATN_F64, &x[i], type, &held, 1);
    }
}

/* Memory of tf32 is f32. */
static atn_dtype memory_of(atn_dtype type)
{
    return type == ATN_TF32 ? ATN_F32 : type;
}

static double square_distance(int64_t d, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++)
        sum += (x[c] - y[c]) * (x[c] - y[c]);
    return sum;
}

static double kernel_at(const fused_run *r, int64_t head, int64_t i, int64_t j)
{
    const fused_case *c = &r->c;
    return exp(-r->s * square_distance(c->d, r->q + (head * c->n + i) * c->d,
                                       r->landmarks + (head * c->m + j) * c->d));
}

/* Gauss-Jordan without pivoting: A + 0.1 I is positive definite. */
static void invert(int64_t m, double *a)
{
    for (int64_t k = 0; k < m; k++) {
        double pivot = 1 / a[k * m + k];
        a[k * m + k] = 1;
        for (int64_t j = 0; j < m; j++)
            a[k * m + j] *= pivot;
        for (int64_t i = 0; i < m; i++) {
            double factor = a[i * m + k];
            if (i == k)
                continue;
            a[i * m + k] = 0;
            for (int64_t j = 0; j < m; j++)
                a[i * m + j] -= factor * a[k * m + j];
        }
    }
}

/* (A + 0.1 I)^-1, and for SOFT++ D^-1/2 on both sides. */
static void make_middle(fused_run *r, int64_t head)
{
    int64_t m = r->c.m;
    double *x = r->middle + head * m * m, roots[SOFT_FUSED_MOST];
    const double *l = r->landmarks + head * m * r->c.d;
    for (int64_t i = 0; i < m; i++) {
        roots[i] = 0;
        for (int64_t j = 0; j < m; j++) {
            double a = exp(-r->s * square_distance(r->c.d, l + i * r->c.d, l + j * r->c.d));
            x[i * m + j] = a + (i == j ? 0.1 : 0);
            roots[i] += a;
        }
    }
    invert(m, x);
    for (int64_t i = 0; i < m && r->c.softpp; i++)
        for (int64_t j = 0; j < m; j++)
            x[i * m + j] /= sqrt(roots[i] * roots[j]);
}

/* Landmarks are tokens moved a little: some at hand for every token, none the same. */
static void make_inputs(fused_run *r, uint64_t seed)
{
    const fused_case *c = &r->c;
    int64_t tokens = c->heads * c->n, marks = c->heads * c->m;
    for (int64_t i = 0; i < tokens * c->d; i++)
        r->q[i] = random_normal(&seed) + c->offset;
    for (int64_t i = 0; i < tokens * c->dv; i++)
        r->v[i] = random_normal(&seed) + 0.3;
    as_held(memory_of(c->dtype), tokens * c->d, r->q);
    as_held(memory_of(c->dtype), tokens * c->dv, r->v);
    for (int64_t j = 0; j < marks; j++)
        for (int64_t e = 0; e < c->d; e++)
            r->landmarks[j * c->d + e] = r->q[(j / c->m * c->n + j % c->m * 7 % c->n) * c->d + e] +
                                         0.5 * random_normal(&seed);
    as_held(c->dtype, marks * c->d, r->landmarks);
    for (int64_t h = 0; h < c->heads; h++)
        make_middle(r, h);
}

static fused_run make_run(const fused_case *c, uint64_t seed)
{
    fused_run r = {.c = *c, .s = 0.5 / sqrt((double)c->d)};
    int64_t h = c->heads;
    r.q = data_allocate(h * c->n * c->d);
    r.v = data_allocate(h * c->n * c->dv);
    r.landmarks = data_allocate(h * c->m * c->d);
    r.middle = data_allocate(h * c->m * c->m);
    r.p = data_allocate(c->n * c->m);
    r.p_error = data_allocate(c->n * c->m);
    r.sums = data_allocate(h * c->m * c->dv);
    r.weights = data_allocate(h * c->m * c->dv);
    r.out = data_allocate(h * c->n * c->dv);
    r.nonfinite = calloc((size_t)h, sizeof *r.nonfinite);
    r.q_view = make_view(c, c->d);
    r.v_view = make_view(c, c->dv);
    r.y_view = make_view(c, c->dv);
    make_inputs(&r, seed);
    guarded_set(&r.q_view, r.q);
    guarded_set(&r.v_view, r.v);
    return r;
}

static void free_run(fused_run *r)
{
    double *const all[] = {r->q,       r->v,    r->landmarks, r->middle, r->p,
                           r->p_error, r->sums, r->weights,   r->out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(r->nonfinite);
    guarded_free(&r->q_view);
    guarded_free(&r->v_view);
    guarded_free(&r->y_view);
}

/* ---- Running ---- */

/* Whether the device has the shared memory for a case; of capability 8.0 and 9.0 all have. */
static bool has_room(const atn_context *context, const fused_case *c)
{
    atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, c->dtype);
    atn_attention_shape shape = {1, c->heads, c->n, c->d, c->dv, 0};
    desc.distance = ATN_DISTANCE_CLAMPED;
    desc.inverse = atn_inverse_defaults(ATN_INVERSE_NR_SOFT);
    return soft_fused_fits(&desc, &shape, c->m, device_shared(context), NULL);
}

/* Each head's `count` numbers, as far apart as the passes are told. */
static const float *stage_heads(staged *s, const fused_case *c, int64_t count, const double *x)
{
    int64_t stride = c->m * 64;
    float *floats = calloc((size_t)(c->heads * stride), sizeof *floats);
    if (!floats)
        abort();
    for (int64_t i = 0; i < c->heads * count; i++)
        floats[i / count * stride + i % count] = (float)x[i];
    const float *there = staged_bytes(s, floats, (size_t)(c->heads * stride) * sizeof *floats);
    free(floats);
    return there;
}

/* U from the device's partial sums, W from it. */
static void finish_weights(fused_run *r, const float *partials)
{
    int64_t m = r->c.m, dv = r->c.dv, size = m * dv;
    for (int64_t h = 0; h < r->c.heads; h++) {
        double *u = r->sums + h * size, *w = r->weights + h * size;
        memset(u, 0, (size_t)size * sizeof *u);
        for (int64_t k = 0; k < r->f.chunks; k++)
            for (int64_t e = 0; e < size; e++)
                u[e] += (double)partials[(h * r->f.chunks + k) * r->f.partial_stride + e];
        for (int64_t i = 0; i < m; i++)
            for (int64_t c = 0; c < dv; c++) {
                double sum = 0;
                for (int64_t j = 0; j < m; j++)
                    sum += r->middle[(h * m + i) * m + j] * u[j * dv + c];
                w[i * dv + c] = (double)(float)sum;
            }
    }
}

static void run_passes(fused_run *r, atn_context *context)
{
    const fused_case *c = &r->c;
    atn_attention_shape shape = {.batch = 1, .heads = c->heads, .tokens = c->n};
    staged s = staged_open(context);
    atn_tensor q, v, y;
    r->f = (soft_fused){.s = r->s, .clamp = c->clamp, .m = c->m};
    soft_fused_chunks(&shape, &r->f.chunk, &r->f.chunks);
    r->f.landmarks = stage_heads(&s, c, c->m * c->d, r->landmarks);
    r->f.nonfinite = (int *)staged_bytes(&s, r->nonfinite, (size_t)c->heads * sizeof(int));
    staged_input(&s, &r->q_view, &q);
    staged_input(&s, &r->v_view, &v);
    guarded_poison(&r->y_view);
    staged_output(&s, &r->y_view, &y);
    r->f.head_stride = c->m * 64; /* both fit */
    r->f.partial_stride = c->m * c->dv + 4;
    int64_t count = c->heads * r->f.chunks * r->f.partial_stride;
    float *partials = malloc((size_t)(count + 1) * sizeof *partials);
    for (int64_t e = 0; e < count; e++)
        partials[e] = NAN;
    r->f.partials = (float *)staged_bytes(&s, partials, (size_t)count * sizeof *partials);
    cr_assert_eq(soft_fused_sum(context, &r->f, &q, &v), ATN_OK, "%s: %s", label(c),
                 atn_last_error(context));
    cr_assert_eq(atn_download(context, partials, r->f.partials, (size_t)count * sizeof *partials),
                 ATN_OK, "%s: %s", label(c), atn_last_error(context));
    finish_weights(r, partials);
    r->f.weights = stage_heads(&s, c, c->m * c->dv, r->weights);
    cr_assert_eq(soft_fused_write(context, &r->f, &q, &y), ATN_OK, "%s", label(c));
    cr_assert_eq(soft_fused_finish(context, &r->f, &y), ATN_OK, "%s", label(c));
    cr_assert_eq(
        atn_download(context, r->nonfinite, r->f.nonfinite, (size_t)c->heads * sizeof(int)), ATN_OK,
        "%s: %s", label(c), atn_last_error(context));
    free(partials);
    staged_close(&s);
    guarded_get(&r->y_view, r->out);
    cr_expect_eq(guarded_damaged(&r->y_view), 0, "%s wrote elsewhere", label(c));
    cr_expect_eq(guarded_unwritten(&r->y_view), 0, "%s left rows out", label(c));
}

/* ---- Bounds ---- */

/* What factors are rounded by, and inputs when they become factors. */
static double factor_roundoff(const fused_run *r)
{
    return atn_dtype_roundoff(r->c.dtype);
}

static double input_roundoff(const fused_run *r)
{
    return r->c.dtype == ATN_TF32 ? 0x1p-11 : 0;
}

/* Tensor cores cut off each operand of a sum, and the sum, below the last place of the largest
 * (mma.cuh), by less than 2^-23 of it. A sum of so many products, `inner` at a time with what was
 * summed before, has this many of them; no operand is larger than the sum of all absolute values.
 */
static double truncations(const fused_run *r, int64_t products)
{
    int64_t inner = r->c.dtype == ATN_TF32 ? 8 : 16;
    return (double)(products + 2 * ((products + inner - 1) / inner));
}

/* The kernel's relative error before it is rounded: the exponent's, from rounded tokens (not
 * landmarks, which are of the dtype), from the truncations of x.l, from d roundings by 2^-24 of
 * each norm, and from four more, of the scale, of what it multiplies and of sums, by 2^-24 of the
 * exponent's terms; and that of the power. */
static double kernel_error(const fused_run *r, int64_t head, int64_t i, int64_t j)
{
    const fused_case *c = &r->c;
    const double *x = r->q + (head * c->n + i) * c->d, *l = r->landmarks + (head * c->m + j) * c->d;
    double zero[SOFT_FUSED_MOST] = {0}, away = sqrt(square_distance(c->d, x, l));
    double xx = square_distance(c->d, x, zero), ll = square_distance(c->d, l, zero);
    double moved = input_roundoff(r) * sqrt(xx);
    double product = 2 * sqrt(xx * ll);
    double exponent =
        r->s * (moved * (2 * away + moved) + truncations(r, c->d) * 0x1p-23 * product +
                ((double)c->d * (xx + ll) + 4 * (xx + ll + product)) * 0x1p-24);
    return expm1(exponent) + 0x1p-22;
}

/* Looks at a head. */
static void fill_kernel(fused_run *r, int64_t head)
{
    for (int64_t e = 0; e < r->c.n * r->c.m; e++) {
        r->p[e] = kernel_at(r, head, e / r->c.m, e % r->c.m);
        r->p_error[e] = kernel_error(r, head, e / r->c.m, e % r->c.m);
    }
}

/* f16: kernel values below its normal numbers. */
static double underflow(const fused_run *r)
{
    return r->c.dtype == ATN_F16 ? 0x1p-25 : 0;
}

/* |got - want| over its bound, the largest of U's entries. */
static double worst_sum(fused_run *r)
{
    const fused_case *c = &r->c;
    double worst = 0, u = factor_roundoff(r), of_v = input_roundoff(r);
    for (int64_t e = 0; e < c->heads * c->m * c->dv; e++) {
        int64_t h = e / (c->m * c->dv), j = e / c->dv % c->m;
        double want = 0, bound = 0, size = 0;
        if (e % (c->m * c->dv) == 0)
            fill_kernel(r, h);
        for (int64_t i = 0; i < c->n; i++) {
            double p = r->p[i * c->m + j], error = r->p_error[i * c->m + j],
                   v = r->v[(h * c->n + i) * c->dv + e % c->dv];
            want += p * v;
            size += p * fabs(v);
            bound += fabs(v) * (p * ((1 + error) * (1 + u) * (1 + of_v) - 1) + underflow(r));
        }
        /* the warps' and chunks' sums are added to nearest */
        bound += (truncations(r, c->n) + (double)(4 * r->f.chunks)) * 0x1p-23 * size + 1e-30;
        double ratio = fabs(r->sums[e] - want) / bound;
        worst = !(ratio <= worst) ? ratio : worst;
    }
    return worst;
}

/* The same of Y, given W. */
static double worst_output(fused_run *r)
{
    const fused_case *c = &r->c;
    double worst = 0, u = factor_roundoff(r);
    double stored = c->dtype == ATN_TF32 ? 0x1p-24 : u;
    for (int64_t e = 0; e < c->heads * c->n * c->dv; e++) {
        int64_t h = e / (c->n * c->dv), i = e / c->dv % c->n;
        double want = 0, bound = 0, size = 0;
        if (e % (c->n * c->dv) == 0)
            fill_kernel(r, h);
        for (int64_t j = 0; j < c->m; j++) {
            double p = r->p[i * c->m + j], error = r->p_error[i * c->m + j],
                   w = r->weights[(h * c->m + j) * c->dv + e % c->dv];
            want += p * w;
            size += p * fabs(w);
            bound += fabs(w) * (p * ((1 + error) * (1 + u) * (1 + u) - 1) + underflow(r));
        }
        bound += truncations(r, c->m) * 0x1p-23 * size;
        bound += stored * (fabs(want) + bound) + underflow(r) + 1e-30;
        double ratio = fabs(r->out[e] - want) / bound;
        worst = !(ratio <= worst) ? ratio : worst;
    }
    return worst;
}

/* ---- The plain chain ---- */

/* Y of one head: exactly, or with every factor of a product, P and Y rounded to the type, as a
 * chain of library calls that keeps P in it does. */
static void dense_output(const fused_run *r, int64_t h, bool exact, double *y)
{
    const fused_case *c = &r->c;
    int64_t n = c->n, m = c->m, dv = c->dv;
    double *u = data_allocate(m * dv), *w = data_allocate(m * dv), *v = data_allocate(n * dv);
    memcpy(v, r->v + h * n * dv, (size_t)(n * dv) * sizeof *v);
    for (int64_t e = 0; e < n * m; e++)
        r->p[e] = kernel_at(r, h, e / m, e % m);
    if (!exact) {
        as_held(c->dtype, n * m, r->p);
        as_held(c->dtype, n * dv, v);
    }
    for (int64_t e = 0; e < m * dv; e++)
        for (int64_t i = 0; i < n; i++)
            u[e] += r->p[i * m + e / dv] * v[i * dv + e % dv];
    for (int64_t e = 0; e < m * dv; e++)
        for (int64_t j = 0; j < m; j++)
            w[e] += r->middle[(h * m + e / dv) * m + j] * u[j * dv + e % dv];
    if (!exact)
        as_held(c->dtype, m * dv, w);
    for (int64_t e = 0; e < n * dv; e++) {
        y[e] = 0;
        for (int64_t j = 0; j < m; j++)
            y[e] += r->p[e / dv * m + j] * w[j * dv + e % dv];
    }
    if (!exact)
        as_held(memory_of(c->dtype), n * dv, y);
    free(u);
    free(w);
    free(v);
}

/* The largest error over twice the plain chain's and 2 ulps, over all heads. */
static double same_precision(const fused_run *r)
{
    const fused_case *c = &r->c;
    int64_t size = c->n * c->dv;
    double *want = data_allocate(size), *plain = data_allocate(size);
    double error = 0, plain_error = 0, largest = 0;
    for (int64_t h = 0; h < c->heads; h++) {
        dense_output(r, h, true, want);
        dense_output(r, h, false, plain);
        for (int64_t e = 0; e < size; e++) {
            double off = fabs(r->out[h * size + e] - want[e]);
            error = !(off <= error) ? off : error;
            plain_error = fmax(plain_error, fabs(plain[e] - want[e]));
            largest = fmax(largest, fabs(want[e]));
        }
    }
    free(want);
    free(plain);
    return error / (2 * plain_error + 4 * atn_dtype_roundoff(memory_of(c->dtype)) * largest);
}

/* ---- Tests ---- */

static const struct {
    int64_t heads, n, m, d, dv;
} shapes[] = {{1, 1, 1, 8, 8},      {1, 63, 7, 8, 40},   {2, 64, 16, 32, 32},
              {1, 65, 49, 32, 32},  {3, 300, 49, 40, 8}, {2, 300, 64, 64, 64},
              {1, 700, 49, 32, 64}, {1, 17, 33, 64, 16}, {2, 700, 7, 16, 32}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The tests' cases: all types and shapes, with gaps, normalisation and clamp in turn. */
static fused_case case_of(int i)
{
    int k = i % SHAPES;
    return (fused_case){.dtype = types[i / SHAPES],
                        .heads = shapes[k].heads,
                        .n = shapes[k].n,
                        .m = shapes[k].m,
                        .d = shapes[k].d,
                        .dv = shapes[k].dv,
                        .strided = i % 2 == 0,
                        .softpp = i % 3 == 0,
                        .clamp = i % 4 < 2};
}
enum { CASES = 3 * SHAPES };

Test(fused, sums_and_outputs_are_within_their_bounds, .timeout = 300)
{
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < CASES; i++) {
        fused_case c = case_of(i);
        if (!has_room(context, &c))
            continue;
        fused_run r = make_run(&c, (uint64_t)i + 1);
        run_passes(&r, context);
        double of_sum = worst_sum(&r), of_output = worst_output(&r), of_plain = same_precision(&r);
        cr_log_info("%s: %.3f %.3f %.3f", label(&c), of_sum, of_output, of_plain);
        cr_expect(ref_judge(REF_ROUNDING, of_sum) == REF_PASS, "%s: U %.3g", label(&c), of_sum);
        cr_expect(ref_judge(REF_ROUNDING, of_output) == REF_PASS, "%s: Y %.3g", label(&c),
                  of_output);
        cr_expect(of_plain <= 1, "%s: %.3g of what the plain chain may", label(&c), of_plain);
        for (int64_t h = 0; h < c.heads; h++)
            cr_expect_eq(r.nonfinite[h], 0, "%s: head %d", label(&c), (int)h);
        free_run(&r);
    }
    atn_context_free(context);
}

/* Blocks and threads in any order, copies early or late: one result. */
Test(fused, bits_are_the_same_each_time, .timeout = 300)
{
    static const char *const orders[] = {"backward", "shuffle:1", "warp-forward", "warp-backward"};
    enum { ORDERS = sizeof orders / sizeof *orders };
    atn_context *context = fixture_context(1, NULL);
    for (int t = 0; t < 3; t++) {
        fused_case c = {.dtype = types[t], .heads = 2, .n = 600, .m = 49, .d = 32, .dv = 32};
        fused_run first = make_run(&c, 5);
        run_passes(&first, context);
        cr_expect(first.f.chunks > 1, "one chunk shows little");
        for (int i = 0; i < ORDERS; i++) {
            fused_run r = make_run(&c, 5);
            setenv("EMULATOR_ORDER", orders[i], 1);
            run_passes(&r, context);
            unsetenv("EMULATOR_ORDER");
            int64_t size = c.heads * c.m * c.dv;
            cr_expect(memcmp(first.sums, r.sums, (size_t)size * sizeof *r.sums) == 0, "%s %s: U",
                      label(&c), orders[i]);
            cr_expect(guarded_same_bits(&first.y_view, &r.y_view), "%s %s: Y", label(&c),
                      orders[i]);
            free_run(&r);
        }
        free_run(&first);
    }
    atn_context_free(context);
}

/* Nor does the result depend on when other lanes see what one has stored, before a barrier. */
Test(fused, bits_are_the_same_with_late_stores, .timeout = 300)
{
    atn_context *context = fixture_context(1, NULL);
    for (int t = 0; t < 3; t++) {
        fused_case c = {.dtype = types[t], .heads = 1, .n = 40, .m = 9, .d = 32, .dv = 32};
        fused_run at_once = make_run(&c, 5), late = make_run(&c, 5);
        run_passes(&at_once, context);
        setenv("EMULATOR_STORES", "late", 1);
        run_passes(&late, context);
        unsetenv("EMULATOR_STORES");
        cr_expect(guarded_same_bits(&at_once.y_view, &late.y_view), "%s", label(&c));
        free_run(&at_once);
        free_run(&late);
    }
    atn_context_free(context);
}

/* Far from the origin the norms cancel: the bound grows with them, the results keep to it, and an
 * unclamped distance may fall below 0. */
Test(fused, tokens_far_from_the_origin, .timeout = 300)
{
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 6; i++) {
        fused_case c = {.dtype = types[i / 2],
                        .heads = 1,
                        .n = 128,
                        .m = 16,
                        .d = 32,
                        .dv = 16,
                        .clamp = i % 2,
                        .offset = 20};
        fused_run r = make_run(&c, 11);
        memcpy(r.landmarks, r.q, (size_t)(c.m * c.d) * sizeof *r.q); /* distances of 0 */
        as_held(c.dtype, c.m * c.d, r.landmarks);
        make_middle(&r, 0);
        run_passes(&r, context);
        double of_sum = worst_sum(&r), of_output = worst_output(&r);
        cr_expect(ref_judge(REF_ROUNDING, of_sum) == REF_PASS, "%s: U %.3g", label(&c), of_sum);
        cr_expect(ref_judge(REF_ROUNDING, of_output) == REF_PASS, "%s: Y %.3g", label(&c),
                  of_output);
        free_run(&r);
    }
    atn_context_free(context);
}

/* A token that is a landmark, so far out that the distance's rounding shows: clamped the kernel is
 * never above 1, expanded now and then. One channel is not 0, so that x.l is exact however tensor
 * cores add; what rounds are the norms times the scale, some up and some down. */
Test(fused, clamped_kernels_are_at_most_1)
{
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 6; i++) {
        fused_case c = {.dtype = types[i / 2],
                        .heads = 64,
                        .n = 1,
                        .m = 1,
                        .d = 64,
                        .dv = 8,
                        .clamp = i % 2,
                        .offset = 200};
        if (!has_room(context, &c))
            continue;
        fused_run r = make_run(&c, 21);
        double largest = 0;
        for (int64_t e = 0; e < c.heads * c.d; e++)
            r.q[e] = e % c.d ? 0 : 100 * r.q[e];
        as_held(c.dtype, c.heads * c.d, r.q);
        memcpy(r.landmarks, r.q, (size_t)(c.heads * c.d) * sizeof *r.q);
        for (int64_t e = 0; e < c.heads * c.dv; e++)
            r.v[e] = 1;
        guarded_set(&r.q_view, r.q);
        guarded_set(&r.v_view, r.v);
        run_passes(&r, context);
        for (int64_t e = 0; e < c.heads * c.dv; e++)
            largest = fmax(largest, r.sums[e]);
        cr_expect(c.clamp ? largest <= 1 : largest > 1, "%s: %g", label(&c), largest);
        free_run(&r);
    }
    atn_context_free(context);
}

/* W beyond f16, and W too small for it. */
Test(fused, weights_of_any_size, .timeout = 300)
{
    static const double sizes[] = {1e9, 1e-9};
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 2; i++) {
        fused_case c = {.dtype = ATN_F16, .heads = 1, .n = 64, .m = 16, .d = 8, .dv = 8};
        fused_run r = make_run(&c, 3);
        for (int64_t e = 0; e < c.n * c.dv; e++)
            r.v[e] *= i ? 1 : 1e-3;
        as_held(c.dtype, c.n * c.dv, r.v);
        guarded_set(&r.v_view, r.v);
        for (int64_t e = 0; e < c.m * c.m; e++)
            r.middle[e] *= sizes[i];
        for (int64_t e = 0; e < c.n * c.d; e++) /* far from landmarks 1 to 15: Y is small */
            r.q[e] = e % c.d ? 0 : 6;
        for (int64_t e = 0; e < c.m * c.d; e++)
            r.landmarks[e] = e % c.d ? 0 : -(double)(e / c.d);
        guarded_set(&r.q_view, r.q);
        run_passes(&r, context);
        double of_output = worst_output(&r);
        cr_expect(r.nonfinite[0] == (fabs(r.out[0]) > 65504 || isnan(r.out[0])), "%g: flag %d",
                  sizes[i], r.nonfinite[0]);
        cr_expect(r.nonfinite[0] || ref_judge(REF_ROUNDING, of_output) == REF_PASS, "%g: Y %.3g",
                  sizes[i], of_output);
        free_run(&r);
    }
    atn_context_free(context);
}

/* One bad element anywhere spoils its head, all of it and nothing else. */
Test(fused, nan_and_infinity_spoil_their_head, .timeout = 300)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    atn_context *context = fixture_context(1, NULL);
    for (int i = 0; i < 18; i++) {
        fused_case c = {.dtype = types[i % 3], .heads = 3, .n = 70, .m = 17, .d = 16, .dv = 8};
        fused_run r = make_run(&c, 9);
        bool in_values = i / 3 % 2;
        int64_t width = in_values ? c.dv : c.d;
        double *x = in_values ? r.v : r.q;
        x[(c.n + 69) * width + width - 1] = bad[i / 6]; /* the second head's last element */
        guarded_set(in_values ? &r.v_view : &r.q_view, x);
        run_passes(&r, context);
        for (int64_t h = 0; h < 3; h++)
            cr_expect_eq(r.nonfinite[h], h == 1, "%s: %g in %s, head %d", label(&c), bad[i / 6],
                         in_values ? "v" : "q", (int)h);
        for (int64_t e = 0; e < c.heads * c.n * c.dv; e++)
            if (isnan(r.out[e]) != (e / (c.n * c.dv) == 1)) {
                cr_expect(false, "%s: %g in %s, element %d is %g", label(&c), bad[i / 6],
                          in_values ? "v" : "q", (int)e, r.out[e]);
                break;
            }
        free_run(&r);
    }
    atn_context_free(context);
}

/* What no NaN gives away: an infinite token whose kernel value is 0, and an output beyond f16. */
Test(fused, infinities_that_vanish_are_seen)
{
    atn_context *context = fixture_context(1, NULL);
    for (int t = 0; t < 6; t++) {
        fused_case c = {.dtype = types[t % 3], .heads = 1, .n = 20, .m = 16, .d = 16, .dv = 8};
        fused_run r = make_run(&c, 9);
        bool overflows = t >= 3;
        for (int64_t e = 0; e < c.m * c.d; e++) /* no landmark is padding, none makes inf - inf */
            r.landmarks[e] = -1;
        if (overflows)
            r.middle[0] = c.dtype == ATN_F16 ? 1e7 : 1e38;
        else
            r.q[5 * c.d + 3] = INFINITY;
        for (int64_t e = 0; e < c.d && overflows; e++)
            r.q[e] = -1;
        for (int64_t e = 0; e < c.n * c.dv; e++)
            r.v[e] = overflows ? 100 : 1;
        guarded_set(&r.q_view, r.q);
        guarded_set(&r.v_view, r.v);
        run_passes(&r, context);
        cr_expect_eq(r.nonfinite[0], 1, "%s: %s", label(&c), overflows ? "output" : "token");
        cr_expect(isnan(r.out[0]) && isnan(r.out[c.n * c.dv - 1]), "%s", label(&c));
        free_run(&r);
    }
    atn_context_free(context);
}

Test(fused, chunks_hold_every_token)
{
    for (int64_t n = 0; n < 70000; n = n * 3 / 2 + 1)
        for (int64_t heads = 1; heads <= 4096; heads *= 16) {
            atn_attention_shape shape = {.batch = 1, .heads = heads, .tokens = n};
            int64_t chunk, chunks;
            soft_fused_chunks(&shape, &chunk, &chunks);
            cr_expect(chunk % 64 == 0 && chunk >= 256 && chunk <= 4096, "%d", (int)chunk);
            cr_expect(chunk * chunks >= n && chunk * (chunks - 1) < n + (n == 0) * chunk,
                      "%d tokens in %d of %d", (int)n, (int)chunks, (int)chunk);
        }
}

/* ---- Through plans ---- */

/* SOFT's passes by name, on an 8 x 8 grid of tokens pooled to 4 x 4 landmarks. */
static atn_status run_plan(atn_context *context, atn_attention_desc *desc, guarded *q, guarded *v,
                           guarded *y)
{
    atn_attention_shape shape = {.batch = 1,
                                 .heads = q->view.heads,
                                 .tokens = 64,
                                 .dim = q->view.cols,
                                 .value_dim = v->view.cols};
    atn_plan *plan = NULL;
    atn_tensor tq, tv, ty;
    staged s = staged_open(context);
    desc->sampling =
        (atn_sampling){.kind = ATN_SAMPLING_POOL, .height = 8, .width = 8, .stride = 2};
    atn_attention_inputs inputs = {.q = staged_input(&s, q, &tq), .v = staged_input(&s, v, &tv)};
    guarded_poison(y);
    atn_tensor *out = staged_output(&s, y, &ty);
    atn_attention_info info = {0};
    atn_status status = atn_attention_plan(context, desc, &shape, &plan);
    if (status == ATN_OK)
        status = atn_attention_forward(plan, &inputs, out, &info);
    atn_plan_free(plan);
    staged_close(&s);
    return status;
}

static guarded random_view(atn_dtype dtype, guarded_layout layout, int64_t cols, uint64_t seed)
{
    guarded g = guarded_make(dtype, layout, 1, 2, 64, cols);
    double *x = data_allocate(2 * 64 * cols);
    for (int64_t i = 0; i < 2 * 64 * cols; i++)
        x[i] = random_normal(&seed);
    guarded_set(&g, x);
    free(x);
    return g;
}

typedef struct {
    atn_dtype dtype;
    atn_operator op;
    atn_distance distance;
    atn_inverse_method inverse;
    int64_t d;
    guarded_layout layout;
    atn_status fused, chain; /* what is returned for these passes */
} plan_case;

#define CLAMPED ATN_DISTANCE_CLAMPED
#define NEWTON  ATN_INVERSE_NR_SOFT
static const plan_case plans[] = {
    {ATN_BF16, ATN_SOFT, CLAMPED, NEWTON, 32, GUARDED_DENSE, ATN_OK, ATN_OK},
    {ATN_F16, ATN_SOFTPP, ATN_DISTANCE_EXPANDED, NEWTON, 40, GUARDED_DENSE, ATN_OK, ATN_OK},
    {ATN_TF32, ATN_SOFTPP, CLAMPED, NEWTON, 12, GUARDED_DENSE, ATN_OK, ATN_OK},
    {ATN_BF16, ATN_SOFT, CLAMPED, NEWTON, 32, GUARDED_STRIDED, ATN_ERR_STRIDE, ATN_OK},
    {ATN_BF16, ATN_SOFT, CLAMPED, NEWTON, 17, GUARDED_DENSE, ATN_ERR_UNSUPPORTED, ATN_OK},
    {ATN_BF16, ATN_SOFT, ATN_DISTANCE_DIRECT, NEWTON, 32, GUARDED_DENSE, ATN_ERR_UNSUPPORTED,
     ATN_ERR_UNSUPPORTED},
    {ATN_BF16, ATN_SOFT, CLAMPED, ATN_INVERSE_PIVOTED_CHOLESKY, 32, GUARDED_DENSE,
     ATN_ERR_UNSUPPORTED, ATN_ERR_UNSUPPORTED},
    {ATN_F32, ATN_SOFT, CLAMPED, NEWTON, 32, GUARDED_DENSE, ATN_ERR_UNSUPPORTED, ATN_OK},
};

/* Outputs of two kinds of passes differ by the rounding of K, W and landmarks, times A's
 * conditioning, which adding 0.01 I bounds by 1600 and pooled normal tokens keep near 1: a few
 * roundoffs of the largest output. A wrong landmark or weight changes half of it. */
static double plan_distance(const guarded *y, const guarded *z)
{
    int64_t count = 2 * 64 * y->view.cols;
    double *a = data_allocate(count), *b = data_allocate(count), off = 0, most = 0;
    guarded_get(y, a);
    guarded_get(z, b);
    for (int64_t i = 0; i < count; i++) {
        double one = fabs(a[i] - b[i]);
        off = !(one <= off) ? one : off;
        most = fmax(most, fabs(b[i]));
    }
    free(a);
    free(b);
    return off / most;
}

Test(fused, plans_take_the_passes_they_name, .timeout = 300)
{
    atn_context *context = fixture_context(1, NULL);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const plan_case *p = &plans[i];
        guarded q = random_view(p->dtype, p->layout, p->d, 1);
        guarded v = random_view(p->dtype, p->layout, 8, 2);
        guarded y[4];
        atn_status got[4];
        for (int k = 0; k < 4; k++) {
            static const atn_soft_passes passes[] = {ATN_SOFT_TILES, ATN_SOFT_FUSED, ATN_SOFT_AUTO,
                                                     ATN_SOFT_CHAIN};
            atn_attention_desc desc = atn_attention_defaults(p->op, p->dtype);
            desc.distance = p->distance;
            desc.inverse = atn_inverse_defaults(p->inverse);
            desc.passes = passes[k];
            y[k] = guarded_make(p->dtype, p->layout, 1, 2, 64, 8);
            got[k] = run_plan(context, &desc, &q, &v, &y[k]);
        }
        cr_expect(got[0] >= 0, "plan %d: tiles say %s", (int)i, atn_status_name(got[0]));
        cr_expect(p->fused < 0 ? got[1] == p->fused : got[1] >= 0, "plan %d: fused say %s", (int)i,
                  atn_status_name(got[1]));
        cr_expect(got[2] >= 0, "plan %d: auto says %s", (int)i, atn_status_name(got[2]));
        cr_expect(guarded_same_bits(&y[2], &y[p->fused < 0 ? 0 : 1]), "plan %d: auto", (int)i);
        cr_expect(p->chain < 0 ? got[3] == p->chain : got[3] >= 0, "plan %d: the chain says %s",
                  (int)i, atn_status_name(got[3]));
        for (int k = 1; k < 4; k += 2) {
            if ((k == 1 ? p->fused : p->chain) < 0)
                continue;
            double off = plan_distance(&y[k], &y[0]);
            cr_log_info("plan %d, %s: %.3g", (int)i, k == 1 ? "fused" : "chain", off);
            cr_expect(off <= 12 * atn_dtype_roundoff(p->dtype), "plan %d: %.3g", (int)i, off);
            cr_expect(off > 0, "plan %d: the same bits as in tiles", (int)i);
        }
        for (int k = 0; k < 4; k++)
            guarded_free(&y[k]);
        guarded_free(&q);
        guarded_free(&v);
    }
    atn_context_free(context);
}

/* A bad token through a plan: the same heads and the same status from both. */
Test(fused, plans_report_nan_alike, .timeout = 300)
{
    atn_context *context = fixture_context(1, NULL);
    for (int in_values = 0; in_values < 2; in_values++) {
        guarded q = random_view(ATN_BF16, GUARDED_DENSE, 32, 1);
        guarded v = random_view(ATN_BF16, GUARDED_DENSE, 8, 2);
        const uint16_t infinity = 0x7f80;
        guarded *bad = in_values ? &v : &q;
        memcpy((char *)bad->view.data + 70 * bad->view.cols * 2, &infinity, 2); /* head 1 */
        guarded y[3];
        for (int k = 0; k < 3; k++) {
            static const atn_soft_passes passes[] = {ATN_SOFT_TILES, ATN_SOFT_FUSED,
                                                     ATN_SOFT_CHAIN};
            atn_attention_desc desc = atn_attention_defaults(ATN_SOFT, ATN_BF16);
            desc.distance = ATN_DISTANCE_CLAMPED;
            desc.inverse = atn_inverse_defaults(ATN_INVERSE_NR_SOFT);
            desc.passes = passes[k];
            y[k] = guarded_make(ATN_BF16, GUARDED_DENSE, 1, 2, 64, 8);
            atn_status status = run_plan(context, &desc, &q, &v, &y[k]);
            cr_expect_eq(status, ATN_NONFINITE, "%s: %s", atn_soft_passes_name(desc.passes),
                         atn_status_name(status));
            cr_expect(isfinite(guarded_at(&y[k], 0, 0, 63, 7)), "%d: head 0", k);
            for (int64_t e = 0; e < 64 * 8; e++)
                cr_expect(isnan(guarded_at(&y[k], 0, 1, e / 8, e % 8)), "%d: head 1", k);
            guarded_free(&y[k]);
        }
        guarded_free(&q);
        guarded_free(&v);
    }
    atn_context_free(context);
}
