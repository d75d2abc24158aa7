/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFT and SOFT++ in bf16 on the CPU. Landmarks, A and its inverse X are f32, so f32 itself, on the
 * same landmarks rounded to bf16, gives the same X; what bf16 adds is compared, element by element,
 * with what its roundings add if they are independent. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_run.h"
#include "data.h"
#include "fixture.h"

/* Spread tokens have A near I, so that errors of a few roundoffs of the output are expected. */
typedef struct {
    atn_sampling_kind sampling;
    int64_t height, width, stride, count, dim, value_dim, heads;
    double scale; /* s, times the mean |q - l|^2 of tokens, 2 d size^2 */
    double shift; /* added to every token's first coordinate: norms grow, distances hardly */
    double size;  /* of the tokens, a power of two */
} row;

/* Blocks have 256 tokens, chunks 1024 or more; a vector has up to 16 columns, an AMX tile 16 rows.
 * Products give direct distances with a shift of 32, and no longer with 64; with 1024 they would be
 * off by some roundoffs of bf16, and with 4096 by most of the distance. Of sizes around 2^-62 many
 * products are subnormal, which may count as 0; squares of 2^62 overflow in norms. */
static const row rows[] = {
    {ATN_SAMPLING_FIRST, 1, 1, 1, 1, 1, 1, 1, 3, 0, 1},
    {ATN_SAMPLING_FIRST, 3, 5, 1, 4, 3, 2, 3, 3, 0, 1},
    {ATN_SAMPLING_POOL, 16, 16, 2, 0, 8, 16, 2, 12, 0, 1},
    {ATN_SAMPLING_POOL, 1, 257, 1, 0, 16, 17, 1, 3, 0, 1},
    {ATN_SAMPLING_WINDOW, 10, 10, 4, 0, 32, 32, 2, 12, 0, 1},
    {ATN_SAMPLING_INDICES, 30, 41, 1, 49, 33, 40, 2, 3, 0, 1},
    {ATN_SAMPLING_KMEANS, 29, 70, 1, 33, 7, 33, 1, 3, 0, 1},
    {ATN_SAMPLING_LEVERAGE, 10, 20, 1, 17, 5, 3, 2, 3, 0, 1},
    {ATN_SAMPLING_RPCHOLESKY, 10, 20, 1, 15, 64, 7, 1, 3, 0, 1},
    {ATN_SAMPLING_GREEDY, 10, 31, 1, 16, 6, 300, 1, 3, 0, 1},
    {ATN_SAMPLING_FIRST, 20, 40, 1, 300, 12, 8, 1, 7, 0, 1},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 32, 16, 16, 2, 3, 32, 1},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 32, 16, 16, 2, 3, 64, 1},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 31, 15, 16, 2, 3, 1024, 1},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 31, 15, 16, 2, 3, 4096, 1},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 20, 16, 16, 1, 3, 0, 0x1p-62},
    {ATN_SAMPLING_FIRST, 20, 30, 1, 20, 16, 16, 1, 3, 0, 0x1p62},
};
enum { ROWS = sizeof rows / sizeof *rows };

static fixture_soft make(int op, atn_distance distance, const row *r, int layout, uint64_t seed)
{
    fixture_soft_case c = {.op = (atn_operator)op,
                           .dtype = ATN_BF16,
                           .layout = (guarded_layout)layout,
                           .sampling = r->sampling,
                           .batch = 2,
                           .heads = r->heads,
                           .height = r->height,
                           .width = r->width,
                           .stride = r->stride,
                           .count = r->count,
                           .dim = r->dim,
                           .value_dim = r->value_dim,
                           .distance = distance,
                           .seed = seed};
    c.inverse = atn_inverse_defaults(op == ATN_SOFTPP ? ATN_INVERSE_EIG : ATN_INVERSE_CHOLESKY);
    c.scale = ATN_SCALE_VALUE;
    c.scale_value = r->scale / (2 * (double)r->dim * r->size * r->size);
    fixture_soft f = fixture_soft_make(&c);
    for (int64_t i = 0; i < 2 * r->heads * f.n * r->dim; i++) {
        float x = (float)((f.q[i] + (i % r->dim == 0 ? r->shift : 0)) * r->size);
        atn_storage_round(ATN_STORAGE_BF16, 1, &x);
        f.q[i] = (double)x;
    }
    fixture_soft_load(&f);
    return f;
}

/* The same problem in f32, all heads: the landmarks come first among the tokens, with V = 0, and A
 * and X are what the call computes. */
typedef struct {
    float *tokens, *values, *out, *landmarks, *a, *x;
} wide_problem;

static float *zeros(int64_t count)
{
    return calloc((size_t)count, sizeof(float));
}

static void wide_free(wide_problem *w)
{
    float *const all[] = {w->tokens, w->values, w->out, w->landmarks, w->a, w->x};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static wide_problem wide_run(atn_context *context, const fixture_soft *f)
{
    int64_t b = f->c.batch, h = f->c.heads, heads = b * h, n = f->n, m = f->m, d = f->c.dim,
            dv = f->c.value_dim, all = m + n;
    wide_problem w = {zeros(heads * all * d), zeros(heads * all * dv), zeros(heads * all * dv),
                      zeros(heads * m * d),   zeros(heads * m * m),    zeros(heads * m * m)};
    for (int64_t head = 0; head < heads; head++) {
        for (int64_t i = 0; i < n * d; i++)
            w.tokens[(head * all + m) * d + i] = (float)f->q[head * n * d + i];
        for (int64_t i = 0; i < n * dv; i++)
            w.values[(head * all + m) * dv + i] = (float)f->v[head * n * dv + i];
    }
    atn_tensor tokens = atn_tensor_dense(w.tokens, ATN_F32, b, h, all, d), q = tokens,
               values = atn_tensor_dense(w.values, ATN_F32, b, h, all, dv),
               out = atn_tensor_dense(w.out, ATN_F32, b, h, all, dv),
               landmarks = atn_tensor_dense(w.landmarks, ATN_F32, b, h, m, d),
               a = atn_tensor_dense(w.a, ATN_F32, b, h, m, m),
               x = atn_tensor_dense(w.x, ATN_F32, b, h, m, m);
    q.data = w.tokens + m * d;
    q.rows = n;
    cr_assert_eq(atn_sample(context, &f->desc.sampling, &q, &landmarks), ATN_OK, "%s",
                 atn_last_error(context));
    atn_storage_round(ATN_STORAGE_BF16, heads * m * d, w.landmarks);
    for (int64_t head = 0; head < heads; head++)
        memcpy(w.tokens + head * all * d, w.landmarks + head * m * d,
               (size_t)(m * d) * sizeof *w.tokens);

    atn_attention_desc desc = f->desc;
    desc.dtype = ATN_F32;
    desc.distance = ATN_DISTANCE_DIRECT;
    desc.sampling = (atn_sampling){.kind = ATN_SAMPLING_FIRST, .count = m};
    atn_attention_shape shape = f->shape;
    shape.tokens = shape.key_tokens = all;
    atn_plan *plan;
    cr_assert_eq(atn_attention_plan(context, &desc, &shape, &plan), ATN_OK, "%s",
                 atn_last_error(context));
    atn_attention_inputs inputs = {.q = &tokens, .v = &values};
    cr_assert_eq(atn_attention_forward(plan, &inputs, &out, NULL), ATN_OK);
    atn_plan_free(plan);
    cr_assert_eq(atn_gaussian_self(context, desc.distance, desc.scale_value, &landmarks, &a),
                 ATN_OK);
    cr_assert_eq(atn_inverse(context, &desc.inverse, &a, &x, NULL, NULL), ATN_OK);
    return w;
}

/* P of one head, m x n. */
static void kernel_of(const fixture_soft *f, const float *landmarks, const double *queries,
                      double *p)
{
    int64_t n = f->n, d = f->c.dim;
    for (int64_t i = 0; i < f->m; i++)
        for (int64_t t = 0; t < n; t++) {
            double squared = 0;
            for (int64_t c = 0; c < d; c++)
                squared += pow(queries[t * d + c] - (double)landmarks[i * d + c], 2);
            p[i * n + t] = exp(-f->desc.scale_value * squared);
        }
}

/* For SOFT++ the roots of A's row sums, otherwise 1. */
static void roots_of(const fixture_soft *f, const float *a, double *roots)
{
    for (int64_t i = 0; i < f->m; i++) {
        roots[i] = f->c.op != ATN_SOFTPP;
        for (int64_t j = 0; j < f->m && f->c.op == ATN_SOFTPP; j++)
            roots[i] += (double)a[i * f->m + j];
        roots[i] = sqrt(roots[i]);
    }
}

/* sigma of one head's outputs, n x dv: the root of the sum of squares of what each rounding to bf16
 * adds, to first order. P is off by u and the quarter of it that its distances may add, twice; X U
 * and Y by u. */
static void sigma_of(const fixture_soft *f, const wide_problem *w, int64_t head, double *sigma)
{
    const double kernel = 1.25 * 1.25, u = atn_dtype_roundoff(ATN_BF16);
    int64_t n = f->n, m = f->m, dv = f->c.value_dim;
    const float *a = w->a + head * m * m, *x = w->x + head * m * m,
                *y = w->out + (head * (m + n) + m) * dv;
    const double *v = f->v + head * n * dv;
    double *p = data_allocate(m * n), *roots = data_allocate(m), *sums = data_allocate(m * dv),
           *squares = data_allocate(m * dv);
    kernel_of(f, w->landmarks + head * m * f->c.dim, f->q + head * n * f->c.dim, p);
    roots_of(f, a, roots);
    memset(sums, 0, (size_t)(m * dv) * sizeof *sums);
    memset(squares, 0, (size_t)(m * dv) * sizeof *squares);
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < n; t++)
            for (int64_t e = 0; e < dv; e++) {
                double term = p[i * n + t] * v[t * dv + e];
                sums[i * dv + e] += term;
                squares[i * dv + e] += term * term;
            }
    double *variance = data_allocate(m * dv); /* of X U, and of P where it is multiplied by X U */
    for (int64_t i = 0; i < m; i++)
        for (int64_t e = 0; e < dv; e++) {
            double weight = 0, terms = 0;
            for (int64_t j = 0; j < m; j++) {
                double entry = (double)x[i * m + j] / (roots[i] * roots[j]);
                weight += entry * sums[j * dv + e];
                terms += entry * entry * squares[j * dv + e];
            }
            variance[i * dv + e] = (1 + kernel) * weight * weight + kernel * terms;
        }
    for (int64_t t = 0; t < n; t++)
        for (int64_t e = 0; e < dv; e++) {
            double terms = (double)y[t * dv + e] * (double)y[t * dv + e];
            for (int64_t i = 0; i < m; i++)
                terms += p[i * n + t] * p[i * n + t] * variance[i * dv + e];
            sigma[t * dv + e] = u * sqrt(terms);
        }
    free(variance);
    free(squares);
    free(sums);
    free(roots);
    free(p);
}

/* u is the most that a rounding adds, so that sums of many are below sigma / 2. */
static const double MOST_SIGMAS = 3;

static void check_row(int op, atn_distance distance, int index)
{
    allocator_counts counts = {0};
    atn_context *context = fixture_context(1 + index % 3, &counts);
    fixture_soft f =
        make(op, distance, &rows[index], index % GUARDED_LAYOUT_COUNT, (uint64_t)index);
    int64_t heads = f.c.batch * f.c.heads, each = f.n * f.c.value_dim;
    double *sigma = data_allocate(each), *got = data_allocate(heads * each);
    double worst = 0, size = 0, expected = 0;
    cr_expect_eq(fixture_soft_run(&f, context), ATN_OK, "row %d: %s", index,
                 atn_last_error(context));
    cr_expect(guarded_damaged(&f.out) == 0 && guarded_unwritten(&f.out) == 0, "row %d", index);
    cr_expect_eq(counts.overruns, 0, "row %d: written past the workspace", index);
    guarded_get(&f.out, got);
    wide_problem w = wide_run(context, &f);
    for (int64_t head = 0; head < heads; head++) {
        const float *want = w.out + (head * (f.m + f.n) + f.m) * f.c.value_dim;
        sigma_of(&f, &w, head, sigma);
        for (int64_t i = 0; i < each; i++) {
            double ratio = fabs(got[head * each + i] - (double)want[i]) / sigma[i];
            worst = ratio > worst || isnan(ratio) ? ratio : worst;
            size += (double)want[i] * (double)want[i];
            expected += sigma[i] * sigma[i];
        }
    }
    const char *name = atn_operator_get((atn_operator)op)->name;
    fprintf(stderr, "%s %s, row %d: %.3g sigma, which is %.3g of the output\n", name,
            atn_distance_name(distance), index, worst, sqrt(expected / size));
    cr_expect(worst <= MOST_SIGMAS, "%s %s, row %d: %.3g sigma", name, atn_distance_name(distance),
              index, worst);
    cr_expect(expected < size / 400, "row %d: sigma is %.3g of the output", index,
              sqrt(expected / size)); /* so that zeros, or a token too few, would show */
    wide_free(&w);
    free(got);
    free(sigma);
    fixture_soft_free(&f);
    atn_context_free(context);
}

/* Distances from products lose digits where the norms are much larger than the distances, as in
 * f32: rows with large shifts and sizes are for direct distances alone. */
static bool suits(atn_distance distance, const row *r)
{
    return distance == ATN_DISTANCE_DIRECT || (r->shift < 100 && r->size <= 1);
}

Test(soft_bf16, adds_no_more_than_its_roundings)
{
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++)
            for (int i = 0; i < ROWS; i++)
                if (suits((atn_distance)distance, &rows[i]))
                    check_row(op, (atn_distance)distance, i);
}

/* All tokens are equal: A is singular, X = 0 and Y = 0. */
static fixture_soft make_singular(void)
{
    const row r = {ATN_SAMPLING_FIRST, 3, 7, 1, 5, 3, 2, 3, 3, 0, 1};
    fixture_soft f = make(ATN_SOFT, ATN_DISTANCE_DIRECT, &r, GUARDED_TOKENS, 3);
    for (int64_t i = 0; i < 6 * f.n * r.dim; i++)
        f.q[i] = 1;
    return f;
}

/* One number of the second head's Q or V is bad; `at` wraps around. */
static void check_bad(atn_context *context, fixture_soft f, atn_status others, bool in_v,
                      int64_t at, double bad)
{
    int64_t dv = f.c.value_dim, each = f.n * (in_v ? dv : f.c.dim);
    (in_v ? f.v : f.q)[each + (each + at) % each] = bad;
    fixture_soft_load(&f);
    cr_expect_eq(fixture_soft_run(&f, context), ATN_NONFINITE, "%g in %c at %d", bad,
                 in_v ? 'v' : 'q', (int)at);
    for (int64_t i = 0; i < 6 * f.n * dv; i++) {
        int64_t head = i / (f.n * dv);
        double y = guarded_at(&f.out, head / 3, head % 3, i / dv % f.n, i % dv);
        cr_expect_eq(isnan(y), head == 1, "%g in %c at %d: head %d", bad, in_v ? 'v' : 'q', (int)at,
                     (int)head);
    }
    for (int head = 0; head < 6; head++)
        cr_expect_eq(f.infos[head].status, head == 1 ? ATN_NONFINITE : others);
    fixture_soft_free(&f);
}

/* NaN or infinity in a head's Q or V makes that head NaN, and no other: in a landmark or not, with
 * one landmark, and where A is singular. */
Test(soft_bf16, a_head_that_is_not_finite)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const row sizes[] = {{ATN_SAMPLING_FIRST, 20, 30, 1, 9, 5, 3, 3, 3, 0, 1},
                                {ATN_SAMPLING_FIRST, 3, 7, 1, 1, 4, 5, 3, 3, 0, 1},
                                {ATN_SAMPLING_POOL, 6, 9, 3, 0, 5, 1, 3, 12, 0, 1}};
    static const int64_t places[] = {0, 1, 60, -1};
    atn_context *context = fixture_context(2, NULL);
    for (int k = 0; k < 3 * 4 * 2; k++) {
        int64_t at = places[k / 3 % 4];
        for (int distance = 0; distance < ATN_DISTANCE_COUNT; distance++)
            for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
                for (int i = 0; i < 3; i++)
                    check_bad(context,
                              make(op, (atn_distance)distance, &sizes[i], GUARDED_TOKENS, 3),
                              ATN_OK, k / 12, at, bad[k % 3]);
        check_bad(context, make_singular(), ATN_SINGULAR, k / 12, at, bad[k % 3]);
    }
    atn_context_free(context);
}

/* Few threads compute whole heads and keep some of P, many share a head's chunks and compute it
 * twice. */
Test(soft_bf16, the_same_bits_on_any_number_of_threads)
{
    static const int threads[] = {1, 2, 3, 7};
    enum { COUNTS = sizeof threads / sizeof *threads };
    static const row sizes[] = {
        {ATN_SAMPLING_FIRST, 60, 50, 1, 40, 6, 5, 3, 3, 0, 1},
        {ATN_SAMPLING_FIRST, 80, 120, 1, 300, 12, 4, 1, 7, 0, 1},
    };
    for (int op = ATN_SOFT; op <= ATN_SOFTPP; op++)
        for (int i = 0; i < 2; i++) {
            fixture_soft f[COUNTS];
            for (int k = 0; k < COUNTS; k++) {
                atn_context *context = fixture_context(threads[k], NULL);
                f[k] = make(op, ATN_DISTANCE_DIRECT, &sizes[i], GUARDED_DENSE, 5);
                cr_expect_eq(fixture_soft_run(&f[k], context), ATN_OK);
                cr_expect(guarded_unwritten(&f[k].out) == 0 &&
                              guarded_same_bits(&f[k].out, &f[0].out),
                          "%d threads", threads[k]);
                double last = guarded_at(&f[k].out, 1, sizes[i].heads - 1, f[k].n - 1, 1);
                cr_expect(isfinite(last) && last != 0);
                atn_context_free(context);
            }
            for (int k = 0; k < COUNTS; k++)
                fixture_soft_free(&f[k]);
        }
}

/* What bf16 does not have on the CPU, and why. */
Test(soft_bf16, what_is_refused)
{
    const row r = {ATN_SAMPLING_FIRST, 4, 4, 2, 4, 3, 2, 1, 3, 0, 1};
    atn_context *context = fixture_context(1, NULL);
    for (int k = 0; k < 6; k++) {
        static const char *const reasons[] = {"in bf16 the CPU has no inverse pivoted-cholesky",
                                              "in bf16 the CPU has no residual",
                                              "in bf16 the CPU has no sampling conv",
                                              "in bf16 the CPU has no sampling conv",
                                              "passes are fused",
                                              "passes are chain"};
        row changed = r;
        changed.sampling = k == 2   ? ATN_SAMPLING_CONV
                           : k == 3 ? ATN_SAMPLING_CONV_CODE
                                    : ATN_SAMPLING_FIRST;
        fixture_soft f = make(ATN_SOFTPP, ATN_DISTANCE_DIRECT, &changed, GUARDED_DENSE, 1);
        guarded filter = guarded_make(ATN_BF16, GUARDED_DENSE, 1, 1, 3, 3);
        if (k == 0)
            f.desc.inverse = atn_inverse_defaults(ATN_INVERSE_PIVOTED_CHOLESKY);
        if (k == 1) {
            f.desc.residual = filter.view;
            f.desc.residual_height = f.desc.residual_width = 4;
        }
        if (k >= 4)
            f.desc.passes = k == 4 ? ATN_SOFT_FUSED : ATN_SOFT_CHAIN;
        cr_expect_eq(fixture_soft_run(&f, context), ATN_ERR_UNSUPPORTED, "%s", reasons[k]);
        cr_expect(strstr(atn_last_error(context), reasons[k]), "%s", atn_last_error(context));
        cr_expect_eq(guarded_unwritten(&f.out), 2 * 16 * 2);
        guarded_free(&filter);
        fixture_soft_free(&f);
    }
    atn_context_free(context);
}
